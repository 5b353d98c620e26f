//! The element types of safetensors files.

use ggml_format::GgmlType;

/// The type of a tensor's elements.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, serde::Deserialize)]
#[allow(non_camel_case_types, reason = "these are the names in files")]
#[allow(missing_docs, reason = "the names are the format's own")]
pub enum Dtype {
    BOOL,
    F4,
    F6_E2M3,
    F6_E3M2,
    U8,
    I8,
    F8_E5M2,
    F8_E4M3,
    F8_E8M0,
    F8_E4M3FNUZ,
    F8_E5M2FNUZ,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    C64,
    I64,
    U64,
    F64,
}

impl Dtype {
    /// Bits of an element.
    pub fn bits(self) -> u64 {
        use Dtype as D;
        match self {
            D::F4 => 4,
            D::F6_E2M3 | D::F6_E3M2 => 6,
            D::BOOL | D::U8 | D::I8 => 8,
            D::F8_E5M2 | D::F8_E4M3 | D::F8_E8M0 | D::F8_E4M3FNUZ | D::F8_E5M2FNUZ => 8,
            D::I16 | D::U16 | D::F16 | D::BF16 => 16,
            D::I32 | D::U32 | D::F32 => 32,
            D::C64 | D::I64 | D::U64 | D::F64 => 64,
        }
    }

    /// Bytes of `n_elem` elements; `None` if they are no whole bytes or too many.
    pub fn n_byte(self, n_elem: u64) -> Option<u64> {
        let bits = n_elem.checked_mul(self.bits())?;
        (bits % 8 == 0).then_some(bits / 8)
    }

    /// The ggml type with the same bytes, of the types that hold weights.
    pub fn ggml(self) -> Option<GgmlType> {
        match self {
            Dtype::F32 => Some(GgmlType::F32),
            Dtype::F16 => Some(GgmlType::F16),
            Dtype::BF16 => Some(GgmlType::BF16),
            _ => None,
        }
    }
}
