//! Values of many rows, in parallel, in buffers that steps use again.

use std::sync::Mutex;

use super::CpuModel;

/// Values per task of operations that read each value once.
const LIGHT: usize = 1 << 12;

/// Buffers of a length that are kept: more are rarely in use at once.
const SAME: usize = 4;

/// Buffers of values that nothing reads any more: fresh memory costs a page fault every 4 KiB.
#[derive(Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<f32>>>);

impl Buffers {
    /// `n` values, whatever they are.
    pub(super) fn take(&self, n: usize) -> Vec<f32> {
        let mut free = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let same = free.iter().position(|b| b.len() == n);
        same.map_or_else(|| vec![0.0; n], |i| free.swap_remove(i))
    }

    /// Keeps a buffer for later. Some come from elsewhere in each step, so only a few of a length are kept.
    pub(super) fn give(&self, buffer: Vec<f32>) {
        let mut free = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let same = free.iter().filter(|b| b.len() == buffer.len()).count();
        if !buffer.is_empty() && same < SAME {
            free.push(buffer);
        }
    }

    /// Frees all, because steps of another size follow.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }
}

impl CpuModel {
    /// Fills chunks of a buffer of `n` values, all of them: `f(index of the chunk, chunk)`.
    pub(super) fn chunks(
        &self,
        n: usize,
        chunk: usize,
        f: impl Fn(usize, &mut [f32]) + Send + Sync,
    ) -> Vec<f32> {
        let mut out = self.buffers.take(n);
        self.team().fill_chunks(&mut out, chunk, f);
        out
    }

    /// `n` rows of `width` values: `f(index, row)` fills a row.
    pub(super) fn rows(
        &self,
        n: usize,
        width: usize,
        f: impl Fn(usize, &mut [f32]) + Send + Sync,
    ) -> Vec<f32> {
        let share = (LIGHT / width.max(1)).max(1);
        self.chunks(n * width, share * width, |i, out| {
            out.chunks_exact_mut(width).enumerate().for_each(|(r, row)| f(i * share + r, row));
        })
    }

    /// `n` values: `f(from, part)` fills a part.
    pub(super) fn parts(&self, n: usize, f: impl Fn(usize, &mut [f32]) + Send + Sync) -> Vec<f32> {
        self.chunks(n, LIGHT, |i, out| f(i * LIGHT, out))
    }

    /// `f` of every value of `x`.
    pub(super) fn map(&self, x: &[f32], f: impl Fn(f32) -> f32 + Send + Sync) -> Vec<f32> {
        self.parts(x.len(), |at, out| out.iter_mut().zip(&x[at..]).for_each(|(o, v)| *o = f(*v)))
    }

    /// `f` of every pair of values of `a` and `b`.
    pub(super) fn zip(&self, a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32 + Send + Sync) -> Vec<f32> {
        self.parts(a.len(), |at, out| {
            let pairs = a[at..].iter().zip(&b[at..]);
            out.iter_mut().zip(pairs).for_each(|(o, (a, b))| *o = f(*a, *b));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_do_not_pile_up() {
        let buffers = Buffers::default();
        let first = buffers.take(100);
        let address = first.as_ptr();
        buffers.give(first);
        assert_eq!(buffers.take(99).len(), 99);
        let second = buffers.take(100);
        assert_eq!(second.as_ptr(), address);
        for _ in 0..1000 {
            buffers.give(vec![0.0; 7]);
            buffers.give(Vec::new());
        }
        assert_eq!(buffers.0.lock().expect("no panic").len(), SAME);
        buffers.clear();
        assert!(buffers.0.lock().expect("no panic").is_empty());
    }
}
