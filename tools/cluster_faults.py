"""What goes wrong in clusters, made to go wrong: part `faults` of `tools/check_cluster.py`.

Every run here must be that of one machine, though something of the cluster is not as it should be.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ray_nodes import NOISY, QUICK, ROOT, Check, Cluster, each_once, journal, lines, verdicts, wait_for

# Units without work, where a run is to be over soon.
UNITS = 60
# Tasks, where a run must last until every node has worked.
TASKS = 24
# A model that ends the program which captures it: its process, and the extractor that it was forked from, are below it.
DEADLY = '''
import os, signal, torch

def parent(of):
    return int(open(f"/proc/{of}/stat").read().rpartition(")")[2].split()[1])

def deadly():
    above = parent(os.getpid())
    while "cluster-worker" not in open(f"/proc/{above}/cmdline").read():
        above = parent(above)
    os.kill(above, signal.SIGKILL)

def harmless():
    return torch.nn.Linear(3, 2), torch.ones(1, 3)
'''
# Every clock that tells the date goes a year ahead.
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
#define YEAR 31536000

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += YEAR;
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *where) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (where) *where = precise.tv_sec;
    return precise.tv_sec;
}
"""


def faults(check: Check) -> None:
    surroundings(check)
    driver_without_room(check)
    cancelled(check)
    partition(check)
    if os.environ.get("PASSNET_PYTHON"):
        deadly_unit(check)


def empty_units(check: Check) -> list[object]:
    tasks, passes = check.empty_units(UNITS)
    return ["bench", tasks, "--passes", passes, *QUICK]


def real_units(check: Check) -> list[object]:
    return ["bench", check.tasks(TASKS), "--passes", ROOT / "bench/passes", *QUICK]


def is_as_alone(check: Check, words: list[object], out: Path) -> bool:
    alone = check.folder / f"alone_{Path(str(words[1])).name}"
    if not alone.exists():
        check.run(*words, "--out", alone)
    expected, found = verdicts(alone), verdicts(out)
    return expected == found and len(journal(out)) == len(found) and each_once(out, out)


@contextmanager
def tiny_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=True)
    try:
        yield folder
    finally:
        # Processes of a node may have files open there for a moment more.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def surroundings(check: Check) -> None:
    """Nodes beside two that are well: another version of the program, a disk without room, a clock that is ahead."""
    other = check.folder / "passnet"
    shutil.copy(check.passnet, other)
    with open(other, "ab") as program:
        program.write(b"\n")
    words, out, ahead = real_units(check), check.folder / "surroundings", clock_ahead(check)
    with tiny_disk(check.folder / "full", "64k") as full:
        (full / "filling").write_bytes(bytes(48 << 10))
        cluster = Cluster(1)
        try:
            cluster.add(PASSNET_PROGRAM=str(other))
            cluster.add(TMPDIR=str(full))
            if ahead:
                cluster.add(LD_PRELOAD=str(ahead))
            cluster.cluster.wait_for_nodes()
            before = time.time()
            # Races that last, so that every node has been heard of before the work is done.
            lasting = [*words[:-1], "1"]
            lasting[lasting.index("--trials") + 1] = "100000"
            ran = check.run(*lasting, "--cluster", cluster.address, *NOISY, "--out", out)
        finally:
            cluster.end()
    check.expect(is_as_alone(check, words, out), f"faults: {TASKS} tasks as alone beside nodes that are not well", ran.stderr)
    said = ran.stderr
    check.expect("another version of the program: " in said and " there, " in said, "versions: the other one is refused", said)
    check.expect("No space left on device" in said, "full disk: the node is set aside and named", said)
    starts = [event["time"] for event in lines(out / "events.jsonl") if event["event"] == "start"]
    check.expect(all(before - 1 <= time <= before + 3600 for time in starts), "clocks: times are the driver's", str(starts))
    if ahead:
        nodes = {unit["node"] for unit in journal(out)}
        check.expect(len(nodes) == 2, "clocks: a node that is a year ahead works", said)


def clock_ahead(check: Check) -> Path | None:
    """A library that moves the clock of a process; none where nothing compiles it."""
    source, library = check.folder / "clock.c", check.folder / "clock.so"
    source.write_text(CLOCK)
    if shutil.which("cc") is None:
        return None
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library


def driver_without_room(check: Check) -> None:
    """The disk of the driver fills up; with more room the same command goes on."""
    words = empty_units(check)
    cluster = Cluster(2)
    try:
        with tiny_disk(check.folder / "small", "48k") as place:
            out = place / "run"
            command = [*words, "--cluster", cluster.address, *NOISY, "--out", out]
            ran = check.run(*command, codes=(3,))
            kept = journal(out)
            check.expect("No space left on device" in ran.stderr and 0 < len(kept) < UNITS,
                         f"full disk: the driver says so, {len(kept)} units are kept", ran.stderr)
            subprocess.run(["mount", "-o", "remount,size=64m", str(place)], check=True)
            ran = check.run(*command)
            goes_on = journal(out)[: len(kept)] == kept and is_as_alone(check, words, out)
            check.expect(goes_on, "full disk: with room the same command goes on", ran.stderr)
    finally:
        cluster.end()


