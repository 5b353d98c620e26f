//! Options of sampling.

use chaski::SamplerParams;
use chaski::text::{Mirostat, SamplerKind};
use serde_json::Value;

use crate::numbers::{finite, positive};

/// Sampling options; unset ones follow the model's recommendation, else the defaults named here.
#[derive(Clone, Debug, Default, clap::Args, serde::Serialize)]
#[command(next_help_heading = "Sampling options")]
pub(crate) struct SamplingArgs {
    /// Temperature; 0 is greedy [default: 0.8]
    #[arg(long, value_name = "T", value_parser = finite, allow_negative_numbers = true)]
    pub(crate) temp: Option<f32>,
    /// Dynamic temperature range; 0: off [default: 0]
    #[arg(long, value_name = "X", value_parser = finite)]
    dynatemp_range: Option<f32>,
    /// Dynamic temperature exponent [default: 1]
    #[arg(long, value_name = "X", value_parser = finite)]
    dynatemp_exp: Option<f32>,
    /// Top-k sampling; 0: off [default: 40]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    top_k: Option<i32>,
    /// Top-p sampling; 1: off [default: 0.95]
    #[arg(long, value_name = "P", value_parser = finite)]
    top_p: Option<f32>,
    /// Min-p sampling; 0: off [default: 0.05]
    #[arg(long, value_name = "P", value_parser = finite)]
    min_p: Option<f32>,
    /// Locally typical sampling; 1: off [default: 1]
    #[arg(long, alias = "typical", value_name = "P", value_parser = finite)]
    typical_p: Option<f32>,
    /// Top-n-sigma sampling: keep logits within N standard deviations of the maximum; below 0: off [default: -1]
    #[arg(long, alias = "top-nsigma", value_name = "N", value_parser = finite, allow_negative_numbers = true)]
    top_n_sigma: Option<f32>,
    /// Repetition penalty, a factor; 1: off [default: 1]
    #[arg(long, value_name = "F", value_parser = positive)]
    repeat_penalty: Option<f32>,
    /// Number of last tokens to penalise [default: 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    repeat_last_n: Option<i32>,
    /// Presence penalty; 0: off [default: 0]
    #[arg(long, value_name = "X", value_parser = finite, allow_negative_numbers = true)]
    presence_penalty: Option<f32>,
    /// Frequency penalty; 0: off [default: 0]
    #[arg(long, value_name = "X", value_parser = finite, allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,
    /// DRY penalty multiplier; 0: off [default: 0]
    #[arg(long, value_name = "X", value_parser = finite)]
    dry_multiplier: Option<f32>,
    /// DRY penalty base [default: 1.75]
    #[arg(long, value_name = "X", value_parser = finite)]
    dry_base: Option<f32>,
    /// DRY: longest repetition without a penalty [default: 2]
    #[arg(long, value_name = "N")]
    dry_allowed_length: Option<i32>,
    /// DRY sequence breaker, replacing the default ones; may be repeated; none: no breakers
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    dry_sequence_breaker: Vec<String>,
    /// DRY: number of last tokens to scan; -1: all [default: 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    dry_penalty_last_n: Option<i32>,
    /// XTC probability; 0: off [default: 0]
    #[arg(long, value_name = "P", value_parser = finite)]
    xtc_probability: Option<f32>,
    /// XTC threshold; above 0.5: off [default: 0.1]
    #[arg(long, value_name = "P", value_parser = finite)]
    xtc_threshold: Option<f32>,
    /// Adaptive-p target probability, if the sampler is in --samplers; below 0: off [default: -1]
    #[arg(long, value_name = "P", value_parser = finite, allow_negative_numbers = true)]
    adaptive_target: Option<f32>,
    /// Adaptive-p decay, 0 to 0.99 [default: 0.9]
    #[arg(long, value_name = "X", value_parser = finite)]
    adaptive_decay: Option<f32>,
    /// Mirostat version 1 or 2, replacing the other samplers; 0: off [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..=2))]
    mirostat: Option<i64>,
    /// Mirostat target entropy, tau [default: 5]
    #[arg(long, alias = "mirostat-ent", value_name = "X", value_parser = finite)]
    mirostat_tau: Option<f32>,
    /// Mirostat learning rate, eta [default: 0.1]
    #[arg(long, alias = "mirostat-lr", value_name = "X", value_parser = finite)]
    mirostat_eta: Option<f32>,
    /// Samplers in order, such as `top_k;top_p;temperature`
    #[arg(long, value_name = "NAMES", value_parser = sequence)]
    samplers: Option<Sequence>,
    /// Samplers as one letter each, such as `kpt`
    #[arg(long, alias = "sampler-seq", value_name = "LETTERS", value_parser = letters, conflicts_with = "samplers")]
    sampling_seq: Option<Sequence>,
    /// Random seed; the same seed gives the same text [default: random]
    #[arg(short, long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    seed: Option<Seed>,
    /// Logit bias of a token, such as `15043+1` or `15043-1.5`; `-inf` bans it; may be repeated
    #[arg(short = 'l', long, value_name = "TOKEN+BIAS", value_parser = logit_bias)]
    #[serde(serialize_with = "biases")]
    logit_bias: Vec<(u32, f32)>,
    /// Ignore the end-of-sequence token and keep generating
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    ignore_eos: Option<bool>,
}

