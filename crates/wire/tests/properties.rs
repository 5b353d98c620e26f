//! Properties over random messages: what is written is read again, damage is found, rows keep their values.

use chaski_wire::{
    Answer, Assembler, Body, Dtype, Fail, FailCode, Frame, HEADER, Limits, Pair, Place, Rows, Run, Span,
    State, Task, Trim, WireError,
};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

fn dtype() -> impl Strategy<Value = Dtype> {
    prop::sample::select(Dtype::ALL.to_vec())
}

/// Rows whose values reach beyond f16 now and then.
fn rows(n_row: usize) -> impl Strategy<Value = Rows> {
    let value = prop_oneof![20 => -10f32..10.0, 1 => -1e6f32..1e6, 1 => Just(0.0f32)];
    (1u32..70, dtype()).prop_flat_map(move |(width, dtype)| {
        vec(value.clone(), width as usize * n_row)
            .prop_map(move |values| Rows::encode(width, &values, dtype).unwrap())
    })
}

prop_compose! {
    /// Each column has its experts, each with a slot.
    fn task()(n_col in 1usize..6)(
        rows in rows(n_col),
        chosen in vec(btree_set(0u16..300, 1..5), n_col),
        answer in dtype(),
        has_weights in any::<bool>(),
        budget in any::<u32>(),
        more in 0u32..100,
    ) -> Task {
        let mut pairs: Vec<(u16, Pair)> = Vec::new();
        for (column, experts) in chosen.iter().enumerate() {
            let slots = experts.iter().enumerate();
            pairs.extend(slots.map(|(slot, e)| (*e, Pair { column: column as u16, slot: slot as u16 })));
        }
        pairs.sort_by_key(|(expert, pair)| (*expert, pair.column));
        let mut runs: Vec<Run> = Vec::new();
        for (expert, _) in &pairs {
            match runs.last_mut() {
                Some(run) if run.expert == *expert => run.n += 1,
                _ => runs.push(Run { expert: *expert, n: 1 }),
            }
        }
        let weights = has_weights.then(|| (0..pairs.len()).map(|i| 1.0 / (i + 1) as f32).collect());
        let step_columns = rows.n_row() + more;
        let pairs = pairs.into_iter().map(|(_, pair)| pair).collect();
        Task { runs, pairs, weights, rows, answer, budget, step_columns }
    }
}

prop_compose! {
    fn answer()(n_row in 1usize..8)(
        rows in rows(n_row), queue in any::<u8>(), queued in any::<u32>(), running in any::<u32>(),
    ) -> Answer {
        Answer { rows, queue, queued, running }
    }
}

prop_compose! {
    fn span()(n_col in 1usize..6)(
        rows in rows(n_col),
        places in vec((any::<u32>(), any::<u32>()), n_col),
        answer in dtype(),
        budget in any::<u32>(),
    ) -> Span {
        let places = places.into_iter().map(|(sequence, position)| Place { sequence, position }).collect();
        let step_columns = rows.n_row();
        Span { places, rows, answer, budget, step_columns }
    }
}

fn frame() -> impl Strategy<Value = Frame> {
    let placed = prop_oneof![
        task().prop_map(Body::Task),
        (answer(), any::<bool>()).prop_map(|(answer, sum)| Body::Result { answer, sum }),
        span().prop_map(Body::Span),
        answer().prop_map(Body::SpanResult),
        (1u16.., any::<u32>(), ".{0,40}").prop_map(|(c, r, t)| Body::Fail(Fail::new(FailCode(c), r, &t))),
    ];
    let placed = (1u64.., any::<u32>(), any::<u16>(), placed);
    let placed = placed.prop_map(|(task, epoch, layer, body)| Frame { task, epoch, layer, body });
    let state = (any::<bool>(), any::<bool>(), any::<u16>(), any::<u32>());
    let plain = prop_oneof![
        btree_set(1u64.., 1..20).prop_map(|ids| Body::Cancel(ids.into_iter().collect())),
        state.prop_map(|(visible, throttled, queue, free_mib)| {
            Body::State(State { visible, throttled, queue, free_mib })
        }),
        any::<u64>().prop_map(Body::Ping),
        any::<u64>().prop_map(Body::Pong),
        (any::<u32>(), any::<u32>()).prop_map(|(sequence, from)| Body::Trim(Trim { sequence, from })),
    ];
    prop_oneof![3 => placed, 1 => plain.prop_map(Frame::plain)]
}

