//! What a family reads of its own metadata, by keys without its name.

use chaski_graph::{Rope, RopePairing};

use super::Builder;
use crate::error::ModelError;

impl Builder<'_> {
    /// The rotation that the metadata ask for, by the file's factors if it has them.
    ///
    /// # Errors
    /// As [`Config::rope`](super::Config::rope).
    pub fn rope(&self, pairing: RopePairing) -> Result<Rope, ModelError> {
        self.config.rope(self.metadata, pairing, self.rope_factors.clone())
    }

    /// A number of the family's own, by its key without the family's name.
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

    /// A count of the family's own, likewise.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type.
    pub fn u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        Ok(self.metadata.opt_u32(&format!("{}.{key}", self.config.arch))?)
    }

    /// A switch of the family's own, likewise.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, ModelError> {
        Ok(self.metadata.opt_bool(&format!("{}.{key}", self.config.arch))?)
    }

    /// How far back each layer sees, in tokens; 0 is all the way. Of every `period` layers the last sees all, unless the
    /// file says otherwise; a file without `attention.sliding_window` has `default`.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for a pattern that is neither a count nor a list.
    pub fn windows(&self, default: u32, period: u32) -> Result<Vec<u32>, ModelError> {
        self.windows_but(default, period, |period| period - 1)
    }

    /// The same where the first of every `period` layers sees all.
    ///
    /// # Errors
    /// As [`Self::windows`].
    pub fn windows_after_first(&self, default: u32, period: u32) -> Result<Vec<u32>, ModelError> {
        self.windows_but(default, period, |_| 0)
    }

    /// The same where `all` says which of the layers sees all.
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

    /// A switch of each layer, as truth values or as numbers that are not 0.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type, or another number of layers.
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

    /// Refuses a file that lacks a key of the family's own, a number or one for each layer.
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

    /// An error about a key of the family's own, by its name without the family's.
    pub fn wrong(&self, key: &str, found: impl ToString, expected: impl Into<String>) -> ModelError {
        let key = format!("{}.{key}", self.config.arch);
        ModelError::Config { key, found: found.to_string(), expected: expected.into() }
    }
}
