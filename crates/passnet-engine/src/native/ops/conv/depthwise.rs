//! Convolutions in which each filter sees one channel: no product worth a matrix, so lines are summed directly.

use super::window::Window;
use crate::native::simd::math::Real;
use crate::native::simd::multiversion;
use crate::native::simd::parallel::for_each_weighted_chunk;

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
        let [_, height, width] = window.input;
        let [_, rows, columns] = window.output;
        let [kd, kh, kw] = window.kernel;
        let stride = window.stride[2];
        for (line_index, line) in target.chunks_mut(columns).enumerate() {
            let (od, oh) = (line_index / rows, line_index % rows);
            for td in 0..kd {
                let Some(d) = window.source(0, od, td) else { continue };
                for th in 0..kh {
                    let Some(h) = window.source(1, oh, th) else { continue };
                    let from = &source[(d * height + h) * width..][..width];
                    for tw in 0..kw {
                        let factor = weight[(td * kh + th) * kw + tw];
                        let valid = window.valid(2, tw);
                        if valid.is_empty() {
                            continue;
                        }
                        let start = valid.start * stride + tw * window.dilation[2] - window.before[2];
                        let to = &mut line[valid];
                        if stride == 1 {
                            for (o, v) in to.iter_mut().zip(&from[start..]) {
                                *o = v.fused(factor, *o);
                            }
                        } else if stride == 2 {
                            let last = to.len() - 1;
                            for (o, v) in to[..last].iter_mut().zip(from[start..].chunks_exact(2)) {
                                *o = v[0].fused(factor, *o);
                            }
                            to[last] = from[start + 2 * last].fused(factor, to[last]);
                        } else {
                            for (o, v) in to.iter_mut().zip(from[start..].iter().step_by(stride)) {
                                *o = v.fused(factor, *o);
                            }
                        }
                    }
                }
            }
        }
    }
}
