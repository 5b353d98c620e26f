//! Every weight format of the device on the blocks of `fixtures/quants`, half of them random bytes, against the values
//! that ggml makes of them: equal to the last bit.
#![allow(clippy::print_stdout, reason = "a test reports what it covered")]

use std::path::{Path, PathBuf};

use chaski_kernels::ops::get_rows::GetRows;
use chaski_kernels::{Case, CaseBuffer, Expected, FORMATS, FeatureSet, Format, Matrix};
use chaski_runtime::gpu::{Gpu, GpuOptions, run_case};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quants").join(name)
}

fn read(name: &str) -> Vec<u8> {
    let path = fixture(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All values of a format's fixture, as rows of 512.
fn case(f: &'static Format) -> Case {
    let blocks = read(&format!("{}.blocks", f.name));
    let values: Vec<f32> = bytemuck::pod_collect_to_vec(&read(&format!("{}.f32", f.name)));
    let n_col = 512u32;
    assert_eq!(values.len(), 8192, "{}", f.name);
    let n_row = values.len() as u32 / n_col;
    let table = Matrix { format: f, n_row, n_col };
    let layout = table.layout();
    let packed = layout.pack_all(f, n_col, &blocks);
    assert_eq!(layout.unpack(f, n_row, n_col, &packed), blocks, "{}", f.name);
    let ids: Vec<u32> = (0..n_row).collect();
    Case::new(
        f.name,
        move |caps| GetRows { table, row0: 0, ids: 0, id_stride: 1, ldy: n_col, n_col: n_row }.dispatch(caps),
        vec![
            CaseBuffer::input("w", &packed),
            CaseBuffer::input("ids", &ids),
            CaseBuffer::output("y", &vec![7.0f32; values.len()], Expected::F32 { values, max_nmse: 0.0 }),
        ],
    )
}

#[test]
fn rows_equal_ggmls_values_to_the_last_bit() {
    let mut failures = Vec::new();
    for checked in [false, true] {
        let options = GpuOptions { set: Some(FeatureSet::Base), checked, ..GpuOptions::default() };
        let gpu = pollster::block_on(Gpu::open(&options)).expect("a GPU or a software Vulkan driver");
        // Plain f32 has no fixture: there is nothing to make of it.
        for f in FORMATS.iter().filter(|f| f.name != "f32") {
            let report = pollster::block_on(run_case(&gpu, &case(f))).unwrap_or_else(|e| panic!("{e:?}"));
            failures.extend(report.failure.map(|what| format!("{}: {what}", f.name)));
        }
    }
    println!("{} formats", FORMATS.len() - 1);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
