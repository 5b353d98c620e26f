//! The SDKs that programs use: `clients/check.py` with the versions of `clients/requirements.txt`, in full runs
//! (`CHASKI_TEST_FULL=1`), since they are installed from the net.

use std::path::Path;
use std::process::Command;

use crate::cases::say;
use crate::serve::Setup;

#[test]
fn sdks_of_openai_anthropic_and_ollama() {
    if std::env::var_os("CHASKI_TEST_FULL").is_none() {
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/clients");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    let python = folder.join("bin/python");
    let mut install = Command::new("sh");
    let requirements = here.join("requirements.txt");
    install
        .arg("-c")
        .arg("python3 -m venv \"$0\" && \"$0/bin/pip\" install -q -r \"$1\"")
        .arg(&folder)
        .arg(requirements);
    if !install.status().is_ok_and(|status| status.success()) {
        return say(
            "SKIPPED sdks_of_openai_anthropic_and_ollama: for want of python3 with venv, or of the net",
        );
    }
    // Its notation of tool calls is known, and it takes system messages.
    let mut setup = Setup::built_in(4);
    setup.chat_template(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                         {% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}\
                         {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    );
    setup.config.any_model = Some(false);
    let running = setup.start();
    let status = Command::new(python).arg(here.join("check.py")).arg(&running.url).status();
    assert!(status.expect("python was installed").success());
}
