//! Why a pass does not match a graph, for a person or an agent that wants to change it.
//!
//! The closest place is found by searching again with a few differences overlooked; what was overlooked is the
//! answer. Every difference is shown on both sources, with what to change.

mod advice;
mod place;
mod render;

pub use place::Place;
pub use render::render;

use crate::load::Program;
use crate::matcher::{
    self, Difference, DifferenceKind, MatchOptions, Miss, NearMiss, Pattern, TargetGraph,
};
use crate::trace::Pass;
use passnet_graph::syntax::Source;
use passnet_graph::{Graph, NodeId};
use serde::Serialize;

/// Differences that are overlooked at most while the closest place is looked for.
const EDITS: usize = 3;

/// Why a pass matches a graph nowhere, or where it comes closest.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The name of the pass.
    pub pass: String,
    /// The name of the graph.
    pub graph: String,
    /// Number of places where the pass matches; the rest is about why there is none.
    pub matches: usize,
    /// The answer in one sentence.
    pub reason: String,
    /// How many operations of the pattern found a counterpart at the closest place, of how many.
    pub matched: usize,
    /// How many operations the pattern has.
    pub operations: usize,
    /// Whether the pass would match there but for the differences listed.
    pub complete: bool,
    /// What to change at the closest place.
    pub differences: Vec<Explained>,
    /// The operations of the pattern beside their counterparts.
    pub alignment: Vec<Aligned>,
}

/// One difference in words.
#[derive(Debug, Clone, Serialize)]
pub struct Explained {
    /// The kind of difference, as a word that programs compare.
    pub kind: &'static str,
    /// What is different, in one sentence.
    pub message: String,
    /// What to change in the pattern.
    pub change: String,
    /// Where the pattern says it.
    pub pattern: Place,
    /// Where the graph says it, where it does.
    pub graph: Option<Place>,
}

/// A pair of operations that were laid on each other.
#[derive(Debug, Clone, Serialize)]
pub struct Aligned {
    /// The pattern's side.
    pub pattern: Place,
    /// The graph's side; `None` where nothing stands there.
    pub graph: Option<Place>,
    /// Whether this pair is free of differences.
    pub fits: bool,
}

/// A graph with its name and, if it was read from a file, its text.
#[derive(Debug, Clone, Copy)]
pub struct NamedGraph<'a> {
    /// How messages call it.
    pub name: &'a str,
    /// What is matched.
    pub graph: &'a Graph,
    /// Its text, for lines and columns.
    pub source: Option<&'a Source>,
}

/// Explains one pass on one graph.
pub fn explain(
    program: &Program,
    pass: &Pass,
    named: NamedGraph<'_>,
    options: &MatchOptions,
) -> Explanation {
    let pattern = Pattern::new(&pass.pattern.graph);
    let target = TargetGraph::new(named.graph);
    let outcome = matcher::find(&pattern, &target, options);
    let mut explanation = Explanation {
        pass: pass.name.clone(),
        graph: named.name.to_string(),
        matches: outcome.matches.len(),
        reason: String::new(),
        matched: 0,
        operations: pass.pattern.graph.op_count(),
        complete: false,
        differences: Vec::new(),
        alignment: Vec::new(),
    };
    if let Some(first) = outcome.matches.first() {
        explanation.matched = explanation.operations;
        explanation.complete = true;
        explanation.reason = match outcome.matches.len() {
            1 => "matches at one place".into(),
            count => format!("matches at {count} places"),
        };
        let bindings: Vec<_> = first.bindings.iter().cloned().map(Some).collect();
        explanation.alignment = align(program, pass, named, &bindings, &[]);
        return explanation;
    }
    match matcher::nearest(&pattern, &target, options, EDITS) {
        None => {
            explanation.reason = advice::nothing_in_common(&pass.pattern.graph);
            explanation.alignment = align(program, pass, named, &[], &[]);
        }
        Some(near) => fill(&mut explanation, program, pass, named, &near),
    }
    explanation
}

/// Why there is no match, in one sentence, from what the search left behind: no second search.
pub fn brief(pass: &Pass, graph: &Graph, miss: &Miss) -> String {
    match miss {
        Miss::Absent { pattern_node, wanted, found } => {
            let name = advice::name_of(&pass.pattern.graph, *pattern_node);
            match found {
                0 => format!("the graph has no {name}"),
                _ => format!("the pattern has {wanted} of {name}, the graph {found}"),
            }
        }
        Miss::Partial(near) => {
            let words = near.differences.last().map(|d| advice::explain(d, pass, graph).message);
            partly(words.as_deref().unwrap_or(""), near.matched, &pass.pattern.graph)
        }
        Miss::TooManySteps => "the search was given up: the pattern fits in too many ways".into(),
    }
}

fn fill(
    explanation: &mut Explanation,
    program: &Program,
    pass: &Pass,
    named: NamedGraph<'_>,
    near: &NearMiss,
) {
    explanation.matched = near.matched;
    explanation.complete = near.complete;
    explanation.differences = near
        .differences
        .iter()
        .map(|difference| {
            let words = advice::explain(difference, pass, named.graph);
            Explained {
                kind: advice::kind_name(&difference.kind),
                message: words.message,
                change: words.change,
                pattern: Place::in_pass(program, pass, difference.pattern),
                graph: difference.graph.map(|id| Place::in_graph(named, id)),
            }
        })
        .collect();
    explanation.alignment = align(program, pass, named, &near.bindings, &near.differences);
    let count = near.differences.len();
    let first = explanation.differences.first().map_or("", |first| first.message.as_str());
    explanation.reason = match (near.complete, count) {
        (true, 1) => format!("one change away: {first}"),
        (true, _) => format!("{count} changes away; the first: {first}"),
        (false, _) => {
            let last = explanation.differences.last().map_or("", |last| last.message.as_str());
            partly(last, near.matched, &pass.pattern.graph)
        }
    };
}

/// What stopped a partial match, and how far it came.
fn partly(message: &str, matched: usize, pattern: &Graph) -> String {
    match pattern.op_count() {
        1 => message.to_string(),
        count => format!("{message} ({matched} of {count} operations found)"),
    }
}

fn align(
    program: &Program,
    pass: &Pass,
    named: NamedGraph<'_>,
    bindings: &[Option<passnet_graph::Arg>],
    differences: &[Difference],
) -> Vec<Aligned> {
    let graph = &pass.pattern.graph;
    let calls = graph.calls().map(|(id, _)| id);
    calls
        .map(|id| {
            let bound = bindings.get(id.index()).and_then(Option::as_ref);
            let counterpart: Option<NodeId> = bound.and_then(passnet_graph::Arg::as_node);
            let differs = differences.iter().find(|difference| difference.pattern == id);
            // Where another operation stands, that one is shown.
            let other = differs.filter(|difference| difference.kind == DifferenceKind::Operation);
            let shown = counterpart.or(other.and_then(|difference| difference.graph));
            Aligned {
                pattern: Place::in_pass(program, pass, id),
                graph: shown.map(|id| Place::in_graph(named, id)),
                fits: counterpart.is_some() && differs.is_none(),
            }
        })
        .collect()
}
