//! y + by * x, in f64.

/// Adds `x` times a factor to `y` in place.
pub fn add_scaled(y: &mut [f32], x: &[f32], by: f32) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = (f64::from(*y) + f64::from(by) * f64::from(*x)) as f32;
    }
}
