//! Strided tensors over shared memory.
//!
//! Invariant: the bytes of a storage are reached only through `read` (many at a time) or `write` (alone), checked by a lock that
//! never waits; a conflict is `TensorError::Busy`, never a data race. Every tensor's sizes, strides and offset stay inside its
//! storage: constructors and views check that once, so kernels may index freely and still cannot leave the buffer.

pub(crate) mod convert;
mod copy;
pub mod element;
mod fingerprint;
mod gather;
pub mod layout;
pub mod memory;
pub mod promote;
mod reinterpret;
mod scalar;
mod views;

pub use element::{Complex, Compute, Element, Truth};
pub use fingerprint::{Fingerprint, FingerprintKey};
pub use layout::{Dims, Region};
pub use memory::{Budget, Buffer};
pub use scalar::Scalar;

use crate::native::error::{Result, TensorError, bail, ensure};
use element::{Plain, with_element};
use memory::Memory;
use passnet_cpu::parallel::for_each_chunk;
use passnet_graph::DType;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

/// Bytes that one thread copies at a time.
const ROLLED_PIECE: usize = 1 << 16;

/// An operand that is a tensor or a Python number: type promotion treats the two differently.
#[derive(Debug, Clone)]
pub enum Arg {
    /// An operand with elements.
    Tensor(Tensor),
    /// A number of Python, which promotes less than a tensor.
    Scalar(Scalar),
}

impl Arg {
    /// The operand as a tensor; a number becomes a 0-d tensor of its own type.
    pub fn to_tensor(&self) -> Result<Tensor> {
        match self {
            Arg::Tensor(tensor) => Ok(tensor.clone()),
            Arg::Scalar(scalar) => Tensor::full(&[], *scalar, scalar.dtype()),
        }
    }
}

impl From<Tensor> for Arg {
    fn from(tensor: Tensor) -> Self {
        Arg::Tensor(tensor)
    }
}

impl From<&Tensor> for Arg {
    fn from(tensor: &Tensor) -> Self {
        Arg::Tensor(tensor.clone())
    }
}

impl<S: Into<Scalar>> From<S> for Arg {
    fn from(scalar: S) -> Self {
        Arg::Scalar(scalar.into())
    }
}

/// Elements in shared memory, seen through sizes, strides and a start.
#[derive(Clone)]
pub struct Tensor {
    storage: Arc<RwLock<Memory>>,
    dtype: DType,
    shape: Dims,
    strides: Dims,
    offset: usize,
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Tensor({}, {:?}, strides {:?})",
            self.dtype,
            self.shape.as_slice(),
            self.strides.as_slice()
        )
    }
}

/// Shared access to all elements of a tensor's storage.
#[derive(Debug)]
pub struct Read<'a, T> {
    guard: RwLockReadGuard<'a, Memory>,
    element: PhantomData<T>,
}

impl<T: Plain> Deref for Read<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.guard.slice()
    }
}

/// Exclusive access to all elements of a tensor's storage.
#[derive(Debug)]
pub(crate) struct Write<'a, T> {
    guard: RwLockWriteGuard<'a, Memory>,
    element: PhantomData<T>,
}

impl<T: Plain> Deref for Write<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.guard.slice()
    }
}

impl<T: Plain> DerefMut for Write<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.guard.slice_mut()
    }
}

/// A tensor's elements in row-major order: borrowed where they lie so, copied or converted otherwise.
#[derive(Debug)]
pub enum Values<'a, T> {
    /// Those of the tensor itself, and which of them.
    Borrowed(Read<'a, T>, Range<usize>),
    /// A copy.
    Owned(Buffer<T>),
}

impl<T: Plain> Deref for Values<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Values::Borrowed(read, range) => {
                // A view of nothing may begin beyond its storage: the second column of no rows.
                let end = range.end.min(read.len());
                &read[range.start.min(end)..end]
            }
            Values::Owned(buffer) => buffer,
        }
    }
}

/// Elements from a tensor's first one on, to be stepped through by `strides`.
#[derive(Debug)]
pub(crate) struct Strided<'a, T> {
    pub(crate) data: Values<'a, T>,
    pub(crate) strides: Dims,
}

