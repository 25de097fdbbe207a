//! The reference's semantics: torch.fx's `SubgraphMatcher` with literals compared, on a pattern whose calls are
//! laid out by Python's signatures while the graph's are left as written.
//!
//! Targets are compared by identity of the Python object, arguments by position and keyword order, literals by
//! type and value. Which spellings are one object, and how torch records a call, stands in `fx_calls.txt`,
//! which PyTorch itself wrote. Where torch.fx raises an exception, so does this.

use super::Match;
use passnet_graph::graph::{CalleeKind, Target};
use passnet_graph::{Arg, Call, Graph, NodeId};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::LazyLock;

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

/// A function as Python sees it.
#[derive(Debug)]
struct Function {
    /// The first spelling of the same object.
    identity: &'static str,
    /// What a call is recorded as while tracing.
    recorded: &'static str,
    parameters: Option<Vec<Parameter>>,
    /// For functions without a signature of their own: how many arguments stay positional, and the keywords.
    layout: Option<(usize, Vec<&'static str>)>,
}

#[derive(Debug)]
struct Parameter {
    name: &'static str,
    default: Option<Arg>,
    variadic: bool,
    keyword_only: bool,
}

static FUNCTIONS: LazyLock<FxHashMap<&'static str, Function>> = LazyLock::new(|| {
    let lines = include_str!("fx_calls.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(parse_line).collect()
});

fn parse_line(line: &'static str) -> Option<(&'static str, Function)> {
    let mut fields = line.split('\t');
    let (path, identity, recorded) = (fields.next()?, fields.next()?, fields.next()?);
    let (signature, layout) = (fields.next()?, fields.next()?);
    let parameters = (signature != "-").then(|| {
        signature.split(", ").filter(|text| !text.is_empty()).map(parse_parameter).collect()
    });
    let layout = (layout != "-").then(|| {
        let mut words = layout.split(' ');
        let positional = words.next().and_then(|count| count.parse().ok()).unwrap_or(0);
        (positional, words.collect())
    });
    Some((path, Function { identity, recorded, parameters, layout }))
}

fn parse_parameter(text: &'static str) -> Parameter {
    let (head, default) = match text.split_once('=') {
        Some((head, default)) => (head, Some(parse_default(default))),
        None => (text, None),
    };
    Parameter {
        name: head.trim_start_matches(['*', '!']),
        default,
        variadic: head.starts_with('*'),
        keyword_only: head.starts_with('!'),
    }
}

fn parse_default(text: &str) -> Arg {
    match text {
        "None" => Arg::None,
        "True" => Arg::Bool(true),
        "False" => Arg::Bool(false),
        text if text.starts_with('\'') => Arg::Str(text.trim_matches('\'').into()),
        text => match text.parse::<i64>() {
            Ok(value) => Arg::Int(value),
            Err(_) => text.parse().map_or(Arg::None, Arg::Float),
        },
    }
}

/// A pattern as the reference's tracer would leave it: calls of functions with a signature are all positional,
/// defaults filled in.
pub fn normalise(pattern: &Graph) -> Graph {
    let mut normal = Graph::new();
    for id in pattern.ids() {
        let node = pattern.node(id);
        match pattern.call(id) {
            None => normal.push_placeholder(node.name.clone(), Default::default(), node.line),
            Some(call) => normal.push_call(node.name.clone(), normalise_call(call), node.line),
        };
    }
    normal.outputs = pattern.outputs.clone();
    normal
}

fn normalise_call(call: &Call) -> Call {
    let function = (call.target.kind() == CalleeKind::Function)
        .then(|| FUNCTIONS.get(call.target.path()))
        .flatten();
    let Some(function) = function else { return call.clone() };
    let bound = function.parameters.as_ref().and_then(|parameters| bind(call, parameters));
    let Some(values) = bound else { return call.clone() };
    let target = Target::resolve(CalleeKind::Function, function.recorded);
    let mut args = Vec::new();
    let mut kwargs = Vec::new();
    match &function.layout {
        None => {
            for (parameter, value) in values {
                match value {
                    Arg::Tuple(items) if parameter.variadic => args.extend(items),
                    value if parameter.keyword_only => kwargs.push((parameter.name.into(), value)),
                    value => args.push(value),
                }
            }
        }
        Some((positional, keywords)) => {
            args.extend(values.iter().take(*positional).map(|(_, value)| value.clone()));
            for keyword in keywords {
                if let Some((_, value)) = values.iter().find(|(p, _)| p.name == *keyword) {
                    kwargs.push(((*keyword).into(), value.clone()));
                }
            }
        }
    }
    Call { target, args, kwargs }
}

