// argsort: part=block out=pairs
override B: u32 = 1024u;
override N_BLOCK: u32 = 1u;
override K: u32 = 1u;
override L: u32 = 1024u;
override ROWS: u32 = 1u;
override DESC: bool = false;
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

@group(0) @binding(1) var<storage, read_write> pairs: array<vec2<u32>>;
fn after(x: vec2<u32>, z: vec2<u32>) -> bool {
    return x.x > z.x || (x.x == z.x && x.y > z.y);
}
fn store(row: u32, i: u32, pair: vec2<u32>) {
    pairs[row * K + i] = pair;
}
var<workgroup> held: array<vec2<u32>, 1024>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let block0 = (group.y * groups.x + group.x) * (1024u / B);
    for (var j = 0u; j < 4u; j++) {
        let s = j * 256u + tid;
        let block = block0 + s / B;
        let i = block % N_BLOCK * B + s % B;
        let live = block < ROWS * N_BLOCK && i < K;
        let key = key_of(a_load(a_at(a_coords(select(0u, block / N_BLOCK * K + i, live)))));
        // What lies beyond the row comes after all that it holds.
        held[s] = select(vec2<u32>(0xffffffffu), vec2<u32>(select(key, ~key, DESC), i), live);
    }
    workgroupBarrier();
    for (var k = 2u; k <= B; k *= 2u) {
        for (var j = k / 2u; j > 0u; j /= 2u) {
            for (var q = 0u; q < 2u; q++) {
                let p = q * 256u + tid;
                let low = p / j * 2u * j + p % j;
                let a = held[low];
                let b = held[low + j];
                if (after(a, b) == (((low % B) & k) == 0u)) {
                    held[low] = b;
                    held[low + j] = a;
                }
            }
            workgroupBarrier();
        }
    }
    for (var j = 0u; j < 4u; j++) {
        let s = j * 256u + tid;
        let block = block0 + s / B;
        let i = block % N_BLOCK * B + s % B;
        if (block < ROWS * N_BLOCK && i < K) {
            store(block / N_BLOCK, i, held[s]);
        }
    }
}
