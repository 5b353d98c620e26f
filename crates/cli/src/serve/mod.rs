//! `chaski serve`: models over HTTP.

mod added;
mod args;
mod dialects;
mod fetches;
#[cfg(unix)]
mod files;
mod kept;
mod limits;
mod log;
mod models;
#[cfg(unix)]
mod notify;
mod signals;
#[cfg(feature = "otlp")]
mod spans;
mod store;

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use chaski_server::{Control, Server};
use clap::FromArgMatches as _;

pub(crate) use args::Args;
use log::LogSettings;
use models::Catalogue;
use signals::{End, Signals};

use crate::config::Again;
use crate::failure::{FAILED, INTERRUPTED};
use crate::hub::Models;
use crate::interrupt;
use crate::ui::{Ui, UiArgs};

pub(crate) const LONG: &str = "\
Serves models to programs: the APIs of OpenAI, Anthropic, ollama and llama.cpp's server.

  chaski serve MODEL              on http://127.0.0.1:8080, with a page to chat
  chaski serve --models-dir DIR   all models of a folder, loaded when requests ask for them
  chaski serve                    the built-in model, to try a client

Requests run side by side: prompts and answers of several clients in the same steps, up to --parallel of them. A \
client that leaves ends its request at once.

Ctrl-C, SIGTERM: no new requests, those that run may end; again: at once. SIGHUP: keys, certificates, the list of models, and limits of the configuration file are read again.";

pub(crate) fn run(args: Args, again: Again, models: &Models, ui: &Ui) -> anyhow::Result<()> {
    let log = LogSettings::new(args.log_format, ui);
    let mut config = args.config(&log)?;
    #[cfg(feature = "otlp")]
    {
        config.otlp = args.collector(ui);
    }
    let catalogue = Catalogue::new(args.clone(), again, models, ui)?;
    config.offers = Some(catalogue.offers());
    config.store = Some(catalogue.clone());
    // The process ends with it.
    config.free_models = false;
    #[cfg(unix)]
    files::allow_all();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (has_page, has_keys) = (config.page, !config.keys.is_empty());
    let server = runtime.block_on(Server::bind(config))?;
    let (first, mut all) = {
        let _inside = runtime.enter();
        (Signals::new()?, Signals::new()?)
    };
    // A download at the start has handlers that end the process.
    interrupt::leave_to_server(args.renews());
    for line in announced(&server.urls(), catalogue.example().as_deref(), has_page, has_keys) {
        ui.say(&line);
    }
    let control = server.control();
    let is_loaded = Arc::new(AtomicBool::new(false));
    let serving = runtime.spawn(serve(server, first, is_loaded.clone()));
    let loaded = load_first(&catalogue, &args, &control, ui);
    is_loaded.store(true, Ordering::Relaxed);
    if let Err(error) = loaded {
        // Nobody waits for answers yet.
        runtime.shutdown_background();
        return Err(error);
    }
    #[cfg(unix)]
    notify::notify(notify::State::Ready);
    let code = runtime.block_on(async {
        tokio::select! {
            // A panic has been printed.
            ended = serving => ended.map_or(FAILED, |()| 0),
            _ = async { all.next().await; all.next().await } => INTERRUPTED,
            () = renew(&args, &catalogue, &control, &log) => INTERRUPTED,
        }
    });
    runtime.shutdown_background();
    leave(code)
}

/// Serves until a signal. One that comes while the model is loaded ends the process: nobody waits for answers.
async fn serve(server: Server, mut first: Signals, is_loaded: Arc<AtomicBool>) {
    let control = server.control();
    let stop = async {
        // Routers need time to notice a SIGTERM; somebody at a terminal waits for the end.
        let is_by_hand = first.next().await == End::Interrupt;
        #[cfg(unix)]
        notify::notify(notify::State::Stopping);
        if is_by_hand || !is_loaded.load(Ordering::Relaxed) {
            control.hurry();
        }
    };
    server.run(stop).await;
    if !is_loaded.load(Ordering::Relaxed) {
        leave(0);
    }
}

/// Ends the process without what libraries do at its end: drivers of GPUs do that while their own threads still run.
fn leave(code: u8) -> ! {
    // Standard error has no buffer.
    #[cfg(unix)]
    signal_hook::low_level::exit(code.into());
    #[cfg(not(unix))]
    std::process::exit(code.into());
}

/// The addresses, and what to try there with this model; where there is a default, requests need not name it. Keys are
/// never printed.
fn announced(urls: &[String], model: Option<&str>, has_page: bool, has_keys: bool) -> Vec<String> {
    let mut lines: Vec<String> = urls.iter().map(|url| format!("listening on {url}")).collect();
    let model = model.map_or(String::new(), |id| format!("\"model\": {}, ", serde_json::Value::from(id)));
    let key = if has_keys { " -H \"Authorization: Bearer $KEY\"" } else { "" };
    if let Some(url) = urls.iter().find(|url| url.starts_with("http")) {
        lines.extend(has_page.then(|| format!("  a page to chat: {url}/")));
        let chat = "\"messages\": [{\"role\": \"user\", \"content\": \"Hello!\"}]";
        let text = "\"prompt\": \"Once upon a time\", \"max_tokens\": 32";
        lines.push(format!("  curl {url}/v1/chat/completions{key} -d '{{{model}{chat}}}'"));
        lines.push(format!("  curl {url}/v1/completions{key} -d '{{{model}{text}}}'"));
    }
    lines
}

