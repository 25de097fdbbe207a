//! Logs written here are read back, by both ways of scoring, as what they say.

use passnet_bench::log::{
    FailureCause, GpuTimings, GraphEntry, Log, LogWriter, OutputLines, RunConfig, Timings,
    WrittenResult, aggregated_score_json, aggregation_text, judge,
};
use passnet_bench::score::{Parameters, Score, ScoredGraph};
use passnet_bench::tolerance::Ladder;
use passnet_bench::verdict::{ReferenceStatus, VerdictKind};

fn write(entries: &[GraphEntry<'_>]) -> String {
    let config = RunConfig {
        device: "cpu".into(),
        hardware: "a machine".into(),
        compiler: "pass_mgr".into(),
        warmup: 25,
        trials: 3,
        framework_version: "0.1.0".into(),
    };
    let mut writer = LogWriter::new(Vec::new(), config);
    entries.iter().for_each(|entry| writer.write(entry).unwrap());
    String::from_utf8(writer.into_inner()).unwrap()
}

const OUTPUT: OutputLines = OutputLines {
    equal: false,
    ladders: [Ladder::ALL, Ladder::ALL, Ladder::ALL, Ladder::ALL],
    max_error: 0.000_122_070_312_5,
    mean_error: 1.862_645_149_230_957e-9,
};

fn entry<'a>(path: &'a str, result: WrittenResult<'a>) -> GraphEntry<'a> {
    GraphEntry { path, model: "a model", rewrites: &[("fuse", 2)], result }
}

fn types(name: &str) -> [String; 1] {
    [name.to_string()]
}

fn good<'a>(types: &'a [String], outputs: &'a [OutputLines]) -> WrittenResult<'a> {
    let timings = Timings { compiled: &[0.4, 0.4, 0.5], eager: &[0.5, 0.5, 0.6], gpu: None };
    WrittenResult::Compared { types, outputs, timings }
}

#[test]
fn a_graph_is_written_line_by_line() {
    let output = OutputLines { ladders: [Ladder::right_from(-5); 4], ..OUTPUT };
    let gpu = GpuTimings { compiled: &[0.3, 0.3, 0.3], eager: &[0.3, 0.3, 0.3] };
    let timings = Timings { compiled: &[0.4, 0.4, 0.5], eager: &[0.5, 0.5, 0.6], gpu: Some(gpu) };
    let float32 = types("float32");
    let result = WrittenResult::Compared { types: &float32, outputs: &[output], timings };
    let text = write(&[entry("graphs/a", result)]);
    let lines: Vec<&str> =
        text.lines().map(|l| l.strip_prefix("graph-net-test-compiler-log ").unwrap_or(l)).collect();
    let expected = [
        "[Processing] graphs/a",
        "[Config] model: a model",
        "[Config] device: cpu",
        "[Config] hardware: a machine",
        "[Config] compiler: pass_mgr",
        "[Config] warmup: 25",
        "[Config] trials: 3",
        "[Config] compile_framework_version: 0.1.0",
        "[PassMgrBackend] Applied 2 replacements with fuse.",
        "[Profiling] Using device: cpu a machine, warm up 25, trials 3",
        "Trial 1: e2e=0.40000 ms, gpu=0.30000 ms",
        "Trial 2: e2e=0.40000 ms, gpu=0.30000 ms",
        "Trial 3: e2e=0.50000 ms, gpu=0.30000 ms",
        "[Profiling] Using device: cpu a machine, warm up 25, trials 3",
        "Trial 1: e2e=0.50000 ms, gpu=0.30000 ms",
        "Trial 2: e2e=0.50000 ms, gpu=0.30000 ms",
        "Trial 3: e2e=0.60000 ms, gpu=0.30000 ms",
        "[Datatype][eager]: float32",
        "[Datatype][compiled]: float32",
        "[DataType] eager:['float32'] compiled:['float32'] match:True",
        "[Correctness][equal]: 0",
        "[Correctness][all_close_atol_1.00E-10_rtol_1.00E-06]: 0",
    ];
    assert_eq!(lines[..expected.len()], expected);
    let expected = [
        "[Correctness][all_close_atol_1.00E+07_rtol_1.00E+07]: 1",
        "[Correctness][max_diff]: 0.0001220703125",
        "[Correctness][mean_diff]: 1.862645149230957e-09",
        "[Result] status: success",
        "[Performance][eager]: {\"e2e\": {\"median\": 0.5, \"iqr\": 0.05, \"mean\": 0.533333, \
         \"std\": 0.0471405, \"min\": 0.5, \"max\": 0.6}, \"gpu\": {\"median\": 0.3, \"iqr\": 0.0, \
         \"mean\": 0.3, \"std\": 0.0, \"min\": 0.3, \"max\": 0.3}}",
        "[Performance][compiled]: {\"e2e\": {\"median\": 0.4, \"iqr\": 0.05, \"mean\": 0.433333, \
         \"std\": 0.0471405, \"min\": 0.4, \"max\": 0.5}, \"gpu\": {\"median\": 0.3, \"iqr\": 0.0, \
         \"mean\": 0.3, \"std\": 0.0, \"min\": 0.3, \"max\": 0.3}}",
        "[Speedup][e2e]: 1.25000",
        "[Speedup][gpu]: 1.00000",
    ];
    assert_eq!(lines[lines.len() - expected.len()..], expected);
    assert_eq!(lines.iter().filter(|l| l.contains("all_close")).count(), 64);
}

#[test]
fn what_is_written_is_read_back() {
    let output = OutputLines { ladders: [Ladder::right_from(-5); 4], ..OUTPUT };
    let (half, single) = (types("float16"), types("float32"));
    let shapes =
        WrittenResult::ShapesDiffer { types: &single, message: "RuntimeError: [2] or [3]" };
    let text = write(&[
        entry("graphs/a", good(&single, &[output])),
        entry("graphs/b c", WrittenResult::Failed(FailureCause::NothingMatched)),
        entry("d", WrittenResult::TypesDiffer { eager: &half, compiled: &single }),
        entry("e", WrittenResult::Failed(FailureCause::Eager("RuntimeError: too large"))),
        entry("f", WrittenResult::Failed(FailureCause::Compiled("CUDA error"))),
        entry("g", shapes),
    ]);
    let log = Log::parse("validation.log", text.as_bytes()).unwrap();
    let report = judge(&log, None, Parameters::default());
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let read: Vec<_> = report
        .graphs
        .iter()
        .map(|g| (g.judged.graph.as_str(), g.judged.verdict.kind, g.reference_status.unwrap()))
        .collect();
    let expected = [
        ("graphs/a", VerdictKind::Correct, ReferenceStatus::Correct),
        ("graphs/b%20c", VerdictKind::NoMatch, ReferenceStatus::EagerFail),
        ("d", VerdictKind::DtypeMismatch, ReferenceStatus::ShapeMismatch),
        ("e", VerdictKind::ReferenceFail, ReferenceStatus::EagerFail),
        ("f", VerdictKind::RuntimeFail, ReferenceStatus::EagerFail),
        ("g", VerdictKind::ShapeMismatch, ReferenceStatus::ShapeMismatch),
    ];
    assert_eq!(read, expected);
    assert_eq!(report.graphs[0].judged.speedup, Some(1.25));
    assert_eq!(report.graphs[0].judged.ladder, Ladder::right_from(-5));
}

/// Names and messages come from outside: they must not become lines of the log.
#[test]
fn foreign_text_cannot_forge_lines() {
    let forged =
        "x\ngraph-net-test-compiler-log [Speedup][e2e]: 99\r[Datatype][eager]: a [Processing] z";
    let float32 = types("float32");
    let mut evil = entry(forged, good(&float32, &[OUTPUT]));
    evil.model = forged;
    let failed = entry("b", WrittenResult::Failed(FailureCause::Compiled(forged)));
    let text = write(&[evil, failed]);
    let log = Log::parse("validation.log", text.as_bytes()).unwrap();
    assert_eq!(log.blocks.len(), 2);
    let report = judge(&log, None, Parameters::default());
    assert_eq!(report.graphs[0].judged.speedup, Some(1.25));
    assert_eq!(report.graphs[0].judged.verdict.kind, VerdictKind::Correct);
    assert_eq!(report.graphs[1].judged.verdict.kind, VerdictKind::RuntimeFail);
    assert_eq!(report.graphs[1].reference_status, Some(ReferenceStatus::EagerFail));
}

#[test]
fn the_aggregated_score_has_the_references_form() {
    let scored = ScoredGraph::ran(Ladder::right_from(-5), 1.25);
    let score = Score::of(&[scored], Parameters::default()).unwrap();
    let json = aggregated_score_json(1, &score);
    assert!(json.starts_with("{\n    \"id\": 1,\n    \"score\": 1.24735303642269"), "{json}");
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["score"].as_f64(), Some(score.aggregated));
    let text = aggregation_text(&score);
    assert!(text.starts_with("  - ESt=0.100 for tolerance=-10.\n"), "{text}");
    assert!(
        text.contains("  - ESt=1.250 for tolerance=4.\naggregated_speedup=1.2473530364"),
        "{text}"
    );
}
