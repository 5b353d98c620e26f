//! The bytes of a text that are data: they come from variables, not from the template.

use std::ops::Range;

/// Ranges of bytes in order, with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(Vec<Range<usize>>);

impl Marks {
    /// Memory of a range.
    pub(super) const N_BYTE: usize = size_of::<Range<usize>>();

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if [`Self::add`] would need another range.
    pub(super) fn is_apart(&self, range: &Range<usize>) -> bool {
        !range.is_empty() && self.0.last().is_none_or(|last| last.end < range.start)
    }

    /// Adds a range that does not begin before the last one.
    pub(super) fn add(&mut self, range: Range<usize>) {
        match self.0.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => self.0.push(range),
        }
    }

    /// The marks of a part, counted from its beginning.
    pub(super) fn within(&self, part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let first = self.0.partition_point(|range| range.end <= part.start);
        let found = self.0[first..].iter().take_while(move |range| range.start < part.end);
        found.map(move |range| range.start.max(part.start) - part.start..range.end.min(part.end) - part.start)
    }

    pub(super) fn into_ranges(self) -> Vec<Range<usize>> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_grow_together_and_parts_have_their_share() {
        let mut marks = Marks::default();
        for range in [2..4, 4..6, 6..6, 9..12] {
            marks.add(range);
        }
        assert_eq!(marks.0, [2..6, 9..12]);
        assert!(!marks.is_apart(&(12..13)) && marks.is_apart(&(13..14)) && !marks.is_apart(&(13..13)));
        let within = |part| marks.within(part).collect::<Vec<_>>();
        assert_eq!(within(0..20), [2..6, 9..12]);
        assert_eq!(within(3..10), [0..3, 6..7]);
        assert_eq!(within(6..9), []);
        assert!(within(11..12).iter().eq([&(0..1)]));
    }
}
