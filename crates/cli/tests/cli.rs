//! The command from outside: what it prints, what it refuses, and its exit codes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The default model's greedy continuation of "Once upon a time" begins so , as llama.cpp has it.
const GOLDEN: &str = ", there lived a small,";

fn chaski(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaski"));
    // Neither the user's settings nor their cache shall matter.
    for name in ["RUST_LOG", "NO_COLOR", "CLICOLOR_FORCE", "CHASKI_DEVICE"] {
        command.env_remove(name);
    }
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    chaski(args).output().unwrap()
}

fn piped(args: &[&str], input: &str) -> Output {
    let mut child =
        chaski(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn out(o: &Output) -> String {
    assert!(o.status.success(), "{}: {}", o.status, String::from_utf8_lossy(&o.stderr));
    String::from_utf8(o.stdout.clone()).unwrap()
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn json(o: &Output) -> Value {
    serde_json::from_str(&out(o)).unwrap()
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/storyteller-Q4_K_M.gguf")
}

const GREEDY: [&str; 8] = ["run", "--device", "cpu", "-n", "8", "--temp", "0", "-q"];

#[test]
fn wrong_usage_exits_with_2() {
    for args in [
        &["run", "--no-such-option"][..],
        &["run", "-p", "a", "-f", "b"],
        &["run", "--temp", "warm", "-p", "a"],
        &["run", "-m", "a.gguf", "b.gguf", "c"],
        &["bench", "-p", "5-2"],
        &["bench", "-p", "0", "-n", "0"],
        &["bench", "-ctk", "f16", "-ctv", "auto"],
        &["bench", "-ctk", "q7_0"],
        &["bench", "--expert-slots", "4"],
        &["run", "a", "--expert-slots", "4"],
        &["run", "--kv", "q8_0/i32", "a"],
        &["run", "a", "--regex", "a", "--grammar", "root ::= \"a\""],
        &["run", "a", "-l", "7"],
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
fn tokenize_prints_ids_pieces_and_json() {
    let ids = out(&run(&["tokenize", "Once upon a time"]));
    let ids: Vec<u32> = ids.split_whitespace().map(|w| w.parse().unwrap()).collect();
    let as_json = json(&run(&["tokenize", "--json", "Once upon a time"]));
    assert_eq!(as_json, serde_json::to_value(&ids).unwrap());
    let same = piped(&["tokenize", "-m", fixture().to_str().unwrap(), "--json"], "Once upon a time");
    assert_eq!(json(&same), as_json);
    let pieces = json(&run(&["tokenize", "--json", "--pieces", "--no-bos", "Once upon a time"]));
    let text: String = pieces.as_array().unwrap().iter().map(|p| p["piece"].as_str().unwrap()).collect();
    assert_eq!(text, "Once upon a time");
    let n = |args: &[&str]| json(&run(args)).as_array().unwrap().len();
    assert_eq!(n(&["tokenize", "--json", "--no-bos", "<|end|>"]), 1);
    assert!(n(&["tokenize", "--json", "--no-bos", "--no-special", "<|end|>"]) > 1);
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
        assert!(err(&o).contains("expected another file than the input"), "{args:?}: {}", err(&o));
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
    for part in ["`-mg` changes nothing", "`-sm` changes nothing", "KV cache q8_0"] {
        assert!(err(&o).contains(part), "{part}: {}", err(&o));
    }
}

#[test]
fn run_continues_a_text() {
    let o = chaski(&GREEDY).args(["-p", "Once upon a time"]).output().unwrap();
    let text = out(&o);
    assert!(text.starts_with(GOLDEN), "{text}");
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
    assert_eq!(err(&o), "");
}

#[test]
fn run_reads_a_file_and_stdin() {
    let expected = out(&chaski(&GREEDY).args(["-p", "Once upon a time"]).output().unwrap());
    let raw: Vec<&str> = GREEDY.into_iter().chain(["--raw"]).collect();
    assert_eq!(out(&piped(&raw, "Once upon a time\n")), expected);
    let file: Vec<&str> = GREEDY.into_iter().chain(["-f", "-"]).collect();
    assert_eq!(out(&piped(&file, "Once upon a time")), expected);
}

#[test]
fn a_positional_prompt_is_a_message() {
    let model = fixture();
    let message = [model.to_str().unwrap(), "Tell me a story about a fox who lost a kite."];
    let chat = out(&chaski(&GREEDY).args(message).output().unwrap());
    let text = "<|user|>\nTell me a story about a fox who lost a kite.<|end|>\n<|assistant|>\n";
    assert_eq!(out(&chaski(&GREEDY).args(["-p", text]).output().unwrap()), chat);
    let by_flag = chaski(&GREEDY).args(["--chat", "-p", message[1]]).output().unwrap();
    assert_eq!(out(&by_flag), chat);
}

#[test]
fn run_prints_json() {
    let o = json(&chaski(&GREEDY).args(["--json", "-p", "Once upon a time"]).output().unwrap());
    assert!(o["text"].as_str().unwrap().starts_with(GOLDEN), "{o}");
    assert_eq!(o["tokens"].as_array().unwrap().len(), 8);
    assert_eq!(o["finish_reason"], "length");
    assert_eq!(o["stats"]["answer_tokens"], 8);
    assert_eq!(o["device"]["name"], "processor");
    for key in ["load_ms", "ttft_ms", "prompt_tokens_per_second", "answer_tokens_per_second"] {
        assert!(o["stats"][key].as_f64().unwrap() > 0.0, "{key}: {o}");
    }
}

#[test]
fn an_answer_to_a_message_is_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools.json");
    std::fs::write(&tools, r#"[{"type": "function", "function": {"name": "f", "parameters": {}}}]"#).unwrap();
    let model = fixture();
    let args = [model.to_str().unwrap(), "Tell me a story.", "--json", "--no-think", "--tools"];
    let o = json(&chaski(&GREEDY).args(args).arg(&tools).output().unwrap());
    assert_eq!(o["message"]["role"], "assistant", "{o}");
    assert_eq!(o["message"]["content"], o["text"], "{o}");
    std::fs::write(&tools, "{}").unwrap();
    let o = chaski(&GREEDY).args(args).arg(&tools).output().unwrap();
    assert!(!o.status.success() && err(&o).contains("is no JSON list of tools"), "{}", err(&o));
}

/// The default model with other chat templates: their keys behind `tokenizer.chat_template`, and their texts.
fn with_templates(folder: &Path, templates: &[(&str, &str)]) -> String {
    let bytes = std::fs::read(fixture()).unwrap();
    let old = ggml_format::Gguf::parse(bytes.clone().into(), bytes.len() as u64).unwrap();
    let mut head = ggml_format::GgufWriter::new();
    head.copy_metadata(old.metadata(), |key| !key.starts_with("tokenizer.chat_template")).unwrap();
    for (key, text) in templates {
        head.set(&format!("tokenizer.chat_template{key}"), *text).unwrap();
    }
    for t in old.tensors() {
        head.tensor(&t.name, &t.ne[..t.n_dims as usize], t.ty).unwrap();
    }
    let mut data = head.begin(Vec::new()).unwrap();
    for t in old.tensors() {
        data.write(&t.name, &bytes[t.offset as usize..][..t.n_byte as usize]).unwrap();
    }
    let path = folder.join("model.gguf");
    std::fs::write(&path, data.finish().unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A template that refuses any conversation with this expression.
fn saying(expression: &str) -> String {
    format!("{{{{ raise_exception({expression}) }}}}")
}

#[test]
fn tools_are_for_the_template_that_knows_them() {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools.json");
    std::fs::write(&tools, r#"[{"type": "function", "function": {"name": "f", "parameters": {}}}]"#).unwrap();
    let tools = ["--tools", tools.to_str().unwrap()];
    let (usual, special) = (saying("'usual'"), saying("'for ' ~ tools[0].function.name"));
    let model = with_templates(folder.path(), &[("", &usual), (".tool_use", &special)]);
    let ask = |more: &[&str]| {
        let args = ["run", "--device", "cpu", "-n", "1", "--temp", "0", &model, "Hi"];
        run(&[&args[..], more].concat())
    };
    assert!(err(&ask(&[])).contains("chat template refuses the conversation: usual"), "{}", err(&ask(&[])));
    assert!(err(&ask(&tools)).contains("chat template refuses the conversation: for f"));
    // One that does not know them is told.
    with_templates(folder.path(), &[("", "{{ messages[0].content }}")]);
    let o = ask(&tools);
    assert!(o.status.success() && err(&o).contains("note: --tools changes nothing"), "{}", err(&o));
    with_templates(folder.path(), &[("", "{{ messages[0].content }}{{ tools | tojson if tools else '' }}")]);
    let o = ask(&tools);
    assert!(o.status.success() && !err(&o).contains("--tools"), "{}", err(&o));
}

#[test]
fn a_template_that_cannot_be_read_hinders_conversations_alone() {
    let folder = tempfile::tempdir().unwrap();
    let model = with_templates(folder.path(), &[("", "{% if %}")]);
    let run_with =
        |more: &[&str]| run(&[&["run", "--device", "cpu", "-n", "2", "-m", &model], more].concat());
    let o = run_with(&["-p", "Once upon a time"]);
    assert!(
        o.status.success() && err(&o).contains("note: the model cannot hold a conversation"),
        "{}",
        err(&o)
    );
    let o = run_with(&["Hi"]);
    assert!(!o.status.success() && err(&o).contains("chat template, line 1"), "{}", err(&o));
    assert!(run_with(&["--raw", "Hi"]).status.success());
    assert!(out(&run(&["show", &model])).contains("has a chat template that cannot be read"));
}

#[test]
fn templates_get_the_time_of_the_users_zone() {
    let folder = tempfile::tempdir().unwrap();
    let model = with_templates(folder.path(), &[("", &saying("strftime_now('day %j')"))]);
    let day = |zone: &str| {
        let o = chaski(&["run", "--device", "cpu", &model, "Hi"]).env("TZ", zone).output().unwrap();
        let text = err(&o);
        let (_, rest) = text.split_once("refuses the conversation: day ").unwrap_or_else(|| panic!("{text}"));
        rest.lines().next().unwrap().parse::<i32>().unwrap()
    };
    // Clocks a whole day apart; in POSIX zones, west is positive.
    let days = day("EAST-12") - day("WEST+12");
    assert!([1, -364, -365].contains(&days), "{days}");
}

#[test]
fn what_is_wrong_is_said_before_the_model_is_loaded() {
    for (option, value, says) in [
        ("--tools", "no/such.json", "no/such.json"),
        ("--json-schema", "{", "the schema of --json-schema is no JSON"),
        ("--grammar-file", "no/such.gbnf", "no/such.gbnf"),
    ] {
        let o = run(&["run", "no/such.gguf", "-p", "a", option, value]);
        assert!(!o.status.success() && err(&o).contains(says), "{option}: {}", err(&o));
        assert!(!err(&o).contains("no/such.gguf"), "{option}: {}", err(&o));
    }
}

#[test]
fn run_streams_json_lines() {
    let text = out(&chaski(&GREEDY).args(["--jsonl", "-p", "Once upon a time"]).output().unwrap());
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let (last, pieces) = lines.split_last().unwrap();
    let joined: String = pieces.iter().map(|p| p["text"].as_str().unwrap()).collect();
    assert!(joined.starts_with(GOLDEN), "{joined}");
    assert_eq!((&last["type"], &last["finish_reason"]), (&"end".into(), &"length".into()));
}

#[test]
fn answers_fit_what_they_must() {
    let run_with = |option: &str, value: &str| {
        run(&[
            "run",
            "--device",
            "cpu",
            "-n",
            "24",
            "--temp",
            "0",
            "-q",
            "-p",
            "Once upon a time",
            option,
            value,
        ])
    };
    assert_eq!(out(&run_with("--regex", "[0-9]{4}!")).trim_end().len(), 5);
    let text = out(&run_with("--grammar", "root ::= \"a\" [0-9] (\"b\" | \"c\")"));
    assert!(text.starts_with('a') && text.trim_end().len() == 3, "{text}");
    assert_eq!(out(&run_with("--grammar", "start: \"only\" \" this\"")), "only this\n");
    let value = json(&run_with("--json-schema", "{\"type\": \"integer\", \"minimum\": 3, \"maximum\": 5}"));
    assert!((3..=5).contains(&value.as_u64().unwrap()), "{value}");
    for (option, value, says) in [
        ("--grammar", "root ::= x", "GBNF grammar, line 1, column 10: rule `x` is used but not defined"),
        ("--regex", "[a", "the regular expression cannot be used"),
        ("--json-schema", "{", "the schema of --json-schema is no JSON"),
        ("--grammar-file", "no/such.gbnf", "no/such.gbnf"),
    ] {
        let o = run_with(option, value);
        assert!(!o.status.success() && err(&o).contains(says), "{option}: {}", err(&o));
    }
}

#[test]
fn logprobs_come_with_json() {
    let args = [&GREEDY[..], &["-p", "Once upon a time", "--logprobs", "2"]].concat();
    let value = json(&run(&[&args[..], &["--json"]].concat()));
    let (tokens, logprobs) = (value["tokens"].as_array().unwrap(), value["logprobs"].as_array().unwrap());
    assert_eq!((tokens.len(), logprobs.len()), (8, 8));
    for (token, found) in tokens.iter().zip(logprobs) {
        assert_eq!(&found["token"], token);
        assert_eq!(found["top"].as_array().unwrap().len(), 2);
        assert_eq!(found["top"][0]["logprob"], found["logprob"]);
        assert!(found["logprob"].as_f64().unwrap() <= 0.0);
    }
    let o = run(&args);
    assert_eq!(o.status.code(), Some(2), "{}", err(&o));
}

#[test]
fn biases_exclude_and_prefer_tokens() {
    let args = |bias: &'static str| [&GREEDY[..], &["-p", "Once upon a time", "--json", "-l", bias]].concat();
    assert_eq!(
        json(&run(&args("300+100")))["tokens"],
        serde_json::json!([300, 300, 300, 300, 300, 300, 300, 300])
    );
    let first = json(&run(&args("300-0")))["tokens"][0].as_u64().unwrap();
    let excluded = format!("{first}-inf");
    let other = json(&run(&[&GREEDY[..], &["-p", "Once upon a time", "--json", "-l", &excluded]].concat()));
    assert!(other["tokens"].as_array().unwrap().iter().all(|token| *token != first));
}

#[test]
fn stop_texts_and_seeds() {
    let stopped = json(
        &chaski(&GREEDY).args(["--json", "--stop", "lived", "-p", "Once upon a time"]).output().unwrap(),
    );
    assert_eq!((&stopped["text"], &stopped["finish_reason"]), (&", there ".into(), &"stop_text".into()));
    let drawn = |seed: &str| {
        let args = ["run", "--device", "cpu", "-q", "-n", "6", "--temp", "1.5", "--seed", seed, "-p", "The"];
        out(&run(&args))
    };
    assert_eq!(drawn("7"), drawn("7"));
}

#[test]
fn verbose_tells_the_speed_on_stderr() {
    let args = ["run", "--device", "cpu", "-n", "2", "--temp", "0", "-v", "-p", "Once"];
    let o = run(&args);
    for word in ["load", "first token", "tokens/s", "memory"] {
        assert!(err(&o).contains(word), "{word}: {}", err(&o));
    }
    assert!(!out(&o).contains("tokens/s"));
}

#[test]
fn a_prompt_beyond_the_context_is_an_error_that_says_so() {
    let o = run(&["run", "--device", "cpu", "-c", "4", "-q", "-p", "one two three four five six seven"]);
    assert_eq!(o.status.code(), Some(1));
    assert!(err(&o).contains("at most 4") && err(&o).contains("-c N"), "{}", err(&o));
}

#[test]
fn logits_are_one_row_a_token() {
    let ids = out(&run(&["tokenize", "Once upon a time"])).trim().replace(' ', ",");
    let n = ids.split(',').count();
    let base = ["logits", "--device", "cpu", "--kv", "f32", "-q", "--tokens", ids.as_str()];
    let raw = chaski(&base).output().unwrap();
    assert!(raw.status.success(), "{}", err(&raw));
    assert_eq!(raw.stdout.len(), n * 2048 * 4);
    let rows = |extra: &[&str]| -> Vec<Vec<f32>> {
        let text = out(&chaski(&base).args(extra).output().unwrap());
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    };
    let whole = rows(&["--json"]);
    assert_eq!((whole.len(), whole[0].len()), (n, 2048));
    let first = f32::from_le_bytes(raw.stdout[..4].try_into().unwrap());
    assert_eq!(first, whole[0][0]);
    assert_eq!(rows(&["--json", "--chunk", "1"]), whole);
}

#[test]
fn perplexity_prints_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.txt");
    std::fs::write(&file, "Once upon a time, there lived a small, playful boy named Nico. ".repeat(4))
        .unwrap();
    let args =
        ["perplexity", "--device", "cpu", "-c", "16", "--chunks", "2", "-q", "-f", file.to_str().unwrap()];
    let text = out(&run(&args));
    let value: f64 = text.strip_prefix("PPL = ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(value > 1.0 && value < 100.0 && text.contains(" +/- "), "{text}");
}

#[test]
fn bench_measures_on_the_processor() {
    let args =
        ["bench", "--device", "cpu", "-p", "4", "-n", "2", "-pg", "3,1", "-r", "2", "-q", "-o", "jsonl"];
    let text = out(&run(&args));
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let tests: Vec<_> = lines.iter().map(|l| (l["n_prompt"].as_u64(), l["n_gen"].as_u64())).collect();
    assert_eq!(tests, [(Some(4), Some(0)), (Some(0), Some(2)), (Some(3), Some(1))]);
    for l in &lines {
        assert!(l["avg_ts"].as_f64().unwrap() > 0.0, "{l}");
        assert_eq!(l["samples_ns"].as_array().unwrap().len(), 2);
        for key in
            ["build_commit", "model_type", "type_k", "stddev_ts", "load_ms", "ttft_ms", "peak_gpu_bytes"]
        {
            assert!(l.get(key).is_some(), "{key}");
        }
    }
}

#[test]
fn completions_and_manual() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(out(&run(&["completions", shell])).contains("chaski"), "{shell}");
    }
    assert!(out(&run(&["man"])).contains(".TH chaski"));
}

#[test]
fn devices_are_listed() {
    assert!(out(&run(&["devices"])).contains("cpu:"));
    for a in json(&run(&["devices", "-o", "json"])).as_array().unwrap() {
        assert!(a["limits"]["max_binding_bytes"].as_u64().unwrap() > 0, "{a}");
    }
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

#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_answer_and_exits_with_130() {
    use std::io::Read as _;
    let args = ["run", "--device", "cpu", "--ignore-eos", "--temp", "0", "--jsonl", "-p", "Once upon a time"];
    let mut child = chaski(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The first piece says that the answer is under way.
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 8]).unwrap();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let o = child.wait_with_output().unwrap();
    assert_eq!(o.status.code(), Some(130), "{}", err(&o));
    let text = String::from_utf8(o.stdout).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["finish_reason"], "interrupted");
}

/// Whether there is a GPU, a software one included; `cargo xtask test` brings one.
fn has_gpu(test: &str) -> bool {
    let found = !json(&run(&["devices", "-o", "json"])).as_array().unwrap().is_empty();
    if !found {
        // Past the test harness, which hides what macros of passing tests print.
        let line = format!("LEFT OUT: {test}: the part on a GPU, there is no adapter\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    found
}

#[test]
fn a_gpu_tells_the_same_story_in_the_memory_that_show_names() {
    if !has_gpu("a_gpu_tells_the_same_story_in_the_memory_that_show_names") {
        return;
    }
    let args = ["run", "--device", "gpu", "--temp", "0", "-n", "24", "-c", "128", "--kv", "f32", "--json"];
    let o = json(&chaski(&args).args(["-q", "-p", "Once upon a time"]).output().unwrap());
    assert!(o["text"].as_str().unwrap().starts_with(GOLDEN), "{o}");
    assert!(o["stats"]["dispatches_per_layer"].as_f64().unwrap() <= 6.0, "{o}");
    let shown = json(&run(&["show", "--json", "-c", "128", "--kv", "f32"]));
    assert_eq!(shown["memory"]["need"], o["stats"]["memory"]);
}

#[test]
fn bench_and_profile_run_on_a_gpu() {
    if !has_gpu("bench_and_profile_run_on_a_gpu") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let args = ["bench", "--device", "gpu", "-p", "8", "-n", "7", "-d", "0,5", "--interval", "3", "-r", "2"];
    let more = ["-q", "-o", "json", "--profile", "--trace", trace.to_str().unwrap()];
    let o = chaski(&args).args(more).output().unwrap();
    let results = json(&o);
    let names: Vec<_> = results.as_array().unwrap().iter().map(|r| (&r["n_depth"], &r["n_gen"])).collect();
    assert_eq!(names.len(), 4, "{results}");
    for r in results.as_array().unwrap() {
        assert!(r["avg_ts"].as_f64().unwrap() > 0.0 && r["peak_gpu_bytes"].as_u64().unwrap() > 0, "{r}");
    }
    // A device without timestamps has no profile, and says so.
    let events: Value = serde_json::from_str(&std::fs::read_to_string(trace).unwrap()).unwrap();
    let measured = !events["traceEvents"].as_array().unwrap().is_empty();
    for r in results.as_array().unwrap() {
        let profiles = r["profiles"].as_array().unwrap();
        assert_eq!(profiles.len(), usize::from(measured), "{r}");
        for p in profiles {
            let rows = p["rows"].as_array().unwrap();
            assert!(rows.iter().any(|r| r["part"] == "gate_up"), "{p}");
            for row in rows {
                assert!(row["bytes"].as_u64().unwrap() > 0, "{row}");
                assert!(row["percent_of_bound"].as_f64().unwrap() > 0.0, "{row}");
            }
        }
        // Tokens are sent, whether or not one waits for them.
        assert_eq!(r["host_us_per_token"].is_number(), r["n_gen"].as_u64() > Some(0), "{r}");
        assert!(r["upload_ms"].as_f64().unwrap() > 0.0, "{r}");
    }
}

/// The same text from a mixture whose experts stay with the processor, in the memory that `show` names; what `bench` says of it.
#[test]
fn experts_stay_with_the_processor() {
    if !has_gpu("experts_stay_with_the_processor") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.gguf").to_str().unwrap().to_owned();
    let o =
        run(&["synth", "-q", "--preset", "tiny-moe", "--layers", "2", "--mix", "q4_k_m", "--out", &model]);
    assert!(o.status.success(), "{}", err(&o));
    let told = |more: &[&str]| {
        let args =
            ["run", &model, "--device", "gpu", "--temp", "0", "-n", "6", "-c", "64", "--raw", "--json"];
        let o = chaski(&args).args(["-q", "-p", "Once upon a time"]).args(more).output().unwrap();
        assert!(o.status.success(), "{}", err(&o));
        json(&o)
    };
    let (all, some) = (told(&[]), told(&["-ncmoe", "99", "--expert-slots", "6"]));
    assert_eq!(some["text"], all["text"]);
    assert!(all["stats"]["experts"].is_null(), "{all}");
    let e = &some["stats"]["experts"];
    assert!(e["wanted"].as_u64() >= e["read"].as_u64() && e["read_bytes"].as_u64() > Some(0), "{some}");
    assert!(some["stats"]["memory"]["total"].as_u64() < all["stats"]["memory"]["total"].as_u64(), "{some}");
    let args = ["show", &model, "--json", "-c", "64", "--experts-on-cpu", "99", "--expert-slots", "6"];
    assert_eq!(json(&run(&args))["memory"]["need"], some["stats"]["memory"]);

    let args = ["bench", &model, "--device", "gpu", "-p", "8", "-n", "4", "-r", "1", "-q", "-o", "jsonl"];
    let more = ["--experts-on-cpu", "0,2", "--expert-slots", "4,32", "--profile"];
    let text = out(&chaski(&args).args(more).output().unwrap());
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let slots: Vec<_> = lines.iter().map(|l| l["expert_slots"].as_u64().unwrap()).collect();
    assert_eq!(slots, [0, 0, 4, 4, 32, 32]);
    for l in &lines {
        match l["experts_on_cpu"].as_u64().unwrap() {
            0 => assert!(l["expert_hits"].is_null() && l["expert_bytes_per_token"].is_null(), "{l}"),
            _ => {
                let hits = l["expert_hits"].as_f64().unwrap();
                assert!((0.0..=1.0).contains(&hits) && l["profiles"] == serde_json::json!([]), "{l}");
                // Every token uses 4 of a layer's experts, of a prompt of 8 each counts once.
                let wanted = l["experts_wanted_per_token"].as_f64().unwrap();
                let expected = if l["n_gen"] == 4 { 8.0..=8.0 } else { 1.0..=8.0 };
                assert!(expected.contains(&wanted), "{l}");
                // After a warm-up there is room for all.
                let n_byte = l["expert_bytes_per_token"].as_f64().unwrap();
                assert_eq!(n_byte == 0.0, hits == 1.0, "{l}");
                assert!(l["expert_slots"] != 32 || hits > 0.5, "{l}");
            }
        }
    }
    let o = run(&["tune", &model, "--device", "gpu", "--experts-on-cpu", "1"]);
    assert!(!o.status.success() && err(&o).contains("all experts on the device"), "{}", err(&o));
    let o = run(&["run", "--device", "cpu", "--experts-on-cpu", "1", "-p", "a"]);
    assert!(!o.status.success() && err(&o).contains("no experts"), "{}", err(&o));
}

#[test]
fn a_measured_device_is_kept_for_profiles() {
    if !has_gpu("a_measured_device_is_kept_for_profiles") {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| chaski(args).env("XDG_CACHE_HOME", cache.path()).output().unwrap();
    let measured = json(&run(&["devices", "--measure", "-o", "json"]));
    assert!(measured["read_bytes_per_s"].as_f64().unwrap() > 1e8, "{measured}");
    assert!(measured["operations_per_s"]["f32"].as_f64().unwrap() > 1e8, "{measured}");
    if cfg!(target_os = "linux") {
        let folder = cache.path().join("chaski/peaks");
        let file = std::fs::read_dir(folder).unwrap().next().expect("a file").unwrap().path();
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(kept, measured);
        let o = run(&["bench", "--device", "gpu", "-p", "0", "-n", "1", "-r", "1", "--profile"]);
        assert!(!err(&o).contains("measuring"), "{}", err(&o));
        assert!(out(&o).contains("bound by"), "{}", out(&o));
    }
    let o = run(&["devices", "--measure", "--device", "cpu"]);
    assert_eq!(o.status.code(), Some(2), "{}", err(&o));
}

#[test]
fn texts_become_vectors_in_every_format() {
    let args = |more: &[&'static str]| [&["embed", "--device", "cpu", "-q"][..], more].concat();
    let raw = out(&run(&args(&["--pooling", "mean", "-p", "a dog\nA cat", "-p", "a dog"])));
    let lines: Vec<&str> = raw.lines().collect();
    assert_eq!(lines.len(), 3, "{raw}");
    assert_eq!(lines[0], lines[2]);
    assert_ne!(lines[0], lines[1]);
    let numbers: Vec<f64> = lines[0].split(' ').map(|n| n.parse().unwrap()).collect();
    assert_eq!(numbers.len(), 256);
    assert!((numbers.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-5);
    let object = json(&run(&args(&[
        "--pooling",
        "last",
        "--embd-output-format",
        "json",
        "--embd-normalize",
        "0",
        "-p",
        "a dog",
    ])));
    let vector = object["data"][0]["embedding"].as_array().unwrap();
    let largest = vector.iter().map(|v| v.as_f64().unwrap().abs()).fold(0.0, f64::max);
    assert!((largest - 32760.0).abs() < 0.1, "{largest}");
    assert!(object["usage"]["prompt_tokens"].as_u64().unwrap() > 0);
    let unsaid = run(&args(&["-p", "a dog"]));
    assert_eq!(unsaid.status.code(), Some(1));
    assert!(err(&unsaid).contains("`llama.pooling_type`"), "{}", err(&unsaid));
    for wrong in
        [&["-p", "a", "--pooling", "rank"][..], &["-p", "a", "--embd-normalize", "-2"], &["-p", ""], &[]]
    {
        assert_eq!(run(&args(wrong)).status.code(), Some(2));
    }
}

/// A file with an adapter of the built-in model's first output of attention, in a folder of its own.
fn adapter(folder: &Path, architecture: &str) -> PathBuf {
    use ggml_format::{GgmlType, GgufWriter};
    let mut writer = GgufWriter::new();
    for (key, value) in
        [("general.architecture", architecture), ("general.type", "adapter"), ("adapter.type", "lora")]
    {
        writer.set(key, value).unwrap();
    }
    let name = |half: &str| format!("blk.0.attn_output.weight.lora_{half}");
    writer.tensor(&name("a"), &[256, 2], GgmlType::F32).unwrap();
    writer.tensor(&name("b"), &[2, 256], GgmlType::F32).unwrap();
    let mut data = writer.begin(Vec::new()).unwrap();
    for half in ["a", "b"] {
        let values =
            (0..512u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0);
        let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        data.write(&name(half), &bytes).unwrap();
    }
    let path = folder.join(format!("{architecture}.gguf"));
    std::fs::write(&path, data.finish().unwrap()).unwrap();
    path
}

#[test]
fn adapters_change_the_text_as_much_as_they_are_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let (good, wrong) = (adapter(folder.path(), "llama"), adapter(folder.path(), "qwen2"));
    let (good, wrong) = (good.to_str().unwrap(), wrong.to_str().unwrap());
    let text = |more: &[&str]| out(&run(&[&GREEDY[..], &["-p", "Once upon a time"], more].concat()));
    let plain = text(&[]);
    assert!(plain.contains(GOLDEN), "{plain}");
    assert_eq!(text(&["--lora-scaled", good, "0"]), plain);
    let once = text(&["--lora", good]);
    assert_ne!(once, plain);
    assert_eq!(text(&["--lora-scaled", good, "1"]), once);
    // Two adapters add up.
    assert_eq!(text(&["--lora", good, "--lora-scaled", good, "-1"]), plain);
    let refused = run(&[&GREEDY[..], &["-p", "a", "--lora", wrong]].concat());
    assert_eq!(refused.status.code(), Some(3));
    let message = err(&refused);
    assert!(
        message.contains("the adapter is for the architecture `qwen2`, the model has `llama`")
            && message.contains(wrong),
        "{message}"
    );
    let usage = run(&[&GREEDY[..], &["-p", "a", "--lora-scaled", good, "much"]].concat());
    assert_eq!(usage.status.code(), Some(2));
    let missing = run(&[&GREEDY[..], &["-p", "a", "--lora", "no-such-file.gguf"]].concat());
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn a_draft_model_guesses_and_changes_no_text() {
    let draft = fixture();
    let draft = draft.to_str().unwrap();
    let plain = out(&run(&[&GREEDY[..], &["-p", "Once upon a time"]].concat()));
    for device in ["cpu", "auto"] {
        let args = [
            "run",
            "--device",
            device,
            "-n",
            "8",
            "--temp",
            "0",
            "-q",
            "--json",
            "-p",
            "Once upon a time",
            "-md",
            draft,
        ];
        let answer = json(&run(&args));
        assert_eq!(answer["text"], plain.trim_end_matches('\n'));
        // The same model is always right.
        let stats = &answer["stats"];
        let guessed = stats["guessed_tokens"].as_u64().unwrap();
        assert!(guessed >= 4 && stats["right_guesses"] == guessed, "{stats}");
    }
    let none =
        json(&run(
            &[&GREEDY[..], &["--json", "-p", "Once upon a time", "-md", draft, "--draft-max", "0"]].concat()
        ));
    assert_eq!(none["stats"]["guessed_tokens"], 0);
    let missing = run(&[&GREEDY[..], &["-p", "a", "-md", "no-such-file.gguf"]].concat());
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn a_full_context_ends_the_answer_or_is_shifted() {
    let args = |more: &[&'static str]| {
        let begin = ["run", "--temp", "0", "-n", "40", "-c", "32", "--ignore-eos", "-p", "Once upon a time"];
        run(&[&begin[..], more].concat())
    };
    let ended = args(&["--json"]);
    assert!(err(&ended).contains("the context of 32 tokens is full"), "{}", err(&ended));
    let ended = json(&ended);
    assert_eq!(ended["finish_reason"], "context");
    for keep in [&["--context-shift"][..], &["--context-shift", "--keep", "-1"]] {
        let shifted = args(&[keep, &["--json"]].concat());
        assert!(err(&shifted).contains("were forgotten"), "{}", err(&shifted));
        let shifted = json(&shifted);
        assert_eq!(
            (&shifted["finish_reason"], &shifted["stats"]["answer_tokens"]),
            (&"length".into(), &40.into())
        );
        let (text, begun) = (shifted["text"].as_str().unwrap(), ended["text"].as_str().unwrap());
        assert!(text.len() > begun.len() && text.starts_with(begun), "{text}");
    }
}
