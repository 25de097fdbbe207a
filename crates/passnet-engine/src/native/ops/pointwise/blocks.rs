//! The loop under every elementwise operation.
//!
//! Operands of any layout and type are brought, one cache-sized block at a time, into runs of the type in which the kernel
//! computes; a run that already lies so is used in place. Kernels therefore exist once per computing type, not once per
//! combination of element types and strides, and half-precision results are rounded once, at the end.

use crate::native::error::Result;
use crate::native::tensor::convert::{Load, Store, cast, cast_mut, loader, storer};
use crate::native::tensor::element::Compute;
use crate::native::tensor::layout::{self, Dims, Operand};
use crate::native::tensor::{Buffer, Read, Tensor};
use passnet_cpu::parallel::{GRAIN, for_each_chunk};
use passnet_graph::DType;
use smallvec::SmallVec;

/// Elements handled at a time: small enough for several operands to stay in the first-level cache.
pub(crate) const BLOCK: usize = 1024;
/// Rows shorter than this are packed into blocks; longer ones are cut into blocks of their own.
const SHORT_ROW: usize = 256;

/// One operand's elements for one block.
#[derive(Clone, Copy)]
pub(crate) enum Block<'a, C> {
    Run(&'a [C]),
    /// The same value throughout.
    One(C),
}

/// What is computed for a block of operands.
pub(crate) type Kernel<'a, C> = &'a (dyn Fn(&[Block<'_, C>], &mut [C]) + Sync);

struct Source<'a, C> {
    memory: Read<'a, u8>,
    load: Load<C>,
    strides: Dims,
    offset: usize,
    /// Already of the computing type.
    direct: bool,
    /// Steps through memory exactly as the output does.
    flat: bool,
}

/// How results become elements, and elements that are overwritten become operands.
#[derive(Clone, Copy)]
struct Output<C> {
    dtype: DType,
    load: Load<C>,
    store: Store<C>,
}

impl<C: Compute> Output<C> {
    fn new(dtype: DType) -> Self {
        Output { dtype, load: loader::<C>(dtype), store: storer::<C>(dtype) }
    }
}

/// Where the loop stands: the row (by index over the outer dimensions) and the column in it.
pub(super) struct Plan<'a, C> {
    shape: Dims,
    sources: SmallVec<[Source<'a, C>; 4]>,
}

impl<'a, C: Compute> Plan<'a, C> {
    /// `order` is the output's memory order; inputs are already of the output's shape.
    pub(super) fn new(inputs: &'a [Tensor], order: &[usize]) -> Result<Self> {
        let views: SmallVec<[Tensor; 4]> = inputs.iter().map(|t| t.permute_dims(order)).collect();
        let shape: Dims = match views.first() {
            Some(view) => view.shape().into(),
            None => Dims::new(),
        };
        let strides: SmallVec<[&[usize]; 4]> = views.iter().map(|v| v.strides()).collect();
        let (shape, strides) = layout::coalesce(&shape, &strides);
        let dense: Dims = layout::contiguous(&shape);
        let mut sources = SmallVec::new();
        for (tensor, strides) in inputs.iter().zip(strides) {
            sources.push(Source {
                memory: tensor.read::<u8>()?,
                load: loader::<C>(tensor.dtype()),
                flat: strides == dense,
                strides,
                offset: tensor.storage_offset(),
                direct: tensor.dtype() == C::DTYPE,
            });
        }
        Ok(Plan { shape, sources })
    }

    /// Computes `out`, the elements from `start` on. With `in_place`, the old contents of `out` are the first operand.
    fn run(
        &self,
        start: usize,
        out: &mut [u8],
        output: Output<C>,
        in_place: bool,
        kernel: Kernel<'_, C>,
    ) {
        let inner = self.shape[self.shape.len() - 1];
        let size = output.dtype.size();
        let total = out.len() / size;
        let block = BLOCK.min(total);
        let mut scratch = vec![C::default(); (self.sources.len() + 2) * block];
        let (result, scratch) = scratch.split_at_mut(block);
        let (own, scratch) = scratch.split_at_mut(block);
        let mut done = 0;
        while done < total {
            let position = start + done;
            let length = self.run_length(position, total - done).min(block);
            let piece = &mut out[done * size..(done + length) * size];
            let mut blocks: SmallVec<[Block<'_, C>; 5]> = SmallVec::new();
            if in_place {
                (output.load)(piece, 0, 1, &mut own[..length]);
                blocks.push(Block::Run(&own[..length]));
            }
            for (source, scratch) in self.sources.iter().zip(scratch.chunks_mut(block)) {
                blocks.push(self.fetch(source, position, &mut scratch[..length], inner));
            }
            if output.dtype == C::DTYPE {
                kernel(&blocks, cast_mut::<C>(piece));
            } else {
                kernel(&blocks, &mut result[..length]);
                (output.store)(&result[..length], piece);
            }
            done += length;
        }
    }

    pub(super) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// How many of the `left` elements from a position on are handled together.
    pub(super) fn run_length(&self, position: usize, left: usize) -> usize {
        let inner = self.shape[self.shape.len() - 1];
        if inner >= SHORT_ROW { left.min(inner - position % inner) } else { left }
    }

    /// The elements of one operand from a position on, as many as `scratch` holds.
    pub(super) fn fetch_block<'s>(
        &'s self,
        source: usize,
        position: usize,
        scratch: &'s mut [C],
    ) -> Block<'s, C> {
        let inner = self.shape[self.shape.len() - 1];
        self.fetch(&self.sources[source], position, scratch, inner)
    }

    fn fetch<'s>(
        &'s self,
        source: &'s Source<'a, C>,
        position: usize,
        scratch: &'s mut [C],
        inner: usize,
    ) -> Block<'s, C> {
        let length = scratch.len();
        let memory: &[u8] = &source.memory;
        let last = self.shape.len() - 1;
        if source.flat {
            let from = source.offset + position;
            if source.direct {
                return Block::Run(&cast::<C>(memory)[from..from + length]);
            }
            (source.load)(memory, from, 1, scratch);
            return Block::Run(scratch);
        }
        let stride = source.strides[last];
        let offset_of = |row: usize, column: usize| {
            let (mut rest, mut offset) = (row, source.offset + column * stride);
            for d in (0..last).rev() {
                offset += (rest % self.shape[d]) * source.strides[d];
                rest /= self.shape[d];
            }
            offset
        };
        let (row, column) = (position / inner, position % inner);
        if column + length <= inner {
            let from = offset_of(row, column);
            if stride == 0 {
                let mut one = [C::default()];
                (source.load)(memory, from, 0, &mut one);
                return Block::One(one[0]);
            }
            if stride == 1 && source.direct {
                return Block::Run(&cast::<C>(memory)[from..from + length]);
            }
            (source.load)(memory, from, stride, scratch);
            return Block::Run(scratch);
        }
        let (mut filled, mut row, mut column) = (0, row, column);
        while filled < length {
            let run = (inner - column).min(length - filled);
            (source.load)(
                memory,
                offset_of(row, column),
                stride,
                &mut scratch[filled..filled + run],
            );
            filled += run;
            row += 1;
            column = 0;
        }
        Block::Run(scratch)
    }
}

