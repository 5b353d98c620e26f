//! Embeddings: hidden states, which times the output matrix give the golden logits; and pooling.

use chaski::embedding::{EmbedOptions, EmbedRequest, Embedding, Pooling, VectorNorm};
use chaski::gguf::GgmlType;
use chaski::kernels::FeatureSet;
use chaski::serve::Request;
use chaski::steps::Runner;
use chaski::{DeviceChoice, Engine, KvType, Source};
use chaski_models::{RunnerConfig, Target};

use crate::archs::{Fixture, GELU, open, wanted};
use crate::common::{
    Failures, Timed, block_on, build, chain, full, gpu_sets, greedy, left_for_full, nmse, say, shared_gpu,
};

/// Fixtures whose logits are products of the output matrix only: norms fused with the head or before it, layer norms,
/// recurrent state, tied embeddings.
const FIXTURES: &[&str] =
    &["llama-plain", "qwen3-dense", "gpt2-dense", "olmo2-dense", "mamba-dense", "lfm2-window"];

#[test]
fn hidden_states_times_the_output_matrix_are_the_golden_logits() {
    let _t = Timed::new("embeddings, fixtures");
    let mut failures = Failures::default();
    for (nth, &name) in FIXTURES.iter().enumerate().filter(|(_, n)| wanted(n)) {
        let f = Fixture::load(name);
        let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
        let tied = model.tensors().iter().all(|t| t.name != "output.weight");
        let head = if tied { "token_embd.weight" } else { "output.weight" };
        let c = model.config();
        let (n_embd, n_vocab) = (c.n_embd as usize, c.n_vocab as usize);
        let head = f.weights_of(head, (n_embd * n_vocab) as u64);
        let limit = if name == "gpt2-dense" { GELU } else { 1e-11 };
        let on_gpu = gpu_sets().iter().map(|set| Some(*set));
        // By default the first family.
        for set in [None].into_iter().chain(on_gpu.filter(|_| full() || nth == 0)) {
            let target = set.map_or(Target::Cpu, |set| Target::Gpu(shared_gpu(set, false)));
            let config = RunnerConfig { n_ctx: 64, kv: KvType::F32, chunk: 16, ..RunnerConfig::default() };
            let mut runner = block_on(Runner::load(&model, &target, &config, |_| {})).expect("a runner");
            // All at once as far as the plan allows, in parts, and a token alone.
            for pieces in [&[48][..], &[40, 7, 1]] {
                runner.truncate(0);
                let (mut rows, mut at) = (Vec::new(), 0);
                for n in pieces {
                    rows.extend(block_on(runner.eval_hidden(&f.tokens[at..at + n])).expect("tokens run"));
                    at += n;
                }
                assert_eq!(rows.len(), 48 * n_embd, "{name}");
                let dot = |x: &[f32], w: &[f32]| -> f32 {
                    x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum::<f64>() as f32
                };
                let rows = rows.chunks_exact(n_embd);
                let logits: Vec<f32> =
                    rows.flat_map(|x| head.chunks_exact(n_embd).map(move |w| dot(x, w))).collect();
                let e = nmse(&logits, f.logits_of(0, 48));
                let set = set.map_or("CPU", FeatureSet::word);
                say(format!("{name:24} {set:10} hidden states in pieces of {pieces:?}: NMSE {e:.1e}"));
                failures.check(e <= limit, || format!("{name}, {set}, {pieces:?}: {e:.2e} > {limit:.0e}"));
            }
        }
    }
    failures.conclude();
}

fn engine(device: DeviceChoice) -> Engine {
    build(Engine::builder(Source::Default).device(device).context(256).kv(KvType::both(GgmlType::F32)))
}

#[test]
fn texts_are_pooled_from_the_hidden_states_of_their_tokens() {
    let _t = Timed::new("embeddings, pooling");
    let texts =
        ["Once upon a time there was a dog.", "a", "Tom and Lily went to the park to play with a ball."];
    let mut engines = [DeviceChoice::Cpu, DeviceChoice::Gpu(None)].map(engine);
    let mut all = Vec::new();
    for engine in &mut engines {
        let mut of = |pooling, norm| {
            let options = EmbedOptions { pooling: Some(pooling), norm };
            block_on(engine.embed(&texts, &options)).expect("texts are embedded")
        };
        let none = of(Pooling::None, VectorNorm::None);
        let (mean, last) = (of(Pooling::Mean, VectorNorm::None), of(Pooling::Last, VectorNorm::None));
        let (cls, unit) = (of(Pooling::Cls, VectorNorm::None), of(Pooling::Mean, VectorNorm::P(2)));
        for (i, text) in texts.iter().enumerate() {
            let rows = &none[i].vectors;
            assert_eq!(rows.len(), none[i].n_token, "{text}");
            // A token that runs alone has other kernels.
            for (one, row) in [(&cls[i], rows.first()), (&last[i], rows.last())] {
                let e = nmse(&one.vectors[0], row.expect("a token"));
                assert!(one.vectors.len() == 1 && e <= 1e-7, "{text}: {e:.1e}");
            }
            let n = rows.len() as f32;
            let by_hand: Vec<f32> =
                (0..rows[0].len()).map(|c| rows.iter().map(|r| r[c]).sum::<f32>() / n).collect();
            assert!(nmse(&mean[i].vectors[0], &by_hand) <= 1e-12, "{text}");
            let length = |v: &[f32]| v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            let (unit, mean) = (&unit[i].vectors[0], &mean[i].vectors[0]);
            assert!((length(unit) - 1.0).abs() < 1e-6, "{text}: {}", length(unit));
            let scaled: Vec<f32> = mean.iter().map(|v| v / length(mean) as f32).collect();
            assert!(nmse(unit, &scaled) <= 1e-12, "{text}");
        }
        all.push([none, mean, last, cls]);
    }
    for (cpu, gpu) in all[0].iter().zip(&all[1]) {
        for (cpu, gpu) in cpu.iter().zip(gpu) {
            let flat = |e: &chaski::embedding::Embedding| e.vectors.concat();
            // Products with one column use 16-bit activations or add to quants (see `archs.rs`).
            let e = nmse(&flat(gpu), &flat(cpu));
            assert!(e <= 1e-6, "{e:.1e}");
        }
    }
}

