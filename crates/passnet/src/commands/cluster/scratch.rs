//! Folders that live as long as one unit.

use std::ffi::CStr;
use std::io::Result;
use std::path::PathBuf;
use tempfile::TempDir;

/// Files in memory, on Linux.
const MEMORY: &CStr = c"/dev/shm";
/// Units are small; with less room than this they go to the disk.
const ROOM: u64 = 1 << 30;

/// A folder for the files of a unit. Where there is memory for them they never wait for a disk, whose journal others may
/// keep busy; TMPDIR says otherwise where it is set.
pub(super) fn folder() -> Result<TempDir> {
    match std::env::var_os("TMPDIR").is_none() && room() >= ROOM {
        true => TempDir::new_in(PathBuf::from(MEMORY.to_string_lossy().into_owned())),
        false => TempDir::new(),
    }
}

/// Bytes that are free in memory's file system; none where it is not there.
fn room() -> u64 {
    // SAFETY: all zeros are a value of this structure of numbers.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero, and the structure outlives the call.
    match unsafe { libc::statvfs(MEMORY.as_ptr(), &mut found) } {
        0 => found.f_bavail.saturating_mul(found.f_frsize),
        _ => 0,
    }
}
