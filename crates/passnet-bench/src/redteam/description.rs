//! What `case.json` says, and the page made of all of them.

use super::{CASE, Layer, case_folders};
use crate::tolerance::{HIGHEST, LOWEST};
use crate::verdict::{Evidence, Verdict, VerdictKind};
use passnet_graph::Diagnostic;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// A case, as its author describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub(super) class: String,
    /// A folder under the tasks, or a path from there.
    pub(super) task: String,
    /// The graphs on which it cheats; all of them where none is named.
    #[serde(default)]
    pub(super) graphs: Vec<String>,
    /// What is tried.
    pub(super) threat: String,
    /// By what it tells that it is being checked, or what it needs to find; honest otherwise.
    #[serde(default)]
    pub(super) adaptive: Option<String>,
    /// The level from which on the exploit is honestly as near to eager as the tolerance asks.
    #[serde(default)]
    pub(super) honest_from: Option<i32>,
    /// The integrity rules that refuse it, all of them; none where the rules have nothing to say.
    #[serde(default)]
    pub(super) refused_by: BTreeSet<String>,
    /// What stops it where no rule does.
    pub(super) stopped_by: Expectation,
}

/// What must stop an exploit.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// One of these.
    pub layer: Vec<Layer>,
    /// With one of these verdicts, where it matters.
    #[serde(default)]
    pub verdict: Vec<VerdictKind>,
    /// The verdict's evidence holds one of these phrases.
    #[serde(default)]
    pub says: Vec<String>,
    /// The evidence names all these rules.
    #[serde(skip)]
    pub rules: BTreeSet<String>,
    /// In words.
    pub why: String,
}

impl Description {
    pub(super) fn read(path: &Path) -> Result<Description, Diagnostic> {
        let named = |message: String| Diagnostic::file(path.display().to_string(), message);
        let text = std::fs::read(path).map_err(|error| named(error.to_string()))?;
        let description: Description =
            serde_json::from_slice(&text).map_err(|error| Diagnostic {
                line: error.line(),
                column: error.column().max(1),
                ..named(error.to_string())
            })?;
        if description.stopped_by.layer.is_empty() {
            return Err(named("`stopped_by` names no layer".into())
                .with_hint("name the layers that may stop the exploit"));
        }
        if description.honest_from.is_some_and(|level| !(LOWEST..=HIGHEST).contains(&level)) {
            return Err(named(format!("`honest_from` is no level from {LOWEST} to {HIGHEST}")));
        }
        Ok(description)
    }

    /// What must stop it with the rules on.
    pub(super) fn with_rules(&self) -> Expectation {
        match self.refused_by.is_empty() {
            true => self.stopped_by.clone(),
            false => Expectation {
                layer: vec![Layer::Rules],
                verdict: vec![VerdictKind::Integrity],
                rules: self.refused_by.clone(),
                ..Expectation::default()
            },
        }
    }
}

impl Expectation {
    /// Why a verdict is not the one expected; `None` where it is.
    pub fn objection(&self, verdict: &Verdict) -> Option<String> {
        let found = Layer::of(verdict);
        let expected = join(self.layer.iter().map(|layer| layer.name()), " or ");
        let Some(found) = found.filter(|found| self.layer.contains(found)) else {
            let by = found.map_or("by no layer".into(), |layer| format!("by `{layer}`"));
            return Some(format!("stopped {by}, not by `{expected}`: {verdict}"));
        };
        if !self.verdict.is_empty() && !self.verdict.contains(&verdict.kind) {
            let expected = join(self.verdict.iter().map(|kind| kind.name()), " or ");
            return Some(format!("`{found}` says {}, not {expected}: {verdict}", verdict.kind));
        }
        let text = verdict.to_string();
        if !self.says.is_empty() && !self.says.iter().any(|phrase| text.contains(phrase)) {
            let phrases = join(self.says.iter().map(|phrase| phrase.as_str()), "\", \"");
            return Some(format!("`{found}` says none of \"{phrases}\": {verdict}"));
        }
        let named: BTreeSet<&str> = verdict.evidence.iter().filter_map(rule_of).collect();
        let silent = self.rules.iter().find(|rule| !named.contains(rule.as_str()));
        silent.map(|rule| format!("the rule `{rule}` says nothing: {verdict}"))
    }
}

