//! The methods of Python's texts.

use super::args::{self, Args, as_bool, as_int, as_text, given};
use super::fault::{Result, fail};
use super::globals::int_or_none;
use super::platform;
use super::print::is_printable;
use super::run::Run;
use super::split::{self, is_space};
use super::value::{Text, TextBuilder, Value};

pub(super) const NAMES: [&str; 44] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
    "encode",
];

pub(super) fn call(run: &mut Run<'_>, text: &Text, name: &str, args: Args) -> Result<Value> {
    run.meter.read(text.len())?;
    match name {
        "capitalize" | "casefold" | "lower" | "swapcase" | "title" | "upper" => {
            let [] = args.bind(name, [], 0)?;
            change_case(run, text, name)
        }
        "count" | "find" | "index" | "rfind" | "rindex" => find(run, text, name, args),
        "startswith" | "endswith" => starts_or_ends(run, text, name, args),
        "strip" | "lstrip" | "rstrip" => strip(run, text, name, args),
        "center" | "ljust" | "rjust" => justify(run, text, name, args),
        "zfill" => {
            let [width] = args.bind(name, ["width"], 1)?;
            let n = text.chars().count() as i128;
            let missing = (as_int(width.as_ref(), 0)? - n).clamp(0, 1 << 40) as usize;
            let sign = text.len() - text.strip_prefix(['+', '-']).unwrap_or(text).len();
            let mut out = run.text()?;
            out.push_part(text, &text[..sign])?;
            out.push_n('0', missing)?;
            out.push_part(text, &text[sign..])?;
            Ok(out.finish())
        }
        "expandtabs" => {
            let [size] = args.bind(name, ["tabsize"], 0)?;
            expand_tabs(run, text, as_int(size.as_ref(), 8)?.clamp(0, 1 << 40) as usize)
        }
        "replace" => {
            let [old, new, count] = args.bind(name, ["old", "new", "count"], 2)?;
            let count = as_int(count.as_ref(), -1)?;
            replace(run, text, &args::text(old)?, &*args::text(new)?, count)
        }
        "removeprefix" | "removesuffix" => {
            let [part] = args.bind(name, ["part"], 1)?;
            let part = as_text(part.as_ref(), "")?;
            let rest = if name == "removeprefix" { text.strip_prefix(part) } else { text.strip_suffix(part) };
            Value::part(&run.meter, text, rest.unwrap_or(text))
        }
        "join" => {
            let [items] = args.bind(name, ["iterable"], 1)?;
            join(run, text, &items.unwrap_or(Value::None))
        }
        "partition" | "rpartition" => {
            let [separator] = args.bind(name, ["sep"], 1)?;
            split::partition(run, text, &*args::text(separator)?, name == "rpartition")
        }
        "split" | "rsplit" => {
            let [separator, max] = args.bind(name, ["sep", "maxsplit"], 0)?;
            let (separator, max) = (given(separator), as_int(max.as_ref(), -1)?);
            let separator = separator.as_ref().map(|value| as_text(Some(value), "")).transpose()?;
            split::split(run, text, separator, max, name == "rsplit")
        }
        "splitlines" => {
            let [keep] = args.bind(name, ["keepends"], 0)?;
            split::split_lines(run, text, as_bool(keep.as_ref(), false))
        }
        "format" => run.format_braces(text, &args),
        "encode" => fail("texts cannot be encoded in templates"),
        _ => {
            let [] = args.bind(name, [], 0)?;
            run.meter.read_closely(text)?;
            Ok(Value::Bool(is(text, name)))
        }
    }
}

