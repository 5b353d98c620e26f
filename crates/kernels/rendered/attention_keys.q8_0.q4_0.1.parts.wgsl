// attention_keys: k=q8_0 v=q4_0 heads=1 end=parts
// The result of subgroupAny is uniform in the subgroup, and so is a branch on it; browsers' compilers do not see this.
diagnostic(off, subgroup_uniformity);
override WG: u32 = 64u;
override SG_MIN: u32 = 32u;
override LANES: u32 = 8u;
override N_HEAD: u32 = 1u;
override SPLITS: u32 = 1u;
override LEAST: u32 = 0u;
override LDQ: u32 = 64u;
override LDY: u32 = 64u;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> step: array<u32>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;
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
fn sink_of(head: u32) -> f32 { return 1.4426950408889634 * sinks[head]; }

const NO_KEY: f32 = -3.0e38;
// Margin by which a score may exceed the reference of its exponentials, as an exponent of 2. Parts that another
// kernel merges need the maximum itself.
override MARGIN: f32 = select(0.0, 10.0, SPLITS == 1u);
// Keys distributed together (cases.rs: DEALT).
const RUN: u32 = 32u;
// The i-th key of one of n splits.
fn dealt(i: u32, split: u32, n: u32) -> u32 { return (i / RUN * n + split) * RUN + i % RUN; }
// Results of the subgroups: sums [subgroup][head][channel]; maxima and denominators [subgroup][head].
var<workgroup> sums: array<vec4<f32>, WG / SG_MIN * 1u * DV / 4u>;
var<workgroup> tops: array<f32, WG / SG_MIN * 1u>;
var<workgroup> dens: array<f32, WG / SG_MIN * 1u>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32) {
    let tid = subgroup * subgroup_size + lane;
    let gqa = N_HEAD / N_KV;
    let head_groups = (gqa + 0u) / 1u;
    let kv_head = group.x / head_groups;
    let head0 = kv_head * gqa + (group.x % head_groups) * 1u;
    let n_head = select(min(1u, (kv_head + 1u) * gqa - head0), 1u, gqa % 1u == 0u);
    let split = group.y;
    let col = group.z;
    let seq = col_seq(col);
    let pos = col_pos(col);
    let n_key = pos + 1u;
    // Runs of RUN keys go to the splits in turn, so that the first page numbers can be read before the length is known.
    let from_key = first_key(pos);
    let start = from_key / RUN * RUN;
    let n_run = (n_key - start + RUN - 1u) / RUN;
    var n_split = SPLITS;
    if (LEAST > 0u) {
        n_split = clamp((n_key - start) / max(LEAST, 1u), 1u, SPLITS);
        if (split >= n_split) {
            return;
        }
    }
    let n_mine = (n_run + n_split - 1u - split) / n_split * RUN;

    let rows = WG / LANES;
    let my_row = tid / LANES;
    let channel = tid % LANES * 8u;
    let has_channel = channel < D;
    let from_k = min(channel, D - 8u);
    let from_v = min(channel, DV - 8u);
    let first = kv_cell(page_of(seq, start), start % PAGE, kv_head);
    // The loads of a key run one iteration ahead of its products, the load of its page number two.
    let key = start + dealt(my_row, split, n_split);
    let page0 = page_of(seq, min(key, N_PAGE * PAGE - 1u));
    var next = start + dealt(rows + my_row, split, n_split);
    var page = page_of(seq, min(next, N_PAGE * PAGE - 1u));
    let cell0 = select(first, kv_cell(page0, key % PAGE, kv_head), key < n_key);
    var k_ahead = k_load8(cell0, from_k);
    var v_ahead = v_load8(cell0, from_v);
    let at_q0 = (col * LDQ + (head0 + min(0u, n_head - 1u)) * D + from_k) / 4u;
    let qa0 = select(vec4<f32>(), q[at_q0] * UNIT, has_channel);
    let qb0 = select(vec4<f32>(), q[at_q0 + 1u] * UNIT, has_channel);
    var a0 = vec4<f32>();
    var b0 = vec4<f32>();
    // Each lane of a key holds the maximum and the denominator of one head.
    let per_head = LANES / 1u;
    let own = lane % LANES / per_head;
    let lane0 = lane - lane % LANES;
    let slope = slope_of(head0 + own);
    var top = NO_KEY;
    var den = 0.0;
    if (SINKS && split == 0u && my_row == 0u) {
        top = sink_of(min(head0 + own, N_HEAD - 1u));
        den = 1.0;
    }

    for (var base = 0u; base < n_mine; base += rows) {
        let k = k_decode8(k_ahead);
        let v = v_decode8(v_ahead);
        // Out-of-range keys read the first one instead: a branch would wait for the preceding loads.
        let cell = select(first, kv_cell(page, next % PAGE, kv_head), next < n_key);
        k_ahead = k_load8(cell, from_k);
        v_ahead = v_load8(cell, from_v);
        next = start + dealt(base + 2u * rows + my_row, split, n_split);
        page = page_of(seq, min(next, N_PAGE * PAGE - 1u));
        let key = start + dealt(base + my_row, split, n_split);
        let live = key < n_key && key >= from_key;
        var s0 = dot(qa0, k.a) + dot(qb0, k.b);
        // While a lane has scores of several heads, it trades half of them with its partner.
        var m = LANES / 2u;
        for (; m > 0u; m /= 2u) {
            s0 += subgroupShuffleXor(s0, m);
        }
        let s = select(NO_KEY, score_of(s0, slope, min(key, pos), pos), live);
        // The reference moves only when a score exceeds it by far; exponentials up to 2^MARGIN are harmless.
        if (subgroupAny(s > top + MARGIN)) {
            let high = max(top, s);
            let fade = exp2(top - high);
            top = high;
            den *= fade;
            {
                let f = subgroupShuffle(fade, lane0 + 0u * per_head);
                a0 *= f;
                b0 *= f;
            }
        }
        // Lanes without visible keys keep exponentials of 0.
        let p = exp2(s - max(top, -1.0e38));
        den += p;
        {
            let p = subgroupShuffle(p, lane0 + 0u * per_head);
            a0 += p * v.a;
            b0 += p * v.b;
        }
    }

    // The groups of a subgroup are reduced through registers, the subgroups through workgroup memory.
    var high = top;
    for (var m = LANES; m < subgroup_size; m *= 2u) {
        high = max(high, subgroupShuffleXor(high, m));
    }
    let fade = exp2(top - high);
    den *= fade;
    for (var m = LANES; m < subgroup_size; m *= 2u) {
        den += subgroupShuffleXor(den, m);
    }
    {
        let f = subgroupShuffle(fade, lane0 + 0u * per_head);
        a0 *= f;
        b0 *= f;
    }
    // While a thread holds several heads, it trades half of them with its partner.
    var m = subgroup_size / 2u;
    var head = 0u;
    var held = 1u;
    for (; m >= LANES; m /= 2u) {
        a0 += subgroupShuffleXor(a0, m);
        b0 += subgroupShuffleXor(b0, m);
    }
    if (lane % (subgroup_size * held / 1u) < LANES && channel < DV) {
        if (0u < held) {
            let at = subgroup * 1u + head + 0u;
            sums[(at * DV + channel) / 4u] = a0;
            sums[(at * DV + channel) / 4u + 1u] = b0;
        }
    }
    if (lane < LANES && lane % per_head == 0u) {
        tops[subgroup * 1u + own] = high;
        dens[subgroup * 1u + own] = den;
    }
    workgroupBarrier();
    for (var i = tid; i < n_head * DV / 4u; i += WG) {
        let h = i * 4u / DV;
        var top = NO_KEY;
        for (var s = 0u; s < WG / subgroup_size; s++) {
            top = max(top, tops[s * 1u + h]);
        }
        var den = 0.0;
        var o = vec4<f32>();
        for (var s = 0u; s < WG / subgroup_size; s++) {
            let fade = exp2(tops[s * 1u + h] - top);
            den += fade * dens[s * 1u + h];
            o += fade * sums[s * 1u * (DV / 4u) + i];
        }
        let c = i * 4u % DV;
        var at = col * LDY + (head0 + h) * DV + c;
        if (SPLITS == 1u) {
            o = o / den;
        } else {
            let part = ((col * N_HEAD + head0 + h) * SPLITS + split) * (DV + 4u);
            at = part + c;
            if (c == 0u) {
                // Parts have their maximum as an exponent of e.
                y[(part + DV) / 4u] = vec4<f32>(select(top * 0.6931471805599453, NO_KEY, den == 0.0), den, 0.0, 0.0);
            }
        }
        y[at / 4u] = o;
    }
}
