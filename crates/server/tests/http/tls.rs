//! Connections with TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chaski_server::Tls;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::serve::{Running, Setup};

/// An authority, which signs certificates for `localhost`.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes a certificate and its key.
    fn write(&self, folder: &Path) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
        std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    }
}

fn tls(folder: &Path) -> Tls {
    Tls { cert: folder.join("cert.pem"), key: folder.join("key.pem"), client_ca: None }
}

fn start(tls: Tls) -> Running {
    let mut setup = Setup::built_in(1);
    setup.config.tls = Some(tls);
    setup.start()
}

fn address(running: &Running) -> String {
    running.url.strip_prefix("https://").expect("its address tells of TLS").to_owned()
}

/// The first line of an answer, the protocol that was agreed on, and the server's certificate.
async fn ask(
    address: &str,
    authority: &Authority,
    own: Option<&Path>,
) -> io::Result<(String, Option<Vec<u8>>, CertificateDer<'static>)> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.0.der().clone()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(folder) => {
            let cert = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
            let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
            builder.with_client_auth_cert(vec![cert], key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await?;
    let mut stream =
        TlsConnector::from(Arc::new(config)).connect("localhost".try_into().unwrap(), stream).await?;
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let session = stream.get_ref().1;
    let certificate = session.peer_certificates().unwrap()[0].clone().into_owned();
    let protocol = session.alpn_protocol().map(<[u8]>::to_vec);
    Ok((text.lines().next().unwrap_or_default().to_owned(), protocol, certificate))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), future).await.unwrap() })
}

#[test]
fn certificates_are_read_again_when_they_change() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.write(folder.path());
    let running = start(tls(folder.path()));
    let address = address(&running);
    // One that says nothing keeps nobody out.
    let _silent = std::net::TcpStream::connect(&address).unwrap();
    let (line, protocol, first) = block_on(ask(&address, &authority, None)).unwrap();
    assert_eq!((line.as_str(), protocol.as_deref()), ("HTTP/1.1 200 OK", Some(&b"http/1.1"[..])));
    // Half a change changes nothing.
    std::fs::write(folder.path().join("cert.pem"), "").unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(block_on(ask(&address, &authority, None)).unwrap().2, first);
    authority.write(folder.path());
    let start = Instant::now();
    while block_on(ask(&address, &authority, None)).unwrap().2 == first {
        assert!(start.elapsed() < Duration::from_secs(10), "the old certificate stays");
        std::thread::sleep(Duration::from_millis(50));
    }
    let plain = ureq::get(address.replace("127.0.0.1", "http://127.0.0.1")).call();
    assert!(plain.is_err(), "without TLS there is no answer");
    assert!(block_on(ask(&address, &Authority::new(), None)).is_err(), "another authority did not sign it");
}

#[test]
fn clients_may_need_certificates() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.write(folder.path());
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, authority.0.pem()).unwrap();
    let running = start(Tls { client_ca: Some(ca), ..tls(folder.path()) });
    let address = address(&running);
    assert!(block_on(ask(&address, &authority, None)).is_err());
    assert_eq!(block_on(ask(&address, &authority, Some(folder.path()))).unwrap().0, "HTTP/1.1 200 OK");
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let bind = |tls: Tls| {
        let mut config = chaski_server::ServerConfig::default();
        config.listen = vec![chaski_server::Listen::Tcp(([127, 0, 0, 1], 0).into())];
        config.tls = Some(tls);
        let error = block_on(chaski_server::Server::bind(config)).map(drop).unwrap_err();
        error.source.to_string()
    };
    assert!(bind(tls(folder.path())).contains("key.pem`"), "{}", bind(tls(folder.path())));
    Authority::new().write(folder.path());
    std::fs::write(folder.path().join("cert.pem"), "nothing").unwrap();
    let error = bind(tls(folder.path()));
    assert!(error.contains("cert.pem`: the file has no certificate"), "{error}");
}
