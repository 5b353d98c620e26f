//! `cargo xtask load`: load on a server that speaks OpenAI's completions, ours or another.
//!
//! Prompts are random tokens, so that two servers with the same model get the same work, and no prompt shares a
//! beginning with another unless the mix says so. Times are those of the client: to the first piece of an answer, and
//! between pieces.

mod client;
mod idle;
mod level;
mod memory;
mod mix;
mod numbers;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use client::{Client, Outcome};
use level::{Level, Levels};
use memory::Memory;
use mix::{Job, Mix};
use numbers::{Summary, summary};

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address of the server, such as http://127.0.0.1:8080
    url: String,
    /// Name of the model in requests
    #[arg(long, default_value = "")]
    model: String,
    /// Key of the server
    #[arg(long)]
    key: Option<String>,
    /// Users who ask one request after another: a measurement for each number [default: 1,8, without --rate]
    #[arg(long, value_delimiter = ',', value_parser = level::users)]
    users: Vec<usize>,
    /// Requests a second at random times, whether or not earlier ones have ended; one that is refused is not sent again
    #[arg(long, value_delimiter = ',', value_parser = level::rate)]
    rate: Vec<f64>,
    /// Then requests at rates of 0.5, 0.8, 0.95 and 1.2 times the most that users got answered
    #[arg(long, conflicts_with = "rate")]
    curve: bool,
    /// Requests of each measurement; default: 4 for each user, at least 16; those of --seconds at a rate
    #[arg(long)]
    requests: Option<usize>,
    /// Seconds of requests at a rate
    #[arg(long, default_value_t = 60.0, value_parser = level::rate)]
    seconds: f64,
    /// Mix of requests
    #[arg(long, value_enum, default_value = "a")]
    mix: Mix,
    /// Tokens of a prompt, instead of the mix's
    #[arg(long)]
    prompt: Option<usize>,
    /// Tokens of an answer, instead of the mix's
    #[arg(long)]
    output: Option<usize>,
    /// Seed of prompts and times
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Tokens of prompts lie below this id
    #[arg(long, default_value_t = 2000)]
    vocab: u32,
    /// Ask so many of the requests again, alone, and compare the texts
    #[arg(long, default_value_t = 0)]
    check: usize,
    /// Different requests, which come again and again; a text alone then serves for all of them [default: all differ]
    #[arg(long)]
    distinct: Option<usize>,
    /// Process of the server: its memory may not grow by more than 1 % after the first tenth of the requests
    #[arg(long)]
    pid: Option<u32>,
    /// Within five seconds after a measurement the server may hold nothing of its requests, by its metrics: no place,
    /// no page of the KV cache
    #[arg(long)]
    idle: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the measurements.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let client = Client::new(&args.url, &args.model, args.key.as_deref());
    let mut levels = Levels::new(&args.users, &args.rate, args.curve);
    let (mut found, mut n_differ, mut n_bad, mut growth) = (Vec::new(), 0, 0, 0.0f64);
    for i in 0.. {
        let Some(level) = levels.next() else { break };
        let n = args.requests.unwrap_or_else(|| level.n_request(args.seconds));
        let n_distinct = args.distinct.unwrap_or(n).clamp(1, n);
        let distinct = args.mix.jobs(n_distinct, args.seed + i as u64, args.vocab, args.prompt, args.output);
        let jobs: Vec<Job> = distinct.iter().cycle().take(n).cloned().collect();
        let memory = args.pid.map(|pid| Memory::new(pid, n));
        let start = Instant::now();
        let outcomes = match level {
            Level::Users(users) => {
                let users = if args.mix == Mix::F { 4 * users } else { users };
                closed(&client, &jobs, (users, args.mix.pause()), memory.as_ref())
            }
            Level::Rate(rate) => open(&client, &jobs, rate, args.seed, memory.as_ref()),
        };
        let at_once = match level {
            Level::Users(users) => users,
            Level::Rate(_) => 1,
        };
        let summary = summary(&jobs, &outcomes, start, at_once);
        let idle = if args.idle { Some(idle::wait(&client)?) } else { None };
        levels.measured(level, &summary);
        let (n_wrong, n_check) = compare(&client, &jobs, n_distinct, &outcomes, args.check)?;
        if !args.json {
            print_row(i == 0, level, &summary, n_wrong, n_check);
        }
        let mut row = row(level, args, &summary, n_wrong, n_check);
        row["idle_ms"] = json!(idle.map(|time| time.as_secs_f64() * 1e3));
        row["cached"] = json!(cached(&jobs, &outcomes));
        if let Some(memory) = &memory {
            row["resident"] = memory.json();
            growth = growth.max(memory.growth()?);
            if !args.json {
                println!("{}", memory.line());
            }
        }
        found.push(row);
        (n_differ, n_bad) = (n_differ + n_wrong, n_bad + summary.n_bad);
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&Value::from(found))?);
    }
    ensure!(n_differ == 0, "{n_differ} texts differ from those of the same requests alone");
    ensure!(args.distinct.is_none() || n_bad == 0, "{n_bad} requests have no whole answer");
    ensure!(growth <= 0.01, "the server's memory grows by {:.1} %", 100.0 * growth);
    Ok(())
}

