// mul_mat_vec: a=q4_K b=none epi=add act=i8 set=sg rows=2
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
    return vec4<f32>(d.x * f32(sc & 0xffu), d.x * f32(sc >> 8u), d.y * f32(mn & 0xffu), d.y * f32(mn >> 8u));
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
var r0u0r: vec4<u32>;

        var at1 = 0u;
var r1u0q: vec4<u32>;
var r1u0r: vec4<u32>;

        let k0 = (pass_ * 1u + 0u) * T + lane;
        let u0 = min(k0, w_units - 1u);
        {
            let first = min(batch0, limit - 1u) * 2u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;

r0u0q = w[at0 + u0];
r0u0r = w[w_p1 + ((at0 + u0) >> 3u)];

r1u0q = w[at1 + u0];
r1u0r = w[w_p1 + ((at1 + u0) >> 3u)];

        }
        let e0 = ((u0 >> 3u) * 256u + ((u0 & 6u) << 5u) + ((u0 & 1u) << 4u));
        var v0_0 = select(vec4<f32>(), load_x(e0 + 0u), k0 < w_units);
        var v0_1 = select(vec4<f32>(), load_x(e0 + 4u), k0 < w_units);
        var v0_2 = select(vec4<f32>(), load_x(e0 + 8u), k0 < w_units);
        var v0_3 = select(vec4<f32>(), load_x(e0 + 12u), k0 < w_units);
        var v0_4 = select(vec4<f32>(), load_x(e0 + 32u), k0 < w_units);
        var v0_5 = select(vec4<f32>(), load_x(e0 + 36u), k0 < w_units);
        var v0_6 = select(vec4<f32>(), load_x(e0 + 40u), k0 < w_units);
        var v0_7 = select(vec4<f32>(), load_x(e0 + 44u), k0 < w_units);
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
            v0_4 *= aux[(e0 + 32u) / 4u];
            ss += dot(v0_5, v0_5);
            v0_5 *= aux[(e0 + 36u) / 4u];
            ss += dot(v0_6, v0_6);
            v0_6 *= aux[(e0 + 40u) / 4u];
            ss += dot(v0_7, v0_7);
            v0_7 *= aux[(e0 + 44u) / 4u];
        }
        var m0_0 = abs(v0_0);
        m0_0 = max(m0_0, abs(v0_1));
        m0_0 = max(m0_0, abs(v0_2));
        m0_0 = max(m0_0, abs(v0_3));
        let t0_0 = max(max(m0_0.x, m0_0.y), max(m0_0.z, m0_0.w));
        let i0_0 = select(0.0, 127.0 / t0_0, t0_0 > 0.0);
        let x0_d0 = t0_0 / 127.0;
        let b0_0 = integers(v0_0 * i0_0);
        let x0_0 = pack8(b0_0);
        let b0_1 = integers(v0_1 * i0_0);
        let x0_1 = pack8(b0_1);
        let b0_2 = integers(v0_2 * i0_0);
        let x0_2 = pack8(b0_2);
        let b0_3 = integers(v0_3 * i0_0);
        let x0_3 = pack8(b0_3);
        var s0_0 = 0.0;
        {
var ones = 0;

ones += dot4I8Packed(0x01010101u, x0_0);

ones += dot4I8Packed(0x01010101u, x0_1);

ones += dot4I8Packed(0x01010101u, x0_2);

ones += dot4I8Packed(0x01010101u, x0_3);

            s0_0 = x0_d0 * f32(ones);
        }
        let x0_s0 = s0_0;
        var m0_1 = abs(v0_4);
        m0_1 = max(m0_1, abs(v0_5));
        m0_1 = max(m0_1, abs(v0_6));
        m0_1 = max(m0_1, abs(v0_7));
        let t0_1 = max(max(m0_1.x, m0_1.y), max(m0_1.z, m0_1.w));
        let i0_1 = select(0.0, 127.0 / t0_1, t0_1 > 0.0);
        let x0_d1 = t0_1 / 127.0;
        let b0_4 = integers(v0_4 * i0_1);
        let x0_4 = pack8(b0_4);
        let b0_5 = integers(v0_5 * i0_1);
        let x0_5 = pack8(b0_5);
        let b0_6 = integers(v0_6 * i0_1);
        let x0_6 = pack8(b0_6);
        let b0_7 = integers(v0_7 * i0_1);
        let x0_7 = pack8(b0_7);
        var s0_1 = 0.0;
        {
var ones = 0;

ones += dot4I8Packed(0x01010101u, x0_4);

ones += dot4I8Packed(0x01010101u, x0_5);

ones += dot4I8Packed(0x01010101u, x0_6);

ones += dot4I8Packed(0x01010101u, x0_7);

            s0_1 = x0_d1 * f32(ones);
        }
        let x0_s1 = s0_1;
        for (var i = 0u; i < BATCH; i++) {
            var acc0 = 0.0;
            {
let r0u0s = w_scales(r0u0r, (u0 >> 1u) & 3u);
var r0u0l = 0;

var r0u0h = 0;

r0u0l += dot4I8Packed(r0u0q.x & 0x0f0f0f0fu, x0_0);

r0u0h += dot4I8Packed((r0u0q.x >> 4u) & 0x0f0f0f0fu, x0_4);

r0u0l += dot4I8Packed(r0u0q.y & 0x0f0f0f0fu, x0_1);

r0u0h += dot4I8Packed((r0u0q.y >> 4u) & 0x0f0f0f0fu, x0_5);

r0u0l += dot4I8Packed(r0u0q.z & 0x0f0f0f0fu, x0_2);

r0u0h += dot4I8Packed((r0u0q.z >> 4u) & 0x0f0f0f0fu, x0_6);

r0u0l += dot4I8Packed(r0u0q.w & 0x0f0f0f0fu, x0_3);

r0u0h += dot4I8Packed((r0u0q.w >> 4u) & 0x0f0f0f0fu, x0_7);

let r0u0dot = r0u0s.x * x0_d0 * f32(r0u0l) - r0u0s.z * x0_s0
    + r0u0s.y * x0_d1 * f32(r0u0h) - r0u0s.w * x0_s1;

                acc0 += r0u0dot;
            }
            var acc1 = 0.0;
            {
let r1u0s = w_scales(r1u0r, (u0 >> 1u) & 3u);
var r1u0l = 0;

var r1u0h = 0;

r1u0l += dot4I8Packed(r1u0q.x & 0x0f0f0f0fu, x0_0);

r1u0h += dot4I8Packed((r1u0q.x >> 4u) & 0x0f0f0f0fu, x0_4);

r1u0l += dot4I8Packed(r1u0q.y & 0x0f0f0f0fu, x0_1);

r1u0h += dot4I8Packed((r1u0q.y >> 4u) & 0x0f0f0f0fu, x0_5);

r1u0l += dot4I8Packed(r1u0q.z & 0x0f0f0f0fu, x0_2);

r1u0h += dot4I8Packed((r1u0q.z >> 4u) & 0x0f0f0f0fu, x0_6);

r1u0l += dot4I8Packed(r1u0q.w & 0x0f0f0f0fu, x0_3);

r1u0h += dot4I8Packed((r1u0q.w >> 4u) & 0x0f0f0f0fu, x0_7);

let r1u0dot = r1u0s.x * x0_d0 * f32(r1u0l) - r1u0s.z * x0_s0
    + r1u0s.y * x0_d1 * f32(r1u0h) - r1u0s.w * x0_s1;

                acc1 += r1u0dot;
            }
            if (i + 1u < BATCH) {
            let first = min(batch0 + (i + 1u) * stride, limit - 1u) * 2u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;

r0u0q = w[at0 + u0];
r0u0r = w[w_p1 + ((at0 + u0) >> 3u)];

r1u0q = w[at1 + u0];
r1u0r = w[w_p1 + ((at1 + u0) >> 3u)];

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
