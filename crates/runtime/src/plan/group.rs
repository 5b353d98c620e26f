//! Grouping of weights on the device.
//!
//! Matrices that multiply the same input (q, k, v; gate, up) and have the same format are stored contiguously, so that
//! one binding holds them all. A matrix larger than a binding is split by rows. Small vectors (norms, biases, scales)
//! go to one `aux` buffer per step.

use chaski_kernels::{Affine, AffineBy, Caps, DeviceLayout, Format, Matrix};

use super::error::PlanError;
use super::steps::{Norm, Part, Steps};
use super::streaming::Streaming;
use crate::formats;
use crate::graph::{Graph, ValueId, WeightId};

/// Rows of a group in one buffer.
#[derive(Clone, Debug)]
pub struct Shard {
    /// First row of the group.
    pub row0: u32,
    /// Rows.
    pub n_row: u32,
}

/// Weights of one format and row length, rows one after the other.
#[derive(Clone, Debug)]
pub struct Group {
    /// Members and the first row of each; for experts, the row within an expert's share.
    pub members: Vec<(WeightId, u32)>,
    /// Their format.
    pub format: &'static Format,
    /// Capacity in experts, whose shares of all members are contiguous; 1 for other matrices.
    pub n_expert: u32,
    /// Rows per expert's share.
    pub share: u32,
    /// Row stride between shares: more than a share if that is not a whole number of layout steps and shares are
    /// written individually.
    pub stride: u32,
    /// Experts are offloaded: there is room for some, and they change.
    pub streamed: bool,
    /// Total rows.
    pub n_row: u32,
    /// Values per row.
    pub n_col: u32,
    /// The split of the rows over buffers.
    pub shards: Vec<Shard>,
}

impl Group {
    /// The matrix of a shard.
    pub fn matrix(&self, shard: &Shard) -> Matrix {
        Matrix { format: self.format, n_row: shard.n_row, n_col: self.n_col }
    }

    /// The layout of a shard.
    pub fn layout(&self, shard: &Shard) -> DeviceLayout {
        self.matrix(shard).layout()
    }

    /// Bytes per row in the file.
    pub fn row_bytes(&self) -> usize {
        self.n_col as usize / self.format.ty.block_len() * self.format.ty.block_bytes()
    }

    /// Rows with about this many bytes in the file: whole steps of the layout, so that their planes fall on words.
    pub fn rows_of(&self, n_byte: usize) -> u32 {
        let step = DeviceLayout::ROW_STEP;
        ((n_byte / self.row_bytes().max(1)) as u32 / step * step).max(step)
    }
}

/// Scale and bias of a run of rows; for experts, of a run of each.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct AuxRow {
    /// Rows.
    pub n_row: u32,
    /// `[n_expert, n_row]`, else zeros.
    pub bias: Option<WeightId>,
    /// `[n_expert]`, else one.
    pub scale: Option<WeightId>,
    /// Factor of both.
    pub by: f32,
}

/// A LoRA's scales of the columns of a step.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct AuxColumns {
    /// The weight that stands for them.
    pub scale: WeightId,
    /// Constant factor.
    pub by: f32,
    /// Columns are the step's picks.
    pub picked: bool,
}

/// The small vectors of a step, mostly norm weights, then (scale, bias) of every row or of every column.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Aux {
    /// Vectors and the first word of each.
    pub vectors: Vec<(WeightId, u32)>,
    /// Runs of rows, from [`Self::affine_at`]; empty if no row has a scale or a bias.
    pub rows: Vec<AuxRow>,
    /// The scales of columns, in place of rows. They are written before each step that changes them.
    pub columns: Option<AuxColumns>,
    /// Maximum number of these columns.
    pub n_col: u32,
    /// First word of the rows or columns.
    pub affine_at: u32,
    /// Number of experts with these rows, contiguous.
    pub n_expert: u32,
    /// The group of these experts if they are offloaded: their scales and biases are uploaded with them.
    pub streamed: Option<usize>,
}

