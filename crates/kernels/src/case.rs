//! Test cases as data: inputs, expected outputs and the limit of error.

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::kv::KvLayout;

/// What a buffer must hold after the dispatch.
#[derive(Clone, Debug)]
pub enum Expected {
    /// f32 values within a normalised mean squared error; NaN and infinities must agree in place.
    F32 {
        /// The reference's values.
        values: Vec<f32>,
        /// Largest `sum (a - b)^2 / sum b^2`; 0 asks for equal bits.
        max_nmse: f64,
    },
    /// f16 values, two a word, within a normalised mean squared error of these f32 values.
    F16 {
        /// The reference's values before rounding.
        values: Vec<f32>,
        /// Largest `sum (a - b)^2 / sum b^2`.
        max_nmse: f64,
    },
    /// The cells of a KV cache within a normalised mean squared error of these keys, then values, `[cell][channel]`.
    Cells {
        /// How the cache is laid out.
        kv: KvLayout,
        /// The reference's values before rounding.
        values: Vec<f32>,
        /// Largest `sum (a - b)^2 / sum b^2`.
        max_nmse: f64,
    },
    /// Words, bit by bit.
    Words(Vec<u32>),
}

/// A buffer of a case.
#[derive(Clone, Debug)]
pub struct CaseBuffer {
    /// The binding that it goes to.
    pub binding: &'static str,
    /// Its bytes before the dispatch.
    pub bytes: Vec<u8>,
    /// What its first words must be afterwards, if the case looks at it.
    pub expect: Option<Expected>,
}

impl CaseBuffer {
    /// A buffer that is only read.
    pub fn input<T: bytemuck::NoUninit>(binding: &'static str, values: &[T]) -> Self {
        CaseBuffer { binding, bytes: bytemuck::cast_slice(values).to_vec(), expect: None }
    }

    /// A buffer that starts as `before` and must end as `expect`.
    pub fn output<T: bytemuck::NoUninit>(binding: &'static str, before: &[T], expect: Expected) -> Self {
        CaseBuffer { binding, bytes: bytemuck::cast_slice(before).to_vec(), expect: Some(expect) }
    }

    /// A buffer of f16 that starts as these values and must end as `values`.
    pub fn half_output(binding: &'static str, before: &[f32], values: Vec<f32>, max_nmse: f64) -> Self {
        let before: Vec<u16> = before.iter().map(|v| half::f16::from_f32(*v).to_bits()).collect();
        Self::output(binding, &before, Expected::F16 { values, max_nmse })
    }
}

/// Chooses the kernel of a case for a device.
pub type CaseDispatch = Box<dyn Fn(&Caps) -> Result<Dispatch, DispatchError> + Send + Sync>;

/// One call of an operation with known inputs and outputs.
pub struct Case {
    /// Shape and variant, for people and for benchmark ids.
    pub label: String,
    /// The kernel on a given device.
    pub dispatch: CaseDispatch,
    /// All buffers.
    pub buffers: Vec<CaseBuffer>,
    /// Bytes that the call must move at least.
    pub n_byte: u64,
    /// Floating-point operations that it must do.
    pub n_flop: u64,
}

impl Case {
    /// A case; traffic is the size of its buffers until [`Self::work`] says otherwise.
    pub fn new(
        label: impl Into<String>,
        dispatch: impl Fn(&Caps) -> Result<Dispatch, DispatchError> + Send + Sync + 'static,
        buffers: Vec<CaseBuffer>,
    ) -> Self {
        let n_byte = buffers.iter().map(|b| b.bytes.len() as u64).sum();
        Case { label: label.into(), dispatch: Box::new(dispatch), buffers, n_byte, n_flop: 0 }
    }

    /// Says how many floating-point operations the call does.
    pub fn work(mut self, n_flop: u64) -> Self {
        self.n_flop = n_flop;
        self
    }
}

/// Random words that depend on `seed` alone.
pub(crate) fn random_words(seed: u64) -> impl Iterator<Item = u64> {
    let mut s = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    std::iter::repeat_with(move || {
        s = s.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = s;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// `n` values in [-1, 1) that depend on `seed` alone, one in about a hundred an outlier of up to 30.
pub fn random_values(seed: u64, n: usize) -> Vec<f32> {
    let value = |z: u64| {
        let u = (z >> 40) as f32 / 8_388_608.0 - 1.0;
        if z & 0x7f == 0 { u * 30.0 } else { u }
    };
    random_words(seed).take(n).map(value).collect()
}
