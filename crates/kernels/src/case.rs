//! Test cases as data: inputs, expected outputs and the limit of error; and what whoever runs them does, wherever it is.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::caps::Caps;
use crate::compare::Comparison;
use crate::dispatch::{DispatchError, Step};
use crate::kernel::Binding;
use crate::kv::KvLayout;
use crate::tensor::Tensor;

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
    /// Runs of so many words, each as it says.
    Runs(Vec<(usize, Expected)>),
    /// All bytes, bit by bit.
    Bytes(Vec<u8>),
    /// The values of a tensor in ggml's order; all other bytes as they were.
    Tensor {
        /// Where the values stand.
        tensor: Tensor,
        /// The reference's values, as the type has them.
        values: Vec<f64>,
        /// Largest `sum (a - b)^2 / sum b^2`; 0 asks for equal values.
        max_nmse: f64,
        /// What was to be encoded, where a search chooses the codes. It has ties, which a device that rounds quotients and
        /// sums otherwise decides otherwise; so codes that are as near to this as the reference's are right, too.
        source: Option<Vec<f64>>,
    },
}

/// Bytes behind every buffer that must stay as they are.
const SENTINEL: usize = 256;
const MARK: u8 = 0xA5;

/// A buffer of a case.
#[derive(Clone, Debug)]
pub struct CaseBuffer {
    /// The binding that it goes to.
    pub binding: &'static str,
    /// Its bytes before the dispatch.
    pub bytes: Vec<u8>,
    /// What its first words must be afterwards, if the case looks at it.
    pub expect: Option<Expected>,
    /// Whether some devices do without it.
    pub spare: bool,
}

impl CaseBuffer {
    /// A buffer that is only read.
    pub fn input<T: bytemuck::NoUninit>(binding: &'static str, values: &[T]) -> Self {
        CaseBuffer { binding, bytes: bytemuck::cast_slice(values).to_vec(), expect: None, spare: false }
    }

    /// A buffer that starts as `before` and must end as `expect`.
    pub fn output<T: bytemuck::NoUninit>(binding: &'static str, before: &[T], expect: Expected) -> Self {
        CaseBuffer {
            binding,
            bytes: bytemuck::cast_slice(before).to_vec(),
            expect: Some(expect),
            spare: false,
        }
    }

    /// A buffer for what one step leaves for the next. It begins as anything but zeros.
    pub fn scratch(binding: &'static str, n_byte: u64) -> Self {
        CaseBuffer { binding, bytes: vec![0xCD; n_byte as usize], expect: None, spare: false }
    }

    /// The same buffer, where not every device needs it.
    #[must_use]
    pub fn spare(self) -> Self {
        CaseBuffer { spare: true, ..self }
    }

    /// What the device's buffer begins as: the bytes, and behind them marks that must stay.
    pub fn marked(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len().next_multiple_of(16).max(16) + SENTINEL, MARK);
        bytes
    }

    /// Compares what the device's buffer holds afterwards with what is expected of it, if anything, and looks at the marks.
    pub fn check(&self, found: &[u8]) -> Comparison {
        let Some(expected) = &self.expect else { return (0.0, None) };
        let (found, marks) = found.split_at(self.bytes.len());
        let (nmse, wrong) = expected.compare(&self.bytes, found);
        let after = marks.iter().any(|v| *v != MARK).then(|| "values after the end were written".into());
        (nmse, after.or(wrong).map(|what: String| format!("`{}`: {what}", self.binding)))
    }

    /// A buffer of f16 that starts as these values and must end as `values`.
    pub fn half_output(binding: &'static str, before: &[f32], values: Vec<f32>, max_nmse: f64) -> Self {
        let before: Vec<u16> = before.iter().map(|v| half::f16::from_f32(*v).to_bits()).collect();
        Self::output(binding, &before, Expected::F16 { values, max_nmse })
    }
}

/// Chooses the kernels of a case for a device; mostly it is one.
pub type CaseSteps = Box<dyn Fn(&Caps) -> Result<Vec<Step>, DispatchError> + Send + Sync>;

/// One call of an operation with known inputs and outputs.
pub struct Case {
    /// Shape and variant, for people and for benchmark ids.
    pub label: String,
    /// What runs on a given device, in order. Steps find their buffers by name, scratch among them.
    pub steps: CaseSteps,
    /// All buffers.
    pub buffers: Vec<CaseBuffer>,
    /// Bytes that the call must move at least.
    pub n_byte: u64,
    /// Floating-point operations that it must do.
    pub n_flop: u64,
}

