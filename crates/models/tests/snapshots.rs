//! Graphs and plans of small models as text: a change of a family, a fusion or a kernel choice shows as a diff.
//!
//! `INSTA_UPDATE=always cargo test -p chaski-models --test snapshots` renews them.

mod hollow;

use std::path::Path;

use chaski_graph::Graph;
use chaski_runtime::kernels::{Caps, Tuning};
use chaski_runtime::plan::{Fusions, Groups, PlanConfig, Planned, Streaming, fuse, plan};
use ggml_format::GgmlType::{self, F16, F32, Q4_0, Q4_K, Q6_K, Q8_0};
use ggml_format::{GgufWriter, OwnedValue};
use serde_json::Value;

/// A graph and its plans.
struct Case {
    /// Name of the snapshot.
    name: &'static str,
    /// The model: a fixture.
    fixture: &'static str,
    /// Types of matrices whose rows are whole blocks; the others and vectors are f32.
    types: fn(&str) -> GgmlType,
    /// Numbers of the fixture that are others here.
    sizes: &'static [(u64, u64)],
    device: fn() -> Caps,
    experts: Streaming,
}

/// A dense llama in Q8_0 on a GPU with subgroups.
const DENSE: Case = Case {
    name: "dense",
    fixture: "llama-plain",
    types: |_| Q8_0,
    sizes: &[],
    device: subgroups,
    experts: Streaming { n_layer: 0, n_slot: 0 },
};

const CASES: &[Case] = &[
    DENSE,
    // WebGPU's default limits, no optional feature.
    Case { name: "dense_base", device: Caps::base, ..DENSE },
    Case { name: "dense_coop", types: |_| F16, device: cooperative, ..DENSE },
    Case { name: "dense_alone", types: |_| Q4_0, device: software, ..DENSE },
    // Rows of 384 values are no whole blocks of the K formats.
    Case { name: "mixed_formats", types: q4_k_m, sizes: &[(384, 512)], ..DENSE },
    Case { name: "windows", fixture: "gemma3-dense", types: |_| Q4_0, ..DENSE },
    Case { name: "experts", fixture: "qwen3moe-moe", ..DENSE },
    Case {
        name: "experts_streamed",
        fixture: "qwen3moe-moe",
        experts: Streaming { n_layer: u32::MAX, n_slot: 0 },
        ..DENSE
    },
    Case { name: "recurrent", fixture: "qwen35-dense", ..DENSE },
    Case { name: "latents", fixture: "deepseek2-moe", ..DENSE },
];

/// As quantizers mix them: v and down in a larger format in some layers.
fn q4_k_m(name: &str) -> GgmlType {
    let larger = ["blk.0.attn_v.", "blk.0.ffn_down.", "output.", "token_embd."];
    if larger.iter().any(|part| name.starts_with(part)) { Q6_K } else { Q4_K }
}

fn subgroups() -> Caps {
    Caps {
        subgroup: Some((32, 32)),
        f16: true,
        int_dot: true,
        coherent: true,
        max_threads: 1024,
        max_workgroup_bytes: 49152,
        max_binding_bytes: (1 << 31) - 4,
        ..Caps::base()
    }
}

fn cooperative() -> Caps {
    Caps { coop: true, ..subgroups() }
}

fn software() -> Caps {
    Caps { software: true, alone: true, subgroup: Some((4, 4)), ..Caps::base() }
}

