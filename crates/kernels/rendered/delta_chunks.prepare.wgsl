// delta_chunks: part=prepare
const C: u32 = 32u;
const PART: u32 = 2144u;
override S: u32 = 4u;
override HEADS: u32 = 1u;
override X_COL: u32 = 1u;
override K_AT: u32 = 0u;
override Q_AT: u32 = 0u;
override K_HEADS: u32 = 1u;
override NEIGHBOURS: bool = false;
override EPS: f32 = 0.000001;
override G_AT: u32 = 0u;
override G_COL: u32 = 1u;
override B_AT: u32 = 0u;
override B_COL: u32 = 1u;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> step: array<u32>;
@group(0) @binding(3) var<storage, read> g: array<f32>;
@group(0) @binding(4) var<storage, read> beta: array<f32>;
@group(0) @binding(5) var<storage, read_write> parts: array<f32>;
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

var<workgroup> kk: array<f32, 1024>;
var<workgroup> qk: array<f32, 1024>;
var<workgroup> inv: array<f32, 1024>;
var<workgroup> decay: array<f32, 32>;
var<workgroup> sums: array<f32, 32>;
var<workgroup> learn: array<f32, 32>;
var<workgroup> by_k: array<f32, 32>;
var<workgroup> by_q: array<f32, 32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let first = group.x * C;
    let head = group.y;
    let n_col = step[0];
    if (first >= n_col) {
        return;
    }
    let k_head = select(head % K_HEADS, head / (HEADS / K_HEADS), NEIGHBOURS);
    let s4 = S / 4u;
    let q0 = Q_AT + k_head * s4;
    let k0 = K_AT + k_head * s4;
    // Products of columns ta and tb with columns sa and sb.
    let ta = tid / 16u;
    let tb = ta + 16u;
    let sa = tid % 16u;
    let sb = sa + 16u;
    let col_ta = min(first + ta, n_col - 1u) * X_COL;
    let col_tb = min(first + tb, n_col - 1u) * X_COL;
    let col_sa = min(first + sa, n_col - 1u) * X_COL;
    let col_sb = min(first + sb, n_col - 1u) * X_COL;
    var kks = vec4<f32>(0.0);
    var qks = vec4<f32>(0.0);
    for (var i = 0u; i < s4; i++) {
        let ka = x[col_ta + k0 + i];
        let kb = x[col_tb + k0 + i];
        let qa = x[col_ta + q0 + i];
        let qb = x[col_tb + q0 + i];
        let la = x[col_sa + k0 + i];
        let lb = x[col_sb + k0 + i];
        kks += vec4<f32>(dot(ka, la), dot(ka, lb), dot(kb, la), dot(kb, lb));
        qks += vec4<f32>(dot(qa, la), dot(qa, lb), dot(qb, la), dot(qb, lb));
    }
    let cells = vec4<u32>(ta * C + sa, ta * C + sb, tb * C + sa, tb * C + sb);
    for (var e = 0u; e < 4u; e++) {
        kk[cells[e]] = kks[e];
    }
    // The first threads compute the per-column factors.
    if (tid < C) {
        let col = first + tid;
        let there = col < n_col;
        let c = min(col, n_col - 1u);
        let rate = a[head] * softplus(g[G_AT + c * G_COL + head] + a[HEADS + head]);
        decay[tid] = select(0.0, rate, there);
        learn[tid] = select(0.0, logistic(beta[B_AT + c * B_COL + head]), there);
        var qq = 0.0;
        for (var i = 0u; i < s4; i++) {
            let v = x[c * X_COL + q0 + i];
            qq += dot(v, v);
        }
        by_q[tid] = 1.0 / sqrt(qq + EPS) / sqrt(f32(S));
    }
    workgroupBarrier();
    if (tid < C) {
        by_k[tid] = 1.0 / sqrt(kk[tid * C + tid] + EPS);
        var sum = 0.0;
        for (var t = 0u; t <= tid; t++) {
            sum += decay[t];
        }
        sums[tid] = sum;
    }
    workgroupBarrier();
    for (var e = 0u; e < 4u; e++) {
        let t = cells[e] / C;
        let s = cells[e] % C;
        // Above the diagonal the exponent would be positive.
        let kept = exp(min(sums[t] - sums[s], 0.0)) * by_k[s];
        kk[cells[e]] = select(0.0, learn[t] * kept * by_k[t] * kks[e], s < t);
        qk[cells[e]] = select(0.0, kept * by_q[t] * qks[e], s <= t);
        inv[cells[e]] = select(0.0, 1.0, s == t);
    }
    workgroupBarrier();
    // Forward substitution: row d is final once the rows before it are subtracted; entries above the diagonal stay 0.
    for (var d = 0u; d < C; d++) {
        for (var e = 0u; e < 4u; e++) {
            let t = cells[e] / C;
            if (t > d) {
                inv[cells[e]] -= kk[t * C + d] * inv[d * C + cells[e] % C];
            }
        }
        workgroupBarrier();
    }
    let p0 = (group.x * HEADS + head) * PART;
    for (var e = 0u; e < 4u; e++) {
        let t = cells[e] / C;
        let s = cells[e] % C;
        var sum = 0.0;
        for (var d = s; d <= t; d++) {
            sum += qk[t * C + d] * inv[d * C + s];
        }
        parts[p0 + cells[e]] = sum * learn[s];
        parts[p0 + C * C + cells[e]] = exp(sums[C - 1u] - sums[t]) * by_k[t] * inv[cells[e]] * learn[s];
    }
    if (tid < C) {
        let kept = exp(sums[tid]);
        parts[p0 + 2u * C * C + tid] = kept * by_k[tid];
        parts[p0 + 2u * C * C + C + tid] = kept * by_q[tid];
        parts[p0 + 2u * C * C + 2u * C + tid] = exp(sums[C - 1u]);
    }
}
