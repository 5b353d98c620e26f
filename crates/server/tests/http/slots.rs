//! The states of slots in files: saved, restored into another server, erased.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use chaski_server::{Key, Level};
use serde_json::{Value, json};

use crate::serve::{Answer, Running, Setup};

const PROMPT: &str = "Once upon a time there was a little fox who lived in a deep forest and liked to sing.";

/// A folder that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NTH: AtomicU32 = AtomicU32::new(0);
        let name = format!("slots-{}-{}", std::process::id(), NTH.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn server(folder: &Folder, n_seq: u32) -> Running {
    let mut setup = Setup::built_in(n_seq);
    setup.config.slot_save_path = Some(folder.0.clone());
    setup.start()
}

fn act(running: &Running, slot: &str, action: &str, body: &Value) -> Answer {
    running.post(&format!("/slots/{slot}?action={action}"), body)
}

fn done(running: &Running, slot: u32, action: &str, name: &str) -> Value {
    let answer = act(running, &slot.to_string(), action, &json!({"filename": name}));
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.body["id_slot"], slot);
    answer.body
}

/// Text and cached tokens of an answer.
fn ask(running: &Running, prompt: &str, slot: u32) -> (String, u64) {
    let body = json!({"prompt": prompt, "temperature": 0, "n_predict": 16, "id_slot": slot});
    let answer = running.post("/completion", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let cached = answer.body["timings"]["cache_n"].as_u64().expect("a number");
    (answer.body["content"].as_str().expect("a text").to_owned(), cached)
}

#[test]
fn a_slot_comes_back_in_another_server_with_the_same_text() {
    let folder = Folder::new();
    let first = server(&folder, 2);
    let (text, cached) = ask(&first, PROMPT, 1);
    assert_eq!(cached, 0);
    let saved = done(&first, 1, "save", "fox.bin");
    let n_saved = saved["n_saved"].as_u64().expect("a number");
    assert!(n_saved > 30, "{saved}");
    assert_eq!(saved["n_written"], std::fs::metadata(folder.file("fox.bin")).expect("a file").len());
    assert!(saved["timings"]["save_ms"].as_f64() > Some(0.0) && saved["filename"] == "fox.bin");
    assert_eq!(folder.names(), ["fox.bin"]);
    drop(first);

    let second = server(&folder, 2);
    let restored = done(&second, 0, "restore", "fox.bin");
    assert_eq!((&restored["n_restored"], &restored["n_read"]), (&saved["n_saved"], &saved["n_written"]));
    assert!(restored["timings"]["restore_ms"].is_number());
    let (again, cached) = ask(&second, PROMPT, 1);
    assert!(cached > 15, "{cached} of the prompt");
    assert_eq!(again, text);
    // The answer is part of it, and what follows goes on from there.
    let longer = format!("{PROMPT}{text}");
    let (_, cached) = ask(&second, &longer, 0);
    assert!(cached + 1 >= n_saved, "{cached} of {n_saved}");
    // A restored state can be saved.
    done(&second, 0, "restore", "fox.bin");
    assert_eq!(done(&second, 0, "save", "copy.bin")["n_saved"], saved["n_saved"]);
    let bytes = |name| std::fs::read(folder.file(name)).expect("a file");
    assert_eq!(bytes("copy.bin"), bytes("fox.bin"));
}

#[test]
fn an_erased_slot_leaves_nothing_but_what_others_share() {
    let folder = Folder::new();
    let running = server(&folder, 2);
    ask(&running, PROMPT, 1);
    assert!(ask(&running, PROMPT, 1).1 > 15);
    let erased = act(&running, "1", "erase", &Value::Null).body;
    assert!(erased["n_erased"].as_u64() > Some(30) && erased["id_slot"] == 1, "{erased}");
    assert_eq!(ask(&running, PROMPT, 1).1, 0);
    // Of two conversations with the same beginning, one goes.
    let other = format!("{PROMPT} {}", "The fox met a bear and a wolf and a mouse. ".repeat(3));
    ask(&running, &other, 0);
    act(&running, "0", "erase", &json!({}));
    let (_, cached) = ask(&running, &other, 0);
    assert!((1..40).contains(&cached), "{cached}");
    assert_eq!(act(&running, "0", "erase", &json!({})).status, 200);
    assert_eq!(act(&running, "0", "erase", &json!({})).body["n_erased"], 0);
    // There is nothing to save, and that comes back, too.
    assert_eq!(done(&running, 0, "save", "nothing")["n_saved"], 0);
    assert_eq!(done(&running, 0, "restore", "nothing")["n_restored"], 0);
}

#[test]
fn other_requests_go_on_while_slots_are_saved_and_restored() {
    let folder = Folder::new();
    let running = server(&folder, 2);
    let (text, _) = ask(&running, PROMPT, 1);
    let long =
        json!({"prompt": "A story", "temperature": 0, "n_predict": 150, "ignore_eos": true, "id_slot": 0});
    let alone = running.post("/completion", &long).body["content"].clone();
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| running.post("/completion", &long).body["content"].clone());
        let start = Instant::now();
        while running.get("/load").body["server_load"] != 1 && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        for i in 0..3 {
            done(&running, 1, "save", "fox");
            done(&running, 1, "erase", "fox");
            done(&running, 1, "restore", "fox");
            assert_eq!(ask(&running, PROMPT, 1).0, text, "{i}");
        }
        assert_eq!(beside.join().expect("an answer"), alone);
    });
    // It waited for the request in its own slot.
    assert!(done(&running, 0, "save", "story")["n_saved"].as_u64() > Some(140));
}

