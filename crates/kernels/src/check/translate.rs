//! Translation of kernels to the languages of graphics APIs, by the writers that wgpu uses.

use naga::back::pipeline_constants::process_overrides;
use naga::back::{PipelineConstants, hlsl, msl, spv};
use naga::proc::BoundsCheckPolicies;
use naga::{ShaderStage, valid};

use super::{CheckError, capabilities, validated};
use crate::kernel::Kernel;

/// Language of a graphics API.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Language {
    /// Vulkan's.
    SpirV,
    /// Metal's.
    Msl,
    /// Direct3D's.
    Hlsl,
}

impl Language {
    /// All of them.
    pub const ALL: [Language; 3] = [Language::SpirV, Language::Msl, Language::Hlsl];

    /// True if naga can express all features of a kernel in it. Its writer panics on others.
    pub fn can_express(self, kernel: &Kernel) -> bool {
        let supported = match self {
            Language::SpirV => spv::supported_capabilities(),
            Language::Msl => msl::supported_capabilities(),
            Language::Hlsl => hlsl::supported_capabilities(),
        };
        supported.contains(capabilities(kernel.features))
    }
}

/// Constants that kernels divide by, of which no dispatch leaves the default of 0.
const DIVISORS: [&str; 1] = ["LDX"];

/// The kernel in another language, with the default values of its other constants: a module of words, or text.
///
/// # Errors
/// [`CheckError::Wgsl`], [`CheckError::Translation`].
///
/// # Panics
/// If [`Language::can_express`] is false.
pub fn translate(kernel: &Kernel, language: Language) -> Result<Vec<u8>, CheckError> {
    let (module, info) = validated(kernel)?;
    let entry = (ShaderStage::Compute, "main");
    let failed =
        |reason: String| CheckError::Translation { kernel: kernel.name.to_owned(), language, reason };
    let divisors = DIVISORS.iter().filter(|name| kernel.has_override(name));
    let constants: PipelineConstants = divisors.map(|name| ((*name).to_owned(), 64.0)).collect();
    let (module, info) =
        process_overrides(&module, &info, Some(entry), &constants).map_err(|e| failed(e.to_string()))?;
    write(&module, &info, language).map_err(failed)
}

fn write(module: &naga::Module, info: &valid::ModuleInfo, language: Language) -> Result<Vec<u8>, String> {
    match language {
        Language::SpirV => {
            let options = spv::Options {
                lang_version: (1, 6),
                bounds_check_policies: BoundsCheckPolicies::default(),
                zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
                ..spv::Options::default()
            };
            let pipeline =
                spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: "main".into() };
            let words = spv::write_vec(module, info, &options, Some(&pipeline)).map_err(|e| e.to_string())?;
            Ok(words.into_iter().flat_map(u32::to_le_bytes).collect())
        }
        Language::Msl => {
            let options = msl::Options {
                lang_version: (3, 2),
                zero_initialize_workgroup_memory: false,
                ..msl::Options::default()
            };
            let pipeline = msl::PipelineOptions::default();
            let (text, _) =
                msl::write_string(module, info, &options, &pipeline).map_err(|e| e.to_string())?;
            Ok(text.into_bytes())
        }
        Language::Hlsl => {
            let options = hlsl::Options {
                shader_model: hlsl::ShaderModel::V6_6,
                zero_initialize_workgroup_memory: false,
                ..hlsl::Options::default()
            };
            let mut text = String::new();
            hlsl::Writer::new(&mut text, &options, &hlsl::PipelineOptions::default())
                .write(module, info, None)
                .map_err(|e| e.to_string())?;
            Ok(text.into_bytes())
        }
    }
}

/// Names of the arrays in workgroup memory that have vectors.
///
/// # Errors
/// [`CheckError::Wgsl`].
pub fn vectors_in_workgroup_memory(kernel: &Kernel) -> Result<Vec<String>, CheckError> {
    let (module, _) = validated(kernel)?;
    let is_vectors = |var: &naga::GlobalVariable| match module.types[var.ty].inner {
        naga::TypeInner::Array { base, .. } => {
            matches!(module.types[base].inner, naga::TypeInner::Vector { .. })
        }
        _ => false,
    };
    let all = module.global_variables.iter().map(|(_, var)| var);
    let some = all.filter(|v| v.space == naga::AddressSpace::WorkGroup && is_vectors(v));
    Ok(some.map(|v| v.name.clone().unwrap_or_default()).collect())
}
