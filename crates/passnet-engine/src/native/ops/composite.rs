//! Operations that PyTorch itself builds from others, built from the same parts in the same order.

use super::movement::{self, PadMode};
use super::pointwise::{self, Binary, Unary};
use super::{creation, matmul, pool, reduce};
use crate::native::error::{Result, ensure};
use crate::native::tensor::{Arg, Scalar, Tensor};

/// `torch.tensordot` over pairs of dimensions.
pub fn tensordot(a: &Tensor, b: &Tensor, of_a: &[i64], of_b: &[i64]) -> Result<Tensor> {
    ensure!(
        of_a.len() == of_b.len(),
        Value,
        "both dimension lists should have same length, got {} and {}",
        of_a.len(),
        of_b.len()
    );
    let split = |t: &Tensor, summed: &[i64]| -> Result<(Vec<i64>, Vec<i64>)> {
        let summed: Vec<i64> =
            summed.iter().map(|d| Ok(t.dim(*d)? as i64)).collect::<Result<_>>()?;
        let free = (0..t.ndim() as i64).filter(|d| !summed.contains(d)).collect();
        Ok((free, summed))
    };
    let ((free_a, sum_a), (free_b, sum_b)) = (split(a, of_a)?, split(b, of_b)?);
    let size = |t: &Tensor, dims: &[i64]| -> i64 {
        dims.iter().map(|d| t.shape()[*d as usize] as i64).product()
    };
    for (x, y) in sum_a.iter().zip(&sum_b) {
        ensure!(
            a.shape()[*x as usize] == b.shape()[*y as usize],
            Shape,
            "contracted dimensions need to match, but first has size {} in dim {x} and second has size {} in dim {y}",
            a.shape()[*x as usize],
            b.shape()[*y as usize]
        );
    }
    let shape: Vec<i64> = free_a
        .iter()
        .map(|d| a.shape()[*d as usize] as i64)
        .chain(free_b.iter().map(|d| b.shape()[*d as usize] as i64))
        .collect();
    let (rows, inner, columns) = (size(a, &free_a), size(a, &sum_a), size(b, &free_b));
    let left = a.permute(&[free_a, sum_a].concat())?.reshape(&[rows, inner])?;
    let right = b.permute(&[sum_b, free_b].concat())?.reshape(&[inner, columns])?;
    matmul::mm(&left, &right)?.reshape(&shape)
}

/// `torch.nn.functional.bilinear`: `a · W_k · b` for every output feature `k`.
pub fn bilinear(a: &Tensor, b: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    ensure!(
        weight.ndim() == 3 && a.ndim() > 0 && a.ndim() == b.ndim(),
        Shape,
        "bilinear(): inputs must have as many dimensions as each other and the weight three"
    );
    let [features, left, right] = [weight.shape()[0], weight.shape()[1], weight.shape()[2]];
    let (rows_a, rows_b) = (a.reshape(&[-1, left as i64])?, b.reshape(&[-1, right as i64])?);
    // [features, rows, right] = rows_a · W, then the product with b summed over the last dimension.
    let mixed = matmul::matmul(&rows_a, weight)?;
    let product = pointwise::mul(&mixed.into(), &rows_b.into())?;
    let summed = reduce::sum(&product, Some(&[-1]), false, None)?.t()?;
    let mut shape: Vec<i64> = a.shape().iter().map(|size| *size as i64).collect();
    if let Some(last) = shape.last_mut() {
        *last = features as i64;
    }
    let result = summed.reshape(&shape)?;
    match bias {
        Some(bias) => pointwise::add(&result.into(), &bias.into(), Scalar::Int(1)),
        None => Ok(result),
    }
}

