//! Results of a model that come without tokens: embeddings, scores, probabilities of prompts.

use std::time::{Duration, Instant};

use chaski::embedding::Readings;

use crate::app::App;
use crate::error::{ApiError, Kind};
use crate::model::Served;
use crate::queue::Waiting;

/// While texts run, steps of the model are looked for as often as this.
const SIGN: Duration = Duration::from_secs(1);

/// Waits for results. Steps of the model are signs of life, since there are no tokens that could be.
///
/// # Errors
/// Those of the model; [`Kind::Timeout`] if they are not there in the time for a first token, [`Kind::Full`] if no
/// prompt begins to run in the time for a place.
pub(super) async fn wait<T>(
    app: &App,
    served: &Served,
    readings: Readings<T>,
    waiting: Vec<Waiting>,
) -> Result<Vec<T>, ApiError> {
    let place = app.bounds().max_queue_time;
    let results = app.unless_cut(with_signs(served, readings, waiting, place));
    match app.bounds().request_timeout {
        None => results.await,
        Some(limit) => {
            let late = |_| ApiError::new(Kind::Timeout, "the texts did not run in time");
            tokio::time::timeout(limit, results).await.map_err(late)?
        }
    }
}

async fn with_signs<T>(
    served: &Served,
    mut readings: Readings<T>,
    mut waiting: Vec<Waiting>,
    limit: Option<Duration>,
) -> Result<Vec<T>, ApiError> {
    let (begin, n_prompt) = (Instant::now(), waiting.len());
    let mut n_step = served.load().n_step;
    loop {
        let left =
            limit.filter(|_| readings.n_started() == 0).map(|limit| limit.saturating_sub(begin.elapsed()));
        let results = tokio::time::timeout(left.map_or(SIGN, |left| left.min(SIGN)), &mut readings).await;
        let before = std::mem::replace(&mut n_step, served.load().n_step);
        if n_step != before {
            served.pace.sign();
        }
        if let Ok(results) = results {
            return Ok(results?);
        }
        // Prompts begin in their order.
        let n_left = n_prompt.saturating_sub(readings.n_started());
        waiting.drain(..waiting.len() - n_left);
        if let Some(limit) = limit.filter(|limit| readings.n_started() == 0 && begin.elapsed() >= *limit) {
            let message = format!("the texts waited for {} seconds", limit.as_secs_f64());
            return Err(served.refusal(ApiError::new(Kind::Full, message)));
        }
    }
}
