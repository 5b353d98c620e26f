//! A server from its first socket to its last answer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chaski::Engine;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::app::{App, Renewal};
use crate::config::{Bounds, Entry, Listen, ServerConfig};
use crate::http::listen::Socket;
use crate::http::router;
use crate::http::tls::Acceptor;
use crate::keys::Key;
use crate::model::{ModelOptions, Served};
use crate::models::{LoadError, alone};

/// A socket that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {listen}")]
pub struct BindError {
    /// The socket.
    pub listen: String,
    /// The cause.
    #[source]
    pub source: io::Error,
}

/// A bound server. It takes requests once [`Self::run`] is polled, and answers them once it has a model; until then it
/// says that it is loading.
pub struct Server {
    app: Arc<App>,
    sockets: Vec<Socket>,
}

/// Changes a server while it runs, from any thread.
#[derive(Clone)]
pub struct Control(Arc<App>);

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("urls", &self.urls()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

impl Control {
    /// Adds a model, which runs on a thread of its own from now on. The first is the default of requests that name
    /// none.
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn add(&self, engine: Engine, options: ModelOptions) -> Result<(), chaski::Error> {
        self.0.models.add(Served::new(engine, options)?);
        Ok(())
    }

    /// Loads a model whose offer says that it is loaded at the start ([`Offer::load_at_start`](crate::Offer)), on this
    /// thread. Returns the size of its context in tokens.
    ///
    /// # Errors
    /// [`LoadError`], also for a model that is not offered so.
    pub fn load(&self, id: &str) -> Result<usize, LoadError> {
        Ok(self.0.models.start(id)?.facts.n_ctx)
    }

    /// Reads the offers of models again ([`ServerConfig::offers`]). Those that changed are loaded again, and those that
    /// are gone freed, when nobody uses them.
    pub fn refresh(&self) {
        self.0.models.refresh();
    }

    /// An end that comes need not be noticed by routers: without requests the server ends at once, and not after
    /// [`ServerConfig::drain_delay`].
    pub fn hurry(&self) {
        self.0.is_hurried.store(true, Ordering::Relaxed);
    }

    /// Reads the files of certificates again; files that cannot be used change nothing.
    pub fn renew_certificates(&self) {
        self.0.renewals.iter().for_each(|renew| renew());
    }

    /// Puts other limits in force, for requests from now on.
    pub fn set_bounds(&self, bounds: Bounds) {
        self.0.set_bounds(bounds);
    }

    /// Lets so many requests wait for the model with this id, if it is loaded.
    pub fn set_max_waiting(&self, id: &str, max_waiting: usize) {
        if let Some(served) = self.0.models.served(id) {
            served.set_max_waiting(max_waiting);
        }
    }

    /// Puts other keys in force, for requests from now on. Without any, everybody may ask.
    pub fn set_keys(&self, keys: Vec<Key>) {
        self.0.set_keys(keys);
    }
}

fn name(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// Names of the protocols that it speaks in TLS.
const PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];

impl Server {
    /// Binds the sockets. Call it inside of a Tokio runtime.
    ///
    /// # Errors
    /// [`BindError`] for an address that is in use or not permitted, and for certificates that cannot be used.
    pub async fn bind(config: ServerConfig) -> Result<Server, BindError> {
        let (mut sockets, mut renewals) = (Vec::new(), Vec::<Renewal>::new());
        for listen in &config.listen {
            let failed = |source| BindError { listen: name(listen), source };
            let tls = config
                .tls
                .clone()
                .map(|tls| Acceptor::new(tls, PROTOCOLS, config.log.clone()))
                .transpose()
                .map_err(failed)?
                .map(Arc::new);
            if let Some(acceptor) = tls.clone() {
                renewals.push(Box::new(move || acceptor.renew()));
            }
            sockets.push(Socket::bind(listen, tls).await.map_err(failed)?);
        }
        let mut app = App::new(config);
        app.renewals = renewals;
        let addresses = sockets.iter().filter_map(Socket::address).map(|address| address.ip());
        let mut own: Vec<String> = addresses.map(|address| address.to_string()).collect();
        own.extend(host_name());
        *app.own_hosts.write().unwrap_or_else(|e| e.into_inner()) = own;
        Ok(Server { app: Arc::new(app), sockets })
    }

    /// Addresses of the sockets.
    pub fn urls(&self) -> Vec<String> {
        self.sockets.iter().map(Socket::url).collect()
    }

    /// Changes it while it runs.
    pub fn control(&self) -> Control {
        Control(self.app.clone())
    }

    /// Adds a model ([`Control::add`]).
    ///
    /// # Errors
    /// If the system has no thread.
    pub fn add(&self, engine: Engine, options: ModelOptions) -> Result<(), chaski::Error> {
        self.control().add(engine, options)
    }

    /// Serves until `stop` is ready, or an operator says so (`/admin/drain`), and then until the last answer has ended:
    /// first routers see that it is not ready any more ([`ServerConfig::drain_delay`]), then new requests are refused,
    /// and what runs may end ([`ServerConfig::drain_timeout`]). What has not ended then ends with an error.
    /// Dropping the future ends it at once.
    ///
    /// Returns true if all answers ended by themselves.
    pub async fn run(self, stop: impl Future<Output = ()>) -> bool {
        let Server { app, sockets } = self;
        let router = router(app.clone());
        let (sender, receiver) = watch::channel(false);
        let mut serving = tokio::task::JoinSet::new();
        for socket in sockets {
            serving.spawn(socket.serve(router.clone(), receiver.clone()));
        }
        let loading = tokio::spawn(app.models.clone().run());
        let upkeep = tokio::spawn(upkeep(app.clone()));
        tokio::select! {
            () = stop => {}
            () = app.stop.notified() => {}
        }
        app.is_draining.store(true, Ordering::Relaxed);
        if app.n_open.load(Ordering::Relaxed) > 0 || !app.is_hurried.load(Ordering::Relaxed) {
            sleep(app.config.drain_delay).await;
        }
        app.is_closed.store(true, Ordering::Relaxed);
        app.pulls.end();
        let all_ended = idle(&app, app.config.drain_timeout).await;
        if !all_ended {
            let n = app.n_open.load(Ordering::Relaxed);
            app.log(&Entry::Note(format!("{n} requests are cut: they did not end in time")));
            app.cut();
            // Their clients are told, unless they read nothing.
            idle(&app, TOLD).await;
        }
        // The sockets are closed in any case.
        let _ = sender.send(true);
        let idle = Instant::now() + Duration::from_secs(1);
        let _ = timeout_at(idle, async { while serving.join_next().await.is_some() {} }).await;
        loading.abort();
        upkeep.abort();
        // Connections that are still open end here, and with them what they hold of the models.
        serving.shutdown().await;
        if app.config.free_models {
            free(&app).await;
        }
        app.spans.end().await;
        all_ended
    }
}

/// Time for the last words to requests that are cut.
const TOLD: Duration = Duration::from_secs(2);

/// Waits until no request for an answer is open; false if that takes too long.
async fn idle(app: &App, limit: Duration) -> bool {
    let ended = timeout(limit, async {
        while app.n_open.load(Ordering::Relaxed) > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    });
    ended.await.is_ok()
}

/// Keeps measurements small, whether or not somebody reads them. Never ready.
async fn upkeep(app: Arc<App>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(5));
    loop {
        ticks.tick().await;
        app.metrics.count(&app.models.loaded());
        app.metrics.upkeep();
    }
}

/// Frees the models, unless somebody holds them for too long.
async fn free(app: &Arc<App>) {
    let deadline = Instant::now() + Duration::from_secs(5);
    let models = app.models.shelf().clear();
    let ended = tokio::task::spawn_blocking(move || {
        // A request that is being read holds one for a moment.
        models.into_iter().filter_map(|served| alone(served, deadline.into())).for_each(Served::end);
    });
    // It waits no longer than the deadline and one step.
    let _ = timeout_at(deadline + Duration::from_secs(5), ended).await;
}

/// The name of this machine.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    name.or_else(|| std::env::var("COMPUTERNAME").ok()).map(|name| name.trim().to_lowercase())
}
