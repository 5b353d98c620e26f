//! The table of operations that only define the source of each value.

/// Coordinates, sizes or parameters, one per axis.
pub type Four = [i64; 4];

/// One row.
#[derive(Debug)]
pub struct Row {
    /// Name in kernels.
    pub name: &'static str,
    /// WGSL statements; see the template.
    pub wgsl: &'static str,
    /// Coordinates in a, from those in y, the sizes of a and the parameters; `None` where y is filled.
    pub formula: fn(Four, Four, Four) -> Option<Four>,
    /// Required sizes of y, from the sizes of a and of y; unconstrained sizes are returned as they are.
    pub sizes: fn(Four, Four) -> Four,
    /// True if a may be empty: y is then filled.
    pub from_nothing: bool,
}

const WRAP: &str = "let m = (p - vec4<i32>(Q0, Q1, Q2, Q3)) % na; s = select(m, m + na, m < vec4<i32>(0));";

fn wrap(p: Four, na: Four, q: Four) -> Option<Four> {
    Some(std::array::from_fn(|k| (p[k] - q[k]).rem_euclid(na[k])))
}

/// All rows.
pub static ROWS: &[Row] = &[
    Row {
        name: "repeat",
        wgsl: "s = p % na;",
        formula: |p, na, _| Some(std::array::from_fn(|k| p[k] % na[k])),
        sizes: |_, ny| ny,
        from_nothing: false,
    },
    // Q0 to Q3: padding before each axis.
    Row {
        name: "pad",
        wgsl: "s = p - vec4<i32>(Q0, Q1, Q2, Q3); keep = all(s >= vec4<i32>(0)) && all(s < na);",
        formula: |p, na, q| {
            let s: Four = std::array::from_fn(|k| p[k] - q[k]);
            (0..4).all(|k| (0..na[k]).contains(&s[k])).then_some(s)
        },
        sizes: |_, ny| ny,
        from_nothing: true,
    },
    // The same, circular; and a circular shift by Q0 to Q3.
    Row { name: "wrap", wgsl: WRAP, formula: wrap, sizes: |_, ny| ny, from_nothing: false },
    // Q0 values of padding before, mirrored at the first and last value, which are not repeated.
    Row {
        name: "pad_reflect_1d",
        wgsl: "let x = abs(p.x - Q0); s.x = select(x, 2 * (na.x - 1) - x, x >= na.x);",
        formula: |p, na, q| {
            let x = (p[0] - q[0]).abs();
            Some([if x < na[0] { x } else { 2 * (na[0] - 1) - x }, p[1], p[2], p[3]])
        },
        sizes: |na, ny| [ny[0], na[1], na[2], na[3]],
        from_nothing: false,
    },
    Row {
        name: "diag",
        wgsl: "s.y = 0; keep = p.x == p.y;",
        formula: |p, _, _| (p[0] == p[1]).then_some([p[0], 0, p[2], p[3]]),
        sizes: |na, _| [na[0], na[0], na[2], na[3]],
        from_nothing: false,
    },
    // Q0: 0 upper with the diagonal, 1 upper, 2 lower with the diagonal, 3 lower.
    Row {
        name: "tri",
        wgsl: "let d = select(p.x - p.y, p.y - p.x, Q0 >= 2); keep = d >= (Q0 & 1);",
        formula: |p, _, q| {
            match q[0] {
                0 => p[0] >= p[1],
                1 => p[0] > p[1],
                2 => p[0] <= p[1],
                _ => p[0] < p[1],
            }
            .then_some(p)
        },
        sizes: |na, _| na,
        from_nothing: false,
    },
    // Q0: columns before the diagonal (past tokens).
    Row {
        name: "diag_mask",
        wgsl: "keep = p.x <= p.y + Q0;",
        formula: |p, _, q| (p[0] <= p[1] + q[0]).then_some(p),
        sizes: |na, _| na,
        from_nothing: false,
    },
];

impl Row {
    /// The row of this name.
    pub fn find(name: &str) -> Option<&'static Row> {
        ROWS.iter().find(|r| r.name == name)
    }
}
