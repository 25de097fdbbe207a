//! `torch.linalg.norm` of matrices: sums of rows and columns, and norms of singular values.

use super::reduce::{self, Extreme};
use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::layout::Dims;
use crate::native::tensor::{Buffer, Tensor};

/// Which norm of a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MatrixNorm {
    /// 1, -1, infinity, -infinity, 2, -2.
    Order(f64),
    /// The sum of the singular values.
    Nuclear,
}

/// Sweeps of rotations after which singular values of any matrix have long settled.
const SWEEPS: usize = 60;

/// The norm of every matrix that the two dimensions span.
pub fn matrix_norm(
    input: &Tensor,
    norm: MatrixNorm,
    dims: [i64; 2],
    keepdim: bool,
) -> Result<Tensor> {
    ensure!(
        input.dtype().is_float(),
        DType,
        "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {}",
        input.dtype()
    );
    let (rows, columns) = (input.dim(dims[0])?, input.dim(dims[1])?);
    ensure!(
        rows != columns && input.ndim() >= 2,
        Value,
        "linalg.matrix_norm: dims must be different. Got ({}, {})",
        dims[0],
        dims[1]
    );
    let result = match norm {
        MatrixNorm::Order(order) if order.abs() == 1.0 || order.is_infinite() => {
            let (summed, compared) =
                if order.is_infinite() { (columns, rows) } else { (rows, columns) };
            let which = if order > 0.0 { Extreme::Max } else { Extreme::Min };
            let sums = reduce::vector_norm(input, 1.0, Some(&[summed as i64]), true, None)?;
            reduce::extreme(&sums, which, Some(&[compared as i64]), true)?
        }
        norm => of_singular_values(input, norm, rows, columns)?,
    };
    if keepdim {
        return Ok(result);
    }
    result.squeeze(Some(&[rows as i64, columns as i64]))
}

fn of_singular_values(
    input: &Tensor,
    norm: MatrixNorm,
    rows: usize,
    columns: usize,
) -> Result<Tensor> {
    let finish: fn(&[f64]) -> f64 = match norm {
        MatrixNorm::Nuclear => |values| values.iter().sum(),
        MatrixNorm::Order(2.0) => |values| values.iter().copied().fold(0.0, f64::max),
        MatrixNorm::Order(-2.0) => |values| values.iter().copied().fold(f64::INFINITY, f64::min),
        MatrixNorm::Order(order) => {
            bail!(Value, "linalg.matrix_norm: Order {order} not supported.")
        }
    };
    let outer = (0..input.ndim()).filter(|d| *d != rows && *d != columns);
    let order: Dims = outer.chain([rows, columns]).collect();
    let matrices = input.permute_dims(&order);
    let (height, width) = (input.shape()[rows], input.shape()[columns]);
    ensure!(height > 0 && width > 0, Shape, "linalg.matrix_norm: the matrix is empty");
    let values = matrices.to_vec::<f64>()?;
    let mut out = Buffer::<f64>::new(values.len() / (height * width))?;
    for (o, matrix) in out.iter_mut().zip(values.chunks(height * width)) {
        *o = finish(&singular_values(matrix, height, width));
    }
    let mut shape: Dims = input.shape().into();
    (shape[rows], shape[columns]) = (1, 1);
    Tensor::from_buffer(out, &shape)?.to_dtype(input.dtype())
}

/// One-sided Jacobi rotations: the vectors of the shorter side are turned until they are orthogonal; their lengths remain.
fn singular_values(matrix: &[f64], height: usize, width: usize) -> Vec<f64> {
    let count = height.min(width);
    let mut vectors: Vec<Vec<f64>> = if height <= width {
        matrix.chunks(width).map(<[f64]>::to_vec).collect()
    } else {
        (0..width).map(|c| (0..height).map(|r| matrix[r * width + c]).collect()).collect()
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    for _ in 0..SWEEPS {
        let mut settled = true;
        for i in 0..count {
            for j in i + 1..count {
                let (head, tail) = vectors.split_at_mut(j);
                let (a, b) = (&mut head[i], &mut tail[0]);
                let (aa, bb, ab) = (dot(a, a), dot(b, b), dot(a, b));
                if ab.abs() <= 1e-15 * (aa * bb).sqrt() || ab == 0.0 {
                    continue;
                }
                settled = false;
                let ratio = (bb - aa) / (2.0 * ab);
                let tangent = ratio.signum() / (ratio.abs() + ratio.hypot(1.0));
                let cosine = 1.0 / tangent.hypot(1.0);
                let sine = cosine * tangent;
                for (x, y) in a.iter_mut().zip(b.iter_mut()) {
                    (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
                }
            }
        }
        if settled {
            break;
        }
    }
    vectors.iter().map(|vector| dot(vector, vector).sqrt()).collect()
}
