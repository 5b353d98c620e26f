//! Plans of whole models, without a device: the steps of a graph, the placement of its weights, and that dispatches
//! cover every row once and stay within the device's limits.

#[path = "../hollow/mod.rs"]
mod hollow;
mod moe;

use std::collections::{BTreeMap, HashMap, HashSet};

use chaski_graph::Graph;
use chaski_kernels::check::{Workgroup, workgroup};
use chaski_kernels::step;
use chaski_runtime::kernels::{Caps, CoopShape, KV_TYPES, QKV_PAIRS};
use chaski_runtime::plan::{
    BufferSlot, BufferUsage, Columns, Form, Fusions, Groups, Growth, Part, PlanConfig, Planned, Segments,
    Slot, Step, Steps, Streaming, dispatches, fuse, plan,
};
use ggml_format::GgmlType::{self, F16, F32, IQ1_S, Q4_0, Q4_K, Q6_K, Q8_0};
use ggml_format::{GgufWriter, OwnedValue};

/// The sizes and formats of a model.
#[derive(Copy, Clone)]
struct Shape {
    name: &'static str,
    n_embd: u32,
    n_head: u32,
    n_kv: u32,
    d: u32,
    n_ff: u32,
    n_layer: u32,
    n_vocab: u32,
    /// Embeddings, most matrices, v and down, output (`None`: the embeddings).
    types: [Option<GgmlType>; 4],
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "storyteller, Q4_K_M",
        n_embd: 256,
        n_head: 8,
        n_kv: 4,
        d: 32,
        n_ff: 768,
        n_layer: 8,
        n_vocab: 2048,
        types: [Some(Q4_K), Some(Q4_K), Some(Q6_K), Some(Q6_K)],
    },
    Shape {
        name: "1B, Q4_K_M, tied",
        n_embd: 2048,
        n_head: 32,
        n_kv: 8,
        d: 64,
        n_ff: 8192,
        n_layer: 16,
        n_vocab: 128_256,
        types: [Some(Q6_K), Some(Q4_K), Some(Q6_K), None],
    },
    Shape {
        name: "8B, Q8_0",
        n_embd: 4096,
        n_head: 32,
        n_kv: 8,
        d: 128,
        n_ff: 14336,
        n_layer: 32,
        n_vocab: 128_256,
        types: [Some(Q8_0); 4],
    },
    Shape {
        name: "7B, f16, every head its own keys",
        n_embd: 4096,
        n_head: 32,
        n_kv: 32,
        d: 128,
        n_ff: 11008,
        n_layer: 32,
        n_vocab: 32000,
        types: [Some(F16); 4],
    },
    Shape {
        name: "storyteller, IQ1_S: a table in every binding",
        n_embd: 256,
        n_head: 8,
        n_kv: 4,
        d: 32,
        n_ff: 768,
        n_layer: 8,
        n_vocab: 2048,
        types: [Some(Q4_K), Some(IQ1_S), Some(IQ1_S), Some(Q6_K)],
    },
    Shape {
        name: "1.1B, Q4_0",
        n_embd: 2048,
        n_head: 32,
        n_kv: 4,
        d: 64,
        n_ff: 5632,
        n_layer: 22,
        n_vocab: 32000,
        types: [Some(Q4_0), Some(Q4_0), Some(Q4_0), Some(Q6_K)],
    },
    Shape {
        name: "260K, f32, sizes that are no powers of two",
        n_embd: 64,
        n_head: 8,
        n_kv: 4,
        d: 8,
        n_ff: 172,
        n_layer: 5,
        n_vocab: 511,
        types: [Some(F32), Some(F32), Some(F32), None],
    },
];

impl Shape {
    fn graph(&self, n_ctx: u32) -> Graph {
        self.graph_of(n_ctx, None)
    }

