// mul_mat_coop: a=q4_K x=f16 epi=add bm=64 bn=128
override K: u32 = 256u;
override M: u32 = 1u;
override LDX: u32 = 256u;
override LDY: u32 = 1u;
override Y0: u32 = 0u;
override AFFINE: bool = false;
override AFF: u32 = 0u;
override BLOCKS: u32 = 1u;
override w_p1: u32 = 0u;
override w_p2: u32 = 0u;
override w_p3: u32 = 0u;
override w_table: u32 = 0u;

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
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
// The same of one group g: (d*sc, dmin*m), without an integer conversion.
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
// 1 + a quarter of the low two bits of each byte of v: the less stands beside small values, the more is left of them.
fn crumbs1(v: u32) -> vec4<f32> {
    let a = unpack2x16float(((v << 8u) & 0x03000300u) | 0x3c003c00u);
    let b = unpack2x16float((v & 0x03000300u) | 0x3c003c00u);
    return vec4<f32>(a.x, b.x, a.y, b.y);
}
// Rows of a staged tile in vec4: 64 values and 8 of padding against bank conflicts.
const ROW: u32 = 18u;
var<workgroup> ws: array<vec4<f16>, 64u * ROW>;
var<workgroup> xs: array<vec4<f16>, 128u * ROW>;

var<workgroup> cs: array<f32, 2048>;

