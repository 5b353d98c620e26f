//! Conversations, as all dialects with messages have them.

use chaski::options::ReasoningBudget;
use chaski::text::{CallChoice, Content, LocalTime, TemplateOptions};
use chaski::{GenerateOptions, Message};
use serde_json::{Value, json};

use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::model::Facts;

/// The tools that the model has to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// None.
    None,
    /// As it likes.
    Auto,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

/// The variables of the template. A last message of the assistant is continued.
///
/// # Errors
/// [`Kind::Unsupported`] if the model has no template.
pub(super) fn template(
    facts: &Facts,
    messages: &[Message],
    tools: Vec<Value>,
) -> Result<TemplateOptions, ApiError> {
    if facts.about.template.is_none() {
        facts.is_for_answers()?;
        let message =
            "the model has no chat template; use /v1/completions, or start the server with --chat-template";
        return Err(ApiError::new(Kind::Unsupported, message));
    }
    let is_open =
        messages.last().is_some_and(|m| m.role == "assistant" && !m.fields.contains_key("tool_calls"));
    let default = TemplateOptions::default();
    Ok(TemplateOptions {
        tools,
        now: Some(local_time()),
        enable_thinking: facts.variables.enable_thinking.or(default.enable_thinking),
        extra: facts.variables.extra.clone(),
        add_generation_prompt: !is_open,
        ..default
    })
}

/// Limits the reasoning: to as many tokens as the request `asks` for, -1 for any number; else as the server does.
/// Without any, a template that has a switch for reasoning writes a prompt without it.
pub(super) fn limit_reasoning(
    facts: &Facts,
    asks: Option<i64>,
    options: &mut GenerateOptions,
    template: &mut TemplateOptions,
) {
    let budget = asks.map_or(facts.reasoning_budget, |n| usize::try_from(n).ok());
    if budget == Some(0) {
        template.enable_thinking = Some(false);
    }
    options.reasoning = budget.map(ReasoningBudget::new);
}

/// The time where the server is.
fn local_time() -> LocalTime {
    let now = chrono::Local::now();
    LocalTime::from_unix(now.timestamp(), now.offset().local_minus_utc())
}

/// The calls that the answer has to consist of, where the choice requires them. A model that has to call goes on
/// calling, so several calls are for those who ask for them.
///
/// # Errors
/// A constraint of the content beside it.
pub(super) fn force(
    fields: &Fields<'_>,
    options: &GenerateOptions,
    choice: Choice,
    parallel: Option<bool>,
) -> Result<Option<CallChoice>, ApiError> {
    let name = match choice {
        Choice::None | Choice::Auto => return Ok(None),
        Choice::Required => None,
        Choice::Named(name) => Some(name),
    };
    if options.grammar.is_some() {
        let expected = "one that leaves the choice to the model beside a constraint of the content";
        return Err(fields.wrong("tool_choice", expected));
    }
    Ok(Some(CallChoice { name, parallel: parallel.unwrap_or(false), ..CallChoice::default() }))
}

/// A tool in OpenAI's form, as templates expect it.
pub(super) fn tool(name: &str, description: Option<&str>, parameters: Option<Value>) -> Value {
    let mut function = json!({"name": name});
    if let Some(description) = description {
        function["description"] = description.into();
    }
    if let Some(parameters) = parameters {
        function["parameters"] = parameters;
    }
    json!({"type": "function", "function": function})
}

/// The field `strict` of a tool: its calls conform to the schema in `schema`.
///
/// # Errors
/// A schema that no answer can be made to conform to.
pub(super) fn strict(facts: &Facts, tool: &Fields<'_>, schema: &str) -> Result<Option<bool>, ApiError> {
    let strict = tool.flag("strict")?;
    if let (Some(true), Some(found)) = (strict, tool.get(schema)) {
        facts.check_schema(found).map_err(|why| {
            let (path, name) = (tool.path(schema), tool.path("strict"));
            let message = format!("`{path}` cannot be kept to, as `{name}` demands: {why}");
            ApiError { param: Some(path), ..ApiError::new(Kind::Grammar, message) }
        })?;
    }
    Ok(strict)
}

/// A call in OpenAI's form.
pub(super) fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// The parts of an assistant's message, which dialects have as blocks or items.
#[derive(Default)]
pub(super) struct Said {
    pub(super) reasoning: Vec<String>,
    pub(super) content: Vec<String>,
    pub(super) calls: Vec<Value>,
}

impl Said {
    /// The message; `None` if nothing was said.
    pub(super) fn message(self) -> Option<Message> {
        if self.reasoning.is_empty() && self.content.is_empty() && self.calls.is_empty() {
            return None;
        }
        let mut message = Message::new("assistant", self.content.join("\n"));
        if self.content.is_empty() {
            message.content = Some(Content::Null);
        }
        if !self.reasoning.is_empty() {
            message.fields.insert("reasoning_content".into(), self.reasoning.join("\n").into());
        }
        if !self.calls.is_empty() {
            message.fields.insert("tool_calls".into(), self.calls.into());
        }
        Some(message)
    }
}

/// The result of a call. Some templates want the name of its tool.
pub(super) fn result(id: &str, name: Option<&str>, content: impl Into<String>) -> Message {
    let mut message = Message::new("tool", content);
    message.fields.insert("tool_call_id".into(), id.into());
    if let Some(name) = name {
        message.fields.insert("name".into(), name.into());
    }
    message
}

/// The name of the tool of the call with this id, in the messages so far.
pub(super) fn name_of_call<'m>(messages: &'m [Message], id: &str) -> Option<&'m str> {
    let mut calls = messages.iter().rev().filter_map(|m| m.fields.get("tool_calls")?.as_array()).flatten();
    calls.find(|call| call["id"] == id)?["function"]["name"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn models_reason_unless_the_server_says_otherwise() {
        let mut facts = testing::facts();
        let thinks = |facts: &Facts| template(facts, &[], Vec::new()).unwrap().enable_thinking;
        assert_eq!(thinks(&facts), Some(true));
        facts.variables.enable_thinking = Some(false);
        assert_eq!(thinks(&facts), Some(false));
    }

    #[test]
    fn the_budget_of_a_request_comes_before_that_of_the_server() {
        let mut facts = testing::facts();
        let limited = |facts: &Facts, asks: Option<i64>| {
            let (mut options, mut template) = (GenerateOptions::default(), TemplateOptions::default());
            template.enable_thinking = Some(true);
            limit_reasoning(facts, asks, &mut options, &mut template);
            (options.reasoning.map(|budget| budget.n_max()), template.enable_thinking)
        };
        assert_eq!(limited(&facts, None), (None, Some(true)));
        assert_eq!(limited(&facts, Some(9)), (Some(9), Some(true)));
        facts.reasoning_budget = Some(0);
        assert_eq!(limited(&facts, None), (Some(0), Some(false)));
        assert_eq!(limited(&facts, Some(9)), (Some(9), Some(true)));
        assert_eq!(limited(&facts, Some(-1)), (None, Some(true)));
    }
}
