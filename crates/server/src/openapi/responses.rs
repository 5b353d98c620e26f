//! Fields of responses. A test compares them with what a server answers.

use super::field::{Body, COUNT, Field, INTEGER, Kind, NUMBER, may, needs};

const MAPS: Kind = Kind::List(&Kind::Map);
const TOKENS: Kind = Kind::List(&COUNT);
const ID: Field = needs("id", Kind::Text, "Name of the answer");
const MODEL: Field = needs("model", Kind::Text, "Name of the model");
const CREATED: Field = needs("created", COUNT, "Seconds since 1970");
const OBJECT: Field = needs("object", Kind::Text, "Kind of the object");
const USAGE: Field = needs("usage", Kind::Object(usage), "Numbers of tokens");
const TIMINGS: Field =
    may("timings", Kind::Map, "Times and rates, as llama-server has them; of single answers");

const STOP_REASON: Field = may(
    "stop_reason",
    Kind::Either(&[Kind::Text, COUNT]),
    "The text of `stop` or the token of `stop_token_ids` that ended it, as in vLLM",
);

fn details(name: &'static str) -> [Field; 1] {
    [needs(name, COUNT, "Tokens")]
}

fn cached() -> Vec<Field> {
    details("cached_tokens").to_vec()
}

fn reasoned() -> Vec<Field> {
    vec![
        needs("reasoning_tokens", COUNT, "Tokens"),
        may("accepted_prediction_tokens", COUNT, "Drafted tokens that are part of the answers"),
        may("rejected_prediction_tokens", COUNT, "Other drafted tokens"),
    ]
}

fn usage() -> Vec<Field> {
    vec![
        needs("prompt_tokens", COUNT, "Tokens of the prompts, cached ones included"),
        may("completion_tokens", COUNT, "Tokens of the answers"),
        needs("total_tokens", COUNT, "All of them"),
        may("prompt_tokens_details", Kind::Object(cached), "Of the prompts"),
        may("completion_tokens_details", Kind::Object(reasoned), "Of the answers"),
    ]
}

fn error() -> Vec<Field> {
    vec![
        needs("message", Kind::Text, "The message of the error"),
        needs("type", Kind::Text, "Kind of the error"),
        may("param", Kind::Text, "Path of the field that is to blame"),
        may(
            "code",
            Kind::Either(&[Kind::Text, INTEGER]),
            "A word for programs; on llama-server's paths the status",
        ),
        may("n_prompt_tokens", COUNT, "Tokens of a prompt that is too long"),
        may("n_ctx", COUNT, "Tokens that there is room for"),
    ]
}

fn openai_error() -> Vec<Field> {
    vec![needs("error", Kind::Object(error), "The error")]
}

fn short_error() -> Vec<Field> {
    vec![
        needs("type", Kind::Text, "Kind of the error"),
        needs("message", Kind::Text, "The message of the error"),
    ]
}

fn anthropic_error() -> Vec<Field> {
    vec![
        needs("type", Kind::Words(&["error"]), "Kind of the object"),
        needs("error", Kind::Object(short_error), "The error"),
        needs("request_id", Kind::Text, "Name of the request"),
    ]
}

fn ollama_error() -> Vec<Field> {
    vec![needs("error", Kind::Text, "The message of the error")]
}

fn said() -> Vec<Field> {
    vec![
        needs("role", Kind::Words(&["assistant"]), "The speaker"),
        may("content", Kind::Text, "The text; null where there are only calls"),
        may("reasoning_content", Kind::Text, "The reasoning"),
        may("reasoning", Kind::Text, "The same"),
        may("tool_calls", MAPS, "The functions that the model calls"),
        may("refusal", Kind::Text, "Always null"),
    ]
}

fn chat_choice() -> Vec<Field> {
    vec![
        needs("index", COUNT, "Number of the answer"),
        needs("message", Kind::Object(said), "The answer"),
        needs("finish_reason", Kind::Words(&["stop", "length", "tool_calls"]), "The reason for its end"),
        STOP_REASON,
        may("logprobs", Kind::Map, "Log probabilities"),
        may("token_ids", TOKENS, "Tokens of the answer"),
    ]
}

