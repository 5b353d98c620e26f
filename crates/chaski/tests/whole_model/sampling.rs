//! Sampling, and the ends of generations.

use std::sync::atomic::Ordering;

use chaski::options::Speculation;
use chaski::serve::Request;
use chaski::steps::RunnerConfig;
use chaski::text::TemplateOptions;
use chaski::{Engine, Finish, GenerateOptions, Message, SamplerParams, Source};
use chaski_runtime::gpu::{GpuModel, SampleMode, StepOptions};
use chaski_runtime::kernels::adjust::{self, AdjustParams};
use chaski_runtime::kernels::sample::{self, SampleParams};
use chaski_runtime::{Column, ColumnOutput};
use chaski_text::Sampler;

use crate::common::{
    Failures, Timed, block_on, build, default_engine, full, greedy, in_turns, left_for_full, one_in, text,
};
use crate::golden_text::{ANSWER, PROMPT};
use crate::serve::outcome;

fn seeded(seed: u32, n: usize) -> GenerateOptions {
    let sampler = SamplerParams { seed: Some(seed), ..SamplerParams::default() };
    GenerateOptions { sampler, ..greedy(n) }
}

fn sampler(sampler: SamplerParams, n: usize) -> GenerateOptions {
    GenerateOptions { sampler, ..greedy(n) }
}

/// The same chain on the CPU: with a penalty on sequences too small to change a logit.
fn on_cpu(params: SamplerParams) -> SamplerParams {
    SamplerParams { dry_multiplier: 1e-20, ..params }
}

/// Text, tokens and finish reason of an answer.
fn answer(engine: &mut Engine, prompt: &str, options: GenerateOptions) -> (String, Vec<u32>, Finish) {
    let mut g = engine.generate(prompt, options).expect("a generation");
    let mut out = String::new();
    while let Some(piece) = block_on(g.next()).expect("a piece") {
        out.push_str(&piece.text);
    }
    (out, g.tokens().to_vec(), g.finish().expect("a reason"))
}

#[test]
fn seeds_choose_the_text() {
    let _t = Timed::new("sampling, seeds");
    let mut engine = build(default_engine());
    let mut tell = |seed| text(&mut engine, "Once upon a time", seeded(seed, 30)).expect("a text");
    let (a, b, again) = (tell(1), tell(2), tell(1));
    assert_eq!(a, again, "the same seed");
    assert_ne!(a, b, "another seed");
    // A fresh engine, another readback interval.
    let mut engine = build(default_engine());
    let options = GenerateOptions { interval: 4, ..seeded(1, 30) };
    assert_eq!(
        a,
        text(&mut engine, "Once upon a time", options).expect("a text"),
        "the same seed, another engine"
    );
}

#[test]
fn choices_that_leave_one_token_are_greedy() {
    let _t = Timed::new("sampling, one token left");
    let d = SamplerParams { seed: Some(3), ..SamplerParams::default() };
    let cases = [
        ("a tiny temperature", SamplerParams { temp: 1e-3, ..d.clone() }),
        ("top-k of 1", SamplerParams { top_k: 1, ..d.clone() }),
        ("a tiny top-p", SamplerParams { top_p: 1e-6, ..d.clone() }),
        ("min-p of 1", SamplerParams { min_p: 1.0, ..d.clone() }),
        // The device, too, excludes the end token.
        ("no end", SamplerParams { ignore_eos: true, ..SamplerParams::greedy() }),
        ("top-k of 1 on the CPU", on_cpu(SamplerParams { top_k: 1, ..d })),
    ];
    let mut engine = build(default_engine());
    let mut failures = Failures::default();
    for (name, params) in cases {
        let found = text(&mut engine, PROMPT, sampler(params, 32)).expect("a text");
        failures.check(!found.is_empty() && ANSWER.starts_with(&found), || format!("{name}: {found:?}"));
    }
    failures.conclude();
}

