//! act(gate) * up, in f64.

use super::Act;

/// v * logistic(alpha v)
fn swish(v: f64, alpha: f64) -> f64 {
    v / (1.0 + (-alpha * v).exp())
}

/// The error function: its series, which converges everywhere and cancels little below 6; beyond, erf is 1 in f64.
fn erf(z: f64) -> f64 {
    if z.abs() > 6.0 {
        return z.signum();
    }
    // exp(-z^2) sum 2^n z^(2n+1) / (2n+1)!! has terms of one sign.
    let (mut term, mut sum) = (z, z);
    for n in 1..200 {
        term *= 2.0 * z * z / f64::from(2 * n + 1);
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-z * z).exp() * sum
}

/// One gated value.
pub fn one(kind: Act, gate: f64, up: f64) -> f64 {
    match kind {
        Act::Swiglu => swish(gate, 1.0) * up,
        Act::Geglu => {
            let z = (2.0 / std::f64::consts::PI).sqrt() * gate * (1.0 + 0.044715 * gate * gate);
            0.5 * gate * (1.0 + z.tanh()) * up
        }
        Act::Reglu => gate.max(0.0) * up,
        Act::GegluErf => 0.5 * gate * (1.0 + erf(gate / std::f64::consts::SQRT_2)) * up,
        Act::GegluQuick => swish(gate, 1.702) * up,
        Act::SwigluOai { alpha, limit } => {
            let limit = f64::from(limit);
            swish(gate.min(limit), alpha.into()) * (up.clamp(-limit, limit) + 1.0)
        }
        Act::SwigluClamp { limit } => {
            let limit = f64::from(limit);
            swish(gate.min(limit), 1.0) * up.clamp(-limit, limit)
        }
    }
}

/// Gates `up` by `gate`.
pub fn glu(kind: Act, gate: &[f32], up: &[f32]) -> Vec<f32> {
    gate.iter().zip(up).map(|(g, u)| one(kind, f64::from(*g), f64::from(*u)) as f32).collect()
}
