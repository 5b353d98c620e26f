//! The sampling parameters; the defaults are llama.cpp's.

use ggml_format::Metadata;

use super::SampleError;

/// Parameters for sampling the next token.
///
/// Each sampler has no effect at its value marked *off*.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerParams {
    /// Seed of the random number generator; `None` for a different one each time.
    pub seed: Option<u32>,
    /// The samplers to run, in order, before the final sampling step.
    pub samplers: Vec<SamplerKind>,
    /// Minimum number of candidates that samplers keep, top-k and top-n-sigma aside; 0 means 1.
    pub min_keep: usize,
    /// Number of most probable tokens to keep; 0 and below: off.
    pub top_k: i32,
    /// Keep the most probable tokens up to this cumulative probability; 1: off.
    pub top_p: f32,
    /// Keep tokens with at least this fraction of the largest probability; 0: off.
    pub min_p: f32,
    /// Keep tokens of typical surprise up to this cumulative probability; 1: off.
    pub typical_p: f32,
    /// Divisor of the logits; 0 and below: greedy.
    pub temp: f32,
    /// Range of the dynamic temperature to both sides, depending on the entropy; 0: off.
    pub dynatemp_range: f32,
    /// Exponent of the relative entropy in the dynamic temperature.
    pub dynatemp_exponent: f32,
    /// Number of last tokens to penalise; 0 and below: off.
    pub penalty_last_n: i32,
    /// Divisor of the positive logits of repeated tokens, multiplier of negative ones; 1: off.
    pub penalty_repeat: f32,
    /// Subtracted from the logit for each occurrence of a token; 0: off.
    pub penalty_freq: f32,
    /// Subtracted from the logit of a token that occurred; 0: off.
    pub penalty_present: f32,
    /// Strength of the penalty on repeated sequences (DRY); 0: off.
    pub dry_multiplier: f32,
    /// Growth factor of the penalty per token of the sequence.
    pub dry_base: f32,
    /// Sequences shorter than this, in tokens, are not penalised.
    pub dry_allowed_length: i32,
    /// Number of last tokens to search for repeated sequences; negative: all; 0: off.
    pub dry_penalty_last_n: i32,
    /// Texts that no repeated sequence may span.
    pub dry_sequence_breakers: Vec<String>,
    /// Drop tokens whose logit is this many standard deviations below the largest; 0 and below: off.
    pub top_n_sigma: f32,
    /// Probability of dropping the most probable tokens (XTC); 0: off.
    pub xtc_probability: f32,
    /// Tokens with at least this probability count as most probable for XTC; above 0.5: off.
    pub xtc_threshold: f32,
    /// Control of the surprise; replaces all other samplers except the temperature.
    pub mirostat: Mirostat,
    /// Target surprise of Mirostat, in bits.
    pub mirostat_tau: f32,
    /// Learning rate of Mirostat.
    pub mirostat_eta: f32,
    /// Target probability of adaptive-p; negative: off.
    pub adaptive_target: f32,
    /// Memory of adaptive-p, 0 to 0.99.
    pub adaptive_decay: f32,
    /// Logit biases by token; minus infinity excludes a token.
    pub logit_bias: Vec<(u32, f32)>,
    /// Exclude the tokens that end a generation.
    pub ignore_eos: bool,
}

impl Default for SamplerParams {
    fn default() -> SamplerParams {
        SamplerParams {
            seed: None,
            samplers: SamplerKind::DEFAULT_ORDER.to_vec(),
            min_keep: 0,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            typical_p: 1.0,
            temp: 0.8,
            dynatemp_range: 0.0,
            dynatemp_exponent: 1.0,
            penalty_last_n: 64,
            penalty_repeat: 1.0,
            penalty_freq: 0.0,
            penalty_present: 0.0,
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_penalty_last_n: 64,
            dry_sequence_breakers: ["\n", ":", "\"", "*"].map(String::from).to_vec(),
            top_n_sigma: -1.0,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            mirostat: Mirostat::Off,
            mirostat_tau: 5.0,
            mirostat_eta: 0.1,
            adaptive_target: -1.0,
            adaptive_decay: 0.9,
            logit_bias: Vec::new(),
            ignore_eos: false,
        }
    }
}

