// cpy: a=f32 y=q4_K
override SAME: bool = true;
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
// Offset of the value at coordinates c.
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

@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;
override y_ne0: u32 = 1u;
override y_ne1: u32 = 1u;
override y_ne2: u32 = 1u;
override y_ne3: u32 = 1u;
override y_s0: u32 = 1u;
override y_s1: u32 = 1u;
override y_s2: u32 = 1u;
override y_s3: u32 = 1u;
override y_o: u32 = 0u;
// Offset of the value at coordinates c.
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

// Rounds halves away from zero; adding a half would round up values just below it.
fn nearest(v: f32) -> i32 {
    let whole = trunc(v);
    return i32(whole) + i32(trunc(2.0 * (v - whole)));
}

override y_p1: u32 = 0u;
override y_p2: u32 = 0u;
override y_p3: u32 = 0u;
// Writes some bits of a word; threads may write other bits of the word concurrently.
fn y_put_bits(at: u32, mask: u32, v: u32) {
    atomicAnd(&y[at], ~mask);
    atomicOr(&y[at], v);
}

// Per thread (group): codes, four in a word, search results, and integer scales.
var<workgroup> y_codes: array<u32, 512>;
var<workgroup> y_found: array<vec2<f32>, 64>;
var<workgroup> y_scales: array<u32, 64>;
// Scales of the scales, two halves; every thread of a block holds them.
var<workgroup> y_steps: array<u32, 64>;
// Four codes of a block, counted from its first thread.
fn y_four(first: u32, i: u32) -> u32 {
    return y_codes[first * 8u + i];
}
// Integer scales of four threads.
fn y_four_scales(thread: u32) -> vec4<u32> {
    return vec4<u32>(y_scales[thread], y_scales[thread + 1u], y_scales[thread + 2u], y_scales[thread + 3u]);
}
fn y_bytes(b: vec4<u32>) -> u32 {
    return b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u);
}
// Packs bits of the codes of n words: those of `mask` after a shift, `width` bits per code.
fn y_join(first: u32, at: u32, step: u32, n: u32, shift: u32, mask: u32, width: u32) -> u32 {
    var word = 0u;
    for (var k = 0u; k < n; k++) {
        word |= ((y_four(first, at + k * step) >> shift) & mask) << (k * width);
    }
    return word;
}
// Nearest integer, halves to even, clamped.
fn y_level(v: f32, low: f32, high: f32) -> f32 {
    return clamp(round(v), low, high);
}

fn y_weight(x: f32, rms: f32) -> f32 {
    return rms + abs(x);
}
// A grid: inverse scale and first code.
fn y_code(x: f32, grid: vec2<f32>) -> f32 {
    return y_level(grid.x * (x - grid.y), 0.0, 15.0);
}
fn y_error(v: ptr<function, array<f32, 32>>, rms: f32, grid: vec2<f32>, scale: f32, low: f32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < 32u; i++) {
        let x = (*v)[i];
        let diff = scale * y_code(x, grid) + low - x;
        sum += y_weight(x, rms) * (diff * diff);
    }
    return sum;
}
fn y_search(v: ptr<function, array<f32, 32>>, lane: u32) -> vec2<f32> {
    var low = (*v)[0];
    var high = (*v)[0];
    var squares = 0.0;
    for (var i = 0u; i < 32u; i++) {
        let x = (*v)[i];
        low = select(low, x, x < low);
        high = select(high, x, x > high);
        squares += x * x;
    }
    low = select(low, 0.0, low > 0.0);
    if (high <= low) {
    for (var at = 0u; at < 8u; at++) {
        y_codes[lane * 8u + at] = 0u;
    }
        return vec2<f32>(0.0, -low);
    }
    let rms = sqrt(squares / 32.0);
    var sum_w = 0.0;
    var sum_x = 0.0;
    for (var i = 0u; i < 32u; i++) {
        let x = (*v)[i];
        let weight = y_weight(x, rms);
        sum_w += weight;
        sum_x += weight * x;
    }
    var grid = vec2<f32>(15.0 / (high - low), low);
    var scale = 1.0 / grid.x;
    var best = y_error(v, rms, grid, scale, low);
    for (var step = 0; step <= 20; step++) {
        // Further candidates start from a better minimum.
        let tried = vec2<f32>((-1.0 + 0.1 * f32(step) + 15.0) / (high - low), low);
        var sum_l = 0.0;
        var sum_l2 = 0.0;
        var sum_xl = 0.0;
        for (var i = 0u; i < 32u; i++) {
            let x = (*v)[i];
            let l = y_code(x, tried);
            let wl = y_weight(x, rms) * l;
            sum_l += wl;
            sum_l2 += wl * l;
            sum_xl += wl * x;
        }
        let determinant = sum_w * sum_l2 - sum_l * sum_l;
        if (determinant > 0.0) {
            var new_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
            var new_low = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
            if (new_low > 0.0) {
                new_low = 0.0;
                new_scale = sum_xl / sum_l2;
            }
            let error = y_error(v, rms, tried, new_scale, new_low);
            if (error < best) {
                best = error;
                grid = tried;
                scale = new_scale;
                low = new_low;
            }
        }
    }
    for (var at = 0u; at < 32u; at += 4u) {
        var four = 0u;
        for (var k = 0u; k < 4u; k++) {
            let i = at + k;
            let x = (*v)[i];
            four |= u32(y_code(x, grid)) << (8u * k);
        }
        y_codes[lane * 8u + at / 4u] = four;
    }
    return vec2<f32>(scale, -low);
}

