//! The fuzz targets of checkpoints with random changes of their seeds.

#[path = "fuzz/bodies.rs"]
mod bodies;
#[path = "../../../fuzz/drive.rs"]
mod drive;

#[test]
fn folder_tokenizers() {
    drive::drive("folder_tokenizer", bodies::folder_tokenizer);
}
