//! Python literals, and the few constructors that stand for one.

use crate::dtype::{DType, Device};
use crate::graph::Arg;
use crate::syntax::ast;

/// A literal value; `Ok(None)` if the expression is not one.
pub fn literal(expr: &ast::Expr) -> Result<Option<Arg>, &'static str> {
    Ok(Some(match expr {
        ast::Expr::NoneLiteral(_) => Arg::None,
        ast::Expr::EllipsisLiteral(_) => Arg::Ellipsis,
        ast::Expr::BooleanLiteral(value) => Arg::Bool(value.value),
        ast::Expr::StringLiteral(value) => Arg::Str(value.value.to_str().into()),
        ast::Expr::NumberLiteral(number) => match &number.value {
            ast::Number::Int(value) => {
                Arg::Int(value.as_i64().ok_or("this integer does not fit in 64 bits")?)
            }
            ast::Number::Float(value) => Arg::Float(*value),
            ast::Number::Complex { .. } => return Err("complex literals are not supported"),
        },
        ast::Expr::UnaryOp(unary) if unary.op == ast::UnaryOp::USub => {
            let operand = match &*unary.operand {
                ast::Expr::Name(name) => match free_name(name.id.as_str()) {
                    Some(value @ Arg::Float(_)) => Some(value),
                    _ => return Ok(None),
                },
                other => literal(other)?,
            };
            match operand {
                Some(Arg::Int(value)) => {
                    Arg::Int(value.checked_neg().ok_or("this integer does not fit in 64 bits")?)
                }
                Some(Arg::Float(value)) => Arg::Float(-value),
                _ => return Ok(None),
            }
        }
        _ => return Ok(None),
    }))
}

/// Names that are values without being defined in the function.
pub(super) fn free_name(name: &str) -> Option<Arg> {
    Some(match name {
        "inf" => Arg::Float(f64::INFINITY),
        "nan" => Arg::Float(f64::NAN),
        "Ellipsis" => Arg::Ellipsis,
        _ => return None,
    })
}

/// `torch.float32`, `torch.channels_last`, `torch.inf`: attributes of torch that are values.
pub fn torch_constant(path: &str) -> Option<Arg> {
    let name = match path.strip_prefix("torch.") {
        Some(name) => name,
        None => return matches!(path, "math.inf").then_some(Arg::Float(f64::INFINITY)),
    };
    if let Some(dtype) = DType::from_name(name) {
        return Some(Arg::Dtype(dtype));
    }
    match name {
        "inf" => Some(Arg::Float(f64::INFINITY)),
        "nan" => Some(Arg::Float(f64::NAN)),
        "pi" => Some(Arg::Float(std::f64::consts::PI)),
        "strided" | "contiguous_format" | "preserve_format" | "channels_last"
        | "channels_last_3d" | "sparse_coo" => Some(Arg::Constant(name.into())),
        _ => None,
    }
}

/// Calls that stand for a literal.
pub(super) enum Constructor {
    Slice,
    Device,
    Float,
}

pub(super) fn constructor(func: &ast::Expr) -> Option<Constructor> {
    match func {
        ast::Expr::Name(name) => match name.id.as_str() {
            "slice" => Some(Constructor::Slice),
            "device" => Some(Constructor::Device),
            "float" => Some(Constructor::Float),
            _ => None,
        },
        ast::Expr::Attribute(attribute) if attribute.attr.as_str() == "device" => {
            matches!(&*attribute.value, ast::Expr::Name(name) if name.id.as_str() == "torch")
                .then_some(Constructor::Device)
        }
        _ => None,
    }
}

/// `float('inf')`, `float("nan")`.
pub(super) fn float_call(call: &ast::ExprCall) -> Option<f64> {
    match (&*call.arguments.args, &*call.arguments.keywords) {
        ([ast::Expr::StringLiteral(text)], []) => text.value.to_str().trim().parse().ok(),
        _ => None,
    }
}

/// `device('cuda:0')`, `device(type='cuda', index=0)`.
pub fn device(call: &ast::ExprCall) -> Option<Device> {
    let mut kind = None;
    let mut index = None;
    let mut positional = call.arguments.args.iter();
    if let Some(first) = positional.next() {
        kind = Some(string(first)?);
    }
    if let Some(second) = positional.next() {
        index = Some(small_int(second)?);
    }
    for keyword in &call.arguments.keywords {
        match keyword.arg.as_ref()?.as_str() {
            "type" => kind = Some(string(&keyword.value)?),
            "index" => index = Some(small_int(&keyword.value)?),
            _ => return None,
        }
    }
    let device = Device::from_name(kind?)?;
    Some(Device { index: index.or(device.index), ..device })
}

fn string(expr: &ast::Expr) -> Option<&str> {
    match expr {
        ast::Expr::StringLiteral(text) => Some(text.value.to_str()),
        _ => None,
    }
}

fn small_int(expr: &ast::Expr) -> Option<u8> {
    match literal(expr) {
        Ok(Some(Arg::Int(value))) => u8::try_from(value).ok(),
        _ => None,
    }
}
