//! Samples in, judged graphs out: the loop around [`evaluate`].

use crate::candidate::Candidate;
use crate::evaluate::{EvaluateOptions, Evaluation, evaluate};
use crate::event_log::LogError;
use crate::pool::in_order;
use crate::roofline::Roofline;
use crate::run::{Event, FORMAT, GraphEvent, Machine, RunStore, Start};
use crate::sample::Sample;
use crate::stop;
use crate::subject::Subject;
use crate::timing::TimingOptions;
use crate::verdict::Verdict;
use passnet_engine::Engine;
use passnet_graph::{Diagnostic, FileName, GraphFiles};
use serde::Serialize;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A graph that nothing is known about: the machine failed, neither the graph nor the pass. The next run takes it up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotJudged {
    /// The task that it belongs to.
    pub sample: String,
    /// Its folder's name.
    pub graph: String,
    /// What the machine or the engine failed at.
    pub reason: String,
}

/// What became of the graphs of a sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judged {
    /// Graphs with a verdict.
    pub events: Vec<GraphEvent>,
    /// Graphs without a verdict, because the machine failed and not the candidate.
    pub not_judged: Vec<NotJudged>,
}

impl Judged {
    /// Adds the graphs of another sample.
    pub fn extend(&mut self, other: Judged) {
        self.events.extend(other.events);
        self.not_judged.extend(other.not_judged);
    }

    /// Under a name that tells the sample from its namesakes.
    #[must_use]
    pub fn named(mut self, label: &str) -> Judged {
        self.events.iter_mut().for_each(|event| event.sample = label.to_string());
        self.not_judged.iter_mut().for_each(|lost| lost.sample = label.to_string());
        self
    }
}

/// The noise floor is never believed to be below this.
const LEAST_NOISE: f64 = 0.01;
/// Graphs raced against themselves to find the noise floor.
const NOISE_GRAPHS: usize = 4;
/// Seconds for each of them.
const NOISE_SECONDS: f64 = 0.4;

/// The subject with its passes, or the verdict that holds for every graph.
type Loaded = Result<Subject<Candidate>, Box<Verdict>>;

/// An evaluation under way.
#[derive(Debug)]
pub struct Bench<'a> {
    /// Where both sides run.
    pub engine: &'a dyn Engine,
    /// What is held against eager.
    pub subject: Subject,
    /// How deep and how long graphs are evaluated.
    pub options: EvaluateOptions,
    /// Whether the integrity rules may refuse a pass.
    pub rules: bool,
    /// What the engine's device reaches, measured once.
    pub roofline: Roofline,
}

