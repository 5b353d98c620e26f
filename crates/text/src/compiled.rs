//! Grammars that stay compiled: those of schemas and tools come again and again.

use std::collections::VecDeque;

use llguidance::Matcher;

/// Most grammars that stay compiled.
pub(crate) const MAX_GRAMMARS: usize = 64;
/// Most bytes of their texts together. Compiled, a grammar takes tens of bytes for each byte of its text.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// Compiled grammars by their texts, the last used at the end. None has read anything.
#[derive(Default)]
pub(crate) struct Compiled {
    matchers: VecDeque<(Box<str>, Matcher)>,
    n_byte: usize,
}

impl Compiled {
    /// A copy of the matcher of a text.
    pub(crate) fn find(&mut self, text: &str) -> Option<Matcher> {
        let at = self.matchers.iter().position(|(known, _)| **known == *text)?;
        let entry = self.matchers.remove(at)?;
        let matcher = entry.1.deep_clone();
        self.matchers.push_back(entry);
        Some(matcher)
    }

    /// Keeps a matcher, and forgets those that were not used for longest.
    pub(crate) fn add(&mut self, text: &str, matcher: Matcher) {
        // Another thread may have been as fast.
        if text.len() > MAX_BYTES || self.matchers.iter().any(|(known, _)| **known == *text) {
            return;
        }
        self.n_byte += text.len();
        self.matchers.push_back((text.into(), matcher));
        while self.matchers.len() > MAX_GRAMMARS || self.n_byte > MAX_BYTES {
            let oldest = self.matchers.pop_front();
            self.n_byte -= oldest.map_or(0, |(text, _)| text.len());
        }
    }

    /// The texts, the last used at the end, and their bytes.
    #[cfg(test)]
    pub(crate) fn texts(&self) -> (Vec<&str>, usize) {
        (self.matchers.iter().map(|(text, _)| &**text).collect(), self.n_byte)
    }
}
