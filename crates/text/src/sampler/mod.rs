//! Samplers: from logits to the next token, with llama.cpp's chain and defaults.
//!
//! Each sampler is a function on the list of candidates, with a file of its own and a row in [`SAMPLERS`].
//! They run in the order of [`SamplerParams::samplers`], then a token is sampled.

mod adaptive;
mod candidates;
mod dist;
mod dry;
mod error;
mod logprobs;
mod min_p;
mod mirostat;
mod params;
mod penalties;
mod rng;
mod temperature;
mod top_k;
mod top_n_sigma;
mod top_p;
mod typical;
mod xtc;

use std::hash::{BuildHasher, Hasher};

pub use candidates::Candidate;
pub use error::SampleError;
pub use logprobs::Logprobs;
pub use params::{Mirostat, SamplerKind, SamplerParams};

use crate::tokenizer::Tokenizer;
use candidates::Candidates;
use rng::Mt19937;

/// One sampler of the chain.
struct Row {
    kind: SamplerKind,
    name: &'static str,
    /// Alternative spellings.
    aliases: &'static [&'static str],
    /// Its letter in `--sampling-seq`.
    letter: char,
    /// True if it has no effect with these parameters.
    is_off: fn(&SamplerParams) -> bool,
    /// True if it never changes the most probable token, whatever its parameters.
    keeps_best: bool,
    apply: fn(&SamplerParams, &mut State, &mut Candidates),
}

/// All samplers.
static SAMPLERS: &[Row] = &[
    Row {
        kind: SamplerKind::Penalties,
        name: "penalties",
        aliases: &[],
        letter: 'e',
        is_off: |p| {
            p.penalty_last_n <= 0
                || (p.penalty_repeat == 1.0 && p.penalty_freq == 0.0 && p.penalty_present == 0.0)
        },
        keeps_best: false,
        apply: penalties::apply,
    },
    Row {
        kind: SamplerKind::Dry,
        name: "dry",
        aliases: &[],
        letter: 'd',
        is_off: |p| p.dry_multiplier == 0.0 || p.dry_base < 1.0 || p.dry_penalty_last_n == 0,
        keeps_best: false,
        apply: dry::apply,
    },
    Row {
        kind: SamplerKind::TopNSigma,
        name: "top_n_sigma",
        aliases: &["top-n-sigma"],
        letter: 's',
        is_off: |p| p.top_n_sigma <= 0.0,
        keeps_best: true,
        apply: top_n_sigma::apply,
    },
    Row {
        kind: SamplerKind::TopK,
        name: "top_k",
        aliases: &["top-k"],
        letter: 'k',
        is_off: |p| p.top_k <= 0,
        keeps_best: true,
        apply: top_k::apply,
    },
    Row {
        kind: SamplerKind::Typical,
        name: "typ_p",
        aliases: &["typical_p", "typical-p", "typical", "typ-p", "typ"],
        letter: 'y',
        is_off: |p| p.typical_p >= 1.0,
        keeps_best: false,
        apply: typical::apply,
    },
    Row {
        kind: SamplerKind::TopP,
        name: "top_p",
        aliases: &["top-p", "nucleus"],
        letter: 'p',
        is_off: |p| p.top_p >= 1.0,
        keeps_best: true,
        apply: top_p::apply,
    },
    Row {
        kind: SamplerKind::MinP,
        name: "min_p",
        aliases: &["min-p"],
        letter: 'm',
        is_off: |p| p.min_p <= 0.0,
        keeps_best: true,
        apply: min_p::apply,
    },
    Row {
        kind: SamplerKind::Xtc,
        name: "xtc",
        aliases: &[],
        letter: 'x',
        is_off: |p| p.xtc_probability <= 0.0 || p.xtc_threshold > 0.5,
        keeps_best: false,
        apply: xtc::apply,
    },
    Row {
        kind: SamplerKind::Temperature,
        name: "temperature",
        aliases: &["temp"],
        letter: 't',
        is_off: |_| false,
        keeps_best: true,
        apply: temperature::apply,
    },
    Row {
        kind: SamplerKind::AdaptiveP,
        name: "adaptive_p",
        aliases: &["adaptive-p"],
        letter: 'a',
        is_off: |p| p.adaptive_target < 0.0,
        keeps_best: false,
        // It is the final sampling step itself.
        apply: |_, _, _| {},
    },
];

