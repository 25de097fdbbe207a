//! Transposed convolution: each input element spreads the kernel over the output.

use super::Operands;
use super::window::Window;
use crate::native::error::Result;
use crate::native::ops::gemm::{Matrix, Sizes, Target, multiply};
use crate::native::tensor::element::Real;
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::parallel::for_each_weighted_chunk;

/// `window` is that of the forward convolution: its input is our output.
pub(super) fn run<T: Real>(operands: &Operands, window: &Window, groups: usize) -> Result<Tensor> {
    let Operands { input, weight, bias, .. } = operands;
    let (batch, channels) = (input.shape()[0], input.shape()[1]);
    let per_group = weight.shape()[1];
    let filters = per_group * groups;
    let (plane, plane_in, taps) = (window.input_size(), window.output_size(), window.kernel_size());
    let shape = [batch, filters, window.input[0], window.input[1], window.input[2]];
    let mut out = Buffer::<T>::new(crate::native::tensor::layout::numel(&shape)?)?;
    let values = input.values::<T>()?;
    let weights = weight.values::<T>()?;
    let bias = match bias {
        Some(bias) => Some(bias.values::<T>()?),
        None => None,
    };
    let k = channels / groups;
    let rows = per_group * taps;
    let mut spread = Buffer::<T>::new(rows * plane_in)?;
    for image in 0..batch {
        for group in 0..groups {
            let source = &values[(image * channels + group * k) * plane_in..][..k * plane_in];
            let kernel = &weights[group * k * rows..][..k * rows];
            let sizes = Sizes { m: rows, n: plane_in, k };
            let target = Target::new(&mut spread, plane_in);
            multiply(
                sizes,
                target,
                false,
                Matrix::rows(kernel, rows).transposed(),
                Matrix::rows(source, plane_in),
                true,
            );
            let first = image * filters + group * per_group;
            let planes = &mut out[first * plane..(first + per_group) * plane];
            for_each_weighted_chunk(planes, plane, taps, |filter, target| {
                target.fill(bias.as_ref().map_or(T::ZERO, |b| b[group * per_group + filter]));
                gather_back(&spread[filter * taps * plane_in..][..taps * plane_in], target, window);
            });
        }
    }
    Tensor::from_buffer(out, &shape)
}

/// Adds what every tap contributes to each output element.
pub(crate) fn gather_back<T: Real>(spread: &[T], target: &mut [T], window: &Window) {
    let [_, height, width] = window.input;
    let [depth_in, rows_in, columns_in] = window.output;
    let [_, kh, kw] = window.kernel;
    let plane_in = window.output_size();
    for (tap, values) in spread.chunks(plane_in.max(1)).enumerate() {
        let (td, th, tw) = (tap / (kh * kw), tap / kw % kh, tap % kw);
        let valid = window.valid(2, tw);
        if valid.is_empty() {
            continue;
        }
        let start = valid.start * window.stride[2] + tw * window.dilation[2] - window.before[2];
        for id in 0..depth_in {
            let Some(d) = window.source(0, id, td) else { continue };
            for ih in 0..rows_in {
                let Some(h) = window.source(1, ih, th) else { continue };
                let line = &values[(id * rows_in + ih) * columns_in..][valid.clone()];
                let to = &mut target[(d * height + h) * width..][..width];
                for (o, v) in to[start..].iter_mut().step_by(window.stride[2]).zip(line) {
                    *o = *o + *v;
                }
            }
        }
    }
}
