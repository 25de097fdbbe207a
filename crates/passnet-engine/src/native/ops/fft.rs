//! Discrete Fourier transforms, in double precision inside: radix two where the length is a power of two, Bluestein's
//! algorithm otherwise.

use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::layout::Dims;
use crate::native::tensor::{Buffer, Complex, Tensor};
use passnet_cpu::parallel::for_each_weighted_chunk;
use passnet_graph::DType;
use std::f64::consts::PI;

/// How results are scaled, as torch names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalization {
    /// The inverse is divided by the length.
    Backward,
    /// Both are divided by the root of the length.
    Ortho,
    /// The transform is divided by the length.
    Forward,
}

impl Normalization {
    /// By torch's `norm` argument.
    pub fn from_name(name: Option<&str>) -> Result<Self> {
        Ok(match name {
            None | Some("backward") => Normalization::Backward,
            Some("ortho") => Normalization::Ortho,
            Some("forward") => Normalization::Forward,
            Some(other) => bail!(Value, "Invalid normalization mode: \"{other}\""),
        })
    }

    fn factor(self, length: usize, inverse: bool) -> f64 {
        let n = length as f64;
        match (self, inverse) {
            (Normalization::Ortho, _) => 1.0 / n.sqrt(),
            (Normalization::Backward, true) | (Normalization::Forward, false) => 1.0 / n,
            _ => 1.0,
        }
    }
}

type C = Complex<f64>;

fn times(a: C, b: C) -> C {
    Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
}

fn turn(angle: f64) -> C {
    Complex { re: angle.cos(), im: angle.sin() }
}

/// A transform of one length, with its tables.
struct Transform {
    length: usize,
    inverse: bool,
    /// e^(∓2πi k/n) for the power-of-two transform inside.
    roots: Vec<C>,
    bluestein: Option<Bluestein>,
}

struct Bluestein {
    inner: Box<Transform>,
    chirp: Vec<C>,
    filter: Vec<C>,
}

impl Transform {
    fn new(length: usize, inverse: bool) -> Self {
        let sign = if inverse { 1.0 } else { -1.0 };
        if length.is_power_of_two() {
            let roots =
                (0..length / 2).map(|k| turn(sign * 2.0 * PI * k as f64 / length as f64)).collect();
            return Transform { length, inverse, roots, bluestein: None };
        }
        // k² modulo 2n keeps the angle small and exact.
        let chirp: Vec<C> = (0..length)
            .map(|k| {
                turn(
                    sign * PI * ((k as u128 * k as u128) % (2 * length as u128)) as f64
                        / length as f64,
                )
            })
            .collect();
        let inner = Transform::new((2 * length - 1).next_power_of_two(), false);
        let mut filter = vec![C::default(); inner.length];
        for (k, c) in chirp.iter().enumerate() {
            let conjugate = Complex { re: c.re, im: -c.im };
            filter[k] = conjugate;
            if k > 0 {
                filter[inner.length - k] = conjugate;
            }
        }
        inner.run(&mut filter);
        let bluestein = Some(Bluestein { inner: Box::new(inner), chirp, filter });
        Transform { length, inverse, roots: Vec::new(), bluestein }
    }

    fn run(&self, data: &mut [C]) {
        match &self.bluestein {
            None => self.radix_two(data),
            Some(tables) => {
                let inner = &tables.inner;
                let mut work = vec![C::default(); inner.length];
                for (w, (d, c)) in work.iter_mut().zip(data.iter().zip(&tables.chirp)) {
                    *w = times(*d, *c);
                }
                inner.run(&mut work);
                for (w, f) in work.iter_mut().zip(&tables.filter) {
                    // The inverse transform by conjugation.
                    let product = times(*w, *f);
                    *w = Complex { re: product.re, im: -product.im };
                }
                inner.run(&mut work);
                let n = inner.length as f64;
                for (d, (w, c)) in data.iter_mut().zip(work.iter().zip(&tables.chirp)) {
                    *d = times(Complex { re: w.re / n, im: -w.im / n }, *c);
                }
            }
        }
    }

    fn radix_two(&self, data: &mut [C]) {
        let n = self.length;
        debug_assert!(!self.inverse || self.bluestein.is_none());
        if n <= 1 {
            return;
        }
        let bits = n.trailing_zeros();
        for i in 0..n {
            let j = i.reverse_bits() >> (usize::BITS - bits);
            if i < j {
                data.swap(i, j);
            }
        }
        let mut width = 2;
        while width <= n {
            let step = n / width;
            for block in data.chunks_mut(width) {
                let (low, high) = block.split_at_mut(width / 2);
                for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                    let t = times(*b, self.roots[k * step]);
                    *b = Complex { re: a.re - t.re, im: a.im - t.im };
                    *a = Complex { re: a.re + t.re, im: a.im + t.im };
                }
            }
            width *= 2;
        }
    }
}

