//! Which block formats the device writes, beside reading them: those with a template under `encode/`, whose quantiser
//! is a formula or a short search. They are for caches.

use ggml_format::GgmlType;

use crate::format::{FORMATS, WRITTEN};

/// Names of the formats that the device both reads and writes.
pub(crate) fn written() -> impl Iterator<Item = &'static str> {
    WRITTEN.iter().copied().filter(|name| FORMATS.iter().any(|f| f.name == *name))
}

/// Whether the device writes tensors of this type.
pub(crate) fn can_write(ty: GgmlType) -> bool {
    ty.block_len() == 1 || written().any(|name| name == ty.name())
}

/// How far codes may be from the reference's: as ggml's own test has it, the error that one code off by one makes in
/// `n_elem` uniform values, but never so much that wrong codes would pass.
pub(crate) fn nmse(ty: GgmlType, n_elem: u32) -> f64 {
    let step: f64 = match ty {
        GgmlType::Q8_0 => 2.0 / 256.0,
        GgmlType::Q5_0 | GgmlType::Q5_1 => 2.0 / 32.0,
        GgmlType::IQ4_NL => 2.0 * 2.0 / 16.0,
        GgmlType::Q1_0 => 2.0,
        GgmlType::Q2_0 => 1.0,
        _ => 2.0 / 16.0,
    };
    // Outliers make steps larger, and there is room for two.
    (2.0 * 9.0 * step * step / (0.25 * f64::from(n_elem.max(1)))).min(0.02)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_compared_as_strictly_as_many() {
        for name in written() {
            let ty = GgmlType::from_name(name).expect("a format's name");
            assert!(nmse(ty, ty.block_len() as u32) <= 0.02, "{name}");
        }
    }
}
