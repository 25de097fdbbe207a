//! Indexing with tensors: `x[i, :, mask]` and its assignment.

use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::element::{Truth, with_element, with_width};
use crate::native::tensor::layout::{
    Dims, Runs, broadcast_shapes, coalesce, numel, pointwise_order,
};
use crate::native::tensor::{Buffer, Tensor};
use passnet_graph::DType;

/// `torch.nonzero`: one row of coordinates per true element, laid out column by column as torch does.
pub fn nonzero(input: &Tensor) -> Result<Tensor> {
    let flags = input.to_dtype(DType::Bool)?;
    let flags = flags.words::<Truth>()?;
    let found: Vec<usize> =
        flags.iter().enumerate().filter(|(_, f)| f.0 != 0).map(|(i, _)| i).collect();
    let ndim = input.ndim();
    let mut out = Buffer::<i64>::new(found.len() * ndim)?;
    for (i, &position) in found.iter().enumerate() {
        let mut rest = position;
        for d in (0..ndim).rev() {
            out[d * found.len() + i] = (rest % input.shape()[d]) as i64;
            rest /= input.shape()[d];
        }
    }
    Tensor::from_buffer(out, &[ndim, found.len()])?.t()
}

/// `torch.masked_select`.
pub fn masked_select(input: &Tensor, mask: &Tensor) -> Result<Tensor> {
    ensure!(mask.dtype() == DType::Bool, DType, "masked_select: expected BoolTensor for mask");
    let shape = broadcast_shapes(&[input.shape(), mask.shape()])?;
    let (input, mask) = (input.expand_to(&shape)?, mask.expand_to(&shape)?);
    if shape.is_empty() {
        return masked_select(&input.unsqueeze(0)?, &mask.unsqueeze(0)?);
    }
    index(&input, &[Some(mask)])
}

/// An indexing expression, resolved: where each selected slice begins, and what a slice is.
struct Selection {
    /// Sizes of the result.
    shape: Dims,
    /// Dimensions of the source ahead of the indexed ones, that stay ahead.
    before: (Dims, Dims),
    /// Offsets that the index tensors name, in order of the broadcast index.
    offsets: Vec<usize>,
    /// Dimensions within a slice.
    after: (Dims, Dims),
    /// The memory order torch gives to the result: sliced dimensions keep the order they have in the source.
    order: Dims,
}

/// Masks become coordinates, so that only integer indices remain.
fn expand_masks(input: &Tensor, indices: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let mut result = Vec::new();
    for index in indices {
        let Some(index) = index else {
            result.push(None);
            continue;
        };
        if !matches!(index.dtype(), DType::Bool | DType::UInt8) {
            result.push(Some(index.clone()));
            continue;
        }
        let at = result.len();
        for (axis, &size) in index.shape().iter().enumerate() {
            let own = input.shape().get(at + axis);
            ensure!(
                own == Some(&size),
                Index,
                "The shape of the mask {:?} at index {axis} does not match the shape of the indexed tensor {:?} at index {}",
                index.shape(),
                input.shape(),
                at + axis
            );
        }
        ensure!(index.ndim() > 0, Index, "a mask without dimensions selects none of the tensor's");
        let coordinates = nonzero(index)?;
        for column in 0..index.ndim() {
            result.push(Some(coordinates.select(1, column as i64)?));
        }
    }
    ensure!(
        result.len() <= input.ndim(),
        Index,
        "too many indices for tensor of dimension {}",
        input.ndim()
    );
    Ok(result)
}

