//! Bytes of a tensor that a recipe makes: in its native type, in f32, or quantised.

use ggml_format::{ByteSource, GgmlType, SourceError};

use super::context::{Context, bad_data};
use super::eval::{Reader, WINDOW_BYTES, Window};
use super::node::Node;
use super::{MAX_ROW, Recipe, quantized};

impl Recipe {
    /// Fills `out` with the bytes of a tensor of type `ty` from byte `offset` on.
    pub(crate) async fn read_at<S: ByteSource>(
        &self,
        context: &Context<S>,
        ty: GgmlType,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        let reader = Reader { context, level: 0 };
        // Bytes of the file as they are.
        if let Node::Plain(view) = &self.node
            && view.dtype.ggml() == Some(ty)
        {
            return context.files[view.file].read_at(view.offset + offset, out).await;
        }
        let n_byte_row = ty.row_bytes(self.n_col).expect("the type was checked");
        if n_byte_row == 0 {
            return Ok(());
        }
        let (mut at, end) = (offset, offset + out.len() as u64);
        let mut rest = out;
        let mut cells = Vec::new();
        while at < end {
            let rows = at / n_byte_row;
            let (window, start) = if self.n_col <= MAX_ROW {
                let n_batch = (WINDOW_BYTES / (self.n_col * 4)).max(1);
                let last = end.div_ceil(n_byte_row).min(rows + n_batch);
                (Window { rows: rows..last, cols: 0..self.n_col }, rows * n_byte_row)
            } else {
                // Part of a long row, at whole blocks.
                let (n, n_byte) = (ty.block_len() as u64, ty.block_bytes() as u64);
                let block = (at - rows * n_byte_row) / n_byte;
                let cols = block * n..((block * n) + WINDOW_BYTES / 4 / n * n).min(self.n_col);
                (Window { rows: rows..rows + 1, cols }, rows * n_byte_row + block * n_byte)
            };
            let n_window = (window.rows.end - window.rows.start)
                * ty.row_bytes(window.cols.end - window.cols.start).expect("whole blocks");
            let n = (start + n_window).min(end) - at;
            let (part, others) = rest.split_at_mut(n as usize);
            if at == start && n == n_window {
                self.fill(reader, ty, window, part).await?;
            } else {
                cells.resize(n_window as usize, 0);
                self.fill(reader, ty, window, &mut cells).await?;
                part.copy_from_slice(&cells[(at - start) as usize..][..n as usize]);
            }
            (rest, at) = (others, at + n);
        }
        Ok(())
    }

    /// Fills `out` with a window, in its native type or quantised.
    async fn fill<S: ByteSource>(
        &self,
        reader: Reader<'_, S>,
        ty: GgmlType,
        window: Window,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        if ty == self.native || ty == GgmlType::F32 {
            return self.node.read(reader, ty, window, out).await;
        }
        let n_col = (window.cols.end - window.cols.start) as usize;
        let n = (window.rows.end - window.rows.start) as usize * n_col;
        let mut bytes = vec![0; n * 4];
        self.node.read(reader, GgmlType::F32, window.clone(), &mut bytes).await?;
        let values = quantized::floats(&bytes);
        let bad = |why: String| bad_data(&format!("rows from {} on", window.rows.start), why);
        if let Some(x) = values.iter().find(|x| !x.is_finite()) {
            return Err(bad(format!("expected finite values, found {x}")));
        }
        ggml_format::quantize(ty, &values, n_col, None, out).map_err(|e| bad(e.to_string()))?;
        match (ty.info().invalid_block)(out) {
            None => Ok(()),
            Some(_) => Err(bad(format!("expected values within the range of {ty}, found larger ones"))),
        }
    }
}
