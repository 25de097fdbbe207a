//! From a kernel's description to a pass file that a person would be glad to read.

mod address;
mod file;
mod formula;
mod join;
mod kernel;
mod long_rows;
mod loops;
mod names;
mod passthrough;
mod pattern;
mod shape;
mod skeleton;
mod statement;
mod together;
mod wrapper;
mod writer;

use crate::analysis::body::{Code, LONGEST_ROW, Var};
use crate::analysis::groups::Group;
use crate::analysis::space::{Space, coalesce};
use crate::analysis::{Body, Piece, Refusal};
pub(crate) use file::{MANIFEST, solution_files};
pub use file::{PassText, SHARED, pass_files};
pub use passthrough::passthrough;
pub use skeleton::skeleton;
pub use together::together;

use kernel::KernelText;
use passnet_graph::ops::{Class, Op};
use passnet_graph::{Graph, NodeId};
use shape::Shape;

/// What tuning may change about a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice {
    /// Elements that one program holds at a time; a power of two.
    pub tile: usize,
    pub warps: usize,
    pub cut: Cut,
    /// For a `cat` by itself: whether each argument is copied by a launch of its own.
    pub by_argument: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Choice { tile: 1024, warps: 4, cut: Cut::Divides, by_argument: false }
    }
}

/// How wide the tiles of rows and columns are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// As a power of two that divides a row, where one does.
    Divides,
    /// As the row, or the whole tile.
    Broad,
    /// About as high as wide: for what memory holds column by column.
    Square,
}

/// A group made ready to be written with different choices.
#[derive(Debug)]
pub struct Draft<'g> {
    pub stem: String,
    piece: &'g Piece,
    body: Body,
    space: Space,
    shape: Shape,
    /// Whether memory holds something of it column by column.
    across: bool,
}

impl<'g> Draft<'g> {
    pub fn new(group: &'g Group, stem: String) -> Result<Draft<'g>, Refusal> {
        let mut body = group.body.clone();
        let space = coalesce(&mut body)?;
        let shape = Shape::of(&body, &space, LONGEST_ROW);
        let across = space.runs_across(&body);
        Ok(Draft { stem, piece: &group.piece, body, space, shape, across })
    }

    /// What the kernel's loops look like.
    pub fn kind(&self, choice: Choice) -> &'static str {
        if choice.by_argument {
            return join::KIND;
        }
        match self.shape {
            Shape::Flat => "pointwise over one loop",
            Shape::Tiled => "pointwise over rows and columns",
            Shape::Rows => "whole rows folded in one block",
            Shape::LongRows => "long rows folded block by block",
        }
    }

    /// Choices worth trying, the usual one first. On the host a program costs as much as hundreds of elements.
    pub fn choices(&self, on_host: bool) -> Vec<Choice> {
        let tile = |tile: usize| Choice { tile, ..Choice::default() };
        let broad = |tile: usize| Choice { tile, cut: Cut::Broad, ..Choice::default() };
        let square = |tile: usize| Choice { tile, cut: Cut::Square, ..Choice::default() };
        let mut choices = match self.shape {
            // Long runs through memory come first, and lanes that a mask switches off at the end of a row cost nothing.
            Shape::Tiled if on_host => {
                vec![broad(4096), broad(16384), tile(4096), broad(1024), tile(1024)]
            }
            Shape::Tiled => vec![tile(1024), broad(1024), broad(4096), tile(256)],
            Shape::Rows | Shape::LongRows if on_host => vec![tile(4096), tile(1024)],
            _ if on_host => vec![tile(4096), tile(1024), tile(256)],
            _ => vec![tile(1024), tile(4096), tile(256)],
        };
        // As many rows as a cache line has elements.
        match self.shape {
            Shape::Tiled if self.across => choices.insert(0, square(4096)),
            Shape::Rows if self.across && on_host => choices.insert(0, tile(32768)),
            _ => {}
        }
        if on_host && join::is_join(self.piece) {
            choices.insert(0, Choice { by_argument: true, ..tile(16384) });
        }
        choices
    }

    /// Loads that find their place lane by lane, from numbers that are computed or loaded themselves.
    pub fn lookups(&self) -> usize {
        let Some(column) = self.space.kept.iter().chain(&self.space.reduced).next_back() else {
            return 0;
        };
        let looks_up = |var: &Var| {
            let Code::Load { address, .. } = &var.code else { return false };
            let mut found = false;
            address.for_each_value(&mut |var| found |= self.body.vars[var].axes.contains(column));
            found
        };
        self.body.vars.iter().filter(|var| looks_up(var)).count()
    }

    /// The parts of the pass.
    pub fn write(&self, choice: Choice) -> Result<PassText, Refusal> {
        if choice.by_argument {
            return join::write(self.piece, &self.stem, choice.tile);
        }
        let kernel = KernelText::new(self.piece, &self.body, &self.space, self.shape)?;
        let wrapper = wrapper::write(self.piece, &kernel, &self.stem, self.shape, choice)?;
        let pattern = pattern::write(self.piece);
        Ok(PassText {
            stem: self.stem.clone(),
            summary: format!(
                "{}\n\nOne kernel: {}. Arithmetic in float32, rounded where eager stores.",
                pattern::summary(self.piece),
                self.kind(choice)
            ),
            imports: pattern.imports,
            pattern: pattern.text,
            parameters: wrapper.parameters,
            arguments: wrapper.arguments,
            kernel: kernel.alone(&format!("{}_kernel", self.stem)),
            calls_library: kernel.calls_library(),
            wrapper: wrapper.text,
        })
    }
}

/// A file name that says what a group computes.
pub fn stem_of(group: &Group) -> String {
    stem(&group.piece.graph, copies(group))
}

/// A file name that says what a graph computes; views have a word in it only where nothing else is computed.
pub(crate) fn stem(graph: &Graph, copies: bool) -> String {
    let mut words: Vec<String> = Vec::new();
    for (_, call) in graph.calls() {
        let Some(op) = call.op() else { continue };
        let free =
            matches!(op.class(), Class::View | Class::Scalar | Class::Random) || op == Op::GetItem;
        if free && graph.op_count() > 1 && words.len() + 1 < graph.op_count() && !copies {
            continue;
        }
        let word = op.name().trim_matches('_').to_string();
        if words.last() != Some(&word) {
            words.push(word);
        }
    }
    words.truncate(5);
    if words.is_empty() {
        words.push("fused".into());
    }
    let stem = words.join("_");
    // A function of this name would hide Python's from the wrappers and kernels of its file.
    if IN_USE.contains(&stem.as_str()) { format!("fused_{stem}") } else { stem }
}

/// What the text of a pass calls by its plain name, and what it is called by.
const IN_USE: [&str; 14] = [
    "abs", "bool", "dispatch", "float", "int", "len", "max", "min", "range", "round", "sum", "tl",
    "torch", "triton",
];

/// Whether a group does nothing but copy.
fn copies(group: &Group) -> bool {
    let mut calls = group.piece.graph.calls();
    calls.all(|(_, call)| call.op().is_some_and(|op| op.class() == Class::View))
}

/// The name of a parameter or value in generated code.
pub(crate) fn name_of(piece: &Piece, id: NodeId) -> &str {
    piece.name(id)
}
