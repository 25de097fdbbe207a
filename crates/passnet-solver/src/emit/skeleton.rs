//! A pass to be finished by hand: pattern, arguments, allocation and launches stand, the computation does not.

use super::file::PassText;
use super::wrapper::{Wrapper, allocation, made_contiguous};
use super::{name_of, pattern};
use crate::analysis::{Piece, Refusal, refuse};
use passnet_graph::NodeId;
use passnet_graph::ops::Op;

/// What a skeleton stores until somebody writes the computation: it compiles and matches, and is wrong.
pub fn skeleton(piece: &Piece, stem: String) -> Result<PassText, Refusal> {
    if piece.updates().next().is_some() {
        refuse!("it updates a parameter in place");
    }
    let tensors: Vec<String> = (0..piece.params.len())
        .map(NodeId::new)
        .filter(|param| piece.is_tensor(*param))
        .map(|param| name_of(piece, param).to_string())
        .collect();
    let wrapper = Wrapper::new(piece, &stem, &lines(piece, &stem, &tensors)?);
    let operations = piece.graph.calls().filter_map(|(_, call)| call.op().map(Op::name));
    let pattern = pattern::write(piece);
    Ok(PassText {
        summary: format!(
            "To be written: {}.\n\nIt matches and compiles, and its results are wrong (zeros) until the kernel computes them.",
            operations.collect::<Vec<_>>().join(", ")
        ),
        imports: pattern.imports,
        pattern: pattern.text,
        wrapper: wrapper.text,
        kernel: kernel(&stem, &tensors),
        calls_library: false,
        stem,
        parameters: wrapper.parameters,
        arguments: wrapper.arguments,
    })
}

/// One program for each block of results, with the mask that every load and store needs.
fn kernel(stem: &str, tensors: &[String]) -> String {
    let pointers: String = tensors.iter().map(|name| format!("{name}_ptr, ")).collect();
    let first = tensors.first().map_or("out", String::as_str);
    format!(
        "@triton.jit\n\
         def {stem}_kernel({pointers}out_ptr, elements, BLOCK: tl.constexpr):\n    \
             place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
             inside = place < elements\n    \
             # Write here what one element of the result is. Loads look like this, with a place inside their tensor:\n    \
             #     value = tl.load({first}_ptr + place, mask=inside, other=0.0).to(tl.float32)\n    \
             result = tl.zeros((BLOCK,), dtype=tl.float32)\n    \
             tl.store(out_ptr + place, result.to(out_ptr.dtype.element_ty), mask=inside)\n"
    )
}

/// Every output allocated as eager lays it out, and filled by a launch of its own.
fn lines(piece: &Piece, stem: &str, tensors: &[String]) -> Result<Vec<String>, Refusal> {
    let mut lines = made_contiguous(tensors);
    let pointers: String = tensors.iter().map(|name| format!("{name}, ")).collect();
    let mut outputs = Vec::new();
    for (number, output) in piece.outputs.iter().enumerate() {
        if piece.is_param(*output) || piece.memory_order(*output)?.is_some() {
            refuse!("`{}` is no new tensor laid out row by row", name_of(piece, *output));
        }
        let out = if piece.outputs.len() == 1 { "out".into() } else { format!("out_{number}") };
        lines.push(format!("{out} = {}", allocation(piece, *output)?));
        lines.push(format!("grid = (triton.cdiv({out}.numel(), 1024),)"));
        lines.push(format!("{stem}_kernel[grid]({pointers}{out}, {out}.numel(), BLOCK=1024)"));
        outputs.push(out);
    }
    if outputs.is_empty() {
        refuse!("it has no result");
    }
    lines.push(format!("return {}", outputs.join(", ")));
    Ok(lines)
}
