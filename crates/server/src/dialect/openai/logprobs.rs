//! Log probabilities of tokens.

use serde_json::{Value, json};

use crate::answers::Token;
use crate::model::Facts;

/// A token with its log probability, as chats have it.
fn entry(facts: &Facts, id: u32, logprob: f32) -> Value {
    let bytes = facts.bytes_of(id);
    json!({"id": id, "token": String::from_utf8_lossy(&bytes), "bytes": bytes, "logprob": finite(logprob)})
}

/// JSON has no infinity.
fn finite(logprob: f32) -> f32 {
    logprob.max(-9999.0)
}

/// The content of `logprobs` in chats.
pub(crate) fn content(facts: &Facts, tokens: &[Token]) -> Vec<Value> {
    let with = tokens.iter().filter_map(|token| token.logprobs.as_ref().map(|found| (token.id, found)));
    with.map(|(id, found)| {
        let mut told = entry(facts, id, found.logprob);
        told["top_logprobs"] = found.top.iter().map(|(id, logprob)| entry(facts, *id, *logprob)).collect();
        told
    })
    .collect()
}

/// The lists of completions, from this place of the text.
pub(super) fn lists(facts: &Facts, tokens: &[Token], from: usize) -> Value {
    let text = |id: u32| String::from_utf8_lossy(&facts.bytes_of(id)).into_owned();
    let (mut texts, mut logprobs, mut top, mut offsets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut offset = from;
    for token in tokens {
        let Some(found) = &token.logprobs else { continue };
        let said = text(token.id);
        offsets.push(offset);
        offset += said.chars().count();
        texts.push(said);
        logprobs.push(finite(found.logprob));
        let row: serde_json::Map<String, Value> =
            found.top.iter().map(|(id, logprob)| (text(*id), finite(*logprob).into())).collect();
        top.push(row);
    }
    json!({
        "tokens": texts,
        "token_logprobs": logprobs,
        "top_logprobs": top,
        "text_offset": offsets,
        "content": content(facts, tokens),
    })
}
