// argmax: part=chunk
// A power of two.
override WG: u32 = 256u;
override K: u32 = 1u;
override LD: u32 = 1u;
override CHUNK: u32 = 1024u;
override N_PART: u32 = 1u;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec2<u32>>;
var<workgroup> value: array<f32, WG>;
var<workgroup> index: array<u32, WG>;

fn better(v: f32, i: u32, w: f32, j: u32) -> bool {
    return v > w || (v == w && i < j);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    var v = -3.4028234e38;
    var at = 0xffffffffu;
    let end = min(K, (group.x + 1u) * CHUNK);
    for (var i = group.x * CHUNK + tid; i < end; i += WG) {
        let w = x[group.y * LD + i];
        if (better(w, i, v, at)) {
            v = w;
            at = i;
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
        y[group.y * N_PART + group.x] = vec2<u32>(bitcast<u32>(value[0]), index[0]);
    }
}
