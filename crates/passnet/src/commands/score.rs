//! `passnet score`: what a run or a reference log is worth, as the reference counts and as it should be counted.

use crate::commands::curve::print_curve;
use crate::commands::report::{no_results, print_doubts, print_place, seal_json};
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use clap::{Args, ValueEnum};
use passnet_bench::log::{GraphList, Log, LogReport, MAX_LOG_BYTES, judge};
use passnet_bench::report::{RunRecord, printable, score_run};
use passnet_bench::run::is_run;
use passnet_bench::score::{Parameters, Score, Scoring};
use passnet_bench::tolerance::BASELINE;
use passnet_graph::Diagnostic;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
strict     judges what really happened. Of a log it believes what the log proves: each failure by its
           own cause, forged, contradicting and repeated lines not believed, graphs of --graph-list
           that are missing counted as failed
reference  gives the number the reference gives for this log, its mistakes included; for a run, that
           of the log the reference would have written
Every graph that the two see differently is listed with the reason. A log cannot prove itself:
lines forged consistently and in full are only excluded by running the passes with `passnet bench`.
A run is sealed: lines that were changed, and speed-ups that its timings do not give, are named, and the
exit code is 1.")]
pub struct ScoreArgs {
    /// A run folder, a validation.log, or a folder that holds one
    #[arg(value_name = "RUN|LOG")]
    path: PathBuf,

    /// Whose judgement counts
    #[arg(long, value_enum, default_value_t = ScoringArg::Strict)]
    scoring: ScoringArg,

    /// What a failed graph scores (above 0, at most 1)
    #[arg(long, default_value_t = 0.1, value_name = "B", allow_negative_numbers = true)]
    b: f64,

    /// Penalty on slow-downs: a speed-up s below 1 counts as s^(p+1)
    #[arg(long, default_value_t = 0.0, value_name = "P", allow_negative_numbers = true)]
    p: f64,

    /// The sample's graph_list.txt, to count graphs that vanished from the log
    #[arg(long, value_name = "FILE")]
    graph_list: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScoringArg {
    Strict,
    Reference,
}

impl From<ScoringArg> for Scoring {
    fn from(arg: ScoringArg) -> Scoring {
        match arg {
            ScoringArg::Strict => Scoring::Strict,
            ScoringArg::Reference => Scoring::Reference,
        }
    }
}

/// A score that could be computed is a success, however low it is, unless what it is computed from does not hold.
pub fn run(args: ScoreArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let parameters = Parameters::checked(args.b, args.p).map_err(CommandError::input)?;
    let record = if is_run(&args.path) { Some(read_run(&args)?) } else { None };
    let (path, report) = match &record {
        Some(run) => (args.path.clone(), score_run(run, parameters)),
        None => (log_path(&args.path), judge_log(&args, parameters)?),
    };
    let run = record.as_ref();
    let shown = Shown { report: &report, run, scoring: args.scoring.into(), parameters };
    let Some(score) = report.score(shown.scoring) else {
        return Err(no_graphs(&path));
    };
    if out.is_json() {
        out.json(&shown.json(score))?;
    } else {
        shown.print(&path, score, out)?;
    }
    Ok(Outcome::failed_if(run.is_some_and(|run| !run.doubts.is_empty())))
}

fn read_run(args: &ScoreArgs) -> Result<RunRecord, CommandError> {
    if args.graph_list.is_some() {
        return Err(CommandError::input("`--graph-list` is for logs; a run knows its graphs"));
    }
    let run = RunRecord::read(&args.path)?;
    if run.graphs.is_empty() {
        return Err(no_results(&args.path));
    }
    Ok(run)
}

fn judge_log(args: &ScoreArgs, parameters: Parameters) -> Result<LogReport, CommandError> {
    let path = log_path(&args.path);
    let log = Log::parse(&path.display().to_string(), &read(&path)?)?;
    let list = match &args.graph_list {
        Some(path) => Some(GraphList::parse(&path.display().to_string(), &read(path)?)?),
        None => None,
    };
    Ok(judge(&log, list.as_ref(), parameters))
}

fn log_path(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("validation.log") } else { path.to_path_buf() }
}

fn no_graphs(path: &Path) -> CommandError {
    Diagnostic::file(
        path.display().to_string(),
        "the log has no `[Processing]` line, so there is nothing to score",
    )
    .with_hint(
        "name the sample's list with `--graph-list graph_list.txt` to count its graphs as failed",
    )
    .into()
}

/// Reads a file of bounded size; a device or a pipe without end must not fill the memory.
fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    let named =
        |error: std::io::Error| Diagnostic::file(path.display().to_string(), error.to_string());
    let file = std::fs::File::open(path).map_err(named)?;
    let mut bytes = Vec::new();
    file.take(MAX_LOG_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(named)?;
    Ok(bytes)
}

/// Rows shown to people before the rest is only counted.
const MAX_ROWS: usize = 40;

