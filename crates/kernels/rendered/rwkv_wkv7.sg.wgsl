// rwkv_wkv7: set=sg
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

@group(0) @binding(0) var<storage, read> r: array<u32>;
override r_ne0: u32 = 1u;
override r_ne1: u32 = 1u;
override r_ne2: u32 = 1u;
override r_ne3: u32 = 1u;
override r_s0: u32 = 1u;
override r_s1: u32 = 1u;
override r_s2: u32 = 1u;
override r_s3: u32 = 1u;
override r_o: u32 = 0u;
// Where the value at coordinates c stands.
fn r_at(c: vec4<u32>) -> u32 {
    return r_o + c.x * r_s0 + c.y * r_s1 + c.z * r_s2 + c.w * r_s3;
}

fn r_load(i: u32) -> f32 {
    return bitcast<f32>(r[i]);
}

@group(0) @binding(1) var<storage, read> w: array<u32>;
override w_ne0: u32 = 1u;
override w_ne1: u32 = 1u;
override w_ne2: u32 = 1u;
override w_ne3: u32 = 1u;
override w_s0: u32 = 1u;
override w_s1: u32 = 1u;
override w_s2: u32 = 1u;
override w_s3: u32 = 1u;
override w_o: u32 = 0u;
// Where the value at coordinates c stands.
fn w_at(c: vec4<u32>) -> u32 {
    return w_o + c.x * w_s0 + c.y * w_s1 + c.z * w_s2 + c.w * w_s3;
}

fn w_load(i: u32) -> f32 {
    return bitcast<f32>(w[i]);
}

@group(0) @binding(2) var<storage, read> k: array<u32>;
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

@group(0) @binding(3) var<storage, read> v: array<u32>;
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

@group(0) @binding(4) var<storage, read> a: array<u32>;
override a_ne0: u32 = 1u;
override a_ne1: u32 = 1u;
override a_ne2: u32 = 1u;
override a_ne3: u32 = 1u;
override a_s0: u32 = 1u;
override a_s1: u32 = 1u;
override a_s2: u32 = 1u;
override a_s3: u32 = 1u;
override a_o: u32 = 0u;
// Where the value at coordinates c stands.
fn a_at(c: vec4<u32>) -> u32 {
    return a_o + c.x * a_s0 + c.y * a_s1 + c.z * a_s2 + c.w * a_s3;
}

fn a_load(i: u32) -> f32 {
    return bitcast<f32>(a[i]);
}

@group(0) @binding(5) var<storage, read> b: array<u32>;
override b_ne0: u32 = 1u;
override b_ne1: u32 = 1u;
override b_ne2: u32 = 1u;
override b_ne3: u32 = 1u;
override b_s0: u32 = 1u;
override b_s1: u32 = 1u;
override b_s2: u32 = 1u;
override b_s3: u32 = 1u;
override b_o: u32 = 0u;
// Where the value at coordinates c stands.
fn b_at(c: vec4<u32>) -> u32 {
    return b_o + c.x * b_s0 + c.y * b_s1 + c.z * b_s2 + c.w * b_s3;
}

fn b_load(i: u32) -> f32 {
    return bitcast<f32>(b[i]);
}

@group(0) @binding(6) var<storage, read> s: array<u32>;
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

    var bb: array<f32, 16>;
    for (var t = 0u; t < N_TOK; t++) {
        let n = seq * N_TOK + t;
        let vj = v_load(v_at(vec4<u32>(j, head, n, 0u)));
        var d = 0.0;
        var old = 0.0;
        var more = 0.0;
        for (var e = 0u; e < NS; e++) {
            let inside = e * T + lane < S;
            let at = vec4<u32>(min(e * T + lane, S - 1u), head, n, 0u);
            let ri = select(0.0, r_load(r_at(at)), inside);
            let bi = b_load(b_at(at));
            d += select(0.0, a_load(a_at(at)) * m[e], inside);
            m[e] = m[e] * w_load(w_at(at)) + k_load(k_at(at)) * vj;
            bb[e] = bi;
            old += ri * m[e];
            more += ri * bi;
        }
    d = subgroupAdd(d);
    old = subgroupAdd(old);
    more = subgroupAdd(more);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = d;
            red[1u * WG + subgroup_id] = old;
            red[2u * WG + subgroup_id] = more;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        d = red[0u * WG + first];
        old = red[1u * WG + first];
        more = red[2u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            d += red[0u * WG + first + i];
            old += red[1u * WG + first + i];
            more += red[2u * WG + first + i];
        }
    }

        for (var e = 0u; e < NS; e++) {
            m[e] += d * bb[e];
        }
        if (live && lane == 0u) {
            y[y_o + (n * HEADS + head) * S + j] = bitcast<u32>(old + d * more);
        }
    }
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        if (live && i < S) {
            y[y_o + N_SEQ * N_TOK * HEADS * S + ((seq * HEADS + head) * S + j) * S + i * 1u] = bitcast<u32>(m[e]);
        }
    }

}
