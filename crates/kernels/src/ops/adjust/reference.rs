//! The same on the CPU.

use super::AdjustParams;

/// Changes `logits` after the tokens `recent`, the newest last: `y += bias`; for each of the last `last_n` tokens,
/// once, `y = y <= 0 ? y * repeat : y / repeat`, then `y -= count * freq + present`.
pub fn adjust(logits: &mut [f32], p: &AdjustParams, recent: &[u32]) {
    let window = &recent[recent.len().saturating_sub(p.last_n as usize)..];
    for (token, y) in (0u32..).zip(logits) {
        let count = window.iter().filter(|t| **t == token).count();
        let bias = p.bias.iter().find(|(t, _)| *t == token).map(|(_, b)| *b);
        if count == 0 && bias.is_none() {
            continue;
        }
        let mut v = f64::from(*y) + f64::from(bias.unwrap_or(0.0));
        if count > 0 {
            let repeat = f64::from(p.repeat);
            v = if v <= 0.0 { v * repeat } else { v / repeat };
            v -= count as f64 * f64::from(p.freq) + f64::from(p.present);
        }
        *y = v as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_hand() {
        let p = AdjustParams {
            last_n: 4,
            repeat: 2.0,
            freq: 0.5,
            present: 0.25,
            bias: vec![(1, 3.0), (4, f32::NEG_INFINITY), (5, -1.0)],
        };
        let mut logits = [4.0, -1.0, 3.0, 3.0, 9.0, 2.0];
        // Token 3 is outside the window; the bias makes the logit of token 1 positive before the division.
        adjust(&mut logits, &p, &[3, 0, 1, 0, 4]);
        assert_eq!(logits, [2.0 - 1.25, 1.0 - 0.75, 3.0, 3.0, f32::NEG_INFINITY, 1.0]);
    }
}
