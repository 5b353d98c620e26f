// gated_delta_net: set=sg gate=head
override WG: u32 = 256u;
override T: u32 = 256u;
override SG_MIN: u32 = 4u;
override ROWS: u32 = 1u;

override S: u32 = 1u;
override NS: u32 = 1u;
override HEADS: u32 = 1u;
override N_TOK: u32 = 1u;
override N_SEQ: u32 = 1u;
override ROWS_HEAD: u32 = 1u;
// Copies of the state that are kept: of the last tokens, the newest first.
override N_SNAP: u32 = 1u;

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
// Where the value at coordinates c stands.
fn q_at(c: vec4<u32>) -> u32 {
    return q_o + c.x * q_s0 + c.y * q_s1 + c.z * q_s2 + c.w * q_s3;
}

fn q_load(i: u32) -> f32 {
    return bitcast<f32>(q[i]);
}

@group(0) @binding(1) var<storage, read> k: array<u32>;
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

@group(0) @binding(2) var<storage, read> v: array<u32>;
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
// Where the value at coordinates c stands.
fn beta_at(c: vec4<u32>) -> u32 {
    return beta_o + c.x * beta_s0 + c.y * beta_s1 + c.z * beta_s2 + c.w * beta_s3;
}

fn beta_load(i: u32) -> f32 {
    return bitcast<f32>(beta[i]);
}

@group(0) @binding(5) var<storage, read> s: array<u32>;
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

var<workgroup> red: array<f32, 3u * WG>;

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

    let s0 = s_at(vec4<u32>(0u, j, head, seq));
    var m: array<f32, 16>;
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        m[e] = select(0.0, s_load(s0 + min(i, S - 1u) * s_s0), i < S);
    }

    let n_y = N_SEQ * N_TOK * HEADS * S;
    var kk: array<f32, 16>;
    for (var t = 0u; t < N_TOK; t++) {
        let k0 = k_at(vec4<u32>(0u, head % k_ne1, t, seq));
        let q0 = q_at(vec4<u32>(0u, head % q_ne1, t, seq));
        let g0 = g_at(vec4<u32>(0u, head, t, seq));
        let decay = exp(g_load(g0));
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
        }
    mk = subgroupAdd(mk);
    mq = subgroupAdd(mq);
    kq = subgroupAdd(kq);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = mk;
            red[1u * WG + subgroup_id] = mq;
            red[2u * WG + subgroup_id] = kq;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        mk = red[0u * WG + first];
        mq = red[1u * WG + first];
        kq = red[2u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            mk += red[0u * WG + first + i];
            mq += red[1u * WG + first + i];
            kq += red[2u * WG + first + i];
        }
    }

        let d = beta_load(beta_at(vec4<u32>(0u, head, t, seq))) * (v_load(v_at(vec4<u32>(j, head, t, seq))) - mk);
        for (var e = 0u; e < NS; e++) {
            m[e] += d * kk[e];
        }
        if (live && lane == 0u) {
            y[y_o + ((seq * N_TOK + t) * HEADS + head) * S + j] = bitcast<u32>((mq + d * kq) / sqrt(f32(S)));
        }
        let back = N_TOK - 1u - t;
        if (back < N_SNAP) {
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        if (live && i < S) {
            y[y_o + n_y + (((back * N_SEQ + seq) * HEADS + head) * S + j) * S + i * 1u] = bitcast<u32>(m[e]);
        }
    }

        }
    }
}
