//! What a run store records.

use super::FORMAT;
use crate::evaluate::{EvaluateOptions, Evaluation};
use crate::event_log::LoggedEvent;
use passnet_engine::Identity;
use passnet_engine::identity::{Build, processor};
use serde::{Deserialize, Serialize};

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The conditions of the lines after it.
    Start(Box<Start>),
    /// One graph, judged.
    Graph(Box<GraphEvent>),
    /// All graphs of the command were done.
    End {
        /// How many the command was asked for.
        graphs: usize,
    },
}

impl LoggedEvent for Event {
    const NAME: &'static str = "run";
    const FORMAT: u32 = FORMAT;
    const IS_SEALED: bool = true;

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
    /// Of the file; a newer one is refused.
    pub format: u32,
    /// Of the program.
    pub version: String,
    /// By the name that `--engine` takes.
    pub engine: String,
    /// What was under test: `pass` or `eager`.
    pub compiler: String,
    /// How deep and how long graphs are evaluated.
    pub options: EvaluateOptions,
    /// Whether the integrity rules could refuse a pass; older runs do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<bool>,
    /// Where it ran.
    pub machine: Machine,
    /// Where the results come from; older runs do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Seconds since 1970.
    pub time: u64,
}

impl Start {
    /// Where the results come from, as far as the run says.
    pub fn origin(&self) -> Identity {
        self.identity.clone().unwrap_or_else(|| Identity {
            engine: self.engine.clone(),
            processor: self.machine.processor.clone(),
            cores: self.machine.threads,
            build: Build { version: self.version.clone(), ..Build::default() },
            ..Identity::default()
        })
    }

    /// How deep passes are checked, in words.
    pub fn depth(&self) -> String {
        let checks = if self.options.thorough { "all checks" } else { "quick checks" };
        let draws = self.options.draws + 1;
        let rules = if self.rules == Some(false) { ", without rules" } else { "" };
        format!("{checks} on {draws} draws{rules}")
    }
}

/// What a run's times depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// As the system names it.
    pub processor: String,
    /// That kernels may use.
    pub threads: usize,
}

impl Machine {
    /// The one that this process runs on.
    pub fn this() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Machine { processor: processor().to_string(), threads }
    }
}

/// The result of one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphEvent {
    /// The name of the sample's folder.
    pub sample: String,
    /// The folder itself: names need not differ. Older runs and runs of agents do not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Digest of everything the result depends on; the same work has the same key.
    pub key: String,
    /// Digests of texts in `objects/`, by name: the model and the pass files.
    pub artefacts: Vec<(String, String)>,
    /// All that was found.
    #[serde(flatten)]
    pub evaluation: Evaluation,
}

/// A graph of a sample, told from those of other samples of the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphId {
    /// Its task's name.
    pub sample: String,
    /// Its task's folder, where names are not enough.
    pub folder: String,
    /// Its own folder's name.
    pub graph: String,
}

impl GraphEvent {
    /// What tells it from other graphs of the run.
    pub fn id(&self) -> GraphId {
        GraphId {
            sample: self.sample.clone(),
            folder: self.folder.clone(),
            graph: self.evaluation.judged.graph.clone(),
        }
    }

    /// As it is decided where so much is noise.
    #[must_use]
    pub fn under(mut self, noise_floor: f64) -> GraphEvent {
        if let (Some(_), Some(interval)) = (self.evaluation.decision, self.evaluation.interval) {
            self.evaluation.decision = Some(interval.decide(noise_floor));
        }
        self
    }
}
