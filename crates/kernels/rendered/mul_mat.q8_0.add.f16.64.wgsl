// mul_mat: a=q8_0 epi=add tile=f16 side=64
override K: u32 = 256u;
override M: u32 = 1u;
override LDX: u32 = 256u;
override LDY: u32 = 1u;
override Y0: u32 = 0u;
override AFFINE: bool = false;
override AFF: u32 = 0u;
override RAGGED: bool = false;
override BLOCKS: u32 = 1u;
override w_p1: u32 = 0u;
override w_p2: u32 = 0u;
override w_p3: u32 = 0u;

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> aux: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read> step: array<u32>;
fn w_d(b: u32) -> f32 {
    return unpack2x16float(w[w_p1 + (b >> 3u)][(b >> 1u) & 3u])[b & 1u];
}
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    return w_d(b) * vec4<f32>(unpack4xI8(w[b * 2u + (e >> 4u)][(e >> 2u) & 3u]));
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
var<workgroup> ws: array<vec4<f16>, 512>;
var<workgroup> xs: array<vec4<f16>, 512>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let n_col = step[0];
    let row0 = group.y * 64u;
    let col0 = group.x * 64u;
    let tr = tid % 8u;
    let tc = tid / 8u;
    let swr = (tr >> 1u) & 3u;
    let swc = (tc >> 1u) & 3u;
    // What lies ahead: loaded while the tile before it is multiplied.
    var w00: vec4<f16>;
    var x00: vec4<f16>;
    var w01: vec4<f16>;
    var x01: vec4<f16>;
    var w02: vec4<f16>;
    var x02: vec4<f16>;
    var w03: vec4<f16>;
    var x03: vec4<f16>;
    var c0_0 = 0.0;
    var c0_1 = 0.0;
    var c0_2 = 0.0;
    var c0_3 = 0.0;
    var c1_0 = 0.0;
    var c1_1 = 0.0;
    var c1_2 = 0.0;
    var c1_3 = 0.0;
    var c2_0 = 0.0;
    var c2_1 = 0.0;
    var c2_2 = 0.0;
    var c2_3 = 0.0;
    var c3_0 = 0.0;
    var c3_1 = 0.0;
    var c3_2 = 0.0;
    var c3_3 = 0.0;
    var c4_0 = 0.0;
    var c4_1 = 0.0;
    var c4_2 = 0.0;
    var c4_3 = 0.0;
    var c5_0 = 0.0;
    var c5_1 = 0.0;
    var c5_2 = 0.0;
    var c5_3 = 0.0;
    var c6_0 = 0.0;
    var c6_1 = 0.0;
    var c6_2 = 0.0;
    var c6_3 = 0.0;
    var c7_0 = 0.0;
    var c7_1 = 0.0;
    var c7_2 = 0.0;
    var c7_3 = 0.0;
        {
            let i = tid + 0u;
            let r = i % 64u;
            let k = (i / 64u) * 16u;

            let kw = 0u + k;
            let row = min(row0 + r, M - 1u) * BLOCKS;
            let at = (min(col0 + r, n_col - 1u) * LDX + kw) / 4u;
            if (RAGGED) {
                w00 = vec4<f16>();
                x00 = vec4<f16>();
                if (kw + 0u < K) {
                    w00 = vec4<f16>(w_load4(row + (kw + 0u) / 32u, (kw + 0u) % 32u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x00 = vec4<f16>(select(x[at + 0u], vec4<f32>(), past));
                }
                w01 = vec4<f16>();
                x01 = vec4<f16>();
                if (kw + 4u < K) {
                    w01 = vec4<f16>(w_load4(row + (kw + 4u) / 32u, (kw + 4u) % 32u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x01 = vec4<f16>(select(x[at + 1u], vec4<f32>(), past));
                }
                w02 = vec4<f16>();
                x02 = vec4<f16>();
                if (kw + 8u < K) {
                    w02 = vec4<f16>(w_load4(row + (kw + 8u) / 32u, (kw + 8u) % 32u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x02 = vec4<f16>(select(x[at + 2u], vec4<f32>(), past));
                }
                w03 = vec4<f16>();
                x03 = vec4<f16>();
                if (kw + 12u < K) {
                    w03 = vec4<f16>(w_load4(row + (kw + 12u) / 32u, (kw + 12u) % 32u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x03 = vec4<f16>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 32u;
                let e = kw % 32u;
let vr = w[b * 2u + (e >> 4u)];
let vs = w_d(b);

let vq = vr ^ vec4<u32>(0x80808080u);
let vd = vs;
let v0 = vd * (bytes1024(vq.x) - 1152.0);
let v1 = vd * (bytes1024(vq.y) - 1152.0);
let v2 = vd * (bytes1024(vq.z) - 1152.0);
let v3 = vd * (bytes1024(vq.w) - 1152.0);

                w00 = vec4<f16>(v0);
                x00 = vec4<f16>(x[at + 0u]);
                w01 = vec4<f16>(v1);
                x01 = vec4<f16>(x[at + 1u]);
                w02 = vec4<f16>(v2);
                x02 = vec4<f16>(x[at + 2u]);
                w03 = vec4<f16>(v3);
                x03 = vec4<f16>(x[at + 3u]);
            }
        }

    for (var k0 = 0u; k0 < K; k0 += 32u) {
        {
            let i = tid + 0u;
            let r = i % 64u;
            let k = (i / 64u) * 16u;

            let at0 = (r * 4u + ((k / 8u + 0u) ^ ((r >> 1u) & 3u))) * 2u;
            ws[at0 + 0u] = w00;
            xs[at0 + 0u] = x00;
            ws[at0 + 1u] = w01;
            xs[at0 + 1u] = x01;
            let at1 = (r * 4u + ((k / 8u + 1u) ^ ((r >> 1u) & 3u))) * 2u;
            ws[at1 + 0u] = w02;
            xs[at1 + 0u] = x02;
            ws[at1 + 1u] = w03;
            xs[at1 + 1u] = x03;
        }

        let k1 = k0 + 32u;
        if (k1 < K) {
        {
            let i = tid + 0u;
            let r = i % 64u;
            let k = (i / 64u) * 16u;

            let kw = k1 + k;
            let row = min(row0 + r, M - 1u) * BLOCKS;
            let at = (min(col0 + r, n_col - 1u) * LDX + kw) / 4u;
            if (RAGGED) {
                w00 = vec4<f16>();
                x00 = vec4<f16>();
                if (kw + 0u < K) {
                    w00 = vec4<f16>(w_load4(row + (kw + 0u) / 32u, (kw + 0u) % 32u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x00 = vec4<f16>(select(x[at + 0u], vec4<f32>(), past));
                }
                w01 = vec4<f16>();
                x01 = vec4<f16>();
                if (kw + 4u < K) {
                    w01 = vec4<f16>(w_load4(row + (kw + 4u) / 32u, (kw + 4u) % 32u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x01 = vec4<f16>(select(x[at + 1u], vec4<f32>(), past));
                }
                w02 = vec4<f16>();
                x02 = vec4<f16>();
                if (kw + 8u < K) {
                    w02 = vec4<f16>(w_load4(row + (kw + 8u) / 32u, (kw + 8u) % 32u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x02 = vec4<f16>(select(x[at + 2u], vec4<f32>(), past));
                }
                w03 = vec4<f16>();
                x03 = vec4<f16>();
                if (kw + 12u < K) {
                    w03 = vec4<f16>(w_load4(row + (kw + 12u) / 32u, (kw + 12u) % 32u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x03 = vec4<f16>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 32u;
                let e = kw % 32u;
let vr = w[b * 2u + (e >> 4u)];
let vs = w_d(b);

let vq = vr ^ vec4<u32>(0x80808080u);
let vd = vs;
let v0 = vd * (bytes1024(vq.x) - 1152.0);
let v1 = vd * (bytes1024(vq.y) - 1152.0);
let v2 = vd * (bytes1024(vq.z) - 1152.0);
let v3 = vd * (bytes1024(vq.w) - 1152.0);

                w00 = vec4<f16>(v0);
                x00 = vec4<f16>(x[at + 0u]);
                w01 = vec4<f16>(v1);
                x01 = vec4<f16>(x[at + 1u]);
                w02 = vec4<f16>(v2);
                x02 = vec4<f16>(x[at + 2u]);
                w03 = vec4<f16>(v3);
                x03 = vec4<f16>(x[at + 3u]);
            }
        }

        }
        workgroupBarrier();
        var h0_0 = vec2<f16>();
        var h0_1 = vec2<f16>();
        var h0_2 = vec2<f16>();
        var h0_3 = vec2<f16>();
        var h1_0 = vec2<f16>();
        var h1_1 = vec2<f16>();
        var h1_2 = vec2<f16>();
        var h1_3 = vec2<f16>();
        var h2_0 = vec2<f16>();
        var h2_1 = vec2<f16>();
        var h2_2 = vec2<f16>();
        var h2_3 = vec2<f16>();
        var h3_0 = vec2<f16>();
        var h3_1 = vec2<f16>();
        var h3_2 = vec2<f16>();
        var h3_3 = vec2<f16>();
        var h4_0 = vec2<f16>();
        var h4_1 = vec2<f16>();
        var h4_2 = vec2<f16>();
        var h4_3 = vec2<f16>();
        var h5_0 = vec2<f16>();
        var h5_1 = vec2<f16>();
        var h5_2 = vec2<f16>();
        var h5_3 = vec2<f16>();
        var h6_0 = vec2<f16>();
        var h6_1 = vec2<f16>();
        var h6_2 = vec2<f16>();
        var h6_3 = vec2<f16>();
        var h7_0 = vec2<f16>();
        var h7_1 = vec2<f16>();
        var h7_2 = vec2<f16>();
        var h7_3 = vec2<f16>();
        {
            let a00 = ws[((tr + 0u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a01 = ws[((tr + 0u) * 4u + (0u ^ swr)) * 2u + 1u];
            let a10 = ws[((tr + 8u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a11 = ws[((tr + 8u) * 4u + (0u ^ swr)) * 2u + 1u];
            let a20 = ws[((tr + 16u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a21 = ws[((tr + 16u) * 4u + (0u ^ swr)) * 2u + 1u];
            let a30 = ws[((tr + 24u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a31 = ws[((tr + 24u) * 4u + (0u ^ swr)) * 2u + 1u];
            let a40 = ws[((tr + 32u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a41 = ws[((tr + 32u) * 4u + (0u ^ swr)) * 2u + 1u];
            let a50 = ws[((tr + 40u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a51 = ws[((tr + 40u) * 4u + (0u ^ swr)) * 2u + 1u];
            let a60 = ws[((tr + 48u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a61 = ws[((tr + 48u) * 4u + (0u ^ swr)) * 2u + 1u];
            let a70 = ws[((tr + 56u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a71 = ws[((tr + 56u) * 4u + (0u ^ swr)) * 2u + 1u];
            {
            let b0 = xs[((tc + 0u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 0u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_0 = fma(a00.xy, b0.xy, h0_0);
            h1_0 = fma(a10.xy, b0.xy, h1_0);
            h2_0 = fma(a20.xy, b0.xy, h2_0);
            h3_0 = fma(a30.xy, b0.xy, h3_0);
            h4_0 = fma(a40.xy, b0.xy, h4_0);
            h5_0 = fma(a50.xy, b0.xy, h5_0);
            h6_0 = fma(a60.xy, b0.xy, h6_0);
            h7_0 = fma(a70.xy, b0.xy, h7_0);
            h0_0 = fma(a00.zw, b0.zw, h0_0);
            h1_0 = fma(a10.zw, b0.zw, h1_0);
            h2_0 = fma(a20.zw, b0.zw, h2_0);
            h3_0 = fma(a30.zw, b0.zw, h3_0);
            h4_0 = fma(a40.zw, b0.zw, h4_0);
            h5_0 = fma(a50.zw, b0.zw, h5_0);
            h6_0 = fma(a60.zw, b0.zw, h6_0);
            h7_0 = fma(a70.zw, b0.zw, h7_0);
            h0_0 = fma(a01.xy, b1.xy, h0_0);
            h1_0 = fma(a11.xy, b1.xy, h1_0);
            h2_0 = fma(a21.xy, b1.xy, h2_0);
            h3_0 = fma(a31.xy, b1.xy, h3_0);
            h4_0 = fma(a41.xy, b1.xy, h4_0);
            h5_0 = fma(a51.xy, b1.xy, h5_0);
            h6_0 = fma(a61.xy, b1.xy, h6_0);
            h7_0 = fma(a71.xy, b1.xy, h7_0);
            h0_0 = fma(a01.zw, b1.zw, h0_0);
            h1_0 = fma(a11.zw, b1.zw, h1_0);
            h2_0 = fma(a21.zw, b1.zw, h2_0);
            h3_0 = fma(a31.zw, b1.zw, h3_0);
            h4_0 = fma(a41.zw, b1.zw, h4_0);
            h5_0 = fma(a51.zw, b1.zw, h5_0);
            h6_0 = fma(a61.zw, b1.zw, h6_0);
            h7_0 = fma(a71.zw, b1.zw, h7_0);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 16u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_1 = fma(a00.xy, b0.xy, h0_1);
            h1_1 = fma(a10.xy, b0.xy, h1_1);
            h2_1 = fma(a20.xy, b0.xy, h2_1);
            h3_1 = fma(a30.xy, b0.xy, h3_1);
            h4_1 = fma(a40.xy, b0.xy, h4_1);
            h5_1 = fma(a50.xy, b0.xy, h5_1);
            h6_1 = fma(a60.xy, b0.xy, h6_1);
            h7_1 = fma(a70.xy, b0.xy, h7_1);
            h0_1 = fma(a00.zw, b0.zw, h0_1);
            h1_1 = fma(a10.zw, b0.zw, h1_1);
            h2_1 = fma(a20.zw, b0.zw, h2_1);
            h3_1 = fma(a30.zw, b0.zw, h3_1);
            h4_1 = fma(a40.zw, b0.zw, h4_1);
            h5_1 = fma(a50.zw, b0.zw, h5_1);
            h6_1 = fma(a60.zw, b0.zw, h6_1);
            h7_1 = fma(a70.zw, b0.zw, h7_1);
            h0_1 = fma(a01.xy, b1.xy, h0_1);
            h1_1 = fma(a11.xy, b1.xy, h1_1);
            h2_1 = fma(a21.xy, b1.xy, h2_1);
            h3_1 = fma(a31.xy, b1.xy, h3_1);
            h4_1 = fma(a41.xy, b1.xy, h4_1);
            h5_1 = fma(a51.xy, b1.xy, h5_1);
            h6_1 = fma(a61.xy, b1.xy, h6_1);
            h7_1 = fma(a71.xy, b1.xy, h7_1);
            h0_1 = fma(a01.zw, b1.zw, h0_1);
            h1_1 = fma(a11.zw, b1.zw, h1_1);
            h2_1 = fma(a21.zw, b1.zw, h2_1);
            h3_1 = fma(a31.zw, b1.zw, h3_1);
            h4_1 = fma(a41.zw, b1.zw, h4_1);
            h5_1 = fma(a51.zw, b1.zw, h5_1);
            h6_1 = fma(a61.zw, b1.zw, h6_1);
            h7_1 = fma(a71.zw, b1.zw, h7_1);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 32u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_2 = fma(a00.xy, b0.xy, h0_2);
            h1_2 = fma(a10.xy, b0.xy, h1_2);
            h2_2 = fma(a20.xy, b0.xy, h2_2);
            h3_2 = fma(a30.xy, b0.xy, h3_2);
            h4_2 = fma(a40.xy, b0.xy, h4_2);
            h5_2 = fma(a50.xy, b0.xy, h5_2);
            h6_2 = fma(a60.xy, b0.xy, h6_2);
            h7_2 = fma(a70.xy, b0.xy, h7_2);
            h0_2 = fma(a00.zw, b0.zw, h0_2);
            h1_2 = fma(a10.zw, b0.zw, h1_2);
            h2_2 = fma(a20.zw, b0.zw, h2_2);
            h3_2 = fma(a30.zw, b0.zw, h3_2);
            h4_2 = fma(a40.zw, b0.zw, h4_2);
            h5_2 = fma(a50.zw, b0.zw, h5_2);
            h6_2 = fma(a60.zw, b0.zw, h6_2);
            h7_2 = fma(a70.zw, b0.zw, h7_2);
            h0_2 = fma(a01.xy, b1.xy, h0_2);
            h1_2 = fma(a11.xy, b1.xy, h1_2);
            h2_2 = fma(a21.xy, b1.xy, h2_2);
            h3_2 = fma(a31.xy, b1.xy, h3_2);
            h4_2 = fma(a41.xy, b1.xy, h4_2);
            h5_2 = fma(a51.xy, b1.xy, h5_2);
            h6_2 = fma(a61.xy, b1.xy, h6_2);
            h7_2 = fma(a71.xy, b1.xy, h7_2);
            h0_2 = fma(a01.zw, b1.zw, h0_2);
            h1_2 = fma(a11.zw, b1.zw, h1_2);
            h2_2 = fma(a21.zw, b1.zw, h2_2);
            h3_2 = fma(a31.zw, b1.zw, h3_2);
            h4_2 = fma(a41.zw, b1.zw, h4_2);
            h5_2 = fma(a51.zw, b1.zw, h5_2);
            h6_2 = fma(a61.zw, b1.zw, h6_2);
            h7_2 = fma(a71.zw, b1.zw, h7_2);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 48u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_3 = fma(a00.xy, b0.xy, h0_3);
            h1_3 = fma(a10.xy, b0.xy, h1_3);
            h2_3 = fma(a20.xy, b0.xy, h2_3);
            h3_3 = fma(a30.xy, b0.xy, h3_3);
            h4_3 = fma(a40.xy, b0.xy, h4_3);
            h5_3 = fma(a50.xy, b0.xy, h5_3);
            h6_3 = fma(a60.xy, b0.xy, h6_3);
            h7_3 = fma(a70.xy, b0.xy, h7_3);
            h0_3 = fma(a00.zw, b0.zw, h0_3);
            h1_3 = fma(a10.zw, b0.zw, h1_3);
            h2_3 = fma(a20.zw, b0.zw, h2_3);
            h3_3 = fma(a30.zw, b0.zw, h3_3);
            h4_3 = fma(a40.zw, b0.zw, h4_3);
            h5_3 = fma(a50.zw, b0.zw, h5_3);
            h6_3 = fma(a60.zw, b0.zw, h6_3);
            h7_3 = fma(a70.zw, b0.zw, h7_3);
            h0_3 = fma(a01.xy, b1.xy, h0_3);
            h1_3 = fma(a11.xy, b1.xy, h1_3);
            h2_3 = fma(a21.xy, b1.xy, h2_3);
            h3_3 = fma(a31.xy, b1.xy, h3_3);
            h4_3 = fma(a41.xy, b1.xy, h4_3);
            h5_3 = fma(a51.xy, b1.xy, h5_3);
            h6_3 = fma(a61.xy, b1.xy, h6_3);
            h7_3 = fma(a71.xy, b1.xy, h7_3);
            h0_3 = fma(a01.zw, b1.zw, h0_3);
            h1_3 = fma(a11.zw, b1.zw, h1_3);
            h2_3 = fma(a21.zw, b1.zw, h2_3);
            h3_3 = fma(a31.zw, b1.zw, h3_3);
            h4_3 = fma(a41.zw, b1.zw, h4_3);
            h5_3 = fma(a51.zw, b1.zw, h5_3);
            h6_3 = fma(a61.zw, b1.zw, h6_3);
            h7_3 = fma(a71.zw, b1.zw, h7_3);
            }

        }
        {
            let a00 = ws[((tr + 0u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a01 = ws[((tr + 0u) * 4u + (1u ^ swr)) * 2u + 1u];
            let a10 = ws[((tr + 8u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a11 = ws[((tr + 8u) * 4u + (1u ^ swr)) * 2u + 1u];
            let a20 = ws[((tr + 16u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a21 = ws[((tr + 16u) * 4u + (1u ^ swr)) * 2u + 1u];
            let a30 = ws[((tr + 24u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a31 = ws[((tr + 24u) * 4u + (1u ^ swr)) * 2u + 1u];
            let a40 = ws[((tr + 32u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a41 = ws[((tr + 32u) * 4u + (1u ^ swr)) * 2u + 1u];
            let a50 = ws[((tr + 40u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a51 = ws[((tr + 40u) * 4u + (1u ^ swr)) * 2u + 1u];
            let a60 = ws[((tr + 48u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a61 = ws[((tr + 48u) * 4u + (1u ^ swr)) * 2u + 1u];
            let a70 = ws[((tr + 56u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a71 = ws[((tr + 56u) * 4u + (1u ^ swr)) * 2u + 1u];
            {
            let b0 = xs[((tc + 0u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 0u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_0 = fma(a00.xy, b0.xy, h0_0);
            h1_0 = fma(a10.xy, b0.xy, h1_0);
            h2_0 = fma(a20.xy, b0.xy, h2_0);
            h3_0 = fma(a30.xy, b0.xy, h3_0);
            h4_0 = fma(a40.xy, b0.xy, h4_0);
            h5_0 = fma(a50.xy, b0.xy, h5_0);
            h6_0 = fma(a60.xy, b0.xy, h6_0);
            h7_0 = fma(a70.xy, b0.xy, h7_0);
            h0_0 = fma(a00.zw, b0.zw, h0_0);
            h1_0 = fma(a10.zw, b0.zw, h1_0);
            h2_0 = fma(a20.zw, b0.zw, h2_0);
            h3_0 = fma(a30.zw, b0.zw, h3_0);
            h4_0 = fma(a40.zw, b0.zw, h4_0);
            h5_0 = fma(a50.zw, b0.zw, h5_0);
            h6_0 = fma(a60.zw, b0.zw, h6_0);
            h7_0 = fma(a70.zw, b0.zw, h7_0);
            h0_0 = fma(a01.xy, b1.xy, h0_0);
            h1_0 = fma(a11.xy, b1.xy, h1_0);
            h2_0 = fma(a21.xy, b1.xy, h2_0);
            h3_0 = fma(a31.xy, b1.xy, h3_0);
            h4_0 = fma(a41.xy, b1.xy, h4_0);
            h5_0 = fma(a51.xy, b1.xy, h5_0);
            h6_0 = fma(a61.xy, b1.xy, h6_0);
            h7_0 = fma(a71.xy, b1.xy, h7_0);
            h0_0 = fma(a01.zw, b1.zw, h0_0);
            h1_0 = fma(a11.zw, b1.zw, h1_0);
            h2_0 = fma(a21.zw, b1.zw, h2_0);
            h3_0 = fma(a31.zw, b1.zw, h3_0);
            h4_0 = fma(a41.zw, b1.zw, h4_0);
            h5_0 = fma(a51.zw, b1.zw, h5_0);
            h6_0 = fma(a61.zw, b1.zw, h6_0);
            h7_0 = fma(a71.zw, b1.zw, h7_0);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 16u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_1 = fma(a00.xy, b0.xy, h0_1);
            h1_1 = fma(a10.xy, b0.xy, h1_1);
            h2_1 = fma(a20.xy, b0.xy, h2_1);
            h3_1 = fma(a30.xy, b0.xy, h3_1);
            h4_1 = fma(a40.xy, b0.xy, h4_1);
            h5_1 = fma(a50.xy, b0.xy, h5_1);
            h6_1 = fma(a60.xy, b0.xy, h6_1);
            h7_1 = fma(a70.xy, b0.xy, h7_1);
            h0_1 = fma(a00.zw, b0.zw, h0_1);
            h1_1 = fma(a10.zw, b0.zw, h1_1);
            h2_1 = fma(a20.zw, b0.zw, h2_1);
            h3_1 = fma(a30.zw, b0.zw, h3_1);
            h4_1 = fma(a40.zw, b0.zw, h4_1);
            h5_1 = fma(a50.zw, b0.zw, h5_1);
            h6_1 = fma(a60.zw, b0.zw, h6_1);
            h7_1 = fma(a70.zw, b0.zw, h7_1);
            h0_1 = fma(a01.xy, b1.xy, h0_1);
            h1_1 = fma(a11.xy, b1.xy, h1_1);
            h2_1 = fma(a21.xy, b1.xy, h2_1);
            h3_1 = fma(a31.xy, b1.xy, h3_1);
            h4_1 = fma(a41.xy, b1.xy, h4_1);
            h5_1 = fma(a51.xy, b1.xy, h5_1);
            h6_1 = fma(a61.xy, b1.xy, h6_1);
            h7_1 = fma(a71.xy, b1.xy, h7_1);
            h0_1 = fma(a01.zw, b1.zw, h0_1);
            h1_1 = fma(a11.zw, b1.zw, h1_1);
            h2_1 = fma(a21.zw, b1.zw, h2_1);
            h3_1 = fma(a31.zw, b1.zw, h3_1);
            h4_1 = fma(a41.zw, b1.zw, h4_1);
            h5_1 = fma(a51.zw, b1.zw, h5_1);
            h6_1 = fma(a61.zw, b1.zw, h6_1);
            h7_1 = fma(a71.zw, b1.zw, h7_1);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 32u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_2 = fma(a00.xy, b0.xy, h0_2);
            h1_2 = fma(a10.xy, b0.xy, h1_2);
            h2_2 = fma(a20.xy, b0.xy, h2_2);
            h3_2 = fma(a30.xy, b0.xy, h3_2);
            h4_2 = fma(a40.xy, b0.xy, h4_2);
            h5_2 = fma(a50.xy, b0.xy, h5_2);
            h6_2 = fma(a60.xy, b0.xy, h6_2);
            h7_2 = fma(a70.xy, b0.xy, h7_2);
            h0_2 = fma(a00.zw, b0.zw, h0_2);
            h1_2 = fma(a10.zw, b0.zw, h1_2);
            h2_2 = fma(a20.zw, b0.zw, h2_2);
            h3_2 = fma(a30.zw, b0.zw, h3_2);
            h4_2 = fma(a40.zw, b0.zw, h4_2);
            h5_2 = fma(a50.zw, b0.zw, h5_2);
            h6_2 = fma(a60.zw, b0.zw, h6_2);
            h7_2 = fma(a70.zw, b0.zw, h7_2);
            h0_2 = fma(a01.xy, b1.xy, h0_2);
            h1_2 = fma(a11.xy, b1.xy, h1_2);
            h2_2 = fma(a21.xy, b1.xy, h2_2);
            h3_2 = fma(a31.xy, b1.xy, h3_2);
            h4_2 = fma(a41.xy, b1.xy, h4_2);
            h5_2 = fma(a51.xy, b1.xy, h5_2);
            h6_2 = fma(a61.xy, b1.xy, h6_2);
            h7_2 = fma(a71.xy, b1.xy, h7_2);
            h0_2 = fma(a01.zw, b1.zw, h0_2);
            h1_2 = fma(a11.zw, b1.zw, h1_2);
            h2_2 = fma(a21.zw, b1.zw, h2_2);
            h3_2 = fma(a31.zw, b1.zw, h3_2);
            h4_2 = fma(a41.zw, b1.zw, h4_2);
            h5_2 = fma(a51.zw, b1.zw, h5_2);
            h6_2 = fma(a61.zw, b1.zw, h6_2);
            h7_2 = fma(a71.zw, b1.zw, h7_2);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 48u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_3 = fma(a00.xy, b0.xy, h0_3);
            h1_3 = fma(a10.xy, b0.xy, h1_3);
            h2_3 = fma(a20.xy, b0.xy, h2_3);
            h3_3 = fma(a30.xy, b0.xy, h3_3);
            h4_3 = fma(a40.xy, b0.xy, h4_3);
            h5_3 = fma(a50.xy, b0.xy, h5_3);
            h6_3 = fma(a60.xy, b0.xy, h6_3);
            h7_3 = fma(a70.xy, b0.xy, h7_3);
            h0_3 = fma(a00.zw, b0.zw, h0_3);
            h1_3 = fma(a10.zw, b0.zw, h1_3);
            h2_3 = fma(a20.zw, b0.zw, h2_3);
            h3_3 = fma(a30.zw, b0.zw, h3_3);
            h4_3 = fma(a40.zw, b0.zw, h4_3);
            h5_3 = fma(a50.zw, b0.zw, h5_3);
            h6_3 = fma(a60.zw, b0.zw, h6_3);
            h7_3 = fma(a70.zw, b0.zw, h7_3);
            h0_3 = fma(a01.xy, b1.xy, h0_3);
            h1_3 = fma(a11.xy, b1.xy, h1_3);
            h2_3 = fma(a21.xy, b1.xy, h2_3);
            h3_3 = fma(a31.xy, b1.xy, h3_3);
            h4_3 = fma(a41.xy, b1.xy, h4_3);
            h5_3 = fma(a51.xy, b1.xy, h5_3);
            h6_3 = fma(a61.xy, b1.xy, h6_3);
            h7_3 = fma(a71.xy, b1.xy, h7_3);
            h0_3 = fma(a01.zw, b1.zw, h0_3);
            h1_3 = fma(a11.zw, b1.zw, h1_3);
            h2_3 = fma(a21.zw, b1.zw, h2_3);
            h3_3 = fma(a31.zw, b1.zw, h3_3);
            h4_3 = fma(a41.zw, b1.zw, h4_3);
            h5_3 = fma(a51.zw, b1.zw, h5_3);
            h6_3 = fma(a61.zw, b1.zw, h6_3);
            h7_3 = fma(a71.zw, b1.zw, h7_3);
            }

        }
        {
            let a00 = ws[((tr + 0u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a01 = ws[((tr + 0u) * 4u + (2u ^ swr)) * 2u + 1u];
            let a10 = ws[((tr + 8u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a11 = ws[((tr + 8u) * 4u + (2u ^ swr)) * 2u + 1u];
            let a20 = ws[((tr + 16u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a21 = ws[((tr + 16u) * 4u + (2u ^ swr)) * 2u + 1u];
            let a30 = ws[((tr + 24u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a31 = ws[((tr + 24u) * 4u + (2u ^ swr)) * 2u + 1u];
            let a40 = ws[((tr + 32u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a41 = ws[((tr + 32u) * 4u + (2u ^ swr)) * 2u + 1u];
            let a50 = ws[((tr + 40u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a51 = ws[((tr + 40u) * 4u + (2u ^ swr)) * 2u + 1u];
            let a60 = ws[((tr + 48u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a61 = ws[((tr + 48u) * 4u + (2u ^ swr)) * 2u + 1u];
            let a70 = ws[((tr + 56u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a71 = ws[((tr + 56u) * 4u + (2u ^ swr)) * 2u + 1u];
            {
            let b0 = xs[((tc + 0u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 0u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_0 = fma(a00.xy, b0.xy, h0_0);
            h1_0 = fma(a10.xy, b0.xy, h1_0);
            h2_0 = fma(a20.xy, b0.xy, h2_0);
            h3_0 = fma(a30.xy, b0.xy, h3_0);
            h4_0 = fma(a40.xy, b0.xy, h4_0);
            h5_0 = fma(a50.xy, b0.xy, h5_0);
            h6_0 = fma(a60.xy, b0.xy, h6_0);
            h7_0 = fma(a70.xy, b0.xy, h7_0);
            h0_0 = fma(a00.zw, b0.zw, h0_0);
            h1_0 = fma(a10.zw, b0.zw, h1_0);
            h2_0 = fma(a20.zw, b0.zw, h2_0);
            h3_0 = fma(a30.zw, b0.zw, h3_0);
            h4_0 = fma(a40.zw, b0.zw, h4_0);
            h5_0 = fma(a50.zw, b0.zw, h5_0);
            h6_0 = fma(a60.zw, b0.zw, h6_0);
            h7_0 = fma(a70.zw, b0.zw, h7_0);
            h0_0 = fma(a01.xy, b1.xy, h0_0);
            h1_0 = fma(a11.xy, b1.xy, h1_0);
            h2_0 = fma(a21.xy, b1.xy, h2_0);
            h3_0 = fma(a31.xy, b1.xy, h3_0);
            h4_0 = fma(a41.xy, b1.xy, h4_0);
            h5_0 = fma(a51.xy, b1.xy, h5_0);
            h6_0 = fma(a61.xy, b1.xy, h6_0);
            h7_0 = fma(a71.xy, b1.xy, h7_0);
            h0_0 = fma(a01.zw, b1.zw, h0_0);
            h1_0 = fma(a11.zw, b1.zw, h1_0);
            h2_0 = fma(a21.zw, b1.zw, h2_0);
            h3_0 = fma(a31.zw, b1.zw, h3_0);
            h4_0 = fma(a41.zw, b1.zw, h4_0);
            h5_0 = fma(a51.zw, b1.zw, h5_0);
            h6_0 = fma(a61.zw, b1.zw, h6_0);
            h7_0 = fma(a71.zw, b1.zw, h7_0);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 16u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_1 = fma(a00.xy, b0.xy, h0_1);
            h1_1 = fma(a10.xy, b0.xy, h1_1);
            h2_1 = fma(a20.xy, b0.xy, h2_1);
            h3_1 = fma(a30.xy, b0.xy, h3_1);
            h4_1 = fma(a40.xy, b0.xy, h4_1);
            h5_1 = fma(a50.xy, b0.xy, h5_1);
            h6_1 = fma(a60.xy, b0.xy, h6_1);
            h7_1 = fma(a70.xy, b0.xy, h7_1);
            h0_1 = fma(a00.zw, b0.zw, h0_1);
            h1_1 = fma(a10.zw, b0.zw, h1_1);
            h2_1 = fma(a20.zw, b0.zw, h2_1);
            h3_1 = fma(a30.zw, b0.zw, h3_1);
            h4_1 = fma(a40.zw, b0.zw, h4_1);
            h5_1 = fma(a50.zw, b0.zw, h5_1);
            h6_1 = fma(a60.zw, b0.zw, h6_1);
            h7_1 = fma(a70.zw, b0.zw, h7_1);
            h0_1 = fma(a01.xy, b1.xy, h0_1);
            h1_1 = fma(a11.xy, b1.xy, h1_1);
            h2_1 = fma(a21.xy, b1.xy, h2_1);
            h3_1 = fma(a31.xy, b1.xy, h3_1);
            h4_1 = fma(a41.xy, b1.xy, h4_1);
            h5_1 = fma(a51.xy, b1.xy, h5_1);
            h6_1 = fma(a61.xy, b1.xy, h6_1);
            h7_1 = fma(a71.xy, b1.xy, h7_1);
            h0_1 = fma(a01.zw, b1.zw, h0_1);
            h1_1 = fma(a11.zw, b1.zw, h1_1);
            h2_1 = fma(a21.zw, b1.zw, h2_1);
            h3_1 = fma(a31.zw, b1.zw, h3_1);
            h4_1 = fma(a41.zw, b1.zw, h4_1);
            h5_1 = fma(a51.zw, b1.zw, h5_1);
            h6_1 = fma(a61.zw, b1.zw, h6_1);
            h7_1 = fma(a71.zw, b1.zw, h7_1);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 32u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_2 = fma(a00.xy, b0.xy, h0_2);
            h1_2 = fma(a10.xy, b0.xy, h1_2);
            h2_2 = fma(a20.xy, b0.xy, h2_2);
            h3_2 = fma(a30.xy, b0.xy, h3_2);
            h4_2 = fma(a40.xy, b0.xy, h4_2);
            h5_2 = fma(a50.xy, b0.xy, h5_2);
            h6_2 = fma(a60.xy, b0.xy, h6_2);
            h7_2 = fma(a70.xy, b0.xy, h7_2);
            h0_2 = fma(a00.zw, b0.zw, h0_2);
            h1_2 = fma(a10.zw, b0.zw, h1_2);
            h2_2 = fma(a20.zw, b0.zw, h2_2);
            h3_2 = fma(a30.zw, b0.zw, h3_2);
            h4_2 = fma(a40.zw, b0.zw, h4_2);
            h5_2 = fma(a50.zw, b0.zw, h5_2);
            h6_2 = fma(a60.zw, b0.zw, h6_2);
            h7_2 = fma(a70.zw, b0.zw, h7_2);
            h0_2 = fma(a01.xy, b1.xy, h0_2);
            h1_2 = fma(a11.xy, b1.xy, h1_2);
            h2_2 = fma(a21.xy, b1.xy, h2_2);
            h3_2 = fma(a31.xy, b1.xy, h3_2);
            h4_2 = fma(a41.xy, b1.xy, h4_2);
            h5_2 = fma(a51.xy, b1.xy, h5_2);
            h6_2 = fma(a61.xy, b1.xy, h6_2);
            h7_2 = fma(a71.xy, b1.xy, h7_2);
            h0_2 = fma(a01.zw, b1.zw, h0_2);
            h1_2 = fma(a11.zw, b1.zw, h1_2);
            h2_2 = fma(a21.zw, b1.zw, h2_2);
            h3_2 = fma(a31.zw, b1.zw, h3_2);
            h4_2 = fma(a41.zw, b1.zw, h4_2);
            h5_2 = fma(a51.zw, b1.zw, h5_2);
            h6_2 = fma(a61.zw, b1.zw, h6_2);
            h7_2 = fma(a71.zw, b1.zw, h7_2);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 48u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_3 = fma(a00.xy, b0.xy, h0_3);
            h1_3 = fma(a10.xy, b0.xy, h1_3);
            h2_3 = fma(a20.xy, b0.xy, h2_3);
            h3_3 = fma(a30.xy, b0.xy, h3_3);
            h4_3 = fma(a40.xy, b0.xy, h4_3);
            h5_3 = fma(a50.xy, b0.xy, h5_3);
            h6_3 = fma(a60.xy, b0.xy, h6_3);
            h7_3 = fma(a70.xy, b0.xy, h7_3);
            h0_3 = fma(a00.zw, b0.zw, h0_3);
            h1_3 = fma(a10.zw, b0.zw, h1_3);
            h2_3 = fma(a20.zw, b0.zw, h2_3);
            h3_3 = fma(a30.zw, b0.zw, h3_3);
            h4_3 = fma(a40.zw, b0.zw, h4_3);
            h5_3 = fma(a50.zw, b0.zw, h5_3);
            h6_3 = fma(a60.zw, b0.zw, h6_3);
            h7_3 = fma(a70.zw, b0.zw, h7_3);
            h0_3 = fma(a01.xy, b1.xy, h0_3);
            h1_3 = fma(a11.xy, b1.xy, h1_3);
            h2_3 = fma(a21.xy, b1.xy, h2_3);
            h3_3 = fma(a31.xy, b1.xy, h3_3);
            h4_3 = fma(a41.xy, b1.xy, h4_3);
            h5_3 = fma(a51.xy, b1.xy, h5_3);
            h6_3 = fma(a61.xy, b1.xy, h6_3);
            h7_3 = fma(a71.xy, b1.xy, h7_3);
            h0_3 = fma(a01.zw, b1.zw, h0_3);
            h1_3 = fma(a11.zw, b1.zw, h1_3);
            h2_3 = fma(a21.zw, b1.zw, h2_3);
            h3_3 = fma(a31.zw, b1.zw, h3_3);
            h4_3 = fma(a41.zw, b1.zw, h4_3);
            h5_3 = fma(a51.zw, b1.zw, h5_3);
            h6_3 = fma(a61.zw, b1.zw, h6_3);
            h7_3 = fma(a71.zw, b1.zw, h7_3);
            }

        }
        {
            let a00 = ws[((tr + 0u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a01 = ws[((tr + 0u) * 4u + (3u ^ swr)) * 2u + 1u];
            let a10 = ws[((tr + 8u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a11 = ws[((tr + 8u) * 4u + (3u ^ swr)) * 2u + 1u];
            let a20 = ws[((tr + 16u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a21 = ws[((tr + 16u) * 4u + (3u ^ swr)) * 2u + 1u];
            let a30 = ws[((tr + 24u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a31 = ws[((tr + 24u) * 4u + (3u ^ swr)) * 2u + 1u];
            let a40 = ws[((tr + 32u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a41 = ws[((tr + 32u) * 4u + (3u ^ swr)) * 2u + 1u];
            let a50 = ws[((tr + 40u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a51 = ws[((tr + 40u) * 4u + (3u ^ swr)) * 2u + 1u];
            let a60 = ws[((tr + 48u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a61 = ws[((tr + 48u) * 4u + (3u ^ swr)) * 2u + 1u];
            let a70 = ws[((tr + 56u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a71 = ws[((tr + 56u) * 4u + (3u ^ swr)) * 2u + 1u];
            {
            let b0 = xs[((tc + 0u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 0u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_0 = fma(a00.xy, b0.xy, h0_0);
            h1_0 = fma(a10.xy, b0.xy, h1_0);
            h2_0 = fma(a20.xy, b0.xy, h2_0);
            h3_0 = fma(a30.xy, b0.xy, h3_0);
            h4_0 = fma(a40.xy, b0.xy, h4_0);
            h5_0 = fma(a50.xy, b0.xy, h5_0);
            h6_0 = fma(a60.xy, b0.xy, h6_0);
            h7_0 = fma(a70.xy, b0.xy, h7_0);
            h0_0 = fma(a00.zw, b0.zw, h0_0);
            h1_0 = fma(a10.zw, b0.zw, h1_0);
            h2_0 = fma(a20.zw, b0.zw, h2_0);
            h3_0 = fma(a30.zw, b0.zw, h3_0);
            h4_0 = fma(a40.zw, b0.zw, h4_0);
            h5_0 = fma(a50.zw, b0.zw, h5_0);
            h6_0 = fma(a60.zw, b0.zw, h6_0);
            h7_0 = fma(a70.zw, b0.zw, h7_0);
            h0_0 = fma(a01.xy, b1.xy, h0_0);
            h1_0 = fma(a11.xy, b1.xy, h1_0);
            h2_0 = fma(a21.xy, b1.xy, h2_0);
            h3_0 = fma(a31.xy, b1.xy, h3_0);
            h4_0 = fma(a41.xy, b1.xy, h4_0);
            h5_0 = fma(a51.xy, b1.xy, h5_0);
            h6_0 = fma(a61.xy, b1.xy, h6_0);
            h7_0 = fma(a71.xy, b1.xy, h7_0);
            h0_0 = fma(a01.zw, b1.zw, h0_0);
            h1_0 = fma(a11.zw, b1.zw, h1_0);
            h2_0 = fma(a21.zw, b1.zw, h2_0);
            h3_0 = fma(a31.zw, b1.zw, h3_0);
            h4_0 = fma(a41.zw, b1.zw, h4_0);
            h5_0 = fma(a51.zw, b1.zw, h5_0);
            h6_0 = fma(a61.zw, b1.zw, h6_0);
            h7_0 = fma(a71.zw, b1.zw, h7_0);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 16u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_1 = fma(a00.xy, b0.xy, h0_1);
            h1_1 = fma(a10.xy, b0.xy, h1_1);
            h2_1 = fma(a20.xy, b0.xy, h2_1);
            h3_1 = fma(a30.xy, b0.xy, h3_1);
            h4_1 = fma(a40.xy, b0.xy, h4_1);
            h5_1 = fma(a50.xy, b0.xy, h5_1);
            h6_1 = fma(a60.xy, b0.xy, h6_1);
            h7_1 = fma(a70.xy, b0.xy, h7_1);
            h0_1 = fma(a00.zw, b0.zw, h0_1);
            h1_1 = fma(a10.zw, b0.zw, h1_1);
            h2_1 = fma(a20.zw, b0.zw, h2_1);
            h3_1 = fma(a30.zw, b0.zw, h3_1);
            h4_1 = fma(a40.zw, b0.zw, h4_1);
            h5_1 = fma(a50.zw, b0.zw, h5_1);
            h6_1 = fma(a60.zw, b0.zw, h6_1);
            h7_1 = fma(a70.zw, b0.zw, h7_1);
            h0_1 = fma(a01.xy, b1.xy, h0_1);
            h1_1 = fma(a11.xy, b1.xy, h1_1);
            h2_1 = fma(a21.xy, b1.xy, h2_1);
            h3_1 = fma(a31.xy, b1.xy, h3_1);
            h4_1 = fma(a41.xy, b1.xy, h4_1);
            h5_1 = fma(a51.xy, b1.xy, h5_1);
            h6_1 = fma(a61.xy, b1.xy, h6_1);
            h7_1 = fma(a71.xy, b1.xy, h7_1);
            h0_1 = fma(a01.zw, b1.zw, h0_1);
            h1_1 = fma(a11.zw, b1.zw, h1_1);
            h2_1 = fma(a21.zw, b1.zw, h2_1);
            h3_1 = fma(a31.zw, b1.zw, h3_1);
            h4_1 = fma(a41.zw, b1.zw, h4_1);
            h5_1 = fma(a51.zw, b1.zw, h5_1);
            h6_1 = fma(a61.zw, b1.zw, h6_1);
            h7_1 = fma(a71.zw, b1.zw, h7_1);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 32u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_2 = fma(a00.xy, b0.xy, h0_2);
            h1_2 = fma(a10.xy, b0.xy, h1_2);
            h2_2 = fma(a20.xy, b0.xy, h2_2);
            h3_2 = fma(a30.xy, b0.xy, h3_2);
            h4_2 = fma(a40.xy, b0.xy, h4_2);
            h5_2 = fma(a50.xy, b0.xy, h5_2);
            h6_2 = fma(a60.xy, b0.xy, h6_2);
            h7_2 = fma(a70.xy, b0.xy, h7_2);
            h0_2 = fma(a00.zw, b0.zw, h0_2);
            h1_2 = fma(a10.zw, b0.zw, h1_2);
            h2_2 = fma(a20.zw, b0.zw, h2_2);
            h3_2 = fma(a30.zw, b0.zw, h3_2);
            h4_2 = fma(a40.zw, b0.zw, h4_2);
            h5_2 = fma(a50.zw, b0.zw, h5_2);
            h6_2 = fma(a60.zw, b0.zw, h6_2);
            h7_2 = fma(a70.zw, b0.zw, h7_2);
            h0_2 = fma(a01.xy, b1.xy, h0_2);
            h1_2 = fma(a11.xy, b1.xy, h1_2);
            h2_2 = fma(a21.xy, b1.xy, h2_2);
            h3_2 = fma(a31.xy, b1.xy, h3_2);
            h4_2 = fma(a41.xy, b1.xy, h4_2);
            h5_2 = fma(a51.xy, b1.xy, h5_2);
            h6_2 = fma(a61.xy, b1.xy, h6_2);
            h7_2 = fma(a71.xy, b1.xy, h7_2);
            h0_2 = fma(a01.zw, b1.zw, h0_2);
            h1_2 = fma(a11.zw, b1.zw, h1_2);
            h2_2 = fma(a21.zw, b1.zw, h2_2);
            h3_2 = fma(a31.zw, b1.zw, h3_2);
            h4_2 = fma(a41.zw, b1.zw, h4_2);
            h5_2 = fma(a51.zw, b1.zw, h5_2);
            h6_2 = fma(a61.zw, b1.zw, h6_2);
            h7_2 = fma(a71.zw, b1.zw, h7_2);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 48u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_3 = fma(a00.xy, b0.xy, h0_3);
            h1_3 = fma(a10.xy, b0.xy, h1_3);
            h2_3 = fma(a20.xy, b0.xy, h2_3);
            h3_3 = fma(a30.xy, b0.xy, h3_3);
            h4_3 = fma(a40.xy, b0.xy, h4_3);
            h5_3 = fma(a50.xy, b0.xy, h5_3);
            h6_3 = fma(a60.xy, b0.xy, h6_3);
            h7_3 = fma(a70.xy, b0.xy, h7_3);
            h0_3 = fma(a00.zw, b0.zw, h0_3);
            h1_3 = fma(a10.zw, b0.zw, h1_3);
            h2_3 = fma(a20.zw, b0.zw, h2_3);
            h3_3 = fma(a30.zw, b0.zw, h3_3);
            h4_3 = fma(a40.zw, b0.zw, h4_3);
            h5_3 = fma(a50.zw, b0.zw, h5_3);
            h6_3 = fma(a60.zw, b0.zw, h6_3);
            h7_3 = fma(a70.zw, b0.zw, h7_3);
            h0_3 = fma(a01.xy, b1.xy, h0_3);
            h1_3 = fma(a11.xy, b1.xy, h1_3);
            h2_3 = fma(a21.xy, b1.xy, h2_3);
            h3_3 = fma(a31.xy, b1.xy, h3_3);
            h4_3 = fma(a41.xy, b1.xy, h4_3);
            h5_3 = fma(a51.xy, b1.xy, h5_3);
            h6_3 = fma(a61.xy, b1.xy, h6_3);
            h7_3 = fma(a71.xy, b1.xy, h7_3);
            h0_3 = fma(a01.zw, b1.zw, h0_3);
            h1_3 = fma(a11.zw, b1.zw, h1_3);
            h2_3 = fma(a21.zw, b1.zw, h2_3);
            h3_3 = fma(a31.zw, b1.zw, h3_3);
            h4_3 = fma(a41.zw, b1.zw, h4_3);
            h5_3 = fma(a51.zw, b1.zw, h5_3);
            h6_3 = fma(a61.zw, b1.zw, h6_3);
            h7_3 = fma(a71.zw, b1.zw, h7_3);
            }

        }
        c0_0 += f32(h0_0.x) + f32(h0_0.y);
        c0_1 += f32(h0_1.x) + f32(h0_1.y);
        c0_2 += f32(h0_2.x) + f32(h0_2.y);
        c0_3 += f32(h0_3.x) + f32(h0_3.y);
        c1_0 += f32(h1_0.x) + f32(h1_0.y);
        c1_1 += f32(h1_1.x) + f32(h1_1.y);
        c1_2 += f32(h1_2.x) + f32(h1_2.y);
        c1_3 += f32(h1_3.x) + f32(h1_3.y);
        c2_0 += f32(h2_0.x) + f32(h2_0.y);
        c2_1 += f32(h2_1.x) + f32(h2_1.y);
        c2_2 += f32(h2_2.x) + f32(h2_2.y);
        c2_3 += f32(h2_3.x) + f32(h2_3.y);
        c3_0 += f32(h3_0.x) + f32(h3_0.y);
        c3_1 += f32(h3_1.x) + f32(h3_1.y);
        c3_2 += f32(h3_2.x) + f32(h3_2.y);
        c3_3 += f32(h3_3.x) + f32(h3_3.y);
        c4_0 += f32(h4_0.x) + f32(h4_0.y);
        c4_1 += f32(h4_1.x) + f32(h4_1.y);
        c4_2 += f32(h4_2.x) + f32(h4_2.y);
        c4_3 += f32(h4_3.x) + f32(h4_3.y);
        c5_0 += f32(h5_0.x) + f32(h5_0.y);
        c5_1 += f32(h5_1.x) + f32(h5_1.y);
        c5_2 += f32(h5_2.x) + f32(h5_2.y);
        c5_3 += f32(h5_3.x) + f32(h5_3.y);
        c6_0 += f32(h6_0.x) + f32(h6_0.y);
        c6_1 += f32(h6_1.x) + f32(h6_1.y);
        c6_2 += f32(h6_2.x) + f32(h6_2.y);
        c6_3 += f32(h6_3.x) + f32(h6_3.y);
        c7_0 += f32(h7_0.x) + f32(h7_0.y);
        c7_1 += f32(h7_1.x) + f32(h7_1.y);
        c7_2 += f32(h7_2.x) + f32(h7_2.y);
        c7_3 += f32(h7_3.x) + f32(h7_3.y);
        workgroupBarrier();
    }
    if (row0 + tr + 0u < M) {
        let row = row0 + tr + 0u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c0_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c0_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c0_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c0_3 * scale + bias;
        }
    }
    if (row0 + tr + 8u < M) {
        let row = row0 + tr + 8u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c1_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c1_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c1_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c1_3 * scale + bias;
        }
    }
    if (row0 + tr + 16u < M) {
        let row = row0 + tr + 16u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c2_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c2_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c2_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c2_3 * scale + bias;
        }
    }
    if (row0 + tr + 24u < M) {
        let row = row0 + tr + 24u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c3_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c3_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c3_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c3_3 * scale + bias;
        }
    }
    if (row0 + tr + 32u < M) {
        let row = row0 + tr + 32u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c4_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c4_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c4_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c4_3 * scale + bias;
        }
    }
    if (row0 + tr + 40u < M) {
        let row = row0 + tr + 40u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c5_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c5_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c5_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c5_3 * scale + bias;
        }
    }
    if (row0 + tr + 48u < M) {
        let row = row0 + tr + 48u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c6_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c6_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c6_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c6_3 * scale + bias;
        }
    }
    if (row0 + tr + 56u < M) {
        let row = row0 + tr + 56u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c7_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c7_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c7_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c7_3 * scale + bias;
        }
    }
}
