// attention: heads=2 set=base
override WG: u32 = 64u;
override T: u32 = 64u;
override N_HEAD: u32 = 1u;
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

var<workgroup> red: array<f32, 2u * WG>;

var<workgroup> qs: array<vec4<f32>, 2u * D / 4u>;
var<workgroup> ps: array<f32, 2u * WG>;
var<workgroup> sums: array<vec4<f32>, 2u * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tid = local_index;
    let team = tid / T;
    let lane = tid % T;

    let gqa = N_HEAD / N_KV;
    let head_groups = (gqa + 1u) / 2u;
    let kv_head = group.x / head_groups;
    let head0 = kv_head * gqa + (group.x % head_groups) * 2u;
    let n_head = min(2u, (kv_head + 1u) * gqa - head0);
    let split = group.y;
    let col = group.z;
    let seq = col_seq(col);
    // Keys of this split: [start, end).
    let n_key = col_pos(col) + 1u;
    let span = (n_key + SPLITS - 1u) / SPLITS;
    let start = min(split * span, n_key);
    let end = min(start + span, n_key);

    for (var i = tid; i < 2u * D / 4u; i += WG) {
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
    workgroupBarrier();

    for (var base = start; base < end; base += WG) {
        let pos = base + tid;
        var s0 = -3.0e38;
        var s1 = -3.0e38;
        if (pos < end) {
            let cell = kv_cell(page_of(seq, pos), pos % PAGE, kv_head);
            s0 = 0.0;
            s1 = 0.0;
            // Eight channels at once, four loads under way.
            var i = 0u;
            for (; i + 4u <= D / 8u; i += 4u) {
                let k0 = kv_get8(0u, cell + 8u * (i + 0u));
                let k1 = kv_get8(0u, cell + 8u * (i + 1u));
                let k2 = kv_get8(0u, cell + 8u * (i + 2u));
                let k3 = kv_get8(0u, cell + 8u * (i + 3u));
                s0 += dot(k0.a, qs[0u * d4 + 2u * i + 0u]) + dot(k0.b, qs[0u * d4 + 2u * i + 1u]);
                s1 += dot(k0.a, qs[1u * d4 + 2u * i + 0u]) + dot(k0.b, qs[1u * d4 + 2u * i + 1u]);
                s0 += dot(k1.a, qs[0u * d4 + 2u * i + 2u]) + dot(k1.b, qs[0u * d4 + 2u * i + 3u]);
                s1 += dot(k1.a, qs[1u * d4 + 2u * i + 2u]) + dot(k1.b, qs[1u * d4 + 2u * i + 3u]);
                s0 += dot(k2.a, qs[0u * d4 + 2u * i + 4u]) + dot(k2.b, qs[0u * d4 + 2u * i + 5u]);
                s1 += dot(k2.a, qs[1u * d4 + 2u * i + 4u]) + dot(k2.b, qs[1u * d4 + 2u * i + 5u]);
                s0 += dot(k3.a, qs[0u * d4 + 2u * i + 6u]) + dot(k3.b, qs[0u * d4 + 2u * i + 7u]);
                s1 += dot(k3.a, qs[1u * d4 + 2u * i + 6u]) + dot(k3.b, qs[1u * d4 + 2u * i + 7u]);
            }
            for (; i < D / 8u; i++) {
                let k = kv_get8(0u, cell + 8u * i);
                s0 += dot(k.a, qs[0u * d4 + 2u * i]) + dot(k.b, qs[0u * d4 + 2u * i + 1u]);
                s1 += dot(k.a, qs[1u * d4 + 2u * i]) + dot(k.b, qs[1u * d4 + 2u * i + 1u]);
            }
        }
        var m0 = s0;
        var m1 = s1;
    workgroupBarrier();
    red[0u * WG + tid] = m0;
    red[1u * WG + tid] = m1;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] = max(red[0u * WG + tid], red[0u * WG + tid + s]);
            red[1u * WG + tid] = max(red[1u * WG + tid], red[1u * WG + tid + s]);
        }
        workgroupBarrier();
    }
    m0 = red[0u * WG + team * T];
    m1 = red[1u * WG + team * T];

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
    workgroupBarrier();
    red[0u * WG + tid] = p0;
    red[1u * WG + tid] = p1;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] += red[0u * WG + tid + s];
            red[1u * WG + tid] += red[1u * WG + tid + s];
        }
        workgroupBarrier();
    }
    p0 = red[0u * WG + team * T];
    p1 = red[1u * WG + team * T];

        den0 = den0 * fade0 + p0;
        den1 = den1 * fade1 + p1;
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
                out0 += ps[0u * WG + j + 1u * groups_of_keys] * v1;
                out1 += ps[1u * WG + j + 1u * groups_of_keys] * v1;
                out0 += ps[0u * WG + j + 2u * groups_of_keys] * v2;
                out1 += ps[1u * WG + j + 2u * groups_of_keys] * v2;
                out0 += ps[0u * WG + j + 3u * groups_of_keys] * v3;
                out1 += ps[1u * WG + j + 3u * groups_of_keys] * v3;
            }
            for (; j < n; j += groups_of_keys) {
                let cell = kv_cell(page_of(seq, base + j), (base + j) % PAGE, kv_head);
                let v = kv_get4(V0, cell + 4u * my_channel);
                out0 += ps[0u * WG + j] * v;
                out1 += ps[1u * WG + j] * v;
            }
        }
        workgroupBarrier();
    }

    workgroupBarrier();
    sums[0u * WG + tid] = out0;
    sums[1u * WG + tid] = out1;
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
}
