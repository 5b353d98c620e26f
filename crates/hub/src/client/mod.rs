//! Requests: redirects are followed by hand, so that the token stays with the hub.

mod refusal;
mod retry;

use std::io::{ErrorKind, Read};

use ureq::http::header::{HeaderMap, LOCATION};
use ureq::http::{Request, StatusCode};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};

use crate::address::Address;
use crate::config::{HubConfig, Proxies, Roots, Token};
use crate::error::HubError;
use crate::job::Job;
use crate::name::HUB_HOSTS;

pub(crate) use refusal::Asked;
pub(crate) use retry::{Failure, Tries};

/// Most redirects of a request.
const MOST_REDIRECTS: usize = 10;
/// Most bytes of an answer in JSON.
const MOST_JSON: u64 = 64 << 20;

/// A client of the hub and of other servers.
pub(crate) struct Client {
    agent: Agent,
    pub(crate) endpoint: Address,
    token: Option<Token>,
    https_proxy: Option<Proxy>,
    http_proxy: Option<Proxy>,
}

/// An answer whose body is not read yet.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The address that gave it, behind redirects.
    pub(crate) address: Address,
    /// `X-Linked-Etag` of a redirect of the hub.
    pub(crate) linked_etag: Option<String>,
    body: Body,
}

impl Answer {
    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// `Content-Length`.
    pub(crate) fn length(&self) -> Option<u64> {
        self.header("content-length")?.trim().parse().ok()
    }

    /// The body, whatever its length.
    pub(crate) fn into_reader(self) -> impl Read {
        self.body.into_with_config().limit(u64::MAX).reader()
    }
}

impl Client {
    /// A client with these settings.
    ///
    /// # Errors
    /// [`HubError::Setting`].
    pub(crate) fn new(config: &HubConfig) -> Result<Client, HubError> {
        let wrong =
            |setting, value: &str, reason| HubError::Setting { setting, value: value.to_owned(), reason };
        let endpoint = Address::parse(config.endpoint.trim_end_matches('/'))
            .map_err(|reason| wrong("the hub's address", &config.endpoint, reason))?;
        let proxy = |address: &Option<String>| match address {
            Some(address) => proxy(address, &config.proxies)
                .map_err(|reason| wrong("the proxy", &without_user(address), reason))
                .map(Some),
            None => Ok(None),
        };
        let roots = match config.roots {
            Roots::BuiltIn => RootCerts::WebPki,
            #[cfg(feature = "platform-verifier")]
            Roots::Platform => RootCerts::PlatformVerifier,
        };
        let silence = Some(config.limits.silence);
        let agent = Agent::config_builder()
            .max_redirects(0)
            .http_status_as_error(false)
            .accept_encoding("identity")
            .user_agent(&config.user_agent)
            .timeout_resolve(silence)
            .timeout_connect(silence)
            .timeout_per_read(silence)
            .timeout_recv_response(silence)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            // The crate takes one from the environment otherwise.
            .proxy(None)
            .build()
            .new_agent();
        Ok(Client {
            agent,
            endpoint,
            token: config.token.clone(),
            https_proxy: proxy(&config.proxies.https)?,
            http_proxy: proxy(&config.proxies.http)?,
        })
    }

    /// True if a token is sent to the hub.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// An address of the hub; the path is quoted and begins with `/`.
    pub(crate) fn hub(&self, path: &str) -> Address {
        let base = self.endpoint.path().trim_end_matches('/');
        self.endpoint.with_target(&format!("{base}{path}"))
    }

    /// True for addresses that may have the token.
    pub(crate) fn is_hub(&self, address: &Address) -> bool {
        let is_page = |a: &Address| a.is_secure() && a.has_usual_port() && HUB_HOSTS.contains(&a.host());
        self.endpoint.same_origin(address) || is_page(&self.endpoint) && is_page(address)
    }

