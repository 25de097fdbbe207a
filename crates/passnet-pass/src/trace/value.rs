//! What an expression of a pass file can be worth while it is traced.

use crate::load::ModuleId;
use passnet_graph::read::python;
use passnet_graph::syntax::ast;
use passnet_graph::{Arg, NodeId};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Longest sequence that a trace may build.
pub(super) const MAX_ITEMS: usize = 20_000;

pub(super) type Locals<'a> = FxHashMap<&'a str, Value<'a>>;

#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    /// A graph node, or a literal without parts.
    Arg(Arg),
    Sequence {
        items: Vec<Value<'a>>,
        is_list: bool,
    },
    Dict(Vec<(Value<'a>, Value<'a>)>),
    /// Something outside the folder, by its dotted path: `torch.nn.functional.relu`, `torch.float32`.
    Path(String),
    /// Another file of the folder.
    Module(ModuleId),
    Function(Callable<'a>),
    Class(Class<'a>),
    Object(Box<Object<'a>>),
}

/// A function of the pass.
#[derive(Debug, Clone)]
pub(super) struct Callable<'a> {
    pub module: ModuleId,
    pub code: Code<'a>,
    /// The variables around a function defined inside another one.
    pub captured: Option<Rc<Locals<'a>>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Code<'a> {
    Def(&'a ast::StmtFunctionDef),
    Lambda(&'a ast::ExprLambda),
}

/// A class of the pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class<'a> {
    pub module: ModuleId,
    pub def: &'a ast::StmtClassDef,
}

/// An object of a dataclass or a named tuple.
#[derive(Debug, Clone)]
pub(super) struct Object<'a> {
    pub class: Class<'a>,
    pub fields: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Callable<'a> {
    /// What messages call it.
    pub(super) fn name(&self) -> &'a str {
        match self.code {
            Code::Def(def) => def.name.as_str(),
            Code::Lambda(_) => "a lambda",
        }
    }

    /// The name of a function defined at the top level of its file.
    pub(super) fn global_name(&self) -> Option<&'a str> {
        match (&self.captured, self.code) {
            (None, Code::Def(def)) => Some(def.name.as_str()),
            _ => None,
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn none() -> Self {
        Value::Arg(Arg::None)
    }

    pub(super) fn int(value: i64) -> Self {
        Value::Arg(Arg::Int(value))
    }

    pub(super) fn bool(value: bool) -> Self {
        Value::Arg(Arg::Bool(value))
    }

    pub(super) fn tuple(items: Vec<Value<'a>>) -> Self {
        Value::Sequence { items, is_list: false }
    }

    pub(super) fn list(items: Vec<Value<'a>>) -> Self {
        Value::Sequence { items, is_list: true }
    }

    pub(super) fn as_node(&self) -> Option<NodeId> {
        match self {
            Value::Arg(arg) => arg.as_node(),
            _ => None,
        }
    }

    /// Whether a graph node stands anywhere in the value.
    pub(super) fn has_node(&self) -> bool {
        match self {
            Value::Arg(arg) => {
                let mut found = false;
                arg.for_each_node(&mut |_| found = true);
                found
            }
            Value::Sequence { items, .. } => items.iter().any(Value::has_node),
            Value::Dict(items) => items.iter().any(|(_, value)| value.has_node()),
            Value::Object(object) => object.fields.iter().any(|(_, value)| value.has_node()),
            _ => false,
        }
    }

    /// The value as an argument of a graph node, or what it is instead.
    pub(super) fn to_arg(&self) -> Result<Arg, String> {
        match self {
            Value::Arg(arg) => Ok(arg.clone()),
            Value::Sequence { items, is_list } => {
                let items = items.iter().map(Value::to_arg).collect::<Result<_, _>>()?;
                Ok(if *is_list { Arg::List(items) } else { Arg::Tuple(items) })
            }
            Value::Path(path) => {
                python::torch_constant(path).or_else(|| number(path)).ok_or_else(|| self.describe())
            }
            _ => Err(self.describe()),
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Value::Arg(Arg::Node(_)) => "a graph value".into(),
            Value::Arg(Arg::Str(_)) => "a string".into(),
            Value::Arg(Arg::None) => "`None`".into(),
            Value::Arg(_) => "a constant".into(),
            Value::Sequence { is_list: true, .. } => "a list".into(),
            Value::Sequence { .. } => "a tuple".into(),
            Value::Dict(_) => "a dict".into(),
            Value::Path(path) => format!("`{path}`"),
            Value::Module(_) => "a module".into(),
            Value::Function(_) => "a function".into(),
            Value::Class(class) => format!("the class `{}`", class.def.name),
            Value::Object(object) => format!("an object of class `{}`", object.class.def.name),
        }
    }
}

/// Arguments of a call, as Python passes them.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a> {
    pub positional: Vec<Value<'a>>,
    pub keywords: Vec<(String, Value<'a>)>,
}

impl Arguments<'_> {
    pub(super) fn has_node(&self) -> bool {
        self.positional.iter().any(Value::has_node)
            || self.keywords.iter().any(|(_, value)| value.has_node())
    }
}

/// Constants of module `math`.
fn number(path: &str) -> Option<Arg> {
    Some(Arg::Float(match path {
        "math.pi" => std::f64::consts::PI,
        "math.e" => std::f64::consts::E,
        "math.tau" => std::f64::consts::TAU,
        "math.inf" => f64::INFINITY,
        "math.nan" => f64::NAN,
        _ => return None,
    }))
}
