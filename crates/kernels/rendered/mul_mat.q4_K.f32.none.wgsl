// mul_mat: a=q4_K tile=f32 ids=none
override K: u32 = 256u;
override M: u32 = 1u;
override LDX: u32 = 256u;
override LDY: u32 = 1u;
override Y0: u32 = 0u;
override ADD: bool = false;
override AFFINE: bool = false;
override AFF: u32 = 0u;
override AFF_ROW: u32 = 2u;
override AFF_COL: u32 = 0u;
override RAGGED: bool = false;
override BLOCKS: u32 = 1u;
override K_RUN: u32 = 256u;
override PART: u32 = 0u;
override w_p1: u32 = 0u;
override w_p2: u32 = 0u;
override w_p3: u32 = 0u;
override w_table: u32 = 0u;

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> aux: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read> step: array<u32>;
// The word of the step with the number of columns.
override N_COL_AT: u32 = 0u;
// Scales of the groups 2c and 2c + 1: (d*sc, d*sc', dmin*m, dmin*m').
fn w_scales(s: vec4<u32>, c: u32) -> vec4<f32> {
    let sh = (c & 1u) * 16u;
    let y = s.y >> sh;
    let z = s.z >> sh;
    let v = s.w >> sh;
    let high = c >= 2u;
    let sc = select(y & 0x3f3fu, (v & 0x0f0fu) | ((y >> 2u) & 0x3030u), high);
    let mn = select(z & 0x3f3fu, ((v >> 4u) & 0x0f0fu) | ((z >> 2u) & 0x3030u), high);
    let d = unpack2x16float(s.x);
    // Bytes below the exponent of 1024 in f16, see shared/bytes.
    let scs = unpack2x16float((sc & 0xffu) | ((sc & 0xff00u) << 8u) | 0x64006400u) - 1024.0;
    let mns = unpack2x16float((mn & 0xffu) | ((mn & 0xff00u) << 8u) | 0x64006400u) - 1024.0;
    return vec4<f32>(d.x * scs, d.y * mns);
}
// The same for one group g: (d*sc, dmin*m), without an integer conversion.
fn w_scale(s: vec4<u32>, g: u32) -> vec2<f32> {
    let v = s.yzw >> vec3<u32>((g & 3u) * 8u);
    let low = v.xy & vec2<u32>(0x3fu);
    let high = (vec2<u32>(v.z, v.z >> 4u) & vec2<u32>(0x0fu)) | ((v.xy >> vec2<u32>(2u)) & vec2<u32>(0x30u));
    let sm = select(low, high, g >= 4u);
    return unpack2x16float(s.x) * (unpack2x16float(sm.x | (sm.y << 16u) | 0x64006400u) - 1024.0);
}

fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let c = e >> 6u;
    let s = w_scales(w[w_p1 + b], c);
    let q = w[b * 8u + (c << 1u) + ((e >> 4u) & 1u)][(e >> 2u) & 3u];
    if ((e & 32u) != 0u) {
        return s.y * vec4<f32>(unpack4xU8((q >> 4u) & 0x0f0f0f0fu)) - s.w;
    }
    return s.x * vec4<f32>(unpack4xU8(q & 0x0f0f0f0fu)) - s.z;
}

// 1024 + each byte of v.
fn bytes1024(v: u32) -> vec4<f32> {
    let a = unpack2x16float((v & 0x00ff00ffu) | 0x64006400u);
    let b = unpack2x16float(((v >> 8u) & 0x00ff00ffu) | 0x64006400u);
    return vec4<f32>(a.x, b.x, a.y, b.y);
}
// 1024 + the low nibble of each byte of v.
fn nibbles1024(v: u32) -> vec4<f32> {
    let a = unpack2x16float((v & 0x000f000fu) | 0x64006400u);
    let b = unpack2x16float(((v >> 8u) & 0x000f000fu) | 0x64006400u);
    return vec4<f32>(a.x, b.x, a.y, b.y);
}
// 1152 + each byte of v, as i8.
fn bytes1152(v: u32) -> vec4<f32> {
    let a = unpack2x16float((v & 0x00ff00ffu) ^ 0x64806480u);
    let b = unpack2x16float(((v >> 8u) & 0x00ff00ffu) ^ 0x64806480u);
    return vec4<f32>(a.x, b.x, a.y, b.y);
}
// 1 + a quarter of the low two bits of each byte of v: a smaller offset keeps more precision of small values.
fn crumbs1(v: u32) -> vec4<f32> {
    let a = unpack2x16float(((v << 8u) & 0x03000300u) | 0x3c003c00u);
    let b = unpack2x16float((v & 0x03000300u) | 0x3c003c00u);
    return vec4<f32>(a.x, b.x, a.y, b.y);
}
var<workgroup> ws: array<vec4<f32>, 256>;
var<workgroup> xs: array<vec4<f32>, 256>;

