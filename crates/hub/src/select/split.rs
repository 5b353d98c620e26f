//! Split sets: `NAME-00001-of-00003.gguf`, and safetensors in the same way.

#[cfg(not(target_arch = "wasm32"))]
use std::collections::BTreeSet;
use std::collections::HashMap;

use crate::error::HubError;
use crate::tree::TreeFile;

const ENDINGS: [&str; 3] = [".gguf", ".GGUF", ".safetensors"];

/// The place of a file in a split set.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Split<'p> {
    /// The path before the numbers.
    pub stem: &'p str,
    /// From 1.
    pub part: u32,
    /// Parts of the set.
    pub n_part: u32,
    ending: &'p str,
}

impl<'p> Split<'p> {
    /// Reads the numbers of a path; `None` for a file of its own.
    pub fn of(path: &'p str) -> Option<Split<'p>> {
        let name = ENDINGS.iter().find_map(|ending| path.strip_suffix(ending))?;
        let (rest, n_part) = name.rsplit_once("-of-")?;
        let (stem, part) = rest.rsplit_once('-')?;
        let number = |digits: &str| {
            let is_number = digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten()
        };
        let (part, n_part) = (number(part)?, number(n_part)?);
        (1 <= part && part <= n_part).then(|| Split { stem, part, n_part, ending: &path[name.len()..] })
    }

    /// The path of a part of the same set.
    pub fn path(&self, part: u32) -> String {
        format!("{}-{part:05}-of-{:05}{}", self.stem, self.n_part, self.ending)
    }
}

/// All parts of the set that a file belongs to, in order; the file alone if it is none.
///
/// # Errors
/// [`HubError::MissingPart`].
pub(crate) fn parts(file: usize, tree: &[TreeFile]) -> Result<Vec<usize>, HubError> {
    let path = &tree[file].path;
    let Some(split) = Split::of(path) else { return Ok(vec![file]) };
    // Sets have up to 99999 parts.
    let places: HashMap<&str, usize> =
        tree.iter().enumerate().map(|(i, file)| (file.path.as_str(), i)).collect();
    (1..=split.n_part)
        .map(|part| {
            let path = split.path(part);
            let found = places.get(path.as_str()).copied();
            found.ok_or(HubError::MissingPart { path, n_part: split.n_part })
        })
        .collect()
}

/// Paths, with the missing parts of their split sets; sorted.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn with_parts(paths: Vec<String>) -> Vec<String> {
    let sets: BTreeSet<_> = paths
        .iter()
        .filter_map(|path| Split::of(path))
        .map(|split| (split.stem, split.n_part, split.ending))
        .collect();
    let parts = |(stem, n_part, ending)| {
        (1..=n_part).map(move |part| Split { stem, part, n_part, ending }.path(part))
    };
    let parts: Vec<String> = sets.into_iter().flat_map(parts).collect();
    paths.into_iter().chain(parts).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_parts() {
        let split = Split::of("Q8_0/a-Q8_0-00002-of-00010.gguf").unwrap();
        assert_eq!((split.stem, split.part, split.n_part), ("Q8_0/a-Q8_0", 2, 10));
        assert_eq!(split.path(10), "Q8_0/a-Q8_0-00010-of-00010.gguf");
        for path in [
            "a.gguf",
            "a-00000-of-00002.gguf",
            "a-00003-of-00002.gguf",
            "a-1-of-2.gguf",
            "a-+0001-of-00002.gguf",
        ] {
            assert_eq!(Split::of(path), None, "{path}");
        }
    }

    #[test]
    fn missing_parts_are_named() {
        let paths = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let all = ["a-00001-of-00003.gguf", "a-00002-of-00003.gguf", "a-00003-of-00003.gguf", "b.gguf"];
        assert_eq!(with_parts(paths(&all[1..])), paths(&all));
        assert_eq!(with_parts(paths(&["b.gguf", "a.json"])), paths(&["a.json", "b.gguf"]));
    }
}
