//! `attention`: causal attention over the paged KV cache.
//!
//! A single column offers few workgroups, so each processes part of the keys of a KV head (`attention_keys` with
//! subgroups, else `attention`). The last workgroup to finish merges the parts if the device makes the others' memory
//! visible to it; otherwise `attention_merge` does. Many columns share the keys: a workgroup takes a tile of columns
//! and walks over the keys once, in register tiles (`attention_tiles`) or with cooperative matrices (`attention_coop`).
//! On devices that are CPUs, one thread computes one head of a column (`attention_alone`). `attention_nd` handles
//! tensors of any stride under any mask, which no model needs.

pub(crate) mod cases;
mod grid_cases;
mod nd;
mod nd_cases;
mod nd_reference;
pub mod reference;

pub use nd::AttentionNd;

use chaski_graph::Score;
use ggml_format::GgmlType;

use crate::call::dispatch;
use crate::caps::{Caps, CoopShape, FeatureSet, Features};
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::kv::{KV_TYPES, KvLayout, kv_format};
use crate::op::{Op, Value, Variant, shape_values};
use crate::reduce::Teams;

/// The row of this operation. Its grid uses whichever kernel fits a case.
pub const OP: Op = Op {
    name: "attention",
    template: template!("attention/attention.wgsl.jinja"),
    variants: || {
        let sets = [FeatureSet::Base, FeatureSet::Sg];
        let rest = sets.iter().flat_map(|set| HEADS.map(|heads| (set, heads)));
        caches(rest.map(|(set, heads)| vec![("heads", Value::Int(heads)), ("set", Value::Word(set.word()))]))
    },
    cases: Op::cases(cases::cases),
    ggml: &["FLASH_ATTN_EXT"],
    grid: Some(Grid::new(include_str!("grid.txt"), grid_cases::of).random(grid_cases::random)),
};

/// The same over tensors of any stride and type.
pub const ND: Op = Op {
    name: "attention_nd",
    template: template!("attention/nd.wgsl.jinja"),
    variants: || {
        let pair =
            |k: GgmlType, v: GgmlType| vec![("k", Value::Word(k.name())), ("v", Value::Word(v.name()))];
        nd::types().flat_map(|k| nd::types().map(move |v| pair(k, v))).collect()
    },
    cases: Vec::new,
    ggml: &["FLASH_ATTN_EXT"],
    grid: Some(Grid::new(include_str!("nd_grid.txt"), nd_cases::of).random(nd_cases::random)),
};

/// The same with keys distributed over subgroups.
pub const KEYS: Op = Op {
    name: "attention_keys",
    template: template!("attention/keys.wgsl.jinja"),
    variants: || {
        // The workgroup that finishes last merges the parts, so it reads what the others wrote.
        let joined = Features { coherent: true, ..Features::SUBGROUP };
        let ends = [Value::With("parts", Features::SUBGROUP), Value::With("joined", joined)];
        let rest = HEADS.into_iter().flat_map(|heads| ends.map(|end| (heads, end)));
        caches(rest.map(|(heads, end)| vec![("heads", Value::Int(heads)), ("end", end)]))
    },
    cases: Op::cases(cases::key_cases),
    ggml: &["FLASH_ATTN_EXT"],
    grid: None,
};

/// The same for many columns, by register tiles.
pub const TILES: Op = Op {
    name: "attention_tiles",
    template: template!("attention/tiles.wgsl.jinja"),
    variants: || {
        let tiles = [Value::Word("f32"), Value::With("f16", Features::F16)];
        let rest = tiles.into_iter().flat_map(|tile| RUNS.map(|runs| (tile, runs)));
        caches(rest.map(|(tile, runs)| vec![("tile", tile), ("runs", Value::Int(runs))]))
    },
    cases: Op::cases(cases::tile_cases),
    ggml: &["FLASH_ATTN_EXT"],
    grid: None,
};

/// The same for many columns, by cooperative matrices.
pub const COOP: Op = Op {
    name: "attention_coop",
    template: template!("attention/coop.wgsl.jinja"),
    variants: || {
        let of = |shape| coop_widths(shape).iter().map(move |tiles| coop_values(shape, *tiles).collect());
        caches(CoopShape::ALL.into_iter().flat_map(of))
    },
    cases: Op::cases(cases::coop_cases),
    ggml: &["FLASH_ATTN_EXT"],
    grid: None,
};

