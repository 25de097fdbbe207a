//! Half-precision rows, widened one at a time: all of them at once would take twice the memory of the input.

use crate::native::error::Result;
use crate::native::tensor::convert::{Load, loader, storer};
use crate::native::tensor::element::Real;
use crate::native::tensor::{Buffer, Read, Tensor};
use passnet_cpu::parallel::{GRAIN, Shared};
use passnet_cpu::{run_tasks, threads};

/// Elements of a row that are normalised at a time.
pub(super) const PART: usize = 512;

/// Where a part of a row starts.
#[derive(Clone, Copy)]
pub(super) struct RowPart {
    pub(super) row: usize,
    pub(super) column: usize,
}

/// Normalises half-precision rows without widening all of them: a thread holds one row, `measure`s it and `apply`s what it
/// found to a part after the other.
pub(super) fn by_single_rows<T: Real, M>(
    input: &Tensor,
    length: usize,
    measure: impl Fn(&[T]) -> M + Sync,
    apply: impl Fn(&M, RowPart, &[T], &mut [T]) + Sync,
) -> Result<Tensor> {
    let input = input.contiguous()?;
    let dtype = input.dtype();
    let mut out = Buffer::<u8>::for_elements(input.numel(), dtype)?;
    if !out.is_empty() {
        let elements = Elements::new(&input)?;
        let (store, size) = (storer::<T>(dtype), dtype.size());
        let rows = input.numel() / length;
        let together = (GRAIN / 2 / length).max(1);
        let tasks = if input.numel() < 2 * GRAIN { 1 } else { rows.div_ceil(together) };
        let users = threads().min(tasks);
        let mut held = Buffer::<T>::new(users * length)?;
        let (held, shared) = (Shared::new(&mut held), Shared::new(&mut out));
        let per_task = rows.div_ceil(tasks);
        run_tasks(tasks, users, &|task, thread| {
            // SAFETY: tasks of one thread follow one another.
            let held = unsafe { held.slice(thread * length, length) };
            for row in task * per_task..rows.min((task + 1) * per_task) {
                elements.load(row * length, held);
                let found = measure(held);
                for (part, values) in held.chunks(PART).enumerate() {
                    let mut results = [T::ZERO; PART];
                    let results = &mut results[..values.len()];
                    let column = part * PART;
                    apply(&found, RowPart { row, column }, values, results);
                    let at = (row * length + column) * size;
                    // SAFETY: every element belongs to one part.
                    store(results, unsafe { shared.slice(at, values.len() * size) });
                }
            }
        });
    }
    Tensor::from_memory(out.into_memory(), dtype, input.shape())
}

/// The elements of a row-major tensor, converted as they are loaded.
pub(super) struct Elements<'a, T> {
    memory: Read<'a, u8>,
    offset: usize,
    load: Load<T>,
}

impl<'a, T: Real> Elements<'a, T> {
    pub(super) fn new(tensor: &'a Tensor) -> Result<Self> {
        let load = loader::<T>(tensor.dtype());
        Ok(Elements { memory: tensor.read()?, offset: tensor.storage_offset(), load })
    }

    /// The elements from a position on.
    pub(super) fn load(&self, position: usize, out: &mut [T]) {
        (self.load)(&self.memory, self.offset + position, 1, out);
    }
}
