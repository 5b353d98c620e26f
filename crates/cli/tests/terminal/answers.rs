//! Answers on the screen: wrapped, escaped, stopped, and longer than the context.

use std::time::Duration;

use crate::Home;
use crate::pty::{widest, write};

/// A text in one line.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn answers_wrap_at_words_and_follow_the_window() {
    let home = Home::new();
    let mut t = home.chat(&["-n", "60", "--ignore-eos"]);
    let whole = t.line("Tell me a story about a dog.").replace('\n', " ");
    t.resize(30);
    let narrow = t.line("/regen");
    assert!(widest(&narrow) <= 30 && narrow.lines().count() > 4, "{narrow}");
    assert_eq!(words(&narrow), words(&whole));
    // In the middle of an answer: the second half is narrower.
    t.resize(78);
    t.keys("/regen\r");
    t.wait("/regen\n");
    t.wait("\n");
    t.resize(24);
    let rest = t.wait("\n>>> ");
    let rest = rest.trim_end_matches(">>> ").trim();
    assert!(rest.lines().skip(1).all(|line| line.len() <= 24) && rest.lines().count() > 3, "{rest}");
}

#[test]
fn control_characters_of_a_model_and_a_file_are_visible_text() {
    let home = Home::new();
    let mut t = home.chat(&["--regex", "\\x1b\\[2J\\x07"]);
    let answer = t.line("Hi");
    assert_eq!(answer, "\\u{1b}[2J\\u{7}");
    assert!(!t.raw().contains("\x1b[2J") && !t.raw().contains('\x07'));
    t.keys("/bye\r");
    t.exit();
    use ggml_format::GgufWriter;
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").unwrap();
    writer.set("tokenizer.chat_template", "a\x1b]0;title\x07b\n\tc").unwrap();
    let path = home.path("t.gguf");
    write(&path, "");
    std::fs::write(&path, writer.begin(Vec::new()).unwrap().finish().unwrap()).unwrap();
    let mut t = home.command(&["show", "--template", path.to_str().unwrap()], 80);
    t.wait("c\n");
    assert!(t.raw().contains("a\\u{1b}]0;title\\u{7}b\r\n\tc"), "{}", t.raw());
    assert_eq!(t.exit(), 0);
}

#[test]
fn ctrl_c_stops_an_answer_and_a_long_prompt_and_keeps_the_conversation() {
    let home = Home::new();
    let mut t = home.chat(&["--ignore-eos", "-c", "4096", "--chunk", "16"]);
    t.keys("Tell me a story.\r");
    t.wait("story.\n");
    // The first words of the answer.
    t.wait(" ");
    t.wait(" ");
    t.keys("\x03");
    t.wait("\n>>> ");
    assert!(t.line("/show").contains(" 2 messages"));
    write(&home.path("long.txt"), &"Once upon a time there was a dog. ".repeat(300));
    t.line("/read long.txt");
    t.keys("Go on.\r");
    t.wait("Go on.\n");
    std::thread::sleep(Duration::from_millis(400));
    t.keys("\x03");
    t.wait("Stopped before the answer began");
    t.wait("\n>>> ");
    let shown = t.line("/show");
    assert!(shown.contains(" 2 messages") && shown.contains("begins with `long.txt`"), "{shown}");
    t.line("/read");
    t.line("/set n 4");
    t.line("Go on.");
    assert!(t.line("/show").contains(" 4 messages"));
}

#[test]
fn a_conversation_longer_than_the_context_goes_on() {
    let home = Home::new();
    let mut t = home.chat(&["-n", "24", "-c", "128"]);
    t.line("/system Be kind.");
    let question = "Tell me a story about a big dog and a small cat in a red house by the sea.";
    let all = words(&(0..5).map(|_| t.line(question) + "\n").collect::<String>());
    assert!(all.contains("the context of 128 tokens is full: the model no longer sees the "), "{all}");
    let shown = t.line("/show");
    assert!(shown.contains("10 messages, the ") && shown.contains("oldest no longer seen"), "{shown}");
    // An answer that is cut by the end of the context.
    t.line("/set n -1");
    t.line("/set ignore-eos");
    let cut = words(&t.line(question));
    assert!(cut.contains("so the answer is cut; the next message goes on without the oldest ones"), "{cut}");
    t.line("/set n 8");
    assert!(words(&t.line(question)).contains("the model no longer sees the 1"));
    // A message that is longer than the context: both numbers, and nothing is lost.
    let before = t.line("/show");
    let long = words(&t.line(&"dog and ".repeat(120)));
    assert!(
        long.contains("but the context has 128") && long.contains("The conversation is as it was"),
        "{long}"
    );
    assert_eq!(t.line("/show"), before);
    // Without dropping, the chat says what does not fit.
    t.line("/set no-context-drop");
    t.line("/clear");
    let answers: Vec<String> = (0..8).map(|_| words(&t.line(question))).collect();
    assert!(answers.iter().any(|a| a.contains("but the context has 128")), "{answers:?}");
    t.line("/set no-context-drop false");
    assert!(!t.line(question).contains("error"));
}

#[test]
fn messages_break_between_words() {
    let home = Home::new();
    // As many columns as make the terminal break each of these within a word.
    for columns in [37, 50, 64] {
        let mut t = home.chat(&["-c", "128"]);
        t.resize(columns);
        let unknown = t.line("/nosuch");
        t.line("/set n -1");
        t.line("/set ignore-eos");
        let note = t.line("Tell me a story about a dog.");
        let note = note.split_once("note: ").expect("the answer is cut").1;
        for (said, whole) in [
            (
                &*unknown,
                "There is no command `/nosuch`; /help lists them. A message that begins with `/` goes between \"\"\".",
            ),
            (
                note,
                "the context of 128 tokens is full, so the answer is cut; the next message goes on without the oldest ones",
            ),
        ] {
            assert!(widest(said) <= columns.into() && said.lines().count() > 1, "{columns}: {said}");
            assert_eq!(words(said), whole, "{columns}");
        }
    }
    let mut t = home.command(&["run", "no/such.gguf", "Hello"], 30);
    let said = t.wait("check the path");
    assert!(widest(&said) <= 30 && said.contains("no/such.gguf"), "{said}");
}

#[test]
fn a_dumb_terminal_gets_no_colours() {
    for (term, has_colours) in [("xterm", true), ("dumb", false)] {
        let home = Home::new();
        let mut t = home.command_in(term, &["run", "none.gguf", "Hello"], 80);
        t.wait("check the path");
        assert_eq!(t.raw().contains('\x1b'), has_colours, "{}", t.raw());
        assert_eq!(t.exit(), 3);
    }
}
