//! Steps on the CPU.

use chaski_kernels::ops::mask;

use super::{CpuModel, ProductInput, Row, Watch, runs};
use crate::error::RuntimeError;
use crate::graph::{Graph, Op, ValueId, WeightId};
use crate::step::{Column, ColumnOutput, RowInput, StepOutputs};

/// Rows of a step with outputs.
pub(super) struct Picks {
    /// Those with logits, in order.
    head: Vec<usize>,
    hidden: Vec<usize>,
}

/// A step while its nodes run.
pub(super) struct Pass<'a> {
    graph: &'a Graph,
    rows: &'a [Row],
    picks: &'a Picks,
    /// Values that some node has still to read.
    pub(super) values: Vec<Vec<f32>>,
    hidden: Vec<f32>,
}

impl<'a> Pass<'a> {
    pub(super) fn new(graph: &'a Graph, rows: &'a [Row], picks: &'a Picks) -> Self {
        Pass { graph, rows, picks, values: vec![Vec::new(); graph.widths.len()], hidden: Vec::new() }
    }

    /// Logits and hidden states of the rows that have them.
    pub(super) fn end(mut self) -> (Vec<f32>, Vec<f32>) {
        let logits = self.graph.logits.filter(|_| !self.picks.head.is_empty());
        (logits.map(|v| std::mem::take(&mut self.values[v.0])).unwrap_or_default(), self.hidden)
    }
}

impl CpuModel {
    /// Runs columns with their outputs; repetitions move one position further and use the tokens chosen before. The
    /// largest logit is chosen. Columns of one sequence are contiguous and in order of position.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] past the context, or for an unknown sequence; [`RuntimeError::State`].
    ///
    /// # Panics
    /// If a column uses its sequence's chosen token, and none was chosen.
    pub fn run_step(
        &mut self,
        columns: &[Column],
        outputs: &[ColumnOutput],
        repeat: u32,
    ) -> Result<StepOutputs, RuntimeError> {
        let mut out = StepOutputs::default();
        for i in 0..repeat.max(1) {
            let next: Vec<Column> = columns.iter().map(|c| c.repeated(i)).collect();
            let made = self.run_watched(&next, outputs, &mut |_| ())?;
            out.chosen.extend(made.chosen);
            out.logits.extend(made.logits);
            out.hidden.extend(made.hidden);
        }
        Ok(out)
    }

    /// Inputs other than tokens that the model takes.
    pub fn row_input(&self) -> RowInput {
        let components = self.graph.ropes.iter().any(|rope| rope.sections.is_some());
        RowInput { width: self.graph.input_width(), components }
    }

    /// Sets input rows that columns may use in place of embeddings ([`Column::row`]), `[n, n_embd]`, for steps from now
    /// on. The values enter the residual stream unchanged: embedding scales do not apply to them.
    ///
    /// # Errors
    /// [`RuntimeError::Shape`] if the values are not whole rows; [`RuntimeError::Limit`] if the model takes none.
    pub fn set_rows(&mut self, rows: &[f32]) -> Result<(), RuntimeError> {
        self.row_input().n_row(rows, u32::MAX)?;
        self.inputs = rows.to_vec();
        Ok(())
    }

    /// Sets the masks of the next step, of all columns with [`ColumnOutput::MaskedChoice`] in order: bit `t % 32` of
    /// word `t / 32` is 1 if token `t` is allowed.
    pub fn set_masks(&mut self, masks: &[u32]) {
        self.masks = masks.to_vec();
    }

    /// As [`Self::run_step`], once; passes the inputs of every product to `watch`.
    ///
    /// # Errors
    /// As [`Self::run_step`]; [`ExpertError::NotHere`](crate::ExpertError::NotHere) for a model that was loaded without
    /// some experts.
    ///
    /// # Panics
    /// If a column has no mask ([`Self::set_masks`]) that needs one.
    pub fn run_watched(
        &mut self,
        columns: &[Column],
        outputs: &[ColumnOutput],
        watch: Watch<'_>,
    ) -> Result<StepOutputs, RuntimeError> {
        self.check(columns)?;
        self.check_whole()?;
        let (rows, picks) = self.begin(columns, outputs);
        let graph = self.graph.clone();
        let mut pass = Pass::new(&graph, &rows, &picks);
        for i in 0..graph.nodes.len() {
            self.run_node(&mut pass, i, watch);
        }
        let (logits, hidden) = pass.end();
        Ok(self.outputs(outputs, &rows, &picks, logits, hidden))
    }

    /// The rows of a checked step, whose state is that after it from now on.
    pub(super) fn begin(&mut self, columns: &[Column], outputs: &[ColumnOutput]) -> (Vec<Row>, Picks) {
        let row = |c: &Column| {
            let chosen = || self.seqs.chosen[c.seq as usize].expect("a token was chosen before");
            let components = c.components.unwrap_or([c.pos; 3]);
            Row { seq: c.seq, token: c.token.unwrap_or_else(chosen), pos: c.pos, input: c.row, components }
        };
        let rows: Vec<Row> = columns.iter().map(row).collect();
        let of = |f: fn(&ColumnOutput) -> bool| -> Vec<usize> {
            (0..outputs.len()).filter(|i| f(&outputs[*i])).collect()
        };
        let picks = Picks {
            head: of(|o| o.is_choice() || *o == ColumnOutput::Logits),
            hidden: of(|o| *o == ColumnOutput::Hidden),
        };
        for run in runs(&rows) {
            let last = rows[run.end - 1];
            self.seqs.state_at[last.seq as usize] = Some(last.pos + 1);
        }
        self.set_n_row(rows.len());
        (rows, picks)
    }

