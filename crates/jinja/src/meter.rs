//! Resource limits: a template is a program that comes with a model, and need not terminate.
//!
//! Every text, list and dictionary holds a [`Charge`], without which it cannot be made; so the memory of a
//! rendering is bounded whatever makes it. Time is counted in steps: one for each expression, statement and
//! item, and one for each [`BYTES_PER_STEP`] bytes that are read or written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::fault::{Fault, Result};

/// Maximum number of steps per rendering: enough for a hundred thousand messages, and takes only seconds.
pub(crate) const MAX_STEPS: u64 = 20_000_000;

/// Maximum number of bytes that the values and the text of one rendering occupy at any time: more than fits
/// any context.
pub(crate) const MAX_BYTES: usize = 1 << 26;

/// Maximum nesting of values. Deeper ones cannot be made, so printing, comparing and dropping them may recurse.
pub(super) const MAX_VALUE_DEPTH: u16 = 128;

/// Maximum nesting of expressions, statements and macro calls under evaluation.
pub(super) const MAX_CALL_DEPTH: u32 = 250;

const BYTES_PER_STEP: usize = 32;

/// The counters of one rendering.
#[derive(Debug)]
pub(super) struct Meter {
    n_live_byte: AtomicUsize,
    n_step: AtomicU64,
    max_byte: usize,
    max_step: u64,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter { max_byte: MAX_BYTES, max_step: MAX_STEPS, ..Meter::unlimited() }
    }
}

impl Meter {
    /// A meter for the program's own templates, which only stops those that never end.
    pub(super) fn generous() -> Meter {
        Meter { max_byte: 1 << 29, max_step: 1 << 32, ..Meter::unlimited() }
    }

    /// A meter for the variables, which are the caller's.
    pub(super) fn unlimited() -> Meter {
        Meter { n_live_byte: 0.into(), n_step: 0.into(), max_byte: usize::MAX, max_step: u64::MAX }
    }

    /// Counts `n` steps. Only one thread renders, so the counters need no atomic additions.
    pub(super) fn step(&self, n: u64) -> Result<()> {
        let n_step = self.n_step.load(Relaxed).saturating_add(n);
        self.n_step.store(n_step, Relaxed);
        if n_step > self.max_step { Err(Fault::limit("steps", self.max_step)) } else { Ok(()) }
    }

    /// Counts the reading of `n_byte` bytes.
    pub(super) fn read(&self, n_byte: usize) -> Result<()> {
        self.step((n_byte / BYTES_PER_STEP) as u64)
    }

    /// The right to occupy `n_byte` bytes.
    pub(super) fn charge(self: &Arc<Self>, n_byte: usize) -> Result<Charge> {
        let mut charge = Charge { n_byte: 0, meter: Some(self.clone()) };
        charge.grow(n_byte)?;
        Ok(charge)
    }
}

/// Bytes that a value occupies; they are free again once it is dropped.
#[derive(Debug, Default)]
pub(super) struct Charge {
    n_byte: usize,
    /// `None` for constants of the template, whose size is bounded by its source.
    meter: Option<Arc<Meter>>,
}

impl Charge {
    pub(super) fn n_byte(&self) -> usize {
        self.n_byte
    }

    /// Adds `n_byte` bytes.
    pub(super) fn grow(&mut self, n_byte: usize) -> Result<()> {
        let Some(meter) = &self.meter else { return Ok(()) };
        let n_live = meter.n_live_byte.load(Relaxed).saturating_add(n_byte);
        if n_live > meter.max_byte {
            return Err(Fault::limit("bytes of text and values", meter.max_byte as u64));
        }
        meter.read(n_byte)?;
        meter.n_live_byte.store(n_live, Relaxed);
        self.n_byte += n_byte;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(meter) = &self.meter {
            let n_live = meter.n_live_byte.load(Relaxed);
            meter.n_live_byte.store(n_live.saturating_sub(self.n_byte), Relaxed);
        }
    }
}