#[test]
fn penalties_act_and_give_the_same_text_on_both_devices() {
    let _t = Timed::new("sampling, penalties");
    let params = SamplerParams { penalty_repeat: 1.5, ..SamplerParams::greedy() };
    let tell = |device| {
        let mut engine = build(default_engine().device(device));
        text(&mut engine, PROMPT, sampler(params.clone(), 32)).expect("a text")
    };
    let gpu = tell(chaski::DeviceChoice::Gpu(None));
    let cpu = tell(chaski::DeviceChoice::Cpu);
    assert_eq!(gpu, cpu);
    assert!(!ANSWER.starts_with(&gpu), "a penalty of 1.5 changes 32 tokens: {gpu:?}");
}

/// Tokens of an answer, and whether the device sampled them.
fn chosen(engine: &mut Engine, prompt: &[u32], options: GenerateOptions) -> (Vec<u32>, bool) {
    let mut g = engine.generate_tokens(prompt, options).expect("a generation");
    while block_on(g.next()).expect("a piece").is_some() {}
    (g.tokens().to_vec(), g.on_cpu().is_none())
}

/// Chains with penalties and biases, greedy, for a text whose plain answer is `plain`.
fn adjusted(plain: &[u32]) -> Vec<(&'static str, SamplerParams)> {
    let g = SamplerParams::greedy();
    let bias = vec![(plain[0], f32::NEG_INFINITY), (plain[3], -3.0), (plain[5], 2.5), (plain[8], 0.5)];
    vec![
        ("repeat", SamplerParams { penalty_repeat: 1.3, ..g.clone() }),
        (
            "repeat, all that was said lately",
            SamplerParams { penalty_repeat: 1.1, penalty_last_n: 128, ..g.clone() },
        ),
        ("repeat, three tokens", SamplerParams { penalty_repeat: 2.0, penalty_last_n: 3, ..g.clone() }),
        ("frequency", SamplerParams { penalty_freq: 0.7, ..g.clone() }),
        ("presence", SamplerParams { penalty_present: 2.0, ..g.clone() }),
        ("bias", SamplerParams { logit_bias: bias.clone(), ..g.clone() }),
        ("no end", SamplerParams { ignore_eos: true, ..g.clone() }),
        (
            "all of them",
            SamplerParams {
                penalty_repeat: 1.2,
                penalty_freq: 0.1,
                penalty_present: 0.2,
                logit_bias: bias,
                ignore_eos: true,
                ..g
            },
        ),
    ]
}

#[test]
fn adjusted_logits_give_the_tokens_of_the_cpu_at_any_interval() {
    let _t = Timed::new("sampling, adjusted");
    const N: usize = 32;
    let mut engine = build(default_engine());
    let mut cpu = build(default_engine().device(chaski::DeviceChoice::Cpu));
    let prompt = encode(&engine, PROMPT);
    let other = encode(&engine, "Once upon a time, a fox");
    let plain = chosen(&mut engine, &prompt, greedy(N)).0;
    let mut failures = Failures::default();
    let mut n_changed = 0;
    // By default every second one, among them all together.
    let chains = adjusted(&plain).into_iter().skip(usize::from(!full()));
    for (nth, (name, params)) in one_in(2, chains).enumerate() {
        let (expected, _) = chosen(&mut cpu, &prompt, sampler(params.clone(), N));
        if full() || nth == 0 {
            let (found, on_device) = chosen(&mut engine, &prompt, sampler(on_cpu(params.clone()), N));
            failures.check(!on_device, || format!("{name}: the CPU should choose"));
            failures.check(found == expected, || format!("{name}: the CPU chooses {found:?}"));
        }
        n_changed += u32::from(expected != plain);
        for interval in in_turns(nth, &[4, 1, 16]) {
            // Another text before, cancelled while its tokens are in flight: the window must not keep any of it.
            let options = GenerateOptions { interval, ..sampler(params.clone(), 60) };
            let mut g = engine.generate_tokens(&other, options).expect("a generation");
            for _ in 0..6 {
                block_on(g.next()).expect("a piece");
            }
            drop(g);
            // The second time, all but the last token of the prompt is cached.
            for time in 1..=if interval == 4 { 2 } else { 1 } {
                let case = format!("{name}, {interval} a readback, time {time}");
                let options = GenerateOptions { interval, ..sampler(params.clone(), N) };
                let (found, on_device) = chosen(&mut engine, &prompt, options);
                failures.check(on_device, || format!("{case}: the device should choose"));
                failures.check(found == expected, || {
                    format!("{case}:\n   found {found:?}\nexpected {expected:?}")
                });
            }
        }
    }
    failures.check(n_changed >= if full() { 7 } else { 3 }, || {
        format!("only {n_changed} of the chains change the answer")
    });
    // Plain sampling is plain again.
    let found = chosen(&mut engine, &prompt, greedy(N)).0;
    failures.check(found == plain, || format!("after all of these: {found:?}"));
    failures.conclude();
}

