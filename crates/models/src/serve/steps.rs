//! Records of steps, for measurements.

use std::collections::VecDeque;
use std::time::Duration;

use chaski_schedule::{Step, Want};

/// Kind of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Its rows are of prompts, or of texts without answers.
    Prefill,
    /// Each row is the next token of an answer, or of a draft.
    Decode,
    /// Both.
    Mixed,
}

impl StepKind {
    /// A sequence with a row that only fills the cache, or is read, is a prompt.
    pub(super) fn of(step: &Step) -> StepKind {
        let (mut has_prompt, mut has_answer) = (false, false);
        for rows in step.rows.chunk_by(|a, b| a.seq == b.seq) {
            let is_prompt = rows.iter().any(|row| matches!(row.want, Want::Nothing | Want::Hidden));
            has_prompt |= is_prompt;
            has_answer |= !is_prompt;
        }
        match (has_prompt, has_answer) {
            (true, true) => StepKind::Mixed,
            (true, false) => StepKind::Prefill,
            (false, _) => StepKind::Decode,
        }
    }
}

/// A step that was read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepRecord {
    /// Its kind.
    pub kind: StepKind,
    /// Tokens in it.
    pub n_row: usize,
    /// Number of its runs.
    pub n_repeat: u32,
    /// Time of each run: from the end of the one before, or the submission to an idle device, to its outputs.
    pub time: Duration,
}

/// Records that are kept.
const MOST: usize = 1 << 15;

/// Records that nobody has taken. The oldest go where there are too many.
#[derive(Debug, Default)]
pub(super) struct Steps(VecDeque<StepRecord>);

impl Steps {
    pub(super) fn add(&mut self, record: StepRecord) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(record);
    }

    pub(super) fn take(&mut self) -> Vec<StepRecord> {
        std::mem::take(&mut self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use chaski_schedule::{Input, Row};

    use super::*;

    #[test]
    fn a_step_is_of_prompts_of_answers_or_both() {
        use Want::{Choose, ChooseMasked, Hidden, Logits, Nothing};
        for (wants, kind) in [
            (&[&[Nothing, Nothing, Choose][..]][..], StepKind::Prefill),
            (&[&[Hidden], &[Nothing]], StepKind::Prefill),
            (&[&[Choose], &[ChooseMasked], &[Logits, Logits]], StepKind::Decode),
            (&[&[Choose], &[Nothing, Nothing]], StepKind::Mixed),
        ] {
            let row = |seq: usize, want| Row {
                seq: seq as u32,
                pos: 0,
                components: None,
                input: Input::Chosen,
                want,
            };
            let rows = wants
                .iter()
                .enumerate()
                .flat_map(|(seq, wants)| wants.iter().map(move |want| row(seq, *want)));
            let step = Step { rows: rows.collect(), ..Step::default() };
            assert_eq!(StepKind::of(&step), kind, "{wants:?}");
        }
    }

    #[test]
    fn the_last_records_are_kept() {
        let mut steps = Steps::default();
        let record = |n_row| StepRecord { kind: StepKind::Decode, n_row, n_repeat: 1, time: Duration::ZERO };
        (0..MOST + 2).for_each(|n| steps.add(record(n)));
        let taken = steps.take();
        assert_eq!((taken.len(), taken[0].n_row, steps.take().len()), (MOST, 2, 0));
    }
}
