//! Pooling, interpolation and sampling grids.

use super::args::Args;
use super::dim::Dim;
use super::movement::suggested;
use super::problem::{Inferred, Problem};
use super::strides;
use super::value::{Shape, TensorType, Value};
use crate::dtype::DType;
use crate::ops::Op;
use crate::view::region::unsqueezed;

fn spatial_count(op: Op) -> usize {
    match op {
        Op::MaxPool1d | Op::AvgPool1d | Op::AdaptiveAvgPool1d | Op::AdaptiveMaxPool1d => 1,
        Op::MaxPool3d | Op::AvgPool3d | Op::AdaptiveAvgPool3d | Op::AdaptiveMaxPool3d => 3,
        Op::LpPool1d | Op::MaxUnpool1d => 1,
        Op::LpPool3d | Op::MaxUnpool3d => 3,
        _ => 2,
    }
}

/// The number of leading dimensions before the pooled ones.
fn leading(input: &TensorType, spatial: usize) -> Inferred<usize> {
    match input.rank().checked_sub(spatial) {
        Some(leading @ 1..=2) => Ok(leading),
        _ => Err(Problem::invalid(format!(
            "Expected {}D or {}D tensor, but got input of size {}",
            spatial + 1,
            spatial + 2,
            strides::describe(&input.shape)
        ))),
    }
}

pub(super) fn pool(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let spatial = spatial_count(args.op());
    let leading = leading(input, spatial)?;
    let kernel = args.spatial("kernel_size", spatial)?;
    let stride = match args.optional_ints("stride")? {
        Some(stride) if !stride.is_empty() => args.spatial("stride", spatial)?,
        _ => kernel.clone(),
    };
    let or_default = |name: &str, default: i64| -> Inferred<Shape> {
        if args.bound.has(name) {
            args.spatial(name, spatial)
        } else {
            Ok((0..spatial).map(|_| Dim::fixed(default)).collect())
        }
    };
    let (padding, dilation) = (or_default("padding", 0)?, or_default("dilation", 1)?);
    let ceil = args.flag("ceil_mode")?;
    let mut shape: Shape = input.shape[..leading].into();
    for axis in 0..spatial {
        let size = &input.shape[leading + axis];
        let window = [&kernel[axis], &stride[axis], &padding[axis], &dilation[axis]];
        shape.push(pooled(size, window, ceil)?);
    }
    if shape[leading..].iter().any(|dim| dim.size < 1) {
        return Err(Problem::invalid(format!(
            "Given input size: {}. Calculated output size: {}. Output size is too small",
            strides::describe(&input.shape),
            strides::describe(&shape)
        )));
    }
    finish(args, input, shape)
}

/// `max_unpool1d`, `2d`, `3d`: values go back to where pooling found them.
pub(super) fn unpool(args: &Args) -> Inferred<Value> {
    let (input, indices) = (args.tensor("input")?, args.tensor("indices")?);
    let spatial = spatial_count(args.op());
    let leading = leading(input, spatial)?;
    if indices.dtype != DType::Int64 || indices.sizes() != input.sizes() {
        return Err(Problem::invalid(format!(
            "Expected int64 indices of shape {}, got {} of shape {}",
            strides::describe(&input.shape),
            indices.dtype,
            strides::describe(&indices.shape)
        )));
    }
    let kernel = args.spatial("kernel_size", spatial)?;
    let stride = match args.optional_ints("stride")? {
        Some(_) => args.spatial("stride", spatial)?,
        None => kernel.clone(),
    };
    let padding = args.spatial("padding", spatial)?;
    let given = args.optional_ints("output_size")?;
    let given = match &given {
        Some(sizes) if sizes.len() == spatial + 2 => Some(&sizes[2..]),
        Some(sizes) if sizes.len() == spatial => Some(&sizes[..]),
        Some(sizes) => {
            return Err(Problem::invalid(format!(
                "output_size should have {spatial} or {} elements, but it has {}",
                spatial + 2,
                sizes.len()
            )));
        }
        None => None,
    };
    let mut shape: Shape = input.shape[..leading].into();
    for axis in 0..spatial {
        let windows = input.shape[leading + axis].offset(-1)?.mul(&stride[axis])?;
        let usual = windows.add(&kernel[axis])?.sub(&padding[axis].scaled(2)?)?;
        let Some(size) = given.map(|sizes| &sizes[axis]) else {
            shape.push(usual);
            continue;
        };
        if size.sub(&usual)?.size.saturating_abs() >= stride[axis].size {
            return Err(Problem::invalid(format!(
                "invalid output_size (dim {axis} must be between {} and {})",
                usual.sub(&stride[axis])?.size,
                usual.add(&stride[axis])?.size
            )));
        }
        shape.push(size.clone());
    }
    Ok(match spatial {
        2 => suggested(input, shape),
        _ => TensorType::contiguous(input.dtype, shape),
    }
    .into())
}