/// Tokens that the references choose after `prompt`, from the device's logits of each step.
fn by_references(
    engine: &mut Engine,
    prompt: &[u32],
    draw: &SampleParams,
    adjust: &AdjustParams,
    uniforms: impl IntoIterator<Item = f32>,
) -> Vec<u32> {
    let mut all = prompt.to_vec();
    let runner = engine.runner();
    runner.truncate(0);
    block_on(runner.prefill(prompt)).expect("a prompt");
    for uniform in uniforms {
        let mut logits = block_on(runner.logits()).expect("logits");
        adjust::reference::adjust(&mut logits, adjust, &all);
        all.push(sample::reference::sample(&logits, draw, uniform));
        block_on(runner.prefill(&all[all.len() - 1..])).expect("a token");
    }
    all.split_off(prompt.len())
}

#[test]
fn adjusted_draws_are_those_of_the_references() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("sampling, adjusted draws");
    const N: usize = 40;
    let mut engine = build(default_engine());
    let prompt = encode(&engine, PROMPT);
    let d = SamplerParams { seed: Some(5), ..SamplerParams::default() };
    let bias = vec![(prompt[2], 1.5), (prompt[4], f32::NEG_INFINITY), (30, 2.0)];
    let mut failures = Failures::default();
    let mut texts = Vec::new();
    let uniforms: Vec<f32> = Sampler::new(d.clone(), engine.tokenizer()).draws().take(N).collect();
    let chains = [
        (
            "penalties",
            SamplerParams { penalty_repeat: 1.3, penalty_freq: 0.1, penalty_last_n: 20, ..d.clone() },
        ),
        ("presence", SamplerParams { penalty_present: 1.0, temp: 1.2, ..d.clone() }),
        ("bias", SamplerParams { logit_bias: bias.clone(), ..d.clone() }),
        ("both", SamplerParams { penalty_repeat: 1.2, logit_bias: bias, ..d }),
    ];
    for (nth, (name, params)) in chains.into_iter().enumerate() {
        let draw = SampleParams {
            top_k: params.top_k as u32,
            top_p: params.top_p,
            min_p: params.min_p,
            temp: params.temp,
        };
        let adjust = AdjustParams {
            last_n: params.penalty_last_n as u32,
            repeat: params.penalty_repeat,
            freq: params.penalty_freq,
            present: params.penalty_present,
            bias: params.logit_bias.clone(),
        };
        let expected = by_references(&mut engine, &prompt, &draw, &adjust, uniforms.clone());
        for interval in in_turns(nth, &[1, 4, 16]) {
            engine.runner().truncate(0);
            let options = GenerateOptions { interval, ..sampler(params.clone(), N) };
            let (found, on_device) = chosen(&mut engine, &prompt, options);
            failures.check(on_device, || format!("{name}: the device should choose"));
            // The end of the text may come earlier; it is not part of the answer.
            failures.check(!found.is_empty() && expected.starts_with(&found), || {
                format!("{name}, {interval} a readback:\n   found {found:?}\nexpected {expected:?}")
            });
        }
        texts.push(expected);
    }
    texts.dedup();
    failures.check(texts.len() == 4, || "chains that differ should give different texts".into());
    failures.conclude();
}

