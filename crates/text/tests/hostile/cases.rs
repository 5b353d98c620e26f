//! Runs a case of the hostile corpora, in the thread of the caller.

#[path = "grammars.rs"]
pub(crate) mod grammars;
#[path = "templates.rs"]
pub(crate) mod templates;

use std::error::Error;
use std::fmt::Write as _;

use chaski_text::{ChatTemplate, Constraint, LocalTime, Message, TemplateOptions, Tokenizer, TokenizerSpec};

/// Ends in one line: the result's length or the error.
pub(crate) fn run(case: &str) -> Result<usize, String> {
    let (kind, index) = case.split_once(' ').unwrap();
    let index: usize = index.parse().unwrap();
    if kind == "template" {
        let now = Some(LocalTime::from_unix(0, 0));
        let options = TemplateOptions { now, ..TemplateOptions::default() };
        let (_, source) = &templates::corpus()[index];
        let template = ChatTemplate::new(source.as_str()).map_err(words)?;
        return template
            .render_exact(&[Message::new("user", "Hi")], &options)
            .map(|text| text.len())
            .map_err(words);
    }
    let grammar = grammars::corpus()[index].1();
    let tokenizer = tokenizer();
    let mut constraint = Constraint::new(&tokenizer, &grammar).map_err(words)?;
    let mut n_token = 0;
    // Some steps, too: the first allowed token each time.
    while n_token < 20 && !constraint.is_finished() {
        let mut logits = vec![0.0; tokenizer.n_vocab()];
        constraint.mask(&mut logits).map_err(words)?;
        let Some(token) = logits.iter().position(|logit| *logit == 0.0) else { break };
        constraint.accept(token as u32).map_err(words)?;
        n_token += 1;
    }
    Ok(n_token)
}

/// A vocabulary of all bytes and some words.
fn tokenizer() -> Tokenizer {
    let bytes = (0..=255).map(|byte| (format!("<0x{byte:02X}>"), 6));
    let control = [("<unk>", 2), ("<s>", 3), ("</s>", 3)].map(|(text, kind)| (text.to_owned(), kind));
    let letters = (' '..='~').map(|c| (c.to_string(), 1));
    let words =
        ["true", "false", "null", "\":", "\", \"", "w1", "aa", "abc"].map(|text| (text.to_owned(), 1));
    let all = control.into_iter().chain(bytes).chain(letters).chain(words);
    let (tokens, token_types) = all.unzip();
    Tokenizer::from_spec(TokenizerSpec {
        model: "llama".into(),
        tokens,
        token_types,
        ..TokenizerSpec::default()
    })
    .unwrap()
}

fn words(error: impl Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
