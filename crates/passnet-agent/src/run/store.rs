//! The best attempt of each task as a PassBench run, for reports, scores and comparisons.

use super::{AttemptRecord, RunError, RunFolder, Settings, io};
use crate::task::Task;
use passnet_bench::evaluate::Evaluation;
use passnet_bench::run::{Event, FORMAT, GraphEvent, Machine, RunStore, Start};
use passnet_bench::verdict::{Verdict, VerdictKind};
use passnet_engine::Identity;
use passnet_graph::FileName;

/// The compiler's name in the run.
const COMPILER: &str = "agent";

#[derive(Debug)]
pub(super) struct BestStore {
    store: RunStore,
}

impl BestStore {
    pub(super) fn open(folder: &RunFolder, identity: &Identity) -> Result<Self, RunError> {
        let settings = Settings::read(folder.root())?;
        let mut store = RunStore::open(&folder.best_run())?;
        store.append(&Event::Start(Box::new(Start {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            engine: identity.engine.clone(),
            compiler: COMPILER.into(),
            options: settings.evaluate,
            rules: Some(settings.rules),
            machine: Machine::this(),
            identity: Some(identity.clone()),
            time: crate::agent::now() as u64,
        })))?;
        Ok(BestStore { store })
    }

    /// Says that all tasks are done.
    pub(super) fn finish(mut self, graphs: usize) -> Result<(), RunError> {
        Ok(self.store.append(&Event::End { graphs })?)
    }

    /// Writes what the best attempt of a finished task found, unless it is there already.
    pub(super) fn settle(
        &mut self,
        folder: &RunFolder,
        task: &Task,
        attempts: u32,
    ) -> Result<(), RunError> {
        let mut best: Option<(u32, AttemptRecord, f64)> = None;
        for attempt in 0..attempts {
            let record = AttemptRecord::read(&folder.trajectory(&task.id, attempt))?;
            if let Some(score) = record.best_score()
                && best.as_ref().is_none_or(|(_, _, best)| score > *best)
            {
                best = Some((attempt, record, score));
            }
        }
        let events = match &best {
            Some((attempt, record, _)) => events(folder, task, *attempt, record)?,
            None => task.graphs.iter().map(|graph| never_evaluated(task, &graph.name)).collect(),
        };
        let origin = best.as_ref().map_or("none".into(), |(attempt, record, score)| {
            format!("{attempt} {} {score}", record.steps())
        });
        for mut event in events {
            event.key = key(&task.id, &event.evaluation.judged.graph, &origin);
            if self.store.is_latest(&event) {
                continue;
            }
            let graph = task.index_of(&event.evaluation.judged.graph);
            let files = graph.and_then(|index| task.graphs[index].files.as_ref());
            if let Some(model) = files.and_then(|files| files.get(FileName::Model)) {
                event.artefacts.push((FileName::Model.as_str().into(), self.store.keep(model)?));
            }
            if let Some((_, record, _)) = &best {
                for (name, text) in record.best_files() {
                    event.artefacts.push((name.clone(), self.store.keep(text.as_bytes())?));
                }
            }
            self.store.append(&Event::Graph(Box::new(event)))?;
        }
        Ok(())
    }
}

fn events(
    folder: &RunFolder,
    task: &Task,
    attempt: u32,
    record: &AttemptRecord,
) -> Result<Vec<GraphEvent>, RunError> {
    let path = folder.best_events(&task.id, attempt);
    let bytes = std::fs::read(&path).map_err(io(&path))?;
    let events: Vec<GraphEvent> = serde_json::from_slice(&bytes)
        .map_err(|error| RunError::Damaged { path: path.clone(), message: error.to_string() })?;
    match record.best_score().is_some() && events.len() == task.graphs.len() {
        true => Ok(events),
        false => Err(RunError::Damaged { path, message: "not the graphs of this task".into() }),
    }
}

fn never_evaluated(task: &Task, graph: &str) -> GraphEvent {
    let verdict = Verdict::new(VerdictKind::CompileFail).because("no attempt evaluated a pass");
    GraphEvent {
        sample: task.id.clone(),
        folder: String::new(),
        key: String::new(),
        artefacts: Vec::new(),
        evaluation: Evaluation::without_run(graph, verdict),
    }
}

fn key(task: &str, graph: &str, origin: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [task, graph, origin] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