def cancelled(check: Check) -> None:
    """Ctrl-C: units under way come to their end, no worker is left, the same command goes on."""
    words, out = empty_units(check), check.folder / "cancelled"
    cluster = Cluster(2)
    try:
        command = check.command(*words, "--cluster", cluster.address, *NOISY, "--out", out)
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while driver.poll() is None and not journal(out):
            time.sleep(0.05)
        driver.send_signal(signal.SIGINT)
        said = driver.communicate()[1]
        done = len(journal(out))
        each = Counter(unit["unit"] for unit in journal(out))
        check.expect(0 < done < UNITS and set(each.values()) == {1}, f"cancel: {done} units are kept", said)
        wait_for(lambda: no_worker(check), 30)
        check.expect(True, "cancel: no worker is left")
        check.run(*words, "--cluster", cluster.address, *NOISY, "--out", out)
    finally:
        cluster.end()
    check.expect(is_as_alone(check, words, out), "cancel: the same command goes on")


def no_worker(check: Check) -> None:
    """An error while a worker of this program is there."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:1] == [str(check.passnet).encode()] and b"cluster-worker" in words:
            raise OSError(f"{process} is still there")


def partition(check: Check) -> None:
    """A node in a network of its own, whose cable is pulled while it works and put back later."""
    here, there = "10.77.0.1", "10.77.0.2"
    far = subprocess.Popen(["unshare", "--net", "sleep", "3600"])
    try:
        time.sleep(0.5)
        inside = ["nsenter", "-t", str(far.pid), "-n"]
        for command in (
            ["ip", "link", "add", "near", "type", "veth", "peer", "name", "far"],
            ["ip", "link", "set", "far", "netns", str(far.pid)],
            ["ip", "address", "add", f"{here}/24", "dev", "near"],
            ["ip", "link", "set", "near", "up"],
            [*inside, "ip", "address", "add", f"{there}/24", "dev", "far"],
            [*inside, "ip", "link", "set", "far", "up"],
            [*inside, "ip", "link", "set", "lo", "up"],
        ):
            subprocess.run(command, check=True)
        cut_off(check, Cluster(1, here), inside, there)
    finally:
        far.kill()
        far.wait()


def cut_off(check: Check, cluster: Cluster, inside: list[str], there: str) -> None:
    words, out = real_units(check), check.folder / "partition"
    ray = str(Path(sys.executable).with_name("ray"))
    start = [*inside, ray, "start", f"--address={cluster.address}", f"--node-ip-address={there}", "--num-cpus=1",
             "--object-store-memory=100000000", "--block"]
    node = subprocess.Popen(start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    link = lambda state: subprocess.run(["ip", "link", "set", "near", state], check=True)  # noqa: E731
    try:
        wait_for(lambda: is_there(cluster, there), 120)
        command = check.command(*words, "--cluster", cluster.address, *NOISY, "--out", out)
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # Both work; then one cannot be reached.
        while driver.poll() is None and len({unit["node"] for unit in journal(out)}) < 2:
            time.sleep(0.02)
        link("down")
        worked, end = len(journal(out)), time.monotonic() + 120
        # It may be that the last unit is done elsewhere before anybody says that the node is gone.
        while driver.poll() is None and not gone(out) and time.monotonic() < end:
            time.sleep(0.1)
        goes_on = worked < TASKS and time.monotonic() < end
        link("up")
        said = driver.communicate()[1]
    finally:
        os.killpg(node.pid, signal.SIGKILL)
        node.wait()
        cluster.end()
    check.expect(goes_on, f"partition: the run goes on without a node that is cut off after {worked} units", said)
    check.expect(is_as_alone(check, words, out), f"partition: {TASKS} tasks as alone, each once", said)


def gone(out: Path) -> set[str]:
    return {event["node"] for event in journal(out, "node") if event["what"] == "gone"}


def is_there(cluster: Cluster, address: str) -> None:
    nodes = cluster.cluster.global_state.node_table()
    if not any(node["NodeManagerAddress"] == address and node["Alive"] for node in nodes):
        raise OSError(json.dumps([node["NodeManagerAddress"] for node in nodes]))


def deadly_unit(check: Check) -> None:
    """A unit that ends two workers is set aside with both reasons; the others are done."""
    source = check.folder / "deadly.py"
    source.write_text(DEADLY)
    out = check.folder / "deadly"
    cluster = Cluster(2)
    try:
        ran = check.run("extract", f"{source}:deadly", f"{source}:harmless", "--cluster", cluster.address, "--out", out,
                        codes=(3,))
    finally:
        cluster.end()
    aside = journal(out, "aside")
    reasons = [reason for event in aside for reason in event["reasons"]]
    check.expect(len(aside) == 1 and len(reasons) == 2 and all("SIGKILL" in reason for reason in reasons),
                 "a unit that ends two workers is set aside with both reasons", ran.stderr + str(aside))
    check.expect([unit["unit"].endswith("harmless") for unit in journal(out)] == [True], "the other one is done", ran.stderr)
