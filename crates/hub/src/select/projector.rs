//! The vision part of a model, which is a GGUF file of its own: `mmproj-*.gguf`.

use std::cmp::Reverse;

use super::Split;
use super::tag::fit;
use crate::tree::TreeFile;

/// The projector of a model among the files of its repository: of the deepest common folder, then of the same tag,
/// then of the nearest number of bits.
pub fn projector(model: &str, tree: &[TreeFile]) -> Option<usize> {
    let folders = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    let of_model = folders(model);
    let tag = last_word(model);
    let rank = |path: &str| {
        let mut n_common = of_model.iter().zip(folders(path)).take_while(|(a, b)| *a == b).count();
        n_common = n_common.min(of_model.len() - 1);
        let is_same = tag.as_deref().is_some_and(|tag| fit(path, tag).is_some());
        let distance = match (tag.as_deref().and_then(n_bit), last_word(path).as_deref().and_then(n_bit)) {
            (Some(a), Some(b)) => a.abs_diff(b),
            _ => u32::MAX,
        };
        (Reverse(n_common), !is_same, distance)
    };
    let is_projector = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
        name.contains("mmproj") && name.ends_with(".gguf")
    };
    // A folder without the model above it belongs to another model.
    let is_above = |path: &str| {
        let of_path = folders(path);
        of_path[..of_path.len() - 1].iter().zip(&of_model).all(|(a, b)| a == b)
            && of_path.len() <= of_model.len()
    };
    (0..tree.len())
        .filter(|i| is_projector(&tree[*i].path) && is_above(&tree[*i].path))
        .min_by_key(|i| rank(&tree[*i].path))
}

/// The last word of a name, which is mostly the tag.
fn last_word(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let stem = Split::of(name).map_or_else(|| name.trim_end_matches(".gguf"), |split| split.stem);
    stem.rsplit(['-', '.']).next().map(str::to_owned)
}

/// Bits of a value in a format such as `Q4_K_M`, `IQ3_XS` or `BF16`.
fn n_bit(tag: &str) -> Option<u32> {
    let digits = tag.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    #[test]
    fn the_nearest_is_chosen() {
        let rows: &[(&str, &[&str], Option<&str>)] = &[
            (
                "a-Q4_K_M.gguf",
                &["mmproj-F32.gguf", "mmproj-F16.gguf", "a-Q4_K_M.gguf"],
                Some("mmproj-F16.gguf"),
            ),
            ("a-Q8_0.gguf", &["mmproj-F16.gguf", "a-mmproj-Q8_0.gguf"], Some("a-mmproj-Q8_0.gguf")),
            ("x/a-Q8_0.gguf", &["mmproj-Q8_0.gguf", "x/mmproj-F16.gguf"], Some("x/mmproj-F16.gguf")),
            ("x/a-Q8_0.gguf", &["y/mmproj-Q8_0.gguf"], None),
            ("a-Q8_0.gguf", &["a-Q8_0.gguf", "README.md"], None),
            ("a-Q4_0-00001-of-00002.gguf", &["mmproj-BF16.gguf"], Some("mmproj-BF16.gguf")),
        ];
        for (model, paths, expected) in rows {
            let tree = tree(paths);
            assert_eq!(projector(model, &tree).map(|i| tree[i].path.as_str()), *expected, "{model}");
        }
        assert_eq!((n_bit("IQ3_XS"), n_bit("bf16"), n_bit("model")), (Some(3), Some(16), None));
    }
}
