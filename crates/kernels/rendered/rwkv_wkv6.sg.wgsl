// rwkv_wkv6: set=sg
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

@group(0) @binding(2) var<storage, read> r: array<u32>;
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

@group(0) @binding(3) var<storage, read> tf: array<u32>;
override tf_ne0: u32 = 1u;
override tf_ne1: u32 = 1u;
override tf_ne2: u32 = 1u;
override tf_ne3: u32 = 1u;
override tf_s0: u32 = 1u;
override tf_s1: u32 = 1u;
override tf_s2: u32 = 1u;
override tf_s3: u32 = 1u;
override tf_o: u32 = 0u;
// Where the value at coordinates c stands.
fn tf_at(c: vec4<u32>) -> u32 {
    return tf_o + c.x * tf_s0 + c.y * tf_s1 + c.z * tf_s2 + c.w * tf_s3;
}

fn tf_load(i: u32) -> f32 {
    return bitcast<f32>(tf[i]);
}

@group(0) @binding(4) var<storage, read> td: array<u32>;
override td_ne0: u32 = 1u;
override td_ne1: u32 = 1u;
override td_ne2: u32 = 1u;
override td_ne3: u32 = 1u;
override td_s0: u32 = 1u;
override td_s1: u32 = 1u;
override td_s2: u32 = 1u;
override td_s3: u32 = 1u;
override td_o: u32 = 0u;
// Where the value at coordinates c stands.
fn td_at(c: vec4<u32>) -> u32 {
    return td_o + c.x * td_s0 + c.y * td_s1 + c.z * td_s2 + c.w * td_s3;
}

fn td_load(i: u32) -> f32 {
    return bitcast<f32>(td[i]);
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

    let s0 = s_at(vec4<u32>(0u, j, head, seq));
    var m: array<f32, 16>;
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        m[e] = select(0.0, s_load(s0 + min(i, S - 1u) * s_s0), i < S);
    }

    var first: array<f32, 16>;
    for (var e = 0u; e < NS; e++) {
        first[e] = tf_load(tf_at(vec4<u32>(min(e * T + lane, S - 1u), head, 0u, 0u)));
    }
    for (var t = 0u; t < N_TOK; t++) {
        let n = seq * N_TOK + t;
        let vj = v_load(v_at(vec4<u32>(j, head, n, 0u)));
        var sum = 0.0;
        for (var e = 0u; e < NS; e++) {
            let i = min(e * T + lane, S - 1u);
            let at = vec4<u32>(i, head, n, 0u);
            let kv = k_load(k_at(at)) * vj;
            sum += select(0.0, r_load(r_at(at)) * (first[e] * kv + m[e]), e * T + lane < S);
            m[e] = m[e] * td_load(td_at(at)) + kv;
        }
    sum = subgroupAdd(sum);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = sum;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        sum = red[0u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            sum += red[0u * WG + first + i];
        }
    }

        if (live && lane == 0u) {
            y[y_o + (n * HEADS + head) * S + j] = bitcast<u32>(sum);
        }
    }
    for (var e = 0u; e < NS; e++) {
        let i = e * T + lane;
        if (live && i < S) {
            y[y_o + N_SEQ * N_TOK * HEADS * S + (seq * HEADS + head) * S * S + j + i * S] = bitcast<u32>(m[e]);
        }
    }

}
