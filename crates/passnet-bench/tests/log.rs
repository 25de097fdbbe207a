//! Logs with every kind of failure. Each file in `tests/logs` holds a log and what both ways of scoring must make of
//! it. To keep them readable, some lines stand for the many that a harness prints:
//!
//! ```text
//! P                       the prompt every line of the harness begins with
//! @types T...             the three type lines, matching
//! @values FROM,... equal=E,... [max=M] [hole=T]
//!                         the 64 tolerance lines, right from level FROM on (except at level T), and the differences
//! @times EAGER COMPILED   the lines with times and the speed-up
//! @good PATH T FROM EAGER COMPILED    a whole graph;  @rest the same without its first line
//! @bytes HEX...           raw bytes
//! ```

use passnet_bench::log::{GraphList, Log, LogReport, judge};
use passnet_bench::score::{Parameters, Scoring};
use passnet_bench::tolerance::{FLOAT_TYPES, Tolerance, levels};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::Path;

const PROMPT: &str = "graph-net-test-compiler-log";

fn expand(line: &str, out: &mut Vec<u8>) {
    let words: Vec<&str> = line.split(' ').collect();
    let mut text = String::new();
    let mut emit = |line: String| {
        let _ = writeln!(text, "{PROMPT} {line}");
    };
    match words[..] {
        ["P", ..] => emit(words[1..].join(" ")),
        ["@types", ..] => {
            let types = &words[1..];
            emit(format!("[Datatype][eager]: {}", types.join(" ")));
            emit(format!("[Datatype][compiled]: {}", types.join(" ")));
            let quoted = format!("['{}']", types.join("', '"));
            emit(format!("[DataType] eager:{quoted} compiled:{quoted} match:True"));
        }
        ["@values", from, ..] => {
            let option = |name: &str| words[2..].iter().find_map(|w| w.strip_prefix(name));
            let from: Vec<i32> = from.split(',').map(|f| f.parse().unwrap()).collect();
            let hole: Option<i32> = option("hole=").map(|t| t.parse().unwrap());
            emit(format!("[Correctness][equal]: {}", option("equal=").unwrap().replace(',', " ")));
            for t in levels() {
                for dtype in FLOAT_TYPES {
                    let bit = |from: &i32| if t >= *from && hole != Some(t) { "1" } else { "0" };
                    let bits: Vec<&str> = from.iter().map(bit).collect();
                    let key = Tolerance::of(dtype, t).unwrap().log_key();
                    emit(format!("[Correctness][{key}]: {}", bits.join(" ")));
                }
            }
            let max = vec![option("max=").unwrap_or("0.001"); from.len()].join(" ");
            emit(format!("[Correctness][max_diff]: {max}"));
            emit(format!("[Correctness][mean_diff]: {max}"));
        }
        ["@times", eager, compiled] => {
            emit(format!(
                "[Performance][eager]: {{\"e2e\": {{\"median\": {eager}, \"iqr\": 0.0}}}}"
            ));
            emit(format!(
                "[Performance][compiled]: {{\"e2e\": {{\"median\": {compiled}, \"iqr\": 0.0}}}}"
            ));
            let ratio = eager.parse::<f64>().unwrap() / compiled.parse::<f64>().unwrap();
            emit(format!("[Speedup][e2e]: {ratio:.5}"));
            emit(format!("[Speedup][gpu]: {:.5}", ratio * 1.1));
        }
        ["@good", path, ..] => {
            emit(format!("[Processing] {path}"));
            out.extend(text.bytes());
            return expand(&format!("@rest {}", words[2..].join(" ")), out);
        }
        ["@rest", dtype, from, eager, compiled] => {
            for line in [
                format!("@types {dtype}"),
                format!("@values {from} equal=0"),
                "P [Result] status: success".into(),
                format!("@times {eager} {compiled}"),
            ] {
                expand(&line, out);
            }
            return;
        }
        ["@bytes", ..] => {
            out.extend(words[1..].iter().map(|b| u8::from_str_radix(b, 16).unwrap()));
            return out.push(b'\n');
        }
        _ => {
            let _ = writeln!(text, "{line}");
        }
    }
    out.extend(text.bytes());
}

fn describe(report: &LogReport) -> Vec<String> {
    let mut lines = Vec::new();
    for graph in &report.graphs {
        let judged = &graph.judged;
        let numbers = match (judged.speedup, judged.ladder.first_right()) {
            (Some(speedup), Some(from)) => format!(" {speedup:.5} from {from}"),
            (Some(speedup), None) => format!(" {speedup:.5} never"),
            _ => String::new(),
        };
        let status = graph.reference_status.map_or("none", |s| s.name());
        let kind = judged.verdict.kind;
        lines.push(format!("{}: strict {kind}{numbers}, reference {status}", judged.graph));
    }
    for difference in &report.differences {
        let kind = serde_json::to_value(difference.kind).unwrap();
        lines.push(format!("difference {}: {}", difference.graph, kind.as_str().unwrap()));
    }
    lines.extend(report.findings.iter().map(|f| match f.line {
        Some(line) => format!("finding {line}: {}", f.text),
        None => format!("finding: {}", f.text),
    }));
    let number =
        |scoring| report.score(scoring).map_or("none".into(), |s| format!("{:.9}", s.aggregated));
    lines.push(format!(
        "as: strict {}, reference {}",
        number(Scoring::Strict),
        number(Scoring::Reference)
    ));
    lines
}

