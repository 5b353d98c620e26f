//! `ops-doc`: writes docs/ops.md, ggml's operations and their support, from the table.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, bail};
use chaski_kernels::grid::expand;
use chaski_kernels::{OPS, Op, Value};

/// Cases of ggml's test program that llama.cpp's backends support: operation, WebGPU and total, Vulkan. From the tables
/// in llama.cpp's docs/ops, autumn of 2026; Vulkan's is newer and has more cases.
const PEERS: &[(&str, &str, &str)] = &[
    ("ACC", "0 of 6", ""),
    ("ARGSORT", "98 of 98", "98"),
    ("CONCAT", "32 of 192", "192"),
    ("CONT", "18 of 36", "36"),
    ("CPY", "138 of 562", "265"),
    ("DUP", "0 of 10", ""),
    ("FLASH_ATTN_EXT", "3412 of 5097", "5133 of 5141"),
    ("GATED_DELTA_NET", "36 of 36", "36"),
    ("GET_ROWS", "107 of 115", "115"),
    ("GROUP_NORM", "0 of 2", ""),
    ("L2_NORM", "20 of 30", "30"),
    ("MEAN", "0 of 7", ""),
    ("MUL_MAT", "984 of 1535", "1182 of 1544"),
    ("MUL_MAT_ID", "787 of 863", "865 of 865"),
    ("NORM", "20 of 30", "30"),
    ("ROPE", "448 of 448", "448"),
    ("SET_ROWS", "67 of 679", "319"),
    ("SOFT_MAX", "212 of 212", "212"),
    ("SSM_CONV", "45 of 45", "45"),
    ("SSM_SCAN", "4 of 4", "6 of 7"),
    ("TOP_K", "305 of 305", "293"),
];

/// Unsupported ggml operations; a kernels test compares with ggml's own list.
const NOT_DONE: &[&str] = &[
    "COL2IM_1D",
    "CONV_1D_DW",
    "CONV_3D",
    "CONV_TRANSPOSE_1D",
    "CONV_TRANSPOSE_2D",
    "CROSS_ENTROPY_LOSS",
    "CROSS_ENTROPY_LOSS_BACK",
    "GET_ROWS_BACK",
    "IM2COL_3D",
    "MUL_MAT_ID_W4A4",
    "MUL_MAT_ID_W4A8",
    "MUL_MAT_W4A4",
    "MUL_MAT_W4A8",
    "OPT_STEP_ADAMW",
    "OPT_STEP_SGD",
    "OUT_PROD",
    "REPEAT_BACK",
    "RMS_NORM_BACK",
    "ROPE_BACK",
    "SILU_BACK",
    "SOFT_MAX_BACK",
];

/// The value type that a parameter of a case selects, if any.
fn type_of_values(op: &str, key: &str, value: &str) -> Option<String> {
    let ty = match (op, key) {
        // ggml's test computes argmax first: positions are compared.
        ("COUNT_EQUAL", "type") => "i32",
        // Type of row indices.
        (_, "type_idx") => return None,
        (_, "dst_type") => value,
        _ if key.starts_with("type") => value,
        _ => return None,
    };
    Some(ty.to_owned())
}

/// Support of one ggml operation.
#[derive(Default)]
struct Row {
    kernels: Vec<&'static str>,
    sets: BTreeSet<&'static str>,
    types: BTreeSet<String>,
    fused: Vec<String>,
    /// Cases of all grids, unsupported ones included.
    cases: HashSet<String>,
    n_left_out: usize,
}

/// Writes the page; with `only_check`, fails if it would change.
pub(crate) fn document(only_check: bool) -> anyhow::Result<()> {
    let page = page()?;
    if only_check {
        return check(&page);
    }
    let path = path();
    fs::write(&path, page).with_context(|| format!("could not write {}", path.display()))
}

fn path() -> std::path::PathBuf {
    crate::root().join("docs/ops.md")
}

/// Fails unless the page in the repository is up to date.
fn check(page: &str) -> anyhow::Result<()> {
    let path = path();
    let found = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
    if found != page {
        bail!("docs/ops.md is stale: run `cargo xtask ops-doc`");
    }
    Ok(())
}

fn page() -> anyhow::Result<String> {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut left_out: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for op in OPS {
        for name in op.ggml {
            let row = rows.entry(name).or_default();
            row.kernels.push(op.name);
            row.sets.extend(sets(op));
            row.fused.extend(fused(op, name));
        }
        let Some(grid) = op.grid else { continue };
        for p in expand(grid.text).with_context(|| format!("the grid of {}", op.name))? {
            let row =
                rows.get_mut(p.op.as_str()).with_context(|| format!("{} does not name {}", op.name, p.op))?;
            // Two kernels may share a case.
            let is_new = row.cases.insert(p.text.clone());
            if let Some(why) = p.left_out() {
                row.n_left_out += usize::from(is_new);
                *left_out.entry((p.op, why)).or_default() += usize::from(is_new);
                continue;
            }
            row.types.extend(p.pairs().into_iter().filter_map(|(key, v)| type_of_values(&p.op, key, v?)));
        }
    }
    let mut out = String::from(
        "# Operations\n\nWritten by `cargo xtask ops-doc` from the table of operations (`OPS` in `crates/kernels`); do \
         not edit.\n\nEvery one of ggml's operations that the device does, by its name in ggml's test program. *Kernels* \
         are rows of the table; those with a fast form for what models need most come beside one for every stride and \
         type. *Types* are what cases that can run ask for. *Cases* counts what the operation's grid holds, which is all that \
         ggml's test program has and some more; `a of b` says that the others are [left out](#left-out), as the test run \
         says, too. Cases of random shapes and those made by hand come on top. llama.cpp's columns count cases that its \
         backends support, where it lists them.\n\n\
         | operation | kernels | feature sets | types | fused | cases | llama.cpp WebGPU | Vulkan |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (name, row) in &rows {
        let peer = PEERS.iter().find(|p| p.0 == *name);
        let (web, vulkan) = peer.map_or(("", ""), |p| (p.1, p.2));
        let types: Vec<&str> = row.types.iter().map(String::as_str).collect();
        let types = match types.len() {
            // Operations without a type parameter in ggml's test program use f32.
            0 => "f32".to_owned(),
            n if n > 12 => format!("{n} types"),
            _ => types.join(" "),
        };
        let sets: Vec<&str> = row.sets.iter().copied().collect();
        let n_case = match (row.cases.len(), row.n_left_out) {
            (all, 0) => all.to_string(),
            (all, n) => format!("{} of {all}", all - n),
        };
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {types} | {} | {n_case} | {web} | {vulkan} |",
            row.kernels.join(", "),
            sets.join(" "),
            row.fused.join("; "),
        );
    }
    let all: usize = rows.values().map(|r| r.cases.len()).sum();
    let _ = writeln!(out, "\n{} operations, {all} cases in grids.", rows.len());
    out.push_str(&kernels()?);
    out.push_str("\n## Left out\n\nCases of ggml's that the device does not do, and why.\n\n| operation | cases | why |\n| --- | --- | --- |\n");
    for ((name, why), n) in &left_out {
        let _ = writeln!(out, "| {name} | {n} | {why} |");
    }
    let _ = writeln!(out, "\nNot done: {}.", NOT_DONE.join(", "));
    Ok(out)
}

