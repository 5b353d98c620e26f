// attention: heads=8 set=sg
override WG: u32 = 64u;
override T: u32 = 64u;
override SG_MIN: u32 = 4u;override N_HEAD: u32 = 1u;
override SPLITS: u32 = 1u;
override SCALE: f32 = 1.0;
override LDQ: u32 = 64u;
override LDY: u32 = 64u;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> kv: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> step: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
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
override KV_F16: bool = true;
override V0: u32 = 0u;
// Index of channel 0 of a cell, in values.
fn kv_cell(page: u32, slot: u32, head: u32) -> u32 { return ((page * N_KV + head) * PAGE + slot) * D; }

// Channels i to i + 7 (i a multiple of 8) of the half of the cache at word `half`.
struct Eight { a: vec4<f32>, b: vec4<f32> }
// The same as they are stored, for loads that run ahead.
struct RawEight { a: vec4<u32>, b: vec4<u32> }
fn kv_load8(half: u32, i: u32) -> RawEight {
    if (KV_F16) {
        return RawEight(kv[half / 4u + i / 8u], vec4<u32>());
    }
    let at = half / 4u + i / 4u;
    return RawEight(kv[at], kv[at + 1u]);
}
fn kv_decode8(v: RawEight) -> Eight {
    if (KV_F16) {
        return Eight(
            vec4<f32>(unpack2x16float(v.a.x), unpack2x16float(v.a.y)),
            vec4<f32>(unpack2x16float(v.a.z), unpack2x16float(v.a.w)),
        );
    }
    return Eight(bitcast<vec4<f32>>(v.a), bitcast<vec4<f32>>(v.b));
}
fn kv_get8(half: u32, i: u32) -> Eight { return kv_decode8(kv_load8(half, i)); }
fn kv_get4(half: u32, i: u32) -> vec4<f32> {
    if (KV_F16) {
        let p = half + i / 2u;
        let v = kv[p / 4u];
        let q = select(v.xy, v.zw, (p & 2u) != 0u);
        return vec4<f32>(unpack2x16float(q.x), unpack2x16float(q.y));
    }
    return bitcast<vec4<f32>>(kv[(half + i) / 4u]);
}

var<workgroup> red: array<f32, 8u * WG>;

