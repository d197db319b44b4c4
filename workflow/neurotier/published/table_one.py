"""Table I of the paper: read and write bandwidth of each device, from the logs of its storage benchmark.

``system_conf/*diskbench.out`` has one row per measurement of ``dd`` with one stream: device, write, read, cached read.

What the table is
-----------------
The published figures are the **means** of five measurements in **App Direct** mode, with 1 GB counted as 1,024 MB; this
reproduces them to 0.1 MB/s. ``dd`` counts 1 GB as 1,000 MB, so in its unit the two fast devices have 2.3 % less. The
first write to Optane and to DRAM is slow, so the medians are 7 and 13 % above the means.
"""

from __future__ import annotations

import csv
import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from neurotier.bigbrain.conditions import IncrementCondition
from neurotier.model.prediction import least_makespan_s
from neurotier.published.bigbrain import place_of
from neurotier.published.conditions import APP_DIRECT
from neurotier.published.skipped import Skipped, skipping
from neurotier.storage.table_one import MB_PER_GB, PUBLISHED_MB_S

PATTERN = "*diskbench.out"
HEADINGS = ["Device", "Write", "Read", "CacheRead"]
BANDWIDTH = re.compile(r"(?P<value>\d+(\.\d+)?) (?P<unit>[MG]B)/s")


@dataclass(frozen=True, eq=False)
class Bandwidth:
    """The measurements of one device in one mode, in order, MB/s with 1 GB = 1,024 MB."""

    device: str
    mode: str
    read_mb_s: list[float] = field(default_factory=list)
    write_mb_s: list[float] = field(default_factory=list)

    @property
    def published(self) -> tuple[float, float] | None:
        """Read and write bandwidth as printed, MB/s; Table I has only App Direct mode."""
        return PUBLISHED_MB_S.get(self.device) if self.mode == APP_DIRECT else None

    @property
    def means(self) -> tuple[float, float]:
        """Mean read and write bandwidth, MB/s."""
        return statistics.fmean(self.read_mb_s), statistics.fmean(self.write_mb_s)


def find_bandwidths(root: Path, skipped: list[Skipped]) -> list[Bandwidth]:
    """Read all storage benchmarks at or below a path; return the devices in the order of Table I.

    Files that cannot be read are added to ``skipped``.
    """
    found = dict[str, Bandwidth]()
    for file in [root] if root.match(PATTERN) else sorted(root.rglob(PATTERN)):
        with skipping(file, skipped):
            for label, (write, read, _) in read_samples(file):
                one = found.setdefault(label, Bandwidth(*place_of(label)))
                one.write_mb_s.append(write)
                one.read_mb_s.append(read)
    return sorted(found.values(), key=lambda one: (one.mode, -statistics.mean(one.read_mb_s)))


def read_samples(file: Path) -> list[tuple[str, list[float]]]:
    """The label and the write, read and cached read bandwidth of every measurement; raises ``ValueError`` with the
    reason if the file is damaged."""
    headings, *rows = [*csv.reader(file.read_text(encoding="ascii").splitlines())] or [[]]
    if headings != HEADINGS or not rows:
        raise ValueError(f"is not a storage benchmark: no rows below {','.join(HEADINGS)}")
    samples = []
    for number, row in enumerate(rows, start=2):
        if len(row) != len(HEADINGS):
            raise ValueError(f"line {number} has {len(row)} fields, not {len(HEADINGS)}")
        try:
            samples.append((row[0], [mb_s(text) for text in row[1:]]))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return samples


def mb_s(text: str) -> float:
    """Convert a bandwidth printed by ``dd`` to MB/s, with 1 GB counted as 1,024 MB.

    >>> mb_s("112 MB/s"), mb_s("1.5 GB/s")
    (112.0, 1536.0)
    """
    match = BANDWIDTH.fullmatch(text.strip())
    if match is None or not float(match["value"]):
        raise ValueError(f"{text!r} is not a bandwidth")
    return float(match["value"]) * (MB_PER_GB if match["unit"] == "GB" else 1)


def equation_one_s(condition: IncrementCondition, bandwidth_mb_s: tuple[float, float] | None) -> float | None:
    """The paper's Eq. (1), M >= D/R + D/W, s, with the paper's units: MiB over what Table I calls MB/s.

    ``None`` without a read and a write bandwidth.
    """
    mebibytes = condition.block_bytes * condition.iterations / 2**20
    return least_makespan_s(mebibytes, mebibytes, *bandwidth_mb_s) if bandwidth_mb_s else None
