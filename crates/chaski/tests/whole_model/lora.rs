//! LoRA: a model with LoRAs gives the logits of the same model with merged weights, at any scale.

use std::collections::BTreeMap;

use chaski::gguf::{GgmlType, GgufWriter, MemorySource, OwnedValue};
use chaski::kernels::FeatureSet;
use chaski::serve::Request;
use chaski::steps::Runner;
use chaski::{GenerateOptions, KvType, SamplerParams};
use chaski_models::serve::serve;
use chaski_models::{Lora, LoraError, Model, RunnerConfig, Target};

use crate::archs::{Fixture, GELU, open, wanted, weights};
use crate::common::{
    Failures, Timed, block_on, chain, full, gpu_sets, left_for_full, nmse, one_in, say, shared_gpu,
};
use crate::serve::outcome;

/// Fixtures with the tensors that LoRAs can target: plain products and those of experts, consecutive and interleaved
/// parts of one tensor, biases and scales, products of one row, recurrent layers, several kinds of norms, an output
/// matrix.
const FIXTURES: &[(&str, f64)] = &[
    ("llama-plain", LIMIT),
    ("llama-scales", LIMIT),
    ("llama-moe", LIMIT),
    ("qwen2moe-moe", LIMIT),
    ("phi3-dense", LIMIT),
    ("gpt2-dense", GELU),
    ("gemma3-dense", GELU),
    ("qwen35-heads", LIMIT),
    ("mamba-dense", LIMIT),
    ("lfm2-window", LIMIT),
];

/// Tokens to run.
const N: usize = 12;

/// Sums are reordered; merged weights are rounded once more.
const LIMIT: f64 = 1e-10;

/// Target tensors: every matrix that multiplies, and embeddings that are not the output matrix.
fn adapted(name: &str, ne: &[u64], tied: bool) -> bool {
    let no_matrix = ["norm.weight", "conv.weight", "conv1d.weight", "position_embd.weight", ".ssm_a"];
    ne.len() > 1
        && name.ends_with(".weight")
        && !no_matrix.iter().any(|end| name.ends_with(end))
        && !(tied && name == "token_embd.weight")
}

/// Shapes of the target tensors of a fixture.
pub(crate) fn targets(model: &Model<MemorySource>) -> BTreeMap<String, Vec<u64>> {
    let tied = model.tensors().iter().all(|t| t.name != "output.weight");
    let shape = |t: &chaski::gguf::TensorInfo| {
        let mut ne: Vec<u64> = t.shape();
        ne.reverse();
        ne
    };
    let all = model.tensors().iter().map(|t| (t.name.clone(), shape(t)));
    all.filter(|(name, ne)| adapted(name, ne, tied)).collect()
}

