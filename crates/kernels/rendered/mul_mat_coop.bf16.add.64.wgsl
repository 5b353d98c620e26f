// mul_mat_coop: a=bf16 epi=add side=64
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
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let v = w[b];
    let p = select(v.xy, v.zw, (e & 4u) != 0u);
    return bitcast<vec4<f32>>(vec4<u32>(p.x << 16u, p.x & 0xffff0000u, p.y << 16u, p.y & 0xffff0000u));
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
            y[c * LDY + Y0 + r] += v;
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
            let b = min(row0 + r, M - 1u) * BLOCKS + k / 8u;
            let e = k % 8u;
let vq0 = w[b + (e >> 3u) + 0u];
let v0 = bitcast<vec4<f32>>(vec4<u32>(vq0.x << 16u, vq0.x & 0xffff0000u, vq0.y << 16u, vq0.y & 0xffff0000u));
let v1 = bitcast<vec4<f32>>(vec4<u32>(vq0.z << 16u, vq0.z & 0xffff0000u, vq0.w << 16u, vq0.w & 0xffff0000u));
let vq1 = w[b + (e >> 3u) + 1u];
let v2 = bitcast<vec4<f32>>(vec4<u32>(vq1.x << 16u, vq1.x & 0xffff0000u, vq1.y << 16u, vq1.y & 0xffff0000u));
let v3 = bitcast<vec4<f32>>(vec4<u32>(vq1.z << 16u, vq1.z & 0xffff0000u, vq1.w << 16u, vq1.w & 0xffff0000u));

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
            let b = min(row0 + r, M - 1u) * BLOCKS + k / 8u;
            let e = k % 8u;
let vq0 = w[b + (e >> 3u) + 0u];
let v0 = bitcast<vec4<f32>>(vec4<u32>(vq0.x << 16u, vq0.x & 0xffff0000u, vq0.y << 16u, vq0.y & 0xffff0000u));
let v1 = bitcast<vec4<f32>>(vec4<u32>(vq0.z << 16u, vq0.z & 0xffff0000u, vq0.w << 16u, vq0.w & 0xffff0000u));
let vq1 = w[b + (e >> 3u) + 1u];
let v2 = bitcast<vec4<f32>>(vec4<u32>(vq1.x << 16u, vq1.x & 0xffff0000u, vq1.y << 16u, vq1.y & 0xffff0000u));
let v3 = bitcast<vec4<f32>>(vec4<u32>(vq1.z << 16u, vq1.z & 0xffff0000u, vq1.w << 16u, vq1.w & 0xffff0000u));

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
