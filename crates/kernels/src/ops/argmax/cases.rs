//! Cases of `argmax`.

use super::{Argmax, CHUNK};
use crate::case::{Case, CaseBuffer, Expected, random_values};
use crate::step;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for k in [1, 10, 32, 100, 2000, 2048, 2049, 5438, 32_000] {
        let call = Argmax { k, ring: 64 };
        let mut x = random_values(1, k as usize);
        if k > 20 {
            // Equals: the first one wins. Masked values never do.
            let top = 100.0;
            x[k as usize / 2] = top;
            x[k as usize - 1] = top;
            x[0] = f32::NEG_INFINITY;
        }
        let mut parts = Vec::new();
        for (i, chunk) in x.chunks(CHUNK as usize).enumerate() {
            let (at, v) = best(chunk);
            parts.extend([v.to_bits(), (i * CHUNK as usize + at) as u32]);
        }
        out.push(Case::new(
            format!("chunk k{k}"),
            move |caps| call.chunk(caps),
            vec![
                CaseBuffer::input("x", &x),
                CaseBuffer::output("y", &vec![0u32; parts.len()], Expected::Words(parts.clone())),
            ],
        ));
        let mut before: Vec<u32> = (0..step::HEADER as u32 + 12).collect();
        before[step::PICK] = 2;
        let mut after = before.clone();
        let token = best(&x).0 as u32;
        let mut ring = vec![9u32; 64];
        step::advance(&mut after, &mut ring, token);
        out.push(Case::new(
            format!("final k{k}"),
            move |caps| call.join(caps),
            vec![
                CaseBuffer::input("x", &parts),
                CaseBuffer::output("step", &before, Expected::Words(after)),
                CaseBuffer::output("ring", &vec![9u32; 64], Expected::Words(ring)),
            ],
        ));
    }
    out
}

/// Index and value of the first largest value.
fn best(x: &[f32]) -> (usize, f32) {
    let mut at = 0;
    for (i, v) in x.iter().enumerate() {
        if *v > x[at] {
            at = i;
        }
    }
    (at, x[at])
}