/// Probabilities of the candidates, from the definition: the best `top_k` (0: all), of these the fewest that reach
/// `top_p`, of these all with at least `min_p` of the best one's probability; then the temperature.
fn distribution(logits: &[f32], p: &SampleParams) -> Vec<(usize, f64)> {
    let shares = |of: &[(usize, f64)]| {
        let max = of.iter().map(|x| x.1).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = of.iter().map(|x| (x.1 - max).exp()).sum();
        of.iter().map(|x| (x.1 - max).exp() / sum).collect::<Vec<f64>>()
    };
    let mut all: Vec<(usize, f64)> = logits.iter().map(|l| f64::from(*l)).enumerate().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    if p.top_k > 0 {
        all.truncate(p.top_k as usize);
    }
    let probability = shares(&all);
    let before = |i: usize| probability[..i].iter().sum::<f64>();
    let kept =
        |i: &usize| before(*i) < f64::from(p.top_p) && probability[*i] >= f64::from(p.min_p) * probability[0];
    let all: Vec<_> = (0..all.len()).filter(kept).map(|i| (all[i].0, all[i].1 / f64::from(p.temp))).collect();
    all.iter().map(|x| x.0).zip(shares(&all)).collect()
}

/// The uniform numbers of a seed.
fn draws_of(seed: u32, tokenizer: &chaski::text::Tokenizer) -> impl Iterator<Item = f32> {
    Sampler::new(SamplerParams { seed: Some(seed), ..SamplerParams::default() }, tokenizer).draws()
}

#[test]
fn a_seed_gives_the_same_text_on_the_device_and_on_the_cpu() {
    let _t = Timed::new("sampling, device and CPU");
    const N: usize = 60;
    let mut gpu = build(default_engine());
    let mut cpu = build(default_engine().device(chaski::DeviceChoice::Cpu));
    let prompt = encode(&gpu, PROMPT);
    let n_vocab = u64::from(gpu.loaded().n_vocab());
    let mut failures = Failures::default();
    let mut texts = Vec::new();
    let d = SamplerParams { temp: 1.1, ..SamplerParams::default() };
    let no_top_k = SamplerParams { top_k: 0, top_p: 1.0, min_p: 0.0, ..d.clone() };
    let chains = [
        d.clone(),
        d.clone(),
        SamplerParams { top_p: 0.95, ..no_top_k.clone() },
        SamplerParams { min_p: 0.05, ..no_top_k.clone() },
        no_top_k.clone(),
        SamplerParams { temp: 2.0, top_p: 0.98, min_p: 0.001, ..no_top_k.clone() },
        SamplerParams { temp: 2.0, min_p: 0.0001, ..no_top_k.clone() },
        SamplerParams { temp: 1.5, top_k: 100, ..no_top_k },
        d.clone(),
        d,
    ];
    let n_chain = if full() { chains.len() } else { chains.len() - 2 };
    for (seed, chain) in (0..).zip(chains).take(n_chain) {
        let params = SamplerParams { seed: Some(seed), ..chain };
        let device = gpu.gpu().expect("a GPU").clone();
        let counts = || (device.counters().read_bytes.load(Ordering::Relaxed), device.counters().objects());
        let (n_read, n_object) = counts();
        let (found, on_device) = chosen(&mut gpu, &prompt, sampler(params.clone(), N));
        let n_read = counts().0 - n_read;
        failures.check(n_read < n_vocab * found.len() as u64, || {
            format!("seed {seed}: {n_read} bytes for {} tokens are logits", found.len())
        });
        // The first answer makes what all of them need.
        failures
            .check(seed == 0 || counts().1 == n_object, || format!("seed {seed}: something is made anew"));
        let (expected, elsewhere) = chosen(&mut cpu, &prompt, sampler(params, N));
        failures.check(on_device && !elsewhere, || {
            format!("seed {seed}: the GPU should choose for itself alone")
        });
        failures
            .check(found == expected, || format!("seed {seed}:\n   found {found:?}\nexpected {expected:?}"));
        texts.push(found);
    }
    texts.dedup();
    failures.check(texts.len() == n_chain, || "seeds that differ should give different texts".into());
    failures.conclude();
}

