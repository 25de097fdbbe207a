//! Functions as Python sees them: which spellings are one object, and how torch.fx records a call of it. The table
//! `fx_calls.txt` was written by PyTorch itself (`python/passnet/parity/fx_calls.py`).

use passnet_graph::graph::{CalleeKind, Target};
use passnet_graph::{Arg, Call, Graph};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

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

/// Keyed by spelling.
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

/// The first spelling of the object that a path names.
pub(super) fn identity(path: &str) -> &str {
    FUNCTIONS.get(path).map_or(path, |function| function.identity)
}

#[cfg(test)]
mod tests {
    use super::super::super::target::key_of;
    use super::*;

    fn key(path: &str) -> u32 {
        let target = Target::resolve(CalleeKind::Function, path);
        key_of(&Call { target, args: Vec::new(), kwargs: Vec::new() })
    }

    /// What lets the matcher look for an operation by its key before it asks Python's question.
    #[test]
    fn one_object_is_one_operation() {
        let mut paths: Vec<_> = FUNCTIONS.keys().copied().collect();
        paths.sort_unstable();
        for path in paths {
            let first = identity(path);
            assert_eq!(key(path), key(first), "`{path}` is the object `{first}`");
        }
    }
}
