// norm: set=sg kind=rms fuse=mul place=new
override WG: u32 = 256u;
override T: u32 = 256u;
override SG_MIN: u32 = 4u;
override ROWS: u32 = 1u;

override LEN: u32 = 1u;
override OUTER: u32 = 1u;
override PER: u32 = 1u;
override EPS: f32 = 0.0;
@group(0) @binding(0) var<storage, read> a: array<u32>;
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

@group(0) @binding(1) var<storage, read> b: array<u32>;
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

@group(0) @binding(3) var<storage, read_write> y: array<u32>;
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

    let first = row / PER * OUTER + row % PER * LEN;
    let last = select(first, min(first + LEN, (row / PER + 1u) * OUTER), live);
    let n = f32(last - first);
    var s = 0.0;
    for (var i = first + lane; i < last; i += T) {
        let v = a_load(a_at(y_coords(i)));
        s += v * v;
    }
    s = subgroupAdd(s);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = s;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        s = red[0u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            s += red[0u * WG + first + i];
        }
    }

    let scale = 1.0 / sqrt(s / max(n, 1.0) + EPS);
    for (var i = first + lane; i < last; i += T) {
        let p = y_coords(i);
        var v = a_load(a_at(p));
        v = v * scale;
        v *= b_load(b_at(vec4<u32>(p.x % b_ne0, p.y % b_ne1, p.z % b_ne2, p.w % b_ne3)));
        y[y_at(p)] = bitcast<u32>(v);
    }
}
