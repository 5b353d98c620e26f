//! Template values as WGSL literals and constructors; invalid values are errors, never invalid shaders.

use chaski_jinja::Given;
use half::f16;

/// The expected value and the value found.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) expected: String,
    pub(crate) found: String,
}

pub(crate) type Literal = Result<String, Mismatch>;

pub(crate) fn mismatch(expected: impl Into<String>, found: impl Into<String>) -> Mismatch {
    Mismatch { expected: expected.into(), found: found.into() }
}

/// A value in an error message: its kind if its text is too long.
pub(crate) fn describe(value: &Given) -> String {
    let (text, kind) = match value {
        Given::Undefined => return "an undefined value".into(),
        Given::Text(text) => return format!("the string {text:?}"),
        Given::Float(x) => return format!("`{x:?}`"),
        Given::List(_) => (value.to_string(), "sequence"),
        Given::Other(_) => (value.to_string(), "map or object"),
        Given::None | Given::Bool(_) | Given::Int(_) => (value.to_string(), "value"),
    };
    match text.char_indices().nth(40) {
        None => format!("`{text}`"),
        Some((end, _)) => format!("`{}…` ({kind})", &text[..end]),
    }
}

/// Jinja treats booleans as numbers, WGSL does not.
fn number(value: &Given, expected: &str) -> Result<f64, Mismatch> {
    match value {
        Given::Int(n) => Ok(*n as f64),
        Given::Float(x) => Ok(*x),
        _ => Err(mismatch(expected, describe(value))),
    }
}

/// An integer, including an integral float such as the result of `/` on two integers.
pub(crate) fn integer(
    value: &Given,
    range: std::ops::RangeInclusive<i128>,
    what: &str,
) -> Result<i128, Mismatch> {
    let n = match value {
        Given::Int(n) => Some(*n),
        Given::Float(x) if x.fract() == 0.0 => Some(*x as i128),
        _ => None,
    };
    n.filter(|n| range.contains(n))
        .ok_or_else(|| mismatch(format!("{what} from {} to {}", range.start(), range.end()), describe(value)))
}

/// `7u`.
pub(crate) fn u32(value: &Given) -> Literal {
    Ok(format!("{}u", integer(value, 0..=u32::MAX.into(), "an integer")?))
}

/// `-7i`; the smallest has no literal of its own, because WGSL parses its minus sign separately.
pub(crate) fn i32(value: &Given) -> Literal {
    let n = integer(value, i32::MIN.into()..=i32::MAX.into(), "an integer")?;
    Ok(if n == i128::from(i32::MIN) { format!("i32({n})") } else { format!("{n}i") })
}

/// `0xffu`, with at least `n_digit` digits.
pub(crate) fn hex(value: &Given, n_digit: usize) -> Literal {
    let n = integer(value, 0..=u32::MAX.into(), "an integer")?;
    Ok(format!("0x{n:0n_digit$x}u"))
}

/// The shortest decimal that WGSL parses to the nearest f32: `1.0f`.
pub(crate) fn f32(value: &Given) -> Literal {
    let wide = number(value, "a number")?;
    let narrow = wide as f32;
    check_rounding(value, wide, narrow.into(), "f32", f32::MAX.into())?;
    Ok(format!("{narrow:?}f"))
}

/// The shortest decimal that WGSL parses to the nearest f16: `1.0h`.
pub(crate) fn f16(value: &Given) -> Literal {
    let wide = number(value, "a number")?;
    let narrow = f16::from_f64(wide);
    check_rounding(value, wide, narrow.into(), "f16", f16::MAX.into())?;
    let exact = f64::from(narrow);
    if exact.fract() == 0.0 {
        return Ok(format!("{exact:?}h"));
    }
    let shortest = (0..17)
        .filter_map(|n_digit| chaski_jinja::parse_float(&format!("{exact:.n_digit$e}")))
        .find(|&decimal| f16::from_f64(decimal) == narrow)
        .unwrap_or(exact);
    Ok(format!("{shortest:?}h"))
}

fn check_rounding(value: &Given, wide: f64, narrow: f64, ty: &str, max: f64) -> Result<(), Mismatch> {
    if !narrow.is_finite() {
        let bound = if max > 1e9 { format!("{max:e}") } else { max.to_string() };
        return Err(mismatch(format!("a number from -{bound} to {bound}"), describe(value)));
    }
    if narrow == 0.0 && wide != 0.0 {
        return Err(mismatch(format!("a number that {ty} can distinguish from zero"), describe(value)));
    }
    if let Given::Int(n) = value
        && narrow.to_string() != n.to_string()
    {
        return Err(mismatch(format!("an integer that {ty} can represent exactly"), describe(value)));
    }
    Ok(())
}

/// The scalar types of literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    F32,
    F16,
    I32,
    U32,
    Bool,
}

