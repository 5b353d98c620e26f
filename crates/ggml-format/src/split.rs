//! Names of the files of a split set: `PREFIX-00001-of-00003.gguf`.

/// The parsed name of one file of a split set.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SplitName<'a> {
    /// The part before the numbers, including directories.
    pub prefix: &'a str,
    /// The file's index, from 0 (the name counts from 1).
    pub index: u32,
    /// Number of files in the set.
    pub count: u32,
}

impl<'a> SplitName<'a> {
    /// Parses a name; `None` if it is not the name of a file of a split set.
    ///
    /// ```
    /// use ggml_format::SplitName;
    /// let name = SplitName::parse("models/big-00002-of-00003.gguf").unwrap();
    /// assert_eq!((name.prefix, name.index, name.count), ("models/big", 1, 3));
    /// assert_eq!(name.sibling(2), "models/big-00003-of-00003.gguf");
    /// ```
    pub fn parse(name: &'a str) -> Option<SplitName<'a>> {
        let (rest, count) = five_digits(name.strip_suffix(".gguf")?)?;
        let (rest, number) = five_digits(rest.strip_suffix("-of-")?)?;
        let prefix = rest.strip_suffix('-')?;
        (1..=count).contains(&number).then(|| SplitName { prefix, index: number - 1, count })
    }

    /// The name of the file with another index, from 0.
    pub fn sibling(&self, index: u32) -> String {
        format!("{}-{:05}-of-{:05}.gguf", self.prefix, index + 1, self.count)
    }
}

fn five_digits(text: &str) -> Option<(&str, u32)> {
    let at = text.len().checked_sub(5)?;
    let digits = text.get(at..)?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((&text[..at], digits.parse().ok()?))
}
