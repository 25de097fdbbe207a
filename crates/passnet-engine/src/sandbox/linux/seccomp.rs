//! The system-call filter: what no compiler needs and an escape might.
//!
//! A list of refusals on top of namespaces and landlock, not the only wall; it covers what those leave open: sockets of
//! every kind, changing modes and owners, new namespaces, other processes' memory, and the rarely used rest of the kernel.
//!
//! The program is written here and not by the crate `seccompiler` (0.5.0, tried 2026-11-18), because a list of refusals made by
//! it has a hole: it compares numbers for equality alone, so the refused calls pass under their x32 numbers
//! (`0x4000_0000` added), which the kernel tells apart by that bit and not by the architecture. Beside that it gives one answer
//! for each filter, so that "unknown" for `clone3` needs a second one, and takes 474 + 10 instructions where 183 do.

use libc::{c_long, sock_filter};

/// Network, and every other socket; files without a name. With devices they are allowed as far as they stay inside.
#[rustfmt::skip]
const REFUSED_WITHOUT_DEVICES: &[c_long] = &[
    libc::SYS_socket, libc::SYS_socketpair, libc::SYS_bind, libc::SYS_connect, libc::SYS_listen, libc::SYS_accept,
    libc::SYS_accept4, libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_memfd_create,
];

/// Refused with "operation not permitted".
#[rustfmt::skip]
const REFUSED: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_process_madvise, libc::SYS_kcmp,
    libc::SYS_pidfd_open, libc::SYS_pidfd_getfd, libc::SYS_pidfd_send_signal, libc::SYS_perf_event_open,
    // Mounts, roots, namespaces.
    libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_move_mount,
    libc::SYS_open_tree, libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick,
    libc::SYS_mount_setattr, libc::SYS_setns, libc::SYS_unshare,
    // Files by other ways than their path; modes, owners, attributes, special files.
    libc::SYS_open_by_handle_at, libc::SYS_name_to_handle_at, libc::SYS_fchmod, libc::SYS_fchmodat, 452, // fchmodat2
    libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_mknodat, libc::SYS_setxattr, libc::SYS_lsetxattr,
    libc::SYS_fsetxattr, libc::SYS_removexattr, libc::SYS_lremovexattr, libc::SYS_fremovexattr,
    libc::SYS_fanotify_init, libc::SYS_fanotify_mark, libc::SYS_quotactl, libc::SYS_execveat,
    // Parts of the kernel with many past mistakes and no use here.
    libc::SYS_bpf, libc::SYS_userfaultfd, libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key,
    libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register,
    libc::SYS_memfd_secret,
    // The machine.
    libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module, libc::SYS_kexec_load, libc::SYS_reboot,
    libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_acct, libc::SYS_syslog, libc::SYS_settimeofday,
    libc::SYS_clock_settime, libc::SYS_clock_adjtime, libc::SYS_adjtimex, libc::SYS_sethostname,
    libc::SYS_setdomainname, libc::SYS_vhangup, libc::SYS_personality,
];

/// Calls that only older machines have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const REFUSED_HERE: &[c_long] = &[
    libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_mknod, libc::SYS_iopl, libc::SYS_ioperm,
    libc::SYS_modify_ldt, libc::SYS_kexec_file_load,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// `AUDIT_ARCH_*` of this machine.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(not(target_arch = "x86_64"))]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Calls of the x32 interface have this bit: the same calls under other numbers.
const OTHER_INTERFACE: u32 = 0x4000_0000;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
/// glibc takes this for an older kernel and uses `clone`, whose flags the filter can see.
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

const NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;

