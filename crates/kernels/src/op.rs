//! The table of operations.

use crate::caps::FeatureSet;
use crate::case::Case;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::kernel::Kernel;
use crate::ops;
use crate::templates;

/// The value of one template variable.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A word.
    Word(&'static str),
    /// A number.
    Int(u32),
    /// A word that stands for a piece of WGSL: `x` is the word in the template, `x_text` the piece.
    Text(&'static str, &'static str),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Word(w) | Value::Text(w, _) => f.write_str(w),
            Value::Int(n) => write!(f, "{n}"),
        }
    }
}

/// One choice of all template variables of an operation, in the order in which they appear in kernel names.
pub type Variant = Vec<(&'static str, Value)>;

/// An operation: a folder under `ops/` and a row of [`OPS`].
pub struct Op {
    /// Name of the folder, the template, the kernels and the benchmarks.
    pub name: &'static str,
    /// The WGSL template: its file under `ops/`.
    pub template: &'static str,
    /// Every variant that is rendered.
    pub variants: fn() -> Vec<Variant>,
    /// Shapes and tolerances worth testing; none without the cargo feature `cases`.
    pub cases: fn() -> Vec<Case>,
    /// The operations of ggml that it does, or has a part in, by their names in ggml's test program.
    pub ggml: &'static [&'static str],
    /// More cases, written as ggml's test program writes them; an empty grid without the feature.
    pub grid: Option<Grid>,
}

impl Op {
    /// The operation of a kernel.
    pub fn of(kernel: &Kernel) -> &'static Op {
        let name = kernel.name.split('.').next();
        OPS.iter().find(|op| Some(op.name) == name).expect("kernels are named by their operation")
    }

    /// The text of its template.
    pub fn template(&self) -> &'static str {
        templates::text(self.template).expect("a template is a file")
    }

    /// Whether models in browsers have it. The head of the template of one that they do not have says `web no`, and the
    /// package for browsers is delivered without.
    pub fn on_web(&self) -> bool {
        !templates::is_off_web(self.template)
    }

    /// The feature set that has the operation for itself.
    pub fn set(&self) -> Option<FeatureSet> {
        let all = [(FeatureSet::Coop, "_coop"), (FeatureSet::Alone, "_alone")];
        all.into_iter().find(|(_, end)| self.name.ends_with(end)).map(|(set, _)| set)
    }

    /// Whether its cases are worth running in this feature set: some operations are for one alone, most others do not change
    /// with sets that have operations for themselves.
    pub fn is_for(&self, set: FeatureSet) -> bool {
        match set {
            FeatureSet::Alone => self.set() == Some(set) || NARROW.contains(&self.name),
            FeatureSet::Coop => self.set() == Some(set),
            FeatureSet::Sg | FeatureSet::Base => self.set().is_none(),
        }
    }

    /// The cases of an operation, if this build has them: who only runs models leaves them out, and with them much code.
    pub const fn cases(cases: fn() -> Vec<Case>) -> fn() -> Vec<Case> {
        if cfg!(feature = "cases") { cases } else { Vec::new }
    }
}

/// Operations that have fewer threads where these are alone ([`FeatureSet::Alone`]).
const NARROW: [&str; 3] = ["argmax", "rms_norm", "sample"];

/// All operations.
pub static OPS: &[Op] = &delivered([
    ops::acc::OP,
    ops::add_id::OP,
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
    ops::measure::STREAM,
    ops::measure::RATE,
    ops::measure::COOP,
    ops::moe_reduce::OP,
    ops::mul_mat::OP,
    ops::mul_mat::COOP,
    ops::mul_mat::Q8,
    ops::mul_mat::ID,
    ops::mul_mat::ND,
    ops::mul_mat_alone::OP,
    ops::mul_mat_join::OP,
    ops::mul_mat_vec::OP,
    ops::norm::OP,
    ops::pool::OP,
    ops::rms_norm::OP,
    ops::rope::OP,
    ops::rope_kv::OP,
    ops::rwkv_wkv6::OP,
    ops::rwkv_wkv7::OP,
    ops::sample::OP,
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
    ops::topk_moe::OP,
    ops::timestep_embedding::OP,
    ops::top_k::OP,
    ops::unary::OP,
    ops::upscale::OP,
]);

/// The rows as this build has them: in the package for browsers, those that no model there has are without variants.
const fn delivered<const N: usize>(mut ops: [Op; N]) -> [Op; N] {
    let mut i = 0;
    while cfg!(packed) && i < N {
        if templates::is_off_web(ops[i].template) {
            ops[i].variants = Vec::new;
            ops[i].grid = None;
        }
        i += 1;
    }
    ops
}

impl Op {
    /// Name of the kernel of a variant.
    pub fn kernel_name(&self, values: &[Value]) -> String {
        kernel_name(self.name, values)
    }
}

/// `op.value.value...`
pub(crate) fn kernel_name(op: &str, values: &[Value]) -> String {
    let mut name = op.to_owned();
    for v in values {
        name.push('.');
        name.push_str(&v.to_string());
    }
    name
}

/// The variable of element-wise kernels for y: four values at once if all sizes allow it, and f16 only then.
pub(crate) fn quads(op: &'static str, sizes: &[u32], y_f16: bool) -> Result<&'static str, DispatchError> {
    match (sizes.iter().find(|n| *n % 4 != 0), y_f16) {
        (None, false) => Ok("f32x4"),
        (None, true) => Ok("f16x4"),
        (Some(_), false) => Ok("f32"),
        (Some(n), true) => {
            let expected = "a multiple of 4 for f16".into();
            Err(DispatchError::Shape { op, what: "a size", expected, found: u64::from(*n) })
        }
    }
}

/// A dispatch of the kernel of these variables.
pub(crate) fn dispatch(
    op: &str,
    values: &[Value],
    constants: Vec<(&'static str, f64)>,
    grid: [u32; 3],
    why: String,
) -> Result<Dispatch, DispatchError> {
    let name = kernel_name(op, values);
    let kernel = Kernel::find(&name).ok_or(DispatchError::NoKernel { name })?;
    debug_assert!(
        constants.iter().all(|(c, _)| kernel.has_override(c)),
        "{}: a constant that the kernel lacks: {:?}",
        kernel.name,
        constants.iter().find(|(c, _)| !kernel.has_override(c)),
    );
    Ok(Dispatch { kernel, constants, grid, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_lack_the_operations_whose_heads_speak_of_the_web() {
        for op in OPS {
            let head = op.template().split("#}").next().unwrap_or_default();
            let speaks = head.lines().any(|l| l.trim_start().starts_with("web "));
            assert_eq!(speaks, !op.on_web(), "{}", op.name);
        }
        assert!(OPS.iter().any(Op::on_web) && !OPS.iter().all(Op::on_web));
    }
}
