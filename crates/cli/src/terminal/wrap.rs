//! Wraps a text at words while it grows.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns between tab stops.
const TAB: usize = 8;

/// A cursor in a text that is wrapped at words.
///
/// A word is written once the character after it is known, so lines break only between words. Spaces where a line
/// breaks are left out, all others stay.
#[derive(Debug, Default)]
pub(crate) struct Wrap {
    /// The cursor's column: that many are taken in its line.
    column: usize,
    /// Columns of the terminal at the last piece.
    n_column: usize,
    /// Spaces and tabs before the word.
    space: String,
    /// The word at the end of the text.
    word: String,
    /// Columns of its characters, each for itself.
    n_word: usize,
}

impl Wrap {
    /// Takes a piece of text, and returns what to write: for a terminal of this many columns, which may change from
    /// piece to piece. Without columns nothing is wrapped.
    pub(crate) fn push(&mut self, text: &str, columns: Option<usize>) -> String {
        let Some(n_column) = columns.filter(|n| *n > 0) else {
            self.n_column = usize::MAX;
            return self.finish() + text;
        };
        if n_column < self.n_column && self.column > n_column {
            // A terminal that becomes narrower moves the rest of a line below it.
            self.column = (self.column - 1) % n_column + 1;
        }
        self.n_column = n_column;
        let mut out = String::with_capacity(text.len() + 8);
        for c in text.chars() {
            self.take(c, &mut out);
        }
        out
    }

    /// The rest to write at the end of the text.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.place(&mut out);
        out
    }

    fn take(&mut self, c: char, out: &mut String) {
        match c {
            '\n' => {
                self.place(out);
                out.push('\n');
                self.column = 0;
            }
            ' ' | '\t' => {
                if !self.word.is_empty() {
                    self.place(out);
                }
                self.space.push(c);
            }
            _ => {
                if self.breaks_before(c) {
                    self.place(out);
                }
                self.word.push(c);
                self.n_word += c.width().unwrap_or(0);
            }
        }
    }

    /// True if a line may break between the word and this character: beside characters of scripts without spaces, and
    /// in words longer than a line.
    fn breaks_before(&self, c: char) -> bool {
        let Some(last) = self.word.chars().next_back() else { return false };
        let is_wide = |c: char| c.width() == Some(2) && c.is_alphanumeric();
        let is_letter = c.is_alphanumeric() && c.width() > Some(0);
        let is_full = c.width() > Some(0) && self.n_word + c.width().unwrap_or(0) > self.n_column;
        is_full || is_letter && (is_wide(c) || is_wide(last))
    }

    /// Writes spaces and word, in the next line if they do not fit.
    fn place(&mut self, out: &mut String) {
        let (space, word) = (std::mem::take(&mut self.space), std::mem::take(&mut self.word));
        self.n_word = 0;
        let end = advance(self.column, &space);
        let n_word = word.width();
        if end + n_word <= self.n_column {
            *out += &space;
            self.column = end + n_word;
        } else if word.is_empty() {
            // Spaces at the end of a line need not be seen.
            self.column = self.n_column;
        } else {
            if self.column > 0 {
                out.push('\n');
            }
            self.column = n_word.min(self.n_column);
        }
        *out += &word;
    }
}

