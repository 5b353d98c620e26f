//! `cargo xtask load`: load on a server that speaks OpenAI's completions, ours or another.
//!
//! Prompts are random tokens, so that two servers with the same model get the same work, and no prompt shares a
//! beginning with another unless the mix says so. Times are those of the client: to the first piece of an answer, and
//! between pieces.

mod client;
mod demands;
mod drive;
mod idle;
mod level;
mod memory;
mod mix;
mod numbers;

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use client::{Client, Turn};
use demands::{Burst, Demand, demands};
use drive::{Asked, Work, recovery};
use level::{Level, Levels};
use memory::Memory;
use mix::{Job, Mix};
use numbers::{SERVES, Summary, summary};

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
    /// Requests of each measurement; default: 4 for each user, at least 16, and for agents a conversation of each user
    /// and group; those of --seconds at a rate, and for mix h
    #[arg(long)]
    requests: Option<usize>,
    /// Seconds of requests at a rate, of a burst, or of mix h [default: 60; of a burst 10, of mix h 1800]
    #[arg(long, value_parser = level::rate)]
    seconds: Option<f64>,
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
    /// Different requests, which come again and again; a text alone then serves for all of them [default: all differ;
    /// 700 of mix h without --requests]
    #[arg(long)]
    distinct: Option<usize>,
    /// Process of the server: its memory may not grow by more than 1 % after the first tenth of the requests
    #[arg(long)]
    pid: Option<u32>,
    /// Within five seconds after a measurement the server may hold nothing of its requests, by its metrics: no place,
    /// no page of the KV cache
    #[arg(long)]
    idle: bool,
    /// Fail where a server misses the requirements of the mix: a whole answer to each request, and of c a gap p99 of at
    /// most 3 times that of the short requests alone, which are measured, too; of d 0.9 of earlier turns from the
    /// cache, and a TTFT p50 of at most 1.3 times that of the new tokens alone; of f service as before 5 seconds after
    /// the burst; of g what --idle wants
    #[arg(long)]
    require: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A measurement: what was asked, and what was found.
struct Measured {
    jobs: Vec<Job>,
    asked: Vec<Asked>,
    summary: Summary,
    memory: Option<Memory>,
    burst: Option<Burst>,
    idle: Option<Duration>,
    /// The requests alone that others of the mix are compared with.
    alone: Option<Summary>,
}

/// Runs the measurements.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let client = Client::new(&args.url, &args.model, args.key.as_deref());
    let mut levels = Levels::new(&args.users, &args.rate, args.curve);
    let (mut found, mut n_differ, mut n_bad, mut growth) = (Vec::new(), 0, 0, 0.0f64);
    let mut missed = Vec::new();
    for i in 0.. {
        let Some(level) = levels.next() else { break };
        let measured = measure(args, &client, level, args.seed + i as u64)?;
        let Measured { jobs, asked, summary, memory, burst, idle, alone } = &measured;
        levels.measured(level, summary.request_rate());
        let (n_wrong, n_check) = compare(&client, jobs, asked, args.check)?;
        let demands = demands(args.mix, summary, alone.as_ref(), burst.as_ref());
        let mut row = row(level, args, summary, n_wrong, n_check);
        row["idle_ms"] = json!(idle.map(|time| time.as_secs_f64() * 1e3));
        row["alone"] = json!(alone.as_ref().map(Summary::json));
        row["burst"] = json!(burst.as_ref().map(Burst::json));
        row["requirements"] = demands.iter().map(Demand::json).collect();
        if let Some(memory) = memory {
            row["resident"] = memory.json();
            growth = growth.max(memory.growth()?);
        }
        if !args.json {
            print_row(i == 0, &level.to_string(), summary, n_wrong, n_check);
            alone.iter().for_each(|alone| {
                print_row(false, if burst.is_some() { "before" } else { "alone" }, alone, 0, 0)
            });
            let of_requirements = demands.iter().filter(|demand| args.require || !demand.is_met());
            let lines = burst.iter().map(Burst::line).chain(memory.iter().map(Memory::line));
            lines.chain(of_requirements.map(Demand::line)).for_each(|line| println!("{line}"));
            print_parts(summary);
        }
        missed.extend(demands.iter().filter(|demand| !demand.is_met()).map(Demand::line));
        found.push(row);
        (n_differ, n_bad) = (n_differ + n_wrong, n_bad + summary.n_bad);
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&Value::from(found))?);
    }
    ensure!(n_differ == 0, "{n_differ} texts differ from those of the same requests alone");
    ensure!(args.distinct.is_none() || n_bad == 0, "{n_bad} requests have no whole answer");
    ensure!(growth <= 0.01, "the server's memory grows by {:.1} %", 100.0 * growth);
    ensure!(!args.require || missed.is_empty(), "{}", missed.join("; "));
    Ok(())
}