/// Number of sequences that draw at once.
const AT_ONCE: u32 = 64;

/// A model whose sequences share all pages, and so the prompt.
fn loaded_for_draws(engine: &Engine, tokens: &[u32]) -> GpuModel {
    let gpu = engine.gpu().expect("a GPU").clone();
    let config = RunnerConfig { n_ctx: 64, n_seq: AT_ONCE, chunk: AT_ONCE, ..RunnerConfig::default() };
    let file = block_on(Source::Default.open()).expect("the built-in model");
    let graph = block_on(file.graph(64)).expect("a graph");
    let plan = config.plan_for(&file, gpu.caps());
    let mut model = block_on(GpuModel::load(gpu, &graph, plan, file, |_| {})).expect("it loads");
    (0..AT_ONCE).for_each(|seq| model.set_pages(seq, 0, &[0]));
    let before = &tokens[..tokens.len() - 1];
    let column = |(token, pos): (&u32, u32)| Column::token(0, *token, pos);
    let columns: Vec<Column> = before.iter().zip(0..).map(column).collect();
    let options = StepOptions { repeat: 1, n_planned: 1, choose: SampleMode::Greedy };
    model.send_step(&columns, &vec![ColumnOutput::Nothing; before.len()], options).expect("a prompt");
    block_on(model.read_step()).expect("it runs");
    model
}

/// Draws a token after the last one of the prompt for each uniform number.
fn draw(model: &mut GpuModel, params: &SampleParams, (last, pos): (u32, u32), uniforms: &[f32]) -> Vec<u32> {
    let mut columns = Vec::new();
    for (seq, uniform) in (0..).zip(uniforms) {
        model.set_sampler(seq, params);
        model.set_draws(seq, &[*uniform]);
        columns.push(Column::token(seq, last, pos));
    }
    let choose = if params.is_wide() { SampleMode::SampleWide } else { SampleMode::Sample };
    let options = StepOptions { repeat: 1, n_planned: 1, choose };
    model.send_step(&columns, &vec![ColumnOutput::Choice; columns.len()], options).expect("draws");
    block_on(model.read_step()).expect("tokens").chosen
}

