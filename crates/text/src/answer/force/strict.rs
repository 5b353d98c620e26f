//! Strict tools: the grammar of an answer that may have calls between any other text.
//!
//! Text is free until the marker that opens calls, and then a call of one of the tools, by its schema. A grammar reads
//! text in pieces that cannot overlap, so each kind of text excludes the beginnings of the others.

use serde_json::{Value, json};

use super::error::CallGrammarError;
use super::lark::{Lark, Piece, quoted, written};
use super::tools::{Tool, chosen};
use super::{CallChoice, Writer};
use crate::answer::AnswerSyntax;
use crate::answer::harmony;
use crate::answer::syntax::{Arguments, Form, REASONINGS, Reasoning};
use crate::constraint::Grammar;
use crate::tokenizer::Tokenizer;

/// Some text.
const TEXT: &str = "/(?s:.+)/";
/// Any text, or none.
const ANY: &str = "/(?s:.*)/";

/// True for a tool whose calls conform to its schema.
fn is_strict(tool: &Value) -> bool {
    tool.get("function").unwrap_or(tool)["strict"] == true
}

impl AnswerSyntax {
    /// The grammar of an answer that may have calls of `tools`, if any of them is strict (`"strict": true` in
    /// OpenAI's format) and the notation has calls. Outside of calls, text is free; a call is one of the tools, and the
    /// arguments of a strict one conform to its schema as with [`Self::call_grammar`]. Those of the others are any
    /// object where the notation writes JSON, and conform to the schema elsewhere.
    ///
    /// `prompt` is the one that the answer continues: reasoning that its end opens, or that the answer begins with,
    /// may mention the marker of calls. In notations without a marker an answer that begins with `{` is a call.
    ///
    /// # Errors
    ///
    /// As [`Self::call_grammar`].
    pub fn strict_grammar(
        &self,
        tokenizer: &Tokenizer,
        tools: &[Value],
        prompt: &str,
    ) -> Result<Option<Grammar>, CallGrammarError> {
        if !self.has_calls() || !tools.iter().any(is_strict) {
            return Ok(None);
        }
        let is_json = !matches!(
            self.calls.form,
            Form::Python | Form::Named { arguments: Arguments::Tagged(_) | Arguments::Gemma, .. }
        );
        let relaxed = |tool: &Value| {
            let mut tool = tool.clone();
            if is_json && !is_strict(&tool) {
                let function = if tool.get("function").is_some() { &mut tool["function"] } else { &mut tool };
                function["parameters"] = json!({"type": "object", "additionalProperties": true});
            }
            tool
        };
        let tools = chosen(&tools.iter().map(relaxed).collect::<Vec<_>>(), &CallChoice::default())?;
        let mut writer = Writer { syntax: self, lark: Lark::new(self, tokenizer) };
        let start = match &self.calls.form {
            Form::Harmony => writer.messages(&tools)?,
            Form::Object { alone: true, .. } => {
                let call = writer.any_of(&tools, Writer::call)?;
                writer.text_or_objects(&call)
            }
            _ => {
                let call = writer.any_of(&tools, Writer::call)?;
                let (block, is_end) = writer.block_after_marker(&call, true);
                let block = writer.lark.rule(&block);
                match writer.lark.first_control(self.calls.open) {
                    Some((id, rest)) => writer.text_and_tokens(id, &rest, &block, is_end),
                    None => writer.text_and_marks(&block, is_end, prompt),
                }
            }
        };
        Ok(Some(Grammar::Lark(writer.lark.finish(&start))))
    }
}

/// Text that contains this.
fn containing(text: &str) -> String {
    format!("({ANY} {} {ANY})", quoted(text))
}

/// `first`, and then control tokens with `then` between them.
fn pieces(first: &str, control: &str, then: &str) -> String {
    if control.is_empty() { format!("{first}?") } else { format!("{first}? ({control} {then}?)*") }
}

