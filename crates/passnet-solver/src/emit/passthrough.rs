//! A passthrough: a view or an operation without effect, handed back as it is. It is written where nothing pays.

use super::file::PassText;
use super::{name_of, pattern};
use crate::analysis::{Piece, Refusal, refuse};
use passnet_graph::infer::{TensorType, Value};
use passnet_graph::ops::{Bound, Op};
use passnet_graph::print::print_arg;
use passnet_graph::{Arg, Call, NodeId};
use std::collections::BTreeMap;

/// The pass of a pattern of operations that look at one tensor, through each other and through lists of views; each shares memory
/// with its argument in every graph.
pub fn passthrough(piece: &Piece, stem: String) -> Result<PassText, Refusal> {
    let calls: Vec<(NodeId, &Call)> = piece.graph.calls().collect();
    let body = views(piece, &calls)?;
    let names = piece.graph.placeholders().iter().map(|node| node.name.to_string());
    let parameters: Vec<String> = names.collect();
    let arguments: Vec<String> =
        parameters.iter().filter(|name| super::names::mentions(&body, name)).cloned().collect();
    let is_taken = |call: &Call| taken_from(piece, call).is_some();
    let operations = calls.iter().filter(|(_, call)| !is_taken(call));
    let operations = operations.map(|(_, call)| call.op().map_or("a view", Op::name));
    let pattern = pattern::write(piece);
    Ok(PassText {
        summary: format!(
            "Neutral: {}.\n\nNo kernel: eager computes nothing here either, and a kernel would copy.",
            operations.collect::<Vec<_>>().join(", ")
        ),
        imports: pattern.imports,
        pattern: pattern.text,
        wrapper: format!("@torch.fx.wrap\ndef {stem}({}):\n{body}", arguments.join(", ")),
        stem,
        parameters,
        arguments,
        kernel: String::new(),
        calls_library: false,
    })
}

/// The views one after the other, each by the name it has in the graph; what is taken from a list is a view of what the list was
/// made of.
fn views(piece: &Piece, calls: &[(NodeId, &Call)]) -> Result<String, Refusal> {
    let mut body = String::new();
    // What does nothing goes by the name of its argument.
    let mut names: BTreeMap<NodeId, String> = BTreeMap::new();
    for (id, call) in calls {
        if is_list(piece, *id) {
            continue;
        }
        let Some(of) = call.args.first().and_then(Arg::as_node) else {
            refuse!("`{}` looks at nothing", piece.name(*id))
        };
        let list = taken_from(piece, call);
        let source = match &list {
            Some((list, _)) => list.args.first().and_then(Arg::as_node),
            None => Some(of),
        };
        let Some(source) = source else { refuse!("a list of nothing") };
        let known = names.get(&source).cloned();
        let known = known.unwrap_or_else(|| name_of(piece, source).to_string());
        let seen = match list {
            Some((list, number)) => part_of_list(piece, list, source, &known, number),
            None => view(piece, call, source, &known),
        };
        match seen {
            // As written, for the pattern may fit where sizes are others.
            Ok(seen) => {
                let name = name_of(piece, *id).to_string();
                body.push_str(&format!("    {name} = {seen}\n"));
                names.insert(*id, name);
            }
            Err(_) if is_same(piece, *id, of) => drop(names.insert(*id, known)),
            Err(reason) => return Err(reason),
        }
    }
    let results = piece.outputs.iter().map(|output| names.get(output).cloned());
    let Some(results) = results.collect::<Option<Vec<String>>>() else {
        refuse!("a list of views is handed on as a whole")
    };
    let results = results.join(", ");
    let only = body.strip_prefix(&format!("    {results} = "));
    Ok(match only.filter(|rest| rest.lines().count() == 1) {
        Some(seen) => format!("    return {seen}"),
        None => format!("{body}    return {results}\n"),
    })
}

fn is_list(piece: &Piece, id: NodeId) -> bool {
    matches!(piece.values(id).first(), Some(Value::Sequence(_)))
}

/// The list of the piece that a call takes an item of, and which one.
fn taken_from<'p>(piece: &'p Piece, call: &Call) -> Option<(&'p Call, i64)> {
    match (call.op(), call.args.as_slice()) {
        (Some(Op::GetItem), [Arg::Node(list), Arg::Int(number)]) if is_list(piece, *list) => {
            Some((piece.graph.call(*list)?, *number))
        }
        _ => None,
    }
}

/// Whether the result is the argument, in every graph.
fn is_same(piece: &Piece, id: NodeId, source: NodeId) -> bool {
    let alike = |(value, other): (&Value, &Value)| match (value, other) {
        (Value::Tensor(a), Value::Tensor(b)) => {
            let layout =
                |t: &TensorType| (t.dtype, t.sizes().to_vec(), t.strides.clone(), t.offset);
            layout(a) == layout(b)
        }
        _ => false,
    };
    piece.values(id).iter().zip(piece.values(source)).all(alike)
}

