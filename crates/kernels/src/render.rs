//! Renders every variant of every operation and checks it with naga.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use naga::valid::{Capabilities, ValidationFlags, Validator};
use serde_json::{Map, Value as Json, json};
use wgsl_pre::Renderer;

use crate::format::FORMATS;
use crate::op::{OPS, Op, Value, Variant};

/// Shared templates, by the name that `import` uses.
const SHARED: &[(&str, &str)] = &[
    ("encode/iq4_nl.wgsl.jinja", include_str!("quant/encode/iq4_nl.wgsl.jinja")),
    ("encode/q1_0.wgsl.jinja", include_str!("quant/encode/q1_0.wgsl.jinja")),
    ("encode/q2_0.wgsl.jinja", include_str!("quant/encode/q2_0.wgsl.jinja")),
    ("encode/q4_0.wgsl.jinja", include_str!("quant/encode/q4_0.wgsl.jinja")),
    ("encode/q4_1.wgsl.jinja", include_str!("quant/encode/q4_1.wgsl.jinja")),
    ("encode/q5_0.wgsl.jinja", include_str!("quant/encode/q5_0.wgsl.jinja")),
    ("encode/q5_1.wgsl.jinja", include_str!("quant/encode/q5_1.wgsl.jinja")),
    ("encode/q8_0.wgsl.jinja", include_str!("quant/encode/q8_0.wgsl.jinja")),
    ("shared/bytes.wgsl.jinja", include_str!("shared/bytes.wgsl.jinja")),
    ("shared/dot8.wgsl.jinja", include_str!("shared/dot8.wgsl.jinja")),
    ("shared/encode.wgsl.jinja", include_str!("shared/encode.wgsl.jinja")),
    ("shared/kv.wgsl.jinja", include_str!("shared/kv.wgsl.jinja")),
    ("shared/math.wgsl.jinja", include_str!("shared/math.wgsl.jinja")),
    ("shared/reduce.wgsl.jinja", include_str!("shared/reduce.wgsl.jinja")),
    ("shared/rope.wgsl.jinja", include_str!("shared/rope.wgsl.jinja")),
    ("shared/step.wgsl.jinja", include_str!("shared/step.wgsl.jinja")),
    ("shared/tensor.wgsl.jinja", include_str!("shared/tensor.wgsl.jinja")),
];

/// Why a kernel could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The template did not render.
    #[error("{kernel}: the template does not render")]
    Template {
        /// The kernel.
        kernel: String,
        /// What the renderer says.
        #[source]
        source: Box<wgsl_pre::Error>,
    },
    /// naga refuses the text.
    #[error("{kernel}: naga refuses the rendered text\n{report}")]
    Wgsl {
        /// The kernel.
        kernel: String,
        /// naga's report with the lines in question.
        report: String,
    },
    /// Something that our own rules ask for is missing.
    #[error("{kernel}: {what}")]
    Rule {
        /// The kernel.
        kernel: String,
        /// The rule that is broken.
        what: String,
    },
}

/// A rendered and checked kernel.
#[derive(Debug)]
pub struct Rendered {
    /// The kernel's name; its file is `NAME.wgsl`.
    pub name: String,
    /// WGSL without `enable` lines.
    pub source: String,
    /// Name, binding number and whether it is writable, by number.
    pub bindings: Vec<(String, u32, bool)>,
    /// Names of `override` constants, in order.
    pub overrides: Vec<String>,
    /// Uses subgroup operations.
    pub needs_subgroup: bool,
    /// Uses `f16`.
    pub needs_f16: bool,
    /// Uses cooperative matrices.
    pub needs_coop: bool,
    /// Workgroups read what others have written in the same dispatch.
    pub needs_coherent: bool,
}

