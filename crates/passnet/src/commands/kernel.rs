//! `passnet kernel`: check, plan and run the kernels of a pass without a GPU.

use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use clap::{Args, Subcommand};
use passnet_graph::Diagnostic;
use passnet_graph::syntax::Source;
use passnet_kernel::check::{Severity, check, proved_in_bounds};
use passnet_kernel::exec::RunOptions;
use passnet_kernel::fixture::Fixture;
use passnet_kernel::plan::{ArgValue, LaunchPlan, Step, View};
use passnet_pass::load::LoadOptions;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Look for out-of-bounds accesses, races, unwritten outputs and more
    Check(Files),
    /// Show the launch plan and the tile IR of each kernel
    Plan(PlanArgs),
    /// Run the kernels on the CPU
    Run(RunArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
A file says in its first comments what its wrapper takes:
  # wrapper: fused_add
  # input: x float32 [64, 100] normal
  # input: index int64 [16] int 0 64
  # value: 1e-5")]
pub struct Files {
    /// Pass files whose header describes the inputs
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    files: Files,

    /// Print the tile IR too
    #[arg(long)]
    ir: bool,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    files: Files,

    /// Write inputs and outputs to this file (one pass file only)
    #[arg(long, value_name = "FILE.safetensors")]
    dump: Option<PathBuf>,

    /// Threads to use; the results do not depend on it
    #[arg(long)]
    threads: Option<usize>,

    /// Times to run; the median is reported
    #[arg(long, default_value_t = 5)]
    repeat: usize,
}

pub fn run(command: KernelCommand, out: &mut Output) -> Result<Outcome, CommandError> {
    match command {
        KernelCommand::Check(args) => run_check(&args, out),
        KernelCommand::Plan(args) => run_plan(&args, out),
        KernelCommand::Run(args) => run_kernels(&args, out),
    }
}

/// The file, and the helpers of its folder that it imports.
fn fixture(path: &Path) -> Result<Fixture, Diagnostic> {
    let set = passnet_pass::load::load(path, &LoadOptions::default());
    let source = |id| {
        let source = &set.program.module(id).source;
        Source::new(source.path(), source.text())
    };
    let Some(pass) = set.passes.first() else {
        return match set.errors.into_iter().next() {
            Some(error) => Err(error),
            None => Fixture::new(Source::read(path)?),
        };
    };
    let helpers = set.program.reachable(pass.module).into_iter().skip(1).map(|id| {
        let name = &set.program.module(id).name;
        (name.rsplit('.').next().unwrap_or(name).to_string(), source(id))
    });
    Fixture::with_helpers(source(pass.module), helpers.collect())
}

fn run_check(args: &Files, out: &mut Output) -> Result<Outcome, CommandError> {
    let mut failed = false;
    let mut totals = [0usize; 3];
    for path in &args.files {
        let fixture = fixture(path)?;
        let prepared = fixture.prepare()?;
        let mut buffers = fixture.buffers(&prepared);
        let wrapper = fixture.wrapper()?;
        let findings = check(
            &fixture.modules,
            &wrapper,
            &fixture.header.host_args(),
            &prepared,
            buffers.iter_mut().map(Vec::as_mut_slice).collect(),
        );
        let proved =
            prepared.launches().all(|(launch, f)| proved_in_bounds(&fixture.plan, launch, f));
        let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
        failed |= errors > 0;
        if !fixture.header.expect.is_empty() || findings.iter().any(|f| f.severity > Severity::Note)
        {
            let mut found: Vec<&str> = findings.iter().map(|f| f.rule).collect();
            found.sort_unstable();
            found.dedup();
            let missed =
                fixture.header.expect.iter().filter(|e| !found.contains(&e.as_str())).count();
            let extra =
                found.iter().filter(|f| !fixture.header.expect.iter().any(|e| e == *f)).count();
            totals[1] += missed;
            totals[2] += extra;
        }
        totals[0] += 1;
        if out.is_json() {
            out.json(&json!({
                "pass": path.display().to_string(),
                "findings": findings,
                "bounds_proved": proved,
                "parallel": prepared.parallel(),
            }))?;
            continue;
        }
        let how =
            if proved { "all accesses proved in bounds" } else { "bounds checked by running" };
        out.line(format!("{}: {} findings; {how}", path.display(), findings.len()))?;
        for f in &findings {
            let proof = if f.proved { "proved" } else { "observed" };
            let severity = format!("{:?}", f.severity).to_lowercase();
            out.line(format!(
                "  {severity} [{}] {}:{}: {} ({proof})",
                f.rule, f.file, f.line, f.message
            ))?;
        }
    }
    if !out.is_json() && args.files.len() > 1 {
        let [files, missed, extra] = totals;
        out.line(format!("{files} files; against their `# expect:` lines {missed} findings missed, {extra} too many"))?;
    }
    out.flush()?;
    Ok(Outcome::failed_if(failed))
}

fn run_plan(args: &PlanArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    for path in &args.files.files {
        let fixture = fixture(path)?;
        if out.is_json() {
            let plan = serde_json::to_value(&fixture.plan)
                .map_err(|e| CommandError::bug(e.to_string()))?;
            out.json(&json!({"pass": path.display().to_string(), "plan": plan}))?;
            continue;
        }
        out.line(format!("{}", path.display()))?;
        print_plan(&fixture.plan, out)?;
        if args.ir {
            for function in fixture.prepare()?.functions() {
                out.line(format!("\n{function}"))?;
            }
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
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
            passnet_kernel::plan::Init::Input(i) => format!("argument {i}"),
            passnet_kernel::plan::Init::Uninitialized => "nothing yet".into(),
            passnet_kernel::plan::Init::Fill(c) => format!("{c} everywhere"),
            passnet_kernel::plan::Init::Values(v) => format!("{} given values", v.len()),
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

fn run_kernels(args: &RunArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    if args.dump.is_some() && args.files.files.len() > 1 {
        return Err(CommandError::input("`--dump` takes one pass file"));
    }
    let options = args.threads.map_or_else(RunOptions::default, |threads| RunOptions {
        threads: threads.max(1),
        ..RunOptions::default()
    });
    for path in &args.files.files {
        let started = Instant::now();
        let fixture = fixture(path)?;
        let prepared = fixture.prepare()?;
        let outputs =
            fixture.run(&prepared, options).map_err(|e| CommandError::input(e.to_string()))?;
        let first = started.elapsed().as_secs_f64();
        let mut buffers = fixture.buffers(&prepared);
        let mut times = Vec::new();
        for _ in 0..args.repeat.clamp(1, 10_000) {
            let started = Instant::now();
            prepared
                .run(buffers.iter_mut().map(Vec::as_mut_slice).collect(), options)
                .map_err(|e| CommandError::input(e.to_string()))?;
            times.push(started.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        if let Some(file) = &args.dump {
            dump(file, &fixture, &outputs)?;
        }
        let shapes: Vec<_> =
            outputs.views.iter().map(|v| json!({"shape": v.shape, "dtype": v.dtype})).collect();
        if out.is_json() {
            out.json(&json!({
                "pass": path.display().to_string(),
                "outputs": shapes,
                "first_result_seconds": first,
                "run_seconds": median,
                "parallel": prepared.parallel(),
            }))?;
        } else {
            let shapes: Vec<String> =
                outputs.views.iter().map(|v| format!("{}{:?}", v.dtype.name(), v.shape)).collect();
            out.line(format!(
                "{}: {} in {:.1} us, {:.2} ms from text to first result",
                path.display(),
                shapes.join(", "),
                median * 1e6,
                first * 1e3
            ))?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn dump(
    file: &Path,
    fixture: &Fixture,
    outputs: &passnet_kernel::fixture::Outputs,
) -> Result<(), CommandError> {
    let mut stored: Vec<(String, passnet_graph::DType, Vec<usize>, Vec<u8>)> = Vec::new();
    let usizes =
        |shape: &[i64]| shape.iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect::<Vec<_>>();
    for (name, view, data) in fixture.input_tensors() {
        stored.push((format!("input.{name}"), view.dtype, usizes(&view.shape), data));
    }
    for (index, (view, data)) in outputs.views.iter().zip(&outputs.data).enumerate() {
        stored.push((format!("output.{index}"), view.dtype, usizes(&view.shape), data.clone()));
    }
    let mut tensors = Vec::new();
    for (name, dtype, shape, data) in &stored {
        let dtype = stored_dtype(*dtype)
            .ok_or_else(|| CommandError::input(format!("`{name}` cannot be stored")))?;
        let view = TensorView::new(dtype, shape.clone(), data)
            .map_err(|e| CommandError::bug(e.to_string()))?;
        tensors.push((name.clone(), view));
    }
    let bytes =
        safetensors::serialize(tensors, None).map_err(|e| CommandError::bug(e.to_string()))?;
    Ok(std::fs::write(file, bytes)?)
}

fn stored_dtype(dtype: passnet_graph::DType) -> Option<Dtype> {
    use passnet_graph::DType;
    Some(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::UInt8 => Dtype::U8,
        DType::Int8 => Dtype::I8,
        DType::Int16 => Dtype::I16,
        DType::Int32 => Dtype::I32,
        DType::Int64 => Dtype::I64,
        DType::Float16 => Dtype::F16,
        DType::BFloat16 => Dtype::BF16,
        DType::Float32 => Dtype::F32,
        DType::Float64 => Dtype::F64,
        DType::Complex64 | DType::Complex128 => return None,
    })
}
