// cpy: a=f32 y=q8_0
override SAME: bool = true;
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

@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
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

alias Bytes = array<u32, 9>;
override y_p1: u32 = 0u;
override y_p2: u32 = 0u;
override y_p3: u32 = 0u;
// Puts `n` bits into a block at a byte; they do not cross a word.
fn put(bytes: ptr<function, Bytes>, at: u32, v: u32) {
    (*bytes)[at >> 2u] |= v << (8u * (at & 3u));
}
fn put_half(bytes: ptr<function, Bytes>, at: u32, v: f32) {
    put(bytes, at, pack2x16float(vec2<f32>(v, 0.0)) & 0xffffu);
}
// Rounds halves away from zero.
fn nearest(v: f32) -> i32 {
    return i32(v + select(-0.5, 0.5, v >= 0.0));
}
fn y_put_word(at: u32, v: u32) {
    atomicStore(&y[at], v);
}
// Some bits of a word; threads write different bits of one word at the same time.
fn y_put_bits(at: u32, mask: u32, v: u32) {
    atomicAnd(&y[at], ~mask);
    atomicOr(&y[at], v);
}
fn store_block(cell: u32, block: Bytes) {
    var bytes = block;
    for (var i = 0u; i < 8u; i++) {
        let k = 0u + i;
        y_put_word(0u + cell * 8u + i, (bytes[k] >> 16u) | (bytes[k + 1u] << 16u));
    }
    for (var i = 0u; i < 1u; i++) {
        let source = 0u + i * 2u;
        let v = (bytes[source >> 2u] >> (8u * (source & 3u))) & 0xffffu;
        let to = cell * 2u + i * 2u;
        let shift = 8u * (to & 3u);
        y_put_bits(y_p1 * 4u + (to >> 2u), 0xffffu << shift, v << shift);
    }
}

fn encode(v: ptr<function, array<f32, 32>>) -> Bytes {
    var out: Bytes;
    var top = 0.0;
    for (var i = 0u; i < 32u; i++) {
        top = max(top, abs((*v)[i]));
    }
    let d = top / 127.0;
    let inverse = select(0.0, 1.0 / d, d != 0.0);
    put_half(&out, 0u, d);
    for (var i = 0u; i < 32u; i++) {
        put(&out, 2u + i, u32(nearest((*v)[i] * inverse)) & 0xffu);
    }
    return out;
}

fn source_value(c: vec4<u32>) -> f32 {
    return a_load(a_at(select(a_coords(y_order(c)), c, SAME)));
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {

    let i = (group.y * groups.x + group.x) * 64u + lane;

    if (i >= y_ne0 * y_ne1 * y_ne2 * y_ne3 / 32u) {
        return;
    }
    let c = y_coords(i * 32u);
    var v: array<f32, 32>;
    for (var j = 0u; j < 32u; j++) {
        v[j] = source_value(vec4<u32>(c.x + j, c.yzw));
    }
    store_block(y_at(c) / 32u, encode(&v));
}
