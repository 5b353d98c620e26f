//! Test cases as data: inputs, expected outputs and the limit of error; and what whoever runs them does, wherever it is.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::caps::Caps;
use crate::compare::{Comparison, Expected};
use crate::dispatch::{DispatchError, Step};
use crate::kernel::Binding;

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
