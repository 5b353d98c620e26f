// concat: unit=half
override DIM: u32 = 0u;
override cells: u32 = 1u;
override w0: u32 = 0u;
override n0: u32 = 1u;
override n1: u32 = 0u;
override n2: u32 = 0u;
override n3: u32 = 0u;
override y_p1: u32 = 0u;
override y_p2: u32 = 0u;
override y_p3: u32 = 0u;

override a_p1: u32 = 0u;
override a_p2: u32 = 0u;
override a_p3: u32 = 0u;
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

fn a_piece(cell: u32, plane: u32, k: u32) -> u32 {
    let n = vec4<u32>(n0, n1, n2, n3)[plane];
    let u = cell * n + k;
    let w = vec4<u32>(0u, a_p1, a_p2, a_p3)[plane] * 4u;
    return (a[w + (u >> 1u)] >> (16u * (u & 1u))) & 0xffffu;
}

override b_p1: u32 = 0u;
override b_p2: u32 = 0u;
override b_p3: u32 = 0u;
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

fn b_piece(cell: u32, plane: u32, k: u32) -> u32 {
    let n = vec4<u32>(n0, n1, n2, n3)[plane];
    let u = cell * n + k;
    let w = vec4<u32>(0u, b_p1, b_p2, b_p3)[plane] * 4u;
    return (b[w + (u >> 1u)] >> (16u * (u & 1u))) & 0xffffu;
}

@group(0) @binding(2) var<storage, read_write> y: array<u32>;
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

fn moved(c: vec4<u32>, plane: u32, k: u32) -> u32 {
    let axis = vec4<u32>(0u, 1u, 2u, 3u) == vec4<u32>(DIM);
    let na = vec4<u32>(a_ne0, a_ne1, a_ne2, a_ne3);
    if (any(axis & (c >= na))) {
        return b_piece(b_at(c - select(vec4<u32>(0u), na, axis)), plane, k);
    }
    return a_piece(a_at(c), plane, k);
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {

    let i = (group.y * groups.x + group.x) * 64u + lane;

    let w = w0 + i;
    // The plane that this word belongs to.
    var plane = 0u;
    var start = 0u;
    if (n1 > 0u && w >= y_p1 * 4u) {
        plane = 1u;
        start = y_p1 * 4u;
    }
    if (n2 > 0u && w >= y_p2 * 4u) {
        plane = 2u;
        start = y_p2 * 4u;
    }
    if (n3 > 0u && w >= y_p3 * 4u) {
        plane = 3u;
        start = y_p3 * 4u;
    }
    let n = vec4<u32>(n0, n1, n2, n3)[plane];
    let first = (w - start) * 2u;
    if (first >= cells * n) {
        return;
    }
    var word = y[w];
    for (var j = 0u; j < 2u; j++) {
        let u = first + j;
        let place = y_place(u / n);
        if (u < cells * n && place.inside) {
            let shift = j * 16u;
            word = (word & ~(0xffffu << shift)) | (moved(place.c, plane, u % n) << shift);
        }
    }
    y[w] = word;
}
