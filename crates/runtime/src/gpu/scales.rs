//! LoRA scales: those of each sequence, and those of the columns and picks of a step, as the devices have them.

use crate::graph::Graph;
use crate::plan::Groups;
use crate::step::Column;

/// Location of a LoRA's scales in an aux buffer.
struct Place {
    aux: usize,
    /// First word.
    at: usize,
    n_col: usize,
    /// Index of the LoRA, and constant factor of its scale.
    of: usize,
    by: f32,
}

/// Places with the scales of the same columns.
#[derive(Default)]
struct Places {
    all: Vec<Place>,
    /// Scales of every column as they were last written: `[n_col, n_lora]`.
    written: Vec<f32>,
}

/// Words of an aux buffer, from a byte on.
pub(super) struct ScaleWrite {
    pub(super) aux: usize,
    pub(super) at: u64,
    pub(super) words: Vec<f32>,
}

/// LoRA scales of a model.
pub(super) struct Scales {
    n_lora: usize,
    /// `[n_seq, n_lora]`
    of_seqs: Vec<f32>,
    /// Those of the plans of one column, of all columns, and of the columns with logits.
    alone: Places,
    columns: Places,
    picks: Places,
    /// Scales of the next columns, reused.
    next: Vec<f32>,
}

impl Scales {
    /// Zeros, as buffers have them after loading.
    pub(super) fn new(graph: &Graph, groups: &Groups, n_seq: u32) -> Self {
        let n_lora = graph.n_lora();
        let of_seqs = vec![0.0; n_seq as usize * n_lora];
        let [alone, columns, picks] = <[Places; 3]>::default();
        let mut scales = Scales { n_lora, of_seqs, alone, columns, picks, next: Vec::new() };
        for (aux, a) in groups.aux.iter().enumerate() {
            let Some(of_columns) = a.columns else { continue };
            let scale = graph.lora_scale(of_columns.scale).expect("scales by column are those of LoRAs");
            let (at, n_col) = (a.affine_at as usize, a.n_col as usize);
            let place = Place { aux, at, n_col, of: scale.of, by: of_columns.by * scale.by };
            let places = match (of_columns.picked, n_col) {
                (true, _) => &mut scales.picks,
                (false, 1) => &mut scales.alone,
                (false, _) => &mut scales.columns,
            };
            places.written.resize(places.written.len().max(n_col * n_lora), 0.0);
            places.all.push(place);
        }
        scales
    }

    /// Sets the scales of a sequence; true if they were others.
    pub(super) fn set(&mut self, seq: u32, scales: &[f32]) -> bool {
        let n = self.n_lora;
        let (own, scales) = (&mut self.of_seqs[seq as usize * n..][..n], &scales[..n]);
        let is_other = own != scales;
        own.copy_from_slice(scales);
        is_other
    }

    /// Differences between what the devices have and the scales of these columns and picks.
    pub(super) fn writes(&mut self, columns: &[Column], picks: &[u32]) -> Vec<ScaleWrite> {
        let mut out = Vec::new();
        let Scales { n_lora, of_seqs, alone, columns: many, picks: picked, next } = self;
        if *n_lora == 0 {
            return out;
        }
        let of = |c: &Column| &of_seqs[c.seq as usize * *n_lora..][..*n_lora];
        let mut update = |places: &mut Places, columns: &mut dyn Iterator<Item = &Column>| {
            next.clear();
            columns.for_each(|c| next.extend_from_slice(of(c)));
            places.update(next, *n_lora, &mut out);
        };
        if columns.len() == 1 {
            update(alone, &mut columns.iter());
        }
        update(many, &mut columns.iter());
        update(picked, &mut picks.iter().map(|pick| &columns[*pick as usize]));
        out
    }
}

impl Places {
    /// Takes the scales of the next columns.
    fn update(&mut self, next: &[f32], n_lora: usize, out: &mut Vec<ScaleWrite>) {
        let next = &next[..next.len().min(self.written.len())];
        if next.is_empty() || self.written.starts_with(next) {
            return;
        }
        let mut columns = self.written.clone();
        let first = &next[..n_lora];
        if next.chunks_exact(n_lora).all(|column| column == first) {
            // Equal scales go to all columns, so that larger steps of the same requests need no write.
            columns.chunks_exact_mut(n_lora).for_each(|column| column.copy_from_slice(first));
        } else {
            columns[..next.len()].copy_from_slice(next);
        }
        for Place { aux, at, n_col, of, by } in &self.all {
            let differs = |c: &usize| columns[c * n_lora + of] != self.written[c * n_lora + of];
            let Some(first) = (0..*n_col).find(differs) else { continue };
            let last = (first..*n_col).rfind(differs).unwrap_or(first);
            let words = (first..=last).flat_map(|c| [by * columns[c * n_lora + of], 0.0]).collect();
            out.push(ScaleWrite { aux: *aux, at: 4 * (at + 2 * first) as u64, words });
        }
        self.written = columns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two LoRAs and four columns.
    fn places() -> Places {
        let place = |aux, n_col, of| Place { aux, at: 8, n_col, of, by: 2.0 };
        Places { all: vec![place(0, 4, 0), place(1, 4, 1), place(2, 2, 0)], written: vec![0.0; 8] }
    }

    fn written(places: &mut Places, next: &[[f32; 2]]) -> Vec<(usize, u64, Vec<f32>)> {
        let mut out = Vec::new();
        places.update(next.as_flattened(), 2, &mut out);
        out.into_iter().map(|w| (w.aux, w.at, w.words)).collect()
    }

    #[test]
    fn only_differences_are_written() {
        let mut p = places();
        assert_eq!(written(&mut p, &[[0.0, 0.0]]), []);
        let mixed = [[0.5, 0.0], [0.0, 0.0], [1.0, 0.0]];
        let expected = [(0, 32, vec![1.0, 0.0, 0.0, 0.0, 2.0, 0.0]), (2, 32, vec![1.0, 0.0])];
        assert_eq!(written(&mut p, &mixed), expected);
        assert_eq!(written(&mut p, &mixed), []);
        assert_eq!(written(&mut p, &mixed[..2]), []);
        assert_eq!(written(&mut p, &[[0.5, 0.0], [0.0, 3.0]]), [(1, 40, vec![6.0, 0.0])]);
    }

    #[test]
    fn equal_scales_are_written_for_all_columns_at_once() {
        let mut p = places();
        let expected = [(0, 32, [4.0, 0.0].repeat(4)), (2, 32, [4.0, 0.0].repeat(2))];
        assert_eq!(written(&mut p, &[[2.0, 0.0]]), expected);
        assert_eq!(written(&mut p, &[[2.0, 0.0]; 4]), []);
        // More columns than places are those of larger plans.
        assert_eq!(written(&mut p, &[[2.0, 0.0]; 7]), []);
    }
}
