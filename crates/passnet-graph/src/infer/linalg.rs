//! Inverses, factorisations, equations, and products that belong to no contraction.

use super::args::{Args, wrap_axis};
use super::contraction::matrix_product;
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::promote::{Operand, message_name, result_type, to_float};
use super::strides;
use super::value::{Shape, TensorType, Value};
use crate::dtype::{DType, Kind};
use crate::ops::Op;

fn invalid<T>(message: impl Into<String>) -> Inferred<T> {
    Err(Problem::invalid(message.into()))
}

/// A new tensor whose matrices lie column by column, as LAPACK leaves them.
fn by_columns(dtype: DType, shape: Shape) -> TensorType {
    let mut result = TensorType::contiguous(dtype, shape);
    if let [.., row, column] = result.strides.as_mut_slice() {
        *column = result.shape[result.shape.len() - 2].size.max(1);
        *row = 1;
    }
    result
}

fn check_matrix(args: &Args, matrix: &TensorType, square: bool) -> Inferred<()> {
    if !matches!(
        matrix.dtype,
        DType::Float32 | DType::Float64 | DType::Complex64 | DType::Complex128
    ) {
        return invalid(format!(
            "{}: Low precision dtypes not supported. Got {}",
            args.op().name(),
            message_name(matrix.dtype)
        ));
    }
    let rank = matrix.rank();
    if rank < 2 {
        return invalid(format!(
            "{}: The input tensor A must have at least 2 dimensions.",
            args.op().name()
        ));
    }
    if square && !args.scope.same(&matrix.shape[rank - 1], &matrix.shape[rank - 2]) {
        return invalid(format!(
            "{}: A must be batches of square matrices, but they are {} by {} matrices",
            args.op().name(),
            matrix.shape[rank - 2].size,
            matrix.shape[rank - 1].size
        ));
    }
    Ok(())
}

/// `inv`, `cholesky`, `det`: of every matrix.
pub(super) fn of_square(args: &Args) -> Inferred<Value> {
    let matrix = args.first_tensor()?;
    check_matrix(args, matrix, true)?;
    if args.op() == Op::Det {
        let shape = Shape::from(&matrix.shape[..matrix.rank() - 2]);
        return Ok(TensorType::contiguous(matrix.dtype, shape).into());
    }
    Ok(by_columns(matrix.dtype, matrix.shape.clone()).into())
}

/// `linalg.solve` and `linalg.solve_triangular`.
pub(super) fn solve(args: &Args) -> Inferred<Value> {
    let (matrix, given) = (args.tensor("A")?, args.tensor("B")?);
    check_matrix(args, matrix, true)?;
    if matrix.dtype != given.dtype {
        return invalid(format!(
            "Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
            message_name(matrix.dtype),
            message_name(given.dtype)
        ));
    }
    let left = args.flag("left")?;
    let (rank, size) = (matrix.rank(), &matrix.shape[matrix.rank() - 1]);
    let same = |a: &[Dim], b: &[Dim]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| args.scope.same(a, b))
    };
    let is_vector = args.op() == Op::Solve
        && (given.rank() == 1 || same(&given.shape, &matrix.shape[..rank - 1]));
    if is_vector {
        if !left || !given.shape.last().is_some_and(|last| args.scope.same(last, size)) {
            return invalid("linalg.solve: Incompatible shapes of A and B");
        }
        let mut shape = matrix.shape[..rank - 2].iter().cloned().collect::<Shape>();
        shape.push(size.clone());
        return Ok(by_columns(matrix.dtype, shape).into());
    }
    let columns = given.rank();
    let solved = if left { columns.checked_sub(2) } else { columns.checked_sub(1) };
    let fits =
        columns >= 2 && solved.is_some_and(|solved| args.scope.same(&given.shape[solved], size));
    if !fits {
        return invalid(format!(
            "{}: Incompatible shapes of A and B for the equation ({} and {})",
            args.op().name(),
            strides::describe(&matrix.shape),
            strides::describe(&given.shape)
        ));
    }
    let mut shape =
        args.scope.broadcast([&matrix.shape[..rank - 2], &given.shape[..columns - 2]])?;
    shape.extend(given.shape[columns - 2..].iter().cloned());
    Ok(match left || args.op() == Op::SolveTriangular {
        true => by_columns(matrix.dtype, shape),
        false => TensorType::contiguous(matrix.dtype, shape),
    }
    .into())
}

fn pair<'a>(args: &Args<'a, '_>, names: [&str; 2]) -> Inferred<[&'a TensorType; 2]> {
    Ok([args.tensor(names[0])?, args.tensor(names[1])?])
}

fn common(tensors: [&TensorType; 2]) -> DType {
    result_type(&tensors.map(Operand::Tensor))
}

