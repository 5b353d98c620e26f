//! The `tojson` filter: JSON in the format of Python's `json.dumps`.

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::limits;

/// The arguments of `json.dumps`.
struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
    /// Maximum number of bytes.
    max: usize,
}

/// `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
///
/// Unlike Jinja's own filter it does not escape for HTML, like the filter that Hugging Face provides to chat
/// templates.
pub(super) fn tojson(
    state: &mut State<'_, '_>,
    value: &Value,
    positional: Rest<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let argument = |index: usize, name: &str| -> Result<Option<Value>, Error> {
        let given = match positional.get(index) {
            Some(value) => Some(value.clone()),
            None => kwargs.get::<Option<Value>>(name)?,
        };
        Ok(given.filter(|value| !value.is_none() && !value.is_undefined()))
    };
    let ensure_ascii = argument(0, "ensure_ascii")?.is_some_and(|value| value.is_true());
    let indent = argument(1, "indent")?.map(|value| match value.as_str() {
        Some(text) => text.chars().take(MAX_INDENT).collect(),
        None => " ".repeat(usize::try_from(value).unwrap_or(0).min(MAX_INDENT)),
    });
    let separators = argument(2, "separators")?;
    let sort_keys = argument(3, "sort_keys")?.is_some_and(|value| value.is_true());
    kwargs.assert_all_used()?;
    let (item_separator, key_separator) = match separators {
        Some(pair) => (pair.get_item_by_index(0)?.to_string(), pair.get_item_by_index(1)?.to_string()),
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
    };

    let max = limits::n_byte_left(state);
    let style = Style { ensure_ascii, indent, item_separator, key_separator, sort_keys, max };
    let mut text = String::new();
    write(&style, value, 0, &mut text)?;
    limits::count(state, text.len())?;
    Ok(Value::from_safe_string(text))
}

/// Deeper values are rejected: templates are untrusted.
const MAX_DEPTH: usize = 128;

/// Maximum width of one indentation level; it is written in every line, once per level.
const MAX_INDENT: usize = 64;

fn write(style: &Style, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::BadSerialization, "value is nested too deeply for JSON"));
    }
    // A list may contain another one many times, so its text can be far larger than itself.
    if out.len() > style.max {
        return Err(limits::too_large());
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => write_string(style, value.as_str().unwrap_or_default(), out),
        ValueKind::Seq | ValueKind::Iterable => {
            write_items(style, ['[', ']'], value.try_iter()?, depth, out, |item, out| {
                write(style, &item, depth + 1, out)
            })?;
        }
        ValueKind::Map => {
            let mut entries = Vec::new();
            for key in value.try_iter()? {
                let entry = value.get_item(&key)?;
                entries.push((key_text(&key)?, entry));
            }
            if style.sort_keys {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
            }
            write_items(style, ['{', '}'], entries.into_iter(), depth, out, |(key, entry), out| {
                write_string(style, &key, out);
                out.push_str(&style.key_separator);
                write(style, &entry, depth + 1, out)
            })?;
        }
        other => {
            let text = format!("{other} is not JSON serializable");
            return Err(Error::new(ErrorKind::BadSerialization, text));
        }
    }
    Ok(())
}

fn write_items<T>(
    style: &Style,
    [open, close]: [char; 2],
    items: impl Iterator<Item = T>,
    depth: usize,
    out: &mut String,
    mut write_item: impl FnMut(T, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    let new_line = |depth: usize, out: &mut String| {
        if let Some(indent) = &style.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(indent.as_str(), depth));
        }
    };
    out.push(open);
    let mut is_empty = true;
    for item in items {
        if !is_empty {
            out.push_str(&style.item_separator);
        }
        is_empty = false;
        new_line(depth + 1, out);
        write_item(item, out)?;
    }
    if !is_empty {
        new_line(depth, out);
    }
    out.push(close);
    Ok(())
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::Number => Ok(number(key)),
        other => {
            Err(Error::new(ErrorKind::BadSerialization, format!("{other} cannot be a key of a JSON object")))
        }
    }
}

fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    match f64::try_from(value.clone()) {
        Ok(x) if x.is_nan() => "NaN".to_owned(),
        Ok(x) if x.is_infinite() => if x > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        Ok(x) => python_float(x),
        Err(_) => value.to_string(),
    }
}

/// The shortest decimal number that parses to `x`, in the format of Python's `repr`.
fn python_float(x: f64) -> String {
    let scientific = format!("{x:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("`e` is in every such number");
    let exponent: i32 = exponent.parse().expect("exponents are integers");
    if (-4..16).contains(&exponent) {
        let plain = format!("{x}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn write_string(style: &Style, text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || (style.ensure_ascii && c as u32 > 0x7e) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str, json: &str) -> String {
        let mut env = minijinja::Environment::new();
        env.add_filter("tojson", tojson);
        let x: serde_json::Value = serde_json::from_str(json).unwrap();
        env.render_str(template, minijinja::context! { x => minijinja::value::Serde(x) }).unwrap()
    }

    #[test]
    fn writes_what_python_writes() {
        let json = r#"{"b": [1, 2.0, 1e-7, 1e16, -0.5], "a": {"x": null, "y": true}, "e": [], "m": {}, "s": "<é'\"\n\u0001\\>"}"#;
        let plain = r#"{"b": [1, 2.0, 1e-07, 1e+16, -0.5], "a": {"x": null, "y": true}, "e": [], "m": {}, "s": "<é'\"\n\u0001\\>"}"#;
        assert_eq!(render("{{ x | tojson }}", json), plain);
        assert_eq!(render("{{ x | tojson(separators=(',', ':')) }}", r#"{"a": [1, 2]}"#), r#"{"a":[1,2]}"#);
        assert_eq!(render("{{ x | tojson(ensure_ascii=true) }}", r#""é😀""#), r#""\u00e9\ud83d\ude00""#);
        assert_eq!(render("{{ x | tojson(sort_keys=true) }}", r#"{"b": 1, "a": 2}"#), r#"{"a": 2, "b": 1}"#);
        assert_eq!(
            render("{{ x | tojson(indent=2) }}", r#"{"a": [1, {}], "b": []}"#),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}"
        );
    }

    #[test]
    fn floats_look_like_python_floats() {
        for (x, expected) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (-0.1, "-0.1"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e300, "1.5e+300"),
            (9007199254740993.0, "9007199254740992.0"),
            (1e16, "1e+16"),
        ] {
            assert_eq!(python_float(x), expected);
        }
    }

    #[test]
    fn undefined_is_an_error() {
        let mut env = minijinja::Environment::new();
        env.add_filter("tojson", tojson);
        assert!(env.render_str("{{ nothing | tojson }}", ()).is_err());
    }
}
