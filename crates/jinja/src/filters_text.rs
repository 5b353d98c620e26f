//! Filters on texts. Other values are printed first.

use super::args::{Args, as_bool, as_int, count, given};
use super::fault::{Result, fail};
use super::platform;
use super::run::Run;
use super::split::is_space;
#[cfg(feature = "rare-filters")]
use super::split::is_word;
use super::text_methods::{self, change_case};
use super::value::{Text, TextBuilder, Value};
use std::sync::Arc;

impl Run<'_> {
    /// The text of a value.
    pub(super) fn text_of(&self, value: &Value) -> Result<Arc<Text>> {
        match self.str(value)? {
            Value::Str(text) => {
                self.meter.read(text.len())?;
                Ok(text)
            }
            _ => fail("a value has no text"),
        }
    }
}

pub(super) fn string(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("string", [], 0)?;
    run.str(&value)
}

#[cfg(feature = "rare-filters")]
pub(super) fn pprint(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("pprint", [], 0)?;
    run.repr(&value)
}

pub(super) fn upper(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("upper", [], 0)?;
    change_case(run, &*run.text_of(&value)?, "upper")
}

pub(super) fn lower(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("lower", [], 0)?;
    change_case(run, &*run.text_of(&value)?, "lower")
}

pub(super) fn capitalize(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("capitalize", [], 0)?;
    change_case(run, &*run.text_of(&value)?, "capitalize")
}

/// Words begin behind white space, hyphens and opening brackets.
pub(super) fn title(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("title", [], 0)?;
    let text = run.text_of(&value)?;
    let mut out = run.text()?;
    let mut is_start = true;
    for c in text.chars() {
        let is_separator = is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<');
        match is_start && !is_separator {
            true => out.push(&platform::upper_char(c))?,
            false => out.push(&platform::lower_char(c))?,
        }
        is_start = is_separator;
    }
    out.mark_since(0, &text)?;
    Ok(out.finish())
}

pub(super) fn trim(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [chars] = args.bind("trim", ["chars"], 0)?;
    let text = run.text_of(&value)?;
    text_methods::call(run, &text, "strip", Args::of(given(chars).into_iter().collect()))
}

#[cfg(feature = "rare-filters")]
pub(super) fn center(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [width] = args.bind("center", ["width"], 0)?;
    let text = run.text_of(&value)?;
    text_methods::call(run, &text, "center", Args::of(vec![width.unwrap_or(Value::Int(80))]))
}

pub(super) fn replace(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [old, new, n] = args.bind("replace", ["old", "new", "count"], 2)?;
    let text = run.text_of(&value)?;
    let old = run.text_of(&old.unwrap_or(Value::None))?;
    let new = run.text_of(&new.unwrap_or(Value::None))?;
    text_methods::replace(run, &text, &old, &new, as_int(given(n).as_ref(), -1)?)
}

pub(super) fn format(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    if !args.positional.is_empty() && !args.named.is_empty() {
        return fail("can't handle positional and keyword arguments at the same time");
    }
    let format = run.text_of(&value)?;
    let values = match args.named.is_empty() {
        true => Value::tuple(&run.meter, args.positional)?,
        false => {
            let mut dict = super::value::DictBuilder::new(&run.meter)?;
            for (name, value) in args.named {
                dict.insert(Value::constant(&name), value)?;
            }
            dict.finish()?
        }
    };
    run.format_percent(&format, &values)
}

/// `indent(width=4, first=false, blank=false)`.
pub(super) fn indent(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [width, first, blank] = args.bind("indent", ["width", "first", "blank"], 0)?;
    let text = run.text_of(&value)?;
    let indentation = match width {
        Some(Value::Str(text)) => text,
        width => {
            let mut spaces = run.text()?;
            spaces.push_n(' ', count(width.as_ref(), 4)?)?;
            run.text_of(&spaces.finish())?
        }
    };
    let (first, blank) = (as_bool(first.as_ref(), false), as_bool(blank.as_ref(), false));
    let mut out = run.text()?;
    // An ending line break counts as the start of a line when blank lines are indented, too.
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push("\n")?;
        }
        let is_indented = if i == 0 { first } else { blank || !line.is_empty() };
        if is_indented {
            out.push_text(&indentation)?;
        }
        out.push_part(&text, line)?;
    }
    Ok(out.finish())
}

/// `truncate(length=255, killwords=false, end='...', leeway=5)`.
#[cfg(feature = "rare-filters")]
pub(super) fn truncate(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [length, killwords, end, leeway] =
        args.bind("truncate", ["length", "killwords", "end", "leeway"], 0)?;
    let text = run.text_of(&value)?;
    let end = run.text_of(&end.unwrap_or_else(|| Value::constant("...")))?;
    let (length, leeway) = (count(length.as_ref(), 255)?, count(given(leeway).as_ref(), 5)?);
    let n_end = end.chars().count();
    if length < n_end {
        return fail(format!("expected length >= {n_end}, got {length}"));
    }
    if text.chars().count() <= length + leeway {
        return Ok(Value::Str(text));
    }
    let cut = text.char_indices().nth(length - n_end).map_or(text.len(), |(at, _)| at);
    let kept = &text[..cut];
    let kept = match as_bool(killwords.as_ref(), false) {
        true => kept,
        false => kept.rsplit_once(' ').map_or(kept, |(before, _)| before),
    };
    let mut out = run.text()?;
    out.push_part(&text, kept)?;
    out.push_text(&end)?;
    Ok(out.finish())
}

#[cfg(feature = "rare-filters")]
pub(super) fn wordcount(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("wordcount", [], 0)?;
    let text = run.text_of(&value)?;
    run.meter.read_closely(&text)?;
    Ok(Value::Int(text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).count() as i128))
}

pub(super) fn escape(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("escape", [], 0)?;
    let text = run.text_of(&value)?;
    let mut out = run.text()?;
    escape_into(&text, &mut out)?;
    Ok(out.finish())
}

pub(super) fn escape_into(text: &Text, out: &mut TextBuilder) -> Result<()> {
    let start = out.len();
    text.chars().try_for_each(|c| match c {
        '&' => out.push("&amp;"),
        '<' => out.push("&lt;"),
        '>' => out.push("&gt;"),
        '"' => out.push("&#34;"),
        '\'' => out.push("&#39;"),
        c => out.push_char(c),
    })?;
    out.mark_since(start, text)
}
