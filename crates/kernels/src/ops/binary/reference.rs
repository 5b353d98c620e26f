//! y = y op x.

use super::Function;

/// Applies `f` element-wise.
pub fn binary(f: Function, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        match f {
            Function::Add => *y += x,
            Function::Mul => *y *= x,
        }
    }
}
