//! Chat templates, which render a conversation in the format that the model was trained on.
//!
//! Templates are Jinja programs in the GGUF file. They run as in Hugging Face: trimmed blocks, loop controls,
//! no HTML escaping, Python's string methods and Python's JSON. The interpreter is our own (`chaski-jinja`).

mod builtin;
mod error;
mod message;
mod prepare;
mod set;

use std::ops::Range;
use std::sync::OnceLock;

use chaski_jinja::{Origin, Program};
use serde_json::Value;

pub use builtin::{builtin_template, builtin_template_names};
pub use chaski_jinja::{LocalTime, Rendered};
pub use error::{TemplateError, TemplateFault};
pub use message::{Content, Message, TemplateOptions};
pub use set::ChatTemplates;

use crate::tokenizer::Tokenizer;
use prepare::Capabilities;

/// The template for files without one (ChatML).
pub const CHATML: &str = "{% for message in messages %}\
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}\
{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// A compiled chat template.
///
/// ```
/// use chaski_text::{CHATML, ChatTemplate, Message, TemplateOptions};
///
/// let template = ChatTemplate::new(CHATML)?;
/// let prompt = template.render(&[Message::new("user", "Hi")], &TemplateOptions::default())?;
/// assert_eq!(prompt, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
/// # Ok::<(), chaski_text::TemplateError>(())
/// ```
#[derive(Debug)]
pub struct ChatTemplate {
    program: Program,
    source: String,
    capabilities: OnceLock<Capabilities>,
}

impl ChatTemplate {
    /// Parses `source`, the text of `tokenizer.chat_template`.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Parse`] with the line, or [`TemplateError::Limit`] if it is too large or too deep.
    pub fn new(source: impl Into<String>) -> Result<ChatTemplate, TemplateError> {
        let source = source.into();
        let program = Program::parse(&source).map_err(|fault| TemplateError::from_parse(*fault))?;
        Ok(ChatTemplate { program, source, capabilities: OnceLock::new() })
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders `messages`, after adapting them to the template.
    ///
    /// A `developer` message becomes a `system` message; if the template has no system role, its text moves
    /// to the next message; typed parts become text, text becomes a typed part, and tool-call arguments
    /// become objects, as far as the template needs it.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Raised`] if the template rejects the conversation, [`TemplateError::Render`] if it
    /// fails.
    ///
    /// # Source
    ///
    /// llama.cpp `common_chat_templates_apply`.
    pub fn render(&self, messages: &[Message], options: &TemplateOptions) -> Result<String, TemplateError> {
        Ok(self.render_traced(messages, options)?.text)
    }

    /// The same with the parts of the text that come from the messages, tools and [`TemplateOptions::extra`], whatever
    /// the template does to them: there, the text of a special token is no special token
    /// ([`Tokenizer::encode_traced`]).
    ///
    /// Roles and types of parts that are a word count as text of the template, which may make a token of them.
    ///
    /// # Errors
    ///
    /// As [`ChatTemplate::render`].
    ///
    /// [`Tokenizer::encode_traced`]: crate::Tokenizer::encode_traced
    pub fn render_traced(
        &self,
        messages: &[Message],
        options: &TemplateOptions,
    ) -> Result<Rendered, TemplateError> {
        let capabilities = self.capabilities.get_or_init(|| Capabilities::probe(self));
        self.render_variables(&prepare::prepare(messages, capabilities), options)
    }

    /// [`Self::render_traced`] up to the end of the last message's content, which has to be the assistant's, so that
    /// the answer continues it.
    ///
    /// # Errors
    ///
    /// As [`ChatTemplate::render`]; [`TemplateError::Continue`] if the last message is another's, or the template
    /// changes its text.
    pub fn render_open(
        &self,
        messages: &[Message],
        options: &TemplateOptions,
    ) -> Result<Rendered, TemplateError> {
        let options = TemplateOptions { add_generation_prompt: false, ..options.clone() };
        up_to_last(self.render_traced(messages, &options)?, messages)
    }

    /// Renders `messages` unchanged, like Hugging Face's `apply_chat_template`.
    ///
    /// # Errors
    ///
    /// As [`ChatTemplate::render`].
    pub fn render_exact(
        &self,
        messages: &[Message],
        options: &TemplateOptions,
    ) -> Result<String, TemplateError> {
        Ok(self.render_variables(messages, options)?.text)
    }

    fn render_variables(
        &self,
        messages: &[Message],
        options: &TemplateOptions,
    ) -> Result<Rendered, TemplateError> {
        const DATA: Origin = Origin::Data { words: &["role", "type"] };
        let mut variables: Vec<(&str, Value, Origin)> = vec![
            ("messages", serde_json::to_value(messages).unwrap_or_default(), DATA),
            ("add_generation_prompt", options.add_generation_prompt.into(), Origin::Template),
            ("bos_token", options.bos_token.as_str().into(), Origin::Template),
            ("eos_token", options.eos_token.as_str().into(), Origin::Template),
        ];
        if let Some(enable_thinking) = options.enable_thinking {
            variables.push(("enable_thinking", enable_thinking.into(), Origin::Template));
        }
        variables.extend(options.extra.iter().map(|(name, value)| (name.as_str(), value.clone(), DATA)));
        let render = |variables: &[(&str, Value, Origin)]| {
            let variables = variables.iter().map(|(name, value, origin)| (*name, value, *origin));
            let rendered = self.program.render_traced(variables, options.now);
            rendered.map_err(|fault| TemplateError::from_render(*fault))
        };
        let none = |name| (name, Value::Null, Origin::Template);
        let mut unset = vec![none("documents")];
        match options.tools.is_empty() {
            true => unset.push(none("tools")),
            false => variables.insert(0, ("tools", options.tools.as_slice().into(), DATA)),
        }
        // In transformers they exist without a value. Templates that go through them without asking fail there, but not
        // if there is no such variable.
        let all: Vec<_> = unset.into_iter().chain(variables.iter().cloned()).collect();
        render(&all).or_else(|error| match error {
            TemplateError::Render { .. } => render(&variables).map_err(|_| error),
            _ => Err(error),
        })
    }
}

/// The text up to the end of the last message's content.
fn up_to_last(mut rendered: Rendered, messages: &[Message]) -> Result<Rendered, TemplateError> {
    let last = messages.last().filter(|last| last.role == "assistant");
    let last = last.ok_or(TemplateError::Continue("the last message is not the assistant's"))?;
    // Templates may trim it.
    let text = last.text();
    let content = [text.as_str(), text.trim_end(), text.trim()]
        .into_iter()
        .find_map(|content| rendered.text.rfind(content).map(|at| at + content.len()))
        .ok_or(TemplateError::Continue("the chat template changes the last message"))?;
    rendered.text.truncate(content);
    rendered.data.retain(|range| range.start < content);
    if let Some(last) = rendered.data.last_mut() {
        last.end = last.end.min(content);
    }
    Ok(rendered)
}

/// Removes the special tokens from `text` that `tokenizer` will add itself: one BOS at the start, one EOS at
/// the end.
///
/// Templates write BOS as text, and most tokenizers add it too; the model must see it only once.
pub fn strip_added_special<'t>(text: &'t str, tokenizer: &Tokenizer) -> &'t str {
    &text[without_added(text, &[], tokenizer)]
}

