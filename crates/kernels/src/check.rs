//! Checks every kernel with naga.

use naga::valid::{Capabilities, ValidationFlags, Validator};

use crate::catalogue;
use crate::kernel::{Access, Dialect, Kernel};
use crate::render::text;

/// Why a kernel is not good.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
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

/// Renders and checks every kernel, on all processors.
///
/// # Errors
/// The first kernel, by name, that does not render or that is refused.
pub fn check_all() -> Result<usize, CheckError> {
    let names = Kernel::names();
    let n_thread = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let results: Vec<Result<(), CheckError>> = std::thread::scope(|s| {
        let work = |i: usize| {
            let some: Vec<&str> = names.iter().skip(i).step_by(n_thread).copied().collect();
            s.spawn(move || some.into_iter().try_for_each(check_named))
        };
        let threads: Vec<_> = (0..n_thread).map(work).collect();
        threads.into_iter().map(|t| t.join().expect("checking a kernel does not panic")).collect()
    });
    results.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(names.len())
}

fn check_named(name: &str) -> Result<(), CheckError> {
    let (op, variant) = catalogue::variant(name).expect("a name of the list");
    text(op, variant).map_err(|e| CheckError::Template { kernel: name.to_owned(), source: Box::new(e) })?;
    check(Kernel::find(name).expect("a name of the list"))
}

/// Parses and validates under exactly the capabilities that the kernel declares, and compares its interface.
fn check(kernel: &Kernel) -> Result<(), CheckError> {
    let mut caps = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    if kernel.needs_f16 {
        caps |= Capabilities::SHADER_FLOAT16;
    }
    if kernel.needs_coop {
        caps |= Capabilities::COOPERATIVE_MATRIX;
    }
    if kernel.needs_coherent {
        caps |= Capabilities::MEMORY_DECORATION_COHERENT;
    }
    if kernel.needs_subgroup {
        caps |= Capabilities::SUBGROUP;
    }
    let text = kernel.text(Dialect::Native);
    let refuse = |report: String| CheckError::Wgsl { kernel: kernel.name.to_owned(), report };
    let options = naga::front::wgsl::Options { parse_doc_comments: false, capabilities: caps };
    let module = naga::front::wgsl::Frontend::new_with_options(options)
        .parse(&text)
        .map_err(|e| refuse(e.emit_to_string(&text)))?;
    Validator::new(ValidationFlags::all(), caps)
        .subgroup_stages(naga::valid::ShaderStages::COMPUTE)
        .subgroup_operations(naga::valid::SubgroupOperationSet::all())
        .validate(&module)
        .map_err(|e| refuse(e.emit_to_string(&text)))?;
    let rule = |what: String| CheckError::Rule { kernel: kernel.name.to_owned(), what };
    if module.entry_points.len() != 1 || module.entry_points[0].name != "main" {
        return Err(rule("must have one entry point, `main`".into()));
    }
    let mut bindings = Vec::new();
    for (_, var) in module.global_variables.iter() {
        let (Some(binding), Some(name)) = (var.binding, &var.name) else { continue };
        let naga::AddressSpace::Storage { access } = var.space else {
            return Err(rule(format!("`{name}` is no storage buffer")));
        };
        if binding.group != 0 {
            return Err(rule(format!("`{name}` is not in group 0")));
        }
        let write = access.contains(naga::StorageAccess::STORE);
        bindings.push((name.as_str(), binding.binding, if write { Access::ReadWrite } else { Access::Read }));
    }
    bindings.sort_by_key(|b| b.1);
    let read: Vec<_> = kernel.bindings.iter().map(|b| (b.name, b.index, b.access)).collect();
    if read != bindings {
        return Err(rule(format!("its bindings read as {read:?}, but naga finds {bindings:?}")));
    }
    if bindings.len() > 8 {
        return Err(rule(format!("it binds {} buffers, WebGPU guarantees 8", bindings.len())));
    }
    let overrides: Vec<&str> = module.overrides.iter().filter_map(|(_, o)| o.name.as_deref()).collect();
    if kernel.overrides != overrides {
        return Err(rule(format!(
            "its constants read as {:?}, but naga finds {overrides:?}",
            kernel.overrides
        )));
    }
    Ok(())
}
