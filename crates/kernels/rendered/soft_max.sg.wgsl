// soft_max: set=sg
override WG: u32 = 256u;
override T: u32 = 256u;
override SG_MIN: u32 = 4u;override K: u32 = 1u;
override LDX: u32 = 1u;
override LDY: u32 = 1u;
override ROWS: u32 = 1u;
override SCALE: f32 = 1.0;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> red: array<f32, 1u * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup_id: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
    let tid = subgroup_id * subgroup_size + subgroup_lane;
    let team = tid / T;
    let lane = tid % T;

    let row = group.y * groups.x + group.x;
    let live = row < ROWS;
    let x0 = select(0u, row * LDX, live);
    var m = -3.0e38;
    for (var i = lane; i < K; i += T) {
        m = max(m, x[x0 + i] * SCALE);
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

    var s = 0.0;
    for (var i = lane; i < K; i += T) {
        s += exp(x[x0 + i] * SCALE - m);
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

    if (!live) {
        return;
    }
    for (var i = lane; i < K; i += T) {
        y[row * LDY + i] = exp(x[x0 + i] * SCALE - m) / s;
    }
}
