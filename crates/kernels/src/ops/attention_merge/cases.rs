//! Cases of `attention_merge`.

use super::{AttentionMerge, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    [(4, 64, 2, 3), (1, 8, 1, 1), (8, 128, 16, 2), (3, 100, 5, 1), (2, 512, 7, 1)]
        .into_iter()
        .map(|(n_head, d, splits, n_col)| {
            let mut x = random_values(1, (n_col * n_head * splits * (d + 4)) as usize);
            for (i, p) in x.chunks_exact_mut(d as usize + 4).enumerate() {
                let d = d as usize;
                p[d] *= 10.0;
                p[d + 1] = p[d + 1].abs() + 0.5;
                // An empty part.
                if i % splits as usize == 1 {
                    p.fill(0.0);
                    p[d] = -3.0e38;
                }
            }
            let ldy = n_head * d;
            let values: Vec<f32> = x
                .chunks_exact((splits * (d + 4)) as usize)
                .flat_map(|p| reference::merge(p, d as usize))
                .collect();
            Case::new(
                format!("h{n_head} d{d} splits{splits} n{n_col}"),
                move |caps| AttentionMerge { n_head, d, splits, ldy, n_col }.dispatch(caps),
                vec![
                    CaseBuffer::input("x", &x),
                    CaseBuffer::output(
                        "y",
                        &vec![0f32; values.len()],
                        Expected::F32 { values, max_nmse: 1e-7 },
                    ),
                ],
            )
        })
        .collect()
}