impl Case {
    /// A case; traffic is the size of its buffers until [`Self::work`] says otherwise.
    pub fn new<S: Into<Vec<Step>>>(
        label: impl Into<String>,
        steps: impl Fn(&Caps) -> Result<S, DispatchError> + Send + Sync + 'static,
        buffers: Vec<CaseBuffer>,
    ) -> Self {
        let n_byte = buffers.iter().map(|b| b.bytes.len() as u64).sum();
        let steps = move |caps: &Caps| steps(caps).map(S::into);
        Case { label: label.into(), steps: Box::new(steps), buffers, n_byte, n_flop: 0 }
    }

    /// What runs on a device, each step with the buffer (by its number in the case) of each binding.
    ///
    /// # Errors
    /// [`DispatchError`] if there is no kernel for it.
    ///
    /// # Panics
    /// If the case has a buffer that nothing binds, or lacks one.
    pub fn placed(&self, caps: &Caps) -> Result<Vec<PlacedStep>, DispatchError> {
        let mut unused: Vec<&str> = self.buffers.iter().filter(|b| !b.spare).map(|b| b.binding).collect();
        let steps: Vec<PlacedStep> = (self.steps)(caps)?
            .into_iter()
            .map(|step| {
                let place = |b: &Binding| {
                    let name = step.buffer(b.name);
                    unused.retain(|n| *n != name);
                    let i = self.buffers.iter().position(|b| b.binding == name);
                    (*b, i.unwrap_or_else(|| panic!("{}: no buffer for `{name}`", self.label)))
                };
                let buffers = step.dispatch.kernel.bindings.iter().map(place).collect();
                PlacedStep { step, buffers }
            })
            .collect();
        assert!(unused.is_empty(), "{}: nothing binds {unused:?}", self.label);
        Ok(steps)
    }

    /// The same for the same call with the same inputs: which kernels run with which constants, and the bytes of buffers. Who
    /// runs a case in several feature sets can leave out what has run.
    pub fn fingerprint(&self, steps: &[PlacedStep]) -> u64 {
        let mut h = DefaultHasher::new();
        self.label.hash(&mut h);
        for d in steps.iter().map(|s| &s.step.dispatch) {
            (d.kernel.name, d.grid).hash(&mut h);
            d.constants.iter().for_each(|(name, v)| (name, v.to_bits()).hash(&mut h));
        }
        self.buffers.iter().for_each(|b| b.bytes.hash(&mut h));
        h.finish()
    }

    /// Says how many floating-point operations the call does.
    pub fn work(mut self, n_flop: u64) -> Self {
        self.n_flop = n_flop;
        self
    }
}

/// A step of a case on a device.
#[derive(Clone, Debug)]
pub struct PlacedStep {
    /// What runs.
    pub step: Step,
    /// Each binding of its kernel, and the number of its buffer.
    pub buffers: Vec<(Binding, usize)>,
}

/// A generator of numbers that depend on its seed alone (splitmix64), or of choices that were made before.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
    choices: Option<std::vec::IntoIter<u32>>,
}

impl Rng {
    /// A generator.
    pub const fn new(seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
        Rng { state, choices: None }
    }

    /// A generator that draws these numbers, then zeros: fewer and smaller ones make smaller cases, so a property test
    /// can look for the smallest that fails.
    pub fn of_choices(choices: Vec<u32>) -> Self {
        Rng { state: 0, choices: Some(choices.into_iter()) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if let Some(choices) = &mut self.choices {
            return u64::from(choices.next().unwrap_or(0)) << 32;
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u32
    }

    /// A number from `low` to `high`.
    pub fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.bits() >> 40) as f32 / 16_777_216.0)
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u32) as usize]
    }
}

/// `n` values in [-1, 1) that depend on `seed` alone, one in about a hundred an outlier of up to 30.
pub fn random_values(seed: u64, n: usize) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..n)
        .map(|_| {
            let z = rng.bits();
            let u = (z >> 40) as f32 / 8_388_608.0 - 1.0;
            if z & 0x7f == 0 { u * 30.0 } else { u }
        })
        .collect()
}
