//! `passnet site`: pages of runs as files.

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use crate::progress::Bar;
use clap::Args;
use passnet_web::site::{SiteOptions, write_site};
use passnet_work::progress::Task;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
The pages are those of `passnet serve`: rankings, runs, tasks with their graphs before and after, passes, runs against
each other, attempts of models, the dataset. They open from a disk and from any static host.

Examples:
  passnet bench bench/tasks --passes bench/passes --out runs/one
  passnet site runs/one --out site --tasks bench/tasks --dataset bench/set/evaluation.pnds")]
pub struct SiteArgs {
    /// Run folders that `passnet bench --out` or `passnet agent run --out` wrote
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Where the site goes: a new folder, or an empty one
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// The runs' tasks, to show launch plans
    #[arg(long, value_name = "DIR")]
    tasks: Vec<PathBuf>,

    /// A dataset to browse
    #[arg(long, value_name = "FILE.pnds")]
    dataset: Option<PathBuf>,

    /// Who made the runs
    #[arg(long, default_value = "local", value_name = "NAME")]
    author: String,
}

pub fn run(args: SiteArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let options = SiteOptions {
        runs: args.runs,
        tasks: args.tasks,
        dataset: args.dataset,
        author: args.author,
    };
    let bar = Bar::new();
    let mut task = Task::begin(&bar, "writing pages", None);
    let report = write_site(&options, &args.out, &mut |_| task.advance(1))?;
    drop(task);
    let start = args.out.join("index.html");
    match out.is_json() {
        true => {
            let mut value = json!(report);
            value["start"] = start.display().to_string().into();
            out.json(&value)?;
        }
        false => out.line(format!(
            "{}: {} pages of {} runs, {:.1} MB, the largest {:.0} kB",
            start.display(),
            report.pages,
            report.runs,
            report.bytes as f64 / 1e6,
            report.largest as f64 / 1e3
        ))?,
    }
    out.flush()?;
    Ok(Outcome::Done)
}