impl SamplerKind {
    fn row(self) -> &'static Row {
        SAMPLERS.iter().find(|row| row.kind == self).expect("every kind has a row")
    }

    /// True if it has no effect with these parameters.
    pub(crate) fn is_off(self, params: &SamplerParams) -> bool {
        (self.row().is_off)(params)
    }

    /// True if it never changes the most probable token, whatever its parameters.
    fn keeps_best(self) -> bool {
        self.row().keeps_best
    }

    fn apply(self, params: &SamplerParams, state: &mut State, candidates: &mut Candidates) {
        if !self.is_off(params) {
            (self.row().apply)(params, state, candidates);
        }
    }

    /// All samplers.
    pub fn all() -> impl Iterator<Item = SamplerKind> {
        SAMPLERS.iter().map(|row| row.kind)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its letter in short sequences.
    pub fn letter(self) -> char {
        self.row().letter
    }

    /// The sampler with this name or alias.
    pub fn from_name(name: &str) -> Option<SamplerKind> {
        SAMPLERS.iter().find(|row| row.name == name || row.aliases.contains(&name)).map(|row| row.kind)
    }

    /// The sampler with this letter.
    pub fn from_letter(letter: char) -> Option<SamplerKind> {
        SAMPLERS.iter().find(|row| row.letter == letter).map(|row| row.kind)
    }
}

/// State that samplers keep from token to token.
#[derive(Clone, Debug)]
struct State {
    /// All tokens so far, the newest last.
    history: Vec<u32>,
    breakers: dry::Breakers,
    rng: Mt19937,
    xtc_rng: Mt19937,
    /// Mirostat's limit `mu`, in bits.
    mu: f32,
    mean: adaptive::Mean,
}

#[cfg(test)]
impl State {
    fn with_history(history: &[u32]) -> State {
        State {
            history: history.to_vec(),
            breakers: dry::Breakers::default(),
            rng: Mt19937::new(7),
            xtc_rng: Mt19937::new(7),
            mu: 0.0,
            mean: adaptive::Mean::default(),
        }
    }
}

/// Uniform numbers in `[0, 1)`, one for each token; see [`Sampler::draws`].
#[derive(Clone, Debug)]
pub struct Draws(Mt19937);

impl Iterator for Draws {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        // Rounding must not make a number 1.
        Some((self.0.next_f64() as f32).min(1.0 - f32::EPSILON / 2.0))
    }
}

/// Samples tokens from logits.
///
/// ```
/// use chaski_text::{Sampler, SamplerParams, Tokenizer, TokenizerSpec};
///
/// let spec = TokenizerSpec { model: "none".into(), n_vocab: Some(3), ..TokenizerSpec::default() };
/// let tokenizer = Tokenizer::from_spec(spec)?;
/// let mut sampler = Sampler::new(SamplerParams::greedy(), &tokenizer);
/// let token = sampler.sample(&[0.5, 2.0, -1.0])?;
/// sampler.accept(token);
/// assert_eq!(token, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    params: SamplerParams,
    seed: u32,
    n_vocab: usize,
    /// Logit biases, sorted by token, one entry each.
    bias: Vec<(u32, f32)>,
    state: State,
    candidates: Candidates,
}

impl Sampler {
    /// A sampler for the vocabulary of `tokenizer`, which also defines the tokens that are never sampled and
    /// tokenizes the sequence breakers of the DRY penalty.
    pub fn new(params: SamplerParams, tokenizer: &Tokenizer) -> Sampler {
        let mut bias: std::collections::BTreeMap<u32, f32> = Default::default();
        for &(id, value) in &params.logit_bias {
            *bias.entry(id).or_default() += value;
        }
        let ends = if params.ignore_eos { tokenizer.eog_ids() } else { Vec::new() };
        for &id in tokenizer.suppressed().iter().chain(&ends) {
            bias.insert(id, f32::NEG_INFINITY);
        }
        let breakers = if params.uses(SamplerKind::Dry) {
            dry::Breakers::new(&params.dry_sequence_breakers, tokenizer)
        } else {
            dry::Breakers::default()
        };
        let seed = params.seed.unwrap_or_else(random_seed);
        let state = State {
            history: Vec::new(),
            breakers,
            rng: Mt19937::new(seed),
            xtc_rng: Mt19937::new(seed),
            mu: 2.0 * params.mirostat_tau,
            mean: adaptive::Mean::new(&params),
        };
        Sampler {
            seed,
            n_vocab: tokenizer.n_vocab(),
            bias: bias.into_iter().collect(),
            state,
            candidates: Candidates::default(),
            params,
        }
    }

