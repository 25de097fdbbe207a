//! Inverses, determinants, factorisations and equations: in double precision inside, rounded once.

use super::{matmul, movement, pointwise, reduce};
use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::layout::{Dims, broadcast_shapes};
use crate::native::tensor::{Arg, Buffer, Scalar, Tensor};

/// The matrices of a tensor, one after the other, row by row.
struct Matrices {
    values: Vec<f64>,
    rows: usize,
    columns: usize,
}

impl Matrices {
    fn new(tensor: &Tensor, name: &str) -> Result<Self> {
        ensure!(
            tensor.ndim() >= 2 && tensor.dtype().is_float() && tensor.dtype().size() >= 4,
            DType,
            "{name}: expected matrices of floating point numbers, got {} of shape {:?}",
            tensor.dtype(),
            tensor.shape()
        );
        let [rows, columns] = [tensor.size(-2)?, tensor.size(-1)?];
        Ok(Matrices { values: tensor.to_vec::<f64>()?, rows, columns })
    }

    fn square(tensor: &Tensor, name: &str) -> Result<Self> {
        let matrices = Self::new(tensor, name)?;
        ensure!(
            matrices.rows == matrices.columns,
            Shape,
            "{name}: A must be batches of square matrices, but they are {} by {} matrices",
            matrices.rows,
            matrices.columns
        );
        Ok(matrices)
    }

    fn each(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact((self.rows * self.columns).max(1))
    }

    /// Matrices like these as a tensor whose matrices lie column by column, as LAPACK leaves them.
    fn finish(values: Vec<f64>, like: &Tensor, shape: &[usize]) -> Result<Tensor> {
        let mut buffer = Buffer::<f64>::new(values.len())?;
        buffer.copy_from_slice(&values);
        let rows = Tensor::from_buffer(buffer, shape)?.to_dtype(like.dtype())?;
        if shape.len() < 2 {
            return Ok(rows);
        }
        rows.transpose(-2, -1)?.contiguous()?.transpose(-2, -1)
    }
}

/// A matrix as the product of a lower and an upper triangle, its rows in another order.
struct Factors {
    values: Vec<f64>,
    order: Vec<usize>,
    /// The parity of the order.
    sign: f64,
    /// The first pivot that is zero.
    singular: Option<usize>,
}

fn factors(matrix: &[f64], size: usize) -> Factors {
    let mut a = matrix.to_vec();
    let mut order: Vec<usize> = (0..size).collect();
    let (mut sign, mut singular) = (1.0, None);
    for k in 0..size {
        let best = (k..size).fold(k, |best, row| {
            if a[row * size + k].abs() > a[best * size + k].abs() { row } else { best }
        });
        if best != k {
            for column in 0..size {
                a.swap(k * size + column, best * size + column);
            }
            order.swap(k, best);
            sign = -sign;
        }
        let pivot = a[k * size + k];
        if pivot == 0.0 {
            singular.get_or_insert(k);
            continue;
        }
        for row in k + 1..size {
            let factor = a[row * size + k] / pivot;
            a[row * size + k] = factor;
            for column in k + 1..size {
                a[row * size + column] -= factor * a[k * size + column];
            }
        }
    }
    Factors { values: a, order, sign, singular }
}

/// Solves a triangular system for the columns of `given` in place.
fn substitute(
    triangle: &[f64],
    size: usize,
    given: &mut [f64],
    columns: usize,
    upper: bool,
    unit: bool,
) {
    for step in 0..size {
        let row = if upper { size - 1 - step } else { step };
        let known = if upper { row + 1..size } else { 0..row };
        for column in 0..columns {
            let mut value = given[row * columns + column];
            for other in known.clone() {
                value -= triangle[row * size + other] * given[other * columns + column];
            }
            if !unit {
                value /= triangle[row * size + row];
            }
            given[row * columns + column] = value;
        }
    }
}

/// Solves `matrix · x = given` for one matrix.
fn solved(
    matrix: &[f64],
    size: usize,
    given: &[f64],
    columns: usize,
    name: &str,
) -> Result<Vec<f64>> {
    let factors = factors(matrix, size);
    if let Some(pivot) = factors.singular {
        bail!(
            Arithmetic,
            "{name}: The diagonal element {} is zero, the matrix is singular.",
            pivot + 1
        );
    }
    let mut x: Vec<f64> = factors
        .order
        .iter()
        .flat_map(|row| given[row * columns..(row + 1) * columns].iter().copied())
        .collect();
    substitute(&factors.values, size, &mut x, columns, false, true);
    substitute(&factors.values, size, &mut x, columns, true, false);
    Ok(x)
}

