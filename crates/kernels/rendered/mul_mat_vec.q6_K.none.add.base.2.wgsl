// mul_mat_vec: a=q6_K b=none epi=add set=base rows=2
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
    return unpack2x16float(w[w_p3 + (b >> 3u)][(b >> 1u) & 3u])[b & 1u];
}
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let h = e >> 7u;
    let k = (e >> 5u) & 3u;
    let i = (e >> 2u) & 3u;
    let half = (e >> 4u) & 1u;
    let l = (w[b * 8u + h * 4u + (k & 1u) * 2u + half][i] >> ((k >> 1u) * 4u)) & 0x0f0f0f0fu;
    let hi = (w[w_p1 + b * 4u + h * 2u + half][i] >> (k * 2u)) & 0x03030303u;
    let g = h * 8u + k * 2u + half;
    let sc = f32(extractBits(bitcast<i32>(w[w_p2 + b][g >> 2u]), (g & 3u) * 8u, 8u));
    return (w_d(b) * sc) * (vec4<f32>(unpack4xU8(l | (hi << 4u))) - 32.0);
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
            let e = ((u >> 2u) * 256u + ((u & 2u) << 6u) + ((u & 1u) << 4u));
            var ax0 = load_x(e + 0u);
            var ax1 = load_x(e + 4u);
            var ax2 = load_x(e + 8u);
            var ax3 = load_x(e + 12u);
            var ax4 = load_x(e + 32u);
            var ax5 = load_x(e + 36u);
            var ax6 = load_x(e + 40u);
            var ax7 = load_x(e + 44u);
            var ax8 = load_x(e + 64u);
            var ax9 = load_x(e + 68u);
            var ax10 = load_x(e + 72u);
            var ax11 = load_x(e + 76u);
            var ax12 = load_x(e + 96u);
            var ax13 = load_x(e + 100u);
            var ax14 = load_x(e + 104u);
            var ax15 = load_x(e + 108u);
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
                ax4 *= load_norm(e + 32u);
                ss += dot(ax5, ax5);
                ax5 *= load_norm(e + 36u);
                ss += dot(ax6, ax6);
                ax6 *= load_norm(e + 40u);
                ss += dot(ax7, ax7);
                ax7 *= load_norm(e + 44u);
                ss += dot(ax8, ax8);
                ax8 *= load_norm(e + 64u);
                ss += dot(ax9, ax9);
                ax9 *= load_norm(e + 68u);
                ss += dot(ax10, ax10);
                ax10 *= load_norm(e + 72u);
                ss += dot(ax11, ax11);
                ax11 *= load_norm(e + 76u);
                ss += dot(ax12, ax12);
                ax12 *= load_norm(e + 96u);
                ss += dot(ax13, ax13);
                ax13 *= load_norm(e + 100u);
                ss += dot(ax14, ax14);
                ax14 *= load_norm(e + 104u);
                ss += dot(ax15, ax15);
                ax15 *= load_norm(e + 108u);
            }
            {
let vb = (at0 + u) >> 2u;
let vh = ((at0 + u) >> 1u) & 1u;
let vf = (at0 + u) & 1u;
let vla = w[vb * 8u + vh * 4u + vf];
let vlb = w[vb * 8u + vh * 4u + vf + 2u];
let vhi = w[w_p1 + (at0 + u)];
let vd = w_d(vb);
let vsv = w[w_p2 + vb];
let vsa = bitcast<i32>(select(vsv.x, vsv.z, vh == 1u) >> (vf * 8u));
let vsb = bitcast<i32>(select(vsv.y, vsv.w, vh == 1u) >> (vf * 8u));
let vs0 = vd * f32(extractBits(vsa, 0u, 8u));
let vs1 = vd * f32(extractBits(vsa, 16u, 8u));
let vs2 = vd * f32(extractBits(vsb, 0u, 8u));
let vs3 = vd * f32(extractBits(vsb, 16u, 8u));
let v0 = vs0 * (vec4<f32>(unpack4xU8((vla.x & 0x0f0f0f0fu) | ((vhi.x & 0x03030303u) << 4u))) - 32.0);
let v4 = vs1 * (vec4<f32>(unpack4xU8((vlb.x & 0x0f0f0f0fu) | ((vhi.x & 0x0c0c0c0cu) << 2u))) - 32.0);
let v8 = vs2 * (vec4<f32>(unpack4xU8(((vla.x >> 4u) & 0x0f0f0f0fu) | (vhi.x & 0x30303030u))) - 32.0);
let v12 = vs3 * (vec4<f32>(unpack4xU8(((vlb.x >> 4u) & 0x0f0f0f0fu) | ((vhi.x >> 2u) & 0x30303030u))) - 32.0);
let v1 = vs0 * (vec4<f32>(unpack4xU8((vla.y & 0x0f0f0f0fu) | ((vhi.y & 0x03030303u) << 4u))) - 32.0);
let v5 = vs1 * (vec4<f32>(unpack4xU8((vlb.y & 0x0f0f0f0fu) | ((vhi.y & 0x0c0c0c0cu) << 2u))) - 32.0);
let v9 = vs2 * (vec4<f32>(unpack4xU8(((vla.y >> 4u) & 0x0f0f0f0fu) | (vhi.y & 0x30303030u))) - 32.0);
let v13 = vs3 * (vec4<f32>(unpack4xU8(((vlb.y >> 4u) & 0x0f0f0f0fu) | ((vhi.y >> 2u) & 0x30303030u))) - 32.0);
let v2 = vs0 * (vec4<f32>(unpack4xU8((vla.z & 0x0f0f0f0fu) | ((vhi.z & 0x03030303u) << 4u))) - 32.0);
let v6 = vs1 * (vec4<f32>(unpack4xU8((vlb.z & 0x0f0f0f0fu) | ((vhi.z & 0x0c0c0c0cu) << 2u))) - 32.0);
let v10 = vs2 * (vec4<f32>(unpack4xU8(((vla.z >> 4u) & 0x0f0f0f0fu) | (vhi.z & 0x30303030u))) - 32.0);
let v14 = vs3 * (vec4<f32>(unpack4xU8(((vlb.z >> 4u) & 0x0f0f0f0fu) | ((vhi.z >> 2u) & 0x30303030u))) - 32.0);
let v3 = vs0 * (vec4<f32>(unpack4xU8((vla.w & 0x0f0f0f0fu) | ((vhi.w & 0x03030303u) << 4u))) - 32.0);
let v7 = vs1 * (vec4<f32>(unpack4xU8((vlb.w & 0x0f0f0f0fu) | ((vhi.w & 0x0c0c0c0cu) << 2u))) - 32.0);
let v11 = vs2 * (vec4<f32>(unpack4xU8(((vla.w >> 4u) & 0x0f0f0f0fu) | (vhi.w & 0x30303030u))) - 32.0);
let v15 = vs3 * (vec4<f32>(unpack4xU8(((vlb.w >> 4u) & 0x0f0f0f0fu) | ((vhi.w >> 2u) & 0x30303030u))) - 32.0);

                var s = 0.0;
                s += dot(v0, ax0);
                s += dot(v1, ax1);
                s += dot(v2, ax2);
                s += dot(v3, ax3);
                s += dot(v4, ax4);
                s += dot(v5, ax5);
                s += dot(v6, ax6);
                s += dot(v7, ax7);
                s += dot(v8, ax8);
                s += dot(v9, ax9);
                s += dot(v10, ax10);
                s += dot(v11, ax11);
                s += dot(v12, ax12);
                s += dot(v13, ax13);
                s += dot(v14, ax14);
                s += dot(v15, ax15);
                acc0 += s;
            }
            {
let vb = (at1 + u) >> 2u;
let vh = ((at1 + u) >> 1u) & 1u;
let vf = (at1 + u) & 1u;
let vla = w[vb * 8u + vh * 4u + vf];
let vlb = w[vb * 8u + vh * 4u + vf + 2u];
let vhi = w[w_p1 + (at1 + u)];
let vd = w_d(vb);
let vsv = w[w_p2 + vb];
let vsa = bitcast<i32>(select(vsv.x, vsv.z, vh == 1u) >> (vf * 8u));
let vsb = bitcast<i32>(select(vsv.y, vsv.w, vh == 1u) >> (vf * 8u));
let vs0 = vd * f32(extractBits(vsa, 0u, 8u));
let vs1 = vd * f32(extractBits(vsa, 16u, 8u));
let vs2 = vd * f32(extractBits(vsb, 0u, 8u));
let vs3 = vd * f32(extractBits(vsb, 16u, 8u));
let v0 = vs0 * (vec4<f32>(unpack4xU8((vla.x & 0x0f0f0f0fu) | ((vhi.x & 0x03030303u) << 4u))) - 32.0);
let v4 = vs1 * (vec4<f32>(unpack4xU8((vlb.x & 0x0f0f0f0fu) | ((vhi.x & 0x0c0c0c0cu) << 2u))) - 32.0);
let v8 = vs2 * (vec4<f32>(unpack4xU8(((vla.x >> 4u) & 0x0f0f0f0fu) | (vhi.x & 0x30303030u))) - 32.0);
let v12 = vs3 * (vec4<f32>(unpack4xU8(((vlb.x >> 4u) & 0x0f0f0f0fu) | ((vhi.x >> 2u) & 0x30303030u))) - 32.0);
let v1 = vs0 * (vec4<f32>(unpack4xU8((vla.y & 0x0f0f0f0fu) | ((vhi.y & 0x03030303u) << 4u))) - 32.0);
let v5 = vs1 * (vec4<f32>(unpack4xU8((vlb.y & 0x0f0f0f0fu) | ((vhi.y & 0x0c0c0c0cu) << 2u))) - 32.0);
let v9 = vs2 * (vec4<f32>(unpack4xU8(((vla.y >> 4u) & 0x0f0f0f0fu) | (vhi.y & 0x30303030u))) - 32.0);
let v13 = vs3 * (vec4<f32>(unpack4xU8(((vlb.y >> 4u) & 0x0f0f0f0fu) | ((vhi.y >> 2u) & 0x30303030u))) - 32.0);
let v2 = vs0 * (vec4<f32>(unpack4xU8((vla.z & 0x0f0f0f0fu) | ((vhi.z & 0x03030303u) << 4u))) - 32.0);
let v6 = vs1 * (vec4<f32>(unpack4xU8((vlb.z & 0x0f0f0f0fu) | ((vhi.z & 0x0c0c0c0cu) << 2u))) - 32.0);
let v10 = vs2 * (vec4<f32>(unpack4xU8(((vla.z >> 4u) & 0x0f0f0f0fu) | (vhi.z & 0x30303030u))) - 32.0);
let v14 = vs3 * (vec4<f32>(unpack4xU8(((vlb.z >> 4u) & 0x0f0f0f0fu) | ((vhi.z >> 2u) & 0x30303030u))) - 32.0);
let v3 = vs0 * (vec4<f32>(unpack4xU8((vla.w & 0x0f0f0f0fu) | ((vhi.w & 0x03030303u) << 4u))) - 32.0);
let v7 = vs1 * (vec4<f32>(unpack4xU8((vlb.w & 0x0f0f0f0fu) | ((vhi.w & 0x0c0c0c0cu) << 2u))) - 32.0);
let v11 = vs2 * (vec4<f32>(unpack4xU8(((vla.w >> 4u) & 0x0f0f0f0fu) | (vhi.w & 0x30303030u))) - 32.0);
let v15 = vs3 * (vec4<f32>(unpack4xU8(((vlb.w >> 4u) & 0x0f0f0f0fu) | ((vhi.w >> 2u) & 0x30303030u))) - 32.0);

                var s = 0.0;
                s += dot(v0, ax0);
                s += dot(v1, ax1);
                s += dot(v2, ax2);
                s += dot(v3, ax3);
                s += dot(v4, ax4);
                s += dot(v5, ax5);
                s += dot(v6, ax6);
                s += dot(v7, ax7);
                s += dot(v8, ax8);
                s += dot(v9, ax9);
                s += dot(v10, ax10);
                s += dot(v11, ax11);
                s += dot(v12, ax12);
                s += dot(v13, ax13);
                s += dot(v14, ax14);
                s += dot(v15, ax15);
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
        y[Y0 + first + 0u] += acc0;
    }
    if (first + 1u < M) {
        y[Y0 + first + 1u] += acc1;
    }
}
