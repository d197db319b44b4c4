"""What starts often imports little: the meter and the participant job load no library of the tables and pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from neurotier.core.places import file_of
from neurotier.core.processes import THREADS
from pool_jobs import prepared_results
from support import JOB_ENVIRONMENT, ROOT

REPORTING = {"pandas", "matplotlib", "jinja2", "jsonschema"}
SLOW = REPORTING | {"scipy", "numpy", "nibabel", "snakemake", "bids", "datalad"}
"""Libraries that take more than 0.05 s to import; the job needs some of them, but only in its phases."""


def imported_by(module: str) -> set[str]:
    """Top-level packages that are loaded by importing a module in a new Python."""
    show = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    return set(subprocess.check_output([sys.executable, "-c", show], text=True).split())


SCRIPTS = {
    ("neurotier.__main__", "neurotier.meter.command"): SLOW | {"psutil", "humanfriendly", "yaml"},
    ("neurotier.analysis.tools", "neurotier.analysis.brains"): REPORTING,
}
"""Modules of the meter, and of the phases of a participant job, to what they do without."""


@pytest.mark.parametrize(("modules", "unloaded"), SCRIPTS.items())
def test_what_starts_often_imports_little(modules: tuple[str, ...], unloaded: set[str]) -> None:
    assert not imported_by(", ".join(modules)) & unloaded


def test_a_job_of_noop_loads_no_library_but_psutil(tmp_path: Path) -> None:
    """From start to end, phases included: each of thousands of jobs would pay for it."""
    results = prepared_results(tmp_path, ["01"])
    words = ["analyze-participants", "--only", "sub-01", "--results", str(results), "--log", str(tmp_path / "log")]
    command = [sys.executable, "-X", "importtime", "-m", "neurotier", *words]
    done = subprocess.run(command, env=JOB_ENVIRONMENT, capture_output=True, text=True, check=True)
    assert file_of(results / "profile/records", "sub-01").exists()
    loaded = set(re.findall(r"^import time: .*\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "neurotier.analysis.tools" in loaded
    assert not {name.partition(".")[0] for name in loaded} & (SLOW | {"humanfriendly", "yaml"})
    assert not loaded & {"csv", "neurotier.core.tables"}


def printed_by(code: str, **environment: str) -> str:
    """What a new Python prints, in an environment without the variables in question."""
    unset = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", *THREADS}
    own = {name: value for name, value in JOB_ENVIRONMENT.items() if name not in unset}
    return subprocess.check_output([sys.executable, "-c", code], env=own | environment, text=True)


def test_jobs_find_bytecode_even_if_python_shall_write_none(tmp_path: Path) -> None:
    code = "from neurotier.run.head import compile_library; compile_library()"
    printed_by(code, PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX=str(tmp_path))
    compiled = {file.name.partition(".")[0] for file in tmp_path.rglob("neurotier/**/*.pyc")}
    assert compiled >= {file.stem for file in (ROOT / "workflow/neurotier").rglob("*.py")}


@pytest.mark.parametrize(
    ("asked", "given"), [({}, "1"), ({"OMP_NUM_THREADS": "3"}, "None"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")]
)
def test_a_start_uses_one_blas_thread_unless_asked(asked: dict[str, str], given: str) -> None:
    code = "from neurotier.run.head import make_importable; make_importable()\nimport os\n"
    assert printed_by(f"{code}print(os.environ.get('OPENBLAS_NUM_THREADS'))", **asked).strip() == given
