//! Cases of `mul_mat`.

use half::f16;

use super::MulMat;
use super::coop::COOP_TILES;
use crate::affine::{Affine, AffineBy};
use crate::caps::Caps;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::dispatch::{DispatchError, Step};
use crate::format::{FORMATS, Format, Matrix};
use crate::grid::{GridError, Params};
use crate::ops::get_rows;
use crate::ops::get_rows::cases::table;
use crate::ops::mul_mat_vec::cases::{COLUMNS, ROWS};
use crate::ops::mul_mat_vec::reference::{dot, round8};
use crate::ops::mul_mat_vec::{self, ActivationPrecision, Epilogue, MulMatVec};
use crate::rng::{Rng, random_values};
use crate::step;

/// Formats that are tested in every shape; a few shapes cover what is specific to the others.
pub(super) const TELLING: [&str; 3] = ["f16", "q8_0", "q4_K"];

/// Cases of cooperative matrices, with every tile size; devices without them skip x in f16.
pub(super) fn coop_cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f in FORMATS {
        for tile in COOP_TILES {
            let coop = |x_f16| Shape { f16_tiles: true, x_f16, tile: Some(tile), ..Shape::default() };
            if !TELLING.contains(&f.name) {
                out.push(Shape { pad: 4, ..coop(true) }.case(f, 128, 128, 512));
                out.push(Shape { pad: 3, add: true, ..coop(false) }.case(f, 130, 129, 256));
                continue;
            }
            for (m, n, k) in [(16, 1, 256), (51, 33, 512), (70, 40, 64)] {
                if k % f.block as u32 == 0 {
                    out.push(coop(false).case(f, m, n, k));
                }
            }
            // Full tiles take another store path than ragged ones.
            for x_f16 in [false, true] {
                out.push(Shape { pad: 4, ..coop(x_f16) }.case(f, 128, 128, 512));
                out.push(Shape { pad: 4, add: true, ..coop(x_f16) }.case(f, 260, 150, 256));
                out.push(Shape { pad: 3, add: true, ..coop(x_f16) }.case(f, 130, 129, 256));
                out.push(Shape { pad: 4, add: true, affine: ROWS, ..coop(x_f16) }.case(f, 80, 150, 512));
                out.push(Shape { pad: 4, affine: COLUMNS, ..coop(x_f16) }.case(f, 16, 150, 512));
                out.push(Shape { pad: 4, splits: 4, ..coop(x_f16) }.case(f, 128, 130, 1024));
                out.push(
                    Shape { pad: 3, add: true, affine: ROWS, splits: 3, ..coop(x_f16) }.case(f, 80, 20, 1024),
                );
            }
        }
        // Tiles that are all whole have kernels of their own.
        let whole = |x_f16| Shape { f16_tiles: true, x_f16, pad: 4, ..Shape::default() };
        for n in [16, 32, 64] {
            out.push(whole(true).case(f, 128, n, 512));
            if TELLING.contains(&f.name) {
                out.push(Shape { add: true, ..whole(false) }.case(f, 64, n, 256));
                out.push(Shape { splits: 4, ..whole(true) }.case(f, 192, n, 1024));
                out.push(Shape { add: true, affine: ROWS, splits: 2, ..whole(true) }.case(f, 64, n, 512));
            }
        }
        if f.name == "q4_K" {
            out.push(whole(true).case(f, 24_576, 64, 256));
        }
    }
    out
}

/// Cases of int8 products, in every format that supports them.
pub(super) fn byte_cases() -> Vec<Case> {
    let mut out = Vec::new();
    let shape = Shape { act: Some(ActivationPrecision::I8), ..Shape::default() };
    for f in FORMATS.iter().filter(|f| f.run > 0) {
        let k = 512 + f.block as u32 % 256;
        out.push(Shape { add: true, ..shape }.case(f, 65, 67, k));
        if !TELLING.contains(&f.name) {
            continue;
        }
        for (m, n, k) in [(64, 64, 256), (1, 9, 1024), (130, 30, 512), (0, 9, 256)] {
            out.push(shape.case(f, m, n, k));
        }
        out.push(Shape { affine: ROWS, add: true, ..shape }.case(f, 67, 65, 256));
        out.push(Shape { affine: COLUMNS, ..shape }.case(f, 16, 70, 512));
        out.push(Shape { affine: ROWS, splits: 3, ..shape }.case(f, 67, 33, 1280));
    }
    out
}

