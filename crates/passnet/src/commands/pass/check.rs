//! `passnet pass check`

use super::counted;
use super::prepare::require_some;
use crate::error::{CommandError, Outcome, render_diagnostic};
use crate::output::Output;
use clap::Args;
use passnet_graph::Diagnostic;
use passnet_pass::load::{Bindings, LoadOptions, PassSet, Program, load};
use passnet_pass::rules::{self, Example, Finding, RULES, Severity};
use passnet_pass::trace::{Dialect, trace};
use serde_json::json;
use std::path::PathBuf;

/// Of a source line that a finding is about.
const SHOWN_COLUMNS: usize = 110;

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Pass folders or pass files
    #[arg(required_unless_present = "rules", value_name = "PASS")]
    passes: Vec<PathBuf>,

    /// Explain the integrity rules instead
    #[arg(long)]
    rules: bool,
}

pub fn run(args: CheckArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    if args.rules {
        list_rules(output)?;
        output.flush()?;
        return Ok(Outcome::Done);
    }
    let options = LoadOptions::default();
    let sets: Vec<PassSet> = args.passes.iter().map(|path| load(path, &options)).collect();
    if sets.iter().all(|set| set.errors.is_empty()) {
        require_some(&sets)?;
    }
    let (mut passes, mut failed) = (0_usize, 0_usize);
    for set in &sets {
        for error in &set.errors {
            failed += 1;
            let errors = std::slice::from_ref(error);
            show(output, &set.program, &error.file, errors, &[], &[])?;
        }
        let bindings = Bindings::of(&set.program);
        for file in &set.passes {
            passes += 1;
            let (traced, errors) = match trace(&set.program, &bindings, file, Dialect::Plain) {
                Ok(pass) => (Some(pass), Vec::new()),
                Err(errors) => (None, errors),
            };
            let findings = rules::check(&set.program, &bindings, file, traced.as_ref());
            let warnings = traced.map(|pass| pass.warnings).unwrap_or_default();
            let refused = findings.iter().any(|finding| finding.severity == Severity::Refuse);
            failed += usize::from(refused || !errors.is_empty());
            show(output, &set.program, &file.name, &errors, &warnings, &findings)?;
        }
    }
    if !output.is_json() {
        output.line(format!("{} checked, {failed} failed", counted(passes, "pass", "passes")))?;
    }
    output.flush()?;
    Ok(Outcome::failed_if(failed > 0))
}

fn show(
    output: &mut Output,
    program: &Program,
    pass: &str,
    errors: &[Diagnostic],
    warnings: &[Diagnostic],
    findings: &[Finding],
) -> Result<(), CommandError> {
    let refused = findings.iter().any(|finding| finding.severity == Severity::Refuse);
    let ok = errors.is_empty() && !refused;
    if output.is_json() {
        return output.json(&json!({
            "pass": pass,
            "ok": ok,
            "errors": errors,
            "warnings": warnings,
            "findings": findings,
        }));
    }
    for error in errors {
        output.line(render_diagnostic(error))?;
    }
    for finding in findings {
        let Finding { rule, file, line, column, message, .. } = finding;
        let severity = severity_name(finding.severity);
        let place = format!(" --> {file}:{line}:{column}");
        output.line(format!("{severity}: {message} [{rule}]\n{place}"))?;
        let source = program.ids().map(|id| &program.module(id).source);
        if let Some(source) = source.into_iter().find(|source| source.path() == file) {
            let text: String = source.line_text(*line).trim().chars().take(SHOWN_COLUMNS).collect();
            output.line(format!("  | {text}"))?;
        }
    }
    for warning in warnings {
        output.line(format!("warning: {warning}"))?;
    }
    output.line(format!("{}: {pass}", if ok { "ok" } else { "failed" }))
}

fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warn => "warning",
        Severity::Refuse => "refused",
    }
}

/// What is special about an example: its own lines, or the first ones of a whole file.
fn excerpt(example: &Example) -> String {
    match example {
        Example::Lines { top, body } => {
            let lines = top.lines().chain(body.lines());
            lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n          ")
        }
        Example::File(text) => text.trim_end().replace('\n', "\n          "),
    }
}

fn list_rules(output: &mut Output) -> Result<(), CommandError> {
    for rule in RULES {
        if output.is_json() {
            output.json(&json!({
                "rule": rule.id,
                "severity": rule.severity,
                "what": rule.what,
                "why": rule.why,
                "limits": rule.limits,
                "instead": rule.instead,
                "example": rule.example.text(),
                "honest": rule.honest.text(),
            }))?;
            continue;
        }
        output.line(format!("{} ({})", rule.id, severity_name(rule.severity)))?;
        output.line(format!("  what    {}", rule.what))?;
        output.line(format!("  why     {}", rule.why))?;
        output.line(format!("  limits  {}", rule.limits))?;
        output.line(format!("  instead {}", rule.instead))?;
        output.line(format!("  trips   {}", excerpt(&rule.example)))?;
        output.line(format!("  fine    {}\n", excerpt(&rule.honest)))?;
    }
    Ok(())
}
