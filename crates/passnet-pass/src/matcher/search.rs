//! The search itself: bind a call of the pattern to a call of the graph, walk up through the arguments, then
//! out to users that are not bound yet. Choices (users, swapped operands) are undone by a trail.
//!
//! Most attempts fail at once, so failing costs nothing but the comparisons: no list on the heap, no difference
//! put into words unless somebody asked for the reason.

use super::compare::{exchangeable, joins};
use super::{Difference, DifferenceKind, Match, MatchOptions, Pattern, TargetGraph, safety};
use passnet_graph::{Arg, NodeId};
use smallvec::{SmallVec, smallvec};

/// An attempt that failed, or would have without some differences.
#[derive(Debug, Clone)]
pub struct NearMiss {
    /// What each node of the pattern was bound to.
    pub bindings: Vec<Option<Arg>>,
    /// How many operations of the pattern were bound.
    pub matched: usize,
    /// What differs. If `complete`, nothing else does.
    pub differences: Vec<Difference>,
    /// Whether the differences are all that keeps the pattern from matching here.
    pub complete: bool,
}

impl NearMiss {
    /// How good a miss is: operations that fit, less differences that were overlooked on the way.
    pub fn score(&self) -> isize {
        self.matched as isize - self.differences.len() as isize + 1
    }
}

/// What a node of the pattern stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Binding<'g> {
    Free,
    Node(NodeId),
    /// Only for arguments of the pattern: a literal, or a list with nodes in it.
    Value(&'g Arg),
}

impl Binding<'_> {
    pub(super) fn node(self) -> Option<NodeId> {
        match self {
            Binding::Node(id) => Some(id),
            Binding::Free | Binding::Value(_) => None,
        }
    }

    pub(super) fn for_each_node(self, visit: &mut impl FnMut(NodeId)) {
        match self {
            Binding::Free => {}
            Binding::Node(id) => visit(id),
            Binding::Value(arg) => arg.for_each_node(visit),
        }
    }

    pub(super) fn arg(self) -> Option<Arg> {
        match self {
            Binding::Free => None,
            Binding::Node(id) => Some(Arg::Node(id)),
            Binding::Value(arg) => Some(arg.clone()),
        }
    }
}

pub(super) struct Search<'s, 'p, 'g> {
    pub(super) pattern: &'s Pattern<'p>,
    pub(super) target: &'s TargetGraph<'g>,
    options: &'s MatchOptions,
    pub(super) bindings: SmallVec<[Binding<'g>; 24]>,
    /// Pattern nodes in the order in which they were bound.
    trail: SmallVec<[NodeId; 24]>,
    matched: usize,
    /// Differences overlooked so far, and how many may be.
    overlooked: Vec<Difference>,
    allowed: usize,
    steps: usize,
    /// Whether failed attempts are remembered: it costs more than most searches.
    records: bool,
    pub best: Option<Box<NearMiss>>,
}

/// Pairs of calls still to be compared.
pub(super) type Todo = SmallVec<[(NodeId, NodeId); 16]>;

impl<'s, 'p, 'g> Search<'s, 'p, 'g> {
    /// A search that says where the pattern fits, and why it does not elsewhere.
    pub(super) fn new(
        pattern: &'s Pattern<'p>,
        target: &'s TargetGraph<'g>,
        options: &'s MatchOptions,
        allowed: usize,
    ) -> Self {
        Search { records: true, allowed, ..Self::without_record(pattern, target, options) }
    }

    /// A search that only says where the pattern fits.
    pub(super) fn without_record(
        pattern: &'s Pattern<'p>,
        target: &'s TargetGraph<'g>,
        options: &'s MatchOptions,
    ) -> Self {
        Search {
            pattern,
            target,
            options,
            bindings: smallvec![Binding::Free; pattern.graph.nodes().len()],
            trail: SmallVec::new(),
            matched: 0,
            overlooked: Vec::new(),
            allowed: 0,
            steps: 0,
            records: false,
            best: None,
        }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.steps > self.options.steps
    }

    /// The match in which `start` stands for `candidate`.
    pub(super) fn from(&mut self, start: NodeId, candidate: NodeId) -> Option<Match> {
        let found = self.solve(smallvec![(start, candidate)]).then(|| self.accepted());
        self.undo(0, 0);
        found
    }

    /// The same, with some differences overlooked.
    pub(super) fn near(&mut self, start: NodeId, candidate: NodeId) -> Option<NearMiss> {
        let found = self.solve(smallvec![(start, candidate)]).then(|| NearMiss {
            bindings: self.bound_values(),
            matched: self.matched,
            differences: self.overlooked.clone(),
            complete: true,
        });
        self.undo(0, 0);
        found
    }

