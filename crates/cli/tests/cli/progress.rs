//! `--progress`: lines of every command that takes a while.

use serde_json::Value;

use crate::gpu::has_gpu;
use crate::{chaski, err, fixture, full_run};

/// Phases in the order in which they begin, after checks of each line.
fn phases(args: &[&str]) -> Vec<String> {
    let o = chaski(args).args(["-q", "--progress", "json"]).output().unwrap();
    assert!(o.status.success(), "{args:?}: {}", err(&o));
    let mut phases: Vec<String> = Vec::new();
    let mut last = Value::Null;
    for line in err(&o).lines() {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{args:?}: {e}: {line}"));
        let word = |name: &str| object[name].as_str().unwrap().to_owned();
        let (phase, done) = (word("phase"), object["done"].as_u64().unwrap());
        assert!(!word("unit").is_empty() && object["seconds"].as_f64().unwrap() >= 0.0, "{line}");
        match object["total"].as_u64() {
            Some(total) => assert!(done <= total && total > 0, "{line}"),
            None => assert!(object["total"].is_null(), "{line}"),
        }
        if !phases.contains(&phase) {
            phases.push(phase);
        }
        last = object;
    }
    // The last phase is complete.
    assert_eq!(last["done"], last["total"], "{args:?}: {last}");
    phases
}

#[test]
fn every_long_command_writes_lines_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (text, small, matrix, made) = (path("text"), path("q.gguf"), path("m.gguf"), path("s.gguf"));
    std::fs::write(&text, "Once upon a time, there lived a small, playful boy named Nico. ".repeat(4))
        .unwrap();
    let model = fixture();
    let model = model.to_str().unwrap();
    for (args, expected) in [
        (
            &["run", "--device", "cpu", "-n", "1", "--raw", "-p", "Once upon a time"][..],
            &["load", "prompt"][..],
        ),
        (&["run", "--device", "cpu", "-n", "1", "--json", "--chat", "-p", "Hi"], &["load", "prompt"]),
        (&["bench", "--device", "cpu", "-p", "4", "-n", "2", "-d", "3", "-r", "1"], &["load", "bench"]),
        (&["bench", "--device", "cpu", "-npp", "2", "-ntg", "1", "-npl", "1,2"], &["load", "bench"]),
        (
            &["perplexity", "--device", "cpu", "-c", "16", "--chunks", "2", "-f", &text],
            &["load", "perplexity"],
        ),
        (&["imatrix", "-c", "16", "--chunks", "2", "-f", &text, "-o", &matrix], &["load", "imatrix"]),
        (&["quantize", "--allow-requantize", model, &small, "q8_0"], &["quantize"]),
        (&["synth", "--preset", "tiny", "--mix", "q4_0", "--layers", "1", "--out", &made], &["synth"]),
        (&["logits", "--device", "cpu", "--tokens", "1 2 3", "--text"], &["load", "logits"]),
        (&["embed", "--device", "cpu", "--pooling", "mean", "-p", "a dog"], &["load", "embed"]),
    ] {
        assert_eq!(phases(args), expected, "{args:?}");
    }
}

#[test]
fn tuning_writes_lines_of_its_budget() {
    // A software driver compiles the candidates for minutes.
    if full_run() && has_gpu() {
        let found = phases(&["tune", "--device", "gpu", "--dry-run", "--fresh", "--budget", "1", "-c", "64"]);
        assert!(found.contains(&"load".to_owned()) && found.last().unwrap() == "tune", "{found:?}");
    }
}

#[test]
fn progress_is_silent_without_a_terminal_unless_asked_for() {
    let bench = ["bench", "--device", "cpu", "-p", "4", "-n", "0", "-r", "2", "-o", "none", "-q"];
    let said = |more: &[&str]| err(&chaski(&bench).args(more).output().unwrap());
    assert_eq!((said(&[]), said(&["--progress=none"])), (String::new(), String::new()));
    // As llama-bench has it: a line for each run.
    let lines = said(&["--progress"]);
    assert!(lines.contains("bench: ") && lines.contains("pp4, run 2/2\n"), "{lines}");
}
