//! `passnet init`: a task of one's own graphs, with passes to begin with.

use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::paths::for_each_graph;
use clap::Args;
use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, check};
use passnet_bench::sample::Sample;
use passnet_bench::verdict::{Verdict, VerdictKind};
use passnet_engine::Engine;
use passnet_engine::native::NativeEngine;
use passnet_graph::GraphFiles;
use passnet_solver::scaffold::{Scaffold, scaffold};
use passnet_solver::solve::EXPLANATION;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
DIR becomes a task: graphs/ with copies of the graphs, graph_list.txt with their names, and pass_dir/ with passes that
match them: pattern, arguments, masked kernels and the code that launches them, computing what the graphs compute. They
are checked on the spot, and nothing is measured. Where no kernel can be written for a graph, its pass is a skeleton that
matches, compiles and says what to write. Without --from, DIR is a task or a graph already and gets passes only.

Examples:
  passnet init my_task --from examples/graphs/rms_norm_gate        one graph
  passnet bench my_task                                            what the passes are worth
  passnet extract my_model.py:factory --out captured               graphs of a model of yours ...
  passnet init my_model --from captured                            ... and a task of them

Exit code 1 means that passes were written which are not right yet.")]
pub struct InitArgs {
    /// The task's folder
    dir: PathBuf,

    /// Graph folders, trees of them (as `passnet extract` writes), or archives
    #[arg(long, num_args = 1.., value_name = "PATH")]
    from: Vec<PathBuf>,

    /// Write no passes
    #[arg(long, requires = "from")]
    no_pass: bool,

    /// Overwrite passes that are there
    #[arg(long)]
    force: bool,
}

const LIST: &str = "graph_list.txt";
/// A task of more graphs than this was meant to be a dataset.
const MOST_GRAPHS: usize = 10_000;

pub fn run(args: &InitArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    if !args.from.is_empty() {
        make_sample(&args.dir, &args.from)?;
    }
    let sample = Sample::read(&args.dir).map_err(|error| {
        let message = error.to_string();
        CommandError::input(message).with_hint("`--from PATH` names the graphs to make a task of")
    })?;
    if args.no_pass {
        show(&sample, None, &[], out)?;
        return Ok(Outcome::Done);
    }
    let folder = sample.pass_folder();
    if folder.join(super::bench::MANIFEST).exists() && !args.force {
        let message = format!("{}: there are passes already", folder.display());
        return Err(CommandError::input(message).with_hint("`--force` overwrites them"));
    }
    // A solution that is known already is not written again, whatever became of its files.
    match std::fs::remove_file(folder.join(EXPLANATION)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let engine = NativeEngine;
    let written = scaffold(&engine, &sample, &folder)
        .map_err(|error| CommandError::input(error.to_string()))?;
    let verdicts = verdicts(&engine, &sample, &folder);
    show(&sample, Some(&written), &verdicts, out)?;
    let is_right = verdicts.iter().all(|(_, verdict)| verdict.kind == VerdictKind::Correct);
    Ok(Outcome::failed_if(!is_right))
}

/// Copies the graphs and lists them. The list comes last: what is not finished is no task.
fn make_sample(folder: &Path, from: &[PathBuf]) -> Result<(), CommandError> {
    let list = folder.join(LIST);
    if list.exists() {
        let message = format!("{}: this is a task already", folder.display());
        return Err(CommandError::input(message)
            .with_hint("without `--from` it gets passes; another folder becomes another task"));
    }
    let mut names = BTreeSet::new();
    let mut lines = String::new();
    for_each_graph(from, GraphFiles::clone, |path, files| {
        if names.len() >= MOST_GRAPHS {
            return Err(CommandError::input(format!("more than {MOST_GRAPHS} graphs"))
                .with_hint("`passnet dataset build` makes tasks of a corpus"));
        }
        let name = free_name(path, &names);
        let target = folder.join("graphs").join(&name);
        let io = |path: &Path, error: std::io::Error| {
            CommandError::input(format!("{}: {error}", path.display()))
        };
        std::fs::create_dir_all(&target).map_err(|error| io(&target, error))?;
        for (file, bytes) in &files.files {
            let path = target.join(file.as_str());
            std::fs::write(&path, bytes).map_err(|error| io(&path, error))?;
        }
        lines.push_str(&format!("graphs/{name}\n"));
        names.insert(name);
        Ok(())
    })?;
    std::fs::write(&list, lines)
        .map_err(|error| CommandError::input(format!("{}: {error}", list.display())))
}

/// The last part of a path as a plain name that is not taken.
fn free_name(path: &str, taken: &BTreeSet<String>) -> String {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let plain: String = last.chars().take(100).map(|c| if is_plain(c) { c } else { '_' }).collect();
    let plain = match plain.trim_start_matches('.') {
        "" => "graph".to_string(),
        name => name.to_string(),
    };
    let numbered = (2..).map(|number| format!("{plain}_{number}"));
    let mut all = std::iter::once(plain.clone()).chain(numbered);
    all.find(|name| !taken.contains(name)).unwrap_or(plain)
}

/// What an evaluation without a clock says of every graph.
fn verdicts(engine: &dyn Engine, sample: &Sample, folder: &Path) -> Vec<(String, Verdict)> {
    let options = EvaluateOptions { draws: 1, thorough: false, ..EvaluateOptions::default() };
    let candidate = Candidate::load(folder, sample.input_pass_folder().as_deref(), true);
    let verdict = |graph: &String| match (&candidate, sample.graph_files(graph)) {
        (Err(verdict), _) => (**verdict).clone(),
        (_, Err(error)) => Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()),
        (Ok(candidate), Ok(files)) => check(engine, &files, candidate, &options).judged.verdict,
    };
    sample.graphs.iter().map(|graph| (graph.clone(), verdict(graph))).collect()
}

