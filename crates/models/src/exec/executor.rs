//! The device as the service sees it.

use std::sync::Arc;

use chaski_schedule::{Change, Limits, Step};
use chaski_text::Sampler;

use ggml_format::MaybeSend;

use crate::error::ModelError;

/// The outputs of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// The chosen tokens: of all rows that choose, in order, then of all rows of the next repetition. An id beyond the
    /// vocabulary says that no logit was finite.
    pub chosen: Vec<u32>,
    /// Logits of the rows that want them, in order: `[n_row, n_vocab]`.
    pub logits: Vec<f32>,
    /// Final hidden states of the rows that want them, in order: `[n_row, n_embd]`.
    pub hidden: Vec<f32>,
}

impl Outputs {
    /// Adds the outputs of what ran next.
    pub(crate) fn append(&mut self, next: Outputs) {
        self.chosen.extend(next.chosen);
        self.logits.extend(next.logits);
        self.hidden.extend(next.hidden);
    }
}

/// A request that begins in a slot, or goes on there.
#[derive(Copy, Clone, Debug)]
pub struct Start<'a> {
    /// The slot.
    pub seq: u32,
    /// The sampler of the rows that choose; `None` if the service chooses from logits.
    pub sampler: Option<&'a Sampler>,
    /// The tokens of the sequence, prompt and answer, which penalties look back on.
    pub tokens: &'a [u32],
    /// Draws that were made for the request. The next draw is that of this number, wherever the earlier ones were made.
    pub n_drawn: usize,
    /// Scales of the LoRAs, as [`Executor::lora`] gave them.
    pub lora: &'a [f32],
}

/// Runs the steps of a scheduler: a GPU, the CPU, or several of them.
///
/// The futures are those of the implementation rather than boxes: the driver is made for one executor, and neither
/// [`Handle`](crate::serve::Handle) nor [`Answer`](crate::serve::Answer) names it, so nobody needs a trait object.
pub trait Executor: MaybeSend {
    /// Sizes that the scheduler works within, but for the requests that wait.
    fn limits(&self) -> Limits;

    /// Logits of a row.
    fn n_vocab(&self) -> usize;

    /// Scales of the LoRAs for a request: those that it asks for, or the executor's own.
    ///
    /// # Errors
    /// If the model has other LoRAs than there are scales; the request fails alone.
    fn lora(&self, asked: Option<&[f32]>) -> Result<Vec<f32>, ModelError>;

    /// Accepts a sampler that rows can choose by on the device.
    ///
    /// # Errors
    /// The reason why they cannot; the service then asks for logits and chooses itself.
    fn can_choose(&self, sampler: &Sampler) -> Result<(), &'static str>;

    /// Sets a slot up for a request. Applies to the steps that are submitted from now on.
    ///
    /// # Errors
    /// As for [`Self::submit`].
    fn start(&mut self, start: Start<'_>) -> Result<(), ModelError>;

    /// Makes a change before the steps that are submitted from now on, and after all earlier ones. [`Change::Start`] comes
    /// to [`Self::start`] instead.
    ///
    /// # Errors
    /// As for [`Self::submit`].
    fn change(&mut self, change: &Change) -> Result<(), ModelError>;

    /// Takes a step, after all earlier ones. It need not begin before it is read.
    ///
    /// # Errors
    /// If the device fails: then [`Self::recover`] is called, and no step is read before that.
    fn submit(&mut self, step: &Step) -> Result<(), ModelError>;

    /// The outputs of the oldest step that was not read. Where the executor computes on the thread of its caller, and that
    /// has other tasks, this future lets them run.
    ///
    /// # Errors
    /// As for [`Self::submit`].
    fn read(&mut self) -> impl Future<Output = Result<Outputs, ModelError>> + MaybeSend;

    /// Forgets everything that requests have on the device, steps that were not read included.
    fn forget(&mut self);

    /// Rows of a step that the device runs in a fraction of a second, so that no request waits long for another, and one that
    /// is cancelled ends soon.
    fn rows(&self) -> usize;

    /// Steps that may be submitted and not read.
    fn max_under_way(&self) -> usize;

    /// Begins again after an error of the device: without steps, slots and pages, with the same sizes and samplers.
    ///
    /// # Errors
    /// If it cannot: then no request can go on. That is the default, with the error that was found.
    fn recover(
        &mut self,
        error: Arc<ModelError>,
    ) -> impl Future<Output = Result<(), Arc<ModelError>>> + MaybeSend {
        async { Err(error) }
    }
}
