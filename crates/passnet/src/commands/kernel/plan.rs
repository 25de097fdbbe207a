//! `passnet kernel plan`

use super::Inputs;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use clap::Args;
use passnet_kernel::plan::{ArgValue, Init, LaunchPlan, Step, View};

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

fn view_text(plan: &LaunchPlan, view: &View) -> String {
    let name = plan.buffers.get(view.buffer).map_or("?", |b| b.name.as_str());
    let offset = if view.offset == 0 { String::new() } else { format!("+{}", view.offset) };
    format!("{name}{offset}{:?}/{:?}", view.shape, view.stride)
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
    for step in &plan.steps {
        match step {
            Step::Launch(l) => {
                let args: Vec<String> = l
                    .args
                    .iter()
                    .map(|a| match &a.value {
                        ArgValue::Buffer(v) => format!("{}={}", a.name, view_text(plan, v)),
                        ArgValue::Int { value, .. } => format!("{}={value}", a.name),
                        ArgValue::Float(v) => format!("{}={v:?}", a.name),
                        ArgValue::Const(c) => format!("{}: constexpr={c}", a.name),
                    })
                    .collect();
                let [x, y, z] = l.grid;
                out.line(format!(
                    "launch {}[{x}, {y}, {z}]({}) num_warps={}",
                    l.kernel,
                    args.join(", "),
                    l.num_warps
                ))?;
            }
            Step::Copy { from, to, .. } => {
                out.line(format!("copy {} to {}", view_text(plan, from), view_text(plan, to)))?;
            }
            Step::Fill { view, value, .. } => {
                out.line(format!("fill {} with {value}", view_text(plan, view)))?
            }
        }
    }
    let returns: Vec<String> = plan.returns.iter().map(|v| view_text(plan, v)).collect();
    out.line(format!("return {}", returns.join(", ")))
}
