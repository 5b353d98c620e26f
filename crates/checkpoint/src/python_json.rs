//! JSON as Python writes it: with the numbers `NaN`, `Infinity` and `-Infinity`.

use serde_json::Value;

/// Words that Python's `json` writes for numbers that JSON does not have; each is read as `null`.
const NUMBERS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// Parses JSON; NaN and infinities become `null`.
///
/// # Errors
///
/// As [`serde_json::from_slice`], which also bounds the depth.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    // Strict JSON, which nearly all files are, needs no copy.
    serde_json::from_slice(bytes).or_else(|error| match without_numbers(bytes) {
        Some(plain) => serde_json::from_slice(&plain),
        None => Err(error),
    })
}

/// The text with `null` for Python's numbers; `None` if there are none.
fn without_numbers(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() + 64);
    let (mut rest, mut in_string, mut n_found) = (bytes, false, 0);
    while let Some(&first) = rest.first() {
        let word = NUMBERS.iter().find(|word| !in_string && rest.starts_with(word));
        let n = match (first, word) {
            (_, Some(word)) => {
                out.extend(b"null");
                n_found += 1;
                rest = &rest[word.len()..];
                continue;
            }
            (b'\\', _) if in_string => rest.len().min(2),
            _ => 1,
        };
        in_string ^= first == b'"';
        out.extend(&rest[..n]);
        rest = &rest[n..];
    }
    (n_found > 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse;

    #[test]
    fn numbers_of_python_are_null() {
        let text = br#"{"a": Infinity, "b": [-Infinity, NaN,1], "NaN": "\"NaN Infinity"}"#;
        assert_eq!(parse(text).unwrap(), json!({"a": null, "b": [null, null, 1], "NaN": "\"NaN Infinity"}));
        assert!(parse(b"{NaN: 1}").is_err() && parse(b"NaNN").is_err() && parse(b"[\"\\").is_err());
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }
}
