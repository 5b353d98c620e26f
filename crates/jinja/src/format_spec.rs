//! Numbers and texts in a format: width, alignment, sign, grouping and precision.

use super::decimal;
use super::fault::{Fault, Result, fail};
use super::value::{Text, TextBuilder};

/// Maximum number of digits behind the point.
pub(super) const MAX_PRECISION: usize = 4096;

/// Digits before the point of the largest number.
const MAX_WHOLE: usize = 309;

pub(super) struct Spec {
    pub(super) fill: char,
    /// `<`, `>`, `^` or `=`.
    pub(super) align: Option<char>,
    /// `+`, `-` or a space.
    pub(super) sign: char,
    pub(super) is_alternate: bool,
    pub(super) is_zero_padded: bool,
    pub(super) width: Option<usize>,
    /// The separator of thousands.
    pub(super) grouping: Option<char>,
    pub(super) precision: Option<usize>,
    /// The letter of the type; a space if there is none.
    pub(super) kind: char,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            fill: ' ',
            align: None,
            sign: '-',
            is_alternate: false,
            is_zero_padded: false,
            width: None,
            grouping: None,
            precision: None,
            kind: ' ',
        }
    }
}

/// Parses a specification of `format`.
pub(super) fn spec_of(text: &str) -> Result<Spec> {
    let mut spec = Spec::default();
    let mut rest = text;
    let is_align = |c: char| matches!(c, '<' | '>' | '^' | '=');
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(fill), Some(align)) if is_align(align) => {
            (spec.fill, spec.align) = (fill, Some(align));
            rest = &rest[fill.len_utf8() + 1..];
        }
        (Some(align), _) if is_align(align) => {
            spec.align = Some(align);
            rest = &rest[1..];
        }
        _ => {}
    }
    if let Some(sign) = rest.chars().next().filter(|c| matches!(c, '+' | '-' | ' ')) {
        spec.sign = sign;
        rest = &rest[1..];
    }
    if let Some(behind) = rest.strip_prefix('#') {
        (spec.is_alternate, rest) = (true, behind);
    }
    if let Some(behind) = rest.strip_prefix('0') {
        (spec.is_zero_padded, rest) = (spec.align.is_none(), behind);
    }
    let amount = |rest: &mut &str| -> Result<Option<usize>> {
        let n = rest.bytes().take_while(u8::is_ascii_digit).count();
        let digits = &rest[..n];
        *rest = &rest[n..];
        match digits.parse() {
            _ if digits.is_empty() => Ok(None),
            Ok(n) => Ok(Some(n)),
            Err(_) => fail("too many decimal digits in format string"),
        }
    };
    spec.width = amount(&mut rest)?;
    if let Some(grouping) = rest.chars().next().filter(|c| matches!(c, ',' | '_')) {
        spec.grouping = Some(grouping);
        rest = &rest[1..];
    }
    if let Some(behind) = rest.strip_prefix('.') {
        rest = behind;
        spec.precision = amount(&mut rest)?;
        if spec.precision.is_none() {
            return fail("format specifier missing precision");
        }
    }
    let mut chars = rest.chars();
    spec.kind = chars.next().unwrap_or(' ');
    match chars.next() {
        None => Ok(spec),
        Some(_) => fail("invalid format specifier"),
    }
}

impl Spec {
    pub(super) fn write_text(&self, text: &Text, align: char, out: &mut TextBuilder) -> Result<()> {
        self.write(text, Some(text), align, out)
    }

    /// Text of the template or interpreter.
    pub(super) fn write_str(&self, text: &str, align: char, out: &mut TextBuilder) -> Result<()> {
        self.write(text, None, align, out)
    }

    /// A text, with the marks of `of`.
    fn write(&self, text: &str, of: Option<&Text>, align: char, out: &mut TextBuilder) -> Result<()> {
        let text = match self.precision {
            Some(n) => text.char_indices().nth(n).map_or(text, |(at, _)| &text[..at]),
            None => text,
        };
        let missing = self.width.unwrap_or(0).saturating_sub(text.chars().count());
        let fill = if self.is_zero_padded && align == '<' { '0' } else { self.fill };
        let left = match self.align.unwrap_or(align) {
            '<' => 0,
            '^' => missing / 2,
            '=' => return fail("'=' alignment not allowed in string format specifier"),
            _ => missing,
        };
        out.push_n(fill, left)?;
        match of {
            Some(of) => out.push_part(of, text)?,
            None => out.push(text)?,
        }
        out.push_n(fill, missing - left)
    }

    pub(super) fn write_int(&self, n: i128, out: &mut TextBuilder) -> Result<()> {
        let magnitude = n.unsigned_abs();
        let (prefix, mut digits, group) = match self.kind {
            ' ' | 'd' | 'i' | 'u' | 'n' => ("", magnitude.to_string(), 3),
            'x' => ("0x", format!("{magnitude:x}"), 4),
            'X' => ("0X", format!("{magnitude:X}"), 4),
            'o' => ("0o", format!("{magnitude:o}"), 4),
            'b' => ("0b", format!("{magnitude:b}"), 4),
            'c' => match u32::try_from(n).ok().and_then(char::from_u32) {
                Some(c) => return self.write_str(c.encode_utf8(&mut [0; 4]), '<', out),
                None => return fail("%c arg not in range"),
            },
            other => return fail(format!("unknown format code '{other}' for object of type 'int'")),
        };
        if let Some(precision) = self.precision {
            let missing = check_precision(precision)?.saturating_sub(digits.len());
            digits.insert_str(0, &"0".repeat(missing));
        }
        let prefix = if self.is_alternate { prefix } else { "" };
        self.write_number(n < 0, prefix, &digits, "", group, out)
    }

