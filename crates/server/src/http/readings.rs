//! Results of a model that come without tokens: embeddings, scores, probabilities of prompts.

use std::time::Duration;

use chaski::embedding::Readings;

use crate::app::App;
use crate::error::{ApiError, Kind};
use crate::model::Served;

/// While texts run, steps of the model are looked for as often as this.
const SIGN: Duration = Duration::from_secs(1);

/// Waits for results. Steps of the model are signs of life, since there are no tokens that could be.
///
/// # Errors
/// Those of the model; [`Kind::Timeout`] if they are not there in the time for a first token.
pub(super) async fn wait<T>(app: &App, served: &Served, readings: Readings<T>) -> Result<Vec<T>, ApiError> {
    let results = app.unless_cut(with_signs(served, readings));
    match app.bounds().request_timeout {
        None => results.await,
        Some(limit) => {
            let late = |_| ApiError::new(Kind::Timeout, "the texts did not run in time");
            tokio::time::timeout(limit, results).await.map_err(late)?
        }
    }
}

async fn with_signs<T>(served: &Served, mut readings: Readings<T>) -> Result<Vec<T>, ApiError> {
    let mut n_step = served.load().n_step;
    loop {
        let results = tokio::time::timeout(SIGN, &mut readings).await;
        let before = std::mem::replace(&mut n_step, served.load().n_step);
        if n_step != before {
            served.pace.sign();
        }
        if let Ok(results) = results {
            return Ok(results?);
        }
    }
}
