// argmax: part=final
// A power of two.
override WG: u32 = 256u;
override K: u32 = 1u;
override CHUNK: u32 = 1024u;
override N_PART: u32 = 1u;
@group(0) @binding(0) var<storage, read> x: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> step: array<u32>;
@group(0) @binding(2) var<storage, read_write> ring: array<u32>;
const COLS: u32 = 16u;
override PAGE: u32 = 64u;
override N_SEQ: u32 = 0u;
override N_PAGE: u32 = 1u;
override PAGES: u32 = 16u;
// Pages of a sequence that take turns, where no column looks back further; 0: the table says.
override WRAP: u32 = 0u;
fn col_token(c: u32) -> u32 { return step[COLS + 4u * c]; }
fn col_pos(c: u32) -> u32 { return step[COLS + 4u * c + 1u]; }
// The only sequence is not asked for: what its page table or state says need not wait for that.
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

override RING: u32 = 64u;

var<workgroup> value: array<f32, WG>;
var<workgroup> index: array<u32, WG>;

fn better(v: f32, i: u32, w: f32, j: u32) -> bool {
    return v > w || (v == w && i < j);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    var v = -3.4028234e38;
    var at = 0xffffffffu;
    for (var i = tid; i < N_PART; i += WG) {
        let p = x[i];
        if (better(bitcast<f32>(p.x), p.y, v, at)) {
            v = bitcast<f32>(p.x);
            at = p.y;
        }
    }
    value[tid] = v;
    index[tid] = at;
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s = s / 2u) {
        if (tid < s && better(value[tid + s], index[tid + s], value[tid], index[tid])) {
            value[tid] = value[tid + s];
            index[tid] = index[tid + s];
        }
        workgroupBarrier();
    }
    if (tid == 0u) {
        let token = index[0];
        // The next step: one column with this token, one position after the wanted one; its id goes to the ring.
        let picked = COLS + 4u * step[1];
        step[COLS + 1u] = step[picked + 1u] + 1u;
        step[COLS + 2u] = step[picked + 2u];
        step[COLS] = token;
        step[0] = 1u;
        step[1] = 0u;
        ring[step[3] & (RING - 1u)] = token;
        step[2] += 1u;
        step[3] += 1u;

    }
}
