//! Block formats that operations can write as well as read: those with a template under `encode/`, the same as ggml's
//! CPU backend writes. Models do not need them, so they require the cargo feature `encode`; KV caches, whose kernels
//! use some of the templates, do not.

use ggml_format::GgmlType;

use crate::format::{FORMATS, WRITTEN};
use crate::rng::Rng;

/// Names of the formats that operations both read and write.
pub(crate) fn written() -> impl Iterator<Item = &'static str> {
    WRITTEN.iter().map(|(name, _)| *name).filter(|name| FORMATS.iter().any(|f| f.name == *name))
}

/// True if operations can write tensors of this type.
pub(crate) fn can_write(ty: GgmlType) -> bool {
    ty.block_len() == 1 || written().any(|name| name == ty.name())
}

/// Values of a format that one thread writes: a block, or a group of one.
pub(crate) fn group(name: &str) -> Option<u32> {
    WRITTEN.iter().find(|(n, _)| *n == name).map(|(_, group)| *group)
}

/// Reason for skipping block formats that the device does not write.
pub(crate) const UNWRITTEN: &str =
    "formats with a codebook of vectors, which ggml's CPU backend does not write in an operation either";

/// Tolerance for codes: like ggml's test, the error of one code off by one among `n_elem` uniform values, capped so
/// that wrong codes fail.
pub(crate) fn nmse(ty: GgmlType, n_elem: u32) -> f64 {
    let step = step(ty);
    // Outliers enlarge steps, and two codes may be off.
    (2.0 * 9.0 * step * step / (0.25 * f64::from(n_elem.max(1)))).min(0.02)
}

/// Largest distance between adjacent codes of a format, for values in -1..1.
fn step(ty: GgmlType) -> f64 {
    /// Enough blocks to contain every code.
    const BLOCKS: usize = 64;
    let info = ty.info();
    let codes = info.codes.expect("formats that are written have codes");
    let (n, mut rng) = (BLOCKS * info.block_len, Rng::new(1));
    let bytes: Vec<u8> = (0..BLOCKS * info.block_bytes).map(|_| rng.bits() as u8).collect();
    let (mut code, mut scale) = (vec![0; n], vec![0.0; n / codes.group]);
    let mut min = vec![0.0; if codes.has_min { scale.len() } else { 0 }];
    codes.unpack(&bytes, &mut code, &mut scale, &mut min);
    code.sort_unstable();
    let [low, high] = [code[0], code[n - 1]].map(f64::from);
    let widest = code.windows(2).map(|c| c[1] - c[0]).max().expect("more than one code");
    // Formats with a minimum use all codes, others as many on both sides of 0.
    let half = if codes.has_min { (high - low) / 2.0 } else { high.min(-low) };
    f64::from(widest) / half
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::KV_TYPES;
    use crate::templates;

    #[test]
    fn formats_of_caches_are_in_every_build() {
        for name in written() {
            let path = format!("encode/{name}.wgsl.jinja");
            let text = templates::text(&path).expect("its template");
            let cache = text.lines().any(|l| l.starts_with("   layout ") && l.contains(" cache"));
            assert_eq!(cache, KV_TYPES.iter().any(|t| t.name() == name), "{name}: `cache` in its layout");
        }
    }

    #[test]
    fn steps_follow_from_the_codes() {
        for (ty, want) in [
            (GgmlType::Q1_0, 2.0),
            (GgmlType::Q2_0, 1.0),
            (GgmlType::TQ1_0, 1.0),
            (GgmlType::Q2_K, 2.0 / 3.0),
            (GgmlType::Q3_K, 1.0 / 3.0),
            (GgmlType::MXFP4, 4.0 / 12.0),
            (GgmlType::NVFP4, 4.0 / 12.0),
            (GgmlType::IQ4_NL, 24.0 / 113.0),
            (GgmlType::Q4_0, 1.0 / 7.0),
            (GgmlType::Q5_1, 2.0 / 31.0),
            (GgmlType::Q6_K, 1.0 / 31.0),
            (GgmlType::Q8_0, 1.0 / 127.0),
        ] {
            assert!((step(ty) - want).abs() < 1e-9, "{ty}: {} for {want}", step(ty));
        }
    }

    #[test]
    fn few_values_are_compared_as_strictly_as_many() {
        for name in written() {
            let ty = GgmlType::from_name(name).expect("a format's name");
            assert!(nmse(ty, ty.block_len() as u32) <= 0.02, "{name}");
        }
    }
}