impl Case {
    fn graph(&self) -> Graph {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/archs");
        let text = std::fs::read_to_string(path.join(format!("{}.json", self.fixture))).expect("a fixture");
        let spec: Value = serde_json::from_str(&text).expect("a fixture");
        let size = |n: u64| self.sizes.iter().find(|s| s.0 == n).map_or(n, |s| s.1);
        let mut w = GgufWriter::new();
        for (key, entry) in spec["kv"].as_object().expect("kv") {
            // The graph depends on the size of the vocabulary alone.
            if !key.starts_with("tokenizer.") {
                w.set(key, value(entry, size)).expect("metadata");
            }
        }
        w.set("tokenizer.ggml.model", "none").expect("metadata");
        let mut n_byte = 0;
        for tensor in spec["tensors"].as_array().expect("tensors") {
            let name = tensor["name"].as_str().expect("a name");
            let ne = tensor["shape"].as_array().expect("a shape").iter();
            let ne: Vec<u64> = ne.map(|n| size(n.as_u64().expect("a size"))).collect();
            // The fixtures test them; here they would hide the model.
            if name.ends_with("scale") {
                continue;
            }
            let chosen = (self.types)(name);
            let is_matrix = ne.len() > 1
                && !["norm", "gate_inp"].iter().any(|n| name.contains(n))
                && ne[0] % chosen.block_len() as u64 == 0;
            let ty = if is_matrix { chosen } else { F32 };
            w.tensor(name, &ne, ty).expect("a tensor");
            let rows = ne[1..].iter().product::<u64>();
            n_byte += (ty.row_bytes(ne[0]).expect("a row") * rows).next_multiple_of(32);
        }
        hollow::graph(w, n_byte, 256)
    }

    /// The graph, the weights' buffers, and the dispatches of decode and prompt.
    fn text(&self) -> String {
        let (graph, caps) = (self.graph(), (self.device)());
        let config = PlanConfig {
            n_ctx: 2048,
            n_seq: 1,
            max_col: 512,
            page: 64,
            kv: (F16, F16),
            f16_tiles: false,
            inputs: None,
            tuning: Tuning::default(),
            pool: None,
            ring: 64,
            fusions: Fusions::ALL,
            experts: self.experts,
        };
        let steps = fuse(&graph, Fusions::ALL);
        let mut groups = Groups::new(&graph, &steps, &caps, &self.experts).expect("groups");
        let made = plan(&graph, &steps, &mut groups, &caps, &config).expect("a plan");
        let mut out = format!("# graph\n{graph}\n# weights\n{}", groups.describe(&graph));
        out += &format!("\n# activations\nwords: {:?}\n", made.act_words);
        // Plans that are like the one before need no second reading.
        let mut before = String::new();
        let mut list = |title: String, segments: &[&[Planned]]| {
            let lines: String = segments.iter().copied().flatten().map(|p| format!("{p}\n")).collect();
            let text = if lines == before { "as above\n" } else { &lines };
            out += &format!("\n# {title}\n{text}");
            before = lines;
        };
        for p in &made.decode {
            let max_key = p.max_key.min(config.n_ctx);
            list(format!("decode, sequences of at most {max_key} tokens"), &[&p.body, &p.head]);
        }
        // Plans for batches of other sizes differ in the kernels of their products.
        for p in [made.prompt.first(), made.prompt.last()].into_iter().flatten() {
            let head = p.heads.first().expect("a head");
            list(format!("prompt of at most {} tokens", p.max_col), &[&p.body, &head.pick, &head.head]);
        }
        if self.name == DENSE.name {
            list("sampling".into(), &[&made.take_chosen, &made.adjust, &made.argmax, &made.sample]);
        }
        out
    }
}

/// A metadata value in the type that the fixture names.
fn value(entry: &Value, size: impl Fn(u64) -> u64) -> OwnedValue {
    let v = &entry["value"];
    let int = |v: &Value| v.as_i64().expect("a number") as i32;
    let natural = |v: &Value| size(v.as_u64().expect("a number")) as u32;
    let list = || v.as_array().expect("an array").iter();
    match entry["type"].as_str().expect("type") {
        "uint32" => natural(v).into(),
        "int32" => int(v).into(),
        "float32" => (v.as_f64().expect("a number") as f32).into(),
        "bool" => v.as_bool().expect("a truth value").into(),
        "string" => v.as_str().expect("a text").to_owned().into(),
        "array:uint32" => list().map(natural).collect::<Vec<_>>().into(),
        "array:int32" => list().map(int).collect::<Vec<_>>().into(),
        other => panic!("these fixtures have no values of type {other}"),
    }
}

#[test]
fn graphs_and_plans_match_their_snapshots() {
    for case in CASES {
        insta::with_settings!({ description => case.fixture, omit_expression => true }, {
            insta::assert_snapshot!(case.name, case.text());
        });
    }
}
