// mul_mat_coop: a=q4_K epi=store side=64
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

// Rows of a staged tile in vec4: 64 values and 8 of padding against bank conflicts.
const ROW: u32 = 18u;
var<workgroup> ws: array<vec4<f16>, 64u * ROW>;
var<workgroup> xs: array<vec4<f16>, 64u * ROW>;

var<workgroup> cs: array<f32, 1024>;

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
            y[c * LDY + Y0 + r] = v;
        }
    }
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32, @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32) {
    let n_col = step[0];
    let row0 = group.x * 64u;
    let col0 = group.y * 64u;
    // This subgroup's part of the tile.
    let sub_row = (subgroup & 1u) * 32u;
    let sub_col = (subgroup >> 1u) * 32u;
    var c00 = coop_mat16x16<f32, C>();
    var c01 = coop_mat16x16<f32, C>();
    var c10 = coop_mat16x16<f32, C>();
    var c11 = coop_mat16x16<f32, C>();
    for (var k0 = 0u; k0 < K; k0 += 64u) {
        workgroupBarrier();
        {
            let i = tid + 0u;
            let r = i / 4u;
            let k = k0 + (i % 4u) * 16u;
            let b = min(row0 + r, M - 1u) * BLOCKS + k / 256u;
            let e = k % 256u;
let vc = e >> 6u;
let vs = w_scales(w[w_p1 + b], vc);
let vhi = (e & 32u) != 0u;
let vq = (w[b * 8u + (vc << 1u) + ((e >> 4u) & 1u)] >> vec4<u32>(select(0u, 4u, vhi))) & vec4<u32>(0x0f0f0f0fu);
let vd = select(vs.x, vs.y, vhi);
let vm = select(vs.z, vs.w, vhi);
let v0 = vd * vec4<f32>(unpack4xU8(vq.x)) - vm;
let v1 = vd * vec4<f32>(unpack4xU8(vq.y)) - vm;
let v2 = vd * vec4<f32>(unpack4xU8(vq.z)) - vm;
let v3 = vd * vec4<f32>(unpack4xU8(vq.w)) - vm;

            let at = r * ROW + (i % 4u) * 4u;
            ws[at + 0u] = vec4<f16>(v0);
            ws[at + 1u] = vec4<f16>(v1);
            ws[at + 2u] = vec4<f16>(v2);
            ws[at + 3u] = vec4<f16>(v3);
        }
        {
            let i = tid + 128u;
            let r = i / 4u;
            let k = k0 + (i % 4u) * 16u;
            let b = min(row0 + r, M - 1u) * BLOCKS + k / 256u;
            let e = k % 256u;
let vc = e >> 6u;
let vs = w_scales(w[w_p1 + b], vc);
let vhi = (e & 32u) != 0u;
let vq = (w[b * 8u + (vc << 1u) + ((e >> 4u) & 1u)] >> vec4<u32>(select(0u, 4u, vhi))) & vec4<u32>(0x0f0f0f0fu);
let vd = select(vs.x, vs.y, vhi);
let vm = select(vs.z, vs.w, vhi);
let v0 = vd * vec4<f32>(unpack4xU8(vq.x)) - vm;
let v1 = vd * vec4<f32>(unpack4xU8(vq.y)) - vm;
let v2 = vd * vec4<f32>(unpack4xU8(vq.z)) - vm;
let v3 = vd * vec4<f32>(unpack4xU8(vq.w)) - vm;

            let at = r * ROW + (i % 4u) * 4u;
            ws[at + 0u] = vec4<f16>(v0);
            ws[at + 1u] = vec4<f16>(v1);
            ws[at + 2u] = vec4<f16>(v2);
            ws[at + 3u] = vec4<f16>(v3);
        }
        {
            let i = tid + 0u;
            let c = i / 16u;
            xs[c * ROW + i % 16u] = vec4<f16>(x[(min(col0 + c, n_col - 1u) * LDX + k0) / 4u + i % 16u]);
        }
        {
            let i = tid + 128u;
            let c = i / 16u;
            xs[c * ROW + i % 16u] = vec4<f16>(x[(min(col0 + c, n_col - 1u) * LDX + k0) / 4u + i % 16u]);
        }
        {
            let i = tid + 256u;
            let c = i / 16u;
            xs[c * ROW + i % 16u] = vec4<f16>(x[(min(col0 + c, n_col - 1u) * LDX + k0) / 4u + i % 16u]);
        }
        {
            let i = tid + 384u;
            let c = i / 16u;
            xs[c * ROW + i % 16u] = vec4<f16>(x[(min(col0 + c, n_col - 1u) * LDX + k0) / 4u + i % 16u]);
        }
        {
            let i = tid + 512u;
            let c = i / 16u;
            xs[c * ROW + i % 16u] = vec4<f16>(x[(min(col0 + c, n_col - 1u) * LDX + k0) / 4u + i % 16u]);
        }
        {
            let i = tid + 640u;
            let c = i / 16u;
            xs[c * ROW + i % 16u] = vec4<f16>(x[(min(col0 + c, n_col - 1u) * LDX + k0) / 4u + i % 16u]);
        }
        {
            let i = tid + 768u;
            let c = i / 16u;
            xs[c * ROW + i % 16u] = vec4<f16>(x[(min(col0 + c, n_col - 1u) * LDX + k0) / 4u + i % 16u]);
        }
        {
            let i = tid + 896u;
            let c = i / 16u;
            xs[c * ROW + i % 16u] = vec4<f16>(x[(min(col0 + c, n_col - 1u) * LDX + k0) / 4u + i % 16u]);
        }
        workgroupBarrier();
        {
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 0u) * ROW + 0u], ROW);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 16u) * ROW + 0u], ROW);
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 0u) * ROW + 0u], ROW);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 16u) * ROW + 0u], ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c10 = coopMultiplyAdd(a1, b0, c10);
            c11 = coopMultiplyAdd(a1, b1, c11);
        }
        {
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 0u) * ROW + 4u], ROW);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 16u) * ROW + 4u], ROW);
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 0u) * ROW + 4u], ROW);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 16u) * ROW + 4u], ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c10 = coopMultiplyAdd(a1, b0, c10);
            c11 = coopMultiplyAdd(a1, b1, c11);
        }
        {
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 0u) * ROW + 8u], ROW);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 16u) * ROW + 8u], ROW);
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 0u) * ROW + 8u], ROW);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 16u) * ROW + 8u], ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c10 = coopMultiplyAdd(a1, b0, c10);
            c11 = coopMultiplyAdd(a1, b1, c11);
        }
        {
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 0u) * ROW + 12u], ROW);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&ws[(sub_row + 16u) * ROW + 12u], ROW);
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 0u) * ROW + 12u], ROW);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&xs[(sub_col + 16u) * ROW + 12u], ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c10 = coopMultiplyAdd(a1, b0, c10);
            c11 = coopMultiplyAdd(a1, b1, c11);
        }
    }
    // Sums leave through workgroup memory, one 16 x 16 tile of every subgroup at a time: only there have they an index.
    workgroupBarrier();
    coopStore(c00, &cs[subgroup * 256u], 16u);
    workgroupBarrier();
    write(subgroup * 256u, lane, row0 + sub_row + 0u, col0 + sub_col + 0u, n_col);
    workgroupBarrier();
    coopStore(c01, &cs[subgroup * 256u], 16u);
    workgroupBarrier();
    write(subgroup * 256u, lane, row0 + sub_row + 0u, col0 + sub_col + 16u, n_col);
    workgroupBarrier();
    coopStore(c10, &cs[subgroup * 256u], 16u);
    workgroupBarrier();
    write(subgroup * 256u, lane, row0 + sub_row + 16u, col0 + sub_col + 0u, n_col);
    workgroupBarrier();
    coopStore(c11, &cs[subgroup * 256u], 16u);
    workgroupBarrier();
    write(subgroup * 256u, lane, row0 + sub_row + 16u, col0 + sub_col + 16u, n_col);
}