/// The number of windows along one dimension.
fn pooled(size: &Dim, window: [&Dim; 4], ceil: bool) -> Inferred<Dim> {
    let [kernel, stride, padding, dilation] = window;
    if kernel.size < 1 || stride.size < 1 || dilation.size < 1 {
        return Err(Problem::invalid(
            "kernel size, stride and dilation should be greater than zero",
        ));
    }
    let reach = kernel.offset(-1)?.mul(dilation)?;
    if padding.size < 0 || padding.size > reach.offset(1)?.size / 2 {
        return Err(Problem::invalid(format!(
            "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and dilation={}",
            padding.size, kernel.size, dilation.size
        )));
    }
    let mut free = size.add(&padding.scaled(2)?)?.sub(&reach)?.offset(-1)?;
    if ceil {
        free = free.add(stride)?.offset(-1)?;
    }
    let count = free.floor_div(stride)?.offset(1)?;
    // The last window must start inside the input or its left padding.
    if ceil && count.offset(-1)?.mul(stride)?.size >= size.add(padding)?.size {
        return count.offset(-1);
    }
    Ok(count)
}

fn finish(args: &Args, input: &TensorType, shape: Shape) -> Inferred<Value> {
    let pooled = if spatial_count(args.op()) == 1 && input.rank() == 3 {
        // Computed in two dimensions, one of them of size one.
        let flat = unsqueezed(input, 2);
        let mut flat_shape = shape;
        flat_shape.insert(2, Dim::fixed(1));
        let mut pooled = suggested(&flat, flat_shape);
        pooled.shape.remove(2);
        pooled.strides.remove(2);
        pooled
    } else {
        suggested(input, shape)
    };
    if args.flag("return_indices")? {
        let indices = TensorType { dtype: DType::Int64, ..pooled.clone() };
        return Ok(Value::Sequence(vec![pooled.into(), indices.into()]));
    }
    Ok(pooled.into())
}

pub(super) fn adaptive(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let spatial = spatial_count(args.op());
    let given = args.value("output_size")?;
    // A single average is a mean over the last two dimensions, whatever comes before them.
    let is_mean = args.op() == Op::AdaptiveAvgPool2d
        && args
            .optional_ints("output_size")
            .is_ok_and(|sizes| sizes.is_some_and(|sizes| sizes.iter().all(|size| size.size == 1)));
    let leading = match input.rank().checked_sub(spatial) {
        Some(leading) if is_mean => leading,
        _ => leading(input, spatial)?,
    };
    let mut shape: Shape = input.shape[..leading].into();
    for axis in 0..spatial {
        let size = match &*given {
            Value::Sequence(items) if items.len() == 1 => &items[0],
            Value::Sequence(items) => items.get(axis).ok_or_else(|| {
                Problem::invalid(format!("output_size must have {spatial} elements"))
            })?,
            one => one,
        };
        shape.push(match size {
            Value::None => input.shape[leading + axis].clone(),
            size => args.as_int(size, "output_size")?,
        });
    }
    if matches!(&*given, Value::Sequence(items) if items.len() > spatial) {
        return Err(Problem::invalid(format!("output_size must have {spatial} elements")));
    }
    finish(args, input, shape)
}

