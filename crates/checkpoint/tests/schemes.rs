//! Layouts of quantised weights that no golden checkpoint has: made here from codes, scales and zero points, and
//! compared with (code - zero) * scale.

mod common;
#[path = "common/layout.rs"]
mod layout;

use layout::{Layout, e4m3, read};
use serde_json::{Value, json};

/// The matrix that is made: rows and columns of `down_proj`.
const ROWS: usize = 32;
const COLS: usize = 64;
/// Columns of a group.
const GROUP: usize = 16;

/// Numbers below `n`.
fn draw(seed: usize, i: usize, n: u32) -> u32 {
    ((i * 0x9E37 + seed * 0x79B9 + i * i * 31) >> 3) as u32 % n
}

/// A scale that bf16 and f32 have.
fn scale(i: usize) -> f32 {
    (1.0 + (i % 7) as f32 / 8.0) / (1 << (i % 5)) as f32
}

fn scales(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| scale(i).to_le_bytes()).collect()
}

/// Codes of rows of `n_col` in words along rows, the first in the low bits.
fn along_rows(codes: &[u32], n_col: usize, bits: u32) -> Vec<u8> {
    let word = |codes: &[u32]| codes.iter().rev().fold(0, |word, code| word << bits | code);
    let words = codes.chunks(n_col).flat_map(|row| row.chunks(32 / bits as usize).map(word));
    words.flat_map(u32::to_le_bytes).collect()
}

/// The same in words down columns.
fn down_columns(codes: &[u32], n_col: usize, bits: u32) -> Vec<u8> {
    let n_row = codes.len() / n_col;
    let turned: Vec<u32> = (0..codes.len()).map(|i| codes[i % n_row * n_col + i / n_row]).collect();
    let words = along_rows(&turned, n_row, bits);
    let (words, n_word) = (words.as_chunks::<4>().0, n_row.div_ceil(32 / bits as usize));
    (0..words.len()).flat_map(|i| words[i % n_col * n_word + i / n_col]).collect()
}

/// Codes of 8 bits with scales of the shape `[rows, columns]`, each for as many neighbours.
fn bytes(name: &str, config: Value, dtype: &'static str, shape: &[usize]) -> Layout {
    let codes: Vec<u8> = (0..ROWS * COLS).map(|i| (draw(1, i, 127) + draw(2, i, 2) * 128) as u8).collect();
    let value = |code: u8| if dtype == "I8" { f32::from(code as i8) } else { e4m3(code) };
    let [n_row, n_col] = *shape else { panic!("scales have rows and columns") };
    let of = |i: usize| scale((i / COLS) / (ROWS / n_row) * n_col + (i % COLS) / (COLS / n_col));
    let values = codes.iter().enumerate().map(|(i, &code)| value(code) * of(i)).collect();
    let tensors = vec![
        ("weight", dtype, vec![ROWS, COLS], codes),
        ("weight_scale", "F32", shape.to_vec(), scales(n_row * n_col)),
    ];
    Layout { name: name.into(), config, tensors, values }
}

fn compressed(format: &str, weights: Value) -> Value {
    json!({"quant_method": "compressed-tensors", "format": format, "config_groups": {"group_0": {"weights": weights}}})
}

/// Words of compressed-tensors.
fn packed(bits: u32, has_zeros: bool) -> Layout {
    let n = 1 << bits;
    let n_group = COLS / GROUP;
    let codes: Vec<u32> = (0..ROWS * COLS).map(|i| draw(3, i, n)).collect();
    let zeros: Vec<u32> =
        (0..ROWS * n_group).map(|i| if has_zeros { draw(4, i, n) } else { n / 2 }).collect();
    let value = |i: usize| {
        let group = i / COLS * n_group + i % COLS / GROUP;
        (codes[i] as f32 - zeros[group] as f32) * scale(group)
    };
    let per_word = 32 / bits as usize;
    let mut tensors = vec![
        ("weight_packed", "I32", vec![ROWS, COLS / per_word], along_rows(&codes, COLS, bits)),
        ("weight_scale", "F32", vec![ROWS, n_group], scales(ROWS * n_group)),
        ("weight_shape", "I64", vec![2], [ROWS as u64, COLS as u64].map(u64::to_le_bytes).concat()),
    ];
    if has_zeros {
        let words = down_columns(&zeros, n_group, bits);
        tensors.push(("weight_zero_point", "I32", vec![ROWS / per_word, n_group], words));
    }
    let config =
        compressed("pack-quantized", json!({"num_bits": bits, "group_size": GROUP, "symmetric": !has_zeros}));
    let name = format!("pack-quantized, {bits} bits, zero points: {has_zeros}");
    Layout { name, config, tensors, values: (0..ROWS * COLS).map(value).collect() }
}

