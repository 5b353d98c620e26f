//! Numbers as text.

/// The shortest decimal number that parses to `x`, as Python's `repr` writes it.
pub(super) fn float(x: f64) -> String {
    if !x.is_finite() {
        return if x.is_nan() {
            "nan"
        } else if x > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_look_like_python_floats() {
        for (x, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-0.1, "-0.1"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e300, "1.5e+300"),
            (9007199254740993.0, "9007199254740992.0"),
            (1e16, "1e+16"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(float(x), expected);
        }
    }
}
