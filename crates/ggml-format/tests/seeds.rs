//! The seeds of the fuzz targets `gguf` and `imatrix`: this file generates them, and checks that reading them is
//! harmless.
//!
//! `UPDATE_SEEDS=1 cargo test -p ggml-format --test seeds` regenerates them.

mod common;

use std::fs;
use std::path::PathBuf;

use common::visit::{imatrix, visit};
use common::{Raw, rich, sample_imatrix};
use ggml_format::Imatrix;

fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target)
}

/// Name, content, and true if the reader accepts it.
fn seeds() -> Vec<(&'static str, Vec<u8>, bool)> {
    let one_tensor = |ty: u32, ne: &[i64], n_byte: usize| {
        Raw::header(3, 1, 0).tensor("t", ne, ty, 0).pad(32).zeros(n_byte).bytes
    };
    let mut cut = rich();
    cut.truncate(300);
    vec![
        ("empty.gguf", Raw::header(3, 0, 0).bytes, true),
        ("version-2.gguf", Raw::header(2, 0, 1).kv_u32("k", 7).bytes, true),
        ("rich.gguf", rich(), true),
        ("rich-cut.gguf", cut, false),
        (
            "two-tensors.gguf",
            Raw::header(3, 2, 1)
                .kv_u32("general.alignment", 8)
                .tensor("a", &[32, 2], 8, 0)
                .tensor("b", &[3], 0, 72)
                .pad(8)
                .zeros(84)
                .bytes,
            true,
        ),
        (
            "strings.gguf",
            Raw::header(3, 0, 1).str("tokens").u32(9).u32(8).u64(3).str("a").str("").str("é").bytes,
            true,
        ),
        (
            "split.gguf",
            Raw::header(3, 0, 2).str("split.no").u32(2).u16(0).str("split.count").u32(2).u16(2).bytes,
            true,
        ),
        ("big-endian.gguf", Raw::header(3u32.swap_bytes(), 0, 0).bytes, false),
        ("nested-array.gguf", Raw::header(3, 0, 1).str("k").u32(9).u32(9).u64(1).bytes, false),
        ("long-array.gguf", Raw::header(3, 0, 1).str("k").u32(9).u32(10).u64(1 << 63).bytes, false),
        ("fork-type.gguf", one_tensor(40, &[256, 64], 3072), false),
        ("wide-tensor.gguf", one_tensor(0, &[i64::MAX, i64::MAX, 0], 32), false),
    ]
}

/// Importance matrices: name, content, and true if the reader accepts it.
fn imatrices() -> Vec<(&'static str, Vec<u8>, bool)> {
    let written = sample_imatrix().write(Vec::new()).unwrap();
    let kind = || Raw::header(3, 2, 1).str("general.type").u32(8).str("imatrix");
    let sums = |raw: Raw| raw.tensor("a.in_sum2", &[2, 2], 0, 0);
    let values = |raw: Raw, n_byte| raw.pad(32).zeros(n_byte).bytes;
    // Number of entries; name; calls, values.
    let entries = Raw::default().u32(2).u32(1).put(b"a").u32(4).u32(2).f32(2.0).f32(6.0);
    let entries = entries.u32(8).put(b"b.weight").u32(0).u32(1).f32(1.0);
    let twice = Raw::default().u32(2).u32(1).put(b"a").u32(4).u32(1).f32(2.0);
    let twice = twice.u32(1).put(b"a").u32(4).u32(1).f32(2.0);
    let empty = kind().tensor("a.in_sum2", &[0, 1], 0, 0).tensor("a.counts", &[1], 0, 0);
    vec![
        ("old", entries.clone().u32(9).u32(5).put(b"c.txt").bytes, true),
        ("old-short", entries.clone().bytes, true),
        ("old-cut", entries.bytes[..40].to_vec(), false),
        ("old-twice", twice.bytes, false),
        ("old-nan", Raw::default().u32(1).u32(1).put(b"a").u32(4).u32(1).f32(f32::NAN).bytes, false),
        ("gguf-cut", written[..written.len() - 64].to_vec(), false),
        ("gguf", written, true),
        ("gguf-uncounted", values(sums(kind()).tensor("b.in_sum2", &[1], 0, 32), 64), false),
        ("gguf-half", values(sums(kind()).tensor("a.counts", &[1, 2], 1, 32), 64), false),
        ("gguf-uneven", values(sums(kind()).tensor("a.counts", &[1, 3], 0, 32), 64), false),
        ("gguf-empty", values(empty, 32), false),
    ]
}

#[test]
fn seeds_are_what_this_file_makes() {
    let update = std::env::var_os("UPDATE_SEEDS").is_some();
    let all = [("gguf", seeds()), ("imatrix", imatrices())];
    for (target, (name, bytes, _)) in
        all.into_iter().flat_map(|(t, all)| all.into_iter().map(move |s| (t, s)))
    {
        let path = folder(target).join(name);
        if update {
            fs::create_dir_all(folder(target)).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let found = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(found == bytes, "{name} is stale; run this test with UPDATE_SEEDS=1");
    }
}

#[test]
fn replaying_the_seeds_does_no_harm() {
    let mut n_seed = 0;
    for entry in fs::read_dir(folder("gguf")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let _ = visit(&bytes, bytes.len() as u64);
        for n in 0..bytes.len() {
            let _ = visit(&bytes[..n], bytes.len() as u64);
            let _ = visit(&bytes[..n], n as u64);
        }
        n_seed += 1;
    }
    assert!(n_seed >= seeds().len());
    for (name, bytes, is_good) in seeds() {
        let result = visit(&bytes, bytes.len() as u64);
        assert_eq!(result.is_ok(), is_good, "{name}: {result:?}");
    }
}

#[test]
fn importance_matrices_are_read_or_refused_at_any_length() {
    for (name, bytes, is_good) in imatrices() {
        let result = Imatrix::parse(bytes.clone());
        assert_eq!(result.is_ok(), is_good, "{name}: {result:?}");
        (0..=bytes.len()).for_each(|n| imatrix(&bytes[..n]));
    }
}
