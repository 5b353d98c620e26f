//! Fields of requests. A test compares them with those that the dialects read.

use super::field::{Body, COUNT, Field, INTEGER, Kind, may, needs};
use crate::sampling;

const ANY_LIST: Kind = Kind::List(&Kind::Any);
const TEXTS: Kind = Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]);
const TOKENS: Kind = Kind::List(&COUNT);
const MODEL_NEEDED: Field = needs("model", Kind::Text, "Name of a model, or an alias");
const MODEL: Field = may("model", Kind::Text, "Name of a model, an alias, or absent for the first");
const STREAM: Field = may("stream", Kind::Flag, "Send the answer in pieces as it is written");
const MESSAGES: Field = needs(
    "messages",
    Kind::List(&Kind::Map),
    "The conversation; a last message of the assistant is continued",
);
const N_PREDICT: Field = may("n_predict", Kind::Integer(-1, i64::MAX), "llama.cpp's name of `max_tokens`");
const MAX_TOKENS: Field = may(
    "max_tokens",
    Kind::Integer(-1, i64::MAX),
    "Most tokens of the answer; -1: to the end of the context",
);
const PARALLEL: Field = may(
    "parallel_tool_calls",
    Kind::Flag,
    "False: at most one call; true: several also in an answer that must call",
);
const TIMINGS: Field = may("timings_per_token", Kind::Flag, "Times and rates in each piece of a stream");
const PROGRESS: Field = may("return_progress", Kind::Flag, "Progress of the prompt in a stream");
const RETURN_TOKENS: Field = may("return_tokens", Kind::Flag, "Ids of the answer's tokens");

fn lora() -> Vec<Field> {
    vec![
        needs("id", COUNT, "Number of the LoRA, as `/lora-adapters` lists it"),
        needs("scale", Kind::Number(-1e6, 1e6), "Its scale; 0: off"),
    ]
}

const LORA: Field = may("lora", Kind::List(&Kind::Object(lora)), "Scales of LoRAs; absent ones are off");

/// Fields of several groups.
fn join<const N: usize>(groups: [&[Field]; N]) -> Vec<Field> {
    groups.concat()
}

/// Options of the sampler and of drafts; absent ones are the model's.
fn sampler() -> Vec<Field> {
    let mut fields: Vec<Field> =
        sampling::numbers().map(|(name, from, to, about)| may(name, Kind::Number(from, to), about)).collect();
    fields.extend([
        may("adaptive_decay", Kind::Number(0.0, 0.99), "Decay of adaptive-p's mean"),
        may("seed", INTEGER, "Seed of the random numbers, of 64 bits; below 0: another each time"),
        may("mirostat", Kind::Integer(0, 2), "Version of Mirostat; 0: off"),
        may("min_keep", Kind::Integer(0, i32::MAX as i64), "Tokens that each sampler keeps at least"),
        may("samplers", TEXTS, "Samplers in their order: names, or their letters as one text"),
        may("dry_sequence_breakers", TEXTS, "Texts at which DRY's repetitions end"),
        may("ignore_eos", Kind::Flag, "Never choose the token that ends an answer"),
        may(
            "logit_bias",
            Kind::Either(&[Kind::Map, Kind::List(&Kind::List(&Kind::Any))]),
            "Numbers that are added to logits: by token id, or as pairs of a token or text and a number or false",
        ),
        may(
            "speculative.n_max",
            Kind::Integer(0, i32::MAX as i64),
            "Tokens of a draft, if the server drafts; 0: none",
        ),
        may("speculative.n_min", Kind::Integer(0, i32::MAX as i64), "Shorter drafts are left out"),
        may("speculative.p_min", Kind::Number(0.0, 1.0), "Probability of each token that the draft model drafts"),
    ]);
    fields
}