impl Aux {
    /// These vectors, each aligned to `step` words.
    fn of(graph: &Graph, vectors: &[WeightId], step: u32) -> Self {
        let (mut aux, mut at) = (Aux { n_expert: 1, ..Aux::default() }, 0);
        for id in vectors {
            let w = &graph.weights[id.0];
            aux.vectors.push((*id, at));
            at += (w.n_row * w.n_col).next_multiple_of(step);
        }
        aux.affine_at = at;
        aux
    }

    /// Scales and biases of a product whose first row is `row` of these.
    pub fn affine(&self, row: u32) -> Option<Affine> {
        match self.columns {
            Some(_) => Some(Affine { at: self.affine_at, by: AffineBy::Column }),
            None if self.rows.is_empty() => None,
            None => Some(Affine { at: self.affine_at + 2 * row, by: AffineBy::Row }),
        }
    }

    /// True if both have the same content, apart from the number of columns.
    fn is_like(&self, other: &Aux) -> bool {
        let content = |a: &Aux| (a.affine_at, a.n_expert, a.streamed, a.columns);
        content(self) == content(other) && self.vectors == other.vectors && self.rows == other.rows
    }

    /// Words of the buffer.
    pub fn n_word(&self) -> usize {
        let rows: usize = self.rows.iter().map(|r| r.n_row as usize).sum();
        let pairs = self.n_expert.max(1) as usize * rows + self.n_col as usize;
        self.affine_at as usize + 2 * pairs
    }
}

/// All groups and aux buffers of a model.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// The groups.
    pub groups: Vec<Group>,
    /// The aux buffers.
    pub aux: Vec<Aux>,
    /// For every weight its group and first row there.
    pub home: Vec<Option<(usize, u32)>>,
}

impl Groups {
    /// Decides for every matrix of the steps where it lies.
    ///
    /// # Errors
    /// [`PlanError::Format`] for a tensor in a type that is no weight format, [`PlanError::Row`] for rows that do not
    /// fit a binding, [`PlanError::NoExperts`] and [`PlanError::ExpertSlots`] for experts that cannot be offloaded to
    /// the CPU.
    pub fn new(graph: &Graph, steps: &Steps, caps: &Caps, experts: &Streaming) -> Result<Self, PlanError> {
        Groups::of_devices(graph, steps, &[caps], experts)
    }

