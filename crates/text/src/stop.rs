//! Stop strings: ends a text where one begins, regardless of how the text is chunked.

/// Searches a streamed text for stop strings.
///
/// Text that may be the beginning of a stop string is held back until the match is decided. The text ends
/// before the stop string that is completed first; if two are completed at the same position, before the
/// longer one.
///
/// ```
/// use chaski_text::{StopStrings, Stopped};
///
/// let mut stops = StopStrings::new(["\nUser:"]);
/// assert_eq!(stops.push("Fine.\nUs"), ("Fine.", Stopped::No));
/// assert_eq!(stops.push("ually"), ("\nUsually", Stopped::No));
/// assert_eq!(stops.push("!\nUser: and"), ("!", Stopped::Yes { index: 0 }));
/// ```
#[derive(Clone, Debug)]
pub struct StopStrings {
    stops: Vec<String>,
    /// The text held back, followed by the text of the last call.
    text: String,
    /// The part of `text` that has been returned, in bytes.
    n_byte_given: usize,
    stopped: Stopped,
}

/// The state of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stopped {
    /// The text continues.
    No,
    /// The text has ended.
    Yes {
        /// Index of the stop string in the list given to [`StopStrings::new`].
        index: usize,
    },
}

impl StopStrings {
    /// Searches for `stops`; empty strings never match.
    pub fn new(stops: impl IntoIterator<Item = impl Into<String>>) -> StopStrings {
        StopStrings {
            stops: stops.into_iter().map(Into::into).collect(),
            text: String::new(),
            n_byte_given: 0,
            stopped: Stopped::No,
        }
    }

    /// Takes the next piece of text; returns the text that can be shown now, and the state of the search.
    ///
    /// After the end, it returns no more text.
    pub fn push(&mut self, piece: &str) -> (&str, Stopped) {
        self.text.drain(..self.n_byte_given);
        self.n_byte_given = 0;
        if self.stopped != Stopped::No {
            self.text.clear();
            return ("", self.stopped);
        }
        self.text.push_str(piece);

        let matches = self.stops.iter().enumerate().filter(|(_, stop)| !stop.is_empty());
        let matches =
            matches.filter_map(|(index, stop)| Some((self.text.find(stop.as_str())?, stop.len(), index)));
        if let Some((start, _, index)) = matches.min_by_key(|(start, len, _)| (start + len, *start)) {
            self.stopped = Stopped::Yes { index };
            self.n_byte_given = start;
            // The text held back is dropped at the end; `drain` of the next call must not find it.
            self.text.truncate(start);
        } else {
            self.n_byte_given = self.text.len() - self.n_byte_held();
        }
        (&self.text[..self.n_byte_given], self.stopped)
    }

    /// Ends the text and returns the part held back.
    pub fn finish(&mut self) -> &str {
        self.text.drain(..self.n_byte_given);
        self.n_byte_given = self.text.len();
        &self.text
    }

    /// Length of the longest suffix of the text that is a prefix of a stop string.
    fn n_byte_held(&self) -> usize {
        let held = |stop: &String| {
            let longest = stop.len().saturating_sub(1).min(self.text.len());
            (1..=longest)
                .rev()
                .find(|&n| stop.is_char_boundary(n) && self.text.ends_with(&stop[..n]))
                .unwrap_or(0)
        };
        self.stops.iter().map(held).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The end of the text by definition: tries every prefix, shortest first.
    fn naive(stops: &[String], text: &str) -> (String, Stopped) {
        for end in (0..=text.len()).filter(|&end| text.is_char_boundary(end)) {
            let ends =
                stops.iter().enumerate().filter(|(_, stop)| !stop.is_empty() && text[..end].ends_with(*stop));
            // The first of the longest matches.
            if let Some((index, stop)) = ends.min_by_key(|(_, stop)| std::cmp::Reverse(stop.len())) {
                return (text[..end - stop.len()].to_owned(), Stopped::Yes { index });
            }
        }
        (text.to_owned(), Stopped::No)
    }

    fn streamed(stops: &[String], pieces: &[String]) -> (String, Stopped) {
        let mut watcher = StopStrings::new(stops.to_vec());
        let mut text = String::new();
        let mut end = Stopped::No;
        for piece in pieces {
            let (shown, stopped) = watcher.push(piece);
            text.push_str(shown);
            end = stopped;
        }
        text.push_str(watcher.finish());
        (text, end)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn pieces_end_where_the_whole_ends(
            stops in prop::collection::vec("[abé]{0,4}", 0..4),
            pieces in prop::collection::vec("[abcé]{0,4}", 0..10),
        ) {
            prop_assert_eq!(streamed(&stops, &pieces), naive(&stops, &pieces.concat()));
        }
    }

    #[test]
    fn nothing_is_held_without_need() {
        let mut stops = StopStrings::new(["END"]);
        assert_eq!(stops.push("abc"), ("abc", Stopped::No));
        assert_eq!(stops.push("dEN"), ("d", Stopped::No));
        assert_eq!(stops.push("N"), ("ENN", Stopped::No));
        assert_eq!(stops.push("E"), ("", Stopped::No));
        assert_eq!(stops.finish(), "E");
        assert_eq!(stops.finish(), "");
    }
}
