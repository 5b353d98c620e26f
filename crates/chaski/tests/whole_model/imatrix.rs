//! Importance matrices, compared with sums from the formulas, and their effect on quantisation.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use chaski::errors::ModelError;
use chaski::gguf::{GgmlType, Gguf, Imatrix, dequantize, quantize};
use chaski::kernels::ActivationPrecision;
use chaski::text::{AddSpecial, ParseSpecial};
use chaski::tools::{ImatrixOptions, imatrix};
use chaski::{DeviceChoice, Engine, Source};
use chaski_runtime::cpu::{CpuConfig, CpuModel, Threads};
use chaski_runtime::{Column, ColumnOutput};

use crate::archs::{Fixture, open};
use crate::common::{Timed, block_on, build, default_model, read};

const TEXT: &str = "Once upon a time there was a little dog. He liked to play with a red ball. One day the ball was gone. \
                    The dog looked under the bed, but it was not there. He asked the cat, and the cat said no.";

const N_CTX: usize = 16;

fn measure(device: DeviceChoice, process_output: bool) -> (Vec<u32>, Result<Imatrix, ModelError>) {
    let mut engine = build(
        Engine::builder(Source::Default)
            .device(device)
            .inputs(ActivationPrecision::F32)
            .context(N_CTX as u32),
    );
    let (tokenizer, runner) = engine.parts();
    let tokens = tokenizer.encode(TEXT, AddSpecial::Yes, ParseSpecial::No).expect("a text");
    let options = ImatrixOptions {
        n_ctx: N_CTX,
        skip: 1,
        max_chunks: NonZeroUsize::new(2),
        process_output,
        parse_special: false,
    };
    (tokens, block_on(imatrix(runner, tokenizer, TEXT, &options, &|_| 1, |_| Ok(()))))
}

/// The default model's tensors as values, and the model in textbook form: token by token, in f64, without a graph.
struct ByHand {
    tensors: BTreeMap<String, (usize, Vec<f32>)>,
    sums: BTreeMap<String, Vec<f64>>,
}

const N_LAYER: usize = 8;
const N_HEAD: usize = 8;
const N_HEAD_KV: usize = 4;
const D_HEAD: usize = 32;

impl ByHand {
    fn new() -> ByHand {
        let bytes = read(&default_model());
        let gguf = Gguf::parse(bytes.clone().into(), bytes.len() as u64).expect("the default model");
        let values = |t: &chaski::gguf::TensorInfo| {
            let mut y = vec![0.0; t.n_elem() as usize];
            dequantize(t.ty, &bytes[t.offset as usize..][..t.n_byte as usize], &mut y).expect("a tensor");
            (t.name.clone(), (t.ne[0] as usize, y))
        };
        ByHand { tensors: gguf.tensors().iter().map(values).collect(), sums: BTreeMap::new() }
    }

    fn product(&mut self, name: &str, x: &[f64]) -> Vec<f64> {
        let (n_col, w) = &self.tensors[name];
        assert_eq!(*n_col, x.len(), "{name}");
        let sums = self.sums.entry(name.to_owned()).or_insert_with(|| vec![0.0; x.len()]);
        sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += x * x);
        w.chunks(*n_col).map(|row| row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum()).collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let rms = (x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64 + 1e-5).sqrt();
        x.iter().zip(&self.tensors[name].1).map(|(x, w)| x / rms * f64::from(*w)).collect()
    }

    /// RoPE of adjacent channels, the first pair by one radian per token.
    fn rotate(x: &mut [f64], pos: usize) {
        for head in x.chunks_mut(D_HEAD) {
            for (i, pair) in head.chunks_mut(2).enumerate() {
                let angle = pos as f64 * 10_000f64.powf(-2.0 * i as f64 / D_HEAD as f64);
                let (a, b) = (pair[0], pair[1]);
                pair[0] = a * angle.cos() - b * angle.sin();
                pair[1] = a * angle.sin() + b * angle.cos();
            }
        }
    }

    fn run(&mut self, tokens: &[u32]) {
        let mut cache: Vec<Vec<(Vec<f64>, Vec<f64>)>> = vec![Vec::new(); N_LAYER];
        for (pos, token) in tokens.iter().enumerate() {
            let (width, table) = &self.tensors["token_embd.weight"];
            let row = &table[*token as usize * width..][..*width];
            let mut x: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
            for (layer, cache) in cache.iter_mut().enumerate() {
                let name = |part: &str| format!("blk.{layer}.{part}.weight");
                let h = self.norm(&name("attn_norm"), &x);
                let mut q = self.product(&name("attn_q"), &h);
                let mut k = self.product(&name("attn_k"), &h);
                let v = self.product(&name("attn_v"), &h);
                Self::rotate(&mut q, pos);
                Self::rotate(&mut k, pos);
                cache.push((k, v));
                let mut mixed = Vec::new();
                for (head, q) in q.chunks(D_HEAD).enumerate() {
                    let at = head / (N_HEAD / N_HEAD_KV) * D_HEAD;
                    let score = |k: &[f64]| {
                        let dot: f64 = k[at..at + D_HEAD].iter().zip(q).map(|(k, q)| k * q).sum();
                        (dot / (D_HEAD as f64).sqrt()).exp()
                    };
                    let scores: Vec<f64> = cache.iter().map(|(k, _)| score(k)).collect();
                    let total: f64 = scores.iter().sum();
                    for j in at..at + D_HEAD {
                        mixed.push(cache.iter().zip(&scores).map(|((_, v), s)| v[j] * s / total).sum());
                    }
                }
                let out = self.product(&name("attn_output"), &mixed);
                x.iter_mut().zip(&out).for_each(|(x, o)| *x += o);
                let h = self.norm(&name("ffn_norm"), &x);
                let gate = self.product(&name("ffn_gate"), &h);
                let up = self.product(&name("ffn_up"), &h);
                let inner: Vec<f64> = gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
                let down = self.product(&name("ffn_down"), &inner);
                x.iter_mut().zip(&down).for_each(|(x, d)| *x += d);
            }
            let h = self.norm("output_norm.weight", &x);
            self.product("token_embd.weight", &h);
        }
    }
}

