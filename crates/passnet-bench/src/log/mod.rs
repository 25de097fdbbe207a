//! Reading, judging and writing the reference's `validation.log`.
//!
//! The log is all the reference knows: it merges the output of the harness with that of the code under test and
//! scores what it finds in the text. `parse` reads it once; `reference` sees in it what the reference sees, bugs
//! included; `strict` finds out what really happened and what cannot be believed; `judge` sets the two side by side.
//! A log cannot prove itself: lines forged consistently and in full look like any other. Only a run whose harness
//! never shared a process with the pass can be trusted, which is what `passnet bench` is for.

mod block;
mod difference;
mod flags;
mod graph_list;
mod judge;
mod line;
mod reference;
mod strict;
mod write;

pub use block::{GraphBlock, Mention, Phrase, Reading};
pub use difference::{Difference, DifferenceKind, Finding};
pub use graph_list::GraphList;
pub(crate) use judge::differ;
pub use judge::{LogReport, LoggedGraph, judge};
pub use reference::{reference_ladder, reference_scored};
pub use write::{
    FailureCause, GpuTimings, GraphEntry, LogWriter, OutputLines, RunConfig, Timings,
    WrittenResult, aggregated_score_json, aggregation_text,
};

use block::Phrases;
use line::{Lines, processing_path};
use passnet_graph::Diagnostic;

/// A log larger than this is refused: 400 graphs with all their trials take eight megabytes.
pub const MAX_LOG_BYTES: usize = 256 << 20;
/// More graphs than any benchmark has.
pub const MAX_GRAPHS: usize = 100_000;

/// A log, cut into graphs.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// In the order of the file.
    pub blocks: Vec<GraphBlock>,
    /// Phrases anywhere in the log, including before the first graph, where load errors stand.
    phrases: Phrases,
    /// Lines that were not UTF-8 (the reference would stop here).
    pub damaged_lines: usize,
    /// Lines that were too long to be read to the end.
    pub overlong_lines: usize,
}

impl Log {
    /// Reads a log. Damaged text is read as far as it goes; only sheer size is an error.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, Diagnostic> {
        if bytes.len() > MAX_LOG_BYTES {
            let text = format!("the log has {} bytes, more than {MAX_LOG_BYTES}", bytes.len());
            return Err(Diagnostic::file(name, text).with_hint("score its parts one by one"));
        }
        let mut log = Log::default();
        for line in Lines::new(bytes) {
            log.damaged_lines += usize::from(line.is_damaged);
            log.overlong_lines += usize::from(line.is_cut);
            log.phrases.see(line.number, &line.text);
            if line.text.contains("[Processing]") {
                if log.blocks.len() == MAX_GRAPHS {
                    let text = format!("the log has more than {MAX_GRAPHS} graphs");
                    return Err(Diagnostic::file(name, text));
                }
                let path = processing_path(&line.text).unwrap_or_default();
                log.blocks.push(GraphBlock::new(path, line.number));
            } else if let Some(block) = log.blocks.last_mut() {
                block.see(line.number, &line.text);
            }
        }
        Ok(log)
    }

    /// The first line with a phrase, wherever it stands.
    pub fn mention(&self, phrase: Phrase) -> Option<&Mention> {
        self.phrases.get(phrase)
    }
}
