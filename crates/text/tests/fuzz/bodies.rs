//! Bodies of the fuzz targets: any bytes give a result or an error. `random.rs` drives them, too.

use std::sync::LazyLock;

use chaski_text::{
    AddSpecial, ChatTemplate, Constraint, Grammar, LocalTime, Message, ParseSpecial, RenderSpecial,
    TemplateOptions, Tokenizer, TokenizerSpec, byte_to_char,
};
use serde_json::{Map, Value};

/// A template, and behind a zero byte the JSON of its variables.
pub(crate) fn template(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (source, json) = text.split_once('\0').unwrap_or((&text, "{}"));
    let Ok(template) = ChatTemplate::new(source) else { return };
    let variables: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
    let messages = [Message::new("system", "Be brief."), Message::new("user", "Hi <there>")];
    let options = TemplateOptions {
        extra: variables,
        now: Some(LocalTime::from_unix(0, 0)),
        ..TemplateOptions::default()
    };
    let exact = template.render_exact(&messages, &options);
    // The same once more, and prepared.
    assert_eq!(exact.ok(), template.render_exact(&messages, &options).ok());
    let Ok(prompt) = template.render_traced(&messages, &options) else { return };
    let mut end = 0;
    for range in &prompt.data {
        assert!(end <= range.start && range.start < range.end && prompt.text.get(range.clone()).is_some());
        end = range.end;
    }
    BYTES.encode_traced(&prompt, AddSpecial::No).expect("a vocabulary of bytes takes all text");
}

/// A grammar, whose first byte says in which notation.
pub(crate) fn grammar(bytes: &[u8]) {
    let Some((kind, text)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(text).into_owned();
    constrain(&match kind % 3 {
        0 => Grammar::Gbnf(text),
        1 => Grammar::Lark(text),
        _ => Grammar::Regex(text),
    });
}

/// A JSON schema.
pub(crate) fn schema(bytes: &[u8]) {
    let Ok(schema) = serde_json::from_slice(bytes) else { return };
    constrain(&Grammar::JsonSchema(schema));
}

/// Takes some allowed tokens.
fn constrain(grammar: &Grammar) {
    let Ok(mut constraint) = Constraint::new(&BYTES, grammar) else { return };
    for _ in 0..8 {
        let mut logits = vec![0.0; BYTES.n_vocab()];
        if constraint.is_finished() || constraint.mask(&mut logits).is_err() {
            return;
        }
        let Some(token) = logits.iter().position(|logit| *logit == 0.0) else { return };
        if constraint.accept(token as u32).is_err() {
            return;
        }
    }
}

/// A vocabulary: a byte for the kind, lines of tokens and merges, and behind a zero byte a text to encode.
pub(crate) fn tokenizer(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let (words, text) = text.split_once('\0').unwrap_or((&text, "Hello, World! 123"));
    // Lines of two words are merges.
    let (merges, mut tokens): (Vec<String>, Vec<String>) =
        words.lines().map(str::to_owned).partition(|line| line.contains(' '));
    let model = ["llama", "gpt2", "gemma4", "bert", "t5", "test"][usize::from(kind % 6)];
    if kind / 36 % 2 == 1 {
        let byte = |byte| if model == "gpt2" { byte_to_char(byte).into() } else { format!("<0x{byte:02X}>") };
        tokens.extend((0..=255).map(byte));
    }
    let n = tokens.len();
    let pre = ["default", "llama-bpe", "qwen2", "tekken", "youtu", "deepseek-llm"][usize::from(kind / 6 % 6)];
    let spec = TokenizerSpec {
        model: model.into(),
        pre: Some(pre.into()),
        scores: (0..n).map(|i| -(i as f32)).collect(),
        token_types: tokens.iter().map(|token| token.len() as i32 % 7).collect(),
        tokens,
        merges,
        ..TokenizerSpec::default()
    };
    let Ok(tokenizer) = Tokenizer::from_spec(spec) else { return };
    for (special, parse) in [(AddSpecial::No, ParseSpecial::No), (AddSpecial::Yes, ParseSpecial::Yes)] {
        if let Ok(ids) = tokenizer.encode(text, special, parse) {
            let _ = tokenizer.decode_lossy(&ids, RenderSpecial::Yes);
            // No text is refused for more tokens than it has.
            assert_eq!(tokenizer.within(ids.len()).encode(text, special, parse).ok(), Some(ids));
        }
    }
}

/// All bytes, and the characters of ASCII.
static BYTES: LazyLock<Tokenizer> = LazyLock::new(|| {
    let control = [("<unk>", 2), ("<s>", 3), ("</s>", 3)].map(|(text, kind)| (text.to_owned(), kind));
    let bytes = (0..=255).map(|byte| (format!("<0x{byte:02X}>"), 6));
    let letters = (' '..='~').map(|c| (c.to_string(), 1));
    let (tokens, token_types) = control.into_iter().chain(bytes).chain(letters).unzip();
    let spec = TokenizerSpec { model: "llama".into(), tokens, token_types, ..TokenizerSpec::default() };
    Tokenizer::from_spec(spec).expect("the vocabulary is valid")
});
