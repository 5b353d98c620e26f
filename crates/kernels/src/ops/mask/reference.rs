//! The same on the CPU.

/// True if bit `token` of a mask is set.
pub fn is_allowed(mask: &[u32], token: usize) -> bool {
    mask.get(token / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
}

/// Sets the logits of tokens that `mask` forbids to minus infinity.
pub fn mask(logits: &mut [f32], mask: &[u32]) {
    for (token, logit) in logits.iter_mut().enumerate() {
        if !is_allowed(mask, token) {
            *logit = f32::NEG_INFINITY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_tokens_from_the_lowest_on() {
        let mut logits: Vec<f32> = (0..40).map(|i| i as f32).collect();
        mask(&mut logits, &[1 | 1 << 31, 0b100]);
        let left: Vec<f32> = logits.iter().copied().filter(|v| v.is_finite()).collect();
        assert_eq!((left, logits[1]), (vec![0.0, 31.0, 34.0], f32::NEG_INFINITY));
    }
}
