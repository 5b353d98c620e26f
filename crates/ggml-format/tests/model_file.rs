//! Models from all kinds of sources, and valid and invalid split sets.

mod common;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use ggml_format::{
    ByteSource, GgmlType, GgufWriter, MemorySource, ModelFile, OpenError, SourceError, read_header,
};

/// A source that is not in memory, like a server; it counts its reads.
struct Ranges {
    name: String,
    bytes: Vec<u8>,
    n_read: AtomicU32,
    n_byte: AtomicU64,
}

impl Ranges {
    fn new(name: &str, bytes: Vec<u8>) -> Ranges {
        Ranges { name: name.to_owned(), bytes, n_read: AtomicU32::new(0), n_byte: AtomicU64::new(0) }
    }
}

impl ByteSource for Ranges {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        SourceError::check_range(&self.name, self.len(), offset, buf.len() as u64)?;
        buf.copy_from_slice(&self.bytes[offset as usize..][..buf.len()]);
        self.n_read.fetch_add(1, Relaxed);
        self.n_byte.fetch_add(buf.len() as u64, Relaxed);
        Ok(())
    }
}

struct Shard {
    no: Option<u16>,
    count: Option<u16>,
    n_tensor: Option<i32>,
    tensors: Vec<&'static str>,
}

impl Shard {
    fn of(no: u16, count: u16, n_tensor: i32, tensors: &[&'static str]) -> Shard {
        Shard { no: Some(no), count: Some(count), n_tensor: Some(n_tensor), tensors: tensors.to_vec() }
    }

    /// Tensors are four f32, all equal to the first letter of the name.
    fn bytes(&self) -> Vec<u8> {
        let mut writer = GgufWriter::new();
        if let Some(no) = self.no {
            writer.set("split.no", no).unwrap();
        }
        if let Some(count) = self.count {
            writer.set("split.count", count).unwrap();
        }
        if let Some(n) = self.n_tensor {
            writer.set("split.tensors.count", n).unwrap();
        }
        for name in &self.tensors {
            writer.tensor(name, &[4], GgmlType::F32).unwrap();
        }
        let mut data = writer.begin(Vec::new()).unwrap();
        for name in &self.tensors {
            let value = f32::from(name.as_bytes()[0]);
            data.write(name, &[value; 4].map(f32::to_le_bytes).concat()).unwrap();
        }
        data.finish().unwrap()
    }
}

/// Opens a set of files named `m-00001-of-…` and so on, starting with file `first`.
fn open(shards: &[Shard], first: usize) -> Result<ModelFile<MemorySource>, OpenError> {
    let name = |i: usize| format!("dir/m-{:05}-of-{:05}.gguf", i + 1, shards.len());
    let files: HashMap<String, Vec<u8>> =
        shards.iter().enumerate().map(|(i, shard)| (name(i), shard.bytes())).collect();
    let source = MemorySource::new(name(first), shards[first].bytes());
    pollster::block_on(ModelFile::open(source, |name: &str| match files.get(name) {
        Some(bytes) => Ok(MemorySource::new(name, bytes.clone())),
        None => Err(SourceError::Other { name: name.to_owned(), source: "no such file".into() }),
    }))
}

fn message(result: Result<ModelFile<MemorySource>, OpenError>) -> String {
    let mut error: &dyn std::error::Error = &result.expect_err("the set is wrong");
    let mut text = error.to_string();
    while let Some(source) = error.source() {
        text += ": ";
        text += &source.to_string();
        error = source;
    }
    text
}

#[test]
fn split_set_is_one_model() {
    let shards = [
        Shard::of(0, 3, 4, &["a", "b"]),
        Shard { count: None, n_tensor: None, ..Shard::of(1, 3, 4, &["c"]) },
        Shard::of(2, 3, 4, &["d"]),
    ];
    let model = open(&shards, 0).unwrap();
    assert_eq!(model.tensors().iter().map(|t| t.shard).collect::<Vec<_>>(), [0, 0, 1, 2]);
    assert_eq!(model.shards().len(), 3);
    assert_eq!(model.n_byte_data(), 64);
    assert_eq!(model.metadata().u16("split.no").unwrap(), 0);
    for t in model.tensors() {
        let mut buf = [0; 8];
        pollster::block_on(model.read_tensor(t, 8, &mut buf)).unwrap();
        assert_eq!(f32::from_le_bytes(buf[4..].try_into().unwrap()), f32::from(t.name.as_bytes()[0]));
        assert_eq!(model.tensor_bytes(t).unwrap()[8..], buf);
    }
    let error = pollster::block_on(model.read_tensor(&model.tensors()[3], 12, &mut [0; 5])).unwrap_err();
    assert_eq!(error.to_string(), "`d`: expected 5 bytes at byte 12, found the end at byte 16");
}

#[test]
fn wrong_sets_are_refused() {
    let good = |no, tensors: &[&'static str]| Shard::of(no, 2, 2, tensors);
    let cases: Vec<(Vec<Shard>, usize, &str)> = vec![
        (
            vec![good(0, &["a"]), good(1, &["b"])],
            1,
            "`dir/m-00002-of-00002.gguf`: key `split.no`: expected 0, the first of 2 files, found 1; open \
             `dir/m-00001-of-00002.gguf`",
        ),
        (
            vec![good(0, &["a"]), good(0, &["b"])],
            0,
            "`dir/m-00002-of-00002.gguf`: key `split.no`: expected 1, found 0; the file name does not match",
        ),
        (
            vec![good(0, &["a"]), Shard::of(1, 3, 2, &["b"])],
            0,
            "`dir/m-00002-of-00002.gguf`: key `split.count`: expected 2, as in the first file, found 3",
        ),
        (
            vec![good(0, &["a"]), good(1, &["a"])],
            0,
            "tensor `a`: expected in one file of the set, found in `dir/m-00001-of-00002.gguf` and in \
             `dir/m-00002-of-00002.gguf`",
        ),
        (
            vec![good(0, &["a"]), good(1, &["b", "c"])],
            0,
            "key `split.tensors.count`: expected 2 tensors over all files, found 3",
        ),
        (
            vec![Shard { n_tensor: None, ..good(0, &["a"]) }, good(1, &["b"])],
            0,
            "in `dir/m-00001-of-00002.gguf`: key `split.tensors.count`: expected an integer from 0 to 2^64 - 1, \
             but the key is missing",
        ),
        (
            vec![good(0, &["a"]), Shard { no: None, ..good(1, &["b"]) }],
            0,
            "in `dir/m-00002-of-00002.gguf`: key `split.no`: expected an integer from 0 to 2^16 - 1, but the key is missing",
        ),
        (
            vec![Shard::of(0, 3, 2, &["a"]), good(1, &["b"])],
            0,
            "`dir/m-00001-of-00002.gguf`: expected a name that ends in `-00001-of-00003.gguf`, because it is the \
             first of 3 files",
        ),
        (
            vec![Shard::of(0, 2, -1, &["a"]), good(1, &["b"])],
            0,
            "expected an integer from 0 to 2^64 - 1, found i32 -1",
        ),
    ];
    for (shards, first, expected) in cases {
        let text = message(open(&shards, first));
        assert!(text.contains(expected), "{text}\nlacks {expected}");
    }
}

#[test]
fn missing_sibling_is_an_error_of_its_source() {
    let source = MemorySource::new("m-00001-of-00002.gguf", Shard::of(0, 2, 2, &["a"]).bytes());
    let result = pollster::block_on(ModelFile::open(source, |name: &str| {
        Err(SourceError::Other { name: name.to_owned(), source: "not found".into() })
    }));
    assert_eq!(
        message(result),
        "could not read a model file: `m-00002-of-00002.gguf`: read failed: not found"
    );
}

#[test]
fn set_of_one_file_needs_no_special_name() {
    let source = MemorySource::new("m.gguf", Shard::of(0, 1, 1, &["a"]).bytes());
    let model = pollster::block_on(ModelFile::open(source, |_: &str| unreachable!())).unwrap();
    assert_eq!(model.tensors().len(), 1);
}

#[test]
fn head_is_read_in_few_growing_ranges() {
    let mut writer = GgufWriter::new();
    let tokens: Vec<String> = (0..400_000).map(|i| format!("token {i}")).collect();
    writer.set("tokens", tokens).unwrap();
    writer.tensor("t", &[1 << 20], GgmlType::F32).unwrap();
    let mut data = writer.begin(Vec::new()).unwrap();
    data.write("t", &vec![7; 4 << 20]).unwrap();
    let file = data.finish().unwrap();

    let source = Ranges::new("served", file);
    let gguf = pollster::block_on(read_header(&source)).unwrap();
    assert_eq!(gguf.strings("tokens").unwrap().last(), Some("token 399999"));
    assert!(gguf.n_byte_header() > 7 << 20);
    assert!(source.n_read.load(Relaxed) <= 3, "{} reads", source.n_read.load(Relaxed));
    assert!(source.n_byte.load(Relaxed) <= source.len(), "no byte is read twice");

    let model = pollster::block_on(ModelFile::open(source, |_: &str| unreachable!())).unwrap();
    let mut buf = [0; 4];
    pollster::block_on(model.read_tensor(&model.tensors()[0], (4 << 20) - 4, &mut buf)).unwrap();
    assert_eq!(buf, [7; 4]);
    assert!(model.tensor_bytes(&model.tensors()[0]).is_none());
}

#[test]
fn damaged_file_is_named() {
    let source = Ranges::new("broken.gguf", b"GGUF but not quite".to_vec());
    let error = pollster::block_on(read_header(&source)).unwrap_err();
    assert_eq!(error.to_string(), "in `broken.gguf`");
    let empty = Ranges::new("empty.gguf", Vec::new());
    assert!(pollster::block_on(read_header(&empty)).is_err());
}

/// A file of 2^50 bytes: the given start, then zeros.
struct Endless(Vec<u8>);

impl ByteSource for Endless {
    fn name(&self) -> &str {
        "endless.gguf"
    }

    fn len(&self) -> u64 {
        1 << 50
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        for (i, byte) in buf.iter_mut().enumerate() {
            *byte = self.0.get(offset as usize + i).copied().unwrap_or(0);
        }
        Ok(())
    }
}

#[test]
fn head_of_absurd_length_is_not_fetched() {
    let source = Endless(common::Raw::header(3, 0, 1).u64(1 << 40).bytes);
    let error = pollster::block_on(read_header(&source)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`endless.gguf`: expected a header of at most 1073741824 bytes, found at least 1099511627808 bytes"
    );
}

#[cfg(feature = "mmap")]
#[test]
fn mapped_file_is_read_in_place() {
    use ggml_format::MemorySource;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../chaski/model/storyteller-Q4_K_M.gguf");
    let source = MemorySource::map(path).unwrap();
    let model = pollster::block_on(ModelFile::open(source, |_: &str| unreachable!())).unwrap();
    assert_eq!(model.metadata().str("general.architecture").unwrap(), "llama");
    let t = model.tensor("token_embd.weight").unwrap();
    let mut buf = vec![0; 64];
    pollster::block_on(model.read_tensor(t, 1000, &mut buf)).unwrap();
    assert_eq!(model.tensor_bytes(t).unwrap()[1000..1064], buf);
    let error = MemorySource::map("/no/such/file").unwrap_err();
    assert_eq!(error.to_string(), "`/no/such/file`: read failed");
}
