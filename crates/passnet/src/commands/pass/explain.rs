//! `passnet pass explain`

use super::prepare::read_graph;
use super::{Passes, Semantics};
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn_located};
use crate::paths::for_each_graph;
use clap::Args;
use passnet_pass::explain::{Explanation, NamedGraph, explain, render};
use passnet_pass::matcher::MatchOptions;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    passes: Passes,

    /// Graph folders, trees of them, or `.tar.zst` archives
    #[arg(long = "in", required = true, num_args = 1.., value_name = "GRAPHS")]
    graphs: Vec<PathBuf>,

    /// Let `maximum(a, b)` match `maximum(b, a)`, which may return another zero; sums and products always do
    #[arg(long)]
    commutative: bool,
}

pub fn run(args: ExplainArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let sets = args.passes.load()?;
    let matching = super::Matching { semantics: Semantics::Default, commutative: args.commutative };
    let (passes, mut failed) = args.passes.traced_with_sets(&sets, matching.dialect());
    let options: MatchOptions = matching.options();
    for_each_graph(
        &args.graphs,
        |files| {
            let (folder, source) = read_graph(files)?;
            let named =
                NamedGraph { name: &files.path, graph: &folder.graph, source: source.as_ref() };
            let explained =
                passes.iter().map(|(set, pass)| explain(&set.program, pass, named, &options));
            Ok(explained.collect::<Vec<Explanation>>())
        },
        |_, result: Result<Vec<Explanation>, Vec<passnet_graph::Diagnostic>>| {
            match result {
                Ok(explanations) => {
                    for explanation in &explanations {
                        failed |= explanation.matches == 0;
                        if output.is_json() {
                            let value = serde_json::to_value(explanation).unwrap_or_default();
                            output.json(&value)?;
                        } else {
                            output.line(render(explanation))?;
                        }
                    }
                }
                Err(errors) => {
                    failed = true;
                    warn_located(&errors);
                }
            }
            Ok(())
        },
    )?;
    output.flush()?;
    Ok(Outcome::failed_if(failed))
}
