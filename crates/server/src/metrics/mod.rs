//! Measurements in Prometheus' format: those of vLLM and llama-server, so that dashboards and gateways work unchanged,
//! and those that they lack.

mod loaded;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chaski::Stats;
use chaski::serve::{Load, StepKind};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder as _};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::model::{Counts, Served};

static METADATA: Metadata<'_> = Metadata::new(module_path!(), Level::INFO, None);

/// Bounds of histograms of seconds.
const SECONDS: [f64; 18] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0,
    80.0,
];

/// Bounds of histograms of tokens.
const TOKENS: [f64; 16] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5];

/// The histogram of tokens in a step.
const ITERATION: &str = "vllm:iteration_tokens_total";

/// Counters whose values are no whole numbers, or are set.
const COUNTERS: [&str; 3] =
    ["llamacpp:prompt_seconds_total", "llamacpp:tokens_predicted_seconds_total", "llamacpp:n_tokens_max"];

/// Labels of a name for a model: those of vLLM tell which it is, those of llama-server, which has one, do not.
fn labels(name: &str, model: &str) -> Vec<Label> {
    match name.starts_with("vllm:") {
        true => vec![Label::new("model_name", model.to_owned()), Label::new("engine", "0")],
        false => Vec::new(),
    }
}

/// A recorder by names and labels.
struct Recorder(PrometheusRecorder);

impl Recorder {
    fn key(name: &'static str, labels: Vec<Label>) -> Key {
        Key::from_parts(name, labels)
    }

    fn counter(&self, name: &'static str, labels: Vec<Label>) -> Counter {
        self.0.register_counter(&Recorder::key(name, labels), &METADATA)
    }

    fn gauge(&self, name: &'static str, labels: Vec<Label>) -> Gauge {
        self.0.register_gauge(&Recorder::key(name, labels), &METADATA)
    }

    fn histogram(&self, name: &'static str, labels: Vec<Label>) -> Histogram {
        self.0.register_histogram(&Recorder::key(name, labels), &METADATA)
    }

    /// Descriptions have no kind.
    fn describe(&self, name: &'static str, text: &'static str) {
        self.0.describe_counter(KeyName::from_const_str(name), None, text.into());
    }
}

