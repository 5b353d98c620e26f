// rope_kv: k=plain v=plain norm=none
override M_Q: u32 = 0u;
override M_K: u32 = 0u;
override M_V: u32 = 0u;
override V_AT: u32 = 0u;
override LDX: u32 = 0u;
override LDY: u32 = 0u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> kv: array<u32>;
@group(0) @binding(3) var<storage, read> step: array<u32>;
@group(0) @binding(4) var<storage, read> rope: array<vec2<f32>>;
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

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = id.x * 4u;
    let col = id.y;
    if (first >= M_Q + M_K + M_V) {
        return;
    }
    let pos = col_pos(col);
    var rows = vec4<u32>(first, first + 1u, first + 2u, first + 3u);
    let turns = first < M_Q + M_K;
    let quad = (first % D) / 4u;
    if (turns) {
        rows = vec4<u32>(first / D * D) + quad_channels(quad);
    }
    let at = col * LDX - select(M_Q + M_K - V_AT, 0u, turns);
    var v = vec4<f32>(x[at + rows.x], x[at + rows.y], x[at + rows.z], x[at + rows.w]);
    if (turns) {
        v = quad_rotate(quad_turn(quad, col, pos), v);
    }

    if (first < M_Q) {
        y[col * LDY + rows.x] = v.x;
        y[col * LDY + rows.y] = v.y;
        y[col * LDY + rows.z] = v.z;
        y[col * LDY + rows.w] = v.w;

        return;
    }
    let page = page_of(col_seq(col), pos);
    let values = first >= M_Q + M_K;
    let channel = rows - vec4<u32>(select(M_Q, M_Q + M_K, values));
    let d = select(D, DV, values);
    let h = channel.x / d;
    let cell = kv_cell(page, pos % PAGE, h);
    kv_put2(values, cell, channel.x - h * d, v.x, v.y);
    kv_put2(values, cell, channel.z - h * d, v.z, v.w);
}
