//! Convolutions in which each filter sees one channel: no product worth a matrix, so runs of memory are summed directly.

use super::padded::Padded;
use super::window::Window;
use crate::native::error::Result;
use crate::native::tensor::convert::{narrow, same, same_mut, widen};
use crate::native::tensor::element::Element;
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::numel;
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::parallel::{Shared, for_each_task};
use passnet_cpu::threads;
use passnet_cpu::vector::{MOST_LANES, Vector, VectorKernel};
use std::borrow::Cow;

/// Vectors summed at a time, enough to hide how long one addition takes.
const VECTORS: usize = 4;
/// Elements that are read beyond the last position, at most.
const SLACK: usize = VECTORS * MOST_LANES;
/// Products that one task computes, at least.
const WORK: usize = 1 << 15;

/// Every channel is brought into the type that is computed in, and every plane of results back, by itself.
pub(super) fn run<S: Element, T: Real>(
    input: &Tensor,
    weight: &[T],
    window: &Window,
    filters: usize,
    bias: &(impl Fn(usize) -> T + Sync + Send),
) -> Result<Tensor> {
    let (batch, channels) = (input.shape()[0], input.shape()[1]);
    let shape = [batch, filters, window.output[0], window.output[1], window.output[2]];
    let mut out = Buffer::<S>::new(numel(&shape)?)?;
    let (plane_in, plane, taps) = (window.input_size(), window.output_size(), window.kernel_size());
    if out.is_empty() {
        return Tensor::from_buffer(out, &shape);
    }
    let input = input.words::<S>()?;
    // A product of a zero in the padding with these would be no number, where torch does not look there.
    let is_bounded = |weight: T| weight * T::ZERO == T::ZERO;
    let unbounded: Vec<usize> = (0..weight.len()).filter(|at| !is_bounded(weight[*at])).collect();
    let bounded = match unbounded[..] {
        [] => Cow::Borrowed(weight),
        _ => weight.iter().map(|own| if is_bounded(*own) { *own } else { T::ZERO }).collect(),
    };
    let finish = |filter: usize, source: &[S], sums: &mut [T]| {
        let own = unbounded.iter().filter(|at| **at / taps == filter);
        for at in own {
            let mut seen = vec![T::ZERO; plane_in];
            widen(source, &mut seen);
            add_tap(window, at % taps, weight[*at], &seen, sums);
        }
    };
    let padded = Padded::new(window)?;
    let multiplier = filters / channels;
    let planes = out.len() / plane;
    let together = (WORK / (plane * taps)).clamp(1, planes);
    let tasks = planes.div_ceil(together);
    let shared = Shared::new(&mut out);
    // Every thread has a volume of its own; what lies between a channel's elements stays zero.
    let volume_len = padded.len + SLACK;
    let reach = padded.offsets.iter().max().map_or(0, |offset| offset + padded.positions);
    assert!(reach <= padded.len, "a tap beyond the padded volume");
    let converted = if S::DTYPE == T::DTYPE { 0 } else { plane_in.max(plane) };
    let own_len = volume_len + converted;
    let mut volumes = Buffer::<T>::zeroed(threads().min(tasks) * own_len)?;
    let volumes = Shared::new(&mut volumes);
    let work = |task: usize, thread: usize| {
        // SAFETY: tasks of one thread follow one another.
        let (volume, converted) =
            unsafe { volumes.slice(thread * own_len, own_len) }.split_at_mut(volume_len);
        for index in task * together..planes.min((task + 1) * together) {
            let (image, filter) = (index / filters, index % filters);
            let channel = image * channels + filter / multiplier;
            let source = &input[channel * plane_in..(channel + 1) * plane_in];
            // SAFETY: each plane is one task's.
            let target = unsafe { shared.slice(index * plane, plane) };
            let correlation = Correlation {
                padded: &padded,
                reach,
                weights: &bounded[filter * taps..(filter + 1) * taps],
                bias: bias(filter),
            };
            match (same::<S, T>(source), same_mut::<S, T>(target)) {
                (Some(source), Some(target)) => {
                    padded.fill(source, volume);
                    T::run_vectors(correlation.of(volume, &mut *target));
                    finish(filter, &input[channel * plane_in..(channel + 1) * plane_in], target);
                }
                _ => {
                    widen(source, &mut converted[..plane_in]);
                    padded.fill(&converted[..plane_in], volume);
                    T::run_vectors(correlation.of(volume, &mut converted[..plane]));
                    finish(filter, source, &mut converted[..plane]);
                    narrow(&converted[..plane], target);
                }
            }
        }
    };
    for_each_task(tasks, work);
    Tensor::from_buffer(out, &shape)
}

