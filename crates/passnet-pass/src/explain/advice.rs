//! Differences in words, and what to do about them.

use super::place::call_text;
use crate::matcher::{Difference, DifferenceKind as K};
use crate::trace::Pass;
use passnet_graph::ops::Op;
use passnet_graph::print::print_arg;
use passnet_graph::{Arg, Graph, NodeId};

pub(super) struct Words {
    pub message: String,
    pub change: String,
}

/// A stable name for machines.
pub(super) fn kind_name(kind: &K) -> &'static str {
    match kind {
        K::Operation => "operation",
        K::NotComputed => "not_computed",
        K::NoUser => "no_user",
        K::Literal { pattern: Arg::Dtype(_), .. } | K::Literal { graph: Arg::Dtype(_), .. } => {
            "dtype"
        }
        K::Literal { .. } => "literal",
        K::LiteralOrValue { .. } => "literal_or_value",
        K::Omitted { .. } => "omitted_argument",
        K::Length { .. } => "length",
        K::Arguments => "arguments",
        K::NotTheSame { .. } => "not_the_same_value",
        K::Shared => "shared_value",
        K::InPlace { .. } => "in_place",
        K::UsedOutside { .. } => "used_outside",
        K::Effect => "effect",
        K::InputUpdated => "input_updated",
        K::WriteSeen { .. } => "write_seen",
        K::AliasWritten { .. } => "alias_written",
        K::Between { .. } => "cycle",
    }
}

pub(super) fn nothing_in_common(pattern: &Graph) -> String {
    let mut names: Vec<String> = Vec::new();
    for (_, call) in pattern.calls() {
        let name = format!("`{}`", op_name(call));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [only] => format!("the graph has no {only}"),
        names => {
            format!("none of the pattern's operations occurs in the graph: {}", names.join(", "))
        }
    }
}

fn op_name(call: &passnet_graph::Call) -> String {
    match call.op() {
        Some(op) => op.name().to_string(),
        None => call.target.path().to_string(),
    }
}

pub(super) fn name_of(graph: &Graph, id: NodeId) -> String {
    graph.call(id).map_or_else(
        || format!("input `{}`", graph.node(id).name),
        |call| format!("`{}`", op_name(call)),
    )
}

fn value(graph: &Graph, arg: &Arg) -> String {
    format!("`{}`", print_arg(graph, arg))
}

