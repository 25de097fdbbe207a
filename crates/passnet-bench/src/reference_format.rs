//! The formats of the reference: a run as the lines and files that tools built on the reference read.
//!
//! A log has no words for much of what a run knows: checks beyond the reference's question, rules, time limits. Such
//! graphs fail in the log as the reference would have let them fail, with our reason in the message.

use crate::log::{
    FailureCause, GraphBlock, GraphEntry, Log, LogWriter, OutputLines, RunConfig, Timings,
    WrittenResult, aggregated_score_json, aggregation_text, judge,
};
use crate::report::{GraphRecord, RunRecord};
use crate::run::{GraphEvent, Start};
use crate::score::{Parameters, Scoring};
use crate::verdict::{Evidence, Verdict, VerdictKind};
use passnet_graph::Diagnostic;

/// The files' names; the reference's aggregation insists on the first.
pub const LOG_NAME: &str = "validation.log";
/// The file with the score of a whole run.
pub const SCORE_NAME: &str = "aggregated_score.json";
/// The reference's `entry.sh` gives every sample this id.
const SAMPLE_ID: i64 = 1;
/// A stored run may claim any number of outputs; a log line lists at most so many.
const MAX_OUTPUTS: usize = 1000;
/// What stands for a type that a run did not record.
const UNKNOWN_TYPE: &str = "tensor";

/// What the reference writes for one sample, and what it prints after its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceFiles {
    /// The task whose files these are.
    pub sample: String,
    /// `validation.log`.
    pub log: Vec<u8>,
    /// `aggregated_score.json`.
    pub score: String,
    /// ES(t) level by level, and AS.
    pub aggregation: String,
}

/// The files of every sample of a run. The score is that of the log as it is written, read back.
pub fn reference_files(
    run: &RunRecord,
    parameters: Parameters,
) -> Result<Vec<ReferenceFiles>, Diagnostic> {
    let mut all = Vec::new();
    for (sample, graphs) in run.samples() {
        let mut log = Vec::new();
        for graph in graphs {
            log.extend(graph_lines(run.start.as_ref(), &graph.event));
        }
        let report = judge(&Log::parse(LOG_NAME, &log)?, None, parameters);
        let score = report.score(Scoring::Reference).ok_or_else(|| {
            Diagnostic::file(LOG_NAME, format!("no graph of `{sample}` is in the log"))
        })?;
        all.push(ReferenceFiles {
            sample: sample.to_string(),
            score: aggregated_score_json(SAMPLE_ID, score),
            aggregation: aggregation_text(score),
            log,
        });
    }
    Ok(all)
}

/// One graph's part of a log, read back.
pub(crate) fn logged_block(start: Option<&Start>, graph: &GraphRecord) -> Option<GraphBlock> {
    Log::parse(LOG_NAME, &graph_lines(start, &graph.event)).ok()?.blocks.pop()
}

/// One graph's part of a log.
pub fn graph_lines(start: Option<&Start>, event: &GraphEvent) -> Vec<u8> {
    let evaluation = &event.evaluation;
    let path = evaluation.judged.graph.as_str();
    let parts = Parts::of(event);
    let mut writer = LogWriter::new(Vec::new(), config(start, evaluation.eager_ms.len()));
    let rewrites: Vec<(&str, usize)> =
        evaluation.rewrites.iter().map(|done| (done.pass.as_str(), done.count)).collect();
    let entry = GraphEntry {
        path,
        model: path.trim_end_matches('/').rsplit('/').next().unwrap_or(path),
        rewrites: &rewrites,
        result: parts.result(event),
    };
    // Writing into memory does not fail.
    writer.write(&entry).map(|()| writer.into_inner()).unwrap_or_default()
}

