//! Errors of requests: what happened, and how each dialect says it.

use chaski::errors::{ModelError, TokenizerError};
use chaski::serve::{Refused, ServeError};
use serde_json::{Map, Value, json};

/// Kinds of errors, the rows of [`Kind::row`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// JSON that cannot be read, or a field that is missing or wrong.
    Invalid,
    /// A prompt longer than the context.
    Context,
    /// A grammar or schema that cannot be used.
    Grammar,
    /// A missing or unknown key.
    Key,
    /// A host, an origin, or an endpoint that this key may not use.
    Forbidden,
    /// An unknown path.
    Path,
    /// A method that the path does not have.
    Method,
    /// An unknown model.
    Model,
    /// A body that does not arrive, or an answer that does not begin, in time.
    Timeout,
    /// A body that is too large.
    Large,
    /// A body that is packed in an unknown way.
    Encoding,
    /// More than a key may ask for.
    Limit,
    /// A full queue.
    Full,
    /// A model that is being loaded.
    Loading,
    /// A server that is about to end.
    Draining,
    /// Something that the model or the server cannot do.
    Unsupported,
    /// A hub of models that cannot be reached, or sends something else.
    Upstream,
    /// A lost device.
    DeviceLost,
    /// No memory left.
    Memory,
    /// A defect.
    Internal,
}

/// How an error is said.
pub(crate) struct Row {
    /// The status.
    pub(crate) status: u16,
    /// The status in Anthropic's dialect.
    anthropic_status: u16,
    /// `error.type` of OpenAI.
    openai: &'static str,
    /// `error.type` on llama-server's own paths.
    llama: &'static str,
    /// `error.code` of OpenAI.
    code: Option<&'static str>,
    /// `error.type` of Anthropic.
    anthropic: &'static str,
}

impl Kind {
    /// Its row.
    pub(crate) fn row(self) -> Row {
        let same = |status, openai, code, anthropic| Row {
            status,
            anthropic_status: status,
            openai,
            llama: openai,
            code,
            anthropic,
        };
        let invalid = "invalid_request_error";
        match self {
            Kind::Invalid => same(400, invalid, None, invalid),
            Kind::Context => Row {
                llama: "exceed_context_size_error",
                ..same(400, invalid, Some("context_length_exceeded"), invalid)
            },
            Kind::Grammar => same(400, invalid, Some("invalid_grammar"), invalid),
            Kind::Key => same(401, "authentication_error", Some("invalid_api_key"), "authentication_error"),
            Kind::Forbidden => same(403, "permission_error", None, "permission_error"),
            Kind::Path => same(404, "not_found_error", None, "not_found_error"),
            Kind::Method => same(405, invalid, Some("method_not_allowed"), invalid),
            Kind::Model => same(404, "not_found_error", Some("model_not_found"), "not_found_error"),
            Kind::Timeout => same(408, "timeout_error", Some("request_timeout"), "timeout_error"),
            Kind::Large => same(413, invalid, Some("request_too_large"), "request_too_large"),
            Kind::Encoding => same(415, invalid, Some("unsupported_encoding"), invalid),
            Kind::Limit => same(429, "rate_limit_error", Some("rate_limit_exceeded"), "rate_limit_error"),
            Kind::Full => Row {
                anthropic_status: 529,
                ..same(429, "server_error", Some("server_overloaded"), "overloaded_error")
            },
            Kind::Loading => same(503, "unavailable_error", Some("model_loading"), "overloaded_error"),
            Kind::Draining => same(503, "unavailable_error", Some("draining"), "overloaded_error"),
            Kind::Unsupported => {
                Row { anthropic_status: 400, ..same(501, "not_supported_error", None, invalid) }
            }
            Kind::Upstream => same(502, "server_error", Some("bad_gateway"), "api_error"),
            Kind::DeviceLost => same(500, "server_error", Some("device_lost"), "api_error"),
            Kind::Memory => same(500, "server_error", Some("out_of_memory"), "api_error"),
            Kind::Internal => same(500, "server_error", Some("internal"), "api_error"),
        }
    }
}

impl Kind {
    /// The word for requests that are refused so, in metrics; `None` for those that fail in another way.
    pub(crate) fn refusal(self) -> Option<&'static str> {
        match self {
            Kind::Key => Some("invalid_key"),
            Kind::Forbidden => Some("forbidden"),
            Kind::Timeout => Some("timeout"),
            Kind::Large => Some("too_large"),
            Kind::Limit => Some("key_limit"),
            Kind::Full => Some("queue_full"),
            Kind::Loading => Some("loading"),
            Kind::Draining => Some("draining"),
            _ => None,
        }
    }
}

/// An error of a request.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    /// Path of the field that is to blame.
    pub(crate) param: Option<String>,
    /// Further numbers for programs.
    pub(crate) extra: Box<Map<String, Value>>,
    /// Seconds after which to try again.
    pub(crate) retry_after: Option<u64>,
}

