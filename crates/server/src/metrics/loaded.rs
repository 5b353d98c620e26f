//! The state of the models that are loaded at this time. Each text of it is made anew, so that nothing stays of a model
//! that has left.

use std::sync::Arc;

use metrics::Label;
use metrics_exporter_prometheus::PrometheusBuilder;

use super::{HELP, Recorder, labels};
use crate::model::Served;

/// Gauges of models, as text.
pub(super) fn text(models: &[Arc<Served>]) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let gauges = Recorder(recorder);
    for served in models {
        load(&gauges, served);
        loras(&gauges, served);
    }
    for (name, text) in HELP {
        gauges.describe(name, text);
    }
    handle.render()
}

fn load(gauges: &Recorder, served: &Served) {
    let (load, id) = (served.load(), &served.facts.id);
    let set = |name, value: f64| gauges.gauge(name, labels(name, id)).set(value);
    set("vllm:num_requests_running", load.n_running as f64);
    set("vllm:num_requests_waiting", load.n_waiting as f64);
    set("vllm:kv_cache_usage_perc", load.n_used() as f64 / load.n_token().max(1) as f64);
    let name = "vllm:cache_config_info";
    let mut cache = labels(name, id);
    cache.push(Label::new("block_size", load.page.to_string()));
    cache.push(Label::new("num_gpu_blocks", load.pages.n_page.to_string()));
    cache.push(Label::new("enable_prefix_caching", "True"));
    gauges.gauge(name, cache).set(1.0);
    let model = || vec![Label::new("model", id.clone())];
    gauges.gauge("chaski_model_loaded", model()).set(1.0);
    gauges.gauge("chaski_queue_tokens", model()).set(served.queue.n_token() as f64);
    for (what, n_byte) in &served.memory {
        let labels = [model(), vec![Label::new("kind", *what)]].concat();
        gauges.gauge("chaski_gpu_memory_bytes", labels).set(*n_byte as f64);
    }
}

/// LoRAs in use: as vLLM has it, their names are labels, and the value is the time.
fn loras(gauges: &Recorder, served: &Served) {
    let [running, waiting] = served.facts.loras.in_use().map(|names| names.join(","));
    let name = "vllm:lora_requests_info";
    let own = [
        ("max_lora", served.facts.loras.len().to_string()),
        ("running_lora_adapters", running),
        ("waiting_lora_adapters", waiting),
    ];
    let own = own.map(|(name, value)| Label::new(name, value));
    let labels = [labels(name, &served.facts.id), own.into()].concat();
    gauges.gauge(name, labels).set(crate::clock::now() as f64);
}
