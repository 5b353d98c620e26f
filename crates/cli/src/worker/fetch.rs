//! Weights by ranges from the hub.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use chaski_wire::{Blob, Hex};

use crate::trust::Trust;

/// Time for the head of an answer, and for a connection.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time for the bytes of an answer.
const BODY: Duration = Duration::from_secs(600);

/// A hub's HTTP side.
#[derive(Clone, Debug)]
pub(crate) struct Hub {
    agent: ureq::Agent,
    /// Scheme, host and port, without a slash at the end.
    base: String,
    key: Hex<16>,
}

impl Hub {
    /// The hub behind the URL of its socket, `ws://host:port`, or `wss` with a certificate that is trusted.
    ///
    /// # Errors
    /// Another scheme.
    pub(crate) fn new(socket: &str, key: Hex<16>, trust: &Trust) -> anyhow::Result<Hub> {
        let agent = ureq::Agent::config_builder()
            .tls_config(trust.of_requests.clone())
            .timeout_connect(Some(TIMEOUT))
            .timeout_recv_response(Some(TIMEOUT))
            .timeout_recv_body(Some(BODY))
            // A hub names its own paths; whoever it redirects to would get the key.
            .max_redirects(0)
            .build();
        Ok(Hub { agent: agent.into(), base: base(socket)?, key })
    }

    /// A whole file, whose digest is the caller's concern.
    ///
    /// # Errors
    /// No answer, a refusal, or another length.
    pub(crate) fn blob(&self, blob: &Blob) -> anyhow::Result<Vec<u8>> {
        self.get(&blob.path, None, blob.length)
    }

    /// A range of a file.
    ///
    /// # Errors
    /// As [`Self::blob`].
    pub(crate) fn range(&self, path: &str, range: &Range<u64>) -> anyhow::Result<Vec<u8>> {
        self.get(path, Some(format!("bytes={}-{}", range.start, range.end - 1)), range.end - range.start)
    }

    fn get(&self, path: &str, range: Option<String>, length: u64) -> anyhow::Result<Vec<u8>> {
        // A hub cannot name other machines.
        ensure!(path.starts_with("/swarm/"), "the hub names `{path}`, which is no path of its own");
        let mut request = self
            .agent
            .get(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {}", self.key));
        if let Some(range) = range {
            request = request.header("range", range);
        }
        let answer = request.call().with_context(|| format!("the hub does not give `{path}`"))?;
        let bytes = answer.into_body().into_with_config().limit(length + 1).read_to_vec()?;
        let found = bytes.len() as u64;
        ensure!(found == length, "the hub gives {found} bytes of `{path}`, expected {length}");
        Ok(bytes)
    }
}

/// The address of HTTP behind that of a WebSocket.
///
/// # Errors
/// Another scheme than `ws` and `wss`.
pub(crate) fn base(socket: &str) -> anyhow::Result<String> {
    let (scheme, rest) = socket.split_once("://").unwrap_or(("", socket));
    let host = rest.split('/').next().unwrap_or_default();
    match scheme {
        "ws" if !host.is_empty() => Ok(format!("http://{host}")),
        "wss" if !host.is_empty() => Ok(format!("https://{host}")),
        _ => anyhow::bail!("`{socket}` is no address of a hub: expected ws://HOST:PORT or wss://HOST:PORT"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::TrustArgs;

    #[test]
    fn addresses_are_those_of_hubs() {
        assert_eq!(base("ws://127.0.0.1:8090").unwrap(), "http://127.0.0.1:8090");
        assert_eq!(base("ws://[::1]:1/swarm").unwrap(), "http://[::1]:1");
        assert_eq!(base("wss://hub.example").unwrap(), "https://hub.example");
        for wrong in ["127.0.0.1:1", "http://x", "ws://", "wss://"] {
            assert!(base(wrong).unwrap_err().to_string().ends_with("or wss://HOST:PORT"), "{wrong}");
        }
    }

    #[test]
    fn a_hub_names_only_its_own_paths() {
        let trust = Trust::new(&TrustArgs::default()).unwrap();
        let hub = Hub::new("ws://127.0.0.1:1", Hex([0; 16]), &trust).unwrap();
        for path in ["http://elsewhere/swarm/x", "/etc/passwd", "@elsewhere/swarm/"] {
            let error = hub.range(path, &(0..1)).unwrap_err().to_string();
            assert!(error.ends_with("which is no path of its own"), "{error}");
        }
    }
}
