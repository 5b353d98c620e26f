//! Cases of attention in the syntax of ggml's test program, and random ones.
//!
//! In ggml any mask decides which keys a column sees; here positions do. Without a mask (`mask=0`) every column sees
//! all keys: it is at the position of the last. With one, columns are the last of the keys, as in a prompt, and ALiBi
//! uses distances. Sequences over the same keys share their pages. Layouts of ggml's (`permute`, `kv_view`) become
//! larger pages; where ggml may choose its precision (`prec=def`), tiles are in f16. Masks that give each column its
//! own keys, and layouts that no paged cache has, are cases of `attention_nd`.

use super::cases::{Setting, joined};
use crate::case::Case;
use crate::grid::{GridError, Params};
use crate::kv::KV_TYPES;
use crate::rng::Rng;
use chaski_graph::{Score, Warmth};
use ggml_format::GgmlType;

/// ggml allows 5e-4 throughout.
const EXACT: f64 = 1e-7;
/// Exponentials are rounded to f16.
const ROUNDED: f64 = 1e-6;

/// Channels of a key or value, padded to whole blocks.
fn channels(p: &Params, d: &'static str, ty: &'static str) -> Result<u32, GridError> {
    Ok(p.num::<u32>(d)?.next_multiple_of(p.ty(ty)?.block_len() as u32))
}

/// A case of ggml's.
pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (n_kv, n_key, n_col): (u32, u32, u32) = (p.num("nh")?, p.num("kv")?, p.num("nb")?);
    let [per_kv, n_seq] = p.list::<2>("nr23")?;
    let (d, d_v) = (channels(p, "hsk", "type_K")?, channels(p, "hsv", "type_V")?);
    let types = (p.ty("type_K")?, p.ty("type_V")?);
    let first = if p.flag("mask")? { n_key.saturating_sub(n_col) } else { n_key };
    let pos = |i: u32| (first + i).min(n_key - 1);
    let cols: Vec<_> = (0..n_seq).flat_map(|seq| (0..n_col).map(move |i| (seq, pos(i)))).collect();
    let f16_tiles = p.word("prec")? == "def";
    let plain = p.list("permute")? == [0, 1, 2, 3] && p.flag("kv_view")?;
    let setting = Setting {
        n_kv,
        d_v,
        types,
        score: Score {
            softcap: p.num("logit_softcap")?,
            max_bias: p.num("max_bias")?,
            sinks: p.flag("sinks")?,
            ..Score::scaled(1.0 / (d as f32).sqrt())
        },
        page: if plain { 32 } else { 64 },
        // About as many as plans use for one column (`SPLITS` in the runtime's plan of a whole model).
        splits: match (cols.len(), n_key) {
            (2.., _) | (_, ..=128) => 1,
            (_, ..=1024) => (64 / n_kv).clamp(1, 32),
            _ => (256 / n_kv).clamp(1, 32),
        },
        cols,
        f16_tiles,
        exact: f16_tiles,
        joined: true,
        shared: true,
        v_of_k: p.flag("v_is_view_of_k")?,
        ..Setting::new(per_kv * n_kv, n_kv, d, true, [])
    };
    let case = setting.case(joined, if f16_tiles { ROUNDED } else { EXACT });
    Ok(Case { label: p.to_string(), ..case })
}

/// Random heads, types, scores, sequences and positions.
pub(super) fn random(rng: &mut Rng) -> Case {
    let types = (rng.pick(KV_TYPES), rng.pick(KV_TYPES));
    let mut channels = |ty: GgmlType| match ty.block_len() {
        1 => 8 * (1 + rng.below(20)),
        n => n as u32 * (1 + rng.below(5)),
    };
    let (d, d_v) = (channels(types.0), channels(types.1));
    let (n_kv, per_kv) = (1 + rng.below(3), 1 + rng.below(9));
    let n_col = if rng.below(2) == 0 { 1 } else { 1 + rng.below(20) };
    let (n_seq, n_key) = (1 + rng.below(3), 1 + rng.below(200));
    let cols = (0..n_col).map(|_| (rng.below(n_seq), rng.below(n_key))).collect();
    let mut score = Score::scaled(1.0 / (d as f32).sqrt());
    let mut some = |one_in: u32| rng.below(one_in) == one_in - 1;
    if some(4) {
        score.softcap = 3.0;
    }
    if some(4) {
        score.max_bias = 8.0;
    }
    if some(4) {
        score.warmth = Some(Warmth { by: 0.2, run: 5 });
    }
    score.sinks = some(4);
    let shared = some(2);
    if some(4) {
        score.window = 1 + rng.below(60);
    }
    let setting = Setting {
        d_v,
        types,
        score,
        page: 32 << rng.below(2),
        splits: if n_col == 1 { 1 + rng.below(9) } else { 1 },
        cols,
        joined: true,
        shared,
        ..Setting::new(n_kv * per_kv, n_kv, d, true, [])
    };
    let label = format!("random {setting:?}");
    Case { label, ..setting.case(joined, EXACT) }
}
