//! The reader on valid files, and on every kind of invalid file we could think of.

mod common;

use common::{Raw, rich};
use ggml_format::{ArrayView, GgmlType, Gguf, GgufError, GgufWriter, HeaderBytes, TYPES, Value, ValueType};

fn parse(bytes: &[u8]) -> Result<Gguf, GgufError> {
    Gguf::parse(bytes.to_vec().into(), bytes.len() as u64)
}

#[test]
fn values_of_all_types_are_read() {
    let gguf = parse(&rich()).unwrap();
    assert_eq!(gguf.version(), 3);
    assert_eq!(gguf.alignment(), 64);
    assert_eq!(gguf.len(), 20);
    assert_eq!(gguf.get("a.u8"), Some(Value::U8(200)));
    assert_eq!(gguf.get("a.i64"), Some(Value::I64(i64::MIN)));
    assert_eq!(gguf.get("a.f64"), Some(Value::F64(0.1)));
    assert_eq!(gguf.get("a.bool"), Some(Value::Bool(true)));
    assert_eq!(gguf.str("a.text").unwrap(), "naïve ☃");
    assert_eq!(gguf.str("a.empty").unwrap(), "");
    assert_eq!(gguf.strings("a.tokens").unwrap().collect::<Vec<_>>(), ["<s>", "", "é", "▁the"]);
    assert_eq!(gguf.vec::<f32>("a.scores").unwrap(), [0.5, -1.0, f32::INFINITY]);
    assert_eq!(gguf.vec::<i64>("a.types").unwrap(), [1, -2, 3]);
    assert_eq!(gguf.vec::<bool>("a.flags").unwrap(), [true, false]);
    assert!(gguf.array("a.none").unwrap().is_empty());
    assert_eq!(gguf.array("a.none").unwrap().elem(), ValueType::U64);
    assert_eq!(gguf.get("a.missing"), None);
    let keys: Vec<&str> = gguf.metadata().iter().map(|(key, _)| key).collect();
    assert_eq!((keys[0], keys[19]), ("general.architecture", "a.none"));
}

#[test]
fn integers_of_any_width_are_taken_if_they_fit() {
    let gguf = parse(&rich()).unwrap();
    assert_eq!(gguf.u32("a.u8").unwrap(), 200);
    assert_eq!(gguf.u64("a.u16").unwrap(), 60000);
    assert_eq!(gguf.i64("a.i8").unwrap(), -3);
    assert_eq!(gguf.u32("a.bool").unwrap(), 1);
    assert_eq!(gguf.f32("a.i8").unwrap(), -3.0);
    assert_eq!(gguf.f32("a.f64").unwrap(), 0.1);
    assert_eq!(gguf.opt_u32("a.missing").unwrap(), None);
    assert_eq!(gguf.per_layer::<u32>("a.u8", 3).unwrap(), [200; 3]);
    assert_eq!(gguf.per_layer::<i32>("a.types", 3).unwrap(), [1, -2, 3]);
}

#[test]
fn getters_say_what_they_expected_and_found() {
    let gguf = parse(&rich()).unwrap();
    let errors = [
        (
            gguf.u32("a.missing").unwrap_err(),
            "key `a.missing`: expected an integer from 0 to 2^32 - 1, but the key is missing",
        ),
        (
            gguf.u32("a.i8").unwrap_err(),
            "key `a.i8` at byte 135: expected an integer from 0 to 2^32 - 1, found i8 -3",
        ),
        (gguf.opt_u16("a.u32").unwrap_err(), "expected an integer from 0 to 2^16 - 1, found u32 4000000000"),
        (gguf.str("a.u8").unwrap_err(), "expected a string, found u8 200"),
        (gguf.f32("a.text").unwrap_err(), "expected a number, found string \"naïve ☃\""),
        (gguf.bool("a.u8").unwrap_err(), "expected a bool, found u8 200"),
        (gguf.array("a.f32").unwrap_err(), "expected an array, found f32 0.1"),
        (gguf.strings("a.types").unwrap_err(), "expected an array of strings, found array of 3 i32"),
        (gguf.vec::<u32>("a.types").unwrap_err(), "element 1 of key `a.types`"),
        (gguf.vec::<f32>("a.tokens").unwrap_err(), "expected a number, found string \"<s>\""),
        (gguf.per_layer::<u32>("a.types", 4).unwrap_err(), "expected one value or 4, found 3"),
        (
            gguf.per_layer::<u32>("a.u8", u32::MAX as usize).unwrap_err(),
            "expected at most 65536 layers that share one value, found 4294967295",
        ),
    ];
    for (error, expected) in errors {
        let text = error.to_string();
        assert!(text.contains(expected), "{text}\nlacks {expected}");
    }
}

