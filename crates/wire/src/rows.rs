//! Rows of values, in the number format in which they travel.

use half::slice::{HalfBitsSliceExt as _, HalfFloatSliceExt as _};
use half::{bf16, f16};

use crate::error::{RowsError, WireError};
use crate::kind::Kind;

/// Values that are converted at once: a few hundred cost as little each as more, and lie on the stack.
const PIECE: usize = 512;
/// Exponents of values in 16 bits that are not finite.
const F16_EXPONENT: u16 = 0x7c00;
const BF16_EXPONENT: u16 = 0x7f80;
const F32_EXPONENT: u32 = 0x7f80_0000;
/// Greatest value below which f16 has fewer than the 8 bits of bf16, as f32: 2^-16.
const SMALL: u32 = (127 - 16) << 23;
/// Values of a block of [`Dtype::Q8`].
const BLOCK: usize = 32;
/// Bytes of a block of [`Dtype::Q8`]: an f16 scale and 32 codes.
const BLOCK_BYTES: usize = 2 + BLOCK;

/// Number format of rows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Dtype {
    /// 32-bit floats: exact.
    F32 = 0,
    /// 16-bit floats up to 65504, NMSE 4.3e-8 for normal values.
    F16 = 1,
    /// The upper half of f32, NMSE 2.8e-6.
    Bf16 = 2,
    /// Blocks of 32 signed bytes with an f16 scale, NMSE 2.9e-5. The last block of a row is padded with zeros.
    Q8 = 3,
}

impl Dtype {
    /// All formats, by number.
    pub const ALL: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8];

    /// Bytes of a row of `width` values.
    pub fn row_bytes(self, width: u32) -> u64 {
        match self {
            Dtype::F32 => 4 * u64::from(width),
            Dtype::F16 | Dtype::Bf16 => 2 * u64::from(width),
            Dtype::Q8 => u64::from(width).div_ceil(BLOCK as u64) * BLOCK_BYTES as u64,
        }
    }

    /// The format for values that this one cannot hold.
    fn wider(self) -> Dtype {
        match self {
            Dtype::F16 | Dtype::Q8 => Dtype::Bf16,
            Dtype::Bf16 | Dtype::F32 => Dtype::F32,
        }
    }

    /// Reads the number of a format.
    pub(crate) fn read(kind: Kind, field: &'static str, found: u8) -> Result<Dtype, WireError> {
        let expected = "a number format, 0 to 3";
        let error = WireError::Field { kind, field, expected, found: found.into() };
        Dtype::ALL.into_iter().find(|dtype| *dtype as u8 == found).ok_or(error)
    }
}

/// Rows of equal width, encoded. All values are finite.
///
/// # Shapes
/// `[n_row, width]`, row by row without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    dtype: Dtype,
    width: u32,
    n_row: u32,
    bytes: Vec<u8>,
}

impl Rows {
    /// Encodes values. If one of them is too large for `dtype`, all rows fall back to a wider format: f16 and q8 to
    /// bf16, bf16 to f32. So do f16 rows if all values are so small that f16 has fewer bits for them than bf16.
    /// [`Rows::dtype`] tells.
    ///
    /// # Errors
    /// The values are no whole rows of at least one value, or one is not finite.
    pub fn encode(width: u32, values: &[f32], dtype: Dtype) -> Result<Rows, RowsError> {
        let n_row = values.len().checked_div(width as usize).unwrap_or(0);
        if width == 0 || n_row * width as usize != values.len() || n_row > u32::MAX as usize {
            return Err(RowsError::Shape { width, found: values.len() });
        }
        if !all_finite(values.iter().copied())
            && let Some(at) = values.iter().position(|v| !v.is_finite())
        {
            return Err(RowsError::NotFinite { row: at / width as usize, column: at % width as usize });
        }
        let mut dtype = if dtype == Dtype::F16 && are_small(values) { Dtype::Bf16 } else { dtype };
        loop {
            let mut bytes = Vec::with_capacity(n_row * dtype.row_bytes(width) as usize);
            if values.chunks_exact(width as usize).all(|row| encode_row(row, dtype, &mut bytes)) {
                return Ok(Rows { dtype, width, n_row: n_row as u32, bytes });
            }
            dtype = dtype.wider();
        }
    }