/// `torch.cdist`: the distance of every row of `a` from every row of `b`.
pub fn cdist(a: &Tensor, b: &Tensor, p: f64) -> Result<Tensor> {
    ensure!(
        a.ndim() >= 2 && b.ndim() >= 2,
        Shape,
        "cdist only supports at least 2D tensors, got {}D and {}D",
        a.ndim(),
        b.ndim()
    );
    let (rows, others) = (a.size(-2)?, b.size(-2)?);
    // Many rows are compared through a matrix product, as PyTorch does.
    if p == 2.0 && (rows > 25 || others > 25) {
        let squares = |t: &Tensor| -> Result<Tensor> {
            reduce::sum(&pointwise::unary(Unary::Square, t)?, Some(&[-1]), true, None)
        };
        let (norm_a, norm_b) = (squares(a)?, squares(b)?);
        let scaled = pointwise::mul(&a.into(), &Arg::Scalar(Scalar::Int(-2)))?;
        let ones = |t: &Tensor| movement::full_like(t, Scalar::Int(1), t.dtype());
        let left = movement::cat(&[scaled, norm_a.clone(), ones(&norm_a)?], -1)?;
        let right = movement::cat(&[b.clone(), ones(&norm_b)?, norm_b], -1)?;
        let squared = matmul::matmul(&left, &right.transpose(-2, -1)?)?;
        let bounded = pointwise::clamp_scalar(&squared, Some(Scalar::Int(0)), None)?;
        return pointwise::unary(Unary::Sqrt, &bounded);
    }
    let difference =
        pointwise::sub(&a.unsqueeze(-2)?.into(), &b.unsqueeze(-3)?.into(), Scalar::Int(1))?;
    reduce::vector_norm(&difference, p, Some(&[-1]), false, None)
}

/// `torch.nn.functional.cosine_similarity`: lengths are bounded from below before the division.
pub fn cosine_similarity(a: &Tensor, b: &Tensor, dim: i64, eps: f64) -> Result<Tensor> {
    let dtype = a.dtype().promote(b.dtype());
    let (a, b) = (a.to_dtype(dtype)?, b.to_dtype(dtype)?);
    let unit = |t: &Tensor| -> Result<Tensor> {
        let length = reduce::vector_norm(t, 2.0, Some(&[dim]), true, None)?;
        let bounded = pointwise::clamp_scalar(&length, Some(Scalar::Float(eps)), None)?;
        pointwise::div(&t.into(), &bounded.into())
    };
    let product = pointwise::mul(&unit(&a)?.into(), &unit(&b)?.into())?;
    reduce::sum(&product, Some(&[dim]), false, None)
}

/// `torch.nn.functional.glu`: the first half gated by the sigmoid of the second.
pub fn glu(input: &Tensor, dim: i64) -> Result<Tensor> {
    let size = input.size(dim)?;
    ensure!(
        size.is_multiple_of(2),
        Shape,
        "Halving dimension must be even, but dimension {dim} is size {size}"
    );
    let half = size / 2;
    let gate = input.narrow(dim, half as i64, half)?;
    // Half-precision gates are not rounded between the sigmoid and the product.
    let wide =
        if input.dtype().size() == 2 { passnet_graph::DType::Float32 } else { input.dtype() };
    let gate = pointwise::unary(Unary::Sigmoid, &gate.to_dtype(wide)?)?;
    let value = input.narrow(dim, 0, half)?.to_dtype(wide)?;
    pointwise::mul(&value.into(), &gate.into())?.to_dtype(input.dtype())
}

