//! Work for a hub with one model: the state machine of a worker, and everything that it asks for.

use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use chaski::experts::Graph;
use chaski_swarm::{ModelShape, Unit, Worker, WorkerAction, WorkerConfig, WorkerEvent};
use chaski_wire::{Blob, Body, Control, Digest, Welcome};
use tokio::sync::mpsc;

use super::compute::{self, Computer, Job};
use super::connection::{Connection, Out};
use super::fetch::Hub;
use super::hollow::{Digests, Piece, Pieces, Skeleton};
use super::store::Store;
use super::{Site, is_final};
use crate::swarm::shape_of;
use crate::swarm_options::random;
use crate::ui::{Ui, bytes, counted};

/// Longest skeleton, in bytes.
const LONGEST: u64 = 256 << 20;
/// Tasks that wait beside the one that runs.
const QUEUE: usize = 4;

/// End of a session.
pub(super) enum End {
    /// The worker has left.
    Left,
    /// The hub has another model now.
    OtherModel(Box<Connection>),
}

/// Ctrl-C and SIGTERM.
pub(super) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Inside of a runtime.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    /// Ready at the next one.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The answer to an attempt to connect.
type Attempt = anyhow::Result<Connection>;

/// A worker with a hub's model.
struct Session<'a> {
    site: &'a Site,
    ui: &'a Ui,
    model: Digest,
    hub: Hub,
    graph: Arc<Graph>,
    shape: ModelShape,
    digests: Arc<Mutex<Digests>>,
    computer: Computer,
    events: mpsc::UnboundedSender<WorkerEvent>,
    attempts: mpsc::UnboundedSender<Attempt>,
    /// The first connection, until the state machine asks for one.
    first: Option<Connection>,
    out: Option<mpsc::UnboundedSender<Out>>,
    wake: Option<Duration>,
    is_over: bool,
}

/// Works with the model of a connection.
///
/// # Errors
/// A skeleton that cannot be fetched or used; [`super::Refused`] at a later connection; a lost GPU.
pub(super) async fn run(
    site: &Site,
    connection: Connection,
    signals: &mut Signals,
    ui: &Ui,
) -> anyhow::Result<End> {
    let (events, mut inbox) = mpsc::unbounded_channel();
    let (attempts, mut attempted) = mpsc::unbounded_channel();
    let mut session = Session::new(site, connection, (events, attempts), ui).await?;
    let config = WorkerConfig {
        shape: session.shape.clone(),
        memory: site.memory,
        slots: site.device.slots(&session.shape, site.memory),
        n_queue: QUEUE,
        seed: u64::from_le_bytes(random()?),
    };
    let mut worker = Worker::new(config);
    let begin = Instant::now();
    let (mut event, mut is_leaving) = (WorkerEvent::Timer, false);
    let mut keeping = pin!(site.awake.clone().keep());
    loop {
        session.note(&event);
        if has_failed(&event) {
            // Without it nothing would ever be computed; the hub sees the connection close.
            site.device.check()?;
        }
        let mut actions = Vec::new();
        worker.on(begin.elapsed(), event, &mut actions);
        for action in actions {
            session.perform(action);
        }
        if session.is_over {
            return Ok(End::Left);
        }
        event = tokio::select! {
            Some(event) = inbox.recv() => event,
            Some(attempt) = attempted.recv() => match attempt {
                Ok(connection) if connection.welcome.model != session.model => return Ok(End::OtherModel(Box::new(connection))),
                Ok(connection) => session.attach(connection),
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    ui.detail(&format!("{error:#}; trying again"));
                    WorkerEvent::Closed
                }
            },
            () = until(begin, session.wake) => {
                session.wake = None;
                WorkerEvent::Timer
            }
            never = &mut keeping => match never {},
            () = signals.next() => {
                if std::mem::replace(&mut is_leaving, true) {
                    return Ok(End::Left);
                }
                ui.say("leaving; Ctrl-C again ends at once");
                WorkerEvent::Leave
            }
        };
    }
}

/// True for products or experts that the device did not make or take.
fn has_failed(event: &WorkerEvent) -> bool {
    matches!(event, WorkerEvent::Computed { rows: None, .. } | WorkerEvent::Loaded { canary: None, .. })
}

