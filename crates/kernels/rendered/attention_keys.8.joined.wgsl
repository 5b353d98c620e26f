// attention_keys: heads=8 end=joined
override WG: u32 = 256u;
override SG_MIN: u32 = 4u;
override LANES: u32 = 8u;
override N_HEAD: u32 = 1u;
override SPLITS: u32 = 1u;
override SCALE: f32 = 1.0;
override LDQ: u32 = 64u;
override LDY: u32 = 64u;
override STATS: u32 = 8u;
@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> kv: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> step: array<u32>;
@group(0) @binding(3) @coherent var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> arrived: array<atomic<u32>>;
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
override KV_F16: bool = true;
override V0: u32 = 0u;
// Index of channel 0 of a cell, in values.
fn kv_cell(page: u32, slot: u32, head: u32) -> u32 { return ((page * N_KV + head) * PAGE + slot) * D; }

// Channels i to i + 7 (i a multiple of 8) of the half of the cache at word `half`.
struct Eight { a: vec4<f32>, b: vec4<f32> }
fn kv_get8(half: u32, i: u32) -> Eight {
    if (KV_F16) {
        let v = kv[half / 4u + i / 8u];
        return Eight(
            vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)),
            vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)),
        );
    }
    let at = half / 4u + i / 4u;
    return Eight(bitcast<vec4<f32>>(kv[at]), bitcast<vec4<f32>>(kv[at + 1u]));
}
fn kv_get4(half: u32, i: u32) -> vec4<f32> {
    if (KV_F16) {
        let p = half + i / 2u;
        let v = kv[p / 4u];
        let q = select(v.xy, v.zw, (p & 2u) != 0u);
        return vec4<f32>(unpack2x16float(q.x), unpack2x16float(q.y));
    }
    return bitcast<vec4<f32>>(kv[(half + i) / 4u]);
}