/// Runs a measurement.
fn measure(args: &Args, client: &Client, level: Level, seed: u64) -> anyhow::Result<Measured> {
    let mix = args.mix;
    if mix == Mix::F {
        return burst(args, client, level, seed);
    }
    let seconds = args.seconds.unwrap_or(if mix == Mix::H { 1800.0 } else { 60.0 });
    let time = match level {
        Level::Users(_) if mix == Mix::H && args.requests.is_none() => Some(Duration::from_secs_f64(seconds)),
        _ => None,
    };
    let n = match time {
        Some(_) => args.distinct.unwrap_or(700),
        None => args.requests.unwrap_or_else(|| mix.n_request(level, seconds)),
    };
    let n_distinct = args.distinct.unwrap_or(n).clamp(1, n);
    let jobs = mix.jobs(n_distinct, seed, args.vocab, args.prompt, args.output);
    let memory = args.pid.map(|pid| match time {
        Some(time) => Memory::of_time(pid, time),
        None => Memory::of_requests(pid, n),
    });
    let start = Instant::now();
    let work = Work::new(client, &jobs, n, mix.pause()).lasting(time).watched(memory.as_ref());
    let asked = drive(&work, level, args.seed);
    let summary = summary(&jobs, &asked, start, at_once(level));
    let idle = if args.idle || args.require && mix == Mix::G { Some(idle::wait(client)?) } else { None };
    let alone = mix.alone(&jobs, seed, args.vocab).filter(|_| args.require).map(|jobs| {
        let start = Instant::now();
        let work = Work::new(client, &jobs, jobs.len(), mix.pause());
        numbers::summary(&jobs, &drive(&work, level, args.seed), start, at_once(level))
    });
    Ok(Measured { jobs, asked, summary, memory, burst: None, idle, alone })
}

fn drive(work: &Work<'_>, level: Level, seed: u64) -> Vec<Asked> {
    match level {
        Level::Users(users) => work.closed(users),
        Level::Rate(rate) => work.open(rate, seed, || ()).0,
    }
}

fn at_once(level: Level) -> usize {
    match level {
        Level::Users(users) => users,
        Level::Rate(_) => 1,
    }
}

