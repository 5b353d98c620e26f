//! Cases of the measuring kernels: exact results only.

use half::f16;

use super::{Coop, LANES, Lanes, Rate, Stream, Unit, Way, reference};
use crate::caps::{Caps, CoopShape};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::dispatch::DispatchError;

pub(super) fn stream_cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (n, n_group) in [(1u32, 1u32), (1000, 1), (1024, 1), (5000, 3), (70_001, 16)] {
        let x: Vec<u32> = (0..4 * n).map(|i| i.wrapping_mul(0x9E37_79B9) ^ (i >> 3)).collect();
        let n_byte = 16 * u64::from(n);
        let threads = 256 * n_group as usize;
        let sums: Vec<u32> = (0..threads).map(|t| reference::thread_sum(&x, t, threads)).collect();
        for (way, expected) in [(Way::Read, sums), (Way::Copy, x.clone())] {
            let before = vec![7u32; expected.len()];
            let mut case = Case::new(
                format!("{way:?} n{n} groups{n_group}"),
                move |_| Stream { way, n, n_group }.dispatch(),
                vec![CaseBuffer::input("x", &x), CaseBuffer::output("y", &before, Expected::Words(expected))],
            );
            case.n_byte = if way == Way::Read { n_byte } else { 2 * n_byte };
            out.push(case);
        }
    }
    out
}

pub(super) fn rate_cases() -> Vec<Case> {
    let mut out = Vec::new();
    for unit in [Unit::F32, Unit::F16, Unit::Int8] {
        for (loops, n_group) in [(1, 1), (3, 2), (101, 1)] {
            let call = Rate { unit, loops, n_group };
            let n = 128 * n_group as usize;
            let values = (0..n).map(|t| reference::chains(t, Rate::C)).collect();
            let expect = Expected::F32 { values, max_nmse: 0.0 };
            let buffers = vec![
                CaseBuffer::input("x", &Rate::input(unit)),
                CaseBuffer::output("y", &vec![7.0f32; n], expect),
            ];
            let label = format!("{unit:?} loops{loops} groups{n_group}");
            out.push(Case::new(label, move |caps| call.dispatch(caps), buffers).work(call.n_flop()));
        }
    }
    out
}

pub(super) fn coop_cases() -> Vec<Case> {
    let all = CoopShape::ALL.into_iter().flat_map(|shape| [(shape, 1, 1), (shape, 5, 2), (shape, 50, 1)]);
    all.map(|(shape, loops, n_group)| {
        let call = Coop { shape, loops, n_group };
        let x = call.input();
        let values = call.expected().repeat(n_group as usize);
        let before = vec![7.0f32; values.len()];
        let x: Vec<u16> = x.into_iter().map(f16::to_bits).collect();
        let buffers = vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::output("y", &before, Expected::F32 { values, max_nmse: 0.0 }),
        ];
        let label = format!("{} lanes{} loops{loops} groups{n_group}", shape.side, shape.lanes);
        Case::new(label, move |caps| call.dispatch(caps), buffers).work(call.n_flop())
    })
    .collect()
}

pub(super) fn lanes_cases() -> Vec<Case> {
    let case = |shape: CoopShape| {
        let call = Lanes { side: shape.side };
        let x: Vec<f32> = (0..shape.side * shape.side).map(|i| i as f32 - 9.0).collect();
        let before = vec![7.0f32; call.n_y() as usize];
        let mut values = x.repeat((Lanes::THREADS / shape.lanes) as usize);
        values.resize(before.len(), 7.0);
        let buffers = vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::output("y", &before, Expected::F32 { values, max_nmse: 0.0 }),
            CaseBuffer::output("size", &[0u32], Expected::Words(vec![shape.lanes])),
        ];
        let dispatch = move |caps: &Caps| match caps.coop == Some(shape) {
            true => call.dispatch(),
            false => Err(DispatchError::Lacks { op: LANES.name, what: "cooperative matrices of this shape" }),
        };
        Case::new(format!("{} lanes{}", shape.side, shape.lanes), dispatch, buffers)
    };
    CoopShape::ALL.into_iter().map(case).collect()
}