pub(super) fn interpolate(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let Some(spatial) = input.rank().checked_sub(2).filter(|spatial| (1..=3).contains(spatial))
    else {
        return Err(Problem::invalid(format!(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got {}D)",
            input.rank()
        )));
    };
    let mode = args.text("mode")?.unwrap_or_else(|| "nearest".into());
    let fits = match &*mode {
        "linear" => spatial == 1,
        "bilinear" | "bicubic" => spatial == 2,
        "trilinear" => spatial == 3,
        "nearest" | "nearest-exact" | "area" => true,
        other => {
            return Err(Problem::invalid(format!("unknown interpolation mode '{other}'")));
        }
    };
    if !fits {
        return Err(Problem::invalid(format!(
            "Got {}D input, but {mode} mode needs another rank",
            input.rank()
        )));
    }
    let mut shape: Shape = input.shape[..2].into();
    if let Some(sizes) = args.optional_ints("size")? {
        check_count(input, sizes.len(), spatial)?;
        shape.extend((0..spatial).map(|axis| sizes[axis.min(sizes.len() - 1)].clone()));
    } else {
        for axis in 0..spatial {
            shape.push(scaled_size(args, input, axis, spatial)?);
        }
    }
    if shape[2..].iter().any(|dim| dim.size < 1) {
        return Err(Problem::invalid(format!(
            "Input and output sizes should be greater than 0, but got output size {}",
            strides::describe(&shape[2..])
        )));
    }
    Ok(suggested(input, shape).into())
}

fn check_count(input: &TensorType, count: usize, spatial: usize) -> Inferred<()> {
    if count == 1 || count == spatial {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of {} and {count} output sizes",
        strides::describe(&input.shape[2..])
    )))
}

/// `floor(size * scale)`; whole scales keep the symbol.
fn scaled_size(args: &Args, input: &TensorType, axis: usize, spatial: usize) -> Inferred<Dim> {
    let given = args.value("scale_factor")?;
    let scale = match &*given {
        Value::None => {
            return Err(Problem::invalid("either size or scale_factor should be defined"));
        }
        Value::Sequence(items) => {
            check_count(input, items.len(), spatial)?;
            items.get(if items.len() == 1 { 0 } else { axis })
        }
        one => Some(one),
    };
    let scale = match scale {
        Some(Value::Scalar(number)) => number.as_f64(),
        Some(Value::Tensor(tensor)) => args.scope.known_scalar(tensor),
        _ => return Err(Problem::invalid("scale_factor must be a number")),
    };
    let Some(scale) = scale else {
        return Err(Problem::unknown("`scale_factor` depends on the elements of a tensor"));
    };
    let size = &input.shape[2 + axis];
    if scale.fract() == 0.0 && (1.0..1e9).contains(&scale) {
        return size.scaled(scale as i64);
    }
    let inverse = (1.0 / scale).round();
    if scale > 0.0
        && (1.0..1e6).contains(&inverse)
        && scale == 1.0 / inverse
        && (size.size as f64 * scale).floor() as i64 == size.size / inverse as i64
    {
        return size.divided(inverse as i64);
    }
    let output = (size.size as f64 * scale).floor();
    if !(0.0..1e12).contains(&output) {
        return Err(Problem::invalid("Input and output sizes should be greater than 0"));
    }
    Ok(Dim::fixed(output as i64))
}

pub(super) fn grid(args: &Args) -> Inferred<Value> {
    if args.op() == Op::AffineGrid {
        let theta = args.tensor("theta")?;
        let size = args.ints("size")?;
        let spatial = size.len().saturating_sub(2);
        if !matches!(spatial, 2 | 3) {
            return Err(Problem::invalid(
                "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.",
            ));
        }
        let mut shape = strides::shape([size[0].clone()]);
        shape.extend(size[2..].iter().cloned());
        shape.push(Dim::fixed(spatial as i64));
        return Ok(TensorType::contiguous(theta.dtype, shape).into());
    }
    let (input, grid) = (args.tensor("input")?, args.tensor("grid")?);
    let spatial = input.rank().saturating_sub(2);
    let fits = matches!(spatial, 2 | 3)
        && grid.rank() == input.rank()
        && args.scope.same(&grid.shape[0], &input.shape[0])
        && grid.shape[grid.rank() - 1].size == spatial as i64;
    if !fits {
        return Err(Problem::invalid(format!(
            "grid_sampler(): expected grid and input to have same batch size and rank, but got input with sizes {} and grid with sizes {}",
            strides::describe(&input.shape),
            strides::describe(&grid.shape)
        )));
    }
    let mut shape: Shape = input.shape[..2].into();
    shape.extend(grid.shape[1..grid.rank() - 1].iter().cloned());
    Ok(TensorType::contiguous(input.dtype, shape).into())
}