    fn bound_values(&self) -> Vec<Option<Arg>> {
        self.bindings.iter().map(|binding| binding.arg()).collect()
    }

    fn accepted(&self) -> Match {
        let node = |id: &NodeId| self.graph_node(*id);
        let mut nodes: Vec<NodeId> = self.pattern.calls().filter_map(|id| node(&id)).collect();
        nodes.sort_unstable();
        Match {
            bindings: self.bindings.iter().map(|b| b.arg().unwrap_or(Arg::None)).collect(),
            nodes,
            outputs: self.pattern.outputs().iter().filter_map(node).collect(),
        }
    }

    pub(super) fn graph_node(&self, pattern: NodeId) -> Option<NodeId> {
        self.bindings[pattern.index()].node()
    }

    fn undo(&mut self, trail: usize, overlooked: usize) {
        while self.trail.len() > trail {
            if let Some(id) = self.trail.pop() {
                self.bindings[id.index()] = Binding::Free;
                self.matched -= usize::from(!self.pattern.is_placeholder(id));
            }
        }
        self.overlooked.truncate(overlooked);
    }

    fn solve(&mut self, mut todo: Todo) -> bool {
        while let Some((pattern, graph)) = todo.pop() {
            self.steps += 1;
            if self.is_exhausted() {
                return false;
            }
            match self.enter(pattern, graph) {
                Entered::Known => {}
                Entered::Refused => return false,
                Entered::Other => {
                    if !self.compare_loosely(pattern, graph, &mut todo) {
                        return false;
                    }
                }
                Entered::New => match self.orders(pattern, graph) {
                    Orders::Both => return self.try_both_orders(pattern, graph, &todo),
                    only => {
                        if !self.arguments(pattern, graph, only == Orders::Swapped, &mut todo) {
                            return false;
                        }
                    }
                },
            }
        }
        self.extend()
    }

    fn try_both_orders(&mut self, pattern: NodeId, graph: NodeId, todo: &Todo) -> bool {
        let marks = (self.trail.len(), self.overlooked.len());
        for swapped in [false, true] {
            let mut todo = todo.clone();
            if self.arguments(pattern, graph, swapped, &mut todo) && self.solve(todo) {
                return true;
            }
            self.undo(marks.0, marks.1);
        }
        false
    }

    /// Every started branch is finished: go on with a user of a bound value, or check the whole match.
    fn extend(&mut self) -> bool {
        if self.matched == self.pattern.graph.op_count() {
            return self.check();
        }
        let bound = |id: NodeId| !matches!(self.bindings[id.index()], Binding::Free);
        let next = self.pattern.calls().find(|&id| {
            let mut reached = false;
            if let (false, Some(call)) = (bound(id), self.pattern.call(id)) {
                call.for_each_input(|input| reached |= self.graph_node(input).is_some());
            }
            reached
        });
        let next = next.or_else(|| self.pattern.calls().find(|&id| !bound(id)));
        let Some(next) = next else { return self.check() };
        let mut from = None;
        if let Some(call) = self.pattern.call(next) {
            call.for_each_input(|input| from = from.or(self.graph_node(input)));
        }
        self.try_candidates(next, from)
    }

    /// Tries every place for a call of the pattern: the users of a value, or the whole graph.
    fn try_candidates(&mut self, next: NodeId, from: Option<NodeId>) -> bool {
        let key = self.pattern.key(next);
        let target = self.target;
        let marks = (self.trail.len(), self.overlooked.len());
        let mut found_any = false;
        let attempt = |search: &mut Self, candidate: NodeId| {
            let found = search.solve(smallvec![(next, candidate)]);
            if !found {
                search.undo(marks.0, marks.1);
            }
            found
        };
        match from {
            None => {
                for candidate in key.into_iter().flat_map(|key| target.with_key(key)) {
                    found_any = true;
                    if attempt(self, candidate) {
                        return true;
                    }
                }
            }
            Some(from) => {
                let users = target.users(from);
                let same_key = |id: NodeId| target.key(id) == key;
                for &candidate in users.iter().filter(|id| same_key(**id)) {
                    found_any = true;
                    if attempt(self, candidate) {
                        return true;
                    }
                }
                if self.overlooked.len() < self.allowed {
                    for &candidate in users.iter().filter(|id| !same_key(**id)) {
                        if attempt(self, candidate) {
                            return true;
                        }
                    }
                }
            }
        }
        if !found_any {
            let kind = DifferenceKind::NoUser;
            self.differs(|| Difference { pattern: next, graph: from, kind });
        }
        false
    }