/// Python's `Signature.bind` with defaults applied; `None` where it would raise.
fn bind<'f>(call: &Call, parameters: &'f [Parameter]) -> Option<Vec<(&'f Parameter, Arg)>> {
    let mut positional = call.args.iter();
    let mut used = 0;
    let mut bound = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        if parameter.variadic {
            bound.push((parameter, Arg::Tuple(positional.by_ref().cloned().collect())));
            continue;
        }
        let given = if parameter.keyword_only { None } else { positional.next() };
        let keyword = call.kwargs.iter().find(|(name, _)| **name == *parameter.name);
        used += usize::from(keyword.is_some());
        let value = match (given, keyword, &parameter.default) {
            (Some(_), Some(_), _) | (None, None, None) => return None,
            (Some(value), None, _) | (None, Some((_, value)), _) | (None, None, Some(value)) => {
                value
            }
        };
        bound.push((parameter, value.clone()));
    }
    (positional.next().is_none() && used == call.kwargs.len()).then_some(bound)
}

/// A graph as torch.fx sees it.
struct Fx<'g> {
    graph: &'g Graph,
    nodes: Vec<Option<FxCall<'g>>>,
    /// Users of every node; the output node is the one past the end.
    users: Vec<Vec<usize>>,
    returned: Vec<NodeId>,
}

struct FxCall<'g> {
    kind: CalleeKind,
    target: &'g str,
    /// The name of an attribute read, which torch.fx passes as a second argument.
    attribute: Option<&'g str>,
    call: &'g Call,
}

impl<'g> Fx<'g> {
    fn new(graph: &'g Graph) -> Self {
        let output = graph.nodes().len();
        let mut nodes: Vec<Option<FxCall<'g>>> = Vec::with_capacity(output);
        nodes.resize_with(graph.placeholder_count(), || None);
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); output];
        for (id, call) in graph.calls() {
            let path = call.target.path();
            let kind = call.target.kind();
            nodes.push(Some(FxCall {
                kind,
                target: match kind {
                    CalleeKind::Function => FUNCTIONS.get(path).map_or(path, |f| f.identity),
                    CalleeKind::Attribute => "getattr",
                    _ => path,
                },
                attribute: (kind == CalleeKind::Attribute).then_some(path),
                call,
            }));
            call.for_each_input(|input| {
                if users[input.index()].last() != Some(&id.index()) {
                    users[input.index()].push(id.index());
                }
            });
        }
        let mut returned = Vec::new();
        for arg in &graph.outputs {
            arg.for_each_node(&mut |id| {
                if !returned.contains(&id) {
                    returned.push(id);
                    users[id.index()].push(output);
                }
            });
        }
        Fx { graph, nodes, users, returned }
    }

    fn is_placeholder(&self, id: NodeId) -> bool {
        id.index() < self.graph.placeholder_count()
    }

    fn call(&self, id: NodeId) -> Option<&FxCall<'g>> {
        self.nodes.get(id.index()).and_then(Option::as_ref)
    }
}

