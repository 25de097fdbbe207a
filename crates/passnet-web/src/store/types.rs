//! What pages and the interface for machines are made from.

use crate::bundle::AgentSummary;
use serde::{Deserialize, Serialize};

/// Whether an entry still stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    Listed,
    /// Its author took it back.
    Withdrawn,
    /// A later entry of the same author took its place.
    Superseded,
}

impl EntryState {
    pub const ALL: [EntryState; 3] =
        [EntryState::Listed, EntryState::Withdrawn, EntryState::Superseded];

    pub const fn name(self) -> &'static str {
        match self {
            EntryState::Listed => "listed",
            EntryState::Withdrawn => "withdrawn",
            EntryState::Superseded => "superseded",
        }
    }

    pub(super) fn parse(text: &str) -> EntryState {
        let found = EntryState::ALL.into_iter().find(|state| state.name() == text);
        found.unwrap_or(EntryState::Withdrawn)
    }
}

/// How far an entry was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Badge {
    /// A run of the site's owner, read from its folder: its seals hold.
    Own,
    /// Signed; everything that needs no machine was found again.
    Verified,
    /// Besides, so many graphs were judged again here, and agree.
    Rejudged(i64),
    /// So many graphs that were judged again here came out otherwise.
    Disagrees(i64),
}

impl Badge {
    pub fn text(self) -> String {
        match self {
            Badge::Own => "own run".into(),
            Badge::Verified => "verified".into(),
            Badge::Rejudged(graphs) => format!("rejudged: {graphs} agree"),
            Badge::Disagrees(graphs) => format!("rejudged: {graphs} disagree"),
        }
    }

    /// The class that colours it.
    pub fn class(self) -> &'static str {
        match self {
            Badge::Own => "badge",
            Badge::Verified => "badge mark",
            Badge::Rejudged(_) => "badge good",
            Badge::Disagrees(_) => "badge bad",
        }
    }
}

/// One run on the leaderboard.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    #[serde(skip)]
    pub number: i64,
    /// The first digits of the digest: its address on the site.
    pub id: String,
    pub digest: String,
    pub name: String,
    pub author: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// Seconds since 1970: when it was admitted, and when the run began.
    pub added: i64,
    pub time: i64,
    pub compiler: String,
    pub class: String,
    pub benchmark: String,
    pub state: EntryState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    #[serde(rename = "as")]
    pub score: f64,
    pub low: f64,
    pub high: f64,
    #[serde(rename = "geometric_mean")]
    pub mean: Option<f64>,
    pub correct: f64,
    pub fast_1: f64,
    #[serde(rename = "fast_1.5")]
    pub fast_15: f64,
    #[serde(rename = "task_correctness_rate")]
    pub task_rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Graphs that were judged again here, and how many of them came out the same and otherwise.
    pub rejudged: i64,
    pub agreed: i64,
    pub disagreed: i64,
    /// From 1; runs that cannot be told from the best of a rank share it.
    #[serde(rename = "rank", skip_serializing_if = "Option::is_none")]
    pub place: Option<i64>,
}

impl Entry {
    pub fn badge(&self) -> Badge {
        match (&self.public_key, self.disagreed, self.agreed) {
            (_, disagreed, _) if disagreed > 0 => Badge::Disagrees(disagreed),
            (_, _, agreed) if agreed > 0 => Badge::Rejudged(agreed),
            (Some(_), _, _) => Badge::Verified,
            (None, _, _) => Badge::Own,
        }
    }

    /// The address of its ranking.
    pub fn board(&self) -> String {
        format!("{}-{}", self.class, self.benchmark)
    }
}

/// The score of graphs that share something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupScore {
    pub name: String,
    pub graphs: usize,
    pub correct: usize,
    #[serde(rename = "as")]
    pub score: f64,
    pub fast_1: f64,
    pub mean: Option<f64>,
}

/// What a run's own page says beside its results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// ES(t), level by level.
    pub es: Vec<(i32, f64)>,
    /// AS as the reference would have counted it.
    pub reference: Option<f64>,
    pub fast_2: f64,
    pub faster: usize,
    pub tied: usize,
    pub slower: usize,
    pub seconds: f64,
    pub noise: f64,
    /// Where the results come from, in words.
    pub conditions: Vec<String>,
    /// How to make such a run.
    pub command: String,
    pub seal: String,
    /// What does not hold in the run.
    pub doubts: Vec<String>,
    pub tasks: Vec<GroupScore>,
    pub dtypes: Vec<GroupScore>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentSummary>,
    /// Tasks and numbers of attempts whose trajectories are in the bundle.
    #[serde(default)]
    pub attempts: Vec<(String, u32)>,
}

/// One graph of an entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultRow {
    pub position: i64,
    #[serde(skip)]
    pub task: usize,
    #[serde(rename = "task")]
    pub task_name: String,
    pub graph: String,
    #[serde(skip)]
    pub model: Option<String>,
    pub verdict: String,
    pub decision: Option<String>,
    pub speedup: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub dtype: String,
    pub evidence: String,
}

/// What came out when a graph was judged again here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rejudged {
    pub position: i64,
    pub task: String,
    pub graph: String,
    /// What the bundle says.
    pub claimed_verdict: String,
    pub claimed_speedup: Option<f64>,
    /// What came out; `None` where it could not be judged here.
    pub verdict: Option<String>,
    pub speedup: Option<f64>,
    /// Whether the two agree; `None` where that cannot be said.
    pub agrees: Option<bool>,
    pub text: String,
    pub place: String,
    pub time: i64,
}

/// A ranking: one device class, one benchmark set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Board {
    pub key: String,
    pub class: String,
    /// The device in few words, and in all words.
    pub device: String,
    pub conditions: String,
    pub benchmark: String,
    pub benchmark_name: String,
    pub tasks: i64,
    pub graphs: i64,
    pub entries: i64,
}