/// Words of GPTQ, whose matrices are transposed, with groups in an order of their own.
fn gptq(bits: u32, is_v2: bool) -> Layout {
    let n = 1 << bits;
    let n_group = COLS / GROUP;
    let codes: Vec<u32> = (0..ROWS * COLS).map(|i| draw(5, i, n)).collect();
    let zeros: Vec<u32> = (0..n_group * ROWS).map(|i| draw(6, i, n)).collect();
    let group = |k: usize| k * 7 % n_group;
    let plus = if is_v2 { 0.0 } else { 1.0 };
    let value = |i: usize| {
        let (row, k) = (i / COLS, i % COLS);
        let place = group(k) * ROWS + row;
        (codes[k * ROWS + row] as f32 - (zeros[place] as f32 + plus)) * scale(place)
    };
    let per_word = 32 / bits as usize;
    let tensors = vec![
        ("qweight", "I32", vec![COLS / per_word, ROWS], down_columns(&codes, ROWS, bits)),
        ("qzeros", "I32", vec![n_group, ROWS / per_word], along_rows(&zeros, ROWS, bits)),
        ("scales", "F32", vec![n_group, ROWS], scales(n_group * ROWS)),
        ("g_idx", "I32", vec![COLS], (0..COLS).flat_map(|k| (group(k) as u32).to_le_bytes()).collect()),
    ];
    let format = if is_v2 { "gptq_v2" } else { "gptq" };
    let config = json!({"quant_method": "gptq", "bits": bits, "checkpoint_format": format});
    let values = (0..ROWS * COLS).map(value).collect();
    Layout { name: format!("{format}, {bits} bits"), config, tensors, values }
}

fn layouts() -> Vec<Layout> {
    let fp8 = || json!({"quant_method": "fp8"});
    let weights = || json!({"num_bits": 8});
    let blocks = json!({"num_bits": 8, "block_structure": [16, 32]});
    let mut all = vec![
        bytes("fp8 of a tensor", fp8(), "F8_E4M3", &[1, 1]),
        bytes("fp8 of rows", fp8(), "F8_E4M3", &[ROWS, 1]),
        bytes(
            "fp8 of ModelOpt",
            json!({"quant_method": "modelopt", "quant_algo": "FP8"}),
            "F8_E4M3",
            &[1, 1],
        ),
        bytes("float-quantized, rows", compressed("float-quantized", weights()), "F8_E4M3", &[ROWS, 1]),
        bytes("float-quantized, tensor", compressed("float-quantized", weights()), "F8_E4M3", &[1, 1]),
        bytes("float-quantized, blocks", compressed("float-quantized", blocks), "F8_E4M3", &[2, 2]),
        bytes("naive-quantized, rows", compressed("naive-quantized", weights()), "F8_E4M3", &[ROWS, 1]),
        bytes("int-quantized, rows", compressed("int-quantized", weights()), "I8", &[ROWS, 1]),
    ];
    for bits in [2, 4, 8] {
        all.extend([packed(bits, false), packed(bits, true), gptq(bits, false), gptq(bits, true)]);
    }
    all
}

#[test]
fn made_layouts_have_their_values() {
    let mut wrong = Vec::new();
    for layout in layouts() {
        match read(&layout) {
            Ok(found) if found == layout.values => {}
            Ok(found) => wrong.push(format!(
                "{}: expected {:?}, found {:?}",
                layout.name,
                &layout.values[..4],
                &found[..4]
            )),
            Err(e) => wrong.push(format!("{}: {e}", layout.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
