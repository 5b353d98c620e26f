//! Python's formats: `'%5.1f' % x` and `'{:>5}'.format(x)`.

use std::sync::Arc;

use super::args::Args;
use super::fault::{Result, fail};
use super::format_spec::{Spec, spec_of};
use super::run::Run;
use super::value::{Text, TextBuilder, Value};

impl Run<'_> {
    /// `format % values`.
    pub(super) fn format_percent(&mut self, format: &Text, values: &Value) -> Result<Value> {
        let mut out = self.text()?;
        let mut at = 0;
        let next = |at: &mut usize| -> Result<Value> {
            let value = match values {
                Value::Tuple(items) => items.get(*at).cloned(),
                _ => (*at == 0).then(|| values.clone()),
            };
            *at += 1;
            value.map_or_else(|| fail("not enough arguments for format string"), Ok)
        };
        let mut rest: &str = format;
        while let Some((before, field)) = rest.split_once('%') {
            self.meter.step(1)?;
            out.push_part(format, before)?;
            let mut field = field;
            let mut named = None;
            if let Some(inner) = field.strip_prefix('(') {
                let Some((name, behind)) = inner.split_once(')') else {
                    return fail("incomplete format key");
                };
                let Value::Dict(dict) = values else { return fail("format requires a mapping") };
                named = match dict.named(&self.meter, name)? {
                    Some(value) => Some(value.clone()),
                    None => return fail(format!("no key '{}'", name.chars().take(40).collect::<String>())),
                };
                field = behind;
            }
            let mut number = || match next(&mut at)?.as_int() {
                Some(n) => Ok(n),
                None => fail("* wants int"),
            };
            let (spec, behind) = percent_spec(field, &mut number)?;
            rest = behind;
            if spec.kind == '%' {
                out.push("%")?;
                continue;
            }
            let value = match named {
                Some(value) => value,
                None => next(&mut at)?,
            };
            self.percent_field(&spec, &value, &mut out)?;
        }
        out.push_part(format, rest)?;
        let n_left = match values {
            Value::Tuple(items) => items.len().saturating_sub(at),
            Value::Dict(_) => 0,
            _ => usize::from(at == 0),
        };
        if n_left > 0 {
            return fail("not all arguments converted during string formatting");
        }
        Ok(out.finish())
    }

    fn percent_field(&self, spec: &Spec, value: &Value, out: &mut TextBuilder) -> Result<()> {
        match spec.kind {
            's' | 'r' | 'a' => {
                let text = if spec.kind == 's' { self.str(value)? } else { self.repr(value)? };
                let Value::Str(text) = &text else { return Ok(()) };
                spec.write_text(text, '>', out)
            }
            'c' => match value {
                Value::Str(text) if text.chars().nth(1).is_none() && !text.is_empty() => {
                    spec.write_text(text, '>', out)
                }
                _ => match value.as_int().and_then(|n| u32::try_from(n).ok()).and_then(char::from_u32) {
                    Some(c) => spec.write_str(c.encode_utf8(&mut [0; 4]), '>', out),
                    None => fail("%c requires an integer or a character"),
                },
            },
            'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
                let n = match value {
                    Value::Float(x) if x.abs() < 1e38 && matches!(spec.kind, 'd' | 'i' | 'u') => {
                        Some(*x as i128)
                    }
                    _ => value.as_int(),
                };
                match n {
                    Some(n) => spec.write_int(n, out),
                    None => fail(format!(
                        "%{} format: a number is required, not {}",
                        spec.kind,
                        value.type_name()
                    )),
                }
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => match value.as_float() {
                Some(x) => spec.write_float(x, out),
                None => fail(format!("must be real number, not {}", value.type_name())),
            },
            other => fail(format!("unsupported format character '{other}'")),
        }
    }

    /// `text.format(...)`.
    pub(super) fn format_braces(&mut self, format: &Text, args: &Args) -> Result<Value> {
        let mut out = self.text()?;
        let mut auto = Numbering::default();
        self.braces(format, format, args, &mut auto, 0, &mut out)?;
        Ok(out.finish())
    }

    /// The format `part`, a slice of `of`.
    fn braces(
        &mut self,
        part: &str,
        of: &Text,
        args: &Args,
        auto: &mut Numbering,
        depth: u32,
        out: &mut TextBuilder,
    ) -> Result<()> {
        if depth > 2 {
            return fail("max string recursion exceeded");
        }
        let mut rest = part;
        while let Some(at) = rest.find(['{', '}']) {
            self.meter.step(1)?;
            out.push_part(of, &rest[..at])?;
            let brace = &rest[at..at + 1];
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix(brace) {
                out.push_part(of, brace)?;
                rest = behind;
                continue;
            }
            if brace == "}" {
                return fail("single '}' encountered in format string");
            }
            let end = closing(rest)?;
            let field = &rest[..end];
            rest = &rest[end + 1..];
            self.brace_field(field, of, args, auto, depth, out)?;
        }
        out.push_part(of, rest)
    }

    fn brace_field(
        &mut self,
        field: &str,
        of: &Text,
        args: &Args,
        auto: &mut Numbering,
        depth: u32,
        out: &mut TextBuilder,
    ) -> Result<()> {
        // A colon within a subscript is part of the name.
        let from = field.find('[').and_then(|open| field[open..].find(']').map(|close| open + close));
        let name_end = match field.find(['!', ':', '[']) {
            Some(at) if field[at..].starts_with('[') => {
                let from = from.unwrap_or(at);
                field[from..].find(['!', ':']).map_or(field.len(), |at| from + at)
            }
            Some(at) => at,
            None => field.len(),
        };
        let (name, rest) = field.split_at(name_end);
        let value = self.field_value(name, args, auto)?;
        let (conversion, spec) = match rest.strip_prefix('!') {
            Some(rest) => match rest.split_once(':') {
                Some((conversion, spec)) => (conversion, spec),
                None => (rest, ""),
            },
            None => ("", rest.strip_prefix(':').unwrap_or("")),
        };
        let value = match conversion {
            "" => value,
            "s" => self.str(&value)?,
            "r" | "a" => self.repr(&value)?,
            _ => return fail("unknown conversion specifier"),
        };
        let mut spec_text = self.text()?;
        self.braces(spec, of, args, auto, depth + 1, &mut spec_text)?;
        self.formatted(&value, spec_text.as_str(), out)
    }

    fn field_value(&self, name: &str, args: &Args, auto: &mut Numbering) -> Result<Value> {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut rest) = name.split_at(end);
        let index = match first {
            "" => Some(auto.next()?),
            _ => first.parse::<usize>().ok(),
        };
        if index.is_some() && !first.is_empty() {
            auto.manual()?;
        }
        self.meter.read((16 + first.len()) * args.named.len())?;
        let mut value = match index {
            Some(index) => args.positional.get(index).cloned(),
            None => args.named.iter().find(|(found, _)| **found == *first).map(|(_, value)| value.clone()),
        };
        while let Some(found) = &value
            && !rest.is_empty()
        {
            self.meter.step(1)?;
            if let Some(inner) = rest.strip_prefix('[') {
                let Some((key, behind)) = inner.split_once(']') else {
                    return fail("expected '}' before end of string");
                };
                let key = match key.parse::<u32>() {
                    Ok(n) => Value::Int(n.into()),
                    Err(_) => Value::text(&self.meter, key)?,
                };
                value = Some(self.item(found, &key)?);
                rest = behind;
            } else {
                let inner = rest.strip_prefix('.').unwrap_or(rest);
                let end = inner.find(['.', '[']).unwrap_or(inner.len());
                let attr: Arc<str> = inner[..end].into();
                value = Some(self.attr(found, &attr)?);
                rest = &inner[end..];
            }
        }
        value.map_or_else(|| fail("replacement index or key out of range for args"), Ok)
    }

    /// Python's `format(value, spec)`.
    fn formatted(&self, value: &Value, spec: &str, out: &mut TextBuilder) -> Result<()> {
        if spec.is_empty() {
            return self.write_str(value, out);
        }
        let spec = spec_of(spec)?;
        match (value, spec.kind) {
            (Value::Str(text), ' ' | 's') => spec.write_text(text, '<', out),
            (Value::Float(x), _) => spec.write_float(*x, out),
            (Value::Int(_) | Value::Bool(_), 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') => {
                spec.write_float(value.as_float().unwrap_or_default(), out)
            }
            (Value::Bool(_), ' ' | 's') if spec.width.is_none() => self.write_str(value, out),
            (Value::Int(_) | Value::Bool(_), _) => spec.write_int(value.as_int().unwrap_or_default(), out),
            _ => fail(format!("unsupported format string passed to {}", value.type_name())),
        }
    }
}

