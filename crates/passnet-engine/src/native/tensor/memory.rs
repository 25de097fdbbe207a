//! Buffers: aligned memory, a budget that refuses what is too large, and a pool that keeps warm pages.
//!
//! Fresh pages cost more than most kernels (the system must map and clear them), so freed buffers are kept and reused.
//! Memory is always initialised (zero pages at first, old contents later), so typed slices over it are always sound.
//!
//! What an untrusted kernel gets uninitialised must tell nothing about earlier calls, timed or not. Such buffers are
//! poisoned: every byte is `POISON`. They come from blocks of their own, which nothing else is ever kept in, and
//! [`scrub_pool`] writes the poison into those that were freed ahead of a call, so that the call itself only takes a block
//! that is ready.

use super::element::Plain;
use crate::native::error::{Result, TensorError};
use passnet_cpu::parallel::for_each_chunk;
use passnet_graph::DType;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Start of every buffer; a cache line and the widest vector register.
const ALIGNMENT: usize = 64;
/// Freed bytes kept for reuse, over all threads.
const POOL_LIMIT: usize = 1 << 30;
/// Of blocks up to this size, larger ones may stand for smaller ones.
const SMALL: usize = 16 << 20;
/// What poisoned memory holds in every byte: NaN in every float type, -1 in every signed integer type.
pub(crate) const POISON: u8 = 0xff;
/// Bytes that one thread poisons at a time.
const POISONED_AT_ONCE: usize = 1 << 16;
/// What a thread may hold unless it set a budget of its own.
const DEFAULT_LIMIT: usize = 1 << 36;

/// A memory budget with its current and highest use, counted as PyTorch counts: bytes that were asked for.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
}

impl Budget {
    /// So many bytes for all tensors that are made under it.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Budget { limit, used: AtomicUsize::new(0), peak: AtomicUsize::new(0) })
    }

    /// Bytes in use now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The most bytes that were in use at one time.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Makes this the budget of the calling thread while `work` runs.
    pub fn scope<R>(self: &Arc<Self>, work: impl FnOnce() -> R) -> R {
        struct Restore(Option<Arc<Budget>>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.with(|current| *current.borrow_mut() = self.0.take());
            }
        }
        let previous = CURRENT.with(|current| current.borrow_mut().replace(self.clone()));
        let _restore = Restore(previous);
        work()
    }

    fn current() -> Arc<Self> {
        CURRENT.with(|current| {
            current.borrow_mut().get_or_insert_with(|| Budget::new(DEFAULT_LIMIT)).clone()
        })
    }

    fn charge(&self, bytes: usize) -> Result<()> {
        let used = self.used.load(Ordering::Relaxed);
        let available = self.limit.saturating_sub(used);
        if bytes > available {
            return Err(TensorError::Allocation { requested: bytes, available });
        }
        let now = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(now, Ordering::Relaxed);
        Ok(())
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Budget>>> = const { RefCell::new(None) };
}

/// One block of memory from the system.
struct Block {
    start: NonNull<u8>,
    capacity: usize,
    /// Whether every byte is [`POISON`]; true only of blocks that nobody has used since they were poisoned.
    is_poisoned: bool,
    /// Whether kernels were given it as fresh memory: then they are given it again, and nobody else is.
    is_for_kernels: bool,
}

// SAFETY: a block is plain owned memory; nothing about it belongs to a thread.
unsafe impl Send for Block {}

impl Block {
    fn layout(capacity: usize) -> Option<Layout> {
        // The allocator clears memory lazily only for its natural alignment, so the block is aligned by hand.
        Layout::from_size_align(capacity.checked_add(ALIGNMENT)?, 16).ok()
    }

    fn new(capacity: usize) -> Option<Self> {
        let layout = Self::layout(capacity)?;
        // SAFETY: the layout has a non-zero size.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Block { start, capacity, is_poisoned: false, is_for_kernels: false })
    }

    fn aligned(&self) -> NonNull<u8> {
        let padding = self.start.align_offset(ALIGNMENT);
        // SAFETY: the block is ALIGNMENT bytes longer than its capacity and padding is below ALIGNMENT.
        unsafe { self.start.add(padding) }
    }

