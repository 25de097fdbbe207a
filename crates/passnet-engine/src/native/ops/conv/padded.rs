//! A channel's volume laid out so that a tap of the kernel sees, at all output positions, one run of memory.
//!
//! Padding is written out, so no tap hangs over an edge. With a stride, elements that the same tap sees lie side by side
//! (one *phase* for each remainder of the stride). Output positions are counted along the rows of this layout, padding
//! included: the element that tap `t` sees at position `p` lies at `offsets[t] + p`. A few positions belong to no
//! output; their sums are computed and thrown away, which costs less than copying what every tap sees.

use super::window::Window;
use crate::native::error::Result;
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::numel;
use passnet_cpu::multiversion;

pub(super) struct Padded {
    /// Where the element lies that a tap sees at position 0.
    pub(super) offsets: Vec<usize>,
    /// Positions from the first output's to the last output's.
    pub(super) positions: usize,
    /// Elements of one channel.
    pub(super) len: usize,
    window: Window,
    /// Where the lines of a channel go.
    lines: Vec<Line>,
    /// How the elements of a line are spread over the phases of its columns.
    columns: Vec<Columns>,
    /// Of each line of outputs: its position and its first output.
    outputs: Vec<(usize, usize)>,
    /// Outputs in such a line.
    width: usize,
}

struct Line {
    source: usize,
    target: usize,
}

/// The elements of a line that belong to one phase.
struct Columns {
    source: usize,
    target: usize,
    count: usize,
}

/// Neighbouring outputs that are neighbours in the layout too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// Counted from the first position asked for.
    pub(super) position: usize,
    pub(super) output: usize,
    pub(super) len: usize,
}

impl Padded {
    pub(super) fn new(window: &Window) -> Result<Self> {
        let (mut size, mut phases) = ([0; 3], [1; 3]);
        for d in 0..3 {
            let remainders =
                (0..window.kernel[d]).map(|tap| tap * window.dilation[d] % window.stride[d]);
            phases[d] = remainders.max().map_or(1, |most| most + 1);
            let reach = (window.output[d] - 1) * window.stride[d]
                + (window.kernel[d] - 1) * window.dilation[d]
                + 1;
            size[d] = reach.div_ceil(window.stride[d]);
        }
        // The zeros behind a row serve as those before the next one.
        let (stride, before) = (window.stride[2], window.before[2]);
        let filled = (before + window.input[2].max(1) - 1) / stride + 1;
        let shared = size[2].saturating_sub(filled).min(before / stride);
        size[2] -= shared;
        let phase = numel(&size)?;
        let len = numel(&[phase, phases[0], phases[1], phases[2]])? + shared;
        let mut offsets = Vec::with_capacity(window.kernel_size());
        for depth in 0..window.kernel[0] {
            for row in 0..window.kernel[1] {
                for column in 0..window.kernel[2] {
                    let (mut remainder, mut offset) = (0, 0);
                    for (d, tap) in [depth, row, column].into_iter().enumerate() {
                        let shift = tap * window.dilation[d];
                        remainder = remainder * phases[d] + shift % window.stride[d];
                        offset = offset * size[d] + shift / window.stride[d];
                    }
                    offsets.push(remainder * phase + offset);
                }
            }
        }
        let [depth, rows, width] = window.output;
        let positions = ((depth - 1) * size[1] + rows - 1) * size[2] + width;
        let outputs = (0..depth * rows)
            .map(|line| ((line / rows * size[1] + line % rows) * size[2], line * width))
            .collect();
        let mut padded = Padded {
            offsets,
            positions,
            len,
            window: window.clone(),
            lines: lines(window, size, phases),
            columns: columns(window, size, phases),
            outputs,
            width,
        };
        if padded.outputs.windows(2).all(|pair| pair[0].0 + width == pair[1].0) {
            // Nothing lies between lines: all of them are one.
            (padded.outputs, padded.width) = (vec![(0, 0)], positions);
        }
        Ok(padded)
    }

    /// Copies a channel; what lies between its elements must be zero already.
    pub(super) fn fill<T: Real>(&self, source: &[T], target: &mut [T]) {
        copy_lines(source, target, &self.lines, &self.columns, self.window.stride[2]);
    }

    /// Vectors of so many lanes that hold all outputs, where lines are long enough: the position and the output where each
    /// begins. The last of a line begins as much earlier as it needs to end with it.
    pub(super) fn vectors(
        &self,
        lanes: usize,
    ) -> Option<impl Iterator<Item = (usize, usize)> + use<'_>> {
        let (width, last) = (self.width, self.width.checked_sub(lanes)?);
        Some(self.outputs.iter().flat_map(move |&(position, output)| {
            let starts = (0..width).step_by(lanes).map(move |start| start.min(last));
            starts.map(move |start| (position + start, output + start))
        }))
    }

    /// The outputs among `count` positions from `first` on.
    pub(super) fn runs(&self, first: usize, count: usize) -> impl Iterator<Item = Run> + '_ {
        let end = (first + count).min(self.positions);
        let width = self.width;
        let before = self.outputs.partition_point(|(position, _)| position + width <= first);
        self.outputs[before..].iter().map_while(move |&(position, output)| {
            let (start, stop) = (position.max(first), (position + width).min(end));
            (start < stop).then(|| Run {
                position: start - first,
                output: output + start - position,
                len: stop - start,
            })
        })
    }
}

