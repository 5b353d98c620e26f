//! Log probabilities of tokens.

use chaski::text::Logprobs;
use serde_json::{Map, Value, json};

use crate::answers::Token;
use crate::ask::Read;
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

/// Probabilities instead of their logarithms, as llama-server has those after sampling.
pub(crate) fn probabilities(facts: &Facts, tokens: &[Token]) -> Vec<Value> {
    let entry = |id: u32, logprob: f32| {
        let bytes = facts.bytes_of(id);
        json!({"id": id, "token": String::from_utf8_lossy(&bytes), "bytes": bytes, "prob": logprob.exp()})
    };
    let with = tokens.iter().filter_map(|token| token.logprobs.as_ref().map(|found| (token.id, found)));
    with.map(|(id, found)| found.to_json(id, "top_probs", entry)).collect()
}

/// The lists of completions: of a prompt, if it is echoed, whose first token has no probability, and of tokens from
/// this place of the text.
pub(super) fn lists(facts: &Facts, prompt: Option<&Read>, tokens: &[Token], from: usize) -> Value {
    let mut lists = Lists::default();
    if let Some(prompt) = prompt {
        let (mut rest, mut offset) = (&*prompt.text, 0);
        let logprobs = std::iter::once(None).chain(prompt.logprobs.iter().map(Some));
        for (id, found) in prompt.tokens.iter().zip(logprobs) {
            let said = text(facts, *id);
            // The text lacks additions of the tokenizer: a control token, a space.
            let after = [&*said, said.trim_start()].into_iter().find_map(|said| rest.strip_prefix(said));
            let n_char = after.map_or(0, |after| rest[..rest.len() - after.len()].chars().count());
            rest = after.unwrap_or(rest);
            lists.push(facts, said, found, offset);
            offset += n_char;
        }
    }
    let mut offset = from;
    for token in tokens {
        let Some(found) = &token.logprobs else { continue };
        let said = text(facts, token.id);
        let n_char = said.chars().count();
        lists.push(facts, said, Some(found), offset);
        offset += n_char;
    }
    let Lists { texts, logprobs, top, offsets } = lists;
    json!({
        "tokens": texts,
        "token_logprobs": logprobs,
        "top_logprobs": top,
        "text_offset": offsets,
        "content": content(facts, tokens),
    })
}

fn text(facts: &Facts, id: u32) -> String {
    String::from_utf8_lossy(&facts.bytes_of(id)).into_owned()
}

/// A row for each token.
#[derive(Default)]
struct Lists {
    texts: Vec<String>,
    logprobs: Vec<Option<f32>>,
    top: Vec<Option<Map<String, Value>>>,
    offsets: Vec<usize>,
}

impl Lists {
    fn push(&mut self, facts: &Facts, said: String, found: Option<&Logprobs>, offset: usize) {
        let top = |(id, logprob): &(u32, f32)| (text(facts, *id), finite(*logprob).into());
        self.offsets.push(offset);
        self.texts.push(said);
        self.logprobs.push(found.map(|found| finite(found.logprob)));
        self.top.push(found.map(|found| found.top.iter().map(top).collect()));
    }
}
