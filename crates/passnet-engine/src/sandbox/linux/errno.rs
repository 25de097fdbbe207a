//! Why the last system call of this thread failed.

use libc::c_int;

pub(super) fn errno() -> c_int {
    // SAFETY: the thread's own error number.
    unsafe { *libc::__errno_location() }
}
