//! Floats of 8 bits.

use std::sync::LazyLock;

use crate::safetensors::Dtype;

/// The values of all codes of a type, and which codes are no finite number.
pub(super) fn table(dtype: Dtype) -> (&'static [f32; 256], fn(u8) -> bool) {
    static E4M3: LazyLock<[f32; 256]> = LazyLock::new(|| std::array::from_fn(|code| small(code as u8, 3, 7)));
    static E5M2: LazyLock<[f32; 256]> =
        LazyLock::new(|| std::array::from_fn(|code| small(code as u8, 2, 15)));
    static E8M0: LazyLock<[f32; 256]> = LazyLock::new(|| std::array::from_fn(|code| power(code as u8)));
    match dtype {
        Dtype::F8_E4M3 => (&E4M3, |code| code & 0x7f == 0x7f),
        Dtype::F8_E5M2 => (&E5M2, |code| code & 0x7c == 0x7c),
        _ => (&E8M0, |code| code == 0xff),
    }
}

/// A float of a sign, an exponent with `bias`, and a mantissa of `n_mantissa` bits.
fn small(code: u8, n_mantissa: u32, bias: i32) -> f32 {
    let magnitude = u32::from(code & 0x7f);
    let (exponent, mantissa) = ((magnitude >> n_mantissa) as i32, magnitude & ((1 << n_mantissa) - 1));
    let unit = ((1 - bias - n_mantissa as i32) as f32).exp2();
    let value = match exponent {
        0 => mantissa as f32 * unit,
        _ => (mantissa + (1 << n_mantissa)) as f32 * unit * ((exponent - 1) as f32).exp2(),
    };
    if code & 0x80 == 0 { value } else { -value }
}

/// 2^(code - 127), the scale of microscaling formats.
fn power(code: u8) -> f32 {
    f32::from_bits(if code == 0 { 0x0040_0000 } else { u32::from(code) << 23 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_values_of_their_bits() {
        let e4m3 = table(Dtype::F8_E4M3).0;
        assert_eq!([e4m3[0x7e], e4m3[1], e4m3[0x38], e4m3[0xb8]], [448.0, 2f32.powi(-9), 1.0, -1.0]);
        let e5m2 = table(Dtype::F8_E5M2).0;
        assert_eq!([e5m2[0x7b], e5m2[1], e5m2[0x3c], e5m2[0xbe]], [57344.0, 2f32.powi(-16), 1.0, -1.5]);
        let e8m0 = table(Dtype::F8_E8M0).0;
        assert_eq!([e8m0[127], e8m0[130], e8m0[0] * 2.0], [1.0, 8.0, e8m0[1]]);
    }
}
