//! Cases of `mask`.

use super::{CHUNK, Mask, n_word, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::{Rng, random_values};

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for k in [1, 31, 32, 33, 100, CHUNK - 1, CHUNK, CHUNK + 1, 5438, 32_000] {
        for n_row in [1, 2, 7, 64] {
            if n_row < 64 || k < 6000 {
                out.push(case(k, n_row));
            }
        }
    }
    out
}

fn case(k: u32, n_row: usize) -> Case {
    let (ld, n_word) = (k.next_multiple_of(8), n_word(k) as usize);
    let mut y = random_values(1, ld as usize * n_row);
    let rng = &mut Rng::new(u64::from(k) + n_row as u64);
    let mut masks: Vec<u32> = (0..n_word * n_row).map(|_| rng.bits() as u32).collect();
    let mut after = y.clone();
    for (row, mask) in masks.chunks_mut(n_word).enumerate() {
        match row % 7 {
            // All, nothing, the last token alone. Bits behind the last token mean nothing.
            1 => mask.fill(u32::MAX),
            2 => mask.fill(0),
            3 => {
                mask.fill(0);
                mask[n_word - 1] = 1 << ((k - 1) % 32);
            }
            _ => {}
        }
        let logits = row * ld as usize..row * ld as usize + k as usize;
        // Values that are not finite go as they are, or become minus infinity like others.
        for (at, strange) in [(3, f32::NAN), (17, f32::NEG_INFINITY), (18, f32::INFINITY)] {
            if at < k as usize {
                y[logits.start + at] = strange;
                after[logits.start + at] = strange;
            }
        }
        reference::mask(&mut after[logits], mask);
    }
    let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
    let call = Mask { k, ld, n_row: n_row as u32 };
    Case::new(
        format!("k{k} rows{n_row}"),
        move |_| call.dispatch(),
        vec![
            CaseBuffer::output("y", &bits(&y), Expected::Words(bits(&after))),
            CaseBuffer::input("masks", &masks),
        ],
    )
}