#[test]
fn files_that_are_no_state_of_this_model_change_nothing() {
    let folder = Folder::new();
    let running = server(&folder, 2);
    ask(&running, PROMPT, 0);
    done(&running, 0, "save", "good");
    let good = std::fs::read(folder.file("good")).expect("a file");
    let with_digest = |bytes: &[u8]| {
        use sha2::Digest as _;
        [bytes, &sha2::Sha256::digest(bytes)[..]].concat()
    };
    let state = &good[..good.len() - 32];
    let changed = |at: usize, byte: u8| {
        let mut bytes = state.to_vec();
        bytes[at] ^= byte;
        with_digest(&bytes)
    };
    let n_name = u64::from_le_bytes(state[8..16].try_into().expect("eight bytes")) as usize;
    let at_tokens = 16 + n_name;
    let huge = |at: usize| {
        let mut bytes = state.to_vec();
        bytes[at..at + 8].fill(0xff);
        with_digest(&bytes)
    };
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("short", good[..20].to_vec()),
        ("cut", good[..good.len() - 1].to_vec()),
        ("flipped", flipped),
        ("noise", (0..5000_u32).map(|i| ((i * 7919) >> 3) as u8).collect()),
        ("noise, sealed", with_digest(&(0..5000_u32).map(|i| ((i * 7919) >> 3) as u8).collect::<Vec<_>>())),
        ("another mark", changed(0, 1)),
        ("another model", changed(20, 1)),
        ("a name without end", huge(8)),
        ("tokens without end", huge(at_tokens)),
        ("a token out of bounds", changed(at_tokens + 8 + 3, 0x7f)),
        ("less cache", with_digest(&state[..state.len() - 4])),
        ("more cache", with_digest(&[state, &[0; 4]].concat())),
        ("too large", vec![0; 64 << 20]),
    ];
    for (name, bytes) in &files {
        std::fs::write(folder.file(name), bytes).expect("a file");
        let answer = act(&running, "1", "restore", &json!({"filename": name}));
        assert_eq!(answer.status, 400, "{name}: {}", answer.text);
        assert!(
            answer.body["error"]["message"].as_str().is_some_and(|text| text.len() > 20),
            "{}",
            answer.text
        );
    }
    // Another model, whose name is in the file.
    std::fs::write(folder.file("another model"), changed(20, 1)).expect("a file");
    let answer = act(&running, "1", "restore", &json!({"filename": "another model"}));
    assert!(answer.text.contains("but this is"), "{}", answer.text);
    // The slot holds nothing yet, and the good file still works.
    assert_eq!(done(&running, 1, "save", "nothing")["n_saved"], 0);
    act(&running, "0", "erase", &json!({}));
    assert!(done(&running, 1, "restore", "good")["n_restored"].as_u64() > Some(30));
    assert!(ask(&running, PROMPT, 1).1 > 15);
}