#[test]
fn every_kind_of_log() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 17);
    let mut failures = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (head, body) = text.split_once("----\n").unwrap();
        let expected: Vec<&str> = head.lines().filter_map(|l| l.strip_prefix("expect ")).collect();
        let list = head.lines().find_map(|l| l.strip_prefix("graphs: "));
        let list = list.map(|l| GraphList::parse("list", l.replace(' ', "\n").as_bytes()).unwrap());
        let mut bytes = Vec::new();
        body.lines().for_each(|line| expand(line, &mut bytes));
        let log = Log::parse("validation.log", &bytes).unwrap();
        let report = judge(&log, list.as_ref(), Parameters::default());
        let actual = describe(&report);
        if actual != expected {
            let _ = writeln!(failures, "{}\n  {}", file.display(), actual.join("\n  "));
            for d in &report.differences {
                let _ = writeln!(failures, "    {}: {}", d.graph, d.reason);
            }
        }
    }
    assert!(failures.is_empty(), "these logs give something else:\n{failures}");
}

#[test]
fn sizes_are_limited() {
    let many = b"[Processing] a\n".repeat(passnet_bench::log::MAX_GRAPHS + 1);
    let error = Log::parse("validation.log", &many).unwrap_err();
    assert!(error.to_string().contains("more than"), "{error}");
    let long = vec![b'x'; 1 << 20];
    let log = Log::parse("validation.log", &long).unwrap();
    assert_eq!((log.blocks.len(), log.overlong_lines), (0, 1));
}

/// What a forger may write: real lines, damaged, repeated and out of order.
fn any_line() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "P [Processing] a",
        "P [Processing] b",
        "P [Processing]",
        "P [Config] trials: 1",
        "Trial 1: e2e=0.5 ms",
        "@types float32",
        "@types float32 int64",
        "P [Datatype][eager]: ",
        "P [DataType] match:False",
        "P [Shape] match:True",
        "@values -5 equal=0",
        "@values -10,-3 equal=1,1",
        "P [Correctness][equal]: nan inf",
        "P [Correctness][]]: ]: 1",
        "P [Result] status: success",
        "P [Result] status: failed",
        "@times 0.5 0.4",
        "@times 0.5 0.0",
        "P [Performance][eager]: {\"e2e\": {\"median\": 1e999}}",
        "P [Performance][eager]: [[[[",
        "P [Speedup][e2e]: -1",
        "P [Speedup][e2e]: nan",
        "P [Speedup][e2e]: 1e308",
        "RuntimeError: No passes modified",
        "Environment fluctuation detected",
        "Unauthorized Operator",
    ]);
    prop_oneof![9 => known.prop_map(String::from), 1 => "[ -~]{0,60}"]
}

proptest! {
    /// Whatever stands in a log: a score between b and the best speed-up claimed, never a panic, never a NaN.
    #[test]
    fn any_text_is_judged(lines in prop::collection::vec(any_line(), 0..30), listed in any::<bool>()) {
        let mut bytes = Vec::new();
        for line in lines.iter().filter(|l| !l.starts_with("@bytes") && !l.starts_with("@good")) {
            expand(line, &mut bytes);
        }
        let log = Log::parse("validation.log", &bytes).unwrap();
        let list = GraphList::parse("list", b"a\nc").unwrap();
        let report = judge(&log, listed.then_some(&list), Parameters::default());
        for scoring in [Scoring::Strict, Scoring::Reference] {
            if let Some(score) = report.score(scoring) {
                prop_assert!(score.aggregated.is_finite() && score.aggregated > 0.0);
            }
        }
        prop_assert_eq!(report.reference.is_some(), !log.blocks.is_empty());
        let graphs: Vec<&str> = report.graphs.iter().map(|g| g.judged.graph.as_str()).collect();
        if listed {
            prop_assert_eq!(graphs.len(), 2, "each graph of the list counts exactly once");
        }
        // A strict speed-up is always one the log justifies, by its medians or by its trials.
        for graph in &report.graphs {
            if let Some(speedup) = graph.judged.speedup {
                prop_assert!([1.25, 1.0].contains(&speedup), "{:?}", graph);
            }
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let log = Log::parse("validation.log", &bytes).unwrap();
        judge(&log, None, Parameters::default());
    }
}
