//! Drafts of the next tokens: by a smaller model, which has a sequence for each of a few requests, or by lookup.

use chaski_runtime::gpu::Memory;
use chaski_schedule::RequestId;

use crate::error::ModelError;
use crate::run::{DraftModel, Speculation};

/// Where drafts come from.
#[derive(Default)]
pub(super) struct Drafter {
    /// The draft model; without one, prompt lookup drafts.
    model: Option<DraftModel>,
    /// The request that last used each of its sequences, and when.
    users: Vec<Option<(RequestId, u64)>>,
    n_use: u64,
}

impl Drafter {
    pub(super) fn new(model: Option<DraftModel>) -> Self {
        let n_seq = model.as_ref().map_or(0, DraftModel::n_seq);
        Drafter { model, users: vec![None; n_seq], n_use: 0 }
    }

    /// Memory of the draft model.
    pub(super) fn memory(&self) -> Option<Memory> {
        self.model.as_ref().map(DraftModel::memory)
    }

    /// At most `n` tokens that may follow those of a request; none where that is less than a draft must have.
    ///
    /// # Errors
    /// Errors of the draft model's device.
    pub(super) async fn draft(
        &mut self,
        id: RequestId,
        speculation: Speculation,
        tokens: &[u32],
        n: usize,
    ) -> Result<Vec<u32>, ModelError> {
        if n < speculation.n_min {
            return Ok(Vec::new());
        }
        let seq = self.sequence(id);
        let mut drafted = match &mut self.model {
            Some(model) => speculation.draft(model, seq, tokens, n).await?,
            None => speculation.look_up(tokens, n),
        };
        if drafted.len() < speculation.n_min {
            drafted.clear();
        }
        Ok(drafted)
    }

    /// The draft model's sequence for a request: its own, or the one that was not used for longest.
    fn sequence(&mut self, id: RequestId) -> usize {
        self.n_use += 1;
        let used = |user: &Option<(RequestId, u64)>| user.map_or(0, |(_, at)| at);
        let own = self.users.iter().position(|user| user.is_some_and(|(user, _)| user == id));
        let oldest = || (0..self.users.len()).min_by_key(|i| used(&self.users[*i]));
        let seq = own.or_else(oldest).unwrap_or(0);
        if let Some(user) = self.users.get_mut(seq) {
            *user = Some((id, self.n_use));
        }
        seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_its_sequence_while_few_draft() {
        let mut drafter = Drafter { users: vec![None; 2], ..Drafter::default() };
        let mut of = |id| drafter.sequence(RequestId(id));
        let found = [of(7), of(8), of(7), of(9), of(9), of(7), of(8)];
        assert_eq!(found, [0, 1, 0, 1, 1, 0, 1], "the oldest gives way");
        assert_eq!(Drafter::default().sequence(RequestId(7)), 0, "lookup needs none");
    }

    #[test]
    fn drafts_that_would_be_too_short_are_not_begun() {
        let mut drafter = Drafter { users: vec![None; 2], ..Drafter::default() };
        let speculation = Speculation { n_min: 3, n_match: 1, ..Speculation::default() };
        let mut of = |n| {
            let drafted = drafter.draft(RequestId(7), speculation, &[1, 2, 3, 4, 1], n);
            (pollster::block_on(drafted).expect("lookup cannot fail"), drafter.n_use)
        };
        assert_eq!(of(2), (vec![], 0), "no sequence is taken from another request");
        assert_eq!(of(3), (vec![2, 3, 4], 1));
    }
}
