//! Tensors that families leave alone though a file may hold them, and the order of scales and biases: as llama.cpp has them.
//!
//! A weight in NVFP4 always has its scale, which belongs to the format. A scale beside a weight of another type is one of
//! the model, and then it is up to the family.

use ggml_format::GgmlType;

/// Families whose feed-forward parts have scales of their own.
const SCALED: &[&str] = &[
    "bitnet",
    "cohere2",
    "cohere2moe",
    "deepseek32",
    "gemma4",
    "glm-dsa",
    "hy_v3",
    "llama",
    "mellum",
    "mistral3",
    "nemotron_h",
    "nemotron_h_moe",
    "qwen3",
    "qwen35",
    "qwen35moe",
    "qwen3moe",
    "qwen3next",
];

/// Families without a bias behind attention.
const NO_OUTPUT_BIAS: &[&str] = &["ernie4_5", "ernie4_5-moe", "falcon-h1", "refact"];

fn is_feed_forward(stem: &str) -> bool {
    stem.contains(".ffn_")
}

/// Whether products with `stem.weight` of this type are multiplied by `stem.scale`.
pub(super) fn reads_scale(arch: &str, stem: &str, ty: GgmlType) -> bool {
    ty == GgmlType::NVFP4 || !is_feed_forward(stem) || SCALED.contains(&arch)
}

/// Whether `stem.bias` is added to products with `stem.weight`.
pub(super) fn reads_bias(arch: &str, stem: &str) -> bool {
    !(stem.ends_with(".attn_output") && NO_OUTPUT_BIAS.contains(&arch))
}

/// Whether the scale multiplies what the bias has been added to: (W x + b) s, not (W x) s + b.
pub(super) fn scales_bias(stem: &str, ty: GgmlType) -> bool {
    ty != GgmlType::NVFP4 && is_feed_forward(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_of_nvfp4_are_read_by_all_families() {
        for (arch, ty, reads) in [
            ("gemma3", GgmlType::NVFP4, true),
            ("gemma3", GgmlType::F32, false),
            ("llama", GgmlType::F32, true),
        ] {
            assert_eq!(reads_scale(arch, "blk.0.ffn_up", ty), reads, "{arch} {ty}");
            assert!(reads_scale(arch, "blk.0.attn_q", ty), "{arch} {ty}");
        }
        assert!(!reads_bias("falcon-h1", "blk.0.attn_output") && reads_bias("qwen2", "blk.0.attn_output"));
        assert!(scales_bias("blk.0.ffn_up", GgmlType::Q4_0) && !scales_bias("blk.0.ffn_up", GgmlType::NVFP4));
    }
}