#[test]
fn draws_follow_the_probabilities() {
    let _t = Timed::new("sampling, statistics");
    // Many names are likely here.
    let prompt = "Once upon a time, there lived a small, playful";
    let engine = build(default_engine());
    let tokens =
        engine.tokenizer().encode(prompt, chaski::text::AddSpecial::Yes, chaski::text::ParseSpecial::Yes);
    let tokens = tokens.expect("tokens");
    let n_draw: u32 = if full() { 1000 } else { 192 };
    // The first draw of many seeds; many draws of one seed.
    let of_seeds: Vec<f32> =
        (0..n_draw).flat_map(|seed| draws_of(seed, engine.tokenizer()).take(1)).collect();
    let of_one: Vec<f32> = draws_of(77, engine.tokenizer()).take(n_draw as usize).collect();
    let mut cpu = build(default_engine().device(chaski::DeviceChoice::Cpu));
    block_on(cpu.runner().prefill(&tokens)).expect("logits");
    let logits = block_on(cpu.runner().logits()).expect("logits");
    let mut model = loaded_for_draws(&engine, &tokens);
    let last = (tokens[tokens.len() - 1], tokens.len() as u32 - 1);
    let plain = SampleParams { top_k: 40, top_p: 1.0, min_p: 0.0, temp: 1.0 };
    let cases = [
        ("plain", plain),
        ("the default chain", SampleParams { top_p: 0.95, min_p: 0.05, temp: 0.8, ..plain }),
        ("hot", SampleParams { temp: 3.0, top_k: 10, ..plain }),
        ("all tokens", SampleParams { top_k: 0, temp: 1.5, ..plain }),
    ];
    let mut failures = Failures::default();
    for (nth, (name, params)) in cases.into_iter().enumerate() {
        let expected = distribution(&logits, &params);
        failures
            .check(expected.len() > 4, || format!("{name}: {} tokens are too few to tell", expected.len()));
        for (way, uniforms) in in_turns(nth, &[("seeds", &of_seeds), ("draws", &of_one)]) {
            let mut counts = vec![0u32; logits.len()];
            for part in uniforms.chunks(AT_ONCE as usize) {
                for token in draw(&mut model, &params, last, part) {
                    counts[token as usize] += 1;
                }
            }
            let (mut chi, mut cells, mut rest, mut inside) = (0.0, 0, (0.0, 0), 0);
            let mut add = |e: f64, n: u32| {
                chi += (f64::from(n) - e).powi(2) / e;
                cells += 1;
            };
            for (token, share) in &expected {
                let (e, n) = (share * f64::from(n_draw), counts[*token]);
                inside += n;
                // Cells with few draws are pooled.
                if e >= 5.0 { add(e, n) } else { rest = (rest.0 + e, rest.1 + n) }
            }
            if rest.0 >= 5.0 {
                add(rest.0, rest.1);
            }
            let freedom = f64::from(cells - 1);
            crate::common::say(format!("{name}, {way}: chi-square {chi:.1} of {freedom} degrees of freedom"));
            failures
                .check(inside == n_draw, || format!("{name}, {way}: {} draws from outside", n_draw - inside));
            // Four standard deviations above the mean.
            failures.check(chi < freedom + 4.0 * (2.0 * freedom).sqrt(), || {
                format!("{name}, {way}: chi-square {chi:.1} of {freedom} degrees of freedom")
            });
        }
    }
    failures.conclude();
}

#[test]
fn a_stop_text_ends_the_answer_before_it() {
    let _t = Timed::new("sampling, stop texts");
    let mut engine = build(default_engine());
    let mut failures = Failures::default();
    // Inside a token, across tokens, the earlier of two, across a line end.
    for stop in [&["leepy f"][..], &["one paper kite"], &["Starling", "young"], &["missing.\n\nShe"]] {
        let options = GenerateOptions { stop: stop.iter().map(|s| (*s).to_owned()).collect(), ..greedy(96) };
        let (found, _, finish) = answer(&mut engine, PROMPT, options);
        let at = stop.iter().filter_map(|s| ANSWER.find(s)).min().expect("the text has it");
        failures.same_text(format!("{stop:?}"), &found, &ANSWER[..at]);
        failures.check(finish == Finish::StopText, || format!("{stop:?}: {finish:?}"));
    }
    let options = GenerateOptions { stop: vec!["otter asked".into()], ..greedy(96) };
    let (found, _, finish) = answer(&mut engine, PROMPT, options);
    failures.same_text("a stop text that never comes", &found, ANSWER);
    failures.check(finish == Finish::Length, || format!("a stop text that never comes: {finish:?}"));
    failures.conclude();
}

