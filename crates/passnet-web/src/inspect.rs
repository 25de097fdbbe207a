//! What can be said about passes by reading them: rules, patterns, plans, where they match.

use crate::Error;
use crate::bundle::PassFiles;
use passnet_bench::signature::{Signature, signatures, step_lines};
use passnet_graph::{Diagnostic, Graph, GraphFiles};
use passnet_kernel::check::{self, proved_in_bounds};
use passnet_pass::load::{Bindings, LoadOptions, PassSet, load};
use passnet_pass::matcher::{MatchOptions, Pattern, TargetGraph, matches};
use passnet_pass::rules;
use passnet_pass::trace::{Dialect, Pass, trace};

/// Everything about a set of passes.
#[derive(Debug, Default)]
pub struct Inspection {
    pub passes: Vec<InspectedPass>,
    /// What could not be read.
    pub errors: Vec<String>,
}

#[derive(Debug)]
pub struct InspectedPass {
    pub name: String,
    /// What it replaces; `None` where it cannot be traced.
    pub pattern: Option<Graph>,
    pub rules: Vec<rules::Finding>,
    pub errors: Vec<String>,
    /// Graphs in which it matches, and in how many places.
    pub matches: Vec<(String, usize)>,
    pub plans: Vec<Plan>,
}

/// What a wrapper does for one signature.
#[derive(Debug)]
pub struct Plan {
    pub graph: String,
    pub sites: usize,
    pub steps: Vec<String>,
    /// Whether every access was proved to stay inside its buffer, without a run.
    pub is_proved: bool,
    pub findings: Vec<check::Finding>,
}

/// With what passes are held together.
#[derive(Debug, Default)]
pub struct Surroundings<'a> {
    /// Graphs of the task, whole: plans need types.
    pub graphs: Vec<GraphFiles>,
    /// Graphs in which the patterns are looked for.
    pub corpus: &'a [(String, Graph)],
    /// Whether kernels may be run to watch them; never where the passes are somebody else's and this is a server.
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
        for plan in &mut pass.plans {
            let findings = plan.findings.iter_mut();
            findings.for_each(|finding| finding.file = finding.file.replace(&place, ""));
        }
        found.passes.push(pass);
    }
    Ok(found)
}

fn matching(pass: &Pass, corpus: &[(String, Graph)]) -> Vec<(String, usize)> {
    let pattern = Pattern::new(&pass.pattern.graph);
    let options = MatchOptions::default();
    let places = |graph: &Graph| matches(&pattern, &TargetGraph::new(graph), &options).len();
    let all = corpus.iter().map(|(name, graph)| (name.clone(), places(graph)));
    all.filter(|(_, places)| *places > 0).collect()
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
        findings: Vec::new(),
    };
    let Ok(prepared) = fixture.prepare() else { return plan };
    plan.is_proved = prepared
        .launches()
        .all(|(launch, function)| proved_in_bounds(&fixture.plan, launch, function));
    if may_run && let Ok(wrapper) = fixture.wrapper() {
        let mut buffers = fixture.buffers(&prepared);
        let lent = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        let arguments = fixture.header.host_args();
        plan.findings = check::check(&fixture.modules, &wrapper, &arguments, &prepared, lent);
    }
    plan
}