    /// Buffers are kept for steps of as many rows as the last.
    pub(super) fn set_n_row(&mut self, n_row: usize) {
        if self.n_row != n_row {
            self.buffers.clear();
            self.n_row = n_row;
        }
    }

    /// The outputs of a step; chooses tokens.
    pub(super) fn outputs(
        &mut self,
        outputs: &[ColumnOutput],
        rows: &[Row],
        picks: &Picks,
        mut logits: Vec<f32>,
        hidden: Vec<f32>,
    ) -> StepOutputs {
        let mut out = StepOutputs { hidden, ..StepOutputs::default() };
        let n_vocab = logits.len() / picks.head.len().max(1);
        let masks = std::mem::take(&mut self.masks);
        let mut masks = masks.chunks_exact(mask::n_word(n_vocab as u32).max(1) as usize);
        for (row, logits) in picks.head.iter().zip(logits.chunks_exact_mut(n_vocab.max(1))) {
            match outputs[*row] {
                ColumnOutput::Logits => {
                    out.logits.extend_from_slice(logits);
                    continue;
                }
                ColumnOutput::MaskedChoice => {
                    mask::reference::mask(
                        logits,
                        masks.next().expect("a mask for each column that needs one"),
                    );
                }
                _ => {}
            }
            let token = largest(logits);
            self.seqs.chosen[rows[*row].seq as usize] = Some(token);
            out.chosen.push(token);
        }
        out
    }

    pub(super) fn check(&self, columns: &[Column]) -> Result<(), RuntimeError> {
        let most = |of: fn(&Column) -> u32| columns.iter().map(of).max().map_or(0, |n| u64::from(n) + 1);
        let c = &self.config;
        for (what, found, limit) in
            [("sequences", most(|c| c.seq), c.n_seq), ("tokens of the sequence", most(|c| c.pos), c.n_ctx)]
        {
            if found > u64::from(limit) {
                return Err(RuntimeError::Limit { what, found, limit: limit.into() });
            }
        }
        let input = self.row_input();
        let n_row = self.inputs.len() / input.width.max(1) as usize;
        input.check(columns, n_row as u32, c.n_ctx)?;
        if self.is_encoder() {
            crate::step::check_texts(columns)?;
        }
        if self.has_state() {
            crate::step::check_runs(columns, |seq| self.seqs.state_at[seq as usize])?;
        }
        Ok(())
    }

    /// Runs a node, if the outputs need it.
    pub(super) fn run_node(&mut self, pass: &mut Pass<'_>, i: usize, watch: Watch<'_>) {
        let Pass { graph, rows, picks, values, hidden } = pass;
        let node = &graph.nodes[i];
        let is_tail = self.tail.contains(&node.out);
        if is_tail && picks.head.is_empty() {
            return;
        }
        // Only the requested rows of logits are computed: the head is the largest product.
        let head_input = match node.op {
            Op::MulMat { x, .. } if is_tail && picks.head.len() < rows.len() => Some(x),
            _ => None,
        };
        let whole = head_input.map(|x| {
            let wanted = gather(&values[x.0], graph.width(x) as usize, &picks.head);
            (x, std::mem::replace(&mut values[x.0], wanted))
        });
        for (x, weight) in products(&node.op) {
            watch(ProductInput { weight: &graph.weights[weight.0], matrix: 0, x: &values[x.0] });
        }
        let width = graph.width(node.out) as usize;
        let picked: Vec<Row>;
        let rows = match head_input {
            Some(_) => {
                picked = picks.head.iter().map(|row| rows[*row]).collect();
                &picked[..]
            }
            None => *rows,
        };
        values[node.out.0] = self.node(graph, &node.op, values, rows, width, watch);
        if let Some((x, whole)) = whole {
            values[x.0] = whole;
        }
        if graph.hidden == Some(node.out) {
            *hidden = gather(&values[node.out.0], width, &picks.hidden);
        }
        self.free(graph, i, values);
    }

    /// Frees values whose last reader is this node.
    pub(super) fn free(&self, graph: &Graph, node: usize, values: &mut [Vec<f32>]) {
        for v in graph.nodes[node].op.inputs() {
            if self.last_use[v.0] == node {
                self.buffers.give(std::mem::take(&mut values[v.0]));
            }
        }
    }
}

/// The matrices of products other than by experts, with their inputs.
fn products(op: &Op) -> Vec<(ValueId, WeightId)> {
    match op {
        Op::MulMat { x, weight, .. } => vec![(*x, *weight)],
        Op::Products { x, parts } => parts.iter().map(|p| (*x, p.weight)).collect(),
        _ => vec![],
    }
}

/// Selected rows of a value.
fn gather(x: &[f32], width: usize, rows: &[usize]) -> Vec<f32> {
    rows.iter().flat_map(|r| &x[r * width..][..width]).copied().collect()
}

/// Index of the first of the largest logits; out of range if none is finite.
fn largest(logits: &[f32]) -> u32 {
    let mut best = (u32::MAX, f32::NEG_INFINITY);
    for (id, v) in (0u32..).zip(logits) {
        if v.is_finite() && (best.0 == u32::MAX || *v > best.1) {
            best = (id, *v);
        }
    }
    best.0
}
