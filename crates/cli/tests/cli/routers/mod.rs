//! Two servers behind routers, as `check.py` tries them, in full runs (`CHASKI_TEST_FULL=1`), since the routers are
//! installed from the net.

use std::path::Path;
use std::process::Command;

use crate::{full, skip};

/// Tries routers of these requirements; without the net the test counts as skipped.
fn check(folder: &str, requirements: &str, routers: &[&str]) {
    if !full() {
        return skip("a full run (CHASKI_TEST_FULL=1), which installs routers");
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/routers");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let install = "python3 -m venv \"$0\" && \"$0/bin/pip\" install -q -r \"$1\"";
    let installed =
        Command::new("sh").arg("-c").arg(install).arg(&folder).arg(here.join(requirements)).status();
    if !installed.is_ok_and(|status| status.success()) {
        return skip("python3 with venv, or of the net");
    }
    let mut check = Command::new(folder.join("bin/python"));
    let status = check.arg(here.join("check.py")).arg(env!("CARGO_BIN_EXE_chaski")).args(routers).status();
    assert!(status.unwrap().success());
}

#[test]
fn conversations_keep_their_server_and_no_request_is_lost() {
    check("routers", "requirements.txt", &[]);
}

#[test]
fn litellms_proxy_loses_no_request() {
    check("routers-litellm", "requirements-litellm.txt", &["litellm"]);
}
