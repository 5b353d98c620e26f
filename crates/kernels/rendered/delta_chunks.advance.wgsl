// delta_chunks: part=advance
const C: u32 = 32u;
const PART: u32 = 2144u;
override S: u32 = 4u;
override HEADS: u32 = 1u;
override X_COL: u32 = 1u;
override K_AT: u32 = 0u;
override Q_AT: u32 = 0u;
override K_HEADS: u32 = 1u;
override NEIGHBOURS: bool = false;
override V_AT: u32 = 0u;
override Y_COL: u32 = 1u;
override R: u32 = 16u;
override WG: u32 = 128u;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> step: array<u32>;
@group(0) @binding(3) var<storage, read_write> s: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
const COLS: u32 = 16u;
override N_SEQ: u32 = 1u;
fn col_pos(c: u32) -> u32 { return step[COLS + 4u * c + 1u]; }
// With a single sequence its number is not loaded, so that loads of its page table or state need not wait.
fn col_seq(c: u32) -> u32 {
    if (N_SEQ == 1u) {
        return 0u;
    }
    return step[COLS + 4u * c + 2u];
}

// Rows of the state, padded against bank conflicts; u, and the update of the state, by column.
var<workgroup> m: array<vec4<f32>, R * (S / 4u + 1u)>;
var<workgroup> us: array<vec4<f32>, 8u * R>;
var<workgroup> news: array<vec4<f32>, 8u * R>;

// A per-column factor of k, of q, or of the state.
fn factor(p0: u32, which: u32, t: u32) -> f32 {
    return parts[p0 + 512u + 8u * which + t / 4u][t % 4u];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) tid: u32) {
    let n_col = step[0];
    let head = group.y;
    let k_head = select(head % K_HEADS, head / (HEADS / K_HEADS), NEIGHBOURS);
    let s4 = S / 4u;
    let gap = s4 + 1u;
    // Row e of a thread's four is a quarter of the rows after the previous one.
    let quarter = R / 4u;
    let row0 = group.x * R;
    let fresh = col_pos(0u) == 0u;
    // The state of the only sequence with columns here.
    let s0 = col_seq(0u) * HEADS * S * s4;
    for (var i = tid; i < R * s4; i += WG) {
        let row = row0 + i / s4;
        let old = s[s0 + (head * S + min(row, S - 1u)) * s4 + i % s4];
        m[i / s4 * gap + i % s4] = select(old, vec4<f32>(0.0), fresh || row >= S);
    }
    workgroupBarrier();
    let nth = tid % quarter;
    let t = tid / quarter;
    let j = vec4<u32>(row0 + nth) + vec4<u32>(0u, 1u, 2u, 3u) * quarter;
    let v_row = min(j, vec4<u32>(S - 1u));
    for (var chunk = 0u; chunk * C < n_col; chunk++) {
        let p0 = (chunk * HEADS + head) * (PART / 4u);
        let col = chunk * C + t;
        let x0 = min(col, n_col - 1u) * X_COL;
        let k0 = x0 + K_AT + k_head * s4;
        let q0 = x0 + Q_AT + k_head * s4;
        var mk = vec4<f32>(0.0);
        var mq = vec4<f32>(0.0);
        for (var i = 0u; i < s4; i++) {
            let k = x[k0 + i];
            let q = x[q0 + i];
            let at = nth * gap + i;
            let m0 = m[at];
            let m1 = m[at + quarter * gap];
            let m2 = m[at + 2u * quarter * gap];
            let m3 = m[at + 3u * quarter * gap];
            mk += vec4<f32>(dot(m0, k), dot(m1, k), dot(m2, k), dot(m3, k));
            mq += vec4<f32>(dot(m0, q), dot(m1, q), dot(m2, q), dot(m3, q));
        }
        let v0 = x0 + V_AT + head * s4;
        let v = vec4<f32>(
            x[v0 + v_row.x / 4u][v_row.x % 4u],
            x[v0 + v_row.y / 4u][v_row.y % 4u],
            x[v0 + v_row.z / 4u][v_row.z % 4u],
            x[v0 + v_row.w / 4u][v_row.w % 4u],
        );
        us[t * quarter + nth] = v - factor(p0, 0u, t) * mk;
        workgroupBarrier();
        var out = factor(p0, 1u, t) * mq;
        var gain = vec4<f32>(0.0);
        for (var b = 0u; b <= t / 4u; b++) {
            let o = parts[p0 + 8u * t + b];
            let n = parts[p0 + 256u + 8u * t + b];
            let u0 = us[4u * b * quarter + nth];
            let u1 = us[(4u * b + 1u) * quarter + nth];
            let u2 = us[(4u * b + 2u) * quarter + nth];
            let u3 = us[(4u * b + 3u) * quarter + nth];
            out += o.x * u0 + o.y * u1 + o.z * u2 + o.w * u3;
            gain += n.x * u0 + n.y * u1 + n.z * u2 + n.w * u3;
        }
        news[t * quarter + nth] = gain;
        if (col < n_col) {
            let y0 = col * Y_COL + head * S;
            for (var e = 0u; e < 4u; e++) {
                if (j[e] < S) {
                    y[y0 + j[e]] = out[e];
                }
            }
        }
        workgroupBarrier();
        let kept = factor(p0, 2u, 0u);
        for (var task = tid; task < quarter * s4; task += WG) {
            let i = task % s4;
            let quad = task / s4;
            let at = quad * gap + i;
            var m0 = m[at] * kept;
            var m1 = m[at + quarter * gap] * kept;
            var m2 = m[at + 2u * quarter * gap] * kept;
            var m3 = m[at + 3u * quarter * gap] * kept;
            for (var b = 0u; b < C; b++) {
                let k = x[min(chunk * C + b, n_col - 1u) * X_COL + K_AT + k_head * s4 + i];
                let d = news[b * quarter + quad];
                m0 += d.x * k;
                m1 += d.y * k;
                m2 += d.z * k;
                m3 += d.w * k;
            }
            m[at] = m0;
            m[at + quarter * gap] = m1;
            m[at + 2u * quarter * gap] = m2;
            m[at + 3u * quarter * gap] = m3;
        }
        workgroupBarrier();
    }
    for (var i = tid; i < R * s4; i += WG) {
        let row = row0 + i / s4;
        if (row < S) {
            s[s0 + (head * S + row) * s4 + i % s4] = m[i / s4 * gap + i % s4];
        }
    }
}
