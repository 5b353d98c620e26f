//! Tensors as ggml sees them: a type, four sizes, four strides, and where they begin in a buffer.
//!
//! Sizes are in ggml's order, fastest first, since strides and permutations are given in that order everywhere.
//! A tensor of a plain type is an array of values in its buffer. One of a block format is stored in the planes of its
//! [`Format`], as weights are, all blocks of the buffer in one row: kernels that read weights read it too, and what
//! is quantised on the device can be read as a weight. So there is one device layout for each format, and copies of
//! blocks are copies within each plane.

use ggml_format::GgmlType;

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::format::{DeviceLayout, Format};
use crate::op::{Value, dispatch};

/// Where the values of a tensor stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// Element type.
    pub ty: GgmlType,
    /// Values along each axis, fastest first.
    pub ne: [u32; 4],
    /// Values from one to the next along each axis; multiples of the block length but for the first axis of blocks.
    pub stride: [u32; 4],
    /// Value of the buffer at which it begins.
    pub offset: u32,
    /// Values that the buffer holds.
    pub n_alloc: u32,
}

impl Tensor {
    /// A tensor that fills its buffer; of more values than `u32` counts it is one that no operation takes.
    pub const fn new(ty: GgmlType, ne: [u32; 4]) -> Self {
        let plane = ne[0].saturating_mul(ne[1]);
        let cube = plane.saturating_mul(ne[2]);
        let n_alloc = cube.saturating_mul(ne[3]);
        Tensor { ty, ne, stride: [1, ne[0], plane, cube], offset: 0, n_alloc }
    }

    /// The part of this tensor with sizes `ne` that begins at coordinates `at`.
    ///
    /// # Panics
    /// If the part is not within the tensor.
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

    /// Axis `i` becomes axis `axes[i]`, as `ggml_permute` has it.
    ///
    /// # Panics
    /// If `axes` is no permutation.
    #[must_use]
    pub fn permute(self, axes: [usize; 4]) -> Self {
        let mut out = Tensor { ne: [0; 4], stride: [0; 4], ..self };
        let mut seen = [false; 4];
        for (i, to) in axes.into_iter().enumerate() {
            assert!(!std::mem::replace(&mut seen[to], true), "{axes:?} is no permutation");
            out.ne[to] = self.ne[i];
            out.stride[to] = self.stride[i];
        }
        out
    }

    /// Values; more than `u32` counts are `u32::MAX`, which fit no buffer.
    pub const fn n_elem(&self) -> u32 {
        self.ne[0].saturating_mul(self.n_row())
    }

    /// Rows, counted likewise.
    pub const fn n_row(&self) -> u32 {
        self.ne[1].saturating_mul(self.ne[2]).saturating_mul(self.ne[3])
    }

    /// Where the value at these coordinates stands in the buffer.
    pub fn index(&self, c: [u32; 4]) -> usize {
        self.offset as usize + (0..4).map(|k| c[k] as usize * self.stride[k] as usize).sum::<usize>()
    }

    /// The coordinates of value `i` in ggml's order.
    pub fn coords(&self, i: u32) -> [u32; 4] {
        let [a, b, c, _] = self.ne;
        [i % a, i / a % b, i / a / b % c, i / a / b / c]
    }

    /// Values follow each other without gaps, in order.
    pub fn is_contiguous(&self) -> bool {
        let dense = Tensor::new(self.ty, self.ne).stride;
        (0..4).all(|k| self.ne[k] <= 1 || self.stride[k] == dense[k])
    }

    /// The type of the words that kernels see: blocks are made of values.
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

    /// How its blocks are stored; `None` for plain types, and for formats that the device does not know.
    pub fn layout(&self) -> Option<(&'static Format, DeviceLayout)> {
        let f = Format::of(self.ty).filter(|f| !f.is_plain())?;
        Some((f, DeviceLayout::new(f, 1, self.n_alloc)))
    }

