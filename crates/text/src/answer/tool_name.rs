//! The names of tools as models write them.

/// The tool in a name such as `functions.name:0`: some families add its namespace and the index of the call.
pub(super) fn tool_name(written: &str) -> String {
    let name = written.strip_prefix("functions.").unwrap_or(written);
    match name.rsplit_once(':') {
        Some((name, index)) if index.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_numbers_of_calls_are_no_part_of_the_name() {
        assert_eq!(tool_name("functions.get_weather:0"), "get_weather");
        assert_eq!(tool_name("a.b"), "a.b");
        assert_eq!(tool_name("a:b"), "a:b");
    }
}