#[test]
fn offsets_in_errors_are_those_of_the_file() {
    let bytes = rich();
    let gguf = parse(&bytes).unwrap();
    match gguf.u32("a.i8").unwrap_err() {
        GgufError::KeyType { offset, .. } => assert_eq!(bytes[offset as usize] as i8, -3),
        other => panic!("{other}"),
    }
}

#[test]
fn tensors_lie_where_the_writer_put_them() {
    let bytes = rich();
    let gguf = parse(&bytes).unwrap();
    let t = gguf.tensor("blk.0.ffn_up.weight").unwrap();
    assert_eq!((t.ne, t.n_dims, t.shape()), ([256, 2, 2, 1], 3, vec![2, 2, 256]));
    assert_eq!((t.ty, t.n_byte, t.n_elem(), t.n_row(), t.row_bytes()), (GgmlType::Q4_K, 576, 1024, 4, 144));
    assert_eq!(gguf.tensor("token_embd.weight").unwrap().offset, gguf.data_start());
    assert_eq!(t.offset, gguf.data_start() + 256);
    assert_eq!(gguf.data_start() % 64, 0);
    assert_eq!(gguf.tensor("empty").unwrap().n_byte, 0);
    assert!(gguf.tensor("none").is_none());
    let names: Vec<&str> = gguf.tensors().iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["token_embd.weight", "blk.0.ffn_up.weight", "blk.0.attn_norm.weight", "empty"]);
}

#[test]
fn arrays_are_not_copied() {
    let bytes = HeaderBytes::from(rich());
    let gguf = Gguf::parse(bytes.clone(), bytes.len() as u64).unwrap();
    let range = bytes.as_ptr_range();
    for token in gguf.strings("a.tokens").unwrap() {
        assert!(range.start <= token.as_ptr() && token.as_ptr() <= range.end);
    }
}

#[test]
fn both_versions_are_read() {
    for version in [2, 3] {
        assert_eq!(Raw::header(version, 0, 0).parse().unwrap().version(), version);
    }
}

#[test]
fn file_without_tensors_needs_no_padding() {
    let gguf = Raw::header(3, 0, 1).kv_u32("k", 1).parse().unwrap();
    assert_eq!(gguf.data_start(), 24 + 8 + 1 + 4 + 4);
    assert_eq!(gguf.n_byte_header(), gguf.data_start());
}

/// End of the last tensor's data; the padding after it may be missing.
fn end_of_data(gguf: &Gguf) -> usize {
    gguf.tensors().iter().map(|t| t.offset + t.n_byte).max().unwrap() as usize
}

#[test]
fn file_cut_off_at_any_byte_is_an_error() {
    let bytes = rich();
    let end = end_of_data(&parse(&bytes).unwrap());
    for n in 0..end {
        let error = parse(&bytes[..n]).expect_err("data are missing");
        assert!(!matches!(error, GgufError::NeedMore { .. }), "{n}: {error}");
    }
    for n in end..=bytes.len() {
        parse(&bytes[..n]).unwrap();
    }
}

#[test]
fn short_prefix_asks_for_more_until_the_head_is_there() {
    let bytes = rich();
    let len = bytes.len() as u64;
    let n_header = parse(&bytes).unwrap().n_byte_header();
    for n in 0..bytes.len() {
        match Gguf::parse(bytes[..n].to_vec().into(), len) {
            Err(GgufError::NeedMore { n_byte }) => {
                assert!((n as u64) < n_header, "{n}");
                assert!(n_byte > n as u64 && n_byte <= n_header, "{n}: {n_byte}");
            }
            Ok(gguf) => {
                assert!(n as u64 >= n_header);
                assert_eq!(gguf.tensors().len(), 4);
                assert_eq!(gguf.str("a.text").unwrap(), "naïve ☃");
            }
            Err(other) => panic!("{n}: {other}"),
        }
    }
}

