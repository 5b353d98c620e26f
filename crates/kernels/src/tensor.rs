//! Tensors as in ggml: a type, four sizes, four strides, and an offset in a buffer.
//!
//! Sizes are in ggml's order, fastest first, like strides and permutations everywhere. A tensor of a plain type is an
//! array of values in its buffer. One of a block format is stored in the planes of its [`Format`], all blocks of the
//! buffer in one row, exactly as weights are: kernels that read weights can read it, and tensors quantised on the
//! device can be used as weights. So each format has one device layout, and copies of blocks are copies within each
//! plane.

use ggml_format::GgmlType;

use crate::dispatch::DispatchError;
use crate::format::{DeviceLayout, Format};

/// Layout of a tensor's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// Element type.
    pub ty: GgmlType,
    /// Values along each axis, fastest first.
    pub ne: [u32; 4],
    /// Stride along each axis in values; multiples of the block length, except on the first axis of blocks.
    pub stride: [u32; 4],
    /// Offset of the first value in the buffer.
    pub offset: u32,
    /// Values in the buffer.
    pub n_alloc: u32,
}

impl Tensor {
    /// A tensor that fills its buffer; with more values than `u32` can count, every operation rejects it.
    pub const fn new(ty: GgmlType, ne: [u32; 4]) -> Self {
        let plane = ne[0].saturating_mul(ne[1]);
        let cube = plane.saturating_mul(ne[2]);
        let n_alloc = cube.saturating_mul(ne[3]);
        Tensor { ty, ne, stride: [1, ne[0], plane, cube], offset: 0, n_alloc }
    }

    /// The slice of this tensor with sizes `ne` at coordinates `at`.
    ///
    /// # Panics
    /// If the slice is out of bounds.
    #[must_use]
    pub fn slice(mut self, at: [u32; 4], ne: [u32; 4]) -> Self {
        for k in 0..4 {
            assert!(
                at[k] + ne[k] <= self.ne[k],
                "a part of {:?} cannot begin at {at:?} with {ne:?}",
                self.ne
            );
            self.offset += at[k] * self.stride[k];
        }
        self.ne = ne;
        self
    }

    /// Axis `i` becomes axis `axes[i]`, as in `ggml_permute`.
    ///
    /// # Panics
    /// If `axes` is not a permutation.
    #[must_use]
    pub fn permute(self, axes: [usize; 4]) -> Self {
        let mut out = Tensor { ne: [0; 4], stride: [0; 4], ..self };
        let mut seen = [false; 4];
        for (i, to) in axes.into_iter().enumerate() {
            assert!(!std::mem::replace(&mut seen[to], true), "{axes:?} is not a permutation");
            out.ne[to] = self.ne[i];
            out.stride[to] = self.stride[i];
        }
        out
    }

    /// Number of values, saturated at `u32::MAX`, which fits no buffer.
    pub const fn n_elem(&self) -> u32 {
        self.ne[0].saturating_mul(self.n_row())
    }

    /// Number of rows, saturated likewise.
    pub const fn n_row(&self) -> u32 {
        self.ne[1].saturating_mul(self.ne[2]).saturating_mul(self.ne[3])
    }

    /// Index in the buffer of the value at these coordinates.
    pub fn index(&self, c: [u32; 4]) -> usize {
        self.offset as usize + (0..4).map(|k| c[k] as usize * self.stride[k] as usize).sum::<usize>()
    }

    /// Coordinates of value `i` in ggml's order.
    pub fn coords(&self, i: u32) -> [u32; 4] {
        let [a, b, c, _] = self.ne;
        [i % a, i / a % b, i / a / b % c, i / a / b / c]
    }

    /// True if values are contiguous and in order.
    pub fn is_contiguous(&self) -> bool {
        let dense = Tensor::new(self.ty, self.ne).stride;
        (0..4).all(|k| self.ne[k] <= 1 || self.stride[k] == dense[k])
    }

    /// Values per cell, the unit that kernels address: one, or a block.
    fn cell(&self) -> u32 {
        self.ty.block_len() as u32
    }

    /// The same tensor counted in blocks; itself for plain types.
    #[must_use]
    pub fn cells(&self) -> Self {
        let n = self.cell();
        let mut t = *self;
        t.ne[0] /= n;
        t.stride[0] = if n == 1 { t.stride[0] } else { 1 };
        t.stride[1..].iter_mut().for_each(|s| *s /= n);
        t.offset /= n;
        t.n_alloc /= n;
        t
    }