/// Renders all kernels, sorted by name.
///
/// # Errors
/// The first kernel that does not render, or that naga refuses.
pub fn render_all() -> Result<Vec<Rendered>, RenderError> {
    let mut out = Vec::new();
    for op in OPS {
        let renderer = renderer(op)?;
        for variant in (op.variants)() {
            out.push(render(&renderer, op, &variant)?);
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

fn renderer(op: &Op) -> Result<Renderer, RenderError> {
    let mut r = Renderer::new();
    let formats: Vec<(String, &str)> =
        FORMATS.iter().map(|f| (format!("quant/{}.wgsl.jinja", f.name), f.template)).collect();
    let all = SHARED.iter().map(|(n, s)| ((*n).to_owned(), *s)).chain(formats);
    for (name, source) in all.chain([(op.name.to_owned(), op.template)]) {
        r.add_template(name, source)
            .map_err(|e| RenderError::Template { kernel: op.name.into(), source: Box::new(e) })?;
    }
    Ok(r)
}

/// Template variables: the variant's own, and for each format variable `x` the facts `fx`.
fn context(variant: &Variant) -> Json {
    let mut map = Map::new();
    for (name, value) in variant {
        match value {
            Value::Int(n) => map.insert((*name).into(), json!(n)),
            Value::Text(w, text) => {
                map.insert(format!("{name}_text"), json!(text));
                map.insert((*name).into(), json!(w))
            }
            Value::Word(w) => {
                if let Some(f) = FORMATS.iter().find(|f| f.name == *w && name.len() == 1) {
                    map.insert(
                        format!("f{name}"),
                        json!({ "name": f.name, "block": f.block, "unit": f.unit, "hold": f.hold(), "run": f.run, "offsets": f.offsets,
                            "bytes": f.block_bytes, "planes": f.planes.iter().map(|p| [p.offset, p.n_byte]).collect::<Vec<_>>() }),
                    );
                }
                map.insert((*name).into(), json!(w))
            }
        };
    }
    Json::Object(map)
}

fn render(renderer: &Renderer, op: &Op, variant: &Variant) -> Result<Rendered, RenderError> {
    let values: Vec<Value> = variant.iter().map(|(_, v)| *v).collect();
    let name = op.kernel_name(&values);
    let body = renderer
        .render(op.name, &context(variant))
        .map_err(|e| RenderError::Template { kernel: name.clone(), source: Box::new(e) })?;
    let vars: Vec<String> = variant.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let source = format!("// {}: {}\n{}", op.name, vars.join(" "), body.trim_start());
    let needs_f16 = source.contains("f16>") || source.contains("f16(");
    let needs_f16 = needs_f16 && source.replace("unpack2x16float", "").contains("f16");
    let needs_coop = source.contains("coop_mat");
    let needs_subgroup = source.contains("@builtin(subgroup");
    let needs_coherent = source.contains("@coherent");
    check(name, source, needs_subgroup, needs_f16, needs_coop, needs_coherent)
}

/// Parses and validates under exactly the capabilities that the kernel declares, and reflects its interface.
fn check(
    name: String,
    source: String,
    needs_subgroup: bool,
    needs_f16: bool,
    needs_coop: bool,
    needs_coherent: bool,
) -> Result<Rendered, RenderError> {
    let mut caps = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    let mut text = String::new();
    if needs_f16 {
        caps |= Capabilities::SHADER_FLOAT16;
        text.push_str("enable f16;\n");
    }
    if needs_coop {
        caps |= Capabilities::COOPERATIVE_MATRIX;
        text.push_str("enable wgpu_cooperative_matrix;\n");
    }
    if needs_coherent {
        caps |= Capabilities::MEMORY_DECORATION_COHERENT;
    }
    if needs_subgroup {
        caps |= Capabilities::SUBGROUP;
    }
    text.push_str(&source);
    let refuse = |report: String| RenderError::Wgsl { kernel: name.clone(), report };
    let options = naga::front::wgsl::Options { parse_doc_comments: false, capabilities: caps };
    let module = naga::front::wgsl::Frontend::new_with_options(options)
        .parse(&text)
        .map_err(|e| refuse(e.emit_to_string(&text)))?;
    Validator::new(ValidationFlags::all(), caps)
        .subgroup_stages(naga::valid::ShaderStages::COMPUTE)
        .subgroup_operations(naga::valid::SubgroupOperationSet::all())
        .validate(&module)
        .map_err(|e| refuse(e.emit_to_string(&text)))?;
    let rule = |what: String| RenderError::Rule { kernel: name.clone(), what };
    if module.entry_points.len() != 1 || module.entry_points[0].name != "main" {
        return Err(rule("must have one entry point, `main`".into()));
    }
    let mut bindings = Vec::new();
    for (_, var) in module.global_variables.iter() {
        let (Some(binding), Some(var_name)) = (var.binding, &var.name) else { continue };
        let naga::AddressSpace::Storage { access } = var.space else {
            return Err(rule(format!("`{var_name}` is no storage buffer")));
        };
        if binding.group != 0 {
            return Err(rule(format!("`{var_name}` is not in group 0")));
        }
        bindings.push((var_name.clone(), binding.binding, access.contains(naga::StorageAccess::STORE)));
    }
    bindings.sort_by_key(|b| b.1);
    let overrides = module.overrides.iter().filter_map(|(_, o)| o.name.clone()).collect();
    Ok(Rendered { name, source, bindings, overrides, needs_subgroup, needs_f16, needs_coop, needs_coherent })
}

/// The files of `rendered/`: name to text.
pub fn files(rendered: &[Rendered]) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut index = String::from(
        "// Generated by `cargo xtask gen-kernels` from the templates; do not edit.\n\n\
         /// All rendered kernels, sorted by name.\n\
         #[rustfmt::skip]\npub static KERNELS: &[Kernel] = &[\n",
    );
    for r in rendered {
        files.insert(format!("{}.wgsl", r.name), r.source.clone());
        let _ = write!(
            index,
            "    Kernel {{\n        name: {:?},\n        source: include_str!(\"../rendered/{}.wgsl\"),\n        \
             needs_subgroup: {},\n        needs_f16: {},\n        needs_coop: {},\n        needs_coherent: {},\n        bindings: &[",
            r.name, r.name, r.needs_subgroup, r.needs_f16, r.needs_coop, r.needs_coherent
        );
        for (name, at, write) in &r.bindings {
            let access = if *write { "ReadWrite" } else { "Read" };
            let _ = write!(index, "Binding {{ name: {name:?}, index: {at}, access: Access::{access} }}, ");
        }
        let _ = write!(index, "],\n        overrides: &{:?},\n    }},\n", r.overrides);
    }
    index.push_str("];\n");
    files.insert("index.rs".into(), index);
    files
}
