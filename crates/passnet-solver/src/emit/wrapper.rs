//! The host side: sizes from shapes, outputs, the launch.

use super::formula::{readable, spaced};
use super::kernel::{KernelText, Shape};
use super::name_of;
use super::{Choice, Cut};
use crate::analysis::piece::Param;
use crate::analysis::{Piece, Refusal};
use passnet_graph::NodeId;
use std::fmt::Write as _;

/// Columns of a tile when a row is walked through.
const LONG_ROW_BLOCK: usize = 4096;
/// Columns of a tile that a row is cut into even where they do not divide it.
const LEAST_WIDTH: usize = 64;

/// A wrapper and what it takes.
pub(super) struct Wrapper {
    /// Names that the pattern takes.
    pub(super) parameters: Vec<String>,
    /// Those of them that the wrapper needs.
    pub(super) arguments: Vec<String>,
    pub(super) text: String,
}

pub(super) fn write(
    piece: &Piece,
    kernel: &KernelText,
    stem: &str,
    shape: Shape,
    choice: Choice,
) -> Result<Wrapper, Refusal> {
    let parameters: Vec<String> =
        piece.graph.placeholders().iter().map(|node| node.name.to_string()).collect();
    let body = wrapper_body(piece, kernel, stem, shape, choice)?;
    let arguments: Vec<String> =
        parameters.iter().filter(|name| mentions(&body, name)).cloned().collect();
    let text = format!("@torch.fx.wrap\ndef {stem}({}):\n{body}", arguments.join(", "));
    Ok(Wrapper { parameters, arguments, text })
}

fn wrapper_body(
    piece: &Piece,
    kernel: &KernelText,
    stem: &str,
    shape: Shape,
    choice: Choice,
) -> Result<String, Refusal> {
    let updated: Vec<usize> = piece.updates().map(|(param, _)| param).collect();
    let tensors: Vec<&str> = kernel
        .params
        .iter()
        .filter(|param| piece.is_tensor(NodeId::new(**param)) && !updated.contains(param))
        .filter(|param| !piece.is_strided(NodeId::new(**param)))
        .map(|param| name_of(piece, NodeId::new(*param)))
        .collect();
    let mut text = made_contiguous(&tensors);
    let mut line = |content: String| {
        let _ = writeln!(text, "    {content}");
    };
    let single = kernel.outputs.len() == 1;
    let out = |number: usize| if single { "out".to_string() } else { format!("out_{number}") };
    for number in &kernel.outputs {
        line(format!("{} = {}", out(*number), allocation(piece, piece.outputs[*number])?));
    }
    let rank_of = |name: &str| {
        let param = (0..piece.params.len()).map(NodeId::new).find(|id| name_of(piece, *id) == name);
        Some(piece.shape(param?).ok()?.len())
    };
    for (name, size) in &kernel.formulas {
        line(format!("{name} = {}", readable(&size.to_string(), rank_of)));
    }
    let (grid, constants) = launch(kernel, shape, choice, &mut line);
    let mut arguments: Vec<String> =
        kernel.params.iter().map(|param| name_of(piece, NodeId::new(*param)).to_string()).collect();
    arguments.extend(kernel.outputs.iter().map(|number| out(*number)));
    arguments.extend_from_slice(&kernel.sizes);
    arguments.extend(constants);
    if choice.warps != Choice::default().warps {
        arguments.push(format!("num_warps={}", choice.warps));
    }
    if kernel.rounds {
        // A compiler for GPUs would multiply and add in one step, without the rounding in between.
        arguments.push("enable_fp_fusion=False".into());
    }
    let call = format!("{stem}_kernel[{grid}]({})", arguments.join(", "));
    match call.len() <= 105 {
        true => line(call),
        false => {
            line(format!("{stem}_kernel[{grid}]("));
            line(format!("    {},", arguments.join(", ")));
            line(")".into());
        }
    }
    let returned: Vec<String> = piece
        .outputs
        .iter()
        .map(|output| match piece.updated_param(*output) {
            Some(param) => name_of(piece, NodeId::new(param)).to_string(),
            None => {
                let same = |other: &NodeId| piece.last_value(*other) == piece.last_value(*output);
                out(piece.outputs.iter().position(same).unwrap_or(0))
            }
        })
        .collect();
    line(format!("return {}", returned.join(", ")));
    Ok(text)
}

/// The lines that copy what does not lie row by row, a few tensors in each.
pub(super) fn made_contiguous(tensors: &[&str]) -> String {
    let mut text = String::new();
    for tensors in tensors.chunks(4) {
        let copies: Vec<String> =
            tensors.iter().map(|name| format!("{name}.contiguous()")).collect();
        let _ = writeln!(text, "    {} = {}", tensors.join(", "), copies.join(", "));
    }
    text
}

