//! Comparison of a buffer with its expected contents; all error norms are defined here.

use crate::kv::KvLayout;
use crate::tensor::Tensor;
use crate::values::{decode, from_device, to_device, words};

/// Expected contents of a buffer after the dispatch.
#[derive(Clone, Debug)]
pub enum Expected {
    /// f32 values within a normalised mean squared error; NaN and infinities must be in the same places.
    F32 {
        /// The reference's values.
        values: Vec<f32>,
        /// Largest `sum (a - b)^2 / sum b^2`; 0 asks for equal bits.
        max_nmse: f64,
    },
    /// f16 values, two a word, within a normalised mean squared error of these f32 values.
    F16 {
        /// The reference's values before rounding.
        values: Vec<f32>,
        /// Largest `sum (a - b)^2 / sum b^2`.
        max_nmse: f64,
    },
    /// The cells of a KV cache within a normalised mean squared error of these keys, then values, `[cell][channel]`.
    Cells {
        /// How the cache is laid out.
        kv: KvLayout,
        /// The reference's values before rounding.
        values: Vec<f32>,
        /// Largest `sum (a - b)^2 / sum b^2`.
        max_nmse: f64,
    },
    /// Words, bit by bit.
    Words(Vec<u32>),
    /// Runs of words, each compared in its own way.
    Runs(Vec<(usize, Expected)>),
    /// All bytes, bit by bit.
    Bytes(Vec<u8>),
    /// The values of a tensor in ggml's order; all other bytes must be unchanged.
    Tensor {
        /// Layout of the values.
        tensor: Tensor,
        /// The reference's values, rounded to the type.
        values: Vec<f64>,
        /// Largest `sum (a - b)^2 / sum b^2`; 0 asks for equal values.
        max_nmse: f64,
        /// Values before encoding, for formats whose codes are found by a search. A search has ties, which different
        /// rounding of quotients and sums resolves differently; so codes that approximate these values as well as the
        /// reference's are accepted.
        source: Option<Vec<f64>>,
    },
}

/// The error of floats as a normalised mean squared error (0 for anything else), and a description of the mismatch, if
/// any.
pub type Comparison = (f64, Option<String>);

impl Expected {
    /// Compares the contents of a buffer before and after.
    pub fn compare(&self, before: &[u8], found: &[u8]) -> Comparison {
        let flat = |found: &[f32], values: &[f32], limit: f64| {
            let wide = |v: &[f32]| v.iter().copied().map(f64::from).collect::<Vec<f64>>();
            floats(&wide(found), &wide(values), limit, |i| i.to_string())
        };
        match self {
            Expected::Bytes(want) => (0.0, first_difference("byte", found, want)),
            Expected::Words(want) => {
                let found: Vec<u32> = words(found).map(u32::from_le_bytes).collect();
                (0.0, first_difference("word", &found, want))
            }
            Expected::F32 { values, max_nmse } => {
                let found: Vec<f32> = words(found).map(f32::from_le_bytes).collect();
                flat(&found, values, *max_nmse)
            }
            Expected::F16 { values, max_nmse } => {
                let found: Vec<f32> = words(found).map(|b| half::f16::from_le_bytes(b).to_f32()).collect();
                flat(&found, values, *max_nmse)
            }
            Expected::Cells { kv, values, max_nmse } => flat(&kv.decode(found), values, *max_nmse),
            Expected::Tensor { tensor, values, max_nmse, source } => {
                tensor_values(tensor, values, *max_nmse, source.as_deref(), before, found)
            }
            Expected::Runs(runs) => {
                let (mut at, mut worst, mut wrong) = (0, 0.0f64, None);
                for (i, (n_word, expected)) in runs.iter().enumerate() {
                    let bytes = at..at + 4 * n_word;
                    let (nmse, what) = expected.compare(&before[bytes.clone()], &found[bytes.clone()]);
                    worst = worst.max(nmse);
                    wrong = wrong.or(what.map(|what| format!("run {i}: {what}")));
                    at = bytes.end;
                }
                (worst, wrong)
            }
        }
    }
}