/// Biases as they are written on the command line.
fn biases<S: serde::Serializer>(list: &[(u32, f32)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(list.iter().map(|(token, bias)| format!("{token}{bias:+}")))
}

/// A seed; negative numbers mean a random one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Seed(Option<u32>);

fn seed(text: &str) -> Result<Seed, String> {
    match text.parse::<i64>() {
        Ok(n) if n < 0 => Ok(Seed(None)),
        Ok(n) => u32::try_from(n).map(|n| Seed(Some(n))).map_err(|_| format!("at most {}", u32::MAX)),
        Err(e) => Err(e.to_string()),
    }
}

/// A list of samplers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence(Vec<SamplerKind>);

impl serde::Serialize for Sequence {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let names: Vec<&str> = self.0.iter().map(|kind| kind.name()).collect();
        to.serialize_str(&names.join(";"))
    }
}

fn sequence(text: &str) -> Result<Sequence, String> {
    match SamplerKind::parse_sequence(text) {
        (kinds, unknown) if unknown.is_empty() => Ok(Sequence(kinds)),
        (_, unknown) => Err(format!("unknown sampler: {}", unknown.join(", "))),
    }
}

fn letters(text: &str) -> Result<Sequence, String> {
    let kind = |letter: char| {
        SamplerKind::from_letter(letter).ok_or_else(|| {
            let known: Vec<String> =
                SamplerKind::all().map(|kind| format!("{} {}", kind.letter(), kind.name())).collect();
            format!("no sampler has the letter `{letter}` (known: {})", known.join(", "))
        })
    };
    text.chars().map(kind).collect::<Result<_, _>>().map(Sequence)
}

/// Parses `TOKEN+BIAS` or `TOKEN-BIAS`.
fn logit_bias(text: &str) -> Result<(u32, f32), String> {
    let expected = || "expected a token id, + or -, and a number: 15043+1".to_owned();
    let sign = text.find(['+', '-']).ok_or_else(expected)?;
    let id = text[..sign].parse().map_err(|_| expected())?;
    match text[sign..].parse::<f32>() {
        Ok(bias) if bias < f32::INFINITY => Ok((id, bias)),
        Ok(_) => Err("expected a finite bias or -inf".into()),
        Err(_) => Err(expected()),
    }
}

