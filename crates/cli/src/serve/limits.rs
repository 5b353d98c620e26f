//! Limits of requests, which the configuration file can change while a server runs.

use std::time::Duration;

use chaski_server::{Bounds, KeyLimits};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LimitArgs {
    /// Requests that may wait [default: 4 for each of --parallel, at least 16]
    #[arg(long, value_name = "N")]
    max_queue: Option<usize>,
    /// Tokens of prompts that may wait; one request is taken whatever its prompt [default: any number]
    #[arg(long, value_name = "N")]
    max_queued_tokens: Option<usize>,
    /// Seconds that a request may wait for a place [default: any number]
    #[arg(long, value_name = "SECONDS")]
    max_queue_time: Option<u64>,
    /// Most tokens of a prompt, or of a text to embed or score [default: those of the context]
    #[arg(long, value_name = "N")]
    max_prompt: Option<usize>,
    /// Largest body of a request, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 32)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=4096))]
    max_body: u64,
    /// Seconds until the first token of an answer [default: no limit]
    #[arg(long, value_name = "SECONDS")]
    request_timeout: Option<u64>,
    /// Requests that each key may have at once
    #[arg(long, value_name = "N")]
    key_requests: Option<u32>,
    /// Requests that each key may have in a minute
    #[arg(long, value_name = "N")]
    key_rpm: Option<u32>,
    /// Tokens of prompts and answers that each key may have in a minute
    #[arg(long, value_name = "N")]
    key_tpm: Option<u32>,
    /// Seconds without a sign of life of a model with open requests after which /health says so
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    stall: u64,
}

impl LimitArgs {
    /// Requests that may wait for each model.
    pub(crate) fn max_waiting(&self, parallel: u32) -> usize {
        self.max_queue.unwrap_or_else(|| (4 * parallel as usize).max(16))
    }

    /// Limits of the server.
    pub(super) fn bounds(&self) -> Bounds {
        let mut bounds = Bounds::default();
        bounds.keys = KeyLimits {
            requests: self.key_requests,
            requests_per_minute: self.key_rpm,
            tokens_per_minute: self.key_tpm,
        };
        bounds.max_body = (self.max_body as usize) << 20;
        bounds.request_timeout = self.request_timeout.map(Duration::from_secs);
        bounds.max_queue_time = self.max_queue_time.map(Duration::from_secs);
        (bounds.max_queued_tokens, bounds.max_prompt) = (self.max_queued_tokens, self.max_prompt);
        bounds.stall = Duration::from_secs(self.stall);
        bounds
    }
}