/// The first difference of two lists; the first may be longer.
fn first_difference<T: PartialEq + std::fmt::LowerHex>(
    what: &str,
    found: &[T],
    want: &[T],
) -> Option<String> {
    assert!(found.len() >= want.len(), "a buffer with room for what is expected of it");
    let i = (0..want.len()).find(|i| found[*i] != want[*i])?;
    Some(format!("{what} {i} is {:#x}, must be {:#x}", found[i], want[i]))
}

/// Compares the values of a tensor with the expected ones, and the rest of its buffer with its previous contents.
fn tensor_values(
    tensor: &Tensor,
    values: &[f64],
    limit: f64,
    source: Option<&[f64]>,
    before: &[u8],
    found: &[u8],
) -> Comparison {
    let (old, new) = (from_device(tensor, before), from_device(tensor, found));
    // Bytes outside all blocks lie between planes or in a table.
    if let Some(i) = first_difference("byte", found, &to_device(tensor, &new)) {
        return (0.0, Some(format!("{i}: it is in no block")));
    }
    let (cells, n) = (tensor.cells(), tensor.ty.block_bytes());
    let mut rest = new.clone();
    for i in 0..cells.n_elem() {
        let at = cells.index(cells.coords(i)) * n;
        rest[at..at + n].copy_from_slice(&old[at..at + n]);
    }
    if let Some(what) = first_difference("byte", &rest, &old) {
        return (0.0, Some(format!("{what}: it is outside the tensor")));
    }
    let all = decode(tensor.ty, &new);
    let found: Vec<f64> = (0..tensor.n_elem()).map(|i| all[tensor.index(tensor.coords(i))]).collect();
    let (nmse, wrong) = floats(&found, values, limit, |i| format!("{:?}", tensor.coords(i as u32)));
    let as_good = source.is_some_and(|s| distance(&found, s) <= AS_GOOD * distance(values, s));
    (nmse, wrong.filter(|_| !as_good))
}

/// Largest ratio of squared errors of encoded values. Searches weight large values more than this sum does, so a block
/// of a small tensor can be slightly worse here and as good by the search's measure; wrong codes are far off.
const AS_GOOD: f64 = 1.1;