/// `torch.linalg.inv`.
pub fn inverse(input: &Tensor) -> Result<Tensor> {
    let matrices = Matrices::square(input, "linalg.inv")?;
    let size = matrices.rows;
    let mut identity = vec![0.0; size * size];
    (0..size).for_each(|at| identity[at * size + at] = 1.0);
    let mut out = Vec::with_capacity(matrices.values.len());
    for matrix in matrices.each() {
        out.extend(solved(matrix, size, &identity, size, "linalg.inv")?);
    }
    Matrices::finish(out, input, input.shape())
}

/// `torch.linalg.det`.
pub fn determinant(input: &Tensor) -> Result<Tensor> {
    let matrices = Matrices::square(input, "linalg.det")?;
    let size = matrices.rows;
    let shape = &input.shape()[..input.ndim() - 2];
    if size == 0 {
        return Tensor::full(shape, Scalar::Int(1), input.dtype());
    }
    let each = matrices.each().map(|matrix| {
        let factors = factors(matrix, size);
        (0..size).fold(factors.sign, |product, at| product * factors.values[at * size + at])
    });
    Tensor::from_slice(&each.collect::<Vec<f64>>(), shape)?.to_dtype(input.dtype())
}

/// `torch.linalg.cholesky`.
pub fn cholesky(input: &Tensor, upper: bool) -> Result<Tensor> {
    let matrices = Matrices::square(input, "linalg.cholesky")?;
    let size = matrices.rows;
    let mut out = Vec::with_capacity(matrices.values.len());
    for matrix in matrices.each() {
        let mut factor = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                // Only one triangle is read: the other is believed to be its mirror image.
                let own = if upper { column * size + row } else { row * size + column };
                let mut value = matrix[own];
                for at in 0..column {
                    value -= factor[row * size + at] * factor[column * size + at];
                }
                factor[row * size + column] = if row > column {
                    value / factor[column * size + column]
                } else {
                    ensure!(
                        value > 0.0,
                        Arithmetic,
                        "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order {} is not positive-definite).",
                        row + 1
                    );
                    value.sqrt()
                };
            }
        }
        out.extend(factor);
    }
    if !upper {
        return Matrices::finish(out, input, input.shape());
    }
    let lower = Tensor::from_slice(&out, input.shape())?.transpose(-2, -1)?;
    Matrices::finish(lower.to_vec::<f64>()?, input, input.shape())
}

/// How a system of equations is meant.
#[derive(Debug, Clone, Copy)]
pub enum System {
    /// Any matrix.
    General,
    /// Only one triangle is read, whose diagonal may count as ones.
    Triangular {
        /// Which one.
        upper: bool,
        /// Whether the diagonal is ones, whatever it holds.
        unit: bool,
    },
}

impl System {
    /// `torch.linalg.solve` and `solve_triangular`: `a · x = b`, or `x · a = b`.
    pub fn solve(self, a: &Tensor, b: &Tensor, left: bool) -> Result<Tensor> {
        ensure!(
            a.dtype() == b.dtype(),
            DType,
            "Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
            a.dtype(),
            b.dtype()
        );
        ensure!(a.ndim() >= 2, Shape, "linalg.solve: A must have at least 2 dimensions.");
        let is_vector = matches!(self, System::General)
            && (b.ndim() == 1 || b.shape() == &a.shape()[..a.ndim() - 1]);
        if is_vector {
            ensure!(left, Shape, "linalg.solve: vectors are solved for on the left side");
            let solution = self.solve(a, &b.unsqueeze(-1)?, true)?.squeeze(Some(&[-1]))?;
            return Matrices::finish(solution.to_vec::<f64>()?, a, solution.shape());
        }
        if !left {
            // x · a = b is aᵀ · xᵀ = bᵀ.
            let flipped = match self {
                System::Triangular { upper, unit } => System::Triangular { upper: !upper, unit },
                System::General => System::General,
            };
            ensure!(b.ndim() >= 2, Shape, "linalg.solve: Incompatible shapes of A and B");
            let (a, b) = (a.transpose(-2, -1)?, b.transpose(-2, -1)?);
            let solution = flipped.solve(&a, &b, true)?.transpose(-2, -1)?;
            return match self {
                System::General => Ok(solution),
                System::Triangular { .. } => {
                    Matrices::finish(solution.to_vec::<f64>()?, &b, solution.shape())
                }
            };
        }
        ensure!(b.ndim() >= 2, Shape, "linalg.solve: Incompatible shapes of A and B");
        let batch = broadcast_shapes(&[&a.shape()[..a.ndim() - 2], &b.shape()[..b.ndim() - 2]])?;
        let whole = |t: &Tensor| -> Result<Tensor> {
            let mut shape: Dims = batch.clone();
            shape.extend_from_slice(&t.shape()[t.ndim() - 2..]);
            t.expand_to(&shape)
        };
        let (a, b) = (whole(a)?, whole(b)?);
        let (left, right) =
            (Matrices::square(&a, "linalg.solve")?, Matrices::new(&b, "linalg.solve")?);
        ensure!(
            left.rows == right.rows,
            Shape,
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B ({}x{} and {}x{})",
            left.rows,
            left.columns,
            right.rows,
            right.columns
        );
        let mut out = Vec::with_capacity(right.values.len());
        for (matrix, given) in left.each().zip(right.each()) {
            match self {
                System::General => {
                    out.extend(solved(matrix, left.rows, given, right.columns, "linalg.solve")?);
                }
                System::Triangular { upper, unit } => {
                    let mut x = given.to_vec();
                    substitute(matrix, left.rows, &mut x, right.columns, upper, unit);
                    out.extend(x);
                }
            }
        }
        Matrices::finish(out, &b, b.shape())
    }
}

