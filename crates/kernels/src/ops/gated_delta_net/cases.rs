//! Cases of `gated_delta_net`.

use ggml_format::GgmlType;

use super::GatedDeltaNet;
use super::reference::{Operands, gated_delta_net};
use crate::case::Case;
use crate::data::{Data, Output, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Sizes of a case.
struct Sizes {
    s: u32,
    /// Heads of q and k.
    heads: u32,
    /// Heads of v for each of them.
    repeat: u32,
    n_tok: u32,
    n_seq: u32,
    n_snap: u32,
    /// Tokens lie within heads.
    permuted: bool,
    /// One decay per channel.
    fine: bool,
}

/// No heads, which the grid cannot express.
pub(super) fn by_hand() -> Vec<Case> {
    let of = Sizes { s: 8, heads: 1, repeat: 0, n_tok: 3, n_seq: 2, n_snap: 1, permuted: false, fine: false };
    vec![case("no heads".into(), &of)]
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    p.ty("type")?;
    let sizes = Sizes {
        s: p.num("head_size")?,
        heads: p.num("head_count")?,
        repeat: p.num("v_repeat")?,
        n_tok: p.num("n_seq_tokens")?,
        n_seq: p.num("n_seqs")?,
        n_snap: p.num("K")?,
        permuted: p.flag("permuted")?,
        fine: p.flag("kda")?,
    };
    Ok(case(p.to_string(), &sizes))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let n_tok = 1 + rng.below(9);
    let z = Sizes {
        s: 1 + rng.below(80),
        heads: 1 + rng.below(4),
        repeat: 1 + rng.below(3),
        n_tok,
        n_seq: 1 + rng.below(3),
        n_snap: 1 + rng.below(n_tok),
        permuted: rng.below(2) == 0,
        fine: rng.below(2) == 0,
    };
    let Sizes { s, heads, repeat, n_seq, n_snap, permuted, fine, .. } = z;
    case(format!("random {s}x{heads}x{repeat} {n_tok}x{n_seq} {n_snap} {permuted} {fine}"), &z)
}

fn case(label: String, z: &Sizes) -> Case {
    let tensor = |ne| Tensor::new(GgmlType::F32, ne);
    let heads = |n| {
        if z.permuted {
            tensor([z.s, z.n_tok, n, z.n_seq]).permute([0, 2, 1, 3])
        } else {
            tensor([z.s, n, z.n_tok, z.n_seq])
        }
    };
    let n_v = z.heads * z.repeat;
    let mut call = GatedDeltaNet {
        q: heads(z.heads),
        k: heads(z.heads),
        v: heads(n_v),
        g: tensor([if z.fine { z.s } else { 1 }, n_v, z.n_tok, z.n_seq]),
        beta: tensor([1, n_v, z.n_tok, z.n_seq]),
        s: tensor([z.s, z.s, n_v, z.n_seq]),
        n_snap: z.n_snap,
        y: tensor([1; 4]),
    };
    call.y = tensor([call.n_out(), 1, 1, 1]);
    // Models normalise keys and queries; the rule forgets with shorter ones and diverges with longer ones.
    let unit = 1.2 / (z.s as f32).sqrt();
    let o = Operands {
        q: Data::random(call.q, 1, -unit, unit),
        k: Data::random(call.k, 2, -unit, unit),
        v: Data::random(call.v, 3, -1.0, 1.0),
        g: Data::random(call.g, 4, -0.6, -0.01),
        beta: Data::random(call.beta, 5, 0.1, 0.33),
        s: Data::random(call.s, 6, -1.0, 1.0),
    };
    let values = gated_delta_net(&call, &o);
    let named = [("q", &o.q), ("k", &o.k), ("v", &o.v), ("g", &o.g), ("beta", &o.beta), ("s", &o.s)];
    let buffers = named.map(|(name, d)| d.input(name)).into();
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, 1e-10)
}
