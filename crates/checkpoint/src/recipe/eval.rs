//! Reads rows of a recipe.
//!
//! Each operation reads a window of its operand: some rows, some columns. A caller's window has about
//! [`WINDOW_BYTES`], and so have those of operands, or a few rows where rows are longer.

use std::ops::Range;

use ggml_format::{ByteSource, GgmlType, SourceError};

use super::blocks::{q4_0, q4_0_of_words};
use super::context::{Context, N_LEVEL, PANEL_BYTES, Panel, Reading, find, keep};
use super::node::{Function, Node, Strides};
use super::nvfp4::factors;
use super::quantized::floats;

/// Bytes that an operation reads at once.
pub(super) const WINDOW_BYTES: u64 = 1 << 20;
/// Rows that are scattered over a matrix are read with those between them, if these are at most so many times as many.
const MAX_SPREAD: u64 = 2;

/// A part of a matrix.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) rows: Range<u64>,
    pub(super) cols: Range<u64>,
}

impl Window {
    fn n_row(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    fn n_col(&self) -> u64 {
        self.cols.end - self.cols.start
    }
}

/// Bytes of `n` values, a whole number of blocks.
fn row_bytes(form: GgmlType, n: u64) -> usize {
    form.row_bytes(n).expect("a window is a whole number of blocks") as usize
}

/// Files and the depth of transposed matrices.
pub(super) struct Reader<'a, S> {
    pub(super) context: &'a Context<S>,
    pub(super) level: usize,
}

impl<S> Clone for Reader<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Reader<'_, S> {}

impl Node {
    /// Fills `out` with the window in a form: f32, or the type that the node has by itself.
    pub(super) fn read<'a, S: ByteSource>(
        &'a self,
        reader: Reader<'a, S>,
        form: GgmlType,
        window: Window,
        out: &'a mut [u8],
    ) -> Reading<'a> {
        Box::pin(async move {
            if out.is_empty() {
                return Ok(());
            }
            let (context, Window { rows, cols }) = (reader.context, window.clone());
            match self {
                Node::Plain(view) if form == GgmlType::F32 => view.values(context, rows, cols, out).await,
                Node::Plain(view) => view.bytes(context, rows, cols, out).await,
                Node::Quantized(q) => q.values(context, rows, cols, out).await,
                Node::Microscaled(m) if form == GgmlType::F32 => m.values(context, rows, cols, out).await,
                Node::Microscaled(m) => m.blocks(context, rows, cols, out).await,
                Node::Nvfp4(q) if form == GgmlType::F32 => q.values(context, rows, cols, out).await,
                Node::Nvfp4(q) => q.blocks(context, rows, cols, out).await,
                Node::Factors(scales) => {
                    factors(&scales[cols.start as usize..cols.end as usize], context, out).await
                }
                Node::Numbers { values, n_col } => {
                    numbers(values, *n_col, &window, out);
                    Ok(())
                }
                Node::Rows { of, map } => read_rows(of, map, reader, form, window, out).await,
                Node::Cols { of, map } => read_cols(of, map, reader, form, window, out).await,
                Node::Concat { parts, ends } => read_parts(parts, ends, reader, form, window, out).await,
                Node::Each { of, f } => {
                    of.read(reader, GgmlType::F32, window, out).await?;
                    apply(*f, out);
                    Ok(())
                }
                Node::Transpose { of, n_row, n_col } => {
                    let transpose = Transpose { node: self, of, n_row: *n_row, n_col: *n_col };
                    transpose.read(reader, form, window, out).await
                }
                Node::Fold { of, from, to } => read_folded(of, *from, *to, reader, form, window, out).await,
                Node::Blocks { values, scales } => {
                    read_blocks(values, scales, reader, form, window, out).await
                }
            }
        })
    }
}

fn numbers(values: &[f32], n_col: u64, window: &Window, out: &mut [u8]) {
    let n = window.n_col() as usize;
    for (row, out) in window.rows.clone().zip(out.chunks_exact_mut(n * 4)) {
        let values = &values[(row * n_col + window.cols.start) as usize..][..n];
        values.iter().zip(out.chunks_exact_mut(4)).for_each(|(v, out)| out.copy_from_slice(&v.to_le_bytes()));
    }
}

fn apply(f: Function, out: &mut [u8]) {
    for x in out.as_chunks_mut::<4>().0 {
        *x = f.of(f32::from_le_bytes(*x)).to_le_bytes();
    }
}