#[test]
fn wrong_headers_are_refused() {
    let cases = [
        (Raw::default(), "magic at byte 0: expected 4 more bytes, found the end of the file after 0"),
        (
            Raw::default().put(b"ggml").zeros(20),
            "magic at byte 0: expected `GGUF`, found `ggml`; this is not a GGUF file",
        ),
        (
            Raw::default().put(b"\x89PN\xff").zeros(20),
            "magic at byte 0: expected `GGUF`, found `\\x89PN\\xff`; this is not a GGUF file",
        ),
        (Raw::header(1, 0, 0), "version at byte 4: expected 2 or 3, found 1"),
        (Raw::header(4, 0, 0), "version at byte 4: expected 2 or 3, found 4"),
        (
            Raw::header(0x0300_0000, 0, 0),
            "version at byte 4: found 0x03000000; the file is big-endian, expected little-endian",
        ),
        (Raw::header(3, -1, 0), "number of tensors at byte 8: expected a non-negative count, found -1"),
        (
            Raw::header(3, 0, i64::MIN),
            "number of keys at byte 16: expected a non-negative count, found -9223372036854775808",
        ),
        (
            Raw::header(3, 0, i64::MAX),
            "number of keys at byte 24: expected 18446744073709551615 more bytes, found the end of the file after 0",
        ),
        (
            Raw::header(3, 1 << 40, 0).zeros(100),
            "number of tensors at byte 24: expected 26388279066624 more bytes, found the end of the file after 100",
        ),
    ];
    for (raw, expected) in cases {
        assert_eq!(raw.error(), expected);
    }
}

#[test]
fn wrong_metadata_are_refused() {
    let one = || Raw::header(3, 0, 1);
    let huge = 1u64 << 63;
    let cases = [
        (one().str("").u32(4).u32(1), "key 0 at byte 24: the name is empty"),
        (
            one().u64(huge).zeros(20),
            "key 0 at byte 32: expected 9223372036854775808 more bytes, found the end of the file after 20",
        ),
        (
            one().u64(2).put(&[b'a', 0xff]).u32(4).u32(1),
            "key 0 at byte 32: expected UTF-8, found an invalid sequence after 1 bytes",
        ),
        (one().str("k").u32(13).u32(1), "type of key `k` at byte 33: expected 0 to 12, found 13"),
        (
            one().str("k").u32(u32::MAX).u32(1),
            "type of key `k` at byte 33: expected 0 to 12, found 4294967295",
        ),
        (
            one().str("k").u32(8).u64(u64::MAX),
            "value of key `k` at byte 45: expected 18446744073709551615 more bytes, found the end of the file after 0",
        ),
        (
            one().str("k").u32(8).u64(1).u8(0x80),
            "value of key `k` at byte 45: expected UTF-8, found an invalid sequence after 0 bytes",
        ),
        (
            one().str("k").u32(9).u32(9).u64(0),
            "element type of key `k` at byte 37: expected a scalar or a string, found an array of arrays",
        ),
        (one().str("k").u32(9).u32(77).u64(0), "type of key `k` at byte 37: expected 0 to 12, found 77"),
        (
            one().str("k").u32(9).u32(0).u64(huge),
            "value of key `k` at byte 49: expected 9223372036854775808 more bytes, found the end of the file after 0",
        ),
        (
            one().str("k").u32(9).u32(10).u64(huge),
            "value of key `k` at byte 49: expected 18446744073709551615 more bytes, found the end of the file after 0",
        ),
        (
            one().str("k").u32(9).u32(8).u64(2).str("fine").u64(99),
            "element 1 of key `k` at byte 69: expected 99 more bytes, found the end of the file after 0",
        ),
        (
            Raw::header(3, 0, 2).kv_u32("k", 1).kv_u32("k", 2),
            "key `k` at byte 49: duplicate key, first found at byte 32",
        ),
        (
            one().kv_u32("general.alignment", 48),
            "key `general.alignment` at byte 53: expected a u32 that is a power of two, found u32 48",
        ),
        (
            one().kv_u32("general.alignment", 0),
            "key `general.alignment` at byte 53: expected a u32 that is a power of two, found u32 0",
        ),
        (
            one().str("general.alignment").u32(10).u64(32),
            "key `general.alignment` at byte 53: expected a u32 that is a power of two, found u64 32",
        ),
    ];
    for (raw, expected) in cases {
        assert_eq!(raw.error(), expected);
    }
}

