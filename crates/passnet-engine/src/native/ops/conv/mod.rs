//! Convolutions in one, two and three dimensions: strided, padded, dilated, grouped, transposed.

mod depthwise;
mod forward;
mod padded;
mod transposed;
mod window;

use crate::native::error::{Result, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::{Dims, suggests_channels_last};
use crate::native::tensor::{Buffer, Tensor};
use half::{bf16, f16};
use passnet_graph::DType;
pub(crate) use transposed::gather_back;
pub(crate) use window::Window;

/// Padding of a convolution: the same on both sides, or whatever keeps the size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Padding {
    /// So many zeros on both sides of each dimension.
    Explicit(Vec<usize>),
    /// As many as keep the size.
    Same,
    /// None.
    Valid,
}

/// Everything but the tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convolution {
    /// Steps of the window; one number stands for all dimensions.
    pub stride: Vec<usize>,
    /// What is around the input.
    pub padding: Padding,
    /// Distance between taps; one number stands for all dimensions.
    pub dilation: Vec<usize>,
    /// Channels are split into so many parts, which do not see each other.
    pub groups: usize,
}

/// One value per spatial dimension: a list of one is repeated.
fn per_dim(values: &[usize], spatial: usize, name: &str) -> Result<Vec<usize>> {
    ensure!(
        values.len() == spatial || values.len() == 1,
        Value,
        "expected {name} to be a single integer value or a list of {spatial} values to match the convolution dimensions, but got {values:?}"
    );
    Ok(if values.len() == spatial { values.to_vec() } else { vec![values[0]; spatial] })
}

/// The operands of a convolution brought to `[batch, channels, depth, height, width]`.
struct Operands {
    input: Tensor,
    weight: Tensor,
    bias: Option<Tensor>,
    spatial: usize,
    batched: bool,
    channels_last: bool,
    dtype: DType,
}