/// All matches that torch.fx would return, in its order.
pub fn find(pattern: &Graph, target: &Graph) -> Result<Vec<Match>, ReferenceError> {
    let pattern = Fx::new(pattern);
    let target = Fx::new(target);
    let anchors = pattern.returned.iter().copied();
    let anchors = anchors.filter(|id| pattern.users[id.index()].len() == 1);
    let candidates: Vec<(NodeId, Vec<NodeId>)> = anchors
        .map(|anchor| {
            let equal = |id: &NodeId| nodes_equal(&pattern, &target, anchor, *id);
            (anchor, target.graph.ids().filter(equal).collect::<Vec<_>>())
        })
        // An anchor without candidates is forgotten, which torch.fx notices only at the end.
        .filter(|(_, candidates)| !candidates.is_empty())
        .collect();
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let mut matcher = Matcher { pattern: &pattern, target: &target, found: Vec::new(), steps: 0 };
    matcher.backtrack(&candidates, Map::default())?;
    let found = std::mem::take(&mut matcher.found);
    let mut kept: Vec<Match> = Vec::new();
    for map in found {
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

/// What pattern nodes are bound to, in the order in which they were bound.
type Map = Vec<(NodeId, Arg)>;

struct Matcher<'m, 'g> {
    pattern: &'m Fx<'g>,
    target: &'m Fx<'g>,
    found: Vec<Map>,
    steps: usize,
}

fn nodes_equal(pattern: &Fx<'_>, target: &Fx<'_>, p: NodeId, g: NodeId) -> bool {
    match (pattern.call(p), target.call(g)) {
        (None, _) => true,
        (Some(p), Some(g)) => {
            // An attribute read is a call of the function `getattr`.
            let plain = |kind| if kind == CalleeKind::Method { kind } else { CalleeKind::Function };
            plain(p.kind) == plain(g.kind) && p.target == g.target
        }
        (Some(_), None) => false,
    }
}

impl Matcher<'_, '_> {
    fn backtrack(
        &mut self,
        anchors: &[(NodeId, Vec<NodeId>)],
        map: Map,
    ) -> Result<(), ReferenceError> {
        let Some(((anchor, candidates), rest)) = anchors.split_first() else {
            let is_bound = |id: &NodeId| map.iter().any(|(p, _)| p == id);
            let placeholders = (0..self.pattern.graph.placeholder_count()).map(NodeId::new);
            let mut needed = placeholders.chain(self.pattern.returned.iter().copied());
            if !needed.all(|id| is_bound(&id)) {
                return Err(ReferenceError::Unbound);
            }
            self.found.push(map);
            return Ok(());
        };
        for &candidate in candidates {
            let mut map = map.clone();
            if self.match_nodes(*anchor, candidate, &mut map)? {
                self.backtrack(rest, map)?;
            }
        }
        Ok(())
    }

    fn match_nodes(&mut self, p: NodeId, g: NodeId, map: &mut Map) -> Result<bool, ReferenceError> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(ReferenceError::TooManySteps);
        }
        if let Some((_, known)) = map.iter().find(|(id, _)| *id == p) {
            return Ok(known.as_node() == Some(g));
        }
        if map.iter().any(|(_, known)| known.as_node() == Some(g)) {
            return Ok(false);
        }
        if !nodes_equal(self.pattern, self.target, p, g) {
            return Ok(false);
        }
        map.push((p, Arg::Node(g)));
        let (pattern, target) = (self.pattern, self.target);
        let (Some(p), Some(g)) = (pattern.call(p), target.call(g)) else { return Ok(true) };
        let keywords = |call: &Call| call.kwargs.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
        if p.attribute != g.attribute
            || p.call.args.len() != g.call.args.len()
            || keywords(p.call) != keywords(g.call)
        {
            return Ok(false);
        }
        for (p, g) in p.call.all_args().zip(g.call.all_args()) {
            if !self.match_args(p, g, map)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn match_args(&mut self, p: &Arg, g: &Arg, map: &mut Map) -> Result<bool, ReferenceError> {
        match (p, g) {
            (Arg::Node(p), Arg::Node(g)) => self.match_nodes(*p, *g, map),
            (Arg::Tuple(p) | Arg::List(p), Arg::Tuple(g) | Arg::List(g)) => {
                if p.len() != g.len() {
                    return Ok(false);
                }
                for (p, g) in p.iter().zip(g) {
                    if !self.match_args(p, g, map)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Arg::Node(p), literal) => {
                if !self.pattern.is_placeholder(*p) {
                    return Ok(false);
                }
                match map.iter().find(|(id, _)| id == p) {
                    Some((_, known)) => Ok(python_equal(known, literal)),
                    None => {
                        map.push((*p, literal.clone()));
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

    fn members<'a>(&'a self, map: &'a Map) -> impl Iterator<Item = (NodeId, NodeId)> + 'a {
        let calls = map.iter().filter(|(p, _)| !self.pattern.is_placeholder(*p));
        calls.filter_map(|(p, value)| Some((*p, value.as_node()?)))
    }

    fn is_contained(&self, map: &Map) -> bool {
        let inside: Vec<usize> = self.members(map).map(|(_, g)| g.index()).collect();
        self.members(map).all(|(p, g)| {
            self.pattern.returned.contains(&p)
                || self.target.users[g.index()].iter().all(|user| inside.contains(user))
        })
    }

    /// Whether something outside the match lies between two of its nodes.
    fn makes_cycle(&self, map: &Map) -> bool {
        let inside: Vec<usize> = self.members(map).map(|(_, g)| g.index()).collect();
        let output = self.target.graph.nodes().len();
        let mut visited = vec![false; output + 1];
        let outside = |user: &usize| !inside.contains(user);
        let mut queue: Vec<usize> = inside
            .iter()
            .flat_map(|node| self.target.users[*node].iter().copied().filter(outside))
            .collect();
        while let Some(node) = queue.pop() {
            if inside.contains(&node) {
                return true;
            }
            if std::mem::replace(&mut visited[node], true) || node == output {
                continue;
            }
            queue.extend(self.target.users[node].iter().filter(|user| !visited[**user]));
        }
        false
    }

    fn complete(&self, map: &Map) -> Match {
        let mut bindings = vec![Arg::None; self.pattern.graph.nodes().len()];
        for (id, value) in map {
            bindings[id.index()] = value.clone();
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
