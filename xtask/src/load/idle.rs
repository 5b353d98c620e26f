//! Nothing of requests that have ended stays with a server: neither places nor pages of the KV cache.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::client::Client;

/// Time after which a server holds nothing more.
const LIMIT: Duration = Duration::from_secs(5);

/// Gauges that are zero then, by the names of vLLM, with a series for each model.
const GAUGES: [&str; 3] =
    ["vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"];

/// Waits until the server holds nothing of any request; returns how long that took.
///
/// # Errors
/// It has no such metrics, or still holds something after five seconds.
pub(crate) fn wait(client: &Client) -> anyhow::Result<Duration> {
    let start = Instant::now();
    loop {
        let metrics = client.metrics()?;
        let held = held(&metrics).context("the server's metrics")?;
        if held.is_empty() {
            return Ok(start.elapsed());
        }
        if start.elapsed() > LIMIT {
            bail!("after {} s the server still has {}", LIMIT.as_secs(), held.join(", "));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The lines of gauges that are not zero.
fn held(metrics: &str) -> anyhow::Result<Vec<&str>> {
    let mut held = Vec::new();
    for name in GAUGES {
        let mut has_any = false;
        for line in metrics.lines() {
            let Some(rest) = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' '])) else {
                continue;
            };
            let value: f64 = rest.rsplit(' ').next().unwrap_or_default().parse().context(line.to_owned())?;
            has_any = true;
            held.extend((value != 0.0).then_some(line));
        }
        if !has_any {
            bail!("no {name}");
        }
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_that_are_not_zero_are_held() {
        let idle = "# HELP vllm:num_requests_running Requests.\nvllm:num_requests_running{model_name=\"a b\"} 0\n\
                    vllm:num_requests_waiting{} 0\nvllm:kv_cache_usage_perc 0\n";
        assert_eq!(held(idle).expect("all three"), Vec::<&str>::new());
        let busy = idle.replace("usage_perc 0", "usage_perc 0.25");
        assert_eq!(held(&busy).expect("all three"), ["vllm:kv_cache_usage_perc 0.25"]);
        assert!(held("vllm:num_requests_running 0\n").is_err(), "others are missing");
        assert!(held(&idle.replace("{} 0", "{} many")).is_err(), "no number");
    }
}