/// Metadata of a LoRA file.
type Keys = Vec<(&'static str, OwnedValue)>;
/// Names and shapes of its tensors.
type Shapes = Vec<(String, Vec<u64>)>;

/// A synthetic LoRA: matrices derived from their names and a seed.
#[derive(Copy, Clone)]
pub(crate) struct Synthetic {
    rank: u64,
    alpha: f32,
    seed: u64,
    ty: GgmlType,
}

impl Synthetic {
    /// Factor of the scale.
    fn factor(&self) -> f32 {
        if self.alpha == 0.0 { 1.0 } else { self.alpha / self.rank as f32 }
    }

    /// Shapes of A and B, fastest first.
    fn shapes(&self, name: &str, ne: &[u64]) -> [Vec<u64>; 2] {
        let (n_in, n_out) = (ne[0], ne[1]);
        let [mut a, mut b] = match name {
            "token_embd.weight" => [vec![self.rank, n_out], vec![self.rank, n_in]],
            _ => [vec![n_in, self.rank], vec![self.rank, n_out]],
        };
        a.extend(&ne[2..]);
        b.extend(&ne[2..]);
        [a, b]
    }

    fn values(&self, name: &str, half: &str, ne: &[u64]) -> Vec<f32> {
        // Fixtures give such names multiples of 2^-13, which f16 represents.
        weights(&format!("{name}.{half}").replace("norm", "n"), ne.iter().product(), self.seed)
    }

    /// The file for tensors of these names and shapes.
    pub(crate) fn gguf(&self, arch: &str, tensors: &BTreeMap<String, Vec<u64>>) -> Vec<u8> {
        self.gguf_of(arch, tensors, |_, _| {})
    }

    fn gguf_of(
        &self,
        arch: &str,
        tensors: &BTreeMap<String, Vec<u64>>,
        edit: impl Fn(&mut Keys, &mut Shapes),
    ) -> Vec<u8> {
        let mut metadata: Vec<(&str, OwnedValue)> = vec![
            ("general.architecture", arch.into()),
            ("general.type", "adapter".into()),
            ("adapter.type", "lora".into()),
            ("adapter.lora.alpha", self.alpha.into()),
        ];
        let mut all: Vec<(String, Vec<u64>)> = Vec::new();
        for (name, ne) in tensors {
            let [a, b] = self.shapes(name, ne);
            all.extend([(format!("{name}.lora_a"), a), (format!("{name}.lora_b"), b)]);
        }
        edit(&mut metadata, &mut all);
        let mut writer = GgufWriter::new();
        metadata.into_iter().for_each(|(k, v)| writer.set(k, v).map(drop).expect("metadata"));
        all.iter().for_each(|(name, ne)| writer.tensor(name, ne, self.ty).map(drop).expect("a tensor"));
        let mut data = writer.begin(Vec::new()).expect("a head in memory");
        for (name, ne) in &all {
            let (base, half) = name.rsplit_once('.').expect("a name with an end");
            let values = self.values(base, half, ne);
            let mut bytes = vec![0; values.len() * self.ty.block_bytes()];
            chaski::gguf::quantize(self.ty, &values, ne[0] as usize, None, &mut bytes).expect("values");
            data.write(name, &bytes).expect("data in memory");
        }
        data.finish().expect("all data were written")
    }

    /// Adds s B A to a tensor.
    fn merge(&self, name: &str, ne: &[u64], scale: f32, w: &mut [f32]) {
        let [a_ne, b_ne] = self.shapes(name, ne);
        let (a, b) = (self.values(name, "lora_a", &a_ne), self.values(name, "lora_b", &b_ne));
        let (n_in, n_out, r) = (ne[0] as usize, ne[1] as usize, self.rank as usize);
        let s = f64::from(scale) * f64::from(self.factor());
        // Plain loops, as in `units`: steps of output, input and rank in A and B.
        let (a_steps, b_steps) =
            if name == "token_embd.weight" { ([r, 0, 1], [0, r, 1]) } else { ([0, 1, n_in], [r, 0, 1]) };
        for (m, w) in w.chunks_exact_mut(n_in * n_out).enumerate() {
            let (a, b) = (&a[m * r * n_in..], &b[m * r * n_out..]);
            for o in 0..n_out {
                for i in 0..n_in {
                    let (mut at_a, mut at_b) =
                        (o * a_steps[0] + i * a_steps[1], o * b_steps[0] + i * b_steps[1]);
                    let (mut k, mut sum) = (0, 0.0);
                    while k < r {
                        sum += f64::from(a[at_a]) * f64::from(b[at_b]);
                        at_a += a_steps[2];
                        at_b += b_steps[2];
                        k += 1;
                    }
                    let w = &mut w[o * n_in + i];
                    *w = (f64::from(*w) + s * sum) as f32;
                }
            }
        }
    }
}

pub(crate) const FIRST: Synthetic = Synthetic { rank: 8, alpha: 16.0, seed: 11, ty: GgmlType::F32 };
pub(crate) const SECOND: Synthetic = Synthetic { rank: 5, alpha: 0.0, seed: 12, ty: GgmlType::F16 };

/// The fixture with LoRAs merged into its weights.
fn merged(f: &Fixture, tensors: &BTreeMap<String, Vec<u64>>, all: &[(Synthetic, f32)]) -> Vec<u8> {
    f.gguf_of(false, &|_, _| {}, &|name| {
        let ne = tensors.get(name)?;
        let mut w = f.weights_of(name, ne.iter().product());
        all.iter().for_each(|(lora, scale)| lora.merge(name, ne, *scale, &mut w));
        Some(w)
    })
}

pub(crate) fn attach(model: &mut Model<MemorySource>, bytes: Vec<u8>, scale: f32) -> Result<(), String> {
    let lora = block_on(Lora::open(MemorySource::new("lora.gguf", bytes)));
    let lora = lora.map_err(|e| chain(&e))?;
    model.attach(lora, scale).map_err(|e| chain(&e))
}

fn load(model: &Model<MemorySource>, set: Option<FeatureSet>) -> Runner {
    let target = set.map_or(Target::Cpu, |set| Target::Gpu(shared_gpu(set, false)));
    let config = RunnerConfig { n_ctx: 64, kv: KvType::F32, chunk: 64, ..RunnerConfig::default() };
    block_on(Runner::load(model, &target, &config, |_| {})).unwrap_or_else(|e| panic!("{}", chain(&e)))
}

/// Logits of all tokens, `chunk` at a time.
fn logits(runner: &mut Runner, tokens: &[u32], chunk: usize) -> Vec<f32> {
    runner.truncate(0);
    block_on(runner.eval_all(tokens, chunk)).expect("tokens run")
}

const SETS: [Option<FeatureSet>; 3] = [None, Some(FeatureSet::Sg), Some(FeatureSet::Base)];

#[test]
fn a_model_with_loras_is_the_model_with_merged_weights() {
    let _t = Timed::new("LoRAs");
    let mut failures = Failures::default();
    // By default every second, MoE among them.
    for &(name, limit) in one_in(2, FIXTURES).filter(|f| wanted(f.0)) {
        let f = Fixture::load(name);
        let bytes = f.gguf(false, &|_, _| {});
        let base = open(bytes.clone()).expect("a fixture is a model");
        let tensors = targets(&base);
        let tokens = &f.tokens[..N];
        let expected: Vec<Vec<f32>> = [(0.75, 0.0), (0.75, -1.5), (0.0, 0.0)]
            .map(|(first, second)| {
                let merged = merged(&f, &tensors, &[(FIRST, first), (SECOND, second)]);
                logits(&mut load(&open(merged).expect("a model"), None), tokens, N)
            })
            .to_vec();
        assert!(nmse(&expected[0], &expected[1]) > 1e-3, "{name}: the second LoRA changes something");
        assert!(nmse(&expected[0], &expected[2]) > 1e-3, "{name}: the first LoRA changes something");
        let mut model = open(bytes).expect("a fixture is a model");
        let arch = base.arch().name;
        attach(&mut model, FIRST.gguf(arch, &tensors), 0.75).expect("a LoRA that fits");
        attach(&mut model, SECOND.gguf(arch, &tensors), 0.0).expect("a LoRA that fits");
        // By default MoE alone runs on the GPU, with one feature set.
        let is_on_gpu = full() || name == "llama-moe";
        let on_gpu = gpu_sets().iter().map(|set| Some(*set)).filter(|_| is_on_gpu);
        for set in [None].into_iter().chain(on_gpu) {
            let word = set.map_or("CPU", FeatureSet::word);
            let mut runner = load(&model, set);
            let mut errors = Vec::new();
            let mut compare = |what: &str, found: &[f32], expected: &[f32]| {
                let e = nmse(found, expected);
                errors.push(format!("{e:.1e}"));
                failures.check(e <= limit, || format!("{name}, {word}, {what}: {e:.2e}"));
            };
            compare("one", &logits(&mut runner, tokens, N), &expected[0]);
            // The same plan with other scales.
            runner.set_lora_scales(&[0.75, -1.5]).expect("two scales");
            // In batches of several sequences, too (below).
            if set.is_none() || full() {
                compare("both, by fives", &logits(&mut runner, tokens, 5), &expected[1]);
            }
            compare("both, token by token", &logits(&mut runner, tokens, 1), &expected[1]);
            runner.set_lora_scales(&[0.0, 0.0]).expect("two scales");
            let none = logits(&mut runner, tokens, N);
            compare("none", &none, &expected[2]);
            // As in decode: only the last token's logits.
            runner.set_lora_scales(&[0.75, 0.0]).expect("two scales");
            block_on(runner.prefill(tokens)).expect("tokens run");
            let last = block_on(runner.logits()).expect("logits of the last token");
            compare("the last", &last, &expected[0][expected[0].len() - last.len()..]);
            // The references sum in the same order with and without LoRAs.
            let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            failures.check(set.is_some() || bits(&none) == bits(&expected[2]), || {
                format!("{name}: LoRAs with a scale of 0 change bits on the CPU")
            });
            say(format!("{name:16} {word:10} LoRAs: NMSE {}", errors.join(" ")));
        }
    }
    failures.conclude();
}

/// LoRA matrices of offloaded experts are offloaded, too.
#[test]
fn loras_of_experts_stream_with_them() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("LoRAs, experts on the CPU");
    for name in ["llama-moe", "gemma4-moe"].into_iter().take(if full() { 2 } else { 1 }) {
        let f = Fixture::load(name);
        let bytes = crate::streaming::with_experts(&f, 6, 2, None);
        let mut model = open(bytes).expect("a fixture is a model");
        let all = targets(&model);
        let tensors: BTreeMap<String, Vec<u64>> =
            all.into_iter().filter(|t| t.0.contains("_exps") || t.0.contains("attn_q")).collect();
        assert!(tensors.keys().any(|name| name.contains("_exps")), "{name}");
        let arch = model.arch().name;
        attach(&mut model, FIRST.gguf(arch, &tensors), 0.5).expect("a LoRA that fits");
        let run = |slots: Option<u32>| {
            let config = crate::streaming::config(slots);
            let target = Target::Gpu(shared_gpu(FeatureSet::Sg, false));
            let mut r = block_on(Runner::load(&model, &target, &config, |_| {})).expect("a fixture loads");
            let mut out = logits(&mut r, &f.tokens[..N], N);
            r.set_lora_scales(&[-0.75]).expect("a scale");
            out.extend(logits(&mut r, &f.tokens[..N], 1));
            out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let expected = run(None);
        let slots = if full() { &[2, 4][..] } else { &[2] };
        assert!(slots.iter().all(|slots| run(Some(*slots)) == expected), "{name}: other bits");
    }
}

/// Each sequence has its own scales, batched and alone; sequences with different scales share no prefix. By default on
/// the CPU: `loras_together` has a GPU.
#[test]
fn sequences_have_their_own_lora_scales() {
    let _t = Timed::new("LoRAs, sequences");
    let f = Fixture::load("llama-plain");
    let bytes = f.gguf(false, &|_, _| {});
    let base = open(bytes.clone()).expect("a fixture is a model");
    let tensors = targets(&base);
    let mut model = open(bytes).expect("a fixture is a model");
    attach(&mut model, FIRST.gguf("llama", &tensors), 0.0).expect("a LoRA that fits");
    let tokens = &f.tokens[..N];
    let all_scales = [0.75f32, 0.0, 0.75, -0.5];
    let expected = all_scales.map(|s| {
        logits(&mut load(&open(merged(&f, &tensors, &[(FIRST, s)])).expect("a model"), None), tokens, N)
    });
    for set in SETS.into_iter().take(if full() { 3 } else { 1 }) {
        let target = set.map_or(Target::Cpu, |set| Target::Gpu(shared_gpu(set, false)));
        let config =
            RunnerConfig { n_ctx: 64, n_seq: 4, chunk: 16, kv: KvType::F32, ..RunnerConfig::default() };
        let mut r = block_on(Runner::load(&model, &target, &config, |_| {})).expect("a fixture loads");
        for (seq, scale) in all_scales.into_iter().enumerate() {
            r.select(seq);
            r.adapt(&[scale]).expect("a scale");
            block_on(r.feed(&tokens[..4])).expect("4 tokens run");
        }
        let mut found = vec![Vec::new(); 4];
        for t in &tokens[4..] {
            let columns: Vec<(usize, u32)> = (0..4).map(|seq| (seq, *t)).collect();
            let rows = block_on(r.eval_columns(&columns)).expect("4 columns run");
            for (found, row) in found.iter_mut().zip(rows.chunks_exact(r.n_vocab() as usize)) {
                found.extend_from_slice(row);
            }
        }
        for ((found, all), scale) in found.iter().zip(&expected).zip(all_scales) {
            let e = nmse(found, &all[all.len() - found.len()..]);
            assert!(e <= LIMIT, "{set:?}, scale {scale}: {e:.2e}");
        }
        assert_eq!((r.share(0, 1, 8), r.history_of(1).len()), (0, N), "what other scales made is not shared");
        assert_eq!(r.share(0, 2, 8), 8);
        r.select(3);
        r.adapt(&[-0.5]).expect("a scale");
        assert_eq!(r.history().len(), N, "nothing changed");
        r.adapt(&[0.5]).expect("a scale");
        assert_eq!(r.history().len(), 0);
        assert!(r.adapt(&[]).is_err() && r.adapt(&[f32::INFINITY]).is_err());
    }
    // Concurrent requests, and one after another.
    let target = if full() { Target::Gpu(shared_gpu(FeatureSet::Sg, false)) } else { Target::Cpu };
    let run_all = |n_seq, scales: &[Option<f32>]| {
        let config = RunnerConfig { n_ctx: 64, n_seq, chunk: 16, kv: KvType::F32, ..RunnerConfig::default() };
        let r = block_on(Runner::load(&model, &target, &config, |_| {})).expect("a fixture loads");
        let (handle, driver) = serve(r, model.shared_text().0, 8).expect("a service");
        driver.spawn().expect("a thread");
        let request = |scale: &Option<f32>| {
            let options = GenerateOptions {
                sampler: SamplerParams::greedy(),
                max_tokens: Some(6),
                lora: scale.map(|s| vec![s]),
                ..GenerateOptions::default()
            };
            handle.generate(Request::new(tokens.to_vec(), options)).expect("a request that fits")
        };
        let answers: Vec<_> = scales.iter().map(request).collect();
        let found: Vec<Vec<u32>> = answers.into_iter().map(|a| outcome(a).tokens).collect();
        found
    };
    let scales = [Some(0.75), None, Some(-0.5), Some(0.75), Some(0.0)];
    let together = run_all(4, &scales);
    // By default each scale once.
    let n_apart = if full() { scales.len() } else { 3 };
    let mut apart: Vec<Vec<u32>> = scales[..n_apart].iter().flat_map(|s| run_all(1, &[*s])).collect();
    if !full() {
        apart.extend_from_within(..2);
    }
    assert_eq!(together, apart);
    assert_eq!(run_all(1, &scales), apart, "one after the other");
    assert!(together[0] != together[1] && together[0] == together[3] && together[1] == together[4]);
}

/// Requests of different scales at once, in several orders of arrival, while others leave: each has the tokens that it
/// has alone, though the device runs steps ahead.
#[test]
fn requests_of_several_lora_scales_do_not_change_each_other() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("LoRAs, requests");
    let f = Fixture::load("llama-plain");
    let bytes = f.gguf(false, &|_, _| {});
    let tensors = targets(&open(bytes.clone()).expect("a fixture is a model"));
    let mut model = open(bytes).expect("a fixture is a model");
    attach(&mut model, FIRST.gguf("llama", &tensors), 0.5).expect("a LoRA that fits");
    let tokens = &f.tokens[..N];
    let gpu = shared_gpu(FeatureSet::Sg, false);
    let targets = [Target::Cpu, Target::Gpu(gpu.clone()), Target::AfterCpu(vec![gpu])];
    for target in targets.into_iter().take(if full() { 3 } else { 2 }) {
        let sizes = RunnerConfig { n_ctx: 64, n_seq: 4, chunk: 16, ..RunnerConfig::default() };
        let config = RunnerConfig { kv: KvType::F32, gpu_layers: Some(1), ..sizes };
        let r = block_on(Runner::load(&model, &target, &config, |_| {})).expect("a fixture loads");
        let (handle, driver) = serve(r, model.shared_text().0, 32).expect("a service");
        driver.spawn().expect("a thread");
        let ask = |i: usize| {
            let sampler = match i / 4 {
                0 => SamplerParams::greedy(),
                _ => SamplerParams { seed: Some(i as u32), ..SamplerParams::default() },
            };
            let lora = [None, Some(vec![0.0]), Some(vec![0.5]), Some(vec![1.0])][i % 4].clone();
            let options =
                GenerateOptions { sampler, lora, max_tokens: Some(20), ..GenerateOptions::default() };
            handle.generate(Request::new(tokens[..4 + i % 3].to_vec(), options)).expect("a prompt that fits")
        };
        let alone: Vec<Vec<u32>> = (0..8).map(|i| outcome(ask(i)).tokens).collect();
        assert!(alone[1] != alone[2] && alone[2] != alone[3], "{alone:?}");
        for turn in 1..if full() { 4 } else { 2 } {
            let order = || (0..16).map(move |i| (i * (2 * turn + 1)) % 16);
            let answers: Vec<_> = order().map(|i| (i, ask(i % 8))).collect();
            for (i, mut answer) in answers {
                if i < 8 {
                    assert_eq!(outcome(answer).tokens, alone[i], "request {i}, turn {turn}");
                } else {
                    // It leaves before its end.
                    (0..i % 4).for_each(|_| drop(block_on(answer.next())));
                }
            }
        }
        assert_eq!(handle.load().n_recovered, 0);
    }
}