fn y_finish(v: ptr<function, array<f32, 32>>, lane: u32, g: u32) {
    var top = vec2<f32>(0.0);
    for (var k = lane - g; k < lane - g + 8u; k++) {
        top = select(top, y_found[k], y_found[k] > top);
    }
    let inverse = select(vec2<f32>(0.0), 63.0 / top, top > vec2<f32>(0.0));
    let codes = clamp(round(inverse * y_found[lane]), vec2<f32>(0.0), vec2<f32>(63.0));
    let steps = pack2x16float(top / 63.0);
    y_steps[lane] = steps;
    y_scales[lane] = u32(codes.x) | (u32(codes.y) << 8u);
    let group = unpack2x16float(steps) * codes;
    if (group.x != 0.0) {
    for (var at = 0u; at < 32u; at += 4u) {
        var four = 0u;
        for (var k = 0u; k < 4u; k++) {
            let i = at + k;
            let x = (*v)[i];
            four |= u32(y_level((x + group.y) / group.x, 0.0, 15.0)) << (8u * k);
        }
        y_codes[lane * 8u + at / 4u] = four;
    }
    }
}

fn y_sixes(first: u32, i: u32) -> u32 {
    let low = y_four_scales(first);
    let high = y_four_scales(first + 4u);
    switch (i) {
        case 0u: {
            return y_steps[first];
        }
        case 1u: {
            return y_bytes((low & vec4<u32>(63u)) | ((high & vec4<u32>(48u)) << vec4<u32>(2u)));
        }
        case 2u: {
            return y_bytes((low >> vec4<u32>(8u)) | (((high >> vec4<u32>(8u)) & vec4<u32>(48u)) << vec4<u32>(2u)));
        }
        default: {
            return y_bytes((high & vec4<u32>(15u)) | ((high >> vec4<u32>(4u)) & vec4<u32>(240u)));
        }
    }
}

fn y_word(first: u32, i: u32) -> u32 {
    if (i < 4u) {
        return y_sixes(first, i);
    }
    return y_join(first, 16u * ((i - 4u) / 8u) + (i - 4u) % 8u, 8u, 2u, 0u, 0x0f0f0f0fu, 4u);
}

fn y_write(v: ptr<function, array<f32, 32>>, cell: u32, live: bool, lane: u32) {
    let g = lane % 8u;
    let first = lane - g;
    y_found[lane] = y_search(v, lane);
    workgroupBarrier();
    y_finish(v, lane, g);
    workgroupBarrier();
    if (!live) {
        return;
    }
    for (var i = g; i < 32u; i += 8u) {
        atomicStore(&y[0u + cell * 32u + i], y_word(first, 4u + i));
    }
    for (var i = g; i < 4u; i += 8u) {
        atomicStore(&y[y_p1 * 4u + cell * 4u + i], y_word(first, 0u + i));
    }
}

fn source_value(c: vec4<u32>) -> f32 {
    return a_load(a_at(select(a_coords(y_order(c)), c, SAME)));
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {

    let i = (group.y * groups.x + group.x) * 64u + lane;

    let live = i < y_ne0 * y_ne1 * y_ne2 * y_ne3 / 32u;
    let c = y_coords(i * 32u);
    var v: array<f32, 32>;
    if (live) {
        for (var j = 0u; j < 32u; j++) {
            v[j] = source_value(vec4<u32>(c.x + j, c.yzw));
        }
    }
    y_write(&v, y_at(c) / 256u, live, lane);
}
