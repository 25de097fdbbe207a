//! The child between `clone` and `exec`: system calls only, no allocation, no locks, no panics.
//!
//! Another thread of the parent may have held any lock when the child was made, and nobody will ever release it here.
//! A failure is reported as the stage that failed and the error number, through a pipe that `exec` closes.

use super::errno::errno;
use super::program::Program;
use super::root::{OLD_ROOT, SCRATCH, Step};
use super::{landlock, seccomp};
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};

/// Compilers start a thread for each core.
const TASKS_OF_A_PROCESS: u64 = 16;
/// Processor time for each second of the clock, on all cores together.
const CORES: u64 = 8;

/// Bytes that drivers may keep from being swapped: what containers allow.
const LOCKED_WITH_DEVICES: u64 = 64 << 10;

/// Where setting up stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SetupStep {
    Identity = 1,
    Mounts,
    Processes,
    Root,
    Fork,
    Limits,
    Capabilities,
    Landlock,
    Filter,
    Exec,
}

impl SetupStep {
    pub(super) fn from_byte(byte: u8) -> Option<SetupStep> {
        use SetupStep::*;
        [Identity, Mounts, Processes, Root, Fork, Limits, Capabilities, Landlock, Filter, Exec]
            .into_iter()
            .find(|stage| *stage as u8 == byte)
    }
}

/// Descriptors the child was made with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) input: c_int,
    pub(super) output: c_int,
    pub(super) errors: c_int,
    /// Where a failure of the set-up is reported.
    pub(super) report: c_int,
    /// Where the first process writes how the program ended.
    pub(super) status: c_int,
}

type Done = Result<(), (SetupStep, c_int)>;

/// A copy of this process with the given flags; its stack is a copy too. 0 in the child.
///
/// # Safety
/// The child must not use anything that another thread of this process may have held.
pub(super) unsafe fn clone(flags: c_int) -> c_int {
    let zero: c_ulong = 0;
    // SAFETY: without a stack and without shared memory this is `fork`.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags as c_ulong, zero, zero, zero, zero) };
    pid as c_int
}

/// `prctl` with one argument; the rest are zero, as it insists.
fn control(option: c_int, value: c_ulong) -> c_int {
    let zero: c_ulong = 0;
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(option, value, zero, zero, zero) }
}

fn check(stage: SetupStep, result: c_int) -> Result<c_int, (SetupStep, c_int)> {
    if result >= 0 { Ok(result) } else { Err((stage, errno())) }
}

/// The first process of the new namespaces. It sets them up, starts the program, and ends with it: the kernel then ends
/// every process that is left.
pub(super) fn first_process(
    program: &Program,
    arguments: &[*const c_char],
    environment: &[*const c_char],
    ends: Ends,
) -> ! {
    let started = set_up(program).and_then(|()| {
        // SAFETY: plain fork: this process has one thread.
        let pid = unsafe { clone(libc::SIGCHLD) };
        check(SetupStep::Fork, pid)
    });
    match started {
        Err(failure) => fail(ends.report, failure),
        Ok(0) => {
            let Err(failure) = become_program(program, arguments, environment, ends);
            fail(ends.report, failure)
        }
        Ok(pid) => wait_for(pid, ends.status),
    }
}

fn fail(report: c_int, (stage, error): (SetupStep, c_int)) -> ! {
    let bytes = [stage as u8, error.clamp(0, 255) as u8];
    // SAFETY: two bytes of our own; the process ends here.
    unsafe {
        libc::write(report, bytes.as_ptr().cast(), bytes.len());
        libc::_exit(127)
    }
}

/// Waits for the program and for whatever it leaves behind; hands on how it ended.
fn wait_for(pid: c_int, keep: c_int) -> ! {
    // SAFETY: nothing but the status pipe is used from here on; closing the rest lets the parent see the program's end.
    unsafe {
        if keep > 0 {
            close_range(0, keep as u32 - 1, 0);
        }
        close_range(keep as u32 + 1, u32::MAX, 0);
        loop {
            let mut status: c_int = 0;
            let ended = libc::waitpid(-1, &mut status, 0);
            if ended == pid {
                libc::write(keep, (&raw const status).cast::<c_void>(), size_of::<c_int>());
                libc::_exit(0);
            }
            if ended < 0 && errno() != libc::EINTR {
                libc::_exit(126);
            }
        }
    }
}

