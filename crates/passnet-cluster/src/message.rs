//! What driver, bridge and worker tell each other.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a worker says of itself before it is given anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// Digest of the program; workers of another program are refused.
    pub program: String,
    /// The program in words.
    pub build: String,
    /// Where results come from, in words; nodes whose words differ are not mixed in one run.
    pub class: String,
    /// The same as the driver stores it.
    #[serde(default)]
    pub identity: Value,
    /// What a race of eager against itself shows on the node; `None` where nothing is timed.
    #[serde(default)]
    pub noise: Option<f64>,
}

/// What a worker says of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Why there is no result: the machine failed, not the unit.
    #[serde(default)]
    pub fault: Option<String>,
    /// What the command makes of the result, besides its files.
    #[serde(default)]
    pub words: Value,
    /// Of the work alone.
    pub seconds: f64,
    /// Seconds between the work on the unit before and this one; missing with the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<f64>,
}

/// From the driver to the bridge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum ToBridge {
    /// The payload is content that units name by its digest.
    Keep {
        digest: String,
        /// Whether other units may need it too.
        is_shared: bool,
    },
    /// No unit names the content any more.
    Drop { digest: String },
    /// Gives a unit to a worker; its input was kept before.
    Start { worker: u64, unit: u64, input: String, words: Value },
    /// Ends the workers of a node and starts none there.
    Retire { node: String, reason: String },
    /// The last message.
    Stop,
}

/// From the bridge to the driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum FromBridge {
    /// A node can be used.
    Joined { node: String, name: String },
    /// A node is gone, with all its workers.
    Left { node: String, reason: String },
    /// A worker is up and waits.
    Ready { worker: u64, node: String, hello: Hello },
    /// No worker can be started on the node.
    Refused { node: String, reason: String },
    /// The payload is what the worker made.
    Done { worker: u64, unit: u64, reply: Reply },
    /// A worker ended without a reply.
    Died {
        worker: u64,
        reason: String,
        /// Whether its program was alive when it was last heard of: the node's doing, not the unit's.
        #[serde(default)]
        by_node: bool,
    },
    /// The whole cluster cannot be reached any more.
    Lost { reason: String },
}