/// Reads rows by number: neighbours together, and scattered ones with those between them if these are few.
async fn read_rows<S: ByteSource>(
    of: &Node,
    map: &Strides,
    reader: Reader<'_, S>,
    form: GgmlType,
    window: Window,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let n_byte = row_bytes(form, window.n_col());
    let numbers: Vec<u64> = window.rows.clone().map(|i| map.at(i)).collect();
    let (min, max) = (*numbers.iter().min().expect("not empty"), *numbers.iter().max().expect("not empty"));
    let read = |rows, out| of.read(reader, form, Window { rows, cols: window.cols.clone() }, out);
    let is_run = |numbers: &[u64]| numbers.windows(2).all(|w| w[1] == w[0] + 1);
    let n_span = max - min + 1;
    if !is_run(&numbers) && n_span <= MAX_SPREAD * numbers.len() as u64 {
        let mut span = vec![0; n_span as usize * n_byte];
        read(min..max + 1, &mut span).await?;
        for (row, out) in numbers.iter().zip(out.chunks_exact_mut(n_byte)) {
            out.copy_from_slice(&span[(row - min) as usize * n_byte..][..n_byte]);
        }
        return Ok(());
    }
    let mut rest = out;
    for run in numbers.chunk_by(|a, b| *b == a + 1) {
        let (part, others) = rest.split_at_mut(run.len() * n_byte);
        read(run[0]..run[0] + run.len() as u64, part).await?;
        rest = others;
    }
    Ok(())
}

/// Reads whole rows of the operand and takes columns by number.
async fn read_cols<S: ByteSource>(
    of: &Node,
    map: &Strides,
    reader: Reader<'_, S>,
    form: GgmlType,
    window: Window,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let n_byte = form.block_bytes();
    let from: Vec<usize> = window.cols.clone().map(|i| map.at(i) as usize).collect();
    let n_col = map.end().expect("the map was checked");
    let row = row_bytes(form, n_col);
    let n_batch = (WINDOW_BYTES / row as u64).max(1);
    let mut batch = Vec::new();
    for (i, out) in out.chunks_mut(n_batch as usize * from.len() * n_byte).enumerate() {
        let first = window.rows.start + i as u64 * n_batch;
        let n_row = out.len() / (from.len() * n_byte);
        batch.resize(n_row * row, 0);
        let rows = first..first + n_row as u64;
        of.read(reader, form, Window { rows, cols: 0..n_col }, &mut batch).await?;
        match n_byte {
            2 => gather::<2>(&batch, n_col as usize, &from, out),
            4 => gather::<4>(&batch, n_col as usize, &from, out),
            n => unreachable!("types without blocks have 2 or 4 bytes, not {n}"),
        }
    }
    Ok(())
}