/// As many requests at once as there are users, each of whom pauses after an answer.
fn closed(
    client: &Client,
    jobs: &[Job],
    (users, pause): (usize, Duration),
    memory: Option<&Memory>,
) -> Vec<Option<Outcome>> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![None; jobs.len()]);
    thread::scope(|scope| {
        for _ in 0..users.max(1) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(i) else { return };
                    let outcome = client.ask(job, Instant::now(), true);
                    if let Some(memory) = memory {
                        memory.ended();
                    }
                    outcomes.lock().expect("no thread panics with it")[i] = Some(outcome);
                    thread::sleep(pause);
                }
            });
        }
    });
    outcomes.into_inner().expect("all threads have ended")
}

/// Requests at random times; each counts from its own, even if the client is late.
fn open(
    client: &Client,
    jobs: &[Job],
    rate: f64,
    seed: u64,
    memory: Option<&Memory>,
) -> Vec<Option<Outcome>> {
    let mut random = mix::Random::new(seed ^ 0x9e37);
    let start = Instant::now();
    let mut at = Duration::ZERO;
    thread::scope(|scope| {
        let asked: Vec<_> = jobs
            .iter()
            .map(|job| {
                at += Duration::from_secs_f64(-(1.0 - random.unit()).ln() / rate);
                let due = start + at;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                scope.spawn(move || {
                    let outcome = client.ask(job, due, false);
                    memory.inspect(|memory| memory.ended());
                    outcome
                })
            })
            .collect();
        asked.into_iter().map(|one| one.join().ok()).collect()
    })
}

/// Asks up to `n` of the requests that were answered again, one at a time; the number of those whose text differs, and
/// of all that were compared. Of `n_distinct` different ones each is asked once. An answer that was left begins as the
/// whole one.
fn compare(
    client: &Client,
    jobs: &[Job],
    n_distinct: usize,
    outcomes: &[Option<Outcome>],
    n: usize,
) -> anyhow::Result<(usize, usize)> {
    let mut alone: Vec<Option<String>> = vec![None; n_distinct];
    let (mut n_wrong, mut n_check) = (0, 0);
    for (i, (job, outcome)) in jobs.iter().zip(outcomes).enumerate() {
        let Some(outcome) = outcome.as_ref().filter(|outcome| outcome.has_left || outcome.is_whole(job))
        else {
            continue;
        };
        if n_check == n {
            break;
        }
        n_check += 1;
        let text = match &mut alone[i % n_distinct] {
            Some(text) => text,
            empty => {
                let job = Job { leaves_after: None, ..job.clone() };
                let found = client.ask(&job, Instant::now(), true);
                ensure!(found.is_whole(&job), "a request alone fails: {}", found.error.unwrap_or_default());
                empty.insert(found.text)
            }
        };
        let is_same = if outcome.has_left { text.starts_with(&outcome.text) } else { *text == outcome.text };
        if !is_same {
            eprintln!("differs:\n  {:?}\n  {text:?}", outcome.text);
            n_wrong += 1;
        }
    }
    Ok((n_wrong, n_check))
}

/// The part of the tokens of prompts that the server had cached, of those whose answers tell it.
fn cached(jobs: &[Job], outcomes: &[Option<Outcome>]) -> Option<f64> {
    let told = jobs.iter().zip(outcomes).filter(|(job, _)| job.counts);
    let told = told.filter_map(|(job, outcome)| Some((job.prompt.len(), outcome.as_ref()?.n_cached?)));
    let (n, n_cached) = told.fold((0, 0), |(n, c), (all, cached)| (n + all, c + cached));
    (n > 0).then(|| n_cached as f64 / n as f64)
}

fn row(level: Level, args: &Args, summary: &Summary, n_wrong: usize, n_check: usize) -> Value {
    let mut row = summary.json();
    (row["users"], row["rate"]) = match level {
        Level::Users(n) => (json!(n), Value::Null),
        Level::Rate(rate) => (Value::Null, json!(rate)),
    };
    row["mix"] = json!(format!("{:?}", args.mix).to_lowercase());
    row["checked"] = json!(n_check);
    row["wrong"] = json!(n_wrong);
    row
}

fn print_row(is_first: bool, level: Level, s: &Summary, n_wrong: usize, n_check: usize) {
    if is_first {
        println!(
            "   users   ok  bad  429  tokens/s  steady   good/s   TTFT p50   p95   p99 ms  TPOT p50   p99   \
             gap p50   p95   p99   max ms  same alone"
        );
    }
    let steady = s.window.as_ref().map_or_else(|| "-".into(), |w| format!("{:.1}", w.token_rate));
    let level = level.to_string();
    let [t50, t95, t99] = s.ttft;
    let [g50, g95, g99] = s.gap;
    println!(
        "{level:>8} {:>4} {:>4} {:>4} {:>9.1} {steady:>7} {:>8.2} {t50:>10.1} {t95:>5.1} {t99:>5.1} {:>12.2} {:>5.2} {g50:>9.2} {g95:>5.2} {g99:>5.2} {:>6.1}  {}/{n_check}",
        s.n_ok,
        s.n_bad,
        s.n_refused,
        s.rate,
        s.goodput,
        s.tpot[0],
        s.tpot[2],
        s.gap_max,
        n_check - n_wrong,
    );
}

/// Reads a number of a usage.
fn count(value: &Value) -> Option<usize> {
    value.as_u64().map(|n| n as usize)
}

/// A response that is not what was asked for.
fn unexpected(text: &str) -> anyhow::Error {
    anyhow::anyhow!("unexpected: {}", text.chars().take(200).collect::<String>())
}

/// The value of a line.
fn parse(text: &str) -> anyhow::Result<Value> {
    serde_json::from_str(text).with_context(|| unexpected(text).to_string())
}
