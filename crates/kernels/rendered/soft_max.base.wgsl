// soft_max: set=base
override WG: u32 = 256u;
override T: u32 = 256u;
override K: u32 = 1u;
override LDX: u32 = 1u;
override LDY: u32 = 1u;
override ROWS: u32 = 1u;
override SCALE: f32 = 1.0;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> red: array<f32, 1u * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tid = local_index;
    let team = tid / T;
    let lane = tid % T;

    let row = group.y * groups.x + group.x;
    let live = row < ROWS;
    let x0 = select(0u, row * LDX, live);
    var m = -3.0e38;
    for (var i = lane; i < K; i += T) {
        m = max(m, x[x0 + i] * SCALE);
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
    for (var i = lane; i < K; i += T) {
        s += exp(x[x0 + i] * SCALE - m);
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

    if (!live) {
        return;
    }
    for (var i = lane; i < K; i += T) {
        y[row * LDY + i] = exp(x[x0 + i] * SCALE - m) / s;
    }
}
