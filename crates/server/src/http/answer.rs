//! Requests for answers: whole, or as a stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response};
use bytes::Bytes;
use chaski::ChatEvent;
use chaski::serve::Load;
use chaski::serve::PromptLogprobsRequest;
use serde_json::Value;
use tokio::sync::mpsc;

use super::body;
use super::guard::Caller;
use super::readings::wait;
use super::record::{Held, Record};
use super::respond::{error_body, json, model_header, stream_headers};
use super::tasks::Tasks;
use crate::answers::{Answers, Gathered};
use crate::app::App;
use crate::dialect::{Dialect, Frame, Ping, Told, Wire, Writer};
use crate::error::{ApiError, Kind};
use crate::loras::Using;
use crate::model::{Called, Served};
use crate::queue::Waiting;
use crate::spans::Asked;
use crate::{clock, ids};

/// Says nothing to clients, and keeps the connection open.
const COMMENT: &str = ":\n\n";

/// Events that wait for a client.
const CHANNEL: usize = 256;

/// A request whose answers are queued.
pub(super) struct Queued {
    pub(super) answers: Answers,
    pub(super) writer: Box<dyn Writer>,
    pub(super) told: Told,
    pub(super) stream: bool,
    /// Silence after which a sign of life is due, if not the dialect's.
    silence: Option<Duration>,
    asked: Asked,
    /// Of each answer.
    waiting: Vec<Waiting>,
    tasks: Tasks,
}

/// Puts another writer around that of a dialect.
pub(super) type Wrap = Box<dyn FnOnce(Box<dyn Writer>) -> Box<dyn Writer> + Send>;

/// Reads a body, and queues its answers.
///
/// # Errors
/// Everything that can be known before the first token.
pub(super) async fn queue(
    app: &App,
    served: Arc<Served>,
    dialect: &'static Dialect,
    client: u64,
    called: Called,
    asked: Value,
) -> Result<Queued, ApiError> {
    let model = served.clone();
    // Templates, tokenizers and grammars take time.
    let (ask, writer, mut prompts, name) = body::read(move || {
        let (mut ask, writer) = (dialect.ask)(&asked, &model.facts)?;
        ask.options.lora = model.facts.scales(&asked, called)?;
        let prompts = ask.read(&model)?;
        let name = asked["model"].as_str().filter(|_| matches!(called, Called::Lora(_)));
        Ok((ask, writer, prompts, name.unwrap_or(&model.facts.id).to_owned()))
    })
    .await?;
    let n_token = || prompts.iter().map(|prompt| prompt.tokens.len());
    app.check_prompts(&served.facts, n_token())?;
    let waiting = app.queue(&served, n_token(), ask.n)?;
    if let Some(n_top) = ask.prompt_logprobs {
        let tokens = prompts.iter().map(|prompt| prompt.tokens.clone()).collect();
        let priority = ask.priority;
        let lora = ask.options.lora.clone();
        let salt = served.salt(client, ask.salt.as_deref());
        let request = PromptLogprobsRequest { prompts: tokens, n_top, lora, priority, client, salt };
        // They wait with their answers.
        let found = wait(app, &served, served.prompt_logprobs(request)?, Vec::new()).await?;
        prompts.iter_mut().zip(found).for_each(|(prompt, found)| prompt.logprobs = found);
    }
    let fingerprint = app.config.fingerprint.clone();
    let id = ids::new(dialect.prefix);
    let control = app.controls.add(&id, client);
    body::read(move || {
        let asked = Asked::of(&ask);
        served.begins();
        let answers =
            ask.submit(&served, &prompts, client, control).map_err(|error| served.refusal(error))?;
        let (created, facts) = (clock::now(), served.facts.clone());
        let tasks = Tasks::new(&ask, &prompts, &facts);
        let slots = tasks.slots.clone();
        let lora = ask.options.lora.unwrap_or_default();
        let told = Told { id, created, model: name, fingerprint, facts, prompts, n: ask.n, lora, slots };
        let (stream, silence) = (ask.stream, ask.silence);
        Ok(Queued { answers, writer, told, stream, silence, asked, tasks, waiting })
    })
    .await
}

