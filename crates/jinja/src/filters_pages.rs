//! Filters for pages and addresses, and sizes of files.

use super::args::{Args, as_bool};
use super::fault::{Result, fail};
use super::filters_number::parse_float;
use super::filters_text::escape_into;
use super::run::Run;
use super::split::is_space;
use super::value::{Seq, TextBuilder, Value};
use std::sync::Arc;

/// `xmlattr(autospace=true)`: the entries of a dictionary as attributes of a tag.
pub(super) fn xmlattr(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [space] = args.bind("xmlattr", ["autospace"], 0)?;
    let Value::Dict(dict) = &value else { return fail("xmlattr requires a dictionary") };
    run.meter.step(dict.len() as u64)?;
    let mut out = run.text()?;
    for (key, value) in dict.iter().filter(|(_, value)| !matches!(value, Value::None | Value::Undefined(_))) {
        let key = run.text_of(key)?;
        if key.chars().any(|c| is_space(c) || matches!(c, '/' | '>' | '=')) {
            return fail("invalid character in attribute name");
        }
        if !out.as_str().is_empty() || as_bool(space.as_ref(), true) {
            out.push(" ")?;
        }
        escape_into(&key, &mut out)?;
        out.push("=\"")?;
        escape_into(&*run.text_of(value)?, &mut out)?;
        out.push("\"")?;
    }
    Ok(out.finish())
}

/// Removes comments and tags, and joins what is left by single spaces.
pub(super) fn striptags(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("striptags", [], 0)?;
    let text = run.text_of(&value)?;
    let _scratch = run.meter.charge(2 * text.len())?;
    let mut plain = text.to_string();
    for (open, close) in [("<!--", "-->"), ("<", ">")] {
        let mut out = String::with_capacity(plain.len());
        let mut rest = plain.as_str();
        while let Some((before, tag)) = rest.split_once(open) {
            let Some((_, behind)) = tag.split_once(close) else { break };
            out.push_str(before);
            rest = behind;
        }
        out.push_str(rest);
        plain = out;
    }
    let mut out = run.text()?;
    for word in plain.split(is_space).filter(|word| !word.is_empty()) {
        if !out.as_str().is_empty() {
            out.push(" ")?;
        }
        out.push(word)?;
    }
    if let Some(plain) = unescape(out.as_str()) {
        out = run.text()?;
        out.push(&plain)?;
    }
    out.mark_since(0, &text)?;
    Ok(out.finish())
}

/// The five common entities as characters; `None` if there are none.
fn unescape(text: &str) -> Option<String> {
    const ENTITIES: [(&str, &str); 7] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", "\u{a0}"),
        ("&amp;", "&"),
    ];
    text.contains('&')
        .then(|| ENTITIES.iter().fold(text.to_owned(), |text, (entity, c)| text.replace(entity, c)))
}

/// `filesizeformat(binary=false)`.
pub(super) fn filesizeformat(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [binary] = args.bind("filesizeformat", ["binary"], 0)?;
    let binary = as_bool(binary.as_ref(), false);
    let n_byte = match &value {
        Value::Str(text) => parse_float(text),
        _ => value.as_float(),
    };
    let Some(n_byte) = n_byte else { return fail("could not convert to a number") };
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if n_byte == 1.0 {
        return Value::text(&run.meter, "1 Byte");
    }
    if n_byte < base {
        return Value::text(&run.meter, format!("{} Bytes", n_byte as i64));
    }
    let mut unit = base;
    let prefixes = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
    let mut found = prefixes[7];
    for prefix in prefixes {
        unit *= base;
        found = prefix;
        if n_byte < unit {
            break;
        }
    }
    let suffix = if binary { "iB" } else { "B" };
    let prefix = if binary { found.to_ascii_uppercase() } else { found.to_owned() };
    Value::text(&run.meter, format!("{:.1} {prefix}{suffix}", base * n_byte / unit))
}

/// Percent-encodes a text, or the entries of a dictionary or list of pairs as a query.
pub(super) fn urlencode(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("urlencode", [], 0)?;
    let is_plain = matches!(value, Value::Str(_)) || value.as_float().is_some() || value.len().is_none();
    let mut out = run.text()?;
    if is_plain {
        quote(run, &value, true, &mut out)?;
        return Ok(out.finish());
    }
    let pairs = match &value {
        Value::Dict(_) => items(run, &value)?,
        _ => run.iterate(&value)?,
    };
    for (i, pair) in pairs.iter().enumerate() {
        let pair = run.iterate(pair)?;
        let [key, value] = &**pair else { return fail("expected pairs of keys and values") };
        if i > 0 {
            out.push("&")?;
        }
        quote(run, key, false, &mut out)?;
        out.push("=")?;
        quote(run, value, false, &mut out)?;
    }
    Ok(out.finish())
}

fn items(run: &mut Run<'_>, dict: &Value) -> Result<Arc<Seq>> {
    let view = super::methods::call(run, dict, "items", Args::default())?;
    run.iterate(&view)
}

fn quote(run: &Run<'_>, value: &Value, keep_slash: bool, out: &mut TextBuilder) -> Result<()> {
    let text = run.text_of(value)?;
    run.meter.read_closely(&text)?;
    let start = out.len();
    text.bytes().try_for_each(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push_char(byte.into()),
        b'/' if keep_slash => out.push("/"),
        b' ' if !keep_slash => out.push("+"),
        _ => out.push(&format!("%{byte:02X}")),
    })?;
    out.mark_since(start, &text)
}
