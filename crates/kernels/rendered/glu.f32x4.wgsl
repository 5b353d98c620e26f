// glu: y=f32x4
override F: u32 = 1u;
override LDX: u32 = 2u;
override LDY: u32 = 1u;
override UP: u32 = 1u;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;

override GLU: u32 = 0u;
override GLU_ALPHA: f32 = 1.0;
override GLU_LIMIT: f32 = 0.0;
// Tests the bits: compilers assume v == v.
fn is_nan(v: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
// 1 / (1 + exp(-v)), without an intermediate infinity.
fn logistic(v: vec4<f32>) -> vec4<f32> {
    return select(1.0 / (1.0 + exp(min(-v, vec4<f32>(80.0)))), v, is_nan(v));
}
// Abramowitz & Stegun 7.1.26: error at most 1.5e-7.
fn erf(v: vec4<f32>) -> vec4<f32> {
    let t = 1.0 / (1.0 + 0.3275911 * abs(v));
    let p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    return sign(v) * (1.0 - p * exp(-min(v * v, vec4<f32>(80.0))));
}

// The nearest f16 value, ties to even; below 2^-14 the multiples of 2^-24. The rounding of pack2x16float is
// implementation-defined.
fn rounded(v: vec4<f32>) -> vec4<f32> {
    let bits = bitcast<vec4<u32>>(v);
    let even = bits + 0xfffu + ((bits >> vec4<u32>(13u)) & vec4<u32>(1u));
    // An integer sum could carry a NaN with all bits set over to 0.
    let near = select(bitcast<vec4<f32>>(even & vec4<u32>(0xffffe000u)), v, (bits << vec4<u32>(1u)) > vec4<u32>(0xff000000u));
    return select(near, round(v * 16777216.0) * 5.9604644775390625e-8, abs(v) < vec4<f32>(6.103515625e-5));
}
// x logistic(z), where z is z1 x near 0. Near 0 by its series: where f16 cannot represent x / 2, the logistic function's
// distance from 1/2 selects the neighbour, and exp is not accurate enough for that.
fn gated(x: vec4<f32>, z: vec4<f32>, z1: f32) -> vec4<f32> {
    return rounded(select(x * logistic(z), 0.5 * x * (1.0 + 0.5 * z1 * x), abs(x) < vec4<f32>(0.01)));
}
// The tanh form: 0.5 (1 + tanh z) = logistic(2 z).
fn gelu(v: vec4<f32>) -> vec4<f32> {
    let x = rounded(v);
    let y = gated(x, 1.5957691216057308 * x * (1.0 + 0.044715 * x * x), 1.5957691216057308);
    let cut = select(select(y, v, v >= vec4<f32>(10.0)), vec4<f32>(0.0), v <= vec4<f32>(-10.0));
    return select(cut, v, is_nan(v));
}
fn gelu_quick(v: vec4<f32>) -> vec4<f32> {
    let x = rounded(v);
    return gated(x, 1.702 * x, 1.702);
}

fn glu(gate: vec4<f32>, up: vec4<f32>) -> vec4<f32> {
    if (GLU == 1u) {
        return gelu(gate) * up;
    }
    if (GLU == 2u) {
        return max(gate, vec4<f32>(0.0)) * up;
    }
    if (GLU == 3u) {
        return 0.5 * gate * (1.0 + erf(gate * 0.7071067811865476)) * up;
    }
    if (GLU == 4u) {
        return gelu_quick(gate) * up;
    }
    if (GLU >= 5u) {
        let g = min(gate, vec4<f32>(GLU_LIMIT));
        let u = clamp(up, vec4<f32>(-GLU_LIMIT), vec4<f32>(GLU_LIMIT));
        return g * logistic(GLU_ALPHA * g) * (u + select(0.0, 1.0, GLU == 5u));
    }
    return gate * logistic(gate) * up;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < F / 4u) {
        let at = id.y * (LDX / 4u) + id.x;
        let v = glu(x[at], x[at + UP / 4u]);
        y[id.y * (LDY / 4u) + id.x] = v;
    }
}
