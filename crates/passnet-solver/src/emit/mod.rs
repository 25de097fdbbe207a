//! From a kernel's description to a pass file that a person would be glad to read.

mod address;
mod choice;
mod chunks;
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
mod tiles;
mod together;
mod wrapper;
mod writer;

use crate::analysis::body::{Code, LONGEST_ROW, Var};
use crate::analysis::groups::Group;
use crate::analysis::space::{Space, coalesce};
use crate::analysis::{Body, Piece, Refusal};
pub use choice::Choice;
pub(crate) use choice::Cut;
pub(crate) use file::{MANIFEST, SHARED, solution_files};
pub use file::{PassText, pass_files};
pub(crate) use passthrough::passthrough;
pub(crate) use skeleton::skeleton;
pub(crate) use together::together;

use chunks::Source;
use kernel::KernelText;
use passnet_graph::ops::{Class, Op};
use passnet_graph::{Graph, NodeId};
use shape::Shape;

/// A group made ready to be written with different choices.
#[derive(Debug)]
pub struct Draft<'g> {
    pub(crate) stem: String,
    piece: &'g Piece,
    body: Body,
    space: Space,
    shape: Shape,
    /// Whether memory holds something of it column by column.
    across: bool,
}

impl<'g> Draft<'g> {
    /// Simplifies the loops of a group and says what they look like.
    pub fn new(group: &'g Group, stem: String) -> Result<Draft<'g>, Refusal> {
        let mut body = group.body.clone();
        let space = coalesce(&mut body)?;
        let shape = Shape::of(&body, &space, LONGEST_ROW);
        let across = space.runs_across(&body);
        Ok(Draft { stem, piece: &group.piece, body, space, shape, across })
    }

    /// What the kernel's loops look like.
    pub(crate) fn kind(&self, choice: Choice) -> &'static str {
        if choice.by_argument {
            return join::KIND;
        }
        if choice.programs > 0 {
            return chunks::KIND;
        }
        match self.shape_as(choice) {
            Shape::Flat => "pointwise over one loop",
            Shape::Tiled => "pointwise over rows and columns",
            Shape::Product => "a product in tiles",
            Shape::Rows => "whole rows folded in one block",
            Shape::LongRows => "long rows folded block by block",
            Shape::Walked => "short rows side by side, each folded by one lane",
        }
    }

    /// What the loops of the kernel look like that is written.
    fn shape_as(&self, choice: Choice) -> Shape {
        if choice.walked { Shape::Walked } else { self.shape }
    }

    /// Loads that find their place lane by lane, from numbers that are computed or loaded themselves.
    pub(crate) fn lookups(&self) -> usize {
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
        self.written_as(&self.stem, choice)
    }

    /// The parts of the pass, under a name.
    fn written_as(&self, stem: &str, choice: Choice) -> Result<PassText, Refusal> {
        if choice.by_argument {
            return join::write(self.piece, stem, choice.tile);
        }
        if choice.programs > 0 {
            let source = Source { piece: self.piece, body: &self.body, space: &self.space };
            return chunks::write(&source, stem, choice);
        }
        let shape = self.shape_as(choice);
        let kernel = KernelText::new(self.piece, &self.body, &self.space, shape, choice)?;
        let wrapper = wrapper::write(self.piece, &kernel, stem, shape, choice)?;
        let pattern = pattern::write(self.piece);
        Ok(PassText {
            stem: stem.to_string(),
            summary: format!(
                "{}\n\nOne kernel: {}. Arithmetic in float32, rounded where eager stores.",
                pattern::summary(self.piece),
                self.kind(choice)
            ),
            imports: pattern.imports,
            pattern: pattern.text,
            parameters: wrapper.parameters,
            arguments: wrapper.arguments,
            kernel: kernel.alone(&format!("{stem}_kernel"), choice.for_gpu),
            calls_library: kernel.calls_library(),
            wrapper: wrapper.text,
        })
    }
}

/// A file name that says what a group computes.
pub(crate) fn stem_of(group: &Group) -> String {
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
