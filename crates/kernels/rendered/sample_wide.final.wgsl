// sample_wide: part=final
override WG: u32 = 256u;
override K: u32 = 1u;
override LD: u32 = 4u;
override N_PART: u32 = 1u;
override N: u32 = 1024u;
const SAMPLER: u32 = 136u;
// Smaller logits, masked ones among them, are never drawn.
const LEAST: f32 = -3.0e38;
override N_SUM: u32 = 1u;
// Chunks are summed in groups, at most N of them.
override GROUP: u32 = (N_SUM + N - 1u) / N;
override N_GROUP: u32 = (N_SUM + GROUP - 1u) / GROUP;
const KEEP: u32 = 64u;
const DRAWS: u32 = 128u;
const NONE: u32 = 0xffffffffu;
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> lists: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> sums: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> sampler: array<u32>;
@group(0) @binding(4) var<storage, read_write> step: array<u32>;
@group(0) @binding(5) var<storage, read_write> ring: array<u32>;
const COLS: u32 = 16u;
override PICKS: u32 = 16u;
override SEQS: u32 = 80u;
override RING: u32 = 64u;
fn seq_of(row: u32) -> u32 { return step[COLS + 4u * step[PICKS + row] + 2u]; }

var<workgroup> value: array<f32, N>;
var<workgroup> index: array<u32, N>;
var<workgroup> weight: array<f32, KEEP>;
var<workgroup> pool: array<vec4<f32>, WG>;
// Sums of a pass: of each sixteenth of its range.
var<workgroup> parts: array<vec4<f32>, 4>;

// Numbers that thread 0 shares with the others.
struct Told {
    // The sequence; then the number of candidates that are left in the list, NONE if logits have to be read; then the
    // group of chunks or the part that a pass found.
    n: u32,
    // The uniform number of the token, in [0, 1).
    draw: f32,
    // The largest logit.
    best: f32,
    // Sum that is still to reach in what was found.
    want: f32,
}
var<workgroup> told: Told;

// Ascends as values descend; the zeros are equal.
fn place(v: f32) -> u32 {
    let b = bitcast<u32>(select(v, 0.0, v == 0.0));
    return ~select(b | 0x80000000u, ~b, b >= 0x80000000u);
}

// Shift that divides a range of 1 + d numbers into at most 16 parts.
fn shift_of(d: u32) -> u32 {
    return max(32u - countLeadingZeros(d), 4u) - 4u;
}

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

// The range of a pass over the logits.
struct Pass {
    // The sum: 0 of ones, 1 of probabilities, 2 of probabilities at the temperature.
    stage: u32,
    // True for a range of ids: of logits at the place only, or of all.
    by_id: bool,
    is_tied: bool,
    only: u32,
    // The range, in parts of 2^shift.
    first: u32,
    shift: u32,
    // The last logit that filters left: its place and id.
    bound: vec2<u32>,
}

