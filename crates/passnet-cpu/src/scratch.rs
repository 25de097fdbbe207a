//! Working memory that a thread keeps from one kernel to the next: clearing it anew would take longer than a small kernel.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Blocks that a thread keeps, and the most words of one.
const KEPT: usize = 4;
const KEPT_WORDS: usize = 1 << 19;

thread_local! {
    static FREE: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

/// At least so many words as were asked for, of any content: programs write before they read, as one program finds what
/// another one left.
#[derive(Debug)]
pub struct Scratch(Vec<u64>);

impl Scratch {
    /// The smallest block that the thread has kept and that suffices, or a new one.
    pub fn of(words: usize) -> Scratch {
        let free = FREE.with_borrow_mut(|free| {
            let fitting = (0..free.len()).filter(|at| free[*at].len() >= words);
            let smallest = fitting.min_by_key(|at| free[*at].len());
            smallest.map(|at| free.swap_remove(at))
        });
        Scratch(free.unwrap_or_else(|| vec![0; words]))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.0);
        if words.len() > KEPT_WORDS {
            return;
        }
        // A thread that ends keeps nothing.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() == KEPT {
                let smallest = (0..KEPT).min_by_key(|at| free[*at].len()).unwrap_or(0);
                free.swap_remove(smallest);
            }
            free.push(words);
        });
    }
}

impl Deref for Scratch {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_finds_its_memory_again() {
        let first = Scratch::of(100);
        let (at, second) = (first.as_ptr(), Scratch::of(1000));
        drop(first);
        drop(second);
        let again = Scratch::of(80);
        assert_eq!((again.as_ptr(), again.len()), (at, 100), "the smallest that fits");
        assert_eq!(Scratch::of(200).len(), 1000);
        assert_eq!(Scratch::of(2 * KEPT_WORDS).len(), 2 * KEPT_WORDS);
        assert!(FREE.with_borrow(|free| free.iter().all(|words| words.len() <= KEPT_WORDS)));
    }
}
