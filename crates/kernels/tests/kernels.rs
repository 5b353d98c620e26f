//! Every kernel renders and passes naga, and those for browsers parse by the WGSL grammar.

use std::num::NonZero;
use std::path::Path;
use std::{fs, thread};

use chaski_kernels::{Dialect, Kernel, check};

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

/// Parses by the grammar of the language's specification, as browsers do. naga's parser accepts more: `a / b << c`, for
/// one, where the grammar requires parentheses.
fn parse(text: &str) -> Result<(), String> {
    wgsl_parse::parse_str(text).map(drop).map_err(|e| {
        let start = text[..e.span.start].rfind('\n').map_or(0, |i| i + 1);
        format!("{e}\n{}", text[start..].lines().next().unwrap_or_default().trim())
    })
}

#[test]
fn mixed_operators_want_parentheses() {
    for wrong in ["a / b << c", "a + b >> c", "a % b & c", "a & b == c", "a & b | c", "a && b || c"] {
        let report = parse(&format!("fn f() {{\n    let e = {wrong};\n}}")).expect_err(wrong);
        assert!(report.ends_with(&format!("\nlet e = {wrong};")), "{report}");
    }
    for right in ["(a / b) << c", "a + (b >> c)", "(a & b) == c", "a + b < c && d"] {
        parse(&format!("fn f() {{ let e = {right}; }}")).expect(right);
    }
}

#[test]
fn browsers_can_parse_what_they_can_have() {
    let kernels = Kernel::names().into_iter().map(|name| Kernel::find(name).expect("a name of the list"));
    // By default one in forty, since the parser takes longer than all else here; a browser compiles one in six.
    let full = std::env::var_os("CHASKI_TEST_FULL").is_some_and(|v| v != "0");
    let kernels: Vec<&Kernel> =
        kernels.filter(|k| k.is_for_web()).step_by(if full { 1 } else { 40 }).collect();
    assert!(kernels.len() > if full { 4000 } else { 100 }, "{} kernels of browsers", kernels.len());
    let n_thread = thread::available_parallelism().map_or(1, NonZero::get);
    let wrong: Vec<String> = thread::scope(|s| {
        let work = |i: usize| {
            let some = kernels.iter().skip(i).step_by(n_thread);
            let wrong = |k: &&Kernel| {
                let report = parse(&k.text(Dialect::Web)).err()?;
                Some(format!("{}: {report}", k.name))
            };
            s.spawn(move || some.filter_map(wrong).collect::<Vec<_>>())
        };
        let threads: Vec<_> = (0..n_thread).map(work).collect();
        threads.into_iter().flat_map(|t| t.join().expect("parsing a kernel does not panic")).collect()
    });
    assert!(wrong.is_empty(), "{} of {} kernels:\n{}", wrong.len(), kernels.len(), wrong.join("\n"));
}
