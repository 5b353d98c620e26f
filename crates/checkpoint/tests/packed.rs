//! Weights that other programs packed (`fixtures/schemes`), with the values that these programs give for them.

mod common;
#[path = "common/layout.rs"]
mod layout;

use std::path::Path;

use chaski_checkpoint::Types;
use chaski_checkpoint::safetensors::{TensorEntry, read_header};
use ggml_format::{ByteSource, FileType, GgmlType, MemorySource, dequantize};
use layout::{Layout, MODULE, Stored, WEIGHT, e4m3, floats, folder, opened, opened_module, read, tensor};
use serde_json::{Value, json};

/// The weight of a module that another program packed, with the values that it has there.
fn golden(name: &str) -> Layout {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/schemes").join(name);
    let file = MemorySource::new(name, common::read(&path.with_extension("safetensors")));
    let header = pollster::block_on(read_header(&file)).unwrap();
    let bytes = |t: &TensorEntry| {
        let mut bytes = vec![0; t.n_byte as usize];
        pollster::block_on(file.read_at(t.offset, &mut bytes)).unwrap();
        bytes
    };
    let (values, tensors): (Vec<_>, Vec<_>) = header.tensors.iter().partition(|t| t.name == "values");
    let [values] = values[..] else { panic!("{name}: expected the values") };
    let stored = |t: &&TensorEntry| -> Stored {
        let shape = t.shape.iter().map(|&n| n as usize).collect();
        (t.name.clone().leak(), format!("{:?}", t.dtype).leak(), shape, bytes(t))
    };
    Layout {
        name: name.into(),
        config: serde_json::from_str(&header.metadata["config"]).unwrap(),
        tensors: tensors.iter().map(stored).collect(),
        values: floats(&bytes(values)),
    }
}

/// Bits of all values: equal zeros of both signs differ.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn awq_has_the_values_of_autoawq() {
    let mut layout = golden("awq");
    assert_eq!(layout.config["version"], "gemm");
    assert_eq!(layout.config["modules_to_not_convert"], json!(["lm_head"]));
    assert_eq!(bits(&read(&layout).unwrap()), bits(&layout.values));
    // The kernels of AutoAWQ read zero points whatever the configuration says.
    layout.config["zero_point"] = false.into();
    assert_eq!(bits(&read(&layout).unwrap()), bits(&layout.values));
    layout.tensors.retain(|t| t.0 != "qzeros");
    let missing = format!("tensor `{MODULE}.qzeros`: needed");
    assert!(read(&layout).unwrap_err().contains(&missing));
}

/// Rows and columns of the matrix, and columns of a scale.
const ROWS: usize = 32;
const COLS: usize = 64;
const GROUP: usize = 16;
/// The name of its factor.
const FACTOR: &str = "blk.0.ffn_down.scale";

/// Both programs that write nvfp4.
fn nvfp4() -> [Layout; 2] {
    ["nvfp4-compressed-tensors", "nvfp4-modelopt"].map(golden)
}

/// A tensor of a layout.
fn stored<'l>(layout: &'l mut Layout, name: &str) -> &'l mut Stored {
    layout.tensors.iter_mut().find(|t| t.0 == name).unwrap()
}

/// The number of the matrix, as a factor.
fn factor(layout: &Layout) -> f32 {
    let number = |name: &str| layout.tensors.iter().find(|t| t.0 == name).map(|t| floats(&t.3)[0]);
    number("weight_scale_2").or_else(|| number("weight_global_scale").map(|x| 1.0 / x)).unwrap()
}

/// Codes times scales without the factor, by the definitions of both.
fn unscaled(layout: &Layout) -> Vec<f32> {
    const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let bytes = |names: [&str; 2]| &layout.tensors.iter().find(|t| names.contains(&t.0)).unwrap().3;
    let (codes, scales) = (bytes(["weight_packed", "weight"]), bytes(["weight_scale"; 2]));
    let value = |i: usize| {
        let code = codes[i / 2] >> (i % 2 * 4) & 15;
        let x = E2M1[usize::from(code & 7)] * e4m3(scales[i / GROUP]);
        if code > 7 { -x } else { x }
    };
    (0..codes.len() * 2).map(value).collect()
}

#[test]
fn nvfp4_has_the_values_of_its_programs() {
    for layout in nvfp4() {
        assert_eq!(bits(&read(&layout).unwrap()), bits(&layout.values), "{}", layout.name);
    }
}

