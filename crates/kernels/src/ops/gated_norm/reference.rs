//! A gated row, normalised before or after, in f64.

use chaski_graph::recurrent::{GateAct, NormAt};

/// Activation of a gate.
fn act(kind: GateAct, z: f64) -> f64 {
    let logistic = 1.0 / (1.0 + (-z).exp());
    match kind {
        GateAct::Silu => z * logistic,
        GateAct::Sigmoid => logistic,
        GateAct::Softplus => {
            if z > 20.0 {
                z
            } else {
                z.exp().ln_1p()
            }
        }
    }
}

/// One row; `norm` gives the position of the norm, its weights and epsilon.
pub fn gated_norm(x: &[f32], z: &[f32], kind: GateAct, norm: Option<(NormAt, &[f32], f32)>) -> Vec<f32> {
    let gates: Vec<f64> = z.iter().map(|z| act(kind, f64::from(*z))).collect();
    let gated: Vec<f64> = x.iter().zip(&gates).map(|(x, g)| f64::from(*x) * g).collect();
    let Some((at, w, eps)) = norm else { return gated.into_iter().map(|v| v as f32).collect() };
    let ss: f64 = match at {
        NormAt::First => x.iter().map(|v| f64::from(*v).powi(2)).sum(),
        NormAt::Last => gated.iter().map(|v| v.powi(2)).sum(),
    };
    let scale = 1.0 / (ss / x.len() as f64 + f64::from(eps)).sqrt();
    gated.into_iter().zip(w).map(|(v, w)| (v * scale * f64::from(*w)) as f32).collect()
}
