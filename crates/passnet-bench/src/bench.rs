//! Samples in, judged graphs out: the loop around [`evaluate`].

use crate::candidate::Candidate;
use crate::evaluate::{EvaluateOptions, Evaluation, Subject, evaluate};
use crate::event_log::LogError;
use crate::roofline::Roofline;
use crate::run::{Event, FORMAT, GraphEvent, Machine, RunStore, Start};
use crate::sample::Sample;
use crate::timing::TimingOptions;
use crate::verdict::Verdict;
use passnet_engine::{Engine, GraphCompiler};
use passnet_graph::{FileName, GraphFiles};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compiler {
    /// The passes of a folder.
    Pass,
    /// Eager against itself: whatever differs is noise.
    Eager,
    /// TorchInductor, where the engine has it.
    Inductor,
    /// The native engine's joined operations.
    Joined,
}

impl Compiler {
    pub const fn name(self) -> &'static str {
        match self {
            Compiler::Pass => "pass",
            Compiler::Eager => "eager",
            Compiler::Inductor => "inductor",
            Compiler::Joined => "joined",
        }
    }
}

/// The noise floor is never believed to be below this.
const LEAST_NOISE: f64 = 0.01;
/// Graphs raced against themselves to find the noise floor.
const NOISE_GRAPHS: usize = 4;
/// Seconds for each of them.
const NOISE_SECONDS: f64 = 0.4;

/// An evaluation under way.
#[derive(Debug)]
pub struct Bench<'a> {
    pub engine: &'a dyn Engine,
    pub compiler: Compiler,
    pub options: EvaluateOptions,
    /// Whether the integrity rules may refuse a pass.
    pub rules: bool,
    pub roofline: Roofline,
}

impl Bench<'_> {
    /// The event that begins a run.
    pub fn start(&self) -> Event {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Event::Start(Box::new(Start {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            engine: self.engine.name().into(),
            compiler: self.compiler.name().into(),
            options: self.options.clone(),
            machine: Machine::this(),
            time,
        }))
    }

    /// Evaluates all graphs of a sample with the passes of a folder, except those the store knows already. Every result
    /// is stored before the next graph begins, and shown to `each`.
    pub fn sample(
        &self,
        sample: &Sample,
        passes: &Path,
        mut store: Option<&mut RunStore>,
        each: &mut dyn FnMut(&GraphEvent),
    ) -> Result<Vec<GraphEvent>, LogError> {
        let candidate = match self.compiler {
            Compiler::Eager | Compiler::Inductor | Compiler::Joined => Ok(None),
            Compiler::Pass => {
                Candidate::load(passes, sample.input_pass_folder().as_deref(), self.rules).map(Some)
            }
        };
        let mut events = Vec::with_capacity(sample.graphs.len());
        for graph in &sample.graphs {
            let event = match self.known(sample, graph, &candidate, store.as_deref()) {
                Some(known) => known,
                None => self.graph(sample, graph, &candidate, store.as_deref())?,
            };
            // Known results are written again where another pass came between: the last one of a graph counts.
            if let Some(store) = store.as_deref_mut()
                && !store.is_latest(&event)
            {
                store.append(&Event::Graph(Box::new(event.clone())))?;
            }
            each(&event);
            events.push(event);
        }
        Ok(events)
    }

    fn known(
        &self,
        sample: &Sample,
        graph: &str,
        candidate: &Result<Option<Candidate>, Box<Verdict>>,
        store: Option<&RunStore>,
    ) -> Option<GraphEvent> {
        let files = sample.graph_files(graph).ok()?;
        store?.known(&self.key(sample, &files, candidate)).cloned()
    }

    fn graph(
        &self,
        sample: &Sample,
        graph: &str,
        candidate: &Result<Option<Candidate>, Box<Verdict>>,
        store: Option<&RunStore>,
    ) -> Result<GraphEvent, LogError> {
        let files = match sample.graph_files(graph) {
            Ok(files) => files,
            Err(error) => {
                return Ok(GraphEvent {
                    sample: sample.name.clone(),
                    key: String::new(),
                    artefacts: Vec::new(),
                    evaluation: Evaluation::unreadable(graph, &error),
                });
            }
        };
        let mut artefacts = Vec::new();
        if let Some(store) = store {
            let model = files.get(FileName::Model).unwrap_or_default();
            artefacts.push((FileName::Model.as_str().to_string(), store.keep(model)?));
            if let Ok(Some(candidate)) = candidate {
                for (name, text) in &candidate.sources {
                    artefacts.push((name.clone(), store.keep(text.as_bytes())?));
                }
            }
        }
        let mut evaluation = match candidate {
            Ok(candidate) => {
                let subject = match self.compiler {
                    Compiler::Inductor => Subject::Compiled(GraphCompiler::Inductor),
                    Compiler::Joined => Subject::Compiled(GraphCompiler::Joined),
                    Compiler::Eager | Compiler::Pass => candidate.as_ref().into(),
                };
                evaluate(self.engine, &files, subject, &self.options)
            }
            Err(verdict) => Evaluation::without_run(graph, (**verdict).clone()),
        };
        evaluation.roofline_ms = self.roofline.milliseconds(self.engine, &evaluation);
        Ok(GraphEvent {
            sample: sample.name.clone(),
            key: self.key(sample, &files, candidate),
            artefacts,
            evaluation,
        })
    }

    /// The digest of all that a result depends on, the machine's noise left out.
    fn key(
        &self,
        sample: &Sample,
        files: &GraphFiles,
        candidate: &Result<Option<Candidate>, Box<Verdict>>,
    ) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        let options = EvaluateOptions { noise_floor: 0.0, ..self.options.clone() };
        add(env!("CARGO_PKG_VERSION").as_bytes());
        add(self.engine.name().as_bytes());
        add(self.compiler.name().as_bytes());
        add(&[u8::from(self.rules)]);
        add(&serde_json::to_vec(&options).unwrap_or_default());
        add(sample.name.as_bytes());
        add(files.path.as_bytes());
        for (name, bytes) in &files.files {
            add(name.as_str().as_bytes());
            add(bytes);
        }
        match candidate {
            Ok(None) => {}
            Ok(Some(candidate)) => {
                for (name, text) in &candidate.sources {
                    add(name.as_bytes());
                    add(text.as_bytes());
                }
            }
            Err(verdict) => add(&serde_json::to_vec(verdict).unwrap_or_default()),
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Races a few graphs against themselves: the largest difference seen is what this machine calls nothing.
    pub fn measure_noise(&self, samples: &[Sample]) -> f64 {
        let options = EvaluateOptions {
            timing: TimingOptions { seconds: NOISE_SECONDS, ..self.options.timing.clone() },
            draws: 1,
            thorough: false,
            ..self.options.clone()
        };
        let step = samples.len().div_ceil(NOISE_GRAPHS).max(1);
        let mut floor = LEAST_NOISE;
        for sample in samples.iter().step_by(step) {
            let Some(graph) = sample.graphs.first() else { continue };
            let Ok(files) = sample.graph_files(graph) else { continue };
            let evaluation = evaluate(self.engine, &files, Subject::Eager, &options);
            if let Some(speedup) = evaluation.judged.speedup {
                floor = floor.max(speedup.ln().abs().exp_m1());
            }
        }
        floor
    }
}
