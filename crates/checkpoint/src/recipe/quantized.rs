//! Weights of other quantised formats: (code - zero) * scale.

use std::ops::Range;

use ggml_format::{ByteSource, SourceError};

use super::context::{Context, bad_data};
use super::view::View;
use super::{RecipeError, wrong};
use crate::safetensors::Dtype;

/// A matrix of codes with scales and zero points: value = (code - zero) * scale, in f32.
#[derive(Clone, Debug)]
pub struct Quantized {
    /// The codes.
    pub codes: Codes,
    /// Scales and their rows and columns.
    pub scale: View,
    /// Row of the scales for a row of the codes.
    pub row: Index,
    /// Column of the scales for a column of the codes.
    pub col: Index,
    /// The code of the value 0.
    pub zero: Zero,
}

/// A matrix of codes.
#[derive(Clone, Debug)]
pub struct Codes {
    /// Bytes or words of 32 bits that hold the codes.
    pub view: View,
    /// Position of the codes in them.
    pub packing: Packing,
    /// Number of rows.
    pub n_row: u64,
    /// Codes of a row.
    pub n_col: u64,
}

/// The position of codes in the elements of a view.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Packing {
    /// An element is a code: floats of 8 bits, integers.
    Elements,
    /// Words of 32 bits, each with neighbours of a row.
    AlongRow {
        /// Bits of a code; a word has 32 / bits of them, rounded down.
        bits: u32,
        /// Position in the word of each of its columns, in codes.
        order: Order,
    },
    /// Words of 32 bits, each with neighbours of a column.
    DownColumn {
        /// Bits of a code; a word has 32 / bits of them, rounded down.
        bits: u32,
    },
}

/// The order of the codes of a word.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// The first column in the lowest bits.
    Plain,
    /// Columns 0, 2, 4, 6, 1, 3, 5, 7 from the lowest bits on.
    Awq,
}

impl Order {
    fn place(self, i: u64) -> u64 {
        const AWQ: [u64; 8] = [0, 4, 1, 5, 2, 6, 3, 7];
        match self {
            Order::Plain => i,
            Order::Awq => AWQ[i as usize % 8],
        }
    }
}

/// The row or column of the scales that belongs to one of the codes.
#[derive(Clone, Debug)]
pub enum Index {
    /// Groups of so many neighbours.
    Groups(u64),
    /// One for all.
    One,
    /// Numbers in a file, one for each row.
    Table(View),
}

/// The code of the value 0.
#[derive(Clone, Debug)]
pub enum Zero {
    /// The same for all codes.
    Number(f32),
    /// One for each scale, to which `plus` is added.
    Codes {
        /// The codes.
        codes: Codes,
        /// The difference between the zero point and its code.
        plus: f32,
    },
}

impl Packing {
    /// Codes of an element, along a row and down a column.
    pub(super) fn per_element(self) -> (u64, u64) {
        match self {
            Packing::Elements => (1, 1),
            Packing::AlongRow { bits, .. } => (u64::from(32 / bits), 1),
            Packing::DownColumn { bits } => (1, u64::from(32 / bits)),
        }
    }
}

impl Codes {
    /// Reads codes as f32.
    async fn read<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
    ) -> Result<Vec<f32>, SourceError> {
        let (n_row, n_col) = ((rows.end - rows.start) as usize, (cols.end - cols.start) as usize);
        let (across, down) = self.packing.per_element();
        let bits = match self.packing {
            Packing::Elements => {
                let mut bytes = vec![0; n_row * n_col * 4];
                self.view.values(context, rows, cols, &mut bytes).await?;
                return Ok(floats(&bytes));
            }
            Packing::AlongRow { bits, .. } | Packing::DownColumn { bits } => bits,
        };
        let outer_rows = rows.start / down..rows.end.div_ceil(down);
        let outer_cols = cols.start / across..cols.end.div_ceil(across);
        let n_word = (outer_cols.end - outer_cols.start) as usize;
        let words = self.view.words(context, outer_rows.clone(), outer_cols.clone()).await?;
        let mask = ((1u64 << bits) - 1) as u32;
        // The word and the shift of each column, which are the same for all rows.
        let places: Vec<(usize, u32)> = cols
            .map(|c| {
                let word = (c / across - outer_cols.start) as usize;
                let place = match self.packing {
                    Packing::AlongRow { order, .. } => order.place(c % across),
                    _ => 0,
                };
                (word, place as u32 * bits)
            })
            .collect();
        let mut out = Vec::with_capacity(n_row * n_col);
        for r in rows {
            let line = &words[(r / down - outer_rows.start) as usize * n_word..][..n_word];
            let shift = (r % down) as u32 * bits;
            out.extend(places.iter().map(|&(word, s)| (line[word] >> (s + shift) & mask) as f32));
        }
        Ok(out)
    }
}

