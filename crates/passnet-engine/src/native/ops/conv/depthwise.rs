//! Convolutions in which each filter sees one channel: no product worth a matrix, so lines are summed directly.

use super::window::Window;
use crate::native::simd::math::Real;
use crate::native::simd::multiversion;
use crate::native::simd::parallel::for_each_weighted_chunk;
use smallvec::SmallVec;

pub(super) fn run<T: Real>(
    input: &[T],
    weight: &[T],
    out: &mut [T],
    window: &Window,
    channels: usize,
    filters: usize,
    bias: &(impl Fn(usize) -> T + Sync + Send),
) {
    let (plane_in, plane, taps) = (window.input_size(), window.output_size(), window.kernel_size());
    let multiplier = filters / channels;
    for_each_weighted_chunk(out, plane, taps, |index, target| {
        let (image, filter) = (index / filters, index % filters);
        let channel = image * channels + filter / multiplier;
        target.fill(bias(filter));
        convolve(
            &input[channel * plane_in..(channel + 1) * plane_in],
            &weight[filter * taps..(filter + 1) * taps],
            target,
            window,
        );
    });
}

multiversion! {
    fn convolve[T: Real](source: &[T], weight: &[T], target: &mut [T], window: &Window) {
        let [_, rows, columns] = window.output;
        // Columns in which no tap hangs over an edge are summed in registers, several at a time; the others one by one.
        let inside = (0..window.kernel[2]).fold(0..columns, |inside, tap| {
            let valid = window.valid(2, tap);
            inside.start.max(valid.start)..inside.end.min(valid.end)
        });
        let mut seen: SmallVec<[(&[T], &[T]); 9]> = SmallVec::new();
        for (index, line) in target.chunks_mut(columns).enumerate() {
            find_seen(source, weight, window, [index / rows, index % rows], &mut seen);
            let mut column = 0;
            while column < columns {
                let left = if column >= inside.start && window.stride[2] <= 2 {
                    inside.end.saturating_sub(column)
                } else {
                    0
                };
                column += match left {
                    16.. => sum::<T, 16>(&seen, window, column, line),
                    8.. => sum::<T, 8>(&seen, window, column, line),
                    4.. => sum::<T, 4>(&seen, window, column, line),
                    _ => sum_one(&seen, window, column, line),
                };
            }
        }
    }
}

/// Every line of the input that the kernel sees from one line of the output, with the kernel's taps for it.
#[inline(always)]
fn find_seen<'a, T>(
    source: &'a [T],
    weight: &'a [T],
    window: &Window,
    [depth, row]: [usize; 2],
    seen: &mut SmallVec<[(&'a [T], &'a [T]); 9]>,
) {
    let [_, height, width] = window.input;
    let [kd, kh, kw] = window.kernel;
    seen.clear();
    for td in 0..kd {
        let Some(d) = window.source(0, depth, td) else { continue };
        for th in 0..kh {
            let Some(h) = window.source(1, row, th) else { continue };
            let from = &source[(d * height + h) * width..][..width];
            seen.push((from, &weight[(td * kh + th) * kw..][..kw]));
        }
    }
}

/// Adds to `W` columns in which every tap is inside; gives their number.
#[inline(always)]
fn sum<T: Real, const W: usize>(
    seen: &[(&[T], &[T])],
    window: &Window,
    column: usize,
    line: &mut [T],
) -> usize {
    let (stride, dilation) = (window.stride[2], window.dilation[2]);
    let start = column * stride - window.before[2];
    let line = &mut line[column..column + W];
    let mut sums = [T::ZERO; W];
    sums.copy_from_slice(line);
    for (from, taps) in seen {
        for (tap, factor) in taps.iter().enumerate() {
            let run = &from[start + tap * dilation..];
            if stride == 1 {
                let run = &run[..W];
                for i in 0..W {
                    sums[i] = run[i].fused(*factor, sums[i]);
                }
            } else {
                let run = &run[..2 * W - 1];
                for i in 0..W {
                    sums[i] = run[2 * i].fused(*factor, sums[i]);
                }
            }
        }
    }
    line.copy_from_slice(&sums);
    W
}

#[inline(always)]
fn sum_one<T: Real>(
    seen: &[(&[T], &[T])],
    window: &Window,
    column: usize,
    line: &mut [T],
) -> usize {
    let mut sum = line[column];
    for (from, taps) in seen {
        for (tap, factor) in taps.iter().enumerate() {
            if let Some(at) = window.source(2, column, tap) {
                sum = from[at].fused(*factor, sum);
            }
        }
    }
    line[column] = sum;
    1
}