/// Answers a request.
pub(crate) async fn answer(
    app: Arc<App>,
    dialect: &'static Dialect,
    caller: Caller,
    path: String,
    body: Value,
    wrap: Option<Wrap>,
) -> Result<Response<Body>, ApiError> {
    let start = Instant::now();
    let open = app.open(caller.limited())?;
    let name = if dialect.needs_model { Some(body::named_model(&body)?) } else { body::model(&body)? };
    let served = app.model(name).await?;
    let real = served.facts.id.clone();
    caller.span.named(name);
    let called = served.facts.called(name);
    let load = served.load();
    let mut queued = queue(&app, Arc::clone(&served), dialect, caller.client, called, body).await?;
    if let Some(wrap) = wrap {
        queued.writer = wrap(queued.writer);
    }
    let waiting = std::mem::take(&mut queued.waiting);
    let using = Using::new(served.facts.loras.clone(), &queued.told.lora);
    let held = Held { open, using, lease: served, tasks: queued.tasks.clone() };
    caller.span.asked(queued.asked, &queued.told.id);
    caller.prompts(&app, &real, queued.told.prompts.iter().map(|prompt| prompt.text.as_str()));
    let record = Record::new(app.clone(), caller, real.clone(), start, waiting, held);
    let mut response = match queued.stream {
        false => whole(queued, record).await?,
        true => stream(queued, record, dialect.wire, path).await?,
    };
    load_headers(response.headers_mut(), &load);
    model_header(response.headers_mut(), called, &real);
    Ok(response)
}

