//! Cases of `attention`, `attention_tiles` and `attention_coop`.

use chaski_graph::{Score, Warmth};
use ggml_format::GgmlType;

use super::reference::Query;
use super::{Attention, COOP};
use crate::caps::Caps;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::dispatch::{Dispatch, DispatchError, Step};
use crate::kv::{KV_TYPES, KvLayout};
use crate::ops::attention_merge::AttentionMerge;
use crate::rng::random_values;
use crate::step;

/// A column: its sequence and its position there.
pub(super) type Column = (u32, u32);

/// Keys per group that `attention_keys` distributes over the parts.
const DEALT: usize = 32;

/// Shape and options of a case.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) n_head: u32,
    pub(super) n_kv: u32,
    pub(super) d: u32,
    pub(super) d_v: u32,
    /// Values are the leading channels of their keys and are not stored separately.
    pub(super) in_keys: bool,
    pub(super) types: (GgmlType, GgmlType),
    pub(super) score: Score,
    pub(super) page: u32,
    pub(super) splits: u32,
    /// Minimum number of keys per part; 0: as many parts as `splits`.
    pub(super) least: u32,
    pub(super) cols: Vec<Column>,
    /// Leading columns that tiles leave alone.
    pub(super) each: u32,
    pub(super) f16_tiles: bool,
    /// The result is f16.
    pub(super) y_f16: bool,
    /// Queries and cache hold f16 values, whatever their type.
    pub(super) exact: bool,
    /// A factor, a power of two, of the queries of every other 32 columns: only their sums are rescaled.
    pub(super) loud: f32,
    /// Parts are merged ([`joined`]); otherwise the parts are the result.
    pub(super) joined: bool,
    /// Keys are interleaved over the parts; otherwise each part has a range.
    pub(super) dealt: bool,
    /// Pages per sequence that are reused in turn; 0: one page for each part of the sequence.
    pub(super) wrap: u32,
    /// All sequences share their pages.
    pub(super) shared: bool,
    /// A value is the beginning of its key.
    pub(super) v_of_k: bool,
}

impl Setting {
    pub(super) fn new(n_head: u32, n_kv: u32, d: u32, f16: bool, pos: impl IntoIterator<Item = u32>) -> Self {
        let cols = pos.into_iter().map(|p| (0, p)).collect();
        let ty = if f16 { GgmlType::F16 } else { GgmlType::F32 };
        Setting {
            n_head,
            n_kv,
            d,
            d_v: d,
            in_keys: false,
            types: (ty, ty),
            score: Score::scaled(1.0 / (d as f32).sqrt()),
            page: 32,
            splits: 1,
            least: 0,
            cols,
            each: 0,
            f16_tiles: false,
            y_f16: false,
            exact: false,
            loud: 1.0,
            joined: false,
            dealt: false,
            wrap: 0,
            shared: false,
            v_of_k: false,
        }
    }

    fn call(&self, ldq: u32, ldy: u32) -> Attention {
        Attention {
            n_head: self.n_head,
            kv: self.kv(),
            score: self.score,
            splits: self.splits,
            least: self.least,
            ldq,
            ldy,
            n_col: self.cols.len() as u32,
            f16_tiles: self.f16_tiles,
            y_f16: self.y_f16,
        }
    }

    fn n_seq(&self) -> u32 {
        self.cols.iter().map(|c| c.0).max().unwrap_or(0) + 1
    }

    fn kv(&self) -> KvLayout {
        let longest = self.cols.iter().map(|c| c.1 + 1).max().unwrap_or(1);
        // An unused page precedes all others.
        let pages_per_seq = longest.div_ceil(self.page);
        KvLayout {
            n_kv: self.n_kv,
            d: self.d,
            d_v: self.d_v,
            in_keys: self.in_keys,
            k: self.types.0,
            v: self.types.1,
            n_page: match self.wrap {
                0 if self.shared => pages_per_seq + 1,
                0 => self.n_seq() * pages_per_seq + 1,
                wrap => self.n_seq() * wrap,
            },
            page: self.page,
            n_seq: self.n_seq(),
            pages_per_seq,
            pages_at: step::pages_at(self.cols.len()) as u32,
            wrap: self.wrap,
        }
    }

