//! Buffers that end where the process may not read: machine code knows no sanitizer, so the processor watches it.

use passnet_kernel::exec::LentBuffer;

const PAGE: usize = 4096;
/// What surrounds a buffer on its own pages.
const CANARY: u8 = 0xa5;

/// One buffer, at the end of its pages, with pages before and behind that nobody may touch.
pub struct Guarded {
    pages: *mut u8,
    whole: usize,
    first: usize,
    bytes: usize,
}

impl Guarded {
    /// A copy of `content` at an address divisible by `align`, a power of two of at most a page.
    pub fn new(content: &[u8], align: usize) -> Guarded {
        let bytes = content.len();
        let room = bytes.next_multiple_of(align).next_multiple_of(PAGE).max(PAGE);
        let whole = room + 2 * PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new pages at an address of the system's choice.
        let pages =
            unsafe { libc::mmap(std::ptr::null_mut(), whole, libc::PROT_NONE, flags, -1, 0) };
        assert!(pages != libc::MAP_FAILED, "no memory for a buffer");
        let pages = pages.cast::<u8>();
        let first = PAGE + room - bytes.next_multiple_of(align);
        // SAFETY: the pages between the first and the last are ours, and `first + bytes` is at most their end.
        unsafe {
            let changed =
                libc::mprotect(pages.add(PAGE).cast(), room, libc::PROT_READ | libc::PROT_WRITE);
            assert_eq!(changed, 0, "pages that cannot be written");
            pages.add(PAGE).write_bytes(CANARY, room);
            std::ptr::copy_nonoverlapping(content.as_ptr(), pages.add(first), bytes);
        }
        Guarded { pages, whole, first, bytes }
    }

    pub fn lent(&mut self) -> LentBuffer {
        // SAFETY: inside the pages.
        LentBuffer { start: unsafe { self.pages.add(self.first) }, bytes: self.bytes }
    }

    /// The content; panics where something was written beside it.
    pub fn content(&self) -> &[u8] {
        // SAFETY: these pages are readable and nobody writes them while `self` is borrowed.
        let room =
            unsafe { std::slice::from_raw_parts(self.pages.add(PAGE), self.whole - 2 * PAGE) };
        let (before, rest) = room.split_at(self.first - PAGE);
        let (content, behind) = rest.split_at(self.bytes);
        let kept = before.iter().chain(behind).all(|byte| *byte == CANARY);
        assert!(kept, "something was written beside a buffer");
        content
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and nothing borrows it any more.
        unsafe { libc::munmap(self.pages.cast(), self.whole) };
    }
}
