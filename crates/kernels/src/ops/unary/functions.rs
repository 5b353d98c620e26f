//! The table of unary functions: one row defines a function completely, with its ggml names.

/// One function.
pub struct Function {
    /// Name in kernels.
    pub name: &'static str,
    /// ggml's name in its test program.
    pub ggml: &'static str,
    /// The WGSL expression of `x`, and of the parameters `P0` to `P3`; helpers are in `shared/math.wgsl.jinja`.
    pub wgsl: &'static str,
    /// The formula.
    pub formula: fn(f64, [f64; 4]) -> f64,
    /// Range of inputs worth testing.
    pub range: (f32, f32),
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn row(
    name: &'static str,
    ggml: &'static str,
    wgsl: &'static str,
    formula: fn(f64, [f64; 4]) -> f64,
    range: (f32, f32),
) -> Function {
    Function { name, ggml, wgsl, formula, range }
}

/// ggml's test range: wide enough for overflow.
const WIDE: (f32, f32) = (-150.0, 150.0);
/// Range where functions that agree far from 0 differ.
const NEAR: (f32, f32) = (-4.0, 4.0);

/// All functions.
pub static FUNCTIONS: &[Function] = ROWS;

/// ggml's names of all functions.
pub(super) const GGML: [&str; ROWS.len()] = {
    let (mut names, mut i) = ([""; ROWS.len()], 0);
    while i < ROWS.len() {
        names[i] = ROWS[i].ggml;
        i += 1;
    }
    names
};

const ROWS: &[Function] = &[
    row("abs", "ABS", "abs(x)", |x, _| x.abs(), WIDE),
    row("sgn", "SGN", "sign(x)", |x, _| if x == 0.0 { 0.0 } else { x.signum() }, WIDE),
    row("neg", "NEG", "-x", |x, _| -x, WIDE),
    row("step", "STEP", "select(0.0, 1.0, x > 0.0)", |x, _| f64::from(u8::from(x > 0.0)), WIDE),
    row("tanh", "TANH", "tanh_safe(x)", |x, _| x.tanh(), WIDE),
    row(
        "elu",
        "ELU",
        "select(expm1(min(x, 0.0)), x, x > 0.0)",
        |x, _| if x > 0.0 { x } else { x.exp_m1() },
        WIDE,
    ),
    row("relu", "RELU", "max(x, 0.0)", |x, _| x.max(0.0), WIDE),
    row("sigmoid", "SIGMOID", "logistic(x)", |x, _| logistic(x), WIDE),
    row("gelu", "GELU", "gelu(x)", |x, _| gelu(x), WIDE),
    row("gelu_quick", "GELU_QUICK", "gelu_quick(x)", |x, _| gelu_quick(x), WIDE),
    row("gelu_erf", "GELU_ERF", "0.5 * x * (1.0 + erf(x * 0.70710677))", |x, _| gelu_erf(x), WIDE),
    row("silu", "SILU", "x * logistic(x)", |x, _| x * logistic(x), WIDE),
    row("hardswish", "HARDSWISH", "x * clamp((x + 3.0) / 6.0, 0.0, 1.0)", |x, _| x * hard(x), WIDE),
    row("hardsigmoid", "HARDSIGMOID", "clamp((x + 3.0) / 6.0, 0.0, 1.0)", |x, _| hard(x), WIDE),
    row("exp", "EXP", "exp(x)", |x, _| x.exp(), WIDE),
    row("expm1", "EXPM1", "expm1(x)", |x, _| x.exp_m1(), WIDE),
    row("softplus", "SOFTPLUS", "softplus(x)", |x, _| if x > 20.0 { x } else { x.exp().ln_1p() }, WIDE),
    row("floor", "FLOOR", "floor(x)", |x, _| x.floor(), WIDE),
    row("ceil", "CEIL", "ceil(x)", |x, _| x.ceil(), WIDE),
    // Rounds half away from zero, unlike WGSL's `round`.
    row(
        "round",
        "ROUND",
        "trunc(x) + select(0.0, sign(x), abs(x - trunc(x)) >= 0.5)",
        |x, _| x.round(),
        WIDE,
    ),
    row("trunc", "TRUNC", "trunc(x)", |x, _| x.trunc(), WIDE),
    // P0 = alpha_n, P1 = alpha_p, both after ggml's softplus; P2 = beta, P3 = eps.
    row(
        "xielu",
        "XIELU",
        "select((expm1(min(x, P3)) - x) * P0 + P2 * x, (P1 * x + P2) * x, x > 0.0)",
        |x, [n, p, beta, eps]| {
            if x > 0.0 { p * x * x + beta * x } else { (x.min(eps).exp_m1() - x) * n + beta * x }
        },
        (-5.0, 5.0),
    ),
    row("sqr", "SQR", "x * x", |x, _| x * x, WIDE),
    row("sqrt", "SQRT", "sqrt(x)", |x, _| x.sqrt(), (0.0, 100.0)),
    row("log", "LOG", "log(x)", |x, _| x.ln(), (0.1, 10.0)),
    row("sin", "SIN", "sin(turn(x))", |x, _| x.sin(), (-6.5, 6.5)),
    row("cos", "COS", "cos(turn(x))", |x, _| x.cos(), (-6.5, 6.5)),
    // P0 to P1.
    row("clamp", "CLAMP", "clamp(x, P0, P1)", |x, [low, high, ..]| x.clamp(low, high), (-1.0, 1.0)),
    // P0 is the slope below 0.
    row(
        "leaky_relu",
        "LEAKY_RELU",
        "select(P0 * x, x, x > 0.0)",
        |x, p| if x > 0.0 { x } else { p[0] * x },
        WIDE,
    ),
    row("scale", "SCALE", "x * P0 + P1", |x, [by, bias, ..]| x * by + bias, (-1.0, 1.0)),
    // A constant, independent of x; for in-place use.
    row("fill", "FILL", "P0", |_, p| p[0], (-1.0, 1.0)),
    // ggml's scale, tanh and scale: P0 is the cap, P1 its reciprocal.
    row("softcap", "SOFTCAP", "P0 * tanh_safe(x * P1)", |x, [cap, by, ..]| cap * (x * by).tanh(), WIDE),
];

impl Function {
    /// Inputs of [`Self::range`] near 0: mixed with larger ones, their errors would not be visible.
    pub(super) fn near(&self) -> (f32, f32) {
        if self.range == WIDE { NEAR } else { self.range }
    }

