// attention_texts: tile=f32 runs=1
override N_HEAD: u32 = 1u;
override N_KV: u32 = 1u;
override D: u32 = 64u;
override DV: u32 = 64u;
override HEADS: u32 = 1u;
override HEAD_GROUPS: u32 = 1u;
override LDQ: u32 = 64u;
override LDK: u32 = 64u;
override LDV: u32 = 64u;
override LDY: u32 = 64u;
override UNIT: f32 = 1.0;
override WINDOW: u32 = 0u;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> step: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;
const COLS: u32 = 16u;
override N_SEQ: u32 = 1u;
fn col_pos(c: u32) -> u32 { return step[COLS + 4u * c + 1u]; }
// With a single sequence its number is not loaded, so that loads of its page table or state need not wait.
fn col_seq(c: u32) -> u32 {
    if (N_SEQ == 1u) {
        return 0u;
    }
    return step[COLS + 4u * c + 2u];
}

override MAX_BIAS: f32 = 0.0;
override N_LOG2: u32 = 1u;
fn slope(head: u32) -> f32 {
    if (MAX_BIAS <= 0.0) {
        return 1.0;
    }
    let n = f32(N_LOG2);
    let h = f32(head);
    return exp2(-MAX_BIAS * select((h + 1.0) / n, (2.0 * (h - n) + 1.0) / (2.0 * n), h >= n));
}

const NO_KEY: f32 = -3.0e38;
// For the scores 64 keys, then 32 queries, in rows of 32 channels; for the values 32 rows of 64 exponentials, then
// some values. Rows are padded by four values against bank conflicts.
const QUERIES: u32 = 576u;
const VALUES: u32 = 544u;
var<workgroup> staged: array<vec4<f32>, 864>;
// Partial results of the 16 threads of four rows.
var<workgroup> said: array<vec4<f32>, 128>;

