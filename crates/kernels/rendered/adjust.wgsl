// adjust: 
override K: u32 = 1u;
override RING: u32 = 64u;
const WINDOW: u32 = 128u;
const BIASES: u32 = 64u;
const EXCLUDED: u32 = 0xff800000u;

@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read> adjust: array<u32>;
@group(0) @binding(2) var<storage, read> step: array<u32>;
@group(0) @binding(3) var<storage, read> ring: array<u32>;
var<workgroup> recent: array<u32, WINDOW>;
var<workgroup> biased: array<u32, BIASES>;

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) tid: u32) {
    // The ring's index runs on for ever; of the window, what was said since the first token that counts.
    let end = step[3];
    let n = min(min(adjust[1], end - adjust[0]), min(RING, WINDOW));
    let n_bias = min(adjust[5], BIASES);
    if (tid < n) {
        recent[tid] = ring[(end - n + tid) & (RING - 1u)];
    }
    if (tid < n_bias) {
        biased[tid] = adjust[8u + 2u * tid];
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
                bias = adjust[9u + 2u * j];
            }
        }
        if (is_first && token < K) {
            if (bias == EXCLUDED) {
                y[token] = bitcast<f32>(bias);
            } else {
                var v = y[token] + bitcast<f32>(bias);
                if (count > 0u) {
                    let repeat = bitcast<f32>(adjust[2]);
                    if (v <= 0.0) {
                        v = v * repeat;
                    } else {
                        v = v / repeat;
                    }
                    v -= f32(count) * bitcast<f32>(adjust[3]) + bitcast<f32>(adjust[4]);
                }
                y[token] = v;
            }
        }
    }
}
