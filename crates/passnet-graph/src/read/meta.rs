//! `weight_meta.py` and `input_meta.py`: one class per forward argument, read as data.

use super::literal;
use crate::Diagnostic;
use crate::dtype::{DType, Device};
use crate::graph::Arg;
use crate::syntax::{Ranged, Source, ast, parse};

/// Largest number of elements a shape may describe (2^40: a terabyte of bytes).
const MAX_ELEMENTS: i64 = 1 << 40;

/// What stands before the argument's name in the name of its class.
pub(super) const CLASS_PREFIXES: [&str; 2] =
    ["Program_weight_tensor_meta_", "Program_input_tensor_meta_"];

/// What is recorded about one tensor argument.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorMeta {
    /// The class name without its prefix: the argument's original name.
    pub class_name: String,
    /// The forward argument this describes.
    pub name: String,
    /// The name in the model, before extraction renamed it.
    pub original_name: Option<String>,
    /// The sizes of the example.
    pub shape: Vec<i64>,
    /// The type of its elements.
    pub dtype: DType,
    /// Where it was when the graph was recorded.
    pub device: Option<Device>,
    /// The mean of its elements, where it was recorded.
    pub mean: Option<f64>,
    /// The standard deviation of its elements, where it was recorded.
    pub std: Option<f64>,
    /// The elements themselves, of small tensors.
    pub data: Option<Vec<Number>>,
    /// The smallest element, where it was recorded.
    pub min_val: Option<Number>,
    /// The largest element, where it was recorded.
    pub max_val: Option<Number>,
}

/// A recorded number; the kind decides how it is printed.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// Of a tensor of truths.
    Bool(bool),
    /// Of a tensor of integers.
    Int(i64),
    /// Of a tensor of floats.
    Float(f64),
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Number::Bool(a), Number::Bool(b)) => a == b,
            (Number::Int(a), Number::Int(b)) => a == b,
            (Number::Float(a), Number::Float(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl Number {
    /// Truths are 0 and 1.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Bool(value) => f64::from(u8::from(value)),
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// `None` for floats that are no integer.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Number::Bool(value) => Some(i64::from(value)),
            Number::Int(value) => Some(value),
            Number::Float(value) => {
                (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
            }
        }
    }
}

impl TensorMeta {
    /// A meta that records only what every tensor has.
    pub fn new(name: impl Into<String>, shape: Vec<i64>, dtype: DType) -> Self {
        let name = name.into();
        TensorMeta {
            class_name: name.clone(),
            name,
            original_name: None,
            shape,
            dtype,
            device: None,
            mean: None,
            std: None,
            data: None,
            min_val: None,
            max_val: None,
        }
    }

    /// How many elements the sizes give.
    pub fn elements(&self) -> i64 {
        self.shape.iter().product()
    }
}

/// All classes of a meta file, in file order, through the Python parser. All errors are collected.
pub(super) fn parse_tensor_metas(source: &Source) -> Result<Vec<TensorMeta>, Vec<Diagnostic>> {
    let module = parse(source).map_err(|error| vec![error])?;
    let mut metas = Vec::with_capacity(module.body.len());
    let mut errors = Vec::new();
    for stmt in &module.body {
        match stmt {
            ast::Stmt::ClassDef(class) => match read_class(source, class) {
                Ok(meta) => metas.push(meta),
                Err(error) => errors.push(error),
            },
            ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_) | ast::Stmt::Pass(_) => {}
            other => {
                errors.push(source.at(other.range(), "expected a class that describes a tensor"))
            }
        }
    }
    if errors.is_empty() { Ok(metas) } else { Err(errors) }
}

fn read_class(source: &Source, class: &ast::StmtClassDef) -> Result<TensorMeta, Diagnostic> {
    let mut fields = Fields::default();
    for stmt in &class.body {
        match stmt {
            ast::Stmt::Assign(assign) => {
                let [ast::Expr::Name(target)] = assign.targets.as_slice() else {
                    return Err(source.at(assign.range(), "expected `field = value`"));
                };
                fields.set(source, target.id.as_str(), &assign.value)?;
            }
            ast::Stmt::Pass(_) => {}
            other => return Err(source.at(other.range(), "expected `field = value`")),
        }
    }
    fields.into_meta(class.name.as_str()).map_err(|message| source.at(class.name.range(), message))
}

/// The fields of a class, as far as they have been read.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) name: Option<String>,
    pub(super) original_name: Option<String>,
    pub(super) shape: Option<Vec<i64>>,
    pub(super) dtype: Option<DType>,
    pub(super) device: Option<Device>,
    pub(super) mean: Option<f64>,
    pub(super) std: Option<f64>,
    pub(super) data: Option<Vec<Number>>,
    pub(super) min_val: Option<Number>,
    pub(super) max_val: Option<Number>,
}

impl Fields {
    /// Refuses sizes of too many elements.
    pub(super) fn set_shape(&mut self, sizes: Vec<i64>) -> Option<()> {
        let elements = sizes.iter().try_fold(1_i64, |product, size| product.checked_mul(*size));
        elements.filter(|n| *n <= MAX_ELEMENTS)?;
        self.shape = Some(sizes);
        Some(())
    }

