//! Language models behind one small trait, and the two protocols that speak to them.
//!
//! [`Endpoint`] says where a model is and how to talk to it; the key comes from the environment and lives in a
//! [`Secret`](crate::secrets::Secret) that cannot be printed. [`retry`] decides what is worth another try.

mod anthropic;
mod arguments;
mod endpoint;
mod http;
mod local;
mod openai;
mod price;
pub mod retry;
pub mod solver;
pub mod sse;
mod stream;
pub mod text_calls;

pub use anthropic::Anthropic;
pub use endpoint::{Endpoint, EndpointError, Protocol, Sampling};
pub use local::LocalModel;
pub use openai::OpenAi;
pub use price::Prices;
pub use solver::SolverModel;

use crate::chat::{Message, Reply, ToolSpec};
use crate::task::Task;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Something that continues a conversation.
pub trait Model: Send + Sync + fmt::Debug {
    /// Waits for the whole answer.
    fn reply(&self, request: &Request<'_>) -> Result<Reply, ModelError>;
}

impl Endpoint {
    /// Nothing is sent before the first request.
    pub fn connect(self) -> Box<dyn Model> {
        match self.protocol {
            Protocol::OpenAi => Box::new(OpenAi::new(self)),
            Protocol::Anthropic => Box::new(Anthropic::new(self)),
        }
    }
}

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The whole conversation.
    pub messages: &'a [Message],
    /// Empty where tool calls travel as text.
    pub tools: &'a [ToolSpec],
    /// The call is given up then.
    pub deadline: Instant,
    /// What it is about, for what writes passes without a language model.
    pub task: &'a Arc<Task>,
    /// Which attempt at it asks, counted from 0.
    pub attempt: u32,
}

/// A call that gave no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    /// What it says about trying again.
    pub kind: ErrorKind,
    /// In words, without secrets.
    pub message: String,
    /// What the server asks us to wait.
    pub retry_after: Option<Duration>,
}

/// What an error says about trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// 429 and its like.
    RateLimited,
    /// 5xx.
    Server,
    /// No answer in time.
    Timeout,
    /// The server was not reached, or hung up.
    Connection,
    /// The stream ended before the reply did.
    Truncated,
    /// Not the protocol.
    Malformed,
    /// The server understood and declines this request (400, 413, 422).
    BadRequest,
    /// The key or the model name is wrong (401, 403, 404): no other request will fare better.
    Denied,
}

impl ModelError {
    /// Without a wish of the server how long to wait.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ModelError { kind, message: message.into(), retry_after: None }
    }

    /// An answer that broke off.
    fn broken(error: &std::io::Error) -> Self {
        let kind = if is_timeout(error) { ErrorKind::Timeout } else { ErrorKind::Truncated };
        ModelError::new(kind, error.to_string())
    }

    /// Whether the conversation no longer fits into the model, in the words of the servers we know.
    pub fn is_too_long(&self) -> bool {
        let said = self.message.to_lowercase();
        let words = ["context length", "context size", "context window", "prompt is too long"];
        self.kind == ErrorKind::BadRequest && words.iter().any(|words| said.contains(words))
    }

    pub(crate) fn is_worth_another_try(&self) -> bool {
        !matches!(self.kind, ErrorKind::BadRequest | ErrorKind::Denied)
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock)
        || error
            .get_ref()
            .and_then(|inner| inner.downcast_ref())
            .is_some_and(|inner| matches!(inner, ureq::Error::Timeout(_)))
}

impl ErrorKind {
    /// As it stands in a trajectory.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorKind::RateLimited => "rate_limited",
            ErrorKind::Server => "server",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Connection => "connection",
            ErrorKind::Truncated => "truncated",
            ErrorKind::Malformed => "malformed",
            ErrorKind::BadRequest => "bad_request",
            ErrorKind::Denied => "denied",
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)
    }
}

impl std::error::Error for ModelError {}

/// Bytes of one reply, all its texts together; more is a flood.
pub(crate) const MAX_REPLY_BYTES: usize = 4 << 20;
/// Tool calls of one reply that are kept.
pub(crate) const MAX_CALLS: usize = 64;
