//! What machines that build software read: a score that must be reached, JUnit's XML, Markdown for a summary.

use super::show::{Shown, short_time};
use crate::error::CommandError;
use clap::Args;
use passnet_bench::report::printable;
use passnet_bench::run::GraphEvent;
use passnet_bench::tolerance::BASELINE;
use passnet_bench::verdict::VerdictKind;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Ci {
    /// Exit code 1 where AS is below this, besides where a graph is not correct
    #[arg(long, value_name = "AS", allow_negative_numbers = true)]
    fail_below: Option<f64>,

    /// Write the results as JUnit's XML: a suite for each task, a case for each graph
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Write the results as a page of Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

impl Ci {
    pub(super) fn check(&self) -> Result<(), CommandError> {
        match self.fail_below {
            Some(least) if !least.is_finite() => {
                Err(CommandError::input("`--fail-below` needs a number"))
            }
            _ => Ok(()),
        }
    }

    /// The score that is missed, and the one that was asked for.
    pub(super) fn missed(&self, shown: &Shown<'_>) -> Option<(f64, f64)> {
        let least = self.fail_below?;
        let reached = shown.score().map_or(0.0, |score| score.aggregated);
        (reached < least).then_some((reached, least))
    }

    /// Writes what is asked for; the files that are there now.
    pub(super) fn write(&self, shown: &Shown<'_>) -> Result<Vec<PathBuf>, CommandError> {
        let mut written = Vec::new();
        let mut write = |path: &Path, text: String| {
            std::fs::write(path, text)
                .map_err(|error| CommandError::input(format!("{}: {error}", path.display())))?;
            written.push(path.to_path_buf());
            Ok::<(), CommandError>(())
        };
        if let Some(path) = &self.junit {
            write(path, self.junit(shown))?;
        }
        if let Some(path) = &self.markdown {
            write(path, self.markdown(shown))?;
        }
        Ok(written)
    }

    fn junit(&self, shown: &Shown<'_>) -> String {
        let mut text = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"passnet bench\">\n",
        );
        for (task, events) in shown.tasks() {
            let lost: Vec<_> =
                shown.judged.not_judged.iter().filter(|lost| lost.sample == task).collect();
            let failed = events.iter().filter(|event| failure(event).is_some()).count();
            let _ = writeln!(
                text,
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\" errors=\"{}\">",
                xml(task),
                events.len() + lost.len(),
                lost.len()
            );
            for event in events {
                junit_case(event, task, &mut text);
            }
            for lost in lost {
                let _ = writeln!(
                    text,
                    "    <testcase classname=\"{}\" name=\"{}\"><error message=\"not judged: {}\"/></testcase>",
                    xml(task),
                    xml(&lost.graph),
                    xml(&lost.reason)
                );
            }
            text.push_str("  </testsuite>\n");
        }
        if let Some(least) = self.fail_below {
            let missed = self.missed(shown);
            let _ = writeln!(
                text,
                "  <testsuite name=\"score\" tests=\"1\" failures=\"{}\" errors=\"0\">\n    <testcase classname=\"score\" name=\"AS is at least {least}\">{}</testcase>\n  </testsuite>",
                usize::from(missed.is_some()),
                missed.map_or(String::new(), |(reached, _)| format!(
                    "<failure message=\"AS is {reached:.4}\"/>"
                ))
            );
        }
        text.push_str("</testsuites>\n");
        text
    }

    fn markdown(&self, shown: &Shown<'_>) -> String {
        let mut text = String::from("## passnet bench\n\n");
        if let Some(score) = shown.score() {
            let summary = &score.summary;
            let verdict = match self.missed(shown) {
                Some((_, least)) => format!(" (below the {least} asked for)"),
                None => String::new(),
            };
            let _ = writeln!(
                text,
                "**AS {:.4}**{verdict}: {} of {} graphs correct at t = {BASELINE}{}. 1 is as fast as eager.\n",
                score.aggregated,
                summary.correct,
                summary.graphs,
                summary
                    .geometric_mean
                    .map_or(String::new(), |mean| format!(", {mean:.3} times as fast as eager"))
            );
        }
        let _ = writeln!(text, "{}\n", cell(&shown.identity.describe()));
        text.push_str("| task | graph | verdict | speed-up | eager | candidate |\n|---|---|---|--:|--:|--:|\n");
        for (task, events) in shown.tasks() {
            for event in events {
                let judged = &event.evaluation.judged;
                let _ = writeln!(
                    text,
                    "| {} | {} | {} | {} | {} | {} |",
                    cell(task),
                    cell(&judged.graph),
                    cell(&judged.verdict.to_string()),
                    judged.speedup.map_or("-".into(), |speedup| format!("{speedup:.3}")),
                    short_time(passnet_bench::stats::median(&event.evaluation.eager_ms)),
                    short_time(passnet_bench::stats::median(&event.evaluation.candidate_ms)),
                );
            }
        }
        for lost in &shown.judged.not_judged {
            let _ = writeln!(
                text,
                "| {} | {} | not judged: {} | - | - | - |",
                cell(&lost.sample),
                cell(&lost.graph),
                cell(&lost.reason)
            );
        }
        text
    }
}

fn junit_case(event: &GraphEvent, task: &str, text: &mut String) {
    let evaluation = &event.evaluation;
    let _ = write!(
        text,
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\">",
        xml(task),
        xml(&evaluation.judged.graph),
        evaluation.seconds
    );
    if let Some(words) = failure(event) {
        let kind = evaluation.judged.verdict.kind;
        let _ = write!(text, "<failure type=\"{kind}\" message=\"{}\"/>", xml(&words));
    } else if let Some(speedup) = evaluation.judged.speedup {
        let _ = write!(text, "<system-out>speed-up {speedup:.4}</system-out>");
    }
    text.push_str("</testcase>\n");
}

fn failure(event: &GraphEvent) -> Option<String> {
    let verdict = &event.evaluation.judged.verdict;
    (verdict.kind != VerdictKind::Correct).then(|| verdict.to_string())
}

/// Text inside XML: markup escaped, and what XML cannot hold replaced.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Text inside a cell of Markdown: one line, no markup.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        if matches!(c, '|' | '<' | '>' | '*' | '_' | '`' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_text() {
        assert_eq!(xml("a<b> & \"c\"\u{1}\n"), "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}&#10;");
        assert_eq!(cell("a|b `c` <i>"), "a\\|b \\`c\\` \\<i\\>");
        assert!(!cell("one\ntwo").contains('\n'));
    }
}
