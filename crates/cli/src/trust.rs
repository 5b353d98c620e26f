//! Certificates of hubs that are trusted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The option.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TrustArgs {
    /// File with the certificates, in PEM, of the authorities that certify the hub, or the hub's own [default: the
    /// public authorities]
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
}

/// Authorities that certify hubs.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    /// For sockets.
    pub(crate) of_sockets: Arc<ClientConfig>,
    /// For requests.
    pub(crate) of_requests: TlsConfig,
}

impl Trust {
    /// Those of the option.
    ///
    /// # Errors
    /// A file that cannot be read, or has no certificate, or one that is none.
    pub(crate) fn new(args: &TrustArgs) -> anyhow::Result<Trust> {
        let mut roots = RootCertStore::empty();
        let of_requests = match &args.tls_ca {
            None => {
                roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
                RootCerts::WebPki
            }
            Some(file) => {
                let own = read(file)?;
                let of_requests = own.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
                let shown = file.display();
                for one in own {
                    roots.add(one).with_context(|| format!("`{shown}` has a certificate that is none"))?;
                }
                RootCerts::Specific(Arc::new(of_requests))
            }
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(Trust {
            of_sockets: Arc::new(config.with_root_certificates(roots).with_no_client_auth()),
            of_requests: TlsConfig::builder().root_certs(of_requests).build(),
        })
    }
}

/// True for a hub whose certificate is not trusted.
pub(crate) fn is_untrusted(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        // Errors of handshakes come as those of the system.
        let inside = cause.downcast_ref::<std::io::Error>().and_then(|e| e.get_ref()?.downcast_ref());
        let cause = cause.downcast_ref().or(inside);
        matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
    })
}

fn read(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let shown = file.display();
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.with_context(|| format!("cannot read the certificates in `{shown}`"))?;
    ensure!(!all.is_empty(), "`{shown}` has no certificate");
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let trust = || Trust::new(&TrustArgs { tls_ca: Some(file.clone()) });
        assert!(trust().unwrap_err().to_string().starts_with("cannot read the certificates in `"));
        std::fs::write(&file, "nothing\n").unwrap();
        assert!(trust().unwrap_err().to_string().ends_with("has no certificate"));
        let own = rcgen::generate_simple_self_signed(vec!["hub".to_owned()]).unwrap();
        std::fs::write(&file, own.cert.pem()).unwrap();
        assert!(trust().is_ok());
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        assert!(trust().unwrap_err().to_string().ends_with("has a certificate that is none"));
        assert!(Trust::new(&TrustArgs::default()).is_ok());
    }
}