impl<'a> Bench<'a> {
    /// With a roofline that is measured when it is first asked for.
    pub fn new(
        engine: &'a dyn Engine,
        subject: Subject,
        options: EvaluateOptions,
        rules: bool,
    ) -> Bench<'a> {
        Bench { engine, subject, options, rules, roofline: Roofline::default() }
    }

    /// The event that begins a run.
    pub fn start(&self) -> Event {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Event::Start(Box::new(Start {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            engine: self.engine.name().into(),
            compiler: self.subject.name().into(),
            options: self.options.clone(),
            rules: Some(self.rules),
            machine: Machine::this(),
            identity: Some(self.engine.identity()),
            time,
        }))
    }

    /// Evaluates all graphs of a sample with the passes of a folder; see [`samples`](Self::samples).
    pub fn sample(
        &self,
        sample: &Sample,
        passes: &Path,
        store: Option<&Mutex<RunStore>>,
    ) -> Result<Judged, LogError> {
        let all = Bench::samples(std::slice::from_ref(self), &[(sample, passes)], store, &|_| {})?;
        Ok(all.into_iter().next().unwrap_or_default())
    }

    /// Evaluates all graphs of samples, each with the passes of a folder, except those the store knows already. The benches
    /// differ in their engines alone, and each of them judges one graph at a time; what comes out is in the order of the
    /// samples, as from one. Every result is stored as soon as it is there, and shown to `each`; what could not be judged
    /// is not stored.
    pub fn samples(
        benches: &[Bench<'_>],
        work: &[(&Sample, &Path)],
        store: Option<&Mutex<RunStore>>,
        each: &(dyn Fn(&GraphEvent) + Sync),
    ) -> Result<Vec<Judged>, LogError> {
        let loaded: Vec<OnceLock<Loaded>> = work.iter().map(|_| OnceLock::new()).collect();
        let graphs = |sample: usize| 0..work[sample].0.graphs.len();
        let jobs: Vec<(usize, usize)> = (0..work.len())
            .flat_map(|sample| graphs(sample).map(move |graph| (sample, graph)))
            .collect();
        let events = in_order(benches, &jobs, |bench, &(place, graph)| {
            let (sample, passes) = work[place];
            let candidate = loaded[place].get_or_init(|| bench.load(sample, passes));
            bench.one(sample, &sample.graphs[graph], candidate, store, each)
        })?;
        let mut all = vec![Judged::default(); work.len()];
        for ((place, graph), event) in jobs.into_iter().zip(events) {
            let sample = work[place].0;
            match event.evaluation.not_judged {
                None => all[place].events.push(event),
                Some(reason) => all[place].not_judged.push(NotJudged {
                    sample: sample.name.clone(),
                    graph: sample.graphs[graph].clone(),
                    reason,
                }),
            }
        }
        Ok(all)
    }

    fn load(&self, sample: &Sample, passes: &Path) -> Loaded {
        self.subject.try_map(|()| {
            Candidate::load(passes, sample.input_pass_folder().as_deref(), self.rules)
        })
    }

    /// One graph: known already, or judged and stored.
    fn one(
        &self,
        sample: &Sample,
        graph: &str,
        candidate: &Loaded,
        store: Option<&Mutex<RunStore>>,
        each: &(dyn Fn(&GraphEvent) + Sync),
    ) -> Result<GraphEvent, LogError> {
        let event = match self.known(sample, graph, candidate, store) {
            Some(known) => known,
            None if stop::is_asked() => GraphEvent {
                sample: sample.name.clone(),
                folder: folder_of(sample),
                key: String::new(),
                artefacts: Vec::new(),
                evaluation: Evaluation::not_begun(graph, stop::REASON),
            },
            None => self.graph(sample, graph, candidate, store)?,
        };
        if event.evaluation.not_judged.is_some() {
            return Ok(event);
        }
        // Known results are written again where another pass came between: the last one of a graph counts.
        if let Some(mut store) = store.map(locked)
            && !store.is_latest(&event)
        {
            store.append(&Event::Graph(Box::new(event.clone())))?;
        }
        each(&event);
        Ok(event)
    }

    fn known(
        &self,
        sample: &Sample,
        graph: &str,
        candidate: &Loaded,
        store: Option<&Mutex<RunStore>>,
    ) -> Option<GraphEvent> {
        let key = match sample.graph_files(graph) {
            Ok(files) => self.key(sample, &files, candidate),
            Err(error) => unreadable_key(sample, graph, &error),
        };
        // The same work may have been done for another folder.
        let known = locked(store?).known(&key)?.clone();
        Some(GraphEvent { sample: sample.name.clone(), folder: folder_of(sample), ..known })
    }

    fn graph(
        &self,
        sample: &Sample,
        graph: &str,
        candidate: &Loaded,
        store: Option<&Mutex<RunStore>>,
    ) -> Result<GraphEvent, LogError> {
        let files = match sample.graph_files(graph) {
            Ok(files) => files,
            Err(error) => {
                return Ok(GraphEvent {
                    sample: sample.name.clone(),
                    folder: folder_of(sample),
                    key: unreadable_key(sample, graph, &error),
                    artefacts: Vec::new(),
                    evaluation: Evaluation::unreadable(graph, &error),
                });
            }
        };
        let mut artefacts = Vec::new();
        if let Some(store) = store.map(locked) {
            let model = files.get(FileName::Model).unwrap_or_default();
            artefacts.push((FileName::Model.as_str().to_string(), store.keep(model)?));
            if let Ok(Subject::Passes(candidate)) = candidate {
                for (name, text) in &candidate.sources {
                    artefacts.push((name.clone(), store.keep(text.as_bytes())?));
                }
            }
        }
        let evaluation = match candidate {
            Ok(subject) => evaluate(self.engine, &files, subject.as_ref(), &self.options),
            Err(verdict) => Evaluation::without_run(graph, (**verdict).clone()),
        };
        Ok(GraphEvent {
            sample: sample.name.clone(),
            folder: folder_of(sample),
            key: self.key(sample, &files, candidate),
            artefacts,
            evaluation: evaluation.with_roofline(&self.roofline, self.engine),
        })
    }

    /// The digest of all that a result depends on, the place and the program included, the machine's noise left out.
    fn key(&self, sample: &Sample, files: &GraphFiles, candidate: &Loaded) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        let options = EvaluateOptions { noise_floor: 0.0, ..self.options.clone() };
        add(self.engine.identity().digest().as_bytes());
        add(self.subject.name().as_bytes());
        add(&[u8::from(self.rules)]);
        add(&serde_json::to_vec(&options).unwrap_or_default());
        add(sample.name.as_bytes());
        add(files.path.as_bytes());
        for (name, bytes) in &files.files {
            add(name.as_str().as_bytes());
            add(bytes);
        }
        match candidate {
            Ok(Subject::Eager | Subject::Compiled(_)) => {}
            Ok(Subject::Passes(candidate)) => {
                for (name, text) in &candidate.sources {
                    add(name.as_bytes());
                    add(text.as_bytes());
                }
            }
            Err(verdict) => add(&serde_json::to_vec(verdict).unwrap_or_default()),
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The largest noise that any of the devices shows is that of all.
    pub fn measure_noise_of_all(benches: &mut [Bench<'_>], samples: &[Sample]) -> f64 {
        let floors = benches.iter().map(|bench| bench.measure_noise(samples));
        let floor = floors.fold(0.0, f64::max);
        benches.iter_mut().for_each(|bench| bench.options.noise_floor = floor);
        floor
    }

    /// Races a few graphs against themselves, on draws as evaluations take them: the largest difference seen is what
    /// this machine calls nothing.
    pub fn measure_noise(&self, samples: &[Sample]) -> f64 {
        let options = EvaluateOptions {
            timing: TimingOptions { seconds: NOISE_SECONDS, ..self.options.timing.clone() },
            ..self.options.clone()
        };
        let step = samples.len().div_ceil(NOISE_GRAPHS).max(1);
        let mut floor = LEAST_NOISE;
        for sample in samples.iter().step_by(step) {
            if stop::is_asked() {
                break;
            }
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

/// A panic elsewhere leaves the store as it was on disk.
fn locked(store: &Mutex<RunStore>) -> MutexGuard<'_, RunStore> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

fn folder_of(sample: &Sample) -> String {
    sample.path.display().to_string()
}

/// For a graph without content that could tell it from others.
fn unreadable_key(sample: &Sample, graph: &str, error: &Diagnostic) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in ["unreadable", &folder_of(sample), graph, &error.to_string()] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
