//! Operations that only move elements: joining, repeating, rolling, shuffling.

mod pad;

pub use pad::{PadMode, pad};

use super::indexing::index_select;
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::{Plain, with_width};
use crate::native::tensor::layout::{
    Dims, Runs, channels_last_order, contiguous, numel, suggests_channels_last,
};
use crate::native::tensor::{Buffer, Scalar, Tensor, Values};
use passnet_cpu::parallel::{GRAIN, for_each_chunk};
use passnet_graph::DType;

/// `torch.cat`: types are promoted, empty vectors are skipped.
pub fn cat(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    ensure!(!tensors.is_empty(), Value, "torch.cat(): expected a non-empty list of Tensors");
    let dtype = tensors[1..].iter().fold(tensors[0].dtype(), |d, t| d.promote(t.dtype()));
    let parts = tensors
        .iter()
        .filter(|t| t.shape() != [0])
        .map(|t| t.to_dtype(dtype))
        .collect::<Result<Vec<_>>>()?;
    let Some(first) = parts.first() else { return Tensor::zeros(&[0], dtype) };
    ensure!(
        first.ndim() > 0,
        Shape,
        "zero-dimensional tensor (at position 0) cannot be concatenated"
    );
    let d = first.dim(dim)?;
    for (i, part) in parts.iter().enumerate() {
        ensure!(
            part.ndim() == first.ndim(),
            Shape,
            "Tensors must have same number of dimensions: got {} and {}",
            first.ndim(),
            part.ndim()
        );
        for (axis, (a, b)) in part.shape().iter().zip(first.shape()).enumerate() {
            ensure!(
                axis == d || a == b,
                Shape,
                "Sizes of tensors must match except in dimension {d}. Expected size {b} but got size {a} for tensor number {i} in the list."
            );
        }
    }
    if parts.iter().all(|t| suggests_channels_last(t.shape(), t.strides())) {
        let order = channels_last_order(first.ndim());
        let moved: Vec<Tensor> = parts.iter().map(|t| t.permute_dims(&order)).collect();
        let position = order.iter().position(|&o| o == d).unwrap_or(d);
        return Ok(Tensor::from_ordered(join(&moved, position, dtype)?, &order));
    }
    join(&parts, d, dtype)
}

fn join(parts: &[Tensor], d: usize, dtype: DType) -> Result<Tensor> {
    let mut shape: Dims = parts[0].shape().into();
    shape[d] = parts.iter().map(|t| t.shape()[d]).sum();
    let inner: usize = shape[d + 1..].iter().product();
    let outer: usize = shape[..d].iter().product();
    let total = shape[d] * inner;
    with_width!(dtype, W => {
        let mut out = Buffer::<W>::new(numel(&shape)?)?;
        if outer == 1 {
            let mut start = 0;
            for part in parts {
                let length = part.numel();
                part.gather_words(&mut out[start..start + length])?;
                start += length;
            }
        } else if let Some(rows) = GRAIN.checked_div(total) {
            let parts = parts.iter().map(|t| Rows::<W>::new(t, d)).collect::<Result<Vec<_>>>()?;
            let rows = rows.max(1);
            let interleaves = parts.iter().all(|part| part.length == 1);
            for_each_chunk(&mut out, rows * total, |index, piece| {
                if interleaves {
                    for (place, part) in parts.iter().enumerate() {
                        let elements = &part.values[index * rows..];
                        for (row, element) in piece.chunks_exact_mut(total).zip(elements) {
                            row[place] = *element;
                        }
                    }
                    return;
                }
                for (r, row) in piece.chunks_mut(total).enumerate() {
                    let at = index * rows + r;
                    let mut start = 0;
                    for part in &parts {
                        row[start..start + part.length].copy_from_slice(part.row(at));
                        start += part.length;
                    }
                }
            });
        }
        Tensor::from_memory(out.into_memory(), dtype, &shape)
    })
}

/// Elements of a row that are worth remembering where it starts.
const LEAST_RUN: usize = 8;

/// A tensor as rows: all that lies at one index of the dimensions before the `d`-th.
struct Rows<'a, W> {
    values: Values<'a, W>,
    length: usize,
    /// Where rows start, unless they follow one another.
    starts: Option<Vec<usize>>,
}

