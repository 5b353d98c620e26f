//! `measure_*`: memory bandwidth and arithmetic throughput of a device; no model runs these.

mod cases;
pub mod reference;

use half::f16;

pub use crate::kernel::Unit;

use crate::call::dispatch;
use crate::caps::{Caps, CoopShape, Features};
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value, shape_values};

/// Reading and copying memory.
pub const STREAM: Op = Op {
    name: "measure_stream",
    template: template!("measure/stream.wgsl.jinja"),
    variants: || ["read", "copy"].iter().map(|w| vec![("what", Value::Word(w))]).collect(),
    cases: Op::cases(cases::stream_cases),
    ggml: &[],
    grid: None,
};

/// Multiply-adds in one number format.
pub const RATE: Op = Op {
    name: "measure_rate",
    template: template!("measure/rate.wgsl.jinja"),
    variants: || {
        let all = [Value::Word("f32"), Value::With("f16", Features::F16), Value::Word("i8")];
        all.map(|kind| vec![("kind", kind)]).into()
    },
    cases: Op::cases(cases::rate_cases),
    ggml: &[],
    grid: None,
};

/// Products of cooperative matrices.
pub const COOP: Op = Op {
    name: "measure_coop",
    template: template!("measure/coop.wgsl.jinja"),
    variants: || CoopShape::ALL.map(|shape| shape_values(shape).collect()).into(),
    cases: Op::cases(cases::coop_cases),
    ggml: &[],
    grid: None,
};

/// Threads of a subgroup in kernels with cooperative matrices.
pub const LANES: Op = Op {
    name: "measure_lanes_coop",
    template: template!("measure/lanes.wgsl.jinja"),
    variants: || Lanes::SIDES.map(|side| vec![("side", Value::Int(side))]).into(),
    cases: Op::cases(cases::lanes_cases),
    ggml: &[],
    grid: None,
};

/// Memory access of [`Stream`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// y: sums of x, one per thread.
    Read,
    /// y: x.
    Copy,
}

/// A call of [`STREAM`].
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Read or copy.
    pub way: Way,
    /// Vectors of four words in x.
    pub n: u32,
    /// Workgroups of 256 threads.
    pub n_group: u32,
}

impl Stream {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let word = if self.way == Way::Read { "read" } else { "copy" };
        let constants = vec![("N", self.n.into()), ("STRIDE", (256 * self.n_group).into())];
        let why = "adjacent threads read adjacent vectors".into();
        dispatch(&STREAM, &[Value::Word(word)], constants, [self.n_group, 1, 1], why)
    }
}

/// A call of [`RATE`].
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// The unit to measure; not [`Unit::Coop`].
    pub unit: Unit,
    /// Loop iterations, an odd number.
    pub loops: u32,
    /// Workgroups of 128 threads.
    pub n_group: u32,
}

impl Rate {
    /// Addend of every step.
    pub const C: f32 = 3.0;

    /// The words of `x`.
    pub fn input(unit: Unit) -> [u32; 2] {
        let minus = if unit == Unit::Int8 { 0xff } else { (-1.0f32).to_bits() };
        [minus, Self::C.to_bits()]
    }

    /// Operations of a call: 8 chains of 4 values, 5 steps a loop.
    pub fn n_flop(&self) -> u64 {
        let each = if self.unit == Unit::Int8 { 8 } else { 2 };
        each * 8 * 4 * 5 * u64::from(self.loops) * 128 * u64::from(self.n_group)
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Lacks`] on a device without f16; [`DispatchError::NoKernel`].
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        assert!(self.loops % 2 == 1, "an odd number of steps: an even one would give back what it was given");
        if self.unit == Unit::F16 && !caps.f16 {
            return Err(DispatchError::Lacks { op: RATE.name, what: "f16" });
        }
        let constants = vec![("LOOPS", self.loops.into())];
        let why = "eight chains per thread".into();
        dispatch(&RATE, &[Value::Word(self.unit.word())], constants, [self.n_group, 1, 1], why)
    }
}

/// A call of [`COOP`].
#[derive(Clone, Copy, Debug)]
pub struct Coop {
    /// Their shape.
    pub shape: CoopShape,
    /// Loop iterations.
    pub loops: u32,
    /// Workgroups of four subgroups.
    pub n_group: u32,
}

impl Coop {
    /// Values of `x`: four matrices and two, of numbers from -2 to 2.
    pub fn input(&self) -> Vec<f16> {
        (0..6 * self.shape.side.pow(2))
            .map(|i| f16::from_f32((i.wrapping_mul(0x9E37_79B9) >> 16) as f32 % 5.0 - 2.0))
            .collect()
    }

    /// Sums of a workgroup.
    pub fn n_sum(&self) -> u32 {
        4 * 8 * self.shape.side.pow(2)
    }

    /// Its results.
    pub fn expected(&self) -> Vec<f32> {
        let x: Vec<f32> = self.input().into_iter().map(f16::to_f32).collect();
        let sums = reference::products(&x, self.shape.side as usize, 4 * self.loops);
        sums.iter().copied().cycle().take(self.n_sum() as usize).collect()
    }

    /// Operations of a call: 8 sums per subgroup, 4 products each per iteration.
    pub fn n_flop(&self) -> u64 {
        2 * u64::from(self.shape.side).pow(3) * 8 * 4 * u64::from(self.loops) * 4 * u64::from(self.n_group)
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Lacks`] on a device without such matrices; [`DispatchError::NoKernel`].
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let lacks = match caps.coop {
            None => Some("cooperative matrices"),
            Some(shape) if shape != self.shape => Some("cooperative matrices of this shape"),
            Some(_) => None,
        };
        if let Some(what) = lacks {
            return Err(DispatchError::Lacks { op: COOP.name, what });
        }
        let constants = vec![("LOOPS", self.loops.into())];
        let values: Vec<Value> = shape_values(self.shape).map(|(_, v)| v).collect();
        dispatch(&COOP, &values, constants, [self.n_group, 1, 1], "sums in registers".into())
    }
}

/// A call of [`LANES`]: the size of its subgroups, from the first word of `size`.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    /// Rows of a matrix, one of those of [`CoopShape::ALL`].
    pub side: u32,
}

impl Lanes {
    const SIDES: [u32; 2] = [16, 8];
    /// Threads of its workgroup.
    pub const THREADS: u32 = 256;
    /// Fewest threads of a subgroup, for the size of `y`.
    pub const LEAST: u32 = 4;

    /// Values of `y`.
    pub const fn n_y(&self) -> u32 {
        Self::THREADS / Self::LEAST * self.side * self.side
    }

    /// Chooses the kernel.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] for other sides.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        dispatch(&LANES, &[Value::Int(self.side)], Vec::new(), [1, 1, 1], "one workgroup".into())
    }
}
