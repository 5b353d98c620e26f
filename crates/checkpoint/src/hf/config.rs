//! config.json: numbers by the names that versions of transformers and families gave them.

use ggml_format::OwnedValue;
use serde_json::{Map, Value};

use crate::python_json;

/// A key of config.json that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ConfigError {
    #[error("config.json: expected JSON")]
    Json(#[source] serde_json::Error),
    #[error("config.json: expected an object, found another value")]
    NoObject,
    #[error("config.json: key `{key}`: expected {expected}, found {found}")]
    Value { key: String, expected: String, found: String },
    #[error("config.json: key `{key}`: expected {expected}, found nothing")]
    Missing { key: String, expected: String },
    #[error(
        "config.json: {what}: a GGUF file cannot describe this, and the model would compute something else"
    )]
    Unsupported { what: String },
}

/// Most layers of a model: lists per layer have as many entries.
const MAX_LAYER: u32 = 4096;
/// Most channels of a head: factors of RoPE are as many.
const MAX_HEAD: u32 = 65_536;

/// Names of the part of a head that RoPE turns, the present one first.
pub(super) const ROTARY_PART: &[&str] = &["partial_rotary_factor", "rope_pct", "rope_percent"];

/// Names of the number of experts.
pub(super) const N_EXPERT: &[&str] = &["num_local_experts", "num_experts", "n_routed_experts"];

/// A configuration. Keys of a `text_config` come before those around it.
#[derive(Clone, Debug)]
pub struct Config {
    text: Map<String, Value>,
    outer: Map<String, Value>,
}

impl Config {
    /// Parses config.json, with the numbers that Python writes for NaN and infinities.
    ///
    /// # Errors
    /// [`ConfigError::Json`], [`ConfigError::NoObject`]; [`ConfigError::Value`] for parts that are no objects.
    pub fn parse(json: &[u8]) -> Result<Config, ConfigError> {
        Config::of(python_json::parse(json).map_err(ConfigError::Json)?)
    }

    /// A configuration that was parsed.
    ///
    /// # Errors
    /// As [`Config::parse`], but for JSON.
    pub(crate) fn of(value: Value) -> Result<Config, ConfigError> {
        match value {
            Value::Object(outer) => {
                let text = object(&outer, "text_config")?.cloned().unwrap_or_default();
                for map in [&text, &outer] {
                    check_rope(map)?;
                }
                Ok(Config { text, outer })
            }
            _ => Err(ConfigError::NoObject),
        }
    }