    /// The graph with MoE feed-forward parts: number of experts, experts per token.
    fn graph_of(&self, n_ctx: u32, experts: Option<(u32, u32)>) -> Graph {
        let mut w = GgufWriter::new();
        let n = |v: u32| OwnedValue::from(v);
        let keys = [
            ("general.architecture", "llama".into()),
            ("llama.vocab_size", n(self.n_vocab)),
            ("llama.context_length", n(8192)),
            ("llama.embedding_length", n(self.n_embd)),
            ("llama.block_count", n(self.n_layer)),
            ("llama.feed_forward_length", n(self.n_ff)),
            ("llama.attention.head_count", n(self.n_head)),
            ("llama.attention.head_count_kv", n(self.n_kv)),
            ("llama.attention.key_length", n(self.d)),
            ("llama.attention.value_length", n(self.d)),
            ("tokenizer.ggml.model", "none".into()),
        ];
        for (key, value) in keys {
            w.set(key, value).expect("metadata");
        }
        for (key, value) in
            [("expert_count", experts.map(|e| e.0)), ("expert_used_count", experts.map(|e| e.1))]
        {
            w.set(&format!("llama.{key}"), n(value.unwrap_or(0))).expect("metadata");
        }
        let [table, most, some, head] = self.types;
        let (e, q, kv, f) = (self.n_embd, self.n_head * self.d, self.n_kv * self.d, self.n_ff);
        let mut len = 0;
        let mut tensor = |name: &str, ne: &[u32], ty: Option<GgmlType>| {
            let Some(ty) = ty else { return };
            let ne: Vec<u64> = ne.iter().map(|n| u64::from(*n)).collect();
            w.tensor(name, &ne, ty).expect("a tensor");
            let rows = ne[1..].iter().product::<u64>();
            len += (ty.row_bytes(ne[0]).expect("a row") * rows).next_multiple_of(32);
        };
        tensor("token_embd.weight", &[e, self.n_vocab], table);
        tensor("output_norm.weight", &[e], Some(F32));
        tensor("output.weight", &[e, self.n_vocab], head);
        for i in 0..self.n_layer {
            let name = |part: &str| format!("blk.{i}.{part}.weight");
            tensor(&name("attn_norm"), &[e], Some(F32));
            tensor(&name("attn_q"), &[e, q], most);
            tensor(&name("attn_k"), &[e, kv], most);
            tensor(&name("attn_v"), &[e, kv], some);
            tensor(&name("attn_output"), &[q, e], most);
            tensor(&name("ffn_norm"), &[e], Some(F32));
            let Some((n_expert, _)) = experts else {
                tensor(&name("ffn_gate"), &[e, f], most);
                tensor(&name("ffn_up"), &[e, f], most);
                tensor(&name("ffn_down"), &[f, e], some);
                continue;
            };
            tensor(&name("ffn_gate_inp"), &[e, n_expert], Some(F32));
            tensor(&name("ffn_gate_exps"), &[e, f, n_expert], most);
            tensor(&name("ffn_up_exps"), &[e, f, n_expert], most);
            tensor(&name("ffn_down_exps"), &[f, e, n_expert], some);
        }
        hollow::graph(w, len, n_ctx)
    }
}

fn devices() -> Vec<(&'static str, Caps)> {
    let base = Caps::base();
    let sg = Caps {
        subgroup: Some((32, 32)),
        f16: true,
        int_dot: true,
        coherent: true,
        max_threads: 1024,
        max_workgroup_bytes: 49152,
        max_binding_bytes: (1 << 31) - 4,
        ..Caps::base()
    };
    vec![
        ("base", base.clone()),
        ("base, software", Caps { software: true, ..base.clone() }),
        ("alone", Caps { software: true, alone: true, subgroup: Some((4, 4)), ..base }),
        ("sg", sg.clone()),
        ("sg of 8 to 32", Caps { subgroup: Some((8, 32)), coherent: false, ..sg.clone() }),
        ("sg and cooperative matrices", Caps { coop: Some(CoopShape::WARP), ..sg }),
    ]
}

fn config(n_ctx: u32) -> PlanConfig {
    PlanConfig::new(n_ctx, 1, 512.min(n_ctx))
}

fn deterministic() -> PlanConfig {
    let max_col = PlanConfig::MAX_DETERMINISTIC;
    PlanConfig { n_seq: 4, max_col, deterministic: true, ..config(512) }
}

struct Made {
    graph: Graph,
    steps: Steps,
    groups: Groups,
    segments: Segments,
}

fn make(shape: &Shape, caps: &Caps, config: &PlanConfig) -> Made {
    make_of(shape, None, caps, config)
}

fn make_of(shape: &Shape, experts: Option<(u32, u32)>, caps: &Caps, config: &PlanConfig) -> Made {
    let graph = shape.graph_of(config.n_ctx, experts);
    let steps = fuse(&graph, Fusions::ALL);
    let mut groups = Groups::new(&graph, &steps, caps, &Streaming::default()).expect("groups");
    let segments =
        plan(&graph, &steps, &mut groups, caps, config).unwrap_or_else(|e| panic!("{}: {e}", shape.name));
    Made { graph, steps, groups, segments }
}

