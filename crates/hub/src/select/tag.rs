//! How well a path fits a tag such as `Q4_K_M`.

/// A fit; the least is the best.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fit {
    /// The tag is within the path rather than its last word.
    is_middle: bool,
    /// The tag follows `UD-`, another recipe of the same size.
    is_ud: bool,
}

#[cfg(not(target_arch = "wasm32"))]
impl Fit {
    /// The last word of a path, of the plain recipe.
    pub(crate) const BEST: Fit = Fit { is_middle: false, is_ud: false };
}

/// The best fit of a tag as a whole word of a path, in any case; `None` if it is none of its words.
///
/// Before the word there is the beginning or one of `-._/`, behind it one of `.-/`: `F16` is no word of `BF16`, and
/// `Q4_K` none of `Q4_K_M`.
pub(crate) fn fit(path: &str, tag: &str) -> Option<Fit> {
    // Splits and the ending are behind the last word.
    let path = path.to_ascii_lowercase();
    let stem = super::Split::of(&path)
        .map_or_else(|| path.trim_end_matches(".gguf").len(), |split| split.stem.len());
    let tag = tag.to_ascii_lowercase();
    if tag.is_empty() {
        return None;
    }
    let word = |at: usize| {
        let (before, behind) = (&path[..at], &path[at + tag.len()..]);
        let is_word = (before.is_empty() || before.ends_with(['-', '.', '_', '/']))
            && behind.starts_with(['.', '-', '/']);
        is_word.then(|| Fit { is_middle: at + tag.len() != stem, is_ud: before.ends_with("ud-") })
    };
    path.match_indices(&tag).filter_map(|(at, _)| word(at)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_ends() {
        for (path, tag, is_word) in [
            ("a-Q4_K_M.gguf", "q4_k_m", true),
            ("Q4_K_M.gguf", "Q4_K_M", true),
            ("a.Q4_K_M-00001-of-00003.gguf", "Q4_K_M", true),
            ("a_Q4_K_M.gguf", "Q4_K_M", true),
            ("a-Q4_K_M.gguf", "Q4_K", false),
            ("a-BF16.gguf", "F16", false),
            ("a-F16.gguf", "BF16", false),
            ("aF16.gguf", "F16", false),
            ("a.gguf", "gguf", false),
            ("a.gguf", "", false),
        ] {
            assert_eq!(fit(path, tag).is_some(), is_word, "{path} {tag}");
        }
    }

    #[test]
    fn the_best_word_counts() {
        let best = fit("Q8_0/a-Q8_0.gguf", "Q8_0").unwrap();
        assert!(!best.is_middle && !best.is_ud);
        assert!(best < fit("a-UD-Q8_0.gguf", "Q8_0").unwrap());
        assert!(fit("a-UD-Q8_0.gguf", "Q8_0").unwrap() < fit("Q8_0-a.gguf", "Q8_0").unwrap());
        assert!(!fit("a-Q8_0-00001-of-00002.gguf", "Q8_0").unwrap().is_middle);
    }
}
