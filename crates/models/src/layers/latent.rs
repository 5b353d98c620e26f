//! Latent attention (MLA): q through a low-rank matrix, one key of a latent and a few RoPE channels for all heads.

use chaski_graph::latent::Latent;
use chaski_graph::{KvLayer, NormKind, Op, Score, ValueId};

use ggml_format::Metadata;

use super::Attend;
use crate::build::{Builder, Config};
use crate::derived::Transposed;
use crate::error::ModelError;

/// Sizes common to all latent attention layers of a model.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LatentSizes {
    /// Query heads.
    pub(crate) n_head: u32,
    /// Channels of the latent.
    pub(crate) rank: u32,
    /// Channels per head with RoPE.
    pub(crate) n_rot: u32,
    /// Other channels per head of q.
    pub(crate) plain: u32,
    /// Channels per value head.
    pub(crate) value: u32,
}

impl LatentSizes {
    /// Reads the sizes. Files with absorbed key matrices give the sizes of heads under separate keys, since the common
    /// ones describe the cache. There, 0 means that there is no such key.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for a missing or mistyped key, [`ModelError::Config`] for invalid sizes.
    pub(crate) fn new(m: &Metadata, c: &Config) -> Result<Self, ModelError> {
        let size = |key: &str, default: Option<u32>| {
            let key = format!("{}.attention.{key}", c.arch);
            let found = match m.opt_u32(&key)?.filter(|n| *n > 0).or(default) {
                Some(n) => n,
                None => m.u32(&key)?,
            };
            match found {
                1..=16384 => Ok(found),
                _ => Err(ModelError::Config {
                    key,
                    found: found.to_string(),
                    expected: "must be 1 to 16384".into(),
                }),
            }
        };
        let head = size("key_length_mla", Some(c.d_head))?;
        if c.n_rot == 0 || c.n_rot >= head {
            let key = format!("{}.rope.dimension_count", c.arch);
            let expected = format!("must be 2 to less than the {head} channels of a head");
            return Err(ModelError::Config { key, found: c.n_rot.to_string(), expected });
        }
        let n_head = c.n_head.first().copied().unwrap_or(0);
        if n_head == 0 || c.n_head.iter().any(|n| *n != n_head) {
            let key = format!("{}.attention.head_count", c.arch);
            let expected = "must be the same for all layers, at least 1".into();
            return Err(ModelError::Config { key, found: format!("{:?}", c.n_head), expected });
        }
        Ok(LatentSizes {
            n_head,
            rank: size("kv_lora_rank", None)?,
            n_rot: c.n_rot,
            plain: head - c.n_rot,
            value: size("value_length_mla", Some(c.d_head_v))?,
        })
    }

    /// How the key matrices are derived from the matrix of keys and values.
    pub(crate) fn of_both(&self) -> Transposed {
        let stride = self.plain + self.value;
        Transposed { n_matrix: self.n_head, n_row: self.plain, n_col: self.rank, stride }
    }
}

/// The derivation of a missing tensor, and its source tensor.
///
/// # Errors
/// As [`LatentSizes::new`].
pub(crate) fn derived(
    m: &Metadata,
    c: &Config,
    name: &str,
) -> Result<Option<(Transposed, String)>, ModelError> {
    match name.strip_suffix(".attn_k_b.weight") {
        Some(block) => Ok(Some((LatentSizes::new(m, c)?.of_both(), format!("{block}.attn_kv_b.weight")))),
        None => Ok(None),
    }
}

/// Attention parameters of a layer.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LatentAttention {
    /// The sizes.
    pub(crate) sizes: LatentSizes,
    /// Rank of q; `None`: q has one matrix.
    pub(crate) q_rank: Option<u32>,
    /// Index of the RoPE parameters.
    pub(crate) rope: usize,
    /// Transformations of the scores.
    pub(crate) score: Score,
}

impl Attend for LatentAttention {
    fn build(&self, b: &mut Builder<'_>, block: &str, x: ValueId) -> Result<ValueId, ModelError> {
        let LatentSizes { n_head, rank, n_rot, plain, value } = self.sizes;
        let n_embd = b.config.n_embd;
        let m_q = n_head * (plain + n_rot);
        let name = |part: &str| format!("{block}.{part}");
        let q = match self.q_rank {
            None => {
                let q = b.linear(&name("attn_q"), m_q, n_embd)?;
                b.mul(x, q)
            }
            Some(q_rank) => {
                let down = b.linear(&name("attn_q_a"), q_rank, n_embd)?;
                let up = b.linear(&name("attn_q_b"), m_q, q_rank)?;
                let low = b.mul(x, down); // [q_rank]
                let low = b.norm_of(low, &name("attn_q_a_norm"), NormKind::Rms)?;
                b.mul(low, up)
            }
        }; // [n_head, plain + n_rot]
        let latent = b.linear(&name("attn_kv_a_mqa"), rank + n_rot, n_embd)?;
        let norm = b.vector(&name("attn_kv_a_norm.weight"), rank)?;
        let both = name("attn_kv_b.weight");
        let (keys, values) = if b.has(&both) {
            let keys = b.derived(&self.sizes.of_both(), (&name("attn_k_b.weight"), &both))?;
            (keys, b.heads_of(&both, n_head, (plain, value, plain + value), rank)?)
        } else {
            let keys = b.heads(&name("attn_k_b.weight"), n_head, rank, plain)?;
            (keys, b.heads(&name("attn_v_b.weight"), n_head, value, rank)?)
        };
        let output = b.linear(&name("attn_output"), n_embd, n_head * value)?;
        let x = b.mul(x, latent); // [rank + n_rot]
        let layer = b.kv_layer(KvLayer { n_kv: 1, d: rank + n_rot, d_v: rank, in_keys: true, window: 0 });
        let op = Latent { q, x, keys, norm, eps: b.config.eps, rope: self.rope, layer, n_head };
        let q = b.push(Op::Latent(op), n_head * (rank + n_rot));
        let a = Op::Attention { q, layer, n_head, score: self.score, sinks: None };
        let a = b.push(a, n_head * rank); // [n_head, rank]
        let a = b.push(Op::MulHeads { x: a, weight: values }, n_head * value);
        Ok(b.mul(a, output)) // [n_embd]
    }
}
