//! Small runs made by hand, for tests of what is said about runs.

#![allow(dead_code, reason = "no file of tests needs all of it")]

use passnet_bench::candidate::Rewrites;
use passnet_bench::evaluate::{
    Accuracy, Check, CheckAnswer, EvaluateOptions, Evaluation, OutputSummary,
};
use passnet_bench::number::Number;
use passnet_bench::run::{Event, FORMAT, GraphEvent, Machine, Start};
use passnet_bench::score::JudgedGraph;
use passnet_bench::stats::{Bootstrap, CONFIDENCE, RatioInterval};
use passnet_bench::tolerance::Ladder;
use passnet_bench::verdict::{Evidence, Verdict, VerdictKind};
use passnet_engine::Identity;
use passnet_engine::identity::{Build, DeviceIdentity};

pub fn start() -> Event {
    Event::Start(Box::new(Start {
        format: FORMAT,
        version: "0.1.0".into(),
        engine: "native".into(),
        compiler: "pass".into(),
        options: EvaluateOptions { noise_floor: 0.02, ..EvaluateOptions::default() },
        rules: Some(true),
        machine: Machine { processor: "a processor".into(), threads: 2 },
        identity: Some(identity()),
        time: 0,
    }))
}

/// A place that is no machine in particular.
pub fn identity() -> Identity {
    Identity {
        engine: "native".into(),
        device: DeviceIdentity {
            kind: "cpu".into(),
            name: "a processor".into(),
            ..DeviceIdentity::default()
        },
        processor: "a processor".into(),
        cores: 2,
        build: Build {
            version: "0.1.0".into(),
            commit: "0123456789abcdef".into(),
            profile: "release".into(),
            features: Vec::new(),
        },
        ..Identity::default()
    }
}

/// A run that began elsewhere.
pub fn begun_at(place: Identity, mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        if let Event::Start(start) = event {
            start.identity = Some(place.clone());
        }
    }
    events
}

/// Ten timings of both sides, about two percent apart, whose medians have that ratio.
fn timings(speedup: f64) -> (Vec<f64>, Vec<f64>) {
    let spread = |call: u32| 1.0 + 0.02 * (f64::from(call) - 4.5) / 4.5;
    ((0..10).map(|call| speedup * spread(call)).collect(), vec![1.0; 10])
}

/// A graph that ran, right from a level on.
pub fn ran(sample: &str, graph: &str, speedup: f64, right_from: i32) -> GraphEvent {
    let ladder = Ladder::right_from(right_from);
    let kind = if right_from <= -5 { VerdictKind::Correct } else { VerdictKind::Accuracy };
    let (eager_ms, candidate_ms) = timings(speedup);
    let found = Bootstrap::default().ratio_of_medians(&eager_ms, &candidate_ms);
    let interval = found
        .map_or(RatioInterval { low: speedup, ratio: speedup, high: speedup }, |found| {
            found.interval(CONFIDENCE)
        });
    let dtype = if graph.contains("float16") { "float16" } else { "float32" };
    let evaluation = Evaluation {
        judged: JudgedGraph {
            graph: graph.into(),
            verdict: Verdict::new(kind),
            ladder,
            speedup: Some(speedup),
        },
        interval: Some(interval),
        decision: Some(interval.decide(0.02)),
        eager_ms,
        candidate_ms,
        rewrites: vec![Rewrites { pass: "fuse".into(), count: 1 }],
        outputs: vec![OutputSummary {
            dtype: dtype.into(),
            equal: false,
            ladders: [ladder; 4],
            max_error: Number(0.125),
            mean_error: Number(0.0625),
        }],
        accuracy: Some(Accuracy { eager: 0.5, candidate: 0.75 }),
        checks: vec![
            Check {
                name: "two runs agree in every bit".into(),
                answer: CheckAnswer::Passed,
                detail: String::new(),
            },
            Check {
                name: "infinities".into(),
                answer: CheckAnswer::Skipped,
                detail: "eager refuses".into(),
            },
        ],
        dtype: dtype.into(),
        operations: vec!["add".into(), "relu".into()],
        measured_seconds: 0.25,
        seconds: 0.5,
        ..Evaluation::without_run(graph, Verdict::new(kind))
    };
    event(sample, graph, evaluation)
}

