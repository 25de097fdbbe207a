//! `torch.nn.functional.grid_sample`.

use crate::native::error::{Result, ensure};
use crate::native::tensor::layout::{Dims, numel};
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::parallel::for_each_weighted_chunk;

/// How `grid_sample` reads between elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "torch's names")]
pub enum GridMode {
    Bilinear,
    Nearest,
    Bicubic,
}

/// What lies outside the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "torch's names")]
pub enum GridPadding {
    Zeros,
    Border,
    Reflection,
}

/// Pixel coordinate of a grid coordinate in [-1, 1].
fn unnormalize(coordinate: f32, size: usize, align: bool) -> f32 {
    let size = size as f32;
    if align {
        (coordinate + 1.0) / 2.0 * (size - 1.0)
    } else {
        ((coordinate + 1.0) * size - 1.0) / 2.0
    }
}

fn reflect(coordinate: f32, low: f32, high: f32) -> f32 {
    if low >= high {
        return 0.0;
    }
    let (low, span) = (low / 2.0, (high - low) / 2.0);
    let distance = (coordinate - low).abs();
    let extra = distance % span;
    let flips = (distance / span).floor() as i64;
    if flips % 2 == 0 { extra + low } else { span - extra + low }
}

fn bound(coordinate: f32, size: usize, padding: GridPadding, align: bool) -> f32 {
    let last = size as f32 - 1.0;
    match padding {
        GridPadding::Zeros => coordinate,
        GridPadding::Border => coordinate.max(0.0).min(last),
        GridPadding::Reflection => {
            let reflected = if align {
                reflect(coordinate, 0.0, 2.0 * last)
            } else {
                reflect(coordinate, -1.0, 2.0 * size as f32 - 1.0)
            };
            reflected.max(0.0).min(last)
        }
    }
}

/// Elements and weights of one sampling point; computed once and used for every channel.
type Taps = Vec<(usize, f32)>;

struct Sampler {
    size: [usize; 3],
    mode: GridMode,
    padding: GridPadding,
    align: bool,
}

impl Sampler {
    fn push(&self, taps: &mut Taps, at: [i64; 3], weight: f32) {
        let inside = (0..3).all(|d| at[d] >= 0 && at[d] < self.size[d] as i64);
        if inside {
            let index =
                (at[0] as usize * self.size[1] + at[1] as usize) * self.size[2] + at[2] as usize;
            taps.push((index, weight));
        }
    }

    /// `point` is (x, y) or (x, y, z).
    fn taps(&self, point: &[f32]) -> Taps {
        let mut taps = Taps::new();
        let coordinate = |d: usize| -> f32 {
            // The grid names the last dimension first.
            let own = 2 - d;
            match point.get(d) {
                Some(value) => unnormalize(*value, self.size[own], self.align),
                None => 0.0,
            }
        };
        let raw = [coordinate(0), coordinate(1), coordinate(2)];
        let bounded = |d: usize| {
            if d < point.len() {
                bound(raw[d], self.size[2 - d], self.padding, self.align)
            } else {
                0.0
            }
        };
        match self.mode {
            GridMode::Nearest => {
                let position = [bounded(2), bounded(1), bounded(0)];
                // A point that is not a number lies outside.
                if !position.iter().any(|v| v.is_nan()) {
                    self.push(&mut taps, position.map(|v| v.round_ties_even() as i64), 1.0);
                }
            }
            GridMode::Bilinear => {
                let position = [bounded(2), bounded(1), bounded(0)];
                // Weights of a point at infinity are not numbers, and neither is the result.
                if position.iter().any(|v| !v.is_finite()) {
                    taps.push((0, f32::NAN));
                    return taps;
                }
                let base = position.map(f32::floor);
                for corner in 0..8u8 {
                    let mut weight = 1.0;
                    let mut at = [0i64; 3];
                    for d in 0..3 {
                        let upper = corner >> (2 - d) & 1 == 1;
                        let fraction = position[d] - base[d];
                        weight *= if upper { fraction } else { 1.0 - fraction };
                        at[d] = base[d] as i64 + i64::from(upper);
                    }
                    if weight != 0.0 {
                        self.push(&mut taps, at, weight);
                    }
                }
            }
            GridMode::Bicubic => {
                let (x, y) = (raw[0], raw[1]);
                let (x0, y0) = (x.floor(), y.floor());
                let (wx, wy) = (cubic_weights(x - x0), cubic_weights(y - y0));
                for (j, wy) in wy.iter().enumerate() {
                    for (i, wx) in wx.iter().enumerate() {
                        let px = bound(x0 - 1.0 + i as f32, self.size[2], self.padding, self.align);
                        let py = bound(y0 - 1.0 + j as f32, self.size[1], self.padding, self.align);
                        self.push(&mut taps, [0, py as i64, px as i64], wx * wy);
                    }
                }
            }
        }
        taps
    }
}

fn cubic_weights(t: f32) -> [f32; 4] {
    const A: f32 = -0.75;
    let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f32| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

/// Samples `input` (`[batch, channels, (depth,) height, width]`) at the points of `grid`.
pub fn grid_sample(
    input: &Tensor,
    grid: &Tensor,
    mode: GridMode,
    padding: GridPadding,
    align: bool,
) -> Result<Tensor> {
    let spatial = input.ndim().saturating_sub(2);
    ensure!(
        matches!(spatial, 2 | 3) && grid.ndim() == input.ndim(),
        Shape,
        "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {:?} and grid with sizes {:?}",
        input.shape(),
        grid.shape()
    );
    ensure!(
        input.shape()[0] == grid.shape()[0] && grid.shape()[grid.ndim() - 1] == spatial,
        Shape,
        "grid_sampler(): expected grid and input to have same batch size and grid to have size {spatial} in last dimension, but got input with sizes {:?} and grid with sizes {:?}",
        input.shape(),
        grid.shape()
    );
    ensure!(
        mode != GridMode::Bicubic || spatial == 2,
        Unsupported,
        "grid_sampler(): bicubic interpolation only supports 4D input"
    );
    ensure!(
        input.dtype().is_float() && grid.dtype().is_float(),
        DType,
        "grid_sampler is not implemented for '{}'",
        input.dtype()
    );
    let (batch, channels) = (input.shape()[0], input.shape()[1]);
    let mut size = [1; 3];
    size[3 - spatial..].copy_from_slice(&input.shape()[2..]);
    let sampler = Sampler { size, mode, padding, align };
    let points = grid.values::<f32>()?;
    let values = input.values::<f64>()?;
    let plane: usize = size.iter().product();
    let per_image: usize = grid.shape()[1..grid.ndim() - 1].iter().product();
    let mut shape: Dims = input.shape()[..2].into();
    shape.extend_from_slice(&grid.shape()[1..grid.ndim() - 1]);
    let mut out = Buffer::<f64>::new(numel(&shape)?)?;
    let taps: Vec<Taps> = points.chunks(spatial).map(|p| sampler.taps(p)).collect();
    debug_assert_eq!(taps.len(), batch * per_image);
    for_each_weighted_chunk(&mut out, per_image, 8, |index, target| {
        let image = index / channels;
        let source = &values[index * plane..(index + 1) * plane];
        for (o, taps) in target.iter_mut().zip(&taps[image * per_image..]) {
            *o = taps.iter().map(|(at, w)| source[*at] * f64::from(*w)).sum();
        }
    });
    Tensor::from_buffer(out, &shape)?.to_dtype(input.dtype())
}
