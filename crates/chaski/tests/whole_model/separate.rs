//! Files with one tensor per expert, like early ones of Mixtral: the same model as with fused tensors.

use chaski::errors::ModelError;
use chaski::gguf::MemorySource;
use chaski::kernels::FeatureSet;
use chaski_models::{Model, Runner, Target};

use crate::archs::{Fixture, open};
use crate::common::{Failures, Timed, block_on, chain, full, left_for_full, shared_gpu};
use crate::streaming::{config, with_experts};

const N_EXPERT: u32 = 6;

/// The tensors of the file: name and shape.
type Shapes = Vec<(String, Vec<u64>)>;

/// The fixture with separate experts, and further changes.
fn separate(f: &Fixture, change: impl Fn(&mut Shapes) + Sync) -> Vec<u8> {
    let edit = |tensors: &mut Shapes| {
        let mut out = Vec::new();
        for (name, ne) in tensors.drain(..) {
            match name.strip_suffix("_exps.weight") {
                Some(stem) => {
                    out.extend((0..ne[2]).map(|expert| (format!("{stem}.{expert}.weight"), ne[..2].to_vec())))
                }
                None => out.push((name, ne)),
            }
        }
        *tensors = out;
        change(tensors);
    };
    with_experts_edited(f, &edit)
}

/// As `with_experts`, with further changes; tensors of one expert have its values in the fused tensor.
fn with_experts_edited(f: &Fixture, edit: &(dyn Fn(&mut Shapes) + Sync)) -> Vec<u8> {
    let whole = open(with_experts(f, N_EXPERT, 2, None)).expect("a model");
    let n_byte = |name: &str| whole.tensors().iter().find(|t| t.name == name).map(|t| t.n_elem());
    f.gguf_of(
        true,
        &|metadata, tensors| {
            crate::streaming::set_experts(metadata, tensors, N_EXPERT, 2, None);
            edit(tensors);
        },
        &|name| {
            let (stem, expert) = name.strip_suffix(".weight")?.rsplit_once('.')?;
            let expert: usize = expert.parse().ok()?;
            let all = format!("{stem}_exps.weight");
            let values = f.weights_of(&all, n_byte(&all)?);
            let n = values.len() / N_EXPERT as usize;
            values.get(expert * n..(expert + 1) * n).map(<[f32]>::to_vec)
        },
    )
}

/// Bits of the logits of some tokens: on the device with all experts or few of them, or on the CPU.
fn logits(model: &Model<MemorySource>, target: &Target, slots: Option<u32>, tokens: &[u32]) -> Vec<u32> {
    let mut r = block_on(Runner::load(model, target, &config(slots), |_| {})).expect("a runner");
    let all = block_on(r.eval_all(tokens, 8)).expect("logits");
    all.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn experts_one_by_one_are_the_same_model_to_the_bit() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("experts one by one");
    let mut failures = Failures::default();
    for name in ["llama-moe", "qwen3moe-moe", "gpt-oss-moe"] {
        let f = Fixture::load(name);
        let together = open(with_experts(&f, N_EXPERT, 2, None)).expect("a model");
        let apart = open(separate(&f, |_| {})).expect("a model");
        assert!(apart.tensors().len() > together.tensors().len() + 10, "{name}: more tensors");
        assert_eq!(apart.n_param(), together.n_param(), "{name}");
        let unread = block_on(apart.unread()).expect("a graph");
        assert!(unread.iter().all(|t| !t.name.contains(".ffn_gate.")), "{name}: {unread:?}");
        let gpu = Target::Gpu(shared_gpu(FeatureSet::Sg, false));
        let on_gpu = [(&gpu, None, "GPU"), (&gpu, Some(2), "few on the GPU")];
        // By default the last, which has biases, on the GPU.
        let on_gpu = on_gpu.into_iter().filter(|_| full() || name == "gpt-oss-moe");
        for (target, slots, way) in on_gpu.chain([(&Target::Cpu, None, "CPU")]) {
            let tokens = &f.tokens[..11];
            let [found, expected] = [&apart, &together].map(|m| logits(m, target, slots, tokens));
            failures.check(found == expected, || format!("{name}, {way}: other logits"));
            failures.check(expected.iter().any(|b| *b != expected[0]), || format!("{name}: all alike"));
        }
    }
    failures.conclude();
}

#[test]
fn experts_that_are_missing_or_there_twice_are_errors_that_name_them() {
    let _t = Timed::new("experts one by one, errors");
    let f = Fixture::load("llama-moe");
    let error = |bytes: Vec<u8>| -> ModelError {
        block_on(open(bytes).expect("a head").graph(64)).expect_err("an error")
    };
    let without = |name: &'static str| separate(&f, move |t| t.retain(|(n, _)| n != name));
    for missing in ["blk.0.ffn_up.0.weight", "blk.1.ffn_gate.3.weight", "blk.1.ffn_down.5.weight"] {
        let e = error(without(missing));
        assert!(matches!(&e, ModelError::NoTensor { tensor } if tensor == missing), "{}", chain(&e));
    }
    // A fused tensor beside that of one expert.
    let e = error(with_experts_edited(&f, &|tensors| {
        let (_, ne) = tensors.iter().find(|t| t.0 == "blk.1.ffn_up_exps.weight").expect("experts").clone();
        tensors.push(("blk.1.ffn_up.2.weight".into(), ne[..2].to_vec()));
    }));
    let text = chain(&e);
    assert!(text.contains("`blk.1.ffn_up.2.weight` beside `blk.1.ffn_up_exps.weight`"), "{text}");
    // A different shape.
    let e = error(separate(&f, |tensors| {
        let t = tensors.iter_mut().find(|t| t.0 == "blk.0.ffn_down.4.weight").expect("an expert");
        t.1.swap(0, 1);
    }));
    assert!(
        matches!(&e, ModelError::Shape { tensor, .. } if tensor == "blk.0.ffn_down.4.weight"),
        "{}",
        chain(&e)
    );
    // Missing completely.
    let e = error(separate(&f, |t| t.retain(|(n, _)| !n.starts_with("blk.0.ffn_gate."))));
    let named = matches!(&e, ModelError::NoTensor { tensor } if tensor == "blk.0.ffn_gate_exps.weight");
    assert!(named, "{}", chain(&e));
}
