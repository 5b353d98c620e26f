//! Cases of products by experts over many columns.

use std::collections::HashMap;

use half::f16;

use super::cases::{F16_LIMIT, TELLING};
use super::{MatExperts, MulMat, Place};
use crate::affine::{Affine, AffineBy};
use crate::caps::Caps;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::format::{FORMATS, Format, Matrix};
use crate::grid::{GridError, Params};
use crate::ops::expert_lists::cases::{random_route, sorted_route};
use crate::ops::get_rows;
use crate::ops::get_rows::cases::table;
use crate::ops::mul_mat_vec::cases::{COLUMNS, ROWS, limit};
use crate::ops::mul_mat_vec::reference::dot;
use crate::ops::mul_mat_vec::{ActivationPrecision, Epilogue, MatVecExperts, MulMatVec, Slots};
use crate::rng::{Rng, random_values};
use crate::route::{Experts, Route};

/// Options of a case in addition to the format.
#[derive(Clone, Copy, Debug)]
struct Shape {
    n_expert: u32,
    n_used: u32,
    /// First expert of w, and number of experts.
    held: (u32, u32),
    m: u32,
    /// Row stride between experts.
    stride: u32,
    n: u32,
    k: u32,
    x: Place,
    y_sorted: bool,
    affine: Option<AffineBy>,
    f16_tiles: bool,
    x_f16: bool,
    tile: u32,
    /// Columns choose uniformly among the experts.
    even: bool,
    /// Slot i uses expert i (heads).
    by_slot: bool,
    /// One column, with the kernel for that.
    by_column: bool,
    /// Magnitude of the values of x.
    amax: f32,
}

impl Shape {
    const fn new(n_expert: u32, n_used: u32, m: u32, n: u32, k: u32) -> Self {
        Shape {
            n_expert,
            n_used,
            held: (0, n_expert),
            m,
            stride: m,
            n,
            k,
            x: Place::Shared,
            y_sorted: false,
            affine: None,
            f16_tiles: false,
            x_f16: false,
            tile: 64,
            even: true,
            by_slot: false,
            by_column: false,
            amax: 1.0,
        }
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f in FORMATS {
        for f16_tiles in [false, true] {
            let new = |x, e, u, m, n, k| Shape { x, f16_tiles, ..Shape::new(e, u, m, n, k) };
            out.push(new(Place::Shared, 8, 2, 70, 33, 256).case(f));
            out.push(Shape { y_sorted: true, tile: 32, ..new(Place::Pair, 4, 2, 20, 40, 512) }.case(f));
            out.push(Shape { affine: ROWS, even: false, ..new(Place::Sorted, 4, 3, 66, 50, 256) }.case(f));
            out.push(Shape { by_slot: true, tile: 32, ..new(Place::Pair, 5, 5, 20, 70, 256) }.case(f));
            for (x, y_sorted) in [(Place::Shared, true), (Place::Pair, false)] {
                if TELLING.contains(&f.name) {
                    let shape = Shape { affine: COLUMNS, y_sorted, even: false, ..new(x, 4, 3, 8, 40, 256) };
                    out.push(shape.case(f));
                }
            }
            if !f16_tiles {
                out.push(new(Place::Shared, 8, 1, 16, 1, 256).case(f));
                out.push(Shape { held: (2, 3), ..new(Place::Shared, 8, 4, 9, 17, 256) }.case(f));
            }
        }
        if f.is_plain() {
            out.push(Shape { x: Place::Pair, ..Shape::new(4, 2, 7, 9, 65) }.case(f));
            out.push(Shape::new(16, 10, 32, 5, 588).case(f));
        }
    }
    out
}

/// Devices without cooperative matrices skip x in f16.
pub(super) fn coop_cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f in FORMATS {
        for tile in [64, 32] {
            for x_f16 in [false, true] {
                let new = |e, u, m, n, k| Shape { f16_tiles: true, tile, x_f16, ..Shape::new(e, u, m, n, k) };
                // Full tiles take another store path.
                let sorted = Shape { y_sorted: true, even: false, ..new(4, 2, 128, 150, 256) };
                out.push(sorted.case(f));
                out.push(Shape { x: Place::Sorted, affine: ROWS, ..new(8, 2, 70, 33, 512) }.case(f));
                if TELLING.contains(&f.name) {
                    out.push(Shape { y_sorted: true, affine: COLUMNS, ..new(8, 2, 8, 70, 256) }.case(f));
                }
                out.push(Shape { held: (1, 2), x: Place::Pair, ..new(4, 3, 64, 40, 256) }.case(f));
                out.push(Shape { by_slot: true, x: Place::Pair, ..new(3, 3, 70, 100, 256) }.case(f));
            }
        }
    }
    out
}

