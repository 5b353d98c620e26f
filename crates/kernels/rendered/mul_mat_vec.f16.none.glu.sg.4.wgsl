// mul_mat_vec: a=f16 b=none epi=glu set=sg rows=4
override WG: u32 = 64u;
override T: u32 = 32u;
override SG_MIN: u32 = 4u;override K: u32 = 256u;
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
fn w_load4(b: u32, e: u32) -> vec4<f32> {
    let v = w[b];
    let p = select(v.xy, v.zw, (e & 4u) != 0u);
    return vec4<f32>(unpack2x16float(p.x), unpack2x16float(p.y));
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
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_size) subgroup_size: u32, @builtin(subgroup_id) subgroup_id: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
    let tid = subgroup_id * subgroup_size + subgroup_lane;
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
            let e = (u << 3u);
            var ax0 = load_x(e + 0u);
            var ax1 = load_x(e + 4u);
            if (NORM) {
                ss += dot(ax0, ax0);
                ax0 *= aux[(e + 0u) / 4u];
                ss += dot(ax1, ax1);
                ax1 *= aux[(e + 4u) / 4u];
            }
            {
let vq = w[(at0 + u)];
let v0 = vec4<f32>(unpack2x16float(vq.x), unpack2x16float(vq.y));
let v1 = vec4<f32>(unpack2x16float(vq.z), unpack2x16float(vq.w));
let vdot = dot(v0, ax0) + dot(v1, ax1);

                acc0 += vdot;
            }
            {
let vq = w[(at1 + u)];
let v0 = vec4<f32>(unpack2x16float(vq.x), unpack2x16float(vq.y));
let v1 = vec4<f32>(unpack2x16float(vq.z), unpack2x16float(vq.w));
let vdot = dot(v0, ax0) + dot(v1, ax1);

                acc1 += vdot;
            }
            {
let vq = w[(at2 + u)];
let v0 = vec4<f32>(unpack2x16float(vq.x), unpack2x16float(vq.y));
let v1 = vec4<f32>(unpack2x16float(vq.z), unpack2x16float(vq.w));
let vdot = dot(v0, ax0) + dot(v1, ax1);

                acc2 += vdot;
            }
            {
let vq = w[(at3 + u)];
let v0 = vec4<f32>(unpack2x16float(vq.x), unpack2x16float(vq.y));
let v1 = vec4<f32>(unpack2x16float(vq.z), unpack2x16float(vq.w));
let vdot = dot(v0, ax0) + dot(v1, ax1);

                acc3 += vdot;
            }
        }

    }
    acc0 = subgroupAdd(acc0);
    acc1 = subgroupAdd(acc1);
    acc2 = subgroupAdd(acc2);
    acc3 = subgroupAdd(acc3);
    ss = subgroupAdd(ss);
    if (T > SG_MIN) {
        workgroupBarrier();
        if (subgroup_lane == 0u) {
            red[0u * WG + subgroup_id] = acc0;
            red[1u * WG + subgroup_id] = acc1;
            red[2u * WG + subgroup_id] = acc2;
            red[3u * WG + subgroup_id] = acc3;
            red[4u * WG + subgroup_id] = ss;
        }
        workgroupBarrier();
        let first = team * T / subgroup_size;
        acc0 = red[0u * WG + first];
        acc1 = red[1u * WG + first];
        acc2 = red[2u * WG + first];
        acc3 = red[3u * WG + first];
        ss = red[4u * WG + first];
        for (var i = 1u; i < T / subgroup_size; i++) {
            acc0 += red[0u * WG + first + i];
            acc1 += red[1u * WG + first + i];
            acc2 += red[2u * WG + first + i];
            acc3 += red[3u * WG + first + i];
            ss += red[4u * WG + first + i];
        }
    }

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
