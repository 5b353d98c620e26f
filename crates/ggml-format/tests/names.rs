//! Names of files in split sets, and of types of files.

use ggml_format::{FILE_TYPES, FileType, SplitName};

/// Added to the id of a type that was guessed from the tensors.
const GUESSED: u32 = 1024;

#[test]
fn names_of_no_split_set_are_refused() {
    for name in [
        "model.gguf",
        "-00001-of-00002.bin",
        "m-00000-of-00002.gguf",
        "m-00003-of-00002.gguf",
        "m-0001-of-00002.gguf",
        "m-+0001-of-00002.gguf",
        "m00001-of-00002.gguf",
        "00001-of-00002.gguf",
        "é0001-of-00002.gguf",
        "",
    ] {
        assert_eq!(SplitName::parse(name), None, "{name}");
    }
}

#[test]
fn each_sibling_of_a_set_names_the_same_set() {
    let first = SplitName::parse("a-00001-of-00011.gguf").unwrap();
    for index in 0..11 {
        let name = first.sibling(index);
        assert_eq!(SplitName::parse(&name), Some(SplitName { index, ..first }));
    }
}

#[test]
fn rows_stand_where_their_variants_say() {
    for (i, row) in FILE_TYPES.iter().enumerate() {
        assert_eq!(row.file_type as usize, i, "{}", row.name);
        assert_eq!(format!("{:?}", row.file_type), row.name);
        assert_eq!(FileType::from_id(row.id), Some(row.file_type));
        assert_eq!(FileType::from_id(row.id + GUESSED), Some(row.file_type));
        assert_eq!(FileType::from_name(&row.name.to_lowercase()), Some(row.file_type));
        let titled = FILE_TYPES.iter().filter(|t| t.title == row.title);
        assert_eq!(titled.count(), 1, "{}", row.title);
    }
    assert_eq!(FileType::Q4_K_M.title(), "Q4_K - Medium");
    assert_eq!(FileType::IQ3_M.title(), "IQ3_S mix - 3.66 bpw");
    assert_eq!(FileType::from_name("q3_k"), Some(FileType::Q3_K_M));
    assert_eq!(FileType::from_name("q4_k"), Some(FileType::Q4_K_M));
    assert_eq!(FileType::from_name("Q5_K"), Some(FileType::Q5_K_M));
    for no_alias in ["iq1", "iq2", "iq3", "q4", ""] {
        assert_eq!(FileType::from_name(no_alias), None, "{no_alias}");
    }
    assert_eq!(FileType::from_id(4), None);
    assert_eq!(FileType::from_name("q9"), None);
}
