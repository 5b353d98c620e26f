//! Samplers by statistics: token frequencies match the formulas.

use chaski_text::{Mirostat, Sampler, SamplerKind, SamplerParams, Tokenizer, TokenizerSpec};

const N_DRAW: usize = 20_000;

fn tokenizer(n_vocab: u32) -> Tokenizer {
    let spec = TokenizerSpec { model: "none".into(), n_vocab: Some(n_vocab), ..TokenizerSpec::default() };
    Tokenizer::from_spec(spec).unwrap()
}

/// A chain with only the final sampling step, at temperature 1.
fn bare() -> SamplerParams {
    SamplerParams { seed: Some(11), temp: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, ..SamplerParams::default() }
}

/// Probabilities of five tokens; unsorted, with an outlier.
const P: [f64; 5] = [0.08, 0.5, 0.02, 0.3, 0.1];

fn logits() -> Vec<f32> {
    // An additive constant on the logits has no effect.
    P.iter().map(|p| p.ln() as f32 + 30.0).collect()
}

/// Weights as probabilities.
fn normal(weights: [f64; 5]) -> [f64; 5] {
    let sum: f64 = weights.iter().sum();
    weights.map(|weight| weight / sum)
}

/// [`P`] restricted to the remaining tokens.
fn only(left: [usize; 5]) -> [f64; 5] {
    let mut weights = [0.0; 5];
    (0..5).for_each(|i| weights[i] = P[i] * left[i] as f64);
    normal(weights)
}

#[test]
fn frequencies_are_those_of_the_formulas() {
    let power = |exponent: f64| normal(P.map(|p| p.powf(exponent)));
    let entropy: f64 = -P.iter().map(|p| p * p.ln()).sum::<f64>();
    let dynamic = 0.5 + 1.0 * (entropy / 5f64.ln());
    // Token 3 occurred twice and token 1 once: all logits are about 30, so they are divided.
    let raised: Vec<f64> = P.iter().map(|p| p.ln() + 30.0).collect();
    let penalised = |i: usize, count: f64| (raised[i] / 1.05 - count * 0.2 - 0.3).exp();
    let penalties =
        normal([raised[0].exp(), penalised(1, 1.0), raised[2].exp(), penalised(3, 2.0), raised[4].exp()]);
    // 1 3 occurred before and the history ends with 1: token 3 would extend a match of length 1 (allowed
    // length 1).
    let dry = normal([P[0], P[1], P[2], P[3] * (-0.8f64).exp(), P[4]]);
    let biased = normal([P[0] * 1f64.exp(), P[1], 0.0, P[3], P[4] * (-0.5f64).exp()]);
    let mixed = |probability: f64, with: [f64; 5]| {
        let mut out = [0.0; 5];
        (0..5).for_each(|i| out[i] = probability * with[i] + (1.0 - probability) * P[i]);
        out
    };
    let cases: [(&str, SamplerParams, &[u32], [f64; 5]); 13] = [
        ("nothing", bare(), &[], P),
        ("temperature 2", SamplerParams { temp: 2.0, ..bare() }, &[], power(0.5)),
        ("temperature 0.5", SamplerParams { temp: 0.5, ..bare() }, &[], power(2.0)),
        ("a varying temperature", SamplerParams { dynatemp_range: 0.5, ..bare() }, &[], power(1.0 / dynamic)),
        ("top-k", SamplerParams { top_k: 3, ..bare() }, &[], only([0, 1, 0, 1, 1])),
        ("top-p", SamplerParams { top_p: 0.85, ..bare() }, &[], only([0, 1, 0, 1, 1])),
        ("min-p", SamplerParams { min_p: 0.15, ..bare() }, &[], only([1, 1, 0, 1, 1])),
        // Entropy 1.222; distances of the surprises 2.53, 0.69, 3.91, 1.20, 2.30 from it: 3, 1, 4, 0, 2.
        ("typical", SamplerParams { typical_p: 0.7, ..bare() }, &[], only([0, 1, 0, 1, 0])),
        // Logits -2.53 -0.69 -3.91 -1.20 -2.30: deviation 1.12 of the mean, so the limit is -1.81.
        ("top-n-sigma", SamplerParams { top_n_sigma: 1.0, ..bare() }, &[], only([0, 1, 0, 1, 0])),
        (
            "XTC",
            SamplerParams { xtc_probability: 0.4, xtc_threshold: 0.09, ..bare() },
            &[],
            mixed(0.4, only([1, 0, 1, 0, 1])),
        ),
        (
            "penalties",
            SamplerParams { penalty_repeat: 1.05, penalty_freq: 0.2, penalty_present: 0.3, ..bare() },
            &[3, 1, 3],
            penalties,
        ),
        ("DRY", SamplerParams { dry_multiplier: 0.8, dry_allowed_length: 1, ..bare() }, &[1, 3, 0, 1], dry),
        (
            "biases",
            SamplerParams {
                logit_bias: vec![(0, 0.4), (0, 0.6), (2, f32::NEG_INFINITY), (4, -0.5)],
                ..bare()
            },
            &[],
            biased,
        ),
    ];
    for (what, params, history, expected) in cases {
        let mut sampler = Sampler::new(params, &tokenizer(5));
        history.iter().for_each(|&id| sampler.accept(id));
        let mut counts = [0usize; 5];
        for _ in 0..N_DRAW {
            counts[sampler.sample(&logits()).unwrap() as usize] += 1;
        }
        for (id, (&count, p)) in counts.iter().zip(expected).enumerate() {
            // Five standard deviations of a binomial count.
            let n = N_DRAW as f64;
            let deviation = (n * p * (1.0 - p)).sqrt();
            assert!(
                (count as f64 - n * p).abs() <= 5.0 * deviation + 1e-6,
                "{what}: token {id} sampled {count} times, not {:.0}: {counts:?}",
                n * p
            );
        }
    }
}

