//! `passnet graph show`

use crate::error::{CommandError, Outcome, render_diagnostic};
use crate::output::{Output, table, warn};
use crate::paths::for_each_graph;
use clap::Args;
use passnet_graph::print::{print_arg, print_model};
use passnet_graph::{Call, Graph, GraphFolder, read};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Graph folders, `model.py` files, trees of them, or `.tar.zst` archives
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Print the graph as canonical `model.py`
    #[arg(long)]
    print: bool,
}

pub fn run(args: ShowArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let mut failed = false;
    for_each_graph(&args.paths, read::read_folder, |path, result| match result {
        Ok(folder) => show(output, path, &folder, args.print),
        Err(errors) => {
            failed = true;
            errors.iter().for_each(|error| warn(&render_diagnostic(error)));
            Ok(())
        }
    })?;
    output.flush()?;
    Ok(Outcome::failed_if(failed))
}

fn show(
    output: &mut Output,
    path: &str,
    folder: &GraphFolder,
    print: bool,
) -> Result<(), CommandError> {
    if print {
        return output.line(print_model(&folder.graph).trim_end());
    }
    let graph = &folder.graph;
    output.line(format!(
        "{path}: {} operations, {} arguments, {} outputs",
        graph.op_count(),
        graph.placeholder_count(),
        graph.outputs.len()
    ))?;
    let mut rows = table(["#", "line", "name", "operation", "class", "arguments"]);
    for (index, (id, call)) in graph.calls().enumerate() {
        rows.add_row([
            index.to_string(),
            graph.node(id).line.to_string(),
            shorten(&graph.node(id).name, 28),
            call.target.op_name().into_owned(),
            call.op().map_or("unknown", |op| op.class().name()).into(),
            shorten(&arguments(graph, call), 60),
        ]);
    }
    output.table(&rows)
}

fn arguments(graph: &Graph, call: &Call) -> String {
    let positional = call.args.iter().map(|arg| print_arg(graph, arg));
    let keywords =
        call.kwargs.iter().map(|(name, arg)| format!("{name}={}", print_arg(graph, arg)));
    positional.chain(keywords).collect::<Vec<_>>().join(", ")
}

fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
