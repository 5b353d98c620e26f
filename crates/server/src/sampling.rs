//! Options of generations in requests. The names are those of OpenAI, llama.cpp and vLLM together.

use std::time::Duration;

use chaski::options::{Ends, Speculation};
use chaski::text::{Mirostat, SamplerKind};
use chaski::{GenerateOptions, Grammar, SamplerParams};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Facts;

/// A number of [`SamplerParams`]: its names, its bounds, and where it goes.
struct Number {
    /// The first one that is there counts.
    names: &'static [&'static str],
    from: f64,
    to: f64,
    about: &'static str,
    set: fn(&mut SamplerParams, f64),
    get: fn(&SamplerParams) -> Value,
}

macro_rules! number {
    ($field:ident: $type:ty, [$($name:literal),+], $from:expr, $to:expr, $about:literal) => {
        Number {
            names: &[$($name),+],
            from: $from,
            to: $to,
            about: $about,
            set: |p, x| p.$field = x as $type,
            get: |p| p.$field.into(),
        }
    };
}

const MOST: f64 = 1e9;

/// The numbers; the first name is that of llama.cpp.
const NUMBERS: [Number; 21] = [
    number!(temp: f32, ["temperature"], 0.0, 1e6, "Temperature: 0 takes the most likely token"),
    number!(top_k: i32, ["top_k"], -1.0, MOST, "Keep so many most likely tokens; 0 or less: all"),
    number!(top_p: f32, ["top_p"], 0.0, 1.0, "Keep the most likely tokens that have this probability together"),
    number!(min_p: f32, ["min_p"], 0.0, 1.0, "Keep tokens with this part of the probability of the most likely one"),
    number!(typical_p: f32, ["typical_p"], 0.0, 1.0, "Keep tokens whose information is near the expected one, of this probability together"),
    number!(top_n_sigma: f32, ["top_n_sigma"], -1.0, MOST, "Keep tokens whose logits are within so many standard deviations of the largest; below 0: all"),
    number!(xtc_probability: f32, ["xtc_probability"], 0.0, 1.0, "Probability of excluding the most likely tokens"),
    number!(xtc_threshold: f32, ["xtc_threshold"], 0.0, 1.0, "Probability from which tokens count for XTC"),
    number!(dynatemp_range: f32, ["dynatemp_range"], 0.0, 1e6, "Range of the dynamic temperature; 0: off"),
    number!(dynatemp_exponent: f32, ["dynatemp_exponent"], 0.0, 1e6, "Exponent of the dynamic temperature"),
    number!(penalty_last_n: i32, ["repeat_last_n"], -1.0, MOST, "Tokens that penalties look back on; 0: none, -1: the context"),
    number!(penalty_repeat: f32, ["repeat_penalty", "repetition_penalty"], 1e-6, 1e6, "Divisor of the logits of repeated tokens; 1: none"),
    number!(penalty_freq: f32, ["frequency_penalty"], -1e6, 1e6, "Taken from a logit for each time the token occurred"),
    number!(penalty_present: f32, ["presence_penalty"], -1e6, 1e6, "Taken from a logit if the token occurred"),
    number!(dry_multiplier: f32, ["dry_multiplier"], 0.0, 1e6, "Strength of the penalty for repeated sequences; 0: off"),
    number!(dry_base: f32, ["dry_base"], 0.0, 1e6, "Base of the growth of that penalty"),
    number!(dry_allowed_length: i32, ["dry_allowed_length"], 0.0, MOST, "Tokens that may be repeated without it"),
    number!(dry_penalty_last_n: i32, ["dry_penalty_last_n"], -1.0, MOST, "Tokens that it looks back on; 0: none, -1: the context"),
    number!(mirostat_tau: f32, ["mirostat_tau"], 0.0, 1e6, "Target entropy of Mirostat"),
    number!(mirostat_eta: f32, ["mirostat_eta"], 0.0, 1e6, "Learning rate of Mirostat"),
    number!(adaptive_target: f32, ["adaptive_target"], -1.0, 1.0, "Probability that adaptive-p aims at; below 0: off"),
];

/// The numbers by each of their names: bounds, and what they do.
pub(crate) fn numbers() -> impl Iterator<Item = (&'static str, f64, f64, &'static str)> {
    NUMBERS
        .iter()
        .flat_map(|number| number.names.iter().map(|name| (*name, number.from, number.to, number.about)))
}

