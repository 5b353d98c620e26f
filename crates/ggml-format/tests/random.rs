//! The fuzz targets of GGUF files and importance matrices with random changes of their seeds.

#[path = "../../../fuzz/drive.rs"]
mod drive;
#[path = "common/visit.rs"]
mod visit;

#[test]
fn files() {
    drive::drive("gguf", visit::any_length);
}

#[test]
fn importance_matrices() {
    drive::drive("imatrix", visit::imatrix);
}
