//! `chaski quantize` and `chaski imatrix` from outside: memory, other readers, and how the two work together.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ggml_format::{GgmlType, GgufWriter, Imatrix, TYPES};

fn chaski(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaski"));
    command.env_remove("RUST_LOG").args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) {
    let output = chaski(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// A model of zeros, in a file that takes no room: `n_tensor` matrices of 16 MiB.
#[cfg(target_os = "linux")]
fn sparse_model(dir: &Path, n_tensor: u64) -> String {
    let path = path(dir, &format!("{n_tensor}.gguf"));
    let mut head = GgufWriter::new();
    head.set("general.architecture", "llama").unwrap();
    for i in 0..n_tensor {
        head.tensor(&format!("blk.{i}.attn_q.weight"), &[4096, 1024], GgmlType::F32).unwrap();
    }
    let file = File::create(&path).unwrap();
    drop(head.begin(&file).unwrap());
    let n_byte_head = file.metadata().unwrap().len();
    file.set_len(n_byte_head + n_tensor * (16 << 20)).unwrap();
    path
}

/// The most bytes that the command had in memory at once.
#[cfg(target_os = "linux")]
fn peak_of(args: &[&str]) -> u64 {
    let mut child = chaski(args).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        // The line is missing once the process has ended.
        let status = fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).map_or(0, |n| n.parse().unwrap());
        peak = peak.max(kib * 1024);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return peak;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let peak = |n_tensor| {
        let input = sparse_model(dir.path(), n_tensor);
        peak_of(&["quantize", &input, &path(dir.path(), "out.gguf"), "q4_0", "--threads", "2"])
    };
    let (small, large) = (peak(4), peak(40));
    assert!(small > 4 << 20, "{small} bytes is less than a program takes");
    // The larger model has 640 MiB, 576 more than the other.
    assert!(large < small + (16 << 20), "{small} bytes for 64 MiB, {large} for 640 MiB");
}

/// Names of the files in a folder.
#[cfg(target_os = "linux")]
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
#[cfg(target_os = "linux")]
fn who_ends_the_program_leaves_an_older_set_and_nothing_half_written() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        ends_cleanly(signal, code);
    }
}

#[cfg(target_os = "linux")]
fn ends_cleanly(signal: &str, code: i32) {
    let dir = tempfile::tempdir().unwrap();
    let input = sparse_model(dir.path(), 40);
    let old = ["out-00001-of-00002.gguf", "out-00002-of-00002.gguf"];
    for name in old {
        fs::write(dir.path().join(name), name).unwrap();
    }
    let output = path(dir.path(), "out.gguf");
    let args = ["quantize", &input, &output, "q6_k", "--threads", "1", "--split-max-tensors", "20"];
    let mut child = chaski(&args).stderr(Stdio::null()).spawn().unwrap();
    // The second file says that the first is complete, and has not its name yet.
    while !names(dir.path()).iter().any(|name| name.starts_with("out-00002") && name.ends_with(".part")) {
        assert!(child.try_wait().unwrap().is_none(), "it ended too soon for this test");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let killed = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
    assert_eq!(names(dir.path()), ["40.gguf", old[0], old[1]]);
    for name in old {
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), name);
    }
}

