//! Access to family-specific metadata, by keys without the family's prefix.

use chaski_graph::{Rope, RopePairing};

use super::Builder;
use crate::error::ModelError;

impl Builder<'_> {
    /// RoPE parameters from the metadata, with the file's factors if any.
    ///
    /// # Errors
    /// As [`Config::rope`](super::Config::rope).
    pub fn rope(&self, pairing: RopePairing) -> Result<Rope, ModelError> {
        self.config.rope(self.metadata, pairing, self.rope_factors.clone())
    }

    /// A family-specific number, by its key without prefix.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type, [`ModelError::Config`] if it is not finite.
    pub fn f32(&self, key: &str) -> Result<Option<f32>, ModelError> {
        let key = format!("{}.{key}", self.config.arch);
        match self.metadata.opt_f32(&key)? {
            Some(v) if !v.is_finite() => {
                Err(ModelError::Config { key, found: v.to_string(), expected: "must be finite".into() })
            }
            v => Ok(v),
        }
    }

    /// A family-specific count.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type.
    pub fn u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        Ok(self.metadata.opt_u32(&format!("{}.{key}", self.config.arch))?)
    }

    /// A family-specific flag.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, ModelError> {
        Ok(self.metadata.opt_bool(&format!("{}.{key}", self.config.arch))?)
    }

    /// Sliding window of each layer, in tokens; 0: none. Of every `period` layers the last has none, unless the file
    /// says otherwise; `default` applies without `attention.sliding_window`.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for a pattern that is neither a count nor a list.
    pub fn windows(&self, default: u32, period: u32) -> Result<Vec<u32>, ModelError> {
        self.windows_but(default, period, |period| period - 1)
    }

    /// The same with the first of every `period` layers unrestricted.
    ///
    /// # Errors
    /// As [`Self::windows`].
    pub fn windows_after_first(&self, default: u32, period: u32) -> Result<Vec<u32>, ModelError> {
        self.windows_but(default, period, |_| 0)
    }

    /// The same; `all` returns which layer of a period is unrestricted.
    fn windows_but(&self, default: u32, period: u32, all: fn(u32) -> u32) -> Result<Vec<u32>, ModelError> {
        let window = self.u32("attention.sliding_window")?.unwrap_or(default);
        let key = format!("{}.attention.sliding_window_pattern", self.config.arch);
        let n = self.config.n_head.len();
        let m = self.metadata;
        let every = |p: u32| (0..n as u32).map(|i| p > 0 && i % p != all(p)).collect();
        let local: Vec<bool> = if m.contains(&key) && m.array(&key).is_err() {
            every(m.u32(&key)?)
        } else {
            self.flags("attention.sliding_window_pattern")?.unwrap_or_else(|| every(period))
        };
        Ok(local.into_iter().map(|local| if local { window } else { 0 }).collect())
    }

    /// A flag per layer, as booleans or numbers.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type, or the wrong number of layers.
    pub fn flags(&self, key: &str) -> Result<Option<Vec<bool>>, ModelError> {
        let key = format!("{}.{key}", self.config.arch);
        let (m, n) = (self.metadata, self.config.n_head.len());
        if !m.contains(&key) {
            return Ok(None);
        }
        if let Ok(list) = m.per_layer::<bool>(&key, n) {
            return Ok(Some(list));
        }
        Ok(Some(m.per_layer::<u32>(&key, n)?.into_iter().map(|v| v != 0).collect()))
    }

    /// Rejects a file without a family-specific key, a number or one per layer.
    ///
    /// # Errors
    /// [`ModelError::Metadata`].
    pub fn needs(&self, key: &str) -> Result<(), ModelError> {
        let key = format!("{}.{key}", self.config.arch);
        if !self.metadata.contains(&key) {
            self.metadata.u32(&key)?;
        }
        Ok(())
    }

    /// An error for a family-specific key, given without prefix.
    pub fn wrong(&self, key: &str, found: impl ToString, expected: impl Into<String>) -> ModelError {
        let key = format!("{}.{key}", self.config.arch);
        ModelError::Config { key, found: found.to_string(), expected: expected.into() }
    }
}