pub(super) fn explain(difference: &Difference, pass: &Pass, graph: &Graph) -> Words {
    let pattern = &pass.pattern.graph;
    let wanted = name_of(pattern, difference.pattern);
    let found = difference.graph.map(|id| name_of(graph, id)).unwrap_or_default();
    let text = difference.graph.map(|id| call_text(graph, id)).unwrap_or_default();
    let node = |id: NodeId| graph.node(id).name.to_string();
    let (message, change) = match &difference.kind {
        K::Operation => (
            format!("the pattern has {wanted} where the graph has {found}"),
            format!("write the graph's operation: `{text}`"),
        ),
        K::NotComputed => (
            format!(
                "the pattern computes {wanted} where the graph has {found} with nothing to match"
            ),
            "make that value an argument of the pattern instead of computing it".into(),
        ),
        K::NoUser => no_user(difference, graph, &wanted),
        K::Literal { pattern: in_pattern, graph: in_graph, .. }
            if is_subscript(pattern, difference.pattern) =>
        {
            (
                format!(
                    "the subscript has {} in the pattern and {} in the graph",
                    value(pattern, in_pattern),
                    value(graph, in_graph)
                ),
                format!(
                    "write {} there, or make it an argument of the pattern if it varies",
                    value(graph, in_graph)
                ),
            )
        }
        K::Literal { parameter, pattern: in_pattern, graph: in_graph } => {
            let (p, g) = (value(pattern, in_pattern), value(graph, in_graph));
            let same_number = in_pattern.as_float().is_some_and(|a| in_graph.as_float() == Some(a));
            let why =
                if same_number { " (an integer and a float make different dtypes)" } else { "" };
            let write = print_arg(graph, in_graph);
            (
                format!(
                    "argument `{parameter}` of {wanted} is {p} in the pattern and {g} in the graph{why}"
                ),
                format!(
                    "write `{parameter}={write}`, or make it an argument of the pattern if it varies"
                ),
            )
        }
        K::LiteralOrValue { parameter, literal, .. } => (
            format!(
                "argument `{parameter}` of {wanted} is the literal {} in the pattern and a computed value in the graph",
                value(pattern, literal)
            ),
            "make it an argument of the pattern".into(),
        ),
        K::Omitted { parameter } => (
            format!("the pattern passes `{parameter}` to {wanted}, the graph leaves it out"),
            format!("leave `{parameter}` out of the pattern"),
        ),
        K::Length { parameter, pattern: p, graph: g } => (
            format!(
                "`{parameter}` of {wanted} has {p} elements in the pattern and {g} in the graph"
            ),
            format!("write {g} elements: `{text}`"),
        ),
        K::Arguments => (
            format!("the arguments of {wanted} do not correspond to the graph's"),
            format!("write the call as the graph does: `{text}`"),
        ),
        K::NotTheSame { parameter } if parameter.is_empty() => (
            format!("the pattern uses one {wanted} where the graph computes it more than once"),
            "compute it again in the pattern where the graph does".into(),
        ),
        K::NotTheSame { parameter } => (
            format!(
                "the pattern uses the same value again as `{parameter}` of {wanted}, the graph another one"
            ),
            "use two arguments in the pattern".into(),
        ),
        K::Shared => (
            format!("the pattern computes {wanted} twice where the graph computes it once"),
            "assign it to a name and use the name twice".into(),
        ),
        K::InPlace { in_pattern: true } => (
            format!("the pattern updates in place in {wanted}, the graph does not"),
            "write the operation without updating in place".into(),
        ),
        K::InPlace { in_pattern: false } => (
            format!("the graph updates in place in {found}, the pattern does not"),
            format!("update in place in the pattern too: `{text}`"),
        ),
        K::UsedOutside { by: Some(user) } => (
            format!(
                "the value of {wanted} is also used outside the match, by {} (`{}`)",
                name_of(graph, *user),
                node(*user)
            ),
            "return this value from the pattern as well, or match its other use too".into(),
        ),
        K::UsedOutside { by: None } => (
            format!("the graph returns the value of {wanted}, which stays inside the match"),
            "return this value from the pattern as well".into(),
        ),
        K::Effect => (
            format!(
                "{found} draws random numbers or has another effect, which a replacement would lose"
            ),
            "leave this operation out of the pattern".into(),
        ),
        K::InputUpdated => (
            format!("{found} updates an input of the graph in place, the pattern does not"),
            "update the argument in place in the pattern too (`x += y`), and in the wrapper".into(),
        ),
        K::WriteSeen { by } => (
            match by {
                Some(by) => format!(
                    "{found} updates in place what {} (`{}`) reads later",
                    name_of(graph, *by),
                    node(*by)
                ),
                None => format!("{found} updates in place what the graph returns"),
            },
            "end the pattern before the update, or update in place in the pattern too".into(),
        ),
        K::AliasWritten { by } => (
            format!(
                "the result of {found} shares memory that {} (`{}`) writes later",
                name_of(graph, *by),
                node(*by)
            ),
            "match the later write too, or leave this operation out".into(),
        ),
        K::Between { node: id } => (
            format!(
                "{} (`{}`) lies between the matched operations: it needs one of them and another needs it",
                name_of(graph, *id),
                node(*id)
            ),
            "include it in the pattern, or match fewer operations".into(),
        ),
    };
    Words { message, change }
}

fn is_subscript(pattern: &Graph, id: NodeId) -> bool {
    pattern.call(id).and_then(|call| call.op()) == Some(Op::GetItem)
}

fn no_user(difference: &Difference, graph: &Graph, wanted: &str) -> (String, String) {
    let Some(from) = difference.graph else {
        return (format!("the graph has no {wanted}"), "match something the graph has".into());
    };
    let users = graph.users();
    let mut names: Vec<String> = Vec::new();
    for user in &users[from.index()] {
        let name = name_of(graph, *user);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let value = &graph.node(from).name;
    match names.as_slice() {
        [] => (
            format!("the pattern goes on with {wanted}, but nothing uses `{value}` in the graph"),
            "end the pattern there".into(),
        ),
        names => (
            format!(
                "the pattern goes on with {wanted}, but the graph uses `{value}` in {}",
                names.join(", ")
            ),
            format!("go on with {} in the pattern, or end it there", names.join(" or ")),
        ),
    }
}