/// The table of our operations, including those that implement none of ggml's alone.
fn kernels() -> anyhow::Result<String> {
    let mut out = String::from(
        "\n## Kernels\n\nAll rows of the table of operations. Those without an operation of ggml's do what ggml has as a fusion \
         of several (`topk_moe` is TOPK_MOE, `moe_reduce` is MOE_REDUCE), a part of another row's work, or what llama.cpp \
         does elsewhere. *By hand* counts cases that are written one by one, *grid* those in ggml's notation that can run; \
         *random* says whether cases of random shapes come on top. `cpy_same` runs in the cases of `cpy`.\n\n\
         | kernel | what it does | operations of ggml's | feature sets | by hand | grid | random |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for op in OPS {
        let n_grid = match op.grid {
            Some(grid) => expand(grid.text)?.iter().filter(|p| p.left_out().is_none()).count(),
            None => 0,
        };
        let ggml = if op.ggml.len() > 6 { format!("{} of them", op.ggml.len()) } else { op.ggml.join(" ") };
        let sets: Vec<&str> = BTreeSet::from_iter(sets(op)).into_iter().collect();
        let random = if op.grid.is_some_and(|grid| grid.random.is_some()) { "yes" } else { "" };
        let _ = writeln!(
            out,
            "| {} | {} | {ggml} | {} | {} | {n_grid} | {random} |",
            op.name,
            summary(op).with_context(|| format!("the head of {}", op.template))?,
            sets.join(" "),
            (op.cases)().len(),
        );
    }
    Ok(out)
}

/// The first sentence of a template's header, or its beginning up to the first formula.
fn summary(op: &Op) -> Option<String> {
    let (_, text) = op.template().strip_prefix("{#")?.split_once(": ")?;
    // Dots after spaces and dots belong to formulas.
    let is_end = |(at, _): &(usize, &str)| !text[..*at].ends_with(['.', ' ']);
    let ends = [".\n", ". ", ":\n"].into_iter().flat_map(|end| text.match_indices(end).filter(is_end));
    let end = ends.map(|(at, _)| at).min()?;
    Some(text[..end].split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|"))
}

/// Feature sets of an operation's kernels; kernels without reductions are the same in all.
fn sets(op: &Op) -> Vec<&'static str> {
    let mut out = Vec::new();
    for variant in (op.variants)() {
        for (name, value) in variant {
            if let ("set", Value::Word(w)) = (name, value) {
                out.push(w);
            }
        }
    }
    match (out.is_empty(), op.name.ends_with("_coop")) {
        (_, true) => vec!["coop"],
        (true, false) => vec!["base"],
        (false, false) => out,
    }
}

/// Lines `fused NAME: ...` in the header of a template, for one of ggml's operations.
fn fused(op: &Op, name: &str) -> Option<String> {
    let head = op.template().split("#}").next()?;
    let lines = head.lines().filter_map(|l| l.trim_start().strip_prefix("fused ")?.split_once(':'));
    lines.into_iter().find(|(of, _)| of.trim() == name).map(|(_, what)| what.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// Built once, since counting the cases of all operations takes long.
    static PAGE: LazyLock<String> = LazyLock::new(|| page().expect("a page"));

    #[test]
    fn the_page_is_what_the_table_gives() {
        check(&PAGE).expect("a page that is not stale");
    }

    #[test]
    fn grids_and_rows_agree_on_names() {
        let text = &*PAGE;
        for line in [
            "| CPY | cpy |",
            "| SWIGLU | glu, glu_nd |",
            "| ROPE | rope, rope_kv |",
            "| COUNT_EQUAL | count_equal | base | i32 |",
            "| ROLL | gather | base | f32 |",
            "| MUL_MAT | mul_mat, mul_mat_coop, mul_mat_q8, mul_mat_nd, mul_mat_alone, mul_mat_vec, mul_mat_few |",
        ] {
            assert!(text.contains(line), "no {line}");
        }
        for op in OPS {
            assert!(text.contains(&format!("\n| {} | ", op.name)), "no row of {}", op.name);
        }
        for name in NOT_DONE {
            assert!(!text.contains(&format!("| {name} |")), "{name} is done");
        }
    }
}