#[test]
fn the_order_of_samplers_matters() {
    let with = |samplers: Vec<SamplerKind>| {
        let params = SamplerParams { samplers, temp: 10.0, min_p: 0.5, ..bare() };
        let mut sampler = Sampler::new(params, &tokenizer(5));
        sampler.sample(&logits()).unwrap();
        sampler.candidates().len()
    };
    assert_eq!(with(vec![SamplerKind::MinP, SamplerKind::Temperature]), 2);
    assert_eq!(with(vec![SamplerKind::Temperature, SamplerKind::MinP]), 5);
}

/// A thousand tokens whose probabilities follow a power law of their rank, like words.
fn zipf() -> Vec<f32> {
    (1..=1000).map(|rank| -1.1 * (rank as f32).ln()).collect()
}

#[test]
fn mirostat_holds_the_surprise() {
    let logits = zipf();
    let total: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    for tau in [2.0, 3.5] {
        let params = SamplerParams { mirostat: Mirostat::V2, mirostat_tau: tau, mirostat_eta: 0.1, ..bare() };
        let mut sampler = Sampler::new(params, &tokenizer(1000));
        let mut surprises = Vec::new();
        for _ in 0..4000 {
            let id = sampler.sample(&logits).unwrap();
            let left: f64 = sampler.candidates().iter().map(|c| f64::from(logits[c.id as usize]).exp()).sum();
            assert!(left <= total * (1.0 + 1e-6));
            surprises.push(-(f64::from(logits[id as usize]).exp() / left).log2());
        }
        // The surprise is measured among the remaining tokens, as Mirostat does.
        let mean = surprises[500..].iter().sum::<f64>() / 3500.0;
        assert!((mean - f64::from(tau)).abs() < 0.1, "tau {tau}: mean surprise {mean}");
    }
}

#[test]
fn adaptive_p_aims_at_the_target() {
    let logits = zipf();
    let total: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    let mean_of = |target: f32| {
        let params = SamplerParams {
            samplers: vec![SamplerKind::TopK, SamplerKind::Temperature, SamplerKind::AdaptiveP],
            top_k: 20,
            adaptive_target: target,
            ..bare()
        };
        let mut sampler = Sampler::new(params, &tokenizer(1000));
        let p = |id: u32| f64::from(logits[id as usize]).exp() / total;
        (0..2000).map(|_| p(sampler.sample(&logits).unwrap())).sum::<f64>() / 2000.0
    };
    // The most probable token has 0.17 of the total; a higher target gives more probable tokens.
    let (low, high) = (mean_of(0.02), mean_of(0.3));
    assert!(low < 0.06 && high > 0.08 && high > 2.0 * low, "{low}, {high}");
}
