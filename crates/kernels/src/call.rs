//! Calls of operations: from template variables and constants to the dispatch of a kernel, with helpers for tensor
//! operands.

use ggml_format::GgmlType;

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::format::Format;
use crate::op::{Op, Value};
use crate::render;
use crate::tensor::Tensor;

/// A dispatch of the kernel of this variant.
pub(crate) fn dispatch(
    op: &'static Op,
    values: &[Value],
    constants: Vec<(&'static str, f64)>,
    grid: [u32; 3],
    why: String,
) -> Result<Dispatch, DispatchError> {
    let name = op.kernel_name(values);
    let kernel = render::find(op, &name).ok_or(DispatchError::NoKernel { name })?;
    debug_assert!(
        constants.iter().all(|(c, _)| kernel.has_override(c)),
        "{}: a constant that the kernel lacks: {:?}",
        kernel.name,
        constants.iter().find(|(c, _)| !kernel.has_override(c)),
    );
    Ok(Dispatch { kernel, constants, grid, why })
}

/// The names of an operand's constants.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    /// The operand's own.
    pub(crate) name: &'static str,
    pub(crate) ne: [&'static str; 4],
    pub(crate) stride: [&'static str; 4],
    pub(crate) div: [&'static str; 4],
    pub(crate) modulus: [&'static str; 4],
    pub(crate) offset: &'static str,
    pub(crate) planes: [&'static str; 4],
    /// True if the kernel can run without the operand's values: it tests the sizes before it divides by them.
    pub(crate) may_be_empty: bool,
}

impl Names {
    /// The constants that describe an operand to a kernel.
    fn constants(&self, t: &Tensor) -> Vec<(&'static str, f64)> {
        let mut out = vec![(self.offset, f64::from(t.offset))];
        let (div, modulus) = t.moduli();
        for k in 0..4 {
            // For an empty y nothing runs, but a driver may refuse a division by 0 that it can foresee.
            let ne = if self.may_be_empty { t.ne[k] } else { t.ne[k].max(1) };
            out.push((self.ne[k], ne.into()));
            out.push((self.stride[k], t.stride[k].into()));
            out.push((self.div[k], div[k].into()));
            out.push((self.modulus[k], modulus[k].into()));
        }
        out
    }

    /// The names of an operand that may be empty.
    pub(crate) const fn or_empty(self) -> Self {
        Names { may_be_empty: true, ..self }
    }
}

/// The names of operand `p`.
macro_rules! names {
    ($p:literal) => {
        $crate::call::Names {
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

/// Arguments of a dispatch over tensors; `y` is the destination, named `y` in the kernel.
pub(crate) struct Call<'a> {
    /// The operation.
    pub op: &'static Op,
    /// Its variant.
    pub variant: &'a [Value],
    /// Sources by their names.
    pub sources: &'a [(Names, &'a Tensor)],
    /// Destination.
    pub y: &'a Tensor,
    /// Constants specific to the operation.
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
                    return Err(DispatchError::Shape {
                        op: self.op.name,
                        what: "y's buffer",
                        expected,
                        found,
                    });
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
        let why = "one thread per word".to_owned();
        self.finish(&sources, &y, n.div_ceil(WG), why, caps)
    }

    /// `n` workgroups of any shape of work.
    pub(crate) fn groups(self, n: u32, why: String, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.check()?;
        let sources: Vec<Tensor> = self.sources.iter().map(|(_, t)| **t).collect();
        let y = *self.y;
        self.finish(&sources, &y, n, why, caps)
    }

    /// `n` threads of any shape of work.
    pub(crate) fn threads(self, n: u32, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.groups(n.div_ceil(WG), "one thread per value or word".to_owned(), caps)
    }

    /// Checks that all operands lie within their buffers; products of sizes say something only then.
    fn check(&self) -> Result<(), DispatchError> {
        self.sources.iter().try_for_each(|(names, t)| t.check(self.op.name, names.name))?;
        self.y.check_written(self.op.name, Y.name)
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
            needed.try_for_each(|(names, t)| t.check_filled(self.op.name, names.name))?;
        }
        let mut all = Y.constants(y);
        for ((names, _), t) in self.sources.iter().zip(sources) {
            all.extend(names.constants(t));
        }
        for (names, t) in self.sources.iter().map(|(n, t)| (n, *t)).chain([(&Y, self.y)]) {
            if let Some((_, layout)) = t.layout() {
                all.extend(layout.plane_constants(names.planes));
            }
        }
        let [gx, gy] = fold(n_group, caps.max_groups);
        // Kernels use some of the operand constants, and all of the operation's own.
        let mut d = dispatch(self.op, self.variant, self.constants, [gx, gy, 1], why)?;
        d.constants.extend(all.into_iter().filter(|(name, _)| d.kernel.has_override(name)));
        Ok(d)
    }
}

/// Granularity at which the cells of a type can be moved: the largest unit that divides every plane of a cell.
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
            assert_eq!(found, format!("{op}: {what} is 0, expected at least one value"));
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
        assert!(e.to_string().ends_with("expected within a buffer of 8 values"), "{e}");
        for ne in [[1 << 16; 4], [1 << 16, 1 << 16, 1, 1], [1 << 16, 1 << 16, 1 << 16, 1], [u32::MAX; 4]] {
            assert!(Tensor::new(GgmlType::F16, ne).check("cpy", "a").is_err(), "{ne:?}");
            let many = Tensor { ne, stride: [u32::MAX; 4], ..long };
            let e = many.check("cpy", "a").expect_err("more values than can be counted").to_string();
            assert!(e.ends_with("expected within a buffer of 8 values"), "{e}");
        }
        let wide = Tensor::new(GgmlType::I64, [1 << 31, 1, 1, 1]);
        let e = Cpy { a: wide, y: wide }.dispatch(&Caps::base()).expect_err("more words than can be counted");
        let want = "y's buffer is 2147483648, expected of at most 2147483647 values of 2 words";
        assert_eq!(e.to_string(), format!("cpy_same: {want}"));
    }

    /// Sizes whose products overflow although the buffers are small, for each way an operation multiplies before it
    /// checks.
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
                shifts: None,
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
}
