//! Cases of `get_rows`: every format, bit-exact.

use super::{GetRows, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::format::{FORMATS, Format, Matrix};
use crate::rng::{Rng, random_values};

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f in FORMATS {
        let k = if f.is_plain() { 65 } else { 512 };
        out.push(case(f, 5, k, &[4, 0, 3, 3], 0, 5));
        // A binding with rows 2 to 4 of the table.
        out.push(case(f, 7, 256, &[1, 2, 6, 4, 3], 2, 3));
        out.push(case(f, 3, 256, &[], 0, 3));
    }
    out
}

/// Rows of a table whose values are quantised. The search for the best scales takes longer than all else that cases are
/// made of.
const QUANTISED: usize = 7;

/// `n_row` rows of `k` random values in format `f`, as GGUF blocks; random blocks if the format has no quantiser. Later
/// rows have the blocks of the first ones in another order.
pub(crate) fn table(f: &Format, n_row: usize, k: usize, seed: u64) -> Vec<u8> {
    let mut out = vec![0; n_row * (k / f.ty.block_len()) * f.ty.block_bytes()];
    let row_bytes = out.len() / n_row.max(1);
    let Some(quantize) = f.ty.info().quantize else {
        random_blocks(f, seed, &mut out);
        return out;
    };
    for r in 0..n_row {
        if r >= QUANTISED {
            out.copy_within((r % QUANTISED) * row_bytes..(r % QUANTISED + 1) * row_bytes, r * row_bytes);
            let n_block = r / QUANTISED % (k / f.ty.block_len()).max(1);
            out[r * row_bytes..][..row_bytes].rotate_left(n_block * f.ty.block_bytes());
            continue;
        }
        // Every second row in few bits has random bytes, since no encoder writes some of TQ1_0's.
        if r % 2 == 1 && 4 * f.block_bytes < f.block {
            random_blocks(f, seed + r as u64, &mut out[r * row_bytes..][..row_bytes]);
            continue;
        }
        quantize(&random_values(seed + r as u64, k), None, &mut out[r * row_bytes..][..row_bytes]);
    }
    out
}

/// Fills `out` with blocks of random bytes whose largest value is like that of other cases.
fn random_blocks(f: &Format, seed: u64, out: &mut [u8]) {
    let dequantize = f.ty.info().dequantize.expect("a weight format");
    let mut words = Rng::new(seed);
    let mut values = vec![0.0f32; f.ty.block_len()];
    for block in out.chunks_exact_mut(f.ty.block_bytes()) {
        loop {
            block.iter_mut().for_each(|b| *b = words.bits() as u8);
            dequantize(block, &mut values);
            // A NaN scale has no largest value.
            let largest = values.iter().fold(0.0f32, |m, v| m.max(v.abs()));
            if (0.5..4.0).contains(&largest) {
                break;
            }
        }
    }
}

fn case(f: &'static Format, n_row: u32, k: u32, ids: &[u32], row0: u32, rows: u32) -> Case {
    let whole = table(f, n_row as usize, k as usize, 9);
    let row_bytes = whole.len() / n_row as usize;
    let held = &whole[row0 as usize * row_bytes..][..rows as usize * row_bytes];
    let matrix = Matrix { format: f, n_row: rows, n_col: k };
    let ldy = k.next_multiple_of(4);
    let n_col = ids.len() as u32;
    let y = vec![7.0f32; (ldy * n_col.max(1)) as usize];
    let mut values = y.clone();
    for (c, id) in ids.iter().enumerate() {
        if (row0..row0 + rows).contains(id) {
            let r = reference::row(f.ty, &whole, k as usize, *id as usize);
            values[c * ldy as usize..][..k as usize].copy_from_slice(&r);
        }
    }
    // Ids are in every second word, after an unrelated one.
    let mut words = vec![99u32];
    for id in ids {
        words.extend([*id, 99]);
    }
    Case::new(
        format!("{} {n_row}x{k} n{n_col} rows {row0}+{rows}", f.name),
        move |caps| GetRows { table: matrix, row0, ids: 1, id_stride: 2, ldy, n_col }.dispatch(caps),
        vec![
            CaseBuffer::input("w", &matrix.layout().pack_all(f, k, held)),
            CaseBuffer::input("ids", &words),
            CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: 0.0 }),
        ],
    )
}