fn guided() -> Vec<Field> {
    vec![
        may("json", Kind::Either(&[Kind::Map, Kind::Text]), "As `guided_json`"),
        may("regex", Kind::Text, "As `guided_regex`"),
        may("choice", Kind::List(&Kind::Text), "As `guided_choice`"),
        may("grammar", Kind::Text, "As `guided_grammar`"),
    ]
}

const SCHEMA: Field = may("schema", Kind::Map, "A JSON schema");

fn schema() -> Vec<Field> {
    vec![
        SCHEMA,
        may("name", Kind::Text, "Taken, and without effect"),
        may("strict", Kind::Flag, "Answers always conform"),
    ]
}

fn schema_format() -> Vec<Field> {
    vec![
        needs("type", Kind::Words(&["text", "json_object", "json_schema"]), "The form of the answer"),
        may("schema", Kind::Map, "A JSON schema, for `json_object`"),
        may("json_schema", Kind::Object(schema), "The schema, for `json_schema`"),
    ]
}

/// Constraints of the text, of which there may be one.
const CONSTRAINTS: [Field; 8] = [
    may("grammar", Kind::Text, "A grammar in GBNF or Lark"),
    may("json_schema", Kind::Map, "A JSON schema"),
    may("response_format", Kind::Object(schema_format), "A JSON schema in OpenAI's form"),
    may("guided_json", Kind::Either(&[Kind::Map, Kind::Text]), "A JSON schema in vLLM's form"),
    may("guided_regex", Kind::Text, "A regular expression"),
    may("guided_choice", Kind::List(&Kind::Text), "Texts, one of which is the answer"),
    may("guided_grammar", Kind::Text, "A grammar in GBNF or Lark"),
    may("structured_outputs", Kind::Object(guided), "vLLM's constraints as one object"),
];

fn stream_options() -> Vec<Field> {
    vec![
        may("include_usage", Kind::Flag, "End the stream with the numbers of tokens"),
        may("continuous_usage_stats", Kind::Flag, "The numbers of tokens in each piece"),
    ]
}

/// Fields of OpenAI's endpoints.
const OPENAI: [Field; 6] = [
    STREAM,
    may("stream_options", Kind::Object(stream_options), "Options of the stream"),
    may("n", Kind::Integer(1, 256), "Answers to each prompt, at most `--max-n` of the server, 8 by default"),
    may("best_of", Kind::Integer(1, 256), "The same where `n` is absent"),
    may(
        "priority",
        Kind::Integer(-1000, 1000),
        "Of a key's requests, the one with the lowest is served first",
    ),
    CACHE_SALT,
];

const CACHE_SALT: Field =
    may("cache_salt", Kind::Text, "Only requests with the same salt share cached prefixes; it is not empty");

const STOP: Field = may("stop", TEXTS, "Texts at which the answer ends; at most 16");

/// Ends of an answer besides those of the model, and the place of its state.
const ENDS: [Field; 5] = [
    may(
        "id_slot",
        Kind::Integer(-1, i32::MAX as i64),
        "The slot in which the state of the answer stays for `/slots/{id}`; it changes nothing else",
    ),
    STOP,
    may("stop_token_ids", TOKENS, "Tokens that end the answer, in vLLM's form; at most 1024"),
    may("min_tokens", Kind::Integer(0, i64::MAX), "Tokens before which the answer does not end, as in vLLM"),
    may(
        "t_max_predict_ms",
        Kind::Integer(-1, i64::MAX),
        "Milliseconds from the first token after which the answer ends with its line; below 1: no limit",
    ),
];
const TOOLS: [Field; 2] = [
    may(
        "tools",
        Kind::List(&Kind::Map),
        "Functions that the model may call; calls of one with `strict` conform to its schema",
    ),
    may(
        "tool_choice",
        Kind::Either(&[Kind::Words(&["none", "auto", "required", "any"]), Kind::Map]),
        "The functions that the model may or must call",
    ),
];

const EFFORTS: Kind = Kind::Words(&["none", "minimal", "low", "medium", "high", "xhigh"]);

