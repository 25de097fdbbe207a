//! The search itself: bind a call of the pattern to a call of the graph, walk up through the arguments, then
//! out to users that are not bound yet. Choices (users, swapped operands) are undone by a trail.

use super::compare::{is_commutative, is_irrelevant, same_literal};
use super::{Difference, DifferenceKind, Match, MatchOptions, Pattern, TargetGraph, safety};
use passnet_graph::ops::{Bound, Op, ParamType, Value};
use passnet_graph::{Arg, Call, NodeId};

/// An attempt that failed, or would have without some differences.
#[derive(Debug, Clone)]
pub struct NearMiss {
    /// What each node of the pattern was bound to.
    pub bindings: Vec<Option<Arg>>,
    /// How many operations of the pattern were bound.
    pub matched: usize,
    /// What differs. If `complete`, nothing else does.
    pub differences: Vec<Difference>,
    pub complete: bool,
}

impl NearMiss {
    /// How good a miss is: operations that fit, less differences that were overlooked on the way.
    pub fn score(&self) -> isize {
        self.matched as isize - self.differences.len() as isize + 1
    }
}

pub(super) struct Search<'s, 'p, 'g> {
    pattern: &'s Pattern<'p>,
    target: &'s TargetGraph<'g>,
    options: &'s MatchOptions,
    bindings: Vec<Option<Arg>>,
    /// Pattern nodes in the order in which they were bound.
    trail: Vec<NodeId>,
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
type Todo = Vec<(NodeId, NodeId)>;

impl<'s, 'p, 'g> Search<'s, 'p, 'g> {
    pub(super) fn new(
        pattern: &'s Pattern<'p>,
        target: &'s TargetGraph<'g>,
        options: &'s MatchOptions,
        allowed: usize,
    ) -> Self {
        Search {
            pattern,
            target,
            options,
            bindings: vec![None; pattern.graph.nodes().len()],
            trail: Vec::new(),
            matched: 0,
            overlooked: Vec::new(),
            allowed,
            steps: 0,
            records: true,
            best: None,
        }
    }

    /// A search that only says where the pattern fits, not why it does not elsewhere.
    pub(super) fn without_record(mut self) -> Self {
        self.records = false;
        self
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.steps > self.options.steps
    }

    /// The match in which `start` stands for `candidate`.
    pub(super) fn from(&mut self, start: NodeId, candidate: NodeId) -> Option<Match> {
        let found = self.solve(vec![(start, candidate)]).then(|| self.accepted());
        self.undo(0, 0);
        found
    }

    /// The same, with some differences overlooked.
    pub(super) fn near(&mut self, start: NodeId, candidate: NodeId) -> Option<NearMiss> {
        let found = self.solve(vec![(start, candidate)]).then(|| NearMiss {
            bindings: self.bindings.clone(),
            matched: self.matched,
            differences: self.overlooked.clone(),
            complete: true,
        });
        self.undo(0, 0);
        found
    }

    fn accepted(&self) -> Match {
        let node = |id: &NodeId| self.graph_node(*id);
        let mut nodes: Vec<NodeId> = self.pattern.calls().filter_map(|id| node(&id)).collect();
        nodes.sort_unstable();
        Match {
            bindings: self.bindings.iter().map(|b| b.clone().unwrap_or(Arg::None)).collect(),
            nodes,
            outputs: self.pattern.outputs().iter().filter_map(node).collect(),
        }
    }

    pub(super) fn graph_node(&self, pattern: NodeId) -> Option<NodeId> {
        self.bindings[pattern.index()].as_ref().and_then(Arg::as_node)
    }

