// mul_mat_vec: a=f16 b=none epi=rope_kv act=f32 set=sg rows=4
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
@group(0) @binding(4) var<storage, read_write> kv: array<u32>;
@group(0) @binding(5) var<storage, read> step: array<u32>;
@group(0) @binding(6) var<storage, read> rope: array<vec2<f32>>;
override M_Q: u32 = 0u;
override M_K: u32 = 0u;
const COLS: u32 = 16u;
override PAGE: u32 = 64u;
override N_SEQ: u32 = 0u;
override N_PAGE: u32 = 1u;
override PAGES: u32 = 16u;
fn col_token(c: u32) -> u32 { return step[COLS + 4u * c]; }
fn col_pos(c: u32) -> u32 { return step[COLS + 4u * c + 1u]; }
// The only sequence is not asked for: what its page table says need not wait for that.
fn col_seq(c: u32) -> u32 {
    if (N_SEQ == 1u) {
        return 0u;
    }
    return step[COLS + 4u * c + 2u];
}
fn page_of(seq: u32, pos: u32) -> u32 { return step[PAGES + seq * N_PAGE + pos / PAGE]; }

override N_KV: u32 = 1u;
override D: u32 = 64u;
override DV: u32 = 64u;
fn kv_cell(page: u32, slot: u32, head: u32) -> u32 { return (page * N_KV + head) * PAGE + slot; }

