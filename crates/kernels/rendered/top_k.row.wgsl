// top_k: part=row
override K: u32 = 1u;
override N: u32 = 1u;
override CHUNK: u32 = 1u;
override N_CHUNK: u32 = 1u;
override ROUND: u32 = 0u;
override ROWS: u32 = 1u;
@group(0) @binding(0) var<storage, read> a: array<u32>;
override a_ne0: u32 = 1u;
override a_ne1: u32 = 1u;
override a_ne2: u32 = 1u;
override a_ne3: u32 = 1u;
override a_s0: u32 = 1u;
override a_s1: u32 = 1u;
override a_s2: u32 = 1u;
override a_s3: u32 = 1u;
override a_o: u32 = 0u;
// Where the value at coordinates c stands.
fn a_at(c: vec4<u32>) -> u32 {
    return a_o + c.x * a_s0 + c.y * a_s1 + c.z * a_s2 + c.w * a_s3;
}

fn a_load(i: u32) -> f32 {
    return bitcast<f32>(a[i]);
}

fn a_coords(i: u32) -> vec4<u32> {
    let row = i / a_ne0;
    let mat = row / a_ne1;
    return vec4<u32>(i % a_ne0, row % a_ne1, mat % a_ne2, mat / a_ne2);
}
fn a_order(c: vec4<u32>) -> u32 {
    return c.x + a_ne0 * (c.y + a_ne1 * (c.z + a_ne2 * c.w));
}

fn key_of(v: f32) -> u32 {
    let b = select(bitcast<u32>(v), 0u, v == 0.0);
    return b ^ select(0x80000000u, 0xffffffffu, (b >> 31u) == 1u);
}

@group(0) @binding(3) var<storage, read_write> y: array<u32>;
override y_ne0: u32 = 1u;
override y_ne1: u32 = 1u;
override y_ne2: u32 = 1u;
override y_ne3: u32 = 1u;
override y_s0: u32 = 1u;
override y_s1: u32 = 1u;
override y_s2: u32 = 1u;
override y_s3: u32 = 1u;
override y_o: u32 = 0u;
// Where the value at coordinates c stands.
fn y_at(c: vec4<u32>) -> u32 {
    return y_o + c.x * y_s0 + c.y * y_s1 + c.z * y_s2 + c.w * y_s3;
}

fn y_coords(i: u32) -> vec4<u32> {
    let row = i / y_ne0;
    let mat = row / y_ne1;
    return vec4<u32>(i % y_ne0, row % y_ne1, mat % y_ne2, mat / y_ne2);
}
fn y_order(c: vec4<u32>) -> u32 {
    return c.x + y_ne0 * (c.y + y_ne1 * (c.z + y_ne2 * c.w));
}

struct Place {
    c: vec4<u32>,
    inside: bool,
}
override y_d0: u32 = 1u;
override y_d1: u32 = 1u;
override y_d2: u32 = 1u;
override y_d3: u32 = 1u;
override y_m0: u32 = 1u;
override y_m1: u32 = 1u;
override y_m2: u32 = 1u;
override y_m3: u32 = 1u;
// Which value stands at place i of the buffer, if one does.
fn y_place(i: u32) -> Place {
    let o = i - y_o;
    let c = vec4<u32>(o % y_m0 / y_d0, o % y_m1 / y_d1, o % y_m2 / y_d2, o % y_m3 / y_d3);
    let inside = i >= y_o && y_at(c) == i
        && all(c < vec4<u32>(y_ne0, y_ne1, y_ne2, y_ne3));
    return Place(c, inside);
}

var<workgroup> pairs: array<vec2<u32>, 256>;
var<workgroup> local: array<atomic<u32>, 256>;
var<workgroup> sums: array<u32, 256>;
// What is known of the key, and how many values that agree with it are wanted.
var<workgroup> picked: vec2<u32>;

// One round, if `n` values that agree so far have 255 - tid as their next bits.
fn pick(n: u32, tid: u32) {
    workgroupBarrier();
    sums[tid] = n;
    workgroupBarrier();
    for (var d = 1u; d < 256u; d *= 2u) {
        let v = select(0u, sums[max(tid, d) - d], tid >= d);
        workgroupBarrier();
        sums[tid] += v;
        workgroupBarrier();
    }
    let known = picked;
    workgroupBarrier();
    let above = sums[tid] - n;
    if (above < known.y && known.y <= above + n) {
        picked = vec2<u32>((known.x << 8u) | (255u - tid), known.y - above);
    }
    workgroupBarrier();
}
// Adds a value to the histogram of a round if it agrees with what is known.
fn tally(key: u32, round: u32) {
    let shift = 24u - 8u * round;
    let high = select(key >> min(shift + 8u, 31u), 0u, round == 0u);
    if (high == picked.x) {
        atomicAdd(&local[(key >> shift) & 255u], 1u);
    }
}
// Writes the indices of the values of first .. last that are in; `before` says what the chunks before had.
fn write(start: u32, c: vec4<u32>, first: u32, last: u32, before: vec2<u32>, tid: u32) {
    let want = picked;
    var past = before;
    for (var tile = first; tile < last; tile += 2048u) {
        var keys: array<u32, 8>;
        var mine = vec2<u32>(0u);
        for (var j = 0u; j < 8u; j++) {
            let i = tile + tid * 8u + j;
            let key = key_of(a_load(start + min(i, last - 1u) * a_s0));
            keys[j] = key;
            mine += select(vec2<u32>(0u), vec2<u32>(u32(key > want.x), u32(key == want.x)), i < last);
        }
        pairs[tid] = mine;
        workgroupBarrier();
        for (var d = 1u; d < 256u; d *= 2u) {
            let v = select(vec2<u32>(0u), pairs[max(tid, d) - d], tid >= d);
            workgroupBarrier();
            pairs[tid] += v;
            workgroupBarrier();
        }
        var at = past + pairs[tid] - mine;
        past += pairs[255];
        workgroupBarrier();
        for (var j = 0u; j < 8u; j++) {
            let i = tile + tid * 8u + j;
            let above = keys[j] > want.x;
            let equal = keys[j] == want.x;
            if (i < last && (above || (equal && at.y < want.y))) {
                y[y_at(vec4<u32>(at.x + min(at.y, want.y), c.yzw))] = i;
            }
            at += select(vec2<u32>(0u), vec2<u32>(u32(above), u32(equal)), i < last);
        }
    }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let g = group.y * groups.x + group.x;
    if (g >= ROWS * N_CHUNK) {
        return;
    }
    let row = g / N_CHUNK;
    let c = a_coords(row * N);
    let start = a_at(c);
    let first = g % N_CHUNK * CHUNK;
    let last = min(first + CHUNK, N);
    if (tid == 0u) {
        picked = vec2<u32>(0u, K);
    }
    workgroupBarrier();
    for (var round = 0u; round < 4u; round++) {
        atomicStore(&local[tid], 0u);
        workgroupBarrier();
        for (var i = first + tid; i < last; i += 256u) {
            tally(key_of(a_load(start + i * a_s0)), round);
        }
        workgroupBarrier();
        pick(atomicLoad(&local[255u - tid]), tid);
    }
    write(start, c, first, last, vec2<u32>(0u), tid);
}