    /// Checks that the tensor lies within its buffer and that a buffer's words can be counted.
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
                return shape(format!("made of whole blocks of {block}"), n.into());
            }
            if self.stride[0] != 1 {
                return shape("blocks that are not torn apart".into(), self.stride[0].into());
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

    /// Checks what [`Self::check`] does, and that no two values share a place: the next larger stride holds an axis.
    pub(crate) fn check_written(&self, op: &'static str, what: &'static str) -> Result<(), DispatchError> {
        self.check(op, what)?;
        if self.ne.contains(&0) {
            return Ok(());
        }
        let mut axes = self.long_axes();
        axes.sort_unstable();
        let mut span = 1;
        for (stride, n) in axes {
            if u64::from(stride) < span {
                let expected = format!("strides of at least {span} for values that do not overlap");
                return Err(DispatchError::Shape { op, what, expected, found: stride.into() });
            }
            span = u64::from(stride) * u64::from(n);
        }
        Ok(())
    }

    /// Checks that it holds a value.
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

    /// Stride and size of the axes that are longer than one.
    fn long_axes(&self) -> Vec<(u32, u32)> {
        (0..4).filter(|k| self.ne[*k] > 1).map(|k| (self.stride[k], self.ne[k])).collect()
    }

    /// By what to divide, after which remainder, to find each coordinate from a place in the buffer.
    fn moduli(&self) -> ([u32; 4], [u32; 4]) {
        let mut strides: Vec<u32> = self.long_axes().into_iter().map(|(s, _)| s).collect();
        strides.sort_unstable();
        let mut out = ([1; 4], [1; 4]);
        for k in (0..4).filter(|k| self.ne[*k] > 1) {
            out.0[k] = self.stride[k].max(1);
            out.1[k] = strides.iter().copied().find(|s| *s > self.stride[k]).unwrap_or(u32::MAX);
        }
        out
    }

    /// First and last value that it holds in its buffer; an empty tensor has none.
    fn span(&self) -> Option<(u32, u32)> {
        if self.n_elem() == 0 {
            return None;
        }
        let last = (0..4).map(|k| (self.ne[k] - 1) * self.stride[k]).sum::<u32>();
        Some((self.offset, self.offset + last))
    }

    /// The constants that describe it to a kernel, by the names of operand `p`.
    fn constants(&self, p: &Names) -> Vec<(&'static str, f64)> {
        let mut out = vec![(p.offset, f64::from(self.offset))];
        let (div, modulus) = self.moduli();
        for k in 0..4 {
            // For an empty y nothing runs, but a driver may refuse a division by 0 that it can foresee.
            let ne = if p.may_be_empty { self.ne[k] } else { self.ne[k].max(1) };
            out.push((p.ne[k], ne.into()));
            out.push((p.stride[k], self.stride[k].into()));
            out.push((p.div[k], div[k].into()));
            out.push((p.modulus[k], modulus[k].into()));
        }
        out
    }
}

