//! What a plan comes to, in words.

use std::io::Write;

use anyhow::Result;

use super::layout::Output;
use super::plan::Step;
use crate::ui::{bytes, one_line};

/// Writes one line for each tensor, one for each file with the bytes of its head, and one for all.
pub(super) fn print_table(
    steps: &[Step<'_>],
    files: &[Output],
    heads: &[u64],
    out: &mut impl Write,
) -> Result<()> {
    let width = steps.iter().map(|s| s.tensor.name.len()).max().unwrap_or(0);
    for s in steps {
        let shape = s.ne().iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
        let (name, from, ty, size) = (one_line(&s.tensor.name), s.tensor.ty, s.ty, bytes(s.n_byte()));
        writeln!(out, "{name:width$}  {shape:>18}  {from:>7} -> {ty:7}  {size:>12}")?;
    }
    for (file, head) in files.iter().zip(heads) {
        let (path, n) = (file.path.display(), file.steps.len());
        let n_byte = bytes(sum(&steps[file.steps.clone()]));
        writeln!(out, "{path}: {n} tensors, {n_byte}, and {} that say what they are", bytes(*head))?;
    }
    writeln!(out, "{} tensors, {}", steps.len(), total(steps))?;
    Ok(())
}

/// Bytes of all tensors.
pub(super) fn sum(steps: &[Step<'_>]) -> u64 {
    steps.iter().map(Step::n_byte).sum()
}

/// Size of all tensors, in words.
pub(super) fn total(steps: &[Step<'_>]) -> String {
    let n_elem: u64 = steps.iter().map(|s| s.tensor.n_elem()).sum();
    let before: u64 = steps.iter().map(|s| s.tensor.n_byte).sum();
    let bits = sum(steps) as f64 * 8.0 / n_elem.max(1) as f64;
    format!("{} instead of {}, {bits:.2} bits a weight", bytes(sum(steps)), bytes(before))
}
