// attention: k=q8_0 v=q4_0 heads=1 set=base
override WG: u32 = 64u;
override T: u32 = 64u;
override N_HEAD: u32 = 1u;
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
fn k_d(b: u32) -> f32 {
    return unpack2x16float(k[k_p1 + (b >> 3u)][(b >> 1u) & 3u] >> ((b & 1u) << 4u)).x;
}

fn k_load4(b: u32, e: u32) -> vec4<f32> {
    return k_d(b) * vec4<f32>(unpack4xI8(k[b * 2u + (e >> 4u)][(e >> 2u) & 3u]));
}

fn k_get4(cell: u32, c: u32) -> vec4<f32> {
    return k_load4(cell * ((D + 63u) / 64u * 2u) + c / 32u, c % 32u);
}
alias k_eight = Eight;
fn k_load8(cell: u32, c: u32) -> Eight {
    let b = cell * ((D + 63u) / 64u * 2u) + c / 32u;
    return Eight(k_load4(b, c % 32u), k_load4(b, c % 32u + 4u));
}
fn k_decode8(v: Eight) -> Eight { return v; }
fn k_get8(cell: u32, c: u32) -> Eight { return k_decode8(k_load8(cell, c)); }

override v_p1: u32 = 0u;
override v_p2: u32 = 0u;
override v_p3: u32 = 0u;
fn v_d(b: u32) -> f32 {
    return unpack2x16float(v[v_p1 + (b >> 3u)][(b >> 1u) & 3u] >> ((b & 1u) << 4u)).x;
}

fn v_load4(b: u32, e: u32) -> vec4<f32> {
    let q = (v[b][(e >> 2u) & 3u] >> ((e >> 4u) * 4u)) & 0x0f0f0f0fu;
    return v_d(b) * (vec4<f32>(unpack4xU8(q)) - 8.0);
}

fn v_get4(cell: u32, c: u32) -> vec4<f32> {
    return v_load4(cell * ((V_ROW + 63u) / 64u * 2u) + c / 32u, c % 32u);
}
alias v_eight = Eight;
fn v_load8(cell: u32, c: u32) -> Eight {
    let b = cell * ((V_ROW + 63u) / 64u * 2u) + c / 32u;
    return Eight(v_load4(b, c % 32u), v_load4(b, c % 32u + 4u));
}
fn v_decode8(v: Eight) -> Eight { return v; }
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

var<workgroup> red: array<f32, 1u * WG>;

var<workgroup> qs: array<vec4<f32>, 1u * D / 4u>;
var<workgroup> ps: array<f32, 1u * WG>;
var<workgroup> sums: array<vec4<f32>, 1u * WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tid = local_index;
    let team = tid / T;
    let lane = tid % T;

    let gqa = N_HEAD / N_KV;
    let head_groups = (gqa + 0u) / 1u;
    let kv_head = group.x / head_groups;
    let head0 = kv_head * gqa + (group.x % head_groups) * 1u;
    let n_head = min(1u, (kv_head + 1u) * gqa - head0);
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

    for (var i = tid; i < 1u * D / 4u; i += WG) {
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
    workgroupBarrier();

    for (var base = start; base < end; base += WG) {
        let key = base + tid;
        var s0 = -3.0e38;
        if (key < end) {
            let cell = kv_cell(page_of(seq, key), key % PAGE, kv_head);
            s0 = 0.0;
            // Eight channels at once, four loads in flight.
            var i = 0u;
            for (; i + 4u <= D / 8u; i += 4u) {
                let k0 = k_get8(cell, 8u * (i + 0u));
                let k1 = k_get8(cell, 8u * (i + 1u));
                let k2 = k_get8(cell, 8u * (i + 2u));
                let k3 = k_get8(cell, 8u * (i + 3u));
                s0 += dot(k0.a, qs[0u * d4 + 2u * i + 0u]) + dot(k0.b, qs[0u * d4 + 2u * i + 1u]);
                s0 += dot(k1.a, qs[0u * d4 + 2u * i + 2u]) + dot(k1.b, qs[0u * d4 + 2u * i + 3u]);
                s0 += dot(k2.a, qs[0u * d4 + 2u * i + 4u]) + dot(k2.b, qs[0u * d4 + 2u * i + 5u]);
                s0 += dot(k3.a, qs[0u * d4 + 2u * i + 6u]) + dot(k3.b, qs[0u * d4 + 2u * i + 7u]);
            }
            for (; i < D / 8u; i++) {
                let k = k_get8(cell, 8u * i);
                s0 += dot(k.a, qs[0u * d4 + 2u * i]) + dot(k.b, qs[0u * d4 + 2u * i + 1u]);
            }
            s0 = score_of(s0, slope0, key, pos);
        }
        var m0 = s0;
    workgroupBarrier();
    red[0u * WG + tid] = m0;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] = max(red[0u * WG + tid], red[0u * WG + tid + s]);
        }
        workgroupBarrier();
    }
    m0 = red[0u * WG + team * T];

        m0 = max(m0, max0);
        let fade0 = exp(max0 - m0);
        max0 = m0;
        var p0 = select(0.0, exp(s0 - m0), key < end);
        ps[0u * WG + tid] = p0;
        out0 *= fade0;
    workgroupBarrier();
    red[0u * WG + tid] = p0;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] += red[0u * WG + tid + s];
        }
        workgroupBarrier();
    }
    p0 = red[0u * WG + team * T];

        den0 = den0 * fade0 + p0;
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
                out0 += ps[0u * WG + j + 1u * groups_of_keys] * v1;
                out0 += ps[0u * WG + j + 2u * groups_of_keys] * v2;
                out0 += ps[0u * WG + j + 3u * groups_of_keys] * v3;
            }
            for (; j < n; j += groups_of_keys) {
                let cell = kv_cell(page_of(seq, base + j), (base + j) % PAGE, kv_head);
                let v = v_get4(cell, 4u * my_channel);
                out0 += ps[0u * WG + j] * v;
            }
        }
        workgroupBarrier();
    }

    workgroupBarrier();
    sums[0u * WG + tid] = out0;
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
}
