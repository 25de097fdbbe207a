//! How a kernel's window moves over a volume.

use crate::native::error::{Result, ensure};

/// No memory holds a padded volume larger than this, and sizes below it do not overflow.
const MOST_PADDED: usize = 1 << 48;

/// Sizes are `[depth, height, width]`; `before` is the padding ahead of the volume.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) input: [usize; 3],
    pub(crate) output: [usize; 3],
    pub(crate) kernel: [usize; 3],
    pub(crate) stride: [usize; 3],
    pub(crate) before: [usize; 3],
    pub(crate) dilation: [usize; 3],
}

impl Window {
    pub(crate) fn new(
        input: [usize; 3],
        kernel: [usize; 3],
        stride: [usize; 3],
        before: [usize; 3],
        after: [usize; 3],
        dilation: [usize; 3],
    ) -> Result<Self> {
        let mut output = [0; 3];
        for d in 0..3 {
            ensure!(stride[d] > 0, Value, "non-positive stride is not supported");
            ensure!(dilation[d] > 0, Value, "dilation should be greater than zero");
            ensure!(kernel[d] > 0, Value, "kernel size should be greater than zero");
            let padded = input[d].saturating_add(before[d]).saturating_add(after[d]);
            let reach = dilation[d].saturating_mul(kernel[d] - 1).saturating_add(1);
            ensure!(
                padded >= reach,
                Shape,
                "Calculated padded input size per channel: ({padded}). Kernel size: ({reach}). Kernel size can't be greater than actual input size"
            );
            ensure!(padded <= MOST_PADDED, Value, "padding of {padded} elements is too large");
            output[d] = (padded - reach) / stride[d] + 1;
        }
        Ok(Window { input, output, kernel, stride, before, dilation })
    }

    /// With the number of positions given instead of derived.
    pub(crate) fn with_output(
        input: [usize; 3],
        output: [usize; 3],
        kernel: [usize; 3],
        stride: [usize; 3],
        before: [usize; 3],
        dilation: [usize; 3],
    ) -> Self {
        Window { input, output, kernel, stride, before, dilation }
    }

    /// The part of the window that makes outputs `from..until` of dimension `d`, and where its input starts there.
    pub(crate) fn part(&self, d: usize, from: usize, until: usize) -> (Self, usize) {
        let (start, reach) = (from * self.stride[d], (self.kernel[d] - 1) * self.dilation[d] + 1);
        let end = (until - 1) * self.stride[d] + reach;
        let seen = |at: usize| at.saturating_sub(self.before[d]).min(self.input[d]);
        let mut part = self.clone();
        part.output[d] = until - from;
        part.before[d] = self.before[d].saturating_sub(start);
        part.input[d] = seen(end) - seen(start);
        (part, seen(start))
    }

    pub(crate) fn input_size(&self) -> usize {
        self.input.iter().product()
    }

    pub(crate) fn output_size(&self) -> usize {
        self.output.iter().product()
    }

    pub(crate) fn kernel_size(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Whether every position sees exactly one element, its own.
    pub(crate) fn is_pointwise(&self) -> bool {
        self.kernel == [1; 3]
            && self.stride == [1; 3]
            && self.before == [0; 3]
            && self.input == self.output
    }

    /// Whether the one position sees every element of the input, in order.
    pub(crate) fn sees_all(&self) -> bool {
        self.output == [1; 3]
            && self.kernel == self.input
            && self.before == [0; 3]
            && (0..3).all(|d| self.kernel[d] == 1 || self.dilation[d] == 1)
    }

    /// The input coordinate under kernel tap `tap` at output position `at`, where it is not padding.
    #[inline(always)]
    pub(crate) fn source(&self, d: usize, at: usize, tap: usize) -> Option<usize> {
        let position = at * self.stride[d] + tap * self.dilation[d];
        let source = position.wrapping_sub(self.before[d]);
        (source < self.input[d]).then_some(source)
    }

    /// The output positions of dimension `d` whose source under `tap` is not padding.
    #[inline]
    pub(crate) fn valid(&self, d: usize, tap: usize) -> std::ops::Range<usize> {
        let shift = tap * self.dilation[d];
        let first = self.before[d].saturating_sub(shift).div_ceil(self.stride[d]);
        let limit = (self.input[d] + self.before[d]).saturating_sub(shift).div_ceil(self.stride[d]);
        let limit = limit.min(self.output[d]);
        first.min(limit)..limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_see_what_the_whole_sees() {
        for (input, kernel, stride, padding, dilation) in
            [(9, 3, 1, 1, 1), (8, 3, 2, 1, 1), (5, 2, 3, 4, 2), (16, 16, 16, 0, 1), (4, 1, 1, 3, 1)]
        {
            let along = |size: usize| [1, size, 1];
            let (before, ones) = ([0, padding, 0], [1; 3]);
            let (stride, dilation) = (along(stride), along(dilation));
            let window =
                Window::new(along(input), along(kernel), stride, before, before, dilation).unwrap();
            assert_eq!(window.kernel.map(|size| size.min(1)), ones);
            for from in 0..window.output[1] {
                for until in from + 1..=window.output[1] {
                    let (part, start) = window.part(1, from, until);
                    for (at, tap) in (from..until).flat_map(|at| (0..kernel).map(move |t| (at, t)))
                    {
                        let seen = part.source(1, at - from, tap).map(|source| source + start);
                        assert_eq!(seen, window.source(1, at, tap), "{window:?} {from}..{until}");
                    }
                }
            }
        }
    }
}
