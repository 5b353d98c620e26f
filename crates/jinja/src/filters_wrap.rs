//! The filter `wordwrap`, which breaks lines as Python's `textwrap` does.

use std::ops::Range;

use super::args::{self, Args, as_bool, as_int, given};
use super::fault::{Result, fail};
use super::run::Run;
use super::split::{is_space, is_word, lines};
use super::value::Value;

/// Breaks of a line: its maximal width in characters, and where words may be broken.
struct Wrap {
    width: usize,
    long_words: bool,
    hyphens: bool,
}

/// `wordwrap(width=79, break_long_words=true, wrapstring=none, break_on_hyphens=true)`.
pub(super) fn wordwrap(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [width, long_words, end, hyphens] =
        args.bind("wordwrap", ["width", "break_long_words", "wrapstring", "break_on_hyphens"], 0)?;
    let text = args::text(Some(value))?;
    let end = args::text(Some(given(end).unwrap_or_else(|| Value::constant("\n"))))?;
    let width = as_int(width.as_ref(), 79)?;
    let wrap = Wrap {
        width: width.clamp(0, 1 << 40) as usize,
        long_words: as_bool(long_words.as_ref(), true),
        hyphens: as_bool(hyphens.as_ref(), true),
    };
    let mut out = run.text()?;
    for (nth, (paragraph, _)) in lines(&text).enumerate() {
        if width <= 0 {
            return fail(format!("invalid width {width} (must be > 0)"));
        }
        if nth > 0 {
            out.push_text(&end)?;
        }
        let mut rest = Chunks { line: paragraph, next: 0..0, hyphens: wrap.hyphens };
        rest.advance();
        let mut is_first = true;
        while let Some(range) = wrap.line(&mut rest, is_first) {
            run.meter.step(1)?;
            if !is_first {
                out.push_text(&end)?;
            }
            is_first = false;
            out.push_part(&text, &paragraph[range])?;
        }
    }
    Ok(out.finish())
}

impl Wrap {
    /// The next line of a paragraph; `None` at its end.
    fn line(&self, rest: &mut Chunks<'_>, is_first: bool) -> Option<Range<usize>> {
        while !rest.is_empty() {
            if !is_first && rest.is_blank() {
                rest.advance();
            }
            let (start, mut last, mut n_char) = (rest.next.start, rest.next.start, 0);
            while !rest.is_empty() && n_char + rest.n_char(self.width) <= self.width {
                n_char += rest.n_char(self.width);
                last = rest.next.start;
                rest.advance();
            }
            if rest.n_char(self.width) > self.width {
                if self.long_words {
                    last = rest.next.start;
                    rest.next.start += self.cut(rest.text(), self.width - n_char);
                } else if start == rest.next.start {
                    last = start;
                    rest.advance();
                }
            }
            // White space at the end of a line is dropped.
            let is_blank = rest.line[last..rest.next.start].chars().all(is_space);
            let end = if is_blank { last } else { rest.next.start };
            if end > start {
                return Some(start..end);
            }
        }
        None
    }

    /// The number of bytes of a long word for `room` characters.
    fn cut(&self, word: &str, room: usize) -> usize {
        let cut = word.char_indices().nth(room).map_or(word.len(), |(at, _)| at);
        let hyphen = word[..cut].rfind('-').filter(|_| self.hyphens);
        hyphen.filter(|at| word[..*at].chars().any(|c| c != '-')).map_or(cut, |at| at + 1)
    }
}

/// Words and white space of a line, between which it may be broken.
struct Chunks<'t> {
    line: &'t str,
    /// The bytes of the next one.
    next: Range<usize>,
    /// True if words end behind hyphens, too.
    hyphens: bool,
}

impl Chunks<'_> {
    fn text(&self) -> &str {
        &self.line[self.next.clone()]
    }

    fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    fn is_blank(&self) -> bool {
        self.text().chars().all(is_space)
    }

    /// The number of its characters, of which no more than one above `max` are counted.
    fn n_char(&self, max: usize) -> usize {
        self.text().chars().take(max.saturating_add(1)).count()
    }

    fn advance(&mut self) {
        let start = self.next.end;
        self.next = start..start + self.n_byte(start);
    }

    /// The length of the chunk that begins at a byte.
    fn n_byte(&self, start: usize) -> usize {
        let (before, rest) = self.line.split_at(start);
        let n_blank = rest.find(|c| !is_blank(c)).unwrap_or(rest.len());
        if n_blank > 0 {
            return n_blank;
        }
        if let Some(n_dash) = dashes(before, rest).filter(|_| self.hyphens) {
            return n_dash;
        }
        // Only up to the end of the chunk: a line has many of them.
        let ends = rest.char_indices().skip(1).find_map(|(at, c)| {
            let (before, behind) = self.line.split_at(start + at);
            match c {
                _ if is_blank(c) => Some(at),
                _ if !self.hyphens => None,
                '-' if is_hyphen(before, &behind[1..]) => Some(at + 1),
                _ => dashes(before, behind).map(|_| at),
            }
        });
        ends.unwrap_or(rest.len())
    }
}

/// The length of a dash of several hyphens between `before` and the word that must follow.
fn dashes(before: &str, rest: &str) -> Option<usize> {
    let is_end = |c: char| is_word(c) || matches!(c, '!' | '"' | '\'' | '&' | '.' | ',' | '?');
    if !rest.starts_with("--") || !before.ends_with(is_end) {
        return None;
    }
    let behind = rest.trim_start_matches('-');
    behind.starts_with(is_word).then_some(rest.len() - behind.len())
}

/// True if a line may break behind the hyphen between these: letters are on both sides, two or more, or one behind
/// another hyphen.
fn is_hyphen(before: &str, behind: &str) -> bool {
    let mut before = before.chars().rev();
    let (last, other) = (before.next(), before.next());
    let is_before = last.is_some_and(is_letter)
        && (other.is_some_and(is_letter) || other == Some('-') && before.next().is_some_and(is_letter));
    let mut behind = behind.chars();
    let (first, other) = (behind.next(), behind.next());
    is_before
        && first.is_some_and(is_letter)
        && (other.is_some_and(is_letter) || other == Some('-') && behind.next().is_some_and(is_letter))
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// White space at which lines break.
fn is_blank(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ')
}
