// attention_coop: kv=f32 tiles=16
override N_HEAD: u32 = 1u;
override HEADS: u32 = 1u;
override HEAD_GROUPS: u32 = 1u;
override SCALE: f32 = 1.0;
override LDQ: u32 = 64u;
override LDY: u32 = 64u;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> kv: array<vec4<f32>>;
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

// vec4 of a padded head, and of a staged row: 8 values more against bank conflicts.
const D4: u32 = 64u;
const ROW: u32 = 66u;
override TO_EXP2: f32 = SCALE * 1.4426950408889634;
// So low that no score reaches it, however it is scaled.
const NO_KEY: f32 = -1.0e38;
const NO_SEQ: u32 = 0xffffffffu;
// Queries of 64 rows; then 32 keys and 32 values.
var<workgroup> staged: array<vec4<f16>, 64u * ROW>;
// For each subgroup 16 rows of scores, and of their exponentials.
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
    // Later columns see more keys: they go first.
    let  first_row = (groups.y - 1u - group.y) * 64u;
    if ( first_row >= n_col * HEADS) {
        return;
    }
    // Half of a row of the subgroup's tile is this thread's.
    let r = lane % 16u;
    let half = lane / 16u;
    let row = first_row + subgroup * 16u + r;
    let col = min(row / HEADS, n_col - 1u);
    let live = row < n_col * HEADS && row % HEADS < n_head;
    let at_s = subgroup * 144u + r * 9u;
    let at_p = subgroup * 160u + r * 10u + half * 4u;

    for (var i = tid; i < 64u * D4; i += 128u) {
        let c = i % D4;
        let q_row = first_row + i / D4;
        var v = vec4<f32>();
        if (4u * c < D && q_row < n_col * HEADS && q_row % HEADS < n_head) {
            v = q[(q_row / HEADS * LDQ + (head0 + q_row % HEADS) * D) / 4u + c];
        }
        staged[i / D4 * ROW + c] = vec4<f16>(v);
    }
    workgroupBarrier();
    let q0 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 0u], ROW);
    var o0 = coop_mat16x16<f32, C>();
    let q1 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 4u], ROW);
    var o1 = coop_mat16x16<f32, C>();
    let q2 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 8u], ROW);
    var o2 = coop_mat16x16<f32, C>();
    let q3 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 12u], ROW);
    var o3 = coop_mat16x16<f32, C>();
    let q4 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 16u], ROW);
    var o4 = coop_mat16x16<f32, C>();
    let q5 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 20u], ROW);
    var o5 = coop_mat16x16<f32, C>();
    let q6 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 24u], ROW);
    var o6 = coop_mat16x16<f32, C>();
    let q7 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 28u], ROW);
    var o7 = coop_mat16x16<f32, C>();
    let q8 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 32u], ROW);
    var o8 = coop_mat16x16<f32, C>();
    let q9 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 36u], ROW);
    var o9 = coop_mat16x16<f32, C>();
    let q10 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 40u], ROW);
    var o10 = coop_mat16x16<f32, C>();
    let q11 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 44u], ROW);
    var o11 = coop_mat16x16<f32, C>();
    let q12 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 48u], ROW);
    var o12 = coop_mat16x16<f32, C>();
    let q13 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 52u], ROW);
    var o13 = coop_mat16x16<f32, C>();
    let q14 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 56u], ROW);
    var o14 = coop_mat16x16<f32, C>();
    let q15 = coopLoadT<coop_mat16x16<f16, A>>(&staged[subgroup * 16u * ROW + 60u], ROW);
    var o15 = coop_mat16x16<f32, C>();
    var top = NO_KEY;
    var den = 0.0;
    var k0 = vec4<f16>();
    var v0 = vec4<f16>();
    var k1 = vec4<f16>();
    var v1 = vec4<f16>();
    var k2 = vec4<f16>();
    var v2 = vec4<f16>();
    var k3 = vec4<f16>();
    var v3 = vec4<f16>();
    var k4 = vec4<f16>();
    var v4 = vec4<f16>();
    var k5 = vec4<f16>();
    var v5 = vec4<f16>();
    var k6 = vec4<f16>();
    var v6 = vec4<f16>();
    var k7 = vec4<f16>();
    var v7 = vec4<f16>();
    var k8 = vec4<f16>();
    var v8 = vec4<f16>();
    var k9 = vec4<f16>();
    var v9 = vec4<f16>();
    var k10 = vec4<f16>();
    var v10 = vec4<f16>();
    var k11 = vec4<f16>();
    var v11 = vec4<f16>();
    var k12 = vec4<f16>();
    var v12 = vec4<f16>();
    var k13 = vec4<f16>();
    var v13 = vec4<f16>();
    var k14 = vec4<f16>();
    var v14 = vec4<f16>();
    var k15 = vec4<f16>();
    var v15 = vec4<f16>();

    // Each thread remembers two of the tile's columns, of which there are at most 64.
    let first_col = first_row / HEADS;
    let last_col = min((first_row + 63u) / HEADS, n_col - 1u);
    let col0 = min(first_col + lane + 0u, last_col);
    let seq0 = col_seq(col0);
    let n_key0 = col_pos(col0) + 1u;
    let col1 = min(first_col + lane + 32u, last_col);
    let seq1 = col_seq(col1);
    let n_key1 = col_pos(col1) + 1u;
    for (var todo = 0u; ; ) {
        // The smallest sequence not done yet, and how many of its keys the columns see.
        let seq = subgroupMin(min(select(NO_SEQ, seq0, seq0 >= todo), select(NO_SEQ, seq1, seq1 >= todo)));
        if (seq == NO_SEQ) {
            break;
        }
        todo = seq + 1u;
        let n_key = subgroupMax(max(select(0u, n_key0, seq0 == seq), select(0u, n_key1, seq1 == seq)));
        var page = page_of(seq, 0u);
        let seen = select(0u, col_pos(col) + 1u, live && col_seq(col) == seq);
        {
            // A page holds whole tiles of keys. What lies beyond the last key or channel is read from there: such keys
            // get exponentials of 0, such channels of keys meet zeros, of values they are not written.
            let cell = kv_cell(page, 0u % PAGE, kv_head) / 4u;
            let last = min(n_key - 0u, 32u) - 1u;
            let at0 = cell + min((tid + 0u) / D4, last) * (D / 4u) + min((tid + 0u) % D4, D / 4u - 1u);
            k0 = vec4<f16>(kv[at0]);
            v0 = vec4<f16>(kv[V0 / 4u + at0]);
            let at1 = cell + min((tid + 128u) / D4, last) * (D / 4u) + min((tid + 128u) % D4, D / 4u - 1u);
            k1 = vec4<f16>(kv[at1]);
            v1 = vec4<f16>(kv[V0 / 4u + at1]);
            let at2 = cell + min((tid + 256u) / D4, last) * (D / 4u) + min((tid + 256u) % D4, D / 4u - 1u);
            k2 = vec4<f16>(kv[at2]);
            v2 = vec4<f16>(kv[V0 / 4u + at2]);
            let at3 = cell + min((tid + 384u) / D4, last) * (D / 4u) + min((tid + 384u) % D4, D / 4u - 1u);
            k3 = vec4<f16>(kv[at3]);
            v3 = vec4<f16>(kv[V0 / 4u + at3]);
            let at4 = cell + min((tid + 512u) / D4, last) * (D / 4u) + min((tid + 512u) % D4, D / 4u - 1u);
            k4 = vec4<f16>(kv[at4]);
            v4 = vec4<f16>(kv[V0 / 4u + at4]);
            let at5 = cell + min((tid + 640u) / D4, last) * (D / 4u) + min((tid + 640u) % D4, D / 4u - 1u);
            k5 = vec4<f16>(kv[at5]);
            v5 = vec4<f16>(kv[V0 / 4u + at5]);
            let at6 = cell + min((tid + 768u) / D4, last) * (D / 4u) + min((tid + 768u) % D4, D / 4u - 1u);
            k6 = vec4<f16>(kv[at6]);
            v6 = vec4<f16>(kv[V0 / 4u + at6]);
            let at7 = cell + min((tid + 896u) / D4, last) * (D / 4u) + min((tid + 896u) % D4, D / 4u - 1u);
            k7 = vec4<f16>(kv[at7]);
            v7 = vec4<f16>(kv[V0 / 4u + at7]);
            let at8 = cell + min((tid + 1024u) / D4, last) * (D / 4u) + min((tid + 1024u) % D4, D / 4u - 1u);
            k8 = vec4<f16>(kv[at8]);
            v8 = vec4<f16>(kv[V0 / 4u + at8]);
            let at9 = cell + min((tid + 1152u) / D4, last) * (D / 4u) + min((tid + 1152u) % D4, D / 4u - 1u);
            k9 = vec4<f16>(kv[at9]);
            v9 = vec4<f16>(kv[V0 / 4u + at9]);
            let at10 = cell + min((tid + 1280u) / D4, last) * (D / 4u) + min((tid + 1280u) % D4, D / 4u - 1u);
            k10 = vec4<f16>(kv[at10]);
            v10 = vec4<f16>(kv[V0 / 4u + at10]);
            let at11 = cell + min((tid + 1408u) / D4, last) * (D / 4u) + min((tid + 1408u) % D4, D / 4u - 1u);
            k11 = vec4<f16>(kv[at11]);
            v11 = vec4<f16>(kv[V0 / 4u + at11]);
            let at12 = cell + min((tid + 1536u) / D4, last) * (D / 4u) + min((tid + 1536u) % D4, D / 4u - 1u);
            k12 = vec4<f16>(kv[at12]);
            v12 = vec4<f16>(kv[V0 / 4u + at12]);
            let at13 = cell + min((tid + 1664u) / D4, last) * (D / 4u) + min((tid + 1664u) % D4, D / 4u - 1u);
            k13 = vec4<f16>(kv[at13]);
            v13 = vec4<f16>(kv[V0 / 4u + at13]);
            let at14 = cell + min((tid + 1792u) / D4, last) * (D / 4u) + min((tid + 1792u) % D4, D / 4u - 1u);
            k14 = vec4<f16>(kv[at14]);
            v14 = vec4<f16>(kv[V0 / 4u + at14]);
            let at15 = cell + min((tid + 1920u) / D4, last) * (D / 4u) + min((tid + 1920u) % D4, D / 4u - 1u);
            k15 = vec4<f16>(kv[at15]);
            v15 = vec4<f16>(kv[V0 / 4u + at15]);
            // The page after this one in time; its address must not wait for it.
            page = page_of(seq, min(0u + 32u, n_key - 1u));
        }

        for (var base = 0u; base < n_key; base += 32u) {
            workgroupBarrier();
            {
                let at = (tid + 0u) / D4 * ROW + (tid + 0u) % D4;
                staged[at] = k0;
                staged[at + 32u * ROW] = v0;
            }
            {
                let at = (tid + 128u) / D4 * ROW + (tid + 128u) % D4;
                staged[at] = k1;
                staged[at + 32u * ROW] = v1;
            }
            {
                let at = (tid + 256u) / D4 * ROW + (tid + 256u) % D4;
                staged[at] = k2;
                staged[at + 32u * ROW] = v2;
            }
            {
                let at = (tid + 384u) / D4 * ROW + (tid + 384u) % D4;
                staged[at] = k3;
                staged[at + 32u * ROW] = v3;
            }
            {
                let at = (tid + 512u) / D4 * ROW + (tid + 512u) % D4;
                staged[at] = k4;
                staged[at + 32u * ROW] = v4;
            }
            {
                let at = (tid + 640u) / D4 * ROW + (tid + 640u) % D4;
                staged[at] = k5;
                staged[at + 32u * ROW] = v5;
            }
            {
                let at = (tid + 768u) / D4 * ROW + (tid + 768u) % D4;
                staged[at] = k6;
                staged[at + 32u * ROW] = v6;
            }
            {
                let at = (tid + 896u) / D4 * ROW + (tid + 896u) % D4;
                staged[at] = k7;
                staged[at + 32u * ROW] = v7;
            }
            {
                let at = (tid + 1024u) / D4 * ROW + (tid + 1024u) % D4;
                staged[at] = k8;
                staged[at + 32u * ROW] = v8;
            }
            {
                let at = (tid + 1152u) / D4 * ROW + (tid + 1152u) % D4;
                staged[at] = k9;
                staged[at + 32u * ROW] = v9;
            }
            {
                let at = (tid + 1280u) / D4 * ROW + (tid + 1280u) % D4;
                staged[at] = k10;
                staged[at + 32u * ROW] = v10;
            }
            {
                let at = (tid + 1408u) / D4 * ROW + (tid + 1408u) % D4;
                staged[at] = k11;
                staged[at + 32u * ROW] = v11;
            }
            {
                let at = (tid + 1536u) / D4 * ROW + (tid + 1536u) % D4;
                staged[at] = k12;
                staged[at + 32u * ROW] = v12;
            }
            {
                let at = (tid + 1664u) / D4 * ROW + (tid + 1664u) % D4;
                staged[at] = k13;
                staged[at + 32u * ROW] = v13;
            }
            {
                let at = (tid + 1792u) / D4 * ROW + (tid + 1792u) % D4;
                staged[at] = k14;
                staged[at + 32u * ROW] = v14;
            }
            {
                let at = (tid + 1920u) / D4 * ROW + (tid + 1920u) % D4;
                staged[at] = k15;
                staged[at + 32u * ROW] = v15;
            }
            workgroupBarrier();
            // The next tile is under way while this one is worked on.
            if (base + 32u < n_key) {
                let next = base + 32u;
        {
            // A page holds whole tiles of keys. What lies beyond the last key or channel is read from there: such keys
            // get exponentials of 0, such channels of keys meet zeros, of values they are not written.
            let cell = kv_cell(page, next % PAGE, kv_head) / 4u;
            let last = min(n_key - next, 32u) - 1u;
            let at0 = cell + min((tid + 0u) / D4, last) * (D / 4u) + min((tid + 0u) % D4, D / 4u - 1u);
            k0 = vec4<f16>(kv[at0]);
            v0 = vec4<f16>(kv[V0 / 4u + at0]);
            let at1 = cell + min((tid + 128u) / D4, last) * (D / 4u) + min((tid + 128u) % D4, D / 4u - 1u);
            k1 = vec4<f16>(kv[at1]);
            v1 = vec4<f16>(kv[V0 / 4u + at1]);
            let at2 = cell + min((tid + 256u) / D4, last) * (D / 4u) + min((tid + 256u) % D4, D / 4u - 1u);
            k2 = vec4<f16>(kv[at2]);
            v2 = vec4<f16>(kv[V0 / 4u + at2]);
            let at3 = cell + min((tid + 384u) / D4, last) * (D / 4u) + min((tid + 384u) % D4, D / 4u - 1u);
            k3 = vec4<f16>(kv[at3]);
            v3 = vec4<f16>(kv[V0 / 4u + at3]);
            let at4 = cell + min((tid + 512u) / D4, last) * (D / 4u) + min((tid + 512u) % D4, D / 4u - 1u);
            k4 = vec4<f16>(kv[at4]);
            v4 = vec4<f16>(kv[V0 / 4u + at4]);
            let at5 = cell + min((tid + 640u) / D4, last) * (D / 4u) + min((tid + 640u) % D4, D / 4u - 1u);
            k5 = vec4<f16>(kv[at5]);
            v5 = vec4<f16>(kv[V0 / 4u + at5]);
            let at6 = cell + min((tid + 768u) / D4, last) * (D / 4u) + min((tid + 768u) % D4, D / 4u - 1u);
            k6 = vec4<f16>(kv[at6]);
            v6 = vec4<f16>(kv[V0 / 4u + at6]);
            let at7 = cell + min((tid + 896u) / D4, last) * (D / 4u) + min((tid + 896u) % D4, D / 4u - 1u);
            k7 = vec4<f16>(kv[at7]);
            v7 = vec4<f16>(kv[V0 / 4u + at7]);
            let at8 = cell + min((tid + 1024u) / D4, last) * (D / 4u) + min((tid + 1024u) % D4, D / 4u - 1u);
            k8 = vec4<f16>(kv[at8]);
            v8 = vec4<f16>(kv[V0 / 4u + at8]);
            let at9 = cell + min((tid + 1152u) / D4, last) * (D / 4u) + min((tid + 1152u) % D4, D / 4u - 1u);
            k9 = vec4<f16>(kv[at9]);
            v9 = vec4<f16>(kv[V0 / 4u + at9]);
            let at10 = cell + min((tid + 1280u) / D4, last) * (D / 4u) + min((tid + 1280u) % D4, D / 4u - 1u);
            k10 = vec4<f16>(kv[at10]);
            v10 = vec4<f16>(kv[V0 / 4u + at10]);
            let at11 = cell + min((tid + 1408u) / D4, last) * (D / 4u) + min((tid + 1408u) % D4, D / 4u - 1u);
            k11 = vec4<f16>(kv[at11]);
            v11 = vec4<f16>(kv[V0 / 4u + at11]);
            let at12 = cell + min((tid + 1536u) / D4, last) * (D / 4u) + min((tid + 1536u) % D4, D / 4u - 1u);
            k12 = vec4<f16>(kv[at12]);
            v12 = vec4<f16>(kv[V0 / 4u + at12]);
            let at13 = cell + min((tid + 1664u) / D4, last) * (D / 4u) + min((tid + 1664u) % D4, D / 4u - 1u);
            k13 = vec4<f16>(kv[at13]);
            v13 = vec4<f16>(kv[V0 / 4u + at13]);
            let at14 = cell + min((tid + 1792u) / D4, last) * (D / 4u) + min((tid + 1792u) % D4, D / 4u - 1u);
            k14 = vec4<f16>(kv[at14]);
            v14 = vec4<f16>(kv[V0 / 4u + at14]);
            let at15 = cell + min((tid + 1920u) / D4, last) * (D / 4u) + min((tid + 1920u) % D4, D / 4u - 1u);
            k15 = vec4<f16>(kv[at15]);
            v15 = vec4<f16>(kv[V0 / 4u + at15]);
            // The page after this one in time; its address must not wait for it.
            page = page_of(seq, min(next + 32u, n_key - 1u));
        }

            }
            var s0 = coop_mat16x16<f32, C>();
            var s1 = coop_mat16x16<f32, C>();
            s0 = coopMultiplyAdd(q0, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 0u], ROW), s0);
            s1 = coopMultiplyAdd(q0, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 0u], ROW), s1);
            s0 = coopMultiplyAdd(q1, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 4u], ROW), s0);
            s1 = coopMultiplyAdd(q1, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 4u], ROW), s1);
            s0 = coopMultiplyAdd(q2, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 8u], ROW), s0);
            s1 = coopMultiplyAdd(q2, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 8u], ROW), s1);
            s0 = coopMultiplyAdd(q3, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 12u], ROW), s0);
            s1 = coopMultiplyAdd(q3, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 12u], ROW), s1);
            s0 = coopMultiplyAdd(q4, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 16u], ROW), s0);
            s1 = coopMultiplyAdd(q4, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 16u], ROW), s1);
            s0 = coopMultiplyAdd(q5, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 20u], ROW), s0);
            s1 = coopMultiplyAdd(q5, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 20u], ROW), s1);
            s0 = coopMultiplyAdd(q6, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 24u], ROW), s0);
            s1 = coopMultiplyAdd(q6, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 24u], ROW), s1);
            s0 = coopMultiplyAdd(q7, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 28u], ROW), s0);
            s1 = coopMultiplyAdd(q7, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 28u], ROW), s1);
            s0 = coopMultiplyAdd(q8, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 32u], ROW), s0);
            s1 = coopMultiplyAdd(q8, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 32u], ROW), s1);
            s0 = coopMultiplyAdd(q9, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 36u], ROW), s0);
            s1 = coopMultiplyAdd(q9, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 36u], ROW), s1);
            s0 = coopMultiplyAdd(q10, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 40u], ROW), s0);
            s1 = coopMultiplyAdd(q10, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 40u], ROW), s1);
            s0 = coopMultiplyAdd(q11, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 44u], ROW), s0);
            s1 = coopMultiplyAdd(q11, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 44u], ROW), s1);
            s0 = coopMultiplyAdd(q12, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 48u], ROW), s0);
            s1 = coopMultiplyAdd(q12, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 48u], ROW), s1);
            s0 = coopMultiplyAdd(q13, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 52u], ROW), s0);
            s1 = coopMultiplyAdd(q13, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 52u], ROW), s1);
            s0 = coopMultiplyAdd(q14, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 56u], ROW), s0);
            s1 = coopMultiplyAdd(q14, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 56u], ROW), s1);
            s0 = coopMultiplyAdd(q15, coopLoad<coop_mat16x16<f16, B>>(&staged[0u * ROW + 60u], ROW), s0);
            s1 = coopMultiplyAdd(q15, coopLoad<coop_mat16x16<f16, B>>(&staged[16u * ROW + 60u], ROW), s1);
            coopStoreT(s0, &scores[subgroup * 144u + 0u], 9u);
            coopStoreT(s1, &scores[subgroup * 144u + 4u], 9u);
            workgroupBarrier();
            // How many of this thread's keys the row sees.
            let key = base + half * 16u;
            let left = vec4<u32>(seen - min(seen, key));
            let x0 = select(vec4<f32>(NO_KEY), scores[at_s + half * 4u + 0u], vec4<u32>(0u, 1u, 2u, 3u) < left);
            let x1 = select(vec4<f32>(NO_KEY), scores[at_s + half * 4u + 1u], vec4<u32>(4u, 5u, 6u, 7u) < left);
            let x2 = select(vec4<f32>(NO_KEY), scores[at_s + half * 4u + 2u], vec4<u32>(8u, 9u, 10u, 11u) < left);
            let x3 = select(vec4<f32>(NO_KEY), scores[at_s + half * 4u + 3u], vec4<u32>(12u, 13u, 14u, 15u) < left);
            let x = max(max(x0, x1), max(x2, x3));
            var high = max(max(x.x, x.y), max(x.z, x.w));
            high = max(high, subgroupShuffleXor(high, 16u));
            let grows = (high - top) * TO_EXP2 > 10.0;
            let fade = select(1.0, exp2((top - high) * TO_EXP2), grows);
            let any_grows = subgroupAny(grows && top > NO_KEY);
            if (lane == 0u) {
                grown[subgroup] = u32(any_grows);
            }
            top = select(top, high, grows);
            // A row that has seen no key keeps exponentials of 0.
            let least = select(0.0, top * TO_EXP2, top > NO_KEY);
            let p0 = exp2(x0 * TO_EXP2 - least);
            powers[at_p + 0u] = vec4<f16>(p0);
            let p1 = exp2(x1 * TO_EXP2 - least);
            powers[at_p + 1u] = vec4<f16>(p1);
            let p2 = exp2(x2 * TO_EXP2 - least);
            powers[at_p + 2u] = vec4<f16>(p2);
            let p3 = exp2(x3 * TO_EXP2 - least);
            powers[at_p + 3u] = vec4<f16>(p3);
            den = den * fade + dot(p0 + p1 + p2 + p3, vec4<f32>(1.0));
            workgroupBarrier();
            if ((grown[0] | grown[1] | grown[2] | grown[3]) != 0u) {
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o0, &scores[subgroup * 144u + 0u], 9u);
                workgroupBarrier();
                scores[at_s + 0u + half * 2u] *= fade;
                scores[at_s + 1u + half * 2u] *= fade;
                workgroupBarrier();
                o0 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 0u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o1, &scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
                scores[at_s + 4u + half * 2u] *= fade;
                scores[at_s + 5u + half * 2u] *= fade;
                workgroupBarrier();
                o1 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 4u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o2, &scores[subgroup * 144u + 0u], 9u);
                workgroupBarrier();
                scores[at_s + 0u + half * 2u] *= fade;
                scores[at_s + 1u + half * 2u] *= fade;
                workgroupBarrier();
                o2 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 0u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o3, &scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
                scores[at_s + 4u + half * 2u] *= fade;
                scores[at_s + 5u + half * 2u] *= fade;
                workgroupBarrier();
                o3 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 4u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o4, &scores[subgroup * 144u + 0u], 9u);
                workgroupBarrier();
                scores[at_s + 0u + half * 2u] *= fade;
                scores[at_s + 1u + half * 2u] *= fade;
                workgroupBarrier();
                o4 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 0u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o5, &scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
                scores[at_s + 4u + half * 2u] *= fade;
                scores[at_s + 5u + half * 2u] *= fade;
                workgroupBarrier();
                o5 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 4u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o6, &scores[subgroup * 144u + 0u], 9u);
                workgroupBarrier();
                scores[at_s + 0u + half * 2u] *= fade;
                scores[at_s + 1u + half * 2u] *= fade;
                workgroupBarrier();
                o6 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 0u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o7, &scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
                scores[at_s + 4u + half * 2u] *= fade;
                scores[at_s + 5u + half * 2u] *= fade;
                workgroupBarrier();
                o7 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 4u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o8, &scores[subgroup * 144u + 0u], 9u);
                workgroupBarrier();
                scores[at_s + 0u + half * 2u] *= fade;
                scores[at_s + 1u + half * 2u] *= fade;
                workgroupBarrier();
                o8 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 0u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o9, &scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
                scores[at_s + 4u + half * 2u] *= fade;
                scores[at_s + 5u + half * 2u] *= fade;
                workgroupBarrier();
                o9 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 4u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o10, &scores[subgroup * 144u + 0u], 9u);
                workgroupBarrier();
                scores[at_s + 0u + half * 2u] *= fade;
                scores[at_s + 1u + half * 2u] *= fade;
                workgroupBarrier();
                o10 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 0u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o11, &scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
                scores[at_s + 4u + half * 2u] *= fade;
                scores[at_s + 5u + half * 2u] *= fade;
                workgroupBarrier();
                o11 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 4u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o12, &scores[subgroup * 144u + 0u], 9u);
                workgroupBarrier();
                scores[at_s + 0u + half * 2u] *= fade;
                scores[at_s + 1u + half * 2u] *= fade;
                workgroupBarrier();
                o12 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 0u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o13, &scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
                scores[at_s + 4u + half * 2u] *= fade;
                scores[at_s + 5u + half * 2u] *= fade;
                workgroupBarrier();
                o13 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 4u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o14, &scores[subgroup * 144u + 0u], 9u);
                workgroupBarrier();
                scores[at_s + 0u + half * 2u] *= fade;
                scores[at_s + 1u + half * 2u] *= fade;
                workgroupBarrier();
                o14 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 0u], 9u);
                // Two places in turn, so that a tile is read before the next but one takes its place.
                coopStoreT(o15, &scores[subgroup * 144u + 4u], 9u);
                workgroupBarrier();
                scores[at_s + 4u + half * 2u] *= fade;
                scores[at_s + 5u + half * 2u] *= fade;
                workgroupBarrier();
                o15 = coopLoadT<coop_mat16x16<f32, C>>(&scores[subgroup * 144u + 4u], 9u);
            }
            {
                let p = coopLoadT<coop_mat16x16<f16, A>>(&powers[subgroup * 160u + 0u], 10u);
                o0 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 0u], ROW), o0);
                o1 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 4u], ROW), o1);
                o2 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 8u], ROW), o2);
                o3 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 12u], ROW), o3);
                o4 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 16u], ROW), o4);
                o5 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 20u], ROW), o5);
                o6 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 24u], ROW), o6);
                o7 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 28u], ROW), o7);
                o8 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 32u], ROW), o8);
                o9 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 36u], ROW), o9);
                o10 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 40u], ROW), o10);
                o11 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 44u], ROW), o11);
                o12 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 48u], ROW), o12);
                o13 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 52u], ROW), o13);
                o14 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 56u], ROW), o14);
                o15 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[32u * ROW + 60u], ROW), o15);
            }
            {
                let p = coopLoadT<coop_mat16x16<f16, A>>(&powers[subgroup * 160u + 4u], 10u);
                o0 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 0u], ROW), o0);
                o1 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 4u], ROW), o1);
                o2 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 8u], ROW), o2);
                o3 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 12u], ROW), o3);
                o4 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 16u], ROW), o4);
                o5 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 20u], ROW), o5);
                o6 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 24u], ROW), o6);
                o7 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 28u], ROW), o7);
                o8 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 32u], ROW), o8);
                o9 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 36u], ROW), o9);
                o10 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 40u], ROW), o10);
                o11 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 44u], ROW), o11);
                o12 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 48u], ROW), o12);
                o13 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 52u], ROW), o13);
                o14 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 56u], ROW), o14);
                o15 = coopMultiplyAdd(p, coopLoadT<coop_mat16x16<f16, B>>(&staged[48u * ROW + 60u], ROW), o15);
            }
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
            y[at_y + c] = scores[at_s + 0u + half * 2u] / den;
        }
    }
    {
        let c = 1u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 1u + half * 2u] / den;
        }
    }
    coopStoreT(o1, &scores[subgroup * 144u + 4u], 9u);
    workgroupBarrier();
    {
        let c = 4u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 4u + half * 2u] / den;
        }
    }
    {
        let c = 5u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 5u + half * 2u] / den;
        }
    }
    coopStoreT(o2, &scores[subgroup * 144u + 0u], 9u);
    workgroupBarrier();
    {
        let c = 8u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 0u + half * 2u] / den;
        }
    }
    {
        let c = 9u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 1u + half * 2u] / den;
        }
    }
    coopStoreT(o3, &scores[subgroup * 144u + 4u], 9u);
    workgroupBarrier();
    {
        let c = 12u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 4u + half * 2u] / den;
        }
    }
    {
        let c = 13u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 5u + half * 2u] / den;
        }
    }
    coopStoreT(o4, &scores[subgroup * 144u + 0u], 9u);
    workgroupBarrier();
    {
        let c = 16u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 0u + half * 2u] / den;
        }
    }
    {
        let c = 17u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 1u + half * 2u] / den;
        }
    }
    coopStoreT(o5, &scores[subgroup * 144u + 4u], 9u);
    workgroupBarrier();
    {
        let c = 20u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 4u + half * 2u] / den;
        }
    }
    {
        let c = 21u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 5u + half * 2u] / den;
        }
    }
    coopStoreT(o6, &scores[subgroup * 144u + 0u], 9u);
    workgroupBarrier();
    {
        let c = 24u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 0u + half * 2u] / den;
        }
    }
    {
        let c = 25u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 1u + half * 2u] / den;
        }
    }
    coopStoreT(o7, &scores[subgroup * 144u + 4u], 9u);
    workgroupBarrier();
    {
        let c = 28u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 4u + half * 2u] / den;
        }
    }
    {
        let c = 29u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 5u + half * 2u] / den;
        }
    }
    coopStoreT(o8, &scores[subgroup * 144u + 0u], 9u);
    workgroupBarrier();
    {
        let c = 32u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 0u + half * 2u] / den;
        }
    }
    {
        let c = 33u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 1u + half * 2u] / den;
        }
    }
    coopStoreT(o9, &scores[subgroup * 144u + 4u], 9u);
    workgroupBarrier();
    {
        let c = 36u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 4u + half * 2u] / den;
        }
    }
    {
        let c = 37u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 5u + half * 2u] / den;
        }
    }
    coopStoreT(o10, &scores[subgroup * 144u + 0u], 9u);
    workgroupBarrier();
    {
        let c = 40u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 0u + half * 2u] / den;
        }
    }
    {
        let c = 41u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 1u + half * 2u] / den;
        }
    }
    coopStoreT(o11, &scores[subgroup * 144u + 4u], 9u);
    workgroupBarrier();
    {
        let c = 44u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 4u + half * 2u] / den;
        }
    }
    {
        let c = 45u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 5u + half * 2u] / den;
        }
    }
    coopStoreT(o12, &scores[subgroup * 144u + 0u], 9u);
    workgroupBarrier();
    {
        let c = 48u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 0u + half * 2u] / den;
        }
    }
    {
        let c = 49u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 1u + half * 2u] / den;
        }
    }
    coopStoreT(o13, &scores[subgroup * 144u + 4u], 9u);
    workgroupBarrier();
    {
        let c = 52u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 4u + half * 2u] / den;
        }
    }
    {
        let c = 53u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 5u + half * 2u] / den;
        }
    }
    coopStoreT(o14, &scores[subgroup * 144u + 0u], 9u);
    workgroupBarrier();
    {
        let c = 56u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 0u + half * 2u] / den;
        }
    }
    {
        let c = 57u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 1u + half * 2u] / den;
        }
    }
    coopStoreT(o15, &scores[subgroup * 144u + 4u], 9u);
    workgroupBarrier();
    {
        let c = 60u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 4u + half * 2u] / den;
        }
    }
    {
        let c = 61u + half * 2u;
        if (live && 4u * c < D) {
            y[at_y + c] = scores[at_s + 5u + half * 2u] / den;
        }
    }
}