/// A file of these tensors with `n_byte` bytes of data.
fn with_tensors(tensors: &[(&str, &[i64], u32, u64)], n_byte: usize) -> Raw {
    let raw = Raw::header(3, tensors.len() as i64, 0);
    let raw = tensors.iter().fold(raw, |raw, &(name, ne, ty, offset)| raw.tensor(name, ne, ty, offset));
    raw.pad(32).zeros(n_byte)
}

#[test]
fn wrong_tensors_are_refused() {
    let long = "n".repeat(64);
    let cases: Vec<(Raw, &str)> = vec![
        (
            with_tensors(&[(&long, &[1], 0, 0)], 32),
            "name of tensor 0 at byte 24: expected fewer than 64 bytes, found 64",
        ),
        (
            Raw::header(3, 1, 0).u64(1).u8(0xc0).zeros(64),
            "name of tensor 0 at byte 32: expected UTF-8, found an invalid sequence after 0 bytes",
        ),
        (
            with_tensors(&[("t", &[1; 5], 0, 0)], 32),
            "dimensions of tensor `t` at byte 33: expected at most 4, found 5",
        ),
        (
            with_tensors(&[("t", &[4, -1], 0, 0)], 32),
            "dimension 1 of tensor `t` at byte 45: expected a non-negative size, found -1",
        ),
        (
            with_tensors(&[("t", &[1 << 32, 1 << 31], 0, 0)], 32),
            "shape of tensor `t` at byte 37: expected fewer than 2^63 values and bytes, found [4294967296, 2147483648, 1, 1]",
        ),
        (
            with_tensors(&[("t", &[0, i64::MAX, i64::MAX], 0, 0)], 32),
            "shape of tensor `t` at byte 37: expected fewer than 2^63 values and bytes, found \
             [0, 9223372036854775807, 9223372036854775807, 1]",
        ),
        (
            with_tensors(&[("t", &[i64::MAX], 28, 0)], 32),
            "shape of tensor `t` at byte 37: expected fewer than 2^63 values and bytes, found [9223372036854775807, 1, 1, 1]",
        ),
        (
            with_tensors(&[("t", &[1 << 40], 0, 0)], 32),
            "data of tensor `t` at byte 64: expected 4398046511104 bytes, found the end of the file at byte 96",
        ),
        (
            with_tensors(&[("t", &[32], 4, 0)], 32),
            "type of tensor `t` at byte 45: expected the id of a ggml type, found 4, a type that ggml has removed",
        ),
        (
            with_tensors(&[("t", &[32], 99, 0)], 32),
            "type of tensor `t` at byte 45: expected the id of a ggml type, found 99",
        ),
        (
            with_tensors(&[("t", &[48, 2], 2, 0)], 64),
            "rows of tensor `t` at byte 37: expected a multiple of 32 values for q4_0, found 48",
        ),
        (
            with_tensors(&[("t", &[2], 0, 32)], 64),
            "data offset of tensor `t` at byte 49: expected 0, the end of the previous tensor, found 32",
        ),
        (
            with_tensors(&[("t", &[2], 0, 0), ("u", &[2], 0, 0)], 64),
            "data offset of tensor `u` at byte 82: expected 32, the end of the previous tensor, found 0",
        ),
        (
            with_tensors(&[("t", &[2], 0, 0), ("u", &[2], 0, 64)], 128),
            "data offset of tensor `u` at byte 82: expected 32, the end of the previous tensor, found 64",
        ),
        (
            with_tensors(&[("t", &[2], 0, 0), ("t", &[2], 0, 32)], 64),
            "tensor `t` at byte 57: duplicate tensor",
        ),
        (
            with_tensors(&[("t", &[9], 0, 0)], 32),
            "data of tensor `t` at byte 64: expected 36 bytes, found the end of the file at byte 96",
        ),
    ];
    for (raw, expected) in cases {
        assert_eq!(raw.error(), expected);
    }
}

