//! Two servers behind routers, as `check.py` tries them, in full runs (`CHASKI_TEST_FULL=1`), since the routers are
//! installed from the net.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

#[test]
fn conversations_keep_their_server_and_no_request_is_lost() {
    if std::env::var_os("CHASKI_TEST_FULL").is_none() {
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/routers");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("routers");
    let install = "python3 -m venv \"$0\" && \"$0/bin/pip\" install -q -r \"$1\"";
    let installed =
        Command::new("sh").arg("-c").arg(install).arg(&folder).arg(here.join("requirements.txt")).status();
    if !installed.is_ok_and(|status| status.success()) {
        let why = "SKIPPED conversations_keep_their_server: for want of python3 with venv, or of the net";
        // Only macros are captured.
        writeln!(std::io::stderr(), "{why}").unwrap();
        return;
    }
    let mut check = Command::new(folder.join("bin/python"));
    let status = check.arg(here.join("check.py")).arg(env!("CARGO_BIN_EXE_chaski")).status();
    assert!(status.unwrap().success());
}
