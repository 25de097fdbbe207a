//! Convolution as sums over runs of memory, without laying out what each position sees.

use super::padded::{Padded, Run};
use super::window::Window;
use crate::native::error::Result;
use crate::native::ops::gemm::{COLUMNS, Factors, Matrix, Sizes, Target, multiply, multiply_panel};
use crate::native::tensor::Buffer;
use crate::native::tensor::element::Real;
use passnet_cpu::parallel::{Shared, for_each_task, for_each_weighted_chunk};
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

/// Elements of the padded copy of a band of outputs, where there are enough outputs.
const BAND: usize = 1 << 16;
/// Bands of one convolution, at most: threads meet after each.
const MOST_BANDS: usize = 4;
/// Lines of outputs in a band, at least: neighbouring bands copy the lines that both see.
const LEAST_OUTPUTS: usize = 8;

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
    let plain = window.is_pointwise();
    let padded = Padded::new(window)?;
    let copied = if plain { 0 } else { size.batch * size.channels * padded.len };
    // Parts of the first dimension that is one lie side by side in memory.
    let along = (0..3).find(|&d| window.input[d].max(window.output[d]) > 1).unwrap_or(2);
    let outputs = window.output[along];
    let bands = copied.div_ceil(BAND).min(MOST_BANDS).min(outputs.div_ceil(LEAST_OUTPUTS)).max(1);
    let band = outputs.div_ceil(bands);
    let (line_in, line) = (plane_in / window.input[along].max(1), plane / outputs);
    let mut copy = Buffer::<T>::new(0)?;
    for from in (0..outputs).step_by(band) {
        let until = outputs.min(from + band);
        let (part, start) =
            if bands == 1 { (window.clone(), 0) } else { window.part(along, from, until) };
        let own;
        let padded = if bands == 1 {
            &padded
        } else {
            own = Padded::new(&part)?;
            &own
        };
        let (source, channel_len) = if plain {
            (input, plane_in)
        } else {
            let needed = size.batch * size.channels * padded.len + COLUMNS;
            if copy.len() < needed {
                copy = Buffer::<T>::new(needed)?;
            }
            for_each_weighted_chunk(&mut copy[..needed], padded.len, 1, |channel, target| {
                target.fill(T::ZERO);
                let first = channel * plane_in + start * line_in;
                if let Some(from) = input.get(first..first + part.input_size()) {
                    padded.fill(from, target);
                }
            });
            (&copy[..needed], padded.len)
        };
        let offsets: Vec<usize> = (0..per_group)
            .flat_map(|channel| {
                padded.offsets.iter().map(move |offset| channel * channel_len + offset)
            })
            .collect();
        let first_output = from * line;
        let convolution =
            Convolution { weight, plane, first_output, size, padded, source, channel_len, offsets };
        convolution.run(Shared::new(out), bias);
    }
    Ok(())
}

struct Convolution<'a, T> {
    weight: &'a [T],
    /// Outputs of a filter, and the first of those that are computed.
    plane: usize,
    first_output: usize,
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
                let plane = (image * size.filters + filter) * self.plane + self.first_output;
                let at = plane + run.output + start - run.position;
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
        Target::new(out, size.filters),
        true,
        Matrix::rows(input, k),
        Matrix::rows(weight, k).transposed(),
        true,
    );
}