/// Loads the models that are there from the start.
fn load_first(catalogue: &Catalogue, args: &Args, control: &Control, ui: &Ui) -> anyhow::Result<()> {
    let is_on_terminal = std::io::stderr().is_terminal();
    for offer in catalogue.at_start() {
        let n_ctx = control.load(&offer.id).map_err(|error| match catalogue.failure() {
            Some(cause) => cause,
            None => anyhow::Error::from(error).context(format!("the model `{}` cannot be served", offer.id)),
        })?;
        if is_on_terminal || ui.verbose() {
            let n = args.parallel;
            ui.say(&format!("ready: {}, {n} requests at once, {n_ctx} tokens each", offer.id));
        }
    }
    catalogue.started();
    Ok(())
}

/// Reads keys, certificates, limits and the list of models again at each SIGHUP, and keys also when their file changes.
/// Files that cannot be read change nothing. A server without files ends with its terminal. Never ready.
async fn renew(args: &Args, catalogue: &Catalogue, control: &Control, log: &LogSettings) {
    let mut keys = KeyFile::new(args);
    let mut looks = tokio::time::interval(LOOK);
    let mut hangup = Hangup::new(args);
    loop {
        tokio::select! {
            _ = looks.tick() => {
                if keys.has_changed() {
                    renew_keys(args, control, &log.ui());
                }
            }
            () = hangup.next() => {
                if keys.is_there() {
                    renew_keys(args, control, &log.ui());
                }
                control.renew_certificates();
                renew_limits(catalogue, control, log);
                catalogue.try_again();
                control.refresh();
            }
        }
    }
}

/// The file of keys is looked at as often as this.
const LOOK: Duration = Duration::from_secs(1);

/// The file of keys, and when it last changed.
struct KeyFile<'a> {
    path: Option<&'a Path>,
    stamp: Option<(SystemTime, u64)>,
}

impl<'a> KeyFile<'a> {
    fn new(args: &'a Args) -> KeyFile<'a> {
        let mut file = KeyFile { path: args.key_file(), stamp: None };
        file.has_changed();
        file
    }

    fn is_there(&self) -> bool {
        self.path.is_some()
    }

    /// True if it is another than at the last look. One that is gone for a moment, while it is replaced, is not.
    fn has_changed(&mut self) -> bool {
        let about = self.path.and_then(|path| std::fs::metadata(path).ok());
        let stamp = about.and_then(|about| Some((about.modified().ok()?, about.len())));
        stamp.is_some() && std::mem::replace(&mut self.stamp, stamp) != stamp
    }
}

/// SIGHUP, where it does not end the server.
struct Hangup {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangup {
    #[cfg(unix)]
    fn new(args: &Args) -> Hangup {
        use tokio::signal::unix::{SignalKind, signal};
        Hangup { signal: args.renews().then(|| signal(SignalKind::hangup()).ok()).flatten() }
    }

    #[cfg(not(unix))]
    fn new(_: &Args) -> Hangup {
        Hangup {}
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }
}

/// Reads limits, and form and level of the log, from the configuration file again. All else stays as it was at the
/// start.
fn renew_limits(catalogue: &Catalogue, control: &Control, log: &LogSettings) {
    let read = || {
        let matches = catalogue.again.now()?;
        let args = matches.subcommand().map(|(_, given)| Args::from_arg_matches(given)).transpose()?;
        anyhow::Ok((args.context("a command is missing")?, UiArgs::from_arg_matches(&matches)?))
    };
    match read() {
        Ok((args, ui_args)) => {
            log.set(args.log_format, &Ui::new(&ui_args));
            control.set_bounds(args.limits.bounds());
            for (id, max_waiting) in catalogue.set_limits(&args.limits) {
                control.set_max_waiting(&id, max_waiting);
            }
        }
        Err(error) => log.ui().note(&format!("the limits in force stay: {error:#}")),
    }
}

/// Reads the file of keys again.
fn renew_keys(args: &Args, control: &Control, ui: &Ui) {
    match args.keys() {
        // A server that others can reach does not open itself.
        Ok(keys) if keys.is_empty() => ui.note("no keys are left: those in force stay"),
        Ok(keys) => {
            ui.say(&format!("{} keys are in force", keys.len()));
            control.set_keys(keys);
        }
        Err(error) => ui.note(&format!("the keys in force stay: {error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_are_the_address_and_what_to_try() {
        let urls = ["http://127.0.0.1:8080".to_owned(), "unix:/run/chaski.sock".to_owned()];
        let lines = announced(&urls, None, true, false);
        assert_eq!(
            lines,
            [
                "listening on http://127.0.0.1:8080",
                "listening on unix:/run/chaski.sock",
                "  a page to chat: http://127.0.0.1:8080/",
                "  curl http://127.0.0.1:8080/v1/chat/completions -d \
                 '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello!\"}]}'",
                "  curl http://127.0.0.1:8080/v1/completions -d \
                 '{\"prompt\": \"Once upon a time\", \"max_tokens\": 32}'",
            ]
        );
        let with_key = announced(&urls[..1], Some("small"), false, true);
        assert_eq!(
            with_key[2],
            "  curl http://127.0.0.1:8080/v1/completions -H \"Authorization: Bearer $KEY\" -d \
             '{\"model\": \"small\", \"prompt\": \"Once upon a time\", \"max_tokens\": 32}'"
        );
        assert_eq!(announced(&urls[1..], None, true, true).len(), 1, "no address for curl");
    }
}
