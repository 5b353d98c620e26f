// attention_keys: k=q8_0 v=q4_0 heads=1 end=parts
override WG: u32 = 256u;
override SG_MIN: u32 = 4u;
override LANES: u32 = 8u;
override N_HEAD: u32 = 1u;
override SPLITS: u32 = 1u;
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
fn k_d(b: u32) -> f32 {
    return unpack2x16float(k[k_p1 + (b >> 3u)][(b >> 1u) & 3u])[b & 1u];
}
fn k_load4(b: u32, e: u32) -> vec4<f32> {
    return k_d(b) * vec4<f32>(unpack4xI8(k[b * 2u + (e >> 4u)][(e >> 2u) & 3u]));
}

fn k_get4(cell: u32, c: u32) -> vec4<f32> {
    return k_load4(cell * ((D + 63u) / 64u * 2u) + c / 32u, c % 32u);
}
fn k_get8(cell: u32, c: u32) -> Eight {
    let b = cell * ((D + 63u) / 64u * 2u) + c / 32u;
    return Eight(k_load4(b, c % 32u), k_load4(b, c % 32u + 4u));
}

override v_p1: u32 = 0u;
override v_p2: u32 = 0u;
override v_p3: u32 = 0u;
fn v_d(b: u32) -> f32 {
    return unpack2x16float(v[v_p1 + (b >> 3u)][(b >> 1u) & 3u])[b & 1u];
}
fn v_load4(b: u32, e: u32) -> vec4<f32> {
    let q = (v[b][(e >> 2u) & 3u] >> ((e >> 4u) * 4u)) & 0x0f0f0f0fu;
    return v_d(b) * (vec4<f32>(unpack4xU8(q)) - 8.0);
}

fn v_get4(cell: u32, c: u32) -> vec4<f32> {
    return v_load4(cell * ((DV + 63u) / 64u * 2u) + c / 32u, c % 32u);
}
fn v_get8(cell: u32, c: u32) -> Eight {
    let b = cell * ((DV + 63u) / 64u * 2u) + c / 32u;
    return Eight(v_load4(b, c % 32u), v_load4(b, c % 32u + 4u));
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
        if (base + 0u * rows < end) {
            s00 = dot(qa0, k0.a) + dot(qb0, k0.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s00 += subgroupShuffleXor(s00, m);
            }
            s00 = select(NO_KEY, score_of(s00, slope0, min(key0, pos), pos), key0 < end);
        }
        var s01 = NO_KEY;
        if (base + 1u * rows < end) {
            s01 = dot(qa0, k1.a) + dot(qb0, k1.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s01 += subgroupShuffleXor(s01, m);
            }
            s01 = select(NO_KEY, score_of(s01, slope0, min(key1, pos), pos), key1 < end);
        }
        var s02 = NO_KEY;
        if (base + 2u * rows < end) {
            s02 = dot(qa0, k2.a) + dot(qb0, k2.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s02 += subgroupShuffleXor(s02, m);
            }
            s02 = select(NO_KEY, score_of(s02, slope0, min(key2, pos), pos), key2 < end);
        }
        var s03 = NO_KEY;
        if (base + 3u * rows < end) {
            s03 = dot(qa0, k3.a) + dot(qb0, k3.b);
            for (var m = LANES / 2u; m > 0u; m /= 2u) {
                s03 += subgroupShuffleXor(s03, m);
            }
            s03 = select(NO_KEY, score_of(s03, slope0, min(key3, pos), pos), key3 < end);
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
        if (base + 0u * rows < end) {
            let p0 = exp2(s00 - least0);
            den0 += p0;
            a0 += p0 * v0.a;
            b0 += p0 * v0.b;
        }
        if (base + 1u * rows < end) {
            let p0 = exp2(s01 - least0);
            den0 += p0;
            a0 += p0 * v1.a;
            b0 += p0 * v1.b;
        }
        if (base + 2u * rows < end) {
            let p0 = exp2(s02 - least0);
            den0 += p0;
            a0 += p0 * v2.a;
            b0 += p0 * v2.b;
        }
        if (base + 3u * rows < end) {
            let p0 = exp2(s03 - least0);
            den0 += p0;
            a0 += p0 * v3.a;
            b0 += p0 * v3.b;
        }
    }

    // The groups of a subgroup join through each other's registers, the subgroups through workgroup memory.
    var high0 = top0;
    for (var m = LANES; m < subgroup_size; m *= 2u) {
        high0 = max(high0, subgroupShuffleXor(high0, m));
    }
    {
        let fade = exp2(top0 - high0);
        top0 = high0;
        den0 *= fade;
        a0 *= fade;
        b0 *= fade;
    }
    // While a thread holds several heads, it gives one half of them to its partner for the other half.
    var m = subgroup_size / 2u;
    var head = 0u;
    var held = 1u;
    for (; m >= LANES; m /= 2u) {
        den0 += subgroupShuffleXor(den0, m);
        a0 += subgroupShuffleXor(a0, m);
        b0 += subgroupShuffleXor(b0, m);
    }
    if (lane % (subgroup_size * held / 1u) < LANES && channel < DV) {
        if (0u < held) {
            let at = subgroup * 1u + head + 0u;
            sums[(at * DV + channel) / 4u] = a0;
            sums[(at * DV + channel) / 4u + 1u] = b0;
            if (channel == 0u) {
                dens[at] = den0;
            }
        }
    }
    if (lane == 0u) {
        tops[subgroup * 1u + 0u] = top0;
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
