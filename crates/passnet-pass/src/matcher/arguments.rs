//! Comparing the arguments of two calls, each laid out by its operation's signature. What is a call on both sides is
//! put on the list of pairs still to be compared.

use super::DifferenceKind;
use super::compare::{is_irrelevant, same_literal};
use super::search::{Binding, Search, Todo};
use passnet_graph::ops::{Bound, Op, ParamType, Value};
use passnet_graph::{Arg, Call, NodeId};

/// Where two arguments are compared.
struct Site<'a> {
    pattern: NodeId,
    graph: NodeId,
    op: Option<Op>,
    ty: ParamType,
    parameter: &'a str,
}

impl<'g> Search<'_, '_, 'g> {
    pub(super) fn arguments(
        &mut self,
        pattern: NodeId,
        graph: NodeId,
        swapped: bool,
        todo: &mut Todo,
    ) -> bool {
        let (own, target) = (self.pattern, self.target);
        match (own.bound(pattern), target.bound(graph)) {
            (Some(p), Some(g)) => {
                // An update in place may stand for a plain operation where nothing sees the difference: that is
                // decided once the whole match is known. The other way round it may not.
                let fits = !p.is_in_place()
                    || g.is_in_place()
                    || self.difference(pattern, graph, || DifferenceKind::InPlace {
                        in_pattern: true,
                    });
                fits && self.bound_arguments(pattern, graph, p, g, swapped, todo)
            }
            (None, None) => match (own.call(pattern), target.graph.call(graph)) {
                (Some(p), Some(g)) => self.raw_arguments(pattern, graph, p, g, todo),
                _ => false,
            },
            _ => self.difference(pattern, graph, || DifferenceKind::Arguments),
        }
    }

    fn bound_arguments(
        &mut self,
        pattern: NodeId,
        graph: NodeId,
        p: &Bound<'_>,
        g: &Bound<'g>,
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
            let other = match index {
                0 | 1 if swapped => 1 - index,
                _ => index,
            };
            if is_irrelevant(param.name) {
                continue;
            }
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
        g: &Bound<'g>,
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
                        || self.difference(pattern, graph, || DifferenceKind::Arguments)
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
        only_in_graph || self.difference(pattern, graph, || DifferenceKind::Arguments)
    }

    /// Calls the table does not know are compared as they are written.
    fn raw_arguments(
        &mut self,
        pattern: NodeId,
        graph: NodeId,
        p: &Call,
        g: &'g Call,
        todo: &mut Todo,
    ) -> bool {
        fn names(call: &Call) -> impl Iterator<Item = &str> {
            call.kwargs.iter().map(|(name, _)| &**name)
        }
        if p.target != g.target || p.args.len() != g.args.len() || !names(p).eq(names(g)) {
            return self.difference(pattern, graph, || DifferenceKind::Arguments);
        }
        let site = Site { pattern, graph, op: None, ty: ParamType::Any, parameter: "argument" };
        p.all_args().zip(g.all_args()).all(|(p, g)| self.unify(p, g, &site, todo))
    }

    /// After a difference of operation, the inputs are still paired, in order, as far as they go.
    pub(super) fn compare_loosely(
        &mut self,
        pattern: NodeId,
        graph: NodeId,
        todo: &mut Todo,
    ) -> bool {
        let (Some(p), Some(g)) = (self.pattern.call(pattern), self.target.graph.call(graph)) else {
            return false;
        };
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        p.for_each_input(|id| wanted.push(id));
        g.for_each_input(|id| found.push(id));
        let site = Site { pattern, graph, op: None, ty: ParamType::Any, parameter: "input" };
        wanted.into_iter().zip(found).all(|(p, g)| self.unify_nodes(p, g, &site, todo))
    }

    fn unify_values(
        &mut self,
        p: Value<'_>,
        g: Value<'g>,
        site: &Site<'_>,
        todo: &mut Todo,
    ) -> bool {
        match (p, g) {
            (Value::Rest(p), Value::Rest(g)) => self.unify_items(p, g, site, todo),
            (Value::Given(Arg::Node(_)), Value::Default(_)) => {
                self.difference(site.pattern, site.graph, || DifferenceKind::Omitted {
                    parameter: site.parameter.into(),
                })
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

    fn unify_items(&mut self, p: &[Arg], g: &'g [Arg], site: &Site<'_>, todo: &mut Todo) -> bool {
        if p.len() != g.len() {
            return self.difference(site.pattern, site.graph, || DifferenceKind::Length {
                parameter: site.parameter.into(),
                pattern: p.len(),
                graph: g.len(),
            });
        }
        p.iter().zip(g).rev().all(|(p, g)| self.unify(p, g, site, todo))
    }

    fn unify(&mut self, p: &Arg, g: &'g Arg, site: &Site<'_>, todo: &mut Todo) -> bool {
        match (p, g) {
            (Arg::Node(p), Arg::Node(g)) => self.unify_nodes(*p, *g, site, todo),
            (Arg::Node(p), g) if self.pattern.is_placeholder(*p) => {
                self.placeholder(*p, Binding::Value(g), site)
            }
            (Arg::Node(_), _) => {
                self.difference(site.pattern, site.graph, || DifferenceKind::NotComputed)
            }
            (literal, Arg::Node(_)) => {
                self.difference(site.pattern, site.graph, || DifferenceKind::LiteralOrValue {
                    parameter: site.parameter.into(),
                    literal: literal.clone(),
                    in_pattern: true,
                })
            }
            (
                Arg::Tuple(p_items) | Arg::List(p_items),
                Arg::Tuple(g_items) | Arg::List(g_items),
            ) => self.unify_items(p_items, g_items, site, todo),
            (Arg::Slice(p), Arg::Slice(g)) => self.unify_items(&p[..], &g[..], site, todo),
            (p, g) => {
                same_literal(p, g, site.ty, site.op)
                    || self.difference(site.pattern, site.graph, || DifferenceKind::Literal {
                        parameter: site.parameter.into(),
                        pattern: p.clone(),
                        graph: g.clone(),
                    })
            }
        }
    }

    fn unify_nodes(&mut self, p: NodeId, g: NodeId, site: &Site<'_>, todo: &mut Todo) -> bool {
        if self.pattern.is_placeholder(p) {
            return self.placeholder(p, Binding::Node(g), site);
        }
        todo.push((p, g));
        true
    }

    /// An argument of the pattern stands for any value, the same wherever it is used.
    fn placeholder(&mut self, p: NodeId, found: Binding<'g>, site: &Site<'_>) -> bool {
        let same = match (self.bindings[p.index()], found) {
            (Binding::Free, _) => {
                self.bind(p, found);
                true
            }
            (Binding::Node(known), Binding::Node(found)) => known == found,
            (Binding::Value(known), Binding::Value(found)) => {
                same_literal(known, found, ParamType::Any, None)
            }
            _ => false,
        };
        same || self.difference(site.pattern, site.graph, || DifferenceKind::NotTheSame {
            parameter: site.parameter.into(),
        })
    }
}

fn is_default(value: Value<'_>, default: Option<&Arg>) -> bool {
    match value {
        Value::Default(_) => true,
        Value::Given(arg) => default == Some(arg),
        Value::Rest(items) => items.is_empty(),
    }
}