/// The names of an operand's constants.
pub(crate) struct Names {
    /// The operand's own.
    pub(crate) name: &'static str,
    pub(crate) ne: [&'static str; 4],
    pub(crate) stride: [&'static str; 4],
    pub(crate) div: [&'static str; 4],
    pub(crate) modulus: [&'static str; 4],
    pub(crate) offset: &'static str,
    pub(crate) planes: [&'static str; 4],
    /// Whether the kernel can do without its values: it asks for the sizes first, and divides by none of them.
    pub(crate) may_be_empty: bool,
}

impl Names {
    /// The names of an operand that the kernel can do without.
    pub(crate) const fn or_empty(self) -> Self {
        Names { may_be_empty: true, ..self }
    }
}

/// The names of operand `p`.
macro_rules! names {
    ($p:literal) => {
        $crate::tensor::Names {
            name: $p,
            ne: [concat!($p, "_ne0"), concat!($p, "_ne1"), concat!($p, "_ne2"), concat!($p, "_ne3")],
            stride: [concat!($p, "_s0"), concat!($p, "_s1"), concat!($p, "_s2"), concat!($p, "_s3")],
            div: [concat!($p, "_d0"), concat!($p, "_d1"), concat!($p, "_d2"), concat!($p, "_d3")],
            modulus: [concat!($p, "_m0"), concat!($p, "_m1"), concat!($p, "_m2"), concat!($p, "_m3")],
            offset: concat!($p, "_o"),
            planes: [concat!($p, "_p1"), concat!($p, "_p2"), concat!($p, "_p3"), concat!($p, "_table")],
            may_be_empty: false,
        }
    };
}

pub(crate) use names;

/// First source.
pub(crate) const A: Names = names!("a");
/// Second source.
pub(crate) const B: Names = names!("b");
/// Third source.
pub(crate) const C: Names = names!("c");
/// Row or expert numbers.
pub(crate) const IDS: Names = names!("ids");
/// Destination.
pub(crate) const Y: Names = names!("y");

/// Checks that all operands are f32.
pub(crate) fn check_f32(
    op: &'static str,
    sources: &[(Names, &Tensor)],
    y: &Tensor,
) -> Result<(), DispatchError> {
    let all = sources.iter().map(|(names, t)| (names.name, *t)).chain([(Y.name, y)]);
    all.into_iter().try_for_each(|(what, t)| t.check_type(op, what, GgmlType::F32))
}

/// What every dispatch over tensors needs; `y` is the destination, named `y` in the kernel.
pub(crate) struct Call<'a> {
    /// The operation.
    pub op: &'static str,
    /// Its variant.
    pub variant: &'a [Value],
    /// Sources by their names.
    pub sources: &'a [(Names, &'a Tensor)],
    /// Destination.
    pub y: &'a Tensor,
    /// Constants of the operation's own.
    pub constants: Vec<(&'static str, f64)>,
}

/// Threads of a workgroup in kernels over tensors.
const WG: u32 = 64;

impl Call<'_> {
    /// A thread for every value of y, or for every word where values are smaller than a word.
    pub(crate) fn values(self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.check()?;
        let n = match self.y.ty.block_bytes() {
            2 => self.y.span().map_or(0, |(first, last)| last / 2 - first / 2 + 1),
            _ => self.y.n_elem(),
        };
        self.threads(n, caps)
    }

    /// A thread for every word of y that moves bytes: see `moves` in `shared/tensor.wgsl.jinja`.
    pub(crate) fn moves(mut self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.check()?;
        let y = self.y.cells();
        self.constants.push(("cells", y.n_alloc.into()));
        let n = match Unit::of(self.y.ty) {
            Unit::Word => {
                let words = (self.y.ty.block_bytes() / 4) as u32;
                if y.n_alloc.checked_mul(words).is_none() {
                    let expected = format!("of at most {} values of {words} words", u32::MAX / words);
                    let found = y.n_alloc.into();
                    return Err(DispatchError::Shape { op: self.op, what: "y's buffer", expected, found });
                }
                self.constants.push(("n0", words.into()));
                y.n_elem() * words
            }
            unit => {
                let planes: Vec<(u64, usize)> = match self.y.layout() {
                    Some((f, l)) => {
                        l.plane_start.iter().copied().zip(f.planes.iter().map(|p| p.n_byte)).collect()
                    }
                    None => vec![(0, self.y.ty.block_bytes())],
                };
                for ((_, n), name) in planes.iter().zip(["n0", "n1", "n2", "n3"]) {
                    self.constants.push((name, (n / unit.n_byte()) as f64));
                }
                let (start, bytes) = *planes.last().expect("every format has a plane");
                let end = (start + u64::from(y.n_alloc) * bytes as u64).div_ceil(4) as u32;
                match y.span() {
                    // One plane: the words from the first to the last cell.
                    Some((first, last)) if planes.len() == 1 => {
                        let w0 = (u64::from(first) * bytes as u64 / 4) as u32;
                        self.constants.push(("w0", w0.into()));
                        ((u64::from(last) + 1) * bytes as u64).div_ceil(4) as u32 - w0
                    }
                    _ => end,
                }
            }
        };
        let n = if y.n_elem() == 0 { 0 } else { n };
        let sources: Vec<Tensor> = self.sources.iter().map(|(_, t)| t.cells()).collect();
        let why = "one thread a word".to_owned();
        self.finish(&sources, &y, n.div_ceil(WG), why, caps)
    }

    /// `n` workgroups, whatever they do.
    pub(crate) fn groups(self, n: u32, why: String, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.check()?;
        let sources: Vec<Tensor> = self.sources.iter().map(|(_, t)| **t).collect();
        let y = *self.y;
        self.finish(&sources, &y, n, why, caps)
    }

    /// `n` threads, whatever they do.
    pub(crate) fn threads(self, n: u32, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.groups(n.div_ceil(WG), "one thread a value or word".to_owned(), caps)
    }

    /// Checks that all operands lie within their buffers; products of sizes say something only then.
    fn check(&self) -> Result<(), DispatchError> {
        self.sources.iter().try_for_each(|(names, t)| t.check(self.op, names.name))?;
        self.y.check_written(self.op, Y.name)
    }

    /// `n_group` workgroups over these operands, counted in values or cells.
    fn finish(
        self,
        sources: &[Tensor],
        y: &Tensor,
        n_group: u32,
        why: String,
        caps: &Caps,
    ) -> Result<Dispatch, DispatchError> {
        if n_group > 0 && y.n_elem() > 0 {
            let mut needed = self.sources.iter().filter(|(names, _)| !names.may_be_empty);
            needed.try_for_each(|(names, t)| t.check_filled(self.op, names.name))?;
        }
        let mut all = y.constants(&Y);
        for ((names, _), t) in self.sources.iter().zip(sources) {
            all.extend(t.constants(names));
        }
        for (names, t) in self.sources.iter().map(|(n, t)| (n, *t)).chain([(&Y, self.y)]) {
            if let Some((_, layout)) = t.layout() {
                all.extend(layout.plane_constants(names.planes));
            }
        }
        let [gx, gy] = fold(n_group, caps.max_groups);
        // Kernels take what they need of the operands, and all of the operation's own.
        let mut d = dispatch(self.op, self.variant, self.constants, [gx, gy, 1], why)?;
        d.constants.extend(all.into_iter().filter(|(name, _)| d.kernel.has_override(name)));
        Ok(d)
    }
}

/// In which pieces the cells of a type can be moved: the largest of which every plane of a cell is a multiple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// One or two whole words a cell, in one plane.
    Word,
    /// Planes of halves.
    Half,
    /// Planes of bytes.
    Byte,
}

impl Unit {
    pub(crate) const ALL: [Unit; 3] = [Unit::Word, Unit::Half, Unit::Byte];

