//! The byte alphabet of GPT-2, which maps each byte to a printable character.

/// The character of `byte`: printable Latin-1 maps to itself, the other 68 bytes to U+0100 and up.
pub fn byte_to_char(byte: u8) -> char {
    let code = match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u32::from(byte),
        0x00..=0x20 => 0x100 + u32::from(byte),
        0x7f..=0xa0 => 0x100 + 0x21 + u32::from(byte - 0x7f),
        0xad => 0x100 + 0x21 + 0x22,
    };
    char::from_u32(code).expect("all codes are below U+0144")
}

/// The byte of a character in the alphabet.
pub(super) fn char_to_byte(c: char) -> Option<u8> {
    let code = u32::from(c);
    let byte = match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => code,
        0x100..=0x120 => code - 0x100,
        0x121..=0x142 => code - 0x121 + 0x7f,
        0x143 => 0xad,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

/// Writes the character of each byte of `text` into `out`.
pub(super) fn escape(text: &str, out: &mut String) {
    out.clear();
    out.extend(text.bytes().map(byte_to_char));
}

/// Appends the bytes of a token's text; characters outside the alphabet are copied.
pub(super) fn unescape(text: &str, out: &mut Vec<u8>) {
    for c in text.chars() {
        match char_to_byte(c) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_printable_character() {
        let chars: std::collections::BTreeSet<char> = (0..=255).map(byte_to_char).collect();
        assert_eq!(chars.len(), 256);
        assert_eq!(chars.last(), Some(&'\u{143}'));
        for byte in 0..=255 {
            assert_eq!(char_to_byte(byte_to_char(byte)), Some(byte));
        }
        assert_eq!(byte_to_char(b' '), 'Ġ');
        assert_eq!(byte_to_char(b'\n'), 'Ċ');
        assert_eq!(char_to_byte('\u{144}'), None);
        assert_eq!(char_to_byte('你'), None);
    }
}
