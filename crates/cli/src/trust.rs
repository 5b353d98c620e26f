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
    /// `None` for the public ones.
    own: Option<Vec<CertificateDer<'static>>>,
}

impl Trust {
    /// Those of the option.
    ///
    /// # Errors
    /// A file that cannot be read, or has no certificate.
    pub(crate) fn new(args: &TrustArgs) -> anyhow::Result<Trust> {
        Ok(Trust { own: args.tls_ca.as_deref().map(read).transpose()? })
    }

    /// For sockets.
    ///
    /// # Errors
    /// Certificates that are none.
    pub(crate) fn of_sockets(&self) -> anyhow::Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        match &self.own {
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Some(own) => own.iter().try_for_each(|one| roots.add(one.clone()))?,
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
    }

    /// For requests.
    pub(crate) fn of_requests(&self) -> TlsConfig {
        let roots = match &self.own {
            None => RootCerts::WebPki,
            Some(own) => {
                let own = own.iter().map(|one| Certificate::from_der(one).to_owned());
                RootCerts::Specific(Arc::new(own.collect()))
            }
        };
        TlsConfig::builder().root_certs(roots).build()
    }
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
        assert!(trust().unwrap().of_sockets().is_ok());
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        assert!(trust().unwrap().of_sockets().is_err());
        assert!(Trust::new(&TrustArgs::default()).unwrap().of_sockets().is_ok());
    }
}
