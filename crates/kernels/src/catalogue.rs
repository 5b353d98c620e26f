//! The table of operations, and lookup of kernels by name. It sits on top: operations build dispatches from their own
//! rows and never look them up here.

use crate::kernel::Kernel;
use crate::op::{Op, Variant};
use crate::{ops, render, templates};

/// All operations.
pub static OPS: &[Op] = &delivered([
    ops::acc::OP,
    ops::add_id::OP,
    ops::add_scaled::OP,
    ops::adjust::OP,
    ops::altup::OP,
    ops::arange::OP,
    ops::argmax::OP,
    ops::argsort::OP,
    ops::attention::OP,
    ops::attention::KEYS,
    ops::attention::TILES,
    ops::attention::COOP,
    ops::attention::ALONE,
    ops::attention::ND,
    ops::attention_merge::OP,
    ops::attention_texts::OP,
    ops::binary::OP,
    ops::expert_lists::OP,
    ops::binary::ND,
    ops::concat::OP,
    ops::conv_2d::OP,
    ops::count_equal::OP,
    ops::cpy::OP,
    ops::cpy::SAME,
    ops::cumsum::OP,
    ops::cutoff::OP,
    ops::dsv4_hc::COMB,
    ops::dsv4_hc::POST,
    ops::dsv4_hc::PRE,
    ops::gated_delta_net::OP,
    ops::gated_delta_net::CHUNKS,
    ops::gated_linear_attn::OP,
    ops::gated_norm::OP,
    ops::gather::OP,
    ops::get_rows::OP,
    ops::get_rows::ND,
    ops::glu::OP,
    ops::glu::ND,
    ops::im2col::OP,
    ops::latent_kv::OP,
    ops::lightning_indexer::OP,
    ops::mask::OP,
    ops::measure::STREAM,
    ops::measure::RATE,
    ops::measure::COOP,
    ops::measure::LANES,
    ops::moe_reduce::OP,
    ops::mul_mat::OP,
    ops::mul_mat::COOP,
    ops::mul_mat::Q8,
    ops::mul_mat::ID,
    ops::mul_mat::ND,
    ops::mul_mat::ALONE,
    ops::mul_mat_join::OP,
    ops::mul_mat_join_norm::OP,
    ops::mul_mat_vec::OP,
    ops::mul_mat_vec::FEW,
    ops::norm::OP,
    ops::pool::OP,
    ops::rms_norm::OP,
    ops::rope::OP,
    ops::rope_kv::OP,
    ops::router::OP,
    ops::rwkv_wkv6::OP,
    ops::rwkv_wkv7::OP,
    ops::sample::OP,
    ops::sample_wide::OP,
    ops::scale::OP,
    ops::set::OP,
    ops::set_rows::OP,
    ops::short_conv::OP,
    ops::soft_max::OP,
    ops::solve_tri::OP,
    ops::ssm_conv::OP,
    ops::ssm_scan::OP,
    ops::sum::OP,
    ops::take_chosen::OP,
    ops::take_rows::OP,
    ops::topk_moe::OP,
    ops::timestep_embedding::OP,
    ops::top_k::OP,
    ops::unary::OP,
    ops::upscale::OP,
]);

/// The rows of this build: in the package for browsers, operations that no model uses there have no variants.
const fn delivered<const N: usize>(mut ops: [Op; N]) -> [Op; N] {
    let mut i = 0;
    while cfg!(for_pages) && i < N {
        if templates::is_off_web(ops[i].template) {
            ops[i].variants = Vec::new;
            ops[i].grid = None;
        }
        i += 1;
    }
    ops
}

/// The operation and the variables of a kernel.
pub(crate) fn variant(kernel: &str) -> Option<(&'static Op, &'static Variant)> {
    let name = kernel.split('.').next();
    let op = OPS.iter().find(|op| Some(op.name) == name)?;
    Some((op, render::variants(op).get(kernel)?))
}

impl Op {
    /// The operation of a kernel.
    pub fn of(kernel: &Kernel) -> &'static Op {
        let name = kernel.name.split('.').next();
        OPS.iter().find(|op| Some(op.name) == name).expect("kernels are named by their operation")
    }
}

impl Kernel {
    /// The kernel of this name: a variant of an operation, rendered on first use.
    pub fn find(name: &str) -> Option<&'static Kernel> {
        let (op, _) = variant(name)?;
        render::find(op, name)
    }

    /// The names of all kernels that can be rendered, sorted.
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<&str> =
            OPS.iter().flat_map(|op| render::variants(op).keys().map(String::as_str)).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Access, Binding};

    #[test]
    fn a_kernel_is_rendered_once() {
        let k = Kernel::find("argmax.chunk").expect("a kernel");
        assert!(std::ptr::eq(k, Kernel::find("argmax.chunk").expect("a kernel")));
        assert_eq!(k.bindings[0], Binding { name: "x", index: 0, access: Access::Read });
        assert_eq!(k.overrides, ["WG", "K", "LD", "CHUNK", "N_PART"]);
        assert!(Kernel::find("no such kernel").is_none());
    }

    #[test]
    fn browsers_lack_the_operations_whose_heads_speak_of_the_web() {
        for op in OPS {
            let head = op.template().split("#}").next().unwrap_or_default();
            let speaks = head.lines().any(|l| l.trim_start().starts_with("web "));
            assert_eq!(speaks, !op.on_web(), "{}", op.name);
        }
        assert!(OPS.iter().any(Op::on_web) && !OPS.iter().all(Op::on_web));
        let replaced: Vec<_> = OPS.iter().filter(|op| op.is_replaced_on_web()).collect();
        assert!(!replaced.is_empty() && replaced.iter().all(|op| !op.on_web()));
    }
}
