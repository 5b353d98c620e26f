// argmax: part=final
// A power of two.
override WG: u32 = 256u;
override K: u32 = 1u;
override LD: u32 = 1u;
override CHUNK: u32 = 1024u;
override N_PART: u32 = 1u;
@group(0) @binding(0) var<storage, read> x: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> step: array<u32>;
@group(0) @binding(2) var<storage, read_write> ring: array<u32>;
const COLS: u32 = 16u;
override PICKS: u32 = 16u;
override SEQS: u32 = 80u;
override RING: u32 = 64u;
fn seq_of(row: u32) -> u32 { return step[COLS + 4u * step[PICKS + row] + 2u]; }

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
        let p = x[group.x * N_PART + i];
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
        let row = group.x;
        let seq = seq_of(row);
        // The token is appended to its sequence and ring. A single pick becomes the next step; one of several advances in place
        // if it is the column of its own index.
        let picked = step[PICKS + row];
        let pos = step[COLS + 4u * picked + 1u] + 1u;
        let n_chosen = step[SEQS + 2u * seq];
        ring[seq * RING + (n_chosen & (RING - 1u))] = token;
        step[SEQS + 2u * seq] = n_chosen + 1u;
        step[SEQS + 2u * seq + 1u] = token;
        let is_alone = step[1] == 1u;
        if (is_alone) {
            step[0] = 1u;
            step[PICKS] = 0u;
            step[COLS + 2u] = seq;
        }
        if (is_alone || picked == row) {
            step[COLS + 4u * row] = token;
            step[COLS + 4u * row + 1u] = pos;
            step[COLS + 4u * row + 3u] = 0u;
        }

    }
}
