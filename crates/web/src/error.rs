//! Errors as a page sees them: `{ code, message, hint, detail }`.

use std::error::Error as StdError;

use chaski::{ConstraintError, Error, FormatError, ModelError, PlanError, RuntimeError};
use serde_json::{Value, json};
use wasm_bindgen::JsValue;

/// What a page's own code threw while it read a file for us; it goes back to the page as it came.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct JsFailure {
    message: String,
    /// The `code`, `hint` and `detail` of an `EngineError`; null for anything else.
    fields: Value,
}

impl JsFailure {
    pub(crate) fn short(found: usize, expected: usize) -> JsFailure {
        let message = format!("expected {expected} bytes, found {found}");
        JsFailure { message, fields: Value::Null }
    }
}

impl From<JsValue> for JsFailure {
    fn from(thrown: JsValue) -> JsFailure {
        let get = |name: &str| js_sys::Reflect::get(&thrown, &name.into()).ok();
        let message = get("message").and_then(|m| m.as_string()).or_else(|| thrown.as_string());
        let field = |name| get(name).and_then(|v| js_sys::JSON::stringify(&v).ok()?.as_string());
        let parsed = |name| field(name).and_then(|t| serde_json::from_str(&t).ok()).unwrap_or(Value::Null);
        let fields = match parsed("code") {
            Value::String(code) => {
                json!({ "code": code, "hint": parsed("hint"), "detail": parsed("detail") })
            }
            _ => Value::Null,
        };
        JsFailure { message: message.unwrap_or_else(|| "unknown error".into()), fields }
    }
}

/// The error with its causes as one line.
fn chain(e: &dyn StdError) -> String {
    let mut text = e.to_string();
    let mut next = e.source();
    while let Some(cause) = next {
        let line = cause.to_string();
        // Transparent errors say the same twice.
        if !text.ends_with(&line) {
            text.push_str(": ");
            text.push_str(&line);
        }
        next = cause.source();
    }
    text
}

fn find<'a, T: StdError + 'static>(e: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(e);
    while let Some(e) = next {
        if let Some(found) = e.downcast_ref::<T>() {
            return Some(found);
        }
        next = e.source();
    }
    None
}