    /// Checks that concern the match as a whole.
    fn check(&mut self) -> bool {
        let first_only = !self.wants_reasons();
        for difference in safety::check(self.pattern, self.target, &self.bindings, first_only) {
            if !self.differs(|| difference) {
                return false;
            }
        }
        true
    }

    /// Whether anybody wants to know what differs.
    fn wants_reasons(&self) -> bool {
        self.records || self.allowed > 0
    }

    /// Notes a difference: true if it may be overlooked.
    fn differs(&mut self, describe: impl FnOnce() -> Difference) -> bool {
        if !self.wants_reasons() {
            return false;
        }
        let difference = describe();
        if self.overlooked.len() < self.allowed && difference.kind.is_edit() {
            self.overlooked.push(difference);
            return true;
        }
        let score = self.matched as isize - self.overlooked.len() as isize;
        if self.best.as_ref().is_none_or(|best| score > best.score()) {
            let mut differences = self.overlooked.clone();
            differences.push(difference);
            self.best = Some(Box::new(NearMiss {
                bindings: self.bound_values(),
                matched: self.matched,
                differences,
                complete: false,
            }));
        }
        false
    }

    /// Notes a difference between two calls: true if it may be overlooked.
    pub(super) fn difference(
        &mut self,
        pattern: NodeId,
        graph: NodeId,
        kind: impl FnOnce() -> DifferenceKind,
    ) -> bool {
        self.differs(|| Difference { pattern, graph: Some(graph), kind: kind() })
    }

    /// Binds a call of the pattern to a node of the graph.
    fn enter(&mut self, pattern: NodeId, graph: NodeId) -> Entered {
        if let Some(known) = self.graph_node(pattern) {
            let same = known == graph
                || self.difference(pattern, graph, || DifferenceKind::NotTheSame {
                    parameter: "".into(),
                });
            return if same { Entered::Known } else { Entered::Refused };
        }
        let Some(call) = self.target.graph.call(graph) else {
            self.difference(pattern, graph, || DifferenceKind::NotComputed);
            return Entered::Refused;
        };
        let same = self.target.key(graph) == self.pattern.key(pattern);
        let may_fit = same && self.pattern.inputs_may_fit(pattern, self.target, call);
        if !self.wants_reasons() && !may_fit {
            return Entered::Refused;
        }
        let is_taken =
            |id: &NodeId| !self.pattern.is_placeholder(*id) && self.graph_node(*id) == Some(graph);
        if self.trail.iter().any(is_taken) {
            self.difference(pattern, graph, || DifferenceKind::Shared);
            return Entered::Refused;
        }
        if !same && !self.difference(pattern, graph, || DifferenceKind::Operation) {
            return Entered::Refused;
        }
        self.bind(pattern, Binding::Node(graph));
        self.matched += 1;
        if same { Entered::New } else { Entered::Other }
    }

    pub(super) fn bind(&mut self, pattern: NodeId, value: Binding<'g>) {
        self.bindings[pattern.index()] = value;
        self.trail.push(pattern);
    }

    /// In which orders the operands of a call of the pattern may stand for those of a call of the graph.
    fn orders(&self, pattern: NodeId, graph: NodeId) -> Orders {
        let (Some(p), Some(g)) = (self.pattern.bound(pattern), self.target.bound(graph)) else {
            return Orders::Straight;
        };
        let also_extremes = self.options.commutative;
        let (Some(own), Some(found)) =
            (exchangeable(p, also_extremes), exchangeable(g, also_extremes))
        else {
            return Orders::Straight;
        };
        let may_fit = |swapped: usize| {
            (0..2).all(|index| self.operand_may_fit(own[index], found[index ^ swapped]))
        };
        if !may_fit(1) || joins(self.pattern.graph, own) || joins(self.target.graph, found) {
            Orders::Straight
        } else if may_fit(0) {
            Orders::Both
        } else {
            Orders::Swapped
        }
    }

    /// What fails this cannot match, whatever follows.
    fn operand_may_fit(&self, own: &Arg, found: &Arg) -> bool {
        match own {
            Arg::Node(id) if self.pattern.is_placeholder(*id) => {
                match (self.bindings[id.index()], found) {
                    (Binding::Node(known), Arg::Node(found)) => known == *found,
                    (Binding::Node(_), _) | (Binding::Value(_), Arg::Node(_)) => false,
                    _ => true,
                }
            }
            Arg::Node(id) => {
                let key = self.pattern.key(*id);
                found.as_node().is_some_and(|found| self.target.key(found) == key)
            }
            _ => found.as_node().is_none(),
        }
    }
}

/// In which order two operands are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Orders {
    Straight,
    Swapped,
    Both,
}

enum Entered {
    /// Bound before, to the same node.
    Known,
    New,
    /// Bound although the operation differs.
    Other,
    Refused,
}