/// Measurements of a server.
pub(crate) struct Metrics {
    recorder: Recorder,
    handle: PrometheusHandle,
    /// Seconds since 1970 at the start.
    started_at: u64,
    /// Most tokens of a prompt with its answer.
    most: AtomicU64,
    /// Steps of all models, and rows of answers in them.
    n_step: AtomicU64,
    n_row: AtomicU64,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let suffix = |text: &str| Matcher::Suffix(text.into());
        // The bounds are constants and not empty.
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(suffix("_seconds"), &SECONDS)
            .and_then(|builder| builder.set_buckets_for_metric(suffix("_tokens"), &TOKENS))
            .and_then(|builder| builder.set_buckets_for_metric(Matcher::Full(ITERATION.into()), &TOKENS))
            .expect("the bounds of histograms are not empty")
            .build_recorder();
        let handle = recorder.handle();
        let recorder = Recorder(recorder);
        HELP.into_iter().for_each(|(name, text)| recorder.describe(name, text));
        let zero = AtomicU64::default;
        let started_at = crate::clock::now();
        Metrics { recorder, handle, started_at, most: zero(), n_step: zero(), n_row: zero() }
    }

    /// Seconds since 1970 at which they begin.
    pub(crate) fn started_at(&self) -> u64 {
        self.started_at
    }

    fn counter(&self, name: &'static str, labels: Vec<Label>) -> Counter {
        self.recorder.counter(name, labels)
    }

    fn gauge(&self, name: &'static str, labels: Vec<Label>) -> Gauge {
        self.recorder.gauge(name, labels)
    }

    fn histogram(&self, name: &'static str, model: &str) -> Histogram {
        self.recorder.histogram(name, labels(name, model))
    }

    fn add(&self, name: &'static str, model: &str, n: usize) {
        self.counter(name, labels(name, model)).increment(n as u64);
    }

    /// A response, and the word for a request that was refused. Paths of no endpoint share one label. Those who ask
    /// about the state are told it, not refused.
    pub(crate) fn http(&self, route: Option<&str>, status: u16, refusal: Option<&'static str>) {
        let route = route.unwrap_or("other").to_owned();
        let is_probe = matches!(&*route, "/health" | "/v1/health" | "/readyz");
        let labels = vec![Label::new("path", route), Label::new("status", status.to_string())];
        self.counter("chaski_http_requests_total", labels).increment(1);
        if let Some(reason) = refusal.filter(|_| !is_probe) {
            let reason = vec![Label::new("reason", reason)];
            self.counter("chaski_rejected_total", reason).increment(1);
        }
    }

    /// A prompt that starts to run.
    pub(crate) fn started(&self, model: &str, n_prompt: usize, n_cached: usize, waited: Duration) {
        self.add("vllm:prefix_cache_queries_total", model, n_prompt + n_cached);
        self.add("vllm:prefix_cache_hits_total", model, n_cached);
        self.histogram("vllm:request_queue_time_seconds", model).record(waited);
    }

    /// The times between tokens of an answer.
    pub(crate) fn gaps(&self, model: &str) -> Histogram {
        self.histogram("vllm:inter_token_latency_seconds", model)
    }

    /// The tokens of an answer that has ended in any way.
    pub(crate) fn tokens(&self, model: &str, stats: &Stats) {
        let n_prompt = stats.n_prompt + stats.n_cached;
        for (name, n) in [
            ("vllm:prompt_tokens_total", n_prompt),
            ("vllm:generation_tokens_total", stats.n_token),
            ("llamacpp:prompt_tokens_total", stats.n_prompt),
            ("llamacpp:prompt_tokens_cached_total", stats.n_cached),
            ("llamacpp:tokens_predicted_total", stats.n_token),
            ("vllm:spec_decode_num_drafts_total", stats.n_draft),
            ("vllm:spec_decode_num_draft_tokens_total", stats.n_drafted),
            ("vllm:spec_decode_num_accepted_tokens_total", stats.n_accepted),
            ("llamacpp:spec_decode_num_drafts_total", stats.n_draft),
            ("llamacpp:spec_decode_num_draft_tokens_total", stats.n_drafted),
            ("llamacpp:spec_decode_num_accepted_tokens_total", stats.n_accepted),
        ] {
            self.add(name, model, n);
        }
    }

    /// An answer that has ended by itself.
    pub(crate) fn finished(&self, model: &str, stats: &Stats, whole: Duration) {
        let n_prompt = stats.n_prompt + stats.n_cached;
        let seconds = |name, time: Duration| self.gauge(name, Vec::new()).increment(time.as_secs_f64());
        seconds("llamacpp:prompt_seconds_total", stats.prefill());
        seconds("llamacpp:tokens_predicted_seconds_total", stats.decode);
        self.gauge("llamacpp:prompt_tokens_seconds", Vec::new()).set(stats.prompt_rate());
        self.gauge("llamacpp:predicted_tokens_seconds", Vec::new()).set(stats.token_rate());
        let each = stats.decode.as_secs_f64() / stats.n_token.saturating_sub(1).max(1) as f64;
        for (name, value) in [
            ("vllm:time_to_first_token_seconds", stats.ttft.as_secs_f64()),
            ("vllm:request_prefill_time_seconds", stats.prefill().as_secs_f64()),
            ("vllm:request_decode_time_seconds", stats.decode.as_secs_f64()),
            ("vllm:e2e_request_latency_seconds", whole.as_secs_f64()),
            ("vllm:request_prompt_tokens", n_prompt as f64),
            ("vllm:request_generation_tokens", stats.n_token as f64),
            ("vllm:request_time_per_output_token_seconds", each),
        ] {
            self.histogram(name, model).record(value);
        }
        let n_token = (n_prompt + stats.n_token) as u64;
        let n_most = self.most.fetch_max(n_token, Ordering::Relaxed).max(n_token);
        self.gauge("llamacpp:n_tokens_max", Vec::new()).set(n_most as f64);
    }

    /// Prompts without answers, for embeddings and scores.
    pub(crate) fn read(&self, model: &str, n_prompt: usize, whole: Duration) {
        self.add("vllm:prompt_tokens_total", model, n_prompt);
        self.add("llamacpp:prompt_tokens_total", model, n_prompt);
        self.histogram("vllm:e2e_request_latency_seconds", model).record(whole.as_secs_f64());
        self.ended(model, "stop");
    }

    /// Everything that models have counted since the last call.
    pub(crate) fn count(&self, models: &[Arc<Served>]) {
        for served in models {
            let id = &served.facts.id;
            for step in served.take_steps() {
                let kind = match step.kind {
                    StepKind::Prefill => "prefill",
                    StepKind::Decode => "decode",
                    StepKind::Mixed => "mixed",
                };
                let labels = vec![Label::new("model", id.clone()), Label::new("kind", kind)];
                let times = self.recorder.histogram("chaski_step_seconds", labels);
                let tokens = self.histogram(ITERATION, id);
                for _ in 0..step.n_repeat {
                    times.record(step.time.as_secs_f64());
                    tokens.record(step.n_row as f64);
                }
            }
            let Counts { n_preempted, n_recovered, n_step, n_row } = served.take_counts();
            self.n_step.fetch_add(n_step, Ordering::Relaxed);
            self.n_row.fetch_add(n_row, Ordering::Relaxed);
            let name = "vllm:num_preemptions_total";
            self.counter(name, labels(name, id)).increment(n_preempted);
            let model = vec![Label::new("model", id.clone())];
            self.counter("chaski_device_losses_total", model).increment(n_recovered);
        }
    }

    /// An answer that has ended in any way.
    pub(crate) fn ended(&self, model: &str, reason: &'static str) {
        let name = "vllm:request_success_total";
        let mut labels = labels(name, model);
        labels.push(Label::new("finished_reason", reason));
        self.counter(name, labels).increment(1);
    }

    /// Sums up what has been recorded since the last call. Until then each value of a histogram takes memory.
    pub(crate) fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// All of them as text, with the load of the models at this time, and the bytes that they may take.
    pub(crate) fn text(&self, models: &[Arc<Served>], budget: Option<u64>) -> String {
        self.count(models);
        if let Some(n_byte) = budget {
            self.gauge("chaski_models_memory_bytes", Vec::new()).set(n_byte as f64);
        }
        let loads: Vec<Load> = models.iter().map(|served| served.load()).collect();
        let sum = |of: fn(&Load) -> usize| loads.iter().map(of).sum::<usize>() as f64;
        self.gauge("llamacpp:requests_processing", Vec::new()).set(sum(|load| load.n_running));
        self.gauge("llamacpp:requests_deferred", Vec::new()).set(sum(|load| load.n_waiting));
        let [steps, rows] = [&self.n_step, &self.n_row].map(|n| n.load(Ordering::Relaxed));
        self.counter("llamacpp:n_decode_total", Vec::new()).absolute(steps);
        self.gauge("llamacpp:n_busy_slots_per_decode", Vec::new()).set(rows as f64 / steps.max(1) as f64);
        let version = vec![Label::new("version", env!("CARGO_PKG_VERSION"))];
        self.gauge("chaski_build_info", version).set(1.0);
        self.upkeep();
        // Counters of the recorder are whole numbers that grow by steps.
        let text = self.handle.render() + &loaded::text(models);
        COUNTERS.iter().fold(text, |text, name| {
            text.replace(&format!("# TYPE {name} gauge"), &format!("# TYPE {name} counter"))
        })
    }
}

