//! `mul_mat_vec`: a matrix times one column, with what stands before and after it in a layer fused.

mod cases;
pub mod reference;

use crate::caps::{Caps, FeatureSet};
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::format::{FORMATS, Matrix};
use crate::kv::RopeKv;
use crate::op::{Op, Value, dispatch};
use crate::reduce::Teams;
use crate::rope::RopePairing;

/// The row of this operation.
pub const OP: Op = Op {
    name: "mul_mat_vec",
    template: include_str!("mul_mat_vec.wgsl.jinja"),
    variants,
    cases: cases::cases,
};

/// Formats of (q and k, v) that differ in llama.cpp's mixes, or where a row is too short for a block of 256.
pub static QKV_PAIRS: &[(&str, &str)] =
    &[("q4_K", "q6_K"), ("q4_K", "q8_0"), ("q4_0", "q6_K"), ("f16", "f32")];

fn variants() -> Vec<Variant> {
    let mut out = Vec::new();
    for set in [FeatureSet::Base, FeatureSet::Sg] {
        for f in FORMATS {
            for (epi, rows) in [("store", 2), ("store", 4), ("add", 2), ("glu", 4), ("rope_kv", 4)] {
                out.push(variant(f.name, "none", epi, rows, set));
            }
        }
        for (a, b) in QKV_PAIRS {
            out.push(variant(a, b, "rope_kv", 4, set));
        }
    }
    out
}

use crate::op::Variant;

fn variant(a: &'static str, b: &'static str, epi: &'static str, rows: u32, set: FeatureSet) -> Variant {
    vec![
        ("a", Value::Word(a)),
        ("b", Value::Word(b)),
        ("epi", Value::Word(epi)),
        ("set", Value::Word(set.word())),
        ("rows", Value::Int(rows)),
    ]
}

/// Rows from which on a team takes four at once, to load x less often; below, more teams are worth more.
const TALL: u32 = 16384;

/// What happens to the products.
#[derive(Clone, Copy, Debug)]
pub enum Epilogue {
    /// y[y0 + row] = r
    Store,
    /// y[y0 + row] += r
    Add,
    /// Rows are gate, then up: `y[i] = silu(gate_i) * up_i`.
    Swiglu,
    /// Rows are q, k, v: q is rotated to y, k rotated and v written to the KV cache.
    RopeKv(RopeKv),
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct MulMatVec {
    /// The matrix; with [`Epilogue::Swiglu`] its rows are gate and up.
    pub w: Matrix,
    /// More rows in another format (v under q and k).
    pub w2: Option<Matrix>,
    /// Normalise x with `aux[0..K]` and this epsilon first.
    pub norm: Option<f32>,
    /// Word of `aux` where a (scale, bias) for each row begins.
    pub affine: Option<u32>,
    /// What happens to the products.
    pub epilogue: Epilogue,
    /// Index of row 0 in y.
    pub y0: u32,
    /// Rows that a team takes at once with [`Epilogue::Store`], 2 or 4; `None` chooses by the shape.
    pub rows: Option<u32>,
}

impl MulMatVec {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the formats have no kernel, [`DispatchError::Shape`] if heads do not divide by 4.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let layout = self.w.layout();
        let (epi, rows) = match self.epilogue {
            Epilogue::Store => ("store", self.rows.unwrap_or(if self.w.n_row >= TALL { 4 } else { 2 })),
            Epilogue::Add => ("add", 2),
            Epilogue::Swiglu => ("glu", 4),
            Epilogue::RopeKv(_) => ("rope_kv", 4),
        };
        let n_row = self.w.n_row + self.w2.map_or(0, |w| w.n_row);
        // Rows of y, and how many of them a team makes.
        let (m, per_team) = match self.epilogue {
            Epilogue::Swiglu => (n_row / 2, 2),
            _ => (n_row, rows),
        };
        // Units a thread, measured on an H200: few where a matrix has few rows, more where it has many.
        let per_thread = match self.epilogue {
            Epilogue::RopeKv(_) => 1,
            Epilogue::Store | Epilogue::Add => 2,
            Epilogue::Swiglu => 4,
        };
        let want = (layout.units_per_row / per_thread).max(8);
        let teams = Teams::new(caps, want, 128);
        let mut constants = teams.constants(caps);
        constants.extend(layout.plane_constants(["w_p1", "w_p2", "w_p3"]));
        constants.extend([
            ("K", self.w.n_col.into()),
            ("M", m.into()),
            ("Y0", self.y0.into()),
            ("w_units", layout.units_per_row.into()),
            ("RAGGED", f64::from(u8::from(self.w.n_col % 4 != 0))),
        ]);
        if let Some(eps) = self.norm {
            constants.extend([("NORM", 1.0), ("EPS", eps.into())]);
        }
        if let Some(at) = self.affine {
            constants.extend([("AFFINE", 1.0), ("AFF", at.into())]);
        }
        if let Epilogue::RopeKv(r) = &self.epilogue {
            for (what, n) in [("channels a head", r.kv.d), ("rotated channels", r.n_rot)] {
                let whole = if r.pairing == RopePairing::Neox || what == "channels a head" { 4 } else { 2 };
                if n % whole != 0 {
                    let expected = format!("a multiple of {whole}");
                    return Err(DispatchError::Shape { op: OP.name, what, expected, found: n.into() });
                }
            }
            constants.extend(r.kv.constants());
            constants.extend([
                ("M_Q", r.m_q.into()),
                ("M_K", r.m_k.into()),
                ("N_ROT", r.n_rot.into()),
                ("ROPE_NEOX", f64::from(u8::from(r.pairing == RopePairing::Neox))),
            ]);
        }
        if let Some(w2) = &self.w2 {
            let layout = w2.layout();
            constants.extend(layout.plane_constants(["w2_p1", "w2_p2", "w2_p3"]));
            constants.extend([("M2", self.w.n_row.into()), ("w2_units", layout.units_per_row.into())]);
        }
        let n_team = m.div_ceil(per_team);
        let [x, y] = fold(n_team.div_ceil(teams.wg / teams.team), caps.max_groups);
        let why =
            format!("{} threads on {rows} rows at once, {} units a row", teams.team, layout.units_per_row);
        let b = self.w2.map_or("none", |w| w.format.name);
        let variant = variant(self.w.format.name, b, epi, rows, caps.set());
        let values: Vec<Value> = variant.iter().map(|(_, v)| *v).collect();
        dispatch(OP.name, &values, constants, [x, y, 1], why)
    }
}
