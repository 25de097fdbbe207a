//! Convolution as matrix products: patches of the input are laid out as columns, a strip of output positions at a time.

use super::window::Window;
use crate::native::ops::gemm::{Matrix, Sizes, Target, multiply};
use crate::native::simd::math::Real;
use rayon::prelude::*;

#[derive(Clone, Copy)]
pub(super) struct Channels {
    pub(super) batch: usize,
    pub(super) channels: usize,
    pub(super) filters: usize,
    pub(super) groups: usize,
}

/// Elements of patches laid out at a time: about half a second-level cache.
const STRIP: usize = 128 * 1024;

/// A buffer that strips of one output are written into at once.
#[derive(Clone, Copy)]
struct SharedOut<T>(*mut T, usize);
// SAFETY: strips write disjoint columns of the output, and the loop ends before the buffer is used again.
unsafe impl<T: Send> Send for SharedOut<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedOut<T> {}

impl<T> SharedOut<T> {
    fn target(&self, offset: usize, row_stride: usize) -> Target<T> {
        debug_assert!(offset <= self.1);
        // SAFETY: `offset` is inside the buffer; the caller's rows and columns are its own (see the loop below).
        unsafe { Target::shared(self.0.add(offset), self.1 - offset, row_stride, 1) }
    }
}

/// Writes the convolution to `out`, or adds it to the bias that `out` already holds.
pub(super) fn run<T: Real>(
    input: &[T],
    weight: &[T],
    out: &mut [T],
    window: &Window,
    size: Channels,
    accumulate: bool,
) {
    let (plane_in, plane) = (window.input_size(), window.output_size());
    let (per_group, filters) = (size.channels / size.groups, size.filters / size.groups);
    let taps = window.kernel_size();
    let k = per_group * taps;
    if k == 0 {
        return;
    }
    let strip = if window.is_pointwise() {
        plane
    } else {
        (STRIP / k / 16 * 16).clamp(64, 16 * 1024).min(plane)
    };
    let strips = plane.div_ceil(strip);
    let products = size.batch * size.groups;
    let shared = SharedOut(out.as_mut_ptr(), out.len());
    let task = |index: usize, parallel: bool| {
        let (product, strip_index) = (index / strips, index % strips);
        let (image, group) = (product / size.groups, product % size.groups);
        let source = &input[(image * size.channels + group * per_group) * plane_in..]
            [..per_group * plane_in];
        let weights = &weight[group * filters * k..][..filters * k];
        let first = strip_index * strip;
        let count = strip.min(plane - first);
        let target_at = (image * size.filters + group * filters) * plane + first;
        let sizes = Sizes { m: filters, n: count, k };
        // Each task has its own image, group and strip of columns: targets never overlap.
        let target = shared.target(target_at, plane);
        if window.is_pointwise() {
            let patches = Matrix::rows(source, plane);
            multiply(sizes, target, accumulate, Matrix::rows(weights, k), patches, parallel);
        } else {
            let mut patches = vec![T::ZERO; k * count];
            lay_out(source, &mut patches, window, first, count);
            multiply(
                sizes,
                target,
                accumulate,
                Matrix::rows(weights, k),
                Matrix::rows(&patches, count),
                parallel,
            );
        }
    };
    let tasks = products * strips;
    let work = plane * k * filters;
    if tasks == 1 || (window.is_pointwise() && products < 4) {
        (0..tasks).for_each(|i| task(i, true));
    } else if work < 1 << 14 || rayon::current_num_threads() == 1 {
        (0..tasks).for_each(|i| task(i, false));
    } else {
        (0..tasks).into_par_iter().for_each(|i| task(i, false));
    }
}

/// Row `channel × taps + tap` of `patches` holds what that tap sees at each of `count` output positions from `first` on.
fn lay_out<T: Real>(source: &[T], patches: &mut [T], window: &Window, first: usize, count: usize) {
    let plane = window.input_size();
    let [_, height, width] = window.input;
    let [_, rows, columns] = window.output;
    let [kd, kh, kw] = window.kernel;
    let taps = window.kernel_size();
    for (row_index, row) in patches.chunks_mut(count).enumerate() {
        let (channel, tap) = (row_index / taps, row_index % taps);
        let (td, th, tw) = (tap / (kh * kw), tap / kw % kh, tap % kw);
        debug_assert!(td < kd);
        let source = &source[channel * plane..(channel + 1) * plane];
        let valid = window.valid(2, tw);
        let mut done = 0;
        while done < count {
            let position = first + done;
            let (od, oh, ow) =
                (position / (rows * columns), position / columns % rows, position % columns);
            let run = (columns - ow).min(count - done);
            let target = &mut row[done..done + run];
            match (window.source(0, od, td), window.source(1, oh, th)) {
                (Some(d), Some(h)) => {
                    let line = &source[(d * height + h) * width..][..width];
                    copy_line(line, target, window, ow, tw, &valid);
                }
                _ => target.fill(T::ZERO),
            }
            done += run;
        }
    }
}

/// One output line's worth of what a tap sees: zeros where it hangs over the edge.
fn copy_line<T: Real>(
    line: &[T],
    target: &mut [T],
    window: &Window,
    from: usize,
    tap: usize,
    valid: &std::ops::Range<usize>,
) {
    let until = from + target.len();
    let (start, end) = (valid.start.clamp(from, until), valid.end.clamp(from, until));
    target[..start - from].fill(T::ZERO);
    target[end.max(start) - from..].fill(T::ZERO);
    if start >= end {
        return;
    }
    let stride = window.stride[2];
    let source = start * stride + tap * window.dilation[2] - window.before[2];
    let middle = &mut target[start - from..end - from];
    if stride == 1 {
        middle.copy_from_slice(&line[source..source + middle.len()]);
    } else {
        for (o, v) in middle.iter_mut().zip(line[source..].iter().step_by(stride)) {
            *o = *v;
        }
    }
}
