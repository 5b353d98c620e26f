// solve_tri: 
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

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {

    let i = (group.y * groups.x + group.x) * 64u + lane;

    if (i >= y_ne0 * y_ne2 * y_ne3) {
        return;
    }
    let c = vec4<u32>(i % y_ne0, 0u, i / y_ne0 % y_ne2, i / y_ne0 / y_ne2);
    let y0 = y_at(c);
    let b0 = b_at(c);
    let a0 = a_at(vec4<u32>(0u, 0u, c.zw));
    for (var r = 0u; r < y_ne1; r++) {
        let row = a0 + r * a_s1;
        var s = b_load(b0 + r * b_s1);
        for (var j = 0u; j < r; j++) {
            s -= a_load(row + j * a_s0) * bitcast<f32>(y[y0 + j * y_s1]);
        }
        y[y0 + r * y_s1] = bitcast<u32>(s / a_load(row + r * a_s0));
    }
}
