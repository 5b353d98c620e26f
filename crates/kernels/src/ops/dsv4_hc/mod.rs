//! `dsv4_hc`: hyper-connections, several residual streams in place of one.
//!
//! A layer reads a weighted sum of the streams ([`HcPre`]). [`HcPost`] distributes the layer's output over the streams
//! and mixes them by a matrix that [`HcComb`] computes per token.

mod cases;
mod comb;
mod post;
mod pre;
pub mod reference;

pub use comb::HcComb;
pub use post::HcPost;
pub use pre::HcPre;

use crate::grid::Grid;
use crate::op::{Op, Value};

/// The row of this operation.
pub const COMB: Op = Op {
    name: "dsv4_hc_comb",
    template: template!("dsv4_hc/comb.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases::comb_by_hand),
    ggml: &["DSV4_HC_COMB"],
    grid: Some(Grid::new(include_str!("comb_grid.txt"), cases::comb_of).random(cases::random_comb)),
};

/// The row of this operation.
pub const POST: Op = Op {
    name: "dsv4_hc_post",
    template: template!("dsv4_hc/post.wgsl.jinja"),
    variants: || ["none", "matrix"].iter().map(|c| vec![("comb", Value::Word(c))]).collect(),
    cases: Op::cases(cases::post_by_hand),
    ggml: &["DSV4_HC_POST"],
    grid: Some(Grid::new(include_str!("post_grid.txt"), cases::post_of).random(cases::random_post)),
};

/// The row of this operation.
pub const PRE: Op = Op {
    name: "dsv4_hc_pre",
    template: template!("dsv4_hc/pre.wgsl.jinja"),
    variants: || ["stream", "gate"].iter().map(|w| vec![("w", Value::Word(w))]).collect(),
    cases: Op::cases(cases::pre_by_hand),
    ggml: &["DSV4_HC_PRE"],
    grid: Some(Grid::new(include_str!("pre_grid.txt"), cases::pre_of).random(cases::random_pre)),
};

#[cfg(test)]
mod tests {
    use ggml_format::GgmlType;

    use super::*;
    use crate::caps::Caps;
    use crate::tensor::Tensor;

    fn f32s(ne: [u32; 4]) -> Tensor {
        Tensor::new(GgmlType::F32, ne)
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let caps = Caps::base();
        let comb = HcComb {
            mixes: f32s([24, 5, 1, 1]),
            scale: f32s([3, 1, 1, 1]),
            base: f32s([24, 1, 1, 1]),
            eps: 1e-6,
            n_iter: 2,
            y: f32s([4, 4, 5, 1]),
        };
        let (n_embd, hc, n_tok) = (7, 3, 5);
        let pre = HcPre {
            x: f32s([n_embd, hc, n_tok, 1]),
            w: f32s([hc, n_tok, 1, 1]),
            gated: false,
            scale: 1.0,
            y: f32s([n_embd, n_tok, 1, 1]),
        };
        let post =
            HcPost { x: pre.y, residual: pre.x, post: pre.w, comb: Some(f32s([hc, hc, n_tok, 1])), y: pre.x };
        assert!(comb.dispatch(&caps).is_ok() && pre.dispatch(&caps).is_ok() && post.dispatch(&caps).is_ok());
        let half = |t: Tensor| Tensor { ty: GgmlType::F16, ..t };
        for (refused, want) in [
            (
                HcComb { mixes: f32s([35, 5, 1, 1]), ..comb }.dispatch(&caps),
                "dsv4_hc_comb: mixes is 35, expected 24 along axis 0",
            ),
            (
                HcComb { scale: f32s([2, 1, 1, 1]), ..comb }.dispatch(&caps),
                "dsv4_hc_comb: scale is 2, expected 3 along axis 0",
            ),
            (HcComb { n_iter: 0, ..comb }.dispatch(&caps), "dsv4_hc_comb: n_iter is 0, expected at least 1"),
            (
                HcComb { base: half(comb.base), ..comb }.dispatch(&caps),
                "dsv4_hc_comb: base is f16, expected f32",
            ),
            (HcPre { gated: true, ..pre }.dispatch(&caps), "dsv4_hc_pre: w is 3, expected 7 along axis 0"),
            (
                HcPre { x: f32s([n_embd, hc, n_tok, 2]), ..pre }.dispatch(&caps),
                "dsv4_hc_pre: x is 2, expected 1 along axis 3",
            ),
            (
                HcPre { x: f32s([n_embd, 0, n_tok, 1]), w: f32s([0, n_tok, 1, 1]), ..pre }.dispatch(&caps),
                "dsv4_hc_pre: x is 0, expected at least one value",
            ),
            (
                HcPost { comb: Some(f32s([hc, 4, n_tok, 1])), ..post }.dispatch(&caps),
                "dsv4_hc_post: comb is 4, expected 3 along axis 1",
            ),
            (
                HcPost { residual: half(post.residual), ..post }.dispatch(&caps),
                "dsv4_hc_post: residual is f16, expected f32",
            ),
        ] {
            assert_eq!(refused.expect_err(want).to_string(), want);
        }
    }
}
