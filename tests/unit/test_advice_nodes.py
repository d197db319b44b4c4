"""Advice for several nodes: what grows with them, what does not, and from when on a shared tier is the limit."""

from __future__ import annotations

from typing import Any

import pytest
from neurotier.advice.nodes import Nodes, node_advices, node_basis, rows_of, shared_tiers
from neurotier.advice.observed import QUANTITIES, ObservedJob
from neurotier.advice.predict import Inputs, predict
from neurotier.advice.workload import JobStart, Participant, Storage
from neurotier.core.parallelism import PHASES
from neurotier.core.settings import Settings
from neurotier.core.tables import columns
from neurotier.model.machine import PageCache, Processors
from neurotier.model.this_machine import Probed
from neurotier.storage.probe.tier_figures import TierFigures

MB = 1e6
ON_TMPFS = Storage(
    {"dataset": "disk", "work": "tmpfs", "images": "disk", "results": "disk"},
    {"disk": "block", "tmpfs": "tmpfs"},
    resident=0.0,
)
ADVISED: dict[str, Any] = {
    "placement": "tmpfs",
    "in_use": True,
    "cache": "cold",
    "participants": 32,
    "predicted_s": 100.0,
    "low_s": 80.0,
    "high_s": 130.0,
}


def probed(name: str, kind: str, speed: float) -> Probed:
    """A tier that gets twice as fast from 1 to 4 streams; memory is ten times as fast."""
    curve, memory = {1: speed, 4: 2 * speed}, {1: 10 * speed, 4: 20 * speed}
    alone = ("single_read_bytes_per_s", "single_write_bytes_per_s")
    small = ("read_cpu_s_per_byte", "write_cpu_s_per_byte", "random_read_s", "create_s", "stat_s")
    measured: dict[str, Any] = {
        **dict.fromkeys(("read_bytes_per_s", "write_bytes_per_s", "mixed_bytes_per_s"), curve),
        **dict.fromkeys(("cached_read_bytes_per_s", "buffered_write_bytes_per_s"), memory),
        **dict.fromkeys(alone, speed),
        **dict.fromkeys(small, 0.0),
    }
    figures = TierFigures(kind=kind, **measured)
    return Probed(figures, figures, figures)


def job(size: float) -> ObservedJob:
    """A job of 10 s that reads its images and writes half as much."""
    phases = {phase: dict.fromkeys(QUANTITIES, 0.0) for phase in PHASES if phase != "container_start"}
    phases["stage_in"] |= {"read_bytes": size, "written_bytes": size}
    phases["compute"] |= {"cpu_s": 10.0, "read_bytes": size}
    phases["stage_out"] |= {"read_bytes": size / 2, "written_bytes": size / 2}
    return ObservedJob("sub-1", "r", "h", int(size), phases, 0.0, 10.0, 0.0, 1000, None, None, None, None)


def nodes(shared: set[str], participants: int = 32) -> Nodes:
    """Participants of 100 MB and 10 s of computing, two at once on a node; a disk gives 200 MB/s to many streams."""
    probes = {"disk": probed("disk", "block", 100 * MB), "tmpfs": probed("tmpfs", "tmpfs", 1000 * MB)}
    inputs = Inputs(
        observed=[job(50 * MB), job(150 * MB)],
        gaps_s=[0.0],
        participants=[Participant(int(100 * MB))] * participants,
        job_start=JobStart(0.0),
        probes=probes,
        processors=Processors(2, 2),
        page_cache=PageCache(1e12),
    )
    return Nodes(inputs, ON_TMPFS, 2, shared)


def test_one_node_is_predicted_as_ever() -> None:
    placed = nodes({"disk"})
    usual_s = predict(placed.inputs, ON_TMPFS, 2).usual.makespan_s
    assert rows_of(placed, ADVISED | {"predicted_s": usual_s})[0]["predicted_s"] == pytest.approx(usual_s)
    assert placed.most == 16
    assert nodes(set(), 1000).most == 64


def test_what_nodes_have_of_their_own_grows_with_them_and_what_they_share_does_not() -> None:
    own, shared = nodes(set()), nodes({"disk"})
    machines = [one.machine(4, each_its_own=False) for one in (own, shared)]
    assert [machine.processors.threads for machine in machines] == [8, 8]
    assert [machine.tiers["tmpfs"].read_bytes_per_s for machine in machines] == [4 * 1500e6] * 2
    assert [machine.tiers["disk"].read_bytes_per_s for machine in machines] == [4 * 150e6, 200e6]
    assert {machine.tiers["disk"].read_stream_bytes_per_s for machine in machines} == {100e6}
    one_s, all_s = own.simulate(1).makespan_s, own.simulate(16).makespan_s
    assert all_s == pytest.approx(one_s / 16, rel=0.05)
    assert shared.simulate(16).makespan_s > 32 * 100e6 / 200e6  # all images once through the disk


def test_from_so_many_nodes_on_a_shared_tier_is_the_limit() -> None:
    rows = rows_of(nodes({"disk"}), ADVISED)
    assert [row["nodes"] for row in rows] == [1, 2, 4, 8, 16]
    assert all(row.keys() == columns("nodes").keys() for row in rows)
    assert rows[0]["low_s"] == pytest.approx(0.8 * rows[0]["predicted_s"])
    assert rows[-1]["high_s"] == pytest.approx(1.3 * rows[-1]["predicted_s"])
    assert rows[-1]["low_s"] < 0.5 * rows[-1]["predicted_s"], "a tier that gives each node as much is not ruled out"
    limited_from = rows[0]["shared_limit_from"]
    assert 2 < limited_from <= 16
    limits = {row["nodes"]: row["limit"] for row in rows}
    assert limits[1].startswith("computing")
    assert limits[16] == "reading from disk"
    (line,) = node_advices(rows)
    assert line.startswith("tmpfs: ")
    assert line.endswith(f"from {limited_from} nodes on, reading from disk, which they share, is the limit")
    assert "never tried" in node_basis(rows)[0]
    assert node_advices(rows[:1]) == node_basis(rows[:1]) == []


def test_without_a_shared_tier_there_is_no_such_number() -> None:
    rows = rows_of(nodes(set()), ADVISED)
    assert {row["shared_limit_from"] for row in rows} == {None}
    assert node_advices(rows)[0].endswith("; no tier is shared")


def test_what_a_check_cannot_tell_is_told_by_kind_and_use() -> None:
    kinds = {"disk": "block", "scratch": "block", "nfs": "network", "seen": "block", "memory": "tmpfs"}
    tiers = {name: {"path": f"/{name}", "kind": kind} for name, kind in kinds.items()}
    placement = dict.fromkeys(("dataset", "images", "results"), "disk") | {"work": "scratch"}
    settings = Settings.from_config({"tiers": tiers, "placement": placement})
    told = {"seen": True, "memory": False}
    checked = [{"tier": name, "kind": kind, "shared": told.get(name)} for name, kind in kinds.items()]
    assert shared_tiers(settings, checked) == {"disk", "nfs", "seen"}
