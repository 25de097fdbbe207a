//! Reading and writing elements by index.

mod advanced;
mod bag;
mod scatter;
mod unique;

pub use advanced::{index, index_put, masked_select, nonzero};
pub use bag::{Bag, BagMode, bound_rows, embedding_bag};
pub use scatter::{ScatterOp, index_add, scatter, scatter_value};
pub(crate) use unique::{Unique, unique};

use crate::native::error::{Result, ensure};
use crate::native::tensor::element::with_width;
use crate::native::tensor::layout::{Dims, Runs, numel};
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::parallel::{GRAIN, for_each_chunk};
use passnet_graph::DType;

/// The values of an index tensor, each checked against the size it indexes.
fn checked_indices(index: &Tensor, size: usize, name: &str) -> Result<Vec<usize>> {
    ensure!(
        matches!(index.dtype(), DType::Int64 | DType::Int32),
        DType,
        "{name}: Expected dtype int32 or int64 for index, got {}",
        index.dtype()
    );
    let values = index.values::<i64>()?;
    let mut checked = Vec::with_capacity(values.len());
    for &value in values.iter() {
        ensure!(
            value >= 0 && value < size as i64,
            Index,
            "index {value} is out of bounds for dimension of size {size} in {name}"
        );
        checked.push(value as usize);
    }
    Ok(checked)
}

/// `torch.index_select`.
pub fn index_select(input: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    ensure!(index.ndim() <= 1, Index, "index_select(): Index is supposed to be a vector");
    let d = input.dim(dim)?;
    if input.ndim() == 0 {
        checked_indices(index, 1, "index_select()")?;
        return input.copy();
    }
    let rows = checked_indices(index, input.shape()[d], "index_select()")?;
    let mut shape: Dims = input.shape().into();
    shape[d] = rows.len();
    select_rows(input, d, &rows, &shape)
}

/// Copies whole slices along dimension `d` into a tensor of the given shape.
fn select_rows(input: &Tensor, d: usize, rows: &[usize], shape: &[usize]) -> Result<Tensor> {
    let size = input.shape()[d];
    let inner: usize = input.shape()[d + 1..].iter().product();
    with_width!(input.dtype(), W => {
        let values = input.words::<W>()?;
        let mut out = Buffer::<W>::new(numel(shape)?)?;
        if inner > 0 && !rows.is_empty() {
            let per_chunk = (GRAIN / inner).max(1);
            for_each_chunk(&mut out, per_chunk * inner, |index, piece| {
                for (i, target) in piece.chunks_mut(inner).enumerate() {
                    let at = index * per_chunk + i;
                    let source = (at / rows.len() * size + rows[at % rows.len()]) * inner;
                    target.copy_from_slice(&values[source..source + inner]);
                }
            });
        }
        Tensor::from_memory(out.into_memory(), input.dtype(), shape)
    })
}

/// `torch.nn.functional.embedding`.
pub fn embedding(index: &Tensor, weight: &Tensor) -> Result<Tensor> {
    ensure!(weight.ndim() == 2, Shape, "'weight' must be 2-D");
    let rows = checked_indices(index, weight.shape()[0], "embedding()")?;
    let mut shape: Dims = index.shape().into();
    shape.push(weight.shape()[1]);
    select_rows(weight, 0, &rows, &shape)
}

/// Offsets into `tensor` of the elements that `index` (aligned with it but along `d`) names.
pub(crate) fn offsets_along(
    tensor: &Tensor,
    d: usize,
    index: &Tensor,
    name: &str,
) -> Result<Vec<usize>> {
    let named = checked_indices(index, tensor.shape()[d], name)?;
    let mut strides: Dims = tensor.strides().into();
    let along = strides[d];
    strides[d] = 0;
    let bases = Runs::new(index.shape(), &strides, tensor.storage_offset());
    Ok(bases.zip(named).map(|(base, i)| base + i * along).collect())
}

fn check_gather(input: &Tensor, d: usize, index: &Tensor, name: &str) -> Result<()> {
    ensure!(
        index.ndim() == input.ndim(),
        Shape,
        "{name}: Index tensor must have the same number of dimensions as input tensor"
    );
    for (axis, (i, s)) in index.shape().iter().zip(input.shape()).enumerate() {
        ensure!(
            axis == d || i <= s,
            Shape,
            "{name}: Size does not match at dimension {axis} expected index {:?} to be no larger than self {:?} apart from dimension {d}",
            index.shape(),
            input.shape()
        );
    }
    Ok(())
}

/// `torch.gather`.
pub fn gather(input: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    if input.ndim() == 0 || index.ndim() == 0 {
        let (input, index_1d) =
            (input.reshape_to(&[input.numel()])?, index.reshape_to(&[index.numel()])?);
        return gather(&input, 0, &index_1d)?.reshape_to(index.shape());
    }
    let d = input.dim(dim)?;
    if index.numel() == 0 {
        return Tensor::zeros(index.shape(), input.dtype());
    }
    check_gather(input, d, index, "gather")?;
    let offsets = offsets_along(input, d, index, "gather()")?;
    with_width!(input.dtype(), W => {
        let values = input.read::<W>()?;
        let mut out = Buffer::<W>::new(offsets.len())?;
        for (o, at) in out.iter_mut().zip(&offsets) {
            *o = values[*at];
        }
        Tensor::from_memory(out.into_memory(), input.dtype(), index.shape())
    })
}

/// `torch.take_along_dim`: gather with broadcasting.
pub fn take_along_dim(input: &Tensor, index: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    let Some(dim) = dim else {
        return gather(&input.reshape(&[-1])?, 0, &index.reshape(&[-1])?);
    };
    let d = input.dim(dim)?;
    ensure!(
        input.ndim() == index.ndim(),
        Shape,
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, and {} dimensions for indices",
        input.ndim(),
        index.ndim()
    );
    let mut wide: Dims = input.shape().into();
    let mut index_shape: Dims = index.shape().into();
    for axis in 0..input.ndim() {
        if axis != d {
            let common = crate::native::tensor::layout::broadcast_shapes(&[
                &wide[axis..=axis],
                &index_shape[axis..=axis],
            ])?;
            wide[axis] = common[0];
            index_shape[axis] = common[0];
        }
    }
    gather(&input.expand_to(&wide)?, d as i64, &index.expand_to(&index_shape)?)
}