proptest! {
    #[test]
    fn messages_are_read_as_they_were(frame in frame(), crc: bool) {
        let limits = Limits::default();
        let written = frame.encode(&limits, crc).unwrap();
        prop_assert_eq!(written.len(), 1);
        prop_assert_eq!(Frame::decode(&written[0], &limits), Ok(frame.clone()));
        prop_assert_eq!(Assembler::new(limits).push(&written[0]), Ok(Some(frame)));
    }

    #[test]
    fn fragments_of_two_messages_interleave(
        (a, b) in (task(), answer()), length in 16u32..200, order in vec(any::<bool>(), 0..60), crc: bool,
    ) {
        let frames = [
            Frame { task: 1, epoch: 1, layer: 0, body: Body::Task(a) },
            Frame { task: 2, epoch: 1, layer: 0, body: Body::Result { answer: b, sum: false } },
        ];
        let limits = Limits { fragment: length, ..Limits::default() };
        let mut queues = frames.clone().map(|frame| frame.encode(&limits, crc).unwrap().into_iter());
        let mut assembler = Assembler::new(limits);
        let mut found = Vec::new();
        for turn in order.into_iter().chain(std::iter::repeat_n(false, 2000)).chain(std::iter::repeat_n(true, 2000)) {
            if let Some(message) = queues[usize::from(turn)].next() {
                found.extend(assembler.push(&message).unwrap());
            }
        }
        found.sort_by_key(|frame| frame.task);
        prop_assert_eq!(found, frames);
        prop_assert_eq!(assembler.n_pending_byte(), 0);
    }

    #[test]
    fn a_checksum_finds_every_changed_bit(frame in frame(), at: prop::sample::Index) {
        let limits = Limits::default();
        let mut bytes = frame.encode(&limits, true).unwrap().swap_remove(0);
        let bit = at.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Frame::decode(&bytes, &limits).is_err());
    }

    #[test]
    fn other_lengths_are_errors(frame in frame(), at: prop::sample::Index, more in 1usize..9) {
        let limits = Limits::default();
        let bytes = frame.encode(&limits, false).unwrap().swap_remove(0);
        prop_assert!(Frame::decode(&bytes[..at.index(bytes.len())], &limits).is_err());
        // The same payload with more bytes, whose header is right.
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + more, 0);
        let length = (longer.len() - HEADER) as u32;
        longer[8..12].copy_from_slice(&length.to_le_bytes());
        let is_cancel = matches!(frame.body, Body::Cancel(_));
        let error = Frame::decode(&longer, &limits).unwrap_err();
        prop_assert!(is_cancel || matches!(error, WireError::Length { .. }), "{}", error);
    }

    #[test]
    fn rows_keep_their_values(
        values in vec(-60000f32..60000.0, 96), dtype in dtype(),
    ) {
        let rows = Rows::encode(48, &values, dtype).unwrap();
        prop_assert_eq!(rows.dtype(), dtype);
        let relative = match dtype {
            Dtype::F32 => 0.0,
            Dtype::F16 => 1.0 / 2048.0,
            Dtype::Bf16 => 1.0 / 256.0,
            // Half a step of the block's scale, whose largest value is at most 60000.
            Dtype::Q8 => 0.0,
        };
        for (a, b) in values.iter().zip(rows.to_f32()) {
            let most = if dtype == Dtype::Q8 { 60000.0 / 127.0 * 0.51 } else { a.abs() * relative + 1e-7 };
            prop_assert!((a - b).abs() <= most, "{} became {}", a, b);
        }
    }
}

/// Normal values by Box and Muller, from a fixed seed.
fn normal(n: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    };
    let pairs = (0..n / 2).flat_map(|_| {
        let (radius, angle) = ((-2.0 * uniform().ln()).sqrt(), std::f64::consts::TAU * uniform());
        [radius * angle.cos(), radius * angle.sin()]
    });
    pairs.map(|v| v as f32).collect()
}

#[test]
fn errors_of_formats_are_those_of_the_documentation() {
    let values = normal(1 << 18);
    for (dtype, most) in [(Dtype::F32, 0.0), (Dtype::F16, 5e-8), (Dtype::Bf16, 3e-6), (Dtype::Q8, 3.2e-5)] {
        let found = Rows::encode(2048, &values, dtype).unwrap().to_f32();
        let square = |pairs: &mut dyn Iterator<Item = f64>| pairs.map(|v| v * v).sum::<f64>();
        let error = square(&mut values.iter().zip(&found).map(|(a, b)| f64::from(*a) - f64::from(*b)));
        let nmse = error / square(&mut values.iter().map(|v| f64::from(*v)));
        assert!(nmse <= most && (nmse > most / 2.0 || most == 0.0), "{dtype:?}: NMSE {nmse:e}");
    }
}

