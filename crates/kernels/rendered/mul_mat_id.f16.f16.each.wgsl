// mul_mat_id: a=f16 tile=f16 ids=each
override K: u32 = 256u;
override M: u32 = 1u;
override LDX: u32 = 256u;
override LDY: u32 = 1u;
override Y0: u32 = 0u;
override ADD: bool = false;
override AFFINE: bool = false;
override AFF: u32 = 0u;
override AFF_ROW: u32 = 2u;
override AFF_COL: u32 = 0u;
override RAGGED: bool = false;
override BLOCKS: u32 = 1u;
override K_RUN: u32 = 256u;
override PART: u32 = 0u;
override w_p1: u32 = 0u;
override w_p2: u32 = 0u;
override w_p3: u32 = 0u;
override w_table: u32 = 0u;

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> aux: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read> route: array<u32>;
override E0: u32 = 0u;
override N_E: u32 = 1u;
override E_ROWS: u32 = 1u;
override TILES: u32 = 0u;
override PAIRS: u32 = 0u;
override X_SORTED: bool = false;
override Y_SORTED: bool = false;
override DIV: u32 = 1u;
override BY_SLOT: bool = false;
override N_SLOT: u32 = 1u;
override TILE_COLS: u32 = 1u;
// The tile's first position among the sorted pairs, and its expert's first row among all and among those of w.
var<private> place0: u32;
var<private> row_all: u32;
var<private> row_w: u32;
fn pair_of(place: u32) -> u32 {
    if (BY_SLOT) {
        return place * N_SLOT + row_all / E_ROWS;
    }
    return route[PAIRS + place];
}
// The token of a column of the tile.
fn token_of(col: u32) -> u32 {
    return pair_of(place0 + col) / N_SLOT;
}
// Columns of x and y of a column of the tile; those past the end repeat the last.
fn x_col(col: u32, n_col: u32) -> u32 {
    let place = place0 + min(col, n_col - 1u);
    if (X_SORTED) {
        return place;
    }
    return pair_of(place) / DIV;
}
fn y_col(col: u32, n_col: u32) -> u32 {
    let place = place0 + min(col, n_col - 1u);
    if (Y_SORTED) {
        return place;
    }
    return pair_of(place);
}

fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let v = w[b];
    let p = select(v.xy, v.zw, (e & 4u) != 0u);
    return vec4<f32>(unpack2x16float(p.x), unpack2x16float(p.y));
}

var<workgroup> ws: array<vec4<f16>, 512>;
var<workgroup> xs: array<vec4<f16>, 512>;

