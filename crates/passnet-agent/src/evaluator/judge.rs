//! Pass folders judged with PassBench.

use super::{Answer, Assessment, Files, GraphAssessment, Question};
use crate::prompt::Target;
use crate::task::Task;
use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, Evaluation, check, evaluate};
use passnet_bench::roofline::Roofline;
use passnet_bench::run::GraphEvent;
use passnet_bench::score::{Parameters, Score, ScoredGraph, Scoring};
use passnet_bench::subject::Subject;
use passnet_bench::verdict::{Verdict, VerdictKind};
use passnet_engine::native::NativeEngine;
use passnet_engine::{Engine, Tier};
use passnet_pass::explain::NamedGraph;
use std::time::{Duration, Instant};

/// Graphs whose misses are explained at length.
const EXPLAINED: usize = 3;
/// Seconds after which a check stops looking at further graphs.
const CHECK_SECONDS: u64 = 20;

/// How passes are judged.
pub struct Judge {
    /// Where evaluations run. Questions without timing are answered by the native engine, whatever this is: in
    /// milliseconds, and without disturbing the device.
    pub engine: Box<dyn Engine>,
    /// The engine as prompts and records tell of it.
    pub target: Target,
    /// How deep and how long graphs are evaluated.
    pub options: EvaluateOptions,
    /// Whether the integrity rules may refuse a pass.
    pub rules: bool,
    /// Of the score.
    pub parameters: Parameters,
    /// Seconds for all graphs of one evaluation; the graphs behind it time out.
    pub evaluation_seconds: f64,
    roofline: Roofline,
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Judge {
    /// With the integrity rules on.
    pub fn new(engine: Box<dyn Engine>, options: EvaluateOptions, target: Target) -> Self {
        Judge {
            engine,
            target,
            options,
            rules: true,
            parameters: Parameters::default(),
            evaluation_seconds: 600.0,
            roofline: Roofline::default(),
        }
    }

    fn load(&self, task: &Task, files: &Files) -> Loaded {
        let inputs = task.sample.input_pass_folder();
        Candidate::from_files(files.clone(), inputs.as_deref(), self.rules)
    }

    /// Where the passes match, without running anything.
    pub(super) fn matches(&self, task: &Task, files: &Files) -> Answer {
        let loaded = self.load(task, files);
        let mut explained = 0;
        let mut graphs = Vec::new();
        for (index, graph) in task.graphs.iter().enumerate() {
            let (Some(files), Some(folder)) = (&graph.files, &graph.folder) else {
                graphs.push(GraphAssessment::new(index, unreadable(graph.problem.as_deref())));
                continue;
            };
            let candidate = match &loaded {
                Ok(candidate) => candidate,
                Err(verdict) => {
                    graphs.push(GraphAssessment::new(index, (**verdict).clone()));
                    continue;
                }
            };
            graphs.push(match candidate.rewrite(&folder.graph) {
                Ok(rewritten) => GraphAssessment {
                    matches: rewritten.rewrites.iter().map(|rewrites| rewrites.count).sum(),
                    ..GraphAssessment::new(index, Verdict::new(VerdictKind::Correct))
                },
                Err(verdict) => {
                    let mut found = GraphAssessment::new(index, *verdict);
                    if explained < EXPLAINED {
                        explained += 1;
                        let name = files.path.as_str();
                        let named = NamedGraph { name, graph: &folder.graph, source: None };
                        found.advice = changes(candidate, named);
                    }
                    found
                }
            });
        }
        self.answer(task, Question::Match, loaded, graphs, Vec::new())
    }

    /// Everything but time: numbers on one draw of inputs, kernels under watch.
    pub(super) fn check(&self, task: &Task, files: &Files) -> std::io::Result<Answer> {
        let options = EvaluateOptions { draws: 0, tier: Tier::Plan, ..self.options.clone() };
        let until = Instant::now() + Duration::from_secs(CHECK_SECONDS);
        let mut run = self.begin_with(task, files, Question::Check, options, until);
        while run.next_graph(self)? {}
        Ok(run.finish(self))
    }

    /// All graphs of a task, one after another.
    pub fn evaluate(&self, task: &Task, files: &Files) -> std::io::Result<Answer> {
        let mut run = self.begin(task, files);
        while run.next_graph(self)? {}
        Ok(run.finish(self))
    }

    /// Compiles what an evaluation will launch, so that it finds the kernels of the task's own sizes ready.
    pub(super) fn compile_ahead(&self, task: &Task, files: &Files) {
        let Ok(candidate) = self.load(task, files) else { return };
        for files in task.graphs.iter().filter_map(|graph| graph.files.as_ref()) {
            for signature in candidate.signatures(files) {
                self.engine.compile_ahead(&signature.fixture.modules, &signature.fixture.plan);
            }
        }
    }

    /// Begins an evaluation that goes on graph by graph.
    pub(super) fn begin<'t>(&self, task: &'t Task, files: &Files) -> Run<'t> {
        let limit = Duration::try_from_secs_f64(self.evaluation_seconds).unwrap_or(Duration::MAX);
        let now = Instant::now();
        let until = now.checked_add(limit).unwrap_or(now + Duration::from_secs(1 << 30));
        self.begin_with(task, files, Question::Evaluate, self.options.clone(), until)
    }

    fn begin_with<'t>(
        &self,
        task: &'t Task,
        files: &Files,
        question: Question,
        options: EvaluateOptions,
        until: Instant,
    ) -> Run<'t> {
        let loaded = self.load(task, files);
        Run { task, loaded, question, options, until, graphs: Vec::new(), events: Vec::new() }
    }

    fn answer(
        &self,
        task: &Task,
        question: Question,
        loaded: Loaded,
        graphs: Vec<GraphAssessment>,
        events: Vec<GraphEvent>,
    ) -> Answer {
        let scored: Vec<ScoredGraph> =
            events.iter().map(|event| event.evaluation.judged.scored(Scoring::Strict)).collect();
        let score = match question {
            Question::Evaluate => Score::of(&scored, self.parameters).map(|s| s.aggregated),
            Question::Match | Question::Check => None,
        };
        let remarks = loaded.map(|candidate| candidate.remarks).unwrap_or_default();
        let graphs_in_task = task.graphs.len();
        Answer {
            assessment: Assessment { question, score, graphs_in_task, graphs, remarks },
            events,
        }
    }
}