/// How busy the model was when the request came, for routers.
fn load_headers(headers: &mut HeaderMap, load: &Load) {
    let used = load.n_used() as f64 / load.n_token().max(1) as f64;
    for (name, value) in
        [("x-chaski-queue", load.n_waiting.to_string()), ("x-chaski-kv", format!("{used:.3}"))]
    {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// The next event, before the time for the first token is over.
async fn next(
    answers: &mut Answers,
    record: &mut Record,
    has_token: bool,
) -> Result<Option<(usize, ChatEvent)>, ApiError> {
    let in_time = async {
        match record.deadline(has_token) {
            None => Ok(answers.next().await),
            // Clocks of runtimes are coarse: an event may be there before they see that the time is over.
            Some((deadline, late)) if deadline <= Instant::now() => Err(late),
            Some((deadline, late)) => {
                tokio::time::timeout_at(deadline.into(), answers.next()).await.map_err(|_| late)
            }
        }
    };
    let event = record.app().unless_cut(in_time).await;
    let event = event.inspect_err(|error| record.fails(error))?;
    if let Some((index, event)) = &event {
        record.event(*index, event);
    }
    Ok(event)
}

async fn whole(queued: Queued, mut record: Record) -> Result<Response<Body>, ApiError> {
    let Queued { mut answers, mut writer, told, .. } = queued;
    let mut gathered: Vec<Gathered> = Vec::new();
    gathered.resize_with(told.n_answer(), Gathered::default);
    let mut has_token = false;
    while let Some((index, event)) = next(&mut answers, &mut record, has_token).await? {
        has_token |= matches!(event, ChatEvent::Piece(_));
        if let ChatEvent::Failed { error } = event {
            return Err(error.into());
        }
        gathered[index].take(&event);
    }
    let lost = || ApiError::new(Kind::Internal, "the service ended before the answer did");
    let outcomes: Vec<_> =
        gathered.into_iter().map(|one| one.outcome.ok_or_else(lost)).collect::<Result<_, _>>()?;
    Ok(json(&writer.whole(&told, &outcomes)))
}

async fn stream(
    mut queued: Queued,
    mut record: Record,
    wire: Wire,
    path: String,
) -> Result<Response<Body>, ApiError> {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(CHANNEL);
    // A failure before the first token is a status.
    let limit = record.app().config.stream_head;
    let (first, is_late) =
        match tokio::time::timeout(limit, next(&mut queued.answers, &mut record, false)).await {
            Ok(Ok(Some((_, ChatEvent::Failed { error })))) => return Err(error.into()),
            Ok(first) => (first?, false),
            Err(_) => (None, true),
        };
    record.streams();
    let pump = Pump { queued, record, wire, path, sender, is_late };
    tokio::spawn(pump.run(first));
    let chunks = futures_util::stream::poll_fn(move |cx| {
        receiver.poll_recv(cx).map(|chunk| chunk.map(Ok::<_, std::convert::Infallible>))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let kind = match wire {
        Wire::Events { .. } => "text/event-stream",
        Wire::Lines => "application/x-ndjson",
    };
    stream_headers(response.headers_mut(), kind);
    Ok(response)
}

/// Sends the events of answers to a client. When the client leaves, the answers end.
struct Pump {
    queued: Queued,
    record: Record,
    wire: Wire,
    path: String,
    sender: mpsc::Sender<Bytes>,
    /// No event came before the head had to go.
    is_late: bool,
}

/// The client is gone.
struct Gone;

impl Pump {
    async fn run(mut self, first: Option<(usize, ChatEvent)>) {
        // A client that is gone gets no word of it; the record counts its answers as abandoned.
        let _ = self.send_all(first).await;
    }

    async fn send_all(&mut self, first: Option<(usize, ChatEvent)>) -> Result<(), Gone> {
        let mut has_token = false;
        if self.is_late && self.wire != Wire::Lines {
            // Anthropic's pings follow the message's head.
            self.send(COMMENT.into()).await?;
        }
        if let Some((index, event)) = first {
            self.send_event(index, &event).await?;
        }
        loop {
            let silence = self.queued.silence.or(self.wire.ping()).unwrap_or(Duration::MAX);
            let event = tokio::select! {
                () = self.sender.closed() => return Err(Gone),
                event = tokio::time::timeout(silence, next(&mut self.queued.answers, &mut self.record, has_token)) => event,
            };
            match event {
                Err(_) => self.send(self.ping()).await?,
                Ok(Ok(None)) => break,
                Ok(Ok(Some((_, ChatEvent::Failed { error })))) => {
                    return self.send_error(&error.into()).await;
                }
                Ok(Ok(Some((index, event)))) => {
                    has_token |= matches!(event, ChatEvent::Piece(_));
                    self.send_event(index, &event).await?;
                }
                Ok(Err(error)) => return self.send_error(&error).await,
            }
        }
        let frames = self.queued.writer.end(&self.queued.told);
        self.send_frames(&frames).await?;
        match self.wire {
            Wire::Events { ends: true, .. } => self.send("data: [DONE]\n\n".into()).await,
            _ => Ok(()),
        }
    }

    async fn send_event(&mut self, index: usize, event: &ChatEvent) -> Result<(), Gone> {
        let frames = self.queued.writer.event(&self.queued.told, index, event);
        self.send_frames(&frames).await
    }

    async fn send_frames(&self, frames: &[Frame]) -> Result<(), Gone> {
        if frames.is_empty() {
            return Ok(());
        }
        self.send(frames.iter().map(|frame| text(self.wire, frame)).collect()).await
    }

    async fn send_error(&mut self, error: &ApiError) -> Result<(), Gone> {
        if let Some(frames) = self.queued.writer.failed(&self.queued.told, error) {
            return self.send_frames(&frames).await;
        }
        let body = error_body(error, &self.path, self.record.request());
        let frame = match self.wire {
            Wire::Events { ping: Ping::Event, .. } => Frame::Event("error", body),
            _ => Frame::Data(body),
        };
        self.send_frames(&[frame]).await
    }

    fn ping(&self) -> String {
        match self.wire {
            Wire::Events { ping: Ping::Event, .. } => "event: ping\ndata: {\"type\": \"ping\"}\n\n".into(),
            _ => COMMENT.into(),
        }
    }

    async fn send(&self, text: String) -> Result<(), Gone> {
        self.sender.send_timeout(text.into(), self.record.app().config.stream_stall).await.map_err(|_| Gone)
    }
}

/// A frame as bytes.
fn text(wire: Wire, frame: &Frame) -> String {
    match (wire, frame) {
        (Wire::Lines, Frame::Data(value) | Frame::Event(_, value)) => format!("{value}\n"),
        (Wire::Events { .. }, Frame::Data(value)) => format!("data: {value}\n\n"),
        (Wire::Events { .. }, Frame::Event(name, value)) => format!("event: {name}\ndata: {value}\n\n"),
    }
}