const BUDGET: Field = may(
    "reasoning_budget",
    Kind::Integer(-1, i64::MAX),
    "Most tokens of reasoning, behind which it is ended; 0: none, -1: any number",
);

const CHAT: [Field; 15] = [
    may("max_completion_tokens", Kind::Integer(-1, i64::MAX), "The same as `max_tokens`; it comes first"),
    MAX_TOKENS,
    N_PREDICT,
    may("logprobs", Kind::Flag, "Log probabilities of the answer's tokens"),
    may("top_logprobs", Kind::Integer(0, 20), "Those of so many other tokens in each place"),
    may("n_probs", Kind::Integer(0, 20), "llama-server's name of both"),
    may("reasoning_effort", EFFORTS, "How much the model reasons, if its template knows that"),
    BUDGET,
    may("include_reasoning", Kind::Flag, "False: leave the reasoning out"),
    may("chat_template_kwargs", Kind::Map, "Variables of the chat template"),
    may("add_generation_prompt", Kind::Flag, "Begin an answer; false: continue the last message"),
    may("continue_final_message", Kind::Flag, "Continue the last message"),
    PARALLEL,
    may("return_token_ids", Kind::Flag, "The same, and those of the prompt"),
    RETURN_TOKENS,
];

/// Fields of conversations with few values that the server takes.
pub(crate) const CHAT_FIXED: [Field; 12] = [
    may(
        "reasoning_format",
        Kind::Words(&["auto", "deepseek", "none"]),
        "none: reasoning stays in the content, with its markers; else it goes beside it",
    ),
    may("modalities", Kind::List(&Kind::Words(&["text"])), "Answers are texts"),
    may("audio", Kind::Null, "Answers are texts"),
    may("functions", Kind::Null, "The older form of `tools`"),
    may("web_search_options", Kind::Null, "The server searches nothing"),
    CACHE_PROMPT,
    SAFETY,
    USER,
    may("metadata", Kind::Map, "Taken, and without effect"),
    may("store", Kind::Flag, "Taken, and without effect: no completions are stored"),
    may("service_tier", Kind::Text, "Taken, and without effect"),
    may("prompt_cache_key", Kind::Text, "Taken, and without effect: `cache_salt` keeps prefixes apart"),
];

const CACHE_PROMPT: Field =
    may("cache_prompt", Kind::Flag, "Prefixes are shared in any case, which changes times and no text");
const SAFETY: Field = may("safety_identifier", Kind::Text, "Taken, and without effect");
const USER: Field = may("user", Kind::Text, "Taken, and without effect");

/// Fields of llama-server's completions whose values have to be what the server does.
pub(crate) const NATIVE_FIXED: [Field; 3] = [
    may("n", Kind::Integer(1, 1), "Only 1: /v1/completions makes several answers"),
    may("n_cmpl", Kind::Integer(1, 1), "The same"),
    CACHE_PROMPT,
];

/// The same of OpenAI's.
pub(crate) const COMPLETION_FIXED: [Field; 2] =
    [may("n_probs", Kind::Integer(0, 0), "Only 0: `logprobs` asks for probabilities"), CACHE_PROMPT];

/// Fields of endpoints with llama.cpp's names.
const SHIFT: Field = may(
    "n_keep",
    Kind::Integer(-1, u32::MAX as i64),
    "Tokens that stay when the context is shifted; -1: all of the prompt",
);
const PING: Field = may(
    "sse_ping_interval",
    Kind::Integer(-1, 86400),
    "Seconds of silence after which a stream has a comment; below 1: never",
);

fn options() -> Vec<Field> {
    vec![may("num_ctx", Kind::Integer(1, i64::MAX), "At most the context with which the model was loaded")]
}

fn chat() -> Vec<Field> {
    let both = [
        TIMINGS,
        PROGRESS,
        LORA,
        SHIFT,
        PING,
        may("options", Kind::Object(options), "ollama's name of the context's size"),
    ];
    join([&[MODEL, MESSAGES], &CHAT, &CHAT_FIXED, &TOOLS, &OPENAI, &ENDS, &sampler(), &CONSTRAINTS, &both])
}

