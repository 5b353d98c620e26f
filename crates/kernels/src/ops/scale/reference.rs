//! y = y * by + bias.

/// Scales `y` in place.
pub fn scale(y: &mut [f32], by: f32, bias: f32) {
    for v in y {
        *v = (f64::from(*v) * f64::from(by) + f64::from(bias)) as f32;
    }
}