fn rule_of(evidence: &Evidence) -> Option<&str> {
    match evidence {
        Evidence::Rule { rule, .. } => Some(rule),
        _ => None,
    }
}

fn join<'a>(words: impl Iterator<Item = &'a str>, between: &str) -> String {
    words.collect::<Vec<_>>().join(between)
}

/// The tables of a suite's page: what the layers are, and every case in a row.
pub fn markdown(suite: &Path) -> Result<String, Diagnostic> {
    let read = |folder: &std::path::PathBuf| Description::read(&folder.join(CASE));
    let cases: Vec<Description> =
        case_folders(suite)?.iter().map(read).collect::<Result<_, _>>()?;
    let adaptive = cases.iter().filter(|case| case.adaptive.is_some()).count();
    let mut text = String::from("| layer | what it does |\n|---|---|\n");
    for layer in Layer::ALL {
        text.push_str(&format!("| `{layer}` | {} |\n", layer.about()));
    }
    text.push_str(&format!("\n{} exploits, {adaptive} of them adaptive.\n", cases.len()));
    text.push_str(
        "\n| class | task | what it tries | honest where | rules | layer | stopped because |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|\n");
    for case in &cases {
        let layers = join(case.stopped_by.layer.iter().map(|layer| layer.name()), ", ");
        let task = case.task.trim_start_matches("../");
        text.push_str(&format!(
            "| `{}` | {task} | {} | {} | {} | {layers} | {} |\n",
            case.class,
            case.threat,
            case.adaptive.as_deref().unwrap_or_default(),
            join(case.refused_by.iter().map(String::as_str), ", "),
            case.stopped_by.why,
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(json: &str) -> Expectation {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn only_the_layer_the_verdict_and_the_words_that_were_named_count_as_stopped() {
        let wrong = Verdict::new(VerdictKind::Accuracy).because("with extreme values");
        let accepts = |json: &str| expectation(json).objection(&wrong).is_none();
        assert!(accepts(r#"{"layer": ["verify"], "why": ""}"#));
        assert!(accepts(r#"{"layer": ["check", "verify"], "why": ""}"#));
        assert!(!accepts(r#"{"layer": ["check"], "why": ""}"#));
        assert!(accepts(r#"{"layer": ["verify"], "verdict": ["accuracy"], "why": ""}"#));
        assert!(!accepts(r#"{"layer": ["verify"], "verdict": ["unstable"], "why": ""}"#));
        assert!(accepts(r#"{"layer": ["verify"], "says": ["sizes", "extreme"], "why": ""}"#));
        assert!(!accepts(r#"{"layer": ["verify"], "says": ["sizes"], "why": ""}"#));
    }

    #[test]
    fn what_nobody_judged_was_not_stopped() {
        let any = expectation(r#"{"layer": ["verify", "plan", "run"], "why": ""}"#);
        for kind in [VerdictKind::Unsupported, VerdictKind::ReferenceFail, VerdictKind::Correct] {
            assert!(any.objection(&Verdict::new(kind)).is_some(), "{kind}");
        }
    }

    #[test]
    fn all_named_rules_must_speak() {
        let rule = |rule: &str| Evidence::Rule {
            rule: rule.into(),
            file: "a.py".into(),
            line: 1,
            message: "no".into(),
        };
        let refused = Verdict::new(VerdictKind::Integrity).with(rule("clock"));
        let mut expected = expectation(r#"{"layer": ["rules"], "why": ""}"#);
        expected.rules = BTreeSet::from(["clock".into()]);
        assert_eq!(expected.objection(&refused), None);
        expected.rules.insert("no-kernel".into());
        assert!(expected.objection(&refused).unwrap().contains("no-kernel"));
    }
}
