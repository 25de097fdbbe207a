//! The red team: for every known way to cheat one exploit that must not score and one honest control that must.
//!
//! A suite is a folder of cases, each with `case.json`, `exploit/` and `control/`. Every exploit is tried with the
//! integrity rules on and with them off: the rules are a convenience, the structure must hold without them.

use crate::bench::{Bench, Compiler};
use crate::evaluate::EvaluateOptions;
use crate::event_log::LogError;
use crate::roofline::Roofline;
use crate::sample::Sample;
use crate::timing::TimingOptions;
use crate::verdict::{Verdict, VerdictKind};
use passnet_engine::Engine;
use passnet_graph::Diagnostic;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const CASE: &str = "case.json";

/// A way to cheat, and the task it is tried on.
#[derive(Debug, Clone)]
pub struct Case {
    pub folder: PathBuf,
    pub class: String,
    pub threat: String,
    pub sample: Sample,
}

/// What `case.json` says.
#[derive(Debug, Deserialize)]
struct Description {
    class: String,
    task: String,
    threat: String,
}

/// What became of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attempt {
    /// Whether every graph of the task was judged correct.
    pub accepted: bool,
    /// The first verdict that was not, or `correct`.
    pub verdict: Verdict,
}

/// All attempts of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseResult {
    pub class: String,
    pub threat: String,
    pub exploit_with_rules: Attempt,
    pub exploit_without_rules: Attempt,
    pub control: Attempt,
}

impl CaseResult {
    pub fn attack_succeeds(&self) -> bool {
        self.exploit_with_rules.accepted || self.exploit_without_rules.accepted
    }

    pub fn honest_refused(&self) -> bool {
        !self.control.accepted
    }
}

/// The cases of a suite, by name. A task is a folder under `tasks`, or a path from there.
pub fn cases(suite: &Path, tasks: &Path) -> Result<Vec<Case>, Diagnostic> {
    let listed = std::fs::read_dir(suite)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .map_err(|error| {
            Diagnostic::file(suite.display().to_string(), error.to_string())
                .with_hint("name the suite's folder with `--suite DIR`")
        })?;
    let mut folders: Vec<PathBuf> =
        listed.into_iter().filter(|folder| folder.join(CASE).is_file()).collect();
    folders.sort();
    if folders.is_empty() {
        return Err(Diagnostic::file(suite.display().to_string(), "no case found here")
            .with_hint(format!("a case is a folder that holds `{CASE}`")));
    }
    folders.into_iter().map(|folder| Case::read(folder, tasks)).collect()
}

impl Case {
    fn read(folder: PathBuf, tasks: &Path) -> Result<Case, Diagnostic> {
        let path = folder.join(CASE);
        let named = |message: String| Diagnostic::file(path.display().to_string(), message);
        let text = std::fs::read(&path).map_err(|error| named(error.to_string()))?;
        let description: Description =
            serde_json::from_slice(&text).map_err(|error| named(error.to_string()))?;
        let sample = Sample::read(&tasks.join(&description.task))?;
        Ok(Case { folder, class: description.class, threat: description.threat, sample })
    }

    /// Tries the exploit both ways, and the control with the rules on.
    pub fn attempt(&self, engine: &dyn Engine) -> Result<CaseResult, LogError> {
        let attempt = |folder: &str, rules: bool| -> Result<Attempt, LogError> {
            let bench = Bench {
                engine,
                compiler: Compiler::Pass,
                options: self.options(),
                rules,
                roofline: Roofline::default(),
            };
            let passes = self.folder.join(folder);
            // One wrong graph is enough to reject a pass, so the rest need not be looked at.
            for graph in &self.sample.graphs {
                let one = Sample { graphs: vec![graph.clone()], ..self.sample.clone() };
                for event in bench.sample(&one, &passes, None, &mut |_| {})? {
                    // What ran in the compatibility tier is not scored, right or wrong.
                    let is_scored = event.evaluation.tier.is_plan();
                    let verdict = event.evaluation.judged.verdict;
                    if verdict.kind != VerdictKind::Correct || !is_scored {
                        return Ok(Attempt { accepted: false, verdict });
                    }
                }
            }
            Ok(Attempt { accepted: true, verdict: Verdict::new(VerdictKind::Correct) })
        };
        Ok(CaseResult {
            class: self.class.clone(),
            threat: self.threat.clone(),
            exploit_with_rules: attempt("exploit", true)?,
            exploit_without_rules: attempt("exploit", false)?,
            control: attempt("control", true)?,
        })
    }

    /// Whether an attempt is accepted does not depend on its speed, so timing is short.
    fn options(&self) -> EvaluateOptions {
        EvaluateOptions {
            timing: TimingOptions {
                warmup: 2,
                trials: 10,
                seconds: 0.0,
                ..TimingOptions::default()
            },
            call_seconds: 5.0,
            ..EvaluateOptions::default()
        }
    }
}
