//! Proxies in front of a server, and the clients behind them.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Headers by which proxies say that a request is not their own.
const FORWARDED: [HeaderName; 3] =
    [FORWARDED_FOR, HeaderName::from_static("forwarded"), HeaderName::from_static("x-real-ip")];

/// Proxies whose word about the addresses of clients is taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TrustedProxy {
    /// Those with an address that begins with these bits.
    Network(IpAddr, u8),
    /// Those that use sockets of the file system.
    Unix,
}

/// A word that names no proxies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address, such as 10.0.0.1, no network, such as 10.0.0.0/8, and not `unix`")]
pub struct TrustedProxyError(String);

impl FromStr for TrustedProxy {
    type Err = TrustedProxyError;

    fn from_str(word: &str) -> Result<TrustedProxy, TrustedProxyError> {
        let wrong = || TrustedProxyError(word.to_owned());
        if word == "unix" {
            return Ok(TrustedProxy::Unix);
        }
        let (address, n_bit) = match word.split_once('/') {
            Some((address, n_bit)) => (address, Some(n_bit.parse::<u8>().map_err(|_| wrong())?)),
            None => (word, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        match n_bit.unwrap_or(most) {
            n_bit if n_bit <= most => Ok(TrustedProxy::Network(address, n_bit)),
            _ => Err(wrong()),
        }
    }
}

/// The bits of an address, the first one highest.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl TrustedProxy {
    /// True if it is at the address, or on a socket of the file system.
    fn has(self, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (TrustedProxy::Unix, None) => true,
            (TrustedProxy::Network(network, n_bit), Some(address)) => {
                let differ = bits(network) ^ bits(address);
                network.is_ipv4() == address.is_ipv4()
                    && (n_bit == 0 || differ >> (128 - u32::from(n_bit)) == 0)
            }
            _ => false,
        }
    }
}

/// The sender of a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    /// Its address, if it has one and it is known.
    pub(crate) address: Option<IpAddr>,
    /// It is a program of this machine.
    pub(crate) is_local: bool,
}

impl Sender {
    /// The sender of a request that came from this address, or over a socket of the file system. The last entry of
    /// `x-forwarded-for` that no trusted proxy has is the client; entries before it are anybody's.
    pub(crate) fn of(peer: Option<IpAddr>, headers: &HeaderMap, trusted: &[TrustedProxy]) -> Sender {
        let is_trusted = |address| trusted.iter().any(|proxy| proxy.has(address));
        let mut sender = Sender { address: peer.map(|peer| peer.to_canonical()), is_local: true };
        let values = headers.get_all(FORWARDED_FOR).iter().rev();
        let mut hops = values.flat_map(|value| value.to_str().unwrap_or("?").rsplit(',').map(str::trim));
        // A proxy that is not trusted says at least that the client is another.
        let mut is_known =
            is_trusted(sender.address) || !FORWARDED.iter().any(|name| headers.contains_key(name));
        while is_trusted(sender.address) {
            let Some(hop) = hops.next() else { break };
            match address(hop) {
                Some(address) => sender.address = Some(address),
                None => {
                    is_known = false;
                    break;
                }
            }
        }
        sender.is_local = is_known && sender.address.is_none_or(|address| address.is_loopback());
        sender
    }
}

/// An address, which may have a port.
fn address(hop: &str) -> Option<IpAddr> {
    let address = match hop.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?.parse(),
        None => hop.parse().or_else(|error| match hop.split_once(':') {
            Some((address, _)) if address.contains('.') => address.parse(),
            _ => Err(error),
        }),
    };
    address.ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn sender(peer: &str, values: &[&str], trusted: &[&str]) -> (String, bool) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(FORWARDED_FOR, HeaderValue::from_str(value).unwrap());
        }
        let trusted: Vec<TrustedProxy> = trusted.iter().map(|word| word.parse().unwrap()).collect();
        let found = Sender::of(peer.parse().ok(), &headers, &trusted);
        (found.address.map_or("none".into(), |address| address.to_string()), found.is_local)
    }

    #[test]
    fn only_trusted_proxies_say_who_their_client_is() {
        let far = |address: &str| (address.to_owned(), false);
        let here = |address: &str| (address.to_owned(), true);
        assert_eq!(sender("127.0.0.1", &[], &[]), here("127.0.0.1"));
        assert_eq!(sender("::ffff:127.0.0.1", &[], &[]), here("127.0.0.1"));
        assert_eq!(sender("unix", &[], &[]), here("none"));
        // Without trust, its client is not here, and nobody knows where.
        assert_eq!(sender("127.0.0.1", &["9.9.9.9"], &[]), far("127.0.0.1"));
        assert_eq!(sender("8.8.8.8", &["127.0.0.1"], &["10.0.0.0/8"]), far("8.8.8.8"));
        assert_eq!(sender("127.0.0.1", &["9.9.9.9"], &["127.0.0.1"]), far("9.9.9.9"));
        assert_eq!(sender("unix", &["9.9.9.9"], &["unix"]), far("9.9.9.9"));
        assert_eq!(sender("unix", &["127.0.0.1"], &["10.0.0.1"]), far("none"));
        // The proxy itself asks.
        assert_eq!(sender("127.0.0.1", &[], &["127.0.0.1"]), here("127.0.0.1"));
        // A client writes entries of its own in front.
        assert_eq!(sender("10.0.0.1", &["127.0.0.1, 9.9.9.9"], &["10.0.0.0/8"]), far("9.9.9.9"));
        assert_eq!(sender("10.0.0.1", &["127.0.0.1", "9.9.9.9, 10.0.0.2"], &["10.0.0.0/8"]), far("9.9.9.9"));
        assert_eq!(sender("10.0.0.1", &["127.0.0.1"], &["10.0.0.0/8"]), here("127.0.0.1"));
        assert_eq!(sender("10.0.0.1", &["unknown"], &["10.0.0.0/8"]), far("10.0.0.1"));
        assert_eq!(sender("127.0.0.1", &["unknown"], &["127.0.0.1"]), far("127.0.0.1"));
        for (hop, expected) in
            [("9.9.9.9:80", "9.9.9.9"), ("[fd00::1]:80", "fd00::1"), ("fd00::1", "fd00::1")]
        {
            assert_eq!(sender("::1", &[hop], &["::1"]), far(expected));
        }
    }

    #[test]
    fn words_name_networks() {
        for (word, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("0.0.0.0/0", "9.9.9.9", "::1"),
            ("fd00::/8", "fd12::1", "fe80::1"),
        ] {
            let proxy: TrustedProxy = word.parse().unwrap();
            assert!(
                proxy.has(inside.parse().ok()) && !proxy.has(outside.parse().ok()) && !proxy.has(None),
                "{word}"
            );
        }
        for word in ["", "host", "10.0.0.0/33", "10.0.0.0/x", "::/129", "10.0.0/8"] {
            assert!(word.parse::<TrustedProxy>().is_err(), "{word}");
        }
    }
}
