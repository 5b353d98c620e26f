//! Every row of the type table against blocks and values made by ggml.

use std::path::PathBuf;

use ggml_format::{GgmlType, TYPES, TypeInfo};

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quants")
}

fn read(name: &str) -> Vec<u8> {
    let path = fixtures().join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn read_f32(name: &str) -> Vec<f32> {
    read(name).chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Formats without a golden file: plain numbers, and the two used only for activations.
const WITHOUT_GOLDEN: [GgmlType; 8] = [
    GgmlType::F32,
    GgmlType::Q8_1,
    GgmlType::Q8_K,
    GgmlType::I8,
    GgmlType::I16,
    GgmlType::I32,
    GgmlType::I64,
    GgmlType::F64,
];

const ROW: usize = 512;
const N_QUANTISED: usize = 4096;

struct Golden {
    info: &'static TypeInfo,
    blocks: Vec<u8>,
    importance: bool,
    relative_rmse: f64,
}

fn goldens() -> Vec<Golden> {
    let index: serde_json::Value = serde_json::from_slice(&read("index.json")).unwrap();
    let mut found = Vec::new();
    for info in TYPES.iter().filter(|t| !WITHOUT_GOLDEN.contains(&t.ty)) {
        let entry = &index[info.name];
        assert!(entry.is_object(), "{}: no golden file", info.name);
        assert_eq!(entry["ggml_type"], info.id, "{}", info.name);
        assert_eq!(entry["block_values"], info.block_len, "{}", info.name);
        assert_eq!(entry["block_bytes"], info.block_bytes, "{}", info.name);
        found.push(Golden {
            info,
            blocks: read(&format!("{}.blocks", info.name)),
            importance: entry["used_importance_matrix"].as_bool().unwrap(),
            relative_rmse: entry["relative_rmse"].as_f64().unwrap(),
        });
    }
    assert_eq!(found.len(), index.as_object().map_or(0, serde_json::Map::len), "files without a format");
    found
}

#[test]
fn every_dequantiser_is_bit_exact() {
    for Golden { info, blocks, .. } in goldens() {
        let expected = read_f32(&format!("{}.f32", info.name));
        let mut y = vec![0.0; blocks.len() / info.block_bytes * info.block_len];
        info.dequantize.unwrap()(&blocks, &mut y);
        assert_eq!(y.len(), expected.len(), "{}", info.name);
        let wrong: Vec<usize> = (0..y.len())
            .filter(|&i| y[i].to_bits() != expected[i].to_bits() && !(y[i].is_nan() && expected[i].is_nan()))
            .collect();
        if let Some(&i) = wrong.first() {
            panic!(
                "{}: {} values differ, the first is {i}: {:e}, expected {:e}",
                info.name,
                wrong.len(),
                y[i],
                expected[i]
            );
        }
    }
}

fn quantise(info: &TypeInfo, importance: Option<&[f32]>) -> Vec<u8> {
    let source = read_f32("source.f32");
    let row_bytes = ROW / info.block_len * info.block_bytes;
    let mut out = vec![0xa5; N_QUANTISED / ROW * row_bytes];
    for (x, out) in source.chunks_exact(ROW).zip(out.chunks_exact_mut(row_bytes)) {
        info.quantize.unwrap()(x, importance, out);
    }
    out
}

fn relative_rmse(info: &TypeInfo, blocks: &[u8], weight: Option<&[f32]>) -> f64 {
    let source = read_f32("source.f32");
    let mut y = vec![0.0; source.len()];
    info.dequantize.unwrap()(blocks, &mut y);
    let (mut error, mut norm) = (0.0, 0.0);
    for (i, (&x, &y)) in source.iter().zip(&y).enumerate() {
        let w = weight.map_or(1.0, |w| f64::from(w[i % ROW]));
        error += w * (f64::from(x) - f64::from(y)).powi(2);
        norm += w * f64::from(x).powi(2);
    }
    (error / norm).sqrt()
}

/// Formats with a codebook: no two searches find the same codes, so they are compared by error.
const BY_CODEBOOK: [GgmlType; 7] = [
    GgmlType::IQ1_S,
    GgmlType::IQ1_M,
    GgmlType::IQ2_XXS,
    GgmlType::IQ2_XS,
    GgmlType::IQ2_S,
    GgmlType::IQ3_XXS,
    GgmlType::IQ3_S,
];

#[test]
fn other_quantisers_equal_ggml_byte_for_byte() {
    let mut report = Vec::new();
    for Golden { info, blocks, importance, relative_rmse: expected } in goldens() {
        if BY_CODEBOOK.contains(&info.ty) {
            continue;
        }
        assert!(!importance, "{}: golden blocks made without importance", info.name);
        let ours = quantise(info, None);
        let differing = ours
            .chunks_exact(info.block_bytes)
            .zip(blocks.chunks_exact(info.block_bytes))
            .filter(|(a, b)| a != b)
            .count();
        let rmse = relative_rmse(info, &ours, None);
        if differing > 0 {
            report.push(format!(
                "{}: {differing} blocks differ, rmse {rmse:.6}, ggml {expected:.6}",
                info.name
            ));
        }
    }
    assert!(report.is_empty(), "\n{}", report.join("\n"));
}

/// For every type: the plain error, and with importance also the weighted error, which was minimised.
#[test]
fn no_quantiser_errs_more_than_ggml() {
    let importance = read_f32("importance.f32");
    let mut report = Vec::new();
    for Golden { info, blocks, importance: is_weighted, relative_rmse: expected } in goldens() {
        let n = N_QUANTISED / info.block_len * info.block_bytes;
        let weight = is_weighted.then_some(importance.as_slice());
        let ours = quantise(info, weight);
        let theirs = relative_rmse(info, &blocks[..n], None);
        assert!((theirs - expected).abs() < 1e-6, "{}: {theirs} is not the index's {expected}", info.name);
        let measures = [("plain", None), ("weighted", weight)];
        for (name, weight) in &measures[..1 + usize::from(is_weighted)] {
            let (ours, theirs) =
                (relative_rmse(info, &ours, *weight), relative_rmse(info, &blocks[..n], *weight));
            if ours > 1.01 * theirs {
                report.push(format!("{}: {name} rmse {ours:.6}, ggml {theirs:.6}", info.name));
            }
        }
    }
    assert!(report.is_empty(), "\n{}", report.join("\n"));
}

/// Importance reduces the weighted error; formats that ignore it give the same bytes.
#[test]
fn importance_lowers_the_weighted_error() {
    let importance = read_f32("importance.f32");
    let mut n_using = 0;
    for Golden { info, blocks, .. } in goldens() {
        if info.quantize.is_none() {
            continue;
        }
        let n = N_QUANTISED / info.block_len * info.block_bytes;
        let weighted = quantise(info, Some(&importance));
        // Quantised here: ggml's blocks of some types are made with importance.
        let plain = quantise(info, None);
        if weighted == plain {
            assert_eq!(weighted, blocks[..n], "{}", info.name);
            continue;
        }
        n_using += 1;
        let before = relative_rmse(info, &plain, Some(&importance));
        let after = relative_rmse(info, &weighted, Some(&importance));
        assert!(after < before, "{}: {after} with importance, {before} without", info.name);
        assert!(after > 0.5 * before, "{}: {after} is too good to be true", info.name);
    }
    assert!(n_using >= 18, "{n_using} formats use importance: some have stopped using it");
}

/// Values that a format can represent survive, except for the rounding of the block's scale.
#[test]
fn codebooks_find_their_own_values() {
    for ty in BY_CODEBOOK {
        let info = ty.info();
        let mut state = 1u32;
        let mut blocks: Vec<u8> = (0..64 * info.block_bytes)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        for block in blocks.chunks_exact_mut(info.block_bytes) {
            // A scale of one; iq1_m has it in the top four bits of the last four words.
            if ty == GgmlType::IQ1_M {
                for (word, bits) in block[48..].chunks_exact_mut(2).zip([0x00, 0x00, 0xc0, 0x30]) {
                    word[1] = word[1] & 0x0f | bits;
                }
            } else {
                block[..2].copy_from_slice(&0x3c00u16.to_le_bytes());
            }
        }
        let dequantize = info.dequantize.unwrap();
        let (mut x, mut y) = (vec![0.0; 64 * 256], vec![0.0; 64 * 256]);
        dequantize(&blocks, &mut x);
        let mut again = vec![0; blocks.len()];
        info.quantize.unwrap()(&x, None, &mut again);
        dequantize(&again, &mut y);
        let error: f64 = x.iter().zip(&y).map(|(x, y)| f64::from(x - y).powi(2)).sum();
        let norm: f64 = x.iter().map(|x| f64::from(*x).powi(2)).sum();
        let rmse = (error / norm).sqrt();
        assert!(rmse < 0.01, "{}: {rmse}", info.name);
    }
}

/// An expert that no text selected has importance zero; its weights still count.
#[test]
fn every_quantiser_does_without_importance_where_there_is_none() {
    for info in TYPES.iter().filter(|info| info.quantize.is_some()) {
        assert_eq!(quantise(info, Some(&[0.0; ROW])), quantise(info, None), "{}", info.name);
    }
}

/// A text may leave any columns without activations: a whole group of a block, or all but one.
#[test]
fn every_quantiser_gives_valid_blocks_where_some_columns_have_no_importance() {
    let first_group: [f32; ROW] = std::array::from_fn(|j| if j % 256 < 32 { 0.0 } else { 1.0 });
    let one_column: [f32; ROW] = std::array::from_fn(|j| if j % 256 == 200 { 1.0 } else { 0.0 });
    for info in TYPES.iter().filter(|info| info.quantize.is_some()) {
        for (what, importance) in [("a group", &first_group), ("all but one", &one_column)] {
            let blocks = quantise(info, Some(importance));
            assert_eq!((info.invalid_block)(&blocks), None, "{}: {what}", info.name);
            let rmse = relative_rmse(info, &blocks, Some(importance));
            assert!(rmse.is_finite(), "{}: {what}: {rmse}", info.name);
        }
        // Groups of iq4_xs and iq4_nl have their own scales, which are not lost.
        if matches!(info.ty, GgmlType::IQ4_NL | GgmlType::IQ4_XS) {
            let other = quantise(info, Some(&first_group));
            let rmse = relative_rmse(info, &other, Some(&first_group.map(|w| 1.0 - w)));
            assert!(rmse < 0.2, "{}: {rmse}", info.name);
        }
    }
}
