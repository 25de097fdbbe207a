//! Finding a pattern in a graph.
//!
//! The default semantics compares meaning: calls are laid out by the operation table on both sides, so that
//! `F.relu(x)`, `x.relu()` and `torch.relu(input=x)` are the same call, and a match is refused when taking
//! its nodes out would change what the rest of the graph computes. `reference` imitates torch.fx instead.
//!
//! # Where the default differs from torch.fx on purpose
//!
//! Each line names the test that shows it.
//!
//! More matches:
//! - spellings of one operation are one operation: `spellings_of_one_operation_meet`
//! - omitted defaults, keywords or positions: `defaults_and_keywords_do_not_matter`
//! - literals by value: `literals_are_compared_by_value_where_their_type_does_not_matter`
//! - operands in the other order, where no bit depends on it: `operands_are_exchanged_where_no_bit_depends_on_it`
//! - two arguments bound to one value: `two_arguments_may_stand_for_one_value`
//! - an unseen update in place: `an_update_in_place_may_stand_for_a_plain_operation_if_nobody_sees_it`
//! - results nobody uses: `a_result_nobody_uses_matches_and_changes_nothing`
//! - `x += y` in a pattern is an update: `in_place_updates_differ_between_the_dialects`
//! - whole regions under vmap: `a_region_under_vmap_is_taken_out_as_a_whole_or_not_at_all`
//!
//! Fewer, because the result would change:
//! - random and other effects: `random_nodes_are_never_taken_out`
//! - writes in between: `a_write_between_the_matched_nodes_is_respected`
//! - inputs that are updated: `an_input_updated_in_place_must_be_updated_by_the_pattern_too`
//! - views written later: `a_returned_view_must_not_be_written_later`
//!
//! torch.fx's own mistakes, shown live by `python -m passnet.parity.fx_matches bugs`:
//! - adjacent matches that refer to erased nodes: `adjacent_matches_do_not_refer_to_erased_nodes`
//! - false matches: `false_match_when_an_argument_is_bound_to_a_list_that_holds_a_matched_node`
//! - identity replacement: `identity_replacement_is_refused_while_tracing`
//! - a keyword named `out`: `a_keyword_named_out_is_a_write_like_any_other`
//! - use before definition with several outputs: `use_before_definition_with_several_outputs_is_sorted_out`
//! - `KeyError` for an operation that is absent: `an_operation_without_candidate_is_no_match_not_a_crash`

mod arguments;
mod compare;
mod difference;
mod pattern;
pub mod reference;
mod safety;
mod search;
mod target;

pub use difference::{Difference, DifferenceKind};
pub use pattern::Pattern;
pub use search::NearMiss;
pub use target::TargetGraph;

use passnet_graph::{Arg, NodeId};

/// How matches are looked for.
#[derive(Debug, Clone)]
pub struct MatchOptions {
    /// Whether the operands of `maximum` and `minimum` may be exchanged, too, which decides between 0.0 and -0.0. Those
    /// of sums, products and the like always may.
    pub commutative: bool,
    /// Bound on the work for one pattern and one graph.
    pub steps: usize,
}

impl Default for MatchOptions {
    fn default() -> Self {
        MatchOptions { commutative: false, steps: 2_000_000 }
    }
}

/// One place where the pattern fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// For every node of the pattern what it stands for: a node of the graph or, for an argument of the
    /// pattern, perhaps a literal.
    pub bindings: Vec<Arg>,
    /// The graph nodes that the pattern's calls stand for, in graph order.
    pub nodes: Vec<NodeId>,
    /// The graph nodes whose values the pattern returns, in the pattern's order.
    pub outputs: Vec<NodeId>,
}

/// What became of a search.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// In graph order, without overlaps.
    pub matches: Vec<Match>,
    /// Why there is no match, when there is none.
    pub miss: Option<Miss>,
}

/// Why a pattern does not match: the attempt that came closest.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "fields are what the sentence of their variant names")]
pub enum Miss {
    /// An operation of the pattern does not occur in the graph at all (or not often enough).
    Absent { pattern_node: NodeId, wanted: usize, found: usize },
    /// The deepest partial match and what stopped it.
    Partial(NearMiss),
    /// The search was given up: the pattern is too ambiguous.
    TooManySteps,
}

