//! `passnet reference aggregate`

use super::custom;
use crate::commands::report::files::write;
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Args;
use passnet_bench::log::{Log, MAX_LOG_BYTES, aggregated_score_json, aggregation_text, judge};
use passnet_bench::score::{Parameters, Score, Scoring, weighted_speedup};
use passnet_graph::Diagnostic;
use std::io::Read;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct AggregateArgs {
    /// The log, or a folder with `validation.log`
    #[arg(long, value_name = "FILE")]
    benchmark_path: PathBuf,

    /// What the score file calls the sample
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    sample_id: i64,

    /// Where the score goes
    #[arg(long, value_name = "FILE")]
    output_json_file_path: PathBuf,

    /// Penalty on slow-downs: a speed-up s below 1 counts as s^(p+1)
    #[arg(long, default_value_t = 0.0, value_name = "P", allow_negative_numbers = true)]
    negative_speedup_penalty: f64,

    /// What a failed graph scores
    #[arg(long, default_value_t = 0.1, value_name = "B", allow_negative_numbers = true)]
    fpdb: f64,

    /// Accepted and not needed: there is one way to compute a score here, and nothing to check it against
    #[arg(long, overrides_with = "disable_aggregation_mode")]
    enable_aggregation_mode: bool,

    /// As above
    #[arg(long)]
    disable_aggregation_mode: bool,

    /// How levels above 0 are read; the reference scores only the default
    #[arg(long, default_value = "default", value_parser = ["default"])]
    positive_tolerance_interpretation: String,
}

pub fn run(args: AggregateArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let parameters = Parameters::checked(args.fpdb, args.negative_speedup_penalty)
        .map_err(CommandError::input)?;
    let path = match args.benchmark_path.is_dir() {
        true => args.benchmark_path.join("validation.log"),
        false => args.benchmark_path.clone(),
    };
    let name = path.display().to_string();
    let unreadable = |error: std::io::Error| Diagnostic::file(name.as_str(), error.to_string());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).map_err(unreadable)?;
    file.take(MAX_LOG_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let report = judge(&Log::parse(&name, &bytes)?, None, parameters);
    let score = report.score(Scoring::Reference).ok_or_else(|| {
        Diagnostic::file(name.as_str(), "no graph is in the log, so there is nothing to score")
            .with_hint("a graph is in the log when it has a `[Processing]` line")
    })?;
    let score = match custom::weights()? {
        None => score.clone(),
        Some(weights) => {
            Score { aggregated: weighted_speedup(&score.es, &weights), ..score.clone() }
        }
    };
    let place = &args.output_json_file_path;
    write(place, aggregated_score_json(args.sample_id, &score).as_bytes())?;
    out.line(aggregation_text(&score).trim_end())?;
    out.line(format!("Result is saved to {}", place.display()))?;
    out.flush()?;
    Ok(Outcome::Done)
}
