//! Template texts by file: `quant/q8_0.wgsl.jinja` for imported ones, `acc/acc.wgsl.jinja` for those of operations. The
//! package for browsers has them compressed ([`crate::packed`]).

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
    all().iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
}

#[cfg(not(packed))]
pub(crate) fn all() -> &'static [(&'static str, &'static str)] {
    TEMPLATES
}

#[cfg(packed)]
fn all() -> &'static [(&'static str, &'static str)] {
    use std::sync::LazyLock;

    static ALL: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
        let all: &'static [u8] = crate::packed::unpack(PACKED, N_BYTE).leak();
        let all = std::str::from_utf8(all).expect("what was packed comes back");
        all.split_terminator('\0').filter_map(|file| file.split_once('\n')).collect()
    });
    &ALL
}
