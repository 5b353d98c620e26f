//! Parsers of numbers in options.

/// A finite number.
pub(crate) fn finite(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(x) if x.is_finite() => Ok(x),
        Ok(_) => Err("expected a finite number".into()),
        Err(e) => Err(e.to_string()),
    }
}

/// A finite number above 0.
pub(crate) fn positive(text: &str) -> Result<f32, String> {
    finite(text).and_then(|x| if x > 0.0 { Ok(x) } else { Err("expected a number above 0".into()) })
}