    /// Sends a request and follows redirects, once.
    ///
    /// # Errors
    /// [`Failure`], also for answers other than 200, 206, 304 and 416.
    pub(crate) fn get(
        &self,
        asked: &Asked<'_>,
        address: &Address,
        headers: &[(&str, String)],
    ) -> Result<Answer, Failure> {
        let mut address = address.clone();
        let mut linked_etag = None;
        for _ in 0..=MOST_REDIRECTS {
            let answer = self.send(&address, headers)?;
            if !is_redirect(answer.status) {
                let answer = Answer { linked_etag, ..answer };
                return match answer.status.as_u16() {
                    200 | 206 | 304 | 416 => Ok(answer),
                    _ => Err(self.refusal(asked, answer)),
                };
            }
            if self.is_hub(&address) && linked_etag.is_none() {
                linked_etag = answer.header("x-linked-etag").map(str::to_owned);
            }
            address = follow(&address, answer.headers.get(LOCATION).and_then(|l| l.to_str().ok()))?;
        }
        Err(redirect_error(&address, "", "there are more than 10 in a row"))
    }

    fn send(&self, address: &Address, headers: &[(&str, String)]) -> Result<Answer, Failure> {
        let mut request = Request::get(address.to_string());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        if let Some(token) = self.token.as_ref().filter(|_| self.is_hub(address)) {
            request = request.header("authorization", token.authorization());
        }
        let request = request.body(()).map_err(|e| self.broken(address, ureq::Error::from(e)))?;
        let proxy = if address.is_secure() { &self.https_proxy } else { &self.http_proxy };
        let request = self.agent.configure_request(request).proxy(proxy.clone()).build();
        let answer = self.agent.run(request).map_err(|e| self.broken(address, e))?;
        let (parts, body) = answer.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            address: address.clone(),
            linked_etag: None,
            body,
        })
    }

    /// A failed connection, which may be tried again unless the request itself is wrong.
    fn broken(&self, address: &Address, e: ureq::Error) -> Failure {
        use ureq::Error as E;
        let shown = address.plain().to_string();
        // rustls reports what it refuses as invalid data.
        let is_refused = matches!(&e, E::Io(e) if address.is_secure() && e.kind() == ErrorKind::InvalidData);
        if is_refused || matches!(e, E::Rustls(_) | E::Tls(_)) {
            return Failure::Final(HubError::Tls { address: shown, source: Box::new(e) });
        }
        let is_final = matches!(e, E::BadUri(_) | E::Http(_) | E::TlsRequired | E::InvalidProxyUrl);
        let error = HubError::Connection { address: shown, source: Box::new(e) };
        match is_final {
            true => Failure::Final(error),
            false => Failure::Transient { error, wait: None },
        }
    }

    /// The whole body of an answer in JSON, with its headers; tried again as often as usual.
    ///
    /// # Errors
    /// Those of the server and the connection.
    pub(crate) fn json(
        &self,
        job: &Job,
        tries: &mut Tries<'_>,
        asked: &Asked<'_>,
        address: &Address,
    ) -> Result<(HeaderMap, Vec<u8>), HubError> {
        let headers = [("accept", "application/json".to_owned())];
        loop {
            let whole = self.get(asked, address, &headers).and_then(|answer| {
                if is_page(&answer) {
                    return Err(Failure::Final(HubError::Page { address: address.plain().to_string() }));
                }
                let headers = answer.headers.clone();
                let mut body = Vec::new();
                let read = answer.into_reader().take(MOST_JSON).read_to_end(&mut body);
                read.map_err(|e| broken_body(address, e))?;
                Ok((headers, body))
            });
            match whole {
                Ok(whole) => return Ok(whole),
                Err(failure) => tries.again(job, failure)?,
            }
        }
    }
}

/// A connection that broke within a body.
pub(crate) fn broken_body(address: &Address, source: std::io::Error) -> Failure {
    let error = HubError::Broken { address: address.plain().to_string(), source };
    Failure::Transient { error, wait: None }
}