/// `torch.nn.functional.local_response_norm`.
pub fn local_response_norm(
    input: &Tensor,
    size: usize,
    alpha: f64,
    beta: f64,
    k: f64,
) -> Result<Tensor> {
    ensure!(
        input.ndim() >= 3 && size > 0,
        Shape,
        "Expected 3D or higher dimensionality input (got {} dimensions)",
        input.ndim()
    );
    let squares = pointwise::unary(Unary::Square, input)?.unsqueeze(1)?;
    let channels = squares.shape()[2];
    let flat: Vec<i64> = vec![squares.shape()[0] as i64, 1, channels as i64, -1];
    let planes = squares.reshape(&flat)?;
    let amounts = [0, 0, (size / 2) as i64, ((size - 1) / 2) as i64];
    let padded = movement::pad(&planes, &amounts, PadMode::Constant(Scalar::Int(0)))?;
    let pooling = pool::Pooling {
        kernel: vec![size, 1],
        stride: vec![1, 1],
        padding: vec![0, 0],
        dilation: vec![1, 1],
        ceil_mode: false,
    };
    let means = pool::avg_pool(&padded, &pooling, true, None)?;
    let shape: Vec<i64> = input.shape().iter().map(|size| *size as i64).collect();
    let means = means.squeeze(Some(&[1]))?.reshape(&shape)?;
    let scaled = pointwise::mul(&means.into(), &alpha.into())?;
    let shifted = pointwise::add(&scaled.into(), &k.into(), Scalar::Int(1))?;
    let divisor = pointwise::binary(Binary::Pow, &shifted.into(), &beta.into())?;
    pointwise::div(&input.into(), &divisor.into())
}

/// `torch.nn.functional.lp_pool2d`: the p-norm of every window.
pub fn lp_pool(input: &Tensor, p: f64, pooling: &pool::Pooling) -> Result<Tensor> {
    let powers = pointwise::binary(Binary::Pow, &input.into(), &p.into())?;
    let means = pool::avg_pool(&powers, pooling, true, None)?;
    let sign = pointwise::unary(Unary::Sign, &means)?;
    let size = pointwise::unary(Unary::Relu, &pointwise::unary(Unary::Abs, &means)?)?;
    let signed = pointwise::mul(&sign.into(), &size.into())?;
    let count: usize = pooling.kernel.iter().product();
    let sums = pointwise::mul(&signed.into(), &Arg::Scalar(Scalar::Int(count as i64)))?;
    pointwise::binary(Binary::Pow, &sums.into(), &(1.0 / p).into())
}

/// `torch.nn.functional.affine_grid`: the points of an image under affine maps.
pub fn affine_grid(theta: &Tensor, size: &[usize], align: bool) -> Result<Tensor> {
    let spatial = size.len().saturating_sub(2);
    ensure!(
        matches!(spatial, 2 | 3)
            && theta.ndim() == 3
            && theta.shape()[1..] == [spatial, spatial + 1],
        Shape,
        "AffineGridGenerator needs theta of shape [N, {spatial}, {}] for an image of {size:?}, got {:?}",
        spatial + 1,
        theta.shape()
    );
    let dtype = theta.dtype();
    let points: usize = size[2..].iter().product();
    let base = Tensor::full(&[points, spatial + 1], Scalar::Int(1), dtype)?;
    let lines = size[2..]
        .iter()
        .map(|&steps| {
            let line = creation::linspace(-1.0, 1.0, steps, dtype)?;
            let line = if steps <= 1 { Tensor::zeros(&[steps], dtype)? } else { line };
            if align {
                return Ok(line);
            }
            let scaled = pointwise::mul(&line.into(), &Arg::Scalar(Scalar::Int(steps as i64 - 1)))?;
            pointwise::div(&scaled.into(), &Arg::Scalar(Scalar::Int(steps as i64)))
        })
        .collect::<Result<Vec<_>>>()?;
    // The last dimension of an image is the first coordinate of a point.
    for (axis, grid) in movement::meshgrid(&lines, false)?.iter().rev().enumerate() {
        base.select(1, axis as i64)?.copy_from(&grid.reshape(&[-1])?)?;
    }
    let base = base.unsqueeze(0)?.expand(&[theta.shape()[0] as i64, -1, -1])?;
    let mapped = matmul::matmul(&base, &theta.transpose(1, 2)?)?;
    let mut shape = vec![theta.shape()[0] as i64];
    shape.extend(size[2..].iter().map(|size| *size as i64));
    shape.push(spatial as i64);
    mapped.reshape(&shape)
}