fn show(
    sample: &Sample,
    written: Option<&Scaffold>,
    verdicts: &[(String, Verdict)],
    out: &mut Output,
) -> Result<(), CommandError> {
    let folder = sample.pass_folder();
    if out.is_json() {
        let graphs: Vec<_> = verdicts
            .iter()
            .map(|(graph, verdict)| json!({ "graph": graph, "verdict": verdict.kind }))
            .collect();
        out.json(&json!({
            "task": sample.folder,
            "graphs": sample.graphs,
            "pass_dir": written.map(|_| &folder),
            "passes": written.map(|written| &written.passes),
            "to_write": written.and_then(|written| written.to_write.as_ref()),
            "verdicts": graphs,
        }))?;
        return out.flush();
    }
    let graphs = match sample.graphs.len() {
        1 => "one graph".to_string(),
        several => format!("{several} graphs"),
    };
    out.line(format!("{}: a task of {graphs}", sample.folder.display()))?;
    let Some(written) = written else { return out.flush() };
    for pass in &written.passes {
        out.line(format!("wrote {}", folder.join(format!("{pass}.py")).display()))?;
    }
    if let Some(reason) = &written.to_write {
        out.line(format!("its kernel is a skeleton, for nothing was written by itself: {reason}"))?;
    }
    let mut rows = table(["graph", "verdict"]);
    for (graph, verdict) in verdicts.iter().take(MOST_SHOWN) {
        rows.add_row([graph.clone(), verdict.to_string()]);
    }
    out.table(&rows)?;
    let right = verdicts.iter().filter(|(_, v)| v.kind == VerdictKind::Correct).count();
    out.line(format!("{right} of {} graphs are matched and correct", verdicts.len()))?;
    out.line("")?;
    out.line(format!(
        "next: edit {}, then `passnet bench {}`",
        folder.display(),
        sample.folder.display()
    ))?;
    out.flush()
}

/// Graphs that are listed.
const MOST_SHOWN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_each_is_there_once() {
        let mut taken = BTreeSet::new();
        for (path, expected) in [
            ("a/rms norm", "rms_norm"),
            ("b/rms norm/", "rms_norm_2"),
            ("..", "graph"),
            ("x/.hidden", "hidden"),
            ("", "graph_2"),
        ] {
            let name = free_name(path, &taken);
            assert_eq!(name, expected);
            taken.insert(name);
        }
    }
}