#[test]
fn an_answer_ends_at_its_length_at_the_full_context_or_when_it_is_told() {
    let _t = Timed::new("sampling, ends");
    let mut failures = Failures::default();
    let mut engine = build(default_engine().context(64));
    let n_prompt = encode(&engine, PROMPT).len();
    // The last chosen token is not run, so it needs no cell of the context.
    let room = 64 - n_prompt + 1;
    let ways = [("device", SamplerParams::greedy()), ("CPU", on_cpu(SamplerParams::greedy()))];
    for (nth, (name, params)) in ways.into_iter().enumerate() {
        for interval in in_turns(nth, &[16, 1]) {
            for (max_tokens, n, finish) in [
                (Some(0), 0, Finish::Length),
                (Some(1), 1, Finish::Length),
                (Some(room), room, Finish::Length),
                (Some(17), 17, Finish::Length),
                (Some(room + 1), room, Finish::Context),
                (None, room, Finish::Context),
            ]
            .into_iter()
            .skip(if full() { 0 } else { 3 * nth })
            .take(if full() { 6 } else { 3 })
            {
                let options = GenerateOptions { max_tokens, interval, ..sampler(params.clone(), 0) };
                let (found, tokens, why) = answer(&mut engine, PROMPT, options);
                let case = format!("chosen by the {name}, {interval} a readback, at most {max_tokens:?}");
                failures.check(ANSWER.starts_with(&found), || format!("{case}: {found:?}"));
                failures.check((tokens.len(), why) == (n, finish), || {
                    format!("{case}: {} tokens, {why:?}; expected {n}, {finish:?}", tokens.len())
                });
            }
        }
    }
    // A story that the model ends itself, through chat and template; by default on the CPU, which is faster than a
    // software device.
    let engine = default_engine();
    let mut engine = build(if full() { engine } else { engine.device(chaski::DeviceChoice::Cpu) });
    let messages = [Message::new("user", "Tell me a story about a fox who lost a kite.")];
    let template = TemplateOptions::default();
    let prompt = engine.chat_prompt(&messages, &template).expect("a prompt");
    failures.same_text("the template", &prompt.text, PROMPT);
    let options = GenerateOptions { max_tokens: None, ..greedy(0) };
    let chat = engine.chat(&messages, &template, options).expect("a chat");
    let (answer, finish, stats) = block_on(chat.whole()).expect("an answer");
    let (found, n, finish) = (answer.content, stats.n_token, Some(finish));
    failures.check(found.starts_with(ANSWER) && !found.contains("<|"), || format!("{found:?}"));
    failures.check(finish == Some(Finish::Stop), || format!("{n} tokens, {finish:?}"));
    failures.conclude();
}

/// The expected result of context shifts: separate requests, one per context.
fn shifted_by_hand(engine: &mut Engine, prompt: &[u32], keep: usize, n: usize) -> Vec<u32> {
    let mut answer: Vec<u32> = Vec::new();
    let mut all = prompt.to_vec();
    while answer.len() < n {
        let mut options = greedy(n - answer.len());
        options.sampler.ignore_eos = true;
        let mut g = engine.generate_tokens(&all, options).expect("a prompt that fits");
        while block_on(g.next()).expect("a piece").is_some() {}
        answer.extend(g.tokens());
        all.extend(g.tokens());
        let gone = (all.len() - keep) / 2;
        all.drain(keep..keep + gone);
    }
    answer
}

#[test]
fn a_full_context_is_shifted_if_that_is_asked_for() {
    /// The context is shifted at least twice.
    const N: usize = 90;
    let _t = Timed::new("sampling, shifted contexts");
    let mut failures = Failures::default();
    let mut engine = build(default_engine().context(64));
    let mut cpu = build(default_engine().context(64).device(chaski::DeviceChoice::Cpu));
    let prompt = encode(&engine, PROMPT);
    for keep in [9, 0].into_iter().take(if full() { 2 } else { 1 }) {
        let expected = shifted_by_hand(&mut cpu, &prompt, keep, N);
        for (way, params, speculate) in [
            ("by the device", SamplerParams::greedy(), None),
            ("by the CPU", on_cpu(SamplerParams::greedy()), None),
            ("with guesses", SamplerParams::greedy(), Some(Speculation::default())),
        ]
        .into_iter()
        .step_by(if full() { 1 } else { 2 })
        {
            let mut options = GenerateOptions { shift: Some(keep), speculate, ..sampler(params, N) };
            options.sampler.ignore_eos = true;
            let mut g = engine.generate_tokens(&prompt, options).expect("a prompt that fits");
            while block_on(g.next()).expect("a piece").is_some() {}
            let case = format!("keep {keep}, chosen {way}");
            failures.check(g.tokens() == expected, || format!("{case}: {:?}", g.tokens()));
            let (finish, n) = (g.finish(), g.stats().n_dropped);
            failures.check(finish == Some(Finish::Length) && n > 40, || {
                format!("{case}: {finish:?}, {n} tokens forgotten")
            });
        }
        let mut options = GenerateOptions { shift: Some(keep), ..greedy(N) };
        options.sampler.ignore_eos = true;
        let handle = build(default_engine().context(64)).spawn().expect("a thread");
        let answer =
            handle.generate_tokens(Request::new(prompt.clone(), options)).expect("a request that fits");
        let tokens = outcome(answer).tokens;
        failures.check(tokens == expected, || format!("keep {keep}, in a service: {tokens:?}"));
    }
    // Everything is to be kept: no room can be made.
    let (_, tokens, why) = answer(&mut engine, PROMPT, GenerateOptions { shift: Some(64), ..greedy(N) });
    failures.check(why == Finish::Context, || format!("nothing to forget: {why:?} after {}", tokens.len()));
    failures.conclude();
}

