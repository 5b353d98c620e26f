//! The SDKs that programs use: `clients/check.py` with the versions of `clients/requirements.txt`, and LiteLLM with its
//! own, in full runs (`CHASKI_TEST_FULL=1`), since they are installed from the net.

use std::path::Path;
use std::process::Command;

use chaski::embedding::Pooling;

use crate::cases::say;
use crate::serve::Setup;

/// Runs a script with what these requirements install against a server; without the net the test counts as skipped.
fn check(test: &str, folder: &str, requirements: &str, script: &str) {
    if std::env::var_os("CHASKI_TEST_FULL").is_none() {
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/clients");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let python = folder.join("bin/python");
    let mut install = Command::new("sh");
    install
        .arg("-c")
        .arg("python3 -m venv \"$0\" && \"$0/bin/pip\" install -q -r \"$1\"")
        .arg(&folder)
        .arg(here.join(requirements));
    if !install.status().is_ok_and(|status| status.success()) {
        return say(&format!("SKIPPED {test}: for want of python3 with venv, or of the net"));
    }
    // Its notation of tool calls is known, and it takes system messages.
    let mut setup = Setup::built_in(4);
    setup.chat_template(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                         {% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}\
                         {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    );
    setup.config.any_model = Some(false);
    setup.options.pooling = Some(Pooling::Mean);
    let running = setup.start();
    let status = Command::new(python).arg(here.join(script)).arg(&running.url).status();
    assert!(status.expect("python was installed").success());
}

#[test]
fn sdks_of_openai_anthropic_and_ollama() {
    check("sdks_of_openai_anthropic_and_ollama", "clients", "requirements.txt", "check.py");
}

#[test]
fn litellm_as_a_library() {
    check("litellm_as_a_library", "litellm", "requirements-litellm.txt", "litellm_check.py");
}
