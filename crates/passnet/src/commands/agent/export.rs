//! `passnet agent export`

use super::{attempts, verl_table};
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use passnet_agent::export::guard::{Unfit, unfit};
use passnet_agent::export::{
    ChatFilter, Framework, PairFilter, chat_lines, completions, framework_lines, preference_pairs,
    trajectories,
};
use passnet_agent::run::AttemptRecord;
use passnet_agent::secrets::Redactor;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  passnet agent export runs/gpt --to sft --out sft.jsonl --success --min-score 1.0 --dedup
  passnet agent export runs/gpt --to preference --out pairs.jsonl
  passnet agent export runs/gpt --to trl --out train.jsonl --success       for SFTTrainer, with tools
  passnet agent export runs/gpt --to axolotl --out train.jsonl --success
  passnet agent export runs/gpt --to verl --out prompts.parquet            or .jsonl, which verl reads as well
  passnet agent export runs/gpt --to reference --out exp        writes exp.jsonl and exp_completions.jsonl

An attempt whose record was changed, whose score is not that of its results, or that holds what looks like a key is left
out of every form, and said. `docs/learning.md` has a table of the forms.")]
pub struct ExportArgs {
    /// Folders that `passnet agent run --out` wrote
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Chat lines for fine-tuning, pairs of attempts, the form of a trainer, or the files of the reference
    #[arg(long, value_enum, default_value_t = Format::Sft)]
    to: Format,

    /// The file to write; for the reference, the experiment's name with its folder
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Only attempts whose best version is right on every graph
    #[arg(long)]
    success: bool,

    /// Only attempts whose best version scores at least this
    #[arg(long, value_name = "AS")]
    min_score: Option<f64>,

    /// Of attempts with the same best files keep the shortest
    #[arg(long)]
    dedup: bool,

    /// Only conversations of at most so many characters
    #[arg(long, value_name = "N")]
    max_chars: Option<usize>,

    /// Leave out what came after the best version
    #[arg(long)]
    until_best: bool,

    /// Pairs: the better score over the worse one, at least
    #[arg(long, default_value_t = 1.1, value_name = "R")]
    min_ratio: f64,

    /// Pairs of one task, at most
    #[arg(long, default_value_t = 4, value_name = "N")]
    max_pairs: usize,

    /// Take attempts from before records were sealed: nobody can tell whether these were changed
    #[arg(long)]
    unsealed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Sft,
    Preference,
    For(Framework),
    Reference,
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Format>> = LazyLock::new(|| {
            let own = [Format::Sft, Format::Preference].into_iter();
            own.chain(Framework::ALL.map(Format::For)).chain([Format::Reference]).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, about) = match self {
            Format::Sft => ("sft", "Whole conversations, as servers write them"),
            Format::Preference => ("preference", "Pairs of attempts, as servers write them"),
            Format::For(framework) => (framework.name(), framework.about()),
            Format::Reference => ("reference", "The two files of the reference"),
        };
        Some(PossibleValue::new(name).help(about))
    }
}

/// Takes out what nobody should learn from, and says so.
fn keep_fit(found: &mut Vec<AttemptRecord>, allow_unsealed: bool) -> BTreeMap<String, usize> {
    let redactor = Redactor::from_environment(None);
    let mut left_out: BTreeMap<Unfit, Vec<String>> = BTreeMap::new();
    found.retain(|attempt| match unfit(attempt, &redactor, allow_unsealed) {
        None => true,
        Some(reason) => {
            let name = format!("{} attempt {}", attempt.start.task, attempt.start.attempt);
            left_out.entry(reason).or_default().push(name);
            false
        }
    });
    for (reason, names) in &left_out {
        warn(&format!("note: left out, because {reason}: {}", names.join(", ")));
    }
    left_out.into_iter().map(|(reason, names)| (reason.to_string(), names.len())).collect()
}

pub fn run(args: &ExportArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    if args.out.extension().is_some_and(|ending| ending == "parquet") && !is_table(args) {
        return Err(CommandError::input("only --to verl is written as a table")
            .with_hint("name a file that ends in .jsonl"));
    }
    let mut found = Vec::new();
    for run in &args.runs {
        found.extend(attempts(run)?);
    }
    let unfinished = found.iter().filter(|attempt| !attempt.is_finished()).count();
    if unfinished > 0 {
        warn(&format!("note: {unfinished} attempts are not finished and are left out"));
    }
    found.retain(|attempt| attempt.is_finished());
    let left_out = keep_fit(&mut found, args.unsealed);
    let filter = ChatFilter {
        success: args.success,
        min_score: args.min_score,
        deduplicate: args.dedup,
        max_chars: args.max_chars,
        until_best: args.until_best,
    };
    let pair_filter = PairFilter {
        min_ratio: args.min_ratio,
        max_pairs: args.max_pairs,
        ..PairFilter::default()
    };
    let files: Vec<(PathBuf, Vec<Value>)> = match args.to {
        Format::For(framework) => {
            let lines = framework_lines(&found, framework, &filter, pair_filter);
            vec![(args.out.clone(), lines)]
        }
        Format::Preference => vec![(args.out.clone(), preference_pairs(&found, pair_filter))],
        Format::Reference => {
            let name = args.out.file_name().map_or("passnet".into(), |name| name.to_string_lossy());
            let lines = trajectories(&found, &name);
            vec![
                (args.out.with_file_name(format!("{name}.jsonl")), lines),
                (args.out.with_file_name(format!("{name}_completions.jsonl")), completions(&found)),
            ]
        }
        Format::Sft => vec![(args.out.clone(), chat_lines(&found, &filter))],
    };
    let mut written = Vec::new();
    for (path, lines) in &files {
        match is_table(args) {
            true => verl_table::write(path, lines)?,
            false => write_lines(path, lines)?,
        }
        written.push(json!({ "file": path.display().to_string(), "lines": lines.len() }));
        if !out.is_json() {
            out.line(format!("{}: {} lines", path.display(), lines.len()))?;
        }
    }
    if out.is_json() {
        out.json(&json!({ "attempts": found.len(), "left_out": left_out, "written": written }))?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Whether a table is asked for: one for verl, by the name of its file.
fn is_table(args: &ExportArgs) -> bool {
    let is_parquet = args.out.extension().is_some_and(|ending| ending == "parquet");
    is_parquet && args.to == Format::For(Framework::Verl)
}

/// Whole or not at all: a reader never finds half a file.
fn write_lines(path: &Path, lines: &[Value]) -> Result<(), CommandError> {
    let named = |error: std::io::Error| CommandError::input(format!("{}: {error}", path.display()));
    let mut partial = path.as_os_str().to_os_string();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    let mut file = std::io::BufWriter::new(std::fs::File::create(&partial).map_err(named)?);
    for line in lines {
        writeln!(file, "{line}").map_err(named)?;
    }
    file.flush().map_err(named)?;
    std::fs::rename(&partial, path).map_err(named)
}
