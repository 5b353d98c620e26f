//! The operations of the API.

use super::field::{Body, Field, Kind, may, needs};
use super::{Errors, requests as ask, responses as told};

/// The method of an operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Delete,
}

/// The body of a response.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Answer {
    /// An object or list.
    Json(&'static Body),
    /// The same, or a stream of its parts.
    Stream(&'static Body, &'static str),
    /// A text of this type.
    Text(&'static str),
    /// Always an error with this status, for this reason.
    Refused(u16, &'static str),
}

/// The clients that may ask, where the server requires keys.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    All,
    Keys,
    /// Keys of the level `admin`; without keys, programs of the server's machine.
    Admins,
}

/// An operation.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) method: Method,
    /// Paths as the router has them.
    pub(crate) paths: &'static [&'static str],
    pub(crate) tag: Tag,
    pub(crate) about: &'static str,
    pub(crate) query: &'static [Field],
    pub(crate) body: Option<&'static Body>,
    pub(crate) answer: Answer,
    pub(crate) access: Access,
    /// The dialect of its errors.
    pub(crate) errors: Errors,
}

impl Operation {
    /// True for those that tell of the server's health.
    pub(crate) fn is_probe(&self) -> bool {
        self.tag == Tag::Status && self.access == Access::All
    }
}

/// A group of operations.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    OpenAi,
    Anthropic,
    Ollama,
    Llama,
    Models,
    Status,
}

impl Tag {
    pub(super) const ALL: [Tag; 6] =
        [Tag::OpenAi, Tag::Anthropic, Tag::Ollama, Tag::Llama, Tag::Models, Tag::Status];

    /// The dialect of most errors in the group.
    const fn errors(self) -> Errors {
        match self {
            Tag::OpenAi | Tag::Models | Tag::Status => Errors::OpenAi,
            Tag::Anthropic => Errors::Anthropic,
            Tag::Ollama => Errors::Ollama,
            Tag::Llama => Errors::Llama,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Tag::OpenAi => "OpenAI",
            Tag::Anthropic => "Anthropic",
            Tag::Ollama => "ollama",
            Tag::Llama => "llama-server",
            Tag::Models => "Models",
            Tag::Status => "Status",
        }
    }
}

const EVENTS: &str = "text/event-stream";
const LINES: &str = "application/x-ndjson";

/// The model that a question about a state means.
const WHICH: Field = may("model", Kind::Text, "Name of a model, an alias, or absent for the first");

const fn get(paths: &'static [&'static str], tag: Tag, about: &'static str, answer: Answer) -> Operation {
    let (query, access, errors) = (&[], Access::Keys, tag.errors());
    Operation { method: Method::Get, paths, tag, about, query, body: None, answer, access, errors }
}

const fn post(
    paths: &'static [&'static str],
    tag: Tag,
    about: &'static str,
    body: &'static Body,
    answer: Answer,
) -> Operation {
    Operation { method: Method::Post, body: Some(body), ..get(paths, tag, about, answer) }
}

/// An operation that takes no body and is always refused.
const fn refused(
    method: Method,
    paths: &'static [&'static str],
    tag: Tag,
    status: u16,
    why: &'static str,
) -> Operation {
    let about = if status == 501 { "Not supported" } else { "Always an error" };
    Operation { method, ..get(paths, tag, about, Refused(status, why)) }
}

macro_rules! operations {
    ($($name:ident = $operation:expr;)*) => {
        $(pub(crate) static $name: Operation = $operation;)*

        /// All operations.
        pub(crate) static ALL: &[&Operation] = &[$(&$name),*];
    };
}

use Answer::{Json, Refused, Stream, Text};
use Tag::{Anthropic, Llama, Models, Ollama, OpenAi, Status};

