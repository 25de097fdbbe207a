//! `passnet graph hash`

use super::Paths;
use crate::error::{CommandError, Outcome, render_diagnostic};
use crate::output::Output;
use crate::paths::for_each_graph;
use passnet_graph::{Diagnostic, Identity, identify, read};
use serde_json::json;

pub fn run(args: Paths, output: &mut Output) -> Result<Outcome, CommandError> {
    let mut failed = false;
    for_each_graph(
        &args.paths,
        |files| {
            let folder = read::read_folder(files)?;
            Ok((folder.graph.op_count(), identify(&folder.graph, &folder.metas)))
        },
        |path, result: Result<(usize, Identity), Vec<Diagnostic>>| {
            failed |= result.is_err();
            show(output, path, &result)
        },
    )?;
    output.flush()?;
    Ok(Outcome::failed_if(failed))
}

fn show(
    output: &mut Output,
    path: &str,
    result: &Result<(usize, Identity), Vec<Diagnostic>>,
) -> Result<(), CommandError> {
    match result {
        Ok((ops, identity)) if output.is_json() => output.json(&json!({
            "path": path,
            "ops": ops,
            "structure": identity.structure.to_string(),
            "literals": identity.literals.to_string(),
            "full": identity.full.to_string(),
        })),
        Ok((ops, identity)) => {
            let short = |digest: &passnet_graph::Digest| digest.to_string()[..16].to_string();
            output.line(format!(
                "{}  {}  {}  {ops:>6}  {path}",
                short(&identity.structure),
                short(&identity.literals),
                short(&identity.full)
            ))
        }
        Err(errors) if output.is_json() => output.json(&json!({"path": path, "errors": errors})),
        Err(errors) => errors.iter().try_for_each(|error| output.line(render_diagnostic(error))),
    }
}
