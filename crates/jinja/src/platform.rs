//! Numbers and letters as the platform knows them: in browsers by their own functions, whose tables need not be
//! downloaded.

#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
mod own {
    pub(super) fn number(text: &str) -> Option<f64> {
        text.parse().ok()
    }

    pub(super) fn lower(text: &str) -> String {
        text.to_lowercase()
    }

    pub(super) fn upper(text: &str) -> String {
        text.to_uppercase()
    }
}

#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
mod own {
    use js_sys::JsString;

    pub(super) fn number(text: &str) -> Option<f64> {
        // JavaScript reads an empty text as 0.
        let number = wasm_bindgen::JsValue::from_str(text).unchecked_into_f64();
        (!text.is_empty() && !number.is_nan()).then_some(number)
    }

    pub(super) fn lower(text: &str) -> String {
        JsString::from(text).to_lower_case().into()
    }

    pub(super) fn upper(text: &str) -> String {
        JsString::from(text).to_upper_case().into()
    }
}

/// The nearest number to a decimal one, or what `inf`, `infinity` and `nan` name, with a sign or without, as
/// [`str::parse`] reads them.
///
/// ```
/// use chaski_jinja::parse_float;
///
/// assert_eq!(parse_float("-1.5e3"), Some(-1500.0));
/// assert_eq!(parse_float("+Inf"), Some(f64::INFINITY));
/// assert_eq!(parse_float(".5"), parse_float("0.50"));
/// assert_eq!([parse_float(""), parse_float("0x10"), parse_float(" 1")], [None; 3]);
/// ```
pub fn parse_float(text: &str) -> Option<f64> {
    if text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) {
        return own::number(text);
    }
    let (sign, word) = match text.strip_prefix('-') {
        Some(word) => (-1.0, word),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let is = |name: &str| word.eq_ignore_ascii_case(name);
    if is("inf") || is("infinity") { Some(sign * f64::INFINITY) } else { is("nan").then_some(f64::NAN) }
}

/// The text in lower case.
pub fn lower(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { own::lower(text) }
}

/// The text in upper case, which may have more characters.
pub fn upper(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_uppercase() } else { own::upper(text) }
}

/// A character in lower case, which may be several.
pub(crate) fn lower_char(c: char) -> String {
    lower(c.encode_utf8(&mut [0; 4]))
}

/// A character in upper case, which may be several.
pub(crate) fn upper_char(c: char) -> String {
    upper(c.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_by_the_standard_library() {
        let texts = [
            "",
            "0",
            "1.",
            ".5",
            ".",
            "-0",
            "+7",
            "1e5",
            "1E-400",
            "1e400",
            "1e",
            "e5",
            "-",
            "--1",
            "1-1",
            "0.1",
            "1..2",
            "123456789012345678901234567890",
            "2.2250738585072011e-308",
            "nan",
            "-NaN",
            "inf",
            "+infinity",
            "in",
            "1_0",
            " 1",
            "0x1",
            "Infinity",
            "١",
        ];
        for text in texts {
            let bits = |found: Option<f64>| found.map(f64::to_bits);
            let expected = text.parse().ok().map(|x: f64| if x.is_nan() { f64::NAN } else { x });
            assert_eq!(bits(parse_float(text)), bits(expected), "{text:?}");
        }
    }

    #[test]
    fn case_is_that_of_the_standard_library() {
        for text in ["", "aBc", "ΟΔΟΣ", "straße", "ﬁ", "İ", "ǅ"] {
            assert_eq!(lower(text), text.to_lowercase());
            assert_eq!(upper(text), text.to_uppercase());
        }
        assert_eq!((upper_char('ß'), lower_char('Ä')), ("SS".to_owned(), "ä".to_owned()));
    }
}
