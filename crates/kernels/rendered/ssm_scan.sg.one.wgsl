// ssm_scan: set=sg state=one
override WG: u32 = 256u;
override T: u32 = 256u;
override SG_MIN: u32 = 4u;
override ROWS: u32 = 1u;

override SKIP: bool = true;
override SKIP_AT: u32 = 0u;
override BIAS: bool = true;
override BIAS_AT: u32 = 0u;
@group(0) @binding(0) var<storage, read_write> s: array<f32>;
@group(0) @binding(6) var<storage, read> step: array<u32>;
override S: u32 = 1u;
override NS: u32 = 1u;
override HEADS: u32 = 1u;
override ROWS_HEAD: u32 = 1u;
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

@group(0) @binding(1) var<storage, read> x: array<u32>;
override x_ne0: u32 = 1u;
override x_ne1: u32 = 1u;
override x_ne2: u32 = 1u;
override x_ne3: u32 = 1u;
override x_s0: u32 = 1u;
override x_s1: u32 = 1u;
override x_s2: u32 = 1u;
override x_s3: u32 = 1u;
override x_o: u32 = 0u;
// Offset of the value at coordinates c.
fn x_at(c: vec4<u32>) -> u32 {
    return x_o + c.x * x_s0 + c.y * x_s1 + c.z * x_s2 + c.w * x_s3;
}

fn x_load(i: u32) -> f32 {
    return bitcast<f32>(x[i]);
}

@group(0) @binding(2) var<storage, read> dt: array<u32>;
override dt_ne0: u32 = 1u;
override dt_ne1: u32 = 1u;
override dt_ne2: u32 = 1u;
override dt_ne3: u32 = 1u;
override dt_s0: u32 = 1u;
override dt_s1: u32 = 1u;
override dt_s2: u32 = 1u;
override dt_s3: u32 = 1u;
override dt_o: u32 = 0u;
// Offset of the value at coordinates c.
fn dt_at(c: vec4<u32>) -> u32 {
    return dt_o + c.x * dt_s0 + c.y * dt_s1 + c.z * dt_s2 + c.w * dt_s3;
}

fn dt_load(i: u32) -> f32 {
    return bitcast<f32>(dt[i]);
}

@group(0) @binding(3) var<storage, read> a: array<u32>;
override a_ne0: u32 = 1u;
override a_ne1: u32 = 1u;
override a_ne2: u32 = 1u;
override a_ne3: u32 = 1u;
override a_s0: u32 = 1u;
override a_s1: u32 = 1u;
override a_s2: u32 = 1u;
override a_s3: u32 = 1u;
override a_o: u32 = 0u;
// Offset of the value at coordinates c.
fn a_at(c: vec4<u32>) -> u32 {
    return a_o + c.x * a_s0 + c.y * a_s1 + c.z * a_s2 + c.w * a_s3;
}

fn a_load(i: u32) -> f32 {
    return bitcast<f32>(a[i]);
}

@group(0) @binding(4) var<storage, read> b: array<u32>;
override b_ne0: u32 = 1u;
override b_ne1: u32 = 1u;
override b_ne2: u32 = 1u;
override b_ne3: u32 = 1u;
override b_s0: u32 = 1u;
override b_s1: u32 = 1u;
override b_s2: u32 = 1u;
override b_s3: u32 = 1u;
override b_o: u32 = 0u;
// Offset of the value at coordinates c.
fn b_at(c: vec4<u32>) -> u32 {
    return b_o + c.x * b_s0 + c.y * b_s1 + c.z * b_s2 + c.w * b_s3;
}

fn b_load(i: u32) -> f32 {
    return bitcast<f32>(b[i]);
}

@group(0) @binding(5) var<storage, read> c: array<u32>;
override c_ne0: u32 = 1u;
override c_ne1: u32 = 1u;
override c_ne2: u32 = 1u;
override c_ne3: u32 = 1u;
override c_s0: u32 = 1u;
override c_s1: u32 = 1u;
override c_s2: u32 = 1u;
override c_s3: u32 = 1u;
override c_o: u32 = 0u;
// Offset of the value at coordinates c.
fn c_at(c: vec4<u32>) -> u32 {
    return c_o + c.x * c_s0 + c.y * c_s1 + c.z * c_s2 + c.w * c_s3;
}

fn c_load(i: u32) -> f32 {
    return bitcast<f32>(c[i]);
}

@group(0) @binding(7) var<storage, read_write> y: array<u32>;
override y_ne0: u32 = 1u;
override y_ne1: u32 = 1u;
override y_ne2: u32 = 1u;
override y_ne3: u32 = 1u;
override y_s0: u32 = 1u;
override y_s1: u32 = 1u;
override y_s2: u32 = 1u;
override y_s3: u32 = 1u;
override y_o: u32 = 0u;
// Offset of the value at coordinates c.
fn y_at(c: vec4<u32>) -> u32 {
    return y_o + c.x * y_s0 + c.y * y_s1 + c.z * y_s2 + c.w * y_s3;
}

