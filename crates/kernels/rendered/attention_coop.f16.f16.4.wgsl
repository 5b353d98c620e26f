// attention_coop: k=f16 v=f16 tiles=4
override N_HEAD: u32 = 1u;
override HEADS: u32 = 1u;
override HEAD_GROUPS: u32 = 1u;
override LDQ: u32 = 64u;
override LDY: u32 = 64u;
override Y_HALF: bool = false;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> k: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> v: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> step: array<u32>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<vec2<u32>>;
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

alias k_unit = vec4<u32>;
fn k_at(cell: u32, i: u32) -> k_unit { return k[cell * (D / 8u) + i]; }
fn k_stage(at: u32, x: k_unit) {
    staged[at] = vec4<f16>(vec4<f32>(unpack2x16float(x.x), unpack2x16float(x.y)));
    staged[at + 1u] = vec4<f16>(vec4<f32>(unpack2x16float(x.z), unpack2x16float(x.w)));
}

alias v_unit = vec4<u32>;
fn v_at(cell: u32, i: u32) -> v_unit { return v[cell * (V_ROW / 8u) + i]; }
fn v_stage(at: u32, x: v_unit) {
    staged[at] = vec4<f16>(vec4<f32>(unpack2x16float(x.x), unpack2x16float(x.y)));
    staged[at + 1u] = vec4<f16>(vec4<f32>(unpack2x16float(x.z), unpack2x16float(x.w)));
}

