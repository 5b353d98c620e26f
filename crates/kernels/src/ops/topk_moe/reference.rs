//! The experts of one column and their weights, in f64.

use chaski_graph::{Gate, Routing};

/// Gate probabilities of the logits.
fn probabilities(gate: Gate, logits: &[f32]) -> Vec<f64> {
    let l = logits.iter().map(|v| f64::from(*v));
    match gate {
        Gate::Softmax => soft_max(&l.collect::<Vec<_>>()),
        Gate::Sigmoid => l.map(|v| 1.0 / (1.0 + (-v).exp())).collect(),
        Gate::SoftmaxWeight => l.collect(),
        // Avoids exp where it would overflow.
        Gate::SqrtSoftplus => l.map(|v| (v.max(0.0) + (-v.abs()).exp().ln_1p()).sqrt()).collect(),
    }
}

fn soft_max(v: &[f64]) -> Vec<f64> {
    let top = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = v.iter().map(|v| (v - top).exp()).sum();
    v.iter().map(|v| (v - top).exp() / sum).collect()
}

/// Indices of the `n` highest scores, in descending order; the first of equal scores come first.
fn best(scores: &[f64], n: usize) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::with_capacity(n);
    for _ in 0..n.min(scores.len()) {
        let left = (0..scores.len()).filter(|i| !found.contains(i));
        found.extend(left.max_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(b.cmp(a))));
    }
    found
}

/// Scores that decide the selection: minus infinity if the group is not selected.
pub fn scores(r: &Routing, logits: &[f32], bias: Option<&[f32]>) -> Vec<f64> {
    let mut scores = probabilities(r.gate, logits);
    if let Some(bias) = bias {
        scores.iter_mut().zip(bias).for_each(|(s, b)| *s += f64::from(*b));
    }
    if r.n_group > 1 {
        let size = scores.len() / r.n_group as usize;
        let two = |g: &[f64]| best(g, 2).iter().map(|i| g[*i]).sum::<f64>();
        let by_group: Vec<f64> = scores.chunks(size).map(two).collect();
        let used = best(&by_group, r.n_group_used as usize);
        for g in (0..by_group.len()).filter(|g| !used.contains(g)) {
            scores[g * size..][..size].fill(f64::NEG_INFINITY);
        }
    }
    scores
}

/// The experts of one column in descending order of score, with their weights.
pub fn topk_moe(r: &Routing, logits: &[f32], bias: Option<&[f32]>) -> Vec<(u32, f32)> {
    let ids = best(&scores(r, logits, bias), r.n_used as usize);
    let all = probabilities(r.gate, logits);
    let mut weights: Vec<f64> = ids.iter().map(|e| all[*e]).collect();
    if r.gate == Gate::SoftmaxWeight {
        weights = soft_max(&weights);
    }
    if let Some(clamp) = r.norm {
        let sum: f64 = weights.iter().sum::<f64>().max(f64::from(clamp));
        weights.iter_mut().for_each(|w| *w /= sum);
    }
    ids.into_iter().zip(weights).map(|(e, w)| (e as u32, (w * f64::from(r.scale)) as f32)).collect()
}