/// Takes the elements with these numbers from each row of `n_col`.
fn gather<const N: usize>(batch: &[u8], n_col: usize, from: &[usize], out: &mut [u8]) {
    let (batch, out) = (batch.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    for (out, row) in out.chunks_exact_mut(from.len()).zip(batch.chunks_exact(n_col)) {
        out.iter_mut().zip(from).for_each(|(out, &i)| *out = row[i]);
    }
}

/// Reads from the parts that have rows of the window.
async fn read_parts<S: ByteSource>(
    parts: &[Node],
    ends: &[u64],
    reader: Reader<'_, S>,
    form: GgmlType,
    window: Window,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let n_byte = row_bytes(form, window.n_col());
    let mut rest = out;
    let mut row = window.rows.start;
    let mut i = ends.partition_point(|&end| end <= row);
    while row < window.rows.end {
        let start = if i == 0 { 0 } else { ends[i - 1] };
        let end = ends[i].min(window.rows.end);
        let (part, others) = rest.split_at_mut((end - row) as usize * n_byte);
        let inner = Window { rows: row - start..end - start, cols: window.cols.clone() };
        parts[i].read(reader, form, inner, part).await?;
        (rest, row, i) = (others, end, i + 1);
    }
    Ok(())
}

/// Reads the rows around the values and takes these.
async fn read_folded<S: ByteSource>(
    of: &Node,
    from: u64,
    to: u64,
    reader: Reader<'_, S>,
    form: GgmlType,
    window: Window,
    out: &mut [u8],
) -> Result<(), SourceError> {
    let n_byte = row_bytes(form, window.n_col());
    // A row of a column window at a time: folded matrices are small, or windows have whole rows.
    let is_whole = window.n_col() == to;
    let n_batch = if is_whole { (WINDOW_BYTES / n_byte.max(1) as u64).max(1) } else { 1 };
    let mut batch = Vec::new();
    for (i, out) in out.chunks_mut(n_batch as usize * n_byte).enumerate() {
        let row = window.rows.start + i as u64 * n_batch;
        let first = row * to + window.cols.start;
        let n = (out.len() / form.block_bytes() * form.block_len()) as u64;
        let rows = first / from..(first + n).div_ceil(from);
        batch.resize((rows.end - rows.start) as usize * row_bytes(form, from), 0);
        let skip = row_bytes(form, first - rows.start * from);
        of.read(reader, form, Window { rows, cols: 0..from }, &mut batch).await?;
        out.copy_from_slice(&batch[skip..][..out.len()]);
    }
    Ok(())
}

/// Reads values and scales, and makes q4_0 blocks of them.
async fn read_blocks<S: ByteSource>(
    values: &Node,
    scales: &Node,
    reader: Reader<'_, S>,
    form: GgmlType,
    window: Window,
    out: &mut [u8],
) -> Result<(), SourceError> {
    if form == GgmlType::F32 {
        return values.read(reader, form, window, out).await;
    }
    let n_value = (window.n_row() * window.n_col()) as usize;
    let mut d = vec![0; n_value / 32 * 4];
    let cols = window.cols.start / 32..window.cols.end / 32;
    scales.read(reader, GgmlType::F32, Window { rows: window.rows.clone(), cols }, &mut d).await?;
    let direct = match values {
        Node::Quantized(quantized) => quantized.q4_0_plus().map(|plus| (quantized, plus)),
        _ => None,
    };
    let made = match direct {
        Some((quantized, plus)) => {
            let words = quantized.words(reader.context, window.rows, window.cols).await?;
            q4_0_of_words(&words, plus, &floats(&d), out)
        }
        None => {
            let mut x = vec![0; n_value * 4];
            values.read(reader, GgmlType::F32, window, &mut x).await?;
            q4_0(&floats(&x), &floats(&d), out)
        }
    };
    made.map_err(|why| {
        let name = values.file().map_or_else(String::new, |i| reader.context.files[i].name().to_owned());
        super::context::bad_data(&name, why)
    })
}

/// A transposed matrix, which is read in panels of its rows.
struct Transpose<'a> {
    node: &'a Node,
    of: &'a Node,
    n_row: u64,
    n_col: u64,
}

impl Transpose<'_> {
    async fn read<S: ByteSource>(
        &self,
        reader: Reader<'_, S>,
        form: GgmlType,
        window: Window,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        let n_byte = form.block_bytes() as u64;
        let (row, width) = (self.n_row * n_byte, (window.n_col() * n_byte) as usize);
        let skip = (window.cols.start * n_byte) as usize;
        let n_panel = (PANEL_BYTES / row).clamp(1, self.n_col);
        let mut rest = out;
        let mut at = window.rows.start;
        while at < window.rows.end {
            // Panels begin at multiples within a matrix.
            let (matrix, r) = (at / self.n_col, at % self.n_col);
            let first = r / n_panel * n_panel;
            let end = (first + n_panel).min(self.n_col).min(r + window.rows.end - at);
            let panel = matrix * self.n_col + first..matrix * self.n_col + (first + n_panel).min(self.n_col);
            let (part, others) = rest.split_at_mut((end - r) as usize * width);
            let mut panels = reader.context.panels[reader.level].lock().await;
            let node = std::ptr::from_ref(self.node) as usize;
            if !find(&mut panels, node, form, &panel) {
                let bytes = self.panel(reader, form, panel.clone()).await?;
                keep(&mut panels, Panel { node, form, rows: panel.clone(), bytes });
            }
            let bytes = &panels.last().expect("it was found or kept").bytes[((r - first) * row) as usize..];
            for (out, from) in part.chunks_exact_mut(width).zip(bytes.chunks_exact(row as usize)) {
                out.copy_from_slice(&from[skip..skip + width]);
            }
            (rest, at) = (others, at + end - r);
        }
        Ok(())
    }

    /// Makes a panel: reads some columns of all rows of a matrix, some rows at a time.
    async fn panel<S: ByteSource>(
        &self,
        reader: Reader<'_, S>,
        form: GgmlType,
        rows: Range<u64>,
    ) -> Result<Vec<u8>, SourceError> {
        let n_byte = form.block_bytes();
        let reader = Reader { level: reader.level + 1, ..reader };
        let matrix = rows.start / self.n_col;
        let cols = rows.start - matrix * self.n_col..rows.end - matrix * self.n_col;
        let n_col = (cols.end - cols.start) as usize;
        let n_row = self.n_row as usize;
        let mut panel = vec![0; n_col * n_row * n_byte];
        let n_batch = (WINDOW_BYTES as usize / (n_col * n_byte)).clamp(1, n_row);
        let mut batch = vec![0; n_batch * n_col * n_byte];
        for first in (0..n_row).step_by(n_batch) {
            let n = n_batch.min(n_row - first);
            let batch = &mut batch[..n * n_col * n_byte];
            let start = matrix * self.n_row + first as u64;
            let window = Window { rows: start..start + n as u64, cols: cols.clone() };
            self.of.read(reader, form, window, batch).await?;
            match n_byte {
                2 => scatter::<2>(batch, n_col, &mut panel, n_row, first),
                4 => scatter::<4>(batch, n_col, &mut panel, n_row, first),
                n => unreachable!("types without blocks have 2 or 4 bytes, not {n}"),
            }
        }
        Ok(panel)
    }
}

