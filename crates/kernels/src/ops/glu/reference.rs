//! act(gate) * up, in f64.

use chaski_graph::Act;

use super::Kind;

/// One gated value.
pub fn one(act: Act, gate: f64, up: f64) -> f64 {
    (Kind::of(act).formula)(gate, up, act.params().map(f64::from))
}

/// Gates `up` by `gate`.
pub fn glu(act: Act, gate: &[f32], up: &[f32]) -> Vec<f32> {
    gate.iter().zip(up).map(|(g, u)| one(act, f64::from(*g), f64::from(*u)) as f32).collect()
}
