//! Names of MLC for modules of transformers, by family.

/// A family of models.
#[derive(Debug)]
pub(super) struct Family {
    /// Values of `model_type`.
    pub(super) types: &'static [&'static str],
    /// The class of transformers with the same model.
    pub(super) class: &'static str,
    /// Modules with other names or shapes outside of the layers.
    pub(super) top: &'static [Module],
    /// The beginning of all other names outside of the layers.
    pub(super) outer: &'static str,
    /// The beginning of names in layers, with `{i}` for the number.
    pub(super) layer: &'static str,
    /// Modules of a layer with other names or shapes.
    pub(super) modules: &'static [&'static [Module]],
    /// Number by which MLC's norms are larger than those of transformers.
    pub(super) norm_plus: f32,
    /// True if a folder of this family was compared with the original.
    pub(super) is_proven: bool,
}

/// A module of transformers as a part of one of MLC.
#[derive(Debug)]
pub(super) struct Module {
    /// Its name in transformers, with `{e}` for the number of an expert.
    pub(super) from: &'static str,
    /// The name in MLC.
    pub(super) to: &'static str,
    /// Its rows.
    pub(super) rows: Rows,
}

/// The rows of a fused matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    /// All of them.
    All,
    /// Those of queries, keys or values, in this order.
    Q,
    K,
    V,
    /// The first or the second half; of experts, those of one.
    First,
    Second,
}

const fn part(from: &'static str, to: &'static str, rows: Rows) -> Module {
    Module { from, to, rows }
}

const QKV: &[Module] = &[
    part("self_attn.q_proj", "self_attn.qkv_proj", Rows::Q),
    part("self_attn.k_proj", "self_attn.qkv_proj", Rows::K),
    part("self_attn.v_proj", "self_attn.qkv_proj", Rows::V),
];

/// The same under the name that Qwen has from its first version.
const C_ATTN: &[Module] = &[
    part("self_attn.q_proj", "self_attn.c_attn", Rows::Q),
    part("self_attn.k_proj", "self_attn.c_attn", Rows::K),
    part("self_attn.v_proj", "self_attn.c_attn", Rows::V),
];

const GATE_UP: &[Module] = &[
    part("mlp.gate_proj", "mlp.gate_up_proj", Rows::First),
    part("mlp.up_proj", "mlp.gate_up_proj", Rows::Second),
];

const EXPERTS: &[Module] = &[
    part("mlp.experts.{e}.gate_proj", "mlp.moe_gate_up_proj", Rows::First),
    part("mlp.experts.{e}.up_proj", "mlp.moe_gate_up_proj", Rows::Second),
    part("mlp.experts.{e}.down_proj", "mlp.moe_down_proj", Rows::All),
];

const MIXTRAL: &[Module] = &[
    part("block_sparse_moe.gate", "moe.gate", Rows::All),
    part("block_sparse_moe.experts.{e}.w1", "moe.e1_e3", Rows::First),
    part("block_sparse_moe.experts.{e}.w3", "moe.e1_e3", Rows::Second),
    part("block_sparse_moe.experts.{e}.w2", "moe.e2", Rows::All),
];

const PHI3: &[Module] = &[
    part("self_attn.qkv_proj", "mixer.qkv_proj", Rows::All),
    part("self_attn.o_proj", "mixer.out_proj", Rows::All),
    part("input_layernorm", "ln", Rows::All),
];

const PHI3_TOP: &[Module] = &[
    part("model.embed_tokens", "transformer.embd", Rows::All),
    part("model.norm", "transformer.norm", Rows::All),
];

/// A family with the names of transformers, besides those of fused matrices.
const USUAL: Family = Family {
    types: &[],
    class: "",
    top: &[],
    outer: "",
    layer: "model.layers.{i}.",
    modules: &[QKV, GATE_UP],
    norm_plus: 0.0,
    is_proven: true,
};