    /// Samples the next token from `logits`, one per token of the vocabulary.
    ///
    /// # Errors
    ///
    /// [`SampleError::Length`] if there are too few or too many logits, [`SampleError::NotFinite`] for NaN or
    /// plus infinity, [`SampleError::NothingLeft`] if all are minus infinity.
    ///
    /// # Source
    ///
    /// llama.cpp `common_sampler_sample`, without grammar: to apply one, set the logits of forbidden tokens
    /// to minus infinity.
    pub fn sample(&mut self, logits: &[f32]) -> Result<u32, SampleError> {
        if logits.len() != self.n_vocab {
            return Err(SampleError::Length { expected: self.n_vocab, found: logits.len() });
        }
        self.candidates.fill(logits);
        for &(id, value) in &self.bias {
            if let Some(candidate) = self.candidates.list.get_mut(id as usize) {
                candidate.logit += value;
            }
        }
        self.candidates.check()?;

        let (params, state, candidates) = (&self.params, &mut self.state, &mut self.candidates);
        if params.is_argmax() {
            let best = candidates.best();
            candidates.list.clear();
            candidates.list.push(Candidate { p: 1.0, ..best });
            return Ok(best.id);
        }
        let index = match params.mirostat {
            Mirostat::Off => {
                for kind in &params.samplers {
                    kind.apply(params, state, candidates);
                }
                // Extreme parameters can make valid logits invalid.
                candidates.check()?;
                if params.samplers.contains(&SamplerKind::AdaptiveP) {
                    adaptive::draw(params, state, candidates)
                } else {
                    dist::draw(state, candidates)
                }
            }
            Mirostat::V1 => {
                temperature::divide(params.temp, candidates);
                mirostat::draw_v1(params, state, candidates, self.n_vocab)
            }
            Mirostat::V2 => {
                temperature::divide(params.temp, candidates);
                mirostat::draw_v2(params, state, candidates)
            }
        };
        Ok(candidates.list[index].id)
    }

    /// The candidates of the last sampling step that remained, with their probabilities.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates.list
    }

    /// Adds `token` to the history, sampled or not; call it for the tokens of the prompt too.
    pub fn accept(&mut self, token: u32) {
        self.state.history.push(token);
    }

    /// The uniform numbers that decide the next tokens, for a device that draws them in the place of [`Self::sample`];
    /// the sampler keeps its own ([`Self::skip_draws`]).
    ///
    /// They decide the tokens of chains that end with a plain draw, one number each: not of Mirostat or adaptive-p.
    pub fn draws(&self) -> Draws {
        Draws(self.state.rng.clone())
    }

    /// Leaves out the numbers of `n` tokens that were drawn elsewhere.
    pub fn skip_draws(&mut self, n: usize) {
        for _ in 0..n {
            self.state.rng.next_f64();
        }
    }

    /// Clears the history and restarts the random number generator.
    pub fn reset(&mut self) {
        self.state.history.clear();
        self.state.rng = Mt19937::new(self.seed);
        self.state.xtc_rng = Mt19937::new(self.seed);
        self.state.mu = 2.0 * self.params.mirostat_tau;
        self.state.mean = adaptive::Mean::new(&self.params);
    }

    /// The seed in use.
    pub fn seed(&self) -> u32 {
        self.seed
    }

    /// The logit biases, one per token; minus infinity for tokens that are never sampled.
    pub fn bias(&self) -> &[(u32, f32)] {
        &self.bias
    }

    /// Number of logits it expects.
    pub fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    /// The parameters in use.
    pub fn params(&self) -> &SamplerParams {
        &self.params
    }
}

