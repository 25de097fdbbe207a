//! `passnet graph show --profile`

use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::paths::for_each_graph;
use passnet_engine::native::folder::draw_inputs;
use passnet_engine::native::inputs::DEFAULT_SEED;
use passnet_engine::native::profile::{NodeCost, profile};
use passnet_engine::native::rates::Rates;
use passnet_engine::native::{Program, Wrappers};
use passnet_engine::{Precision, RunOptions};
use passnet_graph::{GraphFiles, read};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// Runs of a graph; a node's time is its shortest.
const RUNS: usize = 5;
/// Characters of the longest bar.
const BAR: usize = 24;

pub fn run(paths: &[PathBuf], output: &mut Output) -> Result<Outcome, CommandError> {
    let rates = Rates::measure().map_err(|error| CommandError::input(error.to_string()))?;
    // Two graphs at once would measure each other.
    let alone = Mutex::new(());
    let mut failed = false;
    for_each_graph(
        paths,
        |files| {
            let _guard = alone.lock();
            costs(files)
        },
        |path, result| match result {
            Ok(costs) if output.is_json() => output.json(&to_json(path, &costs, rates)),
            Ok(costs) => show(output, path, &costs, rates),
            Err(message) => {
                failed = true;
                if output.is_json() {
                    return output.json(&json!({ "path": path, "error": message }));
                }
                output.line(format!("{path}: {message}"))
            }
        },
    )?;
    output.flush()?;
    Ok(Outcome::failed_if(failed))
}

fn costs(files: &GraphFiles) -> Result<Vec<NodeCost>, String> {
    let folder = read::read_folder(files)
        .map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default())?;
    let program = Program::compile(&folder.graph, Precision::AsWritten, &Wrappers::default())
        .map_err(|error| error.to_string())?;
    let inputs =
        draw_inputs(files, &folder.graph, DEFAULT_SEED, None).map_err(|error| error.to_string())?;
    profile(&program, &inputs, &RunOptions::default(), RUNS).map_err(|error| error.to_string())
}

/// Which share of the machine's bandwidth and peak a node reaches.
fn fractions(cost: &NodeCost, rates: Rates) -> (f64, f64) {
    let seconds = cost.time.as_secs_f64().max(1e-9);
    (cost.bytes as f64 / seconds / rates.bandwidth, cost.flops as f64 / seconds / rates.peak)
}

fn total(costs: &[NodeCost]) -> Duration {
    costs.iter().map(|cost| cost.time).sum()
}

fn show(
    output: &mut Output,
    path: &str,
    costs: &[NodeCost],
    rates: Rates,
) -> Result<(), CommandError> {
    let total = total(costs).as_secs_f64().max(1e-9);
    output.line(format!(
        "{path}: {:.3} ms in {} operations; this machine copies {:.1} GB/s and multiplies {:.1} GFLOP/s",
        total * 1e3,
        costs.len(),
        rates.bandwidth / 1e9,
        rates.peak / 1e9
    ))?;
    let longest = costs.iter().map(|cost| cost.time).max().unwrap_or_default().as_secs_f64();
    let mut rows = table([
        "line",
        "name",
        "operation",
        "class",
        "µs",
        "share",
        "MB",
        "MFLOP",
        "bandwidth",
        "peak",
        "",
    ]);
    for cost in costs {
        let (bandwidth, peak) = fractions(cost, rates);
        let seconds = cost.time.as_secs_f64();
        let bar = (seconds / longest.max(1e-9) * BAR as f64).round() as usize;
        rows.add_row([
            cost.line.to_string(),
            cost.name.clone(),
            cost.operation.clone(),
            cost.class.to_string(),
            format!("{:.1}", seconds * 1e6),
            format!("{:.1}%", seconds / total * 100.0),
            format!("{:.3}", cost.bytes as f64 / 1e6),
            format!("{:.3}", cost.flops as f64 / 1e6),
            format!("{:.0}%", bandwidth * 100.0),
            format!("{:.0}%", peak * 100.0),
            "█".repeat(bar.min(BAR)),
        ]);
    }
    output.table(&rows)
}

fn to_json(path: &str, costs: &[NodeCost], rates: Rates) -> Json {
    let nodes: Vec<Json> = costs
        .iter()
        .map(|cost| {
            let (bandwidth, peak) = fractions(cost, rates);
            json!({
                "line": cost.line,
                "name": cost.name,
                "operation": cost.operation,
                "class": cost.class,
                "microseconds": cost.time.as_secs_f64() * 1e6,
                "bytes": cost.bytes,
                "flops": cost.flops,
                "bandwidth_fraction": bandwidth,
                "peak_fraction": peak,
            })
        })
        .collect();
    json!({
        "path": path,
        "milliseconds": total(costs).as_secs_f64() * 1e3,
        "bandwidth": rates.bandwidth,
        "peak": rates.peak,
        "nodes": nodes,
    })
}