/// Four times as many requests a second as users get answered, and then single ones until they are served as before:
/// with a first token within a second, or twice the p95 of the users.
fn burst(args: &Args, client: &Client, level: Level, seed: u64) -> anyhow::Result<Measured> {
    let chats = |n, seed, n_out| Mix::F.jobs(n, seed, args.vocab, args.prompt, n_out);
    let before = match level {
        Level::Rate(_) => None,
        Level::Users(users) => {
            let jobs = chats(level.n_request(0.0), seed ^ 0x00b0_57ed, args.output);
            let start = Instant::now();
            let asked = Work::new(client, &jobs, jobs.len(), Duration::ZERO).closed(users);
            Some(summary(&jobs, &asked, start, users))
        }
    };
    let capacity = match (level, &before) {
        (Level::Rate(rate), _) => rate,
        (Level::Users(_), before) => before.as_ref().map_or(0.0, Summary::request_rate),
    };
    ensure!(capacity > 0.0, "the users got no answers: {:?}", before.map(|before| before.errors));
    let (rate, seconds) = (4.0 * capacity, args.seconds.unwrap_or(10.0));
    let n = args.requests.unwrap_or((rate * seconds).ceil() as usize).max(1);
    let jobs = chats(args.distinct.unwrap_or(n).clamp(1, n), seed, args.output);
    let probes = chats(100, seed ^ 0x9_0be5, Some(args.output.unwrap_or(8).min(8)));
    let limit = before.as_ref().map_or(0.0, |before| 2.0 * before.ttft[1]).max(SERVES.0);
    let memory = args.pid.map(|pid| Memory::of_requests(pid, n));
    let start = Instant::now();
    let work = Work::new(client, &jobs, n, Duration::ZERO).watched(memory.as_ref());
    let after = || (start.elapsed(), recovery(client, &probes, Duration::from_secs_f64(limit / 1e3)));
    let (asked, (time, recovery)) = work.open(rate, args.seed, after);
    let summary = summary(&jobs, &asked, start, 1);
    let idle = if args.idle { Some(idle::wait(client)?) } else { None };
    let burst = Burst { capacity, rate, seconds: time.as_secs_f64(), recovery };
    Ok(Measured { jobs, asked, summary, memory, burst: Some(burst), idle, alone: before })
}

/// Asks up to `n` of the requests that were answered again, one at a time; the number of those whose text differs, and
/// of all that were compared. Each job is asked once for all its requests with the same conversation before it. An
/// answer that was left begins as the whole one.
fn compare(client: &Client, jobs: &[Job], asked: &[Asked], n: usize) -> anyhow::Result<(usize, usize)> {
    let mut alone: Vec<Option<(Vec<u32>, String)>> = vec![None; jobs.len()];
    let (mut n_wrong, mut n_check) = (0, 0);
    let answered = asked.iter().filter(|a| a.outcome.has_left || a.outcome.is_whole(&jobs[a.job]));
    for Asked { job, outcome } in answered.take(n) {
        n_check += 1;
        let known = alone[*job].take().filter(|(history, _)| *history == outcome.history);
        let (history, text) = match known {
            Some(known) => known,
            None => {
                let job = Job { leaves_after: None, ..jobs[*job].clone() };
                let turn = Turn { history: &outcome.history, ..Turn::new(&job) };
                let found = client.ask(turn, Instant::now(), true);
                ensure!(found.is_whole(&job), "a request alone fails: {}", found.error.unwrap_or_default());
                (found.history, found.text)
            }
        };
        let is_same = if outcome.has_left { text.starts_with(&outcome.text) } else { text == outcome.text };
        if !is_same {
            eprintln!("differs:\n  {:?}\n  {text:?}", outcome.text);
            n_wrong += 1;
        }
        alone[*job] = Some((history, text));
    }
    Ok((n_wrong, n_check))
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

/// Numbers that only some mixes have.
fn print_parts(s: &Summary) {
    if let Some(part) = s.cached_of_turns {
        println!("cached: {:.1} % of what earlier turns computed", 100.0 * part);
    }
    let numbers::Structured { n_valid, n_cut, n_token } = s.structured;
    if n_valid + n_cut > 0 {
        let each = n_token as f64 / (n_valid + n_cut) as f64;
        println!("JSON: {n_valid} answers by the schema, {n_cut} cut by the limit, {each:.1} tokens each");
    }
}

fn print_row(is_first: bool, level: &str, s: &Summary, n_wrong: usize, n_check: usize) {
    if is_first {
        println!(
            "   users   ok  bad  429  tokens/s  steady   good/s   TTFT p50   p95   p99 ms  TPOT p50   p99   \
             gap p50   p95   p99   max ms  same alone"
        );
    }
    let steady = s.window.as_ref().map_or_else(|| "-".into(), |w| format!("{:.1}", w.token_rate));
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
