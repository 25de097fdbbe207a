//! The host side: sizes from shapes, outputs, the launch.

use super::formula::{Dimensions, readable};
use super::kernel::KernelText;
use super::name_of;
use super::names::mentions;
use super::shape::Shape;
use super::tiles::INNER;
use super::{Choice, Cut};
use crate::analysis::piece::Param;
use crate::analysis::{Piece, Refusal, Size};
use passnet_graph::NodeId;

/// Columns of a tile when a row is walked through.
pub(super) const LONG_ROW_BLOCK: usize = 4096;
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

/// What the host does for one kernel; alone, or with what it does for others, it makes a wrapper.
pub(super) struct HostSide {
    /// Tensors that must lie row by row.
    pub(super) contiguous: Vec<String>,
    /// Results by their name in the wrapper, with what allocates them.
    pub(super) results: Vec<(String, String)>,
    /// The return before the launch, where results may have no elements.
    pub(super) early: Vec<String>,
    /// Sizes by their name in the wrapper, with their formula.
    pub(super) sizes: Vec<(String, String)>,
    /// Lines from which grid and constants follow, and the names they define.
    pub(super) steps: Vec<String>,
    pub(super) defined: &'static [&'static str],
    pub(super) grid: Vec<String>,
    /// What the kernel takes: parameters, results, sizes.
    pub(super) arguments: Vec<String>,
    /// Its constants, in order.
    pub(super) constants: Vec<String>,
    /// What is returned for each output of the piece.
    pub(super) returned: Vec<String>,
}

impl HostSide {
    pub(super) fn new(
        piece: &Piece,
        kernel: &KernelText,
        shape: Shape,
        choice: Choice,
    ) -> Result<HostSide, Refusal> {
        let param_name = |param: &usize| name_of(piece, NodeId::new(*param)).to_string();
        let updated: Vec<usize> = piece.updates().map(|(param, _)| param).collect();
        let is_made_contiguous = |param: &&usize| {
            let id = NodeId::new(**param);
            piece.is_tensor(id) && !updated.contains(param) && !piece.is_strided(id)
        };
        let single = kernel.outputs.len() == 1;
        let out = |number: usize| if single { "out".to_string() } else { format!("out_{number}") };
        let mut results = Vec::new();
        for number in &kernel.outputs {
            results.push((out(*number), allocation(piece, piece.outputs[*number])?));
        }
        let dimensions = Dimensions::of(piece);
        let size =
            |(name, size): &(String, Size)| (name.clone(), readable(size.formula(), &dimensions));
        let launch = launch(kernel, shape, choice);
        let mut arguments: Vec<String> = kernel.params.iter().map(param_name).collect();
        arguments.extend(kernel.outputs.iter().map(|number| out(*number)));
        arguments.extend_from_slice(&kernel.sizes);
        let returned = |output: &NodeId| match piece.updated_param(*output) {
            Some(param) => param_name(&param),
            None => {
                let same = |other: &NodeId| piece.last_value(*other) == piece.last_value(*output);
                out(piece.outputs.iter().position(same).unwrap_or(0))
            }
        };
        let returned: Vec<String> = piece.outputs.iter().map(returned).collect();
        let stored = match (results.first(), updated.first()) {
            (Some((name, _)), _) => name.clone(),
            (None, Some(param)) => param_name(param),
            (None, None) => return Err(Refusal::new("nothing is stored")),
        };
        let early = match kernel.is_idle_somewhere {
            true => vec![
                format!("if {stored}.numel() == 0:"),
                format!("    return {}", returned.join(", ")),
            ],
            false => Vec::new(),
        };
        Ok(HostSide {
            contiguous: kernel.params.iter().filter(is_made_contiguous).map(param_name).collect(),
            results,
            early,
            sizes: kernel.formulas.iter().map(size).collect(),
            steps: launch.steps,
            defined: launch.defined,
            grid: launch.grid,
            arguments,
            constants: launch.constants,
            returned,
        })
    }

    /// The lines before the launch.
    pub(super) fn preparation(&self) -> impl Iterator<Item = String> {
        let line = |(name, value): &(String, String)| format!("{name} = {value}");
        let results = self.results.iter().map(line).chain(self.early.iter().cloned());
        results.chain(self.sizes.iter().map(line)).chain(self.steps.iter().cloned())
    }
}

