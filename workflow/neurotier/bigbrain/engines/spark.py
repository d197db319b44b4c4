"""The engine ``spark``: one task per block, which gets the block's path and does all of its iterations.

So the data do not pass through the JVM. In the published pairing they do, as in the paper: Spark reads whole files
(binaryFiles), one iteration at a time, and this reading is in no phase. The JVM then needs memory for all blocks that
are done at once (``spark.driver.memory`` or ``spark.executor.memory``). Spark's event log is kept.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from neurotier.bigbrain.engines.gnu_parallel import require_complete
from neurotier.bigbrain.engines.spark_events import DRIVERS, Driver
from neurotier.bigbrain.engines.worker import find_block, work
from neurotier.bigbrain.tasks import PUBLISHED, Task
from neurotier.core.errors import NeurotierError, ToolError
from neurotier.core.files import write_json
from neurotier.core.installed import search_path

ENGINE = "engine spark"
LOCAL = "local"
NO_JAVA = "JAVA_GATEWAY_EXITED"


def run_spark(plan: Path, logs: Path, master: str, more: Mapping[str, str]) -> Driver:
    """Increment all blocks that are not complete.

    Parameters
    ----------
    plan
        ``plan.json`` of the run, which all nodes must see. What this start's driver program did is recorded next to it,
        even if it fails (:func:`neurotier.bigbrain.engines.spark_events.drivers_of`).
    logs
        Folder of the logs; ``events.N`` has those of the N-th start.
    master
        URL of Spark's master; ``local`` is this machine, with as many threads as the run asks for.
    more
        Further configuration of Spark.

    Raises
    ------
    ToolError
        If PySpark is missing, or Spark itself fails.
    RunError
        If blocks are left incomplete; the other blocks are done nevertheless.
    """
    plan = plan.absolute()  # executors on a cluster have working folders of their own
    task, start_s = Task.load(plan), time.time()
    events = logs / f"events.{len(list(logs.glob('events.*'))) + 1}"
    events.mkdir(parents=True)
    left = plan.parent / DRIVERS
    left /= f"{len(list(left.glob('*.json'))) + 1}.json"
    said = list[str]()
    try:
        from py4j.protocol import Py4JError
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
    except ImportError:
        raise ToolError("PySpark is not installed", ENGINE, "pip install pyspark, and have Java 17 or later") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setAll([*options(task, master, events), *more.items()])
    if address := conf.get("spark.driver.bindAddress"):  # otherwise Spark resolves its host's name, which may fail
        os.environ.setdefault("SPARK_LOCAL_IP", address)
    try:
        with descriptors_to(logs / "spark.log"), SparkContext(conf=conf) as context:
            driver = Driver(start_s, time.time() - start_s, str(events.absolute()))
            write_json(left, asdict(driver))
            context.setLogLevel("ERROR")
            said = increment_all(context, task, plan)
    except (Py4JError, PySparkException) as error:
        message = " ".join(str(error).splitlines()[:2])  # the second line names Java's exception
        java = "is there Java 17 or later? " if NO_JAVA in message else ""
        raise ToolError(f"Spark failed: {message}", ENGINE, f"{java}see {logs / 'spark.log'}") from None
    driver = replace(driver, end_s=time.time())
    write_json(left, asdict(driver))
    reasons = [line for line in said if line]
    print("\n".join(reasons))
    require_complete(task, reasons)
    return driver


@contextmanager
def descriptors_to(log: Path) -> Iterator[None]:
    """Redirect standard output and error to a file by descriptor: the JVM does not write to Python's streams."""
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    try:
        with log.open("a") as file:
            for descriptor in kept:
                os.dup2(file.fileno(), descriptor)
        yield
    finally:
        for descriptor, copy in kept.items():
            os.dup2(copy, descriptor)
            os.close(copy)


def options(task: Task, master: str, events: Path) -> list[tuple[str, str]]:
    """Spark's configuration for a run."""
    given = {
        "spark.master": f"local[{task.parallelism}]" if master == LOCAL else master,
        "spark.app.name": f"neurotier {task.run}",
        "spark.ui.enabled": "false",
        "spark.authenticate": "true",  # otherwise anyone who reaches the driver's port could run programs as this user
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.absolute().as_uri(),
        "spark.eventLog.compress": "false",
        "spark.executorEnv.PYTHONPATH": search_path(),
        "spark.executorEnv.NEUROTIER_RUN": os.environ.get("NEUROTIER_RUN", ""),
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    }
    if master == LOCAL:
        given |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    else:
        given |= {"spark.cores.max": str(task.parallelism), "spark.task.maxFailures": "1"}
        # if the first executor started without the others, fewer blocks than requested would run at once
        given["spark.scheduler.minRegisteredResourcesRatio"] = "1"
    if task.pairing == PUBLISHED:
        given["spark.files.maxPartitionBytes"] = "1"  # one task per file; Spark would combine files up to 128 MiB
    return list(given.items())


def increment_all(context: Any, task: Task, plan: Path) -> list[str]:
    """Increment all blocks that are left, with one task for each, and return the tasks' error messages.

    A task gets the path of its block. In the published pairing, Spark reads whole files, and tasks increment their
    contents, one iteration at a time.
    """
    said: list[str] = []
    if task.pairing != PUBLISHED:
        todo = [(block.file, None) for block in task.pending()]
        how = partial(increment_one, str(plan), None)
        return list(context.parallelize(todo, len(todo)).map(how).collect()) if todo else said
    for iteration in range(1, task.iterations + 1):
        files = [task.file(block, iteration - 1) for block in task.blocks if task.last_written(block) == iteration - 1]
        said += [f"{file} is not there" for file in files if not file.exists()]
        there = [str(file) for file in files if file.exists()]
        if there:
            given = context.binaryFiles(",".join(there))
            said += given.map(partial(increment_one, str(plan), iteration)).collect()
    return said


def increment_one(plan: str, iteration: int | None, item: tuple[str, bytes | None]) -> str:
    """Increment a block in a task: one iteration of a file that Spark has read, or all iterations that are left.

    Parameters
    ----------
    plan
        ``plan.json`` of the run.
    iteration
        The iteration; ``None`` for all that are left.
    item
        The block's file, and its content if Spark has read it.

    Returns
    -------
    str
        The error message; empty if there was no error.
    """
    name, task = Path(item[0]).stem, Task.load(Path(plan))
    try:
        work(task, find_block(task, name), iteration, None, item[1])
    except NeurotierError as error:
        return str(error)
    return ""
