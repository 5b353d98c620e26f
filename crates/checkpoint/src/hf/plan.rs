//! Applies the rules of a class: which tensors the file has, and which tensors of the checkpoint nobody took.

use super::class::HfArch;
use super::classes::common::{RopeError, rope_tensors};
use super::config::{Config, ConfigError, N_EXPERT};
use super::part::{Part, PartError};
use super::rules::{Kind, Rule, When};
use super::scheme::ACTIVATION_SCALES;
use super::source::WeightSource;
use crate::recipe::{Recipe, RecipeError};
use crate::virtual_gguf::{VirtualError, VirtualTensor};

/// A checkpoint whose tensors are not those of its class.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum PlanError {
    #[error("tensor `{tensor}`: needed by {class}, not found")]
    Missing { tensor: String, class: &'static str },
    #[error("tensor `{tensor}`{}: {class} has no such tensor, so the checkpoint is of another kind", more(.n_more))]
    Unknown { tensor: String, n_more: usize, class: &'static str },
    #[error("tensor `{tensor}`: expected what {class} has")]
    Part {
        tensor: String,
        class: &'static str,
        #[source]
        source: PartError,
    },
    #[error("tensor `{tensor}`: experts do not have the same shape")]
    Experts {
        tensor: String,
        #[source]
        source: RecipeError,
    },
    #[error(transparent)]
    Rope(#[from] RopeError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("tensor `{tensor}`: cannot be read from the checkpoint")]
    Weight {
        tensor: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(transparent)]
    Tensor(#[from] VirtualError),
}

fn more(n: &usize) -> String {
    if *n == 0 { String::new() } else { format!(" and {n} more") }
}

/// Beginnings of names of tensors that a text model does not need: pictures, sound, and layers for drafts.
const SKIPPED: &[&str] = &[
    "mtp.",
    "model.mtp.",
    "vision_tower.",
    "model.vision_tower.",
    "visual.",
    "model.visual.",
    "multi_modal_projector.",
    "model.multi_modal_projector.",
    "audio_tower.",
    "model.audio_tower.",
];

/// Ends of names of tensors that are constants: frequencies of RoPE, and the causal mask that GPT-NeoX stores.
const CONSTANTS: &[&str] = &[".rotary_emb.inv_freq", ".attention.bias", ".masked_bias"];

/// Most experts of a layer.
const MAX_EXPERT: u32 = 65_536;

/// True for tensors whose factor models read as a tensor of its own: matrices that are multiplied with, and experts.
fn is_scaled(name: &str, shape: &[u64]) -> bool {
    match shape.len() {
        2 => name != "token_embd.weight",
        n => n == 3 && name.ends_with("_exps.weight"),
    }
}

/// The tensors of the file.
pub(super) fn tensors(
    arch: &HfArch,
    c: &Config,
    weights: &mut dyn WeightSource,
) -> Result<Vec<VirtualTensor>, PlanError> {
    let mut plan = Plan { arch, c, weights, tensors: rope_tensors(c)? };
    let (heads, others): (Vec<&Rule>, Vec<&Rule>) =
        arch.top.iter().partition(|rule| matches!(rule.when, When::Head));
    for rule in others.into_iter().chain(heads) {
        plan.apply(rule, None)?;
    }
    for i in 0..c.n_layer()? {
        for rule in arch.layers.iter().copied().flatten() {
            plan.apply(rule, Some(i))?;
        }
    }
    plan.refuse_left()?;
    Ok(plan.tensors)
}

struct Plan<'a> {
    arch: &'a HfArch,
    c: &'a Config,
    weights: &'a mut dyn WeightSource,
    tensors: Vec<VirtualTensor>,
}

impl Plan<'_> {
    fn apply(&mut self, rule: &Rule, layer: Option<u32>) -> Result<(), PlanError> {
        let is_needed = match rule.when {
            When::Always => true,
            When::Optional => false,
            When::If(holds) if holds(self.c, layer.unwrap_or(0))? => true,
            When::If(_) => return Ok(()),
            // Some checkpoints have the matrix although it is tied, and nobody uses it.
            When::Head if self.c.flag("tie_word_embeddings")? => return Ok(()),
            When::Head => self.c.get(&["tie_word_embeddings"]).is_some(),
        };
        let (to, from) = match layer {
            Some(i) => {
                let prefix = self.arch.prefix.replace("{i}", &i.to_string());
                (format!("blk.{i}.{}", rule.to), format!("{prefix}{}", rule.from))
            }
            None => (rule.to.to_owned(), rule.from.to_owned()),
        };
        match rule.kind {
            Kind::Tensor => self.add(rule, to, from, is_needed),
            Kind::Module => {
                self.add(rule, format!("{to}.weight"), format!("{from}.weight"), is_needed)?;
                self.add(rule, format!("{to}.bias"), format!("{from}.bias"), false)
            }
        }
    }

    /// Adds a tensor if the checkpoint has it.
    fn add(&mut self, rule: &Rule, to: String, from: String, is_needed: bool) -> Result<(), PlanError> {
        let class = self.arch.class;
        let found = if from.contains("{e}") { self.experts(rule, &from)? } else { self.part(rule, &from)? };
        match found {
            Some(part) => {
                let outer = &part.shape[..part.shape.len().saturating_sub(1)];
                let recipe = if is_scaled(&to, &part.shape) { part.recipe } else { part.recipe.decoded() };
                self.tensors.push(VirtualTensor::new(to, outer, recipe)?);
                Ok(())
            }
            None if is_needed => Err(PlanError::Missing { tensor: from.replace("{e}", "0"), class }),
            None => Ok(()),
        }
    }

    /// A transformed tensor of the checkpoint.
    fn part(&mut self, rule: &Rule, from: &str) -> Result<Option<Part>, PlanError> {
        let unreadable = |source| PlanError::Weight { tensor: from.to_owned(), source };
        let Some(part) = self.weights.part(from).map_err(unreadable)? else { return Ok(None) };
        let class = self.arch.class;
        let located = |source| PlanError::Part { tensor: from.to_owned(), class, source };
        (rule.how)(self.c, part).map(Some).map_err(located)
    }

    /// The matrices of all experts below each other; none if there is not even the first.
    fn experts(&mut self, rule: &Rule, from: &str) -> Result<Option<Part>, PlanError> {
        let n = self.c.need(N_EXPERT)?;
        let what = || format!("{n} experts");
        self.c.refuse_unless(n <= MAX_EXPERT, what)?;
        let mut parts = Vec::new();
        for e in 0..n {
            let name = from.replace("{e}", &e.to_string());
            match self.part(rule, &name)? {
                Some(part) => parts.push(part),
                None if e == 0 => return Ok(None),
                None => return Err(PlanError::Missing { tensor: name, class: self.arch.class }),
            }
        }
        let Some(first) = parts.first() else { return Ok(None) };
        let shape: Vec<u64> = [parts.len() as u64].into_iter().chain(first.shape.iter().copied()).collect();
        let located = |source| PlanError::Experts { tensor: from.to_owned(), source };
        let recipe = Recipe::stack(parts.into_iter().map(|part| part.recipe).collect()).map_err(located)?;
        Ok(Some(Part { shape, recipe }))
    }

    /// Fails if the checkpoint has a tensor that no rule takes.
    fn refuse_left(&self) -> Result<(), PlanError> {
        let drafts = self.draft_layers()?;
        let is_tied = self.c.flag("tie_word_embeddings")?;
        let is_known = |name: &&str| {
            SKIPPED.iter().any(|start| name.starts_with(start))
                || CONSTANTS.iter().chain(ACTIVATION_SCALES).any(|end| name.ends_with(end))
                || drafts.iter().any(|start| name.starts_with(start))
                || is_tied && name.starts_with("lm_head.")
        };
        let mut left = self.weights.left().into_iter().filter(|name| !is_known(name));
        match left.next() {
            None => Ok(()),
            Some(tensor) => {
                let (tensor, class) = (tensor.to_owned(), self.arch.class);
                Err(PlanError::Unknown { tensor, n_more: left.count(), class })
            }
        }
    }

    /// Beginnings of names of layers behind the last one, which predict further tokens.
    fn draft_layers(&self) -> Result<Vec<String>, PlanError> {
        let n_layer = self.c.n_layer()?;
        let n = self.c.u32(&["num_nextn_predict_layers"])?.unwrap_or(0).min(16);
        Ok((n_layer..n_layer + n).map(|i| self.arch.prefix.replace("{i}", &i.to_string())).collect())
    }
}
