//! Convolutions in which each filter sees one channel: no product worth a matrix, so runs of memory are summed directly.

use super::padded::Padded;
use super::window::Window;
use crate::native::error::Result;
use crate::native::simd::math::Real;
use crate::native::simd::parallel::{Shared, for_each_task, threads};
use crate::native::simd::vector::{MOST_LANES, Vector, VectorKernel};
use crate::native::tensor::Buffer;

/// Vectors summed at a time, enough to hide how long one addition takes.
const VECTORS: usize = 4;
/// Elements that are read beyond the last position, at most.
const SLACK: usize = VECTORS * MOST_LANES;
/// Products that one task computes, at least.
const WORK: usize = 1 << 15;

pub(super) fn run<T: Real>(
    input: &[T],
    weight: &[T],
    out: &mut [T],
    window: &Window,
    channels: usize,
    filters: usize,
    bias: &(impl Fn(usize) -> T + Sync + Send),
) -> Result<()> {
    let (plane_in, plane, taps) = (window.input_size(), window.output_size(), window.kernel_size());
    let padded = Padded::new(window)?;
    let multiplier = filters / channels;
    let planes = out.len() / plane;
    let together = (WORK / (plane * taps)).clamp(1, planes);
    let tasks = planes.div_ceil(together);
    let shared = Shared::new(out);
    // Every thread has a volume of its own; what lies between a channel's elements stays zero.
    let volume_len = padded.len + SLACK;
    let reach = padded.offsets.iter().max().map_or(0, |offset| offset + padded.positions);
    assert!(reach <= padded.len, "a tap beyond the padded volume");
    let mut volumes = Buffer::<T>::zeroed(threads().min(tasks) * volume_len)?;
    let volumes = Shared::new(&mut volumes);
    let work = |task: usize, thread: usize| {
        // SAFETY: tasks of one thread follow one another.
        let volume = unsafe { volumes.slice(thread * volume_len, volume_len) };
        for index in task * together..planes.min((task + 1) * together) {
            let (image, filter) = (index / filters, index % filters);
            let channel = image * channels + filter / multiplier;
            padded.fill(&input[channel * plane_in..(channel + 1) * plane_in], volume);
            T::run_vectors(Correlation {
                volume,
                padded: &padded,
                reach,
                weights: &weight[filter * taps..(filter + 1) * taps],
                bias: bias(filter),
                // SAFETY: each plane is one task's.
                target: unsafe { shared.slice(index * plane, plane) },
            });
        }
    };
    for_each_task(tasks, work);
    Ok(())
}

/// One filter over one channel.
struct Correlation<'a, T> {
    volume: &'a [T],
    padded: &'a Padded,
    /// Where the last position's farthest tap lies.
    reach: usize,
    weights: &'a [T],
    bias: T,
    target: &'a mut [T],
}

impl<T: Real> VectorKernel<T> for Correlation<'_, T> {
    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        assert!(self.reach + SLACK <= self.volume.len());
        let step = VECTORS * V::LANES;
        let mut tile = [T::ZERO; SLACK];
        for first in (0..self.padded.positions).step_by(step) {
            let mut sums = [V::splat(self.bias); VECTORS];
            for (offset, weight) in self.padded.offsets.iter().zip(self.weights) {
                let weight = V::splat(*weight);
                for (i, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: a position lies below `positions`, and at most SLACK elements are read from there on.
                    let seen =
                        unsafe { V::load(self.volume.as_ptr().add(offset + first + i * V::LANES)) };
                    *sum = seen.fused(weight, *sum);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                // SAFETY: the tile has room for VECTORS vectors.
                unsafe { sum.store(tile.as_mut_ptr().add(i * V::LANES)) }
            }
            for run in self.padded.runs(first, step) {
                self.target[run.output..run.output + run.len]
                    .copy_from_slice(&tile[run.position..run.position + run.len]);
            }
        }
    }
}
