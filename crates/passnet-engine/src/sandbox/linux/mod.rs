//! The sandbox on Linux.
//!
//! `program` prepares everything a child needs, `child` is what runs between `clone` and `exec`, `watch` starts it, feeds
//! it and stops it.

mod child;
mod errno;
mod landlock;
mod program;
mod root;
mod seccomp;
mod watch;

pub(super) use landlock::version as landlock_version;
pub(super) use program::Program;
pub(super) use watch::{Running, run, start_session};
