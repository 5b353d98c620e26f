//! The fuzz target with random changes of its seeds.

#[path = "fuzz/bodies.rs"]
mod bodies;
#[path = "../../../fuzz/drive.rs"]
mod drive;

#[test]
fn names_headers_and_lists() {
    drive::drive("hub", bodies::hub);
}
