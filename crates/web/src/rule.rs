//! Rules of answers: their masks come from another module, which knows grammars (`chaski-grammar`).

use chaski::Grammar;
use chaski::errors::ConstraintError;
use chaski::text::{Masks, OwnGrammar};
use send_wrapper::SendWrapper;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::JsFailure;

#[wasm_bindgen]
extern "C" {
    /// `{ start(template, prompt) }` gives the masks of an answer to this prompt.
    pub type JsRule;
    #[wasm_bindgen(method, catch)]
    fn start(this: &JsRule, template: &str, prompt: &str) -> Result<JsMasks, JsValue>;

    /// `Masks` of the other module.
    type JsMasks;
    #[wasm_bindgen(method, catch)]
    fn allowed(this: &JsMasks, words: &mut [u32]) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn accept(this: &JsMasks, token: u32) -> Result<(), JsValue>;
    #[wasm_bindgen(method)]
    fn is_finished(this: &JsMasks) -> bool;
    #[wasm_bindgen(method, catch)]
    fn may_end(this: &JsMasks) -> Result<bool, JsValue>;
    #[wasm_bindgen(method)]
    fn free(this: &JsMasks);
}

/// The grammar of a rule, for an answer to a prompt of this template.
pub(crate) fn grammar(rule: JsRule, template: &str, prompt: &str) -> Grammar {
    let (rule, template, prompt) = (SendWrapper::new(rule), template.to_owned(), prompt.to_owned());
    Grammar::Own(OwnGrammar::new(move || {
        let masks = rule.start(&template, &prompt).map_err(|e| failed(0, e))?;
        Ok(Box::new(Text { masks: SendWrapper::new(masks), n_token: 0 }))
    }))
}

/// The other module throws its errors as texts; anything else is a failure of that module itself.
fn failed(n_token: usize, thrown: JsValue) -> ConstraintError {
    let failure = match thrown.as_string() {
        Some(message) => JsFailure::refused(message),
        None => JsFailure::from(thrown),
    };
    ConstraintError::Step { n_token, source: Box::new(failure) }
}

/// A text under generation.
struct Text {
    masks: SendWrapper<JsMasks>,
    n_token: usize,
}

impl Drop for Text {
    fn drop(&mut self) {
        self.masks.free();
    }
}

impl Masks for Text {
    fn allowed(&mut self, words: &mut [u32]) -> Result<(), ConstraintError> {
        self.masks.allowed(words).map_err(|e| failed(self.n_token, e))
    }

    fn accept(&mut self, token: u32) -> Result<(), ConstraintError> {
        self.masks.accept(token).map_err(|e| failed(self.n_token, e))?;
        self.n_token += 1;
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.masks.is_finished()
    }

    fn may_end(&mut self) -> Result<bool, ConstraintError> {
        self.masks.may_end().map_err(|e| failed(self.n_token, e))
    }
}
