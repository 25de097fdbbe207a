//! Products of matrices: matmul, linear, addmm, baddbmm, outer.

use super::gemm::{HalfProduct, Halves, Planes, Sizes, multiply_batch};
use super::pointwise;
use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::{Dims, broadcast_shapes, numel};
use crate::native::tensor::{Arg, Buffer, Scalar, Tensor};
use passnet_cpu::parallel::{GRAIN, for_each_chunk};
use passnet_graph::DType;

/// `torch.matmul`, for all ranks.
pub fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    ensure!(
        a.ndim() > 0 && b.ndim() > 0,
        Shape,
        "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
        a.ndim(),
        b.ndim()
    );
    let left = if a.ndim() == 1 { a.unsqueeze(0)? } else { a.clone() };
    let right = if b.ndim() == 1 { b.unsqueeze(1)? } else { b.clone() };
    let mut result = product(&left, &right)?;
    if b.ndim() == 1 {
        result = result.squeeze(Some(&[-1]))?;
    }
    if a.ndim() == 1 {
        let row = if b.ndim() == 1 { -1 } else { -2 };
        result = result.select(row, 0)?;
    }
    Ok(result)
}

/// `torch.mm`: two matrices exactly.
pub fn mm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    check_matrices(a, b)?;
    product(a, b)
}

fn check_matrices(a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(a.ndim() == 2, Shape, "self must be a matrix");
    ensure!(b.ndim() == 2, Shape, "mat2 must be a matrix");
    Ok(())
}

/// `torch.bmm`: two batches of matrices of the same length.
pub fn bmm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    check_batches(a, b)?;
    product(a, b)
}

fn check_batches(a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(a.ndim() == 3, Shape, "batch1 must be a 3D tensor");
    ensure!(b.ndim() == 3, Shape, "batch2 must be a 3D tensor");
    ensure!(
        a.shape()[0] == b.shape()[0],
        Shape,
        "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
        a.shape()[0],
        a.shape()[2],
        b.shape()[0],
        b.shape()[1]
    );
    Ok(())
}

fn check_inner(m: usize, k: usize, k2: usize, n: usize) -> Result<()> {
    ensure!(k == k2, Shape, "mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {k2}x{n})");
    Ok(())
}

fn same_dtype(a: &Tensor, b: &Tensor) -> Result<DType> {
    ensure!(
        a.dtype() == b.dtype(),
        DType,
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        a.dtype(),
        b.dtype()
    );
    ensure!(
        !matches!(a.dtype(), DType::Bool),
        DType,
        "\"addmm_impl_cpu_\" not implemented for 'Bool'"
    );
    Ok(a.dtype())
}

/// Matrices in the last two dimensions, the others broadcast.
fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = same_dtype(a, b)?;
    let (ra, rb) = (a.ndim(), b.ndim());
    let (m, k) = (a.shape()[ra - 2], a.shape()[ra - 1]);
    let (k2, n) = (b.shape()[rb - 2], b.shape()[rb - 1]);
    check_inner(m, k, k2, n)?;
    // A batch times one matrix is one tall product.
    if rb == 2 && ra > 2 && a.is_contiguous() {
        let rows = numel(&a.shape()[..ra - 1])?;
        let flat = product(&a.reshape_to(&[rows, k])?, b)?;
        let mut shape: Dims = a.shape()[..ra - 1].into();
        shape.push(n);
        return flat.reshape_to(&shape);
    }
    let batch = broadcast_shapes(&[&a.shape()[..ra - 2], &b.shape()[..rb - 2]])?;
    let expand = |t: &Tensor, rows: usize, columns: usize| {
        let mut shape = batch.clone();
        shape.extend([rows, columns]);
        t.expand_to(&shape)
    };
    let (a, b) = (expand(a, m, k)?, expand(b, k, n)?);
    let mut shape = batch.clone();
    shape.extend([m, n]);
    let sizes = Sizes { m, n, k };
    match dtype {
        DType::Float64 => real_product::<f64>(&a, &b, &shape, sizes),
        DType::Float32 => real_product::<f32>(&a, &b, &shape, sizes),
        d if d.is_float() => {
            let (a, b) = (Halves::new(&a)?, Halves::new(&b)?);
            let product = HalfProduct { sizes, a, b, weights: false, alpha: 1.0, base: None };
            product.run(&shape, dtype)
        }
        d if d.is_complex() => complex_product(&a, &b),
        _ => integer_product(&a, &b, &shape, sizes)?.to_dtype(dtype),
    }
}

