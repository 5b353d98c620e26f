// lightning_indexer: k=q8_0
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

override keys_p1: u32 = 0u;
override keys_p2: u32 = 0u;
override keys_p3: u32 = 0u;
override keys_table: u32 = 0u;
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>;
fn keys_d(b: u32) -> f32 {
    return unpack2x16float(keys[keys_p1 + (b >> 3u)][(b >> 1u) & 3u])[b & 1u];
}

fn keys_load4(b: u32, e: u32) -> vec4<f32> {
    return keys_d(b) * vec4<f32>(unpack4xI8(keys[b * 2u + (e >> 4u)][(e >> 2u) & 3u]));
}

override keys_ne0: u32 = 1u;
override keys_ne1: u32 = 1u;
override keys_ne2: u32 = 1u;
override keys_ne3: u32 = 1u;
override keys_s0: u32 = 1u;
override keys_s1: u32 = 1u;
override keys_s2: u32 = 1u;
override keys_s3: u32 = 1u;
override keys_o: u32 = 0u;
// Where the value at coordinates c stands.
fn keys_at(c: vec4<u32>) -> u32 {
    return keys_o + c.x * keys_s0 + c.y * keys_s1 + c.z * keys_s2 + c.w * keys_s3;
}

fn keys_load(i: u32) -> f32 {
    return keys_load4(i / 32u, i % 32u & 28u)[i & 3u];
}

@group(0) @binding(2) var<storage, read> w: array<u32>;
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

@group(0) @binding(3) var<storage, read> mask: array<u32>;
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

fn value(c: vec4<u32>) -> f32 {
    let k0 = keys_at(vec4<u32>(0u, 0u, c.x, c.w));
    let q0 = q_at(vec4<u32>(0u, 0u, c.y, c.w));
    var sum = mask_load(mask_at(vec4<u32>(c.x, c.y, 0u, c.w % mask_ne3)));
    for (var h = 0u; h < q_ne1; h++) {
        var d = 0.0;
        for (var i = 0u; i < q_ne0; i++) {
            d += q_load(q0 + h * q_s1 + i * q_s0) * keys_load(k0 + i * keys_s0);
        }
        sum += max(d, 0.0) * w_load(w_at(vec4<u32>(h, c.y, 0u, c.w)));
    }
    return sum;
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {

    let i = (group.y * groups.x + group.x) * 64u + lane;

    if (i >= y_ne0 * y_ne1 * y_ne2 * y_ne3) {
        return;
    }
    let c = y_coords(i);
    y[y_at(c)] = bitcast<u32>(value(c));
}
