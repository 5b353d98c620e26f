//! The type of each tensor in a quantised model: the mixes of llama.cpp's `llama-quantize`.
//!
//! A file type names a base type, and rules give some tensors more bits, or fewer. The rules are tables: the
//! first row that applies to a part of the model decides.

use crate::file_type::FileType;
use crate::types::GgmlType;

use FileType as F;
use GgmlType as T;

/// Properties of the model that the rules depend on.
#[derive(Copy, Clone, Debug)]
pub struct ModelFacts {
    /// Number of layers (`block_count`).
    pub n_layer: u32,
    /// Number of value projections; fewer than layers if some layers have no attention.
    pub n_attn_v: u32,
    /// Query heads per KV head.
    pub gqa: u32,
    /// Experts per layer; 0 if the model has none.
    pub n_expert: u32,
    /// True if there is an `output.weight`; otherwise the output matrix is tied to the token embedding.
    pub has_output: bool,
    /// True if llama.cpp treats the model as a 70B Llama: 80 layers, and different numbers of KV heads and
    /// query heads.
    pub is_70b: bool,
    /// True for a first-generation Falcon (`falcon`), which has rules of its own.
    pub is_falcon: bool,
    /// True if an importance matrix is used.
    pub has_importance: bool,
}

/// Running counts of the tensors seen so far in each part, which the rules depend on.
///
/// Start with the default, and query all tensors in the order of [`mix_order`].
#[derive(Copy, Clone, Default, Debug)]
pub struct MixCounters {
    n_attn_v: u32,
    n_ffn_down: u32,
    n_ffn_gate: u32,
    n_ffn_up: u32,
}

/// A tensor whose rows fit neither the type of the mix nor a fallback.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tensor `{tensor}`: expected rows of a multiple of {} values for {ty}, found {n_per_row}", .ty.block_len())]
pub struct MixError {
    /// The tensor's name.
    pub tensor: String,
    /// The type that the mix requires.
    pub ty: GgmlType,
    /// Values in a row.
    pub n_per_row: u64,
}

/// Parts of a model that have rules of their own, recognised by words in tensor names; the first match
/// counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Part {
    AttnV,
    AttnK,
    AttnQ,
    FfnDown,
    AttnOutput,
    FfnGate,
    FfnUp,
}

const PARTS: [(Part, &[&str]); 7] = [
    (Part::AttnV, &["attn_v.weight", "attn_qkv.weight", "attn_kv_b.weight"]),
    (Part::AttnK, &["attn_k.weight"]),
    (Part::AttnQ, &["attn_q.weight"]),
    (Part::FfnDown, &["ffn_down"]),
    (Part::AttnOutput, &["attn_output.weight"]),
    (Part::FfnGate, &["ffn_gate"]),
    (Part::FfnUp, &["ffn_up"]),
];

/// Words in the names of matrices that are not quantised: small ones, or ones sensitive to rounding.
const KEPT: &[&str] = &[
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
];

/// Names of matrices that are not quantised.
const KEPT_NAMES: &[&str] = &["position_embd.weight", "token_types.weight"];

/// Position of a tensor within its part.
struct Place {
    /// Index of the tensor's layer.
    layer: u32,
    /// Number of layers.
    n: u32,
    facts: ModelFacts,
}

impl Place {
    fn always(&self) -> bool {
        true
    }

    /// True in the first and the last eighth of the layers, and for every third layer between.
    fn more_bits(&self) -> bool {
        let (layer, n) = (self.layer, self.n);
        layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2
    }

    fn first_2(&self) -> bool {
        self.layer < 2
    }

    fn first_4(&self) -> bool {
        self.layer < 4
    }

    fn first_16th(&self) -> bool {
        self.layer < self.n / 16
    }

    fn first_8th(&self) -> bool {
        self.layer < self.n / 8
    }

    fn middle(&self) -> bool {
        self.layer >= self.n / 8 && self.layer < 7 * self.n / 8
    }

    fn gqa_4(&self) -> bool {
        self.facts.gqa >= 4
    }

    fn gqa_4_or_4_experts(&self) -> bool {
        self.facts.gqa >= 4 || self.facts.n_expert >= 4
    }

    fn experts_8(&self) -> bool {
        self.facts.n_expert == 8
    }

    fn experts_8_more_bits(&self) -> bool {
        self.experts_8() && self.more_bits()
    }

    fn not_experts_8(&self) -> bool {
        !self.experts_8()
    }

    fn importance(&self) -> bool {
        self.facts.has_importance
    }

    fn no_importance(&self) -> bool {
        !self.importance()
    }

    fn importance_first_8th(&self) -> bool {
        self.importance() && self.first_8th()
    }

    fn no_importance_first_8th(&self) -> bool {
        self.no_importance() && self.first_8th()
    }
}

