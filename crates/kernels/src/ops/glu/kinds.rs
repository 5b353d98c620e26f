//! The table of gates: the function of each of ggml's GLU operations.

use chaski_graph::Act;

use crate::ops::unary::{gelu, gelu_erf, gelu_quick};

/// One row.
#[derive(Debug)]
pub struct Kind {
    /// Name in kernels.
    pub name: &'static str,
    /// ggml's name in its test program.
    pub ggml: &'static str,
    /// The WGSL expression of gate `g`, value `u`, and parameters `ALPHA` and `LIMIT`.
    pub wgsl: &'static str,
    /// The formula, of gate, value and `[alpha, limit]`.
    pub formula: fn(f64, f64, [f64; 2]) -> f64,
}

/// All kinds.
pub static KINDS: &[Kind] = &[
    Kind { name: "reglu", ggml: "REGLU", wgsl: "max(g, 0.0) * u", formula: |g, u, _| g.max(0.0) * u },
    Kind { name: "geglu", ggml: "GEGLU", wgsl: "gelu(g) * u", formula: |g, u, _| gelu(g) * u },
    Kind { name: "swiglu", ggml: "SWIGLU", wgsl: "g * logistic(g) * u", formula: |g, u, _| silu(g, 1.0) * u },
    Kind {
        name: "geglu_erf",
        ggml: "GEGLU_ERF",
        wgsl: "0.5 * g * (1.0 + erf(g * 0.70710677)) * u",
        formula: |g, u, _| gelu_erf(g) * u,
    },
    Kind {
        name: "geglu_quick",
        ggml: "GEGLU_QUICK",
        wgsl: "gelu_quick(g) * u",
        formula: |g, u, _| gelu_quick(g) * u,
    },
    // gpt-oss: the gate is clamped from above, the value on both sides and increased by one.
    Kind {
        name: "swiglu_oai",
        ggml: "SWIGLU_OAI",
        wgsl: "min(g, LIMIT) * logistic(ALPHA * min(g, LIMIT)) * (clamp(u, -LIMIT, LIMIT) + 1.0)",
        formula: |g, u, [alpha, limit]| silu(g.min(limit), alpha) * (u.clamp(-limit, limit) + 1.0),
    },
    // DeepSeek 4: the same without alpha and the added one.
    Kind {
        name: "swiglu_clamp",
        ggml: "SWIGLU_CLAMP",
        wgsl: "min(g, LIMIT) * logistic(min(g, LIMIT)) * clamp(u, -LIMIT, LIMIT)",
        formula: |g, u, [_, limit]| silu(g.min(limit), 1.0) * u.clamp(-limit, limit),
    },
];

impl Kind {
    /// The row of an activation.
    pub fn of(act: Act) -> &'static Kind {
        KINDS.iter().find(|k| k.name == act.word()).expect("a row for every activation")
    }
}

fn silu(x: f64, alpha: f64) -> f64 {
    x / (1.0 + (-alpha * x).exp())
}
