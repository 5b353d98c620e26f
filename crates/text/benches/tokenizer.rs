//! Tokenizers of real models: time to build from metadata, and throughput in megabytes of text per second.
//!
//! Needs the golden data (`CHASKI_TEST_DATA`): `vocab/` and, for the text, `corpus/`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;

use chaski_text::{AddSpecial, ParseSpecial, Tokenizer};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// A vocabulary for each kind of tokenizer, and the largest one.
const NAMES: &[&str] = &["llama-spm", "llama-bpe", "qwen2", "gemma-4", "bert-bge"];

/// Text of one megabyte: the corpus, repeated.
fn megabyte() -> Option<String> {
    let folder = common::test_data("corpus")?;
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_some_and(|e| e == "txt" || e == "raw") {
            text += &std::fs::read_to_string(path).expect("the corpus is text");
        }
    }
    assert!(!text.is_empty(), "no text in the corpus");
    let mut text = text.repeat((1 << 20) / text.len() + 1);
    let end = (0..=1 << 20).rev().find(|&end| text.is_char_boundary(end)).expect("0 is a boundary");
    text.truncate(end);
    Some(text)
}

fn bench(criterion: &mut Criterion) {
    let (Some(text), Some(folder)) = (megabyte(), common::test_data("vocab")) else {
        return;
    };
    let mut group = criterion.benchmark_group("tokenizer");
    group.sample_size(10);
    for name in NAMES {
        let gguf = common::read_gguf(&folder.join(format!("ggml-vocab-{name}.gguf")));
        let build = || Tokenizer::from_metadata(gguf.metadata()).expect("a tokenizer");
        group.throughput(Throughput::Elements(build().n_vocab() as u64));
        group.bench_function(format!("build/{name}"), |b| {
            b.iter_batched(|| (), |()| black_box(build()), BatchSize::LargeInput);
        });
        let tokenizer = build();
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(format!("encode/{name}"), |b| {
            b.iter(|| black_box(tokenizer.encode(&text, AddSpecial::No, ParseSpecial::Yes)).expect("ids"));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