impl<'a, W: Plain> Rows<'a, W> {
    fn new(tensor: &'a Tensor, d: usize) -> Result<Self> {
        let (shape, strides) = (tensor.shape(), tensor.strides());
        let length = shape[d..].iter().product();
        let in_order: Dims = contiguous(&shape[d..]);
        let is_run = (d..shape.len()).all(|i| shape[i] == 1 || strides[i] == in_order[i - d]);
        // Rows that are runs of memory are read where they lie, unless finding them costs more than copying them.
        if !is_run || tensor.is_contiguous() || length < LEAST_RUN {
            return Ok(Rows { values: tensor.words()?, length, starts: None });
        }
        let starts = Runs::new(&shape[..d], &strides[..d], 0).collect();
        Ok(Rows { values: tensor.strided_words()?.data, length, starts: Some(starts) })
    }

    fn row(&self, index: usize) -> &[W] {
        let start = self.starts.as_ref().map_or(index * self.length, |starts| starts[index]);
        &self.values[start..start + self.length]
    }
}

/// `torch.stack`.
pub fn stack(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    ensure!(!tensors.is_empty(), Value, "stack expects a non-empty TensorList");
    for (i, t) in tensors.iter().enumerate() {
        ensure!(
            t.shape() == tensors[0].shape(),
            Shape,
            "stack expects each tensor to be equal size, but got {:?} at entry 0 and {:?} at entry {i}",
            tensors[0].shape(),
            t.shape()
        );
    }
    let d = passnet_graph::view::shape::axis(dim, tensors[0].ndim() + 1)?;
    let dtype = tensors[1..].iter().fold(tensors[0].dtype(), |k, t| k.promote(t.dtype()));
    let parts = tensors
        .iter()
        .map(|t| t.to_dtype(dtype)?.unsqueeze(d as i64))
        .collect::<Result<Vec<_>>>()?;
    join(&parts, d, dtype)
}

/// `Tensor.repeat`.
pub fn repeat(input: &Tensor, counts: &[usize]) -> Result<Tensor> {
    ensure!(
        counts.len() >= input.ndim(),
        Shape,
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
    );
    let lead = counts.len() - input.ndim();
    let mut view = input.clone();
    for _ in 0..lead {
        view = view.unsqueeze(0)?;
    }
    // Each dimension becomes (count, size): the count is a stride of zero.
    let (mut expanded, mut shape) = (Dims::new(), Dims::new());
    let sizes: Dims = view.shape().into();
    for (d, &count) in counts.iter().enumerate() {
        view = view.unsqueeze(2 * d as i64)?;
        expanded.extend([count, sizes[d]]);
        shape.push(count.checked_mul(sizes[d]).ok_or_else(|| {
            crate::native::error::err!(Value, "repeat counts {counts:?} are too large")
        })?);
    }
    let all = view.expand_to(&expanded)?;
    numel(&shape)?;
    all.dense_copy(input.dtype())?.reshape_to(&shape)
}

/// `torch.tile`: as repeat, with counts padded by ones.
pub fn tile(input: &Tensor, counts: &[usize]) -> Result<Tensor> {
    let mut all = vec![1; input.ndim().saturating_sub(counts.len())];
    all.extend_from_slice(counts);
    repeat(input, &all)
}

/// `torch.repeat_interleave` with one count for all elements.
pub fn repeat_interleave(input: &Tensor, count: usize, dim: Option<i64>) -> Result<Tensor> {
    let (input, d) = match dim {
        Some(dim) => (input.clone(), input.dim(dim)?),
        None => (input.reshape(&[-1])?, 0),
    };
    let mut expanded: Dims = input.shape().into();
    expanded.insert(d + 1, count);
    let mut shape: Dims = input.shape().into();
    shape[d] = shape[d].saturating_mul(count);
    numel(&shape)?;
    input
        .unsqueeze(d as i64 + 1)?
        .expand_to(&expanded)?
        .dense_copy(input.dtype())?
        .reshape_to(&shape)
}

/// `torch.repeat_interleave` with a count for each element.
pub fn repeat_interleave_each(input: &Tensor, counts: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    let (input, d) = match dim {
        Some(dim) => (input.clone(), input.dim(dim)?),
        None => (input.reshape(&[-1])?, 0),
    };
    let size = input.size(d as i64)?;
    let counts = counts.reshape(&[-1])?;
    let counts = counts.expand_to(&[size])?.to_vec::<i64>()?;
    let mut positions = Vec::new();
    for (i, &count) in counts.iter().enumerate() {
        ensure!(count >= 0, Value, "repeats can not be negative");
        numel(&[positions.len().saturating_add(count as usize), 8])?;
        positions.extend(std::iter::repeat_n(i as i64, count as usize));
    }
    index_select(&input, d as i64, &Tensor::from_slice(&positions, &[positions.len()])?)
}

