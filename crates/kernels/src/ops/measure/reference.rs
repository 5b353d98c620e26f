//! Expected results of the measuring kernels, which prove that the measured work was done.

/// Wrapping sum of the words that one of `stride` threads reads, four at a time.
pub fn thread_sum(x: &[u32], thread: usize, stride: usize) -> u32 {
    x.chunks_exact(4).skip(thread).step_by(stride).flatten().fold(0, |s, v| s.wrapping_add(*v))
}

/// The sum of a thread's chains after an odd number of steps `a = c - a`.
pub fn chains(thread: usize, c: f32) -> f32 {
    (0..8).map(|k| 4.0 * (c - (thread % 64 + k) as f32)).sum()
}

/// Sums of `n` products of square matrices by rows: `4 x 2` of them, of four matrices and two.
pub fn products(x: &[f32], side: usize, n: u32) -> Vec<f32> {
    let square = side * side;
    let (a, b) = x.split_at(4 * square);
    let mut y = Vec::with_capacity(8 * square);
    for a in a.chunks_exact(square) {
        for b in b.chunks_exact(square) {
            for at in 0..square {
                let (row, col) = (at / side, at % side);
                let dot: f32 = (0..side).map(|k| a[side * row + k] * b[side * k + col]).sum();
                y.push(dot * n as f32);
            }
        }
    }
    y
}
