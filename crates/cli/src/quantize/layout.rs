//! The output files, and the tensors in each.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ggml_format::SplitName;

use super::plan::Step;

/// Where the output is split into files.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Split {
    /// One file.
    Never,
    /// By size: at most this many bytes of tensors per file; a larger tensor gets its own file.
    Bytes(u64),
    /// After this many tensors.
    Tensors(usize),
    /// As in the input, which has this many files.
    AsInput(usize),
}

/// An output file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Output {
    pub(super) path: PathBuf,
    /// Range of its tensors in the plan.
    pub(super) steps: Range<usize>,
    /// Index of the file and number of files, if it is one of a set.
    pub(super) split: Option<(u16, u16)>,
}

/// Parses a size as `llama-gguf-split` does: a number and K, M or G (powers of 1000).
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let units = [('K', 1_000u64), ('M', 1_000_000), ('G', 1_000_000_000)];
    let found = units.iter().find_map(|&(letter, unit)| {
        let n: u64 = text.strip_suffix([letter, letter.to_ascii_lowercase()])?.parse().ok()?;
        n.checked_mul(unit).filter(|&n| n > 0)
    });
    found.ok_or_else(|| "expected a positive number with K, M or G, such as 2G".to_owned())
}

/// Computes the files and reorders the tensors to match.
pub(super) fn layout(output: &Path, split: Split, steps: &mut [Step<'_>]) -> Result<Vec<Output>> {
    let ranges = match split {
        Split::Never | Split::AsInput(1) => {
            return Ok(vec![Output { path: output.to_owned(), steps: 0..steps.len(), split: None }]);
        }
        Split::Tensors(n) => cut(steps, |n_tensor, _| n_tensor > n),
        Split::Bytes(n) => cut(steps, |_, n_byte| n_byte > n),
        Split::AsInput(n_file) => {
            steps.sort_by_key(|s| s.tensor.shard);
            let first = |file| steps.partition_point(|s| usize::from(s.tensor.shard) < file);
            (0..n_file).map(|file| first(file)..first(file + 1)).collect()
        }
    };
    let count = u16::try_from(ranges.len()).ok().filter(|&n| n > 0);
    let count = count.with_context(|| format!("expected 1 to 65535 files, found {}", ranges.len()))?;
    let name = output.to_str().with_context(|| format!("`{}`: expected a UTF-8 path", output.display()))?;
    let prefix =
        SplitName::parse(name).map_or(name.strip_suffix(".gguf").unwrap_or(name), |split| split.prefix);
    let set = SplitName { prefix, index: 0, count: u32::from(count) };
    let file = |(i, steps): (u16, Range<usize>)| Output {
        path: set.sibling(u32::from(i)).into(),
        steps,
        split: Some((i, count)),
    };
    Ok((0..count).zip(ranges).map(file).collect())
}

/// Splits before the first tensor that would make the file too long: `is_too_long(tensors, bytes)`.
fn cut(steps: &[Step<'_>], is_too_long: impl Fn(usize, u64) -> bool) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut n_byte = 0;
    for (i, step) in steps.iter().enumerate() {
        // As `llama-gguf-split` counts: padding belongs to the tensor, the header does not count.
        let size = step.n_byte().next_multiple_of(32);
        n_byte += size;
        match ranges.last_mut() {
            Some(last) if !is_too_long(i + 1 - last.start, n_byte) => last.end = i + 1,
            _ => {
                ranges.push(i..i + 1);
                n_byte = size;
            }
        }
    }
    if ranges.is_empty() { std::iter::once(0..0).collect() } else { ranges }
}

#[cfg(test)]
mod tests {
    use ggml_format::{GgmlType, TensorInfo};

    use super::*;

    /// Tensors of 32 KiB, the third of 64 KiB.
    fn tensors() -> Vec<TensorInfo> {
        let tensor = |i: u64| TensorInfo {
            name: format!("blk.{i}.x.weight"),
            ne: [32, if i == 2 { 512 } else { 256 }, 1, 1],
            n_dims: 2,
            ty: GgmlType::F32,
            offset: 0,
            n_byte: if i == 2 { 65_536 } else { 32_768 },
            shard: (i % 2) as u16,
        };
        (0..5).map(tensor).collect()
    }

    fn files(output: &str, split: Split) -> Vec<(String, Vec<String>)> {
        let tensors = tensors();
        let step = |tensor| Step {
            tensor,
            ty: GgmlType::F32,
            needs_importance: false,
            has_importance: false,
            is_replaced: false,
        };
        let mut steps: Vec<Step<'_>> = tensors.iter().map(step).collect();
        let outputs = layout(Path::new(output), split, &mut steps).unwrap();
        let names =
            |o: &Output| steps[o.steps.clone()].iter().map(|s| s.tensor.name[4..5].to_owned()).collect();
        outputs.iter().map(|o| (o.path.to_str().unwrap().to_owned(), names(o))).collect()
    }

    fn expect(found: Vec<(String, Vec<String>)>, expected: &[(&str, &[&str])]) {
        let found: Vec<(&str, Vec<&str>)> = found
            .iter()
            .map(|(path, names)| (path.as_str(), names.iter().map(String::as_str).collect()))
            .collect();
        let expected: Vec<(&str, Vec<&str>)> =
            expected.iter().map(|(path, names)| (*path, names.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn files_are_cut_by_tensors_by_bytes_and_as_the_input_is() {
        expect(files("a.gguf", Split::Never), &[("a.gguf", &["0", "1", "2", "3", "4"])]);
        expect(files("a.gguf", Split::AsInput(1)), &[("a.gguf", &["0", "1", "2", "3", "4"])]);
        expect(
            files("d/a.gguf", Split::Tensors(2)),
            &[
                ("d/a-00001-of-00003.gguf", &["0", "1"]),
                ("d/a-00002-of-00003.gguf", &["2", "3"]),
                ("d/a-00003-of-00003.gguf", &["4"]),
            ],
        );
        // The third is larger than the limit.
        expect(
            files("a-00001-of-00009.gguf", Split::Bytes(65_535)),
            &[
                ("a-00001-of-00005.gguf", &["0"]),
                ("a-00002-of-00005.gguf", &["1"]),
                ("a-00003-of-00005.gguf", &["2"]),
                ("a-00004-of-00005.gguf", &["3"]),
                ("a-00005-of-00005.gguf", &["4"]),
            ],
        );
        expect(
            files("a", Split::Bytes(65_536)),
            &[
                ("a-00001-of-00003.gguf", &["0", "1"]),
                ("a-00002-of-00003.gguf", &["2"]),
                ("a-00003-of-00003.gguf", &["3", "4"]),
            ],
        );
        // The third file of the input has no tensors.
        expect(
            files("a", Split::AsInput(3)),
            &[
                ("a-00001-of-00003.gguf", &["0", "2", "4"]),
                ("a-00002-of-00003.gguf", &["1", "3"]),
                ("a-00003-of-00003.gguf", &[]),
            ],
        );
    }

    #[test]
    fn sizes_count_in_thousands() {
        assert_eq!(parse_size("2G"), Ok(2_000_000_000));
        assert_eq!(parse_size("50m"), Ok(50_000_000));
        assert_eq!(parse_size("7K"), Ok(7_000));
        for wrong in ["", "G", "0M", "-1M", "5", "5T", "1.5G", "99999999999999999999G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
