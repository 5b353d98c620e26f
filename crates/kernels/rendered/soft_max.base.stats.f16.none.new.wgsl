// soft_max: set=base part=stats mask=f16 sinks=none place=new
override WG: u32 = 256u;
override T: u32 = 256u;
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

@group(0) @binding(3) var<storage, read_write> parts: array<vec2<f32>>;
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
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tid = local_index;
    let team = tid / T;
    let lane = tid % T;

    let nth = (group.y * groups.x + group.x) * (WG / T) + team;
    let live = nth < ROWS;
    let row = select(0u, nth, live);

    let c = a_coords(row / N_CHUNK * a_ne0);
    let first = row % N_CHUNK * CHUNK;
    let last = select(first, min(first + CHUNK, a_ne0), live);
    let x0 = a_at(c);
    let by0 = a_s0;
    let by = slope(c.z);
    let mask0 = mask_at(vec4<u32>(0u, c.y, c.z % mask_ne2, c.w % mask_ne3));
    var m = -3.0e38;
    for (var i = first + lane; i < last; i += T) {
        m = max(m, a_load(x0 + i * by0) * SCALE + by * mask_load(mask0 + i * mask_s0));
    }
    workgroupBarrier();
    red[0u * WG + tid] = m;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] = max(red[0u * WG + tid], red[0u * WG + tid + s]);
        }
        workgroupBarrier();
    }
    m = red[0u * WG + team * T];

    var s = 0.0;
    for (var i = first + lane; i < last; i += T) {
        s += exp(a_load(x0 + i * by0) * SCALE + by * mask_load(mask0 + i * mask_s0) - m);
    }
    workgroupBarrier();
    red[0u * WG + tid] = s;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] += red[0u * WG + tid + s];
        }
        workgroupBarrier();
    }
    s = red[0u * WG + team * T];

    if (live && lane == 0u) {
        parts[row] = vec2<f32>(m, s);
    }
}
