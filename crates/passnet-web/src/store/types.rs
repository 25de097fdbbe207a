//! What pages and the interface for machines are made from.

use crate::bundle::AgentSummary;
use serde::{Deserialize, Serialize};

/// Whether an entry still stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    /// It counts.
    Listed,
    /// Its author took it back.
    Withdrawn,
    /// A later entry of the same author took its place.
    Superseded,
}

impl EntryState {
    /// Listed ones first.
    pub const ALL: [EntryState; 3] =
        [EntryState::Listed, EntryState::Withdrawn, EntryState::Superseded];

    /// As the interface for machines says it.
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
    /// In words, as pages print it.
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
#[allow(
    missing_docs,
    reason = "a row of the table `entry`, whose columns are the numbers of the run's report"
)]
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
    /// How far it was checked.
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
    /// The task or the element type.
    pub name: String,
    /// In it.
    pub graphs: usize,
    /// Of these, called correct.
    pub correct: usize,
    /// AS of the group alone.
    #[serde(rename = "as")]
    pub score: f64,
    /// Share of graphs that are right and as fast as eager.
    pub fast_1: f64,
    /// Geometric mean of the speed-ups of right graphs.
    pub mean: Option<f64>,
}

/// What a run's own page says beside its results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// ES(t), level by level.
    pub es: Vec<(i32, f64)>,
    /// AS as the reference would have counted it.
    pub reference: Option<f64>,
    /// Share of graphs that are right and twice as fast as eager.
    pub fast_2: f64,
    /// Graphs faster than eager by more than noise.
    pub faster: usize,
    /// Graphs where the difference is noise.
    pub tied: usize,
    /// Graphs slower by more than noise.
    pub slower: usize,
    /// Of all evaluations.
    pub seconds: f64,
    /// The largest noise floor of its graphs.
    pub noise: f64,
    /// Where the results come from, in words.
    pub conditions: Vec<String>,
    /// How to make such a run.
    pub command: String,
    /// Whether its lines are those that were written, in words.
    pub seal: String,
    /// What does not hold in the run.
    pub doubts: Vec<String>,
    /// Scores by task.
    pub tasks: Vec<GroupScore>,
    /// Scores by element type.
    pub dtypes: Vec<GroupScore>,
    /// Where a model wrote the passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentSummary>,
    /// Tasks and numbers of attempts whose trajectories are in the bundle.
    #[serde(default)]
    pub attempts: Vec<(String, u32)>,
}

/// One graph of an entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "a row of the table `result`, named as in a stored run")]
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
    /// Of the graph in the run's events.
    pub position: i64,
    /// Its task.
    pub task: String,
    /// Its folder's name.
    pub graph: String,
    /// What the bundle says.
    pub claimed_verdict: String,
    /// What the bundle says.
    pub claimed_speedup: Option<f64>,
    /// What came out; `None` where it could not be judged here.
    pub verdict: Option<String>,
    /// What came out.
    pub speedup: Option<f64>,
    /// Whether the two agree; `None` where that cannot be said.
    pub agrees: Option<bool>,
    /// Evidence, or why it was not judged.
    pub text: String,
    /// Where it was judged.
    pub place: String,
    /// Seconds since 1970.
    pub time: i64,
}

/// A ranking: one device class, one benchmark set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Board {
    /// Its address.
    pub key: String,
    /// Of devices, as a digest.
    pub class: String,
    /// The device in few words, and in all words.
    pub device: String,
    /// What its runs have in common.
    pub conditions: String,
    /// Digest of the set of graphs.
    pub benchmark: String,
    /// The set in words.
    pub benchmark_name: String,
    /// In the set.
    pub tasks: i64,
    /// In the set.
    pub graphs: i64,
    /// Listed ones.
    pub entries: i64,
}
