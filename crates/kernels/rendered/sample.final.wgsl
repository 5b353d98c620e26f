// sample: part=final
override WG: u32 = 256u;
override K: u32 = 1u;
override N_PART: u32 = 1u;
// Pairs that a workgroup sorts, a power of two.
override N: u32 = 1024u;
const KEEP: u32 = 64u;
@group(0) @binding(0) var<storage, read> x: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> sampler: array<u32>;
@group(0) @binding(2) var<storage, read_write> step: array<u32>;
@group(0) @binding(3) var<storage, read_write> ring: array<u32>;
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
fn uniform_draw(seed: u32, n: u32) -> f32 {
    var h = seed ^ (n * 0x9e3779b9u);
    h = h * 747796405u + 2891336453u;
    h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u;
    h = (h >> 22u) ^ h;
    h = h * 747796405u + 2891336453u;
    h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u;
    h = (h >> 22u) ^ h;
    return f32(h >> 8u) / 16777216.0;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    // The best so far stand in front; a round brings N - KEEP more.
    for (var i = tid; i < KEEP; i += WG) {
        value[i] = -3.4028234e38;
        index[i] = 0xffffffffu;
    }
    for (var base = 0u; base < N_PART * KEEP; base += N - KEEP) {
        for (var i = tid; i < N - KEEP; i += WG) {
            value[KEEP + i] = -3.4028234e38;
            index[KEEP + i] = 0xffffffffu;
            if (base + i < N_PART * KEEP) {
                let p = x[base + i];
                value[KEEP + i] = bitcast<f32>(p.x);
                index[KEEP + i] = p.y;
            }
        }
        sort(tid);
    }
    if (tid == 0u) {
        // -inf and missing candidates end the list.
        var n = 0u;
        for (var i = 0u; i < min(sampler[0], KEEP); i++) {
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
        let top_p = bitcast<f32>(sampler[1]);
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
        // min-p: a share of the best one's probability.
        let min_p = bitcast<f32>(sampler[2]);
        for (var i = 1u; i < n; i++) {
            if (weight[i] < min_p) {
                n = i;
                break;
            }
        }
        // Temperature and the draw.
        let inv_t = bitcast<f32>(sampler[3]);
        sum = 0.0;
        for (var i = 0u; i < n; i++) {
            weight[i] = exp((value[i] - value[0]) * inv_t);
            sum += weight[i];
        }
        let r = uniform_draw(sampler[4], step[2]) * sum;
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
