//! The short causal convolution of a channel, in f64.

/// Outputs for the inputs `u`; advances the state.
///
/// `state` has the last `weight.len() - 1` inputs, the oldest first.
pub fn channel(state: &mut [f32], weight: &[f32], bias: f32, silu: bool, u: &[f32]) -> Vec<f32> {
    let mut line = state.to_vec();
    line.extend_from_slice(u);
    let out = line
        .windows(weight.len())
        .map(|w| {
            let sum: f64 = w.iter().zip(weight).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let v = sum + f64::from(bias);
            (if silu { v / (1.0 + (-v).exp()) } else { v }) as f32
        })
        .collect();
    state.copy_from_slice(&line[u.len()..]);
    out
}
