//! A whole log, judged both ways, with every difference explained.

use super::block::Phrase;
use super::difference::{Difference, DifferenceKind, Finding};
use super::{GraphList, Log, reference_scored, strict};
use crate::score::{
    JudgedGraph, Parameters, Score, ScoredGraph, Scoring, curve_levels, graph_error_aware,
};
use crate::tolerance::Ladder;
use crate::verdict::{Evidence, ReferenceStatus, Verdict, VerdictKind};
use serde::Serialize;

/// One graph of a log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoggedGraph {
    /// What the log supports, whatever it claims.
    #[serde(flatten)]
    pub judged: JudgedGraph,
    /// `None` for graphs that are only in the list.
    pub reference_status: Option<ReferenceStatus>,
    /// Where it begins in the log.
    pub line: Option<usize>,
}

/// A log, judged both ways.
#[derive(Debug, Clone)]
pub struct LogReport {
    /// The graphs that count under strict scoring.
    pub graphs: Vec<LoggedGraph>,
    /// What is odd about the log.
    pub findings: Vec<Finding>,
    /// Where strict judgement and the reference's part.
    pub differences: Vec<Difference>,
    /// `None` if there is no graph at all.
    pub strict: Option<Score>,
    /// By the rules of the reference.
    pub reference: Option<Score>,
}

impl LogReport {
    /// `None` without graphs.
    pub fn score(&self, scoring: Scoring) -> Option<&Score> {
        match scoring {
            Scoring::Strict => self.strict.as_ref(),
            Scoring::Reference => self.reference.as_ref(),
        }
    }
}

/// Judges every graph of a log both ways. With a list, graphs missing from the log count as failed and graphs
/// missing from the list do not count, under strict scoring.
pub fn judge(log: &Log, list: Option<&GraphList>, parameters: Parameters) -> LogReport {
    let mut report = LogReport {
        graphs: Vec::new(),
        findings: general_findings(log),
        differences: Vec::new(),
        strict: None,
        reference: None,
    };
    let reference: Vec<ScoredGraph> = log.blocks.iter().map(reference_scored).collect();
    report.reference = Score::of(&reference, parameters);
    let mut seen_graphs = SeenGraphs::new(list);
    for (block, reference) in log.blocks.iter().zip(&reference) {
        let judgement = strict::judge(block, &mut report.findings);
        let status = block.reference_status();
        let strict = judgement.judged.scored(Scoring::Strict);
        let kind = judgement.judged.verdict.kind;
        let difference = |kind, strict, reason: String| Difference {
            graph: block.path.clone(),
            kind,
            reference: Some(status),
            strict,
            reason,
        };
        let reason = judgement.reason;
        let logged = LoggedGraph {
            judged: judgement.judged,
            reference_status: Some(status),
            line: Some(block.line),
        };
        let listing = seen_graphs.find(&block.path);
        if !matches!(listing, Listing::Unlisted) && differ(reference, &strict, parameters) {
            let (why, reason) = reason.unwrap_or_else(|| {
                (DifferenceKind::Misclassified, kind.classification().why.to_string())
            });
            report.differences.push(difference(why, Some(kind), reason));
        }
        match listing {
            Listing::Unlisted => report.differences.push(difference(
                DifferenceKind::Unlisted,
                None,
                "the graph is not in the graph list and does not count".into(),
            )),
            Listing::New => report.graphs.push(logged),
            Listing::Taken(position) => {
                report.differences.push(difference(
                    DifferenceKind::Repeated,
                    Some(kind),
                    "the graph stands more than once in the log; the worse result counts".into(),
                ));
                if let Some(old) = report.graphs.get_mut(position)
                    && rank(&logged.judged) < rank(&old.judged)
                {
                    *old = logged;
                }
            }
        }
    }
    for path in seen_graphs.missing() {
        let judged = vanished(log, path);
        report.differences.push(Difference {
            graph: path.to_string(),
            kind: DifferenceKind::Vanished,
            reference: None,
            strict: Some(judged.verdict.kind),
            reason: "the graph is in the list and not in the log; the reference leaves it out"
                .into(),
        });
        report.graphs.push(LoggedGraph { judged, reference_status: None, line: None });
    }
    let strict: Vec<ScoredGraph> =
        report.graphs.iter().map(|g| g.judged.scored(Scoring::Strict)).collect();
    report.strict = Score::of(&strict, parameters);
    report
}

