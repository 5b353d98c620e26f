//! A model that makes embeddings, on a thread of its own.

use std::sync::mpsc;
use std::thread;

use chaski::{EmbedOptions, Embedding, Engine};
use tokio::sync::oneshot;

use crate::error::{ApiError, Kind};

/// Embeds one text after another. Requests wait in a queue of limited length.
pub(crate) struct Embedder {
    jobs: mpsc::SyncSender<Job>,
    thread: thread::JoinHandle<()>,
}

struct Job {
    tokens: Vec<u32>,
    options: EmbedOptions,
    reply: oneshot::Sender<Result<Embedding, chaski::Error>>,
}

impl Embedder {
    /// Starts the thread, which ends with this.
    ///
    /// # Errors
    /// [`chaski::Error::Thread`].
    pub(crate) fn spawn(mut engine: Engine, max_waiting: usize) -> Result<Embedder, chaski::Error> {
        let (jobs, queue) = mpsc::sync_channel::<Job>(max_waiting.max(1));
        let work = move || {
            while let Ok(Job { tokens, options, reply }) = queue.recv() {
                // Whoever left needs no answer.
                if !reply.is_closed() {
                    let _ = reply.send(pollster::block_on(engine.embed_tokens(&tokens, &options)));
                }
            }
        };
        let thread = thread::Builder::new().name("embedder".into()).spawn(work);
        Ok(Embedder { jobs, thread: thread.map_err(chaski::Error::Thread)? })
    }

    /// Waits until the thread has freed the model.
    pub(crate) fn join(self) {
        let Embedder { jobs, thread } = self;
        drop(jobs);
        // A panic has been printed.
        drop(thread.join());
    }

    /// The embedding of tokens.
    ///
    /// # Errors
    /// [`Kind::Full`] if the queue is; errors of the model.
    pub(crate) async fn embed(&self, tokens: Vec<u32>, options: EmbedOptions) -> Result<Embedding, ApiError> {
        let (reply, answer) = oneshot::channel();
        let ended = || ApiError::new(Kind::Internal, "the model's thread has ended");
        self.jobs.try_send(Job { tokens, options, reply }).map_err(|error| match error {
            mpsc::TrySendError::Full(_) => ApiError::new(Kind::Full, "too many texts wait already").retry(1),
            mpsc::TrySendError::Disconnected(_) => ended(),
        })?;
        answer.await.map_err(|_| ended())?.map_err(ApiError::from)
    }
}
