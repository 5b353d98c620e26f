//! Options of swarms: those of a hub, and the token, in a file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use chaski_server::{Entry, Log, Tls, TlsAcceptor};
use chaski_swarm::Hedging;
use chaski_wire::Token;

/// Options of a hub.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Swarm options")]
pub(crate) struct SwarmArgs {
    /// Let workers compute experts of the model: they join at this address (`chaski worker ws://ADDR`), such as
    /// 127.0.0.1:8090
    #[arg(long, value_name = "ADDR")]
    pub(crate) swarm: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) token: TokenArgs,
    /// Certificate of the hub in PEM, for workers that join over TLS (wss://, https://)
    #[arg(long, value_name = "FILE", requires_all = ["swarm", "swarm_tls_key"])]
    pub(crate) swarm_tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM
    #[arg(long, value_name = "FILE", requires = "swarm_tls_cert")]
    pub(crate) swarm_tls_key: Option<PathBuf>,
    /// Listen beyond this machine without TLS: the network sees weights and activations
    #[arg(long, requires = "swarm")]
    pub(crate) insecure_lan: bool,
    /// Wait for this many workers, and until each expert has one, before the model is loaded
    #[arg(long, value_name = "N", requires = "swarm")]
    pub(crate) swarm_workers: Option<usize>,
    /// Workers that hold each expert
    #[arg(long, value_name = "N", default_value_t = 2, requires = "swarm")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) swarm_replicas: u8,
    /// Load no experts here: workers compute them, and what no worker holds is read from the file when it is needed
    #[arg(long, requires = "swarm")]
    pub(crate) experts_away: bool,
    /// Never compute experts here: what no worker holds is an error after 30 s, and what was read of a text stays
    #[arg(long, requires = "experts_away")]
    pub(crate) swarm_only: bool,
    /// Verify every result with a second worker, or the hub: twice the work, and no wrong token
    #[arg(long, requires = "swarm")]
    pub(crate) swarm_verify: bool,
    /// Ask a second worker for the same products: never, auto (when an answer is late, or where it costs nothing),
    /// always
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto", requires = "swarm")]
    #[arg(hide_possible_values = true)]
    pub(crate) swarm_hedge: HedgeArg,
    /// Send values in 16 bits, have workers sum the products of a token, and take workers of every kind: a fraction of
    /// the bytes on the network, and the hub may run on a GPU. Answers are near those of one machine, not equal to them
    #[arg(long, requires = "swarm")]
    pub(crate) swarm_fast: bool,
    /// With --swarm-fast: workers answer with each product instead of sums, and the experts of a layer are spread over
    /// all workers. For slow workers on a fast network
    #[arg(long, requires = "swarm_fast")]
    pub(crate) swarm_rows: bool,
    /// With --swarm-fast: let pages of another site join, such as https://example.com, beside the hub's own page
    #[arg(long, value_name = "ORIGIN", requires = "swarm_fast", value_parser = crate::swarm::origin)]
    pub(crate) swarm_origin: Vec<String>,
}

impl SwarmArgs {
    /// True for a hub whose answers have the bits of its workers, so it runs on the CPU as they do.
    pub(crate) fn is_exact_hub(&self) -> bool {
        self.swarm.is_some() && !self.swarm_fast
    }

    /// The certificates of the hub, which are read again when they change; `None` without.
    ///
    /// # Errors
    /// Files that cannot be read, or do not fit each other.
    pub(crate) fn tls(&self) -> anyhow::Result<Option<Arc<TlsAcceptor>>> {
        let (Some(cert), Some(key)) = (self.swarm_tls_cert.clone(), self.swarm_tls_key.clone()) else {
            return Ok(None);
        };
        let log: Log = Arc::new(|entry| {
            if let Entry::Note(text) = entry {
                tracing::warn!("{text}");
            }
        });
        // Sockets begin as HTTP/1.1.
        let acceptor = TlsAcceptor::new(Tls { cert, key, client_ca: None }, &[b"http/1.1"], Some(log));
        Ok(Some(Arc::new(acceptor.context("TLS of the swarm")?)))
    }
}

/// Policy of hedging.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HedgeArg {
    /// A task is repeated only if its worker fails.
    Never,
    /// Late tasks are repeated within 5 % of all; others where that costs nobody.
    #[default]
    Auto,
    /// Every task goes to two workers.
    Always,
}

impl From<HedgeArg> for Hedging {
    fn from(hedge: HedgeArg) -> Hedging {
        match hedge {
            HedgeArg::Never => Hedging::Never,
            HedgeArg::Auto => Hedging::Auto,
            HedgeArg::Always => Hedging::Always,
        }
    }
}

/// The file of a token.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TokenArgs {
    /// File with the token of the swarm: 32 hexadecimal digits, as `chaski swarm token` prints them
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

impl TokenArgs {
    /// Reads the token; `None` without a file.
    pub(crate) fn read(&self) -> anyhow::Result<Option<Token>> {
        self.token_file.as_deref().map(read).transpose()
    }
}

fn read(file: &Path) -> anyhow::Result<Token> {
    let shown = file.display();
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read the token in `{shown}`"))?;
    text.parse().with_context(|| format!("`{shown}` holds no token"))
}

/// Random bytes of the system.
pub(crate) fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).context("the system gives no random bytes")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let args = TokenArgs { token_file: Some(path.clone()) };
        assert!(args.read().unwrap_err().to_string().starts_with("cannot read the token in `"));
        std::fs::write(&path, "0f0f\n").unwrap();
        assert!(args.read().unwrap_err().to_string().ends_with("holds no token"));
        let token = Token::new(random().unwrap());
        std::fs::write(&path, format!("{}\n", token.reveal())).unwrap();
        assert_eq!(args.read().unwrap().unwrap().reveal(), token.reveal());
        assert!(TokenArgs::default().read().unwrap().is_none());
    }
}