fn resolve(input: &Tensor, indices: &[Option<Tensor>]) -> Result<Selection> {
    let indices = expand_masks(input, indices)?;
    let indexed: Dims = (0..indices.len()).filter(|&d| indices[d].is_some()).collect();
    ensure!(!indexed.is_empty(), Index, "an index needs at least one tensor");
    let tensors: Vec<&Tensor> = indices.iter().flatten().collect();
    let shapes: Vec<&[usize]> = tensors.iter().map(|t| t.shape()).collect();
    let common = match broadcast_shapes(&shapes) {
        Ok(common) => common,
        Err(_) => bail!(
            Index,
            "shape mismatch: indexing tensors could not be broadcast together with shapes {shapes:?}"
        ),
    };
    let mut offsets = vec![0usize; numel(&common)?];
    for (tensor, &d) in tensors.iter().zip(&indexed) {
        ensure!(
            matches!(tensor.dtype(), DType::Int64 | DType::Int32 | DType::Int16 | DType::Int8),
            Index,
            "tensors used as indices must be long, int, byte or bool tensors"
        );
        let size = input.shape()[d] as i64;
        let wide = tensor.expand_to(&common)?;
        for (offset, &i) in offsets.iter_mut().zip(wide.values::<i64>()?.iter()) {
            ensure!(
                i >= -size && i < size,
                Index,
                "index {i} is out of bounds for dimension {d} with size {size}"
            );
            *offset += (if i < 0 { i + size } else { i }) as usize * input.strides()[d];
        }
    }
    let (first, last) = (indexed[0], indexed[indexed.len() - 1]);
    let together = last - first + 1 == indexed.len();
    let split = if together { first } else { 0 };
    let rest: Dims = (0..input.ndim()).filter(|d| !indexed.contains(d)).collect();
    let (ahead, behind): (Dims, Dims) = rest.into_iter().partition(|&d| together && d < split);
    let sizes = |dims: &Dims| -> Dims { dims.iter().map(|&d| input.shape()[d]).collect() };
    let strides = |dims: &Dims| -> Dims { dims.iter().map(|&d| input.strides()[d]).collect() };
    let mut shape = sizes(&ahead);
    shape.extend_from_slice(&common);
    shape.extend(sizes(&behind));
    let mut source_strides = strides(&ahead);
    source_strides.extend(common.iter().map(|_| 0));
    source_strides.extend(strides(&behind));
    let order = pointwise_order(&shape, &[(&shape, &source_strides)]);
    Ok(Selection {
        order,
        shape,
        before: (sizes(&ahead), strides(&ahead)),
        offsets,
        after: (sizes(&behind), strides(&behind)),
    })
}

impl Selection {
    /// Calls `visit(position in the result, offset in the source, stride, length)` for every run.
    fn for_each_run(&self, base: usize, mut visit: impl FnMut(usize, usize, usize, usize)) {
        let (shape, strides) = coalesce(&self.after.0, &[&self.after.1]);
        let strides = &strides[0];
        let last = shape.len() - 1;
        let (length, step) = (shape[last], strides[last]);
        if length == 0 {
            return;
        }
        let mut position = 0;
        for ahead in Runs::new(&self.before.0, &self.before.1, base) {
            for offset in &self.offsets {
                for start in Runs::new(&shape[..last], &strides[..last], ahead + offset) {
                    visit(position, start, step, length);
                    position += length;
                }
            }
        }
    }
}

/// `input[indices]`; `None` stands for `:`.
pub fn index(input: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
    let selection = resolve(input, indices)?;
    with_width!(input.dtype(), W => {
        let mut out = Buffer::<W>::new(numel(&selection.shape)?)?;
        let values = input.read::<W>()?;
        if !out.is_empty() {
            selection.for_each_run(input.storage_offset(), |position, start, step, length| {
                let target = &mut out[position..position + length];
                if step == 1 {
                    target.copy_from_slice(&values[start..start + length]);
                } else {
                    for (i, o) in target.iter_mut().enumerate() {
                        *o = values[start + i * step];
                    }
                }
            });
        }
        drop(values);
        let dense = Tensor::from_memory(out.into_memory(), input.dtype(), &selection.shape)?;
        if selection.order.is_sorted() {
            return Ok(dense);
        }
        let ordered = dense.permute_dims(&selection.order).dense_copy(input.dtype())?;
        Ok(Tensor::from_ordered(ordered, &selection.order))
    })
}

/// `target[indices] = values`, or `+=` where `accumulate`.
pub fn index_put(
    target: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Result<()> {
    ensure!(
        values.dtype() == target.dtype(),
        DType,
        "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
        target.dtype(),
        values.dtype()
    );
    let selection = resolve(target, indices)?;
    if selection.shape.contains(&0) {
        return Ok(());
    }
    let values = match values.expand_to(&selection.shape) {
        // A copy, so that assigning a tensor to a part of itself reads the old values.
        Ok(wide) => wide.dense_copy(target.dtype())?,
        Err(_) => bail!(
            Shape,
            "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {:?}",
            values.shape(),
            selection.shape.as_slice()
        ),
    };
    if !accumulate {
        return with_width!(target.dtype(), W => {
            let values = values.words::<W>()?;
            let mut out = target.write::<W>()?;
            selection.for_each_run(target.storage_offset(), |position, start, step, length| {
                for i in 0..length {
                    out[start + i * step] = values[position + i];
                }
            });
            Ok(())
        });
    }
    with_element!(target.dtype(), T => {
        let values = values.words::<T>()?;
        let mut out = target.write::<T>()?;
        selection.for_each_run(target.storage_offset(), |position, start, step, length| {
            for i in 0..length {
                let o = &mut out[start + i * step];
                *o = super::scatter::combine(super::ScatterOp::Add, *o, values[position + i]);
            }
        });
        Ok(())
    })
}