// The columns that a column sees: from x to before y.
fn seen_by(col: u32, n_col: u32) -> vec2<u32> {
    let seq = col_seq(col);
    let start = col - min(col_pos(col), col);
    // The last known column of the text, and the first known one after it.
    var last = col;
    var after = n_col;
    while (after - last > 1u) {
        let c = (last + after) / 2u;
        if (col_seq(c) == seq && col_pos(c) == c - start) {
            last = c;
        } else {
            after = c;
        }
    }
    if (WINDOW == 0u) {
        return vec2<u32>(start, after);
    }
    let half = WINDOW / 2u;
    return vec2<u32>(max(start, col - min(half, col)), min(after, col + half + 1u));
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let gqa = N_HEAD / N_KV;
    let kv_head = group.x / HEAD_GROUPS;
    let head0 = kv_head * gqa + (group.x % HEAD_GROUPS) * HEADS;
    let n_head = min(HEADS, (kv_head + 1u) * gqa - head0);
    let n_col = step[0];
    let n_row = n_col * HEADS;
    let first_row = group.y * 32u;
    if (first_row >= n_row) {
        return;
    }
    let first_channel = group.z * 64u;
    let tr = tid / 16u;
    let tc = tid % 16u;
    let row0 = first_row + tr * 4u + 0u;
    let col0 = min(row0 / HEADS, n_col - 1u);
    let live0 = row0 < n_row && row0 % HEADS < n_head;
    let seen0 = seen_by(col0, n_col);
    let slope0 = 1.4426950408889634 * slope(head0 + row0 % HEADS);
    var o00 = vec4<f32>();
    let row1 = first_row + tr * 4u + 1u;
    let col1 = min(row1 / HEADS, n_col - 1u);
    let live1 = row1 < n_row && row1 % HEADS < n_head;
    let seen1 = seen_by(col1, n_col);
    let slope1 = 1.4426950408889634 * slope(head0 + row1 % HEADS);
    var o10 = vec4<f32>();
    let row2 = first_row + tr * 4u + 2u;
    let col2 = min(row2 / HEADS, n_col - 1u);
    let live2 = row2 < n_row && row2 % HEADS < n_head;
    let seen2 = seen_by(col2, n_col);
    let slope2 = 1.4426950408889634 * slope(head0 + row2 % HEADS);
    var o20 = vec4<f32>();
    let row3 = first_row + tr * 4u + 3u;
    let col3 = min(row3 / HEADS, n_col - 1u);
    let live3 = row3 < n_row && row3 % HEADS < n_head;
    let seen3 = seen_by(col3, n_col);
    let slope3 = 1.4426950408889634 * slope(head0 + row3 % HEADS);
    var o30 = vec4<f32>();
    var top = vec4<f32>(NO_KEY);
    var den = vec4<f32>();
    // Texts are consecutive: the keys of the first and of the last column bound those of all.
    let start = seen_by(first_row / HEADS, n_col).x / 64u * 64u;
    let end = seen_by(min((first_row + 31u) / HEADS, n_col - 1u), n_col).y;
    for (var base = start; base < end; base += 64u) {
        var s0 = vec4<f32>();
        var s1 = vec4<f32>();
        var s2 = vec4<f32>();
        var s3 = vec4<f32>();
        for (var c0 = 0u; c0 < D; c0 += 32u) {
            // Eight channels of two keys, four of two queries. Reads beyond the last key, channel or row stay in bounds:
            // such keys get exponentials of 0, such channels of keys meet zeros, such rows are not stored.
            let at0 = (min(base + tid / 4u + 0u, end - 1u) * LDK + kv_head * D) / 4u;
            let kc0 = (c0 + tid % 4u * 8u) / 4u;
            let ka0 = k[at0 + min(kc0, D / 4u - 1u)];
            let kb0 = k[at0 + min(kc0 + 1u, D / 4u - 1u)];
            let qr0 = min(first_row + tid / 8u + 0u, n_row - 1u);
            let qc0 = c0 + tid % 8u * 4u;
            let at_q0 = qr0 / HEADS * LDQ + (head0 + min(qr0 % HEADS, n_head - 1u)) * D + min(qc0, D - 4u);
            let q0 = select(vec4<f32>(), q[at_q0 / 4u], qc0 < D);
            let at1 = (min(base + tid / 4u + 32u, end - 1u) * LDK + kv_head * D) / 4u;
            let kc1 = (c0 + tid % 4u * 8u) / 4u;
            let ka1 = k[at1 + min(kc1, D / 4u - 1u)];
            let kb1 = k[at1 + min(kc1 + 1u, D / 4u - 1u)];
            let qr1 = min(first_row + tid / 8u + 16u, n_row - 1u);
            let qc1 = c0 + tid % 8u * 4u;
            let at_q1 = qr1 / HEADS * LDQ + (head0 + min(qr1 % HEADS, n_head - 1u)) * D + min(qc1, D - 4u);
            let q1 = select(vec4<f32>(), q[at_q1 / 4u], qc1 < D);
            workgroupBarrier();
            let at_k0 = (tid / 4u + 0u) * 9u + tid % 4u * 2u;
            staged[at_k0] = vec4<f32>(ka0);
            staged[at_k0 + 1u] = vec4<f32>(kb0);
            staged[QUERIES + (tid / 8u + 0u) * 9u + tid % 8u] = vec4<f32>(q0);
            let at_k1 = (tid / 4u + 32u) * 9u + tid % 4u * 2u;
            staged[at_k1] = vec4<f32>(ka1);
            staged[at_k1 + 1u] = vec4<f32>(kb1);
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
        if (MAX_BIAS > 0.0) {
            s0 -= slope0 * vec4<f32>(max(key, vec4<u32>(col0)) - min(key, vec4<u32>(col0)));
        }
        s0 = select(vec4<f32>(NO_KEY), s0, (key < vec4<u32>(seen0.y)) & (key >= vec4<u32>(seen0.x)));
        s1 *= UNIT;
        if (MAX_BIAS > 0.0) {
            s1 -= slope1 * vec4<f32>(max(key, vec4<u32>(col1)) - min(key, vec4<u32>(col1)));
        }
        s1 = select(vec4<f32>(NO_KEY), s1, (key < vec4<u32>(seen1.y)) & (key >= vec4<u32>(seen1.x)));
        s2 *= UNIT;
        if (MAX_BIAS > 0.0) {
            s2 -= slope2 * vec4<f32>(max(key, vec4<u32>(col2)) - min(key, vec4<u32>(col2)));
        }
        s2 = select(vec4<f32>(NO_KEY), s2, (key < vec4<u32>(seen2.y)) & (key >= vec4<u32>(seen2.x)));
        s3 *= UNIT;
        if (MAX_BIAS > 0.0) {
            s3 -= slope3 * vec4<f32>(max(key, vec4<u32>(col3)) - min(key, vec4<u32>(col3)));
        }
        s3 = select(vec4<f32>(NO_KEY), s3, (key < vec4<u32>(seen3.y)) & (key >= vec4<u32>(seen3.x)));
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
            let vc = (first_channel + tid % 8u * 8u) / 4u;
            let at = (min(base + u / 4u + u % 4u * 16u, end - 1u) * LDV + kv_head * DV) / 4u;
            let value = v[at + min(vc, DV / 4u - 1u)];
            let next = v[at + min(vc + 1u, DV / 4u - 1u)];
            workgroupBarrier();
            staged[VALUES + 2u * tid] = vec4<f32>(value);
            staged[VALUES + 2u * tid + 1u] = vec4<f32>(next);
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