impl Made {
    /// Kinds of the steps: rules and operations of a form, or the name of an operation.
    fn kinds(&self) -> Vec<&'static str> {
        self.steps.list.iter().map(|s| self.kind(s)).collect()
    }

    fn kind(&self, step: &Step) -> &'static str {
        let Step::Fused(f) = step else { return self.graph.nodes[step.nodes()[0]].op.name() };
        match f.form {
            Form::Project { norm: None, add: false, .. } => "project",
            Form::Project { norm: None, add: true, .. } => "project+add",
            Form::Project { norm: Some(_), add: false, .. } => "norm+project",
            Form::Project { norm: Some(_), add: true, .. } => "norm+project+add",
            Form::Products { .. } => "norm+products",
            Form::Gated { norm: None, .. } => "gated",
            Form::Gated { norm: Some(_), .. } => "norm+gated",
            Form::Qkv { norm: None, .. } => "qkv",
            Form::Qkv { norm: Some(_), .. } => "norm+qkv",
            Form::GatedId { norm: None, .. } => "gated by experts",
            Form::GatedId { norm: Some(_), .. } => "norm+gated by experts",
            Form::ProjectId { .. } => "norm+project by experts",
            Form::ReduceId { add: false, .. } => "project+sum of experts",
            Form::ReduceId { add: true, .. } => "project+sum of experts+add",
            Form::RowNorm { .. } => "norm of rows",
            Form::AddScaled { .. } => "scale+add",
            Form::GatedNorm { .. } => "gate+add",
        }
    }

    /// The group of the output matrix.
    fn output(&self) -> Option<usize> {
        self.steps.list.iter().rev().find_map(|s| match s {
            Step::Fused(f) => match f.form {
                Form::Project { part, .. } => Some(self.groups.home(part.weight).0),
                _ => None,
            },
            Step::Node(_) => None,
        })
    }
}

const LAYER: [&str; 5] = ["norm+qkv", "attention", "project+add", "norm+gated", "project+add"];

#[test]
fn a_llama_becomes_five_steps_a_layer() {
    for shape in SHAPES {
        let made = make(shape, &devices()[3].1, &config(512));
        let found: Vec<&str> = made.kinds();
        let mut expected = vec!["embed", "input"];
        (0..shape.n_layer).for_each(|_| expected.extend(LAYER));
        expected.push("norm+project");
        assert_eq!(found, expected, "{}", shape.name);
    }
}

/// Maximum dispatches of a dense layer, with a plain and with a quantised cache, on devices whose kernels cannot merge
/// their parts: (up to this many tokens, dispatches); elsewhere the first. Lower these with an improvement, never raise
/// them.
const PER_LAYER: [(u32, [usize; 2]); 2] = [(128, [5, 6]), (u32::MAX, [6, 7])];

/// Every cache type, and different types for keys and values.
fn caches() -> Vec<(GgmlType, GgmlType)> {
    KV_TYPES.iter().map(|ty| (*ty, *ty)).chain([(F16, Q4_0), (Q8_0, F32), (Q8_0, Q4_0)]).collect()
}

fn is_plain(ty: GgmlType) -> bool {
    matches!(ty, F32 | F16 | GgmlType::BF16)
}

/// Parts of a dense layer for a token, in order.
fn parts_of_layer(merge: bool, blocks: bool) -> Vec<&'static str> {
    let mut parts = vec!["qkv"];
    parts.extend(blocks.then_some("rope_kv"));
    parts.push("attention");
    parts.extend(merge.then_some("attention"));
    parts.extend(["project", "gate_up", "project"]);
    parts
}

