// short_conv: 
override C: u32 = 1u;
override TAPS: u32 = 4u;
override TILE: u32 = 1u;
override LDX: u32 = 1u;
override LDY: u32 = 1u;
override X_AT: u32 = 0u;
override GATED: bool = false;
override BEFORE_AT: u32 = 0u;
override AFTER_AT: u32 = 0u;
override BIAS: bool = false;
override SILU: bool = false;
override KEEP: bool = true;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> aux: array<f32>;
@group(0) @binding(2) var<storage, read_write> s: array<f32>;
@group(0) @binding(3) var<storage, read> step: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
const COLS: u32 = 16u;
override N_SEQ: u32 = 1u;
fn col_pos(c: u32) -> u32 { return step[COLS + 4u * c + 1u]; }
// With a single sequence its number is not loaded, so that loads of its page table or state need not wait.
fn col_seq(c: u32) -> u32 {
    if (N_SEQ == 1u) {
        return 0u;
    }
    return step[COLS + 4u * c + 2u];
}

// Tests the bits: compilers assume v == v.
fn is_nan(v: f32) -> bool {
    return (bitcast<u32>(v) & u32(0x7fffffffu)) > u32(0x7f800000u);
}
// 1 / (1 + exp(-v)), without an intermediate infinity.
fn logistic(v: f32) -> f32 {
    return select(1.0 / (1.0 + exp(min(-v, f32(80.0)))), v, is_nan(v));
}
// Abramowitz & Stegun 7.1.26: error at most 1.5e-7.
fn erf(v: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.3275911 * abs(v));
    let p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    return sign(v) * (1.0 - p * exp(-min(v * v, f32(80.0))));
}

fn tanh_safe(v: f32) -> f32 {
    return select(tanh(clamp(v, -15.0, 15.0)), v, is_nan(v));
}
// exp(v) - 1: by its series where the difference would cancel.
fn expm1(v: f32) -> f32 {
    let s = v * (1.0 + v * (0.5 + v * (0.16666667 + v * (0.041666668 + v * (0.008333334 + v * (0.0013888889 + v * 0.0001984127))))));
    return select(exp(v) - 1.0, s, abs(v) < 0.5);
}
// log(1 + exp(v)); the rounding of 1 + t for small t is compensated by dividing by the rounded sum (Kahan).
fn softplus(v: f32) -> f32 {
    let t = exp(min(v, 20.0));
    let u = 1.0 + t;
    let l = select(log(u) * t / (u - 1.0), t, t < 0.0001);
    return select(l, v, v > 20.0 || is_nan(v));
}
// Reduces an angle to within half a turn of 0, in two steps: devices are accurate only there.
fn turn(v: f32) -> f32 {
    let n = round(v * 0.15915494);
    return (v - n * 6.28125) - n * 0.0019353072;
}

// Number of columns before column t of the same sequence, at most TAPS - 1.
fn since(t: u32) -> u32 {
    if (N_SEQ == 1u) {
        return min(t, TAPS - 1u);
    }
    var n = 0u;
    while (n < min(t, TAPS - 1u) && col_seq(t - n - 1u) == col_seq(t)) {
        n++;
    }
    return n;
}

// The input of channel c, `back` columns before column t, where the batch has `n` columns of its sequence before it.
fn input(c: u32, t: u32, back: u32, n: u32) -> f32 {
    if (back > n) {
        // Before the sequence there are zeros.
        let row = col_seq(t) * (TAPS - 1u) + TAPS - 1u - (back - n);
        return select(0.0, s[row * C + c], back <= col_pos(t));
    }
    var u = x[(t - back) * LDX + X_AT + c];
    if (GATED) {
        u *= x[(t - back) * LDX + BEFORE_AT + c];
    }
    return u;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let c = id.x;
    if (c >= C) {
        return;
    }
    let n_col = step[0];
    for (var t = id.y * TILE; t < min((id.y + 1u) * TILE, n_col); t++) {
        var sum = 0.0;
        let n = since(t);
        for (var j = 0u; j < TAPS; j++) {
            sum += aux[c * TAPS + j] * input(c, t, TAPS - 1u - j, n);
        }
        if (BIAS) {
            sum += aux[C * TAPS + c];
        }
        if (SILU) {
            sum *= logistic(sum);
        }
        if (GATED) {
            sum *= x[t * LDX + AFTER_AT + c];
        }
        y[t * LDY + c] = sum;
    }
    if (KEEP) {
        // After the last column of each sequence.
        for (var t = select(n_col - 1u, 0u, N_SEQ > 1u); t < n_col; t++) {
            if (t + 1u < n_col && col_seq(t + 1u) == col_seq(t)) {
                continue;
            }
            let n = since(t);
            // Place j is filled from a later place or from the batch, so nothing is overwritten early.
            for (var j = 0u; j < TAPS - 1u; j++) {
                s[(col_seq(t) * (TAPS - 1u) + j) * C + c] = input(c, t, TAPS - 2u - j, n);
            }
        }
    }
}
