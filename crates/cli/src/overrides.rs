//! Other values for a model's metadata: single keys, RoPE scaling, and the chat template.

use std::path::PathBuf;

use chaski::gguf::OwnedValue;
use chaski::text::{builtin_template, builtin_template_names};

use crate::failure::Usage;
use crate::input::read_text;
use crate::numbers::positive;

/// Keys and values.
pub(crate) type Changes = Vec<(String, OwnedValue)>;

/// Options that replace metadata of any model.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options that replace metadata of the model")]
pub(crate) struct MetadataArgs {
    /// Another value for a key of the file: KEY=TYPE:VALUE, TYPE one of int, float, bool, str; may be repeated or
    /// comma-separated
    #[arg(long, value_name = "KEY=TYPE:VALUE", value_parser = overrides)]
    override_kv: Vec<Overrides>,
    /// RoPE scaling: none, linear or yarn
    #[arg(long, value_name = "TYPE", value_parser = ["none", "linear", "yarn"], hide_possible_values = true)]
    rope_scaling: Option<String>,
    /// RoPE: extend the context by this factor
    #[arg(long, value_name = "N", value_parser = positive)]
    rope_scale: Option<f32>,
    /// RoPE base frequency
    #[arg(long, value_name = "N", value_parser = positive)]
    rope_freq_base: Option<f32>,
    /// RoPE frequency factor: 0.5 extends the context by 2
    #[arg(long, value_name = "N", value_parser = positive, conflicts_with = "rope_scale")]
    rope_freq_scale: Option<f32>,
    /// YaRN: the context size before it was extended; 0 is the model's own
    #[arg(long, value_name = "N")]
    yarn_orig_ctx: Option<u32>,
    /// Those of other options.
    #[arg(skip)]
    pub(crate) more: Changes,
}

/// Keys and values of one `--override-kv`.
#[derive(Clone, Debug, PartialEq)]
struct Overrides(Changes);

impl MetadataArgs {
    /// All keys and values; the last one of a key counts.
    pub(crate) fn changes(&self) -> Changes {
        let rope = |name: &str, value: OwnedValue| (format!("{{arch}}.rope.{name}"), value);
        let factor = self.rope_scale.or(self.rope_freq_scale.map(f32::recip));
        let scaling = [
            self.rope_scaling.as_ref().map(|kind| rope("scaling.type", kind.as_str().into())),
            factor.map(|factor| rope("scaling.factor", factor.into())),
            self.rope_freq_base.map(|base| rope("freq_base", base.into())),
            self.yarn_orig_ctx.filter(|n| *n > 0).map(|n| rope("scaling.original_context_length", n.into())),
        ];
        let single = self.override_kv.iter().flat_map(|list| list.0.iter().cloned());
        scaling.into_iter().flatten().chain(self.more.iter().cloned()).chain(single).collect()
    }
}

/// Options that replace the chat template.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options that replace metadata of the model")]
pub(crate) struct TemplateArgs {
    /// Chat template: Jinja source, or a name of llama.cpp's, such as `chatml` or `llama3` (an unknown one lists them)
    #[arg(long, value_name = "JINJA", conflicts_with_all = ["chat_template_file", "in_prefix", "in_suffix"])]
    chat_template: Option<String>,
    /// Chat template from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["in_prefix", "in_suffix"])]
    chat_template_file: Option<PathBuf>,
    /// Text before each message of the user, in place of a chat template
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) in_prefix: Option<String>,
    /// Text after each message of the user, in place of a chat template
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) in_suffix: Option<String>,
    /// BOS before the text of --in-prefix
    #[arg(long)]
    in_prefix_bos: bool,
}

impl TemplateArgs {
    /// The keys of the template, if it is replaced.
    ///
    /// # Errors
    /// If its file cannot be read, or a name is unknown.
    pub(crate) fn changes(&self) -> anyhow::Result<Changes> {
        let source = match (&self.chat_template, &self.chat_template_file) {
            (Some(text), _) if text.contains("{{") || text.contains("{%") => text.clone(),
            (Some(name), _) => builtin_template(name).ok_or_else(|| {
                let known = builtin_template_names().collect::<Vec<_>>().join(", ");
                Usage(format!(
                    "`{name}` is neither a Jinja template (`--chat-template-file FILE` reads one from a file) nor one of \
                     {known}"
                ))
            })?,
            (None, Some(file)) => read_text(file)?,
            (None, None) => match self.around() {
                Some(source) => source,
                None => return Ok(Vec::new()),
            },
        };
        let key = |name: &str| (format!("tokenizer.chat_template{name}"), source.as_str().into());
        Ok(vec![key(""), key(".tool_use")])
    }

