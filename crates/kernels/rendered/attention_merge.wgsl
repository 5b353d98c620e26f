// attention_merge: 
override D: u32 = 64u;
override N_HEAD: u32 = 1u;
override SPLITS: u32 = 2u;
override LDY: u32 = 64u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let part = (group.y * N_HEAD + group.x) * SPLITS * (D + 2u);
    var top = -3.0e38;
    for (var s = 0u; s < SPLITS; s++) {
        top = max(top, x[part + s * (D + 2u) + D]);
    }
    var den = 0.0;
    for (var s = 0u; s < SPLITS; s++) {
        let at = part + s * (D + 2u) + D;
        den += exp(x[at] - top) * x[at + 1u];
    }
    for (var i = tid; i < D; i += 64u) {
        var o = 0.0;
        for (var s = 0u; s < SPLITS; s++) {
            let at = part + s * (D + 2u);
            o += exp(x[at + D] - top) * x[at + i];
        }
        y[group.y * LDY + group.x * D + i] = o / den;
    }
}
