// count_equal: 
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

fn a_index(c: vec4<u32>) -> u32 {
    return a[a_at(c)];
}

fn a_coords(i: u32) -> vec4<u32> {
    let row = i / a_ne0;
    let mat = row / a_ne1;
    return vec4<u32>(i % a_ne0, row % a_ne1, mat % a_ne2, mat / a_ne2);
}
fn a_order(c: vec4<u32>) -> u32 {
    return c.x + a_ne0 * (c.y + a_ne1 * (c.z + a_ne2 * c.w));
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

fn b_index(c: vec4<u32>) -> u32 {
    return b[b_at(c)];
}

@group(0) @binding(2) var<storage, read_write> y: array<u32>;
override y_o: u32 = 0u;
var<workgroup> total: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    if (lane == 0u) {
        atomicStore(&total, 0u);
    }
    workgroupBarrier();
    var n = 0u;
    for (var i = lane; i < a_ne0 * a_ne1 * a_ne2 * a_ne3; i += 64u) {
        let c = a_coords(i);
        n += select(0u, 1u, a_index(c) == b_index(c));
    }
    atomicAdd(&total, n);
    workgroupBarrier();
    if (lane == 0u) {
        y[y_o * 2u] = atomicLoad(&total);
        y[y_o * 2u + 1u] = 0u;
    }
}
