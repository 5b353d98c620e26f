//! The mixes, against the output of `llama-quantize` for real models, and rule by rule.

use std::collections::BTreeMap;

use ggml_format::{
    FILE_TYPES, FileType, GgmlType, Gguf, MixCounters, ModelFacts, mix_order, needs_importance, tensor_type,
};

use GgmlType as T;

/// A dense Llama with the names and sizes of its GGUF file.
struct Dense {
    n_layer: u32,
    n_embd: u64,
    n_ff: u64,
    n_vocab: u64,
    facts: ModelFacts,
}

impl Dense {
    fn new(n_layer: u32, n_embd: u64, n_ff: u64, has_output: bool, gqa: u32) -> Dense {
        let facts = ModelFacts {
            n_layer,
            n_attn_v: n_layer,
            gqa,
            n_expert: 0,
            has_output,
            is_70b: false,
            is_falcon: false,
            has_importance: false,
        };
        Dense { n_layer, n_embd, n_ff, n_vocab: 512, facts }
    }

    fn tensors(&self) -> Vec<(String, Vec<u64>)> {
        let (d, f) = (self.n_embd, self.n_ff);
        let mut list = vec![
            ("token_embd.weight".to_owned(), vec![d, self.n_vocab]),
            ("output_norm.weight".to_owned(), vec![d]),
        ];
        if self.facts.has_output {
            list.push(("output.weight".to_owned(), vec![d, self.n_vocab]));
        }
        for layer in 0..self.n_layer {
            for (name, ne) in [
                ("attn_norm", vec![d]),
                ("attn_q", vec![d, d]),
                ("attn_k", vec![d, d / u64::from(self.facts.gqa)]),
                ("attn_v", vec![d, d / u64::from(self.facts.gqa)]),
                ("attn_output", vec![d, d]),
                ("ffn_norm", vec![d]),
                ("ffn_gate", vec![d, f]),
                ("ffn_up", vec![d, f]),
                ("ffn_down", vec![f, d]),
            ] {
                list.push((format!("blk.{layer}.{name}.weight"), ne));
            }
        }
        list.sort_by(|a, b| mix_order(&a.0).cmp(&mix_order(&b.0)));
        list
    }

    fn types(&self, file_type: FileType) -> BTreeMap<String, Option<GgmlType>> {
        let mut counters = MixCounters::default();
        self.tensors()
            .into_iter()
            .map(|(name, ne)| {
                let ty = tensor_type(file_type, &name, &ne, &self.facts, &mut counters).unwrap();
                (name, ty)
            })
            .collect()
    }

    /// Layers whose tensor with this name has this type.
    fn layers(&self, file_type: FileType, name: &str, ty: GgmlType) -> Vec<u32> {
        let types = self.types(file_type);
        (0..self.n_layer).filter(|layer| types[&format!("blk.{layer}.{name}.weight")] == Some(ty)).collect()
    }
}

/// One tensor of a model with these facts.
fn one(file_type: FileType, name: &str, ne: &[u64], facts: &ModelFacts) -> Option<GgmlType> {
    tensor_type(file_type, name, ne, facts, &mut MixCounters::default()).unwrap()
}

/// The model in the repository was made by llama-quantize.
#[test]
fn mix_equals_that_of_a_file_made_by_llama_quantize() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../chaski/model/storyteller-Q4_K_M.gguf");
    let bytes = std::fs::read(path).unwrap();
    let n_byte = bytes.len() as u64;
    let gguf = Gguf::parse(bytes.into(), n_byte).unwrap();
    let file_type = FileType::from_id(gguf.u32("general.file_type").unwrap()).unwrap();
    assert_eq!(file_type, FileType::Q4_K_M);
    let model = Dense::new(gguf.u32("llama.block_count").unwrap(), 256, 768, false, 2);
    let mut counters = MixCounters::default();
    let mut last = (None, "");
    for t in gguf.tensors() {
        assert!(last < mix_order(&t.name), "{}", t.name);
        last = mix_order(&t.name);
        let ty =
            tensor_type(file_type, &t.name, &t.ne[..t.n_dims as usize], &model.facts, &mut counters).unwrap();
        assert_eq!(ty.unwrap_or(T::F32), t.ty, "{}", t.name);
    }
}