    /// The `i`-th page of a sequence. The pages of all sequences lie in reverse order.
    fn page(&self, kv: &KvLayout, seq: u32, i: u32) -> u32 {
        if self.wrap > 0 {
            return seq * self.wrap + i % self.wrap;
        }
        let first = if self.shared { 0 } else { seq * kv.pages_per_seq };
        kv.n_page - 1 - (first + i)
    }

    /// Index of a cell.
    fn cell(&self, kv: &KvLayout, seq: u32, pos: u32, head: u32) -> usize {
        let page = self.page(kv, seq, pos / kv.page);
        ((page * kv.n_kv + head) * kv.page + pos % kv.page) as usize
    }

    fn step(&self) -> Vec<u32> {
        let kv = self.kv();
        let n_seq = self.n_seq();
        let mut words = vec![0; step::n_word(self.cols.len(), n_seq as usize, kv.pages_per_seq as usize)];
        words[step::N_COL] = self.cols.len() as u32;
        words[step::N_EACH] = self.each;
        for (c, (seq, pos)) in self.cols.iter().enumerate() {
            words[step::HEADER + step::COLUMN * c + 1] = *pos;
            words[step::HEADER + step::COLUMN * c + 2] = *seq;
        }
        for seq in 0..n_seq {
            let at = (kv.pages_at + seq * kv.pages_per_seq) as usize;
            (0..kv.pages_per_seq).for_each(|i| words[at + i as usize] = self.page(&kv, seq, i));
        }
        words
    }