/// # Safety
/// Nothing may use those descriptors any more, or none after `exec` where the flag says so.
unsafe fn close_range(first: u32, last: u32, flags: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) as c_int }
}

fn set_up(program: &Program) -> Done {
    // If the parent dies, so does everything in here.
    check(SetupStep::Identity, control(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong))?;
    write_file(SetupStep::Identity, c"/proc/self/setgroups", c"deny")?;
    write_file(SetupStep::Identity, c"/proc/self/uid_map", &program.user_map)?;
    write_file(SetupStep::Identity, c"/proc/self/gid_map", &program.group_map)?;
    new_root(program)?;
    // This process is a copy of its parent's memory, and may be listed in the program's `/proc`.
    check(SetupStep::Identity, control(libc::PR_SET_DUMPABLE, 0)).map(|_| ())
}

fn write_file(stage: SetupStep, path: &CStr, content: &CStr) -> Done {
    // SAFETY: terminated path; the content is as long as it says.
    unsafe {
        let file = check(stage, libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let bytes = content.to_bytes();
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let error = errno();
        libc::close(file);
        if written == bytes.len() as isize { Ok(()) } else { Err((stage, error)) }
    }
}

/// A root in memory takes the place of the machine's, which is taken away when all is bound.
fn new_root(program: &Program) -> Done {
    const QUIET: c_ulong = libc::MS_NOSUID | libc::MS_NODEV;
    mount(c"none", c"/", c"", libc::MS_REC | libc::MS_PRIVATE, c"")?;
    mount(c"tmpfs", c"/tmp", c"tmpfs", QUIET, c"size=1m,mode=755")?;
    // SAFETY: terminated paths.
    unsafe {
        check(SetupStep::Root, libc::chdir(c"/tmp".as_ptr()))?;
        check(SetupStep::Root, libc::mkdir(c".old".as_ptr(), 0o700))?;
        let moved = libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".old".as_ptr());
        check(SetupStep::Root, moved as c_int)?;
        check(SetupStep::Root, libc::chdir(c"/".as_ptr()))?;
    }
    // SAFETY: terminated path.
    check(SetupStep::Root, unsafe { libc::mkdir(SCRATCH.as_ptr(), 0o700) })?;
    // Before the rest: a folder that is bound may lie below it.
    mount(c"tmpfs", SCRATCH, c"tmpfs", QUIET | libc::MS_NOEXEC, &program.scratch_options)?;
    for step in &program.root.steps {
        take(step)?;
    }
    // SAFETY: terminated paths.
    unsafe {
        check(SetupStep::Root, libc::umount2(OLD_ROOT.as_ptr(), libc::MNT_DETACH))?;
        check(SetupStep::Root, libc::rmdir(OLD_ROOT.as_ptr()))?;
    }
    mount(c"none", c"/", c"", libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | QUIET, c"")
}

fn take(step: &Step) -> Done {
    // SAFETY: terminated paths throughout.
    unsafe {
        match step {
            Step::Folder(path) => {
                let made = libc::mkdir(path.as_ptr(), 0o755);
                if made < 0 && errno() != libc::EEXIST {
                    return Err((SetupStep::Root, errno()));
                }
                Ok(())
            }
            Step::EmptyFile(path) => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
                let file = check(SetupStep::Root, libc::open(path.as_ptr(), flags, 0o444))?;
                libc::close(file);
                Ok(())
            }
            Step::Link { at, to } => {
                check(SetupStep::Root, libc::symlink(to.as_ptr(), at.as_ptr())).map(|_| ())
            }
            Step::OwnProcesses(path) => {
                const QUIET: c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
                mount(c"proc", path, c"proc", QUIET, c"subset=pid")
                    .map_err(|(_, error)| (SetupStep::Processes, error))
            }
            Step::Bind { from, to, device } => {
                mount(from, to, c"", libc::MS_BIND | libc::MS_REC, c"")?;
                if *device { Ok(()) } else { make_read_only(to) }
            }
        }
    }
}

