//! Grammars in browsers: a module of its own, which pages load with the first request that has one.
//!
//! The engine's module hands over its vocabulary and gets masks; nothing else is shared. Errors are thrown as texts.
#![cfg(target_arch = "wasm32")]

use std::error::Error;

use chaski_text::{AnswerSyntax, CallChoice, Constraint, ConstraintError, Grammar, Tokenizer};
use serde::Deserialize;
use serde_json::Value;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// The constraint of an answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Rule {
    /// JSON that conforms to a schema.
    JsonSchema(Value),
    /// Text of a grammar, in llama.cpp's notation or Lark's.
    Grammar(String),
    /// Calls of these tools alone.
    Calls(Calls),
    /// Any text, with calls of these tools; those of strict ones conform to their schemas.
    Strict(Vec<Value>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Calls {
    tools: Vec<Value>,
    name: Option<String>,
    parallel: bool,
    may_reason: bool,
}

/// Words in templates of models that reason.
const REASONING: [&str; 3] = ["<think>", "reasoning_content", "<|channel|>"];

/// Grammars for the vocabulary of a model.
#[wasm_bindgen]
pub struct Grammars {
    tokenizer: Tokenizer,
}

#[wasm_bindgen]
impl Grammars {
    /// Takes the vocabulary of a model (`WebEngine::vocabulary`).
    ///
    /// # Errors
    /// Bytes that are none.
    #[wasm_bindgen(constructor)]
    pub fn new(vocabulary: &[u8]) -> Result<Grammars, JsValue> {
        let broken = || JsValue::from("the vocabulary cannot be read");
        Ok(Grammars { tokenizer: Tokenizer::from_vocabulary(vocabulary).ok_or_else(broken)? })
    }

    /// Starts the text of a [`Rule`] (JSON), which answers a prompt of a chat template.
    ///
    /// # Errors
    /// Rules that are invalid, or that the model's notation of calls cannot express.
    pub fn start(&self, rule: &str, template: &str, prompt: &str) -> Result<Masks, JsValue> {
        let rule: Rule = serde_json::from_str(rule).map_err(|e| JsValue::from(e.to_string()))?;
        let syntax = AnswerSyntax::of_template(template);
        let grammar = match rule {
            Rule::JsonSchema(schema) => Grammar::JsonSchema(schema),
            Rule::Grammar(text) => Grammar::from_text(text),
            Rule::Calls(Calls { tools, name, parallel, may_reason }) => {
                let may_reason = may_reason && REASONING.iter().any(|word| template.contains(word));
                let choice = CallChoice { name, parallel, prompt: prompt.to_owned(), may_reason };
                let grammar = syntax.or_object().call_grammar(&self.tokenizer, &tools, &choice);
                grammar.map_err(|e| refused("the answer cannot be made to call these tools", &e))?
            }
            Rule::Strict(tools) => {
                let grammar = syntax.strict_grammar(&self.tokenizer, &tools, prompt);
                let grammar = grammar.map_err(|e| refused("the tools cannot be strict", &e))?;
                grammar.ok_or_else(|| JsValue::from("no tool is strict, or the model has no calls"))?
            }
        };
        let text = Constraint::new(&self.tokenizer, &grammar).map_err(failed)?;
        Ok(Masks { text })
    }
}

/// The masks of a text under generation.
#[wasm_bindgen]
pub struct Masks {
    text: Constraint,
}

#[wasm_bindgen]
impl Masks {
    /// Sets the bits of the tokens that are allowed next, and clears the others.
    ///
    /// # Errors
    /// The grammar takes too much time or memory.
    pub fn allowed(&mut self, words: &mut [u32]) -> Result<(), JsValue> {
        self.text.allowed(words).map_err(failed)
    }

    /// Advances by a token.
    ///
    /// # Errors
    /// The token is not allowed.
    pub fn accept(&mut self, token: u32) -> Result<(), JsValue> {
        self.text.accept(token).map_err(failed)
    }

    /// True if the text is complete and cannot be continued.
    pub fn is_finished(&self) -> bool {
        self.text.is_finished()
    }

    /// True if the text is complete; it may still continue.
    ///
    /// # Errors
    /// As [`Self::allowed`].
    pub fn may_end(&mut self) -> Result<bool, JsValue> {
        self.text.may_end().map_err(failed)
    }
}

fn failed(e: ConstraintError) -> JsValue {
    chain(&e).into()
}

fn refused(what: &str, e: &dyn Error) -> JsValue {
    format!("{what}: {}", chain(e)).into()
}

/// An error with its causes, as one line.
fn chain(e: &dyn Error) -> String {
    let (mut text, mut next) = (e.to_string(), e.source());
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
