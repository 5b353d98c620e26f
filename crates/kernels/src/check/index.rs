//! The index of all kernels, one line each: it shows which kernels a change of templates affects.

use std::collections::BTreeMap;

use super::workgroup::Size;
use crate::kernel::{Access, Kernel};

/// The index: file contents by file name, which is the name of an operation.
pub type Index = BTreeMap<&'static str, String>;

/// Name, features, bindings, threads and memory of a workgroup with the default constants, and the hash of the text:
/// `argmax.final | - | x:r step:rw ring:rw | 256 threads, 2048 bytes | 0123456789abcdef`.
pub(super) fn line(kernel: &Kernel, size: Size) -> String {
    let features: Vec<&str> = kernel.features.words().collect();
    let features = if features.is_empty() { "-".to_owned() } else { features.join(" ") };
    let access = |a| if a == Access::Read { "r" } else { "rw" };
    let bindings: Vec<String> =
        kernel.bindings.iter().map(|b| format!("{}:{}", b.name, access(b.access))).collect();
    let Size { threads, n_byte } = size;
    let (name, bindings, hash) = (kernel.name, bindings.join(" "), hash(kernel.source));
    format!("{name} | {features} | {bindings} | {threads} threads, {n_byte} bytes | {hash:016x}\n")
}

/// The lines in order, by operation.
pub(super) fn files(mut lines: Vec<(&'static str, String)>) -> Index {
    lines.sort_unstable();
    let mut files = Index::new();
    for (name, line) in lines {
        let op = name.split('.').next().unwrap_or(name);
        *files.entry(op).or_default() += &line;
    }
    files
}

/// FNV-1a, 64 bits. It detects changes; it need not resist attacks.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3))
}
