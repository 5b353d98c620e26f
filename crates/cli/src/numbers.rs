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

/// A finite number, 0 or above.
pub(crate) fn not_negative(text: &str) -> Result<f32, String> {
    finite(text).and_then(|x| if x >= 0.0 { Ok(x) } else { Err("expected a number, 0 or above".into()) })
}

/// A size of memory in bytes: a number with KiB, MiB or GiB, or with K, M or G for powers of 1000.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let units = units.into_iter().chain([("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000_u64)]);
    let mut found = units.filter_map(|(unit, n_byte)| {
        let (number, end) = text.split_at_checked(text.len().checked_sub(unit.len())?)?;
        let number = positive(number.trim_end()).ok().filter(|_| end.eq_ignore_ascii_case(unit))?;
        Some((f64::from(number) * n_byte as f64) as u64)
    });
    found.next().ok_or_else(|| "expected a number above 0 with KiB, MiB or GiB, such as 2GiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, n_byte) in [
            ("2GiB", 2 << 30),
            ("512 MiB", 512 << 20),
            ("1.5gib", 3 << 29),
            ("7KiB", 7 << 10),
            ("2G", 2_000_000_000),
            ("50m", 50_000_000),
        ] {
            assert_eq!(memory(text), Ok(n_byte), "{text}");
        }
        for wrong in ["", "5", "GiB", "0GiB", "-1GiB", "infGiB", "5TiB", "5GB", "\u{20ac}iB"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }
}