/// The grid, and the constants of a launch; how they follow from the sizes is written first.
fn launch(
    kernel: &KernelText,
    shape: Shape,
    choice: Choice,
    line: &mut impl FnMut(String),
) -> (String, Vec<String>) {
    let (rows, columns, tile) = (&kernel.rows, &kernel.columns, choice.tile);
    let tiles = match &kernel.slabs {
        Some(slabs) => format!("{slabs} * triton.cdiv({rows}, height)"),
        None => format!("triton.cdiv({rows}, height)"),
    };
    match shape {
        Shape::Flat => {
            line(format!("block = min(triton.next_power_of_2({columns}), {tile})"));
            (format!("(triton.cdiv({columns}, block),)"), vec!["BLOCK=block".into()])
        }
        Shape::Tiled => {
            match choice.cut {
                Cut::Divides => {
                    line(
                        "# A power of two that divides a row, where one does: masked lanes are work, too."
                            .into(),
                    );
                    line(format!("width = max({LEAST_WIDTH}, {columns} & -{columns})"));
                    line(format!("width = min(width, triton.next_power_of_2({columns}), {tile})"));
                }
                Cut::Broad => {
                    line(format!("width = min(triton.next_power_of_2({columns}), {tile})"));
                }
                Cut::Square => {
                    line(format!("width = min(triton.next_power_of_2({columns}), {LEAST_WIDTH})"));
                }
            }
            line(height(rows, tile));
            let grid = format!("({tiles}, triton.cdiv({columns}, width))");
            (grid, vec!["ROWS=height".into(), "COLUMNS=width".into()])
        }
        Shape::Rows => {
            line(format!("width = triton.next_power_of_2({columns})"));
            line(height(rows, tile));
            (format!("({tiles},)"), vec!["ROWS=height".into(), "COLUMNS=width".into()])
        }
        Shape::LongRows => {
            let width = tile.max(LONG_ROW_BLOCK);
            (format!("({rows},)"), vec!["ROWS=1".into(), format!("COLUMNS={width}")])
        }
    }
}

/// Rows of a tile: no more than there are.
fn height(rows: &str, tile: usize) -> String {
    format!("height = min(triton.next_power_of_2({rows}), max(1, {tile} // width))")
}

/// A new tensor for an output.
pub(super) fn allocation(piece: &Piece, output: NodeId) -> Result<String, Refusal> {
    let shape = piece.shape(output)?;
    let dtypes = piece.dtypes(output);
    let params = (0..piece.params.len()).map(NodeId::new).filter(|id| piece.is_tensor(*id));
    let params: Vec<NodeId> = params.collect();
    let like = params.iter().find(|id| piece.dtypes(**id) == dtypes);
    let dtype = match (like, dtypes.first()) {
        (Some(like), _) => format!("{}.dtype", name_of(piece, *like)),
        (None, Some(first)) if dtypes.iter().all(|dtype| dtype == first) => {
            format!("torch.{}", first.name())
        }
        _ => return Err(Refusal::new("no formula for the dtype of a result")),
    };
    let named = piece.params.iter().position(|param| matches!(param, Param::Device));
    let device = match (params.first(), named) {
        (Some(any), _) => format!("{}.device", name_of(piece, *any)),
        (None, Some(device)) => name_of(piece, NodeId::new(device)).to_string(),
        (None, None) => return Err(Refusal::new("nothing to compute from")),
    };
    let texts: Vec<String> = shape.iter().map(|size| spaced(&size.to_string())).collect();
    if let Some(order) = piece.memory_order(output)? {
        let places = order.iter().map(|dim| texts[*dim].as_str()).collect::<Vec<_>>().join(", ");
        let dims = (0..order.len()).map(|dim| order.iter().position(|at| *at == dim).unwrap_or(0));
        let dims = dims.map(|dim| dim.to_string()).collect::<Vec<_>>().join(", ");
        // As eager lays it out: who reads the result sees its strides.
        return Ok(format!(
            "torch.empty(({places}), dtype={dtype}, device={device}).permute({dims})"
        ));
    }
    let same = params.iter().find(|id| {
        piece.dtypes(**id) == dtypes
            && piece.shape(**id).is_ok_and(|own| {
                own.len() == texts.len()
                    && own.iter().zip(&texts).all(|(a, b)| spaced(&a.to_string()) == *b)
            })
    });
    if let Some(same) = same.filter(|same| !piece.is_strided(**same)) {
        return Ok(format!("torch.empty_like({})", name_of(piece, *same)));
    }
    let tuple = match texts.as_slice() {
        [only] => format!("({only},)"),
        several => format!("({})", several.join(", ")),
    };
    Ok(format!("torch.empty({tuple}, dtype={dtype}, device={device})"))
}

/// Whether a name occurs as a word.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !word(text[..at].chars().next_back()) && !word(text[at + name.len()..].chars().next())
    })
}