/// The view as a method of its argument, which goes by a name; only methods that never copy.
fn view(piece: &Piece, call: &Call, source: NodeId, name: &str) -> Result<String, Refusal> {
    let bound = call.bind().map_err(Refusal::new)?;
    let rank = piece.tensor(source)?.rank();
    let print = |arg: &Arg| print_arg(&piece.graph, arg);
    let one = |parameter: &str| print(bound.arg(parameter));
    Ok(match bound.op {
        Op::View | Op::Reshape if bound.arg("dtype").is_none() => {
            format!("{name}.view({})", sizes(piece, call, &bound)?)
        }
        Op::Expand => format!("{name}.expand({})", sizes(piece, call, &bound)?),
        Op::Permute => format!("{name}.permute({})", sizes(piece, call, &bound)?),
        Op::Transpose => format!("{name}.transpose({}, {})", one("dim0"), one("dim1")),
        Op::TransposeMatrix => format!("{name}.t()"),
        Op::Unsqueeze => format!("{name}.unsqueeze({})", one("dim")),
        Op::Squeeze if bound.arg("dim").as_int().is_some() => {
            format!("{name}.squeeze({})", one("dim"))
        }
        Op::Narrow => {
            format!("{name}.narrow({}, {}, {})", one("dim"), one("start"), one("length"))
        }
        Op::Select => format!("{name}.select({}, {})", one("dim"), one("index")),
        Op::Unflatten => format!("{name}.unflatten({}, {})", one("dim"), one("sizes")),
        Op::Flatten => {
            let place = |parameter: &str| {
                let place = bound.arg(parameter).as_int().unwrap_or(if parameter == "end_dim" {
                    -1
                } else {
                    0
                });
                usize::try_from(if place < 0 { place + rank as i64 } else { place }).ok()
            };
            let (Some(start), Some(end)) = (place("start_dim"), place("end_dim")) else {
                refuse!("`flatten` names no dimension")
            };
            let kept = |dim: usize| format!("{name}.shape[{dim}]");
            let mut sizes: Vec<String> = (0..start).map(kept).collect();
            sizes.push("-1".into());
            sizes.extend((end + 1..rank).map(kept));
            format!("{name}.view({})", sizes.join(", "))
        }
        Op::GetItem => {
            let index = call.args.get(1).unwrap_or(&Arg::None);
            let items = match index {
                Arg::Tuple(items) => items.as_slice(),
                single => std::slice::from_ref(single),
            };
            let items: Option<Vec<String>> =
                items.iter().map(|item| index_text(item, &print)).collect();
            let Some(items) = items.filter(|items| !items.is_empty()) else {
                refuse!("an index that is no slice")
            };
            format!("{name}[{}]", items.join(", "))
        }
        op => refuse!("no method for `{}` that never copies", op.name()),
    })
}

/// One item of a list of views, as a view of the tensor that the list was made of and that goes by a name.
fn part_of_list(
    piece: &Piece,
    list: &Call,
    source: NodeId,
    name: &str,
    number: i64,
) -> Result<String, Refusal> {
    let bound = list.bind().map_err(Refusal::new)?;
    let dim = print_arg(&piece.graph, bound.arg("dim"));
    let dim = if bound.arg("dim").is_none() { "0".to_string() } else { dim };
    let sections = ["split_size_or_sections", "split_size", "split_sizes"].map(|n| bound.arg(n));
    let sections = sections.into_iter().find(|arg| !arg.is_none());
    let rank = piece.tensor(source)?.rank() as i64;
    let place = bound.arg("dim").as_int().unwrap_or(0);
    let place = usize::try_from(if place < 0 { place + rank } else { place }).unwrap_or(0);
    let whole = ":, ".repeat(place);
    Ok(match (bound.op, sections) {
        (Op::Unbind, _) => format!("{name}.select({dim}, {number})"),
        (Op::Chunk, _) => {
            let count = print_arg(&piece.graph, bound.arg("chunks"));
            format!("{name}.chunk({count}, {dim})[{number}]")
        }
        (Op::Split, Some(Arg::Int(size))) => format!("{name}.split({size}, {dim})[{number}]"),
        (Op::Split, Some(Arg::Tuple(sizes) | Arg::List(sizes))) => {
            // What comes before is cut off piece by piece: sums of sizes are nobody's business here.
            let cut = |arg: &Arg| print_arg(&piece.graph, arg);
            let number = usize::try_from(number).ok().filter(|number| *number < sizes.len());
            let Some(number) = number else { refuse!("an item counted from the end") };
            let mut text = name.to_string();
            let before = sizes[..number].iter();
            before.for_each(|size| text.push_str(&format!("[{whole}{}:]", cut(size))));
            text.push_str(&format!("[{whole}:{}]", cut(&sizes[number])));
            text
        }
        (op, _) => refuse!("no views for what is taken from a list that `{}` makes", op.name()),
    })
}

/// The sizes of a call that takes them one by one or as a tuple.
fn sizes(piece: &Piece, call: &Call, bound: &Bound<'_>) -> Result<String, Refusal> {
    if !call.kwargs.is_empty() {
        refuse!("`{}` with named sizes", bound.op.name());
    }
    let items = match &call.args[1..] {
        [Arg::Tuple(items) | Arg::List(items)] => items,
        several => several,
    };
    let texts: Vec<String> = items.iter().map(|item| print_arg(&piece.graph, item)).collect();
    Ok(texts.join(", "))
}

/// One part of an index as it stands between brackets.
fn index_text(item: &Arg, print: &impl Fn(&Arg) -> String) -> Option<String> {
    Some(match item {
        Arg::Int(_) | Arg::None => print(item),
        Arg::Ellipsis => "...".into(),
        Arg::Slice(parts) => {
            let [start, stop, step] = &**parts;
            let part = |arg: &Arg| match arg {
                Arg::None => Some(String::new()),
                Arg::Int(_) | Arg::Node(_) => Some(print(arg)),
                _ => None,
            };
            let mut text = format!("{}:{}", part(start)?, part(stop)?);
            if !step.is_none() {
                text.push_str(&format!(":{}", part(step)?));
            }
            text
        }
        _ => return None,
    })
}