fn text_choice() -> Vec<Field> {
    vec![
        needs("index", COUNT, "Number of the answer"),
        needs("text", Kind::Text, "The answer"),
        needs("finish_reason", Kind::Words(&["stop", "length"]), "The reason for its end"),
        STOP_REASON,
        may("logprobs", Kind::Map, "Log probabilities"),
        may("token_ids", TOKENS, "Tokens of the answer"),
        may("prompt_token_ids", TOKENS, "Tokens of the prompt"),
    ]
}

fn head() -> Vec<Field> {
    vec![ID, OBJECT, CREATED, MODEL, needs("system_fingerprint", Kind::Text, "Version of the server")]
}

/// Answers of OpenAI's endpoints with these choices.
fn choices(kind: Kind) -> Vec<Field> {
    [head(), vec![needs("choices", kind, "The answers"), USAGE, TIMINGS]].concat()
}

fn chat() -> Vec<Field> {
    let mut fields = choices(Kind::List(&Kind::Object(chat_choice)));
    fields.push(may("prompt_token_ids", TOKENS, "Tokens of the conversation"));
    fields
}

fn completion() -> Vec<Field> {
    choices(Kind::List(&Kind::Object(text_choice)))
}

fn response_usage() -> Vec<Field> {
    vec![
        needs("input_tokens", COUNT, "Tokens of the input, cached ones included"),
        needs("input_tokens_details", Kind::Object(cached), "Of the input"),
        needs("output_tokens", COUNT, "Tokens of the output"),
        needs("output_tokens_details", Kind::Object(reasoned), "Of the output"),
        needs("total_tokens", COUNT, "All of them"),
    ]
}

fn forgotten() -> Vec<Field> {
    vec![
        needs("id", Kind::Text, "Name of the response"),
        needs("object", Kind::Words(&["response"]), "The kind of the object"),
        needs("deleted", Kind::Flag, "True"),
    ]
}

fn response() -> Vec<Field> {
    vec![
        ID,
        OBJECT,
        needs("created_at", COUNT, "Seconds since 1970"),
        needs("status", Kind::Words(&["completed", "incomplete", "in_progress", "failed"]), "The state"),
        MODEL,
        needs("output", MAPS, "Items: reasoning, a message, calls"),
        may("error", Kind::Map, "The error of a response that failed"),
        may("incomplete_details", Kind::Map, "Why it is incomplete"),
        may("usage", Kind::Object(response_usage), "Numbers of tokens"),
        may("instructions", Kind::Text, "As in the request"),
        may("max_output_tokens", COUNT, "As in the request"),
        may("metadata", Kind::Any, "As in the request"),
        may("parallel_tool_calls", Kind::Flag, "As in the request"),
        may("previous_response_id", Kind::Text, "The response that this one goes on from"),
        may("reasoning", Kind::Map, "As in the request"),
        may("store", Kind::Flag, "It is kept, and others may go on from it"),
        may("temperature", NUMBER, "As in the request"),
        may("text", Kind::Map, "As in the request"),
        may("tool_choice", Kind::Either(&[Kind::Text, Kind::Map]), "As in the request"),
        may("tools", MAPS, "As in the request"),
        may("top_p", NUMBER, "As in the request"),
        may("truncation", Kind::Text, "As in the request"),
    ]
}

fn message_usage() -> Vec<Field> {
    vec![
        needs("input_tokens", COUNT, "Tokens of the prompt that were not cached"),
        needs("cache_creation_input_tokens", COUNT, "Always 0"),
        needs("cache_read_input_tokens", COUNT, "Tokens of the prompt that were cached"),
        needs("output_tokens", COUNT, "Tokens of the answer"),
    ]
}

