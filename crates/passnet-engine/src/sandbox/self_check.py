"""What a program in the sandbox must not be able to do, tried; and what it must, done. One line for each."""

import ctypes
import errno
import os
import sys


def say(holds, area, claim):
    print("ok" if holds else "BROKEN", area, claim, flush=True)


def refused(action):
    try:
        action()
    except (OSError, MemoryError):
        return True
    return False


def call(number, *arguments):
    """A system call by number; true where it is refused as such, not for its arguments."""
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) == -1
    return failed and ctypes.get_errno() == errno.EPERM


def probes(parent):
    import socket

    def listed(path):
        try:
            return os.listdir(path)
        except OSError:
            return []

    say(refused(lambda: open("/etc/passwd")), "files", "the machine's settings are not seen")
    say(refused(lambda: open("/etc/shadow")), "files", "the machine's secrets are not seen")
    say(not listed("/home") and not listed("/var"), "files", "other people's files are not seen")
    say(refused(lambda: open(f"/proc/{parent}/environ", "rb")), "files", "the parent's environment is not seen")
    say(refused(lambda: open("/proc/1/environ", "rb")), "files", "no process's environment is seen")
    say(refused(lambda: open("/written", "w")), "files", "the root cannot be written")
    say(refused(lambda: open(os.path.join(sys.prefix, "written"), "w")), "files", "the interpreter's folder cannot be written")
    say(refused(lambda: open(os.__file__, "a")), "files", "the interpreter's files cannot be changed")
    say(refused(lambda: os.symlink("/", os.path.join(sys.prefix, "link"))), "files", "no link can be made outside the own folder")
    say(refused(lambda: os.mkdir("/lib/own")), "files", "system folders cannot be written")
    open("/tmp/own", "w").write("mine")
    say(open("/tmp/own").read() == "mine", "work", "the own folder can be written and read")
    say(refused(lambda: os.chmod("/tmp/own", 0o777)), "files", "modes cannot be changed")
    say(refused(lambda: os.chown("/tmp/own", 0, 0)), "files", "owners cannot be changed")
    say(refused(lambda: os.mknod("/tmp/node", 0o020666, os.makedev(1, 3))), "devices", "devices cannot be made")
    open("/tmp/program", "w").write("#!/bin/sh\n")
    say(refused(lambda: os.execv("/tmp/program", ["program"])), "files", "own files cannot be executed")

    def fill():
        with open("/tmp/large", "wb") as file:
            for _ in range(64):
                file.write(bytes(1 << 20))
                file.flush()

    say(refused(fill), "files", "the own folder has a size")
    os.unlink("/tmp/large")
    say(refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)), "network", "no TCP")
    say(refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)), "network", "no UDP")
    say(refused(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)), "network", "no local sockets")
    say(refused(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)), "network", "no netlink")
    say(refused(lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM)), "network", "no IPv6")
    say(refused(lambda: os.kill(int(parent), 0)), "processes", "the parent cannot be signalled")
    say(os.getpid() < 100, "processes", "processes are counted from the start")
    say(not os.path.exists("/proc/self"), "processes", "no process is listed")
    say(os.getuid() == 65534 and os.geteuid() == 65534, "processes", "the program is nobody")
    say(refused(lambda: os.setuid(0)), "processes", "it cannot become root")
    machine = os.uname().machine
    numbers = {
        "x86_64": {"ptrace": 101, "mount": 165, "unshare": 272, "bpf": 321, "keyctl": 250, "userfaultfd": 323, "io_uring_setup": 425,
                   "perf_event_open": 298, "open_by_handle_at": 304, "process_vm_readv": 310, "chroot": 161, "setns": 308},
        "aarch64": {"ptrace": 117, "mount": 40, "unshare": 97, "bpf": 280, "keyctl": 219, "userfaultfd": 282, "io_uring_setup": 425,
                    "perf_event_open": 241, "open_by_handle_at": 265, "process_vm_readv": 270, "chroot": 51, "setns": 268},
    }.get(machine, {})
    for name, number in numbers.items():
        say(call(number, 0, 0, 0, 0, 0), "processes", f"`{name}` is refused")
    clone = {"x86_64": 56, "aarch64": 220}.get(machine)
    say(clone is not None and call(clone, 0x10000000 | 17, 0, 0, 0, 0), "processes", "no new user namespace")
    # Python itself may add the last one.
    say(set(os.environ) - {"HOME", "LANG", "PATH", "TMPDIR", "LC_CTYPE"} == set(), "files", "the environment is empty")
    say(set(listed("/dev")) <= {"null", "zero", "urandom"}, "devices", "no devices but null, zero and random numbers")
    say(not any(os.path.exists(f"/dev/{name}") for name in ("nvidia0", "nvidiactl", "kvm", "mem", "sda", "vda")), "devices", "no GPU, disk or memory device")
    say(not os.path.exists("/sys/class"), "devices", "no device is listed")
    say(len(os.urandom(8)) == 8, "work", "random numbers are there")
    open("/dev/null", "w").write("nothing")
    child = os.fork()
    if child == 0:
        os._exit(7)
    say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7, "work", "child processes can be started")
    inherited = [fd for fd in range(3, 256) if not refused(lambda fd=fd: os.fstat(fd))]
    say(not inherited, "files", "no open file is inherited")


def main():
    mode, parent = sys.argv[1:3]
    if mode == "probes":
        probes(parent)
    elif mode == "loop":
        while True:
            pass
    elif mode == "daemon":
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    pass
            os._exit(0)
        import time

        time.sleep(600)
    elif mode == "fork":
        try:
            for _ in range(200):
                if os.fork() == 0:
                    import time

                    time.sleep(600)
            import time

            time.sleep(600)
        except OSError:
            os._exit(3)
    elif mode == "allocate":
        try:
            block = bytearray(2 << 30)
            block[::4096] = b"x" * len(block[::4096])
        except MemoryError:
            os._exit(3)
    elif mode == "share":
        import time

        for _ in range(5):
            if os.fork() == 0:
                block = bytearray(200 << 20)
                for at in range(0, len(block), 4096):
                    block[at] = 1
                time.sleep(600)
        time.sleep(600)
    elif mode == "hide":
        import time

        piece = bytes(1 << 20)
        for file in [os.memfd_create(str(number)) for number in range(4)]:
            for _ in range(200):
                os.write(file, piece)
        time.sleep(600)
    elif mode == "print":
        line = "x" * 65536
        while True:
            print(line)


main()
