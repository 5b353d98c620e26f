//! Checks every kernel with naga, under the features that it declares and the limits of its feature set.

mod index;
mod translate;
mod workgroup;

use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};

use crate::caps::{Caps, FeatureSet, Features};
use crate::catalogue;
use crate::kernel::{Access, Dialect, Kernel};
use crate::render::{reflect, text};

pub use index::Index;
pub use translate::{Language, translate, vectors_in_workgroup_memory};
pub use workgroup::{Size, Workgroup};

/// Reasons for rejecting a kernel.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The template did not render.
    #[error("{kernel}: template failed to render")]
    Template {
        /// The kernel.
        kernel: String,
        /// The renderer's report.
        #[source]
        source: Box<wgsl_pre::Error>,
    },
    /// naga rejects the text.
    #[error("{kernel}: naga rejects the rendered text under its declared features ({features})\n{report}")]
    Wgsl {
        /// The kernel.
        kernel: String,
        /// The features.
        features: String,
        /// naga's report with the lines in question.
        report: String,
    },
    /// naga cannot write it in another language.
    #[error("{kernel}: naga does not translate it to {language:?}: {reason}")]
    Translation {
        /// The kernel.
        kernel: String,
        /// The language.
        language: Language,
        /// naga's report.
        reason: String,
    },
    /// A rule of ours is broken.
    #[error("{kernel}: {what}")]
    Rule {
        /// The kernel.
        kernel: String,
        /// The rule that is broken.
        what: String,
    },
}

/// Storage buffers that WebGPU guarantees.
const MAX_BINDING: usize = 8;

/// Renders and checks every kernel on all CPU cores, and returns their index.
///
/// # Errors
/// The first kernel, by name, that does not render or that is refused.
pub fn check_all() -> Result<Index, CheckError> {
    check_these(&Kernel::names())
}