/// All families.
pub(super) static FAMILIES: &[Family] = &[
    Family { types: &["llama"], class: "LlamaForCausalLM", ..USUAL },
    Family { types: &["mistral"], class: "MistralForCausalLM", ..USUAL },
    Family { types: &["olmo2"], class: "Olmo2ForCausalLM", ..USUAL },
    Family { types: &["qwen2"], class: "Qwen2ForCausalLM", modules: &[C_ATTN, GATE_UP], ..USUAL },
    Family { types: &["qwen3"], class: "Qwen3ForCausalLM", modules: &[C_ATTN, GATE_UP], ..USUAL },
    Family {
        types: &["qwen3_moe"],
        class: "Qwen3MoeForCausalLM",
        modules: &[C_ATTN, EXPERTS],
        is_proven: false,
        ..USUAL
    },
    Family {
        types: &["mixtral"],
        class: "MixtralForCausalLM",
        modules: &[QKV, MIXTRAL],
        is_proven: false,
        ..USUAL
    },
    Family { types: &["gemma"], class: "GemmaForCausalLM", norm_plus: 1.0, ..USUAL },
    Family { types: &["gemma2"], class: "Gemma2ForCausalLM", norm_plus: 1.0, ..USUAL },
    Family {
        types: &["gemma3", "gemma3_text"],
        class: "Gemma3ForCausalLM",
        outer: "language_model.",
        layer: "language_model.model.layers.{i}.",
        modules: &[GATE_UP],
        norm_plus: 1.0,
        ..USUAL
    },
    Family {
        types: &["phi3"],
        class: "Phi3ForCausalLM",
        top: PHI3_TOP,
        layer: "transformer.h.{i}.",
        modules: &[PHI3],
        ..USUAL
    },
];

/// The place of a module of transformers in a folder of MLC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Name of the module.
    pub(super) module: String,
    pub(super) rows: Rows,
    /// The expert, for modules with the matrices of several.
    pub(super) expert: Option<u64>,
}

impl Family {
    /// The family with this `model_type`.
    pub(super) fn named(model_type: &str) -> Option<&'static Family> {
        FAMILIES.iter().find(|family| family.types.contains(&model_type))
    }

    /// The place of a module, by its name in transformers.
    pub(super) fn place(&self, module: &str) -> Place {
        let whole = |module: String| Place { module, rows: Rows::All, expert: None };
        let in_layer = module.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'));
        let Some((i, name)) = in_layer else {
            let other = self.top.iter().find(|row| row.from == module);
            return whole(other.map_or_else(|| format!("{}{module}", self.outer), |row| row.to.to_owned()));
        };
        let prefix = self.layer.replace("{i}", i);
        for row in self.modules.iter().copied().flatten() {
            if let Some(expert) = matches(row.from, name) {
                return Place { module: format!("{prefix}{}", row.to), rows: row.rows, expert };
            }
        }
        whole(format!("{prefix}{name}"))
    }
}

/// Compares a name with a pattern; the number at `{e}` if there is one.
fn matches(pattern: &str, name: &str) -> Option<Option<u64>> {
    let Some((before, after)) = pattern.split_once("{e}") else { return (pattern == name).then_some(None) };
    name.strip_prefix(before)?.strip_suffix(after)?.parse().ok().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_places() {
        let place = |family: &str, module: &str| {
            let Place { module, rows, expert } = Family::named(family).unwrap().place(module);
            (module, rows, expert)
        };
        let at = |module: &str, rows, expert| (module.to_owned(), rows, expert);
        assert_eq!(
            place("llama", "model.layers.12.self_attn.k_proj"),
            at("model.layers.12.self_attn.qkv_proj", Rows::K, None)
        );
        assert_eq!(place("llama", "lm_head"), at("lm_head", Rows::All, None));
        assert_eq!(place("phi3", "model.norm"), at("transformer.norm", Rows::All, None));
        assert_eq!(
            place("phi3", "model.layers.0.input_layernorm"),
            at("transformer.h.0.ln", Rows::All, None)
        );
        assert_eq!(
            place("gemma3", "model.layers.3.self_attn.q_proj"),
            at("language_model.model.layers.3.self_attn.q_proj", Rows::All, None)
        );
        assert_eq!(place("gemma3", "model.norm"), at("language_model.model.norm", Rows::All, None));
        assert_eq!(
            place("qwen3_moe", "model.layers.0.mlp.experts.7.up_proj"),
            at("model.layers.0.mlp.moe_gate_up_proj", Rows::Second, Some(7))
        );
        assert_eq!(
            place("mixtral", "model.layers.0.block_sparse_moe.gate"),
            at("model.layers.0.moe.gate", Rows::All, None)
        );
    }
}
