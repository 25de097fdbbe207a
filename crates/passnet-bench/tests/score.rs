//! Scores against numbers computed independently, the worked examples, and laws that hold for any set of graphs.

use passnet_bench::score::{
    JudgedGraph, MacroForm, Parameters, Score, ScoredGraph, Scoring, Summary, WEIGHTS, by_label,
    error_aware, geometric_mean, sample_correctness_rate, speed,
};
use passnet_bench::tolerance::{BASELINE, Ladder};
use passnet_bench::verdict::{ErrorClass, ReferenceStatus, Verdict, VerdictKind};
use proptest::prelude::*;

fn close(actual: f64, expected: f64) -> bool {
    (actual - expected).abs() <= 1e-9
}

/// `1.25@-5` or a status.
fn graph(text: &str) -> ScoredGraph {
    if let Some((speedup, from)) = text.split_once('@') {
        return ScoredGraph::ran(
            Ladder::right_from(from.parse().unwrap()),
            speedup.parse().unwrap(),
        );
    }
    let status: ReferenceStatus = serde_json::from_str(&format!("\"{text}\"")).unwrap();
    ScoredGraph::of_status(status, Ladder::NONE, None)
}

fn field(line: &str, name: &str) -> f64 {
    let rest = line.split(&format!(" {name}=")).nth(1).unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn all_cases_of_the_score_table() {
    let mut graphs = Vec::new();
    let mut cases = 0;
    for line in include_str!("data/scores.txt").lines() {
        if let Some(case) = line.strip_prefix("case ") {
            graphs = case.split_once(": ").unwrap().1.split(' ').map(graph).collect();
        } else if line.starts_with("  b=") {
            let parameters = Parameters::checked(field(line, "b"), field(line, "p")).unwrap();
            let score = Score::of(&graphs, parameters).unwrap();
            assert!(close(score.aggregated, field(line, "as")), "{line}\n{}", score.aggregated);
            let mut steps = line.split(" es ").nth(1).unwrap().split(' ').map(|step| {
                let (t, value) = step.split_once(':').unwrap();
                (t.parse::<i32>().unwrap(), value.parse::<f64>().unwrap())
            });
            let (mut expected, mut next) = (steps.next().unwrap().1, steps.next());
            for (t, value) in score.es.iter() {
                if let Some((from, value)) = next
                    && from == t
                {
                    expected = value;
                    next = steps.next();
                }
                assert!(close(value, expected), "{line}\nat t = {t}: {value}");
            }
            cases += 1;
        }
    }
    assert_eq!(cases, 36);
}

#[test]
fn worked_examples() {
    let aggregated = |graphs: &str, b, p| {
        let scored: Vec<_> = graphs.split(' ').map(graph).collect();
        Score::of(&scored, Parameters::checked(b, p).unwrap()).unwrap().aggregated
    };
    let six_digits = |x: f64| (x * 1e6).round() / 1e6;
    for (graphs, b, p, expected) in [
        ("1.25@-5", 0.1, 0.0, 1.247353),
        ("1.25@-5", 0.001, 0.0, 1.242541),
        ("0.8@-5 2@6", 0.1, 0.0, 0.342871),
        ("0.8@-5 2@1", 0.1, 0.0, 0.363418),
        ("1.5@-5 1.2@-3 eager_fail", 0.1, 0.0, 0.426934),
        ("eager_fail", 0.1, 0.0, 0.1),
        ("2@6", 0.1, 0.0, 0.147207),
        ("shape_mismatch", 0.1, 0.0, 0.110706),
        ("type_mismatch", 0.1, 0.0, 0.110706),
        ("1.5@-5 runtime_fail", 0.1, 0.0, 0.407040),
        ("0.8@-5", 0.1, 1.0, 0.639004),
    ] {
        assert_eq!(six_digits(aggregated(graphs, b, p)), expected, "{graphs} b={b} p={p}");
    }
}

/// The reference's macro form forgives at t >= 3 what its micro form never forgives.
#[test]
fn the_two_forms_of_the_reference_disagree_over_eager_failures() {
    let graphs: Vec<_> = ["1.5@-5", "1.2@-3", "eager_fail"].map(graph).into();
    let parameters = Parameters::default();
    let micro = error_aware(&graphs, parameters).unwrap();
    let reference = MacroForm::Reference.error_aware(&graphs, parameters).unwrap();
    let consistent = MacroForm::Consistent.error_aware(&graphs, parameters).unwrap();
    for ((t, micro), (_, reference)) in micro.iter().zip(reference.iter()) {
        if t < 3 {
            assert!(close(micro, reference), "t = {t}");
        } else {
            assert!(close(micro, 0.564_621_617_328_617_2), "t = {t}");
            assert!((reference - 1.216_440).abs() < 1e-6, "t = {t}");
        }
        assert!(close(micro, consistent.at(t).unwrap()), "t = {t}");
    }
}

#[test]
fn weights_are_the_references() {
    assert!(close(WEIGHTS.iter().sum(), 5.957424));
}

#[test]
fn nothing_has_no_score() {
    assert_eq!(Score::of(&[], Parameters::default()), None);
    assert_eq!(Summary::of(&[]), None);
    assert_eq!(geometric_mean([]), None);
    assert_eq!(sample_correctness_rate([]), None);
    for (b, p) in
        [(0.0, 0.0), (-1.0, 0.0), (1.5, 0.0), (f64::NAN, 0.0), (0.1, -1.0), (0.1, f64::INFINITY)]
    {
        assert!(Parameters::checked(b, p).is_err(), "b={b} p={p}");
    }
}

/// A speed-up that is not a positive number must not poison or lift a mean.
#[test]
fn impossible_speedups_are_failures() {
    for speedup in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let score =
            Score::of(&[ScoredGraph::ran(Ladder::ALL, speedup)], Parameters::default()).unwrap();
        assert!(close(score.aggregated, 0.1), "{speedup}");
    }
}