fn encode(engine: &Engine, text: &str) -> Vec<u32> {
    engine
        .tokenizer()
        .encode(text, chaski::text::AddSpecial::Yes, chaski::text::ParseSpecial::Yes)
        .expect("tokens")
}

#[test]
fn a_generation_may_be_dropped_at_any_time() {
    let _t = Timed::new("sampling, dropped");
    let mut engine = build(default_engine());
    let mut failures = Failures::default();
    for (interval, n_piece) in [(1, 0), (1, 5), (4, 6), (16, 1), (16, 20), (0, 9)] {
        let case = format!("{interval} a readback, dropped after {n_piece} pieces");
        let mut g =
            engine.generate("One day", GenerateOptions { interval, ..greedy(60) }).expect("a generation");
        for _ in 0..n_piece {
            block_on(g.next()).expect("a piece").expect("a text of 60 tokens");
        }
        drop(g);
        let options = GenerateOptions { interval, ..greedy(24) };
        let found = text(&mut engine, PROMPT, options).expect("a text");
        failures.check(!found.is_empty() && ANSWER.starts_with(&found), || format!("{case}: {found:?}"));
    }
    failures.conclude();
}

#[test]
fn what_the_cache_has_is_not_run_again_and_changes_nothing() {
    let _t = Timed::new("sampling, prefix");
    let mut failures = Failures::default();
    let mut engine = build(default_engine());
    let fresh = || build(default_engine().device(chaski::DeviceChoice::Cpu));
    // Three turns: each prompt extends the last answer.
    let mut prompt = PROMPT.to_owned();
    let mut n_before = 0;
    for (turn, add) in ["\nThe next day,", "\nIn the end,", ""].into_iter().enumerate() {
        let mut g = engine.generate(&prompt, greedy(24)).expect("a generation");
        let mut found = String::new();
        while let Some(piece) = block_on(g.next()).expect("a piece") {
            found.push_str(&piece.text);
        }
        let (n_cached, n_prompt) = (g.stats().n_cached, g.stats().n_prompt);
        failures.check(turn == 0 || n_cached >= n_before, || {
            format!("turn {turn}: {n_cached} tokens came from the cache, which had {n_before} of them")
        });
        drop(g);
        let fresh = text(&mut fresh(), &prompt, greedy(24)).expect("a text");
        failures.same_text(format!("turn {turn}"), &found, &fresh);
        n_before = n_cached + n_prompt;
        prompt = format!("{prompt}{found}{add}");
    }
    // A prompt that diverges early from the cache.
    let found = text(&mut engine, "One day, a little robot", greedy(24)).expect("a text");
    let fresh = text(&mut fresh(), "One day, a little robot", greedy(24)).expect("a text");
    failures.same_text("another story", &found, &fresh);
    // The same prompt as the last one: only its last token runs.
    let mut g = engine.generate("One day, a little robot", greedy(1)).expect("a generation");
    block_on(g.next()).expect("a piece");
    failures
        .check(g.stats().n_prompt == 1, || format!("{} tokens of the same prompt ran", g.stats().n_prompt));
    drop(g);
    failures.conclude();
}