override TO_EXP2: f32 = SCALE * 1.4426950408889634;
const NO_KEY: f32 = -3.0e38;
// What the subgroups found: sums [subgroup][head][channel]; maxima and denominators [subgroup][head].
var<workgroup> sums: array<vec4<f32>, WG / SG_MIN * 8u * D / 4u>;
var<workgroup> tops: array<f32, WG / SG_MIN * 8u>;
var<workgroup> dens: array<f32, WG / SG_MIN * 8u>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32) {
    let tid = subgroup * subgroup_size + lane;
    let gqa = N_HEAD / N_KV;
    let head_groups = (gqa + 7u) / 8u;
    let kv_head = group.x / head_groups;
    let head0 = kv_head * gqa + (group.x % head_groups) * 8u;
    let n_head = min(8u, (kv_head + 1u) * gqa - head0);
    let split = group.y;
    let col = group.z;
    let seq = col_seq(col);
    // Keys of this split: [start, end).
    let n_key = col_pos(col) + 1u;
    let span = (n_key + SPLITS - 1u) / SPLITS;
    let start = min(split * span, n_key);
    let end = min(start + span, n_key);

    let rows = WG / LANES;
    let my_row = tid / LANES;
    let channel = tid % LANES * 8u;
    let has_channel = channel < D;
    let from_channel = min(channel, D - 8u);
    let at_q0 = (col * LDQ + (head0 + min(0u, n_head - 1u)) * D + from_channel) / 4u;
    let qa0 = select(vec4<f32>(), q[at_q0] * TO_EXP2, has_channel);
    let qb0 = select(vec4<f32>(), q[at_q0 + 1u] * TO_EXP2, has_channel);
    var top0 = NO_KEY;
    var den0 = 0.0;
    var a0 = vec4<f32>();
    var b0 = vec4<f32>();
    let at_q1 = (col * LDQ + (head0 + min(1u, n_head - 1u)) * D + from_channel) / 4u;
    let qa1 = select(vec4<f32>(), q[at_q1] * TO_EXP2, has_channel);
    let qb1 = select(vec4<f32>(), q[at_q1 + 1u] * TO_EXP2, has_channel);
    var top1 = NO_KEY;
    var den1 = 0.0;
    var a1 = vec4<f32>();
    var b1 = vec4<f32>();
    let at_q2 = (col * LDQ + (head0 + min(2u, n_head - 1u)) * D + from_channel) / 4u;
    let qa2 = select(vec4<f32>(), q[at_q2] * TO_EXP2, has_channel);
    let qb2 = select(vec4<f32>(), q[at_q2 + 1u] * TO_EXP2, has_channel);
    var top2 = NO_KEY;
    var den2 = 0.0;
    var a2 = vec4<f32>();
    var b2 = vec4<f32>();
    let at_q3 = (col * LDQ + (head0 + min(3u, n_head - 1u)) * D + from_channel) / 4u;
    let qa3 = select(vec4<f32>(), q[at_q3] * TO_EXP2, has_channel);
    let qb3 = select(vec4<f32>(), q[at_q3 + 1u] * TO_EXP2, has_channel);
    var top3 = NO_KEY;
    var den3 = 0.0;
    var a3 = vec4<f32>();
    var b3 = vec4<f32>();
    let at_q4 = (col * LDQ + (head0 + min(4u, n_head - 1u)) * D + from_channel) / 4u;
    let qa4 = select(vec4<f32>(), q[at_q4] * TO_EXP2, has_channel);
    let qb4 = select(vec4<f32>(), q[at_q4 + 1u] * TO_EXP2, has_channel);
    var top4 = NO_KEY;
    var den4 = 0.0;
    var a4 = vec4<f32>();
    var b4 = vec4<f32>();
    let at_q5 = (col * LDQ + (head0 + min(5u, n_head - 1u)) * D + from_channel) / 4u;
    let qa5 = select(vec4<f32>(), q[at_q5] * TO_EXP2, has_channel);
    let qb5 = select(vec4<f32>(), q[at_q5 + 1u] * TO_EXP2, has_channel);
    var top5 = NO_KEY;
    var den5 = 0.0;
    var a5 = vec4<f32>();
    var b5 = vec4<f32>();
    let at_q6 = (col * LDQ + (head0 + min(6u, n_head - 1u)) * D + from_channel) / 4u;
    let qa6 = select(vec4<f32>(), q[at_q6] * TO_EXP2, has_channel);
    let qb6 = select(vec4<f32>(), q[at_q6 + 1u] * TO_EXP2, has_channel);
    var top6 = NO_KEY;
    var den6 = 0.0;
    var a6 = vec4<f32>();
    var b6 = vec4<f32>();
    let at_q7 = (col * LDQ + (head0 + min(7u, n_head - 1u)) * D + from_channel) / 4u;
    let qa7 = select(vec4<f32>(), q[at_q7] * TO_EXP2, has_channel);
    let qb7 = select(vec4<f32>(), q[at_q7 + 1u] * TO_EXP2, has_channel);
    var top7 = NO_KEY;
    var den7 = 0.0;
    var a7 = vec4<f32>();
    var b7 = vec4<f32>();

    for (var base = start; base < end; base += 4u * rows) {
        // All loads first: four keys and their values are under way at once.
        let key0 = base + 0u * rows + my_row;
        let at0 = min(key0, end - 1u);
        let cell0 = kv_cell(page_of(seq, at0), at0 % PAGE, kv_head) + from_channel;
        let key1 = base + 1u * rows + my_row;
        let at1 = min(key1, end - 1u);
        let cell1 = kv_cell(page_of(seq, at1), at1 % PAGE, kv_head) + from_channel;
        let key2 = base + 2u * rows + my_row;
        let at2 = min(key2, end - 1u);
        let cell2 = kv_cell(page_of(seq, at2), at2 % PAGE, kv_head) + from_channel;
        let key3 = base + 3u * rows + my_row;
        let at3 = min(key3, end - 1u);
        let cell3 = kv_cell(page_of(seq, at3), at3 % PAGE, kv_head) + from_channel;
        let k0 = kv_get8(0u, cell0);
        let k1 = kv_get8(0u, cell1);
        let k2 = kv_get8(0u, cell2);
        let k3 = kv_get8(0u, cell3);
        let v0 = kv_get8(V0, cell0);
        let v1 = kv_get8(V0, cell1);
        let v2 = kv_get8(V0, cell2);
        let v3 = kv_get8(V0, cell3);
        var s00 = NO_KEY;
        var s10 = NO_KEY;
        var s20 = NO_KEY;
        var s30 = NO_KEY;
        var s40 = NO_KEY;
        var s50 = NO_KEY;
        var s60 = NO_KEY;
        var s70 = NO_KEY;
        if (base + 0u * rows < end) {
            s00 = dot(qa0, k0.a) + dot(qb0, k0.b);
            s10 = dot(qa1, k0.a) + dot(qb1, k0.b);
            s20 = dot(qa2, k0.a) + dot(qb2, k0.b);
            s30 = dot(qa3, k0.a) + dot(qb3, k0.b);
            s40 = dot(qa4, k0.a) + dot(qb4, k0.b);
            s50 = dot(qa5, k0.a) + dot(qb5, k0.b);
            s60 = dot(qa6, k0.a) + dot(qb6, k0.b);
            s70 = dot(qa7, k0.a) + dot(qb7, k0.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s00 += subgroupShuffleXor(s00, m);
                s10 += subgroupShuffleXor(s10, m);
                s20 += subgroupShuffleXor(s20, m);
                s30 += subgroupShuffleXor(s30, m);
                s40 += subgroupShuffleXor(s40, m);
                s50 += subgroupShuffleXor(s50, m);
                s60 += subgroupShuffleXor(s60, m);
                s70 += subgroupShuffleXor(s70, m);
            }
            s00 = select(NO_KEY, s00, key0 < end);
            s10 = select(NO_KEY, s10, key0 < end);
            s20 = select(NO_KEY, s20, key0 < end);
            s30 = select(NO_KEY, s30, key0 < end);
            s40 = select(NO_KEY, s40, key0 < end);
            s50 = select(NO_KEY, s50, key0 < end);
            s60 = select(NO_KEY, s60, key0 < end);
            s70 = select(NO_KEY, s70, key0 < end);
        }
        var s01 = NO_KEY;
        var s11 = NO_KEY;
        var s21 = NO_KEY;
        var s31 = NO_KEY;
        var s41 = NO_KEY;
        var s51 = NO_KEY;
        var s61 = NO_KEY;
        var s71 = NO_KEY;
        if (base + 1u * rows < end) {
            s01 = dot(qa0, k1.a) + dot(qb0, k1.b);
            s11 = dot(qa1, k1.a) + dot(qb1, k1.b);
            s21 = dot(qa2, k1.a) + dot(qb2, k1.b);
            s31 = dot(qa3, k1.a) + dot(qb3, k1.b);
            s41 = dot(qa4, k1.a) + dot(qb4, k1.b);
            s51 = dot(qa5, k1.a) + dot(qb5, k1.b);
            s61 = dot(qa6, k1.a) + dot(qb6, k1.b);
            s71 = dot(qa7, k1.a) + dot(qb7, k1.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s01 += subgroupShuffleXor(s01, m);
                s11 += subgroupShuffleXor(s11, m);
                s21 += subgroupShuffleXor(s21, m);
                s31 += subgroupShuffleXor(s31, m);
                s41 += subgroupShuffleXor(s41, m);
                s51 += subgroupShuffleXor(s51, m);
                s61 += subgroupShuffleXor(s61, m);
                s71 += subgroupShuffleXor(s71, m);
            }
            s01 = select(NO_KEY, s01, key1 < end);
            s11 = select(NO_KEY, s11, key1 < end);
            s21 = select(NO_KEY, s21, key1 < end);
            s31 = select(NO_KEY, s31, key1 < end);
            s41 = select(NO_KEY, s41, key1 < end);
            s51 = select(NO_KEY, s51, key1 < end);
            s61 = select(NO_KEY, s61, key1 < end);
            s71 = select(NO_KEY, s71, key1 < end);
        }
        var s02 = NO_KEY;
        var s12 = NO_KEY;
        var s22 = NO_KEY;
        var s32 = NO_KEY;
        var s42 = NO_KEY;
        var s52 = NO_KEY;
        var s62 = NO_KEY;
        var s72 = NO_KEY;
        if (base + 2u * rows < end) {
            s02 = dot(qa0, k2.a) + dot(qb0, k2.b);
            s12 = dot(qa1, k2.a) + dot(qb1, k2.b);
            s22 = dot(qa2, k2.a) + dot(qb2, k2.b);
            s32 = dot(qa3, k2.a) + dot(qb3, k2.b);
            s42 = dot(qa4, k2.a) + dot(qb4, k2.b);
            s52 = dot(qa5, k2.a) + dot(qb5, k2.b);
            s62 = dot(qa6, k2.a) + dot(qb6, k2.b);
            s72 = dot(qa7, k2.a) + dot(qb7, k2.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s02 += subgroupShuffleXor(s02, m);
                s12 += subgroupShuffleXor(s12, m);
                s22 += subgroupShuffleXor(s22, m);
                s32 += subgroupShuffleXor(s32, m);
                s42 += subgroupShuffleXor(s42, m);
                s52 += subgroupShuffleXor(s52, m);
                s62 += subgroupShuffleXor(s62, m);
                s72 += subgroupShuffleXor(s72, m);
            }
            s02 = select(NO_KEY, s02, key2 < end);
            s12 = select(NO_KEY, s12, key2 < end);
            s22 = select(NO_KEY, s22, key2 < end);
            s32 = select(NO_KEY, s32, key2 < end);
            s42 = select(NO_KEY, s42, key2 < end);
            s52 = select(NO_KEY, s52, key2 < end);
            s62 = select(NO_KEY, s62, key2 < end);
            s72 = select(NO_KEY, s72, key2 < end);
        }
        var s03 = NO_KEY;
        var s13 = NO_KEY;
        var s23 = NO_KEY;
        var s33 = NO_KEY;
        var s43 = NO_KEY;
        var s53 = NO_KEY;
        var s63 = NO_KEY;
        var s73 = NO_KEY;
        if (base + 3u * rows < end) {
            s03 = dot(qa0, k3.a) + dot(qb0, k3.b);
            s13 = dot(qa1, k3.a) + dot(qb1, k3.b);
            s23 = dot(qa2, k3.a) + dot(qb2, k3.b);
            s33 = dot(qa3, k3.a) + dot(qb3, k3.b);
            s43 = dot(qa4, k3.a) + dot(qb4, k3.b);
            s53 = dot(qa5, k3.a) + dot(qb5, k3.b);
            s63 = dot(qa6, k3.a) + dot(qb6, k3.b);
            s73 = dot(qa7, k3.a) + dot(qb7, k3.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s03 += subgroupShuffleXor(s03, m);
                s13 += subgroupShuffleXor(s13, m);
                s23 += subgroupShuffleXor(s23, m);
                s33 += subgroupShuffleXor(s33, m);
                s43 += subgroupShuffleXor(s43, m);
                s53 += subgroupShuffleXor(s53, m);
                s63 += subgroupShuffleXor(s63, m);
                s73 += subgroupShuffleXor(s73, m);
            }
            s03 = select(NO_KEY, s03, key3 < end);
            s13 = select(NO_KEY, s13, key3 < end);
            s23 = select(NO_KEY, s23, key3 < end);
            s33 = select(NO_KEY, s33, key3 < end);
            s43 = select(NO_KEY, s43, key3 < end);
            s53 = select(NO_KEY, s53, key3 < end);
            s63 = select(NO_KEY, s63, key3 < end);
            s73 = select(NO_KEY, s73, key3 < end);
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
        {
            let high = max(top4, max(max(s40, s41), max(s42, s43)));
            let fade = exp2(top4 - high);
            den4 *= fade;
            a4 *= fade;
            b4 *= fade;
            top4 = high;
        }
        // Threads that have seen no key keep exponentials of 0.
        let least4 = max(top4, -1.0e38);
        {
            let high = max(top5, max(max(s50, s51), max(s52, s53)));
            let fade = exp2(top5 - high);
            den5 *= fade;
            a5 *= fade;
            b5 *= fade;
            top5 = high;
        }
        // Threads that have seen no key keep exponentials of 0.
        let least5 = max(top5, -1.0e38);
        {
            let high = max(top6, max(max(s60, s61), max(s62, s63)));
            let fade = exp2(top6 - high);
            den6 *= fade;
            a6 *= fade;
            b6 *= fade;
            top6 = high;
        }
        // Threads that have seen no key keep exponentials of 0.
        let least6 = max(top6, -1.0e38);
        {
            let high = max(top7, max(max(s70, s71), max(s72, s73)));
            let fade = exp2(top7 - high);
            den7 *= fade;
            a7 *= fade;
            b7 *= fade;
            top7 = high;
        }
        // Threads that have seen no key keep exponentials of 0.
        let least7 = max(top7, -1.0e38);
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
            let p4 = exp2(s40 - least4);
            den4 += p4;
            a4 += p4 * v0.a;
            b4 += p4 * v0.b;
            let p5 = exp2(s50 - least5);
            den5 += p5;
            a5 += p5 * v0.a;
            b5 += p5 * v0.b;
            let p6 = exp2(s60 - least6);
            den6 += p6;
            a6 += p6 * v0.a;
            b6 += p6 * v0.b;
            let p7 = exp2(s70 - least7);
            den7 += p7;
            a7 += p7 * v0.a;
            b7 += p7 * v0.b;
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
            let p4 = exp2(s41 - least4);
            den4 += p4;
            a4 += p4 * v1.a;
            b4 += p4 * v1.b;
            let p5 = exp2(s51 - least5);
            den5 += p5;
            a5 += p5 * v1.a;
            b5 += p5 * v1.b;
            let p6 = exp2(s61 - least6);
            den6 += p6;
            a6 += p6 * v1.a;
            b6 += p6 * v1.b;
            let p7 = exp2(s71 - least7);
            den7 += p7;
            a7 += p7 * v1.a;
            b7 += p7 * v1.b;
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
            let p4 = exp2(s42 - least4);
            den4 += p4;
            a4 += p4 * v2.a;
            b4 += p4 * v2.b;
            let p5 = exp2(s52 - least5);
            den5 += p5;
            a5 += p5 * v2.a;
            b5 += p5 * v2.b;
            let p6 = exp2(s62 - least6);
            den6 += p6;
            a6 += p6 * v2.a;
            b6 += p6 * v2.b;
            let p7 = exp2(s72 - least7);
            den7 += p7;
            a7 += p7 * v2.a;
            b7 += p7 * v2.b;
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
            let p4 = exp2(s43 - least4);
            den4 += p4;
            a4 += p4 * v3.a;
            b4 += p4 * v3.b;
            let p5 = exp2(s53 - least5);
            den5 += p5;
            a5 += p5 * v3.a;
            b5 += p5 * v3.b;
            let p6 = exp2(s63 - least6);
            den6 += p6;
            a6 += p6 * v3.a;
            b6 += p6 * v3.b;
            let p7 = exp2(s73 - least7);
            den7 += p7;
            a7 += p7 * v3.a;
            b7 += p7 * v3.b;
        }
    }

    // The groups of a subgroup join through each other's registers, the subgroups through workgroup memory.
    var high0 = top0;
    var high1 = top1;
    var high2 = top2;
    var high3 = top3;
    var high4 = top4;
    var high5 = top5;
    var high6 = top6;
    var high7 = top7;
    for (var m = LANES; m < subgroup_size; m *= 2u) {
        high0 = max(high0, subgroupShuffleXor(high0, m));
        high1 = max(high1, subgroupShuffleXor(high1, m));
        high2 = max(high2, subgroupShuffleXor(high2, m));
        high3 = max(high3, subgroupShuffleXor(high3, m));
        high4 = max(high4, subgroupShuffleXor(high4, m));
        high5 = max(high5, subgroupShuffleXor(high5, m));
        high6 = max(high6, subgroupShuffleXor(high6, m));
        high7 = max(high7, subgroupShuffleXor(high7, m));
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
    {
        let fade = exp2(top4 - high4);
        top4 = high4;
        den4 *= fade;
        a4 *= fade;
        b4 *= fade;
    }
    {
        let fade = exp2(top5 - high5);
        top5 = high5;
        den5 *= fade;
        a5 *= fade;
        b5 *= fade;
    }
    {
        let fade = exp2(top6 - high6);
        top6 = high6;
        den6 *= fade;
        a6 *= fade;
        b6 *= fade;
    }
    {
        let fade = exp2(top7 - high7);
        top7 = high7;
        den7 *= fade;
        a7 *= fade;
        b7 *= fade;
    }
    // While a thread holds several heads, it gives one half of them to its partner for the other half.
    var m = subgroup_size / 2u;
    var head = 0u;
    var held = 8u;
    if (m >= LANES) {
        let upper = (lane & m) != 0u;
        den0 = select(den0, den4, upper) + subgroupShuffleXor(select(den4, den0, upper), m);
        a0 = select(a0, a4, upper) + subgroupShuffleXor(select(a4, a0, upper), m);
        b0 = select(b0, b4, upper) + subgroupShuffleXor(select(b4, b0, upper), m);
        den1 = select(den1, den5, upper) + subgroupShuffleXor(select(den5, den1, upper), m);
        a1 = select(a1, a5, upper) + subgroupShuffleXor(select(a5, a1, upper), m);
        b1 = select(b1, b5, upper) + subgroupShuffleXor(select(b5, b1, upper), m);
        den2 = select(den2, den6, upper) + subgroupShuffleXor(select(den6, den2, upper), m);
        a2 = select(a2, a6, upper) + subgroupShuffleXor(select(a6, a2, upper), m);
        b2 = select(b2, b6, upper) + subgroupShuffleXor(select(b6, b2, upper), m);
        den3 = select(den3, den7, upper) + subgroupShuffleXor(select(den7, den3, upper), m);
        a3 = select(a3, a7, upper) + subgroupShuffleXor(select(a7, a3, upper), m);
        b3 = select(b3, b7, upper) + subgroupShuffleXor(select(b7, b3, upper), m);
        head += select(0u, 4u, upper);
        held = 4u;
        m /= 2u;
    }
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
    if (lane % (subgroup_size * held / 8u) < LANES && has_channel) {
        if (0u < held) {
            let at = subgroup * 8u + head + 0u;
            sums[(at * D + channel) / 4u] = a0;
            sums[(at * D + channel) / 4u + 1u] = b0;
            if (channel == 0u) {
                dens[at] = den0;
            }
        }
        if (1u < held) {
            let at = subgroup * 8u + head + 1u;
            sums[(at * D + channel) / 4u] = a1;
            sums[(at * D + channel) / 4u + 1u] = b1;
            if (channel == 0u) {
                dens[at] = den1;
            }
        }
        if (2u < held) {
            let at = subgroup * 8u + head + 2u;
            sums[(at * D + channel) / 4u] = a2;
            sums[(at * D + channel) / 4u + 1u] = b2;
            if (channel == 0u) {
                dens[at] = den2;
            }
        }
        if (3u < held) {
            let at = subgroup * 8u + head + 3u;
            sums[(at * D + channel) / 4u] = a3;
            sums[(at * D + channel) / 4u + 1u] = b3;
            if (channel == 0u) {
                dens[at] = den3;
            }
        }
        if (4u < held) {
            let at = subgroup * 8u + head + 4u;
            sums[(at * D + channel) / 4u] = a4;
            sums[(at * D + channel) / 4u + 1u] = b4;
            if (channel == 0u) {
                dens[at] = den4;
            }
        }
        if (5u < held) {
            let at = subgroup * 8u + head + 5u;
            sums[(at * D + channel) / 4u] = a5;
            sums[(at * D + channel) / 4u + 1u] = b5;
            if (channel == 0u) {
                dens[at] = den5;
            }
        }
        if (6u < held) {
            let at = subgroup * 8u + head + 6u;
            sums[(at * D + channel) / 4u] = a6;
            sums[(at * D + channel) / 4u + 1u] = b6;
            if (channel == 0u) {
                dens[at] = den6;
            }
        }
        if (7u < held) {
            let at = subgroup * 8u + head + 7u;
            sums[(at * D + channel) / 4u] = a7;
            sums[(at * D + channel) / 4u + 1u] = b7;
            if (channel == 0u) {
                dens[at] = den7;
            }
        }
    }
    if (lane == 0u) {
        tops[subgroup * 8u + 0u] = top0;
        tops[subgroup * 8u + 1u] = top1;
        tops[subgroup * 8u + 2u] = top2;
        tops[subgroup * 8u + 3u] = top3;
        tops[subgroup * 8u + 4u] = top4;
        tops[subgroup * 8u + 5u] = top5;
        tops[subgroup * 8u + 6u] = top6;
        tops[subgroup * 8u + 7u] = top7;
    }
    workgroupBarrier();
    for (var i = tid; i < n_head * D / 4u; i += WG) {
        let h = i * 4u / D;
        var top = NO_KEY;
        for (var s = 0u; s < WG / subgroup_size; s++) {
            top = max(top, tops[s * 8u + h]);
        }
        var den = 0.0;
        var o = vec4<f32>();
        for (var s = 0u; s < WG / subgroup_size; s++) {
            let fade = exp2(tops[s * 8u + h] - top);
            den += fade * dens[s * 8u + h];
            o += fade * sums[s * 8u * (D / 4u) + i];
        }
        let c = i * 4u % D;
        let part = ((col * N_HEAD + head0 + h) * SPLITS + split) * (D + 4u);
        y[(part + c) / 4u] = o;
        if (c == 0u) {
            y[(part + D) / 4u] = vec4<f32>(top, den, 0.0, 0.0);
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
        stats[i] = y[(((col * N_HEAD + head0) * SPLITS + i) * (D + 4u) + D) / 4u].xy;
    }
    workgroupBarrier();
    // Quads of the result are shared out to teams of threads, each team takes every n-th part.
    let n_quad = n_head * D / 4u;
    let wide = min(n_quad, WG);
    let n_team = min(WG / wide, WG / SG_MIN);
    let team = tid / wide;
    for (var i0 = 0u; i0 < n_quad; i0 += wide) {
        let i = i0 + tid % wide;
        let live = team < n_team && i < n_quad;
        let h = min(i, n_quad - 1u) * 4u / D;
        var top = NO_KEY;
        for (var s = 0u; s < SPLITS; s++) {
            top = max(top, stats[h * SPLITS + s].x);
        }
        var o = vec4<f32>();
        if (live) {
            for (var s = team; s < SPLITS; s += n_team) {
                let part = ((col * N_HEAD + head0 + h) * SPLITS + s) * (D + 4u);
                o += exp2(stats[h * SPLITS + s].x - top) * y[part / 4u + i % (D / 4u)];
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
            out[(col * LDY + head0 * D) / 4u + i] = o / den;
        }
        workgroupBarrier();
    }
}
