//! Where results come from: what may be ranked with what, which samples are the same, and whether a run was changed.

mod runs;

use passnet_bench::report::{Conclusion, RankedGroup, RunRecord, compare, html, leaderboard};
use passnet_bench::run::{Event, RunStore};
use passnet_bench::score::Parameters;
use passnet_bench::stats::Decision;
use passnet_bench::verdict::{Verdict, VerdictKind};
use passnet_engine::Identity;
use passnet_engine::identity::DeviceIdentity;
use runs::{begun_at, failed, finished, identity, mixed, ran, start, twelve_tasks};

fn parameters() -> Parameters {
    Parameters::default()
}

fn record(name: &str, events: Vec<Event>) -> RunRecord {
    RunRecord::of(name, events)
}

/// Name, rank and number of graphs left out.
fn standings(group: &RankedGroup) -> Vec<(&str, usize, usize)> {
    group.standings.iter().map(|it| (it.run.as_str(), it.rank, it.left_out)).collect()
}

#[test]
fn runs_that_cannot_be_told_apart_share_a_rank() {
    let run = |name: &str, speed: &dyn Fn(usize, usize) -> f64| {
        record(name, finished(twelve_tasks(speed)))
    };
    // Up and down by more than the difference of the means.
    let up_and_down = |task: usize, _: usize| if task.is_multiple_of(2) { 1.5 } else { 0.98 };
    let runs = [
        run("third", &|_, _| 0.9),
        run("even", &|_, _| 1.2),
        run("mixed", &up_and_down),
        run("best", &|_, _| 3.0),
    ];
    let groups = leaderboard(&runs, parameters());
    let [group] = &groups[..] else { panic!("{groups:?}") };
    assert_eq!(
        standings(group),
        [("best", 1, 0), ("mixed", 2, 0), ("even", 2, 0), ("third", 4, 0)]
    );
    for standing in &group.standings {
        let (interval, score) = (standing.interval, standing.score.aggregated);
        assert!(interval.low <= score + 1e-9 && score <= interval.high + 1e-9, "{standing:?}");
    }
    let widths = |name: &str| {
        let found = group.standings.iter().find(|it| it.run == name).unwrap();
        found.interval.high / found.interval.low
    };
    assert!(widths("mixed") > 1.1 && widths("even") < 1.0 + 1e-9);
    assert_eq!(groups, leaderboard(&runs, parameters()), "the same each time");
}

/// A place with a GPU.
fn elsewhere() -> Identity {
    let device = DeviceIdentity {
        kind: "cuda".into(),
        name: "a GPU".into(),
        driver: Some("550.54".into()),
        capability: Some([9, 0]),
    };
    Identity { engine: "torch".into(), device, torch: Some("2.9".into()), ..identity() }
}

#[test]
fn unlike_runs_are_never_ranked_side_by_side() {
    let slow = || finished(twelve_tasks(|_, _| 0.9));
    let fast = || finished(twelve_tasks(|_, _| 2.0));
    let quick = |mut events: Vec<Event>| {
        for event in &mut events {
            if let Event::Start(start) = event {
                start.options.thorough = false;
            }
        }
        events
    };
    let runs = [
        record("slow here", slow()),
        record("fast there", begun_at(elsewhere(), fast())),
        record("fast here", fast()),
        record("hardly checked", quick(fast())),
        record("slow there", begun_at(elsewhere(), slow())),
    ];
    let groups = leaderboard(&runs, parameters());
    let found: Vec<Vec<(&str, usize, usize)>> = groups.iter().map(standings).collect();
    assert_eq!(
        found,
        [
            vec![("fast here", 1, 0), ("slow here", 2, 0)],
            vec![("fast there", 1, 0), ("slow there", 2, 0)],
            vec![("hardly checked", 1, 0)],
        ]
    );
    assert!(groups[0].differences.is_empty());
    let said = groups[1].differences.join("\n");
    for part in [
        "another engine: native and torch",
        "another device: cpu",
        "cuda (a GPU)",
        "another PyTorch: none and 2.9",
    ] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    assert!(groups[2].differences[0].starts_with("another depth of checking: all checks"));
    let page = html::page(&runs, parameters());
    assert_eq!(page.matches("Not ranked with the first").count(), groups[1].differences.len() + 1);
}

