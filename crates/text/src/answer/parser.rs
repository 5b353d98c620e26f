//! The parser: a state machine over the text of an answer.

use serde_json::Value;

use super::call::{CallHead, Rest, call_head, is_object};
use super::harmony::{self, Header, Target};
use super::scan::{Found, Head, JsonExtent, expect, find_marker};
use super::schema::Types;
use super::syntax::{Arguments, FRAMES, Form, REASONINGS, Reasoning};
use super::value::{self, Tagged};
use super::{Answer, AnswerEvent, AnswerSyntax};

/// Splits an answer into its parts while its text streams.
///
/// Text is emitted as soon as its part is certain; only text that may be the beginning of a marker is held
/// back. The result does not depend on how the text is chunked. Markers, and white space next to them, belong
/// to no part; text that looks like a call but is not one is emitted as content, including its markers.
#[derive(Clone, Debug)]
pub struct AnswerParser {
    syntax: &'static AnswerSyntax,
    tools: Vec<Value>,
    /// Text that is not certain yet.
    buffer: String,
    state: State,
    /// True if no content was emitted so far.
    is_start: bool,
    /// True if the white space that follows is dropped.
    skip_space: bool,
    /// True if reasoning is content, with its markers, as the model wrote it.
    #[cfg(not(target_arch = "wasm32"))]
    keeps_reasoning: bool,
    /// The text of the current call as the model wrote it, if one is open.
    call: Option<String>,
    /// Buffer length, in bytes, at which the buffer is scanned again.
    look_at: usize,
}

/// A larger buffer waits for a large item, such as the end of an argument. It is rescanned when it has grown
/// by an eighth, not for every piece, so that the total time is linear in the length of the text.
const LARGE: usize = 1024;

/// The part that the next text belongs to.
#[derive(Clone, Debug)]
enum State {
    /// Reasoning, or content.
    Text(Option<&'static Reasoning>),
    /// The text between calls.
    Block,
    /// Arguments that are JSON.
    Json { extent: JsonExtent, text: String, in_object: bool },
    /// The rest of the call's object after the arguments.
    ObjectEnd,
    /// The marker that closes a call.
    CallEnd,
    /// Arguments in another notation.
    Other { tool: String, n_argument: usize },
    /// The header of a message (Harmony).
    Header,
    /// The text of a message; arguments are collected. The extent is that of arguments that are not complete, in
    /// which no marker counts.
    Message(Target, String, Option<JsonExtent>),
}

impl AnswerParser {
    /// A parser for the answer to `prompt`, the whole input of the model, which may end with the marker that
    /// opens the reasoning. `tools` are JSON schemas in OpenAI's format; they tell which arguments are
    /// strings where the notation does not, and without them an answer that consists only of an object is
    /// never a call.
    pub fn new(syntax: &'static AnswerSyntax, prompt: &str, tools: &[Value]) -> AnswerParser {
        let state = match (&syntax.calls.form, Reasoning::opened_by(prompt)) {
            (Form::Harmony, _) => State::Header,
            (_, opened) => State::Text(opened),
        };
        let skip_space = matches!(state, State::Text(Some(_)));
        AnswerParser {
            syntax,
            tools: tools.to_vec(),
            buffer: String::new(),
            state,
            is_start: true,
            skip_space,
            #[cfg(not(target_arch = "wasm32"))]
            keeps_reasoning: false,
            call: None,
            look_at: 0,
        }
    }

    /// The same, before any text, with reasoning as content: its markers, the white space around them and the headers
    /// of its messages stay as the model wrote them. Calls inside reasoning are text, too.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn with_reasoning_in_content(mut self) -> AnswerParser {
        (self.keeps_reasoning, self.skip_space) = (true, false);
        self
    }

    /// Pages have no use for such a parser.
    fn keeps_reasoning(&self) -> bool {
        #[cfg(not(target_arch = "wasm32"))]
        return self.keeps_reasoning;
        #[cfg(target_arch = "wasm32")]
        false
    }

