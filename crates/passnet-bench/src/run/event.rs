//! What a run store records.

use super::FORMAT;
use crate::evaluate::{EvaluateOptions, Evaluation};
use crate::event_log::LoggedEvent;
use serde::{Deserialize, Serialize};

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Start(Box<Start>),
    Graph(Box<GraphEvent>),
    /// All graphs of the command were done.
    End {
        graphs: usize,
    },
}

impl LoggedEvent for Event {
    const NAME: &'static str = "run";
    const FORMAT: u32 = FORMAT;

    fn format(&self) -> Option<u32> {
        match self {
            Event::Start(start) => Some(start.format),
            _ => None,
        }
    }

    fn is_worth_a_sync(&self) -> bool {
        true
    }
}

/// The conditions of what follows; a continued run begins with another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    pub format: u32,
    pub version: String,
    pub engine: String,
    /// What was under test: `pass` or `eager`.
    pub compiler: String,
    pub options: EvaluateOptions,
    pub machine: Machine,
    /// Seconds since 1970.
    pub time: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub threads: usize,
}

impl Machine {
    pub fn this() -> Self {
        let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = processor
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or(std::env::consts::ARCH, |(_, name)| name.trim())
            .to_string();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Machine { processor, threads }
    }
}

/// The result of one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphEvent {
    pub sample: String,
    /// Digest of everything the result depends on; the same work has the same key.
    pub key: String,
    /// Digests of texts in `objects/`, by name: the model and the pass files.
    pub artefacts: Vec<(String, String)>,
    #[serde(flatten)]
    pub evaluation: Evaluation,
}
