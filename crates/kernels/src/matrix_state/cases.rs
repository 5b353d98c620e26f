//! Sizes of cases: values of a head, heads, tokens of a sequence, sequences.

use crate::case::Case;
use crate::grid::{GridError, Params};
use crate::rng::Rng;

/// Makes the case of such sizes.
type MakeCase = fn(String, [u32; 4]) -> Case;

/// A case without heads, which the grid cannot express.
pub(crate) fn by_hand(case: MakeCase) -> Vec<Case> {
    vec![case("no heads".into(), [8, 0, 3, 2])]
}

pub(crate) fn of(p: &Params, case: MakeCase) -> Result<Case, GridError> {
    p.ty("type")?;
    let sizes = [p.num("head_size")?, p.num("head_count")?, p.num("n_seq_tokens")?, p.num("n_seqs")?];
    Ok(case(p.to_string(), sizes))
}

pub(crate) fn random(rng: &mut Rng, case: MakeCase) -> Case {
    let sizes = [1 + rng.below(90), 1 + rng.below(5), 1 + rng.below(9), 1 + rng.below(3)];
    case(format!("random {sizes:?}"), sizes)
}
