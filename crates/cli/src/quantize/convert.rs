//! Converts tensors while they stream from the input to the output.

use std::io::Write;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use ggml_format::{DataWriter, Imatrix, dequantize, quantize};
use rayon::prelude::*;

use super::input::Model;
use super::plan::Step;
use crate::progress::Progress;

/// Approximate number of values converted between two writes; this and not the model determines memory use.
const CHUNK_LEN: u64 = 1 << 23;

/// Approximate number of values that one thread converts at once.
const PIECE_LEN: u64 = 1 << 16;

/// Converts the tensors of a file; a chunk is written while the next is converted.
pub(super) fn convert_all<W: Write + Send>(
    model: &Model,
    steps: &[Step<'_>],
    imatrix: Option<&Imatrix>,
    mut data: DataWriter<W>,
    progress: &Progress,
) -> Result<DataWriter<W>> {
    let mut ready: (&str, Vec<u8>) = ("", Vec::new());
    let mut next = Vec::new();
    for step in steps {
        progress.message(step.tensor.name.as_str());
        let (n_col, n_mat) = step.columns();
        let importance = match imatrix {
            Some(imatrix) if step.has_importance => imatrix.importance(&step.tensor.name, n_col, n_mat)?,
            _ => None,
        };
        for rows in pieces(0..step.tensor.n_row(), step.tensor.ne[0], CHUNK_LEN) {
            let write = || data.write(ready.0, &ready.1);
            let (written, converted) =
                rayon::join(write, || convert(model, step, importance.as_deref(), rows, &mut next));
            written?;
            converted.with_context(|| format!("cannot convert tensor `{}`", step.tensor.name))?;
            progress.add(ready.1.len() as u64);
            ready.0 = &step.tensor.name;
            std::mem::swap(&mut ready.1, &mut next);
        }
    }
    data.write(ready.0, &ready.1)?;
    progress.add(ready.1.len() as u64);
    Ok(data)
}

/// Ranges of rows with about `n_elem` values each, and at least one row.
fn pieces(rows: Range<u64>, n_per_row: u64, n_elem: u64) -> impl Iterator<Item = Range<u64>> {
    let step = (n_elem / n_per_row.max(1)).max(1);
    let end = rows.end;
    rows.step_by(step as usize).map(move |start| start..(start + step).min(end))
}

/// Converts rows to the new type into `out`; `importance` covers all matrices of the tensor.
fn convert(
    model: &Model,
    step: &Step<'_>,
    importance: Option<&[f32]>,
    rows: Range<u64>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let row_bytes = step.row_bytes();
    out.clear();
    out.resize(((rows.end - rows.start) * row_bytes) as usize, 0);
    let mut rest = out.as_mut_slice();
    let mut tasks = Vec::new();
    for rows in pieces(rows, step.tensor.ne[0], PIECE_LEN) {
        let (piece, others) = rest.split_at_mut(((rows.end - rows.start) * row_bytes) as usize);
        tasks.push((rows, piece));
        rest = others;
    }
    let buffers = || (Vec::new(), Vec::new());
    tasks.into_par_iter().try_for_each_init(buffers, |(bytes, values), (rows, piece)| {
        let from = rows.start * step.tensor.row_bytes();
        if !step.changes() {
            pollster::block_on(model.read_tensor(step.tensor, from, piece))?;
            return check_rows(step, rows.start, piece, "finite values, found another");
        }
        bytes.resize(((rows.end - rows.start) * step.tensor.row_bytes()) as usize, 0);
        pollster::block_on(model.read_tensor(step.tensor, from, bytes))?;
        convert_rows(step, importance, rows, bytes, values, piece)
    })
}

/// Converts rows whose bytes are all present.
fn convert_rows(
    step: &Step<'_>,
    importance: Option<&[f32]>,
    rows: Range<u64>,
    bytes: &[u8],
    values: &mut Vec<f32>,
    out: &mut [u8],
) -> Result<()> {
    let n_per_row = step.tensor.ne[0];
    values.resize(((rows.end - rows.start) * n_per_row) as usize, 0.0);
    dequantize(step.tensor.ty, bytes, values)?;
    if let Some(i) = values.iter().position(|x| !x.is_finite()) {
        let (row, column) = (rows.start + i as u64 / n_per_row, i as u64 % n_per_row);
        bail!("row {row}, column {column}: expected a finite value, found {}", values[i]);
    }
    // Rows of one matrix share the importance of their columns.
    let n_row_mat = step.tensor.ne[1].max(1);
    let mut row = rows.start;
    while row < rows.end {
        let mat = row / n_row_mat;
        let end = rows.end.min((mat + 1) * n_row_mat);
        let at = |row: u64, n: u64| ((row - rows.start) * n) as usize;
        let importance = importance.map(|w| &w[(mat * n_per_row) as usize..][..n_per_row as usize]);
        let x = &values[at(row, n_per_row)..at(end, n_per_row)];
        let out = &mut out[at(row, step.row_bytes())..at(end, step.row_bytes())];
        quantize(step.ty, x, n_per_row as usize, importance, out)?;
        row = end;
    }
    let expected = format!("values within the range of {}, found larger ones", step.ty);
    check_rows(step, rows.start, out, &expected)
}

/// Checks that every block of these rows has finite scales.
fn check_rows(step: &Step<'_>, first: u64, out: &[u8], expected: &str) -> Result<()> {
    if let Some(i) = (step.ty.info().invalid_block)(out) {
        let (i, n_per_row) = (i as u64 * step.ty.block_len() as u64, step.tensor.ne[0]);
        let (row, column) = (first + i / n_per_row, i % n_per_row);
        bail!("row {row}, from column {column}: expected {expected}");
    }
    Ok(())
}