impl Writer<'_> {
    /// Text without any of these.
    fn text_without(&mut self, excluded: &[String]) -> String {
        let all: String = excluded.iter().map(|text| format!(" & ~{text}")).collect();
        self.lark.define("T", "", &format!("{TEXT}{all}"))
    }

    /// Text up to a mark, and the mark, without text that is excluded.
    fn text_up_to(&mut self, mark: &str, excluded: &[String]) -> String {
        let all: String = excluded.iter().map(|text| format!(" & ~{text}")).collect();
        let text = self.lark.define("T", "", &format!("{ANY} {}{all}", quoted(mark)));
        self.lark.define("r", "[lazy]", &text)
    }

    /// An answer in a notation whose marker has a control token, with these parts after it.
    fn text_and_tokens(&mut self, id: u32, rest: &[Piece<'_>], block: &str, is_end: bool) -> String {
        let mark = containing(self.syntax.calls.open);
        let text = self.text_without(std::slice::from_ref(&mark));
        let others = self.lark.controls_but(&[id]);
        let (open, rest_of_open) =
            (format!("<[{id}]>"), rest.iter().map(written).collect::<Vec<_>>().join(" "));
        let mut free = vec![others]
            .into_iter()
            .filter(|c| !c.is_empty())
            .map(|c| format!("{c} {text}?"))
            .collect::<Vec<_>>();
        if let Some(Piece::Text(next)) = rest.first() {
            // The token may open other things, with other text after it.
            let next = if rest.len() == 1 { format!("({} {ANY})", quoted(next)) } else { quoted(next) };
            let other = self.text_without(&[mark, next]);
            free.push(format!("{open} {other}?"));
        }
        let free =
            if free.is_empty() { format!("{text}?") } else { format!("{text}? ({})*", free.join(" | ")) };
        let free = self.lark.rule(&free);
        let repeat = if is_end { "?" } else { "*" };
        match is_end {
            true => format!("{free} ({open} {rest_of_open} {block})?"),
            false => format!("({free} {open} {rest_of_open} {block}){repeat} {free}"),
        }
    }

    /// An answer in a notation whose marker is text. Reasoning comes first, if at all.
    fn text_and_marks(&mut self, block: &str, is_end: bool, prompt: &str) -> String {
        let mark = self.syntax.calls.open;
        let control = self.lark.controls_but(&[]);
        let (text, up_to) = (self.text_without(&[containing(mark)]), self.text_up_to(mark, &[]));
        let before = if control.is_empty() { String::new() } else { format!("({text}? {control})*") };
        let free = pieces(&text, &control, &text);
        let body = match is_end {
            true => format!("{before} {up_to} {block} | {free}"),
            false => format!("({before} {up_to} {block})* {free}"),
        };
        let body = self.lark.rule(&body);
        if let Some(opened) = Reasoning::opened_by(prompt) {
            return self.reasoning_then(opened, &body);
        }
        let (mut starts, mut begins, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for reasoning in REASONINGS.iter().filter(|reasoning| reasoning.opens_in_answer()) {
            let open = match self.lark.first_control(reasoning.open) {
                // Tokens that open other things, too, open no reasoning that mentions calls.
                Some((_, rest)) if !rest.is_empty() => continue,
                Some((id, _)) => {
                    tokens.push(id);
                    format!("{}? {}", self.lark.regex(r"\s+"), written(&Piece::Control(id)))
                }
                None => {
                    begins.push(quoted(reasoning.open));
                    let open = self.lark.define("T", "", &format!("/\\s*/ {}", quoted(reasoning.open)));
                    self.lark.define("r", "[lazy]", &open)
                }
            };
            let rest = self.reasoning_then(reasoning, &body);
            starts.push(format!("{open} ({rest})"));
        }
        // Otherwise the answer begins with none of these.
        let none: Vec<String> = (!begins.is_empty())
            .then(|| format!("(/\\s*/ ({}) {ANY})", begins.join(" | ")))
            .into_iter()
            .collect();
        let first = self.text_without(&[vec![containing(mark)], none.clone()].concat());
        let up_to = self.text_up_to(mark, &none);
        starts.push(format!("{up_to} {block} {}", if is_end { "" } else { &body }));
        let control = self.lark.controls_but(&tokens);
        starts.push(if control.is_empty() {
            format!("{first}?")
        } else {
            format!("{first}? ({control} {body})?")
        });
        starts.join(" | ")
    }

    /// Reasoning that is open, and then `body`; or reasoning that the answer does not close.
    fn reasoning_then(&mut self, reasoning: &Reasoning, body: &str) -> String {
        let close = self.lark.first_control(reasoning.close).map(|(id, _)| id);
        let control = self.lark.controls_but(close.as_slice());
        let text = self.text_without(&[containing(reasoning.close)]);
        let unclosed = pieces(&text, &control, &text);
        format!("{} {body} | {unclosed}", self.lark.until(reasoning.close))
    }

    /// An answer that is text, or objects that are calls without a marker.
    fn text_or_objects(&mut self, call: &str) -> String {
        let open = self.syntax.calls.open;
        let (calls, space) = (self.objects(call, true), self.lark.space());
        let id = self.lark.first_control(open).map(|(id, _)| id);
        let control = self.lark.controls_but(id.as_slice());
        let mut excluded = vec![format!("(/\\s*\\{{/ {ANY})")];
        excluded
            .extend((!open.is_empty() && id.is_none()).then(|| format!("(/\\s*/ {} {ANY})", quoted(open))));
        let (first, text) = (self.text_without(&excluded), self.lark.define("T", "", TEXT));
        let open = self.lark.marker(open);
        let open = if open.is_empty() { open } else { format!("({open} {space})?") };
        format!("{space} {open} {calls} | {}", pieces(&first, &control, &text))
    }

    /// Messages, of which the last may be a call.
    fn messages(&mut self, tools: &[Tool]) -> Result<String, CallGrammarError> {
        const TO: &str = "to=functions.";
        // All names that the parser reads can be written.
        self.any_of(tools, Writer::message)?;
        let channel = self.lark.marker(harmony::CHANNEL);
        let mut all = Vec::new();
        for tool in tools {
            let rest = self.message_after_name(tool);
            all.push(format!("{} ({channel} \"commentary\")? {rest}", quoted(&tool.name)));
        }
        let call = self.lark.rule(&all.join(" | "));
        // The recipient is one in a header: at the start, or after these marks, which are text in all vocabularies.
        let [start, channel] = [harmony::START, harmony::CHANNEL].map(quoted);
        let head = format!("({ANY} ({start} | {channel}) /[^<]*/ | / ?/) {}", quoted(TO));
        let text = self.text_without(&[format!("({head} {ANY})")]);
        let head = self.lark.define("T", "", &head);
        let head = self.lark.define("r", "[lazy]", &head);
        let control = self.lark.controls_but(&[]);
        let before = if control.is_empty() { String::new() } else { format!("({text}? {control})*") };
        Ok(format!("{before} {head} {call} | {}", pieces(&text, &control, &text)))
    }
}
