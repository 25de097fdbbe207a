//! A passthrough: a view or an operation without effect, handed back as it is. It is written where nothing pays.

use super::file::PassText;
use super::{name_of, pattern};
use crate::analysis::{Piece, Refusal, refuse};
use passnet_graph::infer::{TensorType, Value};
use passnet_graph::ops::{Bound, Op};
use passnet_graph::print::print_arg;
use passnet_graph::{Arg, Call, NodeId};

/// The pass of a pattern of operations one after the other, each of which shares memory with its argument in every graph, or
/// of one that cuts its argument into a list of views, with everything taken from that list.
pub fn passthrough(piece: &Piece, stem: String) -> Result<PassText, Refusal> {
    let calls: Vec<(NodeId, &Call)> = piece.graph.calls().collect();
    let [(first, call), taken @ ..] = &calls[..] else { refuse!("no operation") };
    let is_list = matches!(piece.values(*first).first(), Some(Value::Sequence(_)));
    let body = match is_list {
        true => format!("    return {}\n", list_of_views(piece, *first, call, taken)?),
        false => chain_of_views(piece, &calls)?,
    };
    let names = piece.graph.placeholders().iter().map(|node| node.name.to_string());
    let parameters: Vec<String> = names.collect();
    let arguments: Vec<String> =
        parameters.iter().filter(|name| super::names::mentions(&body, name)).cloned().collect();
    let operations = if is_list { &calls[..1] } else { &calls[..] };
    let operations = operations.iter().map(|(_, call)| call.op().map_or("a view", Op::name));
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

/// The views one after the other, each by the name it has in the graph.
fn chain_of_views(piece: &Piece, calls: &[(NodeId, &Call)]) -> Result<String, Refusal> {
    let mut body = String::new();
    // What does nothing leaves the name of its argument.
    let mut name = String::new();
    for (index, (id, call)) in calls.iter().enumerate() {
        let Some(source) = call.args.first().and_then(Arg::as_node) else {
            refuse!("`{}` looks at nothing", piece.name(*id))
        };
        if index == 0 {
            name = name_of(piece, source).to_string();
        } else if source != calls[index - 1].0 {
            refuse!("`{}` does not look at what comes before it", piece.name(*id));
        }
        let seen = match view(piece, call, source, &name) {
            // As written, for the pattern may fit where sizes are others.
            Ok(seen) => seen,
            Err(_) if is_same(piece, *id, source) => continue,
            Err(reason) => return Err(reason),
        };
        name = name_of(piece, *id).to_string();
        body.push_str(&format!("    {name} = {seen}\n"));
    }
    let only =
        body.strip_prefix(&format!("    {name} = ")).filter(|rest| rest.lines().count() == 1);
    Ok(match only {
        Some(seen) => format!("    return {seen}"),
        None => format!("{body}    return {name}\n"),
    })
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

/// What is taken from a list of views, each as a view of its own.
fn list_of_views(
    piece: &Piece,
    list: NodeId,
    call: &Call,
    taken: &[(NodeId, &Call)],
) -> Result<String, Refusal> {
    let bound = call.bind().map_err(Refusal::new)?;
    let Some(source) = call.args.first().and_then(Arg::as_node) else {
        refuse!("a list of nothing")
    };
    let name = name_of(piece, source);
    let dim = print_arg(&piece.graph, bound.arg("dim"));
    let dim = if bound.arg("dim").is_none() { "0".to_string() } else { dim };
    let sections = ["split_size_or_sections", "split_size", "split_sizes"].map(|n| bound.arg(n));
    let sections = sections.into_iter().find(|arg| !arg.is_none());
    let rank = piece.tensor(source)?.rank() as i64;
    let place = bound.arg("dim").as_int().unwrap_or(0);
    let place = usize::try_from(if place < 0 { place + rank } else { place }).unwrap_or(0);
    let whole = ":, ".repeat(place);
    let part = |number: i64| -> Option<String> {
        Some(match (bound.op, sections) {
            (Op::Unbind, _) => format!("{name}.select({dim}, {number})"),
            (Op::Chunk, _) => {
                let count = print_arg(&piece.graph, bound.arg("chunks"));
                format!("{name}.chunk({count}, {dim})[{number}]")
            }
            (Op::Split, Some(Arg::Int(size))) => format!("{name}.split({size}, {dim})[{number}]"),
            (Op::Split, Some(Arg::Tuple(sizes) | Arg::List(sizes))) => {
                // What comes before is cut off piece by piece: sums of sizes are nobody's business here.
                let number = usize::try_from(number).ok()?;
                let cut = |arg: &Arg| print_arg(&piece.graph, arg);
                let before = sizes.get(..number)?.iter();
                let mut text = name.to_string();
                before.for_each(|size| text.push_str(&format!("[{whole}{}:]", cut(size))));
                text.push_str(&format!("[{whole}:{}]", cut(sizes.get(number)?)));
                text
            }
            _ => return None,
        })
    };
    let parts = piece.outputs.iter().map(|output| {
        let (_, call) = taken.iter().find(|(id, _)| id == output)?;
        match (call.op(), call.args.as_slice()) {
            (Some(Op::GetItem), [Arg::Node(from), Arg::Int(number)]) if *from == list => {
                part(*number)
            }
            _ => None,
        }
    });
    let Some(parts) = parts.collect::<Option<Vec<String>>>() else {
        refuse!("no views for what is taken from `{}`", piece.name(list))
    };
    Ok(parts.join(", "))
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
