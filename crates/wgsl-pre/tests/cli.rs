//! The command: its output and its exit codes.
#![cfg(feature = "cli")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A temporary directory of a test, removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("wgsl-pre-{}-{name}", std::process::id()));
        let dir = Self(path);
        for (file, text) in files {
            let path = dir.0.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    /// Exit code, standard output and standard error of a run in this directory.
    fn run(&self, args: &[&str], stdin: &str) -> (i32, String, String) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_wgsl-pre"))
            .args(args)
            .current_dir(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The command does not read its input if it rejects its arguments.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn directives_with_macros_and_directories() {
    let dir = Dir::new(
        "directives",
        &[
            ("shaders/main.wgsl", "#include \"near.wgsl\"\n#include \"lib.wgsl\"\nconst n = N;\n"),
            ("shaders/near.wgsl", "// near\n"),
            ("lib/lib.wgsl", "#ifdef FAST\n// fast\n#endif\n"),
        ],
    );
    let expected = (0, "// near\n// fast\nconst n = 4;\n".to_owned(), String::new());
    assert_eq!(dir.run(&["-D", "N=4", "-DFAST", "-I", "lib", "shaders/main.wgsl"], ""), expected);

    assert_eq!(
        dir.run(&["-DN=4", "-Ilib", "-o", "out.wgsl", "shaders/main.wgsl"], ""),
        (0, String::new(), String::new())
    );
    assert_eq!(std::fs::read_to_string(dir.0.join("out.wgsl")).unwrap(), "// near\nconst n = 4;\n");
}

#[test]
fn templates_with_variables() {
    let dir = Dir::new(
        "templates",
        &[
            (
                "a.jinja",
                "{% include 'b.jinja' %}\nconst n = {{ n | u32 }};\n#ifdef X\nconst x = X;\n#endif\n",
            ),
            ("inc/b.jinja", "// {{ name }}\n"),
            ("vars.json", "{\"n\": 3, \"name\": \"b\"}"),
            ("list.json", "[1]"),
        ],
    );
    let args = ["--jinja", "-I", "inc", "--vars", "vars.json", "-D", "X=1", "a.jinja"];
    assert_eq!(dir.run(&args, ""), (0, "// b\nconst n = 3u;\nconst x = 1;\n".to_owned(), String::new()));
    assert_eq!(dir.run(&["--jinja", "-"], "{{ 1 | f32 }}"), (0, "1.0f\n".to_owned(), String::new()));

    let (code, _, stderr) = dir.run(&["--jinja", "-I", "inc", "a.jinja"], "");
    assert_eq!(
        (code, &*stderr),
        (1, "error: b.jinja:1:7: 'name' is undefined\n  included from a.jinja:1:4\n")
    );
    let (code, _, stderr) = dir.run(&["--jinja", "--vars", "list.json", "a.jinja"], "");
    assert_eq!((code, &*stderr), (2, "error: the variables must be a JSON object\n"));
    let (code, _, stderr) = dir.run(&["--jinja", "-"], "a\n#foo\n");
    assert_eq!((code, &*stderr), (1, "error: <stdin> (rendered):2:1: unknown directive `#foo`\n"));
}

#[test]
fn errors_in_the_text_exit_with_1_and_wrong_usage_with_2() {
    let dir = Dir::new("errors", &[("bad.wgsl", "#include \"worse.wgsl\"\n"), ("worse.wgsl", "\n#foo\n")]);
    let (code, stdout, stderr) = dir.run(&["bad.wgsl"], "");
    assert_eq!((code, &*stdout), (1, ""));
    assert_eq!(stderr, "error: worse.wgsl:2:1: unknown directive `#foo`\n  included from bad.wgsl:1\n");

    assert_eq!(dir.run(&["-", "-D", "A=2"], "A\n"), (0, "2\n".to_owned(), String::new()));
    for args in
        [&[][..], &["missing.wgsl"], &["-D", "1=2", "bad.wgsl"], &["--vars", "x", "bad.wgsl"], &["--what"]]
    {
        let (code, stdout, stderr) = dir.run(args, "");
        assert_eq!((code, &*stdout), (2, ""), "{args:?}");
        assert!(stderr.starts_with("error: "), "{args:?}: {stderr}");
    }
    let (code, _, stderr) = dir.run(&["-o", "no/such/dir", "-"], "a\n");
    assert_eq!(code, 2);
    assert!(stderr.starts_with("error: no/such/dir: "), "{stderr}");
}

#[test]
fn help_has_examples() {
    let dir = Dir::new("help", &[("a", "")]);
    let (code, stdout, _) = dir.run(&["--help"], "");
    assert_eq!(code, 0);
    assert!(stdout.contains("Examples:") && stdout.contains("Exit codes:"), "{stdout}");
}
