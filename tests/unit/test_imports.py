"""What starts often imports little: the meter and the participant job load no library of the tables and pages."""

from __future__ import annotations

import subprocess
import sys

import pytest

REPORTING = {"pandas", "matplotlib", "jinja2", "jsonschema"}
SLOW = REPORTING | {"scipy", "numpy", "nibabel", "snakemake", "bids", "datalad"}
"""Libraries that take more than 0.05 s to import; the job needs some of them, but only in its phases."""


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