#[test]
fn a_token_takes_five_or_six_dispatches_a_layer() {
    for shape in SHAPES {
        // Bindings that hold every tensor: another test covers shards.
        for (device, caps) in devices() {
            let caps = Caps { max_binding_bytes: u64::from(u32::MAX), ..caps };
            // Blocks have 32 channels.
            let mut kvs = caches();
            kvs.retain(|(k, v)| shape.d % 32 == 0 || is_plain(*k) && is_plain(*v));
            // The longest context includes the plans of all shorter ones.
            let others = [100, 512].map(|n_ctx| (n_ctx, (F16, F16)));
            for (n_ctx, kv) in kvs.iter().map(|kv| (8192, *kv)).chain(others) {
                let blocks = !is_plain(kv.0) || !is_plain(kv.1);
                let made = make(shape, &caps, &PlanConfig { kv, ..config(n_ctx) });
                let case = format!("{}, {device}, context {n_ctx}, cache {kv:?}", shape.name);
                let plans = &made.segments.decode;
                assert!(plans.iter().is_sorted_by(|a, b| a.max_key < b.max_key), "{case}");
                assert!(plans.last().is_some_and(|p| p.max_key >= n_ctx), "{case}: some token has no plan");
                for p in plans {
                    let body: Vec<&str> = dispatches(&p.body).map(|d| d.part).collect();
                    assert_eq!(body[0], "embed", "{case}");
                    let layers = &body[1..];
                    let per_layer = layers.len() / shape.n_layer as usize;
                    assert_eq!(per_layer * shape.n_layer as usize, layers.len(), "{case}");
                    let row = |(max_key, _): &&(u32, [usize; 2])| caps.coherent || p.max_key <= *max_key;
                    let limit = PER_LAYER.iter().find(row).expect("a row").1[usize::from(blocks)];
                    assert!(
                        per_layer <= limit,
                        "{case}: {per_layer} dispatches a layer, {limit} are allowed"
                    );
                    let merge = per_layer == PER_LAYER[1].1[usize::from(blocks)];
                    let expected = parts_of_layer(merge, blocks);
                    for layer in layers.chunks(per_layer) {
                        assert_eq!(layer, expected, "{case}");
                    }
                    let head: Vec<&str> = p.head.iter().map(|d| d.part).collect();
                    assert_eq!(head, ["head"], "{case}");
                }
            }
        }
    }
}

#[test]
fn formats_of_a_mix_take_no_dispatch_more() {
    let types = |name: &str| {
        let ty = ggml_format::TYPES.iter().find(|t| t.name == name);
        ty.unwrap_or_else(|| panic!("no type {name}")).ty
    };
    for (qk, v) in QKV_PAIRS {
        let (qk, v) = (types(qk), types(v));
        let shape = Shape { n_layer: 1, types: [Some(Q4_K), Some(qk), Some(v), None], ..SHAPES[0] };
        let caches = [(F16, F16), (Q8_0, Q8_0), (F32, Q4_0)];
        let cases = devices().into_iter().flat_map(|d| caches.map(|kv| (d.clone(), kv)));
        for ((device, caps), kv) in cases {
            let blocks = !is_plain(kv.0) || !is_plain(kv.1);
            let made = make(&shape, &caps, &PlanConfig { kv, ..config(100) });
            for p in &made.segments.decode {
                let found: Vec<&str> = dispatches(&p.body).skip(1).map(|d| d.part).collect();
                let case = format!("q and k {qk}, v {v}, {device}, cache {kv:?}");
                assert_eq!(found, parts_of_layer(false, blocks), "{case}");
            }
        }
    }
}

/// Limits that split tensors, and chunks small enough that activations still fit.
fn limits(shape: &Shape) -> Vec<(u64, PlanConfig)> {
    let whole = [u64::from(u32::MAX), 128 << 20].map(|b| (b, config(512)));
    let small = if shape.n_embd <= 256 { vec![64 << 10, 100_000, 300_000] } else { vec![2 << 20, 3_000_001] };
    let small = small.into_iter().map(|b| (b, PlanConfig { max_col: 8, ..config(64) }));
    whole.into_iter().chain(small).chain([(u32::MAX.into(), deterministic())]).collect()
}

/// Every case: name, device, and plan.
fn every_case(mut check: impl FnMut(&str, &Caps, &PlanConfig, &Made)) {
    for shape in SHAPES {
        for (device, caps) in devices() {
            for (max_binding_bytes, config) in limits(shape) {
                let caps = Caps { max_binding_bytes, ..caps.clone() };
                let made = make(shape, &caps, &config);
                let case = format!("{}, {device}, bindings of {max_binding_bytes}", shape.name);
                check(&case, &caps, &config, &made);
            }
        }
    }
}