    /// The cache, and its keys and values as its types round them. Cells that no column sees are NaN, or large values
    /// in block formats.
    /// | Rounding twice could change a value: a search for the best block need not find its own result again.
    fn cache(&self) -> (Vec<u8>, Vec<f32>) {
        let kv = self.kv();
        let (d, d_v, n_cell) = (kv.d as usize, kv.d_v as usize, kv.n_cell() as usize);
        let mut cache = random_values(9, n_cell * if self.in_keys { d } else { d + d_v });
        if self.exact {
            to_f16(&mut cache);
        }
        let mut seen = vec![false; n_cell];
        for seq in 0..self.n_seq() {
            let of_seq =
                self.cols.iter().filter(|c| c.0 == seq).map(|c| self.query(&[], 0, c.1, None).keys());
            let Some(keys) = of_seq.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)) else { continue };
            // Tiles read whole groups of keys, including those that the window excludes.
            for j in keys.start / 64 * 64..keys.end {
                (0..self.n_kv).for_each(|h| seen[self.cell(&kv, seq, j as u32, h)] = true);
            }
        }
        let unseen = |ty: GgmlType| if ty.block_len() > 1 { 3e4 } else { f32::NAN };
        let (keys, values) = cache.split_at_mut(n_cell * d);
        if self.v_of_k {
            values
                .chunks_exact_mut(d_v)
                .zip(keys.chunks_exact(d))
                .for_each(|(v, k)| v.copy_from_slice(&k[..d_v]));
        }
        for (cells, d, ty) in [(keys, d, kv.k), (values, d_v, kv.v)] {
            cells.chunks_exact_mut(d).zip(&seen).filter(|(_, s)| !**s).for_each(|(c, _)| c.fill(unseen(ty)));
        }
        let bytes = kv.encode(&cache);
        let rounded = kv.decode(&bytes);
        (bytes, rounded)
    }

    fn query<'a>(&'a self, q: &'a [f32], head: u32, pos: u32, sink: Option<f32>) -> Query<'a> {
        Query { q, score: &self.score, head: (head, self.n_head), pos: pos as usize, text: None, sink }
    }

    pub(super) fn case<S: Into<Vec<Step>> + 'static>(
        self,
        way: fn(&Attention, &Caps) -> Result<S, DispatchError>,
        max_nmse: f64,
    ) -> Case {
        let (du, dv) = (self.d as usize, self.d_v as usize);
        let (ldq, ldy) = (self.n_head as usize * du + 8, self.n_head as usize * dv + 16);
        let mut q = random_values(4, ldq * self.cols.len());
        q.chunks_exact_mut(32 * ldq).skip(1).step_by(2).flatten().for_each(|q| *q *= self.loud);
        if self.exact {
            to_f16(&mut q);
        }
        let (bytes, cache) = self.cache();
        let kv = self.kv();
        // Row stride and offset of the values.
        let (row_v, values_at) = if self.in_keys { (du, 0) } else { (dv, kv.n_cell() as usize * du) };
        let mut sinks = random_values(8, (self.n_head as usize).max(4));
        sinks.iter_mut().for_each(|s| *s *= 3.0);
        let whole = self.splits == 1 || self.joined;
        let n_y = if whole { ldy } else { (self.n_head * self.splits) as usize * (dv + 4) };
        let before = random_values(5, n_y * self.cols.len());
        let mut values = before.clone();
        for (c, (seq, pos)) in self.cols.iter().enumerate().skip(self.each as usize) {
            for h in 0..self.n_head {
                let at = |j: usize| self.cell(&kv, *seq, j as u32, h / (self.n_head / self.n_kv));
                let key = |j| &cache[at(j) * du..][..du];
                let value = |j| &cache[values_at + at(j) * row_v..][..dv];
                let sink = self.score.sinks.then(|| sinks[h as usize]);
                let query = self.query(&q[c * ldq + h as usize * du..][..du], h, *pos, sink);
                let out = if whole {
                    query.attention(key, value)
                } else {
                    let (all, n_part) = (query.keys(), self.splits as usize);
                    let span = all.len().div_ceil(n_part);
                    let part_of = |j: usize| match self.dealt {
                        true => (j / DEALT - all.start / DEALT) % n_part,
                        false => (j - all.start) / span,
                    };
                    let keys = |s| all.clone().filter(move |j| part_of(*j) == s);
                    (0..n_part).flat_map(|s| query.part(keys(s), s == 0, key, value)).collect()
                };
                values[c * n_y + h as usize * out.len()..][..out.len()].copy_from_slice(&out);
            }
        }
        let call = self.call(ldq as u32, ldy as u32);
        Case::new(
            format!(
                "h{}/{} d{}/{}{} {}/{} page{} splits{}/{} n{} each{} from{:?} tiles{}{}{}{}",
                self.n_head,
                self.n_kv,
                self.d,
                self.d_v,
                if self.in_keys { " in keys" } else { "" },
                self.types.0,
                self.types.1,
                self.page,
                self.splits,
                self.least,
                self.cols.len(),
                self.each,
                self.cols.first(),
                self.f16_tiles,
                if self.loud > 1.0 { " loud" } else { "" },
                if self.y_f16 { " to f16" } else { "" },
                label(&self.score),
            ),
            move |caps| way(&call, caps),
            {
                let mut buffers = vec![
                    CaseBuffer::input("q", &q),
                    CaseBuffer::input(
                        "k",
                        if self.in_keys { &bytes } else { &bytes[..kv.values_at() as usize] },
                    ),
                    CaseBuffer::input("v", &bytes[kv.values_at() as usize..]),
                    CaseBuffer::input("sinks", &sinks),
                    CaseBuffer::input("step", &self.step()),
                    if self.y_f16 {
                        CaseBuffer::half_output("y", &before, values, max_nmse)
                    } else {
                        CaseBuffer::output("y", &before, Expected::F32 { values, max_nmse })
                    },
                ];
                if self.joined && self.splits > 1 {
                    let zeros = vec![0u32; call.n_counter() as usize];
                    let arrived = CaseBuffer::output("arrived", &zeros, Expected::Words(zeros.clone()));
                    let n_part = call.parts_len() * call.n_col;
                    let parts = CaseBuffer::input("parts", &random_values(6, n_part as usize));
                    buffers.extend([arrived.spare(), parts.spare()]);
                }
                buffers
            },
        )
    }
}