const PROMPT: Field = needs(
    "prompt",
    Kind::Either(&[Kind::Text, ANY_LIST, Kind::Map]),
    "A text, tokens, or a list of such prompts",
);

fn completion() -> Vec<Field> {
    let own = [
        may("suffix", Kind::Text, "A text after the gap that the answer fills"),
        MAX_TOKENS,
        N_PREDICT,
        may("echo", Kind::Flag, "Begin the answer with the prompt"),
        may("return_token_ids", Kind::Flag, "Ids of the tokens of the prompt and the answer"),
        may(
            "logprobs",
            Kind::Integer(0, 20),
            "Log probabilities, and those of so many other tokens in each place",
        ),
        LORA,
        SHIFT,
        PING,
    ];
    join([&[MODEL, PROMPT], &own, &COMPLETION_FIXED, &OPENAI, &ENDS, &sampler(), &CONSTRAINTS])
}

fn response_format() -> Vec<Field> {
    vec![needs("type", Kind::Words(&["text", "json_object", "json_schema"]), "The form of the text"), SCHEMA]
}

fn text_format() -> Vec<Field> {
    vec![may("format", Kind::Object(response_format), "The form, and its schema")]
}

fn effort() -> Vec<Field> {
    vec![may("effort", EFFORTS, "How much the model reasons, if its template knows that")]
}

/// A body whose tokens are counted, or answered.
fn response() -> Vec<Field> {
    let own = [
        MODEL,
        needs(
            "input",
            Kind::Either(&[Kind::Text, Kind::List(&Kind::Map)]),
            "A text, or items of a conversation",
        ),
        may("instructions", Kind::Text, "The system prompt"),
        may("max_output_tokens", Kind::Integer(1, i64::MAX), "Most tokens of the answer"),
        may("text", Kind::Object(text_format), "The form of the text"),
        may("reasoning", Kind::Object(effort), "How the model reasons"),
        PARALLEL,
        may(
            "truncation",
            Kind::Words(&["auto", "disabled"]),
            "`auto` drops the oldest turns where the context is full",
        ),
        STREAM,
        may("top_logprobs", Kind::Integer(0, 0), "Only 0: /v1/chat/completions has log probabilities"),
        may("background", Kind::Flag, "Only false: clients wait for their responses"),
        may(
            "previous_response_id",
            Kind::Text,
            "The response that this one goes on from, if the server keeps responses (`--store`); otherwise only null",
        ),
        BUDGET,
        CACHE_SALT,
        may("conversation", Kind::Any, "Only null: no conversations are stored"),
        TIMINGS,
        PROGRESS,
        LORA,
    ];
    join([&own, &RESPONSE_FIXED, &TOOLS, &[STOP], &sampler()])
}

/// Fields of responses that change no answer.
pub(crate) const RESPONSE_FIXED: [Field; 2] = [
    may("metadata", Kind::Map, "Words that the response repeats"),
    may("store", Kind::Flag, "False: the response is not kept where the server keeps responses (`--store`)"),
];

fn anthropic_choice() -> Vec<Field> {
    vec![
        needs("type", Kind::Words(&["auto", "any", "tool", "none"]), "The choice"),
        may("name", Kind::Text, "The tool to call, for `tool`"),
        may(
            "disable_parallel_tool_use",
            Kind::Flag,
            "False: allow several calls in an answer that must call",
        ),
    ]
}

fn thinking() -> Vec<Field> {
    vec![
        needs(
            "type",
            Kind::Words(&["enabled", "adaptive", "disabled"]),
            "Reasoning of the model: on, by its choice, or off",
        ),
        may(
            "budget_tokens",
            COUNT,
            "Most tokens of reasoning, less than `max_tokens`; it is ended behind them",
        ),
    ]
}

