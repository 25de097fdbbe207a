//! New metadata over the same memory, and conversions.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, bail, err};
use crate::native::ops::pointwise::{self, Unary};
use crate::native::tensor::layout::{broadcast_shapes, is_channels_last};
use crate::native::tensor::{Region, Tensor};
use passnet_graph::DType;
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::View | Op::ViewAs | Op::Reshape | Op::ReshapeAs | Op::Flatten | Op::Unflatten => {
            reshape
        }
        Op::Transpose | Op::TransposeMatrix | Op::ReverseDims | Op::MatrixTranspose => permute,
        Op::Permute | Op::Movedim => permute,
        Op::Squeeze | Op::Unsqueeze => singleton,
        Op::Expand | Op::ExpandAs | Op::BroadcastTo => expand,
        Op::BroadcastTensors => broadcast_tensors,
        Op::Chunk | Op::Split | Op::TensorSplit | Op::Unbind => pieces,
        Op::Narrow | Op::Select | Op::Diagonal | Op::UnfoldDim | Op::AsStrided => part,
        Op::Detach | Op::RequiresGrad | Op::Cpu | Op::Cuda => same,
        Op::Real | Op::Imag | Op::ViewAsReal | Op::ViewAsComplex | Op::Conj => complex,
        Op::Contiguous | Op::To | Op::TypeAs | Op::Type | Op::Float | Op::Double => convert,
        Op::Half | Op::Bfloat16 | Op::Long | Op::Int | Op::Short | Op::Byte | Op::Bool => convert,
        _ => return None,
    })
}

fn signed(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|size| *size as i64).collect()
}

fn reshape(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    Ok(match args.op {
        Op::View => match args.dtype("dtype").or(match args.value("size") {
            Value::Sequence(items) => match &**items {
                [Value::Dtype(dtype)] => Some(*dtype),
                _ => None,
            },
            _ => None,
        }) {
            Some(dtype) => input.view_dtype(dtype)?,
            None => input.view(&args.ints("size")?)?,
        },
        Op::ViewAs => input.view(&signed(args.tensor("other")?.shape()))?,
        Op::Reshape => input.reshape(&args.ints("shape")?)?,
        Op::ReshapeAs => input.reshape(&signed(args.tensor("other")?.shape()))?,
        Op::Flatten => input.flatten(args.int("start_dim")?, args.int("end_dim")?)?,
        _ => input.unflatten(args.int("dim")?, &args.ints("sizes")?)?,
    }
    .into())
}

fn permute(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    Ok(match args.op {
        Op::Transpose => input.transpose(args.int("dim0")?, args.int("dim1")?)?,
        Op::TransposeMatrix => input.t()?,
        Op::ReverseDims => {
            let dims: Vec<i64> = (0..input.ndim() as i64).rev().collect();
            input.permute(&dims)?
        }
        Op::MatrixTranspose => input.matrix_transpose()?,
        Op::Permute => input.permute(&args.ints("dims")?)?,
        _ => input.movedim(&args.ints("source")?, &args.ints("destination")?)?,
    }
    .into())
}

fn singleton(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    Ok(match args.op {
        Op::Unsqueeze => input.unsqueeze(args.int("dim")?)?,
        _ => input.squeeze(args.optional_ints("dim")?.as_deref())?,
    }
    .into())
}

fn expand(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let sizes = match args.op {
        Op::ExpandAs => signed(args.tensor("other")?.shape()),
        _ => args.ints("size")?.to_vec(),
    };
    Ok(input.expand(&sizes)?.into())
}

fn broadcast_tensors(args: &Args<'_>) -> Result<Value> {
    let tensors = args.tensors("tensors")?;
    let shapes: Vec<&[usize]> = tensors.iter().map(Tensor::shape).collect();
    let shape = broadcast_shapes(&shapes)?;
    let wide = tensors.iter().map(|t| t.expand_to(&shape)).collect::<Result<Vec<_>>>()?;
    Ok(Value::tensors(wide))
}

fn pieces(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let dim = args.int("dim")?;
    let name = [
        "split_size_or_sections",
        "split_size",
        "split_sizes",
        "sections",
        "indices_or_sections",
        "indices",
    ]
    .into_iter()
    .find(|name| args.has(name))
    .unwrap_or("");
    let sizes = |name: &str| -> Result<Vec<usize>> { Ok(args.sizes(name)?.to_vec()) };
    let pieces = match args.op {
        Op::Unbind => input.unbind(dim)?,
        Op::Chunk => input.chunk(args.size("chunks")?, dim)?,
        op => match (op, args.value(name)) {
            (Op::Split, Value::Sequence(_)) => input.split_with_sizes(&sizes(name)?, dim)?,
            (Op::Split, _) => input.split(args.size(name)?, dim)?,
            (_, Value::Sequence(_)) => input.tensor_split_at(&args.ints(name)?, dim)?,
            (_, Value::Tensor(tensor)) if tensor.ndim() == 1 => {
                input.tensor_split_at(&tensor.to_vec::<i64>()?, dim)?
            }
            _ => input.tensor_split(args.size(name)?, dim)?,
        },
    };
    Ok(Value::tensors(pieces))
}

