//! Models and texts as arguments, files and stdin: the same in every command.

use crate::{GREEDY, chaski, err, fixture, out, piped, run};

const TEXT: &str = "Once upon a time";

#[test]
fn the_first_argument_is_the_model_and_the_second_the_text() {
    let model = fixture();
    let model = model.to_str().unwrap();
    let expected = out(&run(&["tokenize", "-p", TEXT]));
    for args in
        [&["tokenize", model, TEXT][..], &["tokenize", "-m", model, TEXT], &["tokenize", model, "-p", TEXT]]
    {
        assert_eq!(out(&run(args)), expected, "{args:?}");
    }
    for args in [&["tokenize", model][..], &["tokenize"], &["tokenize", model, "-f", "-"]] {
        assert_eq!(out(&piped(args, TEXT)), expected, "{args:?}");
    }
    let embed = ["embed", "--device", "cpu", "-q", "--pooling", "mean"];
    let expected = out(&run(&[&embed[..], &["-p", TEXT]].concat()));
    assert_eq!(out(&run(&[&embed[..], &[model, TEXT]].concat())), expected);
    assert_eq!(out(&piped(&[&embed[..], &[model]].concat(), TEXT)), expected);
    let ids = ["logits", model, "--device", "cpu", "-q", "--text"];
    let expected = out(&run(&[&ids[..], &["--tokens", "5 6"]].concat()));
    assert_eq!(out(&piped(&ids, "5,6\n")), expected);
}

#[test]
fn a_file_that_does_not_exist_is_never_a_text() {
    for command in ["tokenize", "embed", "perplexity", "imatrix", "run"] {
        let o = piped(&[command, "no/such.gguf", "-q"], TEXT);
        assert_eq!(o.status.code(), Some(3), "{command}: {}", err(&o));
        assert!(err(&o).contains("no/such.gguf") && o.stdout.is_empty(), "{command}: {}", err(&o));
    }
}

#[test]
fn a_text_in_place_of_the_model_says_where_it_belongs() {
    for command in ["run", "tokenize", "embed"] {
        for input in ["", "a text"] {
            let o = piped(&[command, "Tell me a story"], input);
            assert_eq!(o.status.code(), Some(2), "{command}: {}", err(&o));
            assert!(err(&o).contains("(MODEL \"Tell me a story\")"), "{command}: {}", err(&o));
        }
    }
    // A model of the configuration makes it a text.
    let model = fixture();
    let expected = out(&run(&[&GREEDY[..], &[model.to_str().unwrap(), "Tell me a story"]].concat()));
    let configured = chaski(&GREEDY).arg("Tell me a story").env("CHASKI_MODEL", &model).output().unwrap();
    assert_eq!(out(&configured), expected);
    let o = piped(&["run", "story"], "");
    assert_eq!(o.status.code(), Some(3), "{}", err(&o));
}

/// 20 MB as tokens would take more memory than a shell allows here.
#[test]
#[cfg(target_os = "linux")]
fn a_text_that_no_context_holds_is_refused_before_it_is_tokenized() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.txt");
    std::fs::write(&path, "a".repeat(20_000_000)).unwrap();
    for args in [
        &["run", "-c", "512"][..],
        &["run", "-c", "512", "--chat"],
        &["embed", "-c", "512", "--pooling", "mean"],
    ] {
        let mut limited = std::process::Command::new("sh");
        limited.args(["-c", "ulimit -v 900000 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_chaski")]);
        let o = limited.args(args).args(["--device", "cpu", "-f"]).arg(&path).output().unwrap();
        let said = err(&o);
        assert_eq!(o.status.code(), Some(1), "{args:?}: {said}");
        let (n, rest) = said.split_once("error: the text has at least ").unwrap().1.split_once(' ').unwrap();
        // The longest token of the model has less than 20 bytes.
        assert!(n.parse::<usize>().unwrap() > 1_000_000, "{said}");
        assert!(rest.starts_with("tokens, but the context has 512\nhelp: set a larger context"), "{said}");
    }
}

#[test]
fn a_text_that_is_continued_as_it_is_is_noted() {
    let model = fixture();
    let begin = ["run", "--device", "cpu", "-n", "1", "--temp", "0", "-p", "Why?"];
    let notes = |args: &[&str]| err(&run(&[&begin[..], args].concat()));
    assert!(notes(&["-m", model.to_str().unwrap()]).contains("`--chat` makes it a message"));
    for silent in
        [&["-m", model.to_str().unwrap(), "--raw"][..], &["-m", model.to_str().unwrap(), "--chat"], &[]]
    {
        assert_eq!(notes(silent), "", "{silent:?}");
    }
}

#[test]
fn stdin_follows_the_prompt() {
    let model = fixture();
    let model = model.to_str().unwrap();
    let answer = |args: &[&str], input: &str| out(&piped(&[&GREEDY[..], args].concat(), input));
    let whole = out(&run(&[&GREEDY[..], &[model, "Tell a story of:\n\na fox\na kite"]].concat()));
    let (begin, rest) = ("Tell a story of:", "a fox\na kite\n");
    assert_eq!(answer(&[model, begin], rest), whole);
    assert_eq!(answer(&["-m", model, begin, "-f", "-"], rest), whole);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rest.txt");
    std::fs::write(&path, rest).unwrap();
    let file = || std::fs::File::open(&path).unwrap();
    assert_eq!(out(&chaski(&GREEDY).args([model, begin]).stdin(file()).output().unwrap()), whole);
    assert_eq!(answer(&[model, begin, "-f", path.to_str().unwrap()], "not read"), whole);
    // A text that is continued as is, an empty stdin and a socket change nothing.
    let alone = out(&run(&[&GREEDY[..], &[model, begin]].concat()));
    assert_eq!(answer(&[model, begin], ""), alone);
    assert_eq!(answer(&["--chat", "-p", begin], rest), alone);
    #[cfg(unix)]
    {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let theirs = std::os::fd::OwnedFd::from(theirs);
        assert_eq!(out(&chaski(&GREEDY).args([model, begin]).stdin(theirs).output().unwrap()), alone);
        drop(ours);
    }
}

#[test]
fn a_text_that_is_the_name_of_a_file_is_noted() {
    let model = fixture();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), TEXT).unwrap();
    let o =
        chaski(&["tokenize", model.to_str().unwrap(), "notes.txt"]).current_dir(&folder).output().unwrap();
    assert!(o.status.success() && err(&o).contains("`-f notes.txt` reads the file"), "{}", err(&o));
}

#[test]
fn an_output_that_cannot_be_written_is_reported_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("none/such.gguf");
    let output = output.to_str().unwrap();
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    for args in [
        &["imatrix", "no/such.gguf", "-f", text, "-o", output][..],
        &["bench", "no/such.gguf", "--trace", output],
        &["logits", "no/such.gguf", "--tokens", "1", "-o", output],
    ] {
        let o = run(args);
        assert_eq!(o.status.code(), Some(1), "{args:?}: {}", err(&o));
        assert!(err(&o).contains(&format!("`{output}` was not written")), "{args:?}: {}", err(&o));
    }
}
