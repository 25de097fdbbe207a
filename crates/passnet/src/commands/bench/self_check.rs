//! `passnet bench --self-check`: is the benchmark itself to be trusted on this machine?

use super::BenchArgs;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::progress::Bar;
use passnet_bench::redteam::{self, CaseResult};
use passnet_bench::same;
use passnet_dataset::progress::Task;
use serde_json::json;
use std::path::Path;

/// Where the bundled material lies in the repository.
const SUITE: &str = "bench/redteam";
const TASKS: &str = "bench/tasks";

/// Runs the red team, then races eager against itself.
pub(super) fn run(args: &BenchArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let suite = args.suite.as_deref().unwrap_or(Path::new(SUITE));
    let tasks = args.samples.first().map_or(Path::new(TASKS), |path| path.as_path());
    let cases = redteam::cases(suite, tasks)?;
    let engine = args.engine.start()?;
    let bar = Bar::new();
    let mut task = Task::begin(&bar, "attacking", Some(cases.len() as u64));
    let mut results = Vec::with_capacity(cases.len());
    for case in &cases {
        results.push(case.attempt(&*engine)?);
        task.advance(1);
    }
    drop(task);
    let succeeded = results.iter().filter(|case| case.attack_succeeds()).count();
    let refused = results.iter().filter(|case| case.honest_refused()).count();
    let samples = super::read_samples(&[tasks.to_path_buf()])?;
    let mut bench = args.bench(&*engine);
    bench.options.noise_floor = bench.measure_noise(&samples);
    let total = samples.iter().map(|sample| sample.graphs.len() as u64).sum();
    let mut task = Task::begin(&bar, "racing eager against itself", Some(total));
    let noise = same::race(&*engine, &samples, &bench.options, &mut || task.advance(1));
    drop(task);
    if out.is_json() {
        out.json(&json!({
            "cases": results,
            "exploits": results.len(),
            "attacks_succeeded": succeeded,
            "controls_refused": refused,
            "eager_against_itself": noise,
        }))?;
    } else {
        print_cases(&results, out)?;
        out.line(format!(
            "{} exploits, tried with the rules on and off: {succeeded} scored",
            results.len()
        ))?;
        out.line(format!("{} honest controls: {refused} refused", results.len()))?;
        out.line("")?;
        out.line(format!("eager against itself on {} graphs", noise.graphs))?;
        out.line(format!(
            "  in turns:             {} called faster or slower; differences: median {:.1} %, worst {:.1} %",
            noise.called, noise.interleaved.median * 100.0, noise.interleaved.worst * 100.0
        ))?;
        out.line(format!(
            "  one after the other:  the reference's way; differences: median {:.1} %, worst {:.1} %",
            noise.sequential.median * 100.0,
            noise.sequential.worst * 100.0
        ))?;
    }
    out.flush()?;
    let too_many_calls = noise.called * 100 > noise.graphs;
    Ok(Outcome::failed_if(succeeded > 0 || refused > 0 || too_many_calls))
}

fn print_cases(results: &[CaseResult], out: &mut Output) -> Result<(), CommandError> {
    let mut rows = table(["class", "exploit, rules on", "exploit, rules off", "control"]);
    for case in results {
        let mark = |accepted: bool, wanted: bool| if accepted == wanted { "" } else { " !" };
        let shown = |attempt: &redteam::Attempt, wanted: bool| {
            format!("{}{}", attempt.verdict.kind, mark(attempt.accepted, wanted))
        };
        rows.add_row([
            case.class.clone(),
            shown(&case.exploit_with_rules, false),
            shown(&case.exploit_without_rules, false),
            shown(&case.control, true),
        ]);
    }
    out.table(&rows)?;
    for case in results.iter().filter(|case| case.attack_succeeds() || case.honest_refused()) {
        out.line(format!("{}: {}", case.class, case.threat))?;
        out.line(format!("  control: {}", case.control.verdict))?;
    }
    out.line("")
}
