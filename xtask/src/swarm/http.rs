//! Requests to a hub over HTTP, token by token.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

/// Time for a token.
const LONG: Duration = Duration::from_secs(120);

/// A text as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reply {
    pub(super) text: String,
    /// Milliseconds between tokens.
    pub(super) gaps: Vec<f64>,
    /// The error of a request that failed.
    pub(super) error: Option<String>,
}

/// Asks for the `n` most probable tokens after a prompt. `on_token` is called at each piece with its index.
///
/// # Errors
/// No answer; one that is none of a server of texts. A request that the server fails is a [`Reply`] with its error.
pub(super) fn complete(
    http: &str,
    prompt: &str,
    n: usize,
    mut on_token: impl FnMut(usize) -> anyhow::Result<()>,
) -> anyhow::Result<Reply> {
    let body =
        json!({"prompt": prompt, "max_tokens": n, "temperature": 0, "ignore_eos": true, "stream": true});
    let body = body.to_string();
    let mut stream = TcpStream::connect(http).context("the hub does not listen")?;
    stream.set_read_timeout(Some(LONG))?;
    stream.set_nodelay(true)?;
    // Bodies of version 1.0 come without chunks.
    write!(
        stream,
        "POST /v1/completions HTTP/1.0\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut reply = Reply::default();
    let (mut last, mut n_piece, mut is_ok, mut other) = (None, 0, false, String::new());
    for line in BufReader::new(stream).lines() {
        let line = line.context("the hub has ended")?;
        is_ok |= line.starts_with("HTTP/1.0 200") || line.starts_with("HTTP/1.1 200");
        let Some(data) = line.strip_prefix("data: ") else {
            other = line;
            continue;
        };
        if data == "[DONE]" {
            return Ok(reply);
        }
        let event: Value = serde_json::from_str(data).with_context(|| format!("`{data}` is no event"))?;
        if let Some(error) = event.get("error") {
            reply.error = Some(error.to_string());
            return Ok(reply);
        }
        let Some(text) = event["choices"][0]["text"].as_str() else { continue };
        reply.text += text;
        let now = Instant::now();
        reply.gaps.extend(last.map(|last: Instant| (now - last).as_secs_f64() * 1e3));
        last = Some(now);
        on_token(n_piece)?;
        n_piece += 1;
    }
    match is_ok {
        true => bail!("the answer ends after {n_piece} pieces"),
        false => Ok(Reply { error: Some(other), ..reply }),
    }
}
