//! Layers and keys of the families that presets have.

use super::shape::{Experts, Family, Part, Preset, Values};

pub(super) const LLAMA: Family = Family {
    architecture: "llama",
    output_norm: "output_norm.weight",
    layer: |p, _| [attention(p), feed_forward(p)].concat(),
    n_head_kv: |p, _| p.n_head_kv,
    keys: |_, _| Ok(()),
};

pub(super) const QWEN3: Family = Family {
    architecture: "qwen3",
    layer: |p, _| [attention(p), head_norms(p), feed_forward(p)].concat(),
    ..LLAMA
};

pub(super) const QWEN3_MOE: Family = Family { architecture: "qwen3moe", ..QWEN3 };

/// q, k and v are one matrix, and so are gate and up.
pub(super) const PHI3: Family = Family {
    architecture: "phi3",
    layer: |p, _| {
        let (embd, ff) = (p.embd(), p.ff());
        vec![
            ("attn_norm.weight", Values::Ones, vec![embd]),
            ("attn_qkv.weight", Values::Random, vec![embd, p.q() + 2 * p.kv()]),
            ("attn_output.weight", Values::Random, vec![p.q(), embd]),
            ("ffn_norm.weight", Values::Ones, vec![embd]),
            ("ffn_up.weight", Values::Random, vec![embd, 2 * ff]),
            ("ffn_down.weight", Values::Random, vec![ff, embd]),
        ]
    },
    ..LLAMA
};

/// Five of six layers have a window; norms precede and follow both parts of a layer.
pub(super) const GEMMA3: Family = Family {
    architecture: "gemma3",
    layer: |p, _| {
        let after = vec![
            ("post_attention_norm.weight", Values::Ones, vec![p.embd()]),
            ("post_ffw_norm.weight", Values::Ones, vec![p.embd()]),
        ];
        [attention(p), head_norms(p), feed_forward(p), after].concat()
    },
    keys: |_, head| {
        head.set("gemma3.attention.sliding_window", 1024u32)?
            .set("gemma3.rope.scaling.type", "linear")?
            .set("gemma3.rope.scaling.factor", 8.0f32)?;
        Ok(())
    },
    ..LLAMA
};

/// Layers of LFM 2 that attend; the others are convolutions.
const LFM2_ATTENDS: [u32; 6] = [2, 5, 8, 10, 12, 14];
/// Taps of its convolutions.
const LFM2_TAPS: u32 = 3;

pub(super) const LFM2: Family = Family {
    architecture: "lfm2",
    output_norm: "token_embd_norm.weight",
    layer: |p, layer| {
        let embd = p.embd();
        let convolution = || {
            vec![
                ("attn_norm.weight", Values::Ones, vec![embd]),
                ("shortconv.conv.weight", Values::Random, vec![LFM2_TAPS.into(), embd]),
                ("shortconv.in_proj.weight", Values::Random, vec![embd, 3 * embd]),
                ("shortconv.out_proj.weight", Values::Random, vec![embd, embd]),
            ]
        };
        let attends = LFM2_ATTENDS.contains(&layer);
        let mixer = if attends { [attention(p), head_norms(p)].concat() } else { convolution() };
        [mixer, feed_forward(p)].concat()
    },
    n_head_kv: |p, layer| if LFM2_ATTENDS.contains(&layer) { p.n_head_kv } else { 0 },
    keys: |_, head| {
        head.set("lfm2.shortconv.l_cache", LFM2_TAPS)?;
        Ok(())
    },
};

/// Biases throughout, attention sinks, windows in every second layer.
pub(super) const GPT_OSS: Family = Family {
    architecture: "gpt-oss",
    layer: |p, _| {
        let Experts { n_expert, n_ff, .. } = p.experts.expect("all of them have experts");
        let (embd, n, ff) = (p.embd(), u64::from(n_expert), u64::from(n_ff));
        let mut parts = vec![
            ("attn_norm.weight", Values::Ones, vec![embd]),
            ("post_attention_norm.weight", Values::Ones, vec![embd]),
            ("attn_sinks.weight", Values::Ones, vec![p.n_head.into()]),
        ];
        for (weight, bias, ne) in [
            ("attn_q.weight", "attn_q.bias", vec![embd, p.q()]),
            ("attn_k.weight", "attn_k.bias", vec![embd, p.kv()]),
            ("attn_v.weight", "attn_v.bias", vec![embd, p.kv()]),
            ("attn_output.weight", "attn_output.bias", vec![p.q(), embd]),
            ("ffn_gate_inp.weight", "ffn_gate_inp.bias", vec![embd, n]),
            ("ffn_gate_exps.weight", "ffn_gate_exps.bias", vec![embd, ff, n]),
            ("ffn_up_exps.weight", "ffn_up_exps.bias", vec![embd, ff, n]),
            ("ffn_down_exps.weight", "ffn_down_exps.bias", vec![ff, embd, n]),
        ] {
            parts.push((bias, Values::Random, ne[1..].to_vec()));
            parts.push((weight, Values::Random, ne));
        }
        parts
    },
    keys: |_, head| {
        head.set("gpt-oss.attention.sliding_window", 128u32)?
            .set("gpt-oss.rope.scaling.type", "yarn")?
            .set("gpt-oss.rope.scaling.factor", 32.0f32)?
            .set("gpt-oss.rope.scaling.original_context_length", 4096u32)?;
        Ok(())
    },
    ..LLAMA
};

fn attention(p: &Preset) -> Vec<Part> {
    let embd = p.embd();
    vec![
        ("attn_norm.weight", Values::Ones, vec![embd]),
        ("attn_q.weight", Values::Random, vec![embd, p.q()]),
        ("attn_k.weight", Values::Random, vec![embd, p.kv()]),
        ("attn_v.weight", Values::Random, vec![embd, p.kv()]),
        ("attn_output.weight", Values::Random, vec![p.q(), embd]),
    ]
}

fn head_norms(p: &Preset) -> Vec<Part> {
    let d_head = vec![p.d_head.into()];
    vec![("attn_q_norm.weight", Values::Ones, d_head.clone()), ("attn_k_norm.weight", Values::Ones, d_head)]
}

fn feed_forward(p: &Preset) -> Vec<Part> {
    let embd = p.embd();
    let norm = ("ffn_norm.weight", Values::Ones, vec![embd]);
    match p.experts.map(|e| (u64::from(e.n_expert), u64::from(e.n_ff))) {
        None => vec![
            norm,
            ("ffn_gate.weight", Values::Random, vec![embd, p.ff()]),
            ("ffn_up.weight", Values::Random, vec![embd, p.ff()]),
            ("ffn_down.weight", Values::Random, vec![p.ff(), embd]),
        ],
        Some((n, ff)) => vec![
            norm,
            ("ffn_gate_inp.weight", Values::Random, vec![embd, n]),
            ("ffn_gate_exps.weight", Values::Random, vec![embd, ff, n]),
            ("ffn_up_exps.weight", Values::Random, vec![embd, ff, n]),
            ("ffn_down_exps.weight", Values::Random, vec![ff, embd, n]),
        ],
    }
}