fn message() -> Vec<Field> {
    const REASONS: [&str; 5] =
        ["end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded"];
    vec![
        ID,
        needs("type", Kind::Words(&["message"]), "Kind of the object"),
        needs("role", Kind::Words(&["assistant"]), "The speaker"),
        MODEL,
        needs("content", MAPS, "Blocks: thinking, text, calls of tools"),
        may("stop_reason", Kind::Words(&REASONS), "The reason for its end"),
        may("stop_sequence", Kind::Text, "The text at which it ended"),
        needs("usage", Kind::Object(message_usage), "Numbers of tokens"),
    ]
}

fn counted() -> Vec<Field> {
    vec![
        needs("input_tokens", COUNT, "Tokens of the prompt"),
        may("object", Kind::Text, "Kind of the object"),
    ]
}

fn native() -> Vec<Field> {
    vec![
        needs("index", COUNT, "Number of the answer"),
        needs("content", Kind::Text, "The answer"),
        needs("tokens", TOKENS, "Its tokens, if they were asked for"),
        needs("id_slot", COUNT, "Always 0"),
        needs("stop", Kind::Flag, "True: the answer has ended"),
        MODEL,
        needs("tokens_predicted", COUNT, "Tokens of the answer"),
        needs("tokens_evaluated", COUNT, "Tokens of the prompt"),
        needs("generation_settings", Kind::Map, "The options that were in force"),
        needs("prompt", Kind::Text, "The prompt"),
        needs("has_new_line", Kind::Flag, "True if the answer has a line's end"),
        needs("truncated", Kind::Flag, "True if the context was full"),
        needs("stop_type", Kind::Words(&["eos", "word", "limit"]), "The reason for its end"),
        needs("stopping_word", Kind::Text, "The text at which it ended"),
        needs("tokens_cached", COUNT, "Tokens in the cache now"),
        needs("timings", Kind::Map, "Times and rates"),
        may("completion_probabilities", MAPS, "Log probabilities"),
    ]
}

fn vector() -> Vec<Field> {
    vec![
        OBJECT,
        needs("index", COUNT, "Number of the text"),
        needs(
            "embedding",
            Kind::Either(&[Kind::List(&NUMBER), Kind::Text]),
            "The vector, or its bytes in base64",
        ),
    ]
}

fn embeddings() -> Vec<Field> {
    vec![OBJECT, MODEL, needs("data", Kind::List(&Kind::Object(vector)), "A vector for each text"), USAGE]
}

fn native_vector() -> Vec<Field> {
    vec![
        needs("index", COUNT, "Number of the text"),
        needs("embedding", Kind::List(&Kind::List(&NUMBER)), "Its vectors: one, or one for each token"),
    ]
}

fn ollama_embeddings() -> Vec<Field> {
    vec![
        MODEL,
        needs("embeddings", Kind::List(&Kind::List(&NUMBER)), "A vector for each text"),
        needs("total_duration", COUNT, "Nanoseconds"),
        needs("load_duration", COUNT, "Nanoseconds until the model was there"),
        needs("prompt_eval_count", COUNT, "Tokens of all texts"),
    ]
}

fn ollama_embedding() -> Vec<Field> {
    vec![needs("embedding", Kind::List(&NUMBER), "The vector")]
}

fn ranked() -> Vec<Field> {
    vec![
        needs("index", COUNT, "Number of the document"),
        needs("relevance_score", Kind::Number(0.0, 1.0), "Its score"),
        may("document", Kind::Map, "Its text"),
    ]
}

fn rerank() -> Vec<Field> {
    vec![
        ID,
        OBJECT,
        MODEL,
        needs("results", Kind::List(&Kind::Object(ranked)), "The documents, the best first"),
        USAGE,
        needs("meta", Kind::Map, "The same numbers, as Cohere has them"),
    ]
}

fn scored() -> Vec<Field> {
    vec![
        needs("index", COUNT, "Number of the pair"),
        OBJECT,
        needs("score", Kind::Number(0.0, 1.0), "Its score"),
    ]
}

