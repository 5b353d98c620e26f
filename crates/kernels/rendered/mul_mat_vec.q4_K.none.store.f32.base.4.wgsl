// mul_mat_vec: a=q4_K b=none epi=store act=f32 set=base rows=4
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
override w_table: u32 = 0u;

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> aux: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
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

var<workgroup> red: array<f32, 4u * WG>;
// Of every team: SUBS partial sums of each row.
var<workgroup> part: array<f32, PART>;
// Sums of the squares of x by thread, then by sixteenths of the workgroup.
var<workgroup> squares: array<f32, WG>;
var<workgroup> squares16: array<f32, 16>;
// Of the values that this thread has seen.
var<private> ss: f32;

fn part_sum(row: u32, n_sub: u32) -> f32 {
    var r = part[row * SUBS];
    for (var s = 1u; s < n_sub; s++) {
        r += part[row * SUBS + s];
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

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tid = local_index;
    let team = tid / T;
    let lane = tid % T;

    let group_idx = group.y * groups.x + group.x;
    let part0 = team * BATCH * 4u;
    let sub = 0u;
    let n_sub = 1u;
    let writer = lane == 0u;
    // Batches of this team: batch0, batch0 + stride ... below limit; past it a team repeats the last and writes nothing.
    let slot = group_idx * (WG / T) + team;
    var batch0 = slot;
    var stride = SLOTS;
    let live = slot < SLOTS;
    let limit = (M + 3u) / 4u;
    // Each thread finishes one output; what it needs besides the products is asked for before them.
    let batch = batch0 + lane / 4u * stride;
    var mine = live && lane < BATCH * 4u && batch < limit;
    let at = part0 + lane / 4u * 4u + lane % 4u;
    let row = batch * 4u + lane % 4u;
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
            let first = min(batch0, limit - 1u) * 4u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;
            at2 = (min(first + 2u, M - 1u)) * w_units;
            at3 = (min(first + 3u, M - 1u)) * w_units;

r0u0q = w[at0 + u0];
r0u0r = w[w_p1 + ((at0 + u0) >> 3u)];

r1u0q = w[at1 + u0];
r1u0r = w[w_p1 + ((at1 + u0) >> 3u)];

r2u0q = w[at2 + u0];
r2u0r = w[w_p1 + ((at2 + u0) >> 3u)];

r3u0q = w[at3 + u0];
r3u0r = w[w_p1 + ((at3 + u0) >> 3u)];

        }
        // This thread's values of x; zeros past the end of a row.
        let e0 = select(K, ((u0 >> 3u) * 256u + ((u0 & 6u) << 5u) + ((u0 & 1u) << 4u)), k0 < w_units);
        let x0_0 = quad_of(e0 + 0u);
        let x0_1 = quad_of(e0 + 4u);
        let x0_2 = quad_of(e0 + 8u);
        let x0_3 = quad_of(e0 + 12u);
        let x0_4 = quad_of(e0 + 32u);
        let x0_5 = quad_of(e0 + 36u);
        let x0_6 = quad_of(e0 + 40u);
        let x0_7 = quad_of(e0 + 44u);
        // Sums of what shares a scale: they take offsets and minima off the products once for all rows.
        let x0_s0 = dot(x0_0 + x0_1 + x0_2 + x0_3, vec4<f32>(1.0));
        let x0_s1 = dot(x0_4 + x0_5 + x0_6 + x0_7, vec4<f32>(1.0));
        for (var i = 0u; i < BATCH; i++) {
            var acc0 = 0.0;
            {
let r0u0s = w_scales(r0u0r, (u0 >> 1u) & 3u);
var r0u0l = 0.0;
var r0u0h = 0.0;
r0u0l += dot(nibbles1024(r0u0q.x), x0_0);
r0u0h += dot(nibbles1024(r0u0q.x >> 4u), x0_4);
r0u0l += dot(nibbles1024(r0u0q.y), x0_1);
r0u0h += dot(nibbles1024(r0u0q.y >> 4u), x0_5);
r0u0l += dot(nibbles1024(r0u0q.z), x0_2);
r0u0h += dot(nibbles1024(r0u0q.z >> 4u), x0_6);
r0u0l += dot(nibbles1024(r0u0q.w), x0_3);
r0u0h += dot(nibbles1024(r0u0q.w >> 4u), x0_7);
let r0u0dot = r0u0s.x * (r0u0l - 1024.0 * x0_s0) - r0u0s.z * x0_s0
    + r0u0s.y * (r0u0h - 1024.0 * x0_s1) - r0u0s.w * x0_s1;

                acc0 += r0u0dot;
            }
            var acc1 = 0.0;
            {
let r1u0s = w_scales(r1u0r, (u0 >> 1u) & 3u);
var r1u0l = 0.0;
var r1u0h = 0.0;
r1u0l += dot(nibbles1024(r1u0q.x), x0_0);
r1u0h += dot(nibbles1024(r1u0q.x >> 4u), x0_4);
r1u0l += dot(nibbles1024(r1u0q.y), x0_1);
r1u0h += dot(nibbles1024(r1u0q.y >> 4u), x0_5);
r1u0l += dot(nibbles1024(r1u0q.z), x0_2);
r1u0h += dot(nibbles1024(r1u0q.z >> 4u), x0_6);
r1u0l += dot(nibbles1024(r1u0q.w), x0_3);
r1u0h += dot(nibbles1024(r1u0q.w >> 4u), x0_7);
let r1u0dot = r1u0s.x * (r1u0l - 1024.0 * x0_s0) - r1u0s.z * x0_s0
    + r1u0s.y * (r1u0h - 1024.0 * x0_s1) - r1u0s.w * x0_s1;

                acc1 += r1u0dot;
            }
            var acc2 = 0.0;
            {
let r2u0s = w_scales(r2u0r, (u0 >> 1u) & 3u);
var r2u0l = 0.0;
var r2u0h = 0.0;
r2u0l += dot(nibbles1024(r2u0q.x), x0_0);
r2u0h += dot(nibbles1024(r2u0q.x >> 4u), x0_4);
r2u0l += dot(nibbles1024(r2u0q.y), x0_1);
r2u0h += dot(nibbles1024(r2u0q.y >> 4u), x0_5);
r2u0l += dot(nibbles1024(r2u0q.z), x0_2);
r2u0h += dot(nibbles1024(r2u0q.z >> 4u), x0_6);
r2u0l += dot(nibbles1024(r2u0q.w), x0_3);
r2u0h += dot(nibbles1024(r2u0q.w >> 4u), x0_7);
let r2u0dot = r2u0s.x * (r2u0l - 1024.0 * x0_s0) - r2u0s.z * x0_s0
    + r2u0s.y * (r2u0h - 1024.0 * x0_s1) - r2u0s.w * x0_s1;

                acc2 += r2u0dot;
            }
            var acc3 = 0.0;
            {
let r3u0s = w_scales(r3u0r, (u0 >> 1u) & 3u);
var r3u0l = 0.0;
var r3u0h = 0.0;
r3u0l += dot(nibbles1024(r3u0q.x), x0_0);
r3u0h += dot(nibbles1024(r3u0q.x >> 4u), x0_4);
r3u0l += dot(nibbles1024(r3u0q.y), x0_1);
r3u0h += dot(nibbles1024(r3u0q.y >> 4u), x0_5);
r3u0l += dot(nibbles1024(r3u0q.z), x0_2);
r3u0h += dot(nibbles1024(r3u0q.z >> 4u), x0_6);
r3u0l += dot(nibbles1024(r3u0q.w), x0_3);
r3u0h += dot(nibbles1024(r3u0q.w >> 4u), x0_7);
let r3u0dot = r3u0s.x * (r3u0l - 1024.0 * x0_s0) - r3u0s.z * x0_s0
    + r3u0s.y * (r3u0h - 1024.0 * x0_s1) - r3u0s.w * x0_s1;

                acc3 += r3u0dot;
            }
            if (i + 1u < BATCH) {
            let first = min(batch0 + (i + 1u) * stride, limit - 1u) * 4u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;
            at2 = (min(first + 2u, M - 1u)) * w_units;
            at3 = (min(first + 3u, M - 1u)) * w_units;

r0u0q = w[at0 + u0];
r0u0r = w[w_p1 + ((at0 + u0) >> 3u)];

r1u0q = w[at1 + u0];
r1u0r = w[w_p1 + ((at1 + u0) >> 3u)];

r2u0q = w[at2 + u0];
r2u0r = w[w_p1 + ((at2 + u0) >> 3u)];

r3u0q = w[at3 + u0];
r3u0r = w[w_p1 + ((at3 + u0) >> 3u)];

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
        let copies = WG / T;
        scale = 1.0 / sqrt(sum / f32(K * copies) + EPS);
    }
    if (!mine) {
        return;
    }
    let r = affine(scale * part_sum(at, n_sub), row);
    y[Y0 + row] = r;
}