#[test]
fn values_too_large_for_a_format_fall_back() {
    for (value, dtype, expected) in [
        (65504.0, Dtype::F16, Dtype::F16),
        (65520.0, Dtype::F16, Dtype::Bf16),
        (-1e5, Dtype::F16, Dtype::Bf16),
        (1e7, Dtype::Q8, Dtype::Bf16),
        (8e6, Dtype::Q8, Dtype::Q8),
        (f32::MAX, Dtype::F16, Dtype::F32),
        (f32::MAX, Dtype::Bf16, Dtype::F32),
        (f32::MAX, Dtype::Q8, Dtype::F32),
    ] {
        let rows = Rows::encode(2, &[1.0, value], dtype).unwrap();
        assert_eq!(rows.dtype(), expected, "{value} as {dtype:?}");
        assert!((rows.to_f32()[1] / value - 1.0).abs() < 0.01, "{value} as {dtype:?}");
    }
    // Small values, whose last bits f16 does not have.
    for (value, expected) in [(1.6e-5, Dtype::F16), (1.4e-5, Dtype::Bf16), (-3e-9, Dtype::Bf16)] {
        let rows = Rows::encode(2, &[0.0, value], Dtype::F16).unwrap();
        assert_eq!(rows.dtype(), expected, "{value}");
        assert!((rows.to_f32()[1] / value - 1.0).abs() < 0.005, "{value}");
    }
    assert_eq!(Rows::encode(2, &[0.0, -0.0], Dtype::F16).unwrap().dtype(), Dtype::F16);
    // Below the smallest scale of q8.
    assert_eq!(Rows::encode(2, &[1e-30, -1e-30], Dtype::Q8).unwrap().to_f32(), [0.0, 0.0]);
    let error = Rows::encode(2, &[1.0, 2.0, f32::NAN, 0.0], Dtype::F32).unwrap_err();
    assert_eq!(error.to_string(), "value 0 of row 1 is not finite");
    assert_eq!(Rows::encode(2, &[1.0], Dtype::F32).unwrap_err().to_string(), "1 values are no rows of 2");
    assert!(Rows::encode(0, &[], Dtype::F32).is_err());
}

/// docs/swarm.md: f16 and sums at one worker a layer take 4 d + 204 bytes for k = 8 and both directions.
#[test]
fn bytes_of_a_layer_are_those_of_the_documentation() {
    let d = 2048;
    let rows = Rows::encode(d, &normal(2048), Dtype::F16).unwrap();
    let task = Task {
        runs: (0..8).map(|expert| Run { expert, n: 1 }).collect(),
        pairs: (0..8).map(|slot| Pair { column: 0, slot }).collect(),
        weights: Some(vec![0.125; 8]),
        rows: rows.clone(),
        answer: Dtype::F16,
        budget: 0,
        step_columns: 1,
    };
    let answer = Answer { rows, queue: 0, queued: 0, running: 0 };
    let bodies = [Body::Task(task), Body::Result { answer, sum: true }];
    let n_byte: usize = bodies
        .into_iter()
        .flat_map(|body| {
            Frame { task: 1, epoch: 1, layer: 0, body }.encode(&Limits::default(), true).unwrap()
        })
        .map(|message| message.len())
        .sum();
    assert_eq!(n_byte, 4 * d as usize + 204);
}

#[test]
fn rows_are_selected_as_they_travel() {
    let values: Vec<f32> = (0..5 * 700).map(|i| i as f32 / 8.0).collect();
    for dtype in Dtype::ALL {
        let rows = Rows::encode(700, &values, dtype).unwrap();
        let some = rows.select(&[0, 3, 4]);
        assert_eq!((some.n_row(), some.width(), some.dtype()), (3, 700, dtype));
        let (all, some) = (rows.to_f32(), some.to_f32());
        assert_eq!([&all[..700], &all[3 * 700..]].concat(), some);
    }
}

#[test]
fn every_value_of_a_long_row_is_converted_and_checked() {
    for (dtype, too_large) in [(Dtype::F16, 65520.0), (Dtype::Bf16, 3.4e38)] {
        for at in [0, 7, 511, 512, 1023, 1024, 1500] {
            let mut values = vec![1.5f32; 1501];
            values[at] = -2.0;
            let rows = Rows::encode(1501, &values, dtype).unwrap();
            assert_eq!((rows.dtype(), rows.to_f32()), (dtype, values.clone()));
            values[at] = too_large;
            assert_ne!(Rows::encode(1501, &values, dtype).unwrap().dtype(), dtype, "{dtype:?} at {at}");
            values[at] = f32::NAN;
            assert!(Rows::encode(1501, &values, dtype).is_err(), "{dtype:?} at {at}");
            // A peer that writes an infinity.
            let answer = Answer { rows, queue: 0, queued: 0, running: 0 };
            let frame = Frame { task: 1, epoch: 0, layer: 0, body: Body::Result { answer, sum: false } };
            let mut bytes = frame.encode(&Limits::default(), false).unwrap().swap_remove(0);
            let infinite = if dtype == Dtype::F16 { 0x7c00u16 } else { 0x7f80 };
            let place = HEADER + 20 + 2 * at;
            bytes[place..place + 2].copy_from_slice(&infinite.to_le_bytes());
            let error = Frame::decode(&bytes, &Limits::default()).unwrap_err();
            assert!(matches!(error, WireError::NotFinite { column, .. } if column == at), "{error}");
        }
    }
}
