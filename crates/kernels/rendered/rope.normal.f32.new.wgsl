// rope: mode=normal ty=f32 place=new
override T: u32 = 64u;
override ROWS: u32 = 1u;
override HELD: u32 = 64u;
override PAIRS: u32 = 1u;
override FIRST: u32 = 0u;
override SECT0: u32 = 0u;
override SECT1: u32 = 0u;
override SECT2: u32 = 0u;
override SECT3: u32 = 0u;
override N_COARSE: u32 = 1u;
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

@group(0) @binding(1) var<storage, read> pos: array<u32>;
override pos_ne0: u32 = 1u;
override pos_ne1: u32 = 1u;
override pos_ne2: u32 = 1u;
override pos_ne3: u32 = 1u;
override pos_s0: u32 = 1u;
override pos_s1: u32 = 1u;
override pos_s2: u32 = 1u;
override pos_s3: u32 = 1u;
override pos_o: u32 = 0u;
// Where the value at coordinates c stands.
fn pos_at(c: vec4<u32>) -> u32 {
    return pos_o + c.x * pos_s0 + c.y * pos_s1 + c.z * pos_s2 + c.w * pos_s3;
}

fn pos_index(c: vec4<u32>) -> u32 {
    return pos[pos_at(c)];
}

@group(0) @binding(2) var<storage, read> rope: array<vec2<f32>>;
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

var<workgroup> held: array<f32, HELD>;

// Which of the four positions of a token a pair follows.
fn stream(pair: u32) -> u32 {
    return 0u;
}
// Channel `ch` of the head that begins at `h0` of what is held, rotated.
fn turned(h0: u32, ch: u32, token: u32) -> f32 {
    let v = held[h0 + ch];
    let at = ch - FIRST;
    if (ch < FIRST || at >= 2u * PAIRS) {
        return v;
    }
    let pair = at / 2u;
    let second = (at & 1u) == 1u;
    let other = held[h0 + FIRST + (at ^ 1u)];
    let p = pos_index(vec4<u32>(token + stream(pair) * y_ne2, 0u, 0u, 0u));
    let f = rope[(p & 255u) * PAIRS + pair];
    let c = rope[(256u + min(p >> 8u, N_COARSE - 1u)) * PAIRS + pair];
    let cs = vec2<f32>(f.x * c.x - f.y * c.y, f.y * c.x + f.x * c.y);
    return v * cs.x + select(-other, other, second) * cs.y;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let lane = tid % T;
    let nth = (group.y * groups.x + group.x) * (64u / T) + tid / T;
    let live = nth < ROWS;
    let c = y_coords(select(0u, nth, live) * y_ne0);
    let h0 = tid / T * y_ne0;
    let start = a_at(c);
    let to = y_at(c);
    let n = select(0u, y_ne0, live);
    for (var i = lane; i < n; i += T) {
        held[h0 + i] = a_load(start + i * a_s0);
    }
    workgroupBarrier();
    for (var i = lane; i < n; i += T) {
        y[to + i * y_s0] = bitcast<u32>(turned(h0, i, c.z));
    }
}
