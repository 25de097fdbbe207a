//! `passnet kernel run`

use super::Inputs;
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Args;
use passnet_engine::dump::stored_dtype;
use passnet_graph::DType;
use passnet_kernel::exec::RunOptions;
use passnet_kernel::fixture::{Fixture, Outputs};
use safetensors::tensor::TensorView;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    inputs: Inputs,

    /// Write inputs and outputs to this file (one pass and one signature only)
    #[arg(long, value_name = "FILE.safetensors")]
    dump: Option<PathBuf>,

    /// Threads to use; the results do not depend on it
    #[arg(long)]
    threads: Option<usize>,

    /// Times to run; the median is reported
    #[arg(long, default_value_t = 5)]
    repeat: usize,
}

pub fn run(args: &RunArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let options = args.threads.map_or_else(RunOptions::default, |threads| RunOptions {
        threads: threads.max(1),
        ..RunOptions::default()
    });
    let started = Instant::now();
    let cases = args.inputs.cases()?;
    let planned = started.elapsed().as_secs_f64() / cases.cases.len().max(1) as f64;
    if args.dump.is_some() && cases.cases.len() != 1 {
        return Err(CommandError::input("`--dump` takes one pass with one signature"));
    }
    for case in &cases.cases {
        let fixture = &case.fixture;
        let started = Instant::now();
        let prepared = fixture.prepare()?;
        let outputs =
            fixture.run(&prepared, options).map_err(|e| CommandError::input(e.to_string()))?;
        let first = planned + started.elapsed().as_secs_f64();
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
            dump(file, fixture, &outputs)?;
        }
        if out.is_json() {
            let shapes: Vec<_> =
                outputs.views.iter().map(|v| json!({"shape": v.shape, "dtype": v.dtype})).collect();
            let mut value = case.json();
            value["outputs"] = shapes.into();
            value["first_result_seconds"] = first.into();
            value["run_seconds"] = median.into();
            value["parallel"] = prepared.parallel().into();
            out.json(&value)?;
        } else {
            let shapes: Vec<String> =
                outputs.views.iter().map(|v| format!("{}{:?}", v.dtype.name(), v.shape)).collect();
            out.line(format!(
                "{}: {} in {:.1} us, {:.2} ms from text to first result",
                case.title(),
                shapes.join(", "),
                median * 1e6,
                first * 1e3
            ))?;
        }
    }
    out.flush()?;
    Ok(Outcome::failed_if(cases.failed))
}

fn dump(file: &Path, fixture: &Fixture, outputs: &Outputs) -> Result<(), CommandError> {
    let mut stored: Vec<(String, DType, Vec<usize>, Vec<u8>)> = Vec::new();
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