/// Embeddings of texts in one request, and of each alone, while answers run or not, in chunks of several sizes.
#[test]
fn embeddings_do_not_depend_on_what_runs_beside_them() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("embeddings beside answers");
    let options = EmbedOptions { pooling: Some(Pooling::Mean), norm: VectorNorm::P(2) };
    let texts: Vec<Vec<u32>> =
        (0..4).map(|i| (0..7 + 21 * i).map(|at| 300 + (i + 7 * at) % 900).collect()).collect();
    let ask = || Request::new(vec![1, 403, 407], greedy(16));
    let told = |answer: chaski::serve::Answer| crate::serve::outcome(answer).text;
    let mut on_cpu: Option<Vec<Embedding>> = None;
    let (cpu, gpu) = (DeviceChoice::Cpu, DeviceChoice::Gpu(None));
    for (device, n_seq, chunk) in [(cpu.clone(), 1, 512), (cpu, 4, 24), (gpu, 4, 24)] {
        let what = format!("{device:?}, {n_seq} sequences, chunks of {chunk}");
        let is_cpu = matches!(device, DeviceChoice::Cpu);
        let builder = Engine::builder(Source::Default).device(device).context(128).sequences(n_seq);
        let mut engine = build(builder.kv(KvType::both(GgmlType::F32)).chunk(chunk));
        let mut embed = |text: &Vec<u32>| block_on(engine.embed_tokens(vec![text.clone()], &options));
        let alone: Vec<Embedding> = texts.iter().flat_map(|text| embed(text).expect("a text")).collect();
        let handle = engine.spawn().expect("a thread");
        let story = told(handle.generate_tokens(ask()).expect("a prompt"));
        let answers = [(); 2].map(|()| handle.generate_tokens(ask()).expect("a prompt"));
        let readings = handle.embed(EmbedRequest::new(texts.clone(), options)).expect("texts");
        let found = block_on(readings).expect("embeddings");
        let first = on_cpu.get_or_insert_with(|| alone.clone());
        for ((found, alone), first) in found.iter().zip(&alone).zip(first) {
            if is_cpu {
                assert_eq!((found, alone), (&*first, &*first), "{what}");
            }
            // On a GPU, steps of more rows have other kernels, which sum up in another order.
            for expected in [alone, first] {
                let e = nmse(&found.vectors[0], &expected.vectors[0]);
                assert!(e <= 1e-6, "{what}: {e:.1e}");
            }
        }
        for answer in answers {
            assert_eq!(told(answer), story, "{what}");
        }
    }
}

#[test]
fn texts_that_cannot_be_embedded_are_errors_that_say_why() {
    let mut engine = engine(DeviceChoice::Cpu);
    let error =
        |r: Result<Vec<chaski::embedding::Embedding>, chaski::Error>| chain(&r.expect_err("an error"));
    let found = error(block_on(engine.embed(&["a"], &EmbedOptions::default())));
    assert_eq!(
        found,
        "the model does not say how embeddings are pooled (no `llama.pooling_type`): choose none, mean, cls or last"
    );
    let mean = EmbedOptions { pooling: Some(Pooling::Mean), ..EmbedOptions::default() };
    let long = "a dog ".repeat(300);
    let found = error(block_on(engine.embed(&[long], &mean)));
    assert!(found.ends_with("tokens, but the context has 256"), "{found}");
}

#[test]
fn what_a_file_says_of_pooling_is_done_or_refused() {
    let of = |n: u32| {
        let edit = |m: &mut Vec<(String, chaski::gguf::OwnedValue)>, _: &mut Vec<(String, Vec<u64>)>| {
            m.push(("qwen3.pooling_type".into(), n.into()));
        };
        let model = open(Fixture::load("qwen3-dense").gguf(false, &edit)).expect("a fixture is a model");
        Pooling::of(model.metadata()).map_err(|e| chain(&e))
    };
    let all = [Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last, Pooling::Rank];
    assert_eq!([0, 1, 2, 3, 4].map(of), all.map(Ok));
    let refused =
        "`qwen3.pooling_type` is 5, which is not supported (0: none, 1: mean, 2: cls, 3: last, 4: rank)";
    assert_eq!(of(5), Err(refused.to_owned()));
}