struct Shown<'a> {
    report: &'a LogReport,
    /// Where a run was scored, and no log.
    run: Option<&'a RunRecord>,
    scoring: Scoring,
    parameters: Parameters,
}

impl Shown<'_> {
    fn other(&self) -> (Scoring, Option<&Score>) {
        let other = match self.scoring {
            Scoring::Strict => Scoring::Reference,
            Scoring::Reference => Scoring::Strict,
        };
        (other, self.report.score(other))
    }

    fn json(&self, score: &Score) -> Value {
        let (other, other_score) = self.other();
        json!({
            "scoring": self.scoring,
            "conditions": self.run.map(|run| run.conditions()),
            "seal": self.run.map(seal_json),
            "as": score.aggregated,
            "es": score.es,
            "s": score.s,
            "b": self.parameters.b,
            "p": self.parameters.p,
            "summary": score.summary,
            "other": {
                "scoring": other,
                "as": other_score.map(|s| s.aggregated),
                "es": other_score.map(|s| s.es),
            },
            "graphs": self.report.graphs,
            "differences": self.report.differences,
            "findings": self.report.findings,
        })
    }

    fn print(&self, path: &Path, score: &Score, out: &mut Output) -> Result<(), CommandError> {
        let summary = &score.summary;
        out.line(format!(
            "{}: {} scoring, {}",
            path.display(),
            self.scoring,
            count(summary.graphs, "graph")
        ))?;
        if let Some(run) = self.run {
            print_place(run, out)?;
        }
        out.line("")?;
        let (other, other_score) = self.other();
        let other_text = other_score.map_or("none".into(), |s| format!("{:.6}", s.aggregated));
        out.line(format!("AS        {:.6}   ({other}: {other_text})", score.aggregated))?;
        out.line(format!(
            "correct   {} of {} at t = {BASELINE} ({})",
            summary.correct,
            summary.graphs,
            percent(summary.correctness_rate)
        ))?;
        out.line(format!("fast_1    {}", percent(summary.fast_1)))?;
        if let Some(mean) = summary.geometric_mean {
            out.line(format!("speed-up  {mean:.4} (geometric mean of the correct graphs)"))?;
        }
        out.line(format!("b = {}, p = {}", self.parameters.b, self.parameters.p))?;
        out.line("")?;
        print_curve(&score.es, out)?;
        self.print_graphs(out)?;
        self.print_differences(out)?;
        self.print_findings(out)?;
        self.run.map_or(Ok(()), |run| print_doubts(run, out))
    }

    fn print_graphs(&self, out: &mut Output) -> Result<(), CommandError> {
        out.line("")?;
        let mut rows =
            table(["graph", "verdict", "speed-up", "right from", "reference says", "why"]);
        for graph in self.report.graphs.iter().take(MAX_ROWS) {
            let judged = &graph.judged;
            rows.add_row([
                printable(&judged.graph),
                judged.verdict.kind.to_string(),
                judged.speedup.map_or("-".into(), |s| format!("{s:.5}")),
                judged.ladder.first_right().map_or("-".into(), |t| t.to_string()),
                graph.reference_status.map_or("-".into(), |s| s.to_string()),
                judged
                    .verdict
                    .evidence
                    .first()
                    .map(|e| printable(&e.to_string()))
                    .unwrap_or_default(),
            ]);
        }
        out.table(&rows)?;
        and_more(self.report.graphs.len(), out)
    }

    fn print_differences(&self, out: &mut Output) -> Result<(), CommandError> {
        let differences = &self.report.differences;
        out.line("")?;
        if differences.is_empty() {
            return out.line("Strict and reference scoring agree about every graph.");
        }
        out.line(format!(
            "Strict and reference scoring disagree in {}:",
            count(differences.len(), "case")
        ))?;
        for difference in differences.iter().take(MAX_ROWS) {
            let strict = difference.strict.map_or("not counted", |v| v.name());
            let reference = difference.reference.map_or("not counted", |s| s.name());
            out.line(format!(
                "  {}: {strict}, reference {reference}: {}",
                printable(&difference.graph),
                printable(&difference.reason)
            ))?;
        }
        and_more(differences.len(), out)
    }

    fn print_findings(&self, out: &mut Output) -> Result<(), CommandError> {
        let findings = &self.report.findings;
        if findings.is_empty() {
            return Ok(());
        }
        out.line("")?;
        out.line("Noticed:")?;
        for finding in findings.iter().take(MAX_ROWS) {
            let line = finding.line.map(|l| format!("line {l}: ")).unwrap_or_default();
            let graph = finding.graph.as_ref().map(|g| format!("{g}: ")).unwrap_or_default();
            out.line(format!("  {line}{graph}{}", finding.text))?;
        }
        and_more(findings.len(), out)
    }
}

fn and_more(rows: usize, out: &mut Output) -> Result<(), CommandError> {
    match rows.checked_sub(MAX_ROWS) {
        None | Some(0) => Ok(()),
        Some(more) => out.line(format!("  … and {more} more; `--json` prints all")),
    }
}

fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
