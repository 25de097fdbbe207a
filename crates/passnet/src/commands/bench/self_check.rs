//! `passnet bench --self-check`: is the benchmark itself to be trusted on this machine?

use super::BenchArgs;
use crate::embedded;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::progress::Bar;
use passnet_bench::redteam::{self, Attempt, CaseResult, Layer};
use passnet_bench::report::printable;
use passnet_bench::self_race::{self, SelfRace};
use passnet_bench::subject::Subject;
use passnet_engine::Engine;
use passnet_work::progress::Task;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Runs the red team, then races eager against itself. A filter asks for some cases only, and no race.
pub(super) fn run(args: &BenchArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let bundled = |named: Option<&PathBuf>, part: &str| {
        named.cloned().map_or_else(|| embedded::material(part), Ok)
    };
    let suite = &*bundled(args.suite.as_ref(), "redteam")?;
    let tasks = &*bundled(args.samples.first(), "tasks")?;
    let mut cases = redteam::cases(suite, tasks)?;
    if let Some(filter) = &args.filter {
        cases.retain(|case| case.class().contains(filter.as_str()));
        if cases.is_empty() {
            let message = format!("no case of {} has `{filter}` in its name", suite.display());
            return Err(CommandError::input(message));
        }
    }
    let engine = args.engine.start_one_for_passes()?;
    let bar = Bar::new();
    let mut task = Task::begin(&bar, "attacking", Some(cases.len() as u64));
    let mut results = Vec::with_capacity(cases.len());
    for case in &cases {
        results.push(case.attempt(&*engine)?);
        task.advance(1);
    }
    drop(task);
    let noise = match args.filter {
        Some(_) => None,
        None => Some(race_eager(args, &*engine, tasks, &bar)?),
    };
    let counted = Counted::of(&results);
    if out.is_json() {
        out.json(&json!({
            "identity": engine.identity(),
            "cases": results,
            "exploits": results.len(),
            "adaptive": counted.adaptive,
            "attacks_succeeded": counted.scored,
            "stopped_elsewhere": counted.elsewhere,
            "controls_refused": counted.refused,
            "not_judged": counted.not_judged,
            "eager_against_itself": noise,
        }))?;
    } else {
        out.line(printable(&engine.identity().describe()))?;
        out.line("")?;
        print_cases(&results, &counted, out)?;
        if let Some(noise) = &noise {
            print_noise(noise, out)?;
        }
    }
    out.flush()?;
    let too_many_calls = noise.is_some_and(|noise| noise.called * 100 > noise.graphs);
    match counted.not_judged {
        0 => Ok(Outcome::failed_if(!results.iter().all(CaseResult::holds) || too_many_calls)),
        _ => Ok(Outcome::NotJudged),
    }
}

fn race_eager(
    args: &BenchArgs,
    engine: &dyn Engine,
    tasks: &Path,
    bar: &Bar,
) -> Result<SelfRace, CommandError> {
    let samples = super::read_samples(&[tasks.to_path_buf()])?;
    let mut bench = args.bench(engine, Subject::Eager);
    bench.options.noise_floor = bench.measure_noise(&samples);
    let total = samples.iter().map(|sample| sample.graphs.len() as u64).sum();
    let mut task = Task::begin(bar, "racing eager against itself", Some(total));
    Ok(self_race::race(engine, &samples, &bench.options, &mut || task.advance(1)))
}

/// What all cases come to.
struct Counted {
    adaptive: usize,
    scored: usize,
    elsewhere: usize,
    refused: usize,
    not_judged: usize,
}

impl Counted {
    fn of(results: &[CaseResult]) -> Counted {
        let count = |is: fn(&CaseResult) -> bool| results.iter().filter(|case| is(case)).count();
        Counted {
            adaptive: count(|case| case.is_adaptive),
            scored: count(CaseResult::attack_succeeds),
            elsewhere: count(CaseResult::stopped_elsewhere),
            refused: count(CaseResult::honest_refused),
            not_judged: count(CaseResult::is_not_judged),
        }
    }
}

fn print_cases(
    results: &[CaseResult],
    counted: &Counted,
    out: &mut Output,
) -> Result<(), CommandError> {
    let head = [
        "class",
        "adaptive",
        "rules on: expected",
        "found",
        "rules off: expected",
        "found",
        "control",
    ];
    let mut rows = table(head);
    for case in results {
        let expected = |layers: &[Layer]| {
            layers.iter().map(|layer| layer.name()).collect::<Vec<_>>().join(", ")
        };
        rows.add_row([
            case.class.clone(),
            if case.is_adaptive { "yes".into() } else { String::new() },
            expected(&case.expected_with_rules),
            found(&case.exploit_with_rules),
            expected(&case.expected_without_rules),
            found(&case.exploit_without_rules),
            match case.honest_refused() {
                true => format!("{} !", case.control.verdict.kind),
                false => case.control.verdict.kind.to_string(),
            },
        ]);
    }
    out.table(&rows)?;
    for complaint in results.iter().flat_map(CaseResult::complaints) {
        out.line(complaint)?;
    }
    out.line("")?;
    out.line(format!(
        "{} exploits ({} adaptive), tried with the rules on and off: {} scored, {} stopped by something else than \
         the layer they name",
        results.len(),
        counted.adaptive,
        counted.scored,
        counted.elsewhere
    ))?;
    out.line(format!("{} honest controls: {} refused", results.len(), counted.refused))?;
    match counted.not_judged {
        0 => Ok(()),
        lost => out.line(format!("{lost} not judged: the machine failed")),
    }
}

/// The layer and its verdict, marked where it is not what the case says.
fn found(attempt: &Attempt) -> String {
    let mark = if attempt.unexpected.is_empty() { "" } else { " !" };
    match (attempt.scores(), attempt.layer) {
        (true, _) => format!("scores on {} of {} graphs{mark}", attempt.correct, attempt.graphs),
        (false, Some(layer)) => format!("{layer}: {}{mark}", attempt.verdict.kind),
        (false, None) => format!("{}{mark}", attempt.verdict.kind),
    }
}

fn print_noise(noise: &SelfRace, out: &mut Output) -> Result<(), CommandError> {
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
    ))
}
