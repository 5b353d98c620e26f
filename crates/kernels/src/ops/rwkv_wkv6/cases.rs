//! Cases of `rwkv_wkv6`.

use ggml_format::GgmlType;

use super::RwkvWkv6;
use super::reference::{Operands, rwkv_wkv6};
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
    let mut call = RwkvWkv6 {
        k: of,
        v: of,
        r: of,
        tf: tensor([s, heads, 1, 1]),
        td: of,
        s: tensor([s, s, heads, n_seq]).permute([1, 0, 2, 3]),
        y: tensor([1; 4]),
    };
    call.y = tensor([call.n_out(), 1, 1, 1]);
    let o = Operands {
        k: Data::random(call.k, 1, -1.0, 1.0),
        v: Data::random(call.v, 2, -1.0, 1.0),
        r: Data::random(call.r, 3, -1.0, 1.0),
        tf: Data::random(call.tf, 4, -1.0, 1.0),
        td: Data::random(call.td, 5, 0.1, 0.33),
        s: Data::random(call.s, 9, -1.0, 1.0),
    };
    let values = rwkv_wkv6(&o);
    let named = [("k", &o.k), ("v", &o.v), ("r", &o.r), ("tf", &o.tf), ("td", &o.td), ("s", &o.s)];
    let buffers = named.map(|(name, d)| d.input(name)).into();
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, 1e-10)
}
