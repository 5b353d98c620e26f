// mul_mat_vec: a=q4_0 b=none epi=store set=base rows=2
override WG: u32 = 64u;
override T: u32 = 32u;
override K: u32 = 256u;
override M: u32 = 1u;
override Y0: u32 = 0u;
override NORM: bool = false;
override EPS: f32 = 0.00001;
override AFFINE: bool = false;
override AFF: u32 = 0u;
override RAGGED: bool = false;
override w_units: u32 = 1u;
override w_p1: u32 = 0u;
override w_p2: u32 = 0u;
override w_p3: u32 = 0u;

@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> aux: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
fn w_d(b: u32) -> f32 {
    return unpack2x16float(w[w_p1 + (b >> 3u)][(b >> 1u) & 3u])[b & 1u];
}
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let q = (w[b][(e >> 2u) & 3u] >> ((e >> 4u) * 4u)) & 0x0f0f0f0fu;
    return w_d(b) * (vec4<f32>(unpack4xU8(q)) - 8.0);
}

var<workgroup> red: array<f32, 3u * WG>;

fn load_x(i: u32) -> vec4<f32> {
    var v = x[i / 4u];
    if (RAGGED && i + 4u > K) {
        v = select(v, vec4<f32>(), vec4<u32>(i, i + 1u, i + 2u, i + 3u) >= vec4<u32>(K));
    }
    return v;
}
fn load_norm(i: u32) -> vec4<f32> {
    return vec4<f32>(aux[i], aux[i + 1u], aux[i + 2u], aux[i + 3u]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tid = local_index;
    let team = tid / T;
    let lane = tid % T;

    // First rows of this team; a team past the end works on row 0 and writes nothing.
    let slot = (group.y * groups.x + group.x) * (WG / T) + team;
    let live = slot * 2u < M;
    let first = select(0u, slot * 2u, live);
    let row0 = min(first + 0u, M - 1u);
    var acc0 = 0.0;
    let row1 = min(first + 1u, M - 1u);
    var acc1 = 0.0;
    var ss = 0.0;
    {
        let at0 = row0 * w_units;
        let at1 = row1 * w_units;
        for (var u = lane; u < w_units; u += T) {
            let e = (u << 5u);
            var ax0 = load_x(e + 0u);
            var ax1 = load_x(e + 4u);
            var ax2 = load_x(e + 8u);
            var ax3 = load_x(e + 12u);
            var ax4 = load_x(e + 16u);
            var ax5 = load_x(e + 20u);
            var ax6 = load_x(e + 24u);
            var ax7 = load_x(e + 28u);
            if (NORM) {
                ss += dot(ax0, ax0);
                ax0 *= load_norm(e + 0u);
                ss += dot(ax1, ax1);
                ax1 *= load_norm(e + 4u);
                ss += dot(ax2, ax2);
                ax2 *= load_norm(e + 8u);
                ss += dot(ax3, ax3);
                ax3 *= load_norm(e + 12u);
                ss += dot(ax4, ax4);
                ax4 *= load_norm(e + 16u);
                ss += dot(ax5, ax5);
                ax5 *= load_norm(e + 20u);
                ss += dot(ax6, ax6);
                ax6 *= load_norm(e + 24u);
                ss += dot(ax7, ax7);
                ax7 *= load_norm(e + 28u);
            }
            {
let vq = w[(at0 + u)];
let vd = w_d((at0 + u));
let v0 = vd * (vec4<f32>(unpack4xU8(vq.x & 0x0f0f0f0fu)) - 8.0);
let v4 = vd * (vec4<f32>(unpack4xU8((vq.x >> 4u) & 0x0f0f0f0fu)) - 8.0);
let v1 = vd * (vec4<f32>(unpack4xU8(vq.y & 0x0f0f0f0fu)) - 8.0);
let v5 = vd * (vec4<f32>(unpack4xU8((vq.y >> 4u) & 0x0f0f0f0fu)) - 8.0);
let v2 = vd * (vec4<f32>(unpack4xU8(vq.z & 0x0f0f0f0fu)) - 8.0);
let v6 = vd * (vec4<f32>(unpack4xU8((vq.z >> 4u) & 0x0f0f0f0fu)) - 8.0);
let v3 = vd * (vec4<f32>(unpack4xU8(vq.w & 0x0f0f0f0fu)) - 8.0);
let v7 = vd * (vec4<f32>(unpack4xU8((vq.w >> 4u) & 0x0f0f0f0fu)) - 8.0);

                var s = 0.0;
                s += dot(v0, ax0);
                s += dot(v1, ax1);
                s += dot(v2, ax2);
                s += dot(v3, ax3);
                s += dot(v4, ax4);
                s += dot(v5, ax5);
                s += dot(v6, ax6);
                s += dot(v7, ax7);
                acc0 += s;
            }
            {
let vq = w[(at1 + u)];
let vd = w_d((at1 + u));
let v0 = vd * (vec4<f32>(unpack4xU8(vq.x & 0x0f0f0f0fu)) - 8.0);
let v4 = vd * (vec4<f32>(unpack4xU8((vq.x >> 4u) & 0x0f0f0f0fu)) - 8.0);
let v1 = vd * (vec4<f32>(unpack4xU8(vq.y & 0x0f0f0f0fu)) - 8.0);
let v5 = vd * (vec4<f32>(unpack4xU8((vq.y >> 4u) & 0x0f0f0f0fu)) - 8.0);
let v2 = vd * (vec4<f32>(unpack4xU8(vq.z & 0x0f0f0f0fu)) - 8.0);
let v6 = vd * (vec4<f32>(unpack4xU8((vq.z >> 4u) & 0x0f0f0f0fu)) - 8.0);
let v3 = vd * (vec4<f32>(unpack4xU8(vq.w & 0x0f0f0f0fu)) - 8.0);
let v7 = vd * (vec4<f32>(unpack4xU8((vq.w >> 4u) & 0x0f0f0f0fu)) - 8.0);

                var s = 0.0;
                s += dot(v0, ax0);
                s += dot(v1, ax1);
                s += dot(v2, ax2);
                s += dot(v3, ax3);
                s += dot(v4, ax4);
                s += dot(v5, ax5);
                s += dot(v6, ax6);
                s += dot(v7, ax7);
                acc1 += s;
            }
        }

    }
    workgroupBarrier();
    red[0u * WG + tid] = acc0;
    red[1u * WG + tid] = acc1;
    red[2u * WG + tid] = ss;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] += red[0u * WG + tid + s];
            red[1u * WG + tid] += red[1u * WG + tid + s];
            red[2u * WG + tid] += red[2u * WG + tid + s];
        }
        workgroupBarrier();
    }
    acc0 = red[0u * WG + team * T];
    acc1 = red[1u * WG + team * T];
    ss = red[2u * WG + team * T];

    if (lane != 0u || !live) {
        return;
    }
    if (NORM) {
        let scale = 1.0 / sqrt(ss / f32(K) + EPS);
        acc0 *= scale;
        acc1 *= scale;
    }
    if (AFFINE) {
        acc0 = acc0 * aux[AFF + 2u * row0] + aux[AFF + 2u * row0 + 1u];
        acc1 = acc1 * aux[AFF + 2u * row1] + aux[AFF + 2u * row1 + 1u];
    }
    if (first + 0u < M) {
        y[Y0 + first + 0u] = acc0;
    }
    if (first + 1u < M) {
        y[Y0 + first + 1u] = acc1;
    }
}