/// [`strip_added_special`] of a text with data, of which nothing is removed.
pub fn strip_added_special_traced(mut prompt: Rendered, tokenizer: &Tokenizer) -> Rendered {
    let kept = without_added(&prompt.text, &prompt.data, tokenizer);
    prompt.text.truncate(kept.end);
    prompt.text.drain(..kept.start);
    prompt.data.iter_mut().for_each(|range| *range = range.start - kept.start..range.end - kept.start);
    prompt
}

/// The part of a text without the tokens that `tokenizer` adds before and behind it, as far as they are no data.
fn without_added(text: &str, data: &[Range<usize>], tokenizer: &Tokenizer) -> Range<usize> {
    let token = |adds: bool, id: Option<u32>| {
        id.filter(|_| adds).and_then(|id| tokenizer.token_text(id)).unwrap_or_default()
    };
    let first = data.first().map_or(text.len(), |range| range.start);
    let bos = token(tokenizer.adds_bos(), tokenizer.bos());
    let start = if text[..first].starts_with(bos) { bos.len() } else { 0 };
    let last = data.last().map_or(start, |range| range.end);
    let eos = token(tokenizer.adds_eos(), tokenizer.eos());
    let end = if text[last..].ends_with(eos) { text.len() - eos.len() } else { text.len() };
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_continued_where_it_ends() {
        let source = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</end>{% endfor %}\
                      {% if add_generation_prompt %}<assistant>{% endif %}";
        let template = ChatTemplate::new(source).unwrap();
        let options = TemplateOptions::default();
        let say = |role: &str, text: &str| Message::new(role, text);
        let messages = [say("user", "Hi"), say("assistant", "Once upon ")];
        let rendered = template.render_open(&messages, &options).unwrap();
        assert_eq!(rendered.text, "<user>Hi</end><assistant>Once upon");
        assert_eq!(rendered.data.last().map(|range| range.end), Some(rendered.text.len()));
        let error = template.render_open(&messages[..1], &options).unwrap_err();
        assert_eq!(error.to_string(), "the last message is not the assistant's, so it cannot be continued");
    }

    fn render(source: &str) -> Result<String, TemplateError> {
        let now = LocalTime { year: 2026, month: 1, day: 2, hour: 3, minute: 4, second: 5 };
        let options = TemplateOptions { now: Some(now), ..TemplateOptions::default() };
        ChatTemplate::new(source)?.render_exact(&[Message::new("user", "<Hi> & 'you'")], &options)
    }

    #[test]
    fn blocks_are_trimmed_and_text_is_not_escaped() {
        let source = "  {% for m in messages %}\n  {{ m.content }}\n  {% break %}\n  {% endfor %}\n";
        assert_eq!(render(source).unwrap(), "  <Hi> & 'you'\n");
    }

    #[test]
    fn python_methods_and_python_printing() {
        assert_eq!(render("{{ ' a b '.strip().split(' ')[-1] }}").unwrap(), "b");
        assert_eq!(
            render("{{ [1, 'a', none, true, {'k': 1.0}] }}").unwrap(),
            "[1, 'a', None, True, {'k': 1.0}]"
        );
        assert_eq!(render("{{ true }} {{ none }} {{ nothing }}").unwrap(), "True None ");
    }

    #[test]
    fn time_is_what_the_caller_says() {
        assert_eq!(render("{{ strftime_now('%d %b %Y') }}").unwrap(), "02 Jan 2026");
        let template = ChatTemplate::new("{{ strftime_now is defined }}").unwrap();
        assert_eq!(template.render_exact(&[], &TemplateOptions::default()).unwrap(), "False");
    }

    #[test]
    fn refusals_and_failures_are_told_apart() {
        let error =
            render("{% macro m() %}{{ raise_exception('no ' ~ 'way') }}{% endmacro %}{{ m() }}").unwrap_err();
        assert_eq!(error.to_string(), "chat template refuses the conversation: no way");
        let error = render("\n\n{{ nothing.at.all }}").unwrap_err();
        assert_eq!(error.to_string(), "chat template, line 3");
        let error = render("\n{% if %}").unwrap_err();
        assert!(matches!(error, TemplateError::Parse { line: 2, .. }), "{error}");
    }

    #[test]
    fn templates_that_never_end_are_given_up() {
        let loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
        let error = render(loops).unwrap_err().to_string();
        assert_eq!(error, "chat template, line 1, exceeded the limit of 20000000 steps");
        let long = "{% set x = 'a' * 9999999 %}{% for i in range(9) %}{{ x }}{% endfor %}";
        let error = render(long).unwrap_err().to_string();
        assert_eq!(error, "chat template, line 1, exceeded the limit of 67108864 bytes of text and values");
    }

    #[test]
    fn texts_that_grow_without_end_are_given_up() {
        let doubled = |make: &str, what: &str| {
            format!(
                "{{% set ns = namespace(x='bb', l=['ab' * 99999]) %}}{{% for i in range(60) %}}{make}{{% endfor %}}{what}"
            )
        };
        let nest = "{% set ns.l = [ns.l, ns.l] %}";
        for source in [
            doubled(nest, "{{ ns.l }}"),
            doubled(nest, "{{ ns.l | tojson }}"),
            doubled(nest, "{{ ns.l | tojson(indent=2) }}"),
            doubled(nest, "{{ ns.l | string | length }}"),
            doubled(nest, "{{ ns.l | join('') | length }}"),
            doubled(nest, "{% set text %}{{ ns.l }}{% endset %}"),
            doubled("{% set ns.l = ns.l + ns.l %}", ""),
            doubled("{% set ns.x = ns.x ~ ns.x %}", "{{ ns.x }}"),
            doubled("{% set ns.x = ns.x + ns.x %}", ""),
            doubled("{% set ns.x = ns.x * 2 %}", ""),
            doubled("{% set ns.l = ns.l * 2 %}", ""),
            doubled("{% set ns.l = ns.l + ['a' * 9999999] %}", ""),
            "{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('bb') }}".to_owned(),
            "{% with a = (a or 'bb') ~ (a or 'bb') %}".repeat(60) + &"{% endwith %}".repeat(60),
            doubled("{% set t %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = t %}", ""),
            doubled("{% set ns.x = [ns.x, ns.x] | join(' ') %}", ""),
            doubled("{% set ns.x = '-'.join([ns.x, ns.x]) %}", ""),
            doubled("{% set ns.x = ns.x.replace('b', ns.x) %}", ""),
            doubled("{% set ns.x = ns.x | replace('b', ns.x) %}", ""),
            doubled("{% set ns.x = (ns.x ~ '\nx') | indent(10000000) %}", ""),
        ] {
            let error = render(&source).expect_err(&source).to_string();
            let is_limit = ["bytes of text and values", "levels of nested values", "nested calls", "steps"];
            assert!(is_limit.iter().any(|what| error.ends_with(what)), "{source}: {error}");
        }
    }

    #[test]
    fn generation_tags_are_blocks_that_print_nothing() {
        let source = "a\n{% generation %}\nb\n{%- endgeneration -%}\n c";
        assert_eq!(render(source).unwrap(), "a\nbc");
    }
}
