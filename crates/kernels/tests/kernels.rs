//! Every kernel renders and passes naga. Those for browsers are compiled by one: crates/web/npm/test/kernels.test.js.

use std::fs;
use std::path::Path;

use chaski_kernels::{Kernel, check};

#[test]
fn every_kernel_is_valid_and_in_the_index() {
    let index = check::check_all().unwrap_or_else(|e| panic!("{e}"));
    let lines = index.values().flat_map(|lines| lines.lines());
    let named: Vec<&str> = lines.filter_map(|line| line.split(" | ").next()).collect();
    let mut sorted = named.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, Kernel::names());
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("rendered/index");
    let changed: Vec<String> = index
        .iter()
        .filter_map(|(op, lines)| {
            let found = fs::read_to_string(dir.join(format!("{op}.txt"))).unwrap_or_default();
            let new = lines.lines().find(|line| !found.lines().any(|l| l == *line));
            (found != *lines).then(|| format!("{op}: {}", new.unwrap_or("a kernel is gone")))
        })
        .collect();
    assert!(changed.is_empty(), "run `cargo xtask gen-kernels`, the index is stale:\n{}", changed.join("\n"));
    let n_file = fs::read_dir(&dir).expect("the index").count();
    assert_eq!(n_file, index.len(), "files of operations that are gone");
}

#[test]
fn samples_are_rendered_as_they_are_now() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("rendered");
    let mut n_sample = 0;
    for entry in fs::read_dir(&dir).expect("the samples") {
        let path = entry.expect("a sample").path();
        if path.is_dir() {
            continue;
        }
        let file = path.file_name().expect("a file").to_string_lossy().into_owned();
        let name = file.strip_suffix(".wgsl").unwrap_or_else(|| panic!("{file} is no sample"));
        let kernel = Kernel::find(name).unwrap_or_else(|| panic!("{file}: no such kernel"));
        let found = fs::read_to_string(&path).expect("a text");
        assert!(found == kernel.source, "{file} is stale: run `cargo xtask gen-kernels`");
        n_sample += 1;
    }
    assert!(n_sample > 0, "no samples");
}
