//! Writing a log that tools built on the reference's format can read.
//!
//! Text that comes from outside (names, error messages) is kept from looking like a line of the log.

use crate::number::python_float;
use crate::score::Score;
use crate::stats::TimingSummary;
use crate::tolerance::{FLOAT_TYPES, Ladder, Tolerance, levels};
use std::io::{self, Write};

/// What every line of the harness begins with.
const PROMPT: &str = "graph-net-test-compiler-log";

/// What is the same for all graphs of a run.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// `cpu` or `cuda`.
    pub device: String,
    /// The device's name.
    pub hardware: String,
    /// What was under test, by the reference's name for it.
    pub compiler: String,
    /// Calls before those that are timed.
    pub warmup: usize,
    /// Timed calls.
    pub trials: usize,
    /// Of PyTorch, or of the engine.
    pub framework_version: String,
}

/// One graph's part of a log.
#[derive(Debug, Clone)]
pub struct GraphEntry<'a> {
    /// As the log names the graph.
    pub path: &'a str,
    /// The model that it comes from.
    pub model: &'a str,
    /// What each pass did to it, by name.
    pub rewrites: &'a [(&'a str, usize)],
    /// What the lines after the configuration say.
    pub result: WrittenResult<'a>,
}

/// How a graph ended.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum WrittenResult<'a> {
    /// Outputs of equal types were compared and timed.
    Compared {
        types: &'a [String],
        outputs: &'a [OutputLines],
        timings: Timings<'a>,
    },
    /// Types or counts differ, so nothing was compared.
    TypesDiffer {
        eager: &'a [String],
        compiled: &'a [String],
    },
    /// Types agree and shapes do not: comparing raised.
    ShapesDiffer {
        types: &'a [String],
        message: &'a str,
    },
    Failed(FailureCause<'a>),
}

/// Why there are no results.
#[derive(Debug, Clone, Copy)]
pub enum FailureCause<'a> {
    /// No pass found its pattern.
    NothingMatched,
    /// The candidate's error, as the reference would print it.
    Compiled(&'a str),
    /// Eager's error.
    Eager(&'a str),
}

/// What the correctness lines say about one output.
#[derive(Debug, Clone, Copy)]
pub struct OutputLines {
    /// Whether both sides gave the same values.
    pub equal: bool,
    /// For the tolerances of float16, bfloat16, float32, float64.
    pub ladders: [Ladder; 4],
    /// The largest absolute difference.
    pub max_error: f64,
    /// The mean of absolute differences.
    pub mean_error: f64,
}

/// Milliseconds per trial.
#[derive(Debug, Clone, Copy)]
pub struct Timings<'a> {
    /// Of the candidate.
    pub compiled: &'a [f64],
    /// Of eager.
    pub eager: &'a [f64],
    /// Device time of both, on devices with a clock of their own.
    pub gpu: Option<GpuTimings<'a>>,
}

/// Device milliseconds per trial.
#[derive(Debug, Clone, Copy)]
pub struct GpuTimings<'a> {
    /// Of the candidate.
    pub compiled: &'a [f64],
    /// Of eager.
    pub eager: &'a [f64],
}

/// Writes graphs one after the other, each whole.
#[derive(Debug)]
pub struct LogWriter<W> {
    out: W,
    config: RunConfig,
}