/// Adds what one tap sees of a channel, where it sees any of it.
fn add_tap<T: Real>(window: &Window, tap: usize, weight: T, seen: &[T], sums: &mut [T]) {
    let [_, rows, columns] = window.kernel;
    let [depth, row, column] = [tap / (rows * columns), tap / columns % rows, tap % columns];
    let ([_, high, wide], [_, rows_out, columns_out]) = (window.input, window.output);
    for z in window.valid(0, depth) {
        for y in window.valid(1, row) {
            for x in window.valid(2, column) {
                let source = [(0, z, depth), (1, y, row), (2, x, column)];
                let [Some(z_in), Some(y_in), Some(x_in)] =
                    source.map(|(d, at, tap)| window.source(d, at, tap))
                else {
                    continue;
                };
                let sum = &mut sums[(z * rows_out + y) * columns_out + x];
                *sum = seen[(z_in * high + y_in) * wide + x_in].fused(weight, *sum);
            }
        }
    }
}

/// One filter over one channel.
struct Correlation<'a, T> {
    padded: &'a Padded,
    /// Where the last position's farthest tap lies.
    reach: usize,
    weights: &'a [T],
    bias: T,
}

/// With the channel, laid out, and the results.
struct Plane<'a, T> {
    filter: Correlation<'a, T>,
    volume: &'a [T],
    target: &'a mut [T],
}

impl<'a, T> Correlation<'a, T> {
    fn of(self, volume: &'a [T], target: &'a mut [T]) -> Plane<'a, T> {
        Plane { filter: self, volume, target }
    }
}

impl<T: Real> VectorKernel<T> for Plane<'_, T> {
    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        assert!(self.filter.reach + SLACK <= self.volume.len());
        match self.filter.padded.vectors(V::LANES) {
            Some(places) => self.lines::<V>(places),
            None => self.positions::<V>(),
        }
    }
}