    /// The marker that ends the reasoning, if the text so far is in the midst of it.
    pub fn reasoning_end(&self) -> Option<&'static str> {
        match self.state {
            State::Text(reasoning) => reasoning.map(|reasoning| reasoning.close),
            _ => None,
        }
    }

    /// The text that ends the reasoning here, if the text so far is in the midst of it: as [`Self::reasoning_end`], and
    /// in notations whose messages have headers the header of the next message, too. With `again`, that header leaves
    /// no choice but content.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn reasoning_closing(&self, again: bool) -> Option<&'static str> {
        match self.state {
            State::Message(Target::Reasoning, ..) if again => Some(harmony::TO_CONTENT),
            State::Message(Target::Reasoning, ..) => Some(harmony::TO_NEXT),
            _ => self.reasoning_end(),
        }
    }

    /// True if the text held back is the beginning of notation: a call without its name, what follows a call, or the
    /// header of a message. If the answer is cut there, [`Self::finish`] gives it as content.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn holds_notation(&self) -> bool {
        let (rest, calls) = (self.buffer.trim_start(), &self.syntax.calls);
        match self.state {
            State::Text(None) => {
                !matches!(calls.form, Form::Harmony) && !calls.open.is_empty() && rest.starts_with(calls.open)
            }
            State::Block | State::ObjectEnd | State::CallEnd | State::Header => !rest.is_empty(),
            _ => false,
        }
    }

    /// Parses a whole text.
    pub fn parse(mut self, text: &str) -> Answer {
        let mut answer = Answer::default();
        answer.extend(self.push(text));
        answer.extend(self.finish());
        answer
    }

    /// Takes the next piece of text; returns the events that are certain now.
    pub fn push(&mut self, piece: &str) -> Vec<AnswerEvent> {
        self.buffer.push_str(piece);
        if self.buffer.len() < self.look_at {
            return Vec::new();
        }
        self.advance(false)
    }

    /// Ends the answer; returns the events for the text held back.
    pub fn finish(&mut self) -> Vec<AnswerEvent> {
        self.advance(true)
    }

    fn advance(&mut self, last: bool) -> Vec<AnswerEvent> {
        let mut out = Vec::new();
        while self.step(last, &mut out) {}
        let n_byte = self.buffer.len();
        self.look_at = if n_byte > LARGE { n_byte + n_byte / 8 } else { 0 };
        out
    }

    /// Performs the next step that is certain; `false` if there is none.
    fn step(&mut self, last: bool, out: &mut Vec<AnswerEvent>) -> bool {
        match &self.state {
            State::Text(_) => self.text(last, out),
            State::Block => self.block(last, out),
            State::Json { .. } => self.json(last, out),
            State::ObjectEnd => self.object_end(last),
            State::CallEnd => self.call_end(last),
            State::Other { .. } => self.other(last, out),
            State::Header => self.header(last, out),
            State::Message(..) => self.message(last, out),
        }
    }

    /// Removes `n_byte` bytes from the buffer and returns them.
    fn take(&mut self, n_byte: usize) -> String {
        let rest = self.buffer.split_off(n_byte);
        let taken = std::mem::replace(&mut self.buffer, rest);
        if let Some(call) = &mut self.call {
            call.push_str(&taken);
        }
        taken
    }

    /// Emits the first `n_byte` bytes of the buffer as reasoning or content.
    fn give_text(&mut self, n_byte: usize, is_reasoning: bool, out: &mut Vec<AnswerEvent>) {
        if n_byte == 0 {
            return;
        }
        let text = self.take(n_byte);
        // A call without a marker may follow reasoning, wherever that is.
        self.is_start &= is_reasoning;
        out.push(match is_reasoning && !self.keeps_reasoning() {
            true => AnswerEvent::Reasoning(text),
            false => AnswerEvent::Content(text),
        });
    }

    /// Goes on after a marker of reasoning, which is the first `n_byte` bytes of the buffer.
    fn pass_marker(
        &mut self,
        n_byte: usize,
        reasoning: Option<&'static Reasoning>,
        out: &mut Vec<AnswerEvent>,
    ) {
        if self.keeps_reasoning() {
            self.give_text(n_byte, true, out);
            self.state = State::Text(reasoning);
        } else {
            self.take(n_byte);
            self.continue_with_text(reasoning);
        }
    }

    /// Continues with the text after a part, whose leading white space belongs to no part.
    fn continue_with_text(&mut self, reasoning: Option<&'static Reasoning>) {
        self.state = State::Text(reasoning);
        self.skip_space = true;
    }

    /// Drops white space if it is to be dropped; `false` if nothing is left.
    fn after_space(&mut self) -> bool {
        if self.skip_space {
            let n_space = self.buffer.len() - self.buffer.trim_start().len();
            self.buffer.drain(..n_space);
            self.skip_space = self.buffer.is_empty();
        }
        !self.buffer.is_empty()
    }

    fn text(&mut self, last: bool, out: &mut Vec<AnswerEvent>) -> bool {
        if !self.after_space() {
            return false;
        }
        let State::Text(reasoning) = self.state else { return false };
        if let Some(reasoning) = reasoning {
            return self.until_marker(&[reasoning.close], last, true, out, |parser, _, n_marker, out| {
                parser.pass_marker(n_marker, None, out);
                true
            });
        }
        if self.is_start {
            match self.at_start(last, out) {
                Head::Wait => return false,
                Head::Yes(..) => return true,
                Head::No => {}
            }
        }
        let opens = REASONINGS.iter().filter(|reasoning| reasoning.opens_in_answer());
        let mut markers: Vec<&str> = opens.clone().map(|reasoning| reasoning.open).collect();
        let n_reasoning = markers.len();
        markers.extend(FRAMES);
        let n_frame = markers.len();
        match self.syntax.calls.form {
            Form::Harmony => markers.extend([harmony::START, harmony::CHANNEL]),
            _ => markers.push(self.syntax.calls.open),
        }
        self.until_marker(&markers, last, false, out, |parser, index, n_marker, out| {
            if index < n_reasoning {
                parser.pass_marker(n_marker, opens.clone().nth(index), out);
                return true;
            }
            if index < n_frame {
                parser.take(n_marker);
                parser.continue_with_text(None);
                return true;
            }
            if let Form::Harmony = parser.syntax.calls.form {
                parser.state = State::Header;
                return true;
            }
            match call_head(&parser.syntax.calls.form, &parser.buffer[n_marker..], last) {
                Head::Wait => return false,
                Head::No => parser.give_text(n_marker, false, out),
                Head::Yes(n_head, head) => parser.begin(n_marker + n_head, head, out),
            }
            true
        })
    }

    /// Emits the text before the first of `markers`. `then` is called with its index and its end, including
    /// the white space before it.
    fn until_marker(
        &mut self,
        markers: &[&str],
        last: bool,
        is_reasoning: bool,
        out: &mut Vec<AnswerEvent>,
        then: impl FnOnce(&mut Self, usize, usize, &mut Vec<AnswerEvent>) -> bool,
    ) -> bool {
        match find_marker(&self.buffer, markers, last) {
            Found::NotBefore(n_byte) => {
                // White space may turn out to precede a marker.
                let n_text = if last { n_byte } else { self.buffer[..n_byte].trim_end().len() };
                self.give_text(n_text, is_reasoning, out);
                false
            }
            Found::At { start, index } => {
                let n_text = self.buffer[..start].trim_end().len();
                self.give_text(n_text, is_reasoning, out);
                then(self, index, start - n_text + markers[index].len(), out)
            }
        }
    }

    /// Handles what is only valid at the start of an answer: the end of reasoning that was not opened, and a
    /// call without a marker.
    fn at_start(&mut self, last: bool, out: &mut Vec<AnswerEvent>) -> Head<()> {
        let mut waits = false;
        for reasoning in REASONINGS {
            match expect(&self.buffer, reasoning.close, last) {
                Head::Yes(n, ()) => {
                    self.pass_marker(n, None, out);
                    return Head::Yes(n, ());
                }
                Head::Wait => waits = true,
                Head::No => {}
            }
        }
        if let Form::Object { alone: true, .. } = self.syntax.calls.form
            && !self.tools.is_empty()
            && self.buffer.trim_start().starts_with('{')
        {
            match call_head(&self.syntax.calls.form, &self.buffer, last) {
                Head::Wait => waits = true,
                // Any JSON answer may contain a name.
                Head::Yes(n, head)
                    if head.rest != Rest::Known(None) && function(&self.tools, &head.name).is_some() =>
                {
                    self.begin(n, head, out);
                    return Head::Yes(n, ());
                }
                Head::Yes(..) | Head::No => {}
            }
        }
        if waits { Head::Wait } else { Head::No }
    }

    /// Begins a call, whose head is the first `n_byte` bytes of the buffer.
    fn begin(&mut self, n_byte: usize, head: CallHead, out: &mut Vec<AnswerEvent>) {
        self.is_start = false;
        self.call = Some(String::new());
        self.take(n_byte);
        out.push(AnswerEvent::CallBegin { name: head.name.clone() });
        self.state = match head.rest {
            Rest::Known(arguments) => {
                out.push(AnswerEvent::Arguments(arguments.unwrap_or_else(|| "{}".to_owned())));
                self.end_call(true, out);
                State::Block
            }
            Rest::Json { in_object } => {
                State::Json { extent: JsonExtent::default(), text: String::new(), in_object }
            }
            Rest::Other => State::Other { tool: head.name, n_argument: 0 },
        };
    }

    /// Emits the end of a call.
    fn end_call(&mut self, is_valid: bool, out: &mut Vec<AnswerEvent>) {
        let written = self.call.take().filter(|_| !is_valid).unwrap_or_default();
        out.push(AnswerEvent::CallEnd { is_valid, written });
    }

    /// Ends a call; if it is malformed, the text after it is content.
    fn end(&mut self, is_valid: bool, next: State, out: &mut Vec<AnswerEvent>) {
        self.end_call(is_valid, out);
        self.state = if is_valid { next } else { State::Text(None) };
    }

    fn json(&mut self, last: bool, out: &mut Vec<AnswerEvent>) -> bool {
        let State::Json { extent, text, in_object } = &mut self.state else { return false };
        if text.is_empty() {
            let n_space = self.buffer.len() - self.buffer.trim_start().len();
            self.buffer.drain(..n_space);
        }
        if self.buffer.is_empty() && !last {
            return false;
        }
        let found = extent.push(self.buffer.as_bytes());
        let n_byte = match found {
            Some(Ok(n) | Err(n)) => n,
            None => self.buffer.len(),
        };
        text.push_str(&self.buffer[..n_byte]);
        let next = if *in_object { State::ObjectEnd } else { State::CallEnd };
        let is_valid = matches!(found, Some(Ok(_))) && is_object(text);
        let piece = self.take(n_byte);
        if !piece.is_empty() {
            out.push(AnswerEvent::Arguments(piece));
        }
        if found.is_some() || last {
            self.end(is_valid, next, out);
            return true;
        }
        false
    }

    fn object_end(&mut self, last: bool) -> bool {
        let rest = self.buffer.trim_start();
        if rest.is_empty() && !last {
            return false;
        }
        let end = match rest.as_bytes().first() {
            Some(b'}' | b',') => JsonExtent::inside_object().push(self.buffer.as_bytes()),
            _ => Some(Err(0)),
        };
        match end {
            Some(Ok(n)) => {
                self.take(n);
                self.state = State::Block;
            }
            None if !last => return false,
            _ => self.continue_with_text(None),
        }
        true
    }

    fn call_end(&mut self, last: bool) -> bool {
        let Form::Named { close, .. } = self.syntax.calls.form else {
            self.state = State::Block;
            return true;
        };
        match expect(&self.buffer, close, last) {
            Head::Wait => return false,
            Head::Yes(n, ()) => {
                self.take(n);
            }
            Head::No => {}
        }
        self.state = State::Block;
        true
    }

    fn block(&mut self, last: bool, out: &mut Vec<AnswerEvent>) -> bool {
        let calls = &self.syntax.calls;
        if !calls.close.is_empty() {
            match expect(&self.buffer, calls.close, last) {
                Head::Wait => return false,
                Head::Yes(n, ()) => {
                    self.take(n);
                    self.continue_with_text(None);
                    return true;
                }
                Head::No => {}
            }
        }
        let is_list = matches!(calls.form, Form::Object { .. } | Form::NameIsKey | Form::Python);
        let rest = self.buffer.trim_start();
        if rest.is_empty() && !last {
            return false;
        }
        if is_list && rest.starts_with([',', ';', ']']) {
            let n = self.buffer.len() - rest.len() + 1;
            self.take(n);
            return true;
        }
        match call_head(&calls.form, &self.buffer, last) {
            Head::Wait => return false,
            Head::Yes(n, head) => self.begin(n, head, out),
            Head::No => self.continue_with_text(None),
        }
        true
    }

    fn other(&mut self, last: bool, out: &mut Vec<AnswerEvent>) -> bool {
        let calls = &self.syntax.calls;
        let State::Other { tool, n_argument } = &mut self.state else { return false };
        let notation = match calls.form {
            Form::Named { arguments: Arguments::Tagged(tags), close, .. } => {
                // If calls have no closing marker, that of the block closes them.
                let (close, next) = match close {
                    "" => (calls.close, State::Text(None)),
                    _ => (close, State::Block),
                };
                let types = |key: &str| types_by_schema(&self.tools, tool, key);
                match value::tagged(tags, close, &self.buffer, types, last) {
                    Head::Wait => return false,
                    Head::No => self.end(false, next, out),
                    Head::Yes(n, Tagged::End) => {
                        let text = if *n_argument == 0 { "{}" } else { "}" };
                        out.push(AnswerEvent::Arguments(text.to_owned()));
                        self.skip_space = true;
                        self.take(n);
                        self.end(true, next, out);
                    }
                    Head::Yes(n, Tagged::Argument { key, value, is_string }) => {
                        let types = types(&key);
                        let is_string = is_string.or_else(|| types.is_string());
                        let before = if *n_argument == 0 { '{' } else { ',' };
                        let value = value::plain_json(&value, is_string, types);
                        let text = format!("{before}{}:{value}", Value::String(key));
                        *n_argument += 1;
                        out.push(AnswerEvent::Arguments(text));
                        self.take(n);
                    }
                }
                return true;
            }
            Form::Python => value::PYTHON,
            _ => value::GEMMA,
        };
        match value::arguments(notation, &self.buffer, last) {
            Head::Wait => return false,
            Head::No => self.end(false, State::Block, out),
            Head::Yes(n, arguments) => {
                self.take(n);
                out.push(AnswerEvent::Arguments(arguments.to_string()));
                self.end(true, State::Block, out);
            }
        }
        true
    }

    fn header(&mut self, last: bool, out: &mut Vec<AnswerEvent>) -> bool {
        if self.buffer.is_empty() {
            return false;
        }
        match harmony::header(&self.buffer, last) {
            Header::Wait => return false,
            Header::Yes(n, target) => {
                if let Target::Tool(name) = &target {
                    self.call = Some(String::new());
                    out.push(AnswerEvent::CallBegin { name: name.clone() });
                }
                self.pass_header(n, target == Target::Reasoning, out);
                let extent = matches!(target, Target::Tool(_)).then(JsonExtent::default);
                self.state = State::Message(target, String::new(), extent);
            }
            Header::No => {
                // The marker is treated as text, so that it is not found again.
                let markers = [harmony::START, harmony::CHANNEL];
                let found = markers.iter().find(|marker| self.buffer.trim_start().starts_with(**marker));
                let n_space = self.buffer.len() - self.buffer.trim_start().len();
                let n_text = found.map_or(0, |marker| n_space + marker.len());
                self.give_text(n_text, false, out);
                self.state = State::Text(None);
                self.skip_space = false;
            }
        }
        true
    }

    /// Goes on after the first `n_byte` bytes of the buffer, which begin or end a message.
    fn pass_header(&mut self, n_byte: usize, is_reasoning: bool, out: &mut Vec<AnswerEvent>) {
        if is_reasoning && self.keeps_reasoning() {
            self.give_text(n_byte, true, out);
        } else {
            self.take(n_byte);
        }
    }

    fn message(&mut self, last: bool, out: &mut Vec<AnswerEvent>) -> bool {
        let State::Message(target, gathered, extent) = &mut self.state else { return false };
        if let Some(inside) = extent {
            let rest = self.buffer.trim_start();
            if rest.is_empty() && !last {
                return false;
            }
            let found = match gathered.is_empty() && !rest.starts_with('{') {
                true => Some(Ok(0)),
                false => inside.push(self.buffer.as_bytes()),
            };
            let n_byte = match found {
                Some(Ok(n) | Err(n)) => n,
                None => self.buffer.len(),
            };
            if found.is_some() || last {
                *extent = None;
            }
            gathered.push_str(&self.buffer[..n_byte]);
            let piece = self.take(n_byte);
            if !piece.is_empty() {
                out.push(AnswerEvent::Arguments(piece));
            }
            return found.is_some() || last;
        }
        let found = find_marker(&self.buffer, harmony::ENDS, last);
        let (n_all, marker) = match found {
            Found::At { start, index } => (start, Some(harmony::ENDS[index])),
            Found::NotBefore(n) => (n, None),
        };
        let is_end = marker.is_some() || last;
        let is_reasoning = *target == Target::Reasoning;
        match target {
            Target::Tool(_) => {
                gathered.push_str(&self.buffer[..n_all]);
                let is_valid = is_end && is_object(gathered);
                let piece = self.take(n_all);
                if !piece.is_empty() {
                    out.push(AnswerEvent::Arguments(piece));
                }
                if is_end {
                    self.end_call(is_valid, out);
                }
            }
            _ => {
                // White space at the end belongs to the marker, if there is one.
                let keeps_space = last && marker.is_none();
                let n_text = if keeps_space { n_all } else { self.buffer[..n_all].trim_end().len() };
                self.give_text(n_text, is_reasoning, out);
                if is_end {
                    self.pass_header(n_all - n_text, is_reasoning, out);
                }
            }
        }
        if is_end {
            // The start of a message is the beginning of its header.
            let n_marker = marker.filter(|marker| *marker != harmony::START).map_or(0, str::len);
            self.pass_header(n_marker, is_reasoning, out);
            self.state = State::Header;
        }
        is_end
    }
}

/// The types that the argument `key` of `tool` may have.
fn types_by_schema(tools: &[Value], tool: &str, key: &str) -> Types {
    let parameters = function(tools, tool).and_then(|function| function.get("parameters"));
    let schema =
        parameters.and_then(|parameters| Some((parameters.get("properties")?.get(key)?, parameters)));
    schema.map_or(Types::ANY, |(schema, root)| Types::of(schema, root))
}

/// The schema of the function called `name`.
fn function<'t>(tools: &'t [Value], name: &str) -> Option<&'t Value> {
    tools.iter().map(|tool| tool.get("function").unwrap_or(tool)).find(|function| function["name"] == name)
}
