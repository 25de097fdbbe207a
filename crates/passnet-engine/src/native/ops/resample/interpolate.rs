//! `torch.nn.functional.interpolate`: one dimension at a time, from the last to the first.

use crate::native::error::{Result, ensure};
use crate::native::ops::indexing::index_select;
use crate::native::ops::pool::adaptive_avg_pool;
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::{Dims, numel, suggests_channels_last};
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::multiversion;
use passnet_cpu::parallel::{GRAIN, for_each_weighted_chunk};
use passnet_graph::DType;

/// How `interpolate` reads between elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the others are torch's names")]
pub enum Mode {
    Nearest,
    NearestExact,
    /// Linear in one, two or three dimensions.
    Linear,
    Bicubic,
    Area,
}

/// Arguments of `torch.nn.functional.interpolate`.
#[derive(Debug, Clone, PartialEq)]
pub struct Interpolation {
    /// How it reads between elements.
    pub mode: Mode,
    /// Sizes of the result's spatial dimensions.
    pub size: Vec<usize>,
    /// Scale factors, where the caller gave these and not sizes (and did not ask to recompute them).
    pub scales: Option<Vec<f64>>,
    /// Whether the corners' centres keep their places.
    pub align_corners: bool,
    /// Whether a smaller result averages over what it leaves out.
    pub antialias: bool,
}

/// What one output position takes from the input: places, and a weight for each. At a border a place may stand there twice.
struct Taps<T = f64> {
    places: Vec<usize>,
    weights: Vec<T>,
}

impl Taps {
    /// With weights of the type that is computed in.
    fn rounded<T: Real>(self) -> Taps<T> {
        let weights = self.weights.into_iter().map(T::constant).collect();
        Taps { places: self.places, weights }
    }
}

/// `torch.nn.functional.interpolate`.
pub fn interpolate(input: &Tensor, options: &Interpolation) -> Result<Tensor> {
    let spatial = options.size.len();
    ensure!(
        (1..=3).contains(&spatial) && input.ndim() == spatial + 2,
        Shape,
        "interpolate of {} sizes needs an input of {} dimensions, got {:?}",
        spatial,
        spatial + 2,
        input.shape()
    );
    ensure!(
        options.size.iter().chain(&input.shape()[2..]).all(|s| *s > 0),
        Value,
        "Input and output sizes should be greater than 0, but got input {:?} output {:?}",
        &input.shape()[2..],
        options.size
    );
    ensure!(
        options.mode != Mode::Bicubic || spatial == 2,
        Unsupported,
        "bicubic interpolation needs a 4D input"
    );
    let result = match options.mode {
        Mode::Area => {
            let sizes: Vec<Option<usize>> = options.size.iter().map(|s| Some(*s)).collect();
            return adaptive_avg_pool(input, &sizes);
        }
        Mode::Nearest | Mode::NearestExact => nearest(input, options)?,
        _ => {
            ensure!(
                input.dtype().is_float() || input.dtype() == DType::UInt8,
                DType,
                "interpolation is not implemented for '{}'",
                input.dtype()
            );
            match input.dtype() {
                DType::Float64 => separable::<f64>(input, options)?,
                dtype => {
                    let result = separable::<f32>(input, options)?;
                    if dtype == DType::UInt8 {
                        let rounded = crate::native::ops::pointwise::unary(
                            crate::native::ops::pointwise::Unary::Round,
                            &result,
                        )?;
                        crate::native::ops::pointwise::clamp_scalar(
                            &rounded,
                            Some(0i64.into()),
                            Some(255i64.into()),
                        )?
                        .to_dtype(dtype)?
                    } else {
                        result.to_dtype(dtype)?
                    }
                }
            }
        }
    };
    if suggests_channels_last(input.shape(), input.strides()) {
        result.channels_last()
    } else {
        result.contiguous()
    }
}

/// Input elements per output element along a dimension.
fn scale(options: &Interpolation, axis: usize, input: usize) -> f64 {
    let output = options.size[axis];
    if options.align_corners {
        return if output > 1 { (input - 1) as f64 / (output - 1) as f64 } else { 0.0 };
    }
    match options.scales.as_ref().and_then(|s| s.get(axis)) {
        Some(scale) if *scale > 0.0 => 1.0 / scale,
        _ => input as f64 / output as f64,
    }
}

