//! Context shifts.

/// The remainder of a full context: the first `keep` tokens, and the newer half of the others. `None` if nothing could
/// be dropped.
///
/// The remaining tokens change positions and were computed after others, so they run again.
pub(crate) fn shifted(tokens: &[u32], keep: usize) -> Option<Vec<u32>> {
    let (kept, others) = tokens.split_at(keep.min(tokens.len()));
    let n_dropped = others.len() / 2;
    (n_dropped > 0).then(|| [kept, &others[n_dropped..]].concat())
}

#[cfg(test)]
mod tests {
    use super::shifted;

    #[test]
    fn the_beginning_and_the_newer_half_are_left() {
        assert_eq!(shifted(&[1, 2, 3, 4, 5, 6], 2), Some(vec![1, 2, 5, 6]));
        assert_eq!(shifted(&[1, 2, 3, 4, 5], 0), Some(vec![3, 4, 5]));
        assert_eq!(shifted(&[1, 2, 3], 1), Some(vec![1, 3]));
        assert_eq!(shifted(&[1, 2, 3], 2), None);
        assert_eq!(shifted(&[1, 2, 3], 9), None);
    }
}
