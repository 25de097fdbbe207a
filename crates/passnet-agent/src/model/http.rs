//! One POST with a streamed answer, and what its failures mean.
//!
//! The client is `ureq`: blocking, so that an attempt is an ordinary thread, and small to build.

use super::sse::Events;
use super::stream::Stream;
use super::{Endpoint, ErrorKind, ModelError, Request, is_timeout};
use serde_json::Value;
use std::io::{BufReader, Read};
use std::time::{Duration, Instant};
use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// An answer that does not stream.
const MAX_BODY_BYTES: u64 = 16 << 20;
/// Of an error page; more would only fill the record.
const MAX_ERROR_BYTES: u64 = 4096;
/// Nobody is asked to wait longer than this between two tries.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);

/// A connection pool for one endpoint.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    silence: Duration,
    stall: Duration,
}

/// What a server sends back.
pub(super) enum Answer {
    Stream(Stream),
    /// Some servers do not stream although asked to.
    Whole(Value),
}

impl Client {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect could carry the key elsewhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .user_agent(concat!("passnet/", env!("CARGO_PKG_VERSION")));
        if endpoint.is_local() {
            config = config.proxy(None);
        }
        let Endpoint { silence, stall, .. } = *endpoint;
        Client { agent: config.build().new_agent(), silence, stall }
    }

    pub(super) fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: &Value,
        request: &Request<'_>,
    ) -> Result<Answer, ModelError> {
        let left = request.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ModelError::new(ErrorKind::Timeout, "no time left for a call"));
        }
        let mut post = self
            .agent
            .post(url)
            .config()
            .timeout_global(Some(left))
            .timeout_per_read(Some(self.silence))
            .build()
            .header("content-type", "application/json")
            .header("accept", "text/event-stream, application/json");
        for (name, value) in headers {
            post = post.header(*name, *value);
        }
        let response = post.send(body.to_string()).map_err(|error| failed(&error))?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(refused(status, response));
        }
        let is_stream = response.body().mime_type() == Some("text/event-stream");
        let reader = response.into_body().into_with_config().limit(u64::MAX).reader();
        if is_stream {
            let events = Events::new(BufReader::new(reader));
            let stream = Stream::watch(events, self.silence.min(left), self.stall);
            return stream.map(Answer::Stream).map_err(|error| ModelError::broken(&error));
        }
        let mut bytes = Vec::new();
        reader
            .take(MAX_BODY_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| ModelError::broken(&error))?;
        serde_json::from_slice(&bytes).map(Answer::Whole).map_err(|error| {
            ModelError::new(ErrorKind::Malformed, format!("the answer is no JSON: {error}"))
        })
    }
}

/// An error object, as both protocols send it in place of a reply or in the middle of one.
pub(super) fn reported(error: &Value) -> ModelError {
    let message =
        error.get("message").and_then(Value::as_str).unwrap_or("the server reports an error");
    let kind = match error.get("type").and_then(Value::as_str).unwrap_or("") {
        kind if kind.contains("rate_limit") || kind.contains("overloaded") => {
            ErrorKind::RateLimited
        }
        kind if kind.contains("invalid_request") => ErrorKind::BadRequest,
        kind if kind.contains("authentication") || kind.contains("permission") => ErrorKind::Denied,
        _ => ErrorKind::Server,
    };
    ModelError::new(kind, message)
}

fn failed(error: &ureq::Error) -> ModelError {
    let kind = match error {
        ureq::Error::Timeout(_) => ErrorKind::Timeout,
        ureq::Error::Io(error) if is_timeout(error) => ErrorKind::Timeout,
        ureq::Error::Protocol(_) | ureq::Error::Http(_) => ErrorKind::Malformed,
        ureq::Error::BadUri(_) => ErrorKind::BadRequest,
        _ => ErrorKind::Connection,
    };
    ModelError::new(kind, error.to_string())
}

fn refused(status: u16, response: Response<Body>) -> ModelError {
    let kind = match status {
        401 | 403 | 404 => ErrorKind::Denied,
        408 | 409 | 425 | 429 | 529 => ErrorKind::RateLimited,
        500..=599 => ErrorKind::Server,
        _ => ErrorKind::BadRequest,
    };
    let retry_after = retry_after(response.headers());
    let mut page = Vec::new();
    let reader = response.into_body().into_with_config().limit(u64::MAX).reader();
    // An unreadable page changes nothing about the refusal.
    let _ = reader.take(MAX_ERROR_BYTES).read_to_end(&mut page);
    let page = String::from_utf8_lossy(&page);
    let said = serde_json::from_str::<Value>(&page).ok().and_then(|page| {
        let error = page.get("error")?;
        error.get("message").or(Some(error))?.as_str().map(str::to_string)
    });
    let said = said.unwrap_or_else(|| page.trim().chars().take(500).collect());
    let message = match said.is_empty() {
        true => format!("status {status}"),
        false => format!("status {status}: {said}"),
    };
    ModelError { kind, message, retry_after }
}

/// Seconds or milliseconds; a date is left to our own patience.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1e3).or_else(|| number("retry-after"))?;
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    Some(wait.min(MAX_RETRY_AFTER))
}
