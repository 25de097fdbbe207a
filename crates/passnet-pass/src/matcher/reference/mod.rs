//! The reference's semantics: torch.fx's `SubgraphMatcher` with literals compared, on a pattern whose calls are
//! laid out by Python's signatures while the graph's are left as written.
//!
//! Targets are compared by identity of the Python object, arguments by position and keyword order, literals by
//! type and value. Where torch.fx raises an exception, so does this.

mod functions;

pub use functions::normalise;

use super::search::Binding;
use super::target::{Key, KeySet, edge_key, key_of};
use super::{Match, TargetGraph};
use functions::identity;
use passnet_graph::graph::CalleeKind;
use passnet_graph::{Arg, Call, Graph, NodeId};
use smallvec::SmallVec;
use std::fmt;

/// Why the reference fails on a pattern instead of answering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferenceError {
    /// An argument of the pattern, or an operation without a candidate, is not bound when a match is complete:
    /// torch.fx raises `KeyError`.
    Unbound,
    /// The search was given up.
    TooManySteps,
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReferenceError::Unbound => {
                "torch.fx raises KeyError: a part of the pattern has no counterpart in the graph"
            }
            ReferenceError::TooManySteps => "the search was given up",
        })
    }
}

impl std::error::Error for ReferenceError {}

const MAX_STEPS: usize = 5_000_000;

/// A pattern as the reference's tracer leaves it (see [`normalise`]), made ready for searching.
#[derive(Debug)]
pub struct ReferencePattern<'p> {
    graph: &'p Graph,
    calls: Vec<PatternCall<'p>>,
    returned: Vec<NodeId>,
    anchors: Vec<Anchor>,
}

#[derive(Debug)]
struct PatternCall<'p> {
    call: &'p Call,
    key: Key,
    /// The Python object that is called.
    object: &'p str,
}

/// A node that torch.fx starts from: returned, and used by nothing else.
#[derive(Debug)]
struct Anchor {
    node: NodeId,
    /// The operations that it is computed by, its own included, and which uses results of which.
    keys: KeySet,
    edges: KeySet,
}

impl<'p> ReferencePattern<'p> {
    /// Prepares a pattern for any number of searches.
    pub fn new(graph: &'p Graph) -> Self {
        let calls = graph.calls().map(|(_, call)| PatternCall {
            call,
            key: key_of(call),
            object: object(call),
        });
        let calls = calls.collect();
        let mut used = vec![false; graph.nodes().len()];
        for (_, call) in graph.calls() {
            call.for_each_input(|input| used[input.index()] = true);
        }
        let mut returned = Vec::new();
        for output in &graph.outputs {
            output.for_each_node(&mut |id| {
                if !returned.contains(&id) {
                    returned.push(id);
                }
            });
        }
        let starts = returned.iter().copied().filter(|id| !used[id.index()]);
        let anchor = |node| {
            let (keys, edges) = operations_of(graph, node);
            Anchor { node, keys, edges }
        };
        let anchors = starts.map(anchor).collect();
        ReferencePattern { graph, calls, returned, anchors }
    }

    fn is_placeholder(&self, id: NodeId) -> bool {
        id.index() < self.graph.placeholder_count()
    }

    fn call(&self, id: NodeId) -> Option<&PatternCall<'p>> {
        self.calls.get(id.index().checked_sub(self.graph.placeholder_count())?)
    }

    /// Whether torch.fx takes a node of the graph for one of the pattern, arguments aside. An argument of the
    /// pattern stands for anything.
    fn node_fits(&self, p: NodeId, g: Option<&Call>) -> bool {
        match (self.call(p), g) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(p), Some(g)) => match (p.call.target.kind(), g.target.kind()) {
                // To torch.fx an attribute read is a call of the function `getattr`.
                (CalleeKind::Attribute, CalleeKind::Attribute) => true,
                (CalleeKind::Attribute, _) | (_, CalleeKind::Attribute) => false,
                (p_kind, g_kind) => {
                    let same_kind =
                        (p_kind == CalleeKind::Method) == (g_kind == CalleeKind::Method);
                    same_kind && key_of(g) == p.key && object(g) == p.object
                }
            },
        }
    }
}

/// The Python object that a call calls; for methods its name.
fn object(call: &Call) -> &str {
    match call.target.kind() {
        CalleeKind::Function => identity(call.target.path()),
        _ => call.target.path(),
    }
}

/// The operations that a value is computed by, and the edges between them.
fn operations_of(graph: &Graph, node: NodeId) -> (KeySet, KeySet) {
    let (mut keys, mut edges) = (KeySet::default(), KeySet::default());
    let mut reached = vec![false; graph.nodes().len()];
    let mut todo = vec![node];
    while let Some(id) = todo.pop() {
        if std::mem::replace(&mut reached[id.index()], true) {
            continue;
        }
        if let Some(call) = graph.call(id) {
            let user = key_of(call);
            keys.insert(user);
            call.for_each_input(|input| {
                todo.push(input);
                if let Some(producer) = graph.call(input) {
                    edges.insert(edge_key(key_of(producer), user));
                }
            });
        }
    }
    (keys, edges)
}

