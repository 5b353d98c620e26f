//! Token-by-token reference, in f64.

use crate::data::Data;

/// All values of y, outputs, then states, of values `v` and states `s`. `step` brings a row of the state forward by a
/// token, given the row, the token's value for it, and head and token; it returns the output.
pub(crate) fn outputs_and_states(
    v: &Data,
    s: &Data,
    mut step: impl FnMut(&mut [f64], f64, [u32; 2]) -> f64,
) -> Vec<f64> {
    let [n, heads, tokens, _] = v.tensor.ne;
    let n_seq = s.tensor.ne[3];
    let n_y = v.tensor.n_elem() as usize;
    let mut out = vec![0.0; n_y + s.tensor.n_elem() as usize];
    for (seq, head) in (0..n_seq).flat_map(|q| (0..heads).map(move |h| (q, h))) {
        for j in 0..n {
            let mut row: Vec<f64> = (0..n).map(|i| s.at([i, j, head, seq])).collect();
            for t in seq * (tokens / n_seq)..(seq + 1) * (tokens / n_seq) {
                let y = step(&mut row, v.at([j, head, t, 0]), [head, t]);
                out[((t * heads + head) * n + j) as usize] = y;
            }
            for (i, m) in (0..n).zip(row) {
                out[n_y + s.tensor.index([i, j, head, seq])] = m;
            }
        }
    }
    out
}
