//! Each command of the chat.

use serde_json::{Value, json};

use crate::Home;
use crate::pty::write;

fn saved(home: &Home) -> Value {
    serde_json::from_slice(&std::fs::read(home.path("c.json")).unwrap()).unwrap()
}

#[test]
fn conversations_are_saved_loaded_undone_and_answered_again() {
    let home = Home::new();
    let mut t = home.chat(&["-n", "8"]);
    assert_eq!(t.line("/regen"), "There is no message to answer.");
    assert_eq!(t.line("/undo"), "There is no message to remove.");
    let first = t.line("Tell me about a dog.");
    assert_eq!(t.line("/regen"), first);
    t.line("/system Be kind.");
    assert_eq!(t.line("/save c.json"), "Saved 2 messages as `c.json`.");
    let all = saved(&home);
    assert_eq!(all[0], json!({"role": "system", "content": "Be kind."}));
    assert_eq!(all[1], json!({"role": "user", "content": "Tell me about a dog."}));
    assert_eq!((&all[2]["role"], all.as_array().unwrap().len()), (&json!("assistant"), 3));
    // The editor replaces the word.
    let edited = t.line("/edit");
    assert!(edited.starts_with("> Tell me about a frog.") && edited.len() > 30, "{edited}");
    assert_eq!(t.line("/edit"), "Nothing is changed.");
    t.line("Go on.");
    assert_eq!(t.line("/undo"), "Removed: Go on.");
    t.line("/save c.json");
    assert_eq!(saved(&home)[1]["content"], "Tell me about a frog.");
    t.line("/clear");
    assert!(t.line("/show").contains(" 0 messages"));
    assert_eq!(t.line("/load c.json"), "Loaded 2 messages with a system prompt from `c.json`.");
    assert!(t.line("/show").contains(" 2 messages"));
    // Errors lose nothing.
    write(&home.path("notes.txt"), "my notes");
    assert!(t.line("/load notes.txt").contains("expected a JSON list of messages"));
    assert!(t.line("/save notes.txt").contains("exists and is not a conversation"));
    assert!(t.line("/save no/such/folder.json").contains("was not written"));
    assert!(t.line("/load none.json").contains("`none.json` cannot be read"));
    assert_eq!(std::fs::read_to_string(home.path("notes.txt")).unwrap(), "my notes");
    assert!(t.line("/show").contains(" 2 messages"));
    t.keys("/quit\r");
    assert_eq!(t.exit(), 0);
}

#[test]
fn options_files_and_models_change_during_a_chat() {
    let home = Home::new();
    let mut t = home.chat(&["-n", "4", "--top-k", "30"]);
    assert_eq!(t.line("/set temp 0.5"), "temp = 0.5");
    assert_eq!(t.line("/set temp 0"), "temp = 0");
    assert!(t.line("/set c 1024").contains("cannot be changed during a chat"));
    assert_eq!(t.line("/set temp warm"), "`warm` is no value of `temp`: expected a number");
    assert_eq!(t.line("/set nothing 1"), "There is no option `nothing`; `chaski run --help` lists them.");
    assert_eq!(t.line("/system"), "There is no system prompt; /system TEXT sets one.");
    assert_eq!(t.line("/system Be kind."), "system = Be kind.");
    let shown = t.line("/show");
    for (name, value) in [("temp", "0.0"), ("top-k", "30"), ("n-predict", "4"), ("system", "Be kind.")] {
        let rows: Vec<&str> = shown.lines().filter(|l| l.split_whitespace().next() == Some(name)).collect();
        assert_eq!(rows.len(), 1, "{shown}");
        assert_eq!(rows[0].split_whitespace().skip(1).collect::<Vec<_>>().join(" "), value);
    }
    assert_eq!(t.line("/set system"), "system is cleared.");
    // A file before the message.
    write(&home.path("a b.txt"), "The dog is red.\n");
    assert!(t.line("/read none.txt").contains("`none.txt` cannot be read"));
    assert!(t.line("/read a b.txt").contains("goes before the next message"));
    t.line("Which colour?");
    t.line("/save c.json");
    assert_eq!(saved(&home)[0]["content"], "The dog is red.\n\nWhich colour?");
    // Another model, which is the same.
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../chaski/model/storyteller-Q4_K_M.gguf");
    assert!(t.line("/model").contains("llama"));
    let refused = t.line("/model c.json");
    assert!(refused.contains("error") && refused.contains("The chat goes on with"), "{refused}");
    t.keys(&format!("/model {model}\r"));
    t.wait("Type a message");
    t.wait("\n>>> ");
    let shown = t.line("/show");
    assert!(shown.contains("storyteller-Q4_K_M.gguf") && shown.contains(" 2 messages"), "{shown}");
    t.line("Again.");
    assert!(t.line("/show").contains(" 4 messages"));
    // The list of commands.
    let help = t.line("/help");
    assert!(help.contains("/regen") && help.lines().skip(1).all(|line| line.starts_with("  ")), "{help}");
    assert!(t.line("/nonsense").contains("There is no command `/nonsense`"));
}

#[test]
fn options_about_a_name_are_not_for_another_model() {
    let home = Home::new();
    let mut t = home.chat(&["--offline", "--revision", "v2", "--hf-file", "a.gguf"]);
    let told = t.line("/model hf:org/other:Q4_0");
    assert!(told.contains("--revision and --hf-file of the command line: not for another model"), "{told}");
    assert!(told.contains("`hf:org/other:Q4_0` is not in the cache"), "{told}");
    assert!(!t.line("/model none.gguf").contains("--revision"));
}