impl Scalar {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "f32" => Self::F32,
            "f16" => Self::F16,
            "i32" => Self::I32,
            "u32" => Self::U32,
            "bool" => Self::Bool,
            _ => return None,
        })
    }

    fn literal(self, value: &Given) -> Literal {
        match self {
            Self::F32 => f32(value),
            Self::F16 => f16(value),
            Self::I32 => i32(value),
            Self::U32 => u32(value),
            Self::Bool => match value {
                Given::Bool(b) => Ok(b.to_string()),
                _ => Err(mismatch("true or false", describe(value))),
            },
        }
    }
}

/// A scalar, or a vector of `n` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type {
    scalar: Scalar,
    n: usize,
}

impl Type {
    /// Parses `f32`, `vec2<f32>` and so on.
    pub(crate) fn parse(name: &str) -> Result<Self, Mismatch> {
        let (n, scalar) = match name.strip_prefix("vec").and_then(|rest| rest.strip_suffix('>')) {
            Some(rest) => match rest.split_once('<') {
                Some(("2", scalar)) => (2, scalar),
                Some(("3", scalar)) => (3, scalar),
                Some(("4", scalar)) => (4, scalar),
                _ => (0, ""),
            },
            None => (1, name),
        };
        match Scalar::parse(scalar) {
            Some(scalar) => Ok(Self { scalar, n }),
            None => Err(mismatch(
                "one of the types f32, f16, i32, u32, bool or vecN of them",
                format!("{name:?}"),
            )),
        }
    }

    fn literal(self, value: &Given, hexadecimal: bool) -> Literal {
        match self.n {
            1 if hexadecimal && self.scalar == Scalar::U32 => hex(value, 0),
            1 => self.scalar.literal(value),
            n => vec(value, n, self.scalar, hexadecimal),
        }
    }
}

fn items<'v>(value: &'v Given, expected: &str) -> Result<&'v [Given], Mismatch> {
    match value {
        Given::List(items) => Ok(items),
        _ => Err(mismatch(expected, describe(value))),
    }
}

fn vec(value: &Given, n: usize, scalar: Scalar, hexadecimal: bool) -> Literal {
    let ty = Type { scalar, n: 1 };
    let name = vec_type(&format!("{scalar:?}").to_ascii_lowercase(), n)?;
    let components = match value {
        Given::List(items) if items.len() != n => {
            let found = format!("{} in {}", items.len(), describe(value));
            return Err(mismatch(format!("{n} components"), found));
        }
        Given::List(items) => items,
        single => std::slice::from_ref(single),
    };
    let components =
        components.iter().map(|value| ty.literal(value, hexadecimal)).collect::<Result<Vec<_>, _>>()?;
    Ok(if n == 1 { components.concat() } else { format!("{name}({})", components.join(", ")) })
}

/// `vec4<f32>(…)` from a list of components, or from a single value for all; one component stays a scalar.
pub(crate) fn vector(value: &Given, n: usize, ty: &str) -> Literal {
    let ty = Type::parse(ty)?;
    if ty.n != 1 || !(1..=4).contains(&n) {
        return Err(mismatch("1 to 4 components of a scalar type", format!("{n}")));
    }
    vec(value, n, ty.scalar, false)
}

/// `vec4<f32>` for `f32` and 4; the type itself for 1.
pub(crate) fn vec_type(scalar: &str, n: usize) -> Literal {
    match n {
        1 => Ok(scalar.to_owned()),
        2..=4 => Ok(format!("vec{n}<{scalar}>")),
        _ => Err(mismatch("1 to 4 components", format!("{n}"))),
    }
}

/// Maximum width of a line in an array literal, unless an entry is longer.
const ARRAY_WIDTH: usize = 90;

/// `array<u32, 3>(1u, 2u, 3u)`, on one line if it is short.
pub(crate) fn array(value: &Given, ty: &str, hexadecimal: bool) -> Literal {
    let parsed = Type::parse(ty)?;
    let entries = items(value, "a list")?;
    if entries.is_empty() {
        return Err(mismatch("a non-empty list, because WGSL has no empty arrays", "an empty one"));
    }
    let literals = entries
        .iter()
        .enumerate()
        .map(|(idx, entry)| {
            parsed
                .literal(entry, hexadecimal)
                .map_err(|e| mismatch(e.expected, format!("{} at index {idx}", e.found)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let head = format!("array<{ty}, {}>(", literals.len());
    let on_one_line = literals.join(", ");
    if head.len() + on_one_line.len() < ARRAY_WIDTH {
        return Ok(format!("{head}{on_one_line})"));
    }
    let mut text = head;
    let mut width = usize::MAX;
    for literal in &literals {
        if width.saturating_add(literal.len() + 2) > ARRAY_WIDTH {
            text.push_str("\n   ");
            width = 3;
        }
        text.push(' ');
        text.push_str(literal);
        text.push(',');
        width += literal.len() + 2;
    }
    text.push_str("\n)");
    Ok(text)
}

/// 5 for 32; an error unless the value is a power of two.
pub(crate) fn log2(value: &Given) -> Result<u32, Mismatch> {
    match integer(value, 1..=1 << 62, "a power of two") {
        Ok(n) if n.count_ones() == 1 => Ok(n.trailing_zeros()),
        _ => Err(mismatch("a power of two", describe(value))),
    }
}
