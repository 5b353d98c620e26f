//! Products by every instruction set that this CPU has, and what vectors compute beside them.

use ggml_format::product::{Columns, Form, Packed, TILE_ROWS, add_weighted, exp_of_scores, swiglu};
use ggml_format::{GgmlType, Isa, TYPES};

/// Values that share a scale.
const RUN: usize = 32;
/// The largest integer that a value is rounded to.
const TOP: f32 = 32767.0;

/// Values between -1 and 1, with some outliers.
fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|i| draw() * if i % 37 == 5 { 40.0 } else { 1.0 }).collect()
}

/// Products of rows with `n` columns, `[rows, n]`.
fn multiply(isa: Isa, ty: GgmlType, bytes: &[u8], rows: usize, x: &[f32], k: usize) -> Vec<f32> {
    let mut columns = Columns::for_isa(isa, x, k);
    columns.prepare(columns.form(ty));
    let mut out = vec![f32::NAN; rows * columns.n()];
    columns.multiply(ty, bytes, &mut out);
    out
}

/// The same of rows in tiles, in two parts.
fn packed(isa: Isa, ty: GgmlType, bytes: &[u8], rows: usize, x: &[f32], k: usize) -> Option<Vec<f32>> {
    let row_bytes = bytes.len() / rows;
    let weights = Packed::new(ty, k, rows, |n_line, lines| {
        let tiles = lines.chunks_exact_mut(n_line);
        for (tile, bytes) in tiles.zip(bytes.chunks(TILE_ROWS * row_bytes)) {
            Packed::pack(ty, k, bytes, tile);
        }
    })?;
    let mut columns = Columns::for_isa(isa, x, k);
    columns.prepare(weights.form());
    let mut out = vec![f32::NAN; rows * columns.n()];
    let (first, second) = out.split_at_mut(TILE_ROWS * columns.n());
    columns.multiply_packed(&weights, 0, first);
    columns.multiply_packed(&weights, TILE_ROWS, second);
    Some(out)
}

/// By all instruction sets that this CPU has.
#[test]
fn products_of_every_format_are_those_of_the_reference() {
    let mut n_packed = 0;
    for info in TYPES {
        let Some(quantize) = info.quantize else { continue };
        // A part of a chunk at the end, where blocks allow it, and a part of a run, where they hold one value.
        let k = 512 + if info.block_len == 1 { 21 } else { info.block_len.max(RUN) };
        let (rows, row_bytes) = (45, k / info.block_len * info.block_bytes);
        let mut bytes = vec![0; rows * row_bytes];
        let weights = noise(rows * k, 7);
        for (w, out) in weights.chunks_exact(k).zip(bytes.chunks_exact_mut(row_bytes)) {
            quantize(w, None, out);
        }
        let mut exact = vec![0.0; rows * k];
        info.dequantize.expect("formats with a quantiser have one")(&bytes, &mut exact);
        let x = noise(41 * k, 99);
        let half_step = |x: &[f32]| x.iter().fold(0.0f32, |m, v| m.max(v.abs())) / TOP / 2.0;
        // Half a step of each activation, plus the rounding error of f32 sums.
        let bounds: Vec<(f64, f64)> = (0..rows * 41)
            .map(|i| {
                let (w, x) = (&exact[i / 41 * k..][..k], &x[i % 41 * k..][..k]);
                let pairs = w.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b));
                let runs = w.chunks(RUN).zip(x.chunks(RUN));
                let rounded = runs.map(|(w, x)| half_step(x) * w.iter().map(|w| w.abs()).sum::<f32>());
                let rounded: f32 = if info.codes.is_some() { rounded.sum() } else { 0.0 };
                (pairs.clone().sum(), f64::from(rounded) * 1.01 + 1e-6 * pairs.map(f64::abs).sum::<f64>())
            })
            .collect();
        for isa in Isa::all() {
            let all = multiply(isa, info.ty, &bytes, rows, &x, k);
            for (i, (found, (exact, bound))) in all.iter().zip(&bounds).enumerate() {
                let error = (f64::from(*found) - exact).abs();
                assert!(error <= *bound, "{}, {}, value {i}: off by {error:e}", info.name, isa.name());
            }
            if let Some(packed) = packed(isa, info.ty, &bytes, rows, &x, k) {
                assert_eq!(packed.len(), all.len());
                for (i, (found, of_blocks)) in packed.iter().zip(&all).enumerate() {
                    let what = (info.name, isa.name(), i);
                    assert_eq!(found.to_bits(), of_blocks.to_bits(), "{what:?}: the same from tiles");
                }
                n_packed += 1;
            }
            for n in [1, 2, 3, 4, 5, 9, 16, 17, 20] {
                let some = multiply(isa, info.ty, &bytes, rows, &x[..n * k], k);
                for (i, found) in some.iter().enumerate() {
                    let alone = all[i / n * 41 + i % n];
                    let what = (info.name, isa.name(), n, i);
                    assert_eq!(
                        found.to_bits(),
                        alone.to_bits(),
                        "{what:?}: the same for any number of columns"
                    );
                }
            }
        }
    }
    assert_eq!(n_packed, 13 * Isa::all().count(), "formats in tiles");
}

