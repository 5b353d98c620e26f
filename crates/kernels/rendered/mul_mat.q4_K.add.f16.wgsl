// mul_mat: a=q4_K epi=add tile=f16
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
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let c = e >> 6u;
    let s = w_scales(w[w_p1 + b], c);
    let q = w[b * 8u + (c << 1u) + ((e >> 4u) & 1u)][(e >> 2u) & 3u];
    if ((e & 32u) != 0u) {
        return s.y * vec4<f32>(unpack4xU8((q >> 4u) & 0x0f0f0f0fu)) - s.w;
    }
    return s.x * vec4<f32>(unpack4xU8(q & 0x0f0f0f0fu)) - s.z;
}

const BK: u32 = 16u;
const ROW4: u32 = 17u;
var<workgroup> ws: array<vec4<f16>, BK * ROW4>;
var<workgroup> xs: array<vec4<f16>, BK * ROW4>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let n_col = step[0];
    let row0 = group.x * 64u;
    let col0 = group.y * 64u;
    let tr = tid % 16u;
    let tc = tid / 16u;
    // What this thread stages: four values along K of one row and of one column.
    let sk = (tid % 4u) * 4u;
    let si = tid / 4u;
    let w_row = min(row0 + si, M - 1u) * BLOCKS;
    let x_col = min(col0 + si, n_col - 1u) * LDX;
    var acc0 = vec4<f32>();
    var acc1 = vec4<f32>();
    var acc2 = vec4<f32>();
    var acc3 = vec4<f32>();
    for (var k0 = 0u; k0 < K; k0 += BK) {
        let k = k0 + sk;
        var a = vec4<f32>();
        var b = vec4<f32>();
        if (k < K) {
            a = w_load4(w_row + k / 256u, k % 256u);
            b = x[(x_col + k) / 4u];
            if (RAGGED && k + 4u > K) {
                b = select(b, vec4<f32>(), vec4<u32>(k, k + 1u, k + 2u, k + 3u) >= vec4<u32>(K));
            }
        }
        workgroupBarrier();
        ws[(sk + 0u) * ROW4 + si / 4u][si % 4u] = f16(a.x);
        xs[(sk + 0u) * ROW4 + si / 4u][si % 4u] = f16(b.x);
        ws[(sk + 1u) * ROW4 + si / 4u][si % 4u] = f16(a.y);
        xs[(sk + 1u) * ROW4 + si / 4u][si % 4u] = f16(b.y);
        ws[(sk + 2u) * ROW4 + si / 4u][si % 4u] = f16(a.z);
        xs[(sk + 2u) * ROW4 + si / 4u][si % 4u] = f16(b.z);
        ws[(sk + 3u) * ROW4 + si / 4u][si % 4u] = f16(a.w);
        xs[(sk + 3u) * ROW4 + si / 4u][si % 4u] = f16(b.w);
        workgroupBarrier();
        for (var i = 0u; i < BK; i++) {
            let p = vec4<f32>(ws[i * ROW4 + tr]);
            let q = vec4<f32>(xs[i * ROW4 + tc]);
            acc0 += p * q.x;
            acc1 += p * q.y;
            acc2 += p * q.z;
            acc3 += p * q.w;
        }
    }
    let row = row0 + tr * 4u;
    var ones = vec4<f32>(1.0);
    var bias = vec4<f32>();
    if (AFFINE) {
        for (var i = 0u; i < 4u; i++) {
            let r = AFF + 2u * min(row + i, M - 1u);
            ones[i] = aux[r];
            bias[i] = aux[r + 1u];
        }
    }
    if (col0 + tc * 4u + 0u < n_col) {
        let at = (col0 + tc * 4u + 0u) * LDY + Y0 + row;
        let v = acc0 * ones + bias;
        for (var i = 0u; i < min(4u, M - min(M, row)); i++) {
            y[at + i] += v[i];
        }
    }
    if (col0 + tc * 4u + 1u < n_col) {
        let at = (col0 + tc * 4u + 1u) * LDY + Y0 + row;
        let v = acc1 * ones + bias;
        for (var i = 0u; i < min(4u, M - min(M, row)); i++) {
            y[at + i] += v[i];
        }
    }
    if (col0 + tc * 4u + 2u < n_col) {
        let at = (col0 + tc * 4u + 2u) * LDY + Y0 + row;
        let v = acc2 * ones + bias;
        for (var i = 0u; i < min(4u, M - min(M, row)); i++) {
            y[at + i] += v[i];
        }
    }
    if (col0 + tc * 4u + 3u < n_col) {
        let at = (col0 + tc * 4u + 3u) * LDY + Y0 + row;
        let v = acc3 * ones + bias;
        for (var i = 0u; i < min(4u, M - min(M, row)); i++) {
            y[at + i] += v[i];
        }
    }
}