fn output_format() -> Vec<Field> {
    vec![needs("type", Kind::Words(&["json_schema"]), "The form of the text"), SCHEMA]
}

fn output_config() -> Vec<Field> {
    vec![
        may("effort", Kind::Text, "How much the model reasons, if its template knows that"),
        may("format", Kind::Object(output_format), "The form of the text"),
    ]
}

/// A message without the limit of its answer.
fn counted() -> Vec<Field> {
    let own = [
        MODEL_NEEDED,
        MESSAGES,
        may("system", Kind::Either(&[Kind::Text, Kind::List(&Kind::Map)]), "The system prompt"),
        may("stop_sequences", TEXTS, "Texts at which the answer ends; at most 16"),
        may(
            "tools",
            Kind::List(&Kind::Map),
            "Functions that the model may call; calls of one with `strict` conform to its schema",
        ),
        may("tool_choice", Kind::Object(anthropic_choice), "The functions that the model may or must call"),
        may("thinking", Kind::Object(thinking), "How the model reasons"),
        may("output_config", Kind::Object(output_config), "The form of the answer"),
        STREAM,
    ];
    join([&own, &sampler()])
}

fn message() -> Vec<Field> {
    join([
        &[
            needs(
                "max_tokens",
                Kind::Integer(1, i64::MAX),
                "Most tokens of the answer; `--anthropic-default-max` of the server makes it optional",
            ),
            LORA,
        ],
        &counted(),
    ])
}

const NATIVE: [Field; 11] = [
    STREAM,
    N_PREDICT,
    MAX_TOKENS,
    may("n_probs", Kind::Integer(0, 100), "Log probabilities of so many tokens in each place"),
    may("post_sampling_probs", Kind::Flag, "Probabilities after all samplers instead of them"),
    SHIFT,
    PING,
    may("response_fields", TEXTS, "The fields of the answer to tell, as paths with `/`"),
    RETURN_TOKENS,
    TIMINGS,
    LORA,
];

fn native() -> Vec<Field> {
    join([&[MODEL, PROMPT], &NATIVE, &NATIVE_FIXED, &[PROGRESS], &ENDS, &sampler(), &CONSTRAINTS])
}

fn infill() -> Vec<Field> {
    let own = [
        MODEL,
        needs("input_prefix", Kind::Text, "The text before the gap"),
        needs("input_suffix", Kind::Text, "The text after the gap"),
        may("input_extra", Kind::List(&Kind::Map), "Other files: `filename` and `text` of each"),
        may("prompt", Kind::Text, "The beginning of the text in the gap"),
    ];
    join([&own, &NATIVE, &NATIVE_FIXED, &[PROGRESS], &ENDS, &sampler(), &CONSTRAINTS])
}

const INPUT: Kind = Kind::Either(&[Kind::Text, ANY_LIST, Kind::Map]);

fn embedding() -> Vec<Field> {
    join([&[MODEL], &EMBEDDING])
}

fn ollama_embedding() -> Vec<Field> {
    join([&[MODEL_NEEDED, KEEP_ALIVE], &EMBEDDING])
}

const EMBEDDING: [Field; 10] = [
    may("input", INPUT, "A text, tokens, or a list of them; this, `content` or `prompt`"),
    may("content", INPUT, "llama-server's name of `input`"),
    may("prompt", INPUT, "The name of `input` in ollama's older endpoint"),
    may("dimensions", Kind::Integer(1, u32::MAX as i64), "Values of each vector; at most the model's"),
    may("encoding_format", Kind::Words(&["float", "base64"]), "Numbers, or their bytes in base64"),
    may(
        "embd_normalize",
        Kind::Integer(-1, 1000),
        "Norm of the vectors: -1 none, 0 the largest value, 2 Euclid's",
    ),
    may(
        "truncate_prompt_tokens",
        Kind::Integer(-1, u32::MAX as i64),
        "Cut texts to so many tokens; -1: to the context",
    ),
    may("truncate", Kind::Flag, "Cut texts to the context"),
    CACHE_SALT,
    LORA,
];

