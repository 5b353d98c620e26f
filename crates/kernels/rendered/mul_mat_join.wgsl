// mul_mat_join: 
override M: u32 = 1u;
override SPLITS: u32 = 2u;
override PART: u32 = 1u;
override LDX: u32 = 1u;
override LDY: u32 = 1u;
override Y0: u32 = 0u;
override ADD: bool = false;
override AFFINE: bool = false;
override AFF: u32 = 0u;
override AFF_ROW: u32 = 2u;
override AFF_COL: u32 = 0u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> aux: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if (row >= M) {
        return;
    }
    let at = id.y * LDX + row;
    var v = 0.0;
    for (var s = 0u; s < SPLITS; s++) {
        v += x[s * PART + at];
    }
    if (AFFINE) {
        let pair = AFF + AFF_ROW * row + AFF_COL * id.y;
        v = v * aux[pair] + aux[pair + 1u];
    }
    let out = id.y * LDY + Y0 + row;
    if (ADD) {
        v += y[out];
    }
    y[out] = v;
}
