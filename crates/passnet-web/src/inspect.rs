//! What can be said about passes by reading them: rules, patterns, plans, where they match.

use crate::Error;
use crate::bundle::PassFiles;
use crate::store::CorpusModel;
use passnet_bench::signature::{Signature, signatures, step_lines};
use passnet_graph::{Diagnostic, Graph, GraphFiles};
use passnet_kernel::check::{self, proved_in_bounds};
use passnet_pass::load::{Bindings, LoadOptions, PassSet, load};
use passnet_pass::matcher::{MatchOptions, Pattern, TargetGraph, matches};
use passnet_pass::rules;
use passnet_pass::trace::{Dialect, Pass, trace};
use serde::{Deserialize, Serialize};

/// Everything about a set of passes.
#[derive(Debug, Default, Serialize)]
pub struct Inspection {
    pub(crate) passes: Vec<InspectedPass>,
    /// What could not be read.
    pub(crate) errors: Vec<String>,
}

/// What reading one pass tells.
#[derive(Debug, Serialize)]
pub struct InspectedPass {
    pub(crate) name: String,
    /// What it replaces; `None` where it cannot be traced.
    #[serde(skip)]
    pub(crate) pattern: Option<Graph>,
    pub(crate) rules: Vec<rules::Finding>,
    pub(crate) errors: Vec<String>,
    pub(crate) matches: Vec<Matched>,
    pub(crate) plans: Vec<Plan>,
}

/// A graph of the dataset in which a pass matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Matched {
    pub(crate) number: usize,
    pub(crate) graph: String,
    pub(crate) places: usize,
}

/// What a wrapper does for one signature.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// Whose signature it is for.
    pub graph: String,
    /// Places in the graph that have it.
    pub sites: usize,
    /// Each in one line.
    pub steps: Vec<String>,
    /// Whether every access was proved to stay inside its buffer, without a run.
    pub is_proved: bool,
    /// What is known of its kernels after a watched run; `None` where there was none.
    pub watched: Option<Vec<KernelFinding>>,
}

/// What the checker of kernels found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFinding {
    pub(crate) rule: String,
    pub(crate) severity: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) message: String,
    /// For every input of the signature; otherwise seen in one run.
    pub(crate) is_proved: bool,
}

/// With what passes are held together.
#[derive(Debug, Default)]
pub struct Surroundings<'a> {
    /// Graphs of the task, whole: plans need types.
    pub graphs: Vec<GraphFiles>,
    /// Graphs in which the patterns are looked for.
    pub corpus: &'a [CorpusModel],
    /// Whether kernels may be run to watch them: in a server never, there a sandboxed process does it.
    pub may_run: bool,
}

/// Reads passes; `text` gives their files by digest.
pub fn inspect(
    files: &PassFiles,
    text: impl Fn(&str) -> Option<Vec<u8>>,
    around: &Surroundings<'_>,
) -> Result<Inspection, Error> {
    let folder = files.write(text)?;
    let set = load(folder.path(), &LoadOptions::default());
    let place = format!("{}/", folder.path().display());
    // Where the files lay while they were read says nothing to anybody.
    let shown = |error: &Diagnostic| error.to_string().replace(&place, "");
    let bindings = Bindings::of(&set.program);
    let mut found =
        Inspection { errors: set.errors.iter().map(shown).collect(), ..Inspection::default() };
    for file in &set.passes {
        let traced = trace(&set.program, &bindings, file, Dialect::Plain);
        let mut rules = rules::check(&set.program, &bindings, file, traced.as_ref().ok());
        rules.iter_mut().for_each(|finding| finding.file = finding.file.replace(&place, ""));
        let mut pass = InspectedPass {
            name: file.name.clone(),
            pattern: None,
            rules,
            errors: Vec::new(),
            matches: Vec::new(),
            plans: Vec::new(),
        };
        match traced {
            Err(errors) => pass.errors = errors.iter().map(shown).collect(),
            Ok(traced) => {
                pass.matches = matching(&traced, around.corpus);
                for graph in &around.graphs {
                    pass.plans.extend(plans(&set, &traced, graph, around.may_run));
                }
                pass.pattern = Some(traced.pattern.graph);
            }
        }
        for finding in pass.plans.iter_mut().flat_map(|plan| plan.watched.iter_mut().flatten()) {
            finding.file = finding.file.replace(&place, "");
        }
        found.passes.push(pass);
    }
    Ok(found)
}

fn matching(pass: &Pass, corpus: &[CorpusModel]) -> Vec<Matched> {
    let pattern = Pattern::new(&pass.pattern.graph);
    let options = MatchOptions::default();
    let all = corpus.iter().map(|model| Matched {
        number: model.number,
        graph: model.path.clone(),
        places: matches(&pattern, &TargetGraph::new(&model.graph), &options).len(),
    });
    all.filter(|found| found.places > 0).collect()
}

/// A graph that the pass does not match, or for which no plan can be made, has none.
fn plans(set: &PassSet, pass: &Pass, graph: &GraphFiles, may_run: bool) -> Vec<Plan> {
    let found = signatures(&set.program, pass, graph).unwrap_or_default();
    found.iter().map(|signature| plan(graph, signature, may_run)).collect()
}

fn plan(graph: &GraphFiles, signature: &Signature, may_run: bool) -> Plan {
    let fixture = &signature.fixture;
    let mut plan = Plan {
        graph: graph.path.clone(),
        sites: signature.sites,
        steps: step_lines(&fixture.plan),
        is_proved: false,
        watched: None,
    };
    let Ok(prepared) = fixture.prepare() else { return plan };
    plan.is_proved = prepared
        .launches()
        .all(|(launch, function)| proved_in_bounds(&fixture.plan, launch, function));
    if may_run && let Ok(wrapper) = fixture.wrapper() {
        let mut buffers = fixture.buffers(&prepared);
        let lent = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        let arguments = fixture.header.host_args();
        let found = check::check(&fixture.modules, &wrapper, &arguments, &prepared, lent);
        plan.watched = Some(found.into_iter().map(KernelFinding::from).collect());
    }
    plan
}

impl From<check::Finding> for KernelFinding {
    fn from(found: check::Finding) -> KernelFinding {
        let severity = match found.severity {
            check::Severity::Note => "note",
            check::Severity::Warning => "warning",
            check::Severity::Error => "error",
        };
        KernelFinding {
            rule: found.rule.to_string(),
            severity: severity.to_string(),
            file: found.file,
            line: found.line,
            message: found.message,
            is_proved: found.proved,
        }
    }
}
