// rope_kv: k=q8_0 v=q4_0 norm=some
override M_Q: u32 = 0u;
override M_K: u32 = 0u;
override M_V: u32 = 0u;
override V_AT: u32 = 0u;
override LDX: u32 = 0u;
override LDY: u32 = 0u;
override WG: u32 = 64u;
override K_P0: u32 = 0u;
override K_P1: u32 = 0u;
override V_P0: u32 = 0u;
override V_P1: u32 = 0u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> kv: array<u32>;
@group(0) @binding(3) var<storage, read> step: array<u32>;
@group(0) @binding(4) var<storage, read> rope: array<vec2<f32>>;
@group(0) @binding(5) var<storage, read> aux: array<f32>;
override EPS: f32 = 0.0;
override NORM_LAST: bool = false;
override NORM_MEAN: bool = false;
override NORM_ROWS: bool = false;
override NORM_OWN: bool = false;
override NORM_V: bool = false;
// Partial sum of each thread.
var<workgroup> parts: array<f32, WG>;
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

// 0: f32, 1: f16, 2: bf16.
override K_KIND: u32 = 1u;
override V_KIND: u32 = 1u;
// Word offset of the values.
override V0: u32 = 0u;
fn bf16_bits(v: f32) -> u32 {
    let b = bitcast<u32>(v);
    let rounded = (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
    return select(rounded, (b >> 16u) | 0x40u, (b & 0x7fffffffu) > 0x7f800000u);
}
// Writes channels i and i + 1 (i even) of a cell of the keys, or of the values.
fn kv_put2(values: bool, cell: u32, i: u32, a: f32, b: f32) {
    let kind = select(K_KIND, V_KIND, values);
    let at = cell * select(D, DV, values) + i;
    let start = select(0u, V0, values);
    if (kind == 0u) {
        kv[start + at] = bitcast<u32>(a);
        kv[start + at + 1u] = bitcast<u32>(b);
    } else {
        kv[start + at / 2u] = select(bf16_bits(a) | (bf16_bits(b) << 16u), pack2x16float(vec2<f32>(a, b)), kind == 1u);
    }
}

override N_ROT: u32 = 64u;
override ROPE_NEOX: bool = false;
fn table_cs(fine: u32, coarse: u32, pair: u32, n_pair: u32) -> vec2<f32> {
    let f = rope[fine * n_pair + pair];
    let c = rope[(256u + coarse) * n_pair + pair];
    return vec2<f32>(f.x * c.x - f.y * c.y, f.y * c.x + f.x * c.y);
}

override SECT0: u32 = 0u;
override SECT1: u32 = 0u;
override SECT2: u32 = 0u;
override SECT3: u32 = 0u;
// Sections take turns pair by pair, else they follow one another.
override SECT_TURNS: bool = false;
// Word of the step at which the differences begin, three for each column; 0: every pair follows the position itself.
override SHIFTS: u32 = 0u;
// The component that a pair follows; pairs of no section follow the first.
fn component_of(pair: u32) -> u32 {
    let sector = pair % max(SECT0 + SECT1 + SECT2 + SECT3, 1u);
    if (SECT_TURNS) {
        let k = sector % 3u;
        return select(0u, k, sector < 3u * vec3<u32>(SECT0, SECT1, SECT2)[k]);
    }
    let k = select(0u, 1u, sector >= SECT0) + select(0u, 1u, sector >= SECT0 + SECT1);
    return select(k, 0u, sector >= SECT0 + SECT1 + SECT2);
}
fn component_pos(col: u32, pos: u32, pair: u32) -> u32 {
    if (SHIFTS == 0u) {
        return pos;
    }
    return pos + step[SHIFTS + 3u * col + component_of(pair)];
}

fn rope_cs(col: u32, pos: u32, pair: u32) -> vec2<f32> {
    let p = component_pos(col, pos, pair);
    return table_cs(p & 255u, p >> 8u, pair, N_ROT / 2u);
}
fn rotate(v: vec2<f32>, cs: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(v.x * cs.x - v.y * cs.y, v.x * cs.y + v.y * cs.x);
}

// Four channels of a head that one thread rotates: (a, b) and (c, d) are stored adjacently.
fn quad_channels(j: u32) -> vec4<u32> {
    if (ROPE_NEOX && 4u * j < N_ROT) {
        let p = 2u * j;
        return vec4<u32>(p, p + 1u, p + N_ROT / 2u, p + N_ROT / 2u + 1u);
    }
    let p = 4u * j;
    return vec4<u32>(p, p + 1u, p + 2u, p + 3u);
}
// Cosine and sine of their two pairs for a column; (1, 0) for channels without RoPE.
fn quad_turn(j: u32, col: u32, pos: u32) -> vec4<f32> {
    var turn = vec4<f32>(1.0, 0.0, 1.0, 0.0);
    if (4u * j < N_ROT) {
        turn = vec4<f32>(rope_cs(col, pos, 2u * j), turn.zw);
        if (4u * j + 2u < N_ROT) {
            turn = vec4<f32>(turn.xy, rope_cs(col, pos, 2u * j + 1u));
        }
    }
    return turn;
}
fn quad_rotate(turn: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
    if (ROPE_NEOX) {
        let a = rotate(v.xz, turn.xy);
        let b = rotate(v.yw, turn.zw);
        return vec4<f32>(a.x, b.x, a.y, b.y);
    }
    return vec4<f32>(rotate(v.xy, turn.xy), rotate(v.zw, turn.zw));
}

// The channels of a head, zero-padded to a multiple of 64; sub-word parts of each block.
var<workgroup> vals: array<f32, 4u * WG + 64u>;
var<workgroup> halves: array<u32, WG>;
// Rounds halves away from zero; adding a half would round up values just below it.
fn nearest(v: f32) -> i32 {
    let whole = trunc(v);
    return i32(whole) + i32(trunc(2.0 * (v - whole)));
}

alias k_Bytes = array<u32, 9>;
// Writes bits to a block at a byte; they do not cross a word.
fn k_put(bytes: ptr<function, k_Bytes>, at: u32, v: u32) {
    (*bytes)[at >> 2u] |= v << (8u * (at & 3u));
}
fn k_put_half(bytes: ptr<function, k_Bytes>, at: u32, v: f32) {
    k_put(bytes, at, pack2x16float(vec2<f32>(v, 0.0)) & 0xffffu);
}

fn k_encode(v: ptr<function, array<f32, 32>>) -> k_Bytes {
    var out: k_Bytes;
    var top = 0.0;
    for (var i = 0u; i < 32u; i++) {
        top = max(top, abs((*v)[i]));
    }
    let d = top / 127.0;
    let inverse = select(0.0, 1.0 / d, d != 0.0);
    k_put_half(&out, 0u, d);
    for (var i = 0u; i < 32u; i++) {
        k_put(&out, 2u + i, u32(nearest((*v)[i] * inverse)) & 0xffu);
    }
    return out;
}

alias v_Bytes = array<u32, 5>;
// Writes bits to a block at a byte; they do not cross a word.
fn v_put(bytes: ptr<function, v_Bytes>, at: u32, v: u32) {
    (*bytes)[at >> 2u] |= v << (8u * (at & 3u));
}
fn v_put_half(bytes: ptr<function, v_Bytes>, at: u32, v: f32) {
    v_put(bytes, at, pack2x16float(vec2<f32>(v, 0.0)) & 0xffffu);
}

fn v_encode(v: ptr<function, array<f32, 32>>) -> v_Bytes {
    var out: v_Bytes;
    var top = 0.0;
    for (var i = 0u; i < 32u; i++) {
        top = select(top, (*v)[i], abs((*v)[i]) > abs(top));
    }
    let d = top / -8.0;
    let inverse = select(0.0, 1.0 / d, d != 0.0);
    v_put_half(&out, 0u, d);
    for (var i = 0u; i < 32u; i++) {
        let q = min(15u, u32(max((*v)[i] * inverse + 8.5, 0.0)));
        v_put(&out, 2u + (i & 15u), q << (4u * (i >> 4u)));
    }
    return out;
}

// The sum over all threads.
fn total(part: f32, tid: u32) -> f32 {
    parts[tid] = part;
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < WG; i++) {
        sum += parts[i];
    }
    workgroupBarrier();
    return sum;
}
// Four rows of x.
fn quad(at: u32) -> vec4<f32> {
    return vec4<f32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]);
}
// Four channels of a head of `d`, those at `rows`, normalised. All threads of the head take part.
fn normed(v: vec4<f32>, rows: vec4<u32>, d: u32, live: bool, col: u32, tid: u32) -> vec4<f32> {
    let values = rows.x >= M_Q + M_K;
    let keys = rows.x >= M_Q;
    // Extent of the norm: this head, which the threads hold, or rows of x.
    let wide = NORM_ROWS && !values;
    let begin = col * LDX + select(0u, M_Q, keys);
    let span = select(d, select(M_Q, M_K, keys), wide);
    var mean = 0.0;
    if (NORM_MEAN) {
        var part = select(0.0, dot(v, vec4<f32>(1.0)), live);
        if (wide) {
            part = 0.0;
            for (var i = 4u * tid; i < span; i += 4u * WG) {
                part += dot(quad(begin + i), vec4<f32>(1.0));
            }
        }
        mean = select(total(part, tid) / f32(span), 0.0, values);
    }
    var part = select(0.0, dot(v - mean, v - mean), live);
    if (wide) {
        part = 0.0;
        for (var i = 4u * tid; i < span; i += 4u * WG) {
            let u = quad(begin + i) - mean;
            part += dot(u, u);
        }
    }
    let scale = 1.0 / sqrt(total(part, tid) / f32(span) + EPS);
    var w = vec4<f32>(1.0);
    if (!values) {
        let at = select(rows % D + select(0u, D, keys), rows, NORM_OWN);
        w = vec4<f32>(aux[at.x], aux[at.y], aux[at.z], aux[at.w]);
    }
    return select(v, (v - mean) * scale * w, NORM_V || !values);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let col = group.y;
    // The head belongs to q, the keys or the values.
    let n_q = M_Q / D;
    let n_k = M_K / D;
    let values = group.x >= n_q + n_k;
    let h = group.x - select(select(n_q, 0u, group.x < n_q), n_q + n_k, values);
    let start = select(select(M_Q, 0u, group.x < n_q) + h * D, M_Q + M_K + h * DV, values);
    let d = select(D, DV, values);
    let live = 4u * tid < d;
    let first = start + min(4u * tid, d - 4u);
    let pos = col_pos(col);
    var rows = vec4<u32>(first, first + 1u, first + 2u, first + 3u);
    let turns = first < M_Q + M_K;
    let quad = (first % D) / 4u;
    if (turns) {
        rows = vec4<u32>(first / D * D) + quad_channels(quad);
    }
    let at = col * LDX - select(M_Q + M_K - V_AT, 0u, turns);
    var v = vec4<f32>(x[at + rows.x], x[at + rows.y], x[at + rows.z], x[at + rows.w]);
    if (!NORM_LAST) {
        v = normed(v, rows, d, live, col, tid);
    }
    if (turns) {
        v = quad_rotate(quad_turn(quad, col, pos), v);
    }
    if (NORM_LAST) {
        v = normed(v, rows, d, live, col, tid);
    }

    if (group.x < n_q) {
        if (live) {
        y[col * LDY + rows.x] = v.x;
        y[col * LDY + rows.y] = v.y;
        y[col * LDY + rows.z] = v.z;
        y[col * LDY + rows.w] = v.w;

        }
        return;
    }
    let cell = kv_cell(page_of(col_seq(col), pos), pos % PAGE, h);
    let channel = rows - vec4<u32>(start);
    for (var i = tid; i < 64u; i += WG) {
        vals[d / 64u * 64u + i] = 0.0;
    }
    workgroupBarrier();
    if (live) {
        vals[channel.x] = v.x;
        vals[channel.y] = v.y;
        vals[channel.z] = v.z;
        vals[channel.w] = v.w;
    }
    workgroupBarrier();
    if (values) {
        let n_block = (DV + 63u) / 64u * 2u;
        let first_block = cell * n_block;
        if (tid < n_block) {
            var block: array<f32, 32>;
            for (var i = 0u; i < 32u; i++) {
                block[i] = vals[32u * tid + i];
            }
            var bytes = v_encode(&block);
            for (var i = 0u; i < 4u; i++) {
                kv[V_P0 + (first_block + tid) * 4u + i] = ((bytes[0u + i] >> 16u) | (bytes[0u + i + 1u] << 16u));
            }
            halves[tid] = ((bytes[0u] >> 0u) & 0xffffu);
        }
        workgroupBarrier();
        if (tid < n_block / 2u) {
            kv[V_P1 + first_block / 2u + tid] = halves[2u * tid] | (halves[2u * tid + 1u] << 16u);
        }

    } else {
        let n_block = (D + 63u) / 64u * 2u;
        let first_block = cell * n_block;
        if (tid < n_block) {
            var block: array<f32, 32>;
            for (var i = 0u; i < 32u; i++) {
                block[i] = vals[32u * tid + i];
            }
            var bytes = k_encode(&block);
            for (var i = 0u; i < 8u; i++) {
                kv[K_P0 + (first_block + tid) * 8u + i] = ((bytes[0u + i] >> 16u) | (bytes[0u + i + 1u] << 16u));
            }
            halves[tid] = ((bytes[0u] >> 0u) & 0xffffu);
        }
        workgroupBarrier();
        if (tid < n_block / 2u) {
            kv[K_P1 + first_block / 2u + tid] = halves[2u * tid] | (halves[2u * tid + 1u] << 16u);
        }

    }
}
