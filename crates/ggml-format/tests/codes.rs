//! Codes, scales and minima against the dequantisers.

use std::path::PathBuf;

use ggml_format::blocks::kscale::{pack_scale_min_k4, scale_min_k4};
use ggml_format::{Codes, TYPES, TypeInfo};
use proptest::collection::vec;
use proptest::prelude::*;

/// Compares every value of whole blocks, bit by bit.
fn check(info: &TypeInfo, codes: Codes, blocks: &[u8]) -> Result<(), String> {
    let n = blocks.len() / info.block_bytes * info.block_len;
    let mut expected = vec![0.0; n];
    info.dequantize.expect("a format of weights")(blocks, &mut expected);
    // The previous content makes no difference.
    let (mut code, mut scale) = (vec![0x1234; n], vec![f32::NAN; n / codes.group]);
    let mut min = vec![f32::NAN; if codes.has_min { n / codes.group } else { 0 }];
    codes.unpack(blocks, &mut code, &mut scale, &mut min);
    for (i, (c, e)) in code.iter().zip(&expected).enumerate() {
        let product = scale[i / codes.group] * f32::from(*c);
        let value = if codes.has_min { product - min[i / codes.group] } else { product };
        if value.to_bits() != e.to_bits() && !(value.is_nan() && e.is_nan()) {
            return Err(format!("{}: value {i} is {value:e}, expected {e:e}", info.name));
        }
        if i8::try_from(*c).is_err() {
            return Err(format!("{}: code {i} is {c}, more than 8 bits", info.name));
        }
    }
    Ok(())
}

fn coded() -> impl Iterator<Item = (&'static TypeInfo, Codes)> {
    TYPES.iter().filter_map(|t| t.codes.map(|c| (t, c)))
}

#[test]
fn codes_are_the_values() {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quants");
    for (info, codes) in coded() {
        assert!([16, 32].contains(&codes.group), "{}: groups of {}", info.name, codes.group);
        let path = fixtures.join(format!("{}.blocks", info.name));
        let blocks = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        check(info, codes, &blocks).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(coded().count() >= 18, "formats with integer codes and scales");
}

proptest! {
    #[test]
    fn codes_of_any_block_are_its_values(bytes in vec(any::<u8>(), 3 * 210)) {
        for (info, codes) in coded() {
            let n_byte = bytes.len() / info.block_bytes * info.block_bytes;
            check(info, codes, &bytes[..n_byte]).map_err(TestCaseError::fail)?;
        }
    }
}

#[test]
fn packed_scales_and_minima_come_back() {
    let scale = [0, 63, 17, 42, 1, 62, 33, 16];
    let min = [5, 0, 63, 21, 15, 48, 31, 32];
    let packed = pack_scale_min_k4(&scale, &min);
    for j in 0..8 {
        assert_eq!(scale_min_k4(&packed, j), (scale[j], min[j]));
    }
}
