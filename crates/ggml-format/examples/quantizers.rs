//! Speed and error of every quantiser: `quantizers [TYPE...]`; build with `--release`.
//!
//! The values are normally distributed noise; the importance lies between 0.5 and 2.

#![allow(clippy::print_stdout, reason = "a command prints")]

use std::time::Instant;

use ggml_format::{TYPES, TypeInfo};

const N_PER_ROW: usize = 4096;
const N_ROW: usize = 64;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let x = noise(N_PER_ROW * N_ROW);
    let importance: Vec<f32> = noise(N_PER_ROW).iter().map(|x| x.clamp(-1.0, 1.0).exp2()).collect();
    println!("{:8} {:>10} {:>14} {:>14}", "type", "Mvalues/s", "relative rmse", "with importance");
    for info in TYPES {
        let is_wanted = wanted.is_empty() || wanted.iter().any(|name| info.name.eq_ignore_ascii_case(name));
        if !is_wanted || info.quantize.is_none() {
            continue;
        }
        // The first call builds the codebook tables.
        rmse(info, &x[..N_PER_ROW], None);
        let start = Instant::now();
        let plain = rmse(info, &x, None);
        let speed = x.len() as f64 / start.elapsed().as_secs_f64() / 1e6;
        let weighted = rmse(info, &x, Some(&importance));
        println!("{:8} {speed:10.2} {plain:14.6} {weighted:14.6}", info.name);
    }
}

/// Error of the quantised values, relative to the values, weighted if importance is given.
fn rmse(info: &TypeInfo, x: &[f32], importance: Option<&[f32]>) -> f64 {
    let (quantize, dequantize) = info.quantize.zip(info.dequantize).expect("a type that is quantised");
    let mut row = vec![0; N_PER_ROW / info.block_len * info.block_bytes];
    let mut y = vec![0.0; N_PER_ROW];
    let (mut error, mut norm) = (0.0, 0.0);
    for x in x.chunks_exact(N_PER_ROW) {
        quantize(x, importance, &mut row);
        dequantize(&row, &mut y);
        for (j, (&x, &y)) in x.iter().zip(&y).enumerate() {
            let w = importance.map_or(1.0, |w| f64::from(w[j]));
            error += w * (f64::from(x) - f64::from(y)).powi(2);
            norm += w * f64::from(x).powi(2);
        }
    }
    (error / norm).sqrt()
}

/// Approximately normally distributed numbers, always the same.
fn noise(n: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..n).map(|_| (0..12).map(|_| uniform()).sum::<f32>() - 6.0).collect()
}