#[test]
fn nvfp4_becomes_blocks_and_a_factor_exactly() {
    for layout in nvfp4() {
        let scales = &layout.tensors.iter().find(|t| t.0 == "weight_scale").unwrap().3;
        assert!(scales.iter().any(|&s| s < 8) && scales.contains(&0x7e), "subnormal and largest scales");
        let opened = opened_module(&layout, Types::Auto).unwrap();
        let (ty, blocks) = tensor(&opened, WEIGHT).unwrap();
        assert_eq!(ty, GgmlType::NVFP4);
        let mut found = vec![0.0; ROWS * COLS];
        dequantize(ty, &blocks, &mut found).unwrap();
        assert_eq!(found, unscaled(&layout), "{}", layout.name);
        let (ty, scale) = tensor(&opened, FACTOR).unwrap();
        assert_eq!((ty, floats(&scale)), (GgmlType::F32, vec![factor(&layout)]));
        // The programs divide or multiply the scales first: four roundings differ.
        for (x, expected) in found.iter().zip(&layout.values) {
            let x = x * factor(&layout);
            assert!((x - expected).abs() <= expected.abs() * 2.0 * f32::EPSILON, "{x} {expected}");
        }
        // Other types have the factor in their values.
        let exact = opened_module(&layout, Types::Exact).unwrap();
        assert_eq!(tensor(&exact, FACTOR).unwrap_err(), "no such tensor");
    }
}

#[test]
fn experts_in_nvfp4_keep_their_factors() {
    let mut layout = golden("nvfp4-modelopt");
    let n = 4;
    let expert = |layout: &mut Layout, e: usize| {
        stored(layout, "weight_scale_2").3 = (0.5 + e as f32).to_le_bytes().to_vec();
        layout.tensors.clone()
    };
    let experts: Vec<Vec<Stored>> = (0..n).map(|e| expert(&mut layout, e)).collect();
    let names: Vec<String> =
        (0..n).map(|e| format!("model.layers.0.block_sparse_moe.experts.{e}.w2")).collect();
    let modules: Vec<(&str, &[Stored])> =
        names.iter().map(String::as_str).zip(experts.iter().map(Vec::as_slice)).collect();
    let of = |modules: &[(&str, &[Stored])], types| {
        opened(folder("mixtral.json", &layout.config, modules), types).unwrap()
    };
    let all = of(&modules, Types::Auto);
    let (ty, blocks) = tensor(&all, "blk.0.ffn_down_exps.weight").unwrap();
    assert_eq!(ty, GgmlType::NVFP4);
    let mut found = vec![0.0; n * ROWS * COLS];
    dequantize(ty, &blocks, &mut found).unwrap();
    assert_eq!(found, unscaled(&layout).repeat(n));
    let (_, factors) = tensor(&all, "blk.0.ffn_down_exps.scale").unwrap();
    assert_eq!(floats(&factors), [0.5, 1.5, 2.5, 3.5]);
    let exact = of(&modules, Types::Exact);
    let (_, values) = tensor(&exact, "blk.0.ffn_down_exps.weight").unwrap();
    let expected = (0..n).flat_map(|e| unscaled(&layout).into_iter().map(move |x| x * (0.5 + e as f32)));
    assert!(floats(&values).into_iter().zip(expected).all(|(x, y)| (x - y).abs() <= y.abs() * f32::EPSILON));
    // One expert without codes: none are blocks.
    let three = of(&modules[1..], Types::Auto);
    assert_eq!(tensor(&three, "blk.0.ffn_down_exps.weight").unwrap().0, GgmlType::Q8_0);
    assert_eq!(tensor(&three, "blk.0.ffn_down_exps.scale").unwrap_err(), "no such tensor");
}

#[test]
fn rows_of_half_a_block_in_nvfp4_have_their_values() {
    let module = "model.layers.0.self_attn.k_proj";
    let mut layout = golden("nvfp4-compressed-tensors");
    for name in ["weight_packed", "weight_scale"] {
        let (_, _, shape, bytes) = stored(&mut layout, name);
        let n = shape[1];
        *bytes = bytes.chunks(n).flat_map(|row| &row[..n / 2]).copied().collect();
        shape[1] = n / 2;
    }
    let of =
        |types| opened(folder("mistral.json", &layout.config, &[(module, &layout.tensors)]), types).unwrap();
    assert_eq!(tensor(&of(Types::Auto), "blk.0.attn_k.weight").unwrap().0, GgmlType::Q8_0);
    let (_, found) = tensor(&of(Types::Mix(FileType::F32)), "blk.0.attn_k.weight").unwrap();
    // Rows of heads of 16, whose halves become neighbours.
    let row = |r: usize| &layout.values[(r / 16 * 16 + r % 2 * 8 + r % 16 / 2) * COLS..][..COLS / 2];
    assert_eq!(floats(&found), (0..ROWS).flat_map(row).copied().collect::<Vec<f32>>());
}

