//! The messages and tools of a conversation.

use chaski::Message;
use chaski::text::{Content, TemplateOptions};
use serde_json::{Value, json};

use crate::dialect::conversation::{self, Choice};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Facts;

/// Roles that messages can have.
const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];

/// The messages of `messages`.
pub(super) fn messages(fields: &Fields<'_>) -> Result<Vec<Message>, ApiError> {
    let list = fields.need("messages", fields.list("messages")?)?;
    if list.is_empty() {
        return Err(fields.wrong("messages", "a list of at least one message"));
    }
    let messages: Vec<Message> = list
        .iter()
        .enumerate()
        .map(|(i, value)| message(value, &format!("messages[{i}]")))
        .collect::<Result<_, _>>()?;
    let is_answer =
        |message: &Message| message.role == "assistant" && !message.fields.contains_key("tool_calls");
    if let [.., before, last] = &*messages
        && is_answer(before)
        && is_answer(last)
    {
        return Err(fields
            .wrong("messages", "a conversation that ends with one message of the assistant, not with two"));
    }
    Ok(messages)
}

fn message(value: &Value, path: &str) -> Result<Message, ApiError> {
    let fields = Fields::of(value, path)?;
    let role = fields.need("role", fields.text("role")?)?;
    if !ROLES.contains(&role) {
        return Err(fields.wrong("role", format!("one of {}", ROLES.join(", "))));
    }
    let content = match fields.get("content") {
        None => None,
        Some(Value::String(text)) => Some(Content::Text(text.clone())),
        Some(Value::Array(parts)) => Some(Content::Text(text_of_parts(parts, &fields.path("content"))?)),
        Some(_) => return Err(fields.wrong("content", "a string, a list of parts, or null")),
    };
    let calls = fields.list("tool_calls")?.unwrap_or_default();
    if content.is_none() && calls.is_empty() && !fields.map().contains_key("content") {
        return Err(fields.need("content", None::<Value>).expect_err("it is missing"));
    }
    for name in ["name", "tool_call_id", "reasoning_content", "reasoning"] {
        fields.text(name)?;
    }
    for (i, call) in calls.iter().enumerate() {
        check_call(call, &format!("{}[{i}]", fields.path("tool_calls")))?;
    }
    let mut message = Message { role: role.into(), content, fields: Default::default() };
    for (name, value) in fields.map() {
        let name = match name.as_str() {
            "role" | "content" => continue,
            "reasoning" if !fields.map().contains_key("reasoning_content") => "reasoning_content",
            "reasoning" => continue,
            name => name,
        };
        if !value.is_null() {
            message.fields.insert(name.into(), value.clone());
        }
    }
    if message.content.is_none() {
        message.content = Some(Content::Null);
    }
    Ok(message)
}

/// The text of a content's parts, which are lines.
pub(super) fn text_of_parts(parts: &[Value], path: &str) -> Result<String, ApiError> {
    let mut texts = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let fields = Fields::of(part, format!("{path}[{i}]"))?;
        let kind = fields.need("type", fields.text("type")?)?;
        match kind {
            "text" | "input_text" | "output_text" => texts.push(fields.need("text", fields.text("text")?)?),
            "refusal" => texts.push(fields.need("refusal", fields.text("refusal")?)?),
            "image_url" | "input_image" | "input_audio" | "file" | "video_url" => {
                let message = format!("the model takes no `{kind}`, only text");
                return Err(ApiError::field(fields.path("type"), message));
            }
            _ => return Err(fields.wrong("type", "\"text\"")),
        }
    }
    Ok(texts.join("\n"))
}

fn check_call(call: &Value, path: &str) -> Result<(), ApiError> {
    let call = Fields::of(call, path)?;
    call.text("id")?;
    let function = call.need("function", call.object("function")?)?;
    function.need("name", function.text("name")?)?;
    match function.get("arguments") {
        None | Some(Value::String(_) | Value::Object(_)) => Ok(()),
        Some(_) => Err(function.wrong("arguments", "a string of JSON")),
    }
}