fn nearest(input: &Tensor, options: &Interpolation) -> Result<Tensor> {
    let mut result = input.clone();
    for axis in (0..options.size.len()).rev() {
        let (size, output) = (input.shape()[2 + axis], options.size[axis]);
        if size == output {
            continue;
        }
        // Torch computes positions in single precision; doing the same picks the same neighbours.
        let step = scale(options, axis, size) as f32;
        let positions: Vec<i64> = (0..output)
            .map(|o| {
                let at = match options.mode {
                    Mode::NearestExact => ((o as f32 + 0.5) * step).floor(),
                    _ => (o as f32 * step).floor(),
                };
                (at as i64).min(size as i64 - 1)
            })
            .collect();
        result =
            index_select(&result, 2 + axis as i64, &Tensor::from_slice(&positions, &[output])?)?;
    }
    if result.shares_storage(input) { result.copy() } else { Ok(result) }
}

fn cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * a
    } else {
        0.0
    }
}

/// Weights of a plain interpolation.
fn plain_taps(options: &Interpolation, axis: usize, size: usize, single: bool) -> Vec<Taps> {
    let exact = scale(options, axis, size);
    let step = if single { f64::from(exact as f32) } else { exact };
    // Positions are rounded to single precision, where torch computes them so.
    let round = |v: f64| if single { f64::from(v as f32) } else { v };
    (0..options.size[axis])
        .map(|o| {
            let at = if options.align_corners {
                round(step * o as f64)
            } else if single {
                f64::from((step as f32).mul_add(o as f32 + 0.5, -0.5))
            } else {
                step * (o as f64 + 0.5) - 0.5
            };
            if options.mode == Mode::Bicubic {
                let base = at.floor();
                let t = at - base;
                let (mut places, mut weights) = (vec![], vec![]);
                for k in -1i64..=2 {
                    places.push((base as i64 + k).clamp(0, size as i64 - 1) as usize);
                    weights.push(cubic(t - k as f64, -0.75));
                }
                return Taps { places, weights };
            }
            if options.size[axis] == size {
                // A dimension that keeps its size has no neighbours, and torch adds the same element twice.
                return Taps { places: vec![o, o], weights: vec![1.0, 0.0] };
            }
            let at = if options.align_corners { at } else { at.max(0.0) };
            let first = (at.floor() as usize).min(size - 1);
            let second = (first + 1).min(size - 1);
            let t = (at - first as f64).min(1.0);
            // At the border both are the same element, and torch adds both: a weight of zero makes NaN of an infinity.
            Taps { places: vec![first, second], weights: vec![1.0 - t, t] }
        })
        .collect()
}

/// Weights of an antialiased interpolation: the filter widens with the reduction.
fn antialiased_taps(options: &Interpolation, axis: usize, size: usize) -> Vec<Taps> {
    let step = scale(options, axis, size);
    let reach = if options.mode == Mode::Bicubic { 2.0 } else { 1.0 };
    let support = if step >= 1.0 { reach * step } else { reach };
    let inverse = if step >= 1.0 { 1.0 / step } else { 1.0 };
    let filter = |x: f64| match options.mode {
        Mode::Bicubic => cubic(x, -0.5),
        _ => (1.0 - x.abs()).max(0.0),
    };
    (0..options.size[axis])
        .map(|o| {
            let center = step * (o as f64 + 0.5);
            let first = ((center - support + 0.5) as i64).max(0) as usize;
            let end = ((center + support + 0.5) as i64)
                .clamp(first as i64 + 1, size.max(first + 1) as i64) as usize;
            let end = end.min(size);
            let mut weights: Vec<f64> =
                (first..end).map(|i| filter((i as f64 - center + 0.5) * inverse)).collect();
            let total: f64 = weights.iter().sum();
            if total != 0.0 {
                weights.iter_mut().for_each(|w| *w /= total);
            }
            Taps { places: (first..end).collect(), weights }
        })
        .collect()
}

