// mul_mat: a=bf16 epi=add tile=f32 side=128
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
    let v = w[b];
    let p = select(v.xy, v.zw, (e & 4u) != 0u);
    return bitcast<vec4<f32>>(vec4<u32>(p.x << 16u, p.x & 0xffff0000u, p.y << 16u, p.y & 0xffff0000u));
}

var<workgroup> ws: array<vec4<f32>, 512>;
var<workgroup> xs: array<vec4<f32>, 512>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let n_col = step[0];
    let row0 = group.y * 128u;
    let col0 = group.x * 128u;
    let tr = tid % 8u;
    let tc = tid / 8u;
    let swr = (tr >> 1u) & 3u;
    let swc = (tc >> 1u) & 3u;
    // What lies ahead: loaded while the tile before it is multiplied.
    var w00: vec4<f32>;
    var x00: vec4<f32>;
    var w01: vec4<f32>;
    var x01: vec4<f32>;
    var w02: vec4<f32>;
    var x02: vec4<f32>;
    var w03: vec4<f32>;
    var x03: vec4<f32>;
    var c0_0 = 0.0;
    var c0_1 = 0.0;
    var c0_2 = 0.0;
    var c0_3 = 0.0;
    var c0_4 = 0.0;
    var c0_5 = 0.0;
    var c0_6 = 0.0;
    var c0_7 = 0.0;
    var c1_0 = 0.0;
    var c1_1 = 0.0;
    var c1_2 = 0.0;
    var c1_3 = 0.0;
    var c1_4 = 0.0;
    var c1_5 = 0.0;
    var c1_6 = 0.0;
    var c1_7 = 0.0;
    var c2_0 = 0.0;
    var c2_1 = 0.0;
    var c2_2 = 0.0;
    var c2_3 = 0.0;
    var c2_4 = 0.0;
    var c2_5 = 0.0;
    var c2_6 = 0.0;
    var c2_7 = 0.0;
    var c3_0 = 0.0;
    var c3_1 = 0.0;
    var c3_2 = 0.0;
    var c3_3 = 0.0;
    var c3_4 = 0.0;
    var c3_5 = 0.0;
    var c3_6 = 0.0;
    var c3_7 = 0.0;
    var c4_0 = 0.0;
    var c4_1 = 0.0;
    var c4_2 = 0.0;
    var c4_3 = 0.0;
    var c4_4 = 0.0;
    var c4_5 = 0.0;
    var c4_6 = 0.0;
    var c4_7 = 0.0;
    var c5_0 = 0.0;
    var c5_1 = 0.0;
    var c5_2 = 0.0;
    var c5_3 = 0.0;
    var c5_4 = 0.0;
    var c5_5 = 0.0;
    var c5_6 = 0.0;
    var c5_7 = 0.0;
    var c6_0 = 0.0;
    var c6_1 = 0.0;
    var c6_2 = 0.0;
    var c6_3 = 0.0;
    var c6_4 = 0.0;
    var c6_5 = 0.0;
    var c6_6 = 0.0;
    var c6_7 = 0.0;
    var c7_0 = 0.0;
    var c7_1 = 0.0;
    var c7_2 = 0.0;
    var c7_3 = 0.0;
    var c7_4 = 0.0;
    var c7_5 = 0.0;
    var c7_6 = 0.0;
    var c7_7 = 0.0;
    var c8_0 = 0.0;
    var c8_1 = 0.0;
    var c8_2 = 0.0;
    var c8_3 = 0.0;
    var c8_4 = 0.0;
    var c8_5 = 0.0;
    var c8_6 = 0.0;
    var c8_7 = 0.0;
    var c9_0 = 0.0;
    var c9_1 = 0.0;
    var c9_2 = 0.0;
    var c9_3 = 0.0;
    var c9_4 = 0.0;
    var c9_5 = 0.0;
    var c9_6 = 0.0;
    var c9_7 = 0.0;
    var c10_0 = 0.0;
    var c10_1 = 0.0;
    var c10_2 = 0.0;
    var c10_3 = 0.0;
    var c10_4 = 0.0;
    var c10_5 = 0.0;
    var c10_6 = 0.0;
    var c10_7 = 0.0;
    var c11_0 = 0.0;
    var c11_1 = 0.0;
    var c11_2 = 0.0;
    var c11_3 = 0.0;
    var c11_4 = 0.0;
    var c11_5 = 0.0;
    var c11_6 = 0.0;
    var c11_7 = 0.0;
    var c12_0 = 0.0;
    var c12_1 = 0.0;
    var c12_2 = 0.0;
    var c12_3 = 0.0;
    var c12_4 = 0.0;
    var c12_5 = 0.0;
    var c12_6 = 0.0;
    var c12_7 = 0.0;
    var c13_0 = 0.0;
    var c13_1 = 0.0;
    var c13_2 = 0.0;
    var c13_3 = 0.0;
    var c13_4 = 0.0;
    var c13_5 = 0.0;
    var c13_6 = 0.0;
    var c13_7 = 0.0;
    var c14_0 = 0.0;
    var c14_1 = 0.0;
    var c14_2 = 0.0;
    var c14_3 = 0.0;
    var c14_4 = 0.0;
    var c14_5 = 0.0;
    var c14_6 = 0.0;
    var c14_7 = 0.0;
    var c15_0 = 0.0;
    var c15_1 = 0.0;
    var c15_2 = 0.0;
    var c15_3 = 0.0;
    var c15_4 = 0.0;
    var c15_5 = 0.0;
    var c15_6 = 0.0;
    var c15_7 = 0.0;
        {
            let i = tid + 0u;
            let r = i % 128u;
            let k = (i / 128u) * 16u;

            let kw = 0u + k;
            let row = min(row0 + r, M - 1u) * BLOCKS;
            let at = (min(col0 + r, n_col - 1u) * LDX + kw) / 4u;
            if (RAGGED) {
                w00 = vec4<f32>();
                x00 = vec4<f32>();
                if (kw + 0u < K) {
                    w00 = vec4<f32>(w_load4(row + (kw + 0u) / 8u, (kw + 0u) % 8u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x00 = vec4<f32>(select(x[at + 0u], vec4<f32>(), past));
                }
                w01 = vec4<f32>();
                x01 = vec4<f32>();
                if (kw + 4u < K) {
                    w01 = vec4<f32>(w_load4(row + (kw + 4u) / 8u, (kw + 4u) % 8u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x01 = vec4<f32>(select(x[at + 1u], vec4<f32>(), past));
                }
                w02 = vec4<f32>();
                x02 = vec4<f32>();
                if (kw + 8u < K) {
                    w02 = vec4<f32>(w_load4(row + (kw + 8u) / 8u, (kw + 8u) % 8u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x02 = vec4<f32>(select(x[at + 2u], vec4<f32>(), past));
                }
                w03 = vec4<f32>();
                x03 = vec4<f32>();
                if (kw + 12u < K) {
                    w03 = vec4<f32>(w_load4(row + (kw + 12u) / 8u, (kw + 12u) % 8u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x03 = vec4<f32>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 8u;
                let e = kw % 8u;
let vq0 = w[b + (e >> 3u)];
let vq1 = w[b + (e >> 3u) + 1u];

let v0 = bitcast<vec4<f32>>(vec4<u32>(vq0.x << 16u, vq0.x & 0xffff0000u, vq0.y << 16u, vq0.y & 0xffff0000u));
let v1 = bitcast<vec4<f32>>(vec4<u32>(vq0.z << 16u, vq0.z & 0xffff0000u, vq0.w << 16u, vq0.w & 0xffff0000u));
let v2 = bitcast<vec4<f32>>(vec4<u32>(vq1.x << 16u, vq1.x & 0xffff0000u, vq1.y << 16u, vq1.y & 0xffff0000u));
let v3 = bitcast<vec4<f32>>(vec4<u32>(vq1.z << 16u, vq1.z & 0xffff0000u, vq1.w << 16u, vq1.w & 0xffff0000u));

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

    for (var k0 = 0u; k0 < K; k0 += 16u) {
        {
            let i = tid + 0u;
            let r = i % 128u;
            let k = (i / 128u) * 16u;

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
        if (k1 < K) {
        {
            let i = tid + 0u;
            let r = i % 128u;
            let k = (i / 128u) * 16u;

            let kw = k1 + k;
            let row = min(row0 + r, M - 1u) * BLOCKS;
            let at = (min(col0 + r, n_col - 1u) * LDX + kw) / 4u;
            if (RAGGED) {
                w00 = vec4<f32>();
                x00 = vec4<f32>();
                if (kw + 0u < K) {
                    w00 = vec4<f32>(w_load4(row + (kw + 0u) / 8u, (kw + 0u) % 8u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x00 = vec4<f32>(select(x[at + 0u], vec4<f32>(), past));
                }
                w01 = vec4<f32>();
                x01 = vec4<f32>();
                if (kw + 4u < K) {
                    w01 = vec4<f32>(w_load4(row + (kw + 4u) / 8u, (kw + 4u) % 8u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x01 = vec4<f32>(select(x[at + 1u], vec4<f32>(), past));
                }
                w02 = vec4<f32>();
                x02 = vec4<f32>();
                if (kw + 8u < K) {
                    w02 = vec4<f32>(w_load4(row + (kw + 8u) / 8u, (kw + 8u) % 8u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x02 = vec4<f32>(select(x[at + 2u], vec4<f32>(), past));
                }
                w03 = vec4<f32>();
                x03 = vec4<f32>();
                if (kw + 12u < K) {
                    w03 = vec4<f32>(w_load4(row + (kw + 12u) / 8u, (kw + 12u) % 8u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x03 = vec4<f32>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 8u;
                let e = kw % 8u;
let vq0 = w[b + (e >> 3u)];
let vq1 = w[b + (e >> 3u) + 1u];

let v0 = bitcast<vec4<f32>>(vec4<u32>(vq0.x << 16u, vq0.x & 0xffff0000u, vq0.y << 16u, vq0.y & 0xffff0000u));
let v1 = bitcast<vec4<f32>>(vec4<u32>(vq0.z << 16u, vq0.z & 0xffff0000u, vq0.w << 16u, vq0.w & 0xffff0000u));
let v2 = bitcast<vec4<f32>>(vec4<u32>(vq1.x << 16u, vq1.x & 0xffff0000u, vq1.y << 16u, vq1.y & 0xffff0000u));
let v3 = bitcast<vec4<f32>>(vec4<u32>(vq1.z << 16u, vq1.z & 0xffff0000u, vq1.w << 16u, vq1.w & 0xffff0000u));

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
            let a80 = ws[((tr + 64u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a90 = ws[((tr + 72u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a100 = ws[((tr + 80u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a110 = ws[((tr + 88u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a120 = ws[((tr + 96u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a130 = ws[((tr + 104u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a140 = ws[((tr + 112u) * 4u + (0u ^ swr)) * 1u + 0u];
            let a150 = ws[((tr + 120u) * 4u + (0u ^ swr)) * 1u + 0u];
            {
            let b0 = xs[((tc + 0u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_0 = fma(a00.x, b0.x, c0_0);
            c1_0 = fma(a10.x, b0.x, c1_0);
            c2_0 = fma(a20.x, b0.x, c2_0);
            c3_0 = fma(a30.x, b0.x, c3_0);
            c4_0 = fma(a40.x, b0.x, c4_0);
            c5_0 = fma(a50.x, b0.x, c5_0);
            c6_0 = fma(a60.x, b0.x, c6_0);
            c7_0 = fma(a70.x, b0.x, c7_0);
            c8_0 = fma(a80.x, b0.x, c8_0);
            c9_0 = fma(a90.x, b0.x, c9_0);
            c10_0 = fma(a100.x, b0.x, c10_0);
            c11_0 = fma(a110.x, b0.x, c11_0);
            c12_0 = fma(a120.x, b0.x, c12_0);
            c13_0 = fma(a130.x, b0.x, c13_0);
            c14_0 = fma(a140.x, b0.x, c14_0);
            c15_0 = fma(a150.x, b0.x, c15_0);
            c0_0 = fma(a00.y, b0.y, c0_0);
            c1_0 = fma(a10.y, b0.y, c1_0);
            c2_0 = fma(a20.y, b0.y, c2_0);
            c3_0 = fma(a30.y, b0.y, c3_0);
            c4_0 = fma(a40.y, b0.y, c4_0);
            c5_0 = fma(a50.y, b0.y, c5_0);
            c6_0 = fma(a60.y, b0.y, c6_0);
            c7_0 = fma(a70.y, b0.y, c7_0);
            c8_0 = fma(a80.y, b0.y, c8_0);
            c9_0 = fma(a90.y, b0.y, c9_0);
            c10_0 = fma(a100.y, b0.y, c10_0);
            c11_0 = fma(a110.y, b0.y, c11_0);
            c12_0 = fma(a120.y, b0.y, c12_0);
            c13_0 = fma(a130.y, b0.y, c13_0);
            c14_0 = fma(a140.y, b0.y, c14_0);
            c15_0 = fma(a150.y, b0.y, c15_0);
            c0_0 = fma(a00.z, b0.z, c0_0);
            c1_0 = fma(a10.z, b0.z, c1_0);
            c2_0 = fma(a20.z, b0.z, c2_0);
            c3_0 = fma(a30.z, b0.z, c3_0);
            c4_0 = fma(a40.z, b0.z, c4_0);
            c5_0 = fma(a50.z, b0.z, c5_0);
            c6_0 = fma(a60.z, b0.z, c6_0);
            c7_0 = fma(a70.z, b0.z, c7_0);
            c8_0 = fma(a80.z, b0.z, c8_0);
            c9_0 = fma(a90.z, b0.z, c9_0);
            c10_0 = fma(a100.z, b0.z, c10_0);
            c11_0 = fma(a110.z, b0.z, c11_0);
            c12_0 = fma(a120.z, b0.z, c12_0);
            c13_0 = fma(a130.z, b0.z, c13_0);
            c14_0 = fma(a140.z, b0.z, c14_0);
            c15_0 = fma(a150.z, b0.z, c15_0);
            c0_0 = fma(a00.w, b0.w, c0_0);
            c1_0 = fma(a10.w, b0.w, c1_0);
            c2_0 = fma(a20.w, b0.w, c2_0);
            c3_0 = fma(a30.w, b0.w, c3_0);
            c4_0 = fma(a40.w, b0.w, c4_0);
            c5_0 = fma(a50.w, b0.w, c5_0);
            c6_0 = fma(a60.w, b0.w, c6_0);
            c7_0 = fma(a70.w, b0.w, c7_0);
            c8_0 = fma(a80.w, b0.w, c8_0);
            c9_0 = fma(a90.w, b0.w, c9_0);
            c10_0 = fma(a100.w, b0.w, c10_0);
            c11_0 = fma(a110.w, b0.w, c11_0);
            c12_0 = fma(a120.w, b0.w, c12_0);
            c13_0 = fma(a130.w, b0.w, c13_0);
            c14_0 = fma(a140.w, b0.w, c14_0);
            c15_0 = fma(a150.w, b0.w, c15_0);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_1 = fma(a00.x, b0.x, c0_1);
            c1_1 = fma(a10.x, b0.x, c1_1);
            c2_1 = fma(a20.x, b0.x, c2_1);
            c3_1 = fma(a30.x, b0.x, c3_1);
            c4_1 = fma(a40.x, b0.x, c4_1);
            c5_1 = fma(a50.x, b0.x, c5_1);
            c6_1 = fma(a60.x, b0.x, c6_1);
            c7_1 = fma(a70.x, b0.x, c7_1);
            c8_1 = fma(a80.x, b0.x, c8_1);
            c9_1 = fma(a90.x, b0.x, c9_1);
            c10_1 = fma(a100.x, b0.x, c10_1);
            c11_1 = fma(a110.x, b0.x, c11_1);
            c12_1 = fma(a120.x, b0.x, c12_1);
            c13_1 = fma(a130.x, b0.x, c13_1);
            c14_1 = fma(a140.x, b0.x, c14_1);
            c15_1 = fma(a150.x, b0.x, c15_1);
            c0_1 = fma(a00.y, b0.y, c0_1);
            c1_1 = fma(a10.y, b0.y, c1_1);
            c2_1 = fma(a20.y, b0.y, c2_1);
            c3_1 = fma(a30.y, b0.y, c3_1);
            c4_1 = fma(a40.y, b0.y, c4_1);
            c5_1 = fma(a50.y, b0.y, c5_1);
            c6_1 = fma(a60.y, b0.y, c6_1);
            c7_1 = fma(a70.y, b0.y, c7_1);
            c8_1 = fma(a80.y, b0.y, c8_1);
            c9_1 = fma(a90.y, b0.y, c9_1);
            c10_1 = fma(a100.y, b0.y, c10_1);
            c11_1 = fma(a110.y, b0.y, c11_1);
            c12_1 = fma(a120.y, b0.y, c12_1);
            c13_1 = fma(a130.y, b0.y, c13_1);
            c14_1 = fma(a140.y, b0.y, c14_1);
            c15_1 = fma(a150.y, b0.y, c15_1);
            c0_1 = fma(a00.z, b0.z, c0_1);
            c1_1 = fma(a10.z, b0.z, c1_1);
            c2_1 = fma(a20.z, b0.z, c2_1);
            c3_1 = fma(a30.z, b0.z, c3_1);
            c4_1 = fma(a40.z, b0.z, c4_1);
            c5_1 = fma(a50.z, b0.z, c5_1);
            c6_1 = fma(a60.z, b0.z, c6_1);
            c7_1 = fma(a70.z, b0.z, c7_1);
            c8_1 = fma(a80.z, b0.z, c8_1);
            c9_1 = fma(a90.z, b0.z, c9_1);
            c10_1 = fma(a100.z, b0.z, c10_1);
            c11_1 = fma(a110.z, b0.z, c11_1);
            c12_1 = fma(a120.z, b0.z, c12_1);
            c13_1 = fma(a130.z, b0.z, c13_1);
            c14_1 = fma(a140.z, b0.z, c14_1);
            c15_1 = fma(a150.z, b0.z, c15_1);
            c0_1 = fma(a00.w, b0.w, c0_1);
            c1_1 = fma(a10.w, b0.w, c1_1);
            c2_1 = fma(a20.w, b0.w, c2_1);
            c3_1 = fma(a30.w, b0.w, c3_1);
            c4_1 = fma(a40.w, b0.w, c4_1);
            c5_1 = fma(a50.w, b0.w, c5_1);
            c6_1 = fma(a60.w, b0.w, c6_1);
            c7_1 = fma(a70.w, b0.w, c7_1);
            c8_1 = fma(a80.w, b0.w, c8_1);
            c9_1 = fma(a90.w, b0.w, c9_1);
            c10_1 = fma(a100.w, b0.w, c10_1);
            c11_1 = fma(a110.w, b0.w, c11_1);
            c12_1 = fma(a120.w, b0.w, c12_1);
            c13_1 = fma(a130.w, b0.w, c13_1);
            c14_1 = fma(a140.w, b0.w, c14_1);
            c15_1 = fma(a150.w, b0.w, c15_1);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_2 = fma(a00.x, b0.x, c0_2);
            c1_2 = fma(a10.x, b0.x, c1_2);
            c2_2 = fma(a20.x, b0.x, c2_2);
            c3_2 = fma(a30.x, b0.x, c3_2);
            c4_2 = fma(a40.x, b0.x, c4_2);
            c5_2 = fma(a50.x, b0.x, c5_2);
            c6_2 = fma(a60.x, b0.x, c6_2);
            c7_2 = fma(a70.x, b0.x, c7_2);
            c8_2 = fma(a80.x, b0.x, c8_2);
            c9_2 = fma(a90.x, b0.x, c9_2);
            c10_2 = fma(a100.x, b0.x, c10_2);
            c11_2 = fma(a110.x, b0.x, c11_2);
            c12_2 = fma(a120.x, b0.x, c12_2);
            c13_2 = fma(a130.x, b0.x, c13_2);
            c14_2 = fma(a140.x, b0.x, c14_2);
            c15_2 = fma(a150.x, b0.x, c15_2);
            c0_2 = fma(a00.y, b0.y, c0_2);
            c1_2 = fma(a10.y, b0.y, c1_2);
            c2_2 = fma(a20.y, b0.y, c2_2);
            c3_2 = fma(a30.y, b0.y, c3_2);
            c4_2 = fma(a40.y, b0.y, c4_2);
            c5_2 = fma(a50.y, b0.y, c5_2);
            c6_2 = fma(a60.y, b0.y, c6_2);
            c7_2 = fma(a70.y, b0.y, c7_2);
            c8_2 = fma(a80.y, b0.y, c8_2);
            c9_2 = fma(a90.y, b0.y, c9_2);
            c10_2 = fma(a100.y, b0.y, c10_2);
            c11_2 = fma(a110.y, b0.y, c11_2);
            c12_2 = fma(a120.y, b0.y, c12_2);
            c13_2 = fma(a130.y, b0.y, c13_2);
            c14_2 = fma(a140.y, b0.y, c14_2);
            c15_2 = fma(a150.y, b0.y, c15_2);
            c0_2 = fma(a00.z, b0.z, c0_2);
            c1_2 = fma(a10.z, b0.z, c1_2);
            c2_2 = fma(a20.z, b0.z, c2_2);
            c3_2 = fma(a30.z, b0.z, c3_2);
            c4_2 = fma(a40.z, b0.z, c4_2);
            c5_2 = fma(a50.z, b0.z, c5_2);
            c6_2 = fma(a60.z, b0.z, c6_2);
            c7_2 = fma(a70.z, b0.z, c7_2);
            c8_2 = fma(a80.z, b0.z, c8_2);
            c9_2 = fma(a90.z, b0.z, c9_2);
            c10_2 = fma(a100.z, b0.z, c10_2);
            c11_2 = fma(a110.z, b0.z, c11_2);
            c12_2 = fma(a120.z, b0.z, c12_2);
            c13_2 = fma(a130.z, b0.z, c13_2);
            c14_2 = fma(a140.z, b0.z, c14_2);
            c15_2 = fma(a150.z, b0.z, c15_2);
            c0_2 = fma(a00.w, b0.w, c0_2);
            c1_2 = fma(a10.w, b0.w, c1_2);
            c2_2 = fma(a20.w, b0.w, c2_2);
            c3_2 = fma(a30.w, b0.w, c3_2);
            c4_2 = fma(a40.w, b0.w, c4_2);
            c5_2 = fma(a50.w, b0.w, c5_2);
            c6_2 = fma(a60.w, b0.w, c6_2);
            c7_2 = fma(a70.w, b0.w, c7_2);
            c8_2 = fma(a80.w, b0.w, c8_2);
            c9_2 = fma(a90.w, b0.w, c9_2);
            c10_2 = fma(a100.w, b0.w, c10_2);
            c11_2 = fma(a110.w, b0.w, c11_2);
            c12_2 = fma(a120.w, b0.w, c12_2);
            c13_2 = fma(a130.w, b0.w, c13_2);
            c14_2 = fma(a140.w, b0.w, c14_2);
            c15_2 = fma(a150.w, b0.w, c15_2);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_3 = fma(a00.x, b0.x, c0_3);
            c1_3 = fma(a10.x, b0.x, c1_3);
            c2_3 = fma(a20.x, b0.x, c2_3);
            c3_3 = fma(a30.x, b0.x, c3_3);
            c4_3 = fma(a40.x, b0.x, c4_3);
            c5_3 = fma(a50.x, b0.x, c5_3);
            c6_3 = fma(a60.x, b0.x, c6_3);
            c7_3 = fma(a70.x, b0.x, c7_3);
            c8_3 = fma(a80.x, b0.x, c8_3);
            c9_3 = fma(a90.x, b0.x, c9_3);
            c10_3 = fma(a100.x, b0.x, c10_3);
            c11_3 = fma(a110.x, b0.x, c11_3);
            c12_3 = fma(a120.x, b0.x, c12_3);
            c13_3 = fma(a130.x, b0.x, c13_3);
            c14_3 = fma(a140.x, b0.x, c14_3);
            c15_3 = fma(a150.x, b0.x, c15_3);
            c0_3 = fma(a00.y, b0.y, c0_3);
            c1_3 = fma(a10.y, b0.y, c1_3);
            c2_3 = fma(a20.y, b0.y, c2_3);
            c3_3 = fma(a30.y, b0.y, c3_3);
            c4_3 = fma(a40.y, b0.y, c4_3);
            c5_3 = fma(a50.y, b0.y, c5_3);
            c6_3 = fma(a60.y, b0.y, c6_3);
            c7_3 = fma(a70.y, b0.y, c7_3);
            c8_3 = fma(a80.y, b0.y, c8_3);
            c9_3 = fma(a90.y, b0.y, c9_3);
            c10_3 = fma(a100.y, b0.y, c10_3);
            c11_3 = fma(a110.y, b0.y, c11_3);
            c12_3 = fma(a120.y, b0.y, c12_3);
            c13_3 = fma(a130.y, b0.y, c13_3);
            c14_3 = fma(a140.y, b0.y, c14_3);
            c15_3 = fma(a150.y, b0.y, c15_3);
            c0_3 = fma(a00.z, b0.z, c0_3);
            c1_3 = fma(a10.z, b0.z, c1_3);
            c2_3 = fma(a20.z, b0.z, c2_3);
            c3_3 = fma(a30.z, b0.z, c3_3);
            c4_3 = fma(a40.z, b0.z, c4_3);
            c5_3 = fma(a50.z, b0.z, c5_3);
            c6_3 = fma(a60.z, b0.z, c6_3);
            c7_3 = fma(a70.z, b0.z, c7_3);
            c8_3 = fma(a80.z, b0.z, c8_3);
            c9_3 = fma(a90.z, b0.z, c9_3);
            c10_3 = fma(a100.z, b0.z, c10_3);
            c11_3 = fma(a110.z, b0.z, c11_3);
            c12_3 = fma(a120.z, b0.z, c12_3);
            c13_3 = fma(a130.z, b0.z, c13_3);
            c14_3 = fma(a140.z, b0.z, c14_3);
            c15_3 = fma(a150.z, b0.z, c15_3);
            c0_3 = fma(a00.w, b0.w, c0_3);
            c1_3 = fma(a10.w, b0.w, c1_3);
            c2_3 = fma(a20.w, b0.w, c2_3);
            c3_3 = fma(a30.w, b0.w, c3_3);
            c4_3 = fma(a40.w, b0.w, c4_3);
            c5_3 = fma(a50.w, b0.w, c5_3);
            c6_3 = fma(a60.w, b0.w, c6_3);
            c7_3 = fma(a70.w, b0.w, c7_3);
            c8_3 = fma(a80.w, b0.w, c8_3);
            c9_3 = fma(a90.w, b0.w, c9_3);
            c10_3 = fma(a100.w, b0.w, c10_3);
            c11_3 = fma(a110.w, b0.w, c11_3);
            c12_3 = fma(a120.w, b0.w, c12_3);
            c13_3 = fma(a130.w, b0.w, c13_3);
            c14_3 = fma(a140.w, b0.w, c14_3);
            c15_3 = fma(a150.w, b0.w, c15_3);
            }
            {
            let b0 = xs[((tc + 64u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_4 = fma(a00.x, b0.x, c0_4);
            c1_4 = fma(a10.x, b0.x, c1_4);
            c2_4 = fma(a20.x, b0.x, c2_4);
            c3_4 = fma(a30.x, b0.x, c3_4);
            c4_4 = fma(a40.x, b0.x, c4_4);
            c5_4 = fma(a50.x, b0.x, c5_4);
            c6_4 = fma(a60.x, b0.x, c6_4);
            c7_4 = fma(a70.x, b0.x, c7_4);
            c8_4 = fma(a80.x, b0.x, c8_4);
            c9_4 = fma(a90.x, b0.x, c9_4);
            c10_4 = fma(a100.x, b0.x, c10_4);
            c11_4 = fma(a110.x, b0.x, c11_4);
            c12_4 = fma(a120.x, b0.x, c12_4);
            c13_4 = fma(a130.x, b0.x, c13_4);
            c14_4 = fma(a140.x, b0.x, c14_4);
            c15_4 = fma(a150.x, b0.x, c15_4);
            c0_4 = fma(a00.y, b0.y, c0_4);
            c1_4 = fma(a10.y, b0.y, c1_4);
            c2_4 = fma(a20.y, b0.y, c2_4);
            c3_4 = fma(a30.y, b0.y, c3_4);
            c4_4 = fma(a40.y, b0.y, c4_4);
            c5_4 = fma(a50.y, b0.y, c5_4);
            c6_4 = fma(a60.y, b0.y, c6_4);
            c7_4 = fma(a70.y, b0.y, c7_4);
            c8_4 = fma(a80.y, b0.y, c8_4);
            c9_4 = fma(a90.y, b0.y, c9_4);
            c10_4 = fma(a100.y, b0.y, c10_4);
            c11_4 = fma(a110.y, b0.y, c11_4);
            c12_4 = fma(a120.y, b0.y, c12_4);
            c13_4 = fma(a130.y, b0.y, c13_4);
            c14_4 = fma(a140.y, b0.y, c14_4);
            c15_4 = fma(a150.y, b0.y, c15_4);
            c0_4 = fma(a00.z, b0.z, c0_4);
            c1_4 = fma(a10.z, b0.z, c1_4);
            c2_4 = fma(a20.z, b0.z, c2_4);
            c3_4 = fma(a30.z, b0.z, c3_4);
            c4_4 = fma(a40.z, b0.z, c4_4);
            c5_4 = fma(a50.z, b0.z, c5_4);
            c6_4 = fma(a60.z, b0.z, c6_4);
            c7_4 = fma(a70.z, b0.z, c7_4);
            c8_4 = fma(a80.z, b0.z, c8_4);
            c9_4 = fma(a90.z, b0.z, c9_4);
            c10_4 = fma(a100.z, b0.z, c10_4);
            c11_4 = fma(a110.z, b0.z, c11_4);
            c12_4 = fma(a120.z, b0.z, c12_4);
            c13_4 = fma(a130.z, b0.z, c13_4);
            c14_4 = fma(a140.z, b0.z, c14_4);
            c15_4 = fma(a150.z, b0.z, c15_4);
            c0_4 = fma(a00.w, b0.w, c0_4);
            c1_4 = fma(a10.w, b0.w, c1_4);
            c2_4 = fma(a20.w, b0.w, c2_4);
            c3_4 = fma(a30.w, b0.w, c3_4);
            c4_4 = fma(a40.w, b0.w, c4_4);
            c5_4 = fma(a50.w, b0.w, c5_4);
            c6_4 = fma(a60.w, b0.w, c6_4);
            c7_4 = fma(a70.w, b0.w, c7_4);
            c8_4 = fma(a80.w, b0.w, c8_4);
            c9_4 = fma(a90.w, b0.w, c9_4);
            c10_4 = fma(a100.w, b0.w, c10_4);
            c11_4 = fma(a110.w, b0.w, c11_4);
            c12_4 = fma(a120.w, b0.w, c12_4);
            c13_4 = fma(a130.w, b0.w, c13_4);
            c14_4 = fma(a140.w, b0.w, c14_4);
            c15_4 = fma(a150.w, b0.w, c15_4);
            }
            {
            let b0 = xs[((tc + 80u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_5 = fma(a00.x, b0.x, c0_5);
            c1_5 = fma(a10.x, b0.x, c1_5);
            c2_5 = fma(a20.x, b0.x, c2_5);
            c3_5 = fma(a30.x, b0.x, c3_5);
            c4_5 = fma(a40.x, b0.x, c4_5);
            c5_5 = fma(a50.x, b0.x, c5_5);
            c6_5 = fma(a60.x, b0.x, c6_5);
            c7_5 = fma(a70.x, b0.x, c7_5);
            c8_5 = fma(a80.x, b0.x, c8_5);
            c9_5 = fma(a90.x, b0.x, c9_5);
            c10_5 = fma(a100.x, b0.x, c10_5);
            c11_5 = fma(a110.x, b0.x, c11_5);
            c12_5 = fma(a120.x, b0.x, c12_5);
            c13_5 = fma(a130.x, b0.x, c13_5);
            c14_5 = fma(a140.x, b0.x, c14_5);
            c15_5 = fma(a150.x, b0.x, c15_5);
            c0_5 = fma(a00.y, b0.y, c0_5);
            c1_5 = fma(a10.y, b0.y, c1_5);
            c2_5 = fma(a20.y, b0.y, c2_5);
            c3_5 = fma(a30.y, b0.y, c3_5);
            c4_5 = fma(a40.y, b0.y, c4_5);
            c5_5 = fma(a50.y, b0.y, c5_5);
            c6_5 = fma(a60.y, b0.y, c6_5);
            c7_5 = fma(a70.y, b0.y, c7_5);
            c8_5 = fma(a80.y, b0.y, c8_5);
            c9_5 = fma(a90.y, b0.y, c9_5);
            c10_5 = fma(a100.y, b0.y, c10_5);
            c11_5 = fma(a110.y, b0.y, c11_5);
            c12_5 = fma(a120.y, b0.y, c12_5);
            c13_5 = fma(a130.y, b0.y, c13_5);
            c14_5 = fma(a140.y, b0.y, c14_5);
            c15_5 = fma(a150.y, b0.y, c15_5);
            c0_5 = fma(a00.z, b0.z, c0_5);
            c1_5 = fma(a10.z, b0.z, c1_5);
            c2_5 = fma(a20.z, b0.z, c2_5);
            c3_5 = fma(a30.z, b0.z, c3_5);
            c4_5 = fma(a40.z, b0.z, c4_5);
            c5_5 = fma(a50.z, b0.z, c5_5);
            c6_5 = fma(a60.z, b0.z, c6_5);
            c7_5 = fma(a70.z, b0.z, c7_5);
            c8_5 = fma(a80.z, b0.z, c8_5);
            c9_5 = fma(a90.z, b0.z, c9_5);
            c10_5 = fma(a100.z, b0.z, c10_5);
            c11_5 = fma(a110.z, b0.z, c11_5);
            c12_5 = fma(a120.z, b0.z, c12_5);
            c13_5 = fma(a130.z, b0.z, c13_5);
            c14_5 = fma(a140.z, b0.z, c14_5);
            c15_5 = fma(a150.z, b0.z, c15_5);
            c0_5 = fma(a00.w, b0.w, c0_5);
            c1_5 = fma(a10.w, b0.w, c1_5);
            c2_5 = fma(a20.w, b0.w, c2_5);
            c3_5 = fma(a30.w, b0.w, c3_5);
            c4_5 = fma(a40.w, b0.w, c4_5);
            c5_5 = fma(a50.w, b0.w, c5_5);
            c6_5 = fma(a60.w, b0.w, c6_5);
            c7_5 = fma(a70.w, b0.w, c7_5);
            c8_5 = fma(a80.w, b0.w, c8_5);
            c9_5 = fma(a90.w, b0.w, c9_5);
            c10_5 = fma(a100.w, b0.w, c10_5);
            c11_5 = fma(a110.w, b0.w, c11_5);
            c12_5 = fma(a120.w, b0.w, c12_5);
            c13_5 = fma(a130.w, b0.w, c13_5);
            c14_5 = fma(a140.w, b0.w, c14_5);
            c15_5 = fma(a150.w, b0.w, c15_5);
            }
            {
            let b0 = xs[((tc + 96u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_6 = fma(a00.x, b0.x, c0_6);
            c1_6 = fma(a10.x, b0.x, c1_6);
            c2_6 = fma(a20.x, b0.x, c2_6);
            c3_6 = fma(a30.x, b0.x, c3_6);
            c4_6 = fma(a40.x, b0.x, c4_6);
            c5_6 = fma(a50.x, b0.x, c5_6);
            c6_6 = fma(a60.x, b0.x, c6_6);
            c7_6 = fma(a70.x, b0.x, c7_6);
            c8_6 = fma(a80.x, b0.x, c8_6);
            c9_6 = fma(a90.x, b0.x, c9_6);
            c10_6 = fma(a100.x, b0.x, c10_6);
            c11_6 = fma(a110.x, b0.x, c11_6);
            c12_6 = fma(a120.x, b0.x, c12_6);
            c13_6 = fma(a130.x, b0.x, c13_6);
            c14_6 = fma(a140.x, b0.x, c14_6);
            c15_6 = fma(a150.x, b0.x, c15_6);
            c0_6 = fma(a00.y, b0.y, c0_6);
            c1_6 = fma(a10.y, b0.y, c1_6);
            c2_6 = fma(a20.y, b0.y, c2_6);
            c3_6 = fma(a30.y, b0.y, c3_6);
            c4_6 = fma(a40.y, b0.y, c4_6);
            c5_6 = fma(a50.y, b0.y, c5_6);
            c6_6 = fma(a60.y, b0.y, c6_6);
            c7_6 = fma(a70.y, b0.y, c7_6);
            c8_6 = fma(a80.y, b0.y, c8_6);
            c9_6 = fma(a90.y, b0.y, c9_6);
            c10_6 = fma(a100.y, b0.y, c10_6);
            c11_6 = fma(a110.y, b0.y, c11_6);
            c12_6 = fma(a120.y, b0.y, c12_6);
            c13_6 = fma(a130.y, b0.y, c13_6);
            c14_6 = fma(a140.y, b0.y, c14_6);
            c15_6 = fma(a150.y, b0.y, c15_6);
            c0_6 = fma(a00.z, b0.z, c0_6);
            c1_6 = fma(a10.z, b0.z, c1_6);
            c2_6 = fma(a20.z, b0.z, c2_6);
            c3_6 = fma(a30.z, b0.z, c3_6);
            c4_6 = fma(a40.z, b0.z, c4_6);
            c5_6 = fma(a50.z, b0.z, c5_6);
            c6_6 = fma(a60.z, b0.z, c6_6);
            c7_6 = fma(a70.z, b0.z, c7_6);
            c8_6 = fma(a80.z, b0.z, c8_6);
            c9_6 = fma(a90.z, b0.z, c9_6);
            c10_6 = fma(a100.z, b0.z, c10_6);
            c11_6 = fma(a110.z, b0.z, c11_6);
            c12_6 = fma(a120.z, b0.z, c12_6);
            c13_6 = fma(a130.z, b0.z, c13_6);
            c14_6 = fma(a140.z, b0.z, c14_6);
            c15_6 = fma(a150.z, b0.z, c15_6);
            c0_6 = fma(a00.w, b0.w, c0_6);
            c1_6 = fma(a10.w, b0.w, c1_6);
            c2_6 = fma(a20.w, b0.w, c2_6);
            c3_6 = fma(a30.w, b0.w, c3_6);
            c4_6 = fma(a40.w, b0.w, c4_6);
            c5_6 = fma(a50.w, b0.w, c5_6);
            c6_6 = fma(a60.w, b0.w, c6_6);
            c7_6 = fma(a70.w, b0.w, c7_6);
            c8_6 = fma(a80.w, b0.w, c8_6);
            c9_6 = fma(a90.w, b0.w, c9_6);
            c10_6 = fma(a100.w, b0.w, c10_6);
            c11_6 = fma(a110.w, b0.w, c11_6);
            c12_6 = fma(a120.w, b0.w, c12_6);
            c13_6 = fma(a130.w, b0.w, c13_6);
            c14_6 = fma(a140.w, b0.w, c14_6);
            c15_6 = fma(a150.w, b0.w, c15_6);
            }
            {
            let b0 = xs[((tc + 112u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_7 = fma(a00.x, b0.x, c0_7);
            c1_7 = fma(a10.x, b0.x, c1_7);
            c2_7 = fma(a20.x, b0.x, c2_7);
            c3_7 = fma(a30.x, b0.x, c3_7);
            c4_7 = fma(a40.x, b0.x, c4_7);
            c5_7 = fma(a50.x, b0.x, c5_7);
            c6_7 = fma(a60.x, b0.x, c6_7);
            c7_7 = fma(a70.x, b0.x, c7_7);
            c8_7 = fma(a80.x, b0.x, c8_7);
            c9_7 = fma(a90.x, b0.x, c9_7);
            c10_7 = fma(a100.x, b0.x, c10_7);
            c11_7 = fma(a110.x, b0.x, c11_7);
            c12_7 = fma(a120.x, b0.x, c12_7);
            c13_7 = fma(a130.x, b0.x, c13_7);
            c14_7 = fma(a140.x, b0.x, c14_7);
            c15_7 = fma(a150.x, b0.x, c15_7);
            c0_7 = fma(a00.y, b0.y, c0_7);
            c1_7 = fma(a10.y, b0.y, c1_7);
            c2_7 = fma(a20.y, b0.y, c2_7);
            c3_7 = fma(a30.y, b0.y, c3_7);
            c4_7 = fma(a40.y, b0.y, c4_7);
            c5_7 = fma(a50.y, b0.y, c5_7);
            c6_7 = fma(a60.y, b0.y, c6_7);
            c7_7 = fma(a70.y, b0.y, c7_7);
            c8_7 = fma(a80.y, b0.y, c8_7);
            c9_7 = fma(a90.y, b0.y, c9_7);
            c10_7 = fma(a100.y, b0.y, c10_7);
            c11_7 = fma(a110.y, b0.y, c11_7);
            c12_7 = fma(a120.y, b0.y, c12_7);
            c13_7 = fma(a130.y, b0.y, c13_7);
            c14_7 = fma(a140.y, b0.y, c14_7);
            c15_7 = fma(a150.y, b0.y, c15_7);
            c0_7 = fma(a00.z, b0.z, c0_7);
            c1_7 = fma(a10.z, b0.z, c1_7);
            c2_7 = fma(a20.z, b0.z, c2_7);
            c3_7 = fma(a30.z, b0.z, c3_7);
            c4_7 = fma(a40.z, b0.z, c4_7);
            c5_7 = fma(a50.z, b0.z, c5_7);
            c6_7 = fma(a60.z, b0.z, c6_7);
            c7_7 = fma(a70.z, b0.z, c7_7);
            c8_7 = fma(a80.z, b0.z, c8_7);
            c9_7 = fma(a90.z, b0.z, c9_7);
            c10_7 = fma(a100.z, b0.z, c10_7);
            c11_7 = fma(a110.z, b0.z, c11_7);
            c12_7 = fma(a120.z, b0.z, c12_7);
            c13_7 = fma(a130.z, b0.z, c13_7);
            c14_7 = fma(a140.z, b0.z, c14_7);
            c15_7 = fma(a150.z, b0.z, c15_7);
            c0_7 = fma(a00.w, b0.w, c0_7);
            c1_7 = fma(a10.w, b0.w, c1_7);
            c2_7 = fma(a20.w, b0.w, c2_7);
            c3_7 = fma(a30.w, b0.w, c3_7);
            c4_7 = fma(a40.w, b0.w, c4_7);
            c5_7 = fma(a50.w, b0.w, c5_7);
            c6_7 = fma(a60.w, b0.w, c6_7);
            c7_7 = fma(a70.w, b0.w, c7_7);
            c8_7 = fma(a80.w, b0.w, c8_7);
            c9_7 = fma(a90.w, b0.w, c9_7);
            c10_7 = fma(a100.w, b0.w, c10_7);
            c11_7 = fma(a110.w, b0.w, c11_7);
            c12_7 = fma(a120.w, b0.w, c12_7);
            c13_7 = fma(a130.w, b0.w, c13_7);
            c14_7 = fma(a140.w, b0.w, c14_7);
            c15_7 = fma(a150.w, b0.w, c15_7);
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
            let a80 = ws[((tr + 64u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a90 = ws[((tr + 72u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a100 = ws[((tr + 80u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a110 = ws[((tr + 88u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a120 = ws[((tr + 96u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a130 = ws[((tr + 104u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a140 = ws[((tr + 112u) * 4u + (1u ^ swr)) * 1u + 0u];
            let a150 = ws[((tr + 120u) * 4u + (1u ^ swr)) * 1u + 0u];
            {
            let b0 = xs[((tc + 0u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_0 = fma(a00.x, b0.x, c0_0);
            c1_0 = fma(a10.x, b0.x, c1_0);
            c2_0 = fma(a20.x, b0.x, c2_0);
            c3_0 = fma(a30.x, b0.x, c3_0);
            c4_0 = fma(a40.x, b0.x, c4_0);
            c5_0 = fma(a50.x, b0.x, c5_0);
            c6_0 = fma(a60.x, b0.x, c6_0);
            c7_0 = fma(a70.x, b0.x, c7_0);
            c8_0 = fma(a80.x, b0.x, c8_0);
            c9_0 = fma(a90.x, b0.x, c9_0);
            c10_0 = fma(a100.x, b0.x, c10_0);
            c11_0 = fma(a110.x, b0.x, c11_0);
            c12_0 = fma(a120.x, b0.x, c12_0);
            c13_0 = fma(a130.x, b0.x, c13_0);
            c14_0 = fma(a140.x, b0.x, c14_0);
            c15_0 = fma(a150.x, b0.x, c15_0);
            c0_0 = fma(a00.y, b0.y, c0_0);
            c1_0 = fma(a10.y, b0.y, c1_0);
            c2_0 = fma(a20.y, b0.y, c2_0);
            c3_0 = fma(a30.y, b0.y, c3_0);
            c4_0 = fma(a40.y, b0.y, c4_0);
            c5_0 = fma(a50.y, b0.y, c5_0);
            c6_0 = fma(a60.y, b0.y, c6_0);
            c7_0 = fma(a70.y, b0.y, c7_0);
            c8_0 = fma(a80.y, b0.y, c8_0);
            c9_0 = fma(a90.y, b0.y, c9_0);
            c10_0 = fma(a100.y, b0.y, c10_0);
            c11_0 = fma(a110.y, b0.y, c11_0);
            c12_0 = fma(a120.y, b0.y, c12_0);
            c13_0 = fma(a130.y, b0.y, c13_0);
            c14_0 = fma(a140.y, b0.y, c14_0);
            c15_0 = fma(a150.y, b0.y, c15_0);
            c0_0 = fma(a00.z, b0.z, c0_0);
            c1_0 = fma(a10.z, b0.z, c1_0);
            c2_0 = fma(a20.z, b0.z, c2_0);
            c3_0 = fma(a30.z, b0.z, c3_0);
            c4_0 = fma(a40.z, b0.z, c4_0);
            c5_0 = fma(a50.z, b0.z, c5_0);
            c6_0 = fma(a60.z, b0.z, c6_0);
            c7_0 = fma(a70.z, b0.z, c7_0);
            c8_0 = fma(a80.z, b0.z, c8_0);
            c9_0 = fma(a90.z, b0.z, c9_0);
            c10_0 = fma(a100.z, b0.z, c10_0);
            c11_0 = fma(a110.z, b0.z, c11_0);
            c12_0 = fma(a120.z, b0.z, c12_0);
            c13_0 = fma(a130.z, b0.z, c13_0);
            c14_0 = fma(a140.z, b0.z, c14_0);
            c15_0 = fma(a150.z, b0.z, c15_0);
            c0_0 = fma(a00.w, b0.w, c0_0);
            c1_0 = fma(a10.w, b0.w, c1_0);
            c2_0 = fma(a20.w, b0.w, c2_0);
            c3_0 = fma(a30.w, b0.w, c3_0);
            c4_0 = fma(a40.w, b0.w, c4_0);
            c5_0 = fma(a50.w, b0.w, c5_0);
            c6_0 = fma(a60.w, b0.w, c6_0);
            c7_0 = fma(a70.w, b0.w, c7_0);
            c8_0 = fma(a80.w, b0.w, c8_0);
            c9_0 = fma(a90.w, b0.w, c9_0);
            c10_0 = fma(a100.w, b0.w, c10_0);
            c11_0 = fma(a110.w, b0.w, c11_0);
            c12_0 = fma(a120.w, b0.w, c12_0);
            c13_0 = fma(a130.w, b0.w, c13_0);
            c14_0 = fma(a140.w, b0.w, c14_0);
            c15_0 = fma(a150.w, b0.w, c15_0);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_1 = fma(a00.x, b0.x, c0_1);
            c1_1 = fma(a10.x, b0.x, c1_1);
            c2_1 = fma(a20.x, b0.x, c2_1);
            c3_1 = fma(a30.x, b0.x, c3_1);
            c4_1 = fma(a40.x, b0.x, c4_1);
            c5_1 = fma(a50.x, b0.x, c5_1);
            c6_1 = fma(a60.x, b0.x, c6_1);
            c7_1 = fma(a70.x, b0.x, c7_1);
            c8_1 = fma(a80.x, b0.x, c8_1);
            c9_1 = fma(a90.x, b0.x, c9_1);
            c10_1 = fma(a100.x, b0.x, c10_1);
            c11_1 = fma(a110.x, b0.x, c11_1);
            c12_1 = fma(a120.x, b0.x, c12_1);
            c13_1 = fma(a130.x, b0.x, c13_1);
            c14_1 = fma(a140.x, b0.x, c14_1);
            c15_1 = fma(a150.x, b0.x, c15_1);
            c0_1 = fma(a00.y, b0.y, c0_1);
            c1_1 = fma(a10.y, b0.y, c1_1);
            c2_1 = fma(a20.y, b0.y, c2_1);
            c3_1 = fma(a30.y, b0.y, c3_1);
            c4_1 = fma(a40.y, b0.y, c4_1);
            c5_1 = fma(a50.y, b0.y, c5_1);
            c6_1 = fma(a60.y, b0.y, c6_1);
            c7_1 = fma(a70.y, b0.y, c7_1);
            c8_1 = fma(a80.y, b0.y, c8_1);
            c9_1 = fma(a90.y, b0.y, c9_1);
            c10_1 = fma(a100.y, b0.y, c10_1);
            c11_1 = fma(a110.y, b0.y, c11_1);
            c12_1 = fma(a120.y, b0.y, c12_1);
            c13_1 = fma(a130.y, b0.y, c13_1);
            c14_1 = fma(a140.y, b0.y, c14_1);
            c15_1 = fma(a150.y, b0.y, c15_1);
            c0_1 = fma(a00.z, b0.z, c0_1);
            c1_1 = fma(a10.z, b0.z, c1_1);
            c2_1 = fma(a20.z, b0.z, c2_1);
            c3_1 = fma(a30.z, b0.z, c3_1);
            c4_1 = fma(a40.z, b0.z, c4_1);
            c5_1 = fma(a50.z, b0.z, c5_1);
            c6_1 = fma(a60.z, b0.z, c6_1);
            c7_1 = fma(a70.z, b0.z, c7_1);
            c8_1 = fma(a80.z, b0.z, c8_1);
            c9_1 = fma(a90.z, b0.z, c9_1);
            c10_1 = fma(a100.z, b0.z, c10_1);
            c11_1 = fma(a110.z, b0.z, c11_1);
            c12_1 = fma(a120.z, b0.z, c12_1);
            c13_1 = fma(a130.z, b0.z, c13_1);
            c14_1 = fma(a140.z, b0.z, c14_1);
            c15_1 = fma(a150.z, b0.z, c15_1);
            c0_1 = fma(a00.w, b0.w, c0_1);
            c1_1 = fma(a10.w, b0.w, c1_1);
            c2_1 = fma(a20.w, b0.w, c2_1);
            c3_1 = fma(a30.w, b0.w, c3_1);
            c4_1 = fma(a40.w, b0.w, c4_1);
            c5_1 = fma(a50.w, b0.w, c5_1);
            c6_1 = fma(a60.w, b0.w, c6_1);
            c7_1 = fma(a70.w, b0.w, c7_1);
            c8_1 = fma(a80.w, b0.w, c8_1);
            c9_1 = fma(a90.w, b0.w, c9_1);
            c10_1 = fma(a100.w, b0.w, c10_1);
            c11_1 = fma(a110.w, b0.w, c11_1);
            c12_1 = fma(a120.w, b0.w, c12_1);
            c13_1 = fma(a130.w, b0.w, c13_1);
            c14_1 = fma(a140.w, b0.w, c14_1);
            c15_1 = fma(a150.w, b0.w, c15_1);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_2 = fma(a00.x, b0.x, c0_2);
            c1_2 = fma(a10.x, b0.x, c1_2);
            c2_2 = fma(a20.x, b0.x, c2_2);
            c3_2 = fma(a30.x, b0.x, c3_2);
            c4_2 = fma(a40.x, b0.x, c4_2);
            c5_2 = fma(a50.x, b0.x, c5_2);
            c6_2 = fma(a60.x, b0.x, c6_2);
            c7_2 = fma(a70.x, b0.x, c7_2);
            c8_2 = fma(a80.x, b0.x, c8_2);
            c9_2 = fma(a90.x, b0.x, c9_2);
            c10_2 = fma(a100.x, b0.x, c10_2);
            c11_2 = fma(a110.x, b0.x, c11_2);
            c12_2 = fma(a120.x, b0.x, c12_2);
            c13_2 = fma(a130.x, b0.x, c13_2);
            c14_2 = fma(a140.x, b0.x, c14_2);
            c15_2 = fma(a150.x, b0.x, c15_2);
            c0_2 = fma(a00.y, b0.y, c0_2);
            c1_2 = fma(a10.y, b0.y, c1_2);
            c2_2 = fma(a20.y, b0.y, c2_2);
            c3_2 = fma(a30.y, b0.y, c3_2);
            c4_2 = fma(a40.y, b0.y, c4_2);
            c5_2 = fma(a50.y, b0.y, c5_2);
            c6_2 = fma(a60.y, b0.y, c6_2);
            c7_2 = fma(a70.y, b0.y, c7_2);
            c8_2 = fma(a80.y, b0.y, c8_2);
            c9_2 = fma(a90.y, b0.y, c9_2);
            c10_2 = fma(a100.y, b0.y, c10_2);
            c11_2 = fma(a110.y, b0.y, c11_2);
            c12_2 = fma(a120.y, b0.y, c12_2);
            c13_2 = fma(a130.y, b0.y, c13_2);
            c14_2 = fma(a140.y, b0.y, c14_2);
            c15_2 = fma(a150.y, b0.y, c15_2);
            c0_2 = fma(a00.z, b0.z, c0_2);
            c1_2 = fma(a10.z, b0.z, c1_2);
            c2_2 = fma(a20.z, b0.z, c2_2);
            c3_2 = fma(a30.z, b0.z, c3_2);
            c4_2 = fma(a40.z, b0.z, c4_2);
            c5_2 = fma(a50.z, b0.z, c5_2);
            c6_2 = fma(a60.z, b0.z, c6_2);
            c7_2 = fma(a70.z, b0.z, c7_2);
            c8_2 = fma(a80.z, b0.z, c8_2);
            c9_2 = fma(a90.z, b0.z, c9_2);
            c10_2 = fma(a100.z, b0.z, c10_2);
            c11_2 = fma(a110.z, b0.z, c11_2);
            c12_2 = fma(a120.z, b0.z, c12_2);
            c13_2 = fma(a130.z, b0.z, c13_2);
            c14_2 = fma(a140.z, b0.z, c14_2);
            c15_2 = fma(a150.z, b0.z, c15_2);
            c0_2 = fma(a00.w, b0.w, c0_2);
            c1_2 = fma(a10.w, b0.w, c1_2);
            c2_2 = fma(a20.w, b0.w, c2_2);
            c3_2 = fma(a30.w, b0.w, c3_2);
            c4_2 = fma(a40.w, b0.w, c4_2);
            c5_2 = fma(a50.w, b0.w, c5_2);
            c6_2 = fma(a60.w, b0.w, c6_2);
            c7_2 = fma(a70.w, b0.w, c7_2);
            c8_2 = fma(a80.w, b0.w, c8_2);
            c9_2 = fma(a90.w, b0.w, c9_2);
            c10_2 = fma(a100.w, b0.w, c10_2);
            c11_2 = fma(a110.w, b0.w, c11_2);
            c12_2 = fma(a120.w, b0.w, c12_2);
            c13_2 = fma(a130.w, b0.w, c13_2);
            c14_2 = fma(a140.w, b0.w, c14_2);
            c15_2 = fma(a150.w, b0.w, c15_2);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_3 = fma(a00.x, b0.x, c0_3);
            c1_3 = fma(a10.x, b0.x, c1_3);
            c2_3 = fma(a20.x, b0.x, c2_3);
            c3_3 = fma(a30.x, b0.x, c3_3);
            c4_3 = fma(a40.x, b0.x, c4_3);
            c5_3 = fma(a50.x, b0.x, c5_3);
            c6_3 = fma(a60.x, b0.x, c6_3);
            c7_3 = fma(a70.x, b0.x, c7_3);
            c8_3 = fma(a80.x, b0.x, c8_3);
            c9_3 = fma(a90.x, b0.x, c9_3);
            c10_3 = fma(a100.x, b0.x, c10_3);
            c11_3 = fma(a110.x, b0.x, c11_3);
            c12_3 = fma(a120.x, b0.x, c12_3);
            c13_3 = fma(a130.x, b0.x, c13_3);
            c14_3 = fma(a140.x, b0.x, c14_3);
            c15_3 = fma(a150.x, b0.x, c15_3);
            c0_3 = fma(a00.y, b0.y, c0_3);
            c1_3 = fma(a10.y, b0.y, c1_3);
            c2_3 = fma(a20.y, b0.y, c2_3);
            c3_3 = fma(a30.y, b0.y, c3_3);
            c4_3 = fma(a40.y, b0.y, c4_3);
            c5_3 = fma(a50.y, b0.y, c5_3);
            c6_3 = fma(a60.y, b0.y, c6_3);
            c7_3 = fma(a70.y, b0.y, c7_3);
            c8_3 = fma(a80.y, b0.y, c8_3);
            c9_3 = fma(a90.y, b0.y, c9_3);
            c10_3 = fma(a100.y, b0.y, c10_3);
            c11_3 = fma(a110.y, b0.y, c11_3);
            c12_3 = fma(a120.y, b0.y, c12_3);
            c13_3 = fma(a130.y, b0.y, c13_3);
            c14_3 = fma(a140.y, b0.y, c14_3);
            c15_3 = fma(a150.y, b0.y, c15_3);
            c0_3 = fma(a00.z, b0.z, c0_3);
            c1_3 = fma(a10.z, b0.z, c1_3);
            c2_3 = fma(a20.z, b0.z, c2_3);
            c3_3 = fma(a30.z, b0.z, c3_3);
            c4_3 = fma(a40.z, b0.z, c4_3);
            c5_3 = fma(a50.z, b0.z, c5_3);
            c6_3 = fma(a60.z, b0.z, c6_3);
            c7_3 = fma(a70.z, b0.z, c7_3);
            c8_3 = fma(a80.z, b0.z, c8_3);
            c9_3 = fma(a90.z, b0.z, c9_3);
            c10_3 = fma(a100.z, b0.z, c10_3);
            c11_3 = fma(a110.z, b0.z, c11_3);
            c12_3 = fma(a120.z, b0.z, c12_3);
            c13_3 = fma(a130.z, b0.z, c13_3);
            c14_3 = fma(a140.z, b0.z, c14_3);
            c15_3 = fma(a150.z, b0.z, c15_3);
            c0_3 = fma(a00.w, b0.w, c0_3);
            c1_3 = fma(a10.w, b0.w, c1_3);
            c2_3 = fma(a20.w, b0.w, c2_3);
            c3_3 = fma(a30.w, b0.w, c3_3);
            c4_3 = fma(a40.w, b0.w, c4_3);
            c5_3 = fma(a50.w, b0.w, c5_3);
            c6_3 = fma(a60.w, b0.w, c6_3);
            c7_3 = fma(a70.w, b0.w, c7_3);
            c8_3 = fma(a80.w, b0.w, c8_3);
            c9_3 = fma(a90.w, b0.w, c9_3);
            c10_3 = fma(a100.w, b0.w, c10_3);
            c11_3 = fma(a110.w, b0.w, c11_3);
            c12_3 = fma(a120.w, b0.w, c12_3);
            c13_3 = fma(a130.w, b0.w, c13_3);
            c14_3 = fma(a140.w, b0.w, c14_3);
            c15_3 = fma(a150.w, b0.w, c15_3);
            }
            {
            let b0 = xs[((tc + 64u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_4 = fma(a00.x, b0.x, c0_4);
            c1_4 = fma(a10.x, b0.x, c1_4);
            c2_4 = fma(a20.x, b0.x, c2_4);
            c3_4 = fma(a30.x, b0.x, c3_4);
            c4_4 = fma(a40.x, b0.x, c4_4);
            c5_4 = fma(a50.x, b0.x, c5_4);
            c6_4 = fma(a60.x, b0.x, c6_4);
            c7_4 = fma(a70.x, b0.x, c7_4);
            c8_4 = fma(a80.x, b0.x, c8_4);
            c9_4 = fma(a90.x, b0.x, c9_4);
            c10_4 = fma(a100.x, b0.x, c10_4);
            c11_4 = fma(a110.x, b0.x, c11_4);
            c12_4 = fma(a120.x, b0.x, c12_4);
            c13_4 = fma(a130.x, b0.x, c13_4);
            c14_4 = fma(a140.x, b0.x, c14_4);
            c15_4 = fma(a150.x, b0.x, c15_4);
            c0_4 = fma(a00.y, b0.y, c0_4);
            c1_4 = fma(a10.y, b0.y, c1_4);
            c2_4 = fma(a20.y, b0.y, c2_4);
            c3_4 = fma(a30.y, b0.y, c3_4);
            c4_4 = fma(a40.y, b0.y, c4_4);
            c5_4 = fma(a50.y, b0.y, c5_4);
            c6_4 = fma(a60.y, b0.y, c6_4);
            c7_4 = fma(a70.y, b0.y, c7_4);
            c8_4 = fma(a80.y, b0.y, c8_4);
            c9_4 = fma(a90.y, b0.y, c9_4);
            c10_4 = fma(a100.y, b0.y, c10_4);
            c11_4 = fma(a110.y, b0.y, c11_4);
            c12_4 = fma(a120.y, b0.y, c12_4);
            c13_4 = fma(a130.y, b0.y, c13_4);
            c14_4 = fma(a140.y, b0.y, c14_4);
            c15_4 = fma(a150.y, b0.y, c15_4);
            c0_4 = fma(a00.z, b0.z, c0_4);
            c1_4 = fma(a10.z, b0.z, c1_4);
            c2_4 = fma(a20.z, b0.z, c2_4);
            c3_4 = fma(a30.z, b0.z, c3_4);
            c4_4 = fma(a40.z, b0.z, c4_4);
            c5_4 = fma(a50.z, b0.z, c5_4);
            c6_4 = fma(a60.z, b0.z, c6_4);
            c7_4 = fma(a70.z, b0.z, c7_4);
            c8_4 = fma(a80.z, b0.z, c8_4);
            c9_4 = fma(a90.z, b0.z, c9_4);
            c10_4 = fma(a100.z, b0.z, c10_4);
            c11_4 = fma(a110.z, b0.z, c11_4);
            c12_4 = fma(a120.z, b0.z, c12_4);
            c13_4 = fma(a130.z, b0.z, c13_4);
            c14_4 = fma(a140.z, b0.z, c14_4);
            c15_4 = fma(a150.z, b0.z, c15_4);
            c0_4 = fma(a00.w, b0.w, c0_4);
            c1_4 = fma(a10.w, b0.w, c1_4);
            c2_4 = fma(a20.w, b0.w, c2_4);
            c3_4 = fma(a30.w, b0.w, c3_4);
            c4_4 = fma(a40.w, b0.w, c4_4);
            c5_4 = fma(a50.w, b0.w, c5_4);
            c6_4 = fma(a60.w, b0.w, c6_4);
            c7_4 = fma(a70.w, b0.w, c7_4);
            c8_4 = fma(a80.w, b0.w, c8_4);
            c9_4 = fma(a90.w, b0.w, c9_4);
            c10_4 = fma(a100.w, b0.w, c10_4);
            c11_4 = fma(a110.w, b0.w, c11_4);
            c12_4 = fma(a120.w, b0.w, c12_4);
            c13_4 = fma(a130.w, b0.w, c13_4);
            c14_4 = fma(a140.w, b0.w, c14_4);
            c15_4 = fma(a150.w, b0.w, c15_4);
            }
            {
            let b0 = xs[((tc + 80u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_5 = fma(a00.x, b0.x, c0_5);
            c1_5 = fma(a10.x, b0.x, c1_5);
            c2_5 = fma(a20.x, b0.x, c2_5);
            c3_5 = fma(a30.x, b0.x, c3_5);
            c4_5 = fma(a40.x, b0.x, c4_5);
            c5_5 = fma(a50.x, b0.x, c5_5);
            c6_5 = fma(a60.x, b0.x, c6_5);
            c7_5 = fma(a70.x, b0.x, c7_5);
            c8_5 = fma(a80.x, b0.x, c8_5);
            c9_5 = fma(a90.x, b0.x, c9_5);
            c10_5 = fma(a100.x, b0.x, c10_5);
            c11_5 = fma(a110.x, b0.x, c11_5);
            c12_5 = fma(a120.x, b0.x, c12_5);
            c13_5 = fma(a130.x, b0.x, c13_5);
            c14_5 = fma(a140.x, b0.x, c14_5);
            c15_5 = fma(a150.x, b0.x, c15_5);
            c0_5 = fma(a00.y, b0.y, c0_5);
            c1_5 = fma(a10.y, b0.y, c1_5);
            c2_5 = fma(a20.y, b0.y, c2_5);
            c3_5 = fma(a30.y, b0.y, c3_5);
            c4_5 = fma(a40.y, b0.y, c4_5);
            c5_5 = fma(a50.y, b0.y, c5_5);
            c6_5 = fma(a60.y, b0.y, c6_5);
            c7_5 = fma(a70.y, b0.y, c7_5);
            c8_5 = fma(a80.y, b0.y, c8_5);
            c9_5 = fma(a90.y, b0.y, c9_5);
            c10_5 = fma(a100.y, b0.y, c10_5);
            c11_5 = fma(a110.y, b0.y, c11_5);
            c12_5 = fma(a120.y, b0.y, c12_5);
            c13_5 = fma(a130.y, b0.y, c13_5);
            c14_5 = fma(a140.y, b0.y, c14_5);
            c15_5 = fma(a150.y, b0.y, c15_5);
            c0_5 = fma(a00.z, b0.z, c0_5);
            c1_5 = fma(a10.z, b0.z, c1_5);
            c2_5 = fma(a20.z, b0.z, c2_5);
            c3_5 = fma(a30.z, b0.z, c3_5);
            c4_5 = fma(a40.z, b0.z, c4_5);
            c5_5 = fma(a50.z, b0.z, c5_5);
            c6_5 = fma(a60.z, b0.z, c6_5);
            c7_5 = fma(a70.z, b0.z, c7_5);
            c8_5 = fma(a80.z, b0.z, c8_5);
            c9_5 = fma(a90.z, b0.z, c9_5);
            c10_5 = fma(a100.z, b0.z, c10_5);
            c11_5 = fma(a110.z, b0.z, c11_5);
            c12_5 = fma(a120.z, b0.z, c12_5);
            c13_5 = fma(a130.z, b0.z, c13_5);
            c14_5 = fma(a140.z, b0.z, c14_5);
            c15_5 = fma(a150.z, b0.z, c15_5);
            c0_5 = fma(a00.w, b0.w, c0_5);
            c1_5 = fma(a10.w, b0.w, c1_5);
            c2_5 = fma(a20.w, b0.w, c2_5);
            c3_5 = fma(a30.w, b0.w, c3_5);
            c4_5 = fma(a40.w, b0.w, c4_5);
            c5_5 = fma(a50.w, b0.w, c5_5);
            c6_5 = fma(a60.w, b0.w, c6_5);
            c7_5 = fma(a70.w, b0.w, c7_5);
            c8_5 = fma(a80.w, b0.w, c8_5);
            c9_5 = fma(a90.w, b0.w, c9_5);
            c10_5 = fma(a100.w, b0.w, c10_5);
            c11_5 = fma(a110.w, b0.w, c11_5);
            c12_5 = fma(a120.w, b0.w, c12_5);
            c13_5 = fma(a130.w, b0.w, c13_5);
            c14_5 = fma(a140.w, b0.w, c14_5);
            c15_5 = fma(a150.w, b0.w, c15_5);
            }
            {
            let b0 = xs[((tc + 96u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_6 = fma(a00.x, b0.x, c0_6);
            c1_6 = fma(a10.x, b0.x, c1_6);
            c2_6 = fma(a20.x, b0.x, c2_6);
            c3_6 = fma(a30.x, b0.x, c3_6);
            c4_6 = fma(a40.x, b0.x, c4_6);
            c5_6 = fma(a50.x, b0.x, c5_6);
            c6_6 = fma(a60.x, b0.x, c6_6);
            c7_6 = fma(a70.x, b0.x, c7_6);
            c8_6 = fma(a80.x, b0.x, c8_6);
            c9_6 = fma(a90.x, b0.x, c9_6);
            c10_6 = fma(a100.x, b0.x, c10_6);
            c11_6 = fma(a110.x, b0.x, c11_6);
            c12_6 = fma(a120.x, b0.x, c12_6);
            c13_6 = fma(a130.x, b0.x, c13_6);
            c14_6 = fma(a140.x, b0.x, c14_6);
            c15_6 = fma(a150.x, b0.x, c15_6);
            c0_6 = fma(a00.y, b0.y, c0_6);
            c1_6 = fma(a10.y, b0.y, c1_6);
            c2_6 = fma(a20.y, b0.y, c2_6);
            c3_6 = fma(a30.y, b0.y, c3_6);
            c4_6 = fma(a40.y, b0.y, c4_6);
            c5_6 = fma(a50.y, b0.y, c5_6);
            c6_6 = fma(a60.y, b0.y, c6_6);
            c7_6 = fma(a70.y, b0.y, c7_6);
            c8_6 = fma(a80.y, b0.y, c8_6);
            c9_6 = fma(a90.y, b0.y, c9_6);
            c10_6 = fma(a100.y, b0.y, c10_6);
            c11_6 = fma(a110.y, b0.y, c11_6);
            c12_6 = fma(a120.y, b0.y, c12_6);
            c13_6 = fma(a130.y, b0.y, c13_6);
            c14_6 = fma(a140.y, b0.y, c14_6);
            c15_6 = fma(a150.y, b0.y, c15_6);
            c0_6 = fma(a00.z, b0.z, c0_6);
            c1_6 = fma(a10.z, b0.z, c1_6);
            c2_6 = fma(a20.z, b0.z, c2_6);
            c3_6 = fma(a30.z, b0.z, c3_6);
            c4_6 = fma(a40.z, b0.z, c4_6);
            c5_6 = fma(a50.z, b0.z, c5_6);
            c6_6 = fma(a60.z, b0.z, c6_6);
            c7_6 = fma(a70.z, b0.z, c7_6);
            c8_6 = fma(a80.z, b0.z, c8_6);
            c9_6 = fma(a90.z, b0.z, c9_6);
            c10_6 = fma(a100.z, b0.z, c10_6);
            c11_6 = fma(a110.z, b0.z, c11_6);
            c12_6 = fma(a120.z, b0.z, c12_6);
            c13_6 = fma(a130.z, b0.z, c13_6);
            c14_6 = fma(a140.z, b0.z, c14_6);
            c15_6 = fma(a150.z, b0.z, c15_6);
            c0_6 = fma(a00.w, b0.w, c0_6);
            c1_6 = fma(a10.w, b0.w, c1_6);
            c2_6 = fma(a20.w, b0.w, c2_6);
            c3_6 = fma(a30.w, b0.w, c3_6);
            c4_6 = fma(a40.w, b0.w, c4_6);
            c5_6 = fma(a50.w, b0.w, c5_6);
            c6_6 = fma(a60.w, b0.w, c6_6);
            c7_6 = fma(a70.w, b0.w, c7_6);
            c8_6 = fma(a80.w, b0.w, c8_6);
            c9_6 = fma(a90.w, b0.w, c9_6);
            c10_6 = fma(a100.w, b0.w, c10_6);
            c11_6 = fma(a110.w, b0.w, c11_6);
            c12_6 = fma(a120.w, b0.w, c12_6);
            c13_6 = fma(a130.w, b0.w, c13_6);
            c14_6 = fma(a140.w, b0.w, c14_6);
            c15_6 = fma(a150.w, b0.w, c15_6);
            }
            {
            let b0 = xs[((tc + 112u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_7 = fma(a00.x, b0.x, c0_7);
            c1_7 = fma(a10.x, b0.x, c1_7);
            c2_7 = fma(a20.x, b0.x, c2_7);
            c3_7 = fma(a30.x, b0.x, c3_7);
            c4_7 = fma(a40.x, b0.x, c4_7);
            c5_7 = fma(a50.x, b0.x, c5_7);
            c6_7 = fma(a60.x, b0.x, c6_7);
            c7_7 = fma(a70.x, b0.x, c7_7);
            c8_7 = fma(a80.x, b0.x, c8_7);
            c9_7 = fma(a90.x, b0.x, c9_7);
            c10_7 = fma(a100.x, b0.x, c10_7);
            c11_7 = fma(a110.x, b0.x, c11_7);
            c12_7 = fma(a120.x, b0.x, c12_7);
            c13_7 = fma(a130.x, b0.x, c13_7);
            c14_7 = fma(a140.x, b0.x, c14_7);
            c15_7 = fma(a150.x, b0.x, c15_7);
            c0_7 = fma(a00.y, b0.y, c0_7);
            c1_7 = fma(a10.y, b0.y, c1_7);
            c2_7 = fma(a20.y, b0.y, c2_7);
            c3_7 = fma(a30.y, b0.y, c3_7);
            c4_7 = fma(a40.y, b0.y, c4_7);
            c5_7 = fma(a50.y, b0.y, c5_7);
            c6_7 = fma(a60.y, b0.y, c6_7);
            c7_7 = fma(a70.y, b0.y, c7_7);
            c8_7 = fma(a80.y, b0.y, c8_7);
            c9_7 = fma(a90.y, b0.y, c9_7);
            c10_7 = fma(a100.y, b0.y, c10_7);
            c11_7 = fma(a110.y, b0.y, c11_7);
            c12_7 = fma(a120.y, b0.y, c12_7);
            c13_7 = fma(a130.y, b0.y, c13_7);
            c14_7 = fma(a140.y, b0.y, c14_7);
            c15_7 = fma(a150.y, b0.y, c15_7);
            c0_7 = fma(a00.z, b0.z, c0_7);
            c1_7 = fma(a10.z, b0.z, c1_7);
            c2_7 = fma(a20.z, b0.z, c2_7);
            c3_7 = fma(a30.z, b0.z, c3_7);
            c4_7 = fma(a40.z, b0.z, c4_7);
            c5_7 = fma(a50.z, b0.z, c5_7);
            c6_7 = fma(a60.z, b0.z, c6_7);
            c7_7 = fma(a70.z, b0.z, c7_7);
            c8_7 = fma(a80.z, b0.z, c8_7);
            c9_7 = fma(a90.z, b0.z, c9_7);
            c10_7 = fma(a100.z, b0.z, c10_7);
            c11_7 = fma(a110.z, b0.z, c11_7);
            c12_7 = fma(a120.z, b0.z, c12_7);
            c13_7 = fma(a130.z, b0.z, c13_7);
            c14_7 = fma(a140.z, b0.z, c14_7);
            c15_7 = fma(a150.z, b0.z, c15_7);
            c0_7 = fma(a00.w, b0.w, c0_7);
            c1_7 = fma(a10.w, b0.w, c1_7);
            c2_7 = fma(a20.w, b0.w, c2_7);
            c3_7 = fma(a30.w, b0.w, c3_7);
            c4_7 = fma(a40.w, b0.w, c4_7);
            c5_7 = fma(a50.w, b0.w, c5_7);
            c6_7 = fma(a60.w, b0.w, c6_7);
            c7_7 = fma(a70.w, b0.w, c7_7);
            c8_7 = fma(a80.w, b0.w, c8_7);
            c9_7 = fma(a90.w, b0.w, c9_7);
            c10_7 = fma(a100.w, b0.w, c10_7);
            c11_7 = fma(a110.w, b0.w, c11_7);
            c12_7 = fma(a120.w, b0.w, c12_7);
            c13_7 = fma(a130.w, b0.w, c13_7);
            c14_7 = fma(a140.w, b0.w, c14_7);
            c15_7 = fma(a150.w, b0.w, c15_7);
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
            let a80 = ws[((tr + 64u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a90 = ws[((tr + 72u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a100 = ws[((tr + 80u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a110 = ws[((tr + 88u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a120 = ws[((tr + 96u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a130 = ws[((tr + 104u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a140 = ws[((tr + 112u) * 4u + (2u ^ swr)) * 1u + 0u];
            let a150 = ws[((tr + 120u) * 4u + (2u ^ swr)) * 1u + 0u];
            {
            let b0 = xs[((tc + 0u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_0 = fma(a00.x, b0.x, c0_0);
            c1_0 = fma(a10.x, b0.x, c1_0);
            c2_0 = fma(a20.x, b0.x, c2_0);
            c3_0 = fma(a30.x, b0.x, c3_0);
            c4_0 = fma(a40.x, b0.x, c4_0);
            c5_0 = fma(a50.x, b0.x, c5_0);
            c6_0 = fma(a60.x, b0.x, c6_0);
            c7_0 = fma(a70.x, b0.x, c7_0);
            c8_0 = fma(a80.x, b0.x, c8_0);
            c9_0 = fma(a90.x, b0.x, c9_0);
            c10_0 = fma(a100.x, b0.x, c10_0);
            c11_0 = fma(a110.x, b0.x, c11_0);
            c12_0 = fma(a120.x, b0.x, c12_0);
            c13_0 = fma(a130.x, b0.x, c13_0);
            c14_0 = fma(a140.x, b0.x, c14_0);
            c15_0 = fma(a150.x, b0.x, c15_0);
            c0_0 = fma(a00.y, b0.y, c0_0);
            c1_0 = fma(a10.y, b0.y, c1_0);
            c2_0 = fma(a20.y, b0.y, c2_0);
            c3_0 = fma(a30.y, b0.y, c3_0);
            c4_0 = fma(a40.y, b0.y, c4_0);
            c5_0 = fma(a50.y, b0.y, c5_0);
            c6_0 = fma(a60.y, b0.y, c6_0);
            c7_0 = fma(a70.y, b0.y, c7_0);
            c8_0 = fma(a80.y, b0.y, c8_0);
            c9_0 = fma(a90.y, b0.y, c9_0);
            c10_0 = fma(a100.y, b0.y, c10_0);
            c11_0 = fma(a110.y, b0.y, c11_0);
            c12_0 = fma(a120.y, b0.y, c12_0);
            c13_0 = fma(a130.y, b0.y, c13_0);
            c14_0 = fma(a140.y, b0.y, c14_0);
            c15_0 = fma(a150.y, b0.y, c15_0);
            c0_0 = fma(a00.z, b0.z, c0_0);
            c1_0 = fma(a10.z, b0.z, c1_0);
            c2_0 = fma(a20.z, b0.z, c2_0);
            c3_0 = fma(a30.z, b0.z, c3_0);
            c4_0 = fma(a40.z, b0.z, c4_0);
            c5_0 = fma(a50.z, b0.z, c5_0);
            c6_0 = fma(a60.z, b0.z, c6_0);
            c7_0 = fma(a70.z, b0.z, c7_0);
            c8_0 = fma(a80.z, b0.z, c8_0);
            c9_0 = fma(a90.z, b0.z, c9_0);
            c10_0 = fma(a100.z, b0.z, c10_0);
            c11_0 = fma(a110.z, b0.z, c11_0);
            c12_0 = fma(a120.z, b0.z, c12_0);
            c13_0 = fma(a130.z, b0.z, c13_0);
            c14_0 = fma(a140.z, b0.z, c14_0);
            c15_0 = fma(a150.z, b0.z, c15_0);
            c0_0 = fma(a00.w, b0.w, c0_0);
            c1_0 = fma(a10.w, b0.w, c1_0);
            c2_0 = fma(a20.w, b0.w, c2_0);
            c3_0 = fma(a30.w, b0.w, c3_0);
            c4_0 = fma(a40.w, b0.w, c4_0);
            c5_0 = fma(a50.w, b0.w, c5_0);
            c6_0 = fma(a60.w, b0.w, c6_0);
            c7_0 = fma(a70.w, b0.w, c7_0);
            c8_0 = fma(a80.w, b0.w, c8_0);
            c9_0 = fma(a90.w, b0.w, c9_0);
            c10_0 = fma(a100.w, b0.w, c10_0);
            c11_0 = fma(a110.w, b0.w, c11_0);
            c12_0 = fma(a120.w, b0.w, c12_0);
            c13_0 = fma(a130.w, b0.w, c13_0);
            c14_0 = fma(a140.w, b0.w, c14_0);
            c15_0 = fma(a150.w, b0.w, c15_0);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_1 = fma(a00.x, b0.x, c0_1);
            c1_1 = fma(a10.x, b0.x, c1_1);
            c2_1 = fma(a20.x, b0.x, c2_1);
            c3_1 = fma(a30.x, b0.x, c3_1);
            c4_1 = fma(a40.x, b0.x, c4_1);
            c5_1 = fma(a50.x, b0.x, c5_1);
            c6_1 = fma(a60.x, b0.x, c6_1);
            c7_1 = fma(a70.x, b0.x, c7_1);
            c8_1 = fma(a80.x, b0.x, c8_1);
            c9_1 = fma(a90.x, b0.x, c9_1);
            c10_1 = fma(a100.x, b0.x, c10_1);
            c11_1 = fma(a110.x, b0.x, c11_1);
            c12_1 = fma(a120.x, b0.x, c12_1);
            c13_1 = fma(a130.x, b0.x, c13_1);
            c14_1 = fma(a140.x, b0.x, c14_1);
            c15_1 = fma(a150.x, b0.x, c15_1);
            c0_1 = fma(a00.y, b0.y, c0_1);
            c1_1 = fma(a10.y, b0.y, c1_1);
            c2_1 = fma(a20.y, b0.y, c2_1);
            c3_1 = fma(a30.y, b0.y, c3_1);
            c4_1 = fma(a40.y, b0.y, c4_1);
            c5_1 = fma(a50.y, b0.y, c5_1);
            c6_1 = fma(a60.y, b0.y, c6_1);
            c7_1 = fma(a70.y, b0.y, c7_1);
            c8_1 = fma(a80.y, b0.y, c8_1);
            c9_1 = fma(a90.y, b0.y, c9_1);
            c10_1 = fma(a100.y, b0.y, c10_1);
            c11_1 = fma(a110.y, b0.y, c11_1);
            c12_1 = fma(a120.y, b0.y, c12_1);
            c13_1 = fma(a130.y, b0.y, c13_1);
            c14_1 = fma(a140.y, b0.y, c14_1);
            c15_1 = fma(a150.y, b0.y, c15_1);
            c0_1 = fma(a00.z, b0.z, c0_1);
            c1_1 = fma(a10.z, b0.z, c1_1);
            c2_1 = fma(a20.z, b0.z, c2_1);
            c3_1 = fma(a30.z, b0.z, c3_1);
            c4_1 = fma(a40.z, b0.z, c4_1);
            c5_1 = fma(a50.z, b0.z, c5_1);
            c6_1 = fma(a60.z, b0.z, c6_1);
            c7_1 = fma(a70.z, b0.z, c7_1);
            c8_1 = fma(a80.z, b0.z, c8_1);
            c9_1 = fma(a90.z, b0.z, c9_1);
            c10_1 = fma(a100.z, b0.z, c10_1);
            c11_1 = fma(a110.z, b0.z, c11_1);
            c12_1 = fma(a120.z, b0.z, c12_1);
            c13_1 = fma(a130.z, b0.z, c13_1);
            c14_1 = fma(a140.z, b0.z, c14_1);
            c15_1 = fma(a150.z, b0.z, c15_1);
            c0_1 = fma(a00.w, b0.w, c0_1);
            c1_1 = fma(a10.w, b0.w, c1_1);
            c2_1 = fma(a20.w, b0.w, c2_1);
            c3_1 = fma(a30.w, b0.w, c3_1);
            c4_1 = fma(a40.w, b0.w, c4_1);
            c5_1 = fma(a50.w, b0.w, c5_1);
            c6_1 = fma(a60.w, b0.w, c6_1);
            c7_1 = fma(a70.w, b0.w, c7_1);
            c8_1 = fma(a80.w, b0.w, c8_1);
            c9_1 = fma(a90.w, b0.w, c9_1);
            c10_1 = fma(a100.w, b0.w, c10_1);
            c11_1 = fma(a110.w, b0.w, c11_1);
            c12_1 = fma(a120.w, b0.w, c12_1);
            c13_1 = fma(a130.w, b0.w, c13_1);
            c14_1 = fma(a140.w, b0.w, c14_1);
            c15_1 = fma(a150.w, b0.w, c15_1);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_2 = fma(a00.x, b0.x, c0_2);
            c1_2 = fma(a10.x, b0.x, c1_2);
            c2_2 = fma(a20.x, b0.x, c2_2);
            c3_2 = fma(a30.x, b0.x, c3_2);
            c4_2 = fma(a40.x, b0.x, c4_2);
            c5_2 = fma(a50.x, b0.x, c5_2);
            c6_2 = fma(a60.x, b0.x, c6_2);
            c7_2 = fma(a70.x, b0.x, c7_2);
            c8_2 = fma(a80.x, b0.x, c8_2);
            c9_2 = fma(a90.x, b0.x, c9_2);
            c10_2 = fma(a100.x, b0.x, c10_2);
            c11_2 = fma(a110.x, b0.x, c11_2);
            c12_2 = fma(a120.x, b0.x, c12_2);
            c13_2 = fma(a130.x, b0.x, c13_2);
            c14_2 = fma(a140.x, b0.x, c14_2);
            c15_2 = fma(a150.x, b0.x, c15_2);
            c0_2 = fma(a00.y, b0.y, c0_2);
            c1_2 = fma(a10.y, b0.y, c1_2);
            c2_2 = fma(a20.y, b0.y, c2_2);
            c3_2 = fma(a30.y, b0.y, c3_2);
            c4_2 = fma(a40.y, b0.y, c4_2);
            c5_2 = fma(a50.y, b0.y, c5_2);
            c6_2 = fma(a60.y, b0.y, c6_2);
            c7_2 = fma(a70.y, b0.y, c7_2);
            c8_2 = fma(a80.y, b0.y, c8_2);
            c9_2 = fma(a90.y, b0.y, c9_2);
            c10_2 = fma(a100.y, b0.y, c10_2);
            c11_2 = fma(a110.y, b0.y, c11_2);
            c12_2 = fma(a120.y, b0.y, c12_2);
            c13_2 = fma(a130.y, b0.y, c13_2);
            c14_2 = fma(a140.y, b0.y, c14_2);
            c15_2 = fma(a150.y, b0.y, c15_2);
            c0_2 = fma(a00.z, b0.z, c0_2);
            c1_2 = fma(a10.z, b0.z, c1_2);
            c2_2 = fma(a20.z, b0.z, c2_2);
            c3_2 = fma(a30.z, b0.z, c3_2);
            c4_2 = fma(a40.z, b0.z, c4_2);
            c5_2 = fma(a50.z, b0.z, c5_2);
            c6_2 = fma(a60.z, b0.z, c6_2);
            c7_2 = fma(a70.z, b0.z, c7_2);
            c8_2 = fma(a80.z, b0.z, c8_2);
            c9_2 = fma(a90.z, b0.z, c9_2);
            c10_2 = fma(a100.z, b0.z, c10_2);
            c11_2 = fma(a110.z, b0.z, c11_2);
            c12_2 = fma(a120.z, b0.z, c12_2);
            c13_2 = fma(a130.z, b0.z, c13_2);
            c14_2 = fma(a140.z, b0.z, c14_2);
            c15_2 = fma(a150.z, b0.z, c15_2);
            c0_2 = fma(a00.w, b0.w, c0_2);
            c1_2 = fma(a10.w, b0.w, c1_2);
            c2_2 = fma(a20.w, b0.w, c2_2);
            c3_2 = fma(a30.w, b0.w, c3_2);
            c4_2 = fma(a40.w, b0.w, c4_2);
            c5_2 = fma(a50.w, b0.w, c5_2);
            c6_2 = fma(a60.w, b0.w, c6_2);
            c7_2 = fma(a70.w, b0.w, c7_2);
            c8_2 = fma(a80.w, b0.w, c8_2);
            c9_2 = fma(a90.w, b0.w, c9_2);
            c10_2 = fma(a100.w, b0.w, c10_2);
            c11_2 = fma(a110.w, b0.w, c11_2);
            c12_2 = fma(a120.w, b0.w, c12_2);
            c13_2 = fma(a130.w, b0.w, c13_2);
            c14_2 = fma(a140.w, b0.w, c14_2);
            c15_2 = fma(a150.w, b0.w, c15_2);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_3 = fma(a00.x, b0.x, c0_3);
            c1_3 = fma(a10.x, b0.x, c1_3);
            c2_3 = fma(a20.x, b0.x, c2_3);
            c3_3 = fma(a30.x, b0.x, c3_3);
            c4_3 = fma(a40.x, b0.x, c4_3);
            c5_3 = fma(a50.x, b0.x, c5_3);
            c6_3 = fma(a60.x, b0.x, c6_3);
            c7_3 = fma(a70.x, b0.x, c7_3);
            c8_3 = fma(a80.x, b0.x, c8_3);
            c9_3 = fma(a90.x, b0.x, c9_3);
            c10_3 = fma(a100.x, b0.x, c10_3);
            c11_3 = fma(a110.x, b0.x, c11_3);
            c12_3 = fma(a120.x, b0.x, c12_3);
            c13_3 = fma(a130.x, b0.x, c13_3);
            c14_3 = fma(a140.x, b0.x, c14_3);
            c15_3 = fma(a150.x, b0.x, c15_3);
            c0_3 = fma(a00.y, b0.y, c0_3);
            c1_3 = fma(a10.y, b0.y, c1_3);
            c2_3 = fma(a20.y, b0.y, c2_3);
            c3_3 = fma(a30.y, b0.y, c3_3);
            c4_3 = fma(a40.y, b0.y, c4_3);
            c5_3 = fma(a50.y, b0.y, c5_3);
            c6_3 = fma(a60.y, b0.y, c6_3);
            c7_3 = fma(a70.y, b0.y, c7_3);
            c8_3 = fma(a80.y, b0.y, c8_3);
            c9_3 = fma(a90.y, b0.y, c9_3);
            c10_3 = fma(a100.y, b0.y, c10_3);
            c11_3 = fma(a110.y, b0.y, c11_3);
            c12_3 = fma(a120.y, b0.y, c12_3);
            c13_3 = fma(a130.y, b0.y, c13_3);
            c14_3 = fma(a140.y, b0.y, c14_3);
            c15_3 = fma(a150.y, b0.y, c15_3);
            c0_3 = fma(a00.z, b0.z, c0_3);
            c1_3 = fma(a10.z, b0.z, c1_3);
            c2_3 = fma(a20.z, b0.z, c2_3);
            c3_3 = fma(a30.z, b0.z, c3_3);
            c4_3 = fma(a40.z, b0.z, c4_3);
            c5_3 = fma(a50.z, b0.z, c5_3);
            c6_3 = fma(a60.z, b0.z, c6_3);
            c7_3 = fma(a70.z, b0.z, c7_3);
            c8_3 = fma(a80.z, b0.z, c8_3);
            c9_3 = fma(a90.z, b0.z, c9_3);
            c10_3 = fma(a100.z, b0.z, c10_3);
            c11_3 = fma(a110.z, b0.z, c11_3);
            c12_3 = fma(a120.z, b0.z, c12_3);
            c13_3 = fma(a130.z, b0.z, c13_3);
            c14_3 = fma(a140.z, b0.z, c14_3);
            c15_3 = fma(a150.z, b0.z, c15_3);
            c0_3 = fma(a00.w, b0.w, c0_3);
            c1_3 = fma(a10.w, b0.w, c1_3);
            c2_3 = fma(a20.w, b0.w, c2_3);
            c3_3 = fma(a30.w, b0.w, c3_3);
            c4_3 = fma(a40.w, b0.w, c4_3);
            c5_3 = fma(a50.w, b0.w, c5_3);
            c6_3 = fma(a60.w, b0.w, c6_3);
            c7_3 = fma(a70.w, b0.w, c7_3);
            c8_3 = fma(a80.w, b0.w, c8_3);
            c9_3 = fma(a90.w, b0.w, c9_3);
            c10_3 = fma(a100.w, b0.w, c10_3);
            c11_3 = fma(a110.w, b0.w, c11_3);
            c12_3 = fma(a120.w, b0.w, c12_3);
            c13_3 = fma(a130.w, b0.w, c13_3);
            c14_3 = fma(a140.w, b0.w, c14_3);
            c15_3 = fma(a150.w, b0.w, c15_3);
            }
            {
            let b0 = xs[((tc + 64u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_4 = fma(a00.x, b0.x, c0_4);
            c1_4 = fma(a10.x, b0.x, c1_4);
            c2_4 = fma(a20.x, b0.x, c2_4);
            c3_4 = fma(a30.x, b0.x, c3_4);
            c4_4 = fma(a40.x, b0.x, c4_4);
            c5_4 = fma(a50.x, b0.x, c5_4);
            c6_4 = fma(a60.x, b0.x, c6_4);
            c7_4 = fma(a70.x, b0.x, c7_4);
            c8_4 = fma(a80.x, b0.x, c8_4);
            c9_4 = fma(a90.x, b0.x, c9_4);
            c10_4 = fma(a100.x, b0.x, c10_4);
            c11_4 = fma(a110.x, b0.x, c11_4);
            c12_4 = fma(a120.x, b0.x, c12_4);
            c13_4 = fma(a130.x, b0.x, c13_4);
            c14_4 = fma(a140.x, b0.x, c14_4);
            c15_4 = fma(a150.x, b0.x, c15_4);
            c0_4 = fma(a00.y, b0.y, c0_4);
            c1_4 = fma(a10.y, b0.y, c1_4);
            c2_4 = fma(a20.y, b0.y, c2_4);
            c3_4 = fma(a30.y, b0.y, c3_4);
            c4_4 = fma(a40.y, b0.y, c4_4);
            c5_4 = fma(a50.y, b0.y, c5_4);
            c6_4 = fma(a60.y, b0.y, c6_4);
            c7_4 = fma(a70.y, b0.y, c7_4);
            c8_4 = fma(a80.y, b0.y, c8_4);
            c9_4 = fma(a90.y, b0.y, c9_4);
            c10_4 = fma(a100.y, b0.y, c10_4);
            c11_4 = fma(a110.y, b0.y, c11_4);
            c12_4 = fma(a120.y, b0.y, c12_4);
            c13_4 = fma(a130.y, b0.y, c13_4);
            c14_4 = fma(a140.y, b0.y, c14_4);
            c15_4 = fma(a150.y, b0.y, c15_4);
            c0_4 = fma(a00.z, b0.z, c0_4);
            c1_4 = fma(a10.z, b0.z, c1_4);
            c2_4 = fma(a20.z, b0.z, c2_4);
            c3_4 = fma(a30.z, b0.z, c3_4);
            c4_4 = fma(a40.z, b0.z, c4_4);
            c5_4 = fma(a50.z, b0.z, c5_4);
            c6_4 = fma(a60.z, b0.z, c6_4);
            c7_4 = fma(a70.z, b0.z, c7_4);
            c8_4 = fma(a80.z, b0.z, c8_4);
            c9_4 = fma(a90.z, b0.z, c9_4);
            c10_4 = fma(a100.z, b0.z, c10_4);
            c11_4 = fma(a110.z, b0.z, c11_4);
            c12_4 = fma(a120.z, b0.z, c12_4);
            c13_4 = fma(a130.z, b0.z, c13_4);
            c14_4 = fma(a140.z, b0.z, c14_4);
            c15_4 = fma(a150.z, b0.z, c15_4);
            c0_4 = fma(a00.w, b0.w, c0_4);
            c1_4 = fma(a10.w, b0.w, c1_4);
            c2_4 = fma(a20.w, b0.w, c2_4);
            c3_4 = fma(a30.w, b0.w, c3_4);
            c4_4 = fma(a40.w, b0.w, c4_4);
            c5_4 = fma(a50.w, b0.w, c5_4);
            c6_4 = fma(a60.w, b0.w, c6_4);
            c7_4 = fma(a70.w, b0.w, c7_4);
            c8_4 = fma(a80.w, b0.w, c8_4);
            c9_4 = fma(a90.w, b0.w, c9_4);
            c10_4 = fma(a100.w, b0.w, c10_4);
            c11_4 = fma(a110.w, b0.w, c11_4);
            c12_4 = fma(a120.w, b0.w, c12_4);
            c13_4 = fma(a130.w, b0.w, c13_4);
            c14_4 = fma(a140.w, b0.w, c14_4);
            c15_4 = fma(a150.w, b0.w, c15_4);
            }
            {
            let b0 = xs[((tc + 80u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_5 = fma(a00.x, b0.x, c0_5);
            c1_5 = fma(a10.x, b0.x, c1_5);
            c2_5 = fma(a20.x, b0.x, c2_5);
            c3_5 = fma(a30.x, b0.x, c3_5);
            c4_5 = fma(a40.x, b0.x, c4_5);
            c5_5 = fma(a50.x, b0.x, c5_5);
            c6_5 = fma(a60.x, b0.x, c6_5);
            c7_5 = fma(a70.x, b0.x, c7_5);
            c8_5 = fma(a80.x, b0.x, c8_5);
            c9_5 = fma(a90.x, b0.x, c9_5);
            c10_5 = fma(a100.x, b0.x, c10_5);
            c11_5 = fma(a110.x, b0.x, c11_5);
            c12_5 = fma(a120.x, b0.x, c12_5);
            c13_5 = fma(a130.x, b0.x, c13_5);
            c14_5 = fma(a140.x, b0.x, c14_5);
            c15_5 = fma(a150.x, b0.x, c15_5);
            c0_5 = fma(a00.y, b0.y, c0_5);
            c1_5 = fma(a10.y, b0.y, c1_5);
            c2_5 = fma(a20.y, b0.y, c2_5);
            c3_5 = fma(a30.y, b0.y, c3_5);
            c4_5 = fma(a40.y, b0.y, c4_5);
            c5_5 = fma(a50.y, b0.y, c5_5);
            c6_5 = fma(a60.y, b0.y, c6_5);
            c7_5 = fma(a70.y, b0.y, c7_5);
            c8_5 = fma(a80.y, b0.y, c8_5);
            c9_5 = fma(a90.y, b0.y, c9_5);
            c10_5 = fma(a100.y, b0.y, c10_5);
            c11_5 = fma(a110.y, b0.y, c11_5);
            c12_5 = fma(a120.y, b0.y, c12_5);
            c13_5 = fma(a130.y, b0.y, c13_5);
            c14_5 = fma(a140.y, b0.y, c14_5);
            c15_5 = fma(a150.y, b0.y, c15_5);
            c0_5 = fma(a00.z, b0.z, c0_5);
            c1_5 = fma(a10.z, b0.z, c1_5);
            c2_5 = fma(a20.z, b0.z, c2_5);
            c3_5 = fma(a30.z, b0.z, c3_5);
            c4_5 = fma(a40.z, b0.z, c4_5);
            c5_5 = fma(a50.z, b0.z, c5_5);
            c6_5 = fma(a60.z, b0.z, c6_5);
            c7_5 = fma(a70.z, b0.z, c7_5);
            c8_5 = fma(a80.z, b0.z, c8_5);
            c9_5 = fma(a90.z, b0.z, c9_5);
            c10_5 = fma(a100.z, b0.z, c10_5);
            c11_5 = fma(a110.z, b0.z, c11_5);
            c12_5 = fma(a120.z, b0.z, c12_5);
            c13_5 = fma(a130.z, b0.z, c13_5);
            c14_5 = fma(a140.z, b0.z, c14_5);
            c15_5 = fma(a150.z, b0.z, c15_5);
            c0_5 = fma(a00.w, b0.w, c0_5);
            c1_5 = fma(a10.w, b0.w, c1_5);
            c2_5 = fma(a20.w, b0.w, c2_5);
            c3_5 = fma(a30.w, b0.w, c3_5);
            c4_5 = fma(a40.w, b0.w, c4_5);
            c5_5 = fma(a50.w, b0.w, c5_5);
            c6_5 = fma(a60.w, b0.w, c6_5);
            c7_5 = fma(a70.w, b0.w, c7_5);
            c8_5 = fma(a80.w, b0.w, c8_5);
            c9_5 = fma(a90.w, b0.w, c9_5);
            c10_5 = fma(a100.w, b0.w, c10_5);
            c11_5 = fma(a110.w, b0.w, c11_5);
            c12_5 = fma(a120.w, b0.w, c12_5);
            c13_5 = fma(a130.w, b0.w, c13_5);
            c14_5 = fma(a140.w, b0.w, c14_5);
            c15_5 = fma(a150.w, b0.w, c15_5);
            }
            {
            let b0 = xs[((tc + 96u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_6 = fma(a00.x, b0.x, c0_6);
            c1_6 = fma(a10.x, b0.x, c1_6);
            c2_6 = fma(a20.x, b0.x, c2_6);
            c3_6 = fma(a30.x, b0.x, c3_6);
            c4_6 = fma(a40.x, b0.x, c4_6);
            c5_6 = fma(a50.x, b0.x, c5_6);
            c6_6 = fma(a60.x, b0.x, c6_6);
            c7_6 = fma(a70.x, b0.x, c7_6);
            c8_6 = fma(a80.x, b0.x, c8_6);
            c9_6 = fma(a90.x, b0.x, c9_6);
            c10_6 = fma(a100.x, b0.x, c10_6);
            c11_6 = fma(a110.x, b0.x, c11_6);
            c12_6 = fma(a120.x, b0.x, c12_6);
            c13_6 = fma(a130.x, b0.x, c13_6);
            c14_6 = fma(a140.x, b0.x, c14_6);
            c15_6 = fma(a150.x, b0.x, c15_6);
            c0_6 = fma(a00.y, b0.y, c0_6);
            c1_6 = fma(a10.y, b0.y, c1_6);
            c2_6 = fma(a20.y, b0.y, c2_6);
            c3_6 = fma(a30.y, b0.y, c3_6);
            c4_6 = fma(a40.y, b0.y, c4_6);
            c5_6 = fma(a50.y, b0.y, c5_6);
            c6_6 = fma(a60.y, b0.y, c6_6);
            c7_6 = fma(a70.y, b0.y, c7_6);
            c8_6 = fma(a80.y, b0.y, c8_6);
            c9_6 = fma(a90.y, b0.y, c9_6);
            c10_6 = fma(a100.y, b0.y, c10_6);
            c11_6 = fma(a110.y, b0.y, c11_6);
            c12_6 = fma(a120.y, b0.y, c12_6);
            c13_6 = fma(a130.y, b0.y, c13_6);
            c14_6 = fma(a140.y, b0.y, c14_6);
            c15_6 = fma(a150.y, b0.y, c15_6);
            c0_6 = fma(a00.z, b0.z, c0_6);
            c1_6 = fma(a10.z, b0.z, c1_6);
            c2_6 = fma(a20.z, b0.z, c2_6);
            c3_6 = fma(a30.z, b0.z, c3_6);
            c4_6 = fma(a40.z, b0.z, c4_6);
            c5_6 = fma(a50.z, b0.z, c5_6);
            c6_6 = fma(a60.z, b0.z, c6_6);
            c7_6 = fma(a70.z, b0.z, c7_6);
            c8_6 = fma(a80.z, b0.z, c8_6);
            c9_6 = fma(a90.z, b0.z, c9_6);
            c10_6 = fma(a100.z, b0.z, c10_6);
            c11_6 = fma(a110.z, b0.z, c11_6);
            c12_6 = fma(a120.z, b0.z, c12_6);
            c13_6 = fma(a130.z, b0.z, c13_6);
            c14_6 = fma(a140.z, b0.z, c14_6);
            c15_6 = fma(a150.z, b0.z, c15_6);
            c0_6 = fma(a00.w, b0.w, c0_6);
            c1_6 = fma(a10.w, b0.w, c1_6);
            c2_6 = fma(a20.w, b0.w, c2_6);
            c3_6 = fma(a30.w, b0.w, c3_6);
            c4_6 = fma(a40.w, b0.w, c4_6);
            c5_6 = fma(a50.w, b0.w, c5_6);
            c6_6 = fma(a60.w, b0.w, c6_6);
            c7_6 = fma(a70.w, b0.w, c7_6);
            c8_6 = fma(a80.w, b0.w, c8_6);
            c9_6 = fma(a90.w, b0.w, c9_6);
            c10_6 = fma(a100.w, b0.w, c10_6);
            c11_6 = fma(a110.w, b0.w, c11_6);
            c12_6 = fma(a120.w, b0.w, c12_6);
            c13_6 = fma(a130.w, b0.w, c13_6);
            c14_6 = fma(a140.w, b0.w, c14_6);
            c15_6 = fma(a150.w, b0.w, c15_6);
            }
            {
            let b0 = xs[((tc + 112u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_7 = fma(a00.x, b0.x, c0_7);
            c1_7 = fma(a10.x, b0.x, c1_7);
            c2_7 = fma(a20.x, b0.x, c2_7);
            c3_7 = fma(a30.x, b0.x, c3_7);
            c4_7 = fma(a40.x, b0.x, c4_7);
            c5_7 = fma(a50.x, b0.x, c5_7);
            c6_7 = fma(a60.x, b0.x, c6_7);
            c7_7 = fma(a70.x, b0.x, c7_7);
            c8_7 = fma(a80.x, b0.x, c8_7);
            c9_7 = fma(a90.x, b0.x, c9_7);
            c10_7 = fma(a100.x, b0.x, c10_7);
            c11_7 = fma(a110.x, b0.x, c11_7);
            c12_7 = fma(a120.x, b0.x, c12_7);
            c13_7 = fma(a130.x, b0.x, c13_7);
            c14_7 = fma(a140.x, b0.x, c14_7);
            c15_7 = fma(a150.x, b0.x, c15_7);
            c0_7 = fma(a00.y, b0.y, c0_7);
            c1_7 = fma(a10.y, b0.y, c1_7);
            c2_7 = fma(a20.y, b0.y, c2_7);
            c3_7 = fma(a30.y, b0.y, c3_7);
            c4_7 = fma(a40.y, b0.y, c4_7);
            c5_7 = fma(a50.y, b0.y, c5_7);
            c6_7 = fma(a60.y, b0.y, c6_7);
            c7_7 = fma(a70.y, b0.y, c7_7);
            c8_7 = fma(a80.y, b0.y, c8_7);
            c9_7 = fma(a90.y, b0.y, c9_7);
            c10_7 = fma(a100.y, b0.y, c10_7);
            c11_7 = fma(a110.y, b0.y, c11_7);
            c12_7 = fma(a120.y, b0.y, c12_7);
            c13_7 = fma(a130.y, b0.y, c13_7);
            c14_7 = fma(a140.y, b0.y, c14_7);
            c15_7 = fma(a150.y, b0.y, c15_7);
            c0_7 = fma(a00.z, b0.z, c0_7);
            c1_7 = fma(a10.z, b0.z, c1_7);
            c2_7 = fma(a20.z, b0.z, c2_7);
            c3_7 = fma(a30.z, b0.z, c3_7);
            c4_7 = fma(a40.z, b0.z, c4_7);
            c5_7 = fma(a50.z, b0.z, c5_7);
            c6_7 = fma(a60.z, b0.z, c6_7);
            c7_7 = fma(a70.z, b0.z, c7_7);
            c8_7 = fma(a80.z, b0.z, c8_7);
            c9_7 = fma(a90.z, b0.z, c9_7);
            c10_7 = fma(a100.z, b0.z, c10_7);
            c11_7 = fma(a110.z, b0.z, c11_7);
            c12_7 = fma(a120.z, b0.z, c12_7);
            c13_7 = fma(a130.z, b0.z, c13_7);
            c14_7 = fma(a140.z, b0.z, c14_7);
            c15_7 = fma(a150.z, b0.z, c15_7);
            c0_7 = fma(a00.w, b0.w, c0_7);
            c1_7 = fma(a10.w, b0.w, c1_7);
            c2_7 = fma(a20.w, b0.w, c2_7);
            c3_7 = fma(a30.w, b0.w, c3_7);
            c4_7 = fma(a40.w, b0.w, c4_7);
            c5_7 = fma(a50.w, b0.w, c5_7);
            c6_7 = fma(a60.w, b0.w, c6_7);
            c7_7 = fma(a70.w, b0.w, c7_7);
            c8_7 = fma(a80.w, b0.w, c8_7);
            c9_7 = fma(a90.w, b0.w, c9_7);
            c10_7 = fma(a100.w, b0.w, c10_7);
            c11_7 = fma(a110.w, b0.w, c11_7);
            c12_7 = fma(a120.w, b0.w, c12_7);
            c13_7 = fma(a130.w, b0.w, c13_7);
            c14_7 = fma(a140.w, b0.w, c14_7);
            c15_7 = fma(a150.w, b0.w, c15_7);
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
            let a80 = ws[((tr + 64u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a90 = ws[((tr + 72u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a100 = ws[((tr + 80u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a110 = ws[((tr + 88u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a120 = ws[((tr + 96u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a130 = ws[((tr + 104u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a140 = ws[((tr + 112u) * 4u + (3u ^ swr)) * 1u + 0u];
            let a150 = ws[((tr + 120u) * 4u + (3u ^ swr)) * 1u + 0u];
            {
            let b0 = xs[((tc + 0u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_0 = fma(a00.x, b0.x, c0_0);
            c1_0 = fma(a10.x, b0.x, c1_0);
            c2_0 = fma(a20.x, b0.x, c2_0);
            c3_0 = fma(a30.x, b0.x, c3_0);
            c4_0 = fma(a40.x, b0.x, c4_0);
            c5_0 = fma(a50.x, b0.x, c5_0);
            c6_0 = fma(a60.x, b0.x, c6_0);
            c7_0 = fma(a70.x, b0.x, c7_0);
            c8_0 = fma(a80.x, b0.x, c8_0);
            c9_0 = fma(a90.x, b0.x, c9_0);
            c10_0 = fma(a100.x, b0.x, c10_0);
            c11_0 = fma(a110.x, b0.x, c11_0);
            c12_0 = fma(a120.x, b0.x, c12_0);
            c13_0 = fma(a130.x, b0.x, c13_0);
            c14_0 = fma(a140.x, b0.x, c14_0);
            c15_0 = fma(a150.x, b0.x, c15_0);
            c0_0 = fma(a00.y, b0.y, c0_0);
            c1_0 = fma(a10.y, b0.y, c1_0);
            c2_0 = fma(a20.y, b0.y, c2_0);
            c3_0 = fma(a30.y, b0.y, c3_0);
            c4_0 = fma(a40.y, b0.y, c4_0);
            c5_0 = fma(a50.y, b0.y, c5_0);
            c6_0 = fma(a60.y, b0.y, c6_0);
            c7_0 = fma(a70.y, b0.y, c7_0);
            c8_0 = fma(a80.y, b0.y, c8_0);
            c9_0 = fma(a90.y, b0.y, c9_0);
            c10_0 = fma(a100.y, b0.y, c10_0);
            c11_0 = fma(a110.y, b0.y, c11_0);
            c12_0 = fma(a120.y, b0.y, c12_0);
            c13_0 = fma(a130.y, b0.y, c13_0);
            c14_0 = fma(a140.y, b0.y, c14_0);
            c15_0 = fma(a150.y, b0.y, c15_0);
            c0_0 = fma(a00.z, b0.z, c0_0);
            c1_0 = fma(a10.z, b0.z, c1_0);
            c2_0 = fma(a20.z, b0.z, c2_0);
            c3_0 = fma(a30.z, b0.z, c3_0);
            c4_0 = fma(a40.z, b0.z, c4_0);
            c5_0 = fma(a50.z, b0.z, c5_0);
            c6_0 = fma(a60.z, b0.z, c6_0);
            c7_0 = fma(a70.z, b0.z, c7_0);
            c8_0 = fma(a80.z, b0.z, c8_0);
            c9_0 = fma(a90.z, b0.z, c9_0);
            c10_0 = fma(a100.z, b0.z, c10_0);
            c11_0 = fma(a110.z, b0.z, c11_0);
            c12_0 = fma(a120.z, b0.z, c12_0);
            c13_0 = fma(a130.z, b0.z, c13_0);
            c14_0 = fma(a140.z, b0.z, c14_0);
            c15_0 = fma(a150.z, b0.z, c15_0);
            c0_0 = fma(a00.w, b0.w, c0_0);
            c1_0 = fma(a10.w, b0.w, c1_0);
            c2_0 = fma(a20.w, b0.w, c2_0);
            c3_0 = fma(a30.w, b0.w, c3_0);
            c4_0 = fma(a40.w, b0.w, c4_0);
            c5_0 = fma(a50.w, b0.w, c5_0);
            c6_0 = fma(a60.w, b0.w, c6_0);
            c7_0 = fma(a70.w, b0.w, c7_0);
            c8_0 = fma(a80.w, b0.w, c8_0);
            c9_0 = fma(a90.w, b0.w, c9_0);
            c10_0 = fma(a100.w, b0.w, c10_0);
            c11_0 = fma(a110.w, b0.w, c11_0);
            c12_0 = fma(a120.w, b0.w, c12_0);
            c13_0 = fma(a130.w, b0.w, c13_0);
            c14_0 = fma(a140.w, b0.w, c14_0);
            c15_0 = fma(a150.w, b0.w, c15_0);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_1 = fma(a00.x, b0.x, c0_1);
            c1_1 = fma(a10.x, b0.x, c1_1);
            c2_1 = fma(a20.x, b0.x, c2_1);
            c3_1 = fma(a30.x, b0.x, c3_1);
            c4_1 = fma(a40.x, b0.x, c4_1);
            c5_1 = fma(a50.x, b0.x, c5_1);
            c6_1 = fma(a60.x, b0.x, c6_1);
            c7_1 = fma(a70.x, b0.x, c7_1);
            c8_1 = fma(a80.x, b0.x, c8_1);
            c9_1 = fma(a90.x, b0.x, c9_1);
            c10_1 = fma(a100.x, b0.x, c10_1);
            c11_1 = fma(a110.x, b0.x, c11_1);
            c12_1 = fma(a120.x, b0.x, c12_1);
            c13_1 = fma(a130.x, b0.x, c13_1);
            c14_1 = fma(a140.x, b0.x, c14_1);
            c15_1 = fma(a150.x, b0.x, c15_1);
            c0_1 = fma(a00.y, b0.y, c0_1);
            c1_1 = fma(a10.y, b0.y, c1_1);
            c2_1 = fma(a20.y, b0.y, c2_1);
            c3_1 = fma(a30.y, b0.y, c3_1);
            c4_1 = fma(a40.y, b0.y, c4_1);
            c5_1 = fma(a50.y, b0.y, c5_1);
            c6_1 = fma(a60.y, b0.y, c6_1);
            c7_1 = fma(a70.y, b0.y, c7_1);
            c8_1 = fma(a80.y, b0.y, c8_1);
            c9_1 = fma(a90.y, b0.y, c9_1);
            c10_1 = fma(a100.y, b0.y, c10_1);
            c11_1 = fma(a110.y, b0.y, c11_1);
            c12_1 = fma(a120.y, b0.y, c12_1);
            c13_1 = fma(a130.y, b0.y, c13_1);
            c14_1 = fma(a140.y, b0.y, c14_1);
            c15_1 = fma(a150.y, b0.y, c15_1);
            c0_1 = fma(a00.z, b0.z, c0_1);
            c1_1 = fma(a10.z, b0.z, c1_1);
            c2_1 = fma(a20.z, b0.z, c2_1);
            c3_1 = fma(a30.z, b0.z, c3_1);
            c4_1 = fma(a40.z, b0.z, c4_1);
            c5_1 = fma(a50.z, b0.z, c5_1);
            c6_1 = fma(a60.z, b0.z, c6_1);
            c7_1 = fma(a70.z, b0.z, c7_1);
            c8_1 = fma(a80.z, b0.z, c8_1);
            c9_1 = fma(a90.z, b0.z, c9_1);
            c10_1 = fma(a100.z, b0.z, c10_1);
            c11_1 = fma(a110.z, b0.z, c11_1);
            c12_1 = fma(a120.z, b0.z, c12_1);
            c13_1 = fma(a130.z, b0.z, c13_1);
            c14_1 = fma(a140.z, b0.z, c14_1);
            c15_1 = fma(a150.z, b0.z, c15_1);
            c0_1 = fma(a00.w, b0.w, c0_1);
            c1_1 = fma(a10.w, b0.w, c1_1);
            c2_1 = fma(a20.w, b0.w, c2_1);
            c3_1 = fma(a30.w, b0.w, c3_1);
            c4_1 = fma(a40.w, b0.w, c4_1);
            c5_1 = fma(a50.w, b0.w, c5_1);
            c6_1 = fma(a60.w, b0.w, c6_1);
            c7_1 = fma(a70.w, b0.w, c7_1);
            c8_1 = fma(a80.w, b0.w, c8_1);
            c9_1 = fma(a90.w, b0.w, c9_1);
            c10_1 = fma(a100.w, b0.w, c10_1);
            c11_1 = fma(a110.w, b0.w, c11_1);
            c12_1 = fma(a120.w, b0.w, c12_1);
            c13_1 = fma(a130.w, b0.w, c13_1);
            c14_1 = fma(a140.w, b0.w, c14_1);
            c15_1 = fma(a150.w, b0.w, c15_1);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_2 = fma(a00.x, b0.x, c0_2);
            c1_2 = fma(a10.x, b0.x, c1_2);
            c2_2 = fma(a20.x, b0.x, c2_2);
            c3_2 = fma(a30.x, b0.x, c3_2);
            c4_2 = fma(a40.x, b0.x, c4_2);
            c5_2 = fma(a50.x, b0.x, c5_2);
            c6_2 = fma(a60.x, b0.x, c6_2);
            c7_2 = fma(a70.x, b0.x, c7_2);
            c8_2 = fma(a80.x, b0.x, c8_2);
            c9_2 = fma(a90.x, b0.x, c9_2);
            c10_2 = fma(a100.x, b0.x, c10_2);
            c11_2 = fma(a110.x, b0.x, c11_2);
            c12_2 = fma(a120.x, b0.x, c12_2);
            c13_2 = fma(a130.x, b0.x, c13_2);
            c14_2 = fma(a140.x, b0.x, c14_2);
            c15_2 = fma(a150.x, b0.x, c15_2);
            c0_2 = fma(a00.y, b0.y, c0_2);
            c1_2 = fma(a10.y, b0.y, c1_2);
            c2_2 = fma(a20.y, b0.y, c2_2);
            c3_2 = fma(a30.y, b0.y, c3_2);
            c4_2 = fma(a40.y, b0.y, c4_2);
            c5_2 = fma(a50.y, b0.y, c5_2);
            c6_2 = fma(a60.y, b0.y, c6_2);
            c7_2 = fma(a70.y, b0.y, c7_2);
            c8_2 = fma(a80.y, b0.y, c8_2);
            c9_2 = fma(a90.y, b0.y, c9_2);
            c10_2 = fma(a100.y, b0.y, c10_2);
            c11_2 = fma(a110.y, b0.y, c11_2);
            c12_2 = fma(a120.y, b0.y, c12_2);
            c13_2 = fma(a130.y, b0.y, c13_2);
            c14_2 = fma(a140.y, b0.y, c14_2);
            c15_2 = fma(a150.y, b0.y, c15_2);
            c0_2 = fma(a00.z, b0.z, c0_2);
            c1_2 = fma(a10.z, b0.z, c1_2);
            c2_2 = fma(a20.z, b0.z, c2_2);
            c3_2 = fma(a30.z, b0.z, c3_2);
            c4_2 = fma(a40.z, b0.z, c4_2);
            c5_2 = fma(a50.z, b0.z, c5_2);
            c6_2 = fma(a60.z, b0.z, c6_2);
            c7_2 = fma(a70.z, b0.z, c7_2);
            c8_2 = fma(a80.z, b0.z, c8_2);
            c9_2 = fma(a90.z, b0.z, c9_2);
            c10_2 = fma(a100.z, b0.z, c10_2);
            c11_2 = fma(a110.z, b0.z, c11_2);
            c12_2 = fma(a120.z, b0.z, c12_2);
            c13_2 = fma(a130.z, b0.z, c13_2);
            c14_2 = fma(a140.z, b0.z, c14_2);
            c15_2 = fma(a150.z, b0.z, c15_2);
            c0_2 = fma(a00.w, b0.w, c0_2);
            c1_2 = fma(a10.w, b0.w, c1_2);
            c2_2 = fma(a20.w, b0.w, c2_2);
            c3_2 = fma(a30.w, b0.w, c3_2);
            c4_2 = fma(a40.w, b0.w, c4_2);
            c5_2 = fma(a50.w, b0.w, c5_2);
            c6_2 = fma(a60.w, b0.w, c6_2);
            c7_2 = fma(a70.w, b0.w, c7_2);
            c8_2 = fma(a80.w, b0.w, c8_2);
            c9_2 = fma(a90.w, b0.w, c9_2);
            c10_2 = fma(a100.w, b0.w, c10_2);
            c11_2 = fma(a110.w, b0.w, c11_2);
            c12_2 = fma(a120.w, b0.w, c12_2);
            c13_2 = fma(a130.w, b0.w, c13_2);
            c14_2 = fma(a140.w, b0.w, c14_2);
            c15_2 = fma(a150.w, b0.w, c15_2);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_3 = fma(a00.x, b0.x, c0_3);
            c1_3 = fma(a10.x, b0.x, c1_3);
            c2_3 = fma(a20.x, b0.x, c2_3);
            c3_3 = fma(a30.x, b0.x, c3_3);
            c4_3 = fma(a40.x, b0.x, c4_3);
            c5_3 = fma(a50.x, b0.x, c5_3);
            c6_3 = fma(a60.x, b0.x, c6_3);
            c7_3 = fma(a70.x, b0.x, c7_3);
            c8_3 = fma(a80.x, b0.x, c8_3);
            c9_3 = fma(a90.x, b0.x, c9_3);
            c10_3 = fma(a100.x, b0.x, c10_3);
            c11_3 = fma(a110.x, b0.x, c11_3);
            c12_3 = fma(a120.x, b0.x, c12_3);
            c13_3 = fma(a130.x, b0.x, c13_3);
            c14_3 = fma(a140.x, b0.x, c14_3);
            c15_3 = fma(a150.x, b0.x, c15_3);
            c0_3 = fma(a00.y, b0.y, c0_3);
            c1_3 = fma(a10.y, b0.y, c1_3);
            c2_3 = fma(a20.y, b0.y, c2_3);
            c3_3 = fma(a30.y, b0.y, c3_3);
            c4_3 = fma(a40.y, b0.y, c4_3);
            c5_3 = fma(a50.y, b0.y, c5_3);
            c6_3 = fma(a60.y, b0.y, c6_3);
            c7_3 = fma(a70.y, b0.y, c7_3);
            c8_3 = fma(a80.y, b0.y, c8_3);
            c9_3 = fma(a90.y, b0.y, c9_3);
            c10_3 = fma(a100.y, b0.y, c10_3);
            c11_3 = fma(a110.y, b0.y, c11_3);
            c12_3 = fma(a120.y, b0.y, c12_3);
            c13_3 = fma(a130.y, b0.y, c13_3);
            c14_3 = fma(a140.y, b0.y, c14_3);
            c15_3 = fma(a150.y, b0.y, c15_3);
            c0_3 = fma(a00.z, b0.z, c0_3);
            c1_3 = fma(a10.z, b0.z, c1_3);
            c2_3 = fma(a20.z, b0.z, c2_3);
            c3_3 = fma(a30.z, b0.z, c3_3);
            c4_3 = fma(a40.z, b0.z, c4_3);
            c5_3 = fma(a50.z, b0.z, c5_3);
            c6_3 = fma(a60.z, b0.z, c6_3);
            c7_3 = fma(a70.z, b0.z, c7_3);
            c8_3 = fma(a80.z, b0.z, c8_3);
            c9_3 = fma(a90.z, b0.z, c9_3);
            c10_3 = fma(a100.z, b0.z, c10_3);
            c11_3 = fma(a110.z, b0.z, c11_3);
            c12_3 = fma(a120.z, b0.z, c12_3);
            c13_3 = fma(a130.z, b0.z, c13_3);
            c14_3 = fma(a140.z, b0.z, c14_3);
            c15_3 = fma(a150.z, b0.z, c15_3);
            c0_3 = fma(a00.w, b0.w, c0_3);
            c1_3 = fma(a10.w, b0.w, c1_3);
            c2_3 = fma(a20.w, b0.w, c2_3);
            c3_3 = fma(a30.w, b0.w, c3_3);
            c4_3 = fma(a40.w, b0.w, c4_3);
            c5_3 = fma(a50.w, b0.w, c5_3);
            c6_3 = fma(a60.w, b0.w, c6_3);
            c7_3 = fma(a70.w, b0.w, c7_3);
            c8_3 = fma(a80.w, b0.w, c8_3);
            c9_3 = fma(a90.w, b0.w, c9_3);
            c10_3 = fma(a100.w, b0.w, c10_3);
            c11_3 = fma(a110.w, b0.w, c11_3);
            c12_3 = fma(a120.w, b0.w, c12_3);
            c13_3 = fma(a130.w, b0.w, c13_3);
            c14_3 = fma(a140.w, b0.w, c14_3);
            c15_3 = fma(a150.w, b0.w, c15_3);
            }
            {
            let b0 = xs[((tc + 64u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_4 = fma(a00.x, b0.x, c0_4);
            c1_4 = fma(a10.x, b0.x, c1_4);
            c2_4 = fma(a20.x, b0.x, c2_4);
            c3_4 = fma(a30.x, b0.x, c3_4);
            c4_4 = fma(a40.x, b0.x, c4_4);
            c5_4 = fma(a50.x, b0.x, c5_4);
            c6_4 = fma(a60.x, b0.x, c6_4);
            c7_4 = fma(a70.x, b0.x, c7_4);
            c8_4 = fma(a80.x, b0.x, c8_4);
            c9_4 = fma(a90.x, b0.x, c9_4);
            c10_4 = fma(a100.x, b0.x, c10_4);
            c11_4 = fma(a110.x, b0.x, c11_4);
            c12_4 = fma(a120.x, b0.x, c12_4);
            c13_4 = fma(a130.x, b0.x, c13_4);
            c14_4 = fma(a140.x, b0.x, c14_4);
            c15_4 = fma(a150.x, b0.x, c15_4);
            c0_4 = fma(a00.y, b0.y, c0_4);
            c1_4 = fma(a10.y, b0.y, c1_4);
            c2_4 = fma(a20.y, b0.y, c2_4);
            c3_4 = fma(a30.y, b0.y, c3_4);
            c4_4 = fma(a40.y, b0.y, c4_4);
            c5_4 = fma(a50.y, b0.y, c5_4);
            c6_4 = fma(a60.y, b0.y, c6_4);
            c7_4 = fma(a70.y, b0.y, c7_4);
            c8_4 = fma(a80.y, b0.y, c8_4);
            c9_4 = fma(a90.y, b0.y, c9_4);
            c10_4 = fma(a100.y, b0.y, c10_4);
            c11_4 = fma(a110.y, b0.y, c11_4);
            c12_4 = fma(a120.y, b0.y, c12_4);
            c13_4 = fma(a130.y, b0.y, c13_4);
            c14_4 = fma(a140.y, b0.y, c14_4);
            c15_4 = fma(a150.y, b0.y, c15_4);
            c0_4 = fma(a00.z, b0.z, c0_4);
            c1_4 = fma(a10.z, b0.z, c1_4);
            c2_4 = fma(a20.z, b0.z, c2_4);
            c3_4 = fma(a30.z, b0.z, c3_4);
            c4_4 = fma(a40.z, b0.z, c4_4);
            c5_4 = fma(a50.z, b0.z, c5_4);
            c6_4 = fma(a60.z, b0.z, c6_4);
            c7_4 = fma(a70.z, b0.z, c7_4);
            c8_4 = fma(a80.z, b0.z, c8_4);
            c9_4 = fma(a90.z, b0.z, c9_4);
            c10_4 = fma(a100.z, b0.z, c10_4);
            c11_4 = fma(a110.z, b0.z, c11_4);
            c12_4 = fma(a120.z, b0.z, c12_4);
            c13_4 = fma(a130.z, b0.z, c13_4);
            c14_4 = fma(a140.z, b0.z, c14_4);
            c15_4 = fma(a150.z, b0.z, c15_4);
            c0_4 = fma(a00.w, b0.w, c0_4);
            c1_4 = fma(a10.w, b0.w, c1_4);
            c2_4 = fma(a20.w, b0.w, c2_4);
            c3_4 = fma(a30.w, b0.w, c3_4);
            c4_4 = fma(a40.w, b0.w, c4_4);
            c5_4 = fma(a50.w, b0.w, c5_4);
            c6_4 = fma(a60.w, b0.w, c6_4);
            c7_4 = fma(a70.w, b0.w, c7_4);
            c8_4 = fma(a80.w, b0.w, c8_4);
            c9_4 = fma(a90.w, b0.w, c9_4);
            c10_4 = fma(a100.w, b0.w, c10_4);
            c11_4 = fma(a110.w, b0.w, c11_4);
            c12_4 = fma(a120.w, b0.w, c12_4);
            c13_4 = fma(a130.w, b0.w, c13_4);
            c14_4 = fma(a140.w, b0.w, c14_4);
            c15_4 = fma(a150.w, b0.w, c15_4);
            }
            {
            let b0 = xs[((tc + 80u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_5 = fma(a00.x, b0.x, c0_5);
            c1_5 = fma(a10.x, b0.x, c1_5);
            c2_5 = fma(a20.x, b0.x, c2_5);
            c3_5 = fma(a30.x, b0.x, c3_5);
            c4_5 = fma(a40.x, b0.x, c4_5);
            c5_5 = fma(a50.x, b0.x, c5_5);
            c6_5 = fma(a60.x, b0.x, c6_5);
            c7_5 = fma(a70.x, b0.x, c7_5);
            c8_5 = fma(a80.x, b0.x, c8_5);
            c9_5 = fma(a90.x, b0.x, c9_5);
            c10_5 = fma(a100.x, b0.x, c10_5);
            c11_5 = fma(a110.x, b0.x, c11_5);
            c12_5 = fma(a120.x, b0.x, c12_5);
            c13_5 = fma(a130.x, b0.x, c13_5);
            c14_5 = fma(a140.x, b0.x, c14_5);
            c15_5 = fma(a150.x, b0.x, c15_5);
            c0_5 = fma(a00.y, b0.y, c0_5);
            c1_5 = fma(a10.y, b0.y, c1_5);
            c2_5 = fma(a20.y, b0.y, c2_5);
            c3_5 = fma(a30.y, b0.y, c3_5);
            c4_5 = fma(a40.y, b0.y, c4_5);
            c5_5 = fma(a50.y, b0.y, c5_5);
            c6_5 = fma(a60.y, b0.y, c6_5);
            c7_5 = fma(a70.y, b0.y, c7_5);
            c8_5 = fma(a80.y, b0.y, c8_5);
            c9_5 = fma(a90.y, b0.y, c9_5);
            c10_5 = fma(a100.y, b0.y, c10_5);
            c11_5 = fma(a110.y, b0.y, c11_5);
            c12_5 = fma(a120.y, b0.y, c12_5);
            c13_5 = fma(a130.y, b0.y, c13_5);
            c14_5 = fma(a140.y, b0.y, c14_5);
            c15_5 = fma(a150.y, b0.y, c15_5);
            c0_5 = fma(a00.z, b0.z, c0_5);
            c1_5 = fma(a10.z, b0.z, c1_5);
            c2_5 = fma(a20.z, b0.z, c2_5);
            c3_5 = fma(a30.z, b0.z, c3_5);
            c4_5 = fma(a40.z, b0.z, c4_5);
            c5_5 = fma(a50.z, b0.z, c5_5);
            c6_5 = fma(a60.z, b0.z, c6_5);
            c7_5 = fma(a70.z, b0.z, c7_5);
            c8_5 = fma(a80.z, b0.z, c8_5);
            c9_5 = fma(a90.z, b0.z, c9_5);
            c10_5 = fma(a100.z, b0.z, c10_5);
            c11_5 = fma(a110.z, b0.z, c11_5);
            c12_5 = fma(a120.z, b0.z, c12_5);
            c13_5 = fma(a130.z, b0.z, c13_5);
            c14_5 = fma(a140.z, b0.z, c14_5);
            c15_5 = fma(a150.z, b0.z, c15_5);
            c0_5 = fma(a00.w, b0.w, c0_5);
            c1_5 = fma(a10.w, b0.w, c1_5);
            c2_5 = fma(a20.w, b0.w, c2_5);
            c3_5 = fma(a30.w, b0.w, c3_5);
            c4_5 = fma(a40.w, b0.w, c4_5);
            c5_5 = fma(a50.w, b0.w, c5_5);
            c6_5 = fma(a60.w, b0.w, c6_5);
            c7_5 = fma(a70.w, b0.w, c7_5);
            c8_5 = fma(a80.w, b0.w, c8_5);
            c9_5 = fma(a90.w, b0.w, c9_5);
            c10_5 = fma(a100.w, b0.w, c10_5);
            c11_5 = fma(a110.w, b0.w, c11_5);
            c12_5 = fma(a120.w, b0.w, c12_5);
            c13_5 = fma(a130.w, b0.w, c13_5);
            c14_5 = fma(a140.w, b0.w, c14_5);
            c15_5 = fma(a150.w, b0.w, c15_5);
            }
            {
            let b0 = xs[((tc + 96u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_6 = fma(a00.x, b0.x, c0_6);
            c1_6 = fma(a10.x, b0.x, c1_6);
            c2_6 = fma(a20.x, b0.x, c2_6);
            c3_6 = fma(a30.x, b0.x, c3_6);
            c4_6 = fma(a40.x, b0.x, c4_6);
            c5_6 = fma(a50.x, b0.x, c5_6);
            c6_6 = fma(a60.x, b0.x, c6_6);
            c7_6 = fma(a70.x, b0.x, c7_6);
            c8_6 = fma(a80.x, b0.x, c8_6);
            c9_6 = fma(a90.x, b0.x, c9_6);
            c10_6 = fma(a100.x, b0.x, c10_6);
            c11_6 = fma(a110.x, b0.x, c11_6);
            c12_6 = fma(a120.x, b0.x, c12_6);
            c13_6 = fma(a130.x, b0.x, c13_6);
            c14_6 = fma(a140.x, b0.x, c14_6);
            c15_6 = fma(a150.x, b0.x, c15_6);
            c0_6 = fma(a00.y, b0.y, c0_6);
            c1_6 = fma(a10.y, b0.y, c1_6);
            c2_6 = fma(a20.y, b0.y, c2_6);
            c3_6 = fma(a30.y, b0.y, c3_6);
            c4_6 = fma(a40.y, b0.y, c4_6);
            c5_6 = fma(a50.y, b0.y, c5_6);
            c6_6 = fma(a60.y, b0.y, c6_6);
            c7_6 = fma(a70.y, b0.y, c7_6);
            c8_6 = fma(a80.y, b0.y, c8_6);
            c9_6 = fma(a90.y, b0.y, c9_6);
            c10_6 = fma(a100.y, b0.y, c10_6);
            c11_6 = fma(a110.y, b0.y, c11_6);
            c12_6 = fma(a120.y, b0.y, c12_6);
            c13_6 = fma(a130.y, b0.y, c13_6);
            c14_6 = fma(a140.y, b0.y, c14_6);
            c15_6 = fma(a150.y, b0.y, c15_6);
            c0_6 = fma(a00.z, b0.z, c0_6);
            c1_6 = fma(a10.z, b0.z, c1_6);
            c2_6 = fma(a20.z, b0.z, c2_6);
            c3_6 = fma(a30.z, b0.z, c3_6);
            c4_6 = fma(a40.z, b0.z, c4_6);
            c5_6 = fma(a50.z, b0.z, c5_6);
            c6_6 = fma(a60.z, b0.z, c6_6);
            c7_6 = fma(a70.z, b0.z, c7_6);
            c8_6 = fma(a80.z, b0.z, c8_6);
            c9_6 = fma(a90.z, b0.z, c9_6);
            c10_6 = fma(a100.z, b0.z, c10_6);
            c11_6 = fma(a110.z, b0.z, c11_6);
            c12_6 = fma(a120.z, b0.z, c12_6);
            c13_6 = fma(a130.z, b0.z, c13_6);
            c14_6 = fma(a140.z, b0.z, c14_6);
            c15_6 = fma(a150.z, b0.z, c15_6);
            c0_6 = fma(a00.w, b0.w, c0_6);
            c1_6 = fma(a10.w, b0.w, c1_6);
            c2_6 = fma(a20.w, b0.w, c2_6);
            c3_6 = fma(a30.w, b0.w, c3_6);
            c4_6 = fma(a40.w, b0.w, c4_6);
            c5_6 = fma(a50.w, b0.w, c5_6);
            c6_6 = fma(a60.w, b0.w, c6_6);
            c7_6 = fma(a70.w, b0.w, c7_6);
            c8_6 = fma(a80.w, b0.w, c8_6);
            c9_6 = fma(a90.w, b0.w, c9_6);
            c10_6 = fma(a100.w, b0.w, c10_6);
            c11_6 = fma(a110.w, b0.w, c11_6);
            c12_6 = fma(a120.w, b0.w, c12_6);
            c13_6 = fma(a130.w, b0.w, c13_6);
            c14_6 = fma(a140.w, b0.w, c14_6);
            c15_6 = fma(a150.w, b0.w, c15_6);
            }
            {
            let b0 = xs[((tc + 112u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_7 = fma(a00.x, b0.x, c0_7);
            c1_7 = fma(a10.x, b0.x, c1_7);
            c2_7 = fma(a20.x, b0.x, c2_7);
            c3_7 = fma(a30.x, b0.x, c3_7);
            c4_7 = fma(a40.x, b0.x, c4_7);
            c5_7 = fma(a50.x, b0.x, c5_7);
            c6_7 = fma(a60.x, b0.x, c6_7);
            c7_7 = fma(a70.x, b0.x, c7_7);
            c8_7 = fma(a80.x, b0.x, c8_7);
            c9_7 = fma(a90.x, b0.x, c9_7);
            c10_7 = fma(a100.x, b0.x, c10_7);
            c11_7 = fma(a110.x, b0.x, c11_7);
            c12_7 = fma(a120.x, b0.x, c12_7);
            c13_7 = fma(a130.x, b0.x, c13_7);
            c14_7 = fma(a140.x, b0.x, c14_7);
            c15_7 = fma(a150.x, b0.x, c15_7);
            c0_7 = fma(a00.y, b0.y, c0_7);
            c1_7 = fma(a10.y, b0.y, c1_7);
            c2_7 = fma(a20.y, b0.y, c2_7);
            c3_7 = fma(a30.y, b0.y, c3_7);
            c4_7 = fma(a40.y, b0.y, c4_7);
            c5_7 = fma(a50.y, b0.y, c5_7);
            c6_7 = fma(a60.y, b0.y, c6_7);
            c7_7 = fma(a70.y, b0.y, c7_7);
            c8_7 = fma(a80.y, b0.y, c8_7);
            c9_7 = fma(a90.y, b0.y, c9_7);
            c10_7 = fma(a100.y, b0.y, c10_7);
            c11_7 = fma(a110.y, b0.y, c11_7);
            c12_7 = fma(a120.y, b0.y, c12_7);
            c13_7 = fma(a130.y, b0.y, c13_7);
            c14_7 = fma(a140.y, b0.y, c14_7);
            c15_7 = fma(a150.y, b0.y, c15_7);
            c0_7 = fma(a00.z, b0.z, c0_7);
            c1_7 = fma(a10.z, b0.z, c1_7);
            c2_7 = fma(a20.z, b0.z, c2_7);
            c3_7 = fma(a30.z, b0.z, c3_7);
            c4_7 = fma(a40.z, b0.z, c4_7);
            c5_7 = fma(a50.z, b0.z, c5_7);
            c6_7 = fma(a60.z, b0.z, c6_7);
            c7_7 = fma(a70.z, b0.z, c7_7);
            c8_7 = fma(a80.z, b0.z, c8_7);
            c9_7 = fma(a90.z, b0.z, c9_7);
            c10_7 = fma(a100.z, b0.z, c10_7);
            c11_7 = fma(a110.z, b0.z, c11_7);
            c12_7 = fma(a120.z, b0.z, c12_7);
            c13_7 = fma(a130.z, b0.z, c13_7);
            c14_7 = fma(a140.z, b0.z, c14_7);
            c15_7 = fma(a150.z, b0.z, c15_7);
            c0_7 = fma(a00.w, b0.w, c0_7);
            c1_7 = fma(a10.w, b0.w, c1_7);
            c2_7 = fma(a20.w, b0.w, c2_7);
            c3_7 = fma(a30.w, b0.w, c3_7);
            c4_7 = fma(a40.w, b0.w, c4_7);
            c5_7 = fma(a50.w, b0.w, c5_7);
            c6_7 = fma(a60.w, b0.w, c6_7);
            c7_7 = fma(a70.w, b0.w, c7_7);
            c8_7 = fma(a80.w, b0.w, c8_7);
            c9_7 = fma(a90.w, b0.w, c9_7);
            c10_7 = fma(a100.w, b0.w, c10_7);
            c11_7 = fma(a110.w, b0.w, c11_7);
            c12_7 = fma(a120.w, b0.w, c12_7);
            c13_7 = fma(a130.w, b0.w, c13_7);
            c14_7 = fma(a140.w, b0.w, c14_7);
            c15_7 = fma(a150.w, b0.w, c15_7);
            }

        }
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
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c0_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c0_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c0_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c0_7 * scale + bias;
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
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c1_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c1_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c1_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c1_7 * scale + bias;
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
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c2_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c2_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c2_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c2_7 * scale + bias;
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
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c3_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c3_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c3_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c3_7 * scale + bias;
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
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c4_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c4_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c4_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c4_7 * scale + bias;
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
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c5_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c5_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c5_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c5_7 * scale + bias;
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
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c6_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c6_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c6_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c6_7 * scale + bias;
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
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c7_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c7_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c7_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c7_7 * scale + bias;
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
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c8_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c8_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c8_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c8_3 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c8_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c8_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c8_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c8_7 * scale + bias;
        }
    }
    if (row0 + tr + 72u < M) {
        let row = row0 + tr + 72u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c9_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c9_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c9_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c9_3 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c9_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c9_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c9_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c9_7 * scale + bias;
        }
    }
    if (row0 + tr + 80u < M) {
        let row = row0 + tr + 80u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c10_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c10_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c10_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c10_3 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c10_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c10_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c10_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c10_7 * scale + bias;
        }
    }
    if (row0 + tr + 88u < M) {
        let row = row0 + tr + 88u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c11_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c11_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c11_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c11_3 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c11_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c11_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c11_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c11_7 * scale + bias;
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
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c12_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c12_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c12_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c12_3 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c12_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c12_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c12_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c12_7 * scale + bias;
        }
    }
    if (row0 + tr + 104u < M) {
        let row = row0 + tr + 104u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c13_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c13_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c13_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c13_3 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c13_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c13_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c13_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c13_7 * scale + bias;
        }
    }
    if (row0 + tr + 112u < M) {
        let row = row0 + tr + 112u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c14_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c14_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c14_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c14_3 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c14_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c14_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c14_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c14_7 * scale + bias;
        }
    }
    if (row0 + tr + 120u < M) {
        let row = row0 + tr + 120u;
        var scale = 1.0;
        var bias = 0.0;
        if (AFFINE) {
            scale = aux[AFF + 2u * row];
            bias = aux[AFF + 2u * row + 1u];
        }
        if (col0 + tc + 0u < n_col) {
            y[(col0 + tc + 0u) * LDY + Y0 + row] += c15_0 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c15_1 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c15_2 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c15_3 * scale + bias;
        }
        if (col0 + tc + 64u < n_col) {
            y[(col0 + tc + 64u) * LDY + Y0 + row] += c15_4 * scale + bias;
        }
        if (col0 + tc + 80u < n_col) {
            y[(col0 + tc + 80u) * LDY + Y0 + row] += c15_5 * scale + bias;
        }
        if (col0 + tc + 96u < n_col) {
            y[(col0 + tc + 96u) * LDY + Y0 + row] += c15_6 * scale + bias;
        }
        if (col0 + tc + 112u < n_col) {
            y[(col0 + tc + 112u) * LDY + Y0 + row] += c15_7 * scale + bias;
        }
    }
}