#[test]
fn weights_that_share_an_input_lie_together_and_shards_hold_every_row_once() {
    let mut n_split = 0;
    every_case(|case, caps, _, made| {
        let mut homes = vec![0; made.graph.weights.len()];
        for (i, g) in made.groups.groups.iter().enumerate() {
            let mut row = 0;
            for (id, first) in &g.members {
                let w = &made.graph.weights[id.0];
                assert_eq!(*first, row, "{case}: {} begins where the one before it ends", w.name);
                assert_eq!((w.ty, w.n_col), (g.format.ty, g.n_col), "{case}: {}", w.name);
                assert_eq!(made.groups.home(*id), (i, row), "{case}: {}", w.name);
                homes[id.0] += 1;
                row += w.n_row;
            }
            assert_eq!(row, g.n_row, "{case}: rows of the members");
            let mut at = 0;
            for s in &g.shards {
                assert_eq!(s.row0, at, "{case}: shards follow one another");
                assert!(s.n_row > 0 && s.row0 % 4 == 0, "{case}: rows {} and {}", s.row0, s.n_row);
                assert!(g.layout(s).n_byte <= caps.max_binding_bytes, "{case}: {} bytes", g.layout(s).n_byte);
                at += s.n_row;
            }
            assert_eq!(at, g.n_row, "{case}: rows of the shards");
            n_split += usize::from(g.shards.len() > 1);
        }
        for (w, n) in made.graph.weights.iter().zip(homes) {
            assert_eq!(n, usize::from(w.n_row > 1), "{case}: groups that hold {}", w.name);
        }
        // Unsplit, matrices with a common input are one binding.
        if caps.max_binding_bytes == u64::from(u32::MAX) {
            for s in &made.steps.list {
                let Step::Fused(f) = s else { continue };
                match &f.form {
                    Form::Gated { gate, up, .. } => {
                        let (g, u) = (made.groups.home(gate.weight), made.groups.home(up.weight));
                        assert_eq!(g.0, u.0, "{case}: gate and up");
                    }
                    Form::Qkv { parts, .. } => {
                        let [q, k, v] = &parts[..] else { panic!("{case}: {} parts", parts.len()) };
                        let home = |p: &Part| made.groups.home(p.weight).0;
                        assert_eq!(home(q), home(k), "{case}: q and k");
                        let ty = |p: &Part| made.graph.weights[p.weight.0].ty;
                        assert_eq!(home(k) == home(v), ty(k) == ty(v), "{case}: k and v");
                    }
                    _ => {}
                }
            }
        }
    });
    assert!(n_split > 100, "{n_split} groups were split");
}

fn constant(p: &Planned, name: &str) -> Option<u32> {
    p.dispatch.constants.iter().find(|(n, _)| *n == name).map(|(_, v)| *v as i64 as u32)
}

fn bound(p: &Planned, name: &str) -> Option<Slot> {
    p.bind.iter().find(|(n, _)| *n == name).map(|(_, s)| *s)
}

fn op(p: &Planned) -> &'static str {
    p.dispatch.kernel.name.split('.').next().unwrap_or_default()
}

/// Runs of rows: first, and number.
type Rows = Vec<(u32, u32)>;

/// All sequences of dispatches of a batch, and the columns of each.
fn runs(s: &Segments) -> Vec<(&'static str, Vec<&Planned>, u32)> {
    let mut out = Vec::new();
    for p in &s.prompt {
        for h in &p.heads {
            let name = if h.max_row == 1 { "prompt" } else { "logits of some" };
            out.push((name, dispatches(&p.body).chain(&h.pick).chain(&h.head).collect(), p.max_col));
        }
    }
    for d in &s.decode {
        out.push(("decode", dispatches(&d.body).chain(&d.head).collect(), 1));
    }
    out
}

