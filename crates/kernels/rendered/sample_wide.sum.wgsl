// sample_wide: part=sum
override WG: u32 = 256u;
override K: u32 = 1u;
override LD: u32 = 4u;
override N_PART: u32 = 1u;
override N: u32 = 1024u;
const SAMPLER: u32 = 136u;
// Smaller logits, masked ones among them, are never drawn.
const LEAST: f32 = -3.0e38;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> sampler: array<u32>;
@group(0) @binding(2) var<storage, read> step: array<u32>;
// The largest logit of a chunk; the sums of exp(logit - largest), and of the same at the row's temperature.
@group(0) @binding(3) var<storage, read_write> sums: array<vec4<f32>>;
const COLS: u32 = 16u;
override PICKS: u32 = 16u;
override SEQS: u32 = 80u;
override RING: u32 = 64u;
fn seq_of(row: u32) -> u32 { return step[COLS + 4u * step[PICKS + row] + 2u]; }

var<workgroup> pool: array<vec2<f32>, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let inv_t = bitcast<f32>(sampler[seq_of(group.y) * SAMPLER + 3u]);
    let end = min(K, (group.x + 1u) * N);
    var most = -3.4028234e38;
    for (var i = group.x * N + tid; i < end; i += WG) {
        most = max(most, x[group.y * LD + i]);
    }
    pool[tid].x = most;
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s = s / 2u) {
        if (tid < s) {
            pool[tid].x = max(pool[tid].x, pool[tid + s].x);
        }
        workgroupBarrier();
    }
    most = pool[0].x;
    workgroupBarrier();
    var sum = vec2<f32>(0.0);
    for (var i = group.x * N + tid; i < end; i += WG) {
        let v = x[group.y * LD + i];
        if (v >= LEAST) {
            sum += exp((v - most) * vec2<f32>(1.0, inv_t));
        }
    }
    pool[tid] = sum;
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s = s / 2u) {
        if (tid < s) {
            pool[tid] += pool[tid + s];
        }
        workgroupBarrier();
    }
    if (tid == 0u) {
        sums[group.y * N_PART + group.x] = vec4<f32>(most, pool[0], 0.0);
    }
}
