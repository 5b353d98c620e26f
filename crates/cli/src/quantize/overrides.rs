//! Types for single tensors, by patterns of their names.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use ggml_format::{GgmlType, TYPES, TypeInfo};
use regex::Regex;

/// A type for the tensors whose names contain a match of the pattern.
#[derive(Clone, Debug)]
pub(super) struct Override {
    pub(super) pattern: Regex,
    pub(super) ty: GgmlType,
}

/// `PATTERN=TYPE`.
pub(super) fn parse_override(text: &str) -> Result<Override, String> {
    // A type has no `=` in its name, a pattern may.
    let (pattern, ty) = text.rsplit_once('=').ok_or("expected PATTERN=TYPE")?;
    if pattern.is_empty() {
        return Err("expected a pattern before `=`".into());
    }
    let pattern =
        Regex::new(pattern).map_err(|e| format!("`{pattern}` is not a valid regular expression: {e}"))?;
    Ok(Override { pattern, ty: parse_type(ty)? })
}

/// True if tensors in a file can be quantised to this type. Activation types (block-quantised inputs of products)
/// cannot: no kernel reads them as weights.
fn is_target(t: &TypeInfo) -> bool {
    t.quantize.is_some() && !matches!(t.ty, GgmlType::Q8_1 | GgmlType::Q8_K)
}

/// Parses a type that tensors can be quantised to.
pub(super) fn parse_type(name: &str) -> Result<GgmlType, String> {
    GgmlType::from_name(name).filter(|ty| is_target(ty.info())).ok_or_else(|| {
        let known = TYPES.iter().filter(|t| is_target(t)).map(|t| t.name);
        format!("cannot quantise to `{name}` (known: {})", known.collect::<Vec<_>>().join(", "))
    })
}

/// Overrides from a file, separated by spaces or newlines.
pub(super) fn read_overrides(path: &Path) -> Result<Vec<Override>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let located = |word: &str, e: String| anyhow!("`{}`: `{word}`: {e}", path.display());
    text.split_whitespace().map(|word| parse_override(word).map_err(|e| located(word, e))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_that_say_nothing_are_refused() {
        assert_eq!(parse_override("attn_v").unwrap_err(), "expected PATTERN=TYPE");
        assert!(parse_override("=q8_0").is_err());
        assert!(
            parse_override("attn_(v=q8_0")
                .unwrap_err()
                .starts_with("`attn_(v` is not a valid regular expression")
        );
        for ty in ["i8", "q8_1", "q8_K"] {
            let error = parse_override(&format!("attn_v={ty}")).unwrap_err();
            assert!(error.starts_with(&format!("cannot quantise to `{ty}` (known: f32")), "{error}");
            assert!(!error.contains(&format!(" {ty},")), "{error}");
        }
    }

    #[test]
    fn a_file_may_have_many_overrides() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("types.txt");
        std::fs::write(&path, "attn_v=q8_0 ffn_(up|gate)=IQ2_XS\n\\.1\\.=bf16\n").unwrap();
        let found: Vec<_> =
            read_overrides(&path).unwrap().iter().map(|o| format!("{}={}", o.pattern, o.ty)).collect();
        assert_eq!(found, ["attn_v=q8_0", "ffn_(up|gate)=iq2_xs", "\\.1\\.=bf16"]);
        std::fs::write(&path, "attn_v=q8_0 attn_k").unwrap();
        let error = read_overrides(&path).unwrap_err().to_string();
        assert!(error.ends_with("types.txt`: `attn_k`: expected PATTERN=TYPE"), "{error}");
    }
}
