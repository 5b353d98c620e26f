//! `/api/generate`.

use chaski::Message;
use serde_json::Value;

use super::lines::{Form, Lines};
use super::{Only, options};
use crate::ask::{Ask, Part, Prompt};
use crate::dialect::{Writer, conversation};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fim;
use crate::model::Facts;

/// Reads a body.
pub(crate) fn ask(body: &Value, facts: &Facts) -> Result<(Ask, Box<dyn Writer>), ApiError> {
    let fields = Fields::of(body, "")?;
    let text = fields.need("prompt", fields.text("prompt")?)?;
    let suffix = fim::suffix(&fields)?;
    if fields.text("template")?.is_some_and(|template| !template.is_empty()) {
        return Err(fields.wrong("template", "absent: the model's own is used; `raw` goes without one"));
    }
    options::no_images(&fields)?;
    let context = context(&fields)?;
    let mut options = options::options(&fields, facts)?;
    let is_raw = fields.flag("raw")?.unwrap_or(false);
    let writer = Lines::new(Form::Generate { context: !is_raw }, options.logprobs.is_some());
    let mut ask = match is_raw {
        _ if let Some(suffix) = suffix => {
            let prompt = fim::before(vec![Part::Text(text.into())], suffix, facts)?;
            Ask::new(Prompt::Texts(vec![prompt]), options)
        }
        true => {
            let mut parts = vec![Part::Text(text.into())];
            if !context.is_empty() {
                parts.insert(0, Part::Tokens(context));
            }
            Ask::new(Prompt::Texts(vec![parts]), options)
        }
        false => {
            let mut messages = Vec::new();
            if let Some(system) = fields.text("system")?.filter(|system| !system.is_empty()) {
                messages.push(Message::new("system", system));
            }
            messages.push(Message::new("user", text));
            let mut template = conversation::template(facts, &messages, Vec::new())?;
            options::think(&fields, &mut template)?;
            conversation::limit_reasoning(facts, None, &mut options, &mut template);
            Ask {
                before: context,
                ..Ask::new(Prompt::Chat { messages, template: Box::new(template) }, options)
            }
        }
    };
    ask.stream = options::stream(&fields)?;
    ask.truncate = fields.flag("truncate")?.unwrap_or(false);
    Ok((ask, Box::new(writer)))
}

/// The tokens of an earlier answer and its prompt.
fn context(fields: &Fields<'_>) -> Result<Vec<u32>, ApiError> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let tokens = fields.list("context")?.unwrap_or_default().iter().map(id).collect::<Option<_>>();
    tokens.ok_or_else(|| fields.wrong("context", "a list of tokens"))
}

/// The wish of a request without a prompt: only to load the model, or to free it.
///
/// # Errors
/// Wrong fields.
pub(crate) fn only(body: &Value) -> Result<Option<Only>, ApiError> {
    let fields = Fields::of(body, "")?;
    if fields.text("prompt")?.is_some_and(|prompt| !prompt.is_empty()) {
        return Ok(None);
    }
    Only::of(&fields).map(Some)
}
