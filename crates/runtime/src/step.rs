//! Steps on any device: tokens that run together, and their outputs.

use crate::error::RuntimeError;

/// A token of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its sequence.
    pub seq: u32,
    /// The token; `None`: the last one chosen for the sequence by a column that chooses.
    pub token: Option<u32>,
    /// Its position in the sequence.
    pub pos: u32,
    /// Input row (`set_rows`) in place of the token's embedding; the token still selects per-layer embeddings, in
    /// families that have them.
    pub row: Option<u32>,
    /// Components of its position for RoPE with sections; `None`: all equal the position.
    pub components: Option<[u32; 3]>,
}

impl Column {
    /// A token.
    pub fn token(seq: u32, token: u32, pos: u32) -> Self {
        Column { seq, token: Some(token), pos, row: None, components: None }
    }

    /// The last token chosen for the sequence.
    pub fn chosen(seq: u32, pos: u32) -> Self {
        Column { seq, token: None, pos, row: None, components: None }
    }

    /// An input row in place of a token's embedding. Per-layer embeddings are those of token 0, which is padding in the
    /// families that have them.
    pub fn row(seq: u32, row: u32, pos: u32) -> Self {
        Column { row: Some(row), ..Column::token(seq, 0, pos) }
    }

    /// The same at a position with components.
    #[must_use]
    pub fn at(self, components: [u32; 3]) -> Self {
        Column { components: Some(components), ..self }
    }

    /// The column after `i` repetitions of its step.
    pub(crate) fn repeated(self, i: u32) -> Self {
        match i {
            0 => self,
            i => Column {
                token: None,
                pos: self.pos + i,
                row: None,
                components: self.components.map(|c| c.map(|p| p + i)),
                ..self
            },
        }
    }
}

/// Inputs other than tokens that a model takes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RowInput {
    /// Values per row of embeddings; 0 if the model takes none.
    pub width: u32,
    /// Positions may have three components: some RoPE has sections (M-RoPE).
    pub components: bool,
}

impl RowInput {
    /// Number of rows of `width` values each; at most `most`.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] for more rows than `most`, or any for a model that takes none; [`RuntimeError::Shape`]
    /// for values that are not whole rows.
    pub fn n_row(&self, values: &[f32], most: u32) -> Result<u32, RuntimeError> {
        let width = u64::from(self.width);
        let n_value = values.len() as u64;
        let found = n_value.div_ceil(width.max(1));
        let limit = if width == 0 { 0 } else { u64::from(most) };
        if found > limit {
            return Err(RuntimeError::Limit { what: "rows of embeddings", found, limit });
        }
        if n_value != found * width {
            let (what, found, expected) = ("values of rows", n_value, found * width);
            return Err(RuntimeError::Shape { what, found, expected });
        }
        Ok(found as u32)
    }

    /// Checks the number of components of a position.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] for three in a model without M-RoPE.
    pub fn check_components(&self, is_given: bool) -> Result<(), RuntimeError> {
        if is_given && !self.components {
            return Err(RuntimeError::Limit { what: "components of a position", found: 3, limit: 1 });
        }
        Ok(())
    }

    /// Checks that columns name some of `n_row` rows, and components below `n_ctx`.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`].
    pub fn check(&self, columns: &[Column], n_row: u32, n_ctx: u32) -> Result<(), RuntimeError> {
        let most = |of: fn(&Column) -> Option<u32>| {
            columns.iter().filter_map(of).max().map_or(0, |n| u64::from(n) + 1)
        };
        self.check_components(columns.iter().any(|c| c.components.is_some()))?;
        for (what, found, limit) in [
            ("rows of embeddings", most(|c| c.row), n_row),
            ("positions of a component", most(|c| c.components?.into_iter().max()), n_ctx),
        ] {
            if found > u64::from(limit) {
                return Err(RuntimeError::Limit { what, found, limit: limit.into() });
            }
        }
        Ok(())
    }
}

/// The output of a column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnOutput {
    /// None.
    Nothing,
    /// The id of the next token of its sequence, from the sequence's sampler.
    Choice,
    /// The same among the tokens that a mask allows, which is provided after the step.
    MaskedChoice,
    /// Its logits.
    Logits,
    /// Its final hidden state: the result of the last norm, the input of the output projection.
    Hidden,
}

impl ColumnOutput {
    /// True for both kinds of choices.
    pub(crate) fn is_choice(self) -> bool {
        matches!(self, ColumnOutput::Choice | ColumnOutput::MaskedChoice)
    }
}

/// The outputs of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutputs {
    /// Chosen tokens: of all choosing columns, in order, repetition by repetition. An out-of-range id means that no
    /// logit was finite.
    pub chosen: Vec<u32>,
    /// Logits of all columns that request them, in order: `[n, n_vocab]`.
    pub logits: Vec<f32>,
    /// Hidden states of all columns that request them, in order: `[n, n_embd]`.
    pub hidden: Vec<f32>,
}

/// Checks that the recurrent state of each sequence, at this many tokens, can continue with its columns, which are
/// contiguous and in order.
pub(crate) fn check_runs(
    columns: &[Column],
    state_at: impl Fn(u32) -> Option<u32>,
) -> Result<(), RuntimeError> {
    let mut seen = Vec::new();
    for run in columns.chunk_by(|a, b| a.seq == b.seq) {
        let Column { seq, pos, .. } = run[0];
        let at = state_at(seq);
        if pos > 0 && at != Some(pos) {
            return Err(RuntimeError::State { found: at, pos });
        }
        if seen.contains(&seq) {
            return Err(RuntimeError::Limit { what: "parts of a sequence in a step", found: 2, limit: 1 });
        }
        seen.push(seq);
        for two in run.windows(2) {
            if two[1].pos != two[0].pos + 1 {
                return Err(RuntimeError::State { found: Some(two[0].pos + 1), pos: two[1].pos });
            }
        }
    }
    Ok(())
}

/// Checks that the columns are whole texts, each of a sequence of its own, as encoders need them.
pub(crate) fn check_texts(columns: &[Column]) -> Result<(), RuntimeError> {
    let mut seen = Vec::new();
    for text in columns.chunk_by(|a, b| a.seq == b.seq) {
        let wrong = text.iter().zip(0..).find(|(c, pos)| c.pos != *pos).map(|(c, _)| c);
        match wrong.or(text.first().filter(|c| seen.contains(&c.seq))) {
            Some(c) => return Err(RuntimeError::Text { pos: c.pos }),
            None => seen.push(text[0].seq),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_encoders_are_whole_and_of_sequences_of_their_own() {
        let check = |columns: &[(u32, u32)]| {
            let columns: Vec<Column> =
                columns.iter().map(|(seq, pos)| Column::token(*seq, 7, *pos)).collect();
            check_texts(&columns).map_err(|e| e.to_string())
        };
        assert_eq!(check(&[(2, 0), (2, 1), (0, 0), (1, 0), (1, 1)]), Ok(()));
        for (columns, pos) in
            [(&[(0, 1), (0, 2)][..], 1), (&[(0, 0), (0, 2)], 2), (&[(0, 0), (1, 0), (0, 0)], 0)]
        {
            let what = "the model is an encoder, which takes a text at once: found a token at position";
            assert_eq!(check(columns), Err(format!("{what} {pos} that does not follow the one before")));
        }
    }
}
