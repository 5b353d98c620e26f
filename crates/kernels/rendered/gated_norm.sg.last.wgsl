// gated_norm: set=sg norm=last
override WG: u32 = 256u;
override T: u32 = 256u;
override SG_MIN: u32 = 4u;
override ROWS: u32 = 1u;

override K: u32 = 1u;
override PER: u32 = 1u;
override LDX: u32 = 1u;
override LDZ: u32 = 1u;
override LDY: u32 = 1u;
override Z_AT: u32 = 0u;
override Z_ROW: bool = false;
override ADD: bool = false;
override ACT: u32 = 0u;
override W_ROW: u32 = 0u;
override EPS: f32 = 0.00001;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> z: array<f32>;
@group(0) @binding(2) var<storage, read> aux: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
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

fn act(v: f32) -> f32 {
    if (ACT == 2u) {
        return softplus(v);
    }
    return logistic(v) * select(1.0, v, ACT == 0u);
}

fn put(at: u32, v: f32) {
    if (ADD) {
        y[at] += v;
    } else {
        y[at] = v;
    }
}

var<workgroup> red: array<f32, 1u * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup_id: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
    let tid = subgroup_id * subgroup_size + subgroup_lane;
    let team = tid / T;
    let lane = tid % T;

    let nth = (group.y * groups.x + group.x) * (WG / T) + team;
    let live = nth < ROWS;
    let row = select(0u, nth, live);

    let col = row / PER;
    let nth_row = row % PER;
    let x0 = col * LDX + nth_row * K;
    let z_step = select(1u, 0u, Z_ROW);
    let z0 = col * LDZ + Z_AT + nth_row * select(K, 1u, Z_ROW);
    let y0 = col * LDY + nth_row * K;
    var ss = 0.0;
    for (var i = lane; i < K; i += T) {
        let v = x[x0 + i] * act(z[z0 + i * z_step]);
        ss += v * v;
    }
    ss = subgroupAdd(ss);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = ss;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        ss = red[0u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            ss += red[0u * WG + first + i];
        }
    }

    if (!live) {
        return;
    }
    let scale = 1.0 / sqrt(ss / f32(K) + EPS);
    for (var i = lane; i < K; i += T) {
        put(y0 + i, x[x0 + i] * act(z[z0 + i * z_step]) * scale * aux[nth_row * W_ROW + i]);
    }
}
