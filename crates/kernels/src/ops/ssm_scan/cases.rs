//! Cases of `ssm_scan`.

use ggml_format::GgmlType;

use super::SsmScan;
use super::reference::{Operands, ssm_scan};
use crate::case::Case;
use crate::data::{Data, Output, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Sizes of a case.
struct Sizes {
    s: u32,
    dim: u32,
    heads: u32,
    groups: u32,
    n_tok: u32,
    n_seq: u32,
    n_snap: u32,
    /// Mamba-1: one decay per state value.
    fine: bool,
    /// x, b and c are parts of one tensor, like the output of a convolution.
    joined: bool,
    /// States with weak decay.
    weak: bool,
    /// Some sequences continue states with out-of-range ids.
    lost: bool,
}

/// No heads, and out-of-range state ids, which the grid cannot express.
pub(super) fn by_hand() -> Vec<Case> {
    let some = Sizes {
        s: 16,
        dim: 4,
        heads: 4,
        groups: 2,
        n_tok: 5,
        n_seq: 3,
        n_snap: 2,
        fine: false,
        joined: false,
        weak: false,
        lost: true,
    };
    vec![case("lost".into(), &some), case("no heads".into(), &Sizes { heads: 0, ..some })]
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    p.ty("type")?;
    let dim = p.num("head_dim")?;
    let sizes = Sizes {
        s: p.num("d_state")?,
        dim,
        heads: p.num("n_head")?,
        groups: p.num("n_group")?,
        n_tok: p.num("n_seq_tokens")?,
        n_seq: p.num("n_seqs")?,
        n_snap: p.num("K")?,
        fine: dim == 1,
        joined: p.flag("xbc_overlap")?,
        weak: p.flag("weak_decay")?,
        lost: false,
    };
    Ok(case(p.to_string(), &sizes))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let groups = 1 + rng.below(3);
    let n_tok = 1 + rng.below(11);
    let sizes = Sizes {
        s: 1 + rng.below(100),
        dim: 1 + rng.below(9),
        heads: groups * (1 + rng.below(4)),
        groups,
        n_tok,
        n_seq: 1 + rng.below(3),
        n_snap: 1 + rng.below(n_tok),
        fine: rng.below(2) == 0,
        joined: rng.below(2) == 0,
        weak: rng.below(2) == 0,
        lost: rng.below(4) == 0,
    };
    let Sizes { s, dim, heads, n_seq, n_snap, fine, joined, weak, lost, .. } = sizes;
    let label =
        format!("random {s}x{dim}x{heads}/{groups} {n_tok}x{n_seq} {n_snap} {fine} {joined} {weak} {lost}");
    case(label, &sizes)
}

fn case(label: String, z: &Sizes) -> Case {
    let tensor = |ne| Tensor::new(GgmlType::F32, ne);
    let [x, b, c] = if z.joined {
        // Channels of x, then of b, then of c, for every token.
        let (n_x, n_b) = (z.dim * z.heads, z.s * z.groups);
        let all = n_x + 2 * n_b;
        let part = |at, inner: u32, outer| Tensor {
            ne: [inner, outer, z.n_tok, z.n_seq],
            stride: [1, inner, all, all * z.n_tok],
            offset: at,
            ..tensor([all, z.n_tok, z.n_seq, 1])
        };
        [part(0, z.dim, z.heads), part(n_x, z.s, z.groups), part(n_x + n_b, z.s, z.groups)]
    } else {
        let part = tensor([z.s, z.groups, z.n_tok, z.n_seq]);
        [tensor([z.dim, z.heads, z.n_tok, z.n_seq]), part, part]
    };
    let mut call = SsmScan {
        s: tensor([z.s, z.dim, z.heads, z.n_seq + 1]),
        x,
        dt: tensor([z.heads, z.n_tok, z.n_seq, 1]),
        a: tensor([if z.fine { z.s } else { 1 }, z.heads, 1, 1]),
        b,
        c,
        ids: Tensor::new(GgmlType::I32, [z.n_seq, 1, 1, 1]),
        n_snap: z.n_snap,
        y: tensor([1; 4]),
    };
    call.y = tensor([call.n_out(), 1, 1, 1]);
    let (low, high) = if z.weak { (-0.02, -0.001) } else { (-4.0, -0.1) };
    let mut ids: Vec<f32> = (0..z.n_seq).rev().map(|i| (i + 1) as f32).collect();
    if z.lost {
        ids.iter_mut().zip([1000.0, -1.0]).for_each(|(id, other)| *id = other);
    }
    let random = |t, seed| Data::random(t, seed, -1.0, 1.0);
    let joined = |t, seed| random(t, if z.joined { 2 } else { seed });
    let o = Operands {
        s: random(call.s, 1),
        x: joined(call.x, 2),
        dt: random(call.dt, 3),
        a: Data::random(call.a, 4, low, high),
        b: joined(call.b, 5),
        c: joined(call.c, 6),
        ids: Data::of(call.ids, &ids, 0),
    };
    let values = ssm_scan(&call, &o);
    let named =
        [("s", &o.s), ("x", &o.x), ("dt", &o.dt), ("a", &o.a), ("b", &o.b), ("c", &o.c), ("ids", &o.ids)];
    let buffers = named.map(|(name, d)| d.input(name)).into();
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, 1e-9)
}