fn separable<T: Real>(input: &Tensor, options: &Interpolation) -> Result<Tensor> {
    let mut shape: Dims = input.shape().into();
    let single = T::DTYPE == DType::Float32;
    let dense = input.values::<T>()?;
    let mut current = Buffer::<T>::new(dense.len())?;
    current.copy_from_slice(&dense);
    drop(dense);
    for axis in (0..options.size.len()).rev() {
        let d = 2 + axis;
        let size = shape[d];
        let taps = if options.antialias {
            antialiased_taps(options, axis, size)
        } else {
            plain_taps(options, axis, size, single)
        };
        let taps: Vec<Taps<T>> = taps.into_iter().map(Taps::rounded).collect();
        shape[d] = options.size[axis];
        let inner: usize = shape[d + 1..].iter().product();
        let mut next = Buffer::<T>::new(numel(&shape)?)?;
        let plane = shape[d] * inner;
        match Pairs::new(&taps).filter(|_| inner == 1) {
            Some(pairs) => {
                let lines = (GRAIN / 4 / plane).max(1);
                for_each_weighted_chunk(&mut next, lines * plane, 4, |index, target| {
                    let count = target.len() / plane;
                    let source = &current[index * lines * size..][..count * size];
                    apply_pairs(source, size, target, &pairs);
                });
            }
            None => for_each_weighted_chunk(&mut next, plane, 4, |index, target| {
                let source = &current[index * size * inner..(index + 1) * size * inner];
                apply(source, target, &taps, inner);
            }),
        }
        current = next;
    }
    Tensor::from_buffer(current, &shape)
}

multiversion! {
    /// Combines lines of `inner` elements by their weights.
    fn apply[T: Real](source: &[T], target: &mut [T], taps: &[Taps<T>], inner: usize) {
        for (line, Taps { places, weights }) in target.chunks_mut(inner).zip(taps) {
            if inner == 1 {
                let mut sum = T::ZERO;
                for (place, w) in places.iter().zip(weights) {
                    sum = source[*place].fused(*w, sum);
                }
                line[0] = sum;
            } else if let ([first, second], [a, b]) = (&places[..], &weights[..]) {
                let upper = &source[first * inner..][..inner];
                let lower = &source[second * inner..][..inner];
                for ((o, x), y) in line.iter_mut().zip(upper).zip(lower) {
                    *o = y.fused(*b, x.fused(*a, T::ZERO));
                }
            } else {
                line.fill(T::ZERO);
                for (place, w) in places.iter().zip(weights) {
                    let from = &source[place * inner..][..inner];
                    for (o, v) in line.iter_mut().zip(from) {
                        *o = v.fused(*w, *o);
                    }
                }
            }
        }
    }
}

multiversion! {
    /// Neighbouring elements of many lines, where at most two are combined: `target = a·source[first] + b·source[second]`.
    fn apply_pairs[T: Real](source: &[T], size: usize, target: &mut [T], pairs: &Pairs<T>) {
        let width = pairs.first.len();
        let (first, second) = (&pairs.first[..width], &pairs.second[..width]);
        let (a, b) = (&pairs.a[..width], &pairs.b[..width]);
        for (from, line) in source.chunks_exact(size).zip(target.chunks_exact_mut(width)) {
            for i in 0..width {
                line[i] = from[second[i]].fused(b[i], from[first[i]] * a[i]);
            }
        }
    }
}

/// Two taps for each position of a line.
struct Pairs<T> {
    first: Vec<usize>,
    second: Vec<usize>,
    a: Vec<T>,
    b: Vec<T>,
}

impl<T: Real> Pairs<T> {
    /// Nothing where some position combines more than two elements.
    fn new(taps: &[Taps<T>]) -> Option<Self> {
        let mut pairs = Pairs { first: vec![], second: vec![], a: vec![], b: vec![] };
        for Taps { places, weights } in taps {
            let ([first, second], [a, b]) = (&places[..], &weights[..]) else { return None };
            pairs.first.push(*first);
            pairs.second.push(*second);
            pairs.a.push(*a);
            pairs.b.push(*b);
        }
        Some(pairs)
    }
}
