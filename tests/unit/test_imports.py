"""What starts often imports little: the meter and the participant job load no library of the tables and pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from neurotier.core.places import file_of
from neurotier.core.processes import BLAS_THREADS
from neurotier.pages import PAGES
from pool_jobs import prepared_results
from support import ENVIRONMENT, ROOT

REPORTING = {"pandas", "matplotlib", "jinja2", "jsonschema"}
SLOW = REPORTING | {"scipy", "numpy", "nibabel", "snakemake", "bids", "datalad"}
"""Libraries that take more than 0.05 s to import; the job needs some of them, but only in its phases."""

JOB_ENVIRONMENT = {**ENVIRONMENT, "PYTHONPATH": str(ROOT / "workflow")}


def imported_by(module: str) -> set[str]:
    """Top-level packages that are loaded by importing a module in a new Python."""
    show = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("module", ["neurotier.__main__", "neurotier.meter.command", "neurotier.meter.summary"])
def test_the_meter_imports_the_standard_library_alone(module: str) -> None:
    assert not imported_by(module) & (SLOW | {"psutil", "humanfriendly", "yaml"})


@pytest.mark.parametrize(
    "module", ["neurotier.run.jobs", "neurotier.analysis.participant", "neurotier.analysis.brains"]
)
def test_a_participant_job_starts_without_slow_libraries(module: str) -> None:
    assert not imported_by(module) & SLOW


@pytest.mark.parametrize("module", ["neurotier.analysis.tools", "neurotier.analysis.in_container"])
def test_the_phases_of_a_participant_job_need_no_library_of_the_report(module: str) -> None:
    assert not imported_by(module) & REPORTING


def test_rules_read_pages_without_what_draws_them() -> None:
    """They ask for the names of figures at every start, which would take twice as long."""
    pages = ", ".join(f"neurotier.pages.{page}" for page in PAGES)
    assert not imported_by(pages) & {"jinja2", "matplotlib", "nibabel", "pandas", "scipy"}


def test_a_job_of_noop_loads_no_library_but_psutil(tmp_path: Path) -> None:
    """From start to end, phases included: each of thousands of jobs would pay for it."""
    results = prepared_results(tmp_path, ["01"])
    words = ["analyze-participants", "--only", "sub-01", "--results", str(results), "--log", str(tmp_path / "log")]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "neurotier", *words],
        env=JOB_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert file_of(results / "profile" / "records", "sub-01").exists()
    loaded = set(re.findall(r"^import time: .*\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "neurotier.analysis.tools" in loaded
    assert not {name.partition(".")[0] for name in loaded} & (SLOW | {"humanfriendly", "yaml"})
    assert not loaded & {"csv", "neurotier.core.tables"}


def printed_by(code: str, **environment: str) -> str:
    """What a new Python prints, in an environment without the variables in question."""
    unset = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "OMP_NUM_THREADS", *BLAS_THREADS}
    own = {name: value for name, value in JOB_ENVIRONMENT.items() if name not in unset}
    return subprocess.run(
        [sys.executable, "-c", code], env=own | environment, capture_output=True, text=True, check=True
    ).stdout


def test_jobs_find_bytecode_even_if_python_shall_write_none(tmp_path: Path) -> None:
    code = "from neurotier.run.hooks import compile_library; compile_library()"
    printed_by(code, PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX=str(tmp_path))
    compiled = {file.name.partition(".")[0] for file in tmp_path.rglob("neurotier/**/*.pyc")}
    assert compiled >= {file.stem for file in (ROOT / "workflow" / "neurotier").rglob("*.py")}


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ({}, "1"),
        ({"OMP_NUM_THREADS": "3"}, "None"),
        ({"OPENBLAS_NUM_THREADS": "2"}, "2"),
        ({"MKL_NUM_THREADS": "2"}, "None"),
    ],
)
def test_jobs_use_one_blas_thread_unless_asked(asked: dict[str, str], given: str) -> None:
    code = "from neurotier.core.processes import use_one_blas_thread; use_one_blas_thread()\nimport os\n"
    assert printed_by(f"{code}print(os.environ.get('OPENBLAS_NUM_THREADS'))", **asked).strip() == given
