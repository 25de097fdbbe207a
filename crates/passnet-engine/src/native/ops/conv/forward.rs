//! Convolution as sums over runs of memory, without laying out what each position sees.

use super::padded::{Padded, Run};
use super::window::Window;
use crate::native::error::Result;
use crate::native::ops::gemm::{COLUMNS, Factors, Matrix, Sizes, Target, multiply, multiply_panel};
use crate::native::simd::math::Real;
use crate::native::simd::parallel::{Shared, for_each_task, for_each_weighted_chunk};
use crate::native::tensor::Buffer;
use smallvec::SmallVec;

#[derive(Clone, Copy)]
pub(super) struct Channels {
    pub(super) batch: usize,
    pub(super) channels: usize,
    pub(super) filters: usize,
    pub(super) groups: usize,
}

/// Filters of one task, at most: their weights stay in the second-level cache.
const FILTERS: usize = 64;
/// Products of one task, at least.
const WORK: usize = 1 << 18;

pub(super) fn run<T: Real>(
    input: &[T],
    weight: &[T],
    out: &mut [T],
    window: &Window,
    size: Channels,
    bias: &(impl Fn(usize) -> T + Sync + Send),
) -> Result<()> {
    let (plane_in, plane) = (window.input_size(), window.output_size());
    let per_group = size.channels / size.groups;
    let k = per_group * window.kernel_size();
    if k == 0 {
        for_each_weighted_chunk(out, plane, 1, |index, target| {
            target.fill(bias(index % size.filters))
        });
        return Ok(());
    }
    if window.sees_all() && size.groups == 1 {
        see_all(input, weight, out, size, k, bias);
        return Ok(());
    }
    let padded = Padded::new(window)?;
    let mut copy;
    let (source, channel_len) = if padded.is_plain() {
        (input, plane_in)
    } else {
        copy = Buffer::<T>::new(size.batch * size.channels * padded.len + COLUMNS)?;
        for_each_weighted_chunk(&mut copy, padded.len, 1, |channel, target| {
            target.fill(T::ZERO);
            if let Some(from) = input.get(channel * plane_in..(channel + 1) * plane_in) {
                padded.fill(from, target);
            }
        });
        (&*copy, padded.len)
    };
    let offsets: Vec<usize> = (0..per_group)
        .flat_map(|channel| padded.offsets.iter().map(move |offset| channel * channel_len + offset))
        .collect();
    let convolution =
        Convolution { weight, window, size, padded: &padded, source, channel_len, offsets };
    convolution.run(Shared::new(out), bias);
    Ok(())
}

struct Convolution<'a, T> {
    weight: &'a [T],
    window: &'a Window,
    size: Channels,
    padded: &'a Padded,
    source: &'a [T],
    channel_len: usize,
    /// Where the channels and taps of a group lie.
    offsets: Vec<usize>,
}

impl<T: Real> Convolution<'_, T> {
    fn run(&self, out: Shared<'_, T>, bias: &(impl Fn(usize) -> T + Sync + Send)) {
        let filters = self.size.filters / self.size.groups;
        let panels = self.padded.positions.div_ceil(COLUMNS);
        let together = filters.min(FILTERS);
        let blocks = filters.div_ceil(together);
        let per_panel = together * self.offsets.len() * COLUMNS.min(self.padded.positions);
        let panels_together = (WORK / per_panel).clamp(1, panels);
        let strips = panels.div_ceil(panels_together);
        let products = self.size.batch * self.size.groups;
        let task = |index: usize| {
            let (product, rest) = (index / (blocks * strips), index % (blocks * strips));
            let (block, strip) = (rest / strips, rest % strips);
            let rows = block * together..filters.min((block + 1) * together);
            for panel in strip * panels_together..panels.min((strip + 1) * panels_together) {
                self.panel(product, rows.clone(), [panel, panels], out, bias);
            }
        };
        let tasks = products * blocks * strips;
        // Small groups are handed out several at a time.
        let several = (WORK / (per_panel * panels_together)).clamp(1, tasks);
        for_each_task(tasks.div_ceil(several), |many, _| {
            (many * several..tasks.min((many + 1) * several)).for_each(task);
        });
    }

    /// The filters `rows` of one group of one image, at the positions of one panel.
    fn panel(
        &self,
        product: usize,
        rows: std::ops::Range<usize>,
        [panel, panels]: [usize; 2],
        out: Shared<'_, T>,
        bias: &(impl Fn(usize) -> T + Sync + Send),
    ) {
        let size = self.size;
        let (image, group) = (product / size.groups, product % size.groups);
        let filters = size.filters / size.groups;
        let k = self.offsets.len();
        let plane = self.window.output_size();
        // Panels of as equal a width as whole vectors allow.
        let vectors = self.padded.positions.div_ceil(T::LANES);
        let first = panel * vectors / panels * T::LANES;
        let positions =
            ((panel + 1) * vectors / panels * T::LANES).min(self.padded.positions) - first;
        let channel = image * size.channels + group * (size.channels / size.groups);
        let source = &self.source[channel * self.channel_len + first..];
        let row = group * filters + rows.start;
        let weights = &self.weight[row * k..(row + rows.len()) * k];
        let runs: SmallVec<[Run; 8]> = self.padded.runs(first, positions).collect();
        let sink = |filter: usize, from: usize, sums: &[T]| {
            let filter = row + filter;
            let addend = bias(filter);
            for run in &runs {
                let start = run.position.max(from);
                let end = (run.position + run.len).min(from + sums.len());
                if start >= end {
                    continue;
                }
                let at =
                    (image * size.filters + filter) * plane + run.output + start - run.position;
                // SAFETY: every output belongs to one filter and one position, and so to one task.
                let target = unsafe { out.slice(at, end - start) };
                for (o, sum) in target.iter_mut().zip(&sums[start - from..]) {
                    *o = *sum + addend;
                }
            }
        };
        let factors = Factors { data: weights, stride: k, rows: rows.len() };
        multiply_panel(factors, source, &self.offsets, positions, sink);
    }
}

/// One position that sees a whole image is a product of matrices.
fn see_all<T: Real>(
    input: &[T],
    weight: &[T],
    out: &mut [T],
    size: Channels,
    k: usize,
    bias: &(impl Fn(usize) -> T + Sync + Send),
) {
    for (index, target) in out.iter_mut().enumerate() {
        *target = bias(index % size.filters);
    }
    multiply(
        Sizes { m: size.batch, n: size.filters, k },
        Target::new(out, size.filters, 1),
        true,
        Matrix::rows(input, k),
        Matrix::rows(weight, k).transposed(),
        true,
    );
}