/// A case of ggml's.
pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let ty = p.ty("type_a")?;
    let f = Format::of(ty).ok_or(GridError::Format(ty.name()))?;
    let (m, n, m_v) = (p.num("m")?, p.num("n")?, p.num::<u32>("m_v")?);
    let shape = Shape {
        x: if p.flag("b")? { Place::Shared } else { Place::Pair },
        stride: if m_v == 0 { m } else { m_v },
        amax: p.num("amax")?,
        by_column: n == 1,
        ..Shape::new(p.num("n_mats")?, p.num("n_used")?, m, n, p.num("k")?)
    };
    Ok(shape.case(f))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let f = &FORMATS[rng.below(FORMATS.len() as u32) as usize];
    let block = f.block as u32;
    let k = block * (1 + rng.below(if block > 1 { 3 } else { 200 }));
    let n_expert = 1 + rng.below(12);
    let first = rng.below(n_expert);
    let (n_used, m, n) = (1 + rng.below(n_expert.min(6)), 1 + rng.below(80), 1 + rng.below(50));
    let shape = Shape {
        held: (first, 1 + rng.below(n_expert - first)),
        stride: m + rng.below(2) * rng.below(5),
        x: rng.pick(&[Place::Shared, Place::Pair, Place::Sorted]),
        y_sorted: rng.below(2) == 1,
        affine: rng.pick(&[None, ROWS, COLUMNS]),
        f16_tiles: rng.below(2) == 1,
        tile: rng.pick(&[64, 32]),
        even: rng.below(2) == 1,
        ..Shape::new(n_expert, n_used, m, n, k)
    };
    let case = shape.case(f);
    Case { label: format!("random {}", case.label), ..case }
}

