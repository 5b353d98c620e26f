//! A processed text and the origin of each of its lines.

/// A text without directives and macros.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// The text.
    pub text: String,
    /// The origin of its lines.
    pub line_map: LineMap,
}

impl Output {
    /// The file and line that a line of the text came from; line numbers start at one, as in compilers.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use wgsl_pre::{Macros, Options, Preprocessor};
    ///
    /// let files = BTreeMap::from([("lib.wgsl", "#define N 4\nconst n = N;\n")]);
    /// let preprocessor = Preprocessor::new(Options::default().loader(files));
    /// let output = preprocessor.process("main.wgsl", "// main\n#include \"lib.wgsl\"\n// end\n", &Macros::new())?;
    /// assert_eq!(output.text, "// main\nconst n = 4;\n// end\n");
    /// assert_eq!(output.locate(2), Some(("lib.wgsl", 2)));
    /// assert_eq!(output.locate(3), Some(("main.wgsl", 3)));
    /// assert_eq!(output.locate(4), None);
    /// # Ok::<(), wgsl_pre::Error>(())
    /// ```
    pub fn locate(&self, line: u32) -> Option<(&str, u32)> {
        self.line_map.locate(line)
    }

    /// Appends a piece of a file that begins at `line`, with its line endings.
    pub(crate) fn push(&mut self, file: usize, line: u32, piece: &str) {
        if piece.is_empty() {
            return;
        }
        // The last line of an included file may lack its line ending.
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(piece);
        for (later, _) in piece.split_inclusive('\n').enumerate() {
            self.line_map.lines.push((file, line + later as u32));
        }
    }
}

/// The file and line of every line of an [`Output`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineMap {
    files: Vec<String>,
    lines: Vec<(usize, u32)>,
}

impl LineMap {
    /// The file and line that an output line came from, or `None` past the end; line numbers start at one.
    pub fn locate(&self, line: u32) -> Option<(&str, u32)> {
        let idx = usize::try_from(line).ok()?.checked_sub(1)?;
        let (file, line) = *self.lines.get(idx)?;
        Some((&self.files[file], line))
    }

    /// The names of all files that were read, in order of first use, including those without output.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    pub(crate) fn file_idx(&mut self, name: &str) -> usize {
        self.files.iter().position(|file| file == name).unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        })
    }
}
