// mul_mat_vec: a=q6_K b=none epi=glu set=base rows=4
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
                ss += dot(ax8, ax8);
                ax8 *= aux[(e + 64u) / 4u];
                ss += dot(ax9, ax9);
                ax9 *= aux[(e + 68u) / 4u];
                ss += dot(ax10, ax10);
                ax10 *= aux[(e + 72u) / 4u];
                ss += dot(ax11, ax11);
                ax11 *= aux[(e + 76u) / 4u];
                ss += dot(ax12, ax12);
                ax12 *= aux[(e + 96u) / 4u];
                ss += dot(ax13, ax13);
                ax13 *= aux[(e + 100u) / 4u];
                ss += dot(ax14, ax14);
                ax14 *= aux[(e + 104u) / 4u];
                ss += dot(ax15, ax15);
                ax15 *= aux[(e + 108u) / 4u];
            }
            // Sums of what shares a scale: they take offsets and minima off the products once for all rows.
            let axs0 = dot(ax0 + ax1 + ax2 + ax3, vec4<f32>(1.0));
            let axs1 = dot(ax4 + ax5 + ax6 + ax7, vec4<f32>(1.0));
            let axs2 = dot(ax8 + ax9 + ax10 + ax11, vec4<f32>(1.0));
            let axs3 = dot(ax12 + ax13 + ax14 + ax15, vec4<f32>(1.0));
            {
let vb = (at0 + u) >> 2u;
let vat = vb * 8u + (((at0 + u) >> 1u) & 1u) * 4u + ((at0 + u) & 1u);
let vla = w[vat];
let vlb = w[vat + 2u];
let vhi = w[w_p1 + (at0 + u)];
let vd = w_d(vb);
let vsv = w[w_p2 + vb];
let vsa = bitcast<i32>(select(vsv.x, vsv.z, ((at0 + u) & 2u) != 0u) >> (((at0 + u) & 1u) * 8u));
let vsb = bitcast<i32>(select(vsv.y, vsv.w, ((at0 + u) & 2u) != 0u) >> (((at0 + u) & 1u) * 8u));
var vt0 = 0.0;
var vt1 = 0.0;
var vt2 = 0.0;
var vt3 = 0.0;
vt0 += dot(bytes1024((vla.x & 0x0f0f0f0fu) | ((vhi.x & 0x03030303u) << 4u)), ax0);
vt1 += dot(bytes1024((vlb.x & 0x0f0f0f0fu) | ((vhi.x & 0x0c0c0c0cu) << 2u)), ax4);
vt2 += dot(bytes1024(((vla.x >> 4u) & 0x0f0f0f0fu) | (vhi.x & 0x30303030u)), ax8);
vt3 += dot(bytes1024(((vlb.x >> 4u) & 0x0f0f0f0fu) | ((vhi.x >> 2u) & 0x30303030u)), ax12);
vt0 += dot(bytes1024((vla.y & 0x0f0f0f0fu) | ((vhi.y & 0x03030303u) << 4u)), ax1);
vt1 += dot(bytes1024((vlb.y & 0x0f0f0f0fu) | ((vhi.y & 0x0c0c0c0cu) << 2u)), ax5);
vt2 += dot(bytes1024(((vla.y >> 4u) & 0x0f0f0f0fu) | (vhi.y & 0x30303030u)), ax9);
vt3 += dot(bytes1024(((vlb.y >> 4u) & 0x0f0f0f0fu) | ((vhi.y >> 2u) & 0x30303030u)), ax13);
vt0 += dot(bytes1024((vla.z & 0x0f0f0f0fu) | ((vhi.z & 0x03030303u) << 4u)), ax2);
vt1 += dot(bytes1024((vlb.z & 0x0f0f0f0fu) | ((vhi.z & 0x0c0c0c0cu) << 2u)), ax6);
vt2 += dot(bytes1024(((vla.z >> 4u) & 0x0f0f0f0fu) | (vhi.z & 0x30303030u)), ax10);
vt3 += dot(bytes1024(((vlb.z >> 4u) & 0x0f0f0f0fu) | ((vhi.z >> 2u) & 0x30303030u)), ax14);
vt0 += dot(bytes1024((vla.w & 0x0f0f0f0fu) | ((vhi.w & 0x03030303u) << 4u)), ax3);
vt1 += dot(bytes1024((vlb.w & 0x0f0f0f0fu) | ((vhi.w & 0x0c0c0c0cu) << 2u)), ax7);
vt2 += dot(bytes1024(((vla.w >> 4u) & 0x0f0f0f0fu) | (vhi.w & 0x30303030u)), ax11);
vt3 += dot(bytes1024(((vlb.w >> 4u) & 0x0f0f0f0fu) | ((vhi.w >> 2u) & 0x30303030u)), ax15);
let vdot = vd * (f32(extractBits(vsa, 0u, 8u)) * (vt0 - 1056.0 * axs0)
    + f32(extractBits(vsa, 16u, 8u)) * (vt1 - 1056.0 * axs1)
    + f32(extractBits(vsb, 0u, 8u)) * (vt2 - 1056.0 * axs2)
    + f32(extractBits(vsb, 16u, 8u)) * (vt3 - 1056.0 * axs3));

                acc0 += vdot;
            }
            {
let vb = (at1 + u) >> 2u;
let vat = vb * 8u + (((at1 + u) >> 1u) & 1u) * 4u + ((at1 + u) & 1u);
let vla = w[vat];
let vlb = w[vat + 2u];
let vhi = w[w_p1 + (at1 + u)];
let vd = w_d(vb);
let vsv = w[w_p2 + vb];
let vsa = bitcast<i32>(select(vsv.x, vsv.z, ((at1 + u) & 2u) != 0u) >> (((at1 + u) & 1u) * 8u));
let vsb = bitcast<i32>(select(vsv.y, vsv.w, ((at1 + u) & 2u) != 0u) >> (((at1 + u) & 1u) * 8u));
var vt0 = 0.0;
var vt1 = 0.0;
var vt2 = 0.0;
var vt3 = 0.0;
vt0 += dot(bytes1024((vla.x & 0x0f0f0f0fu) | ((vhi.x & 0x03030303u) << 4u)), ax0);
vt1 += dot(bytes1024((vlb.x & 0x0f0f0f0fu) | ((vhi.x & 0x0c0c0c0cu) << 2u)), ax4);
vt2 += dot(bytes1024(((vla.x >> 4u) & 0x0f0f0f0fu) | (vhi.x & 0x30303030u)), ax8);
vt3 += dot(bytes1024(((vlb.x >> 4u) & 0x0f0f0f0fu) | ((vhi.x >> 2u) & 0x30303030u)), ax12);
vt0 += dot(bytes1024((vla.y & 0x0f0f0f0fu) | ((vhi.y & 0x03030303u) << 4u)), ax1);
vt1 += dot(bytes1024((vlb.y & 0x0f0f0f0fu) | ((vhi.y & 0x0c0c0c0cu) << 2u)), ax5);
vt2 += dot(bytes1024(((vla.y >> 4u) & 0x0f0f0f0fu) | (vhi.y & 0x30303030u)), ax9);
vt3 += dot(bytes1024(((vlb.y >> 4u) & 0x0f0f0f0fu) | ((vhi.y >> 2u) & 0x30303030u)), ax13);
vt0 += dot(bytes1024((vla.z & 0x0f0f0f0fu) | ((vhi.z & 0x03030303u) << 4u)), ax2);
vt1 += dot(bytes1024((vlb.z & 0x0f0f0f0fu) | ((vhi.z & 0x0c0c0c0cu) << 2u)), ax6);
vt2 += dot(bytes1024(((vla.z >> 4u) & 0x0f0f0f0fu) | (vhi.z & 0x30303030u)), ax10);
vt3 += dot(bytes1024(((vlb.z >> 4u) & 0x0f0f0f0fu) | ((vhi.z >> 2u) & 0x30303030u)), ax14);
vt0 += dot(bytes1024((vla.w & 0x0f0f0f0fu) | ((vhi.w & 0x03030303u) << 4u)), ax3);
vt1 += dot(bytes1024((vlb.w & 0x0f0f0f0fu) | ((vhi.w & 0x0c0c0c0cu) << 2u)), ax7);
vt2 += dot(bytes1024(((vla.w >> 4u) & 0x0f0f0f0fu) | (vhi.w & 0x30303030u)), ax11);
vt3 += dot(bytes1024(((vlb.w >> 4u) & 0x0f0f0f0fu) | ((vhi.w >> 2u) & 0x30303030u)), ax15);
let vdot = vd * (f32(extractBits(vsa, 0u, 8u)) * (vt0 - 1056.0 * axs0)
    + f32(extractBits(vsa, 16u, 8u)) * (vt1 - 1056.0 * axs1)
    + f32(extractBits(vsb, 0u, 8u)) * (vt2 - 1056.0 * axs2)
    + f32(extractBits(vsb, 16u, 8u)) * (vt3 - 1056.0 * axs3));

                acc1 += vdot;
            }
            {
let vb = (at2 + u) >> 2u;
let vat = vb * 8u + (((at2 + u) >> 1u) & 1u) * 4u + ((at2 + u) & 1u);
let vla = w[vat];
let vlb = w[vat + 2u];
let vhi = w[w_p1 + (at2 + u)];
let vd = w_d(vb);
let vsv = w[w_p2 + vb];
let vsa = bitcast<i32>(select(vsv.x, vsv.z, ((at2 + u) & 2u) != 0u) >> (((at2 + u) & 1u) * 8u));
let vsb = bitcast<i32>(select(vsv.y, vsv.w, ((at2 + u) & 2u) != 0u) >> (((at2 + u) & 1u) * 8u));
var vt0 = 0.0;
var vt1 = 0.0;
var vt2 = 0.0;
var vt3 = 0.0;
vt0 += dot(bytes1024((vla.x & 0x0f0f0f0fu) | ((vhi.x & 0x03030303u) << 4u)), ax0);
vt1 += dot(bytes1024((vlb.x & 0x0f0f0f0fu) | ((vhi.x & 0x0c0c0c0cu) << 2u)), ax4);
vt2 += dot(bytes1024(((vla.x >> 4u) & 0x0f0f0f0fu) | (vhi.x & 0x30303030u)), ax8);
vt3 += dot(bytes1024(((vlb.x >> 4u) & 0x0f0f0f0fu) | ((vhi.x >> 2u) & 0x30303030u)), ax12);
vt0 += dot(bytes1024((vla.y & 0x0f0f0f0fu) | ((vhi.y & 0x03030303u) << 4u)), ax1);
vt1 += dot(bytes1024((vlb.y & 0x0f0f0f0fu) | ((vhi.y & 0x0c0c0c0cu) << 2u)), ax5);
vt2 += dot(bytes1024(((vla.y >> 4u) & 0x0f0f0f0fu) | (vhi.y & 0x30303030u)), ax9);
vt3 += dot(bytes1024(((vlb.y >> 4u) & 0x0f0f0f0fu) | ((vhi.y >> 2u) & 0x30303030u)), ax13);
vt0 += dot(bytes1024((vla.z & 0x0f0f0f0fu) | ((vhi.z & 0x03030303u) << 4u)), ax2);
vt1 += dot(bytes1024((vlb.z & 0x0f0f0f0fu) | ((vhi.z & 0x0c0c0c0cu) << 2u)), ax6);
vt2 += dot(bytes1024(((vla.z >> 4u) & 0x0f0f0f0fu) | (vhi.z & 0x30303030u)), ax10);
vt3 += dot(bytes1024(((vlb.z >> 4u) & 0x0f0f0f0fu) | ((vhi.z >> 2u) & 0x30303030u)), ax14);
vt0 += dot(bytes1024((vla.w & 0x0f0f0f0fu) | ((vhi.w & 0x03030303u) << 4u)), ax3);
vt1 += dot(bytes1024((vlb.w & 0x0f0f0f0fu) | ((vhi.w & 0x0c0c0c0cu) << 2u)), ax7);
vt2 += dot(bytes1024(((vla.w >> 4u) & 0x0f0f0f0fu) | (vhi.w & 0x30303030u)), ax11);
vt3 += dot(bytes1024(((vlb.w >> 4u) & 0x0f0f0f0fu) | ((vhi.w >> 2u) & 0x30303030u)), ax15);
let vdot = vd * (f32(extractBits(vsa, 0u, 8u)) * (vt0 - 1056.0 * axs0)
    + f32(extractBits(vsa, 16u, 8u)) * (vt1 - 1056.0 * axs1)
    + f32(extractBits(vsb, 0u, 8u)) * (vt2 - 1056.0 * axs2)
    + f32(extractBits(vsb, 16u, 8u)) * (vt3 - 1056.0 * axs3));

                acc2 += vdot;
            }
            {
let vb = (at3 + u) >> 2u;
let vat = vb * 8u + (((at3 + u) >> 1u) & 1u) * 4u + ((at3 + u) & 1u);
let vla = w[vat];
let vlb = w[vat + 2u];
let vhi = w[w_p1 + (at3 + u)];
let vd = w_d(vb);
let vsv = w[w_p2 + vb];
let vsa = bitcast<i32>(select(vsv.x, vsv.z, ((at3 + u) & 2u) != 0u) >> (((at3 + u) & 1u) * 8u));
let vsb = bitcast<i32>(select(vsv.y, vsv.w, ((at3 + u) & 2u) != 0u) >> (((at3 + u) & 1u) * 8u));
var vt0 = 0.0;
var vt1 = 0.0;
var vt2 = 0.0;
var vt3 = 0.0;
vt0 += dot(bytes1024((vla.x & 0x0f0f0f0fu) | ((vhi.x & 0x03030303u) << 4u)), ax0);
vt1 += dot(bytes1024((vlb.x & 0x0f0f0f0fu) | ((vhi.x & 0x0c0c0c0cu) << 2u)), ax4);
vt2 += dot(bytes1024(((vla.x >> 4u) & 0x0f0f0f0fu) | (vhi.x & 0x30303030u)), ax8);
vt3 += dot(bytes1024(((vlb.x >> 4u) & 0x0f0f0f0fu) | ((vhi.x >> 2u) & 0x30303030u)), ax12);
vt0 += dot(bytes1024((vla.y & 0x0f0f0f0fu) | ((vhi.y & 0x03030303u) << 4u)), ax1);
vt1 += dot(bytes1024((vlb.y & 0x0f0f0f0fu) | ((vhi.y & 0x0c0c0c0cu) << 2u)), ax5);
vt2 += dot(bytes1024(((vla.y >> 4u) & 0x0f0f0f0fu) | (vhi.y & 0x30303030u)), ax9);
vt3 += dot(bytes1024(((vlb.y >> 4u) & 0x0f0f0f0fu) | ((vhi.y >> 2u) & 0x30303030u)), ax13);
vt0 += dot(bytes1024((vla.z & 0x0f0f0f0fu) | ((vhi.z & 0x03030303u) << 4u)), ax2);
vt1 += dot(bytes1024((vlb.z & 0x0f0f0f0fu) | ((vhi.z & 0x0c0c0c0cu) << 2u)), ax6);
vt2 += dot(bytes1024(((vla.z >> 4u) & 0x0f0f0f0fu) | (vhi.z & 0x30303030u)), ax10);
vt3 += dot(bytes1024(((vlb.z >> 4u) & 0x0f0f0f0fu) | ((vhi.z >> 2u) & 0x30303030u)), ax14);
vt0 += dot(bytes1024((vla.w & 0x0f0f0f0fu) | ((vhi.w & 0x03030303u) << 4u)), ax3);
vt1 += dot(bytes1024((vlb.w & 0x0f0f0f0fu) | ((vhi.w & 0x0c0c0c0cu) << 2u)), ax7);
vt2 += dot(bytes1024(((vla.w >> 4u) & 0x0f0f0f0fu) | (vhi.w & 0x30303030u)), ax11);
vt3 += dot(bytes1024(((vlb.w >> 4u) & 0x0f0f0f0fu) | ((vhi.w >> 2u) & 0x30303030u)), ax15);
let vdot = vd * (f32(extractBits(vsa, 0u, 8u)) * (vt0 - 1056.0 * axs0)
    + f32(extractBits(vsa, 16u, 8u)) * (vt1 - 1056.0 * axs1)
    + f32(extractBits(vsb, 0u, 8u)) * (vt2 - 1056.0 * axs2)
    + f32(extractBits(vsb, 16u, 8u)) * (vt3 - 1056.0 * axs3));

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
