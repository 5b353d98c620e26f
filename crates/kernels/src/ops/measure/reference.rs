//! Expected results of the measuring kernels, which prove that the measured work was done.

/// Wrapping sum of the words that one of `stride` threads reads, four at a time.
pub fn thread_sum(x: &[u32], thread: usize, stride: usize) -> u32 {
    x.chunks_exact(4).skip(thread).step_by(stride).flatten().fold(0, |s, v| s.wrapping_add(*v))
}

/// The sum of a thread's chains after an odd number of steps `a = c - a`.
pub fn chains(thread: usize, c: f32) -> f32 {
    (0..8).map(|k| 4.0 * (c - (thread % 64 + k) as f32)).sum()
}

/// Sums of `n` products of 16 x 16 matrices by rows: `4 x 2` of them, of four matrices and two.
pub fn products(x: &[f32], n: u32) -> Vec<f32> {
    let (a, b) = x.split_at(4 * 256);
    let mut y = Vec::with_capacity(8 * 256);
    for a in a.chunks_exact(256) {
        for b in b.chunks_exact(256) {
            for at in 0..256 {
                let (row, col) = (at / 16, at % 16);
                let dot: f32 = (0..16).map(|k| a[16 * row + k] * b[16 * k + col]).sum();
                y.push(dot * n as f32);
            }
        }
    }
    y
}
