//! `/api/chat`.

use serde_json::Value;

use super::lines::{Form, Lines};
use super::messages::messages;
use super::{Only, options};
use crate::ask::{Ask, Prompt};
use crate::dialect::openai::messages::tools;
use crate::dialect::{Writer, conversation};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Facts;

/// Reads a body.
pub(crate) fn ask(body: &Value, facts: &Facts) -> Result<(Ask, Box<dyn Writer>), ApiError> {
    let fields = Fields::of(body, "")?;
    let messages = messages(&fields)?;
    let mut options = options::options(&fields, facts)?;
    let (tools, choice) = tools(&fields, facts)?;
    let mut template = conversation::template(facts, &messages, tools)?;
    options::think(&fields, &mut template)?;
    conversation::limit_reasoning(facts, None, &mut options, &mut template);
    let calls = conversation::force(&fields, &options, choice, None)?;
    let writer = Lines::new(Form::Chat, options.logprobs.is_some());
    let prompt = Prompt::Chat { messages, template: Box::new(template) };
    let ask = Ask {
        stream: options::stream(&fields)?,
        calls,
        truncate: fields.flag("truncate")?.unwrap_or(false),
        ..Ask::new(prompt, options)
    };
    Ok((ask, Box::new(writer)))
}

/// The wish of a request without messages: only to load the model, or to free it.
///
/// # Errors
/// Wrong fields.
pub(crate) fn only(body: &Value) -> Result<Option<Only>, ApiError> {
    let fields = Fields::of(body, "")?;
    if fields.list("messages")?.is_some_and(|list| !list.is_empty()) {
        return Ok(None);
    }
    Only::of(&fields).map(Some)
}
