//! Landlock: which files a process may touch, whatever the mounts look like.
//!
//! Three system calls, without the crate: the rules are laid in a child that may not allocate. Numbers and bits are those
//! of `linux/landlock.h`.

use std::ffi::{CStr, c_int, c_long};

const CREATE_RULESET: c_long = 444;
const ADD_RULE: c_long = 445;
const RESTRICT_SELF: c_long = 446;
const ASK_VERSION: c_int = 1;
const PATH_BENEATH: c_int = 1;

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEVICE: u64 = 1 << 15;

/// What may be done at a path and below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    ReadFolder,
    ReadFile,
    /// What names a folder holds.
    List,
    /// A device such as `/dev/null`.
    UseDevice,
    /// A device that is spoken to in its own language.
    ControlDevice,
    /// The program's own processes, whose threads it may name.
    OwnProcesses,
    /// Anything but execution.
    OwnFolder,
}

/// `struct landlock_ruleset_attr`; older kernels know the front of it.
#[repr(C)]
struct Handled {
    files: u64,
    network: u64,
    scopes: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    parent: c_int,
}

/// The version of landlock in this kernel.
pub(in crate::sandbox) fn version() -> Option<u32> {
    // SAFETY: with this flag the call takes no pointer and makes nothing.
    let version = unsafe { libc::syscall(CREATE_RULESET, 0usize, 0usize, ASK_VERSION) };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

/// All rights over files that a version knows.
fn all_files(version: u32) -> u64 {
    let count = match version {
        1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    (1 << count) - 1
}

impl Access {
    fn rights(self, version: u32) -> u64 {
        let rights = match self {
            Access::ReadFolder => EXECUTE | READ_FILE | READ_DIR,
            Access::ReadFile => EXECUTE | READ_FILE,
            Access::List => READ_DIR,
            Access::UseDevice => READ_FILE | WRITE_FILE,
            Access::ControlDevice => READ_FILE | WRITE_FILE | IOCTL_DEVICE,
            Access::OwnProcesses => READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE,
            Access::OwnFolder => all_files(version) & !EXECUTE & !IOCTL_DEVICE,
        };
        rights & all_files(version)
    }
}

/// Restricts this process and its children to the paths, for good. Allocates nothing.
/// Gives the error number where it fails; `no_new_privs` must be set.
pub(super) fn restrict<'a>(
    version: u32,
    paths: impl Iterator<Item = (&'a CStr, Access)>,
) -> Result<(), c_int> {
    let handled = Handled {
        files: all_files(version),
        network: if version >= 4 { 0b11 } else { 0 },
        scopes: if version >= 6 { 0b11 } else { 0 },
    };
    let size = match version {
        0..=3 => 8usize,
        4 | 5 => 16,
        _ => 24,
    };
    // SAFETY: the attribute is at least `size` bytes long.
    let ruleset = unsafe { libc::syscall(CREATE_RULESET, &raw const handled, size, 0) };
    let ruleset = checked(ruleset)?;
    for (path, access) in paths {
        // SAFETY: the path is terminated; the descriptor is closed below.
        let parent = checked(unsafe {
            libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) as c_long
        })?;
        let rule = Beneath { allowed: access.rights(version), parent: parent as c_int };
        // SAFETY: the rule is laid out as the kernel expects it.
        let added = unsafe { libc::syscall(ADD_RULE, ruleset, PATH_BENEATH, &raw const rule, 0) };
        // SAFETY: opened above.
        unsafe { libc::close(parent as c_int) };
        checked(added)?;
    }
    // SAFETY: takes a descriptor and no pointer.
    let restricted = unsafe { libc::syscall(RESTRICT_SELF, ruleset, 0) };
    // SAFETY: opened above.
    unsafe { libc::close(ruleset as c_int) };
    checked(restricted).map(|_| ())
}

fn checked(result: c_long) -> Result<c_long, c_int> {
    if result >= 0 { Ok(result) } else { Err(super::errno::errno()) }
}
