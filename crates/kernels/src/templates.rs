//! Template texts by file: `quant/q8_0.wgsl.jinja` for imported ones, `acc/acc.wgsl.jinja` for those of operations.

/// The template of an operation; its file must exist under `ops/`.
macro_rules! template {
    ($path:literal) => {{
        const _: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/ops/", $path));
        $path
    }};
}

include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// True for a path that is in a list. A loop and not a pattern, which would be 11 kB of code.
const fn is_one_of(path: &str, all: &[&[u8]]) -> bool {
    let (path, mut i) = (path.as_bytes(), 0);
    while i < all.len() {
        let mut n = 0;
        while n < path.len() && n < all[i].len() && path[n] == all[i][n] {
            n += 1;
        }
        if n == path.len() && n == all[i].len() {
            return true;
        }
        i += 1;
    }
    false
}

/// The text of a template.
pub(crate) fn text(path: &str) -> Option<&'static str> {
    TEMPLATES.iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
}
