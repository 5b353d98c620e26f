//! Refusals of servers, by their status and the hub's codes.

use std::io::Read;
use std::time::Duration;

use super::{Answer, Client, Failure};
use crate::error::HubError;
use crate::name::RepoId;

/// The subject of a request, for messages.
#[derive(Copy, Clone)]
pub(crate) struct Asked<'a> {
    /// The model's name.
    pub(crate) name: &'a str,
    pub(crate) repo: Option<&'a RepoId>,
    pub(crate) revision: &'a str,
    /// Path of the file.
    pub(crate) path: &'a str,
}

impl Client {
    /// The failure that an answer is.
    pub(super) fn refusal(&self, asked: &Asked<'_>, answer: Answer) -> Failure {
        let status = answer.status.as_u16();
        let is_hub = self.is_hub(&answer.address);
        if let Some(error) = is_hub.then(|| self.of_hub(asked, &answer)).flatten() {
            return Failure::Final(error);
        }
        let wait = match status {
            429 | 503 => asked_wait(&answer),
            _ => None,
        };
        let address = answer.address.plain().to_string();
        let error = HubError::Status { address, status, message: message(answer) };
        // Storage refuses addresses whose time is over; the hub has a new one.
        let is_transient = matches!(status, 408 | 429 | 500..)
            || !is_hub && asked.repo.is_some() && matches!(status, 401 | 403);
        match is_transient {
            true => Failure::Transient { error, wait },
            false => Failure::Final(error),
        }
    }

    /// An error that the hub names.
    fn of_hub(&self, asked: &Asked<'_>, answer: &Answer) -> Option<HubError> {
        let repo = asked.repo?.to_string();
        let has_token = self.has_token();
        let Some(code) = answer.header("x-error-code").filter(|code| !code.is_empty()) else {
            // With a token that it does not know, the hub refuses even what is public, and names no code.
            let is_refused = has_token && answer.status.as_u16() == 401;
            return is_refused.then(|| HubError::Token { hub: hub_text(self) });
        };
        Some(match code {
            "RepoNotFound" => HubError::NoRepo { repo, hub: hub_text(self), has_token },
            "RevisionNotFound" => HubError::NoRevision { repo, revision: asked.revision.to_owned() },
            "EntryNotFound" => HubError::NoFile { name: asked.name.to_owned(), path: asked.path.to_owned() },
            "GatedRepo" => {
                let page = self.hub(&format!("/{repo}")).to_string();
                HubError::Gated { repo, page, has_token }
            }
            _ => return None,
        })
    }
}

fn hub_text(client: &Client) -> String {
    client.endpoint.to_string().trim_end_matches('/').to_owned()
}

/// The server's words.
fn message(answer: Answer) -> String {
    const LONGEST: usize = 300;
    let text = match answer.header("x-error-message") {
        Some(text) => text.to_owned(),
        None => {
            let mut body = Vec::new();
            // A message that cannot be read is left out.
            let _ = answer.into_reader().take(4096).read_to_end(&mut body);
            let json = serde_json::from_slice::<serde_json::Value>(&body);
            json.ok().and_then(|json| Some(json.get("error")?.as_str()?.to_owned())).unwrap_or_default()
        }
    };
    text.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

/// The wait that a server asks for: `Retry-After` in seconds, or the time to the next window in `RateLimit`.
fn asked_wait(answer: &Answer) -> Option<Duration> {
    let after = answer.header("retry-after").and_then(|text| text.trim().parse().ok());
    let window = || window_end(answer.header("ratelimit")?).map(|t| t.saturating_add(1));
    after.or_else(window).map(Duration::from_secs)
}

/// `"resolvers";r=0;t=55` ends in 55 seconds.
fn window_end(limit: &str) -> Option<u64> {
    limit.split(';').find_map(|part| part.trim().strip_prefix("t=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_limits_have_an_end() {
        assert_eq!(window_end("\"resolvers\";r=0;t=55"), Some(55));
        assert_eq!(window_end("t=x"), None);
        assert_eq!(window_end(""), None);
    }
}