    fn undo(&mut self, trail: usize, overlooked: usize) {
        while self.trail.len() > trail {
            if let Some(id) = self.trail.pop() {
                self.bindings[id.index()] = None;
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
                Entered::New => match self.swappable(pattern) {
                    None => {
                        if !self.arguments(pattern, graph, false, &mut todo) {
                            return false;
                        }
                    }
                    Some(()) => return self.try_both_orders(pattern, graph, &todo),
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
        let bound = |id: NodeId| self.bindings[id.index()].is_some();
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
        let key = self.pattern.key(next);
        let target = self.target;
        let marks = (self.trail.len(), self.overlooked.len());
        let mut found_any = false;
        let attempt = |search: &mut Self, candidate: NodeId| {
            let found = search.solve(vec![(next, candidate)]);
            if !found {
                search.undo(marks.0, marks.1);
            }
            found
        };
        match from {
            None => {
                for candidate in target.with_key(key) {
                    found_any = true;
                    if attempt(self, candidate) {
                        return true;
                    }
                }
            }
            Some(from) => {
                let users = target.users(from);
                let same_key = |id: NodeId| target.key(id) == Some(key);
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
            self.differs(Difference { pattern: next, graph: from, kind });
        }
        false
    }

    /// Checks that concern the match as a whole.
    fn check(&mut self) -> bool {
        let first_only = !self.records && self.allowed == 0;
        for difference in safety::check(self.pattern, self.target, &self.bindings, first_only) {
            if !self.differs(difference) {
                return false;
            }
        }
        true
    }

    /// Notes a difference: true if it may be overlooked.
    fn differs(&mut self, difference: Difference) -> bool {
        if self.overlooked.len() < self.allowed && difference.kind.is_edit() {
            self.overlooked.push(difference);
            return true;
        }
        if !self.records {
            return false;
        }
        let score = self.matched as isize - self.overlooked.len() as isize;
        if self.best.as_ref().is_none_or(|best| score > best.score()) {
            let mut differences = self.overlooked.clone();
            differences.push(difference);
            self.best = Some(Box::new(NearMiss {
                bindings: self.bindings.clone(),
                matched: self.matched,
                differences,
                complete: false,
            }));
        }
        false
    }

    fn difference(&mut self, pattern: NodeId, graph: NodeId, kind: DifferenceKind) -> bool {
        self.differs(Difference { pattern, graph: Some(graph), kind })
    }

    /// Binds a call of the pattern to a node of the graph.
    fn enter(&mut self, pattern: NodeId, graph: NodeId) -> Entered {
        if let Some(known) = self.graph_node(pattern) {
            if known == graph {
                return Entered::Known;
            }
            let kind = DifferenceKind::NotTheSame { parameter: "".into() };
            return if self.difference(pattern, graph, kind) {
                Entered::Known
            } else {
                Entered::Refused
            };
        }
        if self.target.key(graph).is_none() {
            self.difference(pattern, graph, DifferenceKind::NotComputed);
            return Entered::Refused;
        }
        if self
            .trail
            .iter()
            .any(|&id| !self.pattern.is_placeholder(id) && self.graph_node(id) == Some(graph))
        {
            self.difference(pattern, graph, DifferenceKind::Shared);
            return Entered::Refused;
        }
        let same = self.target.key(graph) == Some(self.pattern.key(pattern));
        if !same && !self.difference(pattern, graph, DifferenceKind::Operation) {
            return Entered::Refused;
        }
        self.bind(pattern, Arg::Node(graph));
        self.matched += 1;
        if same { Entered::New } else { Entered::Other }
    }

    fn bind(&mut self, pattern: NodeId, value: Arg) {
        self.bindings[pattern.index()] = Some(value);
        self.trail.push(pattern);
    }

    fn swappable(&self, pattern: NodeId) -> Option<()> {
        let op = self.pattern.call(pattern)?.op()?;
        (self.options.commutative && is_commutative(op)).then_some(())
    }

    /// After a difference of operation, the inputs are still paired, in order, as far as they go.
    fn compare_loosely(&mut self, pattern: NodeId, graph: NodeId, todo: &mut Todo) -> bool {
        let (Some(p), Some(g)) = (self.pattern.call(pattern), self.target.graph.call(graph)) else {
            return false;
        };
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        p.for_each_input(|id| wanted.push(id));
        g.for_each_input(|id| found.push(id));
        let site = Site { pattern, graph, op: None, ty: ParamType::Any, parameter: "input" };
        wanted
            .into_iter()
            .zip(found)
            .all(|(p, g)| self.unify(&Arg::Node(p), &Arg::Node(g), &site, todo))
    }

    fn arguments(
        &mut self,
        pattern: NodeId,
        graph: NodeId,
        swapped: bool,
        todo: &mut Todo,
    ) -> bool {
        let Some(g_call) = self.target.graph.call(graph) else { return false };
        let Some(p_call) = self.pattern.call(pattern) else { return false };
        let search_pattern = self.pattern;
        match (search_pattern.bound(pattern), g_call.bind()) {
            (Some(p), Ok(g)) => {
                if p.is_in_place() != g.is_in_place() {
                    let in_pattern = p.is_in_place();
                    // An update in place may stand for a plain operation where nothing sees the difference:
                    // that is decided once the whole match is known.
                    if in_pattern
                        && !self.difference(pattern, graph, DifferenceKind::InPlace { in_pattern })
                    {
                        return false;
                    }
                }
                self.bound_arguments(pattern, graph, p, &g, swapped, todo)
            }
            (None, Err(_)) => self.raw_arguments(pattern, graph, p_call, g_call, todo),
            _ => self.difference(pattern, graph, DifferenceKind::Arguments),
        }
    }

    fn bound_arguments(
        &mut self,
        pattern: NodeId,
        graph: NodeId,
        p: &Bound<'_>,
        g: &Bound<'_>,
        swapped: bool,
        todo: &mut Todo,
    ) -> bool {
        let same_layout = std::ptr::eq(p.signature, g.signature)
            || p.signature.params.len() == g.signature.params.len();
        if !same_layout {
            return self.by_name(pattern, graph, p, g, todo);
        }
        // Backwards, so that the first argument is looked at first when the pairs are popped.
        for (index, param) in p.signature.params.iter().enumerate().rev() {
            if is_irrelevant(param.name) {
                continue;
            }
            let other = match index {
                0 | 1 if swapped => 1 - index,
                _ => index,
            };
            let site = Site { pattern, graph, op: Some(p.op), ty: param.ty, parameter: param.name };
            if !self.unify_values(p.values[index], g.values[other], &site, todo) {
                return false;
            }
        }
        true
    }

    /// Two overloads of one operation: parameters meet by name, and what only one side has must be at its
    /// default.
    fn by_name(
        &mut self,
        pattern: NodeId,
        graph: NodeId,
        p: &Bound<'_>,
        g: &Bound<'_>,
        todo: &mut Todo,
    ) -> bool {
        for (index, param) in p.signature.params.iter().enumerate().rev() {
            if is_irrelevant(param.name) {
                continue;
            }
            let site = Site { pattern, graph, op: Some(p.op), ty: param.ty, parameter: param.name };
            let fits = match g.signature.position(param.name) {
                Some(other) => self.unify_values(p.values[index], g.values[other], &site, todo),
                None => {
                    is_default(p.values[index], param.default.as_ref())
                        || self.difference(pattern, graph, DifferenceKind::Arguments)
                }
            };
            if !fits {
                return false;
            }
        }
        let only_in_graph = g.signature.params.iter().zip(&g.values).all(|(param, value)| {
            is_irrelevant(param.name)
                || p.has(param.name)
                || is_default(*value, param.default.as_ref())
        });
        only_in_graph || self.difference(pattern, graph, DifferenceKind::Arguments)
    }

    /// Calls the table does not know are compared as they are written.
    fn raw_arguments(
        &mut self,
        pattern: NodeId,
        graph: NodeId,
        p: &Call,
        g: &Call,
        todo: &mut Todo,
    ) -> bool {
        let names =
            |call: &Call| call.kwargs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        if p.target != g.target || p.args.len() != g.args.len() || names(p) != names(g) {
            return self.difference(pattern, graph, DifferenceKind::Arguments);
        }
        let site = Site { pattern, graph, op: None, ty: ParamType::Any, parameter: "argument" };
        p.all_args().zip(g.all_args()).all(|(p, g)| self.unify(p, g, &site, todo))
    }

    fn unify_values(
        &mut self,
        p: Value<'_>,
        g: Value<'_>,
        site: &Site<'_>,
        todo: &mut Todo,
    ) -> bool {
        match (p, g) {
            (Value::Rest(p), Value::Rest(g)) => self.unify_items(p, g, site, todo),
            (Value::Given(Arg::Node(_)), Value::Default(_)) => {
                let kind = DifferenceKind::Omitted { parameter: site.parameter.into() };
                self.difference(site.pattern, site.graph, kind)
            }
            (Value::Given(p) | Value::Default(p), Value::Given(g) | Value::Default(g)) => {
                self.unify(p, g, site, todo)
            }
            (Value::Rest(p), Value::Given(g) | Value::Default(g)) => {
                let g = g.as_sequence().unwrap_or(std::slice::from_ref(g));
                self.unify_items(p, g, site, todo)
            }
            (Value::Given(p) | Value::Default(p), Value::Rest(g)) => {
                let p = p.as_sequence().unwrap_or(std::slice::from_ref(p));
                self.unify_items(p, g, site, todo)
            }
        }
    }

    fn unify_items(&mut self, p: &[Arg], g: &[Arg], site: &Site<'_>, todo: &mut Todo) -> bool {
        if p.len() != g.len() {
            let parameter = site.parameter.into();
            let kind = DifferenceKind::Length { parameter, pattern: p.len(), graph: g.len() };
            return self.difference(site.pattern, site.graph, kind);
        }
        p.iter().zip(g).rev().all(|(p, g)| self.unify(p, g, site, todo))
    }

    fn unify(&mut self, p: &Arg, g: &Arg, site: &Site<'_>, todo: &mut Todo) -> bool {
        let parameter = || site.parameter.into();
        match (p, g) {
            (Arg::Node(p), g) if self.pattern.is_placeholder(*p) => self.placeholder(*p, g, site),
            (Arg::Node(p), Arg::Node(g)) => {
                todo.push((*p, *g));
                true
            }
            (Arg::Node(_), _) => {
                let kind = DifferenceKind::NotComputed;
                self.difference(site.pattern, site.graph, kind)
            }
            (literal, Arg::Node(_)) => {
                let literal = literal.clone();
                let kind = DifferenceKind::LiteralOrValue {
                    parameter: parameter(),
                    literal,
                    in_pattern: true,
                };
                self.difference(site.pattern, site.graph, kind)
            }
            (
                Arg::Tuple(p_items) | Arg::List(p_items),
                Arg::Tuple(g_items) | Arg::List(g_items),
            ) => self.unify_items(p_items, g_items, site, todo),
            (Arg::Slice(p), Arg::Slice(g)) => self.unify_items(&p[..], &g[..], site, todo),
            (p, g) => {
                same_literal(p, g, site.ty, site.op) || {
                    let (pattern, graph) = (p.clone(), g.clone());
                    let kind = DifferenceKind::Literal { parameter: parameter(), pattern, graph };
                    self.difference(site.pattern, site.graph, kind)
                }
            }
        }
    }

    /// An argument of the pattern stands for any value, the same wherever it is used.
    fn placeholder(&mut self, p: NodeId, g: &Arg, site: &Site<'_>) -> bool {
        match &self.bindings[p.index()] {
            None => {
                self.bind(p, g.clone());
                true
            }
            Some(known) => {
                same_literal(known, g, ParamType::Any, None) || {
                    let kind = DifferenceKind::NotTheSame { parameter: site.parameter.into() };
                    self.difference(site.pattern, site.graph, kind)
                }
            }
        }
    }
}

enum Entered {
    /// Bound before, to the same node.
    Known,
    New,
    /// Bound although the operation differs.
    Other,
    Refused,
}

/// Where two arguments are compared.
struct Site<'a> {
    pattern: NodeId,
    graph: NodeId,
    op: Option<Op>,
    ty: ParamType,
    parameter: &'a str,
}

fn is_default(value: Value<'_>, default: Option<&Arg>) -> bool {
    match value {
        Value::Default(_) => true,
        Value::Given(arg) => default == Some(arg),
        Value::Rest(items) => items.is_empty(),
    }
}