fn rerank() -> Vec<Field> {
    vec![
        MODEL,
        needs("query", Kind::Text, "The question"),
        may("documents", ANY_LIST, "Texts, or objects with a `text`; this or `texts`"),
        may("texts", ANY_LIST, "Another name of `documents`"),
        may("top_n", Kind::Integer(1, i64::MAX), "Documents to tell"),
        may("return_documents", Kind::Flag, "Tell their texts, too"),
        CACHE_SALT,
        LORA,
    ]
}

fn score() -> Vec<Field> {
    vec![
        MODEL,
        needs("text_1", TEXTS, "A query for all of `text_2`, or one for each"),
        needs("text_2", TEXTS, "The documents"),
        CACHE_SALT,
        LORA,
    ]
}

fn tokenize() -> Vec<Field> {
    vec![
        MODEL,
        may("content", Kind::Either(&[Kind::Text, ANY_LIST]), "A text, or texts and tokens"),
        may("add_special", Kind::Flag, "Add the tokens that begin a text"),
        may("parse_special", Kind::Flag, "Read the names of special tokens as such; the default"),
        may("with_pieces", Kind::Flag, "Tell the text of each token"),
        may("prompt", Kind::Text, "vLLM's name of `content`"),
        may(
            "messages",
            Kind::List(&Kind::Map),
            "A conversation in place of a text, with the other fields of chats",
        ),
        may("add_special_tokens", Kind::Flag, "vLLM's name of `add_special`; the default there"),
        may("return_token_strs", Kind::Flag, "Tell the text of each token, in vLLM's form"),
    ]
}

fn detokenize() -> Vec<Field> {
    vec![MODEL, may("tokens", TOKENS, "Tokens")]
}

fn rendered() -> Vec<Field> {
    vec![MODEL, PROMPT]
}

fn named() -> Vec<Field> {
    vec![needs("model", Kind::Text, "Name of a model")]
}

fn slot_file() -> Vec<Field> {
    vec![
        may("filename", Kind::Text, "A plain file name in the folder of `--slot-save-path`; not to erase"),
        LORA,
    ]
}

fn shown() -> Vec<Field> {
    vec![
        may("model", Kind::Text, "Name of a model; this or `name`"),
        may("name", Kind::Text, "Its older name"),
    ]
}

fn controlled() -> Vec<Field> {
    vec![
        needs("id", Kind::Text, "Name of an answer that runs, as its stream has it"),
        needs("action", Kind::Words(&["reasoning_end"]), "The action"),
    ]
}

fn pulled() -> Vec<Field> {
    join([&shown(), &[may("stream", Kind::Flag, "Send the progress in lines; the default")]])
}

fn copied() -> Vec<Field> {
    vec![
        needs("source", Kind::Text, "A name of a model"),
        needs("destination", Kind::Text, "Its further name; one that was given before is given anew"),
    ]
}

fn ollama_options() -> Vec<Field> {
    let own = [
        may("num_ctx", Kind::Integer(1, i64::MAX), "At most the context with which the model was loaded"),
        may("num_predict", Kind::Integer(-2, i64::MAX), "Most tokens of the answer; below 1: no limit"),
        may(
            "num_keep",
            Kind::Integer(-1, u32::MAX as i64),
            "Tokens that stay when the context is shifted; -1: all of the prompt",
        ),
        STOP,
    ];
    join([&own, &sampler()])
}

const KEEP_ALIVE: Field = may(
    "keep_alive",
    Kind::Either(&[Kind::Text, Kind::Number(f64::NEG_INFINITY, f64::INFINITY)]),
    "How long the model stays: 5m, or seconds; 0 frees it, -1 keeps it",
);

