// mul_mat_vec: a=q4_K b=none epi=glu act=i16 set=sg rows=4
override WG: u32 = 64u;
override T: u32 = 32u;
// Teams are whole subgroups; else they are a power of two that divides every subgroup.
override WHOLE: bool = true;
// Partial sums that a row can have.
override SUBS: u32 = 1u;
override PART: u32 = 64u;
override PASSES: u32 = 1u;
override STAGED: bool = false;
// Runs of 16 values that a pass stages.
override RUNS: u32 = 2u;
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
override w_table: u32 = 0u;

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

// Of every team: SUBS partial sums of each row.
var<workgroup> part: array<f32, PART>;
// Sums of the squares of x by thread, then by sixteenths of the workgroup.
var<workgroup> squares: array<f32, WG>;
var<workgroup> squares16: array<f32, 16>;
// Of the values that this thread has seen.
var<private> ss: f32;
// x by runs: bytes, (i16) high bytes, and (scale, scale * sum).
var<workgroup> xs: array<vec4<u32>, RUNS>;
var<workgroup> xhs: array<vec4<u32>, RUNS>;var<workgroup> xds: array<vec2<f32>, RUNS>;

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
    if (RAGGED) {
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
// Four values of x, zeros past the end, normalised but for the root mean square. Without branches, so that the
// loads of several calls are under way at once.
fn quad_of(past: u32) -> vec4<f32> {
    let k = select(0u, past, past < K);
    var v = select(vec4<f32>(), load_x(k), past < K);
    if (NORM) {
        ss += dot(v, v);
        v *= aux[k / 4u];
    }
    return v;
}
// Rounded integers: adding 1.5 * 2^23 leaves them in the low bits, in two's complement.
fn integers(v: vec4<f32>) -> vec4<u32> {
    return bitcast<vec4<u32>>(v + 12582912.0);
}
fn pack8(v: vec4<u32>) -> u32 {
    let b = v & vec4<u32>(0xffu);
    return b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);
}
struct Run {
    low: vec4<u32>,
    high: vec4<u32>,
    // Scale, and scale * sum: it takes offsets and minima off the products once for all rows.
    ds: vec2<f32>,
}
fn run_of(k: u32) -> Run {
    let v0 = quad_of(k + 0u);
    let v1 = quad_of(k + 4u);
    let v2 = quad_of(k + 8u);
    let v3 = quad_of(k + 12u);
    let m = max(max(abs(v0), abs(v1)), max(abs(v2), abs(v3)));
    let top = max(max(m.x, m.y), max(m.z, m.w));
    let inverse = select(0.0, 32512.0 / top, top > 0.0);
    let b0 = integers(v0 * inverse);
    let x0 = pack8(b0);
    let x0h = pack8((b0 + 128u) >> vec4<u32>(8u));
    let b1 = integers(v1 * inverse);
    let x1 = pack8(b1);
    let x1h = pack8((b1 + 128u) >> vec4<u32>(8u));
    let b2 = integers(v2 * inverse);
    let x2 = pack8(b2);
    let x2h = pack8((b2 + 128u) >> vec4<u32>(8u));
    let b3 = integers(v3 * inverse);
    let x3 = pack8(b3);
    let x3h = pack8((b3 + 128u) >> vec4<u32>(8u));
var ones = 0;
var onesh = 0;
ones += dot4I8Packed(0x01010101u, x0);
onesh += dot4I8Packed(0x01010101u, x0h);
ones += dot4I8Packed(0x01010101u, x1);
onesh += dot4I8Packed(0x01010101u, x1h);
ones += dot4I8Packed(0x01010101u, x2);
onesh += dot4I8Packed(0x01010101u, x2h);
ones += dot4I8Packed(0x01010101u, x3);
onesh += dot4I8Packed(0x01010101u, x3h);
    let d = top / 32512.0;
    return Run(vec4<u32>(x0, x1, x2, x3), vec4<u32>(x0h, x1h, x2h, x3h), vec2<f32>(d, d * f32((onesh << 8u) + ones)));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup_id: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
    let tid = subgroup_id * subgroup_size + subgroup_lane;
    let team = tid / T;
    let lane = tid % T;

    let group_idx = group.y * groups.x + group.x;
    let part0 = team * BATCH * 4u;
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
    let at = part0 + lane / 2u * 4u + lane % 2u;
    let row = batch * 2u + lane % 2u;
    mine = mine && row < M;
    ss = 0.0;
    for (var pass_ = 0u; pass_ < PASSES; pass_++) {
        var at0 = 0u;
var r0u0q: vec4<u32>;
var r0u0r: vec4<u32>;

        var at1 = 0u;
var r1u0q: vec4<u32>;
var r1u0r: vec4<u32>;

        var at2 = 0u;
var r2u0q: vec4<u32>;
var r2u0r: vec4<u32>;

        var at3 = 0u;
var r3u0q: vec4<u32>;
var r3u0r: vec4<u32>;

        let k0 = (pass_ * 1u + 0u) * T + lane;
        let u0 = min(k0, w_units - 1u);
        {
            let first = min(batch0, limit - 1u) * 2u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;
            at2 = (min(first + 0u, M - 1u) + M) * w_units;
            at3 = (min(first + 1u, M - 1u) + M) * w_units;

r0u0q = w[at0 + u0];
r0u0r = w[w_p1 + ((at0 + u0) >> 3u)];

r1u0q = w[at1 + u0];
r1u0r = w[w_p1 + ((at1 + u0) >> 3u)];

r2u0q = w[at2 + u0];
r2u0r = w[w_p1 + ((at2 + u0) >> 3u)];

r3u0q = w[at3 + u0];
r3u0r = w[w_p1 + ((at3 + u0) >> 3u)];

        }
        if (STAGED) {
            workgroupBarrier();
            for (var g = tid; g < RUNS; g += WG) {
                let run = run_of((pass_ * RUNS + g) * 16u);
                xs[g] = run.low;
                xhs[g] = run.high;
                xds[g] = run.ds;
            }
            workgroupBarrier();
        }
        // This thread's values of x; zeros past the end of a row.
        let e0 = select(K, ((u0 >> 3u) * 256u + ((u0 & 6u) << 5u) + ((u0 & 1u) << 4u)), k0 < w_units);
        var run0_0: Run;
        if (!STAGED) {
            run0_0 = run_of(e0 + 0u);
        } else if (k0 < w_units) {
            let at = (e0 + 0u) / 16u - pass_ * RUNS;
            run0_0 = Run(xs[at], xhs[at], xds[at]);
        }
        let x0_d0 = run0_0.ds.x;
        let x0_s0 = run0_0.ds.y;
        let x0_0 = run0_0.low.x;
        let x0_0h = run0_0.high.x;
        let x0_1 = run0_0.low.y;
        let x0_1h = run0_0.high.y;
        let x0_2 = run0_0.low.z;
        let x0_2h = run0_0.high.z;
        let x0_3 = run0_0.low.w;
        let x0_3h = run0_0.high.w;
        var run0_1: Run;
        if (!STAGED) {
            run0_1 = run_of(e0 + 32u);
        } else if (k0 < w_units) {
            let at = (e0 + 32u) / 16u - pass_ * RUNS;
            run0_1 = Run(xs[at], xhs[at], xds[at]);
        }
        let x0_d1 = run0_1.ds.x;
        let x0_s1 = run0_1.ds.y;
        let x0_4 = run0_1.low.x;
        let x0_4h = run0_1.high.x;
        let x0_5 = run0_1.low.y;
        let x0_5h = run0_1.high.y;
        let x0_6 = run0_1.low.z;
        let x0_6h = run0_1.high.z;
        let x0_7 = run0_1.low.w;
        let x0_7h = run0_1.high.w;
        for (var i = 0u; i < BATCH; i++) {
            var acc0 = 0.0;
            {
let r0u0s = w_scales(r0u0r, (u0 >> 1u) & 3u);
var r0u0l = 0;
var r0u0lh = 0;
var r0u0h = 0;
var r0u0hh = 0;
r0u0l += dot4I8Packed(r0u0q.x & 0x0f0f0f0fu, x0_0);
r0u0lh += dot4I8Packed(r0u0q.x & 0x0f0f0f0fu, x0_0h);
r0u0h += dot4I8Packed((r0u0q.x >> 4u) & 0x0f0f0f0fu, x0_4);
r0u0hh += dot4I8Packed((r0u0q.x >> 4u) & 0x0f0f0f0fu, x0_4h);
r0u0l += dot4I8Packed(r0u0q.y & 0x0f0f0f0fu, x0_1);
r0u0lh += dot4I8Packed(r0u0q.y & 0x0f0f0f0fu, x0_1h);
r0u0h += dot4I8Packed((r0u0q.y >> 4u) & 0x0f0f0f0fu, x0_5);
r0u0hh += dot4I8Packed((r0u0q.y >> 4u) & 0x0f0f0f0fu, x0_5h);
r0u0l += dot4I8Packed(r0u0q.z & 0x0f0f0f0fu, x0_2);
r0u0lh += dot4I8Packed(r0u0q.z & 0x0f0f0f0fu, x0_2h);
r0u0h += dot4I8Packed((r0u0q.z >> 4u) & 0x0f0f0f0fu, x0_6);
r0u0hh += dot4I8Packed((r0u0q.z >> 4u) & 0x0f0f0f0fu, x0_6h);
r0u0l += dot4I8Packed(r0u0q.w & 0x0f0f0f0fu, x0_3);
r0u0lh += dot4I8Packed(r0u0q.w & 0x0f0f0f0fu, x0_3h);
r0u0h += dot4I8Packed((r0u0q.w >> 4u) & 0x0f0f0f0fu, x0_7);
r0u0hh += dot4I8Packed((r0u0q.w >> 4u) & 0x0f0f0f0fu, x0_7h);
let r0u0dot = r0u0s.x * x0_d0 * f32((r0u0lh << 8u) + r0u0l) - r0u0s.z * x0_s0
    + r0u0s.y * x0_d1 * f32((r0u0hh << 8u) + r0u0h) - r0u0s.w * x0_s1;

                acc0 += r0u0dot;
            }
            var acc1 = 0.0;
            {
let r1u0s = w_scales(r1u0r, (u0 >> 1u) & 3u);
var r1u0l = 0;
var r1u0lh = 0;
var r1u0h = 0;
var r1u0hh = 0;
r1u0l += dot4I8Packed(r1u0q.x & 0x0f0f0f0fu, x0_0);
r1u0lh += dot4I8Packed(r1u0q.x & 0x0f0f0f0fu, x0_0h);
r1u0h += dot4I8Packed((r1u0q.x >> 4u) & 0x0f0f0f0fu, x0_4);
r1u0hh += dot4I8Packed((r1u0q.x >> 4u) & 0x0f0f0f0fu, x0_4h);
r1u0l += dot4I8Packed(r1u0q.y & 0x0f0f0f0fu, x0_1);
r1u0lh += dot4I8Packed(r1u0q.y & 0x0f0f0f0fu, x0_1h);
r1u0h += dot4I8Packed((r1u0q.y >> 4u) & 0x0f0f0f0fu, x0_5);
r1u0hh += dot4I8Packed((r1u0q.y >> 4u) & 0x0f0f0f0fu, x0_5h);
r1u0l += dot4I8Packed(r1u0q.z & 0x0f0f0f0fu, x0_2);
r1u0lh += dot4I8Packed(r1u0q.z & 0x0f0f0f0fu, x0_2h);
r1u0h += dot4I8Packed((r1u0q.z >> 4u) & 0x0f0f0f0fu, x0_6);
r1u0hh += dot4I8Packed((r1u0q.z >> 4u) & 0x0f0f0f0fu, x0_6h);
r1u0l += dot4I8Packed(r1u0q.w & 0x0f0f0f0fu, x0_3);
r1u0lh += dot4I8Packed(r1u0q.w & 0x0f0f0f0fu, x0_3h);
r1u0h += dot4I8Packed((r1u0q.w >> 4u) & 0x0f0f0f0fu, x0_7);
r1u0hh += dot4I8Packed((r1u0q.w >> 4u) & 0x0f0f0f0fu, x0_7h);
let r1u0dot = r1u0s.x * x0_d0 * f32((r1u0lh << 8u) + r1u0l) - r1u0s.z * x0_s0
    + r1u0s.y * x0_d1 * f32((r1u0hh << 8u) + r1u0h) - r1u0s.w * x0_s1;

                acc1 += r1u0dot;
            }
            var acc2 = 0.0;
            {
let r2u0s = w_scales(r2u0r, (u0 >> 1u) & 3u);
var r2u0l = 0;
var r2u0lh = 0;
var r2u0h = 0;
var r2u0hh = 0;
r2u0l += dot4I8Packed(r2u0q.x & 0x0f0f0f0fu, x0_0);
r2u0lh += dot4I8Packed(r2u0q.x & 0x0f0f0f0fu, x0_0h);
r2u0h += dot4I8Packed((r2u0q.x >> 4u) & 0x0f0f0f0fu, x0_4);
r2u0hh += dot4I8Packed((r2u0q.x >> 4u) & 0x0f0f0f0fu, x0_4h);
r2u0l += dot4I8Packed(r2u0q.y & 0x0f0f0f0fu, x0_1);
r2u0lh += dot4I8Packed(r2u0q.y & 0x0f0f0f0fu, x0_1h);
r2u0h += dot4I8Packed((r2u0q.y >> 4u) & 0x0f0f0f0fu, x0_5);
r2u0hh += dot4I8Packed((r2u0q.y >> 4u) & 0x0f0f0f0fu, x0_5h);
r2u0l += dot4I8Packed(r2u0q.z & 0x0f0f0f0fu, x0_2);
r2u0lh += dot4I8Packed(r2u0q.z & 0x0f0f0f0fu, x0_2h);
r2u0h += dot4I8Packed((r2u0q.z >> 4u) & 0x0f0f0f0fu, x0_6);
r2u0hh += dot4I8Packed((r2u0q.z >> 4u) & 0x0f0f0f0fu, x0_6h);
r2u0l += dot4I8Packed(r2u0q.w & 0x0f0f0f0fu, x0_3);
r2u0lh += dot4I8Packed(r2u0q.w & 0x0f0f0f0fu, x0_3h);
r2u0h += dot4I8Packed((r2u0q.w >> 4u) & 0x0f0f0f0fu, x0_7);
r2u0hh += dot4I8Packed((r2u0q.w >> 4u) & 0x0f0f0f0fu, x0_7h);
let r2u0dot = r2u0s.x * x0_d0 * f32((r2u0lh << 8u) + r2u0l) - r2u0s.z * x0_s0
    + r2u0s.y * x0_d1 * f32((r2u0hh << 8u) + r2u0h) - r2u0s.w * x0_s1;

                acc2 += r2u0dot;
            }
            var acc3 = 0.0;
            {
let r3u0s = w_scales(r3u0r, (u0 >> 1u) & 3u);
var r3u0l = 0;
var r3u0lh = 0;
var r3u0h = 0;
var r3u0hh = 0;
r3u0l += dot4I8Packed(r3u0q.x & 0x0f0f0f0fu, x0_0);
r3u0lh += dot4I8Packed(r3u0q.x & 0x0f0f0f0fu, x0_0h);
r3u0h += dot4I8Packed((r3u0q.x >> 4u) & 0x0f0f0f0fu, x0_4);
r3u0hh += dot4I8Packed((r3u0q.x >> 4u) & 0x0f0f0f0fu, x0_4h);
r3u0l += dot4I8Packed(r3u0q.y & 0x0f0f0f0fu, x0_1);
r3u0lh += dot4I8Packed(r3u0q.y & 0x0f0f0f0fu, x0_1h);
r3u0h += dot4I8Packed((r3u0q.y >> 4u) & 0x0f0f0f0fu, x0_5);
r3u0hh += dot4I8Packed((r3u0q.y >> 4u) & 0x0f0f0f0fu, x0_5h);
r3u0l += dot4I8Packed(r3u0q.z & 0x0f0f0f0fu, x0_2);
r3u0lh += dot4I8Packed(r3u0q.z & 0x0f0f0f0fu, x0_2h);
r3u0h += dot4I8Packed((r3u0q.z >> 4u) & 0x0f0f0f0fu, x0_6);
r3u0hh += dot4I8Packed((r3u0q.z >> 4u) & 0x0f0f0f0fu, x0_6h);
r3u0l += dot4I8Packed(r3u0q.w & 0x0f0f0f0fu, x0_3);
r3u0lh += dot4I8Packed(r3u0q.w & 0x0f0f0f0fu, x0_3h);
r3u0h += dot4I8Packed((r3u0q.w >> 4u) & 0x0f0f0f0fu, x0_7);
r3u0hh += dot4I8Packed((r3u0q.w >> 4u) & 0x0f0f0f0fu, x0_7h);
let r3u0dot = r3u0s.x * x0_d0 * f32((r3u0lh << 8u) + r3u0l) - r3u0s.z * x0_s0
    + r3u0s.y * x0_d1 * f32((r3u0hh << 8u) + r3u0h) - r3u0s.w * x0_s1;

                acc3 += r3u0dot;
            }
            if (i + 1u < BATCH) {
            let first = min(batch0 + (i + 1u) * stride, limit - 1u) * 2u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;
            at2 = (min(first + 0u, M - 1u) + M) * w_units;
            at3 = (min(first + 1u, M - 1u) + M) * w_units;

r0u0q = w[at0 + u0];
r0u0r = w[w_p1 + ((at0 + u0) >> 3u)];

r1u0q = w[at1 + u0];
r1u0r = w[w_p1 + ((at1 + u0) >> 3u)];

r2u0q = w[at2 + u0];
r2u0r = w[w_p1 + ((at2 + u0) >> 3u)];

r3u0q = w[at3 + u0];
r3u0r = w[w_p1 + ((at3 + u0) >> 3u)];

            }
            acc0 = team_sum(acc0);
            acc1 = team_sum(acc1);
            acc2 = team_sum(acc2);
            acc3 = team_sum(acc3);
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
        squares[tid] = ss;
        workgroupBarrier();
        if (tid < 16u) {
            var sum = 0.0;
            for (var i = tid; i < WG; i += 16u) {
                sum += squares[i];
            }
            squares16[tid] = sum;
        }
    }
    workgroupBarrier();
    var scale = 1.0;
    if (NORM) {
        var sum = 0.0;
        for (var i = 0u; i < 16u; i++) {
            sum += squares16[i];
        }
        // Every team has seen all of x, unless the workgroup did it for them.
        let copies = select(WG / T, 1u, STAGED);
        scale = 1.0 / sqrt(sum / f32(K * copies) + EPS);
    }
    if (!mine) {
        return;
    }
    let r = affine(scale * part_sum(at, n_sub), row);
    let up = affine(scale * part_sum(at + 2u, n_sub), M + row);
    y[Y0 + row] = r / (1.0 + exp(-r)) * up;
}
