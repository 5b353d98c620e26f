//! The fuzz target with random changes of its seeds.

#[path = "fuzz/bodies.rs"]
mod bodies;
#[path = "../../../fuzz/drive.rs"]
mod drive;

#[test]
fn connections() {
    drive::drive("wire", bodies::wire);
}
