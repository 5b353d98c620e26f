//! Cases of `get_rows`: every format, exact to the last bit.

use super::{GetRows, reference};
use crate::case::{Case, CaseBuffer, Expected, random_values};
use crate::format::{FORMATS, Format, Matrix};

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f in FORMATS {
        let k = if f.is_plain() { 65 } else { 512 };
        out.push(case(f, 5, k, &[4, 0, 3, 3], 0, 5));
        // A binding that holds rows 2 to 4 of the table.
        out.push(case(f, 7, 256, &[1, 2, 6, 4, 3], 2, 3));
        out.push(case(f, 3, 256, &[], 0, 3));
    }
    out
}

/// `n_row` rows of `k` random values in format `f`, as GGUF blocks.
pub(crate) fn table(f: &Format, n_row: usize, k: usize, seed: u64) -> Vec<u8> {
    let mut out = vec![0; n_row * (k / f.ty.block_len()) * f.ty.block_bytes()];
    let row_bytes = out.len() / n_row.max(1);
    let quantize = f.ty.info().quantize.expect("formats of cases can be quantised");
    for r in 0..n_row {
        quantize(&random_values(seed + r as u64, k), None, &mut out[r * row_bytes..][..row_bytes]);
    }
    out
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
    // Ids stand in every second word, after one that is not theirs.
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
