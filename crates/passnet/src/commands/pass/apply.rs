//! `passnet pass apply`

use super::{Passes, counted};
use crate::error::{CommandError, Outcome, render_diagnostic};
use crate::output::{Output, warn};
use crate::paths::for_each_graph;
use clap::Args;
use passnet_graph::print::print_model;
use passnet_graph::read;
use passnet_pass::matcher::MatchOptions;
use passnet_pass::rewrite::{Applied, RunOptions, Stop};
use passnet_pass::trace::{Dialect, Pass};
use passnet_pass::{explain, rewrite};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    passes: Passes,

    /// Graph folders, trees of them, or `.tar.zst` archives
    #[arg(long = "in", required = true, num_args = 1.., value_name = "GRAPHS")]
    graphs: Vec<PathBuf>,

    /// Write every rewritten graph below this folder instead of printing it
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Let `maximum(a, b)` match `maximum(b, a)`, which may return another zero; sums and products always do
    #[arg(long)]
    commutative: bool,
}

/// A rewritten graph as text, with what each pass did.
struct Rewritten {
    model: String,
    applied: Vec<Applied>,
    reasons: Vec<Option<String>>,
    left_out: Vec<Box<str>>,
}

pub fn run(args: ApplyArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let sets = args.passes.load()?;
    let mut failed = false;
    let mut prepared = Vec::new();
    for set in &sets {
        let traced = args.passes.traced(set, Dialect::Plain);
        failed |= traced.failed;
        prepared.push((set, traced.passes));
    }
    let matching = MatchOptions { commutative: args.commutative, ..MatchOptions::default() };
    let options = RunOptions { matching, ..RunOptions::default() };
    for_each_graph(
        &args.graphs,
        |files| {
            let folder = read::read_folder(files).map_err(|errors| {
                errors.iter().map(render_diagnostic).collect::<Vec<_>>().join("\n")
            })?;
            let mut graph = folder.graph;
            let mut applied = Vec::new();
            let mut reasons = Vec::new();
            let mut left_out = Vec::new();
            for (set, passes) in &prepared {
                let report = rewrite::run(&set.program, passes, &graph, &options)
                    .map_err(|error| format!("error: {}: {error}", files.path))?;
                let explain = |(pass, done): (&Pass, &Applied)| {
                    done.miss.as_ref().map(|miss| explain::brief(pass, &graph, miss))
                };
                reasons.extend(passes.iter().zip(&report.applied).map(explain));
                applied.extend(report.applied);
                left_out.extend(report.left_out);
                graph = report.graph;
            }
            Ok(Rewritten { model: print_model(&graph), applied, reasons, left_out })
        },
        |path, result: Result<Rewritten, String>| {
            let rewritten = match result {
                Ok(rewritten) => rewritten,
                Err(message) => {
                    failed = true;
                    warn(&message);
                    return Ok(());
                }
            };
            failed |= rewritten.applied.iter().all(|applied| applied.needed == 0);
            if let Some(out) = &args.out {
                write(out, path, &rewritten.model)?;
            }
            show(output, path, &rewritten, args.out.is_none())
        },
    )?;
    output.flush()?;
    Ok(Outcome::failed_if(failed))
}

fn write(out: &Path, graph: &str, model: &str) -> Result<(), CommandError> {
    // The graph's own path, without what would lead out of the folder.
    let parts = Path::new(graph).components().filter_map(|part| match part {
        std::path::Component::Normal(part) => Some(part),
        _ => None,
    });
    let folder = out.join(parts.collect::<PathBuf>());
    std::fs::create_dir_all(&folder)?;
    Ok(std::fs::write(folder.join("model.py"), model)?)
}

fn show(
    output: &mut Output,
    path: &str,
    rewritten: &Rewritten,
    with_model: bool,
) -> Result<(), CommandError> {
    let done = rewritten.applied.iter().zip(&rewritten.reasons);
    if output.is_json() {
        let applied: Vec<_> = done
            .map(|(applied, reason)| {
                json!({
                    "pass": applied.pass,
                    "patches": applied.patches.len(),
                    "needed": applied.needed,
                    "stop": applied.stop,
                    "reason": reason,
                })
            })
            .collect();
        let mut value = json!({"graph": path, "applied": applied});
        if !rewritten.left_out.is_empty() {
            value["left_out"] = json!(rewritten.left_out);
        }
        if with_model {
            value["model"] = rewritten.model.as_str().into();
        }
        return output.json(&value);
    }
    output.line(format!("# {path}"))?;
    for (applied, reason) in done {
        let stop = match applied.stop {
            Stop::Saturated => "",
            Stop::MatchesItself => ", stopped: all that still matches is what it made itself",
            Stop::PatchLimit => ", stopped: too many rewrites",
            Stop::GrowthLimit => ", stopped: the graph grows too much",
        };
        let count = applied.patches.len();
        let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let unneeded = match count - applied.needed {
            0 => String::new(),
            unneeded => format!(", {unneeded} of what nothing needs and so without effect"),
        };
        let count = counted(count, "rewrite", "rewrites");
        output.line(format!("# {}: {count}{unneeded}{stop}{reason}", applied.pass))?;
    }
    if !rewritten.left_out.is_empty() {
        let calls = counted(rewritten.left_out.len(), "call", "calls");
        let names = rewritten.left_out.join(", ");
        output.line(format!("# without {calls} that nothing needs: {names}"))?;
    }
    if with_model {
        output.line(rewritten.model.trim_end())?;
    }
    Ok(())
}
