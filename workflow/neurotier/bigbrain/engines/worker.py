"""What an engine starts for each block: ``python3 -m neurotier.bigbrain.engines.worker PLAN BLOCK ITERATION|all LOG``.

``PLAN`` is the run's ``plan.json``, ``LOG`` takes what is printed. A failure is one line on the terminal and in the
log, and the exit code says of what kind. argparse would cost each of thousands of blocks a tenth of its start.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

for _pool in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # NumPy would start threads that nobody uses
    os.environ.setdefault(_pool, "1")

from neurotier.bigbrain.engines.increment import increment  # noqa: E402
from neurotier.bigbrain.tasks import ALL, Block, Task  # noqa: E402
from neurotier.core.errors import InputError, NeurotierError, TierError  # noqa: E402
from neurotier.core.files import open_lock  # noqa: E402

EVERY = "all"
"""Instead of an iteration: all that are left."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code of the process."""
    plan, name, which, log = sys.argv[1:] if arguments is None else arguments
    iteration, start_s = None if which == EVERY else int(which), process_start_s()
    exit_code, line = told(name, Path(log), lambda: work_on(Task.load(Path(plan)), name, iteration, start_s))
    if exit_code:
        print(line, file=sys.stderr, flush=True)
    return exit_code


def told(name: str, log: Path, doing: Callable[[], list[int]]) -> tuple[int, str]:
    """Do the work on a block; the exit code that tells how it went, and the line that does, which is in its log, too.

    Parameters
    ----------
    name
        The block.
    log
        Takes the line.
    doing
        The work, which says what iterations it has done.
    """
    exit_code = 0
    try:
        line = f"{name}: iterations done: {doing()}"
    except NeurotierError as error:
        line, exit_code = f"neurotier: {error}", error.exit_code
    except OSError as error:
        line, exit_code = f"neurotier: block {name}: {error.filename}: {error.strerror}", TierError.exit_code
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)  # a FIFO in its place would never be written
    log.write_text(f"{line}\n")
    return exit_code, line


def work_on(task: Task, name: str, iteration: int | None, start_s: float | None) -> list[int]:
    """Do one iteration of a block, given by its name, or all that are left; which were done."""
    return work(task, find_block(task, name), iteration, start_s)


def work(
    task: Task, block: Block, iteration: int | None, start_s: float | None, given: bytes | None = None
) -> list[int]:
    """Do one iteration of a block, or all that are left; which were done.

    ``given`` is what the one iteration is to read, if the engine has read it already.

    The iteration before the one that is read is removed unless it is to be kept: no start of any engine, however the
    last one ended, needs it again.
    """
    with os.fdopen(open_lock(task.lock(block)), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        todo = [iteration] if iteration else list(range(task.last_written(block) + 1, task.iterations + 1))
        for k in todo:
            task.record(block, k).unlink(missing_ok=True)
            if k > 2 and task.keep != ALL:
                task.file(block, k - 2).unlink(missing_ok=True)
            write_record(task.record(block, k), increment(task, block, k, start_s, given))
            start_s = None
    return todo


def write_record(path: Path, record: dict[str, object]) -> None:
    """Write a record, whole or not at all."""
    partial = path.with_name(f".{path.name}")
    partial.write_text(json.dumps(record))
    partial.replace(path)


def find_block(task: Task, name: str) -> Block:
    """A block of a run by its name."""
    found = next((block for block in task.blocks if block.block == name), None)
    if found is None:
        raise InputError("is no block of this run", where=name, fix="see its blocks.tsv")
    return found


def process_start_s(pid: int | str = "self") -> float:
    """When a process was started, s since 1970, to 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - age_s


if __name__ == "__main__":
    _exit_code = main()
    sys.stdout.flush()
    os._exit(_exit_code)  # taking Python and NumPy down in order is a seventh of what a block's process costs