/// The same for some kernels.
///
/// # Errors
/// As [`check_all`].
///
/// # Panics
/// If a name is not one of [`Kernel::names`].
pub fn check_these(names: &[&'static str]) -> Result<Index, CheckError> {
    Ok(index::files(on_all_cores(names, line_of)?))
}

/// Renders some kernels without checking them, and returns the hashes that end their lines in the index.
///
/// # Errors
/// The first kernel, by name, that does not render.
///
/// # Panics
/// If a name is not one of [`Kernel::names`].
pub fn hashes(names: &[&'static str]) -> Result<Vec<(&'static str, u64)>, CheckError> {
    on_all_cores(names, |name| Ok(index::hash(&rendered(name)?)))
}

/// The name and result of each kernel, in no order.
fn on_all_cores<T: Send>(
    names: &[&'static str],
    of: impl Fn(&'static str) -> Result<T, CheckError> + Sync,
) -> Result<Vec<(&'static str, T)>, CheckError> {
    let n_thread = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let of = &of;
    let results: Vec<Result<Vec<_>, CheckError>> = std::thread::scope(|s| {
        let work = |i: usize| {
            let some: Vec<&'static str> = names.iter().skip(i).step_by(n_thread).copied().collect();
            s.spawn(move || some.into_iter().map(|name| Ok((name, of(name)?))).collect())
        };
        let threads: Vec<_> = (0..n_thread).map(work).collect();
        threads.into_iter().map(|t| t.join().expect("checking a kernel does not panic")).collect()
    });
    Ok(results.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The text of a kernel.
fn rendered(name: &'static str) -> Result<String, CheckError> {
    let (op, variant) = catalogue::variant(name).expect("a name of the list");
    text(op, variant).map_err(|e| CheckError::Template { kernel: name.to_owned(), source: Box::new(e) })
}

/// Checks a kernel, and returns its line in the index.
fn line_of(name: &'static str) -> Result<String, CheckError> {
    rendered(name)?;
    let (op, variant) = catalogue::variant(name).expect("a name of the list");
    let kernel = Kernel::find(name).expect("a name of the list");
    let size = check(kernel, op.set_of(variant))?;
    Ok(index::line(kernel, size))
}

/// Checks another text in the place of a kernel, under the features and limits that the kernel has.
///
/// # Errors
/// [`CheckError`], as [`check_all`].
pub fn check_in_place_of(kernel: &Kernel, source: &'static str) -> Result<Size, CheckError> {
    let (op, variant) = catalogue::variant(kernel.name).expect("kernels are in the catalogue");
    check(&reflect(kernel.name, kernel.features, source), op.set_of(variant))
}

/// The workgroups of a kernel, which a dispatch may size by its constants.
///
/// # Errors
/// [`CheckError`] if naga refuses it.
pub fn workgroup(kernel: &Kernel) -> Result<Workgroup, CheckError> {
    Ok(Workgroup(validated(kernel)?.0))
}

/// The features in naga's terms, plus those that WGSL always has: conversions of f16 packed in u32.
fn capabilities(features: Features) -> Capabilities {
    let all = [
        (features.subgroup, Capabilities::SUBGROUP),
        (features.f16, Capabilities::SHADER_FLOAT16),
        (features.coop, Capabilities::COOPERATIVE_MATRIX),
        (features.coherent, Capabilities::MEMORY_DECORATION_COHERENT),
    ];
    let declared = all.into_iter().filter(|c| c.0).map(|c| c.1);
    Capabilities::SHADER_FLOAT16_IN_FLOAT32 | declared.collect::<Capabilities>()
}

/// Parses and validates with exactly the declared features.
fn validated(kernel: &Kernel) -> Result<(naga::Module, ModuleInfo), CheckError> {
    let capabilities = capabilities(kernel.features);
    let text = kernel.text(Dialect::Native);
    let refuse = |report: String| {
        let features = kernel.features.words().collect::<Vec<_>>().join(", ");
        let features = if features.is_empty() { "none".to_owned() } else { features };
        CheckError::Wgsl { kernel: kernel.name.to_owned(), features, report }
    };
    let options = naga::front::wgsl::Options { parse_doc_comments: false, capabilities };
    let module = naga::front::wgsl::Frontend::new_with_options(options)
        .parse(&text)
        .map_err(|e| refuse(e.emit_to_string(&text)))?;
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .validate(&module)
        .map_err(|e| refuse(e.emit_to_string(&text)))?;
    Ok((module, info))
}

/// Validates, compares the interface with the one that `reflect` found, and checks the limits of the feature set.
fn check(kernel: &Kernel, set: FeatureSet) -> Result<Size, CheckError> {
    let (module, _) = validated(kernel)?;
    let rule = |what: String| CheckError::Rule { kernel: kernel.name.to_owned(), what };
    if module.entry_points.len() != 1 || module.entry_points[0].name != "main" {
        return Err(rule("must have one entry point, `main`".into()));
    }
    let mut bindings = Vec::new();
    for (_, var) in module.global_variables.iter() {
        let (Some(binding), Some(name)) = (var.binding, &var.name) else { continue };
        let naga::AddressSpace::Storage { access } = var.space else {
            return Err(rule(format!("`{name}` is not a storage buffer")));
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
        return Err(rule(format!("its bindings were parsed as {read:?}, but naga finds {bindings:?}")));
    }
    if bindings.len() > MAX_BINDING {
        return Err(rule(format!("it binds {} buffers, WebGPU guarantees {MAX_BINDING}", bindings.len())));
    }
    let overrides: Vec<&str> = module.overrides.iter().filter_map(|(_, o)| o.name.as_deref()).collect();
    if kernel.overrides != overrides {
        return Err(rule(format!(
            "its constants were parsed as {:?}, but naga finds {overrides:?}",
            kernel.overrides
        )));
    }
    let size = Workgroup(module).size(&[]);
    let size = size.ok_or_else(|| rule("the workgroup size is not a constant expression".into()))?;
    let limit = limits(set);
    if size.threads > limit.threads {
        let (found, most, set) = (size.threads, limit.threads, set.word());
        return Err(rule(format!("a workgroup has {found} threads, but at most {most} in the set `{set}`")));
    }
    if size.n_byte > limit.n_byte {
        let (found, most, set) = (size.n_byte, limit.n_byte, set.word());
        return Err(rule(format!(
            "a workgroup takes {found} bytes of memory, but at most {most} in the set `{set}`"
        )));
    }
    Ok(size)
}

/// Largest workgroup of a feature set with default constants; dispatches may ask for more where a device allows it.
///
/// GPUs with cooperative matrices exceed WebGPU's guarantees, and dispatches of their kernels rely on it.
fn limits(set: FeatureSet) -> Size {
    let Caps { max_threads: threads, max_workgroup_bytes: n_byte, .. } = Caps::base();
    match set {
        FeatureSet::Coop => Size { threads: 2 * threads, n_byte: 3 * n_byte },
        _ => Size { threads, n_byte },
    }
}
