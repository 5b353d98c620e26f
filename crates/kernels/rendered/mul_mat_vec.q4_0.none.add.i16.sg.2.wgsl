// mul_mat_vec: a=q4_0 b=none epi=add act=i16 set=sg rows=2
override WG: u32 = 64u;
override T: u32 = 32u;
// Teams are whole subgroups; else they are a power of two that divides every subgroup.
override WHOLE: bool = true;
// Partial sums that a row can have.
override SUBS: u32 = 1u;
override PART: u32 = 64u;
override PASSES: u32 = 1u;
override BATCH: u32 = 1u;
override SLOTS: u32 = 1u;
override K: u32 = 256u;
override M: u32 = 1u;
override Y0: u32 = 0u;
override NORM: bool = false;
override EPS: f32 = 0.00001;
override AFFINE: bool = false;
override AFF: u32 = 0u;
override RAGGED: bool = false;
override w_units: u32 = 1u;
override w_p1: u32 = 0u;
override w_p2: u32 = 0u;
override w_p3: u32 = 0u;

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> aux: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
fn w_d(b: u32) -> f32 {
    return unpack2x16float(w[w_p1 + (b >> 3u)][(b >> 1u) & 3u])[b & 1u];
}
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let q = (w[b][(e >> 2u) & 3u] >> ((e >> 4u) * 4u)) & 0x0f0f0f0fu;
    return w_d(b) * (vec4<f32>(unpack4xU8(q)) - 8.0);
}

// Of every team: SUBS partial sums of each row, then of the squares of x.
var<workgroup> part: array<f32, PART>;