// Writes a staged tile: 8 values a lane.
fn write(tile: u32, lane: u32, row: u32, col: u32, n_col: u32) {
    for (var i = lane; i < 256u; i += 32u) {
        let r = row + i % 16u;
        let c = col + i / 16u;
        if (r < M && c < n_col) {
            var v = cs[tile + i];
            if (AFFINE) {
                v = v * aux[AFF + 2u * r] + aux[AFF + 2u * r + 1u];
            }
            y[c * LDY + Y0 + r] += v;
        }
    }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32, @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32) {
    let n_col = step[0];
    let row0 = group.y * 64u;
    let col0 = group.x * 128u;
    // This subgroup's part of the tile.
    let sub_row = (subgroup % 2u) * 32u;
    let sub_col = (subgroup / 2u) * 32u;
    // A whole tile goes straight to y, where loads and stores of matrices ask for 16 bytes of alignment.
    let aligned = !AFFINE & (LDY % 4u == 0u) & (Y0 % 4u == 0u);
    let whole = aligned & (row0 + 64u <= M) & (col0 + 128u <= n_col);
    let y0 = (col0 + sub_col) * LDY + Y0 + row0 + sub_row;
    var c00 = coop_mat16x16<f32, C>();
    var c01 = coop_mat16x16<f32, C>();
    var c10 = coop_mat16x16<f32, C>();
    var c11 = coop_mat16x16<f32, C>();
    if (whole) {
        c00 = coopLoad<coop_mat16x16<f32, C>>(&y[y0 + 0u * LDY + 0u], LDY);
        c01 = coopLoad<coop_mat16x16<f32, C>>(&y[y0 + 16u * LDY + 0u], LDY);
        c10 = coopLoad<coop_mat16x16<f32, C>>(&y[y0 + 0u * LDY + 16u], LDY);
        c11 = coopLoad<coop_mat16x16<f32, C>>(&y[y0 + 16u * LDY + 16u], LDY);
    }
    for (var k0 = 0u; k0 < K; k0 += 64u) {
        // Loads before the barrier: subgroups that are done with the last tile wait for memory, not for the others.
        let r0 = (tid + 0u) / 4u;
        let kw0 = k0 + (tid % 4u) * 16u;
        let bw0 = min(row0 + r0, M - 1u) * BLOCKS + kw0 / 256u;
        let e0 = kw0 % 256u;
let w0_r = w[bw0 * 8u + ((e0 >> 6u) << 1u) + ((e0 >> 4u) & 1u)];
let w0_s = w[w_p1 + bw0];

        let x0 = (min(col0 + (tid + 0u) / 8u, n_col - 1u) * LDX + k0) / 8u + tid % 8u;
        let x0q = x[x0];
        let x0a = vec4<f32>(unpack2x16float(x0q.x), unpack2x16float(x0q.y));
        let x0b = vec4<f32>(unpack2x16float(x0q.z), unpack2x16float(x0q.w));
        let x1 = (min(col0 + (tid + 256u) / 8u, n_col - 1u) * LDX + k0) / 8u + tid % 8u;
        let x1q = x[x1];
        let x1a = vec4<f32>(unpack2x16float(x1q.x), unpack2x16float(x1q.y));
        let x1b = vec4<f32>(unpack2x16float(x1q.z), unpack2x16float(x1q.w));
        let x2 = (min(col0 + (tid + 512u) / 8u, n_col - 1u) * LDX + k0) / 8u + tid % 8u;
        let x2q = x[x2];
        let x2a = vec4<f32>(unpack2x16float(x2q.x), unpack2x16float(x2q.y));
        let x2b = vec4<f32>(unpack2x16float(x2q.z), unpack2x16float(x2q.w));
        let x3 = (min(col0 + (tid + 768u) / 8u, n_col - 1u) * LDX + k0) / 8u + tid % 8u;
        let x3q = x[x3];
        let x3a = vec4<f32>(unpack2x16float(x3q.x), unpack2x16float(x3q.y));
        let x3b = vec4<f32>(unpack2x16float(x3q.z), unpack2x16float(x3q.w));
        workgroupBarrier();
let w0_q = w0_r >> vec4<u32>((e0 & 32u) >> 3u);
let w0_f = w_scale(w0_s, e0 >> 5u);
let w0_d = w0_f.x;
let w0_m = w0_f.y;
let w0_0 = w0_d * (nibbles1024(w0_q.x) - 1024.0) - w0_m;
let w0_1 = w0_d * (nibbles1024(w0_q.y) - 1024.0) - w0_m;
let w0_2 = w0_d * (nibbles1024(w0_q.z) - 1024.0) - w0_m;
let w0_3 = w0_d * (nibbles1024(w0_q.w) - 1024.0) - w0_m;

        ws[r0 * ROW + (tid % 4u) * 4u + 0u] = vec4<f16>(w0_0);
        ws[r0 * ROW + (tid % 4u) * 4u + 1u] = vec4<f16>(w0_1);
        ws[r0 * ROW + (tid % 4u) * 4u + 2u] = vec4<f16>(w0_2);
        ws[r0 * ROW + (tid % 4u) * 4u + 3u] = vec4<f16>(w0_3);
        xs[((tid + 0u) / 8u) * ROW + (tid % 8u) * 2u] = vec4<f16>(x0a);
        xs[((tid + 0u) / 8u) * ROW + (tid % 8u) * 2u + 1u] = vec4<f16>(x0b);
        xs[((tid + 256u) / 8u) * ROW + (tid % 8u) * 2u] = vec4<f16>(x1a);
        xs[((tid + 256u) / 8u) * ROW + (tid % 8u) * 2u + 1u] = vec4<f16>(x1b);
        xs[((tid + 512u) / 8u) * ROW + (tid % 8u) * 2u] = vec4<f16>(x2a);
        xs[((tid + 512u) / 8u) * ROW + (tid % 8u) * 2u + 1u] = vec4<f16>(x2b);
        xs[((tid + 768u) / 8u) * ROW + (tid % 8u) * 2u] = vec4<f16>(x3a);
        xs[((tid + 768u) / 8u) * ROW + (tid % 8u) * 2u + 1u] = vec4<f16>(x3b);
        workgroupBarrier();
        {
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 0u) * ROW + 0u], ROW);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 16u) * ROW + 0u], ROW);
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 0u) * ROW + 0u], ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c10 = coopMultiplyAdd(a1, b0, c10);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 16u) * ROW + 0u], ROW);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c11 = coopMultiplyAdd(a1, b1, c11);
        }
        {
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 0u) * ROW + 4u], ROW);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 16u) * ROW + 4u], ROW);
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 0u) * ROW + 4u], ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c10 = coopMultiplyAdd(a1, b0, c10);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 16u) * ROW + 4u], ROW);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c11 = coopMultiplyAdd(a1, b1, c11);
        }
        {
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 0u) * ROW + 8u], ROW);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 16u) * ROW + 8u], ROW);
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 0u) * ROW + 8u], ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c10 = coopMultiplyAdd(a1, b0, c10);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 16u) * ROW + 8u], ROW);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c11 = coopMultiplyAdd(a1, b1, c11);
        }
        {
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 0u) * ROW + 12u], ROW);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 16u) * ROW + 12u], ROW);
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 0u) * ROW + 12u], ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c10 = coopMultiplyAdd(a1, b0, c10);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 16u) * ROW + 12u], ROW);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c11 = coopMultiplyAdd(a1, b1, c11);
        }
    }
    if (whole) {
        coopStore(c00, &y[y0 + 0u * LDY + 0u], LDY);
        coopStore(c01, &y[y0 + 16u * LDY + 0u], LDY);
        coopStore(c10, &y[y0 + 0u * LDY + 16u], LDY);
        coopStore(c11, &y[y0 + 16u * LDY + 16u], LDY);
        return;
    }
    // Elsewhere sums leave through workgroup memory, 16 x 16 of some subgroups at a time: only there have they an index.
    // The others store too, to a place that nobody reads, since all must take part.
    workgroupBarrier();
    coopStore(c00, &cs[subgroup * 256u], 16u);
    workgroupBarrier();
    if (subgroup / 8u == 0u) {
        write((subgroup - 0u) * 256u, lane, row0 + sub_row + 0u, col0 + sub_col + 0u, n_col);
    }
    workgroupBarrier();
    coopStore(c01, &cs[subgroup * 256u], 16u);
    workgroupBarrier();
    if (subgroup / 8u == 0u) {
        write((subgroup - 0u) * 256u, lane, row0 + sub_row + 0u, col0 + sub_col + 16u, n_col);
    }
    workgroupBarrier();
    coopStore(c10, &cs[subgroup * 256u], 16u);
    workgroupBarrier();
    if (subgroup / 8u == 0u) {
        write((subgroup - 0u) * 256u, lane, row0 + sub_row + 16u, col0 + sub_col + 0u, n_col);
    }
    workgroupBarrier();
    coopStore(c11, &cs[subgroup * 256u], 16u);
    workgroupBarrier();
    if (subgroup / 8u == 0u) {
        write((subgroup - 0u) * 256u, lane, row0 + sub_row + 16u, col0 + sub_col + 16u, n_col);
    }
}
