// cumsum: part=scan
override N_CHUNK: u32 = 1u;
override ROWS: u32 = 1u;
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

@group(0) @binding(1) var<storage, read> parts: array<f32>;
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

var<workgroup> tile: array<f32, 2048>;
var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let g = group.y * groups.x + group.x;
    let live = g < ROWS * N_CHUNK;
    let row = select(0u, g / N_CHUNK, live);
    let chunk = select(0u, g % N_CHUNK, live);
    let c = a_coords(row * a_ne0);
    let start = a_at(c);
    for (var j = 0u; j < 8u; j++) {
        let i = chunk * 2048u + j * 256u + tid;
        let v = a_load(start + min(i, a_ne0 - 1u) * a_s0);
        tile[j * 256u + tid] = select(0.0, v, i < a_ne0);
    }
    workgroupBarrier();
    var s = 0.0;
    for (var j = 0u; j < 8u; j++) {
        s += tile[tid * 8u + j];
    }
    sums[tid] = s;
    workgroupBarrier();
    for (var d = 1u; d < 256u; d *= 2u) {
        let v = select(0.0, sums[max(tid, d) - d], tid >= d);
        workgroupBarrier();
        sums[tid] += v;
        workgroupBarrier();
    }
    var sum = select(0.0, sums[max(tid, 1u) - 1u], tid > 0u);
    var before = 0.0;
    for (var k = 0u; k < chunk; k++) {
        before += parts[row * N_CHUNK + k];
    }
    sum += before;
    for (var j = 0u; j < 8u; j++) {
        sum += tile[tid * 8u + j];
        tile[tid * 8u + j] = sum;
    }
    workgroupBarrier();
    let to = y_at(c);
    for (var j = 0u; j < 8u; j++) {
        let i = chunk * 2048u + j * 256u + tid;
        if (live && i < y_ne0) {
            y[to + i * y_s0] = bitcast<u32>(tile[j * 256u + tid]);
        }
    }
}
