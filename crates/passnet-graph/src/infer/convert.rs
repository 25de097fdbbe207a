//! The same elements as another dtype, on another device, or in another layout.

use super::args::Args;
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::strides;
use super::value::{TensorType, Value};
use crate::dtype::DType;
use crate::ops::Op;

/// The same tensor, or its parts as another dtype.
pub(super) fn reinterpret(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let complex_only = |what: &str| {
        Problem::invalid(format!("{what} is not implemented for tensors with non-complex dtypes."))
    };
    let mut view = input.clone();
    match args.op() {
        Op::Real if !input.dtype.is_complex() => return Ok(view.into()),
        Op::Imag if !input.dtype.is_complex() => return Err(complex_only("imag")),
        Op::ViewAsReal if !input.dtype.is_complex() => return Err(complex_only("view_as_real")),
        Op::Real | Op::Imag | Op::ViewAsReal => {
            view.dtype = input.dtype.real();
            view.memory = None;
            view.strides.iter_mut().for_each(|stride| *stride = stride.saturating_mul(2));
            view.offset =
                view.offset.saturating_mul(2).saturating_add(i64::from(args.op() == Op::Imag));
            if args.op() == Op::ViewAsReal {
                view.shape.push(Dim::fixed(2));
                view.strides.push(1);
            }
        }
        Op::ViewAsComplex => {
            let fits = input.dtype.is_float()
                && input.shape.last().is_some_and(|dim| dim.size == 2)
                && input.strides.last() == Some(&1);
            let even = input.strides.iter().rev().skip(1).all(|stride| stride % 2 == 0);
            if !fits || !even || !matches!(input.dtype, DType::Float32 | DType::Float64) {
                return Err(Problem::invalid(
                    "Tensor must have a last dimension of size 2 with stride 1 to be viewed as complex",
                ));
            }
            view.dtype = input.dtype.complex();
            view.memory = None;
            view.shape.pop();
            view.strides.pop();
            view.strides.iter_mut().for_each(|stride| *stride /= 2);
            view.offset /= 2;
        }
        _ => {}
    }
    Ok(view.into())
}

/// Changes of dtype, device and layout.
pub(super) fn convert(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let dtype = match args.op() {
        Op::TypeAs => args.tensor("other")?.dtype,
        Op::To => conversion_target(args)?.unwrap_or(input.dtype),
        Op::Type => match &*args.value("dtype")? {
            Value::Dtype(dtype) => *dtype,
            Value::Str(name) => tensor_class(name)
                .ok_or_else(|| Problem::invalid(format!("invalid type: '{name}'")))?,
            Value::None => return Ok(Value::Str(type_name(input.dtype).into())),
            _ => return Err(Problem::invalid("dtype must be a type, str, or dtype object")),
        },
        op => op.converts_to().unwrap_or(input.dtype),
    };
    let format = args.text("memory_format")?;
    let copies = args.flag("copy")? || dtype != input.dtype;
    let steps = match format.as_deref() {
        Some(name) if name.contains("channels_last") => {
            if !matches!(input.rank(), 4 | 5) {
                return Err(Problem::invalid("required rank 4 tensor to use channels_last format"));
            }
            if !copies && strides::is_channels_last(&input.shape, &input.strides) {
                return Ok(input.clone().into());
            }
            strides::channels_last(&input.shape)
        }
        Some(name) if name.contains("contiguous_format") => {
            if !copies && input.is_contiguous() {
                return Ok(input.clone().into());
            }
            strides::contiguous(&input.shape)
        }
        _ if args.op() == Op::Contiguous => {
            if input.is_contiguous() {
                return Ok(input.clone().into());
            }
            strides::contiguous(&input.shape)
        }
        _ => {
            if !copies {
                return Ok(input.clone().into());
            }
            strides::like(input)
        }
    };
    Ok(TensorType::strided(dtype, input.shape.clone(), steps).into())
}

/// `x.to(...)` takes a dtype, a device, both, or another tensor; a node may turn out to be any of them.
fn conversion_target(args: &Args) -> Inferred<Option<DType>> {
    if let Some(dtype) = args.dtype("dtype")? {
        return Ok(Some(dtype));
    }
    for name in ["device", "other"] {
        match &*args.value(name)? {
            Value::Dtype(dtype) => return Ok(Some(*dtype)),
            Value::Tensor(tensor) => return Ok(Some(tensor.dtype)),
            _ => {}
        }
    }
    Ok(None)
}

fn tensor_class(name: &str) -> Option<DType> {
    let name = name.strip_prefix("torch.").unwrap_or(name);
    let name = name.strip_prefix("cuda.").unwrap_or(name);
    match name.strip_suffix("Tensor") {
        Some("") => Some(DType::Float32),
        Some(kind) => {
            DType::ALL.into_iter().find(|dtype| super::promote::message_name(*dtype) == kind)
        }
        None => DType::from_name(name),
    }
}

fn type_name(dtype: DType) -> String {
    format!("torch.{}Tensor", super::promote::message_name(dtype))
}