impl Shape {
    fn case(self, f: &'static Format) -> Case {
        let Shape { n_expert, n_used, m, n, k, .. } = self;
        let (mu, ku) = (m as usize, k as usize);
        let (first, n_held) = self.held;
        let stride = self.stride;
        let blocks = table(f, (n_held * stride) as usize, ku, 3);
        // Rows of the experts in use.
        let mut rows: HashMap<u32, Vec<Vec<f32>>> = HashMap::new();
        let expert = |id: u32| {
            let first = ((id - first) * stride) as usize;
            (0..mu).map(|r| get_rows::reference::row(f.ty, &blocks, ku, first + r)).collect()
        };
        // Capacity for a few more columns than are used.
        let route = Route { n_expert, n_used, n_col: n + 3, tile: self.tile };
        let ids = match self.by_slot {
            true => (0..n * n_used).map(|pair| pair % n_used).collect(),
            false => random_route(&route, n, self.even),
        };
        let mut words = sorted_route(&route, &ids, &[], n);
        let places = words[route.places_at() as usize..].to_vec();
        let place = |pair: usize| places[pair] as usize;
        if self.by_slot {
            // The step buffer: columns, then words that kernels must not read.
            words = vec![n, u32::MAX, u32::MAX, u32::MAX];
        }
        let (ldx, ldy, y0) = (k.next_multiple_of(8) + 8, m.next_multiple_of(4) + 4, 4u32);
        let n_x = if self.x == Place::Shared { n } else { n * n_used };
        let mut x = random_values(5, ldx as usize * n_x.max(1) as usize);
        x.iter_mut().for_each(|v| *v *= self.amax);
        if self.x_f16 {
            x.iter_mut().for_each(|v| *v = f16::from_f32(*v).to_f32());
        }
        x.chunks_exact_mut(ldx as usize).for_each(|c| c[ku..].fill(f32::NAN));
        let y = random_values(6, (ldy * (n * n_used).max(1) + y0) as usize);
        let mut aux = vec![0.0; 5];
        aux.extend(random_values(7, (2 * (n_expert * stride).max(n) + 3) as usize));
        aux.resize(aux.len().next_multiple_of(4), 0.0);
        let mut values = y.clone();
        for (pair, id) in ids.iter().enumerate() {
            if *id < first || *id >= first + n_held {
                continue;
            }
            let col = match self.x {
                Place::Shared => pair / n_used as usize,
                Place::Pair => pair,
                Place::Sorted => place(pair),
            };
            let out = if self.y_sorted { place(pair) } else { pair };
            let rows = rows.entry(*id).or_insert_with(|| expert(*id));
            for (r, row) in rows.iter().enumerate() {
                let mut v = dot(row, &x[col * ldx as usize..][..ku]) as f32;
                if let Some(by) = self.affine {
                    let row = (id * stride) as usize + r;
                    let at = 5 + 2 * if by == AffineBy::Row { row } else { pair / n_used as usize };
                    v = v * aux[at] + aux[at + 1];
                }
                values[out * ldy as usize + y0 as usize + r] = v;
            }
        }
        let w = Matrix { format: f, n_row: n_held * stride, n_col: k };
        let experts = Experts { route, first, n_row: m, stride, by_slot: self.by_slot };
        let call = MulMat {
            w,
            experts: Some(MatExperts { experts, x: self.x, y_sorted: self.y_sorted }),
            act: None,
            add: false,
            affine: self.affine.map(|by| Affine { at: 5, by }),
            f16_tiles: self.f16_tiles,
            ldx,
            ldy,
            y0,
            n_col: n,
            x_f16: self.x_f16,
            tile: None,
            splits: 1,
        };
        let x = if self.x_f16 {
            let half: Vec<u16> = x.iter().map(|v| f16::from_f32(*v).to_bits()).collect();
            CaseBuffer::input("x", &half)
        } else {
            CaseBuffer::input("x", &x)
        };
        let max_nmse = if self.f16_tiles { F16_LIMIT } else { limit(f) };
        let n_tile = if self.by_slot { route.tiles_by_slot(n) } else { route.tiles_of(n * n_used) };
        let one = MulMatVec {
            experts: Some(MatVecExperts {
                experts,
                ldx: if self.x == Place::Shared { 0 } else { ldx },
                slots: Slots::Each { ldy },
            }),
            affine: self.affine.map(|by| Affine { at: 5, by }),
            y0,
            act: Some(ActivationPrecision::F32),
            ..MulMatVec::new(w, Epilogue::Store)
        };
        let by_column = self.by_column;
        Case::new(
            format!("{} {self:?}", f.name),
            move |caps| {
                if by_column {
                    return one.dispatch(caps);
                }
                // The form for GPUs, as in the cases without experts.
                let caps = Caps { software: false, ..caps.clone() };
                let (mut dispatch, _) = call.dispatch(&caps)?;
                // As a plan does for the actual number of columns.
                dispatch.grid[0] = n_tile;
                Ok(dispatch)
            },
            vec![
                CaseBuffer::input("w", &w.layout().pack_all(f, k, &blocks)),
                x,
                CaseBuffer::input("aux", &aux),
                CaseBuffer::input("route", &words),
                CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse }),
            ],
        )
        .work(2 * u64::from(m) * u64::from(n * n_used) * u64::from(k))
    }
}
