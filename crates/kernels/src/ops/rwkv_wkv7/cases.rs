//! Cases of `rwkv_wkv7`.

use ggml_format::GgmlType;

use super::RwkvWkv7;
use super::reference::{Operands, rwkv_wkv7};
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
    let mut call = RwkvWkv7 {
        r: of,
        w: of,
        k: of,
        v: of,
        a: of,
        b: of,
        s: tensor([s, s, heads, n_seq]),
        y: tensor([1; 4]),
    };
    call.y = tensor([call.n_out(), 1, 1, 1]);
    // Removed directions have a length of about 1 in models; longer ones would make states diverge.
    let unit = 0.5 / (s as f32).sqrt();
    let o = Operands {
        r: Data::random(call.r, 1, -1.0, 1.0),
        w: Data::random(call.w, 2, 0.1, 0.33),
        k: Data::random(call.k, 3, -1.0, 1.0),
        v: Data::random(call.v, 4, -1.0, 1.0),
        a: Data::random(call.a, 5, -unit, unit),
        b: Data::random(call.b, 6, -unit, unit),
        s: Data::random(call.s, 9, -1.0, 1.0),
    };
    let values = rwkv_wkv7(&o);
    let named = [("r", &o.r), ("w", &o.w), ("k", &o.k), ("v", &o.v), ("a", &o.a), ("b", &o.b), ("s", &o.s)];
    let buffers = named.map(|(name, d)| d.input(name)).into();
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, 1e-10)
}