    fn poison(&mut self) {
        if !self.is_poisoned {
            let start = self.aligned().as_ptr();
            // SAFETY: `capacity` bytes from the aligned start on belong to the block, which is borrowed exclusively, and have
            // been initialised since it was allocated.
            let bytes = unsafe { std::slice::from_raw_parts_mut(start, self.capacity) };
            for_each_chunk(bytes, POISONED_AT_ONCE, |_, piece| piece.fill(POISON));
            self.is_poisoned = true;
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.capacity) {
            // SAFETY: `new` allocated it with the same layout.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

/// Freed blocks by capacity.
type Free = BTreeMap<usize, Vec<Block>>;

#[derive(Default)]
struct Pool {
    free: Free,
    for_kernels: Free,
    bytes: usize,
}

static POOL: Mutex<Pool> =
    Mutex::new(Pool { free: BTreeMap::new(), for_kernels: BTreeMap::new(), bytes: 0 });

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// The smallest free block that holds `capacity` bytes and not many more. Where there is little to waste, graph after
    /// graph finds blocks of the one before, though its sizes are others.
    fn take(&mut self, capacity: usize, is_for_kernels: bool) -> Option<Block> {
        let free = if is_for_kernels { &mut self.for_kernels } else { &mut self.free };
        let most = match capacity <= SMALL {
            true => 4 * capacity,
            false => capacity + capacity / 8,
        };
        let (found, blocks) = free.range_mut(capacity..=most).next()?;
        let (found, block) = (*found, blocks.pop());
        if blocks.is_empty() {
            free.remove(&found);
        }
        self.bytes -= found;
        block
    }

    fn keep(&mut self, block: Block) {
        if self.bytes + block.capacity > POOL_LIMIT {
            // Sizes that nobody asks for any more would fill the pool for good.
            *self = Pool::default();
        }
        if block.capacity <= POOL_LIMIT {
            self.bytes += block.capacity;
            let free = if block.is_for_kernels { &mut self.for_kernels } else { &mut self.free };
            free.entry(block.capacity).or_default().push(block);
        }
    }
}

/// An owned buffer of bytes, charged to a budget and returned to the pool when dropped.
pub struct Memory {
    block: Option<Block>,
    start: NonNull<u8>,
    len: usize,
    budget: Arc<Budget>,
}

// SAFETY: plain owned memory; access follows the borrow rules of `Memory` itself.
unsafe impl Send for Memory {}
// SAFETY: as above; `&Memory` only gives shared slices.
unsafe impl Sync for Memory {}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} bytes)", self.len)
    }
}

/// What a new buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Whatever was there before.
    Any,
    Zeros,
    Poison,
}

impl Memory {
    fn new(len: usize, content: Content) -> Result<Self> {
        let budget = Budget::current();
        let too_large = || TensorError::Allocation { requested: len, available: budget.limit };
        let capacity = len.max(1).checked_next_multiple_of(ALIGNMENT).ok_or_else(too_large)?;
        budget.charge(len)?;
        let is_for_kernels = content == Content::Poison;
        let reused = pool().take(capacity, is_for_kernels);
        let was_reused = reused.is_some();
        let Some(mut block) = reused.or_else(|| Block::new(capacity)) else {
            budget.used.fetch_sub(len, Ordering::Relaxed);
            return Err(too_large());
        };
        if content == Content::Poison {
            block.poison();
        }
        // From here on others write into it.
        (block.is_poisoned, block.is_for_kernels) = (false, is_for_kernels);
        let start = block.aligned();
        let mut memory = Memory { start, block: Some(block), len, budget };
        if content == Content::Zeros && was_reused {
            memory.slice_mut::<u8>().fill(0);
        }
        Ok(memory)
    }

    pub(crate) fn slice<T: Plain>(&self) -> &[T] {
        // SAFETY: the start is aligned for every `Plain` type, the bytes are initialised and owned, and any bit pattern is a
        // valid `Plain` value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len / size_of::<T>()) }
    }

    pub(crate) fn slice_mut<T: Plain>(&mut self) -> &mut [T] {
        // SAFETY: as in `slice`; `&mut self` makes the access exclusive.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len / size_of::<T>())
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Some(block) = self.block.take() else { return };
        self.budget.used.fetch_sub(self.len, Ordering::Relaxed);
        pool().keep(block);
    }
}

/// Gives the pool's memory back to the system.
pub fn release_pool() {
    let freed = std::mem::take(&mut *pool());
    drop(freed);
}

/// Poisons all freed memory that kernels were given, so that the next call finds nothing of earlier ones and need not poison
/// it itself. To be called outside the clock, before every call that is timed, whichever side it is of.
pub fn scrub_pool() {
    pool().for_kernels.values_mut().flatten().for_each(Block::poison);
}