#[test]
fn loras_that_do_not_fit_are_errors_that_name_the_tensor() {
    let f = Fixture::load("llama-plain");
    let q = "blk.0.attn_q.weight".to_owned();
    let tensors: BTreeMap<String, Vec<u64>> = targets(&open(f.gguf(false, &|_, _| {})).expect("a model"))
        .into_iter()
        .filter(|t| t.0 == q)
        .collect();
    type Edit = fn(&mut Keys, &mut Shapes);
    let set = |key: &'static str, value: OwnedValue| {
        move |m: &mut Keys| {
            m.retain(|(k, _)| *k != key);
            m.push((key, value.clone()));
        }
    };
    let with = |edit: &dyn Fn(&mut Keys, &mut Shapes)| {
        let mut model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
        let r = attach(&mut model, FIRST.gguf_of("llama", &tensors, edit), 1.0);
        r.map_or_else(|e| e, |()| block_on(model.graph(64)).map_or_else(|e| chain(&e), |_| "a graph".into()))
    };
    assert_eq!(with(&|_, _| {}), "a graph");
    let architecture = set("general.architecture", "qwen2".into());
    assert_eq!(
        with(&|m, _| architecture(m)),
        "the LoRA is for the architecture `qwen2`, the model has `llama`"
    );
    let kind = set("general.type", "model".into());
    assert_eq!(with(&|m, _| kind(m)), "`general.type` is `model`, but a LoRA has adapter");
    let kind = set("adapter.type", "dora".into());
    assert_eq!(with(&|m, _| kind(m)), "`adapter.type` is `dora`, but a LoRA has lora");
    let cases: [(Edit, &str); 6] = [
        (|_, t| t.truncate(1), "tensor `blk.0.attn_q.weight.lora_b` of the LoRA is missing"),
        (|_, t| t.clear(), "the LoRA has no tensors"),
        (
            |_, t| t[1].1[1] += 1,
            "tensor `blk.0.attn_q.weight.lora_b` of the LoRA: expected shape [256, 8], found [257, 8] (outermost first)",
        ),
        (
            |_, t| t[0].1[0] *= 2,
            "tensor `blk.0.attn_q.weight.lora_a` of the LoRA: expected shape [8, 256], found [8, 512] (outermost first)",
        ),
        (
            |_, t| t.iter_mut().for_each(|t| t.0 = t.0.replace("blk.0", "blk.9")),
            "the LoRA has tensors for `blk.9.attn_q.weight`, which the model lacks",
        ),
        (
            |_, t| t[0].0 = "blk.0.attn_norm.weight".into(),
            "tensor `blk.0.attn_norm.weight` of the LoRA is neither `.lora_a` nor `.lora_b` of another tensor",
        ),
    ];
    for (edit, expected) in cases {
        assert_eq!(with(&edit), expected);
    }
}

#[test]
fn tensors_without_lora_support_and_wrong_scales_are_errors() {
    let f = Fixture::load("deepseek2-moe");
    let mut model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
    let name = "blk.0.attn_v_b.weight";
    let all: BTreeMap<String, Vec<u64>> =
        model.tensors().iter().map(|t| (t.name.clone(), t.shape().into_iter().rev().collect())).collect();
    let tensors = BTreeMap::from([(name.to_owned(), all[name].clone())]);
    attach(&mut model, FIRST.gguf("deepseek2", &tensors), 1.0).expect("a LoRA that fits");
    let found = block_on(model.graph(64)).map_or_else(|e| chain(&e), |_| "a graph".into());
    assert_eq!(found, "the LoRA has tensors for `blk.0.attn_v_b.weight`, but LoRA for it is not supported");
    let e = model.set_lora_scales(&[1.0, 2.0]).expect_err("there is one LoRA");
    assert_eq!(chain(&e), "expected 1 scales, one per LoRA, found 2");
    let e = model.set_lora_scales(&[f32::NAN]).expect_err("no number");
    assert!(matches!(e, chaski::errors::ModelError::Lora(LoraError::Scale { .. })), "{e}");
}