impl Tensor {
    /// Wraps elements already in row-major order.
    pub fn from_buffer<T: Element>(buffer: Buffer<T>, shape: &[usize]) -> Result<Self> {
        Self::from_memory(buffer.into_memory(), T::DTYPE, shape)
    }

    /// Wraps bytes already in row-major order of the given type.
    pub(crate) fn from_memory(memory: Memory, dtype: DType, shape: &[usize]) -> Result<Self> {
        let count = layout::numel(shape)?;
        ensure!(
            memory.slice::<u8>().len() >= count * dtype.size(),
            Shape,
            "shape {shape:?} is invalid for a buffer of {} bytes",
            memory.slice::<u8>().len()
        );
        Ok(Tensor {
            storage: Arc::new(RwLock::new(memory)),
            dtype,
            strides: layout::contiguous(shape),
            shape: shape.into(),
            offset: 0,
        })
    }

    /// A tensor in memory of its own.
    pub fn from_slice<T: Element>(values: &[T], shape: &[usize]) -> Result<Self> {
        let count = layout::numel(shape)?;
        ensure!(
            count == values.len(),
            Shape,
            "shape '{shape:?}' is invalid for input of size {}",
            values.len()
        );
        let mut buffer = Buffer::new(count)?;
        buffer.copy_from_slice(values);
        Self::from_buffer(buffer, shape)
    }

    /// Row-major little-endian bytes, as safetensors stores them.
    pub fn from_bytes(bytes: &[u8], shape: &[usize], dtype: DType) -> Result<Self> {
        let expected = layout::numel(shape)?.saturating_mul(dtype.size());
        ensure!(
            expected == bytes.len(),
            Shape,
            "shape '{shape:?}' of {dtype} is invalid for {} bytes",
            bytes.len()
        );
        let mut buffer = Buffer::<u8>::new(bytes.len())?;
        buffer.copy_from_slice(bytes);
        Self::from_memory(buffer.into_memory(), dtype, shape)
    }

