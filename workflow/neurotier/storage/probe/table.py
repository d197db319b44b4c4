"""The table: a row per measurement, medians over the repetitions with their range."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Sequence

from neurotier.core.spread import Spread
from neurotier.core.tables import Row, columns
from neurotier.core.tiers import Tier
from neurotier.storage.probe.measurements import FILES, Measurement, Samples
from neurotier.storage.workspace import facts_of

SPREADS = {"bandwidth_{}bytes_per_s": "bandwidth_bytes_per_s", "operation_{}s": "operation_s"}
"""Columns of the least and the greatest of the repetitions, and what they are of."""


def probe_rows(tier: Tier, samples: Samples) -> list[Row]:
    """Rows of ``probe.tsv`` for a tier that was measured on this node now; small files come last."""
    facts = {
        **dict.fromkeys(columns("probe")),
        **facts_of(tier),
        "device": tier.mount().source,
        "kernel": f"{platform.system()} {platform.release()}",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "fio": next(results[0]["fio_version"] for each, results in samples.items() if each.part != FILES),
    }
    in_order = sorted(samples.items(), key=lambda one: one[0].part == FILES)
    return [facts | cells(measurement, results) for measurement, results in in_order]


def cells(measurement: Measurement, results: Sequence[Row]) -> Row:
    """What was measured, and how."""
    job = measurement.job
    row = {name: getattr(job, name) for name in columns("probe") if hasattr(job, name)}
    row |= {"part": measurement.part, "pattern": job.name, "repetitions": len(results)}
    for name in results[0].keys() & set(columns("probe")):
        known = [result[name] for result in results if result[name] is not None]
        row[name] = statistics.median(known) if known else None
    for name, figure in SPREADS.items():
        if figure in results[0]:
            spread = Spread(tuple(result[figure] for result in results))
            row |= {name.format("low_"): spread.low, name.format("high_"): spread.high}
    return row