/// The dispatches that produce the final result, as in a plan.
pub(super) fn joined(call: &Attention, caps: &Caps) -> Result<Vec<Step>, DispatchError> {
    let dispatch = call.dispatch(caps)?;
    if call.splits == 1 {
        return Ok(dispatch.into());
    }
    if call.joins(caps) {
        return Ok(vec![Step::renamed(dispatch, &[("out", "y"), ("y", "parts")])]);
    }
    let &Attention { n_head, splits, ldy, n_col, .. } = call;
    let merge = AttentionMerge { n_head, d: call.kv.d_v, splits, ldy, n_col }.dispatch(caps)?;
    Ok(vec![Step::renamed(dispatch, &[("y", "parts")]), Step::renamed(merge, &[("x", "parts")])])
}

/// Description of the score options.
fn label(s: &Score) -> String {
    let mut out = String::new();
    for (name, v) in [(" softcap", s.softcap), (" alibi", s.max_bias), (" window", s.window as f32)] {
        if v != 0.0 {
            out.push_str(&format!("{name}{v}"));
        }
    }
    out + if s.sinks { " sinks" } else { "" }
}

fn to_f16(values: &mut [f32]) {
    values.iter_mut().for_each(|v| *v = half::f16::from_f32(*v).to_f32());
}

/// Combinations of cache types, key and value sizes, and score options that every kernel must support. Heads of 32
/// channels and more suit block formats.
fn kinds(n: u32) -> Vec<Setting> {
    let mut out = Vec::new();
    let base = |d| Setting::new(4, 2, d, true, (0..n).map(|i| i * 29 % 150));
    for k in KV_TYPES {
        for v in KV_TYPES {
            if k == v || (*k == GgmlType::F16) != (*v == GgmlType::Q8_0) {
                out.push(Setting { types: (*k, *v), ..base(if k == v { 96 } else { 64 }) });
            }
        }
    }
    for (d, d_v) in [(192, 128), (64, 72), (72, 64), (96, 64)] {
        out.push(Setting { d_v, ..base(d) });
    }
    // Latent attention: all heads share one key, whose leading channels are the value.
    for (n_head, d, d_v) in [(4, 96, 64), (16, 192, 128), (3, 64, 64)] {
        for ty in [GgmlType::F32, GgmlType::F16, GgmlType::Q8_0] {
            out.push(Setting { n_head, n_kv: 1, d_v, in_keys: true, types: (ty, ty), ..base(d) });
        }
    }
    let plain = Score::scaled(0.125);
    for score in [
        Score { softcap: 2.0, ..plain },
        Score { max_bias: 8.0, ..plain },
        Score { window: 40, ..plain },
        Score { window: 1, ..plain },
        Score { sinks: true, ..plain },
        Score { warmth: Some(Warmth { by: 0.5, run: 7 }), ..plain },
    ] {
        out.push(Setting { score, ..base(64) });
    }
    let all = Score {
        warmth: Some(Warmth { by: 0.1, run: 16 }),
        softcap: 1.5,
        max_bias: 4.0,
        window: 70,
        sinks: true,
        ..plain
    };
    out.push(Setting { score: all, n_head: 12, n_kv: 4, types: (GgmlType::Q8_0, GgmlType::F32), ..base(32) });
    out.push(Setting { score: all, cols: mixed(n), ..base(64) });
    // A window of 60 tokens and the columns after it touch at most four pages of 32.
    let near = Score { window: 60, ..plain };
    let cols = (0..n).map(|i| (i % 2, 300 + i / 2)).collect();
    out.push(Setting { score: near, wrap: 4, cols, ..base(64) });
    out
}

/// The same in parts that all have keys: the sentinel of an empty part is so large that it would hide other errors.
fn split_kinds() -> impl Iterator<Item = Setting> {
    let long = |s: Setting| Setting { splits: 3, cols: vec![(0, 250), (0, 299)], ..s };
    let widen = |s: Setting| {
        let window = if s.score.window > 0 { 130 } else { 0 };
        let wrap = if s.wrap > 0 { 8 } else { 0 };
        Setting { score: Score { window, ..s.score }, wrap, ..s }
    };
    kinds(1).into_iter().rev().take(10).map(long).map(widen)
}