type Counts<'a> = &'a [(GgmlType, usize)];

/// Numbers of tensors per type, counted in files made by llama-quantize.
#[test]
fn type_counts_equal_those_of_llama_quantize() {
    use FileType as F;
    // Five layers with an output matrix of their own; eight layers, tied.
    let five = Dense::new(5, 256, 512, true, 2);
    let eight = Dense::new(8, 256, 768, false, 2);
    let cases: &[(_, _, Counts<'_>)] = &[
        (&five, F::F16, &[(T::F16, 37)]),
        (&five, F::IQ4_XS, &[(T::IQ4_XS, 36), (T::Q6_K, 1)]),
        (&five, F::Q2_K, &[(T::Q2_K, 21), (T::Q3_K, 15), (T::Q6_K, 1)]),
        (&five, F::Q3_K_M, &[(T::Q3_K, 21), (T::Q4_K, 13), (T::Q5_K, 2), (T::Q6_K, 1)]),
        (&five, F::Q4_0, &[(T::Q4_0, 36), (T::Q6_K, 1)]),
        (&five, F::Q4_K_M, &[(T::Q4_K, 32), (T::Q6_K, 5)]),
        (&five, F::Q5_0, &[(T::Q5_0, 36), (T::Q6_K, 1)]),
        (&five, F::Q5_K_M, &[(T::Q5_K, 32), (T::Q6_K, 5)]),
        (&five, F::Q6_K, &[(T::Q6_K, 37)]),
        (&five, F::Q8_0, &[(T::Q8_0, 37)]),
        (&eight, F::IQ4_XS, &[(T::IQ4_XS, 55), (T::Q6_K, 1), (T::Q5_K, 1)]),
        (&eight, F::Q2_K, &[(T::Q2_K, 32), (T::Q3_K, 24), (T::Q6_K, 1)]),
        (&eight, F::Q3_K_M, &[(T::Q3_K, 32), (T::Q4_K, 22), (T::Q5_K, 2), (T::Q6_K, 1)]),
        (&eight, F::Q4_0, &[(T::Q4_0, 56), (T::Q6_K, 1)]),
        (&eight, F::Q4_K_M, &[(T::Q4_K, 48), (T::Q6_K, 9)]),
        (&eight, F::Q5_K_M, &[(T::Q5_K, 48), (T::Q6_K, 9)]),
        (&eight, F::Q6_K, &[(T::Q6_K, 57)]),
        (&eight, F::Q8_0, &[(T::Q8_0, 57)]),
    ];
    for (model, file_type, expected) in cases {
        let mut found = BTreeMap::new();
        for ty in model.types(*file_type).into_values().flatten() {
            *found.entry(ty).or_insert(0) += 1;
        }
        let expected: BTreeMap<_, _> = expected.iter().copied().collect();
        assert_eq!(found, expected, "{file_type}, {} layers", model.n_layer);
    }
}

#[test]
fn more_bits_go_to_the_ends_and_every_third_layer() {
    let model = Dense::new(16, 256, 512, true, 4);
    let expected = [0, 1, 4, 7, 10, 13, 14, 15];
    assert_eq!(model.layers(FileType::Q4_K_M, "attn_v", T::Q6_K), expected);
    assert_eq!(model.layers(FileType::Q5_K_M, "ffn_down", T::Q6_K), expected);
    assert_eq!(model.layers(FileType::Q4_K_S, "attn_v", T::Q5_K), [0, 1, 2, 3]);
    assert_eq!(model.layers(FileType::Q4_K_S, "ffn_down", T::Q5_K), [0, 1]);
    assert_eq!(model.layers(FileType::Q3_K_M, "ffn_down", T::Q5_K), [0]);
    assert_eq!(model.layers(FileType::IQ3_XS, "ffn_up", T::IQ3_XXS), (2..14).collect::<Vec<_>>());
    assert_eq!(model.layers(FileType::Q2_K_S, "ffn_down", T::Q4_K), [0, 1]);
    assert_eq!(model.layers(FileType::IQ2_M, "ffn_down", T::IQ3_S), [0, 1]);
    assert_eq!(model.layers(FileType::IQ2_XS, "ffn_down", T::Q2_K), [0, 1]);
    assert_eq!(model.layers(FileType::IQ2_XS, "attn_v", T::Q4_K).len(), 16);
}

#[test]
fn importance_changes_the_mix() {
    let mut model = Dense::new(8, 256, 512, true, 2);
    assert_eq!(model.layers(FileType::Q4_0, "ffn_down", T::Q4_1), []);
    assert_eq!(model.layers(FileType::IQ3_XXS, "attn_v", T::IQ3_S).len(), 8);
    assert_eq!(model.layers(FileType::IQ3_XXS, "ffn_down", T::Q4_K), [0]);
    assert_eq!(model.layers(FileType::IQ3_XXS, "ffn_down", T::Q3_K).len(), 7);
    model.facts.has_importance = true;
    assert_eq!(model.layers(FileType::Q4_0, "ffn_down", T::Q4_1), [0]);
    assert_eq!(model.layers(FileType::Q5_0, "ffn_down", T::Q5_1), [0]);
    assert_eq!(model.layers(FileType::IQ4_NL, "ffn_down", T::Q5_K), []);
    assert_eq!(model.layers(FileType::IQ3_XXS, "attn_v", T::IQ3_XXS).len(), 8);
    assert_eq!(model.layers(FileType::IQ3_XXS, "ffn_down", T::IQ3_XXS).len(), 8);
}

#[test]
fn embeddings_and_output_have_rules_of_their_own() {
    let mut facts = Dense::new(4, 256, 512, true, 2).facts;
    let ne = [256, 512];
    for (file_type, embedding, output) in [
        (FileType::Q4_0, T::Q4_0, T::Q6_K),
        (FileType::Q1_0, T::Q1_0, T::Q6_K),
        (FileType::TQ1_0, T::Q4_K, T::Q6_K),
        (FileType::Q2_0, T::Q4_K, T::Q6_K),
        (FileType::IQ1_S, T::Q2_K, T::Q5_K),
        (FileType::IQ2_M, T::IQ3_S, T::Q5_K),
        (FileType::IQ3_XXS, T::IQ3_S, T::Q5_K),
        (FileType::IQ3_M, T::IQ3_S, T::Q6_K),
        (FileType::MXFP4_MOE, T::Q8_0, T::Q8_0),
        (FileType::BF16, T::BF16, T::BF16),
    ] {
        facts.has_output = true;
        assert_eq!(one(file_type, "token_embd.weight", &ne, &facts), Some(embedding), "{file_type}");
        assert_eq!(one(file_type, "output.weight", &ne, &facts), Some(output), "{file_type}");
        facts.has_output = false;
        assert_eq!(one(file_type, "token_embd.weight", &ne, &facts), Some(output), "{file_type}, tied");
    }
}

#[test]
fn experts_count_by_the_names_of_their_layers() {
    let facts = ModelFacts { n_expert: 8, ..Dense::new(16, 256, 512, true, 4).facts };
    let ne = [512, 256, 8];
    let down = |layer: u32| {
        let name = format!("blk.{layer}.ffn_down_exps.weight");
        one(FileType::Q4_K_M, &name, &ne, &facts)
    };
    assert_eq!((down(0), down(3), down(15)), (Some(T::Q6_K), Some(T::Q4_K), Some(T::Q6_K)));
    let attention = |file_type, name| one(file_type, name, &[256, 256], &facts);
    assert_eq!(attention(FileType::Q4_K_M, "blk.0.attn_v.weight"), Some(T::Q8_0));
    assert_eq!(attention(FileType::Q4_K_M, "blk.0.attn_k.weight"), Some(T::Q8_0));
    assert_eq!(attention(FileType::Q4_K_M, "blk.0.attn_output.weight"), Some(T::Q5_K));
    assert_eq!(attention(FileType::Q5_K_M, "blk.0.attn_output.weight"), Some(T::Q5_K));
    assert_eq!(attention(FileType::IQ1_S, "blk.0.attn_k.weight"), Some(T::Q4_K));
    assert_eq!(one(FileType::MXFP4_MOE, "blk.0.ffn_up_exps.weight", &ne, &facts), Some(T::MXFP4));
    assert_eq!(one(FileType::MXFP4_MOE, "blk.0.attn_q.weight", &[256, 256], &facts), Some(T::Q8_0));
}

/// A layer with shared experts has two such tensors, and llama.cpp counts both in files of about two bits per
/// weight.
#[test]
fn tiny_files_count_tensors_with_experts_too() {
    let facts = ModelFacts { n_expert: 8, ..Dense::new(16, 256, 512, true, 4).facts };
    let mut counters = MixCounters::default();
    let mut names = Vec::new();
    for layer in 0..16 {
        names.extend(["exps", "shexp"].map(|kind| format!("blk.{layer}.ffn_down_{kind}.weight")));
    }
    let ty = |name: &String| {
        tensor_type(FileType::IQ2_XS, name, &[512, 256, 8], &facts, &mut counters).unwrap().unwrap()
    };
    let found: Vec<GgmlType> = names.iter().map(ty).collect();
    // An eighth of 16 is two, which the first layer uses up.
    assert_eq!(found[..2], [T::Q2_K; 2]);
    assert_eq!(found[2..], [T::IQ2_XS; 30]);
}

#[test]
fn large_llama_gets_better_values() {
    let facts = ModelFacts { is_70b: true, ..Dense::new(80, 256, 512, true, 8).facts };
    let v = |file_type| one(file_type, "blk.0.attn_v.weight", &[256, 256], &facts);
    assert_eq!(v(FileType::Q3_K_S), Some(T::Q5_K));
    assert_eq!(v(FileType::Q2_K), Some(T::Q5_K));
    assert_eq!(v(FileType::Q4_K_M), Some(T::Q6_K));
}

#[test]
fn rows_of_no_whole_blocks_get_another_type() {
    let facts = Dense::new(4, 576, 1536, true, 3).facts;
    let q = |file_type| one(file_type, "blk.0.attn_q.weight", &[576, 576], &facts);
    assert_eq!(q(FileType::Q4_K_M), Some(T::Q5_0));
    assert_eq!(q(FileType::Q5_K_M), Some(T::Q5_1));
    assert_eq!(q(FileType::Q6_K), Some(T::Q8_0));
    assert_eq!(q(FileType::Q3_K_L), Some(T::Q4_0));
    assert_eq!(q(FileType::IQ4_XS), Some(T::IQ4_NL));
    assert_eq!(q(FileType::Q2_0), Some(T::Q2_0));
    assert_eq!(one(FileType::Q4_K_M, "output.weight", &[576, 10], &facts), Some(T::Q8_0));
    assert_eq!(one(FileType::Q4_K_M, "blk.0.ffn_down.weight", &[172, 64], &facts), Some(T::F16));
    assert_eq!(one(FileType::Q4_0, "blk.0.ffn_down.weight", &[172, 64], &facts), Some(T::F16));
    let error =
        tensor_type(FileType::Q1_0, "blk.0.attn_q.weight", &[576, 576], &facts, &mut MixCounters::default())
            .unwrap_err();
    assert_eq!(
        error.to_string(),
        "tensor `blk.0.attn_q.weight`: expected rows of a multiple of 128 values for q1_0, found 576"
    );
}

#[test]
fn small_and_delicate_tensors_stay_as_they_are() {
    let facts = Dense::new(4, 256, 512, true, 2).facts;
    for (name, ne) in [
        ("blk.0.attn_norm.weight", &[256][..]),
        ("blk.0.attn_q.bias", &[256, 256]),
        ("blk.0.ffn_gate_inp.weight", &[256, 8]),
        ("blk.0.ssm_conv1d.weight", &[4, 256]),
        ("blk.0.shortconv.conv.weight", &[4, 256]),
        ("blk.0.laurel_l.weight", &[256, 64]),
        ("per_layer_model_proj.weight", &[256, 256]),
        ("position_embd.weight", &[256, 256]),
        ("blk.0.attn_q_norm.weight", &[256, 2]),
        ("blk.0.attn_q.weight", &[256, 1, 1, 1]),
        ("rope_freqs.weight", &[32]),
        ("blk.0.ffn_gate_tid2eid.weight", &[256, 8]),
        ("blk.0.indexer.k_proj.weight", &[256, 64]),
        ("blk.0.indexer.q_proj.weight", &[256, 64]),
        ("v.position_embd.weight", &[256, 64]),
        ("v.position_embd_w.weight", &[256, 64]),
        ("v.sam.pos_embd.weight", &[256, 64]),
        ("v.sam.neck.0.weight", &[256, 64]),
        ("v.sam.net_2.weight", &[256, 64]),
        ("v.blk.0.attn.rel_pos_h.weight", &[256, 64]),
        ("v.patch_embd.weight", &[256, 64]),
        ("mm.patch_merger.weight", &[256, 64]),
        ("a.rvq.codebook.0.weight", &[256, 64]),
        ("mm.a.code_embd.weight", &[256, 64]),
    ] {
        for file_type in [FileType::Q4_K_M, FileType::F16] {
            assert_eq!(one(file_type, name, ne, &facts), None, "{name}");
        }
    }
    assert_eq!(one(FileType::Q4_0, "blk.0.ssm_in.weight", &[256, 64], &facts), Some(T::Q4_0));
}

#[test]
fn tiny_types_need_importance() {
    let name = "blk.0.attn_q.weight";
    assert!(needs_importance(FileType::IQ2_XS, name, T::IQ2_XS));
    assert!(needs_importance(FileType::Q2_K_S, name, T::Q2_K));
    assert!(!needs_importance(FileType::Q2_K, name, T::Q2_K));
    assert!(!needs_importance(FileType::IQ3_XXS, "token_embd.weight", T::IQ3_XXS));
    assert!(!needs_importance(FileType::IQ4_XS, name, T::IQ4_XS));
}

/// For every file type and all sizes, the resulting type fits.
#[test]
fn every_file_type_gives_types_that_fit() {
    for row in FILE_TYPES {
        for n_embd in [64, 256, 576, 2880] {
            let model = Dense::new(3, n_embd, 172, true, 1);
            let mut counters = MixCounters::default();
            for (name, ne) in model.tensors() {
                match tensor_type(row.file_type, &name, &ne, &model.facts, &mut counters) {
                    Ok(Some(ty)) => assert!(ty.row_bytes(ne[0]).is_some(), "{} {name} {ty}", row.name),
                    Ok(None) => assert_eq!(ne.len(), 1),
                    Err(_) => assert_eq!(row.file_type, FileType::Q1_0),
                }
            }
        }
    }
}

#[test]
fn falcon_has_rules_of_its_own() {
    let facts = ModelFacts { is_falcon: true, ..Dense::new(32, 256, 1024, true, 1).facts };
    let down = |file_type| {
        let mut counters = MixCounters::default();
        let ty = |layer| {
            let name = format!("blk.{layer}.ffn_down.weight");
            tensor_type(file_type, &name, &[1024, 256], &facts, &mut counters).unwrap().unwrap()
        };
        (0..32).map(ty).collect::<Vec<_>>()
    };
    // The first sixteenth, the rest of the first eighth, then all but every third.
    assert_eq!(down(FileType::Q4_K_M)[..7], [T::Q6_K, T::Q6_K, T::Q5_K, T::Q5_K, T::Q4_K, T::Q4_K, T::Q5_K]);
    assert_eq!(down(FileType::Q3_K_M)[..7], [T::Q5_K, T::Q5_K, T::Q4_K, T::Q4_K, T::Q3_K, T::Q3_K, T::Q4_K]);
    assert_eq!(down(FileType::Q3_K_L), [T::Q4_K; 32]);
    assert_eq!(down(FileType::Q4_K_S), [T::Q4_K; 32]);
    assert_eq!(down(FileType::Q5_K_M)[..5], [T::Q6_K, T::Q6_K, T::Q6_K, T::Q6_K, T::Q5_K]);
    let attention = |file_type| one(file_type, "blk.0.attn_output.weight", &[256, 256], &facts);
    assert_eq!(attention(FileType::Q2_K), Some(T::Q2_K));
    assert_eq!(attention(FileType::Q3_K_M), Some(T::Q3_K));
    assert_eq!(attention(FileType::Q3_K_L), Some(T::Q4_K));
    assert_eq!(attention(FileType::IQ2_S), Some(T::IQ3_S));
    assert_eq!(one(FileType::Q4_K_M, "output.weight", &[256, 512], &facts), Some(T::Q8_0));
    assert_eq!(one(FileType::Q4_K_M, "blk.0.attn_qkv.weight", &[256, 512], &facts), Some(T::Q6_K));
}
