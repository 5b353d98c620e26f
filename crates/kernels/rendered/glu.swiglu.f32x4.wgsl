// glu: act=swiglu y=f32x4
override F: u32 = 1u;
override LDX: u32 = 2u;
override LDY: u32 = 1u;
override UP: u32 = 1u;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;

fn act(v: vec4<f32>) -> vec4<f32> {
    return v / (1.0 + exp(-v));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < F / 4u) {
        let at = id.y * (LDX / 4u) + id.x;
        let v = act(x[at]) * x[at + UP / 4u];
        y[id.y * (LDY / 4u) + id.x] = v;
    }
}