fn part_sum(row: u32, n_sub: u32) -> f32 {
    var r = part[row * SUBS];
    for (var s = 1u; s < n_sub; s++) {
        r += part[row * SUBS + s];
    }
    return r;
}
// The sum over a team, or over this subgroup's part of it.
fn team_sum(v: f32) -> f32 {
    if (WHOLE) {
        return subgroupAdd(v);
    }
    var r = v;
    for (var s = T / 2u; s > 0u; s /= 2u) {
        r += subgroupShuffleXor(r, s);
    }
    return r;
}
fn load_x(i: u32) -> vec4<f32> {
    var v = x[i / 4u];
    if (RAGGED && i + 4u > K) {
        v = select(v, vec4<f32>(), vec4<u32>(i, i + 1u, i + 2u, i + 3u) >= vec4<u32>(K));
    }
    return v;
}
fn affine(r: f32, row: u32) -> f32 {
    if (!AFFINE) {
        return r;
    }
    let at = AFF + 2u * row;
    return r * aux[at / 4u][at % 4u] + aux[(at + 1u) / 4u][(at + 1u) % 4u];
}
// Rounded integers: adding 1.5 * 2^23 leaves them in the low bits, in two's complement.
fn integers(v: vec4<f32>) -> vec4<u32> {
    return bitcast<vec4<u32>>(v + 12582912.0);
}
fn pack8(v: vec4<u32>) -> u32 {
    let b = v & vec4<u32>(0xffu);
    return b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup_id: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
    let tid = subgroup_id * subgroup_size + subgroup_lane;
    let team = tid / T;
    let lane = tid % T;

    let group_idx = group.y * groups.x + group.x;
    let part0 = team * (BATCH * 2u + 1u);
    let width = min(T, subgroup_size);
    let sub = lane / width;
    let n_sub = T / width;
    let writer = lane % width == 0u;
    // Batches of this team: batch0, batch0 + stride ... below limit; past it a team repeats the last and writes nothing.
    let slot = group_idx * (WG / T) + team;
    var batch0 = slot;
    var stride = SLOTS;
    let live = slot < SLOTS;
    let limit = (M + 1u) / 2u;
    // Each thread finishes one output; what it needs besides the products is asked for before them.
    let batch = batch0 + lane / 2u * stride;
    var mine = live && lane < BATCH * 2u && batch < limit;
    let at = part0 + lane / 2u * 2u + lane % 2u;
    let row = batch * 2u + lane % 2u;
    mine = mine && row < M;
    var before = 0.0;
    if (mine) {
        before = y[Y0 + row];
    }
    var ss = 0.0;
    for (var pass_ = 0u; pass_ < PASSES; pass_++) {
        var at0 = 0u;
var r0u0q: vec4<u32>;
var r0u0d: f32;

        var at1 = 0u;
var r1u0q: vec4<u32>;
var r1u0d: f32;

        let k0 = (pass_ * 1u + 0u) * T + lane;
        let u0 = min(k0, w_units - 1u);
        {
            let first = min(batch0, limit - 1u) * 2u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;

r0u0q = w[at0 + u0];
r0u0d = w_d(at0 + u0);

r1u0q = w[at1 + u0];
r1u0d = w_d(at1 + u0);

        }
        let e0 = (u0 << 5u);
        var v0_0 = select(vec4<f32>(), load_x(e0 + 0u), k0 < w_units);
        var v0_1 = select(vec4<f32>(), load_x(e0 + 4u), k0 < w_units);
        var v0_2 = select(vec4<f32>(), load_x(e0 + 8u), k0 < w_units);
        var v0_3 = select(vec4<f32>(), load_x(e0 + 12u), k0 < w_units);
        var v0_4 = select(vec4<f32>(), load_x(e0 + 16u), k0 < w_units);
        var v0_5 = select(vec4<f32>(), load_x(e0 + 20u), k0 < w_units);
        var v0_6 = select(vec4<f32>(), load_x(e0 + 24u), k0 < w_units);
        var v0_7 = select(vec4<f32>(), load_x(e0 + 28u), k0 < w_units);
        if (NORM) {
            ss += dot(v0_0, v0_0);
            v0_0 *= aux[(e0 + 0u) / 4u];
            ss += dot(v0_1, v0_1);
            v0_1 *= aux[(e0 + 4u) / 4u];
            ss += dot(v0_2, v0_2);
            v0_2 *= aux[(e0 + 8u) / 4u];
            ss += dot(v0_3, v0_3);
            v0_3 *= aux[(e0 + 12u) / 4u];
            ss += dot(v0_4, v0_4);
            v0_4 *= aux[(e0 + 16u) / 4u];
            ss += dot(v0_5, v0_5);
            v0_5 *= aux[(e0 + 20u) / 4u];
            ss += dot(v0_6, v0_6);
            v0_6 *= aux[(e0 + 24u) / 4u];
            ss += dot(v0_7, v0_7);
            v0_7 *= aux[(e0 + 28u) / 4u];
        }
        var m0_0 = abs(v0_0);
        m0_0 = max(m0_0, abs(v0_1));
        m0_0 = max(m0_0, abs(v0_2));
        m0_0 = max(m0_0, abs(v0_3));
        m0_0 = max(m0_0, abs(v0_4));
        m0_0 = max(m0_0, abs(v0_5));
        m0_0 = max(m0_0, abs(v0_6));
        m0_0 = max(m0_0, abs(v0_7));
        let t0_0 = max(max(m0_0.x, m0_0.y), max(m0_0.z, m0_0.w));
        let i0_0 = select(0.0, 32512.0 / t0_0, t0_0 > 0.0);
        let x0_d0 = t0_0 / 32512.0;
        let b0_0 = integers(v0_0 * i0_0);
        let x0_0 = pack8(b0_0);
        let x0_0h = pack8((b0_0 + 128u) >> vec4<u32>(8u));
        let b0_1 = integers(v0_1 * i0_0);
        let x0_1 = pack8(b0_1);
        let x0_1h = pack8((b0_1 + 128u) >> vec4<u32>(8u));
        let b0_2 = integers(v0_2 * i0_0);
        let x0_2 = pack8(b0_2);
        let x0_2h = pack8((b0_2 + 128u) >> vec4<u32>(8u));
        let b0_3 = integers(v0_3 * i0_0);
        let x0_3 = pack8(b0_3);
        let x0_3h = pack8((b0_3 + 128u) >> vec4<u32>(8u));
        let b0_4 = integers(v0_4 * i0_0);
        let x0_4 = pack8(b0_4);
        let x0_4h = pack8((b0_4 + 128u) >> vec4<u32>(8u));
        let b0_5 = integers(v0_5 * i0_0);
        let x0_5 = pack8(b0_5);
        let x0_5h = pack8((b0_5 + 128u) >> vec4<u32>(8u));
        let b0_6 = integers(v0_6 * i0_0);
        let x0_6 = pack8(b0_6);
        let x0_6h = pack8((b0_6 + 128u) >> vec4<u32>(8u));
        let b0_7 = integers(v0_7 * i0_0);
        let x0_7 = pack8(b0_7);
        let x0_7h = pack8((b0_7 + 128u) >> vec4<u32>(8u));
        var s0_0 = 0.0;
        {
var ones = 0;
var onesh = 0;
ones += dot4I8Packed(0x01010101u, x0_0);
onesh += dot4I8Packed(0x01010101u, x0_0h);
ones += dot4I8Packed(0x01010101u, x0_1);
onesh += dot4I8Packed(0x01010101u, x0_1h);
ones += dot4I8Packed(0x01010101u, x0_2);
onesh += dot4I8Packed(0x01010101u, x0_2h);
ones += dot4I8Packed(0x01010101u, x0_3);
onesh += dot4I8Packed(0x01010101u, x0_3h);
ones += dot4I8Packed(0x01010101u, x0_4);
onesh += dot4I8Packed(0x01010101u, x0_4h);
ones += dot4I8Packed(0x01010101u, x0_5);
onesh += dot4I8Packed(0x01010101u, x0_5h);
ones += dot4I8Packed(0x01010101u, x0_6);
onesh += dot4I8Packed(0x01010101u, x0_6h);
ones += dot4I8Packed(0x01010101u, x0_7);
onesh += dot4I8Packed(0x01010101u, x0_7h);
            s0_0 = x0_d0 * f32((onesh << 8u) + ones);
        }
        let x0_s0 = s0_0;
        for (var i = 0u; i < BATCH; i++) {
            var acc0 = 0.0;
            {
var r0u0t = 0;
var r0u0th = 0;
r0u0t += dot4I8Packed(r0u0q.x & 0x0f0f0f0fu, x0_0);
r0u0th += dot4I8Packed(r0u0q.x & 0x0f0f0f0fu, x0_0h);
r0u0t += dot4I8Packed((r0u0q.x >> 4u) & 0x0f0f0f0fu, x0_4);
r0u0th += dot4I8Packed((r0u0q.x >> 4u) & 0x0f0f0f0fu, x0_4h);
r0u0t += dot4I8Packed(r0u0q.y & 0x0f0f0f0fu, x0_1);
r0u0th += dot4I8Packed(r0u0q.y & 0x0f0f0f0fu, x0_1h);
r0u0t += dot4I8Packed((r0u0q.y >> 4u) & 0x0f0f0f0fu, x0_5);
r0u0th += dot4I8Packed((r0u0q.y >> 4u) & 0x0f0f0f0fu, x0_5h);
r0u0t += dot4I8Packed(r0u0q.z & 0x0f0f0f0fu, x0_2);
r0u0th += dot4I8Packed(r0u0q.z & 0x0f0f0f0fu, x0_2h);
r0u0t += dot4I8Packed((r0u0q.z >> 4u) & 0x0f0f0f0fu, x0_6);
r0u0th += dot4I8Packed((r0u0q.z >> 4u) & 0x0f0f0f0fu, x0_6h);
r0u0t += dot4I8Packed(r0u0q.w & 0x0f0f0f0fu, x0_3);
r0u0th += dot4I8Packed(r0u0q.w & 0x0f0f0f0fu, x0_3h);
r0u0t += dot4I8Packed((r0u0q.w >> 4u) & 0x0f0f0f0fu, x0_7);
r0u0th += dot4I8Packed((r0u0q.w >> 4u) & 0x0f0f0f0fu, x0_7h);
let r0u0dot = r0u0d * (x0_d0 * f32((r0u0th << 8u) + r0u0t) - 8.0 * x0_s0);

                acc0 += r0u0dot;
            }
            var acc1 = 0.0;
            {
var r1u0t = 0;
var r1u0th = 0;
r1u0t += dot4I8Packed(r1u0q.x & 0x0f0f0f0fu, x0_0);
r1u0th += dot4I8Packed(r1u0q.x & 0x0f0f0f0fu, x0_0h);
r1u0t += dot4I8Packed((r1u0q.x >> 4u) & 0x0f0f0f0fu, x0_4);
r1u0th += dot4I8Packed((r1u0q.x >> 4u) & 0x0f0f0f0fu, x0_4h);
r1u0t += dot4I8Packed(r1u0q.y & 0x0f0f0f0fu, x0_1);
r1u0th += dot4I8Packed(r1u0q.y & 0x0f0f0f0fu, x0_1h);
r1u0t += dot4I8Packed((r1u0q.y >> 4u) & 0x0f0f0f0fu, x0_5);
r1u0th += dot4I8Packed((r1u0q.y >> 4u) & 0x0f0f0f0fu, x0_5h);
r1u0t += dot4I8Packed(r1u0q.z & 0x0f0f0f0fu, x0_2);
r1u0th += dot4I8Packed(r1u0q.z & 0x0f0f0f0fu, x0_2h);
r1u0t += dot4I8Packed((r1u0q.z >> 4u) & 0x0f0f0f0fu, x0_6);
r1u0th += dot4I8Packed((r1u0q.z >> 4u) & 0x0f0f0f0fu, x0_6h);
r1u0t += dot4I8Packed(r1u0q.w & 0x0f0f0f0fu, x0_3);
r1u0th += dot4I8Packed(r1u0q.w & 0x0f0f0f0fu, x0_3h);
r1u0t += dot4I8Packed((r1u0q.w >> 4u) & 0x0f0f0f0fu, x0_7);
r1u0th += dot4I8Packed((r1u0q.w >> 4u) & 0x0f0f0f0fu, x0_7h);
let r1u0dot = r1u0d * (x0_d0 * f32((r1u0th << 8u) + r1u0t) - 8.0 * x0_s0);

                acc1 += r1u0dot;
            }
            if (i + 1u < BATCH) {
            let first = min(batch0 + (i + 1u) * stride, limit - 1u) * 2u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;

r0u0q = w[at0 + u0];
r0u0d = w_d(at0 + u0);

r1u0q = w[at1 + u0];
r1u0d = w_d(at1 + u0);

            }
            acc0 = team_sum(acc0);
            acc1 = team_sum(acc1);
            if (writer) {
                let at = (part0 + i * 2u) * SUBS + sub;
                if (pass_ == 0u) {
                    part[at + 0u * SUBS] = acc0;
                    part[at + 1u * SUBS] = acc1;
                } else {
                    part[at + 0u * SUBS] += acc0;
                    part[at + 1u * SUBS] += acc1;
                }
            }
        }
    }

    if (NORM) {
        ss = team_sum(ss);
        if (writer) {
            part[(part0 + BATCH * 2u) * SUBS + sub] = ss;
        }
    }
    workgroupBarrier();
    var scale = 1.0;
    if (NORM) {
        scale = 1.0 / sqrt(part_sum(part0 + BATCH * 2u, n_sub) / f32(K) + EPS);
    }
    if (!mine) {
        return;
    }
    let r = affine(scale * part_sum(at, n_sub), row);
    y[Y0 + row] = before + r;
}