/// A seed that differs from run to run, if the platform has randomness: it is taken from the keys of hash
/// maps.
///
/// (`wasm32-unknown-unknown` has none; the caller should provide a seed there.)
fn random_seed() -> u32 {
    let hash = std::hash::RandomState::new().build_hasher().finish();
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::TokenizerSpec;

    fn tokenizer(n_vocab: u32) -> Tokenizer {
        let spec = TokenizerSpec {
            model: "none".into(),
            n_vocab: Some(n_vocab),
            suppress: vec![2, -1, 99],
            ..TokenizerSpec::default()
        };
        Tokenizer::from_spec(spec).unwrap()
    }

    fn sampler(params: SamplerParams) -> Sampler {
        Sampler::new(params, &tokenizer(4))
    }

    #[test]
    fn every_kind_has_one_row_and_names_lead_back() {
        let mut letters = std::collections::BTreeSet::new();
        for row in SAMPLERS {
            assert_eq!(SamplerKind::from_name(row.name), Some(row.kind));
            assert_eq!(SamplerKind::from_letter(row.letter), Some(row.kind));
            assert!(row.aliases.iter().all(|alias| SamplerKind::from_name(alias) == Some(row.kind)));
            assert!(letters.insert(row.letter));
        }
        assert!(SamplerKind::DEFAULT_ORDER.iter().all(|kind| SamplerKind::all().any(|row| row == *kind)));
        assert_eq!(SamplerKind::from_name("no such"), None);
    }

    #[test]
    fn what_is_off_changes_nothing_and_what_is_on_does() {
        use SamplerKind::{Dry, MinP, Penalties, TopK, TopNSigma, TopP, Typical, Xtc};
        type Change = fn(&mut SamplerParams);
        // Its effects are all off.
        let params = |change: Change| {
            let mut p = SamplerParams { top_k: 0, top_p: 1.0, min_p: 0.0, ..SamplerParams::default() };
            change(&mut p);
            p
        };
        let cases: [(SamplerKind, &[Change], Change); 8] = [
            (
                Penalties,
                &[
                    |p| (p.penalty_repeat, p.penalty_last_n) = (2.0, 0),
                    |p| (p.penalty_repeat, p.penalty_last_n) = (2.0, -1),
                ],
                |p| p.penalty_freq = 1.0,
            ),
            (
                Dry,
                &[
                    |p| (p.dry_multiplier, p.dry_base) = (1.0, 0.5),
                    |p| (p.dry_multiplier, p.dry_penalty_last_n) = (1.0, 0),
                ],
                |p| p.dry_multiplier = 1.0,
            ),
            (TopNSigma, &[|p| p.top_n_sigma = 0.0], |p| p.top_n_sigma = 0.5),
            (TopK, &[|p| p.top_k = -1], |p| p.top_k = 1),
            (Typical, &[|p| p.typical_p = 1.5], |p| p.typical_p = 0.1),
            (TopP, &[|p| p.top_p = 1.5], |p| p.top_p = 0.1),
            (MinP, &[|p| p.min_p = -1.0], |p| p.min_p = 0.9),
            (Xtc, &[|p| (p.xtc_probability, p.xtc_threshold) = (1.0, 0.6), |p| p.xtc_threshold = 0.0], |p| {
                (p.xtc_probability, p.xtc_threshold) = (1.0, 0.1)
            }),
        ];
        let before = Candidates::with_p(&[0.1, 0.5, 0.25, 0.15]);
        let after = |kind: SamplerKind, p: &SamplerParams| {
            let mut candidates = before.clone();
            kind.apply(p, &mut State::with_history(&[0, 1, 2, 0, 1]), &mut candidates);
            candidates.list
        };
        for (kind, off, on) in cases {
            let unchanged: Change = |_| {};
            for change in off.iter().copied().chain([unchanged]) {
                let p = params(change);
                assert!(kind.is_off(&p) && !p.uses(kind), "{kind:?}");
                assert_eq!(after(kind, &p), before.list, "{kind:?}");
            }
            let p = params(on);
            assert!(!kind.is_off(&p) && p.uses(kind), "{kind:?}");
            assert_ne!(after(kind, &p), before.list, "{kind:?}");
            let p = SamplerParams { temp: 0.0, ..p };
            assert_eq!(p.is_argmax(), kind.keeps_best(), "{kind:?}");
        }
    }

    #[test]
    fn greedy_takes_the_first_of_the_largest_that_is_allowed() {
        let mut sampler = sampler(SamplerParams::greedy());
        assert!(sampler.params().is_argmax());
        assert_eq!(sampler.sample(&[0.0, 3.0, 9.0, 3.0]), Ok(1));
        assert_eq!(sampler.candidates().len(), 1);
        assert_eq!(sampler.sample(&[-0.0, 0.0, 0.0, -1.0]), Ok(0));
    }

    #[test]
    fn greedy_with_penalties_goes_through_the_chain() {
        let params = SamplerParams { penalty_repeat: 10.0, ..SamplerParams::greedy() };
        let mut sampler = sampler(params);
        assert!(!sampler.params().is_argmax());
        assert_eq!(sampler.sample(&[2.0, 3.0, 9.0, 1.0]), Ok(1));
        sampler.accept(1);
        assert_eq!(sampler.sample(&[2.0, 3.0, 9.0, 1.0]), Ok(0));
        sampler.reset();
        assert_eq!(sampler.sample(&[2.0, 3.0, 9.0, 1.0]), Ok(1));
    }

    #[test]
    fn biases_add_up_and_exclude() {
        let logit_bias = vec![(3, 1.5), (3, 1.5), (1, f32::NEG_INFINITY), (77, 1.0)];
        let mut sampler = sampler(SamplerParams { logit_bias, ..SamplerParams::greedy() });
        assert_eq!(sampler.sample(&[2.0, 9.0, 9.0, 0.0]), Ok(3));
    }

    #[test]
    fn broken_logits_are_errors() {
        let mut sampler = sampler(SamplerParams::default());
        let error = sampler.sample(&[0.0, f32::NAN, 0.0, 0.0]).unwrap_err();
        assert_eq!(error.to_string(), "logit of token 1 is NaN");
        let error = sampler.sample(&[0.0, 0.0, 0.0, f32::INFINITY]).unwrap_err();
        assert!(matches!(error, SampleError::NotFinite { id: 3, .. }));
        assert_eq!(sampler.sample(&[0.0]), Err(SampleError::Length { expected: 4, found: 1 }));
        assert_eq!(sampler.sample(&[f32::NEG_INFINITY; 4]), Err(SampleError::NothingLeft));
    }

    #[test]
    fn absurd_parameters_are_errors() {
        let mut sampler = sampler(SamplerParams { penalty_repeat: 0.0, ..SamplerParams::default() });
        sampler.accept(1);
        assert!(matches!(sampler.sample(&[0.0, 1.0, 2.0, 3.0]), Err(SampleError::NotFinite { id: 1, .. })));
    }

    #[test]
    fn a_seed_gives_the_same_tokens_again() {
        let params = SamplerParams { seed: Some(42), temp: 2.0, top_k: 0, ..SamplerParams::default() };
        let mut sampler = sampler(params);
        let draw = |sampler: &mut Sampler| -> Vec<u32> {
            (0..50).map(|_| sampler.sample(&[0.1, 0.2, 0.3, 0.4]).unwrap()).collect()
        };
        let first = draw(&mut sampler);
        sampler.reset();
        assert_eq!(draw(&mut sampler), first);
        assert!([0, 1, 3].iter().all(|id| first.contains(id)) && !first.contains(&2));
    }

    #[test]
    fn chain_of_defaults_draws_by_the_scaled_probabilities() {
        let params =
            SamplerParams { seed: Some(1), temp: 0.5, min_p: 0.0, top_p: 1.0, ..SamplerParams::default() };
        let mut sampler = sampler(params);
        // Probabilities 1/2 and 1/4 at temperature 1/2 have the ratio 4 to 1.
        let logits = [0.5f32.ln(), 0.25f32.ln(), 0.0, f32::NEG_INFINITY];
        const N: usize = 20_000;
        let n_first = (0..N).filter(|_| sampler.sample(&logits) == Ok(0)).count();
        assert!((n_first as f64 / N as f64 - 0.8).abs() < 0.015, "{n_first}");
    }

    #[test]
    fn mirostat_and_adaptive_p_replace_the_draw() {
        for mirostat in [Mirostat::V1, Mirostat::V2] {
            let mut sampler = sampler(SamplerParams { seed: Some(3), mirostat, ..SamplerParams::default() });
            let before = sampler.state.mu;
            assert!(sampler.sample(&[1.0, 2.0, 3.0, 4.0]).is_ok());
            assert_ne!(sampler.state.mu, before);
        }
        let samplers = vec![SamplerKind::Temperature, SamplerKind::AdaptiveP];
        let params =
            SamplerParams { seed: Some(3), samplers, adaptive_target: 0.5, ..SamplerParams::default() };
        let mut sampler = sampler(params);
        assert!(sampler.sample(&[1.0, 2.0, 3.0, 4.0]).is_ok());
    }

    #[test]
    fn metadata_changes_the_defaults() {
        let mut writer = ggml_format::GgufWriter::new();
        writer.set("general.sampling.top_k", 20i32).unwrap();
        writer.set("general.sampling.temp", 0.6f32).unwrap();
        writer.set("general.sampling.mirostat", 2i32).unwrap();
        writer.set("general.sampling.sequence", "top_k;temperature;infill").unwrap();
        let file = writer.begin(Vec::new()).unwrap().finish().unwrap();
        let n_byte = file.len() as u64;
        let gguf = ggml_format::Gguf::parse(file.into(), n_byte).unwrap();

        let mut params = SamplerParams::default();
        assert_eq!(params.apply_metadata(gguf.metadata()), ["infill"]);
        assert_eq!((params.top_k, params.temp, params.mirostat), (20, 0.6, Mirostat::V2));
        assert_eq!(params.samplers, [SamplerKind::TopK, SamplerKind::Temperature]);
        assert_eq!(params.top_p, 0.95);
    }
}