/// Owned elements of one type: what kernels write before the result becomes a tensor.
#[derive(Debug)]
pub struct Buffer<T> {
    memory: Memory,
    element: PhantomData<T>,
}

impl<T: Plain> Buffer<T> {
    /// `len` elements of arbitrary value.
    pub(crate) fn new(len: usize) -> Result<Self> {
        Self::allocate(len, Content::Any)
    }

    pub(crate) fn zeroed(len: usize) -> Result<Self> {
        Self::allocate(len, Content::Zeros)
    }

    /// `len` elements that tell nothing about what was there before.
    pub(crate) fn poisoned(len: usize) -> Result<Self> {
        Self::allocate(len, Content::Poison)
    }

    fn allocate(len: usize, content: Content) -> Result<Self> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .filter(|bytes| *bytes <= isize::MAX as usize / 2)
            .ok_or(TensorError::Allocation { requested: usize::MAX, available: 0 })?;
        Ok(Buffer { memory: Memory::new(bytes, content)?, element: PhantomData })
    }

    pub(crate) fn into_memory(self) -> Memory {
        self.memory
    }
}

impl Buffer<u8> {
    /// Bytes for elements of a type that is only known at run time.
    pub(crate) fn for_elements(count: usize, dtype: DType) -> Result<Self> {
        let bytes = count
            .checked_mul(dtype.size())
            .ok_or(TensorError::Allocation { requested: usize::MAX, available: 0 })?;
        Self::new(bytes)
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.memory.slice()
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.memory.slice_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_blocks_serve_requests_of_nearly_their_size() {
        let mut pool = Pool::default();
        for capacity in [1024, 1088, 4096, 2 * SMALL] {
            pool.keep(Block::new(capacity).unwrap());
        }
        assert_eq!(pool.take(1000, false).unwrap().capacity, 1024);
        assert_eq!(pool.take(1024, false).unwrap().capacity, 1088);
        assert!(pool.take(1000, false).is_none(), "more than four times too large: left alone");
        assert!(pool.take(SMALL + 64, false).is_none(), "so is a large one twice too large");
        assert_eq!(pool.bytes, 4096 + 2 * SMALL);
        assert_eq!(pool.take(1024, false).unwrap().capacity, 4096);
        assert!(pool.take(2 * SMALL, false).is_some());
        assert_eq!((pool.bytes, pool.free.len()), (0, 0));
    }

    #[test]
    fn blocks_that_kernels_had_go_to_kernels_only() {
        let mut pool = Pool::default();
        let mut block = Block::new(1024).unwrap();
        block.is_for_kernels = true;
        pool.keep(block);
        assert!(pool.take(1024, false).is_none());
        pool.keep(Block::new(1088).unwrap());
        assert_eq!(pool.take(1024, true).unwrap().capacity, 1024);
        assert!(pool.take(1024, true).is_none(), "nothing of eager's reaches a kernel");
        assert_eq!(pool.bytes, 1088);
    }

    #[test]
    fn a_budget_refuses_and_recovers() {
        let budget = Budget::new(10_000);
        budget.scope(|| {
            let kept = Buffer::<f32>::new(1000).unwrap();
            assert!(matches!(
                Buffer::<f32>::new(2000),
                Err(TensorError::Allocation { requested: 8000, .. })
            ));
            drop(kept);
            assert!(Buffer::<f32>::new(2000).is_ok());
        });
        assert_eq!(budget.used(), 0);
        assert_eq!(budget.peak(), 8000);
        assert!(Buffer::<f64>::new(usize::MAX / 8).is_err());
    }

    #[test]
    fn poisoned_memory_holds_nothing_of_its_last_owner() {
        for scrubbed in [false, true, false] {
            let mut first = Buffer::<u8>::poisoned(7000).unwrap();
            first.fill(7);
            drop(first);
            if scrubbed {
                scrub_pool();
            }
            let mut second = Buffer::<u8>::poisoned(6500).unwrap();
            assert!(second.iter().all(|byte| *byte == POISON));
            second.fill(9);
        }
    }

    #[test]
    fn zeroed_memory_is_zero_even_when_reused() {
        for _ in 0..4 {
            let mut buffer = Buffer::<u8>::zeroed(5000).unwrap();
            assert!(buffer.iter().all(|byte| *byte == 0));
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
            buffer.fill(7);
        }
    }
}
