//! `latent_kv`: queries and keys of latent attention (MLA): RoPE of both, and the key's write to the cache.
//!
//! All heads share one key: a latent, which is also their value, and a few channels with RoPE. Heads of q get the same
//! width by multiplying their leading channels with a per-head matrix (`mul_mat_vec` and `mul_mat`, by slot).

mod cases;

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::kv::{KV_TYPES, KvLayout, is_plain, section_constants};
use crate::op::{Op, Value};
use chaski_graph::{RopePairing, Sections};

/// The row of this operation. Its references are [`chaski_graph::Rope::rotate`] and that of `rms_norm`.
pub const OP: Op = Op {
    name: "latent_kv",
    template: template!("latent_kv/latent_kv.wgsl.jinja"),
    variants: || {
        let blocks = KV_TYPES.iter().filter(|t| !is_plain(**t)).map(|t| t.name());
        ["plain"].into_iter().chain(blocks).map(|k| vec![("k", Value::Word(k))]).collect()
    },
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct LatentKv {
    /// The cache: one head, values in the keys. Channels of a key beyond those of the value have RoPE.
    pub kv: KvLayout,
    /// Query heads.
    pub n_head: u32,
    /// Channels per head of q; RoPE applies to the last ones.
    pub d_q: u32,
    /// Pairing of channels in RoPE.
    pub pairing: RopePairing,
    /// Sections of pairs, and the word of the step at which the shifts of columns begin; `None`: all pairs follow the
    /// position.
    pub sections: Option<(Sections, u32)>,
    /// Added to the mean square of the latent.
    pub eps: f32,
    /// Column stride of q, in values.
    pub ldq: u32,
    /// Column stride of x: latent, end of the key, in values.
    pub ldx: u32,
    /// Column stride of y, in values: heads as wide as keys, of which the ends are written.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
}

impl LatentKv {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] for more than one KV head, a number of RoPE channels that is no multiple of 4, or
    /// channels that are no multiple of 8 (32 in block formats).
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let shape = |what, expected: String, found: u32| {
            Err(DispatchError::Shape { op: OP.name, what, expected, found: found.into() })
        };
        let kv = &self.kv;
        kv.check(OP.name)?;
        if kv.n_kv != 1 || !kv.in_keys {
            return shape("KV heads", "1, with values in the keys".into(), kv.n_kv);
        }
        let n_rot = kv.d - kv.d_v;
        if n_rot == 0 || n_rot > self.d_q {
            return shape("RoPE channels", format!("1 to {}", self.d_q), n_rot);
        }
        if kv.d > 4 * caps.max_threads {
            return shape("channels of a key", format!("at most {}", 4 * caps.max_threads), kv.d);
        }
        let wg = (kv.d / 4).next_multiple_of(32);
        let mut constants = kv.writer_constants();
        constants.extend([
            ("WG", wg.into()),
            ("N_HEAD", self.n_head.into()),
            ("D_Q", self.d_q.into()),
            ("N_ROT", n_rot.into()),
            ("ROPE_NEOX", f64::from(u8::from(self.pairing == RopePairing::Neox))),
            ("LDQ", self.ldq.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("EPS", self.eps.into()),
        ]);
        constants.extend(section_constants(self.sections));
        let plain = is_plain(kv.k);
        if !plain {
            let planes = kv.plane_words(false);
            constants.extend(["K_P0", "K_P1", "K_P2"].into_iter().zip(planes).map(|(n, at)| (n, at as f64)));
        }
        let word = Value::Word(if plain { "plain" } else { kv.k.name() });
        let grid = [1 + (self.n_head * (n_rot / 4)).div_ceil(wg), self.n_col, 1];
        dispatch(&OP, &[word], constants, grid, "four channels a thread".into())
    }
}