#[test]
fn speeds_of_unlike_runs_are_not_compared_and_another_commit_is_no_other_place() {
    let graphs = || twelve_tasks(|_, _| 1.2);
    let mut there = graphs();
    there[0] = failed("task_00", "graphs/0", Verdict::new(VerdictKind::RuntimeFail));
    let before = record("before", finished(graphs()));
    let found =
        compare(&before, &record("after", begun_at(elsewhere(), finished(there))), parameters());
    assert!(
        found.unlike && found.pairs.is_empty() && found.speed.is_none() && found.score.is_none()
    );
    assert_eq!(found.verdicts.len(), 1, "verdicts are");
    assert!(found.cautions.iter().any(|text| text.starts_with("another device")), "{found:?}");
    let mut rebuilt = identity();
    rebuilt.build.commit = "another".into();
    let after = record("after", begun_at(rebuilt.clone(), finished(twelve_tasks(|_, _| 2.4))));
    let found = compare(&before, &after, parameters());
    assert!(!found.unlike);
    assert_eq!(found.cautions, ["another commit: 0123456789abcdef and another"]);
    assert_eq!(found.speed.unwrap().conclusion, Conclusion::Better);
    // One run of two places is like none.
    let mut both = finished(graphs());
    both.extend(begun_at(elsewhere(), finished(vec![ran("task_00", "graphs/0", 1.2, -6)])));
    let both = record("both", both);
    assert_eq!(both.conditions().len(), 2);
    assert!(compare(&before, &both, parameters()).unlike);
    assert_eq!(leaderboard(&[before, both.clone(), both], parameters()).len(), 3);
}

#[test]
fn samples_of_equal_names_stay_apart() {
    let placed = |folder: &str, speedup: f64| {
        let mut graph = ran("x", "graphs/0", speedup, -6);
        graph.folder = folder.into();
        graph
    };
    let graphs = vec![placed("/a/x", 1.5), placed("/b/x", 2.5), placed("/a/x", 3.5)];
    let run = record("run", finished(graphs));
    let found: Vec<(String, Option<f64>)> =
        run.graphs.iter().map(|graph| (graph.name().to_string(), graph.right_speedup())).collect();
    assert_eq!(found, [("x@a/graphs/0".into(), Some(3.5)), ("x@b/graphs/0".into(), Some(2.5))]);
    // A run from before folders were stored goes on as one.
    let run = record("run", finished(vec![placed("", 1.5), placed("/b/x", 2.5)]));
    assert_eq!(run.graphs.len(), 1);
    assert_eq!(run.graphs[0].right_speedup(), Some(2.5));
}

/// A run on disk with one right graph and one that failed.
fn stored(folder: &std::path::Path) -> String {
    let mut store = RunStore::open(folder).unwrap();
    let failure = failed("a", "2", Verdict::new(VerdictKind::RuntimeFail).because("it fell"));
    finished(vec![ran("a", "1", 1.5, -6), failure])
        .iter()
        .for_each(|event| store.append(event).unwrap());
    std::fs::read_to_string(folder.join("events.jsonl")).unwrap()
}