impl SamplerParams {
    /// Greedy decoding: always the most probable token.
    pub fn greedy() -> SamplerParams {
        SamplerParams { temp: 0.0, ..SamplerParams::default() }
    }

    /// Checks parameters of any origin before the first token: extreme ones would make logits infinite or NaN.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for a number outside its range, [`SampleError::Bias`] for a token outside the
    /// vocabulary or a bias that is no number.
    pub fn check(&self, n_vocab: usize) -> Result<(), SampleError> {
        let wrong = |name, found, expected| Err(SampleError::Parameter { name, found, expected });
        if !(self.penalty_repeat > 0.0 && self.penalty_repeat.is_finite()) {
            return wrong("penalty_repeat", self.penalty_repeat, "more than 0 (1: off) and finite");
        }
        for (name, found) in [
            ("top_p", self.top_p),
            ("min_p", self.min_p),
            ("typical_p", self.typical_p),
            ("temp", self.temp),
            ("dynatemp_range", self.dynatemp_range),
            ("dynatemp_exponent", self.dynatemp_exponent),
            ("penalty_freq", self.penalty_freq),
            ("penalty_present", self.penalty_present),
            ("dry_multiplier", self.dry_multiplier),
            ("dry_base", self.dry_base),
            ("top_n_sigma", self.top_n_sigma),
            ("xtc_probability", self.xtc_probability),
            ("xtc_threshold", self.xtc_threshold),
            ("mirostat_tau", self.mirostat_tau),
            ("mirostat_eta", self.mirostat_eta),
            ("adaptive_target", self.adaptive_target),
            ("adaptive_decay", self.adaptive_decay),
        ] {
            if !found.is_finite() {
                return wrong(name, found, "finite");
            }
        }
        for &(token, bias) in &self.logit_bias {
            if token as usize >= n_vocab {
                return Err(SampleError::Bias { token, n_vocab });
            }
            if bias.is_nan() || bias == f32::INFINITY {
                return wrong("logit_bias", bias, "finite or minus infinity");
            }
        }
        Ok(())
    }

    /// True if the result is always the largest logit (after the biases), so that nothing else needs to be
    /// computed.
    pub fn is_argmax(&self) -> bool {
        self.temp <= 0.0
            && self.dynatemp_range <= 0.0
            && self.mirostat == Mirostat::Off
            && self.samplers.iter().all(|kind| kind.keeps_best() || kind.is_off(self))
            && self.samplers.contains(&SamplerKind::Temperature)
    }

    /// True if the chain contains the sampler and it has an effect.
    pub fn uses(&self, kind: SamplerKind) -> bool {
        self.samplers.contains(&kind) && !kind.is_off(self)
    }

    /// Applies the model author's recommendations from the metadata `general.sampling.*`.
    ///
    /// Unknown names in `sequence` are skipped and returned.
    pub fn apply_metadata(&mut self, metadata: &Metadata) -> Vec<String> {
        let number = |key: &str| metadata.get(key).and_then(|value| value.to::<f64>());
        let float = |key: &str, field: &mut f32| {
            if let Some(value) = number(&format!("general.sampling.{key}")) {
                *field = value as f32;
            }
        };
        let int = |key: &str, field: &mut i32| {
            if let Some(value) = number(&format!("general.sampling.{key}")) {
                *field = value as i32;
            }
        };
        int("top_k", &mut self.top_k);
        float("top_p", &mut self.top_p);
        float("min_p", &mut self.min_p);
        float("xtc_probability", &mut self.xtc_probability);
        float("xtc_threshold", &mut self.xtc_threshold);
        float("temp", &mut self.temp);
        int("penalty_last_n", &mut self.penalty_last_n);
        float("penalty_repeat", &mut self.penalty_repeat);
        float("mirostat_tau", &mut self.mirostat_tau);
        float("mirostat_eta", &mut self.mirostat_eta);
        if let Some(version) = number("general.sampling.mirostat") {
            self.mirostat = Mirostat::from_version(version as i64);
        }
        let sequence = metadata.get("general.sampling.sequence").and_then(|value| value.to::<&str>());
        let Some(sequence) = sequence else { return Vec::new() };
        let (samplers, unknown) = SamplerKind::parse_sequence(sequence);
        self.samplers = samplers;
        unknown
    }
}

