//! Optional scales and biases, which some families read and others ignore even if a file has them, and their order: the
//! same rules as llama.cpp.
//!
//! A weight in NVFP4 always has a scale, which is part of the format. A scale of a weight of another type belongs to
//! the model, and only some families use it.

use ggml_format::GgmlType;

/// Optional tensors that a family reads.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// Scales of feed-forward weights, of any type.
    pub feed_forward_scales: bool,
    /// The output bias of attention.
    pub output_bias: bool,
}

impl Reads {
    /// Tensors of most families.
    pub const USUAL: Reads = Reads { feed_forward_scales: false, output_bias: true };
    /// Also the scales of feed-forward parts.
    pub const SCALES: Reads = Reads { feed_forward_scales: true, ..Reads::USUAL };
    /// Without the output bias of attention.
    pub const NO_OUTPUT_BIAS: Reads = Reads { output_bias: false, ..Reads::USUAL };

    /// True if products with `stem.weight` of this type are multiplied by `stem.scale`.
    pub(super) fn scale(self, stem: &str, ty: GgmlType) -> bool {
        ty == GgmlType::NVFP4 || !is_feed_forward(stem) || self.feed_forward_scales
    }

    /// True if `stem.bias` is added to products with `stem.weight`.
    pub(super) fn bias(self, stem: &str) -> bool {
        !stem.ends_with(".attn_output") || self.output_bias
    }
}

fn is_feed_forward(stem: &str) -> bool {
    stem.contains(".ffn_")
}

/// True if the scale includes the bias: (W x + b) s rather than (W x) s + b.
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