#[test]
fn tiles_of_floats_give_what_rows_give() {
    let (rows, k) = (45, 96);
    let x = noise(13 * k, 5);
    for ty in [GgmlType::F16, GgmlType::BF16] {
        let mut bytes = vec![0; rows * k * 2];
        (ty.info().quantize.expect("it has one"))(&noise(rows * k, 3), None, &mut bytes);
        for isa in Isa::all() {
            let of_rows = multiply(isa, ty, &bytes, rows, &x, k);
            // Where tiles would be slower there are none.
            let Some(of_tiles) = packed(isa, ty, &bytes, rows, &x, k) else {
                assert_eq!(Isa::best(), Isa::Portable);
                continue;
            };
            assert_eq!(of_tiles.len(), of_rows.len());
            for (i, (found, of_rows)) in of_tiles.iter().zip(&of_rows).enumerate() {
                assert_eq!(found.to_bits(), of_rows.to_bits(), "{ty}, {}, value {i}", isa.name());
            }
        }
    }
}

/// Whichever part of the last tile has rows, and however many of them fit in a vector.
#[test]
fn the_last_tile_may_have_any_number_of_rows() {
    let k = 32;
    let mut n_packed = 0;
    for info in TYPES.iter().filter(|info| info.block_len <= k && Packed::tile_lines(info.ty, k).is_some()) {
        let Some(quantize) = info.quantize else { continue };
        for rows in TILE_ROWS + 1..=2 * TILE_ROWS {
            let mut bytes = vec![0; rows * k / info.block_len * info.block_bytes];
            quantize(&noise(rows * k, 11), None, &mut bytes);
            for (isa, n) in Isa::all().flat_map(|isa| [(isa, 1), (isa, 2), (isa, 9)]) {
                let x = noise(n * k, 13);
                let of_rows = multiply(isa, info.ty, &bytes, rows, &x, k);
                let of_tiles = packed(isa, info.ty, &bytes, rows, &x, k).expect("it has tiles");
                let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert_eq!(
                    bits(&of_tiles),
                    bits(&of_rows),
                    "{}, {}, {rows} rows, {n}",
                    info.name,
                    isa.name()
                );
                n_packed += 1;
            }
        }
    }
    assert!(n_packed > 0, "formats in tiles");
}

#[test]
fn tiles_are_as_large_as_blocks() {
    for info in TYPES {
        let Some(n_byte) = Packed::n_byte_of(info.ty, 4096, 160) else { continue };
        let of_blocks = 160 * 4096 / info.block_len * info.block_bytes;
        // Scales of four bits are a byte in a tile, and MXFP4's of a byte four.
        let more = if [GgmlType::Q2_K, GgmlType::MXFP4].contains(&info.ty) { 1.2 } else { 1.06 };
        assert!((n_byte as f64) < more * of_blocks as f64, "{}: {n_byte} for {of_blocks}", info.name);
    }
    assert_eq!(Packed::n_byte_of(GgmlType::Q4_K, 256 + 32, 1), None);
    assert_eq!(Packed::n_byte_of(GgmlType::IQ2_XXS, 256, 1), None);
}

#[test]
fn the_largest_codes_do_not_overflow() {
    let k = 64;
    let mut bytes = vec![0x80; 2 * 34];
    // All scales 1.
    for block in bytes.chunks_exact_mut(34) {
        block[..2].copy_from_slice(&[0, 0x3c]);
    }
    let x = vec![-3.0; k];
    let mut columns = Columns::new(&x, k);
    columns.prepare(Form::Rounded);
    let mut out = [0.0];
    columns.multiply(GgmlType::Q8_0, &bytes, &mut out);
    assert_eq!(out[0], 64.0 * 3.0 * 128.0);
}

