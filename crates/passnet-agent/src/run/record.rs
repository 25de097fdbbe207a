//! An attempt as its trajectory tells it: the facts that reports and exports need.

use super::folder::BEST_EVENTS;
use super::{RunError, RunFolder, io};
use crate::budget::EndReason;
use crate::evaluator::{Files, Question};
use crate::trajectory::{BestEvent, End, Event, Start};
use passnet_bench::event_log::{self, LogError, Seal};
use passnet_bench::run::GraphEvent;
use passnet_bench::verdict::VerdictKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One evaluation of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluated {
    /// Of the reply that asked for it.
    pub step: u32,
    /// AS.
    pub score: f64,
    /// Whether every graph was right.
    pub is_correct: bool,
    /// Verdicts of the graphs that were not, with their numbers.
    pub failures: BTreeMap<VerdictKind, usize>,
}

/// One attempt.
#[derive(Debug, Clone)]
pub struct AttemptRecord {
    /// All of them, in order.
    pub events: Vec<Event>,
    /// The first of them.
    pub start: Start,
    /// With a score, in order.
    pub evaluations: Vec<Evaluated>,
    /// The last of the best.
    pub best: Option<BestEvent>,
    /// Missing while the attempt goes on.
    pub end: Option<End>,
    /// Whether its lines are those that were written.
    pub seal: Seal,
    /// Where it was read from.
    pub folder: Option<PathBuf>,
}

impl AttemptRecord {
    /// An error where the file has no beginning.
    pub fn read(path: &Path) -> Result<AttemptRecord, RunError> {
        let (lines, seal) = event_log::read_sealed(path)?;
        let no_start = || RunError::Damaged {
            path: path.to_path_buf(),
            message: "the trajectory has no beginning".into(),
        };
        let events = lines.into_iter().map(|(_, event)| event).collect();
        let record = AttemptRecord::of(events).ok_or_else(no_start)?;
        Ok(AttemptRecord { seal, folder: path.parent().map(Path::to_path_buf), ..record })
    }

    /// `None` without a beginning.
    pub fn of(events: Vec<Event>) -> Option<AttemptRecord> {
        let Some(Event::Start(start)) = events.first() else { return None };
        let start = (**start).clone();
        let mut record = AttemptRecord {
            events: Vec::new(),
            start,
            evaluations: Vec::new(),
            best: None,
            end: None,
            seal: Seal::default(),
            folder: None,
        };
        for event in &events {
            match event {
                Event::Result(result) => {
                    let Some(found) = &result.assessment else { continue };
                    let (Some(score), Question::Evaluate) = (found.score, found.question) else {
                        continue;
                    };
                    let mut failures = BTreeMap::new();
                    let wrong = found.graphs.iter().map(|graph| graph.verdict.kind);
                    for kind in wrong.filter(|kind| *kind != VerdictKind::Correct) {
                        *failures.entry(kind).or_insert(0) += 1;
                    }
                    let (step, is_correct) = (result.step, found.is_all_correct());
                    record.evaluations.push(Evaluated { step, score, is_correct, failures });
                }
                Event::Best(best) => record.best = Some((**best).clone()),
                Event::End(end) => record.end = Some((**end).clone()),
                // Whatever follows an end continues the attempt.
                Event::Reply(_) => record.end = None,
                Event::Start(_) | Event::Message { .. } => {}
            }
        }
        record.events = events;
        Some(record)
    }

    /// AS of the best version.
    pub fn best_score(&self) -> Option<f64> {
        self.best.as_ref().map(|best| best.score)
    }

    /// The best version, by name.
    pub fn best_files(&self) -> impl Iterator<Item = (&String, &String)> {
        let files: Option<&Files> = self.best.as_ref().map(|best| &best.files);
        files.into_iter().flatten()
    }

    /// What PassBench found about the best version, as it was kept beside the record.
    pub fn best_events(&self) -> Option<Vec<GraphEvent>> {
        let bytes = std::fs::read(self.folder.as_ref()?.join(BEST_EVENTS)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The evaluation of the best version: the first with its score.
    pub fn best_evaluation(&self) -> Option<&Evaluated> {
        let best = self.best.as_ref()?;
        self.evaluations.iter().find(|found| found.step == best.step && found.score == best.score)
    }

    /// Whether the best version is right on every graph.
    pub fn is_correct(&self) -> bool {
        self.best_evaluation().is_some_and(|found| found.is_correct)
    }

    /// Whether it need not go on.
    pub fn is_finished(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.reason.is_final())
    }

    /// `None` while it goes on.
    pub fn reason(&self) -> Option<EndReason> {
        self.end.as_ref().map(|end| end.reason)
    }

    /// Replies so far.
    pub fn steps(&self) -> u32 {
        let step = |event: &Event| match event {
            Event::Reply(reply) => Some(reply.step),
            _ => None,
        };
        self.events.iter().rev().find_map(step).unwrap_or(0)
    }
}

/// All attempts of a run that have begun, by task and number.
pub fn read_attempts(root: &Path) -> Result<Vec<AttemptRecord>, RunError> {
    let folder = RunFolder::reader(root);
    let mut found = Vec::new();
    for task in names(&folder.attempts())? {
        let mut numbers: Vec<u32> =
            names(&folder.attempts().join(&task))?.iter().filter_map(|n| n.parse().ok()).collect();
        numbers.sort_unstable();
        for number in numbers {
            let path = folder.trajectory(&task, number);
            match AttemptRecord::read(&path) {
                Ok(record) => found.push(record),
                // Stopped before its first line was whole.
                Err(RunError::Damaged { .. }) => {}
                Err(RunError::Log(LogError::Io { .. })) if !path.exists() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(found)
}

fn names(folder: &Path) -> Result<Vec<String>, RunError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io(folder))? {
        let entry = entry.map_err(io(folder))?;
        if entry.file_type().map_err(io(folder))?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
