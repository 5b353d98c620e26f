//! The twelve bytes that hold eight 6-bit scales and eight 6-bit minima in q4_K and q5_K.

/// Scale and minimum of group `j` (0..8), each 0..64.
pub fn scale_min_k4(scales: &[u8; 12], j: usize) -> (u8, u8) {
    if j < 4 {
        (scales[j] & 63, scales[j + 4] & 63)
    } else {
        ((scales[j + 4] & 15) | ((scales[j - 4] >> 6) << 4), (scales[j + 4] >> 4) | ((scales[j] >> 6) << 4))
    }
}

/// The inverse of [`scale_min_k4`]: packs eight scales and eight minima.
pub fn pack_scale_min_k4(scale: &[u8; 8], min: &[u8; 8]) -> [u8; 12] {
    let mut out = [0; 12];
    for j in 0..4 {
        out[j] = scale[j] | ((scale[j + 4] >> 4) << 6);
        out[j + 4] = min[j] | ((min[j + 4] >> 4) << 6);
        out[j + 8] = (scale[j + 4] & 15) | ((min[j + 4] & 15) << 4);
    }
    out
}