/// Sampling parameters of a request; what it does not say is as the model has it.
pub(crate) fn sampler(fields: &Fields<'_>, facts: &Facts) -> Result<SamplerParams, ApiError> {
    let mut params = facts.sampler.clone();
    for number in &NUMBERS {
        for name in number.names {
            if let Some(value) = fields.number(name, number.from..=number.to)? {
                (number.set)(&mut params, value);
                break;
            }
        }
    }
    params.adaptive_decay =
        fields.number("adaptive_decay", 0.0..=0.99)?.map_or(params.adaptive_decay, |x| x as f32);
    if let Some(seed) = fields.integer("seed", i64::MIN..=i64::MAX)? {
        params.seed = u64::try_from(seed).ok().map(folded);
    }
    if let Some(version) = fields.integer("mirostat", 0..=2)? {
        params.mirostat = Mirostat::from_version(version);
    }
    if let Some(keep) = fields.integer("min_keep", 0..=i64::from(i32::MAX))? {
        params.min_keep = keep as usize;
    }
    if let Some(names) = samplers(fields)? {
        params.samplers = names;
    }
    if let Some(breakers) = fields.texts("dry_sequence_breakers", 64)? {
        params.dry_sequence_breakers = breakers;
    }
    params.ignore_eos = fields.flag("ignore_eos")?.unwrap_or(params.ignore_eos);
    params.logit_bias.extend(logit_bias(fields, facts)?);
    Ok(params)
}

