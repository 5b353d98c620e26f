// sample: part=chunk
override WG: u32 = 256u;
override K: u32 = 1u;
override LD: u32 = 1u;
override N_PART: u32 = 1u;
// Pairs that a workgroup sorts, a power of two.
override N: u32 = 1024u;
const KEEP: u32 = 64u;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec2<u32>>;
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
    for (var i = tid; i < N; i += WG) {
        let at = group.x * N + i;
        value[i] = -3.4028234e38;
        index[i] = 0xffffffffu;
        if (at < K) {
            value[i] = x[group.y * LD + at];
            index[i] = at;
        }
    }
    sort(tid);
    for (var i = tid; i < KEEP; i += WG) {
        y[(group.y * N_PART + group.x) * KEEP + i] = vec2<u32>(bitcast<u32>(value[i]), index[i]);
    }
}
