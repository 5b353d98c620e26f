//! Template texts by file: `quant/q8_0.wgsl.jinja` for imported ones, `acc/acc.wgsl.jinja` for those of operations.

/// The template of an operation; its file must exist under `ops/`.
macro_rules! template {
    ($path:literal) => {{
        const _: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/ops/", $path));
        $path
    }};
}

include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// The text of a template.
pub(crate) fn text(path: &str) -> Option<&'static str> {
    TEMPLATES.iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
}