fn is(text: &str, name: &str) -> bool {
    let all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    let cased = |c: char| c.is_uppercase() || c.is_lowercase();
    match name {
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(char::is_alphabetic),
        "isascii" => text.is_ascii(),
        "isdecimal" => all(|c| c.is_numeric() && (c.is_ascii_digit() || !is_other_digit(c))),
        "isdigit" => all(|c| c.is_numeric() && !('¼'..='¾').contains(&c)),
        "isnumeric" => all(char::is_numeric),
        "isidentifier" => {
            let first = text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
            first && text.chars().all(|c| c.is_alphanumeric() || c == '_')
        }
        "islower" => text.chars().any(cased) && !text.chars().any(char::is_uppercase),
        "isupper" => text.chars().any(cased) && !text.chars().any(char::is_lowercase),
        "isprintable" => text.chars().all(is_printable),
        "isspace" => all(is_space),
        "istitle" => {
            let mut after_cased = false;
            let words_are_titles = text.chars().all(|c| {
                let fits = if c.is_uppercase() { !after_cased } else { !c.is_lowercase() || after_cased };
                after_cased = cased(c);
                fits
            });
            words_are_titles && text.chars().any(cased)
        }
        _ => false,
    }
}

/// Digits that are no decimal digits: superscripts and fractions.
fn is_other_digit(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '¼'..='¾' | '\u{2070}'..='\u{218b}' | '\u{2460}'..='\u{24ff}')
}

pub(super) fn change_case(run: &Run<'_>, text: &Text, name: &str) -> Result<Value> {
    // Some characters have three others as their upper case.
    let _scratch = run.meter.charge(3 * text.len())?;
    let mut out = run.text()?;
    if matches!(name, "lower" | "upper") {
        out.push(&if name == "lower" { platform::lower(text) } else { platform::upper(text) })?;
        out.mark_since(0, text)?;
        return Ok(out.finish());
    }
    let mut after_cased = false;
    for (i, c) in text.chars().enumerate() {
        let is_cased = c.is_uppercase() || c.is_lowercase();
        let to_upper = match name {
            "capitalize" => i == 0,
            "title" => !after_cased,
            "swapcase" => c.is_lowercase(),
            _ => false,
        };
        let upper = platform::upper_char(c);
        match (to_upper, name) {
            (true, "swapcase") => out.push(&upper)?,
            // Title case: of `ﬁ` it is `Fi`.
            (true, _) => {
                for (i, c) in upper.chars().enumerate() {
                    if i == 0 { out.push_char(c)? } else { push_lower(c, &mut out)? }
                }
            }
            // Folding goes by the upper case where that has more letters: `ß` is `ss`.
            (false, "casefold") if upper.chars().count() > 1 => {
                upper.chars().try_for_each(|c| push_lower(c, &mut out))?
            }
            _ => push_lower(c, &mut out)?,
        }
        after_cased = is_cased;
    }
    out.mark_since(0, text)?;
    Ok(out.finish())
}

fn push_lower(c: char, out: &mut TextBuilder) -> Result<()> {
    out.push(&platform::lower_char(c))
}

/// The bytes of `text` between two character positions, and the position of the first.
fn range_of(text: &str, start: Option<i128>, end: Option<i128>) -> Option<(&str, usize)> {
    if start.is_none() && end.is_none() {
        return Some((text, 0));
    }
    let n = text.chars().count() as i128;
    let bound = |at: i128| if at < 0 { (at + n).max(0) } else { at };
    let (start, end) = (bound(start.unwrap_or(0)), bound(end.unwrap_or(n)).min(n));
    if start > end {
        return None;
    }
    let byte = |at: i128| text.char_indices().nth(at as usize).map_or(text.len(), |(byte, _)| byte);
    Some((&text[byte(start)..byte(end)], start as usize))
}

fn find(run: &Run<'_>, text: &str, name: &str, args: Args) -> Result<Value> {
    let [part, start, end] = args.bind(name, ["sub", "start", "end"], 1)?;
    let part = as_text(part.as_ref(), "")?;
    let range = range_of(text, int_or_none(start)?, int_or_none(end)?);
    if name == "count" {
        let n = range.map_or(0, |(text, _)| text.matches(part).count());
        run.meter.step((n / 4) as u64)?;
        return Ok(Value::Int(n as i128));
    }
    let found = range.and_then(|(text, first)| {
        let at = if name.starts_with('r') { text.rfind(part) } else { text.find(part) };
        at.map(|at| first + text[..at].chars().count())
    });
    run.meter.read(part.len())?;
    match found {
        Some(at) => Ok(Value::Int(at as i128)),
        None if name.ends_with("index") => fail("substring not found"),
        None => Ok(Value::Int(-1)),
    }
}