/// Read-only with all mounts below, where the kernel can; else the mount itself.
fn make_read_only(path: &CStr) -> Done {
    /// `struct mount_attr`.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        namespace: u64,
    }
    /// `MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV`.
    const READ_ONLY: u64 = 1 | 2 | 4;
    const RECURSIVE: c_int = 0x8000;
    let attributes = Attributes { set: READ_ONLY, clear: 0, propagation: 0, namespace: 0 };
    // SAFETY: terminated path, and an attribute as long as it says.
    let set = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            RECURSIVE,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    match set {
        0 => Ok(()),
        _ if errno() == libc::ENOSYS => {
            let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY;
            mount(c"none", path, c"", flags | libc::MS_NOSUID | libc::MS_NODEV, c"")
        }
        _ => Err((SetupStep::Mounts, errno())),
    }
}

fn mount(from: &CStr, to: &CStr, kind: &CStr, flags: c_ulong, options: &CStr) -> Done {
    // SAFETY: terminated strings.
    let mounted = unsafe {
        libc::mount(from.as_ptr(), to.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    check(SetupStep::Mounts, mounted).map(|_| ())
}

/// Gives up every right that is left, and becomes the program.
fn become_program(
    program: &Program,
    arguments: &[*const c_char],
    environment: &[*const c_char],
    ends: Ends,
) -> Result<std::convert::Infallible, (SetupStep, c_int)> {
    // SAFETY: numbers and terminated paths only; descriptors are those the parent made for this.
    unsafe {
        check(SetupStep::Limits, libc::setsid())?;
        for (from, to) in [(ends.input, 0), (ends.output, 1), (ends.errors, 2)] {
            check(SetupStep::Limits, libc::dup2(from, to))?;
        }
        check(SetupStep::Limits, libc::chdir(SCRATCH.as_ptr()))?;
        libc::umask(0o077);
        // Everything else closes itself on `exec`, the report last of all; this catches what the process inherited.
        check(SetupStep::Limits, close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC))?;
    }
    set_limits(program)?;
    drop_capabilities()?;
    if let Some(version) = program.landlock {
        let rules = program.root.rules.iter().map(|(path, access)| (path.as_c_str(), *access));
        landlock::restrict(version, rules).map_err(|error| (SetupStep::Landlock, error))?;
    }
    seccomp::install(&program.filter).map_err(|error| (SetupStep::Filter, error))?;
    let Some(first) = arguments.first().filter(|first| !first.is_null()) else {
        // A trial: all set up, nothing to run.
        // SAFETY: ends this process.
        unsafe { libc::_exit(0) }
    };
    // SAFETY: arrays of terminated strings, ended by null.
    unsafe { libc::execve(*first, arguments.as_ptr(), environment.as_ptr()) };
    Err((SetupStep::Exec, errno()))
}

fn set_limits(program: &Program) -> Done {
    let limits = &program.limits;
    // The kernel counts threads, too; processes themselves are counted by the watcher.
    let tasks = u64::from(limits.processes) * TASKS_OF_A_PROCESS;
    let seconds = limits.time.as_secs().saturating_add(1).saturating_mul(CORES);
    // With devices the driver reserves address space without end; what is written to is bounded as well as without.
    let (space, locked) = match program.has_devices {
        true => (libc::RLIMIT_DATA, LOCKED_WITH_DEVICES),
        false => (libc::RLIMIT_AS, 0),
    };
    for (resource, value) in [
        (space, limits.memory),
        (libc::RLIMIT_NOFILE, u64::from(limits.open_files)),
        (libc::RLIMIT_NPROC, tasks),
        (libc::RLIMIT_FSIZE, limits.scratch),
        (libc::RLIMIT_CPU, seconds),
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_MEMLOCK, locked),
        (libc::RLIMIT_MSGQUEUE, 0),
    ] {
        let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: one limit, as long as the kernel expects it.
        check(SetupStep::Limits, unsafe { libc::setrlimit(resource, &limit) })?;
    }
    Ok(())
}

fn drop_capabilities() -> Done {
    /// `struct __user_cap_header_struct` and two of `struct __user_cap_data_struct`.
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [0u32; 6];
    // SAFETY: numbers, and structures laid out as the kernel expects them.
    unsafe {
        // The bounding set: a number beyond the last capability is refused, which ends the loop.
        let mut capability = 0;
        while control(libc::PR_CAPBSET_DROP, capability) == 0 {
            capability += 1;
        }
        let dropped = libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr());
        check(SetupStep::Capabilities, dropped as c_int)?;
    }
    check(SetupStep::Capabilities, control(libc::PR_SET_NO_NEW_PRIVS, 1))?;
    check(SetupStep::Capabilities, control(libc::PR_SET_DUMPABLE, 0)).map(|_| ())
}
