// mul_mat_vec: a=q4_K b=none epi=glu set=base rows=4
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
@group(0) @binding(2) var<storage, read> aux: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
// 1024 + each byte of v.
fn bytes1024(v: u32) -> vec4<f32> {
    let a = unpack2x16float((v & 0x00ff00ffu) | 0x64006400u);
    let b = unpack2x16float(((v >> 8u) & 0x00ff00ffu) | 0x64006400u);
    return vec4<f32>(a.x, b.x, a.y, b.y);
}
// 1024 + the low nibble of each byte of v.
fn nibbles1024(v: u32) -> vec4<f32> {
    let a = unpack2x16float((v & 0x000f000fu) | 0x64006400u);
    let b = unpack2x16float(((v >> 8u) & 0x000f000fu) | 0x64006400u);
    return vec4<f32>(a.x, b.x, a.y, b.y);
}
// Scales of the groups 2c and 2c + 1: (d*sc, d*sc', dmin*m, dmin*m').
fn w_scales(s: vec4<u32>, c: u32) -> vec4<f32> {
    let sh = (c & 1u) * 16u;
    let y = s.y >> sh;
    let z = s.z >> sh;
    let v = s.w >> sh;
    let high = c >= 2u;
    let sc = select(y & 0x3f3fu, (v & 0x0f0fu) | ((y >> 2u) & 0x3030u), high);
    let mn = select(z & 0x3f3fu, ((v >> 4u) & 0x0f0fu) | ((z >> 2u) & 0x3030u), high);
    let d = unpack2x16float(s.x);
    return vec4<f32>(d.x * f32(sc & 0xffu), d.x * f32(sc >> 8u), d.y * f32(mn & 0xffu), d.y * f32(mn >> 8u));
}
// The same of one group g: (d*sc, dmin*m), without an integer conversion.
fn w_scale(s: vec4<u32>, g: u32) -> vec2<f32> {
    let v = s.yzw >> vec3<u32>((g & 3u) * 8u);
    let low = v.xy & vec2<u32>(0x3fu);
    let high = (vec2<u32>(v.z, v.z >> 4u) & vec2<u32>(0x0fu)) | ((v.xy >> vec2<u32>(2u)) & vec2<u32>(0x30u));
    let sm = select(low, high, g >= 4u);
    return unpack2x16float(s.x) * (unpack2x16float(sm.x | (sm.y << 16u) | 0x64006400u) - 1024.0);
}
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let c = e >> 6u;
    let s = w_scales(w[w_p1 + b], c);
    let q = w[b * 8u + (c << 1u) + ((e >> 4u) & 1u)][(e >> 2u) & 3u];
    if ((e & 32u) != 0u) {
        return s.y * vec4<f32>(unpack4xU8((q >> 4u) & 0x0f0f0f0fu)) - s.w;
    }
    return s.x * vec4<f32>(unpack4xU8(q & 0x0f0f0f0fu)) - s.z;
}

var<workgroup> red: array<f32, 5u * WG>;