fn put(row: u32, col: u32, n_col: u32, part0: u32, sum: f32) {
    if (row < M && col < n_col) {
        var v = sum;
        if (AFFINE) {
            let pair = AFF + AFF_ROW * row + AFF_COL * col;
            v = v * aux[pair] + aux[pair + 1u];
        }
        let at = part0 + col * LDY + Y0 + row;
        if (ADD) {
            v += y[at];
        }
        y[at] = v;
    }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let row0 = group.y * 64u;
    let n_col = step[N_COL_AT];
    let col0 = group.x * 64u;
    let tr = tid % 8u;
    let tc = tid / 8u;
    let swr = (tr >> 1u) & 3u;
    let swc = (tc >> 1u) & 3u;
    // Prefetch: loaded while the previous tile is multiplied.
    var w00: vec4<f32>;
    var x00: vec4<f32>;
    var w01: vec4<f32>;
    var x01: vec4<f32>;
    var w02: vec4<f32>;
    var x02: vec4<f32>;
    var w03: vec4<f32>;
    var x03: vec4<f32>;
    var c00 = vec4<f32>();
    var c01 = vec4<f32>();
    var c02 = vec4<f32>();
    var c03 = vec4<f32>();
    var c04 = vec4<f32>();
    var c05 = vec4<f32>();
    var c06 = vec4<f32>();
    var c07 = vec4<f32>();
    var c10 = vec4<f32>();
    var c11 = vec4<f32>();
    var c12 = vec4<f32>();
    var c13 = vec4<f32>();
    var c14 = vec4<f32>();
    var c15 = vec4<f32>();
    var c16 = vec4<f32>();
    var c17 = vec4<f32>();
    // Constant bounds where possible, so that drivers unroll the loop.
    let k_first = select(0u, group.z * K_RUN, K_RUN < K);
    let k_run = select(K_RUN, min(K_RUN, K - k_first), K % K_RUN != 0u);
        {
            let r = tid;
            let k = 0u;

            let kw = k_first + k;
            let row = min(row0 + r, M - 1u) * BLOCKS;
            let at = (min(col0 + r, n_col - 1u) * LDX + kw) / 4u;
            if (RAGGED) {
                w00 = vec4<f32>();
                x00 = vec4<f32>();
                if (kw + 0u < K) {
                    w00 = vec4<f32>(w_load4(row + (kw + 0u) / 256u, (kw + 0u) % 256u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x00 = vec4<f32>(select(x[at + 0u], vec4<f32>(), past));
                }
                w01 = vec4<f32>();
                x01 = vec4<f32>();
                if (kw + 4u < K) {
                    w01 = vec4<f32>(w_load4(row + (kw + 4u) / 256u, (kw + 4u) % 256u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x01 = vec4<f32>(select(x[at + 1u], vec4<f32>(), past));
                }
                w02 = vec4<f32>();
                x02 = vec4<f32>();
                if (kw + 8u < K) {
                    w02 = vec4<f32>(w_load4(row + (kw + 8u) / 256u, (kw + 8u) % 256u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x02 = vec4<f32>(select(x[at + 2u], vec4<f32>(), past));
                }
                w03 = vec4<f32>();
                x03 = vec4<f32>();
                if (kw + 12u < K) {
                    w03 = vec4<f32>(w_load4(row + (kw + 12u) / 256u, (kw + 12u) % 256u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x03 = vec4<f32>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 256u;
                let e = kw % 256u;
let vr = w[b * 8u + ((e >> 6u) << 1u) + ((e >> 4u) & 1u)];
let vs = w[w_p1 + b];

let vq = vr >> vec4<u32>((e & 32u) >> 3u);
let vf = w_scale(vs, e >> 5u);
let vd = vf.x;
let vm = vf.y;
let v0 = vd * (nibbles1024(vq.x) - 1024.0) - vm;
let v1 = vd * (nibbles1024(vq.y) - 1024.0) - vm;
let v2 = vd * (nibbles1024(vq.z) - 1024.0) - vm;
let v3 = vd * (nibbles1024(vq.w) - 1024.0) - vm;

                w00 = vec4<f32>(v0);
                x00 = vec4<f32>(x[at + 0u]);
                w01 = vec4<f32>(v1);
                x01 = vec4<f32>(x[at + 1u]);
                w02 = vec4<f32>(v2);
                x02 = vec4<f32>(x[at + 2u]);
                w03 = vec4<f32>(v3);
                x03 = vec4<f32>(x[at + 3u]);
            }
        }

    for (var k_at = 0u; k_at < k_run; k_at += 16u) {
        let k0 = k_first + k_at;
        {
            let r = tid;
            let k = 0u;

            let at0 = (r * 4u + ((k / 4u + 0u) ^ ((r >> 1u) & 3u))) * 1u;
            ws[at0 + 0u] = w00;
            xs[at0 + 0u] = x00;
            let at1 = (r * 4u + ((k / 4u + 1u) ^ ((r >> 1u) & 3u))) * 1u;
            ws[at1 + 0u] = w01;
            xs[at1 + 0u] = x01;
            let at2 = (r * 4u + ((k / 4u + 2u) ^ ((r >> 1u) & 3u))) * 1u;
            ws[at2 + 0u] = w02;
            xs[at2 + 0u] = x02;
            let at3 = (r * 4u + ((k / 4u + 3u) ^ ((r >> 1u) & 3u))) * 1u;
            ws[at3 + 0u] = w03;
            xs[at3 + 0u] = x03;
        }

        let k1 = k0 + 16u;
        if (k_at + 16u < k_run) {
        {
            let r = tid;
            let k = 0u;

            let kw = k1 + k;
            let row = min(row0 + r, M - 1u) * BLOCKS;
            let at = (min(col0 + r, n_col - 1u) * LDX + kw) / 4u;
            if (RAGGED) {
                w00 = vec4<f32>();
                x00 = vec4<f32>();
                if (kw + 0u < K) {
                    w00 = vec4<f32>(w_load4(row + (kw + 0u) / 256u, (kw + 0u) % 256u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x00 = vec4<f32>(select(x[at + 0u], vec4<f32>(), past));
                }
                w01 = vec4<f32>();
                x01 = vec4<f32>();
                if (kw + 4u < K) {
                    w01 = vec4<f32>(w_load4(row + (kw + 4u) / 256u, (kw + 4u) % 256u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x01 = vec4<f32>(select(x[at + 1u], vec4<f32>(), past));
                }
                w02 = vec4<f32>();
                x02 = vec4<f32>();
                if (kw + 8u < K) {
                    w02 = vec4<f32>(w_load4(row + (kw + 8u) / 256u, (kw + 8u) % 256u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x02 = vec4<f32>(select(x[at + 2u], vec4<f32>(), past));
                }
                w03 = vec4<f32>();
                x03 = vec4<f32>();
                if (kw + 12u < K) {
                    w03 = vec4<f32>(w_load4(row + (kw + 12u) / 256u, (kw + 12u) % 256u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x03 = vec4<f32>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 256u;
                let e = kw % 256u;
let vr = w[b * 8u + ((e >> 6u) << 1u) + ((e >> 4u) & 1u)];
let vs = w[w_p1 + b];

let vq = vr >> vec4<u32>((e & 32u) >> 3u);
let vf = w_scale(vs, e >> 5u);
let vd = vf.x;
let vm = vf.y;
let v0 = vd * (nibbles1024(vq.x) - 1024.0) - vm;
let v1 = vd * (nibbles1024(vq.y) - 1024.0) - vm;
let v2 = vd * (nibbles1024(vq.z) - 1024.0) - vm;
let v3 = vd * (nibbles1024(vq.w) - 1024.0) - vm;

                w00 = vec4<f32>(v0);
                x00 = vec4<f32>(x[at + 0u]);
                w01 = vec4<f32>(v1);
                x01 = vec4<f32>(x[at + 1u]);
                w02 = vec4<f32>(v2);
                x02 = vec4<f32>(x[at + 2u]);
                w03 = vec4<f32>(v3);
                x03 = vec4<f32>(x[at + 3u]);
            }
        }

        }
        workgroupBarrier();
        {
            let a00 = ws[((tr + 0u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a10 = ws[((tr + 8u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a20 = ws[((tr + 16u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a30 = ws[((tr + 24u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a40 = ws[((tr + 32u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a50 = ws[((tr + 40u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a60 = ws[((tr + 48u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a70 = ws[((tr + 56u) * 4u + (0u ^ swr)) * 1u + 0u];
            let t0x = vec4<f32>(a00.x, a10.x, a20.x, a30.x);
            let t0y = vec4<f32>(a00.y, a10.y, a20.y, a30.y);
            let t0z = vec4<f32>(a00.z, a10.z, a20.z, a30.z);
            let t0w = vec4<f32>(a00.w, a10.w, a20.w, a30.w);
            let t1x = vec4<f32>(a40.x, a50.x, a60.x, a70.x);
            let t1y = vec4<f32>(a40.y, a50.y, a60.y, a70.y);
            let t1z = vec4<f32>(a40.z, a50.z, a60.z, a70.z);
            let t1w = vec4<f32>(a40.w, a50.w, a60.w, a70.w);
            {
            let b0 = xs[((tc + 0u) * 4u + (0u ^ swc)) * 1u + 0u];
            c00 = fma(t0x, vec4<f32>(b0.x), c00);
            c10 = fma(t1x, vec4<f32>(b0.x), c10);
            c00 = fma(t0y, vec4<f32>(b0.y), c00);
            c10 = fma(t1y, vec4<f32>(b0.y), c10);
            c00 = fma(t0z, vec4<f32>(b0.z), c00);
            c10 = fma(t1z, vec4<f32>(b0.z), c10);
            c00 = fma(t0w, vec4<f32>(b0.w), c00);
            c10 = fma(t1w, vec4<f32>(b0.w), c10);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (0u ^ swc)) * 1u + 0u];
            c01 = fma(t0x, vec4<f32>(b0.x), c01);
            c11 = fma(t1x, vec4<f32>(b0.x), c11);
            c01 = fma(t0y, vec4<f32>(b0.y), c01);
            c11 = fma(t1y, vec4<f32>(b0.y), c11);
            c01 = fma(t0z, vec4<f32>(b0.z), c01);
            c11 = fma(t1z, vec4<f32>(b0.z), c11);
            c01 = fma(t0w, vec4<f32>(b0.w), c01);
            c11 = fma(t1w, vec4<f32>(b0.w), c11);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (0u ^ swc)) * 1u + 0u];
            c02 = fma(t0x, vec4<f32>(b0.x), c02);
            c12 = fma(t1x, vec4<f32>(b0.x), c12);
            c02 = fma(t0y, vec4<f32>(b0.y), c02);
            c12 = fma(t1y, vec4<f32>(b0.y), c12);
            c02 = fma(t0z, vec4<f32>(b0.z), c02);
            c12 = fma(t1z, vec4<f32>(b0.z), c12);
            c02 = fma(t0w, vec4<f32>(b0.w), c02);
            c12 = fma(t1w, vec4<f32>(b0.w), c12);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (0u ^ swc)) * 1u + 0u];
            c03 = fma(t0x, vec4<f32>(b0.x), c03);
            c13 = fma(t1x, vec4<f32>(b0.x), c13);
            c03 = fma(t0y, vec4<f32>(b0.y), c03);
            c13 = fma(t1y, vec4<f32>(b0.y), c13);
            c03 = fma(t0z, vec4<f32>(b0.z), c03);
            c13 = fma(t1z, vec4<f32>(b0.z), c13);
            c03 = fma(t0w, vec4<f32>(b0.w), c03);
            c13 = fma(t1w, vec4<f32>(b0.w), c13);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (0u ^ swc)) * 1u + 0u];
            c04 = fma(t0x, vec4<f32>(b0.x), c04);
            c14 = fma(t1x, vec4<f32>(b0.x), c14);
            c04 = fma(t0y, vec4<f32>(b0.y), c04);
            c14 = fma(t1y, vec4<f32>(b0.y), c14);
            c04 = fma(t0z, vec4<f32>(b0.z), c04);
            c14 = fma(t1z, vec4<f32>(b0.z), c14);
            c04 = fma(t0w, vec4<f32>(b0.w), c04);
            c14 = fma(t1w, vec4<f32>(b0.w), c14);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (0u ^ swc)) * 1u + 0u];
            c05 = fma(t0x, vec4<f32>(b0.x), c05);
            c15 = fma(t1x, vec4<f32>(b0.x), c15);
            c05 = fma(t0y, vec4<f32>(b0.y), c05);
            c15 = fma(t1y, vec4<f32>(b0.y), c15);
            c05 = fma(t0z, vec4<f32>(b0.z), c05);
            c15 = fma(t1z, vec4<f32>(b0.z), c15);
            c05 = fma(t0w, vec4<f32>(b0.w), c05);
            c15 = fma(t1w, vec4<f32>(b0.w), c15);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (0u ^ swc)) * 1u + 0u];
            c06 = fma(t0x, vec4<f32>(b0.x), c06);
            c16 = fma(t1x, vec4<f32>(b0.x), c16);
            c06 = fma(t0y, vec4<f32>(b0.y), c06);
            c16 = fma(t1y, vec4<f32>(b0.y), c16);
            c06 = fma(t0z, vec4<f32>(b0.z), c06);
            c16 = fma(t1z, vec4<f32>(b0.z), c16);
            c06 = fma(t0w, vec4<f32>(b0.w), c06);
            c16 = fma(t1w, vec4<f32>(b0.w), c16);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (0u ^ swc)) * 1u + 0u];
            c07 = fma(t0x, vec4<f32>(b0.x), c07);
            c17 = fma(t1x, vec4<f32>(b0.x), c17);
            c07 = fma(t0y, vec4<f32>(b0.y), c07);
            c17 = fma(t1y, vec4<f32>(b0.y), c17);
            c07 = fma(t0z, vec4<f32>(b0.z), c07);
            c17 = fma(t1z, vec4<f32>(b0.z), c17);
            c07 = fma(t0w, vec4<f32>(b0.w), c07);
            c17 = fma(t1w, vec4<f32>(b0.w), c17);
            }

        }
        {
            let a00 = ws[((tr + 0u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a10 = ws[((tr + 8u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a20 = ws[((tr + 16u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a30 = ws[((tr + 24u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a40 = ws[((tr + 32u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a50 = ws[((tr + 40u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a60 = ws[((tr + 48u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a70 = ws[((tr + 56u) * 4u + (1u ^ swr)) * 1u + 0u];
            let t0x = vec4<f32>(a00.x, a10.x, a20.x, a30.x);
            let t0y = vec4<f32>(a00.y, a10.y, a20.y, a30.y);
            let t0z = vec4<f32>(a00.z, a10.z, a20.z, a30.z);
            let t0w = vec4<f32>(a00.w, a10.w, a20.w, a30.w);
            let t1x = vec4<f32>(a40.x, a50.x, a60.x, a70.x);
            let t1y = vec4<f32>(a40.y, a50.y, a60.y, a70.y);
            let t1z = vec4<f32>(a40.z, a50.z, a60.z, a70.z);
            let t1w = vec4<f32>(a40.w, a50.w, a60.w, a70.w);
            {
            let b0 = xs[((tc + 0u) * 4u + (1u ^ swc)) * 1u + 0u];
            c00 = fma(t0x, vec4<f32>(b0.x), c00);
            c10 = fma(t1x, vec4<f32>(b0.x), c10);
            c00 = fma(t0y, vec4<f32>(b0.y), c00);
            c10 = fma(t1y, vec4<f32>(b0.y), c10);
            c00 = fma(t0z, vec4<f32>(b0.z), c00);
            c10 = fma(t1z, vec4<f32>(b0.z), c10);
            c00 = fma(t0w, vec4<f32>(b0.w), c00);
            c10 = fma(t1w, vec4<f32>(b0.w), c10);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (1u ^ swc)) * 1u + 0u];
            c01 = fma(t0x, vec4<f32>(b0.x), c01);
            c11 = fma(t1x, vec4<f32>(b0.x), c11);
            c01 = fma(t0y, vec4<f32>(b0.y), c01);
            c11 = fma(t1y, vec4<f32>(b0.y), c11);
            c01 = fma(t0z, vec4<f32>(b0.z), c01);
            c11 = fma(t1z, vec4<f32>(b0.z), c11);
            c01 = fma(t0w, vec4<f32>(b0.w), c01);
            c11 = fma(t1w, vec4<f32>(b0.w), c11);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (1u ^ swc)) * 1u + 0u];
            c02 = fma(t0x, vec4<f32>(b0.x), c02);
            c12 = fma(t1x, vec4<f32>(b0.x), c12);
            c02 = fma(t0y, vec4<f32>(b0.y), c02);
            c12 = fma(t1y, vec4<f32>(b0.y), c12);
            c02 = fma(t0z, vec4<f32>(b0.z), c02);
            c12 = fma(t1z, vec4<f32>(b0.z), c12);
            c02 = fma(t0w, vec4<f32>(b0.w), c02);
            c12 = fma(t1w, vec4<f32>(b0.w), c12);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (1u ^ swc)) * 1u + 0u];
            c03 = fma(t0x, vec4<f32>(b0.x), c03);
            c13 = fma(t1x, vec4<f32>(b0.x), c13);
            c03 = fma(t0y, vec4<f32>(b0.y), c03);
            c13 = fma(t1y, vec4<f32>(b0.y), c13);
            c03 = fma(t0z, vec4<f32>(b0.z), c03);
            c13 = fma(t1z, vec4<f32>(b0.z), c13);
            c03 = fma(t0w, vec4<f32>(b0.w), c03);
            c13 = fma(t1w, vec4<f32>(b0.w), c13);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (1u ^ swc)) * 1u + 0u];
            c04 = fma(t0x, vec4<f32>(b0.x), c04);
            c14 = fma(t1x, vec4<f32>(b0.x), c14);
            c04 = fma(t0y, vec4<f32>(b0.y), c04);
            c14 = fma(t1y, vec4<f32>(b0.y), c14);
            c04 = fma(t0z, vec4<f32>(b0.z), c04);
            c14 = fma(t1z, vec4<f32>(b0.z), c14);
            c04 = fma(t0w, vec4<f32>(b0.w), c04);
            c14 = fma(t1w, vec4<f32>(b0.w), c14);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (1u ^ swc)) * 1u + 0u];
            c05 = fma(t0x, vec4<f32>(b0.x), c05);
            c15 = fma(t1x, vec4<f32>(b0.x), c15);
            c05 = fma(t0y, vec4<f32>(b0.y), c05);
            c15 = fma(t1y, vec4<f32>(b0.y), c15);
            c05 = fma(t0z, vec4<f32>(b0.z), c05);
            c15 = fma(t1z, vec4<f32>(b0.z), c15);
            c05 = fma(t0w, vec4<f32>(b0.w), c05);
            c15 = fma(t1w, vec4<f32>(b0.w), c15);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (1u ^ swc)) * 1u + 0u];
            c06 = fma(t0x, vec4<f32>(b0.x), c06);
            c16 = fma(t1x, vec4<f32>(b0.x), c16);
            c06 = fma(t0y, vec4<f32>(b0.y), c06);
            c16 = fma(t1y, vec4<f32>(b0.y), c16);
            c06 = fma(t0z, vec4<f32>(b0.z), c06);
            c16 = fma(t1z, vec4<f32>(b0.z), c16);
            c06 = fma(t0w, vec4<f32>(b0.w), c06);
            c16 = fma(t1w, vec4<f32>(b0.w), c16);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (1u ^ swc)) * 1u + 0u];
            c07 = fma(t0x, vec4<f32>(b0.x), c07);
            c17 = fma(t1x, vec4<f32>(b0.x), c17);
            c07 = fma(t0y, vec4<f32>(b0.y), c07);
            c17 = fma(t1y, vec4<f32>(b0.y), c17);
            c07 = fma(t0z, vec4<f32>(b0.z), c07);
            c17 = fma(t1z, vec4<f32>(b0.z), c17);
            c07 = fma(t0w, vec4<f32>(b0.w), c07);
            c17 = fma(t1w, vec4<f32>(b0.w), c17);
            }

        }
        {
            let a00 = ws[((tr + 0u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a10 = ws[((tr + 8u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a20 = ws[((tr + 16u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a30 = ws[((tr + 24u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a40 = ws[((tr + 32u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a50 = ws[((tr + 40u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a60 = ws[((tr + 48u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a70 = ws[((tr + 56u) * 4u + (2u ^ swr)) * 1u + 0u];
            let t0x = vec4<f32>(a00.x, a10.x, a20.x, a30.x);
            let t0y = vec4<f32>(a00.y, a10.y, a20.y, a30.y);
            let t0z = vec4<f32>(a00.z, a10.z, a20.z, a30.z);
            let t0w = vec4<f32>(a00.w, a10.w, a20.w, a30.w);
            let t1x = vec4<f32>(a40.x, a50.x, a60.x, a70.x);
            let t1y = vec4<f32>(a40.y, a50.y, a60.y, a70.y);
            let t1z = vec4<f32>(a40.z, a50.z, a60.z, a70.z);
            let t1w = vec4<f32>(a40.w, a50.w, a60.w, a70.w);
            {
            let b0 = xs[((tc + 0u) * 4u + (2u ^ swc)) * 1u + 0u];
            c00 = fma(t0x, vec4<f32>(b0.x), c00);
            c10 = fma(t1x, vec4<f32>(b0.x), c10);
            c00 = fma(t0y, vec4<f32>(b0.y), c00);
            c10 = fma(t1y, vec4<f32>(b0.y), c10);
            c00 = fma(t0z, vec4<f32>(b0.z), c00);
            c10 = fma(t1z, vec4<f32>(b0.z), c10);
            c00 = fma(t0w, vec4<f32>(b0.w), c00);
            c10 = fma(t1w, vec4<f32>(b0.w), c10);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (2u ^ swc)) * 1u + 0u];
            c01 = fma(t0x, vec4<f32>(b0.x), c01);
            c11 = fma(t1x, vec4<f32>(b0.x), c11);
            c01 = fma(t0y, vec4<f32>(b0.y), c01);
            c11 = fma(t1y, vec4<f32>(b0.y), c11);
            c01 = fma(t0z, vec4<f32>(b0.z), c01);
            c11 = fma(t1z, vec4<f32>(b0.z), c11);
            c01 = fma(t0w, vec4<f32>(b0.w), c01);
            c11 = fma(t1w, vec4<f32>(b0.w), c11);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (2u ^ swc)) * 1u + 0u];
            c02 = fma(t0x, vec4<f32>(b0.x), c02);
            c12 = fma(t1x, vec4<f32>(b0.x), c12);
            c02 = fma(t0y, vec4<f32>(b0.y), c02);
            c12 = fma(t1y, vec4<f32>(b0.y), c12);
            c02 = fma(t0z, vec4<f32>(b0.z), c02);
            c12 = fma(t1z, vec4<f32>(b0.z), c12);
            c02 = fma(t0w, vec4<f32>(b0.w), c02);
            c12 = fma(t1w, vec4<f32>(b0.w), c12);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (2u ^ swc)) * 1u + 0u];
            c03 = fma(t0x, vec4<f32>(b0.x), c03);
            c13 = fma(t1x, vec4<f32>(b0.x), c13);
            c03 = fma(t0y, vec4<f32>(b0.y), c03);
            c13 = fma(t1y, vec4<f32>(b0.y), c13);
            c03 = fma(t0z, vec4<f32>(b0.z), c03);
            c13 = fma(t1z, vec4<f32>(b0.z), c13);
            c03 = fma(t0w, vec4<f32>(b0.w), c03);
            c13 = fma(t1w, vec4<f32>(b0.w), c13);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (2u ^ swc)) * 1u + 0u];
            c04 = fma(t0x, vec4<f32>(b0.x), c04);
            c14 = fma(t1x, vec4<f32>(b0.x), c14);
            c04 = fma(t0y, vec4<f32>(b0.y), c04);
            c14 = fma(t1y, vec4<f32>(b0.y), c14);
            c04 = fma(t0z, vec4<f32>(b0.z), c04);
            c14 = fma(t1z, vec4<f32>(b0.z), c14);
            c04 = fma(t0w, vec4<f32>(b0.w), c04);
            c14 = fma(t1w, vec4<f32>(b0.w), c14);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (2u ^ swc)) * 1u + 0u];
            c05 = fma(t0x, vec4<f32>(b0.x), c05);
            c15 = fma(t1x, vec4<f32>(b0.x), c15);
            c05 = fma(t0y, vec4<f32>(b0.y), c05);
            c15 = fma(t1y, vec4<f32>(b0.y), c15);
            c05 = fma(t0z, vec4<f32>(b0.z), c05);
            c15 = fma(t1z, vec4<f32>(b0.z), c15);
            c05 = fma(t0w, vec4<f32>(b0.w), c05);
            c15 = fma(t1w, vec4<f32>(b0.w), c15);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (2u ^ swc)) * 1u + 0u];
            c06 = fma(t0x, vec4<f32>(b0.x), c06);
            c16 = fma(t1x, vec4<f32>(b0.x), c16);
            c06 = fma(t0y, vec4<f32>(b0.y), c06);
            c16 = fma(t1y, vec4<f32>(b0.y), c16);
            c06 = fma(t0z, vec4<f32>(b0.z), c06);
            c16 = fma(t1z, vec4<f32>(b0.z), c16);
            c06 = fma(t0w, vec4<f32>(b0.w), c06);
            c16 = fma(t1w, vec4<f32>(b0.w), c16);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (2u ^ swc)) * 1u + 0u];
            c07 = fma(t0x, vec4<f32>(b0.x), c07);
            c17 = fma(t1x, vec4<f32>(b0.x), c17);
            c07 = fma(t0y, vec4<f32>(b0.y), c07);
            c17 = fma(t1y, vec4<f32>(b0.y), c17);
            c07 = fma(t0z, vec4<f32>(b0.z), c07);
            c17 = fma(t1z, vec4<f32>(b0.z), c17);
            c07 = fma(t0w, vec4<f32>(b0.w), c07);
            c17 = fma(t1w, vec4<f32>(b0.w), c17);
            }

        }
        {
            let a00 = ws[((tr + 0u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a10 = ws[((tr + 8u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a20 = ws[((tr + 16u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a30 = ws[((tr + 24u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a40 = ws[((tr + 32u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a50 = ws[((tr + 40u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a60 = ws[((tr + 48u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a70 = ws[((tr + 56u) * 4u + (3u ^ swr)) * 1u + 0u];
            let t0x = vec4<f32>(a00.x, a10.x, a20.x, a30.x);
            let t0y = vec4<f32>(a00.y, a10.y, a20.y, a30.y);
            let t0z = vec4<f32>(a00.z, a10.z, a20.z, a30.z);
            let t0w = vec4<f32>(a00.w, a10.w, a20.w, a30.w);
            let t1x = vec4<f32>(a40.x, a50.x, a60.x, a70.x);
            let t1y = vec4<f32>(a40.y, a50.y, a60.y, a70.y);
            let t1z = vec4<f32>(a40.z, a50.z, a60.z, a70.z);
            let t1w = vec4<f32>(a40.w, a50.w, a60.w, a70.w);
            {
            let b0 = xs[((tc + 0u) * 4u + (3u ^ swc)) * 1u + 0u];
            c00 = fma(t0x, vec4<f32>(b0.x), c00);
            c10 = fma(t1x, vec4<f32>(b0.x), c10);
            c00 = fma(t0y, vec4<f32>(b0.y), c00);
            c10 = fma(t1y, vec4<f32>(b0.y), c10);
            c00 = fma(t0z, vec4<f32>(b0.z), c00);
            c10 = fma(t1z, vec4<f32>(b0.z), c10);
            c00 = fma(t0w, vec4<f32>(b0.w), c00);
            c10 = fma(t1w, vec4<f32>(b0.w), c10);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (3u ^ swc)) * 1u + 0u];
            c01 = fma(t0x, vec4<f32>(b0.x), c01);
            c11 = fma(t1x, vec4<f32>(b0.x), c11);
            c01 = fma(t0y, vec4<f32>(b0.y), c01);
            c11 = fma(t1y, vec4<f32>(b0.y), c11);
            c01 = fma(t0z, vec4<f32>(b0.z), c01);
            c11 = fma(t1z, vec4<f32>(b0.z), c11);
            c01 = fma(t0w, vec4<f32>(b0.w), c01);
            c11 = fma(t1w, vec4<f32>(b0.w), c11);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (3u ^ swc)) * 1u + 0u];
            c02 = fma(t0x, vec4<f32>(b0.x), c02);
            c12 = fma(t1x, vec4<f32>(b0.x), c12);
            c02 = fma(t0y, vec4<f32>(b0.y), c02);
            c12 = fma(t1y, vec4<f32>(b0.y), c12);
            c02 = fma(t0z, vec4<f32>(b0.z), c02);
            c12 = fma(t1z, vec4<f32>(b0.z), c12);
            c02 = fma(t0w, vec4<f32>(b0.w), c02);
            c12 = fma(t1w, vec4<f32>(b0.w), c12);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (3u ^ swc)) * 1u + 0u];
            c03 = fma(t0x, vec4<f32>(b0.x), c03);
            c13 = fma(t1x, vec4<f32>(b0.x), c13);
            c03 = fma(t0y, vec4<f32>(b0.y), c03);
            c13 = fma(t1y, vec4<f32>(b0.y), c13);
            c03 = fma(t0z, vec4<f32>(b0.z), c03);
            c13 = fma(t1z, vec4<f32>(b0.z), c13);
            c03 = fma(t0w, vec4<f32>(b0.w), c03);
            c13 = fma(t1w, vec4<f32>(b0.w), c13);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (3u ^ swc)) * 1u + 0u];
            c04 = fma(t0x, vec4<f32>(b0.x), c04);
            c14 = fma(t1x, vec4<f32>(b0.x), c14);
            c04 = fma(t0y, vec4<f32>(b0.y), c04);
            c14 = fma(t1y, vec4<f32>(b0.y), c14);
            c04 = fma(t0z, vec4<f32>(b0.z), c04);
            c14 = fma(t1z, vec4<f32>(b0.z), c14);
            c04 = fma(t0w, vec4<f32>(b0.w), c04);
            c14 = fma(t1w, vec4<f32>(b0.w), c14);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (3u ^ swc)) * 1u + 0u];
            c05 = fma(t0x, vec4<f32>(b0.x), c05);
            c15 = fma(t1x, vec4<f32>(b0.x), c15);
            c05 = fma(t0y, vec4<f32>(b0.y), c05);
            c15 = fma(t1y, vec4<f32>(b0.y), c15);
            c05 = fma(t0z, vec4<f32>(b0.z), c05);
            c15 = fma(t1z, vec4<f32>(b0.z), c15);
            c05 = fma(t0w, vec4<f32>(b0.w), c05);
            c15 = fma(t1w, vec4<f32>(b0.w), c15);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (3u ^ swc)) * 1u + 0u];
            c06 = fma(t0x, vec4<f32>(b0.x), c06);
            c16 = fma(t1x, vec4<f32>(b0.x), c16);
            c06 = fma(t0y, vec4<f32>(b0.y), c06);
            c16 = fma(t1y, vec4<f32>(b0.y), c16);
            c06 = fma(t0z, vec4<f32>(b0.z), c06);
            c16 = fma(t1z, vec4<f32>(b0.z), c16);
            c06 = fma(t0w, vec4<f32>(b0.w), c06);
            c16 = fma(t1w, vec4<f32>(b0.w), c16);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (3u ^ swc)) * 1u + 0u];
            c07 = fma(t0x, vec4<f32>(b0.x), c07);
            c17 = fma(t1x, vec4<f32>(b0.x), c17);
            c07 = fma(t0y, vec4<f32>(b0.y), c07);
            c17 = fma(t1y, vec4<f32>(b0.y), c17);
            c07 = fma(t0z, vec4<f32>(b0.z), c07);
            c17 = fma(t1z, vec4<f32>(b0.z), c17);
            c07 = fma(t0w, vec4<f32>(b0.w), c07);
            c17 = fma(t1w, vec4<f32>(b0.w), c17);
            }

        }
        workgroupBarrier();
    }
    put(row0 + tr + 0u, col0 + tc + 0u, n_col, group.z * PART, c00.x);
    put(row0 + tr + 0u, col0 + tc + 8u, n_col, group.z * PART, c01.x);
    put(row0 + tr + 0u, col0 + tc + 16u, n_col, group.z * PART, c02.x);
    put(row0 + tr + 0u, col0 + tc + 24u, n_col, group.z * PART, c03.x);
    put(row0 + tr + 0u, col0 + tc + 32u, n_col, group.z * PART, c04.x);
    put(row0 + tr + 0u, col0 + tc + 40u, n_col, group.z * PART, c05.x);
    put(row0 + tr + 0u, col0 + tc + 48u, n_col, group.z * PART, c06.x);
    put(row0 + tr + 0u, col0 + tc + 56u, n_col, group.z * PART, c07.x);
    put(row0 + tr + 8u, col0 + tc + 0u, n_col, group.z * PART, c00.y);
    put(row0 + tr + 8u, col0 + tc + 8u, n_col, group.z * PART, c01.y);
    put(row0 + tr + 8u, col0 + tc + 16u, n_col, group.z * PART, c02.y);
    put(row0 + tr + 8u, col0 + tc + 24u, n_col, group.z * PART, c03.y);
    put(row0 + tr + 8u, col0 + tc + 32u, n_col, group.z * PART, c04.y);
    put(row0 + tr + 8u, col0 + tc + 40u, n_col, group.z * PART, c05.y);
    put(row0 + tr + 8u, col0 + tc + 48u, n_col, group.z * PART, c06.y);
    put(row0 + tr + 8u, col0 + tc + 56u, n_col, group.z * PART, c07.y);
    put(row0 + tr + 16u, col0 + tc + 0u, n_col, group.z * PART, c00.z);
    put(row0 + tr + 16u, col0 + tc + 8u, n_col, group.z * PART, c01.z);
    put(row0 + tr + 16u, col0 + tc + 16u, n_col, group.z * PART, c02.z);
    put(row0 + tr + 16u, col0 + tc + 24u, n_col, group.z * PART, c03.z);
    put(row0 + tr + 16u, col0 + tc + 32u, n_col, group.z * PART, c04.z);
    put(row0 + tr + 16u, col0 + tc + 40u, n_col, group.z * PART, c05.z);
    put(row0 + tr + 16u, col0 + tc + 48u, n_col, group.z * PART, c06.z);
    put(row0 + tr + 16u, col0 + tc + 56u, n_col, group.z * PART, c07.z);
    put(row0 + tr + 24u, col0 + tc + 0u, n_col, group.z * PART, c00.w);
    put(row0 + tr + 24u, col0 + tc + 8u, n_col, group.z * PART, c01.w);
    put(row0 + tr + 24u, col0 + tc + 16u, n_col, group.z * PART, c02.w);
    put(row0 + tr + 24u, col0 + tc + 24u, n_col, group.z * PART, c03.w);
    put(row0 + tr + 24u, col0 + tc + 32u, n_col, group.z * PART, c04.w);
    put(row0 + tr + 24u, col0 + tc + 40u, n_col, group.z * PART, c05.w);
    put(row0 + tr + 24u, col0 + tc + 48u, n_col, group.z * PART, c06.w);
    put(row0 + tr + 24u, col0 + tc + 56u, n_col, group.z * PART, c07.w);
    put(row0 + tr + 32u, col0 + tc + 0u, n_col, group.z * PART, c10.x);
    put(row0 + tr + 32u, col0 + tc + 8u, n_col, group.z * PART, c11.x);
    put(row0 + tr + 32u, col0 + tc + 16u, n_col, group.z * PART, c12.x);
    put(row0 + tr + 32u, col0 + tc + 24u, n_col, group.z * PART, c13.x);
    put(row0 + tr + 32u, col0 + tc + 32u, n_col, group.z * PART, c14.x);
    put(row0 + tr + 32u, col0 + tc + 40u, n_col, group.z * PART, c15.x);
    put(row0 + tr + 32u, col0 + tc + 48u, n_col, group.z * PART, c16.x);
    put(row0 + tr + 32u, col0 + tc + 56u, n_col, group.z * PART, c17.x);
    put(row0 + tr + 40u, col0 + tc + 0u, n_col, group.z * PART, c10.y);
    put(row0 + tr + 40u, col0 + tc + 8u, n_col, group.z * PART, c11.y);
    put(row0 + tr + 40u, col0 + tc + 16u, n_col, group.z * PART, c12.y);
    put(row0 + tr + 40u, col0 + tc + 24u, n_col, group.z * PART, c13.y);
    put(row0 + tr + 40u, col0 + tc + 32u, n_col, group.z * PART, c14.y);
    put(row0 + tr + 40u, col0 + tc + 40u, n_col, group.z * PART, c15.y);
    put(row0 + tr + 40u, col0 + tc + 48u, n_col, group.z * PART, c16.y);
    put(row0 + tr + 40u, col0 + tc + 56u, n_col, group.z * PART, c17.y);
    put(row0 + tr + 48u, col0 + tc + 0u, n_col, group.z * PART, c10.z);
    put(row0 + tr + 48u, col0 + tc + 8u, n_col, group.z * PART, c11.z);
    put(row0 + tr + 48u, col0 + tc + 16u, n_col, group.z * PART, c12.z);
    put(row0 + tr + 48u, col0 + tc + 24u, n_col, group.z * PART, c13.z);
    put(row0 + tr + 48u, col0 + tc + 32u, n_col, group.z * PART, c14.z);
    put(row0 + tr + 48u, col0 + tc + 40u, n_col, group.z * PART, c15.z);
    put(row0 + tr + 48u, col0 + tc + 48u, n_col, group.z * PART, c16.z);
    put(row0 + tr + 48u, col0 + tc + 56u, n_col, group.z * PART, c17.z);
    put(row0 + tr + 56u, col0 + tc + 0u, n_col, group.z * PART, c10.w);
    put(row0 + tr + 56u, col0 + tc + 8u, n_col, group.z * PART, c11.w);
    put(row0 + tr + 56u, col0 + tc + 16u, n_col, group.z * PART, c12.w);
    put(row0 + tr + 56u, col0 + tc + 24u, n_col, group.z * PART, c13.w);
    put(row0 + tr + 56u, col0 + tc + 32u, n_col, group.z * PART, c14.w);
    put(row0 + tr + 56u, col0 + tc + 40u, n_col, group.z * PART, c15.w);
    put(row0 + tr + 56u, col0 + tc + 48u, n_col, group.z * PART, c16.w);
    put(row0 + tr + 56u, col0 + tc + 56u, n_col, group.z * PART, c17.w);
}
