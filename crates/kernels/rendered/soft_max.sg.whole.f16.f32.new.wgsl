// soft_max: set=sg part=whole mask=f16 sinks=f32 place=new
override WG: u32 = 256u;
override T: u32 = 256u;
override SG_MIN: u32 = 4u;
override ROWS: u32 = 1u;

override SCALE: f32 = 1.0;
override MAX_BIAS: f32 = 0.0;
override N_LOG2: u32 = 1u;
override CHUNK: u32 = 1u;
override N_CHUNK: u32 = 1u;
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

fn a_coords(i: u32) -> vec4<u32> {
    let row = i / a_ne0;
    let mat = row / a_ne1;
    return vec4<u32>(i % a_ne0, row % a_ne1, mat % a_ne2, mat / a_ne2);
}
fn a_order(c: vec4<u32>) -> u32 {
    return c.x + a_ne0 * (c.y + a_ne1 * (c.z + a_ne2 * c.w));
}

@group(0) @binding(4) var<storage, read_write> y: array<u32>;
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

@group(0) @binding(1) var<storage, read> mask: array<u32>;
override mask_ne0: u32 = 1u;
override mask_ne1: u32 = 1u;
override mask_ne2: u32 = 1u;
override mask_ne3: u32 = 1u;
override mask_s0: u32 = 1u;
override mask_s1: u32 = 1u;
override mask_s2: u32 = 1u;
override mask_s3: u32 = 1u;
override mask_o: u32 = 0u;
// Where the value at coordinates c stands.
fn mask_at(c: vec4<u32>) -> u32 {
    return mask_o + c.x * mask_s0 + c.y * mask_s1 + c.z * mask_s2 + c.w * mask_s3;
}

fn mask_load(i: u32) -> f32 {
    return unpack2x16float(mask[i >> 1u])[i & 1u];
}

@group(0) @binding(2) var<storage, read> sinks: array<u32>;
override sinks_ne0: u32 = 1u;
override sinks_ne1: u32 = 1u;
override sinks_ne2: u32 = 1u;
override sinks_ne3: u32 = 1u;
override sinks_s0: u32 = 1u;
override sinks_s1: u32 = 1u;
override sinks_s2: u32 = 1u;
override sinks_s3: u32 = 1u;
override sinks_o: u32 = 0u;
// Where the value at coordinates c stands.
fn sinks_at(c: vec4<u32>) -> u32 {
    return sinks_o + c.x * sinks_s0 + c.y * sinks_s1 + c.z * sinks_s2 + c.w * sinks_s3;
}

fn sinks_load(i: u32) -> f32 {
    return bitcast<f32>(sinks[i]);
}

fn slope(head: u32) -> f32 {
    if (MAX_BIAS <= 0.0) {
        return 1.0;
    }
    let n = f32(N_LOG2);
    let h = f32(head);
    return exp2(-MAX_BIAS * select((h + 1.0) / n, (2.0 * (h - n) + 1.0) / (2.0 * n), h >= n));
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

    let c = a_coords(row * a_ne0);
    let first = 0u;
    let last = select(0u, a_ne0, live);
    let x0 = a_at(c);
    let by0 = a_s0;
    let by = slope(c.z);
    let mask0 = mask_at(vec4<u32>(0u, c.y, c.z % mask_ne2, c.w % mask_ne3));
    var m = -3.0e38;
    for (var i = first + lane; i < last; i += T) {
        m = max(m, a_load(x0 + i * by0) * SCALE + by * mask_load(mask0 + i * mask_s0));
    }
    m = subgroupMax(m);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = m;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        m = red[0u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            m = max(m, red[0u * WG + first + i]);
        }
    }

    let sink = sinks_load(sinks_at(vec4<u32>(c.z, 0u, 0u, 0u)));
    m = max(m, sink);
    var s = 0.0;
    for (var i = first + lane; i < last; i += T) {
        s += exp(a_load(x0 + i * by0) * SCALE + by * mask_load(mask0 + i * mask_s0) - m);
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

    s += exp(sink - m);
    let to = y_at(c);
    for (var i = first + lane; i < last; i += T) {
        y[to + i * y_s0] = bitcast<u32>(select(exp(a_load(x0 + i * by0) * SCALE + by * mask_load(mask0 + i * mask_s0) - m) / s, 0.0, s == 0.0));
    }
}
