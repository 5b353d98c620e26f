//! Layers of experts in the graphs of all families that have them, without their weights.

mod fixture;
mod hollow;

use std::collections::BTreeMap;
use std::path::Path;

use chaski_graph::{Graph, Op, WeightId};
use ggml_format::GgmlType::Q8_0;

/// Fixtures whose tensors include experts, and no factors of RoPE, whose values the graph needs.
fn fixtures() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/archs");
    let files = std::fs::read_dir(path).expect("fixtures").map(|f| f.expect("a file").path());
    let mut found = Vec::new();
    for file in files.filter(|f| f.extension().is_some_and(|e| e == "json")) {
        let text = std::fs::read_to_string(&file).expect("a fixture");
        if text.contains("_exps.weight") && !text.contains("rope_f") {
            found.push(file.file_stem().and_then(|s| s.to_str()).expect("a name").to_owned());
        }
    }
    found.sort();
    found
}

fn sums(graph: &Graph) -> usize {
    graph.nodes.iter().filter(|n| matches!(n.op, Op::MoeReduce { x, .. } if graph.slots(x) > 0)).count()
}

#[test]
fn every_familys_experts_can_be_cut_out_and_their_pieces_are_the_tensors() {
    let mut n_family = 0;
    for name in fixtures() {
        let graph = fixture::graph_within(&name, |_| Q8_0, &[], 64);
        let layers = graph.experts();
        assert_eq!(layers.len(), sums(&graph), "{name}: some layers cannot be computed elsewhere");
        n_family += usize::from(!layers.is_empty());
        for (nth, layer) in layers.iter().enumerate() {
            assert_eq!(usize::from(layer.layer), nth, "{name}");
            assert_eq!(graph.slots(layer.y), layer.n_used, "{name}");
            let mut found: BTreeMap<WeightId, Vec<(u64, u64)>> = BTreeMap::new();
            for expert in 0..layer.n_expert {
                let pieces = layer.pieces(&graph, expert);
                assert_eq!(pieces.iter().map(|p| p.n_byte).sum::<u64>(), layer.expert_bytes(&graph));
                for p in pieces {
                    assert_eq!(p.tensor, graph.weights[p.weight.0].name, "{name}");
                    found.entry(p.weight).or_default().push((p.offset, p.n_byte));
                }
            }
            assert_eq!(found.keys().copied().collect::<Vec<_>>(), layer.weights(&graph), "{name}");
            for (id, mut pieces) in found {
                let w = &graph.weights[id.0];
                assert_eq!(pieces.iter().map(|p| p.1).sum::<u64>(), w.n_byte(), "{name}, {}", w.name);
                pieces.sort_unstable();
                assert!(pieces.windows(2).all(|p| p[0].0 + p[0].1 <= p[1].0), "{name}, {}: overlap", w.name);
            }
        }
    }
    assert!(n_family >= 30, "found {n_family} families with experts");
}

#[test]
fn pieces_of_an_expert_are_its_rows_of_each_matrix() {
    let graph = fixture::graph("qwen3moe-moe", |_| Q8_0, &[]);
    let layer = &graph.experts()[1];
    for p in layer.pieces(&graph, 1) {
        let w = &graph.weights[p.weight.0];
        let one = u64::from(w.expert_rows()) * w.row_bytes();
        assert_eq!((p.offset, p.n_byte), (one, one), "{}", w.name);
        assert!(p.tensor.starts_with("blk.1.ffn_"), "{}", p.tensor);
    }
    assert_eq!(layer.widths(&graph), (graph.width(layer.x), graph.width(layer.x)));
}
