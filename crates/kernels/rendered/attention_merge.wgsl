// attention_merge: 
override D: u32 = 64u;
override N_HEAD: u32 = 1u;
override SPLITS: u32 = 2u;
override LDY: u32 = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

var<workgroup> tops: array<f32, SPLITS>;
var<workgroup> dens: array<f32, SPLITS>;
var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let part = (group.y * N_HEAD + group.x) * SPLITS * (D + 4u);
    for (var s = tid; s < SPLITS; s += 256u) {
        tops[s] = x[part + s * (D + 4u) + D];
        dens[s] = x[part + s * (D + 4u) + D + 1u];
    }
    workgroupBarrier();
    var top = -3.0e38;
    for (var s = 0u; s < SPLITS; s++) {
        top = max(top, tops[s]);
    }
    let n_group = max(256u / D, 1u);
    for (var c0 = 0u; c0 < D; c0 += 256u) {
        let c = c0 + tid % min(D, 256u);
        let g = tid / min(D, 256u);
        var o = 0.0;
        if (g < n_group && c < D) {
            for (var s = g; s < SPLITS; s += n_group) {
                o += exp(tops[s] - top) * x[part + s * (D + 4u) + c];
            }
        }
        workgroupBarrier();
        sums[tid] = o;
        workgroupBarrier();
        if (g == 0u && c < D) {
            var den = 0.0;
            for (var s = 0u; s < SPLITS; s++) {
                den += exp(tops[s] - top) * dens[s];
            }
            for (var i = 1u; i < n_group; i++) {
                o += sums[i * D + tid];
            }
            y[group.y * LDY + group.x * D + c] = o / den;
        }
    }
}
