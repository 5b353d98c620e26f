//! The filter `tojson`: JSON as Python's `json.dumps` writes it.

use super::args::{Args, as_bool, as_text, given};
use super::decimal;
use super::fault::{Result, fail};
use super::filters_items::merge_sort;
use super::run::Run;
use super::value::{TextBuilder, Value};

/// The arguments of `json.dumps`.
struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

/// Maximum width of one level of indentation; it is written in every line, once for each level.
const MAX_INDENT: usize = 64;

/// `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
///
/// Unlike Jinja's own filter it does not escape for HTML, as that which Hugging Face gives to chat templates.
pub(super) fn tojson(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [ascii, indent, separators, sort_keys] =
        args.bind("tojson", ["ensure_ascii", "indent", "separators", "sort_keys"], 0)?;
    let indent = given(indent).map(|value| match value.as_str() {
        Some(text) => text.chars().take(MAX_INDENT).collect(),
        None => " ".repeat(value.as_int().unwrap_or(0).clamp(0, MAX_INDENT as i128) as usize),
    });
    let _scratch;
    let (item_separator, key_separator) = match given(separators) {
        Some(pair) => {
            let pair = run.iterate(&pair)?;
            let [item, key] = &**pair else { return fail("separators are two texts") };
            let (item, key) = (as_text(Some(item), "")?, as_text(Some(key), "")?);
            _scratch = run.meter.charge(item.len() + key.len())?;
            (item.to_owned(), key.to_owned())
        }
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
    };
    let style = Style {
        ensure_ascii: as_bool(ascii.as_ref(), false),
        indent,
        item_separator,
        key_separator,
        sort_keys: as_bool(sort_keys.as_ref(), false),
    };
    let mut out = run.text()?;
    write(run, &style, &value, 0, &mut out)?;
    Ok(out.finish())
}

fn write(run: &mut Run<'_>, style: &Style, value: &Value, depth: usize, out: &mut TextBuilder) -> Result<()> {
    run.meter.step(1)?;
    match value {
        Value::None => out.push("null"),
        Value::Bool(b) => out.push(if *b { "true" } else { "false" }),
        Value::Int(n) => out.push(&n.to_string()),
        Value::Float(x) => out.push(&number(*x)),
        Value::Str(text) => {
            run.meter.read_closely(text)?;
            let start = out.len();
            write_text(style, text, out)?;
            out.mark_since(start, text)
        }
        // Python refuses views and generators; here they are lists, which is what the template's author meant.
        Value::List(_) | Value::Tuple(_) | Value::View(..) | Value::Iter(_) => {
            let items = run.iterate(value)?;
            let items = items.iter().map(|item| (None, item.clone())).collect();
            write_items(run, style, ["[", "]"], items, depth, out)
        }
        Value::Dict(dict) => {
            let _scratch = run.meter.charge(dict.len() * size_of::<(Option<Key>, Value)>())?;
            let mut entries = Vec::with_capacity(dict.len());
            for (key, value) in dict.iter() {
                entries.push((Some((key_text(key)?, key.clone())), value.clone()));
            }
            if style.sort_keys {
                merge_sort(&mut entries, &mut |(a, _), (b, _)| {
                    a.as_ref().map(|key| &key.0).cmp(&b.as_ref().map(|key| &key.0))
                });
            }
            write_items(run, style, ["{", "}"], entries, depth, out)
        }
        other => fail(format!("Object of type {} is not JSON serializable", other.type_name())),
    }
}

/// A key as text, and itself.
type Key = (String, Value);

/// Items with their keys, if they have any.
fn write_items(
    run: &mut Run<'_>,
    style: &Style,
    [open, close]: [&str; 2],
    items: Vec<(Option<Key>, Value)>,
    depth: usize,
    out: &mut TextBuilder,
) -> Result<()> {
    let new_line = |depth: usize, out: &mut TextBuilder| match &style.indent {
        Some(indent) => {
            out.push("\n")?;
            (0..depth).try_for_each(|_| out.push(indent))
        }
        None => Ok(()),
    };
    out.push(open)?;
    let is_empty = items.is_empty();
    for (i, (key, value)) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(&style.item_separator)?;
        }
        new_line(depth + 1, out)?;
        if let Some((text, key)) = key {
            run.meter.read_closely(&text)?;
            let start = out.len();
            write_text(style, &text, out)?;
            if let Value::Str(key) = &key {
                out.mark_since(start, key)?;
            }
            out.push(&style.key_separator)?;
        }
        write(run, style, &value, depth + 1, out)?;
    }
    if !is_empty {
        new_line(depth, out)?;
    }
    out.push(close)
}

fn key_text(key: &Value) -> Result<String> {
    Ok(match key {
        Value::Str(text) => text.to_string(),
        Value::None => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(x) => number(*x),
        other => {
            return fail(format!("keys must be str, int, float, bool or None, not {}", other.type_name()));
        }
    })
}

fn number(x: f64) -> String {
    if x.is_finite() {
        return decimal::float(x);
    }
    if x.is_nan() {
        "NaN"
    } else if x > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
    .to_owned()
}

fn write_text(style: &Style, text: &str, out: &mut TextBuilder) -> Result<()> {
    out.push("\"")?;
    for c in text.chars() {
        match c {
            '"' => out.push("\\\"")?,
            '\\' => out.push("\\\\")?,
            '\n' => out.push("\\n")?,
            '\r' => out.push("\\r")?,
            '\t' => out.push("\\t")?,
            '\u{8}' => out.push("\\b")?,
            '\u{c}' => out.push("\\f")?,
            c if (c as u32) < 0x20 || (style.ensure_ascii && c as u32 > 0x7e) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push(&format!("\\u{unit:04x}"))?;
                }
            }
            c => out.push_char(c)?,
        }
    }
    out.push("\"")
}
