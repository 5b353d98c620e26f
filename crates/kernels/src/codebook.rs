//! Codebooks of the IQ formats as kernels read them: a word for each entry, which two instructions or fewer turn into
//! bytes. A table stands behind the planes of every matrix ([`crate::DeviceLayout`]), since an array of constants in a
//! shader is copied for each thread that indexes it.

use ggml_format::blocks::codebook;

pub(crate) static IQ2_XXS: [u32; 256] = eights(&codebook::IQ2_XXS_GRID);
pub(crate) static IQ2_XS: [u32; 512] = eights(&codebook::IQ2_XS_GRID);
pub(crate) static IQ2_S: [u32; 1024] = eights(&codebook::IQ2_S_GRID);
pub(crate) static IQ3_XXS: [u32; 256] = fours(&codebook::IQ3_XXS_GRID);
pub(crate) static IQ3_S: [u32; 512] = fours(&codebook::IQ3_S_GRID);
pub(crate) static IQ1_S: [u32; 2048] = ternary(&codebook::IQ1_S_GRID);

/// Magnitudes 8, 25 and 43 differ in bits 0, 1, 4 and 5 and share bit 3, so two lie in a byte: value `j` in those bits
/// of byte `j`, value `j + 4` in bits 2, 3, 6 and 7.
const fn eights<const N: usize>(grid: &[[u8; 8]; N]) -> [u32; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        let mut j = 0;
        while j < 8 {
            out[i] |= ((grid[i][j] & 0x33) as u32) << (8 * (j % 4) + 2 * (j / 4));
            j += 1;
        }
        i += 1;
    }
    out
}

/// Magnitudes as bytes.
const fn fours<const N: usize>(grid: &[[u8; 4]; N]) -> [u32; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = u32::from_le_bytes(grid[i]);
        i += 1;
    }
    out
}

/// Values -1, 0, 1 as eight times 0, 1, 2, where an eighth of a value is the unit of the shift that blocks add: value `j`
/// in bits 3 and 4 of byte `j`, value `j + 4` in bits 5 and 6.
const fn ternary<const N: usize>(grid: &[[i8; 8]; N]) -> [u32; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        let mut j = 0;
        while j < 8 {
            out[i] |= ((grid[i][j] + 1) as u32) << (8 * (j % 4) + 3 + 2 * (j / 4));
            j += 1;
        }
        i += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both halves of entries as the templates take them apart.
    fn halves(word: u32, mask: u32, or: u32) -> [u8; 8] {
        let half = |h: u32| (((word >> (2 * h)) & mask) | or).to_le_bytes();
        let [a, b] = [half(0), half(1)];
        [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]]
    }

    #[test]
    fn entries_hold_the_values_of_the_grids() {
        let twos = |words: &[u32], grid: &[[u8; 8]]| {
            assert_eq!(words.len(), grid.len());
            words.iter().zip(grid).for_each(|(w, g)| assert_eq!(halves(*w, 0x3333_3333, 0x0808_0808), *g));
        };
        twos(&IQ2_XXS, &codebook::IQ2_XXS_GRID);
        twos(&IQ2_XS, &codebook::IQ2_XS_GRID);
        twos(&IQ2_S, &codebook::IQ2_S_GRID);
        for (w, g) in IQ3_XXS.iter().zip(&codebook::IQ3_XXS_GRID) {
            assert_eq!(w.to_le_bytes(), *g);
        }
        for (w, g) in IQ3_S.iter().zip(&codebook::IQ3_S_GRID) {
            assert_eq!(w.to_le_bytes(), *g);
        }
        for (w, g) in IQ1_S.iter().zip(&codebook::IQ1_S_GRID) {
            assert_eq!(halves(*w, 0x1818_1818, 0).map(|v| v as i8 / 8 - 1), *g);
        }
    }

    #[test]
    fn no_magnitude_is_zero_or_needs_the_sign_bit() {
        // A byte is negated as `!b + 1`: from 0 the carry would reach the next one.
        for m in codebook::IQ2_S_GRID.as_flattened().iter().chain(codebook::IQ3_S_GRID.as_flattened()) {
            assert!((1..128).contains(m));
        }
        assert!(codebook::IQ3_XXS_GRID.as_flattened().iter().all(|m| (1..128).contains(m)));
    }
}