/// Cuts or pads a dimension with zeros.
fn resize(input: &Tensor, d: usize, length: usize) -> Result<Tensor> {
    let size = input.shape()[d];
    if size >= length {
        return input.narrow(d as i64, 0, length);
    }
    let mut amounts = vec![0; 2 * (input.ndim() - d)];
    let last = amounts.len() - 1;
    amounts[last] = (length - size) as i64;
    super::movement::pad(
        input,
        &amounts,
        super::movement::PadMode::Constant(crate::native::tensor::Scalar::Int(0)),
    )
}

fn check_length(n: Option<usize>, size: usize) -> Result<usize> {
    let length = n.unwrap_or(size);
    ensure!(length >= 1, Value, "Invalid number of data points ({length}) specified");
    ensure!(length < 1 << 40, Value, "Invalid number of data points ({length}) specified");
    Ok(length)
}

/// One complex transform along a dimension, scaled.
fn along(input: &Tensor, d: usize, inverse: bool, factor: f64) -> Result<Tensor> {
    let length = input.shape()[d];
    let moved = input.movedim(&[d as i64], &[-1])?;
    let mut data = Buffer::<C>::new(moved.numel())?;
    data.copy_from_slice(&moved.values::<C>()?);
    let transform = Transform::new(length, inverse);
    for_each_weighted_chunk(&mut data, length, 16, |_, row| {
        transform.run(row);
        for value in row.iter_mut() {
            *value = Complex { re: value.re * factor, im: value.im * factor };
        }
    });
    Tensor::from_buffer(data, moved.shape())?.movedim(&[-1], &[d as i64])
}

/// The complex type of a transform of this input.
fn complex_type(input: &Tensor) -> DType {
    if input.dtype() == DType::Float64 { DType::Complex128 } else { input.dtype().complex() }
}

/// `torch.fft.fftn` and its inverse over the given dimensions (all, by default); `fft` is the case of one.
pub fn fftn(
    input: &Tensor,
    sizes: Option<&[usize]>,
    dims: Option<&[i64]>,
    normalization: Normalization,
    inverse: bool,
) -> Result<Tensor> {
    let dims: Dims = match dims {
        Some(dims) => dims.iter().map(|&d| input.dim(d)).collect::<Result<_>>()?,
        None => {
            let count = sizes.map_or(input.ndim(), <[usize]>::len);
            ensure!(
                count <= input.ndim(),
                Value,
                "Got shape with {count} values but input tensor only has {} dimensions.",
                input.ndim()
            );
            (input.ndim() - count..input.ndim()).collect()
        }
    };
    ensure!(input.ndim() > 0, Shape, "Dimension specified as -1 but tensor has no dimensions");
    let dtype = complex_type(input);
    let mut result = input.to_dtype(DType::Complex128)?;
    for (i, &d) in dims.iter().enumerate() {
        let length = check_length(sizes.and_then(|s| s.get(i).copied()), input.shape()[d])?;
        result = resize(&result, d, length)?;
        result = along(&result, d, inverse, normalization.factor(length, inverse))?;
    }
    result.contiguous()?.to_dtype(dtype)
}

/// `torch.fft.rfft`: the first half of the transform of a real signal.
pub fn rfft(
    input: &Tensor,
    n: Option<usize>,
    dim: i64,
    normalization: Normalization,
) -> Result<Tensor> {
    ensure!(
        !input.dtype().is_complex(),
        DType,
        "rfft expects a real input tensor, but got {}",
        input.dtype()
    );
    let d = input.dim(dim)?;
    let length = check_length(n, input.size(dim)?)?;
    let full = fftn(input, Some(&[length]), Some(&[d as i64]), normalization, false)?;
    full.narrow(d as i64, 0, length / 2 + 1)?.contiguous()
}

/// `torch.fft.irfft`: a real signal from the first half of its transform.
pub fn irfft(
    input: &Tensor,
    n: Option<usize>,
    dim: i64,
    normalization: Normalization,
) -> Result<Tensor> {
    let d = input.dim(dim)?;
    let half = input.size(dim)?;
    let length = check_length(n, 2 * half.saturating_sub(1))?;
    let dtype = complex_type(input);
    let known = resize(&input.to_dtype(DType::Complex128)?, d, length / 2 + 1)?;
    let moved = known.movedim(&[d as i64], &[-1])?;
    let values = moved.values::<C>()?;
    let stored = length / 2 + 1;
    let rows = values.len() / stored.max(1);
    let mut full = Buffer::<C>::new(rows * length)?;
    for (row, from) in full.chunks_mut(length).zip(values.chunks(stored)) {
        for (k, o) in row.iter_mut().enumerate() {
            // The other half is the conjugate; what must be real is taken as real.
            *o = if k == 0 || 2 * k == length {
                Complex { re: from[k].re, im: 0.0 }
            } else if k < stored {
                from[k]
            } else {
                Complex { re: from[length - k].re, im: -from[length - k].im }
            };
        }
    }
    let mut shape: Dims = moved.shape().into();
    let last = shape.len() - 1;
    shape[last] = length;
    let full = Tensor::from_buffer(full, &shape)?;
    let signal = along(&full, last, true, normalization.factor(length, true))?;
    signal.complex_part(0)?.dense_copy(dtype.real())?.movedim(&[-1], &[d as i64])?.contiguous()
}
