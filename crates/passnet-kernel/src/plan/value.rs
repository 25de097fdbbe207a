//! What a name in a host wrapper can stand for.

use super::Config;
use super::tensor::Tensor;
use crate::consts::Const;
use crate::modules::FunctionRef;
use passnet_graph::syntax::ast::ExprLambda;
use passnet_graph::{DType, Device};
use std::cell::RefCell;
use std::rc::Rc;

/// Lists, dicts, frames, classes and objects live in arenas of the interpreter, so that cyclic data cannot leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListId(pub(super) usize);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DictId(pub(super) usize);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameId(pub(super) usize);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClassId(pub(super) usize);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ObjectId(pub(super) usize);

/// Something that values are stored in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// A name at the top level of a file.
    Global(usize, String),
    List(usize),
    Dict(usize),
    Object(usize),
    /// The variables of a function.
    Frame(usize),
}

impl Holder {
    pub(super) fn list(id: ListId) -> Holder {
        Holder::List(id.0)
    }

    pub(super) fn dict(id: DictId) -> Holder {
        Holder::Dict(id.0)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    /// A number, string, `None`, bool or `tl` type.
    Const(Const),
    Tuple(Rc<Tuple<'a>>),
    List(ListId),
    Dict(DictId),
    DType(DType),
    Device(Device),
    Tensor(Rc<Tensor>),
    /// A dotted path outside the pass, such as `torch.empty_like`.
    Path(Rc<str>),
    Module(usize),
    Function(FunctionRef<'a>, Option<FrameId>),
    Lambda(&'a ExprLambda, FrameId),
    Kernel(FunctionRef<'a>),
    /// `kernel[grid]`
    Launcher(FunctionRef<'a>, Rc<Value<'a>>),
    Method(Rc<Value<'a>>, Rc<str>),
    /// A class of the pass.
    Class(ClassId),
    /// An object of one: a dataclass, a named tuple, a member of an enum.
    Object(ObjectId),
    /// A function of a class with what it is called on.
    Bound(FunctionRef<'a>, Rc<Value<'a>>),
    Config(Rc<HostConfig<'a>>),
    /// A `TensorDescriptor`.
    Descriptor(Rc<Descriptor>),
    Slice(Rc<[Value<'a>; 3]>),
    Ellipsis,
}

/// A `TensorDescriptor` as a wrapper makes it.
#[derive(Debug)]
pub(super) struct Descriptor {
    pub(super) tensor: Rc<Tensor>,
    pub(super) shape: Vec<i64>,
    pub(super) strides: Vec<i64>,
    /// Hooks of a configuration set it.
    pub(super) block: RefCell<Vec<i64>>,
    pub(super) nan: bool,
}

/// A `triton.Config` as a wrapper's file makes it.
#[derive(Debug, Default)]
pub(super) struct HostConfig<'a> {
    pub(super) config: Config,
    /// Called with the arguments before each launch.
    pub(super) pre_hook: Option<Value<'a>>,
}

/// An immutable sequence that knows how much work walking it is, so that shared nesting can be refused.
#[derive(Debug)]
pub(super) struct Tuple<'a> {
    items: Box<[Value<'a>]>,
    pub(super) depth: u32,
    pub(super) nodes: usize,
}

impl<'a> std::ops::Deref for Tuple<'a> {
    type Target = [Value<'a>];

    fn deref(&self) -> &[Value<'a>] {
        &self.items
    }
}

impl<'a> Value<'a> {
    pub(super) const NONE: Value<'static> = Value::Const(Const::None);

    pub(super) fn int(i: i64) -> Value<'a> {
        Value::Const(Const::Int(i))
    }

    pub(super) fn bool(b: bool) -> Value<'a> {
        Value::Const(Const::Bool(b))
    }

    pub(super) fn str(s: impl Into<String>) -> Value<'a> {
        Value::Const(Const::Str(s.into()))
    }

    pub(super) fn tuple(items: impl IntoIterator<Item = Value<'a>>) -> Value<'a> {
        let items: Box<[Value<'a>]> = items.into_iter().collect();
        let (mut depth, mut nodes) = (0, 1usize);
        for item in &items {
            if let Value::Tuple(t) = item {
                depth = depth.max(t.depth);
                nodes = nodes.saturating_add(t.nodes);
            }
            nodes = nodes.saturating_add(1);
        }
        Value::Tuple(Rc::new(Tuple { items, depth: depth + 1, nodes }))
    }

    pub(super) fn ints(items: &[i64]) -> Value<'a> {
        Value::tuple(items.iter().map(|&i| Value::int(i)))
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self, Value::Const(Const::None))
    }

    pub(super) fn as_int(&self) -> Option<i64> {
        match self {
            Value::Const(c) => c.as_int(),
            _ => None,
        }
    }

    /// A word for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Value::Const(Const::None) => "None".into(),
            Value::Const(c) => format!("{} {c}", c.type_name()),
            Value::Tuple(_) => "a tuple".into(),
            Value::List(_) => "a list".into(),
            Value::Dict(_) => "a dict".into(),
            Value::DType(d) => format!("`{d}`"),
            Value::Device(_) => "a device".into(),
            Value::Tensor(_) => "a tensor".into(),
            Value::Path(p) => format!("`{p}`"),
            Value::Module(_) => "a module".into(),
            Value::Function(f, _) => format!("the function `{}`", f.def.name),
            Value::Lambda(..) => "a lambda".into(),
            Value::Kernel(f) => format!("the kernel `{}`", f.def.name),
            Value::Launcher(f, _) => format!("a launch of `{}`", f.def.name),
            Value::Method(_, name) => format!("the method `{name}`"),
            Value::Class(_) => "a class".into(),
            Value::Object(_) => "an object".into(),
            Value::Bound(f, _) => format!("the method `{}`", f.def.name),
            Value::Config(_) => "a `triton.Config`".into(),
            Value::Descriptor(_) => "a tensor descriptor".into(),
            Value::Slice(_) => "a slice".into(),
            Value::Ellipsis => "`...`".into(),
        }
    }
}
