//! `attention_texts`: attention of encoders, which see the whole text.
//!
//! Keys and values are activations of the step, in f32: a text is in one step, so there is no cache. Workgroups take
//! tiles of rows (query heads of columns) and walk over the columns that these see, as `attention_tiles` does over a
//! cache.

mod cases;

use crate::call::dispatch;
use crate::caps::{Caps, Features};
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value};

/// The row of this operation. Its reference is that of `attention`.
pub const OP: Op = Op {
    name: "attention_texts",
    template: template!("attention_texts/attention_texts.wgsl.jinja"),
    variants: || {
        let tiles = [Value::Word("f32"), Value::With("f16", Features::F16)];
        let all = tiles.into_iter().flat_map(|tile| RUNS.map(|runs| (tile, runs)));
        all.map(|(tile, runs)| vec![("tile", tile), ("runs", Value::Int(runs))]).collect()
    },
    cases: Op::cases(cases::cases),
    ggml: &["FLASH_ATTN_EXT"],
    grid: None,
};

/// Runs of 64 channels of a value per workgroup; wider values take more workgroups.
const RUNS: [u32; 3] = [1, 2, 4];
/// Rows (query heads of a column) of a tile.
const ROWS: u32 = 32;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct AttentionTexts {
    /// Query heads.
    pub n_head: u32,
    /// KV heads.
    pub n_kv: u32,
    /// Channels of a key and of a value.
    pub d: [u32; 2],
    /// Multiplies the product of a query and a key.
    pub scale: f32,
    /// ALiBi: the largest exponent of a head's slope; 0: none.
    pub max_bias: f32,
    /// Keys at most half as many columns away are visible; 0: all of the text.
    pub window: u32,
    /// Column strides of q, k, v and y, in values.
    pub ld: [u32; 4],
    /// Columns.
    pub n_col: u32,
    /// Sequences that they may belong to.
    pub n_seq: u32,
    /// Tiles may round queries, keys, values and exponentials to f16.
    pub f16_tiles: bool,
}

impl AttentionTexts {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if query heads are no multiple of KV heads, or channels or column strides no multiple
    /// of 4.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.check()?;
        let (heads, groups) = self.heads();
        let [d, d_v] = self.d;
        let [ldq, ldk, ldv, ldy] = self.ld;
        let unit = f64::from(self.scale) * std::f64::consts::LOG2_E;
        let constants = vec![
            ("N_HEAD", self.n_head.into()),
            ("N_KV", self.n_kv.into()),
            ("D", d.into()),
            ("DV", d_v.into()),
            ("HEADS", heads.into()),
            ("HEAD_GROUPS", groups.into()),
            ("LDQ", ldq.into()),
            ("LDK", ldk.into()),
            ("LDV", ldv.into()),
            ("LDY", ldy.into()),
            ("UNIT", unit),
            ("MAX_BIAS", self.max_bias.into()),
            ("N_LOG2", f64::from(1u32 << self.n_head.ilog2())),
            ("WINDOW", self.window.into()),
            ("N_SEQ", self.n_seq.into()),
        ];
        let runs = RUNS.into_iter().find(|r| 64 * r >= d_v).unwrap_or(RUNS[RUNS.len() - 1]);
        let grid = [self.n_kv * groups, self.n_col.div_ceil(self.tile_cols()), d_v.div_ceil(64 * runs)];
        let tile = if self.f16_tiles && caps.f16 { "f16" } else { "f32" };
        let why = format!("tiles in {tile}, {heads} query heads of {} columns at once", self.tile_cols());
        dispatch(&OP, &[Value::Word(tile), Value::Int(runs)], constants, grid, why)
    }

    /// Columns per workgroup along grid.y.
    pub fn tile_cols(&self) -> u32 {
        ROWS / self.heads().0
    }

    /// Query heads of a KV head per tile, and the number of such groups.
    fn heads(&self) -> (u32, u32) {
        let gqa = self.n_head / self.n_kv.max(1);
        let groups = gqa.div_ceil(ROWS).max(1);
        (gqa.div_ceil(groups).max(1), groups)
    }

    fn check(&self) -> Result<(), DispatchError> {
        let wrong = |what, expected: &str, found: u32| {
            Err(DispatchError::Shape { op: OP.name, what, expected: expected.into(), found: found.into() })
        };
        if self.n_kv == 0 || self.n_head == 0 || self.n_head % self.n_kv != 0 {
            return wrong("query heads", "a multiple of the KV heads", self.n_head);
        }
        if let Some(d) = self.d.iter().find(|d| **d == 0 || **d % 4 != 0) {
            return wrong("channels per head", "a multiple of 4", *d);
        }
        match self.ld.iter().find(|ld| **ld % 4 != 0) {
            Some(ld) => wrong("column stride", "a multiple of 4", *ld),
            None => Ok(()),
        }
    }
}