    pub(super) fn write_float(&self, x: f64, out: &mut TextBuilder) -> Result<()> {
        let magnitude = x.abs();
        let is_upper = self.kind.is_ascii_uppercase();
        if !x.is_finite() {
            let name = if x.is_nan() { "nan" } else { "inf" };
            let name = if is_upper { name.to_ascii_uppercase() } else { name.to_owned() };
            return self.write_number(x < 0.0, "", &name, "", 0, out);
        }
        let precision = check_precision(self.precision.unwrap_or(6))?;
        out.compute(MAX_WHOLE + precision)?;
        let text = match self.kind.to_ascii_lowercase() {
            'f' => fixed(magnitude, precision, self.is_alternate),
            'e' => scientific(magnitude, precision, self.is_alternate),
            'g' | 'n' => general(magnitude, precision, self.is_alternate),
            '%' => fixed(magnitude * 100.0, precision, self.is_alternate) + "%",
            ' ' => match self.precision {
                None => decimal::float(magnitude),
                Some(precision) => with_point(general(magnitude, precision, false)),
            },
            other => return fail(format!("unknown format code '{other}' for object of type 'float'")),
        };
        let text = if is_upper { text.to_ascii_uppercase() } else { text };
        let n_whole = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let is_negative = x.is_sign_negative();
        self.write_number(is_negative, "", &text[..n_whole], &text[n_whole..], 3, out)
    }

    /// A number of whole digits and a rest, such as a fraction.
    fn write_number(
        &self,
        is_negative: bool,
        prefix: &str,
        digits: &str,
        rest: &str,
        group: usize,
        out: &mut TextBuilder,
    ) -> Result<()> {
        let sign = match (is_negative, self.sign) {
            (true, _) => "-",
            (_, '+') => "+",
            (_, ' ') => " ",
            _ => "",
        };
        let width = self.width.unwrap_or(0);
        let n_other = sign.len() + prefix.len() + rest.len();
        let align = self.align.unwrap_or(if self.is_zero_padded { '=' } else { '>' });
        let fill = if self.is_zero_padded { '0' } else { self.fill };
        let mut digits = digits.to_owned();
        if let Some(separator) = self.grouping.filter(|_| group > 0) {
            // Zeros in front are grouped, too.
            let target = if fill == '0' && align == '=' { width.saturating_sub(n_other) } else { 0 };
            let max = check_precision(target)?;
            digits = grouped(&digits, group, separator, max);
        }
        let missing = width.saturating_sub(n_other + digits.len());
        let (left, inner, right) = match align {
            '<' => (0, 0, missing),
            '^' => (missing / 2, 0, missing - missing / 2),
            '=' => (0, missing, 0),
            _ => (missing, 0, 0),
        };
        out.push_n(fill, left)?;
        out.push(sign)?;
        out.push(prefix)?;
        out.push_n(fill, inner)?;
        out.push(&digits)?;
        out.push(rest)?;
        out.push_n(fill, right)
    }
}

/// Digits with separators, filled with zeros up to a width.
fn grouped(digits: &str, group: usize, separator: char, width: usize) -> String {
    let mut reversed = String::new();
    let mut n = 0;
    let mut left = digits.chars().rev();
    while let Some(c) = left.next().or((reversed.len() < width).then_some('0')) {
        if n > 0 && n % group == 0 {
            reversed.push(separator);
        }
        reversed.push(c);
        n += 1;
    }
    reversed.chars().rev().collect()
}

fn fixed(x: f64, precision: usize, keep_point: bool) -> String {
    let text = format!("{x:.precision$}");
    if keep_point && precision == 0 { text + "." } else { text }
}

fn scientific(x: f64, precision: usize, keep_point: bool) -> String {
    let text = format!("{x:.precision$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let point = if keep_point && precision == 0 { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}{point}e{sign}{:02}", exponent.abs())
}

fn general(x: f64, precision: usize, keep_zeros: bool) -> String {
    let precision = precision.max(1);
    let text = format!("{x:.*e}", precision - 1);
    let exponent: i32 = text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or_default();
    let strip = |text: String| match text.contains('.') && !keep_zeros {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    if exponent < -4 || exponent >= precision as i32 {
        let text = scientific(x, precision - 1, keep_zeros);
        return match text.split_once('e') {
            Some((mantissa, exponent)) => format!("{}e{exponent}", strip(mantissa.to_owned())),
            None => text,
        };
    }
    strip(fixed(x, (precision as i32 - 1 - exponent).max(0) as usize, keep_zeros))
}

/// A number that looks like a float.
fn with_point(text: String) -> String {
    if text.contains(['.', 'e']) { text } else { text + ".0" }
}

/// Fails for a precision that no number has.
pub(super) fn check_precision(precision: usize) -> Result<usize> {
    if precision > MAX_PRECISION {
        return Err(Fault::limit("digits of precision", MAX_PRECISION as u64));
    }
    Ok(precision)
}
