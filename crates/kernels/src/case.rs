//! Test cases as data: inputs, expected outputs and tolerances, independent of the device that runs them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::caps::Caps;
use crate::compare::{Comparison, Expected};
use crate::dispatch::{DispatchError, Step};
use crate::kernel::Binding;

/// Sentinel bytes behind every buffer, which must stay unchanged.
const SENTINEL: usize = 256;
const MARK: u8 = 0xA5;

/// A buffer of a case.
#[derive(Clone, Debug)]
pub struct CaseBuffer {
    /// The binding.
    pub binding: &'static str,
    /// Its bytes before the dispatch.
    pub bytes: Vec<u8>,
    /// Expected contents of its first words, if the case checks them.
    pub expect: Option<Expected>,
    /// True if some devices do not bind it.
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

    /// A buffer that passes data from one step to the next. It does not start as zeros.
    pub fn scratch(binding: &'static str, n_byte: u64) -> Self {
        CaseBuffer { binding, bytes: vec![0xCD; n_byte as usize], expect: None, spare: false }
    }

    /// The same buffer, marked as one that some devices do not bind.
    #[must_use]
    pub fn spare(self) -> Self {
        CaseBuffer { spare: true, ..self }
    }

    /// Initial contents of the device's buffer: the bytes, followed by sentinels.
    pub fn marked(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len().next_multiple_of(16).max(16) + SENTINEL, MARK);
        bytes
    }

    /// Compares the final contents of the device's buffer with the expected values, if any, and checks the sentinels.
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

/// Chooses the kernels of a case for a device; usually one.
pub type CaseSteps = Box<dyn Fn(&Caps) -> Result<Vec<Step>, DispatchError> + Send + Sync>;

/// One call of an operation with known inputs and outputs.
pub struct Case {
    /// Shape and variant, for messages and benchmark ids.
    pub label: String,
    /// Dispatches for a given device, in order. Steps find buffers by name, scratch included.
    pub steps: CaseSteps,
    /// All buffers.
    pub buffers: Vec<CaseBuffer>,
    /// Minimum number of bytes the call must move.
    pub n_byte: u64,
    /// Number of floating-point operations.
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

    /// Dispatches for a device, each with the buffer index of each binding.
    ///
    /// # Errors
    /// [`DispatchError`] if there is no kernel for it.
    ///
    /// # Panics
    /// If the case has a buffer that no step binds, or lacks one.
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

    /// Equal for calls that run the same kernels with the same constants on the same inputs, so that a run over several
    /// feature sets can skip duplicates.
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

    /// Sets the number of floating-point operations.
    pub fn work(mut self, n_flop: u64) -> Self {
        self.n_flop = n_flop;
        self
    }
}

/// A step of a case on a device.
#[derive(Clone, Debug)]
pub struct PlacedStep {
    /// The dispatch.
    pub step: Step,
    /// Each binding of its kernel, and the number of its buffer.
    pub buffers: Vec<(Binding, usize)>,
}
