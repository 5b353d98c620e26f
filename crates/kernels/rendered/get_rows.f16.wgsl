// get_rows: a=f16
override K: u32 = 256u;
override ROW0: u32 = 0u;
override ROWS: u32 = 1u;
override IDS: u32 = 0u;
override ID_STRIDE: u32 = 1u;
override LDY: u32 = 256u;
override BLOCKS: u32 = 1u;
override w_p1: u32 = 0u;
override w_p2: u32 = 0u;
override w_p3: u32 = 0u;
override w_table: u32 = 0u;

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> ids: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let v = w[b];
    let p = select(v.xy, v.zw, (e & 4u) != 0u);
    return vec4<f32>(unpack2x16float(p.x), unpack2x16float(p.y));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let e = id.x * 4u;
    let row = ids[IDS + id.y * ID_STRIDE] - ROW0;
    if (e >= K || row >= ROWS) {
        return;
    }
    let v = w_load4(row * BLOCKS + e / 8u, e % 8u);
    for (var i = 0u; i < min(4u, K - e); i++) {
        y[id.y * LDY + e + i] = v[i];
    }
}
