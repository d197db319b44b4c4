"""Small files: what the probe measures of them, and what the advice makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from neurotier.advice.calibration import QUANTITIES, ObservedJob
from neurotier.advice.predict import Fetching, Inputs, Participant, Storage, predict
from neurotier.core.errors import TierError, ToolError
from neurotier.model.machine import PageCache, Processors
from neurotier.model.prediction import Prediction
from neurotier.model.this_machine import FileCost, Probed
from neurotier.storage.probe.small_files import LEAST_FILES, OPERATIONS, measure_files
from probed_tiers import tier_figures

N = 10_000


def test_small_files_are_measured_and_gone(memory_folder: Path) -> None:
    for streams in (1, 3):
        measured = measure_files("memory", memory_folder, streams, 5.0, 60.0)
        assert tuple(measured) == OPERATIONS
        for operation in measured.values():
            assert 0 < operation["operation_cpu_s"] <= operation["latency_mean_s"] * 1.05
            assert 0 <= operation["operation_wait_s"] < operation["latency_mean_s"]
        assert list(memory_folder.iterdir()) == []


def test_a_tier_with_few_inodes_is_measured_with_few_files_and_one_without_is_named(
    tmp_path: Path, mount_tmpfs: pytest.FixtureRequest
) -> None:
    few: Path = mount_tmpfs(tmp_path / "few", f"nr_inodes={3 * LEAST_FILES}")  # type: ignore[operator]
    assert measure_files("few", few, 1, 5.0, 60.0)["make"]["operation_cpu_s"] > 0
    assert list(few.iterdir()) == []
    none: Path = mount_tmpfs(tmp_path / "none", f"nr_inodes={LEAST_FILES // 2}")  # type: ignore[operator]
    with pytest.raises(TierError, match=r"^tier 'none': had no room, or no inodes, for 40 small files; make room, or"):
        measure_files("none", none, 2, 5.0, 60.0)
    assert list(none.iterdir()) == []


def test_what_cannot_be_done_or_does_not_end_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"^tier 'gone', small files: No such file or directory$"):
        measure_files("gone", tmp_path / "gone", 1, 0.5, 60.0)
    (tmp_path / "files.1").touch()  # the others do not wait for one that fails
    with pytest.raises(ToolError, match=r"^tier 'odd', small files: File exists$"):
        measure_files("odd", tmp_path, 3, 0.5, 60.0)
    with pytest.raises(ToolError, match=r"^tier 'slow', small files: python.* did not end within 0 s$"):
        measure_files("slow", tmp_path, 1, 0.5, 0.001)


PROBES = {
    tier: Probed(*[tier_figures(kind, {1: 1e15}, {1: 1e15}, files={1: cost})] * 3)
    for tier, kind, cost in (
        ("memory", "tmpfs", FileCost(2e-5, 0.0)),
        ("disk", "block", FileCost(5e-5, 1e-4)),
        ("net", "network", FileCost(3e-5, 1e-3)),
    )
}
"""Tiers whose bandwidth takes no time."""


def predicted(calibrated_on: str, work: str, cpu_s: float = 2.0, wait_s: float = 0.0) -> Prediction:
    """A prediction of a participant who makes 10,000 small files, as one did."""
    phases = {"compute": dict.fromkeys(QUANTITIES, 0.0) | {"cpu_s": cpu_s, "wait_s": wait_s, "made_files": float(N)}}
    made = ObservedJob("sub-1", "r", 1, phases, 0.0, 9.0, 0.0, 1, work_tier=calibrated_on)
    tiers = dict.fromkeys(("dataset", "images", "results"), "memory") | {"work": work}
    given = Inputs([made], [Participant(1)], Fetching(), PROBES, Processors(4, 4), PageCache(1e12))
    return predict(given, Storage(tiers, {name: probe.usual for name, probe in PROBES.items()}), 1)


@pytest.mark.parametrize(
    ("calibrated_on", "job", "work", "expected_s"),
    [
        ("memory", (), "memory", 2.0),  # what was measured there, and nothing twice
        ("memory", (), "disk", 2.0 + N * (5e-5 - 2e-5) + N * 1e-4),
        ("memory", (), "net", 2.0 + N * (3e-5 - 2e-5) + N * 1e-3),
        ("disk", (), "memory", 2.0 - N * (5e-5 - 2e-5)),
        ("disk", (), "disk", 2.0 + N * 1e-4),  # waiting for storage is never taken from the calibration
        ("net", (2.0, 10.5), "net", 2.0 + 10.5),
        ("net", (2.0, 10.5), "memory", 2.0 + N * (2e-5 - 3e-5) + 0.5),
        ("net", (2.0, 4.0), "memory", 2.0 + N * (2e-5 - 3e-5)),  # there was less than the probe says
        ("disk", (2.0, 3.0), "memory", 2.0 - N * (5e-5 - 2e-5) + 3.0),  # sleep that is no waiting for a network stays
        ("memory", (0.1,), "disk", N * 5e-5 + N * 1e-4),
        ("unprobed", (), "disk", 2.0 + N * 1e-4),  # CPU time there is not known, so none is put in
    ],
)
def test_files_cost_what_tiers_differ_by(
    calibrated_on: str, job: tuple[float, ...], work: str, expected_s: float
) -> None:
    assert predicted(calibrated_on, work, *job).makespan_s == pytest.approx(expected_s, rel=0.02)
