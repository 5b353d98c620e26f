//! Errors as a page sees them: `{ code, message, hint, detail }`.

use std::error::Error as StdError;

use chaski::Error;
use chaski::errors::{FormatError, ModelError, PlanError, PoolingError, RuntimeError, TokenizerError};
use chaski::serve::{Refused, ServeError};
use serde_json::{Value, json};
use wasm_bindgen::JsValue;

/// An exception of the page's code while it read a file; it is rethrown unchanged.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct JsFailure {
    message: String,
    /// Those of an `EngineError`; null for anything else.
    fields: Value,
}

impl JsFailure {
    pub(crate) fn short(found: usize, expected: usize) -> JsFailure {
        let message = format!("expected {expected} bytes, found {found}");
        JsFailure { message, fields: Value::Null }
    }

    pub(crate) fn refused(message: String) -> JsFailure {
        JsFailure { fields: fields("bad_request", &message, "", Value::Null), message }
    }
}

impl From<JsValue> for JsFailure {
    fn from(thrown: JsValue) -> JsFailure {
        let get = |name: &str| js_sys::Reflect::get(&thrown, &name.into()).ok();
        let message = get("message").and_then(|m| m.as_string()).or_else(|| thrown.as_string());
        let message = message.unwrap_or_else(|| "unknown error".into());
        let field = |name| get(name).and_then(|v| js_sys::JSON::stringify(&v).ok()?.as_string());
        let parsed = |name| field(name).and_then(|t| serde_json::from_str(&t).ok()).unwrap_or(Value::Null);
        let fields = match parsed("code") {
            Value::String(code) => {
                fields(&code, &message, parsed("hint").as_str().unwrap_or(""), parsed("detail"))
            }
            _ => Value::Null,
        };
        JsFailure { message, fields }
    }
}

/// The error with its causes as one line.
fn chain(e: &dyn StdError) -> String {
    let mut text = e.to_string();
    let mut next = e.source();
    while let Some(cause) = next {
        let line = cause.to_string();
        // Transparent errors repeat their cause's text.
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

/// Hints for error codes.
const HINTS: &[(&str, &str)] = &[
    ("webgpu_unavailable", "use a browser with WebGPU: Chrome or Edge 113, Safari 26, Firefox 141, or later"),
    ("out_of_memory", "use a smaller contextLength, kvType \"q8_0\", or a smaller model"),
    (
        "device_lost",
        "the driver keeps resetting the GPU; close other programs that use it, or use a smaller model",
    ),
    (
        "context_overflow",
        "shorten the conversation or its last message, or create the engine with a larger contextLength",
    ),
    ("driver", "update the browser and the graphics driver"),
    ("unsupported_quant", "use another quantisation of this model"),
    ("unsupported_arch", "a newer version of chaski may support this model"),
    ("unsupported", "a newer version of chaski may support this"),
    ("template", "the model's chat template rejects these messages"),
    ("bad_file", "the file is damaged or not a GGUF model; download it again"),
    ("no_template", "use completions.create with a plain prompt"),
];

/// The hint for a code, if it has one.
fn of_code(code: &str) -> &'static str {
    HINTS.iter().find(|h| h.0 == code).map_or("", |h| h.1)
}

/// The engine's code in the page's terms.
fn code(e: &Error) -> &'static str {
    match e.code() {
        "no_device" => "webgpu_unavailable",
        "unsupported_format" => "unsupported_quant",
        code => code,
    }
}

/// More specific hints for single errors.
fn hint(e: &Error) -> Option<&'static str> {
    Some(match e.model()? {
        ModelError::Session(_) => {
            "restore it in an engine with the model, device, kvType and inputs that it was saved with"
        }
        ModelError::Pooling(PoolingError::NoScores) => "load a model that was made to rank documents",
        ModelError::Pooling(_) => "specify the pooling with `pooling`",
        ModelError::Sample(_) => "no candidate token is left",
        _ => return None,
    })
}

/// The values in an error's message.
fn detail(e: &Error) -> Value {
    match e {
        Error::Serve(ServeError::Refused(Refused::Context { found, limit })) => {
            return json!({ "found": found, "limit": limit });
        }
        Error::Model(ModelError::Tokenizer(TokenizerError::TooLong { at_least, limit })) => {
            return json!({ "found": at_least, "limit": limit });
        }
        Error::Serve(ServeError::Busy { found, limit }) => return json!({ "found": found, "limit": limit }),
        _ => {}
    }
    match (e.runtime(), e.model()) {
        (Some(RuntimeError::OutOfMemory { what, n_byte }), _) => json!({ "what": what, "bytes": n_byte }),
        (Some(RuntimeError::DeviceLost { reason }), _) => json!({ "reason": reason }),
        (Some(RuntimeError::Limit { what: "tokens of the sequence", found, limit }), _) => {
            json!({ "found": found, "limit": limit })
        }
        (Some(RuntimeError::Limit { what, found, limit }), _) => {
            json!({ "what": what, "found": found, "limit": limit })
        }
        (
            Some(
                RuntimeError::NoDequantizer { tensor, ty }
                | RuntimeError::Format(FormatError { tensor, ty })
                | RuntimeError::Plan(PlanError::Format(FormatError { tensor, ty })),
            ),
            _,
        ) => json!({ "tensor": tensor, "type": ty.name() }),
        (_, Some(ModelError::Context { found, limit })) => json!({ "found": found, "limit": limit }),
        (_, Some(ModelError::Architecture { name, .. })) => json!({ "architecture": name }),
        (_, Some(ModelError::Unsupported { what })) => json!({ "what": what }),
        _ => Value::Null,
    }
}

/// The error as a value to throw.
pub(crate) fn to_js(e: impl Into<Error>) -> JsValue {
    let e: Error = e.into();
    let message = chain(&e);
    if let Some(own) = find::<JsFailure>(&e) {
        if own.fields != Value::Null {
            return thrown(&own.fields);
        }
        let code =
            if matches!(e.model(), Some(ModelError::Constraint(_))) { "internal" } else { "read_failed" };
        return thrown(&fields(code, &message, "", Value::Null));
    }
    let code = code(&e);
    let hint = hint(&e).unwrap_or_else(|| of_code(code));
    thrown(&fields(code, &message, hint, detail(&e)))
}

/// An invalid request.
pub(crate) fn bad_request(message: impl std::fmt::Display) -> JsValue {
    thrown(&fields("bad_request", &message.to_string(), "", Value::Null))
}

fn fields(code: &str, message: &str, hint: &str, detail: Value) -> Value {
    json!({ "code": code, "message": message, "hint": hint, "detail": detail })
}

fn thrown(value: &Value) -> JsValue {
    js_sys::JSON::parse(&value.to_string()).unwrap_or_else(|e| e)
}

/// A model that would exceed the memory budget.
pub(crate) fn over_budget(need: u64, budget: f64) -> JsValue {
    let message = format!("the model takes {need} bytes of memory, but the budget is {budget} bytes");
    let hint = of_code("out_of_memory");
    thrown(&fields("out_of_memory", &message, hint, json!({ "bytes": need, "budget": budget })))
}
