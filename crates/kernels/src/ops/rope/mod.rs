//! `rope`: rotary position embedding of strided tensors, in all of ggml's modes.
//!
//! Models use `rope_kv`, which fuses RoPE with the write to the KV cache.

mod cases;
pub mod reference;

use ggml_format::GgmlType;

use crate::call::{A, Call, Names, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::rope::tables_of;
use crate::tensor::Tensor;
use chaski_graph::Rope;

/// The row of this operation.
pub const OP: Op = Op {
    name: "rope",
    template: template!("rope/rope.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for mode in Mode::ALL {
            for ty in ["f32", "f16"] {
                for place in ["new", "in"] {
                    out.push(vec![
                        ("mode", Value::Word(mode.word())),
                        ("ty", Value::Word(ty)),
                        ("place", Value::Word(place)),
                    ]);
                }
            }
        }
        out
    },
    cases: Op::cases(cases::cases),
    ggml: &["ROPE"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

const POS: Names = names!("pos");

/// Pairing of channels, and the position that each pair uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Adjacent channels.
    Normal,
    /// Halves.
    Neox,
    /// Halves, with a position per section of pairs.
    Mrope,
    /// Halves, with interleaved sections.
    Imrope,
    /// Halves of twice as many channels; frequencies restart in each section.
    Vision,
}

impl Mode {
    const ALL: [Mode; 5] = [Mode::Normal, Mode::Neox, Mode::Mrope, Mode::Imrope, Mode::Vision];

    const fn word(self) -> &'static str {
        match self {
            Mode::Normal => "normal",
            Mode::Neox => "neox",
            Mode::Mrope => "mrope",
            Mode::Imrope => "imrope",
            Mode::Vision => "vision",
        }
    }

    /// The mode of ggml's number.
    pub const fn from_ggml(n: u32) -> Option<Self> {
        match n {
            0 => Some(Mode::Normal),
            2 => Some(Mode::Neox),
            8 => Some(Mode::Mrope),
            24 => Some(Mode::Vision),
            40 => Some(Mode::Imrope),
            _ => None,
        }
    }

    /// True if a token has four positions.
    pub const fn has_sections(self) -> bool {
        matches!(self, Mode::Mrope | Mode::Imrope | Mode::Vision)
    }

    /// Index of the position (of four) that pair `i` uses, and the power of its frequency.
    fn stream(self, sections: [u32; 4], i: u32) -> (usize, u32) {
        if !self.has_sections() {
            return (0, i);
        }
        let sector = i % sections.iter().sum::<u32>();
        if self == Mode::Imrope {
            let k = (sector % 3) as usize;
            return (if sector < 3 * sections[k] { k } else { 3 }, i);
        }
        let starts: [u32; 4] = std::array::from_fn(|k| sections[..k].iter().sum());
        let k = (1..4).rev().find(|k| sector >= starts[*k]).unwrap_or(0);
        (k, if self == Mode::Vision { sector - starts[k] } else { i })
    }

    /// Pairs per head for `n_dims` dimensions.
    pub const fn n_pair(self, n_dims: u32) -> u32 {
        match self {
            Mode::Vision => n_dims,
            _ => n_dims / 2,
        }
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct RopeNd {
    /// Pairing and positions.
    pub mode: Mode,
    /// Dimensions as ggml counts them: twice the number of pairs; for [`Mode::Vision`] the number of pairs.
    pub n_dims: u32,
    /// Channel of the first pair.
    pub first: u32,
    /// Pairs per section; ignored in modes without sections.
    pub sections: [u32; 4],
    /// Input, f32 or f16: channels, heads, tokens, sequences; `None` to work on y in place.
    pub a: Option<Tensor>,
    /// Positions, i32, below `n_pos`: one per token; with sections four per token, section by section, or one per token
    /// if there are shifts.
    pub pos: Tensor,
    /// [`Mode::Mrope`] and [`Mode::Imrope`]: word of the buffer `pos` where the shifts begin, three per token, added to
    /// its position; the fourth section uses the first component.
    pub shifts: Option<u32>,
    /// Number of positions in the buffer `rope`.
    pub n_pos: u32,
    /// Output, of the type of a.
    pub y: Tensor,
}

impl RopeNd {
    /// Contents of the buffer `rope`: angles by pair, for these parameters, whose `n_rot` is `n_dims`.
    pub fn tables(&self, params: &Rope) -> Vec<f32> {
        let freq: Vec<f64> = (0..self.mode.n_pair(self.n_dims))
            .map(|i| params.frequency(i, self.mode.stream(self.sections, i).1))
            .collect();
        tables_of(&freq, params.magnitude, self.n_pos)
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, values overlap, or heads of f16 do not begin with a word;
    /// [`DispatchError::Type`] if types differ; [`DispatchError::NoKernel`] for other types.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let (op, [ne0, ne1, ne2, ne3]) = (OP.name, self.y.ne);
        let shape = |what, expected: String, found: u32| {
            Err(DispatchError::Shape { op, what, expected, found: found.into() })
        };
        let mut sources = vec![(POS, &self.pos)];
        if let Some(a) = &self.a {
            a.check_ne(op, "a", self.y.ne)?;
            a.check_type(op, "a", self.y.ty)?;
            sources.push((A, a));
        }
        let shifts = self.shifts.filter(|_| matches!(self.mode, Mode::Mrope | Mode::Imrope));
        let streams = if self.mode.has_sections() && shifts.is_none() { 4 } else { 1 };
        self.pos.check_type(op, "pos", GgmlType::I32)?;
        self.pos.check_ne(op, "pos", [ne2.saturating_mul(streams), 1, 1, 1])?;
        let pairs = self.mode.n_pair(self.n_dims);
        if self.n_dims % 2 != 0 || self.first.saturating_add(pairs.saturating_mul(2)) > ne0 {
            return shape("n_dims", format!("even, and within {ne0} channels"), self.n_dims);
        }
        if self.mode.has_sections() && self.sections == [0; 4] {
            return shape("sections", "at least one pair".into(), 0);
        }
        if self.y.ty == GgmlType::F16 {
            let y = &self.y;
            let steps = [(1, ne0), (y.stride[1], ne1), (y.stride[2], ne2), (y.stride[3], ne3)];
            let odd = steps.iter().find(|(s, n)| *n > 1 && s % 2 != 0 && *s != 1);
            if y.stride[0] != 1 || y.offset % 2 != 0 || ne0 % 2 != 0 || odd.is_some() {
                return shape("y", "heads of f16 that are whole words".into(), ne0);
            }
        }
        // Threads per head: at most half its channels, and as many heads as a workgroup can hold.
        let mut team = (ne0 / 2).clamp(1, 64).next_power_of_two().min(64);
        while team < 64 && ne0 * (64 / team) * 4 > caps.max_workgroup_bytes {
            team *= 2;
        }
        let held = ne0.max(1) * (64 / team);
        if held > caps.max_workgroup_bytes / 4 {
            return shape("channels", format!("at most {}", caps.max_workgroup_bytes / 4), ne0);
        }
        let rows = if ne0 == 0 { 0 } else { self.y.n_row() };
        let sections = ["SECT0", "SECT1", "SECT2", "SECT3"].into_iter().zip(self.sections);
        let mut constants = vec![
            ("T", team.into()),
            ("ROWS", rows.into()),
            ("HELD", held.into()),
            ("PAIRS", pairs.into()),
            ("FIRST", self.first.into()),
            ("N_COARSE", (self.n_pos / 256 + 1).into()),
        ];
        constants.extend(sections.map(|(name, n)| (name, f64::from(n))));
        constants.extend(shifts.map(|at| ("SHIFTS", at.into())));
        Call {
            op: &OP,
            variant: &[
                Value::Word(self.mode.word()),
                Value::Word(self.y.ty.name()),
                Value::Word(if self.a.is_some() { "new" } else { "in" }),
            ],
            sources: &sources,
            y: &self.y,
            constants,
        }
        .groups(rows.div_ceil(64 / team), format!("{team} threads per head"), caps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chaski_graph::{RopePairing, Sections};

    #[test]
    fn sections_of_models_are_those_of_ggml_and_the_fourth_follows_the_first() {
        for (mode, take_turns) in [(Mode::Mrope, false), (Mode::Imrope, true)] {
            for pairs in [[16, 24, 24, 0], [24, 20, 20, 0], [8, 12, 12, 4], [1, 2, 0, 0], [11, 11, 10, 3]] {
                let sections = Sections { pairs, take_turns };
                for pair in 0..80 {
                    let (ggml, _) = mode.stream(pairs, pair);
                    assert_eq!(sections.component(pair), ggml % 3, "{mode:?} {pairs:?} pair {pair}");
                }
            }
        }
    }

    /// The position that each of eight pairs uses, and its frequency as a power of 1/2.
    #[test]
    fn positions_and_frequencies_by_hand() {
        let y = Tensor::new(GgmlType::F32, [16, 1, 1, 1]);
        for (mode, sections, positions, powers) in [
            (Mode::Normal, [0; 4], [0; 8], [0, 1, 2, 3, 4, 5, 6, 7]),
            (Mode::Neox, [0; 4], [0; 8], [0, 1, 2, 3, 4, 5, 6, 7]),
            (Mode::Mrope, [2, 3, 1, 2], [0, 0, 1, 1, 1, 2, 3, 3], [0, 1, 2, 3, 4, 5, 6, 7]),
            // Sections repeat.
            (Mode::Mrope, [1, 2, 0, 0], [0, 1, 1, 0, 1, 1, 0, 1], [0, 1, 2, 3, 4, 5, 6, 7]),
            (Mode::Imrope, [2, 1, 1, 4], [0, 1, 2, 0, 3, 3, 3, 3], [0, 1, 2, 3, 4, 5, 6, 7]),
            // Each section begins with frequency 1.
            (Mode::Vision, [4, 4, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3]),
            (Mode::Vision, [3, 2, 2, 1], [0, 0, 0, 1, 1, 2, 2, 3], [0, 1, 2, 0, 1, 0, 1, 0]),
        ] {
            let (n_dims, base) = if mode == Mode::Vision { (8, 16.0) } else { (16, 256.0) };
            let pos = Tensor::new(GgmlType::I32, [4, 1, 1, 1]);
            let call = RopeNd { mode, n_dims, first: 0, sections, a: None, pos, shifts: None, n_pos: 300, y };
            let tables = call.tables(&Rope::plain(n_dims, RopePairing::Norm, base));
            for i in 0..8 {
                assert_eq!(mode.stream(sections, i as u32).0, positions[i], "{mode:?} {sections:?} pair {i}");
                // Position 1: the second row of eight pairs of cosine and sine.
                let [c, s] = [0, 1].map(|k| f64::from(tables[16 + 2 * i + k]));
                // base^(-2 power / n_dims), which is 256^(-power / 8), or for images 16^(-power / 4).
                let angle = 0.5f64.powi(powers[i]);
                assert!(
                    (c - angle.cos()).abs() < 1e-7 && (s - angle.sin()).abs() < 1e-7,
                    "{mode:?} pair {i}"
                );
            }
        }
    }
}
