//! Properties that hold for any bytes, values and files.

mod common;

use common::rich;
use common::visit::visit;
use ggml_format::{GgmlType, Gguf, GgufWriter, OwnedValue, TYPES, dequantize, quantize};
use proptest::collection::vec;
use proptest::prelude::*;

fn any_value() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![
        any::<u8>().prop_map(OwnedValue::from),
        any::<i8>().prop_map(OwnedValue::from),
        any::<u16>().prop_map(OwnedValue::from),
        any::<i16>().prop_map(OwnedValue::from),
        any::<u32>().prop_map(OwnedValue::from),
        any::<i32>().prop_map(OwnedValue::from),
        any::<u64>().prop_map(OwnedValue::from),
        any::<i64>().prop_map(OwnedValue::from),
        any::<f32>().prop_map(OwnedValue::from),
        any::<f64>().prop_map(OwnedValue::from),
        any::<bool>().prop_map(OwnedValue::from),
        any::<String>().prop_map(OwnedValue::from),
        vec(any::<u8>(), 0..9).prop_map(OwnedValue::from),
        vec(any::<i32>(), 0..9).prop_map(OwnedValue::from),
        vec(any::<u64>(), 0..9).prop_map(OwnedValue::from),
        vec(any::<f32>(), 0..9).prop_map(OwnedValue::from),
        vec(any::<bool>(), 0..9).prop_map(OwnedValue::from),
        vec(any::<String>(), 0..9).prop_map(OwnedValue::from),
    ]
}

