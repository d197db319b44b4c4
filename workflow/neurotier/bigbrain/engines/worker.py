"""The process that does one block: ``python3 -m neurotier.bigbrain.engines.worker PLAN BLOCK ITERATION|all LOG``.

``PLAN`` is the run's ``plan.json``; what is printed also goes to ``LOG``. A failure is one line on the terminal and in
the log, and the exit code tells its kind. argparse is not used: it would add a tenth to the start of each process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

for _pool in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # otherwise NumPy would start threads that are not needed
    os.environ.setdefault(_pool, "1")

if __name__ == "__main__":  # a SIGCONT that stays pending shows that the process was suspended, even while importing
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})

from neurotier.bigbrain.engines.increment import increment  # noqa: E402
from neurotier.bigbrain.tasks import ALL, EVERY, Block, Task  # noqa: E402
from neurotier.core.errors import InputError, NeurotierError, TierError  # noqa: E402
from neurotier.core.files import exclusive, write_json  # noqa: E402
from neurotier.core.processes import end_with_parent  # noqa: E402
from neurotier.meter.own import age_s  # noqa: E402

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    """Run the command line; return the exit code of the process."""
    plan, name, which, log = sys.argv[1:]
    start_s, exit_code = -age_s() + time.time(), 0  # in this order, so that a delay in between cannot make it too early
    try:
        task = Task.load(Path(plan))
        done = work(task, find_block(task, name), None if which == EVERY else int(which), start_s)
        line = f"{name}: iterations done: {done}"
    except NeurotierError as error:
        line, exit_code = f"neurotier: {error}", error.exit_code
    file = Path(log)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # a FIFO in its place would never be written
    file.write_text(f"{line}\n")
    if exit_code:
        print(line, file=sys.stderr, flush=True)
    return exit_code


def work(
    task: Task, block: Block, iteration: int | None, start_s: float | None, given: bytes | None = None
) -> list[int]:
    """Do one iteration of a block, or all that are left; return those done.

    ``given`` is the content that the one iteration is to read, if the engine has read it already.

    The output of the iteration before the one that is read is removed unless it is to be kept, since no later start of
    an engine can need it.

    Raises
    ------
    InputError
        If the file to read is missing, or not as it should be.
    TierError
        If a tier is full or fails.
    """
    try:
        with exclusive(Path(task.records, block.block)):  # a worker may have outlived a killed engine
            todo = [iteration] if iteration else list(range(task.last_written(block) + 1, task.iterations + 1))
            for k in todo:
                task.record(block, k).unlink(missing_ok=True)
                if k > 2 and task.keep != ALL:
                    task.file(block, k - 2).unlink(missing_ok=True)
                write_json(task.record(block, k), increment(task, block, k, start_s, given), durable=False)
                start_s = None
    except OSError as error:
        raise TierError(f"{error.filename}: {error.strerror}", f"block {block.block}") from None
    return todo


def find_block(task: Task, name: str) -> Block:
    """Find a block of a run by its name."""
    found = next((block for block in task.blocks if block.block == name), None)
    if found is None:
        raise InputError("is not a block of this run", name, "see its blocks.tsv")
    return found


def unwind(number: int, _frame: object) -> NoReturn:
    """End this process by an exception, so that it removes what it has half written."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # GNU parallel, the kernel and a terminal may all send one
    sys.exit(128 + number)


if __name__ == "__main__":
    for _number in SIGNALS:
        signal.signal(_number, unwind)
    end_with_parent()
    _exit_code = main()
    sys.stdout.flush()
    os._exit(_exit_code)  # an orderly shutdown of Python and NumPy would be a seventh of the cost of this process
