"""The probe of a tier: real fio on memory, on disk and on a throttled disk; what it refuses, and what a kill leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from configured import settings_at
from neurotier.core.errors import TierError
from neurotier.core.places import Places
from neurotier.core.settings import ProbeSettings
from neurotier.core.tables import write_table
from neurotier.core.tiers import Tier
from neurotier.storage.fio import MIB, Access, find_access
from neurotier.storage.probe.plan import ProbePlan
from neurotier.storage.probe.walk import Effort, Measurement, Walk, concurrency, effort_for, one_stream, probe_rows
from neurotier.storage.workspace import Workspace
from workloads import throttled

THROTTLE_BYTES_PER_S = 20_000_000
GIB = 1 << 30


def probe_settings(**given: object) -> ProbeSettings:
    """Settings of a small probe."""
    usual = {"tiers": [], "streams": 2, "file_mib": 16, "share": 0.5, "time_s": 5.0, "repetitions": 1}
    return ProbeSettings(**{**usual, **given})  # type: ignore[arg-type]


@pytest.mark.alone
def test_a_throttled_disk_is_as_fast_as_its_throttle() -> None:
    with throttled(128, THROTTLE_BYTES_PER_S) as slow_disk:
        folder, tier = slow_disk / "probe", Tier("slow", slow_disk, "block", None)
        folder.mkdir()
        walk = Walk(Workspace("probe", tier, folder), Effort(2, 1, 20.0, 16 * MIB, 64 * MIB), print)
        access = find_access(folder, "block")
        assert access == Access("libaio", direct=True)
        walk.measure(one_stream("block", 16 * MIB))
        walk.measure(concurrency(access, "block", 2, 8 * MIB, slice_s=1.0))
    rows = {(row["part"], row["pattern"]): row["bandwidth_bytes_per_s"] for row in probe_rows(tier, walk.samples)}
    for part, pattern in (("one_stream", "read"), ("concurrency", "write"), ("concurrency", "read")):
        assert rows[part, pattern] == pytest.approx(THROTTLE_BYTES_PER_S, rel=0.15), (part, pattern)
        assert rows[part, "cached_read"] > 10 * THROTTLE_BYTES_PER_S
    # the flush of a buffered file ends with the journal's commit: several more turns of the throttle, 0.1 s each
    assert 0.5 * THROTTLE_BYTES_PER_S < rows["one_stream", "write"] < 1.15 * THROTTLE_BYTES_PER_S
    # much more on an idle machine; where others have much dirty, the kernel slows everybody down to their device
    assert rows["concurrency", "buffered_write"] > 0.85 * THROTTLE_BYTES_PER_S


def test_a_tier_without_room_is_refused(tmp_path: Path) -> None:
    small = Tier("small", tmp_path, "block", 100 * MIB)
    with pytest.raises(TierError) as raised:
        effort_for(small, probe_settings(streams=4), 4)
    assert str(raised.value) == (
        "tier 'small': a probe with 4 streams needs 64 MiB, and it may take 50 MiB (50 % of 100 MiB free); "
        "make room, raise probe.share, or lower probe.streams"
    )
    assert effort_for(small, probe_settings(), 3).room_bytes == 50 * MIB


def test_a_tier_that_fills_up_meanwhile_is_named(tmp_path: Path, mount_tmpfs: pytest.FixtureRequest) -> None:
    mount = mount_tmpfs(tmp_path / "small", "size=4m")  # type: ignore[operator]
    workspace = Workspace("probe", Tier("small", mount, "tmpfs", None), mount)
    walk = Walk(workspace, Effort(1, 1, 1.0, 16 * MIB, GIB), print)
    with pytest.raises(TierError, match=r"^tier 'small': filled up during the probe, which needed 16 MiB; "):
        walk.measure([Measurement("write", "write", MIB, 16 * MIB, part="one_stream")])
    assert list(mount.iterdir()) == []


def planned(tmp_path: Path, cores: int | None = 2, **probe: object) -> ProbePlan:
    """What the rules would ask, with a tier for each kind of role."""
    tiers = {name: {"path": str(tmp_path), "kind": "block"} for name in ("fast", "spare")}
    settings = settings_at(tmp_path, tiers=tiers, placement={"work": "fast"}, probe=probe)
    return ProbePlan(settings, Places.from_settings(settings), cores)


def test_what_was_probed_further_is_kept(tmp_path: Path, memory_folder: Path) -> None:
    """Fewer cores are no reason to probe again; more are, and so is another file system or setting."""
    assert (planned(tmp_path, 1).streams("disk"), planned(tmp_path, 500).streams("disk")) == (1, 96)
    few, tier = planned(tmp_path, 1), Tier("memory", memory_folder, "tmpfs", None)
    walk = Walk(Workspace("probe", tier, memory_folder), Effort(2, 2, 8.0, 16 * MIB, 64 * MIB), print)
    write_table(few.places.probed("disk"), "probe", probe_rows(tier, walk.run()))
    assert list(memory_folder.iterdir()) == []
    assert few.asked("disk") == planned(tmp_path, 2).asked("disk")
    assert few.asked("disk") != planned(tmp_path, 4).asked("disk")
    assert few.asked("disk") != planned(tmp_path, 1, repetitions=9).asked("disk")
    assert planned(tmp_path, 4, streams=1).streams("disk") == 1