impl<'a> Session<'a> {
    /// Fetches the skeleton, and starts the thread that computes.
    async fn new(
        site: &'a Site,
        connection: Connection,
        (events, attempts): (mpsc::UnboundedSender<WorkerEvent>, mpsc::UnboundedSender<Attempt>),
        ui: &'a Ui,
    ) -> anyhow::Result<Session<'a>> {
        let Welcome { model, ref skeleton, block, key, .. } = connection.welcome;
        let (hub, blob, store) =
            (Hub::new(&site.url, key, &site.trust)?, skeleton.clone(), site.store.clone());
        let fetched = {
            let hub = hub.clone();
            tokio::task::spawn_blocking(move || skeleton_of(&hub, &blob, &store)).await??
        };
        let graph = tokio::task::spawn_blocking(move || fetched.graph()).await??;
        let shape = shape_of(&graph, &graph.experts(), block)?;
        let digests = Arc::new(Mutex::new(Digests::new()));
        let pieces = Pieces::new(site.store.clone(), digests.clone());
        let computer = compute::start(
            (&site.device, site.memory),
            &graph,
            shape.clone(),
            pieces,
            (events.clone(), site.awake.clone()),
        )?;
        let n_expert: u64 = shape.layers.iter().map(|l| u64::from(l.n_expert)).sum();
        let n_byte: u64 = shape.layers.iter().map(|l| u64::from(l.n_expert) * l.expert_bytes).sum();
        ui.say(&format!("joined: {} of {} in all", counted(n_expert, "expert"), bytes(n_byte)));
        Ok(Session {
            site,
            ui,
            model,
            hub,
            graph: Arc::new(graph),
            shape,
            digests,
            computer,
            events,
            attempts,
            first: Some(connection),
            out: None,
            wake: None,
            is_over: false,
        })
    }

    /// Begins to use a connection.
    fn attach(&mut self, connection: Connection) -> WorkerEvent {
        if let Ok(hub) = Hub::new(&self.site.url, connection.welcome.key, &self.site.trust) {
            self.hub = hub;
        }
        self.out = Some(connection.run(self.events.clone(), self.site.awake.clone()));
        WorkerEvent::Connected
    }

    /// Keeps what the state machine does not: the places of weights.
    fn note(&mut self, event: &WorkerEvent) {
        match event {
            WorkerEvent::Frame(frame) => {
                let Body::Control(Control::Assign(assign)) = &frame.body else { return };
                let mut digests = self.digests.lock().expect("nobody panics with it");
                for tensor in &assign.tensors {
                    let path = &assign.files[usize::from(tensor.file)];
                    for (i, digest) in tensor.sha256.iter().enumerate() {
                        let piece = Piece { n_byte: tensor.length, digest: *digest, path: path.clone() };
                        digests.entry(tensor.name.clone()).or_default().insert(tensor.offset_of(i), piece);
                    }
                }
            }
            WorkerEvent::Loaded { unit, canary } => {
                let experts = self.shape.experts(*unit);
                let shown = format!("layer {}, experts {} to {}", unit.layer, experts.start, experts.end - 1);
                match canary {
                    Some(_) => self.ui.detail(&format!("{shown}: ready")),
                    None => self.ui.note(&format!("{shown}: could not be loaded")),
                }
            }
            WorkerEvent::Closed => self.ui.detail("the connection to the hub is closed"),
            _ => {}
        }
    }

    fn perform(&mut self, action: WorkerAction) {
        match action {
            WorkerAction::Send(frame) => self.send(Out::Frame(frame)),
            WorkerAction::Close => self.send(Out::Close),
            WorkerAction::Compute { task, layer, body } => self.job(Job::Compute { task, layer, body }),
            WorkerAction::Unload(unit) => self.job(Job::Unload(unit)),
            WorkerAction::Load(unit) => self.load(unit),
            WorkerAction::Connect => self.connect(),
            WorkerAction::Stop => self.is_over = true,
            WorkerAction::Wake { at } => self.wake = Some(at),
        }
    }

    fn send(&self, out: Out) {
        if let Some(channel) = &self.out {
            // A writer that has ended is a connection that closes, which its reader tells.
            let _ = channel.send(out);
        }
    }

    fn job(&self, job: Job) {
        if self.computer.jobs.send(Some(job)).is_err() {
            tracing::error!("the thread of experts has ended");
        }
    }

    fn connect(&mut self) {
        if let Some(connection) = self.first.take() {
            // The state machine hears of it as of any other.
            let _ = self.attempts.send(Ok(connection));
            return;
        }
        let (hello, url, token) = (self.site.hello(), self.site.url.clone(), self.site.token.clone());
        let (trust, attempts) = (self.site.trust.clone(), self.attempts.clone());
        tokio::spawn(async move {
            let attempt = match hello {
                Ok(hello) => super::connection::connect(&url, hello, token.as_ref(), &trust).await,
                Err(error) => Err(error),
            };
            let _ = attempts.send(attempt);
        });
    }

    /// Brings the pieces of a unit into the store, then has it loaded.
    fn load(&self, unit: Unit) {
        let (hub, store, jobs) = (self.hub.clone(), self.site.store.clone(), self.computer.jobs.clone());
        let (graph, digests, events) = (self.graph.clone(), self.digests.clone(), self.events.clone());
        let (experts, ui) = (self.shape.experts(unit), self.ui.clone());
        tokio::task::spawn_blocking(move || {
            match fetch_unit(&hub, &store, &graph, &digests, unit.layer, experts) {
                Ok(n_byte) => {
                    if n_byte > 0 {
                        ui.detail(&format!("layer {}: fetched {}", unit.layer, bytes(n_byte)));
                    }
                    // The thread ends only by a panic, which was printed.
                    drop(jobs.send(Some(Job::Load(unit))));
                }
                Err(error) => {
                    tracing::warn!("experts of layer {}: {error:#}", unit.layer);
                    let _ = events.send(WorkerEvent::Loaded { unit, canary: None });
                }
            }
        });
    }
}

