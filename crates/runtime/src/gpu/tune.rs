//! The tuner: tries parameters of a token's products on the device, by the time of whole tokens.
//!
//! Timing a kernel alone is misleading: its cost depends on what runs before and after it. So each candidate is put
//! into the loaded model, which then generates some tokens.

use std::collections::VecDeque;
use std::time::Duration;

use chaski_kernels::ops::mul_mat_vec::MulMatVec;
use chaski_kernels::{Caps, MatVecTune, ProductClass, Tuning};

use super::model::GpuModel;
use super::sent::SampleMode;
use super::sent::StepOptions;
use crate::error::RuntimeError;
use crate::platform::Clock;
use crate::step::{Column, ColumnOutput};

/// Outcome for one class of products.
#[derive(Clone, Debug)]
pub struct TuneStep {
    /// The class.
    pub class: ProductClass,
    /// Every candidate with the time of a token, starting with the current one.
    pub tried: Vec<(MatVecTune, Duration)>,
    /// The choice.
    pub chosen: MatVecTune,
}

/// Minimum improvement of a candidate: repeated measurements differ by half of it.
const GAIN: f64 = 0.99;
/// Measurements per candidate; the smallest counts.
const REPEAT: usize = 4;

impl GpuModel {
    /// Tries candidates for every class of products within the time limit, keeps improvements, and returns the
    /// measurements. It overwrites the model's sequence.
    ///
    /// # Errors
    /// [`RuntimeError::NeedsExperts`] with offloaded experts; device errors.
    pub async fn tune(
        &mut self,
        budget: Duration,
        mut report: impl FnMut(&TuneStep),
    ) -> Result<Tuning, RuntimeError> {
        self.needs_experts("tuning")?;
        let clock = Clock::start();
        let mut tuning = self.config().tuning.clone();
        // The device's clocks rise under load.
        for _ in 0..REPEAT {
            self.token_time().await?;
        }
        let caps = self.gpu().caps().clone();
        for (class, call) in self.products() {
            let mut climb = Climb::new(&call, &caps, self.token_time().await?);
            while clock.elapsed() <= budget
                && let Some(candidate) = climb.next()
            {
                tuning.set(class.clone(), candidate);
                self.retune(&tuning)?;
                climb.measured(candidate, self.token_time().await?);
            }
            let (chosen, tried) = climb.end();
            tuning.set(class.clone(), chosen);
            self.retune(&tuning)?;
            report(&TuneStep { class, tried, chosen });
        }
        Ok(tuning)
    }

    /// Time of a token at the start of a sequence.
    async fn token_time(&mut self) -> Result<Duration, RuntimeError> {
        let n = self.max_repeat().min(self.config().n_ctx);
        let first = Column::token(0, 0, 0);
        let options = StepOptions { repeat: n, n_planned: 1, choose: SampleMode::Greedy };
        let mut least = Duration::MAX;
        for _ in 0..REPEAT {
            let clock = Clock::start();
            self.send_step(&[first], &[ColumnOutput::Choice], options)?;
            self.finish().await?;
            self.drop_steps();
            least = least.min(clock.elapsed());
        }
        Ok(least / n)
    }
}

/// Hill climbing from the current parameters to the best neighbour, as long as it improves.
pub(super) struct Climb<'a> {
    call: &'a MulMatVec,
    caps: &'a Caps,
    /// The parameters whose neighbours are tried.
    from: Option<MatVecTune>,
    /// Neighbours to try.
    left: VecDeque<MatVecTune>,
    best: (MatVecTune, Duration),
    tried: Vec<(MatVecTune, Duration)>,
}

impl<'a> Climb<'a> {
    /// Begins with the current parameters and their time.
    pub(super) fn new(call: &'a MulMatVec, caps: &'a Caps, time: Duration) -> Self {
        let best = (call.tune.unwrap_or(MatVecTune::shipped(caps).0), time);
        Climb { call, caps, from: None, left: VecDeque::new(), best, tried: vec![best] }
    }

    /// The next candidate to measure; `None` if no neighbour of the best one is better.
    pub(super) fn next(&mut self) -> Option<MatVecTune> {
        loop {
            while let Some(candidate) = self.left.pop_front() {
                if self.tried.iter().all(|tried| tried.0 != candidate) {
                    return Some(candidate);
                }
            }
            if self.from == Some(self.best.0) {
                return None;
            }
            self.from = Some(self.best.0);
            self.left = self.call.neighbours(self.best.0, self.caps).into_iter().collect();
        }
    }

    /// Takes the time of a candidate.
    pub(super) fn measured(&mut self, candidate: MatVecTune, time: Duration) {
        self.tried.push((candidate, time));
        if time.as_secs_f64() < self.best.1.as_secs_f64() * GAIN {
            self.best = (candidate, time);
        }
    }

    /// The best candidate, and all measurements.
    pub(super) fn end(self) -> (MatVecTune, Vec<(MatVecTune, Duration)>) {
        (self.best.0, self.tried)
    }
}