fn part(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    Ok(match args.op {
        Op::Narrow => input.narrow(args.int("dim")?, args.int("start")?, args.size("length")?)?,
        Op::Select => input.select(args.int("dim")?, args.int("index")?)?,
        Op::Diagonal => {
            input.diagonal(args.int("offset")?, args.int("dim1")?, args.int("dim2")?)?
        }
        Op::UnfoldDim => {
            input.unfold(args.int("dimension")?, args.size("size")?, args.size("step")?)?
        }
        _ => {
            let offset = match args.optional_int("storage_offset")? {
                Some(offset) => usize::try_from(offset)
                    .map_err(|_| err!(Value, "storage_offset must not be negative"))?,
                None => input.storage_offset(),
            };
            input.as_strided(Region {
                shape: args.sizes("size")?,
                strides: args.sizes("stride")?,
                offset,
            })?
        }
    }
    .into())
}

fn same(args: &Args<'_>) -> Result<Value> {
    Ok(args.input()?.clone().into())
}

fn complex(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let is_complex = input.dtype().is_complex();
    Ok(match args.op {
        Op::ViewAsReal => input.view_as_real()?,
        Op::ViewAsComplex => input.view_as_complex()?,
        Op::Real if is_complex => input.complex_part(0)?,
        Op::Imag if is_complex => input.complex_part(1)?,
        Op::Imag => bail!(DType, "imag is not implemented for tensors with non-complex dtypes."),
        Op::Conj if is_complex => {
            let conjugate = input.copy()?;
            let imaginary = conjugate.complex_part(1)?;
            pointwise::unary_in_place(Unary::Neg, &imaginary)?;
            conjugate
        }
        _ => input.clone(),
    }
    .into())
}

fn convert(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let named = |dtype: DType| args.precise(dtype);
    let dtype = match args.op {
        Op::TypeAs => args.tensor("other")?.dtype(),
        Op::To => conversion_target(args).unwrap_or(input.dtype()),
        Op::Type => match args.value("dtype") {
            Value::Dtype(dtype) => *dtype,
            Value::Text(name) => {
                named(tensor_class(name).ok_or_else(|| err!(Value, "invalid type: '{name}'"))?)
            }
            Value::None => return Ok(Value::Text(class_name(input.dtype()).into())),
            _ => bail!(DType, "dtype must be a type, str, or dtype object"),
        },
        op => op.converts_to().map_or(input.dtype(), named),
    };
    let copies = args.flag("copy")?;
    let converted =
        if copies && dtype == input.dtype() { input.copy()? } else { input.to_dtype(dtype)? };
    Ok(match args.text("memory_format") {
        Some(name) if name.contains("channels_last") => {
            if is_channels_last(converted.shape(), converted.strides()) {
                converted
            } else {
                converted.channels_last()?
            }
        }
        Some(name) if name.contains("contiguous_format") => converted.contiguous()?,
        None if args.op == Op::Contiguous => converted.contiguous()?,
        _ => converted,
    }
    .into())
}

/// `x.to(...)` takes a dtype, a device, both, or another tensor; an argument may turn out to be any of them.
fn conversion_target(args: &Args<'_>) -> Option<DType> {
    ["dtype", "device", "other"].into_iter().find_map(|name| match args.value(name) {
        Value::Dtype(dtype) => Some(*dtype),
        Value::Tensor(tensor) => Some(tensor.dtype()),
        _ => None,
    })
}

/// `torch.FloatTensor` and its kin.
const TENSOR_CLASSES: [(&str, DType); 10] = [
    ("Float", DType::Float32),
    ("Double", DType::Float64),
    ("Half", DType::Float16),
    ("BFloat16", DType::BFloat16),
    ("Long", DType::Int64),
    ("Int", DType::Int32),
    ("Short", DType::Int16),
    ("Char", DType::Int8),
    ("Byte", DType::UInt8),
    ("Bool", DType::Bool),
];

fn tensor_class(name: &str) -> Option<DType> {
    let short = name.strip_prefix("torch.").unwrap_or(name);
    let short = short.strip_prefix("cuda.").unwrap_or(short).strip_suffix("Tensor")?;
    TENSOR_CLASSES.iter().find(|(class, _)| *class == short).map(|(_, dtype)| *dtype)
}

fn class_name(dtype: DType) -> String {
    let known = TENSOR_CLASSES.iter().find(|(_, own)| *own == dtype);
    match (known, dtype) {
        (Some((class, _)), _) => format!("torch.{class}Tensor"),
        (None, DType::Complex64) => "torch.ComplexFloatTensor".into(),
        (None, _) => "torch.ComplexDoubleTensor".into(),
    }
}