/// `torch.inner`: over the last dimension of both.
pub fn inner(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.ndim() == 0 || b.ndim() == 0 {
        return pointwise::mul(&a.into(), &b.into());
    }
    super::composite::tensordot(a, b, &[-1], &[-1])
}

/// `torch.kron`.
pub fn kron(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let rank = a.ndim().max(b.ndim());
    let interleaved = |t: &Tensor, first: bool| -> Result<Tensor> {
        let mut shape = Vec::with_capacity(2 * rank);
        for axis in 0..rank {
            let size = (axis + t.ndim()).checked_sub(rank).map_or(1, |axis| t.shape()[axis] as i64);
            shape.extend(if first { [size, 1] } else { [1, size] });
        }
        t.reshape(&shape)
    };
    let product = pointwise::mul(&interleaved(a, true)?.into(), &interleaved(b, false)?.into())?;
    // Tensors without elements may have sizes whose product is no number.
    let size = |pair: &[usize]| i64::try_from(pair[0].saturating_mul(pair[1])).unwrap_or(i64::MAX);
    let shape: Vec<i64> = product.shape().chunks(2).map(size).collect();
    product.contiguous()?.reshape(&shape)
}

/// `torch.linalg.cross` along a dimension of three elements.
pub fn cross(a: &Tensor, b: &Tensor, dim: i64) -> Result<Tensor> {
    ensure!(
        a.ndim() == b.ndim() && a.size(dim)? == 3 && b.size(dim)? == 3,
        Shape,
        "linalg.cross: inputs dimension {dim} must have length 3. Got {:?} and {:?}",
        a.shape(),
        b.shape()
    );
    let dim = a.dim(dim)? as i64;
    let product = |i: i64, j: i64| -> Result<Arg> {
        Ok(pointwise::mul(&a.select(dim, i)?.into(), &b.select(dim, j)?.into())?.into())
    };
    let parts = [(1, 2), (2, 0), (0, 1)]
        .into_iter()
        .map(|(i, j)| pointwise::sub(&product(i, j)?, &product(j, i)?, Scalar::Int(1)))
        .collect::<Result<Vec<_>>>()?;
    movement::stack(&parts, dim)
}

/// `torch.nn.functional.pairwise_distance`.
pub fn pairwise_distance(
    a: &Tensor,
    b: &Tensor,
    p: f64,
    eps: f64,
    keepdim: bool,
) -> Result<Tensor> {
    let apart = pointwise::sub(&a.into(), &b.into(), Scalar::Int(1))?;
    let apart = pointwise::add(&apart.into(), &eps.into(), Scalar::Int(1))?;
    reduce::vector_norm(&apart, p, Some(&[-1]), keepdim, None)
}

/// `torch.linalg.multi_dot`: matrices, the first and the last of which may be vectors.
pub fn multi_dot(tensors: &[Tensor]) -> Result<Tensor> {
    let [first, inside @ .., last] = tensors else {
        bail!(Value, "multi_dot(): expected at least 2 tensors but got {}", tensors.len());
    };
    ensure!(
        inside.iter().all(|tensor| tensor.ndim() == 2)
            && [first, last].iter().all(|tensor| matches!(tensor.ndim(), 1 | 2)),
        Shape,
        "multi_dot(): expected matrices, and vectors at the ends alone"
    );
    let mut product = first.clone();
    for tensor in &tensors[1..] {
        product = matmul::matmul(&product, tensor)?;
    }
    Ok(product)
}