/// One column at a time.
pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f16 in [true, false] {
        for d in [8, 40, 64, 80, 128, 192, 256, 512] {
            out.push(Setting::new(4, 2, d, f16, [0, 1, 40]));
        }
        for (n_head, n_kv) in [(1, 1), (4, 4), (8, 2), (6, 2), (16, 1), (12, 1), (10, 2)] {
            out.push(Setting::new(n_head, n_kv, 64, f16, [112]));
            out.push(Setting::new(n_head, n_kv, 32, f16, [63, 64, 65]));
        }
        out.push(Setting::new(4, 2, 64, f16, 90..123));
        out.push(Setting { splits: 3, ..Setting::new(4, 2, 40, f16, [2, 199, 7]) });
        out.push(Setting { cols: mixed(9), ..Setting::new(4, 2, 64, f16, []) });
    }
    out.extend(kinds(3));
    out.extend(large());
    out.extend(split_kinds());
    out.into_iter().map(|s| s.case(Attention::by_column, 1e-7)).collect()
}

/// Keys distributed over subgroups; other devices run these cases with another kernel.
pub(super) fn key_cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f16 in [true, false] {
        for d in [8, 40, 64, 80, 128, 256] {
            out.push(Setting::new(4, 2, d, f16, [0, 1, 40, 200]));
        }
        // Enough columns that workgroups process several heads.
        for (n_head, n_kv, d) in [(2, 1, 64), (4, 1, 64), (3, 1, 32), (4, 1, 128), (16, 1, 64), (10, 2, 40)] {
            out.push(Setting::new(n_head, n_kv, d, f16, (0..66).map(|i| i * 5 % 131)));
        }
        out.push(Setting { cols: mixed(9), ..Setting::new(4, 2, 64, f16, []) });
        for (n_head, n_kv, d, splits, pos) in [(4, 1, 64, 4, 299), (3, 3, 32, 7, 255), (2, 1, 64, 3, 1000)] {
            let setting = Setting::new(n_head, n_kv, d, f16, [pos - 40, pos, pos + 1]);
            out.push(Setting { splits, dealt: true, ..setting });
        }
    }
    out.extend(kinds(4));
    out.extend(split_kinds().map(|s| Setting { dealt: true, ..s }));
    // Devices whose subgroups cannot share keys have a separate kernel for ranges of keys.
    let parts = |a: &Attention, caps: &Caps| match a.splits == 1 || a.fits_keys(caps) {
        true => a.one_by_one(&Caps { coherent: false, ..caps.clone() }),
        false => Err(DispatchError::Lacks { op: super::KEYS.name, what: "subgroups large enough for a key" }),
    };
    let mut cases: Vec<Case> = out.into_iter().map(|s| s.case(parts, 1e-7)).collect();
    let by_itself = |a: &Attention, caps: &Caps| match a.joins(caps) {
        true => joined(a, caps),
        false => Err(DispatchError::Lacks { op: super::KEYS.name, what: "coherent memory" }),
    };
    for f16 in [true, false] {
        for (n_head, n_kv, d, splits) in
            [(4, 1, 64, 4), (3, 3, 32, 7), (8, 2, 64, 16), (4, 1, 128, 32), (16, 2, 40, 5), (2, 1, 256, 3)]
        {
            let setting = Setting::new(n_head, n_kv, d, f16, [15, 300, 0, 299]);
            let setting = Setting { splits, joined: true, ..setting };
            cases.push(setting.clone().case(by_itself, 1e-7));
            cases.push(Setting { y_f16: true, ..setting }.case(by_itself, 1e-6));
        }
    }
    // As many parts as the keys of a column are worth: one, some, all.
    let cols = vec![(0, 0), (2, 63), (1, 64), (0, 299), (3, 130), (1, 31), (1, 32)];
    for (splits, least) in [(4, 32), (7, 64), (16, 1), (3, 100)] {
        let setting =
            Setting { splits, least, joined: true, cols: cols.clone(), ..Setting::new(8, 2, 64, true, []) };
        let score = Score { window: 100, ..setting.score };
        cases.push(Setting { score, ..setting.clone() }.case(by_itself, 1e-7));
        cases.push(setting.case(by_itself, 1e-7));
    }
    let kinds = kinds(2).into_iter().map(|s| Setting { splits: 5, joined: true, ..s });
    cases.extend(kinds.map(|s| s.case(by_itself, 1e-7)));
    cases
}