/// The Mirostat version in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mirostat {
    /// Off.
    #[default]
    Off,
    /// Version 1, which estimates the decay of the probabilities.
    V1,
    /// Version 2, which truncates by surprise.
    V2,
}

impl Mirostat {
    /// From the version number; all numbers except 1 and 2 mean off.
    pub fn from_version(version: i64) -> Mirostat {
        match version {
            1 => Mirostat::V1,
            2 => Mirostat::V2,
            _ => Mirostat::Off,
        }
    }
}

/// A sampler by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SamplerKind {
    /// Penalties on tokens that occurred.
    Penalties,
    /// Penalty on sequences that occurred.
    Dry,
    /// Cutoff by standard deviations below the largest logit.
    TopNSigma,
    /// Cutoff by rank.
    TopK,
    /// Cutoff by distance from the typical surprise.
    Typical,
    /// Cutoff by cumulative probability.
    TopP,
    /// Cutoff relative to the largest probability.
    MinP,
    /// Exclusion of the most probable tokens.
    Xtc,
    /// Scaling of the logits.
    Temperature,
    /// Sampling that targets a probability; in the sequence, it replaces the plain final step.
    AdaptiveP,
}

impl SamplerKind {
    /// The default sequence.
    pub const DEFAULT_ORDER: [SamplerKind; 9] = [
        SamplerKind::Penalties,
        SamplerKind::Dry,
        SamplerKind::TopNSigma,
        SamplerKind::TopK,
        SamplerKind::Typical,
        SamplerKind::TopP,
        SamplerKind::MinP,
        SamplerKind::Xtc,
        SamplerKind::Temperature,
    ];

    /// Parses names separated by semicolons; unknown names are returned in the second list.
    pub fn parse_sequence(sequence: &str) -> (Vec<SamplerKind>, Vec<String>) {
        let (mut kinds, mut unknown) = (Vec::new(), Vec::new());
        for name in sequence.split(';').map(str::trim).filter(|name| !name.is_empty()) {
            match SamplerKind::from_name(name) {
                Some(kind) => kinds.push(kind),
                None => unknown.push(name.to_owned()),
            }
        }
        (kinds, unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_outside_their_ranges_are_named() {
        type Change = fn(&mut SamplerParams);
        let cases: [(Change, &str); 5] = [
            (|p| p.penalty_repeat = 0.0, "`penalty_repeat` is 0, but must be more than 0"),
            (|p| p.temp = f32::NAN, "`temp` is NaN, but must be finite"),
            (|p| p.dry_base = f32::INFINITY, "`dry_base` is inf, but must be finite"),
            (
                |p| p.logit_bias = vec![(7, f32::NAN)],
                "`logit_bias` is NaN, but must be finite or minus infinity",
            ),
            (|p| p.logit_bias = vec![(8, 1.0)], "the logit bias of token 8 is for none of the 8 tokens"),
        ];
        for (change, says) in cases {
            let mut params = SamplerParams::default();
            assert_eq!(params.check(8), Ok(()));
            change(&mut params);
            let e = params.check(8).unwrap_err().to_string();
            assert!(e.starts_with(says), "{e}");
        }
    }
}
