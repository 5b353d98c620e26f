//! Tensors of the model file that a graph uses.

use ggml_format::GgmlType;

use crate::id::WeightId;

/// A tensor of the model file that the graph uses.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Name in the file.
    pub name: String,
    /// Format in the file.
    pub ty: GgmlType,
    /// First row of the file's tensor that this weight takes; more than 0 for parts of a fused matrix.
    pub row0: u32,
    /// Rows (outputs; 1 for a vector), of all experts together.
    pub n_row: u32,
    /// Values a row (inputs).
    pub n_col: u32,
    /// Matrices of experts that stand one after the other; 1 for all others.
    pub n_expert: u32,
    /// Rows that follow one another in the file's tensor: those of an expert, or fewer where the parts of a fused matrix
    /// alternate.
    pub run: u32,
    /// Rows of the file's tensor from one run to the next: more than a run has for parts of a fused matrix.
    pub stride: u32,
    /// A weight of one value that multiplies all of this small vector when it is read.
    pub times: Option<WeightId>,
}

impl Weight {
    /// A whole tensor.
    pub fn new(name: String, ty: GgmlType, n_row: u32, n_col: u32) -> Self {
        Weight { name, ty, row0: 0, n_row, n_col, n_expert: 1, run: n_row, stride: n_row, times: None }
    }

    /// Rows of one expert, or all.
    pub fn expert_rows(&self) -> u32 {
        self.n_row / self.n_expert.max(1)
    }

    /// Bytes of a row in the file.
    pub fn row_bytes(&self) -> u64 {
        u64::from(self.n_col) / self.ty.block_len() as u64 * self.ty.block_bytes() as u64
    }

    /// Bytes in the file.
    pub fn n_byte(&self) -> u64 {
        u64::from(self.n_row) * self.row_bytes()
    }

    /// Byte of the file's tensor at which a row begins.
    pub fn offset(&self, row: u32) -> u64 {
        let (nth, row) = (row / self.run.max(1), row % self.run.max(1));
        let before = u64::from(nth) * u64::from(self.stride);
        (u64::from(self.row0) + before + u64::from(row)) * self.row_bytes()
    }

    /// Where `n` rows from `first` on lie in the file's tensor: the byte at which each piece begins, and its rows.
    pub fn pieces(&self, first: u32, n: u32) -> impl Iterator<Item = (u64, u32)> {
        let (run, end) = (self.run.max(1), first + n);
        let starts = std::iter::successors(Some(first), move |row| Some((row / run + 1) * run));
        starts.take_while(move |row| *row < end).map(move |row| {
            let next = (row / run + 1) * run;
            (self.offset(row), next.min(end) - row)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_alternate_are_read_in_pieces() {
        let whole = Weight::new("w".into(), GgmlType::F32, 12, 2);
        assert_eq!(whole.pieces(3, 5).collect::<Vec<_>>(), [(3 * 8, 5)]);
        // Twos of a matrix of fives, behind the first three.
        let parts = Weight { row0: 3, n_row: 6, run: 2, stride: 5, ..whole };
        assert_eq!(parts.pieces(0, 6).collect::<Vec<_>>(), [(3 * 8, 2), (8 * 8, 2), (13 * 8, 2)]);
        assert_eq!(parts.pieces(1, 4).collect::<Vec<_>>(), [(4 * 8, 1), (8 * 8, 2), (13 * 8, 1)]);
        assert_eq!(parts.pieces(6, 0).count(), 0);
    }
}
