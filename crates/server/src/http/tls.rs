//! TLS: certificates, and their renewal while the server runs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore};
use tokio_rustls::server::TlsStream;

use crate::config::{Entry, Log, Tls};

/// Time for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The shortest time between two looks at the files.
const LOOK: Duration = Duration::from_secs(1);

/// Takes connections with the certificates of files, as they are now.
pub struct Acceptor {
    files: Tls,
    /// Those that clients may choose (ALPN).
    protocols: &'static [&'static [u8]],
    now: Mutex<Now>,
    log: Option<Log>,
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").field("files", &self.files).finish_non_exhaustive()
    }
}

/// The certificates in force.
struct Now {
    config: Arc<rustls::ServerConfig>,
    /// When the files changed.
    stamp: Vec<Option<SystemTime>>,
    looked: Instant,
}

impl Acceptor {
    /// Reads the files. Clients choose one of the protocols by its name in ALPN, such as `http/1.1`. Certificates in
    /// force that stay, because new ones cannot be used, are noted in the log.
    ///
    /// # Errors
    /// Files that cannot be read, have no certificate or key, or do not fit each other.
    pub fn new(files: Tls, protocols: &'static [&'static [u8]], log: Option<Log>) -> io::Result<Acceptor> {
        let (stamp, config) = (stamp(&files), config(&files, protocols)?);
        let now = Now { config: Arc::new(config), stamp, looked: Instant::now() };
        Ok(Acceptor { files, protocols, now: Mutex::new(now), log })
    }

    /// The handshake of a connection.
    ///
    /// # Errors
    /// A client that does not speak TLS, or not in time.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<TlsStream<S>> {
        let handshake = TlsAcceptor::from(self.config()).accept(stream);
        tokio::time::timeout(HANDSHAKE, handshake).await?
    }

    fn note(&self, text: String) {
        if let Some(log) = &self.log {
            log(&Entry::Note(text));
        }
    }

    /// Reads the files, changed or not.
    pub(crate) fn renew(&self) {
        self.read(&mut self.now.lock().unwrap_or_else(|e| e.into_inner()));
    }

    fn read(&self, now: &mut Now) {
        now.stamp = stamp(&self.files);
        match config(&self.files, self.protocols) {
            Ok(config) => now.config = Arc::new(config),
            Err(error) => self.note(format!("the certificates in force stay: {error}")),
        }
    }

    /// The certificates; those of the files if they have changed and can be read.
    #[doc(hidden)]
    pub fn config(&self) -> Arc<rustls::ServerConfig> {
        let mut now = self.now.lock().unwrap_or_else(|e| e.into_inner());
        if now.looked.elapsed() >= LOOK {
            now.looked = Instant::now();
            if stamp(&self.files) != now.stamp {
                self.read(&mut now);
            }
        }
        now.config.clone()
    }
}

/// When the files changed.
fn stamp(files: &Tls) -> Vec<Option<SystemTime>> {
    let paths = [Some(&files.cert), Some(&files.key), files.client_ca.as_ref()];
    paths.into_iter().flatten().map(|path| std::fs::metadata(path).ok()?.modified().ok()).collect()
}

fn config(files: &Tls, protocols: &[&[u8]]) -> io::Result<rustls::ServerConfig> {
    let wrong = |path: &Path, what: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("`{}`: {what}", path.display()))
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| wrong(path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| wrong(path, &error))?)
        }
    };
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let config = builder.with_single_cert(certificates(&files.cert)?, key);
    let mut config = config.map_err(|error| wrong(&files.cert, &error))?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// The certificates of a file, of which there is at least one.
fn certificates(path: &PathBuf) -> io::Result<Vec<CertificateDer<'static>>> {
    let wrong =
        |what: String| io::Error::new(io::ErrorKind::InvalidInput, format!("`{}`: {what}", path.display()));
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| wrong(error.to_string()))?;
    if all.is_empty() { Err(wrong("the file has no certificate".into())) } else { Ok(all) }
}
