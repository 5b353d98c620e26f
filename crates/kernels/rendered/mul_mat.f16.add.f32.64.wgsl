// mul_mat: a=f16 epi=add tile=f32 side=64
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
    return vec4<f32>(unpack2x16float(p.x), unpack2x16float(p.y));
}

var<workgroup> ws: array<vec4<f32>, 256>;
var<workgroup> xs: array<vec4<f32>, 256>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let n_col = step[0];
    let row0 = group.y * 64u;
    let col0 = group.x * 64u;
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
        {
            let i = tid + 0u;
            let r = i % 64u;
            let k = (i / 64u) * 16u;

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

let v0 = vec4<f32>(unpack2x16float(vq0.x), unpack2x16float(vq0.y));
let v1 = vec4<f32>(unpack2x16float(vq0.z), unpack2x16float(vq0.w));
let v2 = vec4<f32>(unpack2x16float(vq1.x), unpack2x16float(vq1.y));
let v3 = vec4<f32>(unpack2x16float(vq1.z), unpack2x16float(vq1.w));

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
            let r = i % 64u;
            let k = (i / 64u) * 16u;

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
            let r = i % 64u;
            let k = (i / 64u) * 16u;

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

let v0 = vec4<f32>(unpack2x16float(vq0.x), unpack2x16float(vq0.y));
let v1 = vec4<f32>(unpack2x16float(vq0.z), unpack2x16float(vq0.w));
let v2 = vec4<f32>(unpack2x16float(vq1.x), unpack2x16float(vq1.y));
let v3 = vec4<f32>(unpack2x16float(vq1.z), unpack2x16float(vq1.w));

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
            c0_0 = fma(a00.y, b0.y, c0_0);
            c1_0 = fma(a10.y, b0.y, c1_0);
            c2_0 = fma(a20.y, b0.y, c2_0);
            c3_0 = fma(a30.y, b0.y, c3_0);
            c4_0 = fma(a40.y, b0.y, c4_0);
            c5_0 = fma(a50.y, b0.y, c5_0);
            c6_0 = fma(a60.y, b0.y, c6_0);
            c7_0 = fma(a70.y, b0.y, c7_0);
            c0_0 = fma(a00.z, b0.z, c0_0);
            c1_0 = fma(a10.z, b0.z, c1_0);
            c2_0 = fma(a20.z, b0.z, c2_0);
            c3_0 = fma(a30.z, b0.z, c3_0);
            c4_0 = fma(a40.z, b0.z, c4_0);
            c5_0 = fma(a50.z, b0.z, c5_0);
            c6_0 = fma(a60.z, b0.z, c6_0);
            c7_0 = fma(a70.z, b0.z, c7_0);
            c0_0 = fma(a00.w, b0.w, c0_0);
            c1_0 = fma(a10.w, b0.w, c1_0);
            c2_0 = fma(a20.w, b0.w, c2_0);
            c3_0 = fma(a30.w, b0.w, c3_0);
            c4_0 = fma(a40.w, b0.w, c4_0);
            c5_0 = fma(a50.w, b0.w, c5_0);
            c6_0 = fma(a60.w, b0.w, c6_0);
            c7_0 = fma(a70.w, b0.w, c7_0);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_1 = fma(a00.x, b0.x, c0_1);
            c1_1 = fma(a10.x, b0.x, c1_1);
            c2_1 = fma(a20.x, b0.x, c2_1);
            c3_1 = fma(a30.x, b0.x, c3_1);
            c4_1 = fma(a40.x, b0.x, c4_1);
            c5_1 = fma(a50.x, b0.x, c5_1);
            c6_1 = fma(a60.x, b0.x, c6_1);
            c7_1 = fma(a70.x, b0.x, c7_1);
            c0_1 = fma(a00.y, b0.y, c0_1);
            c1_1 = fma(a10.y, b0.y, c1_1);
            c2_1 = fma(a20.y, b0.y, c2_1);
            c3_1 = fma(a30.y, b0.y, c3_1);
            c4_1 = fma(a40.y, b0.y, c4_1);
            c5_1 = fma(a50.y, b0.y, c5_1);
            c6_1 = fma(a60.y, b0.y, c6_1);
            c7_1 = fma(a70.y, b0.y, c7_1);
            c0_1 = fma(a00.z, b0.z, c0_1);
            c1_1 = fma(a10.z, b0.z, c1_1);
            c2_1 = fma(a20.z, b0.z, c2_1);
            c3_1 = fma(a30.z, b0.z, c3_1);
            c4_1 = fma(a40.z, b0.z, c4_1);
            c5_1 = fma(a50.z, b0.z, c5_1);
            c6_1 = fma(a60.z, b0.z, c6_1);
            c7_1 = fma(a70.z, b0.z, c7_1);
            c0_1 = fma(a00.w, b0.w, c0_1);
            c1_1 = fma(a10.w, b0.w, c1_1);
            c2_1 = fma(a20.w, b0.w, c2_1);
            c3_1 = fma(a30.w, b0.w, c3_1);
            c4_1 = fma(a40.w, b0.w, c4_1);
            c5_1 = fma(a50.w, b0.w, c5_1);
            c6_1 = fma(a60.w, b0.w, c6_1);
            c7_1 = fma(a70.w, b0.w, c7_1);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_2 = fma(a00.x, b0.x, c0_2);
            c1_2 = fma(a10.x, b0.x, c1_2);
            c2_2 = fma(a20.x, b0.x, c2_2);
            c3_2 = fma(a30.x, b0.x, c3_2);
            c4_2 = fma(a40.x, b0.x, c4_2);
            c5_2 = fma(a50.x, b0.x, c5_2);
            c6_2 = fma(a60.x, b0.x, c6_2);
            c7_2 = fma(a70.x, b0.x, c7_2);
            c0_2 = fma(a00.y, b0.y, c0_2);
            c1_2 = fma(a10.y, b0.y, c1_2);
            c2_2 = fma(a20.y, b0.y, c2_2);
            c3_2 = fma(a30.y, b0.y, c3_2);
            c4_2 = fma(a40.y, b0.y, c4_2);
            c5_2 = fma(a50.y, b0.y, c5_2);
            c6_2 = fma(a60.y, b0.y, c6_2);
            c7_2 = fma(a70.y, b0.y, c7_2);
            c0_2 = fma(a00.z, b0.z, c0_2);
            c1_2 = fma(a10.z, b0.z, c1_2);
            c2_2 = fma(a20.z, b0.z, c2_2);
            c3_2 = fma(a30.z, b0.z, c3_2);
            c4_2 = fma(a40.z, b0.z, c4_2);
            c5_2 = fma(a50.z, b0.z, c5_2);
            c6_2 = fma(a60.z, b0.z, c6_2);
            c7_2 = fma(a70.z, b0.z, c7_2);
            c0_2 = fma(a00.w, b0.w, c0_2);
            c1_2 = fma(a10.w, b0.w, c1_2);
            c2_2 = fma(a20.w, b0.w, c2_2);
            c3_2 = fma(a30.w, b0.w, c3_2);
            c4_2 = fma(a40.w, b0.w, c4_2);
            c5_2 = fma(a50.w, b0.w, c5_2);
            c6_2 = fma(a60.w, b0.w, c6_2);
            c7_2 = fma(a70.w, b0.w, c7_2);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_3 = fma(a00.x, b0.x, c0_3);
            c1_3 = fma(a10.x, b0.x, c1_3);
            c2_3 = fma(a20.x, b0.x, c2_3);
            c3_3 = fma(a30.x, b0.x, c3_3);
            c4_3 = fma(a40.x, b0.x, c4_3);
            c5_3 = fma(a50.x, b0.x, c5_3);
            c6_3 = fma(a60.x, b0.x, c6_3);
            c7_3 = fma(a70.x, b0.x, c7_3);
            c0_3 = fma(a00.y, b0.y, c0_3);
            c1_3 = fma(a10.y, b0.y, c1_3);
            c2_3 = fma(a20.y, b0.y, c2_3);
            c3_3 = fma(a30.y, b0.y, c3_3);
            c4_3 = fma(a40.y, b0.y, c4_3);
            c5_3 = fma(a50.y, b0.y, c5_3);
            c6_3 = fma(a60.y, b0.y, c6_3);
            c7_3 = fma(a70.y, b0.y, c7_3);
            c0_3 = fma(a00.z, b0.z, c0_3);
            c1_3 = fma(a10.z, b0.z, c1_3);
            c2_3 = fma(a20.z, b0.z, c2_3);
            c3_3 = fma(a30.z, b0.z, c3_3);
            c4_3 = fma(a40.z, b0.z, c4_3);
            c5_3 = fma(a50.z, b0.z, c5_3);
            c6_3 = fma(a60.z, b0.z, c6_3);
            c7_3 = fma(a70.z, b0.z, c7_3);
            c0_3 = fma(a00.w, b0.w, c0_3);
            c1_3 = fma(a10.w, b0.w, c1_3);
            c2_3 = fma(a20.w, b0.w, c2_3);
            c3_3 = fma(a30.w, b0.w, c3_3);
            c4_3 = fma(a40.w, b0.w, c4_3);
            c5_3 = fma(a50.w, b0.w, c5_3);
            c6_3 = fma(a60.w, b0.w, c6_3);
            c7_3 = fma(a70.w, b0.w, c7_3);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_4 = fma(a00.x, b0.x, c0_4);
            c1_4 = fma(a10.x, b0.x, c1_4);
            c2_4 = fma(a20.x, b0.x, c2_4);
            c3_4 = fma(a30.x, b0.x, c3_4);
            c4_4 = fma(a40.x, b0.x, c4_4);
            c5_4 = fma(a50.x, b0.x, c5_4);
            c6_4 = fma(a60.x, b0.x, c6_4);
            c7_4 = fma(a70.x, b0.x, c7_4);
            c0_4 = fma(a00.y, b0.y, c0_4);
            c1_4 = fma(a10.y, b0.y, c1_4);
            c2_4 = fma(a20.y, b0.y, c2_4);
            c3_4 = fma(a30.y, b0.y, c3_4);
            c4_4 = fma(a40.y, b0.y, c4_4);
            c5_4 = fma(a50.y, b0.y, c5_4);
            c6_4 = fma(a60.y, b0.y, c6_4);
            c7_4 = fma(a70.y, b0.y, c7_4);
            c0_4 = fma(a00.z, b0.z, c0_4);
            c1_4 = fma(a10.z, b0.z, c1_4);
            c2_4 = fma(a20.z, b0.z, c2_4);
            c3_4 = fma(a30.z, b0.z, c3_4);
            c4_4 = fma(a40.z, b0.z, c4_4);
            c5_4 = fma(a50.z, b0.z, c5_4);
            c6_4 = fma(a60.z, b0.z, c6_4);
            c7_4 = fma(a70.z, b0.z, c7_4);
            c0_4 = fma(a00.w, b0.w, c0_4);
            c1_4 = fma(a10.w, b0.w, c1_4);
            c2_4 = fma(a20.w, b0.w, c2_4);
            c3_4 = fma(a30.w, b0.w, c3_4);
            c4_4 = fma(a40.w, b0.w, c4_4);
            c5_4 = fma(a50.w, b0.w, c5_4);
            c6_4 = fma(a60.w, b0.w, c6_4);
            c7_4 = fma(a70.w, b0.w, c7_4);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_5 = fma(a00.x, b0.x, c0_5);
            c1_5 = fma(a10.x, b0.x, c1_5);
            c2_5 = fma(a20.x, b0.x, c2_5);
            c3_5 = fma(a30.x, b0.x, c3_5);
            c4_5 = fma(a40.x, b0.x, c4_5);
            c5_5 = fma(a50.x, b0.x, c5_5);
            c6_5 = fma(a60.x, b0.x, c6_5);
            c7_5 = fma(a70.x, b0.x, c7_5);
            c0_5 = fma(a00.y, b0.y, c0_5);
            c1_5 = fma(a10.y, b0.y, c1_5);
            c2_5 = fma(a20.y, b0.y, c2_5);
            c3_5 = fma(a30.y, b0.y, c3_5);
            c4_5 = fma(a40.y, b0.y, c4_5);
            c5_5 = fma(a50.y, b0.y, c5_5);
            c6_5 = fma(a60.y, b0.y, c6_5);
            c7_5 = fma(a70.y, b0.y, c7_5);
            c0_5 = fma(a00.z, b0.z, c0_5);
            c1_5 = fma(a10.z, b0.z, c1_5);
            c2_5 = fma(a20.z, b0.z, c2_5);
            c3_5 = fma(a30.z, b0.z, c3_5);
            c4_5 = fma(a40.z, b0.z, c4_5);
            c5_5 = fma(a50.z, b0.z, c5_5);
            c6_5 = fma(a60.z, b0.z, c6_5);
            c7_5 = fma(a70.z, b0.z, c7_5);
            c0_5 = fma(a00.w, b0.w, c0_5);
            c1_5 = fma(a10.w, b0.w, c1_5);
            c2_5 = fma(a20.w, b0.w, c2_5);
            c3_5 = fma(a30.w, b0.w, c3_5);
            c4_5 = fma(a40.w, b0.w, c4_5);
            c5_5 = fma(a50.w, b0.w, c5_5);
            c6_5 = fma(a60.w, b0.w, c6_5);
            c7_5 = fma(a70.w, b0.w, c7_5);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_6 = fma(a00.x, b0.x, c0_6);
            c1_6 = fma(a10.x, b0.x, c1_6);
            c2_6 = fma(a20.x, b0.x, c2_6);
            c3_6 = fma(a30.x, b0.x, c3_6);
            c4_6 = fma(a40.x, b0.x, c4_6);
            c5_6 = fma(a50.x, b0.x, c5_6);
            c6_6 = fma(a60.x, b0.x, c6_6);
            c7_6 = fma(a70.x, b0.x, c7_6);
            c0_6 = fma(a00.y, b0.y, c0_6);
            c1_6 = fma(a10.y, b0.y, c1_6);
            c2_6 = fma(a20.y, b0.y, c2_6);
            c3_6 = fma(a30.y, b0.y, c3_6);
            c4_6 = fma(a40.y, b0.y, c4_6);
            c5_6 = fma(a50.y, b0.y, c5_6);
            c6_6 = fma(a60.y, b0.y, c6_6);
            c7_6 = fma(a70.y, b0.y, c7_6);
            c0_6 = fma(a00.z, b0.z, c0_6);
            c1_6 = fma(a10.z, b0.z, c1_6);
            c2_6 = fma(a20.z, b0.z, c2_6);
            c3_6 = fma(a30.z, b0.z, c3_6);
            c4_6 = fma(a40.z, b0.z, c4_6);
            c5_6 = fma(a50.z, b0.z, c5_6);
            c6_6 = fma(a60.z, b0.z, c6_6);
            c7_6 = fma(a70.z, b0.z, c7_6);
            c0_6 = fma(a00.w, b0.w, c0_6);
            c1_6 = fma(a10.w, b0.w, c1_6);
            c2_6 = fma(a20.w, b0.w, c2_6);
            c3_6 = fma(a30.w, b0.w, c3_6);
            c4_6 = fma(a40.w, b0.w, c4_6);
            c5_6 = fma(a50.w, b0.w, c5_6);
            c6_6 = fma(a60.w, b0.w, c6_6);
            c7_6 = fma(a70.w, b0.w, c7_6);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (0u ^ swc)) * 1u + 0u];
            c0_7 = fma(a00.x, b0.x, c0_7);
            c1_7 = fma(a10.x, b0.x, c1_7);
            c2_7 = fma(a20.x, b0.x, c2_7);
            c3_7 = fma(a30.x, b0.x, c3_7);
            c4_7 = fma(a40.x, b0.x, c4_7);
            c5_7 = fma(a50.x, b0.x, c5_7);
            c6_7 = fma(a60.x, b0.x, c6_7);
            c7_7 = fma(a70.x, b0.x, c7_7);
            c0_7 = fma(a00.y, b0.y, c0_7);
            c1_7 = fma(a10.y, b0.y, c1_7);
            c2_7 = fma(a20.y, b0.y, c2_7);
            c3_7 = fma(a30.y, b0.y, c3_7);
            c4_7 = fma(a40.y, b0.y, c4_7);
            c5_7 = fma(a50.y, b0.y, c5_7);
            c6_7 = fma(a60.y, b0.y, c6_7);
            c7_7 = fma(a70.y, b0.y, c7_7);
            c0_7 = fma(a00.z, b0.z, c0_7);
            c1_7 = fma(a10.z, b0.z, c1_7);
            c2_7 = fma(a20.z, b0.z, c2_7);
            c3_7 = fma(a30.z, b0.z, c3_7);
            c4_7 = fma(a40.z, b0.z, c4_7);
            c5_7 = fma(a50.z, b0.z, c5_7);
            c6_7 = fma(a60.z, b0.z, c6_7);
            c7_7 = fma(a70.z, b0.z, c7_7);
            c0_7 = fma(a00.w, b0.w, c0_7);
            c1_7 = fma(a10.w, b0.w, c1_7);
            c2_7 = fma(a20.w, b0.w, c2_7);
            c3_7 = fma(a30.w, b0.w, c3_7);
            c4_7 = fma(a40.w, b0.w, c4_7);
            c5_7 = fma(a50.w, b0.w, c5_7);
            c6_7 = fma(a60.w, b0.w, c6_7);
            c7_7 = fma(a70.w, b0.w, c7_7);
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
            c0_0 = fma(a00.y, b0.y, c0_0);
            c1_0 = fma(a10.y, b0.y, c1_0);
            c2_0 = fma(a20.y, b0.y, c2_0);
            c3_0 = fma(a30.y, b0.y, c3_0);
            c4_0 = fma(a40.y, b0.y, c4_0);
            c5_0 = fma(a50.y, b0.y, c5_0);
            c6_0 = fma(a60.y, b0.y, c6_0);
            c7_0 = fma(a70.y, b0.y, c7_0);
            c0_0 = fma(a00.z, b0.z, c0_0);
            c1_0 = fma(a10.z, b0.z, c1_0);
            c2_0 = fma(a20.z, b0.z, c2_0);
            c3_0 = fma(a30.z, b0.z, c3_0);
            c4_0 = fma(a40.z, b0.z, c4_0);
            c5_0 = fma(a50.z, b0.z, c5_0);
            c6_0 = fma(a60.z, b0.z, c6_0);
            c7_0 = fma(a70.z, b0.z, c7_0);
            c0_0 = fma(a00.w, b0.w, c0_0);
            c1_0 = fma(a10.w, b0.w, c1_0);
            c2_0 = fma(a20.w, b0.w, c2_0);
            c3_0 = fma(a30.w, b0.w, c3_0);
            c4_0 = fma(a40.w, b0.w, c4_0);
            c5_0 = fma(a50.w, b0.w, c5_0);
            c6_0 = fma(a60.w, b0.w, c6_0);
            c7_0 = fma(a70.w, b0.w, c7_0);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_1 = fma(a00.x, b0.x, c0_1);
            c1_1 = fma(a10.x, b0.x, c1_1);
            c2_1 = fma(a20.x, b0.x, c2_1);
            c3_1 = fma(a30.x, b0.x, c3_1);
            c4_1 = fma(a40.x, b0.x, c4_1);
            c5_1 = fma(a50.x, b0.x, c5_1);
            c6_1 = fma(a60.x, b0.x, c6_1);
            c7_1 = fma(a70.x, b0.x, c7_1);
            c0_1 = fma(a00.y, b0.y, c0_1);
            c1_1 = fma(a10.y, b0.y, c1_1);
            c2_1 = fma(a20.y, b0.y, c2_1);
            c3_1 = fma(a30.y, b0.y, c3_1);
            c4_1 = fma(a40.y, b0.y, c4_1);
            c5_1 = fma(a50.y, b0.y, c5_1);
            c6_1 = fma(a60.y, b0.y, c6_1);
            c7_1 = fma(a70.y, b0.y, c7_1);
            c0_1 = fma(a00.z, b0.z, c0_1);
            c1_1 = fma(a10.z, b0.z, c1_1);
            c2_1 = fma(a20.z, b0.z, c2_1);
            c3_1 = fma(a30.z, b0.z, c3_1);
            c4_1 = fma(a40.z, b0.z, c4_1);
            c5_1 = fma(a50.z, b0.z, c5_1);
            c6_1 = fma(a60.z, b0.z, c6_1);
            c7_1 = fma(a70.z, b0.z, c7_1);
            c0_1 = fma(a00.w, b0.w, c0_1);
            c1_1 = fma(a10.w, b0.w, c1_1);
            c2_1 = fma(a20.w, b0.w, c2_1);
            c3_1 = fma(a30.w, b0.w, c3_1);
            c4_1 = fma(a40.w, b0.w, c4_1);
            c5_1 = fma(a50.w, b0.w, c5_1);
            c6_1 = fma(a60.w, b0.w, c6_1);
            c7_1 = fma(a70.w, b0.w, c7_1);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_2 = fma(a00.x, b0.x, c0_2);
            c1_2 = fma(a10.x, b0.x, c1_2);
            c2_2 = fma(a20.x, b0.x, c2_2);
            c3_2 = fma(a30.x, b0.x, c3_2);
            c4_2 = fma(a40.x, b0.x, c4_2);
            c5_2 = fma(a50.x, b0.x, c5_2);
            c6_2 = fma(a60.x, b0.x, c6_2);
            c7_2 = fma(a70.x, b0.x, c7_2);
            c0_2 = fma(a00.y, b0.y, c0_2);
            c1_2 = fma(a10.y, b0.y, c1_2);
            c2_2 = fma(a20.y, b0.y, c2_2);
            c3_2 = fma(a30.y, b0.y, c3_2);
            c4_2 = fma(a40.y, b0.y, c4_2);
            c5_2 = fma(a50.y, b0.y, c5_2);
            c6_2 = fma(a60.y, b0.y, c6_2);
            c7_2 = fma(a70.y, b0.y, c7_2);
            c0_2 = fma(a00.z, b0.z, c0_2);
            c1_2 = fma(a10.z, b0.z, c1_2);
            c2_2 = fma(a20.z, b0.z, c2_2);
            c3_2 = fma(a30.z, b0.z, c3_2);
            c4_2 = fma(a40.z, b0.z, c4_2);
            c5_2 = fma(a50.z, b0.z, c5_2);
            c6_2 = fma(a60.z, b0.z, c6_2);
            c7_2 = fma(a70.z, b0.z, c7_2);
            c0_2 = fma(a00.w, b0.w, c0_2);
            c1_2 = fma(a10.w, b0.w, c1_2);
            c2_2 = fma(a20.w, b0.w, c2_2);
            c3_2 = fma(a30.w, b0.w, c3_2);
            c4_2 = fma(a40.w, b0.w, c4_2);
            c5_2 = fma(a50.w, b0.w, c5_2);
            c6_2 = fma(a60.w, b0.w, c6_2);
            c7_2 = fma(a70.w, b0.w, c7_2);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_3 = fma(a00.x, b0.x, c0_3);
            c1_3 = fma(a10.x, b0.x, c1_3);
            c2_3 = fma(a20.x, b0.x, c2_3);
            c3_3 = fma(a30.x, b0.x, c3_3);
            c4_3 = fma(a40.x, b0.x, c4_3);
            c5_3 = fma(a50.x, b0.x, c5_3);
            c6_3 = fma(a60.x, b0.x, c6_3);
            c7_3 = fma(a70.x, b0.x, c7_3);
            c0_3 = fma(a00.y, b0.y, c0_3);
            c1_3 = fma(a10.y, b0.y, c1_3);
            c2_3 = fma(a20.y, b0.y, c2_3);
            c3_3 = fma(a30.y, b0.y, c3_3);
            c4_3 = fma(a40.y, b0.y, c4_3);
            c5_3 = fma(a50.y, b0.y, c5_3);
            c6_3 = fma(a60.y, b0.y, c6_3);
            c7_3 = fma(a70.y, b0.y, c7_3);
            c0_3 = fma(a00.z, b0.z, c0_3);
            c1_3 = fma(a10.z, b0.z, c1_3);
            c2_3 = fma(a20.z, b0.z, c2_3);
            c3_3 = fma(a30.z, b0.z, c3_3);
            c4_3 = fma(a40.z, b0.z, c4_3);
            c5_3 = fma(a50.z, b0.z, c5_3);
            c6_3 = fma(a60.z, b0.z, c6_3);
            c7_3 = fma(a70.z, b0.z, c7_3);
            c0_3 = fma(a00.w, b0.w, c0_3);
            c1_3 = fma(a10.w, b0.w, c1_3);
            c2_3 = fma(a20.w, b0.w, c2_3);
            c3_3 = fma(a30.w, b0.w, c3_3);
            c4_3 = fma(a40.w, b0.w, c4_3);
            c5_3 = fma(a50.w, b0.w, c5_3);
            c6_3 = fma(a60.w, b0.w, c6_3);
            c7_3 = fma(a70.w, b0.w, c7_3);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_4 = fma(a00.x, b0.x, c0_4);
            c1_4 = fma(a10.x, b0.x, c1_4);
            c2_4 = fma(a20.x, b0.x, c2_4);
            c3_4 = fma(a30.x, b0.x, c3_4);
            c4_4 = fma(a40.x, b0.x, c4_4);
            c5_4 = fma(a50.x, b0.x, c5_4);
            c6_4 = fma(a60.x, b0.x, c6_4);
            c7_4 = fma(a70.x, b0.x, c7_4);
            c0_4 = fma(a00.y, b0.y, c0_4);
            c1_4 = fma(a10.y, b0.y, c1_4);
            c2_4 = fma(a20.y, b0.y, c2_4);
            c3_4 = fma(a30.y, b0.y, c3_4);
            c4_4 = fma(a40.y, b0.y, c4_4);
            c5_4 = fma(a50.y, b0.y, c5_4);
            c6_4 = fma(a60.y, b0.y, c6_4);
            c7_4 = fma(a70.y, b0.y, c7_4);
            c0_4 = fma(a00.z, b0.z, c0_4);
            c1_4 = fma(a10.z, b0.z, c1_4);
            c2_4 = fma(a20.z, b0.z, c2_4);
            c3_4 = fma(a30.z, b0.z, c3_4);
            c4_4 = fma(a40.z, b0.z, c4_4);
            c5_4 = fma(a50.z, b0.z, c5_4);
            c6_4 = fma(a60.z, b0.z, c6_4);
            c7_4 = fma(a70.z, b0.z, c7_4);
            c0_4 = fma(a00.w, b0.w, c0_4);
            c1_4 = fma(a10.w, b0.w, c1_4);
            c2_4 = fma(a20.w, b0.w, c2_4);
            c3_4 = fma(a30.w, b0.w, c3_4);
            c4_4 = fma(a40.w, b0.w, c4_4);
            c5_4 = fma(a50.w, b0.w, c5_4);
            c6_4 = fma(a60.w, b0.w, c6_4);
            c7_4 = fma(a70.w, b0.w, c7_4);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_5 = fma(a00.x, b0.x, c0_5);
            c1_5 = fma(a10.x, b0.x, c1_5);
            c2_5 = fma(a20.x, b0.x, c2_5);
            c3_5 = fma(a30.x, b0.x, c3_5);
            c4_5 = fma(a40.x, b0.x, c4_5);
            c5_5 = fma(a50.x, b0.x, c5_5);
            c6_5 = fma(a60.x, b0.x, c6_5);
            c7_5 = fma(a70.x, b0.x, c7_5);
            c0_5 = fma(a00.y, b0.y, c0_5);
            c1_5 = fma(a10.y, b0.y, c1_5);
            c2_5 = fma(a20.y, b0.y, c2_5);
            c3_5 = fma(a30.y, b0.y, c3_5);
            c4_5 = fma(a40.y, b0.y, c4_5);
            c5_5 = fma(a50.y, b0.y, c5_5);
            c6_5 = fma(a60.y, b0.y, c6_5);
            c7_5 = fma(a70.y, b0.y, c7_5);
            c0_5 = fma(a00.z, b0.z, c0_5);
            c1_5 = fma(a10.z, b0.z, c1_5);
            c2_5 = fma(a20.z, b0.z, c2_5);
            c3_5 = fma(a30.z, b0.z, c3_5);
            c4_5 = fma(a40.z, b0.z, c4_5);
            c5_5 = fma(a50.z, b0.z, c5_5);
            c6_5 = fma(a60.z, b0.z, c6_5);
            c7_5 = fma(a70.z, b0.z, c7_5);
            c0_5 = fma(a00.w, b0.w, c0_5);
            c1_5 = fma(a10.w, b0.w, c1_5);
            c2_5 = fma(a20.w, b0.w, c2_5);
            c3_5 = fma(a30.w, b0.w, c3_5);
            c4_5 = fma(a40.w, b0.w, c4_5);
            c5_5 = fma(a50.w, b0.w, c5_5);
            c6_5 = fma(a60.w, b0.w, c6_5);
            c7_5 = fma(a70.w, b0.w, c7_5);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_6 = fma(a00.x, b0.x, c0_6);
            c1_6 = fma(a10.x, b0.x, c1_6);
            c2_6 = fma(a20.x, b0.x, c2_6);
            c3_6 = fma(a30.x, b0.x, c3_6);
            c4_6 = fma(a40.x, b0.x, c4_6);
            c5_6 = fma(a50.x, b0.x, c5_6);
            c6_6 = fma(a60.x, b0.x, c6_6);
            c7_6 = fma(a70.x, b0.x, c7_6);
            c0_6 = fma(a00.y, b0.y, c0_6);
            c1_6 = fma(a10.y, b0.y, c1_6);
            c2_6 = fma(a20.y, b0.y, c2_6);
            c3_6 = fma(a30.y, b0.y, c3_6);
            c4_6 = fma(a40.y, b0.y, c4_6);
            c5_6 = fma(a50.y, b0.y, c5_6);
            c6_6 = fma(a60.y, b0.y, c6_6);
            c7_6 = fma(a70.y, b0.y, c7_6);
            c0_6 = fma(a00.z, b0.z, c0_6);
            c1_6 = fma(a10.z, b0.z, c1_6);
            c2_6 = fma(a20.z, b0.z, c2_6);
            c3_6 = fma(a30.z, b0.z, c3_6);
            c4_6 = fma(a40.z, b0.z, c4_6);
            c5_6 = fma(a50.z, b0.z, c5_6);
            c6_6 = fma(a60.z, b0.z, c6_6);
            c7_6 = fma(a70.z, b0.z, c7_6);
            c0_6 = fma(a00.w, b0.w, c0_6);
            c1_6 = fma(a10.w, b0.w, c1_6);
            c2_6 = fma(a20.w, b0.w, c2_6);
            c3_6 = fma(a30.w, b0.w, c3_6);
            c4_6 = fma(a40.w, b0.w, c4_6);
            c5_6 = fma(a50.w, b0.w, c5_6);
            c6_6 = fma(a60.w, b0.w, c6_6);
            c7_6 = fma(a70.w, b0.w, c7_6);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (1u ^ swc)) * 1u + 0u];
            c0_7 = fma(a00.x, b0.x, c0_7);
            c1_7 = fma(a10.x, b0.x, c1_7);
            c2_7 = fma(a20.x, b0.x, c2_7);
            c3_7 = fma(a30.x, b0.x, c3_7);
            c4_7 = fma(a40.x, b0.x, c4_7);
            c5_7 = fma(a50.x, b0.x, c5_7);
            c6_7 = fma(a60.x, b0.x, c6_7);
            c7_7 = fma(a70.x, b0.x, c7_7);
            c0_7 = fma(a00.y, b0.y, c0_7);
            c1_7 = fma(a10.y, b0.y, c1_7);
            c2_7 = fma(a20.y, b0.y, c2_7);
            c3_7 = fma(a30.y, b0.y, c3_7);
            c4_7 = fma(a40.y, b0.y, c4_7);
            c5_7 = fma(a50.y, b0.y, c5_7);
            c6_7 = fma(a60.y, b0.y, c6_7);
            c7_7 = fma(a70.y, b0.y, c7_7);
            c0_7 = fma(a00.z, b0.z, c0_7);
            c1_7 = fma(a10.z, b0.z, c1_7);
            c2_7 = fma(a20.z, b0.z, c2_7);
            c3_7 = fma(a30.z, b0.z, c3_7);
            c4_7 = fma(a40.z, b0.z, c4_7);
            c5_7 = fma(a50.z, b0.z, c5_7);
            c6_7 = fma(a60.z, b0.z, c6_7);
            c7_7 = fma(a70.z, b0.z, c7_7);
            c0_7 = fma(a00.w, b0.w, c0_7);
            c1_7 = fma(a10.w, b0.w, c1_7);
            c2_7 = fma(a20.w, b0.w, c2_7);
            c3_7 = fma(a30.w, b0.w, c3_7);
            c4_7 = fma(a40.w, b0.w, c4_7);
            c5_7 = fma(a50.w, b0.w, c5_7);
            c6_7 = fma(a60.w, b0.w, c6_7);
            c7_7 = fma(a70.w, b0.w, c7_7);
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
            c0_0 = fma(a00.y, b0.y, c0_0);
            c1_0 = fma(a10.y, b0.y, c1_0);
            c2_0 = fma(a20.y, b0.y, c2_0);
            c3_0 = fma(a30.y, b0.y, c3_0);
            c4_0 = fma(a40.y, b0.y, c4_0);
            c5_0 = fma(a50.y, b0.y, c5_0);
            c6_0 = fma(a60.y, b0.y, c6_0);
            c7_0 = fma(a70.y, b0.y, c7_0);
            c0_0 = fma(a00.z, b0.z, c0_0);
            c1_0 = fma(a10.z, b0.z, c1_0);
            c2_0 = fma(a20.z, b0.z, c2_0);
            c3_0 = fma(a30.z, b0.z, c3_0);
            c4_0 = fma(a40.z, b0.z, c4_0);
            c5_0 = fma(a50.z, b0.z, c5_0);
            c6_0 = fma(a60.z, b0.z, c6_0);
            c7_0 = fma(a70.z, b0.z, c7_0);
            c0_0 = fma(a00.w, b0.w, c0_0);
            c1_0 = fma(a10.w, b0.w, c1_0);
            c2_0 = fma(a20.w, b0.w, c2_0);
            c3_0 = fma(a30.w, b0.w, c3_0);
            c4_0 = fma(a40.w, b0.w, c4_0);
            c5_0 = fma(a50.w, b0.w, c5_0);
            c6_0 = fma(a60.w, b0.w, c6_0);
            c7_0 = fma(a70.w, b0.w, c7_0);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_1 = fma(a00.x, b0.x, c0_1);
            c1_1 = fma(a10.x, b0.x, c1_1);
            c2_1 = fma(a20.x, b0.x, c2_1);
            c3_1 = fma(a30.x, b0.x, c3_1);
            c4_1 = fma(a40.x, b0.x, c4_1);
            c5_1 = fma(a50.x, b0.x, c5_1);
            c6_1 = fma(a60.x, b0.x, c6_1);
            c7_1 = fma(a70.x, b0.x, c7_1);
            c0_1 = fma(a00.y, b0.y, c0_1);
            c1_1 = fma(a10.y, b0.y, c1_1);
            c2_1 = fma(a20.y, b0.y, c2_1);
            c3_1 = fma(a30.y, b0.y, c3_1);
            c4_1 = fma(a40.y, b0.y, c4_1);
            c5_1 = fma(a50.y, b0.y, c5_1);
            c6_1 = fma(a60.y, b0.y, c6_1);
            c7_1 = fma(a70.y, b0.y, c7_1);
            c0_1 = fma(a00.z, b0.z, c0_1);
            c1_1 = fma(a10.z, b0.z, c1_1);
            c2_1 = fma(a20.z, b0.z, c2_1);
            c3_1 = fma(a30.z, b0.z, c3_1);
            c4_1 = fma(a40.z, b0.z, c4_1);
            c5_1 = fma(a50.z, b0.z, c5_1);
            c6_1 = fma(a60.z, b0.z, c6_1);
            c7_1 = fma(a70.z, b0.z, c7_1);
            c0_1 = fma(a00.w, b0.w, c0_1);
            c1_1 = fma(a10.w, b0.w, c1_1);
            c2_1 = fma(a20.w, b0.w, c2_1);
            c3_1 = fma(a30.w, b0.w, c3_1);
            c4_1 = fma(a40.w, b0.w, c4_1);
            c5_1 = fma(a50.w, b0.w, c5_1);
            c6_1 = fma(a60.w, b0.w, c6_1);
            c7_1 = fma(a70.w, b0.w, c7_1);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_2 = fma(a00.x, b0.x, c0_2);
            c1_2 = fma(a10.x, b0.x, c1_2);
            c2_2 = fma(a20.x, b0.x, c2_2);
            c3_2 = fma(a30.x, b0.x, c3_2);
            c4_2 = fma(a40.x, b0.x, c4_2);
            c5_2 = fma(a50.x, b0.x, c5_2);
            c6_2 = fma(a60.x, b0.x, c6_2);
            c7_2 = fma(a70.x, b0.x, c7_2);
            c0_2 = fma(a00.y, b0.y, c0_2);
            c1_2 = fma(a10.y, b0.y, c1_2);
            c2_2 = fma(a20.y, b0.y, c2_2);
            c3_2 = fma(a30.y, b0.y, c3_2);
            c4_2 = fma(a40.y, b0.y, c4_2);
            c5_2 = fma(a50.y, b0.y, c5_2);
            c6_2 = fma(a60.y, b0.y, c6_2);
            c7_2 = fma(a70.y, b0.y, c7_2);
            c0_2 = fma(a00.z, b0.z, c0_2);
            c1_2 = fma(a10.z, b0.z, c1_2);
            c2_2 = fma(a20.z, b0.z, c2_2);
            c3_2 = fma(a30.z, b0.z, c3_2);
            c4_2 = fma(a40.z, b0.z, c4_2);
            c5_2 = fma(a50.z, b0.z, c5_2);
            c6_2 = fma(a60.z, b0.z, c6_2);
            c7_2 = fma(a70.z, b0.z, c7_2);
            c0_2 = fma(a00.w, b0.w, c0_2);
            c1_2 = fma(a10.w, b0.w, c1_2);
            c2_2 = fma(a20.w, b0.w, c2_2);
            c3_2 = fma(a30.w, b0.w, c3_2);
            c4_2 = fma(a40.w, b0.w, c4_2);
            c5_2 = fma(a50.w, b0.w, c5_2);
            c6_2 = fma(a60.w, b0.w, c6_2);
            c7_2 = fma(a70.w, b0.w, c7_2);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_3 = fma(a00.x, b0.x, c0_3);
            c1_3 = fma(a10.x, b0.x, c1_3);
            c2_3 = fma(a20.x, b0.x, c2_3);
            c3_3 = fma(a30.x, b0.x, c3_3);
            c4_3 = fma(a40.x, b0.x, c4_3);
            c5_3 = fma(a50.x, b0.x, c5_3);
            c6_3 = fma(a60.x, b0.x, c6_3);
            c7_3 = fma(a70.x, b0.x, c7_3);
            c0_3 = fma(a00.y, b0.y, c0_3);
            c1_3 = fma(a10.y, b0.y, c1_3);
            c2_3 = fma(a20.y, b0.y, c2_3);
            c3_3 = fma(a30.y, b0.y, c3_3);
            c4_3 = fma(a40.y, b0.y, c4_3);
            c5_3 = fma(a50.y, b0.y, c5_3);
            c6_3 = fma(a60.y, b0.y, c6_3);
            c7_3 = fma(a70.y, b0.y, c7_3);
            c0_3 = fma(a00.z, b0.z, c0_3);
            c1_3 = fma(a10.z, b0.z, c1_3);
            c2_3 = fma(a20.z, b0.z, c2_3);
            c3_3 = fma(a30.z, b0.z, c3_3);
            c4_3 = fma(a40.z, b0.z, c4_3);
            c5_3 = fma(a50.z, b0.z, c5_3);
            c6_3 = fma(a60.z, b0.z, c6_3);
            c7_3 = fma(a70.z, b0.z, c7_3);
            c0_3 = fma(a00.w, b0.w, c0_3);
            c1_3 = fma(a10.w, b0.w, c1_3);
            c2_3 = fma(a20.w, b0.w, c2_3);
            c3_3 = fma(a30.w, b0.w, c3_3);
            c4_3 = fma(a40.w, b0.w, c4_3);
            c5_3 = fma(a50.w, b0.w, c5_3);
            c6_3 = fma(a60.w, b0.w, c6_3);
            c7_3 = fma(a70.w, b0.w, c7_3);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_4 = fma(a00.x, b0.x, c0_4);
            c1_4 = fma(a10.x, b0.x, c1_4);
            c2_4 = fma(a20.x, b0.x, c2_4);
            c3_4 = fma(a30.x, b0.x, c3_4);
            c4_4 = fma(a40.x, b0.x, c4_4);
            c5_4 = fma(a50.x, b0.x, c5_4);
            c6_4 = fma(a60.x, b0.x, c6_4);
            c7_4 = fma(a70.x, b0.x, c7_4);
            c0_4 = fma(a00.y, b0.y, c0_4);
            c1_4 = fma(a10.y, b0.y, c1_4);
            c2_4 = fma(a20.y, b0.y, c2_4);
            c3_4 = fma(a30.y, b0.y, c3_4);
            c4_4 = fma(a40.y, b0.y, c4_4);
            c5_4 = fma(a50.y, b0.y, c5_4);
            c6_4 = fma(a60.y, b0.y, c6_4);
            c7_4 = fma(a70.y, b0.y, c7_4);
            c0_4 = fma(a00.z, b0.z, c0_4);
            c1_4 = fma(a10.z, b0.z, c1_4);
            c2_4 = fma(a20.z, b0.z, c2_4);
            c3_4 = fma(a30.z, b0.z, c3_4);
            c4_4 = fma(a40.z, b0.z, c4_4);
            c5_4 = fma(a50.z, b0.z, c5_4);
            c6_4 = fma(a60.z, b0.z, c6_4);
            c7_4 = fma(a70.z, b0.z, c7_4);
            c0_4 = fma(a00.w, b0.w, c0_4);
            c1_4 = fma(a10.w, b0.w, c1_4);
            c2_4 = fma(a20.w, b0.w, c2_4);
            c3_4 = fma(a30.w, b0.w, c3_4);
            c4_4 = fma(a40.w, b0.w, c4_4);
            c5_4 = fma(a50.w, b0.w, c5_4);
            c6_4 = fma(a60.w, b0.w, c6_4);
            c7_4 = fma(a70.w, b0.w, c7_4);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_5 = fma(a00.x, b0.x, c0_5);
            c1_5 = fma(a10.x, b0.x, c1_5);
            c2_5 = fma(a20.x, b0.x, c2_5);
            c3_5 = fma(a30.x, b0.x, c3_5);
            c4_5 = fma(a40.x, b0.x, c4_5);
            c5_5 = fma(a50.x, b0.x, c5_5);
            c6_5 = fma(a60.x, b0.x, c6_5);
            c7_5 = fma(a70.x, b0.x, c7_5);
            c0_5 = fma(a00.y, b0.y, c0_5);
            c1_5 = fma(a10.y, b0.y, c1_5);
            c2_5 = fma(a20.y, b0.y, c2_5);
            c3_5 = fma(a30.y, b0.y, c3_5);
            c4_5 = fma(a40.y, b0.y, c4_5);
            c5_5 = fma(a50.y, b0.y, c5_5);
            c6_5 = fma(a60.y, b0.y, c6_5);
            c7_5 = fma(a70.y, b0.y, c7_5);
            c0_5 = fma(a00.z, b0.z, c0_5);
            c1_5 = fma(a10.z, b0.z, c1_5);
            c2_5 = fma(a20.z, b0.z, c2_5);
            c3_5 = fma(a30.z, b0.z, c3_5);
            c4_5 = fma(a40.z, b0.z, c4_5);
            c5_5 = fma(a50.z, b0.z, c5_5);
            c6_5 = fma(a60.z, b0.z, c6_5);
            c7_5 = fma(a70.z, b0.z, c7_5);
            c0_5 = fma(a00.w, b0.w, c0_5);
            c1_5 = fma(a10.w, b0.w, c1_5);
            c2_5 = fma(a20.w, b0.w, c2_5);
            c3_5 = fma(a30.w, b0.w, c3_5);
            c4_5 = fma(a40.w, b0.w, c4_5);
            c5_5 = fma(a50.w, b0.w, c5_5);
            c6_5 = fma(a60.w, b0.w, c6_5);
            c7_5 = fma(a70.w, b0.w, c7_5);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_6 = fma(a00.x, b0.x, c0_6);
            c1_6 = fma(a10.x, b0.x, c1_6);
            c2_6 = fma(a20.x, b0.x, c2_6);
            c3_6 = fma(a30.x, b0.x, c3_6);
            c4_6 = fma(a40.x, b0.x, c4_6);
            c5_6 = fma(a50.x, b0.x, c5_6);
            c6_6 = fma(a60.x, b0.x, c6_6);
            c7_6 = fma(a70.x, b0.x, c7_6);
            c0_6 = fma(a00.y, b0.y, c0_6);
            c1_6 = fma(a10.y, b0.y, c1_6);
            c2_6 = fma(a20.y, b0.y, c2_6);
            c3_6 = fma(a30.y, b0.y, c3_6);
            c4_6 = fma(a40.y, b0.y, c4_6);
            c5_6 = fma(a50.y, b0.y, c5_6);
            c6_6 = fma(a60.y, b0.y, c6_6);
            c7_6 = fma(a70.y, b0.y, c7_6);
            c0_6 = fma(a00.z, b0.z, c0_6);
            c1_6 = fma(a10.z, b0.z, c1_6);
            c2_6 = fma(a20.z, b0.z, c2_6);
            c3_6 = fma(a30.z, b0.z, c3_6);
            c4_6 = fma(a40.z, b0.z, c4_6);
            c5_6 = fma(a50.z, b0.z, c5_6);
            c6_6 = fma(a60.z, b0.z, c6_6);
            c7_6 = fma(a70.z, b0.z, c7_6);
            c0_6 = fma(a00.w, b0.w, c0_6);
            c1_6 = fma(a10.w, b0.w, c1_6);
            c2_6 = fma(a20.w, b0.w, c2_6);
            c3_6 = fma(a30.w, b0.w, c3_6);
            c4_6 = fma(a40.w, b0.w, c4_6);
            c5_6 = fma(a50.w, b0.w, c5_6);
            c6_6 = fma(a60.w, b0.w, c6_6);
            c7_6 = fma(a70.w, b0.w, c7_6);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (2u ^ swc)) * 1u + 0u];
            c0_7 = fma(a00.x, b0.x, c0_7);
            c1_7 = fma(a10.x, b0.x, c1_7);
            c2_7 = fma(a20.x, b0.x, c2_7);
            c3_7 = fma(a30.x, b0.x, c3_7);
            c4_7 = fma(a40.x, b0.x, c4_7);
            c5_7 = fma(a50.x, b0.x, c5_7);
            c6_7 = fma(a60.x, b0.x, c6_7);
            c7_7 = fma(a70.x, b0.x, c7_7);
            c0_7 = fma(a00.y, b0.y, c0_7);
            c1_7 = fma(a10.y, b0.y, c1_7);
            c2_7 = fma(a20.y, b0.y, c2_7);
            c3_7 = fma(a30.y, b0.y, c3_7);
            c4_7 = fma(a40.y, b0.y, c4_7);
            c5_7 = fma(a50.y, b0.y, c5_7);
            c6_7 = fma(a60.y, b0.y, c6_7);
            c7_7 = fma(a70.y, b0.y, c7_7);
            c0_7 = fma(a00.z, b0.z, c0_7);
            c1_7 = fma(a10.z, b0.z, c1_7);
            c2_7 = fma(a20.z, b0.z, c2_7);
            c3_7 = fma(a30.z, b0.z, c3_7);
            c4_7 = fma(a40.z, b0.z, c4_7);
            c5_7 = fma(a50.z, b0.z, c5_7);
            c6_7 = fma(a60.z, b0.z, c6_7);
            c7_7 = fma(a70.z, b0.z, c7_7);
            c0_7 = fma(a00.w, b0.w, c0_7);
            c1_7 = fma(a10.w, b0.w, c1_7);
            c2_7 = fma(a20.w, b0.w, c2_7);
            c3_7 = fma(a30.w, b0.w, c3_7);
            c4_7 = fma(a40.w, b0.w, c4_7);
            c5_7 = fma(a50.w, b0.w, c5_7);
            c6_7 = fma(a60.w, b0.w, c6_7);
            c7_7 = fma(a70.w, b0.w, c7_7);
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
            c0_0 = fma(a00.y, b0.y, c0_0);
            c1_0 = fma(a10.y, b0.y, c1_0);
            c2_0 = fma(a20.y, b0.y, c2_0);
            c3_0 = fma(a30.y, b0.y, c3_0);
            c4_0 = fma(a40.y, b0.y, c4_0);
            c5_0 = fma(a50.y, b0.y, c5_0);
            c6_0 = fma(a60.y, b0.y, c6_0);
            c7_0 = fma(a70.y, b0.y, c7_0);
            c0_0 = fma(a00.z, b0.z, c0_0);
            c1_0 = fma(a10.z, b0.z, c1_0);
            c2_0 = fma(a20.z, b0.z, c2_0);
            c3_0 = fma(a30.z, b0.z, c3_0);
            c4_0 = fma(a40.z, b0.z, c4_0);
            c5_0 = fma(a50.z, b0.z, c5_0);
            c6_0 = fma(a60.z, b0.z, c6_0);
            c7_0 = fma(a70.z, b0.z, c7_0);
            c0_0 = fma(a00.w, b0.w, c0_0);
            c1_0 = fma(a10.w, b0.w, c1_0);
            c2_0 = fma(a20.w, b0.w, c2_0);
            c3_0 = fma(a30.w, b0.w, c3_0);
            c4_0 = fma(a40.w, b0.w, c4_0);
            c5_0 = fma(a50.w, b0.w, c5_0);
            c6_0 = fma(a60.w, b0.w, c6_0);
            c7_0 = fma(a70.w, b0.w, c7_0);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_1 = fma(a00.x, b0.x, c0_1);
            c1_1 = fma(a10.x, b0.x, c1_1);
            c2_1 = fma(a20.x, b0.x, c2_1);
            c3_1 = fma(a30.x, b0.x, c3_1);
            c4_1 = fma(a40.x, b0.x, c4_1);
            c5_1 = fma(a50.x, b0.x, c5_1);
            c6_1 = fma(a60.x, b0.x, c6_1);
            c7_1 = fma(a70.x, b0.x, c7_1);
            c0_1 = fma(a00.y, b0.y, c0_1);
            c1_1 = fma(a10.y, b0.y, c1_1);
            c2_1 = fma(a20.y, b0.y, c2_1);
            c3_1 = fma(a30.y, b0.y, c3_1);
            c4_1 = fma(a40.y, b0.y, c4_1);
            c5_1 = fma(a50.y, b0.y, c5_1);
            c6_1 = fma(a60.y, b0.y, c6_1);
            c7_1 = fma(a70.y, b0.y, c7_1);
            c0_1 = fma(a00.z, b0.z, c0_1);
            c1_1 = fma(a10.z, b0.z, c1_1);
            c2_1 = fma(a20.z, b0.z, c2_1);
            c3_1 = fma(a30.z, b0.z, c3_1);
            c4_1 = fma(a40.z, b0.z, c4_1);
            c5_1 = fma(a50.z, b0.z, c5_1);
            c6_1 = fma(a60.z, b0.z, c6_1);
            c7_1 = fma(a70.z, b0.z, c7_1);
            c0_1 = fma(a00.w, b0.w, c0_1);
            c1_1 = fma(a10.w, b0.w, c1_1);
            c2_1 = fma(a20.w, b0.w, c2_1);
            c3_1 = fma(a30.w, b0.w, c3_1);
            c4_1 = fma(a40.w, b0.w, c4_1);
            c5_1 = fma(a50.w, b0.w, c5_1);
            c6_1 = fma(a60.w, b0.w, c6_1);
            c7_1 = fma(a70.w, b0.w, c7_1);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_2 = fma(a00.x, b0.x, c0_2);
            c1_2 = fma(a10.x, b0.x, c1_2);
            c2_2 = fma(a20.x, b0.x, c2_2);
            c3_2 = fma(a30.x, b0.x, c3_2);
            c4_2 = fma(a40.x, b0.x, c4_2);
            c5_2 = fma(a50.x, b0.x, c5_2);
            c6_2 = fma(a60.x, b0.x, c6_2);
            c7_2 = fma(a70.x, b0.x, c7_2);
            c0_2 = fma(a00.y, b0.y, c0_2);
            c1_2 = fma(a10.y, b0.y, c1_2);
            c2_2 = fma(a20.y, b0.y, c2_2);
            c3_2 = fma(a30.y, b0.y, c3_2);
            c4_2 = fma(a40.y, b0.y, c4_2);
            c5_2 = fma(a50.y, b0.y, c5_2);
            c6_2 = fma(a60.y, b0.y, c6_2);
            c7_2 = fma(a70.y, b0.y, c7_2);
            c0_2 = fma(a00.z, b0.z, c0_2);
            c1_2 = fma(a10.z, b0.z, c1_2);
            c2_2 = fma(a20.z, b0.z, c2_2);
            c3_2 = fma(a30.z, b0.z, c3_2);
            c4_2 = fma(a40.z, b0.z, c4_2);
            c5_2 = fma(a50.z, b0.z, c5_2);
            c6_2 = fma(a60.z, b0.z, c6_2);
            c7_2 = fma(a70.z, b0.z, c7_2);
            c0_2 = fma(a00.w, b0.w, c0_2);
            c1_2 = fma(a10.w, b0.w, c1_2);
            c2_2 = fma(a20.w, b0.w, c2_2);
            c3_2 = fma(a30.w, b0.w, c3_2);
            c4_2 = fma(a40.w, b0.w, c4_2);
            c5_2 = fma(a50.w, b0.w, c5_2);
            c6_2 = fma(a60.w, b0.w, c6_2);
            c7_2 = fma(a70.w, b0.w, c7_2);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_3 = fma(a00.x, b0.x, c0_3);
            c1_3 = fma(a10.x, b0.x, c1_3);
            c2_3 = fma(a20.x, b0.x, c2_3);
            c3_3 = fma(a30.x, b0.x, c3_3);
            c4_3 = fma(a40.x, b0.x, c4_3);
            c5_3 = fma(a50.x, b0.x, c5_3);
            c6_3 = fma(a60.x, b0.x, c6_3);
            c7_3 = fma(a70.x, b0.x, c7_3);
            c0_3 = fma(a00.y, b0.y, c0_3);
            c1_3 = fma(a10.y, b0.y, c1_3);
            c2_3 = fma(a20.y, b0.y, c2_3);
            c3_3 = fma(a30.y, b0.y, c3_3);
            c4_3 = fma(a40.y, b0.y, c4_3);
            c5_3 = fma(a50.y, b0.y, c5_3);
            c6_3 = fma(a60.y, b0.y, c6_3);
            c7_3 = fma(a70.y, b0.y, c7_3);
            c0_3 = fma(a00.z, b0.z, c0_3);
            c1_3 = fma(a10.z, b0.z, c1_3);
            c2_3 = fma(a20.z, b0.z, c2_3);
            c3_3 = fma(a30.z, b0.z, c3_3);
            c4_3 = fma(a40.z, b0.z, c4_3);
            c5_3 = fma(a50.z, b0.z, c5_3);
            c6_3 = fma(a60.z, b0.z, c6_3);
            c7_3 = fma(a70.z, b0.z, c7_3);
            c0_3 = fma(a00.w, b0.w, c0_3);
            c1_3 = fma(a10.w, b0.w, c1_3);
            c2_3 = fma(a20.w, b0.w, c2_3);
            c3_3 = fma(a30.w, b0.w, c3_3);
            c4_3 = fma(a40.w, b0.w, c4_3);
            c5_3 = fma(a50.w, b0.w, c5_3);
            c6_3 = fma(a60.w, b0.w, c6_3);
            c7_3 = fma(a70.w, b0.w, c7_3);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_4 = fma(a00.x, b0.x, c0_4);
            c1_4 = fma(a10.x, b0.x, c1_4);
            c2_4 = fma(a20.x, b0.x, c2_4);
            c3_4 = fma(a30.x, b0.x, c3_4);
            c4_4 = fma(a40.x, b0.x, c4_4);
            c5_4 = fma(a50.x, b0.x, c5_4);
            c6_4 = fma(a60.x, b0.x, c6_4);
            c7_4 = fma(a70.x, b0.x, c7_4);
            c0_4 = fma(a00.y, b0.y, c0_4);
            c1_4 = fma(a10.y, b0.y, c1_4);
            c2_4 = fma(a20.y, b0.y, c2_4);
            c3_4 = fma(a30.y, b0.y, c3_4);
            c4_4 = fma(a40.y, b0.y, c4_4);
            c5_4 = fma(a50.y, b0.y, c5_4);
            c6_4 = fma(a60.y, b0.y, c6_4);
            c7_4 = fma(a70.y, b0.y, c7_4);
            c0_4 = fma(a00.z, b0.z, c0_4);
            c1_4 = fma(a10.z, b0.z, c1_4);
            c2_4 = fma(a20.z, b0.z, c2_4);
            c3_4 = fma(a30.z, b0.z, c3_4);
            c4_4 = fma(a40.z, b0.z, c4_4);
            c5_4 = fma(a50.z, b0.z, c5_4);
            c6_4 = fma(a60.z, b0.z, c6_4);
            c7_4 = fma(a70.z, b0.z, c7_4);
            c0_4 = fma(a00.w, b0.w, c0_4);
            c1_4 = fma(a10.w, b0.w, c1_4);
            c2_4 = fma(a20.w, b0.w, c2_4);
            c3_4 = fma(a30.w, b0.w, c3_4);
            c4_4 = fma(a40.w, b0.w, c4_4);
            c5_4 = fma(a50.w, b0.w, c5_4);
            c6_4 = fma(a60.w, b0.w, c6_4);
            c7_4 = fma(a70.w, b0.w, c7_4);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_5 = fma(a00.x, b0.x, c0_5);
            c1_5 = fma(a10.x, b0.x, c1_5);
            c2_5 = fma(a20.x, b0.x, c2_5);
            c3_5 = fma(a30.x, b0.x, c3_5);
            c4_5 = fma(a40.x, b0.x, c4_5);
            c5_5 = fma(a50.x, b0.x, c5_5);
            c6_5 = fma(a60.x, b0.x, c6_5);
            c7_5 = fma(a70.x, b0.x, c7_5);
            c0_5 = fma(a00.y, b0.y, c0_5);
            c1_5 = fma(a10.y, b0.y, c1_5);
            c2_5 = fma(a20.y, b0.y, c2_5);
            c3_5 = fma(a30.y, b0.y, c3_5);
            c4_5 = fma(a40.y, b0.y, c4_5);
            c5_5 = fma(a50.y, b0.y, c5_5);
            c6_5 = fma(a60.y, b0.y, c6_5);
            c7_5 = fma(a70.y, b0.y, c7_5);
            c0_5 = fma(a00.z, b0.z, c0_5);
            c1_5 = fma(a10.z, b0.z, c1_5);
            c2_5 = fma(a20.z, b0.z, c2_5);
            c3_5 = fma(a30.z, b0.z, c3_5);
            c4_5 = fma(a40.z, b0.z, c4_5);
            c5_5 = fma(a50.z, b0.z, c5_5);
            c6_5 = fma(a60.z, b0.z, c6_5);
            c7_5 = fma(a70.z, b0.z, c7_5);
            c0_5 = fma(a00.w, b0.w, c0_5);
            c1_5 = fma(a10.w, b0.w, c1_5);
            c2_5 = fma(a20.w, b0.w, c2_5);
            c3_5 = fma(a30.w, b0.w, c3_5);
            c4_5 = fma(a40.w, b0.w, c4_5);
            c5_5 = fma(a50.w, b0.w, c5_5);
            c6_5 = fma(a60.w, b0.w, c6_5);
            c7_5 = fma(a70.w, b0.w, c7_5);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_6 = fma(a00.x, b0.x, c0_6);
            c1_6 = fma(a10.x, b0.x, c1_6);
            c2_6 = fma(a20.x, b0.x, c2_6);
            c3_6 = fma(a30.x, b0.x, c3_6);
            c4_6 = fma(a40.x, b0.x, c4_6);
            c5_6 = fma(a50.x, b0.x, c5_6);
            c6_6 = fma(a60.x, b0.x, c6_6);
            c7_6 = fma(a70.x, b0.x, c7_6);
            c0_6 = fma(a00.y, b0.y, c0_6);
            c1_6 = fma(a10.y, b0.y, c1_6);
            c2_6 = fma(a20.y, b0.y, c2_6);
            c3_6 = fma(a30.y, b0.y, c3_6);
            c4_6 = fma(a40.y, b0.y, c4_6);
            c5_6 = fma(a50.y, b0.y, c5_6);
            c6_6 = fma(a60.y, b0.y, c6_6);
            c7_6 = fma(a70.y, b0.y, c7_6);
            c0_6 = fma(a00.z, b0.z, c0_6);
            c1_6 = fma(a10.z, b0.z, c1_6);
            c2_6 = fma(a20.z, b0.z, c2_6);
            c3_6 = fma(a30.z, b0.z, c3_6);
            c4_6 = fma(a40.z, b0.z, c4_6);
            c5_6 = fma(a50.z, b0.z, c5_6);
            c6_6 = fma(a60.z, b0.z, c6_6);
            c7_6 = fma(a70.z, b0.z, c7_6);
            c0_6 = fma(a00.w, b0.w, c0_6);
            c1_6 = fma(a10.w, b0.w, c1_6);
            c2_6 = fma(a20.w, b0.w, c2_6);
            c3_6 = fma(a30.w, b0.w, c3_6);
            c4_6 = fma(a40.w, b0.w, c4_6);
            c5_6 = fma(a50.w, b0.w, c5_6);
            c6_6 = fma(a60.w, b0.w, c6_6);
            c7_6 = fma(a70.w, b0.w, c7_6);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (3u ^ swc)) * 1u + 0u];
            c0_7 = fma(a00.x, b0.x, c0_7);
            c1_7 = fma(a10.x, b0.x, c1_7);
            c2_7 = fma(a20.x, b0.x, c2_7);
            c3_7 = fma(a30.x, b0.x, c3_7);
            c4_7 = fma(a40.x, b0.x, c4_7);
            c5_7 = fma(a50.x, b0.x, c5_7);
            c6_7 = fma(a60.x, b0.x, c6_7);
            c7_7 = fma(a70.x, b0.x, c7_7);
            c0_7 = fma(a00.y, b0.y, c0_7);
            c1_7 = fma(a10.y, b0.y, c1_7);
            c2_7 = fma(a20.y, b0.y, c2_7);
            c3_7 = fma(a30.y, b0.y, c3_7);
            c4_7 = fma(a40.y, b0.y, c4_7);
            c5_7 = fma(a50.y, b0.y, c5_7);
            c6_7 = fma(a60.y, b0.y, c6_7);
            c7_7 = fma(a70.y, b0.y, c7_7);
            c0_7 = fma(a00.z, b0.z, c0_7);
            c1_7 = fma(a10.z, b0.z, c1_7);
            c2_7 = fma(a20.z, b0.z, c2_7);
            c3_7 = fma(a30.z, b0.z, c3_7);
            c4_7 = fma(a40.z, b0.z, c4_7);
            c5_7 = fma(a50.z, b0.z, c5_7);
            c6_7 = fma(a60.z, b0.z, c6_7);
            c7_7 = fma(a70.z, b0.z, c7_7);
            c0_7 = fma(a00.w, b0.w, c0_7);
            c1_7 = fma(a10.w, b0.w, c1_7);
            c2_7 = fma(a20.w, b0.w, c2_7);
            c3_7 = fma(a30.w, b0.w, c3_7);
            c4_7 = fma(a40.w, b0.w, c4_7);
            c5_7 = fma(a50.w, b0.w, c5_7);
            c6_7 = fma(a60.w, b0.w, c6_7);
            c7_7 = fma(a70.w, b0.w, c7_7);
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
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] += c0_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c0_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] += c0_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c0_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] += c0_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c0_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] += c0_7 * scale + bias;
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
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] += c1_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c1_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] += c1_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c1_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] += c1_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c1_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] += c1_7 * scale + bias;
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
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] += c2_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c2_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] += c2_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c2_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] += c2_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c2_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] += c2_7 * scale + bias;
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
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] += c3_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c3_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] += c3_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c3_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] += c3_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c3_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] += c3_7 * scale + bias;
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
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] += c4_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c4_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] += c4_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c4_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] += c4_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c4_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] += c4_7 * scale + bias;
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
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] += c5_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c5_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] += c5_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c5_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] += c5_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c5_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] += c5_7 * scale + bias;
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
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] += c6_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c6_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] += c6_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c6_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] += c6_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c6_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] += c6_7 * scale + bias;
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
        if (col0 + tc + 8u < n_col) {
            y[(col0 + tc + 8u) * LDY + Y0 + row] += c7_1 * scale + bias;
        }
        if (col0 + tc + 16u < n_col) {
            y[(col0 + tc + 16u) * LDY + Y0 + row] += c7_2 * scale + bias;
        }
        if (col0 + tc + 24u < n_col) {
            y[(col0 + tc + 24u) * LDY + Y0 + row] += c7_3 * scale + bias;
        }
        if (col0 + tc + 32u < n_col) {
            y[(col0 + tc + 32u) * LDY + Y0 + row] += c7_4 * scale + bias;
        }
        if (col0 + tc + 40u < n_col) {
            y[(col0 + tc + 40u) * LDY + Y0 + row] += c7_5 * scale + bias;
        }
        if (col0 + tc + 48u < n_col) {
            y[(col0 + tc + 48u) * LDY + Y0 + row] += c7_6 * scale + bias;
        }
        if (col0 + tc + 56u < n_col) {
            y[(col0 + tc + 56u) * LDY + Y0 + row] += c7_7 * scale + bias;
        }
    }
}
