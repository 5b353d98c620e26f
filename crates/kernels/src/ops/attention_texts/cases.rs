//! Cases of `attention_texts`.

use chaski_graph::Score;

use super::AttentionTexts;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::ops::attention::reference::Query;
use crate::rng::random_values;
use crate::step;

/// Heads, channels and scores of a call over texts of these lengths.
#[derive(Clone)]
struct Setting {
    n_head: u32,
    n_kv: u32,
    d: [u32; 2],
    max_bias: f32,
    window: u32,
    texts: Vec<u32>,
    f16_tiles: bool,
}

impl Setting {
    fn new(n_head: u32, n_kv: u32, d: u32, texts: &[u32]) -> Self {
        let texts = texts.to_vec();
        Setting { n_head, n_kv, d: [d, d], max_bias: 0.0, window: 0, texts, f16_tiles: false }
    }

    /// The step: sequences in another order than their columns.
    fn step(&self) -> Vec<u32> {
        let n_col = self.texts.iter().sum::<u32>() as usize;
        let mut words = vec![0; step::HEADER + step::COLUMN * n_col];
        words[step::N_COL] = n_col as u32;
        let seqs = (0..self.texts.len() as u32).rev();
        let columns = self.texts.iter().zip(seqs).flat_map(|(n, seq)| (0..*n).map(move |pos| (seq, pos)));
        for (column, (seq, pos)) in columns.enumerate() {
            let at = step::HEADER + step::COLUMN * column;
            (words[at + step::POSITION], words[at + step::SEQUENCE]) = (pos, seq);
        }
        words
    }

    fn case(self, max_nmse: f64) -> Case {
        let [d, d_v] = self.d.map(|d| d as usize);
        let [n_head, n_kv] = [self.n_head, self.n_kv].map(|n| n as usize);
        let n_col = self.texts.iter().sum::<u32>() as usize;
        let ld = [n_head * d + 8, n_kv * d, n_kv * d_v + 4, n_head * d_v + 12];
        let [ldq, ldk, ldv, ldy] = ld;
        let value = |seed, ld: usize| {
            let mut x = random_values(seed, ld * n_col);
            if self.f16_tiles {
                x.iter_mut().for_each(|v| *v = half::f16::from_f32(*v).to_f32());
            }
            x
        };
        let (q, k, v) = (value(1, ldq), value(2, ldk), value(3, ldv));
        let before = random_values(4, ldy * n_col);
        let mut values = before.clone();
        let score =
            Score { max_bias: self.max_bias, window: self.window, ..Score::scaled(1.0 / (d as f32).sqrt()) };
        let mut first = 0;
        for n in self.texts.iter().map(|n| *n as usize) {
            for (pos, h) in (0..n).flat_map(|pos| (0..n_head).map(move |h| (pos, h))) {
                let kv = h / (n_head / n_kv);
                let query = Query {
                    q: &q[(first + pos) * ldq + h * d..][..d],
                    score: &score,
                    head: (h as u32, self.n_head),
                    pos,
                    text: Some(n),
                    sink: None,
                };
                let key = |j: usize| &k[(first + j) * ldk + kv * d..][..d];
                let value = |j: usize| &v[(first + j) * ldv + kv * d_v..][..d_v];
                let out = query.attention(key, value);
                values[(first + pos) * ldy + h * d_v..][..d_v].copy_from_slice(&out);
            }
            first += n;
        }
        let call = AttentionTexts {
            n_head: self.n_head,
            n_kv: self.n_kv,
            d: self.d,
            scale: score.scale,
            max_bias: self.max_bias,
            window: self.window,
            ld: ld.map(|ld| ld as u32),
            n_col: n_col as u32,
            n_seq: self.texts.len() as u32,
            f16_tiles: self.f16_tiles,
        };
        let label = format!(
            "h{n_head}/{n_kv} d{d}/{d_v} alibi{} window{} texts{:?} tiles{}",
            self.max_bias, self.window, self.texts, self.f16_tiles
        );
        let step = self.step();
        Case::new(
            label,
            move |caps| call.dispatch(caps),
            vec![
                CaseBuffer::input("q", &q),
                CaseBuffer::input("k", &k),
                CaseBuffer::input("v", &v),
                CaseBuffer::input("step", &step),
                CaseBuffer::output("y", &before, Expected::F32 { values, max_nmse }),
            ],
        )
        .work(4 * self.texts.iter().map(|n| u64::from(n * n)).sum::<u64>() * (n_head * d) as u64)
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for d in [4, 12, 32, 40, 64, 80, 128, 256, 320] {
        out.push(Setting::new(2, 2, d, &[37, 5]));
    }
    for texts in [&[1][..], &[1; 40], &[63, 1, 64, 2, 65], &[200, 3, 150], &[31, 33, 32]] {
        out.push(Setting::new(3, 3, 32, texts));
    }
    for (n_head, n_kv) in [(3, 1), (4, 2), (12, 4), (71, 1)] {
        out.push(Setting::new(n_head, n_kv, 32, &[20, 70]));
    }
    out.push(Setting { d: [32, 48], ..Setting::new(4, 2, 32, &[20, 70]) });
    for window in [1, 2, 8, 50, 128, 1000] {
        out.push(Setting { window, ..Setting::new(2, 1, 32, &[150, 9, 80]) });
    }
    for n_head in [1, 6, 8] {
        out.push(Setting { max_bias: 8.0, window: 60, ..Setting::new(n_head, n_head, 32, &[90, 4]) });
    }
    let rounded = [Setting::new(4, 2, 64, &[70, 20]), Setting::new(2, 2, 128, &[9])];
    let rounded = rounded.map(|s| Setting { f16_tiles: true, ..s }.case(1e-6));
    out.into_iter().map(|s| s.case(1e-10)).chain(rounded).collect()
}
