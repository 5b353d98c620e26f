//! Filters that give numbers, or print them.

use super::args::{Args, as_int, as_text};
use super::fault::{Result, fail};
use super::run::Run;
use super::value::Value;
use super::{ops, platform};

pub(super) fn abs(_: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("abs", [], 0)?;
    ops::defined(&value)?;
    match (&value, value.as_int()) {
        (Value::Float(x), _) => Ok(Value::Float(x.abs())),
        (_, Some(n)) => ops::int(n.checked_abs()),
        _ => fail(format!("bad operand type for abs(): '{}'", value.type_name())),
    }
}

/// `int(default=0, base=10)`.
pub(super) fn int(_: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [default, base] = args.bind("int", ["default", "base"], 0)?;
    let base = as_int(base.as_ref(), 10)?;
    let number = match &value {
        Value::Float(x) => whole(*x),
        Value::Str(text) => {
            let base = if base == 0 || (2..=36).contains(&base) { base as u32 } else { 10 };
            parse_int(text, base).or_else(|| parse_float(text).and_then(whole))
        }
        Value::Undefined(_) => return ops::defined(&value).map(|()| value),
        _ => value.as_int(),
    };
    Ok(number.map_or_else(|| default.unwrap_or(Value::Int(0)), Value::Int))
}

fn whole(x: f64) -> Option<i128> {
    (x.abs() < 1e38).then_some(x as i128)
}

/// Digits of a number in a text; longer ones are none.
const MAX_DIGITS: usize = 1 << 10;

/// Python's `int(text, base)`.
fn parse_int(text: &str, base: u32) -> Option<i128> {
    let text = text.trim();
    if text.len() > MAX_DIGITS {
        return None;
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut base = base;
    let mut plain = digits;
    for (prefix, of) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        let is_prefixed = plain.get(..2).is_some_and(|found| found.eq_ignore_ascii_case(prefix));
        if is_prefixed && (base == of || base == 0) {
            (plain, base) = (&plain[2..], of);
            break;
        }
    }
    let base = if base == 0 { 10 } else { base };
    let is_valid = !plain.is_empty()
        && !plain.starts_with(['+', '-', '_'])
        && !plain.ends_with('_')
        && !plain.contains("__");
    let number = is_valid.then(|| i128::from_str_radix(&plain.replace('_', ""), base).ok()).flatten()?;
    Some(if text.starts_with('-') { -number } else { number })
}

/// Python's `float(text)`.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_valid = !text.starts_with('_') && !text.ends_with('_') && !text.contains("__");
    if !is_valid || text.len() > MAX_DIGITS {
        return None;
    }
    platform::parse_float(&text.replace('_', ""))
}

/// `float(default=0.0)`.
pub(super) fn float(_: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [default] = args.bind("float", ["default"], 0)?;
    ops::defined(&value)?;
    let number = match &value {
        Value::Str(text) => parse_float(text),
        _ => value.as_float(),
    };
    Ok(number.map_or_else(|| default.unwrap_or(Value::Float(0.0)), Value::Float))
}

/// `round(precision=0, method='common')`.
pub(super) fn round(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [precision, method] = args.bind("round", ["precision", "method"], 0)?;
    let precision = as_int(precision.as_ref(), 0)?.clamp(-400, 400) as i32;
    ops::defined(&value)?;
    let Some(x) = value.as_float() else {
        return fail(format!("type {} doesn't define a round method", value.type_name()));
    };
    // Some hundred digits are printed and parsed.
    run.meter.step(128 + u64::from(precision.unsigned_abs()))?;
    let scale = 10f64.powi(precision);
    match as_text(method.as_ref(), "common")? {
        "common" => match value.as_int() {
            Some(n) if precision >= 0 => Ok(Value::Int(n)),
            Some(n) => Ok(Value::Int(round_int(n, precision.unsigned_abs()))),
            None => Ok(Value::Float(round_to(x, precision))),
        },
        "ceil" => Ok(Value::Float((x * scale).ceil() / scale)),
        "floor" => Ok(Value::Float((x * scale).floor() / scale)),
        _ => fail("method must be common, ceil or floor"),
    }
}

/// Rounds to `10^digits`, ties to even.
fn round_int(n: i128, digits: u32) -> i128 {
    let Some(unit) = 10i128.checked_pow(digits) else { return 0 };
    let (quotient, rest) = (n.div_euclid(unit), n.rem_euclid(unit));
    let up = rest * 2 > unit || (rest * 2 == unit && quotient % 2 != 0);
    (quotient + i128::from(up)) * unit
}

/// Python's `round(x, precision)`: correct for the exact value of `x`, ties to even.
pub(super) fn round_to(x: f64, precision: i32) -> f64 {
    if !x.is_finite() || precision > 330 {
        return x;
    }
    if precision >= 0 {
        return platform::parse_float(&format!("{x:.*}", precision as usize)).unwrap_or(x);
    }
    let scale = 10f64.powi(-precision);
    (x / scale).round_ties_even() * scale
}
