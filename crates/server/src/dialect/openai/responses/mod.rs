//! `/v1/responses`: each alone. The server may put those before it in front of its input.

mod input;
mod items;
mod writer;

#[cfg(test)]
mod tests;

use chaski::text::TemplateOptions;
use chaski::{GenerateOptions, Grammar};
use serde_json::{Value, json};

use super::cache_salt;
use super::messages::chosen;
use crate::ask::{Ask, Prompt};
use crate::dialect::Writer;
use crate::dialect::conversation::{self, Choice};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::{Facts, Served};
use crate::openapi::field::check;
use crate::openapi::requests::RESPONSE_FIXED;
use crate::sampling;

/// Reads a body.
pub(crate) fn ask(body: &Value, facts: &Facts) -> Result<(Ask, Box<dyn Writer>), ApiError> {
    let fields = Fields::of(body, "")?;
    let ask = read(&fields, facts)?;
    let telemetry = writer::Telemetry {
        timings: fields.flag("timings_per_token")?.unwrap_or(false),
        progress: fields.flag("return_progress")?.unwrap_or(false),
    };
    let writer = writer::Responses::new(echo(&fields, &ask.options), telemetry);
    Ok((ask, Box::new(writer)))
}

/// The number of tokens that a response with this body would report as input.
pub(crate) fn input_tokens(served: &Served, body: &Value) -> Result<Value, ApiError> {
    let ask = read(&Fields::of(body, "")?, &served.facts)?;
    Ok(json!({"object": "response.input_tokens", "input_tokens": ask.n_prompt(served)?}))
}

fn read(fields: &Fields<'_>, facts: &Facts) -> Result<Ask, ApiError> {
    // Where responses are kept, it has been replaced by the items of the conversation.
    if fields.get("previous_response_id").is_some() {
        let expected = "absent: the server stores no responses (see --store); send the whole input";
        return Err(fields.wrong("previous_response_id", expected));
    }
    if fields.get("conversation").is_some() {
        return Err(fields.wrong("conversation", "absent: the server stores no conversations"));
    }
    if fields.flag("background")? == Some(true) {
        return Err(fields.wrong("background", "false: clients wait for their responses"));
    }
    if fields.integer("top_logprobs", 0..=20)?.is_some_and(|n| n > 0) {
        return Err(fields.wrong("top_logprobs", "0; /v1/chat/completions has log probabilities"));
    }
    check(fields, &RESPONSE_FIXED)?;
    let messages = input::messages(fields)?;
    let mut options = sampling::unconstrained(fields, "stop", facts)?;
    if let Some(limit) = fields.integer("max_output_tokens", 1..=i64::MAX)? {
        options.max_tokens = Some(facts.max_tokens.map_or(limit as usize, |most| most.min(limit as usize)));
    }
    options.grammar = format(fields)?;
    let (tools, choice) = tools(fields, facts)?;
    let mut template = conversation::template(facts, &messages, tools)?;
    reasoning(fields, &mut template)?;
    let budget = fields.integer("reasoning_budget", -1..=i64::MAX)?;
    conversation::limit_reasoning(facts, budget, &mut options, &mut template);
    let parallel = fields.flag("parallel_tool_calls")?;
    let calls = conversation::force(fields, &options, choice, parallel)?;
    let truncate = match fields.text("truncation")? {
        None | Some("disabled") => false,
        Some("auto") => true,
        Some(_) => return Err(fields.wrong("truncation", "\"auto\" or \"disabled\"")),
    };
    let stream = fields.flag("stream")?.unwrap_or(false);
    let prompt = Prompt::Chat { messages, template: Box::new(template) };
    Ok(Ask { stream, calls, parallel, truncate, salt: cache_salt(fields)?, ..Ask::new(prompt, options) })
}

/// The tools, which are flat here, in the form of chats.
fn tools(fields: &Fields<'_>, facts: &Facts) -> Result<(Vec<Value>, Choice), ApiError> {
    let tool = |(i, value): (usize, &Value)| {
        let tool = Fields::of(value, format!("tools[{i}]"))?;
        if tool.need("type", tool.text("type")?)? != "function" {
            return Err(tool.wrong("type", "\"function\": the server has no tools of its own"));
        }
        let name = tool.need("name", tool.text("name")?)?;
        let parameters = tool.object("parameters")?.map(|schema| schema.map().clone().into());
        let mut found = conversation::tool(name, tool.text("description")?, parameters);
        if let Some(strict) = conversation::strict(facts, &tool, "parameters")? {
            found["function"]["strict"] = strict.into();
        }
        Ok(found)
    };
    let list = fields.list("tools")?.unwrap_or_default();
    let tools = list.iter().enumerate().map(tool).collect::<Result<_, _>>()?;
    chosen(fields, tools)
}

/// The constraint of `text.format`.
fn format(fields: &Fields<'_>) -> Result<Option<Grammar>, ApiError> {
    let Some(text) = fields.object("text")? else { return Ok(None) };
    let Some(format) = text.object("format")? else { return Ok(None) };
    let schema = match format.text("type")? {
        Some("text") => return Ok(None),
        Some("json_object") => json!({"type": "object"}),
        Some("json_schema") => {
            let schema = format.need("schema", format.object("schema")?)?;
            schema.map().clone().into()
        }
        _ => return Err(format.wrong("type", "\"text\", \"json_object\" or \"json_schema\"")),
    };
    Ok(Some(Grammar::JsonSchema(schema)))
}

fn reasoning(fields: &Fields<'_>, template: &mut TemplateOptions) -> Result<(), ApiError> {
    let Some(reasoning) = fields.object("reasoning")? else { return Ok(()) };
    if let Some(effort) = super::messages::effort(&reasoning, "effort")? {
        template.enable_thinking = Some(effort != "none");
        template.extra.insert("reasoning_effort".into(), effort.into());
    }
    Ok(())
}

/// The part of a response that repeats the request.
fn echo(fields: &Fields<'_>, options: &GenerateOptions) -> Value {
    // As the answer is made without the field.
    let is_free = fields.get("tool_choice").is_none_or(|choice| choice == "auto" || choice == "none");
    let given = |name: &str, default: Value| fields.get(name).cloned().unwrap_or(default);
    json!({
        "parallel_tool_calls": given("parallel_tool_calls", is_free.into()),
        "tool_choice": given("tool_choice", "auto".into()),
        "tools": given("tools", json!([])),
        "temperature": given("temperature", decimal(options.sampler.temp)),
        "top_p": given("top_p", decimal(options.sampler.top_p)),
        "max_output_tokens": options.max_tokens,
        "instructions": given("instructions", Value::Null),
        "metadata": given("metadata", json!({})),
        "reasoning": given("reasoning", json!({"effort": null, "summary": null})),
        "text": given("text", json!({"format": {"type": "text"}})),
        "truncation": given("truncation", "disabled".into()),
        "previous_response_id": null,
        "store": false,
    })
}

/// A number as people write it: 0.8, not the next number of 32 bits.
fn decimal(x: f32) -> Value {
    x.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}