    /// The same for matrices that may lie on any of these devices.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_devices(
        graph: &Graph,
        steps: &Steps,
        devices: &[&Caps],
        experts: &Streaming,
    ) -> Result<Self, PlanError> {
        let caps = *devices.iter().min_by_key(|caps| caps.max_binding_bytes).ok_or(PlanError::NoDevice)?;
        formats::check(graph)?;
        let mut g = Groups { home: vec![None; graph.weights.len()], ..Groups::default() };
        let routes = experts.routes(graph)?;
        let slots = |route: ValueId| routes.iter().find(|r| r.0 == route).map(|r| r.1);
        for step in &steps.list {
            let (matrices, route) = steps.matrices(graph, step);
            g.add(graph, &matrices, caps, route.and_then(slots))?;
        }
        Ok(g)
    }

    /// Adds runs of adjacent weights that can share a binding; `slots` if they are offloaded experts.
    fn add(
        &mut self,
        graph: &Graph,
        weights: &[WeightId],
        caps: &Caps,
        slots: Option<u32>,
    ) -> Result<(), PlanError> {
        let mut run: Vec<WeightId> = Vec::new();
        for id in weights {
            if self.home[id.0].is_some() {
                continue;
            }
            let w = &graph.weights[id.0];
            let rows: u32 = run.iter().map(|r| graph.weights[r.0].n_row).sum::<u32>() + w.n_row;
            let joins = run.first().is_some_and(|first| {
                let f = &graph.weights[first.0];
                // Experts are split between one and the next, so only one share must fit.
                let least = rows / w.n_expert;
                let fits = Format::of(w.ty)
                    .is_some_and(|f| DeviceLayout::new(f, least, w.n_col).n_byte <= caps.max_binding_bytes);
                let whole = w.n_expert > 1 || (rows - w.n_row) % 4 == 0;
                f.ty == w.ty && f.n_col == w.n_col && f.n_expert == w.n_expert && whole && fits
            });
            if !joins {
                self.close(graph, &mut run, caps, slots)?;
            }
            run.push(*id);
        }
        self.close(graph, &mut run, caps, slots)
    }

    fn close(
        &mut self,
        graph: &Graph,
        run: &mut Vec<WeightId>,
        caps: &Caps,
        slots: Option<u32>,
    ) -> Result<(), PlanError> {
        let Some(first) = run.first() else { return Ok(()) };
        let w = &graph.weights[first.0];
        let format = formats::format_of(w)?;
        if w.n_col as usize % w.ty.block_len() != 0 {
            return Err(PlanError::Row { tensor: w.name.clone(), n_col: w.n_col });
        }
        let (mut members, mut n_row) = (Vec::new(), 0);
        for id in run.drain(..) {
            self.home[id.0] = Some((self.groups.len(), n_row));
            members.push((id, n_row));
            n_row += graph.weights[id.0].expert_rows();
        }
        let (n_expert, share) = (slots.unwrap_or(w.n_expert), n_row);
        let stride = if slots.is_some() { share.next_multiple_of(DeviceLayout::ROW_STEP) } else { share };
        n_row = stride * n_expert;
        // Whole steps of four rows per shard, so that packing stays on word borders.
        let bytes = |rows: u32| DeviceLayout::new(format, rows, w.n_col).n_byte;
        let mut per = n_row.max(1);
        if w.n_expert > 1 {
            let fits = |n: &u32| bytes(n * stride) <= caps.max_binding_bytes;
            per = (1..=n_expert).rev().find(fits).unwrap_or(0) * stride;
        } else if bytes(per) > caps.max_binding_bytes {
            // A buffer also holds the format's table and up to 16 bytes of padding per plane.
            let fixed = bytes(0);
            let row = (bytes(64) - fixed).div_ceil(64);
            per = (caps.max_binding_bytes.saturating_sub(fixed + 64) / row / 4 * 4) as u32;
        }
        if per == 0 {
            return Err(PlanError::Row { tensor: w.name.clone(), n_col: w.n_col });
        }
        let shards = (0..n_row)
            .step_by(per as usize)
            .map(|row0| Shard { row0, n_row: per.min(n_row - row0) })
            .collect();
        let streamed = slots.is_some();
        let n_col = w.n_col;
        self.groups.push(Group { members, format, n_expert, share, stride, streamed, n_row, n_col, shards });
        Ok(())
    }

    /// The group of a matrix and its first row there.
    pub fn home(&self, w: WeightId) -> (usize, u32) {
        self.home[w.0].expect("every matrix of a step has a group")
    }

    /// The aux buffer of vectors, each aligned to eight words.
    pub fn vectors(&mut self, graph: &Graph, weights: &[WeightId]) -> usize {
        self.keep(Aux::of(graph, weights, 8))
    }

    /// The aux buffer of small tensors, contiguous.
    pub fn packed(&mut self, graph: &Graph, weights: &[WeightId]) -> usize {
        self.keep(Aux::of(graph, weights, 1))
    }

    fn keep(&mut self, aux: Aux) -> usize {
        match self.aux.iter().position(|a| a.is_like(&aux)) {
            Some(at) => {
                let n_col = &mut self.aux[at].n_col;
                *n_col = aux.n_col.max(*n_col);
                at
            }
            None => {
                self.aux.push(aux);
                self.aux.len() - 1
            }
        }
    }

    /// The aux buffer of a norm and of parts whose rows are concatenated, in a step of at most `n_col` columns, or
    /// `picked` ones; `None` if it would be empty.
    ///
    /// # Errors
    /// [`PlanError::LoraScale`] for the scale of a LoRA that is not that of a single product without bias.
    pub fn aux(
        &mut self,
        graph: &Graph,
        norm: Option<Norm>,
        parts: &[Part],
        (n_col, picked): (u32, bool),
    ) -> Result<Option<usize>, PlanError> {
        let vectors: Vec<WeightId> = norm.iter().map(|n| n.weight).collect();
        let is_lora = |p: &&Part| p.scale.is_some_and(|s| graph.lora_scale(s).is_some());
        if let Some(part) = parts.iter().find(is_lora) {
            let [Part { bias: None, scale: Some(scale), by, .. }] = *parts else {
                return Err(PlanError::LoraScale { tensor: graph.weights[part.weight.0].name.clone() });
            };
            let columns = Some(AuxColumns { scale, by, picked });
            return Ok(Some(self.keep(Aux { columns, n_col, ..Aux::of(graph, &vectors, 8) })));
        }
        let any = parts.iter().any(|p| p.bias.is_some() || p.scale.is_some() || p.by != 1.0);
        if norm.is_none() && !any {
            return Ok(None);
        }
        let rows = |p: &Part| AuxRow {
            n_row: graph.weights[p.weight.0].expert_rows(),
            bias: p.bias,
            scale: p.scale,
            by: p.by,
        };
        let mut aux = Aux {
            rows: if any { parts.iter().map(rows).collect() } else { vec![] },
            ..Aux::of(graph, &vectors, 8)
        };
        if let Some((at, _)) = parts.first().and_then(|p| self.home[p.weight.0]) {
            let group = &self.groups[at];
            aux.n_expert = group.n_expert;
            if group.streamed && any {
                let differs = |p: &Part| p.bias.is_some() || p.scale.is_some();
                aux.streamed = parts.iter().any(differs).then_some(at);
                // Rows are counted as in the matrix, where shares may be apart.
                let n_row = group.stride - group.share;
                aux.rows.push(AuxRow { n_row, bias: None, scale: None, by: 1.0 });
            }
        }
        Ok(Some(self.keep(aux)))
    }
}

