//! Every kernel renders and passes naga. Those for browsers are compiled by one: crates/web/npm/test/kernels.test.js.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use chaski_kernels::{CoopShape, Kernel, check};

#[test]
fn every_kernel_is_valid_and_in_the_index() {
    let names = Kernel::names();
    // By default one in eight of those with cooperative matrices that no device here has; they are like the others.
    let chosen: Vec<&str> = names
        .iter()
        .enumerate()
        .filter(|(i, n)| is_full() || !is_of_others(n) || i % 8 == 0)
        .map(|n| *n.1)
        .collect();
    let index = check::check_these(&chosen).unwrap_or_else(|e| panic!("{e}"));
    let lines = index.values().flat_map(|lines| lines.lines());
    let mut sorted: Vec<&str> = lines.filter_map(|line| line.split(" | ").next()).collect();
    sorted.sort_unstable();
    assert_eq!(sorted, chosen);
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("rendered/index");
    let read = |op: &str| fs::read_to_string(dir.join(format!("{op}.txt"))).unwrap_or_default();
    let mut listed = Vec::new();
    let changed: Vec<String> = index
        .iter()
        .filter_map(|(op, lines)| {
            let found = read(op);
            listed.extend(found.lines().filter_map(|l| Some(l.split(" | ").next()?.to_owned())));
            let known: HashSet<&str> = found.lines().collect();
            let new = lines.lines().find(|line| !known.contains(line));
            new.map(|line| format!("{op}: {line}"))
        })
        .collect();
    let stale = "run `cargo xtask gen-kernels`, the index is stale";
    assert!(changed.is_empty(), "{stale}:\n{}", changed.join("\n"));
    listed.sort_unstable();
    assert!(listed == names, "{stale}: it lists other kernels");
    let n_file = fs::read_dir(&dir).expect("the index").count();
    assert_eq!(n_file, index.len(), "files of operations that are gone");
}

fn is_full() -> bool {
    std::env::var_os("CHASKI_TEST_FULL").is_some_and(|v| v != "0")
}

/// True for kernels whose cooperative matrices are not of the first shape: their names end with it.
fn is_of_others(name: &str) -> bool {
    let mut rest = CoopShape::ALL[1..].iter();
    name.contains("_coop.") && rest.any(|s| name.ends_with(&format!(".{}.{}", s.side, s.lanes)))
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
