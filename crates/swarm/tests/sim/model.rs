//! Products that are a function of layer, expert and input alone, so that every answer can be checked bit by bit.

use chaski_swarm::CallPair;
use chaski_wire::Task;

/// A way to answer wrongly.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    Zero,
    /// Values that no frame may have: the decoder refuses them.
    Nan,
    /// All values times 1.01.
    Scale,
    /// The product of the next expert.
    OtherExpert,
    /// Weights of another model.
    Stale,
    /// One bit of every row.
    Flip,
}

pub(crate) const LIES: [Lie; 6] = [Lie::Zero, Lie::Nan, Lie::Scale, Lie::OtherExpert, Lie::Stale, Lie::Flip];

/// A hash as a number between -1 and 1.
pub(crate) fn value(words: [u64; 4]) -> f32 {
    let mut z = words.iter().fold(0x1234_5678_9ABC_DEF0u64, |h, w| {
        let z = (h ^ w).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z ^ (z >> 29)
    });
    z = z.wrapping_mul(0x94D0_49BB_1331_11EB);
    (z >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

/// Appends the product of an expert and an input. Classes differ in the last bits.
pub(crate) fn product(layer: u16, expert: u16, x: &[f32], class: u64, rows: &mut Vec<f32>) {
    for j in 0..x.len() as u64 {
        let name = u64::from(layer) << 32 | u64::from(expert);
        let sum: f32 = x.iter().enumerate().map(|(i, v)| v * value([name, i as u64, j, 7])).sum();
        rows.push(sum * (1.0 + class as f32 * f32::EPSILON * 2.0));
    }
}

/// The answer to a task.
pub(crate) fn answer(layer: u16, task: &Task, class: u64, lie: Option<Lie>) -> Vec<f32> {
    let width = task.rows.width() as usize;
    let x = task.rows.to_f32();
    let mut rows = Vec::with_capacity(task.pairs.len() * width);
    for (expert, pair) in task.with_experts() {
        let x = &x[usize::from(pair.column) * width..][..width];
        match lie {
            Some(Lie::OtherExpert) => product(layer, expert ^ 1, x, class, &mut rows),
            Some(Lie::Stale) => product(layer + 1000, expert, x, class, &mut rows),
            _ => product(layer, expert, x, class, &mut rows),
        }
    }
    match lie {
        Some(Lie::Zero) => rows.fill(0.0),
        Some(Lie::Scale) => rows.iter_mut().for_each(|v| *v *= 1.01),
        Some(Lie::Flip) => {
            rows.chunks_mut(width).for_each(|row| row[0] = f32::from_bits(row[0].to_bits() ^ 1))
        }
        _ => {}
    }
    rows
}

/// The rows of a call, as one machine of a class would make them.
pub(crate) fn expected(layer: u16, x: &[f32], width: usize, pairs: &[CallPair], class: u64) -> Vec<f32> {
    let mut rows = Vec::with_capacity(pairs.len() * width);
    for pair in pairs {
        product(layer, pair.expert, &x[usize::from(pair.column) * width..][..width], class, &mut rows);
    }
    rows
}

#[test]
fn every_lie_but_nan_changes_an_answer() {
    let x = [0.3f32, -0.7, 0.2];
    let rows = chaski_wire::Rows::encode(3, &x, chaski_wire::Dtype::F32).unwrap();
    let task = Task {
        runs: vec![chaski_wire::Run { expert: 2, n: 1 }],
        pairs: vec![chaski_wire::Pair { column: 0, slot: 0 }],
        weights: None,
        rows,
        answer: chaski_wire::Dtype::F32,
        budget: 0,
        step_columns: 1,
    };
    let honest = answer(1, &task, 0, None);
    assert_ne!(honest, answer(1, &task, 1, None), "classes differ");
    for lie in LIES {
        assert_eq!(honest == answer(1, &task, 0, Some(lie)), lie == Lie::Nan, "{lie:?}");
    }
}
