// attention_tiles: k=f16 v=f16 tile=f32 runs=1
override N_HEAD: u32 = 1u;
override HEADS: u32 = 1u;
override HEAD_GROUPS: u32 = 1u;
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
// For the scores 64 keys, then 32 queries, in rows of 32 channels; for the values 32 rows of 64 exponentials, then
// some values. Rows are padded by four values against bank conflicts.
const QUERIES: u32 = 576u;
const VALUES: u32 = 544u;
var<workgroup> staged: array<vec4<f32>, 864>;
// Partial results of the 16 threads of four rows.
var<workgroup> said: array<vec4<f32>, 128>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let gqa = N_HEAD / N_KV;
    let kv_head = group.x / HEAD_GROUPS;
    let head0 = kv_head * gqa + (group.x % HEAD_GROUPS) * HEADS;
    let n_head = min(HEADS, (kv_head + 1u) * gqa - head0);
    let n_col = step[0];
    let n_row = n_col * HEADS;
    // Another kernel computes the leading columns. Later ones see more keys, so they start first.
    let  first_row = n_each() * HEADS + (groups.y - 1u - group.y) * 32u;
    if ( first_row >= n_row) {
        return;
    }
    let first_channel = group.z * 64u;
    let tr = tid / 16u;
    let tc = tid % 16u;
    let row0 = first_row + tr * 4u + 0u;
    let col0 = min(row0 / HEADS, n_col - 1u);
    let live0 = row0 < n_row && row0 % HEADS < n_head;
    let pos0 = col_pos(col0);
    let slope0 = slope_of(head0 + row0 % HEADS);
    var o00 = vec4<f32>();
    let row1 = first_row + tr * 4u + 1u;
    let col1 = min(row1 / HEADS, n_col - 1u);
    let live1 = row1 < n_row && row1 % HEADS < n_head;
    let pos1 = col_pos(col1);
    let slope1 = slope_of(head0 + row1 % HEADS);
    var o10 = vec4<f32>();
    let row2 = first_row + tr * 4u + 2u;
    let col2 = min(row2 / HEADS, n_col - 1u);
    let live2 = row2 < n_row && row2 % HEADS < n_head;
    let pos2 = col_pos(col2);
    let slope2 = slope_of(head0 + row2 % HEADS);
    var o20 = vec4<f32>();
    let row3 = first_row + tr * 4u + 3u;
    let col3 = min(row3 / HEADS, n_col - 1u);
    let live3 = row3 < n_row && row3 % HEADS < n_head;
    let pos3 = col_pos(col3);
    let slope3 = slope_of(head0 + row3 % HEADS);
    var o30 = vec4<f32>();
    var top = vec4<f32>(NO_KEY);
    var den = vec4<f32>();
    if (SINKS) {
        top = vec4<f32>(sink_of(min(head0 + row0 % HEADS, N_HEAD - 1u)), sink_of(min(head0 + row1 % HEADS, N_HEAD - 1u)), sink_of(min(head0 + row2 % HEADS, N_HEAD - 1u)), sink_of(min(head0 + row3 % HEADS, N_HEAD - 1u)));
        den = vec4<f32>(select(0.0, 1.0, tc == 0u));
    }

    let first_col = first_row / HEADS;
    let last_col = min(( first_row + 31u) / HEADS, n_col - 1u);
    for (var todo = 0u; ; ) {
        // The smallest sequence from todo among the columns, and its visible keys: from start (a multiple of
        // 64u) to before n_key; no keys: there is none.
        var seq = 0u;
        var n_key = 0u;
        var start = 0u;
        for (var c = first_col; c <= last_col; c++) {
            let s = col_seq(c);
            if (s >= todo && (n_key == 0u || s <= seq)) {
                let same = n_key > 0u && s == seq;
                n_key = max(select(0u, n_key, same), col_pos(c) + 1u);
                start = min(select(0xffffffffu, start, same), first_key(col_pos(c)));
                seq = s;
            }
        }
        start = start / 64u * 64u;

        if (n_key == 0u) {
            break;
        }
        todo = seq + 1u;
        let seen0 = select(0u, pos0 + 1u, live0 && col_seq(col0) == seq);
        let from0 = first_key(pos0);
        let seen1 = select(0u, pos1 + 1u, live1 && col_seq(col1) == seq);
        let from1 = first_key(pos1);
        let seen2 = select(0u, pos2 + 1u, live2 && col_seq(col2) == seq);
        let from2 = first_key(pos2);
        let seen3 = select(0u, pos3 + 1u, live3 && col_seq(col3) == seq);
        let from3 = first_key(pos3);
        for (var base = start; base < n_key; base += 64u) {
            var s0 = vec4<f32>();
            var s1 = vec4<f32>();
            var s2 = vec4<f32>();
            var s3 = vec4<f32>();
            for (var c0 = 0u; c0 < D; c0 += 32u) {
                // Eight channels of two keys, four of two queries. Reads beyond the last key, channel or row stay in bounds:
                // such keys get exponentials of 0, such channels of keys meet zeros, such rows are not stored.
                let at0 = min(base + tid / 4u + 0u, n_key - 1u);
                let kc0 = min(c0 + tid % 4u * 8u, D - 8u);
                let k0 = k_get8(kv_cell(page_of(seq, at0), at0 % PAGE, kv_head), kc0);
                let qr0 = min(first_row + tid / 8u + 0u, n_row - 1u);
                let qc0 = c0 + tid % 8u * 4u;
                let at_q0 = qr0 / HEADS * LDQ + (head0 + min(qr0 % HEADS, n_head - 1u)) * D + min(qc0, D - 4u);
                let q0 = select(vec4<f32>(), q[at_q0 / 4u], qc0 < D);
                let at1 = min(base + tid / 4u + 32u, n_key - 1u);
                let kc1 = min(c0 + tid % 4u * 8u, D - 8u);
                let k1 = k_get8(kv_cell(page_of(seq, at1), at1 % PAGE, kv_head), kc1);
                let qr1 = min(first_row + tid / 8u + 16u, n_row - 1u);
                let qc1 = c0 + tid % 8u * 4u;
                let at_q1 = qr1 / HEADS * LDQ + (head0 + min(qr1 % HEADS, n_head - 1u)) * D + min(qc1, D - 4u);
                let q1 = select(vec4<f32>(), q[at_q1 / 4u], qc1 < D);
                workgroupBarrier();
                let at_k0 = (tid / 4u + 0u) * 9u + tid % 4u * 2u;
                staged[at_k0] = vec4<f32>(k0.a);
                staged[at_k0 + 1u] = vec4<f32>(k0.b);
                staged[QUERIES + (tid / 8u + 0u) * 9u + tid % 8u] = vec4<f32>(q0);
                let at_k1 = (tid / 4u + 32u) * 9u + tid % 4u * 2u;
                staged[at_k1] = vec4<f32>(k1.a);
                staged[at_k1 + 1u] = vec4<f32>(k1.b);
                staged[QUERIES + (tid / 8u + 16u) * 9u + tid % 8u] = vec4<f32>(q1);
                workgroupBarrier();
                for (var c = 0u; c < 8u; c++) {
                    let key0 = vec4<f32>(staged[(tc + 0u) * 9u + c]);
                    let key1 = vec4<f32>(staged[(tc + 16u) * 9u + c]);
                    let key2 = vec4<f32>(staged[(tc + 32u) * 9u + c]);
                    let key3 = vec4<f32>(staged[(tc + 48u) * 9u + c]);
                    let query0 = vec4<f32>(staged[QUERIES + (tr * 4u + 0u) * 9u + c]);
                    s0 += vec4<f32>(dot(query0, key0), dot(query0, key1), dot(query0, key2), dot(query0, key3));
                    let query1 = vec4<f32>(staged[QUERIES + (tr * 4u + 1u) * 9u + c]);
                    s1 += vec4<f32>(dot(query1, key0), dot(query1, key1), dot(query1, key2), dot(query1, key3));
                    let query2 = vec4<f32>(staged[QUERIES + (tr * 4u + 2u) * 9u + c]);
                    s2 += vec4<f32>(dot(query2, key0), dot(query2, key1), dot(query2, key2), dot(query2, key3));
                    let query3 = vec4<f32>(staged[QUERIES + (tr * 4u + 3u) * 9u + c]);
                    s3 += vec4<f32>(dot(query3, key0), dot(query3, key1), dot(query3, key2), dot(query3, key3));
                }
            }
            let key = base + tc + vec4<u32>(0u, 16u, 32u, 48u);
            s0 *= UNIT;
            if (SOFTCAP != 0.0 || MAX_BIAS != 0.0 || WARM != 0.0) {
                s0 = vec4<f32>(score_of(s0.x, slope0, key.x, pos0), score_of(s0.y, slope0, key.y, pos0), score_of(s0.z, slope0, key.z, pos0), score_of(s0.w, slope0, key.w, pos0), );
            }
            s0 = select(vec4<f32>(NO_KEY), s0, (key < vec4<u32>(seen0)) & (key >= vec4<u32>(from0)));
            s1 *= UNIT;
            if (SOFTCAP != 0.0 || MAX_BIAS != 0.0 || WARM != 0.0) {
                s1 = vec4<f32>(score_of(s1.x, slope1, key.x, pos1), score_of(s1.y, slope1, key.y, pos1), score_of(s1.z, slope1, key.z, pos1), score_of(s1.w, slope1, key.w, pos1), );
            }
            s1 = select(vec4<f32>(NO_KEY), s1, (key < vec4<u32>(seen1)) & (key >= vec4<u32>(from1)));
            s2 *= UNIT;
            if (SOFTCAP != 0.0 || MAX_BIAS != 0.0 || WARM != 0.0) {
                s2 = vec4<f32>(score_of(s2.x, slope2, key.x, pos2), score_of(s2.y, slope2, key.y, pos2), score_of(s2.z, slope2, key.z, pos2), score_of(s2.w, slope2, key.w, pos2), );
            }
            s2 = select(vec4<f32>(NO_KEY), s2, (key < vec4<u32>(seen2)) & (key >= vec4<u32>(from2)));
            s3 *= UNIT;
            if (SOFTCAP != 0.0 || MAX_BIAS != 0.0 || WARM != 0.0) {
                s3 = vec4<f32>(score_of(s3.x, slope3, key.x, pos3), score_of(s3.y, slope3, key.y, pos3), score_of(s3.z, slope3, key.z, pos3), score_of(s3.w, slope3, key.w, pos3), );
            }
            s3 = select(vec4<f32>(NO_KEY), s3, (key < vec4<u32>(seen3)) & (key >= vec4<u32>(from3)));
            said[tc * 8u + tr] = vec4<f32>(
                max(max(s0.x, s0.y), max(s0.z, s0.w)),
                max(max(s1.x, s1.y), max(s1.z, s1.w)),
                max(max(s2.x, s2.y), max(s2.z, s2.w)),
                max(max(s3.x, s3.y), max(s3.z, s3.w)),
            );
            workgroupBarrier();
            let before = top;
            for (var i = 0u; i < 16u; i++) {
                top = max(top, said[i * 8u + tr]);
            }
            let fade = exp2(before - top);
            // A row without visible keys so far keeps exponentials of 0.
            let least = max(top, vec4<f32>(-1.0e38));
            den *= fade;
            let p0 = exp2(s0 - vec4<f32>(least[0]));
            den[0] += dot(p0, vec4<f32>(1.0));
            staged[(tr * 4u + 0u) * 17u + tc] = vec4<f32>(p0);
            o00 *= fade[0];
            let p1 = exp2(s1 - vec4<f32>(least[1]));
            den[1] += dot(p1, vec4<f32>(1.0));
            staged[(tr * 4u + 1u) * 17u + tc] = vec4<f32>(p1);
            o10 *= fade[1];
            let p2 = exp2(s2 - vec4<f32>(least[2]));
            den[2] += dot(p2, vec4<f32>(1.0));
            staged[(tr * 4u + 2u) * 17u + tc] = vec4<f32>(p2);
            o20 *= fade[2];
            let p3 = exp2(s3 - vec4<f32>(least[3]));
            den[3] += dot(p3, vec4<f32>(1.0));
            staged[(tr * 4u + 3u) * 17u + tc] = vec4<f32>(p3);
            o30 *= fade[3];
            // Exponential 4 c + j of a row belongs to key c + 16 j; the values are in the same order.
            for (var u0 = 0u; u0 < 64u; u0 += 16u) {
                let u = u0 + tid / 8u;
                let vc = min(first_channel + tid % 8u * 8u, DV - 8u);
                let at = min(base + u / 4u + u % 4u * 16u, n_key - 1u);
                let value = v_get8(kv_cell(page_of(seq, at), at % PAGE, kv_head), vc);
                workgroupBarrier();
                staged[VALUES + 2u * tid] = vec4<f32>(value.a);
                staged[VALUES + 2u * tid + 1u] = vec4<f32>(value.b);
                workgroupBarrier();
                for (var t = 0u; t < 4u; t++) {
                    let e0 = vec4<f32>(staged[(tr * 4u + 0u) * 17u + u0 / 4u + t]);
                    let e1 = vec4<f32>(staged[(tr * 4u + 1u) * 17u + u0 / 4u + t]);
                    let e2 = vec4<f32>(staged[(tr * 4u + 2u) * 17u + u0 / 4u + t]);
                    let e3 = vec4<f32>(staged[(tr * 4u + 3u) * 17u + u0 / 4u + t]);
                    let v00 = vec4<f32>(staged[VALUES + (4u * t + 0u) * 16u + 0u + tc]);
                    o00 += e0[0] * v00;
                    o10 += e1[0] * v00;
                    o20 += e2[0] * v00;
                    o30 += e3[0] * v00;
                    let v10 = vec4<f32>(staged[VALUES + (4u * t + 1u) * 16u + 0u + tc]);
                    o00 += e0[1] * v10;
                    o10 += e1[1] * v10;
                    o20 += e2[1] * v10;
                    o30 += e3[1] * v10;
                    let v20 = vec4<f32>(staged[VALUES + (4u * t + 2u) * 16u + 0u + tc]);
                    o00 += e0[2] * v20;
                    o10 += e1[2] * v20;
                    o20 += e2[2] * v20;
                    o30 += e3[2] * v20;
                    let v30 = vec4<f32>(staged[VALUES + (4u * t + 3u) * 16u + 0u + tc]);
                    o00 += e0[3] * v30;
                    o10 += e1[3] * v30;
                    o20 += e2[3] * v30;
                    o30 += e3[3] * v30;
                }
            }
        }
    }
    said[tc * 8u + tr] = den;
    workgroupBarrier();
    den = vec4<f32>();
    for (var i = 0u; i < 16u; i++) {
        den += said[i * 8u + tr];
    }
    if (live0) {
        let at = (col0 * LDY + (head0 + row0 % HEADS) * DV) / 4u;
        if (first_channel + 0u + 4u * tc < DV) {
            y[at + first_channel / 4u + 0u + tc] = o00 / den[0];
        }
    }
    if (live1) {
        let at = (col1 * LDY + (head0 + row1 % HEADS) * DV) / 4u;
        if (first_channel + 0u + 4u * tc < DV) {
            y[at + first_channel / 4u + 0u + tc] = o10 / den[1];
        }
    }
    if (live2) {
        let at = (col2 * LDY + (head0 + row2 % HEADS) * DV) / 4u;
        if (first_channel + 0u + 4u * tc < DV) {
            y[at + first_channel / 4u + 0u + tc] = o20 / den[2];
        }
    }
    if (live3) {
        let at = (col3 * LDY + (head0 + row3 % HEADS) * DV) / 4u;
        if (first_channel + 0u + 4u * tc < DV) {
            y[at + first_channel / 4u + 0u + tc] = o30 / den[3];
        }
    }
}