#[test]
fn embeddings_in_nvfp4_have_their_factor_in_their_values() {
    let layout = golden("nvfp4-modelopt");
    // The embeddings of the class are twice as many rows of half the length.
    let mut halves = layout.tensors.clone();
    for (name, _, shape, _) in &mut halves {
        if matches!(*name, "weight" | "weight_scale") {
            *shape = vec![shape[0] * 2, shape[1] / 2];
        }
    }
    let folder = folder("mistral.json", &layout.config, &[("model.embed_tokens", &halves)]);
    let opened = opened(folder, Types::Exact).unwrap();
    let (_, found) = tensor(&opened, "token_embd.weight").unwrap();
    assert_eq!(bits(&floats(&found)), bits(&layout.values));
    assert_eq!(tensor(&opened, "token_embd.scale").unwrap_err(), "no such tensor");
}

#[test]
fn hf_quant_config_is_the_quantisation_of_modelopt() {
    let layout = golden("nvfp4-modelopt");
    let open = |json: Value| {
        let file = MemorySource::new("hf_quant_config.json", json.to_string().into_bytes());
        let folder = folder("mistral.json", &Value::Null, &[(MODULE, &layout.tensors)]);
        opened(folder.with([("hf_quant_config.json".to_owned(), file)]), Types::Auto)
    };
    let found = open(
        json!({"quantization": {"quant_algo": "NVFP4", "group_size": 16, "kv_cache_quant_algo": "FP8"}}),
    );
    assert_eq!(tensor(&found.unwrap(), WEIGHT).unwrap().0, GgmlType::NVFP4);
    let error = open(json!({"quantization": {"quant_algo": "NVFP4_AWQ"}})).unwrap_err();
    assert!(error.contains(r#"quant_algo "NVFP4_AWQ""#), "{error}");
    // A file about the cache alone: the weight is one of no scheme.
    let error =
        open(json!({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})).unwrap_err();
    assert!(error.contains("down_proj.weight"), "{error}");
}

#[test]
fn nvfp4_that_ggml_cannot_have_is_refused() {
    let error = |change: &dyn Fn(&mut Layout)| {
        let mut layout = golden("nvfp4-modelopt");
        change(&mut layout);
        match opened_module(&layout, Types::Auto) {
            Ok(opened) => tensor(&opened, WEIGHT).and(tensor(&opened, FACTOR)).unwrap_err(),
            Err(e) => e,
        }
    };
    let scale = |code: u8| error(&move |layout| stored(layout, "weight_scale").3[5] = code);
    assert!(scale(0x7f).ends_with("expected scales of nvfp4 from 0 to 448, found the code 0x7f"));
    assert!(scale(0xb8).ends_with("found the code 0xb8"));
    let nan = error(&|layout| stored(layout, "weight_scale_2").3 = f32::NAN.to_le_bytes().to_vec());
    assert!(nan.ends_with("expected a positive scale of a matrix in nvfp4, found NaN"), "{nan}");
    let missing = error(&|layout| layout.tensors.retain(|t| t.0 != "weight_scale_2"));
    assert!(missing.contains("down_proj.weight_scale_2`: needed"), "{missing}");
    let group = error(&|layout| layout.config["group_size"] = 32.into());
    assert!(group.contains("group_size Some(32): expected NVFP4"), "{group}");
    let wide = error(&|layout| stored(layout, "weight_scale").2 = vec![ROWS * 2, COLS / GROUP / 2]);
    assert!(wide.contains("expected bytes of codes and a scale per 16 values"), "{wide}");
    let mut layout = golden("nvfp4-compressed-tensors");
    layout.config["config_groups"]["group_0"]["weights"]["symmetric"] = false.into();
    let uneven = read(&layout).unwrap_err();
    assert!(uneven.contains("symmetric nvfp4-pack-quantized of groups of 16"), "{uneven}");
}
