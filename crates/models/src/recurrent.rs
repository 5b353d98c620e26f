//! Recurrent layers shared by families: Mamba-1, Mamba-2, gated delta nets, gated convolutions.

use chaski_graph::recurrent::{DeltaNet, GatedNorm, GroupNorm, Recurrent, Scan, ShortConv, View};
use chaski_graph::recurrent::{GateAct, NormAt};
use chaski_graph::{NormKind, ValueId};

use crate::build::Builder;
use crate::error::ModelError;

/// The sizes of state space layers, `ssm.*` of the metadata.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ssm {
    /// Taps of the convolution.
    pub(crate) taps: u32,
    /// Channels.
    pub(crate) d_inner: u32,
    /// State values per channel.
    pub(crate) n_state: u32,
    /// Rank of dt; in Mamba-2 the number of heads.
    pub(crate) rank: u32,
}

impl Ssm {
    /// Reads the sizes.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for a missing or mistyped key, [`ModelError::Config`] for invalid sizes.
    pub(crate) fn new(b: &Builder<'_>) -> Result<Ssm, ModelError> {
        let size = |key: &str, least: u32, most: u32| size(b, key, least, most);
        Ok(Ssm {
            taps: size("ssm.conv_kernel", 2, 64)?,
            d_inner: size("ssm.inner_size", 1, 1 << 20)?,
            n_state: size("ssm.state_size", 1, 1 << 11)?,
            rank: size("ssm.time_step_rank", 1, 1 << 16)?,
        })
    }
}

/// A family-specific size from `least` to `most`.
///
/// # Errors
/// [`ModelError::Metadata`] for a missing or mistyped key, [`ModelError::Config`] for other sizes.
pub(crate) fn size(b: &Builder<'_>, key: &str, least: u32, most: u32) -> Result<u32, ModelError> {
    let key = format!("{}.{key}", b.config.arch);
    let found = b.metadata.u32(&key)?;
    if (least..=most).contains(&found) {
        return Ok(found);
    }
    Err(ModelError::Config { key, found: found.to_string(), expected: format!("must be {least} to {most}") })
}

/// Checks that a size is a multiple of another: `(key, value)` of both.
fn multiple(b: &Builder<'_>, (key, n): (&str, u32), (of_key, of): (&str, u32)) -> Result<(), ModelError> {
    if n % of == 0 {
        return Ok(());
    }
    let expected = format!("must be a multiple of {of} ({of_key})");
    Err(ModelError::Config { key: format!("{}.{key}", b.config.arch), found: n.to_string(), expected })
}

/// The convolution `ssm_conv1d` over `n` channels of x, with an optional bias, and SiLU.
pub(crate) fn silu_conv(
    b: &mut Builder<'_>,
    block: &str,
    x: View,
    n: u32,
    taps: u32,
) -> Result<ValueId, ModelError> {
    let weight = b.matrix(&format!("{block}.ssm_conv1d.weight"), n, taps)?;
    let bias = format!("{block}.ssm_conv1d.bias");
    let bias = if b.has(&bias) { Some(b.vector(&bias, n)?) } else { None };
    let state = b.state(n * (taps - 1));
    let conv = ShortConv { x, n, taps, weight, bias, silu: true, gates: None, state };
    Ok(b.recurrent(Recurrent::ShortConv(conv), n))
}

