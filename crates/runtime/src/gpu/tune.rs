//! The tuner: tries parameters of a token's products on the device, by the time of whole tokens.
//!
//! Timing a kernel alone is misleading: its cost depends on what runs before and after it. So each candidate is put
//! into the loaded model, which then generates some tokens.

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
            let start = self.token_time().await?;
            let (chosen, tried) = climb(&call, &caps, start, async |candidate| {
                if clock.elapsed() > budget {
                    return Ok(None);
                }
                tuning.set(class.clone(), candidate);
                self.retune(&tuning)?;
                Ok(Some(self.token_time().await?))
            })
            .await?;
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

/// Hill climbing from the current parameters to the best neighbour, as long as it improves: returns the best, and all
/// measurements. `start` is the current time; `time` measures a candidate, `None` if the time is up.
pub(super) async fn climb(
    call: &MulMatVec,
    caps: &Caps,
    start: Duration,
    mut time: impl AsyncFnMut(MatVecTune) -> Result<Option<Duration>, RuntimeError>,
) -> Result<(MatVecTune, Vec<(MatVecTune, Duration)>), RuntimeError> {
    let mut best = (call.tune.unwrap_or(MatVecTune::shipped(caps).0), start);
    let mut tried = vec![best];
    loop {
        let from = best.0;
        for candidate in call.neighbours(from, caps) {
            if tried.iter().any(|t| t.0 == candidate) {
                continue;
            }
            let Some(time) = time(candidate).await? else { return Ok((best.0, tried)) };
            tried.push((candidate, time));
            if time.as_secs_f64() < best.1.as_secs_f64() * GAIN {
                best = (candidate, time);
            }
        }
        if best.0 == from {
            return Ok((from, tried));
        }
    }
}