#[test]
fn every_run_reads_every_weight_once_and_writes_every_row_once() {
    every_case(|case, _, _, made| {
        let head = made.graph.logits.expect("logits");
        for (what, run, _) in runs(&made.segments) {
            let case = format!("{case}, {what}");
            let mut products: BTreeMap<(usize, usize), u32> = BTreeMap::new();
            let mut table = Rows::new();
            // Products of one step are consecutive: (input, output, rows written).
            let mut steps: Vec<(Slot, Slot, Rows)> = Vec::new();
            let mut closed = true;
            for (i, p) in run.iter().enumerate() {
                let shard = |name| match bound(p, name) {
                    Some(Slot::Weights { group, shard }) => Some((group, shard)),
                    _ => None,
                };
                match op(p) {
                    "get_rows" if p.part == "embed" => {
                        let (row0, n) = (constant(p, "ROW0"), constant(p, "ROWS"));
                        table.push((row0.expect("ROW0"), n.expect("ROWS")));
                    }
                    "mul_mat_vec" | "mul_mat_few" | "mul_mat" | "mul_mat_coop" | "mul_mat_id"
                    | "mul_mat_alone" => {
                        for s in [shard("w"), shard("w2")].into_iter().flatten() {
                            *products.entry(s).or_default() += 1;
                        }
                        // The partial sums of split-K are reduced immediately.
                        let in_ranges = op(p) != "mul_mat_vec" && constant(p, "PART").is_some();
                        let end = if in_ranges { run[i + 1] } else { p };
                        // The norm behind them may do it.
                        let with_norm = in_ranges && op(end) == "mul_mat_join_norm";
                        let (parts, result, n_row) =
                            if with_norm { ("parts", "x", "K") } else { ("x", "y", "M") };
                        if in_ranges {
                            assert!(with_norm || op(end) == "mul_mat_join", "{case}: {}", op(end));
                            assert_eq!(bound(end, parts), bound(p, "y"), "{case}: ranges of K");
                        }
                        let (x, y) = (bound(p, "x").expect("x"), bound(end, result).expect("y"));
                        assert_ne!(x, y, "{case}: {} works in place", p.dispatch.kernel.name);
                        let rows = (constant(end, "Y0").unwrap_or(0), constant(end, n_row).expect("rows"));
                        match steps.last_mut() {
                            Some(s) if !closed && (s.0, s.1) == (x, y) && rows.0 > 0 => s.2.push(rows),
                            _ => steps.push((x, y, vec![rows])),
                        }
                    }
                    _ => {}
                }
                closed = !op(p).starts_with("mul_mat");
            }
            let tiles = |rows: &mut Rows| {
                rows.sort_unstable();
                rows.iter().try_fold(0, |at, (row, n)| (at == *row).then_some(at + n))
            };
            for (.., rows) in &mut steps {
                assert!(tiles(rows).is_some(), "{case}: rows {rows:?} do not follow one another");
            }
            let n_vocab = made.graph.width(head);
            let last = steps.last_mut().map(|s| tiles(&mut s.2));
            assert_eq!(last, Some(Some(n_vocab)), "{case}: logits");
            assert_eq!(tiles(&mut table), Some(n_vocab), "{case}: embeddings");
            // All shards of every group, each once; a table that is not the output is only looked up.
            let output = made.output();
            for (i, g) in made.groups.groups.iter().enumerate() {
                let name = &made.graph.weights[g.members[0].0.0].name;
                let times = u32::from(name != "token_embd.weight" || output == Some(i));
                for shard in 0..g.shards.len() {
                    let n = products.remove(&(i, shard)).unwrap_or(0);
                    assert_eq!(n, times, "{case}: products with shard {shard} of {name}");
                }
            }
            assert!(products.is_empty(), "{case}: {products:?}");
        }
    });
}

/// (reads `x` as f16, writes its result as f16), from the kernel's name and constants.
fn halves(p: &Planned) -> (bool, bool) {
    let words: Vec<&str> = p.dispatch.kernel.name.split('.').collect();
    match words[0] {
        "mul_mat_coop" => (words[2] == "f16", false),
        "rms_norm" | "glu" | "mul_mat_join_norm" => (false, words.contains(&"f16x4")),
        "attention_coop" | "attention_keys" => (false, constant(p, "Y_HALF") == Some(1)),
        _ => (false, false),
    }
}

/// The bindings that a dispatch writes: its result, and parts of it or the sums behind which it norms.
fn written_by(p: &Planned) -> (&'static str, Option<&'static str>) {
    match op(p) {
        "attention_keys" if bound(p, "out").is_some() => ("out", Some("y")),
        "mul_mat_join_norm" => ("y", Some("x")),
        _ => ("y", None),
    }
}

