// attention_keys: k=f16 v=f16 heads=4 end=joined
override WG: u32 = 256u;
override SG_MIN: u32 = 4u;
override LANES: u32 = 8u;
override N_HEAD: u32 = 1u;
override SPLITS: u32 = 1u;
override LDQ: u32 = 64u;
override LDY: u32 = 64u;
override STATS: u32 = 4u;
@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> step: array<u32>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) @coherent var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> arrived: array<atomic<u32>>;
// Maximum and denominator of each part: [head][part].
var<workgroup> stats: array<vec2<f32>, STATS>;
var<workgroup> order: u32;
const COLS: u32 = 16u;
override PAGE: u32 = 64u;
override N_PAGE: u32 = 1u;
override PAGES: u32 = 16u;
fn col_token(c: u32) -> u32 { return step[COLS + 4u * c]; }
fn col_pos(c: u32) -> u32 { return step[COLS + 4u * c + 1u]; }
fn col_seq(c: u32) -> u32 { return step[COLS + 4u * c + 2u]; }
fn page_of(seq: u32, pos: u32) -> u32 { return step[PAGES + seq * N_PAGE + pos / PAGE]; }

override N_KV: u32 = 1u;
override D: u32 = 64u;
override DV: u32 = 64u;
fn kv_cell(page: u32, slot: u32, head: u32) -> u32 { return (page * N_KV + head) * PAGE + slot; }

struct Eight { a: vec4<f32>, b: vec4<f32> }

override k_p1: u32 = 0u;
override k_p2: u32 = 0u;
override k_p3: u32 = 0u;
fn k_get4(cell: u32, c: u32) -> vec4<f32> {
    let at = cell * D + c;
    let v = k[at / 8u];
    let q = select(v.xy, v.zw, (at & 4u) != 0u);
    return vec4<f32>(unpack2x16float(q.x), unpack2x16float(q.y));
}
fn k_get8(cell: u32, c: u32) -> Eight {
    let v = k[(cell * D + c) / 8u];
    return Eight(
        vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)),
        vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)),
    );
}

override v_p1: u32 = 0u;
override v_p2: u32 = 0u;
override v_p3: u32 = 0u;
fn v_get4(cell: u32, c: u32) -> vec4<f32> {
    let at = cell * DV + c;
    let v = v[at / 8u];
    let q = select(v.xy, v.zw, (at & 4u) != 0u);
    return vec4<f32>(unpack2x16float(q.x), unpack2x16float(q.y));
}
fn v_get8(cell: u32, c: u32) -> Eight {
    let v = v[(cell * DV + c) / 8u];
    return Eight(
        vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)),
        vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)),
    );
}

override SCALE: f32 = 1.0;
// 0: none. Else a score s becomes SOFTCAP * tanh(s / SOFTCAP).
override SOFTCAP: f32 = 0.0;
// 0: none. Else a head's slope times the distance is taken off.
override MAX_BIAS: f32 = 0.0;
// 0: all. Else only so many keys before a position, itself among them, are seen.
override WINDOW: u32 = 0u;
// A score of every head without a value joins the denominator.
override SINKS: bool = false;
override UNIT: f32 = SCALE * 1.4426950408889634;
override CAP: f32 = SOFTCAP * 1.4426950408889634;
// ALiBi's slope of a query head.
fn slope_of(head: u32) -> f32 {
    if (MAX_BIAS == 0.0) {
        return 0.0;
    }
    let n = 1u << firstLeadingBit(N_HEAD);
    let whole = head < n;
    let step_ = -MAX_BIAS / f32(n) * select(0.5, 1.0, whole);
    return 1.4426950408889634 * exp2(step_ * f32(select(2u * (head - n) + 1u, head + 1u, whole)));
}
// The score of a product that UNIT has multiplied.
fn score_of(s: f32, slope: f32, key: u32, pos: u32) -> f32 {
    var v = s;
    if (SOFTCAP != 0.0) {
        v = CAP * tanh(clamp(v / CAP, -15.0, 15.0));
    }
    if (MAX_BIAS != 0.0) {
        v -= slope * f32(pos - key);
    }
    return v;
}
// The first key that a position sees.
fn first_key(pos: u32) -> u32 {
    return select(0u, pos + 1u - min(pos + 1u, WINDOW), WINDOW > 0u);
}
fn sink_of(head: u32) -> f32 { return 1.4426950408889634 * sinks[head]; }