/// A graph that gave nothing to compare.
pub fn failed(sample: &str, graph: &str, verdict: Verdict) -> GraphEvent {
    let evaluation = Evaluation { seconds: 0.25, ..Evaluation::without_run(graph, verdict) };
    event(sample, graph, evaluation)
}

fn event(sample: &str, graph: &str, evaluation: Evaluation) -> GraphEvent {
    GraphEvent {
        sample: sample.into(),
        folder: String::new(),
        key: format!("{sample}/{graph}"),
        artefacts: Vec::new(),
        evaluation,
    }
}

/// A run with every kind of ending: right, less accurate, wrong only on extreme inputs, outside eager's tolerance
/// but as accurate, and failures of several kinds.
pub fn mixed() -> Vec<Event> {
    let mut extreme = ran("gelu", "graphs/typical_subgraphs/float32_b", 1.5, -6);
    extreme.evaluation.judged.verdict =
        Verdict::new(VerdictKind::Accuracy).because("with infinities");
    extreme.evaluation.judged.ladder = Ladder::NONE;
    let mut yardstick = ran("gelu", "graphs/typical_subgraphs/float16_a", 2.5, -5);
    yardstick.evaluation.outputs[0].ladders = [Ladder::right_from(-3); 4];
    yardstick.evaluation.accuracy = Some(Accuracy { eager: 30.0, candidate: 31.0 });
    let mut inaccurate = ran("add_norm", "graphs/fusible_subgraphs/float16_b", 1.25, -3);
    inaccurate.evaluation.accuracy = Some(Accuracy { eager: 2.0, candidate: f64::INFINITY });
    inaccurate.evaluation.judged.verdict =
        inaccurate.evaluation.judged.verdict.because("output 0: 3 of 8 elements wrong");
    let dtype = Evidence::Dtype { output: 0, expected: "float16".into(), actual: "float32".into() };
    let shape = Evidence::Shape { output: 0, expected: vec![2, 3], actual: vec![3] };
    let rule = Evidence::Rule {
        rule: "no-exec".into(),
        file: "pass.py".into(),
        line: 3,
        message: "exec is not allowed".into(),
    };
    let graphs = vec![
        ran("add_norm", "graphs/fusible_subgraphs/float32_a", 1.75, -6),
        inaccurate,
        ran("add_norm", "graphs/fusible_subgraphs/float32_c", 0.75, -5),
        yardstick,
        extreme,
        failed("softmax", "graphs/a", Verdict::new(VerdictKind::NoMatch).because("no node fits")),
        failed("softmax", "graphs/b", Verdict::new(VerdictKind::DtypeMismatch).with(dtype)),
        failed("softmax", "graphs/c", Verdict::new(VerdictKind::ShapeMismatch).with(shape)),
        failed("softmax", "graphs/d", Verdict::new(VerdictKind::Integrity).with(rule)),
        failed("softmax", "graphs/e", Verdict::new(VerdictKind::ReferenceFail).because("eager")),
    ];
    finished(graphs)
}

/// A run of these graphs that came to its end.
pub fn finished(graphs: Vec<GraphEvent>) -> Vec<Event> {
    let count = graphs.len();
    let mut events = vec![start()];
    events.extend(graphs.into_iter().map(|graph| Event::Graph(Box::new(graph))));
    events.push(Event::End { graphs: count });
    events
}

/// Twelve tasks of two graphs; `speedup` tells each graph's.
pub fn twelve_tasks(mut speedup: impl FnMut(usize, usize) -> f64) -> Vec<GraphEvent> {
    let mut graphs = Vec::new();
    for task in 0..12 {
        for graph in 0..2 {
            let name = format!("graphs/{graph}");
            graphs.push(ran(&format!("task_{task:02}"), &name, speedup(task, graph), -6));
        }
    }
    graphs
}