fn real_product<T: Real>(a: &Tensor, b: &Tensor, shape: &[usize], sizes: Sizes) -> Result<Tensor> {
    let mut out = Buffer::<T>::new(numel(shape)?)?;
    let (left, right) = (Planes::new(a)?, Planes::new(b)?);
    multiply_batch(sizes, &mut out, false, |i| (left.matrix(i, 0), right.matrix(i, 0)));
    Tensor::from_buffer(out, shape)
}

fn integer_product(a: &Tensor, b: &Tensor, shape: &[usize], sizes: Sizes) -> Result<Tensor> {
    let (left, right) = (a.values::<i64>()?, b.values::<i64>()?);
    let Sizes { m, n, k } = sizes;
    let mut out = Buffer::<i64>::zeroed(numel(shape)?)?;
    for (i, row) in out.chunks_mut(n.max(1)).enumerate() {
        let (batch, r) = (i / m.max(1), i % m.max(1));
        for inner in 0..k {
            let factor = left[(batch * m + r) * k + inner];
            for (o, v) in row.iter_mut().zip(&right[(batch * k + inner) * n..]) {
                *o = o.wrapping_add(factor.wrapping_mul(*v));
            }
        }
    }
    Tensor::from_buffer(out, shape)
}

/// (a + ib)(c + id) from four real products.
fn complex_product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let parts =
        |t: &Tensor| -> Result<(Tensor, Tensor)> { Ok((t.complex_part(0)?, t.complex_part(1)?)) };
    let ((ar, ai), (br, bi)) = (parts(a)?, parts(b)?);
    let real = pointwise::sub(&product(&ar, &br)?.into(), &product(&ai, &bi)?.into(), 1i64.into())?;
    let imaginary =
        pointwise::add(&product(&ar, &bi)?.into(), &product(&ai, &br)?.into(), 1i64.into())?;
    super::movement::stack(&[real, imaginary], -1)?.view_as_complex()
}

/// `torch.nn.functional.linear`: `input · weightᵀ + bias`.
pub fn linear(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    ensure!(
        matches!(weight.ndim(), 1 | 2) && input.ndim() > 0,
        Shape,
        "linear expects a weight of 1 or 2 dimensions and an input of at least 1, got {}D and {}D",
        weight.ndim(),
        input.ndim()
    );
    let dtype = same_dtype(input, weight)?;
    if weight.ndim() == 1 {
        let result = matmul(input, weight)?;
        return match bias {
            Some(bias) => pointwise::add(&result.into(), &bias.into(), 1i64.into()),
            None => Ok(result),
        };
    }
    let (features, k) = (weight.shape()[0], weight.shape()[1]);
    let last = input.shape()[input.ndim() - 1];
    let rows = numel(&input.shape()[..input.ndim() - 1])?;
    ensure!(
        last == k,
        Shape,
        "mat1 and mat2 shapes cannot be multiplied ({rows}x{last} and {k}x{features})"
    );
    if let Some(bias) = bias {
        ensure!(
            bias.dtype() == dtype,
            DType,
            "expected bias of type {dtype}, got {}",
            bias.dtype()
        );
    }
    let mut shape: Dims = input.shape().into();
    shape[input.ndim() - 1] = features;
    let flat = input.reshape_to(&[rows, k])?;
    let sizes = Sizes { m: rows, n: features, k };
    let result = match dtype {
        DType::Float64 => affine::<f64>(&flat, weight, bias, sizes)?,
        DType::Float32 => affine::<f32>(&flat, weight, bias, sizes)?,
        d if d.is_float() => {
            let weight = weight.t()?;
            let bias = bias.map(|bias| bias.expand_to(&[rows, features])).transpose()?;
            let base = bias.as_ref().map(Halves::new).transpose()?.map(|base| (base, 1.0));
            let (a, b) = (Halves::new(&flat)?, Halves::new(&weight)?);
            let product = HalfProduct { sizes, a, b, weights: true, alpha: 1.0, base };
            product.run(&[rows, features], dtype)?
        }
        _ => {
            let plain = product(&flat, &weight.t()?)?;
            match bias {
                Some(bias) => pointwise::add(&plain.into(), &bias.into(), 1i64.into())?,
                None => plain,
            }
        }
    };
    result.reshape_to(&shape)
}

