//! The writer rejects what the reader would reject.

use ggml_format::{ArrayBuf, GgmlType, Gguf, GgufWriter, ValueType, WriteError};

fn text<T: std::fmt::Debug>(result: Result<T, WriteError>) -> String {
    result.expect_err("the request is wrong").to_string()
}

#[test]
fn wrong_declarations_are_refused() {
    let mut writer = GgufWriter::new();
    writer.set("k", 1u32).unwrap();
    writer.tensor("t", &[32, 2], GgmlType::Q4_0).unwrap();
    assert_eq!(text(writer.set("k", 2u32)), "key `k`: duplicate key");
    assert_eq!(text(writer.set("", 2u32)), "metadata: the key is empty");
    assert_eq!(
        text(writer.set("general.alignment", 24u32)),
        "key `general.alignment`: expected a u32 that is a power of two, found u32 24"
    );
    assert_eq!(
        text(writer.set("general.alignment", 32u64)),
        "key `general.alignment`: expected a u32 that is a power of two, found u64 32"
    );
    assert_eq!(text(writer.tensor("t", &[1], GgmlType::F32)), "tensor `t`: duplicate tensor");
    assert_eq!(
        text(writer.tensor("u", &[33], GgmlType::Q4_0)),
        "tensor `u`: expected rows of a multiple of 32 values for q4_0, found 33"
    );
    assert_eq!(
        text(writer.tensor("u", &[], GgmlType::Q4_0)),
        "tensor `u`: expected rows of a multiple of 32 values for q4_0, found 1"
    );
    assert_eq!(
        text(writer.tensor("u", &[1; 5], GgmlType::F32)),
        "tensor `u`: expected at most 4 dimensions, found 5"
    );
    assert_eq!(
        text(writer.tensor("u", &[1 << 40, 1 << 40], GgmlType::F32)),
        "tensor `u`: expected fewer than 2^63 values and bytes, found the shape [1099511627776, 1099511627776]"
    );
    let long = "n".repeat(64);
    assert_eq!(
        text(writer.tensor(&long, &[1], GgmlType::F32)),
        format!("tensor `{long}`: expected a name of fewer than 64 bytes, found 64")
    );
    assert!(ArrayBuf::new(ValueType::Array).is_err());
}

#[test]
fn a_tensor_without_dimensions_is_one_value() {
    let mut writer = GgufWriter::new();
    writer.tensor("t", &[], GgmlType::F32).unwrap();
    let mut data = writer.begin(Vec::new()).unwrap();
    data.write("t", &1.5f32.to_le_bytes()).unwrap();
    let file = data.finish().unwrap();
    let gguf = Gguf::parse(file.clone().into(), file.len() as u64).unwrap();
    let tensor = gguf.tensor("t").unwrap();
    assert_eq!((tensor.n_dims, tensor.n_byte, tensor.n_elem()), (0, 4, 1));
}

#[test]
fn wrong_data_are_refused() {
    let mut writer = GgufWriter::new();
    writer.tensor("a", &[4], GgmlType::F32).unwrap();
    writer.tensor("b", &[4], GgmlType::F32).unwrap();
    let mut data = writer.begin(Vec::new()).unwrap();
    assert_eq!(data.next(), Some(("a", 16)));
    assert_eq!(
        text(data.write("b", &[0; 4])),
        "data of tensor `b`: expected data of tensor `a`, which was declared earlier"
    );
    assert_eq!(
        text(data.write("a", &[0; 17])),
        "data of tensor `a`: expected at most 16 more bytes, found 17"
    );
    data.write("a", &[1; 10]).unwrap();
    data.write("a", &[]).unwrap();
    assert_eq!(data.next(), Some(("a", 6)));
    data.write("a", &[1; 6]).unwrap();
    data.write("b", &[2; 16]).unwrap();
    assert_eq!(data.next(), None);
    assert_eq!(
        text(data.write("b", &[0])),
        "data of tensor `b`: the data of all declared tensors is already complete"
    );
    let file = data.finish().unwrap();
    let gguf = Gguf::parse(file.clone().into(), file.len() as u64).unwrap();
    assert_eq!(file.len() as u64, gguf.data_start() + 64, "the last tensor is padded too");
}

#[test]
fn missing_data_are_noticed() {
    let mut writer = GgufWriter::new();
    writer.tensor("a", &[4], GgmlType::F32).unwrap();
    let data = writer.begin(Vec::new()).unwrap();
    assert_eq!(text(data.finish()), "data of tensor `a`: expected 16 more bytes, found the end of the data");
}

#[test]
fn failure_of_the_output_is_passed_on() {
    let mut room = [0; 20];
    let error = GgufWriter::new().begin(&mut room[..]).unwrap_err();
    assert_eq!(error.to_string(), "write failed");
    assert!(std::error::Error::source(&error).is_some());
}
