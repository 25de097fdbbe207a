//! Kernels of passes, run under watch: the passes are somebody else's, so a sandboxed process does it, and what it saw is
//! kept for the pages.

use crate::Error;
use crate::bundle::{Bundle, PassFiles, pass_files};
use crate::inspect::{Inspection, KernelFinding, Surroundings, inspect};
use crate::tasks::TaskIndex;
use passnet_bench::report::{GraphRecord, RunRecord};
use passnet_graph::{FileName, GraphFiles};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Graphs of a task for which plans are made.
const GRAPHS: usize = 4;

/// A set of passes, and graphs on which its kernels are run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Paths of graphs, and their files by name.
    pub graphs: Vec<(String, BTreeMap<String, String>)>,
    /// Files of the passes, by name.
    pub passes: BTreeMap<String, String>,
}

/// What a watched run of one plan saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedPlan {
    /// By the name of its file.
    pub pass: String,
    /// Whose signature it was run for.
    pub graph: String,
    /// Empty where nothing is wrong.
    pub findings: Vec<KernelFinding>,
}

/// What is kept of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    pub(crate) plans: Vec<WatchedPlan>,
    /// Why the kernels could not be watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// Runs the kernels of a job in this process.
pub fn watch(job: &Job) -> Result<Vec<WatchedPlan>, Error> {
    let graphs = job.graphs.iter().map(|(path, files)| {
        let known = files.iter().filter_map(|(name, text)| Some((FileName::parse(name)?, text)));
        known.fold(GraphFiles::new(path), |graph, (name, text)| graph.with(name, text.as_bytes()))
    });
    let around = Surroundings { graphs: graphs.collect(), corpus: &[], may_run: true };
    // Here a file is known by its name.
    let names = job.passes.keys().map(|name| (name.clone(), name.clone()));
    let files = PassFiles { files: names.collect(), order: Vec::new() };
    let text = |name: &str| job.passes.get(name).map(|text| text.clone().into_bytes());
    let mut seen = Vec::new();
    for pass in inspect(&files, text, &around)?.passes {
        for plan in pass.plans {
            let Some(findings) = plan.watched else { continue };
            seen.push(WatchedPlan { pass: pass.name.clone(), graph: plan.graph, findings });
        }
    }
    Ok(seen)
}

/// One set of passes of one task of a run, with the graphs of the task that this site has itself.
#[derive(Debug)]
pub struct Subject {
    /// The passes.
    pub files: PassFiles,
    /// Those of the task.
    pub graphs: Vec<GraphFiles>,
}

impl Subject {
    /// The sets of passes behind results of one task.
    pub fn of(tasks: &TaskIndex, task: &str, results: &[&GraphRecord]) -> Vec<Subject> {
        let sets: BTreeSet<PassFiles> =
            results.iter().map(|graph| pass_files(graph)).filter(|set| !set.is_empty()).collect();
        let of_set = |files: PassFiles| {
            let whole = results.iter().filter_map(|graph| {
                let model = graph.artefact(FileName::Model.as_str())?;
                tasks.graph(task, &graph.event.evaluation.judged.graph, model)
            });
            Subject { graphs: whole.take(GRAPHS).collect(), files }
        };
        sets.into_iter().map(of_set).collect()
    }

    /// All of a run that can be watched here.
    pub fn of_run(tasks: &TaskIndex, run: &RunRecord) -> Vec<Subject> {
        let samples = run.samples();
        let all = samples.iter().flat_map(|(task, graphs)| Subject::of(tasks, task, graphs));
        all.filter(|subject| !subject.graphs.is_empty()).collect()
    }

    /// The same for the same texts, whoever's run they are in.
    pub fn key(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("passnet watched kernels 1");
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        for graph in &self.graphs {
            part(graph.path.as_bytes());
            for (name, bytes) in &graph.files {
                part(name.as_str().as_bytes());
                part(bytes);
            }
        }
        part(b"passes");
        for (name, digest) in &self.files.files {
            part(name.as_bytes());
            part(digest.as_bytes());
        }
        part(b"order");
        self.files.order.iter().for_each(|name| part(name.as_bytes()));
        hasher.finalize().to_hex().to_string()
    }

    /// As a process of its own reads it.
    pub fn job(&self, bundle: &Bundle) -> Result<Job, Error> {
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).map_err(|_| Error::input("a file is no text"))
        };
        let mut job = Job::default();
        for graph in &self.graphs {
            let files = graph.files.iter();
            let files = files.map(|(name, bytes)| Ok((name.as_str().to_string(), text(bytes)?)));
            job.graphs.push((graph.path.clone(), files.collect::<Result<_, Error>>()?));
        }
        for (name, bytes) in self.files.texts(|digest| bundle.blob(digest).ok())? {
            job.passes.insert(name, text(&bytes)?);
        }
        Ok(job)
    }
}

impl Watched {
    /// Puts what was seen beside the plans of an inspection of the same subject.
    pub fn join(self, inspection: &mut Inspection) {
        let mut seen: BTreeMap<(String, String), Vec<Vec<KernelFinding>>> = BTreeMap::new();
        for plan in self.plans.into_iter().rev() {
            seen.entry((plan.pass, plan.graph)).or_default().push(plan.findings);
        }
        for pass in &mut inspection.passes {
            for plan in &mut pass.plans {
                // Several signatures of one graph come in the same order here and there.
                let of_plan = seen.get_mut(&(pass.name.clone(), plan.graph.clone()));
                plan.watched = of_plan.and_then(Vec::pop);
            }
        }
    }
}