/// A prefill chunk, with the device's own kernel.
pub(crate) fn probe(f: &'static Format) -> Case {
    Shape { f16_tiles: true, pad: 4, ..Shape::default() }.case(f, 70, 40, 512)
}

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f in FORMATS {
        out.push(Shape { affine: ROWS, f16_tiles: true, ..Shape::default() }.case(f, 33, 40, 512));
        if !TELLING.contains(&f.name) {
            // Rows of several blocks, even of 256 values; ragged rows for plain formats.
            let k = if f.is_plain() { 65 } else { 512 + f.block as u32 % 256 };
            out.push(Shape { add: true, ..Shape::default() }.case(f, 65, 9, k));
            continue;
        }
        for (m, n, k) in
            [(16, 1, 256), (16, 9, 256), (65, 70, 512), (1, 2, 1024), (64, 64, 256), (0, 3, 256), (3, 0, 256)]
        {
            out.push(Shape::default().case(f, m, n, k));
        }
        out.push(Shape { add: true, affine: ROWS, ..Shape::default() }.case(f, 67, 65, 256));
        // Ranges of K: some that are not whole blocks, a shorter last one, a few columns.
        out.push(Shape { add: true, affine: ROWS, splits: 3, ..Shape::default() }.case(f, 67, 33, 1024));
        out.push(Shape { splits: 2, ..Shape::default() }.case(f, 5, 3, 512));
        for f16_tiles in [false, true] {
            let shape = Shape { affine: COLUMNS, f16_tiles, ..Shape::default() };
            out.push(shape.case(f, 16, 70, 512));
            out.push(Shape { add: true, splits: 3, ..shape }.case(f, 8, 33, 1024));
        }
        out.push(
            Shape { add: true, affine: ROWS, f16_tiles: true, ..Shape::default() }.case(f, 131, 130, 256),
        );
        if f.is_plain() {
            for (m, n, k) in [(32, 7, 65), (64, 32, 588), (9, 5, 3), (31, 33, 80)] {
                out.push(Shape::default().case(f, m, n, k));
                out.push(Shape { f16_tiles: true, ..Shape::default() }.case(f, m, n, k));
            }
        }
    }
    out
}

/// Cases without ranges of K and without x or tiles in f16.
pub(crate) fn plain() -> Vec<Case> {
    let mut out = Vec::new();
    for f in FORMATS {
        let k = if f.is_plain() { 65 } else { 512 + f.block as u32 % 256 };
        out.push(Shape { add: true, ..Shape::default() }.case(f, 65, 9, k));
        if TELLING.contains(&f.name) {
            for (m, n, k) in [(16, 1, 256), (65, 70, 512), (1, 2, 1024), (0, 3, 256), (3, 0, 256)] {
                out.push(Shape::default().case(f, m, n, k));
            }
            out.push(Shape { add: true, affine: ROWS, ..Shape::default() }.case(f, 67, 65, 256));
            out.push(Shape { affine: COLUMNS, ..Shape::default() }.case(f, 16, 70, 512));
            out.push(Shape { add: true, affine: COLUMNS, ..Shape::default() }.case(f, 5, 7, 256));
        }
        if f.is_plain() {
            for (m, n, k) in [(64, 32, 588), (9, 5, 3), (31, 33, 80)] {
                out.push(Shape::default().case(f, m, n, k));
            }
        }
    }
    out
}

/// A case of ggml's: one column as in decode, more as in prefill.
pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let ty = p.ty("type_a")?;
    let f = Format::of(ty).ok_or(GridError::Format(ty.name()))?;
    let (m, n, k) = (p.num("m")?, p.num("n")?, p.num("k")?);
    let case = Shape { by_column: n == 1, ..Shape::default() }.case(f, m, n, k);
    Ok(Case { label: p.to_string(), ..case })
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let f = &FORMATS[rng.below(FORMATS.len() as u32) as usize];
    let block = f.block as u32;
    let k = block * (1 + rng.below(if block > 1 { 4 } else { 300 }));
    let (m, n) = (rng.below(150), 1 + rng.below(100));
    let affine = rng.pick(&[None, ROWS, COLUMNS]);
    let mut flag = || rng.below(2) == 1;
    let shape = Shape { add: flag(), affine, f16_tiles: flag(), ..Shape::default() };
    let case = shape.case(f, m, n, k);
    Case { label: format!("random {}", case.label), ..case }
}

/// Sums of 32 products in f16; ggml allows 5e-4. Most cases reach 3e-7, but if a row scale lets a few values dominate,
/// one of them may round badly.
pub(super) const F16_LIMIT: f64 = 5e-6;

/// Options of a case in addition to the sizes.
#[derive(Clone, Copy, Debug)]
struct Shape {
    add: bool,
    affine: Option<AffineBy>,
    f16_tiles: bool,
    x_f16: bool,
    tile: Option<(u32, u32)>,
    /// Padding between the columns of y, in values.
    pad: u32,
    /// Maximum number of ranges of K.
    splits: u32,
    act: Option<ActivationPrecision>,
    /// One column, with the kernel for that.
    by_column: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            add: false,
            affine: None,
            f16_tiles: false,
            x_f16: false,
            tile: None,
            pad: 3,
            splits: 1,
            act: None,
            by_column: false,
        }
    }
}

