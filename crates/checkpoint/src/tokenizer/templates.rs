//! The chat templates of a folder.

use std::borrow::Cow;

use ggml_format::OwnedValue;
use serde_json::Value;

use super::TokenizerFileError;
use super::files::TokenizerFiles;

/// The key of the template without a name; those of others append their names.
const KEY: &str = "tokenizer.chat_template";
/// The key of the list of names.
const NAMES_KEY: &str = "tokenizer.chat_templates";

/// The metadata keys of the chat templates. The first of these that is there counts: `chat_template` of
/// `tokenizer_config.json` (a text, or a list with names), `chat_template.jinja`, `chat_template.json`. The files of
/// `additional_chat_templates` add names that are not taken.
pub(super) fn entries(
    files: &TokenizerFiles,
    config: &Value,
) -> Result<Vec<(String, OwnedValue)>, TokenizerFileError> {
    let mut found: Vec<(String, String)> = of_value(config.get("chat_template"));
    let has_usual = |found: &[(String, String)]| found.iter().any(|(name, _)| name == "default");
    if !has_usual(&found)
        && let Some(bytes) = files.bytes("chat_template.jinja")
    {
        found.push(("default".to_owned(), text(bytes).into_owned()));
    }
    if !has_usual(&found) {
        let more = of_value(files.json("chat_template.json")?.get("chat_template"));
        found.extend(more.into_iter().filter(|(name, _)| name == "default"));
    }
    for (name, bytes) in files.named_templates() {
        let name = plain_name(name);
        if found.iter().all(|(taken, _)| *taken != name) {
            found.push((name, text(bytes).into_owned()));
        }
    }
    let names: Vec<String> =
        found.iter().map(|(name, _)| name.clone()).filter(|name| name != "default").collect();
    let key = |name: &str| if name == "default" { KEY.to_owned() } else { format!("{KEY}.{name}") };
    let mut entries: Vec<(String, OwnedValue)> =
        found.into_iter().map(|(name, source)| (key(&name), source.into())).collect();
    if !names.is_empty() {
        entries.push((NAMES_KEY.to_owned(), names.into()));
    }
    Ok(entries)
}

/// Templates by name; a single one is called `default`. Of two with a name the first counts.
fn of_value(value: Option<&Value>) -> Vec<(String, String)> {
    let named = |entry: &Value| {
        let text = |key: &str| entry.get(key)?.as_str();
        Some((plain_name(text("name")?), text("template")?.to_owned()))
    };
    match value {
        Some(Value::String(source)) => vec![("default".to_owned(), source.clone())],
        Some(Value::Array(list)) => {
            let mut found: Vec<(String, String)> = Vec::new();
            for (name, source) in list.iter().filter_map(named) {
                if found.iter().all(|(taken, _)| *taken != name) {
                    found.push((name, source));
                }
            }
            found
        }
        _ => Vec::new(),
    }
}

/// A name as part of a key: letters and digits of ASCII.
fn plain_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(config: Value, given: &[(&str, &str)]) -> Vec<(String, OwnedValue)> {
        let mut files = TokenizerFiles::new();
        given.iter().for_each(|(path, text)| files.insert(path, text.as_bytes().to_vec()).unwrap());
        entries(&files, &config).unwrap()
    }

    fn entry(key: &str, value: impl Into<OwnedValue>) -> (String, OwnedValue) {
        (key.to_owned(), value.into())
    }

    #[test]
    fn the_config_comes_before_files() {
        let jinja = ("chat_template.jinja", "J");
        let json = ("chat_template.json", r#"{"chat_template": "O"}"#);
        assert_eq!(found(json!({"chat_template": "C"}), &[jinja, json]), [entry(KEY, "C")]);
        assert_eq!(found(Value::Null, &[jinja, json]), [entry(KEY, "J")]);
        assert_eq!(found(Value::Null, &[json]), [entry(KEY, "O")]);
        assert_eq!(found(Value::Null, &[]), []);
    }

    #[test]
    fn templates_have_names() {
        let list = json!([
            {"name": "default", "template": "D"}, {"name": "tool-use", "template": "T"}, {"name": "default", "template": "E"},
            {"name": 3}
        ]);
        let files =
            [("additional_chat_templates/rag.jinja", "R"), ("additional_chat_templates/tool_use.jinja", "X")];
        assert_eq!(
            found(json!({"chat_template": list}), &files),
            [
                entry(KEY, "D"),
                entry("tokenizer.chat_template.tool_use", "T"),
                entry("tokenizer.chat_template.rag", "R"),
                entry(NAMES_KEY, vec!["tool_use", "rag"]),
            ]
        );
        assert!(!TokenizerFiles::wants("additional_chat_templates/a/b.jinja"));
    }
}
