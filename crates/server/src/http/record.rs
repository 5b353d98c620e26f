//! Measurements of a request.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chaski::{ChatEvent, Finish};
use metrics::Histogram;

use super::guard::Caller;
use super::tasks::Tasks;
use crate::app::{App, OpenRequest};
use crate::config::{Answered, Entry};
use crate::course::Course;
use crate::error::{ApiError, Kind};
use crate::loras::Using;
use crate::models::Lease;
use crate::places::Place;
use crate::queue::Waiting;

/// The course of a request for answers. Answers that have not ended when it is dropped were abandoned.
pub(super) struct Record {
    app: Arc<App>,
    caller: Caller,
    model: String,
    start: Instant,
    /// When it was queued.
    queued: Instant,
    answers: Vec<Course>,
    /// Of each answer whose prompt does not run yet.
    waiting: Vec<Option<Waiting>>,
    places: Vec<Option<Place>>,
    /// Status of the response: so far that of a client that left.
    status: u16,
    gaps: Histogram,
    held: Held,
}

/// Status of a request whose client left before the response, in logs.
const LEFT: u16 = 499;

/// Held by a request until its last answer has ended.
pub(super) struct Held {
    pub(super) open: OpenRequest,
    pub(super) using: Using,
    pub(super) lease: Lease,
    pub(super) tasks: Tasks,
}

impl Record {
    /// Begins with the head of a request, for answers that wait.
    pub(super) fn new(
        app: Arc<App>,
        caller: Caller,
        model: String,
        start: Instant,
        waiting: Vec<Waiting>,
        held: Held,
    ) -> Record {
        let gaps = app.metrics.gaps(&model);
        caller.is_told.store(true, Ordering::Relaxed);
        let answers = vec![Course::default(); waiting.len()];
        let places = waiting.iter().map(|_| None).collect();
        let waiting = waiting.into_iter().map(Some).collect();
        let queued = Instant::now();
        Record { app, caller, model, start, queued, answers, waiting, places, status: LEFT, gaps, held }
    }

    pub(super) fn app(&self) -> &App {
        &self.app
    }

    /// Its response is a stream, which has begun.
    pub(super) fn streams(&mut self) {
        self.status = 200;
    }

    /// Its response is this error, unless it has begun.
    pub(super) fn fails(&mut self, error: &ApiError) {
        if self.status == LEFT {
            self.status = error.kind.row().status;
        }
    }

    /// Name of the request.
    pub(super) fn request(&self) -> &str {
        &self.caller.id
    }

    /// When the next event has to be there, and the error if it is not, if there is a limit.
    pub(super) fn deadline(&self, has_token: bool) -> Option<(Instant, ApiError)> {
        let bounds = self.app.bounds();
        let token = bounds.request_timeout.filter(|_| !has_token).map(|limit| {
            (self.start + limit, ApiError::new(Kind::Timeout, "the answer did not begin in time"))
        });
        let waits = self.answers.iter().all(|course| course.started.is_none() && course.ended.is_none());
        let place = bounds.max_queue_time.filter(|_| waits).map(|limit| {
            let message = format!("the request waited for {} seconds", limit.as_secs_f64());
            (self.queued + limit, self.held.lease.refusal(ApiError::new(Kind::Full, message)))
        });
        token.into_iter().chain(place).min_by_key(|(at, _)| *at)
    }

    /// Takes note of an event of the answer with this index.
    pub(super) fn event(&mut self, index: usize, event: &ChatEvent) {
        self.held.lease.pace.sign();
        if matches!(event, ChatEvent::Started { .. }) {
            self.waiting[index] = None;
            self.places[index] = self.held.tasks.place(&self.held.lease.places, index);
        }
        if let (ChatEvent::Piece(_), Some(place)) = (event, &self.places[index]) {
            place.token();
        }
        let (now, course) = (Instant::now(), &mut self.answers[index]);
        match event {
            ChatEvent::Started { n_prompt, n_cached, .. } => {
                course.started = Some(now);
                (course.stats.n_prompt, course.stats.n_cached) = (*n_prompt, *n_cached);
                self.held.using.started();
                self.app.metrics.started(&self.model, *n_prompt, *n_cached, now - self.start);
            }
            ChatEvent::Piece(piece) if piece.token.is_some() => {
                let (first, last) = course.tokens.map_or((now, None), |(first, last)| (first, Some(last)));
                if let Some(last) = last {
                    self.gaps.record(now - last);
                }
                course.tokens = Some((first, now));
                course.stats.n_token += 1;
                (course.stats.ttft, course.stats.decode) = (first - self.start, now - first);
                course.stats.queue = course.started.unwrap_or(first) - self.start;
            }
            ChatEvent::Finished { finish, stats, .. } => {
                course.stats = stats.clone();
                let finish = match finish {
                    Finish::Stop | Finish::StopText => "stop",
                    Finish::Length | Finish::Context => "length",
                };
                let (n_prompt, n_token) = (stats.n_prompt, stats.n_token);
                let ran = now - course.started.unwrap_or(now);
                self.held.lease.pace.ended(n_prompt, n_token, ran);
                self.app.metrics.finished(&self.model, stats, now - self.start);
                self.status = 200;
                self.end(index, finish);
            }
            ChatEvent::Failed { error } => {
                self.fails(&error.clone().into());
                self.end(index, "error");
            }
            _ => {}
        }
    }

    fn end(&mut self, index: usize, finish: &'static str) {
        (self.waiting[index], self.places[index]) = (None, None);
        let (now, course) = (Instant::now(), &mut self.answers[index]);
        course.ended = Some((now, finish));
        let stats = &course.stats;
        // Both times are by the same clock: of the engine if the answer is whole, otherwise of these events.
        let queue = if stats.n_token > 0 { stats.queue } else { course.started.unwrap_or(now) - self.start };
        self.held.open.used(stats.n_prompt + stats.n_token);
        self.app.metrics.tokens(&self.model, stats);
        self.app.metrics.ended(&self.model, finish);
        self.app.log(&Entry::Answered(Answered {
            id: self.caller.id.clone(),
            trace_id: self.caller.trace.map(|trace| trace.name()),
            key: self.caller.key.clone(),
            client: self.caller.address,
            status: self.status,
            model: self.model.clone(),
            n_prompt: stats.n_prompt + stats.n_cached,
            n_cached: stats.n_cached,
            n_token: stats.n_token,
            queue,
            ttft: stats.ttft,
            rate: if stats.decode > Duration::ZERO { stats.token_rate() } else { 0.0 },
            finish,
        }));
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        for index in 0..self.answers.len() {
            if self.answers[index].ended.is_none() {
                self.end(index, "abort");
            }
        }
        self.caller.span.answered(&self.model, self.start, &self.answers);
    }
}