var<workgroup> qs: array<vec4<f32>, 8u * D / 4u>;
var<workgroup> ps: array<f32, 8u * WG>;
var<workgroup> sums: array<vec4<f32>, 8u * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup_id: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
    let tid = subgroup_id * subgroup_size + subgroup_lane;
    let team = tid / T;
    let lane = tid % T;

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

    for (var i = tid; i < 8u * D / 4u; i += WG) {
        let h = min(i / (D / 4u), n_head - 1u);
        qs[i] = q[(col * LDQ + (head0 + h) * D) / 4u + i % (D / 4u)] * SCALE;
    }
    let d4 = D / 4u;
    let groups_of_keys = WG / d4;
    let my_group = tid / d4;
    let my_channel = tid % d4;
    var max0 = -3.0e38;
    var den0 = 0.0;
    var out0 = vec4<f32>();
    var max1 = -3.0e38;
    var den1 = 0.0;
    var out1 = vec4<f32>();
    var max2 = -3.0e38;
    var den2 = 0.0;
    var out2 = vec4<f32>();
    var max3 = -3.0e38;
    var den3 = 0.0;
    var out3 = vec4<f32>();
    var max4 = -3.0e38;
    var den4 = 0.0;
    var out4 = vec4<f32>();
    var max5 = -3.0e38;
    var den5 = 0.0;
    var out5 = vec4<f32>();
    var max6 = -3.0e38;
    var den6 = 0.0;
    var out6 = vec4<f32>();
    var max7 = -3.0e38;
    var den7 = 0.0;
    var out7 = vec4<f32>();
    workgroupBarrier();

    for (var base = start; base < end; base += WG) {
        let pos = base + tid;
        var s0 = -3.0e38;
        var s1 = -3.0e38;
        var s2 = -3.0e38;
        var s3 = -3.0e38;
        var s4 = -3.0e38;
        var s5 = -3.0e38;
        var s6 = -3.0e38;
        var s7 = -3.0e38;
        if (pos < end) {
            let cell = kv_cell(page_of(seq, pos), pos % PAGE, kv_head);
            s0 = 0.0;
            s1 = 0.0;
            s2 = 0.0;
            s3 = 0.0;
            s4 = 0.0;
            s5 = 0.0;
            s6 = 0.0;
            s7 = 0.0;
            // Eight channels at once, four loads under way.
            var i = 0u;
            for (; i + 4u <= D / 8u; i += 4u) {
                let k0 = kv_get8(0u, cell + 8u * (i + 0u));
                let k1 = kv_get8(0u, cell + 8u * (i + 1u));
                let k2 = kv_get8(0u, cell + 8u * (i + 2u));
                let k3 = kv_get8(0u, cell + 8u * (i + 3u));
                s0 += dot(k0.a, qs[0u * d4 + 2u * i + 0u]) + dot(k0.b, qs[0u * d4 + 2u * i + 1u]);
                s1 += dot(k0.a, qs[1u * d4 + 2u * i + 0u]) + dot(k0.b, qs[1u * d4 + 2u * i + 1u]);
                s2 += dot(k0.a, qs[2u * d4 + 2u * i + 0u]) + dot(k0.b, qs[2u * d4 + 2u * i + 1u]);
                s3 += dot(k0.a, qs[3u * d4 + 2u * i + 0u]) + dot(k0.b, qs[3u * d4 + 2u * i + 1u]);
                s4 += dot(k0.a, qs[4u * d4 + 2u * i + 0u]) + dot(k0.b, qs[4u * d4 + 2u * i + 1u]);
                s5 += dot(k0.a, qs[5u * d4 + 2u * i + 0u]) + dot(k0.b, qs[5u * d4 + 2u * i + 1u]);
                s6 += dot(k0.a, qs[6u * d4 + 2u * i + 0u]) + dot(k0.b, qs[6u * d4 + 2u * i + 1u]);
                s7 += dot(k0.a, qs[7u * d4 + 2u * i + 0u]) + dot(k0.b, qs[7u * d4 + 2u * i + 1u]);
                s0 += dot(k1.a, qs[0u * d4 + 2u * i + 2u]) + dot(k1.b, qs[0u * d4 + 2u * i + 3u]);
                s1 += dot(k1.a, qs[1u * d4 + 2u * i + 2u]) + dot(k1.b, qs[1u * d4 + 2u * i + 3u]);
                s2 += dot(k1.a, qs[2u * d4 + 2u * i + 2u]) + dot(k1.b, qs[2u * d4 + 2u * i + 3u]);
                s3 += dot(k1.a, qs[3u * d4 + 2u * i + 2u]) + dot(k1.b, qs[3u * d4 + 2u * i + 3u]);
                s4 += dot(k1.a, qs[4u * d4 + 2u * i + 2u]) + dot(k1.b, qs[4u * d4 + 2u * i + 3u]);
                s5 += dot(k1.a, qs[5u * d4 + 2u * i + 2u]) + dot(k1.b, qs[5u * d4 + 2u * i + 3u]);
                s6 += dot(k1.a, qs[6u * d4 + 2u * i + 2u]) + dot(k1.b, qs[6u * d4 + 2u * i + 3u]);
                s7 += dot(k1.a, qs[7u * d4 + 2u * i + 2u]) + dot(k1.b, qs[7u * d4 + 2u * i + 3u]);
                s0 += dot(k2.a, qs[0u * d4 + 2u * i + 4u]) + dot(k2.b, qs[0u * d4 + 2u * i + 5u]);
                s1 += dot(k2.a, qs[1u * d4 + 2u * i + 4u]) + dot(k2.b, qs[1u * d4 + 2u * i + 5u]);
                s2 += dot(k2.a, qs[2u * d4 + 2u * i + 4u]) + dot(k2.b, qs[2u * d4 + 2u * i + 5u]);
                s3 += dot(k2.a, qs[3u * d4 + 2u * i + 4u]) + dot(k2.b, qs[3u * d4 + 2u * i + 5u]);
                s4 += dot(k2.a, qs[4u * d4 + 2u * i + 4u]) + dot(k2.b, qs[4u * d4 + 2u * i + 5u]);
                s5 += dot(k2.a, qs[5u * d4 + 2u * i + 4u]) + dot(k2.b, qs[5u * d4 + 2u * i + 5u]);
                s6 += dot(k2.a, qs[6u * d4 + 2u * i + 4u]) + dot(k2.b, qs[6u * d4 + 2u * i + 5u]);
                s7 += dot(k2.a, qs[7u * d4 + 2u * i + 4u]) + dot(k2.b, qs[7u * d4 + 2u * i + 5u]);
                s0 += dot(k3.a, qs[0u * d4 + 2u * i + 6u]) + dot(k3.b, qs[0u * d4 + 2u * i + 7u]);
                s1 += dot(k3.a, qs[1u * d4 + 2u * i + 6u]) + dot(k3.b, qs[1u * d4 + 2u * i + 7u]);
                s2 += dot(k3.a, qs[2u * d4 + 2u * i + 6u]) + dot(k3.b, qs[2u * d4 + 2u * i + 7u]);
                s3 += dot(k3.a, qs[3u * d4 + 2u * i + 6u]) + dot(k3.b, qs[3u * d4 + 2u * i + 7u]);
                s4 += dot(k3.a, qs[4u * d4 + 2u * i + 6u]) + dot(k3.b, qs[4u * d4 + 2u * i + 7u]);
                s5 += dot(k3.a, qs[5u * d4 + 2u * i + 6u]) + dot(k3.b, qs[5u * d4 + 2u * i + 7u]);
                s6 += dot(k3.a, qs[6u * d4 + 2u * i + 6u]) + dot(k3.b, qs[6u * d4 + 2u * i + 7u]);
                s7 += dot(k3.a, qs[7u * d4 + 2u * i + 6u]) + dot(k3.b, qs[7u * d4 + 2u * i + 7u]);
            }
            for (; i < D / 8u; i++) {
                let k = kv_get8(0u, cell + 8u * i);
                s0 += dot(k.a, qs[0u * d4 + 2u * i]) + dot(k.b, qs[0u * d4 + 2u * i + 1u]);
                s1 += dot(k.a, qs[1u * d4 + 2u * i]) + dot(k.b, qs[1u * d4 + 2u * i + 1u]);
                s2 += dot(k.a, qs[2u * d4 + 2u * i]) + dot(k.b, qs[2u * d4 + 2u * i + 1u]);
                s3 += dot(k.a, qs[3u * d4 + 2u * i]) + dot(k.b, qs[3u * d4 + 2u * i + 1u]);
                s4 += dot(k.a, qs[4u * d4 + 2u * i]) + dot(k.b, qs[4u * d4 + 2u * i + 1u]);
                s5 += dot(k.a, qs[5u * d4 + 2u * i]) + dot(k.b, qs[5u * d4 + 2u * i + 1u]);
                s6 += dot(k.a, qs[6u * d4 + 2u * i]) + dot(k.b, qs[6u * d4 + 2u * i + 1u]);
                s7 += dot(k.a, qs[7u * d4 + 2u * i]) + dot(k.b, qs[7u * d4 + 2u * i + 1u]);
            }
        }
        var m0 = s0;
        var m1 = s1;
        var m2 = s2;
        var m3 = s3;
        var m4 = s4;
        var m5 = s5;
        var m6 = s6;
        var m7 = s7;
    m0 = subgroupMax(m0);
    m1 = subgroupMax(m1);
    m2 = subgroupMax(m2);
    m3 = subgroupMax(m3);
    m4 = subgroupMax(m4);
    m5 = subgroupMax(m5);
    m6 = subgroupMax(m6);
    m7 = subgroupMax(m7);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = m0;
            red[1u * WG + subgroup_id] = m1;
            red[2u * WG + subgroup_id] = m2;
            red[3u * WG + subgroup_id] = m3;
            red[4u * WG + subgroup_id] = m4;
            red[5u * WG + subgroup_id] = m5;
            red[6u * WG + subgroup_id] = m6;
            red[7u * WG + subgroup_id] = m7;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        m0 = red[0u * WG + first];
        m1 = red[1u * WG + first];
        m2 = red[2u * WG + first];
        m3 = red[3u * WG + first];
        m4 = red[4u * WG + first];
        m5 = red[5u * WG + first];
        m6 = red[6u * WG + first];
        m7 = red[7u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            m0 = max(m0, red[0u * WG + first + i]);
            m1 = max(m1, red[1u * WG + first + i]);
            m2 = max(m2, red[2u * WG + first + i]);
            m3 = max(m3, red[3u * WG + first + i]);
            m4 = max(m4, red[4u * WG + first + i]);
            m5 = max(m5, red[5u * WG + first + i]);
            m6 = max(m6, red[6u * WG + first + i]);
            m7 = max(m7, red[7u * WG + first + i]);
        }
    }

        m0 = max(m0, max0);
        let fade0 = exp(max0 - m0);
        max0 = m0;
        var p0 = select(0.0, exp(s0 - m0), pos < end);
        ps[0u * WG + tid] = p0;
        out0 *= fade0;
        m1 = max(m1, max1);
        let fade1 = exp(max1 - m1);
        max1 = m1;
        var p1 = select(0.0, exp(s1 - m1), pos < end);
        ps[1u * WG + tid] = p1;
        out1 *= fade1;
        m2 = max(m2, max2);
        let fade2 = exp(max2 - m2);
        max2 = m2;
        var p2 = select(0.0, exp(s2 - m2), pos < end);
        ps[2u * WG + tid] = p2;
        out2 *= fade2;
        m3 = max(m3, max3);
        let fade3 = exp(max3 - m3);
        max3 = m3;
        var p3 = select(0.0, exp(s3 - m3), pos < end);
        ps[3u * WG + tid] = p3;
        out3 *= fade3;
        m4 = max(m4, max4);
        let fade4 = exp(max4 - m4);
        max4 = m4;
        var p4 = select(0.0, exp(s4 - m4), pos < end);
        ps[4u * WG + tid] = p4;
        out4 *= fade4;
        m5 = max(m5, max5);
        let fade5 = exp(max5 - m5);
        max5 = m5;
        var p5 = select(0.0, exp(s5 - m5), pos < end);
        ps[5u * WG + tid] = p5;
        out5 *= fade5;
        m6 = max(m6, max6);
        let fade6 = exp(max6 - m6);
        max6 = m6;
        var p6 = select(0.0, exp(s6 - m6), pos < end);
        ps[6u * WG + tid] = p6;
        out6 *= fade6;
        m7 = max(m7, max7);
        let fade7 = exp(max7 - m7);
        max7 = m7;
        var p7 = select(0.0, exp(s7 - m7), pos < end);
        ps[7u * WG + tid] = p7;
        out7 *= fade7;
    p0 = subgroupAdd(p0);
    p1 = subgroupAdd(p1);
    p2 = subgroupAdd(p2);
    p3 = subgroupAdd(p3);
    p4 = subgroupAdd(p4);
    p5 = subgroupAdd(p5);
    p6 = subgroupAdd(p6);
    p7 = subgroupAdd(p7);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = p0;
            red[1u * WG + subgroup_id] = p1;
            red[2u * WG + subgroup_id] = p2;
            red[3u * WG + subgroup_id] = p3;
            red[4u * WG + subgroup_id] = p4;
            red[5u * WG + subgroup_id] = p5;
            red[6u * WG + subgroup_id] = p6;
            red[7u * WG + subgroup_id] = p7;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        p0 = red[0u * WG + first];
        p1 = red[1u * WG + first];
        p2 = red[2u * WG + first];
        p3 = red[3u * WG + first];
        p4 = red[4u * WG + first];
        p5 = red[5u * WG + first];
        p6 = red[6u * WG + first];
        p7 = red[7u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            p0 += red[0u * WG + first + i];
            p1 += red[1u * WG + first + i];
            p2 += red[2u * WG + first + i];
            p3 += red[3u * WG + first + i];
            p4 += red[4u * WG + first + i];
            p5 += red[5u * WG + first + i];
            p6 += red[6u * WG + first + i];
            p7 += red[7u * WG + first + i];
        }
    }

        den0 = den0 * fade0 + p0;
        den1 = den1 * fade1 + p1;
        den2 = den2 * fade2 + p2;
        den3 = den3 * fade3 + p3;
        den4 = den4 * fade4 + p4;
        den5 = den5 * fade5 + p5;
        den6 = den6 * fade6 + p6;
        den7 = den7 * fade7 + p7;
        workgroupBarrier();
        if (my_group < groups_of_keys) {
            let n = min(WG, end - base);
            var j = my_group;
            for (; j + 3u * groups_of_keys < n; j += 4u * groups_of_keys) {
                let at0 = base + j + 0u * groups_of_keys;
                let v0 = kv_get4(V0, kv_cell(page_of(seq, at0), at0 % PAGE, kv_head) + 4u * my_channel);
                let at1 = base + j + 1u * groups_of_keys;
                let v1 = kv_get4(V0, kv_cell(page_of(seq, at1), at1 % PAGE, kv_head) + 4u * my_channel);
                let at2 = base + j + 2u * groups_of_keys;
                let v2 = kv_get4(V0, kv_cell(page_of(seq, at2), at2 % PAGE, kv_head) + 4u * my_channel);
                let at3 = base + j + 3u * groups_of_keys;
                let v3 = kv_get4(V0, kv_cell(page_of(seq, at3), at3 % PAGE, kv_head) + 4u * my_channel);
                out0 += ps[0u * WG + j + 0u * groups_of_keys] * v0;
                out1 += ps[1u * WG + j + 0u * groups_of_keys] * v0;
                out2 += ps[2u * WG + j + 0u * groups_of_keys] * v0;
                out3 += ps[3u * WG + j + 0u * groups_of_keys] * v0;
                out4 += ps[4u * WG + j + 0u * groups_of_keys] * v0;
                out5 += ps[5u * WG + j + 0u * groups_of_keys] * v0;
                out6 += ps[6u * WG + j + 0u * groups_of_keys] * v0;
                out7 += ps[7u * WG + j + 0u * groups_of_keys] * v0;
                out0 += ps[0u * WG + j + 1u * groups_of_keys] * v1;
                out1 += ps[1u * WG + j + 1u * groups_of_keys] * v1;
                out2 += ps[2u * WG + j + 1u * groups_of_keys] * v1;
                out3 += ps[3u * WG + j + 1u * groups_of_keys] * v1;
                out4 += ps[4u * WG + j + 1u * groups_of_keys] * v1;
                out5 += ps[5u * WG + j + 1u * groups_of_keys] * v1;
                out6 += ps[6u * WG + j + 1u * groups_of_keys] * v1;
                out7 += ps[7u * WG + j + 1u * groups_of_keys] * v1;
                out0 += ps[0u * WG + j + 2u * groups_of_keys] * v2;
                out1 += ps[1u * WG + j + 2u * groups_of_keys] * v2;
                out2 += ps[2u * WG + j + 2u * groups_of_keys] * v2;
                out3 += ps[3u * WG + j + 2u * groups_of_keys] * v2;
                out4 += ps[4u * WG + j + 2u * groups_of_keys] * v2;
                out5 += ps[5u * WG + j + 2u * groups_of_keys] * v2;
                out6 += ps[6u * WG + j + 2u * groups_of_keys] * v2;
                out7 += ps[7u * WG + j + 2u * groups_of_keys] * v2;
                out0 += ps[0u * WG + j + 3u * groups_of_keys] * v3;
                out1 += ps[1u * WG + j + 3u * groups_of_keys] * v3;
                out2 += ps[2u * WG + j + 3u * groups_of_keys] * v3;
                out3 += ps[3u * WG + j + 3u * groups_of_keys] * v3;
                out4 += ps[4u * WG + j + 3u * groups_of_keys] * v3;
                out5 += ps[5u * WG + j + 3u * groups_of_keys] * v3;
                out6 += ps[6u * WG + j + 3u * groups_of_keys] * v3;
                out7 += ps[7u * WG + j + 3u * groups_of_keys] * v3;
            }
            for (; j < n; j += groups_of_keys) {
                let cell = kv_cell(page_of(seq, base + j), (base + j) % PAGE, kv_head);
                let v = kv_get4(V0, cell + 4u * my_channel);
                out0 += ps[0u * WG + j] * v;
                out1 += ps[1u * WG + j] * v;
                out2 += ps[2u * WG + j] * v;
                out3 += ps[3u * WG + j] * v;
                out4 += ps[4u * WG + j] * v;
                out5 += ps[5u * WG + j] * v;
                out6 += ps[6u * WG + j] * v;
                out7 += ps[7u * WG + j] * v;
            }
        }
        workgroupBarrier();
    }

    workgroupBarrier();
    sums[0u * WG + tid] = out0;
    sums[1u * WG + tid] = out1;
    sums[2u * WG + tid] = out2;
    sums[3u * WG + tid] = out3;
    sums[4u * WG + tid] = out4;
    sums[5u * WG + tid] = out5;
    sums[6u * WG + tid] = out6;
    sums[7u * WG + tid] = out7;
    workgroupBarrier();
    if (tid >= d4) {
        return;
    }
    if (0u < n_head) {
        var o = sums[0u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[0u * WG + g * d4 + tid];
        }
        let h = head0 + 0u;
        if (SPLITS == 1u) {
            o = o / den0;
            let at = col * LDY + h * D + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (D + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + D] = max0;
                y[part + D + 1u] = den0;
                y[part + D + 2u] = 0.0;
                y[part + D + 3u] = 0.0;
            }
        }
    }
    if (1u < n_head) {
        var o = sums[1u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[1u * WG + g * d4 + tid];
        }
        let h = head0 + 1u;
        if (SPLITS == 1u) {
            o = o / den1;
            let at = col * LDY + h * D + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (D + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + D] = max1;
                y[part + D + 1u] = den1;
                y[part + D + 2u] = 0.0;
                y[part + D + 3u] = 0.0;
            }
        }
    }
    if (2u < n_head) {
        var o = sums[2u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[2u * WG + g * d4 + tid];
        }
        let h = head0 + 2u;
        if (SPLITS == 1u) {
            o = o / den2;
            let at = col * LDY + h * D + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (D + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + D] = max2;
                y[part + D + 1u] = den2;
                y[part + D + 2u] = 0.0;
                y[part + D + 3u] = 0.0;
            }
        }
    }
    if (3u < n_head) {
        var o = sums[3u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[3u * WG + g * d4 + tid];
        }
        let h = head0 + 3u;
        if (SPLITS == 1u) {
            o = o / den3;
            let at = col * LDY + h * D + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (D + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + D] = max3;
                y[part + D + 1u] = den3;
                y[part + D + 2u] = 0.0;
                y[part + D + 3u] = 0.0;
            }
        }
    }
    if (4u < n_head) {
        var o = sums[4u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[4u * WG + g * d4 + tid];
        }
        let h = head0 + 4u;
        if (SPLITS == 1u) {
            o = o / den4;
            let at = col * LDY + h * D + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (D + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + D] = max4;
                y[part + D + 1u] = den4;
                y[part + D + 2u] = 0.0;
                y[part + D + 3u] = 0.0;
            }
        }
    }
    if (5u < n_head) {
        var o = sums[5u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[5u * WG + g * d4 + tid];
        }
        let h = head0 + 5u;
        if (SPLITS == 1u) {
            o = o / den5;
            let at = col * LDY + h * D + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (D + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + D] = max5;
                y[part + D + 1u] = den5;
                y[part + D + 2u] = 0.0;
                y[part + D + 3u] = 0.0;
            }
        }
    }
    if (6u < n_head) {
        var o = sums[6u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[6u * WG + g * d4 + tid];
        }
        let h = head0 + 6u;
        if (SPLITS == 1u) {
            o = o / den6;
            let at = col * LDY + h * D + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (D + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + D] = max6;
                y[part + D + 1u] = den6;
                y[part + D + 2u] = 0.0;
                y[part + D + 3u] = 0.0;
            }
        }
    }
    if (7u < n_head) {
        var o = sums[7u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[7u * WG + g * d4 + tid];
        }
        let h = head0 + 7u;
        if (SPLITS == 1u) {
            o = o / den7;
            let at = col * LDY + h * D + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (D + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + D] = max7;
                y[part + D + 1u] = den7;
                y[part + D + 2u] = 0.0;
                y[part + D + 3u] = 0.0;
            }
        }
    }
}
