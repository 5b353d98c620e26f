// rms_norm: set=base y=f32x4
override WG: u32 = 256u;
override T: u32 = 256u;
override K: u32 = 256u;
override LDX: u32 = 256u;
override LDY: u32 = 256u;
override ROWS: u32 = 1u;
override EPS: f32 = 0.00001;
override WEIGHT: bool = true;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> aux: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
var<workgroup> red: array<f32, 1u * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tid = local_index;
    let team = tid / T;
    let lane = tid % T;

    let row = group.y * groups.x + group.x;
    let live = row < ROWS;
    let x0 = select(0u, row * (LDX / 4u), live);
    var ss = 0.0;
    for (var i = lane; i < K / 4u; i += T) {
        let v = x[x0 + i];
        ss += dot(v, v);
    }
    workgroupBarrier();
    red[0u * WG + tid] = ss;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] += red[0u * WG + tid + s];
        }
        workgroupBarrier();
    }
    ss = red[0u * WG + team * T];

    if (!live) {
        return;
    }
    let scale = 1.0 / sqrt(ss / f32(K) + EPS);
    for (var i = lane; i < K / 4u; i += T) {
        var v = x[x0 + i] * scale;
        if (WEIGHT) {
            v *= aux[i];
        }
        y[row * (LDY / 4u) + i] = v;
    }
}
