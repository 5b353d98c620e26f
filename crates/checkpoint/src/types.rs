//! The types of a virtual file's tensors.

use ggml_format::{
    FILE_TYPES, FileType, GgmlType, MixCounters, MixError, ModelFacts, mix_order, tensor_type,
};

use crate::safetensors::Dtype;
use crate::virtual_gguf::VirtualGguf;

/// The requested types of matrices; vectors, norms, biases, routers and convolutions are f32 always.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Types {
    /// As in the checkpoint where GGUF has the type; 8-bit floats and other codes as q8_0.
    #[default]
    Auto,
    /// The same, but codes as f32, which loses nothing.
    Exact,
    /// A mix of types, as of a quantised file.
    Mix(FileType),
}

/// Words in names of matrices that are small and must not be rounded.
const SMALL: &[&str] = &["ffn_gate_inp"];

impl Types {
    /// Sets the types of all tensors, and `general.file_type`.
    ///
    /// `dtype` is the type of the checkpoint's matrices.
    ///
    /// # Errors
    /// [`MixError`] if rows of a matrix fit no type of the mix.
    pub(crate) fn apply(
        self,
        gguf: &mut VirtualGguf,
        dtype: Option<Dtype>,
        facts: ModelFacts,
    ) -> Result<FileType, MixError> {
        let plain = dtype.and_then(Dtype::ggml).unwrap_or(GgmlType::F32);
        let mix = match self {
            Types::Mix(mix) => mix,
            Types::Auto | Types::Exact => file_type(gguf, plain),
        };
        let mut order: Vec<usize> = (0..gguf.tensors.len()).collect();
        order.sort_by(|&a, &b| mix_order(&gguf.tensors[a].name).cmp(&mix_order(&gguf.tensors[b].name)));
        let mut counters = MixCounters::default();
        for i in order {
            let tensor = &mut gguf.tensors[i];
            let of_mix = tensor_type(mix, &tensor.name, &tensor.ne, &facts, &mut counters);
            let is_small = SMALL.iter().any(|word| tensor.name.contains(word));
            let native = tensor.recipe.native();
            let is_coded = tensor.recipe.is_coded();
            tensor.ty = match (of_mix, self) {
                // Codes that ggml has a type for stay as they are.
                _ if native == GgmlType::MXFP4 => native,
                (Ok(None), _) => GgmlType::F32,
                _ if is_small => GgmlType::F32,
                (of_mix, Types::Mix(_)) => of_mix?.unwrap_or(GgmlType::F32),
                (_, Types::Exact) if is_coded => GgmlType::F32,
                _ if native != GgmlType::F32 => native,
                (_, Types::Auto) if is_coded && tensor.ne[0].is_multiple_of(32) => GgmlType::Q8_0,
                _ if is_coded => GgmlType::F32,
                _ => plain,
            };
        }
        Ok(mix)
    }
}

/// The file type whose base is the type of the first matrix.
fn file_type(gguf: &VirtualGguf, plain: GgmlType) -> FileType {
    let matrices = gguf.tensors.iter().filter(|t| t.is_matrix() && t.name.starts_with("blk."));
    let first = matrices.map(|t| t.recipe.native()).find(|ty| *ty != GgmlType::F32).unwrap_or(plain);
    FILE_TYPES.iter().find(|row| row.base == first).map_or(FileType::F32, |row| row.file_type)
}
