// binary: f=mul
override K: u32 = 1u;
override LDX: u32 = 1u;
override LDY: u32 = 1u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < K) {
        y[id.y * LDY + id.x] *= x[id.y * LDX + id.x];
    }
}
