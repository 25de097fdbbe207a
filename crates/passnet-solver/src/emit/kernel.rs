//! The kernel's text.

use super::Choice;
use super::shape::Shape;
use super::statement::{Block, Name, Term, word};
use super::writer::{Loops, Writer, arguments};
use crate::analysis::body::{Body, Code};
use crate::analysis::space::Space;
use crate::analysis::tiles::Tiles;
use crate::analysis::{Piece, Refusal, Size};

/// A kernel as text, and what its launch needs.
#[derive(Debug)]
pub struct KernelText {
    /// What its function takes besides constants.
    pub signature: Vec<String>,
    /// The constants it takes.
    pub constants: Vec<&'static str>,
    /// The statements of its function.
    statements: Block,
    /// Tensor and number parameters it takes, by number.
    pub params: Vec<usize>,
    pub outputs: Vec<usize>,
    /// Sizes that kernel and launch need: name and formula.
    pub formulas: Vec<(String, Size)>,
    /// Those of them that the kernel takes.
    pub sizes: Vec<String>,
    /// Names of the number of rows and of columns, or of their literal.
    pub rows: String,
    pub columns: String,
    /// Name of the number of slabs of so many rows each, where there are several.
    pub slabs: Option<String>,
    /// Whether it rounds on the way, where eager stores something.
    pub rounds: bool,
    /// Whether its results have no elements in some graph, where no grid fits.
    pub is_idle_somewhere: bool,
}

impl KernelText {
    pub fn new(
        piece: &Piece,
        body: &Body,
        space: &Space,
        shape: Shape,
        choice: Choice,
    ) -> Result<KernelText, Refusal> {
        let mut writer = Writer::new(piece, body, space, (shape, choice.one_row));
        let Loops { slabs, rows, columns } = writer.loops(space)?;
        match shape {
            Shape::LongRows => writer.long_rows(space, &columns, choice.for_gpu)?,
            // Two walks through a few elements: the second finds them in the nearest cache.
            Shape::Walked => writer.long_rows(space, &columns, false)?,
            _ => {
                if let Some(tiles) = Tiles::of(body, space).filter(|_| body.in_tiles) {
                    writer.product(tiles)?;
                }
                for store in 0..body.stores.len() {
                    writer.store(store)?;
                }
            }
        }
        let (params, outputs) = arguments(body);
        let statements = writer.finish();
        let used = statements.names();
        let in_kernel = |name: &String| used.contains(&Name::Word(name.clone()));
        let launched = [Some(&rows), Some(&columns), slabs.as_ref()];
        let in_launch = |name: &String| launched.contains(&Some(&word(name)));
        writer.names.given.retain(|(name, _)| in_kernel(name) || in_launch(name));
        let sizes: Vec<String> =
            writer.names.given.iter().map(|(name, _)| name.clone()).filter(in_kernel).collect();
        let signature = writer.signature(&params, &outputs, &sizes);
        let rounds = rounds(body);
        let formulas = writer.names.given;
        Ok(KernelText {
            signature,
            constants: match shape {
                Shape::Flat => vec!["BLOCK"],
                Shape::Product => vec!["ROWS", "COLUMNS", "INNER"],
                _ if choice.one_row => vec!["COLUMNS"],
                _ => vec!["ROWS", "COLUMNS"],
            },
            statements,
            params,
            outputs,
            formulas,
            sizes,
            rows: rows.to_string(),
            columns: columns.to_string(),
            slabs: slabs.map(|slabs| slabs.to_string()),
            rounds,
            is_idle_somewhere: body.is_idle_somewhere(),
        })
    }

    /// One of several kernels for a body, which takes what its statements use; what the host does it does for all of them.
    pub(super) fn of_stage(
        body: &Body,
        (rows, columns): (&Term, &Term),
        (signature, sizes, constants): (Vec<String>, Vec<String>, Vec<&'static str>),
        statements: Block,
    ) -> KernelText {
        let (params, outputs) = arguments(body);
        KernelText {
            signature,
            constants,
            statements,
            params,
            outputs,
            formulas: Vec::new(),
            sizes,
            rows: rows.to_string(),
            columns: columns.to_string(),
            slabs: None,
            rounds: rounds(body),
            is_idle_somewhere: body.is_idle_somewhere(),
        }
    }

    /// What it is called with, besides constants, by the names in the wrapper.
    pub(super) fn arguments(&self) -> Vec<String> {
        let argument = |name: &String| name.strip_suffix("_ptr").unwrap_or(name).to_string();
        self.signature.iter().map(argument).collect()
    }

    /// What its function takes; sizes are constants where they are fixed.
    fn parameters(&self, for_gpu: bool) -> impl Iterator<Item = String> {
        let given =
            self.signature.iter().map(move |name| match for_gpu && self.sizes.contains(name) {
                true => constant(name),
                false => name.clone(),
            });
        given.chain(self.constants.iter().map(|name| constant(name)))
    }

    /// A kernel of its own.
    pub(super) fn alone(&self, name: &str, for_gpu: bool) -> String {
        let arguments: Vec<String> = self.parameters(for_gpu).collect();
        format!("@triton.jit\n{}\n{}\n", header(name, &arguments), self.statements)
    }

    /// A function that another kernel calls, which says what the program's number is.
    pub(super) fn part(&self, name: &str, for_gpu: bool) -> String {
        let lines = self.statements.renamed(&|name| match name {
            Name::Program(0) => word("program"),
            Name::Program(_) => word("across"),
            Name::Word(_) => Term::Value(name.clone()),
        });
        let numbers = ["program", "across"].into_iter().take(self.numbers()).map(String::from);
        let arguments: Vec<String> = numbers.chain(self.parameters(for_gpu)).collect();
        format!("@triton.jit\n{}\n{lines}\n", header(name, &arguments))
    }

    /// How many numbers a program has.
    pub(super) fn numbers(&self) -> usize {
        if self.statements.names().contains(&Name::Program(1)) { 2 } else { 1 }
    }

    /// Whether it calls functions of the device's library.
    pub(super) fn calls_library(&self) -> bool {
        self.statements.calls("libdevice.")
    }
}

/// A parameter that the compiler knows.
pub(super) fn constant(name: &str) -> String {
    format!("{name}: tl.constexpr")
}

/// Whether something is rounded on the way.
fn rounds(body: &Body) -> bool {
    body.vars.iter().any(|var| matches!(var.code, Code::Round { .. }))
}

/// The first line of a function, broken where it is long.
pub(super) fn header(name: &str, arguments: &[String]) -> String {
    let line = format!("def {name}({}):", arguments.join(", "));
    match line.len() <= 110 {
        true => line,
        false => format!("def {name}(\n    {},\n):", arguments.join(",\n    ")),
    }
}