impl Operands {
    fn new(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Self> {
        let dtype = input.dtype();
        let spatial = weight.ndim().saturating_sub(2);
        ensure!(
            (1..=3).contains(&spatial),
            Shape,
            "weight should have at least three dimensions and at most five, got {}",
            weight.ndim()
        );
        ensure!(
            dtype == weight.dtype(),
            DType,
            "Input type ({dtype}) and weight type ({}) should be the same",
            weight.dtype()
        );
        ensure!(dtype.is_float(), DType, "convolution is not implemented for '{dtype}'");
        if let Some(bias) = bias {
            ensure!(
                bias.dtype() == dtype,
                DType,
                "Input type ({dtype}) and bias type ({}) should be the same",
                bias.dtype()
            );
        }
        let batched = input.ndim() == spatial + 2;
        ensure!(
            batched || input.ndim() == spatial + 1,
            Shape,
            "Expected {}D (unbatched) or {}D (batched) input to conv{spatial}d, but got input of size: {:?}",
            spatial + 1,
            spatial + 2,
            input.shape()
        );
        let input = if batched { input.clone() } else { input.unsqueeze(0)? };
        let channels_last = suggests_channels_last(input.shape(), input.strides())
            || suggests_channels_last(weight.shape(), weight.strides());
        Ok(Operands {
            input: to_volume(&input)?,
            weight: to_volume(weight)?,
            bias: bias.cloned(),
            spatial,
            batched,
            channels_last,
            dtype,
        })
    }

    /// The result in the input's rank, type and memory order.
    fn finish(&self, result: &Tensor) -> Result<Tensor> {
        let mut shape: Dims = result.shape()[..2].into();
        shape.extend_from_slice(&result.shape()[5 - self.spatial..]);
        let result = result.reshape_to(&shape)?.to_dtype(self.dtype)?;
        let result = if self.channels_last { result.channels_last()? } else { result };
        if self.batched { Ok(result) } else { result.select(0, 0) }
    }
}

/// Inserts dimensions of size one so that there are three spatial ones.
fn to_volume(tensor: &Tensor) -> Result<Tensor> {
    let mut volume = tensor.clone();
    while volume.ndim() < 5 {
        volume = volume.unsqueeze(2)?;
    }
    Ok(volume)
}

/// Three values, one per dimension of the volume; missing leading dimensions get `neutral`.
fn to_triple(values: &[usize], neutral: usize) -> [usize; 3] {
    let mut triple = [neutral; 3];
    triple[3 - values.len()..].copy_from_slice(values);
    triple
}

/// `torch.conv1d`, `conv2d`, `conv3d`.
pub fn convolution(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: &Convolution,
) -> Result<Tensor> {
    let operands = Operands::new(input, weight, bias)?;
    let spatial = operands.spatial;
    let stride = per_dim(&options.stride, spatial, "stride")?;
    let dilation = per_dim(&options.dilation, spatial, "dilation")?;
    let kernel = &weight.shape()[2..];
    let (before, after): (Vec<usize>, Vec<usize>) = match &options.padding {
        Padding::Explicit(padding) => {
            let padding = per_dim(padding, spatial, "padding")?;
            (padding.clone(), padding)
        }
        Padding::Valid => (vec![0; spatial], vec![0; spatial]),
        Padding::Same => {
            ensure!(
                stride.iter().all(|s| *s == 1),
                Value,
                "padding='same' is not supported for strided convolutions"
            );
            let total = kernel.iter().zip(&dilation).map(|(k, d)| d * (k - 1));
            total.map(|t| (t / 2, t - t / 2)).unzip()
        }
    };
    let groups = options.groups;
    let channels = operands.input.shape()[1];
    let (filters, per_group) = (weight.shape()[0], weight.shape()[1]);
    ensure!(groups > 0, Value, "non-positive groups is not supported");
    ensure!(
        per_group * groups == channels,
        Shape,
        "Given groups={groups}, weight of size {:?}, expected input{:?} to have {} channels, but got {channels} channels instead",
        weight.shape(),
        input.shape(),
        per_group * groups
    );
    ensure!(
        filters % groups == 0,
        Shape,
        "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size {:?} instead",
        weight.shape()
    );
    check_bias(operands.bias.as_ref(), filters)?;
    let window = Window::new(
        [operands.input.shape()[2], operands.input.shape()[3], operands.input.shape()[4]],
        to_triple(kernel, 1),
        to_triple(&stride, 1),
        to_triple(&before, 0),
        to_triple(&after, 0),
        to_triple(&dilation, 1),
    )?;
    let result = match operands.dtype {
        DType::Float64 => dispatch::<f64>(&operands, &window, groups)?,
        _ => dispatch::<f32>(&operands, &window, groups)?,
    };
    operands.finish(&result)
}

fn check_bias(bias: Option<&Tensor>, filters: usize) -> Result<()> {
    if let Some(bias) = bias {
        ensure!(
            bias.shape() == [filters],
            Shape,
            "expected bias to be 1-dimensional with {filters} elements, but got bias of size {:?} instead",
            bias.shape()
        );
    }
    Ok(())
}

fn dispatch<T: Real>(operands: &Operands, window: &Window, groups: usize) -> Result<Tensor> {
    let (batch, channels) = (operands.input.shape()[0], operands.input.shape()[1]);
    let filters = operands.weight.shape()[0];
    let weight = operands.weight.values::<T>()?;
    let bias = match &operands.bias {
        Some(bias) => Some(bias.values::<T>()?),
        None => None,
    };
    let bias_of = |filter: usize| bias.as_ref().map_or(T::ZERO, |b| b[filter]);
    if groups == channels && filters.is_multiple_of(channels) && channels > 1 {
        let input = &operands.input;
        return match operands.dtype {
            DType::Float16 => depthwise::run::<f16, T>(input, &weight, window, filters, &bias_of),
            DType::BFloat16 => depthwise::run::<bf16, T>(input, &weight, window, filters, &bias_of),
            _ => depthwise::run::<T, T>(input, &weight, window, filters, &bias_of),
        };
    }
    let input = operands.input.values::<T>()?;
    let shape = [batch, filters, window.output[0], window.output[1], window.output[2]];
    let count = crate::native::tensor::layout::numel(&shape)?;
    let mut out = Buffer::<T>::new(count)?;
    if count > 0 {
        let size = forward::Channels { batch, channels, filters, groups };
        forward::run(&input, &weight, &mut out, window, size, &bias_of)?;
    }
    Tensor::from_buffer(out, &shape)
}

/// `torch.conv_transpose1d`, `2d`, `3d`.
#[expect(clippy::too_many_arguments, reason = "they are torch's own, in its order")]
pub fn convolution_transposed(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: &[usize],
    padding: &[usize],
    output_padding: &[usize],
    groups: usize,
    dilation: &[usize],
) -> Result<Tensor> {
    let operands = Operands::new(input, weight, bias)?;
    let spatial = operands.spatial;
    let stride = per_dim(stride, spatial, "stride")?;
    let padding = per_dim(padding, spatial, "padding")?;
    let extra = per_dim(output_padding, spatial, "output_padding")?;
    let dilation = per_dim(dilation, spatial, "dilation")?;
    let channels = operands.input.shape()[1];
    ensure!(groups > 0, Value, "non-positive groups is not supported");
    ensure!(
        weight.shape()[0] == channels && channels % groups == 0,
        Shape,
        "Given transposed=1, weight of size {:?}, expected input{:?} to have {} channels, but got {channels} channels instead",
        weight.shape(),
        input.shape(),
        weight.shape()[0]
    );
    let filters = weight.shape()[1] * groups;
    check_bias(operands.bias.as_ref(), filters)?;
    let kernel = &weight.shape()[2..];
    let mut output = vec![0; spatial];
    for d in 0..spatial {
        let size = operands.input.shape()[5 - spatial + d];
        ensure!(stride[d] > 0 && dilation[d] > 0, Value, "non-positive stride is not supported");
        ensure!(
            extra[d] < stride[d].max(dilation[d]),
            Value,
            "output padding must be smaller than either stride or dilation"
        );
        let reach = (size.saturating_sub(1)).saturating_mul(stride[d])
            + dilation[d].saturating_mul(kernel[d].saturating_sub(1))
            + extra[d]
            + 1;
        ensure!(
            reach > 2 * padding[d],
            Shape,
            "Calculated output size per channel is too small: {reach} - 2 * {}",
            padding[d]
        );
        output[d] = reach - 2 * padding[d];
    }
    // The transposed convolution scatters along the windows of the convolution it reverses.
    let window = Window::with_output(
        to_triple(&output, 1),
        [operands.input.shape()[2], operands.input.shape()[3], operands.input.shape()[4]],
        to_triple(kernel, 1),
        to_triple(&stride, 1),
        to_triple(&padding, 0),
        to_triple(&dilation, 1),
    );
    let result = match operands.dtype {
        DType::Float64 => transposed::run::<f64>(&operands, &window, groups)?,
        _ => transposed::run::<f32>(&operands, &window, groups)?,
    };
    operands.finish(&result)
}
