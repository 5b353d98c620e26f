//! The fuzz targets of checkpoints with random changes of their seeds.

#[path = "fuzz/bodies.rs"]
mod bodies;
#[path = "../../../fuzz/drive.rs"]
mod drive;

#[test]
fn folder_tokenizers() {
    drive::drive("folder_tokenizer", bodies::folder_tokenizer);
}

#[test]
fn folders_of_mlc() {
    for entry in std::fs::read_dir("../../fuzz/seeds/mlc").unwrap() {
        let path = entry.unwrap().path();
        bodies::open_mlc(&std::fs::read(&path).unwrap())
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    drive::drive("mlc", bodies::mlc);
}
