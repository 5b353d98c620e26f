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
    /// First row within the file's tensor; more than 0 for parts of a fused matrix.
    pub row0: u32,
    /// Rows (outputs; 1 for a vector), of all experts.
    pub n_row: u32,
    /// Values per row (inputs).
    pub n_col: u32,
    /// Matrices of experts, contiguous; 1 otherwise.
    pub n_expert: u32,
    /// Consecutive rows within the file's tensor: those of an expert, or fewer where the parts of a fused matrix
    /// alternate.
    pub run: u32,
    /// Row stride between runs in the file's tensor: more than a run for parts of a fused matrix.
    pub stride: u32,
    /// A scalar weight that multiplies this small vector when it is loaded.
    pub times: Option<WeightId>,
}

impl Weight {
    /// A whole tensor.
    pub fn new(name: String, ty: GgmlType, n_row: u32, n_col: u32) -> Self {
        Weight { name, ty, row0: 0, n_row, n_col, n_expert: 1, run: n_row, stride: n_row, times: None }
    }

    /// The layer that it belongs to, by its name; `None` for those before and after all layers.
    pub fn layer(&self) -> Option<u32> {
        self.name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
    }

    /// Rows per expert, or all.
    pub fn expert_rows(&self) -> u32 {
        self.n_row / self.n_expert.max(1)
    }

    /// Bytes per row in the file.
    pub fn row_bytes(&self) -> u64 {
        u64::from(self.n_col) / self.ty.block_len() as u64 * self.ty.block_bytes() as u64
    }

    /// Bytes in the file.
    pub fn n_byte(&self) -> u64 {
        u64::from(self.n_row) * self.row_bytes()
    }

    /// Byte offset of a row in the file's tensor.
    pub fn offset(&self, row: u32) -> u64 {
        let (nth, row) = (row / self.run.max(1), row % self.run.max(1));
        let before = u64::from(nth) * u64::from(self.stride);
        (u64::from(self.row0) + before + u64::from(row)) * self.row_bytes()
    }

    /// Pieces of the file's tensor that hold `n` rows from `first`: byte offset and row count of each.
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
        // Runs of two rows out of every five, after the first three.
        let parts = Weight { row0: 3, n_row: 6, run: 2, stride: 5, ..whole };
        assert_eq!(parts.pieces(0, 6).collect::<Vec<_>>(), [(3 * 8, 2), (8 * 8, 2), (13 * 8, 2)]);
        assert_eq!(parts.pieces(1, 4).collect::<Vec<_>>(), [(4 * 8, 1), (8 * 8, 2), (13 * 8, 1)]);
        assert_eq!(parts.pieces(6, 0).count(), 0);
    }
}
