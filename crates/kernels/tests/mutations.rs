//! Tests of the checker: kernels that use undeclared features are rejected, by name.

use std::collections::BTreeMap;

use chaski_kernels::check::{CheckError, check_in_place_of};
use chaski_kernels::{Features, Kernel};

/// A mistake that a template could make.
struct Mutation {
    what: &'static str,
    /// Applies the mistake to a kernel's text.
    edit: fn(&Kernel) -> String,
    /// Features under which it is allowed, if any suffice.
    allowed: Option<Features>,
    /// Expected part of the error.
    says: &'static str,
}

fn with(k: &Kernel, code: &str) -> String {
    format!("{}\n{code}\n", k.source)
}

/// Uses a subgroup built-in that the kernel lacks.
fn with_input(k: &Kernel) -> String {
    let all = ["subgroup_size", "subgroup_invocation_id", "subgroup_id", "num_subgroups"];
    let new = all.into_iter().find(|name| !k.source.contains(&format!("@builtin({name})")));
    let new = new.expect("no kernel has all of them");
    k.source.replacen("fn main(", &format!("fn main(@builtin({new}) mutant: u32, "), 1)
}

/// Adds storage buffers up to nine.
fn nine_buffers(k: &Kernel) -> String {
    let free = (0..100).filter(|i| k.bindings.iter().all(|b| b.index != *i)).take(9 - k.bindings.len());
    let more = free.map(|i| format!("@group(0) @binding({i}) var<storage, read> mutant{i}: array<u32>;\n"));
    with(k, &more.collect::<String>())
}

/// One more thread than the feature set allows.
fn many_threads(k: &Kernel) -> String {
    let n = if k.features.coop { 513 } else { 257 };
    let (before, rest) = k.source.split_once("@workgroup_size(").expect("an entry point");
    let (_, after) = rest.split_once(')').expect("a size");
    format!("{before}@workgroup_size({n}){after}")
}

const MUTATIONS: &[Mutation] = &[
    Mutation {
        what: "a built-in value of subgroups",
        edit: with_input,
        allowed: Some(Features::SUBGROUP),
        says: "SUBGROUP",
    },
    Mutation {
        what: "a sum over a subgroup",
        edit: |k| with(k, "fn mutant(x: f32) -> f32 { return subgroupAdd(x); }"),
        allowed: Some(Features::SUBGROUP),
        says: "SUBGROUP",
    },
    Mutation {
        what: "a shuffle in a subgroup",
        edit: |k| with(k, "fn mutant(x: f32) -> f32 { return subgroupShuffleXor(x, 1u); }"),
        allowed: Some(Features::SUBGROUP),
        says: "SUBGROUP",
    },
    Mutation {
        what: "a vote of a subgroup",
        edit: |k| with(k, "fn mutant(x: f32) -> bool { return subgroupAny(x > 0.0); }"),
        allowed: Some(Features::SUBGROUP),
        says: "SUBGROUP",
    },
    Mutation {
        what: "a barrier of a subgroup",
        edit: |k| with(k, "fn mutant() { subgroupBarrier(); }"),
        allowed: None,
        says: "SUBGROUP",
    },
    Mutation {
        what: "a variable of f16",
        edit: |k| with(k, "var<private> mutant: f16;"),
        allowed: Some(Features::F16),
        says: "f16",
    },
    Mutation {
        what: "arithmetic of f16",
        edit: |k| with(k, "fn mutant(x: f32) -> f32 { return f32(2.0h * f16(x)); }"),
        allowed: Some(Features::F16),
        says: "f16",
    },
    Mutation {
        what: "a cooperative matrix",
        edit: |k| with(k, "fn mutant() { var sum: coop_mat16x16<f32, C>; }"),
        allowed: Some(Features { coop: true, ..Features::NONE }),
        says: "cooperative",
    },
    Mutation {
        what: "coherent memory",
        edit: |k| k.source.replacen("var<storage", "@coherent var<storage", 1),
        allowed: Some(Features { coherent: true, ..Features::NONE }),
        says: "coherent",
    },
    Mutation {
        what: "workgroup memory of 64 KiB",
        edit: |k| {
            let code = "var<workgroup> mutant: array<u32, 16384>;\nfn touch() { mutant[0] = 1u; }";
            with(k, code)
        },
        allowed: None,
        says: "bytes of memory",
    },
    Mutation { what: "nine storage buffers", edit: nine_buffers, allowed: None, says: "9 buffers" },
    Mutation { what: "a thread too many", edit: many_threads, allowed: None, says: "threads, but at most" },
    Mutation {
        what: "a uniform buffer",
        edit: |k| with(k, "@group(0) @binding(100) var<uniform> mutant: vec4<u32>;"),
        allowed: None,
        says: "not a storage buffer",
    },
    Mutation {
        what: "64-bit numbers",
        edit: |k| with(k, "var<private> mutant: f64;"),
        allowed: None,
        says: "64",
    },
];

/// The first kernel of each operation for each of the features and sets that it is rendered for.
fn kernels() -> Vec<&'static Kernel> {
    let mut all = BTreeMap::new();
    for name in Kernel::names() {
        let op = name.split('.').next();
        let set = name.split('.').find(|word| ["base", "sg"].contains(word));
        all.entry((op, set, name.contains(".f16"))).or_insert(name);
    }
    all.into_values().map(|name| Kernel::find(name).expect("a name of the list")).collect()
}

#[test]
fn kernels_that_use_what_they_do_not_declare_are_refused_by_name() {
    let (mut n_refused, mut n_allowed, mut wrong) = (0, 0, Vec::new());
    for k in kernels() {
        for m in MUTATIONS {
            let source: &'static str = (m.edit)(k).leak();
            assert_ne!(source, k.source, "{}: {} changes the text", k.name, m.what);
            let is_allowed = m.allowed.is_some_and(|f| f.are_in(k.features));
            match check_in_place_of(k, source) {
                Ok(_) if is_allowed => n_allowed += 1,
                Err(e) if !is_allowed => {
                    let text = e.to_string();
                    let named = matches!(&e, CheckError::Wgsl { kernel, .. } | CheckError::Rule { kernel, .. } if *kernel == k.name);
                    let says = text.to_lowercase().contains(&m.says.to_lowercase());
                    if named && says {
                        n_refused += 1;
                    } else {
                        wrong.push(format!("{}: {}: {text}", k.name, m.what));
                    }
                }
                Ok(_) => wrong.push(format!("{}: {} passed", k.name, m.what)),
                Err(e) => wrong.push(format!("{} may have {}: {e}", k.name, m.what)),
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases, such as:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    assert!(n_refused > 500 && n_allowed > 50, "{n_refused} were refused, {n_allowed} allowed");
}

#[test]
fn unchanged_kernels_pass() {
    for k in kernels() {
        check_in_place_of(k, k.source).unwrap_or_else(|e| panic!("{e}"));
    }
}
