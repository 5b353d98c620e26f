// attention: k=f16 v=f16 heads=4 set=sg
override WG: u32 = 64u;
override T: u32 = 64u;
override SG_MIN: u32 = 4u;override N_HEAD: u32 = 1u;
override SPLITS: u32 = 1u;
override LDQ: u32 = 64u;
override LDY: u32 = 64u;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> step: array<u32>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
const COLS: u32 = 16u;
override PAGE: u32 = 64u;
override N_SEQ: u32 = 0u;
override N_PAGE: u32 = 1u;
override PAGES: u32 = 16u;
// Number of pages of a sequence that are reused in turn, with sliding windows; 0: by the table.
override WRAP: u32 = 0u;
fn n_each() -> u32 { return step[2]; }
fn col_token(c: u32) -> u32 { return step[COLS + 4u * c]; }
fn col_pos(c: u32) -> u32 { return step[COLS + 4u * c + 1u]; }
// With a single sequence its number is not loaded, so that loads of its page table or state need not wait.
fn col_seq(c: u32) -> u32 {
    if (N_SEQ == 1u) {
        return 0u;
    }
    return step[COLS + 4u * c + 2u];
}

fn page_of(seq: u32, pos: u32) -> u32 {
    if (WRAP > 0u) {
        return seq * WRAP + pos / PAGE % max(WRAP, 1u);
    }
    return step[PAGES + seq * N_PAGE + pos / PAGE];
}

override N_KV: u32 = 1u;
override D: u32 = 64u;
override DV: u32 = 64u;
override V_ROW: u32 = 64u;
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
alias k_eight = vec4<u32>;
fn k_load8(cell: u32, c: u32) -> vec4<u32> { return k[(cell * D + c) / 8u]; }
fn k_decode8(v: vec4<u32>) -> Eight {
    return Eight(
        vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)),
        vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)),
    );
}
fn k_get8(cell: u32, c: u32) -> Eight { return k_decode8(k_load8(cell, c)); }

override v_p1: u32 = 0u;
override v_p2: u32 = 0u;
override v_p3: u32 = 0u;
fn v_get4(cell: u32, c: u32) -> vec4<f32> {
    let at = cell * V_ROW + c;
    let v = v[at / 8u];
    let q = select(v.xy, v.zw, (at & 4u) != 0u);
    return vec4<f32>(unpack2x16float(q.x), unpack2x16float(q.y));
}
alias v_eight = vec4<u32>;
fn v_load8(cell: u32, c: u32) -> vec4<u32> { return v[(cell * V_ROW + c) / 8u]; }
fn v_decode8(v: vec4<u32>) -> Eight {
    return Eight(
        vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)),
        vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)),
    );
}
fn v_get8(cell: u32, c: u32) -> Eight { return v_decode8(v_load8(cell, c)); }

override SCALE: f32 = 1.0;
// 0: none. Else a score s becomes SOFTCAP * tanh(s / SOFTCAP).
override SOFTCAP: f32 = 0.0;
// 0: none. Else a head's slope times the distance is subtracted.
override MAX_BIAS: f32 = 0.0;
// 0: none. Else the scores of a position grow by WARM times the logarithm of the number of runs of WARM_RUN keys up to
// and including its own.
override WARM: f32 = 0.0;
override WARM_RUN: u32 = 1u;
// 0: all. Else the window: number of visible keys up to and including a position's own.
override WINDOW: u32 = 0u;
// Attention sinks: one score per head contributes to the denominator.
override SINKS: bool = false;
override UNIT: f32 = SCALE * 1.0;
override CAP: f32 = SOFTCAP * 1.0;
// ALiBi's slope of a query head.
fn slope_of(head: u32) -> f32 {
    if (MAX_BIAS == 0.0) {
        return 0.0;
    }
    let n = 1u << firstLeadingBit(N_HEAD);
    let whole = head < n;
    let step_ = -MAX_BIAS / f32(n) * select(0.5, 1.0, whole);
    return 1.0 * exp2(step_ * f32(select(2u * (head - n) + 1u, head + 1u, whole)));
}
// The score of a product that was multiplied by UNIT.
fn score_of(s: f32, slope: f32, key: u32, pos: u32) -> f32 {
    var v = s;
    if (WARM != 0.0) {
        v *= 1.0 + WARM * log(f32(pos / WARM_RUN + 1u));
    }
    if (SOFTCAP != 0.0) {
        v = CAP * tanh(clamp(v / CAP, -15.0, 15.0));
    }
    if (MAX_BIAS != 0.0) {
        v -= slope * f32(pos - key);
    }
    return v;
}
// The first key visible to a position.
fn first_key(pos: u32) -> u32 {
    return select(0u, pos + 1u - min(pos + 1u, WINDOW), WINDOW > 0u);
}
fn sink_of(head: u32) -> f32 { return 1.0 * sinks[head]; }

