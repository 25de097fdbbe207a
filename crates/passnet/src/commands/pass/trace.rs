//! `passnet pass trace`

use super::Passes;
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Args;
use passnet_graph::print::print_model;
use passnet_pass::trace::Dialect;
use serde_json::json;

#[derive(Debug, Args)]
pub struct TraceArgs {
    #[command(flatten)]
    passes: Passes,
}

pub fn run(args: TraceArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let sets = args.passes.load()?;
    let mut failed = false;
    for set in &sets {
        let traced = args.passes.traced(set, Dialect::Plain);
        failed |= traced.failed;
        for pass in &traced.passes {
            let module = &set.program.module(pass.wrapper.module).name;
            let function = &pass.wrapper.function;
            let pattern = print_model(&pass.pattern.graph);
            let arguments = print_model(&pass.arguments.graph);
            if output.is_json() {
                output.json(&json!({
                    "pass": pass.name,
                    "pattern": pattern,
                    "arguments": arguments,
                    "wrapper": {"module": module, "function": function},
                    "warnings": pass.warnings,
                }))?;
                continue;
            }
            output.line(format!("pass {}: replaced by {module}.{function}", pass.name))?;
            output.line(format!("# pattern\n{}", pattern.trim_end()))?;
            output.line(format!("# replacement_args\n{}", arguments.trim_end()))?;
            for warning in &pass.warnings {
                output.line(format!("warning: {warning}"))?;
            }
        }
    }
    output.flush()?;
    Ok(Outcome::failed_if(failed))
}