    /// The template that puts texts around the user's messages.
    fn around(&self) -> Option<String> {
        if self.in_prefix.is_none() && self.in_suffix.is_none() && !self.in_prefix_bos {
            return None;
        }
        // Texts of JSON are texts of Jinja.
        let text =
            |text: &Option<String>| serde_json::Value::from(text.as_deref().unwrap_or_default()).to_string();
        let (prefix, suffix) = (text(&self.in_prefix), text(&self.in_suffix));
        let bos = if self.in_prefix_bos { "{{ bos_token }}" } else { "" };
        Some(format!(
            "{{% for message in messages %}}{{% if message.role == 'user' %}}{bos}{{{{ {prefix} + message.content + '\\n' + \
             {suffix} }}}}{{% else %}}{{{{ message.content + '\\n' }}}}{{% endif %}}{{% endfor %}}"
        ))
    }
}

/// Parses `KEY=TYPE:VALUE,...`; a backslash before a comma makes it part of the value.
fn overrides(text: &str) -> Result<Overrides, String> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&',') => {
                letters.next();
                parts.last_mut().expect("there is a first one").push(',');
            }
            ',' => parts.push(String::new()),
            _ => parts.last_mut().expect("there is a first one").push(letter),
        }
    }
    parts.iter().map(|part| change(part)).collect::<Result<_, _>>().map(Overrides)
}

fn change(text: &str) -> Result<(String, OwnedValue), String> {
    let form = || format!("`{text}` is not KEY=TYPE:VALUE, such as tokenizer.ggml.add_bos_token=bool:false");
    let (key, rest) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(form)?;
    let (kind, value) = rest.split_once(':').ok_or_else(form)?;
    let wrong = || format!("`{value}` is no {kind}");
    let value = match kind {
        "int" => OwnedValue::I64(value.parse().map_err(|_| wrong())?),
        "float" => OwnedValue::F64(value.parse().map_err(|_| wrong())?),
        "bool" => OwnedValue::Bool(value.parse().map_err(|_| wrong())?),
        "str" => OwnedValue::Str(value.to_owned()),
        _ => return Err(format!("unknown type `{kind}` (known: int, float, bool, str)")),
    };
    Ok((key.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    #[command(no_binary_name = true)]
    struct Line {
        #[command(flatten)]
        metadata: MetadataArgs,
        #[command(flatten)]
        template: TemplateArgs,
    }

    fn parsed(line: &[&str]) -> Line {
        Line::try_parse_from(line).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn overrides_have_a_key_a_type_and_a_value() {
        let line = [
            "--rope-scale",
            "4",
            "--override-kv",
            "a.b=int:-3,c=bool:true",
            "--override-kv",
            r"d=str:x\,y:z",
        ];
        let expected = vec![
            ("{arch}.rope.scaling.factor".to_owned(), OwnedValue::F32(4.0)),
            ("a.b".into(), OwnedValue::I64(-3)),
            ("c".into(), OwnedValue::Bool(true)),
            ("d".into(), OwnedValue::Str("x,y:z".into())),
        ];
        assert_eq!(parsed(&line).metadata.changes(), expected);
        let half = parsed(&["--rope-freq-scale", "0.5"]).metadata.changes();
        assert_eq!(half, [("{arch}.rope.scaling.factor".to_owned(), OwnedValue::F32(2.0))]);
        assert!(parsed(&["--yarn-orig-ctx", "0"]).metadata.changes().is_empty());
        for (wrong, says) in
            [("a", "is not KEY=TYPE:VALUE"), ("a=int:x", "`x` is no int"), ("a=u32:1", "known: int, float")]
        {
            assert!(overrides(wrong).unwrap_err().contains(says), "{wrong}");
        }
    }

    #[test]
    fn a_template_is_jinja_or_a_known_name() {
        let source = |line: &[&str]| match &parsed(line).template.changes().unwrap()[..] {
            [(_, OwnedValue::Str(usual)), (_, OwnedValue::Str(tools))] if usual == tools => usual.clone(),
            other => panic!("{other:?}"),
        };
        for name in builtin_template_names() {
            assert_eq!(Some(source(&["--chat-template", name])), builtin_template(name));
        }
        assert_eq!(source(&["--chat-template", "{{ x }}"]), "{{ x }}");
        let unknown = parsed(&["--chat-template", "alpaca"]).template.changes().unwrap_err().to_string();
        assert!(unknown.contains("vicuna, vicuna-orca"), "{unknown}");
        assert!(parsed(&[]).template.changes().unwrap().is_empty());
    }

    #[test]
    fn texts_around_messages_make_a_template() {
        use chaski::Message;
        use chaski::text::{ChatTemplate, TemplateOptions};
        let line = ["--in-prefix", "\"Q\":\t", "--in-suffix", "A: ", "--in-prefix-bos"];
        let source = parsed(&line).template.around().unwrap();
        let template = ChatTemplate::new(&source).unwrap();
        let options = TemplateOptions { bos_token: "<s>".into(), ..TemplateOptions::default() };
        let messages = [Message::new("system", "Be kind."), Message::new("user", "Why?")];
        assert_eq!(template.render(&messages, &options).unwrap(), "Be kind.\n<s>\"Q\":\tWhy?\nA: ");
    }
}