#[test]
fn inputs_that_are_not_finite_are_seen() {
    let bytes = vec![1; 2 * 34];
    for odd in [f32::NAN, f32::INFINITY] {
        let mut one = vec![1.0; 64];
        one[40] = odd;
        for x in [one, vec![odd; 64]] {
            let mut columns = Columns::new(&x, 64);
            columns.prepare(Form::Rounded);
            let mut out = [0.0];
            columns.multiply(GgmlType::Q8_0, &bytes, &mut out);
            assert!(out[0].is_nan(), "{}", out[0]);
        }
    }
    let zeros = vec![0.0; 64];
    let mut columns = Columns::new(&zeros, 64);
    columns.prepare(Form::Rounded);
    let mut out = [1.0];
    columns.multiply(GgmlType::Q8_0, &bytes, &mut out);
    assert_eq!(out[0], 0.0);
}

#[test]
fn powers_are_those_of_the_standard_library() {
    let of = |i: i32| i as f32 * 1e-5;
    let all: Vec<i32> = (-8_800_000..=8_872_000).collect();
    for some in all.chunks(1 << 16) {
        let mut found: Vec<f32> = some.iter().map(|i| of(*i)).collect();
        exp_of_scores(&mut found, 0.0);
        for (x, found) in some.iter().map(|i| of(*i)).zip(found) {
            let (found, exact) = (f64::from(found), f64::from(x).exp());
            assert!((found - exact).abs() <= 2.5e-7 * exact + 1.2e-38, "{x}: {found:e}, not {exact:e}");
        }
    }
    let mut odd = [f32::NAN, f32::NEG_INFINITY, 0.0];
    exp_of_scores(&mut odd, 0.0);
    assert!(odd[0].is_nan() && odd[1] < 1.2e-38 && odd[2] == 1.0);
}

#[test]
fn weighted_sums_are_those_of_loops() {
    for (m, n, d) in [(1, 1, 1), (3, 5, 7), (4, 9, 64), (6, 33, 80), (9, 2, 129)] {
        let value = |i: usize| (i * 37 % 101) as f32 / 50.0 - 1.0;
        let stride = n + 3;
        let p: Vec<f32> = (0..m * stride).map(value).collect();
        let v: Vec<f32> = (0..n * d).map(|i| value(i + 11)).collect();
        let mut out = vec![0.5; m * d];
        add_weighted(&mut out, &p, stride, &v, d);
        for (i, found) in out.iter().enumerate() {
            let (r, c) = (i / d, i % d);
            let exact: f64 = (0..n).map(|j| f64::from(p[r * stride + j]) * f64::from(v[j * d + c])).sum();
            assert!((f64::from(*found) - exact - 0.5).abs() < 1e-5, "{m} x {n} x {d}, value {i}");
        }
    }
}

#[test]
fn gates_are_those_of_the_formula() {
    let gate: Vec<f32> = (-700..700).map(|i| i as f32 * 0.25).collect();
    let up: Vec<f32> = gate.iter().map(|g| 3.0 - g).collect();
    let mut out = vec![f32::NAN; gate.len()];
    swiglu(&gate, &up, &mut out);
    for ((g, u), found) in gate.iter().zip(&up).zip(out) {
        let (g, u) = (f64::from(*g), f64::from(*u));
        let exact = g / (1.0 + (-g).exp()) * u;
        assert!((f64::from(found) - exact).abs() <= 1e-6 * exact.abs() + 1e-30, "{g}: {found}, not {exact}");
    }
    let scores: Vec<f32> = (0..100).map(|i| (i * 7 % 31) as f32 - 40.0).collect();
    let mut found = scores.clone();
    let sum = exp_of_scores(&mut found, 3.0);
    let exact: Vec<f64> = scores.iter().map(|s| (f64::from(*s) - 3.0).exp()).collect();
    assert!(found.iter().zip(&exact).all(|(f, e)| (f64::from(*f) - e).abs() <= 1e-6 * e));
    assert!((f64::from(sum) / exact.iter().sum::<f64>() - 1.0).abs() < 1e-6);
}
