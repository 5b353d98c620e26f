//! y = act(gate) * up, in f64.

use super::Act;

/// The activation of one value.
pub fn act(act: Act, v: f64) -> f64 {
    match act {
        Act::Swiglu => v / (1.0 + (-v).exp()),
        Act::Geglu => {
            0.5 * v * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * v * (1.0 + 0.044715 * v * v)).tanh())
        }
        Act::Reglu => v.max(0.0),
    }
}

/// Gates `up` by `gate`.
pub fn glu(kind: Act, gate: &[f32], up: &[f32]) -> Vec<f32> {
    gate.iter().zip(up).map(|(g, u)| (act(kind, f64::from(*g)) * f64::from(*u)) as f32).collect()
}
