// measure_rate: kind=f16
override LOOPS: u32 = 1u;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let m = vec4<f16>(f16(bitcast<f32>(x[0])));
    let c = vec4<f16>(f16(bitcast<f32>(x[1])));
    let first = f16(id.x % 64u);
    var a0 = vec4<f16>(first + 0.0);
    var a1 = vec4<f16>(first + 1.0);
    var a2 = vec4<f16>(first + 2.0);
    var a3 = vec4<f16>(first + 3.0);
    var a4 = vec4<f16>(first + 4.0);
    var a5 = vec4<f16>(first + 5.0);
    var a6 = vec4<f16>(first + 6.0);
    var a7 = vec4<f16>(first + 7.0);
    for (var i = 0u; i < LOOPS; i += 1u) {
        a0 = fma(a0, m, c);
        a1 = fma(a1, m, c);
        a2 = fma(a2, m, c);
        a3 = fma(a3, m, c);
        a4 = fma(a4, m, c);
        a5 = fma(a5, m, c);
        a6 = fma(a6, m, c);
        a7 = fma(a7, m, c);
        a0 = fma(a0, m, c);
        a1 = fma(a1, m, c);
        a2 = fma(a2, m, c);
        a3 = fma(a3, m, c);
        a4 = fma(a4, m, c);
        a5 = fma(a5, m, c);
        a6 = fma(a6, m, c);
        a7 = fma(a7, m, c);
        a0 = fma(a0, m, c);
        a1 = fma(a1, m, c);
        a2 = fma(a2, m, c);
        a3 = fma(a3, m, c);
        a4 = fma(a4, m, c);
        a5 = fma(a5, m, c);
        a6 = fma(a6, m, c);
        a7 = fma(a7, m, c);
        a0 = fma(a0, m, c);
        a1 = fma(a1, m, c);
        a2 = fma(a2, m, c);
        a3 = fma(a3, m, c);
        a4 = fma(a4, m, c);
        a5 = fma(a5, m, c);
        a6 = fma(a6, m, c);
        a7 = fma(a7, m, c);
        a0 = fma(a0, m, c);
        a1 = fma(a1, m, c);
        a2 = fma(a2, m, c);
        a3 = fma(a3, m, c);
        a4 = fma(a4, m, c);
        a5 = fma(a5, m, c);
        a6 = fma(a6, m, c);
        a7 = fma(a7, m, c);
    }
    var sum = vec4<f32>();
    sum += vec4<f32>(a0);
    sum += vec4<f32>(a1);
    sum += vec4<f32>(a2);
    sum += vec4<f32>(a3);
    sum += vec4<f32>(a4);
    sum += vec4<f32>(a5);
    sum += vec4<f32>(a6);
    sum += vec4<f32>(a7);
    y[id.x] = (sum.x + sum.y) + (sum.z + sum.w);
}
