//! Pooling in one, two and three dimensions.

use super::conv::Window;
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::{Dims, numel, suggests_channels_last};
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::parallel::{for_each_chunk, for_each_weighted_chunk};
use passnet_cpu::{Float, multiversion};
use passnet_graph::DType;

/// Kernel, stride, padding and dilation per spatial dimension; the number of these is the kernel's length.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other fields are torch's arguments of the same names")]
pub struct Pooling {
    pub kernel: Vec<usize>,
    /// Empty means the kernel's size.
    pub stride: Vec<usize>,
    pub padding: Vec<usize>,
    pub dilation: Vec<usize>,
    pub ceil_mode: bool,
}

/// An input seen as planes of a volume.
struct Planes {
    volume: Tensor,
    spatial: usize,
    channels_last: bool,
}

impl Planes {
    fn new(input: &Tensor, spatial: usize, name: &str) -> Result<Self> {
        ensure!(
            (1..=3).contains(&spatial)
                && (input.ndim() == spatial + 1 || input.ndim() == spatial + 2),
            Shape,
            "{name}: Expected {}D or {}D (batch mode) tensor for input, but got {:?}",
            spatial + 1,
            spatial + 2,
            input.shape()
        );
        let mut volume = input.clone();
        for _ in spatial..3 {
            volume = volume.unsqueeze((input.ndim() - spatial) as i64)?;
        }
        Ok(Planes {
            volume,
            spatial,
            channels_last: suggests_channels_last(input.shape(), input.strides()),
        })
    }

    fn size(&self) -> [usize; 3] {
        let shape = self.volume.shape();
        let n = shape.len();
        [shape[n - 3], shape[n - 2], shape[n - 1]]
    }

    fn shape(&self, output: [usize; 3], input: &Tensor) -> Dims {
        let mut shape: Dims = input.shape()[..input.ndim() - self.spatial].into();
        shape.extend_from_slice(&output[3 - self.spatial..]);
        shape
    }

    fn finish(&self, result: Tensor) -> Result<Tensor> {
        if self.channels_last { result.channels_last() } else { Ok(result) }
    }
}

fn triple(values: &[usize], spatial: usize, neutral: usize) -> Result<[usize; 3]> {
    ensure!(
        values.len() == spatial || values.len() == 1,
        Value,
        "expected one value or {spatial} values, got {values:?}"
    );
    let mut result = [neutral; 3];
    for d in 0..spatial {
        result[3 - spatial + d] = if values.len() == 1 { values[0] } else { values[d] };
    }
    Ok(result)
}

fn window(planes: &Planes, pooling: &Pooling, spatial: usize) -> Result<Window> {
    let kernel = triple(&pooling.kernel, spatial, 1)?;
    let stride =
        if pooling.stride.is_empty() { kernel } else { triple(&pooling.stride, spatial, 1)? };
    let padding = triple(&pooling.padding, spatial, 0)?;
    let dilation = triple(&pooling.dilation, spatial, 1)?;
    let input = planes.size();
    let mut output = [0; 3];
    for d in 0..3 {
        ensure!(
            kernel[d] > 0,
            Value,
            "kernel size should be greater than zero, but got {kernel:?}"
        );
        ensure!(stride[d] > 0, Value, "stride should not be zero");
        ensure!(
            dilation[d] > 0,
            Value,
            "dilation should be greater than zero, but got {dilation:?}"
        );
        ensure!(
            padding[d] <= kernel[d] / 2,
            Value,
            "pad should be at most half of effective kernel size, but got pad={}, kernel_size={}",
            padding[d],
            kernel[d]
        );
        let reach = dilation[d].saturating_mul(kernel[d] - 1) + 1;
        let padded = input[d] + 2 * padding[d];
        let slack = if pooling.ceil_mode { stride[d] - 1 } else { 0 };
        ensure!(
            padded + slack >= reach,
            Shape,
            "Given input size {input:?}, the output size is too small for kernel {kernel:?}"
        );
        output[d] = (padded + slack - reach) / stride[d] + 1;
        // The last window must start inside the input or its left padding.
        if pooling.ceil_mode && (output[d] - 1) * stride[d] >= input[d] + padding[d] {
            output[d] -= 1;
        }
    }
    Ok(Window::with_output(input, output, kernel, stride, padding, dilation))
}

