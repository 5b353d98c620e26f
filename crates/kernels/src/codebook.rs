//! Codebooks of the IQ formats as kernels read them: one word per entry, which at most two instructions expand to
//! bytes. A table is stored behind the planes of every matrix ([`crate::DeviceLayout`]), since shaders copy a constant
//! array into each thread that indexes it.

use std::sync::LazyLock;

use ggml_format::blocks::codebook;

/// Built on first use.
pub(crate) type Table = LazyLock<Vec<u32>>;

pub(crate) static IQ2_XXS: Table = Table::new(|| eights(&*codebook::IQ2_XXS_GRID));
pub(crate) static IQ2_XS: Table = Table::new(|| eights(&*codebook::IQ2_XS_GRID));
pub(crate) static IQ2_S: Table = Table::new(|| eights(&*codebook::IQ2_S_GRID));
pub(crate) static IQ3_XXS: Table = Table::new(|| fours(&*codebook::IQ3_XXS_GRID));
pub(crate) static IQ3_S: Table = Table::new(|| fours(&*codebook::IQ3_S_GRID));
pub(crate) static IQ1_S: Table = Table::new(|| ternary(&*codebook::IQ1_S_GRID));

/// Magnitudes 8, 25 and 43 differ in bits 0, 1, 4 and 5 and share bit 3, so two lie in a byte: value `j` in those bits
/// of byte `j`, value `j + 4` in bits 2, 3, 6 and 7.
fn eights(grid: &[[u8; 8]]) -> Vec<u32> {
    let word = |entry: &[u8; 8]| {
        (0..8).fold(0, |w, j| w | u32::from(entry[j] & 0x33) << (8 * (j % 4) + 2 * (j / 4)))
    };
    grid.iter().map(word).collect()
}

/// Magnitudes as bytes.
fn fours(grid: &[[u8; 4]]) -> Vec<u32> {
    grid.iter().map(|entry| u32::from_le_bytes(*entry)).collect()
}

/// Values -1, 0, 1 as eight times 0, 1, 2, where an eighth of a value is the unit of the shift that blocks add: value
/// `j` in bits 3 and 4 of byte `j`, value `j + 4` in bits 5 and 6.
fn ternary(grid: &[[i8; 8]]) -> Vec<u32> {
    let word = |entry: &[i8; 8]| {
        (0..8).fold(0, |w, j| w | ((entry[j] + 1) as u32) << (8 * (j % 4) + 3 + 2 * (j / 4)))
    };
    grid.iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both halves of an entry, unpacked as the templates do it.
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
        twos(&IQ2_XXS, &*codebook::IQ2_XXS_GRID);
        twos(&IQ2_XS, &*codebook::IQ2_XS_GRID);
        twos(&IQ2_S, &*codebook::IQ2_S_GRID);
        for (w, g) in IQ3_XXS.iter().zip(&*codebook::IQ3_XXS_GRID) {
            assert_eq!(w.to_le_bytes(), *g);
        }
        for (w, g) in IQ3_S.iter().zip(&*codebook::IQ3_S_GRID) {
            assert_eq!(w.to_le_bytes(), *g);
        }
        for (w, g) in IQ1_S.iter().zip(&*codebook::IQ1_S_GRID) {
            assert_eq!(halves(*w, 0x1818_1818, 0).map(|v| v as i8 / 8 - 1), *g);
        }
    }

    #[test]
    fn no_magnitude_is_zero_or_needs_the_sign_bit() {
        // Bytes are negated as `!b + 1`, which would carry out of a zero byte.
        for m in codebook::IQ2_S_GRID.as_flattened().iter().chain(codebook::IQ3_S_GRID.as_flattened()) {
            assert!((1..128).contains(m));
        }
        assert!(codebook::IQ3_XXS_GRID.as_flattened().iter().all(|m| (1..128).contains(m)));
    }
}
