//! The red team: for every known way to cheat one exploit that must not score and one honest control that must.
//!
//! A suite is a folder of cases, each with `case.json`, `exploit/` and `control/`. Every exploit is tried with the
//! integrity rules on and with them off: the rules are a convenience, the structure must hold without them.
//!
//! An exploit counts as stopped where the layer that its case names stops it. Not scoring for another reason (an
//! operation that is not supported, a kernel that does not compile) proves nothing about the layer, so it fails the
//! suite as a score does.

mod description;
mod layer;

pub use description::{Expectation, markdown};
pub use layer::Layer;

use crate::bench::Bench;
use crate::candidate::Candidate;
use crate::evaluate::EvaluateOptions;
use crate::event_log::LogError;
use crate::run::GraphEvent;
use crate::sample::Sample;
use crate::subject::Subject;
use crate::timing::TimingOptions;
use crate::verdict::{Verdict, VerdictKind};
use description::Description;
use passnet_engine::Engine;
use passnet_graph::Diagnostic;
use serde::Serialize;
use std::path::{Path, PathBuf};

const CASE: &str = "case.json";

/// From this level on a zero is right where any number is expected (`|0 - x| <= 1 + |x|`): credit there means nothing.
const FIRST_EMPTY_LEVEL: i32 = 0;

/// A way to cheat, and the task it is tried on.
#[derive(Debug, Clone)]
pub struct Case {
    /// With `case.json`, `exploit/` and `control/`.
    pub folder: PathBuf,
    description: Description,
    sample: Sample,
}

/// What became of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attempt {
    /// The strictest level at which any graph is credited; `None` where none is.
    pub credited_from: Option<i32>,
    /// How many graphs are judged correct, and how many were tried.
    pub correct: usize,
    /// How many were judged.
    pub graphs: usize,
    /// What stopped it, on the first graph where something did.
    pub layer: Option<Layer>,
    /// The verdict on that graph, or `correct`.
    pub verdict: Verdict,
    /// Why this is not what the case expects; empty where it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unexpected: String,
    /// Whether the machine failed, so that nothing is known about it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_judged: bool,
}

/// What evaluating a pass folder gave.
#[derive(Debug, Clone)]
struct Evaluated {
    events: Vec<GraphEvent>,
    /// Why some graph was not judged.
    lost: Option<String>,
}

/// All attempts of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseResult {
    /// The name of the case.
    pub class: String,
    /// What the attacker is after, in words.
    pub threat: String,
    /// Whether the attack was written with the judge's checks in view.
    pub is_adaptive: bool,
    /// Layers that may stop it where the rules are on.
    pub expected_with_rules: Vec<Layer>,
    /// Layers that may stop it where they are off.
    pub expected_without_rules: Vec<Layer>,
    /// What became of the attack with the rules.
    pub exploit_with_rules: Attempt,
    /// What became of it without them.
    pub exploit_without_rules: Attempt,
    /// What became of the honest pass.
    pub control: Attempt,
}

impl Attempt {
    /// Whether any graph, at any level that means something, is worth more than a failure.
    pub fn scores(&self) -> bool {
        self.correct > 0 || self.credited_from.is_some()
    }
}

impl CaseResult {
    /// Whether the exploit scored anything.
    pub fn attack_succeeds(&self) -> bool {
        self.exploits().iter().any(|attempt| attempt.scores())
    }

    /// Did not score, but not for the reason that the case is about.
    pub fn stopped_elsewhere(&self) -> bool {
        !self.attack_succeeds()
            && self.exploits().iter().any(|attempt| !attempt.unexpected.is_empty())
    }

    /// Whether a graph of the control was not called correct.
    pub fn honest_refused(&self) -> bool {
        !self.control.unexpected.is_empty()
    }

    /// Whether some attempt says nothing because the machine failed.
    pub fn is_not_judged(&self) -> bool {
        self.control.not_judged || self.exploits().iter().any(|attempt| attempt.not_judged)
    }

    /// Whether the attack failed where it should and the control was accepted.
    pub fn holds(&self) -> bool {
        !self.attack_succeeds() && !self.stopped_elsewhere() && !self.honest_refused()
    }

    fn exploits(&self) -> [&Attempt; 2] {
        [&self.exploit_with_rules, &self.exploit_without_rules]
    }

    /// What is wrong, in words; empty where nothing is.
    pub fn complaints(&self) -> Vec<String> {
        let attempts = [
            ("exploit, rules on", &self.exploit_with_rules),
            ("exploit, rules off", &self.exploit_without_rules),
            ("control", &self.control),
        ];
        let wrong = attempts.iter().filter(|(_, attempt)| !attempt.unexpected.is_empty());
        wrong.map(|(which, it)| format!("{}: {which}: {}", self.class, it.unexpected)).collect()
    }
}

/// The cases of a suite, by name. A task is a folder under `tasks`, or a path from there.
pub fn cases(suite: &Path, tasks: &Path) -> Result<Vec<Case>, Diagnostic> {
    let folders = case_folders(suite)?;
    folders.into_iter().map(|folder| Case::read(folder, tasks)).collect()
}

fn case_folders(suite: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
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
    Ok(folders)
}