/// What the log says about the run. Trials are counted graph by graph: the harness stops when it knows enough.
fn config(start: Option<&Start>, trials: usize) -> RunConfig {
    let text = |of: fn(&Start) -> &str| start.map_or("unknown", of).to_string();
    let identity = start.and_then(|start| start.identity.as_ref());
    let gpu = identity.filter(|identity| identity.device.kind == "cuda");
    RunConfig {
        device: if gpu.is_some() { "cuda" } else { "cpu" }.into(),
        hardware: match gpu {
            Some(identity) => identity.device.name.clone(),
            None => text(|start| &start.machine.processor),
        },
        compiler: match start.map(|start| start.compiler.as_str()) {
            Some("pass") | None => "pass_mgr".into(),
            Some(other) => other.into(),
        },
        warmup: start.map_or(0, |start| start.options.timing.warmup),
        trials,
        framework_version: identity
            .and_then(|identity| identity.torch.clone())
            .unwrap_or_else(|| text(|start| &start.version)),
    }
}

/// The lists that a written result borrows.
struct Parts {
    types: Vec<String>,
    other_types: Vec<String>,
    outputs: Vec<OutputLines>,
    message: String,
}

impl Parts {
    fn of(event: &GraphEvent) -> Parts {
        let evaluation = &event.evaluation;
        let verdict = &evaluation.judged.verdict;
        let mut parts = Parts {
            types: Vec::new(),
            other_types: Vec::new(),
            outputs: Vec::new(),
            message: message(verdict),
        };
        if verdict.kind.is_comparable() {
            for output in evaluation.outputs.iter().take(MAX_OUTPUTS) {
                parts.types.push(output.dtype.clone());
                parts.outputs.push(OutputLines {
                    equal: output.equal,
                    ladders: output.ladders,
                    max_error: output.max_error.0,
                    mean_error: output.mean_error.0,
                });
            }
            return parts;
        }
        for evidence in &verdict.evidence {
            match evidence {
                Evidence::Dtype { expected, actual, .. } => {
                    parts.types.push(expected.clone());
                    parts.other_types.push(actual.clone());
                }
                Evidence::OutputCount { expected, actual } => {
                    let unknown = |count: usize| vec![UNKNOWN_TYPE.into(); count.min(MAX_OUTPUTS)];
                    (parts.types, parts.other_types) = (unknown(*expected), unknown(*actual));
                }
                Evidence::Shape { .. } => parts.types.push(UNKNOWN_TYPE.into()),
                _ => {}
            }
        }
        parts.types.truncate(MAX_OUTPUTS);
        parts.other_types.truncate(MAX_OUTPUTS);
        parts
    }

    fn result<'a>(&'a self, event: &'a GraphEvent) -> WrittenResult<'a> {
        let evaluation = &event.evaluation;
        let timings =
            Timings { compiled: &evaluation.candidate_ms, eager: &evaluation.eager_ms, gpu: None };
        match evaluation.judged.verdict.kind {
            VerdictKind::Correct | VerdictKind::Accuracy if !self.outputs.is_empty() => {
                WrittenResult::Compared { types: &self.types, outputs: &self.outputs, timings }
            }
            VerdictKind::DtypeMismatch | VerdictKind::ShapeMismatch
                if self.types != self.other_types && !self.other_types.is_empty() =>
            {
                WrittenResult::TypesDiffer { eager: &self.types, compiled: &self.other_types }
            }
            VerdictKind::DtypeMismatch | VerdictKind::ShapeMismatch if !self.types.is_empty() => {
                WrittenResult::ShapesDiffer { types: &self.types, message: &self.message }
            }
            VerdictKind::NoMatch => WrittenResult::Failed(FailureCause::NothingMatched),
            VerdictKind::ReferenceFail => WrittenResult::Failed(FailureCause::Eager(&self.message)),
            _ => WrittenResult::Failed(FailureCause::Compiled(&self.message)),
        }
    }
}

/// The verdict as the exception that the reference would have printed.
fn message(verdict: &Verdict) -> String {
    let exception = match verdict.kind {
        VerdictKind::CompileFail => "CompilationError",
        VerdictKind::Timeout => "TimeoutError",
        _ => "RuntimeError",
    };
    format!("{exception}: {verdict}")
}
