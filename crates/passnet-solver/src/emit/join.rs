//! A `cat` by itself, for the host: each of its arguments is copied to its place by a launch of its own.
//!
//! One launch for all of them would have to ask for every element which argument it comes from.

use super::file::PassText;
use super::wrapper::{self, Wrapper};
use super::{name_of, pattern};
use crate::analysis::{Piece, Refusal, refuse};
use passnet_graph::infer::Value;
use passnet_graph::ops::Op;
use passnet_graph::{Arg, NodeId};

pub(super) const KIND: &str = "one copy for each argument";

/// What the wrapper calls its own values.
const OWN_NAMES: [&str; 6] = ["out", "slabs", "stride", "offset", "length", "block"];

/// The pass, whose programs copy so many elements each.
pub(super) fn write(piece: &Piece, stem: &str, tile: usize) -> Result<PassText, Refusal> {
    let Some((id, call)) = piece.only(Op::Cat) else { refuse!("no `cat` by itself") };
    let bound = call.bind().map_err(Refusal::new)?;
    let nodes = bound.arg("tensors").as_sequence().unwrap_or(&[]).iter().map(Arg::as_node);
    let Some(sources) = nodes.collect::<Option<Vec<NodeId>>>().filter(|nodes| !nodes.is_empty())
    else {
        refuse!("a join of no known list")
    };
    if piece.memory_order(id)?.is_some() {
        refuse!("a join that lies otherwise than row by row");
    }
    let rank = piece.tensor(id)?.rank();
    let dim = bound.arg("dim").as_int().unwrap_or(0);
    let dim = usize::try_from(if dim < 0 { dim + rank as i64 } else { dim }).unwrap_or(rank);
    for source in &sources {
        let is_alike = piece.tensor(*source)?.rank() == rank
            && piece.dtypes(*source) == piece.dtypes(id)
            && !piece.is_strided(*source);
        let mut tensors = piece.values(*source).iter().filter_map(Value::as_tensor);
        if !is_alike || dim >= rank || tensors.any(|tensor| tensor.elements() == 0) {
            refuse!("arguments that cannot be copied as they lie");
        }
        if OWN_NAMES.contains(&name_of(piece, *source)) {
            refuse!("an argument with a name that the wrapper needs");
        }
    }
    let wrapper = Wrapper::new(piece, stem, &lines(piece, id, &sources, dim, stem, tile)?);
    let pattern = pattern::write(piece);
    Ok(PassText {
        stem: stem.to_string(),
        summary: format!(
            "{}\n\nOne kernel, launched for each argument, which it copies to its place.",
            pattern::summary(piece)
        ),
        imports: pattern.imports,
        pattern: pattern.text,
        kernel: kernel(stem),
        calls_library: false,
        wrapper: wrapper.text,
        parameters: wrapper.parameters,
        arguments: wrapper.arguments,
    })
}

/// Copies what an argument has of every slab, one run of memory, to its place in the slab of the result.
fn kernel(stem: &str) -> String {
    format!(
        "\
@triton.jit
def {stem}_kernel(source_ptr, out_ptr, length, stride, offset, BLOCK: tl.constexpr):
    slab = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < length
    source = tl.load(source_ptr + slab * length + column, mask=inside)
    tl.store(out_ptr + slab * stride + offset + column, source, mask=inside)
"
    )
}

/// The lines of the wrapper.
fn lines(
    piece: &Piece,
    id: NodeId,
    sources: &[NodeId],
    dim: usize,
    stem: &str,
    tile: usize,
) -> Result<Vec<String>, Refusal> {
    let rank = piece.tensor(id)?.rank();
    let names: Vec<String> =
        sources.iter().map(|source| name_of(piece, *source).to_string()).collect();
    let elements = |name: &str, dims: std::ops::Range<usize>| match dims.is_empty() {
        true => "1".to_string(),
        false => dims.map(|dim| format!("{name}.shape[{dim}]")).collect::<Vec<_>>().join(" * "),
    };
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let mut lines = wrapper::made_contiguous(&distinct);
    let mut line = |content: String| lines.push(content);
    line(format!("out = {}", wrapper::allocation(piece, id)?));
    line(format!("slabs = {}", elements(&names[0], 0..dim)));
    let lengths = names.iter().map(|name| elements(name, dim..rank));
    line(format!("stride = {}", lengths.collect::<Vec<_>>().join(" + ")));
    line("offset = 0".into());
    for (number, name) in names.iter().enumerate() {
        if number > 0 {
            line("offset = offset + length".into());
        }
        line(format!("length = {}", elements(name, dim..rank)));
        line(format!("block = min(triton.next_power_of_2(length), {tile})"));
        line(format!(
            "{stem}_kernel[(slabs, triton.cdiv(length, block))]({name}, out, length, stride, offset, BLOCK=block)"
        ));
    }
    line("return out".into());
    Ok(lines)
}
