//! The type of each tensor, and reasons why a plan cannot be carried out.

use anyhow::{Context, Result, anyhow, bail, ensure};
use ggml_format::{
    ByteSource, FileType, GgmlType, Imatrix, MixCounters, ModelFacts, TensorInfo, mix_order,
    needs_importance, tensor_type,
};

use super::input::Model;
use super::overrides::Override;

/// The requested types.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// A mix of types.
    Mix(FileType),
    /// All matrices in the base type of a mix.
    Pure(FileType),
    /// Keep the types.
    Copy,
}

impl Target {
    /// The file type, if types change.
    pub(super) fn file_type(self) -> Option<FileType> {
        match self {
            Target::Mix(file_type) | Target::Pure(file_type) => Some(file_type),
            Target::Copy => None,
        }
    }
}

/// Inputs of the plan, besides the model.
#[derive(Clone, Debug)]
pub(super) struct Wishes {
    pub(super) target: Target,
    /// Tensors that are quantised already stay as they are.
    pub(super) keep_coded: bool,
    /// The first match wins.
    pub(super) overrides: Vec<Override>,
    pub(super) pure: bool,
    pub(super) leave_output: bool,
    pub(super) output: Option<GgmlType>,
    pub(super) embedding: Option<GgmlType>,
    pub(super) imatrix: Option<Imatrix>,
}

/// A tensor and its new type.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) tensor: &'a TensorInfo,
    pub(super) ty: GgmlType,
    /// True if the file type requires importance of this tensor's columns.
    pub(super) needs_importance: bool,
    /// True if the importance of its columns is known.
    pub(super) has_importance: bool,
    /// True if its row length does not fit the requested type.
    pub(super) is_replaced: bool,
}

impl Step<'_> {
    pub(super) fn ne(&self) -> &[u64] {
        &self.tensor.ne[..self.tensor.n_dims as usize]
    }

    pub(super) fn changes(&self) -> bool {
        self.ty != self.tensor.ty
    }

    pub(super) fn row_bytes(&self) -> u64 {
        self.ty.row_bytes(self.tensor.ne[0]).expect("the plan only has types that fit the row length")
    }

    pub(super) fn n_byte(&self) -> u64 {
        self.row_bytes() * self.tensor.n_row()
    }

    /// Number of columns of a matrix, and number of matrices.
    pub(super) fn columns(&self) -> (usize, usize) {
        (self.tensor.ne[0] as usize, (self.tensor.ne[2] * self.tensor.ne[3]) as usize)
    }
}

/// The types of all tensors, in write order.
pub(super) fn plan<'a>(model: &'a Model, wishes: &Wishes) -> Result<Vec<Step<'a>>> {
    let mut tensors: Vec<&TensorInfo> = model.tensors().iter().collect();
    tensors.sort_by_key(|t| mix_order(&t.name));
    let types = match wishes.target.file_type() {
        None => tensors.iter().map(|t| (t.ty, false)).collect(),
        Some(file_type) => types(model, &tensors, file_type, wishes)?,
    };
    let mut steps = Vec::with_capacity(tensors.len());
    for (tensor, (ty, is_replaced)) in tensors.into_iter().zip(types) {
        let (name, n_per_row, n_block) = (&tensor.name, tensor.ne[0], ty.block_len());
        ensure!(
            n_per_row.is_multiple_of(n_block as u64),
            "tensor `{name}`: {ty} needs a row length that is a multiple of {n_block}, found {n_per_row}"
        );
        let mut step = Step { tensor, ty, needs_importance: false, has_importance: false, is_replaced };
        if let Some(file_type) = wishes.target.file_type() {
            step.needs_importance = step.changes() && needs_importance(file_type, name, ty);
        }
        if let (Some(imatrix), true) = (&wishes.imatrix, step.changes()) {
            let (n_col, n_mat) = step.columns();
            step.has_importance = match imatrix.importance(name, n_col, n_mat) {
                Ok(found) => found.is_some(),
                // Embeddings are looked up; the measurement is of their use as output matrix.
                Err(_) if name == "token_embd.weight" => false,
                Err(e) => return Err(e.into()),
            };
        }
        steps.push(step);
    }
    Ok(steps)
}

/// The type of each tensor, and whether it replaces one that does not fit the row length.
fn types(
    model: &Model,
    tensors: &[&TensorInfo],
    file_type: FileType,
    wishes: &Wishes,
) -> Result<Vec<(GgmlType, bool)>> {
    let facts = facts(model, wishes.imatrix.is_some())
        .with_context(|| format!("cannot read the configuration of `{}`", model.shards()[0].name()))?;
    let mut counters = MixCounters::default();
    let mut given = Given::new(wishes, !facts.has_output);
    let mut types = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let ne = &tensor.ne[..tensor.n_dims as usize];
        // The type regardless of the row length.
        let mut whole = ne.to_vec();
        whole[0] = ne[0].next_multiple_of(256);
        let ideal = tensor_type(file_type, &tensor.name, &whole, &facts, &mut { counters });
        // Tensors of fixed types count, too.
        let of_mix = tensor_type(file_type, &tensor.name, ne, &facts, &mut counters);
        let is_kept = wishes.keep_coded && tensor.ty.block_len() > 1;
        if of_mix == Ok(None) || is_kept {
            types.push((tensor.ty, false));
            continue;
        }
        types.push(match (given.of(tensor), of_mix) {
            // The requested type may fit where the mix has none that does.
            (Some(ty), _) => (ty, false),
            (None, Ok(Some(ty))) if !wishes.pure => (ty, ideal != Ok(Some(ty))),
            (None, Ok(_)) => {
                let ty = pure_type(file_type, ne, &facts)?;
                (ty, ty != file_type.base())
            }
            (None, Err(e)) => return Err(e.into()),
        });
    }
    given.refuse_unused()?;
    Ok(types)
}

