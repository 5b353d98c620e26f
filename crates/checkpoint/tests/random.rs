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

#[test]
fn safetensors_files() {
    drive::drive("safetensors", bodies::safetensors);
}

/// Seeds of folders open, so that their changes reach everything behind the headers.
#[test]
fn seeds_of_folders_are_models() {
    let mut n = 0;
    for entry in std::fs::read_dir("../../fuzz/seeds/safetensors").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "folder") {
            let bytes = std::fs::read(&path).unwrap();
            let opened = bodies::folder_of(bytes.strip_prefix(b"\0").unwrap());
            assert!(opened.is_ok(), "{}: {:?}", path.display(), opened.err());
            n += 1;
        }
    }
    assert_eq!(n, 6);
}