impl ApiError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> ApiError {
        ApiError { kind, message: message.into(), param: None, extra: Box::default(), retry_after: None }
    }

    /// A field that is missing or wrong.
    pub(crate) fn field(param: impl Into<String>, message: impl Into<String>) -> ApiError {
        ApiError { param: Some(param.into()), ..ApiError::new(Kind::Invalid, message) }
    }

    /// The same; what is invalid is to be blamed on this field, unless another is.
    pub(crate) fn of_field(mut self, param: &str) -> ApiError {
        if self.kind == Kind::Invalid {
            self.param.get_or_insert_with(|| param.into());
        }
        self
    }

    /// The same, after which to try again in so many seconds.
    pub(crate) fn retry(mut self, seconds: u64) -> ApiError {
        self.retry_after = Some(seconds);
        self
    }

    /// A prompt longer than the context.
    pub(crate) fn context(found: usize, limit: usize) -> ApiError {
        ApiError::long("", found, limit)
    }

    /// A prompt longer than the server takes, of a model with a longer context.
    pub(crate) fn prompt(found: usize, limit: usize, n_ctx: usize) -> ApiError {
        let message =
            format!("prompt is too long: {found} tokens > {limit} maximum of this server (--max-prompt)");
        let mut error = ApiError::new(Kind::Context, message);
        for (name, n) in [("n_prompt_tokens", found), ("max_prompt_tokens", limit), ("n_ctx", n_ctx)] {
            error.extra.insert(name.into(), n.into());
        }
        error
    }

    /// [`Self::context`] with a word before the number of tokens.
    fn long(about: &str, found: usize, limit: usize) -> ApiError {
        // Clients look for either half.
        let message = format!(
            "prompt is too long: {about}{found} tokens > {limit} maximum; it exceeds the available context size"
        );
        let mut error = ApiError::new(Kind::Context, message);
        error.extra.insert("n_prompt_tokens".into(), found.into());
        error.extra.insert("n_ctx".into(), limit.into());
        error
    }

    /// OpenAI's body; with the type of llama-server's own paths, and the status as `code`, where `is_llama` is set.
    pub(crate) fn openai(&self, is_llama: bool) -> Value {
        let row = self.kind.row();
        let (kind, code) = match is_llama {
            true => (row.llama, json!(row.status)),
            false => (row.openai, json!(row.code)),
        };
        let mut error = Map::from_iter([
            ("message".to_owned(), json!(self.message)),
            ("type".to_owned(), json!(kind)),
            ("code".to_owned(), code),
        ]);
        // llama-server has no such field.
        if self.param.is_some() || !is_llama {
            error.insert("param".into(), json!(self.param));
        }
        error.extend(self.extra.iter().map(|(name, value)| (name.clone(), value.clone())));
        json!({"error": error})
    }

    /// Anthropic's body.
    pub(crate) fn anthropic(&self, request_id: &str) -> Value {
        let error = json!({"type": self.kind.row().anthropic, "message": self.message});
        json!({"type": "error", "error": error, "request_id": request_id})
    }

    /// The status in Anthropic's dialect.
    pub(crate) fn anthropic_status(&self) -> u16 {
        self.kind.row().anthropic_status
    }

    /// ollama's body.
    pub(crate) fn ollama(&self) -> Value {
        json!({"error": self.message})
    }
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

impl From<ServeError> for ApiError {
    fn from(error: ServeError) -> ApiError {
        chaski::Error::from(error).into()
    }
}

impl From<TokenizerError> for ApiError {
    fn from(error: TokenizerError) -> ApiError {
        match error {
            TokenizerError::TooLong { at_least, limit } => ApiError::long("at least ", at_least, limit),
            error => ApiError::new(Kind::Invalid, error.to_string()),
        }
    }
}

impl From<chaski::Error> for ApiError {
    fn from(error: chaski::Error) -> ApiError {
        match error {
            chaski::Error::Serve(ServeError::Refused(Refused::Context { found, limit })) => {
                return ApiError::context(found, limit);
            }
            chaski::Error::Model(ModelError::Tokenizer(error @ TokenizerError::TooLong { .. })) => {
                return error.into();
            }
            _ => {}
        }
        let kind = match error.code() {
            "busy" => Kind::Full,
            "device_lost" => Kind::DeviceLost,
            "out_of_memory" => Kind::Memory,
            "context_overflow" => Kind::Context,
            "unsupported" => Kind::Unsupported,
            "no_template" | "template" => Kind::Invalid,
            "stopped" => Kind::Draining,
            "bad_request" => match error.model() {
                Some(ModelError::Constraint(_)) => Kind::Grammar,
                _ => Kind::Invalid,
            },
            _ => Kind::Internal,
        };
        let error = ApiError::new(kind, chain(&error));
        if kind == Kind::Full { error.retry(1) } else { error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_is_too_long_tells_both_numbers() {
        let error = ApiError::from(ServeError::Refused(Refused::Context { found: 900, limit: 512 }));
        let body = error.openai(false);
        assert_eq!(body["error"]["code"], "context_length_exceeded");
        assert_eq!((&body["error"]["n_prompt_tokens"], &body["error"]["n_ctx"]), (&json!(900), &json!(512)));
        assert_eq!(body["error"]["type"], "invalid_request_error");
        let llama = error.openai(true);
        assert_eq!(llama["error"]["code"], 400);
        assert_eq!(llama["error"]["type"], "exceed_context_size_error");
        assert_eq!(
            error.anthropic("r")["error"]["message"],
            "prompt is too long: 900 tokens > 512 maximum; it exceeds the available context size"
        );
    }

    #[test]
    fn a_prompt_that_is_not_tokenized_tells_both_numbers() {
        let long = ModelError::from(TokenizerError::TooLong { at_least: 900, limit: 512 });
        let body = ApiError::from(chaski::Error::from(long)).openai(false);
        assert_eq!(body["error"]["code"], "context_length_exceeded");
        assert_eq!((&body["error"]["n_prompt_tokens"], &body["error"]["n_ctx"]), (&json!(900), &json!(512)));
        assert_eq!(
            body["error"]["message"],
            "prompt is too long: at least 900 tokens > 512 maximum; it exceeds the available context size"
        );
    }

    #[test]
    fn a_full_queue_has_a_status_of_its_own_with_anthropic() {
        let error = ApiError::from(ServeError::Busy { found: 3, limit: 3 });
        assert_eq!(
            (error.kind.row().status, error.anthropic_status(), error.retry_after),
            (429, 529, Some(1))
        );
    }
}