/// Number of blocks in a row, the other sizes, and a row of the type table.
fn any_tensor() -> impl Strategy<Value = (u64, Vec<u64>, GgmlType)> {
    (0u64..3, vec(0u64..4, 0..4), 0..TYPES.len())
        .prop_map(|(n_block, outer, row)| (n_block, outer, TYPES[row].ty))
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300), file_len in any::<u64>()) {
        let _ = visit(&bytes, file_len);
        let _ = visit(&bytes, bytes.len() as u64);
    }

    #[test]
    fn any_bytes_after_a_header_are_read_or_refused(
        n_tensor in 0i64..4,
        n_kv in 0i64..4,
        bytes in vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..400),
    ) {
        let file = common::Raw::header(3, n_tensor, n_kv).put(&bytes).bytes;
        let _ = visit(&file, file.len() as u64);
        let _ = visit(&file, 1 << 20);
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = rich();
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let _ = visit(&file, file.len() as u64);
        file.truncate(cut.index(file.len()));
        let _ = visit(&file, file.len() as u64);
    }

    #[test]
    fn what_is_written_is_read_again(
        values in vec(any_value(), 0..8),
        tensors in vec(any_tensor(), 0..5),
        log_alignment in 0u32..9,
        chunk in 1usize..500,
    ) {
        let mut writer = GgufWriter::new();
        writer.set("general.alignment", 1u32 << log_alignment).unwrap();
        for (i, value) in values.iter().enumerate() {
            writer.set(&format!("key {i}"), value.clone()).unwrap();
        }
        let mut shapes = Vec::new();
        for (i, (n_block, outer, ty)) in tensors.iter().enumerate() {
            let mut ne = vec![n_block * ty.block_len() as u64];
            ne.extend(outer);
            writer.tensor(&format!("tensor {i}"), &ne, *ty).unwrap();
            shapes.push(ne);
        }
        let mut data = writer.begin(Vec::new()).unwrap();
        let mut written = vec![Vec::new(); tensors.len()];
        while let Some((name, n_left)) = data.next().map(|(name, n)| (name.to_owned(), n)) {
            let i: usize = name["tensor ".len()..].parse().unwrap();
            let bytes: Vec<u8> = (0..chunk.min(n_left as usize)).map(|j| (j * 7 + i) as u8 | 1).collect();
            data.write(&name, &bytes).unwrap();
            written[i].extend(bytes);
        }
        let file = data.finish().unwrap();
        visit(&file, file.len() as u64).unwrap();

        let gguf = Gguf::parse(file.clone().into(), file.len() as u64).unwrap();
        prop_assert_eq!(gguf.alignment(), 1 << log_alignment);
        for (i, value) in values.iter().enumerate() {
            let found = OwnedValue::from(gguf.get(&format!("key {i}")).unwrap());
            // NaN does not equal itself, but its text does.
            prop_assert_eq!(format!("{found:?}"), format!("{value:?}"));
        }
        for (i, (_, _, ty)) in tensors.iter().enumerate() {
            let t = &gguf.tensors()[i];
            prop_assert_eq!(&t.ne[..t.n_dims as usize], shapes[i].as_slice());
            prop_assert_eq!(t.ty, *ty);
            prop_assert_eq!(&file[t.offset as usize..][..t.n_byte as usize], written[i].as_slice());
        }

        // Copied metadata has the same bytes.
        let mut copy = GgufWriter::new();
        copy.copy_metadata(gguf.metadata(), |_| true).unwrap();
        let copy = copy.begin(Vec::new()).unwrap().finish().unwrap();
        let n_kv = gguf.metadata().iter().count();
        prop_assert_eq!(Gguf::parse(copy.clone().into(), copy.len() as u64).unwrap().len(), n_kv);
        prop_assert!(file[24..].starts_with(&copy[24..]));
    }

    #[test]
    fn any_block_is_dequantised(row in 0..TYPES.len(), bytes in vec(any::<u8>(), 600)) {
        let info = &TYPES[row];
        let n_block = bytes.len() / info.block_bytes;
        let bytes = &bytes[..n_block * info.block_bytes];
        let mut y = vec![0.0; n_block * info.block_len];
        dequantize(info.ty, bytes, &mut y).unwrap();
        // Finite scales give finite values, unless the values of the type are too large for an f32.
        if !matches!(info.ty, GgmlType::MXFP4 | GgmlType::F64 | GgmlType::Q8_K) && (info.invalid_block)(bytes).is_none() {
            prop_assert!(y.iter().all(|y| y.is_finite()), "{}", info.name);
        }
    }

    #[test]
    fn any_values_are_quantised(
        row in 0..TYPES.len(),
        x in vec(any::<u32>().prop_map(f32::from_bits), 256),
        w in prop::option::of(vec(any::<u32>().prop_map(f32::from_bits), 256)),
    ) {
        let info = &TYPES[row];
        if info.quantize.is_some() {
            let mut out = vec![0; 256 / info.block_len * info.block_bytes];
            quantize(info.ty, &x, 256, w.as_deref(), &mut out).unwrap();
        }
    }

    #[test]
    fn quantised_values_are_near(
        row in 0..TYPES.len(),
        scale in -2i32..10,
        x in vec(-1.0f32..1.0, 256),
        weigh in any::<bool>(),
    ) {
        let info = &TYPES[row];
        // A type of b bits resolves the range of a block to about 2^-b, offsets included; with two bits or
        // fewer that says little.
        let bits = info.ty.bits_per_weight();
        // In addition, one of eight signs of iq3_xxs may be wrong.
        if info.quantize.is_some() && bits > 3.0 && info.ty != GgmlType::IQ3_XXS {
            let x: Vec<f32> = x.iter().map(|x| x * (scale as f32).exp2()).collect();
            let w = weigh.then(|| vec![1.0f32; 256]);
            let mut out = vec![0; 256 / info.block_len * info.block_bytes];
            quantize(info.ty, &x, 256, w.as_deref(), &mut out).unwrap();
            let mut y = vec![0.0; 256];
            dequantize(info.ty, &out, &mut y).unwrap();
            let max = x.iter().fold(0.0f32, |max, x| max.max(x.abs()));
            // mxfp4 has only power-of-two scales: just below one, 8 becomes 6.
            let least = if info.ty == GgmlType::MXFP4 { 0.25 } else { 0.0 };
            // The smallest scale of nvfp4 is 2^-9, halved and times 6, of which half a step is lost.
            let smallest = if info.ty == GgmlType::NVFP4 { 0.006 } else { 0.0 };
            let limit = max * (4.0 * (-bits.min(7.0).floor() as f32).exp2()).max(least);
            for (i, (x, y)) in x.iter().zip(&y).enumerate() {
                prop_assert!((x - y).abs() <= limit.max(smallest), "{}: value {i} is {x}, was {y}", info.name);
            }
        }
    }
}

#[test]
fn zeros_stay_zeros() {
    for info in TYPES.iter().filter(|t| t.quantize.is_some()) {
        let mut out = vec![0xff; 256 / info.block_len * info.block_bytes];
        let mut y = vec![1.0; 256];
        for w in [None, Some(vec![1.0; 256]), Some(vec![0.0; 256])] {
            quantize(info.ty, &[0.0; 256], 256, w.as_deref(), &mut out).unwrap();
            dequantize(info.ty, &out, &mut y).unwrap();
            assert!(y.iter().all(|&y| y == 0.0), "{}", info.name);
            assert_eq!((info.invalid_block)(&out), None, "{}", info.name);
        }
    }
}
