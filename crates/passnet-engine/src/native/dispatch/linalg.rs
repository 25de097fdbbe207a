//! Inverses, factorisations, equations, and products that belong to no contraction.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, ensure};
use crate::native::ops::linalg::{self, System};
use crate::native::ops::{matmul, pointwise, reduce};
use crate::native::tensor::{Arg, Tensor};
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::Inverse | Op::Det | Op::Cholesky => of_square,
        Op::Solve | Op::SolveTriangular => solve,
        Op::Inner | Op::Kron => product,
        Op::Addmv | Op::Addr => sum_and_product,
        Op::MultiDot => multi_dot,
        Op::PairwiseDistance => pairwise_distance,
        Op::Cross | Op::LinalgCross => cross,
        Op::Trace => trace,
        _ => return None,
    })
}

fn of_square(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    Ok(match args.op {
        Op::Inverse => linalg::inverse(input)?,
        Op::Det => linalg::determinant(input)?,
        _ => linalg::cholesky(input, args.flag("upper")?)?,
    }
    .into())
}

fn solve(args: &Args<'_>) -> Result<Value> {
    let system = match args.op {
        Op::Solve => System::General,
        _ => System::Triangular { upper: args.flag("upper")?, unit: args.flag("unitriangular")? },
    };
    Ok(system.solve(args.tensor("A")?, args.tensor("B")?, args.flag("left")?)?.into())
}

fn product(args: &Args<'_>) -> Result<Value> {
    let (a, b) = (args.tensor("input")?, args.tensor("other")?);
    Ok(if args.op == Op::Inner { linalg::inner(a, b)? } else { linalg::kron(a, b)? }.into())
}

fn sum_and_product(args: &Args<'_>) -> Result<Value> {
    let (input, beta, alpha) = (args.input()?, args.number("beta")?, args.number("alpha")?);
    let product = match args.op {
        Op::Addmv => {
            let (matrix, vector) = (args.tensor("mat")?, args.tensor("vec")?);
            ensure!(
                matrix.ndim() == 2 && vector.ndim() == 1,
                Shape,
                "vector + matrix @ vector expected, got {}, {}, {}",
                input.ndim(),
                matrix.ndim(),
                vector.ndim()
            );
            matmul::matmul(matrix, vector)?
        }
        _ => matmul::outer(args.tensor("vec1")?, args.tensor("vec2")?)?,
    };
    // What a factor of zero leaves out is not looked at, NaN or not.
    if beta.is_zero() {
        return Ok(pointwise::mul(&product.into(), &Arg::Scalar(alpha))?.into());
    }
    let kept = pointwise::mul(&input.into(), &Arg::Scalar(beta))?;
    Ok(pointwise::add(&kept.into(), &product.into(), alpha)?.into())
}

fn multi_dot(args: &Args<'_>) -> Result<Value> {
    Ok(linalg::multi_dot(&args.tensors("tensors")?)?.into())
}

fn pairwise_distance(args: &Args<'_>) -> Result<Value> {
    let (a, b) = (args.tensor("x1")?, args.tensor("x2")?);
    let (p, eps) = (args.float("p")?, args.float("eps")?);
    Ok(linalg::pairwise_distance(a, b, p, eps, args.flag("keepdim")?)?.into())
}

fn cross(args: &Args<'_>) -> Result<Value> {
    let (a, b) = (args.tensor("input")?, args.tensor("other")?);
    let dim = match args.optional_int("dim")? {
        Some(dim) => dim,
        None => {
            let three = a.shape().iter().position(|size| *size == 3);
            ensure!(three.is_some(), Shape, "no dimension of size 3 in input");
            three.unwrap_or(0) as i64
        }
    };
    Ok(linalg::cross(a, b, dim)?.into())
}

fn trace(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    ensure!(input.ndim() == 2, Shape, "trace: expected a matrix, but got {:?}", input.shape());
    let diagonal: Tensor = input.diagonal(0, 0, 1)?;
    Ok(reduce::sum(&diagonal, None, false, None)?.into())
}
