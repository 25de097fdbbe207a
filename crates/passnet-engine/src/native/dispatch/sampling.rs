//! Pooling, interpolation and sampling grids.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, bail, ensure, err};
use crate::native::ops::composite;
use crate::native::ops::pool::{self, Pooling};
use crate::native::ops::resample::{self, GridMode, GridPadding, Interpolation, Mode};
use crate::native::ops::unpool::Unpooling;
use crate::native::tensor::Scalar;
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::MaxPool1d | Op::MaxPool2d | Op::MaxPool3d => max_pool,
        Op::AvgPool1d | Op::AvgPool2d | Op::AvgPool3d => avg_pool,
        Op::LpPool1d | Op::LpPool2d | Op::LpPool3d => lp_pool,
        Op::MaxUnpool1d | Op::MaxUnpool2d | Op::MaxUnpool3d => max_unpool,
        Op::AdaptiveAvgPool1d | Op::AdaptiveAvgPool2d | Op::AdaptiveAvgPool3d => adaptive,
        Op::AdaptiveMaxPool1d | Op::AdaptiveMaxPool2d | Op::AdaptiveMaxPool3d => adaptive_max,
        Op::Interpolate => interpolate,
        Op::GridSample => grid_sample,
        Op::AffineGrid => affine_grid,
        _ => return None,
    })
}

fn spatial_dims(op: Op) -> usize {
    match op {
        Op::MaxPool1d | Op::AvgPool1d | Op::AdaptiveAvgPool1d | Op::AdaptiveMaxPool1d => 1,
        Op::MaxPool3d | Op::AvgPool3d | Op::AdaptiveAvgPool3d | Op::AdaptiveMaxPool3d => 3,
        Op::LpPool1d | Op::MaxUnpool1d => 1,
        Op::LpPool3d | Op::MaxUnpool3d => 3,
        _ => 2,
    }
}

fn pooling(args: &Args<'_>) -> Result<Pooling> {
    let count = spatial_dims(args.op);
    // A stride that is not given, or an empty one, means the kernel's size.
    let stride = match args.optional_ints("stride")? {
        Some(stride) if !stride.is_empty() => args.spatial("stride", count)?,
        _ => Vec::new(),
    };
    let or = |name: &str, default: usize| {
        if args.has(name) { args.spatial(name, count) } else { Ok(vec![default; count]) }
    };
    Ok(Pooling {
        kernel: args.spatial("kernel_size", count)?,
        stride,
        padding: or("padding", 0)?,
        dilation: or("dilation", 1)?,
        ceil_mode: args.flag("ceil_mode")?,
    })
}

fn max_pool(args: &Args<'_>) -> Result<Value> {
    let (input, pooling) = (args.input()?, pooling(args)?);
    if args.flag("return_indices")? {
        let (values, places) = pool::max_pool_with_indices(input, &pooling)?;
        return Ok(Value::tensors([values, places]));
    }
    Ok(pool::max_pool(input, &pooling)?.into())
}

fn avg_pool(args: &Args<'_>) -> Result<Value> {
    let (input, pooling) = (args.input()?, pooling(args)?);
    let divisor = match args.optional_int("divisor_override")? {
        Some(_) => Some(args.size("divisor_override")?),
        None => None,
    };
    Ok(pool::avg_pool(input, &pooling, args.flag("count_include_pad")?, divisor)?.into())
}

fn lp_pool(args: &Args<'_>) -> Result<Value> {
    Ok(composite::lp_pool(args.input()?, args.float("norm_type")?, &pooling(args)?)?.into())
}

fn max_unpool(args: &Args<'_>) -> Result<Value> {
    let count = spatial_dims(args.op);
    let kernel = args.spatial("kernel_size", count)?;
    let stride = match args.optional_ints("stride")? {
        Some(_) => args.spatial("stride", count)?,
        None => kernel.clone(),
    };
    let padding = args.spatial("padding", count)?;
    let given = match args.optional_ints("output_size")? {
        Some(_) => Some(args.sizes("output_size")?),
        None => None,
    };
    let (input, indices) = (args.tensor("input")?, args.tensor("indices")?);
    let windows = Unpooling { kernel, stride, padding };
    Ok(windows.of(input, indices, given.as_deref())?.into())
}

