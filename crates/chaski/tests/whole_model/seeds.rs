//! Seeded texts of the embedded model, compared with texts that llama.cpp drew from the same weights in f32.

use chaski::text::{Mirostat, SamplerKind};
use chaski::{DeviceChoice, Engine, GenerateOptions, KvType, SamplerParams, Source};
use serde_json::Value;

use crate::common::{Failures, Timed, build, fixture, greedy, one_in, read_json};
use crate::serve::outcome;

/// Sets the parameter that has this name in llama.cpp, too.
fn set(p: &mut SamplerParams, name: &str, value: &Value) {
    let number = || value.as_f64().expect("a number") as f32;
    let int = || value.as_i64().expect("a whole number") as i32;
    match name {
        "samplers" => {
            let (samplers, unknown) = SamplerKind::parse_sequence(value.as_str().expect("names"));
            assert_eq!(unknown, [""; 0], "samplers");
            p.samplers = samplers;
        }
        "dry_sequence_breakers" => {
            let texts =
                value.as_array().expect("a list").iter().map(|v| v.as_str().expect("a text").to_owned());
            p.dry_sequence_breakers = texts.collect();
        }
        "mirostat" => p.mirostat = Mirostat::from_version(int().into()),
        "min_keep" => p.min_keep = int() as usize,
        "top_k" => p.top_k = int(),
        "penalty_last_n" => p.penalty_last_n = int(),
        "dry_allowed_length" => p.dry_allowed_length = int(),
        "dry_penalty_last_n" => p.dry_penalty_last_n = int(),
        _ => {
            let field = match name {
                "top_p" => &mut p.top_p,
                "min_p" => &mut p.min_p,
                "typical_p" => &mut p.typical_p,
                "temp" => &mut p.temp,
                "dynatemp_range" => &mut p.dynatemp_range,
                "dynatemp_exponent" => &mut p.dynatemp_exponent,
                "penalty_repeat" => &mut p.penalty_repeat,
                "penalty_freq" => &mut p.penalty_freq,
                "penalty_present" => &mut p.penalty_present,
                "dry_multiplier" => &mut p.dry_multiplier,
                "dry_base" => &mut p.dry_base,
                "top_n_sigma" => &mut p.top_n_sigma,
                "xtc_probability" => &mut p.xtc_probability,
                "xtc_threshold" => &mut p.xtc_threshold,
                "mirostat_tau" => &mut p.mirostat_tau,
                "mirostat_eta" => &mut p.mirostat_eta,
                "adaptive_target" => &mut p.adaptive_target,
                "adaptive_decay" => &mut p.adaptive_decay,
                _ => panic!("no parameter `{name}`"),
            };
            *field = number();
        }
    }
}

/// A golden text.
struct Row {
    /// For messages: the seed and what differs from the default chain.
    name: String,
    /// Names of the options that differ.
    changed: Vec<String>,
    prompt: String,
    options: GenerateOptions,
    text: String,
}

fn rows() -> Vec<Row> {
    let json = read_json(&fixture("storyteller/sampled.json"));
    let text = |v: &Value| v.as_str().expect("a text").to_owned();
    let row = |v: &Value| {
        let mut sampler = SamplerParams {
            seed: Some(v["seed"].as_u64().expect("a seed") as u32),
            ..SamplerParams::default()
        };
        let options = v["options"].as_object().expect("options");
        for (name, value) in options {
            set(&mut sampler, name, value);
        }
        let n = v["n_token"].as_u64().expect("a number of tokens") as usize;
        Row {
            name: format!("seed {}, {}", v["seed"], v["options"]),
            changed: options.keys().cloned().collect(),
            prompt: text(&v["prompt"]),
            options: GenerateOptions { sampler, ..greedy(n) },
            text: text(&v["text"]),
        }
    };
    json.as_array().expect("a list").iter().map(row).collect()
}

/// Compares the texts of rows; all of them are drawn by the device, or none.
fn compare(device: DeviceChoice, rows: Vec<Row>, by_device: bool) {
    let n = rows.len() as u32;
    let builder = Engine::builder(Source::Default).device(device).kv(KvType::F32).context(64).sequences(n);
    let service = build(builder).spawn().expect("a thread");
    let ask = |row: &Row| service.generate(&row.prompt, row.options.clone()).expect("a request that fits");
    let answers: Vec<_> = rows.iter().map(ask).collect();
    let mut failures = Failures::default();
    for (row, answer) in rows.iter().zip(answers) {
        let found = outcome(answer);
        failures.check(found.on_cpu.is_none() == by_device, || format!("{}: {:?}", row.name, found.on_cpu));
        failures.same_text(&row.name, &found.text, &row.text);
    }
    failures.conclude();
}

#[test]
fn a_seed_gives_the_text_of_llama_cpp() {
    let _t = Timed::new("seeds, CPU");
    compare(DeviceChoice::Cpu, rows(), false);
}

/// Options of chains that the GPU runs.
const ON_GPU: &[&str] = &[
    "temp",
    "top_k",
    "top_p",
    "min_p",
    "penalty_last_n",
    "penalty_repeat",
    "penalty_freq",
    "penalty_present",
];

#[test]
fn a_seed_gives_the_text_of_llama_cpp_where_the_gpu_draws() {
    let _t = Timed::new("seeds, GPU");
    let mut rows = rows();
    rows.retain(|row| row.changed.iter().all(|name| ON_GPU.contains(&name.as_str())));
    assert!(rows.len() >= 10, "{} chains for the GPU", rows.len());
    compare(DeviceChoice::Gpu(None), one_in(2, rows).collect(), true);
}