/// Mamba-2: projection, convolution, recurrence of heads, gated group norm, projection.
///
/// `x`: normalised input `[n_embd]`; returns the addend of the residual stream.
///
/// # Errors
/// [`ModelError`] for missing or invalid metadata and tensors.
pub(crate) fn mamba2(b: &mut Builder<'_>, block: &str, x: ValueId) -> Result<ValueId, ModelError> {
    let Ssm { taps, d_inner, n_state, rank: heads } = Ssm::new(b)?;
    let groups = size(b, "ssm.group_count", 1, 1 << 16)?;
    multiple(b, ("ssm.inner_size", d_inner), ("ssm.time_step_rank", heads))?;
    multiple(b, ("ssm.time_step_rank", heads), ("ssm.group_count", groups))?;
    let n_embd = b.config.n_embd;
    let n_conv = d_inner + 2 * groups * n_state;
    let input = b.linear(&format!("{block}.ssm_in"), d_inner + n_conv + heads, n_embd)?;
    let a = b.matrix(&format!("{block}.ssm_a"), heads, 1)?;
    let skip = b.matrix(&format!("{block}.ssm_d"), heads, 1)?;
    let dt_bias = b.vector(&format!("{block}.ssm_dt.bias"), heads)?;
    let norm = format!("{block}.ssm_norm.weight");
    let norm = if b.has(&norm) { Some(b.matrix(&norm, groups, d_inner / groups)?) } else { None };
    let output = b.linear(&format!("{block}.ssm_out"), n_embd, d_inner)?;

    let p = b.mul(x, input); // z [d_inner], then what is convolved [n_conv], then steps [heads]
    let c = silu_conv(b, block, View { of: p, at: d_inner }, n_conv, taps)?; // x, b, c
    let scan = Scan {
        x: c.into(),
        b: View { of: c, at: d_inner },
        c: View { of: c, at: d_inner + groups * n_state },
        dt: View { of: p, at: d_inner + n_conv },
        dt_bias: Some(dt_bias),
        a,
        fine: false,
        skip: Some(skip),
        heads,
        dim: d_inner / heads,
        n_state,
        groups,
        state: b.state(d_inner * n_state),
    };
    let y = b.recurrent(Recurrent::Scan(scan), d_inner); // [heads, dim]
    let eps = b.config.eps;
    let norm = norm.map(|weight| GroupNorm { at: NormAt::Last, weight, own: true, eps });
    let gate = GatedNorm { x: y, z: p.into(), z_row: false, act: GateAct::Silu, norm, k: d_inner / groups };
    let y = b.recurrent(Recurrent::GatedNorm(gate), d_inner);
    Ok(b.mul(y, output)) // [n_embd]
}

/// Mamba-2 of PLaMo 2: gates and inputs are interleaved by head in the projection, and the convolution covers the
/// inputs only, from which dt, B and C are computed with norms.
///
/// `x`: normalised input `[n_embd]`; returns the addend of the residual stream.
///
/// # Errors
/// [`ModelError`] for missing or invalid metadata and tensors.
pub(crate) fn mamba_of_heads(b: &mut Builder<'_>, block: &str, x: ValueId) -> Result<ValueId, ModelError> {
    let Ssm { taps, d_inner, n_state, rank: heads } = Ssm::new(b)?;
    multiple(b, ("ssm.inner_size", d_inner), ("ssm.time_step_rank", heads))?;
    let (n_embd, dim) = (b.config.n_embd, d_inner / heads);
    // No key gives this.
    let n_step = (n_embd / 16).max(64);
    let stem = |name: &str| format!("{block}.{name}");
    let [to_z, to_x] = b.alternating(&stem("ssm_in"), heads, [dim, dim], n_embd)?;
    let [to_b, to_c, to_low] = b.joined(&stem("ssm_x"), [n_state, n_state, n_step], d_inner)?;
    let to_steps = b.linear(&stem("ssm_dt"), heads, n_step)?;
    let a = b.vector(&stem("ssm_a"), heads)?;
    let skip = b.vector(&stem("ssm_d"), heads)?;
    let output = b.linear(&stem("ssm_out"), n_embd, d_inner)?;

    let (z, inner) = (b.mul(x, to_z), b.mul(x, to_x)); // [heads, dim] each
    let c = silu_conv(b, block, inner.into(), d_inner, taps)?;
    let mut norm = |l, name: &str| {
        let part = b.mul(c, l);
        b.norm_of(part, &stem(name), NormKind::Rms)
    };
    let (of_b, of_c, low) =
        (norm(to_b, "ssm_b_norm")?, norm(to_c, "ssm_c_norm")?, norm(to_low, "ssm_dt_norm")?);
    let dt = b.mul(low, to_steps); // [heads], bias included
    let scan = Scan {
        x: c.into(),
        b: of_b.into(),
        c: of_c.into(),
        dt: dt.into(),
        dt_bias: None,
        a,
        fine: false,
        skip: Some(skip),
        heads,
        dim,
        n_state,
        groups: 1,
        state: b.state(d_inner * n_state),
    };
    let y = b.recurrent(Recurrent::Scan(scan), d_inner); // [heads, dim]
    let gate = GatedNorm { x: y, z: z.into(), z_row: false, act: GateAct::Silu, norm: None, k: d_inner };
    let y = b.recurrent(Recurrent::GatedNorm(gate), d_inner);
    Ok(b.mul(y, output)) // [n_embd]
}

