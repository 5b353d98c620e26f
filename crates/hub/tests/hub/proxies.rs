//! Proxies, and hosts without one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use chaski_hub::HubError;

use crate::{Client, NAME, tiny};

/// A proxy that refuses everything, and tells the first lines that it is asked.
fn proxy() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            sender.send(line).unwrap();
            stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    });
    (address, lines)
}

#[test]
fn requests_go_through_the_proxy_of_their_scheme() {
    let hub = tiny();
    let (address, lines) = proxy();
    let client = Client::of(&hub).with(|config| config.proxies.http = Some(address));
    client.pull(NAME).unwrap_err();
    let line = lines.recv_timeout(Duration::from_secs(5)).unwrap();
    assert!(line.contains(&hub.endpoint()["http://".len()..]), "{line}");
    assert!(hub.take_log().is_empty());
}

#[test]
fn hosts_without_a_proxy_are_asked_directly() {
    let hub = tiny();
    let (address, lines) = proxy();
    let client = Client::of(&hub).with(|config| {
        config.proxies.http = Some(address.clone());
        config.proxies.none_for = "example.org, 127.0.0.1,localhost".into();
    });
    client.pull(NAME).unwrap();
    // The other scheme has none.
    let client = Client::of(&hub).with(|config| config.proxies.https = Some(address));
    client.pull(NAME).unwrap();
    assert!(lines.try_recv().is_err());
}

#[test]
fn an_address_that_is_no_proxy_is_named() {
    let client = Client::of(&tiny()).with(|config| config.proxies.https = Some("ftp://proxy:1".into()));
    let hub = chaski_hub::Hub::new(client.config).err();
    assert!(
        matches!(&hub, Some(HubError::Setting { setting: "the proxy", value, .. }) if value == "ftp://proxy:1")
    );
}
