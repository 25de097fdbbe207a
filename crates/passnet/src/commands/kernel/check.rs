//! `passnet kernel check`

use super::Inputs;
use super::case::Case;
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Args;
use passnet_kernel::check::{Finding, Severity, check, proved_in_bounds};
use serde_json::json;

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    inputs: Inputs,

    /// Compare with the rules that each file expects (`# expect: out-of-bounds`) and count what is missed or too many
    #[arg(long)]
    self_check: bool,
}

/// How the findings compare with what the files expect.
#[derive(Default)]
struct Tally {
    files: usize,
    expected: usize,
    false_negatives: Vec<String>,
    false_positives: Vec<String>,
}

impl Tally {
    fn add(&mut self, case: &Case, findings: &[Finding]) {
        let expect = &case.fixture.header.expect;
        self.files += 1;
        self.expected += expect.len();
        let missed = expect.iter().filter(|rule| findings.iter().all(|f| f.rule != rule.as_str()));
        self.false_negatives.extend(missed.map(|rule| format!("{}: {rule}", case.pass)));
        // A file that expects nothing may still earn remarks.
        let counts = |f: &&Finding| !expect.is_empty() || f.severity > Severity::Note;
        let extra = findings.iter().filter(counts).filter(|f| expect.iter().all(|e| e != f.rule));
        self.false_positives.extend(extra.map(|f| format!("{}:{}: {}", case.pass, f.line, f.rule)));
    }

    fn show(&self, out: &mut Output) -> Result<(), CommandError> {
        if out.is_json() {
            return out.json(&json!({
                "files": self.files,
                "expected": self.expected,
                "false_negatives": self.false_negatives,
                "false_positives": self.false_positives,
            }));
        }
        for (kind, list) in [("missed", &self.false_negatives), ("too many", &self.false_positives)]
        {
            for text in list {
                out.line(format!("{kind}: {text}"))?;
            }
        }
        out.line(format!(
            "{} files, {} findings expected: {} false negatives, {} false positives",
            self.files,
            self.expected,
            self.false_negatives.len(),
            self.false_positives.len()
        ))
    }
}

pub fn run(args: &CheckArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let cases = args.inputs.cases()?;
    let mut failed = cases.failed;
    let mut tally = Tally::default();
    for case in &cases.cases {
        let fixture = &case.fixture;
        let prepared = fixture.prepare()?;
        let mut buffers = fixture.buffers(&prepared);
        let findings = check(
            &fixture.modules,
            &fixture.wrapper()?,
            &fixture.header.host_args(),
            &prepared,
            buffers.iter_mut().map(Vec::as_mut_slice).collect(),
        );
        if args.self_check {
            tally.add(case, &findings);
            continue;
        }
        let proved =
            prepared.launches().all(|(launch, f)| proved_in_bounds(&fixture.plan, launch, f));
        failed |= findings.iter().any(|f| f.severity == Severity::Error);
        if out.is_json() {
            let mut value = case.json();
            value["findings"] = json!(findings);
            value["bounds_proved"] = proved.into();
            value["parallel"] = prepared.parallel().into();
            out.json(&value)?;
        } else {
            show(case, &findings, proved, out)?;
        }
    }
    if args.self_check {
        failed |= !tally.false_negatives.is_empty() || !tally.false_positives.is_empty();
        tally.show(out)?;
    }
    out.flush()?;
    Ok(Outcome::failed_if(failed))
}

fn show(
    case: &Case,
    findings: &[Finding],
    proved: bool,
    out: &mut Output,
) -> Result<(), CommandError> {
    let how = if proved { "all accesses proved in bounds" } else { "bounds checked by running" };
    let count = match findings.len() {
        1 => "1 finding".to_string(),
        n => format!("{n} findings"),
    };
    out.line(format!("{}: {count}; {how}", case.title()))?;
    for f in findings {
        let proof = if f.proved { "proved" } else { "observed" };
        let severity = format!("{:?}", f.severity).to_lowercase();
        out.line(format!(
            "  {severity} [{}] {}:{}: {} ({proof})",
            f.rule, f.file, f.line, f.message
        ))?;
    }
    Ok(())
}
