//! `passnet graph check`

use super::Paths;
use crate::error::{CommandError, Outcome, render_diagnostic};
use crate::output::Output;
use crate::paths::for_each_graph;
use passnet_graph::check::check_folder;
use passnet_graph::{Diagnostic, read};
use serde_json::json;

pub fn run(args: Paths, output: &mut Output) -> Result<Outcome, CommandError> {
    let (mut graphs, mut failed) = (0_usize, 0_usize);
    for_each_graph(
        &args.paths,
        |files| match read::read_folder(files) {
            Ok(folder) => check_folder(&files.path, &folder),
            Err(errors) => errors,
        },
        |path, errors| {
            graphs += 1;
            failed += usize::from(!errors.is_empty());
            show(output, path, &errors)
        },
    )?;
    if !output.is_json() {
        output.line(format!("{graphs} graphs checked, {failed} with errors"))?;
    }
    output.flush()?;
    Ok(Outcome::failed_if(failed > 0))
}

fn show(output: &mut Output, path: &str, errors: &[Diagnostic]) -> Result<(), CommandError> {
    if output.is_json() {
        return output.json(&json!({"path": path, "ok": errors.is_empty(), "errors": errors}));
    }
    errors.iter().try_for_each(|error| output.line(render_diagnostic(error)))
}
