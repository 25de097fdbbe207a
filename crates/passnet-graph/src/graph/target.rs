//! What a call calls: one of the spellings the operation table knows, a name it does not, or what a pass put
//! in place of a piece of the graph.

use crate::ops::{self, CalleeKind, Op, Spelling};
use std::borrow::Cow;
use std::fmt;

/// What a call calls.
#[derive(Debug, Clone)]
pub enum Target {
    /// An entry of the table of operations, as it was spelled.
    Known(&'static Spelling),
    /// A name that the table does not know: kept, so that the graph can be printed again.
    Unknown {
        /// How it is called.
        kind: CalleeKind,
        /// The name as it was written.
        path: Box<str>,
    },
    /// The wrapper of a pass. With several outputs the call yields a tuple, read by subscripts.
    Replacement(Box<Replacement>),
}

/// The function of a pass that computes what the pass took out of the graph. The graph knows it by name
/// only: what it does is a launch plan, made elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The pass that was applied.
    pub pass: Box<str>,
    /// The file the wrapper is defined in, relative to the pass folder, without `.py`.
    pub module: Box<str>,
    /// The wrapper's name in that file.
    pub wrapper: Box<str>,
    /// How many values it returns.
    pub outputs: usize,
    /// Whether its one value is a tuple of tensors, as `unbind` gives it.
    pub gives_tuple: bool,
    /// Indices of the arguments it updates in place, because the code it replaces did.
    pub writes: Vec<usize>,
    /// Indices of arguments that nobody looks at afterwards: what it leaves in them does not matter.
    pub dead: Vec<usize>,
}

impl Target {
    /// Looks a spelling up in the operation table.
    pub fn resolve(kind: CalleeKind, path: &str) -> Self {
        match ops::spelling(kind, path) {
            Some(spelling) => Target::Known(spelling),
            None => Target::Unknown { kind, path: path.into() },
        }
    }

    /// The operation, where the table knows it.
    pub fn op(&self) -> Option<Op> {
        match self {
            Target::Known(spelling) => Some(spelling.op),
            Target::Unknown { .. } | Target::Replacement(_) => None,
        }
    }

    /// Whether a function, a method, an operator or an attribute is called.
    pub fn kind(&self) -> CalleeKind {
        match self {
            Target::Known(spelling) => spelling.kind,
            Target::Unknown { kind, .. } => *kind,
            Target::Replacement(_) => CalleeKind::Function,
        }
    }

    /// The dotted path of a function, or the bare name of a method, operator or attribute.
    pub fn path(&self) -> &str {
        match self {
            Target::Known(spelling) => spelling.path,
            Target::Unknown { path, .. } => path,
            Target::Replacement(replacement) => &replacement.wrapper,
        }
    }

    /// The pass that stands here, where one does.
    pub fn replacement(&self) -> Option<&Replacement> {
        match self {
            Target::Replacement(replacement) => Some(replacement),
            _ => None,
        }
    }

    /// The name that op-name sequences use: a function's `__name__`, `Tensor.` before a method's name.
    pub fn op_name(&self) -> Cow<'_, str> {
        match self.kind() {
            CalleeKind::Method => Cow::Owned(format!("Tensor.{}", self.path())),
            CalleeKind::Attribute => Cow::Borrowed("getattr"),
            CalleeKind::Operator => Cow::Borrowed(self.path()),
            CalleeKind::Function => Cow::Borrowed(function_name(self.path())),
        }
    }
}

/// As a person would write it: `torch.relu`, `Tensor.relu`, `operator.add`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.kind() {
            CalleeKind::Function => "",
            CalleeKind::Method | CalleeKind::Attribute => "Tensor.",
            CalleeKind::Operator => "operator.",
        };
        write!(f, "{prefix}{}", self.path())
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind()
            && self.path() == other.path()
            && self.replacement() == other.replacement()
    }
}

/// `__name__` of a function: the last part of its path, except that an operator overload of
/// `torch.ops.aten` is named together with its overload.
fn function_name(path: &str) -> &str {
    match path.strip_prefix("torch.ops.") {
        Some(rest) => rest.split_once('.').map_or(rest, |(_, name)| name),
        None => path.rsplit('.').next().unwrap_or(path),
    }
}
