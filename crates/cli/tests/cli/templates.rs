//! Chat templates from outside: which one is taken, and what it is given.

use std::path::Path;

use crate::{GREEDY, chaski, err, fixture, json, out, run};

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
    assert!(!o.status.success() && err(&o).contains("is not a JSON list of tools"), "{}", err(&o));
}

/// The default model with other chat templates: their keys behind `tokenizer.chat_template`, and their texts.
fn with_templates(folder: &Path, templates: &[(&str, &str)]) -> String {
    rewritten(folder, templates, &[])
}

/// The same with more tensors, each of four zeros.
pub(crate) fn rewritten(folder: &Path, templates: &[(&str, &str)], more: &[&str]) -> String {
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
    for name in more {
        head.tensor(name, &[4], ggml_format::GgmlType::F32).unwrap();
    }
    let mut data = head.begin(Vec::new()).unwrap();
    for t in old.tensors() {
        data.write(&t.name, &bytes[t.offset as usize..][..t.n_byte as usize]).unwrap();
    }
    for name in more {
        data.write(name, &[0; 16]).unwrap();
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
    assert!(o.status.success() && err(&o).contains("note: --tools has no effect"), "{}", err(&o));
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
        o.status.success() && err(&o).contains("note: the model has no usable chat template"),
        "{}",
        err(&o)
    );
    let o = run_with(&["Hi"]);
    assert!(!o.status.success() && err(&o).contains("chat template, line 1"), "{}", err(&o));
    assert!(run_with(&["--raw", "Hi"]).status.success());
    assert!(out(&run(&["show", &model])).contains("has an unreadable chat template"));
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
