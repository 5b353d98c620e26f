//! Tests of the devices: kernels against their references, and the built-in model's known text.

use std::sync::Arc;
use std::time::Instant;

use chaski::gpu::{Gpu, GpuOptions, self_test};
use chaski::kernels::{ActivationPrecision, FeatureSet};
use chaski::text::{AddSpecial, ParseSpecial};
use chaski::{DeviceChoice, Engine, EngineBuilder, Error, GenerateOptions, SamplerParams, Source};

use super::report::{Check, Device};
use crate::progress::Unit;
use crate::tuned;
use crate::ui::{Ui, chain};

const PROMPT: &str = "Once upon a time";

/// The beginning of the built-in model's greedy continuation, as llama.cpp computes it in f32.
const STORY: &str = ", there lived a small, lively boy named Inti. He could not sit still for a minute. Inti was the \
                     youngest chaski, a messenger of the mountains.";

/// Tokens of it that are compared.
const N_TOKEN: usize = 24;

/// Maximum error of logits from products in 16 bits, relative to the power of the logits.
const MAX_ERROR: f64 = 1e-6;

/// Tests the chosen devices, by default all.
pub(super) fn run(choice: Option<&DeviceChoice>, devices: &mut [Device], ui: &Ui) -> Vec<Check> {
    let mut checks = Vec::new();
    let ids = chosen(choice, devices, &mut checks);
    let progress = ui.progress("doctor", Unit::Devices, ids.len() as u64);
    for id in ids {
        let Some(device) = devices.iter_mut().find(|d| d.id == id) else { continue };
        progress.message(device.name.as_str());
        if id == "cpu" {
            of_cpu(device, &mut checks)
        } else {
            of_gpu(device, &mut checks)
        }
        progress.add(1);
    }
    progress.finish();
    checks
}

/// Ids of the devices to test; a name that matches none is a failed check.
fn chosen(choice: Option<&DeviceChoice>, devices: &[Device], checks: &mut Vec<Check>) -> Vec<String> {
    let all = devices.iter().map(|d| d.id.clone());
    let names = match choice {
        None => return all.collect(),
        Some(DeviceChoice::Auto) => {
            return devices.iter().filter(|d| d.is_default == Some(true)).map(|d| d.id.clone()).collect();
        }
        Some(DeviceChoice::AllGpus) => {
            let gpus = devices.iter().filter(|d| d.kernels.is_some() && !d.is_software);
            return gpus.map(|d| d.id.clone()).collect();
        }
        Some(DeviceChoice::Cpu) => return vec!["cpu".into()],
        Some(DeviceChoice::Gpu(name)) => vec![name.clone().unwrap_or_else(|| "0".into())],
        Some(DeviceChoice::Gpus(names)) => names.clone(),
    };
    let mut ids = Vec::new();
    for name in names {
        if name == "cpu" {
            ids.push(name);
            continue;
        }
        let lower = name.to_lowercase();
        let gpus = || devices.iter().filter(|d| d.kernels.is_some());
        let found =
            gpus().find(|d| d.id == name).or_else(|| gpus().find(|d| d.name.to_lowercase().contains(&lower)));
        match found {
            Some(device) => ids.push(device.id.clone()),
            None => checks.push(Check {
                device: name,
                name: "device",
                ok: false,
                seconds: 0.0,
                detail: "no such GPU".into(),
            }),
        }
    }
    ids
}

/// Runs a test and records its result.
fn check<T>(
    checks: &mut Vec<Check>,
    device: &Device,
    name: &'static str,
    test: impl FnOnce() -> Result<(T, String), String>,
) -> Option<T> {
    let start = Instant::now();
    let result = test();
    let seconds = (start.elapsed().as_secs_f64() * 1e3).round() / 1e3;
    let (value, ok, detail) = match result {
        Ok((value, detail)) => (Some(value), true, detail),
        Err(detail) => (None, false, detail),
    };
    checks.push(Check { device: device.id.clone(), name, ok, seconds, detail });
    value
}

fn of_gpu(device: &mut Device, checks: &mut Vec<Check>) {
    let gpu = check(checks, device, "kernels", || {
        let (gpu, n) = tested(&device.id, None).map_err(|e| with_fewer_features(&device.id, &e))?;
        Ok((gpu, format!("{n} operations agree with their references")))
    });
    if let (Some(gpu), true) = (gpu, cfg!(feature = "default-model")) {
        story(device, checks, Engine::builder(Source::Default).gpu(gpu).tuning(tuned::known));
    }
}