#[test]
fn every_activation_is_read_as_it_was_written() {
    let (mut n_half, mut n_of_attention, mut n_joined) = (0, 0, 0);
    every_case(|case, caps, _, made| {
        for (what, run, _) in runs(&made.segments) {
            let mut written: BTreeMap<usize, bool> = BTreeMap::new();
            for p in run {
                let case = format!("{case}, {what}, {} of {}", p.dispatch.kernel.name, p.part);
                let (reads, writes) = halves(p);
                let (result, more) = written_by(p);
                n_of_attention += usize::from(writes && op(p).starts_with("attention"));
                n_joined += usize::from(op(p) == "mul_mat_join_norm");
                let is_written = |name: &str| name == result || Some(name) == more;
                for (name, slot) in p.bind.iter().filter(|b| !is_written(b.0)) {
                    let Slot::Act(i) = slot else { continue };
                    let half = written.get(i).copied().expect("a value that an earlier dispatch wrote");
                    assert_eq!(half, reads && *name == "x", "{case}: `{name}` is f16");
                    n_half += usize::from(half);
                }
                for (name, slot) in p.bind.iter().filter(|b| is_written(b.0)) {
                    let Slot::Act(i) = slot else { continue };
                    written.insert(*i, writes && *name == result);
                    assert!(!writes || caps.coop.is_some(), "{case}: f16 without cooperative matrices");
                }
            }
        }
    });
    assert!(n_of_attention > 100, "{n_of_attention} results of attention in f16");
    assert!(n_joined > 100, "{n_joined} joins with a norm");
    assert!(n_half > 100, "{n_half} reads of f16");
}

#[test]
fn work_counts_every_weight_once_and_every_key() {
    every_case(|case, _, config, made| {
        let output = made.output();
        let (mut elements, mut n_byte) = (0, 0);
        for (i, g) in made.groups.groups.iter().enumerate() {
            let name = &made.graph.weights[g.members[0].0.0].name;
            if name != "token_embd.weight" || output == Some(i) {
                elements += u64::from(g.n_row) * u64::from(g.n_col);
                n_byte += g.shards.iter().map(|s| g.layout(s).n_byte).sum::<u64>();
            }
        }
        for (what, run, _) in runs(&made.segments) {
            let case = format!("{case}, {what}");
            let products = || run.iter().filter(|p| op(p).starts_with("mul_mat"));
            let weights: u64 = products().map(|p| p.work.weights).sum();
            assert_eq!(weights, n_byte, "{case}: bytes of weights");
            let flops: u64 = products().map(|p| p.work.col_flop).sum();
            // Fused RoPE adds a few operations per row of q and k.
            let more = flops.checked_sub(2 * elements);
            assert!(more.is_some_and(|m| m < elements / 20), "{case}: {flops} for {elements} elements");
            // Where tiles of columns follow, a sequence's work is theirs.
            let has_tiles = run.iter().any(|p| matches!(p.columns, Growth::YRest(_)));
            let is_each = |p: &Planned| matches!(p.columns, Growth::Each(_) | Growth::YEach);
            for p in run.iter().filter(|p| !has_tiles || !is_each(p)) {
                assert!(p.work.n_byte(1, 0) > 0, "{case}: {} moves nothing", p.dispatch.kernel.name);
            }
            let layer = made.graph.kv[0];
            let cells = config.kv_layout(&layer).token_bytes();
            let n_layer = made.graph.kv.len() as u64;
            let sum = |f: &dyn Fn(&Planned) -> u64| run.iter().map(|p| f(p)).sum::<u64>();
            assert_eq!(sum(&|p| p.work.key_byte), n_layer * cells, "{case}: bytes of the cache a token");
            // A chunk of three from position 2 attends to 3 + 4 + 5 tokens.
            let pairs = sum(&|p| p.work.n_flop(3, 2) - 3 * p.work.col_flop);
            assert_eq!(pairs, 12 * sum(&|p| p.work.pair_flop), "{case}");
            assert!(pairs > 0, "{case}: attention calculates");
        }
    });
}

#[test]
fn dispatches_stay_within_the_device() {
    let mut sized = HashMap::new();
    every_case(|case, caps, _, made| check_device(case, caps, made, &mut sized));
}