/// `inner`: over the last dimension of both.
pub(super) fn inner(args: &Args) -> Inferred<Value> {
    let [left, right] = pair(args, ["input", "other"])?;
    let (Some(a), Some(b)) = (left.shape.last(), right.shape.last()) else {
        let shape = if left.rank() == 0 { &right.shape } else { &left.shape };
        return Ok(TensorType::contiguous(common([left, right]), shape.clone()).into());
    };
    if left.dtype != right.dtype {
        return invalid("inner() expects both tensors to have the same dtype");
    }
    if !args.scope.same(a, b) {
        return invalid(format!(
            "inner() the last dimension must match on both input tensors but got shapes {} and {}",
            strides::describe(&left.shape),
            strides::describe(&right.shape)
        ));
    }
    let mut shape: Shape = left.shape[..left.rank() - 1].into();
    shape.extend(right.shape[..right.rank() - 1].iter().cloned());
    Ok(TensorType::contiguous(left.dtype, shape).into())
}

/// `addmv` and `addr`: a product with vectors, added to something that broadcasts to it.
pub(super) fn sum_and_product(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let (shape, dtype) = if args.op() == Op::Addmv {
        let [matrix, vector] = pair(args, ["mat", "vec"])?;
        if matrix.rank() != 2 || vector.rank() != 1 || input.rank() > 1 {
            return invalid("vector + matrix @ vector expected");
        }
        let product = matrix_product(args, matrix, vector)?;
        if input.dtype != product.dtype {
            return invalid("addmv expects all tensors to have the same dtype");
        }
        (product.shape, product.dtype)
    } else {
        let [first, second] = pair(args, ["vec1", "vec2"])?;
        if first.rank() != 1 || second.rank() != 1 {
            return invalid("addr: Expected 1-D arguments");
        }
        let dtype = result_type(&[input, first, second].map(Operand::Tensor));
        (strides::shape([first.shape[0].clone(), second.shape[0].clone()]), dtype)
    };
    args.scope.expand(input, &shape)?;
    Ok(TensorType::contiguous(dtype, shape).into())
}

/// `linalg.multi_dot`: a product of matrices, the first and the last of which may be vectors.
pub(super) fn multi_dot(args: &Args) -> Inferred<Value> {
    let tensors = args.tensors("tensors")?;
    let [first, inside @ .., last] = tensors.as_slice() else {
        return invalid("multi_dot(): expected at least 2 tensors");
    };
    if inside.iter().any(|tensor| tensor.rank() != 2)
        || [first, last].iter().any(|tensor| !matches!(tensor.rank(), 1 | 2))
    {
        return invalid("multi_dot(): expected matrices, and vectors at the ends alone");
    }
    let mut product = (*first).clone();
    for tensor in &tensors[1..] {
        product = matrix_product(args, &product, tensor)?;
    }
    Ok(TensorType::contiguous(product.dtype, product.shape).into())
}

/// `pairwise_distance`: along the last dimension.
pub(super) fn pairwise_distance(args: &Args) -> Inferred<Value> {
    let tensors = pair(args, ["x1", "x2"])?;
    let mut shape = args.scope.broadcast(tensors.map(|tensor| tensor.shape.as_slice()))?;
    let keeps = args.flag("keepdim")?;
    match shape.pop() {
        Some(_) if keeps => shape.push(Dim::fixed(1)),
        Some(_) => {}
        None => return invalid("pairwise_distance expects tensors of at least one dimension"),
    }
    Ok(TensorType::contiguous(to_float(common(tensors)), shape).into())
}

/// `kron`: every element of one times all of the other.
pub(super) fn kron(args: &Args) -> Inferred<Value> {
    let tensors = pair(args, ["input", "other"])?;
    let rank = tensors[0].rank().max(tensors[1].rank());
    let size = |tensor: &TensorType, axis: usize| {
        let missing = rank - tensor.rank();
        axis.checked_sub(missing).map_or(Dim::fixed(1), |axis| tensor.shape[axis].clone())
    };
    let mut shape = Shape::new();
    for axis in 0..rank {
        shape.push(size(tensors[0], axis).mul(&size(tensors[1], axis))?);
    }
    Ok(TensorType::contiguous(common(tensors), shape).into())
}

/// `cross` and `linalg.cross`: of vectors of three elements.
pub(super) fn cross(args: &Args) -> Inferred<Value> {
    let tensors = pair(args, ["input", "other"])?;
    if tensors[0].rank() != tensors[1].rank() {
        return invalid("linalg.cross: inputs must have the same number of dimensions.");
    }
    let shape = args.scope.broadcast(tensors.map(|tensor| tensor.shape.as_slice()))?;
    let axis = match args.optional_int("dim")? {
        Some(axis) => wrap_axis(axis.size, shape.len())?,
        None => match shape.iter().position(|dim| dim.size == 3) {
            Some(axis) => axis,
            None => return invalid("no dimension of size 3 in input"),
        },
    };
    if tensors.iter().any(|tensor| tensor.shape.get(axis).is_none_or(|dim| dim.size != 3)) {
        return invalid(format!("linalg.cross: inputs dimension {axis} must have length 3"));
    }
    Ok(TensorType::contiguous(common(tensors), shape).into())
}

/// `trace`: the sum of a matrix's diagonal.
pub(super) fn trace(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    if input.rank() != 2 {
        return invalid("trace: expected a matrix");
    }
    let dtype = if input.dtype.kind() < Kind::Float { DType::Int64 } else { input.dtype };
    Ok(TensorType::contiguous(dtype, Shape::new()).into())
}
