// mul_mat_join: 
override M: u32 = 1u;
override SPLITS: u32 = 2u;
override PART: u32 = 4u;
override LDX: u32 = 4u;
override LDY: u32 = 1u;
override Y0: u32 = 0u;
override ADD: bool = false;
override AFFINE: bool = false;
override AFF: u32 = 0u;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> aux: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row0 = id.x * 4u;
    if (row0 >= M) {
        return;
    }
    let at = (id.y * LDX + row0) / 4u;
    var v = vec4<f32>();
    for (var s = 0u; s < SPLITS; s++) {
        v += x[s * (PART / 4u) + at];
    }
    let n = min(M - row0, 4u);
    for (var i = 0u; i < n; i++) {
        let row = row0 + i;
        var r = v[i];
        if (AFFINE) {
            r = r * aux[AFF + 2u * row] + aux[AFF + 2u * row + 1u];
        }
        let out = id.y * LDY + Y0 + row;
        if (ADD) {
            r += y[out];
        }
        y[out] = r;
    }
}
