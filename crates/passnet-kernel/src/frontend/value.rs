//! What a name in a kernel can stand for.

use crate::consts::Const;
use crate::ir::ValueId;
use crate::modules::FunctionRef;
use crate::types::Shape;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    /// Known now.
    Const(Const),
    /// Known when the kernel runs: a scalar, a block or a pointer.
    Tensor(ValueId),
    Tuple(Vec<Value<'a>>),
    BlockPtr(Rc<BlockPtr>),
    /// A dotted path outside the pass, such as `triton.language.load`.
    Path(String),
    Function(Func<'a>),
    Module(usize),
    Method(Box<Value<'a>>, String),
    /// `x.type`: its attributes are those of the element type.
    TypeOf(ValueId),
    Range(RangeKind, Vec<Value<'a>>),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Func<'a> {
    pub(super) function: FunctionRef<'a>,
    pub(super) prelude: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeKind {
    /// A loop in the kernel.
    Dynamic,
    /// Unrolled.
    Static,
}

/// A block pointer or a tensor descriptor: a window of `block` lanes into a strided tensor.
#[derive(Debug, Clone)]
pub(super) struct BlockPtr {
    pub(super) base: ValueId,
    /// `i64` scalars, one per dimension.
    pub(super) shape: Vec<ValueId>,
    pub(super) strides: Vec<ValueId>,
    pub(super) offsets: Vec<ValueId>,
    pub(super) block: Shape,
    /// Descriptors check every boundary; block pointers only those the load names.
    pub(super) descriptor: bool,
    /// Whether a descriptor reads NaN, not zero, beyond a boundary.
    pub(super) nan: bool,
}

impl<'a> Value<'a> {
    pub(super) const NONE: Value<'static> = Value::Const(Const::None);

    pub(super) fn int(value: i64) -> Value<'a> {
        Value::Const(Const::Int(value))
    }

    pub(super) fn from_const(c: Const) -> Value<'a> {
        match c {
            Const::Tuple(items) => Value::Tuple(items.into_iter().map(Value::from_const).collect()),
            other => Value::Const(other),
        }
    }

    /// The compile-time value, if every part of it is one.
    pub(super) fn to_const(&self) -> Option<Const> {
        match self {
            Value::Const(c) => Some(c.clone()),
            Value::Tuple(items) => {
                items.iter().map(Value::to_const).collect::<Option<Vec<_>>>().map(Const::Tuple)
            }
            _ => None,
        }
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self, Value::Const(Const::None))
    }

    /// Whether both are certainly the same thing, so that control flow need not merge them.
    pub(super) fn same(&self, other: &Value<'a>) -> bool {
        match (self, other) {
            (Value::Tensor(a), Value::Tensor(b)) => a == b,
            (Value::Tuple(a), Value::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
            }
            (Value::BlockPtr(a), Value::BlockPtr(b)) => Rc::ptr_eq(a, b),
            (Value::Path(a), Value::Path(b)) => a == b,
            (Value::Function(a), Value::Function(b)) => {
                std::ptr::eq(a.function.def, b.function.def)
            }
            (Value::Module(a), Value::Module(b)) => a == b,
            (Value::TypeOf(a), Value::TypeOf(b)) => a == b,
            (Value::Const(Const::Float(a)), Value::Const(Const::Float(b))) => {
                a.to_bits() == b.to_bits()
            }
            (Value::Const(a), Value::Const(b)) => a == b,
            _ => false,
        }
    }

    /// A word for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Value::Const(c) => format!("{} {c}", c.type_name()),
            Value::Tensor(_) => "a run-time value".into(),
            Value::Tuple(_) => "a tuple".into(),
            Value::BlockPtr(_) => "a block pointer".into(),
            Value::Path(p) => format!("`{p}`"),
            Value::Function(f) => format!("the function `{}`", f.function.def.name),
            Value::Module(_) => "a module".into(),
            Value::Method(_, name) => format!("the method `{name}`"),
            Value::TypeOf(_) => "a type".into(),
            Value::Range(..) => "a range".into(),
        }
    }
}

/// Local names, in a fixed order so that merges are deterministic.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope<'a> {
    names: BTreeMap<String, Value<'a>>,
}

impl<'a> Scope<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.names.get(name)
    }

    pub(super) fn set(&mut self, name: &str, value: Value<'a>) {
        match self.names.get_mut(name) {
            Some(slot) => *slot = value,
            None => {
                self.names.insert(name.to_string(), value);
            }
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.names.remove(name);
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }
}
