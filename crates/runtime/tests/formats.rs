//! Every weight format on a device, value by value: what ggml makes of its own blocks, and any bytes at all.
#![allow(clippy::print_stdout, reason = "a test reports what it covered")]

use std::path::PathBuf;

use chaski_kernels::ops::get_rows::{GetRows, reference};
use chaski_kernels::{Case, CaseBuffer, Expected, FORMATS, Format, Matrix};
use chaski_runtime::gpu::{Gpu, GpuOptions, run_case};

/// Values a row.
const K: usize = 512;

/// All rows of a table, dequantised, must be `values` bit by bit.
fn case(label: String, f: &'static Format, blocks: &[u8], values: Vec<f32>) -> Case {
    let n_row = values.len() / K;
    let table = Matrix { format: f, n_row: n_row as u32, n_col: K as u32 };
    let ids: Vec<u32> = (0..n_row as u32).collect();
    let call = GetRows { table, row0: 0, ids: 0, id_stride: 1, ldy: K as u32, n_col: n_row as u32 };
    let before = vec![7.0f32; values.len()];
    Case::new(
        label,
        move |caps| call.dispatch(caps),
        vec![
            CaseBuffer::input("w", &table.layout().pack_all(f, K as u32, blocks)),
            CaseBuffer::input("ids", &ids),
            CaseBuffer::output("y", &before, Expected::F32 { values, max_nmse: 0.0 }),
        ],
    )
}

/// The blocks and values of `fixtures/quants`, which ggml made: quantised rows, then random blocks.
fn golden(f: &'static Format) -> Case {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quants");
    let read = |ext: &str| {
        let path = folder.join(format!("{}.{ext}", f.name));
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let values: Vec<f32> =
        read("f32").chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(values.len(), 8192, "{}: values of the fixture", f.name);
    case(format!("{}, blocks of ggml", f.name), f, &read("blocks"), values)
}

/// Rows of random bytes: scales that are infinite, NaN and subnormal among them.
fn any_bytes(f: &'static Format) -> Case {
    let n_row = 64;
    let row_bytes = K / f.ty.block_len() * f.ty.block_bytes();
    let mut s = 0x9E37_79B9_7F4A_7C15u64;
    let blocks: Vec<u8> = (0..n_row * row_bytes)
        .map(|_| {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            (s >> 32) as u8
        })
        .collect();
    let values = (0..n_row).flat_map(|r| reference::row(f.ty, &blocks, K, r)).collect();
    case(format!("{}, any bytes", f.name), f, &blocks, values)
}

#[test]
fn every_format_is_read_to_the_last_bit() {
    let mut failures = Vec::new();
    for checked in [false, true] {
        let options = GpuOptions { checked, ..GpuOptions::default() };
        let gpu = pollster::block_on(Gpu::open(&options)).expect("a GPU or a software Vulkan driver");
        for f in FORMATS {
            // There are no blocks of ggml for plain f32.
            let golden = (f.name != "f32").then(|| golden(f));
            for case in golden.into_iter().chain([any_bytes(f)]) {
                let report = pollster::block_on(run_case(&gpu, &case)).expect("the case runs");
                failures.extend(report.failure.map(|what| format!("{}: {what}", case.label)));
            }
        }
        println!("{}, checks {checked}: {} formats", gpu.summary().name, FORMATS.len());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
