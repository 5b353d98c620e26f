// get_rows_nd: a=q4_K unit=word
@group(0) @binding(0) var<storage, read> ids: array<u32>;
override ids_ne0: u32 = 1u;
override ids_ne1: u32 = 1u;
override ids_ne2: u32 = 1u;
override ids_ne3: u32 = 1u;
override ids_s0: u32 = 1u;
override ids_s1: u32 = 1u;
override ids_s2: u32 = 1u;
override ids_s3: u32 = 1u;
override ids_o: u32 = 0u;
// Where the value at coordinates c stands.
fn ids_at(c: vec4<u32>) -> u32 {
    return ids_o + c.x * ids_s0 + c.y * ids_s1 + c.z * ids_s2 + c.w * ids_s3;
}

fn ids_index(c: vec4<u32>) -> u32 {
    return ids[ids_at(c)];
}

@group(0) @binding(1) var<storage, read_write> y: array<u32>;
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

override a_p1: u32 = 0u;
override a_p2: u32 = 0u;
override a_p3: u32 = 0u;
override a_table: u32 = 0u;
@group(0) @binding(2) var<storage, read> a: array<vec4<u32>>;
// Scales of the groups 2c and 2c + 1: (d*sc, d*sc', dmin*m, dmin*m').
fn a_scales(s: vec4<u32>, c: u32) -> vec4<f32> {
    let sh = (c & 1u) * 16u;
    let y = s.y >> sh;
    let z = s.z >> sh;
    let v = s.w >> sh;
    let high = c >= 2u;
    let sc = select(y & 0x3f3fu, (v & 0x0f0fu) | ((y >> 2u) & 0x3030u), high);
    let mn = select(z & 0x3f3fu, ((v >> 4u) & 0x0f0fu) | ((z >> 2u) & 0x3030u), high);
    let d = unpack2x16float(s.x);
    // Bytes below the exponent of 1024 in f16, see shared/bytes.
    let scs = unpack2x16float((sc & 0xffu) | ((sc & 0xff00u) << 8u) | 0x64006400u) - 1024.0;
    let mns = unpack2x16float((mn & 0xffu) | ((mn & 0xff00u) << 8u) | 0x64006400u) - 1024.0;
    return vec4<f32>(d.x * scs, d.y * mns);
}
// The same of one group g: (d*sc, dmin*m), without an integer conversion.
fn a_scale(s: vec4<u32>, g: u32) -> vec2<f32> {
    let v = s.yzw >> vec3<u32>((g & 3u) * 8u);
    let low = v.xy & vec2<u32>(0x3fu);
    let high = (vec2<u32>(v.z, v.z >> 4u) & vec2<u32>(0x0fu)) | ((v.xy >> vec2<u32>(2u)) & vec2<u32>(0x30u));
    let sm = select(low, high, g >= 4u);
    return unpack2x16float(s.x) * (unpack2x16float(sm.x | (sm.y << 16u) | 0x64006400u) - 1024.0);
}

fn a_load4(b: u32, e: u32) -> vec4<f32> {
    let c = e >> 6u;
    let s = a_scales(a[a_p1 + b], c);
    let q = a[b * 8u + (c << 1u) + ((e >> 4u) & 1u)][(e >> 2u) & 3u];
    if ((e & 32u) != 0u) {
        return s.y * vec4<f32>(unpack4xU8((q >> 4u) & 0x0f0f0f0fu)) - s.w;
    }
    return s.x * vec4<f32>(unpack4xU8(q & 0x0f0f0f0fu)) - s.z;
}

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
    return a_load4(i / 256u, i % 256u & 252u)[i & 3u];
}

fn row(c: vec4<u32>) -> u32 {
    return ids_index(vec4<u32>(c.yzw, 0u));
}
fn value(c: vec4<u32>) -> f32 {
    let r = row(c);
    return select(0.0, a_load(a_at(vec4<u32>(c.x, min(r, a_ne1 - 1u), c.zw))), r < a_ne1);
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