/// All matches that torch.fx would return, in its order.
pub fn find(pattern: &Graph, target: &Graph) -> Result<Vec<Match>, ReferenceError> {
    matches(&ReferencePattern::new(pattern), &TargetGraph::new(target))
}

/// The same for a pattern and a graph that are searched more than once.
pub fn matches(
    pattern: &ReferencePattern<'_>,
    target: &TargetGraph<'_>,
) -> Result<Vec<Match>, ReferenceError> {
    // A match, and an exception too, takes one anchor whose operations are all there.
    let may_match =
        |anchor: &Anchor| target.may_have(&anchor.keys) && target.may_have_edges(&anchor.edges);
    if !pattern.anchors.iter().any(may_match) {
        return Ok(Vec::new());
    }
    let candidates = |anchor: &Anchor| {
        let fits = |id: &NodeId| pattern.node_fits(anchor.node, target.graph.call(*id));
        (anchor.node, target.graph.ids().filter(fits).collect::<SmallVec<_>>())
    };
    let mut anchors: SmallVec<[Candidates; 2]> = pattern.anchors.iter().map(candidates).collect();
    // An anchor without candidates is forgotten, which torch.fx notices only at the end.
    anchors.retain(|(_, candidates)| !candidates.is_empty());
    if anchors.is_empty() {
        return Ok(Vec::new());
    }
    let mut matcher = Matcher { pattern, target, map: Map::new(), found: Vec::new(), steps: 0 };
    matcher.backtrack(&anchors)?;
    let mut kept: Vec<Match> = Vec::new();
    for map in std::mem::take(&mut matcher.found) {
        if !matcher.is_contained(&map) || matcher.makes_cycle(&map) {
            continue;
        }
        let found = matcher.complete(&map);
        let overlaps = |id: &NodeId| kept.iter().any(|earlier| earlier.nodes.contains(id));
        if !found.nodes.iter().any(overlaps) {
            kept.push(found);
        }
    }
    Ok(kept)
}

/// A node of the pattern with the nodes of the graph it may stand for.
type Candidates = (NodeId, SmallVec<[NodeId; 16]>);

/// What pattern nodes are bound to, in the order in which they were bound.
type Map<'g> = SmallVec<[(NodeId, Binding<'g>); 16]>;

struct Matcher<'m, 'p, 'g> {
    pattern: &'m ReferencePattern<'p>,
    target: &'m TargetGraph<'g>,
    map: Map<'g>,
    found: Vec<Map<'g>>,
    steps: usize,
}

impl<'g> Matcher<'_, '_, 'g> {
    fn backtrack(&mut self, anchors: &[Candidates]) -> Result<(), ReferenceError> {
        let Some(((anchor, candidates), rest)) = anchors.split_first() else {
            let is_bound = |id: &NodeId| self.map.iter().any(|(p, _)| p == id);
            let placeholders = (0..self.pattern.graph.placeholder_count()).map(NodeId::new);
            let mut needed = placeholders.chain(self.pattern.returned.iter().copied());
            if !needed.all(|id| is_bound(&id)) {
                return Err(ReferenceError::Unbound);
            }
            self.found.push(self.map.clone());
            return Ok(());
        };
        let bound = self.map.len();
        for &candidate in candidates {
            if self.match_nodes(*anchor, candidate)? {
                self.backtrack(rest)?;
            }
            self.map.truncate(bound);
        }
        Ok(())
    }