    /// Everything recorded about one tensor, or what is missing or contradictory.
    pub(super) fn into_meta(self, class: &str) -> Result<TensorMeta, String> {
        let missing = |field: &str| format!("`{class}` has no field `{field}`");
        let class_name = CLASS_PREFIXES.iter().find_map(|prefix| class.strip_prefix(prefix));
        let meta = TensorMeta {
            class_name: class_name.unwrap_or(class).into(),
            name: self.name.ok_or_else(|| missing("name"))?,
            original_name: self.original_name,
            shape: self.shape.ok_or_else(|| missing("shape"))?,
            dtype: self.dtype.ok_or_else(|| missing("dtype"))?,
            device: self.device,
            mean: self.mean,
            std: self.std,
            data: self.data,
            min_val: self.min_val,
            max_val: self.max_val,
        };
        match &meta.data {
            Some(data) if data.len() as i64 != meta.elements() => Err(format!(
                "`{}` records {} values for shape {:?}, which holds {}",
                meta.name,
                data.len(),
                meta.shape,
                meta.elements()
            )),
            _ => Ok(meta),
        }
    }

    fn set(&mut self, source: &Source, field: &str, value: &ast::Expr) -> Result<(), Diagnostic> {
        let error = |message: String| source.at(value.range(), message);
        match field {
            "name" => self.name = Some(text(source, value)?),
            "original_name" => self.original_name = Some(text(source, value)?),
            "shape" => self
                .set_shape(shape(source, value)?)
                .ok_or_else(|| error("this shape has too many elements".into()))?,
            "dtype" => {
                let name = text(source, value)?;
                self.dtype = Some(DType::from_name(&name).ok_or_else(|| {
                    error(format!("unknown dtype `{name}`"))
                        .with_hint("for example \"torch.float32\"")
                })?);
            }
            "device" => {
                let name = text(source, value)?;
                self.device = Some(
                    Device::from_name(&name)
                        .ok_or_else(|| error(format!("unknown device `{name}`")))?,
                );
            }
            "mean" => self.mean = number(source, value)?.map(Number::as_f64),
            "std" => self.std = number(source, value)?.map(Number::as_f64),
            "min_val" => self.min_val = number(source, value)?,
            "max_val" => self.max_val = number(source, value)?,
            "data" => self.data = data(source, value)?,
            _ => return Err(error(format!("unknown field `{field}`"))),
        }
        Ok(())
    }
}

fn text(source: &Source, value: &ast::Expr) -> Result<String, Diagnostic> {
    match value {
        ast::Expr::StringLiteral(text) => Ok(text.value.to_str().to_string()),
        other => Err(source.at(other.range(), "expected a string")),
    }
}

fn shape(source: &Source, value: &ast::Expr) -> Result<Vec<i64>, Diagnostic> {
    let ast::Expr::List(list) = value else {
        return Err(source.at(value.range(), "expected a list of sizes"));
    };
    let sizes = list.elts.iter().map(|item| match literal::literal(item) {
        Ok(Some(Arg::Int(size))) if size >= 0 => Ok(size),
        _ => Err(source.at(item.range(), "a size is a non-negative integer")),
    });
    sizes.collect()
}

fn number(source: &Source, value: &ast::Expr) -> Result<Option<Number>, Diagnostic> {
    let parsed = match value {
        ast::Expr::NoneLiteral(_) => return Ok(None),
        ast::Expr::Call(call) => literal::float_call(call).map(Number::Float),
        ast::Expr::UnaryOp(unary)
            if unary.op == ast::UnaryOp::USub && unary.operand.is_call_expr() =>
        {
            match &*unary.operand {
                ast::Expr::Call(call) => literal::float_call(call).map(|v| Number::Float(-v)),
                _ => None,
            }
        }
        ast::Expr::Name(name) => match literal::free_name(name.id.as_str()) {
            Some(Arg::Float(value)) => Some(Number::Float(value)),
            _ => None,
        },
        other => match literal::literal(other) {
            Ok(Some(Arg::Bool(value))) => Some(Number::Bool(value)),
            Ok(Some(Arg::Int(value))) => Some(Number::Int(value)),
            Ok(Some(Arg::Float(value))) => Some(Number::Float(value)),
            _ => None,
        },
    };
    parsed.map(Some).ok_or_else(|| source.at(value.range(), "expected a number or `None`"))
}

fn data(source: &Source, value: &ast::Expr) -> Result<Option<Vec<Number>>, Diagnostic> {
    let items = match value {
        ast::Expr::NoneLiteral(_) => return Ok(None),
        ast::Expr::List(list) => &list.elts,
        other => return Err(source.at(other.range(), "expected a list of numbers or `None`")),
    };
    let numbers = items.iter().map(|item| {
        number(source, item)?
            .ok_or_else(|| source.at(item.range(), "recorded data cannot hold `None`"))
    });
    numbers.collect::<Result<_, _>>().map(Some)
}