fn affine<T: Real>(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    sizes: Sizes,
) -> Result<Tensor> {
    let mut out = Buffer::<T>::new(sizes.m * sizes.n)?;
    if let Some(bias) = bias {
        let bias = bias.expand_to(&[sizes.n])?;
        let bias = bias.values::<T>()?;
        fill_rows(&mut out, &bias);
    }
    let (a, w) = (Planes::new(input)?, Planes::new(weight)?);
    multiply_batch(sizes, &mut out, bias.is_some(), |_| {
        (a.matrix(0, 0), w.matrix(0, 0).transposed())
    });
    Tensor::from_buffer(out, &[sizes.m, sizes.n])
}

/// Repeats a row over a matrix.
pub(crate) fn fill_rows<T: Real>(out: &mut [T], row: &[T]) {
    if row.is_empty() {
        return;
    }
    let chunk = (GRAIN / row.len()).max(1) * row.len();
    for_each_chunk(out, chunk, |_, piece| {
        for target in piece.chunks_mut(row.len()) {
            target.copy_from_slice(row);
        }
    });
}

/// `beta * input + alpha * (a · b)`, the base of addmm, baddbmm and addmv.
fn add_product(input: &Tensor, product: Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    let dtype = product.dtype();
    ensure!(
        input.dtype() == dtype,
        DType,
        "self and mat2 must have the same dtype, but got {} and {dtype}",
        input.dtype()
    );
    let target: Vec<i64> = product.shape().iter().map(|&s| s as i64).collect();
    let scaled = if alpha.to_f64() == 1.0 {
        product
    } else {
        pointwise::mul(&product.into(), &Arg::Scalar(alpha))?
    };
    // With beta zero the input is ignored, NaN and all.
    if beta.is_zero() {
        return Ok(scaled);
    }
    let base = input.expand(&target)?;
    let base =
        if beta.to_f64() == 1.0 { base } else { pointwise::mul(&base.into(), &Arg::Scalar(beta))? };
    pointwise::add(&scaled.into(), &base.into(), 1i64.into())
}

/// As `add_product` of the product; half-precision sums are rounded once.
fn multiply_and_add(
    input: &Tensor,
    a: &Tensor,
    b: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Tensor> {
    let dtype = same_dtype(a, b)?;
    let half = matches!(dtype, DType::Float16 | DType::BFloat16) && input.dtype() == dtype;
    if !half {
        return add_product(input, product(a, b)?, beta, alpha);
    }
    let last = a.ndim() - 1;
    let (m, k, n) = (a.shape()[last - 1], a.shape()[last], b.shape()[last]);
    check_inner(m, k, b.shape()[last - 1], n)?;
    let mut shape: Dims = a.shape().into();
    shape[last] = n;
    let input = input.expand_to(&shape)?;
    // With beta zero the input is ignored, NaN and all.
    let base =
        if beta.is_zero() { None } else { Some((Halves::new(&input)?, beta.to_f64() as f32)) };
    let (alpha, sizes) = (alpha.to_f64() as f32, Sizes { m, n, k });
    let (a, b) = (Halves::new(a)?, Halves::new(b)?);
    HalfProduct { sizes, a, b, weights: false, alpha, base }.run(&shape, dtype)
}

/// `torch.addmm`.
pub fn addmm(
    input: &Tensor,
    a: &Tensor,
    b: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Tensor> {
    check_matrices(a, b)?;
    multiply_and_add(input, a, b, beta, alpha)
}

/// `torch.baddbmm`.
pub fn baddbmm(
    input: &Tensor,
    a: &Tensor,
    b: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Tensor> {
    check_batches(a, b)?;
    multiply_and_add(input, a, b, beta, alpha)
}

/// `torch.outer`.
pub fn outer(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.ndim() != 1 || b.ndim() != 1 {
        bail!(Shape, "outer: Expected 1-D arguments, but got {}-D and {}-D", a.ndim(), b.ndim());
    }
    pointwise::mul(&a.unsqueeze(1)?.into(), &b.into())
}
