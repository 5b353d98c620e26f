//! The weights of a checkpoint by name, plain or quantised.

use std::error::Error;

use super::part::Part;
use super::scheme::{Scheme, SchemeError};
use super::source::WeightSource;
use super::tensors;
use crate::recipe::{Recipe, RecipeError};
use crate::safetensors::Dtype;
use crate::tensor_set::TensorSet;

/// A weight that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum WeightsError {
    #[error("tensor `{tensor}`: cannot be read")]
    Tensor {
        tensor: String,
        #[source]
        source: RecipeError,
    },
    #[error(transparent)]
    Scheme(#[from] SchemeError),
}

/// Tensors, and how they store weights.
#[derive(Debug)]
pub(super) struct Weights {
    tensors: TensorSet,
    scheme: Scheme,
}

impl Weights {
    /// Weights of these tensors.
    pub(super) fn new(tensors: TensorSet, scheme: Scheme) -> Weights {
        Weights { tensors, scheme }
    }

    /// Takes a weight by its name, in whichever tensors it is stored.
    pub(super) fn part(&mut self, name: &str) -> Result<Option<Part>, WeightsError> {
        let tensors = &mut self.tensors;
        let module = name.strip_suffix(".weight");
        let coded = match module.map(|module| self.scheme.part(tensors, module)).transpose()?.flatten() {
            Some(part) => Some(part),
            None => self.scheme.experts(tensors, name)?,
        };
        if coded.is_some() {
            return Ok(coded);
        }
        let Some(entry) = tensors.take(name) else { return Ok(None) };
        let recipe = Recipe::plain(entry.view())
            .map_err(|source| WeightsError::Tensor { tensor: name.to_owned(), source })?;
        let shape = if entry.shape().is_empty() { vec![1] } else { entry.shape().to_vec() };
        Ok(Some(Part { shape, recipe }))
    }

    /// The type of the first matrix whose elements are weights.
    pub(super) fn dtype(&self) -> Option<Dtype> {
        tensors::dtype(&self.tensors)
    }
}

impl WeightSource for Weights {
    fn part(&mut self, name: &str) -> Result<Option<Part>, Box<dyn Error + Send + Sync>> {
        Ok(Weights::part(self, name)?)
    }

    fn left(&self) -> Vec<&str> {
        self.tensors.left().collect()
    }
}
