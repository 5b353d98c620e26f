//! Tensors beside a weight that some families read and others leave alone though a file may hold them, and the order of
//! scales and biases: as llama.cpp has them.
//!
//! A weight in NVFP4 always has its scale, which belongs to the format. A scale beside a weight of another type is one of
//! the model, and then it is up to the family.

use ggml_format::GgmlType;

/// What a family reads beside its weights.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// Scales of the weights of feed-forward parts, of any type.
    pub feed_forward_scales: bool,
    /// The bias behind attention.
    pub output_bias: bool,
}

impl Reads {
    /// What most families read.
    pub const USUAL: Reads = Reads { feed_forward_scales: false, output_bias: true };
    /// The scales of feed-forward parts, too.
    pub const SCALES: Reads = Reads { feed_forward_scales: true, ..Reads::USUAL };
    /// All but the bias behind attention.
    pub const NO_OUTPUT_BIAS: Reads = Reads { output_bias: false, ..Reads::USUAL };

    /// Whether products with `stem.weight` of this type are multiplied by `stem.scale`.
    pub(super) fn scale(self, stem: &str, ty: GgmlType) -> bool {
        ty == GgmlType::NVFP4 || !is_feed_forward(stem) || self.feed_forward_scales
    }

    /// Whether `stem.bias` is added to products with `stem.weight`.
    pub(super) fn bias(self, stem: &str) -> bool {
        !stem.ends_with(".attn_output") || self.output_bias
    }
}

fn is_feed_forward(stem: &str) -> bool {
    stem.contains(".ffn_")
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
        for (reads, ty, expected) in [
            (Reads::USUAL, GgmlType::NVFP4, true),
            (Reads::USUAL, GgmlType::F32, false),
            (Reads::SCALES, GgmlType::F32, true),
        ] {
            assert_eq!(reads.scale("blk.0.ffn_up", ty), expected, "{reads:?} {ty}");
            assert!(reads.scale("blk.0.attn_q", ty), "{reads:?} {ty}");
        }
        let output = "blk.0.attn_output";
        assert!(!Reads::NO_OUTPUT_BIAS.bias(output) && Reads::USUAL.bias(output));
        assert!(Reads::NO_OUTPUT_BIAS.bias("blk.0.attn_q"));
        assert!(scales_bias("blk.0.ffn_up", GgmlType::Q4_0) && !scales_bias("blk.0.ffn_up", GgmlType::NVFP4));
    }
}