    /// The unit of a type.
    pub(crate) fn of(ty: GgmlType) -> Self {
        let planes: Vec<usize> = match Format::of(ty).filter(|f| !f.is_plain()) {
            Some(f) => f.planes.iter().map(|p| p.n_byte).collect(),
            None if ty.block_bytes() % 4 == 0 => return Unit::Word,
            None => vec![ty.block_bytes()],
        };
        if planes.iter().all(|n| n % 2 == 0) { Unit::Half } else { Unit::Byte }
    }

    /// The word in kernel names.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Unit::Word => "word",
            Unit::Half => "half",
            Unit::Byte => "byte",
        }
    }

    const fn n_byte(self) -> usize {
        match self {
            Unit::Word => 4,
            Unit::Half => 2,
            Unit::Byte => 1,
        }
    }

    /// The variants of an operation that moves cells.
    pub(crate) fn variants() -> Vec<Vec<(&'static str, Value)>> {
        Unit::ALL.iter().map(|u| vec![("unit", Value::Word(u.word()))]).collect()
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
            "cpy: y is 3, but must be strides of at least 4 for values that do not overlap"
        );
        let e =
            Tensor { stride: [1, 0, 4, 8], ..t }.check_written("cpy", "y").expect_err("rows on each other");
        assert_eq!(
            e.to_string(),
            "cpy: y is 0, but must be strides of at least 1 for values that do not overlap"
        );
        let e = Tensor { offset: 1, ..t }.check("cpy", "y").expect_err("one too far");
        assert_eq!(e.to_string(), "cpy: y is 24, but must be within a buffer of 24 values");
        let e = Tensor::new(GgmlType::Q8_0, [40, 1, 1, 1]).check("cpy", "y").expect_err("a part of a block");
        assert_eq!(e.to_string(), "cpy: y is 40, but must be made of whole blocks of 32");
    }

    #[test]
    fn operands_without_values_are_refused_where_a_kernel_reads_them() {
        use crate::ops::{add_id::AddId, conv_2d, count_equal::CountEqual, set_rows::SetRows};
        let t = |ty, ne| Tensor::new(ty, ne);
        let f = |ne| t(GgmlType::F32, ne);
        let caps = Caps::base();
        let none = t(GgmlType::I32, [4, 0, 1, 1]);
        let count = CountEqual { a: none, b: none, y: t(GgmlType::I64, [1; 4]) }.dispatch(&caps);
        let (rows, ids) = (f([8, 2, 3, 1]), t(GgmlType::I32, [2, 3, 1, 1]));
        let add = AddId { a: rows, b: f([8, 0, 1, 1]), ids, y: rows }.dispatch(&caps);
        let window = conv_2d::Window { stride: [1; 2], padding: [0; 2], dilation: [1; 2] };
        let (a, b, y) = (f([2, 2, 0, 3]), f([5, 5, 0, 1]), f([4, 4, 3, 1]));
        let conv = conv_2d::Conv2d { a, b, y, window, depthwise: false }.dispatch(&caps);
        for (op, what, found) in [("count_equal", "a", count), ("add_id", "b", add), ("conv_2d", "a", conv)] {
            let found = found.expect_err(op).to_string();
            assert_eq!(found, format!("{op}: {what} is 0, but must be at least one value"));
        }
        // No rows leave all others as they are.
        let (a, ids, y) = (f([8, 0, 1, 1]), t(GgmlType::I32, [0, 1, 1, 1]), f([8, 5, 1, 1]));
        let set = SetRows { a, ids, y }.dispatch(&caps).expect("nothing to write");
        assert_eq!(set.grid, [0, 1, 1]);
    }

    #[test]
    fn sizes_whose_products_overflow_are_refused() {
        use crate::ops::{cpy::Cpy, unary};
        let long = Tensor { ne: [1 << 16, 1 << 16, 1, 1], ..Tensor::new(GgmlType::F16, [8, 1, 1, 1]) };
        let f = unary::Function::find("relu").expect("a row of the table");
        let call = unary::Unary { f, params: [0.0; 4], a: Some(long), y: long };
        let e = call.dispatch(&Caps::base()).expect_err("more values than can be counted");
        assert!(e.to_string().ends_with("but must be within a buffer of 8 values"), "{e}");
        for ne in [[1 << 16; 4], [1 << 16, 1 << 16, 1, 1], [1 << 16, 1 << 16, 1 << 16, 1], [u32::MAX; 4]] {
            assert!(Tensor::new(GgmlType::F16, ne).check("cpy", "a").is_err(), "{ne:?}");
            let many = Tensor { ne, stride: [u32::MAX; 4], ..long };
            let e = many.check("cpy", "a").expect_err("more values than can be counted").to_string();
            assert!(e.ends_with("but must be within a buffer of 8 values"), "{e}");
        }
        let wide = Tensor::new(GgmlType::I64, [1 << 31, 1, 1, 1]);
        let e = Cpy { a: wide, y: wide }.dispatch(&Caps::base()).expect_err("more words than can be counted");
        let want = "y's buffer is 2147483648, but must be of at most 2147483647 values of 2 words";
        assert_eq!(e.to_string(), format!("cpy_same: {want}"));
    }

    /// Sizes whose products overflow in small buffers, in every way that an operation multiplies them before it checks.
    #[test]
    fn operations_count_no_further_than_they_can() {
        use crate::ops::attention::AttentionNd;
        use crate::ops::norm::Norm;
        use crate::ops::rope::{Mode, RopeNd};
        use crate::ops::{
            argmax::ArgmaxRows, argsort::Argsort, conv_2d, cumsum::Cumsum, im2col::Im2col, pool::Pool,
        };
        use crate::ops::{set_rows::SetRows, soft_max::SoftMax, solve_tri::SolveTri, top_k::TopK};
        use chaski_graph::NormKind;
        let (small, caps) = (Tensor::new(GgmlType::F32, [8, 1, 1, 1]), Caps::base());
        let of = |ty, ne| Tensor { ty, ne, ..small };
        let f = |ne| of(GgmlType::F32, ne);
        let i = |ne| of(GgmlType::I32, ne);
        const N: u32 = 1 << 16;
        const M: u32 = u32::MAX;
        for ne in [[1, N, N, N], [N, N, N, N], [M, 1, 1, 1], [1, M, M, M], [M, M, M, M], [M, 0, M, M]] {
            let [ne0, ne1, ne2, ne3] = ne;
            let (y, one) = (f(ne), f([1; 4]));
            let (window, k) = (conv_2d::Window { stride: [1; 2], padding: [M; 2], dilation: [M; 2] }, [3, M]);
            let attention = AttentionNd {
                q: f([1, ne2, ne1, ne3]),
                k: one,
                v: f([ne0, 1, 1, 1]),
                mask: None,
                sinks: None,
                scale: 1.0,
                softcap: 0.0,
                max_bias: 0.0,
                y,
            };
            let soft_max = SoftMax { a: Some(y), mask: Some(y), sinks: None, scale: 1.0, max_bias: 0.0, y };
            let norm = |groups| Norm {
                kind: NormKind::Norm,
                eps: 0.0,
                groups,
                mul: None,
                add: None,
                by: 1.0,
                a: None,
                y,
            };
            let rope = RopeNd {
                mode: Mode::Mrope,
                n_dims: M - 1,
                first: M,
                sections: [M; 4],
                a: None,
                pos: i([ne2.saturating_mul(4), 1, 1, 1]),
                n_pos: M,
                y,
            };
            let im2col = Im2col { b: y, y, k, window, line: false };
            let pool = Pool { mean: true, a: y, y: Tensor { ne: [0; 4], ..y }, k, window, inner: true };
            let refused = [
                attention.dispatch(&caps).is_err(),
                soft_max.dispatch(&caps).is_err(),
                ArgmaxRows { a: y, y: i([ne1, ne2, ne3, 1]) }.dispatch(&caps).is_err(),
                Cumsum { a: y, y }.dispatch(&caps).is_err(),
                Argsort { descending: true, a: y, y: i(ne) }.dispatch(&caps).is_err(),
                TopK { a: y, y: i([ne0.min(2), ne1, ne2, ne3]) }.dispatch(&caps).is_err(),
                norm(None).dispatch(&caps).is_err(),
                norm(Some(2)).dispatch(&caps).is_err(),
                SolveTri { a: f([ne1, ne1, ne2, ne3]), b: y, y }.dispatch(&caps).is_err(),
                SetRows { a: y, ids: i([ne1, ne2, ne3, 1]), y: f([ne0, 1, ne2, ne3]) }
                    .dispatch(&caps)
                    .is_err(),
            ];
            assert!(ne.contains(&0) || refused == [true; 10], "{ne:?} {refused:?}");
            // These have other reasons, too.
            assert!(rope.dispatch(&caps).is_err() && pool.dispatch(&caps).is_err(), "{ne:?}");
            assert!(im2col.dispatch(&caps).is_err(), "{ne:?}");
        }
    }

    proptest! {
        /// What the kernel does with `d` and `m` to find out which value a place in the buffer holds.
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
