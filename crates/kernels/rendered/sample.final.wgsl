// sample: part=final
override WG: u32 = 256u;
override K: u32 = 1u;
override LD: u32 = 1u;
override N_PART: u32 = 1u;
// Pairs that a workgroup sorts, a power of two.
override N: u32 = 1024u;
const KEEP: u32 = 64u;
@group(0) @binding(0) var<storage, read> x: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> sampler: array<u32>;
@group(0) @binding(2) var<storage, read_write> step: array<u32>;
@group(0) @binding(3) var<storage, read_write> ring: array<u32>;
const COLS: u32 = 16u;
override PICKS: u32 = 16u;
override SEQS: u32 = 80u;
override RING: u32 = 64u;
fn seq_of(row: u32) -> u32 { return step[COLS + 4u * step[PICKS + row] + 2u]; }

const SAMPLER: u32 = 136u;
const DRAWS: u32 = 128u;
var<workgroup> weight: array<f32, KEEP>;
var<workgroup> value: array<f32, N>;
var<workgroup> index: array<u32, N>;

fn better(v: f32, i: u32, w: f32, j: u32) -> bool {
    return v > w || (v == w && i < j);
}
// Sorts the N pairs, best first.
fn sort(tid: u32) {
    for (var k = 2u; k <= N; k = k * 2u) {
        for (var j = k / 2u; j > 0u; j = j / 2u) {
            workgroupBarrier();
            for (var t = tid; t < N / 2u; t += WG) {
                // Pairs j apart: j is a power of two, so the index needs no division.
                let a = ((t & ~(j - 1u)) << 1u) | (t & (j - 1u));
                let b = a + j;
                let up = (a & k) == 0u;
                if (better(value[b], index[b], value[a], index[a]) == up) {
                    let v = value[a];
                    let i = index[a];
                    value[a] = value[b];
                    index[a] = index[b];
                    value[b] = v;
                    index[b] = i;
                }
            }
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    // The best so far are in front; a round adds N - KEEP more.
    for (var i = tid; i < KEEP; i += WG) {
        value[i] = -3.4028234e38;
        index[i] = 0xffffffffu;
    }
    for (var base = 0u; base < N_PART * KEEP; base += N - KEEP) {
        for (var i = tid; i < N - KEEP; i += WG) {
            value[KEEP + i] = -3.4028234e38;
            index[KEEP + i] = 0xffffffffu;
            if (base + i < N_PART * KEEP) {
                let p = x[group.x * N_PART * KEEP + base + i];
                value[KEEP + i] = bitcast<f32>(p.x);
                index[KEEP + i] = p.y;
            }
        }
        sort(tid);
    }

    if (tid == 0u) {
        let row = group.x;
        let seq = seq_of(row);
        let params = seq * SAMPLER;
        // -inf and missing candidates end the list.
        var n = 0u;
        for (var i = 0u; i < min(sampler[params], KEEP); i++) {
            if (index[i] == 0xffffffffu || value[i] < -3.0e38) {
                break;
            }
            n = i + 1u;
        }
        n = max(n, 1u);
        // top-p on the softmax of the untempered logits.
        var sum = 0.0;
        for (var i = 0u; i < n; i++) {
            weight[i] = exp(value[i] - value[0]);
            sum += weight[i];
        }
        let top_p = bitcast<f32>(sampler[params + 1u]);
        if (top_p < 1.0) {
            var c = 0.0;
            for (var i = 0u; i < n; i++) {
                c += weight[i] / sum;
                if (c >= top_p) {
                    n = i + 1u;
                    break;
                }
            }
        }
        // min-p: relative to the largest probability.
        let min_p = bitcast<f32>(sampler[params + 2u]);
        for (var i = 1u; i < n; i++) {
            if (weight[i] < min_p) {
                n = i;
                break;
            }
        }
        // Temperature and the draw.
        let inv_t = bitcast<f32>(sampler[params + 3u]);
        sum = 0.0;
        for (var i = 0u; i < n; i++) {
            weight[i] = exp((value[i] - value[0]) * inv_t);
            sum += weight[i];
        }
        let draw = step[SEQS + 2u * seq] % DRAWS;
        let r = bitcast<f32>(sampler[params + 8u + draw]) * sum;
        var c = 0.0;
        var pick = n - 1u;
        for (var i = 0u; i < n; i++) {
            c += weight[i];
            if (c >= r) {
                pick = i;
                break;
            }
        }
        let token = index[pick];
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
