//! Rejected arguments and exit codes.

use std::process::Stdio;

use crate::{GOLDEN, GREEDY, chaski, err, fixture, out, run};

#[test]
fn messages_quote_the_ends_of_long_words() {
    let (word, option) = ("x".repeat(100_000), format!("--{}", "x".repeat(100_000)));
    for args in [
        &["run", &*option, "-p", "a"][..],
        &[&*word],
        &["run", "--temp", &word, "-p", "a"],
        &["run", "--samplers", &word, "-p", "a"],
        &["run", "--kv", &word, "-p", "a"],
        &["run", "--chat-template-kwargs", &word, "-p", "a"],
    ] {
        let o = run(args);
        let (name, said) = (&args[..args.len().min(2)], err(&o));
        assert_eq!(o.status.code(), Some(2), "{:.40?}: {said:.2000}", name);
        assert!(
            o.stdout.is_empty() && said.contains("xxx") && said.len() < 5000,
            "{:.40?}: {}",
            name,
            said.len()
        );
    }
}

#[test]
fn of_a_repeated_option_the_last_value_counts() {
    let text = |args: &[&str]| out(&chaski(&GREEDY).args(args).output().unwrap());
    let expected = text(&["-n", "5", "--seed", "2", "-p", "Once upon a time"]);
    let repeated = ["-n", "3", "-p", "No", "-n", "5", "--seed", "1", "--seed=2", "-p", "Once upon a time"];
    assert_eq!(text(&repeated), expected);
    assert_eq!(text(&[&repeated[..], &["-q", "-q", "--raw", "--raw"]].concat()), expected);
    // llama.cpp's names are the same options.
    assert_eq!(text(&[&repeated[..], &["--predict", "3", "-n", "5"]].concat()), expected);
    // Options that take several values have all of them.
    let cut = text(&["-n", "40", "-p", "Once upon a time", "-r", ",", "-r", "zzz"]);
    assert!(!cut.contains(',') && cut.len() < text(&["-n", "40", "-p", "Once upon a time"]).len(), "{cut}");
    let o = run(&["show", "--json", "--json", "--color", "never", "--color", "auto"]);
    assert!(o.status.success(), "{}", err(&o));
}

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
        "convert",
        "imatrix",
    ] {
        assert!(out(&run(&[command, "--help"])).contains("Usage"), "{command}");
    }
}