fn scores() -> Vec<Field> {
    vec![ID, OBJECT, CREATED, MODEL, needs("data", Kind::List(&Kind::Object(scored)), "The scores"), USAGE]
}

fn model() -> Vec<Field> {
    vec![
        needs("id", Kind::Text, "Name of the model"),
        OBJECT,
        CREATED,
        needs("owned_by", Kind::Text, "Always chaski"),
        needs("aliases", Kind::List(&Kind::Text), "All of its names, if there are several"),
        needs("tags", Kind::List(&Kind::Text), "Words that describe it"),
        needs("path", Kind::Text, "Its file"),
        needs("status", Kind::Map, "`value` is loaded, loading or unloaded"),
        may("max_model_len", COUNT, "Tokens of the context, once it is loaded"),
        may("meta", Kind::Map, "Numbers from its file"),
        may("capabilities", Kind::List(&Kind::Text), "completion, embedding, insert, tools, thinking"),
        may("parent", Kind::Text, "The model of a LoRA"),
    ]
}

fn models() -> Vec<Field> {
    vec![OBJECT, needs("data", Kind::List(&Kind::Object(model)), "The models")]
}

fn done() -> Vec<Field> {
    vec![needs("success", Kind::Flag, "Always true")]
}

fn health() -> Vec<Field> {
    vec![needs("status", Kind::Words(&["ok"]), "The state")]
}

fn lora() -> Vec<Field> {
    vec![
        needs("id", COUNT, "Its number"),
        needs("path", Kind::Text, "Its file"),
        needs("scale", NUMBER, "Its scale where a request says none"),
        needs("task_name", Kind::Text, "The task that its file names"),
        needs("prompt_prefix", Kind::Text, "The text that its file wants before prompts"),
    ]
}

fn slot() -> Vec<Field> {
    vec![
        needs("id", COUNT, "Number of the place"),
        needs("n_ctx", COUNT, "Tokens of the context"),
        needs("speculative", Kind::Flag, "True if answers are drafted"),
        needs("is_processing", Kind::Flag, "True if an answer runs there"),
        may("id_task", COUNT, "Number of the answer"),
        may("params", Kind::Map, "Options of the answer, for operators"),
        may("prompt", Kind::Text, "Its prompt, for operators"),
        may("next_token", Kind::List(&Kind::Map), "Tokens so far and left, for operators"),
    ]
}

fn slot_done() -> Vec<Field> {
    vec![
        needs("id_slot", COUNT, "Number of the slot"),
        may("filename", Kind::Text, "Name of the file"),
        may("n_saved", COUNT, "Tokens in the file that was written"),
        may("n_written", COUNT, "Its bytes"),
        may("n_restored", COUNT, "Tokens that are cached from the file"),
        may("n_read", COUNT, "Its bytes"),
        may("n_erased", COUNT, "Tokens that the slot had"),
        may("timings", Kind::Map, "Milliseconds that it took"),
    ]
}

fn tokens() -> Vec<Field> {
    vec![
        needs("tokens", Kind::List(&Kind::Any), "Tokens, or objects with `id` and `piece`"),
        needs("count", COUNT, "Their number"),
        needs("max_model_len", COUNT, "Tokens of the context"),
        may("token_strs", Kind::List(&Kind::Any), "The text of each, in vLLM's form"),
    ]
}

fn text() -> Vec<Field> {
    vec![needs("content", Kind::Text, "The text"), needs("prompt", Kind::Text, "The same, in vLLM's form")]
}

fn prompt() -> Vec<Field> {
    vec![needs("prompt", Kind::Text, "The prompt")]
}

fn rendered() -> Vec<Field> {
    vec![
        needs("request_id", Kind::Text, "A name"),
        needs("token_ids", TOKENS, "Tokens of the prompt"),
        needs("prompt", Kind::Text, "The prompt"),
    ]
}

