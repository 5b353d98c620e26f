//! Sampler chains on the device.

use chaski_runtime::gpu::SampleMode;
use chaski_runtime::kernels::adjust::{self, AdjustParams};
use chaski_runtime::kernels::sample::SampleParams;

use chaski_text::{Mirostat, Sampler, SamplerKind, SamplerParams};

/// A sampler chain in the device's terms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceChain {
    pub(crate) choose: SampleMode,
    /// Sampling parameters; `None` for greedy.
    pub(crate) sample: Option<SampleParams>,
    /// Biases and penalties, if any.
    pub(crate) adjust: Option<AdjustParams>,
}

/// Larger values could produce infinite logits, an error that the CPU reports.
const LARGEST: f32 = 1e9;

fn is_tame(v: f32) -> bool {
    v.abs() <= LARGEST
}

/// The chain for the device, or the reason why it needs the CPU.
pub(crate) fn device_chain(sampler: &Sampler) -> Result<DeviceChain, &'static str> {
    let p = sampler.params();
    let is_argmax = p.is_argmax();
    let penalizes = !is_argmax && p.uses(SamplerKind::Penalties);
    if !is_argmax {
        refuse(&limits_of_chain(p))?;
    }
    let bias: Vec<(u32, f32)> =
        sampler.bias().iter().copied().filter(|(t, _)| (*t as usize) < sampler.n_vocab()).collect();
    let n_excluded = bias.iter().filter(|(_, b)| *b == f32::NEG_INFINITY).count();
    let is_strange = |b: f32| b != f32::NEG_INFINITY && !is_tame(b);
    refuse(&[
        (bias.len() > adjust::MAX_BIAS, "more than 64 tokens have a bias"),
        (bias.iter().any(|b| is_strange(b.1)), "a bias is too large"),
        (n_excluded >= sampler.n_vocab(), "every token is excluded"),
    ])?;
    if penalizes {
        let repeat = p.penalty_repeat;
        let tame =
            repeat > 1.0 / LARGEST && [repeat, p.penalty_freq, p.penalty_present].map(is_tame) == [true; 3];
        refuse(&[
            (p.penalty_last_n as u32 > adjust::MAX_WINDOW, "penalties look back on more than 128 tokens"),
            (!tame, "a penalty is too large"),
        ])?;
    }
    let adjust = (penalizes || !bias.is_empty()).then_some(AdjustParams {
        last_n: if penalizes { p.penalty_last_n as u32 } else { 0 },
        repeat: p.penalty_repeat,
        freq: p.penalty_freq,
        present: p.penalty_present,
        bias,
    });
    // At temperature 0 the chain keeps the largest logit, whatever the filters before it.
    let sample = (!is_argmax && p.temp > 0.0).then_some(SampleParams {
        top_k: p.top_k.max(0) as u32,
        top_p: p.top_p,
        min_p: p.min_p,
        temp: p.temp,
    });
    let choose = match &sample {
        None => SampleMode::Greedy,
        Some(sample) if sample.is_wide() => SampleMode::SampleWide,
        Some(_) => SampleMode::Sample,
    };
    Ok(DeviceChain { choose, sample, adjust })
}

