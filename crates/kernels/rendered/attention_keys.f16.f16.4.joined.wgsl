// attention_keys: k=f16 v=f16 heads=4 end=joined
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
override Y_HALF: bool = false;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> step: array<u32>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) @coherent var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> out: array<vec2<u32>>;
@group(0) @binding(7) var<storage, read_write> arrived: array<atomic<u32>>;
var<workgroup> order: u32;
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

// Stores four values, the i-th quad of the buffer.
fn out_put(i: u32, v: vec4<f32>) {
    if (Y_HALF) {
        out[i] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
    } else {
        out[2u * i] = bitcast<vec2<u32>>(v.xy);
        out[2u * i + 1u] = bitcast<vec2<u32>>(v.zw);
    }
}

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
const MARGIN: f32 = 10.0;
// Keys distributed together (cases.rs: DEALT).
const RUN: u32 = 32u;
// The i-th key of one of n splits.
fn dealt(i: u32, split: u32, n: u32) -> u32 { return (i / RUN * n + split) * RUN + i % RUN; }
// Results of the subgroups: sums [subgroup][head][channel]; maxima and denominators [subgroup][head].
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
    let n_head = select(min(4u, (kv_head + 1u) * gqa - head0), 4u, gqa % 4u == 0u);
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
    let at_q1 = (col * LDQ + (head0 + min(1u, n_head - 1u)) * D + from_k) / 4u;
    let qa1 = select(vec4<f32>(), q[at_q1] * UNIT, has_channel);
    let qb1 = select(vec4<f32>(), q[at_q1 + 1u] * UNIT, has_channel);
    var a1 = vec4<f32>();
    var b1 = vec4<f32>();
    let at_q2 = (col * LDQ + (head0 + min(2u, n_head - 1u)) * D + from_k) / 4u;
    let qa2 = select(vec4<f32>(), q[at_q2] * UNIT, has_channel);
    let qb2 = select(vec4<f32>(), q[at_q2 + 1u] * UNIT, has_channel);
    var a2 = vec4<f32>();
    var b2 = vec4<f32>();
    let at_q3 = (col * LDQ + (head0 + min(3u, n_head - 1u)) * D + from_k) / 4u;
    let qa3 = select(vec4<f32>(), q[at_q3] * UNIT, has_channel);
    let qb3 = select(vec4<f32>(), q[at_q3 + 1u] * UNIT, has_channel);
    var a3 = vec4<f32>();
    var b3 = vec4<f32>();
    // Each lane of a key holds the maximum and the denominator of one head.
    let per_head = LANES / 4u;
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
        var s1 = dot(qa1, k.a) + dot(qb1, k.b);
        var s2 = dot(qa2, k.a) + dot(qb2, k.b);
        var s3 = dot(qa3, k.a) + dot(qb3, k.b);
        // While a lane has scores of several heads, it trades half of them with its partner.
        var m = LANES / 2u;
        {
            let upper = (lane & m) != 0u;
            s0 = select(s0, s2, upper) + subgroupShuffleXor(select(s2, s0, upper), m);
            s1 = select(s1, s3, upper) + subgroupShuffleXor(select(s3, s1, upper), m);
            m /= 2u;
        }
        {
            let upper = (lane & m) != 0u;
            s0 = select(s0, s1, upper) + subgroupShuffleXor(select(s1, s0, upper), m);
            m /= 2u;
        }
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
            {
                let f = subgroupShuffle(fade, lane0 + 1u * per_head);
                a1 *= f;
                b1 *= f;
            }
            {
                let f = subgroupShuffle(fade, lane0 + 2u * per_head);
                a2 *= f;
                b2 *= f;
            }
            {
                let f = subgroupShuffle(fade, lane0 + 3u * per_head);
                a3 *= f;
                b3 *= f;
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
        {
            let p = subgroupShuffle(p, lane0 + 1u * per_head);
            a1 += p * v.a;
            b1 += p * v.b;
        }
        {
            let p = subgroupShuffle(p, lane0 + 2u * per_head);
            a2 += p * v.a;
            b2 += p * v.b;
        }
        {
            let p = subgroupShuffle(p, lane0 + 3u * per_head);
            a3 += p * v.a;
            b3 += p * v.b;
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
    {
        let f = subgroupShuffle(fade, lane0 + 1u * per_head);
        a1 *= f;
        b1 *= f;
    }
    {
        let f = subgroupShuffle(fade, lane0 + 2u * per_head);
        a2 *= f;
        b2 *= f;
    }
    {
        let f = subgroupShuffle(fade, lane0 + 3u * per_head);
        a3 *= f;
        b3 *= f;
    }
    // While a thread holds several heads, it trades half of them with its partner.
    var m = subgroup_size / 2u;
    var head = 0u;
    var held = 4u;
    if (m >= LANES) {
        let upper = (lane & m) != 0u;
        a0 = select(a0, a2, upper) + subgroupShuffleXor(select(a2, a0, upper), m);
        b0 = select(b0, b2, upper) + subgroupShuffleXor(select(b2, b0, upper), m);
        a1 = select(a1, a3, upper) + subgroupShuffleXor(select(a3, a1, upper), m);
        b1 = select(b1, b3, upper) + subgroupShuffleXor(select(b3, b1, upper), m);
        head += select(0u, 2u, upper);
        held = 2u;
        m /= 2u;
    }
    if (m >= LANES) {
        let upper = (lane & m) != 0u;
        a0 = select(a0, a1, upper) + subgroupShuffleXor(select(a1, a0, upper), m);
        b0 = select(b0, b1, upper) + subgroupShuffleXor(select(b1, b0, upper), m);
        head += select(0u, 1u, upper);
        held = 1u;
        m /= 2u;
    }
    for (; m >= LANES; m /= 2u) {
        a0 += subgroupShuffleXor(a0, m);
        b0 += subgroupShuffleXor(b0, m);
    }
    if (lane % (subgroup_size * held / 4u) < LANES && channel < DV) {
        if (0u < held) {
            let at = subgroup * 4u + head + 0u;
            sums[(at * DV + channel) / 4u] = a0;
            sums[(at * DV + channel) / 4u + 1u] = b0;
        }
        if (1u < held) {
            let at = subgroup * 4u + head + 1u;
            sums[(at * DV + channel) / 4u] = a1;
            sums[(at * DV + channel) / 4u + 1u] = b1;
        }
        if (2u < held) {
            let at = subgroup * 4u + head + 2u;
            sums[(at * DV + channel) / 4u] = a2;
            sums[(at * DV + channel) / 4u + 1u] = b2;
        }
        if (3u < held) {
            let at = subgroup * 4u + head + 3u;
            sums[(at * DV + channel) / 4u] = a3;
            sums[(at * DV + channel) / 4u + 1u] = b3;
        }
    }
    if (lane < LANES && lane % per_head == 0u) {
        tops[subgroup * 4u + own] = high;
        dens[subgroup * 4u + own] = den;
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
    // All of this workgroup's part is visible before it is counted.
    storageBarrier();
    let counter = col * groups.x + group.x;
    if (tid == 0u) {
        order = atomicAdd(&arrived[counter], 1u);
    }
    if (workgroupUniformLoad(&order) != n_split - 1u) {
        return;
    }
    storageBarrier();
    if (tid == 0u) {
        atomicStore(&arrived[counter], 0u);
    }
    // Quads of the result are distributed over teams of threads; each team takes every n-th part.
    let n_quad = n_head * DV / 4u;
    let wide = min(n_quad, WG);
    let n_team = min(WG / wide, WG / SG_MIN);
    let team = tid / wide;
    for (var i0 = 0u; i0 < n_quad; i0 += wide) {
        let i = min(i0 + tid % wide, n_quad - 1u);
        let h = i * 4u / DV;
        let part0 = (col * N_HEAD + head0 + h) * SPLITS;
        var top = NO_KEY;
        var den = 0.0;
        var o = vec4<f32>();
        for (var s0 = team; s0 < n_split; s0 += 4u * n_team) {
            var o0 = vec4<f32>();
            var d0 = vec2<f32>(NO_KEY, 0.0);
            if (0u * n_team < SPLITS) {
                let part = (part0 + min(s0 + 0u * n_team, n_split - 1u)) * (DV / 4u + 1u);
                d0 = y[part + DV / 4u].xy;
                o0 = y[part + i % (DV / 4u)];
            }
            var o1 = vec4<f32>();
            var d1 = vec2<f32>(NO_KEY, 0.0);
            if (1u * n_team < SPLITS) {
                let part = (part0 + min(s0 + 1u * n_team, n_split - 1u)) * (DV / 4u + 1u);
                d1 = y[part + DV / 4u].xy;
                o1 = y[part + i % (DV / 4u)];
            }
            var o2 = vec4<f32>();
            var d2 = vec2<f32>(NO_KEY, 0.0);
            if (2u * n_team < SPLITS) {
                let part = (part0 + min(s0 + 2u * n_team, n_split - 1u)) * (DV / 4u + 1u);
                d2 = y[part + DV / 4u].xy;
                o2 = y[part + i % (DV / 4u)];
            }
            var o3 = vec4<f32>();
            var d3 = vec2<f32>(NO_KEY, 0.0);
            if (3u * n_team < SPLITS) {
                let part = (part0 + min(s0 + 3u * n_team, n_split - 1u)) * (DV / 4u + 1u);
                d3 = y[part + DV / 4u].xy;
                o3 = y[part + i % (DV / 4u)];
            }
            var high = top;
            d0.x = select(NO_KEY, d0.x, s0 + 0u * n_team < n_split);
            high = max(high, d0.x);
            d1.x = select(NO_KEY, d1.x, s0 + 1u * n_team < n_split);
            high = max(high, d1.x);
            d2.x = select(NO_KEY, d2.x, s0 + 2u * n_team < n_split);
            high = max(high, d2.x);
            d3.x = select(NO_KEY, d3.x, s0 + 3u * n_team < n_split);
            high = max(high, d3.x);
            let fade = exp2(top - high);
            top = high;
            let least = max(top, -1.0e38);
            den *= fade;
            o *= fade;
            {
                let fade = exp2(d0.x - least);
                den += fade * d0.y;
                o += fade * o0;
            }
            {
                let fade = exp2(d1.x - least);
                den += fade * d1.y;
                o += fade * o1;
            }
            {
                let fade = exp2(d2.x - least);
                den += fade * d2.y;
                o += fade * o2;
            }
            {
                let fade = exp2(d3.x - least);
                den += fade * d3.y;
                o += fade * o3;
            }
        }
        if (n_team > 1u) {
            if (team < n_team) {
                sums[tid] = o;
                if (i % (DV / 4u) == 0u) {
                    tops[team * n_head + h] = top;
                    dens[team * n_head + h] = den;
                }
            }
            workgroupBarrier();
            if (team == 0u) {
                for (var t = 1u; t < n_team; t++) {
                    top = max(top, tops[t * n_head + h]);
                }
                den = 0.0;
                o = vec4<f32>();
                for (var t = 0u; t < n_team; t++) {
                    let fade = exp2(tops[t * n_head + h] - top);
                    den += fade * dens[t * n_head + h];
                    o += fade * sums[t * wide + tid];
                }
            }
            workgroupBarrier();
        }
        if (team == 0u && i0 + tid < n_quad) {
            out_put((col * LDY + head0 * DV) / 4u + i, o / den);
        }
    }

}