/// The skeleton of a hub, from the store if it is there.
fn skeleton_of(hub: &Hub, blob: &Blob, store: &Store) -> anyhow::Result<Skeleton> {
    let bytes = match store.read(&blob.sha256) {
        Some(bytes) => bytes,
        None => {
            ensure!(
                blob.length <= LONGEST,
                "a skeleton of {} bytes, at most {LONGEST} are taken",
                blob.length
            );
            let bytes = hub.blob(blob)?;
            store.write(&blob.sha256, &bytes)?;
            bytes
        }
    };
    Skeleton::new(bytes)
}

/// Brings all pieces of some experts into the store; returns the number of bytes that were not there.
fn fetch_unit(
    hub: &Hub,
    store: &Store,
    graph: &Graph,
    digests: &Mutex<Digests>,
    layer: u16,
    experts: Range<u16>,
) -> anyhow::Result<u64> {
    let mut n_byte = 0;
    let layers = graph.experts();
    let layer = layers.iter().find(|l| l.layer == layer).context("no such layer")?;
    for expert in experts {
        for piece in layer.pieces(graph, expert.into()) {
            let found = {
                let digests = digests.lock().expect("nobody panics with it");
                digests.get(&piece.tensor).and_then(|of_tensor| of_tensor.get(&piece.offset)).cloned()
            };
            let shown = format!("byte {} of tensor `{}`", piece.offset, piece.tensor);
            let found = found.with_context(|| format!("{shown}: the hub has not assigned it"))?;
            let expected = piece.n_byte;
            ensure!(
                found.n_byte == expected,
                "{shown}: {} bytes are assigned, expected {expected}",
                found.n_byte
            );
            if store.read(&found.digest).is_none() {
                let bytes = hub.range(&found.path, &(piece.offset..piece.offset + expected))?;
                store.write(&found.digest, &bytes).with_context(|| shown)?;
                n_byte += expected;
            }
        }
    }
    Ok(n_byte)
}

/// Ready at a time of the state machine's clock; never without one.
async fn until(begin: Instant, wake: Option<Duration>) {
    match wake {
        Some(at) => tokio::time::sleep_until((begin + at).into()).await,
        None => std::future::pending().await,
    }
}