#[test]
fn summaries() {
    let graphs: Vec<_> = ["2@-5", "0.5@-7", "1@-5", "4@-4", "eager_fail"].map(graph).into();
    let summary = Summary::of(&graphs).unwrap();
    assert_eq!((summary.graphs, summary.correct), (5, 3), "right from -4 is wrong at the baseline");
    assert!(close(summary.correctness_rate, 0.6) && close(summary.fast_1, 0.4));
    assert!(close(summary.geometric_mean.unwrap(), 1.0));
    assert!(close(Summary::fast(&graphs, 1.5), 0.2));
    let rate = sample_correctness_rate([&graphs[..3], &graphs[3..], &[]]).unwrap();
    assert!(close(rate, 1.0 / 3.0));
    let groups = by_label(graphs.iter().map(|&g| {
        (g, vec!["any", "any", if g.speedup_at(BASELINE).is_some() { "right" } else { "wrong" }])
    }));
    let sizes: Vec<_> = groups.iter().map(|(label, group)| (*label, group.len())).collect();
    assert_eq!(sizes, [("any", 5), ("right", 3), ("wrong", 2)]);
}

/// The same verdict under both judgements: what the bench found out is worth what the table says.
#[test]
fn verdicts_score_by_their_class() {
    let judged = |kind, speedup: Option<f64>| JudgedGraph {
        graph: "g".into(),
        verdict: Verdict::new(kind),
        ladder: if speedup.is_some() { Ladder::right_from(-5) } else { Ladder::NONE },
        speedup,
    };
    let aggregated = |kind, speedup, scoring| {
        let scored = judged(kind, speedup).scored(scoring);
        Score::of(&[scored], Parameters::default()).unwrap().aggregated
    };
    for kind in VerdictKind::ALL {
        let strict = aggregated(kind, None, Scoring::Strict);
        let expected = match kind {
            // Correct without a measured speed-up cannot be scored as correct.
            VerdictKind::Correct | VerdictKind::Accuracy => 0.1,
            _ if kind.classification().strict == ErrorClass::Never => 0.1,
            _ => 0.110_705_900_552_981_48,
        };
        assert!(close(strict, expected), "{kind} {strict}");
    }
    let fast = 1.247_353_036_422_691_2;
    assert!(close(aggregated(VerdictKind::Correct, Some(1.25), Scoring::Strict), fast));
    assert!(close(aggregated(VerdictKind::Correct, Some(1.25), Scoring::Reference), fast));
    assert!(close(aggregated(VerdictKind::NoMatch, None, Scoring::Reference), 0.1));
    // A speed-up recorded beside a failure is not worth anything.
    assert!(close(aggregated(VerdictKind::Integrity, Some(99.0), Scoring::Strict), 0.1));
}