/// `torch.flip`.
pub fn flip(input: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let mut result = input.copy()?;
    for &dim in dims {
        if input.ndim() == 0 {
            continue;
        }
        let size = input.size(dim)? as i64;
        let reversed: Vec<i64> = (0..size).rev().collect();
        result = index_select(&result, dim, &Tensor::from_slice(&reversed, &[reversed.len()])?)?;
    }
    Ok(result)
}

/// `torch.roll`; without dimensions, over the flattened elements.
pub fn roll(input: &Tensor, shifts: &[i64], dims: &[i64]) -> Result<Tensor> {
    if dims.is_empty() {
        ensure!(shifts.len() == 1, Value, "shifts and dimensions must align");
        return roll(&input.reshape(&[-1])?, shifts, &[0])?.reshape_to(input.shape());
    }
    ensure!(
        shifts.len() == dims.len(),
        Value,
        "shifts and dimensions must align. shifts: {}, dims:{}",
        shifts.len(),
        dims.len()
    );
    let mut result = input.contiguous()?;
    for (&shift, &dim) in shifts.iter().zip(dims) {
        let size = result.size(dim)? as i64;
        if size == 0 {
            continue;
        }
        let start = (size - shift.rem_euclid(size)) % size;
        if start != 0 {
            let (head, tail) = (
                result.slice(dim, Some(0), Some(start), 1)?,
                result.slice(dim, Some(start), None, 1)?,
            );
            let d = result.dim(dim)?;
            result = join(&[tail, head], d, input.dtype())?;
        }
    }
    if result.shares_storage(input) { result.copy() } else { Ok(result) }
}

/// Which side of a diagonal is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triangle {
    /// `torch.tril`.
    Lower,
    /// `torch.triu`.
    Upper,
}

/// `torch.tril`, `torch.triu`.
pub fn triangle(input: &Tensor, which: Triangle, diagonal: i64) -> Result<Tensor> {
    ensure!(input.ndim() >= 2, Shape, "tril/triu: input tensor must have at least 2 dimensions");
    let (rows, columns) = (input.shape()[input.ndim() - 2], input.shape()[input.ndim() - 1]);
    let result = input.dense_copy(input.dtype())?;
    if result.numel() == 0 {
        return Ok(result);
    }
    with_width!(input.dtype(), W => {
        let mut values = result.write::<W>()?;
        for (i, row) in values[..rows * columns * (input.numel() / (rows * columns))].chunks_mut(columns).enumerate() {
            let edge = (i % rows) as i64 + diagonal;
            match which {
                Triangle::Lower => row[(edge + 1).clamp(0, columns as i64) as usize..].fill(W::default()),
                Triangle::Upper => row[..edge.clamp(0, columns as i64) as usize].fill(W::default()),
            }
        }
    });
    Ok(result)
}

/// `torch.diag`: a matrix from its diagonal, or the diagonal of a matrix.
pub fn diag(input: &Tensor, diagonal: i64) -> Result<Tensor> {
    match input.ndim() {
        1 => diag_embed(input, diagonal),
        2 => input.diagonal(diagonal, 0, 1)?.copy(),
        n => Err(crate::native::error::err!(Shape, "diag(): Supports 1D or 2D tensors. Got {n}D")),
    }
}

/// `torch.diag_embed` into the last two dimensions.
pub fn diag_embed(input: &Tensor, offset: i64) -> Result<Tensor> {
    ensure!(input.ndim() > 0, Shape, "diag_embed needs at least one dimension");
    let last = input.shape()[input.ndim() - 1];
    let side = last.saturating_add(offset.unsigned_abs() as usize);
    let mut shape: Dims = input.shape().into();
    shape.pop();
    shape.extend([side, side]);
    let result = Tensor::zeros(&shape, input.dtype())?;
    result.diagonal(offset, -2, -1)?.copy_from(input)?;
    Ok(result)
}

/// `torch.nn.functional.one_hot`; a negative number of classes means as many as are needed.
pub fn one_hot(input: &Tensor, classes: i64) -> Result<Tensor> {
    ensure!(
        input.dtype() == DType::Int64,
        DType,
        "one_hot is only applicable to index tensor of type LongTensor."
    );
    let values = input.to_vec::<i64>()?;
    let most = values.iter().copied().max().unwrap_or(-1);
    ensure!(values.iter().all(|v| *v >= 0), Index, "Class values must be non-negative.");
    let classes = if classes < 0 { most + 1 } else { classes };
    ensure!(most < classes, Index, "Class values must be smaller than num_classes.");
    ensure!(classes > 0, Value, "Can not infer total number of classes from empty tensor.");
    let mut shape: Dims = input.shape().into();
    shape.push(classes as usize);
    let mut out = Buffer::<i64>::zeroed(numel(&shape)?)?;
    for (row, v) in out.chunks_mut(classes as usize).zip(&values) {
        row[*v as usize] = 1;
    }
    Tensor::from_buffer(out, &shape)
}

