//! Snapshots of graphs and plans of small models: changes of a family, a fusion or a kernel choice appear as a diff.
//!
//! `INSTA_UPDATE=always cargo test -p chaski-models --test snapshots` updates them.

mod fixture;
mod hollow;

use chaski_runtime::kernels::{Caps, CoopShape};
use chaski_runtime::plan::{Fusions, Groups, PlanConfig, Planned, Stage, Streaming, fuse, plan_on};
use ggml_format::GgmlType::{self, F16, Q4_0, Q4_K, Q6_K, Q8_0};

/// A graph and its plans.
struct Case {
    /// Name of the snapshot.
    name: &'static str,
    /// The model: a fixture.
    fixture: &'static str,
    /// Types of matrices whose rows are whole blocks; the others and vectors are f32.
    types: fn(&str) -> GgmlType,
    /// Replaced numbers of the fixture.
    sizes: &'static [(u64, u64)],
    device: fn() -> Caps,
    /// Number of such devices that share the layers.
    n_device: usize,
    experts: Streaming,
}

/// A dense llama in Q8_0 on a GPU with subgroups.
const DENSE: Case = Case {
    name: "dense",
    fixture: "llama-plain",
    types: |_| Q8_0,
    sizes: &[],
    device: subgroups,
    n_device: 1,
    experts: Streaming { n_layer: 0, n_slot: 0 },
};

const CASES: &[Case] = &[
    DENSE,
    // The model is too small for a GPU to round results ahead; Mesa's device does.
    Case { name: "dense_rounded", device: mesa, ..DENSE },
    // WebGPU's default limits, no optional feature.
    Case { name: "dense_base", device: Caps::base, ..DENSE },
    Case { name: "dense_coop", types: |_| F16, device: cooperative, ..DENSE },
    Case { name: "dense_alone", types: |_| Q4_0, device: software, ..DENSE },
    // Rows of 384 values are not whole blocks of the K formats.
    Case { name: "mixed_formats", types: q4_k_m, sizes: &[(384, 512)], ..DENSE },
    Case { name: "windows", fixture: "gemma3-dense", types: |_| Q4_0, ..DENSE },
    Case { name: "experts", fixture: "qwen3moe-moe", ..DENSE },
    Case {
        name: "experts_streamed",
        fixture: "qwen3moe-moe",
        experts: Streaming { n_layer: u32::MAX, n_slot: 0 },
        ..DENSE
    },
    Case { name: "dense_over_two", n_device: 2, ..DENSE },
    Case { name: "recurrent", fixture: "qwen35-dense", ..DENSE },
    Case { name: "latents", fixture: "deepseek2-moe", ..DENSE },
];

/// A quantiser's mix: v and down in a larger format in some layers.
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
    Caps { coop: Some(CoopShape::WARP), ..subgroups() }
}

fn mesa() -> Caps {
    Caps { software: true, subgroup: Some((8, 8)), ..subgroups() }
}

fn software() -> Caps {
    Caps { software: true, alone: true, subgroup: Some((4, 4)), ..Caps::base() }
}

impl Case {
    /// The graph, the weights' buffers, and the dispatches of decode and prompt.
    fn text(&self) -> String {
        let (graph, caps) = (fixture::graph(self.fixture, self.types, self.sizes), (self.device)());
        let config = PlanConfig { experts: self.experts, ..PlanConfig::new(2048, 1, 512) };
        let steps = fuse(&graph, Fusions::ALL);
        let devices = vec![&caps; self.n_device];
        let mut groups = Groups::of_devices(&graph, &steps, &devices, &self.experts).expect("groups");
        let made = plan_on(&graph, &steps, &mut groups, &devices, &config).expect("a plan");
        let mut out = format!("# graph\n{graph}\n# weights\n{}", groups.describe(&graph));
        out += "\n# activations\n";
        made.act_words.iter().for_each(|words| out += &format!("words: {words:?}\n"));
        // Plans equal to the previous one are omitted.
        let mut before = String::new();
        let mut list = |title: String, body: &[Stage], segments: &[&[Planned]]| {
            let body: String = body.iter().map(Stage::to_string).collect();
            let rest: String = segments.iter().copied().flatten().map(|p| format!("{p}\n")).collect();
            let lines = body + &rest;
            let text = if lines == before { "as above\n" } else { &lines };
            out += &format!("\n# {title}\n{text}");
            before = lines;
        };
        for p in &made.decode {
            let max_key = p.max_key.min(config.n_ctx);
            list(format!("decode, sequences of at most {max_key} tokens"), &p.body, &[&p.head]);
        }
        // Plans for batches of other sizes differ in the kernels of their products.
        for p in [made.prompt.first(), made.prompt.last()].into_iter().flatten() {
            let head = p.heads.first().expect("a head");
            list(format!("prompt of at most {} tokens", p.max_col), &p.body, &[&head.pick, &head.head]);
        }
        if self.name == DENSE.name {
            let samplers: [&[_]; 5] =
                [&made.take_chosen, &made.adjust, &made.argmax, &made.sample, &made.sample_wide];
            list("sampling".into(), &[], &samplers);
        }
        out
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