#[test]
fn tensor_of_no_dimensions_is_one_value() {
    let gguf = with_tensors(&[("t", &[], 0, 0)], 4).parse().unwrap();
    let t = gguf.tensor("t").unwrap();
    assert_eq!((t.n_elem(), t.n_byte, t.shape()), (1, 4, vec![]));
}

#[test]
fn types_that_a_fork_numbered_otherwise_are_named() {
    // 64 rows of 256 values: nvfp4 takes 9216 bytes, the fork's q1_0 3072.
    let expected = "tensor `t` at byte 24: expected 9216 bytes for type id 40 (nvfp4), found 3072, the size of a \
                    fork's q1_0 with blocks of 32 values and 6 bytes; convert the model again with a current \
                    llama.cpp";
    let first = with_tensors(&[("t", &[256, 64], 40, 0), ("u", &[8], 0, 3072)], 3104);
    assert_eq!(first.error(), expected);
    let last = with_tensors(&[("t", &[256, 64], 40, 0)], 3072);
    assert_eq!(last.error(), expected);

    // 64 rows of 256 values: q2_0 takes 4608 bytes, the fork's 4352.
    for raw in [
        with_tensors(&[("t", &[256, 64], 42, 0), ("u", &[8], 0, 4352)], 4384),
        with_tensors(&[("t", &[256, 64], 42, 0)], 4352),
        with_tensors(&[("s", &[8], 0, 0), ("t", &[256, 64], 42, 32), ("u", &[8], 0, 4384)], 4416),
    ] {
        let error = raw.error();
        assert!(error.contains("found 4352, the size of a fork's q2_0 with blocks of 128 values"), "{error}");
    }
    with_tensors(&[("t", &[256, 64], 42, 0), ("u", &[8], 0, 4608)], 4640).parse().unwrap();
}

#[test]
fn every_type_of_the_table_can_be_in_a_file() {
    for info in TYPES {
        let ne = [info.block_len as i64 * 2, 3];
        let n_byte = info.block_bytes * 6;
        let raw = with_tensors(&[("t", &ne, info.id, 0)], n_byte);
        let t = raw.parse().unwrap().tensor("t").unwrap().clone();
        assert_eq!((t.ty, t.n_byte), (info.ty, n_byte as u64), "{}", info.name);
    }
}

#[test]
fn bools_other_than_0_and_1_are_true() {
    let gguf = Raw::header(3, 0, 2)
        .str("k")
        .u32(7)
        .u8(255)
        .str("a")
        .u32(9)
        .u32(7)
        .u64(2)
        .u8(2)
        .u8(0)
        .parse()
        .unwrap();
    assert!(gguf.bool("k").unwrap());
    let array: ArrayView<'_> = gguf.array("a").unwrap();
    assert_eq!(array.iter().collect::<Vec<_>>(), [Value::Bool(true), Value::Bool(false)]);
}

#[test]
fn keys_are_found_in_any_order() {
    for n in 0..40_u32 {
        let names: Vec<String> = (0..n).map(|i| (i * 7919 % 41).to_string()).collect();
        let mut writer = GgufWriter::new();
        for (name, i) in names.iter().zip(0..) {
            writer.set(name.as_str(), i as u32).unwrap();
        }
        let gguf = parse(&writer.begin(Vec::new()).unwrap().finish().unwrap()).unwrap();
        for (name, i) in names.iter().zip(0..) {
            assert_eq!(gguf.u32(name).unwrap(), i as u32, "{name} of {n}");
        }
        for missing in (n..41).map(|i| (i * 7919 % 41).to_string()) {
            assert_eq!(gguf.get(&missing), None, "{missing} of {n}");
        }
    }
}
