"""A real standalone cluster of Spark on this machine: a master and its workers, for tests and benchmarks that use it.

The wheel of PySpark has no ``start-master.sh``; what that would start is started here, on ports that are free, and ends
with this process at the latest.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slurm_cluster import end, end_with_parent, wait_until
from support import ENVIRONMENT

HERE = "127.0.0.1"
OPTIONS = {"spark.driver.host": HERE, "spark.driver.bindAddress": HERE}
"""What the driver needs to be told beside the master's URL, so that all of it stays on this machine."""

WORKERS = 2
MEMORY_MIB = 4096
"""What a worker has for its executors; one takes 1 GiB unless told otherwise."""


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """The URL of a master with two workers of a core each; all are gone afterwards.

    Who is to use it finds its secret by ``SPARK_CONF_DIR`` in ``ENVIRONMENT``.

    Parameters
    ----------
    folder
        Where logs, the secret and the workers' files go.
    """
    (folder / "conf").mkdir(parents=True)
    secret = folder / "conf/spark-defaults.conf"
    secret.touch(0o600)
    secret.write_text(f"spark.authenticate true\nspark.authenticate.secret {secrets.token_hex()}\n")
    ENVIRONMENT["SPARK_CONF_DIR"] = str(secret.parent)
    daemons = []

    def start(kind: str, name: str, *arguments: str) -> None:
        command = ["spark-class", f"org.apache.spark.deploy.{kind}", "--host", HERE, "--webui-port", "0", *arguments]
        path = f"{Path(sys.executable).parent}{os.pathsep}{ENVIRONMENT['PATH']}"
        own = {"PATH": path, "SPARK_LOCAL_IP": HERE, "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
        with (folder / f"{name}.log").open("wb") as log:
            daemons.append(
                subprocess.Popen(
                    command,
                    cwd=folder,
                    env={**ENVIRONMENT, **own},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    preexec_fn=end_with_parent,  # there are no threads
                )
            )

    def said(text: str) -> list[str]:
        return re.findall(text, (folder / "master.log").read_text())

    try:
        start("master.Master", "master", "--port", "0")
        wait_until(lambda: bool(said(r"master at (spark://\S+)")), "Spark's master")
        (url,) = said(r"master at (spark://\S+)")
        for number in range(WORKERS):
            size = ["--cores", "1", "--memory", f"{MEMORY_MIB}m", "--work-dir", str(folder / f"work{number}")]
            start("worker.Worker", f"worker{number}", *size, url)
        wait_until(lambda: len(said("Registering worker")) == WORKERS, "Spark's workers")
        yield url
    finally:
        del ENVIRONMENT["SPARK_CONF_DIR"]
        for daemon in reversed(daemons):
            end(daemon)