impl<W: Write> LogWriter<W> {
    /// Writes nothing yet: each graph has its own head.
    pub fn new(out: W, config: RunConfig) -> Self {
        LogWriter { out, config }
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Appends one graph and flushes, so that a killed run loses at most the graph in flight.
    pub fn write(&mut self, entry: &GraphEntry<'_>) -> io::Result<()> {
        let mut text = Text::default();
        self.header(entry, &mut text);
        match &entry.result {
            WrittenResult::Compared { types, outputs, timings } => {
                profile(&mut text, &self.config, timings.compiled, timings.gpu.map(|g| g.compiled));
                profile(&mut text, &self.config, timings.eager, timings.gpu.map(|g| g.eager));
                type_lines(&mut text, types, types);
                correctness_lines(&mut text, outputs);
                text.line("[Result] status: success");
                performance_lines(&mut text, timings);
            }
            WrittenResult::TypesDiffer { eager, compiled } => {
                type_lines(&mut text, eager, compiled);
                text.line("[Result] status: success");
            }
            WrittenResult::ShapesDiffer { types, message } => {
                type_lines(&mut text, types, types);
                text.line(&format!("[Correctness][equal]: {}", vec!["0"; types.len()].join(" ")));
                text.raw(&harmless(message));
                text.line("[Result] status: failed");
            }
            WrittenResult::Failed(cause) => failure_lines(&mut text, *cause),
        }
        self.out.write_all(text.0.as_bytes())?;
        self.out.flush()
    }

    fn header(&self, entry: &GraphEntry<'_>, text: &mut Text) {
        let config = &self.config;
        text.line(&format!("[Processing] {}", path_text(entry.path)));
        for (key, value) in [
            ("model", harmless(entry.model)),
            ("device", harmless(&config.device)),
            ("hardware", harmless(&config.hardware)),
            ("compiler", harmless(&config.compiler)),
            ("warmup", config.warmup.to_string()),
            ("trials", config.trials.to_string()),
            ("compile_framework_version", harmless(&config.framework_version)),
        ] {
            text.line(&format!("[Config] {key}: {value}"));
        }
        for (pass, count) in entry.rewrites {
            let pass = harmless(pass);
            text.raw(&format!("[PassMgrBackend] Applied {count} replacements with {pass}."));
        }
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    /// A line of the harness.
    fn line(&mut self, line: &str) {
        self.raw(&format!("{PROMPT} {line}"));
    }

    fn raw(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }
}

/// Foreign text on one line, without brackets and without the words the reference takes for failures.
fn harmless(text: &str) -> String {
    let one_line: String = text
        .chars()
        .take(1000)
        .map(|c| match c {
            '[' => '(',
            ']' => ')',
            c if c.is_control() || c == '\u{2028}' || c == '\u{2029}' => ' ',
            c => c,
        })
        .collect();
    one_line.replace("all_close", "all-close").replace("No passes modified", "no passes modified")
}

/// A path is read back as the last word of its line, so blanks in it are written as `%20`.
fn path_text(path: &str) -> String {
    harmless(path).split_whitespace().collect::<Vec<_>>().join("%20")
}

fn profile(text: &mut Text, config: &RunConfig, e2e: &[f64], gpu: Option<&[f64]>) {
    text.raw(&format!(
        "[Profiling] Using device: {} {}, warm up {}, trials {}",
        harmless(&config.device),
        harmless(&config.hardware),
        config.warmup,
        config.trials
    ));
    for (i, time) in e2e.iter().enumerate() {
        let gpu = gpu.and_then(|g| g.get(i)).map(|g| format!(", gpu={g:.5} ms"));
        text.raw(&format!("Trial {}: e2e={time:.5} ms{}", i + 1, gpu.unwrap_or_default()));
    }
}

fn type_lines(text: &mut Text, eager: &[String], compiled: &[String]) {
    let names = |types: &[String]| types.iter().map(|t| harmless(t)).collect::<Vec<_>>();
    let (eager, compiled) = (names(eager), names(compiled));
    let quoted = |types: &[String]| {
        let quoted: Vec<String> = types.iter().map(|t| format!("'{t}'")).collect();
        format!("[{}]", quoted.join(", "))
    };
    text.line(&format!("[Datatype][eager]: {}", eager.join(" ")));
    text.line(&format!("[Datatype][compiled]: {}", compiled.join(" ")));
    text.line(&format!(
        "[DataType] eager:{} compiled:{} match:{}",
        quoted(&eager),
        quoted(&compiled),
        if eager == compiled { "True" } else { "False" }
    ));
}

fn correctness_lines(text: &mut Text, outputs: &[OutputLines]) {
    let mut line = |key: &str, value: &dyn Fn(&OutputLines) -> String| {
        let values: Vec<String> = outputs.iter().map(value).collect();
        text.line(&format!("[Correctness][{key}]: {}", values.join(" ")));
    };
    let bit = |right: bool| if right { "1" } else { "0" }.to_string();
    line("equal", &|o| bit(o.equal));
    for t in levels() {
        for (column, dtype) in FLOAT_TYPES.into_iter().enumerate() {
            if let Some(tolerance) = Tolerance::of(dtype, t) {
                line(&tolerance.log_key(), &|o| bit(o.ladders[column].is_right_at(t)));
            }
        }
    }
    line("max_diff", &|o| python_float(o.max_error));
    line("mean_diff", &|o| python_float(o.mean_error));
}

fn performance_lines(text: &mut Text, timings: &Timings<'_>) {
    let clocks = |e2e: &[f64], gpu: Option<&[f64]>| {
        let e2e = TimingSummary::of(e2e).map(|s| ("e2e", s));
        let gpu = gpu.and_then(TimingSummary::of).map(|s| ("gpu", s));
        e2e.into_iter().chain(gpu).collect::<Vec<_>>()
    };
    let eager = clocks(timings.eager, timings.gpu.map(|g| g.eager));
    let compiled = clocks(timings.compiled, timings.gpu.map(|g| g.compiled));
    for (side, clocks) in [("eager", &eager), ("compiled", &compiled)] {
        let parts: Vec<String> =
            clocks.iter().map(|(name, s)| format!("\"{name}\": {}", summary_json(s))).collect();
        text.line(&format!("[Performance][{side}]: {{{}}}", parts.join(", ")));
    }
    for ((name, eager), (_, compiled)) in eager.iter().zip(&compiled) {
        let speedup = eager.median / compiled.median;
        if speedup.is_finite() && speedup > 0.0 {
            text.line(&format!("[Speedup][{name}]: {speedup:.5}"));
        }
    }
}

fn summary_json(s: &TimingSummary) -> String {
    let fields = [
        ("median", s.median),
        ("iqr", s.iqr),
        ("mean", s.mean),
        ("std", s.std),
        ("min", s.min),
        ("max", s.max),
    ];
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\": {}", python_float(*value)))
        .collect();
    format!("{{{}}}", fields.join(", "))
}

fn failure_lines(text: &mut Text, cause: FailureCause<'_>) {
    let (side, message) = match cause {
        FailureCause::NothingMatched => {
            ("compiled", "[PassMgrBackend] No passes modified the graph.".to_string())
        }
        FailureCause::Compiled(message) => ("compiled", harmless(message)),
        FailureCause::Eager(message) => ("eager", harmless(message)),
    };
    let title = if side == "eager" { "Eager" } else { "Compiled" };
    text.raw(&format!("{title} model execution failed: {message}"));
    text.line("[Result] status: failed");
    text.line(&format!("[Fail due to {side} model execution error.]"));
}

/// The text of `aggregated_score.json`.
pub fn aggregated_score_json(sample_id: i64, score: &Score) -> String {
    let score = python_float(score.aggregated);
    format!("{{\n    \"id\": {sample_id},\n    \"score\": {score}\n}}")
}

/// What the reference's aggregation prints.
pub fn aggregation_text(score: &Score) -> String {
    let mut text = String::new();
    for (t, value) in score.es.iter() {
        text.push_str(&format!("  - ESt={value:.3} for tolerance={t}.\n"));
    }
    text.push_str(&format!("aggregated_speedup={}\n", python_float(score.aggregated)));
    text
}
