//! How widely a pass applies: over a corpus, in how many graphs, models and distinct structures it matches,
//! with which shapes and dtypes, and where one change would make it match.

use crate::explain::{Explanation, NamedGraph, brief, explain};
use crate::load::Program;
use crate::matcher::{DifferenceKind, MatchOptions, NearMiss, Pattern, TargetGraph, find, nearest};
use crate::trace::Pass;
use passnet_graph::infer::{Inference, infer_folder};
use passnet_graph::{Arg, Digest, Graph, GraphFolder, identify};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What one graph says about a pass.
#[derive(Debug, Clone)]
pub struct Observation {
    /// Where it matches, in order.
    pub matches: Vec<Site>,
    /// Why there is none, in one sentence.
    pub reason: Option<String>,
    /// Identity of the graph without literals, shapes and names.
    pub structure: Option<Digest>,
    /// The one change that would make the pass match, if there is one.
    pub near: Option<Box<Explanation>>,
}

/// Where a pass matches.
#[derive(Debug, Clone, Serialize)]
pub struct Site {
    /// Lines of the matched operations in `model.py`.
    pub lines: Vec<u32>,
    /// Types of the values that the pattern's arguments stand for.
    pub taps: Vec<String>,
    /// Their dtypes.
    pub dtypes: Vec<String>,
}

/// Looks at one graph.
pub fn observe(
    program: &Program,
    pass: &Pass,
    named: NamedGraph<'_>,
    folder: &GraphFolder,
    options: &MatchOptions,
) -> Observation {
    let pattern = Pattern::new(&pass.pattern.graph);
    let target = TargetGraph::new(named.graph);
    let found = find(&pattern, &target, options);
    if found.matches.is_empty() {
        // Only a graph that has all operations but one can be a single change away.
        let promising = pattern.lacking(&target) <= 1
            && nearest(&pattern, &target, options, 1)
                .is_some_and(|near| near.complete && is_telling(&near, &pattern));
        let near = promising.then(|| Box::new(explain(program, pass, named, options)));
        let reason = found.miss.map(|miss| brief(pass, named.graph, &miss));
        return Observation { matches: Vec::new(), reason, structure: None, near };
    }
    let taps = pass.pattern.graph.placeholder_count();
    let types = infer_folder(folder);
    let sites = found.matches.iter().map(|found| Site {
        lines: found.nodes.iter().map(|id| named.graph.node(*id).line).collect(),
        taps: found.bindings.iter().take(taps).map(|arg| tap(named.graph, &types, arg)).collect(),
        dtypes: found.bindings.iter().take(taps).filter_map(|arg| dtype(&types, arg)).collect(),
    });
    Observation {
        matches: sites.collect(),
        reason: None,
        structure: Some(identify(named.graph, &folder.metas).structure),
        near: None,
    }
}

/// In a pattern of two operations, another one in place of either is no near miss but half a pattern.
fn is_telling(near: &NearMiss, pattern: &Pattern<'_>) -> bool {
    let other = near.differences.iter().filter(|d| d.kind == DifferenceKind::Operation).count();
    other * 2 < pattern.graph.op_count()
}

fn tap(graph: &Graph, types: &Inference, arg: &Arg) -> String {
    match arg {
        Arg::Node(id) => types.value(*id).to_string(),
        literal => passnet_graph::print::print_arg(graph, literal),
    }
}

fn dtype(types: &Inference, arg: &Arg) -> Option<String> {
    types.value(arg.as_node()?).as_tensor().map(|tensor| tensor.dtype.to_string())
}

/// What a corpus says about a pass.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Generality {
    /// The name of the pass.
    pub pass: String,
    /// How many graphs were looked at.
    pub graphs: usize,
    /// How many of them it matches.
    pub graphs_matched: usize,
    /// Matches in all graphs together.
    pub matches: usize,
    /// Models with a match.
    pub models_matched: usize,
    /// Different structures among the graphs with a match.
    pub structures_matched: usize,
    /// Shapes and dtypes of the arguments, with the number of matches that have them.
    pub taps: BTreeMap<String, usize>,
    /// Types of the arguments, with the number of arguments that have them.
    pub dtypes: BTreeMap<String, usize>,
    /// Single changes that would make more graphs match, with how many and an example.
    pub near_misses: BTreeMap<String, NearMissCount>,
    /// What stopped the closest attempt in the other graphs without a match, with how many graphs.
    pub reasons: BTreeMap<String, usize>,
    #[serde(skip)]
    models: BTreeSet<String>,
    #[serde(skip)]
    structures: BTreeSet<[u8; 32]>,
}

/// Graphs that the pass would match after one and the same change.
#[derive(Debug, Clone, Serialize)]
pub struct NearMissCount {
    /// How many there are.
    pub graphs: usize,
    /// The name of one of them.
    pub example: String,
    /// What would have to change in the pattern.
    pub change: String,
}

impl Generality {
    /// Of a pass that has seen no graph yet.
    pub fn new(pass: &str) -> Self {
        Generality { pass: pass.to_string(), ..Self::default() }
    }

    /// Adds one graph of one model.
    pub fn add(&mut self, model: &str, graph: &str, observation: &Observation) {
        self.graphs += 1;
        if let Some(near) = &observation.near
            && let Some(difference) = near.differences.first()
        {
            let change = difference.change.clone();
            let fresh = || NearMissCount { graphs: 0, example: graph.to_string(), change };
            self.near_misses.entry(difference.message.clone()).or_insert_with(fresh).graphs += 1;
        }
        if observation.matches.is_empty() {
            if let (None, Some(reason)) = (&observation.near, &observation.reason) {
                *self.reasons.entry(reason.clone()).or_insert(0) += 1;
            }
            return;
        }
        self.graphs_matched += 1;
        self.matches += observation.matches.len();
        self.models.insert(model.to_string());
        self.models_matched = self.models.len();
        if let Some(structure) = &observation.structure {
            self.structures.insert(*structure.as_bytes());
            self.structures_matched = self.structures.len();
        }
        for site in &observation.matches {
            *self.taps.entry(site.taps.join(", ")).or_insert(0) += 1;
            for dtype in &site.dtypes {
                *self.dtypes.entry(dtype.clone()).or_insert(0) += 1;
            }
        }
    }
}
