//! Prompts and answers of several sequences at once, like llama-batched-bench.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use chaski::Engine;
use chaski::steps::Executor as _;
use chaski::steps::Runner;
use serde_json::{Value, json};

use super::measure::random_tokens;
use super::output::Format;
use super::record::{cpu_info, now};
use super::steps::Steps;
use crate::progress::Progress;
use crate::ui::{self, Side};

/// One test.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// Prompt tokens of each sequence.
    pub(super) n_prompt: u32,
    /// Generated tokens of each sequence.
    pub(super) n_gen: u32,
    /// Sequences at once.
    pub(super) n_seq: u32,
}

impl Batch {
    /// The part of it that is run as warm-up.
    pub(super) fn short(&self) -> Batch {
        Batch { n_prompt: self.n_prompt.min(32), n_gen: self.n_gen.min(4), ..*self }
    }

    /// Tokens in the KV cache at the end.
    pub(super) fn n_kv(self) -> u32 {
        self.n_seq * (self.n_prompt + self.n_gen)
    }
}

/// Times of a test.
#[derive(Copy, Clone, Debug)]
pub(super) struct Times {
    prompt: Duration,
    answer: Duration,
    /// CPU time to record and submit a step of answers.
    host: Duration,
}

/// Runs a test once.
pub(super) fn run(
    runner: &mut Runner,
    batch: Batch,
    group: u32,
    chunk: u32,
    progress: &Progress,
) -> anyhow::Result<Times> {
    let tokens = random_tokens(runner.n_ctx() as usize, runner.n_vocab());
    runner.forget();
    let mut steps = Steps::new(runner, group, chunk, progress);
    let start = Instant::now();
    steps.prompts(&tokens, batch.n_prompt, batch.n_seq)?;
    let prompt = start.elapsed();
    let start = Instant::now();
    steps.answers(&vec![batch.n_prompt; batch.n_seq as usize], batch.n_gen)?;
    let host = steps.host / batch.n_gen.max(1);
    let answer = start.elapsed();
    steps.begin();
    Ok(Times { prompt, answer, host })
}

/// Writes results as they arrive, in the columns of llama-batched-bench.
pub(super) struct Writer<W> {
    out: W,
    format: Format,
    n: usize,
}

/// Columns of the table: title and field.
const COLUMNS: [(&str, &str); 10] = [
    ("PP", "pp"),
    ("TG", "tg"),
    ("B", "pl"),
    ("N_KV", "n_kv"),
    ("T_PP s", "t_pp"),
    ("S_PP t/s", "speed_pp"),
    ("T_TG s", "t_tg"),
    ("S_TG t/s", "speed_tg"),
    ("T s", "t"),
    ("S t/s", "speed"),
];

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W, format: Format) -> Self {
        Writer { out, format, n: 0 }
    }

    pub(super) fn add(&mut self, record: &Value) -> io::Result<()> {
        match self.format {
            Format::Md => self.row(record)?,
            Format::Json => write!(self.out, "{}{record:#}", if self.n == 0 { "[\n" } else { ",\n" })?,
            Format::Jsonl => writeln!(self.out, "{record}")?,
            Format::Csv => {
                if self.n == 0 {
                    writeln!(self.out, "{}", COLUMNS.map(|(_, field)| field).join(","))?;
                }
                writeln!(self.out, "{}", COLUMNS.map(|(_, field)| record[field].to_string()).join(","))?;
            }
            Format::None => {}
            Format::Sql => unreachable!("it is refused before anything is measured"),
        }
        self.n += 1;
        self.out.flush()
    }

    fn row(&mut self, record: &Value) -> io::Result<()> {
        let width = |title: &str| title.len().max(8);
        if self.n == 0 {
            writeln!(
                self.out,
                "{}",
                ui::row(COLUMNS.iter().map(|(title, _)| (*title, width(title), Side::Right)))
            )?;
            writeln!(self.out, "{}", ui::rule(COLUMNS.iter().map(|(title, _)| (width(title), Side::Right))))?;
        }
        let cells = COLUMNS.map(|(title, field)| (title, cell(title, &record[field])));
        writeln!(
            self.out,
            "{}",
            ui::row(cells.iter().map(|(title, cell)| (cell.as_str(), width(title), Side::Right)))
        )
    }

    pub(super) fn end(&mut self) -> io::Result<()> {
        if self.format == Format::Json {
            writeln!(self.out, "{}", if self.n == 0 { "[]" } else { "\n]" })?;
        }
        self.out.flush()
    }
}

