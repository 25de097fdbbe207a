//! A run as its store remembers it.

use super::audit::{Doubt, audit};
use super::conditions::Conditions;
use crate::event_log::{LogError, Seal};
use crate::run::{self, Event, GraphEvent, Start};
use crate::sample::labels;
use crate::score::{ScoredGraph, Scoring};
use crate::tolerance::BASELINE;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a graph is named across runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GraphName {
    /// The task, under a name that tells it from its namesakes.
    pub sample: String,
    /// Its folder's name.
    pub graph: String,
}

impl std::fmt::Display for GraphName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.sample, self.graph)
    }
}

/// One graph and the conditions under which it was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphRecord {
    /// As it was stored.
    pub event: GraphEvent,
    /// Of the machine when the graph was measured.
    pub noise_floor: f64,
    /// Under what it was judged; shared by the graphs of one start.
    pub conditions: Arc<Conditions>,
}

impl GraphRecord {
    /// By which runs are compared.
    pub fn name(&self) -> GraphName {
        GraphName {
            sample: self.event.sample.clone(),
            graph: self.event.evaluation.judged.graph.clone(),
        }
    }

    /// What it counts for by strict scoring.
    pub fn scored(&self) -> ScoredGraph {
        self.event.evaluation.judged.scored(Scoring::Strict)
    }

    /// The speed-up, if the graph is right.
    pub fn right_speedup(&self) -> Option<f64> {
        self.scored().speedup_at(BASELINE)
    }

    /// Right at the baseline tolerance, under every check.
    pub fn is_right(&self) -> bool {
        self.right_speedup().is_some()
    }

    /// The digest of a kept text.
    pub fn artefact(&self, name: &str) -> Option<&str> {
        let mut artefacts = self.event.artefacts.iter();
        artefacts.find(|(kept, _)| kept == name).map(|(_, digest)| digest.as_str())
    }

    /// The part of the corpus a graph comes from, where its path tells: `fusible_subgraphs` and the like.
    pub fn category(&self) -> Option<&str> {
        let mut parts = self.event.evaluation.judged.graph.split('/');
        parts.find(|part| part.ends_with("_subgraphs"))
    }
}

/// A run: what its last results are, in an order that does not depend on how often it was stopped and continued.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// For people; that of its folder, mostly.
    pub name: String,
    /// Where kept texts lie.
    pub folder: Option<PathBuf>,
    /// The conditions of its last part.
    pub start: Option<Start>,
    /// By sample and graph; of several results for one graph the last counts.
    pub graphs: Vec<GraphRecord>,
    /// Whether the last command got to its end.
    pub is_complete: bool,
    /// Whether its lines are sealed; a run that is not read from a file has none.
    pub seal: Seal,
    /// What in it does not hold.
    pub doubts: Vec<Doubt>,
}

impl RunRecord {
    /// Reads a run folder.
    pub fn read(folder: &Path) -> Result<RunRecord, LogError> {
        let (events, seal) = run::read_sealed(folder)?;
        let name = folder.display().to_string();
        let folder = Some(folder.to_path_buf());
        Ok(RunRecord { folder, ..RunRecord::of_lines(&name, events, seal) })
    }

    /// A run from its events, oldest first.
    pub fn of(name: &str, events: Vec<Event>) -> RunRecord {
        let lines = events.into_iter().enumerate().map(|(index, event)| (index + 1, event));
        RunRecord::of_lines(name, lines.collect(), Seal::default())
    }

    /// As [`RunRecord::of`], for events that were audited before: nothing is found again from the timings.
    pub fn of_audited(name: &str, events: Vec<Event>) -> RunRecord {
        let lines = events.into_iter().enumerate().map(|(index, event)| (index + 1, event));
        RunRecord::with_doubts(name, lines.collect(), Seal::default(), Vec::new())
    }

    fn of_lines(name: &str, events: Vec<(usize, Event)>, seal: Seal) -> RunRecord {
        let doubts = audit(&events, &seal);
        RunRecord::with_doubts(name, events, seal, doubts)
    }

    fn with_doubts(
        name: &str,
        mut events: Vec<(usize, Event)>,
        seal: Seal,
        doubts: Vec<Doubt>,
    ) -> RunRecord {
        tell_samples_apart(&mut events);
        let is_complete = matches!(events.last(), Some((_, Event::End { .. })));
        let mut start: Option<Start> = None;
        let mut conditions: Arc<Conditions> = Arc::default();
        let mut graphs: BTreeMap<GraphName, GraphRecord> = BTreeMap::new();
        for (_, event) in events {
            match event {
                Event::Start(begun) => {
                    let begun_here = Conditions::of(&begun);
                    if begun_here != *conditions {
                        conditions = Arc::new(begun_here);
                    }
                    start = Some(*begun);
                }
                Event::Graph(event) => {
                    let floor = start.as_ref().map_or(0.0, |start| start.options.noise_floor);
                    let noise_floor = if floor.is_finite() { floor.max(0.0) } else { 0.0 };
                    let conditions = conditions.clone();
                    let record = GraphRecord { event: *event, noise_floor, conditions };
                    graphs.insert(record.name(), record);
                }
                Event::End { .. } => {}
            }
        }
        RunRecord {
            name: name.to_string(),
            folder: None,
            start,
            graphs: graphs.into_values().collect(),
            is_complete,
            seal,
            doubts,
        }
    }

    /// The conditions of its results, each once, in the order of the graphs.
    pub fn conditions(&self) -> Vec<&Conditions> {
        let mut found: Vec<&Conditions> = Vec::new();
        for graph in &self.graphs {
            if !found.contains(&&*graph.conditions) {
                found.push(&graph.conditions);
            }
        }
        found
    }

    /// What its graphs count for.
    pub fn scored(&self) -> Vec<ScoredGraph> {
        self.graphs.iter().map(GraphRecord::scored).collect()
    }

    /// One graph by its name.
    pub fn graph(&self, name: &GraphName) -> Option<&GraphRecord> {
        let found = self.graphs.binary_search_by(|graph| graph.name().cmp(name));
        found.ok().map(|index| &self.graphs[index])
    }

    /// The graphs of each sample, by name.
    pub fn samples(&self) -> BTreeMap<&str, Vec<&GraphRecord>> {
        let mut samples: BTreeMap<&str, Vec<&GraphRecord>> = BTreeMap::new();
        for graph in &self.graphs {
            samples.entry(&graph.event.sample).or_default().push(graph);
        }
        samples
    }

    /// A kept text of at most `limit` bytes, damaged characters replaced.
    pub fn text(&self, digest: &str, limit: u64) -> Option<String> {
        let bytes = run::read_object(self.folder.as_deref()?, digest, limit)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Gives samples that share a name but not a folder names that differ.
fn tell_samples_apart(events: &mut [(usize, Event)]) {
    let keys: Vec<(String, String)> = events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Graph(graph) => Some((graph.sample.clone(), graph.folder.clone())),
            _ => None,
        })
        .collect();
    let labels = labels(keys.iter().map(|(name, folder)| (name.as_str(), folder.as_str())));
    for (_, event) in events {
        if let Event::Graph(graph) = event
            && let Some(label) = labels.get(&(graph.sample.as_str(), graph.folder.as_str()))
        {
            graph.sample = label.clone();
        }
    }
}