    /// Adds values of keys that the file leaves out, as JSON. A key that is null is there: transformers has no value
    /// then.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub(super) fn add_defaults(&mut self, json: &str) -> Result<(), ConfigError> {
        let defaults = Config::parse(json.as_bytes())?;
        for (key, value) in defaults.outer {
            let one = [key.as_str()];
            let names = if key == ROTARY_PART[0] { ROTARY_PART } else { &one };
            let has = |name: &&str| self.text.contains_key(*name) || self.outer.contains_key(*name);
            if !names.iter().any(has) && self.rope_of("full_attention", names).is_none() {
                self.outer.insert(key, value);
            }
        }
        Ok(())
    }

    /// The classes under `architectures`.
    pub fn classes(&self) -> Vec<&str> {
        let names = self.outer.get("architectures").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// A value that is not null, by the first of these names that has one.
    pub fn get<'c>(&'c self, names: &[&str]) -> Option<&'c Value> {
        self.named(names).map(|(_, value)| value)
    }

    /// The same with the name that has it.
    fn named<'c, 'n>(&'c self, names: &[&'n str]) -> Option<(&'n str, &'c Value)> {
        let of = |map: &'c Map<String, Value>| {
            names.iter().find_map(|name| Some((*name, map.get(*name).filter(|v| !v.is_null())?)))
        };
        of(&self.text).or_else(|| of(&self.outer))
    }

    /// A value about RoPE in all layers, or in those without windows: in `rope_parameters` (transformers 5),
    /// `rope_scaling`, or beside them.
    pub fn rope<'c>(&'c self, names: &[&str]) -> Option<&'c Value> {
        self.rope_of("full_attention", names).or_else(|| self.get(names))
    }

    /// A value about RoPE in layers of a kind.
    pub fn rope_of<'c>(&'c self, layers: &str, names: &[&str]) -> Option<&'c Value> {
        let parameters = self.get(&["rope_parameters", "rope_scaling"])?;
        // By kind of layer, or the same for all.
        let own = parameters.get(layers).or_else(|| (layers == "full_attention").then_some(parameters))?;
        names.iter().find_map(|name| own.get(*name).filter(|v| !v.is_null()))
    }

    /// The same as a number.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for another value.
    pub fn rope_f32(&self, names: &[&str]) -> Result<Option<f32>, ConfigError> {
        self.rope(names).map(|v| real(names[0], v)).transpose()
    }

    /// A whole number.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for another value.
    pub fn u32(&self, names: &[&str]) -> Result<Option<u32>, ConfigError> {
        self.named(names).map(|(name, v)| whole(name, v)).transpose()
    }

    /// A whole number that must be there.
    ///
    /// # Errors
    /// [`ConfigError::Missing`], [`ConfigError::Value`]
    pub fn need(&self, names: &[&str]) -> Result<u32, ConfigError> {
        let missing = || ConfigError::Missing { key: names[0].into(), expected: "a number".into() };
        self.u32(names)?.ok_or_else(missing)
    }

    /// A number.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for another value.
    pub fn f32(&self, names: &[&str]) -> Result<Option<f32>, ConfigError> {
        self.named(names).map(|(name, v)| real(name, v)).transpose()
    }

    /// Numbers.
    ///
    /// # Errors
    /// [`ConfigError::Value`] unless it is a list of `n`.
    pub fn f32s(&self, name: &str, n: usize) -> Result<Vec<f32>, ConfigError> {
        let list = self.list(name)?.unwrap_or_default();
        if list.len() != n {
            return Err(unexpected(name, &format!("{n} numbers"), &Value::from(list)));
        }
        list.iter().map(|v| real(name, v)).collect()
    }

    /// A truth value, if it is there.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for another value.
    pub fn bool(&self, name: &str) -> Result<Option<bool>, ConfigError> {
        let value = |v: &Value| v.as_bool().ok_or_else(|| unexpected(name, "true or false", v));
        self.get(&[name]).map(value).transpose()
    }

    /// A truth value; false if it is not there.
    ///
    /// # Errors
    /// As [`Config::bool`].
    pub fn flag(&self, name: &str) -> Result<bool, ConfigError> {
        Ok(self.bool(name)?.unwrap_or(false))
    }

    /// A text.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for another value.
    pub fn str(&self, names: &[&str]) -> Result<Option<&str>, ConfigError> {
        self.named(names).map(|(name, v)| text(name, v)).transpose()
    }

    /// A list.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for another value.
    pub fn list(&self, name: &str) -> Result<Option<&[Value]>, ConfigError> {
        self.get(&[name]).map(|v| list(name, v)).transpose()
    }

    /// Number of layers.
    ///
    /// # Errors
    /// [`ConfigError::Missing`]; [`ConfigError::Value`] for more than 4096.
    pub fn n_layer(&self) -> Result<u32, ConfigError> {
        const NAMES: &[&str] = &["num_hidden_layers", "n_layer", "n_layers", "num_layers"];
        let n = self.need(NAMES)?;
        if n > MAX_LAYER {
            return Err(unexpected(NAMES[0], &format!("at most {MAX_LAYER}"), &n.into()));
        }
        Ok(n)
    }

    /// Channels of the residual stream.
    ///
    /// # Errors
    /// [`ConfigError::Missing`], [`ConfigError::Value`]
    pub fn n_embd(&self) -> Result<u32, ConfigError> {
        self.need(&["hidden_size", "n_embd", "d_model", "dim"])
    }

    /// Number of query heads.
    ///
    /// # Errors
    /// [`ConfigError::Missing`]; [`ConfigError::Value`] for 0.
    pub fn n_head(&self) -> Result<u32, ConfigError> {
        match self.need(&["num_attention_heads", "n_head", "n_heads"])? {
            0 => Err(unexpected("num_attention_heads", "a positive number", &0.into())),
            n => Ok(n),
        }
    }

    /// Number of KV heads.
    ///
    /// # Errors
    /// As [`Config::n_head`].
    pub fn n_head_kv(&self) -> Result<u32, ConfigError> {
        match self.u32(&["num_key_value_heads", "n_kv_heads"])? {
            Some(n) => Ok(n),
            None => self.n_head(),
        }
    }

    /// Channels of a head.
    ///
    /// # Errors
    /// As [`Config::n_head`].
    pub fn head_dim(&self) -> Result<u32, ConfigError> {
        let n = match self.u32(&["head_dim"])? {
            Some(n) => n,
            None => self.n_embd()? / self.n_head()?,
        };
        if n > MAX_HEAD {
            return Err(unexpected("head_dim", &format!("at most {MAX_HEAD}"), &n.into()));
        }
        Ok(n)
    }

    /// Number of experts of a layer; none in models without them.
    ///
    /// # Errors
    /// [`ConfigError::Value`]
    pub fn n_expert(&self) -> Result<Option<u32>, ConfigError> {
        self.u32(N_EXPERT)
    }

    /// The kind of each layer, by transformers' names.
    ///
    /// # Errors
    /// [`ConfigError::Value`] unless there are as many as layers.
    pub fn layer_types(&self) -> Result<Option<Vec<&str>>, ConfigError> {
        let Some(value) = self.get(&["layer_types", "layers_block_type"]) else { return Ok(None) };
        let list = list("layer_types", value)?.iter();
        let list = list.map(|kind| text("layer_types", kind)).collect::<Result<Vec<_>, _>>()?;
        if list.len() != self.n_layer()? as usize {
            return Err(unexpected("layer_types", &format!("{} names", self.n_layer()?), value));
        }
        Ok(Some(list))
    }

    /// True if layer `i` is one of these kinds; false if the configuration has no kinds.
    ///
    /// # Errors
    /// As [`Config::layer_types`].
    pub fn is_kind(&self, i: u32, kinds: &[&str]) -> Result<bool, ConfigError> {
        Ok(self
            .layer_types()?
            .is_some_and(|list| list.get(i as usize).is_some_and(|kind| kinds.contains(kind))))
    }

    /// An error unless a condition holds.
    ///
    /// # Errors
    /// [`ConfigError::Unsupported`]
    pub fn refuse_unless(&self, holds: bool, what: impl FnOnce() -> String) -> Result<(), ConfigError> {
        if holds { Ok(()) } else { Err(ConfigError::Unsupported { what: what() }) }
    }
}

