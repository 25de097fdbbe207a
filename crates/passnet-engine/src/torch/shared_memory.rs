//! Memory that the engine and its worker both reach: raw bytes go through it at the speed of a copy, without either side
//! waiting for the other to empty a pipe. Both read and write it like a file, so that neither can make the other fault.

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// One file for each direction. Requests and replies alternate, so neither overwrites what was not read yet.
#[derive(Debug)]
pub(super) struct SharedMemory {
    pub(super) to_worker: File,
    pub(super) from_worker: File,
}

impl SharedMemory {
    /// `None` where the system has no such memory: frames carry their bytes themselves then.
    pub(super) fn new() -> Option<SharedMemory> {
        Some(SharedMemory {
            to_worker: anonymous_file().ok()?,
            from_worker: anonymous_file().ok()?,
        })
    }

    /// Where the worker opens them. They are not inherited, so that no sandboxed process has them.
    #[cfg(target_os = "linux")]
    pub(super) fn paths(&self) -> [PathBuf; 2] {
        use std::os::fd::AsRawFd;
        [&self.to_worker, &self.from_worker].map(|file| {
            PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn paths(&self) -> [PathBuf; 2] {
        Default::default()
    }
}

#[cfg(target_os = "linux")]
fn anonymous_file() -> io::Result<File> {
    use std::os::fd::{FromRawFd, OwnedFd};
    // SAFETY: the name is a C string that lives for ever; the descriptor is new and nobody else's.
    let descriptor = unsafe {
        let descriptor = libc::memfd_create(c"passnet".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(descriptor)
    };
    Ok(File::from(descriptor))
}

#[cfg(not(target_os = "linux"))]
fn anonymous_file() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}
