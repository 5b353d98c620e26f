//! `chaski serve`: models over HTTP.

mod args;
mod log;
mod signals;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use chaski::SamplerParams;
use chaski_server::{Control, ModelOptions, Server};

pub(crate) use args::Args;
use signals::Signals;

use crate::failure::{FAILED, INTERRUPTED};
use crate::load;
use crate::options::source;
use crate::ui::Ui;

pub(crate) const LONG: &str = "\
Serves models to programs: the APIs of OpenAI, Anthropic, ollama and llama.cpp's server.

  chaski serve MODEL            on http://127.0.0.1:8080
  chaski serve                  the built-in model, to try a client

Requests run side by side: prompts and answers of several clients in the same steps, up to --parallel of them. A \
client that leaves ends its request at once.

Ctrl-C, SIGTERM: no new requests, those that run may end; again: at once. SIGHUP: the file of keys is read again.";

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let config = args.config(log::log(args.log_format, ui))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = runtime.block_on(Server::bind(config))?;
    let (first, mut all) = {
        let _inside = runtime.enter();
        (Signals::new()?, Signals::new()?)
    };
    announce(&server, ui);
    let control = server.control();
    let is_loaded = Arc::new(AtomicBool::new(false));
    let serving = runtime.spawn(serve(server, first, is_loaded.clone()));
    let loaded = add_model(args, &control, ui);
    is_loaded.store(true, Ordering::Relaxed);
    if let Err(error) = loaded {
        // Nobody waits for answers yet.
        runtime.shutdown_background();
        return Err(error);
    }
    let code = runtime.block_on(async {
        tokio::select! {
            // A panic has been printed.
            ended = serving => ended.map_or(FAILED, |()| 0),
            () = async { all.next().await; all.next().await } => INTERRUPTED,
            () = renew_keys(args, &control, ui) => INTERRUPTED,
        }
    });
    runtime.shutdown_background();
    leave(code)
}

/// Serves until a signal. One that comes while the model is loaded ends the process: nobody waits for answers.
async fn serve(server: Server, mut first: Signals, is_loaded: Arc<AtomicBool>) {
    server.run(first.next()).await;
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

/// The address, and what to try there.
fn announce(server: &Server, ui: &Ui) {
    for url in server.urls() {
        ui.say(&format!("listening on {url}"));
    }
    if let Some(url) = server.urls().into_iter().find(|url| url.starts_with("http")) {
        ui.say(&format!(
            "  curl {url}/v1/chat/completions -d '{{\"messages\": [{{\"role\": \"user\", \"content\": \"Hello!\"}}]}}'\n  \
             curl {url}/v1/completions -d '{{\"prompt\": \"Once upon a time\", \"max_tokens\": 32}}'"
        ));
    }
}

/// Loads the model and adds it.
fn add_model(args: &Args, control: &Control, ui: &Ui) -> anyhow::Result<()> {
    let path = args.model.path();
    let mut engine_args = args.engine.clone();
    let is_on_terminal = std::io::stderr().is_terminal();
    engine_args.sequences = args.parallel;
    engine_args.service = Some(args.service());
    engine_args.metadata.more.extend(args.template.changes()?);
    let engine = load::load(source(path), &engine_args, ui)?.engine;
    let mut sampler = SamplerParams::default();
    sampler.apply_metadata(engine.model().metadata());
    args.sampling.apply(&mut sampler);
    let mut names = args.alias.iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned());
    let options = ModelOptions {
        id: names.next(),
        aliases: names.collect(),
        sampler: Some(sampler),
        max_tokens: usize::try_from(args.n_predict).ok(),
        context_shift: args.context_shift,
        n_seq: args.parallel,
        embeddings: args.embeddings,
        pooling: args.pooling,
        max_waiting: args.service().max_waiting,
    };
    let (file, n_ctx) = (engine.info().file, engine.loaded().n_ctx());
    control.add(engine, options).context("the model cannot be served")?;
    if is_on_terminal || ui.verbose() {
        ui.say(&format!("ready: {file}, {} requests at once, {n_ctx} tokens each", args.parallel));
    }
    Ok(())
}

/// Reads the file of keys again at each SIGHUP, if there is one. A file that cannot be read changes nothing. Never ready.
async fn renew_keys(args: &Args, control: &Control, ui: &Ui) {
    #[cfg(unix)]
    if args.has_key_file() {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut hangup) = signal(SignalKind::hangup()) {
            while hangup.recv().await.is_some() {
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
        }
    }
    #[cfg(not(unix))]
    let _ = (args, control, ui);
    std::future::pending().await
}
