// mul_mat_vec: a=q8_0 b=none epi=glu act=i16 set=base rows=4
override WG: u32 = 64u;
override T: u32 = 32u;
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
    return w_d(b) * vec4<f32>(unpack4xI8(w[b * 2u + (e >> 4u)][(e >> 2u) & 3u]));
}

var<workgroup> red: array<f32, 4u * WG>;
// Of every team: SUBS partial sums of each row, then of the squares of x.
var<workgroup> part: array<f32, PART>;

fn part_sum(row: u32, n_sub: u32) -> f32 {
    var r = part[row * SUBS];
    for (var s = 1u; s < n_sub; s++) {
        r += part[row * SUBS + s];
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
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tid = local_index;
    let team = tid / T;
    let lane = tid % T;

    let group_idx = group.y * groups.x + group.x;
    let part0 = team * (BATCH * 4u + 1u);
    let sub = 0u;
    let n_sub = 1u;
    let writer = lane == 0u;
    // Batches of this team: batch0, batch0 + stride ... below limit; past it a team repeats the last and writes nothing.
    let slot = group_idx * (WG / T) + team;
    var batch0 = slot;
    var stride = SLOTS;
    let live = slot < SLOTS;
    let limit = (M + 1u) / 2u;
    // Each thread finishes one output; what it needs besides the products is asked for before them.
    let batch = batch0 + lane / 2u * stride;
    var mine = live && lane < BATCH * 2u && batch < limit;
    let at = part0 + lane / 2u * 4u + lane % 2u;
    let row = batch * 2u + lane % 2u;
    mine = mine && row < M;
    var ss = 0.0;
    for (var pass_ = 0u; pass_ < PASSES; pass_++) {
        var at0 = 0u;
var r0u0q: vec4<u32>;
var r0u0d: f32;

var r0u1q: vec4<u32>;
var r0u1d: f32;

        var at1 = 0u;
var r1u0q: vec4<u32>;
var r1u0d: f32;

var r1u1q: vec4<u32>;
var r1u1d: f32;

        var at2 = 0u;
var r2u0q: vec4<u32>;
var r2u0d: f32;

var r2u1q: vec4<u32>;
var r2u1d: f32;

        var at3 = 0u;
var r3u0q: vec4<u32>;
var r3u0d: f32;

var r3u1q: vec4<u32>;
var r3u1d: f32;

        let k0 = (pass_ * 2u + 0u) * T + lane;
        let u0 = min(k0, w_units - 1u);
        let k1 = (pass_ * 2u + 1u) * T + lane;
        let u1 = min(k1, w_units - 1u);
        {
            let first = min(batch0, limit - 1u) * 2u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;
            at2 = (min(first + 0u, M - 1u) + M) * w_units;
            at3 = (min(first + 1u, M - 1u) + M) * w_units;

r0u0q = w[at0 + u0];
r0u0d = w_d((at0 + u0) >> 1u);

r0u1q = w[at0 + u1];
r0u1d = w_d((at0 + u1) >> 1u);

r1u0q = w[at1 + u0];
r1u0d = w_d((at1 + u0) >> 1u);

r1u1q = w[at1 + u1];
r1u1d = w_d((at1 + u1) >> 1u);

r2u0q = w[at2 + u0];
r2u0d = w_d((at2 + u0) >> 1u);

r2u1q = w[at2 + u1];
r2u1d = w_d((at2 + u1) >> 1u);

r3u0q = w[at3 + u0];
r3u0d = w_d((at3 + u0) >> 1u);

r3u1q = w[at3 + u1];
r3u1d = w_d((at3 + u1) >> 1u);

        }
        let e0 = (u0 << 4u);
        var v0_0 = select(vec4<f32>(), load_x(e0 + 0u), k0 < w_units);
        var v0_1 = select(vec4<f32>(), load_x(e0 + 4u), k0 < w_units);
        var v0_2 = select(vec4<f32>(), load_x(e0 + 8u), k0 < w_units);
        var v0_3 = select(vec4<f32>(), load_x(e0 + 12u), k0 < w_units);
        let e1 = (u1 << 4u);
        var v1_0 = select(vec4<f32>(), load_x(e1 + 0u), k1 < w_units);
        var v1_1 = select(vec4<f32>(), load_x(e1 + 4u), k1 < w_units);
        var v1_2 = select(vec4<f32>(), load_x(e1 + 8u), k1 < w_units);
        var v1_3 = select(vec4<f32>(), load_x(e1 + 12u), k1 < w_units);
        if (NORM) {
            ss += dot(v0_0, v0_0);
            v0_0 *= aux[(e0 + 0u) / 4u];
            ss += dot(v0_1, v0_1);
            v0_1 *= aux[(e0 + 4u) / 4u];
            ss += dot(v0_2, v0_2);
            v0_2 *= aux[(e0 + 8u) / 4u];
            ss += dot(v0_3, v0_3);
            v0_3 *= aux[(e0 + 12u) / 4u];
            ss += dot(v1_0, v1_0);
            v1_0 *= aux[(e1 + 0u) / 4u];
            ss += dot(v1_1, v1_1);
            v1_1 *= aux[(e1 + 4u) / 4u];
            ss += dot(v1_2, v1_2);
            v1_2 *= aux[(e1 + 8u) / 4u];
            ss += dot(v1_3, v1_3);
            v1_3 *= aux[(e1 + 12u) / 4u];
        }
        var m0_0 = abs(v0_0);
        m0_0 = max(m0_0, abs(v0_1));
        m0_0 = max(m0_0, abs(v0_2));
        m0_0 = max(m0_0, abs(v0_3));
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
            s0_0 = x0_d0 * f32((onesh << 8u) + ones);
        }
        let x0_s0 = s0_0;
        var m1_0 = abs(v1_0);
        m1_0 = max(m1_0, abs(v1_1));
        m1_0 = max(m1_0, abs(v1_2));
        m1_0 = max(m1_0, abs(v1_3));
        let t1_0 = max(max(m1_0.x, m1_0.y), max(m1_0.z, m1_0.w));
        let i1_0 = select(0.0, 32512.0 / t1_0, t1_0 > 0.0);
        let x1_d0 = t1_0 / 32512.0;
        let b1_0 = integers(v1_0 * i1_0);
        let x1_0 = pack8(b1_0);
        let x1_0h = pack8((b1_0 + 128u) >> vec4<u32>(8u));
        let b1_1 = integers(v1_1 * i1_0);
        let x1_1 = pack8(b1_1);
        let x1_1h = pack8((b1_1 + 128u) >> vec4<u32>(8u));
        let b1_2 = integers(v1_2 * i1_0);
        let x1_2 = pack8(b1_2);
        let x1_2h = pack8((b1_2 + 128u) >> vec4<u32>(8u));
        let b1_3 = integers(v1_3 * i1_0);
        let x1_3 = pack8(b1_3);
        let x1_3h = pack8((b1_3 + 128u) >> vec4<u32>(8u));
        var s1_0 = 0.0;
        {
var ones = 0;
var onesh = 0;
ones += dot4I8Packed(0x01010101u, x1_0);
onesh += dot4I8Packed(0x01010101u, x1_0h);
ones += dot4I8Packed(0x01010101u, x1_1);
onesh += dot4I8Packed(0x01010101u, x1_1h);
ones += dot4I8Packed(0x01010101u, x1_2);
onesh += dot4I8Packed(0x01010101u, x1_2h);
ones += dot4I8Packed(0x01010101u, x1_3);
onesh += dot4I8Packed(0x01010101u, x1_3h);
            s1_0 = x1_d0 * f32((onesh << 8u) + ones);
        }
        let x1_s0 = s1_0;
        for (var i = 0u; i < BATCH; i++) {
            var acc0 = 0.0;
            {
var r0u0t = 0;
var r0u0th = 0;
r0u0t += dot4I8Packed(r0u0q.x, x0_0);
r0u0th += dot4I8Packed(r0u0q.x, x0_0h);
r0u0t += dot4I8Packed(r0u0q.y, x0_1);
r0u0th += dot4I8Packed(r0u0q.y, x0_1h);
r0u0t += dot4I8Packed(r0u0q.z, x0_2);
r0u0th += dot4I8Packed(r0u0q.z, x0_2h);
r0u0t += dot4I8Packed(r0u0q.w, x0_3);
r0u0th += dot4I8Packed(r0u0q.w, x0_3h);
let r0u0dot = r0u0d * x0_d0 * f32((r0u0th << 8u) + r0u0t);

                acc0 += r0u0dot;
            }
            {
var r0u1t = 0;
var r0u1th = 0;
r0u1t += dot4I8Packed(r0u1q.x, x1_0);
r0u1th += dot4I8Packed(r0u1q.x, x1_0h);
r0u1t += dot4I8Packed(r0u1q.y, x1_1);
r0u1th += dot4I8Packed(r0u1q.y, x1_1h);
r0u1t += dot4I8Packed(r0u1q.z, x1_2);
r0u1th += dot4I8Packed(r0u1q.z, x1_2h);
r0u1t += dot4I8Packed(r0u1q.w, x1_3);
r0u1th += dot4I8Packed(r0u1q.w, x1_3h);
let r0u1dot = r0u1d * x1_d0 * f32((r0u1th << 8u) + r0u1t);

                acc0 += r0u1dot;
            }
            var acc1 = 0.0;
            {
var r1u0t = 0;
var r1u0th = 0;
r1u0t += dot4I8Packed(r1u0q.x, x0_0);
r1u0th += dot4I8Packed(r1u0q.x, x0_0h);
r1u0t += dot4I8Packed(r1u0q.y, x0_1);
r1u0th += dot4I8Packed(r1u0q.y, x0_1h);
r1u0t += dot4I8Packed(r1u0q.z, x0_2);
r1u0th += dot4I8Packed(r1u0q.z, x0_2h);
r1u0t += dot4I8Packed(r1u0q.w, x0_3);
r1u0th += dot4I8Packed(r1u0q.w, x0_3h);
let r1u0dot = r1u0d * x0_d0 * f32((r1u0th << 8u) + r1u0t);

                acc1 += r1u0dot;
            }
            {
var r1u1t = 0;
var r1u1th = 0;
r1u1t += dot4I8Packed(r1u1q.x, x1_0);
r1u1th += dot4I8Packed(r1u1q.x, x1_0h);
r1u1t += dot4I8Packed(r1u1q.y, x1_1);
r1u1th += dot4I8Packed(r1u1q.y, x1_1h);
r1u1t += dot4I8Packed(r1u1q.z, x1_2);
r1u1th += dot4I8Packed(r1u1q.z, x1_2h);
r1u1t += dot4I8Packed(r1u1q.w, x1_3);
r1u1th += dot4I8Packed(r1u1q.w, x1_3h);
let r1u1dot = r1u1d * x1_d0 * f32((r1u1th << 8u) + r1u1t);

                acc1 += r1u1dot;
            }
            var acc2 = 0.0;
            {
var r2u0t = 0;
var r2u0th = 0;
r2u0t += dot4I8Packed(r2u0q.x, x0_0);
r2u0th += dot4I8Packed(r2u0q.x, x0_0h);
r2u0t += dot4I8Packed(r2u0q.y, x0_1);
r2u0th += dot4I8Packed(r2u0q.y, x0_1h);
r2u0t += dot4I8Packed(r2u0q.z, x0_2);
r2u0th += dot4I8Packed(r2u0q.z, x0_2h);
r2u0t += dot4I8Packed(r2u0q.w, x0_3);
r2u0th += dot4I8Packed(r2u0q.w, x0_3h);
let r2u0dot = r2u0d * x0_d0 * f32((r2u0th << 8u) + r2u0t);

                acc2 += r2u0dot;
            }
            {
var r2u1t = 0;
var r2u1th = 0;
r2u1t += dot4I8Packed(r2u1q.x, x1_0);
r2u1th += dot4I8Packed(r2u1q.x, x1_0h);
r2u1t += dot4I8Packed(r2u1q.y, x1_1);
r2u1th += dot4I8Packed(r2u1q.y, x1_1h);
r2u1t += dot4I8Packed(r2u1q.z, x1_2);
r2u1th += dot4I8Packed(r2u1q.z, x1_2h);
r2u1t += dot4I8Packed(r2u1q.w, x1_3);
r2u1th += dot4I8Packed(r2u1q.w, x1_3h);
let r2u1dot = r2u1d * x1_d0 * f32((r2u1th << 8u) + r2u1t);

                acc2 += r2u1dot;
            }
            var acc3 = 0.0;
            {
var r3u0t = 0;
var r3u0th = 0;
r3u0t += dot4I8Packed(r3u0q.x, x0_0);
r3u0th += dot4I8Packed(r3u0q.x, x0_0h);
r3u0t += dot4I8Packed(r3u0q.y, x0_1);
r3u0th += dot4I8Packed(r3u0q.y, x0_1h);
r3u0t += dot4I8Packed(r3u0q.z, x0_2);
r3u0th += dot4I8Packed(r3u0q.z, x0_2h);
r3u0t += dot4I8Packed(r3u0q.w, x0_3);
r3u0th += dot4I8Packed(r3u0q.w, x0_3h);
let r3u0dot = r3u0d * x0_d0 * f32((r3u0th << 8u) + r3u0t);

                acc3 += r3u0dot;
            }
            {
var r3u1t = 0;
var r3u1th = 0;
r3u1t += dot4I8Packed(r3u1q.x, x1_0);
r3u1th += dot4I8Packed(r3u1q.x, x1_0h);
r3u1t += dot4I8Packed(r3u1q.y, x1_1);
r3u1th += dot4I8Packed(r3u1q.y, x1_1h);
r3u1t += dot4I8Packed(r3u1q.z, x1_2);
r3u1th += dot4I8Packed(r3u1q.z, x1_2h);
r3u1t += dot4I8Packed(r3u1q.w, x1_3);
r3u1th += dot4I8Packed(r3u1q.w, x1_3h);
let r3u1dot = r3u1d * x1_d0 * f32((r3u1th << 8u) + r3u1t);

                acc3 += r3u1dot;
            }
            if (i + 1u < BATCH) {
            let first = min(batch0 + (i + 1u) * stride, limit - 1u) * 2u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;
            at2 = (min(first + 0u, M - 1u) + M) * w_units;
            at3 = (min(first + 1u, M - 1u) + M) * w_units;

r0u0q = w[at0 + u0];
r0u0d = w_d((at0 + u0) >> 1u);

r0u1q = w[at0 + u1];
r0u1d = w_d((at0 + u1) >> 1u);

r1u0q = w[at1 + u0];
r1u0d = w_d((at1 + u0) >> 1u);

r1u1q = w[at1 + u1];
r1u1d = w_d((at1 + u1) >> 1u);

r2u0q = w[at2 + u0];
r2u0d = w_d((at2 + u0) >> 1u);

r2u1q = w[at2 + u1];
r2u1d = w_d((at2 + u1) >> 1u);

r3u0q = w[at3 + u0];
r3u0d = w_d((at3 + u0) >> 1u);

r3u1q = w[at3 + u1];
r3u1d = w_d((at3 + u1) >> 1u);

            }
    workgroupBarrier();
    red[0u * WG + tid] = acc0;
    red[1u * WG + tid] = acc1;
    red[2u * WG + tid] = acc2;
    red[3u * WG + tid] = acc3;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] += red[0u * WG + tid + s];
            red[1u * WG + tid] += red[1u * WG + tid + s];
            red[2u * WG + tid] += red[2u * WG + tid + s];
            red[3u * WG + tid] += red[3u * WG + tid + s];
        }
        workgroupBarrier();
    }
    acc0 = red[0u * WG + team * T];
    acc1 = red[1u * WG + team * T];
    acc2 = red[2u * WG + team * T];
    acc3 = red[3u * WG + team * T];

            if (writer) {
                let at = (part0 + i * 4u) * SUBS + sub;
                if (pass_ == 0u) {
                    part[at + 0u * SUBS] = acc0;
                    part[at + 1u * SUBS] = acc1;
                    part[at + 2u * SUBS] = acc2;
                    part[at + 3u * SUBS] = acc3;
                } else {
                    part[at + 0u * SUBS] += acc0;
                    part[at + 1u * SUBS] += acc1;
                    part[at + 2u * SUBS] += acc2;
                    part[at + 3u * SUBS] += acc3;
                }
            }
        }
    }

    if (NORM) {
    workgroupBarrier();
    red[0u * WG + tid] = ss;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] += red[0u * WG + tid + s];
        }
        workgroupBarrier();
    }
    ss = red[0u * WG + team * T];

        if (writer) {
            part[(part0 + BATCH * 4u) * SUBS + sub] = ss;
        }
    }
    workgroupBarrier();
    var scale = 1.0;
    if (NORM) {
        scale = 1.0 / sqrt(part_sum(part0 + BATCH * 4u, n_sub) / f32(K) + EPS);
    }
    if (!mine) {
        return;
    }
    let r = affine(scale * part_sum(at, n_sub), row);
    let up = affine(scale * part_sum(at + 2u, n_sub), M + row);
    y[Y0 + row] = r / (1.0 + exp(-r)) * up;
}
