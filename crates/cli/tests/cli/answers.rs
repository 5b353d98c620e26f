//! `chaski run`: texts, their forms, and what they must fit.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{GOLDEN, GREEDY, chaski, err, fixture, json, out, piped, run};

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
    assert_eq!(o["device"]["name"], "CPU");
    for key in ["load_ms", "ttft_ms", "prompt_tokens_per_second", "answer_tokens_per_second"] {
        assert!(o["stats"][key].as_f64().unwrap() > 0.0, "{key}: {o}");
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
        ("--regex", "[a", "cannot compile the regular expression"),
        ("--json-schema", "{", "the schema of --json-schema is not valid JSON"),
        ("--grammar-file", "no/such.gbnf", "no/such.gbnf"),
    ] {
        let o = run_with(option, value);
        assert!(!o.status.success() && err(&o).contains(says), "{option}: {}", err(&o));
    }
}

#[test]
fn special_tokens_in_a_message_are_text() {
    let model = fixture();
    let answer = |more: &[&str]| {
        let message = ["--json", model.to_str().unwrap(), "A story.<|end|><|end|><|end|><|end|>"];
        json(&run(&[&GREEDY[..], &message, more].concat()))
    };
    let (text, tokens) = (answer(&[]), answer(&["--parse-special"]));
    let n_prompt = |answer: &Value| answer["stats"]["prompt_tokens"].as_u64().unwrap();
    // As text, they take more than one token each.
    assert!(n_prompt(&text) > n_prompt(&tokens) + 4, "{text} {tokens}");
    let prompt = "<|user|>\nA story.<|end|><|end|><|end|><|end|><|end|>\n<|assistant|>\n";
    let raw = json(&run(&[&GREEDY[..], &["--json", "-p", prompt]].concat()));
    assert_eq!((n_prompt(&raw), &raw["tokens"]), (n_prompt(&tokens), &tokens["tokens"]));
}

#[test]
fn an_answer_that_is_cut_before_it_matches_says_so() {
    let with = |more: &[&'static str]| {
        let begin = ["run", "--device", "cpu", "--temp", "0", "--json", "-p", "Once upon a time"];
        let o = run(&[&begin[..], more].concat());
        let answer = json(&o);
        (
            answer["incomplete"].as_bool().unwrap(),
            answer["finish_reason"].as_str().unwrap().to_owned(),
            err(&o),
        )
    };
    let (incomplete, finish, said) = with(&["--regex", "[0-9]{9}", "-n", "3"]);
    assert_eq!((incomplete, &*finish), (true, "length"));
    assert!(said.contains("does not match its constraint yet: `-n` allows no more after 3 tokens"), "{said}");
    let (incomplete, finish, said) = with(&["--regex", "[0-9]{90}", "-c", "24"]);
    assert_eq!((incomplete, &*finish), (true, "context"));
    assert!(said.contains("yet: the context is full"), "{said}");
    // Whatever length it has, it matches.
    let (incomplete, finish, said) = with(&["--regex", "[0-9]*", "-n", "3", "--ignore-eos"]);
    assert_eq!((incomplete, &*finish), (false, "length"));
    assert!(!said.contains("constraint"), "{said}");
    let (incomplete, finish, _) = with(&["--regex", "[0-9]{2}"]);
    assert_eq!((incomplete, &*finish), (false, "stop"));
}

#[test]
fn a_context_beyond_the_trained_one_is_noted() {
    let said = |n: &str| err(&run(&["run", "--device", "cpu", "-n", "1", "-c", n, "-p", "Once"]));
    assert!(said("513").contains("longer than the 512 that the model was trained with"), "{}", said("513"));
    assert!(!said("512").contains("trained"));
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
    let o = run(&args("2048+1"));
    assert!(!o.status.success() && err(&o).contains("none of the 2048 tokens"), "{}", err(&o));
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
    assert!(err(&o).contains("the context has 4") && err(&o).contains("-c N"), "{}", err(&o));
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

/// A file with an adapter of the built-in model's first output of attention, in a folder of its own.
pub(crate) fn adapter(folder: &Path, architecture: &str) -> PathBuf {
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
fn loras_change_the_text_by_their_scales() {
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
        message.contains("the LoRA is for the architecture `qwen2`, the model has `llama`")
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
        let guessed = stats["drafted_tokens"].as_u64().unwrap();
        assert!(guessed >= 4 && stats["accepted_tokens"] == guessed, "{stats}");
    }
    let none =
        json(&run(
            &[&GREEDY[..], &["--json", "-p", "Once upon a time", "-md", draft, "--draft-max", "0"]].concat()
        ));
    assert_eq!(none["stats"]["drafted_tokens"], 0);
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
        assert!(err(&shifted).contains("dropped"), "{}", err(&shifted));
        let shifted = json(&shifted);
        assert_eq!(
            (&shifted["finish_reason"], &shifted["stats"]["answer_tokens"]),
            (&"length".into(), &40.into())
        );
        let (text, begun) = (shifted["text"].as_str().unwrap(), ended["text"].as_str().unwrap());
        assert!(text.len() > begun.len() && text.starts_with(begun), "{text}");
    }
}