/// The same with one thread per head of a column.
pub const ALONE: Op = Op {
    name: "attention_alone",
    template: template!("attention/alone.wgsl.jinja"),
    variants: || caches(ALONE_QUADS.into_iter().map(|quads| vec![("quads", Value::Int(quads))])),
    cases: Op::cases(cases::alone_cases),
    ggml: &["FLASH_ATTN_EXT"],
    grid: None,
};

/// Every pair of cache types, combined with each of the other variables.
fn caches(rest: impl Iterator<Item = Variant>) -> Vec<Variant> {
    let mut out = Vec::new();
    for rest in rest {
        for k in KV_TYPES {
            for v in KV_TYPES {
                let cache = [("k", Value::Word(k.name())), ("v", Value::Word(v.name()))];
                out.push(cache.into_iter().chain(rest.iter().copied()).collect());
            }
        }
    }
    out
}

/// Query heads per workgroup.
const HEADS: [u32; 4] = [1, 2, 4, 8];
/// Runs of 64 channels of a value per workgroup with register tiles; wider values take more workgroups.
const RUNS: [u32; 3] = [1, 2, 4];
/// Tiles of 16 channels per head with cooperative matrices.
const COOP_TILES: [u32; 4] = [4, 6, 8, 16];
/// Those that kernels of a shape have: with squares of 8, heads of more than 128 channels take more memory than Metal
/// has.
fn coop_widths(shape: CoopShape) -> &'static [u32] {
    if shape.side == 8 { &COOP_TILES[..3] } else { &COOP_TILES }
}

/// Quads of channels per head of the alone kernel, whose query and sums are in registers.
const ALONE_QUADS: [u32; 3] = [8, 16, 32];
/// Threads per workgroup of the alone kernel, one head each.
const ALONE_HEADS: u32 = 4;
/// The override by which kernels write f16.
const Y_HALF: &str = "Y_HALF";
/// Keys per step of cooperative matrices; a page must hold whole steps.
const COOP_KEYS: u32 = 32;
/// Keys per step of a workgroup (measured on an H200).
const KEYS_AT_ONCE: u32 = 32;
/// Workgroups that saturate a device (measured on an H200).
const ENOUGH_GROUPS: u32 = 128;
/// Rows (query heads of a column) of a register tile.
const TILE_ROWS: u32 = 32;
/// Variables of kernels with cooperative matrices, after the types of the cache.
fn coop_values(shape: CoopShape, tiles: u32) -> impl Iterator<Item = (&'static str, Value)> {
    [("tiles", Value::Int(tiles))].into_iter().chain(shape_values(shape))
}

/// Rows of a workgroup's cooperative matrices (measured on an H200). A multiprocessor has room for two workgroups of 64
/// rows only if heads are small; larger heads take 128 in one, unless their keys leave too little memory. Other devices
/// were not measured: there 64 rows of heads of 128 channels fit 32 KiB.
fn coop_rows(tiles: u32, shape: CoopShape) -> u32 {
    if matches!(tiles, 6 | 8) && shape == CoopShape::WARP { 128 } else { 64 }
}

/// Rows of a subgroup's.
fn coop_own(shape: CoopShape) -> u32 {
    shape.lanes.min(16)
}

/// Bytes of workgroup memory of such a kernel; rows and bytes are those of its template.
fn coop_bytes(tiles: u32, shape: CoopShape) -> u32 {
    let rows = coop_rows(tiles, shape);
    let part = 4 * tiles / (rows / 64);
    let staged = (64 * (4 * tiles + 2)).max(rows * (part + 2));
    8 * staged + 224 * rows + rows / coop_own(shape) * 4
}

type Chosen = Result<Dispatch, DispatchError>;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// Query heads.
    pub n_head: u32,
    /// The cache.
    pub kv: KvLayout,
    /// The scores.
    pub score: Score,
    /// Number of ranges the keys are split into; more than one requires `attention_merge`.
    pub splits: u32,
    /// Minimum number of keys per range: columns with fewer keys than `splits` times as many have fewer ranges. Only if
    /// the kernel joins the ranges ([`Self::joins`]); 0: every column has `splits`.
    pub least: u32,
    /// Column stride of q, in values.
    pub ldq: u32,
    /// Column stride of y (one split), in values.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
    /// Tiles of many columns may round queries, exponentials and an f32 cache to f16. Those of cooperative matrices do:
    /// the products that made them round their inputs, too.
    pub f16_tiles: bool,
    /// y is f16, two values per word, if [`Self::writes_f16`] allows it.
    pub y_f16: bool,
}

