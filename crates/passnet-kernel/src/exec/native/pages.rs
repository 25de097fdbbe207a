//! Memory that holds machine code: written once, then only executed.

use std::ptr::NonNull;

/// Code pages, given back when dropped.
#[derive(Debug)]
pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: nobody writes the pages after `new`.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// `None` where the system forbids new code.
    pub(super) fn new(code: &[u8]) -> Option<Pages> {
        if code.is_empty() {
            return None;
        }
        // SAFETY: a fresh private mapping at an address of the system's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                code.len(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let pages = Pages { start: NonNull::new(start.cast())?, bytes: code.len() };
        // SAFETY: the mapping is at least as long as the code, and nobody else knows it yet.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), pages.start.as_ptr(), code.len()) };
        // SAFETY: the whole mapping, which is ours.
        let sealed =
            unsafe { libc::mprotect(start, pages.bytes, libc::PROT_READ | libc::PROT_EXEC) };
        (sealed == 0).then_some(pages)
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> &[u8] {
        // SAFETY: the mapping holds so many bytes, which nobody writes any more.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub(super) fn at(&self, offset: usize) -> *const u8 {
        self.start.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; code in it runs only while a tape that owns it is borrowed.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
