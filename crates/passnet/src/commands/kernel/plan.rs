//! `passnet kernel plan`

use super::Inputs;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use clap::Args;
use passnet_bench::signature::step_lines;
use passnet_kernel::plan::{Init, LaunchPlan};

#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    inputs: Inputs,

    /// Print the tile IR too
    #[arg(long)]
    ir: bool,
}

pub fn run(args: &PlanArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let cases = args.inputs.cases()?;
    for case in &cases.cases {
        let fixture = &case.fixture;
        if out.is_json() {
            let mut value = case.json();
            value["plan"] = serde_json::to_value(&fixture.plan)
                .map_err(|e| CommandError::bug(e.to_string()))?;
            if args.ir {
                value["ir"] = fixture.prepare()?.functions().map(ToString::to_string).collect();
            }
            out.json(&value)?;
            continue;
        }
        out.line(case.title())?;
        print_plan(&fixture.plan, out)?;
        if args.ir {
            for function in fixture.prepare()?.functions() {
                out.line(format!("\n{function}"))?;
            }
        }
    }
    out.flush()?;
    Ok(Outcome::failed_if(cases.failed))
}

fn print_plan(plan: &LaunchPlan, out: &mut Output) -> Result<(), CommandError> {
    let mut buffers = table(["buffer", "dtype", "elements", "holds"]);
    for b in &plan.buffers {
        let holds = match &b.init {
            Init::Input(i) => format!("argument {i}"),
            Init::Uninitialized => "nothing yet".into(),
            Init::Fill(c) => format!("{c} everywhere"),
            Init::Values(v) => format!("{} given values", v.len()),
        };
        buffers.add_row([b.name.clone(), b.dtype.name().into(), b.elements.to_string(), holds]);
    }
    out.table(&buffers)?;
    step_lines(plan).iter().try_for_each(|line| out.line(line))
}