fn server_info() -> Vec<Field> {
    vec![
        needs("model_path", Kind::Text, "The model's file"),
        needs("served_model_name", Kind::Text, "Its name"),
        needs("tp_size", COUNT, "Always 1"),
        needs("dp_size", COUNT, "Always 1"),
        needs("max_running_requests", COUNT, "Requests that run at once"),
        needs("max_total_num_tokens", COUNT, "Tokens that the KV cache has room for"),
        needs("context_length", COUNT, "Tokens of the context"),
        needs("version", Kind::Text, "Version of the server"),
    ]
}

fn model_info() -> Vec<Field> {
    vec![
        needs("model_path", Kind::Text, "The model's file"),
        needs("tokenizer_path", Kind::Text, "Always empty"),
        needs("is_generation", Kind::Flag, "False if it makes embeddings only"),
    ]
}

fn load() -> Vec<Field> {
    vec![needs("server_load", COUNT, "Requests that run or wait")]
}

fn loaded() -> Vec<Field> {
    vec![
        needs("dp_rank", COUNT, "Always 0"),
        needs("model", Kind::Text, "Name of the model"),
        needs("num_running_reqs", COUNT, "Requests that run"),
        needs("num_waiting_reqs", COUNT, "Requests that wait"),
        needs("num_used_tokens", COUNT, "Tokens in the KV cache"),
        needs("max_total_num_tokens", COUNT, "Tokens that it has room for"),
    ]
}

fn loads() -> Vec<Field> {
    vec![needs("loads", Kind::List(&Kind::Object(loaded)), "The load of each model")]
}

fn ollama_head() -> Vec<Field> {
    vec![
        MODEL,
        needs("created_at", Kind::Text, "The time"),
        needs("done", Kind::Flag, "True in the last line, and in a whole answer"),
        may("done_reason", Kind::Words(&["stop", "length", "load", "unload"]), "The reason for the end"),
        may("total_duration", COUNT, "Nanoseconds of all"),
        may("load_duration", COUNT, "Nanoseconds before the prompt"),
        may("prompt_eval_count", COUNT, "Tokens of the prompt"),
        may("prompt_eval_duration", COUNT, "Nanoseconds of the prompt"),
        may("eval_count", COUNT, "Tokens of the answer"),
        may("eval_duration", COUNT, "Nanoseconds of the answer"),
        may("logprobs", MAPS, "Log probabilities"),
    ]
}

fn ollama_chat() -> Vec<Field> {
    [ollama_head(), vec![needs("message", Kind::Map, "The answer: `content`, `thinking`, `tool_calls`")]]
        .concat()
}

fn ollama_generate() -> Vec<Field> {
    let own = vec![
        needs("response", Kind::Text, "The answer"),
        may("thinking", Kind::Text, "The reasoning"),
        may("context", TOKENS, "Tokens with which the next request goes on"),
    ];
    [ollama_head(), own].concat()
}

fn ollama_models() -> Vec<Field> {
    vec![needs("models", MAPS, "The models")]
}

fn ollama_show() -> Vec<Field> {
    vec![
        needs("modelfile", Kind::Text, "As ollama describes it"),
        needs("parameters", Kind::Text, "Options that hold where a request says nothing"),
        needs("template", Kind::Text, "The chat template"),
        needs("details", Kind::Map, "Family, size and quantization"),
        needs("model_info", Kind::Map, "Metadata of its file"),
        needs("capabilities", Kind::List(&Kind::Text), "completion, embedding, insert, tools, thinking"),
        needs("modified_at", Kind::Text, "When the file changed"),
    ]
}

fn status() -> Vec<Field> {
    vec![needs("status", Kind::Text, "`success`")]
}

fn version() -> Vec<Field> {
    vec![needs("version", Kind::Text, "The version of ollama whose API this is")]
}