/// Runs `kernel` in the type it computes in and rounds the result.
macro_rules! in_real {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::Float32 | DType::Float16 | DType::BFloat16 => {
                type $t = f32;
                $body
            }
            _ => {
                type $t = f64;
                $body
            }
        }
    };
}

/// `torch.nn.functional.max_pool1d`, `2d`, `3d`.
pub fn max_pool(input: &Tensor, pooling: &Pooling) -> Result<Tensor> {
    let spatial = pooling.kernel.len();
    let planes = Planes::new(input, spatial, "max_pool")?;
    let window = window(&planes, pooling, spatial)?;
    let shape = planes.shape(window.output, input);
    let result = in_real!(input.dtype(), T => {
        let values = planes.volume.values::<T>()?;
        let mut out = Buffer::<T>::new(numel(&shape)?)?;
        let plane = window.input_size();
        for_each_weighted_chunk(&mut out, window.output_size(), window.kernel_size(), |index, target| {
            let source = &values[index * plane..(index + 1) * plane];
            target.fill(-T::INFINITY);
            pool_plane(source, target, &window, Pool::Max);
        });
        Tensor::from_buffer(out, &shape)?.to_dtype(input.dtype())?
    });
    planes.finish(result)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pool {
    Max,
    Sum,
}

multiversion! {
    /// Joins into `target` what each window sees: lines of the window first, then positions along the line.
    fn pool_plane[T: Real](source: &[T], target: &mut [T], window: &Window, pool: Pool) {
        let [_, height, width] = window.input;
        let [_, rows, columns] = window.output;
        let [kd, kh, kw] = window.kernel;
        let stride = window.stride[2];
        let start_value = if pool == Pool::Max { -T::INFINITY } else { T::ZERO };
        let mut merged = vec![start_value; width];
        for (line, target) in target.chunks_mut(columns).enumerate() {
            let (od, oh) = (line / rows, line % rows);
            merged.fill(start_value);
            for td in 0..kd {
                let Some(d) = window.source(0, od, td) else { continue };
                for th in 0..kh {
                    let Some(h) = window.source(1, oh, th) else { continue };
                    let from = &source[(d * height + h) * width..][..width];
                    match pool {
                        Pool::Max => for (m, v) in merged.iter_mut().zip(from) { *m = v.most(*m); },
                        Pool::Sum => for (m, v) in merged.iter_mut().zip(from) { *m = *m + *v; },
                    }
                }
            }
            for tw in 0..kw {
                let valid = window.valid(2, tw);
                if valid.is_empty() {
                    continue;
                }
                let first = valid.start * stride + tw * window.dilation[2] - window.before[2];
                let to = &mut target[valid];
                let from = merged[first..].iter().step_by(stride);
                match pool {
                    Pool::Max => for (o, v) in to.iter_mut().zip(from) { *o = v.most(*o); },
                    Pool::Sum => for (o, v) in to.iter_mut().zip(from) { *o = *o + *v; },
                }
            }
        }
    }
}

/// Max pooling with the position of each maximum in its plane.
pub fn max_pool_with_indices(input: &Tensor, pooling: &Pooling) -> Result<(Tensor, Tensor)> {
    let spatial = pooling.kernel.len();
    let planes = Planes::new(input, spatial, "max_pool")?;
    let window = window(&planes, pooling, spatial)?;
    let shape = planes.shape(window.output, input);
    let mut positions = Buffer::<i64>::new(numel(&shape)?)?;
    in_real!(input.dtype(), T => {
        let values = planes.volume.values::<T>()?;
        let plane = window.input_size();
        for_each_weighted_chunk(&mut positions, window.output_size(), window.kernel_size(), |index, target| {
            let source = &values[index * plane..(index + 1) * plane];
            for (at, o) in target.iter_mut().enumerate() {
                *o = best_position(source, &window, at) as i64;
            }
        });
    });
    let indices = planes.finish(Tensor::from_buffer(positions, &shape)?)?;
    Ok((max_pool(input, pooling)?, indices))
}

/// The first maximum (or the last NaN) in the window of one output position.
fn best_position<T: Real>(source: &[T], window: &Window, at: usize) -> usize {
    let [_, height, width] = window.input;
    let [_, rows, columns] = window.output;
    let [kd, kh, kw] = window.kernel;
    let (od, oh, ow) = (at / (rows * columns), at / columns % rows, at % columns);
    let mut best = -T::INFINITY;
    let mut position = None;
    for td in 0..kd {
        for th in 0..kh {
            for tw in 0..kw {
                let found =
                    (window.source(0, od, td), window.source(1, oh, th), window.source(2, ow, tw));
                let (Some(d), Some(h), Some(w)) = found else { continue };
                let index = (d * height + h) * width + w;
                let value = source[index];
                if value > best || value.is_nan() || position.is_none() {
                    best = value;
                    position = Some(index);
                }
            }
        }
    }
    position.unwrap_or(0)
}

/// `torch.nn.functional.avg_pool1d`, `2d`, `3d`.
pub fn avg_pool(
    input: &Tensor,
    pooling: &Pooling,
    count_include_pad: bool,
    divisor: Option<usize>,
) -> Result<Tensor> {
    ensure!(divisor != Some(0), Value, "divisor must be not zero");
    ensure!(
        input.dtype().is_float(),
        DType,
        "\"avg_pool\" not implemented for '{}'",
        input.dtype()
    );
    let spatial = pooling.kernel.len();
    let planes = Planes::new(input, spatial, "avg_pool")?;
    let window = window(&planes, pooling, spatial)?;
    let shape = planes.shape(window.output, input);
    // How many elements each position along a dimension averages.
    let counts: Vec<Vec<usize>> = (0..3)
        .map(|d| {
            (0..window.output[d])
                .map(|o| {
                    let start = o * window.stride[d];
                    let end =
                        (start + window.kernel[d]).min(window.input[d] + 2 * window.before[d]);
                    if count_include_pad {
                        return end - start;
                    }
                    let end = end.min(window.input[d] + window.before[d]);
                    end.saturating_sub(start.max(window.before[d]))
                })
                .collect()
        })
        .collect();
    let result = in_real!(input.dtype(), T => {
        let values = planes.volume.values::<T>()?;
        let mut out = Buffer::<T>::new(numel(&shape)?)?;
        let plane = window.input_size();
        let [_, rows, columns] = window.output;
        for_each_weighted_chunk(&mut out, window.output_size(), window.kernel_size(), |index, target| {
            let source = &values[index * plane..(index + 1) * plane];
            target.fill(T::ZERO);
            pool_plane(source, target, &window, Pool::Sum);
            for (at, o) in target.iter_mut().enumerate() {
                let count = divisor.unwrap_or_else(|| {
                    counts[0][at / (rows * columns)] * counts[1][at / columns % rows] * counts[2][at % columns]
                });
                *o /= T::constant(count as f64);
            }
        });
        Tensor::from_buffer(out, &shape)?.to_dtype(input.dtype())?
    });
    planes.finish(result)
}

/// The part of the input that output `o` of `output` adapts to.
fn adaptive_range(o: usize, input: usize, output: usize) -> std::ops::Range<usize> {
    let start = o * input / output;
    let end = ((o + 1) * input).div_ceil(output);
    start..end
}

/// Output sizes as given, `None` keeping the input's.
fn adaptive_output(planes: &Planes, sizes: &[Option<usize>]) -> [usize; 3] {
    let mut output = planes.size();
    let spatial = planes.spatial;
    for (d, size) in sizes.iter().enumerate() {
        output[3 - spatial + d] = size.unwrap_or(output[3 - spatial + d]);
    }
    output
}

/// `torch.nn.functional.adaptive_avg_pool1d`, `2d`, `3d`.
pub fn adaptive_avg_pool(input: &Tensor, sizes: &[Option<usize>]) -> Result<Tensor> {
    ensure!(
        input.dtype().is_float(),
        DType,
        "\"adaptive_avg_pool\" not implemented for '{}'",
        input.dtype()
    );
    let planes = Planes::new(input, sizes.len(), "adaptive_avg_pool")?;
    let output = adaptive_output(&planes, sizes);
    if output == [1; 3] && planes.size().iter().all(|s| *s > 0) {
        let dims: Vec<i64> = (1..=sizes.len() as i64).map(|d| -d).collect();
        return planes.finish(super::reduce::mean(input, Some(&dims), true, None)?);
    }
    let size = planes.size();
    let shape = planes.shape(output, input);
    let result = in_real!(input.dtype(), T => {
        let values = planes.volume.values::<T>()?;
        let mut out = Buffer::<T>::new(numel(&shape)?)?;
        let plane: usize = size.iter().product();
        let ranges: [Vec<_>; 3] = std::array::from_fn(|d| {
            (0..output[d]).map(|o| adaptive_range(o, size[d], output[d])).collect()
        });
        let outputs: usize = output.iter().product();
        for_each_weighted_chunk(&mut out, outputs, plane / outputs.max(1) + 1, |index, target| {
            let source = &values[index * plane..(index + 1) * plane];
            let lines = ranges[0].iter().flat_map(|d| ranges[1].iter().map(move |h| (d, h)));
            for ((depth, height), line) in lines.zip(target.chunks_mut(output[2].max(1))) {
                for (width, o) in ranges[2].iter().zip(line) {
                    let mut sum = T::ZERO;
                    for d in depth.clone() {
                        for h in height.clone() {
                            let line = &source[(d * size[1] + h) * size[2]..][width.clone()];
                            sum = line.iter().fold(sum, |s, v| s + *v);
                        }
                    }
                    let count = depth.len() * height.len() * width.len();
                    *o = sum / T::constant(count as f64);
                }
            }
        });
        Tensor::from_buffer(out, &shape)?.to_dtype(input.dtype())?
    });
    planes.finish(result)
}

/// `torch.nn.functional.adaptive_max_pool1d`, `2d`, `3d`: values and positions.
pub fn adaptive_max_pool(input: &Tensor, sizes: &[Option<usize>]) -> Result<(Tensor, Tensor)> {
    let planes = Planes::new(input, sizes.len(), "adaptive_max_pool")?;
    let output = adaptive_output(&planes, sizes);
    let size = planes.size();
    let shape = planes.shape(output, input);
    let mut positions = Buffer::<i64>::new(numel(&shape)?)?;
    let values = planes.volume.values::<f64>()?;
    let plane: usize = size.iter().product();
    let [_, rows, columns] = output;
    for_each_chunk(&mut positions, output.iter().product(), |index, target| {
        let source = &values[index * plane..(index + 1) * plane];
        for (at, o) in target.iter_mut().enumerate() {
            let (mut best, mut position) = (f64::NEG_INFINITY, None);
            for d in adaptive_range(at / (rows * columns), size[0], output[0]) {
                for h in adaptive_range(at / columns % rows, size[1], output[1]) {
                    for w in adaptive_range(at % columns, size[2], output[2]) {
                        let index = (d * size[1] + h) * size[2] + w;
                        if source[index] > best || source[index].is_nan() || position.is_none() {
                            best = source[index];
                            position = Some(index);
                        }
                    }
                }
            }
            *o = position.unwrap_or(0) as i64;
        }
    });
    let indices = Tensor::from_buffer(positions, &shape)?;
    let lead = input.ndim() - sizes.len();
    let flat_input = input.flatten(lead as i64, -1)?;
    let picked = super::indexing::gather(&flat_input, -1, &indices.flatten(lead as i64, -1)?)?;
    Ok((planes.finish(picked.reshape_to(&shape)?)?, planes.finish(indices)?))
}