/// Counts as they are, times in milliseconds, rates in hundredths.
fn cell(title: &str, value: &Value) -> String {
    match value.as_f64() {
        Some(v) if title.ends_with(" s") => format!("{v:.3}"),
        Some(v) if title.ends_with("t/s") => format!("{v:.2}"),
        _ => value.to_string(),
    }
}

/// The fields of llama-batched-bench, and those of llama-bench that say of what, where and when.
pub(super) fn record(engine: &Engine, batch: Batch, times: Times, n_ubatch: u32) -> Value {
    let info = engine.info();
    let gpus: Vec<&str> = engine.gpus().iter().map(|gpu| gpu.summary().name.as_str()).collect();
    let total = times.prompt + times.answer;
    let seconds = |t: Duration| (t.as_secs_f64() * 1e6).round() / 1e6;
    let rate = |n: u32, t: Duration| (f64::from(n) / t.as_secs_f64().max(1e-12) * 1e3).round() / 1e3;
    json!({
        "build_commit": env!("CHASKI_COMMIT"),
        "cpu_info": cpu_info(),
        "gpu_info": gpus.join(", "),
        "driver": engine.device().driver,
        "wgpu": env!("CHASKI_WGPU_VERSION"),
        "test_time": now(),
        "model_filename": info.file,
        "model_type": info.description,
        "model_size": info.n_byte,
        "device": engine.device().name,
        "n_kv_max": engine.loaded().limits().n_page * engine.loaded().limits().page,
        "n_ubatch": n_ubatch,
        "is_pp_shared": 0,
        "pp": batch.n_prompt,
        "tg": batch.n_gen,
        "pl": batch.n_seq,
        "n_kv": batch.n_kv(),
        "t_pp": seconds(times.prompt),
        "speed_pp": rate(batch.n_seq * batch.n_prompt, times.prompt),
        "t_tg": seconds(times.answer),
        "speed_tg": rate(batch.n_seq * batch.n_gen, times.answer),
        "t": seconds(total),
        "speed": rate(batch.n_kv(), total),
        "host_us_per_step": (times.host.as_secs_f64() * 1e9).round() / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format) -> String {
        let record = json!({
            "pp": 128, "tg": 32, "pl": 4, "n_kv": 640, "t_pp": 0.5, "speed_pp": 1024.0, "t_tg": 1.0, "speed_tg": 128.0,
            "t": 1.5, "speed": 426.667,
        });
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out, format);
        (0..2).for_each(|_| w.add(&record).unwrap());
        w.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn table_has_the_columns_of_llama_batched_bench() {
        let text = written(Format::Md);
        let cells = |line: &str| {
            line.split('|').map(|c| c.trim().to_owned()).filter(|c| !c.is_empty()).collect::<Vec<_>>()
        };
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(cells(lines[0]), COLUMNS.map(|(title, _)| title));
        let values = ["128", "32", "4", "640", "0.500", "1024.00", "1.000", "128.00", "1.500", "426.67"];
        assert_eq!(cells(lines[2]), values);
    }

    #[test]
    fn json_is_an_array_and_lines_are_objects() {
        assert_eq!(serde_json::from_str::<Vec<Value>>(&written(Format::Json)).unwrap().len(), 2);
        assert!(written(Format::Jsonl).lines().all(|l| serde_json::from_str::<Value>(l).is_ok()));
        assert_eq!(
            written(Format::Csv).lines().next(),
            Some("pp,tg,pl,n_kv,t_pp,speed_pp,t_tg,speed_tg,t,speed")
        );
    }

    #[test]
    fn a_kv_cache_holds_all_prompts_and_answers() {
        assert_eq!(Batch { n_prompt: 128, n_gen: 32, n_seq: 4 }.n_kv(), 640);
    }
}
