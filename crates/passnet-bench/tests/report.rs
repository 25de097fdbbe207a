//! Reports, comparisons and the reference's files of runs made by hand.

mod markup;
mod runs;

use markup::elements;
use passnet_bench::log::{DifferenceKind, Log, judge};
use passnet_bench::number::python_float;
use passnet_bench::reference_format::reference_files;
use passnet_bench::report::{
    Change, Conclusion, RunRecord, RunReport, compare, html, leaderboard, matrix, score_run,
};
use passnet_bench::run::Event;
use passnet_bench::score::{Parameters, Score, ScoredGraph, Scoring};
use passnet_bench::tolerance::Ladder;
use passnet_bench::verdict::{ErrorClass, Evidence, ReferenceStatus, Verdict, VerdictKind};
use runs::{failed, finished, mixed, ran, start, twelve_tasks};

fn record(name: &str, events: Vec<Event>) -> RunRecord {
    RunRecord::of(name, events)
}

fn parameters() -> Parameters {
    Parameters::default()
}

/// The strict score of the mixed run, put together from what each graph is.
fn mixed_scores() -> Vec<ScoredGraph> {
    vec![
        ScoredGraph::ran(Ladder::right_from(-6), 1.75),
        ScoredGraph::ran(Ladder::right_from(-3), 1.25),
        ScoredGraph::ran(Ladder::right_from(-5), 0.75),
        ScoredGraph::ran(Ladder::right_from(-5), 2.5),
        ScoredGraph::ran(Ladder::NONE, 1.5),
        ScoredGraph::failed(ErrorClass::Execution),
        ScoredGraph::failed(ErrorClass::Execution),
        ScoredGraph::failed(ErrorClass::Execution),
        ScoredGraph::failed(ErrorClass::Never),
        ScoredGraph::failed(ErrorClass::Never),
    ]
}

