//! The fuzz target of the preprocessor with random changes of its seeds.
#![cfg(feature = "jinja")]

#[path = "fuzz/body.rs"]
mod body;
#[path = "../../../fuzz/drive.rs"]
mod drive;

#[test]
fn texts() {
    drive::drive("wgsl_pre", body::texts);
}