/// All matches of a pattern, in graph order, greedily without overlaps; and why there is none.
pub fn find(pattern: &Pattern<'_>, target: &TargetGraph<'_>, options: &MatchOptions) -> Outcome {
    if let Some(absent) = pattern.absent_from(target) {
        return Outcome { matches: Vec::new(), miss: Some(absent) };
    }
    let matches = matches(pattern, target, options);
    let miss = if matches.is_empty() { Some(why_not(pattern, target, options)) } else { None };
    Outcome { matches, miss }
}

/// The same without the reason: what a search over a corpus needs.
pub fn matches(
    pattern: &Pattern<'_>,
    target: &TargetGraph<'_>,
    options: &MatchOptions,
) -> Vec<Match> {
    let mut matches: Vec<Match> = Vec::new();
    if !pattern.may_occur_in(target) {
        return matches;
    }
    let Some((key, start)) = pattern.start_in(target) else { return matches };
    let mut search = search::Search::without_record(pattern, target, options);
    // For every node whether a match has it; empty until there is one.
    let mut taken: Vec<bool> = Vec::new();
    let is_taken = |taken: &[bool], id: NodeId| taken.get(id.index()).is_some_and(|taken| *taken);
    for candidate in target.with_key(key) {
        if is_taken(&taken, candidate) {
            continue;
        }
        if let Some(found) = search.from(start, candidate)
            && !found.nodes.iter().any(|node| is_taken(&taken, *node))
        {
            taken.resize(target.graph.nodes().len(), false);
            found.nodes.iter().for_each(|node| taken[node.index()] = true);
            matches.push(found);
        }
    }
    matches
}

/// The deepest attempt of a search that finds nothing.
fn why_not(pattern: &Pattern<'_>, target: &TargetGraph<'_>, options: &MatchOptions) -> Miss {
    let mut search = search::Search::new(pattern, target, options, 0);
    if let Some((key, start)) = pattern.start_in(target) {
        for candidate in target.with_key(key) {
            search.from(start, candidate);
        }
    }
    match search.best {
        Some(near) if !search.is_exhausted() => Miss::Partial(*near),
        _ => Miss::TooManySteps,
    }
}

/// The first match, if any: cheaper than [`find`] when one is enough.
pub fn find_first(
    pattern: &Pattern<'_>,
    target: &TargetGraph<'_>,
    options: &MatchOptions,
) -> Option<Match> {
    let (key, start) = pattern.may_occur_in(target).then(|| pattern.start_in(target))??;
    let mut search = search::Search::without_record(pattern, target, options);
    target.with_key(key).find_map(|candidate| search.from(start, candidate))
}

/// The closest place for a pattern that does not match: tried from each of its operations, with up to
/// `edits` differences overlooked. Fewer differences win, then more matched operations.
pub fn nearest(
    pattern: &Pattern<'_>,
    target: &TargetGraph<'_>,
    options: &MatchOptions,
    edits: usize,
) -> Option<NearMiss> {
    /// Places tried for each operation of the pattern; graphs repeat themselves.
    const CANDIDATES: usize = 64;
    let mut best: Option<NearMiss> = None;
    for allowed in 0..=edits {
        for start in pattern.calls() {
            let mut search = search::Search::new(pattern, target, options, allowed);
            let Some(key) = pattern.key(start) else { continue };
            for candidate in target.with_key(key).take(CANDIDATES) {
                if let Some(near) = search.near(start, candidate)
                    && is_close(&near, pattern)
                {
                    return Some(near);
                }
            }
            if let Some(partial) = search.best
                && best.as_ref().is_none_or(|best| partial.score() > best.score())
            {
                best = Some(*partial);
            }
        }
    }
    best
}

/// A place where most operations are other ones is not close, however few they are.
fn is_close(near: &NearMiss, pattern: &Pattern<'_>) -> bool {
    let other = near.differences.iter().filter(|d| d.kind == DifferenceKind::Operation).count();
    other * 2 <= pattern.graph.op_count()
}