const NO_KEY: f32 = -3.0e38;
// What the subgroups found: sums [subgroup][head][channel]; maxima and denominators [subgroup][head].
var<workgroup> sums: array<vec4<f32>, WG / SG_MIN * 4u * DV / 4u>;
var<workgroup> tops: array<f32, WG / SG_MIN * 4u>;
var<workgroup> dens: array<f32, WG / SG_MIN * 4u>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32) {
    let tid = subgroup * subgroup_size + lane;
    let gqa = N_HEAD / N_KV;
    let head_groups = (gqa + 3u) / 4u;
    let kv_head = group.x / head_groups;
    let head0 = kv_head * gqa + (group.x % head_groups) * 4u;
    let n_head = min(4u, (kv_head + 1u) * gqa - head0);
    let split = group.y;
    let col = group.z;
    let seq = col_seq(col);
    // Keys of this split: [start, end).
    let pos = col_pos(col);
    let n_key = pos + 1u;
    let first = first_key(pos);
    let span = (n_key - first + SPLITS - 1u) / SPLITS;
    let start = min(first + split * span, n_key);
    let end = min(start + span, n_key);

    let rows = WG / LANES;
    let my_row = tid / LANES;
    let channel = tid % LANES * 8u;
    let has_channel = channel < D;
    let from_k = min(channel, D - 8u);
    let from_v = min(channel, DV - 8u);
    let sunk = SINKS && split == 0u && my_row == 0u;
    let at_q0 = (col * LDQ + (head0 + min(0u, n_head - 1u)) * D + from_k) / 4u;
    let qa0 = select(vec4<f32>(), q[at_q0] * UNIT, has_channel);
    let qb0 = select(vec4<f32>(), q[at_q0 + 1u] * UNIT, has_channel);
    let slope0 = slope_of(head0 + 0u);
    var top0 = NO_KEY;
    if (sunk) {
        top0 = sink_of(min(head0 + 0u, N_HEAD - 1u));
    }
    var den0 = select(0.0, 1.0, sunk);
    var a0 = vec4<f32>();
    var b0 = vec4<f32>();
    let at_q1 = (col * LDQ + (head0 + min(1u, n_head - 1u)) * D + from_k) / 4u;
    let qa1 = select(vec4<f32>(), q[at_q1] * UNIT, has_channel);
    let qb1 = select(vec4<f32>(), q[at_q1 + 1u] * UNIT, has_channel);
    let slope1 = slope_of(head0 + 1u);
    var top1 = NO_KEY;
    if (sunk) {
        top1 = sink_of(min(head0 + 1u, N_HEAD - 1u));
    }
    var den1 = select(0.0, 1.0, sunk);
    var a1 = vec4<f32>();
    var b1 = vec4<f32>();
    let at_q2 = (col * LDQ + (head0 + min(2u, n_head - 1u)) * D + from_k) / 4u;
    let qa2 = select(vec4<f32>(), q[at_q2] * UNIT, has_channel);
    let qb2 = select(vec4<f32>(), q[at_q2 + 1u] * UNIT, has_channel);
    let slope2 = slope_of(head0 + 2u);
    var top2 = NO_KEY;
    if (sunk) {
        top2 = sink_of(min(head0 + 2u, N_HEAD - 1u));
    }
    var den2 = select(0.0, 1.0, sunk);
    var a2 = vec4<f32>();
    var b2 = vec4<f32>();
    let at_q3 = (col * LDQ + (head0 + min(3u, n_head - 1u)) * D + from_k) / 4u;
    let qa3 = select(vec4<f32>(), q[at_q3] * UNIT, has_channel);
    let qb3 = select(vec4<f32>(), q[at_q3 + 1u] * UNIT, has_channel);
    let slope3 = slope_of(head0 + 3u);
    var top3 = NO_KEY;
    if (sunk) {
        top3 = sink_of(min(head0 + 3u, N_HEAD - 1u));
    }
    var den3 = select(0.0, 1.0, sunk);
    var a3 = vec4<f32>();
    var b3 = vec4<f32>();

    for (var base = start; base < end; base += 4u * rows) {
        // All loads first: four keys and their values are under way at once.
        let key0 = base + 0u * rows + my_row;
        let at0 = min(key0, end - 1u);
        let cell0 = kv_cell(page_of(seq, at0), at0 % PAGE, kv_head);
        let key1 = base + 1u * rows + my_row;
        let at1 = min(key1, end - 1u);
        let cell1 = kv_cell(page_of(seq, at1), at1 % PAGE, kv_head);
        let key2 = base + 2u * rows + my_row;
        let at2 = min(key2, end - 1u);
        let cell2 = kv_cell(page_of(seq, at2), at2 % PAGE, kv_head);
        let key3 = base + 3u * rows + my_row;
        let at3 = min(key3, end - 1u);
        let cell3 = kv_cell(page_of(seq, at3), at3 % PAGE, kv_head);
        let k0 = k_get8(cell0, from_k);
        let k1 = k_get8(cell1, from_k);
        let k2 = k_get8(cell2, from_k);
        let k3 = k_get8(cell3, from_k);
        let v0 = v_get8(cell0, from_v);
        let v1 = v_get8(cell1, from_v);
        let v2 = v_get8(cell2, from_v);
        let v3 = v_get8(cell3, from_v);
        var s00 = NO_KEY;
        var s10 = NO_KEY;
        var s20 = NO_KEY;
        var s30 = NO_KEY;
        if (base + 0u * rows < end) {
            s00 = dot(qa0, k0.a) + dot(qb0, k0.b);
            s10 = dot(qa1, k0.a) + dot(qb1, k0.b);
            s20 = dot(qa2, k0.a) + dot(qb2, k0.b);
            s30 = dot(qa3, k0.a) + dot(qb3, k0.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s00 += subgroupShuffleXor(s00, m);
                s10 += subgroupShuffleXor(s10, m);
                s20 += subgroupShuffleXor(s20, m);
                s30 += subgroupShuffleXor(s30, m);
            }
            s00 = select(NO_KEY, score_of(s00, slope0, min(key0, pos), pos), key0 < end);
            s10 = select(NO_KEY, score_of(s10, slope1, min(key0, pos), pos), key0 < end);
            s20 = select(NO_KEY, score_of(s20, slope2, min(key0, pos), pos), key0 < end);
            s30 = select(NO_KEY, score_of(s30, slope3, min(key0, pos), pos), key0 < end);
        }
        var s01 = NO_KEY;
        var s11 = NO_KEY;
        var s21 = NO_KEY;
        var s31 = NO_KEY;
        if (base + 1u * rows < end) {
            s01 = dot(qa0, k1.a) + dot(qb0, k1.b);
            s11 = dot(qa1, k1.a) + dot(qb1, k1.b);
            s21 = dot(qa2, k1.a) + dot(qb2, k1.b);
            s31 = dot(qa3, k1.a) + dot(qb3, k1.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s01 += subgroupShuffleXor(s01, m);
                s11 += subgroupShuffleXor(s11, m);
                s21 += subgroupShuffleXor(s21, m);
                s31 += subgroupShuffleXor(s31, m);
            }
            s01 = select(NO_KEY, score_of(s01, slope0, min(key1, pos), pos), key1 < end);
            s11 = select(NO_KEY, score_of(s11, slope1, min(key1, pos), pos), key1 < end);
            s21 = select(NO_KEY, score_of(s21, slope2, min(key1, pos), pos), key1 < end);
            s31 = select(NO_KEY, score_of(s31, slope3, min(key1, pos), pos), key1 < end);
        }
        var s02 = NO_KEY;
        var s12 = NO_KEY;
        var s22 = NO_KEY;
        var s32 = NO_KEY;
        if (base + 2u * rows < end) {
            s02 = dot(qa0, k2.a) + dot(qb0, k2.b);
            s12 = dot(qa1, k2.a) + dot(qb1, k2.b);
            s22 = dot(qa2, k2.a) + dot(qb2, k2.b);
            s32 = dot(qa3, k2.a) + dot(qb3, k2.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s02 += subgroupShuffleXor(s02, m);
                s12 += subgroupShuffleXor(s12, m);
                s22 += subgroupShuffleXor(s22, m);
                s32 += subgroupShuffleXor(s32, m);
            }
            s02 = select(NO_KEY, score_of(s02, slope0, min(key2, pos), pos), key2 < end);
            s12 = select(NO_KEY, score_of(s12, slope1, min(key2, pos), pos), key2 < end);
            s22 = select(NO_KEY, score_of(s22, slope2, min(key2, pos), pos), key2 < end);
            s32 = select(NO_KEY, score_of(s32, slope3, min(key2, pos), pos), key2 < end);
        }
        var s03 = NO_KEY;
        var s13 = NO_KEY;
        var s23 = NO_KEY;
        var s33 = NO_KEY;
        if (base + 3u * rows < end) {
            s03 = dot(qa0, k3.a) + dot(qb0, k3.b);
            s13 = dot(qa1, k3.a) + dot(qb1, k3.b);
            s23 = dot(qa2, k3.a) + dot(qb2, k3.b);
            s33 = dot(qa3, k3.a) + dot(qb3, k3.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s03 += subgroupShuffleXor(s03, m);
                s13 += subgroupShuffleXor(s13, m);
                s23 += subgroupShuffleXor(s23, m);
                s33 += subgroupShuffleXor(s33, m);
            }
            s03 = select(NO_KEY, score_of(s03, slope0, min(key3, pos), pos), key3 < end);
            s13 = select(NO_KEY, score_of(s13, slope1, min(key3, pos), pos), key3 < end);
            s23 = select(NO_KEY, score_of(s23, slope2, min(key3, pos), pos), key3 < end);
            s33 = select(NO_KEY, score_of(s33, slope3, min(key3, pos), pos), key3 < end);
        }
        {
            let high = max(top0, max(max(s00, s01), max(s02, s03)));
            let fade = exp2(top0 - high);
            den0 *= fade;
            a0 *= fade;
            b0 *= fade;
            top0 = high;
        }
        // Threads that have seen no key keep exponentials of 0.
        let least0 = max(top0, -1.0e38);
        {
            let high = max(top1, max(max(s10, s11), max(s12, s13)));
            let fade = exp2(top1 - high);
            den1 *= fade;
            a1 *= fade;
            b1 *= fade;
            top1 = high;
        }
        // Threads that have seen no key keep exponentials of 0.
        let least1 = max(top1, -1.0e38);
        {
            let high = max(top2, max(max(s20, s21), max(s22, s23)));
            let fade = exp2(top2 - high);
            den2 *= fade;
            a2 *= fade;
            b2 *= fade;
            top2 = high;
        }
        // Threads that have seen no key keep exponentials of 0.
        let least2 = max(top2, -1.0e38);
        {
            let high = max(top3, max(max(s30, s31), max(s32, s33)));
            let fade = exp2(top3 - high);
            den3 *= fade;
            a3 *= fade;
            b3 *= fade;
            top3 = high;
        }
        // Threads that have seen no key keep exponentials of 0.
        let least3 = max(top3, -1.0e38);
        if (base + 0u * rows < end) {
            let p0 = exp2(s00 - least0);
            den0 += p0;
            a0 += p0 * v0.a;
            b0 += p0 * v0.b;
            let p1 = exp2(s10 - least1);
            den1 += p1;
            a1 += p1 * v0.a;
            b1 += p1 * v0.b;
            let p2 = exp2(s20 - least2);
            den2 += p2;
            a2 += p2 * v0.a;
            b2 += p2 * v0.b;
            let p3 = exp2(s30 - least3);
            den3 += p3;
            a3 += p3 * v0.a;
            b3 += p3 * v0.b;
        }
        if (base + 1u * rows < end) {
            let p0 = exp2(s01 - least0);
            den0 += p0;
            a0 += p0 * v1.a;
            b0 += p0 * v1.b;
            let p1 = exp2(s11 - least1);
            den1 += p1;
            a1 += p1 * v1.a;
            b1 += p1 * v1.b;
            let p2 = exp2(s21 - least2);
            den2 += p2;
            a2 += p2 * v1.a;
            b2 += p2 * v1.b;
            let p3 = exp2(s31 - least3);
            den3 += p3;
            a3 += p3 * v1.a;
            b3 += p3 * v1.b;
        }
        if (base + 2u * rows < end) {
            let p0 = exp2(s02 - least0);
            den0 += p0;
            a0 += p0 * v2.a;
            b0 += p0 * v2.b;
            let p1 = exp2(s12 - least1);
            den1 += p1;
            a1 += p1 * v2.a;
            b1 += p1 * v2.b;
            let p2 = exp2(s22 - least2);
            den2 += p2;
            a2 += p2 * v2.a;
            b2 += p2 * v2.b;
            let p3 = exp2(s32 - least3);
            den3 += p3;
            a3 += p3 * v2.a;
            b3 += p3 * v2.b;
        }
        if (base + 3u * rows < end) {
            let p0 = exp2(s03 - least0);
            den0 += p0;
            a0 += p0 * v3.a;
            b0 += p0 * v3.b;
            let p1 = exp2(s13 - least1);
            den1 += p1;
            a1 += p1 * v3.a;
            b1 += p1 * v3.b;
            let p2 = exp2(s23 - least2);
            den2 += p2;
            a2 += p2 * v3.a;
            b2 += p2 * v3.b;
            let p3 = exp2(s33 - least3);
            den3 += p3;
            a3 += p3 * v3.a;
            b3 += p3 * v3.b;
        }
    }

    // The groups of a subgroup join through each other's registers, the subgroups through workgroup memory.
    var high0 = top0;
    var high1 = top1;
    var high2 = top2;
    var high3 = top3;
    for (var m = LANES; m < subgroup_size; m *= 2u) {
        high0 = max(high0, subgroupShuffleXor(high0, m));
        high1 = max(high1, subgroupShuffleXor(high1, m));
        high2 = max(high2, subgroupShuffleXor(high2, m));
        high3 = max(high3, subgroupShuffleXor(high3, m));
    }
    {
        let fade = exp2(top0 - high0);
        top0 = high0;
        den0 *= fade;
        a0 *= fade;
        b0 *= fade;
    }
    {
        let fade = exp2(top1 - high1);
        top1 = high1;
        den1 *= fade;
        a1 *= fade;
        b1 *= fade;
    }
    {
        let fade = exp2(top2 - high2);
        top2 = high2;
        den2 *= fade;
        a2 *= fade;
        b2 *= fade;
    }
    {
        let fade = exp2(top3 - high3);
        top3 = high3;
        den3 *= fade;
        a3 *= fade;
        b3 *= fade;
    }
    // While a thread holds several heads, it gives one half of them to its partner for the other half.
    var m = subgroup_size / 2u;
    var head = 0u;
    var held = 4u;
    if (m >= LANES) {
        let upper = (lane & m) != 0u;
        den0 = select(den0, den2, upper) + subgroupShuffleXor(select(den2, den0, upper), m);
        a0 = select(a0, a2, upper) + subgroupShuffleXor(select(a2, a0, upper), m);
        b0 = select(b0, b2, upper) + subgroupShuffleXor(select(b2, b0, upper), m);
        den1 = select(den1, den3, upper) + subgroupShuffleXor(select(den3, den1, upper), m);
        a1 = select(a1, a3, upper) + subgroupShuffleXor(select(a3, a1, upper), m);
        b1 = select(b1, b3, upper) + subgroupShuffleXor(select(b3, b1, upper), m);
        head += select(0u, 2u, upper);
        held = 2u;
        m /= 2u;
    }
    if (m >= LANES) {
        let upper = (lane & m) != 0u;
        den0 = select(den0, den1, upper) + subgroupShuffleXor(select(den1, den0, upper), m);
        a0 = select(a0, a1, upper) + subgroupShuffleXor(select(a1, a0, upper), m);
        b0 = select(b0, b1, upper) + subgroupShuffleXor(select(b1, b0, upper), m);
        head += select(0u, 1u, upper);
        held = 1u;
        m /= 2u;
    }
    for (; m >= LANES; m /= 2u) {
        den0 += subgroupShuffleXor(den0, m);
        a0 += subgroupShuffleXor(a0, m);
        b0 += subgroupShuffleXor(b0, m);
    }
    if (lane % (subgroup_size * held / 4u) < LANES && channel < DV) {
        if (0u < held) {
            let at = subgroup * 4u + head + 0u;
            sums[(at * DV + channel) / 4u] = a0;
            sums[(at * DV + channel) / 4u + 1u] = b0;
            if (channel == 0u) {
                dens[at] = den0;
            }
        }
        if (1u < held) {
            let at = subgroup * 4u + head + 1u;
            sums[(at * DV + channel) / 4u] = a1;
            sums[(at * DV + channel) / 4u + 1u] = b1;
            if (channel == 0u) {
                dens[at] = den1;
            }
        }
        if (2u < held) {
            let at = subgroup * 4u + head + 2u;
            sums[(at * DV + channel) / 4u] = a2;
            sums[(at * DV + channel) / 4u + 1u] = b2;
            if (channel == 0u) {
                dens[at] = den2;
            }
        }
        if (3u < held) {
            let at = subgroup * 4u + head + 3u;
            sums[(at * DV + channel) / 4u] = a3;
            sums[(at * DV + channel) / 4u + 1u] = b3;
            if (channel == 0u) {
                dens[at] = den3;
            }
        }
    }
    if (lane == 0u) {
        tops[subgroup * 4u + 0u] = top0;
        tops[subgroup * 4u + 1u] = top1;
        tops[subgroup * 4u + 2u] = top2;
        tops[subgroup * 4u + 3u] = top3;
    }
    workgroupBarrier();
    for (var i = tid; i < n_head * DV / 4u; i += WG) {
        let h = i * 4u / DV;
        var top = NO_KEY;
        for (var s = 0u; s < WG / subgroup_size; s++) {
            top = max(top, tops[s * 4u + h]);
        }
        var den = 0.0;
        var o = vec4<f32>();
        for (var s = 0u; s < WG / subgroup_size; s++) {
            let fade = exp2(tops[s * 4u + h] - top);
            den += fade * dens[s * 4u + h];
            o += fade * sums[s * 4u * (DV / 4u) + i];
        }
        let c = i * 4u % DV;
        let part = ((col * N_HEAD + head0 + h) * SPLITS + split) * (DV + 4u);
        y[(part + c) / 4u] = o;
        if (c == 0u) {
            y[(part + DV) / 4u] = vec4<f32>(top, den, 0.0, 0.0);
        }
    }
    // All of this workgroup's part is there before it is counted.
    storageBarrier();
    let counter = col * groups.x + group.x;
    if (tid == 0u) {
        order = atomicAdd(&arrived[counter], 1u);
    }
    if (workgroupUniformLoad(&order) != SPLITS - 1u) {
        return;
    }
    storageBarrier();
    if (tid == 0u) {
        atomicStore(&arrived[counter], 0u);
    }
    for (var i = tid; i < n_head * SPLITS; i += WG) {
        stats[i] = y[(((col * N_HEAD + head0) * SPLITS + i) * (DV + 4u) + DV) / 4u].xy;
    }
    workgroupBarrier();
    // Quads of the result are shared out to teams of threads, each team takes every n-th part.
    let n_quad = n_head * DV / 4u;
    let wide = min(n_quad, WG);
    let n_team = min(WG / wide, WG / SG_MIN);
    let team = tid / wide;
    for (var i0 = 0u; i0 < n_quad; i0 += wide) {
        let i = i0 + tid % wide;
        let live = team < n_team && i < n_quad;
        let h = min(i, n_quad - 1u) * 4u / DV;
        var top = NO_KEY;
        for (var s = 0u; s < SPLITS; s++) {
            top = max(top, stats[h * SPLITS + s].x);
        }
        var o = vec4<f32>();
        if (live) {
            for (var s = team; s < SPLITS; s += n_team) {
                let part = ((col * N_HEAD + head0 + h) * SPLITS + s) * (DV + 4u);
                o += exp2(stats[h * SPLITS + s].x - top) * y[part / 4u + i % (DV / 4u)];
            }
            sums[tid] = o;
        }
        workgroupBarrier();
        if (live && team == 0u) {
            var den = 0.0;
            for (var s = 0u; s < SPLITS; s++) {
                den += exp2(stats[h * SPLITS + s].x - top) * stats[h * SPLITS + s].y;
            }
            for (var t = 1u; t < n_team; t++) {
                o += sums[t * wide + tid];
            }
            out[(col * LDY + head0 * DV) / 4u + i] = o / den;
        }
        workgroupBarrier();
    }
}