/// Columns of a side of a square that is transposed at once.
const TILE: usize = 32;

/// Writes rows of `n_col` elements as columns `first` and so on of a panel whose rows have `n_row`.
fn scatter<const N: usize>(batch: &[u8], n_col: usize, panel: &mut [u8], n_row: usize, first: usize) {
    let (batch, panel) = (batch.as_chunks::<N>().0, panel.as_chunks_mut::<N>().0);
    let n_batch = batch.len() / n_col;
    for start in (0..n_col).step_by(TILE) {
        for r in (0..n_batch).step_by(TILE) {
            let n = TILE.min(n_batch - r);
            for c in start..(start + TILE).min(n_col) {
                let to = &mut panel[c * n_row + first + r..][..n];
                let from = batch[r * n_col + c..].iter().step_by(n_col);
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

impl Node {
    /// How many transposed matrices lie within each other.
    pub(super) fn depth(&self) -> usize {
        match self {
            Node::Plain(_) | Node::Quantized(_) | Node::Microscaled(_) => 0,
            Node::Nvfp4(_) | Node::Factors(_) | Node::Numbers { .. } => 0,
            Node::Rows { of, .. } | Node::Cols { of, .. } | Node::Each { of, .. } | Node::Fold { of, .. } => {
                of.depth()
            }
            Node::Concat { parts, .. } => parts.iter().map(Node::depth).max().unwrap_or(0),
            Node::Transpose { of, .. } => of.depth() + 1,
            Node::Blocks { values, scales } => values.depth().max(scales.depth()),
        }
    }

    /// True if there are no more transposed matrices within each other than there are levels of panels.
    pub(super) fn fits_levels(&self) -> bool {
        self.depth() <= N_LEVEL
    }

    /// True if values are made of codes.
    pub(super) fn is_coded(&self) -> bool {
        match self {
            Node::Plain(view) => view.dtype.ggml().is_none(),
            Node::Numbers { .. } | Node::Factors(_) => false,
            Node::Quantized(_) | Node::Microscaled(_) | Node::Nvfp4(_) | Node::Blocks { .. } => true,
            Node::Rows { of, .. } | Node::Cols { of, .. } | Node::Each { of, .. } => of.is_coded(),
            Node::Fold { of, .. } | Node::Transpose { of, .. } => of.is_coded(),
            Node::Concat { parts, .. } => parts.iter().any(Node::is_coded),
        }
    }

    /// A file that the node reads.
    fn file(&self) -> Option<usize> {
        match self {
            Node::Plain(view) => Some(view.file),
            Node::Quantized(q) => Some(q.codes.view.file),
            Node::Microscaled(m) => Some(m.codes.file),
            Node::Nvfp4(q) => Some(q.codes.file),
            Node::Factors(scales) => scales.first().map(|scale| scale.view.file),
            Node::Numbers { .. } => None,
            Node::Rows { of, .. } | Node::Cols { of, .. } | Node::Each { of, .. } => of.file(),
            Node::Fold { of, .. } | Node::Transpose { of, .. } => of.file(),
            Node::Concat { parts, .. } => parts.iter().find_map(Node::file),
            Node::Blocks { values, .. } => values.file(),
        }
    }
}