/// The column after spaces and tabs.
fn advance(column: usize, space: &str) -> usize {
    space.chars().fold(column, |column, c| if c == '\t' { (column / TAB + 1) * TAB } else { column + 1 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str, columns: usize) -> String {
        let mut wrap = Wrap::default();
        let begin = wrap.push(text, Some(columns));
        begin + &wrap.finish()
    }

    fn columns_of(line: &str) -> usize {
        line.split_inclusive('\t').fold(0, |column, part| match part.strip_suffix('\t') {
            Some(words) => ((column + words.width()) / TAB + 1) * TAB,
            None => column + part.width(),
        })
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("Once upon a time, there was", 12), "Once upon a\ntime, there\nwas");
        assert_eq!(wrapped("exactly ten, fits", 12), "exactly ten,\nfits");
        assert_eq!(wrapped("a  b\n\n  c ", 12), "a  b\n\n  c ");
        assert_eq!(wrapped("one two    three", 8), "one two\nthree");
        assert_eq!(wrapped("ab   \ncd", 3), "ab\ncd");
    }

    #[test]
    fn words_longer_than_a_line_break_where_they_must() {
        assert_eq!(wrapped("see https://example.org/a/b ok", 10), "see\nhttps://ex\nample.org/\na/b ok");
        assert_eq!(wrapped("     word", 6), "word");
    }

    #[test]
    fn wide_characters_count_twice_and_need_no_spaces() {
        assert_eq!(wrapped("日本語のテキスト", 6), "日本語\nのテキ\nスト");
        // Punctuation stays with the word before it, and accents with their letter.
        assert_eq!(wrapped("日本語。日本", 7), "日本\n語。日\n本");
        assert_eq!(wrapped("e\u{301}e\u{301} e\u{301}e\u{301}", 4), "e\u{301}e\u{301}\ne\u{301}e\u{301}");
        assert_eq!(wrapped("ab 👨\u{200d}👩\u{200d}👧 cd", 7), "ab 👨\u{200d}👩\u{200d}👧\ncd");
    }

    #[test]
    fn a_resize_takes_effect_in_the_middle_of_a_line() {
        let mut wrap = Wrap::default();
        let mut out = wrap.push("aaa bbb ccc ", Some(80));
        // The terminal shows `aaa bb`, `b ccc`; the cursor is in the second line.
        out += &wrap.push("ddd eee ", Some(6));
        out += &wrap.push("fff ggg hhh", Some(80));
        out += &wrap.finish();
        assert_eq!(out, "aaa bbb ccc\nddd\neee fff ggg hhh");
    }

    #[test]
    fn characters_without_width_take_no_time() {
        let text = "\u{301}".repeat(1_000_000);
        assert_eq!(wrapped(&text, 80), text);
    }

    #[test]
    fn without_a_width_nothing_changes() {
        let text = "word ".repeat(1000) + &"x".repeat(1_000_000);
        let mut wrap = Wrap::default();
        assert_eq!(wrap.push(&text, None) + &wrap.finish(), text);
    }

    proptest! {
        #[test]
        fn the_pieces_of_a_text_do_not_matter(text in "[a-e \t\n日本e\u{301}.,]{0,80}", cut in 0usize..80, columns in 1usize..30) {
            let at = text.char_indices().map(|(i, _)| i).nth(cut).unwrap_or(text.len());
            let mut wrap = Wrap::default();
            let parts = [wrap.push(&text[..at], Some(columns)), wrap.push(&text[at..], Some(columns)), wrap.finish()];
            prop_assert_eq!(parts.concat(), wrapped(&text, columns));
        }

        #[test]
        fn only_spaces_and_breaks_change(text in "[a-e \t\n日本e\u{301}.,]{0,80}", columns in 1usize..30) {
            let found = wrapped(&text, columns);
            let solid = |t: &str| t.replace([' ', '\t', '\n'], "");
            prop_assert_eq!(solid(&found), solid(&text));
            prop_assert!(found.matches('\n').count() >= text.matches('\n').count());
        }

        #[test]
        fn no_line_is_wider_than_the_terminal(text in "[a-e \t\n日本.,]{0,80}", columns in 2usize..30) {
            for line in wrapped(&text, columns).lines() {
                prop_assert!(columns_of(line) <= columns, "{:?}", line);
            }
        }

        #[test]
        fn lines_that_fit_are_unchanged(text in "[a-e \n日本.,]{0,80}", more in 0usize..5) {
            let columns = text.lines().map(columns_of).max().unwrap_or(0) + 1 + more;
            prop_assert_eq!(wrapped(&text, columns), text);
        }
    }
}
