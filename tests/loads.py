"""Loads whose cost is known: each process says, as its last act, what it has cost by its own account.

Run as ``python -S -I loads.py NAME ARGUMENT ...``; every process of a load appends one line of JSON to the file
that the environment variable ``NEUROTIER_TRUTH`` names, and the sum of the lines is the
truth about the tree. What they know it from:

``cpu_s``, ``run_queue_s``
    The scheduler's own clock and ``schedstat``: of a child that is waited for from its parent, after its end and
    before it is reaped, so that starting and ending are in it; of any other from itself, just before it ends.
``logical_*_bytes``
    What was asked of the kernel; a few KiB of the interpreter's own start are not in it.
``device_*_bytes``
    What a loop device, which nobody else uses, has counted from start to end.
``block_io_s``
    Field 42 of ``/proc/self/stat``, in steps of 10 ms; not where it exceeds the process's lifetime (a kernel's fault).
``running``
    Not 0 as long as a process that nobody waits for goes on.
``account_other_s``
    How long nobody does anything but sleep for a timer; what it takes to get a core afterwards is another matter.

Nothing but the standard library, and little of it: a process starts in some 10 ms.
"""

from __future__ import annotations

import os
import sys
import time

TRUTH = "NEUROTIER_TRUTH"
BEGIN_S = time.monotonic()
MIB = 1 << 20
BURN = "import os, time\nwhile time.process_time() < {}:\n for _ in range(5000): pass\nos._exit(0)"
"""A program that ends when it has used so many CPU seconds, its own start included."""

Truth = dict[str, float]


def own_account() -> Truth:
    """What this process knows of its own CPU time and its own waiting for a CPU (of its first thread), s."""
    _, run_queue_ns = schedstat("self")
    return {"run_queue_s": run_queue_ns / 1e9, "processes": 1, "cpu_s": time.process_time()}


def schedstat(which: str) -> tuple[int, int]:
    """Nanoseconds on a CPU and waiting for one, of a process's first thread (or of a thread)."""
    with open(f"/proc/{which}/schedstat", "rb") as file:
        runtime_ns, run_queue_ns, _ = map(int, file.read().split())
    return runtime_ns, run_queue_ns


def report(*truths: Truth) -> None:
    """Append sums to the file of truth, which is there."""
    total: Truth = {}
    for truth in truths:
        for name, value in truth.items():
            total[name] = total.get(name, 0) + value
    file = os.open(os.environ[TRUTH], os.O_WRONLY | os.O_APPEND)
    os.write(file, (str(total).replace("'", '"') + "\n").encode())  # numbers by name: this is JSON
    os.close(file)


def report_and_end(*truths: Truth) -> None:
    """The last act of a process that is not waited for by another process of the load; does not return."""
    report(*truths, own_account())
    os._exit(0)


def burn_here(seconds: float) -> None:
    """Use CPU until this process has used so much in all, s."""
    while time.process_time() < seconds:
        for _ in range(5000):
            pass


def start(command: list[str]) -> int:
    """Start a child that reports nothing itself; its process number."""
    return os.posix_spawnp(command[0], command, {"PATH": os.environ["PATH"]})


def reap(pid: int) -> Truth:
    """Wait for a child of one thread; what it has cost, its end included."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    runtime_ns, run_queue_ns = schedstat(str(pid))
    _, status = os.waitpid(pid, 0)
    if status:
        sys.exit(f"a child ended with {os.waitstatus_to_exitcode(status)}")
    return {"cpu_s": runtime_ns / 1e9, "run_queue_s": run_queue_ns / 1e9, "processes": 1}


def run_children(command: list[str], count: int, at_once: int) -> Truth:
    """Run a command so many times, some at once."""
    total = {"cpu_s": 0.0, "run_queue_s": 0.0, "processes": 0.0}
    pids: list[int] = []
    for number in range(count + at_once):
        if number >= at_once and pids:
            for name, value in reap(pids.pop(0)).items():
                total[name] += value
        if number < count:
            pids.append(start(command))
    return total


def children(count: str, seconds: str, at_once: str = "1", asleep_s: str = "0") -> Truth:
    """Children that compute, each for so many seconds, so many at once; then their parent waits for a timer."""
    truth = run_children([sys.executable, "-S", "-I", "-c", BURN.format(seconds)], int(count), int(at_once))
    time.sleep(float(asleep_s))
    return truth | {"account_other_s": float(asleep_s)}


def forks(count: str) -> Truth:
    """Children that do nothing: ``true``, one after the other."""
    return run_children(["true"], int(count), 1)


def daemon(seconds: str) -> Truth:
    """A process that forks twice to get away, then computes; nobody of the load waits for it."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            burn_here(float(seconds))
            report_and_end({"running": -1})
        report_and_end()
    return {"running": 1}