// Sums the logits of a row in every part of the range.
fn measure(p: Pass, row: u32, best: f32, inv_t: f32, tid: u32) {
    var a0 = vec4<f32>(0.0);
    var a1 = vec4<f32>(0.0);
    var a2 = vec4<f32>(0.0);
    var a3 = vec4<f32>(0.0);
    let heat = select(1.0, inv_t, p.stage == 2u);
    // Of a range of ids, only these logits are read.
    let end = select(LD, min(LD, p.first + (16u << min(p.shift, 24u))), p.by_id);
    for (var i = select(0u, p.first / 4u, p.by_id) + tid; 4u * i < end; i += WG) {
        let four = x[row * (LD / 4u) + i];
        {
            let id = 4u * i + 0u;
            let v = four[0];
            let at = place(v);
            let is_left = at < p.bound.x || (at == p.bound.x && id <= p.bound.y);
            let counts = id < K && v >= LEAST && is_left && (!p.is_tied || at == p.only);
            let to = select(at, id, p.by_id);
            let part = vec4<u32>(select(16u, (to - p.first) >> p.shift, counts && to >= p.first));
            let w = vec4<f32>(select(exp((v - best) * heat), 1.0, p.stage == 0u));
            a0 += select(vec4<f32>(0.0), w, part == vec4<u32>(0u, 1u, 2u, 3u));
            a1 += select(vec4<f32>(0.0), w, part == vec4<u32>(4u, 5u, 6u, 7u));
            a2 += select(vec4<f32>(0.0), w, part == vec4<u32>(8u, 9u, 10u, 11u));
            a3 += select(vec4<f32>(0.0), w, part == vec4<u32>(12u, 13u, 14u, 15u));
        }
        {
            let id = 4u * i + 1u;
            let v = four[1];
            let at = place(v);
            let is_left = at < p.bound.x || (at == p.bound.x && id <= p.bound.y);
            let counts = id < K && v >= LEAST && is_left && (!p.is_tied || at == p.only);
            let to = select(at, id, p.by_id);
            let part = vec4<u32>(select(16u, (to - p.first) >> p.shift, counts && to >= p.first));
            let w = vec4<f32>(select(exp((v - best) * heat), 1.0, p.stage == 0u));
            a0 += select(vec4<f32>(0.0), w, part == vec4<u32>(0u, 1u, 2u, 3u));
            a1 += select(vec4<f32>(0.0), w, part == vec4<u32>(4u, 5u, 6u, 7u));
            a2 += select(vec4<f32>(0.0), w, part == vec4<u32>(8u, 9u, 10u, 11u));
            a3 += select(vec4<f32>(0.0), w, part == vec4<u32>(12u, 13u, 14u, 15u));
        }
        {
            let id = 4u * i + 2u;
            let v = four[2];
            let at = place(v);
            let is_left = at < p.bound.x || (at == p.bound.x && id <= p.bound.y);
            let counts = id < K && v >= LEAST && is_left && (!p.is_tied || at == p.only);
            let to = select(at, id, p.by_id);
            let part = vec4<u32>(select(16u, (to - p.first) >> p.shift, counts && to >= p.first));
            let w = vec4<f32>(select(exp((v - best) * heat), 1.0, p.stage == 0u));
            a0 += select(vec4<f32>(0.0), w, part == vec4<u32>(0u, 1u, 2u, 3u));
            a1 += select(vec4<f32>(0.0), w, part == vec4<u32>(4u, 5u, 6u, 7u));
            a2 += select(vec4<f32>(0.0), w, part == vec4<u32>(8u, 9u, 10u, 11u));
            a3 += select(vec4<f32>(0.0), w, part == vec4<u32>(12u, 13u, 14u, 15u));
        }
        {
            let id = 4u * i + 3u;
            let v = four[3];
            let at = place(v);
            let is_left = at < p.bound.x || (at == p.bound.x && id <= p.bound.y);
            let counts = id < K && v >= LEAST && is_left && (!p.is_tied || at == p.only);
            let to = select(at, id, p.by_id);
            let part = vec4<u32>(select(16u, (to - p.first) >> p.shift, counts && to >= p.first));
            let w = vec4<f32>(select(exp((v - best) * heat), 1.0, p.stage == 0u));
            a0 += select(vec4<f32>(0.0), w, part == vec4<u32>(0u, 1u, 2u, 3u));
            a1 += select(vec4<f32>(0.0), w, part == vec4<u32>(4u, 5u, 6u, 7u));
            a2 += select(vec4<f32>(0.0), w, part == vec4<u32>(8u, 9u, 10u, 11u));
            a3 += select(vec4<f32>(0.0), w, part == vec4<u32>(12u, 13u, 14u, 15u));
        }
    }
    for (var g = 0u; g < 4u; g++) {
        pool[tid] = select(select(a0, a1, g == 1u), select(a2, a3, g == 3u), g >= 2u);
        workgroupBarrier();
        for (var s = WG / 2u; s > 0u; s = s / 2u) {
            if (tid < s) {
                pool[tid] += pool[tid + s];
            }
            workgroupBarrier();
        }
        if (tid == 0u) {
            parts[g] = pool[0];
        }
        workgroupBarrier();
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let row = group.x;
    if (tid == 0u) {
        told.n = seq_of(row);
    }
    let seq = workgroupUniformLoad(&told.n);
    let params = seq * SAMPLER;
    let top_k = sampler[params];
    let top_p = bitcast<f32>(sampler[params + 1u]);
    let min_p = min(bitcast<f32>(sampler[params + 2u]), 1.0);
    let inv_t = bitcast<f32>(sampler[params + 3u]);
    // Sorts by value come with top-k and top-p; otherwise candidates are drawn in the order of their ids.
    let is_sorted = top_k > 0u || top_p < 1.0;
    // The best so far are in front; a round adds N - KEEP more.
    for (var i = tid; i < KEEP; i += WG) {
        value[i] = -3.4028234e38;
        index[i] = 0xffffffffu;
    }
    for (var base = 0u; base < N_PART * KEEP; base += N - KEEP) {
        for (var i = tid; i < N - KEEP; i += WG) {
            value[KEEP + i] = -3.4028234e38;
            index[KEEP + i] = 0xffffffffu;
            if (base + i < N_PART * KEEP) {
                let p = lists[group.x * N_PART * KEEP + base + i];
                value[KEEP + i] = bitcast<f32>(p.x);
                index[KEEP + i] = p.y;
            }
        }
        sort(tid);
    }

    // Sum of the probabilities of all logits, relative to the largest.
    pool[tid] = vec4<f32>(0.0);
    for (var i = tid; i < N_SUM; i += WG) {
        let s = sums[row * N_SUM + i];
        pool[tid].x += s.y * exp(s.x - value[0]);
    }
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s = s / 2u) {
        if (tid < s) {
            pool[tid].x += pool[tid + s].x;
        }
        workgroupBarrier();
    }
    if (tid == 0u) {
        // -inf and missing candidates end the list.
        var n = 0u;
        for (var i = 0u; i < min(select(top_k, KEEP, top_k == 0u), KEEP); i++) {
            if (index[i] == NONE || value[i] < LEAST) {
                break;
            }
            n = i + 1u;
        }
        // The list has all that top-k leaves, or only the first of them.
        let is_whole = n < KEEP || top_k == KEEP || K <= KEEP;
        n = max(n, 1u);
        var sum = 0.0;
        for (var i = 0u; i < n; i++) {
            weight[i] = exp(value[i] - value[0]);
            sum += weight[i];
        }
        // The sum of what top-k leaves is between these; so the last that top-p leaves is, too.
        let most = select(max(pool[0].x, sum), sum, is_whole);
        let least = select(sum, most, top_k == 0u);
        var low = NONE;
        var high = NONE;
        if (top_p < 1.0) {
            var c = vec2<f32>(0.0);
            for (var i = 0u; i < n; i++) {
                c += weight[i] / vec2<f32>(least, most);
                low = select(low, min(low, i + 1u), c.x >= top_p);
                if (c.y >= top_p) {
                    high = i + 1u;
                    break;
                }
            }
        }
        // min-p: relative to the largest probability.
        var rest = select(NONE, n, is_whole);
        for (var i = 1u; i < n; i++) {
            if (weight[i] < min_p) {
                rest = i;
                break;
            }
        }
        low = min(low, rest);
        high = min(high, rest);
        told.n = select(NONE, low, low == high);
        told.best = value[0];
        told.draw = bitcast<f32>(sampler[params + 8u + step[SEQS + 2u * seq] % DRAWS]);
        for (var i = 0u; i < n; i++) {
            weight[i] = exp((value[i] - value[0]) * inv_t);
        }
    }
    let said = workgroupUniformLoad(&told);
    let n = said.n;
    let best = said.best;
    let draw = said.draw;
    var token = index[0];
    if (n != NONE) {
        // Every thread adds for some candidates what comes before them.
        for (var i = tid; i < n; i += WG) {
            var c = 0.0;
            for (var j = 0u; j < n; j++) {
                c += select(0.0, weight[j], select(index[j] <= index[i], j <= i, is_sorted));
            }
            value[i] = c;
        }
        workgroupBarrier();
        if (tid == 0u) {
            var sum = 0.0;
            for (var i = 0u; i < n; i++) {
                sum += weight[i];
            }
            var pick = NONE;
            var last = 0u;
            for (var i = 0u; i < n; i++) {
                if (weight[i] > 0.0) {
                    let is_later = is_sorted || index[i] > index[last];
                    last = select(last, i, is_later);
                    let is_first = pick == NONE || (!is_sorted && index[i] < index[min(pick, KEEP - 1u)]);
                    pick = select(pick, i, is_first && value[i] >= draw * sum);
                }
            }
            token = index[select(pick, last, pick == NONE)];
        }
    } else {
        var bound = vec2<u32>(place(LEAST), NONE);
        for (var stage = 0u; stage < 3u; stage++) {
            if ((stage == 0u && top_k == 0u) || (stage == 1u && top_p >= 1.0)) {
                continue;
            }
            if (stage == 2u && min_p > 0.0) {
                let end = place(best + log(min_p));
                if (end < bound.x) {
                    bound = vec2<u32>(end, NONE);
                }
            }
            let by_id = stage == 2u && !is_sorted;
            var p = Pass(stage, by_id, false, 0u, place(best), 0u, bound);
            p.shift = shift_of(bound.x - p.first);
            if (by_id) {
                p.first = 0u;
                p.shift = shift_of(K - 1u);
            }
            var is_first = true;
            if (by_id && min_p <= 0.0) {
                // Nothing is filtered, so the sums of the chunks say which of them to read.
                for (var i = tid; i < N_GROUP; i += WG) {
                    var sum = 0.0;
                    for (var j = i * GROUP; j < min(N_SUM, (i + 1u) * GROUP); j++) {
                        let s = sums[row * N_SUM + j];
                        sum += s.z * exp((s.x - best) * inv_t);
                    }
                    value[i] = sum;
                }
                workgroupBarrier();
                if (tid == 0u) {
                    var sum = 0.0;
                    for (var i = 0u; i < N_GROUP; i++) {
                        sum += value[i];
                    }
                    let want = draw * sum;
                    var c = 0.0;
                    for (var i = 0u; i < N_GROUP; i++) {
                        if (value[i] > 0.0) {
                            told.n = i;
                            told.want = want - c;
                            c += value[i];
                            if (c >= want) {
                                break;
                            }
                        }
                    }
                }
                p.first = workgroupUniformLoad(&told.n) * GROUP * N;
                p.shift = shift_of(GROUP * N - 1u);
                is_first = false;
            }
            loop {
                measure(p, row, best, inv_t, tid);
                if (tid == 0u) {
                    if (is_first) {
                        let four = parts[0] + parts[1] + parts[2] + parts[3];
                        let share = select(draw, top_p, stage == 1u);
                        told.want = select(share * (four.x + four.y + four.z + four.w), f32(top_k), stage == 0u);
                    }
                    // Rounding may keep the sum from reaching it: then it is the last part with anything in it.
                    var c = 0.0;
                    var before = 0.0;
                    for (var i = 0u; i < 16u; i++) {
                        let w = parts[i / 4u][i % 4u];
                        if (w > 0.0) {
                            told.n = i;
                            before = c;
                            c += w;
                            if (c >= told.want) {
                                break;
                            }
                        }
                    }
                    told.want -= before;
                }
                is_first = false;
                p.first += workgroupUniformLoad(&told.n) << p.shift;
                if (p.shift > 0u) {
                    p.shift = max(p.shift, 4u) - 4u;
                } else if (p.by_id) {
                    break;
                } else {
                    // One value is left: which of the ids that have it?
                    p.only = p.first;
                    p.is_tied = true;
                    p.by_id = true;
                    p.first = 0u;
                    p.shift = shift_of(K - 1u);
                }
            }
            bound = vec2<u32>(p.only, p.first);
            token = p.first;
        }
    }
    if (tid == 0u) {
        // The token is appended to its sequence and ring. A single pick becomes the next step; one of several advances in place
        // if it is the column of its own index.
        let picked = step[PICKS + row];
        let pos = step[COLS + 4u * picked + 1u] + 1u;
        let n_chosen = step[SEQS + 2u * seq];
        ring[seq * RING + (n_chosen & (RING - 1u))] = token;
        step[SEQS + 2u * seq] = n_chosen + 1u;
        step[SEQS + 2u * seq + 1u] = token;
        let is_alone = step[1] == 1u;
        if (is_alone) {
            step[0] = 1u;
            step[PICKS] = 0u;
            step[COLS + 2u] = seq;
        }
        if (is_alone || picked == row) {
            step[COLS + 4u * row] = token;
            step[COLS + 4u * row + 1u] = pos;
            step[COLS + 4u * row + 3u] = 0u;
        }

    }
}
