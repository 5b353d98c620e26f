//! Headers of safetensors files: the verdicts of the library that writes them, stricter limits, and damage.

mod common;

use chaski_checkpoint::safetensors::{Header, ShardIndex, TensorEntry, read_header};
use ggml_format::MemorySource;

/// A file with this header and so many bytes of data.
fn file(json: &str, n_byte: usize) -> Vec<u8> {
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend(json.as_bytes());
    bytes.resize(bytes.len() + n_byte, 0);
    bytes
}

fn read(bytes: Vec<u8>) -> Result<Header, String> {
    let source = MemorySource::new("model.safetensors", bytes);
    pollster::block_on(read_header(&source)).map_err(|e| match std::error::Error::source(&e) {
        Some(source) => format!("{e}: {source}"),
        None => e.to_string(),
    })
}

/// Files that the library takes and we refuse.
const REFUSED: &[&str] = &["duplicate-key"];

#[test]
fn verdicts_are_those_of_the_library() {
    let folder = common::weights("safetensors-cases");
    let expected: serde_json::Value =
        serde_json::from_slice(&common::read(&folder.join("expected.json"))).unwrap();
    let cases = expected["cases"].as_object().unwrap();
    assert_eq!(cases.len(), 36);
    for (name, verdict) in cases {
        let found = read(common::read(&folder.join(format!("{name}.safetensors"))));
        let names = found.as_ref().map(|header| {
            let mut names: Vec<_> = header.tensors.iter().map(|t| t.name.as_str()).collect();
            names.sort_unstable();
            names.join(",")
        });
        match verdict.as_str().unwrap().strip_prefix("ok: ") {
            Some(tensors) if !REFUSED.contains(&name.as_str()) => {
                assert_eq!(names.as_deref().map_err(|e| e.as_str()), Ok(tensors), "{name}");
            }
            _ => assert!(found.is_err(), "{name}: {found:?}"),
        }
    }
}

#[test]
fn errors_say_which_tensor_and_number() {
    let f16 = |offsets: &str| format!(r#"{{"a":{{"dtype":"F16","shape":[2,2],"data_offsets":{offsets}}}}}"#);
    let error = |json: &str, n_byte| read(file(json, n_byte)).unwrap_err();
    assert_eq!(
        error(&f16("[0,6]"), 6),
        "tensor `a`: expected the bytes of F16 [2, 2], found data_offsets [0, 6]"
    );
    assert_eq!(
        error(&f16("[2,10]"), 10),
        "tensor `a`: expected data at byte 0, after the tensor before it, found byte 2"
    );
    assert_eq!(
        error(&f16("[0,8]"), 7),
        "expected 8 bytes of data, found 7; the file is damaged or incomplete"
    );
    let deep = r#"{"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}}"#;
    assert_eq!(error(deep, 1), "tensor `a`: expected at most 8 dimensions, found 9");
    let twice = r#"{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#;
    assert!(error(twice, 0).contains("duplicate tensor `a`"));
    let far =
        r#"{"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}}"#;
    assert!(error(far, 0).starts_with("tensor `a`: expected the bytes of U8"));
}

#[test]
fn data_need_no_alignment() {
    let json = r#"{"b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]},"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}"#;
    let header = read(file(json, 7)).unwrap();
    let places: Vec<_> = header.tensors.iter().map(|t: &TensorEntry| (t.name.as_str(), t.offset)).collect();
    let start = 8 + json.len() as u64;
    assert_eq!(places, [("a", start), ("b", start + 3)]);
}

#[test]
fn an_index_names_exactly_the_tensors_of_plain_files() {
    let parse = |file: &str| {
        ShardIndex::parse(
            format!(r#"{{"metadata":{{}},"weight_map":{{"a":{file:?},"b":"2.safetensors"}}}}"#).as_bytes(),
        )
    };
    let index = parse("1.safetensors").unwrap();
    assert_eq!(index.files.keys().collect::<Vec<_>>(), ["1.safetensors", "2.safetensors"]);
    let check =
        |file: &str, names: &[&str]| index.check(file, names.iter().copied()).map_err(|e| e.to_string());
    assert_eq!(check("1.safetensors", &["a"]), Ok(()));
    assert_eq!(
        check("1.safetensors", &[]),
        Err("tensor `a`: named by the index, not found in the file".into())
    );
    assert_eq!(
        check("1.safetensors", &["a", "b"]),
        Err("tensor `b`: found in the file, not named by the index".into())
    );
    for name in [
        "../x.safetensors",
        "/x.safetensors",
        "a\\b.safetensors",
        "c:x.safetensors",
        "x.bin",
        ".x.safetensors",
    ] {
        assert!(parse(name).is_err(), "{name}");
    }
}
