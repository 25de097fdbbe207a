//! Where a model is, and how to talk to it.

use crate::secrets::Secret;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The language of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// `POST BASE/chat/completions`, as OpenAI and nearly everybody else.
    OpenAi,
    /// `POST BASE/v1/messages`, as Anthropic.
    Anthropic,
}

impl Protocol {
    /// Of the provider that made the protocol.
    pub const fn default_base_url(self) -> &'static str {
        match self {
            Protocol::OpenAi => "https://api.openai.com/v1",
            Protocol::Anthropic => "https://api.anthropic.com",
        }
    }

    /// The variable the key is read from unless the user names another.
    pub const fn key_variable(self) -> &'static str {
        match self {
            Protocol::OpenAi => "OPENAI_API_KEY",
            Protocol::Anthropic => "ANTHROPIC_API_KEY",
        }
    }
}

/// How the model is to speak; left out of requests where not set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Left to the provider unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Tokens of one reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

/// A model's address. Everything but the key may be written down.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Without the path of a request.
    pub base_url: String,
    /// As the provider calls it.
    pub model: String,
    /// Goes into a header and nowhere else.
    pub key: Option<Secret>,
    /// What is asked of every reply.
    pub sampling: Sampling,
    /// Without a byte, or a first word of a stream, for so long a call is given up.
    pub silence: Duration,
    /// Without another word of a stream that has begun for so long it is given up.
    pub stall: Duration,
}

/// Why no model can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointError {
    /// One sentence.
    pub message: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EndpointError {}

impl Endpoint {
    /// Checks the address; a key travels over https or stays on this machine, unless `allow_http`.
    pub fn check(&self, allow_http: bool) -> Result<(), EndpointError> {
        let fail = |message: String, hint| Err(EndpointError { message, hint });
        let uri: ureq::http::Uri = match self.base_url.parse() {
            Ok(uri) => uri,
            Err(_) => return fail("the base URL is no URL".into(), "for example https://host/v1"),
        };
        let (scheme, host) = (uri.scheme_str().unwrap_or(""), uri.host().unwrap_or(""));
        if !matches!(scheme, "http" | "https") || host.is_empty() {
            return fail(
                "the base URL is neither http nor https".into(),
                "for example https://host/v1",
            );
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return fail(
                "the base URL holds a password".into(),
                "put the key into an environment variable",
            );
        }
        if uri.query().is_some() {
            return fail("the base URL has a query".into(), "leave out everything from `?` on");
        }
        if scheme == "http" && self.key.is_some() && !is_loopback(host) && !allow_http {
            return fail(
                format!("the key would travel to {host} unencrypted"),
                "use https, unset the key's variable, or say `--allow-http`",
            );
        }
        Ok(())
    }

    /// Whether the first request would be refused for want of a key: only models on this machine go without.
    pub fn lacks_key(&self) -> bool {
        self.key.is_none() && !self.is_local()
    }

    pub(super) fn is_local(&self) -> bool {
        let uri: Option<ureq::http::Uri> = self.base_url.parse().ok();
        uri.is_some_and(|uri| uri.host().is_some_and(is_loopback))
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.base_url.trim_end_matches('/'))
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str, key: Option<&str>) -> Endpoint {
        Endpoint {
            protocol: Protocol::OpenAi,
            base_url: url.into(),
            model: "m".into(),
            key: key.map(Secret::new),
            sampling: Sampling::default(),
            silence: Duration::from_secs(1),
            stall: Duration::from_secs(1),
        }
    }

    fn checked(url: &str, key: Option<&str>) -> Result<(), String> {
        endpoint(url, key).check(false).map_err(|error| error.message)
    }

    #[test]
    fn only_models_on_this_machine_go_without_a_key() {
        assert!(endpoint("https://host/v1", None).lacks_key());
        assert!(!endpoint("https://host/v1", Some("k")).lacks_key());
        assert!(!endpoint("http://127.0.0.1:8080/v1", None).lacks_key());
        assert!(!endpoint("http://localhost:8080/v1", None).lacks_key());
    }

    #[test]
    fn keys_travel_encrypted_or_not_at_all() {
        assert_eq!(checked("https://host/v1", Some("k")), Ok(()));
        assert_eq!(checked("http://127.0.0.1:8080/v1", Some("k")), Ok(()));
        assert_eq!(checked("http://[::1]:8080", Some("k")), Ok(()));
        assert_eq!(checked("http://host/v1", None), Ok(()));
        assert!(checked("http://host/v1", Some("k")).unwrap_err().contains("unencrypted"));
        let error = checked("https://user:secret-word@host/v1", None).unwrap_err();
        assert!(error.contains("password") && !error.contains("secret-word"), "{error}");
        assert!(checked("file:///etc/passwd", None).is_err());
        assert!(checked("not a url", None).is_err());
        assert!(checked("https://host/v1?key=1", None).is_err());
    }
}