/// A rule: for these files, where the condition holds, the part gets this type.
type Rule = (Part, &'static [FileType], fn(&Place) -> bool, GgmlType);

/// File types of about two bits per weight, which have rules of their own.
const TINY: &[FileType] = &[F::IQ1_S, F::IQ1_M, F::IQ2_XXS, F::IQ2_XS, F::IQ2_S, F::IQ2_M];

const TINY_RULES: &[Rule] = &[
    (Part::AttnV, TINY, Place::gqa_4_or_4_experts, T::Q4_K),
    (Part::AttnV, &[F::IQ2_S, F::IQ2_M], Place::always, T::IQ3_S),
    (Part::AttnV, TINY, Place::always, T::Q2_K),
    (Part::AttnK, TINY, Place::experts_8, T::Q4_K),
    (Part::FfnDown, &[F::IQ2_S, F::IQ2_M], Place::first_8th, T::IQ3_S),
    (Part::FfnDown, TINY, Place::first_8th, T::Q2_K),
    (Part::AttnOutput, TINY, Place::experts_8, T::Q5_K),
    (Part::AttnOutput, &[F::IQ1_S, F::IQ1_M], Place::always, T::IQ2_XXS),
    (Part::AttnOutput, &[F::IQ2_S, F::IQ2_M], Place::always, T::IQ3_S),
];

/// Files whose attention output gets q5_K in models with eight experts.
const MIXTRAL_OUTPUT: &[FileType] = &[
    F::Q2_K,
    F::Q3_K_S,
    F::Q3_K_M,
    F::Q4_K_S,
    F::Q4_K_M,
    F::IQ3_XS,
    F::IQ3_XXS,
    F::IQ3_S,
    F::IQ3_M,
    F::IQ4_NL,
    F::IQ4_XS,
];

const ALL: &[FileType] = &[];

const RULES: &[Rule] = &[
    (Part::AttnV, &[F::Q2_K], Place::gqa_4, T::Q4_K),
    (Part::AttnV, &[F::Q2_K], Place::always, T::Q3_K),
    (Part::AttnV, &[F::Q2_K_S, F::IQ3_XXS, F::IQ3_XS, F::IQ3_S], Place::gqa_4, T::Q4_K),
    (Part::AttnV, &[F::IQ3_XXS], Place::importance, T::IQ3_XXS),
    (Part::AttnV, &[F::IQ3_XXS], Place::always, T::IQ3_S),
    (Part::AttnV, &[F::IQ3_M], Place::always, T::Q4_K),
    (Part::AttnV, &[F::Q3_K_M], Place::first_2, T::Q5_K),
    (Part::AttnV, &[F::Q3_K_M], Place::always, T::Q4_K),
    (Part::AttnV, &[F::Q3_K_L], Place::always, T::Q5_K),
    (Part::AttnV, &[F::IQ4_NL, F::IQ4_XS], Place::gqa_4, T::Q5_K),
    (Part::AttnV, &[F::Q4_K_M, F::Q5_K_M], Place::more_bits, T::Q6_K),
    (Part::AttnV, &[F::Q4_K_S], Place::first_4, T::Q5_K),
    (Part::AttnK, ALL, Place::experts_8, T::Q8_0),
    (Part::AttnK, &[F::IQ3_XS], Place::always, T::IQ3_XXS),
    (Part::AttnK, &[F::IQ3_XXS], Place::always, T::IQ2_S),
    (Part::AttnQ, &[F::IQ3_XS], Place::always, T::IQ3_XXS),
    (Part::AttnQ, &[F::IQ3_XXS], Place::always, T::IQ2_S),
    (Part::FfnDown, &[F::Q2_K], Place::always, T::Q3_K),
    (Part::FfnDown, &[F::Q2_K_S], Place::first_8th, T::Q4_K),
    (Part::FfnDown, &[F::IQ3_XXS], Place::no_importance_first_8th, T::Q4_K),
    (Part::FfnDown, &[F::IQ3_XXS], Place::no_importance, T::Q3_K),
    (Part::FfnDown, &[F::Q3_K_M], Place::first_16th, T::Q5_K),
    (Part::FfnDown, &[F::Q3_K_M], Place::always, T::Q4_K),
    (Part::FfnDown, &[F::Q3_K_L], Place::always, T::Q5_K),
    (Part::FfnDown, &[F::IQ3_M], Place::first_8th, T::Q4_K),
    (Part::FfnDown, &[F::IQ3_M], Place::experts_8_more_bits, T::Q4_K),
    (Part::FfnDown, &[F::Q4_K_M, F::Q5_K_M], Place::more_bits, T::Q6_K),
    (Part::FfnDown, &[F::Q4_K_S], Place::first_8th, T::Q5_K),
    (Part::FfnDown, &[F::IQ4_NL, F::IQ4_XS], Place::no_importance_first_8th, T::Q5_K),
    (Part::FfnDown, &[F::Q4_0], Place::importance_first_8th, T::Q4_1),
    (Part::FfnDown, &[F::Q5_0], Place::importance_first_8th, T::Q5_1),
    (Part::AttnOutput, MIXTRAL_OUTPUT, Place::experts_8, T::Q5_K),
    (Part::AttnOutput, &[F::Q2_K], Place::not_experts_8, T::Q3_K),
    (Part::AttnOutput, &[F::IQ3_XXS], Place::not_experts_8, T::IQ3_S),
    (Part::AttnOutput, &[F::Q3_K_M, F::IQ3_M], Place::not_experts_8, T::Q4_K),
    (Part::AttnOutput, &[F::Q3_K_L], Place::not_experts_8, T::Q5_K),
    (Part::FfnGate, &[F::IQ3_XS], Place::middle, T::IQ3_XXS),
    (Part::FfnUp, &[F::IQ3_XS], Place::middle, T::IQ3_XXS),
];

/// Rules for Falcon, checked before the others. Its attention output has no other rules.
const FALCON_RULES: &[Rule] = &[
    (Part::FfnDown, &[F::Q3_K_M], Place::first_16th, T::Q5_K),
    (Part::FfnDown, &[F::Q3_K_M], Place::more_bits, T::Q4_K),
    (Part::FfnDown, &[F::Q3_K_M], Place::always, T::Q3_K),
    (Part::FfnDown, &[F::Q3_K_L], Place::always, T::Q4_K),
    (Part::FfnDown, &[F::Q4_K_M], Place::first_16th, T::Q6_K),
    (Part::FfnDown, &[F::Q4_K_M], Place::more_bits, T::Q5_K),
    (Part::FfnDown, &[F::Q4_K_M, F::Q4_K_S], Place::always, T::Q4_K),
    (Part::AttnOutput, &[F::Q3_K_L], Place::always, T::Q4_K),
];

/// Types of token embeddings that are not also the output matrix.
const EMBEDDING_RULES: &[(&[FileType], GgmlType)] = &[
    (&[F::IQ2_XXS, F::IQ2_XS, F::IQ1_S, F::IQ1_M], T::Q2_K),
    (&[F::IQ2_S, F::IQ2_M, F::IQ3_XXS], T::IQ3_S),
    (&[F::TQ1_0, F::TQ2_0, F::Q2_0], T::Q4_K),
];

/// Replacements for a type whose block length does not divide the rows.
const FALLBACKS: &[(&[GgmlType], GgmlType)] = &[
    (&[T::IQ1_S, T::IQ1_M, T::IQ2_XXS, T::IQ2_XS, T::IQ2_S, T::IQ3_XXS, T::IQ3_S, T::IQ4_XS], T::IQ4_NL),
    (&[T::Q2_0, T::Q2_K, T::Q3_K, T::TQ1_0, T::TQ2_0], T::Q4_0),
    (&[T::Q4_K], T::Q5_0),
    (&[T::Q5_K], T::Q5_1),
    (&[T::Q6_K], T::Q8_0),
];

/// Sort key of the order in which tensors are queried and written: by layer, tensors without a layer first,
/// then by name.
///
/// ```
/// let mut names = ["output.weight", "blk.10.attn_q.weight", "blk.9.ffn_up.weight"];
/// names.sort_by_key(|name| ggml_format::mix_order(name));
/// assert_eq!(names, ["output.weight", "blk.9.ffn_up.weight", "blk.10.attn_q.weight"]);
/// ```
pub fn mix_order(name: &str) -> (Option<u32>, &str) {
    (layer_of(name), name)
}

fn layer_of(name: &str) -> Option<u32> {
    name.strip_prefix("blk.")?.split_once('.')?.0.parse().ok()
}

/// True if a tensor is quantised at all.
fn is_quantised(name: &str, ne: &[u64]) -> bool {
    // As ggml counts dimensions: trailing sizes of 1 do not count.
    let n_dims = ne.iter().rposition(|&size| size > 1).map_or(1, |last| last + 1);
    n_dims >= 2
        && name.ends_with("weight")
        && !KEPT.iter().any(|word| name.contains(word))
        && !KEPT_NAMES.contains(&name)
}

/// The type of a tensor in a file of this type; `None` for tensors that are not quantised.
///
/// # Shapes
/// `ne`: sizes in ggml's order, fastest varying first
///
/// # Errors
/// If the type needs longer blocks than the rows have, and there is no fallback (q1_0 only).
pub fn tensor_type(
    file_type: FileType,
    name: &str,
    ne: &[u64],
    facts: &ModelFacts,
    counters: &mut MixCounters,
) -> Result<Option<GgmlType>, MixError> {
    if !is_quantised(name, ne) {
        return Ok(None);
    }
    let base = file_type.base();
    if matches!(base, T::F32 | T::F16 | T::BF16) {
        return Ok(Some(base));
    }
    let n_per_row = ne[0];
    let ty = wanted_type(file_type, name, ne, facts, counters);
    if fits(ty, n_per_row) {
        return Ok(Some(ty));
    }
    if ty == T::Q1_0 {
        return Err(MixError { tensor: name.to_owned(), ty, n_per_row });
    }
    let fallback = FALLBACKS.iter().find(|(types, _)| types.contains(&ty)).map_or(ty, |row| row.1);
    Ok(Some(if fits(fallback, n_per_row) { fallback } else { T::F16 }))
}

fn fits(ty: GgmlType, n_per_row: u64) -> bool {
    n_per_row.is_multiple_of(ty.block_len() as u64)
}

fn wanted_type(
    file_type: FileType,
    name: &str,
    ne: &[u64],
    facts: &ModelFacts,
    counters: &mut MixCounters,
) -> GgmlType {
    let base = file_type.base();
    let is_embedding = matches!(name, "token_embd.weight" | "per_layer_token_embd.weight");
    if name == "output.weight" || (is_embedding && !facts.has_output) {
        return output_type(file_type, ne[0], facts);
    }
    if file_type == F::MXFP4_MOE {
        return if ne.get(2).is_some_and(|&n| n > 1) { T::MXFP4 } else { T::Q8_0 };
    }
    if is_embedding {
        let rule = EMBEDDING_RULES.iter().find(|(files, _)| files.contains(&file_type));
        return rule.map_or(base, |rule| rule.1);
    }
    let Some(&(part, _)) = PARTS.iter().find(|(_, words)| words.iter().any(|word| name.contains(word)))
    else {
        return base;
    };
    let is_tiny = TINY.contains(&file_type);
    let place = place(part, name, is_tiny, *facts, counters);
    let (own, general) = match (is_tiny, facts.is_falcon, part) {
        (true, ..) => (TINY_RULES, &[][..]),
        (false, false, _) => (&[][..], RULES),
        (false, true, Part::AttnOutput) => (FALCON_RULES, &[][..]),
        (false, true, _) => (FALCON_RULES, RULES),
    };
    let ty = own
        .iter()
        .chain(general)
        .find(|(rule_part, files, when, _)| {
            *rule_part == part && (files.is_empty() || files.contains(&file_type)) && when(&place)
        })
        .map_or(base, |rule| rule.3);
    if part != Part::AttnV || is_tiny {
        ty
    } else if facts.n_expert == 8 {
        T::Q8_0
    } else if facts.is_70b && matches!(ty, T::Q3_K | T::Q4_K) {
        // Eight heads share a value there, so better values cost little.
        T::Q5_K
    } else {
        ty
    }
}

fn output_type(file_type: FileType, n_per_row: u64, facts: &ModelFacts) -> GgmlType {
    let base = file_type.base();
    if file_type == F::MXFP4_MOE || facts.is_falcon || !fits(base, n_per_row) || base == T::Q8_0 {
        T::Q8_0
    } else if TINY.contains(&file_type) || file_type == F::IQ3_XXS {
        T::Q5_K
    } else {
        T::Q6_K
    }
}

/// Counts the tensor and returns its position.
fn place(part: Part, name: &str, is_tiny: bool, facts: ModelFacts, counters: &mut MixCounters) -> Place {
    let (counter, n) = match part {
        Part::AttnV => (&mut counters.n_attn_v, facts.n_attn_v),
        Part::FfnDown => (&mut counters.n_ffn_down, facts.n_layer),
        Part::FfnGate => (&mut counters.n_ffn_gate, facts.n_layer),
        Part::FfnUp => (&mut counters.n_ffn_up, facts.n_layer),
        Part::AttnK | Part::AttnQ | Part::AttnOutput => return Place { layer: 0, n: facts.n_layer, facts },
    };
    let counted = *counter;
    *counter += 1;
    // With experts a layer may have several such tensors, so their count is not the layer index. llama.cpp
    // nevertheless uses the count in files of about two bits per weight.
    let by_name = if facts.n_expert > 1 && part != Part::AttnV && !is_tiny { layer_of(name) } else { None };
    Place { layer: by_name.unwrap_or(counted), n, facts }
}

/// True if llama.cpp refuses to quantise a tensor to this type without an importance matrix.
pub fn needs_importance(file_type: FileType, name: &str, ty: GgmlType) -> bool {
    if matches!(name, "token_embd.weight" | "per_layer_token_embd.weight" | "output.weight") {
        return false;
    }
    match ty {
        T::IQ1_S | T::IQ1_M | T::IQ2_XXS | T::IQ2_XS | T::IQ2_S | T::IQ3_XXS => true,
        T::Q2_K => file_type == F::Q2_K_S,
        _ => false,
    }
}