    /// The row of a graph's function.
    pub fn of(f: &chaski_graph::Function) -> &'static Function {
        Function::find(f.name).expect("a row for every function of graphs")
    }

    /// The function of this name in kernels.
    pub fn find(name: &str) -> Option<&'static Function> {
        FUNCTIONS.iter().find(|f| f.name == name)
    }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn hard(x: f64) -> f64 {
    ((x + 3.0) / 6.0).clamp(0.0, 1.0)
}

/// The tanh form, as ggml's CPU backend tabulates it between -10 and 10: input and output in f16, computed in f32. The
/// f32 steps decide the results for the smallest inputs, whose halves are below f16.
pub(crate) fn gelu(x: f64) -> f64 {
    if x <= -10.0 {
        return 0.0;
    } else if x >= 10.0 {
        return x;
    }
    let x = rounded(x as f32);
    rounded(0.5 * x * (1.0 + (SQRT_2_BY_PI * x * (1.0 + 0.044715 * x * x)).tanh())).into()
}

const SQRT_2_BY_PI: f32 = 0.797_884_6;

/// x logistic(1.702 x), tabulated likewise over the whole range.
pub(crate) fn gelu_quick(x: f64) -> f64 {
    let x = rounded(x as f32);
    rounded(x * (1.0 / (1.0 + (-1.702 * x).exp()))).into()
}

/// The nearest f16 value; values out of range are kept.
fn rounded(x: f32) -> f32 {
    if x.abs() > half::f16::MAX.into() { x } else { half::f16::from_f32(x).into() }
}

pub(crate) fn gelu_erf(x: f64) -> f64 {
    0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2))
}

/// The error function as a series of positive terms; 1 to the last bit beyond 6.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= 2.0 * x * x / (2 * n + 1) as f64;
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_graphs_has_a_row() {
        assert!(chaski_graph::FUNCTIONS.iter().all(|f| Function::of(f).name == f.name));
    }

    #[test]
    fn names_are_unique_and_formulas_have_known_values() {
        for (i, f) in FUNCTIONS.iter().enumerate() {
            assert!(FUNCTIONS[..i].iter().all(|g| g.name != f.name && g.ggml != f.ggml), "{}", f.name);
        }
        let at =
            |name: &str, x: f64| (Function::find(name).expect("a row").formula)(x, [2.0, 3.0, 0.5, 1e-7]);
        // Tabulated values of the functions, to ten digits.
        for (name, x, want) in [
            ("gelu_erf", 1.0, 0.841_344_746_1),
            ("gelu_erf", -2.0, -0.045_500_263_9),
            // 0.841_191_990_6, rounded to multiples of 2^-11
            ("gelu", 1.0, 1723.0 / 2048.0),
            ("gelu", 1.000_4, 1723.0 / 2048.0),
            ("gelu", 9.999, 10.0),
            ("gelu", 10.001, 10.001),
            // -1178.53 multiples of 2^-24, of which the f32 sum keeps 1178
            ("gelu", -4.0, -1178.0 / 16_777_216.0),
            ("gelu", -10.0, 0.0),
            // 0.845_795_8
            ("gelu_quick", 1.0, 1732.0 / 2048.0),
            ("gelu_quick", 70_000.0, 70_000.0),
            ("sigmoid", 1.0, 0.731_058_578_6),
            ("softplus", 0.0, std::f64::consts::LN_2),
            ("elu", -1.0, -0.632_120_558_8),
            ("round", -2.5, -3.0),
            ("hardswish", 1.0, 2.0 / 3.0),
            ("xielu", 2.0, 13.0),
            ("xielu", -1.0, 2.0 * 0.367_879_441_2 - 0.5),
            ("clamp", 9.0, 3.0),
            ("leaky_relu", -4.0, -8.0),
        ] {
            assert!((at(name, x) - want).abs() < 1e-9, "{name}({x}) = {}", at(name, x));
        }
    }
}
