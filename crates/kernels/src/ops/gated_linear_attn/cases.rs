//! Cases of `gated_linear_attn`.

use ggml_format::GgmlType;

use super::GatedLinearAttn;
use super::reference::{Operands, gated_linear_attn};
use crate::case::Case;
use crate::data::{Data, Output, value_case};
use crate::grid::{GridError, Params};
use crate::matrix_state::cases;
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn by_hand() -> Vec<Case> {
    cases::by_hand(case)
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    cases::of(p, case)
}

pub(super) fn random(rng: &mut Rng) -> Case {
    cases::random(rng, case)
}

/// A case with heads of `s` values, heads, tokens of a sequence, sequences.
fn case(label: String, [s, heads, n_tok, n_seq]: [u32; 4]) -> Case {
    let tensor = |ne| Tensor::new(GgmlType::F32, ne);
    let of = tensor([s, heads, n_tok * n_seq, 1]);
    let mut call = GatedLinearAttn {
        k: of,
        v: of,
        q: of,
        g: of,
        s: tensor([s, s, heads, n_seq]).permute([1, 0, 2, 3]),
        scale: 0.125,
        y: tensor([1; 4]),
    };
    call.y = tensor([call.n_out(), 1, 1, 1]);
    let o = Operands {
        k: Data::random(call.k, 1, -1.0, 1.0),
        v: Data::random(call.v, 2, -1.0, 1.0),
        q: Data::random(call.q, 3, -1.0, 1.0),
        g: Data::random(call.g, 4, 0.1, 0.33),
        s: Data::random(call.s, 9, -1.0, 1.0),
    };
    let values = gated_linear_attn(call.scale, &o);
    let named = [("k", &o.k), ("v", &o.v), ("q", &o.q), ("g", &o.g), ("s", &o.s)];
    let buffers = named.map(|(name, d)| d.input(name)).into();
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, 1e-10)
}