pub(super) fn write(
    piece: &Piece,
    kernel: &KernelText,
    stem: &str,
    shape: Shape,
    choice: Choice,
) -> Result<Wrapper, Refusal> {
    let host = HostSide::new(piece, kernel, shape, choice)?;
    let mut lines: Vec<String> = made_contiguous(&host.contiguous);
    lines.extend(host.preparation());
    let constants = kernel.constants.iter().zip(&host.constants);
    let mut arguments = host.arguments.clone();
    arguments.extend(constants.map(|(name, value)| format!("{name}={value}")));
    arguments.extend(launch_options(&warps(choice), kernel.rounds));
    let grid = match &host.grid[..] {
        [only] => format!("({only},)"),
        several => format!("({})", several.join(", ")),
    };
    lines.extend(launch_lines(stem, &grid, &arguments));
    lines.push(format!("return {}", host.returned.join(", ")));
    Ok(Wrapper::new(piece, stem, &lines))
}

impl Wrapper {
    /// A wrapper of these lines; it takes what they mention.
    pub(super) fn new(piece: &Piece, stem: &str, lines: &[String]) -> Wrapper {
        let body: String = lines.iter().map(|line| format!("    {line}\n")).collect();
        let names = piece.graph.placeholders().iter().map(|node| node.name.to_string());
        let parameters: Vec<String> = names.collect();
        let arguments: Vec<String> =
            parameters.iter().filter(|name| mentions(&body, name)).cloned().collect();
        let text = format!("@torch.fx.wrap\ndef {stem}({}):\n{body}", arguments.join(", "));
        Wrapper { parameters, arguments, text }
    }
}

/// The warps of a program, by the size of the graph where that decides.
fn warps(choice: Choice) -> String {
    match choice.small {
        Some(small) if small.warps != choice.warps => {
            format!("{} if is_small else {}", small.warps, choice.warps)
        }
        _ => choice.warps.to_string(),
    }
}

/// What a launch says besides its arguments.
pub(super) fn launch_options(warps: &str, rounds: bool) -> Vec<String> {
    let mut options = Vec::new();
    if warps != Choice::default().warps.to_string() {
        options.push(format!("num_warps={warps}"));
    }
    if rounds {
        // A compiler for GPUs would multiply and add in one step, without the rounding in between.
        options.push("enable_fp_fusion=False".into());
    }
    options
}

pub(super) fn launch_lines(stem: &str, grid: &str, arguments: &[String]) -> Vec<String> {
    let call = format!("{stem}_kernel[{grid}]({})", arguments.join(", "));
    match call.len() <= 105 {
        true => vec![call],
        false => vec![
            format!("{stem}_kernel[{grid}]("),
            format!("    {},", arguments.join(", ")),
            ")".into(),
        ],
    }
}

/// The lines that copy what does not lie row by row, a few tensors in each.
pub(super) fn made_contiguous(tensors: &[String]) -> Vec<String> {
    let line = |tensors: &[String]| {
        let copies: Vec<String> =
            tensors.iter().map(|name| format!("{name}.contiguous()")).collect();
        format!("{} = {}", tensors.join(", "), copies.join(", "))
    };
    tensors.chunks(4).map(line).collect()
}

/// A grid and constants.
struct Launch {
    steps: Vec<String>,
    /// Names that the steps define.
    defined: &'static [&'static str],
    grid: Vec<String>,
    constants: Vec<String>,
}

/// What of a tile a wrapper names, by the size of the graph or as it is.
struct Tile {
    /// Lines that define it.
    steps: Vec<String>,
    elements: String,
    side: String,
}

impl Tile {
    fn of(kernel: &KernelText, shape: Shape, choice: Choice) -> Tile {
        let sides = choice.cut == Cut::Square && shape == Shape::Tiled;
        let (tile, side) = (choice.tile, choice.tile.isqrt());
        let Some(small) = choice.small else {
            return Tile { steps: Vec::new(), elements: tile.to_string(), side: side.to_string() };
        };
        let loops = [kernel.slabs.as_deref(), Some(&kernel.rows), Some(&kernel.columns)];
        let loops: Vec<&str> = loops.into_iter().flatten().filter(|size| *size != "1").collect();
        let work = if loops.is_empty() { "1".to_string() } else { loops.join(" * ") };
        let mut steps = vec![
            "# Less work is cut finer, so that every multiprocessor gets some.".to_string(),
            format!("is_small = {work} < {}", small.below),
        ];
        let either = |name: &str, own: usize, other: usize| match own == other {
            true => (None, own.to_string()),
            false => (Some(format!("{name} = {own} if is_small else {other}")), name.to_string()),
        };
        let (step, elements) = either("tile", small.tile, tile);
        steps.extend(step);
        let (step, side) = either("side", small.tile.isqrt(), side);
        steps.extend(step.filter(|_| sides));
        Tile { steps, elements, side }
    }
}