/// The filter as a program for the kernel's packet filter. CUDA's library wants files in memory, and a socket of its own
/// namespace that it finds itself by.
pub(super) fn filter(has_devices: bool) -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCH),
        skip_unless_equal(ARCHITECTURE, 1, 0),
        answer(KILL),
        load(NUMBER),
        // Greater or equal: the other interface, or an invalid number.
        jump(libc::BPF_JGE, OTHER_INTERFACE, 0, 1),
        answer(KILL),
    ];
    let without_devices = if has_devices { &[] } else { REFUSED_WITHOUT_DEVICES };
    for &number in REFUSED.iter().chain(REFUSED_HERE).chain(without_devices) {
        program.push(skip_unless_equal(number as u32, 0, 1));
        program.push(answer(REFUSE));
    }
    if has_devices {
        for number in [libc::SYS_socket, libc::SYS_socketpair] {
            program.extend([
                skip_unless_equal(number as u32, 0, 4),
                load(FIRST_ARGUMENT),
                skip_unless_equal(libc::AF_UNIX as u32, 0, 1),
                answer(ALLOW),
                answer(REFUSE),
            ]);
        }
    }
    program.extend([
        skip_unless_equal(libc::SYS_clone3 as u32, 0, 1),
        answer(UNKNOWN),
        skip_unless_equal(libc::SYS_clone as u32, 0, 3),
        load(FIRST_ARGUMENT),
        jump(libc::BPF_JSET, NAMESPACES, 0, 1),
        answer(REFUSE),
        answer(ALLOW),
    ]);
    program
}

fn load(offset: u32) -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn answer(value: u32) -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, value)
}

/// Skips `yes` instructions where the loaded word equals the value, `no` where it does not.
fn skip_unless_equal(value: u32, yes: u8, no: u8) -> sock_filter {
    jump(libc::BPF_JEQ, value, yes, no)
}

fn jump(test: u32, value: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | test | libc::BPF_K) as u16, jt: yes, jf: no, k: value }
}

fn statement(code: u32, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

/// Puts the filter over this process and its children, for good. Allocates nothing; `no_new_privs` must be set.
pub(super) fn install(program: &[sock_filter]) -> Result<(), libc::c_int> {
    let program =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, which it does not change.
    let installed = unsafe {
        let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
        libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program)
    };
    if installed == 0 { Ok(()) } else { Err(super::errno::errno()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would do with a call: the few instructions that the filter is made of, interpreted.
    fn verdict(program: &[sock_filter], architecture: u32, number: c_long, argument: u32) -> u32 {
        let (mut at, mut word) = (0, 0);
        loop {
            let instruction = &program[at];
            at += 1;
            let code = u32::from(instruction.code);
            let holds = match code {
                code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                    word = match instruction.k {
                        NUMBER => number as u32,
                        ARCH => architecture,
                        _ => argument,
                    };
                    continue;
                }
                code if code == libc::BPF_RET | libc::BPF_K => return instruction.k,
                code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                    word == instruction.k
                }
                code if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K => {
                    word >= instruction.k
                }
                _ => word & instruction.k != 0,
            };
            at += usize::from(if holds { instruction.jt } else { instruction.jf });
        }
    }

    #[test]
    fn refused_calls_are_refused_by_every_number() {
        for has_devices in [false, true] {
            let program = filter(has_devices);
            let asked =
                |number: c_long, argument: u32| verdict(&program, ARCHITECTURE, number, argument);
            for &number in REFUSED.iter().chain(REFUSED_HERE) {
                assert_eq!(asked(number, 0), REFUSE, "call {number}");
                assert_eq!(asked(number | c_long::from(OTHER_INTERFACE), 0), KILL, "call {number}");
                assert_eq!(verdict(&program, ARCHITECTURE ^ 1, number, 0), KILL, "call {number}");
            }
            assert_eq!(asked(libc::SYS_read, 0), ALLOW);
            assert_eq!(asked(libc::SYS_clone3, 0), UNKNOWN);
            assert_eq!(asked(libc::SYS_clone, libc::SIGCHLD as u32), ALLOW);
            assert_eq!(asked(libc::SYS_clone, libc::CLONE_NEWNET as u32), REFUSE);
            let local = if has_devices { ALLOW } else { REFUSE };
            assert_eq!(asked(libc::SYS_socket, libc::AF_UNIX as u32), local);
            assert_eq!(asked(libc::SYS_socket, libc::AF_INET as u32), REFUSE);
            assert_eq!(asked(libc::SYS_memfd_create, 0), local);
        }
    }
}