fn lines(window: &Window, size: [usize; 3], phases: [usize; 3]) -> Vec<Line> {
    let Window { input, stride, before, .. } = *window;
    let phase = size.iter().product::<usize>() * phases[2];
    let line = |index: usize| {
        let at = [index / input[1] + before[0], index % input[1] + before[1]];
        let remainder = [at[0] % stride[0], at[1] % stride[1]];
        let [slice, row] = [at[0] / stride[0], at[1] / stride[1]];
        // Some lines no tap ever sees.
        let seen = slice < size[0]
            && row < size[1]
            && remainder[0] < phases[0]
            && remainder[1] < phases[1];
        seen.then(|| Line {
            source: index * input[2],
            target: (remainder[0] * phases[1] + remainder[1]) * phase
                + (slice * size[1] + row) * size[2],
        })
    };
    (0..input[0] * input[1]).filter_map(line).collect()
}

fn columns(window: &Window, size: [usize; 3], phases: [usize; 3]) -> Vec<Columns> {
    let (stride, before, input) = (window.stride[2], window.before[2], window.input[2]);
    let phase = size.iter().product::<usize>();
    let columns = |remainder: usize| {
        let source = (remainder + stride - before % stride) % stride;
        let column = (source + before) / stride;
        let count =
            input.saturating_sub(source).div_ceil(stride).min(size[2].saturating_sub(column));
        (count > 0).then_some(Columns { source, target: remainder * phase + column, count })
    };
    (0..phases[2]).filter_map(columns).collect()
}

multiversion! {
    fn copy_lines[T: Real](source: &[T], target: &mut [T], lines: &[Line], columns: &[Columns], stride: usize) {
        for line in lines {
            let source = &source[line.source..];
            let target = &mut target[line.target..];
            for columns in columns {
                let source = &source[columns.source..];
                let target = &mut target[columns.target..][..columns.count];
                match stride {
                    1 => target.copy_from_slice(&source[..columns.count]),
                    2 => pick::<T, 2>(source, target),
                    4 => pick::<T, 4>(source, target),
                    _ => target.iter_mut().zip(source.iter().step_by(stride)).for_each(|(o, v)| *o = *v),
                }
            }
        }
    }
}

/// Every `S`-th element.
#[inline(always)]
fn pick<T: Real, const S: usize>(source: &[T], target: &mut [T]) {
    let Some(last) = target.len().checked_sub(1) else { return };
    let source = &source[..last * S + 1];
    for (i, o) in target.iter_mut().enumerate() {
        *o = source[i * S];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tap sees at every output what the window says it sees.
    fn check(window: &Window) {
        let source: Vec<f32> = (1..=window.input_size()).map(|i| i as f32).collect();
        let padded = Padded::new(window).unwrap();
        let mut target = vec![0.0; padded.len];
        padded.fill(&source, &mut target);
        let [_, rows, columns] = window.output;
        let [_, kh, kw] = window.kernel;
        let mut outputs = 0;
        for run in padded.runs(0, padded.positions) {
            for i in 0..run.len {
                let (position, output) = (run.position + i, run.output + i);
                assert_eq!(output, outputs);
                outputs += 1;
                let at = [output / (rows * columns), output / columns % rows, output % columns];
                for (tap, offset) in padded.offsets.iter().enumerate() {
                    let taps = [tap / (kh * kw), tap / kw % kh, tap % kw];
                    let seen: Option<Vec<usize>> =
                        (0..3).map(|d| window.source(d, at[d], taps[d])).collect();
                    let expected = seen.map_or(0.0, |s| {
                        source[(s[0] * window.input[1] + s[1]) * window.input[2] + s[2]]
                    });
                    assert_eq!(target[offset + position], expected, "{window:?} {at:?} {taps:?}");
                }
            }
        }
        assert_eq!(outputs, window.output_size());
        // Runs of a part are those of the whole.
        let middle = padded.positions / 2;
        let halves = padded.runs(0, middle).chain(padded.runs(middle, padded.positions - middle));
        assert_eq!(halves.map(|run| run.len).sum::<usize>(), outputs);
    }

    /// Miri, which interprets, has time for the first two.
    fn some<const N: usize>(all: [[usize; 3]; N]) -> impl Iterator<Item = [usize; 3]> {
        all.into_iter().take(if cfg!(miri) { 2 } else { N })
    }

    #[test]
    fn taps_see_what_the_window_shows_them() {
        for input in some([[1, 1, 9], [2, 4, 3], [3, 5, 6], [1, 8, 3], [1, 7, 7]]) {
            for kernel in some([[1, 3, 3], [2, 1, 2], [2, 2, 5], [3, 1, 4], [1, 1, 1]]) {
                for stride in some([[1, 2, 2], [2, 3, 1], [1, 1, 1], [1, 1, 4]]) {
                    for before in some([[1, 1, 1], [0, 0, 0], [1, 2, 3], [0, 0, 5]]) {
                        for dilation in [[1, 1, 1], [1, 2, 3]] {
                            for more in [0, 1] {
                                let after = before.map(|b| b + more);
                                let window =
                                    Window::new(input, kernel, stride, before, after, dilation);
                                if let Ok(window) = window {
                                    check(&window);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
