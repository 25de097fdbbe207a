//! The files a report can leave behind.

use crate::error::CommandError;
use crate::output::Output;
use passnet_agent::run::{is_agent_run, read_attempts};
use passnet_bench::reference_format::{LOG_NAME, SCORE_NAME, reference_files};
use passnet_bench::report::{RunRecord, html};
use passnet_bench::score::Parameters;
use passnet_graph::Diagnostic;
use std::path::{Path, PathBuf};

/// The results of runs, and the attempts of those that an agent made.
pub(super) fn write_page(
    runs: &[RunRecord],
    paths: &[PathBuf],
    path: &Path,
    parameters: Parameters,
) -> Result<(), CommandError> {
    let mut agents = Vec::new();
    for run in paths.iter().filter(|run| is_agent_run(run)) {
        let attempts =
            read_attempts(run).map_err(|error| CommandError::input(error.to_string()))?;
        agents.push((run.display().to_string(), attempts));
    }
    let page = html::page_with(runs, parameters, |page| {
        for (name, attempts) in &agents {
            passnet_web::pages::attempts(name, attempts, parameters, page);
        }
    });
    write(path, page.as_bytes())
}

/// Writes the reference's files and prints what it prints: the log, ES(t), AS, and where the score is.
pub(super) fn write_reference_files(
    run: &RunRecord,
    folder: &Path,
    parameters: Parameters,
    out: &mut Output,
) -> Result<(), CommandError> {
    let samples = reference_files(run, parameters)?;
    let is_alone = samples.len() == 1;
    for files in samples {
        let folder = match is_alone {
            true => folder.to_path_buf(),
            false => folder.join(folder_name(&files.sample)?),
        };
        std::fs::create_dir_all(&folder).map_err(|error| named(&folder, &error))?;
        let score = folder.join(SCORE_NAME);
        write(&folder.join(LOG_NAME), &files.log)?;
        write(&score, files.score.as_bytes())?;
        out.line(String::from_utf8_lossy(&files.log).trim_end())?;
        out.line(files.aggregation.trim_end())?;
        out.line(format!("Result is saved to {}", score.display()))?;
    }
    Ok(())
}

/// A sample's name comes from the run: it must be one plain name.
fn folder_name(sample: &str) -> Result<&str, CommandError> {
    let mut parts = Path::new(sample).components();
    let is_plain =
        matches!(parts.next(), Some(std::path::Component::Normal(_))) && parts.next().is_none();
    match is_plain {
        true => Ok(sample),
        false => Err(CommandError::input(format!("`{}` is no folder name", sample.escape_debug()))),
    }
}

/// Whole or not at all: a reader never finds half a file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    let mut partial = path.as_os_str().to_os_string();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = Path::new(&partial);
    let written = std::fs::write(partial, bytes).and_then(|()| std::fs::rename(partial, path));
    written.map_err(|error| {
        // What is left of it helps nobody.
        let _ = std::fs::remove_file(partial);
        named(path, &error)
    })
}

fn named(path: &Path, error: &std::io::Error) -> CommandError {
    Diagnostic::file(path.display().to_string(), error.to_string()).into()
}
