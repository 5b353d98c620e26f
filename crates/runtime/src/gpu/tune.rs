//! The tuner: tries numbers for the products of a token on the device itself, by the time of whole tokens.
//!
//! A kernel alone is a poor guide: what it costs depends on what runs before and after it. So each candidate takes its
//! place in the loaded model, which then makes some tokens.

use std::time::Duration;

use chaski_kernels::{MatVecTune, ProductClass, Tuning};

use super::choose::Choose;
use super::model::GpuModel;
use crate::error::RuntimeError;
use crate::platform::Clock;

/// What became of one class of products.
#[derive(Clone, Debug)]
pub struct TuneStep {
    /// Which products.
    pub class: ProductClass,
    /// Every candidate with the time of a token; the first is what there was.
    pub tried: Vec<(MatVecTune, Duration)>,
    /// The choice.
    pub chosen: MatVecTune,
}

/// A candidate must be better by this much: repeated measurements differ by half of it.
const GAIN: f64 = 0.99;
/// Measurements of a candidate, of which the least counts.
const REPEAT: usize = 4;

impl GpuModel {
    /// Tries candidates for every class of products until the time is used up, keeps what is better, and says what was
    /// found. The model must have been told nothing yet: its sequence is overwritten.
    ///
    /// # Errors
    /// [`RuntimeError::NeedsExperts`] where experts stay with the processor; device errors.
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
        for (class, start, scaled) in self.products() {
            let mut best = (start, self.token_time().await?);
            let mut tried = vec![best];
            let caps = self.gpu().caps().clone();
            // From the best so far onwards, as long as that leads somewhere.
            let mut seen = vec![start];
            loop {
                let from = best.0;
                for candidate in from.neighbours(&caps, scaled) {
                    if seen.contains(&candidate) || clock.elapsed() > budget {
                        continue;
                    }
                    seen.push(candidate);
                    tuning.set(class.clone(), candidate);
                    self.retune(&tuning)?;
                    let time = self.token_time().await?;
                    tried.push((candidate, time));
                    if time.as_secs_f64() < best.1.as_secs_f64() * GAIN {
                        best = (candidate, time);
                    }
                }
                if best.0 == from {
                    break;
                }
            }
            tuning.set(class.clone(), best.0);
            self.retune(&tuning)?;
            report(&TuneStep { class, tried, chosen: best.0 });
        }
        Ok(tuning)
    }

    /// Time of a token at the start of a sequence.
    async fn token_time(&mut self) -> Result<Duration, RuntimeError> {
        let n = self.max_in_flight().min(self.config().n_ctx);
        let mut least = Duration::MAX;
        for _ in 0..REPEAT {
            let clock = Clock::start();
            let ticket = self.decode(n, 0, Choose::Greedy).await?;
            self.finish().await?;
            self.discard(ticket);
            least = least.min(clock.elapsed());
            // The device counts positions on; the next round begins at the first again.
            self.stage_columns(&[0], 0);
        }
        Ok(least / n)
    }
}