/// `torch.meshgrid`: views of the inputs over a common grid.
pub fn meshgrid(tensors: &[Tensor], xy: bool) -> Result<Vec<Tensor>> {
    ensure!(!tensors.is_empty(), Value, "meshgrid expects a non-empty TensorList");
    let mut axes: Vec<usize> = (0..tensors.len()).collect();
    if xy && tensors.len() >= 2 {
        axes.swap(0, 1);
    }
    let mut grid: Dims = tensors.iter().map(Tensor::numel).collect();
    if xy && tensors.len() >= 2 {
        grid.swap(0, 1);
    }
    tensors
        .iter()
        .zip(axes)
        .map(|(t, axis)| {
            ensure!(
                t.ndim() <= 1,
                Shape,
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {:?}",
                t.shape()
            );
            let mut shape: Dims = grid.iter().map(|_| 1).collect();
            shape[axis] = t.numel();
            t.reshape_to(&shape)?.expand_to(&grid)
        })
        .collect()
}

/// `torch.pixel_shuffle`: channels become finer rows and columns.
pub fn pixel_shuffle(input: &Tensor, factor: usize) -> Result<Tensor> {
    ensure!(
        input.ndim() >= 3 && factor > 0,
        Shape,
        "pixel_shuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
        input.ndim()
    );
    let lead = input.ndim() - 3;
    let [c, h, w] = [input.shape()[lead], input.shape()[lead + 1], input.shape()[lead + 2]];
    let square = factor.saturating_mul(factor);
    ensure!(
        c.is_multiple_of(square),
        Shape,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)={c} is not divisible by {square}"
    );
    let mut split: Dims = input.shape()[..lead].into();
    split.extend([c / square, factor, factor, h, w]);
    let l = lead as i64;
    let mut order: Vec<i64> = (0..l).collect();
    order.extend([l, l + 3, l + 1, l + 4, l + 2]);
    let mut shape: Dims = input.shape()[..lead].into();
    shape.extend([c / square, h * factor, w * factor]);
    input.reshape_to(&split)?.permute(&order)?.dense_copy(input.dtype())?.reshape_to(&shape)
}

/// `torch.pixel_unshuffle`: the reverse of `pixel_shuffle`.
pub fn pixel_unshuffle(input: &Tensor, factor: usize) -> Result<Tensor> {
    ensure!(
        input.ndim() >= 3 && factor > 0,
        Shape,
        "pixel_unshuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
        input.ndim()
    );
    let lead = input.ndim() - 3;
    let [c, h, w] = [input.shape()[lead], input.shape()[lead + 1], input.shape()[lead + 2]];
    ensure!(
        h.is_multiple_of(factor) && w.is_multiple_of(factor),
        Shape,
        "pixel_unshuffle expects height and width to be divisible by downscale_factor, but input.size(-2)={h}, input.size(-1)={w} are not divisible by {factor}"
    );
    let mut split: Dims = input.shape()[..lead].into();
    split.extend([c, h / factor, factor, w / factor, factor]);
    let l = lead as i64;
    let mut order: Vec<i64> = (0..l).collect();
    order.extend([l, l + 2, l + 4, l + 1, l + 3]);
    let mut shape: Dims = input.shape()[..lead].into();
    shape.extend([c * factor * factor, h / factor, w / factor]);
    input.reshape_to(&split)?.permute(&order)?.dense_copy(input.dtype())?.reshape_to(&shape)
}

/// `torch.nn.functional.channel_shuffle`.
pub fn channel_shuffle(input: &Tensor, groups: usize) -> Result<Tensor> {
    ensure!(input.ndim() >= 3, Shape, "channel_shuffle expects input with > 2 dims");
    let c = input.shape()[1];
    ensure!(
        groups > 0 && c.is_multiple_of(groups),
        Value,
        "Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
    );
    let mut split: Dims = input.shape().into();
    split[1] = groups;
    split.insert(2, c / groups);
    input.reshape_to(&split)?.transpose(1, 2)?.dense_copy(input.dtype())?.reshape_to(input.shape())
}

/// A tensor like another, filled with one value: `zeros_like`, `ones_like`, `full_like`.
pub fn full_like(input: &Tensor, value: Scalar, dtype: DType) -> Result<Tensor> {
    let order = input.memory_order();
    let shape: Dims = order.iter().map(|&d| input.shape()[d]).collect();
    Ok(Tensor::from_ordered(Tensor::full(&shape, value, dtype)?, &order))
}