def unheard(count: str, seconds: str) -> Truth:
    """Children whose parent ignores SIGCHLD: the kernel reaps them, and no ``wait`` hears what they have cost."""
    import contextlib
    import signal

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(int(count)):
        if os.fork() == 0:
            burn_here(float(seconds))
            report_and_end()
    with contextlib.suppress(ChildProcessError):
        os.wait()  # returns when all have gone
    return {}


def threads(count: str, seconds: str, asleep_s: str = "0") -> Truth:
    """Threads that compute at the same time, each for so many seconds, and then wait for a timer."""
    import threading
    import zlib

    waits_ns: list[int] = []
    slept: list[tuple[float, float]] = []
    block = bytes(MIB)

    def work() -> None:
        while time.thread_time() < float(seconds):
            zlib.crc32(block)  # without the interpreter's lock
        waits_ns.append(schedstat("thread-self")[1])
        begin = time.monotonic()
        time.sleep(float(asleep_s))
        slept.append((begin, time.monotonic()))

    workers = [threading.Thread(target=work) for _ in range(int(count))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    # the last to sleep is the last to wake: until then all others sleep or have ended
    asleep_together_s = max(end for _, end in slept) - max(begin for begin, _ in slept)
    truth = {"run_queue_s": sum(waits_ns) / 1e9, "threads": len(workers) + 1}
    return truth | {"account_other_s": asleep_together_s}


def sleep(seconds: str) -> Truth:
    """One process that waits for a timer."""
    time.sleep(float(seconds))
    return {"account_other_s": float(seconds)}


def buffered(folder: str, mib: str) -> Truth:
    """Write a file through the page cache, flush it, evict it, read it."""
    return write_and_read(folder, int(mib), 4 * MIB)


def direct(folder: str, mib: str, chunk_kib: str = "4096") -> Truth:
    """Write and read a file past the page cache."""
    return write_and_read(folder, int(mib), int(chunk_kib) << 10, os.O_DIRECT)


def write_and_read(folder: str, mib: int, chunk_bytes: int, flags: int = 0) -> Truth:
    """Write a new file of so many MiB, evict it, read it and remove it."""
    import mmap

    path, size = f"{folder}/load-{os.getpid()}", mib * MIB
    block = mmap.mmap(-1, chunk_bytes)  # aligned to pages, as a device wants it whose cache is passed by
    block.write(b"\1" * chunk_bytes)
    counted = device_bytes(folder)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags)
    for _ in range(size // chunk_bytes):
        os.write(file, block)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.lseek(file, 0, os.SEEK_SET)
    for _ in range(size // chunk_bytes):
        os.readv(file, [block])
    os.close(file)
    truth: Truth = {"logical_read_bytes": size, "logical_written_bytes": size}
    truth |= {name: value - counted[name] for name, value in device_bytes(folder).items()}
    os.unlink(path)
    waited_s = block_io_s()
    if waited_s is not None:
        truth["block_io_s"] = waited_s
    return truth


def device_bytes(folder: str) -> Truth:
    """What the loop device below a folder, which nobody else uses, has counted."""
    number = os.stat(folder).st_dev
    with open(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat", "rb") as file:
        counts = file.read().split()
    return {"device_read_bytes": 512 * int(counts[2]), "device_written_bytes": 512 * int(counts[6])}


def block_io_s() -> float | None:
    """Waiting for block I/O of this process's first thread, s; ``None`` if the kernel does not account it rightly."""
    with open("/proc/sys/kernel/task_delayacct", "rb") as switch, open("/proc/self/stat", "rb") as file:
        waited_s = int(file.read().rpartition(b")")[2].split()[39]) / os.sysconf("SC_CLK_TCK")
        possible = switch.read().strip() == b"1" and waited_s <= time.monotonic() - BEGIN_S + 0.02
    return waited_s if possible else None


if __name__ == "__main__":
    report_and_end(globals()[sys.argv[1]](*sys.argv[2:]))