/// The passes, or the verdict that holds for every graph.
type Loaded = Result<Candidate, Box<Verdict>>;

/// An evaluation or check under way.
pub(super) struct Run<'t> {
    task: &'t Task,
    loaded: Loaded,
    question: Question,
    options: EvaluateOptions,
    until: Instant,
    graphs: Vec<GraphAssessment>,
    events: Vec<GraphEvent>,
}

impl Run<'_> {
    /// Judges the next graph; whether there was one. Where the machine failed, there is no verdict to learn from, and that is
    /// an error.
    pub(super) fn next_graph(&mut self, judge: &Judge) -> std::io::Result<bool> {
        let index = self.graphs.len();
        let Some(graph) = self.task.graphs.get(index) else { return Ok(false) };
        let is_late = Instant::now() >= self.until;
        if is_late && self.question == Question::Check {
            return Ok(false);
        }
        let without = |verdict: Verdict| Evaluation::without_run(&graph.name, verdict);
        let mut evaluation = match (&graph.files, &self.loaded) {
            (None, _) => without(unreadable(graph.problem.as_deref())),
            (_, Err(verdict)) => without((**verdict).clone()),
            (Some(_), Ok(_)) if is_late => without(
                Verdict::new(VerdictKind::Timeout)
                    .because("the evaluation took too long before this graph"),
            ),
            (Some(files), Ok(candidate)) => match self.question {
                Question::Check => check(&NativeEngine, files, candidate, &self.options),
                _ => evaluate(&*judge.engine, files, Subject::Passes(candidate), &self.options),
            },
        };
        if let Some(reason) = &evaluation.not_judged {
            return Err(std::io::Error::other(format!(
                "`{}` was not judged: {reason}",
                graph.name
            )));
        }
        if self.question == Question::Evaluate {
            evaluation = evaluation.with_roofline(&judge.roofline, &*judge.engine);
        }
        let mut found = GraphAssessment::of(index, &evaluation);
        if found.verdict.kind == VerdictKind::NoMatch
            && self.graphs.iter().filter(|graph| !graph.advice.is_empty()).count() < EXPLAINED
            && let (Ok(candidate), Some(folder)) = (&self.loaded, &graph.folder)
        {
            let named = NamedGraph { name: &graph.name, graph: &folder.graph, source: None };
            found.advice = changes(candidate, named);
        }
        self.graphs.push(found);
        self.events.push(GraphEvent {
            sample: self.task.id.clone(),
            folder: String::new(),
            key: String::new(),
            artefacts: Vec::new(),
            evaluation,
        });
        Ok(true)
    }

    pub(super) fn finish(self, judge: &Judge) -> Answer {
        judge.answer(self.task, self.question, self.loaded, self.graphs, self.events)
    }
}

fn unreadable(problem: Option<&str>) -> Verdict {
    Verdict::new(VerdictKind::ReferenceFail).because(problem.unwrap_or("the graph cannot be read"))
}

/// What would have to change for the passes to match.
fn changes(candidate: &Candidate, named: NamedGraph<'_>) -> Vec<String> {
    let mut advice = Vec::new();
    for explanation in candidate.explain(named).into_iter().filter(|found| found.matches == 0) {
        if explanation.differences.is_empty() {
            advice.push(format!("pass `{}`: {}", explanation.pass, explanation.reason));
        }
        for difference in explanation.differences {
            let change = difference.change;
            advice.push(format!("pass `{}`: {}; {change}", explanation.pass, difference.message));
        }
    }
    advice
}
