//! `rope_kv`: applies RoPE to q and k of many columns and writes k and v to the KV cache.

pub(crate) mod cases;

use ggml_format::GgmlType;

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::kv::{KV_TYPES, RopeKv, is_plain};
use crate::op::{Op, Value};

/// The row of this operation. Its reference is [`chaski_graph::Rope::rotate`].
pub const OP: Op = Op {
    name: "rope_kv",
    template: template!("rope_kv/rope_kv.wgsl.jinja"),
    variants: || {
        let words =
            || ["plain"].into_iter().chain(KV_TYPES.iter().filter(|t| !is_plain(**t)).map(|t| t.name()));
        let pairs = words().flat_map(|k| words().map(move |v| (k, v)));
        let all = pairs.flat_map(|(k, v)| ["none", "some"].map(|norm| [("k", k), ("v", v), ("norm", norm)]));
        all.map(|v| v.map(|(name, word)| (name, Value::Word(word))).to_vec()).collect()
    },
    cases: Op::cases(cases::cases),
    ggml: &["ROPE", "SET_ROWS"],
    grid: None,
};

/// Extent and position of the norm of q and k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Each head, before RoPE.
    Heads,
    /// Each head, after RoPE.
    Rotated,
    /// All heads of q as one row, and those of k, before RoPE.
    Rows,
}

/// A norm of q and k, and optionally of v.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellNorm {
    /// Added to the mean square.
    pub eps: f32,
    /// Extent and position.
    pub over: Over,
    /// Subtract the mean: layer norm; otherwise RMS norm.
    pub mean: bool,
    /// One weight per row; otherwise one per channel of a head.
    pub own: bool,
    /// RMS norm of the heads of v, without weights.
    pub values: bool,
}

impl CellNorm {
    /// RMS norms of heads before RoPE.
    pub const fn heads(eps: f32) -> Self {
        CellNorm { eps, over: Over::Heads, mean: false, own: false, values: false }
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct RopeKvCols {
    /// Rows and cache.
    pub rows: RopeKv,
    /// Rows of v.
    pub m_v: u32,
    /// Row of x at which the values begin: after q and k, or the same as the keys.
    pub v_at: u32,
    /// A norm, with weights bound as `aux`: those of q, then those of k.
    pub norm: Option<CellNorm>,
    /// Column stride of x: q, k, v, in values.
    pub ldx: u32,
    /// Column stride of y: q, in values.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
}

impl RopeKvCols {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if channels are no multiple of 8, or 32 in block formats, or if the RoPE channels are
    /// no multiple of 4 (NeoX pairing) or 2.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let r = &self.rows;
        r.kv.check(OP.name)?;
        r.check(OP.name)?;
        if self.v_at > r.m_q + r.m_k {
            let expected = format!("at most {}", r.m_q + r.m_k);
            let (what, found) = ("the row at which values begin", self.v_at.into());
            return Err(DispatchError::Shape { op: OP.name, what, expected, found });
        }
        let mut constants = r.constants();
        constants.extend([
            ("M_V", self.m_v.into()),
            ("V_AT", self.v_at.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
        ]);
        let word = |ty: GgmlType| Value::Word(if is_plain(ty) { "plain" } else { ty.name() });
        let norm = if self.norm.is_some() { "some" } else { "none" };
        let values = [word(r.kv.k), word(r.kv.v), Value::Word(norm)];
        if let Some(n) = self.norm {
            let flag = |b: bool| f64::from(u8::from(b));
            constants.extend([
                ("EPS", n.eps.into()),
                ("NORM_LAST", flag(n.over == Over::Rotated)),
                ("NORM_MEAN", flag(n.mean)),
                ("NORM_ROWS", flag(n.over == Over::Rows)),
                ("NORM_OWN", flag(n.own)),
                ("NORM_V", flag(n.values)),
            ]);
        }
        if r.plain() && self.norm.is_none() {
            let grid = [(r.m_q + r.m_k + self.m_v).div_ceil(256), self.n_col, 1];
            return dispatch(&OP, &values, constants, grid, "four channels a thread".into());
        }
        let wide = r.kv.d.max(r.kv.d_v);
        if wide > 4 * caps.max_threads {
            let (what, expected) = ("channels per head", format!("at most {}", 4 * caps.max_threads));
            return Err(DispatchError::Shape { op: OP.name, what, expected, found: wide.into() });
        }
        constants.push(("WG", (wide / 4).next_multiple_of(32).into()));
        for (values, names) in [(false, ["K_P0", "K_P1", "K_P2"]), (true, ["V_P0", "V_P1", "V_P2"])] {
            if !is_plain(if values { r.kv.v } else { r.kv.k }) {
                let planes = r.kv.plane_words(values);
                constants.extend(names.into_iter().zip(planes).map(|(n, at)| (n, at as f64)));
            }
        }
        let grid = [(r.m_q + r.m_k) / r.kv.d + self.m_v / r.kv.d_v, self.n_col, 1];
        dispatch(&OP, &values, constants, grid, "a head a workgroup, a block a thread".into())
    }
}