    /// Storage of its blocks; `None` for plain types and unsupported formats.
    pub fn layout(&self) -> Option<(&'static Format, DeviceLayout)> {
        let f = Format::of(self.ty).filter(|f| !f.is_plain())?;
        Some((f, DeviceLayout::new(f, 1, self.n_alloc)))
    }

    /// Checks that the tensor lies within its buffer and that the buffer's words fit in u32.
    pub(crate) fn check(&self, op: &'static str, what: &'static str) -> Result<(), DispatchError> {
        let shape = |expected: String, found: u64| Err(DispatchError::Shape { op, what, expected, found });
        let block = self.cell();
        if block > 1 {
            if Format::of(self.ty).is_none() {
                return Err(DispatchError::Format { op, format: self.ty.name() });
            }
            let sizes =
                [self.ne[0], self.stride[1], self.stride[2], self.stride[3], self.offset, self.n_alloc];
            if let Some(n) = sizes.into_iter().find(|n| n % block != 0) {
                return shape(format!("whole blocks of {block}"), n.into());
            }
            if self.stride[0] != 1 {
                return shape("whole blocks".into(), self.stride[0].into());
            }
        }
        if self.ne.contains(&0) {
            return Ok(());
        }
        let to = |k: usize| u128::from(self.ne[k] - 1) * u128::from(self.stride[k]);
        let last = u128::from(self.offset) + (0..4).map(to).sum::<u128>();
        if last >= u128::from(self.n_alloc) || self.n_elem() == u32::MAX {
            let found = u64::try_from(last).unwrap_or(u64::MAX);
            return shape(format!("within a buffer of {} values", self.n_alloc), found);
        }
        Ok(())
    }

    /// The checks of [`Self::check`], and that no two values overlap: each stride spans the axes below it.
    pub(crate) fn check_written(&self, op: &'static str, what: &'static str) -> Result<(), DispatchError> {
        self.check(op, what)?;
        if self.ne.contains(&0) {
            return Ok(());
        }
        let axes: Vec<(u32, u32, usize)> =
            self.long_axes().into_iter().enumerate().map(|(i, (stride, n))| (stride, n, i)).collect();
        for axis @ &(stride, ..) in &axes {
            let below = axes.iter().filter(|other| *other < axis);
            let span = below.map(|(stride, n, _)| u64::from(*stride) * u64::from(*n)).max().unwrap_or(1);
            if u64::from(stride) < span {
                let expected = format!("a stride of at least {span}, so that values do not overlap");
                return Err(DispatchError::Shape { op, what, expected, found: stride.into() });
            }
        }
        Ok(())
    }

    /// Checks that it is not empty.
    pub(crate) fn check_filled(&self, op: &'static str, what: &'static str) -> Result<(), DispatchError> {
        match self.ne.contains(&0) {
            false => Ok(()),
            true => Err(DispatchError::Shape { op, what, expected: "at least one value".into(), found: 0 }),
        }
    }

    /// Checks that it has these sizes.
    pub(crate) fn check_ne(
        &self,
        op: &'static str,
        what: &'static str,
        ne: [u32; 4],
    ) -> Result<(), DispatchError> {
        match (0..4).find(|k| self.ne[*k] != ne[*k]) {
            None => Ok(()),
            Some(k) => {
                let expected = format!("{} along axis {k}", ne[k]);
                Err(DispatchError::Shape { op, what, expected, found: self.ne[k].into() })
            }
        }
    }

    /// Checks that its sizes divide these.
    pub(crate) fn check_repeats(
        &self,
        op: &'static str,
        what: &'static str,
        ne: [u32; 4],
    ) -> Result<(), DispatchError> {
        match (0..4).find(|k| ne[*k] % self.ne[*k].max(1) != 0 || (self.ne[*k] == 0 && ne[*k] != 0)) {
            None => Ok(()),
            Some(k) => {
                let expected = format!("a divisor of {} along axis {k}", ne[k]);
                Err(DispatchError::Shape { op, what, expected, found: self.ne[k].into() })
            }
        }
    }

    /// Checks that it has this type.
    pub(crate) fn check_type(
        &self,
        op: &'static str,
        what: &'static str,
        ty: GgmlType,
    ) -> Result<(), DispatchError> {
        if self.ty == ty {
            return Ok(());
        }
        Err(DispatchError::Type { op, what, expected: ty.name(), found: self.ty.name() })
    }