fn any_scored() -> impl Strategy<Value = ScoredGraph> {
    let class = prop_oneof![Just(ErrorClass::Execution), Just(ErrorClass::Never)];
    prop_oneof![
        (-10i32..=6, 0.05f64..20.0)
            .prop_map(|(from, s)| ScoredGraph::ran(Ladder::right_from(from), s)),
        class.prop_map(ScoredGraph::failed),
    ]
}

proptest! {
    #[test]
    fn micro_and_macro_agree(
        graphs in prop::collection::vec(any_scored(), 1..30),
        b in 0.001f64..1.0,
        p in 0.0f64..3.0,
    ) {
        let parameters = Parameters::checked(b, p).unwrap();
        let form = MacroForm::Consistent;
        let pairs = [
            (speed(&graphs, parameters).unwrap(), form.speed(&graphs, parameters).unwrap()),
            (error_aware(&graphs, parameters).unwrap(), form.error_aware(&graphs, parameters).unwrap()),
        ];
        for (micro, macro_form) in pairs {
            for (t, value) in micro.iter() {
                let other = macro_form.at(t).unwrap();
                prop_assert!((value - other).abs() <= 1e-9 * value, "t = {}: {} {}", t, value, other);
            }
        }
        // Without failures that are never forgiven, the reference's own form is right too.
        if graphs.iter().all(|g| g.class() != ErrorClass::Never) {
            let reference = MacroForm::Reference.error_aware(&graphs, parameters).unwrap();
            prop_assert_eq!(reference, form.error_aware(&graphs, parameters).unwrap());
        }
    }

    /// A looser tolerance never costs anything as long as no graph is slower than a failure.
    #[test]
    fn es_grows_with_t(graphs in prop::collection::vec(any_scored(), 1..30)) {
        let parameters = Parameters::checked(0.05, 0.0).unwrap();
        let es = error_aware(&graphs, parameters).unwrap();
        let values: Vec<f64> = es.iter().filter(|(t, _)| *t <= 1).map(|(_, v)| v).collect();
        prop_assert!(values.windows(2).all(|w| w[0] <= w[1] * (1.0 + 1e-12)), "{:?}", values);
        let late: Vec<f64> = es.iter().filter(|(t, _)| *t >= 1).map(|(_, v)| v).collect();
        prop_assert!(late.windows(2).all(|w| w[0] <= w[1] * (1.0 + 1e-12)), "{:?}", late);
    }

    /// Making one graph faster never lowers the score, and neither does the order of graphs.
    #[test]
    fn faster_is_better(graphs in prop::collection::vec(any_scored(), 1..20), s in 0.1f64..5.0) {
        let parameters = Parameters::default();
        let with = |speedup| {
            let mut all = graphs.clone();
            all.push(ScoredGraph::ran(Ladder::right_from(-5), speedup));
            Score::of(&all, parameters).unwrap().aggregated
        };
        prop_assert!(with(s) <= with(s * 1.1));
        let forwards = Score::of(&graphs, parameters).unwrap().aggregated;
        let mut reversed = graphs.clone();
        reversed.reverse();
        let backwards = Score::of(&reversed, parameters).unwrap().aggregated;
        prop_assert!((forwards - backwards).abs() <= 1e-12 * forwards);
    }
}