/// Sum of squared differences; NaN if any input is NaN.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Normalised mean squared error of labelled values. Non-finite values must match exactly, and so must all values if
/// the tolerance is 0.
fn floats(found: &[f64], want: &[f64], limit: f64, name: impl Fn(usize) -> String) -> Comparison {
    assert!(found.len() >= want.len(), "a buffer with room for what is expected of it");
    let (mut error, mut size, mut worst) = (0.0f64, 0.0f64, None);
    for (i, (a, b)) in found.iter().zip(want).enumerate() {
        if !a.is_finite() || !b.is_finite() {
            if a != b && !(a.is_nan() && b.is_nan()) {
                return (f64::INFINITY, Some(format!("value {} is {a}, must be {b}", name(i))));
            }
            continue;
        }
        if limit == 0.0 && a != b {
            return (f64::INFINITY, Some(format!("value {} is {a:e}, must be {b:e} exactly", name(i))));
        }
        let d = a - b;
        error += d * d;
        size += b * b;
        if worst.is_none_or(|(most, _)| d.abs() > most) {
            worst = Some((d.abs(), i));
        }
    }
    let nmse = if error == 0.0 { 0.0 } else { error / size.max(1e-30) };
    let failure = worst.filter(|_| nmse > limit).map(|(_, i)| {
        let (at, a, b) = (name(i), found[i], want[i]);
        format!("the error is {nmse:.3e}, at most {limit:.1e} is allowed; worst at {at}: {a} for {b}")
    });
    (nmse, failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::before;
    use ggml_format::GgmlType;

    fn f32s(found: &[f32], values: &[f32], max_nmse: f64) -> Comparison {
        let bytes: &[u8] = bytemuck::cast_slice(found);
        Expected::F32 { values: values.to_vec(), max_nmse }.compare(bytes, bytes)
    }

    #[test]
    fn floats_agree_within_the_limit_and_in_what_is_not_finite() {
        let nan = f32::NAN;
        assert_eq!(f32s(&[1.0, nan, -0.0], &[1.0, nan, 0.0], 0.0), (0.0, None));
        let (nmse, what) = f32s(&[3.0, 4.5, 9.0], &[3.0, 4.0], 1e-3);
        assert!((nmse - 0.01).abs() < 1e-12);
        let want = "the error is 1.000e-2, at most 1.0e-3 is allowed; worst at 1: 4.5 for 4";
        assert_eq!(what.as_deref(), Some(want));
        assert_eq!(f32s(&[nan], &[1.0], 1.0).1.as_deref(), Some("value 0 is NaN, must be 1"));
        let infinite = f32s(&[f32::INFINITY], &[f32::NEG_INFINITY], 1.0);
        assert_eq!(infinite.1.as_deref(), Some("value 0 is inf, must be -inf"));
        assert_eq!(f32s(&[1.5], &[1.0], 0.0).1.as_deref(), Some("value 0 is 1.5e0, must be 1e0 exactly"));
    }

    #[test]
    fn runs_say_where_they_fail() {
        let words: Vec<u8> = [1u32, 2, 3].into_iter().flat_map(u32::to_le_bytes).collect();
        let runs =
            |last| Expected::Runs(vec![(2, Expected::Words(vec![1, 2])), (1, Expected::Words(vec![last]))]);
        assert_eq!(runs(3).compare(&words, &words), (0.0, None));
        let (_, what) = runs(4).compare(&words, &words);
        assert_eq!(what.as_deref(), Some("run 1: word 0 is 0x3, must be 0x4"));
    }

    #[test]
    fn codes_that_are_as_near_to_the_source_are_right() {
        let tensor = Tensor::new(GgmlType::F32, [4, 1, 1, 1]);
        let expected = |source: [f64; 4]| Expected::Tensor {
            tensor,
            values: vec![1.0, 2.0, 3.0, 4.0],
            max_nmse: 1e-6,
            source: Some(source.to_vec()),
        };
        let found = to_device(&tensor, bytemuck::cast_slice(&[1.0f32, 3.0, 3.0, 4.0]));
        assert_eq!(expected([1.0, 2.5, 3.0, 4.0]).compare(&found, &found).1, None);
        assert!(expected([1.0, 2.45, 3.0, 4.0]).compare(&found, &found).1.is_some());
        assert!(expected([f64::NAN; 4]).compare(&found, &found).1.is_some());
    }

    #[test]
    fn bytes_around_the_values_of_a_tensor_must_stay() {
        for ty in [GgmlType::F32, GgmlType::Q8_0, GgmlType::IQ4_NL, GgmlType::IQ2_XXS] {
            let whole = Tensor::new(ty, [ty.block_len() as u32, 4, 1, 1]);
            let part = whole.slice([0, 1, 0, 0], [whole.ne[0], 2, 1, 1]);
            let device = to_device(&whole, &before(&whole));
            let values = decode(ty, &from_device(&whole, &device));
            let values = (0..part.n_elem()).map(|i| values[part.index(part.coords(i))]).collect();
            let expected = Expected::Tensor { tensor: part, values, max_nmse: 0.0, source: None };
            assert_eq!(expected.compare(&device, &device), (0.0, None), "{ty}");
            let mut n_seen = 0;
            for i in 0..device.len() {
                let mut found = device.clone();
                found[i] ^= 0x10;
                n_seen += usize::from(expected.compare(&device, &found).1.is_some());
            }
            // Not every bit of a block affects its values, but every byte outside blocks, or in other blocks, does.
            assert!(
                n_seen >= device.len() - part.n_elem() as usize / ty.block_len() * ty.block_bytes(),
                "{ty}"
            );
        }
    }
}