const OLLAMA: [Field; 10] = [
    may("options", Kind::Object(ollama_options), "Options of the answer"),
    may("format", Kind::Either(&[Kind::Text, Kind::Map]), "`json`, or a JSON schema"),
    may("stream", Kind::Flag, "Send the answer in lines as it is written; the default"),
    may(
        "think",
        Kind::Either(&[Kind::Flag, Kind::Words(&["low", "medium", "high"])]),
        "Reasoning of the model: off, on, or how much",
    ),
    KEEP_ALIVE,
    may("logprobs", Kind::Flag, "Log probabilities of the answer's tokens"),
    may("top_logprobs", Kind::Integer(0, 20), "Those of so many other tokens in each place"),
    may("truncate", Kind::Flag, "Drop the oldest turns where the context is full"),
    may("shift", Kind::Flag, "Drop the older half of a full context, and go on"),
    LORA,
];

fn ollama_chat() -> Vec<Field> {
    join([
        &[
            MODEL_NEEDED,
            may("messages", Kind::List(&Kind::Map), "The conversation; without one the model is only loaded"),
        ],
        &TOOLS,
        &OLLAMA,
    ])
}

fn ollama_generate() -> Vec<Field> {
    let own = [
        MODEL_NEEDED,
        may("prompt", Kind::Text, "The question; without one the model is only loaded"),
        may("suffix", Kind::Text, "A text after the gap that the answer fills"),
        may("system", Kind::Text, "The system prompt"),
        may("raw", Kind::Flag, "The prompt goes without the template"),
        may("context", TOKENS, "Tokens of an earlier answer and its prompt"),
        may("template", Kind::Text, "Only empty: the model's own is used"),
        may("images", ANY_LIST, "Only empty: the model takes text"),
    ];
    join([&own, &OLLAMA])
}

pub(super) static CHAT_REQUEST: Body = Body::new("ChatCompletionRequest", chat);
pub(super) static COMPLETION_REQUEST: Body = Body::new("CompletionRequest", completion);
pub(super) static RESPONSE_REQUEST: Body = Body::new("ResponseRequest", response);
pub(super) static MESSAGE_REQUEST: Body = Body::new("MessageRequest", message);
pub(super) static COUNT_REQUEST: Body = Body::new("CountTokensRequest", counted);
pub(super) static NATIVE_REQUEST: Body = Body::new("LlamaCompletionRequest", native);
pub(super) static INFILL_REQUEST: Body = Body::new("InfillRequest", infill);
pub(super) static EMBEDDING_REQUEST: Body = Body::new("EmbeddingRequest", embedding);
pub(super) static OLLAMA_EMBEDDING_REQUEST: Body = Body::new("OllamaEmbeddingRequest", ollama_embedding);
pub(super) static RERANK_REQUEST: Body = Body::new("RerankRequest", rerank);
pub(super) static SCORE_REQUEST: Body = Body::new("ScoreRequest", score);
pub(super) static TOKENIZE_REQUEST: Body = Body::new("TokenizeRequest", tokenize);
pub(super) static DETOKENIZE_REQUEST: Body = Body::new("DetokenizeRequest", detokenize);
pub(super) static RENDER_REQUEST: Body = Body::new("RenderRequest", rendered);
pub(super) static NAMED_REQUEST: Body = Body::new("ModelName", named);
pub(super) static SLOT_REQUEST: Body = Body::new("SlotFile", slot_file);
pub(super) static LORAS_REQUEST: Body = Body::list("LoraScales", lora);
pub(super) static SHOW_REQUEST: Body = Body::new("OllamaShowRequest", shown);
pub(super) static CONTROL_REQUEST: Body = Body::new("ChatControl", controlled);
pub(super) static PULL_REQUEST: Body = Body::new("OllamaPullRequest", pulled);
pub(super) static COPY_REQUEST: Body = Body::new("OllamaCopyRequest", copied);
pub(super) static OLLAMA_CHAT_REQUEST: Body = Body::new("OllamaChatRequest", ollama_chat);
pub(super) static OLLAMA_GENERATE_REQUEST: Body = Body::new("OllamaGenerateRequest", ollama_generate);
