"""Run a load of ``loads.py`` under the meter, and return the truth about it next to what was measured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loads import TRUTH
from support import NOBODY, PATIENCE_S, ROOT

BYTECODE = shutil.ignore_patterns("__pycache__")
"""Files that other tests may be writing meanwhile."""

METER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from neurotier.meter.measure import measure_command
usage, code = measure_command(sys.argv[2:])
print(json.dumps(usage.record()))
sys.exit(code)
"""

Figures = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """What loads run from: a folder that every user of the machine may read, and one that all may write to.

    Attributes
    ----------
    python
        An interpreter that every user may start.
    program
        ``loads.py``.
    library
        Folder with the package ``neurotier``, as far as the meter needs it.
    shared
        Folder that all may write to.
    """

    python: str
    program: Path
    library: Path
    shared: Path

    def metered(self, *words: object, ordinary: bool = False) -> tuple[Figures, Figures]:
        """Run a load under the meter, also as an ordinary user; what its processes say is true, and what was measured.

        The one is there when all of them have ended: a daemon may outlive the tool that measured it.
        """
        truth: Figures = {}
        with tempfile.NamedTemporaryFile(dir=self.shared) as file:
            os.chmod(file.name, 0o666)  # noqa: S103  # whoever the load runs as adds to it
            os.environ[TRUTH] = file.name
            try:
                said = self.measured([self.python, "-S", "-I", str(self.program), *map(str, words)], ordinary)
            finally:
                del os.environ[TRUTH]
            deadline = time.monotonic() + PATIENCE_S
            while "processes" not in truth or truth.get("running", 0) != 0:
                assert time.monotonic() < deadline, f"a process of the load did not end: {truth}"
                for line in file.read().splitlines():
                    for name, value in json.loads(line).items():
                        truth[name] = truth.get(name, 0) + value
                time.sleep(0.01)
        return truth, said

    def measured(self, command: list[str], ordinary: bool = False) -> Figures:
        """Run any command under the meter, also as an ordinary user; what was measured."""
        metered = [self.python, "-S", "-c", METER, str(self.library), *command]
        user = as_nobody() if ordinary else {}
        done = subprocess.run(metered, stdout=subprocess.PIPE, check=True, timeout=300, cwd=self.shared, **user)
        return dict(json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench, gone afterwards. Home folders and pytest's are closed to other users, so it lies beside them."""
    with tempfile.TemporaryDirectory(prefix="neurotier-loads-", dir="/var/tmp") as name:
        folder, shared = Path(name), Path(name, "shared")
        folder.chmod(0o755)
        shared.mkdir()
        shared.chmod(0o1777)
        shutil.copy(ROOT / "tests/loads.py", folder)
        package = Path("workflow", "neurotier")
        shutil.copytree(ROOT / package / "meter", folder / package / "meter", ignore=BYTECODE)
        (folder / package / "core").mkdir()
        for name in ("__init__.py", "core/__init__.py", "core/libc.py"):  # all that the meter needs of the rest
            shutil.copy(ROOT / package / name, folder / package / name)
        yield Bench(python_for_all(), folder / "loads.py", folder / "workflow", shared)


def python_for_all() -> str:
    """This interpreter if every user of the machine may start it, otherwise the system's."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run([python, "-S", "-I", "-c", "pass"], check=True, cwd="/", **as_nobody())
        except PermissionError:
            continue
        return python
    raise FileNotFoundError("an interpreter that an ordinary user may start")


def as_nobody() -> dict[str, Any]:
    """Arguments of ``subprocess`` that turn root into an ordinary user; none for an ordinary user."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
