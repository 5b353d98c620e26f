//! File types: the value of `general.file_type`, which describes a file as a whole, such as `Q4_K_M`.

use std::fmt;

use crate::types::GgmlType;

/// A quantisation mix: the recipe for the types of a model's tensors, with llama.cpp's names.
///
/// The number in a file is informational; each tensor's own type is authoritative.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[allow(non_camel_case_types, reason = "these are llama.cpp's own names")]
#[allow(missing_docs, reason = "a variant is documented by its row in FILE_TYPES")]
pub enum FileType {
    F32,
    F16,
    Q4_0,
    Q4_1,
    Q8_0,
    Q5_0,
    Q5_1,
    Q2_K,
    Q3_K_S,
    Q3_K_M,
    Q3_K_L,
    Q4_K_S,
    Q4_K_M,
    Q5_K_S,
    Q5_K_M,
    Q6_K,
    IQ2_XXS,
    IQ2_XS,
    Q2_K_S,
    IQ3_XS,
    IQ3_XXS,
    IQ1_S,
    IQ4_NL,
    IQ3_S,
    IQ3_M,
    IQ2_S,
    IQ2_M,
    IQ4_XS,
    IQ1_M,
    BF16,
    TQ1_0,
    TQ2_0,
    MXFP4_MOE,
    NVFP4,
    Q1_0,
    Q2_0,
}

/// One row of [`FILE_TYPES`].
#[derive(Copy, Clone, Debug)]
pub struct FileTypeInfo {
    /// The file type of this row.
    pub file_type: FileType,
    /// The value of `general.file_type`; not to be confused with [`GgmlType::id`].
    pub id: u32,
    /// llama.cpp's name of the file type, as its quantizer takes it.
    pub name: &'static str,
    /// llama.cpp's name of the file type, as it describes models.
    pub title: &'static str,
    /// The type of most matrices in the file.
    pub base: GgmlType,
}

/// All file types, in the order of [`FileType`]'s variants.
pub static FILE_TYPES: &[FileTypeInfo] = &[
    row(FileType::F32, 0, "F32", "all F32", GgmlType::F32),
    row(FileType::F16, 1, "F16", "F16", GgmlType::F16),
    row(FileType::Q4_0, 2, "Q4_0", "Q4_0", GgmlType::Q4_0),
    row(FileType::Q4_1, 3, "Q4_1", "Q4_1", GgmlType::Q4_1),
    row(FileType::Q8_0, 7, "Q8_0", "Q8_0", GgmlType::Q8_0),
    row(FileType::Q5_0, 8, "Q5_0", "Q5_0", GgmlType::Q5_0),
    row(FileType::Q5_1, 9, "Q5_1", "Q5_1", GgmlType::Q5_1),
    row(FileType::Q2_K, 10, "Q2_K", "Q2_K - Medium", GgmlType::Q2_K),
    row(FileType::Q3_K_S, 11, "Q3_K_S", "Q3_K - Small", GgmlType::Q3_K),
    row(FileType::Q3_K_M, 12, "Q3_K_M", "Q3_K - Medium", GgmlType::Q3_K),
    row(FileType::Q3_K_L, 13, "Q3_K_L", "Q3_K - Large", GgmlType::Q3_K),
    row(FileType::Q4_K_S, 14, "Q4_K_S", "Q4_K - Small", GgmlType::Q4_K),
    row(FileType::Q4_K_M, 15, "Q4_K_M", "Q4_K - Medium", GgmlType::Q4_K),
    row(FileType::Q5_K_S, 16, "Q5_K_S", "Q5_K - Small", GgmlType::Q5_K),
    row(FileType::Q5_K_M, 17, "Q5_K_M", "Q5_K - Medium", GgmlType::Q5_K),
    row(FileType::Q6_K, 18, "Q6_K", "Q6_K", GgmlType::Q6_K),
    row(FileType::IQ2_XXS, 19, "IQ2_XXS", "IQ2_XXS - 2.0625 bpw", GgmlType::IQ2_XXS),
    row(FileType::IQ2_XS, 20, "IQ2_XS", "IQ2_XS - 2.3125 bpw", GgmlType::IQ2_XS),
    row(FileType::Q2_K_S, 21, "Q2_K_S", "Q2_K - Small", GgmlType::Q2_K),
    row(FileType::IQ3_XS, 22, "IQ3_XS", "IQ3_XS - 3.3 bpw", GgmlType::IQ3_S),
    row(FileType::IQ3_XXS, 23, "IQ3_XXS", "IQ3_XXS - 3.0625 bpw", GgmlType::IQ3_XXS),
    row(FileType::IQ1_S, 24, "IQ1_S", "IQ1_S - 1.5625 bpw", GgmlType::IQ1_S),
    row(FileType::IQ4_NL, 25, "IQ4_NL", "IQ4_NL - 4.5 bpw", GgmlType::IQ4_NL),
    row(FileType::IQ3_S, 26, "IQ3_S", "IQ3_S - 3.4375 bpw", GgmlType::IQ3_S),
    row(FileType::IQ3_M, 27, "IQ3_M", "IQ3_S mix - 3.66 bpw", GgmlType::IQ3_S),
    row(FileType::IQ2_S, 28, "IQ2_S", "IQ2_S - 2.5 bpw", GgmlType::IQ2_XS),
    row(FileType::IQ2_M, 29, "IQ2_M", "IQ2_M - 2.7 bpw", GgmlType::IQ2_S),
    row(FileType::IQ4_XS, 30, "IQ4_XS", "IQ4_XS - 4.25 bpw", GgmlType::IQ4_XS),
    row(FileType::IQ1_M, 31, "IQ1_M", "IQ1_M - 1.75 bpw", GgmlType::IQ1_M),
    row(FileType::BF16, 32, "BF16", "BF16", GgmlType::BF16),
    row(FileType::TQ1_0, 36, "TQ1_0", "TQ1_0 - 1.69 bpw ternary", GgmlType::TQ1_0),
    row(FileType::TQ2_0, 37, "TQ2_0", "TQ2_0 - 2.06 bpw ternary", GgmlType::TQ2_0),
    row(FileType::MXFP4_MOE, 38, "MXFP4_MOE", "MXFP4 MoE", GgmlType::MXFP4),
    row(FileType::NVFP4, 39, "NVFP4", "NVFP4", GgmlType::NVFP4),
    row(FileType::Q1_0, 40, "Q1_0", "Q1_0", GgmlType::Q1_0),
    row(FileType::Q2_0, 41, "Q2_0", "Q2_0", GgmlType::Q2_0),
];

