//! The files that opening a folder reads, and how often.

mod common;

use std::sync::{Arc, Mutex};

use chaski_checkpoint::Folder;
use chaski_checkpoint::hf::{OpenOptions, open};
use ggml_format::{ByteSource, MemorySource, SourceError};

/// A file that notes each of its reads.
struct Noted {
    file: MemorySource,
    reads: Arc<Mutex<Vec<String>>>,
}

impl ByteSource for Noted {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        self.reads.lock().unwrap().push(self.name().to_owned());
        self.file.read_at(offset, buf).await
    }
}

#[test]
fn small_files_are_read_once() {
    let (config, tensors) = common::class(&common::classes().join("mistral.json"));
    let files = [
        ("config.json", config.to_string().into_bytes()),
        ("model.safetensors", common::safetensors(&tensors)),
        ("tokenizer.json", common::TOKENIZER.as_bytes().to_vec()),
    ];
    let reads = Arc::new(Mutex::new(Vec::new()));
    let noted = |(name, bytes): (&str, Vec<u8>)| {
        (name.to_owned(), Noted { file: MemorySource::new(name, bytes), reads: reads.clone() })
    };
    let folder = Folder::new("model", files.map(noted));
    pollster::block_on(open(folder, &OpenOptions::default())).unwrap();
    // Of the weights, the length of the header and the header.
    let expected = ["config.json", "model.safetensors", "model.safetensors", "tokenizer.json"];
    assert_eq!(*reads.lock().unwrap(), expected);
}