fn put(row: u32, col: u32, n_col: u32, part0: u32, sum: f32) {
    if (row < M && col < n_col) {
        var v = sum;
        if (AFFINE) {
            let pair = AFF + AFF_ROW * (row_all + row) + AFF_COL * token_of(col);
            v = v * aux[pair] + aux[pair + 1u];
        }
        let at = part0 + y_col(col, n_col) * LDY + Y0 + row;
        if (ADD) {
            v += y[at];
        }
        y[at] = v;
    }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let row0 = group.y * 64u;
    // Constants, not branches: to the uniformity analysis, variables assigned in a branch are not uniform.
    let tile_at = select(TILES + 3u * group.x, 0u, BY_SLOT);
    let expert = select(route[tile_at], group.x % N_SLOT, BY_SLOT);
    let first_place = select(route[tile_at + 1u], group.x / N_SLOT * TILE_COLS, BY_SLOT);
    let end_place = select(route[tile_at + 2u], min(max(route[0], first_place), first_place + TILE_COLS), BY_SLOT);
    let n_col = end_place - first_place;
    // Not `||`: to the uniformity analysis, its result is not uniform.
    if ((n_col == 0u) | (expert - E0 >= N_E)) {
        return;
    }
    place0 = first_place;
    row_all = expert * E_ROWS;
    row_w = (expert - E0) * E_ROWS;

    let col0 = 0u;
    // The thread stages one column of x.
    let x_of = x_col(tid, n_col);
    let tr = tid % 8u;
    let tc = tid / 8u;
    let swr = (tr >> 1u) & 3u;
    let swc = (tc >> 1u) & 3u;
    // Prefetch: loaded while the previous tile is multiplied.
    var w00: vec4<f16>;
    var x00: vec4<f16>;
    var w01: vec4<f16>;
    var x01: vec4<f16>;
    var w02: vec4<f16>;
    var x02: vec4<f16>;
    var w03: vec4<f16>;
    var x03: vec4<f16>;
    var w10: vec4<f16>;
    var x10: vec4<f16>;
    var w11: vec4<f16>;
    var x11: vec4<f16>;
    var w12: vec4<f16>;
    var x12: vec4<f16>;
    var w13: vec4<f16>;
    var x13: vec4<f16>;
    var c00 = vec4<f32>();
    var c01 = vec4<f32>();
    var c02 = vec4<f32>();
    var c03 = vec4<f32>();
    var c04 = vec4<f32>();
    var c05 = vec4<f32>();
    var c06 = vec4<f32>();
    var c07 = vec4<f32>();
    var c10 = vec4<f32>();
    var c11 = vec4<f32>();
    var c12 = vec4<f32>();
    var c13 = vec4<f32>();
    var c14 = vec4<f32>();
    var c15 = vec4<f32>();
    var c16 = vec4<f32>();
    var c17 = vec4<f32>();
    // Constant bounds where possible, so that drivers unroll the loop.
    let k_first = select(0u, group.z * K_RUN, K_RUN < K);
    let k_run = select(K_RUN, min(K_RUN, K - k_first), K % K_RUN != 0u);
        {
            let r = tid;
            let k = 0u;

            let kw = k_first + k;
            let row = (row_w + min(row0 + r, M - 1u)) * BLOCKS;
            let at = (x_of * LDX + kw) / 4u;
            if (RAGGED) {
                w00 = vec4<f16>();
                x00 = vec4<f16>();
                if (kw + 0u < K) {
                    w00 = vec4<f16>(w_load4(row + (kw + 0u) / 8u, (kw + 0u) % 8u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x00 = vec4<f16>(select(x[at + 0u], vec4<f32>(), past));
                }
                w01 = vec4<f16>();
                x01 = vec4<f16>();
                if (kw + 4u < K) {
                    w01 = vec4<f16>(w_load4(row + (kw + 4u) / 8u, (kw + 4u) % 8u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x01 = vec4<f16>(select(x[at + 1u], vec4<f32>(), past));
                }
                w02 = vec4<f16>();
                x02 = vec4<f16>();
                if (kw + 8u < K) {
                    w02 = vec4<f16>(w_load4(row + (kw + 8u) / 8u, (kw + 8u) % 8u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x02 = vec4<f16>(select(x[at + 2u], vec4<f32>(), past));
                }
                w03 = vec4<f16>();
                x03 = vec4<f16>();
                if (kw + 12u < K) {
                    w03 = vec4<f16>(w_load4(row + (kw + 12u) / 8u, (kw + 12u) % 8u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x03 = vec4<f16>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 8u;
                let e = kw % 8u;
let vq0 = w[b + (e >> 3u)];
let vq1 = w[b + (e >> 3u) + 1u];

let v0 = vec4<f32>(unpack2x16float(vq0.x), unpack2x16float(vq0.y));
let v1 = vec4<f32>(unpack2x16float(vq0.z), unpack2x16float(vq0.w));
let v2 = vec4<f32>(unpack2x16float(vq1.x), unpack2x16float(vq1.y));
let v3 = vec4<f32>(unpack2x16float(vq1.z), unpack2x16float(vq1.w));

                w00 = vec4<f16>(v0);
                x00 = vec4<f16>(x[at + 0u]);
                w01 = vec4<f16>(v1);
                x01 = vec4<f16>(x[at + 1u]);
                w02 = vec4<f16>(v2);
                x02 = vec4<f16>(x[at + 2u]);
                w03 = vec4<f16>(v3);
                x03 = vec4<f16>(x[at + 3u]);
            }
        }
        {
            let r = tid;
            let k = 16u;

            let kw = k_first + k;
            let row = (row_w + min(row0 + r, M - 1u)) * BLOCKS;
            let at = (x_of * LDX + kw) / 4u;
            if (RAGGED) {
                w10 = vec4<f16>();
                x10 = vec4<f16>();
                if (kw + 0u < K) {
                    w10 = vec4<f16>(w_load4(row + (kw + 0u) / 8u, (kw + 0u) % 8u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x10 = vec4<f16>(select(x[at + 0u], vec4<f32>(), past));
                }
                w11 = vec4<f16>();
                x11 = vec4<f16>();
                if (kw + 4u < K) {
                    w11 = vec4<f16>(w_load4(row + (kw + 4u) / 8u, (kw + 4u) % 8u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x11 = vec4<f16>(select(x[at + 1u], vec4<f32>(), past));
                }
                w12 = vec4<f16>();
                x12 = vec4<f16>();
                if (kw + 8u < K) {
                    w12 = vec4<f16>(w_load4(row + (kw + 8u) / 8u, (kw + 8u) % 8u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x12 = vec4<f16>(select(x[at + 2u], vec4<f32>(), past));
                }
                w13 = vec4<f16>();
                x13 = vec4<f16>();
                if (kw + 12u < K) {
                    w13 = vec4<f16>(w_load4(row + (kw + 12u) / 8u, (kw + 12u) % 8u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x13 = vec4<f16>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 8u;
                let e = kw % 8u;
let vq0 = w[b + (e >> 3u)];
let vq1 = w[b + (e >> 3u) + 1u];

let v0 = vec4<f32>(unpack2x16float(vq0.x), unpack2x16float(vq0.y));
let v1 = vec4<f32>(unpack2x16float(vq0.z), unpack2x16float(vq0.w));
let v2 = vec4<f32>(unpack2x16float(vq1.x), unpack2x16float(vq1.y));
let v3 = vec4<f32>(unpack2x16float(vq1.z), unpack2x16float(vq1.w));

                w10 = vec4<f16>(v0);
                x10 = vec4<f16>(x[at + 0u]);
                w11 = vec4<f16>(v1);
                x11 = vec4<f16>(x[at + 1u]);
                w12 = vec4<f16>(v2);
                x12 = vec4<f16>(x[at + 2u]);
                w13 = vec4<f16>(v3);
                x13 = vec4<f16>(x[at + 3u]);
            }
        }

    for (var k_at = 0u; k_at < k_run; k_at += 32u) {
        let k0 = k_first + k_at;
        {
            let r = tid;
            let k = 0u;

            let at0 = (r * 4u + ((k / 8u + 0u) ^ ((r >> 1u) & 3u))) * 2u;
            ws[at0 + 0u] = w00;
            xs[at0 + 0u] = x00;
            ws[at0 + 1u] = w01;
            xs[at0 + 1u] = x01;
            let at1 = (r * 4u + ((k / 8u + 1u) ^ ((r >> 1u) & 3u))) * 2u;
            ws[at1 + 0u] = w02;
            xs[at1 + 0u] = x02;
            ws[at1 + 1u] = w03;
            xs[at1 + 1u] = x03;
        }
        {
            let r = tid;
            let k = 16u;

            let at0 = (r * 4u + ((k / 8u + 0u) ^ ((r >> 1u) & 3u))) * 2u;
            ws[at0 + 0u] = w10;
            xs[at0 + 0u] = x10;
            ws[at0 + 1u] = w11;
            xs[at0 + 1u] = x11;
            let at1 = (r * 4u + ((k / 8u + 1u) ^ ((r >> 1u) & 3u))) * 2u;
            ws[at1 + 0u] = w12;
            xs[at1 + 0u] = x12;
            ws[at1 + 1u] = w13;
            xs[at1 + 1u] = x13;
        }

        let k1 = k0 + 32u;
        if (k_at + 32u < k_run) {
        {
            let r = tid;
            let k = 0u;

            let kw = k1 + k;
            let row = (row_w + min(row0 + r, M - 1u)) * BLOCKS;
            let at = (x_of * LDX + kw) / 4u;
            if (RAGGED) {
                w00 = vec4<f16>();
                x00 = vec4<f16>();
                if (kw + 0u < K) {
                    w00 = vec4<f16>(w_load4(row + (kw + 0u) / 8u, (kw + 0u) % 8u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x00 = vec4<f16>(select(x[at + 0u], vec4<f32>(), past));
                }
                w01 = vec4<f16>();
                x01 = vec4<f16>();
                if (kw + 4u < K) {
                    w01 = vec4<f16>(w_load4(row + (kw + 4u) / 8u, (kw + 4u) % 8u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x01 = vec4<f16>(select(x[at + 1u], vec4<f32>(), past));
                }
                w02 = vec4<f16>();
                x02 = vec4<f16>();
                if (kw + 8u < K) {
                    w02 = vec4<f16>(w_load4(row + (kw + 8u) / 8u, (kw + 8u) % 8u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x02 = vec4<f16>(select(x[at + 2u], vec4<f32>(), past));
                }
                w03 = vec4<f16>();
                x03 = vec4<f16>();
                if (kw + 12u < K) {
                    w03 = vec4<f16>(w_load4(row + (kw + 12u) / 8u, (kw + 12u) % 8u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x03 = vec4<f16>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 8u;
                let e = kw % 8u;
let vq0 = w[b + (e >> 3u)];
let vq1 = w[b + (e >> 3u) + 1u];

let v0 = vec4<f32>(unpack2x16float(vq0.x), unpack2x16float(vq0.y));
let v1 = vec4<f32>(unpack2x16float(vq0.z), unpack2x16float(vq0.w));
let v2 = vec4<f32>(unpack2x16float(vq1.x), unpack2x16float(vq1.y));
let v3 = vec4<f32>(unpack2x16float(vq1.z), unpack2x16float(vq1.w));

                w00 = vec4<f16>(v0);
                x00 = vec4<f16>(x[at + 0u]);
                w01 = vec4<f16>(v1);
                x01 = vec4<f16>(x[at + 1u]);
                w02 = vec4<f16>(v2);
                x02 = vec4<f16>(x[at + 2u]);
                w03 = vec4<f16>(v3);
                x03 = vec4<f16>(x[at + 3u]);
            }
        }
        {
            let r = tid;
            let k = 16u;

            let kw = k1 + k;
            let row = (row_w + min(row0 + r, M - 1u)) * BLOCKS;
            let at = (x_of * LDX + kw) / 4u;
            if (RAGGED) {
                w10 = vec4<f16>();
                x10 = vec4<f16>();
                if (kw + 0u < K) {
                    w10 = vec4<f16>(w_load4(row + (kw + 0u) / 8u, (kw + 0u) % 8u));
                    let past = vec4<u32>(kw + 0u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x10 = vec4<f16>(select(x[at + 0u], vec4<f32>(), past));
                }
                w11 = vec4<f16>();
                x11 = vec4<f16>();
                if (kw + 4u < K) {
                    w11 = vec4<f16>(w_load4(row + (kw + 4u) / 8u, (kw + 4u) % 8u));
                    let past = vec4<u32>(kw + 4u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x11 = vec4<f16>(select(x[at + 1u], vec4<f32>(), past));
                }
                w12 = vec4<f16>();
                x12 = vec4<f16>();
                if (kw + 8u < K) {
                    w12 = vec4<f16>(w_load4(row + (kw + 8u) / 8u, (kw + 8u) % 8u));
                    let past = vec4<u32>(kw + 8u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x12 = vec4<f16>(select(x[at + 2u], vec4<f32>(), past));
                }
                w13 = vec4<f16>();
                x13 = vec4<f16>();
                if (kw + 12u < K) {
                    w13 = vec4<f16>(w_load4(row + (kw + 12u) / 8u, (kw + 12u) % 8u));
                    let past = vec4<u32>(kw + 12u) + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(K);
                    x13 = vec4<f16>(select(x[at + 3u], vec4<f32>(), past));
                }
            } else {
                let b = row + kw / 8u;
                let e = kw % 8u;
let vq0 = w[b + (e >> 3u)];
let vq1 = w[b + (e >> 3u) + 1u];

let v0 = vec4<f32>(unpack2x16float(vq0.x), unpack2x16float(vq0.y));
let v1 = vec4<f32>(unpack2x16float(vq0.z), unpack2x16float(vq0.w));
let v2 = vec4<f32>(unpack2x16float(vq1.x), unpack2x16float(vq1.y));
let v3 = vec4<f32>(unpack2x16float(vq1.z), unpack2x16float(vq1.w));

                w10 = vec4<f16>(v0);
                x10 = vec4<f16>(x[at + 0u]);
                w11 = vec4<f16>(v1);
                x11 = vec4<f16>(x[at + 1u]);
                w12 = vec4<f16>(v2);
                x12 = vec4<f16>(x[at + 2u]);
                w13 = vec4<f16>(v3);
                x13 = vec4<f16>(x[at + 3u]);
            }
        }

        }
        workgroupBarrier();
        var h00 = vec4<f16>();
        var h01 = vec4<f16>();
        var h02 = vec4<f16>();
        var h03 = vec4<f16>();
        var h04 = vec4<f16>();
        var h05 = vec4<f16>();
        var h06 = vec4<f16>();
        var h07 = vec4<f16>();
        var h10 = vec4<f16>();
        var h11 = vec4<f16>();
        var h12 = vec4<f16>();
        var h13 = vec4<f16>();
        var h14 = vec4<f16>();
        var h15 = vec4<f16>();
        var h16 = vec4<f16>();
        var h17 = vec4<f16>();
        var h20 = vec4<f16>();
        var h21 = vec4<f16>();
        var h22 = vec4<f16>();
        var h23 = vec4<f16>();
        var h24 = vec4<f16>();
        var h25 = vec4<f16>();
        var h26 = vec4<f16>();
        var h27 = vec4<f16>();
        var h30 = vec4<f16>();
        var h31 = vec4<f16>();
        var h32 = vec4<f16>();
        var h33 = vec4<f16>();
        var h34 = vec4<f16>();
        var h35 = vec4<f16>();
        var h36 = vec4<f16>();
        var h37 = vec4<f16>();
        for (var u = 0u; u < 4u; u++) {
            let a00 = ws[((tr + 0u) * 4u + (u ^ swr)) * 2u + 0u];
            let a01 = ws[((tr + 0u) * 4u + (u ^ swr)) * 2u + 1u];
            let a10 = ws[((tr + 8u) * 4u + (u ^ swr)) * 2u + 0u];
            let a11 = ws[((tr + 8u) * 4u + (u ^ swr)) * 2u + 1u];
            let a20 = ws[((tr + 16u) * 4u + (u ^ swr)) * 2u + 0u];
            let a21 = ws[((tr + 16u) * 4u + (u ^ swr)) * 2u + 1u];
            let a30 = ws[((tr + 24u) * 4u + (u ^ swr)) * 2u + 0u];
            let a31 = ws[((tr + 24u) * 4u + (u ^ swr)) * 2u + 1u];
            let a40 = ws[((tr + 32u) * 4u + (u ^ swr)) * 2u + 0u];
            let a41 = ws[((tr + 32u) * 4u + (u ^ swr)) * 2u + 1u];
            let a50 = ws[((tr + 40u) * 4u + (u ^ swr)) * 2u + 0u];
            let a51 = ws[((tr + 40u) * 4u + (u ^ swr)) * 2u + 1u];
            let a60 = ws[((tr + 48u) * 4u + (u ^ swr)) * 2u + 0u];
            let a61 = ws[((tr + 48u) * 4u + (u ^ swr)) * 2u + 1u];
            let a70 = ws[((tr + 56u) * 4u + (u ^ swr)) * 2u + 0u];
            let a71 = ws[((tr + 56u) * 4u + (u ^ swr)) * 2u + 1u];
            let t00xy = vec4<f16>(a00.xy, a10.xy);
            let t00zw = vec4<f16>(a00.zw, a10.zw);
            let t01xy = vec4<f16>(a01.xy, a11.xy);
            let t01zw = vec4<f16>(a01.zw, a11.zw);
            let t10xy = vec4<f16>(a20.xy, a30.xy);
            let t10zw = vec4<f16>(a20.zw, a30.zw);
            let t11xy = vec4<f16>(a21.xy, a31.xy);
            let t11zw = vec4<f16>(a21.zw, a31.zw);
            let t20xy = vec4<f16>(a40.xy, a50.xy);
            let t20zw = vec4<f16>(a40.zw, a50.zw);
            let t21xy = vec4<f16>(a41.xy, a51.xy);
            let t21zw = vec4<f16>(a41.zw, a51.zw);
            let t30xy = vec4<f16>(a60.xy, a70.xy);
            let t30zw = vec4<f16>(a60.zw, a70.zw);
            let t31xy = vec4<f16>(a61.xy, a71.xy);
            let t31zw = vec4<f16>(a61.zw, a71.zw);
            {
            let b0 = xs[((tc + 0u) * 4u + (u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 0u) * 4u + (u ^ swc)) * 2u + 1u];
            h00 = fma(t00xy, b0.xyxy, h00);
            h10 = fma(t10xy, b0.xyxy, h10);
            h20 = fma(t20xy, b0.xyxy, h20);
            h30 = fma(t30xy, b0.xyxy, h30);
            h00 = fma(t00zw, b0.zwzw, h00);
            h10 = fma(t10zw, b0.zwzw, h10);
            h20 = fma(t20zw, b0.zwzw, h20);
            h30 = fma(t30zw, b0.zwzw, h30);
            h00 = fma(t01xy, b1.xyxy, h00);
            h10 = fma(t11xy, b1.xyxy, h10);
            h20 = fma(t21xy, b1.xyxy, h20);
            h30 = fma(t31xy, b1.xyxy, h30);
            h00 = fma(t01zw, b1.zwzw, h00);
            h10 = fma(t11zw, b1.zwzw, h10);
            h20 = fma(t21zw, b1.zwzw, h20);
            h30 = fma(t31zw, b1.zwzw, h30);
            }
            {
            let b0 = xs[((tc + 8u) * 4u + (u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 8u) * 4u + (u ^ swc)) * 2u + 1u];
            h01 = fma(t00xy, b0.xyxy, h01);
            h11 = fma(t10xy, b0.xyxy, h11);
            h21 = fma(t20xy, b0.xyxy, h21);
            h31 = fma(t30xy, b0.xyxy, h31);
            h01 = fma(t00zw, b0.zwzw, h01);
            h11 = fma(t10zw, b0.zwzw, h11);
            h21 = fma(t20zw, b0.zwzw, h21);
            h31 = fma(t30zw, b0.zwzw, h31);
            h01 = fma(t01xy, b1.xyxy, h01);
            h11 = fma(t11xy, b1.xyxy, h11);
            h21 = fma(t21xy, b1.xyxy, h21);
            h31 = fma(t31xy, b1.xyxy, h31);
            h01 = fma(t01zw, b1.zwzw, h01);
            h11 = fma(t11zw, b1.zwzw, h11);
            h21 = fma(t21zw, b1.zwzw, h21);
            h31 = fma(t31zw, b1.zwzw, h31);
            }
            {
            let b0 = xs[((tc + 16u) * 4u + (u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 16u) * 4u + (u ^ swc)) * 2u + 1u];
            h02 = fma(t00xy, b0.xyxy, h02);
            h12 = fma(t10xy, b0.xyxy, h12);
            h22 = fma(t20xy, b0.xyxy, h22);
            h32 = fma(t30xy, b0.xyxy, h32);
            h02 = fma(t00zw, b0.zwzw, h02);
            h12 = fma(t10zw, b0.zwzw, h12);
            h22 = fma(t20zw, b0.zwzw, h22);
            h32 = fma(t30zw, b0.zwzw, h32);
            h02 = fma(t01xy, b1.xyxy, h02);
            h12 = fma(t11xy, b1.xyxy, h12);
            h22 = fma(t21xy, b1.xyxy, h22);
            h32 = fma(t31xy, b1.xyxy, h32);
            h02 = fma(t01zw, b1.zwzw, h02);
            h12 = fma(t11zw, b1.zwzw, h12);
            h22 = fma(t21zw, b1.zwzw, h22);
            h32 = fma(t31zw, b1.zwzw, h32);
            }
            {
            let b0 = xs[((tc + 24u) * 4u + (u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 24u) * 4u + (u ^ swc)) * 2u + 1u];
            h03 = fma(t00xy, b0.xyxy, h03);
            h13 = fma(t10xy, b0.xyxy, h13);
            h23 = fma(t20xy, b0.xyxy, h23);
            h33 = fma(t30xy, b0.xyxy, h33);
            h03 = fma(t00zw, b0.zwzw, h03);
            h13 = fma(t10zw, b0.zwzw, h13);
            h23 = fma(t20zw, b0.zwzw, h23);
            h33 = fma(t30zw, b0.zwzw, h33);
            h03 = fma(t01xy, b1.xyxy, h03);
            h13 = fma(t11xy, b1.xyxy, h13);
            h23 = fma(t21xy, b1.xyxy, h23);
            h33 = fma(t31xy, b1.xyxy, h33);
            h03 = fma(t01zw, b1.zwzw, h03);
            h13 = fma(t11zw, b1.zwzw, h13);
            h23 = fma(t21zw, b1.zwzw, h23);
            h33 = fma(t31zw, b1.zwzw, h33);
            }
            {
            let b0 = xs[((tc + 32u) * 4u + (u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 32u) * 4u + (u ^ swc)) * 2u + 1u];
            h04 = fma(t00xy, b0.xyxy, h04);
            h14 = fma(t10xy, b0.xyxy, h14);
            h24 = fma(t20xy, b0.xyxy, h24);
            h34 = fma(t30xy, b0.xyxy, h34);
            h04 = fma(t00zw, b0.zwzw, h04);
            h14 = fma(t10zw, b0.zwzw, h14);
            h24 = fma(t20zw, b0.zwzw, h24);
            h34 = fma(t30zw, b0.zwzw, h34);
            h04 = fma(t01xy, b1.xyxy, h04);
            h14 = fma(t11xy, b1.xyxy, h14);
            h24 = fma(t21xy, b1.xyxy, h24);
            h34 = fma(t31xy, b1.xyxy, h34);
            h04 = fma(t01zw, b1.zwzw, h04);
            h14 = fma(t11zw, b1.zwzw, h14);
            h24 = fma(t21zw, b1.zwzw, h24);
            h34 = fma(t31zw, b1.zwzw, h34);
            }
            {
            let b0 = xs[((tc + 40u) * 4u + (u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 40u) * 4u + (u ^ swc)) * 2u + 1u];
            h05 = fma(t00xy, b0.xyxy, h05);
            h15 = fma(t10xy, b0.xyxy, h15);
            h25 = fma(t20xy, b0.xyxy, h25);
            h35 = fma(t30xy, b0.xyxy, h35);
            h05 = fma(t00zw, b0.zwzw, h05);
            h15 = fma(t10zw, b0.zwzw, h15);
            h25 = fma(t20zw, b0.zwzw, h25);
            h35 = fma(t30zw, b0.zwzw, h35);
            h05 = fma(t01xy, b1.xyxy, h05);
            h15 = fma(t11xy, b1.xyxy, h15);
            h25 = fma(t21xy, b1.xyxy, h25);
            h35 = fma(t31xy, b1.xyxy, h35);
            h05 = fma(t01zw, b1.zwzw, h05);
            h15 = fma(t11zw, b1.zwzw, h15);
            h25 = fma(t21zw, b1.zwzw, h25);
            h35 = fma(t31zw, b1.zwzw, h35);
            }
            {
            let b0 = xs[((tc + 48u) * 4u + (u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 48u) * 4u + (u ^ swc)) * 2u + 1u];
            h06 = fma(t00xy, b0.xyxy, h06);
            h16 = fma(t10xy, b0.xyxy, h16);
            h26 = fma(t20xy, b0.xyxy, h26);
            h36 = fma(t30xy, b0.xyxy, h36);
            h06 = fma(t00zw, b0.zwzw, h06);
            h16 = fma(t10zw, b0.zwzw, h16);
            h26 = fma(t20zw, b0.zwzw, h26);
            h36 = fma(t30zw, b0.zwzw, h36);
            h06 = fma(t01xy, b1.xyxy, h06);
            h16 = fma(t11xy, b1.xyxy, h16);
            h26 = fma(t21xy, b1.xyxy, h26);
            h36 = fma(t31xy, b1.xyxy, h36);
            h06 = fma(t01zw, b1.zwzw, h06);
            h16 = fma(t11zw, b1.zwzw, h16);
            h26 = fma(t21zw, b1.zwzw, h26);
            h36 = fma(t31zw, b1.zwzw, h36);
            }
            {
            let b0 = xs[((tc + 56u) * 4u + (u ^ swc)) * 2u + 0u];
            let b1 = xs[((tc + 56u) * 4u + (u ^ swc)) * 2u + 1u];
            h07 = fma(t00xy, b0.xyxy, h07);
            h17 = fma(t10xy, b0.xyxy, h17);
            h27 = fma(t20xy, b0.xyxy, h27);
            h37 = fma(t30xy, b0.xyxy, h37);
            h07 = fma(t00zw, b0.zwzw, h07);
            h17 = fma(t10zw, b0.zwzw, h17);
            h27 = fma(t20zw, b0.zwzw, h27);
            h37 = fma(t30zw, b0.zwzw, h37);
            h07 = fma(t01xy, b1.xyxy, h07);
            h17 = fma(t11xy, b1.xyxy, h17);
            h27 = fma(t21xy, b1.xyxy, h27);
            h37 = fma(t31xy, b1.xyxy, h37);
            h07 = fma(t01zw, b1.zwzw, h07);
            h17 = fma(t11zw, b1.zwzw, h17);
            h27 = fma(t21zw, b1.zwzw, h27);
            h37 = fma(t31zw, b1.zwzw, h37);
            }

        }
        c00 += vec4<f32>(vec4<f16>(h00.xz, h10.xz)) + vec4<f32>(vec4<f16>(h00.yw, h10.yw));
        c01 += vec4<f32>(vec4<f16>(h01.xz, h11.xz)) + vec4<f32>(vec4<f16>(h01.yw, h11.yw));
        c02 += vec4<f32>(vec4<f16>(h02.xz, h12.xz)) + vec4<f32>(vec4<f16>(h02.yw, h12.yw));
        c03 += vec4<f32>(vec4<f16>(h03.xz, h13.xz)) + vec4<f32>(vec4<f16>(h03.yw, h13.yw));
        c04 += vec4<f32>(vec4<f16>(h04.xz, h14.xz)) + vec4<f32>(vec4<f16>(h04.yw, h14.yw));
        c05 += vec4<f32>(vec4<f16>(h05.xz, h15.xz)) + vec4<f32>(vec4<f16>(h05.yw, h15.yw));
        c06 += vec4<f32>(vec4<f16>(h06.xz, h16.xz)) + vec4<f32>(vec4<f16>(h06.yw, h16.yw));
        c07 += vec4<f32>(vec4<f16>(h07.xz, h17.xz)) + vec4<f32>(vec4<f16>(h07.yw, h17.yw));
        c10 += vec4<f32>(vec4<f16>(h20.xz, h30.xz)) + vec4<f32>(vec4<f16>(h20.yw, h30.yw));
        c11 += vec4<f32>(vec4<f16>(h21.xz, h31.xz)) + vec4<f32>(vec4<f16>(h21.yw, h31.yw));
        c12 += vec4<f32>(vec4<f16>(h22.xz, h32.xz)) + vec4<f32>(vec4<f16>(h22.yw, h32.yw));
        c13 += vec4<f32>(vec4<f16>(h23.xz, h33.xz)) + vec4<f32>(vec4<f16>(h23.yw, h33.yw));
        c14 += vec4<f32>(vec4<f16>(h24.xz, h34.xz)) + vec4<f32>(vec4<f16>(h24.yw, h34.yw));
        c15 += vec4<f32>(vec4<f16>(h25.xz, h35.xz)) + vec4<f32>(vec4<f16>(h25.yw, h35.yw));
        c16 += vec4<f32>(vec4<f16>(h26.xz, h36.xz)) + vec4<f32>(vec4<f16>(h26.yw, h36.yw));
        c17 += vec4<f32>(vec4<f16>(h27.xz, h37.xz)) + vec4<f32>(vec4<f16>(h27.yw, h37.yw));
        workgroupBarrier();
    }
    put(row0 + tr + 0u, col0 + tc + 0u, n_col, group.z * PART, c00.x);
    put(row0 + tr + 0u, col0 + tc + 8u, n_col, group.z * PART, c01.x);
    put(row0 + tr + 0u, col0 + tc + 16u, n_col, group.z * PART, c02.x);
    put(row0 + tr + 0u, col0 + tc + 24u, n_col, group.z * PART, c03.x);
    put(row0 + tr + 0u, col0 + tc + 32u, n_col, group.z * PART, c04.x);
    put(row0 + tr + 0u, col0 + tc + 40u, n_col, group.z * PART, c05.x);
    put(row0 + tr + 0u, col0 + tc + 48u, n_col, group.z * PART, c06.x);
    put(row0 + tr + 0u, col0 + tc + 56u, n_col, group.z * PART, c07.x);
    put(row0 + tr + 8u, col0 + tc + 0u, n_col, group.z * PART, c00.y);
    put(row0 + tr + 8u, col0 + tc + 8u, n_col, group.z * PART, c01.y);
    put(row0 + tr + 8u, col0 + tc + 16u, n_col, group.z * PART, c02.y);
    put(row0 + tr + 8u, col0 + tc + 24u, n_col, group.z * PART, c03.y);
    put(row0 + tr + 8u, col0 + tc + 32u, n_col, group.z * PART, c04.y);
    put(row0 + tr + 8u, col0 + tc + 40u, n_col, group.z * PART, c05.y);
    put(row0 + tr + 8u, col0 + tc + 48u, n_col, group.z * PART, c06.y);
    put(row0 + tr + 8u, col0 + tc + 56u, n_col, group.z * PART, c07.y);
    put(row0 + tr + 16u, col0 + tc + 0u, n_col, group.z * PART, c00.z);
    put(row0 + tr + 16u, col0 + tc + 8u, n_col, group.z * PART, c01.z);
    put(row0 + tr + 16u, col0 + tc + 16u, n_col, group.z * PART, c02.z);
    put(row0 + tr + 16u, col0 + tc + 24u, n_col, group.z * PART, c03.z);
    put(row0 + tr + 16u, col0 + tc + 32u, n_col, group.z * PART, c04.z);
    put(row0 + tr + 16u, col0 + tc + 40u, n_col, group.z * PART, c05.z);
    put(row0 + tr + 16u, col0 + tc + 48u, n_col, group.z * PART, c06.z);
    put(row0 + tr + 16u, col0 + tc + 56u, n_col, group.z * PART, c07.z);
    put(row0 + tr + 24u, col0 + tc + 0u, n_col, group.z * PART, c00.w);
    put(row0 + tr + 24u, col0 + tc + 8u, n_col, group.z * PART, c01.w);
    put(row0 + tr + 24u, col0 + tc + 16u, n_col, group.z * PART, c02.w);
    put(row0 + tr + 24u, col0 + tc + 24u, n_col, group.z * PART, c03.w);
    put(row0 + tr + 24u, col0 + tc + 32u, n_col, group.z * PART, c04.w);
    put(row0 + tr + 24u, col0 + tc + 40u, n_col, group.z * PART, c05.w);
    put(row0 + tr + 24u, col0 + tc + 48u, n_col, group.z * PART, c06.w);
    put(row0 + tr + 24u, col0 + tc + 56u, n_col, group.z * PART, c07.w);
    put(row0 + tr + 32u, col0 + tc + 0u, n_col, group.z * PART, c10.x);
    put(row0 + tr + 32u, col0 + tc + 8u, n_col, group.z * PART, c11.x);
    put(row0 + tr + 32u, col0 + tc + 16u, n_col, group.z * PART, c12.x);
    put(row0 + tr + 32u, col0 + tc + 24u, n_col, group.z * PART, c13.x);
    put(row0 + tr + 32u, col0 + tc + 32u, n_col, group.z * PART, c14.x);
    put(row0 + tr + 32u, col0 + tc + 40u, n_col, group.z * PART, c15.x);
    put(row0 + tr + 32u, col0 + tc + 48u, n_col, group.z * PART, c16.x);
    put(row0 + tr + 32u, col0 + tc + 56u, n_col, group.z * PART, c17.x);
    put(row0 + tr + 40u, col0 + tc + 0u, n_col, group.z * PART, c10.y);
    put(row0 + tr + 40u, col0 + tc + 8u, n_col, group.z * PART, c11.y);
    put(row0 + tr + 40u, col0 + tc + 16u, n_col, group.z * PART, c12.y);
    put(row0 + tr + 40u, col0 + tc + 24u, n_col, group.z * PART, c13.y);
    put(row0 + tr + 40u, col0 + tc + 32u, n_col, group.z * PART, c14.y);
    put(row0 + tr + 40u, col0 + tc + 40u, n_col, group.z * PART, c15.y);
    put(row0 + tr + 40u, col0 + tc + 48u, n_col, group.z * PART, c16.y);
    put(row0 + tr + 40u, col0 + tc + 56u, n_col, group.z * PART, c17.y);
    put(row0 + tr + 48u, col0 + tc + 0u, n_col, group.z * PART, c10.z);
    put(row0 + tr + 48u, col0 + tc + 8u, n_col, group.z * PART, c11.z);
    put(row0 + tr + 48u, col0 + tc + 16u, n_col, group.z * PART, c12.z);
    put(row0 + tr + 48u, col0 + tc + 24u, n_col, group.z * PART, c13.z);
    put(row0 + tr + 48u, col0 + tc + 32u, n_col, group.z * PART, c14.z);
    put(row0 + tr + 48u, col0 + tc + 40u, n_col, group.z * PART, c15.z);
    put(row0 + tr + 48u, col0 + tc + 48u, n_col, group.z * PART, c16.z);
    put(row0 + tr + 48u, col0 + tc + 56u, n_col, group.z * PART, c17.z);
    put(row0 + tr + 56u, col0 + tc + 0u, n_col, group.z * PART, c10.w);
    put(row0 + tr + 56u, col0 + tc + 8u, n_col, group.z * PART, c11.w);
    put(row0 + tr + 56u, col0 + tc + 16u, n_col, group.z * PART, c12.w);
    put(row0 + tr + 56u, col0 + tc + 24u, n_col, group.z * PART, c13.w);
    put(row0 + tr + 56u, col0 + tc + 32u, n_col, group.z * PART, c14.w);
    put(row0 + tr + 56u, col0 + tc + 40u, n_col, group.z * PART, c15.w);
    put(row0 + tr + 56u, col0 + tc + 48u, n_col, group.z * PART, c16.w);
    put(row0 + tr + 56u, col0 + tc + 56u, n_col, group.z * PART, c17.w);
}
