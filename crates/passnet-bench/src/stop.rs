//! A person who wants it to end: what is under way comes to its end, nothing new is begun.
//!
//! One for the whole process, as the signal is that asks for it.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Why a graph was not judged.
pub const REASON: &str = "stopped before its turn";

/// From now on nothing is begun. May be called by a signal handler.
pub fn ask() {
    ASKED.store(true, Ordering::Relaxed);
}

/// Whether Ctrl-C came.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