#[test]
fn an_edited_event_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let whole = stored(folder.path());
    let read = |text: &str| {
        std::fs::write(folder.path().join("events.jsonl"), text).unwrap();
        RunRecord::read(folder.path()).unwrap()
    };
    let run = read(&whole);
    assert_eq!((run.seal.state(), run.seal.sealed, &run.doubts[..]), ("sealed", 4, &[][..]));
    let said = |from: &str, to: &str| -> Vec<String> {
        assert!(whole.contains(from), "{from} is not in {whole}");
        let run = read(&whole.replacen(from, to, 1));
        assert!(RunStore::open(folder.path()).is_err(), "nothing is added to such a run");
        run.doubts.iter().map(ToString::to_string).collect()
    };
    let faster = said("\"speedup\":1.5", "\"speedup\":15.0");
    assert_eq!(faster.len(), 2, "{faster:?}");
    assert!(faster[0].starts_with("line 2: a/1: its seal does not fit"), "{faster:?}");
    assert!(
        faster[1].contains("the speed-up is said to be 15, its timings give 1.5"),
        "{faster:?}"
    );
    let forgiven = said("\"verdict\":\"runtime_fail\"", "\"verdict\":\"correct\"");
    assert!(forgiven[0].starts_with("line 3: a/2: its seal"), "{forgiven:?}");
    assert!(forgiven[1].contains("called correct, but not right at t = -5"), "{forgiven:?}");
    let elsewhere = said("\"processor\":\"a processor\"", "\"processor\":\"another\"");
    assert!(elsewhere[0].starts_with("line 1: its seal"), "{elsewhere:?}");
    let shorter = said("\"graphs\":2", "\"graphs\":1");
    assert!(shorter[0].starts_with("line 4: its seal"), "{shorter:?}");
}

/// Whoever writes a whole run anew can seal it, but not make timings say what they do not.
#[test]
fn speed_ups_are_found_again_from_their_timings() {
    type Forge = fn(&mut passnet_bench::evaluate::Evaluation);
    let forgeries: [(Forge, &str); 6] = [
        (|it| it.judged.speedup = Some(9.0), "the speed-up is said to be 9"),
        (|it| it.interval.as_mut().unwrap().low = 1.499, "the interval is said to be 1.499"),
        (|it| it.interval = None, "a speed-up without its interval"),
        (|it| it.eager_ms.clear(), "a speed-up without timings"),
        (|it| it.decision = Some(Decision::Slower), "called slower, which its timings do not show"),
        (
            |it| it.judged.verdict = Verdict::new(VerdictKind::Unstable),
            "called unstable, but with a speed-up",
        ),
    ];
    for (forge, expected) in forgeries {
        let mut graph = ran("a", "1", 1.5, -6);
        forge(&mut graph.evaluation);
        let run = record("forged", finished(vec![graph]));
        let said: Vec<String> = run.doubts.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|text| text.contains(expected)), "{expected}: {said:?}");
        assert!(
            html::page(std::slice::from_ref(&run), parameters()).contains("What does not hold")
        );
    }
    assert!(record("mixed", mixed()).doubts.is_empty());
}

/// Runs from before seals and identities can be read, and say what they are.
#[test]
fn an_older_run_is_read_and_called_unsealed() {
    let folder = tempfile::tempdir().unwrap();
    let whole = stored(folder.path());
    let older: Vec<String> = whole
        .lines()
        .map(|line| {
            let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
            let object = event.as_object_mut().unwrap();
            ["seal", "identity", "rules"].iter().for_each(|key| drop(object.remove(*key)));
            event.to_string()
        })
        .collect();
    std::fs::write(folder.path().join("events.jsonl"), older.join("\n") + "\n").unwrap();
    let run = RunRecord::read(folder.path()).unwrap();
    assert_eq!((run.seal.state(), run.seal.unsealed, run.graphs.len()), ("unsealed", 4, 2));
    assert!(run.doubts.is_empty());
    let place = &run.conditions()[0].identity;
    assert_eq!(
        (place.processor.as_str(), place.cores, place.device.kind.as_str()),
        ("a processor", 2, "")
    );
    let today = record("today", mixed());
    assert!(compare(&run, &today, parameters()).unlike, "nobody knows where it ran");
    let mut store = RunStore::open(folder.path()).unwrap();
    store.append(&start()).unwrap();
    drop(store);
    assert_eq!(RunRecord::read(folder.path()).unwrap().seal.sealed, 1);
}
