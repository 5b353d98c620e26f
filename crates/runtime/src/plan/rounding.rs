//! Values that products of one column round for the products that read them: each would otherwise do so for itself.
//!
//! A sum in place is followed by a norm and the products of its result, a gated value by one product. The workgroups
//! that make them have whole runs of 16 values at hand, which share a scale. The root mean square of a norm is a factor
//! of the whole column, and is applied to the products.

use chaski_kernels::ops::mul_mat_vec::{ActivationPrecision, Epilogue, MulMatVec};
use chaski_kernels::{Format, MatVecTune, Matrix};

use super::expand::{Expander, Rounding};
use super::steps::{Form, Fused, Norm, Part, Step};
use crate::graph::{ValueId, WeightId};

impl Expander<'_> {
    /// The precision to which activations are rounded; `None` if they are not.
    pub(super) fn precision(&self) -> Option<ActivationPrecision> {
        let act = self.config.inputs.unwrap_or(MatVecTune::shipped(self.caps).0.act);
        let is_plain = |act| act == ActivationPrecision::F32;
        // Where a product was measured to be faster with f32, it is not forced to read another form.
        let any = self.config.tuning.products.iter().any(|p| is_plain(p.tune.act));
        (!is_plain(act) && !any).then_some(act)
    }

    /// The values that steps in order can round; the first `n_body` of them may be cut into parts.
    pub(super) fn rounding_of(&self, steps: &[&Step], n_body: usize) -> Rounding {
        let mut all =
            Rounding { after: vec![None; steps.len()], values: vec![false; self.graph.widths.len()] };
        if self.n_col > 1 || self.precision().is_none() {
            return all;
        }
        for (i, s) in steps.iter().enumerate().take(n_body) {
            match s {
                Step::Fused(Fused { form: Form::Project { norm: None, part, add: true }, .. }) => {
                    all.after[i] = self.next_norm(steps, i).filter(|_| self.emits(&[*part], Epilogue::Add));
                }
                Step::Fused(Fused { form: Form::Gated { gate, up, act, .. }, .. }) => {
                    let made = self.emits(&[*gate, *up], Epilogue::Glu(*act));
                    let v = self.steps.output(self.graph, s);
                    all.values[v.0] = made && self.only_multiplied(steps, i, v);
                }
                _ => {}
            }
        }
        all
    }

    /// True if all that is done with the result of step `i` are products that read it rounded, on the same device.
    fn only_multiplied(&self, steps: &[&Step], i: usize, v: ValueId) -> bool {
        let later = || steps.iter().enumerate().skip(i + 1);
        let mut reads = later().filter(|(_, s)| self.steps.inputs(self.graph, s).contains(&v)).peekable();
        let rounds = |(k, s): (usize, &&Step)| {
            let is_here = !(i + 1..=k).any(|k| self.cuts.contains(&k));
            is_here && self.steps.multiplies(self.graph, s, v) && self.takes(s)
        };
        reads.peek().is_some() && reads.all(rounds)
    }

    /// The norm that reads the sum of step `i` next, if its products take what the step rounds.
    fn next_norm(&self, steps: &[&Step], i: usize) -> Option<Norm> {
        let y = self.steps.output(self.graph, steps[i]);
        for (k, s) in steps.iter().enumerate().skip(i + 1) {
            // Another device gets the sum alone.
            if self.cuts.contains(&k) {
                return None;
            }
            let reads = self.steps.inputs(self.graph, s).first() == Some(&y);
            if let Some(norm) = s.norm().filter(|_| reads) {
                return self.takes(s).then_some(norm);
            }
            if self.steps.output(self.graph, s) == y {
                return None;
            }
        }
        None
    }

    /// True if the products of a step read rounded values: all its formats have scales, and none is of experts.
    fn takes(&self, step: &Step) -> bool {
        let (matrices, route) = self.steps.matrices(self.graph, step);
        let reads = |f: &Format| self.devices.iter().all(|caps| MulMatVec::can_read_rounded(f, caps));
        let scaled = |w: &WeightId| Format::of(self.graph.weights[w.0].ty).is_some_and(reads);
        route.is_none() && !matrices.is_empty() && matrices.iter().all(scaled)
    }

    /// True if the product of these parts rounds its result, and gains by it.
    fn emits(&self, parts: &[Part], epilogue: Epilogue) -> bool {
        self.together(parts).is_some_and(|group| {
            let g = &self.groups.groups[group];
            let w: Matrix = g.matrix(&g.shards[0]);
            self.devices.iter().all(|caps| MulMatVec::new(w, epilogue).should_emit(caps))
        })
    }

    /// Word at which the rounded form of the norm of a sum begins, behind the sum.
    pub(super) fn rounded_at(&self, v: ValueId) -> u32 {
        self.words(self.graph.width(v)) as u32
    }
}
