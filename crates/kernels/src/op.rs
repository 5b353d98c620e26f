//! An operation: a row of the table.

use crate::caps::{CoopShape, FeatureSet, Features};
use crate::case::Case;
use crate::dispatch::DispatchError;
use crate::grid::Grid;
use crate::templates;

/// The value of one template variable.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A word.
    Word(&'static str),
    /// A number.
    Int(u32),
    /// A word that maps to a piece of WGSL: `x` is the word in the template, `x_text` the piece.
    Text(&'static str, &'static str),
    /// A word that adds these features to the kernel.
    With(&'static str, Features),
}

/// Variables of kernels with cooperative matrices; the first shape is the default in the templates.
pub(crate) fn shape_values(shape: CoopShape) -> impl Iterator<Item = (&'static str, Value)> {
    let all = [("side", Value::Int(shape.side)), ("lanes", Value::Int(shape.lanes))];
    all.into_iter().filter(move |_| shape != CoopShape::WARP)
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Word(w) | Value::Text(w, _) | Value::With(w, _) => f.write_str(w),
            Value::Int(n) => write!(f, "{n}"),
        }
    }
}

/// Values of all template variables of an operation, in the order of kernel names.
pub type Variant = Vec<(&'static str, Value)>;

/// An operation: a folder under `ops/` and a row of [`OPS`](crate::OPS).
pub struct Op {
    /// Name of the folder, the template, the kernels and the benchmarks.
    pub name: &'static str,
    /// The WGSL template: its file under `ops/`.
    pub template: &'static str,
    /// Every variant that is rendered.
    pub variants: fn() -> Vec<Variant>,
    /// Shapes and tolerances worth testing; none without the cargo feature `cases`.
    pub cases: fn() -> Vec<Case>,
    /// ggml operations that it implements, wholly or in part, by their names in ggml's test program.
    pub ggml: &'static [&'static str],
    /// More cases, in the syntax of ggml's test program; an empty grid without the feature.
    pub grid: Option<Grid>,
}

impl Op {
    /// The text of its template.
    pub fn template(&self) -> &'static str {
        templates::text(self.template).expect("a template is a file")
    }

    /// True if models in browsers use it. Otherwise the header of its template says `web no` or `web instead`, and
    /// the package for browsers omits it.
    pub fn on_web(&self) -> bool {
        !templates::is_off_web(self.template)
    }

    /// True if models use it, but in browsers another operation in its place (`web instead`).
    pub fn is_replaced_on_web(&self) -> bool {
        templates::is_replaced_on_web(self.template)
    }

    /// The only feature set that has the operation, if it is limited to one.
    pub fn set(&self) -> Option<FeatureSet> {
        let all = [(FeatureSet::Coop, "_coop"), (FeatureSet::Alone, "_alone")];
        all.into_iter().find(|(_, end)| self.name.ends_with(end)).map(|(set, _)| set)
    }

    /// The feature set of a variant: the operation's, or the value of the variable `set`.
    pub(crate) fn set_of(&self, variant: &Variant) -> FeatureSet {
        let named = || {
            let word = variant.iter().find(|(name, _)| *name == "set")?.1.to_string();
            FeatureSet::ALL.into_iter().find(|set| set.word() == word)
        };
        self.set().or_else(named).unwrap_or(FeatureSet::Base)
    }

    /// The features that a variant declares: those of its feature set and of its variables.
    pub(crate) fn features(&self, variant: &Variant) -> Features {
        variant.iter().fold(self.set_of(variant).features(), |all, (_, value)| match value {
            Value::With(_, features) => all.and(*features),
            _ => all,
        })
    }

    /// True if its cases are worth running in this feature set: some operations exist in one set only, and most others
    /// do not change in sets with operations of their own.
    pub fn is_for(&self, set: FeatureSet) -> bool {
        match set {
            FeatureSet::Alone => self.set() == Some(set) || NARROW.contains(&self.name),
            FeatureSet::Coop => self.set() == Some(set),
            FeatureSet::Sg | FeatureSet::Base => self.set().is_none(),
        }
    }

    /// The cases of an operation if this build has them; builds that only run models omit them and much code with them.
    pub const fn cases(cases: fn() -> Vec<Case>) -> fn() -> Vec<Case> {
        if cfg!(feature = "cases") { cases } else { Vec::new }
    }
}

/// Operations with fewer threads in [`FeatureSet::Alone`].
const NARROW: [&str; 4] = ["argmax", "rms_norm", "sample", "sample_wide"];

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

/// The `y` variable of element-wise kernels: four values at once if all sizes allow it, f16 only then.
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
