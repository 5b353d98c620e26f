//! Runs the examples and checks their output. `cargo test` builds them with the tests, but `--test examples` does not:
//! run `cargo build --workspace --all-features --examples` first.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn run(name: &str, stdin: &str) -> String {
    // target/PROFILE/deps/examples-HASH is this program.
    let exe = std::env::current_exe().expect("a test has a path");
    let profile: PathBuf = exe.ancestors().nth(2).expect("a test lies in deps").into();
    let path = profile.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let mut child = Command::new(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}; see the top of this file", path.display()));
    // A program that does not read its input may have ended.
    let _ = child.stdin.take().expect("it is piped").write_all(stdin.as_bytes());
    let out = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{name}: {}\n{stderr}", out.status);
    String::from_utf8(out.stdout).expect("examples print text")
}

#[test]
fn examples_do_what_they_say() {
    let simple = run("simple", "");
    assert!(simple.lines().count() > 1 && simple.contains("n_token: 96"), "{simple}");
    let served = run("serve", "");
    for prompt in ["Once upon a time", "Once upon a hill", "The little dog", "Lily and Tom"] {
        assert!(served.contains(prompt), "{prompt}: {served}");
    }
    assert_eq!(served.matches(" tokens, ").count(), 4, "{served}");
    let constrained = run("constrained", "");
    assert!(["cat", "dog", "mouse"].iter().any(|a| constrained.contains(a)), "{constrained}");
    let custom = run("custom_sampler", "");
    assert!(custom.trim().len() > "Once upon a time".len() + 20, "{custom}");
    let embed = run("embed", "");
    // Each text is most similar to itself.
    assert_eq!((embed.lines().count(), embed.matches(" 1.000").count()), (3, 3), "{embed}");
    let chat = run("chat", "Tell me a story.\nAnd then?\n");
    let cached: Vec<&str> = chat.lines().filter(|l| l.starts_with('(')).collect();
    assert!(cached.len() == 2 && cached[0].starts_with("(0 ") && !cached[1].starts_with("(0 "), "{chat}");
    let own = run("own_device", "");
    assert!(own.starts_with("Once upon a time") && own.contains(" frames meanwhile, on "), "{own}");
}