const fn row(
    file_type: FileType,
    id: u32,
    name: &'static str,
    title: &'static str,
    base: GgmlType,
) -> FileTypeInfo {
    FileTypeInfo { file_type, id, name, title, base }
}

/// Short names of `_M` mixes.
const MEDIUM: [(&str, FileType); 3] =
    [("Q3_K", FileType::Q3_K_M), ("Q4_K", FileType::Q4_K_M), ("Q5_K", FileType::Q5_K_M)];

/// Offset that loaders add to an id that they guessed from the tensors.
const GUESSED: u32 = 1024;

impl FileType {
    /// The file type with this id, stated or guessed (id + 1024); `None` if unknown.
    pub fn from_id(id: u32) -> Option<FileType> {
        let id = if id >= GUESSED { id - GUESSED } else { id };
        FILE_TYPES.iter().find(|t| t.id == id).map(|t| t.file_type)
    }

    /// The file type with this name, case-insensitive.
    ///
    /// As in llama.cpp, `Q3_K`, `Q4_K` and `Q5_K` are short for the `_M` mixes.
    pub fn from_name(name: &str) -> Option<FileType> {
        let of_alias = MEDIUM.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name)).map(|row| row.1);
        let named = || FILE_TYPES.iter().find(|t| t.name.eq_ignore_ascii_case(name)).map(|t| t.file_type);
        of_alias.or_else(named)
    }

    /// The file type's row of [`FILE_TYPES`].
    pub fn info(self) -> &'static FileTypeInfo {
        &FILE_TYPES[self as usize]
    }

    /// The value of `general.file_type`.
    pub fn id(self) -> u32 {
        self.info().id
    }

    /// llama.cpp's name of the file type, such as `Q4_K_M`.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// llama.cpp's name of the file type where it describes models, such as `Q4_K - Medium`.
    pub fn title(self) -> &'static str {
        self.info().title
    }

    /// The type of most of the matrices.
    pub fn base(self) -> GgmlType {
        self.info().base
    }
}

impl fmt::Display for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