impl Attention {
    /// f32 values of the partial results of one column.
    pub fn parts_len(&self) -> u32 {
        self.n_head * self.splits * (self.kv.d_v + 4)
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if query heads are no multiple of KV heads, if channels are no multiple of 8 (32 in a
    /// quantised cache) or exceed four per thread of the device's largest workgroup, or if columns are not aligned to
    /// four values; [`DispatchError::NoKernel`] for types that no cache has.
    pub fn dispatch(&self, caps: &Caps) -> Chosen {
        self.as_asked(self.choose(caps)?)
    }

    fn choose(&self, caps: &Caps) -> Chosen {
        if let Some(quads) = self.alone_quads(caps) {
            self.alone(quads)
        } else if self.n_col == 1 || self.splits > 1 {
            self.one_by_one(caps)
        } else if let Some((tiles, shape)) = self.coop_tiles(caps) {
            self.coop(tiles, shape)
        } else {
            self.tiles(caps)
        }
    }

    /// Columns per workgroup along grid.y of a dispatch for this device; `None` if columns are along z.
    pub fn tile_cols(&self, dispatch: &Dispatch, caps: &Caps) -> Option<u32> {
        let is = |op: &Op| dispatch.kernel.name.starts_with(op.name);
        let rows = match self.coop_tiles(caps) {
            _ if is(&TILES) => TILE_ROWS,
            Some((tiles, shape)) if is(&COOP) => coop_rows(tiles, shape),
            _ => return None,
        };
        Some(rows / self.tile_heads(rows).0)
    }

    /// The call for columns that go one by one ([`step::N_EACH`](crate::step::N_EACH)), of which there are at most
    /// `n_col`, each with its own number of ranges where devices join them.
    ///
    /// # Errors
    /// As [`Self::dispatch`].
    pub fn each(&self, caps: &Caps) -> Chosen {
        self.as_asked(self.one_by_one(caps)?)
    }

    /// A chosen kernel, if it writes the type that y has.
    fn as_asked(&self, chosen: Dispatch) -> Chosen {
        let can = chosen.constants.iter().any(|(name, _)| *name == Y_HALF);
        if self.y_f16 && !can {
            return Err(DispatchError::Lacks { op: OP.name, what: "cooperative matrices" });
        }
        Ok(chosen)
    }

    /// Checks that query heads are a multiple of KV heads and channels a multiple of 8.
    fn check(&self) -> Result<(), DispatchError> {
        let shape = |what, expected: &str, found: u32| {
            Err(DispatchError::Shape { op: OP.name, what, expected: expected.into(), found: found.into() })
        };
        let kv = &self.kv;
        kv.check(OP.name)?;
        if kv.n_kv == 0 || self.n_head % kv.n_kv != 0 {
            return shape("query heads", "a multiple of the KV heads", self.n_head);
        }
        if self.ldq % 4 != 0 || self.ldy % 4 != 0 {
            return shape(
                "column stride",
                "a multiple of 4",
                if self.ldq % 4 != 0 { self.ldq } else { self.ldy },
            );
        }
        Ok(())
    }

    /// Constants common to all kernels.
    fn constants(&self) -> Vec<(&'static str, f64)> {
        let (s, flag) = (&self.score, |on: bool| f64::from(u8::from(on)));
        let mut constants = self.kv.reader_constants();
        constants.extend([
            ("N_HEAD", self.n_head.into()),
            ("SCALE", s.scale.into()),
            ("SOFTCAP", s.softcap.into()),
            ("MAX_BIAS", s.max_bias.into()),
            ("WARM", s.warmth.map_or(0.0, |w| w.by).into()),
            ("WARM_RUN", s.warmth.map_or(1, |w| w.run.max(1)).into()),
            ("WINDOW", s.window.into()),
            ("SINKS", flag(s.sinks)),
            ("LDQ", self.ldq.into()),
            ("LDY", self.ldy.into()),
        ]);
        constants
    }

    /// The types of the cache, followed by other variables.
    fn variant(&self, rest: &[Value]) -> Vec<Value> {
        let name = |ty| Value::Word(kv_format(ty).name);
        [name(self.kv.k), name(self.kv.v)].into_iter().chain(rest.iter().copied()).collect()
    }

    /// Query heads of a KV head per tile of `rows` rows, and the number of such groups.
    fn tile_heads(&self, rows: u32) -> (u32, u32) {
        let gqa = self.n_head / self.kv.n_kv;
        let groups = gqa.div_ceil(rows);
        (gqa.div_ceil(groups), groups)
    }

    /// Constants and grid for tiles of `rows` rows.
    fn tiled(&self, rows: u32) -> (Vec<(&'static str, f64)>, [u32; 3], String) {
        let (heads, groups) = self.tile_heads(rows);
        let mut constants = self.constants();
        constants.extend([("HEADS", heads.into()), ("HEAD_GROUPS", groups.into())]);
        let cols = rows / heads;
        let grid = [self.kv.n_kv * groups, self.n_col.div_ceil(cols), 1];
        (constants, grid, format!("{heads} query heads of {cols} columns"))
    }

    /// True if the kernels for many columns can write f16, and those for columns one by one, if there are any.
    pub fn writes_f16(&self, caps: &Caps, one_by_one: bool) -> bool {
        let joins = Attention { splits: 2, ..*self }.joins(caps);
        self.n_col > 1 && self.splits == 1 && self.coop_tiles(caps).is_some() && (joins || !one_by_one)
    }

    /// Tiles of 16 channels per head, if cooperative matrices apply: pages hold whole tiles.
    fn coop_tiles(&self, caps: &Caps) -> Option<(u32, CoopShape)> {
        let kv = &self.kv;
        let shape = caps.coop_shape()?;
        let may = kv.page % COOP_KEYS == 0 && kv.d == kv.d_v && !kv.in_keys;
        // Tiles that hold a head.
        let tiles = coop_widths(shape).iter().copied().find(|t| 16 * t >= kv.d)?;
        (may && coop_bytes(tiles, shape) <= caps.max_workgroup_bytes).then_some((tiles, shape))
    }

    /// Many columns with cooperative matrices.
    fn coop(&self, tiles: u32, shape: CoopShape) -> Chosen {
        self.check()?;
        let (mut constants, grid, what) = self.tiled(coop_rows(tiles, shape));
        constants.push((Y_HALF, f64::from(u8::from(self.y_f16))));
        let why = format!("cooperative matrices, {what} by {COOP_KEYS} keys at once");
        let values: Vec<Value> = coop_values(shape, tiles).map(|(_, v)| v).collect();
        dispatch(&COOP, &self.variant(&values), constants, grid, why)
    }

    /// Quads of channels per head for the alone kernel, if it supports these heads.
    fn alone_quads(&self, caps: &Caps) -> Option<u32> {
        let wide = self.kv.d.max(self.kv.d_v);
        ALONE_QUADS.into_iter().find(|q| 4 * q >= wide && caps.alone && self.splits == 1)
    }

    /// One thread per head of a column.
    fn alone(&self, quads: u32) -> Chosen {
        self.check()?;
        let mut constants = self.constants();
        constants.push(("WG", ALONE_HEADS.into()));
        let grid = [self.n_head.div_ceil(ALONE_HEADS), 1, self.n_col];
        let why = "one thread per head, no barriers".into();
        dispatch(&ALONE, &self.variant(&[Value::Int(quads)]), constants, grid, why)
    }

    /// Many columns with register tiles.
    fn tiles(&self, caps: &Caps) -> Chosen {
        self.check()?;
        let runs = RUNS.into_iter().find(|r| 64 * r >= self.kv.d_v).unwrap_or(RUNS[RUNS.len() - 1]);
        let (constants, mut grid, what) = self.tiled(TILE_ROWS);
        grid[2] = self.kv.d_v.div_ceil(64 * runs);
        let tile = if self.f16_tiles && caps.f16 { "f16" } else { "f32" };
        let why = format!("tiles in {tile}, {what} at once");
        dispatch(&TILES, &self.variant(&[Value::Word(tile), Value::Int(runs)]), constants, grid, why)
    }

    /// One column at a time, with the fastest kernel available.
    fn one_by_one(&self, caps: &Caps) -> Chosen {
        if self.fits_keys(caps) { self.keys(caps) } else { self.by_column(caps) }
    }

    /// Threads that share a key in `attention_keys`, eight channels each.
    fn lanes(&self) -> u32 {
        (self.kv.d.max(self.kv.d_v) / 8).next_power_of_two()
    }

    /// True if all threads of a key are in one subgroup.
    fn fits_keys(&self, caps: &Caps) -> bool {
        caps.subgroup.is_some_and(|(min, max)| self.lanes() <= min && max <= 256)
    }

    /// Keys distributed over subgroups.
    fn keys(&self, caps: &Caps) -> Chosen {
        self.check()?;
        let kv = &self.kv;
        let gqa = self.n_head / kv.n_kv;
        let mut heads = HEADS.into_iter().rev().find(|h| *h < 2 * gqa || *h == 1).unwrap_or(1);
        // Heads of a group share loads, but too few workgroups would leave the device idle.
        let parts = if self.least > 0 { self.splits.min(2) } else { self.splits };
        let groups = |heads: u32| kv.n_kv * gqa.div_ceil(heads) * parts * self.n_col;
        // Each lane of a key holds one head's score, so there are at most as many heads as lanes.
        while heads > 1 && (2 * groups(heads) <= ENOUGH_GROUPS || heads > self.lanes()) {
            heads /= 2;
        }
        let (least, most) = caps.subgroup.unwrap_or((1, 1));
        // Each subgroup writes its sums to workgroup memory.
        let bytes = |wg: u32| wg / least * heads * (kv.d_v + 2) * 4;
        let mut wg = (self.lanes() * KEYS_AT_ONCE).clamp(256, 512).min(caps.max_threads);
        while wg > most && bytes(wg) > caps.max_workgroup_bytes {
            wg /= 2;
        }
        let mut constants = self.constants();
        constants.extend([
            ("WG", wg.into()),
            ("SG_MIN", least.into()),
            ("LANES", self.lanes().into()),
            ("SPLITS", self.splits.into()),
            ("LEAST", if self.joins(caps) { self.least } else { 0 }.into()),
        ]);
        let grid = [kv.n_kv * gqa.div_ceil(heads), self.splits, self.n_col];
        let keys = wg / self.lanes();
        let joined = self.joins(caps);
        let end = if joined { "joined" } else { "parts" };
        if joined {
            constants.push((Y_HALF, f64::from(u8::from(self.y_f16))));
        }
        let why =
            format!("{heads} of {gqa} query heads, {keys} keys at once, in {} parts, {end}", self.splits);
        dispatch(&KEYS, &self.variant(&[Value::Int(heads), Value::Word(end)]), constants, grid, why)
    }

    /// True if the kernel merges its parts itself: it binds `out` for the result, `y` for the parts, and `arrived`, one
    /// counter per workgroup along x and z, which must be 0 before the first dispatch and is reset by each.
    pub fn joins(&self, caps: &Caps) -> bool {
        caps.uses_coherent() && self.splits > 1 && self.fits_keys(caps)
    }

    /// Maximum number of counters in `arrived`.
    pub fn n_counter(&self) -> u32 {
        self.n_head * self.n_col
    }

    /// Keys distributed over threads.
    fn by_column(&self, caps: &Caps) -> Chosen {
        self.check()?;
        let kv = &self.kv;
        let gqa = self.n_head / kv.n_kv;
        // As many heads at once as exist and fit in workgroup memory. One column has few workgroups, so they are large;
        // many columns fill the device with small ones.
        let least = if self.n_col == 1 { 128 } else { 64 };
        let wide = kv.d.max(kv.d_v);
        let wg = (wide / 4).next_power_of_two().max(least).min(caps.max_threads);
        if wide / 4 > wg {
            let (what, expected) = ("channels per head", "at most four per thread".into());
            return Err(DispatchError::Shape { op: OP.name, what, expected, found: wide.into() });
        }
        let bytes = |heads: u32| 4 * heads * (kv.d + 6 * wg);
        let heads = HEADS
            .into_iter()
            .rev()
            .find(|h| (*h < 2 * gqa || *h == 1) && bytes(*h) <= caps.max_workgroup_bytes)
            .unwrap_or(1);
        let teams = Teams::whole(caps, wg);
        let mut constants = teams.constants(caps);
        constants.extend(self.constants());
        constants.push(("SPLITS", self.splits.into()));
        let grid = [kv.n_kv * gqa.div_ceil(heads), self.splits, self.n_col];
        let why = format!("{heads} of {gqa} query heads on {wg} threads, keys in {} parts", self.splits);
        let values = self.variant(&[Value::Int(heads), Value::Word(caps.set().word())]);
        dispatch(&OP, &values, constants, grid, why)
    }
}