/// The output size of an adaptive pool; `None` keeps the input's.
fn output_sizes(args: &Args<'_>) -> Result<Vec<Option<usize>>> {
    let count = spatial_dims(args.op);
    let size = |value: &Value| -> Result<Option<usize>> {
        match value {
            Value::None => Ok(None),
            value => {
                let size = super::args::as_int("output_size", value)?;
                let size = usize::try_from(size)
                    .map_err(|_| err!(Value, "output_size must not be negative"))?;
                Ok(Some(size))
            }
        }
    };
    match args.value("output_size") {
        Value::Sequence(items) if items.len() == count => items.iter().map(size).collect(),
        Value::Sequence(items) if items.len() == 1 => Ok(vec![size(&items[0])?; count]),
        Value::Sequence(items) => {
            bail!(Value, "output_size must have {count} elements, got {}", items.len())
        }
        value => Ok(vec![size(value)?; count]),
    }
}

fn adaptive(args: &Args<'_>) -> Result<Value> {
    Ok(pool::adaptive_avg_pool(args.input()?, &output_sizes(args)?)?.into())
}

fn adaptive_max(args: &Args<'_>) -> Result<Value> {
    let (values, places) = pool::adaptive_max_pool(args.input()?, &output_sizes(args)?)?;
    if args.flag("return_indices")? {
        return Ok(Value::tensors([values, places]));
    }
    Ok(values.into())
}

fn interpolate(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let spatial = input.ndim().saturating_sub(2);
    ensure!(
        (1..=3).contains(&spatial),
        Shape,
        "Input Error: Only 3D, 4D and 5D input Tensors supported (got {}D)",
        input.ndim()
    );
    let mode = match args.text("mode") {
        None | Some("nearest") => Mode::Nearest,
        Some("nearest-exact") => Mode::NearestExact,
        Some("linear" | "bilinear" | "trilinear") => Mode::Linear,
        Some("bicubic") => Mode::Bicubic,
        Some("area") => Mode::Area,
        Some(other) => bail!(Value, "interpolation mode '{other}' is not known"),
    };
    let sizes = args.optional_ints("size")?;
    let (size, scales) = match sizes {
        Some(_) => (args.spatial("size", spatial)?, None),
        None => {
            let scales = scale_factors(args, spatial)?;
            let size = input.shape()[2..]
                .iter()
                .zip(&scales)
                .map(|(size, scale)| scaled_size(*size, *scale))
                .collect::<Result<Vec<_>>>()?;
            let recompute = args.flag("recompute_scale_factor")?;
            (size, (!recompute).then_some(scales))
        }
    };
    let options = Interpolation {
        mode,
        size,
        scales,
        align_corners: args.flag("align_corners")?,
        antialias: args.flag("antialias")?,
    };
    Ok(resample::interpolate(input, &options)?.into())
}

fn scale_factors(args: &Args<'_>, spatial: usize) -> Result<Vec<f64>> {
    let number = |value: &Value| match value {
        Value::Number(number) => Ok(number.to_f64()),
        Value::Tensor(tensor) => tensor.item().map(Scalar::to_f64),
        other => Err(super::args::wrong_type("scale_factor", "number", other)),
    };
    match args.value("scale_factor") {
        Value::None => bail!(Value, "either size or scale_factor should be defined"),
        Value::Sequence(items) if items.len() == spatial => items.iter().map(number).collect(),
        Value::Sequence(items) if items.len() == 1 => Ok(vec![number(&items[0])?; spatial]),
        Value::Sequence(items) => bail!(
            Value,
            "scale_factor shape must match input shape: {spatial} spatial dimensions, {} factors",
            items.len()
        ),
        value => Ok(vec![number(value)?; spatial]),
    }
}

fn scaled_size(size: usize, scale: f64) -> Result<usize> {
    let scaled = (size as f64 * scale).floor();
    ensure!(
        (1.0..1e9).contains(&scaled),
        Value,
        "Input and output sizes should be greater than 0, but got output size {scaled}"
    );
    Ok(scaled as usize)
}

fn grid_sample(args: &Args<'_>) -> Result<Value> {
    let mode = match args.text("mode") {
        None | Some("bilinear") => GridMode::Bilinear,
        Some("nearest") => GridMode::Nearest,
        Some("bicubic") => GridMode::Bicubic,
        Some(other) => bail!(Value, "grid_sample mode '{other}' is not known"),
    };
    let padding = match args.text("padding_mode") {
        None | Some("zeros") => GridPadding::Zeros,
        Some("border") => GridPadding::Border,
        Some("reflection") => GridPadding::Reflection,
        Some(other) => bail!(Value, "grid_sample padding mode '{other}' is not known"),
    };
    let align = args.flag("align_corners")?;
    Ok(resample::grid_sample(args.input()?, args.tensor("grid")?, mode, padding, align)?.into())
}

fn affine_grid(args: &Args<'_>) -> Result<Value> {
    let size = args.sizes("size")?;
    let theta = args.tensor("theta")?;
    Ok(composite::affine_grid(theta, &size, args.flag("align_corners")?)?.into())
}