/// Code, hint and detail of an error of the engine.
fn classify(e: &(dyn StdError + 'static)) -> (&'static str, &'static str, Value) {
    let none = Value::Null;
    let runtime = |e: &RuntimeError| match e {
        RuntimeError::NoAdapter { .. } | RuntimeError::Open { .. } => Some((
            "webgpu_unavailable",
            "use a browser with WebGPU: Chrome or Edge 113, Safari 26, Firefox 141, or later",
            Value::Null,
        )),
        RuntimeError::OutOfMemory { what, n_byte } => Some((
            "out_of_memory",
            "use a smaller contextLength, kvType \"q8_0\", or a smaller model",
            json!({ "what": what, "bytes": n_byte }),
        )),
        RuntimeError::DeviceLost { reason } => Some((
            "device_lost",
            "the driver resets the GPU again and again; close other programs that use it, or take a smaller model",
            json!({ "reason": reason }),
        )),
        RuntimeError::Limit { what: "tokens of the sequence", found, limit } => Some((
            "context_overflow",
            "shorten the conversation, or create the engine with a larger contextLength",
            json!({ "found": found, "limit": limit }),
        )),
        RuntimeError::Limit { what, found, limit } => {
            Some(("bad_request", "", json!({ "what": what, "found": found, "limit": limit })))
        }
        RuntimeError::SelfTest { .. } | RuntimeError::Refused { .. } | RuntimeError::WrongResult { .. } => {
            Some(("driver", "update the browser and the graphics driver", Value::Null))
        }
        RuntimeError::NoDequantizer { tensor, ty }
        | RuntimeError::Format(FormatError { tensor, ty })
        | RuntimeError::Plan(PlanError::Format(FormatError { tensor, ty })) => Some((
            "unsupported_quant",
            "use another quantisation of this model",
            json!({ "tensor": tensor, "type": ty.name() }),
        )),
        RuntimeError::Plan(_) => {
            Some(("unsupported_quant", "use another quantisation of this model", Value::Null))
        }
        _ => None,
    };
    let model = |e: &ModelError| match e {
        ModelError::Architecture { name, .. } => Some((
            "unsupported_arch",
            "a newer version of chaski may know this model",
            json!({ "architecture": name }),
        )),
        ModelError::Unsupported { what } => {
            Some(("unsupported", "a newer version of chaski may know this", json!({ "what": what })))
        }
        ModelError::Template(_) => {
            Some(("template", "the model's chat template refuses these messages", Value::Null))
        }
        ModelError::Constraint(ConstraintError::FeatureDisabled) => Some((
            "unsupported",
            "build the package with `cargo xtask web --constraint` for response_format and grammar",
            Value::Null,
        )),
        ModelError::KvType(_)
        | ModelError::Constraint(_)
        | ModelError::Token { .. }
        | ModelError::ShortText { .. } => Some(("bad_request", "", Value::Null)),
        ModelError::Session(_) => Some((
            "bad_request",
            "restore it in an engine with the model, device, kvType and inputs that it was saved with",
            Value::Null,
        )),
        ModelError::Pooling(_) => {
            Some(("bad_request", "say how tokens are pooled with `pooling`", Value::Null))
        }
        ModelError::Sample(_) => Some(("bad_request", "no token is left to choose", Value::Null)),
        ModelError::Open(_)
        | ModelError::Metadata(_)
        | ModelError::NoTensor { .. }
        | ModelError::Shape { .. }
        | ModelError::Values { .. }
        | ModelError::Config { .. }
        | ModelError::Tokenizer(_) => {
            Some(("bad_file", "the file is damaged, or no GGUF model; load it again", Value::Null))
        }
        _ => None,
    };
    let (found, of_model) = (find::<Error>(e), find::<ModelError>(e));
    // Transparent errors are no links of the chain, so they are taken apart.
    let of_model = of_model.or(match found {
        Some(Error::Model(m)) => Some(m),
        _ => None,
    });
    let of_runtime = find::<RuntimeError>(e).or(match (found, of_model) {
        (Some(Error::Runtime(r)), _) | (_, Some(ModelError::Runtime(r))) => Some(r),
        _ => None,
    });
    if let Some(e) = of_runtime.and_then(runtime).or_else(|| of_model.and_then(model)) {
        return e;
    }
    match found {
        Some(Error::NoTemplate) => ("no_template", "use completions.create with a plain prompt", none),
        Some(Error::NoFile) => ("bad_request", "", none),
        Some(Error::Source(_)) => ("read_failed", "", none),
        _ => ("internal", "", none),
    }
}

/// The error as a value to throw.
pub(crate) fn to_js(e: impl StdError + 'static) -> JsValue {
    let message = chain(&e);
    if let Some(own) = find::<JsFailure>(&e) {
        if let Value::Object(fields) = &own.fields {
            let mut all = fields.clone();
            all.insert("message".into(), own.message.as_str().into());
            return thrown(&Value::Object(all));
        }
        return thrown(&json!({ "code": "read_failed", "message": message, "hint": "", "detail": null }));
    }
    let (code, hint, detail) = classify(&e);
    thrown(&json!({ "code": code, "message": message, "hint": hint, "detail": detail }))
}

/// A request that makes no sense.
pub(crate) fn bad_request(message: impl std::fmt::Display) -> JsValue {
    thrown(&json!({ "code": "bad_request", "message": message.to_string(), "hint": "", "detail": null }))
}

fn thrown(value: &Value) -> JsValue {
    js_sys::JSON::parse(&value.to_string()).unwrap_or_else(|e| e)
}

/// A model that would take more memory than it may.
pub(crate) fn over_budget(need: u64, budget: f64) -> JsValue {
    thrown(&json!({
        "code": "out_of_memory",
        "message": format!("the model takes {need} bytes of memory, but the budget is {budget} bytes"),
        "hint": "use a smaller contextLength, kvType \"q8_0\", or a smaller model",
        "detail": { "bytes": need, "budget": budget },
    }))
}
