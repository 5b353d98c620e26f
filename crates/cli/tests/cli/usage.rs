//! Rejected arguments and exit codes.

use std::process::Stdio;

use crate::{GOLDEN, GREEDY, chaski, err, fixture, out, run};

#[test]
fn wrong_usage_exits_with_2() {
    for args in [
        &["run", "--no-such-option"][..],
        &["run", "-p", "a", "-f", "b"],
        &["run", "--temp", "warm", "-p", "a"],
        &["run", "-m", "a.gguf", "b.gguf", "c"],
        &["bench", "-p", "5-2"],
        &["bench", "-p", "0", "-n", "0"],
        &["bench", "-npl", "0"],
        &["bench", "-npl", "2", "-d", "4"],
        &["bench", "-ctk", "f16", "-ctv", "auto"],
        &["bench", "-ctk", "q7_0"],
        &["bench", "--expert-slots", "4"],
        &["run", "a", "--expert-slots", "4"],
        &["run", "--kv", "q8_0/i32", "a"],
        &["run", "a", "--regex", "a", "--grammar", "root ::= \"a\""],
        &["run", "a", "-l", "7"],
        &["run", "no/such.gguf", "a", "--repeat-penalty", "0"],
        &["tokenize", "no/such.gguf", "a", "-p", "b"],
        &["run"],
        &["logits"],
        &["logits", "--tokens", "x", "--text"],
        &["run", "no/such.gguf", "hi", "--logprobs", "1"],
        &["perplexity", "-f", "no/such.txt", "--chunks", "0"],
        &["imatrix", "-f", "no/such.txt", "--chunks", "0"],
        &["devices", "--json"],
        &["frobnicate"],
    ] {
        let o = run(args);
        assert_eq!(o.status.code(), Some(2), "{args:?}: {}", err(&o));
        assert!(o.stdout.is_empty() && !o.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_file_that_is_missing_or_no_model_exits_with_3() {
    let o = run(&["run", "no/such.gguf", "hi", "--device", "cpu"]);
    assert_eq!(o.status.code(), Some(3), "{}", err(&o));
    assert!(err(&o).contains("no/such.gguf") && err(&o).contains("help:"), "{}", err(&o));
    for args in [
        &["run", "-f", "no/such.txt", "--device", "cpu"][..],
        &["quantize", "no/such.gguf", "out.gguf", "q8_0"],
        &["imatrix", "-f", "no/such.txt"],
        &["tokenize", "-f", "no/such.txt"],
    ] {
        let o = run(args);
        assert_eq!(o.status.code(), Some(3), "{args:?}: {}", err(&o));
        assert!(err(&o).contains("no/such.") && !err(&o).contains("UTF-8"), "{args:?}: {}", err(&o));
    }
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for args in [&["show", manifest][..], &["run", manifest, "hi", "--device", "cpu"]] {
        let o = run(args);
        assert_eq!(o.status.code(), Some(3), "{args:?}: {}", err(&o));
        assert!(!err(&o).contains("panicked"), "{}", err(&o));
    }
}

#[test]
fn help_and_version_exit_with_0() {
    let version = out(&run(&["--version"]));
    assert!(version.starts_with("chaski ") && version.contains("wgpu 30"), "{version}");
    assert!(out(&run(&["--help"])).contains("Exit codes"));
    for command in [
        "run",
        "show",
        "devices",
        "doctor",
        "bench",
        "tokenize",
        "perplexity",
        "logits",
        "completions",
        "synth",
        "quantize",
        "imatrix",
    ] {
        assert!(out(&run(&[command, "--help"])).contains("Usage"), "{command}");
    }
}

#[test]
fn what_is_read_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (model, text) = (path("model.gguf"), path("text.txt"));
    std::fs::copy(fixture(), &model).unwrap();
    std::fs::write(&text, "1 2 3").unwrap();
    for args in [
        &["imatrix", "-m", &model, "-f", &text, "-o", &model][..],
        &["imatrix", "-m", &model, "-f", &text, "-o", &text],
        &["synth", "--preset", "tiny", "--mix", "q4_0", "--vocab", &model, "--out", &model],
        &["logits", &model, "--tokens", "1", "-o", &model],
        &["logits", &model, "--tokens-file", &text, "-o", &text],
        &["bench", &model, "--trace", &model],
    ] {
        let o = run(args);
        assert_eq!(o.status.code(), Some(1), "{args:?}: {}", err(&o));
        assert!(err(&o).contains("the output must not be an input file"), "{args:?}: {}", err(&o));
    }
    assert!(std::fs::read(&model).unwrap() == std::fs::read(fixture()).unwrap());
    assert_eq!(std::fs::read(&text).unwrap(), b"1 2 3");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn quiet_commands_say_nothing_when_they_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (model, other) = (path("a.gguf"), path("b.gguf"));
    for args in [
        &["synth", "-q", "--preset", "tiny", "--mix", "f16", "--out", &model][..],
        &["quantize", "-q", &model, &other, "q8_0"],
    ] {
        let o = run(args);
        assert_eq!((out(&o), err(&o)), (String::new(), String::new()), "{args:?}");
    }
    let loud = run(&["quantize", &model, &other, "q8_0"]);
    assert!(err(&loud).contains("b.gguf: Q8_0, "), "{}", err(&loud));
}

#[test]
fn options_of_llama_cpp_are_taken_or_change_nothing() {
    let rest = ["-ub", "64", "-ctk", "q8_0", "-mg", "0", "-sm", "none", "-v", "-p", "Once upon a time"];
    let o = chaski(&GREEDY[..7]).args(rest).output().unwrap();
    assert!(out(&o).starts_with(GOLDEN), "{}", out(&o));
    for part in ["`-mg` has no effect", "`-sm` has no effect", "KV cache q8_0"] {
        assert!(err(&o).contains(part), "{part}: {}", err(&o));
    }
}

#[test]
fn completions_and_manual() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(out(&run(&["completions", shell])).contains("chaski"), "{shell}");
    }
    assert!(out(&run(&["man"])).contains(".TH chaski"));
}

#[cfg(unix)]
#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child =
        chaski(&["completions", "zsh"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let o = child.wait_with_output().unwrap();
    assert!(o.status.success(), "{}", err(&o));
    assert_eq!(err(&o), "");
}

#[test]
fn what_is_wrong_is_said_before_the_model_is_loaded() {
    for (option, value, says) in [
        ("--tools", "no/such.json", "no/such.json"),
        ("--json-schema", "{", "the schema of --json-schema is not valid JSON"),
        ("--grammar-file", "no/such.gbnf", "no/such.gbnf"),
    ] {
        let o = run(&["run", "no/such.gguf", "-p", "a", option, value]);
        assert!(!o.status.success() && err(&o).contains(says), "{option}: {}", err(&o));
        assert!(!err(&o).contains("no/such.gguf"), "{option}: {}", err(&o));
    }
}
