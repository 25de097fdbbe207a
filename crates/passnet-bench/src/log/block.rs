//! What a log says about one graph, collected line by line.

use super::flags::ReferenceFlags;
use super::line::{Line, numbers, trial};
use crate::number::Number;
use std::collections::BTreeMap;

/// A value that a log should give once. The last one counts for the reference; a different one before it is kept,
/// because an honest harness never contradicts itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading<T> {
    /// As it was understood.
    pub value: T,
    /// Where it stands in the log, counted from 1.
    pub line: usize,
    /// How often the line stands in the graph's part of the log.
    pub times: usize,
    /// The first earlier line that said something else.
    pub contradicted_at: Option<usize>,
}

fn read<T: PartialEq>(slot: &mut Option<Reading<T>>, value: T, line: usize) {
    *slot = Some(match slot.take() {
        None => Reading { value, line, times: 1, contradicted_at: None },
        Some(old) => Reading {
            contradicted_at: old.contradicted_at.or((old.value != value).then_some(old.line)),
            times: old.times + 1,
            value,
            line,
        },
    });
}

/// Where a phrase was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    pub(crate) line: usize,
    /// The line, shortened.
    pub(crate) text: String,
}

/// Phrases that tell what happened where the reference prints no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "a table of the reference's phrases, each named by what it says")]
pub enum Phrase {
    NothingMatched,
    PassCrashed,
    CompilerFailed,
    ForbiddenOperator,
    TimingNoise,
    EagerFailed,
    CompiledFailed,
    AttributeError,
    AnyError,
    RefusedSource,
    NoFunctionLeft,
    GraphMissing,
}

const PHRASES: [(Phrase, &[&str]); 12] = [
    (Phrase::NothingMatched, &["No passes modified"]),
    (Phrase::PassCrashed, &["CRASHED with error"]),
    (Phrase::CompilerFailed, &["BackendCompilerFailed", "CompilationError"]),
    (Phrase::ForbiddenOperator, &["Unauthorized Operator"]),
    (Phrase::TimingNoise, &["Environment fluctuation detected"]),
    (Phrase::EagerFailed, &["eager model execution error", "Eager model execution failed"]),
    (
        Phrase::CompiledFailed,
        &["compiled model execution error", "Compiled model execution failed"],
    ),
    (Phrase::AttributeError, &["AttributeError:"]),
    (Phrase::AnyError, &["Exception:", "Error:"]),
    (Phrase::RefusedSource, &["Detected hacking behavior"]),
    (Phrase::NoFunctionLeft, &["No replacement functions available"]),
    (Phrase::GraphMissing, &["os.path.exists(model_path)=False"]),
];

/// The first mention of each phrase.
#[derive(Debug, Clone, Default)]
pub(super) struct Phrases(BTreeMap<Phrase, Mention>);

impl Phrases {
    pub(super) fn see(&mut self, line: usize, text: &str) {
        for (phrase, spellings) in PHRASES {
            if spellings.iter().any(|s| text.contains(s)) && !self.0.contains_key(&phrase) {
                self.0.insert(phrase, Mention { line, text: shortened(text) });
            }
        }
    }

    pub(super) fn get(&self, phrase: Phrase) -> Option<&Mention> {
        self.0.get(&phrase)
    }
}

/// Log text as evidence: one printable line of bounded length.
pub(super) fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let mut out: String =
        text.trim().chars().take(MAX_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().chars().nth(MAX_CHARS).is_some() {
        out.push('…');
    }
    out
}

/// Everything a log says about one graph, from its `[Processing]` line to the next.
#[derive(Debug, Clone)]
pub struct GraphBlock {
    pub(crate) path: String,
    /// The line of `[Processing]`.
    pub(crate) line: usize,
    pub(crate) eager_types: Option<Reading<Vec<String>>>,
    pub(crate) compiled_types: Option<Reading<Vec<String>>>,
    /// By key without brackets: `equal`, `all_close_…`, `max_diff`.
    pub(crate) correctness: BTreeMap<String, Reading<Vec<Number>>>,
    pub(crate) types_match: Option<Reading<bool>>,
    pub(crate) shapes_match: Option<Reading<bool>>,
    /// `[Result] status: success` or not.
    pub(crate) success: Option<Reading<bool>>,
    /// Median milliseconds, end to end.
    pub(crate) eager_median: Option<Reading<f64>>,
    pub(crate) compiled_median: Option<Reading<f64>>,
    /// The end-to-end speed-up, the one that scores.
    pub(crate) speedup: Option<Reading<f64>>,
    /// How many trials were asked for.
    pub(crate) trials: Option<usize>,
    /// End-to-end milliseconds in the order of the log: compiled first, then eager.
    pub(crate) trial_times: Vec<f64>,
    /// Known lines whose value cannot be read; only the first is kept.
    pub(crate) unreadable: Option<Mention>,
    /// An error text after the graph's own result: it belongs to something else.
    pub(crate) late_error: Option<Mention>,
    pub(super) flags: ReferenceFlags,
    phrases: Phrases,
}