    /// Stride and size of the axes longer than one.
    fn long_axes(&self) -> Vec<(u32, u32)> {
        (0..4).filter(|k| self.ne[*k] > 1).map(|k| (self.stride[k], self.ne[k])).collect()
    }

    /// Divisors and moduli that recover each coordinate from an offset in the buffer.
    pub(crate) fn moduli(&self) -> ([u32; 4], [u32; 4]) {
        let axes = self.long_axes();
        let mut out = ([1; 4], [1; 4]);
        for k in (0..4).filter(|k| self.ne[*k] > 1) {
            out.0[k] = self.stride[k].max(1);
            out.1[k] = axes.iter().map(|(s, _)| *s).filter(|s| *s > self.stride[k]).min().unwrap_or(u32::MAX);
        }
        out
    }

    /// First and last value in the buffer; `None` if empty.
    pub(crate) fn span(&self) -> Option<(u32, u32)> {
        if self.n_elem() == 0 {
            return None;
        }
        let last = (0..4).map(|k| (self.ne[k] - 1) * self.stride[k]).sum::<u32>();
        Some((self.offset, self.offset + last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slices_and_permutations_lead_to_the_same_values() {
        let t = Tensor::new(GgmlType::F32, [4, 3, 2, 5]);
        let s = t.slice([1, 0, 1, 2], [2, 3, 1, 2]);
        assert_eq!(s.index([1, 2, 0, 1]), t.index([2, 2, 1, 3]));
        let p = t.permute([1, 2, 0, 3]);
        assert_eq!(p.ne, [2, 4, 3, 5]);
        assert_eq!(p.index([1, 2, 0, 4]), t.index([2, 0, 1, 4]));
        assert!(t.is_contiguous() && !s.is_contiguous() && !p.is_contiguous());
    }

    #[test]
    fn values_that_overlap_or_leave_the_buffer_are_refused() {
        let t = Tensor::new(GgmlType::F16, [4, 3, 2, 1]);
        assert!(t.check_written("cpy", "y").is_ok());
        let e = Tensor { stride: [1, 3, 12, 24], ..t }.check_written("cpy", "y").expect_err("rows overlap");
        assert_eq!(
            e.to_string(),
            "cpy: y is 3, expected a stride of at least 4, so that values do not overlap"
        );
        let e =
            Tensor { stride: [1, 0, 4, 8], ..t }.check_written("cpy", "y").expect_err("rows on each other");
        assert_eq!(
            e.to_string(),
            "cpy: y is 0, expected a stride of at least 1, so that values do not overlap"
        );
        let e = Tensor { offset: 1, ..t }.check("cpy", "y").expect_err("one too far");
        assert_eq!(e.to_string(), "cpy: y is 24, expected within a buffer of 24 values");
        let e = Tensor::new(GgmlType::Q8_0, [40, 1, 1, 1]).check("cpy", "y").expect_err("a part of a block");
        assert_eq!(e.to_string(), "cpy: y is 40, expected whole blocks of 32");
    }

    proptest! {
        /// The kernel's use of `d` and `m` to find the value at an offset in the buffer.
        #[test]
        fn places_lead_back_to_coordinates(ne in [1u32..5, 1u32..5, 1u32..5, 1u32..5], pad in [0u32..3, 0u32..3, 0u32..3], axes in Just([0, 1, 2, 3]).prop_shuffle()) {
            let outer = [ne[0] + pad[0], ne[1] + pad[1], ne[2] + pad[2], ne[3]];
            let t = Tensor::new(GgmlType::F16, outer).slice([pad[0], 0, pad[2] / 2, 0], ne).permute(axes);
            let (div, modulus) = t.moduli();
            let mut held = vec![None; t.n_alloc as usize];
            for i in 0..t.n_elem() {
                held[t.index(t.coords(i))] = Some(t.coords(i));
            }
            for (at, want) in held.iter().enumerate() {
                let o = (at as u32).wrapping_sub(t.offset);
                let c: [u32; 4] = std::array::from_fn(|k| o % modulus[k] / div[k]);
                let back = (0..4).map(|k| c[k].wrapping_mul(t.stride[k])).fold(0u32, u32::wrapping_add);
                let inside = (0..4).all(|k| c[k] < t.ne[k]) && back == o && at as u32 >= t.offset;
                prop_assert_eq!(inside.then_some(c), *want);
            }
        }
    }
}