operations! {
    CHAT = post(&["/v1/chat/completions", "/chat/completions"], OpenAi, "Answers to a conversation", &ask::CHAT_REQUEST, Stream(&told::CHAT, EVENTS));
    COMPLETIONS = post(&["/v1/completions"], OpenAi, "Continuations of texts", &ask::COMPLETION_REQUEST, Stream(&told::COMPLETION, EVENTS));
    RESPONSES = post(&["/v1/responses", "/responses"], OpenAi, "An answer in items", &ask::RESPONSE_REQUEST, Stream(&told::RESPONSE, EVENTS));
    STORED_RESPONSE = get(&["/v1/responses/{id}"], OpenAi, "A response of this client that the server keeps (`--store`)", Json(&told::RESPONSE));
    STORED_RESPONSE_DELETE = Operation { method: Method::Delete, ..get(&["/v1/responses/{id}"], OpenAi, "Forgets a response of this client", Json(&told::FORGOTTEN)) };
    EMBEDDINGS = post(&["/v1/embeddings"], OpenAi, "Vectors of texts", &ask::EMBEDDING_REQUEST, Json(&told::EMBEDDINGS));
    RERANK = post(&["/v1/rerank", "/v2/rerank", "/rerank", "/reranking"], OpenAi, "Documents by their relevance to a question, in the form of Jina and Cohere", &ask::RERANK_REQUEST, Json(&told::RERANK));
    SCORE = post(&["/v1/score", "/score"], OpenAi, "The relevance of texts to others, in vLLM's form", &ask::SCORE_REQUEST, Json(&told::SCORES));
    CHAT_TOKENS = post(&["/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"], OpenAi, "Number of tokens of a conversation", &ask::CHAT_REQUEST, Json(&told::COUNTED));
    CHAT_CONTROL = post(&["/v1/chat/completions/control", "/chat/completions/control"], OpenAi, "Ends the reasoning of an answer that runs: the rest follows", &ask::CONTROL_REQUEST, Json(&told::DONE));
    RESPONSE_TOKENS = post(&["/v1/responses/input_tokens", "/responses/input_tokens"], OpenAi, "Number of tokens of a response's input", &ask::RESPONSE_REQUEST, Json(&told::COUNTED));

    MESSAGES = post(&["/v1/messages"], Anthropic, "The next message of a conversation", &ask::MESSAGE_REQUEST, Stream(&told::MESSAGE, EVENTS));
    MESSAGE_TOKENS = post(&["/v1/messages/count_tokens"], Anthropic, "Number of tokens of a conversation", &ask::COUNT_REQUEST, Json(&told::COUNTED));

    OLLAMA_CHAT = post(&["/api/chat"], Ollama, "The answer to a conversation; a stream by default", &ask::OLLAMA_CHAT_REQUEST, Stream(&told::OLLAMA_CHAT, LINES));
    OLLAMA_GENERATE = post(&["/api/generate"], Ollama, "The answer to a question; a stream by default", &ask::OLLAMA_GENERATE_REQUEST, Stream(&told::OLLAMA_GENERATE, LINES));
    OLLAMA_EMBED = post(&["/api/embed"], Ollama, "Vectors of texts", &ask::OLLAMA_EMBEDDING_REQUEST, Json(&told::OLLAMA_EMBEDDINGS));
    OLLAMA_EMBEDDINGS = post(&["/api/embeddings"], Ollama, "The vector of a text; the older form", &ask::OLLAMA_EMBEDDING_REQUEST, Json(&told::OLLAMA_EMBEDDING));
    OLLAMA_TAGS = get(&["/api/tags"], Ollama, "The models", Json(&told::OLLAMA_MODELS));
    OLLAMA_PS = get(&["/api/ps"], Ollama, "The loaded models", Json(&told::OLLAMA_MODELS));
    OLLAMA_SHOW = post(&["/api/show"], Ollama, "Everything about a model", &ask::SHOW_REQUEST, Json(&told::OLLAMA_SHOW));
    OLLAMA_VERSION = get(&["/api/version"], Ollama, "The version of ollama whose API this is", Json(&told::OLLAMA_VERSION));
    OLLAMA_CREATE = refused(Method::Post, &["/api/create"], Ollama, 501, "the server makes no models; start it with a GGUF file");
    OLLAMA_PUSH = refused(Method::Post, &["/api/push"], Ollama, 501, "the server sends models nowhere");
    OLLAMA_PULL = Operation { access: Access::Admins, ..post(&["/api/pull"], Ollama, "Fetches a model into the list; a stream of its progress by default", &ask::PULL_REQUEST, Stream(&told::OLLAMA_STATUS, LINES)) };
    OLLAMA_COPY = Operation { access: Access::Admins, ..post(&["/api/copy"], Ollama, "One more name for a model", &ask::COPY_REQUEST, Text("text/plain")) };
    OLLAMA_BLOBS = refused(Method::Post, &["/api/blobs/{digest}"], Ollama, 501, "the server takes no files; start it with a GGUF file");
    OLLAMA_DELETE = Operation { access: Access::Admins, method: Method::Delete, ..post(&["/api/delete"], Ollama, "Takes a name away that was given, or deletes a model that was fetched", &ask::SHOW_REQUEST, Text("text/plain")) };
    ROOT = Operation { access: Access::All, ..get(&["/"], Ollama, "\"Ollama is running\"; the chat page for clients that ask for text/html", Text("text/plain")) };

    COMPLETION = post(&["/completion", "/completions", "/generate"], Llama, "Continuations of texts", &ask::NATIVE_REQUEST, Stream(&told::NATIVE, EVENTS));
    INFILL = post(&["/infill"], Llama, "The text in a gap between two others", &ask::INFILL_REQUEST, Stream(&told::INFILLED, EVENTS));
    LLAMA_EMBEDDINGS = post(&["/embedding", "/embeddings"], Llama, "Vectors of texts", &ask::EMBEDDING_REQUEST, Json(&told::NATIVE_EMBEDDINGS));
    TOKENIZE = post(&["/tokenize", "/v1/tokenize"], Llama, "Tokens of a text, or of a conversation", &ask::TOKENIZE_REQUEST, Json(&told::TOKENIZED));
    DETOKENIZE = post(&["/detokenize", "/v1/detokenize"], Llama, "The text of tokens", &ask::DETOKENIZE_REQUEST, Json(&told::DETOKENIZED));
    APPLY_TEMPLATE = post(&["/apply-template"], Llama, "The prompt of a conversation", &ask::CHAT_REQUEST, Json(&told::TEMPLATED));
    RENDER = post(&["/v1/chat/completions/render"], Llama, "Prompt and tokens of a conversation, in vLLM's form", &ask::CHAT_REQUEST, Json(&told::RENDERED));
    RENDER_TEXT = post(&["/v1/completions/render"], Llama, "The tokens of prompts, in vLLM's form", &ask::RENDER_REQUEST, Json(&told::RENDERED_PROMPTS));
    PROPS = Operation { access: Access::Admins, query: &[WHICH], ..get(&["/props"], Llama, "Properties of a model; without a default model, those of the server", Json(&told::PROPS)) };
    SLOTS = Operation { query: &[WHICH, may("fail_on_no_slot", Kind::Text, "Status 503 if all are taken")], ..get(&["/slots"], Llama, "A place for each request that can run at once", Json(&told::SLOTS)) };
    SLOT = Operation { query: &[needs("action", Kind::Words(&["save", "restore", "erase"]), "The action"), WHICH], access: Access::Admins, ..post(&["/slots/{id}"], Llama, "Saves the state of a slot to a file, restores or erases it", &ask::SLOT_REQUEST, Json(&told::SLOT_DONE)) };
    LORAS = Operation { query: &[WHICH], ..get(&["/lora-adapters"], Llama, "The LoRAs of a model, and the scales of requests that say none", Json(&told::LORAS)) };
    SET_LORAS = Operation { query: &[WHICH], access: Access::Admins, ..post(&["/lora-adapters"], Llama, "Sets the scales of requests that say none", &ask::LORAS_REQUEST, Json(&told::DONE)) };

    MODELS = get(&["/v1/models", "/models"], Models, "The models and their states", Json(&told::MODELS));
    MODEL = get(&["/v1/models/{*id}"], Models, "A model", Json(&told::MODEL_OBJECT));
    LOAD_MODEL = Operation { access: Access::Admins, ..post(&["/models/load"], Models, "Starts to load a model", &ask::NAMED_REQUEST, Json(&told::DONE)) };
    UNLOAD_MODEL = Operation { access: Access::Admins, ..post(&["/models/unload"], Models, "Frees a model when its requests have ended", &ask::NAMED_REQUEST, Json(&told::DONE)) };
    MODEL_EVENTS = get(&["/models/sse"], Models, "Changes of models as they happen", Text(EVENTS));

    HEALTH = Operation { access: Access::All, errors: Errors::Llama, ..get(&["/health", "/v1/health", "/readyz"], Status, "503 while models are loaded, while the server ends, and where nothing moves", Json(&told::HEALTH)) };
    LIVE = Operation { access: Access::All, ..get(&["/livez"], Status, "The process is there", Json(&told::HEALTH)) };
    METRICS = Operation { errors: Errors::Llama, ..get(&["/metrics"], Status, "Measurements in Prometheus' format", Text("text/plain")) };
    SERVER_INFO = Operation { query: &[WHICH], ..get(&["/server_info", "/get_server_info"], Status, "Capacities, as SGLang's routers ask for them", Json(&told::SERVER_INFO)) };
    MODEL_INFO = Operation { query: &[WHICH], ..get(&["/model_info", "/get_model_info"], Status, "The model, as SGLang's routers ask for it", Json(&told::MODEL_INFO)) };
    LOAD = get(&["/load"], Status, "Requests that run or wait", Json(&told::LOAD));
    LOADS = get(&["/v1/loads"], Status, "The load of each model", Json(&told::LOADS));
    DRAIN = Operation { method: Method::Post, access: Access::Admins, ..get(&["/admin/drain"], Status, "Ends the server when its requests have ended", Json(&told::DONE)) };
    FLUSH_CACHE = Operation { method: Method::Post, query: &[WHICH], access: Access::Admins, ..get(&["/flush_cache"], Status, "Drops the cached prefixes that no request uses, of a model or of all", Json(&told::DONE)) };
    OPENAPI = get(&["/openapi.json"], Status, "This document", Json(&told::DOCUMENT));
}