/// A new tensor of `dtype`, laid out as torch would, computed block by block.
pub(crate) fn map<C: Compute>(
    inputs: &[&Tensor],
    dtype: DType,
    kernel: Kernel<'_, C>,
) -> Result<Tensor> {
    let shapes: SmallVec<[&[usize]; 4]> = inputs.iter().map(|t| t.shape()).collect();
    let shape = layout::broadcast_shapes(&shapes)?;
    let operands: SmallVec<[Operand<'_>; 4]> =
        inputs.iter().map(|t| (t.shape(), t.strides())).collect();
    let order = layout::pointwise_order(&shape, &operands);
    let expanded =
        inputs.iter().map(|t| t.expand_to(&shape)).collect::<Result<SmallVec<[_; 4]>>>()?;
    let dense = compute(&expanded, &order, dtype, kernel)?;
    Ok(Tensor::from_ordered(dense, &order))
}

/// A row-major copy in another type.
pub(crate) fn convert<C: Compute>(input: &Tensor, dtype: DType) -> Result<Tensor> {
    let order: Dims = (0..input.ndim()).collect();
    compute(
        std::slice::from_ref(input),
        &order,
        dtype,
        &|inputs: &[Block<'_, C>], out| match inputs[0] {
            Block::Run(run) => out.copy_from_slice(run),
            Block::One(value) => out.fill(value),
        },
    )
}

/// Computes a tensor that is row-major once its dimensions are taken in `order`; inputs have the output's shape.
fn compute<C: Compute>(
    inputs: &[Tensor],
    order: &[usize],
    dtype: DType,
    kernel: Kernel<'_, C>,
) -> Result<Tensor> {
    let shape: Dims = order.iter().map(|&d| inputs[0].shape()[d]).collect();
    let size = dtype.size();
    let mut buffer = Buffer::<u8>::for_elements(layout::numel(&shape)?, dtype)?;
    let plan = Plan::<C>::new(inputs, order)?;
    let output = Output::new(dtype);
    for_each_chunk(&mut buffer, GRAIN * size, |index, piece| {
        plan.run(index * GRAIN, piece, output, false, kernel);
    });
    drop(plan);
    Tensor::from_memory(buffer.into_memory(), dtype, &shape)
}

/// Overwrites `target` with a function of itself (the kernel's first operand) and of `others`.
pub(crate) fn map_in_place<C: Compute>(
    target: &Tensor,
    others: &[&Tensor],
    kernel: Kernel<'_, C>,
) -> Result<()> {
    let expanded =
        others.iter().map(|t| t.expand_to(target.shape())).collect::<Result<SmallVec<[_; 4]>>>()?;
    let dense = layout::is_dense(target.shape(), target.strides());
    if !dense || expanded.iter().any(|other| other.shares_storage(target)) {
        let mut all: SmallVec<[&Tensor; 4]> = SmallVec::new();
        all.push(target);
        all.extend(expanded.iter());
        let result = map(&all, target.dtype(), kernel)?;
        return target.copy_from(&result);
    }
    let order = target.memory_order();
    let size = target.dtype().size();
    let (from, count) = (target.storage_offset(), target.numel());
    let mut memory = target.write::<u8>()?;
    let plan = if expanded.is_empty() {
        Plan::<C> { shape: SmallVec::from_elem(count.max(1), 1), sources: SmallVec::new() }
    } else {
        Plan::<C>::new(&expanded, &order)?
    };
    let output = Output::new(target.dtype());
    for_each_chunk(
        &mut memory[from * size..(from + count) * size],
        GRAIN * size,
        |index, piece| {
            plan.run(index * GRAIN, piece, output, true, kernel);
        },
    );
    Ok(())
}
