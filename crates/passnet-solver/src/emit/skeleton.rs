//! A pass to be finished by hand: pattern, arguments, allocation and launches stand, the computation does not.

use super::file::PassText;
use super::wrapper::{allocation, mentions};
use super::{name_of, pattern};
use crate::analysis::{Piece, Refusal, refuse};
use passnet_graph::NodeId;
use passnet_graph::ops::Op;
use std::fmt::Write as _;

/// What a skeleton stores until somebody writes the computation: it compiles and matches, and is wrong.
pub fn skeleton(piece: &Piece, stem: String) -> Result<PassText, Refusal> {
    if piece.updates().next().is_some() {
        refuse!("it updates a parameter in place");
    }
    let tensors: Vec<&str> = (0..piece.params.len())
        .map(NodeId::new)
        .filter(|param| piece.is_tensor(*param))
        .map(|param| name_of(piece, param))
        .collect();
    let body = body(piece, &stem, &tensors)?;
    let names = piece.graph.placeholders().iter().map(|node| node.name.to_string());
    let parameters: Vec<String> = names.collect();
    let arguments: Vec<String> =
        parameters.iter().filter(|name| mentions(&body, name)).cloned().collect();
    let operations = piece.graph.calls().filter_map(|(_, call)| call.op().map(Op::name));
    let pattern = pattern::write(piece);
    Ok(PassText {
        summary: format!(
            "To be written: {}.\n\nIt matches and compiles, and its results are wrong (zeros) until the kernel computes them.",
            operations.collect::<Vec<_>>().join(", ")
        ),
        imports: pattern.imports,
        pattern: pattern.text,
        wrapper: format!("@torch.fx.wrap\ndef {stem}({}):\n{body}", arguments.join(", ")),
        kernel: kernel(&stem, &tensors),
        stem,
        parameters,
        arguments,
    })
}

/// One program for each block of results, with the mask that every load and store needs.
fn kernel(stem: &str, tensors: &[&str]) -> String {
    let pointers: String = tensors.iter().map(|name| format!("{name}_ptr, ")).collect();
    let first = tensors.first().copied().unwrap_or("out");
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
fn body(piece: &Piece, stem: &str, tensors: &[&str]) -> Result<String, Refusal> {
    let mut text = super::wrapper::made_contiguous(tensors);
    let pointers: String = tensors.iter().map(|name| format!("{name}, ")).collect();
    let mut outputs = Vec::new();
    for (number, output) in piece.outputs.iter().enumerate() {
        if piece.is_param(*output) || piece.memory_order(*output)?.is_some() {
            refuse!("`{}` is no new tensor laid out row by row", name_of(piece, *output));
        }
        let out = if piece.outputs.len() == 1 { "out".into() } else { format!("out_{number}") };
        let _ = write!(
            text,
            "    {out} = {}\n    \
                 grid = (triton.cdiv({out}.numel(), 1024),)\n    \
                 {stem}_kernel[grid]({pointers}{out}, {out}.numel(), BLOCK=1024)\n",
            allocation(piece, *output)?
        );
        outputs.push(out);
    }
    if outputs.is_empty() {
        refuse!("it has no result");
    }
    let _ = writeln!(text, "    return {}", outputs.join(", "));
    Ok(text)
}
