// measure_coop: 
override LOOPS: u32 = 1u;

@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_id) subgroup: u32) {
    let a0 = coopLoadT<coop_mat16x16<f16, A>>(&x[0u], 16u);
    let a1 = coopLoadT<coop_mat16x16<f16, A>>(&x[256u], 16u);
    let a2 = coopLoadT<coop_mat16x16<f16, A>>(&x[512u], 16u);
    let a3 = coopLoadT<coop_mat16x16<f16, A>>(&x[768u], 16u);
    let b0 = coopLoadT<coop_mat16x16<f16, B>>(&x[1024u], 16u);
    let b1 = coopLoadT<coop_mat16x16<f16, B>>(&x[1280u], 16u);
    var c00 = coop_mat16x16<f32, C>();
    var c01 = coop_mat16x16<f32, C>();
    var c10 = coop_mat16x16<f32, C>();
    var c11 = coop_mat16x16<f32, C>();
    var c20 = coop_mat16x16<f32, C>();
    var c21 = coop_mat16x16<f32, C>();
    var c30 = coop_mat16x16<f32, C>();
    var c31 = coop_mat16x16<f32, C>();
    for (var l = 0u; l < LOOPS; l += 1u) {
        c00 = coopMultiplyAdd(a0, b0, c00);
        c01 = coopMultiplyAdd(a0, b1, c01);
        c10 = coopMultiplyAdd(a1, b0, c10);
        c11 = coopMultiplyAdd(a1, b1, c11);
        c20 = coopMultiplyAdd(a2, b0, c20);
        c21 = coopMultiplyAdd(a2, b1, c21);
        c30 = coopMultiplyAdd(a3, b0, c30);
        c31 = coopMultiplyAdd(a3, b1, c31);
        c00 = coopMultiplyAdd(a0, b0, c00);
        c01 = coopMultiplyAdd(a0, b1, c01);
        c10 = coopMultiplyAdd(a1, b0, c10);
        c11 = coopMultiplyAdd(a1, b1, c11);
        c20 = coopMultiplyAdd(a2, b0, c20);
        c21 = coopMultiplyAdd(a2, b1, c21);
        c30 = coopMultiplyAdd(a3, b0, c30);
        c31 = coopMultiplyAdd(a3, b1, c31);
        c00 = coopMultiplyAdd(a0, b0, c00);
        c01 = coopMultiplyAdd(a0, b1, c01);
        c10 = coopMultiplyAdd(a1, b0, c10);
        c11 = coopMultiplyAdd(a1, b1, c11);
        c20 = coopMultiplyAdd(a2, b0, c20);
        c21 = coopMultiplyAdd(a2, b1, c21);
        c30 = coopMultiplyAdd(a3, b0, c30);
        c31 = coopMultiplyAdd(a3, b1, c31);
        c00 = coopMultiplyAdd(a0, b0, c00);
        c01 = coopMultiplyAdd(a0, b1, c01);
        c10 = coopMultiplyAdd(a1, b0, c10);
        c11 = coopMultiplyAdd(a1, b1, c11);
        c20 = coopMultiplyAdd(a2, b0, c20);
        c21 = coopMultiplyAdd(a2, b1, c21);
        c30 = coopMultiplyAdd(a3, b0, c30);
        c31 = coopMultiplyAdd(a3, b1, c31);
    }
    let at = (group.x * 4u + subgroup) * 2048u;
    coopStoreT(c00, &y[at + 0u], 16u);
    coopStoreT(c01, &y[at + 256u], 16u);
    coopStoreT(c10, &y[at + 512u], 16u);
    coopStoreT(c11, &y[at + 768u], 16u);
    coopStoreT(c20, &y[at + 1024u], 16u);
    coopStoreT(c21, &y[at + 1280u], 16u);
    coopStoreT(c30, &y[at + 1536u], 16u);
    coopStoreT(c31, &y[at + 1792u], 16u);
}