/// The part of a path after a pattern of the router: empty if it is all of it.
fn after<'p>(pattern: &str, path: &'p str) -> Option<&'p str> {
    match pattern.split_once('{') {
        None => path.strip_prefix(pattern),
        Some((begin, name)) => {
            let rest = path.strip_prefix(begin).filter(|rest| !rest.is_empty())?;
            let end = if name.starts_with('*') { rest.len() } else { rest.find('/').unwrap_or(rest.len()) };
            Some(&rest[end..])
        }
    }
}

/// The pattern of the router that a path has, if it is that of an operation; one without names comes first.
pub(crate) fn route(path: &str) -> Option<&'static str> {
    let patterns = || ALL.iter().flat_map(|operation| operation.paths).copied();
    let exact = patterns().find(|pattern| *pattern == path);
    exact.or_else(|| patterns().find(|pattern| after(pattern, path) == Some("")))
}

/// The operations at a path, whatever their method.
pub(crate) fn at(path: &str) -> impl Iterator<Item = &'static Operation> {
    let route = route(path);
    ALL.iter().copied().filter(move |operation| route.is_some_and(|route| operation.paths.contains(&route)))
}

/// The dialect of a path's errors: that of the operation there, else of one above it; ollama's paths are all below
/// `/api`.
pub(crate) fn errors_of(path: &str) -> Errors {
    // All paths are below the root.
    let is_above =
        |pattern: &&str| **pattern != *"/" && after(pattern, path).is_some_and(|rest| rest.starts_with('/'));
    let above = || ALL.iter().copied().find(|operation| operation.paths.iter().any(is_above));
    let is_ollama = path.strip_prefix("/api").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match at(path).next().or_else(above) {
        Some(operation) => operation.errors,
        None if is_ollama => Errors::Ollama,
        None => Errors::OpenAi,
    }
}
