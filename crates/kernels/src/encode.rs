//! Which block formats operations write, beside reading them: those with a template under `encode/`, which are those that
//! ggml's processor backend writes. Models do without, so the cargo feature `encode` brings them; caches, whose kernels
//! use some of the templates, do not need it.

use ggml_format::GgmlType;

use crate::format::{FORMATS, WRITTEN};

/// Names of the formats that operations both read and write.
pub(crate) fn written() -> impl Iterator<Item = &'static str> {
    WRITTEN.iter().map(|(name, _)| *name).filter(|name| FORMATS.iter().any(|f| f.name == *name))
}

/// Whether operations write tensors of this type.
pub(crate) fn can_write(ty: GgmlType) -> bool {
    ty.block_len() == 1 || written().any(|name| name == ty.name())
}

/// Values that a thread writes of a format: a block, or a group of one.
pub(crate) fn group(name: &str) -> Option<u32> {
    WRITTEN.iter().find(|(n, _)| *n == name).map(|(_, group)| *group)
}

/// Why the device does not write blocks of some formats.
pub(crate) const UNWRITTEN: &str =
    "formats with a codebook of vectors, which ggml's own processor backend does not write in an operation";

/// How far codes may be from the reference's: as ggml's own test has it, the error that one code off by one makes in
/// `n_elem` uniform values, but never so much that wrong codes would pass.
pub(crate) fn nmse(ty: GgmlType, n_elem: u32) -> f64 {
    let step: f64 = match ty {
        GgmlType::Q8_0 => 2.0 / 256.0,
        GgmlType::Q6_K => 2.0 / 64.0,
        GgmlType::Q5_0 | GgmlType::Q5_1 | GgmlType::Q5_K => 2.0 / 32.0,
        GgmlType::IQ4_NL | GgmlType::IQ4_XS | GgmlType::Q3_K => 2.0 / 8.0,
        GgmlType::Q2_K | GgmlType::MXFP4 | GgmlType::NVFP4 => 2.0 / 4.0,
        GgmlType::Q1_0 => 2.0,
        GgmlType::Q2_0 | GgmlType::TQ1_0 | GgmlType::TQ2_0 => 1.0,
        _ => 2.0 / 16.0,
    };
    // Outliers make steps larger, and there is room for two.
    (2.0 * 9.0 * step * step / (0.25 * f64::from(n_elem.max(1)))).min(0.02)
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
    fn few_values_are_compared_as_strictly_as_many() {
        for name in written() {
            let ty = GgmlType::from_name(name).expect("a format's name");
            assert!(nmse(ty, ty.block_len() as u32) <= 0.02, "{name}");
        }
    }
}
