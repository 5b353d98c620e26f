//! `soft_max`: softmax of rows of any length, with a mask, ALiBi slopes and sinks.

mod cases;
pub mod reference;

use ggml_format::GgmlType;

use crate::call::{A, Call, Names, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, Step};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::reduce::Teams;
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "soft_max",
    template: template!("soft_max/soft_max.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for set in ["base", "sg"] {
            for mask in ["none", "f32", "f16"] {
                // Variables of the second step: sinks and output.
                out.push(variant(set, "stats", mask, "none", "new"));
                for sinks in ["none", "f32"] {
                    for place in ["new", "in"] {
                        out.push(variant(set, "whole", mask, sinks, place));
                        out.push(variant(set, "apply", mask, sinks, place));
                    }
                }
            }
        }
        out
    },
    cases: Op::cases(cases::cases),
    ggml: &["SOFT_MAX"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

type Word = &'static str;

fn variant(set: Word, part: Word, mask: Word, sinks: Word, place: Word) -> crate::op::Variant {
    [("set", set), ("part", part), ("mask", mask), ("sinks", sinks), ("place", place)]
        .map(|(name, v)| (name, Value::Word(v)))
        .to_vec()
}

const MASK: Names = names!("mask");
const SINKS: Names = names!("sinks");

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct SoftMax {
    /// Input, f32; `None` to work on y in place.
    pub a: Option<Tensor>,
    /// Added to the scaled values, f32 or f16: rows like those of y, at least as long and as many; axes 2 and 3
    /// broadcast.
    pub mask: Option<Tensor>,
    /// One value per head (axis 2 of y), f32, that contributes to the denominator.
    pub sinks: Option<Tensor>,
    /// Multiplies a first.
    pub scale: f32,
    /// ALiBi: the mask of each head is multiplied by a slope derived from this; 0: none.
    pub max_bias: f32,
    /// Output, f32.
    pub y: Tensor,
}

/// Longer rows are split into chunks.
const LONG: u32 = 32768;
/// Values per chunk.
const CHUNK: u32 = 8192;

impl SoftMax {
    fn n_chunk(&self) -> u32 {
        if self.y.ne[0] > LONG { self.y.ne[0].div_ceil(CHUNK) } else { 1 }
    }

    fn rows(&self) -> u32 {
        // Rows without values count as none.
        if self.y.ne[0] == 0 { 0 } else { self.y.n_row() }
    }

    /// Bytes of the buffer `parts`; 0 if it needs none.
    pub fn scratch_bytes(&self) -> u64 {
        match self.n_chunk() {
            1 => 0,
            n => u64::from(n) * u64::from(self.rows()) * 8,
        }
    }

    /// Chooses the kernels, in order.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match or values overlap; [`DispatchError::Type`] if a, y or sinks are
    /// not f32; [`DispatchError::NoKernel`] for other types of the mask.
    pub fn dispatch(&self, caps: &Caps) -> Result<Vec<Step>, DispatchError> {
        let [ne0, ne1, ne2, ne3] = self.y.ne;
        self.y.check_type(OP.name, "y", GgmlType::F32)?;
        if let Some(a) = &self.a {
            a.check_type(OP.name, "a", GgmlType::F32)?;
            a.check_ne(OP.name, "a", self.y.ne)?;
        }
        if let Some(m) = &self.mask {
            let rows = m.ne[0] >= ne0 && m.ne[1] >= ne1;
            if !rows || m.ne[2] == 0 || m.ne[3] == 0 || ne2 % m.ne[2] != 0 || ne3 % m.ne[3] != 0 {
                let expected = format!("a mask for {:?}", self.y.ne);
                let found = u64::from(m.n_elem());
                return Err(DispatchError::Shape { op: OP.name, what: "mask", expected, found });
            }
        }
        if let Some(s) = &self.sinks {
            s.check_type(OP.name, "sinks", GgmlType::F32)?;
            s.check_ne(OP.name, "sinks", [ne2, 1, 1, 1])?;
        }
        let n = self.n_chunk();
        if n == 1 {
            return Ok(self.part("whole", caps)?.into());
        }
        let stats = self.part("stats", caps)?;
        let from: &[_] = if self.a.is_some() { &[] } else { &[("a", "y")] };
        Ok(vec![Step::renamed(stats, from), self.part("apply", caps)?.into()])
    }

    fn part(&self, part: Word, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let n_chunk = self.n_chunk();
        let rows = self.rows().saturating_mul(n_chunk);
        let teams = Teams::new(caps, (self.y.ne[0] / 4).clamp(1, 256), 256);
        let n_log2 = self.y.ne[2].checked_ilog2().map_or(1, |n| 1u32 << n);
        let mut constants = teams.rows(caps, rows);
        constants.extend([
            ("SCALE", self.scale.into()),
            ("MAX_BIAS", self.max_bias.into()),
            ("N_LOG2", n_log2.into()),
            ("CHUNK", CHUNK.into()),
            ("N_CHUNK", n_chunk.into()),
        ]);
        let stats = part == "stats";
        let mut sources = Vec::new();
        if stats || self.a.is_some() {
            sources.push((A, self.a.as_ref().unwrap_or(&self.y)));
        }
        sources.extend(self.mask.as_ref().map(|m| (MASK, m)));
        sources.extend(self.sinks.as_ref().map(|s| (SINKS, s)));
        Call {
            op: &OP,
            variant: &[
                caps.set().word(),
                part,
                self.mask.map_or("none", |m| m.ty.name()),
                if stats || self.sinks.is_none() { "none" } else { "f32" },
                if stats || self.a.is_some() { "new" } else { "in" },
            ]
            .map(Value::Word),
            sources: &sources,
            y: &self.y,
            constants,
        }
        .groups(teams.groups(rows), format!("{} threads per row or chunk", teams.team), caps)
    }
}