impl SamplingArgs {
    /// Sets an option, by ollama's name, that the command line leaves to the model; false for another name or value.
    pub(crate) fn fill(&mut self, name: &str, value: &Value) -> bool {
        fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
            let is_value = value.is_some();
            if field.is_none() {
                *field = value;
            }
            is_value
        }
        let float = || value.as_f64().map(|x| x as f32).filter(|x| x.is_finite());
        let whole = || value.as_i64().and_then(|n| i32::try_from(n).ok());
        match name {
            "temperature" => set(&mut self.temp, float()),
            "top_k" => set(&mut self.top_k, whole()),
            "top_p" => set(&mut self.top_p, float()),
            "min_p" => set(&mut self.min_p, float()),
            "typical_p" => set(&mut self.typical_p, float()),
            "repeat_penalty" => set(&mut self.repeat_penalty, float().filter(|x| *x > 0.0)),
            "repeat_last_n" => set(&mut self.repeat_last_n, whole()),
            "presence_penalty" => set(&mut self.presence_penalty, float()),
            "frequency_penalty" => set(&mut self.frequency_penalty, float()),
            "mirostat" => set(&mut self.mirostat, whole().filter(|n| (0..=2).contains(n)).map(i64::from)),
            "mirostat_tau" => set(&mut self.mirostat_tau, float()),
            "mirostat_eta" => set(&mut self.mirostat_eta, float()),
            "seed" => {
                set(&mut self.seed, value.as_u64().and_then(|n| u32::try_from(n).ok()).map(|n| Seed(Some(n))))
            }
            _ => false,
        }
    }

    /// Clears what a new value of this option would contradict.
    pub(crate) fn make_room_for(&mut self, option: &str) {
        if ["samplers", "sampling-seq", "sampler-seq"].contains(&option) {
            (self.samplers, self.sampling_seq) = (None, None);
        }
    }

    /// Writes the given options over `p`, which holds the defaults and the model's recommendation.
    pub(crate) fn apply(&self, p: &mut SamplerParams) {
        fn set<T: Clone>(field: &mut T, value: &Option<T>) {
            if let Some(v) = value {
                *field = v.clone();
            }
        }
        set(&mut p.temp, &self.temp);
        set(&mut p.dynatemp_range, &self.dynatemp_range);
        set(&mut p.dynatemp_exponent, &self.dynatemp_exp);
        set(&mut p.top_k, &self.top_k);
        set(&mut p.top_p, &self.top_p);
        set(&mut p.min_p, &self.min_p);
        set(&mut p.typical_p, &self.typical_p);
        set(&mut p.top_n_sigma, &self.top_n_sigma);
        set(&mut p.penalty_repeat, &self.repeat_penalty);
        set(&mut p.penalty_last_n, &self.repeat_last_n);
        set(&mut p.penalty_present, &self.presence_penalty);
        set(&mut p.penalty_freq, &self.frequency_penalty);
        set(&mut p.dry_multiplier, &self.dry_multiplier);
        set(&mut p.dry_base, &self.dry_base);
        set(&mut p.dry_allowed_length, &self.dry_allowed_length);
        if !self.dry_sequence_breaker.is_empty() {
            let is_text = |text: &&String| *text != "none";
            p.dry_sequence_breakers = self.dry_sequence_breaker.iter().filter(is_text).cloned().collect();
        }
        set(&mut p.dry_penalty_last_n, &self.dry_penalty_last_n);
        set(&mut p.xtc_probability, &self.xtc_probability);
        set(&mut p.xtc_threshold, &self.xtc_threshold);
        set(&mut p.adaptive_target, &self.adaptive_target);
        set(&mut p.adaptive_decay, &self.adaptive_decay);
        set(&mut p.mirostat, &self.mirostat.map(Mirostat::from_version));
        set(&mut p.mirostat_tau, &self.mirostat_tau);
        set(&mut p.mirostat_eta, &self.mirostat_eta);
        let samplers = self.samplers.as_ref().or(self.sampling_seq.as_ref());
        set(&mut p.samplers, &samplers.map(|s| s.0.clone()));
        set(&mut p.seed, &self.seed.map(|s| s.0));
        p.logit_bias.extend_from_slice(&self.logit_bias);
        set(&mut p.ignore_eos, &self.ignore_eos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_sampling_reaches_its_field() {
        use clap::Parser as _;
        #[derive(clap::Parser)]
        #[command(no_binary_name = true)]
        struct Line {
            #[command(flatten)]
            sampling: SamplingArgs,
        }
        let line = "--dynatemp-range 0.5 --dynatemp-exp 2 --dry-sequence-breaker a --dry-sequence-breaker b \
                    --adaptive-target 0.3 --adaptive-decay 0.7";
        let args = Line::try_parse_from(line.split_whitespace()).unwrap().sampling;
        let mut p = SamplerParams::default();
        args.apply(&mut p);
        assert_eq!((p.dynatemp_range, p.dynatemp_exponent), (0.5, 2.0));
        assert_eq!(p.dry_sequence_breakers, ["a", "b"]);
        assert_eq!((p.adaptive_target, p.adaptive_decay), (0.3, 0.7));
        let by_letters = Line::try_parse_from(["--sampling-seq", "kpt"]).unwrap().sampling;
        by_letters.apply(&mut p);
        assert_eq!(p.samplers, [SamplerKind::TopK, SamplerKind::TopP, SamplerKind::Temperature]);
        let error = letters("kq").unwrap_err();
        assert!(
            error.starts_with("no sampler has the letter `q` (known: ") && error.contains("k top_k"),
            "{error}"
        );
        let none = Line::try_parse_from(["--dry-sequence-breaker", "none"]).unwrap().sampling;
        none.apply(&mut p);
        assert!(p.dry_sequence_breakers.is_empty());
    }

    #[test]
    fn biases_have_a_token_and_a_sign() {
        assert_eq!(logit_bias("15043+1"), Ok((15043, 1.0)));
        assert_eq!(logit_bias("7-0.5"), Ok((7, -0.5)));
        assert_eq!(logit_bias("7-inf"), Ok((7, f32::NEG_INFINITY)));
        for wrong in ["7", "x+1", "7+", "7+inf", "7+nan", "-1"] {
            assert!(logit_bias(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seeds_below_zero_are_drawn() {
        assert_eq!(seed("-1"), Ok(Seed(None)));
        assert_eq!(seed("7"), Ok(Seed(Some(7))));
        assert!(seed("4294967296").is_err());
    }
}