var<workgroup> red: array<f32, 4u * WG>;

var<workgroup> qs: array<vec4<f32>, 4u * D / 4u>;
var<workgroup> ps: array<f32, 4u * WG>;
var<workgroup> sums: array<vec4<f32>, 4u * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup_id: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
    let tid = subgroup_id * subgroup_size + subgroup_lane;
    let team = tid / T;
    let lane = tid % T;

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

    for (var i = tid; i < 4u * D / 4u; i += WG) {
        let h = min(i / (D / 4u), n_head - 1u);
        qs[i] = q[(col * LDQ + (head0 + h) * D) / 4u + i % (D / 4u)] * UNIT;
    }
    let d4 = D / 4u;
    let v4 = DV / 4u;
    let groups_of_keys = WG / v4;
    let my_group = tid / v4;
    let my_channel = tid % v4;
    let sunk = SINKS && split == 0u;
    let slope0 = slope_of(head0 + 0u);
    var max0 = -3.0e38;
    if (sunk) {
        max0 = sink_of(min(head0 + 0u, N_HEAD - 1u));
    }
    var den0 = select(0.0, 1.0, sunk);
    var out0 = vec4<f32>();
    let slope1 = slope_of(head0 + 1u);
    var max1 = -3.0e38;
    if (sunk) {
        max1 = sink_of(min(head0 + 1u, N_HEAD - 1u));
    }
    var den1 = select(0.0, 1.0, sunk);
    var out1 = vec4<f32>();
    let slope2 = slope_of(head0 + 2u);
    var max2 = -3.0e38;
    if (sunk) {
        max2 = sink_of(min(head0 + 2u, N_HEAD - 1u));
    }
    var den2 = select(0.0, 1.0, sunk);
    var out2 = vec4<f32>();
    let slope3 = slope_of(head0 + 3u);
    var max3 = -3.0e38;
    if (sunk) {
        max3 = sink_of(min(head0 + 3u, N_HEAD - 1u));
    }
    var den3 = select(0.0, 1.0, sunk);
    var out3 = vec4<f32>();
    workgroupBarrier();

    for (var base = start; base < end; base += WG) {
        let key = base + tid;
        var s0 = -3.0e38;
        var s1 = -3.0e38;
        var s2 = -3.0e38;
        var s3 = -3.0e38;
        if (key < end) {
            let cell = kv_cell(page_of(seq, key), key % PAGE, kv_head);
            s0 = 0.0;
            s1 = 0.0;
            s2 = 0.0;
            s3 = 0.0;
            // Eight channels at once, four loads in flight.
            var i = 0u;
            for (; i + 4u <= D / 8u; i += 4u) {
                let k0 = k_get8(cell, 8u * (i + 0u));
                let k1 = k_get8(cell, 8u * (i + 1u));
                let k2 = k_get8(cell, 8u * (i + 2u));
                let k3 = k_get8(cell, 8u * (i + 3u));
                s0 += dot(k0.a, qs[0u * d4 + 2u * i + 0u]) + dot(k0.b, qs[0u * d4 + 2u * i + 1u]);
                s1 += dot(k0.a, qs[1u * d4 + 2u * i + 0u]) + dot(k0.b, qs[1u * d4 + 2u * i + 1u]);
                s2 += dot(k0.a, qs[2u * d4 + 2u * i + 0u]) + dot(k0.b, qs[2u * d4 + 2u * i + 1u]);
                s3 += dot(k0.a, qs[3u * d4 + 2u * i + 0u]) + dot(k0.b, qs[3u * d4 + 2u * i + 1u]);
                s0 += dot(k1.a, qs[0u * d4 + 2u * i + 2u]) + dot(k1.b, qs[0u * d4 + 2u * i + 3u]);
                s1 += dot(k1.a, qs[1u * d4 + 2u * i + 2u]) + dot(k1.b, qs[1u * d4 + 2u * i + 3u]);
                s2 += dot(k1.a, qs[2u * d4 + 2u * i + 2u]) + dot(k1.b, qs[2u * d4 + 2u * i + 3u]);
                s3 += dot(k1.a, qs[3u * d4 + 2u * i + 2u]) + dot(k1.b, qs[3u * d4 + 2u * i + 3u]);
                s0 += dot(k2.a, qs[0u * d4 + 2u * i + 4u]) + dot(k2.b, qs[0u * d4 + 2u * i + 5u]);
                s1 += dot(k2.a, qs[1u * d4 + 2u * i + 4u]) + dot(k2.b, qs[1u * d4 + 2u * i + 5u]);
                s2 += dot(k2.a, qs[2u * d4 + 2u * i + 4u]) + dot(k2.b, qs[2u * d4 + 2u * i + 5u]);
                s3 += dot(k2.a, qs[3u * d4 + 2u * i + 4u]) + dot(k2.b, qs[3u * d4 + 2u * i + 5u]);
                s0 += dot(k3.a, qs[0u * d4 + 2u * i + 6u]) + dot(k3.b, qs[0u * d4 + 2u * i + 7u]);
                s1 += dot(k3.a, qs[1u * d4 + 2u * i + 6u]) + dot(k3.b, qs[1u * d4 + 2u * i + 7u]);
                s2 += dot(k3.a, qs[2u * d4 + 2u * i + 6u]) + dot(k3.b, qs[2u * d4 + 2u * i + 7u]);
                s3 += dot(k3.a, qs[3u * d4 + 2u * i + 6u]) + dot(k3.b, qs[3u * d4 + 2u * i + 7u]);
            }
            for (; i < D / 8u; i++) {
                let k = k_get8(cell, 8u * i);
                s0 += dot(k.a, qs[0u * d4 + 2u * i]) + dot(k.b, qs[0u * d4 + 2u * i + 1u]);
                s1 += dot(k.a, qs[1u * d4 + 2u * i]) + dot(k.b, qs[1u * d4 + 2u * i + 1u]);
                s2 += dot(k.a, qs[2u * d4 + 2u * i]) + dot(k.b, qs[2u * d4 + 2u * i + 1u]);
                s3 += dot(k.a, qs[3u * d4 + 2u * i]) + dot(k.b, qs[3u * d4 + 2u * i + 1u]);
            }
            s0 = score_of(s0, slope0, key, pos);
            s1 = score_of(s1, slope1, key, pos);
            s2 = score_of(s2, slope2, key, pos);
            s3 = score_of(s3, slope3, key, pos);
        }
        var m0 = s0;
        var m1 = s1;
        var m2 = s2;
        var m3 = s3;
    m0 = subgroupMax(m0);
    m1 = subgroupMax(m1);
    m2 = subgroupMax(m2);
    m3 = subgroupMax(m3);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = m0;
            red[1u * WG + subgroup_id] = m1;
            red[2u * WG + subgroup_id] = m2;
            red[3u * WG + subgroup_id] = m3;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        m0 = red[0u * WG + first];
        m1 = red[1u * WG + first];
        m2 = red[2u * WG + first];
        m3 = red[3u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            m0 = max(m0, red[0u * WG + first + i]);
            m1 = max(m1, red[1u * WG + first + i]);
            m2 = max(m2, red[2u * WG + first + i]);
            m3 = max(m3, red[3u * WG + first + i]);
        }
    }

        m0 = max(m0, max0);
        let fade0 = exp(max0 - m0);
        max0 = m0;
        var p0 = select(0.0, exp(s0 - m0), key < end);
        ps[0u * WG + tid] = p0;
        out0 *= fade0;
        m1 = max(m1, max1);
        let fade1 = exp(max1 - m1);
        max1 = m1;
        var p1 = select(0.0, exp(s1 - m1), key < end);
        ps[1u * WG + tid] = p1;
        out1 *= fade1;
        m2 = max(m2, max2);
        let fade2 = exp(max2 - m2);
        max2 = m2;
        var p2 = select(0.0, exp(s2 - m2), key < end);
        ps[2u * WG + tid] = p2;
        out2 *= fade2;
        m3 = max(m3, max3);
        let fade3 = exp(max3 - m3);
        max3 = m3;
        var p3 = select(0.0, exp(s3 - m3), key < end);
        ps[3u * WG + tid] = p3;
        out3 *= fade3;
    p0 = subgroupAdd(p0);
    p1 = subgroupAdd(p1);
    p2 = subgroupAdd(p2);
    p3 = subgroupAdd(p3);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = p0;
            red[1u * WG + subgroup_id] = p1;
            red[2u * WG + subgroup_id] = p2;
            red[3u * WG + subgroup_id] = p3;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        p0 = red[0u * WG + first];
        p1 = red[1u * WG + first];
        p2 = red[2u * WG + first];
        p3 = red[3u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            p0 += red[0u * WG + first + i];
            p1 += red[1u * WG + first + i];
            p2 += red[2u * WG + first + i];
            p3 += red[3u * WG + first + i];
        }
    }

        den0 = den0 * fade0 + p0;
        den1 = den1 * fade1 + p1;
        den2 = den2 * fade2 + p2;
        den3 = den3 * fade3 + p3;
        workgroupBarrier();
        if (my_group < groups_of_keys) {
            let n = min(WG, end - base);
            var j = my_group;
            for (; j + 3u * groups_of_keys < n; j += 4u * groups_of_keys) {
                let at0 = base + j + 0u * groups_of_keys;
                let v0 = v_get4(kv_cell(page_of(seq, at0), at0 % PAGE, kv_head), 4u * my_channel);
                let at1 = base + j + 1u * groups_of_keys;
                let v1 = v_get4(kv_cell(page_of(seq, at1), at1 % PAGE, kv_head), 4u * my_channel);
                let at2 = base + j + 2u * groups_of_keys;
                let v2 = v_get4(kv_cell(page_of(seq, at2), at2 % PAGE, kv_head), 4u * my_channel);
                let at3 = base + j + 3u * groups_of_keys;
                let v3 = v_get4(kv_cell(page_of(seq, at3), at3 % PAGE, kv_head), 4u * my_channel);
                out0 += ps[0u * WG + j + 0u * groups_of_keys] * v0;
                out1 += ps[1u * WG + j + 0u * groups_of_keys] * v0;
                out2 += ps[2u * WG + j + 0u * groups_of_keys] * v0;
                out3 += ps[3u * WG + j + 0u * groups_of_keys] * v0;
                out0 += ps[0u * WG + j + 1u * groups_of_keys] * v1;
                out1 += ps[1u * WG + j + 1u * groups_of_keys] * v1;
                out2 += ps[2u * WG + j + 1u * groups_of_keys] * v1;
                out3 += ps[3u * WG + j + 1u * groups_of_keys] * v1;
                out0 += ps[0u * WG + j + 2u * groups_of_keys] * v2;
                out1 += ps[1u * WG + j + 2u * groups_of_keys] * v2;
                out2 += ps[2u * WG + j + 2u * groups_of_keys] * v2;
                out3 += ps[3u * WG + j + 2u * groups_of_keys] * v2;
                out0 += ps[0u * WG + j + 3u * groups_of_keys] * v3;
                out1 += ps[1u * WG + j + 3u * groups_of_keys] * v3;
                out2 += ps[2u * WG + j + 3u * groups_of_keys] * v3;
                out3 += ps[3u * WG + j + 3u * groups_of_keys] * v3;
            }
            for (; j < n; j += groups_of_keys) {
                let cell = kv_cell(page_of(seq, base + j), (base + j) % PAGE, kv_head);
                let v = v_get4(cell, 4u * my_channel);
                out0 += ps[0u * WG + j] * v;
                out1 += ps[1u * WG + j] * v;
                out2 += ps[2u * WG + j] * v;
                out3 += ps[3u * WG + j] * v;
            }
        }
        workgroupBarrier();
    }

    workgroupBarrier();
    sums[0u * WG + tid] = out0;
    sums[1u * WG + tid] = out1;
    sums[2u * WG + tid] = out2;
    sums[3u * WG + tid] = out3;
    workgroupBarrier();
    if (tid >= v4) {
        return;
    }
    if (0u < n_head) {
        var o = sums[0u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[0u * WG + g * v4 + tid];
        }
        let h = head0 + 0u;
        if (SPLITS == 1u) {
            o = o / den0;
            let at = col * LDY + h * DV + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (DV + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + DV] = max0;
                y[part + DV + 1u] = den0;
                y[part + DV + 2u] = 0.0;
                y[part + DV + 3u] = 0.0;
            }
        }
    }
    if (1u < n_head) {
        var o = sums[1u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[1u * WG + g * v4 + tid];
        }
        let h = head0 + 1u;
        if (SPLITS == 1u) {
            o = o / den1;
            let at = col * LDY + h * DV + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (DV + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + DV] = max1;
                y[part + DV + 1u] = den1;
                y[part + DV + 2u] = 0.0;
                y[part + DV + 3u] = 0.0;
            }
        }
    }
    if (2u < n_head) {
        var o = sums[2u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[2u * WG + g * v4 + tid];
        }
        let h = head0 + 2u;
        if (SPLITS == 1u) {
            o = o / den2;
            let at = col * LDY + h * DV + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (DV + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + DV] = max2;
                y[part + DV + 1u] = den2;
                y[part + DV + 2u] = 0.0;
                y[part + DV + 3u] = 0.0;
            }
        }
    }
    if (3u < n_head) {
        var o = sums[3u * WG + tid];
        for (var g = 1u; g < groups_of_keys; g++) {
            o += sums[3u * WG + g * v4 + tid];
        }
        let h = head0 + 3u;
        if (SPLITS == 1u) {
            o = o / den3;
            let at = col * LDY + h * DV + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
        } else {
            let part = ((col * N_HEAD + h) * SPLITS + split) * (DV + 4u);
            let at = part + 4u * tid;
            y[at] = o.x;
            y[at + 1u] = o.y;
            y[at + 2u] = o.z;
            y[at + 3u] = o.w;
            if (tid == 0u) {
                y[part + DV] = max3;
                y[part + DV + 1u] = den3;
                y[part + DV + 2u] = 0.0;
                y[part + DV + 3u] = 0.0;
            }
        }
    }
}