#[test]
fn importance_is_what_the_formulas_give() {
    let _timed = Timed::new("importance_is_what_the_formulas_give");
    let (tokens, found) = measure(DeviceChoice::Cpu, true);
    let found = found.expect("the CPU measures");
    let mut by_hand = ByHand::new();
    for chunk in tokens.chunks_exact(N_CTX).skip(1).take(2) {
        let mut chunk = chunk.to_vec();
        // The model's first token is <|begin|>.
        chunk[0] = 0;
        by_hand.run(&chunk);
    }
    assert_eq!((found.n_chunk, found.chunk_len), (2, N_CTX as u32));
    assert_eq!(found.entries.len(), 7 * N_LAYER + 1);
    assert!(found.entries.keys().eq(by_hand.sums.keys()));
    for (name, entry) in &found.entries {
        assert_eq!(entry.counts(), [2.0 * N_CTX as f32], "{name}");
        let expected = &by_hand.sums[name];
        let error: f64 =
            entry.sums().iter().zip(expected).map(|(s, e)| (f64::from(*s) - e).powi(2)).sum::<f64>();
        let norm: f64 = expected.iter().map(|e| e * e).sum();
        // The model runs in f32.
        assert!(error < 1e-8 * norm, "{name}: {}", error / norm);
    }
}

#[test]
fn importance_lowers_the_error_of_outputs() {
    let found = measure(DeviceChoice::Cpu, false).1.expect("the CPU measures");
    let by_hand = ByHand::new();
    assert_eq!(found.entries.len(), 7 * N_LAYER);
    for ty in [GgmlType::IQ1_S, GgmlType::IQ2_XXS, GgmlType::IQ3_S, GgmlType::Q2_K, GgmlType::Q4_K] {
        let (mut with, mut without) = (0.0, 0.0);
        // The first layer and the last differ most.
        for name in found.entries.keys().filter(|name| name.contains(".0.") || name.contains(".7.")) {
            let (n_col, x) = &by_hand.tensors[name];
            let importance = found.importance(name, *n_col, 1).expect("of this model").expect("an entry");
            // The mean square error of the outputs, assuming independent inputs.
            let error = |weights: Option<&[f32]>| {
                let mut bytes = vec![0; x.len() / ty.block_len() * ty.block_bytes()];
                let mut y = vec![0.0; x.len()];
                quantize(ty, x, *n_col, weights, &mut bytes).expect("rows of whole blocks");
                dequantize(ty, &bytes, &mut y).expect("as many values");
                let square = |(i, (x, y)): (usize, (&f32, &f32))| {
                    f64::from(importance[i % n_col]) * f64::from(x - y).powi(2)
                };
                x.iter().zip(&y).enumerate().map(square).sum::<f64>()
            };
            with += error(Some(&importance));
            without += error(None);
        }
        assert!(with < 0.95 * without, "{ty}: {with} with importance, {without} without");
    }
}

#[test]
fn a_gpu_does_not_measure_importance() {
    let error = measure(DeviceChoice::Gpu(None), false).1.expect_err("a GPU shows no inputs");
    assert!(matches!(error, ModelError::NeedsCpu { .. }), "{error}");
}

#[test]
fn each_expert_is_shown_the_inputs_of_its_tokens() {
    let f = Fixture::load("olmoe-moe");
    let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
    let graph = block_on(model.graph(64)).expect("a graph");
    let n_used = model.config().n_expert_used as usize;
    let kv = (GgmlType::F32, GgmlType::F32);
    let config = CpuConfig {
        n_ctx: 64,
        n_seq: 1,
        page: 64,
        pool: None,
        kv,
        threads: Threads::default(),
        map: false,
        repack: false,
    };
    let cpu = CpuModel::load(graph, config, &model, |_, _| {});
    let mut cpu = block_on(cpu).expect("a fixture loads");
    // Inputs of each tensor's matrices.
    let mut n_row: BTreeMap<String, BTreeMap<u32, usize>> = BTreeMap::new();
    let mut watch = |p: chaski_runtime::cpu::ProductInput<'_>| {
        let rows = p.x.len() / p.weight.n_col as usize;
        *n_row.entry(p.weight.name.clone()).or_default().entry(p.matrix).or_default() += rows;
    };
    let column = |(token, pos): (&u32, u32)| Column::token(0, *token, pos);
    let columns: Vec<Column> = f.tokens.iter().zip(0..).map(column).collect();
    cpu.run_watched(&columns, &[ColumnOutput::Logits; 48], &mut watch).expect("48 tokens run");
    for layer in 0..model.config().n_layer {
        let of = |part: &str| &n_row[&format!("blk.{layer}.ffn_{part}_exps.weight")];
        assert_eq!(of("gate").values().sum::<usize>(), 48 * n_used, "layer {layer}");
        assert!(of("gate").len() > 1 && of("gate") == of("up") && of("gate") == of("down"), "layer {layer}");
    }
}