    /// Some of the rows, by their indices.
    ///
    /// # Panics
    /// There is no such row.
    pub fn select(&self, rows: &[u16]) -> Rows {
        let n_byte = self.dtype.row_bytes(self.width) as usize;
        let mut bytes = Vec::with_capacity(rows.len() * n_byte);
        rows.iter()
            .for_each(|&row| bytes.extend_from_slice(&self.bytes[usize::from(row) * n_byte..][..n_byte]));
        Rows { bytes, n_row: rows.len() as u32, ..*self }
    }

    /// Checks rows that a peer has sent; their length is already the one that the counts give.
    pub(crate) fn read(
        kind: Kind,
        dtype: Dtype,
        width: u32,
        n_row: u32,
        bytes: &[u8],
    ) -> Result<Rows, WireError> {
        let n_byte = dtype.row_bytes(width) as usize;
        debug_assert_eq!(bytes.len(), n_byte * n_row as usize);
        for (row, bytes) in bytes.chunks_exact(n_byte.max(1)).enumerate() {
            check_row(kind, dtype, width, row, bytes)?;
        }
        Ok(Rows { dtype, width, n_row, bytes: bytes.to_vec() })
    }

    /// Number format.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Values of a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Number of rows.
    pub fn n_row(&self) -> u32 {
        self.n_row
    }

    /// The rows as they travel.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All values.
    pub fn to_f32(&self) -> Vec<f32> {
        let mut values = Vec::with_capacity(self.n_row as usize * self.width as usize);
        let n_byte = self.dtype.row_bytes(self.width) as usize;
        for row in self.bytes.chunks_exact(n_byte) {
            decode_row(self.dtype, row, self.width as usize, &mut values);
        }
        values
    }
}

/// Appends a row; false if a value is too large for the format.
fn encode_row(row: &[f32], dtype: Dtype, bytes: &mut Vec<u8>) -> bool {
    match dtype {
        Dtype::F32 => {
            let begin = bytes.len();
            bytes.resize(begin + 4 * row.len(), 0);
            let places = bytes[begin..].as_chunks_mut::<4>().0;
            places.iter_mut().zip(row).for_each(|(place, v)| *place = v.to_le_bytes());
        }
        Dtype::F16 => {
            let convert =
                |row: &[f32], to: &mut [u16]| to.reinterpret_cast_mut::<f16>().convert_from_f32_slice(row);
            return encode_16(row, F16_EXPONENT, convert, bytes);
        }
        Dtype::Bf16 => {
            let convert =
                |row: &[f32], to: &mut [u16]| to.reinterpret_cast_mut::<bf16>().convert_from_f32_slice(row);
            return encode_16(row, BF16_EXPONENT, convert, bytes);
        }
        Dtype::Q8 => return row.chunks(BLOCK).all(|block| encode_block(block, bytes)),
    }
    true
}

/// Appends a row in 16 bits; false if a value is not finite any more.
fn encode_16(row: &[f32], exponent: u16, convert: impl Fn(&[f32], &mut [u16]), bytes: &mut Vec<u8>) -> bool {
    let mut words = [0u16; PIECE];
    let mut all = true;
    for piece in row.chunks(PIECE) {
        let words = &mut words[..piece.len()];
        convert(piece, words);
        all &= all_below(words.iter().copied(), exponent);
        let begin = bytes.len();
        bytes.resize(begin + 2 * words.len(), 0);
        let places = bytes[begin..].as_chunks_mut::<2>().0;
        places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
    }
    all
}

/// True if no word has all bits of an exponent. Looks at all of them, many at a time.
fn all_below(words: impl Iterator<Item = u16>, exponent: u16) -> bool {
    !words.fold(false, |found, word| found | (word & exponent == exponent))
}

/// True if all values are so small that f16 has few bits for them, and one is not zero. Looks at all of them, many at a
/// time.
fn are_small(values: &[f32]) -> bool {
    let most = values.iter().fold(0, |most, v| (v.to_bits() & 0x7fff_ffff).max(most));
    most > 0 && most < SMALL
}

/// True if all values are finite. Looks at all of them, many at a time.
fn all_finite(values: impl Iterator<Item = f32>) -> bool {
    !values.fold(false, |found, v| found | (v.to_bits() & F32_EXPONENT == F32_EXPONENT))
}