// 0: f32, 1: f16, 2: bf16.
override K_KIND: u32 = 1u;
override V_KIND: u32 = 1u;
// Word at which the values begin.
override V0: u32 = 0u;
fn bf16_bits(v: f32) -> u32 {
    let b = bitcast<u32>(v);
    let rounded = (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
    return select(rounded, (b >> 16u) | 0x40u, (b & 0x7fffffffu) > 0x7f800000u);
}
// Writes channels i and i + 1 (i even) of a cell of the keys, or of the values.
fn kv_put2(values: bool, cell: u32, i: u32, a: f32, b: f32) {
    let kind = select(K_KIND, V_KIND, values);
    let at = cell * select(D, DV, values) + i;
    let start = select(0u, V0, values);
    if (kind == 0u) {
        kv[start + at] = bitcast<u32>(a);
        kv[start + at + 1u] = bitcast<u32>(b);
    } else {
        kv[start + at / 2u] = select(bf16_bits(a) | (bf16_bits(b) << 16u), pack2x16float(vec2<f32>(a, b)), kind == 1u);
    }
}

override N_ROT: u32 = 64u;
override ROPE_NEOX: bool = false;
fn rope_cs(pos: u32, pair: u32) -> vec2<f32> {
    let f = rope[(pos & 255u) * (N_ROT / 2u) + pair];
    let c = rope[(256u + (pos >> 8u)) * (N_ROT / 2u) + pair];
    return vec2<f32>(f.x * c.x - f.y * c.y, f.y * c.x + f.x * c.y);
}
fn rotate(v: vec2<f32>, cs: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(v.x * cs.x - v.y * cs.y, v.x * cs.y + v.y * cs.x);
}

// Four channels of a head that one thread rotates: (a, b) and (c, d) are stored side by side.
fn quad_channels(j: u32) -> vec4<u32> {
    if (ROPE_NEOX && 4u * j < N_ROT) {
        let p = 2u * j;
        return vec4<u32>(p, p + 1u, p + N_ROT / 2u, p + N_ROT / 2u + 1u);
    }
    let p = 4u * j;
    return vec4<u32>(p, p + 1u, p + 2u, p + 3u);
}
// Cosine and sine of their two pairs; (1, 0) where nothing is rotated.
fn quad_turn(j: u32, pos: u32) -> vec4<f32> {
    var turn = vec4<f32>(1.0, 0.0, 1.0, 0.0);
    if (4u * j < N_ROT) {
        turn = vec4<f32>(rope_cs(pos, 2u * j), turn.zw);
        if (4u * j + 2u < N_ROT) {
            turn = vec4<f32>(turn.xy, rope_cs(pos, 2u * j + 1u));
        }
    }
    return turn;
}
fn quad_rotate(turn: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
    if (ROPE_NEOX) {
        let a = rotate(v.xz, turn.xy);
        let b = rotate(v.yw, turn.zw);
        return vec4<f32>(a.x, b.x, a.y, b.y);
    }
    return vec4<f32>(rotate(v.xy, turn.xy), rotate(v.zw, turn.zw));
}

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
// The rows of a batch: four channels that are rotated together.
fn rows_of(first: u32) -> vec4<u32> {
    if (first < M_Q + M_K) {
        return vec4<u32>(first / D * D) + quad_channels((first % D) / 4u);
    }
    return vec4<u32>(first, first + 1u, first + 2u, first + 3u);
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
    let limit = (M + 3u) / 4u;
    // Each thread finishes one output; what it needs besides the products is asked for before them.
    let batch = batch0 + lane / 1u * stride;
    var mine = live && lane < BATCH * 1u && batch < limit;
    let at = part0 + lane / 1u * 4u;
    let first = min(batch, limit - 1u) * 4u;
    let rows = rows_of(first);
    let pos = col_pos(0u);
    let page = page_of(col_seq(0u), pos);
    var turn = vec4<f32>(1.0, 0.0, 1.0, 0.0);
    if (first < M_Q + M_K) {
        turn = quad_turn((first % D) / 4u, pos);
    }
    ss = 0.0;
    for (var pass_ = 0u; pass_ < PASSES; pass_++) {
        var at0 = 0u;
var r0u0q: vec4<u32>;

var r0u1q: vec4<u32>;

        var at1 = 0u;
var r1u0q: vec4<u32>;

var r1u1q: vec4<u32>;

        var at2 = 0u;
var r2u0q: vec4<u32>;

var r2u1q: vec4<u32>;

        var at3 = 0u;
var r3u0q: vec4<u32>;

var r3u1q: vec4<u32>;

        let k0 = (pass_ * 2u + 0u) * T + lane;
        let u0 = min(k0, w_units - 1u);
        let k1 = (pass_ * 2u + 1u) * T + lane;
        let u1 = min(k1, w_units - 1u);
        {
            let first = rows_of(min(batch0, limit - 1u) * 4u) - vec4<u32>(0u);
            at0 = first[0] * w_units;
            at1 = first[1] * w_units;
            at2 = first[2] * w_units;
            at3 = first[3] * w_units;

r0u0q = w[at0 + u0];

r0u1q = w[at0 + u1];

r1u0q = w[at1 + u0];

r1u1q = w[at1 + u1];

r2u0q = w[at2 + u0];

r2u1q = w[at2 + u1];

r3u0q = w[at3 + u0];

r3u1q = w[at3 + u1];

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
            var acc2 = 0.0;
            {
let r2u0a = vec4<f32>(unpack2x16float(r2u0q.x), unpack2x16float(r2u0q.y));
let r2u0b = vec4<f32>(unpack2x16float(r2u0q.z), unpack2x16float(r2u0q.w));
let r2u0dot = dot(r2u0a, x0_0) + dot(r2u0b, x0_1);

                acc2 += r2u0dot;
            }
            {
let r2u1a = vec4<f32>(unpack2x16float(r2u1q.x), unpack2x16float(r2u1q.y));
let r2u1b = vec4<f32>(unpack2x16float(r2u1q.z), unpack2x16float(r2u1q.w));
let r2u1dot = dot(r2u1a, x1_0) + dot(r2u1b, x1_1);

                acc2 += r2u1dot;
            }
            var acc3 = 0.0;
            {
let r3u0a = vec4<f32>(unpack2x16float(r3u0q.x), unpack2x16float(r3u0q.y));
let r3u0b = vec4<f32>(unpack2x16float(r3u0q.z), unpack2x16float(r3u0q.w));
let r3u0dot = dot(r3u0a, x0_0) + dot(r3u0b, x0_1);

                acc3 += r3u0dot;
            }
            {
let r3u1a = vec4<f32>(unpack2x16float(r3u1q.x), unpack2x16float(r3u1q.y));
let r3u1b = vec4<f32>(unpack2x16float(r3u1q.z), unpack2x16float(r3u1q.w));
let r3u1dot = dot(r3u1a, x1_0) + dot(r3u1b, x1_1);

                acc3 += r3u1dot;
            }
            if (i + 1u < BATCH) {
            let first = rows_of(min(batch0 + (i + 1u) * stride, limit - 1u) * 4u) - vec4<u32>(0u);
            at0 = first[0] * w_units;
            at1 = first[1] * w_units;
            at2 = first[2] * w_units;
            at3 = first[3] * w_units;

r0u0q = w[at0 + u0];

r0u1q = w[at0 + u1];

r1u0q = w[at1 + u0];

r1u1q = w[at1 + u1];

r2u0q = w[at2 + u0];

r2u1q = w[at2 + u1];

r3u0q = w[at3 + u0];

r3u1q = w[at3 + u1];

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
        let copies = WG / T;
        scale = 1.0 / sqrt(sum / f32(K * copies) + EPS);
    }
    if (!mine) {
        return;
    }
    var v = scale * vec4<f32>(part_sum(at, n_sub), part_sum(at + 1u, n_sub), part_sum(at + 2u, n_sub), part_sum(at + 3u, n_sub));
    v = vec4<f32>(affine(v.x, rows.x), affine(v.y, rows.y), affine(v.z, rows.z), affine(v.w, rows.w));
    put(rows, first, page, pos, quad_rotate(turn, v));
}
// Writes four rotated rows, of which the first is row `first` of q, k, v.
fn put(rows: vec4<u32>, first: u32, page: u32, pos: u32, v: vec4<f32>) {
    if (first < M_Q) {
        y[Y0 + rows.x] = v.x;
        y[Y0 + rows.y] = v.y;
        y[Y0 + rows.z] = v.z;
        y[Y0 + rows.w] = v.w;
        return;
    }
    let values = first >= M_Q + M_K;
    let channel = rows - vec4<u32>(select(M_Q, M_Q + M_K, values));
    let d = select(D, DV, values);
    let h = channel.x / d;
    let cell = kv_cell(page, pos % PAGE, h);
    kv_put2(values, cell, channel.x - h * d, v.x, v.y);
    kv_put2(values, cell, channel.z - h * d, v.z, v.w);
}
