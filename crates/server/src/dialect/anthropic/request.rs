//! The conversation, its tools and its options.

use chaski::text::{CallChoice, TemplateOptions};
use chaski::{GenerateOptions, Grammar, Message};
use serde_json::Value;

use crate::dialect::conversation::{self, Choice, Said};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Facts;

/// The messages, with the system prompt as the first.
pub(super) fn messages(fields: &Fields<'_>, facts: &Facts) -> Result<Vec<Message>, ApiError> {
    let list = fields.need("messages", fields.list("messages")?)?;
    if list.is_empty() {
        return Err(fields.wrong("messages", "a list of at least one message"));
    }
    let mut messages = Vec::new();
    if fields.get("system").is_some() {
        messages.push(Message::new("system", facts.dialects.system(text(fields, "system")?)));
    }
    for (i, value) in list.iter().enumerate() {
        let message = Fields::of(value, format!("messages[{i}]"))?;
        match message.need("role", message.text("role")?)? {
            "assistant" => messages.extend(said(&message)?.message()),
            "user" => heard(&message, &mut messages)?,
            "system" => messages.push(Message::new("system", text(&message, "content")?)),
            _ => return Err(message.wrong("role", "\"user\" or \"assistant\"")),
        }
    }
    Ok(messages)
}

/// Blocks with their types; a string is a block of text.
fn blocks<'a>(fields: &Fields<'a>, name: &str) -> Result<Vec<Block<'a>>, ApiError> {
    match fields.need(name, fields.get(name))? {
        Value::String(text) => Ok(vec![Block::Text(text)]),
        Value::Array(list) => {
            let block = |(i, value): (usize, &'a Value)| {
                let block = Fields::of(value, format!("{}[{i}]", fields.path(name)))?;
                match block.need("type", block.text("type")?)? {
                    "text" => Ok(Block::Text(block.need("text", block.text("text")?)?)),
                    kind => Ok(Block::Other(kind, block)),
                }
            };
            list.iter().enumerate().map(block).collect()
        }
        _ => Err(fields.wrong(name, "a string or a list of blocks")),
    }
}

enum Block<'a> {
    Text(&'a str),
    /// A block of another type.
    Other(&'a str, Fields<'a>),
}

/// The error of a block that has no place here.
fn misplaced(kind: &str, block: &Fields<'_>, expected: &str) -> ApiError {
    match kind {
        "image" | "document" => {
            let message = format!("`{}`: the model takes no `{kind}`, only text", block.path("type"));
            ApiError::field(block.path("type"), message)
        }
        _ => block.wrong("type", expected),
    }
}

/// Blocks of text, each on a line of its own.
fn text(fields: &Fields<'_>, name: &str) -> Result<String, ApiError> {
    let text = |block| match block {
        Block::Text(text) => Ok(text),
        Block::Other(kind, block) => Err(misplaced(kind, &block, "\"text\"")),
    };
    let texts: Vec<&str> = blocks(fields, name)?.into_iter().map(text).collect::<Result<_, _>>()?;
    Ok(texts.join("\n"))
}

/// A message of the assistant.
fn said(message: &Fields<'_>) -> Result<Said, ApiError> {
    let mut said = Said::default();
    for block in blocks(message, "content")? {
        match block {
            Block::Text(text) => said.content.push(text.into()),
            Block::Other("thinking", block) => {
                said.reasoning.push(block.need("thinking", block.text("thinking")?)?.into());
            }
            // Its text is known to its own service alone.
            Block::Other("redacted_thinking", _) => {}
            Block::Other("tool_use", block) => {
                let (id, name) = (block.text("id")?, block.text("name")?);
                let input = block.need("input", block.object("input")?)?;
                let input = Value::Object(input.map().clone()).to_string();
                said.calls.push(conversation::call(block.need("id", id)?, block.need("name", name)?, &input));
            }
            Block::Other(kind, block) => {
                return Err(misplaced(kind, &block, "\"text\", \"thinking\" or \"tool_use\""));
            }
        }
    }
    Ok(said)
}

/// The messages of a user's message: results of calls are messages of their own.
fn heard(message: &Fields<'_>, messages: &mut Vec<Message>) -> Result<(), ApiError> {
    let mut texts: Vec<&str> = Vec::new();
    let blocks = blocks(message, "content")?;
    let is_empty = blocks.is_empty();
    for block in blocks {
        match block {
            Block::Text(text) => texts.push(text),
            Block::Other("tool_result", block) => {
                if !texts.is_empty() {
                    messages.push(Message::new("user", std::mem::take(&mut texts).join("\n")));
                }
                let id = block.need("tool_use_id", block.text("tool_use_id")?)?;
                let content = block.get("content").map(|_| text(&block, "content")).transpose()?;
                let name = conversation::name_of_call(messages, id).map(String::from);
                let mut result = conversation::result(id, name.as_deref(), content.unwrap_or_default());
                if block.flag("is_error")? == Some(true) {
                    result.fields.insert("is_error".into(), true.into());
                }
                messages.push(result);
            }
            Block::Other(kind, block) => return Err(misplaced(kind, &block, "\"text\" or \"tool_result\"")),
        }
    }
    if !texts.is_empty() || is_empty {
        messages.push(Message::new("user", texts.join("\n")));
    }
    Ok(())
}

