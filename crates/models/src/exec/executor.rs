//! The device as seen by the service.

use std::sync::Arc;

use chaski_runtime::{RowInput, RuntimeError};
use chaski_schedule::{Change, Found, Limits, Step};
use chaski_text::Sampler;

use ggml_format::MaybeSend;

use crate::error::ModelError;
use crate::heads::Heads;

/// The outputs of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// Chosen tokens: of all choosing rows (masked ones included), in order, repetition by repetition. An out-of-range
    /// id means that no logit was finite.
    pub chosen: Vec<u32>,
    /// Logits of the rows that want them, in order: `[n_row, n_vocab]`.
    pub logits: Vec<f32>,
    /// Final hidden states of the rows that want them, in order: `[n_row, n_embd]`.
    pub hidden: Vec<f32>,
}

impl Outputs {
    /// Appends the outputs of the next run.
    pub(crate) fn append(&mut self, next: Outputs) {
        self.chosen.extend(next.chosen);
        self.logits.extend(next.logits);
        self.hidden.extend(next.hidden);
    }
}

/// A request that starts or resumes in a slot.
#[derive(Copy, Clone, Debug)]
pub struct Start<'a> {
    /// The slot.
    pub seq: u32,
    /// The sampler of choosing rows; `None` if the service samples from logits.
    pub sampler: Option<&'a Sampler>,
    /// Tokens of the sequence, prompt and answer, for penalties.
    pub tokens: &'a [u32],
    /// Number of draws made for the request; the next draw has this number, wherever the earlier ones were made.
    pub n_drawn: usize,
    /// LoRA scales, as returned by [`Executor::lora`].
    pub lora: &'a [f32],
}

/// Runs the steps of a scheduler: on a GPU, the CPU, or several of them.
///
/// Futures are those of the implementation rather than boxed: the driver is generic over one executor, and neither
/// [`Handle`](crate::serve::Handle) nor [`Answer`](crate::serve::Answer) names it, so no trait object is needed.
pub trait Executor: MaybeSend {
    /// Capacities for the scheduler, except for the queue.
    fn limits(&self) -> Limits;

    /// Logits per row.
    fn n_vocab(&self) -> usize;

    /// Inputs other than tokens that it takes; by default none.
    fn row_input(&self) -> RowInput {
        RowInput::default()
    }

    /// Layers after the pooling of embeddings; by default none.
    fn heads(&self) -> Arc<Heads> {
        Arc::default()
    }

    /// LoRA scales for a request: those it specifies, or the executor's defaults.
    ///
    /// # Errors
    /// The number of scales differs from the number of LoRAs; only that request fails.
    fn lora(&self, asked: Option<&[f32]>) -> Result<Vec<f32>, ModelError>;

    /// Accepts a sampler that the device supports, with and without masks ([`Self::mask`]).
    ///
    /// # Errors
    /// The reason why it does not; the service then samples from logits.
    fn can_choose(&self, sampler: &Sampler) -> Result<(), &'static str>;

    /// Sets up a slot for a request, for steps submitted from now on.
    ///
    /// # Errors
    /// As for [`Self::submit`].
    fn start(&mut self, start: Start<'_>) -> Result<(), ModelError>;

    /// Makes a change between earlier steps and those submitted from now on. [`Change::Start`] goes to [`Self::start`]
    /// instead.
    ///
    /// # Errors
    /// As for [`Self::submit`].
    fn change(&mut self, change: &Change) -> Result<(), ModelError>;

    /// Submits a step. It may start only when it is read.
    ///
    /// # Errors
    /// A step without rows or beyond the limits, or with inputs that the executor does not take ([`Self::row_input`]).
    /// If the device fails: then [`Self::recover`] is called, and no step is read before that.
    fn submit(&mut self, step: &Step) -> Result<(), ModelError>;

    /// Provides the masks of the last submitted step, of all rows with
    /// [`Want::ChooseMasked`](chaski_schedule::Want::ChooseMasked) in order: bit `t % 32` of word `t / 32` is 1 if
    /// token `t` is allowed. Until then the step runs only up to its logits, no other step is submitted, and it is not
    /// read.
    ///
    /// # Errors
    /// As for [`Self::submit`].
    fn mask(&mut self, masks: &[u32]) -> Result<(), ModelError>;

    /// Outputs of the oldest unread step. If the executor computes on its caller's thread, this future yields to other
    /// tasks.
    ///
    /// # Errors
    /// There is no such step; otherwise as for [`Self::submit`].
    fn read(&mut self) -> impl Future<Output = Result<Outputs, ModelError>> + MaybeSend;

    /// Discards everything that requests have on the device, including unread steps.
    fn forget(&mut self);

    /// Rows per step that run in a fraction of a second, so that requests do not wait long for each other and cancelled
    /// ones end soon; more if a request is alone.
    fn rows(&self, is_alone: bool) -> usize;

    /// Maximum number of submitted, unread steps.
    fn max_under_way(&self) -> usize;

    /// After an error of [`Self::read`]: true if the executor is as it was before that step, which it drops with all
    /// later ones. The same rows can be submitted again. By default false.
    fn undo(&mut self, _error: &ModelError) -> bool {
        false
    }

    /// Restarts after a device error: without steps, slots and pages, with the same capacities and samplers.
    ///
    /// # Errors
    /// The executor cannot recover, so no request can continue. This is the default, with the original error.
    fn recover(
        &mut self,
        error: Arc<ModelError>,
    ) -> impl Future<Output = Result<(), Arc<ModelError>>> + MaybeSend {
        async { Err(error) }
    }

    /// Identifies models and caches with compatible sessions.
    fn session_name(&self, _lora: &[f32]) -> String {
        String::new()
    }

    /// Bytes of a prefix of `n_token` tokens.
    fn session_bytes(&self, _n_token: usize) -> u64 {
        0
    }

    /// The first `n_token` tokens in pages, and in their snapshot if they have one, as bytes. No step is under way, and
    /// no request has the slot `seq`, whose state is overwritten.
    ///
    /// # Errors
    /// Device errors; by default there are no sessions.
    fn read_prefix(
        &mut self,
        _seq: u32,
        _found: &Found,
        _n_token: usize,
    ) -> impl Future<Output = Result<Vec<u8>, ModelError>> + MaybeSend {
        async { Err(no_sessions()) }
    }

    /// Writes the result of [`Self::read_prefix`] to these pages, and the state outside them to the snapshot of
    /// `found`. No step is under way, and no request has the slot `seq`.
    ///
    /// # Errors
    /// Device errors; by default there are no sessions.
    fn write_prefix(
        &mut self,
        _seq: u32,
        _found: &Found,
        _pages: &[u32],
        _n_token: usize,
        _bytes: &[u8],
    ) -> impl Future<Output = Result<(), ModelError>> + MaybeSend {
        async { Err(no_sessions()) }
    }
}

/// The error of an executor without sessions.
fn no_sessions() -> ModelError {
    RuntimeError::Limit { what: "sessions of the executor", found: 1, limit: 0 }.into()
}
