//! Prints a plan.

use std::io::Write;

use anyhow::Result;

use super::layout::Output;
use super::plan::Step;
use crate::ui::{bytes, one_line};

/// Writes one line per tensor, one per file with the size of its header, and a total.
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
        writeln!(out, "{path}: {n} tensors, {n_byte}, and {} of metadata", bytes(*head))?;
    }
    writeln!(out, "{} tensors, {}", steps.len(), total(steps))?;
    Ok(())
}

/// Bytes of all tensors.
pub(super) fn sum(steps: &[Step<'_>]) -> u64 {
    steps.iter().map(Step::n_byte).sum()
}

/// Total size of all tensors, as text.
pub(super) fn total(steps: &[Step<'_>]) -> String {
    let n_elem: u64 = steps.iter().map(|s| s.tensor.n_elem()).sum();
    let before: u64 = steps.iter().map(|s| s.tensor.n_byte).sum();
    let bits = sum(steps) as f64 * 8.0 / n_elem.max(1) as f64;
    format!("{} instead of {}, {bits:.2} bits per weight", bytes(sum(steps)), bytes(before))
}