/// True if a web page came.
pub(crate) fn is_page(answer: &Answer) -> bool {
    let kind = answer.header("content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
    kind.starts_with("text/html") || kind.starts_with("application/xhtml")
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The next address.
fn follow(from: &Address, location: Option<&str>) -> Result<Address, Failure> {
    let location = location.ok_or_else(|| redirect_error(from, "", "it has no target"))?;
    let to = from.join(location).map_err(|reason| redirect_error(from, location, reason))?;
    match from.is_secure() && !to.is_secure() {
        true => Err(redirect_error(from, &to.plain().to_string(), "it leaves `https:`")),
        false => Ok(to),
    }
}

fn redirect_error(from: &Address, to: &str, reason: &'static str) -> Failure {
    Failure::Final(HubError::Redirect { address: from.plain().to_string(), to: to.to_owned(), reason })
}

/// The address of a proxy for a message: without user and password.
fn without_user(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let slashes = if rest.len() < address.len() { "://" } else { "" };
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}{slashes}{host}")
}

/// A proxy with the hosts that have none.
fn proxy(address: &str, proxies: &Proxies) -> Result<Proxy, &'static str> {
    let wrong = "expected an address such as http://host:port or socks5://host:port";
    let plain = Proxy::new(address).map_err(|_| wrong)?;
    let mut builder = Proxy::builder(plain.protocol()).host(plain.host()).port(plain.port());
    if let Some(user) = plain.username() {
        builder = builder.username(user);
    }
    if let Some(password) = plain.password() {
        builder = builder.password(password);
    }
    for host in proxies.none_for.split(',').map(str::trim).filter(|host| !host.is_empty()) {
        builder = builder.no_proxy(host);
    }
    builder.build().map_err(|_| wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(endpoint: &str) -> Client {
        Client::new(&HubConfig { endpoint: endpoint.into(), ..HubConfig::new("cache") }).unwrap()
    }

    #[test]
    fn the_token_is_for_the_hub_alone() {
        let hub = client("https://huggingface.co");
        let is_hub = |client: &Client, text: &str| client.is_hub(&Address::parse(text).unwrap());
        for (text, expected) in [
            ("https://huggingface.co/a", true),
            ("https://hf.co/a", true),
            ("https://huggingface.co:443/a", true),
            ("http://huggingface.co/a", false),
            ("https://huggingface.co:8443/a", false),
            ("https://cdn-lfs.huggingface.co/a", false),
            ("https://huggingface.co.example/a", false),
            ("https://example/huggingface.co", false),
        ] {
            assert_eq!(is_hub(&hub, text), expected, "{text}");
        }
        let mirror = client("https://mirror.example/hf/");
        assert!(is_hub(&mirror, "https://mirror.example/x") && !is_hub(&mirror, "https://huggingface.co/x"));
        assert_eq!(mirror.hub("/api").to_string(), "https://mirror.example/hf/api");
    }

    #[test]
    fn messages_about_a_proxy_have_no_password() {
        for (address, shown) in [
            ("gopher://me:secret@host:1", "gopher://host:1"),
            ("me:secret@host", "host"),
            ("http://host:1", "http://host:1"),
        ] {
            assert_eq!(without_user(address), shown);
        }
        let proxies = Proxies { https: Some("gopher://me:secret@host:1".into()), ..Proxies::default() };
        let error = Client::new(&HubConfig { proxies, ..HubConfig::new("cache") }).err().unwrap().to_string();
        assert!(error.contains("gopher://host:1") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn redirects_stay_secure() {
        let from = Address::parse("https://huggingface.co/a").unwrap();
        assert!(follow(&from, Some("/b")).is_ok() && follow(&from, Some("https://cdn.example/b")).is_ok());
        for location in [Some("http://cdn.example/b"), Some("ftp://cdn.example/b"), None] {
            let failure = follow(&from, location).unwrap_err();
            assert!(matches!(failure, Failure::Final(HubError::Redirect { .. })), "{location:?}");
        }
        let plain = Address::parse("http://127.0.0.1:1/a").unwrap();
        assert!(follow(&plain, Some("http://localhost:1/b")).is_ok());
    }
}
