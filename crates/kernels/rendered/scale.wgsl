// scale: 
override K: u32 = 1u;
override LDY: u32 = 1u;
override BY: f32 = 1.0;
override BIAS: f32 = 0.0;

@group(0) @binding(0) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < K) {
        let at = id.y * LDY + id.x;
        y[at] = y[at] * BY + BIAS;
    }
}
