// adjust: 
override K: u32 = 1u;
override LD: u32 = 1u;
const ADJUST: u32 = 136u;
const WINDOW: u32 = 128u;
const BIASES: u32 = 64u;
const EXCLUDED: u32 = 0xff800000u;

@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read> adjust: array<u32>;
@group(0) @binding(2) var<storage, read> step: array<u32>;
@group(0) @binding(3) var<storage, read> ring: array<u32>;
const COLS: u32 = 16u;
override PICKS: u32 = 16u;
override SEQS: u32 = 80u;
override RING: u32 = 64u;
fn seq_of(row: u32) -> u32 { return step[COLS + 4u * step[PICKS + row] + 2u]; }

var<workgroup> recent: array<u32, WINDOW>;
var<workgroup> biased: array<u32, BIASES>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let first = group.x * LD;
    let seq = seq_of(group.x);
    let params = seq * ADJUST;
    // The ring index grows without bound; the window contains only tokens from the first that counts.
    let end = step[SEQS + 2u * seq];
    let n = min(min(adjust[params + 1u], end - adjust[params]), min(RING, WINDOW));
    let n_bias = min(adjust[params + 5u], BIASES);
    if (tid < n) {
        recent[tid] = ring[seq * RING + ((end - n + tid) & (RING - 1u))];
    }
    if (tid < n_bias) {
        biased[tid] = adjust[params + 8u + 2u * tid];
    }
    workgroupBarrier();
    for (var i = tid; i < n + n_bias; i += 128u) {
        var token = 0u;
        if (i < n) {
            token = recent[i];
        } else {
            token = biased[i - n];
        }
        var count = 0u;
        var is_first = true;
        for (var j = 0u; j < n; j++) {
            if (recent[j] == token) {
                count += 1u;
                is_first = is_first && j >= i;
            }
        }
        var bias = 0u;
        for (var j = 0u; j < n_bias; j++) {
            if (biased[j] == token) {
                bias = adjust[params + 9u + 2u * j];
            }
        }
        if (is_first && token < K) {
            if (bias == EXCLUDED) {
                y[first + token] = bitcast<f32>(bias);
            } else {
                var v = y[first + token] + bitcast<f32>(bias);
                if (count > 0u) {
                    let repeat = bitcast<f32>(adjust[params + 2u]);
                    if (v <= 0.0) {
                        v = v * repeat;
                    } else {
                        v = v / repeat;
                    }
                    v -= f32(count) * bitcast<f32>(adjust[params + 3u]) + bitcast<f32>(adjust[params + 4u]);
                }
                y[first + token] = v;
            }
        }
    }
}
