//! Hexadecimal text.

/// The digits of bytes, in lower case.
pub(crate) fn text(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// The bytes of exactly two digits each, in any case.
pub(crate) fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_digits_are_each_others_inverse() {
        let all: [u8; 256] = std::array::from_fn(|i| i as u8);
        assert_eq!(text(&[0, 9, 10, 255]), "00090aff");
        assert_eq!(bytes(&text(&all)), Some(all));
        assert_eq!(bytes(&text(&all).to_uppercase()), Some(all));
    }

    #[test]
    fn other_texts_are_none() {
        // A sign is no digit.
        for wrong in ["", "0", "000", "0g", "+f", "-0", " 0", "é"] {
            assert_eq!(bytes::<1>(wrong), None, "{wrong}");
        }
    }
}