/// Features and limits that kernels do not support.
fn limits_of_chain(p: &SamplerParams) -> [(bool, &'static str); 8] {
    [
        (p.mirostat != Mirostat::Off, "Mirostat is on"),
        (p.samplers != SamplerKind::DEFAULT_ORDER, "the samplers or their order are not the default ones"),
        (p.uses(SamplerKind::Dry), "the DRY penalty is on"),
        (p.uses(SamplerKind::TopNSigma), "top-n-sigma is on"),
        (p.uses(SamplerKind::Typical), "typical-p is on"),
        (p.uses(SamplerKind::Xtc), "XTC is on"),
        (p.dynatemp_range > 0.0, "the temperature varies"),
        (p.min_keep > 1, "samplers keep more than one token"),
    ]
}

fn refuse(limits: &[(bool, &'static str)]) -> Result<(), &'static str> {
    limits.iter().find(|l| l.0).map_or(Ok(()), |l| Err(l.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chaski_text::{Tokenizer, TokenizerSpec};

    const N_VOCAB: u32 = 300;

    fn sampler(n_vocab: u32, params: SamplerParams) -> Sampler {
        let spec = TokenizerSpec {
            model: "none".into(),
            n_vocab: Some(n_vocab),
            suppress: vec![2],
            ..TokenizerSpec::default()
        };
        Sampler::new(params, &Tokenizer::from_spec(spec).expect("a vocabulary of ids"))
    }

    #[test]
    fn chains_that_the_device_lacks_are_refused_with_a_reason() {
        let d = SamplerParams { seed: Some(1), ..SamplerParams::default() };
        let g = SamplerParams::greedy();
        let penalised = SamplerParams { penalty_repeat: 1.1, ..d.clone() };
        let many = |n: u32| (0..n).map(|i| (10 + i, 1.0)).collect::<Vec<_>>();
        // The vocabulary suppresses one token, which leaves room for 63.
        for (what, params) in [
            ("greedy", g.clone()),
            (
                "greedy in another order",
                SamplerParams { samplers: vec![SamplerKind::Temperature], ..g.clone() },
            ),
            ("the default", d.clone()),
            ("penalties", penalised.clone()),
            ("penalties, greedy, no top-k", SamplerParams { temp: 0.0, top_k: 0, ..penalised.clone() }),
            ("no top-k", SamplerParams { top_k: -1, ..d.clone() }),
            ("a large top-k", SamplerParams { top_k: 65, ..d.clone() }),
            ("the longest window", SamplerParams { penalty_last_n: 128, ..penalised.clone() }),
            ("the most biases", SamplerParams { logit_bias: many(63), ..d.clone() }),
            ("a window that nobody looks at", SamplerParams { penalty_last_n: 1000, ..d.clone() }),
        ] {
            let chain =
                device_chain(&sampler(N_VOCAB, params.clone())).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(chain.sample.is_some(), params.temp > 0.0, "{what}");
            let is_wide = what == "no top-k" || what == "a large top-k";
            assert_eq!(chain.choose == SampleMode::SampleWide, is_wide, "{what}");
            let adjust = chain.adjust.expect("one token is excluded always");
            assert!(adjust.bias.contains(&(2, f32::NEG_INFINITY)), "{what}");
            assert_eq!(
                adjust.last_n > 0,
                what.starts_with("penalties") || what == "the longest window",
                "{what}"
            );
        }
        for (why, params) in [
            ("order", SamplerParams { samplers: vec![SamplerKind::TopK], ..d.clone() }),
            ("DRY", SamplerParams { dry_multiplier: 0.5, ..g.clone() }),
            ("128 tokens", SamplerParams { penalty_last_n: 129, ..penalised.clone() }),
            ("penalty", SamplerParams { penalty_repeat: 0.0, ..d.clone() }),
            ("penalty", SamplerParams { penalty_freq: f32::NAN, ..d.clone() }),
            ("64 tokens", SamplerParams { logit_bias: many(64), ..d.clone() }),
            ("bias", SamplerParams { logit_bias: vec![(1, f32::INFINITY)], ..g.clone() }),
        ] {
            let found = device_chain(&sampler(N_VOCAB, params));
            assert!(found.as_ref().is_err_and(|e| e.contains(why)), "{why}: {found:?}");
        }
        let exclude = |n: u32| (0..n).map(|i| (i, f32::NEG_INFINITY)).collect();
        for (n, is_left) in [(19, true), (20, false)] {
            let params = SamplerParams { logit_bias: exclude(n), ..g.clone() };
            assert_eq!(device_chain(&sampler(20, params)).is_ok(), is_left, "{n} of 20 tokens are excluded");
        }
    }

    #[test]
    fn the_device_adjusts_logits_as_the_samplers_do() {
        // The full distribution after the chain: top-k of all tokens, temperature 1.
        let params = SamplerParams {
            seed: Some(1),
            temp: 1.0,
            top_k: 40,
            top_p: 1.0,
            min_p: 0.0,
            penalty_repeat: 1.3,
            penalty_freq: 0.2,
            penalty_present: -0.1,
            penalty_last_n: 5,
            logit_bias: vec![(3, 2.5), (7, -4.0), (3, 0.5), (9, f32::NEG_INFINITY)],
            ..SamplerParams::default()
        };
        let mut sampler = sampler(N_VOCAB, params);
        let history = [1, 3, 7, 7, 20, 7, 3];
        history.iter().for_each(|t| sampler.accept(*t));
        let mut logits: Vec<f32> = (0..N_VOCAB).map(|i| ((i * 37) % 64) as f32 / 8.0 - 2.0).collect();
        logits[7] = 5.0;
        logits[3] = -4.0;
        let chain = device_chain(&sampler).expect("a chain for the device");
        let adjust = chain.adjust.expect("penalties and biases");
        sampler.sample(&logits).expect("a token");
        adjust::reference::adjust(&mut logits, &adjust, &history);
        let expected =
            chaski_runtime::kernels::sample::reference::candidates(&logits, &chain.sample.expect("a draw"));
        let found: Vec<(u32, f32)> = sampler.candidates().iter().map(|c| (c.id, c.p)).collect();
        assert_eq!(found.len(), expected.len());
        for ((id, p), (other, q)) in found.into_iter().zip(expected) {
            assert_eq!(id, other);
            assert!((f64::from(p) - q).abs() < 1e-6, "token {id}: {p} and {q}");
        }
    }
}
