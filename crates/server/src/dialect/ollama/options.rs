//! Options of answers: those of `options`, and the fields beside it.

use chaski::text::TemplateOptions;
use chaski::{GenerateOptions, Grammar};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Facts;
use crate::sampling;

/// The options of an answer.
pub(super) fn options(fields: &Fields<'_>, facts: &Facts) -> Result<GenerateOptions, ApiError> {
    let none = Value::Object(Map::new());
    let given = match fields.object("options")? {
        Some(given) => given,
        None => Fields::of(&none, "options")?,
    };
    let most = facts.n_ctx as i64;
    if given.integer("num_ctx", 1..=i64::MAX)?.is_some_and(|n| n > most) {
        return Err(given.wrong("num_ctx", format!("at most {most}, with which the model was loaded")));
    }
    let mut options = sampling::unconstrained(&given, "stop", facts)?;
    // 0 and numbers below it mean no limit.
    if let Some(limit) = given.integer("num_predict", -2..=i64::MAX)?.filter(|n| *n > 0) {
        options.max_tokens = Some(facts.max_tokens.map_or(limit as usize, |most| most.min(limit as usize)));
    }
    let keep = given.integer("num_keep", -1..=i64::from(u32::MAX))?.unwrap_or(0);
    let shifts = fields.flag("shift")?.unwrap_or(facts.context_shift);
    options.shift = shifts.then_some(usize::try_from(keep).unwrap_or(usize::MAX));
    options.grammar = format(fields)?;
    let top = fields.integer("top_logprobs", 0..=20)?.unwrap_or(0) as usize;
    options.logprobs = fields.flag("logprobs")?.unwrap_or(false).then_some(top);
    Ok(options)
}

/// The constraint of `format`.
fn format(fields: &Fields<'_>) -> Result<Option<Grammar>, ApiError> {
    match fields.get("format") {
        None => Ok(None),
        Some(Value::String(word)) if word.is_empty() => Ok(None),
        Some(Value::String(word)) if word == "json" => {
            Ok(Some(Grammar::JsonSchema(json!({"type": "object"}))))
        }
        Some(schema @ Value::Object(_)) => Ok(Some(Grammar::JsonSchema(schema.clone()))),
        Some(_) => Err(fields.wrong("format", "\"json\" or a JSON schema")),
    }
}

/// Applies `think`, a switch or a level.
pub(super) fn think(fields: &Fields<'_>, template: &mut TemplateOptions) -> Result<(), ApiError> {
    match fields.get("think") {
        None => {}
        Some(Value::Bool(thinks)) => template.enable_thinking = Some(*thinks),
        Some(Value::String(level)) if ["low", "medium", "high"].contains(&level.as_str()) => {
            template.enable_thinking = Some(true);
            template.extra.insert("reasoning_effort".into(), level.as_str().into());
        }
        Some(_) => return Err(fields.wrong("think", "true, false, \"low\", \"medium\" or \"high\"")),
    }
    Ok(())
}

/// Streams are the default.
pub(super) fn stream(fields: &Fields<'_>) -> Result<bool, ApiError> {
    Ok(fields.flag("stream")?.unwrap_or(true))
}

/// Refuses images.
pub(super) fn no_images(fields: &Fields<'_>) -> Result<(), ApiError> {
    match fields.list("images")? {
        Some([_, ..]) => Err(fields.wrong("images", "absent: the model takes only text")),
        _ => Ok(()),
    }
}
