//! Integrity rules: what a pass must not do, as far as its text shows.
//!
//! The first defence is structural (a pass is read, never run), so a rule's job is to tell the author early
//! and clearly. One rule per file, each with what it looks for, why, an example that trips it and an honest
//! look-alike that does not; a test holds the rules to both. Rules see every file a pass can reach; code that
//! nothing reaches is only noted.

mod context;
mod facts;
mod names;

mod blocked_import;
mod cached_state;
mod class_hook;
mod clock;
mod data_dependent;
mod decoy_kernel;
mod dynamic_access;
mod embedded_data;
mod fallback;
mod forbidden_module;
mod framework_call;
mod import_time_work;
mod inline_code;
mod input_returned;
mod lazy_result;
mod low_precision;
mod monkey_patch;
mod no_kernel;
mod output_write;
mod pointer_identity;
mod replacement_args_compute;
mod shadowed_module;
mod shape_special_case;
mod star_import;
mod tensor_method;
mod tensor_operator;
mod unwritten_output;

pub use context::{Context, Role, Unit};

use crate::load::{Bindings, ModuleId, PassFile, Program};
use crate::trace::Pass;
use passnet_graph::syntax::TextRange;
use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Suspicious, but honest passes do it.
    Warn,
    /// The pass is not evaluated.
    Refuse,
}

/// A rule that was broken, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// Whether the pass is refused for it.
    pub severity: Severity,
    /// The path as messages give it.
    pub file: String,
    /// Counted from one.
    pub line: usize,
    /// Counted from one, in characters.
    pub column: usize,
    /// What is wrong, in one sentence.
    pub message: String,
}

/// A rule, with its documentation.
#[derive(Debug)]
pub struct Rule {
    /// The name that reports use.
    pub id: &'static str,
    /// Whether a pass is refused for it.
    pub severity: Severity,
    /// What it looks for.
    pub what: &'static str,
    /// Why that is a problem.
    pub why: &'static str,
    /// What it may report wrongly, or not at all.
    pub limits: &'static str,
    /// What to write instead.
    pub instead: &'static str,
    /// Text that trips it.
    pub example: Example,
    /// Similar text that is fine.
    pub honest: Example,
    check: fn(&Context<'_>, &mut Report<'_>),
}

/// A pass in an example.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "fields are what the sentence of their variant names")]
pub enum Example {
    /// Lines for the top of the file and for the wrapper's body, in an otherwise honest pass.
    Lines { top: &'static str, body: &'static str },
    /// A whole file.
    File(&'static str),
}

/// All rules, in alphabetical order.
pub const RULES: &[&Rule] = &[
    &blocked_import::RULE,
    &cached_state::RULE,
    &class_hook::RULE,
    &clock::RULE,
    &data_dependent::RULE,
    &decoy_kernel::RULE,
    &dynamic_access::RULE,
    &embedded_data::RULE,
    &fallback::RULE,
    &forbidden_module::RULE,
    &framework_call::RULE,
    &import_time_work::RULE,
    &inline_code::RULE,
    &input_returned::RULE,
    &lazy_result::RULE,
    &low_precision::RULE,
    &monkey_patch::RULE,
    &no_kernel::RULE,
    &output_write::RULE,
    &pointer_identity::RULE,
    &replacement_args_compute::RULE,
    &shadowed_module::RULE,
    &shape_special_case::RULE,
    &star_import::RULE,
    &tensor_method::RULE,
    &tensor_operator::RULE,
    &unwritten_output::RULE,
];

/// Where a rule puts what it finds.
pub(crate) struct Report<'a> {
    rule: &'static Rule,
    program: &'a Program,
    findings: Vec<Finding>,
}

impl Report<'_> {
    fn at(&mut self, module: ModuleId, range: TextRange, severity: Severity, message: String) {
        let source = &self.program.module(module).source;
        let (line, column) = source.position(range.start().to_usize());
        // A note asks for nothing.
        let message = match severity {
            Severity::Note => message,
            Severity::Warn | Severity::Refuse => format!("{message}; {}", self.rule.instead),
        };
        self.findings.push(Finding {
            rule: self.rule.id,
            severity,
            file: source.path().to_string(),
            line,
            column,
            message,
        });
    }

    /// Reports code of a unit with the rule's own severity; unreached code is only noted.
    fn unit(&mut self, unit: &Unit<'_>, range: TextRange, message: impl Into<String>) {
        self.unit_as(unit, range, self.rule.severity, message);
    }

    fn unit_as(
        &mut self,
        unit: &Unit<'_>,
        range: TextRange,
        severity: Severity,
        message: impl Into<String>,
    ) {
        let severity = if unit.role == Role::Unreached { Severity::Note } else { severity };
        self.at(unit.module, range, severity, message.into());
    }
}

/// Checks one pass with every rule. `traced` is the pass's trace, where it has one.
pub fn check(
    program: &Program,
    bindings: &Bindings<'_>,
    file: &PassFile,
    traced: Option<&Pass>,
) -> Vec<Finding> {
    let context = Context::new(program, bindings, file, traced);
    let mut findings = Vec::new();
    for rule in RULES {
        let mut report = Report { rule, program, findings: Vec::new() };
        (rule.check)(&context, &mut report);
        findings.extend(report.findings);
    }
    findings.sort_by(|a, b| {
        (&a.file, a.line, a.column, a.rule, &a.message)
            .cmp(&(&b.file, b.line, b.column, b.rule, &b.message))
    });
    findings.dedup();
    findings
}

impl Example {
    /// The example as a pass file.
    pub fn text(&self) -> String {
        match self {
            Example::File(text) => (*text).to_string(),
            Example::Lines { top, body } => {
                let body = body.replace('\n', "\n    ");
                format!(
                    "import torch\nimport triton\nimport triton.language as tl\n{top}\n\n\
                     @triton.jit\n\
                     def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n    \
                     offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
                     mask = offsets < n\n    \
                     x = tl.load(x_ptr + offsets, mask=mask)\n    \
                     tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=mask)\n\n\
                     @torch.fx.wrap\n\
                     def wrapper(x):\n    \
                     out = torch.empty_like(x)\n    \
                     n = x.numel()\n    \
                     {body}\n    \
                     kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)\n    \
                     return out\n\n\
                     def pattern(x):\n    return torch.relu(x)\n\n\
                     def replacement_args(x):\n    return (x,)\n\n\
                     def replacement_func():\n    return wrapper\n"
                )
            }
        }
    }
}
