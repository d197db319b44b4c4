"""The walk: everything that is measured of a tier, once in each repetition, so that a slow drift shows as a range."""

from __future__ import annotations

import time
from pathlib import Path

from neurotier.core.errors import TierError, ToolError
from neurotier.core.quantities import size
from neurotier.core.tiers import Tier
from neurotier.core.work_folders import OWNER
from neurotier.storage.access import Access, find_access
from neurotier.storage.fio import FioResult, run_fio
from neurotier.storage.probe.effort import SMALLEST_BYTES, Effort
from neurotier.storage.probe.measurements import Measurement, concurrency, levels, metadata, one_stream, small

TIMEOUT_S = 60.0
"""How much longer than planned a job may take before the device is said to hang."""

Samples = dict[Measurement, list[FioResult]]
"""Results of each measurement, by repetition."""


class Walk:
    """A probe under way in a folder of its own on the tier.

    Parameters
    ----------
    tier, effort
        What to probe, and what that may take.
    folder
        The caller's own, on the tier.
    """

    def __init__(self, tier: Tier, effort: Effort, folder: Path) -> None:
        self.tier, self.effort, self.folder = tier, effort, folder
        self.samples: Samples = {}
        self.began_s = time.monotonic()

    def run(self) -> Samples:
        """Measure everything, and again while there is time.

        Raises
        ------
        ToolError
            If fio is not there or fails.
        TierError
            If the tier fills up meanwhile.
        """
        groups = self.first_repetition(find_access(self.folder, self.tier.kind))
        for done in range(1, self.effort.repetitions):
            if (time.monotonic() - self.began_s) * (done + 1) / done > self.effort.time_s:
                break
            for group in groups:
                self.measure(group)
        return self.samples

    def first_repetition(self, access: Access) -> list[list[Measurement]]:
        """Measure everything once, with sizes that follow from what has been measured; the measurements, in groups."""
        effort, kind, slice_s = self.effort, self.tier.kind, self.effort.slice_s
        rate = self.rate(concurrency(access, kind, 1, SMALLEST_BYTES, slice_s)[:2])
        self.samples.clear()
        alone = effort.stream_bytes(1, rate)
        groups = [[*one_stream(kind, alone), *small(access, kind, alone, slice_s)], metadata(slice_s)]
        for group in groups:
            self.measure(group)
        for streams in levels(effort.streams):
            group = concurrency(access, kind, streams, effort.stream_bytes(streams, rate), slice_s)
            groups.append(group)
            rate = max(rate, self.rate(group))
        return groups

    def rate(self, group: list[Measurement]) -> float:
        """Measure a group; bandwidth to or from the device, bytes/s, whichever is less."""
        self.measure(group)
        return min(self.samples[each][-1].bandwidth_bytes_per_s for each in group if each.pattern in ("read", "write"))

    def measure(self, group: list[Measurement]) -> None:
        """Measure a group on files that they share and nobody else."""
        try:
            for each in group:
                self.samples.setdefault(each, []).append(self.measure_one(each))
        finally:
            for file in self.folder.iterdir():
                if file.name != OWNER:
                    file.unlink()

    def measure_one(self, measurement: Measurement) -> FioResult:
        """Measure once."""
        job = measurement.job
        try:
            result = run_fio(job, self.folder, TIMEOUT_S + 10 * self.effort.slice_s)
        except ToolError as error:
            if "No space left" not in str(error):
                raise
            needed, free = size(job.streams * job.file_bytes), size(self.tier.free_bytes())
            raise TierError(
                f"filled up during the probe, which needed {needed}; {free} are free",
                where=f"tier {self.tier.name!r}",
                fix="make room, or lower probe.share",
            ) from None
        if not result.operations_per_s:
            raise ToolError(f"{job.name} did nothing within {job.runtime_s} s", where=f"tier {self.tier.name!r}")
        return result