impl Index {
    /// The numbers of these rows or columns.
    async fn read<S: ByteSource>(
        &self,
        context: &Context<S>,
        range: Range<u64>,
        limit: u64,
    ) -> Result<Vec<u64>, SourceError> {
        let view = match self {
            Index::Groups(n) => return Ok(range.map(|i| i / n).collect()),
            Index::One => return Ok(range.map(|_| 0).collect()),
            Index::Table(view) => view,
        };
        let found: Vec<u64> = view.words(context, 0..1, range).await?.into_iter().map(u64::from).collect();
        match found.iter().find(|&&i| i >= limit) {
            None => Ok(found),
            Some(i) => {
                let why = format!("g_idx: expected groups below {limit}, found {i}");
                Err(bad_data(context.files[view.file].name(), why))
            }
        }
    }
}

impl Quantized {
    /// Reads values as little-endian f32.
    pub(super) async fn values<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        if rows.is_empty() || cols.is_empty() {
            return Ok(());
        }
        let codes = self.codes.read(context, rows.clone(), cols.clone()).await?;
        let n_col = (cols.end - cols.start) as usize;
        let row_of = self.row.read(context, rows, self.scale.n_row).await?;
        let col_of = self.col.read(context, cols, self.scale.n_col).await?;
        let (grid_rows, grid_cols) = (span(&row_of), span(&col_of));
        let width = (grid_cols.end - grid_cols.start) as usize;
        let mut bytes = vec![0; (grid_rows.end - grid_rows.start) as usize * width * 4];
        self.scale.values(context, grid_rows.clone(), grid_cols.clone(), &mut bytes).await?;
        let scales = floats(&bytes);
        let zeros = match &self.zero {
            Zero::Number(zero) => vec![*zero; scales.len()],
            Zero::Codes { codes, plus } => {
                let codes = codes.read(context, grid_rows.clone(), grid_cols.clone()).await?;
                codes.into_iter().map(|code| code + plus).collect()
            }
        };
        let col_of: Vec<usize> = col_of.iter().map(|c| (c - grid_cols.start) as usize).collect();
        for ((out, codes), row) in out.chunks_exact_mut(n_col * 4).zip(codes.chunks_exact(n_col)).zip(row_of)
        {
            let start = (row - grid_rows.start) as usize * width;
            let (scales, zeros) = (&scales[start..][..width], &zeros[start..][..width]);
            for ((out, code), &c) in out.chunks_exact_mut(4).zip(codes).zip(&col_of) {
                out.copy_from_slice(&((code - zeros[c]) * scales[c]).to_le_bytes());
            }
        }
        Ok(())
    }

    /// The difference between codes of q4_0 and these, if they are such codes in groups of 32 along rows.
    pub(super) fn q4_0_plus(&self) -> Option<u8> {
        let is_row = self.codes.packing == Packing::AlongRow { bits: 4, order: Order::Plain };
        let is_grouped = matches!((&self.row, &self.col), (Index::Groups(1), Index::Groups(32)));
        match self.zero {
            Zero::Number(7.0) if is_row && is_grouped => Some(1),
            Zero::Number(8.0) if is_row && is_grouped => Some(0),
            _ => None,
        }
    }

    /// Reads the words of codes; `cols` are whole words.
    pub(super) async fn words<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
    ) -> Result<Vec<u32>, SourceError> {
        let (across, _) = self.codes.packing.per_element();
        self.codes.view.words(context, rows, cols.start / across..cols.end / across).await
    }

    /// Fails if these parts do not belong together.
    pub(super) fn check(&self) -> Result<(), RecipeError> {
        let fits = |codes: &Codes| {
            let (across, down) = codes.packing.per_element();
            let is_word = matches!(codes.view.dtype, Dtype::I32 | Dtype::U32);
            let view = &codes.view;
            (codes.packing == Packing::Elements || is_word)
                && view.n_row == codes.n_row.div_ceil(down)
                && view.n_col == codes.n_col.div_ceil(across)
        };
        let n_index = |index: &Index, n: u64, n_scale: u64| match index {
            Index::Groups(group) => *group > 0 && n.div_ceil(*group) == n_scale,
            Index::One => n_scale == 1,
            Index::Table(view) => view.n_elem() == n && matches!(view.dtype, Dtype::I32 | Dtype::U32),
        };
        let Codes { n_row, n_col, view, .. } = &self.codes;
        let scale = &self.scale;
        if !fits(&self.codes) {
            let found = format!("{:?} {} x {}", view.dtype, view.n_row, view.n_col);
            return wrong(format!("codes of {n_row} x {n_col}"), found);
        }
        if !n_index(&self.row, *n_row, scale.n_row) || !n_index(&self.col, *n_col, scale.n_col) {
            let found = format!("{} x {}", scale.n_row, scale.n_col);
            return wrong(format!("scales for {n_row} x {n_col} codes"), found);
        }
        match &self.zero {
            Zero::Codes { codes, .. }
                if !fits(codes) || (codes.n_row, codes.n_col) != (scale.n_row, scale.n_col) =>
            {
                let found = format!("{} x {}", codes.n_row, codes.n_col);
                wrong(format!("zero points for {} x {} scales", scale.n_row, scale.n_col), found)
            }
            _ => Ok(()),
        }
    }
}

/// The smallest range with all numbers of a list that is not empty.
fn span(numbers: &[u64]) -> Range<u64> {
    let first = numbers.iter().min().expect("the list is not empty");
    let last = numbers.iter().max().expect("the list is not empty");
    *first..last + 1
}

/// Little-endian bytes as floats.
pub(super) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
}