/// One thread per head; split keys, and heads too wide for a thread, use the other kernels.
pub(super) fn alone_cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f16 in [true, false] {
        for d in [8, 40, 64, 80, 128] {
            out.push(Setting::new(4, 2, d, f16, [0, 1, 40]));
        }
        out.push(Setting::new(6, 2, 32, f16, 90..123));
        out.push(Setting { cols: mixed(9), ..Setting::new(5, 1, 64, f16, []) });
    }
    out.extend(kinds(3));
    let alone = |a: &Attention, caps: &Caps| match a.alone_quads(caps) {
        Some(quads) => a.alone(quads),
        None => Err(DispatchError::Lacks { op: super::ALONE.name, what: "heads that a thread can keep" }),
    };
    out.into_iter().map(|s| s.case(alone, 1e-7)).collect()
}

/// One token after 300 others, and a prefill chunk, with the device's own kernels.
pub(crate) fn probes() -> [Case; 2] {
    let token = Setting { splits: 4, joined: true, ..Setting::new(8, 2, 64, true, [300]) };
    let piece = Setting { f16_tiles: true, exact: true, ..Setting::new(8, 2, 64, true, 40..75) };
    // The alone kernel does not split keys.
    let token_of = |a: &Attention, caps: &Caps| {
        let splits = if caps.alone { 1 } else { a.splits };
        joined(&Attention { splits, ..*a }, caps)
    };
    [token.case(token_of, 1e-7), piece.case(Attention::dispatch, 1e-6)]
}

/// Columns of three sequences, out of order.
fn mixed(n: u32) -> Vec<Column> {
    (0..n).map(|i| (i * 5 % 7 % 3, 17 * i % 97)).collect()
}

/// Many columns, for any kernel.
fn many(f16: bool) -> Vec<Setting> {
    let mut out = Vec::new();
    for d in [8, 40, 64, 80, 96, 128, 256] {
        out.push(Setting::new(4, 2, d, f16, 0..37));
    }
    for d in [64, 192] {
        out.push(Setting::new(2, 1, d, f16, [0, 1, 40, 200, 7]));
    }
    for (n_head, n_kv) in [(1, 1), (8, 1), (3, 1), (10, 2), (71, 1)] {
        out.push(Setting::new(n_head, n_kv, 64, f16, 40..75));
    }
    out.push(Setting::new(4, 4, 64, f16, 0..150));
    out.push(Setting { page: 64, ..Setting::new(8, 2, 32, f16, 150..260) });
    out.push(Setting { cols: mixed(50), ..Setting::new(8, 2, 64, f16, []) });
    out.push(Setting { cols: mixed(29), ..Setting::new(2, 2, 128, f16, []) });
    for d in [64, 96, 128, 256] {
        out.push(Setting { loud: 16.0, ..Setting::new(4, 2, d, f16, 0..150) });
    }
    for (n_head, n_kv, each) in [(8, 2, 3), (3, 1, 20), (4, 4, 1), (5, 1, 49)] {
        out.push(Setting { each, cols: mixed(50), ..Setting::new(n_head, n_kv, 64, f16, []) });
    }
    out
}

/// Register tiles.
pub(super) fn tile_cases() -> Vec<Case> {
    let f32_tiles = [true, false].into_iter().flat_map(many).chain(kinds(11)).chain(large());
    let f32_tiles = f32_tiles.map(|s| s.case(Attention::tiles, 1e-7));
    let rounded = [true, false].into_iter().flat_map(|f16| rounded(f16).step_by(3));
    f32_tiles.chain(rounded.map(|s| s.case(Attention::tiles, 1e-6))).collect()
}

/// Values that are divided over several workgroups.
fn large() -> Vec<Setting> {
    let wide = |d, f16| Setting::new(2, 1, d, f16, [3, 60, 61, 150]);
    let latent = Setting { n_head: 5, d_v: 512, in_keys: true, ..wide(576, true) };
    vec![wide(512, true), wide(264, false), latent]
}