fn starts_or_ends(run: &Run<'_>, text: &str, name: &str, args: Args) -> Result<Value> {
    let [part, start, end] = args.bind(name, ["prefix", "start", "end"], 1)?;
    let Some((text, _)) = range_of(text, int_or_none(start)?, int_or_none(end)?) else {
        return Ok(Value::Bool(false));
    };
    let fits = |part: &str| if name == "startswith" { text.starts_with(part) } else { text.ends_with(part) };
    match &part {
        Some(Value::Tuple(parts)) => {
            for part in parts.iter() {
                run.meter.step(1)?;
                part.read(&run.meter)?;
                if fits(as_text(Some(part), "")?) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        Some(Value::Str(part)) => Ok(Value::Bool(fits(part))),
        _ => fail(format!("{name} first arg must be str or a tuple of str")),
    }
}

fn strip(run: &Run<'_>, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [chars] = args.bind(name, ["chars"], 0)?;
    let chars = given(chars);
    let set: Option<Vec<char>> = match &chars {
        Some(value) => Some(as_text(Some(value), "")?.chars().take(1 << 10).collect()),
        None => None,
    };
    let is_in = |c: char| match &set {
        Some(set) => set.contains(&c),
        None => is_space(c),
    };
    run.meter.step((text.len() * set.as_ref().map_or(1, Vec::len) / 256) as u64)?;
    let stripped = match name {
        "strip" => text.trim_matches(is_in),
        "lstrip" => text.trim_start_matches(is_in),
        _ => text.trim_end_matches(is_in),
    };
    Value::part(&run.meter, text, stripped)
}

fn justify(run: &Run<'_>, text: &Text, name: &str, args: Args) -> Result<Value> {
    let [width, fill] = args.bind(name, ["width", "fillchar"], 1)?;
    let mut fill = as_text(fill.as_ref(), " ")?.chars();
    let (Some(fill), None) = (fill.next(), fill.next()) else {
        return fail("the fill character must be exactly one character long");
    };
    let width = as_int(width.as_ref(), 0)?;
    let missing = (width - text.chars().count() as i128).clamp(0, 1 << 40) as usize;
    let left = match name {
        "ljust" => 0,
        "rjust" => missing,
        // As CPython rounds.
        _ => missing / 2 + (missing & width as usize & 1),
    };
    let mut out = run.text()?;
    out.push_n(fill, left)?;
    out.push_text(text)?;
    out.push_n(fill, missing - left)?;
    Ok(out.finish())
}

fn expand_tabs(run: &Run<'_>, text: &Text, size: usize) -> Result<Value> {
    let mut out = run.text()?;
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size > 0 => {
                let n = size - column % size;
                out.push_n(' ', n)?;
                column += n;
            }
            '\t' => {}
            _ => {
                out.push_char(c)?;
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
    }
    out.mark_since(0, text)?;
    Ok(out.finish())
}

/// Replaces up to `count` places, all if it is negative.
pub(super) fn replace(run: &Run<'_>, text: &Text, old: &str, new: &Text, count: i128) -> Result<Value> {
    let max = usize::try_from(count).unwrap_or(usize::MAX);
    let mut out = run.text()?;
    let mut at = 0;
    for (found, _) in text.match_indices(old).take(max) {
        run.meter.step(1)?;
        out.push_part(text, &text[at..found])?;
        out.push_text(new)?;
        at = found + old.len();
    }
    out.push_part(text, &text[at..])?;
    Ok(out.finish())
}

/// `separator.join(items)`, whose items must be texts.
fn join(run: &mut Run<'_>, separator: &Text, items: &Value) -> Result<Value> {
    let items = run.iterate(items)?;
    let mut out = run.text()?;
    for (i, item) in items.iter().enumerate() {
        let Value::Str(item) = item else {
            return fail(format!("sequence item {i}: expected str instance, {} found", item.type_name()));
        };
        if i > 0 {
            out.push_text(separator)?;
        }
        out.push_text(item)?;
    }
    Ok(out.finish())
}