/// Whether two results of a graph score differently at any level.
pub(crate) fn differ(a: &ScoredGraph, b: &ScoredGraph, parameters: Parameters) -> bool {
    curve_levels()
        .any(|t| graph_error_aware(a, t, parameters) != graph_error_aware(b, t, parameters))
}

/// Orders results of one graph from worse to better.
fn rank(judged: &JudgedGraph) -> (bool, u32, u64) {
    let is_forgiven = judged.scored(Scoring::Strict).class().tolerated_from().is_some();
    // Positive floats order like their bits.
    (is_forgiven, judged.ladder.count(), judged.speedup.unwrap_or(0.0).max(0.0).to_bits())
}

fn general_findings(log: &Log) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut note = |line, text: String| findings.push(Finding { graph: None, line, text });
    if log.damaged_lines > 0 {
        note(None, format!("{} lines are not UTF-8; the reference would stop", log.damaged_lines));
    }
    if log.overlong_lines > 0 {
        note(None, format!("{} lines are too long and were cut", log.overlong_lines));
    }
    let told = [
        (Phrase::RefusedSource, "a pass file was refused"),
        (Phrase::NoFunctionLeft, "no pass was left to apply"),
        (Phrase::GraphMissing, "a graph folder was missing"),
    ];
    for (phrase, text) in told {
        if let Some(mention) = log.mention(phrase) {
            note(Some(mention.line), format!("{text}: {}", mention.text));
        }
    }
    findings
}

/// The verdict on a graph that never appeared.
fn vanished(log: &Log, path: &str) -> JudgedGraph {
    let causes = [
        (Phrase::RefusedSource, VerdictKind::Integrity),
        (Phrase::NoFunctionLeft, VerdictKind::NoMatch),
    ];
    let cause = causes.into_iter().find_map(|(phrase, kind)| Some((log.mention(phrase)?, kind)));
    let verdict = match cause {
        // A refusal explains a missing graph only if it left nothing to apply.
        Some((mention, kind)) if log.mention(Phrase::NoFunctionLeft).is_some() => {
            Verdict::new(kind)
                .with(Evidence::LogLine { line: mention.line, text: mention.text.clone() })
        }
        _ => Verdict::new(VerdictKind::RuntimeFail)
            .because("in the graph list but not in the log: its process died before it began"),
    };
    JudgedGraph { graph: path.to_string(), verdict, ladder: Ladder::NONE, speedup: None }
}

/// Which graphs of the log have been seen, and which of the list.
struct SeenGraphs<'a> {
    list: Option<&'a GraphList>,
    /// By list position, or by path without a list: the position among the graphs that count.
    seen: std::collections::BTreeMap<(usize, String), usize>,
}

enum Listing {
    New,
    Taken(usize),
    Unlisted,
}

impl<'a> SeenGraphs<'a> {
    fn new(list: Option<&'a GraphList>) -> Self {
        SeenGraphs { list, seen: std::collections::BTreeMap::new() }
    }

    fn find(&mut self, path: &str) -> Listing {
        let key = match self.list {
            None => (0, path.to_string()),
            Some(list) => match list.position(path) {
                Some(position) => (position, String::new()),
                None => return Listing::Unlisted,
            },
        };
        let next = self.seen.len();
        match self.seen.get(&key) {
            Some(&position) => Listing::Taken(position),
            None => {
                self.seen.insert(key, next);
                Listing::New
            }
        }
    }

    fn missing(&self) -> Vec<&'a str> {
        let Some(list) = self.list else { return Vec::new() };
        let is_missing = |i: &usize| !self.seen.contains_key(&(*i, String::new()));
        (0..list.paths().len()).filter(is_missing).map(|i| list.paths()[i].as_str()).collect()
    }
}
