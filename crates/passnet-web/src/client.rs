//! Sends bundles to a leaderboard.

use crate::Error;
use crate::bundle::{Bundle, Limits};
use crate::store::Token;
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use ureq::Agent;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// For a whole request.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Of an answer.
const MAX_ANSWER: u64 = 4 << 20;
/// The same bundle may be sent again: the server knows it by its address.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// What a server said.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Of HTTP.
    pub status: u16,
    /// Null where it is no JSON.
    pub answer: Value,
}

/// A leaderboard on the net.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    url: String,
    token: Token,
}

impl Client {
    /// Tokens travel only where nobody listens: over TLS, or to this machine.
    pub fn new(url: &str, token: Token) -> Result<Client, Error> {
        let is_local = url.strip_prefix("http://").is_some_and(|rest| {
            let host = rest.split(['/', '?']).next().unwrap_or_default();
            let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
            matches!(host, "127.0.0.1" | "localhost" | "[::1]")
        });
        if !is_local && !url.starts_with("https://") {
            return Err(Error::input(format!("`{}` is no https address", url.escape_debug()))
                .with_hint("a token is sent over https, or to this machine"));
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect could carry the token elsewhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("passnet/", env!("CARGO_PKG_VERSION")));
        if is_local {
            config = config.proxy(None);
        }
        let agent = config.build().new_agent();
        Ok(Client { agent, url: url.trim_end_matches('/').to_string(), token })
    }

    /// Sends a bundle that holds here; what does not hold here is not sent.
    pub fn submit(&self, file: &Path, replaces: Option<&str>) -> Result<Said, Error> {
        let limits = Limits::default();
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(file).map_err(Error::at(file))?;
        let mut reader = opened.take(limits.file_bytes as u64 + 1);
        reader.read_to_end(&mut bytes).map_err(Error::at(file))?;
        let bundle = Bundle::parse(bytes, &limits)?;
        bundle.check_signature()?;
        let mut url = format!("{}/api/v1/submissions", self.url);
        if let Some(replaces) = replaces {
            let is_id = replaces.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if !is_id {
                return Err(Error::input(format!("`{}` is no entry", replaces.escape_debug())));
            }
            url.push_str(&format!("?replaces={replaces}"));
        }
        self.post(&url, bundle.bytes())
    }

    /// Takes an entry back.
    pub fn withdraw(&self, id: &str) -> Result<Said, Error> {
        self.post(&format!("{}/api/v1/runs/{id}/withdraw", self.url), &[])
    }

    fn post(&self, url: &str, body: &[u8]) -> Result<Said, Error> {
        let mut failed = String::new();
        for tried in 0..TRIES {
            if tried > 0 {
                std::thread::sleep(PAUSE * tried);
            }
            let sent = self
                .agent
                .post(url)
                .header("authorization", format!("Bearer {}", self.token.reveal()))
                .header("content-type", "application/octet-stream")
                .send(body);
            match sent {
                Ok(response) => {
                    let status = response.status().as_u16();
                    let reader = response.into_body().into_with_config().limit(MAX_ANSWER).reader();
                    let answer = serde_json::from_reader(reader).map_err(|error| {
                        Error::input(format!("{}: status {status}, no JSON: {error}", self.url))
                            .with_hint("is this the address of a leaderboard?")
                    })?;
                    return Ok(Said { status, answer });
                }
                Err(error) => failed = error.to_string(),
            }
        }
        Err(Error::lacking(format!("{}: {failed}", self.url))
            .with_hint("the bundle may be sent again: it is known by its content"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_nowhere_in_the_open() {
        let client = |url: &str| Client::new(url, Token::given("secret"));
        for url in ["https://example.org/board", "http://127.0.0.1:8080", "http://localhost/"] {
            assert!(client(url).is_ok(), "{url}");
        }
        for url in ["http://example.org", "http://127.0.0.1.example.org/", "ftp://x", ""] {
            assert!(client(url).is_err(), "{url}");
        }
        assert!(!format!("{:?}", client("https://example.org")).contains("secret"));
    }
}
