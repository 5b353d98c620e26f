//! The parameters of sampling; defaults are llama.cpp's.

use ggml_format::Metadata;

/// How the next token is chosen.
///
/// Each sampler does nothing at the value given as *off*.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerParams {
    /// Start of the random numbers; `None` takes another one each time.
    pub seed: Option<u32>,
    /// The samplers that run, in order; the draw follows.
    pub samplers: Vec<SamplerKind>,
    /// Samplers that drop candidates keep at least so many; 0 is 1.
    pub min_keep: usize,
    /// Keep so many of the most probable tokens; 0 and below: off.
    pub top_k: i32,
    /// Keep the most probable tokens that together reach this probability; 1: off.
    pub top_p: f32,
    /// Keep tokens with this share of the most probable one's probability; 0: off.
    pub min_p: f32,
    /// Keep tokens of typical surprise that together reach this probability; 1: off.
    pub typical_p: f32,
    /// Logits are divided by it; 0 and below: always the most probable token.
    pub temp: f32,
    /// The temperature varies by so much to both sides, with the entropy; 0: off.
    pub dynatemp_range: f32,
    /// Exponent of the relative entropy in the varying temperature.
    pub dynatemp_exponent: f32,
    /// So many last tokens are penalised; 0 and below: off.
    pub penalty_last_n: i32,
    /// Logits of repeated tokens are divided by it, or multiplied if negative; 1: off.
    pub penalty_repeat: f32,
    /// Taken off the logit for each time that a token occurred; 0: off.
    pub penalty_freq: f32,
    /// Taken off the logit of a token that occurred; 0: off.
    pub penalty_present: f32,
    /// Strength of the penalty on repeated sequences (DRY); 0: off.
    pub dry_multiplier: f32,
    /// The penalty grows by this factor with each token of the sequence.
    pub dry_base: f32,
    /// Sequences below this length, in tokens, are not penalised.
    pub dry_allowed_length: i32,
    /// So many last tokens are searched for sequences; negative: all; 0: off.
    pub dry_penalty_last_n: i32,
    /// Texts that no sequence goes across.
    pub dry_sequence_breakers: Vec<String>,
    /// Drop tokens whose logit is so many standard deviations below the largest; 0 and below: off.
    pub top_n_sigma: f32,
    /// Probability that the most probable tokens are dropped (XTC); 0: off.
    pub xtc_probability: f32,
    /// Tokens with this probability count as most probable for XTC; above 0.5: off.
    pub xtc_threshold: f32,
    /// Steering of the surprise; replaces all other samplers but the temperature.
    pub mirostat: Mirostat,
    /// Surprise to aim at, in bits.
    pub mirostat_tau: f32,
    /// How fast Mirostat follows.
    pub mirostat_eta: f32,
    /// Probability to aim at with adaptive-p; negative: off.
    pub adaptive_target: f32,
    /// How long adaptive-p remembers, 0 to 0.99.
    pub adaptive_decay: f32,
    /// Added to the logits of tokens; minus infinity excludes one.
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
    /// Always the most probable token.
    pub fn greedy() -> SamplerParams {
        SamplerParams { temp: 0.0, ..SamplerParams::default() }
    }

    /// Whether the choice is the largest logit (after the biases), so that nothing else need be computed.
    pub fn is_argmax(&self) -> bool {
        self.temp <= 0.0
            && self.dynatemp_range <= 0.0
            && self.mirostat == Mirostat::Off
            && self.samplers.iter().all(|kind| kind.keeps_best() || kind.is_off(self))
            && self.samplers.contains(&SamplerKind::Temperature)
    }

    /// Whether the chain has that sampler and it does something.
    pub fn uses(&self, kind: SamplerKind) -> bool {
        self.samplers.contains(&kind) && !kind.is_off(self)
    }

    /// Takes over what a model's author recommends in the metadata `general.sampling.*`.
    ///
    /// Names in `sequence` that are not known are left out and returned.
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

/// Which Mirostat steers the draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mirostat {
    /// None.
    #[default]
    Off,
    /// Version 1, which estimates how fast probabilities fall.
    V1,
    /// Version 2, which cuts by surprise.
    V2,
}

impl Mirostat {
    /// From the number that users know; all but 1 and 2 are off.
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
pub enum SamplerKind {
    /// Penalties on tokens that occurred.
    Penalties,
    /// Penalty on sequences that occurred.
    Dry,
    /// Cut by standard deviations below the largest logit.
    TopNSigma,
    /// Cut by rank.
    TopK,
    /// Cut by distance from the typical surprise.
    Typical,
    /// Cut by cumulative probability.
    TopP,
    /// Cut by share of the largest probability.
    MinP,
    /// Dropping the most probable.
    Xtc,
    /// Scaling of the logits.
    Temperature,
    /// A draw that aims at a probability; in the sequence, it replaces the plain draw.
    AdaptiveP,
}

impl SamplerKind {
    /// The sequence that is used if nothing else is said.
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

    /// Reads names separated by semicolons; what is not a name comes back as the second list.
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
