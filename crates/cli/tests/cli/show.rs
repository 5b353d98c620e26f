//! `chaski show` and `tokenize`: what a file holds, and how it spells texts.

use std::path::Path;

use crate::{fixture, json, out, piped, run};

#[test]
fn tokenize_prints_ids_pieces_and_json() {
    let ids = out(&run(&["tokenize", "-p", "Once upon a time"]));
    let ids: Vec<u32> = ids.split_whitespace().map(|w| w.parse().unwrap()).collect();
    let as_json = json(&run(&["tokenize", "--json", "-p", "Once upon a time"]));
    assert_eq!(as_json, serde_json::to_value(&ids).unwrap());
    let same = piped(&["tokenize", "-m", fixture().to_str().unwrap(), "--json"], "Once upon a time");
    assert_eq!(json(&same), as_json);
    let pieces = json(&run(&["tokenize", "--json", "--pieces", "--no-bos", "-p", "Once upon a time"]));
    let text: String = pieces.as_array().unwrap().iter().map(|p| p["piece"].as_str().unwrap()).collect();
    assert_eq!(text, "Once upon a time");
    let n = |args: &[&str]| json(&run(args)).as_array().unwrap().len();
    assert_eq!(n(&["tokenize", "--json", "--no-bos", "-p", "<|end|>"]), 1);
    assert!(n(&["tokenize", "--json", "--no-bos", "--no-special", "-p", "<|end|>"]) > 1);
}

#[test]
fn show_tells_what_is_in_the_file() {
    let shown = json(&run(&["show", fixture().to_str().unwrap(), "--json", "--tensors", "-c", "512"]));
    assert_eq!(shown["architecture"], "llama");
    assert_eq!(shown["metadata"]["general.architecture"], "llama");
    assert_eq!(shown["metadata"]["tokenizer.ggml.tokens"]["length"], 2048);
    assert_eq!(shown["memory"]["n_ctx"], 512);
    let sum: u64 = shown["formats"].as_array().unwrap().iter().map(|f| f["bytes"].as_u64().unwrap()).sum();
    assert_eq!(shown["bytes"].as_u64(), Some(sum));
    let tensors: u64 =
        shown["tensors"].as_array().unwrap().iter().map(|t| t["bytes"].as_u64().unwrap()).sum();
    assert_eq!(tensors, sum);
    assert!(shown["memory"]["need"]["total"].as_u64().unwrap() > sum);
    let text = out(&run(&["show"]));
    assert!(text.contains("Metadata") && text.contains("q4_K") && text.contains("Memory"), "{text}");
    assert!(text.lines().all(|l| l.len() < 400), "{text}");
    assert!(out(&run(&["show", "--template"])).contains("<|assistant|>"));
}

#[test]
fn show_names_tensors_that_nothing_reads() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["blk.0.a.weight", "blk.0.b.weight", "blk.1.attn_q_norm.weight", "c", "d"];
    let model = crate::templates::rewritten(folder.path(), &[], &more);
    assert_eq!(json(&run(&["show", &model, "--json"]))["unread"], serde_json::to_value(more).unwrap());
    let text = out(&run(&["show", &model]));
    assert!(text.contains("Unused (5 tensors, 80 B)\n  blk.0.a.weight\n"), "{text}");
    assert!(text.contains("\n  c\n  ... 5 in total\n") && !text.contains("\n  d\n"), "{text}");
    assert!(out(&run(&["show", &model, "--full"])).contains("\n  d\n"));
    assert!(!out(&run(&["show"])).contains("Unused"));
}

/// A file of a model that cannot be run, with one tensor.
fn foreign(folder: &Path, name: &str, architecture: &str, n_layer: u32) -> String {
    let mut head = ggml_format::GgufWriter::new();
    head.set("general.architecture", architecture).unwrap();
    head.set(&format!("{architecture}.block_count"), n_layer).unwrap();
    head.tensor("blk.0.odd.weight", &[4, 2], ggml_format::GgmlType::F32).unwrap();
    let mut data = head.begin(Vec::new()).unwrap();
    data.write("blk.0.odd.weight", &[0; 32]).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, data.finish().unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn show_tells_of_any_gguf_file_and_why_it_cannot_run() {
    let folder = tempfile::tempdir().unwrap();
    for (name, architecture, n_layer, why) in [
        ("a.gguf", "frobnicator", 2, "`frobnicator` is not supported"),
        ("b.gguf", "llama", u32::MAX, "must be at most 4096"),
    ] {
        let path = foreign(folder.path(), name, architecture, n_layer);
        let shown = json(&run(&["show", &path, "--json", "--tensors"]));
        assert_eq!((&shown["architecture"], &shown["bytes"]), (&architecture.into(), &32.into()));
        assert_eq!(shown["tensors"][0]["shape"], serde_json::json!([2, 4]));
        assert!(shown["error"].as_str().unwrap().contains(why), "{shown}");
        let text = out(&run(&["show", &path, "--tensors"]));
        for part in [why, "general.architecture", "blk.0.odd.weight", "f32"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn show_shortens_names_that_no_one_would_read() {
    let folder = tempfile::tempdir().unwrap();
    let long = foreign(folder.path(), "long.gguf", &"a".repeat(60_000), 1);
    let text = out(&run(&["show", &long, "--tensors"]));
    assert!(text.contains("aaa ... (") && text.len() < 5000, "{} bytes", text.len());
}

#[test]
fn names_in_a_file_stay_in_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut head = ggml_format::GgufWriter::new();
    head.set("general.architecture", "odd").unwrap().set("key\n\u{1b}[31m", 1u32).unwrap();
    head.tensor("tensor\n\u{1b}[2J", &[1], ggml_format::GgmlType::F32).unwrap();
    let mut data = head.begin(Vec::new()).unwrap();
    data.write("tensor\n\u{1b}[2J", &[0; 4]).unwrap();
    let path = folder.path().join("odd.gguf");
    std::fs::write(&path, data.finish().unwrap()).unwrap();
    let path = path.to_str().unwrap();
    let small = folder.path().join("small.gguf");
    for args in
        [&["show", path, "--tensors"][..], &["quantize", path, small.to_str().unwrap(), "q8_0", "--dry-run"]]
    {
        let text = out(&run(args));
        assert!(text.contains("tensor\\n\\u{1b}[2J") && !text.contains('\u{1b}'), "{text}");
    }
    assert!(out(&run(&["show", path])).contains("key\\n\\u{1b}[31m"));
}
