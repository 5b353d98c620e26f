// mul_mat_vec: a=f16 b=none epi=add act=f32 set=sg rows=2
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
override w_table: u32 = 0u;

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> aux: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let v = w[b];
    let p = select(v.xy, v.zw, (e & 4u) != 0u);
    return vec4<f32>(unpack2x16float(p.x), unpack2x16float(p.y));
}

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

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup_id: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
    let tid = subgroup_id * subgroup_size + subgroup_lane;
    let team = tid / T;
    let lane = tid % T;

    let group_idx = group.y * groups.x + group.x;
    let part0 = team * BATCH * 2u;
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
    ss = 0.0;
    for (var pass_ = 0u; pass_ < PASSES; pass_++) {
        var at0 = 0u;
var r0u0q: vec4<u32>;

var r0u1q: vec4<u32>;

        var at1 = 0u;
var r1u0q: vec4<u32>;

var r1u1q: vec4<u32>;

        let k0 = (pass_ * 2u + 0u) * T + lane;
        let u0 = min(k0, w_units - 1u);
        let k1 = (pass_ * 2u + 1u) * T + lane;
        let u1 = min(k1, w_units - 1u);
        {
            let first = min(batch0, limit - 1u) * 2u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;

r0u0q = w[at0 + u0];

r0u1q = w[at0 + u1];

r1u0q = w[at1 + u0];

r1u1q = w[at1 + u1];

        }
        // This thread's values of x; zeros past the end of a row.
        let e0 = select(K, (u0 << 3u), k0 < w_units);
        let x0_0 = quad_of(e0 + 0u);
        let x0_1 = quad_of(e0 + 4u);
        let e1 = select(K, (u1 << 3u), k1 < w_units);
        let x1_0 = quad_of(e1 + 0u);
        let x1_1 = quad_of(e1 + 4u);
        for (var i = 0u; i < BATCH; i++) {
            var acc0 = 0.0;
            {
let r0u0a = vec4<f32>(unpack2x16float(r0u0q.x), unpack2x16float(r0u0q.y));
let r0u0b = vec4<f32>(unpack2x16float(r0u0q.z), unpack2x16float(r0u0q.w));
let r0u0dot = dot(r0u0a, x0_0) + dot(r0u0b, x0_1);

                acc0 += r0u0dot;
            }
            {
let r0u1a = vec4<f32>(unpack2x16float(r0u1q.x), unpack2x16float(r0u1q.y));
let r0u1b = vec4<f32>(unpack2x16float(r0u1q.z), unpack2x16float(r0u1q.w));
let r0u1dot = dot(r0u1a, x1_0) + dot(r0u1b, x1_1);

                acc0 += r0u1dot;
            }
            var acc1 = 0.0;
            {
let r1u0a = vec4<f32>(unpack2x16float(r1u0q.x), unpack2x16float(r1u0q.y));
let r1u0b = vec4<f32>(unpack2x16float(r1u0q.z), unpack2x16float(r1u0q.w));
let r1u0dot = dot(r1u0a, x0_0) + dot(r1u0b, x0_1);

                acc1 += r1u0dot;
            }
            {
let r1u1a = vec4<f32>(unpack2x16float(r1u1q.x), unpack2x16float(r1u1q.y));
let r1u1b = vec4<f32>(unpack2x16float(r1u1q.z), unpack2x16float(r1u1q.w));
let r1u1dot = dot(r1u1a, x1_0) + dot(r1u1b, x1_1);

                acc1 += r1u1dot;
            }
            if (i + 1u < BATCH) {
            let first = min(batch0 + (i + 1u) * stride, limit - 1u) * 2u;
            at0 = (min(first + 0u, M - 1u)) * w_units;
            at1 = (min(first + 1u, M - 1u)) * w_units;

r0u0q = w[at0 + u0];

r0u1q = w[at0 + u1];

r1u0q = w[at1 + u0];

r1u1q = w[at1 + u1];

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
    y[Y0 + row] = before + r;
}
