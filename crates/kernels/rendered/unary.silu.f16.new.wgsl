// unary: f=silu ty=f16 place=new
override B0: u32 = 0u;
override B1: u32 = 0u;
override B2: u32 = 0u;
override B3: u32 = 0u;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
override y_ne0: u32 = 1u;
override y_ne1: u32 = 1u;
override y_ne2: u32 = 1u;
override y_ne3: u32 = 1u;
override y_s0: u32 = 1u;
override y_s1: u32 = 1u;
override y_s2: u32 = 1u;
override y_s3: u32 = 1u;
override y_o: u32 = 0u;
// Offset of the value at coordinates c.
fn y_at(c: vec4<u32>) -> u32 {
    return y_o + c.x * y_s0 + c.y * y_s1 + c.z * y_s2 + c.w * y_s3;
}

fn y_coords(i: u32) -> vec4<u32> {
    let row = i / y_ne0;
    let mat = row / y_ne1;
    return vec4<u32>(i % y_ne0, row % y_ne1, mat % y_ne2, mat / y_ne2);
}
fn y_order(c: vec4<u32>) -> u32 {
    return c.x + y_ne0 * (c.y + y_ne1 * (c.z + y_ne2 * c.w));
}

struct Place {
    c: vec4<u32>,
    inside: bool,
}
override y_d0: u32 = 1u;
override y_d1: u32 = 1u;
override y_d2: u32 = 1u;
override y_d3: u32 = 1u;
override y_m0: u32 = 1u;
override y_m1: u32 = 1u;
override y_m2: u32 = 1u;
override y_m3: u32 = 1u;
// The value at offset i of the buffer, if any.
fn y_place(i: u32) -> Place {
    let o = i - y_o;
    let c = vec4<u32>(o % y_m0 / y_d0, o % y_m1 / y_d1, o % y_m2 / y_d2, o % y_m3 / y_d3);
    let inside = i >= y_o && y_at(c) == i
        && all(c < vec4<u32>(y_ne0, y_ne1, y_ne2, y_ne3));
    return Place(c, inside);
}

@group(0) @binding(0) var<storage, read> a: array<u32>;
override a_ne0: u32 = 1u;
override a_ne1: u32 = 1u;
override a_ne2: u32 = 1u;
override a_ne3: u32 = 1u;
override a_s0: u32 = 1u;
override a_s1: u32 = 1u;
override a_s2: u32 = 1u;
override a_s3: u32 = 1u;
override a_o: u32 = 0u;
// Offset of the value at coordinates c.
fn a_at(c: vec4<u32>) -> u32 {
    return a_o + c.x * a_s0 + c.y * a_s1 + c.z * a_s2 + c.w * a_s3;
}

fn a_load(i: u32) -> f32 {
    return unpack2x16float(a[i >> 1u])[i & 1u];
}

// Tests the bits: compilers assume v == v.
fn is_nan(v: f32) -> bool {
    return (bitcast<u32>(v) & u32(0x7fffffffu)) > u32(0x7f800000u);
}
// 1 / (1 + exp(-v)), without an intermediate infinity.
fn logistic(v: f32) -> f32 {
    return select(1.0 / (1.0 + exp(min(-v, f32(80.0)))), v, is_nan(v));
}
// Abramowitz & Stegun 7.1.26: error at most 1.5e-7.
fn erf(v: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.3275911 * abs(v));
    let p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    return sign(v) * (1.0 - p * exp(-min(v * v, f32(80.0))));
}

fn tanh_safe(v: f32) -> f32 {
    return select(tanh(clamp(v, -15.0, 15.0)), v, is_nan(v));
}
// exp(v) - 1: by its series where the difference would cancel.
fn expm1(v: f32) -> f32 {
    let s = v * (1.0 + v * (0.5 + v * (0.16666667 + v * (0.041666668 + v * (0.008333334 + v * (0.0013888889 + v * 0.0001984127))))));
    return select(exp(v) - 1.0, s, abs(v) < 0.5);
}
// log(1 + exp(v)); the rounding of 1 + t for small t is compensated by dividing by the rounded sum (Kahan).
fn softplus(v: f32) -> f32 {
    let t = exp(min(v, 20.0));
    let u = 1.0 + t;
    let l = select(log(u) * t / (u - 1.0), t, t < 0.0001);
    return select(l, v, v > 20.0 || is_nan(v));
}
// Reduces an angle to within half a turn of 0, in two steps: devices are accurate only there.
fn turn(v: f32) -> f32 {
    let n = round(v * 0.15915494);
    return (v - n * 6.28125) - n * 0.0019353072;
}

fn value(c: vec4<u32>) -> f32 {
    let x = a_load(a_at(c));
    return x * logistic(x);
}
fn narrow(v: f32) -> u32 {
    // WGSL does not define the conversion of a value beyond f16's range; here it is an infinity.
    let bits = pack2x16float(vec2<f32>(v, 0.0)) & 0xffffu;
    return select(bits, ((bitcast<u32>(v) >> 16u) & 0x8000u) | 0x7c00u, abs(v) >= 65520.0);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {

    let i = (group.y * groups.x + group.x) * 64u + lane;

    let n = y_ne0 * y_ne1 * y_ne2 * y_ne3;
    let w = (y_o >> 1u) + i;
    let last = y_o + (y_ne0 - 1u) * y_s0 + (y_ne1 - 1u) * y_s1 + (y_ne2 - 1u) * y_s2 + (y_ne3 - 1u) * y_s3;
    if (n == 0u || w > (last >> 1u)) {
        return;
    }
    var word = y[w];
    let low = y_place(2u * w);
    let high = y_place(2u * w + 1u);
    if (low.inside) {
        word = (word & 0xffff0000u) | narrow(value(low.c));
    }
    if (high.inside) {
        word = (word & 0xffffu) | (narrow(value(high.c)) << 16u);
    }
    y[w] = word;
}