#[cfg(test)]
mod tests {
    use ggml_format::GgmlType;

    use super::*;
    use crate::graph::{LoraScale, Weight};

    #[test]
    fn scales_of_loras_are_by_column_and_beside_nothing_else() {
        let mut graph = Graph::default();
        let mut weight = |name: &str, n_row| graph.weight(Weight::new(name.into(), GgmlType::F32, n_row, 8));
        let [a, b, bias] = ["a", "b", "bias"].map(|name| weight(name, 4));
        let scale = weight("scale", 1);
        graph.scales.push(LoraScale { weight: scale, of: 0, by: 2.0 });
        let part = |weight| Part { weight, bias: None, scale: Some(scale), by: 1.0 };
        let mut groups = Groups { home: vec![None; 4], ..Groups::default() };
        // Plans of different sizes share the buffer, picks have their own.
        let aux = [(1, false), (8, false), (3, false), (4, true)]
            .map(|columns| groups.aux(&graph, None, &[part(a)], columns).expect("a single product"));
        assert_eq!(aux, [Some(0), Some(0), Some(0), Some(1)]);
        let found = |i: usize| (groups.aux[i].n_word(), groups.aux[i].affine(3));
        let by_column = Some(Affine { at: 0, by: AffineBy::Column });
        assert_eq!([found(0), found(1)], [(16, by_column), (8, by_column)]);
        for parts in [vec![part(a), part(b)], vec![Part { bias: Some(bias), ..part(b) }]] {
            let e = groups.aux(&graph, None, &parts, (8, false)).expect_err("more than a factor");
            assert!(matches!(e, PlanError::LoraScale { .. }), "{e}");
        }
    }
}