fn y_coords(i: u32) -> vec4<u32> {
    let row = i / y_ne0;
    let mat = row / y_ne1;
    return vec4<u32>(i % y_ne0, row % y_ne1, mat % y_ne2, mat / y_ne2);
}
fn y_order(c: vec4<u32>) -> u32 {
    return c.x + y_ne0 * (c.y + y_ne1 * (c.z + y_ne2 * c.w));
}

struct Place {
    c: vec4<u32>,
    inside: bool,
}
override y_d0: u32 = 1u;
override y_d1: u32 = 1u;
override y_d2: u32 = 1u;
override y_d3: u32 = 1u;
override y_m0: u32 = 1u;
override y_m1: u32 = 1u;
override y_m2: u32 = 1u;
override y_m3: u32 = 1u;
// The value at offset i of the buffer, if any.
fn y_place(i: u32) -> Place {
    let o = i - y_o;
    let c = vec4<u32>(o % y_m0 / y_d0, o % y_m1 / y_d1, o % y_m2 / y_d2, o % y_m3 / y_d3);
    let inside = i >= y_o && y_at(c) == i
        && all(c < vec4<u32>(y_ne0, y_ne1, y_ne2, y_ne3));
    return Place(c, inside);
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

var<workgroup> red: array<f32, 1u * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup_id: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
    let tid = subgroup_id * subgroup_size + subgroup_lane;
    let team = tid / T;
    let lane = tid % T;

    let nth = (group.y * groups.x + group.x) * (WG / T) + team;
    let live = nth < ROWS;
    let row = select(0u, nth, live);

    let j = row % ROWS_HEAD;
    let head = row / ROWS_HEAD % HEADS;
    let seq = row / ROWS_HEAD / HEADS;

    var s_seq = col_seq(0u);
    var s0 = (s_seq * HEADS * ROWS_HEAD + row) * S;
    var m: array<f32, 16>;
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        m[e] = select(0.0, s[s0 + min(i, S - 1u)], i < S);
    }

    var skip = 0.0;
    if (SKIP) {
        skip = a_load(SKIP_AT + head);
    }
    var bias = 0.0;
    if (BIAS) {
        bias = a_load(BIAS_AT + head);
    }
    var decay: array<f32, 16>;
    for (var e = 0u; e < NS; e++) {
        decay[e] = a_load(a_at(vec4<u32>(min(e * T + lane, a_ne0 - 1u), head, 0u, 0u)));
    }
    let g = head / max(HEADS / b_ne1, 1u);
    let n_tok = 1u;
    for (var t0 = 0u; t0 < n_tok; t0 += 1u) {
        var v0 = 0.0;
        {
            // Tokens past the last change nothing: their step is 0.
            let t = min(t0 + 0u, n_tok - 1u);
            let inside = t0 + 0u < n_tok;
            if (inside) {
            if (N_SEQ > 1u && col_seq(t) != s_seq) {
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        if (live && i < S) {
            s[s0 + i] = m[e];
        }
    }

                s_seq = col_seq(t);
                s0 = (s_seq * HEADS * ROWS_HEAD + row) * S;
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        m[e] = select(0.0, s[s0 + min(i, S - 1u)], i < S);
    }

            }
            if (col_pos(t) == 0u) {
                for (var e = 0u; e < NS; e++) {
                    m[e] = 0.0;
                }
            }

            }
            let d = select(0.0, softplus(dt_load(dt_at(vec4<u32>(head, t, seq, 0u))) + bias), inside);
            let xj = x_load(x_at(vec4<u32>(j, head, t, seq)));
            let dx = d * xj;
            let b0 = b_at(vec4<u32>(0u, g, t, seq));
            let c0 = c_at(vec4<u32>(0u, g, t, seq));
            let all = exp(d * decay[0]);
            for (var e = 0u; e < NS; e++) {
                let i = min(e * T + lane, S - 1u);
                var by = all;
                if (a_ne0 > 1u) {
                    by = exp(d * decay[e]);
                }
                m[e] = m[e] * by + dx * b_load(b0 + i * b_s0);
                v0 += select(0.0, m[e] * c_load(c0 + i * c_s0), e * T + lane < S);
            }
            v0 += select(0.0, skip * xj, lane == 0u);
        }
    v0 = subgroupAdd(v0);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = v0;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        v0 = red[0u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            v0 += red[0u * WG + first + i];
        }
    }

        if (live && lane == 0u) {
            if (t0 + 0u < n_tok) {
                y[y_at(vec4<u32>(j, head, t0 + 0u, 0u))] = bitcast<u32>(v0);
            }
        }
    }
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        if (live && i < S) {
            s[s0 + i] = m[e];
        }
    }

}
