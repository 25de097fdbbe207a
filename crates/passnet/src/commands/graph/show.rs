//! `passnet graph show`

use crate::error::{CommandError, Outcome};
use crate::output::{Output, table, warn_located};
use crate::paths::{any_path, for_each_graph, named};
use clap::Args;
use passnet_graph::infer::{self, Inference, infer_folder};
use passnet_graph::print::{print_arg, print_model};
use passnet_graph::{Call, Graph, GraphFolder, read};
use serde_json::{Map, Value};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Graph folders, `model.py` files, trees of them, or `.tar.zst` archives
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Infer the shape, stride and dtype of every value
    #[arg(long)]
    infer: bool,

    /// Print the graph as canonical `model.py`
    #[arg(long, conflicts_with = "infer")]
    print: bool,

    /// Run the graph and show time, bytes and FLOPs of every operation against this machine's rates
    #[arg(long, conflicts_with_all = ["infer", "print"])]
    profile: bool,

    /// Where `--profile` runs it: our own engine on the CPU, or eager PyTorch on a GPU, kernel by kernel
    #[arg(long, requires = "profile", default_value = "cpu", value_parser = ["cpu", "cuda"])]
    device: String,

    /// A Python with PyTorch, for a GPU [default: the one that `passnet doctor` finds]
    #[arg(long, env = "PASSNET_PYTHON", value_name = "PATH", value_parser = any_path())]
    python: Option<PathBuf>,
}

pub fn run(args: ShowArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    if args.profile && args.device == "cuda" {
        return super::cuda::run(&args.paths, named(args.python.as_deref()), output);
    }
    if args.profile {
        return super::profile::run(&args.paths, output);
    }
    let mut failed = false;
    for_each_graph(
        &args.paths,
        |files| {
            read::read_folder(files).map(|folder| {
                let inference = args.infer.then(|| infer_folder(&folder));
                (folder, inference)
            })
        },
        |path, result| match result {
            Ok((folder, inference)) => show(output, path, &folder, inference.as_ref(), args.print),
            Err(errors) => {
                failed = true;
                warn_located(&errors);
                Ok(())
            }
        },
    )?;
    output.flush()?;
    Ok(Outcome::failed_if(failed))
}

fn show(
    output: &mut Output,
    path: &str,
    folder: &GraphFolder,
    inference: Option<&Inference>,
    print: bool,
) -> Result<(), CommandError> {
    if print {
        return output.line(print_model(&folder.graph).trim_end());
    }
    if output.is_json() {
        return output.json(&describe(path, folder, inference.is_some()));
    }
    let graph = &folder.graph;
    output.line(format!(
        "{path}: {} operations, {} arguments, {} outputs",
        graph.op_count(),
        graph.placeholder_count(),
        graph.outputs.len()
    ))?;
    let mut rows = table(["#", "line", "name", "operation", "class", "arguments", "result"]);
    for (index, (id, call)) in graph.calls().enumerate() {
        let result = inference.map_or(String::new(), |inference| inference.value(id).to_string());
        rows.add_row([
            index.to_string(),
            graph.node(id).line.to_string(),
            shorten(&graph.node(id).name, 28),
            call.target.op_name().into_owned(),
            call.op().map_or("unknown", |op| op.class().name()).into(),
            shorten(&arguments(graph, call), 60),
            result,
        ]);
    }
    output.table(&rows)
}

fn describe(path: &str, folder: &GraphFolder, infer: bool) -> Value {
    let mut object = Map::from_iter([("path".to_string(), Value::from(path))]);
    let body = if infer { infer::report(folder) } else { infer::outline(folder) };
    if let Value::Object(fields) = body {
        object.extend(fields);
    }
    Value::Object(object)
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
