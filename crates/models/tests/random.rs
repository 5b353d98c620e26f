//! The fuzz target of LoRAs: its seeds, which this file generates, and random changes of them.
//!
//! `UPDATE_SEEDS=1 cargo test -p chaski-models --test random` regenerates the seeds.

#[path = "../../../fuzz/drive.rs"]
mod drive;
#[path = "fuzz/lora.rs"]
mod lora;

use std::path::{Path, PathBuf};

use ggml_format::{GgmlType, GgufWriter, OwnedValue};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/lora")
}

/// A LoRA for some tensors: their names with the shapes of A and B, fastest first.
fn file(edit: &[(&str, OwnedValue)], ty: GgmlType, pairs: &[(&str, &[u64], &[u64])]) -> Vec<u8> {
    let mut w = GgufWriter::new();
    let keys = [
        ("general.architecture", "llama".into()),
        ("general.type", "adapter".into()),
        ("adapter.type", "lora".into()),
        ("adapter.lora.alpha", 16.0f32.into()),
    ];
    let kept = keys.iter().filter(|(key, _)| edit.iter().all(|(edited, _)| edited != key));
    for (key, value) in kept.chain(edit) {
        w.set(key, value.clone()).expect("metadata");
    }
    let halves = pairs.iter().flat_map(|(name, a, b)| [(name, "lora_a", a), (name, "lora_b", b)]);
    let tensors: Vec<(String, u64)> = halves
        .map(|(name, half, ne)| {
            let name = format!("{name}.{half}");
            w.tensor(&name, ne, ty).expect("a tensor");
            let n_row: u64 = ne[1..].iter().product();
            (name, ty.row_bytes(ne[0]).expect("whole blocks") * n_row)
        })
        .collect();
    let mut data = w.begin(Vec::new()).expect("a head in memory");
    for (name, n_byte) in tensors {
        data.write(&name, &vec![0x3c; n_byte as usize]).expect("data in memory");
    }
    data.finish().expect("all data were written")
}

/// Name, content, and the error, or `a graph`.
fn seeds() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    use GgmlType::{F16, F32, Q8_0};
    let q: (&str, &[u64], &[u64]) = ("blk.0.attn_q.weight", &[32, 2], &[2, 32]);
    let experts: (&str, &[u64], &[u64]) = ("blk.0.ffn_up_exps.weight", &[32, 2, 2], &[2, 32, 2]);
    let embeddings: (&str, &[u64], &[u64]) = ("token_embd.weight", &[1, 8], &[1, 32]);
    let norm: (&str, &[u64], &[u64]) = ("blk.0.attn_norm.weight", &[32, 1], &[1, 1]);
    let other: (&str, &[u64], &[u64]) = ("blk.7.attn_q.weight", &[32, 2], &[2, 32]);
    let long: (&str, &[u64], &[u64]) = ("blk.0.attn_k.weight", &[32, 2], &[2, 64]);
    let blocks: (&str, &[u64], &[u64]) = ("output.weight", &[32, 32], &[32, 8]);
    let alone = [("general.type", "model".into())];
    let spoken = [("adapter.alora.invocation_tokens", vec![1u32].into())];
    let infinite = [("adapter.lora.alpha", f32::INFINITY.into())];
    let shape = "tensor `blk.0.attn_k.weight.lora_b` of the LoRA: expected shape [32, 2], found [64, 2]";
    vec![
        ("dense", file(&[], F32, &[q]), "a graph"),
        ("half", file(&[], F16, &[q, embeddings]), "a graph"),
        ("experts", file(&[], F32, &[experts, q]), "a graph"),
        ("blocks", file(&[], Q8_0, &[blocks]), "a graph"),
        (
            "norm",
            file(&[], F32, &[norm]),
            "the LoRA has tensors for `blk.0.attn_norm.weight`, but LoRA for it is not",
        ),
        ("missing", file(&[], F32, &[other]), "the LoRA has tensors for `blk.7.attn_q.weight`"),
        ("shape", file(&[], F32, &[long]), shape),
        ("model", file(&alone, F32, &[q]), "`general.type` is `model`"),
        ("alora", file(&spoken, F32, &[q]), "`adapter.alora.invocation_tokens` is present"),
        ("alpha", file(&infinite, F32, &[q]), "`adapter.lora.alpha` is inf"),
    ]
}

#[test]
fn seeds_are_what_this_file_makes() {
    let update = std::env::var_os("UPDATE_SEEDS").is_some();
    for (name, bytes, expected) in seeds() {
        let path = folder().join(name);
        if update {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        let found = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(found == bytes, "{name} is stale; run this test with UPDATE_SEEDS=1");
        let result = lora::attached(&bytes).map_or_else(|e| e.to_string(), |()| "a graph".into());
        assert!(result.starts_with(expected), "{name}: {result}");
    }
}

#[test]
fn loras() {
    drive::drive("lora", lora::lora);
}