/// Fields are numbered all by hand or all by order.
#[derive(Default)]
struct Numbering {
    n_auto: usize,
    is_manual: bool,
}

impl Numbering {
    fn next(&mut self) -> Result<usize> {
        if self.is_manual {
            return fail("cannot switch from manual field specification to automatic field numbering");
        }
        self.n_auto += 1;
        Ok(self.n_auto - 1)
    }

    fn manual(&mut self) -> Result<()> {
        self.is_manual = true;
        if self.n_auto > 0 {
            return fail("cannot switch from automatic field numbering to manual field specification");
        }
        Ok(())
    }
}

/// The position of the brace that closes a field.
fn closing(text: &str) -> Result<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Ok(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    fail("expected '}' before end of string")
}

/// A conversion behind its `%`, with what follows.
fn percent_spec<'t>(text: &'t str, number: &mut impl FnMut() -> Result<i128>) -> Result<(Spec, &'t str)> {
    let mut spec = Spec::default();
    let mut rest = text;
    while let Some(flag) = rest.chars().next() {
        match flag {
            '-' => spec.align = Some('<'),
            '+' => spec.sign = '+',
            ' ' if spec.sign != '+' => spec.sign = ' ',
            ' ' => {}
            '#' => spec.is_alternate = true,
            '0' => spec.is_zero_padded = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    let mut amount = |rest: &mut &'t str| -> Result<Option<i128>> {
        if let Some(behind) = rest.strip_prefix('*') {
            *rest = behind;
            return number().map(Some);
        }
        let n = rest.bytes().take_while(u8::is_ascii_digit).count();
        let digits = &rest[..n];
        *rest = &rest[n..];
        if digits.is_empty() {
            return Ok(None);
        }
        digits.parse().map(Some).or_else(|_| fail("width too big"))
    };
    if let Some(width) = amount(&mut rest)? {
        if width < 0 {
            spec.align = Some('<');
        }
        spec.width = Some(width.unsigned_abs().min(1 << 40) as usize);
    }
    if let Some(behind) = rest.strip_prefix('.') {
        rest = behind;
        let precision = amount(&mut rest)?.unwrap_or(0).clamp(0, 1 << 40);
        spec.precision = Some(precision as usize);
    }
    rest = rest.trim_start_matches(['h', 'l', 'L']);
    match rest.chars().next() {
        Some(kind) => {
            spec.kind = kind;
            // A minus wins over zeros.
            spec.is_zero_padded &= spec.align.is_none();
            Ok((spec, &rest[kind.len_utf8()..]))
        }
        None => fail("incomplete format"),
    }
}
