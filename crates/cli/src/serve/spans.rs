//! The option for spans of requests.

use std::ffi::OsString;

use chaski_server::Collector;

/// The variable of OpenTelemetry that names a collector for all programs.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SpansArgs {
    /// Collector that takes spans of requests by OTLP over HTTP, such as http://127.0.0.1:4318; by default that of
    /// OTEL_EXPORTER_OTLP_ENDPOINT
    #[arg(long, value_name = "URL")]
    otlp: Option<Collector>,
}

impl SpansArgs {
    /// The collector; takes note of one in the environment that cannot be used.
    pub(super) fn collector(&self, note: impl FnOnce(&str)) -> Option<Collector> {
        self.otlp.clone().or_else(|| of_environment(std::env::var_os(ENDPOINT)?, note))
    }
}

/// The collector of the variable. It is meant for other programs, too, and these know other ways: none is an error.
fn of_environment(value: OsString, note: impl FnOnce(&str)) -> Option<Collector> {
    let text = value.to_string_lossy();
    if text.is_empty() {
        return None;
    }
    match text.parse() {
        Ok(collector) => Some(collector),
        Err(error) => {
            note(&format!("no spans are sent: {ENDPOINT}: {error}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        spans: SpansArgs,
    }

    /// The collector of a value, and whether there was a note.
    fn of(value: &str) -> (Option<Collector>, bool) {
        let mut notes = 0;
        let found = of_environment(value.into(), |_| notes += 1);
        (found, notes > 0)
    }

    #[test]
    fn the_environment_is_no_error() {
        assert_eq!(of("http://127.0.0.1:4318"), ("http://127.0.0.1:4318".parse().ok(), false));
        assert_eq!(of(""), (None, false), "empty as if unset");
        for text in ["https://collector.example", "collector:4317", "http://", "http:// x"] {
            assert_eq!(of(text), (None, true), "{text}");
        }
    }

    #[test]
    fn an_option_without_an_address_is_an_error() {
        let parsed = |url| Command::try_parse_from(["chaski", "--otlp", url]);
        assert!(parsed("http://127.0.0.1:4318").is_ok_and(|command| command.spans.otlp.is_some()));
        let error = parsed("https://collector.example").err().expect("it is none").to_string();
        assert!(
            error.contains("`https://collector.example` is no address of a collector: http://HOST:PORT"),
            "{error}"
        );
    }
}