/// Output of a script with the `gguf` Python package; `None` if the package is not installed.
fn python(script: &str, args: &[&str]) -> Option<Vec<String>> {
    let found = Command::new("python3").args(["-c", "import gguf"]).output().ok()?;
    if !found.status.success() {
        return None;
    }
    let output = Command::new("python3").args(["-c", script]).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

/// The ids of types that the package knows.
fn python_knows() -> Option<Vec<String>> {
    python("import gguf\nfor t in gguf.GGMLQuantizationType: print(int(t))", &[])
}

/// Contents of a file according to the package: one line per tensor.
fn python_reads(path: &str) -> Option<Vec<String>> {
    const SCRIPT: &str = "
import sys
from gguf import GGUFReader
for t in GGUFReader(sys.argv[1]).tensors:
    print(t.name, int(t.tensor_type), '|'.join(str(int(n)) for n in t.shape), int(t.n_bytes))
";
    python(SCRIPT, &[path])
}

/// Past the test harness, which hides what macros of passing tests print.
fn left_out(what: &str) {
    std::io::stderr().write_all(format!("SKIPPED: {what}\n").as_bytes()).unwrap();
}

fn we_read(path: &str) -> Vec<String> {
    let bytes = fs::read(path).unwrap();
    let n_byte = bytes.len() as u64;
    let gguf = ggml_format::Gguf::parse(bytes.into(), n_byte).unwrap();
    let line = |t: &ggml_format::TensorInfo| {
        let ne: Vec<String> = t.ne[..t.n_dims as usize].iter().map(u64::to_string).collect();
        format!("{} {} {} {}", t.name, t.ty.id(), ne.join("|"), t.n_byte)
    };
    gguf.tensors().iter().map(line).collect()
}

/// Importance of a text for the built-in model, in `dir`.
fn measure(dir: &Path, more: &[&str]) -> String {
    let (text, out) = (path(dir, "text.txt"), path(dir, "imatrix.gguf"));
    fs::write(
        &text,
        "Once upon a time there was a little dog. He liked to play with a red ball. ".repeat(12),
    )
    .unwrap();
    let chunks = if more.contains(&"--chunks") { &[][..] } else { &["--chunks", "3"] };
    run(&[&["imatrix", "-f", &text, "-o", &out, "-c", "32"], chunks, more].concat());
    out
}

/// One file with a tensor of each type, a split set, and an importance matrix.
#[test]
fn another_reader_reads_what_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let imatrix = measure(dir.path(), &[]);
    let model = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../chaski/model/storyteller-Q4_K_M.gguf");
    let model = model.to_str().unwrap();
    let bytes = fs::read(model).unwrap();
    let n_byte = bytes.len() as u64;
    let gguf = ggml_format::Gguf::parse(bytes.into(), n_byte).unwrap();
    let matrices: Vec<_> = gguf
        .tensors()
        .iter()
        .filter(|t| t.n_dims == 2 && t.name.starts_with("blk.") && t.ne[0] % 256 == 0)
        .collect();
    // Weights are in all but those that only activations have.
    let types = TYPES.iter().filter(|t| t.quantize.is_some()).map(|t| t.ty);
    let mut types: Vec<_> = types.filter(|ty| ![GgmlType::Q8_1, GgmlType::Q8_K].contains(ty)).collect();
    if let Some(known) = python_knows() {
        let unknown: Vec<_> = types.extract_if(.., |ty| !known.contains(&ty.id().to_string())).collect();
        if !unknown.is_empty() {
            left_out(&format!(
                "reading {unknown:?} with the Python package gguf, which does not know them yet"
            ));
        }
    }
    assert!(matrices.len() >= types.len(), "{} matrices for {} types", matrices.len(), types.len());
    let overrides: Vec<String> =
        types.iter().zip(&matrices).map(|(ty, t)| format!("^{}$={ty}", t.name)).collect();

    let all = path(dir.path(), "all.gguf");
    let mut args = vec!["quantize", model, &all, "q8_0", "--allow-requantize", "--imatrix", &imatrix];
    args.extend(overrides.iter().flat_map(|o| ["--tensor-type", o]));
    run(&args);
    let found = we_read(&all);
    for (ty, t) in types.iter().zip(&matrices) {
        let start = format!("{} {} ", t.name, ty.id());
        assert!(found.iter().any(|line| line.starts_with(&start)), "{start}");
    }
    let set = path(dir.path(), "set.gguf");
    let n_per_file = gguf.tensors().len().div_ceil(3).to_string();
    run(&["quantize", model, &set, "copy", "--split-max-tensors", &n_per_file]);
    let mut files = vec![imatrix, all];
    files.extend((1..=3).map(|i| path(dir.path(), &format!("set-{i:05}-of-00003.gguf"))));
    for file in files {
        match python_reads(&file) {
            Some(found) => assert_eq!(found, we_read(&file), "{file}"),
            None => return left_out("reading files with the Python package gguf, which is not there"),
        }
    }
}

#[test]
fn importance_is_measured_in_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let read = |more: &[&str]| Imatrix::parse(fs::read(measure(dir.path(), more)).unwrap()).unwrap();
    let imatrix = read(&[]);
    assert_eq!((imatrix.n_chunk, imatrix.chunk_len), (3, 32));
    assert!(imatrix.datasets[0].ends_with("text.txt"));
    assert!(imatrix.entries.keys().all(|name| name.starts_with("blk.")));
    assert!(
        imatrix
            .entries
            .values()
            .all(|entry| entry.counts() == [96.0] && entry.sums().iter().any(|&x| x > 0.0))
    );
    // Queries, keys and values have the same inputs.
    let sums = |name: &str| imatrix.entries[name].sums().to_vec();
    assert_eq!(sums("blk.0.attn_q.weight"), sums("blk.0.attn_v.weight"));
    assert_ne!(sums("blk.0.attn_q.weight"), sums("blk.0.ffn_up.weight"));
    let with_output = read(&["--process-output"]);
    assert_eq!(with_output.entries.len(), imatrix.entries.len() + 1);
    let later = read(&["--chunk", "2", "--chunks", "1"]);
    assert_eq!(later.n_chunk, 1);
    assert_ne!(later.entries["blk.0.attn_q.weight"].sums(), imatrix.entries["blk.0.attn_q.weight"].sums());

    let text = path(dir.path(), "short.txt");
    fs::write(&text, "Too short.").unwrap();
    let output = chaski(&["imatrix", "-f", &text, "-o", &path(dir.path(), "none.gguf")]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("but measuring importance needs at least 512"), "{error}");
    assert!(!dir.path().join("none.gguf").exists());
}
