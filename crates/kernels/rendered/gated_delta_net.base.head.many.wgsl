// gated_delta_net: set=base gate=head state=many
override WG: u32 = 256u;
override T: u32 = 256u;
override ROWS: u32 = 1u;

@group(0) @binding(0) var<storage, read> q: array<u32>;
override q_ne0: u32 = 1u;
override q_ne1: u32 = 1u;
override q_ne2: u32 = 1u;
override q_ne3: u32 = 1u;
override q_s0: u32 = 1u;
override q_s1: u32 = 1u;
override q_s2: u32 = 1u;
override q_s3: u32 = 1u;
override q_o: u32 = 0u;
// Offset of the value at coordinates c.
fn q_at(c: vec4<u32>) -> u32 {
    return q_o + c.x * q_s0 + c.y * q_s1 + c.z * q_s2 + c.w * q_s3;
}

fn q_load(i: u32) -> f32 {
    return bitcast<f32>(q[i]);
}

override NEIGHBOURS: bool = false;
override EPS: f32 = 0.000001;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> step: array<u32>;
@group(0) @binding(5) var<storage, read_write> s: array<f32>;
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

override k_ne0: u32 = 1u;
override k_ne1: u32 = 1u;
override k_ne2: u32 = 1u;
override k_ne3: u32 = 1u;
override k_s0: u32 = 1u;
override k_s1: u32 = 1u;
override k_s2: u32 = 1u;
override k_s3: u32 = 1u;
override k_o: u32 = 0u;
// Offset of the value at coordinates c.
fn k_at(c: vec4<u32>) -> u32 {
    return k_o + c.x * k_s0 + c.y * k_s1 + c.z * k_s2 + c.w * k_s3;
}

fn k_load(i: u32) -> f32 {
    return bitcast<f32>(q[i]);
}

override v_ne0: u32 = 1u;
override v_ne1: u32 = 1u;
override v_ne2: u32 = 1u;
override v_ne3: u32 = 1u;
override v_s0: u32 = 1u;
override v_s1: u32 = 1u;
override v_s2: u32 = 1u;
override v_s3: u32 = 1u;
override v_o: u32 = 0u;
// Offset of the value at coordinates c.
fn v_at(c: vec4<u32>) -> u32 {
    return v_o + c.x * v_s0 + c.y * v_s1 + c.z * v_s2 + c.w * v_s3;
}

fn v_load(i: u32) -> f32 {
    return bitcast<f32>(q[i]);
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

@group(0) @binding(3) var<storage, read> g: array<u32>;
override g_ne0: u32 = 1u;
override g_ne1: u32 = 1u;
override g_ne2: u32 = 1u;
override g_ne3: u32 = 1u;
override g_s0: u32 = 1u;
override g_s1: u32 = 1u;
override g_s2: u32 = 1u;
override g_s3: u32 = 1u;
override g_o: u32 = 0u;
// Offset of the value at coordinates c.
fn g_at(c: vec4<u32>) -> u32 {
    return g_o + c.x * g_s0 + c.y * g_s1 + c.z * g_s2 + c.w * g_s3;
}

fn g_load(i: u32) -> f32 {
    return bitcast<f32>(g[i]);
}

@group(0) @binding(4) var<storage, read> beta: array<u32>;
override beta_ne0: u32 = 1u;
override beta_ne1: u32 = 1u;
override beta_ne2: u32 = 1u;
override beta_ne3: u32 = 1u;
override beta_s0: u32 = 1u;
override beta_s1: u32 = 1u;
override beta_s2: u32 = 1u;
override beta_s3: u32 = 1u;
override beta_o: u32 = 0u;
// Offset of the value at coordinates c.
fn beta_at(c: vec4<u32>) -> u32 {
    return beta_o + c.x * beta_s0 + c.y * beta_s1 + c.z * beta_s2 + c.w * beta_s3;
}

fn beta_load(i: u32) -> f32 {
    return bitcast<f32>(beta[i]);
}

@group(0) @binding(6) var<storage, read_write> y: array<u32>;
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

var<workgroup> red: array<f32, 5u * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tid = local_index;
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

    let k_head = select(head % k_ne1, head / (HEADS / k_ne1), NEIGHBOURS);
    let rate = a[head];
    let bias = a[HEADS + head];
    var kk: array<f32, 16>;
    let n_tok = step[0];
    for (var t = 0u; t < n_tok; t++) {
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

        let k0 = k_at(vec4<u32>(0u, k_head, t, seq));
        let q0 = q_at(vec4<u32>(0u, k_head, t, seq));
        let decay = exp(rate * softplus(g_load(g_at(vec4<u32>(head, t, 0u, 0u))) + bias));
        let learn = logistic(beta_load(beta_at(vec4<u32>(head, t, 0u, 0u))));
        var kk_sum = 0.0;
        var qq_sum = 0.0;
        var mk = 0.0;
        var mq = 0.0;
        var kq = 0.0;
        for (var e = 0u; e < NS; e++) {
            let i = min(e * T + lane, S - 1u);
            let inside = e * T + lane < S;
            let ki = select(0.0, k_load(k0 + i * k_s0), inside);
            let qi = select(0.0, q_load(q0 + i * q_s0), inside);
            m[e] *= decay;
            kk[e] = ki;
            mk += m[e] * ki;
            mq += m[e] * qi;
            kq += ki * qi;
            kk_sum += ki * ki;
            qq_sum += qi * qi;
        }
    workgroupBarrier();
    red[0u * WG + tid] = mk;
    red[1u * WG + tid] = mq;
    red[2u * WG + tid] = kq;
    red[3u * WG + tid] = kk_sum;
    red[4u * WG + tid] = qq_sum;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] += red[0u * WG + tid + s];
            red[1u * WG + tid] += red[1u * WG + tid + s];
            red[2u * WG + tid] += red[2u * WG + tid + s];
            red[3u * WG + tid] += red[3u * WG + tid + s];
            red[4u * WG + tid] += red[4u * WG + tid + s];
        }
        workgroupBarrier();
    }
    mk = red[0u * WG + team * T];
    mq = red[1u * WG + team * T];
    kq = red[2u * WG + team * T];
    kk_sum = red[3u * WG + team * T];
    qq_sum = red[4u * WG + team * T];

        let by_k = 1.0 / sqrt(kk_sum + EPS);
        let by_q = 1.0 / sqrt(qq_sum + EPS);
        let d = learn * (v_load(v_at(vec4<u32>(j, head, t, seq))) - mk * by_k);
        for (var e = 0u; e < NS; e++) {
            m[e] += d * by_k * kk[e];
        }
        if (live && lane == 0u) {
            let out = (mq + d * by_k * kq) * by_q / sqrt(f32(S));
            y[y_at(vec4<u32>(j, head, t, 0u))] = bitcast<u32>(out);
        }
    }
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        if (live && i < S) {
            s[s0 + i] = m[e];
        }
    }

}
