//! Forced tool calls: the grammar of an answer that consists of calls, in the notation of a model family.

mod error;
mod lark;
mod strict;
#[cfg(all(test, feature = "constraint"))]
mod tests;
mod tools;
mod values;

use serde_json::{Value, json};

pub use self::error::CallGrammarError;
use self::error::Fault;
use self::lark::{Lark, quoted};
use self::tools::{Tool, chosen, part, properties};
use self::values::{Notation, Values};
use super::call::call_head;
use super::harmony::{self, Header, Target};
use super::scan::Head;
use super::schema::{Types, choices, resolved};
use super::syntax::{Arguments, Extras, Form, REASONINGS, Reasoning, Tags};
use super::value::{Tagged, tagged};
use super::{AnswerSyntax, call::CallHead};
use crate::constraint::{COMBINING, Grammar};
use crate::tokenizer::Tokenizer;

/// The calls that an answer must consist of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallChoice {
    /// The only tool that may be called; any if `None`.
    pub name: Option<String>,
    /// True if there may be several calls.
    pub parallel: bool,
    /// The prompt that the answer continues, as for [`super::AnswerParser::new`]: if its end opens reasoning,
    /// the answer closes that first.
    pub prompt: String,
    /// True if the answer may begin with reasoning that the prompt does not open; reasoning that it opens is closed
    /// in any case.
    pub may_reason: bool,
}

impl AnswerSyntax {
    /// The grammar of an answer that consists of one call of one of `tools`, or of several calls, as `choice`
    /// says. [`super::AnswerParser`] with the same tools reads every text of the grammar as valid calls.
    ///
    /// `tools` are JSON in OpenAI's format; a tool without `parameters` takes no arguments, and properties
    /// that a schema with `properties` does not name are not written, unless its `additionalProperties` says
    /// so. Arguments in JSON conform to the whole schema, as with [`Grammar::JsonSchema`]. In other notations,
    /// required arguments come first and then optional ones, both in the order of the schema; of the
    /// constraints within a schema, those of strings (`pattern`, `format`, lengths) are left to the model.
    ///
    /// Markers that are control tokens of `tokenizer` are those tokens, so the same generation must render
    /// them ([`Self::marker_tokens`]).
    ///
    /// # Errors
    ///
    /// [`CallGrammarError`]: there is no such tool, or the notation has no calls ([`Self::or_object`]) or
    /// cannot express a name or schema.
    pub fn call_grammar(
        &self,
        tokenizer: &Tokenizer,
        tools: &[Value],
        choice: &CallChoice,
    ) -> Result<Grammar, CallGrammarError> {
        if !self.has_calls() {
            return Err(CallGrammarError::NoCalls { syntax: self.name() });
        }
        let tools = chosen(tools, choice)?;
        let mut writer = Writer { syntax: self, lark: Lark::new(self, tokenizer) };
        let call = writer.any_of(&tools, Writer::call)?;
        let calls = writer.calls(&call, choice.parallel);
        let reasoning = writer.reasoning(choice);
        let space = writer.lark.space();
        Ok(Grammar::Lark(writer.lark.finish(&format!("{reasoning} {space} {calls}"))))
    }
}

struct Writer<'s> {
    syntax: &'s AnswerSyntax,
    lark: Lark,
}

