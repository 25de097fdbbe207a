"""What a program with devices must still not be able to do, tried; and what the devices are for, done. One line for each."""

import ctypes
import os
import socket
import sys
import threading

OWN_NAMES = {"own", "self", "thread-self", "2"}


def say(holds, area, claim):
    print("ok" if holds else "BROKEN", area, claim, flush=True)


def refused(action):
    try:
        action()
    except OSError:
        return True
    return False


def listed(top):
    """Every file below a folder that is no link."""
    return {os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names}


def probes(parent, devices, seen):
    allowed = {"/dev/null", "/dev/zero", "/dev/urandom", *devices}
    say(listed("/dev") <= allowed, "devices", "only the devices that were named are there")
    # The rights to parts of a GPU are not everybody's.
    usual = [device for device in devices if "/nvidia-caps/" not in device]
    say(all(not refused(lambda one=one: os.close(os.open(one, os.O_RDONLY))) for one in usual), "devices", "those can be opened")
    tops = {os.path.relpath(path, "/proc").split("/")[0] for path in seen if path.startswith("/proc/")}
    say(set(os.listdir("/proc")) <= OWN_NAMES | tops, "files", "only what was named of /proc is there")
    say(all(name.isdigit() or name in OWN_NAMES for name in os.listdir("/proc/own")), "files", "its own part lists processes only")
    say({name for name in os.listdir("/proc/own") if name.isdigit()} <= {"1", str(os.getpid())}, "processes", "no other process is listed")
    say(not os.path.exists(f"/proc/own/{parent}") or int(parent) == os.getpid(), "processes", "the parent is not listed")
    for name in ("environ", "mem", "maps"):
        say(refused(lambda name=name: open(f"/proc/own/1/{name}", "rb").read(1)), "processes", f"the first process's `{name}` cannot be read")
    for name in ("root", "exe"):
        say(refused(lambda name=name: os.readlink(f"/proc/own/1/{name}")), "processes", f"the first process's `{name}` cannot be followed")
    for path in sorted(path for path in seen if os.path.isfile(path)):
        say(refused(lambda path=path: open(path, "r+")), "files", f"{path} cannot be written")
    say(refused(lambda: os.mkdir("/proc/driver/own")) and refused(lambda: os.mkdir("/sys/own")), "files", "nothing can be added to /proc and /sys")
    for family, name in ((socket.AF_INET, "IPv4"), (socket.AF_INET6, "IPv6"), (socket.AF_NETLINK, "netlink"), (socket.AF_PACKET, "raw")):
        say(refused(lambda family=family: socket.socket(family, socket.SOCK_RAW if family == socket.AF_NETLINK else socket.SOCK_DGRAM)), "network", f"no {name} sockets")
    own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own.bind("\0passnet-own")
    say(True, "work", "a socket between its own processes can be made")
    named = []

    def name_thread():
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
            named.append(file.write("named"))

    thread = threading.Thread(target=name_thread)
    thread.start()
    thread.join()
    say(named == [5], "work", "threads can be named")
    os.close(os.memfd_create("own"))
    say(True, "work", "files in memory can be made")


def cuda():
    """Whether CUDA starts, computes and gives back what it was given; the number is CUDA's own where it does not."""
    library = ctypes.CDLL("libcuda.so.1")
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    name, count, size = ctypes.create_string_buffer(128), ctypes.c_int(), 1 << 20
    back = (ctypes.c_uint8 * size)()
    steps = [
        ("cuInit", lambda: library.cuInit(0)),
        ("cuDeviceGetCount", lambda: library.cuDeviceGetCount(ctypes.byref(count))),
        ("cuDeviceGet", lambda: library.cuDeviceGet(ctypes.byref(device), 0)),
        ("cuDeviceGetName", lambda: library.cuDeviceGetName(name, 128, device)),
        ("cuDevicePrimaryCtxRetain", lambda: library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)),
        ("cuCtxSetCurrent", lambda: library.cuCtxSetCurrent(context)),
        ("cuMemAlloc", lambda: library.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size))),
        ("cuMemsetD8", lambda: library.cuMemsetD8_v2(memory, ctypes.c_uint8(7), ctypes.c_size_t(size))),
        ("cuMemcpyDtoH", lambda: library.cuMemcpyDtoH_v2(back, memory, ctypes.c_size_t(size))),
    ]
    for step, call in steps:
        error = call()
        if error:
            text = ctypes.c_char_p()
            library.cuGetErrorName(error, ctypes.byref(text))
            say(False, "work", f"CUDA runs: {step} gave {error} ({(text.value or b'?').decode()})")
            return
    say(back[0] == back[size - 1] == 7, "work", f"CUDA runs: {name.value.decode()}")


def main():
    parent, devices, seen = sys.argv[1], sys.argv[2].split("\n"), sys.argv[3].split("\n")
    probes(parent, devices, seen)
    if "/dev/nvidiactl" in devices:
        try:
            cuda()
        except (OSError, AttributeError) as error:
            say(False, "work", f"CUDA runs: {error}")


main()