fn launch(kernel: &KernelText, shape: Shape, choice: Choice) -> Launch {
    let (rows, columns) = (&kernel.rows, &kernel.columns);
    let tile = Tile::of(kernel, shape, choice);
    let tiles = match &kernel.slabs {
        Some(slabs) => format!("{slabs} * triton.cdiv({rows}, height)"),
        None => format!("triton.cdiv({rows}, height)"),
    };
    let tiled = |steps: Vec<String>, grid: Vec<String>| Launch {
        steps: tile.steps.iter().cloned().chain(steps).collect(),
        defined: &["width", "height", "is_small", "tile", "side"],
        grid,
        constants: vec!["height".into(), "width".into()],
    };
    match shape {
        Shape::Flat => Launch {
            steps: tile
                .steps
                .iter()
                .cloned()
                .chain([format!(
                    "block = min(triton.next_power_of_2({columns}), {})",
                    tile.elements
                )])
                .collect(),
            defined: &["block", "is_small", "tile"],
            grid: vec![format!("triton.cdiv({columns}, block)")],
            constants: vec!["block".into()],
        },
        Shape::Tiled => {
            let mut steps = widths(rows, columns, choice.cut, &tile);
            steps.push(height(rows, &tile));
            tiled(steps, vec![tiles, format!("triton.cdiv({columns}, width)")])
        }
        Shape::Product => {
            let side = choice.tile.isqrt().to_string();
            Launch {
                steps: vec![format!("height = {side}"), format!("width = {side}")],
                defined: &["width", "height"],
                grid: vec![tiles, format!("triton.cdiv({columns}, width)")],
                constants: vec!["height".into(), "width".into(), INNER.to_string()],
            }
        }
        Shape::Rows if choice.one_row => Launch {
            steps: vec![format!("width = triton.next_power_of_2({columns})")],
            defined: &["width"],
            grid: vec![rows.clone()],
            constants: vec!["width".into()],
        },
        Shape::Rows => tiled(
            vec![format!("width = triton.next_power_of_2({columns})"), height(rows, &tile)],
            vec![tiles],
        ),
        Shape::Walked => {
            let height = format!("height = min(triton.next_power_of_2({rows}), {})", tile.elements);
            let constants = vec!["height".into(), "1".into()];
            Launch { constants, ..tiled(vec![height], vec![tiles]) }
        }
        Shape::LongRows => Launch {
            steps: Vec::new(),
            defined: &[],
            grid: vec![rows.clone()],
            constants: match (choice.one_row, choice.tile.max(LONG_ROW_BLOCK).to_string()) {
                (true, columns) => vec![columns],
                (false, columns) => vec!["1".into(), columns],
            },
        },
    }
}

/// How wide a tile is.
fn widths(rows: &str, columns: &str, cut: Cut, tile: &Tile) -> Vec<String> {
    let Tile { elements, side, .. } = tile;
    match cut {
        Cut::Divides => vec![
            "# A power of two that divides a row, where one does: masked lanes are work, too."
                .into(),
            format!("width = max({LEAST_WIDTH}, {columns} & -{columns})"),
            format!("width = min(width, triton.next_power_of_2({columns}), {elements})"),
        ],
        Cut::Broad => vec![format!("width = min(triton.next_power_of_2({columns}), {elements})")],
        Cut::Square => vec![
            format!("width = max({side}, {elements} // triton.next_power_of_2({rows}))"),
            format!("width = min(width, triton.next_power_of_2({columns}))"),
        ],
    }
}

/// Rows of a tile: no more than there are.
fn height(rows: &str, tile: &Tile) -> String {
    format!("height = min(triton.next_power_of_2({rows}), max(1, {} // width))", tile.elements)
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
    let texts: Vec<String> = shape.iter().map(|size| format!("{:#}", size.formula())).collect();
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
                own.len() == shape.len()
                    && own.iter().zip(&shape).all(|(a, b)| a.formula() == b.formula())
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
