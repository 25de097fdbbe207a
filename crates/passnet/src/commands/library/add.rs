//! `passnet library add`

use super::{LibraryPlace, show};
use crate::embedded;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn};
use clap::Args;
use passnet_bench::run::is_run;
use passnet_bench::sample::Sample;
use passnet_library::folder::Origin;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct AddArgs {
    /// Runs, pass folders, folders of these, or pass files
    #[arg(required_unless_present = "bundled", value_name = "RUN|PASS")]
    paths: Vec<PathBuf>,

    /// The passes that this program carries, with the graphs of their tasks
    #[arg(long, conflicts_with = "tasks")]
    bundled: bool,

    /// Graph folders on which the passes can be judged
    #[arg(long, num_args = 1.., value_name = "GRAPH")]
    graphs: Vec<PathBuf>,

    /// A folder of tasks: passes in a folder NAME can be judged on the graphs of the task NAME
    #[arg(long, value_name = "DIR")]
    tasks: Option<PathBuf>,

    /// Who wrote them
    #[arg(long, default_value = "", hide_default_value = true)]
    author: String,

    /// What others may do with them, such as `MIT`
    #[arg(long, default_value = "", hide_default_value = true)]
    licence: String,

    #[command(flatten)]
    place: LibraryPlace,
}

/// The list that makes a folder a pass folder.
const LIST: &str = "sorted_output_pass_rule_names.json";

pub fn run(args: AddArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let library = args.place.open();
    let origin = Origin { author: args.author, licence: args.licence };
    let mut failed = false;
    let (mut paths, mut tasks) = (args.paths, args.tasks);
    if args.bundled {
        paths.push(embedded::material("passes")?);
        tasks = Some(embedded::material("tasks")?);
    }
    for path in &paths {
        if !path.exists() {
            let error = CommandError::input(format!("{}: no such file or folder", path.display()));
            return Err(error.with_hint("give a run, a pass folder or a pass file"));
        }
        if is_run(path) || is_run(&path.join("run")) {
            show(&library.add_run(path, &origin).map_err(CommandError::input)?, output)?;
            continue;
        }
        for folder in pass_folders(path)? {
            let mut graphs = args.graphs.clone();
            graphs.extend(graphs_of_task(tasks.as_deref(), &folder));
            match library.add_passes(&folder, &graphs, &origin) {
                Ok(added) => show(&[added], output)?,
                Err(error) => {
                    failed = true;
                    warn(&format!("{}: not added: {error}", folder.display()));
                }
            }
        }
    }
    output.flush()?;
    Ok(Outcome::failed_if(failed))
}

/// The graphs of the task that a pass folder is named after.
fn graphs_of_task(tasks: Option<&Path>, passes: &Path) -> Vec<PathBuf> {
    let task = tasks.zip(passes.file_name()).map(|(tasks, name)| tasks.join(name));
    let sample = task.and_then(|task| Sample::read(&task).ok());
    let folders = |sample: Sample| {
        let folder = |graph: &String| sample.graph_folder(graph);
        sample.graphs.iter().map(folder).collect()
    };
    sample.map(folders).unwrap_or_default()
}

/// The path itself, or the pass folders that lie in it.
fn pass_folders(path: &Path) -> Result<Vec<PathBuf>, CommandError> {
    if !path.is_dir() || path.join(LIST).is_file() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut inner: Vec<PathBuf> = std::fs::read_dir(path)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|folder| folder.join(LIST).is_file())
        .collect();
    inner.sort();
    if inner.is_empty() {
        let error = CommandError::input(format!("{}: neither a run nor passes", path.display()));
        return Err(error.with_hint(format!("a pass folder lists its passes in `{LIST}`")));
    }
    Ok(inner)
}
