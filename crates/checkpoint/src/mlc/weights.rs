//! The tensors of a folder under the names of transformers.

use std::error::Error;

use super::MlcError;
use super::format::{Kind, blocks8};
use super::names::{Family, Place, Rows};
use crate::hf::{Config, ConfigError, Part, WeightSource};
use crate::recipe::{Recipe, RecipeError, Strides};
use crate::safetensors::Dtype;
use crate::tensor_set::{Entry, TensorSet};

/// The tensors of a folder, and how they store weights.
pub(super) struct Weights {
    tensors: TensorSet,
    family: &'static Family,
    kind: Kind,
    sizes: Sizes,
}

/// Sizes of the model that shapes of codes do not tell.
struct Sizes {
    hidden: u64,
    inner: u64,
    expert_inner: u64,
    /// Rows of queries, and of keys.
    q: u64,
    kv: u64,
}

impl Sizes {
    fn of(c: &Config) -> Result<Sizes, ConfigError> {
        let inner = c.u32(&["intermediate_size"])?.unwrap_or(0);
        let head_dim = u64::from(c.head_dim()?);
        Ok(Sizes {
            hidden: c.n_embd()?.into(),
            inner: inner.into(),
            expert_inner: c.u32(&["moe_intermediate_size"])?.unwrap_or(inner).into(),
            q: u64::from(c.n_head()?) * head_dim,
            kv: u64::from(c.n_head_kv()?) * head_dim,
        })
    }

    /// Values of a row of a module.
    fn n_col(&self, module: &str) -> u64 {
        let ends = [
            (".moe_down_proj", self.expert_inner),
            (".moe.e2", self.inner),
            (".down_proj", self.inner),
            (".o_proj", self.q),
            (".out_proj", self.q),
        ];
        ends.iter().find(|row| module.ends_with(row.0)).map_or(self.hidden, |row| row.1)
    }

    /// The first row and the number of rows of a part of a matrix with `n_row` rows; `None` if it has another number.
    fn range(&self, rows: Rows, n_row: u64) -> Option<(u64, u64)> {
        let is_qkv = n_row == self.q + 2 * self.kv;
        let half = (n_row % 2 == 0).then_some(n_row / 2);
        match rows {
            Rows::All => Some((0, n_row)),
            Rows::Q => is_qkv.then_some((0, self.q)),
            Rows::K => is_qkv.then_some((self.q, self.kv)),
            Rows::V => is_qkv.then_some((self.q + self.kv, self.kv)),
            Rows::First => half.map(|half| (0, half)),
            Rows::Second => half.map(|half| (half, half)),
        }
    }
}

impl Weights {
    pub(super) fn new(
        tensors: TensorSet,
        family: &'static Family,
        kind: Kind,
        config: &Config,
    ) -> Result<Weights, ConfigError> {
        Ok(Weights { tensors, family, kind, sizes: Sizes::of(config)? })
    }

    /// The type of numbers that are not quantised.
    pub(super) fn dtype(&self) -> Option<Dtype> {
        self.tensors.iter().map(Entry::dtype).find(|dtype| dtype.ggml().is_some())
    }

    /// A tensor by its name in transformers.
    fn find(&mut self, name: &str) -> Result<Option<Part>, MlcError> {
        let Some((module, end)) = name.rsplit_once('.') else { return Ok(None) };
        let place = self.family.place(module);
        let found = match end {
            "weight" => self.weight(&place.module)?,
            _ => self.plain(&format!("{}.{end}", place.module))?,
        };
        let Some(part) = found else { return Ok(None) };
        let mut part = self.rows(part, &place)?;
        let is_norm = module.ends_with("norm");
        if is_norm && self.family.norm_plus != 0.0 {
            part.recipe = part.recipe.plus(-self.family.norm_plus);
        }
        Ok(Some(part))
    }