/// The tools of `tools`, as `tool_choice` narrows them.
pub(crate) fn tools(fields: &Fields<'_>, facts: &Facts) -> Result<(Vec<Value>, Choice), ApiError> {
    let list = fields.list("tools")?.unwrap_or_default();
    let mut tools = Vec::new();
    for (i, tool) in list.iter().enumerate() {
        let path = format!("{}[{i}]", fields.path("tools"));
        let tool_fields = Fields::of(tool, path)?;
        match tool_fields.text("type")? {
            None | Some("function") => {}
            Some(_) => return Err(tool_fields.wrong("type", "\"function\"")),
        }
        let function = tool_fields.need("function", tool_fields.object("function")?)?;
        function.need("name", function.text("name")?)?;
        function.object("parameters")?;
        conversation::strict(facts, &function, "parameters")?;
        tools.push(json!({"type": "function", "function": function.map()}));
    }
    chosen(fields, tools)
}

/// These tools, as `tool_choice` narrows them.
pub(super) fn chosen(fields: &Fields<'_>, mut tools: Vec<Value>) -> Result<(Vec<Value>, Choice), ApiError> {
    let choice = choice(fields, &mut tools)?;
    if choice == Choice::None {
        tools.clear();
    }
    match choice {
        Choice::Required | Choice::Named(_) if tools.is_empty() => {
            Err(fields.wrong("tool_choice", "absent where there are no tools"))
        }
        choice => Ok((tools, choice)),
    }
}

fn name_of(tool: &Value) -> &str {
    tool["function"]["name"].as_str().unwrap_or_default()
}

fn choice(fields: &Fields<'_>, tools: &mut Vec<Value>) -> Result<Choice, ApiError> {
    let wrong =
        || fields.wrong("tool_choice", "\"none\", \"auto\", \"required\", or an object with a tool's name");
    match fields.get("tool_choice") {
        None => Ok(Choice::Auto),
        Some(Value::String(word)) => match word.as_str() {
            "none" => Ok(Choice::None),
            "auto" => Ok(Choice::Auto),
            "required" | "any" => Ok(Choice::Required),
            _ => Err(wrong()),
        },
        Some(value) => {
            let choice = Fields::of(value, fields.path("tool_choice")).map_err(|_| wrong())?;
            if choice.text("type")? == Some("allowed_tools") {
                let outer = choice.object("allowed_tools")?.unwrap_or(choice.clone());
                let allowed = outer.need("tools", outer.list("tools")?)?;
                let names: Vec<&str> =
                    allowed.iter().map(|t| t["name"].as_str().unwrap_or_else(|| name_of(t))).collect();
                tools.retain(|tool| names.contains(&name_of(tool)));
                return match outer.text("mode")? {
                    Some("required") => Ok(Choice::Required),
                    _ => Ok(Choice::Auto),
                };
            }
            let function = choice.object("function")?.unwrap_or(choice.clone());
            let name = function.need("name", function.text("name")?)?;
            if !tools.iter().any(|tool| name_of(tool) == name) {
                return Err(function.wrong("name", "the name of a tool"));
            }
            Ok(Choice::Named(name.to_owned()))
        }
    }
}

/// The variables of the template.
pub(super) fn template(
    fields: &Fields<'_>,
    facts: &Facts,
    messages: &[Message],
    tools: Vec<Value>,
) -> Result<TemplateOptions, ApiError> {
    let extra = fields.object("chat_template_kwargs")?;
    let mut options = conversation::template(facts, messages, tools)?;
    if let Some(extra) = extra {
        options.extra.extend(extra.map().clone());
        if let Some(thinks) = extra.flag("enable_thinking")? {
            options.enable_thinking = Some(thinks);
        }
    }
    if let Some(effort) = effort(fields, "reasoning_effort")? {
        options.enable_thinking = Some(effort != "none");
        options.extra.entry("reasoning_effort").or_insert_with(|| effort.into());
    }
    let opens = fields.flag("add_generation_prompt")?;
    let continues = fields.flag("continue_final_message")?;
    if opens == Some(true) && continues == Some(true) {
        return Err(fields.wrong("continue_final_message", "false where `add_generation_prompt` is true"));
    }
    let opens = opens.or(continues.map(|continues| !continues));
    options.add_generation_prompt = opens.unwrap_or(options.add_generation_prompt);
    Ok(options)
}

/// How much the model should reason.
pub(super) fn effort<'a>(fields: &Fields<'a>, name: &str) -> Result<Option<&'a str>, ApiError> {
    const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];
    match fields.text(name)? {
        Some(effort) if !EFFORTS.contains(&effort) => {
            Err(fields.wrong(name, format!("one of {}", EFFORTS.join(", "))))
        }
        effort => Ok(effort),
    }
}