#[test]
fn one_run_in_numbers() {
    let run = record("mixed", mixed());
    let report = RunReport::of(&run, parameters()).unwrap();
    let expected = Score::of(&mixed_scores(), parameters()).unwrap();
    assert!((report.score.aggregated - expected.aggregated).abs() < 1e-12);
    assert_eq!((report.tasks, report.score.summary.correct), (3, 3));
    assert_eq!(report.task_correctness_rate, 0.0);
    assert_eq!(report.fast.iter().map(|fast| fast.share).collect::<Vec<_>>(), [0.2, 0.2, 0.1]);
    assert_eq!((report.decisions.faster, report.decisions.tie, report.decisions.slower), (4, 0, 1));
    let graphs = |names: &[passnet_bench::report::GraphName]| {
        names
            .iter()
            .map(|name| name.graph.rsplit('/').next().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(graphs(&report.slowest), ["float32_c", "float32_a", "float16_a"]);
    // Infinitely far first; then by how much worse than eager, not by how far.
    assert_eq!(graphs(&report.least_accurate)[..2], ["float16_b", "float16_a"]);
    let failures: Vec<(VerdictKind, usize)> =
        report.failures.iter().map(|group| (group.verdict, group.graphs.len())).collect();
    let expected = [
        (VerdictKind::Accuracy, 2),
        (VerdictKind::DtypeMismatch, 1),
        (VerdictKind::ShapeMismatch, 1),
        (VerdictKind::NoMatch, 1),
        (VerdictKind::Integrity, 1),
        (VerdictKind::ReferenceFail, 1),
    ];
    assert_eq!(failures, expected);
    let counts = |groups: &[passnet_bench::report::ScoreGroup]| {
        groups.iter().map(|g| (g.name.clone(), g.summary.graphs)).collect::<Vec<_>>()
    };
    let named = |pairs: &[(&str, usize)]| {
        pairs.iter().map(|(name, count)| (name.to_string(), *count)).collect::<Vec<_>>()
    };
    assert_eq!(counts(&report.groups.dtype), named(&[("float16", 2), ("float32", 3)]));
    assert_eq!(
        counts(&report.groups.category),
        named(&[("fusible_subgraphs", 3), ("typical_subgraphs", 2)])
    );
    assert_eq!(counts(&report.groups.task), named(&[("add_norm", 3), ("gelu", 2), ("softmax", 5)]));
    assert_eq!(counts(&report.groups.operation), named(&[("add", 5), ("relu", 5)]));
}

#[test]
fn a_continued_run_reports_the_same_as_one_that_was_never_stopped() {
    let whole = record("run", mixed());
    let Event::Graph(first) = &mixed()[1] else { panic!("a graph") };
    let stale = ran(&first.sample, &first.evaluation.judged.graph, 99.0, -6);
    let mut events = vec![start(), Event::Graph(Box::new(stale))];
    // The rest in another order, the first graph measured again.
    let mut rest: Vec<Event> = mixed()[1..11].to_vec();
    rest.reverse();
    events.extend([start()].into_iter().chain(rest));
    assert!(!record("run", events.clone()).is_complete);
    events.push(Event::End { graphs: 10 });
    // Every part of a run has a secret of its own.
    assert_eq!(RunRecord { start: whole.start.clone(), ..record("run", events) }, whole);
}

#[test]
fn both_scorings_and_why_they_differ() {
    let run = record("mixed", mixed());
    let report = score_run(&run, parameters());
    let reference = [
        ScoredGraph::ran(Ladder::right_from(-6), 1.75),
        ScoredGraph::ran(Ladder::right_from(-3), 1.25),
        ScoredGraph::ran(Ladder::right_from(-5), 0.75),
        ScoredGraph::ran(Ladder::right_from(-3), 2.5),
        ScoredGraph::ran(Ladder::right_from(-6), 1.5),
        ScoredGraph::failed(ErrorClass::Never),
        ScoredGraph::failed(ErrorClass::Execution),
        ScoredGraph::failed(ErrorClass::Execution),
        ScoredGraph::failed(ErrorClass::Never),
        ScoredGraph::failed(ErrorClass::Never),
    ];
    for (scoring, scored) in
        [(Scoring::Strict, mixed_scores()), (Scoring::Reference, reference.to_vec())]
    {
        let expected = Score::of(&scored, parameters()).unwrap().aggregated;
        let found = report.score(scoring).unwrap().aggregated;
        assert!((found - expected).abs() < 1e-12, "{scoring}: {found} {expected}");
    }
    let differences: Vec<(&str, DifferenceKind, Option<ReferenceStatus>)> =
        report.differences.iter().map(|d| (d.graph.as_str(), d.kind, d.reference)).collect();
    let expected = [
        (
            "gelu/graphs/typical_subgraphs/float16_a",
            DifferenceKind::Yardstick,
            Some(ReferenceStatus::Correct),
        ),
        (
            "gelu/graphs/typical_subgraphs/float32_b",
            DifferenceKind::OtherInputs,
            Some(ReferenceStatus::Correct),
        ),
        ("softmax/graphs/a", DifferenceKind::Misclassified, Some(ReferenceStatus::EagerFail)),
    ];
    assert_eq!(differences, expected);
    assert!(report.differences[1].reason.contains("(with infinities)"), "{report:?}");
}

/// The written score is the one anybody gets from the written log.
#[test]
fn the_references_files_agree_with_each_other_and_with_the_run() {
    let run = record("mixed", mixed());
    let files = reference_files(&run, parameters()).unwrap();
    assert_eq!(
        files.iter().map(|f| f.sample.as_str()).collect::<Vec<_>>(),
        ["add_norm", "gelu", "softmax"]
    );
    for files in files {
        let log = Log::parse("validation.log", &files.log).unwrap();
        let report = judge(&log, None, parameters());
        let score = report.reference.as_ref().unwrap();
        let json: serde_json::Value = serde_json::from_str(&files.score).unwrap();
        assert_eq!(json["id"], 1);
        let number = python_float(score.aggregated);
        assert!(files.score.contains(&format!("\"score\": {number}\n")), "{}", files.score);
        let printed = format!("aggregated_speedup={number}\n");
        assert!(files.aggregation.ends_with(&printed), "{}", files.aggregation);
        let alone = RunRecord {
            graphs: run.graphs.iter().filter(|g| g.event.sample == files.sample).cloned().collect(),
            ..run.clone()
        };
        let scored = score_run(&alone, parameters());
        assert_eq!(scored.reference.as_ref(), Some(score), "{}", files.sample);
        let listed: Vec<&str> = report.graphs.iter().map(|g| g.judged.graph.as_str()).collect();
        let expected: Vec<&str> =
            alone.graphs.iter().map(|g| g.event.evaluation.judged.graph.as_str()).collect();
        assert_eq!(listed, expected);
    }
}

#[test]
fn a_log_written_for_a_run_is_believed_by_the_strict_reader() {
    let run = record("mixed", mixed());
    for files in reference_files(&run, parameters()).unwrap() {
        let log = Log::parse("validation.log", &files.log).unwrap();
        let report = judge(&log, None, parameters());
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        if files.sample == "softmax" {
            let kinds: Vec<VerdictKind> =
                report.graphs.iter().map(|g| g.judged.verdict.kind).collect();
            let expected = [
                VerdictKind::NoMatch,
                VerdictKind::DtypeMismatch,
                VerdictKind::ShapeMismatch,
                VerdictKind::RuntimeFail,
                VerdictKind::ReferenceFail,
            ];
            assert_eq!(kinds, expected);
        }
    }
}

#[test]
fn a_real_change_is_told_from_noise() {
    // Half a percent up and down: nothing, though every single ratio differs.
    let before = record("before", finished(twelve_tasks(|_, _| 1.2)));
    let noise =
        |task: usize, graph: usize| if (task + graph).is_multiple_of(2) { 1.206 } else { 1.194 };
    let same = compare(&before, &record("after", finished(twelve_tasks(noise))), parameters());
    assert!(same.pairs.iter().all(|pair| pair.change == Change::Same));
    assert_eq!(same.speed.unwrap().conclusion, Conclusion::NoDifference);
    assert_eq!(same.score.unwrap().conclusion, Conclusion::NoDifference);
    // Ten tasks a tenth faster, one graph slower by half.
    let changed = |task: usize, graph: usize| match (task, graph) {
        (0, 0) => 0.6,
        (0, 1) | (1, _) => 1.2,
        _ => 1.32 + 0.001 * task as f64,
    };
    let better = compare(&before, &record("after", finished(twelve_tasks(changed))), parameters());
    let count = |wanted| better.pairs.iter().filter(|pair| pair.change == wanted).count();
    assert_eq!((count(Change::Slower), count(Change::Faster), count(Change::Same)), (1, 20, 3));
    assert_eq!(better.pairs[0].name.to_string(), "task_00/graphs/0");
    let speed = better.speed.unwrap();
    assert_eq!((speed.better, speed.worse, speed.units, speed.graphs), (10, 1, 12, 24));
    assert!(speed.units_are_tasks);
    // 2 · (1 + 11) / 2^11
    assert_eq!(speed.p_value, 0.011_718_75);
    let log_mean = (20.0 * 1.1f64.ln() + 0.5f64.ln()) / 24.0;
    assert!((speed.ratio.ratio.ln() - log_mean).abs() < 0.01, "{speed:?}");
    // Every task faster by a tenth.
    let all = compare(&before, &record("after", finished(twelve_tasks(|_, _| 1.32))), parameters());
    let speed = all.speed.unwrap();
    assert_eq!(speed.conclusion, Conclusion::Better);
    assert!((speed.ratio.low - 1.1).abs() < 1e-9 && (speed.ratio.high - 1.1).abs() < 1e-9);
    assert_eq!(all.score.unwrap().conclusion, Conclusion::Better);
    let back = compare(&record("a", finished(twelve_tasks(|_, _| 1.32))), &before, parameters());
    assert_eq!(back.speed.unwrap().conclusion, Conclusion::Worse);
}

#[test]
fn a_change_within_the_machines_noise_is_none() {
    let noisy = |events: Vec<Event>| {
        let raise = |event| match event {
            Event::Start(mut start) => {
                start.options.noise_floor = 0.2;
                Event::Start(start)
            }
            other => other,
        };
        record("noisy", events.into_iter().map(raise).collect())
    };
    let before = noisy(finished(twelve_tasks(|_, _| 1.0)));
    let after = noisy(finished(twelve_tasks(|_, _| 1.3)));
    let found = compare(&before, &after, parameters());
    assert!(found.pairs.iter().all(|pair| pair.change == Change::Same));
}

#[test]
fn verdicts_that_changed_are_named_and_count_in_as() {
    let wrong = Verdict::new(VerdictKind::RuntimeFail).because("out of bounds");
    let with = |broken: bool| {
        let mut graphs = twelve_tasks(|_, _| 1.2);
        if broken {
            for graph in &mut graphs {
                *graph = failed(
                    &graph.sample.clone(),
                    &graph.evaluation.judged.graph.clone(),
                    wrong.clone(),
                );
            }
        }
        record(if broken { "broken" } else { "whole" }, finished(graphs))
    };
    let found = compare(&with(false), &with(true), parameters());
    assert!(found.speed.is_none() && found.pairs.is_empty());
    assert_eq!(found.score.unwrap().conclusion, Conclusion::Worse);
    assert_eq!(found.verdicts.len(), 24);
    assert_eq!(found.verdicts[0].evidence, ["out of bounds"]);
    assert!(found.after.aggregated.unwrap() < found.before.aggregated.unwrap());
    let mended = compare(&with(true), &with(false), parameters());
    assert_eq!(mended.score.unwrap().conclusion, Conclusion::Better);
    assert_eq!(mended.verdicts[0].evidence, ["out of bounds"], "why it failed before");
}

#[test]
fn graphs_that_cannot_be_paired_are_named() {
    let with_model = |mut graph: passnet_bench::run::GraphEvent, digest: &str| {
        graph.artefacts = vec![("model.py".into(), digest.into())];
        graph
    };
    let before = record(
        "before",
        finished(vec![ran("a", "1", 1.0, -6), with_model(ran("a", "2", 1.0, -6), "one")]),
    );
    let after = record(
        "after",
        finished(vec![ran("b", "1", 1.0, -6), with_model(ran("a", "2", 1.0, -6), "two")]),
    );
    let found = compare(&before, &after, parameters());
    assert_eq!(found.only_before.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a/1"]);
    assert_eq!(found.only_after.iter().map(ToString::to_string).collect::<Vec<_>>(), ["b/1"]);
    assert_eq!(found.other_models.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a/2"]);
    assert!(found.score.is_none() && found.before.common.is_none());
    let groups = leaderboard(&[before.clone(), after], parameters());
    assert!(groups.len() == 1 && groups[0].standings.is_empty());
    let few = compare(&before, &before, parameters());
    assert_eq!(few.speed.unwrap().conclusion, Conclusion::TooFew);
}

#[test]
fn the_leaderboard_ranks_over_common_graphs() {
    let fast = record("fast", finished(twelve_tasks(|_, _| 2.0)));
    let slow = record("slow", finished(twelve_tasks(|_, _| 0.5)));
    let mut graphs = twelve_tasks(|_, _| 1.0);
    graphs.push(ran("extra", "x", 1000.0, -10));
    let extra = record("extra", finished(graphs));
    let groups = leaderboard(&[slow, extra, fast], parameters());
    let [group] = &groups[..] else { panic!("{groups:?}") };
    let ranked = group.standings.iter();
    let found: Vec<_> = ranked.map(|it| (it.run.as_str(), it.rank, it.left_out)).collect();
    assert_eq!(found, [("fast", 1, 0), ("extra", 2, 1), ("slow", 3, 0)]);
    assert_eq!(group.graphs, 24);
}

#[test]
fn a_matrix_holds_every_run_against_the_first_and_begins_with_what_differs() {
    let of = |name: &str, speed: &dyn Fn(usize, usize) -> f64| {
        record(name, runs::finished(runs::twelve_tasks(speed)))
    };
    let first = of("first", &|_, _| 1.2);
    let quicker = of("quicker", &|task, _| if task == 7 { 1.9 } else { 1.2 });
    let mut broken =
        runs::twelve_tasks(|task, graph| if (task, graph) == (7, 0) { 0.6 } else { 1.2 });
    broken[6] = runs::failed("task_03", "graphs/0", Verdict::new(VerdictKind::NoMatch));
    broken.truncate(22);
    let broken = record("broken", runs::finished(broken));
    let mut place = runs::identity();
    place.processor = "another".into();
    let elsewhere = runs::begun_at(place, runs::finished(runs::twelve_tasks(|_, _| 9.0)));
    let elsewhere = record("elsewhere", elsewhere);
    let found = matrix(&[first, quicker, broken, elsewhere], parameters());
    let order: Vec<(&str, usize)> =
        found.tasks.iter().map(|task| (task.task.as_str(), task.differences)).collect();
    assert_eq!(order[..3], [("task_07", 3), ("task_03", 1), ("task_00", 0)]);
    assert_eq!(order.len(), 12);
    let counts = |task: usize, run: usize| {
        let cell = found.tasks[task].cells[run].as_ref().unwrap();
        (cell.right, cell.better, cell.worse)
    };
    assert_eq!([0, 1, 2].map(|run| counts(0, run)), [(2, 0, 0), (2, 2, 0), (2, 0, 1)]);
    assert_eq!(counts(1, 2), (1, 0, 1), "a graph that failed is worse");
    assert!(found.tasks[11].cells[2].is_none(), "it has no results of the last task");
    assert_eq!(counts(0, 3), (2, 0, 0), "no speed is held against one of another machine");
    let heads: Vec<(bool, bool)> =
        found.runs.iter().map(|run| (run.unlike, run.score.is_some())).collect();
    assert_eq!(heads, [(false, false), (false, true), (false, true), (true, false)]);
    assert!(matrix(&[], parameters()).tasks.is_empty());
}

/// A damaged or forged store may hold any number.
#[test]
fn absurd_numbers_break_nothing() {
    let mut graphs = twelve_tasks(|task, graph| [1e308, 1e-308, -1.0, 0.0][(task + graph) % 4]);
    for graph in &mut graphs {
        graph.evaluation.outputs[0].max_error.0 = f64::NAN;
        graph.evaluation.accuracy.as_mut().unwrap().candidate = f64::INFINITY;
    }
    let shape = Evidence::OutputCount { expected: usize::MAX, actual: usize::MAX - 1 };
    graphs.push(failed("z", "z", Verdict::new(VerdictKind::ShapeMismatch).with(shape)));
    let run = record("absurd", finished(graphs));
    let again = record("again", finished(twelve_tasks(|_, _| 1.0)));
    assert!(RunReport::of(&run, parameters()).is_some());
    elements(&html::page(std::slice::from_ref(&run), parameters()));
    elements(&html::page(&[run.clone(), again.clone()], parameters()));
    let found = compare(&run, &again, parameters());
    assert!(found.speed.is_none_or(|speed| speed.ratio.ratio.is_finite()));
    assert_eq!(score_run(&run, parameters()).graphs.len(), 25);
    assert!(reference_files(&run, parameters()).is_ok());
}