/// The tools in OpenAI's form.
fn tools(fields: &Fields<'_>, facts: &Facts) -> Result<Vec<Value>, ApiError> {
    let tool = |(i, value): (usize, &Value)| {
        let tool = Fields::of(value, format!("tools[{i}]"))?;
        if !matches!(tool.text("type")?, None | Some("custom")) {
            let expected = "\"custom\": the server has no tools of its own";
            return Err(tool.wrong("type", expected));
        }
        let name = tool.need("name", tool.text("name")?)?;
        let schema = tool.need("input_schema", tool.object("input_schema")?)?;
        let schema = Some(schema.map().clone().into());
        let mut found = conversation::tool(name, tool.text("description")?, schema);
        if let Some(strict) = conversation::strict(facts, &tool, "input_schema")? {
            found["function"]["strict"] = strict.into();
        }
        Ok(found)
    };
    fields.list("tools")?.unwrap_or_default().iter().enumerate().map(tool).collect()
}

/// The tools that are offered, the choice among them, and the permission of several calls, if it says so.
fn chosen(fields: &Fields<'_>, facts: &Facts) -> Result<(Vec<Value>, Choice, Option<bool>), ApiError> {
    let tools = tools(fields, facts)?;
    let Some(choice) = fields.object("tool_choice")? else { return Ok((tools, Choice::Auto, None)) };
    let parallel = choice.flag("disable_parallel_tool_use")?.map(|is_one| !is_one);
    let found = match choice.need("type", choice.text("type")?)? {
        "auto" => return Ok((tools, Choice::Auto, parallel)),
        "none" => return Ok((Vec::new(), Choice::None, parallel)),
        "any" => Choice::Required,
        "tool" => {
            let name = choice.need("name", choice.text("name")?)?;
            if !tools.iter().any(|tool| tool["function"]["name"] == name) {
                return Err(choice.wrong("name", "the name of a tool"));
            }
            Choice::Named(name.into())
        }
        _ => return Err(choice.wrong("type", "\"auto\", \"any\", \"tool\" or \"none\"")),
    };
    if tools.is_empty() {
        return Err(fields.wrong("tool_choice", "absent where there are no tools"));
    }
    Ok((tools, found, parallel))
}

/// The schema of the text, and how much the model should think.
fn output(
    fields: &Fields<'_>,
    options: &mut GenerateOptions,
    template: &mut TemplateOptions,
) -> Result<(), ApiError> {
    let Some(output) = fields.object("output_config")? else { return Ok(()) };
    if let Some(effort) = output.text("effort")? {
        template.extra.insert("reasoning_effort".into(), effort.into());
    }
    if let Some(format) = output.object("format")? {
        if format.text("type")? != Some("json_schema") {
            return Err(format.wrong("type", "\"json_schema\""));
        }
        let schema = format.need("schema", format.object("schema")?)?;
        options.grammar = Some(Grammar::JsonSchema(schema.map().clone().into()));
    }
    Ok(())
}

/// The switch for reasoning, and the most tokens of it, which leave some of this limit for the answer; without a switch
/// the model does as it does by default.
fn thinking(fields: &Fields<'_>, limit: Option<usize>) -> Result<(Option<bool>, Option<i64>), ApiError> {
    let Some(thinking) = fields.object("thinking")? else { return Ok((None, None)) };
    let budget = thinking.integer("budget_tokens", 0..=i64::MAX)?;
    let is_less = |limit: usize| budget.is_none_or(|n| usize::try_from(n).is_ok_and(|n| n < limit));
    match thinking.need("type", thinking.text("type")?)? {
        "enabled" | "adaptive" if limit.is_none_or(is_less) => Ok((Some(true), budget)),
        "enabled" | "adaptive" => Err(thinking.wrong("budget_tokens", "less than `max_tokens`")),
        "disabled" => Ok((Some(false), None)),
        _ => Err(thinking.wrong("type", "\"enabled\", \"adaptive\" or \"disabled\"")),
    }
}

/// The variables of the template, and everything else that tools and forms ask of the answer, which the request limits
/// to so many tokens: the calls that it has to consist of, and the permission of several.
pub(super) fn template(
    fields: &Fields<'_>,
    facts: &Facts,
    messages: &[Message],
    limit: Option<usize>,
    options: &mut GenerateOptions,
) -> Result<(TemplateOptions, Option<CallChoice>, Option<bool>), ApiError> {
    let (tools, choice, parallel) = chosen(fields, facts)?;
    let mut template = conversation::template(facts, messages, tools)?;
    let (thinks, budget) = thinking(fields, limit)?;
    template.enable_thinking = thinks.or(template.enable_thinking);
    conversation::limit_reasoning(facts, budget, options, &mut template);
    output(fields, options, &mut template)?;
    let calls = conversation::force(fields, options, choice, parallel)?;
    Ok((template, calls, parallel))
}