#[test]
fn requests_that_cannot_be_are_refused_with_the_reason() {
    let folder = Folder::new();
    let running = server(&folder, 2);
    std::fs::create_dir(folder.file("folder")).expect("a folder");
    for name in
        ["", ".", "..", "../up", "/etc/passwd", "a/b", "a\\b", ".hidden", "a\0b", "nul", "folder", "none"]
    {
        let answer = act(&running, "0", "restore", &json!({"filename": name}));
        assert_eq!((answer.status, &answer.body["error"]["param"]), (400, &json!("filename")), "{name:?}");
    }
    for body in [json!({}), json!({"filename": 3}), json!({"filename": null}), json!([]), json!("x")] {
        for action in ["save", "restore"] {
            assert_eq!(act(&running, "0", action, &body).status, 400, "{body}");
        }
    }
    for (slot, action) in [("2", "save"), ("-1", "save"), ("x", "erase"), ("0", "copy"), ("0", "")] {
        let answer = act(&running, slot, action, &json!({"filename": "a"}));
        assert_eq!((answer.status, &answer.body["error"]["code"]), (400, &json!(400)), "{slot} {action}");
    }
    assert_eq!(running.post("/slots/0", &json!({"filename": "a"})).status, 400);
    assert_eq!(folder.names(), ["folder"]);
    // A folder is in the way of the file.
    assert_eq!(act(&running, "0", "save", &json!({"filename": "folder"})).status, 500);
    assert_eq!(folder.names(), ["folder"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/zero", folder.file("link")).expect("a link");
        assert_eq!(act(&running, "0", "restore", &json!({"filename": "link"})).status, 400);
    }

    // Without the option there is nothing; where keys are required, those of operators are.
    let answer = act(&Setup::built_in(1).start(), "0", "save", &json!({"filename": "a"}));
    assert_eq!((answer.status, &answer.body["error"]["type"]), (501, &json!("not_supported_error")));
    let mut setup = Setup::built_in(1);
    setup.config.slot_save_path = Some(folder.0.clone());
    setup.config.keys = vec![Key::new("ann", "secret"), Key::new("bob", "master").level(Level::Admin)];
    let running = setup.start();
    for (key, status) in [("secret", 403), ("master", 200)] {
        let request = json!({
            "method": "POST",
            "path": "/slots/0?action=erase",
            "headers": {"authorization": format!("Bearer {key}")},
        });
        assert_eq!(running.send(&request).status, status, "{key}");
    }
}

#[test]
fn slots_tell_what_runs_there_and_operators_with_what() {
    let mut setup = Setup::built_in(3);
    setup.config.keys = vec![Key::new("user", "u"), Key::new("operator", "o").level(Level::Admin)];
    let running = setup.start();
    let send = |key: &str, method: &str, path: &str, body: Value| {
        let headers = json!({"authorization": format!("Bearer {key}")});
        running.send(&json!({"method": method, "path": path, "headers": headers, "body": body}))
    };
    let long = json!({"prompt": "Once", "json_schema": {"type": "string", "minLength": 2000}, "temperature": 0,
        "id_slot": 2, "n_predict": 450, "top_k": 7});
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| send("u", "POST", "/completion", long));
        crate::operation::wait_until("it runs", std::time::Duration::from_secs(20), || {
            let slots = send("o", "GET", "/slots", Value::Null).body;
            slots[2]["next_token"][0]["n_decoded"].as_u64() > Some(0)
        });
        let slots = send("o", "GET", "/slots", Value::Null).body;
        let busy: Vec<bool> =
            slots.as_array().expect("a list").iter().map(|s| s["is_processing"] == true).collect();
        assert_eq!(busy, [false, false, true], "{slots}");
        assert_eq!((&slots[2]["prompt"], &slots[2]["params"]["top_k"]), (&json!("Once"), &json!(7)));
        assert!(slots[2]["next_token"][0]["n_remain"].as_u64() < Some(450), "{slots}");
        let slots = send("u", "GET", "/slots", Value::Null).body;
        assert!(slots[2]["id_task"].is_u64() && slots[2].get("params").is_none(), "{slots}");
        assert!(slots[2].get("prompt").is_none() && slots[2].get("next_token").is_none(), "{slots}");
        asked.join().expect("it answers")
    });
    assert_eq!((answer.status, &answer.body["id_slot"]), (200, &json!(2)), "{}", answer.text);
    assert_eq!(send("u", "GET", "/slots?fail_on_no_slot=1", Value::Null).status, 200);
}
