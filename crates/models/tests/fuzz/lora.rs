//! Body of the fuzz target: any bytes are a LoRA of a small model, whose graph and matrices are then read, or an error.

use std::sync::LazyLock;

use chaski_models::{Lora, Model, ModelError};
use chaski_runtime::Tensors as _;
use ggml_format::{GgmlType, GgufWriter, MemorySource, OwnedValue, SourceError};

/// Any bytes, as a LoRA.
pub(crate) fn lora(bytes: &[u8]) {
    if let Err(error) = attached(bytes) {
        assert!(!error.to_string().is_empty());
    }
}

/// Opens a LoRA, attaches it to the model, and reads the weights of the graph.
pub(crate) fn attached(bytes: &[u8]) -> Result<(), ModelError> {
    pollster::block_on(async {
        let lora = Lora::open(MemorySource::new("lora.gguf", bytes.to_vec())).await?;
        assert!(lora.n_pair() > 0);
        let mut model = Model::open(MemorySource::new("model.gguf", BASE.clone()), none).await?;
        model.attach(lora, 0.5)?;
        let graph = model.graph(16).await?;
        for w in &graph.weights {
            let mut first = [0; 4];
            model.read(&w.name, 0, &mut first).await.expect("a weight of the graph can be read");
        }
        Ok(())
    })
}

fn none(name: &str) -> Result<MemorySource, SourceError> {
    Err(SourceError::Other { name: name.to_owned(), source: "there is one file".into() })
}

/// A model of one layer with two experts and 8 tokens; every size is 32.
static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut w = GgufWriter::new();
    let numbers = [
        ("context_length", 64),
        ("embedding_length", 32),
        ("block_count", 1),
        ("feed_forward_length", 32),
        ("attention.head_count", 1),
        ("attention.head_count_kv", 1),
        ("expert_count", 2),
        ("expert_used_count", 1),
        ("vocab_size", 8),
    ];
    w.set("general.architecture", "llama").expect("metadata");
    w.set("tokenizer.ggml.model", "none").expect("metadata");
    w.set("llama.attention.layer_norm_rms_epsilon", OwnedValue::from(1e-5f32)).expect("metadata");
    for (key, value) in numbers {
        w.set(&format!("llama.{key}"), OwnedValue::from(value as u32)).expect("metadata");
    }
    let tensors: [(&str, &[u64]); 13] = [
        ("token_embd.weight", &[32, 8]),
        ("output_norm.weight", &[32]),
        ("output.weight", &[32, 8]),
        ("blk.0.attn_norm.weight", &[32]),
        ("blk.0.attn_q.weight", &[32, 32]),
        ("blk.0.attn_k.weight", &[32, 32]),
        ("blk.0.attn_v.weight", &[32, 32]),
        ("blk.0.attn_output.weight", &[32, 32]),
        ("blk.0.ffn_norm.weight", &[32]),
        ("blk.0.ffn_gate_inp.weight", &[32, 2]),
        ("blk.0.ffn_gate_exps.weight", &[32, 32, 2]),
        ("blk.0.ffn_up_exps.weight", &[32, 32, 2]),
        ("blk.0.ffn_down_exps.weight", &[32, 32, 2]),
    ];
    for (name, ne) in tensors {
        w.tensor(name, ne, GgmlType::F32).expect("a tensor");
    }
    let mut data = w.begin(Vec::new()).expect("a head in memory");
    for (name, ne) in tensors {
        data.write(name, &vec![0; 4 * ne.iter().product::<u64>() as usize]).expect("data in memory");
    }
    data.finish().expect("all data were written")
});