/// Appends a block of q8: codes are values over the scale, rounded, and the scale is the largest value over 127.
fn encode_block(block: &[f32], bytes: &mut Vec<u8>) -> bool {
    let most = block.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    // Rounded up, so that no code exceeds 127.
    let scale = f16::from_f32(most / 127.0);
    let scale = if scale.to_f32() * 127.0 < most { f16::from_bits(scale.to_bits() + 1) } else { scale };
    bytes.extend(scale.to_le_bytes());
    let inverse = if scale == f16::ZERO { 0.0 } else { 1.0 / scale.to_f32() };
    let codes = block.iter().map(|v| (v * inverse).round() as i8 as u8);
    bytes.extend(codes.chain(std::iter::repeat(0)).take(BLOCK));
    scale.is_finite()
}

/// Values of a row of f32.
fn floats(row: &[u8]) -> impl Iterator<Item = f32> {
    row.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b))
}

/// Values of a row of f16.
fn halves(row: &[u8]) -> impl Iterator<Item = f32> {
    row.as_chunks::<2>().0.iter().map(|b| f16::from_le_bytes(*b).to_f32())
}

/// Values of a row of bf16.
fn brains(row: &[u8]) -> impl Iterator<Item = f32> {
    row.as_chunks::<2>().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32())
}

/// Values of a row of q8, with the padding of its last block.
fn blocks(row: &[u8]) -> impl Iterator<Item = f32> {
    row.chunks_exact(BLOCK_BYTES).flat_map(|block| {
        let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
        block[2..].iter().map(move |code| scale * f32::from(*code as i8))
    })
}

/// Appends the values of a row.
fn decode_row(dtype: Dtype, row: &[u8], width: usize, values: &mut Vec<f32>) {
    match dtype {
        Dtype::F32 => values.extend(floats(row)),
        Dtype::F16 => {
            decode_16(row, values, |words, to| words.reinterpret_cast::<f16>().convert_to_f32_slice(to));
        }
        Dtype::Bf16 => {
            decode_16(row, values, |words, to| words.reinterpret_cast::<bf16>().convert_to_f32_slice(to));
        }
        Dtype::Q8 => values.extend(blocks(row).take(width)),
    }
}

/// Appends the values of a row in 16 bits.
fn decode_16(row: &[u8], values: &mut Vec<f32>, convert: impl Fn(&[u16], &mut [f32])) {
    let mut words = [0u16; PIECE];
    for piece in row.as_chunks::<2>().0.chunks(PIECE) {
        let words = &mut words[..piece.len()];
        words.iter_mut().zip(piece).for_each(|(word, b)| *word = u16::from_le_bytes(*b));
        let begin = values.len();
        values.resize(begin + words.len(), 0.0);
        convert(words, &mut values[begin..]);
    }
}

/// Words of a row in 16 bits.
fn words(row: &[u8]) -> impl Iterator<Item = u16> {
    row.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b))
}

/// Index of the first value of a row that is not finite.
fn not_finite(dtype: Dtype, row: &[u8]) -> Option<usize> {
    let is_wrong = |v: f32| !v.is_finite();
    let is_right = match dtype {
        Dtype::F32 => all_finite(floats(row)),
        Dtype::F16 => all_below(words(row), F16_EXPONENT),
        Dtype::Bf16 => all_below(words(row), BF16_EXPONENT),
        Dtype::Q8 => false,
    };
    if is_right {
        return None;
    }
    match dtype {
        Dtype::F32 => floats(row).position(is_wrong),
        Dtype::F16 => halves(row).position(is_wrong),
        Dtype::Bf16 => brains(row).position(is_wrong),
        Dtype::Q8 => blocks(row).position(is_wrong),
    }
}

/// Values are finite, codes of q8 at least -127, scales not negative and padding zero: one encoding for each row.
fn check_row(kind: Kind, dtype: Dtype, width: u32, row: usize, bytes: &[u8]) -> Result<(), WireError> {
    if let Some(column) = not_finite(dtype, bytes) {
        return Err(WireError::NotFinite { kind, row, column });
    }
    if dtype != Dtype::Q8 {
        return Ok(());
    }
    let n_used = width as usize;
    for (i, block) in bytes.chunks_exact(BLOCK_BYTES).enumerate() {
        let field =
            |field, expected, found: u8| WireError::Field { kind, field, expected, found: found.into() };
        if block[1] & 0x80 != 0 {
            return Err(field("sign of a scale", "0", 1));
        }
        for (j, code) in block[2..].iter().enumerate() {
            if *code == 0x80 {
                return Err(field("code", "-127 to 127", *code));
            }
            if *code != 0 && i * BLOCK + j >= n_used {
                return Err(field("code behind a row", "0", *code));
            }
        }
    }
    Ok(())
}
