//! q4_0 blocks of values whose scales are known: nothing is rounded but the scale.

use ggml_format::GgmlType;

/// Largest difference that storing a scale as f16 may make: half of the smallest f16 number.
const MAX_ERROR: f32 = 1.0 / (1u32 << 25) as f32;

/// Makes blocks of `values`, 32 for each scale.
pub(super) fn q4_0(values: &[f32], scales: &[f32], out: &mut [u8]) -> Result<(), String> {
    let blocks = out.chunks_exact_mut(GgmlType::Q4_0.block_bytes());
    for ((block, x), &d) in blocks.zip(values.chunks_exact(32)).zip(scales) {
        let (head, codes) = block.split_at_mut(2);
        ggml_format::quantize(GgmlType::F16, &[d], 1, None, head).expect("a single value");
        let mut stored = [0.0];
        ggml_format::dequantize(GgmlType::F16, head, &mut stored).expect("a single value");
        if stored[0] != d && (stored[0] - d).abs().partial_cmp(&MAX_ERROR) != Some(std::cmp::Ordering::Less) {
            return Err(format!(
                "scale {d}: expected a number that f16 has; convert with another --type, such as q8_0"
            ));
        }
        for (i, byte) in codes.iter_mut().enumerate() {
            *byte = code(x[i], d)? | code(x[i + 16], d)? << 4;
        }
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
}
