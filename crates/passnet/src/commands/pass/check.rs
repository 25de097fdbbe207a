//! `passnet pass check`

use super::prepare::require_some;
use crate::error::{CommandError, Outcome, render_diagnostic};
use crate::output::Output;
use clap::Args;
use passnet_graph::Diagnostic;
use passnet_pass::load::{Bindings, LoadOptions, PassSet, load};
use passnet_pass::rules::{self, Finding, RULES, Severity};
use passnet_pass::trace::{Dialect, trace};
use serde_json::json;
use std::path::PathBuf;

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
            show(output, &error.file, std::slice::from_ref(error), &[], &[])?;
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
            show(output, &file.name, &errors, &warnings, &findings)?;
        }
    }
    if !output.is_json() {
        output.line(format!("{passes} passes checked, {failed} failed"))?;
    }
    output.flush()?;
    Ok(Outcome::failed_if(failed > 0))
}

fn show(
    output: &mut Output,
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
        output.line(format!("{severity}: {message} [{rule}]\n --> {file}:{line}:{column}"))?;
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

fn list_rules(output: &mut Output) -> Result<(), CommandError> {
    for rule in RULES {
        if output.is_json() {
            output.json(&json!({
                "rule": rule.id,
                "severity": rule.severity,
                "what": rule.what,
                "why": rule.why,
                "limits": rule.limits,
                "example": rule.example.text(),
                "honest": rule.honest.text(),
            }))?;
            continue;
        }
        output.line(format!("{} ({})", rule.id, severity_name(rule.severity)))?;
        output.line(format!("  what    {}", rule.what))?;
        output.line(format!("  why     {}", rule.why))?;
        output.line(format!("  limits  {}\n", rule.limits))?;
    }
    Ok(())
}