/// Types that options name for single tensors, and which of these options matched.
struct Given<'a> {
    wishes: &'a Wishes,
    /// The token embeddings are also the output matrix.
    is_tied: bool,
    used_overrides: Vec<bool>,
    used_output: bool,
    used_embedding: bool,
}

impl Given<'_> {
    fn new(wishes: &Wishes, is_tied: bool) -> Given<'_> {
        let used_overrides = vec![false; wishes.overrides.len()];
        Given { wishes, is_tied, used_overrides, used_output: false, used_embedding: false }
    }

    /// The type that the options give a matrix; options for one matrix take precedence over patterns.
    fn of(&mut self, tensor: &TensorInfo) -> Option<GgmlType> {
        let Wishes { overrides, leave_output, output, embedding, .. } = self.wishes;
        let by_pattern = overrides.iter().position(|o| o.pattern.is_match(&tensor.name));
        if let Some(i) = by_pattern {
            self.used_overrides[i] = true;
        }
        let name = tensor.name.as_str();
        let is_embedding = matches!(name, "token_embd.weight" | "per_layer_token_embd.weight");
        let is_output = name == "output.weight" || self.is_tied && name == "token_embd.weight";
        if name == "output.weight" && *leave_output {
            return Some(tensor.ty);
        }
        if let (Some(ty), true) = (embedding, is_embedding) {
            self.used_embedding = true;
            return Some(*ty);
        }
        if let (Some(ty), true) = (output, is_output) {
            self.used_output = true;
            return Some(*ty);
        }
        by_pattern.map(|i| overrides[i].ty)
    }

    fn refuse_unused(&self) -> Result<()> {
        let wishes = self.wishes;
        if let Some(i) = self.used_overrides.iter().position(|is_used| !is_used) {
            let Override { pattern, ty } = &wishes.overrides[i];
            bail!("--tensor-type {pattern}={ty}: no remaining matrix has a name that matches");
        }
        let single = [
            ("--output-tensor-type", wishes.output, self.used_output, "output matrix"),
            ("--token-embedding-type", wishes.embedding, self.used_embedding, "token embeddings"),
        ];
        for (option, ty, is_used, what) in single {
            if let (Some(ty), false) = (ty, is_used) {
                bail!("{option} {ty}: no {what} left to convert");
            }
        }
        Ok(())
    }
}

/// The file type's base type, or its replacement if the row length is not a multiple of its block size.
fn pure_type(file_type: FileType, ne: &[u64], facts: &ModelFacts) -> Result<GgmlType> {
    let base = file_type.base();
    if ne[0].is_multiple_of(base.block_len() as u64) {
        return Ok(base);
    }
    // No rule applies to this name.
    let ty = tensor_type(file_type, "any.weight", ne, facts, &mut MixCounters::default())?;
    ty.context("matrices of this name have a type")
}

fn facts(model: &Model, has_importance: bool) -> Result<ModelFacts> {
    let metadata = model.metadata();
    let architecture = metadata.str("general.architecture")?;
    let key = |name: &str| format!("{architecture}.{name}");
    let n_layer = metadata.opt_u32(&key("block_count"))?.unwrap_or(0);
    // If layers differ, the first one counts.
    let heads = |name: &str| -> Result<Option<u32>> {
        let key = key(name);
        if !metadata.contains(&key) || n_layer == 0 {
            return Ok(None);
        }
        Ok(metadata.per_layer::<u32>(&key, n_layer as usize)?.first().copied())
    };
    let n_head = heads("attention.head_count")?.unwrap_or(1);
    let n_head_kv = heads("attention.head_count_kv")?.unwrap_or(n_head);
    let is_value = |name: &str| {
        ["attn_v.weight", "attn_qkv.weight", "attn_kv_b.weight"].iter().any(|w| name.contains(w))
    };
    Ok(ModelFacts {
        n_layer,
        n_attn_v: model.tensors().iter().filter(|t| is_value(&t.name)).count() as u32,
        gqa: n_head.checked_div(n_head_kv).unwrap_or(0),
        n_expert: metadata.opt_u32(&key("expert_count"))?.unwrap_or(0),
        has_output: model.tensor("output.weight").is_some(),
        is_70b: architecture == "llama" && n_layer == 80 && n_head != n_head_kv,
        is_falcon: architecture == "falcon",
        has_importance,
    })
}

/// The reason why the file cannot be written, if any.
pub(super) fn find_obstacle(steps: &[Step<'_>], allow_requantize: bool) -> Option<anyhow::Error> {
    for step in steps.iter().filter(|s| s.changes()) {
        let (name, from, ty) = (&step.tensor.name, step.tensor.ty, step.ty);
        if matches!(from, GgmlType::I8 | GgmlType::I16 | GgmlType::I32 | GgmlType::I64) {
            return Some(anyhow!("tensor `{name}`: expected weights, found integers of type {from}"));
        }
        let is_exact = matches!(from, GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 | GgmlType::F64);
        if !is_exact && !allow_requantize {
            return Some(anyhow!(
                "tensor `{name}`: expected f32, f16 or bf16, found {from}, which is already quantised; use the \
                 original model, or accept the loss with --allow-requantize"
            ));
        }
        if step.needs_importance && !step.has_importance {
            return Some(anyhow!(
                "tensor `{name}`: {ty} needs an importance matrix with this tensor; \
                 compute one with `chaski imatrix` and pass it with --imatrix, or choose another type"
            ));
        }
    }
    None
}