    /// The elements in row-major order as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let dense = self.contiguous()?;
        let bytes = dense.read::<u8>()?;
        Ok(bytes[dense.byte_range()].to_vec())
    }

    /// A tensor of another shape with these elements in row-major order, over and over where there is more room.
    pub fn cycled(&self, shape: &[usize]) -> Result<Self> {
        let dense = self.contiguous()?;
        let bytes = dense.read::<u8>()?;
        let source = &bytes[dense.byte_range()];
        let mut buffer =
            Buffer::<u8>::new(layout::numel(shape)?.saturating_mul(self.dtype.size()))?;
        if source.is_empty() {
            buffer.fill(0);
        } else {
            for part in buffer.chunks_mut(source.len()) {
                part.copy_from_slice(&source[..part.len()]);
            }
        }
        Self::from_memory(buffer.into_memory(), self.dtype, shape)
    }

    /// The same elements in memory of their own, moved on by so many places of their row-major order; what goes over
    /// the end comes first.
    pub fn rolled(&self, by: usize) -> Result<Self> {
        let dense = self.contiguous()?;
        let bytes = dense.read::<u8>()?;
        let source = &bytes[dense.byte_range()];
        let mut buffer = Buffer::<u8>::new(source.len())?;
        if !source.is_empty() {
            let (start, end) =
                source.split_at(source.len() - by % self.numel() * self.dtype.size());
            let (first, last) = buffer.split_at_mut(end.len());
            for (to, from) in [(first, end), (last, start)] {
                for_each_chunk(to, ROLLED_PIECE, |index, to| {
                    to.copy_from_slice(&from[index * ROLLED_PIECE..][..to.len()]);
                });
            }
        }
        Self::from_memory(buffer.into_memory(), self.dtype, self.shape())
    }

    /// The bytes from the first element to the last one that the strides reach.
    pub fn reached_bytes(&self) -> Result<Vec<u8>> {
        if self.numel() == 0 {
            return Ok(Vec::new());
        }
        let span = self.shape.iter().zip(&self.strides).map(|(size, stride)| (size - 1) * stride);
        let size = self.dtype.size();
        let start = self.offset * size;
        let end = start + (span.sum::<usize>() + 1) * size;
        Ok(self.read::<u8>()?[start..end].to_vec())
    }

    /// `torch.zeros`.
    pub fn zeros(shape: &[usize], dtype: DType) -> Result<Self> {
        let buffer = Buffer::<u8>::zeroed(layout::bytes(shape, dtype)?)?;
        Self::from_memory(buffer.into_memory(), dtype, shape)
    }

    /// Whatever was left in memory.
    pub fn empty(shape: &[usize], dtype: DType) -> Result<Self> {
        let buffer = Buffer::<u8>::new(layout::bytes(shape, dtype)?)?;
        Self::from_memory(buffer.into_memory(), dtype, shape)
    }

    /// `torch.full`.
    pub fn full(shape: &[usize], value: Scalar, dtype: DType) -> Result<Self> {
        let count = layout::numel(shape)?;
        with_element!(dtype, T => {
            let mut buffer = Buffer::<T>::new(count)?;
            buffer.fill(value.to_element::<T>());
            Self::from_buffer(buffer, shape)
        })
    }

    /// A 0-d tensor.
    pub fn scalar(value: impl Into<Scalar>, dtype: DType) -> Result<Self> {
        Self::full(&[], value.into(), dtype)
    }

    /// The type of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its sizes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its strides, in elements.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The place of its first element in its memory.
    pub fn storage_offset(&self) -> usize {
        self.offset
    }

    /// The number of dimensions.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product() }
    }

    /// The size of a dimension, counted from the end where negative.
    pub fn size(&self, dim: i64) -> Result<usize> {
        let d = self.dim(dim)?;
        self.shape.get(d).copied().ok_or_else(|| {
            TensorError::Index("dimension specified as 0 but tensor has no dimensions".into())
        })
    }

    /// A dimension number, negative counted from the end.
    pub fn dim(&self, dim: i64) -> Result<usize> {
        Ok(passnet_graph::view::shape::axis(dim, self.ndim())?)
    }

    /// By torch's rule, for which sizes of one have any stride.
    pub fn is_contiguous(&self) -> bool {
        layout::is_contiguous(&self.shape, &self.strides)
    }

    /// Whether the two share memory (they need not overlap).
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// Whether type, shape and every bit of every element are the same; NaN equals itself here.
    pub fn same_bits(&self, other: &Tensor) -> Result<bool> {
        if self.dtype != other.dtype || self.shape != other.shape {
            return Ok(false);
        }
        let (one, two) = (self.contiguous()?, other.contiguous()?);
        let (one_bytes, two_bytes) = (one.read::<u8>()?, two.read::<u8>()?);
        let (one, two) = (&one_bytes[one.byte_range()], &two_bytes[two.byte_range()]);
        // Comparing is as fast as memory is; long tensors are worth a second thread.
        const PIECE: usize = 1 << 18;
        Ok(match one.len() > PIECE {
            true => one.par_chunks(PIECE).zip(two.par_chunks(PIECE)).all(|(one, two)| one == two),
            false => one == two,
        })
    }

    /// Where a contiguous tensor lies in its memory.
    fn byte_range(&self) -> Range<usize> {
        let start = self.offset * self.dtype.size();
        start..start + self.numel() * self.dtype.size()
    }

    /// Whether nothing else holds this tensor's memory, so that it may be reused for a result.
    pub fn is_sole_owner(&self) -> bool {
        Arc::strong_count(&self.storage) == 1
    }

    pub(crate) fn read<T: Plain>(&self) -> Result<Read<'_, T>> {
        match self.storage.try_read() {
            Ok(guard) => Ok(Read { guard, element: PhantomData }),
            Err(TryLockError::Poisoned(poisoned)) => {
                Ok(Read { guard: poisoned.into_inner(), element: PhantomData })
            }
            Err(TryLockError::WouldBlock) => Err(TensorError::Busy),
        }
    }

    pub(crate) fn write<T: Plain>(&self) -> Result<Write<'_, T>> {
        match self.storage.try_write() {
            Ok(guard) => Ok(Write { guard, element: PhantomData }),
            Err(TryLockError::Poisoned(poisoned)) => {
                Ok(Write { guard: poisoned.into_inner(), element: PhantomData })
            }
            Err(TryLockError::WouldBlock) => Err(TensorError::Busy),
        }
    }

    /// The elements in row-major order, converted where the type differs.
    pub(crate) fn values<C: Compute>(&self) -> Result<Values<'_, C>> {
        if self.dtype == C::DTYPE {
            return self.words();
        }
        let mut buffer = Buffer::new(self.numel())?;
        gather::converted(&self.read::<u8>()?, self.dtype, &self.region(), &mut buffer);
        Ok(Values::Owned(buffer))
    }

    /// The elements at their own strides where the type is right, else a row-major copy of that type.
    pub(crate) fn strided<T: Compute>(&self) -> Result<Strided<'_, T>> {
        if self.dtype == T::DTYPE {
            let data = Values::Borrowed(self.read()?, self.offset..usize::MAX);
            return Ok(Strided { data, strides: self.strides.clone() });
        }
        let data = self.values::<T>()?;
        Ok(Strided { data, strides: layout::contiguous(&self.shape) })
    }

    /// The elements at their own strides, as raw words of the same width.
    pub(crate) fn strided_words<W: Plain>(&self) -> Result<Strided<'_, W>> {
        let data = Values::Borrowed(self.read()?, self.offset..usize::MAX);
        Ok(Strided { data, strides: self.strides.clone() })
    }

    /// Writes the elements to `out` in row-major order, as words of their width.
    pub(crate) fn gather_words<W: Plain>(&self, out: &mut [W]) -> Result<()> {
        gather::words(&self.read::<W>()?, &self.region(), out);
        Ok(())
    }

    /// The elements in row-major order as what they are, or as raw words of the same width.
    pub(crate) fn words<W: Plain>(&self) -> Result<Values<'_, W>> {
        if self.is_contiguous() {
            return Ok(Values::Borrowed(self.read()?, self.offset..self.offset + self.numel()));
        }
        let mut buffer = Buffer::new(self.numel())?;
        self.gather_words(&mut buffer)?;
        Ok(Values::Owned(buffer))
    }

    /// The elements in row-major order, converted.
    pub fn to_vec<T: Compute>(&self) -> Result<Vec<T>> {
        Ok(self.values::<T>()?.to_vec())
    }

    /// A copy whose values went through `change`, `piece` of them at a time in row-major order, on several threads.
    pub fn changed<C: Compute>(
        &self,
        piece: usize,
        change: impl Fn(usize, &mut [C]) + Sync + Send,
    ) -> Result<Self> {
        with_element!(self.dtype, T => {
            let from = self.elements::<T>()?;
            let mut out = Buffer::<T>::new(self.numel())?;
            for_each_chunk(&mut out, piece, |index, to| {
                let from = &from[index * piece..][..to.len()];
                if let Some(values) = convert::same_mut(to) {
                    convert::widen(from, values);
                    return change(index * piece, values);
                }
                let mut values = vec![C::load(0i64); to.len()];
                convert::widen(from, &mut values);
                change(index * piece, &mut values);
                convert::narrow(&values, to);
            });
            Self::from_buffer(out, self.shape())
        })
    }

    /// The elements in row-major order, borrowed where they lie so; the type must be the tensor's own.
    pub fn elements<T: Element>(&self) -> Result<Values<'_, T>> {
        ensure!(self.dtype == T::DTYPE, Value, "elements are {}, not {}", self.dtype, T::DTYPE);
        self.words::<T>()
    }

    /// The only element.
    pub fn item(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            bail!(Value, "a Tensor with {} elements cannot be converted to Scalar", self.numel());
        }
        with_element!(self.dtype, T => {
            let value = self.read::<T>()?[self.offset];
            Ok(match self.dtype {
                DType::Bool => Scalar::Bool(value.to_i64() != 0),
                dtype if dtype.is_integer() => Scalar::Int(value.to_i64()),
                dtype if dtype.is_complex() => Scalar::Complex(value.to_f64(), value.imaginary()),
                _ => Scalar::Float(value.to_f64()),
            })
        })
    }
}
