// argsort: part=merge out=y
override B: u32 = 1024u;
override N_BLOCK: u32 = 1u;
override K: u32 = 1u;
override L: u32 = 1024u;
override ROWS: u32 = 1u;
override DESC: bool = false;
@group(0) @binding(0) var<storage, read> runs: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
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

fn after(x: vec2<u32>, z: vec2<u32>) -> bool {
    return x.x > z.x || (x.x == z.x && x.y > z.y);
}
fn store(row: u32, i: u32, pair: vec2<u32>) {
    y[y_at(y_coords(row * K + i))] = pair.y;
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let per_row = (K + 7u) / 8u;
    let nth = (group.y * groups.x + group.x) * 64u + tid;
    if (nth >= ROWS * per_row) {
        return;
    }
    let row = nth / per_row;
    let first = nth % per_row * 8u;
    let r0 = row * K;
    let base = first / (2u * L) * 2u * L;
    let n_a = min(L, K - base);
    let n_b = min(L, K - base - n_a);
    let d = first - base;
    // How many of the d values before these come from the first run.
    var low = d - min(d, n_b);
    var high = min(d, n_a);
    while (low < high) {
        let mid = (low + high) / 2u;
        if (after(runs[r0 + base + mid], runs[r0 + base + n_a + d - mid - 1u])) {
            high = mid;
        } else {
            low = mid + 1u;
        }
    }
    var i = low;
    var j = d - low;
    let last = min(first + 8u, K);
    for (var to = first; to < last; to++) {
        let a = runs[r0 + base + min(i, n_a - 1u)];
        let b = runs[r0 + min(base + n_a + j, K - 1u)];
        let from_b = i >= n_a || (j < n_b && after(a, b));
        store(row, to, select(a, b, from_b));
        i += select(1u, 0u, from_b);
        j += select(0u, 1u, from_b);
    }
}