/// Cooperative matrices, which do not support values in keys; other devices use register tiles.
pub(super) fn coop_cases() -> Vec<Case> {
    let settings = || [true, false].into_iter().flat_map(rounded).filter(|s| !s.in_keys);
    let halves = settings().step_by(3).map(|s| Setting { y_f16: true, ..s });
    settings().chain(halves).map(|s| s.case(by_coop, 1e-6)).collect()
}

/// The choice, where a device has kernels with cooperative matrices for such heads.
fn by_coop(call: &Attention, caps: &Caps) -> Result<Dispatch, DispatchError> {
    match call.coop_tiles(caps) {
        Some(_) => call.dispatch(caps),
        None => Err(DispatchError::Lacks { op: COOP.name, what: "cooperative matrices for such heads" }),
    }
}

/// Many columns where everything but the exponentials is an f16 value: only their rounding contributes.
fn rounded(f16: bool) -> impl Iterator<Item = Setting> {
    // Blocks produce values that f16 would round again.
    let kinds = kinds(20)
        .into_iter()
        .filter(move |s| f16 && s.d == s.d_v && s.types.0.block_len() * s.types.1.block_len() == 1);
    many(f16).into_iter().chain(kinds).map(|s| Setting { f16_tiles: true, exact: true, ..s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps::CoopShape;

    #[cfg(feature = "check")]
    #[test]
    fn kernels_with_cooperative_matrices_have_the_rows_and_the_memory_that_dispatches_expect() {
        use super::super::{coop_bytes, coop_own, coop_rows};
        use crate::check::{Size, workgroup};
        let names: Vec<&str> =
            crate::Kernel::names().into_iter().filter(|n| n.starts_with("attention_coop.")).collect();
        assert_eq!(names.len(), (COOP.variants)().len());
        let full = std::env::var_os("CHASKI_TEST_FULL").is_some_and(|v| v != "0");
        let mut seen = std::collections::BTreeMap::new();
        for name in names {
            let numbers: Vec<u32> = name.split('.').skip(3).map(|n| n.parse().expect("a number")).collect();
            // By default four of each size: types of the cache change neither rows nor memory.
            let n_seen: &mut u32 = seen.entry(numbers.clone()).or_default();
            *n_seen += 1;
            if *n_seen > 4 && !full {
                continue;
            }
            let (tiles, shape) = match numbers[..] {
                [tiles] => (tiles, CoopShape::WARP),
                [tiles, side, lanes] => (tiles, CoopShape { side, lanes }),
                _ => panic!("{name}"),
            };
            let threads = coop_rows(tiles, shape) / coop_own(shape) * shape.lanes;
            let kernel = crate::Kernel::find(name).expect("a name of the list");
            let size = workgroup(kernel).unwrap_or_else(|e| panic!("{e}")).size(&[]);
            assert_eq!(size, Some(Size { threads, n_byte: coop_bytes(tiles, shape) }), "{name}");
        }
    }

    #[test]
    fn cooperative_matrices_do_their_cases() {
        for shape in CoopShape::ALL {
            let caps = Caps {
                subgroup: Some((shape.lanes, shape.lanes)),
                f16: true,
                coop: Some(shape),
                max_threads: 1024,
                max_workgroup_bytes: 48 << 10,
                ..Caps::base()
            };
            let (cases, mut n_lack) = (coop_cases(), 0);
            for case in &cases {
                let steps = match case.placed(&caps) {
                    Err(DispatchError::Lacks { .. }) if shape.side == 8 => {
                        n_lack += 1;
                        continue;
                    }
                    steps => steps.unwrap_or_else(|e| panic!("{}: {e}", case.label)),
                };
                let names: Vec<&str> = steps.iter().map(|s| s.step.dispatch.kernel.name).collect();
                assert!(names.iter().any(|n| n.starts_with("attention_coop")), "{}: {names:?}", case.label);
            }
            assert!(5 * n_lack < cases.len(), "{shape:?}: {n_lack} of {}", cases.len());
        }
    }
}
