//! Chat templates, which render a conversation in the format that the model was trained on.
//!
//! Templates are Jinja programs in the GGUF file. They run as in Hugging Face: trimmed blocks, loop controls,
//! no HTML escaping, Python's string methods and Python's JSON.

mod counted;
mod error;
mod json;
mod limits;
mod message;
mod prepare;
mod set;
mod time;

use std::io;
use std::sync::{Arc, OnceLock};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, ErrorKind};

pub use error::TemplateError;
pub use message::{Content, Message, TemplateOptions};
pub use set::ChatTemplates;
pub use time::LocalTime;

use error::Raised;
use limits::MAX_BYTES;
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
    env: Environment<'static>,
    source: String,
    capabilities: OnceLock<Capabilities>,
}

/// Name of the only template in the environment.
const NAME: &str = "chat_template";

impl ChatTemplate {
    /// Compiles `source`, the text of `tokenizer.chat_template`.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Parse`] with the line.
    pub fn new(source: impl Into<String>) -> Result<ChatTemplate, TemplateError> {
        let source = source.into();
        let parse_error =
            |e: Error| TemplateError::Parse { line: e.line().unwrap_or(0), source: Arc::new(e) };

        let mut env = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        let syntax = syntax.map_err(parse_error)?;
        env.set_syntax(syntax.clone());
        env.set_auto_escape_callback(|_| AutoEscape::None);
        limits::set(&mut env);
        env.add_filter("tojson", json::tojson);
        env.add_function("raise_exception", |message: String| -> Result<Value, Error> {
            let error = Error::new(ErrorKind::InvalidOperation, "raise_exception");
            Err(error.with_source(Raised(message)))
        });
        let text = without_generation_tags(&source);
        // Errors are reported for the template as written.
        env.template_from_str(&text).map_err(parse_error)?;
        env.add_template_owned(NAME, counted::counted(&text, syntax)).map_err(parse_error)?;
        Ok(ChatTemplate { env, source, capabilities: OnceLock::new() })
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
        let capabilities = self.capabilities.get_or_init(|| Capabilities::probe(self));
        self.render_exact(&prepare::prepare(messages, capabilities), options)
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
        let mut variables: Vec<(String, Value)> = vec![
            ("messages".into(), Value::from(Serde(messages))),
            ("add_generation_prompt".into(), options.add_generation_prompt.into()),
            ("bos_token".into(), options.bos_token.as_str().into()),
            ("eos_token".into(), options.eos_token.as_str().into()),
        ];
        if !options.tools.is_empty() {
            variables.push(("tools".into(), Value::from(Serde(&options.tools))));
        }
        if let Some(enable_thinking) = options.enable_thinking {
            variables.push(("enable_thinking".into(), enable_thinking.into()));
        }
        if let Some(now) = options.now {
            let strftime_now = move |format: String| now.strftime(&format);
            variables.push(("strftime_now".into(), Value::from_function(strftime_now)));
        }
        for (name, value) in &options.extra {
            variables.push((name.clone(), Value::from(Serde(value))));
        }
        let template = self.env.get_template(NAME).map_err(TemplateError::from_render)?;
        let mut text = Limited(Vec::new());
        template
            .render_captured_to(Value::from_pairs(variables), &mut text)
            .map_err(TemplateError::from_render)?;
        Ok(String::from_utf8(text.0).expect("the engine writes whole strings"))
    }
}

/// A writer into memory with a limit on the bytes.
struct Limited(Vec<u8>);

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > MAX_BYTES - self.0.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Turns the `generation` tags, which mark the assistant's text for training and print nothing, into blocks.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, tag)) = rest.split_once("{%") {
        out.push_str(before);
        match generation_tag(tag) {
            Some((block, behind)) => {
                out.push_str(&block);
                rest = behind;
            }
            None => {
                out.push_str("{%");
                rest = tag;
            }
        }
    }
    out + rest
}

/// The replacement for a `generation` or `endgeneration` tag, given the text after its `{%`, and the text
/// that follows the tag.
fn generation_tag(tag: &str) -> Option<(String, &str)> {
    let sign = |text: &str| text.len() - text.strip_prefix(['-', '+']).unwrap_or(text).len();
    let (left, rest) = tag.split_at(sign(tag));
    let rest = rest.trim_start();
    let (block, rest) = match rest.strip_prefix("end") {
        Some(rest) => ("endif", rest),
        None => ("if true", rest),
    };
    let rest = rest.strip_prefix("generation")?.trim_start();
    let (right, rest) = rest.split_at(sign(rest));
    Some((format!("{{%{left} {block} {right}%}}"), rest.strip_prefix("%}")?))
}

/// Removes the special tokens from `text` that `tokenizer` will add itself: one BOS at the start, one EOS at
/// the end.
///
/// Templates write BOS as text, and most tokenizers add it too; the model must see it only once.
pub fn strip_added_special<'t>(text: &'t str, tokenizer: &crate::tokenizer::Tokenizer) -> &'t str {
    let token = |adds: bool, id: Option<u32>| id.filter(|_| adds).and_then(|id| tokenizer.token_text(id));
    let mut text = text;
    if let Some(bos) = token(tokenizer.adds_bos(), tokenizer.bos()) {
        text = text.strip_prefix(bos).unwrap_or(text);
    }
    if let Some(eos) = token(tokenizer.adds_eos(), tokenizer.eos()) {
        text = text.strip_suffix(eos).unwrap_or(text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let expected = "chat template exceeded the limit of 20000000 steps; it may never terminate";
        assert_eq!(error, expected);
        let long = "{% set x = 'a' * 9999999 %}{% for i in range(9) %}{{ x }}{% endfor %}";
        let error = render(long).unwrap_err().to_string();
        assert!(error.starts_with("chat template exceeded the limit of 67108864 bytes of text"), "{error}");
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
            doubled(nest, "{{ ''.join(ns.l) | length }}"),
            doubled(nest, "{% set text %}{{ ns.l }}{% endset %}"),
            // After 32 sums the engine collects them in one list, which is not counted.
            doubled("{% set ns.l = ns.l + ns.l %}", "{{ ns.l | tojson | length }}").replace("60", "30"),
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
            doubled("{% set ns.x = (ns.x ~ '\n') | indent(10000000) %}", ""),
        ] {
            let error = render(&source).expect_err(&source).to_string();
            assert!(
                error.starts_with("chat template exceeded the limit of 67108864 bytes of text"),
                "{source}: {error}"
            );
        }
    }

    #[test]
    fn generation_tags_are_blocks_that_print_nothing() {
        let source = "a\n{% generation %}\nb\n{%- endgeneration -%}\n c";
        assert_eq!(render(source).unwrap(), "a\nbc");
    }
}