    fn bound(&self, p: NodeId) -> Option<Binding<'g>> {
        self.map.iter().find(|(id, _)| *id == p).map(|(_, binding)| *binding)
    }

    fn match_nodes(&mut self, p: NodeId, g: NodeId) -> Result<bool, ReferenceError> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(ReferenceError::TooManySteps);
        }
        if let Some(known) = self.bound(p) {
            return Ok(known.node() == Some(g));
        }
        if self.map.iter().any(|(_, known)| known.node() == Some(g)) {
            return Ok(false);
        }
        let (pattern, graph) = (self.pattern, self.target.graph);
        if !pattern.node_fits(p, graph.call(g)) {
            return Ok(false);
        }
        self.map.push((p, Binding::Node(g)));
        let (Some(p), Some(g)) = (pattern.call(p), graph.call(g)) else { return Ok(true) };
        self.match_arguments(p.call, g)
    }

    fn match_arguments(&mut self, p: &Call, g: &'g Call) -> Result<bool, ReferenceError> {
        fn keywords(call: &Call) -> impl Iterator<Item = &str> {
            call.kwargs.iter().map(|(name, _)| &**name)
        }
        // torch.fx passes the name of an attribute read as a second argument.
        let is_attribute = p.target.kind() == CalleeKind::Attribute;
        if is_attribute && p.target.path() != g.target.path()
            || p.args.len() != g.args.len()
            || !keywords(p).eq(keywords(g))
        {
            return Ok(false);
        }
        for (p, g) in p.all_args().zip(g.all_args()) {
            if !self.match_args(p, g)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn match_args(&mut self, p: &Arg, g: &'g Arg) -> Result<bool, ReferenceError> {
        match (p, g) {
            (Arg::Node(p), Arg::Node(g)) => self.match_nodes(*p, *g),
            (Arg::Tuple(p) | Arg::List(p), Arg::Tuple(g) | Arg::List(g)) => {
                if p.len() != g.len() {
                    return Ok(false);
                }
                for (p, g) in p.iter().zip(g) {
                    if !self.match_args(p, g)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Arg::Node(p), literal) => {
                if !self.pattern.is_placeholder(*p) {
                    return Ok(false);
                }
                match self.bound(*p) {
                    Some(Binding::Value(known)) => Ok(python_equal(known, literal)),
                    Some(_) => Ok(false),
                    None => {
                        self.map.push((*p, Binding::Value(literal)));
                        Ok(true)
                    }
                }
            }
            (_, Arg::Node(_)) => Ok(false),
            (p, g) => {
                Ok(std::mem::discriminant(p) == std::mem::discriminant(g) && python_equal(p, g))
            }
        }
    }

    fn members<'a>(&'a self, map: &'a Map<'g>) -> impl Iterator<Item = (NodeId, NodeId)> + 'a {
        let calls = map.iter().filter(|(p, _)| !self.pattern.is_placeholder(*p));
        calls.filter_map(|(p, value)| Some((*p, value.node()?)))
    }

    fn nodes_of(&self, map: &Map<'g>) -> SmallVec<[NodeId; 16]> {
        self.members(map).map(|(_, g)| g).collect()
    }

    fn is_contained(&self, map: &Map<'g>) -> bool {
        let inside = self.nodes_of(map);
        self.members(map).all(|(p, g)| {
            self.pattern.returned.contains(&p)
                || (!self.target.is_returned(g)
                    && self.target.users(g).iter().all(|user| inside.contains(user)))
        })
    }

    /// Whether something outside the match lies between two of its nodes.
    fn makes_cycle(&self, map: &Map<'g>) -> bool {
        let inside = self.nodes_of(map);
        let Some(last) = inside.iter().max() else { return false };
        // Uses come after definitions, so what is after the last node cannot lead back.
        let leads_on = |user: &NodeId| user < last && !inside.contains(user);
        let outside = inside.iter().flat_map(|node| self.target.users(*node));
        let mut queue: Vec<NodeId> = outside.copied().filter(leads_on).collect();
        if queue.is_empty() {
            return false;
        }
        let mut visited = vec![false; last.index()];
        while let Some(node) = queue.pop() {
            if std::mem::replace(&mut visited[node.index()], true) {
                continue;
            }
            let users = self.target.users(node);
            if users.iter().any(|user| inside.contains(user)) {
                return true;
            }
            queue.extend(users.iter().filter(|user| *user < last));
        }
        false
    }

    fn complete(&self, map: &Map<'g>) -> Match {
        let mut bindings = vec![Arg::None; self.pattern.graph.nodes().len()];
        for (id, value) in map {
            bindings[id.index()] = value.arg().unwrap_or(Arg::None);
        }
        let mut nodes: Vec<NodeId> = self.members(map).map(|(_, g)| g).collect();
        nodes.sort_unstable();
        let outputs = self.pattern.returned.iter().filter_map(|id| bindings[id.index()].as_node());
        Match { outputs: outputs.collect(), nodes, bindings }
    }
}

/// Python's `==`: numbers by value across types, lists never equal tuples, NaN equals nothing.
fn python_equal(a: &Arg, b: &Arg) -> bool {
    match (a, b) {
        (Arg::List(a), Arg::List(b)) | (Arg::Tuple(a), Arg::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| python_equal(a, b))
        }
        (Arg::Slice(a), Arg::Slice(b)) => a.iter().zip(b.iter()).all(|(a, b)| python_equal(a, b)),
        // A node of the pattern is never a node of the graph; two bound values are nodes of the same graph,
        // which only nested lists can hold.
        (Arg::Node(_), Arg::Node(_)) => false,
        _ => match (a.as_float(), b.as_float()) {
            (Some(a), Some(b)) => a == b,
            _ => a == b,
        },
    }
}
