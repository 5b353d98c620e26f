//! q4_0 blocks of values whose scales are known: nothing is rounded but the scale.

use ggml_format::GgmlType;

/// Largest difference that storing a scale as f16 may make: half of the smallest f16 number.
const MAX_ERROR: f32 = 1.0 / (1u32 << 25) as f32;

/// Makes blocks of `values`, 32 for each scale.
pub(super) fn q4_0(values: &[f32], scales: &[f32], out: &mut [u8]) -> Result<(), String> {
    let blocks = out.chunks_exact_mut(GgmlType::Q4_0.block_bytes());
    for ((block, x), &d) in blocks.zip(values.chunks_exact(32)).zip(scales) {
        let (head, codes) = block.split_at_mut(2);
        store(d, head)?;
        for (i, byte) in codes.iter_mut().enumerate() {
            *byte = code(x[i], d)? | code(x[i + 16], d)? << 4;
        }
    }
    Ok(())
}

/// Makes blocks of words with eight codes each, the first in the lowest bits: value = (code + plus - 8) * scale.
pub(super) fn q4_0_of_words(words: &[u32], plus: u8, scales: &[f32], out: &mut [u8]) -> Result<(), String> {
    let blocks = out.chunks_exact_mut(GgmlType::Q4_0.block_bytes());
    for ((block, words), &d) in blocks.zip(words.as_chunks::<4>().0).zip(scales) {
        let (head, codes) = block.split_at_mut(2);
        store(d, head)?;
        for (i, byte) in codes.iter_mut().enumerate() {
            let at = |word: u32| (word >> (4 * (i % 8)) & 15) as u8 + plus;
            let (low, high) = (at(words[i / 8]), at(words[i / 8 + 2]));
            // Codes mean nothing where the scale is 0.
            if low.max(high) > 15 && d != 0.0 {
                return Err(format!("code {}: expected at most {}", low.max(high) - plus, 15 - plus));
            }
            *byte = low.min(15) | high.min(15) << 4;
        }
    }
    Ok(())
}

/// Stores a scale as f16.
fn store(d: f32, out: &mut [u8]) -> Result<(), String> {
    ggml_format::quantize(GgmlType::F16, &[d], 1, None, out).expect("a single value");
    let mut stored = [0.0];
    ggml_format::dequantize(GgmlType::F16, out, &mut stored).expect("a single value");
    if stored[0] != d && (stored[0] - d).abs().partial_cmp(&MAX_ERROR) != Some(std::cmp::Ordering::Less) {
        return Err(format!(
            "scale {d}: expected a number that f16 has; convert with another --type, such as q8_0"
        ));
    }
    Ok(())
}

/// The code of a value that is a multiple of the scale.
fn code(x: f32, d: f32) -> Result<u8, String> {
    let steps = if d == 0.0 { 0.0 } else { x / d };
    if steps.fract() != 0.0 || !(-8.0..8.0).contains(&steps) {
        return Err(format!("value {x}: expected -8 to 7 times the scale {d}"));
    }
    Ok((steps + 8.0) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_values_and_scales_of_f16() {
        let values: Vec<f32> = (0..32).map(|i| (i % 16 - 8) as f32 * 0.375).collect();
        let mut block = [0; 18];
        q4_0(&values, &[0.375], &mut block).unwrap();
        let mut found = [0.0; 32];
        ggml_format::dequantize(GgmlType::Q4_0, &block, &mut found).unwrap();
        assert_eq!(found.as_slice(), values);
        q4_0(&[0.0; 32], &[0.0], &mut block).unwrap();
        // A bf16 scale that f16 rounds by less than anyone sees, and others.
        q4_0(&[0.0; 32], &[1.0e-9], &mut block).unwrap();
        assert!(q4_0(&[0.0; 32], &[1.0e6], &mut block).unwrap_err().starts_with("scale 1000000: expected"));
        assert!(q4_0(&[0.0; 32], &[f32::NAN], &mut block).is_err());
        assert!(q4_0(&[1.0; 32], &[0.125], &mut block).unwrap_err().starts_with("value 1: expected -8 to 7"));
    }

    #[test]
    fn words_are_blocks_of_their_values() {
        let words = [0x7654_3210, 0x0edc_ba98, 0x1111_2222, 0xeeee_0000];
        let values: Vec<f32> =
            (0..32).map(|i| ((words[i / 8] >> (4 * (i % 8)) & 15) as f32 - 7.0) * 0.5).collect();
        let (mut block, mut expected) = ([0; 18], [0; 18]);
        q4_0_of_words(&words, 1, &[0.5], &mut block).unwrap();
        q4_0(&values, &[0.5], &mut expected).unwrap();
        assert_eq!(block, expected);
        assert_eq!(
            q4_0_of_words(&[0xf; 4], 1, &[0.5], &mut block).unwrap_err(),
            "code 15: expected at most 14"
        );
        q4_0_of_words(&[0xf; 4], 1, &[0.0], &mut block).unwrap();
        q4_0_of_words(&[0xf; 4], 0, &[0.5], &mut block).unwrap();
    }
}
