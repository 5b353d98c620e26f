//! `/tokenize`, `/detokenize`, `/apply-template`, and vLLM's forms of them.

use serde_json::{Value, json};

use crate::ask::{Prompt, Read, read_parts};
use crate::dialect::openai;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::{Facts, Served};

/// A token's text, or its bytes if it is no text of its own.
fn piece(facts: &Facts, id: u32) -> Value {
    let bytes = facts.bytes_of(id);
    match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => error.into_bytes().into(),
    }
}

/// The prompts of a body of `/v1/completions`.
pub(crate) fn prompts(served: &Served, body: &Value) -> Result<Vec<Read>, ApiError> {
    let prompts = openai::completions::prompts(&Fields::of(body, "")?, "prompt")?;
    prompts.iter().map(|parts| read_parts(&served.facts, parts, usize::MAX)).collect()
}

/// The tokens of a text, or of a conversation.
pub(crate) fn tokenize(served: &Served, body: &Value) -> Result<Value, ApiError> {
    let (fields, facts) = (Fields::of(body, "")?, &served.facts);
    let flag = |name: &str, default: bool| Ok::<_, ApiError>(fields.flag(name)?.unwrap_or(default));
    if fields.get("messages").is_some() {
        let tokens = chat_prompt(served, body)?.1;
        return Ok(vllm(facts, &tokens, flag("return_token_strs", false)?));
    }
    let parse = flag("parse_special", true)?;
    if let Some(text) = fields.text("prompt")?.filter(|_| fields.get("content").is_none()) {
        let tokens = facts.tokens(text, flag("add_special_tokens", true)?, parse)?;
        return Ok(vllm(facts, &tokens, flag("return_token_strs", false)?));
    }
    let special = flag("add_special", false)?;
    let mut tokens = Vec::new();
    match fields.get("content") {
        None => {}
        Some(Value::String(text)) => tokens = facts.tokens(text, special, parse)?,
        Some(_) => {
            for prompt in openai::completions::prompts(&fields, "content")? {
                for part in prompt {
                    match part {
                        crate::ask::Part::Text(text) => tokens.extend(facts.tokens(&text, special, parse)?),
                        crate::ask::Part::Tokens(ids) => tokens.extend(ids),
                    }
                }
            }
        }
    }
    let told: Value = if flag("with_pieces", false)? {
        tokens.iter().map(|id| json!({"id": id, "piece": piece(facts, *id)})).collect()
    } else {
        json!(tokens)
    };
    Ok(json!({"tokens": told, "count": tokens.len(), "max_model_len": facts.n_ctx}))
}

/// vLLM's answer.
fn vllm(facts: &Facts, tokens: &[u32], with_texts: bool) -> Value {
    let texts = with_texts.then(|| tokens.iter().map(|id| piece(facts, *id)).collect::<Vec<_>>());
    json!({"tokens": tokens, "count": tokens.len(), "max_model_len": facts.n_ctx, "token_strs": texts})
}

/// The text of tokens.
pub(crate) fn detokenize(served: &Served, body: &Value) -> Result<Value, ApiError> {
    let fields = Fields::of(body, "")?;
    let wrong = || fields.wrong("tokens", "a list of tokens");
    let list = fields.list("tokens")?.unwrap_or_default();
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let tokens: Vec<u32> = list.iter().map(id).collect::<Option<_>>().ok_or_else(wrong)?;
    let text = served.facts.text_of(&tokens).map_err(|error| error.of_field("tokens"))?;
    Ok(json!({"content": text, "prompt": text}))
}

/// The prompt of a conversation.
pub(crate) fn chat_prompt(served: &Served, body: &Value) -> Result<(String, Vec<u32>), ApiError> {
    let (ask, _) = openai::chat::ask(body, &served.facts)?;
    let Prompt::Chat { messages, template } = ask.prompt else { unreachable!("chats have conversations") };
    let prompt = crate::ask::chat_prompt(served, &messages, &template, usize::MAX)?;
    Ok((prompt.text, prompt.tokens))
}
