//! Activations of a feed-forward layer with a gate.

/// The gate's activation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// x * logistic(x)
    Swiglu,
    /// GELU in its tanh form, rounded as ggml does
    Geglu,
    /// max(x, 0)
    Reglu,
    /// GELU by the error function
    GegluErf,
    /// x * logistic(1.702 x), rounded as ggml does
    GegluQuick,
    /// As in gpt-oss: g * logistic(alpha g) with g = min(gate, limit), times up + 1 with up within the limit.
    SwigluOai {
        /// Multiplies what goes through the logistic function.
        alpha: f32,
        /// Largest gate and size of up.
        limit: f32,
    },
    /// Swiglu of min(gate, limit), with up within the limit.
    SwigluClamp {
        /// Largest gate and size of up.
        limit: f32,
    },
}

impl Act {
    /// One of each kind.
    pub const ALL: [Act; 7] = [
        Act::Swiglu,
        Act::Geglu,
        Act::Reglu,
        Act::GegluErf,
        Act::GegluQuick,
        Act::SwigluOai { alpha: 1.702, limit: 7.0 },
        Act::SwigluClamp { limit: 2.0 },
    ];

    /// ggml's word, which kernels take it by.
    pub const fn word(self) -> &'static str {
        match self {
            Act::Swiglu => "swiglu",
            Act::Geglu => "geglu",
            Act::Reglu => "reglu",
            Act::GegluErf => "geglu_erf",
            Act::GegluQuick => "geglu_quick",
            Act::SwigluOai { .. } => "swiglu_oai",
            Act::SwigluClamp { .. } => "swiglu_clamp",
        }
    }

    /// Alpha and limit, for those that have them.
    pub fn params(self) -> [f32; 2] {
        match self {
            Act::SwigluOai { alpha, limit } => [alpha, limit],
            Act::SwigluClamp { limit } => [1.0, limit],
            _ => [1.0, 0.0],
        }
    }
}