impl Case {
    fn read(folder: PathBuf, tasks: &Path) -> Result<Case, Diagnostic> {
        let path = folder.join(CASE);
        let description = Description::read(&path)?;
        let mut sample = Sample::read(&tasks.join(&description.task))?;
        if !description.graphs.is_empty() {
            if let Some(unknown) = description.graphs.iter().find(|it| !sample.graphs.contains(it))
            {
                let message = format!("task `{}` has no graph `{unknown}`", description.task);
                return Err(Diagnostic::file(path.display().to_string(), message));
            }
            sample.graphs.clone_from(&description.graphs);
        }
        Ok(Case { folder, description, sample })
    }

    /// The name of the case.
    pub fn class(&self) -> &str {
        &self.description.class
    }

    /// Whether the attack was written with the judge's checks in view.
    pub fn is_adaptive(&self) -> bool {
        self.description.adaptive.is_some()
    }

    /// Tries the exploit both ways, and the control with the rules on.
    pub fn attempt(&self, engine: &dyn Engine) -> Result<CaseResult, LogError> {
        let expected = &self.description.stopped_by;
        let with_rules = self.description.with_rules();
        let open = self.exploit(engine, false)?;
        // Where the rules let a pass through, they change nothing else: one evaluation answers for both.
        let is_refused = Candidate::load(&self.folder.join("exploit"), None, true)
            .is_err_and(|verdict| verdict.kind == VerdictKind::Integrity);
        let refused = match is_refused {
            true => self.exploit(engine, true)?,
            false => open.clone(),
        };
        Ok(CaseResult {
            class: self.description.class.clone(),
            threat: self.description.threat.clone(),
            is_adaptive: self.is_adaptive(),
            expected_with_rules: with_rules.layer.clone(),
            expected_without_rules: expected.layer.clone(),
            exploit_with_rules: self.judge(refused, &with_rules),
            exploit_without_rules: self.judge(open, expected),
            control: self.control(engine)?,
        })
    }

    fn exploit(&self, engine: &dyn Engine, rules: bool) -> Result<Evaluated, LogError> {
        self.evaluate(engine, "exploit", rules)
    }

    /// Every graph on which the exploit cheats must be stopped, and each for the reason that the case names.
    fn judge(&self, evaluated: Evaluated, expected: &Expectation) -> Attempt {
        let mut attempt = Attempt::over(&evaluated);
        if attempt.not_judged {
            return attempt;
        }
        let may_have = self.description.honest_from.unwrap_or(FIRST_EMPTY_LEVEL);
        attempt.credited_from = attempt.credited_from.filter(|level| *level < may_have);
        attempt.unexpected = if attempt.scores() {
            "it scores".into()
        } else {
            let verdicts = evaluated.events.iter().map(|event| &event.evaluation.judged.verdict);
            verdicts.filter_map(|verdict| expected.objection(verdict)).next().unwrap_or_default()
        };
        attempt
    }

    fn control(&self, engine: &dyn Engine) -> Result<Attempt, LogError> {
        let mut attempt = Attempt::over(&self.evaluate(engine, "control", true)?);
        if !attempt.not_judged && attempt.correct != attempt.graphs {
            attempt.unexpected = attempt.verdict.to_string();
        }
        Ok(attempt)
    }

    fn evaluate(
        &self,
        engine: &dyn Engine,
        folder: &str,
        rules: bool,
    ) -> Result<Evaluated, LogError> {
        let bench = Bench::new(engine, Subject::PASSES, options(), rules);
        let judged = bench.sample(&self.sample, &self.folder.join(folder), None)?;
        let lost = judged.not_judged.into_iter().next().map(|lost| lost.reason);
        Ok(Evaluated { events: judged.events, lost })
    }
}

impl Attempt {
    fn over(evaluated: &Evaluated) -> Attempt {
        let events = &evaluated.events;
        // What ran in the compatibility tier is not scored, right or wrong.
        let scored = || events.iter().filter(|event| event.evaluation.tier.is_plan());
        let judged = || scored().map(|event| &event.evaluation.judged);
        let is_correct =
            |event: &GraphEvent| event.evaluation.judged.verdict.kind == VerdictKind::Correct;
        let stopped = events.iter().find(|event| !is_correct(event));
        let verdict = stopped.map_or(Verdict::new(VerdictKind::Correct), |event| {
            event.evaluation.judged.verdict.clone()
        });
        let credited = judged().filter(|it| it.verdict.kind.is_comparable());
        Attempt {
            credited_from: credited.filter_map(|it| it.ladder.first_right()).min(),
            correct: scored().filter(|event| is_correct(event)).count(),
            graphs: events.len(),
            layer: Layer::of(&verdict),
            verdict,
            not_judged: evaluated.lost.is_some(),
            unexpected: match &evaluated.lost {
                Some(reason) => format!("not judged: {reason}"),
                None => String::new(),
            },
        }
    }
}

/// Whether an attempt is accepted does not depend on its speed, so timing is short.
fn options() -> EvaluateOptions {
    EvaluateOptions {
        timing: TimingOptions { warmup: 2, trials: 10, seconds: 0.0, ..TimingOptions::default() },
        call_seconds: 5.0,
        ..EvaluateOptions::default()
    }
}