fn document() -> Vec<Field> {
    vec![
        needs("openapi", Kind::Text, "Version of the specification"),
        needs("info", Kind::Map, "Name and version of the API"),
        needs("servers", MAPS, "Where it is"),
        needs("security", MAPS, "Keys"),
        needs("tags", MAPS, "Groups of operations"),
        needs("paths", Kind::Map, "Operations by path and method"),
        needs("components", Kind::Map, "Schemas"),
    ]
}

/// An object whose fields depend on the model.
fn any() -> Vec<Field> {
    Vec::new()
}

pub(super) static OPENAI_ERROR: Body = Body::new("OpenAiError", openai_error);
pub(super) static ANTHROPIC_ERROR: Body = Body::new("AnthropicError", anthropic_error);
pub(super) static OLLAMA_ERROR: Body = Body::new("OllamaError", ollama_error);
pub(super) static CHAT: Body = Body::new("ChatCompletion", chat);
pub(super) static COMPLETION: Body = Body::new("Completion", completion);
pub(super) static RESPONSE: Body = Body::new("Response", response);
pub(super) static FORGOTTEN: Body = Body::new("ForgottenResponse", forgotten);
pub(super) static MESSAGE: Body = Body::new("Message", message);
pub(super) static COUNTED: Body = Body::new("InputTokens", counted);
pub(super) static NATIVE: Body = Body { is_chosen: true, ..Body::one_or_list("LlamaCompletion", native) };
pub(super) static INFILLED: Body = Body { is_chosen: true, ..Body::new("LlamaInfill", native) };
pub(super) static EMBEDDINGS: Body = Body::new("Embeddings", embeddings);
pub(super) static NATIVE_EMBEDDINGS: Body = Body::list("LlamaEmbeddings", native_vector);
pub(super) static OLLAMA_EMBEDDINGS: Body = Body::new("OllamaEmbeddings", ollama_embeddings);
pub(super) static OLLAMA_EMBEDDING: Body = Body::new("OllamaEmbedding", ollama_embedding);
pub(super) static RERANK: Body = Body::new("Ranking", rerank);
pub(super) static SCORES: Body = Body::new("Scores", scores);
pub(super) static MODEL_OBJECT: Body = Body::new("Model", model);
pub(super) static MODELS: Body = Body::new("Models", models);
pub(super) static DONE: Body = Body::new("Done", done);
pub(super) static HEALTH: Body = Body::new("Health", health);
pub(super) static DOCUMENT: Body = Body::new("OpenApiDocument", document);
pub(super) static PROPS: Body = Body::new("Properties", any);
pub(super) static LORAS: Body = Body::list("Loras", lora);
pub(super) static SLOTS: Body = Body::list("Slots", slot);
pub(super) static SLOT_DONE: Body = Body::new("SlotDone", slot_done);
pub(super) static TOKENIZED: Body = Body::new("Tokens", tokens);
pub(super) static DETOKENIZED: Body = Body::new("Text", text);
pub(super) static TEMPLATED: Body = Body::new("Prompt", prompt);
pub(super) static RENDERED: Body = Body::new("RenderedPrompt", rendered);
pub(super) static RENDERED_PROMPTS: Body = Body::one_or_list("RenderedPrompts", rendered);
pub(super) static SERVER_INFO: Body = Body::new("ServerInfo", server_info);
pub(super) static MODEL_INFO: Body = Body::new("ModelInfo", model_info);
pub(super) static LOAD: Body = Body::new("Load", load);
pub(super) static LOADS: Body = Body::new("Loads", loads);
pub(super) static OLLAMA_CHAT: Body = Body::new("OllamaChat", ollama_chat);
pub(super) static OLLAMA_GENERATE: Body = Body::new("OllamaGenerate", ollama_generate);
pub(super) static OLLAMA_MODELS: Body = Body::new("OllamaModels", ollama_models);
pub(super) static OLLAMA_SHOW: Body = Body::new("OllamaModel", ollama_show);
pub(super) static OLLAMA_STATUS: Body = Body::new("OllamaStatus", status);
pub(super) static OLLAMA_VERSION: Body = Body::new("OllamaVersion", version);
