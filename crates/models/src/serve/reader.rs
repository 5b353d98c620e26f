//! The driver's record of a prompt whose rows are read.

use chaski_schedule::{self as schedule, Chooser, RequestId, Salt};
use ggml_format::{MaybeSend, MaybeSync};

use super::error::ServeError;
use super::shared::Open;
use crate::exec::Start;

/// Takes the rows of a prompt, on the driver's thread: only the result goes to the caller.
pub(super) trait Sink: MaybeSend + MaybeSync {
    /// The prompt begins to run, after a preemption or a device loss again.
    fn started(&mut self);

    /// Takes the row at a position. After a preemption or a device loss rows begin anew, at the first.
    fn row(&mut self, at: usize, values: &[f32]);

    /// Sends the result after the last row, or the reason for its lack.
    fn end(&mut self, result: Result<(), ServeError>);
}

/// A prompt whose rows are read, from its handle to its last row.
pub(super) struct Reader {
    pub(super) id: RequestId,
    pub(super) prompt: Vec<u32>,
    /// [`Chooser::Nobody`].
    pub(super) chooser: Chooser,
    pub(super) priority: i32,
    pub(super) client: u64,
    pub(super) salt: Salt,
    pub(super) sink: Box<dyn Sink>,
    /// LoRA scales; `None`: the default scales, until the driver has it.
    pub(super) lora: Option<Vec<f32>>,
    pub(super) open: Open,
}

impl Reader {
    /// The scheduler's request, which takes the prompt.
    pub(super) fn request(&mut self, group: u64) -> schedule::Request {
        schedule::Request {
            id: self.id,
            prompt: std::mem::take(&mut self.prompt),
            embeddings: Vec::new(),
            max_tokens: 1,
            chooser: self.chooser,
            group,
            salt: self.salt,
            priority: self.priority,
            client: self.client,
        }
    }

    /// Sets it up in a slot of the executor.
    pub(super) fn start(&self, seq: u32) -> Start<'_> {
        Start { seq, sampler: None, tokens: &[], n_drawn: 0, lora: self.lora.as_deref().unwrap_or_default() }
    }

    /// Sends the end. The request is no longer open when it arrives.
    pub(super) fn end(self, result: Result<(), ServeError>) {
        let Reader { mut sink, open, .. } = self;
        drop(open);
        sink.end(result);
    }
}