/// The same measurements as OpenMetrics has them: a counter is called by its name without `_total`, and what is one
/// without that end has no known kind.
pub(crate) fn openmetrics(text: &str) -> String {
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"));
    let counters: std::collections::HashSet<&str> = kinds.collect();
    let line = |line: &str| {
        let Some((word, rest)) = line.strip_prefix("# ").and_then(|line| line.split_once(' ')) else {
            return format!("{line}\n");
        };
        let (name, said) = rest.split_once(' ').unwrap_or((rest, ""));
        match (counters.contains(name), name.strip_suffix("_total")) {
            (true, Some(short)) => format!("# {word} {short} {said}\n"),
            (true, None) if word == "TYPE" => format!("# TYPE {name} unknown\n"),
            _ => format!("{line}\n"),
        }
    };
    let lines = text.lines().filter(|line| !line.is_empty()).map(line);
    lines.chain(["# EOF\n".to_owned()]).collect()
}

/// Descriptions of all of them.
const HELP: [(&str, &str); 48] = [
    ("chaski_build_info", "The version of the server."),
    ("chaski_device_losses_total", "Devices that were lost and recovered."),
    ("chaski_gpu_memory_bytes", "Memory of a loaded model by kind."),
    ("chaski_http_requests_total", "Responses by path and status."),
    ("chaski_model_loaded", "1 for each model that is loaded."),
    ("chaski_models_memory_bytes", "Memory that loaded models may take."),
    ("chaski_queue_tokens", "Tokens of prompts that wait."),
    ("chaski_rejected_total", "Refused requests by reason."),
    ("chaski_step_seconds", "Time of a step by kind: prefill, decode, or mixed."),
    ("llamacpp:n_busy_slots_per_decode", "Mean number of rows in a step."),
    ("llamacpp:n_decode_total", "Steps."),
    ("llamacpp:n_tokens_max", "Most tokens of a prompt with its answer."),
    ("llamacpp:predicted_tokens_seconds", "Tokens per second of the last answer."),
    ("llamacpp:prompt_seconds_total", "Seconds of prompts."),
    ("llamacpp:prompt_tokens_cached_total", "Tokens of prompts that were cached."),
    ("llamacpp:prompt_tokens_seconds", "Tokens per second of the last prompt."),
    ("llamacpp:prompt_tokens_total", "Tokens of prompts that were run."),
    ("llamacpp:requests_deferred", "Requests that wait."),
    ("llamacpp:requests_processing", "Requests that run."),
    ("llamacpp:spec_decode_num_accepted_tokens_total", "Tokens of drafts that were accepted."),
    ("llamacpp:spec_decode_num_draft_tokens_total", "Tokens of drafts."),
    ("llamacpp:spec_decode_num_drafts_total", "Drafts."),
    ("llamacpp:tokens_predicted_seconds_total", "Seconds of answers after their first tokens."),
    ("llamacpp:tokens_predicted_total", "Tokens of answers."),
    ("vllm:cache_config_info", "Pages of the KV cache, and their size."),
    ("vllm:e2e_request_latency_seconds", "Time from a request to the end of its answer."),
    ("vllm:generation_tokens_total", "Tokens of answers."),
    ("vllm:inter_token_latency_seconds", "Time between tokens."),
    ("vllm:iteration_tokens_total", "Tokens in a step."),
    ("vllm:kv_cache_usage_perc", "Part of the KV cache in use, from 0 to 1."),
    ("vllm:lora_requests_info", "LoRAs that requests use, by name; the value is the time."),
    ("vllm:num_preemptions_total", "Requests that gave up their place for a while."),
    ("vllm:num_requests_running", "Requests that run."),
    ("vllm:num_requests_waiting", "Requests that wait."),
    ("vllm:prefix_cache_hits_total", "Tokens of prompts that were cached."),
    ("vllm:prefix_cache_queries_total", "Tokens of prompts that were looked for in the cache."),
    ("vllm:prompt_tokens_total", "Tokens of prompts, cached ones included."),
    ("vllm:request_decode_time_seconds", "Time from the first token of an answer to its last."),
    ("vllm:request_generation_tokens", "Tokens of an answer."),
    ("vllm:request_prefill_time_seconds", "Time of a prompt."),
    ("vllm:request_prompt_tokens", "Tokens of a prompt."),
    ("vllm:request_queue_time_seconds", "Time in the queue."),
    ("vllm:request_success_total", "Answers by the reason of their end."),
    ("vllm:request_time_per_output_token_seconds", "Mean time of a token after the first."),
    ("vllm:spec_decode_num_accepted_tokens_total", "Tokens of drafts that were accepted."),
    ("vllm:spec_decode_num_draft_tokens_total", "Tokens of drafts."),
    ("vllm:spec_decode_num_drafts_total", "Drafts."),
    ("vllm:time_to_first_token_seconds", "Time to the first token."),
];
