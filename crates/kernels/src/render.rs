//! Rendering of kernels by name: the variants, and their templates, on first use.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use serde_json::{Map, Value as Json, json};
use wgsl_pre::{LoadError, Loader, Renderer, Source};

use crate::act::ActivationPrecision;
use crate::caps::Features;
use crate::encode;
use crate::format::{BitTranspose, FORMATS, Plane};
use crate::kernel::{Access, Binding, Kernel};
use crate::op::{Op, Value, Variant};
use crate::templates;

/// The variants of an operation, by kernel name.
type Variants = HashMap<String, Variant>;

/// Variants of the operations seen so far, built once.
static VARIANTS: LazyLock<RwLock<HashMap<&'static str, &'static Variants>>> = LazyLock::new(RwLock::default);

/// The variants of an operation, by kernel name; none if the package for browsers omits its template.
pub(crate) fn variants(op: &'static Op) -> &'static Variants {
    if let Some(all) = VARIANTS.read().unwrap_or_else(PoisonError::into_inner).get(op.name) {
        return all;
    }
    let mut all = Variants::new();
    let delivered = !cfg!(for_pages) || op.on_web();
    for variant in delivered.then_some(op.variants).into_iter().flat_map(|variants| variants()) {
        let values: Vec<Value> = variant.iter().map(|(_, v)| *v).collect();
        let twice = all.insert(op.kernel_name(&values), variant);
        debug_assert!(twice.is_none(), "two kernels of {} have the same name: {twice:?}", op.name);
    }
    let mut made = VARIANTS.write().unwrap_or_else(PoisonError::into_inner);
    made.entry(op.name).or_insert_with(|| Box::leak(Box::new(all)))
}

/// Kernels rendered so far. Each is leaked; the set of names is bounded.
static RENDERED: LazyLock<RwLock<HashMap<&'static str, &'static Kernel>>> = LazyLock::new(RwLock::default);

static RENDERER: LazyLock<Renderer> = LazyLock::new(|| {
    let mut r = Renderer::new();
    r.set_loader(Templates(str::to_owned));
    r
});

/// Templates by file; the function post-processes the text.
struct Templates(fn(&str) -> String);

impl Loader for Templates {
    fn load(&self, path: &str, _: Option<&str>) -> Result<Source, LoadError> {
        let text = templates::text(path);
        let text = text.ok_or_else(|| LoadError::NotFound { tried: vec![path.to_owned()] })?;
        Ok(Source { name: path.to_owned(), text: self.0(text) })
    }
}

/// The kernel of this name, rendered on first use; `None` if the operation has no such variant.
///
/// # Panics
/// If its template does not render: `cargo xtask gen-kernels` and the tests render every one.
pub(crate) fn find(op: &'static Op, name: &str) -> Option<&'static Kernel> {
    if let Some(k) = RENDERED.read().unwrap_or_else(PoisonError::into_inner).get(name) {
        return Some(k);
    }
    let (name, variant) = variants(op).get_key_value(name)?;
    let source = text(op, variant).unwrap_or_else(|e| panic!("{name} does not render: {e}"));
    let mut rendered = RENDERED.write().unwrap_or_else(PoisonError::into_inner);
    Some(rendered.entry(name).or_insert_with(|| {
        let source: &'static str = source.leak();
        Box::leak(Box::new(reflect(name, op.features(variant), source)))
    }))
}

/// The WGSL text of a variant.
pub(crate) fn text(op: &Op, variant: &Variant) -> Result<String, wgsl_pre::Error> {
    text_by(&RENDERER, op, variant)
}

fn text_by(renderer: &Renderer, op: &Op, variant: &Variant) -> Result<String, wgsl_pre::Error> {
    let body = renderer.render(op.template, &context(variant))?;
    let vars: Vec<String> = variant.iter().map(|(n, v)| format!("{n}={v}")).collect();
    Ok(format!("// {}: {}\n{}", op.name, vars.join(" "), body.trim_start()))
}

/// Template variables: the variant's own, and for each format variable `x` the properties `fx`.
fn context(variant: &Variant) -> Map<String, Json> {
    let mut map = Map::new();
    for (name, value) in variant {
        match value {
            Value::Int(n) => map.insert((*name).to_owned(), Json::from(*n)),
            Value::Text(w, text) => {
                map.insert(format!("{name}_text"), Json::from(*text));
                map.insert((*name).to_owned(), Json::from(*w))
            }
            Value::Word(w) | Value::With(w, _) => {
                if let Some(f) = FORMATS.iter().find(|f| f.name == *w && name.len() == 1) {
                    let wide = |act| f.wide_for(act).map_or(0, |w| w.runs);
                    let facts = json!({
                        "name": f.name,
                        "block": f.block,
                        "unit": f.unit,
                        "hold": f.hold(),
                        "run": f.run,
                        "offsets": f.offsets,
                        "bytes": f.block_bytes,
                        "wide16": wide(ActivationPrecision::I16),
                        "wide8": wide(ActivationPrecision::I8),
                        "book": f.book(),
                        "group": encode::group(f.name),
                        "parts": f.planes.iter().map(part).collect::<Vec<_>>(),
                        "planes": f.planes.iter().map(|p| p.n_byte).collect::<Vec<_>>(),
                    });
                    map.insert(format!("f{name}"), facts);
                }
                map.insert((*name).to_owned(), Json::from(*w))
            }
        };
    }
    map
}

/// Offset and length of a plane, and whether its bits are transposed to nibble planes.
fn part(p: &Plane) -> Json {
    json!([p.offset, p.n_byte, p.transpose == BitTranspose::NibblePlanes])
}

/// Reads bindings and constants from a kernel's text. A test compares the result with naga's for every kernel.
pub(crate) fn reflect(name: &'static str, features: Features, source: &'static str) -> Kernel {
    let (mut bindings, mut overrides) = (Vec::new(), Vec::new());
    let word_end = |s: &str| s.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(s.len());
    for line in source.lines().map(|l| l.split("//").next().unwrap_or_default()) {
        for (at, _) in line.match_indices("override ") {
            if !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                let rest = &line[at + "override ".len()..];
                overrides.push(&rest[..word_end(rest)]);
            }
        }
        for rest in line.split("@binding(").skip(1) {
            let (index, rest) = rest.split_once(')').unwrap_or_default();
            let (access, rest) = rest.split_once('>').unwrap_or_default();
            let rest = rest.trim_start();
            let index = index.parse().unwrap_or(u32::MAX);
            let access = if access.ends_with("read_write") { Access::ReadWrite } else { Access::Read };
            let at = bindings.partition_point(|b: &Binding| b.index <= index);
            bindings.insert(at, Binding { name: &rest[..word_end(rest)], index, access });
        }
    }
    Kernel { name, source, features, bindings, overrides }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::OPS;
    use crate::shorter::shorter;

    #[test]
    fn shorter_templates_are_the_same_kernels() {
        let mut renderer = Renderer::new();
        renderer.set_loader(Templates(shorter));
        // Ignores white space and comments.
        let plain = |text: String| -> String {
            let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
            lines.flat_map(|line| line.chars().filter(|c| !c.is_whitespace())).collect()
        };
        for op in OPS {
            // A sample: all variants would take a minute.
            let variants = (op.variants)();
            for variant in variants.iter().step_by(1 + variants.len() / 40) {
                let [long, short] =
                    [&*RENDERER, &renderer].map(|r| text_by(r, op, variant).expect("a kernel"));
                assert!(short.len() <= long.len());
                assert_eq!(plain(short), plain(long), "{}", op.name);
            }
        }
    }
}
