// measure_stream: what=copy
override N: u32 = 1u;
override STRIDE: u32 = 256u;

@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<u32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var i = id.x;
    for (; i + 3u * STRIDE < N; i += 4u * STRIDE) {
        let v0 = x[i + 0u * STRIDE];
        let v1 = x[i + 1u * STRIDE];
        let v2 = x[i + 2u * STRIDE];
        let v3 = x[i + 3u * STRIDE];
        y[i + 0u * STRIDE] = v0;
        y[i + 1u * STRIDE] = v1;
        y[i + 2u * STRIDE] = v2;
        y[i + 3u * STRIDE] = v3;
    }
    for (; i < N; i += STRIDE) {
        y[i] = x[i];
    }
}