fn load_x(i: u32) -> vec4<f32> {
    var v = x[i / 4u];
    if (RAGGED && i + 4u > K) {
        v = select(v, vec4<f32>(), vec4<u32>(i, i + 1u, i + 2u, i + 3u) >= vec4<u32>(K));
    }
    return v;
}
fn affine(r: f32, row: u32) -> f32 {
    let at = AFF + 2u * row;
    return r * aux[at / 4u][at % 4u] + aux[(at + 1u) / 4u][(at + 1u) % 4u];
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
    let row2 = min(first + 0u, M - 1u) + M;
    var acc2 = 0.0;
    let row3 = min(first + 1u, M - 1u) + M;
    var acc3 = 0.0;
    var ss = 0.0;
    {
        let at0 = row0 * w_units;
        let at1 = row1 * w_units;
        let at2 = row2 * w_units;
        let at3 = row3 * w_units;
        for (var u = lane; u < w_units; u += T) {
            let e = ((u >> 3u) * 256u + ((u & 6u) << 5u) + ((u & 1u) << 4u));
            var ax0 = load_x(e + 0u);
            var ax1 = load_x(e + 4u);
            var ax2 = load_x(e + 8u);
            var ax3 = load_x(e + 12u);
            var ax4 = load_x(e + 32u);
            var ax5 = load_x(e + 36u);
            var ax6 = load_x(e + 40u);
            var ax7 = load_x(e + 44u);
            if (NORM) {
                ss += dot(ax0, ax0);
                ax0 *= aux[(e + 0u) / 4u];
                ss += dot(ax1, ax1);
                ax1 *= aux[(e + 4u) / 4u];
                ss += dot(ax2, ax2);
                ax2 *= aux[(e + 8u) / 4u];
                ss += dot(ax3, ax3);
                ax3 *= aux[(e + 12u) / 4u];
                ss += dot(ax4, ax4);
                ax4 *= aux[(e + 32u) / 4u];
                ss += dot(ax5, ax5);
                ax5 *= aux[(e + 36u) / 4u];
                ss += dot(ax6, ax6);
                ax6 *= aux[(e + 40u) / 4u];
                ss += dot(ax7, ax7);
                ax7 *= aux[(e + 44u) / 4u];
            }
            // Sums of what shares a scale: they take offsets and minima off the products once for all rows.
            let axs0 = dot(ax0 + ax1 + ax2 + ax3, vec4<f32>(1.0));
            let axs1 = dot(ax4 + ax5 + ax6 + ax7, vec4<f32>(1.0));
            {
let vq = w[(at0 + u)];
let vs = w_scales(w[w_p1 + ((at0 + u) >> 3u)], ((at0 + u) >> 1u) & 3u);
var vl = 0.0;
var vh = 0.0;
vl += dot(nibbles1024(vq.x), ax0);
vh += dot(nibbles1024(vq.x >> 4u), ax4);
vl += dot(nibbles1024(vq.y), ax1);
vh += dot(nibbles1024(vq.y >> 4u), ax5);
vl += dot(nibbles1024(vq.z), ax2);
vh += dot(nibbles1024(vq.z >> 4u), ax6);
vl += dot(nibbles1024(vq.w), ax3);
vh += dot(nibbles1024(vq.w >> 4u), ax7);
let vdot = vs.x * (vl - 1024.0 * axs0) - vs.z * axs0
    + vs.y * (vh - 1024.0 * axs1) - vs.w * axs1;

                acc0 += vdot;
            }
            {
let vq = w[(at1 + u)];
let vs = w_scales(w[w_p1 + ((at1 + u) >> 3u)], ((at1 + u) >> 1u) & 3u);
var vl = 0.0;
var vh = 0.0;
vl += dot(nibbles1024(vq.x), ax0);
vh += dot(nibbles1024(vq.x >> 4u), ax4);
vl += dot(nibbles1024(vq.y), ax1);
vh += dot(nibbles1024(vq.y >> 4u), ax5);
vl += dot(nibbles1024(vq.z), ax2);
vh += dot(nibbles1024(vq.z >> 4u), ax6);
vl += dot(nibbles1024(vq.w), ax3);
vh += dot(nibbles1024(vq.w >> 4u), ax7);
let vdot = vs.x * (vl - 1024.0 * axs0) - vs.z * axs0
    + vs.y * (vh - 1024.0 * axs1) - vs.w * axs1;

                acc1 += vdot;
            }
            {
let vq = w[(at2 + u)];
let vs = w_scales(w[w_p1 + ((at2 + u) >> 3u)], ((at2 + u) >> 1u) & 3u);
var vl = 0.0;
var vh = 0.0;
vl += dot(nibbles1024(vq.x), ax0);
vh += dot(nibbles1024(vq.x >> 4u), ax4);
vl += dot(nibbles1024(vq.y), ax1);
vh += dot(nibbles1024(vq.y >> 4u), ax5);
vl += dot(nibbles1024(vq.z), ax2);
vh += dot(nibbles1024(vq.z >> 4u), ax6);
vl += dot(nibbles1024(vq.w), ax3);
vh += dot(nibbles1024(vq.w >> 4u), ax7);
let vdot = vs.x * (vl - 1024.0 * axs0) - vs.z * axs0
    + vs.y * (vh - 1024.0 * axs1) - vs.w * axs1;

                acc2 += vdot;
            }
            {
let vq = w[(at3 + u)];
let vs = w_scales(w[w_p1 + ((at3 + u) >> 3u)], ((at3 + u) >> 1u) & 3u);
var vl = 0.0;
var vh = 0.0;
vl += dot(nibbles1024(vq.x), ax0);
vh += dot(nibbles1024(vq.x >> 4u), ax4);
vl += dot(nibbles1024(vq.y), ax1);
vh += dot(nibbles1024(vq.y >> 4u), ax5);
vl += dot(nibbles1024(vq.z), ax2);
vh += dot(nibbles1024(vq.z >> 4u), ax6);
vl += dot(nibbles1024(vq.w), ax3);
vh += dot(nibbles1024(vq.w >> 4u), ax7);
let vdot = vs.x * (vl - 1024.0 * axs0) - vs.z * axs0
    + vs.y * (vh - 1024.0 * axs1) - vs.w * axs1;

                acc3 += vdot;
            }
        }

    }
    workgroupBarrier();
    red[0u * WG + tid] = acc0;
    red[1u * WG + tid] = acc1;
    red[2u * WG + tid] = acc2;
    red[3u * WG + tid] = acc3;
    red[4u * WG + tid] = ss;
    workgroupBarrier();
    for (var s = T / 2u; s > 0u; s = s / 2u) {
        if (lane < s) {
            red[0u * WG + tid] += red[0u * WG + tid + s];
            red[1u * WG + tid] += red[1u * WG + tid + s];
            red[2u * WG + tid] += red[2u * WG + tid + s];
            red[3u * WG + tid] += red[3u * WG + tid + s];
            red[4u * WG + tid] += red[4u * WG + tid + s];
        }
        workgroupBarrier();
    }
    acc0 = red[0u * WG + team * T];
    acc1 = red[1u * WG + team * T];
    acc2 = red[2u * WG + team * T];
    acc3 = red[3u * WG + team * T];
    ss = red[4u * WG + team * T];

    if (lane != 0u || !live) {
        return;
    }
    if (NORM) {
        let scale = 1.0 / sqrt(ss / f32(K) + EPS);
        acc0 *= scale;
        acc1 *= scale;
        acc2 *= scale;
        acc3 *= scale;
    }
    if (AFFINE) {
        acc0 = affine(acc0, row0);
        acc1 = affine(acc1, row1);
        acc2 = affine(acc2, row2);
        acc3 = affine(acc3, row3);
    }
    if (first + 0u < M) {
        y[Y0 + first + 0u] = acc0 / (1.0 + exp(-acc0)) * acc2;
    }
    if (first + 1u < M) {
        y[Y0 + first + 1u] = acc1 / (1.0 + exp(-acc1)) * acc3;
    }
}
