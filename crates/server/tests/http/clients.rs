//! The SDKs that programs use: `clients/check.py` with the versions of `clients/requirements.txt`, LiteLLM, frameworks
//! and those of JavaScript with their own, in full runs (`CHASKI_TEST_FULL=1`), since they are installed from the net.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chaski::embedding::Pooling;

use crate::cases::say;
use crate::pulls::Shop;
use crate::serve::Setup;

/// Counts the test as skipped.
fn skip(why: &str) {
    let thread = std::thread::current();
    say(&format!("SKIPPED {}: for want of {why}", thread.name().unwrap_or_default()));
}

/// True in full runs, which may take their time.
pub(crate) fn has_time() -> bool {
    std::env::var_os("CHASKI_TEST_FULL").is_some_and(|full| full != "0")
}

/// The same; otherwise the test counts as skipped.
pub(crate) fn is_full() -> bool {
    let is_full = has_time();
    if !is_full {
        skip("a full run (CHASKI_TEST_FULL=1)");
    }
    is_full
}

/// The folder of the scripts.
fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/clients")
}

/// Runs a script with what these requirements install against a server; without the net the test counts as skipped.
fn check(folder: &str, requirements: &str, script: &str) {
    if !is_full() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let python = folder.join("bin/python");
    let mut install = Command::new("sh");
    install
        .arg("-c")
        .arg("python3 -m venv \"$0\" && \"$0/bin/pip\" install -q -r \"$1\"")
        .arg(&folder)
        .arg(here().join(requirements));
    if !install.status().is_ok_and(|status| status.success()) {
        return skip("python3 with venv, or of the net");
    }
    run(Command::new(python).arg(here().join(script)));
}

/// Runs a command against a server, whose address is its last argument.
fn run(command: &mut Command) {
    // Its notation of tool calls is known, and it takes system messages.
    let mut setup = Setup::built_in(4);
    setup.chat_template(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                         {% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}\
                         {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    );
    setup.config.any_model = Some(false);
    setup.config.kept_responses = 4;
    setup.options.pooling = Some(Pooling::Mean);
    let shop = Shop::new();
    shop.is_open.store(true, Ordering::Relaxed);
    setup.config.store = Some(shop.clone());
    setup.config.offers = Some(Arc::new(move || shop.offers()));
    let running = setup.start();
    assert!(command.arg(&running.url).status().expect("it was installed").success());
}

#[test]
fn sdks_of_openai_anthropic_and_ollama() {
    check("clients", "requirements.txt", "check.py");
}

#[test]
fn litellm_as_a_library() {
    check("litellm", "requirements-litellm.txt", "litellm_check.py");
}

#[test]
fn frameworks_of_python() {
    check("frameworks", "requirements-frameworks.txt", "frameworks_check.py");
}

#[test]
fn sdks_of_javascript() {
    if !is_full() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("js");
    let copy = |name: &str| std::fs::copy(here().join("js").join(name), folder.join(name));
    let copied =
        std::fs::create_dir_all(&folder).and_then(|()| copy("package.json")).and_then(|_| copy("check.mjs"));
    copied.expect("the folder of the target can be written");
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-audit", "--no-fund"]).current_dir(&folder);
    if !install.status().is_ok_and(|status| status.success()) {
        return skip("node with npm, or of the net");
    }
    run(Command::new("node").arg(folder.join("check.mjs")));
}