/// Mamba-1: projection, convolution, dt, B and C, recurrence of channels, gate, projection.
///
/// `x`: normalised input `[n_embd]`; returns the addend of the residual stream.
///
/// # Errors
/// [`ModelError`] for missing or invalid metadata and tensors.
pub(crate) fn mamba(b: &mut Builder<'_>, block: &str, x: ValueId) -> Result<ValueId, ModelError> {
    let Ssm { taps, d_inner, n_state, rank } = Ssm::new(b)?;
    // Norms of dt, B and C: unweighted in Falcon Mamba, weighted in Jamba.
    let plain = b.bool("ssm.dt_b_c_rms")?.unwrap_or(false);
    let weighted = b.has(&format!("{block}.ssm_dt_norm.weight"));
    let n_embd = b.config.n_embd;
    let input = b.linear(&format!("{block}.ssm_in"), 2 * d_inner, n_embd)?;
    let to_steps = b.linear(&format!("{block}.ssm_dt"), d_inner, rank)?;
    let a = b.matrix(&format!("{block}.ssm_a"), d_inner, n_state)?;
    let skip = b.vector(&format!("{block}.ssm_d"), d_inner)?;
    let output = b.linear(&format!("{block}.ssm_out"), n_embd, d_inner)?;

    let p = b.mul(x, input); // x [d_inner], then z [d_inner]
    let c = silu_conv(b, block, p.into(), d_inner, taps)?;
    let name = format!("{block}.ssm_x");
    let (steps, of_b, of_c): (ValueId, View, View) = if plain || weighted {
        let parts = b.joined(&name, [rank, n_state, n_state], d_inner)?;
        let mut parts = parts.map(|l| b.mul(c, l)); // [rank], [n_state], [n_state]
        for (part, stem) in parts.iter_mut().zip(["ssm_dt_norm", "ssm_b_norm", "ssm_c_norm"]) {
            *part = match weighted {
                true => b.norm_of(*part, &format!("{block}.{stem}"), NormKind::Rms)?,
                false => b.plain_norm(*part, NormKind::Rms),
            };
        }
        let [steps, of_b, of_c] = parts;
        (steps, of_b.into(), of_c.into())
    } else {
        let [to_rank, to_bc] = b.joined(&name, [rank, 2 * n_state], d_inner)?;
        let (steps, bc) = (b.mul(c, to_rank), b.mul(c, to_bc)); // [rank], [2, n_state]
        (steps, bc.into(), View { of: bc, at: n_state })
    };
    let dt = b.mul(steps, to_steps); // [d_inner], bias included
    let scan = Scan {
        x: c.into(),
        b: of_b,
        c: of_c,
        dt: dt.into(),
        dt_bias: None,
        a,
        fine: true,
        skip: Some(skip),
        heads: d_inner,
        dim: 1,
        n_state,
        groups: 1,
        state: b.state(d_inner * n_state),
    };
    let y = b.recurrent(Recurrent::Scan(scan), d_inner);
    let z = View { of: p, at: d_inner };
    let gate = GatedNorm { x: y, z, z_row: false, act: GateAct::Silu, norm: None, k: d_inner };
    let y = b.recurrent(Recurrent::GatedNorm(gate), d_inner);
    Ok(b.mul(y, output)) // [n_embd]
}

/// Sharing of queries and keys by heads of values, and the layout of the heads' inputs in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaOrder {
    /// Heads as far apart as there are keys share one; `ssm_beta` and `ssm_alpha` (Qwen 3.5).
    Tiled,
    /// Adjacent heads share one; `ssm_ba` has beta, then alpha of the heads of each key, and older files have q, k, v
    /// and gate of the heads of each key in `ssm_in` (Qwen 3 Next).
    Grouped,
}