impl Writer<'_> {
    /// A call of one of `tools`, each written by `call`.
    fn any_of(
        &mut self,
        tools: &[Tool],
        call: fn(&mut Self, &Tool) -> Result<String, Fault>,
    ) -> Result<String, CallGrammarError> {
        let syntax = self.syntax.name();
        let mut all = Vec::new();
        for tool in tools {
            let call = call(self, tool).map_err(|fault| match fault {
                Fault::Name => CallGrammarError::Name { name: tool.name.clone(), syntax },
                Fault::Argument(key) => CallGrammarError::Argument { tool: tool.name.clone(), key, syntax },
                Fault::Schema(what) => CallGrammarError::Schema { tool: tool.name.clone(), what },
            })?;
            all.push(self.lark.rule(&call));
        }
        Ok(self.lark.rule(&all.join(" | ")))
    }

    /// A call of `tool` without the markers around all calls.
    fn call(&mut self, tool: &Tool) -> Result<String, Fault> {
        match &self.syntax.calls.form {
            Form::None => Err(Fault::Schema("cannot be used".to_owned())),
            Form::Object { name, arguments, first, .. } => Ok(self.object(tool, name, arguments, first)),
            Form::NameIsKey => {
                let (space, json) = (self.lark.space(), self.lark.json(&tool.schema));
                let name = quoted(&json!(tool.name).to_string());
                Ok(format!("\"{{\" {space} {name} {space} \":\" {space} {json} {space} \"}}\""))
            }
            Form::Named { open, name_end, head_end, extras, arguments, close } => {
                let head = self.head(tool, [open, name_end, head_end], extras)?;
                let rest = self.arguments(tool, *arguments, close)?;
                let close =
                    if let Arguments::Tagged(_) = arguments { self.closing_of_tags(close) } else { close };
                let close = self.lark.marker(close);
                let space = if close.is_empty() { String::new() } else { self.lark.space() };
                Ok(format!("{head} {rest} {space} {close}"))
            }
            Form::Python => {
                self.check_name(&tool.name, &format!("{}(", tool.name))?;
                let properties = self.properties(tool)?;
                let arguments =
                    Values::new(&mut self.lark, Notation::Python, &tool.schema).arguments(&properties)?;
                Ok(format!("{} \"(\" {arguments} \")\"", quoted(&tool.name)))
            }
            Form::Harmony => self.message(tool),
        }
    }

    /// `{"name": "f", "arguments": {}}`.
    fn object(&mut self, tool: &Tool, name: &str, arguments: &str, first: &str) -> String {
        let first = self.extra(first).map_or(String::new(), |first| format!("{first}?"));
        let (space, json) = (self.lark.space(), self.lark.json(&tool.schema));
        let key = |key: &str| quoted(&json!(key).to_string());
        let (name, arguments, value) = (key(name), key(arguments), key(&tool.name));
        format!(
            "\"{{\" {space} {first} {name} {space} \":\" {space} {value} {space} \",\" {space} {arguments} {space} \":\" {space} {json} \
             {space} \"}}\""
        )
    }

    /// The head of a call up to its arguments.
    fn head(
        &mut self,
        tool: &Tool,
        [open, name_end, head_end]: [&str; 3],
        extras: &Extras,
    ) -> Result<String, Fault> {
        let sample = format!("{open}{}{name_end}{head_end}{{}}", tool.name);
        self.check_name(&tool.name, &sample)?;
        let mut parts = vec![self.lark.marker(open)];
        parts.extend(self.extra(extras.before_name));
        parts.push(quoted(&tool.name));
        parts.extend(self.extra(extras.after_name));
        parts.push(self.lark.marker(name_end));
        parts.extend(self.extra(extras.attributes));
        parts.push(self.lark.marker(head_end));
        Ok(parts.join(" "))
    }

    fn extra(&mut self, regex: &str) -> Option<String> {
        (!regex.is_empty()).then(|| self.lark.regex(regex))
    }

    /// Fails if the parser does not read `name` in the head of a call.
    fn check_name(&self, name: &str, sample: &str) -> Result<(), Fault> {
        match call_head(&self.syntax.calls.form, sample, true) {
            Head::Yes(_, CallHead { name: read, .. }) if read == name => Ok(()),
            _ => Err(Fault::Name),
        }
    }

    fn arguments(&mut self, tool: &Tool, arguments: Arguments, close: &str) -> Result<String, Fault> {
        match arguments {
            Arguments::Json => Ok(format!("{} {}", self.lark.space(), self.lark.json(&tool.schema))),
            Arguments::Gemma => {
                let properties = self.properties(tool)?;
                let fields =
                    Values::new(&mut self.lark, Notation::Gemma, &tool.schema).arguments(&properties)?;
                Ok(format!("{fields} \"}}\""))
            }
            Arguments::Tagged(tags) => {
                let close = self.closing_of_tags(close);
                let mut all: [Vec<String>; 2] = Default::default();
                for (key, schema, is_required) in self.properties(tool)? {
                    let argument = self.tagged(tags, close, key, schema, &tool.schema)?;
                    let optional = if is_required { "" } else { "?" };
                    let space = self.lark.space();
                    all[usize::from(!is_required)].push(format!("({space} {argument}){optional}"));
                }
                Ok(all.concat().join(" "))
            }
        }
    }

    /// The marker that closes a call with tags: that of the block if calls have none.
    fn closing_of_tags<'c>(&self, close: &'c str) -> &'c str
    where
        Self: 'c,
    {
        if close.is_empty() { self.syntax.calls.close } else { close }
    }

    /// The properties of the arguments, if the schema is a plain list of them.
    fn properties<'t>(&self, tool: &'t Tool) -> Result<Vec<(&'t str, &'t Value, bool)>, Fault> {
        match COMBINING.iter().find(|key| tool.schema.get(key).is_some()) {
            Some(key) => Err(Fault::Schema(format!(
                "has a `{key}` beside its properties, which the notation `{}` does not support",
                self.syntax.name()
            ))),
            None => Ok(properties(&tool.schema)),
        }
    }

    /// An argument between tags.
    fn tagged(
        &mut self,
        tags: &Tags,
        call_close: &str,
        key: &str,
        schema: &Value,
        root: &Value,
    ) -> Result<String, Fault> {
        let close = tags.close.replace("{}", key);
        let sample = format!("{}{key}{}{}x{close}", tags.open, tags.key_end, tags.value);
        match tagged(tags, call_close, &sample, |_| Types::ANY, true) {
            Head::Yes(n, Tagged::Argument { key: read, value, .. })
                if read == key && value == "x" && n == sample.len() => {}
            _ => return Err(Fault::Argument(key.to_owned())),
        }
        let values = self.tagged_values(tags, &close, schema, root)?;
        let (open, key_end) = (self.lark.marker(tags.open), self.lark.marker(tags.key_end));
        Ok(format!("{open} {} {key_end} ({})", quoted(key), values.join(" | ")))
    }

    /// The ways to write a value, from the attributes to the closing tag.
    fn tagged_values(
        &mut self,
        tags: &Tags,
        close: &str,
        schema: &Value,
        root: &Value,
    ) -> Result<Vec<String>, Fault> {
        let has_attributes = tags.attributes.iter().any(|attributes| !attributes.is_empty());
        let [for_strings, for_others] = tags.attributes.map(|attributes| {
            let attributes = self.extra(attributes).unwrap_or_default();
            // Between two tags, but not within one.
            let is_between = tags.key_end.ends_with('>') && !tags.value.is_empty();
            let space = if is_between { self.lark.space() } else { String::new() };
            format!("{attributes} {space} {}", self.lark.marker(tags.value))
        });
        let end = self.lark.marker(close);
        let resolved = resolved(schema, root);
        if let Some(values) = choices(resolved) {
            let line_end = format!("{}?", self.lark.regex(r"\n"));
            let literal = |value: &Value| match value {
                Value::String(text) if text.contains(close) => {
                    Err(Fault::Schema(format!("lists a text with the marker `{close}`")))
                }
                // A line ending at either end belongs to the tags.
                Value::String(text) if text.starts_with('\n') || text.ends_with('\n') => {
                    Ok(format!("{for_strings} {} {end}", quoted(&format!("\n{text}\n"))))
                }
                Value::String(text) => {
                    Ok(format!("{for_strings} {line_end} {} {line_end} {end}", quoted(text)))
                }
                other => {
                    Ok(format!("{for_others} {line_end} {} {line_end} {end}", quoted(&other.to_string())))
                }
            };
            return values.into_iter().map(literal).collect();
        }
        let types = Types::of(schema, root);
        let mut all = Vec::new();
        if types.meets(Types::STRING) {
            all.push(format!("{for_strings} {}", self.lark.until(close)));
        }
        // Without attributes, text that may be a string is all that can be written.
        if types != Types::STRING && (has_attributes || !types.meets(Types::STRING)) {
            let json = self.lark.json(&part(schema, root)?);
            let space = self.lark.space();
            all.push(format!("{for_others} {space} {json} {space} {end}"));
        }
        Ok(all)
    }

    /// `<|channel|>commentary to=functions.f<|message|>{}<|call|>`.
    fn message(&mut self, tool: &Tool) -> Result<String, Fault> {
        let sample = format!("{}commentary to=functions.{}{}", harmony::CHANNEL, tool.name, harmony::MESSAGE);
        match harmony::header(&sample, true) {
            Header::Yes(n, Target::Tool(read)) if read == tool.name && n == sample.len() => {}
            _ => return Err(Fault::Name),
        }
        let (name, channel) = (quoted(&tool.name), self.lark.marker(harmony::CHANNEL));
        let to = format!("\" to=functions.\" {name}");
        let rest = self.message_after_name(tool);
        Ok(format!("({channel} \"commentary\" {to} | {to} {channel} \"commentary\") {rest}"))
    }

    /// A message of arguments after the name of the tool.
    fn message_after_name(&mut self, tool: &Tool) -> String {
        let lark = &mut self.lark;
        let [constrain, message] = [harmony::CONSTRAIN, harmony::MESSAGE].map(|marker| lark.marker(marker));
        let (end, _) = lark.last_marker(harmony::CALL);
        let (json, space) = (lark.json(&tool.schema), lark.space());
        let kind = format!("(\" \"? {constrain} \"json\" | \" json\")?");
        let end = if end.is_empty() { String::new() } else { format!("{space} {end}") };
        format!("{kind} {message} {space} {json} {end}")
    }

    /// One or more calls with the markers around them.
    fn calls(&mut self, call: &str, is_parallel: bool) -> String {
        let calls = &self.syntax.calls;
        let space = self.lark.space();
        match calls.form {
            // A message ends the generation.
            Form::Harmony => return call.to_owned(),
            Form::Object { alone: true, .. } => {
                let open = self.lark.marker(calls.open);
                let open = if open.is_empty() { open } else { format!("({open} {space})?") };
                return format!("{open} {}", self.objects(call, is_parallel));
            }
            _ => {}
        }
        let (rest, is_end) = self.block_after_marker(call, is_parallel);
        let block = format!("{} {rest}", self.lark.marker(calls.open));
        match is_parallel && !is_end {
            true => {
                let block = self.lark.rule(&block);
                format!("{block} ({space} {block})*")
            }
            false => block,
        }
    }

    /// Objects that are calls without a marker.
    fn objects(&mut self, call: &str, is_parallel: bool) -> String {
        let space = self.lark.space();
        let more = if is_parallel { format!("({space} \";\" {space} {call})*") } else { String::new() };
        format!("{call} {more}")
    }

    /// A block of calls after the marker that opens it; true if nothing can follow it.
    fn block_after_marker(&mut self, call: &str, is_parallel: bool) -> (String, bool) {
        let calls = &self.syntax.calls;
        let space = self.lark.space();
        let more = |separator: &str| match is_parallel {
            true => format!("{call} ({space} {separator} {call})*"),
            false => call.to_owned(),
        };
        let inside = match calls.form {
            Form::Python => format!("\"[\" {space} {} {space} \"]\"", more(&format!("\",\" {space}"))),
            Form::Object { .. } | Form::NameIsKey => {
                let list = format!("\"[\" {space} {} {space} \"]\"", more(&format!("\",\" {space}")));
                match calls.form {
                    Form::NameIsKey => list,
                    _ => format!("({list} | {})", more("")),
                }
            }
            // Without markers of their own, each call has a block.
            Form::Named { open: "", .. } => call.to_owned(),
            _ => more(""),
        };
        // The marker of the block closes such calls, and is written with them.
        let is_closed = matches!(calls.form, Form::Named { arguments: Arguments::Tagged(_), close: "", .. });
        let (close, is_end) =
            if is_closed { (String::new(), false) } else { self.lark.last_marker(calls.close) };
        let close = if close.is_empty() { close } else { format!("{space} {close}") };
        let is_open = calls.close.is_empty() && matches!(calls.form, Form::Object { .. });
        (format!("{space} {inside} {close}"), is_end || is_open)
    }

    /// The reasoning before the calls.
    fn reasoning(&mut self, choice: &CallChoice) -> String {
        let lark = &mut self.lark;
        if let Form::Harmony = self.syntax.calls.form {
            if !choice.may_reason || lark.last_marker(harmony::END).1 {
                return String::new();
            }
            let [channel, message, start] =
                [harmony::CHANNEL, harmony::MESSAGE, harmony::START].map(|marker| lark.marker(marker));
            let text = lark.until(harmony::END);
            return format!("({channel} \"analysis\" {message} {text} {start} \"assistant\")?");
        }
        if let Some(opened) = Reasoning::opened_by(&choice.prompt) {
            return lark.until(opened.close);
        }
        if !choice.may_reason {
            return String::new();
        }
        let space = lark.space();
        let mut all = Vec::new();
        for reasoning in REASONINGS.iter().filter(|reasoning| reasoning.opens_in_answer()) {
            all.push(format!("{} {}", lark.marker(reasoning.open), lark.until(reasoning.close)));
            // Some models close what nothing opened.
            all.push(lark.marker(reasoning.close));
        }
        format!("({space} ({}))?", all.join(" | "))
    }
}
