//! Paths that a server names, and refusal of those that must not become files here.

/// Names that Windows keeps for devices, with any ending.
const RESERVED: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// The same with a digit behind them.
const RESERVED_WITH_DIGIT: [&str; 2] = ["com", "lpt"];

/// The systems whose rules for file names hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum System {
    /// Everything but `/` and zero bytes may be part of a name.
    Unix,
    /// Also without `\`, `:`, other signs, and names of devices.
    Windows,
}

impl System {
    /// The one of this build.
    pub const HERE: System = if cfg!(windows) { System::Windows } else { System::Unix };
}

/// Checks a path of a repository before a file is made of it: relative, with `/` between names, and within its folder.
///
/// # Errors
/// The reason.
pub fn check(path: &str, system: System) -> Result<(), &'static str> {
    const LONGEST: usize = 1024;
    if path.len() > LONGEST {
        return Err("it is longer than 1024 bytes");
    }
    if path.contains('\0') {
        return Err("it has a zero byte");
    }
    path.split('/').try_for_each(|name| check_name(name, system))
}

fn check_name(name: &str, system: System) -> Result<(), &'static str> {
    match name {
        "" => return Err("it is absolute, or has an empty part"),
        "." | ".." => return Err("it leaves its folder"),
        _ if name.len() > 255 => return Err("it has a part of more than 255 bytes"),
        _ => {}
    }
    if system == System::Unix {
        return Ok(());
    }
    if name.contains(['\\', ':', '<', '>', '"', '|', '?', '*']) || name.chars().any(|c| c < ' ') {
        return Err("it has a character that Windows does not allow in names");
    }
    if name.ends_with(['.', ' ']) {
        return Err("it has a part that ends with a dot or a space, which Windows drops");
    }
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let is_numbered = |device: &str| {
        stem.strip_prefix(device).is_some_and(|rest| {
            rest.chars().count() == 1 && rest.contains(|c: char| c.is_ascii_digit() || "¹²³".contains(c))
        })
    };
    if RESERVED.contains(&stem.as_str()) || RESERVED_WITH_DIGIT.into_iter().any(is_numbered) {
        return Err("it has the name of a Windows device");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_paths_are_taken_everywhere() {
        for path in [
            "a.gguf",
            "Q4_K_M/a-00001-of-00002.gguf",
            ".gitattributes",
            "ü/模型.gguf",
            "console.txt",
            "com10.txt",
        ] {
            assert_eq!(check(path, System::Unix), Ok(()), "{path}");
            assert_eq!(check(path, System::Windows), Ok(()), "{path}");
        }
    }

    #[test]
    fn paths_that_leave_the_folder_are_refused_everywhere() {
        let long = "x".repeat(256);
        for path in ["", "/etc/passwd", "../a", "a/../../b", "a//b", "a/", "./a", "a\0b", long.as_str()] {
            assert!(check(path, System::Unix).is_err(), "{path}");
            assert!(check(path, System::Windows).is_err(), "{path}");
        }
    }

    #[test]
    fn windows_has_more_rules() {
        for path in [
            "C:\\a",
            "a\\..\\b",
            "a:stream",
            "nul",
            "sub/AUX.gguf",
            "com1.txt",
            "lpt³",
            "a.",
            "b /c",
            "what?",
            "con .x",
        ] {
            assert_eq!(check(path, System::Unix), Ok(()), "{path}");
            assert!(check(path, System::Windows).is_err(), "{path}");
        }
    }
}