/// A seed in the engine's 32 bits, on which all of its bits have a part; small ones stay what they are. Numbers below 0
/// choose a seed, as in llama.cpp.
fn folded(seed: u64) -> u32 {
    let high = (seed >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (seed ^ high) as u32
}

fn samplers(fields: &Fields<'_>) -> Result<Option<Vec<SamplerKind>>, ApiError> {
    // llama.cpp takes letters, too: "dkypmxt".
    if let Some(Value::String(letters)) = fields.get("samplers") {
        let kinds = letters.chars().map(SamplerKind::from_letter).collect::<Option<Vec<_>>>();
        return kinds
            .map(Some)
            .ok_or_else(|| fields.wrong("samplers", "a list of samplers, or their letters"));
    }
    let Some(names) = fields.texts("samplers", 64)? else { return Ok(None) };
    let kind = |name: &String| {
        let known = || {
            let known: Vec<&str> = SamplerKind::all().map(SamplerKind::name).collect();
            fields.wrong("samplers", format!("a list of: {}", known.join(", ")))
        };
        SamplerKind::from_name(name).ok_or_else(known)
    };
    names.iter().map(kind).collect::<Result<Vec<_>, _>>().map(Some)
}

/// Biases: `{"id": bias}`, or llama.cpp's `[[id or text, bias]]`, in which `false` excludes.
fn logit_bias(fields: &Fields<'_>, facts: &Facts) -> Result<Vec<(u32, f32)>, ApiError> {
    let wrong = || fields.wrong("logit_bias", "an object of token ids with numbers from -100 to 100");
    let bias = |value: &Value| match value {
        Value::Bool(false) => Some(f32::NEG_INFINITY),
        value => value.as_f64().filter(|x| x.is_finite()).map(|x| x as f32),
    };
    let tokens = |value: &Value| match value {
        Value::String(text) => match text.parse() {
            Ok(id) => Some(vec![id]),
            Err(_) => facts.tokens(text, false, false).ok(),
        },
        value => value.as_u64().and_then(|id| u32::try_from(id).ok()).map(|id| vec![id]),
    };
    let mut found = Vec::new();
    let n_vocab = facts.about.n_vocab;
    match fields.get("logit_bias") {
        None => {}
        Some(Value::Object(map)) => {
            for (id, value) in map {
                let ids = tokens(&Value::String(id.clone())).ok_or_else(wrong)?;
                let bias = bias(value).filter(|x| x.abs() <= 100.0 || x.is_infinite()).ok_or_else(wrong)?;
                found.extend(ids.into_iter().map(|id| (id, bias)));
            }
        }
        Some(Value::Array(rows)) => {
            for row in rows {
                let Some([token, value]) = row.as_array().map(Vec::as_slice) else { return Err(wrong()) };
                let (ids, bias) = (tokens(token).ok_or_else(wrong)?, bias(value).ok_or_else(wrong)?);
                found.extend(ids.into_iter().map(|id| (id, bias)));
            }
        }
        Some(_) => return Err(wrong()),
    }
    match found.iter().find(|(id, _)| *id >= n_vocab) {
        Some((id, _)) => {
            let message = format!("`logit_bias` has token {id}, outside the vocabulary of {n_vocab} tokens");
            Err(ApiError::field(fields.path("logit_bias"), message))
        }
        None => Ok(found),
    }
}

/// Options that all dialects with llama.cpp's names share.
pub(crate) fn options(fields: &Fields<'_>, facts: &Facts) -> Result<GenerateOptions, ApiError> {
    let mut options = GenerateOptions { grammar: grammar(fields)?, ..unconstrained(fields, "stop", facts)? };
    if let Some(keep) = fields.integer("n_keep", -1..=i64::from(u32::MAX))? {
        options.shift = options.shift.map(|_| usize::try_from(keep).unwrap_or(usize::MAX));
    }
    Ok(options)
}

/// Silence of a stream after which a request wants a sign of life, if it says so.
pub(crate) fn silence(fields: &Fields<'_>) -> Result<Option<Duration>, ApiError> {
    let seconds = fields.integer("sse_ping_interval", -1..=86400)?;
    let time = |seconds: i64| match u64::try_from(seconds) {
        Ok(1..) => Duration::from_secs(seconds.unsigned_abs()),
        _ => Duration::MAX,
    };
    Ok(seconds.map(time))
}

/// The same without a constraint; stop strings have this name.
pub(crate) fn unconstrained(
    fields: &Fields<'_>,
    stop: &str,
    facts: &Facts,
) -> Result<GenerateOptions, ApiError> {
    let texts = fields.texts(stop, 16)?.unwrap_or_default();
    if texts.iter().any(String::is_empty) {
        return Err(fields.wrong(stop, "a list of texts that are not empty"));
    }
    Ok(GenerateOptions {
        max_tokens: facts.max_tokens,
        sampler: sampler(fields, facts)?,
        stop: texts,
        drop_turns: false,
        shift: facts.context_shift.then_some(0),
        speculate: speculation(fields, facts)?,
        ..GenerateOptions::default()
    })
}

/// Drafts as the model has them; a request may want longer or shorter ones, or none. Without drafts of the model there
/// are none.
fn speculation(fields: &Fields<'_>, facts: &Facts) -> Result<Option<Speculation>, ApiError> {
    let count = |name| fields.integer(name, 0..=i64::from(i32::MAX)).map(|n| n.map(|n| n as usize));
    let (n_max, n_min) = (count("speculative.n_max")?, count("speculative.n_min")?);
    let p_min = fields.number("speculative.p_min", 0.0..=1.0)?.map(|p| p as f32);
    let change = |own: Speculation| Speculation {
        n_max: n_max.unwrap_or(own.n_max).min(Speculation::MAX),
        n_min: n_min.unwrap_or(own.n_min),
        p_min: p_min.unwrap_or(own.p_min),
        ..own
    };
    Ok(facts.speculation.map(change).filter(|speculation| speculation.n_max > 0))
}

/// The constraint of the text: `grammar`, `json_schema`, `response_format`, vLLM's `guided_*` and `structured_outputs`.
fn grammar(fields: &Fields<'_>) -> Result<Option<Grammar>, ApiError> {
    let mut found = Vec::new();
    if let Some(text) = fields.text("grammar")?.filter(|text| !text.is_empty()) {
        found.push(("grammar", Grammar::from_text(text)));
    }
    if let Some(schema) = fields.object("json_schema")?.filter(|schema| !schema.map().is_empty()) {
        found.push(("json_schema", Grammar::JsonSchema(schema.map().clone().into())));
    }
    if let Some(grammar) = response_format(fields)? {
        found.push(("response_format", grammar));
    }
    for (name, read) in GUIDED {
        let outer = fields.object("structured_outputs")?;
        let short = name.strip_prefix("guided_").unwrap_or(name);
        let own = fields.get(name).map(|value| (fields, name, value));
        let inner = || outer.as_ref().and_then(|outer| Some((outer, short, outer.get(short)?)));
        if let Some((fields, its_name, value)) = own.or_else(inner) {
            let wrong = || fields.wrong(its_name, "a valid constraint");
            found.push((name, read(value).ok_or_else(wrong)?));
        }
    }
    match found.len() {
        0 | 1 => Ok(found.pop().map(|(_, grammar)| grammar)),
        _ => Err(fields.wrong(found[1].0, format!("absent beside `{}`", found[0].0))),
    }
}

type ReadGrammar = fn(&Value) -> Option<Grammar>;

/// vLLM's constraints.
const GUIDED: [(&str, ReadGrammar); 4] = [
    ("guided_json", |value| match value {
        Value::String(text) => serde_json::from_str(text).ok().map(Grammar::JsonSchema),
        value => value.is_object().then(|| Grammar::JsonSchema(value.clone())),
    }),
    ("guided_regex", |value| value.as_str().map(|text| Grammar::Regex(text.into()))),
    ("guided_choice", |value| {
        let choices = value.as_array()?;
        (!choices.is_empty() && choices.iter().all(Value::is_string)).then(|| {
            let quoted: Vec<String> = choices.iter().map(Value::to_string).collect();
            Grammar::Lark(format!("start: {}", quoted.join(" | ")))
        })
    }),
    ("guided_grammar", |value| value.as_str().map(Grammar::from_text)),
];

fn response_format(fields: &Fields<'_>) -> Result<Option<Grammar>, ApiError> {
    let Some(format) = fields.object("response_format")? else { return Ok(None) };
    let schema = match format.text("type")? {
        Some("text") => None,
        Some("json_object") => match format.object("schema")? {
            Some(schema) => Some(schema.map().clone().into()),
            None => Some(json!({"type": "object"})),
        },
        Some("json_schema") => {
            let outer = format.need("json_schema", format.object("json_schema")?)?;
            let schema = outer.need("schema", outer.object("schema")?)?;
            outer.text("name")?;
            outer.flag("strict")?;
            Some(schema.map().clone().into())
        }
        _ => return Err(format.wrong("type", "\"text\", \"json_object\" or \"json_schema\"")),
    };
    Ok(schema.map(Grammar::JsonSchema))
}

/// A limit of tokens: absent and -1 mean none.
pub(crate) fn max_tokens(
    fields: &Fields<'_>,
    names: &[&str],
    facts: &Facts,
) -> Result<Option<usize>, ApiError> {
    for name in names {
        if let Some(n) = fields.integer(name, -1..=i64::MAX)? {
            let asked = usize::try_from(n).ok();
            return Ok(match (asked, facts.max_tokens) {
                (Some(asked), Some(most)) => Some(asked.min(most)),
                (asked, most) => asked.or(most),
            });
        }
    }
    Ok(facts.max_tokens)
}

/// Most tokens that a request can let end an answer.
const MOST_STOPS: usize = 1024;

/// Ends of an answer in vLLM's and llama.cpp's names: a minimum of tokens, tokens that end, and a time limit.
pub(crate) fn ends(fields: &Fields<'_>, max_tokens: Option<usize>, facts: &Facts) -> Result<Ends, ApiError> {
    let min_tokens = fields.integer("min_tokens", 0..=i64::MAX)?.unwrap_or(0) as usize;
    if let Some(most) = max_tokens.filter(|most| min_tokens > *most) {
        let message =
            format!("`min_tokens` is {min_tokens}, more than the {most} tokens that the answer may have");
        return Err(ApiError::field(fields.path("min_tokens"), message));
    }
    let max_time = fields.integer("t_max_predict_ms", -1..=i64::MAX)?.filter(|ms| *ms > 0);
    let max_time = max_time.map(|ms| Duration::from_millis(ms.unsigned_abs()));
    Ok(Ends { min_tokens, stop_tokens: stop_tokens(fields, facts)?, max_time })
}

/// The slot that a request asks for: a label, so a number that no slot has is as good as none.
pub(crate) fn slot(fields: &Fields<'_>, facts: &Facts) -> Result<Option<u32>, ApiError> {
    let slot = fields.integer("id_slot", -1..=i64::from(i32::MAX))?;
    Ok(slot.and_then(|slot| u32::try_from(slot).ok()).filter(|slot| *slot < facts.n_seq))
}

fn stop_tokens(fields: &Fields<'_>, facts: &Facts) -> Result<Vec<u32>, ApiError> {
    const NAME: &str = "stop_token_ids";
    let Some(list) = fields.list(NAME)? else { return Ok(Vec::new()) };
    if list.len() > MOST_STOPS {
        return Err(fields.wrong(NAME, format!("a list of at most {MOST_STOPS} tokens")));
    }
    let token = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let tokens: Option<Vec<u32>> = list.iter().map(token).collect();
    let tokens = tokens.ok_or_else(|| fields.wrong(NAME, "a list of token ids"))?;
    let n_vocab = facts.about.n_vocab;
    match tokens.iter().find(|id| **id >= n_vocab) {
        Some(id) => {
            let message = format!("`{NAME}` has token {id}, outside the vocabulary of {n_vocab} tokens");
            Err(ApiError::field(fields.path(NAME), message))
        }
        None => Ok(tokens),
    }
}

/// The parameters in llama.cpp's names, for those who ask what was in force.
pub(crate) fn told(params: &SamplerParams, facts: &Facts) -> serde_json::Map<String, Value> {
    let mut told = serde_json::Map::new();
    told.insert("seed".into(), params.seed.unwrap_or(u32::MAX).into());
    for number in &NUMBERS {
        told.insert(number.names[0].into(), (number.get)(params));
    }
    told.insert("adaptive_decay".into(), params.adaptive_decay.into());
    let version = match params.mirostat {
        Mirostat::Off => 0,
        Mirostat::V1 => 1,
        Mirostat::V2 => 2,
    };
    told.insert("mirostat".into(), version.into());
    told.insert("dry_sequence_breakers".into(), params.dry_sequence_breakers.clone().into());
    told.insert("min_keep".into(), params.min_keep.into());
    told.insert("ignore_eos".into(), params.ignore_eos.into());
    let names: Vec<&str> = params.samplers.iter().map(|kind| kind.name()).collect();
    told.insert("samplers".into(), names.into());
    // JSON has no infinity: a token that is never chosen has none.
    let bias =
        |(token, bias): &(u32, f32)| json!({"token": token, "bias": bias.is_finite().then_some(*bias)});
    let ends = if params.ignore_eos {
        facts.with_tokenizer(|tokenizer| tokenizer.eog_ids()).unwrap_or_default()
    } else {
        Vec::new()
    };
    let ends = ends.into_iter().map(|token| (token, f32::NEG_INFINITY));
    let biases: Vec<(u32, f32)> = params.logit_bias.iter().copied().chain(ends).collect();
    told.insert("logit_bias".into(), biases.iter().map(bias).collect());
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_request_does_not_say_is_as_the_model_has_it() {
        let facts = Facts::for_tests();
        let body = json!({"temperature": 0.25, "top_k": null, "repetition_penalty": 1.5, "seed": -1});
        let params = sampler(&Fields::of(&body, "").unwrap(), &facts).unwrap();
        let mut seeded = Facts::for_tests();
        seeded.sampler.seed = Some(7);
        assert_eq!(sampler(&Fields::of(&json!({}), "").unwrap(), &seeded).unwrap().seed, Some(7));
        assert_eq!((params.temp, params.top_k, params.penalty_repeat, params.seed), (0.25, 40, 1.5, None));
        assert_eq!(told(&params, &facts)["temperature"], 0.25);
    }

    #[test]
    fn drafts_are_as_the_model_has_them_unless_a_request_says_more() {
        let mut facts = Facts::for_tests();
        let read = |facts: &Facts, body: Value| speculation(&Fields::of(&body, "").unwrap(), facts);
        assert_eq!(read(&facts, json!({"speculative.n_max": 4})).unwrap(), None, "the model has none");
        facts.speculation = Some(Speculation { n_max: 3, n_min: 1, p_min: 0.25, n_match: 2 });
        assert_eq!(read(&facts, json!({})).unwrap(), facts.speculation);
        let body = json!({"speculative.n_max": 16, "speculative.n_min": 2, "speculative.p_min": 0.5});
        let all = Speculation { n_max: Speculation::MAX, n_min: 2, p_min: 0.5, n_match: 2 };
        assert_eq!(read(&facts, body).unwrap(), Some(all));
        assert_eq!(read(&facts, json!({"speculative.n_max": 0})).unwrap(), None);
        for (name, value) in [("n_max", json!(-1)), ("n_min", json!("a")), ("p_min", json!(1.5))] {
            let name = format!("speculative.{name}");
            let error = read(&facts, json!({&name: value})).unwrap_err();
            assert_eq!(error.param.as_deref(), Some(&*name));
        }
    }

    #[test]
    fn two_constraints_are_refused() {
        let body = json!({"grammar": "root ::= \"a\"", "json_schema": {"type": "object"}});
        let error = grammar(&Fields::of(&body, "").unwrap()).unwrap_err();
        assert_eq!(error.message, "`json_schema` must be absent beside `grammar`");
    }

    #[test]
    fn numbers_outside_their_bounds_name_themselves() {
        let facts = Facts::for_tests();
        for (body, param) in [
            (json!({"top_p": 2}), "top_p"),
            (json!({"temperature": "hot"}), "temperature"),
            (json!({"logit_bias": {"x": []}}), "logit_bias"),
            (json!({"response_format": {"type": "yaml"}}), "response_format.type"),
            (json!({"samplers": ["magic"]}), "samplers"),
            (json!({"stop": [""]}), "stop"),
        ] {
            let error = options(&Fields::of(&body, "").unwrap(), &facts).unwrap_err();
            assert_eq!(error.param.as_deref(), Some(param), "{body}");
        }
    }
}