/// More trials than anyone runs.
const MAX_TRIALS: usize = 1 << 20;
/// A log has 61 tolerance keys and three more; a forger may invent others.
const MAX_KEYS: usize = 128;

impl GraphBlock {
    pub(super) fn new(path: &str, line: usize) -> Self {
        GraphBlock {
            path: shortened_path(path),
            line,
            eager_types: None,
            compiled_types: None,
            correctness: BTreeMap::new(),
            types_match: None,
            shapes_match: None,
            success: None,
            eager_median: None,
            compiled_median: None,
            speedup: None,
            trials: None,
            trial_times: Vec::new(),
            unreadable: None,
            late_error: None,
            flags: ReferenceFlags::default(),
            phrases: Phrases::default(),
        }
    }

    pub(super) fn see(&mut self, number: usize, text: &str) {
        self.flags.see(text);
        if self.success.is_none() || text.contains("[Fail due to ") {
            self.phrases.see(number, text);
        } else if self.late_error.is_none()
            && (text.contains("Error:") || text.contains("Exception:"))
        {
            self.late_error = Some(Mention { line: number, text: shortened(text) });
        }
        self.read_flags(number, text);
        if let Some(time) = trial(text)
            && self.trial_times.len() < MAX_TRIALS
        {
            self.trial_times.push(time);
        }
        if let Some(line) = Line::parse(text)
            && self.read_line(number, line).is_none()
            && self.unreadable.is_none()
        {
            self.unreadable = Some(Mention { line: number, text: shortened(text) });
        }
    }

    fn read_flags(&mut self, number: usize, text: &str) {
        for (tag, slot) in
            [("[DataType]", &mut self.types_match), ("[Shape]", &mut self.shapes_match)]
        {
            if text.contains(tag) {
                if text.contains("match:True") {
                    read(slot, true, number);
                } else if text.contains("match:False") {
                    read(slot, false, number);
                }
            }
        }
        if let Some((_, status)) = text.split_once("[Result] status: ") {
            read(&mut self.success, status.trim() == "success", number);
        }
    }

    /// `None` if the value cannot be read.
    fn read_line(&mut self, number: usize, line: Line<'_>) -> Option<()> {
        match line {
            Line::Config { key: "trials", value } => self.trials = value.trim().parse().ok(),
            Line::Config { .. } => {}
            Line::Datatype { side, names } => {
                let names = names.into_iter().map(String::from).collect();
                match side {
                    "eager" => read(&mut self.eager_types, names, number),
                    "compiled" => read(&mut self.compiled_types, names, number),
                    _ => {}
                }
            }
            Line::Correctness { key, values } => {
                let values = numbers(values)?;
                if self.correctness.len() < MAX_KEYS || self.correctness.contains_key(key) {
                    let mut slot = self.correctness.remove(key);
                    read(&mut slot, values.into_iter().map(Number).collect(), number);
                    self.correctness.extend(slot.map(|reading| (key.to_string(), reading)));
                }
            }
            Line::Performance { side, json } => {
                let json: serde_json::Value = serde_json::from_str(json).ok()?;
                let median = json.get("e2e")?.get("median")?.as_f64()?;
                match side {
                    "eager" => read(&mut self.eager_median, median, number),
                    "compiled" => read(&mut self.compiled_median, median, number),
                    _ => {}
                }
            }
            Line::Speedup { clock: "e2e", value } => {
                let value: f64 = value.trim().parse().ok().filter(|v: &f64| !v.is_nan())?;
                read(&mut self.speedup, value, number);
            }
            Line::Speedup { .. } => {}
        }
        Some(())
    }

    /// The first line, up to the graph's own result, with a phrase.
    pub fn mention(&self, phrase: Phrase) -> Option<&Mention> {
        self.phrases.get(phrase)
    }

    pub(super) fn has_tolerance_lines(&self) -> bool {
        self.correctness.keys().any(|key| key.starts_with("all_close_"))
    }
}

/// Paths are shown and compared, so they keep their length within reason and lose what is not printable.
fn shortened_path(path: &str) -> String {
    path.chars().take(4096).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