impl Shape {
    fn case(self, f: &'static Format, m: u32, n: u32, k: u32) -> Case {
        let (mu, nu, ku) = (m as usize, n as usize, k as usize);
        let blocks = table(f, mu, ku, 3);
        let (ldx, ldy) = (k.next_multiple_of(8) + 8, m.next_multiple_of(4) + self.pad);
        // Columns of y aligned to 16 bytes, and unaligned ones.
        let y0 = if self.pad % 4 == 0 { 4 } else { 2 };
        let ldy = ldy + y0;
        let mut x = random_values(5, ldx as usize * nu.max(1));
        if self.x_f16 {
            x.iter_mut().for_each(|v| *v = f16::from_f32(*v).to_f32());
        }
        for c in x.chunks_exact_mut(ldx as usize) {
            c[ku..].fill(f32::NAN);
        }
        let y = random_values(6, ldy as usize * nu.max(1));
        let mut aux = vec![0.0; 5];
        aux.extend(random_values(7, 2 * mu.max(nu).max(1)));
        let mut values = y.clone();
        let mut rounded = x.clone();
        if self.act == Some(ActivationPrecision::I8) {
            for c in rounded.chunks_exact_mut(ldx as usize) {
                let made = round8(&c[..ku], 16);
                c[..ku].copy_from_slice(&made);
            }
        }
        for r in 0..mu {
            let row = get_rows::reference::row(f.ty, &blocks, ku, r);
            for c in 0..nu {
                let mut v = dot(&row, &rounded[c * ldx as usize..][..ku]) as f32;
                if let Some(by) = self.affine {
                    let pair = if by == AffineBy::Row { r } else { c };
                    v = v * aux[5 + 2 * pair] + aux[6 + 2 * pair];
                }
                let at = &mut values[c * ldy as usize + y0 as usize + r];
                *at = if self.add { *at + v } else { v };
            }
        }
        let mut words = vec![0u32; step::HEADER];
        words[step::N_COL] = n;
        let w = Matrix { format: f, n_row: m, n_col: k };
        let call = MulMat {
            w,
            experts: None,
            act: self.act,
            add: self.add,
            affine: self.affine.map(|by| Affine { at: 5, by }),
            f16_tiles: self.f16_tiles,
            ldx,
            ldy,
            y0,
            n_col: n,
            x_f16: self.x_f16,
            tile: self.tile,
            splits: 1,
        }
        .in_ranges(self.splits);
        let x = if self.x_f16 {
            let half: Vec<u16> = x.iter().map(|v| f16::from_f32(*v).to_bits()).collect();
            CaseBuffer::input("x", &half)
        } else {
            CaseBuffer::input("x", &x)
        };
        // A few columns use `mul_mat_vec`, where integers carry an offset of 1024.
        let max_nmse = if self.f16_tiles { F16_LIMIT } else { mul_mat_vec::cases::limit(f) };
        let one = MulMatVec {
            affine: call.affine,
            y0,
            ..MulMatVec::new(w, if self.add { Epilogue::Add } else { Epilogue::Store })
        };
        let by_column = self.by_column;
        let mut buffers = vec![
            CaseBuffer::input("w", &w.layout().pack_all(f, k, &blocks)),
            x,
            CaseBuffer::input("aux", &aux),
            CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse }),
        ];
        if !by_column {
            buffers.push(CaseBuffer::input("step", &words));
        }
        if call.splits > 1 {
            buffers.push(CaseBuffer::scratch("parts", 4 * call.parts_len()));
        }
        Case::new(
            format!("{} {m}x{n}x{k} {self:?}", f.name),
            move |caps| -> Result<Vec<Step>, DispatchError> {
                if by_column {
                    return Ok(one.dispatch(caps)?.into());
                }
                // Cooperative matrices round differently and take precedence. Software renderers run what GPUs do;
                // their own form runs in whole models.
                let coop = caps.coop.filter(|_| call.act != Some(ActivationPrecision::I8));
                let caps = Caps { coop, software: false, ..caps.clone() };
                let product = call.dispatch(&caps)?.0;
                Ok(match call.splits {
                    1 => product.into(),
                    _ => vec![
                        Step::renamed(product, &[("y", "parts")]),
                        Step::renamed(call.join().dispatch()?, &[("x", "parts")]),
                    ],
                })
            },
            buffers,
        )
        .work(2 * u64::from(m) * u64::from(n) * u64::from(k))
    }
}
