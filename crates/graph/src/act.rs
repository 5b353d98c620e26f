//! Activations of gated feed-forward layers.

/// Activation of the gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// x * logistic(x)
    Swiglu,
    /// GELU in its tanh form, rounded as in ggml
    Geglu,
    /// max(x, 0)
    Reglu,
    /// GELU by the error function
    GegluErf,
    /// x * logistic(1.702 x), rounded as in ggml
    GegluQuick,
    /// gpt-oss: g * logistic(alpha g) with g = min(gate, limit), times up + 1 with up clamped to the limit.
    SwigluOai {
        /// Factor inside the logistic function.
        alpha: f32,
        /// Upper bound of the gate, and of the magnitude of up.
        limit: f32,
    },
    /// SwiGLU of min(gate, limit), with up clamped to the limit.
    SwigluClamp {
        /// Upper bound of the gate, and of the magnitude of up.
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

    /// ggml's name, used in kernel names.
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

    /// Alpha and limit, for kinds that have them.
    pub fn params(self) -> [f32; 2] {
        match self {
            Act::SwigluOai { alpha, limit } => [alpha, limit],
            Act::SwigluClamp { limit } => [1.0, limit],
            _ => [1.0, 0.0],
        }
    }
}
