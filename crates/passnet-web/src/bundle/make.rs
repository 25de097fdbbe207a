//! A run's folder becomes a bundle.

use super::FORMAT;
use super::envelope::{Draft, Limits};
use super::manifest::{AgentSummary, AttemptRef, Claims, Manifest};
use crate::Error;
use passnet_agent::metrics::Metrics;
use passnet_agent::run::{RunFolder, is_agent_run, read_attempts};
use passnet_bench::report::RunRecord;
use passnet_bench::run::{is_run, read_object};
use passnet_bench::score::{Parameters, Score};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The file of a run that holds its events.
pub(super) const EVENTS: &str = "events.jsonl";

/// What is put into a bundle.
#[derive(Debug, Clone, Default)]
pub struct MakeOptions {
    /// What the run is called; else its folder's name.
    pub name: Option<String>,
    /// Whether an agent's trajectories travel along.
    pub trajectories: bool,
}

/// All that a bundle of this run holds.
pub fn draft_of_run(folder: &Path, options: &MakeOptions) -> Result<Draft, Error> {
    let is_agent = is_agent_run(folder);
    let results =
        if is_agent { RunFolder::reader(folder).best_run() } else { folder.to_path_buf() };
    if !is_run(&results) {
        return Err(Error::input(format!("{}: no run here", folder.display()))
            .with_hint("a run is a folder that `passnet bench SAMPLES --out DIR` wrote"));
    }
    let run = RunRecord::read(&results)?;
    let claims = claims(&run).ok_or_else(|| {
        Error::input(format!("{}: the run has no results yet", folder.display()))
            .with_hint("the command that began it goes on with it")
    })?;
    let name = options.name.clone().unwrap_or_else(|| name_of(folder));
    let manifest = Manifest {
        format: FORMAT,
        name,
        events: String::new(),
        claims,
        agent: None,
        attempts: Vec::new(),
        blobs: Vec::new(),
    };
    let mut draft = Draft { manifest, blobs: BTreeMap::new() };
    let events = whole_lines(&results.join(EVENTS))?;
    draft.manifest.events = draft.add(events);
    add_objects(&mut draft, &run, &results)?;
    if is_agent {
        add_agent(&mut draft, folder, options.trajectories)?;
    }
    Ok(draft)
}

/// What the run says of itself, counted here.
pub(super) fn claims(run: &RunRecord) -> Option<Claims> {
    let score = Score::of(&run.scored(), Parameters::default())?;
    Some(Claims {
        tasks: run.samples().len(),
        graphs: run.graphs.len(),
        correct: score.summary.correct,
        aggregated: score.aggregated,
    })
}

fn name_of(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    folder.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
}

/// A torn last line, which a killed run leaves, is no part of it.
fn whole_lines(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = read_bounded(path)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes.truncate(end);
    Ok(bytes)
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, Error> {
    let limit = Limits::default().blob_bytes;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(Error::at(path))?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(Error::at(path))?;
    match bytes.len() as u64 <= limit {
        true => Ok(bytes),
        false => {
            let path = path.display();
            Err(Error::input(format!("{path}: larger than the limit of {limit} bytes")))
        }
    }
}

/// The texts that the results name.
fn add_objects(draft: &mut Draft, run: &RunRecord, results: &Path) -> Result<(), Error> {
    let limit = Limits::default().blob_bytes;
    let named: BTreeSet<&str> = run
        .graphs
        .iter()
        .flat_map(|graph| &graph.event.artefacts)
        .map(|(_, digest)| digest.as_str())
        .collect();
    for digest in named {
        let text = read_object(results, digest, limit).ok_or_else(|| {
            Error::input(format!(
                "{}: the text {} is missing or damaged",
                results.display(),
                digest.escape_debug()
            ))
            .with_hint("a run is bundled with all of its `objects/`")
        })?;
        draft.add(text);
    }
    Ok(())
}

fn add_agent(draft: &mut Draft, folder: &Path, with_trajectories: bool) -> Result<(), Error> {
    let attempts = read_attempts(folder).map_err(|error| Error::input(error.to_string()))?;
    if let Some(metrics) = Metrics::of(&attempts, Parameters::default()) {
        draft.manifest.agent = Some(AgentSummary {
            model: metrics.model,
            tasks: metrics.tasks,
            attempts: metrics.attempts,
            steps: metrics.steps,
            input_tokens: metrics.input_tokens,
            output_tokens: metrics.output_tokens,
            cost: metrics.cost,
            seconds: metrics.seconds,
        });
    }
    if !with_trajectories {
        return Ok(());
    }
    let reader = RunFolder::reader(folder);
    for attempt in &attempts {
        let (task, number) = (attempt.start.task.clone(), attempt.start.attempt);
        let path: PathBuf = reader.trajectory(&task, number);
        let trajectory = draft.add(whole_lines(&path)?);
        draft.manifest.attempts.push(AttemptRef { task, attempt: number, trajectory });
    }
    Ok(())
}