/// A gated delta net: projection, convolution, recurrence of heads, gated norm of heads, projection.
///
/// `x`: normalised input `[n_embd]`; returns the addend of the residual stream.
///
/// # Errors
/// [`ModelError`] for missing or invalid metadata and tensors.
pub(crate) fn delta_net(
    b: &mut Builder<'_>,
    block: &str,
    order: DeltaOrder,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    let Ssm { taps, d_inner, n_state: dim, rank: heads } = Ssm::new(b)?;
    let k_heads = size(b, "ssm.group_count", 1, 1 << 16)?;
    multiple(b, ("ssm.time_step_rank", heads), ("ssm.group_count", k_heads))?;
    if u64::from(dim) * u64::from(heads) != u64::from(d_inner) {
        return Err(ModelError::Config {
            key: format!("{}.ssm.inner_size", b.config.arch),
            found: d_inner.to_string(),
            expected: format!("must be {heads} heads of {dim} channels (ssm.time_step_rank, ssm.state_size)"),
        });
    }
    let n_embd = b.config.n_embd;
    let (n_k, each) = (k_heads * dim, heads / k_heads);
    let n_conv = 2 * n_k + d_inner;
    let stem = |name: &str| format!("{block}.{name}");
    let mut inputs = if order == DeltaOrder::Tiled || b.has(&stem("attn_qkv.weight")) {
        vec![b.linear(&stem("attn_qkv"), n_conv, n_embd)?, b.linear(&stem("attn_gate"), d_inner, n_embd)?]
    } else {
        b.alternating(&stem("ssm_in"), k_heads, [dim, dim, each * dim, each * dim], n_embd)?.to_vec()
    };
    inputs.extend(match order {
        DeltaOrder::Tiled => {
            [b.linear(&stem("ssm_beta"), heads, n_embd)?, b.linear(&stem("ssm_alpha"), heads, n_embd)?]
        }
        DeltaOrder::Grouped => b.alternating(&stem("ssm_ba"), k_heads, [each, each], n_embd)?,
    });
    let a = b.vector(&stem("ssm_a"), heads)?;
    let bias = b.vector(&stem("ssm_dt.bias"), heads)?;
    let norm = b.vector(&stem("ssm_norm.weight"), dim)?;
    let output = b.linear(&stem("ssm_out"), n_embd, d_inner)?;

    let p = b.mul_all(x, &inputs); // q, k, v [n_conv], gate [d_inner], beta [heads], alpha [heads]
    let part = |at| View { of: p, at };
    let qkv = silu_conv(b, block, part(0), n_conv, taps)?;
    let rule = DeltaNet {
        qkv: qkv.into(),
        alpha: part(n_conv + d_inner + heads),
        beta: part(n_conv + d_inner),
        a,
        bias,
        heads,
        k_heads,
        dim,
        neighbours: order == DeltaOrder::Grouped,
        eps: b.config.eps,
        state: b.state(d_inner * dim),
    };
    let y = b.recurrent(Recurrent::DeltaNet(rule), d_inner); // [heads, dim]
    let norm = GroupNorm { at: NormAt::First, weight: norm, own: false, eps: b.config.eps };
    let gate =
        GatedNorm { x: y, z: part(n_conv), z_row: false, act: GateAct::Silu, norm: Some(norm), k: dim };
    let y = b.recurrent(Recurrent::GatedNorm(gate), d_inner);
    Ok(b.mul(y, output)) // [n_embd]
}

/// A gated short convolution: projection to two gates and the input, convolution, projection.
///
/// `x`: normalised input `[n_embd]`; returns the addend of the residual stream.
///
/// # Errors
/// [`ModelError`] for missing or invalid metadata and tensors.
pub(crate) fn gated_conv(b: &mut Builder<'_>, block: &str, x: ValueId) -> Result<ValueId, ModelError> {
    let n = b.config.n_embd;
    let taps = size(b, "shortconv.l_cache", 2, 64)?;
    let input = b.linear(&format!("{block}.shortconv.in_proj"), 3 * n, n)?;
    let weight = b.matrix(&format!("{block}.shortconv.conv.weight"), n, taps)?;
    let output = b.linear(&format!("{block}.shortconv.out_proj"), n, n)?;

    let p = b.mul(x, input); // what gates inputs, what gates outputs, inputs: [n_embd] each
    let conv = ShortConv {
        x: View { of: p, at: 2 * n },
        n,
        taps,
        weight,
        bias: None,
        silu: false,
        gates: Some([0, n]),
        state: b.state(n * (taps - 1)),
    };
    let y = b.recurrent(Recurrent::ShortConv(conv), n);
    Ok(b.mul(y, output)) // [n_embd]
}