impl<T: Real> Plane<'_, T> {
    /// Lines that hold vectors: results are stored where they belong.
    #[inline(always)]
    fn lines<V: Vector<T>>(self, mut places: impl Iterator<Item = (usize, usize)>) {
        while let Some(first) = places.next() {
            let (mut group, mut count) = ([first; VECTORS], 1);
            for (slot, place) in group[1..].iter_mut().zip(&mut places) {
                *slot = place;
                count += 1;
            }
            // SAFETY: `run` looked at the volume's length; vectors begin at positions.
            let sums = unsafe { self.sums::<V>(group.map(|(position, _)| position)) };
            for (sum, (_, output)) in sums.into_iter().zip(group).take(count) {
                let target = &mut self.target[output..output + V::LANES];
                // SAFETY: there is room for a vector.
                unsafe { sum.store(target.as_mut_ptr()) }
            }
        }
    }

    /// Short lines: vectors reach over what lies between them, and that is left out.
    #[inline(always)]
    fn positions<V: Vector<T>>(self) {
        let padded = self.filter.padded;
        let step = VECTORS * V::LANES;
        let mut tile = [T::ZERO; SLACK];
        for first in (0..padded.positions).step_by(step) {
            // SAFETY: as in `lines`; the last vector ends less than SLACK behind the last position.
            let sums = unsafe { self.sums::<V>(std::array::from_fn(|i| first + i * V::LANES)) };
            for (i, sum) in sums.into_iter().enumerate() {
                // SAFETY: the tile has room for VECTORS vectors.
                unsafe { sum.store(tile.as_mut_ptr().add(i * V::LANES)) }
            }
            for run in padded.runs(first, step) {
                self.target[run.output..run.output + run.len]
                    .copy_from_slice(&tile[run.position..run.position + run.len]);
            }
        }
    }

    /// Vectors of sums that begin at these positions.
    ///
    /// # Safety
    /// No vector ends more than SLACK behind the last position, and the volume reaches SLACK elements beyond that position's
    /// farthest tap.
    #[inline(always)]
    unsafe fn sums<V: Vector<T>>(&self, positions: [usize; VECTORS]) -> [V; VECTORS] {
        let mut sums = [V::splat(self.filter.bias); VECTORS];
        for (offset, weight) in self.filter.padded.offsets.iter().zip(self.filter.weights) {
            let weight = V::splat(*weight);
            for (sum, position) in sums.iter_mut().zip(positions) {
                // SAFETY: the caller's promise.
                let seen = unsafe { V::load(self.volume.as_ptr().add(offset + position)) };
                *sum = seen.fused(weight, *sum);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Convolution, Padding, convolution};
    use super::*;
    use passnet_graph::DType;

    /// Values that every type holds exactly.
    fn counting(count: usize, period: usize) -> Vec<f32> {
        (0..count).map(|i| (i % period) as f32 / 4.0 - 1.0).collect()
    }

    /// Lines shorter and longer than a register, whole registers and rests, each with its own stride.
    #[test]
    fn sums_are_those_of_the_definition() {
        let (channels, height, taps) = (3, 4, 3);
        for (width, stride) in [(5, 1), (16, 1), (37, 1), (37, 2)] {
            let image = counting(channels * height * width, 11);
            let weight = counting(channels * taps * taps, 7);
            let options = Convolution {
                stride: vec![stride],
                padding: Padding::Explicit(vec![1]),
                dilation: vec![1],
                groups: channels,
            };
            for dtype in [DType::Float32, DType::Float16, DType::BFloat16] {
                let tensor = |values: &[f32], shape: &[usize]| {
                    Tensor::from_slice(values, shape).unwrap().to_dtype(dtype).unwrap()
                };
                let result = convolution(
                    &tensor(&image, &[1, channels, height, width]),
                    &tensor(&weight, &[channels, 1, taps, taps]),
                    None,
                    &options,
                )
                .unwrap();
                let (rows, columns) = (result.shape()[2], result.shape()[3]);
                let mut expected = Vec::new();
                for (channel, row, column) in (0..channels).flat_map(|channel| {
                    (0..rows * columns).map(move |at| (channel, at / columns, at % columns))
                }) {
                    let mut sum = 0.0;
                    for (down, right) in (0..taps * taps).map(|tap| (tap / taps, tap % taps)) {
                        // One row and one column of zeros lie around the image.
                        let (y, x) = (row * stride + down, column * stride + right);
                        if (1..=height).contains(&y) && (1..=width).contains(&x) {
                            let seen = image[(channel * height + y - 1) * width + x - 1];
                            sum += seen * weight[(channel * taps + down) * taps + right];
                        }
                    }
                    expected.push(sum);
                }
                let expected = tensor(&expected, result.shape());
                assert!(result.same_bits(&expected).unwrap(), "{dtype}, {width} columns");
            }
        }
    }

    /// Where a filter hangs over the edge, what it has there is multiplied with nothing.
    #[test]
    fn the_padding_is_not_looked_at() {
        let options = Convolution {
            stride: vec![1],
            padding: Padding::Explicit(vec![1]),
            dilation: vec![1],
            groups: 2,
        };
        let mut weight = vec![1.0_f32; 2 * 9];
        weight[0] = f32::INFINITY;
        for dtype in [DType::Float32, DType::Float16] {
            let tensor = |values: &[f32], shape: &[usize]| {
                Tensor::from_slice(values, shape).unwrap().to_dtype(dtype).unwrap()
            };
            let image = tensor(&[1.0; 2 * 12], &[1, 2, 3, 4]);
            let weight = tensor(&weight, &[2, 1, 3, 3]);
            let result = convolution(&image, &weight, None, &options).unwrap();
            let inf = f32::INFINITY;
            let expected = [
                [4.0, 6.0, 6.0, 4.0, 6.0, inf, inf, inf, 4.0, inf, inf, inf],
                [4.0, 6.0, 6.0, 4.0, 6.0, 9.0, 9.0, 6.0, 4.0, 6.0, 6.0, 4.0],
            ];
            let expected = tensor(expected.as_flattened(), &[1, 2, 3, 4]);
            assert!(result.same_bits(&expected).unwrap(), "{dtype}");
        }
    }
}
