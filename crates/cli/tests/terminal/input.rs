//! Typed and pasted input, its history, and signals.

use ptyprocess::Signal;

use crate::Home;

const SHORT: [&str; 2] = ["-n", "6"];

#[test]
fn quotes_hold_several_lines_and_ctrl_d_leaves() {
    let home = Home::new();
    let mut t = home.chat(&SHORT);
    t.keys("\"\"\"\r");
    t.wait("... ");
    t.keys("Tell me\r");
    t.wait("... ");
    t.keys("/a story\r");
    t.wait("... ");
    t.line("\"\"\"");
    assert!(t.line("/show").contains(" 2 messages"));
    t.line("/save c.json");
    let saved = std::fs::read_to_string(home.path("c.json")).unwrap();
    assert!(saved.contains(r#""content": "Tell me\n/a story""#), "{saved}");
    // A text left half way is in the history.
    t.keys("\"\"\"\rhalf\r");
    t.wait("half");
    t.wait("... ");
    t.keys("\x04");
    assert_eq!(t.exit(), 0);
    assert_eq!(home.history(), ["\"\"\"Tell me\\n/a story\"\"\"", "/show", "/save c.json", "\"\"\"\\nhalf"]);
}

#[test]
fn pasted_lines_are_taken_whole_or_one_by_one() {
    let home = Home::new();
    let mut t = home.chat(&SHORT);
    // With marks: one message, sent by a key.
    t.keys("\x1b[200~one\ntwo\x1b[201~");
    t.wait("two");
    t.line("");
    assert!(t.line("/show").contains(" 2 messages"));
    t.line("/clear");
    // Without marks: each line is a message, and the last one waits for its end.
    t.keys("alpha\rbeta\rgamma\rdel");
    for word in ["alpha", "beta", "gamma"] {
        t.wait(word);
        t.wait("\n>>> ");
    }
    t.wait("del");
    t.line("ta");
    assert!(t.line("/show").contains(" 8 messages"));
    assert_eq!(home.history(), ["one\\ntwo", "/show", "/clear", "alpha", "beta", "gamma", "delta", "/show"]);
}

#[test]
fn a_long_unmarked_paste_during_an_answer_loses_nothing() {
    let home = Home::new();
    let mut t = home.chat(&["-n", "30"]);
    // More than what is read ahead and the terminal's own buffer of 4096 bytes hold.
    let lines: Vec<String> = (0..80).map(|i| format!("/system line {i} {}", "x".repeat(80))).collect();
    t.keys(&format!("Hello\r{}\r", lines.join("\r")));
    t.wait("system = line 79");
    t.wait("\n>>> ");
    assert_eq!(home.history()[0], "Hello");
    assert_eq!(home.history()[1..], lines);
}

#[test]
fn two_sessions_share_a_history_and_a_closed_terminal_loses_nothing() {
    let home = Home::new();
    let (mut a, mut b) = (home.chat(&SHORT), home.chat(&SHORT));
    a.line("/set temp 0.1");
    b.line("/set temp 0.2");
    a.line("/set temp 0.3");
    // In the middle of an answer.
    b.keys("Hello\r");
    b.wait("Hello\n");
    drop((a, b));
    assert_eq!(home.history(), ["/set temp 0.1", "/set temp 0.2", "/set temp 0.3", "Hello"]);
    let mut c = home.chat(&SHORT);
    // The second key up brings the line of the other session.
    c.keys("\x1b[A\x1b[A");
    c.wait("/set temp 0.3");
    c.keys("\r");
    c.wait("temp = 0.3");
}

#[test]
fn ctrl_c_at_the_prompt_leaves_the_chat_open() {
    let home = Home::new();
    let mut t = home.chat(&SHORT);
    t.keys("half a line\x03");
    t.wait("Use Ctrl-D or /bye to exit.");
    t.wait("\n>>> ");
    assert!(t.line("/show").contains(" 0 messages"));
    t.keys("/bye\r");
    assert_eq!(t.exit(), 0);
}

#[test]
fn signals_end_the_program_with_their_codes() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let home = Home::new();
        // At the prompt, and in an answer.
        let mut at_prompt = home.chat(&SHORT);
        at_prompt.signal(signal);
        assert_eq!(at_prompt.exit(), code);
        let mut answering = home.chat(&["--ignore-eos"]);
        answering.keys("Hello\r");
        answering.wait("Hello\n");
        answering.wait(" ");
        answering.signal(signal);
        assert_eq!(answering.exit(), code);
    }
}