pub(super) fn unexpected(key: &str, expected: &str, found: &Value) -> ConfigError {
    let mut found = found.to_string();
    if let Some((i, _)) = found.char_indices().nth(60) {
        found.truncate(i);
        found.push('…');
    }
    ConfigError::Value { key: key.to_owned(), expected: expected.to_owned(), found }
}

/// The object of a key, if there is one.
fn object<'m>(map: &'m Map<String, Value>, key: &str) -> Result<Option<&'m Map<String, Value>>, ConfigError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(unexpected(key, "an object", other)),
    }
}

/// Parameters of RoPE are objects, in `rope_parameters` perhaps one for each kind of layer, with the name of a scaling.
fn check_rope(map: &Map<String, Value>) -> Result<(), ConfigError> {
    for key in ["rope_parameters", "rope_scaling"] {
        let Some(rope) = object(map, key)? else { continue };
        let of_kinds = rope.values().filter_map(Value::as_object);
        for (name, value) in [rope].into_iter().chain(of_kinds).flatten() {
            if matches!(name.as_str(), "rope_type" | "type") && !value.is_null() {
                text(&format!("{key}.{name}"), value)?;
            }
        }
    }
    Ok(())
}

/// The text of a key.
fn text<'v>(key: &str, value: &'v Value) -> Result<&'v str, ConfigError> {
    value.as_str().ok_or_else(|| unexpected(key, "a text", value))
}

/// The list of a key.
pub(super) fn list<'v>(key: &str, value: &'v Value) -> Result<&'v [Value], ConfigError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| unexpected(key, "a list", value))
}

/// A number of a key as u32.
pub(super) fn whole(key: &str, value: &Value) -> Result<u32, ConfigError> {
    let n = value.as_u64().and_then(|n| u32::try_from(n).ok());
    // Some files have 1e6 where they mean 1000000.
    let n = n.or_else(|| {
        let x = value.as_f64()?;
        (x.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&x)).then_some(x as u32)
    });
    n.ok_or_else(|| unexpected(key, "a whole number", value))
}

/// A number of a key as f32.
pub(super) fn real(key: &str, value: &Value) -> Result<f32, ConfigError> {
    // As transformers 5 writes numbers that JSON does not have.
    let special = value.get("__float__").and_then(Value::as_str).and_then(|text| match text {
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => None,
    });
    match value.as_f64().or(special) {
        Some(x) => Ok(x as f32),
        None => Err(unexpected(key, "a number", value)),
    }
}

/// A value of a key that is there.
pub(super) type Found = Result<Option<OwnedValue>, ConfigError>;