    /// The weight of a module, in whichever tensors it is stored.
    fn weight(&mut self, module: &str) -> Result<Option<Part>, MlcError> {
        let tensor = format!("{module}.q_weight");
        let Some(codes) = self.tensors.take(&tensor) else {
            let name = format!("{module}.weight");
            return match (self.kind, self.tensors.take(&format!("{name}_scale_inv"))) {
                (Kind::Blocks8, Some(scales)) => match self.tensors.take(&name) {
                    Some(codes) => {
                        Ok(Some(part(&name, codes.tensor.shape.clone(), blocks8(&codes, &scales))?))
                    }
                    None => Ok(None),
                },
                _ => self.plain(&name),
            };
        };
        let wrong =
            |expected: String, found: String| MlcError::Tensor { tensor: tensor.clone(), expected, found };
        let scale_name = format!("{module}.q_scale");
        let scales = self
            .tensors
            .take(&scale_name)
            .ok_or_else(|| wrong(format!("a tensor `{scale_name}`"), "none".into()))?;
        // Of the activations, which are not quantised here.
        let _ = self.tensors.take(&format!("{module}.q_calibration_scale"));
        let is_table = module == self.family.place("model.embed_tokens").module;
        let shape = &codes.tensor.shape;
        let n_col = self.sizes.n_col(module);
        let n_row = match (self.kind, self.kind.n_row(shape, is_table)) {
            (Kind::Plain | Kind::Blocks8, _) => {
                return Err(wrong("weights that are not quantised".into(), "codes".into()));
            }
            (Kind::Groups { is_transposed: true, .. }, _) if shape.len() > 2 => {
                return Err(wrong("experts in a layout of rows, such as q4f16_1".into(), "columns".into()));
            }
            (_, n_row) => n_row.unwrap_or(0),
        };
        let expected = self.kind.code_shape(n_row, n_col, is_table);
        let outer = shape.len().saturating_sub(2);
        if shape[outer..] != expected {
            return Err(wrong(format!("codes of the shape {expected:?}"), format!("{shape:?}")));
        }
        let shape = shape[..outer].iter().copied().chain([n_row, n_col]).collect();
        let recipe = self.kind.groups(&codes, &scales, n_col, is_table);
        part(&tensor, shape, recipe).map(Some)
    }

    /// A tensor as it is.
    fn plain(&mut self, name: &str) -> Result<Option<Part>, MlcError> {
        let Some(entry) = self.tensors.take(name) else { return Ok(None) };
        let shape = if entry.tensor.shape.is_empty() { vec![1] } else { entry.tensor.shape.clone() };
        part(name, shape, Recipe::plain(entry.view())).map(Some)
    }

    /// The rows of a fused tensor that belong to a module.
    fn rows(&self, whole: Part, place: &Place) -> Result<Part, MlcError> {
        let Part { shape, recipe } = whole;
        let wrong = |expected: &str| {
            let (tensor, found) = (place.module.clone(), format!("{shape:?}"));
            MlcError::Tensor { tensor, expected: expected.to_owned(), found }
        };
        let is_vector = shape.len() == 1;
        let n_row = if is_vector { shape[0] } else { shape[shape.len() - 2] };
        let range = self.sizes.range(place.rows, n_row);
        let (start, n) = range.ok_or_else(|| wrong("rows of several modules"))?;
        let of = |result| part(&place.module, Vec::new(), result).map(|part| part.recipe);
        match (place.expert, &shape[..]) {
            (None, _) if place.rows == Rows::All => Ok(Part { shape, recipe }),
            (None, [_]) => Ok(Part { shape: vec![n], recipe: of(recipe.cols(Strides::slice(start, n)))? }),
            (None, &[_, n_col]) => {
                Ok(Part { shape: vec![n, n_col], recipe: of(recipe.rows(Strides::slice(start, n)))? })
            }
            (Some(expert), &[n_expert, _, n_col]) if expert < n_expert => {
                let recipe = of(recipe.rows(Strides::slice(expert * n_row + start, n)))?;
                Ok(Part { shape: vec![n, n_col], recipe })
            }
            _ => Err(wrong("matrices of as many experts as the model has")),
        }
    }
}

impl WeightSource for Weights {
    fn part(&mut self, name: &str) -> Result<Option<Part>, Box<dyn Error + Send + Sync>> {
        Ok(self.find(name)?)
    }

    fn left(&self) -> Vec<&str> {
        self.tensors.left().collect()
    }
}

/// A part, or the error of its recipe.
fn part(tensor: &str, shape: Vec<u64>, recipe: Result<Recipe, RecipeError>) -> Result<Part, MlcError> {
    let recipe = recipe.map_err(|source| MlcError::Recipe { tensor: tensor.to_owned(), source })?;
    Ok(Part { shape, recipe })
}
