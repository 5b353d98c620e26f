//! Unary functions in graphs.

/// One function.
#[derive(PartialEq, Eq)]
pub struct Function {
    /// Its name, by which backends find the implementation.
    pub name: &'static str,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All functions.
pub static FUNCTIONS: &[Function] = &[
    // Clamped to P0..P1.
    Function { name: "clamp" },
    Function { name: "exp" },
    // The tanh form.
    Function { name: "gelu" },
    Function { name: "gelu_erf" },
    Function { name: "gelu_quick" },
    Function { name: "relu" },
    // x * P0 + P1.
    Function { name: "scale" },
    Function { name: "sigmoid" },
    Function { name: "silu" },
    // P0 * tanh(x * P1).
    Function { name: "softcap" },
    Function { name: "softplus" },
    Function { name: "sqr" },
    Function { name: "sqrt" },
    Function { name: "tanh" },
    // alpha_n, alpha_p, beta and eps.
    Function { name: "xielu" },
];

impl Function {
    /// The function of this name.
    pub fn find(name: &str) -> Option<&'static Function> {
        FUNCTIONS.iter().find(|f| f.name == name)
    }
}