#[test]
fn a_pipe_is_no_model_and_stdout_no_file() {
    #[cfg(unix)]
    {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let o = run(&["show", pipe.to_str().unwrap()]);
        assert_eq!(o.status.code(), Some(3), "{}", err(&o));
        assert!(err(&o).contains("cannot be a pipe"), "{}", err(&o));
    }
    let model = fixture();
    let folder = tempfile::tempdir().unwrap();
    let o = chaski(&["quantize", model.to_str().unwrap(), "-", "q8_0", "--allow-requantize"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert_eq!(o.status.code(), Some(2), "{}", err(&o));
    assert!(err(&o).contains("cannot go to stdout"), "{}", err(&o));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn hints_fit_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(fixture()).unwrap();
    let shown = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let o = run(&["run", path.to_str().unwrap(), "-p", "a", "--device", "cpu"]);
        assert_eq!(o.status.code(), Some(3), "{}", err(&o));
        err(&o)
    };
    assert!(shown("cut.gguf", &bytes[..bytes.len() / 2]).contains("was its download interrupted?"));
    assert!(!shown("page.gguf", b"<!DOCTYPE html><html></html>").contains("download"));
    // A tokenizer that cannot be used is a bad file, too.
    let model = fixture();
    let o =
        run(&["run", model.to_str().unwrap(), "-p", "a", "--override-kv", "tokenizer.ggml.model=str:none"]);
    assert_eq!(o.status.code(), Some(3), "{}", err(&o));
    // A LoRA without its kind.
    let o = run(&["run", "-p", "a", "--lora", model.to_str().unwrap(), "--device", "cpu"]);
    assert!(err(&o).contains("`general.type` is") && !err(&o).contains("not there"), "{}", err(&o));
    let text = "word ".repeat(600);
    let o = run(&["embed", "--pooling", "mean", "--device", "cpu", "-c", "64", "-p", &text]);
    assert!(err(&o).contains("tokens, but the context has 64") && err(&o).contains("-c N"), "{}", err(&o));
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
    for part in ["`-mg` has no effect", "KV cache q8_0"] {
        assert!(err(&o).contains(part), "{part}: {}", err(&o));
    }
    let line = "-e -b 512 --jinja --no-mmap --mlock --no-display-prompt --no-warmup --simple-io --color off -fa on -mmp 0 -ngl 99 \
                --predict 8 --temperature 0 --rope-freq-scale 1 --verbose-prompt -no-cnv --override-kv \
                general.name=str:x";
    let args: Vec<&str> = ["run", "--device", "cpu"].into_iter().chain(line.split_whitespace()).collect();
    let o = chaski(&args).args(["-p", "Once\\x20upon a time"]).output().unwrap();
    assert!(out(&o).starts_with(GOLDEN) && err(&o).is_empty(), "{}: {}", out(&o), err(&o));
}

#[test]
fn options_of_llama_cpp_that_cannot_work_say_how_else() {
    for (args, says) in [
        (&["run", "-dr", "repo"][..], "`hf:ORG/REPO` names one of Hugging Face"),
        (&["run", "m.gguf", "--prompt-cache", "x"], "/save and /load"),
        (&["embed", "-ot", "x=CPU", "m.gguf"], "`--experts-on-cpu N`"),
        (&["run", "--chat-template", "alpaca", "-p", "a"], "`--chat-template-file FILE`"),
        (&["run", "--single-turn", "-i", "-p", "a"], "cannot be used with"),
        (&["run", "-i", "-p", "a"], "--interactive needs a terminal"),
    ] {
        let o = run(args);
        assert_eq!(o.status.code(), Some(2), "{args:?}: {}", err(&o));
        assert!(err(&o).contains(says), "{args:?}: {}", err(&o));
    }
}

#[test]
fn options_before_a_command_say_where_they_belong() {
    for (args, says) in [
        (&["-hf", "org/repo"][..], "`chaski run -hf ...`"),
        (&["-m", "m.gguf", "-p", "a"], "`chaski run -m ...`"),
    ] {
        let o = run(args);
        assert_eq!(o.status.code(), Some(2), "{args:?}: {}", err(&o));
        assert!(err(&o).contains(says) && err(&o).lines().count() == 1, "{args:?}: {}", err(&o));
    }
}

#[test]
fn suggestions_do_not_mislead() {
    for (args, suggestion) in [
        (&["run", "--temprature", "1"][..], Some("--temperature")),
        (&["run", "--no-mmapp"], Some("--no-mmap")),
        (&["run", "--sort"], None),
        (&["tokenise"], Some("tokenize")),
        (&["frob"], None),
    ] {
        let o = run(args);
        let tip = err(&o).lines().find(|line| line.contains("tip: a similar")).map(str::to_owned);
        assert_eq!(tip.is_some(), suggestion.is_some(), "{args:?}: {}", err(&o));
        assert!(suggestion.is_none_or(|word| tip.unwrap().contains(word)), "{args:?}: {}", err(&o));
    }
}

#[test]
fn metadata_and_chat_templates_can_be_replaced() {
    let text = |args: &[&str]| out(&chaski(&GREEDY).args(args).output().unwrap());
    let plain = text(&["-p", "Q: Why?\nA:"]);
    let model = fixture();
    let model = model.to_str().unwrap();
    assert_eq!(text(&[model, "Why?", "--in-prefix", "Q: ", "--in-suffix", "A:"]), plain);
    assert_eq!(text(&[model, "Why?", "--chat-template", "Q: {{ messages[0].content }}\nA:"]), plain);
    assert_eq!(text(&["-st", "-p", "Why?", "--in-prefix", "Q: ", "--in-suffix", "A:"]), plain);
    let stretched = text(&["-p", "Q: Why?\nA:", "--rope-scale", "8"]);
    assert_ne!(stretched, plain);
    let by_key = "llama.rope.scaling.factor=float:8";
    assert_eq!(text(&["-p", "Q: Why?\nA:", "--override-kv", by_key]), stretched);
    assert_ne!(text(&["-p", "Q: Why?\nA:", "--rope-freq-base", "100"]), plain);
}

#[test]
fn completions_and_manual() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(out(&run(&["completions", shell])).contains("chaski"), "{shell}");
    }
    let zsh = out(&run(&["completions", "zsh"]));
    assert!(zsh.contains("cpu\\:\"the CPU backend\"") && zsh.contains("'pull:"), "{zsh}");
    let page = out(&run(&["man"]));
    assert!(page.contains(".TH chaski"));
    assert!(out(&run(&["man", "run"])).contains(".TH chaski-run"));
    assert_eq!(run(&["man", "walk"]).status.code(), Some(2));
    // Each page that the first one names is there.
    let folder = tempfile::tempdir().unwrap();
    out(&run(&["man", "--dir", folder.path().to_str().unwrap()]));
    let names: Vec<&str> =
        page.lines().filter_map(|line| line.strip_suffix("(1)")?.strip_prefix("chaski\\-")).collect();
    assert!(names.len() > 10, "{page}");
    for name in names {
        let file = folder.path().join(format!("chaski-{name}.1"));
        assert!(file.is_file(), "{}", file.display());
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