// Stores four values, the i-th quad of the buffer.
fn y_put(i: u32, v: vec4<f32>) {
    if (Y_HALF) {
        y[i] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
    } else {
        y[2u * i] = bitcast<vec2<u32>>(v.xy);
        y[2u * i + 1u] = bitcast<vec2<u32>>(v.zw);
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

// vec4 of a staged row: 8 extra values against bank conflicts.
const ROW: u32 = 18u;
// Lower than any scaled score.
const NO_KEY: f32 = -1.0e38;
const NO_SEQ: u32 = 0xffffffffu;
// Queries; then 32 keys and 32 values.
var<workgroup> staged: array<vec4<f16>, 1152>;
// Per subgroup: 16 rows of scores, and of their exponentials.
var<workgroup> scores: array<vec4<f32>, 576>;
var<workgroup> powers: array<vec4<f16>, 640>;
var<workgroup> grown: array<u32, 4>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32) {
    let tid = subgroup * 32u + lane;
    let gqa = N_HEAD / N_KV;
    let kv_head = group.x / HEAD_GROUPS;
    let head0 = kv_head * gqa + (group.x % HEAD_GROUPS) * HEADS;
    let n_head = min(HEADS, (kv_head + 1u) * gqa - head0);
    let n_col = step[0];
    // Another kernel computes the leading columns. Later ones see more keys, so they start first.
    let first_row = n_each() * HEADS + (groups.y - 1u - group.y) * 64u;
    if (first_row >= n_col * HEADS) {
        return;
    }
    // This thread's half of a row of the subgroup's tile.
    let r = lane % 16u;
    let half = lane / 16u;
    let row = first_row + subgroup * 16u + r;
    let col = min(row / HEADS, n_col - 1u);
    let live = row < n_col * HEADS && row % HEADS < n_head;
    let pos = col_pos(col);
    let slope = slope_of(head0 + row % HEADS);
    let at_s = subgroup * 144u + r * 9u;
    let at_p = subgroup * 160u + r * 10u + half * 4u;

    for (var i = tid; i < 1024u; i += 128u) {
        let c = i % 16u + 0u;
        let q_row = first_row + i / 16u;
        var v = vec4<f32>();
        if (4u * c < D && q_row < n_col * HEADS && q_row % HEADS < n_head) {
            v = q[(q_row / HEADS * LDQ + (head0 + q_row % HEADS) * D) / 4u + c];
        }
        staged[i / 16u * 18u + i % 16u] = vec4<f16>(v);
    }
    workgroupBarrier();
    let q0 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 288u + 0u], 18u);
    let q1 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 288u + 4u], 18u);
    let q2 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 288u + 8u], 18u);
    let q3 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 288u + 12u], 18u);
    var o0 = coop_mat16x16<f32, C>();
    var o1 = coop_mat16x16<f32, C>();
    var o2 = coop_mat16x16<f32, C>();
    var o3 = coop_mat16x16<f32, C>();
    var top = NO_KEY;
    var den = 0.0;
    if (SINKS) {
        top = sink_of(min(head0 + row % HEADS, N_HEAD - 1u));
        den = select(0.0, 1.0, half == 0u);
    }
    var k0 = k_unit();
    var k1 = k_unit();
    var v0 = v_unit();
    var v1 = v_unit();
    var s0 = coop_mat16x16<f32, C>();
    var s1 = coop_mat16x16<f32, C>();

    // Each thread holds some of the tile's columns, of which there are at most as many as rows.
    let first_col = first_row / HEADS;
    let last_col = min((first_row + 63u) / HEADS, n_col - 1u);
    let col0 = min(first_col + lane + 0u, last_col);
    let seq0 = col_seq(col0);
    let n_key0 = col_pos(col0) + 1u;
    let col1 = min(first_col + lane + 32u, last_col);
    let seq1 = col_seq(col1);
    let n_key1 = col_pos(col1) + 1u;
    for (var todo = 0u; ; ) {
        // The smallest remaining sequence, and the number of its keys that the columns see.
        var least_seq = NO_SEQ;
        least_seq = min(least_seq, select(NO_SEQ, seq0, seq0 >= todo));
        least_seq = min(least_seq, select(NO_SEQ, seq1, seq1 >= todo));
        let seq = subgroupMin(least_seq);
        if (seq == NO_SEQ) {
            break;
        }
        todo = seq + 1u;
        var most_keys = 0u;
        var least_key = NO_SEQ;
        most_keys = max(most_keys, select(0u, n_key0, seq0 == seq));
        least_key = min(least_key, select(NO_SEQ, first_key(n_key0 - 1u), seq0 == seq));
        most_keys = max(most_keys, select(0u, n_key1, seq1 == seq));
        least_key = min(least_key, select(NO_SEQ, first_key(n_key1 - 1u), seq1 == seq));
        let n_key = subgroupMax(most_keys);
        let start = subgroupMin(least_key) / 32u * 32u;
        let seen = select(0u, pos + 1u, live && col_seq(col) == seq);
        // Page numbers are fetched a tile ahead, so that addresses do not wait for them. Loads behind the last tile are of
        // its last key: a condition would keep the compiler from placing them early.
        var page = page_of(seq, start);
        var next_page = page_of(seq, min(start + 32u, n_key - 1u));
        {
            let from_key = start;
            let cell = kv_cell(page, from_key % PAGE, kv_head);
            let last = min(n_key - from_key, 32u) - 1u;
            k0 = k_at(cell + min((tid + 0u) / 8u, last), min((tid + 0u) % 8u, D / 8u - 1u));
            k1 = k_at(cell + min((tid + 128u) / 8u, last), min((tid + 128u) % 8u, D / 8u - 1u));
        }

        {
            let from_key = start;
            let cell = kv_cell(page, from_key % PAGE, kv_head);
            let last = min(n_key - from_key, 32u) - 1u;
            v0 = v_at(cell + min((tid + 0u) / 8u, last), min((tid + 0u) % 8u, D / 8u - 1u));
            v1 = v_at(cell + min((tid + 128u) / 8u, last), min((tid + 128u) % 8u, D / 8u - 1u));
        }

        workgroupBarrier();
            k_stage(0u * ROW + (tid + 0u) / 8u * ROW + (tid + 0u) % 8u * 2u, k0);
            k_stage(0u * ROW + (tid + 128u) / 8u * ROW + (tid + 128u) % 8u * 2u, k1);

        workgroupBarrier();
        {
            let from_key = min(start + 32u, n_key - 1u);
            let cell = kv_cell(next_page, from_key % PAGE, kv_head);
            let last = min(n_key - from_key, 32u) - 1u;
            k0 = k_at(cell + min((tid + 0u) / 8u, last), min((tid + 0u) % 8u, D / 8u - 1u));
            k1 = k_at(cell + min((tid + 128u) / 8u, last), min((tid + 128u) % 8u, D / 8u - 1u));
        }

            s0 = coop_mat16x16<f32, C>();
            s1 = coop_mat16x16<f32, C>();
            s0 = coopMultiplyAdd(q0, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 0u], ROW), s0);
            s1 = coopMultiplyAdd(q0, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 0u], ROW), s1);
            s0 = coopMultiplyAdd(q1, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 4u], ROW), s0);
            s1 = coopMultiplyAdd(q1, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 4u], ROW), s1);
            s0 = coopMultiplyAdd(q2, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 8u], ROW), s0);
            s1 = coopMultiplyAdd(q2, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 8u], ROW), s1);
            s0 = coopMultiplyAdd(q3, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 12u], ROW), s0);
            s1 = coopMultiplyAdd(q3, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 12u], ROW), s1);

        for (var base = start; base < n_key; base += 32u) {
            coopStoreT(s0, &scores[subgroup * 144u + 0u], 9u);
            coopStoreT(s1, &scores[subgroup * 144u + 4u], 9u);
            workgroupBarrier();
            v_stage(32u * ROW + (tid + 0u) / 8u * ROW + (tid + 0u) % 8u * 2u, v0);
            v_stage(32u * ROW + (tid + 128u) / 8u * ROW + (tid + 128u) % 8u * 2u, v1);

            k_stage(0u * ROW + (tid + 0u) / 8u * ROW + (tid + 0u) % 8u * 2u, k0);
            k_stage(0u * ROW + (tid + 128u) / 8u * ROW + (tid + 128u) % 8u * 2u, k1);

            let next = base + 32u;
            page = next_page;
            next_page = page_of(seq, min(next + 32u, n_key - 1u));
        {
            let from_key = min(next, n_key - 1u);
            let cell = kv_cell(page, from_key % PAGE, kv_head);
            let last = min(n_key - from_key, 32u) - 1u;
            v0 = v_at(cell + min((tid + 0u) / 8u, last), min((tid + 0u) % 8u, D / 8u - 1u));
            v1 = v_at(cell + min((tid + 128u) / 8u, last), min((tid + 128u) % 8u, D / 8u - 1u));
        }

        {
            let from_key = min(next + 32u, n_key - 1u);
            let cell = kv_cell(next_page, from_key % PAGE, kv_head);
            let last = min(n_key - from_key, 32u) - 1u;
            k0 = k_at(cell + min((tid + 0u) / 8u, last), min((tid + 0u) % 8u, D / 8u - 1u));
            k1 = k_at(cell + min((tid + 128u) / 8u, last), min((tid + 128u) % 8u, D / 8u - 1u));
        }

            // Number of this thread's keys that the row sees.
            let key = base + half * 16u;
            let left = vec4<u32>(seen - min(seen, key));
            let early = vec4<u32>(first_key(pos) - min(first_key(pos), key));
            var x0 = scores[at_s + half * 4u + 0u] * UNIT;
            let i0 = vec4<u32>(0u, 1u, 2u, 3u);
            if (SOFTCAP != 0.0 || MAX_BIAS != 0.0 || WARM != 0.0) {
                x0 = vec4<f32>(score_of(x0.x, slope, key + i0.x, pos), score_of(x0.y, slope, key + i0.y, pos), score_of(x0.z, slope, key + i0.z, pos), score_of(x0.w, slope, key + i0.w, pos), );
            }
            x0 = select(vec4<f32>(NO_KEY), x0, (i0 < left) & (i0 >= early));
            var x1 = scores[at_s + half * 4u + 1u] * UNIT;
            let i1 = vec4<u32>(4u, 5u, 6u, 7u);
            if (SOFTCAP != 0.0 || MAX_BIAS != 0.0 || WARM != 0.0) {
                x1 = vec4<f32>(score_of(x1.x, slope, key + i1.x, pos), score_of(x1.y, slope, key + i1.y, pos), score_of(x1.z, slope, key + i1.z, pos), score_of(x1.w, slope, key + i1.w, pos), );
            }
            x1 = select(vec4<f32>(NO_KEY), x1, (i1 < left) & (i1 >= early));
            var x2 = scores[at_s + half * 4u + 2u] * UNIT;
            let i2 = vec4<u32>(8u, 9u, 10u, 11u);
            if (SOFTCAP != 0.0 || MAX_BIAS != 0.0 || WARM != 0.0) {
                x2 = vec4<f32>(score_of(x2.x, slope, key + i2.x, pos), score_of(x2.y, slope, key + i2.y, pos), score_of(x2.z, slope, key + i2.z, pos), score_of(x2.w, slope, key + i2.w, pos), );
            }
            x2 = select(vec4<f32>(NO_KEY), x2, (i2 < left) & (i2 >= early));
            var x3 = scores[at_s + half * 4u + 3u] * UNIT;
            let i3 = vec4<u32>(12u, 13u, 14u, 15u);
            if (SOFTCAP != 0.0 || MAX_BIAS != 0.0 || WARM != 0.0) {
                x3 = vec4<f32>(score_of(x3.x, slope, key + i3.x, pos), score_of(x3.y, slope, key + i3.y, pos), score_of(x3.z, slope, key + i3.z, pos), score_of(x3.w, slope, key + i3.w, pos), );
            }
            x3 = select(vec4<f32>(NO_KEY), x3, (i3 < left) & (i3 >= early));
            let x = max(max(x0, x1), max(x2, x3));
            var high = max(max(x.x, x.y), max(x.z, x.w));
            high = max(high, subgroupShuffleXor(high, 16u));
            let grows = high - top > 10.0;
            let fade = select(1.0, exp2(top - high), grows);
            let any_grows = subgroupAny(grows && top > NO_KEY);
            if (lane == 0u) {
                grown[subgroup] = u32(any_grows);
            }
            top = select(top, high, grows);
            // A row without visible keys so far keeps exponentials of 0.
            let least = select(0.0, top, top > NO_KEY);
            let p0 = exp2(x0 - least);
            powers[at_p + 0u] = vec4<f16>(p0);
            let p1 = exp2(x1 - least);
            powers[at_p + 1u] = vec4<f16>(p1);
            let p2 = exp2(x2 - least);
            powers[at_p + 2u] = vec4<f16>(p2);
            let p3 = exp2(x3 - least);
            powers[at_p + 3u] = vec4<f16>(p3);
            den = den * fade + dot(p0 + p1 + p2 + p3, vec4<f32>(1.0));
            workgroupBarrier();
            if ((grown[0] | grown[1] | grown[2] | grown[3]) != 0u) {
                // Double buffering: a tile is read before the next but one overwrites it.
                coopStoreT(o0, &scores[subgroup * 144u + 0u], 9u);
                workgroupBarrier();
                scores[at_s + 0u + half * 2u] *= fade;
                scores[at_s + 1u + half * 2u] *= fade;
                workgroupBarrier();
                o0 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 0u], 9u);
                // Double buffering: a tile is read before the next but one overwrites it.
                coopStoreT(o1, &scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
                scores[at_s + 4u + half * 2u] *= fade;
                scores[at_s + 5u + half * 2u] *= fade;
                workgroupBarrier();
                o1 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 4u], 9u);
                // Double buffering: a tile is read before the next but one overwrites it.
                coopStoreT(o2, &scores[subgroup * 144u + 0u], 9u);
                workgroupBarrier();
                scores[at_s + 0u + half * 2u] *= fade;
                scores[at_s + 1u + half * 2u] *= fade;
                workgroupBarrier();
                o2 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 0u], 9u);
                // Double buffering: a tile is read before the next but one overwrites it.
                coopStoreT(o3, &scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
                scores[at_s + 4u + half * 2u] *= fade;
                scores[at_s + 5u + half * 2u] *= fade;
                workgroupBarrier();
                o3 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
            }
            {
                let p = coopLoadT<coop_mat16x16<f16, A>>(&powers[subgroup * 160u + 0u], 10u);
                o0 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 0u], ROW), o0);
                o1 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 4u], ROW), o1);
                o2 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 8u], ROW), o2);
                o3 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 12u], ROW), o3);
            }
            {
                let p = coopLoadT<coop_mat16x16<f16, A>>(&powers[subgroup * 160u + 4u], 10u);
                o0 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 0u], ROW), o0);
                o1 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 4u], ROW), o1);
                o2 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 8u], ROW), o2);
                o3 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 12u], ROW), o3);
            }
            s0 = coop_mat16x16<f32, C>();
            s1 = coop_mat16x16<f32, C>();
            s0 = coopMultiplyAdd(q0, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 0u], ROW), s0);
            s1 = coopMultiplyAdd(q0, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 0u], ROW), s1);
            s0 = coopMultiplyAdd(q1, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 4u], ROW), s0);
            s1 = coopMultiplyAdd(q1, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 4u], ROW), s1);
            s0 = coopMultiplyAdd(q2, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 8u], ROW), s0);
            s1 = coopMultiplyAdd(q2, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 8u], ROW), s1);
            s0 = coopMultiplyAdd(q3, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 12u], ROW), s0);
            s1 = coopMultiplyAdd(q3, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 12u], ROW), s1);

        }
    }
    den += subgroupShuffleXor(den, 16u);
    let at_y = (col * LDY + (head0 + row % HEADS) * D) / 4u;
    workgroupBarrier();
    coopStoreT(o0, &scores[subgroup * 144u + 0u], 9u);
    workgroupBarrier();
    {
        let c = 0u + half * 2u;
        if (live && 4u * c < D) {
            y_put(at_y + c, scores[at_s + 0u + half * 2u] / den);
        }
    }
    {
        let c = 1u + half * 2u;
        if (live && 4u * c < D) {
            y_put(at_y + c, scores[at_s + 1u + half * 2u] / den);
        }
    }
    coopStoreT(o1, &scores[subgroup * 144u + 4u], 9u);
    workgroupBarrier();
    {
        let c = 4u + half * 2u;
        if (live && 4u * c < D) {
            y_put(at_y + c, scores[at_s + 4u + half * 2u] / den);
        }
    }
    {
        let c = 5u + half * 2u;
        if (live && 4u * c < D) {
            y_put(at_y + c, scores[at_s + 5u + half * 2u] / den);
        }
    }
    coopStoreT(o2, &scores[subgroup * 144u + 0u], 9u);
    workgroupBarrier();
    {
        let c = 8u + half * 2u;
        if (live && 4u * c < D) {
            y_put(at_y + c, scores[at_s + 0u + half * 2u] / den);
        }
    }
    {
        let c = 9u + half * 2u;
        if (live && 4u * c < D) {
            y_put(at_y + c, scores[at_s + 1u + half * 2u] / den);
        }
    }
    coopStoreT(o3, &scores[subgroup * 144u + 4u], 9u);
    workgroupBarrier();
    {
        let c = 12u + half * 2u;
        if (live && 4u * c < D) {
            y_put(at_y + c, scores[at_s + 4u + half * 2u] / den);
        }
    }
    {
        let c = 13u + half * 2u;
        if (live && 4u * c < D) {
            y_put(at_y + c, scores[at_s + 5u + half * 2u] / den);
        }
    }
}
