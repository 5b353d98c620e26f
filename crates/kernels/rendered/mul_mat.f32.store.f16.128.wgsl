// mul_mat: a=f32 epi=store tile=f16 side=128
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
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(w[b * 2u + (e >> 2u)]);
}

var<workgroup> ws: array<vec4<f16>, 1024>;
var<workgroup> xs: array<vec4<f16>, 1024>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let n_col = step[0];
    let row0 = group.y * 128u;
    let col0 = group.x * 128u;
    let tr = tid % 32u;
    let tc = tid / 32u;
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
    var c0_4 = 0.0;
    var c0_5 = 0.0;
    var c0_6 = 0.0;
    var c0_7 = 0.0;
    var c0_8 = 0.0;
    var c0_9 = 0.0;
    var c0_10 = 0.0;
    var c0_11 = 0.0;
    var c0_12 = 0.0;
    var c0_13 = 0.0;
    var c0_14 = 0.0;
    var c0_15 = 0.0;
    var c1_0 = 0.0;
    var c1_1 = 0.0;
    var c1_2 = 0.0;
    var c1_3 = 0.0;
    var c1_4 = 0.0;
    var c1_5 = 0.0;
    var c1_6 = 0.0;
    var c1_7 = 0.0;
    var c1_8 = 0.0;
    var c1_9 = 0.0;
    var c1_10 = 0.0;
    var c1_11 = 0.0;
    var c1_12 = 0.0;
    var c1_13 = 0.0;
    var c1_14 = 0.0;
    var c1_15 = 0.0;
    var c2_0 = 0.0;
    var c2_1 = 0.0;
    var c2_2 = 0.0;
    var c2_3 = 0.0;
    var c2_4 = 0.0;
    var c2_5 = 0.0;
    var c2_6 = 0.0;
    var c2_7 = 0.0;
    var c2_8 = 0.0;
    var c2_9 = 0.0;
    var c2_10 = 0.0;
    var c2_11 = 0.0;
    var c2_12 = 0.0;
    var c2_13 = 0.0;
    var c2_14 = 0.0;
    var c2_15 = 0.0;
    var c3_0 = 0.0;
    var c3_1 = 0.0;
    var c3_2 = 0.0;
    var c3_3 = 0.0;
    var c3_4 = 0.0;
    var c3_5 = 0.0;
    var c3_6 = 0.0;
    var c3_7 = 0.0;
    var c3_8 = 0.0;
    var c3_9 = 0.0;
    var c3_10 = 0.0;
    var c3_11 = 0.0;
    var c3_12 = 0.0;
    var c3_13 = 0.0;
    var c3_14 = 0.0;
    var c3_15 = 0.0;
        {
            let i = tid + 0u;
            let r = i % 128u;
            let k = (i / 128u) * 16u;

            let kw = 0u + k;
            let row = min(row0 + r, M - 1u) * BLOCKS;
            let at = (min(col0 + r, n_col - 1u) * LDX + kw) / 4u;
            if (RAGGED) {
                w00 = vec4<f16>();
                x00 = vec4<f16>();
                if (kw + 0u < K) {
                    w00 = vec4<f16>(w_load4(row + (kw + 0u) / 8u, (kw + 0u) % 8u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x00 = vec4<f16>(select(x[at + 0u], vec4<f32>(), past));
                }
                w01 = vec4<f16>();
                x01 = vec4<f16>();
                if (kw + 4u < K) {
                    w01 = vec4<f16>(w_load4(row + (kw + 4u) / 8u, (kw + 4u) % 8u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x01 = vec4<f16>(select(x[at + 1u], vec4<f32>(), past));
                }
                w02 = vec4<f16>();
                x02 = vec4<f16>();
                if (kw + 8u < K) {
                    w02 = vec4<f16>(w_load4(row + (kw + 8u) / 8u, (kw + 8u) % 8u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x02 = vec4<f16>(select(x[at + 2u], vec4<f32>(), past));
                }
                w03 = vec4<f16>();
                x03 = vec4<f16>();
                if (kw + 12u < K) {
                    w03 = vec4<f16>(w_load4(row + (kw + 12u) / 8u, (kw + 12u) % 8u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x03 = vec4<f16>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 8u;
                let e = kw % 8u;
let vq0 = w[(b + (e >> 3u)) * 2u + 0u];
let vq1 = w[(b + (e >> 3u)) * 2u + 1u];
let vq2 = w[(b + (e >> 3u)) * 2u + 2u];
let vq3 = w[(b + (e >> 3u)) * 2u + 3u];

let v0 = bitcast<vec4<f32>>(vq0);
let v1 = bitcast<vec4<f32>>(vq1);
let v2 = bitcast<vec4<f32>>(vq2);
let v3 = bitcast<vec4<f32>>(vq3);

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
            let r = i % 128u;
            let k = (i / 128u) * 16u;

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
            let r = i % 128u;
            let k = (i / 128u) * 16u;

            let kw = k1 + k;
            let row = min(row0 + r, M - 1u) * BLOCKS;
            let at = (min(col0 + r, n_col - 1u) * LDX + kw) / 4u;
            if (RAGGED) {
                w00 = vec4<f16>();
                x00 = vec4<f16>();
                if (kw + 0u < K) {
                    w00 = vec4<f16>(w_load4(row + (kw + 0u) / 8u, (kw + 0u) % 8u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x00 = vec4<f16>(select(x[at + 0u], vec4<f32>(), past));
                }
                w01 = vec4<f16>();
                x01 = vec4<f16>();
                if (kw + 4u < K) {
                    w01 = vec4<f16>(w_load4(row + (kw + 4u) / 8u, (kw + 4u) % 8u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x01 = vec4<f16>(select(x[at + 1u], vec4<f32>(), past));
                }
                w02 = vec4<f16>();
                x02 = vec4<f16>();
                if (kw + 8u < K) {
                    w02 = vec4<f16>(w_load4(row + (kw + 8u) / 8u, (kw + 8u) % 8u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x02 = vec4<f16>(select(x[at + 2u], vec4<f32>(), past));
                }
                w03 = vec4<f16>();
                x03 = vec4<f16>();
                if (kw + 12u < K) {
                    w03 = vec4<f16>(w_load4(row + (kw + 12u) / 8u, (kw + 12u) % 8u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x03 = vec4<f16>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 8u;
                let e = kw % 8u;
let vq0 = w[(b + (e >> 3u)) * 2u + 0u];
let vq1 = w[(b + (e >> 3u)) * 2u + 1u];
let vq2 = w[(b + (e >> 3u)) * 2u + 2u];
let vq3 = w[(b + (e >> 3u)) * 2u + 3u];

let v0 = bitcast<vec4<f32>>(vq0);
let v1 = bitcast<vec4<f32>>(vq1);
let v2 = bitcast<vec4<f32>>(vq2);
let v3 = bitcast<vec4<f32>>(vq3);

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
        var h0_4 = vec2<f16>();
        var h0_5 = vec2<f16>();
        var h0_6 = vec2<f16>();
        var h0_7 = vec2<f16>();
        var h0_8 = vec2<f16>();
        var h0_9 = vec2<f16>();
        var h0_10 = vec2<f16>();
        var h0_11 = vec2<f16>();
        var h0_12 = vec2<f16>();
        var h0_13 = vec2<f16>();
        var h0_14 = vec2<f16>();
        var h0_15 = vec2<f16>();
        var h1_0 = vec2<f16>();
        var h1_1 = vec2<f16>();
        var h1_2 = vec2<f16>();
        var h1_3 = vec2<f16>();
        var h1_4 = vec2<f16>();
        var h1_5 = vec2<f16>();
        var h1_6 = vec2<f16>();
        var h1_7 = vec2<f16>();
        var h1_8 = vec2<f16>();
        var h1_9 = vec2<f16>();
        var h1_10 = vec2<f16>();
        var h1_11 = vec2<f16>();
        var h1_12 = vec2<f16>();
        var h1_13 = vec2<f16>();
        var h1_14 = vec2<f16>();
        var h1_15 = vec2<f16>();
        var h2_0 = vec2<f16>();
        var h2_1 = vec2<f16>();
        var h2_2 = vec2<f16>();
        var h2_3 = vec2<f16>();
        var h2_4 = vec2<f16>();
        var h2_5 = vec2<f16>();
        var h2_6 = vec2<f16>();
        var h2_7 = vec2<f16>();
        var h2_8 = vec2<f16>();
        var h2_9 = vec2<f16>();
        var h2_10 = vec2<f16>();
        var h2_11 = vec2<f16>();
        var h2_12 = vec2<f16>();
        var h2_13 = vec2<f16>();
        var h2_14 = vec2<f16>();
        var h2_15 = vec2<f16>();
        var h3_0 = vec2<f16>();
        var h3_1 = vec2<f16>();
        var h3_2 = vec2<f16>();
        var h3_3 = vec2<f16>();
        var h3_4 = vec2<f16>();
        var h3_5 = vec2<f16>();
        var h3_6 = vec2<f16>();
        var h3_7 = vec2<f16>();
        var h3_8 = vec2<f16>();
        var h3_9 = vec2<f16>();
        var h3_10 = vec2<f16>();
        var h3_11 = vec2<f16>();
        var h3_12 = vec2<f16>();
        var h3_13 = vec2<f16>();
        var h3_14 = vec2<f16>();
        var h3_15 = vec2<f16>();
        {
            let a00 = ws[((tr + 0u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a01 = ws[((tr + 0u) * 4u + (0u ^ swr)) * 2u + 1u];
            let a10 = ws[((tr + 32u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a11 = ws[((tr + 32u) * 4u + (0u ^ swr)) * 2u + 1u];
            let a20 = ws[((tr + 64u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a21 = ws[((tr + 64u) * 4u + (0u ^ swr)) * 2u + 1u];
            let a30 = ws[((tr + 96u) * 4u + (0u ^ swr)) * 2u + 0u];
            let a31 = ws[((tr + 96u) * 4u + (0u ^ swr)) * 2u + 1u];
            {
            let b0 = xs[((tc + 0u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 0u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_0 = fma(a00.xy, b0.xy, h0_0);
            h1_0 = fma(a10.xy, b0.xy, h1_0);
            h2_0 = fma(a20.xy, b0.xy, h2_0);
            h3_0 = fma(a30.xy, b0.xy, h3_0);
            h0_0 = fma(a00.zw, b0.zw, h0_0);
            h1_0 = fma(a10.zw, b0.zw, h1_0);
            h2_0 = fma(a20.zw, b0.zw, h2_0);
            h3_0 = fma(a30.zw, b0.zw, h3_0);
            h0_0 = fma(a01.xy, b1.xy, h0_0);
            h1_0 = fma(a11.xy, b1.xy, h1_0);
            h2_0 = fma(a21.xy, b1.xy, h2_0);
            h3_0 = fma(a31.xy, b1.xy, h3_0);
            h0_0 = fma(a01.zw, b1.zw, h0_0);
            h1_0 = fma(a11.zw, b1.zw, h1_0);
            h2_0 = fma(a21.zw, b1.zw, h2_0);
            h3_0 = fma(a31.zw, b1.zw, h3_0);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 8u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_1 = fma(a00.xy, b0.xy, h0_1);
            h1_1 = fma(a10.xy, b0.xy, h1_1);
            h2_1 = fma(a20.xy, b0.xy, h2_1);
            h3_1 = fma(a30.xy, b0.xy, h3_1);
            h0_1 = fma(a00.zw, b0.zw, h0_1);
            h1_1 = fma(a10.zw, b0.zw, h1_1);
            h2_1 = fma(a20.zw, b0.zw, h2_1);
            h3_1 = fma(a30.zw, b0.zw, h3_1);
            h0_1 = fma(a01.xy, b1.xy, h0_1);
            h1_1 = fma(a11.xy, b1.xy, h1_1);
            h2_1 = fma(a21.xy, b1.xy, h2_1);
            h3_1 = fma(a31.xy, b1.xy, h3_1);
            h0_1 = fma(a01.zw, b1.zw, h0_1);
            h1_1 = fma(a11.zw, b1.zw, h1_1);
            h2_1 = fma(a21.zw, b1.zw, h2_1);
            h3_1 = fma(a31.zw, b1.zw, h3_1);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 16u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_2 = fma(a00.xy, b0.xy, h0_2);
            h1_2 = fma(a10.xy, b0.xy, h1_2);
            h2_2 = fma(a20.xy, b0.xy, h2_2);
            h3_2 = fma(a30.xy, b0.xy, h3_2);
            h0_2 = fma(a00.zw, b0.zw, h0_2);
            h1_2 = fma(a10.zw, b0.zw, h1_2);
            h2_2 = fma(a20.zw, b0.zw, h2_2);
            h3_2 = fma(a30.zw, b0.zw, h3_2);
            h0_2 = fma(a01.xy, b1.xy, h0_2);
            h1_2 = fma(a11.xy, b1.xy, h1_2);
            h2_2 = fma(a21.xy, b1.xy, h2_2);
            h3_2 = fma(a31.xy, b1.xy, h3_2);
            h0_2 = fma(a01.zw, b1.zw, h0_2);
            h1_2 = fma(a11.zw, b1.zw, h1_2);
            h2_2 = fma(a21.zw, b1.zw, h2_2);
            h3_2 = fma(a31.zw, b1.zw, h3_2);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 24u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_3 = fma(a00.xy, b0.xy, h0_3);
            h1_3 = fma(a10.xy, b0.xy, h1_3);
            h2_3 = fma(a20.xy, b0.xy, h2_3);
            h3_3 = fma(a30.xy, b0.xy, h3_3);
            h0_3 = fma(a00.zw, b0.zw, h0_3);
            h1_3 = fma(a10.zw, b0.zw, h1_3);
            h2_3 = fma(a20.zw, b0.zw, h2_3);
            h3_3 = fma(a30.zw, b0.zw, h3_3);
            h0_3 = fma(a01.xy, b1.xy, h0_3);
            h1_3 = fma(a11.xy, b1.xy, h1_3);
            h2_3 = fma(a21.xy, b1.xy, h2_3);
            h3_3 = fma(a31.xy, b1.xy, h3_3);
            h0_3 = fma(a01.zw, b1.zw, h0_3);
            h1_3 = fma(a11.zw, b1.zw, h1_3);
            h2_3 = fma(a21.zw, b1.zw, h2_3);
            h3_3 = fma(a31.zw, b1.zw, h3_3);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 32u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_4 = fma(a00.xy, b0.xy, h0_4);
            h1_4 = fma(a10.xy, b0.xy, h1_4);
            h2_4 = fma(a20.xy, b0.xy, h2_4);
            h3_4 = fma(a30.xy, b0.xy, h3_4);
            h0_4 = fma(a00.zw, b0.zw, h0_4);
            h1_4 = fma(a10.zw, b0.zw, h1_4);
            h2_4 = fma(a20.zw, b0.zw, h2_4);
            h3_4 = fma(a30.zw, b0.zw, h3_4);
            h0_4 = fma(a01.xy, b1.xy, h0_4);
            h1_4 = fma(a11.xy, b1.xy, h1_4);
            h2_4 = fma(a21.xy, b1.xy, h2_4);
            h3_4 = fma(a31.xy, b1.xy, h3_4);
            h0_4 = fma(a01.zw, b1.zw, h0_4);
            h1_4 = fma(a11.zw, b1.zw, h1_4);
            h2_4 = fma(a21.zw, b1.zw, h2_4);
            h3_4 = fma(a31.zw, b1.zw, h3_4);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 40u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_5 = fma(a00.xy, b0.xy, h0_5);
            h1_5 = fma(a10.xy, b0.xy, h1_5);
            h2_5 = fma(a20.xy, b0.xy, h2_5);
            h3_5 = fma(a30.xy, b0.xy, h3_5);
            h0_5 = fma(a00.zw, b0.zw, h0_5);
            h1_5 = fma(a10.zw, b0.zw, h1_5);
            h2_5 = fma(a20.zw, b0.zw, h2_5);
            h3_5 = fma(a30.zw, b0.zw, h3_5);
            h0_5 = fma(a01.xy, b1.xy, h0_5);
            h1_5 = fma(a11.xy, b1.xy, h1_5);
            h2_5 = fma(a21.xy, b1.xy, h2_5);
            h3_5 = fma(a31.xy, b1.xy, h3_5);
            h0_5 = fma(a01.zw, b1.zw, h0_5);
            h1_5 = fma(a11.zw, b1.zw, h1_5);
            h2_5 = fma(a21.zw, b1.zw, h2_5);
            h3_5 = fma(a31.zw, b1.zw, h3_5);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 48u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_6 = fma(a00.xy, b0.xy, h0_6);
            h1_6 = fma(a10.xy, b0.xy, h1_6);
            h2_6 = fma(a20.xy, b0.xy, h2_6);
            h3_6 = fma(a30.xy, b0.xy, h3_6);
            h0_6 = fma(a00.zw, b0.zw, h0_6);
            h1_6 = fma(a10.zw, b0.zw, h1_6);
            h2_6 = fma(a20.zw, b0.zw, h2_6);
            h3_6 = fma(a30.zw, b0.zw, h3_6);
            h0_6 = fma(a01.xy, b1.xy, h0_6);
            h1_6 = fma(a11.xy, b1.xy, h1_6);
            h2_6 = fma(a21.xy, b1.xy, h2_6);
            h3_6 = fma(a31.xy, b1.xy, h3_6);
            h0_6 = fma(a01.zw, b1.zw, h0_6);
            h1_6 = fma(a11.zw, b1.zw, h1_6);
            h2_6 = fma(a21.zw, b1.zw, h2_6);
            h3_6 = fma(a31.zw, b1.zw, h3_6);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 56u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_7 = fma(a00.xy, b0.xy, h0_7);
            h1_7 = fma(a10.xy, b0.xy, h1_7);
            h2_7 = fma(a20.xy, b0.xy, h2_7);
            h3_7 = fma(a30.xy, b0.xy, h3_7);
            h0_7 = fma(a00.zw, b0.zw, h0_7);
            h1_7 = fma(a10.zw, b0.zw, h1_7);
            h2_7 = fma(a20.zw, b0.zw, h2_7);
            h3_7 = fma(a30.zw, b0.zw, h3_7);
            h0_7 = fma(a01.xy, b1.xy, h0_7);
            h1_7 = fma(a11.xy, b1.xy, h1_7);
            h2_7 = fma(a21.xy, b1.xy, h2_7);
            h3_7 = fma(a31.xy, b1.xy, h3_7);
            h0_7 = fma(a01.zw, b1.zw, h0_7);
            h1_7 = fma(a11.zw, b1.zw, h1_7);
            h2_7 = fma(a21.zw, b1.zw, h2_7);
            h3_7 = fma(a31.zw, b1.zw, h3_7);
            }
            {
            let b0 = xs[((tc + 64u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 64u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_8 = fma(a00.xy, b0.xy, h0_8);
            h1_8 = fma(a10.xy, b0.xy, h1_8);
            h2_8 = fma(a20.xy, b0.xy, h2_8);
            h3_8 = fma(a30.xy, b0.xy, h3_8);
            h0_8 = fma(a00.zw, b0.zw, h0_8);
            h1_8 = fma(a10.zw, b0.zw, h1_8);
            h2_8 = fma(a20.zw, b0.zw, h2_8);
            h3_8 = fma(a30.zw, b0.zw, h3_8);
            h0_8 = fma(a01.xy, b1.xy, h0_8);
            h1_8 = fma(a11.xy, b1.xy, h1_8);
            h2_8 = fma(a21.xy, b1.xy, h2_8);
            h3_8 = fma(a31.xy, b1.xy, h3_8);
            h0_8 = fma(a01.zw, b1.zw, h0_8);
            h1_8 = fma(a11.zw, b1.zw, h1_8);
            h2_8 = fma(a21.zw, b1.zw, h2_8);
            h3_8 = fma(a31.zw, b1.zw, h3_8);
            }
            {
            let b0 = xs[((tc + 72u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 72u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_9 = fma(a00.xy, b0.xy, h0_9);
            h1_9 = fma(a10.xy, b0.xy, h1_9);
            h2_9 = fma(a20.xy, b0.xy, h2_9);
            h3_9 = fma(a30.xy, b0.xy, h3_9);
            h0_9 = fma(a00.zw, b0.zw, h0_9);
            h1_9 = fma(a10.zw, b0.zw, h1_9);
            h2_9 = fma(a20.zw, b0.zw, h2_9);
            h3_9 = fma(a30.zw, b0.zw, h3_9);
            h0_9 = fma(a01.xy, b1.xy, h0_9);
            h1_9 = fma(a11.xy, b1.xy, h1_9);
            h2_9 = fma(a21.xy, b1.xy, h2_9);
            h3_9 = fma(a31.xy, b1.xy, h3_9);
            h0_9 = fma(a01.zw, b1.zw, h0_9);
            h1_9 = fma(a11.zw, b1.zw, h1_9);
            h2_9 = fma(a21.zw, b1.zw, h2_9);
            h3_9 = fma(a31.zw, b1.zw, h3_9);
            }
            {
            let b0 = xs[((tc + 80u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 80u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_10 = fma(a00.xy, b0.xy, h0_10);
            h1_10 = fma(a10.xy, b0.xy, h1_10);
            h2_10 = fma(a20.xy, b0.xy, h2_10);
            h3_10 = fma(a30.xy, b0.xy, h3_10);
            h0_10 = fma(a00.zw, b0.zw, h0_10);
            h1_10 = fma(a10.zw, b0.zw, h1_10);
            h2_10 = fma(a20.zw, b0.zw, h2_10);
            h3_10 = fma(a30.zw, b0.zw, h3_10);
            h0_10 = fma(a01.xy, b1.xy, h0_10);
            h1_10 = fma(a11.xy, b1.xy, h1_10);
            h2_10 = fma(a21.xy, b1.xy, h2_10);
            h3_10 = fma(a31.xy, b1.xy, h3_10);
            h0_10 = fma(a01.zw, b1.zw, h0_10);
            h1_10 = fma(a11.zw, b1.zw, h1_10);
            h2_10 = fma(a21.zw, b1.zw, h2_10);
            h3_10 = fma(a31.zw, b1.zw, h3_10);
            }
            {
            let b0 = xs[((tc + 88u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 88u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_11 = fma(a00.xy, b0.xy, h0_11);
            h1_11 = fma(a10.xy, b0.xy, h1_11);
            h2_11 = fma(a20.xy, b0.xy, h2_11);
            h3_11 = fma(a30.xy, b0.xy, h3_11);
            h0_11 = fma(a00.zw, b0.zw, h0_11);
            h1_11 = fma(a10.zw, b0.zw, h1_11);
            h2_11 = fma(a20.zw, b0.zw, h2_11);
            h3_11 = fma(a30.zw, b0.zw, h3_11);
            h0_11 = fma(a01.xy, b1.xy, h0_11);
            h1_11 = fma(a11.xy, b1.xy, h1_11);
            h2_11 = fma(a21.xy, b1.xy, h2_11);
            h3_11 = fma(a31.xy, b1.xy, h3_11);
            h0_11 = fma(a01.zw, b1.zw, h0_11);
            h1_11 = fma(a11.zw, b1.zw, h1_11);
            h2_11 = fma(a21.zw, b1.zw, h2_11);
            h3_11 = fma(a31.zw, b1.zw, h3_11);
            }
            {
            let b0 = xs[((tc + 96u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 96u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_12 = fma(a00.xy, b0.xy, h0_12);
            h1_12 = fma(a10.xy, b0.xy, h1_12);
            h2_12 = fma(a20.xy, b0.xy, h2_12);
            h3_12 = fma(a30.xy, b0.xy, h3_12);
            h0_12 = fma(a00.zw, b0.zw, h0_12);
            h1_12 = fma(a10.zw, b0.zw, h1_12);
            h2_12 = fma(a20.zw, b0.zw, h2_12);
            h3_12 = fma(a30.zw, b0.zw, h3_12);
            h0_12 = fma(a01.xy, b1.xy, h0_12);
            h1_12 = fma(a11.xy, b1.xy, h1_12);
            h2_12 = fma(a21.xy, b1.xy, h2_12);
            h3_12 = fma(a31.xy, b1.xy, h3_12);
            h0_12 = fma(a01.zw, b1.zw, h0_12);
            h1_12 = fma(a11.zw, b1.zw, h1_12);
            h2_12 = fma(a21.zw, b1.zw, h2_12);
            h3_12 = fma(a31.zw, b1.zw, h3_12);
            }
            {
            let b0 = xs[((tc + 104u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 104u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_13 = fma(a00.xy, b0.xy, h0_13);
            h1_13 = fma(a10.xy, b0.xy, h1_13);
            h2_13 = fma(a20.xy, b0.xy, h2_13);
            h3_13 = fma(a30.xy, b0.xy, h3_13);
            h0_13 = fma(a00.zw, b0.zw, h0_13);
            h1_13 = fma(a10.zw, b0.zw, h1_13);
            h2_13 = fma(a20.zw, b0.zw, h2_13);
            h3_13 = fma(a30.zw, b0.zw, h3_13);
            h0_13 = fma(a01.xy, b1.xy, h0_13);
            h1_13 = fma(a11.xy, b1.xy, h1_13);
            h2_13 = fma(a21.xy, b1.xy, h2_13);
            h3_13 = fma(a31.xy, b1.xy, h3_13);
            h0_13 = fma(a01.zw, b1.zw, h0_13);
            h1_13 = fma(a11.zw, b1.zw, h1_13);
            h2_13 = fma(a21.zw, b1.zw, h2_13);
            h3_13 = fma(a31.zw, b1.zw, h3_13);
            }
            {
            let b0 = xs[((tc + 112u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 112u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_14 = fma(a00.xy, b0.xy, h0_14);
            h1_14 = fma(a10.xy, b0.xy, h1_14);
            h2_14 = fma(a20.xy, b0.xy, h2_14);
            h3_14 = fma(a30.xy, b0.xy, h3_14);
            h0_14 = fma(a00.zw, b0.zw, h0_14);
            h1_14 = fma(a10.zw, b0.zw, h1_14);
            h2_14 = fma(a20.zw, b0.zw, h2_14);
            h3_14 = fma(a30.zw, b0.zw, h3_14);
            h0_14 = fma(a01.xy, b1.xy, h0_14);
            h1_14 = fma(a11.xy, b1.xy, h1_14);
            h2_14 = fma(a21.xy, b1.xy, h2_14);
            h3_14 = fma(a31.xy, b1.xy, h3_14);
            h0_14 = fma(a01.zw, b1.zw, h0_14);
            h1_14 = fma(a11.zw, b1.zw, h1_14);
            h2_14 = fma(a21.zw, b1.zw, h2_14);
            h3_14 = fma(a31.zw, b1.zw, h3_14);
            }
            {
            let b0 = xs[((tc + 120u) * 4u + (0u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 120u) * 4u + (0u ^ swc)) * 2u + 1u];
            h0_15 = fma(a00.xy, b0.xy, h0_15);
            h1_15 = fma(a10.xy, b0.xy, h1_15);
            h2_15 = fma(a20.xy, b0.xy, h2_15);
            h3_15 = fma(a30.xy, b0.xy, h3_15);
            h0_15 = fma(a00.zw, b0.zw, h0_15);
            h1_15 = fma(a10.zw, b0.zw, h1_15);
            h2_15 = fma(a20.zw, b0.zw, h2_15);
            h3_15 = fma(a30.zw, b0.zw, h3_15);
            h0_15 = fma(a01.xy, b1.xy, h0_15);
            h1_15 = fma(a11.xy, b1.xy, h1_15);
            h2_15 = fma(a21.xy, b1.xy, h2_15);
            h3_15 = fma(a31.xy, b1.xy, h3_15);
            h0_15 = fma(a01.zw, b1.zw, h0_15);
            h1_15 = fma(a11.zw, b1.zw, h1_15);
            h2_15 = fma(a21.zw, b1.zw, h2_15);
            h3_15 = fma(a31.zw, b1.zw, h3_15);
            }

        }
        {
            let a00 = ws[((tr + 0u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a01 = ws[((tr + 0u) * 4u + (1u ^ swr)) * 2u + 1u];
            let a10 = ws[((tr + 32u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a11 = ws[((tr + 32u) * 4u + (1u ^ swr)) * 2u + 1u];
            let a20 = ws[((tr + 64u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a21 = ws[((tr + 64u) * 4u + (1u ^ swr)) * 2u + 1u];
            let a30 = ws[((tr + 96u) * 4u + (1u ^ swr)) * 2u + 0u];
            let a31 = ws[((tr + 96u) * 4u + (1u ^ swr)) * 2u + 1u];
            {
            let b0 = xs[((tc + 0u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 0u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_0 = fma(a00.xy, b0.xy, h0_0);
            h1_0 = fma(a10.xy, b0.xy, h1_0);
            h2_0 = fma(a20.xy, b0.xy, h2_0);
            h3_0 = fma(a30.xy, b0.xy, h3_0);
            h0_0 = fma(a00.zw, b0.zw, h0_0);
            h1_0 = fma(a10.zw, b0.zw, h1_0);
            h2_0 = fma(a20.zw, b0.zw, h2_0);
            h3_0 = fma(a30.zw, b0.zw, h3_0);
            h0_0 = fma(a01.xy, b1.xy, h0_0);
            h1_0 = fma(a11.xy, b1.xy, h1_0);
            h2_0 = fma(a21.xy, b1.xy, h2_0);
            h3_0 = fma(a31.xy, b1.xy, h3_0);
            h0_0 = fma(a01.zw, b1.zw, h0_0);
            h1_0 = fma(a11.zw, b1.zw, h1_0);
            h2_0 = fma(a21.zw, b1.zw, h2_0);
            h3_0 = fma(a31.zw, b1.zw, h3_0);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 8u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_1 = fma(a00.xy, b0.xy, h0_1);
            h1_1 = fma(a10.xy, b0.xy, h1_1);
            h2_1 = fma(a20.xy, b0.xy, h2_1);
            h3_1 = fma(a30.xy, b0.xy, h3_1);
            h0_1 = fma(a00.zw, b0.zw, h0_1);
            h1_1 = fma(a10.zw, b0.zw, h1_1);
            h2_1 = fma(a20.zw, b0.zw, h2_1);
            h3_1 = fma(a30.zw, b0.zw, h3_1);
            h0_1 = fma(a01.xy, b1.xy, h0_1);
            h1_1 = fma(a11.xy, b1.xy, h1_1);
            h2_1 = fma(a21.xy, b1.xy, h2_1);
            h3_1 = fma(a31.xy, b1.xy, h3_1);
            h0_1 = fma(a01.zw, b1.zw, h0_1);
            h1_1 = fma(a11.zw, b1.zw, h1_1);
            h2_1 = fma(a21.zw, b1.zw, h2_1);
            h3_1 = fma(a31.zw, b1.zw, h3_1);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 16u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_2 = fma(a00.xy, b0.xy, h0_2);
            h1_2 = fma(a10.xy, b0.xy, h1_2);
            h2_2 = fma(a20.xy, b0.xy, h2_2);
            h3_2 = fma(a30.xy, b0.xy, h3_2);
            h0_2 = fma(a00.zw, b0.zw, h0_2);
            h1_2 = fma(a10.zw, b0.zw, h1_2);
            h2_2 = fma(a20.zw, b0.zw, h2_2);
            h3_2 = fma(a30.zw, b0.zw, h3_2);
            h0_2 = fma(a01.xy, b1.xy, h0_2);
            h1_2 = fma(a11.xy, b1.xy, h1_2);
            h2_2 = fma(a21.xy, b1.xy, h2_2);
            h3_2 = fma(a31.xy, b1.xy, h3_2);
            h0_2 = fma(a01.zw, b1.zw, h0_2);
            h1_2 = fma(a11.zw, b1.zw, h1_2);
            h2_2 = fma(a21.zw, b1.zw, h2_2);
            h3_2 = fma(a31.zw, b1.zw, h3_2);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 24u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_3 = fma(a00.xy, b0.xy, h0_3);
            h1_3 = fma(a10.xy, b0.xy, h1_3);
            h2_3 = fma(a20.xy, b0.xy, h2_3);
            h3_3 = fma(a30.xy, b0.xy, h3_3);
            h0_3 = fma(a00.zw, b0.zw, h0_3);
            h1_3 = fma(a10.zw, b0.zw, h1_3);
            h2_3 = fma(a20.zw, b0.zw, h2_3);
            h3_3 = fma(a30.zw, b0.zw, h3_3);
            h0_3 = fma(a01.xy, b1.xy, h0_3);
            h1_3 = fma(a11.xy, b1.xy, h1_3);
            h2_3 = fma(a21.xy, b1.xy, h2_3);
            h3_3 = fma(a31.xy, b1.xy, h3_3);
            h0_3 = fma(a01.zw, b1.zw, h0_3);
            h1_3 = fma(a11.zw, b1.zw, h1_3);
            h2_3 = fma(a21.zw, b1.zw, h2_3);
            h3_3 = fma(a31.zw, b1.zw, h3_3);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 32u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_4 = fma(a00.xy, b0.xy, h0_4);
            h1_4 = fma(a10.xy, b0.xy, h1_4);
            h2_4 = fma(a20.xy, b0.xy, h2_4);
            h3_4 = fma(a30.xy, b0.xy, h3_4);
            h0_4 = fma(a00.zw, b0.zw, h0_4);
            h1_4 = fma(a10.zw, b0.zw, h1_4);
            h2_4 = fma(a20.zw, b0.zw, h2_4);
            h3_4 = fma(a30.zw, b0.zw, h3_4);
            h0_4 = fma(a01.xy, b1.xy, h0_4);
            h1_4 = fma(a11.xy, b1.xy, h1_4);
            h2_4 = fma(a21.xy, b1.xy, h2_4);
            h3_4 = fma(a31.xy, b1.xy, h3_4);
            h0_4 = fma(a01.zw, b1.zw, h0_4);
            h1_4 = fma(a11.zw, b1.zw, h1_4);
            h2_4 = fma(a21.zw, b1.zw, h2_4);
            h3_4 = fma(a31.zw, b1.zw, h3_4);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 40u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_5 = fma(a00.xy, b0.xy, h0_5);
            h1_5 = fma(a10.xy, b0.xy, h1_5);
            h2_5 = fma(a20.xy, b0.xy, h2_5);
            h3_5 = fma(a30.xy, b0.xy, h3_5);
            h0_5 = fma(a00.zw, b0.zw, h0_5);
            h1_5 = fma(a10.zw, b0.zw, h1_5);
            h2_5 = fma(a20.zw, b0.zw, h2_5);
            h3_5 = fma(a30.zw, b0.zw, h3_5);
            h0_5 = fma(a01.xy, b1.xy, h0_5);
            h1_5 = fma(a11.xy, b1.xy, h1_5);
            h2_5 = fma(a21.xy, b1.xy, h2_5);
            h3_5 = fma(a31.xy, b1.xy, h3_5);
            h0_5 = fma(a01.zw, b1.zw, h0_5);
            h1_5 = fma(a11.zw, b1.zw, h1_5);
            h2_5 = fma(a21.zw, b1.zw, h2_5);
            h3_5 = fma(a31.zw, b1.zw, h3_5);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 48u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_6 = fma(a00.xy, b0.xy, h0_6);
            h1_6 = fma(a10.xy, b0.xy, h1_6);
            h2_6 = fma(a20.xy, b0.xy, h2_6);
            h3_6 = fma(a30.xy, b0.xy, h3_6);
            h0_6 = fma(a00.zw, b0.zw, h0_6);
            h1_6 = fma(a10.zw, b0.zw, h1_6);
            h2_6 = fma(a20.zw, b0.zw, h2_6);
            h3_6 = fma(a30.zw, b0.zw, h3_6);
            h0_6 = fma(a01.xy, b1.xy, h0_6);
            h1_6 = fma(a11.xy, b1.xy, h1_6);
            h2_6 = fma(a21.xy, b1.xy, h2_6);
            h3_6 = fma(a31.xy, b1.xy, h3_6);
            h0_6 = fma(a01.zw, b1.zw, h0_6);
            h1_6 = fma(a11.zw, b1.zw, h1_6);
            h2_6 = fma(a21.zw, b1.zw, h2_6);
            h3_6 = fma(a31.zw, b1.zw, h3_6);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 56u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_7 = fma(a00.xy, b0.xy, h0_7);
            h1_7 = fma(a10.xy, b0.xy, h1_7);
            h2_7 = fma(a20.xy, b0.xy, h2_7);
            h3_7 = fma(a30.xy, b0.xy, h3_7);
            h0_7 = fma(a00.zw, b0.zw, h0_7);
            h1_7 = fma(a10.zw, b0.zw, h1_7);
            h2_7 = fma(a20.zw, b0.zw, h2_7);
            h3_7 = fma(a30.zw, b0.zw, h3_7);
            h0_7 = fma(a01.xy, b1.xy, h0_7);
            h1_7 = fma(a11.xy, b1.xy, h1_7);
            h2_7 = fma(a21.xy, b1.xy, h2_7);
            h3_7 = fma(a31.xy, b1.xy, h3_7);
            h0_7 = fma(a01.zw, b1.zw, h0_7);
            h1_7 = fma(a11.zw, b1.zw, h1_7);
            h2_7 = fma(a21.zw, b1.zw, h2_7);
            h3_7 = fma(a31.zw, b1.zw, h3_7);
            }
            {
            let b0 = xs[((tc + 64u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 64u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_8 = fma(a00.xy, b0.xy, h0_8);
            h1_8 = fma(a10.xy, b0.xy, h1_8);
            h2_8 = fma(a20.xy, b0.xy, h2_8);
            h3_8 = fma(a30.xy, b0.xy, h3_8);
            h0_8 = fma(a00.zw, b0.zw, h0_8);
            h1_8 = fma(a10.zw, b0.zw, h1_8);
            h2_8 = fma(a20.zw, b0.zw, h2_8);
            h3_8 = fma(a30.zw, b0.zw, h3_8);
            h0_8 = fma(a01.xy, b1.xy, h0_8);
            h1_8 = fma(a11.xy, b1.xy, h1_8);
            h2_8 = fma(a21.xy, b1.xy, h2_8);
            h3_8 = fma(a31.xy, b1.xy, h3_8);
            h0_8 = fma(a01.zw, b1.zw, h0_8);
            h1_8 = fma(a11.zw, b1.zw, h1_8);
            h2_8 = fma(a21.zw, b1.zw, h2_8);
            h3_8 = fma(a31.zw, b1.zw, h3_8);
            }
            {
            let b0 = xs[((tc + 72u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 72u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_9 = fma(a00.xy, b0.xy, h0_9);
            h1_9 = fma(a10.xy, b0.xy, h1_9);
            h2_9 = fma(a20.xy, b0.xy, h2_9);
            h3_9 = fma(a30.xy, b0.xy, h3_9);
            h0_9 = fma(a00.zw, b0.zw, h0_9);
            h1_9 = fma(a10.zw, b0.zw, h1_9);
            h2_9 = fma(a20.zw, b0.zw, h2_9);
            h3_9 = fma(a30.zw, b0.zw, h3_9);
            h0_9 = fma(a01.xy, b1.xy, h0_9);
            h1_9 = fma(a11.xy, b1.xy, h1_9);
            h2_9 = fma(a21.xy, b1.xy, h2_9);
            h3_9 = fma(a31.xy, b1.xy, h3_9);
            h0_9 = fma(a01.zw, b1.zw, h0_9);
            h1_9 = fma(a11.zw, b1.zw, h1_9);
            h2_9 = fma(a21.zw, b1.zw, h2_9);
            h3_9 = fma(a31.zw, b1.zw, h3_9);
            }
            {
            let b0 = xs[((tc + 80u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 80u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_10 = fma(a00.xy, b0.xy, h0_10);
            h1_10 = fma(a10.xy, b0.xy, h1_10);
            h2_10 = fma(a20.xy, b0.xy, h2_10);
            h3_10 = fma(a30.xy, b0.xy, h3_10);
            h0_10 = fma(a00.zw, b0.zw, h0_10);
            h1_10 = fma(a10.zw, b0.zw, h1_10);
            h2_10 = fma(a20.zw, b0.zw, h2_10);
            h3_10 = fma(a30.zw, b0.zw, h3_10);
            h0_10 = fma(a01.xy, b1.xy, h0_10);
            h1_10 = fma(a11.xy, b1.xy, h1_10);
            h2_10 = fma(a21.xy, b1.xy, h2_10);
            h3_10 = fma(a31.xy, b1.xy, h3_10);
            h0_10 = fma(a01.zw, b1.zw, h0_10);
            h1_10 = fma(a11.zw, b1.zw, h1_10);
            h2_10 = fma(a21.zw, b1.zw, h2_10);
            h3_10 = fma(a31.zw, b1.zw, h3_10);
            }
            {
            let b0 = xs[((tc + 88u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 88u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_11 = fma(a00.xy, b0.xy, h0_11);
            h1_11 = fma(a10.xy, b0.xy, h1_11);
            h2_11 = fma(a20.xy, b0.xy, h2_11);
            h3_11 = fma(a30.xy, b0.xy, h3_11);
            h0_11 = fma(a00.zw, b0.zw, h0_11);
            h1_11 = fma(a10.zw, b0.zw, h1_11);
            h2_11 = fma(a20.zw, b0.zw, h2_11);
            h3_11 = fma(a30.zw, b0.zw, h3_11);
            h0_11 = fma(a01.xy, b1.xy, h0_11);
            h1_11 = fma(a11.xy, b1.xy, h1_11);
            h2_11 = fma(a21.xy, b1.xy, h2_11);
            h3_11 = fma(a31.xy, b1.xy, h3_11);
            h0_11 = fma(a01.zw, b1.zw, h0_11);
            h1_11 = fma(a11.zw, b1.zw, h1_11);
            h2_11 = fma(a21.zw, b1.zw, h2_11);
            h3_11 = fma(a31.zw, b1.zw, h3_11);
            }
            {
            let b0 = xs[((tc + 96u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 96u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_12 = fma(a00.xy, b0.xy, h0_12);
            h1_12 = fma(a10.xy, b0.xy, h1_12);
            h2_12 = fma(a20.xy, b0.xy, h2_12);
            h3_12 = fma(a30.xy, b0.xy, h3_12);
            h0_12 = fma(a00.zw, b0.zw, h0_12);
            h1_12 = fma(a10.zw, b0.zw, h1_12);
            h2_12 = fma(a20.zw, b0.zw, h2_12);
            h3_12 = fma(a30.zw, b0.zw, h3_12);
            h0_12 = fma(a01.xy, b1.xy, h0_12);
            h1_12 = fma(a11.xy, b1.xy, h1_12);
            h2_12 = fma(a21.xy, b1.xy, h2_12);
            h3_12 = fma(a31.xy, b1.xy, h3_12);
            h0_12 = fma(a01.zw, b1.zw, h0_12);
            h1_12 = fma(a11.zw, b1.zw, h1_12);
            h2_12 = fma(a21.zw, b1.zw, h2_12);
            h3_12 = fma(a31.zw, b1.zw, h3_12);
            }
            {
            let b0 = xs[((tc + 104u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 104u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_13 = fma(a00.xy, b0.xy, h0_13);
            h1_13 = fma(a10.xy, b0.xy, h1_13);
            h2_13 = fma(a20.xy, b0.xy, h2_13);
            h3_13 = fma(a30.xy, b0.xy, h3_13);
            h0_13 = fma(a00.zw, b0.zw, h0_13);
            h1_13 = fma(a10.zw, b0.zw, h1_13);
            h2_13 = fma(a20.zw, b0.zw, h2_13);
            h3_13 = fma(a30.zw, b0.zw, h3_13);
            h0_13 = fma(a01.xy, b1.xy, h0_13);
            h1_13 = fma(a11.xy, b1.xy, h1_13);
            h2_13 = fma(a21.xy, b1.xy, h2_13);
            h3_13 = fma(a31.xy, b1.xy, h3_13);
            h0_13 = fma(a01.zw, b1.zw, h0_13);
            h1_13 = fma(a11.zw, b1.zw, h1_13);
            h2_13 = fma(a21.zw, b1.zw, h2_13);
            h3_13 = fma(a31.zw, b1.zw, h3_13);
            }
            {
            let b0 = xs[((tc + 112u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 112u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_14 = fma(a00.xy, b0.xy, h0_14);
            h1_14 = fma(a10.xy, b0.xy, h1_14);
            h2_14 = fma(a20.xy, b0.xy, h2_14);
            h3_14 = fma(a30.xy, b0.xy, h3_14);
            h0_14 = fma(a00.zw, b0.zw, h0_14);
            h1_14 = fma(a10.zw, b0.zw, h1_14);
            h2_14 = fma(a20.zw, b0.zw, h2_14);
            h3_14 = fma(a30.zw, b0.zw, h3_14);
            h0_14 = fma(a01.xy, b1.xy, h0_14);
            h1_14 = fma(a11.xy, b1.xy, h1_14);
            h2_14 = fma(a21.xy, b1.xy, h2_14);
            h3_14 = fma(a31.xy, b1.xy, h3_14);
            h0_14 = fma(a01.zw, b1.zw, h0_14);
            h1_14 = fma(a11.zw, b1.zw, h1_14);
            h2_14 = fma(a21.zw, b1.zw, h2_14);
            h3_14 = fma(a31.zw, b1.zw, h3_14);
            }
            {
            let b0 = xs[((tc + 120u) * 4u + (1u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 120u) * 4u + (1u ^ swc)) * 2u + 1u];
            h0_15 = fma(a00.xy, b0.xy, h0_15);
            h1_15 = fma(a10.xy, b0.xy, h1_15);
            h2_15 = fma(a20.xy, b0.xy, h2_15);
            h3_15 = fma(a30.xy, b0.xy, h3_15);
            h0_15 = fma(a00.zw, b0.zw, h0_15);
            h1_15 = fma(a10.zw, b0.zw, h1_15);
            h2_15 = fma(a20.zw, b0.zw, h2_15);
            h3_15 = fma(a30.zw, b0.zw, h3_15);
            h0_15 = fma(a01.xy, b1.xy, h0_15);
            h1_15 = fma(a11.xy, b1.xy, h1_15);
            h2_15 = fma(a21.xy, b1.xy, h2_15);
            h3_15 = fma(a31.xy, b1.xy, h3_15);
            h0_15 = fma(a01.zw, b1.zw, h0_15);
            h1_15 = fma(a11.zw, b1.zw, h1_15);
            h2_15 = fma(a21.zw, b1.zw, h2_15);
            h3_15 = fma(a31.zw, b1.zw, h3_15);
            }

        }
        {
            let a00 = ws[((tr + 0u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a01 = ws[((tr + 0u) * 4u + (2u ^ swr)) * 2u + 1u];
            let a10 = ws[((tr + 32u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a11 = ws[((tr + 32u) * 4u + (2u ^ swr)) * 2u + 1u];
            let a20 = ws[((tr + 64u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a21 = ws[((tr + 64u) * 4u + (2u ^ swr)) * 2u + 1u];
            let a30 = ws[((tr + 96u) * 4u + (2u ^ swr)) * 2u + 0u];
            let a31 = ws[((tr + 96u) * 4u + (2u ^ swr)) * 2u + 1u];
            {
            let b0 = xs[((tc + 0u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 0u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_0 = fma(a00.xy, b0.xy, h0_0);
            h1_0 = fma(a10.xy, b0.xy, h1_0);
            h2_0 = fma(a20.xy, b0.xy, h2_0);
            h3_0 = fma(a30.xy, b0.xy, h3_0);
            h0_0 = fma(a00.zw, b0.zw, h0_0);
            h1_0 = fma(a10.zw, b0.zw, h1_0);
            h2_0 = fma(a20.zw, b0.zw, h2_0);
            h3_0 = fma(a30.zw, b0.zw, h3_0);
            h0_0 = fma(a01.xy, b1.xy, h0_0);
            h1_0 = fma(a11.xy, b1.xy, h1_0);
            h2_0 = fma(a21.xy, b1.xy, h2_0);
            h3_0 = fma(a31.xy, b1.xy, h3_0);
            h0_0 = fma(a01.zw, b1.zw, h0_0);
            h1_0 = fma(a11.zw, b1.zw, h1_0);
            h2_0 = fma(a21.zw, b1.zw, h2_0);
            h3_0 = fma(a31.zw, b1.zw, h3_0);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 8u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_1 = fma(a00.xy, b0.xy, h0_1);
            h1_1 = fma(a10.xy, b0.xy, h1_1);
            h2_1 = fma(a20.xy, b0.xy, h2_1);
            h3_1 = fma(a30.xy, b0.xy, h3_1);
            h0_1 = fma(a00.zw, b0.zw, h0_1);
            h1_1 = fma(a10.zw, b0.zw, h1_1);
            h2_1 = fma(a20.zw, b0.zw, h2_1);
            h3_1 = fma(a30.zw, b0.zw, h3_1);
            h0_1 = fma(a01.xy, b1.xy, h0_1);
            h1_1 = fma(a11.xy, b1.xy, h1_1);
            h2_1 = fma(a21.xy, b1.xy, h2_1);
            h3_1 = fma(a31.xy, b1.xy, h3_1);
            h0_1 = fma(a01.zw, b1.zw, h0_1);
            h1_1 = fma(a11.zw, b1.zw, h1_1);
            h2_1 = fma(a21.zw, b1.zw, h2_1);
            h3_1 = fma(a31.zw, b1.zw, h3_1);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 16u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_2 = fma(a00.xy, b0.xy, h0_2);
            h1_2 = fma(a10.xy, b0.xy, h1_2);
            h2_2 = fma(a20.xy, b0.xy, h2_2);
            h3_2 = fma(a30.xy, b0.xy, h3_2);
            h0_2 = fma(a00.zw, b0.zw, h0_2);
            h1_2 = fma(a10.zw, b0.zw, h1_2);
            h2_2 = fma(a20.zw, b0.zw, h2_2);
            h3_2 = fma(a30.zw, b0.zw, h3_2);
            h0_2 = fma(a01.xy, b1.xy, h0_2);
            h1_2 = fma(a11.xy, b1.xy, h1_2);
            h2_2 = fma(a21.xy, b1.xy, h2_2);
            h3_2 = fma(a31.xy, b1.xy, h3_2);
            h0_2 = fma(a01.zw, b1.zw, h0_2);
            h1_2 = fma(a11.zw, b1.zw, h1_2);
            h2_2 = fma(a21.zw, b1.zw, h2_2);
            h3_2 = fma(a31.zw, b1.zw, h3_2);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 24u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_3 = fma(a00.xy, b0.xy, h0_3);
            h1_3 = fma(a10.xy, b0.xy, h1_3);
            h2_3 = fma(a20.xy, b0.xy, h2_3);
            h3_3 = fma(a30.xy, b0.xy, h3_3);
            h0_3 = fma(a00.zw, b0.zw, h0_3);
            h1_3 = fma(a10.zw, b0.zw, h1_3);
            h2_3 = fma(a20.zw, b0.zw, h2_3);
            h3_3 = fma(a30.zw, b0.zw, h3_3);
            h0_3 = fma(a01.xy, b1.xy, h0_3);
            h1_3 = fma(a11.xy, b1.xy, h1_3);
            h2_3 = fma(a21.xy, b1.xy, h2_3);
            h3_3 = fma(a31.xy, b1.xy, h3_3);
            h0_3 = fma(a01.zw, b1.zw, h0_3);
            h1_3 = fma(a11.zw, b1.zw, h1_3);
            h2_3 = fma(a21.zw, b1.zw, h2_3);
            h3_3 = fma(a31.zw, b1.zw, h3_3);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 32u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_4 = fma(a00.xy, b0.xy, h0_4);
            h1_4 = fma(a10.xy, b0.xy, h1_4);
            h2_4 = fma(a20.xy, b0.xy, h2_4);
            h3_4 = fma(a30.xy, b0.xy, h3_4);
            h0_4 = fma(a00.zw, b0.zw, h0_4);
            h1_4 = fma(a10.zw, b0.zw, h1_4);
            h2_4 = fma(a20.zw, b0.zw, h2_4);
            h3_4 = fma(a30.zw, b0.zw, h3_4);
            h0_4 = fma(a01.xy, b1.xy, h0_4);
            h1_4 = fma(a11.xy, b1.xy, h1_4);
            h2_4 = fma(a21.xy, b1.xy, h2_4);
            h3_4 = fma(a31.xy, b1.xy, h3_4);
            h0_4 = fma(a01.zw, b1.zw, h0_4);
            h1_4 = fma(a11.zw, b1.zw, h1_4);
            h2_4 = fma(a21.zw, b1.zw, h2_4);
            h3_4 = fma(a31.zw, b1.zw, h3_4);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 40u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_5 = fma(a00.xy, b0.xy, h0_5);
            h1_5 = fma(a10.xy, b0.xy, h1_5);
            h2_5 = fma(a20.xy, b0.xy, h2_5);
            h3_5 = fma(a30.xy, b0.xy, h3_5);
            h0_5 = fma(a00.zw, b0.zw, h0_5);
            h1_5 = fma(a10.zw, b0.zw, h1_5);
            h2_5 = fma(a20.zw, b0.zw, h2_5);
            h3_5 = fma(a30.zw, b0.zw, h3_5);
            h0_5 = fma(a01.xy, b1.xy, h0_5);
            h1_5 = fma(a11.xy, b1.xy, h1_5);
            h2_5 = fma(a21.xy, b1.xy, h2_5);
            h3_5 = fma(a31.xy, b1.xy, h3_5);
            h0_5 = fma(a01.zw, b1.zw, h0_5);
            h1_5 = fma(a11.zw, b1.zw, h1_5);
            h2_5 = fma(a21.zw, b1.zw, h2_5);
            h3_5 = fma(a31.zw, b1.zw, h3_5);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 48u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_6 = fma(a00.xy, b0.xy, h0_6);
            h1_6 = fma(a10.xy, b0.xy, h1_6);
            h2_6 = fma(a20.xy, b0.xy, h2_6);
            h3_6 = fma(a30.xy, b0.xy, h3_6);
            h0_6 = fma(a00.zw, b0.zw, h0_6);
            h1_6 = fma(a10.zw, b0.zw, h1_6);
            h2_6 = fma(a20.zw, b0.zw, h2_6);
            h3_6 = fma(a30.zw, b0.zw, h3_6);
            h0_6 = fma(a01.xy, b1.xy, h0_6);
            h1_6 = fma(a11.xy, b1.xy, h1_6);
            h2_6 = fma(a21.xy, b1.xy, h2_6);
            h3_6 = fma(a31.xy, b1.xy, h3_6);
            h0_6 = fma(a01.zw, b1.zw, h0_6);
            h1_6 = fma(a11.zw, b1.zw, h1_6);
            h2_6 = fma(a21.zw, b1.zw, h2_6);
            h3_6 = fma(a31.zw, b1.zw, h3_6);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 56u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_7 = fma(a00.xy, b0.xy, h0_7);
            h1_7 = fma(a10.xy, b0.xy, h1_7);
            h2_7 = fma(a20.xy, b0.xy, h2_7);
            h3_7 = fma(a30.xy, b0.xy, h3_7);
            h0_7 = fma(a00.zw, b0.zw, h0_7);
            h1_7 = fma(a10.zw, b0.zw, h1_7);
            h2_7 = fma(a20.zw, b0.zw, h2_7);
            h3_7 = fma(a30.zw, b0.zw, h3_7);
            h0_7 = fma(a01.xy, b1.xy, h0_7);
            h1_7 = fma(a11.xy, b1.xy, h1_7);
            h2_7 = fma(a21.xy, b1.xy, h2_7);
            h3_7 = fma(a31.xy, b1.xy, h3_7);
            h0_7 = fma(a01.zw, b1.zw, h0_7);
            h1_7 = fma(a11.zw, b1.zw, h1_7);
            h2_7 = fma(a21.zw, b1.zw, h2_7);
            h3_7 = fma(a31.zw, b1.zw, h3_7);
            }
            {
            let b0 = xs[((tc + 64u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 64u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_8 = fma(a00.xy, b0.xy, h0_8);
            h1_8 = fma(a10.xy, b0.xy, h1_8);
            h2_8 = fma(a20.xy, b0.xy, h2_8);
            h3_8 = fma(a30.xy, b0.xy, h3_8);
            h0_8 = fma(a00.zw, b0.zw, h0_8);
            h1_8 = fma(a10.zw, b0.zw, h1_8);
            h2_8 = fma(a20.zw, b0.zw, h2_8);
            h3_8 = fma(a30.zw, b0.zw, h3_8);
            h0_8 = fma(a01.xy, b1.xy, h0_8);
            h1_8 = fma(a11.xy, b1.xy, h1_8);
            h2_8 = fma(a21.xy, b1.xy, h2_8);
            h3_8 = fma(a31.xy, b1.xy, h3_8);
            h0_8 = fma(a01.zw, b1.zw, h0_8);
            h1_8 = fma(a11.zw, b1.zw, h1_8);
            h2_8 = fma(a21.zw, b1.zw, h2_8);
            h3_8 = fma(a31.zw, b1.zw, h3_8);
            }
            {
            let b0 = xs[((tc + 72u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 72u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_9 = fma(a00.xy, b0.xy, h0_9);
            h1_9 = fma(a10.xy, b0.xy, h1_9);
            h2_9 = fma(a20.xy, b0.xy, h2_9);
            h3_9 = fma(a30.xy, b0.xy, h3_9);
            h0_9 = fma(a00.zw, b0.zw, h0_9);
            h1_9 = fma(a10.zw, b0.zw, h1_9);
            h2_9 = fma(a20.zw, b0.zw, h2_9);
            h3_9 = fma(a30.zw, b0.zw, h3_9);
            h0_9 = fma(a01.xy, b1.xy, h0_9);
            h1_9 = fma(a11.xy, b1.xy, h1_9);
            h2_9 = fma(a21.xy, b1.xy, h2_9);
            h3_9 = fma(a31.xy, b1.xy, h3_9);
            h0_9 = fma(a01.zw, b1.zw, h0_9);
            h1_9 = fma(a11.zw, b1.zw, h1_9);
            h2_9 = fma(a21.zw, b1.zw, h2_9);
            h3_9 = fma(a31.zw, b1.zw, h3_9);
            }
            {
            let b0 = xs[((tc + 80u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 80u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_10 = fma(a00.xy, b0.xy, h0_10);
            h1_10 = fma(a10.xy, b0.xy, h1_10);
            h2_10 = fma(a20.xy, b0.xy, h2_10);
            h3_10 = fma(a30.xy, b0.xy, h3_10);
            h0_10 = fma(a00.zw, b0.zw, h0_10);
            h1_10 = fma(a10.zw, b0.zw, h1_10);
            h2_10 = fma(a20.zw, b0.zw, h2_10);
            h3_10 = fma(a30.zw, b0.zw, h3_10);
            h0_10 = fma(a01.xy, b1.xy, h0_10);
            h1_10 = fma(a11.xy, b1.xy, h1_10);
            h2_10 = fma(a21.xy, b1.xy, h2_10);
            h3_10 = fma(a31.xy, b1.xy, h3_10);
            h0_10 = fma(a01.zw, b1.zw, h0_10);
            h1_10 = fma(a11.zw, b1.zw, h1_10);
            h2_10 = fma(a21.zw, b1.zw, h2_10);
            h3_10 = fma(a31.zw, b1.zw, h3_10);
            }
            {
            let b0 = xs[((tc + 88u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 88u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_11 = fma(a00.xy, b0.xy, h0_11);
            h1_11 = fma(a10.xy, b0.xy, h1_11);
            h2_11 = fma(a20.xy, b0.xy, h2_11);
            h3_11 = fma(a30.xy, b0.xy, h3_11);
            h0_11 = fma(a00.zw, b0.zw, h0_11);
            h1_11 = fma(a10.zw, b0.zw, h1_11);
            h2_11 = fma(a20.zw, b0.zw, h2_11);
            h3_11 = fma(a30.zw, b0.zw, h3_11);
            h0_11 = fma(a01.xy, b1.xy, h0_11);
            h1_11 = fma(a11.xy, b1.xy, h1_11);
            h2_11 = fma(a21.xy, b1.xy, h2_11);
            h3_11 = fma(a31.xy, b1.xy, h3_11);
            h0_11 = fma(a01.zw, b1.zw, h0_11);
            h1_11 = fma(a11.zw, b1.zw, h1_11);
            h2_11 = fma(a21.zw, b1.zw, h2_11);
            h3_11 = fma(a31.zw, b1.zw, h3_11);
            }
            {
            let b0 = xs[((tc + 96u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 96u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_12 = fma(a00.xy, b0.xy, h0_12);
            h1_12 = fma(a10.xy, b0.xy, h1_12);
            h2_12 = fma(a20.xy, b0.xy, h2_12);
            h3_12 = fma(a30.xy, b0.xy, h3_12);
            h0_12 = fma(a00.zw, b0.zw, h0_12);
            h1_12 = fma(a10.zw, b0.zw, h1_12);
            h2_12 = fma(a20.zw, b0.zw, h2_12);
            h3_12 = fma(a30.zw, b0.zw, h3_12);
            h0_12 = fma(a01.xy, b1.xy, h0_12);
            h1_12 = fma(a11.xy, b1.xy, h1_12);
            h2_12 = fma(a21.xy, b1.xy, h2_12);
            h3_12 = fma(a31.xy, b1.xy, h3_12);
            h0_12 = fma(a01.zw, b1.zw, h0_12);
            h1_12 = fma(a11.zw, b1.zw, h1_12);
            h2_12 = fma(a21.zw, b1.zw, h2_12);
            h3_12 = fma(a31.zw, b1.zw, h3_12);
            }
            {
            let b0 = xs[((tc + 104u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 104u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_13 = fma(a00.xy, b0.xy, h0_13);
            h1_13 = fma(a10.xy, b0.xy, h1_13);
            h2_13 = fma(a20.xy, b0.xy, h2_13);
            h3_13 = fma(a30.xy, b0.xy, h3_13);
            h0_13 = fma(a00.zw, b0.zw, h0_13);
            h1_13 = fma(a10.zw, b0.zw, h1_13);
            h2_13 = fma(a20.zw, b0.zw, h2_13);
            h3_13 = fma(a30.zw, b0.zw, h3_13);
            h0_13 = fma(a01.xy, b1.xy, h0_13);
            h1_13 = fma(a11.xy, b1.xy, h1_13);
            h2_13 = fma(a21.xy, b1.xy, h2_13);
            h3_13 = fma(a31.xy, b1.xy, h3_13);
            h0_13 = fma(a01.zw, b1.zw, h0_13);
            h1_13 = fma(a11.zw, b1.zw, h1_13);
            h2_13 = fma(a21.zw, b1.zw, h2_13);
            h3_13 = fma(a31.zw, b1.zw, h3_13);
            }
            {
            let b0 = xs[((tc + 112u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 112u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_14 = fma(a00.xy, b0.xy, h0_14);
            h1_14 = fma(a10.xy, b0.xy, h1_14);
            h2_14 = fma(a20.xy, b0.xy, h2_14);
            h3_14 = fma(a30.xy, b0.xy, h3_14);
            h0_14 = fma(a00.zw, b0.zw, h0_14);
            h1_14 = fma(a10.zw, b0.zw, h1_14);
            h2_14 = fma(a20.zw, b0.zw, h2_14);
            h3_14 = fma(a30.zw, b0.zw, h3_14);
            h0_14 = fma(a01.xy, b1.xy, h0_14);
            h1_14 = fma(a11.xy, b1.xy, h1_14);
            h2_14 = fma(a21.xy, b1.xy, h2_14);
            h3_14 = fma(a31.xy, b1.xy, h3_14);
            h0_14 = fma(a01.zw, b1.zw, h0_14);
            h1_14 = fma(a11.zw, b1.zw, h1_14);
            h2_14 = fma(a21.zw, b1.zw, h2_14);
            h3_14 = fma(a31.zw, b1.zw, h3_14);
            }
            {
            let b0 = xs[((tc + 120u) * 4u + (2u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 120u) * 4u + (2u ^ swc)) * 2u + 1u];
            h0_15 = fma(a00.xy, b0.xy, h0_15);
            h1_15 = fma(a10.xy, b0.xy, h1_15);
            h2_15 = fma(a20.xy, b0.xy, h2_15);
            h3_15 = fma(a30.xy, b0.xy, h3_15);
            h0_15 = fma(a00.zw, b0.zw, h0_15);
            h1_15 = fma(a10.zw, b0.zw, h1_15);
            h2_15 = fma(a20.zw, b0.zw, h2_15);
            h3_15 = fma(a30.zw, b0.zw, h3_15);
            h0_15 = fma(a01.xy, b1.xy, h0_15);
            h1_15 = fma(a11.xy, b1.xy, h1_15);
            h2_15 = fma(a21.xy, b1.xy, h2_15);
            h3_15 = fma(a31.xy, b1.xy, h3_15);
            h0_15 = fma(a01.zw, b1.zw, h0_15);
            h1_15 = fma(a11.zw, b1.zw, h1_15);
            h2_15 = fma(a21.zw, b1.zw, h2_15);
            h3_15 = fma(a31.zw, b1.zw, h3_15);
            }

        }
        {
            let a00 = ws[((tr + 0u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a01 = ws[((tr + 0u) * 4u + (3u ^ swr)) * 2u + 1u];
            let a10 = ws[((tr + 32u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a11 = ws[((tr + 32u) * 4u + (3u ^ swr)) * 2u + 1u];
            let a20 = ws[((tr + 64u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a21 = ws[((tr + 64u) * 4u + (3u ^ swr)) * 2u + 1u];
            let a30 = ws[((tr + 96u) * 4u + (3u ^ swr)) * 2u + 0u];
            let a31 = ws[((tr + 96u) * 4u + (3u ^ swr)) * 2u + 1u];
            {
            let b0 = xs[((tc + 0u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 0u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_0 = fma(a00.xy, b0.xy, h0_0);
            h1_0 = fma(a10.xy, b0.xy, h1_0);
            h2_0 = fma(a20.xy, b0.xy, h2_0);
            h3_0 = fma(a30.xy, b0.xy, h3_0);
            h0_0 = fma(a00.zw, b0.zw, h0_0);
            h1_0 = fma(a10.zw, b0.zw, h1_0);
            h2_0 = fma(a20.zw, b0.zw, h2_0);
            h3_0 = fma(a30.zw, b0.zw, h3_0);
            h0_0 = fma(a01.xy, b1.xy, h0_0);
            h1_0 = fma(a11.xy, b1.xy, h1_0);
            h2_0 = fma(a21.xy, b1.xy, h2_0);
            h3_0 = fma(a31.xy, b1.xy, h3_0);
            h0_0 = fma(a01.zw, b1.zw, h0_0);
            h1_0 = fma(a11.zw, b1.zw, h1_0);
            h2_0 = fma(a21.zw, b1.zw, h2_0);
            h3_0 = fma(a31.zw, b1.zw, h3_0);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 8u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_1 = fma(a00.xy, b0.xy, h0_1);
            h1_1 = fma(a10.xy, b0.xy, h1_1);
            h2_1 = fma(a20.xy, b0.xy, h2_1);
            h3_1 = fma(a30.xy, b0.xy, h3_1);
            h0_1 = fma(a00.zw, b0.zw, h0_1);
            h1_1 = fma(a10.zw, b0.zw, h1_1);
            h2_1 = fma(a20.zw, b0.zw, h2_1);
            h3_1 = fma(a30.zw, b0.zw, h3_1);
            h0_1 = fma(a01.xy, b1.xy, h0_1);
            h1_1 = fma(a11.xy, b1.xy, h1_1);
            h2_1 = fma(a21.xy, b1.xy, h2_1);
            h3_1 = fma(a31.xy, b1.xy, h3_1);
            h0_1 = fma(a01.zw, b1.zw, h0_1);
            h1_1 = fma(a11.zw, b1.zw, h1_1);
            h2_1 = fma(a21.zw, b1.zw, h2_1);
            h3_1 = fma(a31.zw, b1.zw, h3_1);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 16u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_2 = fma(a00.xy, b0.xy, h0_2);
            h1_2 = fma(a10.xy, b0.xy, h1_2);
            h2_2 = fma(a20.xy, b0.xy, h2_2);
            h3_2 = fma(a30.xy, b0.xy, h3_2);
            h0_2 = fma(a00.zw, b0.zw, h0_2);
            h1_2 = fma(a10.zw, b0.zw, h1_2);
            h2_2 = fma(a20.zw, b0.zw, h2_2);
            h3_2 = fma(a30.zw, b0.zw, h3_2);
            h0_2 = fma(a01.xy, b1.xy, h0_2);
            h1_2 = fma(a11.xy, b1.xy, h1_2);
            h2_2 = fma(a21.xy, b1.xy, h2_2);
            h3_2 = fma(a31.xy, b1.xy, h3_2);
            h0_2 = fma(a01.zw, b1.zw, h0_2);
            h1_2 = fma(a11.zw, b1.zw, h1_2);
            h2_2 = fma(a21.zw, b1.zw, h2_2);
            h3_2 = fma(a31.zw, b1.zw, h3_2);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 24u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_3 = fma(a00.xy, b0.xy, h0_3);
            h1_3 = fma(a10.xy, b0.xy, h1_3);
            h2_3 = fma(a20.xy, b0.xy, h2_3);
            h3_3 = fma(a30.xy, b0.xy, h3_3);
            h0_3 = fma(a00.zw, b0.zw, h0_3);
            h1_3 = fma(a10.zw, b0.zw, h1_3);
            h2_3 = fma(a20.zw, b0.zw, h2_3);
            h3_3 = fma(a30.zw, b0.zw, h3_3);
            h0_3 = fma(a01.xy, b1.xy, h0_3);
            h1_3 = fma(a11.xy, b1.xy, h1_3);
            h2_3 = fma(a21.xy, b1.xy, h2_3);
            h3_3 = fma(a31.xy, b1.xy, h3_3);
            h0_3 = fma(a01.zw, b1.zw, h0_3);
            h1_3 = fma(a11.zw, b1.zw, h1_3);
            h2_3 = fma(a21.zw, b1.zw, h2_3);
            h3_3 = fma(a31.zw, b1.zw, h3_3);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 32u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_4 = fma(a00.xy, b0.xy, h0_4);
            h1_4 = fma(a10.xy, b0.xy, h1_4);
            h2_4 = fma(a20.xy, b0.xy, h2_4);
            h3_4 = fma(a30.xy, b0.xy, h3_4);
            h0_4 = fma(a00.zw, b0.zw, h0_4);
            h1_4 = fma(a10.zw, b0.zw, h1_4);
            h2_4 = fma(a20.zw, b0.zw, h2_4);
            h3_4 = fma(a30.zw, b0.zw, h3_4);
            h0_4 = fma(a01.xy, b1.xy, h0_4);
            h1_4 = fma(a11.xy, b1.xy, h1_4);
            h2_4 = fma(a21.xy, b1.xy, h2_4);
            h3_4 = fma(a31.xy, b1.xy, h3_4);
            h0_4 = fma(a01.zw, b1.zw, h0_4);
            h1_4 = fma(a11.zw, b1.zw, h1_4);
            h2_4 = fma(a21.zw, b1.zw, h2_4);
            h3_4 = fma(a31.zw, b1.zw, h3_4);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 40u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_5 = fma(a00.xy, b0.xy, h0_5);
            h1_5 = fma(a10.xy, b0.xy, h1_5);
            h2_5 = fma(a20.xy, b0.xy, h2_5);
            h3_5 = fma(a30.xy, b0.xy, h3_5);
            h0_5 = fma(a00.zw, b0.zw, h0_5);
            h1_5 = fma(a10.zw, b0.zw, h1_5);
            h2_5 = fma(a20.zw, b0.zw, h2_5);
            h3_5 = fma(a30.zw, b0.zw, h3_5);
            h0_5 = fma(a01.xy, b1.xy, h0_5);
            h1_5 = fma(a11.xy, b1.xy, h1_5);
            h2_5 = fma(a21.xy, b1.xy, h2_5);
            h3_5 = fma(a31.xy, b1.xy, h3_5);
            h0_5 = fma(a01.zw, b1.zw, h0_5);
            h1_5 = fma(a11.zw, b1.zw, h1_5);
            h2_5 = fma(a21.zw, b1.zw, h2_5);
            h3_5 = fma(a31.zw, b1.zw, h3_5);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 48u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_6 = fma(a00.xy, b0.xy, h0_6);
            h1_6 = fma(a10.xy, b0.xy, h1_6);
            h2_6 = fma(a20.xy, b0.xy, h2_6);
            h3_6 = fma(a30.xy, b0.xy, h3_6);
            h0_6 = fma(a00.zw, b0.zw, h0_6);
            h1_6 = fma(a10.zw, b0.zw, h1_6);
            h2_6 = fma(a20.zw, b0.zw, h2_6);
            h3_6 = fma(a30.zw, b0.zw, h3_6);
            h0_6 = fma(a01.xy, b1.xy, h0_6);
            h1_6 = fma(a11.xy, b1.xy, h1_6);
            h2_6 = fma(a21.xy, b1.xy, h2_6);
            h3_6 = fma(a31.xy, b1.xy, h3_6);
            h0_6 = fma(a01.zw, b1.zw, h0_6);
            h1_6 = fma(a11.zw, b1.zw, h1_6);
            h2_6 = fma(a21.zw, b1.zw, h2_6);
            h3_6 = fma(a31.zw, b1.zw, h3_6);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 56u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_7 = fma(a00.xy, b0.xy, h0_7);
            h1_7 = fma(a10.xy, b0.xy, h1_7);
            h2_7 = fma(a20.xy, b0.xy, h2_7);
            h3_7 = fma(a30.xy, b0.xy, h3_7);
            h0_7 = fma(a00.zw, b0.zw, h0_7);
            h1_7 = fma(a10.zw, b0.zw, h1_7);
            h2_7 = fma(a20.zw, b0.zw, h2_7);
            h3_7 = fma(a30.zw, b0.zw, h3_7);
            h0_7 = fma(a01.xy, b1.xy, h0_7);
            h1_7 = fma(a11.xy, b1.xy, h1_7);
            h2_7 = fma(a21.xy, b1.xy, h2_7);
            h3_7 = fma(a31.xy, b1.xy, h3_7);
            h0_7 = fma(a01.zw, b1.zw, h0_7);
            h1_7 = fma(a11.zw, b1.zw, h1_7);
            h2_7 = fma(a21.zw, b1.zw, h2_7);
            h3_7 = fma(a31.zw, b1.zw, h3_7);
            }
            {
            let b0 = xs[((tc + 64u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 64u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_8 = fma(a00.xy, b0.xy, h0_8);
            h1_8 = fma(a10.xy, b0.xy, h1_8);
            h2_8 = fma(a20.xy, b0.xy, h2_8);
            h3_8 = fma(a30.xy, b0.xy, h3_8);
            h0_8 = fma(a00.zw, b0.zw, h0_8);
            h1_8 = fma(a10.zw, b0.zw, h1_8);
            h2_8 = fma(a20.zw, b0.zw, h2_8);
            h3_8 = fma(a30.zw, b0.zw, h3_8);
            h0_8 = fma(a01.xy, b1.xy, h0_8);
            h1_8 = fma(a11.xy, b1.xy, h1_8);
            h2_8 = fma(a21.xy, b1.xy, h2_8);
            h3_8 = fma(a31.xy, b1.xy, h3_8);
            h0_8 = fma(a01.zw, b1.zw, h0_8);
            h1_8 = fma(a11.zw, b1.zw, h1_8);
            h2_8 = fma(a21.zw, b1.zw, h2_8);
            h3_8 = fma(a31.zw, b1.zw, h3_8);
            }
            {
            let b0 = xs[((tc + 72u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 72u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_9 = fma(a00.xy, b0.xy, h0_9);
            h1_9 = fma(a10.xy, b0.xy, h1_9);
            h2_9 = fma(a20.xy, b0.xy, h2_9);
            h3_9 = fma(a30.xy, b0.xy, h3_9);
            h0_9 = fma(a00.zw, b0.zw, h0_9);
            h1_9 = fma(a10.zw, b0.zw, h1_9);
            h2_9 = fma(a20.zw, b0.zw, h2_9);
            h3_9 = fma(a30.zw, b0.zw, h3_9);
            h0_9 = fma(a01.xy, b1.xy, h0_9);
            h1_9 = fma(a11.xy, b1.xy, h1_9);
            h2_9 = fma(a21.xy, b1.xy, h2_9);
            h3_9 = fma(a31.xy, b1.xy, h3_9);
            h0_9 = fma(a01.zw, b1.zw, h0_9);
            h1_9 = fma(a11.zw, b1.zw, h1_9);
            h2_9 = fma(a21.zw, b1.zw, h2_9);
            h3_9 = fma(a31.zw, b1.zw, h3_9);
            }
            {
            let b0 = xs[((tc + 80u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 80u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_10 = fma(a00.xy, b0.xy, h0_10);
            h1_10 = fma(a10.xy, b0.xy, h1_10);
            h2_10 = fma(a20.xy, b0.xy, h2_10);
            h3_10 = fma(a30.xy, b0.xy, h3_10);
            h0_10 = fma(a00.zw, b0.zw, h0_10);
            h1_10 = fma(a10.zw, b0.zw, h1_10);
            h2_10 = fma(a20.zw, b0.zw, h2_10);
            h3_10 = fma(a30.zw, b0.zw, h3_10);
            h0_10 = fma(a01.xy, b1.xy, h0_10);
            h1_10 = fma(a11.xy, b1.xy, h1_10);
            h2_10 = fma(a21.xy, b1.xy, h2_10);
            h3_10 = fma(a31.xy, b1.xy, h3_10);
            h0_10 = fma(a01.zw, b1.zw, h0_10);
            h1_10 = fma(a11.zw, b1.zw, h1_10);
            h2_10 = fma(a21.zw, b1.zw, h2_10);
            h3_10 = fma(a31.zw, b1.zw, h3_10);
            }
            {
            let b0 = xs[((tc + 88u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 88u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_11 = fma(a00.xy, b0.xy, h0_11);
            h1_11 = fma(a10.xy, b0.xy, h1_11);
            h2_11 = fma(a20.xy, b0.xy, h2_11);
            h3_11 = fma(a30.xy, b0.xy, h3_11);
            h0_11 = fma(a00.zw, b0.zw, h0_11);
            h1_11 = fma(a10.zw, b0.zw, h1_11);
            h2_11 = fma(a20.zw, b0.zw, h2_11);
            h3_11 = fma(a30.zw, b0.zw, h3_11);
            h0_11 = fma(a01.xy, b1.xy, h0_11);
            h1_11 = fma(a11.xy, b1.xy, h1_11);
            h2_11 = fma(a21.xy, b1.xy, h2_11);
            h3_11 = fma(a31.xy, b1.xy, h3_11);
            h0_11 = fma(a01.zw, b1.zw, h0_11);
            h1_11 = fma(a11.zw, b1.zw, h1_11);
            h2_11 = fma(a21.zw, b1.zw, h2_11);
            h3_11 = fma(a31.zw, b1.zw, h3_11);
            }
            {
            let b0 = xs[((tc + 96u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 96u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_12 = fma(a00.xy, b0.xy, h0_12);
            h1_12 = fma(a10.xy, b0.xy, h1_12);
            h2_12 = fma(a20.xy, b0.xy, h2_12);
            h3_12 = fma(a30.xy, b0.xy, h3_12);
            h0_12 = fma(a00.zw, b0.zw, h0_12);
            h1_12 = fma(a10.zw, b0.zw, h1_12);
            h2_12 = fma(a20.zw, b0.zw, h2_12);
            h3_12 = fma(a30.zw, b0.zw, h3_12);
            h0_12 = fma(a01.xy, b1.xy, h0_12);
            h1_12 = fma(a11.xy, b1.xy, h1_12);
            h2_12 = fma(a21.xy, b1.xy, h2_12);
            h3_12 = fma(a31.xy, b1.xy, h3_12);
            h0_12 = fma(a01.zw, b1.zw, h0_12);
            h1_12 = fma(a11.zw, b1.zw, h1_12);
            h2_12 = fma(a21.zw, b1.zw, h2_12);
            h3_12 = fma(a31.zw, b1.zw, h3_12);
            }
            {
            let b0 = xs[((tc + 104u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 104u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_13 = fma(a00.xy, b0.xy, h0_13);
            h1_13 = fma(a10.xy, b0.xy, h1_13);
            h2_13 = fma(a20.xy, b0.xy, h2_13);
            h3_13 = fma(a30.xy, b0.xy, h3_13);
            h0_13 = fma(a00.zw, b0.zw, h0_13);
            h1_13 = fma(a10.zw, b0.zw, h1_13);
            h2_13 = fma(a20.zw, b0.zw, h2_13);
            h3_13 = fma(a30.zw, b0.zw, h3_13);
            h0_13 = fma(a01.xy, b1.xy, h0_13);
            h1_13 = fma(a11.xy, b1.xy, h1_13);
            h2_13 = fma(a21.xy, b1.xy, h2_13);
            h3_13 = fma(a31.xy, b1.xy, h3_13);
            h0_13 = fma(a01.zw, b1.zw, h0_13);
            h1_13 = fma(a11.zw, b1.zw, h1_13);
            h2_13 = fma(a21.zw, b1.zw, h2_13);
            h3_13 = fma(a31.zw, b1.zw, h3_13);
            }
            {
            let b0 = xs[((tc + 112u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 112u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_14 = fma(a00.xy, b0.xy, h0_14);
            h1_14 = fma(a10.xy, b0.xy, h1_14);
            h2_14 = fma(a20.xy, b0.xy, h2_14);
            h3_14 = fma(a30.xy, b0.xy, h3_14);
            h0_14 = fma(a00.zw, b0.zw, h0_14);
            h1_14 = fma(a10.zw, b0.zw, h1_14);
            h2_14 = fma(a20.zw, b0.zw, h2_14);
            h3_14 = fma(a30.zw, b0.zw, h3_14);
            h0_14 = fma(a01.xy, b1.xy, h0_14);
            h1_14 = fma(a11.xy, b1.xy, h1_14);
            h2_14 = fma(a21.xy, b1.xy, h2_14);
            h3_14 = fma(a31.xy, b1.xy, h3_14);
            h0_14 = fma(a01.zw, b1.zw, h0_14);
            h1_14 = fma(a11.zw, b1.zw, h1_14);
            h2_14 = fma(a21.zw, b1.zw, h2_14);
            h3_14 = fma(a31.zw, b1.zw, h3_14);
            }
            {
            let b0 = xs[((tc + 120u) * 4u + (3u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 120u) * 4u + (3u ^ swc)) * 2u + 1u];
            h0_15 = fma(a00.xy, b0.xy, h0_15);
            h1_15 = fma(a10.xy, b0.xy, h1_15);
            h2_15 = fma(a20.xy, b0.xy, h2_15);
            h3_15 = fma(a30.xy, b0.xy, h3_15);
            h0_15 = fma(a00.zw, b0.zw, h0_15);
            h1_15 = fma(a10.zw, b0.zw, h1_15);
            h2_15 = fma(a20.zw, b0.zw, h2_15);
            h3_15 = fma(a30.zw, b0.zw, h3_15);
            h0_15 = fma(a01.xy, b1.xy, h0_15);
            h1_15 = fma(a11.xy, b1.xy, h1_15);
            h2_15 = fma(a21.xy, b1.xy, h2_15);
            h3_15 = fma(a31.xy, b1.xy, h3_15);
            h0_15 = fma(a01.zw, b1.zw, h0_15);
            h1_15 = fma(a11.zw, b1.zw, h1_15);
            h2_15 = fma(a21.zw, b1.zw, h2_15);
            h3_15 = fma(a31.zw, b1.zw, h3_15);
            }

        }
        c0_0 += f32(h0_0.x) + f32(h0_0.y);
        c0_1 += f32(h0_1.x) + f32(h0_1.y);
        c0_2 += f32(h0_2.x) + f32(h0_2.y);
        c0_3 += f32(h0_3.x) + f32(h0_3.y);
        c0_4 += f32(h0_4.x) + f32(h0_4.y);
        c0_5 += f32(h0_5.x) + f32(h0_5.y);
        c0_6 += f32(h0_6.x) + f32(h0_6.y);
        c0_7 += f32(h0_7.x) + f32(h0_7.y);
        c0_8 += f32(h0_8.x) + f32(h0_8.y);
        c0_9 += f32(h0_9.x) + f32(h0_9.y);
        c0_10 += f32(h0_10.x) + f32(h0_10.y);
        c0_11 += f32(h0_11.x) + f32(h0_11.y);
        c0_12 += f32(h0_12.x) + f32(h0_12.y);
        c0_13 += f32(h0_13.x) + f32(h0_13.y);
        c0_14 += f32(h0_14.x) + f32(h0_14.y);
        c0_15 += f32(h0_15.x) + f32(h0_15.y);
        c1_0 += f32(h1_0.x) + f32(h1_0.y);
        c1_1 += f32(h1_1.x) + f32(h1_1.y);
        c1_2 += f32(h1_2.x) + f32(h1_2.y);
        c1_3 += f32(h1_3.x) + f32(h1_3.y);
        c1_4 += f32(h1_4.x) + f32(h1_4.y);
        c1_5 += f32(h1_5.x) + f32(h1_5.y);
        c1_6 += f32(h1_6.x) + f32(h1_6.y);
        c1_7 += f32(h1_7.x) + f32(h1_7.y);
        c1_8 += f32(h1_8.x) + f32(h1_8.y);
        c1_9 += f32(h1_9.x) + f32(h1_9.y);
        c1_10 += f32(h1_10.x) + f32(h1_10.y);
        c1_11 += f32(h1_11.x) + f32(h1_11.y);
        c1_12 += f32(h1_12.x) + f32(h1_12.y);
        c1_13 += f32(h1_13.x) + f32(h1_13.y);
        c1_14 += f32(h1_14.x) + f32(h1_14.y);
        c1_15 += f32(h1_15.x) + f32(h1_15.y);
        c2_0 += f32(h2_0.x) + f32(h2_0.y);
        c2_1 += f32(h2_1.x) + f32(h2_1.y);
        c2_2 += f32(h2_2.x) + f32(h2_2.y);
        c2_3 += f32(h2_3.x) + f32(h2_3.y);
        c2_4 += f32(h2_4.x) + f32(h2_4.y);
        c2_5 += f32(h2_5.x) + f32(h2_5.y);
        c2_6 += f32(h2_6.x) + f32(h2_6.y);
        c2_7 += f32(h2_7.x) + f32(h2_7.y);
        c2_8 += f32(h2_8.x) + f32(h2_8.y);
        c2_9 += f32(h2_9.x) + f32(h2_9.y);
        c2_10 += f32(h2_10.x) + f32(h2_10.y);
        c2_11 += f32(h2_11.x) + f32(h2_11.y);
        c2_12 += f32(h2_12.x) + f32(h2_12.y);
        c2_13 += f32(h2_13.x) + f32(h2_13.y);
        c2_14 += f32(h2_14.x) + f32(h2_14.y);
        c2_15 += f32(h2_15.x) + f32(h2_15.y);
        c3_0 += f32(h3_0.x) + f32(h3_0.y);
        c3_1 += f32(h3_1.x) + f32(h3_1.y);
        c3_2 += f32(h3_2.x) + f32(h3_2.y);
        c3_3 += f32(h3_3.x) + f32(h3_3.y);
        c3_4 += f32(h3_4.x) + f32(h3_4.y);
        c3_5 += f32(h3_5.x) + f32(h3_5.y);
        c3_6 += f32(h3_6.x) + f32(h3_6.y);
        c3_7 += f32(h3_7.x) + f32(h3_7.y);
        c3_8 += f32(h3_8.x) + f32(h3_8.y);
        c3_9 += f32(h3_9.x) + f32(h3_9.y);
        c3_10 += f32(h3_10.x) + f32(h3_10.y);
        c3_11 += f32(h3_11.x) + f32(h3_11.y);
        c3_12 += f32(h3_12.x) + f32(h3_12.y);
        c3_13 += f32(h3_13.x) + f32(h3_13.y);
        c3_14 += f32(h3_14.x) + f32(h3_14.y);
        c3_15 += f32(h3_15.x) + f32(h3_15.y);
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
            y[(col0 + tc + 0u) * LDY + Y0 + row] = c0_0 * scale + bias;
        }
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] = c0_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] = c0_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] = c0_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] = c0_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] = c0_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] = c0_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] = c0_7 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] = c0_8 * scale + bias;
        }
        if (col0 + tc + 72u < n_col) {
            y[(col0 + tc + 72u) * LDY + Y0 + row] = c0_9 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] = c0_10 * scale + bias;
        }
        if (col0 + tc + 88u < n_col) {
            y[(col0 + tc + 88u) * LDY + Y0 + row] = c0_11 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] = c0_12 * scale + bias;
        }
        if (col0 + tc + 104u < n_col) {
            y[(col0 + tc + 104u) * LDY + Y0 + row] = c0_13 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] = c0_14 * scale + bias;
        }
        if (col0 + tc + 120u < n_col) {
            y[(col0 + tc + 120u) * LDY + Y0 + row] = c0_15 * scale + bias;
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
            y[(col0 + tc + 0u) * LDY + Y0 + row] = c1_0 * scale + bias;
        }
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] = c1_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] = c1_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] = c1_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] = c1_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] = c1_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] = c1_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] = c1_7 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] = c1_8 * scale + bias;
        }
        if (col0 + tc + 72u < n_col) {
            y[(col0 + tc + 72u) * LDY + Y0 + row] = c1_9 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] = c1_10 * scale + bias;
        }
        if (col0 + tc + 88u < n_col) {
            y[(col0 + tc + 88u) * LDY + Y0 + row] = c1_11 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] = c1_12 * scale + bias;
        }
        if (col0 + tc + 104u < n_col) {
            y[(col0 + tc + 104u) * LDY + Y0 + row] = c1_13 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] = c1_14 * scale + bias;
        }
        if (col0 + tc + 120u < n_col) {
            y[(col0 + tc + 120u) * LDY + Y0 + row] = c1_15 * scale + bias;
        }
    }
    if (row0 + tr + 64u < M) {
        let row = row0 + tr + 64u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] = c2_0 * scale + bias;
        }
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] = c2_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] = c2_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] = c2_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] = c2_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] = c2_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] = c2_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] = c2_7 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] = c2_8 * scale + bias;
        }
        if (col0 + tc + 72u < n_col) {
            y[(col0 + tc + 72u) * LDY + Y0 + row] = c2_9 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] = c2_10 * scale + bias;
        }
        if (col0 + tc + 88u < n_col) {
            y[(col0 + tc + 88u) * LDY + Y0 + row] = c2_11 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] = c2_12 * scale + bias;
        }
        if (col0 + tc + 104u < n_col) {
            y[(col0 + tc + 104u) * LDY + Y0 + row] = c2_13 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] = c2_14 * scale + bias;
        }
        if (col0 + tc + 120u < n_col) {
            y[(col0 + tc + 120u) * LDY + Y0 + row] = c2_15 * scale + bias;
        }
    }
    if (row0 + tr + 96u < M) {
        let row = row0 + tr + 96u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] = c3_0 * scale + bias;
        }
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] = c3_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] = c3_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] = c3_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] = c3_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] = c3_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] = c3_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] = c3_7 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] = c3_8 * scale + bias;
        }
        if (col0 + tc + 72u < n_col) {
            y[(col0 + tc + 72u) * LDY + Y0 + row] = c3_9 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] = c3_10 * scale + bias;
        }
        if (col0 + tc + 88u < n_col) {
            y[(col0 + tc + 88u) * LDY + Y0 + row] = c3_11 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] = c3_12 * scale + bias;
        }
        if (col0 + tc + 104u < n_col) {
            y[(col0 + tc + 104u) * LDY + Y0 + row] = c3_13 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] = c3_14 * scale + bias;
        }
        if (col0 + tc + 120u < n_col) {
            y[(col0 + tc + 120u) * LDY + Y0 + row] = c3_15 * scale + bias;
        }
    }
}
