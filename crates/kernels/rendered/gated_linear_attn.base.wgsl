// gated_linear_attn: set=base
override WG: u32 = 256u;
override T: u32 = 256u;
override ROWS: u32 = 1u;

override S: u32 = 1u;
override NS: u32 = 1u;
override HEADS: u32 = 1u;
override N_TOK: u32 = 1u;
override N_SEQ: u32 = 1u;
override ROWS_HEAD: u32 = 1u;
// Copies of the state that are kept: of the last tokens, the newest first.
override N_SNAP: u32 = 1u;

override SCALE: f32 = 1.0;
@group(0) @binding(0) var<storage, read> k: array<u32>;
override k_ne0: u32 = 1u;
override k_ne1: u32 = 1u;
override k_ne2: u32 = 1u;
override k_ne3: u32 = 1u;
override k_s0: u32 = 1u;
override k_s1: u32 = 1u;
override k_s2: u32 = 1u;
override k_s3: u32 = 1u;
override k_o: u32 = 0u;
// Where the value at coordinates c stands.
fn k_at(c: vec4<u32>) -> u32 {
    return k_o + c.x * k_s0 + c.y * k_s1 + c.z * k_s2 + c.w * k_s3;
}

fn k_load(i: u32) -> f32 {
    return bitcast<f32>(k[i]);
}

@group(0) @binding(1) var<storage, read> v: array<u32>;
override v_ne0: u32 = 1u;
override v_ne1: u32 = 1u;
override v_ne2: u32 = 1u;
override v_ne3: u32 = 1u;
override v_s0: u32 = 1u;
override v_s1: u32 = 1u;
override v_s2: u32 = 1u;
override v_s3: u32 = 1u;
override v_o: u32 = 0u;
// Where the value at coordinates c stands.
fn v_at(c: vec4<u32>) -> u32 {
    return v_o + c.x * v_s0 + c.y * v_s1 + c.z * v_s2 + c.w * v_s3;
}

fn v_load(i: u32) -> f32 {
    return bitcast<f32>(v[i]);
}

@group(0) @binding(2) var<storage, read> q: array<u32>;
override q_ne0: u32 = 1u;
override q_ne1: u32 = 1u;
override q_ne2: u32 = 1u;
override q_ne3: u32 = 1u;
override q_s0: u32 = 1u;
override q_s1: u32 = 1u;
override q_s2: u32 = 1u;
override q_s3: u32 = 1u;
override q_o: u32 = 0u;
// Where the value at coordinates c stands.
fn q_at(c: vec4<u32>) -> u32 {
    return q_o + c.x * q_s0 + c.y * q_s1 + c.z * q_s2 + c.w * q_s3;
}

fn q_load(i: u32) -> f32 {
    return bitcast<f32>(q[i]);
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
// Where the value at coordinates c stands.
fn g_at(c: vec4<u32>) -> u32 {
    return g_o + c.x * g_s0 + c.y * g_s1 + c.z * g_s2 + c.w * g_s3;
}

fn g_load(i: u32) -> f32 {
    return bitcast<f32>(g[i]);
}

@group(0) @binding(4) var<storage, read> s: array<u32>;
override s_ne0: u32 = 1u;
override s_ne1: u32 = 1u;
override s_ne2: u32 = 1u;
override s_ne3: u32 = 1u;
override s_s0: u32 = 1u;
override s_s1: u32 = 1u;
override s_s2: u32 = 1u;
override s_s3: u32 = 1u;
override s_o: u32 = 0u;
// Where the value at coordinates c stands.
fn s_at(c: vec4<u32>) -> u32 {
    return s_o + c.x * s_s0 + c.y * s_s1 + c.z * s_s2 + c.w * s_s3;
}

fn s_load(i: u32) -> f32 {
    return bitcast<f32>(s[i]);
}

@group(0) @binding(5) var<storage, read_write> y: array<u32>;
override y_ne0: u32 = 1u;
override y_ne1: u32 = 1u;
override y_ne2: u32 = 1u;
override y_ne3: u32 = 1u;
override y_s0: u32 = 1u;
override y_s1: u32 = 1u;
override y_s2: u32 = 1u;
override y_s3: u32 = 1u;
override y_o: u32 = 0u;
// Where the value at coordinates c stands.
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
// Which value stands at place i of the buffer, if one does.
fn y_place(i: u32) -> Place {
    let o = i - y_o;
    let c = vec4<u32>(o % y_m0 / y_d0, o % y_m1 / y_d1, o % y_m2 / y_d2, o % y_m3 / y_d3);
    let inside = i >= y_o && y_at(c) == i
        && all(c < vec4<u32>(y_ne0, y_ne1, y_ne2, y_ne3));
    return Place(c, inside);
}

var<workgroup> red: array<f32, 1u * WG>;

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

    let s0 = s_at(vec4<u32>(0u, j, head, seq));
    var m: array<f32, 16>;
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        m[e] = select(0.0, s_load(s0 + min(i, S - 1u) * s_s0), i < S);
    }

    for (var t = 0u; t < N_TOK; t++) {
        let n = seq * N_TOK + t;
        let vj = v_load(v_at(vec4<u32>(j, head, n, 0u)));
        var sum = 0.0;
        for (var e = 0u; e < NS; e++) {
            let at = vec4<u32>(min(e * T + lane, S - 1u), head, n, 0u);
            m[e] = m[e] * g_load(g_at(at)) + k_load(k_at(at)) * vj;
            sum += select(0.0, q_load(q_at(at)) * m[e], e * T + lane < S);
        }
    workgroupBarrier();
    red[0u * WG + tid] = sum;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] += red[0u * WG + tid + s];
        }
        workgroupBarrier();
    }
    sum = red[0u * WG + team * T];

        if (live && lane == 0u) {
            y[y_o + (n * HEADS + head) * S + j] = bitcast<u32>(sum * SCALE);
        }
    }
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        if (live && i < S) {
            y[y_o + N_SEQ * N_TOK * HEADS * S + (seq * HEADS + head) * S * S + j + i * S] = bitcast<u32>(m[e]);
        }
    }

}
