// attention_tiles: tile=f32 runs=4
override N_HEAD: u32 = 1u;
override HEADS: u32 = 1u;
override HEAD_GROUPS: u32 = 1u;
override SCALE: f32 = 1.0;
override LDQ: u32 = 64u;
override LDY: u32 = 64u;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> kv: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> step: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
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

override TO_EXP2: f32 = SCALE * 1.4426950408889634;
const NO_KEY: f32 = -3.0e38;
// For the scores 64 keys, then 32 queries, in rows of 32 channels; for the values 32 rows of 64 exponentials, then
// some values. Rows are longer than that by four values, against bank conflicts.
const QUERIES: u32 = 576u;
const VALUES: u32 = 544u;
var<workgroup> staged: array<vec4<f32>, 864>;
// What the 16 threads of four rows have to say.
var<workgroup> said: array<vec4<f32>, 128>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let gqa = N_HEAD / N_KV;
    let kv_head = group.x / HEAD_GROUPS;
    let head0 = kv_head * gqa + (group.x % HEAD_GROUPS) * HEADS;
    let n_head = min(HEADS, (kv_head + 1u) * gqa - head0);
    let n_col = step[0];
    let n_row = n_col * HEADS;
    // Later columns see more keys: they go first.
    let  first_row = (groups.y - 1u - group.y) * 32u;
    if ( first_row >= n_row) {
        return;
    }
    let tr = tid / 16u;
    let tc = tid % 16u;
    let row0 = first_row + tr * 4u + 0u;
    let col0 = min(row0 / HEADS, n_col - 1u);
    let live0 = row0 < n_row && row0 % HEADS < n_head;
    var o00 = vec4<f32>();
    var o01 = vec4<f32>();
    var o02 = vec4<f32>();
    var o03 = vec4<f32>();
    let row1 = first_row + tr * 4u + 1u;
    let col1 = min(row1 / HEADS, n_col - 1u);
    let live1 = row1 < n_row && row1 % HEADS < n_head;
    var o10 = vec4<f32>();
    var o11 = vec4<f32>();
    var o12 = vec4<f32>();
    var o13 = vec4<f32>();
    let row2 = first_row + tr * 4u + 2u;
    let col2 = min(row2 / HEADS, n_col - 1u);
    let live2 = row2 < n_row && row2 % HEADS < n_head;
    var o20 = vec4<f32>();
    var o21 = vec4<f32>();
    var o22 = vec4<f32>();
    var o23 = vec4<f32>();
    let row3 = first_row + tr * 4u + 3u;
    let col3 = min(row3 / HEADS, n_col - 1u);
    let live3 = row3 < n_row && row3 % HEADS < n_head;
    var o30 = vec4<f32>();
    var o31 = vec4<f32>();
    var o32 = vec4<f32>();
    var o33 = vec4<f32>();
    var top = vec4<f32>(NO_KEY);
    var den = vec4<f32>();

    let first_col = first_row / HEADS;
    let last_col = min(( first_row + 31u) / HEADS, n_col - 1u);
    for (var todo = 0u; ; ) {
        // The smallest sequence from todo on among the columns, and how many of its keys they see; none: no keys.
        var seq = 0u;
        var n_key = 0u;
        for (var c = first_col; c <= last_col; c++) {
            let s = col_seq(c);
            if (s >= todo && (n_key == 0u || s <= seq)) {
                n_key = max(select(0u, n_key, s == seq), col_pos(c) + 1u);
                seq = s;
            }
        }

        if (n_key == 0u) {
            break;
        }
        todo = seq + 1u;
        let seen0 = select(0u, col_pos(col0) + 1u, live0 && col_seq(col0) == seq);
        let seen1 = select(0u, col_pos(col1) + 1u, live1 && col_seq(col1) == seq);
        let seen2 = select(0u, col_pos(col2) + 1u, live2 && col_seq(col2) == seq);
        let seen3 = select(0u, col_pos(col3) + 1u, live3 && col_seq(col3) == seq);
        for (var base = 0u; base < n_key; base += 64u) {
            var s0 = vec4<f32>();
            var s1 = vec4<f32>();
            var s2 = vec4<f32>();
            var s3 = vec4<f32>();
            for (var c0 = 0u; c0 < D; c0 += 32u) {
                // Eight channels of two keys, four of two queries. What lies beyond the last key, channel or row is read
                // from there: such keys get exponentials of 0, such channels of keys meet zeros, such rows are not
                // written.
                let pos0 = min(base + tid / 4u + 0u, n_key - 1u);
                let kc0 = min(c0 + tid % 4u * 8u, D - 8u);
                let k0 = kv_get8(0u, kv_cell(page_of(seq, pos0), pos0 % PAGE, kv_head) + kc0);
                let qr0 = min(first_row + tid / 8u + 0u, n_row - 1u);
                let qc0 = c0 + tid % 8u * 4u;
                let at_q0 = qr0 / HEADS * LDQ + (head0 + min(qr0 % HEADS, n_head - 1u)) * D + min(qc0, D - 4u);
                let q0 = select(vec4<f32>(), q[at_q0 / 4u], qc0 < D);
                let pos1 = min(base + tid / 4u + 32u, n_key - 1u);
                let kc1 = min(c0 + tid % 4u * 8u, D - 8u);
                let k1 = kv_get8(0u, kv_cell(page_of(seq, pos1), pos1 % PAGE, kv_head) + kc1);
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
            s0 = select(vec4<f32>(NO_KEY), s0 * TO_EXP2, key < vec4<u32>(seen0));
            s1 = select(vec4<f32>(NO_KEY), s1 * TO_EXP2, key < vec4<u32>(seen1));
            s2 = select(vec4<f32>(NO_KEY), s2 * TO_EXP2, key < vec4<u32>(seen2));
            s3 = select(vec4<f32>(NO_KEY), s3 * TO_EXP2, key < vec4<u32>(seen3));
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
            // A row that has seen no key keeps exponentials of 0.
            let least = max(top, vec4<f32>(-1.0e38));
            den *= fade;
            let p0 = exp2(s0 - vec4<f32>(least[0]));
            den[0] += dot(p0, vec4<f32>(1.0));
            staged[(tr * 4u + 0u) * 17u + tc] = vec4<f32>(p0);
            o00 *= fade[0];
            o01 *= fade[0];
            o02 *= fade[0];
            o03 *= fade[0];
            let p1 = exp2(s1 - vec4<f32>(least[1]));
            den[1] += dot(p1, vec4<f32>(1.0));
            staged[(tr * 4u + 1u) * 17u + tc] = vec4<f32>(p1);
            o10 *= fade[1];
            o11 *= fade[1];
            o12 *= fade[1];
            o13 *= fade[1];
            let p2 = exp2(s2 - vec4<f32>(least[2]));
            den[2] += dot(p2, vec4<f32>(1.0));
            staged[(tr * 4u + 2u) * 17u + tc] = vec4<f32>(p2);
            o20 *= fade[2];
            o21 *= fade[2];
            o22 *= fade[2];
            o23 *= fade[2];
            let p3 = exp2(s3 - vec4<f32>(least[3]));
            den[3] += dot(p3, vec4<f32>(1.0));
            staged[(tr * 4u + 3u) * 17u + tc] = vec4<f32>(p3);
            o30 *= fade[3];
            o31 *= fade[3];
            o32 *= fade[3];
            o33 *= fade[3];
            // Exponential 4 c + j of a row is that of key c + 16 j; the values come in the same order.
            for (var u0 = 0u; u0 < 64u; u0 += 4u) {
                let u = u0 + tid / 32u;
                let vc = min(tid % 32u * 8u, D - 8u);
                let pos = min(base + u / 4u + u % 4u * 16u, n_key - 1u);
                let v = kv_get8(V0, kv_cell(page_of(seq, pos), pos % PAGE, kv_head) + vc);
                workgroupBarrier();
                staged[VALUES + 2u * tid] = vec4<f32>(v.a);
                staged[VALUES + 2u * tid + 1u] = vec4<f32>(v.b);
                workgroupBarrier();
                for (var t = 0u; t < 1u; t++) {
                    let e0 = vec4<f32>(staged[(tr * 4u + 0u) * 17u + u0 / 4u + t]);
                    let e1 = vec4<f32>(staged[(tr * 4u + 1u) * 17u + u0 / 4u + t]);
                    let e2 = vec4<f32>(staged[(tr * 4u + 2u) * 17u + u0 / 4u + t]);
                    let e3 = vec4<f32>(staged[(tr * 4u + 3u) * 17u + u0 / 4u + t]);
                    let v00 = vec4<f32>(staged[VALUES + (4u * t + 0u) * 64u + 0u + tc]);
                    o00 += e0[0] * v00;
                    o10 += e1[0] * v00;
                    o20 += e2[0] * v00;
                    o30 += e3[0] * v00;
                    let v01 = vec4<f32>(staged[VALUES + (4u * t + 0u) * 64u + 16u + tc]);
                    o01 += e0[0] * v01;
                    o11 += e1[0] * v01;
                    o21 += e2[0] * v01;
                    o31 += e3[0] * v01;
                    let v02 = vec4<f32>(staged[VALUES + (4u * t + 0u) * 64u + 32u + tc]);
                    o02 += e0[0] * v02;
                    o12 += e1[0] * v02;
                    o22 += e2[0] * v02;
                    o32 += e3[0] * v02;
                    let v03 = vec4<f32>(staged[VALUES + (4u * t + 0u) * 64u + 48u + tc]);
                    o03 += e0[0] * v03;
                    o13 += e1[0] * v03;
                    o23 += e2[0] * v03;
                    o33 += e3[0] * v03;
                    let v10 = vec4<f32>(staged[VALUES + (4u * t + 1u) * 64u + 0u + tc]);
                    o00 += e0[1] * v10;
                    o10 += e1[1] * v10;
                    o20 += e2[1] * v10;
                    o30 += e3[1] * v10;
                    let v11 = vec4<f32>(staged[VALUES + (4u * t + 1u) * 64u + 16u + tc]);
                    o01 += e0[1] * v11;
                    o11 += e1[1] * v11;
                    o21 += e2[1] * v11;
                    o31 += e3[1] * v11;
                    let v12 = vec4<f32>(staged[VALUES + (4u * t + 1u) * 64u + 32u + tc]);
                    o02 += e0[1] * v12;
                    o12 += e1[1] * v12;
                    o22 += e2[1] * v12;
                    o32 += e3[1] * v12;
                    let v13 = vec4<f32>(staged[VALUES + (4u * t + 1u) * 64u + 48u + tc]);
                    o03 += e0[1] * v13;
                    o13 += e1[1] * v13;
                    o23 += e2[1] * v13;
                    o33 += e3[1] * v13;
                    let v20 = vec4<f32>(staged[VALUES + (4u * t + 2u) * 64u + 0u + tc]);
                    o00 += e0[2] * v20;
                    o10 += e1[2] * v20;
                    o20 += e2[2] * v20;
                    o30 += e3[2] * v20;
                    let v21 = vec4<f32>(staged[VALUES + (4u * t + 2u) * 64u + 16u + tc]);
                    o01 += e0[2] * v21;
                    o11 += e1[2] * v21;
                    o21 += e2[2] * v21;
                    o31 += e3[2] * v21;
                    let v22 = vec4<f32>(staged[VALUES + (4u * t + 2u) * 64u + 32u + tc]);
                    o02 += e0[2] * v22;
                    o12 += e1[2] * v22;
                    o22 += e2[2] * v22;
                    o32 += e3[2] * v22;
                    let v23 = vec4<f32>(staged[VALUES + (4u * t + 2u) * 64u + 48u + tc]);
                    o03 += e0[2] * v23;
                    o13 += e1[2] * v23;
                    o23 += e2[2] * v23;
                    o33 += e3[2] * v23;
                    let v30 = vec4<f32>(staged[VALUES + (4u * t + 3u) * 64u + 0u + tc]);
                    o00 += e0[3] * v30;
                    o10 += e1[3] * v30;
                    o20 += e2[3] * v30;
                    o30 += e3[3] * v30;
                    let v31 = vec4<f32>(staged[VALUES + (4u * t + 3u) * 64u + 16u + tc]);
                    o01 += e0[3] * v31;
                    o11 += e1[3] * v31;
                    o21 += e2[3] * v31;
                    o31 += e3[3] * v31;
                    let v32 = vec4<f32>(staged[VALUES + (4u * t + 3u) * 64u + 32u + tc]);
                    o02 += e0[3] * v32;
                    o12 += e1[3] * v32;
                    o22 += e2[3] * v32;
                    o32 += e3[3] * v32;
                    let v33 = vec4<f32>(staged[VALUES + (4u * t + 3u) * 64u + 48u + tc]);
                    o03 += e0[3] * v33;
                    o13 += e1[3] * v33;
                    o23 += e2[3] * v33;
                    o33 += e3[3] * v33;
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
        let at = (col0 * LDY + (head0 + row0 % HEADS) * D) / 4u;
        if (0u + 4u * tc < D) {
            y[at + 0u + tc] = o00 / den[0];
        }
        if (64u + 4u * tc < D) {
            y[at + 16u + tc] = o01 / den[0];
        }
        if (128u + 4u * tc < D) {
            y[at + 32u + tc] = o02 / den[0];
        }
        if (192u + 4u * tc < D) {
            y[at + 48u + tc] = o03 / den[0];
        }
    }
    if (live1) {
        let at = (col1 * LDY + (head0 + row1 % HEADS) * D) / 4u;
        if (0u + 4u * tc < D) {
            y[at + 0u + tc] = o10 / den[1];
        }
        if (64u + 4u * tc < D) {
            y[at + 16u + tc] = o11 / den[1];
        }
        if (128u + 4u * tc < D) {
            y[at + 32u + tc] = o12 / den[1];
        }
        if (192u + 4u * tc < D) {
            y[at + 48u + tc] = o13 / den[1];
        }
    }
    if (live2) {
        let at = (col2 * LDY + (head0 + row2 % HEADS) * D) / 4u;
        if (0u + 4u * tc < D) {
            y[at + 0u + tc] = o20 / den[2];
        }
        if (64u + 4u * tc < D) {
            y[at + 16u + tc] = o21 / den[2];
        }
        if (128u + 4u * tc < D) {
            y[at + 32u + tc] = o22 / den[2];
        }
        if (192u + 4u * tc < D) {
            y[at + 48u + tc] = o23 / den[2];
        }
    }
    if (live3) {
        let at = (col3 * LDY + (head0 + row3 % HEADS) * D) / 4u;
        if (0u + 4u * tc < D) {
            y[at + 0u + tc] = o30 / den[3];
        }
        if (64u + 4u * tc < D) {
            y[at + 16u + tc] = o31 / den[3];
        }
        if (128u + 4u * tc < D) {
            y[at + 32u + tc] = o32 / den[3];
        }
        if (192u + 4u * tc < D) {
            y[at + 48u + tc] = o33 / den[3];
        }
    }
}