/// Grids, bindings, constants and buffers of all segments.
/// Kernels are in `sized` once naga has read them.
fn check_device(case: &str, caps: &Caps, made: &Made, sized: &mut HashMap<&'static str, Workgroup>) {
    let s = &made.segments;
    let mut all = runs(s);
    all.push(("adjust", s.adjust.iter().collect(), 1));
    all.push(("argmax", s.argmax.iter().collect(), 1));
    all.push(("sample", s.sample.iter().collect(), 1));
    all.push(("sample_wide", s.sample_wide.iter().collect(), 1));
    let listed: HashSet<BufferSlot> = s.buffers.iter().map(|b| b.slot).collect();
    assert_eq!(listed.len(), s.buffers.len(), "{case}: a buffer is listed twice");
    for b in &s.buffers {
        let fits = b.n_byte.saturating_sub(15) <= caps.max_binding_bytes || b.usage == BufferUsage::Readback;
        assert!(fits && b.n_byte > 0, "{case}: {b:?}");
    }
    for (what, run, n_col) in all {
        for p in run {
            let k = p.dispatch.kernel;
            let case = format!("{case}, {what}, {}", k.name);
            assert!(k.features.are_in(caps.features()), "{case} needs {:?} of {caps:?}", k.features);
            // All in tiles, and as many as can be by themselves.
            let each = Columns { n: n_col, each: n_col.min(step::MAX_PICK as u32), keys: u32::MAX };
            let grids = [n_col.into(), each].map(|columns| p.grid(columns));
            let fits = |g: &[u32; 3]| g.iter().all(|n| *n <= caps.max_groups);
            assert!(grids.iter().flatten().all(fits), "{case}: grids {grids:?}");
            assert!(grids.iter().any(Option::is_some), "{case}: never runs");
            let mut wanted: Vec<&str> = k.bindings.iter().map(|b| b.name).collect();
            let mut given: Vec<&str> = p.bind.iter().map(|b| b.0).collect();
            wanted.sort_unstable();
            given.sort_unstable();
            assert_eq!(given, wanted, "{case}: bindings");
            let workgroup = sized.entry(k.name).or_insert_with(|| workgroup(k).expect("a valid kernel"));
            let size = workgroup.size(&p.dispatch.constants).expect("a size");
            let fits = size.threads <= caps.max_threads && size.n_byte <= caps.max_workgroup_bytes;
            assert!(fits, "{case}: a workgroup of {size:?}, with {:?}", p.dispatch.constants);
            for (name, value) in &p.dispatch.constants {
                assert!(k.has_override(name), "{case} has no constant {name}");
                assert!(value.is_finite(), "{case}: {name} is {value}");
            }
            for (_, slot) in &p.bind {
                let whole = match *slot {
                    Slot::Keys(layer) | Slot::Values(layer) => Slot::Kv(layer),
                    slot => slot,
                };
                assert!(listed.contains(&BufferSlot::Bound(whole)), "{case}: {slot:?} is not listed");
            }
        }
    }
}

/// One plan for any number of columns, in which no column shares a tile of attention with another.
#[test]
fn deterministic_runs_have_one_plan() {
    for (device, caps) in devices() {
        let made = make(&SHAPES[0], &caps, &deterministic());
        let s = &made.segments;
        let heads: Vec<u32> = s.prompt.iter().flat_map(|p| p.heads.iter().map(|h| h.max_row)).collect();
        assert_eq!((s.prompt.len(), s.decode.len(), heads), (1, 0, vec![64]), "{device}");
        let attention = dispatches(&s.prompt[0].body).filter(|p| p.part == "attention");
        let tiles = attention.filter(|p| matches!(p.columns, Growth::YRest(_))).count();
        assert_eq!(tiles, 0, "{device}");
    }
    let (graph, caps) = (SHAPES[0].graph(512), Caps::base());
    let steps = fuse(&graph, Fusions::ALL);
    let mut groups = Groups::new(&graph, &steps, &caps, &Streaming::default()).expect("groups");
    let config = PlanConfig { max_col: 65, ..deterministic() };
    let e = plan(&graph, &steps, &mut groups, &caps, &config).expect_err("a column too many");
    assert_eq!(e.to_string(), "a deterministic plan has at most 64 tokens, not 65");
}

#[test]
fn a_row_larger_than_a_binding_is_an_error_that_names_the_tensor() {
    let shape = &SHAPES[3];
    let caps = Caps { max_binding_bytes: 4096, ..Caps::base() };
    let graph = shape.graph(64);
    let steps = fuse(&graph, Fusions::ALL);
    let e = Groups::new(&graph, &steps, &caps, &Streaming::default())
        .expect_err("rows of 8192 bytes in bindings of 4096");
    assert!(e.to_string().contains("`token_embd.weight`"), "{e}");
}
