// get_rows: a=q6_K
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

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> ids: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
fn w_d(b: u32) -> f32 {
    return unpack2x16float(w[w_p3 + (b >> 3u)][(b >> 1u) & 3u])[b & 1u];
}
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let h = e >> 7u;
    let k = (e >> 5u) & 3u;
    let i = (e >> 2u) & 3u;
    let half = (e >> 4u) & 1u;
    let l = (w[b * 8u + h * 4u + (k & 1u) * 2u + half][i] >> ((k >> 1u) * 4u)) & 0x0f0f0f0fu;
    let hi = (w[w_p1 + b * 4u + h * 2u + half][i] >> (k * 2u)) & 0x03030303u;
    let g = h * 8u + k * 2u + half;
    let sc = f32(extractBits(bitcast<i32>(w[w_p2 + b][g >> 2u]), (g & 3u) * 8u, 8u));
    return (w_d(b) * sc) * (vec4<f32>(unpack4xU8(l | (hi << 4u))) - 32.0);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let e = id.x * 4u;
    let row = ids[IDS + id.y * ID_STRIDE] - ROW0;
    if (e >= K || row >= ROWS) {
        return;
    }
    let v = w_load4(row * BLOCKS + e / 256u, e % 256u);
    for (var i = 0u; i < min(4u, K - e); i++) {
        y[id.y * LDY + e + i] = v[i];
    }
}
