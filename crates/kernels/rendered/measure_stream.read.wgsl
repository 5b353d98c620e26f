// measure_stream: what=read
override N: u32 = 1u;
override STRIDE: u32 = 256u;

@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var sum = vec4<u32>();
    var i = id.x;
    for (; i + 3u * STRIDE < N; i += 4u * STRIDE) {
        let v0 = x[i + 0u * STRIDE];
        let v1 = x[i + 1u * STRIDE];
        let v2 = x[i + 2u * STRIDE];
        let v3 = x[i + 3u * STRIDE];
        sum += (v0 + v1) + (v2 + v3);
    }
    for (; i < N; i += STRIDE) {
        sum += x[i];
    }
    y[id.x] = (sum.x + sum.y) + (sum.z + sum.w);
}