/// Opens a GPU, limited to a feature set, and tests it: how many operations agree.
fn tested(id: &str, set: Option<FeatureSet>) -> Result<(Arc<Gpu>, usize), Error> {
    let options = GpuOptions { adapter: Some(id.to_owned()), set, ..GpuOptions::default() };
    let gpu = Arc::new(pollster::block_on(Gpu::open(&options))?);
    let n = pollster::block_on(self_test(&gpu))?;
    Ok((gpu, n))
}

/// An error of a device with all its features, and the features with which it works.
fn with_fewer_features(id: &str, e: &Error) -> String {
    let works = [FeatureSet::Sg, FeatureSet::Base].into_iter().find(|set| tested(id, Some(*set)).is_ok());
    let rest = match works {
        Some(set) => format!("it works with `--features {}`", set.word()),
        None => "it does not work with fewer features either".to_owned(),
    };
    format!("{}; {rest}", chain(e))
}

fn of_cpu(device: &mut Device, checks: &mut Vec<Check>) {
    if !cfg!(feature = "default-model") {
        return;
    }
    let on_cpu = || Engine::builder(Source::Default).device(DeviceChoice::Cpu);
    check(checks, device, "products", || {
        let exact = logits(on_cpu().inputs(ActivationPrecision::F32)).map_err(|e| chain(&e))?;
        let fast = logits(on_cpu()).map_err(|e| chain(&e))?;
        let error = relative_error(&fast, &exact);
        let detail = format!("logits of 16-bit products deviate from those of f32 by {error:.1e} (NMSE)");
        if error < MAX_ERROR { Ok(((), detail)) } else { Err(detail) }
    });
    story(device, checks, on_cpu());
}

/// The logits after the prompt.
fn logits(builder: EngineBuilder) -> Result<Vec<f32>, Error> {
    let mut engine = pollster::block_on(builder.context(64).build())?;
    let (tokenizer, runner) = engine.parts();
    let tokens = tokenizer
        .encode(PROMPT, AddSpecial::Yes, ParseSpecial::No)
        .map_err(chaski::errors::ModelError::from)?;
    Ok(pollster::block_on(runner.eval_all(&tokens, tokens.len()))?)
}

/// Mean squared error relative to the mean square; infinite if a value is not finite or all are 0.
fn relative_error(found: &[f32], expected: &[f32]) -> f64 {
    let square = |v: f64| v * v;
    let sum: f64 = found.iter().zip(expected).map(|(f, e)| square(f64::from(*f) - f64::from(*e))).sum();
    let power: f64 = expected.iter().map(|e| square(f64::from(*e))).sum();
    let error = sum / power;
    if error.is_finite() { error } else { f64::INFINITY }
}

/// Loads the built-in model and compares its text.
fn story(device: &mut Device, checks: &mut Vec<Check>, builder: EngineBuilder) {
    let times = check(checks, device, "story", || {
        let start = Instant::now();
        let mut engine = pollster::block_on(builder.context(128).build()).map_err(|e| chain(&e))?;
        let load_ms = (start.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        let (text, n_token, rate) = pollster::block_on(told(&mut engine)).map_err(|e| chain(&e))?;
        if n_token != N_TOKEN || !STORY.starts_with(&text) {
            return Err(format!("the built-in model continues {PROMPT:?} with {text:?}, not with {STORY:?}"));
        }
        let detail = format!("the built-in model tells its story: {N_TOKEN} tokens at {rate:.0} tokens/s");
        Ok(((load_ms, rate), detail))
    });
    (device.load_ms, device.tokens_per_second) =
        times.map_or((None, None), |(ms, rate)| (Some(ms), Some((rate * 10.0).round() / 10.0)));
}

async fn told(engine: &mut Engine) -> Result<(String, usize, f64), Error> {
    let options = GenerateOptions {
        sampler: SamplerParams::greedy(),
        max_tokens: Some(N_TOKEN),
        ..GenerateOptions::default()
    };
    let mut answer = engine.generate(PROMPT, options)?;
    let mut text = String::new();
    while let Some(piece) = answer.next().await? {
        text += &piece.text;
    }
    let stats = answer.stats();
    Ok((text, stats.n_token, stats.token_rate()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_logits_have_a_large_error() {
        assert_eq!(relative_error(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
        assert!(relative_error(&[2.0, 1.0], &[1.0, 2.0]) > MAX_ERROR);
        assert_eq!(relative_error(&[f32::NAN, 1.0], &[1.0, 2.0]), f64::INFINITY);
        assert_eq!(relative_error(&[0.0], &[0.0]), f64::INFINITY);
    }
}
